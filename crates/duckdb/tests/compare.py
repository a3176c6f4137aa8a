"""Tries the extension in the DuckDB that is imported: compare.py EXTENSION PROGRAM FOLDER few|some|all

For every table of the samples, `FROM tracequet(sample, table)` has the columns, types and rows of the Parquet file that
the program makes of it, and the views of `tracequet_open` those of `views.sql`. FOLDER keeps what the program makes of
a sample for the next call.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

import duckdb

ROOT = pathlib.Path(__file__).parents[3]
EXTENSION, PROGRAM, CONVERTED, CHOICE = sys.argv[1:]
# An .etl has no views of its own kind, a .corprof has them all.
FEW = ["clr.etl", "callbacks.corprof"]
# Every kind of recording, payloads with arrays and structs, dictionaries in lists, losses.
SOME = ["gc-churn.nettrace", "events.nettrace", "heap-10.gcdump", "clr.etl", "callbacks.corprof", "lifetimes.nettrace"]
ENDINGS = (".nettrace", ".nettrace.zst", ".etl", ".corprof", ".gcdump")
# More rows than these are compared without their order.
ORDERED = 20_000


def connect(path=":memory:"):
    """A connection of a DuckDB with the extension."""
    db = duckdb.connect(path, config={"allow_unsigned_extensions": "true"})
    db.sql(f"LOAD '{EXTENSION}'")
    db.sql("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    return db


def convert(*arguments):
    """Runs `tracequet convert`. A recording with losses ends with 2."""
    done = subprocess.run([PROGRAM, "convert", "--quiet", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode in (0, 2), done.stderr


def text(value):
    """A text of SQL."""
    return "'" + str(value).replace("'", "''") + "'"


def same(db, one, other, what):
    """Fails unless both queries have the same columns and rows. Returns the number of rows."""
    columns = [db.sql(f"DESCRIBE {query}").fetchall() for query in (one, other)]
    shape = [[row[:2] for row in described] for described in columns]
    assert shape[0] == shape[1], (what, shape)
    rows = [db.sql(f"SELECT count(*) FROM ({query})").fetchall()[0][0] for query in (one, other)]
    assert rows[0] == rows[1], (what, rows)
    if rows[0] > ORDERED:
        for first, second in ((one, other), (other, one)):
            differ = db.sql(f"SELECT count(*) FROM (({first}) EXCEPT ALL ({second}))").fetchall()[0][0]
            assert differ == 0, (what, differ)
    elif rows[0] > 0:
        first, second = (db.sql(query).fetchall() for query in (one, other))
        # As texts, where NaN is like NaN.
        differ = [pair for pair in zip(first, second) if repr(pair[0]) != repr(pair[1])]
        assert repr(first) == repr(second), (what, differ[:1])
    return rows[0]


def compare_tables(db, sample, folder):
    """Every table of a sample; returns tables and rows."""
    tables = rows = 0
    for file in sorted(folder.rglob("*.parquet")):
        table = file.relative_to(folder).as_posix().removesuffix(".parquet")
        own, parquet = f"FROM tracequet({text(sample)}, {text(table)})", f"FROM read_parquet({text(file)})"
        rows += same(db, own, parquet, (sample, table))
        tables += 1
    assert tables > 60, (sample, tables)
    return tables, rows


def compare_views(sample, folder):
    """The views of a sample, and its macros by their names."""
    db = connect()
    db.sql("CREATE SCHEMA files; USE files")
    db.sql(f"SET file_search_path = {text(folder)}")
    db.execute((folder / "views.sql").read_text(encoding="utf-8"))
    # Into a schema of its own, by the connection of the extension.
    listed = db.sql(f"CALL tracequet_open({text(sample)}, schema := 'opened')").fetchall()
    names = lambda schema: [row[0] for row in db.sql(
        f"SELECT view_name FROM duckdb_views() WHERE schema_name = '{schema}' ORDER BY ALL").fetchall()]
    macros = lambda schema: db.sql(
        "SELECT function_name, parameters FROM duckdb_functions() "
        f"WHERE schema_name = '{schema}' ORDER BY ALL").fetchall()
    assert names("files") == names("opened") and len(names("opened")) > 100, (names("files"), names("opened"))
    assert macros("files") == macros("opened") and macros("opened")
    assert {kind for _, kind, _ in listed} == {"table", "view", "macro"}
    assert {name for name, kind, _ in listed if kind != "macro"} <= set(names("opened"))
    for name in names("opened"):
        view = '"' + name.replace('"', '""') + '"'
        queries = [f"FROM (FROM {schema}.{view}) ORDER BY ALL" for schema in ("opened", "files")]
        same(db, *queries, (sample, name))
    return len(names("opened"))


def fails(db, query, *words):
    """Fails unless the query fails with a message that has these words."""
    try:
        db.sql(query).fetchall()
    except duckdb.Error as error:
        assert all(word in str(error) for word in words), str(error)
    else:
        raise AssertionError(f"no error: {query}")


def temporaries(folder):
    """The temporary datasets in a folder."""
    return [path for path in pathlib.Path(folder).iterdir() if path.name.startswith("tracequet-duckdb-")]


def try_lake(db, home):
    """A dataset of several recordings: by the extension, and by the views, which DuckDB's own reader answers."""
    lake = home / "lake"
    convert(ROOT / "samples/gc-churn.nettrace", ROOT / "samples/events.nettrace", "-o", lake)
    tables = 0
    for folder in sorted({file.parent.parent for file in lake.rglob("*.parquet")}):
        table = folder.relative_to(lake).as_posix()
        files = ("SELECT * FROM "
                 f"read_parquet({text(folder)} || '/*/*.parquet', hive_partitioning = false, union_by_name = true)")
        columns = ", ".join(f'"{row[0]}"' for row in db.sql(f"DESCRIBE {files}").fetchall())
        own = f"FROM tracequet({text(lake)}, {text(table)})"
        queries = [f"SELECT {columns} FROM ({query}) ORDER BY ALL" for query in (own, files)]
        same(db, *queries, table)
        tables += 1
    assert tables > 100, tables
    db.sql(f"CALL tracequet_open({text(lake)}, schema := 'lake')").fetchall()
    assert db.sql("SELECT count(*) FROM lake.trace").fetchall()[0][0] == 2
    view = "SELECT sql FROM duckdb_views() WHERE schema_name = 'lake' AND view_name = 'gc'"
    made = db.sql(view).fetchall()[0][0]
    assert "read_parquet" in made, made
    rows = f"SELECT count(*) FROM tracequet({text(lake)}, 'gc')"
    same(db, "SELECT count(*) FROM lake.gc_summary", rows, "gc_summary")
    return tables


def try_once(db, home):
    """A recording is converted once, whoever asks for it, until it is another one."""
    copy = home / "copy.nettrace"
    shutil.copy(ROOT / "samples/gc-churn.nettrace", copy)
    before = set(temporaries(home))
    counts = []
    query = f"SELECT count(*) FROM tracequet({text(copy)}, 'gc')"
    ask = lambda: counts.append(db.cursor().execute(query).fetchone()[0])
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [19] * 4, counts
    made = set(temporaries(home)) - before
    assert len(made) == 1, made
    # A scan that is under way keeps what it reads.
    held = db.cursor().execute(f"FROM tracequet({text(copy)}, 'gc_moved_range')")
    first = held.fetchone()
    shutil.copy(ROOT / "samples/heap-10.nettrace", copy)
    assert db.cursor().execute(query).fetchone()[0] != 19
    assert first is not None and len(held.fetchall()) == 3399
    cut = home / "cut.nettrace"
    cut.write_bytes((ROOT / "samples/gc-churn.nettrace").read_bytes()[:100_000])
    assert db.sql(f"SELECT count(*) FROM tracequet({text(cut)}, 'diagnostic')").fetchall()[0][0] > 0


def try_columns(db):
    """What DuckDB may want of a table beside whole rows."""
    gc = f"tracequet({text(ROOT / 'samples/gc-churn.nettrace')}, 'gc')"
    assert db.sql(f"SELECT count(*) FROM {gc}").fetchall()[0][0] == 19
    assert db.sql(f"SELECT count(*) FROM {gc} WHERE generation = 2").fetchall()[0][0] == 6
    assert db.sql(f"SELECT generation, gc_number FROM {gc} LIMIT 1").fetchall()[0] == db.sql(
        f"SELECT generation, gc_number FROM (FROM {gc}) LIMIT 1").fetchall()[0]
    assert len(db.sql(f"SELECT a.gc_id FROM {gc} a JOIN {gc} b USING (gc_id)").fetchall()) == 19
    prepared = db.execute(f"SELECT count(*) FROM {gc} WHERE generation < ?", [2]).fetchall()[0][0]
    assert prepared == 13, prepared


def try_errors(db, home):
    """Errors are DuckDB's, and say what is wrong with which file."""
    sample = text(ROOT / "samples/gc-churn.nettrace")
    fails(db, f"FROM tracequet({sample}, 'no_such')", "no_such", "gc-churn", "table")
    fails(db, f"FROM tracequet({text(home / 'none.nettrace')}, 'gc')", "none.nettrace")
    fails(db, "FROM tracequet(NULL, 'gc')", "NULL")
    fails(db, f"FROM tracequet({sample})", "tracequet")
    fails(db, f"FROM tracequet({text(home)}, 'gc')", home.name)
    other = home / "other.nettrace"
    other.write_text("a text")
    fails(db, f"FROM tracequet({text(other)}, 'gc')", "other.nettrace")
    fails(db, f"CALL tracequet_open({text(other)})", "other.nettrace")
    # After them all is as before.
    assert db.sql(f"SELECT count(*) FROM tracequet({sample}, 'gc')").fetchall()[0][0] == 19


def try_end(home):
    """The process leaves no temporary dataset; a database file can be closed before."""
    script = f"""
import duckdb, os, pathlib, subprocess, sys
db = duckdb.connect({str(home / 'a.db')!r}, config={{"allow_unsigned_extensions": "true"}})
db.sql("LOAD {text(EXTENSION)}")
db.sql("CALL tracequet_open({text(ROOT / 'samples/gc-churn.nettrace')})").fetchall()
assert db.sql("SELECT count(*) FROM gc").fetchall()[0][0] == 19
made = lambda: [name for name in os.listdir(os.environ["TMPDIR"]) if name.startswith("tracequet-duckdb-")]
assert len(made()) == 1, made()
assert db.sql("CALL tracequet_close()").fetchall() == [(1,)]
assert made() == [], made()
db.close()
other = "import duckdb; duckdb.connect(" + repr({str(home / 'a.db')!r}) + ").close()"
subprocess.run([sys.executable, "-c", other], check=True)
db = duckdb.connect(config={{"allow_unsigned_extensions": "true"}})
db.sql("LOAD {text(EXTENSION)}")
db.sql("CALL tracequet_open({text(ROOT / 'samples/gc-churn.nettrace')})").fetchall()
assert len(made()) == 1, made()
"""
    own = home / "own"
    own.mkdir()
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "TMPDIR": str(own)})
    assert temporaries(own) == [], temporaries(own)


def main():
    """All of it."""
    samples = sorted(path for path in (ROOT / "samples").rglob("*") if path.name.endswith(ENDINGS))
    if CHOICE != "all":
        chosen = {"few": FEW, "some": SOME}[CHOICE]
        samples = [path for path in samples if path.name in chosen]
        assert len(samples) == len(chosen), samples
    with tempfile.TemporaryDirectory() as home:
        home = pathlib.Path(home)
        # The extension makes its temporary datasets there.
        os.environ["TMPDIR"] = str(home)
        tables = rows = views = 0
        for sample in samples:
            # A session for each sample, so that its temporary dataset goes.
            db = connect()
            folder = pathlib.Path(CONVERTED) / sample.name
            if not folder.exists():
                convert(sample, "-o", folder)
            some_tables, some_rows = compare_tables(db, sample, folder)
            tables, rows = tables + some_tables, rows + some_rows
            views += compare_views(sample, folder)
            db.sql("CALL tracequet_close()").fetchall()
            assert temporaries(home) == [], temporaries(home)
        assert rows > 0 and views > 0
        print(f"{len(samples)} samples: {tables} tables with {rows} rows, and {views} views, equal the Parquet files")
        db = connect()
        print(f"a lake: {try_lake(db, home)} tables")
        try_columns(db)
        try_once(db, home)
        try_errors(db, home)
        try_end(home)
        db.sql("CALL tracequet_close()").fetchall()


main()
