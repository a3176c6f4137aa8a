"""Recordings of .NET processes (.nettrace, .netperf, .etl, .corprof) as Arrow tables.

>>> import tracequet
>>> trace = tracequet.open("app.nettrace")
>>> trace["gc"].to_pandas()
>>> trace.sql("SELECT * FROM gc_summary ORDER BY pause_ms DESC LIMIT 10")
>>> trace.findings

`open` reads recordings without leaving files behind, or a dataset that `convert` wrote. `convert`, `collect`,
`explain`, `heap` and the other functions do what the commands of the program `tracequet` do. `tracequet.mcp` is a
server for agents. `tracequet.spark` has the same for Apache Spark.
"""

from __future__ import annotations

from ._commands import check, collect, convert, diff, explain, export, heap, inspect, schema, stats, survived
from ._errors import DatasetError, Error, Loss, LossWarning, ProcessError, RecordingError, UsageError
from ._findings import Finding, Findings
from ._table import Table
from ._tracequet import __version__
from ._trace import Trace, open

__all__ = [
    "DatasetError",
    "Error",
    "Finding",
    "Findings",
    "Loss",
    "LossWarning",
    "ProcessError",
    "RecordingError",
    "Table",
    "Trace",
    "UsageError",
    "__version__",
    "check",
    "collect",
    "convert",
    "diff",
    "explain",
    "export",
    "heap",
    "inspect",
    "open",
    "schema",
    "stats",
    "survived",
]
