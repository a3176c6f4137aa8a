"""The views of the heap against what `tracequet heap --json` found: heap.py DATASET ANSWER..., an answer for each
recording, named after it."""

import json
import sys
from pathlib import Path

from common import Dataset, connect, finish

dataset, answers = Dataset(sys.argv[1]), [Path(path) for path in sys.argv[2:]]
connection, failures = connect(dataset), []
sizes, types = {}, 0
for path in answers:
    answer = json.loads(path.read_text())
    columns = "object_count, size_bytes, retained_bytes, retained_count, unreachable_count"
    sql = f"SELECT type_name, {columns} FROM retained_by_type WHERE trace_id = ? AND gc_id = ?"
    found = {name: values for name, *values in connection.execute(sql, [path.stem, answer["gc_id"]]).fetchall()}
    keys = ["objects", "size_bytes", "retained_bytes", "retained_objects", "unreachable_objects"]
    expected = {row["type"]: [row[key] for key in keys] for row in answer["types"]}
    if found != expected:
        differ = {name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)}
        failures.append(f"{path.stem}: {[(name, found.get(name), expected.get(name)) for name in sorted(differ)[:5]]}")
    sizes[path.stem] = {row["type"]: (row["objects"], row["size_bytes"]) for row in answer["types"]}
    types += len(expected)

before, after = sizes
columns = "object_count_before, size_bytes_before, object_count_after, size_bytes_after, object_count_change, size_bytes_change"
found = connection.execute(f"SELECT type_name, {columns} FROM heap_diff('{before}', 1, '{after}', 1)").fetchall()
expected = set()
for name in sizes[before].keys() | sizes[after].keys():
    old, new = sizes[before].get(name, (0, 0)), sizes[after].get(name, (0, 0))
    expected.add((name, *old, *new, new[0] - old[0], new[1] - old[1]))
if set(found) != expected or len(found) != len(expected):
    failures.append(f"heap_diff: {sorted(set(found) ^ expected)[:5]}")
changes = connection.execute(f"SELECT count(*) FILTER (size_bytes_change <> 0) FROM heap_diff('{before}', 1, 1)").fetchall()
if changes != [(0,)]:
    failures.append(f"a walk differs from itself: {changes}")
finish(failures, f"{types} types of {len(answers)} walks")
