"""The views request_part and request_time agree with a search through the events one by one, and with what the program
wrote down.

request_time.py DATASET TRUTH: a dataset of samples/requests/orders.nettrace.zst, and what its program says that each
request did. The search knows nothing of the paths in activity ids: which activity lies in which is what the related ids
of starts say.
"""

import csv
import os
import sys
from bisect import bisect_right
from collections import defaultdict

import duckdb

os.chdir(sys.argv[1])
db = duckdb.connect()
db.execute("SET enable_progress_bar = false")
db.execute(open("views.sql").read())


def rows(sql):
    result = db.execute(sql)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row)) for row in result.fetchall()]


HOSTING = "Microsoft.AspNetCore.Hosting"
RUNTIME = "event/Microsoft-Windows-DotNETRuntime/"
SAMPLES = "event/Microsoft-DotNETCore-SampleProfiler/ThreadSample"

# ---- every event that a thread wrote itself: those of the sampler are about others
tables = [name for (name,) in db.execute("SELECT view_name FROM duckdb_views() WHERE view_name LIKE 'event/%'").fetchall()]
written = defaultdict(list)
parents = {}
for table in tables:
    if table == SAMPLES:
        continue
    sql = f'SELECT ts_ns, thread_id, activity_id, related_activity_id FROM "{table}"'
    for ts, thread, activity, related in db.execute(sql).fetchall():
        written[thread].append((ts, activity))
        if related is not None:
            # An id is given out again, but only in the same place.
            assert parents.setdefault(activity, related) == related
for events in written.values():
    events.sort(key=lambda event: event[0])


def last(events, ts):
    """What stands last at or before a time."""
    place = bisect_right(events, ts, key=lambda event: event[0])
    return events[place - 1][1] if place else None


def is_in(activity, outer):
    """Whether an activity lies in another one, by the starts."""
    while activity is not None and activity != outer:
        activity = parents.get(activity)
    return activity is not None


def pairs(start, stop, kind=None):
    """Starts with the stops of their threads, which nest."""
    events = []
    for nth, name in enumerate((start, stop)):
        events += [(r["ts_ns"], nth, r) for r in rows(f'SELECT * FROM "{RUNTIME}{name}"')]
    opened, found = defaultdict(list), []
    for ts, nth, row in sorted(events, key=lambda event: event[:2]):
        if nth == 0:
            opened[row["thread_id"]].append(row)
        elif opened[row["thread_id"]]:
            begun = opened[row["thread_id"]].pop()
            found.append((begun["ts_ns"], ts, begun["activity_id"]))
    return found


waits, locks = pairs("WaitHandleWaitStart", "WaitHandleWaitStop"), pairs("ContentionStart", "ContentionStop")
ticks = [(r["ts_ns"], r["activity_id"], r["allocation_amount64"]) for r in rows(f'FROM "{RUNTIME}GCAllocationTick"')]
pauses = [(r["start_ts_ns"], r["start_ts_ns"] + r["duration_ns"]) for r in rows("FROM gc_pause WHERE kind = 'gc'")]
queries = [(r["start_ts_ns"], r["end_ts_ns"], r["activity_id"]) for r in rows("FROM activity WHERE provider_name = 'Shop.Database' AND end_ts_ns IS NOT NULL")]
calls = [(r["start_ts_ns"], r["end_ts_ns"], r["activity_id"])
         for r in rows("FROM activity WHERE provider_name = 'System.Net.Http' AND name = 'Request' AND end_ts_ns IS NOT NULL")]
samples = defaultdict(list)
for r in rows(f'SELECT * FROM "{SAMPLES}" ORDER BY ts_ns'):
    samples[r["thread_id"]].append((r["ts_ns"], r["type"]))
managed = []
for thread, taken in samples.items():
    for nth, (ts, kind) in enumerate(taken):
        if kind == 2:
            since = ts - ((ts - taken[nth - 1][0]) // 2 if nth else 0)
            until = ts + ((taken[nth + 1][0] - ts) // 2 if nth + 1 < len(taken) else 0)
            managed.append((ts, since, until, last(written[thread], ts)))

# ---- the requests, each start with the next stop of its id
stops = defaultdict(list)
for r in rows(f'FROM "event/{HOSTING}/RequestStop"'):
    stops[r["activity_id"]].append(r["ts_ns"])
expected = {}
for r in rows(f'FROM "event/{HOSTING}/RequestStart"'):
    start, me = r["ts_ns"], r["activity_id"]
    end = min((ts for ts in stops[me] if ts >= start), default=None)
    if end is None:
        continue
    inside = lambda ts, activity: start <= ts <= end and is_in(activity, me)
    cut = lambda all_of: [(a, min(b, end)) for a, b, activity in all_of if inside(a, activity)]
    spans = {"wait": cut(waits), "lock": cut(locks), "query": cut(queries), "call": cut(calls)}
    spans["pause"] = [(max(a, start), min(b, end)) for a, b in pauses if a < end and b > start]
    mine = [sample for sample in managed if inside(sample[0], sample[3])]
    covered, at = 0, start
    everything = [span for kind in spans.values() for span in kind] + [(max(a, start), min(b, end)) for _, a, b, _ in mine]
    for a, b in sorted(everything):
        covered += max(0, b - max(a, at))
        at = max(at, b)
    expected[(r["path"], start)] = {
        "cpu_samples": len(mine),
        "cpu_ms": sum(b - a for _, a, b, _ in mine) / 1e6,
        **{f"{kind}_ms": sum(b - a for a, b in spans[kind]) / 1e6 for kind in spans},
        **{many: len(spans[kind]) for many, kind in
           [("waits", "wait"), ("locks", "lock"), ("queries", "query"), ("calls", "call"), ("pauses", "pause")]},
        "allocation_bytes": sum(bytes for ts, activity, bytes in ticks if inside(ts, activity)),
        "unexplained_ms": (end - start - covered) / 1e6,
    }

failures = []
found = {(r["path"], r["start_ts_ns"]): r for r in rows(f"FROM request_time WHERE source = '{HOSTING}/Request'")}
if found.keys() != expected.keys() or len(found) < 60:
    failures.append(f"{len(found)} requests, expected {len(expected)}")
for key in found.keys() & expected.keys():
    for name, value in expected[key].items():
        if found[key][name] is None or abs(found[key][name] - value) > 2e-6:
            failures.append(f"{key}: {name} is {found[key][name]}, expected {value}")
    bases = {found[key][f"{kind}_basis"] for kind in ("wait", "lock", "query", "call", "allocation")}
    if bases != {"activity"} or found[key]["cpu_basis"] != "thread" or found[key]["pause_basis"] != "time":
        failures.append(f"{key}: {bases}")

# ---- what the program wrote down
by_path = {path: row for (path, _), row in found.items() if path != "/price"}
reported = 0
allocated = computed = known_cpu = 0
for row in csv.DictReader(open(sys.argv[2])):
    if row["path"] == "/price":
        continue
    mine, route = by_path[row["path"]], row["path"].split("/")[1]
    is_near = lambda name, tolerance: abs(mine[name] - float(row[name])) <= tolerance
    for many in ("locks", "queries", "calls"):
        if mine[many] != int(row[many]):
            failures.append(f"{row['path']}: {mine[many]} {many}, expected {row[many]}")
    # A wait for a lock is a wait, too.
    if mine["waits"] != int(row["waits"]) + int(row["locks"]) or mine["pauses"] < int(row["collections"]):
        failures.append(f"{row['path']}: {mine['waits']} waits, {mine['pauses']} pauses; {row}")
    if not (is_near("lock_ms", 3) and is_near("query_ms", 5) and is_near("call_ms", 5)):
        failures.append(f"{row['path']}: {mine}, expected {row}")
    # How long it took to go on after the wait is only in what the program measured.
    if route in ("wait", "query") and not (24 if route == "wait" else 5) <= mine["wait_ms"] <= float(row["wait_ms"]) + 0.1:
        failures.append(f"{row['path']}: waited {mine['wait_ms']} ms, expected {row['wait_ms']}")
    if route == "wait" and mine["wait_method"] != "Shop.Orders.WaitForHandle" or route == "lock" and mine["lock_method"] != "Shop.Orders.WaitForLock":
        failures.append(f"{row['path']}: {mine['wait_method']} {mine['lock_method']}")
    if route == "sleep" and mine["unexplained_ms"] < 25:
        failures.append(f"{row['path']}: only {mine['unexplained_ms']} ms are not explained")
    if route == "allocate":
        allocated += mine["allocation_bytes"] - int(row["bytes"])
        reported += int(row["bytes"])
    # The first ones compile what they run.
    if route == "cpu" and len(row["path"]) > 6:
        computed, known_cpu = computed + mine["cpu_ms"], known_cpu + float(row["cpu_ms"])
if abs(allocated) > reported / 10 or reported < 40_000_000:
    failures.append(f"{allocated} bytes more than the {reported} that were allocated")
if not 0.8 < computed / known_cpu < 1.2:
    failures.append(f"{computed} ms of the processor, expected {known_cpu}")

# ---- sums by route
for r in rows(f"FROM requests_by_route WHERE source = '{HOSTING}/Request'"):
    of_route = [row for row in found.values() if row["route"] == r["route"]]
    for name in ("wait_ms", "queries", "allocation_bytes", "unexplained_ms"):
        if r["requests"] != len(of_route) or abs(r[name] - sum(row[name] for row in of_route)) > 1e-3:
            failures.append(f"{r['route']}: {name} is {r[name]}")

print("\n".join(failures) or f"{len(found)} requests: cpu {computed:.0f} of {known_cpu:.0f} ms, allocated {allocated:+} of {reported} bytes")
sys.exit(bool(failures))
