"""The measurements of compare.sh; start that one."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPY = """
import sys, time, duckdb
began = time.perf_counter()
duckdb.connect().execute(f"COPY (FROM read_csv('{sys.argv[1]}', header = false, columns = {{'gc': 'INTEGER', "
    f"'old_start': 'UBIGINT', 'new_start': 'UBIGINT', 'length': 'UBIGINT'}})) TO '{sys.argv[2]}' (FORMAT parquet)")
print(time.perf_counter() - began)
"""


def run(command, stdout=None, accept=(0,)):
    """Runs a command; returns its seconds and its peak resident memory in MB, mapped pages included."""
    with tempfile.NamedTemporaryFile("r") as measured:
        began = time.perf_counter()
        result = subprocess.run(
            ["/usr/bin/time", "-q", "-f", "%M", "-o", measured.name, *map(str, command)],
            stdin=subprocess.DEVNULL, stdout=stdout or subprocess.DEVNULL, stderr=subprocess.PIPE)
        seconds = time.perf_counter() - began
        if result.returncode not in accept:
            sys.exit(f"{command}: {result.stderr.decode()}")
        return seconds, int(measured.read().split()[-1]) / 1024


def alternate(runs, *sides):
    """Each side once to warm up, then all in turn; the medians of each side's seconds and memory."""
    for side in sides:
        side()
    measured = [[side() for side in sides] for _ in range(runs)]
    return [tuple(map(statistics.median, zip(*rows))) for rows in zip(*measured)]


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join(["---"] + ["---:"] * (len(heads) - 1)) + "|"]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def machine(kit):
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    memory = int(next(line for line in open("/proc/meminfo") if line.startswith("MemTotal")).split()[1]) / 2**20
    runtimes = subprocess.run([kit / "dotnet", "--list-runtimes"], capture_output=True, text=True).stdout.split()
    load = os.getloadavg()[0]
    return (f"{model}, {os.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.release()}, "
            f".NET {runtimes[1] if len(runtimes) > 1 else '?'}; load before the run {load:.1f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kit", type=Path)
    parser.add_argument("traces", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    kit = args.kit.resolve()
    ours = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/tracequet"
    dump = [kit / "dotnet", kit / "apps/TraceDump/TraceDump.dll"]
    os.environ.update(DOTNET_ROOT=str(kit), DOTNET_CLI_TELEMETRY_OPTOUT="1")
    where = machine(kit)
    traces = sorted(args.traces.resolve().glob("*.nettrace"), key=lambda path: path.stat().st_size)
    note = lambda text: print(text, file=sys.stderr)

    inspected = []
    for trace in traces:
        (our_s, our_mb), (their_s, their_mb) = alternate(
            args.runs,
            # 2: events were lost while it was recorded.
            lambda: run([ours, "inspect", trace], accept=(0, 2)),
            lambda: run([*dump, "raw", trace]),
        )
        found = subprocess.run([ours, "inspect", "--json", trace], capture_output=True)
        size = trace.stat().st_size / 1e6
        events = json.loads(found.stdout)["event_count"]
        inspected.append((trace.stem, f"{size:.0f}", f"{events:,}", f"{our_s:.3f}", f"{their_s:.3f}",
                          f"{their_s / our_s:.1f}", f"{size / our_s / 1000:.1f}", f"{our_mb:.0f}", f"{their_mb:.0f}"))
        note(inspected[-1])

    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        folder = Path(folder)
        out, csv, parquet = folder / "out", folder / "ranges.csv", folder / "ranges.parquet"
        convert = lambda trace, *options: run(
            [ours, "convert", trace, "-o", out, "--overwrite", "--quiet", *options], accept=(0, 2))

        def csv_then_copy(trace):
            with open(csv, "wb") as stdout:
                seconds, memory = run([*dump, "csv", trace], stdout=stdout)
            copied = subprocess.run([sys.executable, "-c", COPY, csv, parquet], capture_output=True, text=True, check=True)
            # Without the time that Python takes to start.
            return seconds + float(copied.stdout), memory

        sides = []
        for trace in (trace for trace in traces if trace.stem == "churn"):
            ranges = "gc,gc_surviving_range,gc_moved_range"
            (all_s, all_mb), (ranges_s, ranges_mb), (their_s, their_mb) = alternate(
                args.runs,
                lambda: convert(trace),
                lambda: convert(trace, "--tables", ranges),
                lambda: csv_then_copy(trace),
            )
            convert(trace)
            rows = {t["name"]: t["rows"] for t in json.loads((out / "manifest.json").read_text())["tables"]}
            count = rows["gc_surviving_range"] + rows["gc_moved_range"]
            lines = sum(chunk.count(b"\n") for chunk in iter(lambda file=open(csv, "rb"): file.read(1 << 20), b""))
            if count != lines:
                sys.exit(f"{trace.stem}: {count} ranges, TraceEvent has {lines}")
            note(f"{trace.stem}: {count:,} ranges, the same on both sides")
            sides = [
                ("`tracequet convert`, all tables", f"{all_s:.2f}", f"{their_s / all_s:.1f}", f"{all_mb:.0f}"),
                (f"`tracequet convert --tables {ranges}`", f"{ranges_s:.2f}", f"{their_s / ranges_s:.1f}", f"{ranges_mb:.0f}"),
                ("`TraceDump csv`, then `COPY ... TO 'x.parquet'`", f"{their_s:.2f}", "1", f"{their_mb:.0f} (TraceDump)"),
            ]

        converted = []
        for trace in traces:
            ((seconds, memory),) = alternate(max(1, args.runs - 2), lambda: convert(trace))
            written = sum(file.stat().st_size for file in out.rglob("*") if file.is_file()) / 1e6
            rows = sum(t["rows"] for t in json.loads((out / "manifest.json").read_text())["tables"])
            size = trace.stat().st_size / 1e6
            converted.append((trace.stem, f"{size:.0f}", f"{seconds:.2f}", f"{size / seconds:.0f}", f"{rows:,}",
                              f"{written:.0f}", f"{memory:.0f}"))
            note(converted[-1])

    text = f"""Measured {time.strftime('%Y-%m-%d')}: {where}.
Medians of {args.runs} runs, the sides in turn, files in the page cache, start of the process included; memory is the peak
resident set, mapped pages included.

`tracequet inspect` beside `TraceDump raw` (dispatch every event, look at no payload):

{table(["trace", "MB", "events", "inspect s", "TraceEvent s", "times faster", "GB/s", "inspect MB", "TraceEvent MB"], inspected)}
Ranges of `churn` to Parquet ({f"{count:,} ranges" if sides else "no churn.nettrace"}); DuckDB's time is that of the `COPY` alone:

{table(["", "s", "times faster", "peak MB"], sides)}
`tracequet convert`, all tables and payload tables:

{table(["trace", "MB", "s", "MB/s", "rows", "Parquet MB", "peak MB"], converted)}"""
    print(text)
    if args.write:
        path = ROOT / "docs/PERFORMANCE.md"
        begin, end = "<!-- measured by benches/compare.sh --write -->\n", "<!-- end -->"
        head, _, rest = path.read_text().partition(begin)
        path.write_text(head + begin + text + end + rest.partition(end)[2])


if __name__ == "__main__":
    main()
