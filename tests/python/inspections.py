"""What `tracequet inspect` says of recordings against the tables that `convert` makes of them:
inspections.py DATASET INSPECTIONS.json

Both read a recording in their own way: one counts and looks at fixed places, the other one decodes.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from common import Dataset, connect, finish

inspections = {of["path"]: of for of in json.loads(Path(sys.argv[2]).read_text())}
connection = connect(Dataset(sys.argv[1]))
NO_SUBJECT = 2**32 - 1
ABOUT = {
    "event_count": "event_count",
    "dropped_events": "dropped_event_count",
    "complete": "complete",
    "duration_ns": "duration_ns",
    "container": "container",
    "format_version": "format_version",
    "pointer_size": "pointer_size",
    "processor_count": "processor_count",
    "sampling_ns": "sampling_ns",
    "clock_frequency": "clock_frequency",
    "frame_count": "frame_count",
    "named_frame_count": "named_frame_count",
}


def rows(sql):
    """Rows of a query by their first column, the recording."""
    found = {}
    for trace, *row in connection.execute(sql).fetchall():
        found.setdefault(trace, []).append(tuple(row))
    return found


KIND = ["provider_name", "event_id", "event_version", "event_name", "level", "keywords", "opcode"]
NUMBERS = ["event_count", "payload_bytes"]
kinds = rows(f"SELECT trace_id, {', '.join(KIND + NUMBERS)} FROM event_type")
threads = rows("SELECT trace_id, process_id, thread_id, event_count FROM thread WHERE event_count > 0")
processes = rows("SELECT trace_id, command_line, os, arch, runtime_version FROM process")
# Others are known by their callbacks, or from one moment of a heap.
collections = rows("SELECT trace_id, process_id, gc_number, generation, kind, duration_ns FROM gc WHERE gc_number <> 0")
problems = rows("SELECT trace_id, severity, code FROM diagnostic")
failures, compared = [], Counter()


def compare(path, what, ours, theirs):
    compared[what] += len(theirs)
    if ours != theirs:
        only = [sorted((a - b).items(), key=str)[:2] for a, b in [(ours, theirs), (theirs, ours)]]
        failures.append(f"{path}: {what}: tables {only[0]}, inspect {only[1]}")


trace = f"SELECT trace_id, path, {', '.join(ABOUT.values())} FROM trace WHERE status <> 'failed'"
for trace_id, [(path, *about)] in rows(trace).items():
    seen = inspections.pop(path)
    # Without call stacks it says nothing of frames.
    seen |= seen.get("frames") or {"frame_count": 0, "named_frame_count": 0}
    for (theirs, ours), value in zip(ABOUT.items(), about):
        if seen[theirs] != value:
            failures.append(f"{path}: {ours} {value}, inspect {seen[theirs]}")
    # It says this of one process, and nothing where there are several.
    if len(own := processes.get(trace_id, [])) == 1:
        command_line = seen["command_line"] or "".join(process["command_line"] or "" for process in seen["processes"])
        theirs = command_line, *(seen[name] or "" for name in ["os", "arch", "runtime_version"])
        compare(path, "processes", Counter(own), Counter([theirs]))
    theirs = Counter()
    for kind in seen["event_types"]:
        kind["keywords"] = int(kind["keywords"], 16)
        for number in NUMBERS:
            theirs[(number, *(kind[name] for name in KIND))] += kind[number]
    ours = Counter()
    for kind in kinds.get(trace_id, []):
        for number, value in zip(NUMBERS, kind[-2:]):
            ours[(number, *kind[:-2])] += value
    compare(path, "kinds of events", +ours, +theirs)
    theirs = Counter()
    for thread in seen["threads"]:
        if NO_SUBJECT not in (thread["process_id"], thread["thread_id"]):
            theirs[thread["process_id"], thread["thread_id"]] += thread["event_count"]
    ours = Counter()
    for process_id, thread_id, count in threads.get(trace_id, []):
        ours[process_id, thread_id] += count
    compare(path, "threads", ours, +theirs)
    if seen["container"] not in ("corprof", "gcdump"):
        fields = ["process_id", "gc_number", "generation", "kind", "duration_ns"]
        theirs = Counter(tuple(gc[field] for field in fields) for gc in seen["collections"])
        # The table has the least that it can be where the start is not in the recording.
        timed = {gc[:2] for gc in theirs if gc[-1] is not None}
        ours = Counter(gc if gc[:2] in timed else (*gc[:-1], None) for gc in collections.get(trace_id, []))
        compare(path, "collections", ours, theirs)
    for problem in seen["problems"]:
        key = problem["severity"], problem["code"]
        compared["problems"] += 1
        if key not in problems.get(trace_id, []):
            failures.append(f"{path}: no {key} in diagnostic, inspect reports {problem['count']}")
things = ["processes", "kinds of events", "threads", "collections", "problems"]
failures += [f"nothing was compared: {what}" for what in things if not compared[what]]
failures += [f"{path} is not in the dataset" for path in inspections]
finish(failures, f"compared: {dict(compared)}")
