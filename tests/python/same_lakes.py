"""Compares every table of two datasets of several recordings in DuckDB, by the globs of their views: the same rows,
each as often.

same_lakes.py LAKE LAKE
"""

import sys
from pathlib import Path

import duckdb

one, other = map(Path, sys.argv[1:3])


def tables(lake):
    found = set()
    for file in lake.rglob("trace=*/*.parquet"):
        name = file.relative_to(lake).as_posix().split("/trace=")[0]
        if not name.startswith("."):
            found.add(name)
    return found


names = sorted(tables(one) | tables(other))
rows = 0
for name in names:
    first, second = (f"read_parquet('{lake}/{name}/*/*.parquet', hive_partitioning = false)" for lake in (one, other))
    counts = [duckdb.sql(f"SELECT count(*) FROM {table}").fetchall()[0][0] for table in (first, second)]
    assert counts[0] == counts[1], (name, counts)
    rows += counts[0]
    columns = [duckdb.sql(f"DESCRIBE SELECT * FROM {table}").fetchall() for table in (first, second)]
    assert columns[0] == columns[1], (name, columns)
    for a, b in ((first, second), (second, first)):
        different = duckdb.sql(f"SELECT count(*) FROM (SELECT * FROM {a} EXCEPT ALL SELECT * FROM {b})").fetchall()[0][0]
        assert different == 0, (name, different)
    # Without the option, the folders of packs give the same columns as those of recordings.
    plain = [duckdb.sql(f"DESCRIBE SELECT * FROM '{lake}/{name}/*/*.parquet'").fetchall() for lake in (one, other)]
    assert plain[0] == plain[1], (name, plain)
views = {
    "gc_summary": "SELECT * FROM gc_summary ORDER BY ALL",
    "labelled_trace": "SELECT trace_id, labels FROM labelled_trace ORDER BY ALL",
    "allocation_by_type": "SELECT * FROM allocation_by_type ORDER BY ALL",
}
answers = []
for lake in (one, other):
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET file_search_path = '{lake}'")
    script = (lake / "views.sql").read_text()
    connection.execute(script)
    answers.append([connection.execute(query).fetchall() for view, query in views.items() if f"VIEW {view} AS" in script])
assert answers[0] == answers[1] and answers[0][0], "views"
print(f"{len(names)} tables are the same, {rows} rows")
