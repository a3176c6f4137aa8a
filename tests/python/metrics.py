"""The figures of `tracequet stats` against the SQL of METRICS.md: metrics.py METRICS.md DATASET STATS.json"""

import json
import math
import sys
from pathlib import Path

from common import Dataset, blocks, connect, finish

document, figures = Path(sys.argv[1]).read_text(), json.loads(Path(sys.argv[3]).read_text())
dataset = Dataset(sys.argv[2])
connection = connect(dataset)
ours = {(run["trace_id"], m["name"]): m for run in figures for m in run["metrics"]}
failures, compared, seen = [], 0, set()
for name, sql in blocks(document, "sql"):
    rows = connection.execute(sql).fetchall()
    several = [column[0] for column in connection.description][1] == "value"
    for trace, *value, figure, observations in rows:
        key = (trace, f"{name}[{value[0]}]" if several else name)
        if figure is None:
            continue
        found = ours.get(key)
        if found is None:
            # Only the twenty largest of a kind are figures.
            if not several or sum(1 for t, n in ours if t == trace and n.startswith(name + "[")) < 20:
                failures.append(f"{key}: {figure} in DuckDB, and no figure")
            continue
        seen.add(key)
        compared += 1
        if found["value"] is None:
            # Nothing was counted, and nothing says whether it was recorded.
            if figure != 0 or not found["missing"]:
                failures.append(f"{key}: {figure} in DuckDB, {found['missing']} in stats")
            continue
        if not math.isclose(found["value"], float(figure), rel_tol=1e-9, abs_tol=1e-9):
            failures.append(f"{key}: {figure} in DuckDB, {found['value']} in stats")
        if found["observations"] != observations:
            failures.append(f"{key}: {observations} rows in DuckDB, {found['observations']} in stats")
for key, found in ours.items():
    # Of nothing DuckDB has no row.
    if (found["value"] is None) == (found["missing"] is None):
        failures.append(f"{key}: {found['value']}, and {found['missing']} is missing")
    if key not in seen and found["value"]:
        failures.append(f"{key}: {found['value']} in stats, no row in DuckDB")
# The view counts the same samples.
view = connection.execute("SELECT trace_id, method, sum(exclusive_samples) FROM cpu_by_method GROUP BY ALL").fetchall()
by_method = {(trace, f"cpu.by_method[{method}]"): samples for trace, method, samples in view}
of_methods = [(key, found["value"]) for key, found in ours.items() if key[1].startswith("cpu.by_method[")]
for key, value in of_methods:
    if by_method.get(key) != value:
        failures.append(f"{key}: {value} in stats, {by_method.get(key)} in the view")
if len(of_methods) < 5:
    failures.append(f"only {len(of_methods)} methods")
names = {name.split("[")[0] for _, name in seen}
if compared < 50 or not names.issuperset({"cpu.by_method", "cpu.by_assembly", "activity.p99", "counter.last", "counter.mean", "counter.increase", "jit.foreground.count"}):
    failures.append(f"only {compared} figures: {sorted(names)}")
finish(failures, f"{compared} figures")
