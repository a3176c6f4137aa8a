"""Recordings of .NET processes (.nettrace, .netperf, .etl, .corprof) as Arrow tables.

>>> import tracequet
>>> trace = tracequet.open("app.nettrace")
>>> trace["gc"].to_pandas()
>>> trace.sql("SELECT * FROM gc_summary ORDER BY pause_ms DESC LIMIT 10")

`open` reads recordings without leaving files behind, or a dataset that `convert` wrote. `convert`, `inspect`, `survived` and
`schema` do what the commands of the program `tracequet` do. `tracequet.spark` has the same for Apache Spark.
"""

from __future__ import annotations

from ._commands import check, convert, inspect, schema, stats, survived
from ._errors import DatasetError, Error, Loss, LossWarning, ProcessError, RecordingError, UsageError
from ._tracequet import __version__
from ._trace import Table, Trace, open

__all__ = [
    "DatasetError",
    "Error",
    "Loss",
    "LossWarning",
    "ProcessError",
    "RecordingError",
    "Table",
    "Trace",
    "UsageError",
    "__version__",
    "check",
    "convert",
    "inspect",
    "open",
    "schema",
    "stats",
    "survived",
]
