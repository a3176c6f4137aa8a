"""Traces and their tables."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import tempfile
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from . import _commands, _format, _html, _inputs, _tracequet
from ._commands import Path, Time
from ._errors import Loss, UsageError, warn
from ._findings import Findings, Text
from ._table import Table

Progress = Union[bool, None, Callable[[int, int], None]]

# Bytes of memory for what objects retain, as on the command line.
MOST_RETAINED = 4 << 30


class Trace:
    """Recordings, or a dataset: see `open`."""

    def __init__(self, paths: List[str], folder: Optional[str], progress: Progress) -> None:
        self.paths = paths
        self._folders: List[str] = [] if folder is None else [folder]
        self._known: List[Loss] = []
        self._connection: Any = None
        self._progress = progress
        self._finalizer = weakref.finalize(self, _remove, self._folders)

    @property
    def tables(self) -> List[str]:
        """Names of the tables. Those of events are `event/<provider>/<event>`."""
        raise NotImplementedError

    @property
    def diagnostics(self) -> Table:
        """The table of everything that was lost, damaged or not understood."""
        return self["diagnostic"]

    @property
    def warnings(self) -> List[Loss]:
        """The losses in the parts that were read so far."""
        return list(self._known)

    def __getitem__(self, name: str) -> Table:
        return Table(self, name, self._schema(name), None)

    def __contains__(self, name: object) -> bool:
        return name in self.tables

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def _ipython_key_completions_(self) -> List[str]:
        return self.tables

    def sql(self, query: str, **parameters: Any) -> Any:
        """The answer of DuckDB to a query over all tables and views (docs/QUERIES.md), as a `duckdb.DuckDBPyRelation`:
        `.df()`, `.pl()`, `.arrow()`, `.fetchall()`. Payload tables are named in double quotes: `FROM
        "event/<provider>/<event>"`.

        A recording is converted into a temporary directory for the first query: once for all tables of facts, and for
        the payload tables that a query names. It is removed with the trace.
        """
        if self._connection is None:
            try:
                import duckdb
            except ImportError:
                raise UsageError("sql needs DuckDB: pip install duckdb") from None
            self._connection = duckdb.connect()
        self._prepare(self._connection, query)
        return self._connection.sql(query, params=parameters or None)

    @property
    def findings(self) -> Findings:
        """What is wrong, by rules: the table `finding`, and as a sequence its rows, the most important first
        (docs/FINDINGS.md).
        """
        return Findings(self, self._schema("finding"), self._reader_of_findings)

    def explain(self, *, all: bool = False, trace: Optional[str] = None) -> Text:
        """What is wrong, as `tracequet explain` prints it: the most important first, with your own code and the next
        step. `all` shows all rules."""
        arguments = _commands._options({"all": all, "trace": trace})
        path = self._dataset()
        text = _commands.run(["explain", *arguments, "--", path]).stdout.decode("utf-8")
        # The next steps name the files that were opened, not their temporary dataset.
        return Text(text.replace(path, self.paths[0] if len(self.paths) == 1 else "IN"))

    def heap(
        self,
        *,
        type: Optional[str] = None,
        object: Union[int, str, None] = None,
        gc: Optional[int] = None,
        trace: Optional[str] = None,
        memory: Union[int, str, None] = None,
    ) -> Dict[str, Any]:
        """The types of a heap dump and what they retain; with `type` or `object` (its address) also what keeps it
        alive. See `tracequet.heap`."""
        return _commands.heap(self._dataset(), type=type, object=object, gc=gc, trace=trace, memory=memory)

    def export(self, output: Path, *, format: str = "speedscope", what: str = "cpu", **options: Any) -> str:
        """Writes call stacks for other tools, and returns the path of the file. See `tracequet.export`."""
        return _commands.export(self._dataset(), output, format=format, what=what, **options)

    def report(self, output: Path = "report.html", *, overwrite: bool = False, trace: Optional[str] = None) -> str:
        """Writes a recording as one HTML page that opens from disk (docs/REPORT.md), and returns the path of the file.
        With several recordings `trace` is the `trace_id` of one."""
        output = os.fspath(output)
        page = self._facts_reader().report(trace)
        try:
            with io.open(output, "w" if overwrite else "x", encoding="utf-8", newline="") as file:
                file.write(page)
        except FileExistsError:
            raise UsageError(f"{output} exists; overwrite=True replaces it") from None
        return output

    def survived(
        self, gc: int, address: Union[int, str], *, follow: bool = False, trace: Optional[str] = None
    ) -> List[Dict[str, Any]]:
        """What became of the object at `address` in the collection `gc`; with `follow` also in those after it. With
        several recordings `trace` is the `trace_id` of one."""
        return _commands.survived(self._dataset(), gc, address, follow=follow, trace=trace)

    def close(self) -> None:
        """Removes temporary files. The trace cannot be used any more."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._finalizer()

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _schema(self, name: str) -> "_tracequet.Schema":
        raise NotImplementedError

    def _stream(self, table: Table) -> "_tracequet.Stream":
        raise NotImplementedError

    def _prepare(self, connection: Any, query: str) -> None:
        raise NotImplementedError

    def _dataset(self) -> str:
        """A dataset with all tables of facts."""
        raise NotImplementedError

    def _facts_reader(self) -> "_tracequet.Dataset":
        return _tracequet.Dataset(self._dataset())

    def _reader_of_findings(self) -> "_tracequet.Dataset":
        return self._facts_reader()

    def _take_losses(self) -> List[Loss]:
        return []

    def _collect(self, table: Table) -> "_tracequet.Batches":
        shown = _html.progress(self._progress, table.name)
        try:
            batches = self._stream(table).collect(shown)
        finally:
            if shown is not None and hasattr(shown, "done"):
                shown.done()
        warn(self._take_losses(), self._known, stacklevel=5)
        return batches

    def __repr__(self) -> str:
        shown = ", ".join(self.paths[:3]) + (", ..." if len(self.paths) > 3 else "")
        return f"<tracequet trace of {shown}>"


class RecordingTrace(Trace):
    """Recordings, which are read again for each table."""

    def __init__(self, paths: List[str], folder: Optional[str], progress: Progress, filters: Dict[str, Any]) -> None:
        super().__init__(paths, folder, progress)
        self._filters = filters
        self._found: Dict[str, Tuple[str, _tracequet.Schema]] = {}
        self._payloads_found = False
        self._views: Dict[str, str] = {}
        self._views_made = False
        self._reader = self._open(paths)
        # Reads the headers: what is no recording is an error now, or with several of them a warning.
        found, failed = self._find(["gc"])
        bad = {path for path, _ in failed}
        if failed:
            if len(bad) == len(paths):
                # All of them: the first says why.
                self._open(paths[:1]).tables(["gc"])
            warn((Loss(path, "unreadable", "error", 1, 1, why, None) for path, why in failed), self._known, stacklevel=5)
            self.paths = [path for path in paths if path not in bad]
            self._reader = self._open(self.paths)

    def _open(self, paths: List[str]) -> "_tracequet.Recordings":
        return _tracequet.Recordings(paths, **self._filters)

    def _find(self, names: Optional[List[str]]) -> Any:
        found, failed = self._reader.tables(names)
        extra = ("trace", "diagnostic")
        for name, selection, schema in found:
            if names is None or name in names or name.startswith("event/") or name in extra:
                self._found[name] = (selection, schema)
        return found, failed

    @property
    def tables(self) -> List[str]:
        if not self._payloads_found:
            self._find(None)
            self._payloads_found = True
        return list(self._found)

    def _schema(self, name: str) -> "_tracequet.Schema":
        return self._entry(name)[1]

    def _entry(self, name: str) -> Tuple[str, "_tracequet.Schema"]:
        if name not in self._found:
            if not name.startswith("event/"):
                self._find([name])  # An unknown name is an error that lists those there are.
            else:
                self.tables
        if name not in self._found:
            raise UsageError(f"no table {name}; trace.tables lists them")
        return self._found[name]

    def _stream(self, table: Table) -> "_tracequet.Stream":
        selection, schema = self._entry(table.name)
        return self._reader.stream(table.name, selection, schema, table._columns)

    def _take_losses(self) -> List[Loss]:
        return [Loss(*loss) for loss in self._reader.take_losses()]

    def _convert(self, tables: List[str], more: Sequence[str] = ()) -> str:
        """A temporary dataset with these tables."""
        folder = tempfile.mkdtemp(prefix="tracequet-")
        self._folders.append(folder)
        output = os.path.join(folder, "dataset")
        options: Dict[str, Any] = {"layout": "hive" if self._filters["hive"] else None, "manifest": self._filters["manifests"]}
        options["symbols"] = self._filters["symbols"]
        # A value of this option stands behind an equals sign.
        dominators = [] if self._filters["dominators"] is None else [f"--dominators={self._filters['dominators']}"]
        for option, time in (("from", self._filters["start_ns"]), ("to", self._filters["end_ns"])):
            options[option] = None if time is None else f"{time}ns"
        chosen = ",".join(tables)
        arguments = ["convert", "--output", output, "--json", "--tables", chosen, *more, *dominators, *_commands._options(options)]
        for option, values in (("--providers", "providers"), ("--process", "processes")):
            if self._filters[values]:
                arguments += [option, ",".join(self._filters[values])]
        summary = _commands.summary_of(_commands.run([*arguments, "--", *self.paths]).stdout)
        warn(_commands.losses(summary), self._known, stacklevel=6)
        return output

    def _dataset(self) -> str:
        if "" not in self._views:
            names = [table["name"] for table in _commands.schema() if table["name"] != "event_header"]
            self._views[""] = self._convert(names)
        return self._views[""]

    def _reader_of_findings(self) -> "_tracequet.Dataset":
        # They are made of far fewer events than all tables.
        if "" not in self._views and "finding" not in self._views:
            self._views["finding"] = self._convert(["finding"], ["--lifetimes=1G"])
        return _tracequet.Dataset(self._views.get("") or self._views["finding"])

    def _prepare(self, connection: Any, query: str) -> None:
        if not self._views_made:
            self._views_made = True
            _views(connection, self._dataset())
        payloads = [name for name in re.findall(r'"(event/[^"]+)"', query) if name not in self._views]
        if not payloads:
            return
        selected = sorted({self._entry(name)[0] for name in payloads})
        output = self._convert(selected)
        _views(connection, output, only_events=True)
        for name in payloads:
            self._views[name] = output

    def inspect(self) -> List[Dict[str, Any]]:
        """What `tracequet.inspect` says of each recording."""
        return [one for path in self.paths for one in _commands.inspected(path, self._filters["manifests"])]

    def _repr_html_(self) -> str:
        found = None
        # To make the findings is to read the recordings.
        if len(self.paths) <= _html.MOST_INSPECTED and sum(map(os.path.getsize, self.paths)) <= _html.MOST_READ:
            found = _html.shown_findings(self.findings)
        return _html.recordings(self.paths, self._known, found)


class DatasetTrace(Trace):
    """A dataset that `convert` wrote."""

    def __init__(self, path: str, progress: Progress) -> None:
        super().__init__([path], None, progress)
        self._reader = _tracequet.Dataset(path)
        self._views_made = False

    @property
    def tables(self) -> List[str]:
        return [name for name, _, _ in self._reader.tables()]

    @property
    def recordings(self) -> List[Dict[str, Any]]:
        """The recordings that the dataset was made of."""
        names = ("trace_id", "path", "size_bytes", "event_count", "dropped_event_count", "complete")
        return [dict(zip(names, recording)) for recording in self._reader.recordings()]

    def _is_arrow(self) -> bool:
        with open_text(os.path.join(self.paths[0], _format.MANIFEST)) as manifest:
            return json.load(manifest).get("format") == "arrow"

    def _schema(self, name: str) -> "_tracequet.Schema":
        if name not in self.tables:
            raise UsageError(f"no table {name} in the dataset; there are {', '.join(self.tables)}")
        return self._reader.schema(name)

    def _stream(self, table: Table) -> "_tracequet.Stream":
        return self._reader.stream(table.name, table._schema, table._columns)

    def _prepare(self, connection: Any, query: str) -> None:
        path = self.paths[0]
        if os.path.isfile(os.path.join(path, "views.sql")) and not self._is_arrow():
            if not self._views_made:
                _views(connection, path)
                self._views_made = True
            return
        # DuckDB reads Arrow files with an extension only: the tables that are named are read into memory, without
        # views.
        for name in self.tables:
            if re.search(rf"(?<![\w/]){re.escape(name)}(?![\w/])", query, re.IGNORECASE):
                connection.register(name, self[name].to_arrow())

    def _dataset(self) -> str:
        return self.paths[0]

    def _repr_html_(self) -> str:
        found = _html.shown_findings(self.findings) if "finding" in self.tables else None
        return _html.dataset(self.paths[0], self.recordings, self._reader.tables(), found)


def _views(connection: Any, dataset: str, only_events: bool = False) -> None:
    """Makes the views of a dataset, whose script names files relative to its directory."""
    with open_text(os.path.join(dataset, "views.sql")) as script:
        text = script.read()
    if only_events:
        # The views of facts are those of the whole dataset already.
        lines = [line for line in text.splitlines() if line.startswith('CREATE OR REPLACE VIEW "event/')]
        text = "\n".join(lines)
    root = os.path.abspath(dataset).replace("'", "''")
    text = re.sub(r"read_parquet\('", lambda _: f"read_parquet('{root}/", text)
    connection.execute(text)


def _remove(folders: List[str]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def open_text(path: str) -> Any:
    """The built-in `open`, whose name is taken here."""
    return io.open(path, encoding="utf-8")


def open(
    path: Union[Path, Sequence[Path]],
    *,
    providers: Optional[Sequence[str]] = None,
    processes: Optional[Sequence[Union[str, int]]] = None,
    start: Optional[Time] = None,
    end: Optional[Time] = None,
    manifests: Optional[Sequence[Path]] = None,
    symbols: Optional[Sequence[Path]] = None,
    dominators: Union[bool, int] = False,
    address_type: str = "uint64",
    progress: Progress = None,
) -> Trace:
    """Opens recordings or a dataset.

    `path` is a recording (.nettrace, .netperf, .etl, .corprof, packed or not), a list of them, a directory of them, a
    pattern such as `night/*.nettrace`, an address (http, https, s3 and what pyarrow knows; it is copied into a
    temporary directory), or the directory of a dataset. Several recordings have a column `trace_id` in each table, and
    one that cannot be read is a `LossWarning`.

    `providers` and `processes` (names or ids) restrict what is read, `start` and `end` too: times since the start of
    the recording in seconds, as a `timedelta`, or as a text such as `1m30s`. `manifests` describe events of an .etl.
    `symbols` are directories with symbols (PDBs, ELF files), which give frames of call stacks their source lines and
    native ones names. `dominators=True`, or bytes of memory for it, fills the table `heap_dominator`.
    `address_type="int64"` gives unsigned 64-bit numbers as signed ones. `progress` is called with bytes read and bytes
    in all; True shows a line, and in notebooks that is the default.

    Raises `RecordingError` with path and offset when a file is no recording, `OSError` when it cannot be read.
    """
    if address_type not in ("uint64", "int64"):
        raise UsageError(f"address_type {address_type!r}, expected uint64 or int64")
    paths = _commands.texts(path)
    if not paths:
        raise UsageError("no recording was given")
    chosen = (providers, processes, start, end, manifests, symbols, dominators or None)
    if len(paths) == 1 and os.path.isdir(paths[0]) and _inputs.is_dataset(paths[0]):
        if any(value is not None for value in chosen) or address_type != "uint64":
            raise UsageError(f"{paths[0]}: a dataset is read as it was written; choose rows by sql, or columns by select")
        return DatasetTrace(paths[0], progress)
    start_ns, end_ns = _commands.nanoseconds(start), _commands.nanoseconds(end)
    if start_ns is not None and end_ns is not None and start_ns >= end_ns:
        raise UsageError(f"nothing lies between start {start!r} and end {end!r}, expected start to be less")
    paths, folder = _inputs.fetch(paths)
    try:
        recordings, count = _inputs.expand(paths)
        filters = {
            "providers": _commands.texts(providers),
            "processes": _commands.texts(processes),
            "manifests": _commands.texts(manifests),
            "symbols": _commands.texts(symbols),
            "dominators": MOST_RETAINED if dominators is True else int(dominators) or None,
            "start_ns": start_ns,
            "end_ns": end_ns,
            "signed": address_type == "int64",
            "hive": count > 1,
        }
        return RecordingTrace(recordings, folder, progress, filters)
    except BaseException:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
