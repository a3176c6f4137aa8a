"""A table of a trace."""

from __future__ import annotations

import datetime
from typing import Any, Callable, Dict, List, Optional, Protocol

from . import _html, _tracequet
from ._errors import UsageError


class Source(Protocol):
    """Where the rows of tables come from: a trace."""

    def _stream(self, table: "Table") -> "_tracequet.Stream":
        """A new stream over the rows of a table."""

    def _collect(self, table: "Table") -> "_tracequet.Batches":
        """All rows of a table. What was lost is a `LossWarning`."""


class Table:
    """A table of a trace, an Arrow stream by the PyCapsule interface: pyarrow, pandas, Polars and DuckDB take it as it
    is.

    Nothing is read before rows are requested, and each request reads the recording again: keep what
    `to_arrow` gives, if it is needed twice.
    """

    def __init__(self, source: Source, name: str, schema: "_tracequet.Schema", columns: Optional[List[str]]) -> None:
        self._source, self.name, self._schema, self._columns = source, name, schema, columns

    @property
    def columns(self) -> List[str]:
        """Names of the columns."""
        names = self._schema.names()
        return names if self._columns is None else [name for name in names if name in self._columns]

    @property
    def types(self) -> Dict[str, str]:
        """The Arrow type of each column. Unit and meaning are in the metadata of the fields of its Arrow schema."""
        chosen = set(self.columns)
        return {name: kind for name, kind in self._schema.columns() if name in chosen}

    def select(self, *columns: str) -> "Table":
        """The same table with these columns only."""
        missing = [name for name in columns if name not in self.columns]
        if missing:
            raise UsageError(f"{self.name}: no column {missing[0]}; there are {', '.join(self.columns)}")
        return Table(self._source, self.name, self._schema, list(columns))

    def __arrow_c_schema__(self) -> Any:
        if self._columns is None:
            return self._schema.__arrow_c_schema__()
        import pyarrow

        return pyarrow.schema([pyarrow.schema(self._schema).field(name) for name in self.columns]).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A new stream over all rows. Memory is bounded: some batches wait, whatever the size of the table."""
        return self._source._stream(self).__arrow_c_stream__(requested_schema)

    def collect(self) -> "_tracequet.Batches":
        """All rows in memory, as Arrow batches. Ctrl+C ends it. What was lost is a `LossWarning`."""
        return self._source._collect(self)

    def to_arrow(self) -> Any:
        """All rows as a `pyarrow.Table`. Nothing is copied."""
        import pyarrow

        return pyarrow.table(self.collect())

    def to_pandas(self, **options: Any) -> Any:
        """All rows as a `pandas.DataFrame`; `options` are those of `pyarrow.Table.to_pandas`."""
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> Any:
        """All rows as a `polars.DataFrame`."""
        import polars

        return polars.DataFrame(self.collect())

    def batches(self) -> Any:
        """The rows as a `pyarrow.RecordBatchReader`, which reads batch by batch."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(self)

    def head(self, rows: int = 10) -> List[Dict[str, Any]]:
        """The first rows as dictionaries. No other library is needed, and the reading ends with the last of them."""
        return self._head(rows, None)

    def _head(self, rows: int, progress: Optional[Callable[[int, int], None]]) -> List[Dict[str, Any]]:
        is_time = [kind.startswith("Timestamp") for kind in self.types.values()]
        columns = self.columns
        found = self._source._stream(self).collect(progress, rows).rows() if rows > 0 else []
        return [
            {name: _time(value) if time else value for name, value, time in zip(columns, row, is_time)} for row in found
        ]

    def __repr__(self) -> str:
        return f"<tracequet table {self.name}: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        described = zip(self._schema.names(), self._schema.docs())
        chosen = set(self.columns)
        columns = [(name, self.types[name], *texts) for name, texts in described if name in chosen]
        try:
            rows: Optional[List[Dict[str, Any]]] = self._head(_html.MOST_ROWS, _html.patience())
        except _html.TooLong:
            rows = None
        return _html.table(self.name, self._schema.doc(), columns, rows)


_START = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def _time(microseconds: Optional[int]) -> Optional[datetime.datetime]:
    """A time; None of one that Python cannot hold."""
    try:
        return None if microseconds is None else _START + datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        return None
