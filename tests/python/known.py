"""Views against what the recorded program wrote down, and against plain counting: known.py DATASET TRUTH"""

import math
import sys
from pathlib import Path

from common import Dataset, connect, finish

dataset = Dataset(sys.argv[1])
truth = [line.split(" ", 1) for line in Path(sys.argv[2]).read_text().splitlines()]
said = lambda kind: [rest for word, rest in truth if word == kind]
connection, failures, checked = connect(dataset), [], 0
query = lambda sql, *values: connection.execute(sql, list(values)).fetchall()


def expect(what, found, expected):
    global checked
    checked += 1
    if found != expected:
        failures.append(f"{what}: {found}, expected {expected}")


# Allocations: four deviations around what was allocated.
key = connection.execute("SELECT trace_id FROM trace WHERE ends_with(path, 'known.nettrace')").fetchone()[0]
for line in said("allocation"):
    name, objects, size = line.split()
    objects, size = int(objects), int(size)
    chance = 1 - (1 - 1 / 102400) ** (size / objects)
    allowed = 4 * math.sqrt((1 - chance) / (chance * objects))
    [(source, count, found)] = query(
        "SELECT source, object_count, allocation_bytes FROM allocation_by_type WHERE trace_id = ? AND type_name = ?", key, name)
    expect(f"source of {name}", source, "sampled")
    expect(f"{name}: {found} bytes", abs(found / size - 1) < allowed, True)
    expect(f"{name}: {count} objects", abs(count / objects - 1) < allowed, True)
[(bytes_, types)] = query("""SELECT max(value) FILTER (name = 'allocation.bytes'), sum(value) FILTER (name = 'allocation.by_type')
    FROM metric WHERE trace_id = ?""", key)
expect("allocation.by_type together", bytes_, types)

# Exceptions: the method that made the library throw, not the library's helper.
for line in said("site"):
    name, method = line.split("|")
    [(thrown, caught)] = query("SELECT thrown_in, caught_in FROM exceptions WHERE trace_id = ? AND type_name = ?", key, name)
    # A dictionary throws by its own indexer, which is no helper.
    expected = f"Known.{method}(" if method != "Item" else "System.Collections.Generic.Dictionary`2["
    expect(f"{name} is thrown in {thrown}", thrown.startswith(expected), True)
    expect(f"{name} is caught in {caught}", "Known::Try(" in caught, True)
expect("the exceptions of filters", query(
    "SELECT sum(how_often)::INTEGER, count(caught_in) FROM exceptions WHERE trace_id = ? AND thrown_in LIKE 'Known.Fails%'", key), [(4, 0)])

# Waits for a System.Threading.Lock.
for line in said("wait"):
    method, count = line.split()
    found = query("SELECT method, how_often FROM contention_by_site WHERE trace_id = ? AND total_ms > 10", key)
    expect("contention_by_site", [(name.split("(")[0], n) for name, n in found], [(f"Known.{method}", int(count))])

# The share of pauses: the pause before is the one that ended last before the first pause of a collection began.
pauses = query("SELECT trace_id, gc_id, start_ts_ns, start_ts_ns + duration_ns FROM gc_pause WHERE kind = 'gc' AND gc_id <> 0")
shares, firsts, inside = 0, 0, 0
for trace, gc, kind, pause, gap, since, percent in query("""SELECT g.trace_id, g.gc_id, g.kind, g.pause_ns, g.touches_gap, s.since_last_ms,
        s.pause_percent FROM gc g JOIN gc_summary s USING (trace_id, gc_id)"""):
    own = [(start, end) for t, n, start, end in pauses if t == trace and n == gc]
    before = [end for t, n, start, end in pauses if t == trace and own and start < min(own)[0]]
    if not own or not before or gap:
        expect(f"{trace} {gc}: no share", (since, percent), (None, None))
        firsts += 1
        continue
    begin = max(before)
    expect(f"{trace} {gc}: since", round(since * 1e6), min(own)[0] - begin)
    expected = 100 * pause / (max(end for _, end in own) - begin)
    expect(f"{trace} {gc}: share {percent}, {expected}", math.isclose(percent, expected, rel_tol=1e-9), True)
    shares += 1
    inside += kind == "foreground"
if shares < 40 or firsts < 3 or any(not 0 < p <= 100 for (p,) in query("SELECT pause_percent FROM gc_summary WHERE pause_percent IS NOT NULL")):
    failures.append(f"{shares} shares, {firsts} first collections, {inside} in a background one")

# One heap in two formats: the same types.
dump, walk = [query("SELECT trace_id FROM trace WHERE ends_with(path, ?)", f"heap-10.{form}")[0][0] for form in ("gcdump", "nettrace")]
rows = query("SELECT type_name, object_count_before, object_count_after FROM heap_diff(?, 1, ?, 1)", dump, walk)
expect("types of one side alone", [row for row in rows if 0 in row[1:]], [])
same = query("""SELECT count(*) FILTER (d.type_name IN (SELECT type_name FROM heap_by_type WHERE trace_id = ?)), count(*)
    FROM heap_by_type d WHERE trace_id = ?""", walk, dump)[0]
expect(f"names that are the same to the letter: {same}", same[0] >= same[1] - 10 and same[1] > 140, True)
finish(failures, f"{checked} figures, {shares} shares of pauses, {len(rows)} types")
