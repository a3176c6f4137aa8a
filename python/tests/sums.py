"""What a column adds up to, asked of each library in its own words: how many values there are, and their sum. Text,
bytes and lists add up to their lengths, structs to nothing. Whole numbers are exact, modulo 2^64: some libraries wrap
and others do not."""

import math

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds


def kind_of(arrow):
    """How a column of this Arrow type is added up."""
    if kinds.is_dictionary(arrow):
        return kind_of(arrow.value_type)
    if kinds.is_integer(arrow) or kinds.is_boolean(arrow):
        return "whole"
    if kinds.is_floating(arrow):
        return "real"
    if kinds.is_timestamp(arrow):
        return "time"
    if kinds.is_string(arrow) or kinds.is_large_string(arrow):
        return "text"
    if kinds.is_binary(arrow) or kinds.is_large_binary(arrow):
        return "bytes"
    if kinds.is_list(arrow):
        return "list"
    if kinds.is_struct(arrow):
        return "struct"
    raise AssertionError(f"no sum for {arrow}")


def columns_of(schema):
    return {field.name: kind_of(field.type) for field in schema}


def settled(kind, count, total):
    """The same form, whoever has added up."""
    if kind == "real":
        return count, float(total or 0)
    return count, int(total or 0) % 2**64


def same(left, right):
    """Whether two answers are the same; sums of floating point depend on their order."""

    def close(a, b):
        if a == b or isinstance(a[1], int) or a[0] != b[0]:
            return a == b
        return math.isclose(a[1], b[1], rel_tol=1e-9) or math.isnan(a[1]) and math.isnan(b[1])

    return left.keys() == right.keys() and all(close(left[name], right[name]) for name in left)


def of_pyarrow(table, columns):
    def one(name, kind):
        values = table[name]
        if kinds.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        count = len(values) - values.null_count
        if kind == "time":
            values = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
        elif kind == "text":
            values = pc.utf8_length(values)
        elif kind == "bytes":
            values = pc.binary_length(values)
        elif kind == "list":
            values = pc.list_value_length(values)
        elif kind == "struct":
            return count, 0
        return settled(kind, count, pc.sum(values).as_py())

    return {name: one(name, kind) for name, kind in columns.items()}


def of_pandas(frame, columns):
    """Of a frame whose columns are of Arrow types; otherwise pandas makes floats of whole numbers that may be null."""

    def one(name, kind):
        values = frame[name].dropna()
        if kind == "time":
            numbers = values.dt.as_unit("us").astype("int64")
        elif kind in ("text", "bytes", "list"):
            numbers = values.astype(object).map(len)
        elif kind == "struct":
            return len(values), 0
        else:
            numbers = values
        return settled(kind, len(values), numbers.sum() if len(values) else 0)

    return {name: one(name, kind) for name, kind in columns.items()}


def of_polars(frame, columns):
    import polars as pl

    def one(name, kind):
        values = frame[name]
        if kind == "time":
            numbers = values.dt.epoch("us")
        elif kind == "text":
            numbers = values.cast(pl.String).str.len_chars()
        elif kind == "bytes":
            numbers = values.bin.size()
        elif kind == "list":
            numbers = values.list.len()
        elif kind == "struct":
            return len(values) - values.null_count(), 0
        else:
            numbers = values
        if kind == "whole" and values.dtype != pl.Boolean:
            # Narrow numbers are added up in wider ones; wide ones wrap.
            numbers = numbers.cast(pl.UInt64 if values.dtype.is_unsigned_integer() else pl.Int64)
        elif kind == "real":
            numbers = numbers.cast(pl.Float64)
        return settled(kind, len(values) - values.null_count(), numbers.sum())

    return {name: one(name, kind) for name, kind in columns.items()}


def of_duckdb(connection, source, columns):
    """Of what DuckDB reads from `source`, a table expression."""

    def number(name, kind):
        column = '"' + name.replace('"', '""') + '"'
        asked = {"time": f"epoch_us({column})", "text": f"length({column})", "bytes": f"octet_length({column})", "list": f"len({column})"}
        if kind == "struct":
            return f"count({column}), 0"
        as_type = "DOUBLE" if kind == "real" else "HUGEINT"
        return f"count({column}), sum({asked.get(kind, column)}::{as_type})"

    listed = ", ".join(number(name, kind) for name, kind in columns.items())
    row = connection.execute(f"SELECT {listed} FROM {source}").fetchone()
    return {name: settled(kind, *row[2 * place : 2 * place + 2]) for place, (name, kind) in enumerate(columns.items())}


def spark_question(frame, columns):
    """The frame of one row, an array of texts, that answers for a table: rows of many tables together are one job of
    Spark.
    """

    def both(name, kind):
        column = "`" + name.replace("`", "``") + "`"
        asked = {
            "time": f"unix_micros({column})",
            "text": f"length({column})",
            "bytes": f"octet_length({column})",
            "list": f"if({column} IS NULL, NULL, size({column}))",
            "struct": "0",
        }.get(kind, column)
        if frame.schema[name].dataType.typeName() == "boolean":
            asked = f"int({asked})"
        as_type = "DOUBLE" if kind == "real" else "DECIMAL(38,0)"
        return f"string(count({column})), string(sum(CAST({asked} AS {as_type})))"

    answers = ", ".join(both(name, kind) for name, kind in columns.items())
    return frame.coalesce(1).selectExpr(f"array({answers}) AS answers")


def spark_answer(answers, columns):
    found = {}
    for place, (name, kind) in enumerate(columns.items()):
        count, total = answers[2 * place : 2 * place + 2]
        found[name] = settled(kind, int(count), float(total or 0) if kind == "real" else int(total or 0))
    return found
