"""What `tracequet diff --json` says against DuckDB over the tables of both sides: diff.py BASE NEW ANSWER..., where ANSWER was made of
these datasets."""

import itertools
import json
import math
import statistics
import sys

from common import Dataset, connect, finish

# Count and amount of each own method, by recording.
SITE = "LEFT JOIN site s ON s.trace_id = r.trace_id AND s.callsite_id = r.callsite_id"
KEY = "r.trace_id, r.callsite_id, s.own_method, s.callsite_id IS NOT NULL AS has_stack"
QUERIES = {
    "cpu": f"""
        WITH sampled AS (
            SELECT *, coalesce(kind IN ('managed', 'external', 'error'), false) AS of_runtime FROM cpu_sample),
        threads AS (
            SELECT trace_id, process_id, thread_id, count(*) - 1 AS between_them, max(ts_ns) - min(ts_ns) AS span
            FROM sampled WHERE of_runtime GROUP BY ALL),
        rounds AS (
            SELECT trace_id, process_id, CASE WHEN between_them > 0 AND span // between_them > 0 THEN span // between_them END AS observed
            FROM threads
            QUALIFY row_number() OVER (PARTITION BY trace_id, process_id ORDER BY between_them DESC, span DESC) = 1)
        SELECT {KEY}, sum(r.sample_count), sum(r.sample_count * CASE WHEN r.of_runtime THEN coalesce(o.observed, t.sampling_ns) ELSE t.sampling_ns END)
        FROM sampled r {SITE} JOIN trace t ON t.trace_id = r.trace_id
        LEFT JOIN rounds o ON o.trace_id = r.trace_id AND o.process_id = r.process_id
        WHERE r.kind IS NULL OR r.kind NOT IN ('idle', 'external') GROUP BY ALL""",
    "allocation": f"""
        SELECT {KEY}, count(*), sum(r.allocation_bytes) FROM allocation r
        SEMI JOIN allocation_source u ON u.trace_id = r.trace_id AND u.source = r.source {SITE} GROUP BY ALL""",
    "exception": f"SELECT {KEY}, count(*), count(*) FROM exception r {SITE} GROUP BY ALL",
    "contention": f"SELECT {KEY}, count(*), sum(r.duration_ns) FROM contention r {SITE} GROUP BY ALL",
    "wait": f"""
        WITH ends AS (SELECT trace_id, process_id, max(last_ts_ns) AS last_ns FROM process GROUP BY ALL)
        SELECT {KEY}, count(*), sum(CASE WHEN r.end_ts_ns IS NOT NULL THEN r.duration_ns
                                         WHEN NOT r.touches_gap THEN e.last_ns - r.start_ts_ns ELSE 0 END)
        FROM wait r {SITE} LEFT JOIN ends e ON e.trace_id = r.trace_id AND e.process_id = r.process_id GROUP BY ALL""",
}


def by_method(connection, what):
    """Of each recording the sums of each own method."""
    found, without_names = {}, unnamed(connection)
    for trace, site, own, has_stack, count, amount in connection.execute(QUERIES[what]).fetchall():
        sums, key = found.setdefault(trace, {}), (own, has_stack, own is None and (trace, site) in without_names)
        before = sums.get(key, (0, 0))
        sums[key] = (before[0] + int(count), before[1] + int(amount or 0))
    return found


def unnamed(connection):
    """The call sites where more than half of the frames outwards have no name and may be methods."""
    rows = """SELECT c.trace_id, c.callsite_id, c.parent_callsite_id, c.depth, NOT f.is_named AND f.kind NOT IN ('native', 'kernel')
        FROM callsite c JOIN frame f ON f.trace_id = c.trace_id AND f.frame_id = c.frame_id ORDER BY ALL"""
    counts, found = {}, set()
    for trace, site, parent, depth, is_unnamed in connection.execute(rows).fetchall():
        counts[trace, site] = counts.get((trace, parent), 0) + is_unnamed
        if 2 * counts[trace, site] > depth + 1:
            found.add((trace, site))
    return found


def is_near(a, b):
    return a is b is None or a is not None and b is not None and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def chance(base, new):
    """The two-sided test of Mann and Whitney by trying all ways to deal the values out, where four are on each side."""
    least = 2 / math.comb(len(base) + len(new), len(base))
    if least > 0.05:
        return None
    values = base + new
    ranks = [sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2 for value in values]
    sums = [sum(ranks[at] for at in ways) for ways in itertools.combinations(range(len(values)), len(new))]
    own = sum(ranks[len(base):])
    below, above = sum(s <= own for s in sums), sum(s >= own for s in sums)
    return min(1.0, 2 * min(below, above) / len(sums))


connections, failures, compared = [connect(Dataset(path)) for path in sys.argv[1:3]], [], 0
for path in sys.argv[3:]:
    answer = json.loads(open(path).read())
    for section in answer["sections"]:
        what, sides = section["what"], []
        for connection, side in zip(connections, ["base", "new"]):
            sums = by_method(connection, what)
            seconds = dict(connection.execute("SELECT trace_id, duration_ns / 1e9 FROM trace").fetchall())
            # A recording without a row says nothing, or that there was nothing: the answer says which.
            traces = [recording["trace_id"] for recording in answer[side]]
            known = [trace for trace in traces if sums.get(trace)]
            recordings = section[side]["recordings"]
            if recordings < len(known) or (section[side]["absent"] is None) != (recordings > 0):
                failures.append(f"{what} {side}: {section[side]}, {len(known)} have rows")
            if recordings not in (len(known), len(traces)):
                failures.append(f"{what} {side}: {recordings} of {len(traces)} recordings have it, {len(known)} have rows")
            used = traces if recordings == len(traces) else known
            sides.append({"sums": sums, "traces": used, "seconds": seconds})
        expected = {key for side in sides for trace in side["traces"] for key in side["sums"].get(trace, {})}
        found = {(row["own_method"], row["has_stack"], row["is_unnamed"]) for row in section["rows"]}
        if found != expected or len(found) != len(section["rows"]):
            failures.append(f"{what}: {sorted(map(str, found ^ expected))[:5]}")
        for row in section["rows"]:
            key, rates = (row["own_method"], row["has_stack"], row["is_unnamed"]), []
            for name, side in zip(["base", "new"], sides):
                of = [side["sums"].get(trace, {}).get(key, (0, 0)) for trace in side["traces"]]
                totals = [sum(amount for _, amount in side["sums"].get(trace, {}).values()) for trace in side["traces"]]
                rates.append([amount / side["seconds"][trace] for (_, amount), trace in zip(of, side["traces"])])
                if not of:
                    if row[name] is not None:
                        failures.append(f"{what} {key} {name}: {row[name]} without a recording")
                    continue
                shares = [amount / total for (_, amount), total in zip(of, totals) if total]
                values = {
                    "count": statistics.median(count for count, _ in of),
                    "amount": statistics.median(amount for _, amount in of),
                    "share": statistics.median(shares) if len(shares) == len(of) else None,
                    "per_second": statistics.median(rates[-1]),
                    "per_request": None,
                }
                if any(not is_near(row[name][field], value) for field, value in values.items()):
                    failures.append(f"{what} {key} {name}: {row[name]}, expected {values}")
                compared += 1
            change = statistics.median(rates[1]) - statistics.median(rates[0]) if all(rates) else None
            if not is_near(row["change"], change):
                failures.append(f"{what} {key}: {row['change']}, expected {change}")
            if not is_near(row["chance"], chance(*rates) if all(rates) else None):
                failures.append(f"{what} {key}: chance {row['chance']}, expected {chance(*rates)} of {rates}")
        sizes = [abs(row["change"]) for row in section["rows"] if row["change"] is not None and not row["is_noise"]]
        if sizes != sorted(sizes, reverse=True):
            failures.append(f"{what}: not in the order of changes: {sizes}")
if compared < 20:
    failures.append(f"only {compared} sums were compared")
finish(failures, f"{compared} sums are those of DuckDB")
