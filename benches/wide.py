#!/usr/bin/env python3
"""What more cores bring a conversion: wide.py TRACEQUET TRACE... [--runs N]

Converts each trace on one core and on all in turn (medians of N runs, 5), and sums up how much processor time each
thread takes (/proc/PID/task/*/schedstat, looked at every 2 ms). The thread that takes most is never divided: with any
number of cores a conversion is at most 1 / its share as fast as on one. Prints Markdown. Linux only.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def convert(program, trace, out, cores):
    """Converts a recording on some cores. Returns seconds on the clock, and the share of the thread with most processor
    time.
    """
    began = time.monotonic()
    process = subprocess.Popen([program, "convert", "--quiet", "--overwrite", trace, "-o", out], stdin=subprocess.DEVNULL,
                               preexec_fn=lambda: os.sched_setaffinity(0, cores))
    threads = {}
    while process.poll() is None:
        for task in Path(f"/proc/{process.pid}/task").glob("*"):
            try:
                threads[task.name] = int((task / "schedstat").read_text().split()[0])
            except (OSError, IndexError, ValueError):
                continue
        time.sleep(0.002)
    seconds = time.monotonic() - began
    if process.returncode not in (0, 2):
        sys.exit(f"{program} convert {trace} ended with {process.returncode}")
    return seconds, max(threads.values()) / sum(threads.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    every = sorted(os.sched_getaffinity(0))
    print(f"Load before the run {os.getloadavg()[0]:.1f}.\n")
    print(f"| trace | one core: s | {len(every)} cores: s | busiest thread | 8 cores, at most times one core |\n|---|---:|---:|---:|---:|")
    for trace in arguments.traces:
        one, all_cores, shares = [], [], []
        with tempfile.TemporaryDirectory() as folder:
            convert(arguments.program, trace, Path(folder) / "out", every)
            for _ in range(arguments.runs):
                one.append(convert(arguments.program, trace, Path(folder) / "out", every[:1])[0])
                seconds, share = convert(arguments.program, trace, Path(folder) / "out", every)
                all_cores.append(seconds)
                shares.append(share)
        share = statistics.median(shares)
        print(f"| {trace.name.split('.')[0]} | {statistics.median(one):.2f} | {statistics.median(all_cores):.2f} | {share:.2f} "
              f"| {min(8, 1 / share):.1f} |", flush=True)


if __name__ == "__main__":
    main()
