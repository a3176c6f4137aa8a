"""Lets DuckDB, pyarrow and polars read a number, a text and a word of each row, whose values are known.

read_varied.py FILE.parquet DISTINCT
"""

import sys

import duckdb
import polars
import pyarrow.parquet

path, distinct = sys.argv[1], int(sys.argv[2])
numbers = [None if row % 10 == 9 else row * 7919 % distinct for row in range(20_000)]
texts = [None if number is None else f"name {number}" for number in numbers]
wanted = list(zip(numbers, texts, texts))
table = pyarrow.parquet.read_table(path)
found = {
    "DuckDB": duckdb.sql(f"FROM read_parquet('{path}')").fetchall(),
    "pyarrow": list(zip(*(column.to_pylist() for column in table.columns))),
    "polars": polars.read_parquet(path).rows(),
}
for reader, rows in found.items():
    assert rows == wanted, f"{reader}: {[pair for pair in zip(rows, wanted) if pair[0] != pair[1]][:3]}"
print(f"{len(wanted)} rows of {distinct} values, the same for {', '.join(found)}")
