"""A server for agents by the Model Context Protocol, over standard input and output: `tracequet-mcp FOLDER...`
(docs/AGENTS.md).

It reads recordings and datasets below the folders that it was started with, and nothing else: paths are resolved first,
symbolic links, too. Answers are small: they have pages. Queries run in processes of their own that read no file and
have bounded memory and time (`_sandbox.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import OrderedDict
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from . import __version__, _commands, _findings, _inputs, _sandbox, _tracequet
from ._errors import Error, LossWarning, UsageError

# Rows of a page, letters of a value, and bytes of an answer in a message of the protocol, whatever is in it.
MOST_ROWS = 200
MOST_LETTERS = 1_000
MOST_BYTES = 40_000
# Files that a folder lists at a time, and entries of a dataset that are looked at.
MOST_LISTED = 100
MOST_ENTRIES = 1_000_000
# Names of tables, views or columns that a schema lists at a time.
MOST_NAMES = 500
# Rows of each list of a difference.
MOST_DIFFERENCES = 30
# Recordings that stay converted, and seconds that a conversion or a heap may take.
MOST_KEPT = 4
MOST_SECONDS = 600
# Bytes that a query may take, and the graph of a heap.
QUERY_MEMORY = 1 << 30
HEAP_MEMORY = "4G"

INSTRUCTIONS = """\
Reads recordings of .NET processes (.nettrace, .etl, .corprof, .gcdump) and the datasets made of them. Begin with `open` without a path, \
which lists what there is, then `explain`: what is wrong, with queries that prove it. `schema` lists tables and views, then `sql` asks \
them in DuckDB's SQL. Times are nanoseconds since the recording began. What is null was not recorded."""


class _Conversion:
    """A recording that is converted, how many questions read it, and whether it goes when none does."""

    def __init__(self, output: str) -> None:
        self.output = output
        self.readers = 0
        self.is_left = False
        # Questions about one recording wait for its conversion; those about others do not.
        self.lock = threading.Lock()
        self.is_ready = False


class Server:
    """What the tools do, apart from the protocol."""

    def __init__(self, folders: Sequence[str], seconds: int = 20) -> None:
        self.roots = [os.path.realpath(folder) for folder in folders]
        for folder in self.roots:
            if not os.path.isdir(folder):
                raise UsageError(f"{folder} is no folder")
        self.seconds = seconds
        self._temporary = tempfile.TemporaryDirectory(prefix="tracequet-mcp-")
        self._kept: "OrderedDict[Tuple[str, int, int], _Conversion]" = OrderedDict()
        self._converted = 0
        # For the fields above. Nothing that may wait runs under it.
        self._lock = threading.Lock()

    def close(self) -> None:
        """Removes what was converted."""
        self._temporary.cleanup()

    def open(self, path: str = "", offset: int = 0) -> Dict[str, Any]:
        """Look at a recording or a dataset: its process, length, losses, tables with rows, and how many findings there
        are. Without a path, or with a folder: the recordings, datasets and folders in it."""
        if path == "" and len(self.roots) > 1:
            return {"folders": self.roots}
        place = self._resolved(path or self.roots[0])
        if os.path.isdir(place) and not _inputs.is_dataset(place):
            return self._listed(place, max(offset, 0))
        with self._dataset(place) as dataset:
            return self._opened(place, dataset, max(offset, 0))

    def _opened(self, place: str, dataset: str, offset: int) -> Dict[str, Any]:
        reader = _tracequet.Dataset(dataset)
        names = ("trace_id", "path", "size_bytes", "event_count", "dropped_event_count", "complete")
        recordings = [dict(zip(names, recording)) for recording in reader.recordings()]
        tables = sorted(((rows, name) for name, rows, _ in reader.tables() if rows), reverse=True)
        found: Dict[str, Any] = {
            "path": place,
            "recordings": [],
            "tables": {_short(name): rows for rows, name in tables[:MOST_LISTED]},
        }
        if not os.path.isdir(place):
            inspected = json.loads(self._run(["inspect", "--json", "--", place]))
            chosen = ("container", "duration_ns", "command_line", "processes", "complete")
            found.update({key: inspected[key] for key in chosen if inspected.get(key)})
            found["processes"] = _shortened(found.get("processes", [])[:MOST_LISTED])
            found["command_line"] = _short(found.get("command_line") or "")
        if len(recordings) <= MOST_LISTED:
            counts: Dict[str, int] = {}
            for _, findings in reader.findings():
                for finding in findings:
                    counts[finding["verdict"]] = counts.get(finding["verdict"], 0) + 1
            found["findings"] = counts
        return _paged(found, {"recordings": recordings}, offset, MOST_LISTED)

    def explain(self, path: str, trace: str = "", all: bool = False, offset: int = 0) -> Dict[str, Any]:
        """What is wrong in a recording or dataset: summary says where time and memory went, with the own methods that have
        most; then the findings, the most important first, each with a title and a sentence,
        where it is (user method, subject), the advice what to change, the query that gives its rows (for the tool sql),
        and a command that shows more. all: also rules that find nothing, or could not be judged. trace: only the
        recording with this trace_id of a dataset."""
        with self._dataset(self._resolved(path)) as dataset:
            reader = _tracequet.Dataset(dataset)
            rows = _findings.of(reader.findings(trace or None))
            # The pages behind the first one have findings alone.
            summaries = reader.summaries(trace or None) if offset <= 0 and len(reader.recordings()) <= MOST_LISTED else []
        wanted = [row for row in rows if all or row.verdict in ("warning", "info")]
        page = [{key: value for key, value in row._asdict().items() if value is not None} for row in wanted]
        others: Dict[str, List[str]] = {}
        for row in rows:
            if row.verdict not in ("warning", "info") and row.rule not in others.setdefault(row.verdict, []):
                others[row.verdict].append(row.rule)
        found: Dict[str, Any] = {"other_rules": _shortened(others)}
        if summaries:
            found["summary"] = {key: _shortened(json.loads(summary)) for key, summary in summaries}
        return _paged(found, {"findings": page}, max(offset, 0), 20)

    def schema(self, path: str, name: str = "", offset: int = 0) -> Dict[str, Any]:
        """The tables and views of a recording or dataset with what a row is; with a name the columns of that table or
        view with type, unit and meaning. Names of tables of events have slashes: put them into double quotes in SQL."""
        with self._dataset(self._resolved(path)) as dataset:
            return self._schema(dataset, name, max(offset, 0))

    def _schema(self, dataset: str, name: str, offset: int) -> Dict[str, Any]:
        reader = _tracequet.Dataset(dataset)
        views = _views(dataset)
        tables = {table: rows for table, rows, _ in reader.tables()}
        if not name:
            docs = {table["name"]: table["doc"] for table in _schema()}
            filled = {table: rows for table, rows in tables.items() if rows}
            lists: Dict[str, List[Any]] = {
                "tables": [(table, f"{rows} rows. {docs.get(table, '')}".strip()) for table, rows in filled.items()],
                "tables_without_rows": [table for table in tables if table not in filled and not table.startswith("event/")],
                "views": [(view, doc) for view, (doc, _) in views.items()],
            }
            found = _paged({}, lists, offset, MOST_NAMES)
            return {**found, "tables": dict(found["tables"]), "views": dict(found["views"])}
        if name in tables:
            schema = reader.schema(name)
            columns = [
                {"name": own, "type": kind, **{key: text for key, text in zip(("unit", "doc"), texts) if text}}
                for (own, kind), texts in zip(schema.columns(), schema.docs())
            ]
            found = {"table": _short(name), "doc": _short(schema.doc() or ""), "rows": tables[name]}
            return _paged(found, {"columns": columns}, offset, MOST_NAMES)
        if name not in views:
            raise UsageError(f"no table and no view {_short(name)}; schema without a name lists them")
        doc, is_macro = views[name]
        if is_macro:
            return {"macro": _short(name), "doc": _short(doc)}
        answer = self._asked(dataset, f'SELECT * FROM "{_quoted(name, chr(34))}" LIMIT 0', 0, 1, {"is_schema": True})
        columns = [{"name": own, "type": kind} for own, kind in zip(answer["columns"], answer["types"])]
        return _paged({"view": _short(name), "doc": _short(doc)}, {"columns": columns}, offset, MOST_NAMES)

    def sql(self, path: str, query: str, rows: int = 50, offset: int = 0) -> Dict[str, Any]:
        """Answers one SELECT in DuckDB's SQL over the tables and views of a recording or dataset (the tool schema lists
        them). Read only. next_offset is where the next page begins: repeat the query with that offset, and ORDER BY in
        it. Aggregate in SQL instead of reading many pages."""
        if len(query) > 20_000:
            raise UsageError("the query is longer than 20000 letters")
        with self._dataset(self._resolved(path)) as dataset:
            return self._asked(dataset, query, max(offset, 0), min(max(rows, 1), MOST_ROWS))

    def stack(self, path: str, callsite_id: int, trace: str = "") -> Dict[str, Any]:
        """The frames of a call stack by its callsite_id, the innermost first. trace: the trace_id, in a dataset of
        several recordings.
        """
        key = f"'{_quoted(trace)}', " if trace else ""
        columns = "depth, name, assembly, kind, file, line"
        query = f"SELECT {columns} FROM stack({key}{int(callsite_id)}) ORDER BY depth DESC"
        with self._dataset(self._resolved(path)) as dataset:
            return self._asked(dataset, query, 0, MOST_ROWS)

    def heap(self, path: str, type: str = "", object: str = "", gc: int = 0, trace: str = "") -> Dict[str, Any]:
        """A heap dump: the types that retain most; with a type or an object (its address) the shortest path from a root
        to it, and its dominators: what keeps it alive. gc: the collection that walked the heap, by default the last."""
        chosen: Dict[str, Any] = {"type": type or None, "object": object or None, "gc": gc or None, "trace": trace or None}
        chosen["memory"] = HEAP_MEMORY
        with self._dataset(self._resolved(path)) as dataset:
            found = json.loads(self._run(["heap", "--json", *_commands._options(chosen), "--", dataset]))
        types = found.pop("types")
        found["types_in_all"] = len(types)
        found = _shortened(_with_short_paths(found, 30))
        answer = _paged(found, {"types": types[: 5 if type or object else 30]}, 0, 30)
        answer.pop("next_offset", None)
        return answer

    def diff(self, base: str, new: str, by: str = "own", all: bool = False, rows: int = 10, offset: int = 0) -> Dict[str, Any]:
        """What changed from one recording or dataset to another, the largest change first: CPU time, allocations,
        exceptions, locks and waits by your own methods, types on the heap with what holds those that grew, findings,
        metrics. incomparable: why the two cannot be compared. by: own, method (also the innermost method) or type. all:
        also changes that are noise. rows and offset: of each list."""
        rows = min(max(rows, 1), MOST_DIFFERENCES)
        offset = max(offset, 0)
        with self._dataset(self._resolved(base)) as old, self._dataset(self._resolved(new)) as other:
            options = _commands._options({"by": by, "memory": HEAP_MEMORY})
            found = json.loads(self._run(["diff", "--json", *options, "--", old, other]))
        lists: Dict[str, List[Any]] = {}

        def keep(place: str, holder: Dict[str, Any], name: str) -> None:
            """Takes a list out of the difference, to put a page of it back."""
            lists[place] = [change for change in holder[name] if all or not change.get("is_noise")]

        places: List[Tuple[str, Dict[str, Any], str]] = [(name, found, name) for name in ("base", "new", "findings", "metrics")]
        places += [(f"sections {n}", section, "rows") for n, section in enumerate(found["sections"])]
        heap = found["heap"] or {}
        places += [(f"heap {name}", heap, name) for name in ("base", "new", "types", "held") if name in heap]
        for place, holder, name in places:
            keep(place, holder, name)
        lists["heap held"] = [_with_short_paths(held, 10) for held in lists.get("heap held", [])]
        for place, holder, name in places:
            holder[name] = []
        found["notes"] = found["notes"][:MOST_LISTED]
        answer = _paged({"found": _shortened(found)}, lists, offset, rows)
        found = answer.pop("found")
        heap = found["heap"] or {}
        for name in ("base", "new", "findings", "metrics"):
            found[name] = answer.pop(name)
        for n, section in enumerate(found["sections"]):
            section["rows"] = answer.pop(f"sections {n}")
        for name in ("base", "new", "types", "held"):
            page = answer.pop(f"heap {name}", [])
            if name in heap:
                heap[name] = page
        return {**found, **answer}

    def _resolved(self, path: str) -> str:
        """The file or folder that a path names, if it lies below a root. Relative paths are those below any of them."""
        if "\0" in path or _inputs.is_address(path):
            raise UsageError("a path of a file or folder is expected")
        tried = [path] if os.path.isabs(path) else [os.path.join(root, path) for root in self.roots]
        for one in tried:
            resolved = os.path.realpath(one)
            # Outside nothing is said, not even whether it exists.
            if any(_is_inside(root, resolved) for root in self.roots) and os.path.exists(resolved):
                return resolved
        raise UsageError(f"{path}: there is no such file in the folders that this server may read: {', '.join(self.roots)}")

    def _listed(self, folder: str, offset: int) -> Dict[str, Any]:
        found: List[Dict[str, Any]] = []
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if not any(_is_inside(root, os.path.realpath(path)) for root in self.roots):
                continue
            if os.path.isdir(path):
                kind = "dataset" if _inputs.is_dataset(path) else "folder"
                found.append({"name": name, "kind": kind})
            elif _tracequet.is_recording_name(path) and os.path.isfile(path):
                found.append({"name": name, "kind": "recording", "bytes": os.path.getsize(path)})
        return _paged({"folder": folder}, {"entries": found}, offset, MOST_LISTED)

    @contextlib.contextmanager
    def _dataset(self, place: str) -> Iterator[str]:
        """The dataset at a resolved path, or one that is made of the recording there and kept for a while: at least as
        long as it is read."""
        if os.path.isdir(place):
            if not _inputs.is_dataset(place):
                raise UsageError(f"{place} is a folder, expected a recording or a dataset")
            self._look_for_links(place)
            yield place
            return
        conversion = self._taken(place)
        try:
            with conversion.lock:
                if not conversion.is_ready:
                    self._run(["convert", "--output", conversion.output, "--json", "--", place])
                    conversion.is_ready = True
            yield conversion.output
        finally:
            with self._lock:
                conversion.readers -= 1
                if not conversion.is_ready:
                    # The next question tries again.
                    self._leave(conversion)
                is_over = conversion.is_left and conversion.readers == 0
            if is_over:
                _remove(os.path.dirname(conversion.output))

    def _taken(self, place: str) -> _Conversion:
        """The conversion of a recording, with one more who reads it. Those that were not asked for longest are left."""
        status = os.stat(place)
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(f"{place} is no file and no folder: a pipe or a device is not read")
        key = (place, status.st_size, status.st_mtime_ns)
        unread: List[_Conversion] = []
        with self._lock:
            conversion = self._kept.get(key)
            if conversion is None:
                self._converted += 1
                conversion = _Conversion(os.path.join(self._temporary.name, str(self._converted), "dataset"))
                self._kept[key] = conversion
            self._kept.move_to_end(key)
            conversion.readers += 1
            while len(self._kept) > MOST_KEPT:
                oldest = next(iter(self._kept.values()))
                self._leave(oldest)
                if oldest.readers == 0:
                    unread.append(oldest)
        for one in unread:
            _remove(os.path.dirname(one.output))
        return conversion

    def _leave(self, conversion: _Conversion) -> None:
        """Makes the next question about a recording convert it again. The caller holds the lock."""
        conversion.is_left = True
        for key, kept in list(self._kept.items()):
            if kept is conversion:
                del self._kept[key]

    def _look_for_links(self, dataset: str) -> None:
        """Refuses a dataset with a symbolic link that leads out of the roots."""
        seen = 0
        for folder, folders, files in os.walk(dataset):
            seen += len(folders) + len(files)
            if seen > MOST_ENTRIES:
                raise UsageError(f"{dataset} has more than {MOST_ENTRIES} files")
            for name in folders + files:
                path = os.path.join(folder, name)
                if os.path.islink(path) and not any(_is_inside(root, os.path.realpath(path)) for root in self.roots):
                    raise UsageError(f"{path} leads out of the folders that this server may read")
                # To open a pipe waits for its other end.
                if name in files and os.path.exists(path) and not os.path.isfile(path):
                    raise UsageError(f"{path} is no file and no folder: a pipe or a device is not read")

    def _run(self, arguments: List[str]) -> bytes:
        return _commands.run(arguments, seconds=MOST_SECONDS).stdout

    def _asked(
        self, dataset: str, query: str, offset: int, rows: int, more: Optional[Dict[str, Any]] = None
    ) -> Dict[str, Any]:
        """The answer of a process that may do little."""
        request = {
            "dataset": dataset,
            "query": query,
            "offset": offset,
            "rows": rows,
            "letters": MOST_LETTERS,
            "bytes": MOST_BYTES,
            "memory": QUERY_MEMORY,
            "seconds": self.seconds,
            **(more or {}),
        }
        # The file alone: it needs nothing else of this package.
        command = [sys.executable, "-I", os.path.abspath(_sandbox.__file__)]
        try:
            done = subprocess.run(
                command, input=json.dumps(request).encode(), capture_output=True, timeout=self.seconds, cwd=self._temporary.name
            )
        except subprocess.TimeoutExpired:
            raise UsageError(f"the query takes more than {self.seconds} seconds and was ended") from None
        try:
            answer = json.loads(done.stdout)
        except json.JSONDecodeError:
            raise UsageError("the query takes more memory or time than it may, and was ended") from None
        if "error" in answer:
            raise UsageError(_short(answer["error"]))
        return answer


def _is_inside(root: str, path: str) -> bool:
    try:
        _sandbox.inside(root, path)
    except PermissionError:
        return False
    return True


def _paged(found: Dict[str, Any], lists: Dict[str, List[Any]], offset: int, most: int) -> Dict[str, Any]:
    """An answer with a page of each list: up to `most` elements from `offset` on, as far as they fit into the answer.
    `next_offset` is where the next page begins, if there is one. Fields beside the lists that do not fit are left out,
    and named."""
    found = _fitting(found)
    pages: Dict[str, List[Any]] = {name: [] for name in lists}
    size = _size({**found, **pages})
    place = offset
    while place < offset + most:
        row = {name: _shortened(all[place]) for name, all in lists.items() if place < len(all)}
        if not row:
            break
        size += sum(_size(element) + 2 for element in row.values())
        if size > MOST_BYTES:
            if place > offset:
                break
            # The first element is given, as much of it as fits: otherwise no page would follow.
            row = {name: _fitting(element, MOST_BYTES // (2 * len(row))) for name, element in row.items()}
        for name, element in row.items():
            pages[name].append(element)
        place += 1
    answer = {**found, **pages}
    return {**answer, "next_offset": place} if any(place < len(all) for all in lists.values()) else answer


def _fitting(value: Any, most: int = MOST_BYTES // 2) -> Any:
    """What fits of a value: the smallest fields of an object, and the first elements of a list."""
    if _size(value) <= most:
        return value
    if isinstance(value, dict):
        kept: Dict[str, Any] = {}
        left: List[str] = []
        for key in sorted(value, key=lambda key: _size(value[key])):
            share = most - _size(kept) - 200
            one = _fitting(value[key], share) if share > 0 else None
            if one is not None and _size({key: one}) <= share:
                kept[key] = one
            else:
                left.append(key[:50])
        kept = {key: kept[key] for key in value if key in kept}
        return {**kept, "left_out": left[:3] + ([f"{len(left) - 3} more"] if len(left) > 3 else [])} if left else kept
    if isinstance(value, (list, tuple)):
        elements: List[Any] = []
        size = 60
        for element in value:
            size += _size(element) + 2
            if size > most:
                break
            elements.append(element)
        return [*elements, f"... {len(value) - len(elements)} more"]
    return f"{str(value)[: max(most // 12, 1)]}..." if isinstance(value, str) else None


def _size(value: Any) -> int:
    """Bytes of a value in a message of the protocol: JSON within a text of JSON."""
    return len(json.dumps(json.dumps(value)))


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > MOST_LETTERS:
        return f"{value[:MOST_LETTERS]}… ({len(value)} letters)"
    return value


def _shortened(value: Any) -> Any:
    """A value with all its texts short, and its keys."""
    if isinstance(value, dict):
        return {_short(key): _shortened(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shortened(one) for one in value]
    return _short(value)


def _with_short_paths(found: Dict[str, Any], kept: int) -> Dict[str, Any]:
    """Leaves the first and the last objects of long paths."""
    found = dict(found)
    for steps in ("shortest_path", "dominators"):
        path = found.get(steps)
        if path is not None and len(path) > 2 * kept:
            found[f"{steps}_length"] = len(path)
            found[steps] = path[:kept] + path[-kept:]
    return found


def _quoted(text: str, quote: str = "'") -> str:
    return text.replace(quote, 2 * quote)


def _remove(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


_SCHEMA: List[Dict[str, Any]] = []


def _schema() -> List[Dict[str, Any]]:
    """All tables with their meaning, which do not change."""
    if not _SCHEMA:
        _SCHEMA.extend(_commands.schema())
    return _SCHEMA


def _views(dataset: str) -> Dict[str, Tuple[str, bool]]:
    """The views of a dataset with the comments before them, and whether each is a macro, which takes arguments."""
    lines = _sandbox.script(dataset).splitlines()
    found: Dict[str, Tuple[str, bool]] = {}
    comments: List[str] = []
    for line in lines:
        made = _sandbox.MADE.match(line)
        if line.startswith("--"):
            if not line.startswith("-- needs:"):
                comments.append(line[2:].strip())
        elif made:
            if made["name"]:
                found.setdefault(made["name"], (" ".join(comments), made["kind"] == "MACRO"))
            comments = []
    return found


def server(folders: Sequence[str], seconds: int = 20) -> Tuple[Any, Server]:
    """The server of the protocol, and what its tools do."""
    import functools

    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations

    own = Server(folders, seconds)
    made: Any = MCPServer("tracequet", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")

    def careful(tool: Callable[..., Any]) -> Callable[..., Any]:
        """What goes wrong is an answer that says so, and no stack of calls of this program."""

        @functools.wraps(tool)
        def call(*arguments: Any, **named: Any) -> Any:
            try:
                # As a text alone: by itself the SDK sends an object twice, as a text with indents and as a structure.
                answer = json.dumps(tool(*arguments, **named))
            except (Error, OSError, ValueError) as error:
                raise ToolError(_short(str(error))) from None
            if len(json.dumps(answer)) > MOST_BYTES:
                raise ToolError(f"the answer takes more than {MOST_BYTES} bytes: ask for less")
            return answer

        # The text is no structure: what the tool returns has no schema.
        call.__annotations__ = {**tool.__annotations__, "return": str}
        return call

    for tool in (own.open, own.explain, own.schema, own.sql, own.stack, own.heap, own.diff):
        made.tool(structured_output=False, annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))(careful(tool))
    return made, own


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="tracequet-mcp",
        description="Serves recordings of .NET processes to agents by the Model Context Protocol, over standard input and output.",
    )
    parser.add_argument("folder", nargs="+", help="folder whose recordings and datasets may be read; nothing outside is")
    parser.add_argument("--seconds", type=int, default=20, help="how long a query may take [default: 20]")
    parser.add_argument("--version", action="version", version=f"tracequet-mcp {__version__}")
    given = parser.parse_args(arguments)
    # What is lost is in the answers; standard output is the protocol's.
    warnings.simplefilter("ignore", LossWarning)
    try:
        made, own = server(given.folder, given.seconds)
    except ImportError:
        sys.exit("tracequet-mcp: the package mcp is missing: pip install 'tracequet[mcp]' (Python 3.10 or later)")
    except UsageError as error:
        sys.exit(f"tracequet-mcp: {error}")
    try:
        made.run()
    except KeyboardInterrupt:
        pass
    finally:
        own.close()


if __name__ == "__main__":
    main()
