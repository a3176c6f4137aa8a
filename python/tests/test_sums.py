"""pyarrow, pandas, Polars, DuckDB and tracequet itself read every table of a dataset alike. Spark does in
test_spark.py.
"""

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import sums
import tracequet
from conftest import CHURN, files_of


@pytest.mark.parametrize("layout", ("signed", "flat"))
def test_all_readers_agree_on_the_sums_of_every_table(layout, request):
    dataset = request.getfixturevalue(layout)
    trace, connection, filled = tracequet.open(dataset), duckdb.connect(), 0
    for name in trace.tables:
        files = files_of(dataset, name)
        own = trace[name].to_arrow()
        columns = sums.columns_of(own.schema)
        expected = sums.of_pyarrow(own, columns)
        plain = [pyarrow.parquet.ParquetFile(file).read() for file in files]
        frames = [pandas.read_parquet(file, dtype_backend="pyarrow", partitioning=None) for file in files]
        answers = {
            "pyarrow": sums.of_pyarrow(pyarrow.concat_tables(plain), columns),
            "pandas": sums.of_pandas(pandas.concat(frames), columns),
            "polars": sums.of_polars(polars.read_parquet(files, hive_partitioning=False), columns),
            "duckdb": sums.of_duckdb(connection, f"read_parquet({files}, hive_partitioning = false)", columns),
        }
        for reader, answer in answers.items():
            assert sums.same(answer, expected), (name, reader, answer, expected)
        filled += own.num_rows > 0
    assert filled > (150 if layout == "signed" else 40)


def test_all_readers_agree_on_what_a_recording_streams():
    trace, compared = tracequet.open(CHURN), 0
    for name in [name for name in trace.tables if name in ("gc", "gc_moved_range", "trace") or name.endswith("/GCStart")]:
        table = trace[name]
        own = table.to_arrow()
        columns = sums.columns_of(own.schema)
        expected = sums.of_pyarrow(own, columns)
        assert sums.same(sums.of_polars(table.to_polars(), columns), expected), name
        assert sums.same(sums.of_polars(polars.DataFrame(table), columns), expected), name
        relation = duckdb.connect()
        relation.register("streamed", pyarrow.RecordBatchReader.from_stream(table))
        assert sums.same(sums.of_duckdb(relation, "streamed", columns), expected), name
        assert sums.same(sums.of_pandas(table.to_pandas(types_mapper=pandas.ArrowDtype), columns), expected), name
        compared += 1
    assert compared == 4


def test_sums_that_differ_are_seen():
    left = {"a": (3, 7), "b": (2, 1.5)}
    assert sums.same(left, {"a": (3, 7), "b": (2, 1.5 + 1e-12)})
    for right in ({"a": (3, 8), "b": (2, 1.5)}, {"a": (2, 7), "b": (2, 1.5)}, {"a": (3, 7), "b": (2, 1.51)}, {"a": (3, 7)}):
        assert not sums.same(left, right)
