"""Runs what documents show: the SQL of QUERIES.md, and the `duckdb -c` commands of any document.

queries.py DOCUMENT... -- DATASET...    the first dataset is the one that commands call `out`

Every query runs on every dataset, of one recording and of several. It has to give rows on one of them at least, and may
fail on others only for a table that they do not have: kinds of events differ from recording to recording. Whatever
joins has to join by `trace_id`. On a dataset of several recordings, looked at as QUERIES.md says how, each recording
gives the rows that it gives alone.

The first line of a query may say `-- of NAME`: what it gives on the dataset NAME stands behind it. UPDATE_DOCS=1 writes
that anew. `--absent=NAME` among the datasets: this one is not on the machine.
"""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

from common import Dataset, blocks, connect, finish, statements


OF = re.compile(r"-- of (\S+)\n")
ABSENT = "--absent="


@functools.cache
def connected(dataset):
    """One connection for all questions about a dataset: to bind its views takes a while."""
    return connect(dataset)


def of_one(dataset, recording):
    """DuckDB with the views of one recording of a dataset of several, by the `sed` command of QUERIES.md."""
    document = (Path(__file__).parents[2] / "docs" / "QUERIES.md").read_text()
    expression = re.search(r'^sed "(s/.*/)" views.sql', document, re.MULTILINE)[1].replace("'app'", f"'{recording}'")
    script = subprocess.run(["sed", expression, "views.sql"], cwd=dataset.path, capture_output=True, check=True).stdout
    assert script.count(b"') WHERE trace_id") == len(dataset.rows), "a view of each table"
    os.chdir(dataset.path)
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(script.decode())
    return connection


def answer(connection, sql):
    """Rows of the last statement, in an order of their own: equal sort keys come in any."""
    for statement in statements(sql):
        rows = connection.execute(statement).fetchall()
    return sorted(rows, key=repr)


def compare_recordings(document, several, alone, failures):
    """Queries for one recording give the same in a dataset of several, when it is looked at as if it were alone."""
    compared = 0
    # What names files has all recordings.
    queries = [(heading, sql) for heading, sql in blocks(document.read_text(), "sql") if "read_parquet" not in sql]
    for recording in several.manifest["inputs"]:
        key = recording["trace_id"]
        flat = connected(alone[key])
        os.chdir(several.path)
        one = of_one(several, key)
        for heading, sql in queries:
            try:
                os.chdir(several.path)
                found = answer(one, sql)
                os.chdir(alone[key].path)
                expected = answer(flat, sql)
            except (duckdb.CatalogException, duckdb.BinderException, duckdb.IOException):
                # A macro, view or file that a dataset of several does not have, or an event that this one does not.
                continue
            ties = " LIMIT " in sql.replace("\n", " ")
            if found != expected and not (ties and len(found) == len(expected)):
                failures.append(f"{document.name}, '{heading}', on {key}: {len(found)} rows, expected {len(expected)}")
            compared += 1
    if compared < 10:
        failures.append(f"{document.name}: only {compared} answers were compared")
    return compared


def lint(document, queries, failures):
    """Ids count within one recording: a join names it, at its beginning or on the line that follows."""
    for heading, sql in queries:
        for join in re.finditer(r"\b(?:USING \(|ON )[^\n]*", sql):
            if "trace_id" not in join[0] and "recording" not in join[0]:
                failures.append(f"{document.name}, '{heading}': joins without trace_id: {join[0]}")


def shown(connection, sql):
    """What a query gives, as text in columns."""
    for statement in statements(sql):
        result = connection.execute(statement)
    names = [column[0] for column in result.description]
    rows = [["" if value is None else str(value) for value in row] for row in result.fetchall()]
    numbers = [all(re.fullmatch(r"-?[\d.]*", row[at]) for row in rows) for at in range(len(names))]
    widths = [max(len(row[at]) for row in [names, *rows]) for at in range(len(names))]
    lines = []
    for row in [names, *rows]:
        cells = [c.rjust(w) if number else c.ljust(w) for c, w, number in zip(row, widths, numbers)]
        lines.append("  ".join(cells).rstrip() + "\n")
    return "".join(lines)


def outputs(document, datasets, absent, failures):
    """What stands behind queries of one dataset is what they give."""
    named = {dataset.path.name: dataset for dataset in datasets}
    text = document.read_text()
    count = 0

    def check(match):
        nonlocal count
        sql, stands = match[1], match[2] or ""
        of = OF.match(sql)
        if not of:
            return match[0]
        count += 1
        if of[1] in absent:
            return match[0]
        gives = shown(connected(named[of[1]]), sql)
        if gives != stands and "UPDATE_DOCS" not in os.environ:
            failures.append(f"{document.name}: {sql}gives\n{gives}and the document says\n{stands}")
        return f"```sql\n{sql}```\n\n```text\n{gives}```\n"

    new = re.sub(r"```sql\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", check, text, flags=re.DOTALL)
    if "UPDATE_DOCS" in os.environ:
        document.write_text(new)
    if count < 5:
        failures.append(f"{document.name}: only {count} outputs")
    return count


# Every query runs on the first datasets, this many. On the others only the queries run that have found no rows so far.
EVERYTHING_ON = 4


def run_queries(document, datasets, absent, failures):
    """Each ```sql block of a document, on every dataset that it is for."""
    count = 0
    queries = blocks(document.read_text(), "sql")
    lint(document, queries, failures)
    count += outputs(document, datasets, absent, failures)
    alone = {d.manifest["inputs"][0]["trace_id"]: d for d in datasets if not d.hive}
    for several in (d for d in datasets if d.hive):
        count += compare_recordings(document, several, alone, failures)
    answered = set()
    for place, dataset in enumerate(datasets):
        # What has rows and no error on these binds on the others, too.
        is_whole = place < EVERYTHING_ON or dataset.hive
        wanted = [(number, query) for number, query in enumerate(queries) if is_whole or number not in answered]
        if not wanted:
            continue
        connection = connected(dataset)
        os.chdir(dataset.path)
        for number, (heading, sql) in wanted:
            where = f"{document.name}, '{heading}', on {dataset.path.name}"
            try:
                for statement in statements(sql):
                    rows = connection.execute(statement).fetchall()
                if rows:
                    answered.add(number)
            except (duckdb.CatalogException, duckdb.IOException) as error:
                # Profiler callbacks have no tables of events at all.
                if not re.search(r"Table with name event/|No files found that match the pattern \"event/", str(error)):
                    failures.append(f"{where}: {error}")
            except duckdb.Error as error:
                failures.append(f"{where}: {error}")
    for number, (heading, _) in enumerate(queries):
        count += 1
        if number not in answered:
            failures.append(f"{document.name}, '{heading}': no rows on any dataset")
    return count


def joins_whole_recordings(connection, sql):
    """Whether DuckDB's plan joins rows by their recording alone, every one with every other: that takes hours for large
    ones.
    """

    def nodes(plan):
        yield plan
        for child in plan.get("children", []):
            yield from nodes(child)

    plans = json.loads(connection.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchone()[1])
    found = [node for plan in plans for node in nodes(plan) if "JOIN" in node["name"]]
    return any(node["extra_info"].get("Conditions") == "trace_id = trace_id" for node in found)


def check_views(document, datasets, failures):
    """What every view of a dataset has to be: sums that stay whole numbers in pandas and Polars, types by their names,
    and joins by more than the recording. What is about recordings themselves may be joined by them."""
    views, planned = 0, 0
    for dataset in datasets:
        connection = connected(dataset)
        os.chdir(dataset.path)
        name = dataset.path.name
        wide = connection.execute("SELECT DISTINCT table_name, column_name FROM duckdb_columns() WHERE data_type IN ('HUGEINT', 'UHUGEINT')")
        failures += [f"{name}: the view {view} has the wide sum {column}" for view, column in wide.fetchall()]
        named = "SELECT count(*), count(*) FILTER (starts_with(type_name, 'type ')) FROM allocation_by_type"
        rows, without_name = connection.execute(named).fetchone()
        if without_name:
            failures.append(f"{name}: {without_name} of {rows} allocated types have no name")
        found = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        views += len(found)
        if not dataset.hive:
            continue
        questions = [f'FROM "{view}"' for (view,) in found if view != "labelled_trace"]
        for _, sql in blocks(document.read_text(), "sql"):
            for statement in statements(sql):
                if "FROM trace " in statement:
                    continue
                if re.match("SELECT|WITH|FROM", statement):
                    questions.append(statement)
                else:
                    connection.execute(statement)
        for sql in questions:
            try:
                planned += 1
                if joins_whole_recordings(connection, sql):
                    failures.append(f"{name}: joins rows by their recording alone: {sql}")
            except duckdb.CatalogException:
                continue
    # No sample has lookups of precompiled code.
    own = duckdb.connect()
    own.execute("""CREATE TABLE method_compilation AS SELECT 'a' AS trace_id, 1 AS process_id, now() AS start_ts, 'N' AS namespace, 'm' AS name,
        unnest(['jit', 'r2r']) AS kind, 'x' AS tier, 5 AS duration_ns, 1 AS il_size_bytes, 2 AS native_size_bytes, 3 AS thread_id, 4 AS callsite_id""")
    own.execute("CREATE TABLE site AS SELECT 'a' AS trace_id, 4 AS callsite_id, 'Own.Run' AS own_method")
    own.execute((Path(__file__).parents[2] / "schemas" / "views" / "jit.sql").read_text())
    if own.execute("SELECT method, own_method, kind FROM jit").fetchall() != [("N.m", "Own.Run", "jit")]:
        failures.append("the view jit has what was not compiled")
    if views < 100 or planned < 50:
        failures.append(f"only {views} views and {planned} plans were checked")


def run_commands(document, dataset, failures):
    """Each `duckdb -c "..."` of a document, in a folder where `out` is a dataset."""
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(dataset.path, Path(folder) / "out")
        os.chdir(folder)
        for command in re.finditer(r'duckdb -c "((?:[^"\\]|\\.)*)"', document.read_text()):
            sql = re.sub(r"\\(.)", r"\1", command[1])
            if "'out/" not in sql:
                continue
            count += 1
            try:
                if not duckdb.connect().execute(sql).fetchall():
                    failures.append(f"{document.name}: no rows: {sql}")
            except duckdb.Error as error:
                failures.append(f"{document.name}: {sql}: {error}")
        os.chdir("/")
    return count


def main():
    split = sys.argv.index("--")
    documents = [Path(name).resolve() for name in sys.argv[1:split]]
    names = sys.argv[split + 1 :]
    datasets = [Dataset(name) for name in names if not name.startswith(ABSENT)]
    absent = {name.removeprefix(ABSENT) for name in names if name.startswith(ABSENT)}
    failures, queries, commands = [], 0, 0
    for document in documents:
        if document.name == "QUERIES.md":
            queries += run_queries(document, datasets, absent, failures)
            check_views(document, datasets, failures)
        commands += run_commands(document, datasets[0], failures)
    if queries == 0 or commands == 0:
        failures.append("no queries or no commands were found in the documents")
    finish(failures, f"{queries} queries, {commands} commands")


main()
