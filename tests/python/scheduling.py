"""The views of what threads did against the scheduler that made them do it: scheduling.py DATASET TRUTH

TRUTH has a line `thread state start end` for each interval, in ticks of 100 ns.
"""

import collections
import sys
from pathlib import Path

from common import Dataset, connect, finish

dataset, failures = Dataset(sys.argv[1]), []
connection = connect(dataset)
sums, longest, counts = collections.Counter(), collections.Counter(), collections.Counter()
for line in Path(sys.argv[2]).read_text().splitlines():
    thread, state, start, end = line.split()
    key, ticks = (int(thread), state), int(end) - int(start)
    sums[key] += ticks
    longest[key] = max(longest[key], ticks)
    counts[key] += 1

columns = "running_ms, ready_ms, blocked_ms, longest_ready_ms, longest_blocked_ms, times_running"
threads = connection.execute(f"SELECT thread_id, {columns} FROM thread_time_by_thread").fetchall()
for thread, *found in threads:
    states = [(thread, state) for state in ("running", "ready", "blocked")]
    expected = [sums[state] / 1e4 for state in states] + [longest[state] / 1e4 for state in states[1:]]
    if [round(value, 6) for value in found[:5]] != expected or found[5] != counts[states[0]]:
        failures.append(f"thread {thread}: {found} is not {expected}, {counts[states[0]]}")
if {thread for thread, *_ in threads} != {thread for thread, _ in sums}:
    failures.append(f"threads {threads}")

sites = connection.execute("SELECT site, sum(how_often), sum(total_ms), max(longest_ms) FROM blocked_by_site GROUP BY site").fetchall()
blocked = [thread for thread, state in sums if state == "blocked"]
expected = [sum(counts[thread, "blocked"] for thread in blocked), sum(sums[thread, "blocked"] for thread in blocked) / 1e4]
found = [sum(row[1] for row in sites), round(sum(row[2] for row in sites), 6)]
if found != expected:
    failures.append(f"blocked_by_site: {found} is not {expected}")
finish(failures, f"{len(threads)} threads, {len(sites)} sites")
