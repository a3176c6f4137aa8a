"""What holds between the tables of a dataset, whatever was recorded: relations.py SCHEMA.json DATASET

Each relation is a query of `trace_id` and of whether a row is as it has to be. One that no row was asked for fails,
too: it would hold of anything. SCHEMA.json is what `tracequet schema --format json` prints.
"""

import json
import sys
from pathlib import Path

from common import Dataset, connect, finish

tables = {table["name"]: table for table in json.loads(Path(sys.argv[1]).read_text())}
columns = {name: [column["name"] for column in table["columns"]] for name, table in tables.items()}
dataset = Dataset(sys.argv[2])
connection = connect(dataset)
there = {name for name in columns if dataset.rows.get(name)}
relations = {}


def has(table, *names):
    """Whether there are rows of a table with such columns."""
    return table in there and all(name in columns[table] for name in names)


def refers(table, column, other, key):
    """Each number of a column, but for 0 and null, is the key of a row of another table."""
    if has(table, column):
        relations[f"{table}.{column} is in {other}"] = f"""
            SELECT trace_id, coalesce({column}, 0) = 0 OR EXISTS (FROM {other} o WHERE o.{key} = t.{column} AND o.trace_id = t.trace_id)
            FROM {table} t"""


def count(name, table, keys, sums, rows, condition="true"):
    """Columns of `table` are these sums over the rows of another table with the same keys; 0 where it has none."""
    aggregates = ", ".join(f"{of} n{number}" for number, of in enumerate(sums.values()))
    counted = ", ".join(f"coalesce(n{number}, 0)" for number in range(len(sums)))
    grouped = f"SELECT {keys}, {aggregates} FROM {rows} GROUP BY {keys}"
    relations[name] = f"""
        SELECT trace_id, ({", ".join(sums)}) = ({counted}) FROM {table} LEFT JOIN ({grouped}) r USING ({keys}) WHERE {condition}"""


def unique(table, *key):
    """No two rows of a recording have the same key."""
    relations[f"{table} has one row for {', '.join(key)}"] = f"""
        SELECT trace_id, count(*) = 1 FROM {table} GROUP BY trace_id, {", ".join(key)}"""


for table in there:
    names = columns[table]
    for before, after in [
        ("start_ts_ns", "end_ts_ns"),
        ("queue_ts_ns", "start_ts_ns"),
        ("load_ts_ns", "unload_ts_ns"),
        ("create_ts_ns", "delete_ts_ns"),
        ("first_ts_ns", "last_ts_ns"),
        ("ts_ns", "catch_ts_ns"),
        ("catch_ts_ns", "end_ts_ns"),
    ]:
        if has(table, before, after):
            relations[f"{table}.{before} is not after {after}"] = f"""
                SELECT trace_id, coalesce({before} <= {after}, true) FROM {table}"""
    if has(table, "start_ts_ns", "end_ts_ns", "duration_ns"):
        relations[f"{table}.duration_ns is from start to end"] = f"""
            SELECT trace_id, duration_ns IS NOT DISTINCT FROM end_ts_ns - start_ts_ns FROM {table}"""
    for name in names:
        if has(table, f"{name}_ns"):
            relations[f"{table}.{name} is {name}_ns in UTC"] = f"""
                SELECT trace_id, max(epoch_us({name}) * 1000 - {name}_ns) - min(epoch_us({name}) * 1000 - {name}_ns) < 2000
                FROM {table} GROUP BY trace_id"""
        if name.endswith("callsite_id") and table != "callsite":
            refers(table, name, "callsite", "callsite_id")
        if name in ("gc_id", "born_gc_id") and table != "gc":
            refers(table, name, "gc", "gc_id")
        # A process that only the header of a recording names, and threads that only recorded events of others, have no
        # row in "process".
        if name == "process_id" and table not in ("process", "trace", "thread", "metric"):
            refers(table, name, "process", "process_id")
        if name.endswith("thread_id") and table not in ("thread", "diagnostic"):
            refers(table, name, "thread", "thread_id")
        if name == "file_key" and table != "file":
            refers(table, name, "file", "file_key")
        # The runtime does not report each type that has a finalizer.
        if name == "type_id" and table not in ("type", "gc_finalizable"):
            refers(table, name, "type", "type_id")
        if name.endswith("_text") and has(table, name.removesuffix("_text")):
            relations[f"{table}.{name} has one text for each number"] = f"""
                SELECT trace_id, count(DISTINCT {name}) <= 1 FROM {table} GROUP BY trace_id, {name.removesuffix("_text")}"""
    order = tables[table]["sorted_by"]
    if order:
        # Null is before all others or behind them, and where is not said.
        row, known = f"row({', '.join(order)})", " AND ".join(f"{name} IS NOT NULL" for name in order)
        files = [str(file) for file in dataset.files(table)]
        relations[f"{table} is sorted by {', '.join(order)}"] = f"""
            SELECT trace_id,
                coalesce(lag({row}) OVER (PARTITION BY trace_id ORDER BY filename, file_row_number) <= {row}, true)
            FROM read_parquet({files}, filename = true, file_row_number = true) WHERE {known}"""

for table, key in [("gc", "gc_id"), ("callsite", "callsite_id"), ("frame", "frame_id")]:
    relations[f"{table}.{key} counts from 1"] = f"""
        SELECT trace_id, (min({key}), max({key}), count(DISTINCT {key})) = (1, count(*), count(*))
        FROM {table} GROUP BY trace_id"""
unique("callsite", "parent_callsite_id", "process_id", "address", "frame_id")
unique("heap_object", "gc_id", "object_id")
unique("type", "process_id", "type_id")
unique("managed_module", "process_id", "module_id")
unique("metric", "name", "key")
# What is said of the recording itself has the process of its header.
relations["metric.process_id is in process"] = """
    SELECT trace_id, process_id = 0 OR EXISTS (FROM process p WHERE p.process_id = m.process_id AND p.trace_id = m.trace_id)
        OR EXISTS (FROM trace t WHERE t.process_id = m.process_id AND t.trace_id = m.trace_id) FROM metric m"""
relations["metric has a value, or says why not"] = """
    SELECT trace_id, (value IS NULL) = (missing IS NOT NULL) FROM metric"""
relations["metric of a machine has no process"] = """
    SELECT trace_id, process_id = 0 FROM metric WHERE scope = 'machine'"""

refers("callsite", "parent_callsite_id", "callsite", "callsite_id")
refers("callsite", "frame_id", "frame", "frame_id")
relations["callsite is a tree"] = """
    SELECT trace_id, c.depth = p.depth + 1 AND c.process_id = p.process_id
        AND c.walk_first > p.walk_first AND c.walk_last <= p.walk_last
    FROM callsite c JOIN callsite p USING (trace_id) WHERE c.parent_callsite_id = p.callsite_id"""
relations["callsite.depth is 0 where a stack begins"] = """
    SELECT trace_id, (parent_callsite_id = 0) = (depth = 0) FROM callsite"""
relations["callsite.walk_first counts from 1"] = """
    SELECT trace_id, walk_first = row_number() OVER (PARTITION BY trace_id ORDER BY walk_first) AND walk_first <= walk_last
    FROM callsite"""
relations["callsite.address is that of its frame"] = """
    SELECT trace_id, c.address = f.address FROM callsite c JOIN frame f USING (trace_id, frame_id)"""
# Of a logical call stack the address may be the id of the method.
relations["frame lies in its method"] = """
    SELECT trace_id, EXISTS (FROM method m WHERE m.trace_id = f.trace_id AND m.process_id = f.process_id
        AND m.method_id = f.method_id AND f.address BETWEEN m.start_address AND m.start_address + m.size_bytes)
    FROM frame f WHERE kind = 'managed' AND found_by IS DISTINCT FROM 'method_id'"""
relations["frame lies in its module"] = """
    SELECT trace_id, EXISTS (FROM module m WHERE m.trace_id = f.trace_id AND m.process_id IN (f.process_id, 0)
        AND m.module_id = f.module_id AND f.address BETWEEN m.base_address AND m.base_address + m.size_bytes)
    FROM frame f WHERE kind = 'native' AND module_id <> 0"""

EVENTS = {"event_count": "sum(event_count)"}
count("trace counts events by kind", "trace", "trace_id", EVENTS, "event_type")
# An .etl has events that are about no process.
for table in ["process", "thread"]:
    count(f"trace counts events by {table}", "trace", "trace_id", EVENTS, table, "container IN ('nettrace', 'netperf')")
frames = {"frame_count": "count(*)", "named_frame_count": "count(*) FILTER (is_named)"}
count("trace counts frames", "trace", "trace_id", frames, "frame")
lossy = {"(status = 'losses')": "count(*) > 0"}
stated = "diagnostic WHERE severity <> 'info'"
count("trace.status is what diagnostic says", "trace", "trace_id", lossy, stated, "status <> 'failed'")
OF_GC = "trace_id, gc_id"
pauses = {"pause_ns": "sum(duration_ns)", "pause_count": "count(*)"}
count("gc counts its pauses", "gc", OF_GC, pauses, "gc_pause")
for kind in ["surviving", "moved"]:
    ranges = {f"{kind}_bytes": "sum(range_length)", f"{kind}_range_count": "count(*)"}
    count(f"gc counts {kind} ranges", "gc", OF_GC, ranges, f"gc_{kind}_range")
for table, column in [("gc_root", "root_count"), ("heap_object", "heap_object_count")]:
    count(f"gc counts {table}", "gc", OF_GC, {column: "count(*)"}, table)
sizes = {"size_after_bytes": "sum(size_bytes)", "promoted_bytes": "sum(promoted_bytes)"}
count("gc has the sizes of its generations", "gc", OF_GC, sizes, "gc_heap_stats", "size_after_bytes IS NOT NULL")
references = {"reference_count": "count(*)"}
count("heap_object counts references", "heap_object", f"{OF_GC}, object_id", references, "heap_reference")
OF_RUNTIME = "PARTITION BY trace_id, process_id, clr_instance_id ORDER BY gc_id"
relations["gc numbers rise"] = f"""
    SELECT trace_id, coalesce(gc_number > lag(gc_number) OVER ({OF_RUNTIME}), true) FROM gc WHERE gc_number <> 0"""
relations["blocking collections do not overlap"] = f"""
    SELECT trace_id, coalesce(end_ts_ns <= lead(start_ts_ns) OVER ({OF_RUNTIME}), true) FROM gc WHERE kind = 'blocking'"""
relations["gc_pause touches its collection"] = """
    SELECT trace_id, p.process_id = g.process_id AND p.start_ts_ns + p.duration_ns >= g.start_ts_ns
        AND coalesce(p.start_ts_ns <= g.end_ts_ns, true)
    FROM gc_pause p JOIN gc g USING (trace_id, gc_id)"""
relations["gc_pause stops threads before it ends"] = """
    SELECT trace_id, suspend_ns BETWEEN 0 AND duration_ns FROM gc_pause"""
relations["gc_generation_range lies in what is reserved"] = """
    SELECT trace_id, range_length <= range_length_reserved FROM gc_generation_range"""
# Where two calls contradict each other, both are there, and that is reported.
for table, start in [
    ("gc_surviving_range", "range_start"),
    ("gc_moved_range", "old_range_start"),
    ("gc_moved_range", "new_range_start"),
]:
    following = f"lead({start}) OVER (PARTITION BY trace_id, gc_id ORDER BY {start})"
    relations[f"{table}.{start} and its length overlap no other"] = f"""
        SELECT trace_id, coalesce({start}::HUGEINT + range_length <= {following}, true)
        FROM {table} ANTI JOIN (FROM diagnostic WHERE code IN ('overlapping_ranges', 'one_target')) USING (trace_id)"""
relations["exception has a time where it was caught"] = """
    SELECT trace_id, (catch_count > 0) = (catch_ts_ns IS NOT NULL) FROM exception"""
payload = [name for name in dataset.rows if name.startswith("event/")]
each = [f"""SELECT trace_id, '{name}' table_name, count(*) n FROM "{name}" GROUP BY trace_id""" for name in payload]
# Events of an .etl that are stacks stand at other events.
relations["payload tables have a row for each event"] = f"""
    SELECT trace_id, any_value(n) IS NOT DISTINCT FROM sum(event_count)
    FROM event_type LEFT JOIN ({" UNION ALL ".join(each)}) USING (trace_id, table_name)
    WHERE event_count > 0 AND event_name <> 'CLRStackWalk' AND provider_name <> 'Windows-Kernel-StackWalk'
    GROUP BY trace_id, table_name HAVING table_name IS NOT NULL"""

failures, asked = [], 0
for name, query in relations.items():
    result = connection.execute(f"""
        SELECT count(*), count(*) FILTER (ok IS NOT true), any_value(trace_id) FILTER (ok IS NOT true)
        FROM ({query}) relation(trace_id, ok)""")
    rows, wrong, trace = result.fetchone()
    asked += rows
    if wrong:
        failures.append(f"{name}: {wrong} of {rows} rows are not so, such as in {trace}")
    elif not rows:
        failures.append(f"{name}: no row was asked for")
finish(failures, f"{len(relations)} relations of {asked} rows")
