"""The views of pauses and requests have the figures that the page has: pauses.py DATASET EXPECTED.json"""

import json
import sys

from common import Dataset, connect, finish

expected = json.load(open(sys.argv[2]))
db = connect(Dataset(sys.argv[1]))
failures = []
views = {name for (name,) in db.execute("SELECT view_name FROM duckdb_views()").fetchall()}


def same(what, found, wanted):
    """Milliseconds of a view are nanoseconds of the page."""
    found = None if found is None else round(found * 1e6)
    if found != wanted:
        failures.append(f"{what}: {found} ns, expected {wanted}")


if "pauses" in views:
    count, longest, total = db.execute("SELECT count(*), max(pause_ms), sum(pause_ms) FROM pauses WHERE kind = 'gc'").fetchone()
    if count != expected["count"]:
        failures.append(f"{count} pauses, expected {expected['count']}")
    same("longest pause", longest, expected["longest"])
    same("sum of pauses", total or 0, expected["total"])
if "gc_summary" in views:
    of_gc = dict(expected["of_gc"])
    for gc_id, pause_ms in db.execute("SELECT gc_id, pause_ms FROM gc_summary").fetchall():
        same(f"collection {gc_id}", pause_ms, of_gc.get(gc_id))
if expected["requests"]:
    found = {}
    for start, pause_ms in db.execute("SELECT start_ts_ns, pause_ms FROM request_time").fetchall():
        found.setdefault(start, set()).add(None if pause_ms is None else round(pause_ms * 1e6))
    for start, within in expected["requests"]:
        if within not in found.get(start, ()):
            failures.append(f"request at {start}: {within} ns in pauses, request_time has {found.get(start)}")
finish(failures, f"{expected['count']} pauses and {len(expected['requests'])} requests agree")
