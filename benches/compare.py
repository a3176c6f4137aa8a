#!/usr/bin/env python3
"""Times tracequet beside TraceEvent, in turn, on the same recordings; prints the tables of docs/PERFORMANCE.md.

    cargo build --release
    target/venv/bin/python benches/compare.py KIT TRACES

KIT is a folder with a .NET runtime and TraceEvent's dispatch loop as apps/TraceDump/TraceDump.dll, TRACES one with
recordings (*.nettrace; churn.nettrace for the comparison of conversions). Needs the Python package duckdb. Every figure is
the median of RUNS whole processes, a warm-up before them; ratios are taken pair by pair.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = int(os.environ.get("RUNS", "5"))
ROOT = Path(__file__).resolve().parent.parent
TRACEQUET = ROOT / "target/release/tracequet"


def once(command, stdout=subprocess.DEVNULL):
    """Wall seconds and peak resident megabytes of one process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 2):
        sys.exit(f"{command}: exit code {process.returncode}")
    return wall, usage.ru_maxrss / 1024


def in_turn(ours, theirs):
    """Medians of both, and of the ratio pair by pair."""
    ours(), theirs()
    pairs = [(ours(), theirs()) for _ in range(RUNS)]
    median = lambda values: statistics.median(values)
    return (
        median(o[0] for o, _ in pairs),
        median(o[1] for o, _ in pairs),
        median(t[0] for _, t in pairs),
        median(t[1] for _, t in pairs),
        median(o[0] / t[0] for o, t in pairs),
    )


def main():
    kit, traces = (Path(argument) for argument in sys.argv[1:3])
    os.environ["DOTNET_ROOT"] = str(kit)
    peer = [str(kit / "dotnet"), str(kit / "apps/TraceDump/TraceDump.dll")]
    files = sorted(traces.glob("*.nettrace"), key=lambda file: file.stem)

    print("| recording | MB | `inspect` | peak | TraceEvent | peak | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for file in files:
        row = in_turn(lambda: once([TRACEQUET, "inspect", file]), lambda: once([*peer, "raw", file]))
        ours, our_peak, theirs, their_peak, ratio = row
        size = file.stat().st_size / 1e6
        print(f"| {file.stem} | {size:.0f} | {ours:.3f} s | {our_peak:.0f} MB | {theirs:.3f} s | {their_peak:.0f} MB | {ratio:.2f} |")

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        convert = lambda file: once([TRACEQUET, "convert", "--quiet", "--overwrite", file, "-o", out])

        print("\n| recording | MB | `convert` | MB/s | peak |")
        print("|---|---:|---:|---:|---:|")
        for file in files:
            convert(file)
            runs = [convert(file) for _ in range(RUNS)]
            wall, peak = statistics.median(r[0] for r in runs), max(r[1] for r in runs)
            size = file.stat().st_size / 1e6
            print(f"| {file.stem} | {size:.0f} | {wall:.2f} s | {size / wall:.0f} | {peak:.0f} MB |")

        churn = traces / "churn.nettrace"
        csv, parquet = Path(folder) / "ranges.csv", Path(folder) / "ranges.parquet"
        copy = f"import duckdb; duckdb.sql(\"COPY (FROM read_csv('{csv}')) TO '{parquet}'\")"

        def csv_and_copy():
            with open(csv, "wb") as output:
                dump = once([*peer, "csv", churn], stdout=output)
            load = once([sys.executable, "-c", copy])
            return dump[0] + load[0], max(dump[1], load[1])

        ours, _, theirs, _, ratio = in_turn(lambda: convert(churn), csv_and_copy)
        print(f"\nchurn: `convert` {ours:.2f} s (all tables), TraceEvent to CSV and DuckDB to Parquet {theirs:.2f} s (ranges only), ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
