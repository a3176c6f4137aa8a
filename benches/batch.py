#!/usr/bin/env python3
"""Measures batches: batch.py TRACEQUET FOLDER [--counts 10,100,1000] [--large FILE...]

In FOLDER (which needs some 4 GB; nothing is left there) it makes recordings of about 1 MB out of
samples/subjects.nettrace, each with another process id and time, converts 10, 100 and 1,000 of them into a growing
dataset, adds one, and asks DuckDB three questions over all. Then 200 small recordings with one job and with two, in
turn; 300 with files of their own and with --pack; then the --large files together. Prints Markdown. The Python needs
duckdb.
"""

import argparse
import multiprocessing
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import duckdb
from many import changed

SAMPLES = Path(__file__).parent.parent / "samples"
QUESTIONS = {
    "the longest pause of each recording": "SELECT trace_id, max(duration_ns) FROM gc_pause GROUP BY ALL",
    "the 20 methods with the most processor time": """SELECT f.name, sum(s.sample_count) FROM cpu_sample s
        JOIN callsite c USING (trace_id, callsite_id) JOIN frame f USING (trace_id, frame_id) GROUP BY ALL ORDER BY 2 DESC LIMIT 20""",
    "allocated bytes of all types": "SELECT type_name, sum(allocation_bytes) FROM allocation GROUP BY ALL ORDER BY 2 DESC LIMIT 20",
    "a figure of each recording": "SELECT trace_id, value FROM metric WHERE name = 'request.server.p99'",
}


def run(arguments):
    """Runs a program; seconds on the clock, seconds of processors, megabytes at the peak. The peak is measured by
    `time`: ru_maxrss of a program is at least that of the process that started it, and this one has DuckDB in
    memory."""
    with tempfile.NamedTemporaryFile("r") as peak:
        began = time.monotonic()
        command = ["/usr/bin/time", "--quiet", "--format=%M", f"--output={peak.name}", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 2):
            raise SystemExit(f"{arguments} ended with {process.returncode}")
        return seconds, used.ru_utime + used.ru_stime, int(peak.read()) / 1024


def made(folder, count, samples):
    """Recordings 1 to `count`; those that are there stay."""
    folder.mkdir(parents=True, exist_ok=True)
    recordings = [(Path(name).stem, (SAMPLES / name).read_bytes()) for name in samples]
    for number in range(1, count + 1):
        name, recording = recordings[number % len(recordings)]
        path = folder / f"{name}-{number:05}.nettrace"
        if not path.exists():
            path.write_bytes(changed(recording, number))
    return folder


def files_of(lake):
    sizes = [path.stat().st_size for path in lake.rglob("*") if path.is_file()]
    return len(sizes), sum(sizes) / 1e6


def asked(lake, tables):
    """Seconds for each question whose tables are there: the second run of two, with the files in the page cache."""
    found = {}
    for name, sql in QUESTIONS.items():
        connection = duckdb.connect()
        for table in tables:
            if (lake / table).is_dir():
                connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{lake}/{table}/*/*.parquet', hive_partitioning = false)")
        for _ in range(2):
            began = time.monotonic()
            connection.execute(sql).fetchall()
            found[name] = time.monotonic() - began
    return found


def growing(program, folder, counts):
    print("| recordings | s | CPU s | CPU ms each | peak MB | files | MB | one more: s | CPU s |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for count in counts:
        recordings = made(folder / f"of-{count}", count, ["subjects.nettrace"])
        one = made(folder / "one", 1, ["subjects.nettrace"]) / "subjects-00001.nettrace"
        one.write_bytes(changed((SAMPLES / "subjects.nettrace").read_bytes(), 20_000 + count))
        # Nothing is removed before the end: see `side_by_side`.
        lake = folder / f"lake-of-{count}"
        seconds, cpu, peak = run([program, "convert", "-q", "--append", "--jobs", "0", recordings, "-o", lake])
        number, size = files_of(lake)
        more_seconds, more_cpu, _ = run([program, "convert", "-q", "--append", one, "-o", lake])
        print(f"| {count:,} | {seconds:.1f} | {cpu:.1f} | {cpu / count * 1e3:.0f} | {peak:.0f} | {number:,} | {size:,.0f} "
              f"| {more_seconds:.2f} | {more_cpu:.2f} |", flush=True)
        if count == max(counts):
            print()
            tables = ["gc_pause", "cpu_sample", "callsite", "frame", "allocation", "metric"]
            # In a process of its own: what a child takes at its peak is never less than what its parent has.
            with multiprocessing.Pool(1) as pool:
                answers = pool.apply(asked, (lake, tables))
            for question, seconds in answers.items():
                print(f"- {question}: {seconds:.2f} s")
            for what in (["stats", lake, "--latest"], ["diff", lake, lake]):
                seconds, cpu, peak = run([program, *what])
                print(f"- `tracequet {what[0]}`: {seconds:.2f} s, {cpu:.2f} s of processor time, {peak:.0f} MB")


def side_by_side(program, folder):
    small = made(folder / "small", 200, ["gc-churn.nettrace", "server-gc.nettrace", "stacks.nettrace", "events.nettrace"])
    times = {}
    for turn in range(3):
        for append in ([], ["--append"]):
            for jobs in ("1", "2"):
                # Nothing is removed meanwhile: ext4 does not reuse an inode for a minute, and has to skip each such
                # one.
                lake = folder / f"lake-{turn}-{len(append)}-{jobs}"
                times.setdefault((bool(append), jobs), []).append(
                    run([program, "convert", "-q", *append, "--jobs", jobs, small, "-o", lake]))
    print("\n| 200 small recordings | s | CPU s | peak MB |\n|---|---:|---:|---:|")
    for (append, jobs), runs in times.items():
        seconds, cpu, peak = (statistics.median(column) for column in zip(*runs))
        print(f"| {'`--append` ' if append else ''}`--jobs {jobs}` | {seconds:.2f} | {cpu:.2f} | {peak:.0f} |")
    shutil.rmtree(small)


def packed(program, folder, count):
    """The same recordings with files of their own, which are compacted, and written together."""
    recordings = made(folder / f"of-{count}", count, ["subjects.nettrace"])
    print(f"\n| {count:,} recordings | s | CPU ms each | peak MB | files | MB |\n|---|---:|---:|---:|---:|---:|")
    for tables in ([], ["--tables", "figures"]):
        for pack in ([], ["--pack"]):
            lake = folder / f"packed-{count}-{len(tables)}-{len(pack)}"
            steps = {" ".join(["convert", *tables, *pack]): ["convert", "-q", "--append", "--jobs", "0", *tables, *pack, recordings, "-o", lake]}
            if not pack:
                steps["dataset compact"] = ["dataset", "compact", lake, "--grace", "0"]
            for name, arguments in steps.items():
                seconds, cpu, peak = run([program, *arguments])
                number, size = files_of(lake)
                print(f"| `{name}` | {seconds:.1f} | {cpu / count * 1e3:.0f} | {peak:.0f} | {number:,} | {size:,.1f} |", flush=True)


def large(program, folder, recordings):
    size = sum(Path(path).stat().st_size for path in recordings) / 1e6
    print(f"\n{len(recordings)} large recordings, {size:,.0f} MB as they are:\n")
    for jobs in ("1", "2"):
        lake = folder / f"large-{jobs}"
        seconds, cpu, peak = run([program, "convert", "-q", "--append", "--jobs", jobs, *recordings, "-o", lake])
        number, written = files_of(lake)
        print(f"- `--jobs {jobs}`: {seconds:.1f} s, {cpu:.1f} s of processor time, {peak:.0f} MB at the peak, {number:,} files, {written:,.0f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--counts", default="10,100,1000")
    parser.add_argument("--large", nargs="*", default=[])
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print(f"Load before the run {os.getloadavg()[0]:.1f}.\n")
    folder = arguments.folder.resolve()
    counts = [int(count) for count in arguments.counts.split(",") if count]
    try:
        if counts:
            growing(arguments.program, folder, counts)
            side_by_side(arguments.program, folder)
            packed(arguments.program, folder, min(300, max(counts)))
        if arguments.large:
            large(arguments.program, folder, arguments.large)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
