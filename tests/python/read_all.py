"""Lets DuckDB, pyarrow, polars and pandas read every table of datasets, and compares what they see.

read_all.py SCHEMA.json DATASET...     SCHEMA.json: what `tracequet schema --format json` prints
"""

import json
import re
import sys
from pathlib import Path

import numpy
import pandas
import polars
import pyarrow
import pyarrow.feather
import pyarrow.parquet

from common import Dataset, connect, finish

ARROW = {
    "uint8": pyarrow.uint8(),
    "uint16": pyarrow.uint16(),
    "uint32": pyarrow.uint32(),
    "uint64": pyarrow.uint64(),
    "int64": pyarrow.int64(),
    "float64": pyarrow.float64(),
    "bool": pyarrow.bool_(),
    "timestamp": pyarrow.timestamp("us", tz="UTC"),
    "text": pyarrow.string(),
    "label": pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
    "list<uint64>": pyarrow.list_(pyarrow.field("item", pyarrow.uint64(), nullable=False)),
}
DUCKDB = {
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "int64": "BIGINT",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "text": "VARCHAR",
    "label": "VARCHAR",
    "list<uint64>": "UBIGINT[]",
}
POLARS = {
    "uint8": polars.UInt8,
    "uint16": polars.UInt16,
    "uint32": polars.UInt32,
    "uint64": polars.UInt64,
    "int64": polars.Int64,
    "float64": polars.Float64,
    "bool": polars.Boolean,
    "timestamp": polars.Datetime("us", "UTC"),
    "text": polars.String,
    "label": polars.Categorical,
    "list<uint64>": polars.List(polars.UInt64),
}


def exact_sum(numbers):
    """The sum of 64-bit numbers, which may need more bits."""
    high, low = numbers >> numpy.uint64(32), numbers & numpy.uint64(0xFFFF_FFFF)
    return (int(high.sum(dtype="uint64")) << 32) + int(low.sum(dtype="uint64"))


class Check:
    def __init__(self, schema_file):
        self.schema = {table["name"]: table["columns"] for table in json.loads(Path(schema_file).read_text())}
        self.failures = []
        self.files = 0
        folder = Path(__file__).parents[2] / "schemas" / "views"
        texts = {file.stem: file.read_text() for file in folder.glob("*.sql")}
        self.views_of_files = {name for name, text in texts.items() if f"VIEW {name} AS" in text}
        table_macro = re.compile(r"MACRO (\w+)\s*\([^;]*?AS TABLE")
        self.macros_of_files = {name for text in texts.values() for name in table_macro.findall(text)}

    def equal(self, where, found, expected):
        if found != expected:
            self.failures.append(f"{where}: expected {expected}, found {found}")

    def expected_columns(self, table, hive):
        """The columns that the schema promises: all of them, or for a payload table those it begins with."""
        columns = self.schema["event_header" if table.startswith("event/") else table]
        trace_id = {"name": "trace_id", "type": "label", "nullable": False}
        return [trace_id, *columns] if hive else columns

    def dataset(self, dataset):
        missing = set(self.schema) - {"event_header"} - set(dataset.rows)
        self.equal(f"{dataset.path.name}: tables that are missing", sorted(missing), [])
        listed = {file for table in dataset.rows for file in dataset.files(table)}
        there = set(dataset.path.rglob(f"*.{dataset.format}"))
        self.equal(f"{dataset.path.name}: files", sorted(map(str, there)), sorted(map(str, listed)))
        for table, rows in dataset.rows.items():
            where = f"{dataset.path.name} {table}"
            columns = self.expected_columns(table, dataset.hive)
            seen = sum(self.file(where, table, file, columns, dataset.format) for file in dataset.files(table))
            self.equal(f"{where}: rows", seen, rows)
        self.views(dataset)

    def file(self, where, table, file, columns, format):
        """One file with every reader; returns its rows."""
        self.files += 1
        if format == "parquet":
            # A file on its own: no columns are to be made up from the names of its folders.
            arrow = pyarrow.parquet.ParquetFile(file).read()
            frame = pandas.read_parquet(file, partitioning=None)
            lazy = polars.read_parquet(file, hive_partitioning=False)
        else:
            arrow = pyarrow.ipc.open_file(pyarrow.memory_map(str(file))).read_all()
            frame = pandas.read_feather(file)
            lazy = polars.read_ipc(file)
        arrow.validate(full=True)

        names = [column["name"] for column in columns]
        if table.startswith("event/"):
            self.equal(f"{where}: last columns", arrow.column_names[-2:], ["raw_payload", "decode_problem"])
            self.equal(f"{where}: first columns", arrow.column_names[: len(names)], names)
        else:
            self.equal(f"{where}: columns", arrow.column_names, names)
        self.equal(f"{where}: unique names", len(set(map(str.lower, arrow.column_names))), len(arrow.column_names))
        self.equal(f"{where}: rows in pandas", len(frame), arrow.num_rows)
        self.equal(f"{where}: rows in polars", lazy.height, arrow.num_rows)
        self.equal(f"{where}: columns in pandas", list(frame.columns), arrow.column_names)
        self.equal(f"{where}: columns in polars", lazy.columns, arrow.column_names)
        for column in columns:
            name, kind = column["name"], column["type"]
            at = f"{where}.{name}"
            field = arrow.schema.field(name)
            # Arrow files hold the words themselves: a dictionary in them cannot change from batch to batch.
            kind = "text" if kind == "label" and format == "arrow" else kind
            self.equal(f"{at}: Arrow type", field.type, ARROW[kind])
            self.equal(f"{at}: nullable", field.nullable, column["nullable"])
            self.equal(f"{at}: polars type", lazy.schema[name], POLARS[kind])
            if not column["nullable"]:
                self.equal(f"{at}: nulls", arrow[name].null_count, 0)
            if kind == "uint64" and not column["nullable"]:
                # A nullable uint64 becomes a float in pandas, which changes addresses.
                self.equal(f"{at}: pandas type", frame[name].dtype, numpy.dtype("uint64"))
                exact = arrow[name].to_numpy()
                self.equal(f"{at}: Arrow's own type in numpy", exact.dtype, numpy.dtype("uint64"))
                self.equal(f"{at}: values in pandas", numpy.array_equal(frame[name].to_numpy(), exact), True)
                self.equal(f"{at}: values in polars", numpy.array_equal(lazy[name].to_numpy(), exact), True)
        return arrow.num_rows

    def read(self, file, columns):
        """Columns of a file as a table of pyarrow."""
        if file.suffix == ".parquet":
            return pyarrow.parquet.ParquetFile(file).read(columns)
        return pyarrow.ipc.open_file(pyarrow.memory_map(str(file))).read_all().select(columns)

    def views(self, dataset):
        """DuckDB through views.sql: tables, types, values, and whatever else the script defines."""
        connection = connect(dataset)
        for table, rows in dataset.rows.items():
            where = f"{dataset.path.name} {table} in DuckDB"
            view = '"' + table.replace('"', '""') + '"'
            self.equal(f"{where}: rows", connection.execute(f"SELECT count(*) FROM {view}").fetchall()[0][0], rows)
            types = {row[0]: row[1] for row in connection.execute(f"DESCRIBE {view}").fetchall()}
            self.equal(f"{where}: first column", (next(iter(types)), types.get("trace_id")), ("trace_id", "VARCHAR"))
            for column in self.expected_columns(table, dataset.hive):
                self.equal(f"{where}: type of {column['name']}", types.get(column["name"]), DUCKDB[column["type"]])
                if column["type"] == "uint64" and not column["nullable"]:
                    name = column["name"]
                    total = connection.execute(f"SELECT coalesce(sum({name}::HUGEINT), 0) FROM {view}").fetchall()[0][0]
                    exact = sum(exact_sum(self.read(file, [name])[name].to_numpy()) for file in dataset.files(table))
                    self.equal(f"{where}: sum of {name}", int(total), exact)
            self.equal(f"{where}: rows fetched", connection.sql(f"SELECT * FROM {view}").to_arrow_table().num_rows, rows)

        own = "SELECT view_name FROM duckdb_views() WHERE NOT internal"
        views = {row[0] for row in connection.execute(own).fetchall() if not row[0].startswith("arrow_")}
        # Of several recordings: an event without the layout that is a part of its table's name.
        views -= {name.rsplit(".", 1)[0] for name in dataset.rows if dataset.hive and name.startswith("event/")}
        self.equal(f"{dataset.path.name}: views", views - set(dataset.rows), self.views_of_files)
        for view in sorted(views - set(dataset.rows)):
            connection.sql(f'SELECT * FROM "{view}"').to_arrow_table()
        macros = "SELECT function_name FROM duckdb_functions() WHERE function_type = 'table_macro' AND NOT internal"
        macros = {row[0] for row in connection.execute(macros).fetchall()}
        self.equal(f"{dataset.path.name}: macros", macros, self.macros_of_files)
        deepest = "SELECT trace_id, callsite_id, depth, address FROM callsite ORDER BY depth DESC LIMIT 1"
        for trace_id, callsite_id, depth, address in connection.execute(deepest).fetchall():
            calls = [f"stack('{trace_id}', {callsite_id})"]
            if len(dataset.manifest["inputs"]) == 1:
                calls.append(f"stack({callsite_id})")
            for call in calls:
                frames = connection.execute(f"SELECT depth, address FROM {call}").fetchall()
                self.equal(f"{dataset.path.name}: frames of the deepest stack", len(frames), depth + 1)
                self.equal(f"{dataset.path.name}: its innermost frame", frames[0], (depth, address))


def main():
    check = Check(sys.argv[1])
    for path in sys.argv[2:]:
        check.dataset(Dataset(path))
    if check.files == 0:
        check.failures.append("no files were found in the datasets")
    finish(check.failures, f"{check.files} files of {len(sys.argv) - 2} datasets, each with four readers")


main()
