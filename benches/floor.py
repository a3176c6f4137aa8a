#!/usr/bin/env python3
"""Compares `convert` with the floor of its output: floor.py TRACEQUET TRACE... [--runs N] [--old TRACEQUET]

The floor is the processor time in which pyarrow's C++ writer writes the same tables from memory: same row groups,
encodings and compression, on one thread. Converting also reads, decodes and sorts, so it cannot be faster than that by
much. Both sides run in turn; medians of N runs (5), after one run of each that does not count. Processor time is that
of user and system, of all threads; that of `convert` includes the start of the process. `--old` adds another build of
tracequet to the turns. Prints Markdown. The Python needs pyarrow.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow
import pyarrow.parquet as parquet


def convert(program, trace, out):
    """Converts a recording; seconds of processors, seconds on the clock."""
    began = time.monotonic()
    process = subprocess.Popen([program, "convert", "--quiet", "--overwrite", trace, "-o", out], stdin=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    # 2: events were lost while it was recorded.
    if process.returncode not in (0, 2):
        sys.exit(f"{program} convert {trace} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, time.monotonic() - began


def in_memory(file):
    """The row groups of a file as tables, and the options with which pyarrow writes them in the same way."""
    found = parquet.ParquetFile(file)
    groups = [found.read_row_group(number, use_threads=False) for number in range(found.num_row_groups)]
    codecs, dictionary, encodings = {}, [], {}
    for number in range(found.metadata.num_columns if groups else 0):
        column = found.metadata.row_group(0).column(number)
        path = column.path_in_schema
        codecs[path] = "NONE" if column.compression == "UNCOMPRESSED" else column.compression
        layouts = {layout for layout in column.encodings if layout != "RLE"}
        if column.has_dictionary_page:
            dictionary.append(path)
        elif column.physical_type != "BOOLEAN":
            encodings[path] = next(iter(layouts - {"PLAIN"}), "PLAIN")
    options = {"compression": codecs, "use_dictionary": dictionary or False, "column_encoding": encodings or None,
               "dictionary_pagesize_limit": 4 << 20, "use_compliant_nested_type": False}
    zstd = {path: 1 for path, codec in codecs.items() if codec == "ZSTD"}
    return groups, options | ({"compression_level": zstd} if zstd else {})


def floor(tables, folder):
    """Writes tables; seconds of processors."""
    began = time.process_time()
    for number, (groups, options) in enumerate(tables):
        if groups:
            with parquet.ParquetWriter(folder / f"{number}.parquet", groups[0].schema, **options) as writer:
                for group in groups:
                    writer.write_table(group, row_group_size=max(1, group.num_rows))
    return time.process_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--old", help="another build, which runs in turn with the other two")
    arguments = parser.parse_args()
    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)
    print(f"Load before the run {os.getloadavg()[0]:.1f}.\n")
    old = ["old CPU s", "old ratio"] if arguments.old else []
    heads = ["trace", "MB", "rows", "Parquet MB", "floor s", *old, "convert CPU s", "ratio", "CPU ms a MB", "wall s"]
    print("| " + " | ".join(heads) + " |\n|---|" + "---:|" * (len(heads) - 1), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for trace in arguments.traces:
            convert(arguments.program, trace, folder / "out")
            files = sorted((folder / "out").rglob("*.parquet"))
            tables = [in_memory(file) for file in files]
            floor(tables, folder)
            measured = []
            for _ in range(arguments.runs):
                before = convert(arguments.old, trace, folder / "old") if arguments.old else (0, 0)
                measured.append((floor(tables, folder), before[0], *convert(arguments.program, trace, folder / "out")))
            least, before, cpu, wall = map(statistics.median, zip(*measured))
            size, written = trace.stat().st_size / 1e6, sum(file.stat().st_size for file in files) / 1e6
            rows = sum(group.num_rows for groups, _ in tables for group in groups)
            compared = [f"{before:.3f}", f"{before / least:.2f}"] if arguments.old else []
            cells = [trace.stem, f"{size:.0f}", f"{rows:,}", f"{written:.1f}", f"{least:.3f}", *compared, f"{cpu:.3f}",
                     f"{cpu / least:.2f}", f"{cpu / size * 1e3:.1f}", f"{wall:.2f}"]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
