"""The measurements of overhead.sh; start that one."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compare import ROOT, alternate, machine, table

# Programs of samples/src with their settings of the runtime: what they are, and their arguments.
PROGRAMS = [
    ("heap full of holes, full collections", {}, ["ranges", "40"]),
    ("the same, server GC with two heaps", {"gcServer": "1", "GCHeapCount": "2"}, ["ranges", "40"]),
    ("many small collections", {}, ["steps", "4000", "0"]),
]
PROFILER = {
    "CORECLR_ENABLE_PROFILING": "1",
    "CORECLR_PROFILER": "{6c1a7a1c-53a1-4b4b-9f2a-7c6f8f0f7c01}",
}
SIDES = [
    ("empty callbacks", {"TRACEQUET_IDLE": "1"}),
    ("ranges alone", {"TRACEQUET_ROOTS": "0", "TRACEQUET_HANDLES": "0", "TRACEQUET_CLASSES": "0", "TRACEQUET_NAMES": "0"}),
    ("ranges and roots", {"TRACEQUET_HANDLES": "0", "TRACEQUET_CLASSES": "0"}),
    ("everything but objects", {}),
]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value


def ranges_in(recording):
    """Ranges in a recording: a walk over its chunks and records as in schemas/corprof.md."""
    number = lambda at, size=4: int.from_bytes(recording[at:at + size], "little")
    align = number(20)
    at, ranges = -(-number(12) // align) * align, 0
    while at < len(recording):
        if recording[at:at + 4] != b"CHNK":
            at += align
            continue
        record, end = at + 40, at + 40 + number(at + 24)
        while record < end:
            if recording[record] in (5, 6, 7, 8):
                ranges += varint(recording, record + 32)
            record += 32 + number(record + 4)
        at += number(at + 4)
    return ranges


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", default="auto")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    found = subprocess.run([ROOT / "samples/record.sh", "--program", "--runtime", args.runtime], stdout=subprocess.PIPE,
                           text=True, check=True).stdout.split()
    dotnet, program = map(Path, found)
    library = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/libtracequet_recorder.so"
    old = any((dotnet.parent / "shared/Microsoft.NETCore.App").glob("3.*"))
    prefix = "COMPlus_" if old else "DOTNET_"
    where = machine(dotnet.parent)

    def run(settings, arguments, environment):
        """Runs the program; returns its wall and its processor time in seconds, and bytes and ranges recorded."""
        with tempfile.TemporaryDirectory() as folder:
            recording = Path(folder, "app.corprof")
            named = {prefix + name: value for name, value in settings.items()}
            before, began = os.times(), time.perf_counter()
            result = subprocess.run([dotnet, program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, env={**os.environ, **named, **environment,
                                                                 "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",
                                                                 "TRACEQUET_OUTPUT": str(recording)})
            wall, after = time.perf_counter() - began, os.times()
            if result.returncode != 0:
                sys.exit(f"{arguments}: {result.stderr.decode()}")
            data = recording.read_bytes() if recording.exists() else b""
            processor = after.children_user - before.children_user + after.children_system - before.children_system
            return wall, processor, len(data), ranges_in(data) if data else 0

    on = {**PROFILER, "CORECLR_PROFILER_PATH": str(library)}
    sides = [("no profiler", {})] + [(name, {**on, **environment}) for name, environment in SIDES]
    rows = []
    for what, settings, arguments in PROGRAMS:
        print(what, file=sys.stderr)
        medians = alternate(args.runs, *[lambda e=e: run(settings, arguments, e) for _, e in sides])
        plain, empty = medians[0], medians[1]
        for (name, _), (wall, processor, size, ranges) in zip(sides, medians):
            each = f"{size / ranges:.2f}" if ranges else ""
            ratio = lambda value, base: f"{value / base:.2f}"
            rows.append([f"{what}: {name}", f"{wall:.2f}", ratio(wall, plain[0]), f"{processor:.2f}",
                         ratio(processor, plain[1]), ratio(processor, empty[1]) if name != "no profiler" else "",
                         f"{ranges:,.0f}" if ranges else "", each])
    heads = ["program", "wall s", "ratio to no profiler", "CPU s", "ratio to no profiler", "ratio to empty", "ranges", "bytes a range"]
    result = (f"Measured {time.strftime('%Y-%m-%d', time.gmtime())}: {where}.\n"
              f"Medians of {args.runs} runs, all in turn; CPU is user and system time of all threads, the start of the runtime\n"
              f"included; bytes are those of the whole file.\n\n{table(heads, rows)}")
    print(result)
    if args.write:
        path = ROOT / "docs/PERFORMANCE.md"
        text = path.read_text()
        begin, end = "<!-- measured by benches/overhead.sh --write -->\n", "<!-- end of overhead -->"
        head, rest = text.split(begin)
        path.write_text(head + begin + result + end + rest.split(end, 1)[1])


main()
