"""Loads views.sql of datasets into the DuckDB that Python finds, and prints what its views and macros give, as JSON.

views.py DATASET...    the version of DuckDB, and of each dataset the rows of each view and what became of some roots

Every version of DuckDB that is promised has to print the same but for its version: tests/readers.rs compares them.
"""

import json
import sys

import duckdb

SURVIVED = """SELECT gc_id, object_id, survived(gc_id, object_id), address_after(gc_id, object_id)
FROM (SELECT DISTINCT gc_id, object_id FROM gc_root WHERE object_id > 0 ORDER BY ALL LIMIT 40) ORDER BY ALL"""
SURVIVED_OF = SURVIVED.replace("(gc_id, object_id)", "(trace_id, gc_id, object_id)").replace("DISTINCT", "DISTINCT trace_id,")


def of_dataset(dataset):
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"SET file_search_path = '{dataset}'")
    with open(f"{dataset}/views.sql") as script:
        connection.execute(script.read())
    names = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL").fetchall()
    counts = {}
    for (name,) in names:
        counts[name] = connection.execute(f'SELECT count(*) FROM (FROM "{name}")').fetchone()[0]
    recordings = connection.execute("SELECT count(*) FROM trace").fetchone()[0]
    fates = connection.execute(SURVIVED if recordings == 1 else SURVIVED_OF).fetchall()
    journey = "SELECT count(*) FROM journey({})"
    (trace, first, object_id), = connection.execute(
        "SELECT trace_id, min(gc_id), arg_min(object_id, gc_id) FROM gc_root WHERE object_id > 0 GROUP BY ALL ORDER BY ALL LIMIT 1"
    ).fetchall() or [(None, 0, 0)]
    steps = connection.execute(journey.format(f"'{trace}', {first}, {object_id}")).fetchone()[0]
    return {"views": counts, "survived": fates, "journey": steps}


print(json.dumps({"version": duckdb.__version__, "datasets": [of_dataset(path) for path in sys.argv[1:]]}))
