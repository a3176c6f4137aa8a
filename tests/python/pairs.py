"""Figures of the page, of metrics and of findings are those of the views: pairs.py DATASET EXPECTED.json"""

import json
import sys

from common import Dataset, connect, finish

expected = json.load(open(sys.argv[2]))
db = connect(Dataset(sys.argv[1]))
failures = []
views = {name for (name,) in db.execute("SELECT view_name FROM duckdb_views()").fetchall()}

for what, view, select, value in expected["pairs"]:
    if view not in views:
        failures.append(f"{what}: there is no view {view}")
        continue
    (found,) = db.execute(f"SELECT {select} FROM {view}").fetchone()
    if round(found or 0) != round(value):
        failures.append(f"{what}: {select} of {view} is {found}, expected {value}")

requests = expected["requests"]
if requests:
    names = ["cpu_ms", "wait_ms", "lock_ms", "query_ms", "call_ms", "await_ms", "pause_ms"]
    query = f"SELECT start_ts_ns, thread_id, {', '.join(names)} FROM request_time WHERE source = ?"
    found = {}
    for start, thread, *times in db.execute(query, [requests["source"]]).fetchall():
        found.setdefault(start, []).append([None if ms is None else round(ms * 1e6) for ms in times])
    for start, *times in requests["rows"]:
        if times not in found.get(start, []):
            failures.append(f"request at {start}: the page has {times}, request_time {found.get(start)} ({names})")
    (calls,) = db.execute(
        """SELECT max(mean) FROM (
               SELECT route, avg(n) AS mean FROM (
                   SELECT regexp_replace(regexp_extract(what, '[^?#]*'), '/[^/]*[0-9][^/]*', '/?', 'g') AS route,
                          request_start_ts_ns, request_thread_id, count(*) AS n
                   FROM request_part WHERE kind = 'call' AND source = ? GROUP BY ALL)
               GROUP BY route HAVING count(*) >= 3 OR sum(n) >= 20)""",
        [requests["source"]],
    ).fetchone()
    if calls is not None and requests["calls"] is not None and calls != requests["calls"]:
        failures.append(f"a request has {calls} calls in request_part, {requests['calls']} by n_plus_one_calls")
finish(failures, f"{len(expected['pairs'])} figures agree")
