"""Runs what documents show: the SQL of QUERIES.md, and the `duckdb -c` commands of any document.

queries.py DOCUMENT... -- DATASET...    the first dataset is the one that commands call `out`

A query has to give rows on one of the datasets at least, and may fail on others only for a table that they do not have:
kinds of events differ from recording to recording.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

import duckdb

from common import Dataset, blocks, connect, finish, statements


def run_queries(document, datasets, failures):
    """Each ```sql block of a document, on every dataset."""
    count = 0
    queries = blocks(document.read_text(), "sql")
    answered = set()
    for dataset in datasets:
        connection = connect(dataset)
        for number, (heading, sql) in enumerate(queries):
            where = f"{document.name}, '{heading}', on {dataset.path.name}"
            try:
                for statement in statements(sql):
                    rows = connection.execute(statement).fetchall()
                if rows:
                    answered.add(number)
            except duckdb.CatalogException as error:
                if not re.search(r"Table with name event/", str(error)):
                    failures.append(f"{where}: {error}")
            except duckdb.Error as error:
                failures.append(f"{where}: {error}")
    for number, (heading, _) in enumerate(queries):
        count += 1
        if number not in answered:
            failures.append(f"{document.name}, '{heading}': no rows on any dataset")
    return count


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
    datasets = [Dataset(path) for path in sys.argv[split + 1 :]]
    failures, queries, commands = [], 0, 0
    for document in documents:
        if document.name == "QUERIES.md":
            queries += run_queries(document, datasets, failures)
        commands += run_commands(document, datasets[0], failures)
    if queries == 0 or commands == 0:
        failures.append("no queries or no commands were found in the documents")
    finish(failures, f"{queries} queries, {commands} commands")


main()
