"""The query of QUERIES.md that shows why an object is still there ends on a list of a million objects.

still_there.py COUNT
"""

import re
import sys
from pathlib import Path

import duckdb

COUNT = int(sys.argv[1])

document = (Path(__file__).parents[2] / "docs" / "QUERIES.md").read_text()
section = document.split("## Why is an object still there?")[1].split("\n## ")[0]
[query] = re.findall(r"```sql\n(.*?)```", section, re.DOTALL)

connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
# Each object refers to the next one. The last one is the largest; the object in the middle is kept by a handle that
# depends on the one before it, and by nothing else.
node = "'list' AS trace_id, 1::UINTEGER AS gc_id, (4096 + 24 * {0})::UBIGINT"
last, middle = COUNT - 1, COUNT - 50
for statement in (
    f"CREATE TABLE heap_object AS SELECT {node.format('range')} AS object_id, 7::UBIGINT AS type_id, "
    f"CASE range WHEN {last} THEN 9999 ELSE 24 END::UBIGINT AS size_bytes FROM range({COUNT})",
    f"CREATE TABLE heap_reference AS SELECT {node.format('range')} AS object_id, (4096 + 24 * (range + 1))::UBIGINT AS target_object_id "
    f"FROM range({last}) WHERE range <> {middle - 1}",
    f"CREATE TABLE gc_weak_element AS SELECT {node.format(middle - 1)} AS key_object_id, "
    f"(4096 + 24 * {middle})::UBIGINT AS value_object_id",
    f"CREATE TABLE heap_dominator AS SELECT {node.format('range')} AS object_id, (range + 1)::UINTEGER AS root_distance FROM range({COUNT})",
    f"CREATE TABLE gc_root AS SELECT {node.format('0')} AS object_id, 'static' AS root_kind",
    "CREATE TABLE type AS SELECT 'list' AS trace_id, 7::UBIGINT AS type_id, 'Node' AS name",
):
    connection.execute(statement)
rows = connection.execute(query).fetchall()
steps = [row[0] for row in rows]
assert steps == list(range(COUNT - 100, COUNT + 1)), (len(steps), steps[:3], steps[-3:])
assert rows[-1][1:4] == (f"{4096 + 24 * last:x}", "Node", 9999), rows[-1]
print(f"{len(rows)} of {COUNT} steps")
