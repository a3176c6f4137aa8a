"""tracequet on Apache Spark 4: recordings as a data source, and a job that converts thousands of recordings into one
dataset.

>>> import tracequet.spark
>>> spark.dataSource.register(tracequet.spark.TraceDataSource)
>>> spark.read.format("tracequet").option("table", "gc").load("s3a://recordings/night")
>>> tracequet.spark.convert(spark, "/mnt/recordings", "/mnt/lake")

The package has to be installed where the executors run. docs/SPARK.md has the options and the types.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from . import _commands, _format, _inputs, _stores, _tracequet
from ._errors import Error, RecordingError, UsageError

__all__ = ["TraceDataSource", "convert"]

# Enough of a recording for its header and the names of its tables of facts.
_HEAD = 4 << 20


def _is_local(path: str) -> bool:
    return not _inputs.is_address(path) or path.startswith("file:")


def _local(path: str) -> str:
    return re.sub(r"^file:(//[^/]*)?", "", path)


def _recordings(paths: Sequence[str]) -> List[str]:
    """The recordings of paths and addresses."""
    found: List[str] = []
    for path in paths:
        if _is_local(path):
            found += _inputs.expand([_local(path)])[0]
        elif path.startswith(("http://", "https://")):
            found.append(path)
        else:
            below = _stores.listed(path)
            chosen = below if below == [path] else [one for one in below if _tracequet.is_recording_name(one)]
            if not chosen:
                raise UsageError(f"{path}: has no recordings")
            found += chosen
    return found


class _Local:
    """A recording as a local file, for as long as it is open."""

    def __init__(self, address: str, most: Optional[int] = None) -> None:
        self.address, self.most = address, most
        self.folder: Optional[str] = None

    def __enter__(self) -> str:
        if _is_local(self.address):
            return _local(self.address)
        self.folder = tempfile.mkdtemp(prefix="tracequet-")
        try:
            if self.most is None or self.address.startswith("http"):
                return _inputs.copy(self.address, self.folder)
            target = os.path.join(self.folder, self.address.rsplit("/", 1)[-1])
            with _stores.opened(self.address) as source, open(target, "wb") as sink:
                sink.write(source.read(self.most))
            return target
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def _keys(paths: Sequence[str]) -> List[str]:
    """A `trace_id` for each recording: its file name, and a number where several have the same."""
    keys: List[str] = []
    taken = set()
    for path in paths:
        name = path.rstrip("/").rsplit("/", 1)[-1]
        stem = re.sub(r"[^\w.-]", "_", re.split(r"\.(?:nettrace|netperf|etl|corprof)", name)[0]) or "t"
        stem = stem if stem[0].isascii() and stem[0].isalpha() else "t" + stem
        key, number = stem, 1
        while key.lower() in taken:
            number += 1
            key = f"{stem}_{number}"
        taken.add(key.lower())
        keys.append(key)
    return keys


def _spark_type(kind: pyarrow.DataType) -> pyarrow.DataType:
    """The Arrow type without what Spark does not know: dictionaries, and unsigned numbers, which become the next larger
    ones. Those of 64 bits are signed already, with the same bits."""
    if pyarrow.types.is_dictionary(kind):
        return _spark_type(kind.value_type)
    if pyarrow.types.is_list(kind):
        return pyarrow.list_(pyarrow.field("element", _spark_type(kind.value_type)))
    if pyarrow.types.is_struct(kind):
        return pyarrow.struct([pyarrow.field(field.name, _spark_type(field.type)) for field in kind])
    larger = {pyarrow.uint8(): pyarrow.int16(), pyarrow.uint16(): pyarrow.int32(), pyarrow.uint32(): pyarrow.int64()}
    return larger.get(kind, kind)


def _fields(schema: pyarrow.Schema) -> StructType:
    """Columns as Spark has them, and as it reads them from a dataset of signed addresses."""
    return StructType([StructField(field.name, from_arrow_type(_spark_type(field.type)), True) for field in schema])


class TraceDataSource(DataSource):
    """Recordings as tables: `spark.read.format("tracequet").option("table", "gc").load(path)`.

    `load` takes a recording, a directory, or an address such as `s3a://bucket/night`; several as a list. Each recording
    is a partition, and has its name in the column `trace_id`. Options: `table`; `providers` and `processes`, separated
    by commas; `start` and `end`, such as `1m30s`; `unreadable`, `fail` (default) or `skip`; `env.NAME`, a variable of
    the environment for the executors, such as `env.AWS_ENDPOINT_URL`.
    """

    @classmethod
    def name(cls) -> str:
        return "tracequet"

    def _paths(self) -> List[str]:
        _set_environment(self.options)
        several, one = self.options.get("paths"), self.options.get("path")
        paths = json.loads(several) if several else [one] if one else []
        if not paths:
            raise UsageError("no recordings: load(path) or option('path', ...)")
        return _recordings(paths)

    def _table(self) -> str:
        table = self.options.get("table")
        if not table:
            raise UsageError("option('table', ...) says which table is wanted, such as gc")
        return table

    def schema(self) -> StructType:
        table = self._table()
        is_payload = table.startswith("event/")
        known: Optional[pyarrow.Schema] = None
        failure: Optional[Exception] = None
        for address in self._paths():
            try:
                with _Local(address, None if is_payload else _HEAD) as path:
                    reader = _reader(path, self.options)
                    found, _ = reader.tables(None if is_payload else [table])
            except (RecordingError, OSError) as error:
                failure = failure or error
                continue
            for name, _, schema in found:
                if name == table:
                    more = pyarrow.schema(schema)
                    known = more if known is None else pyarrow.unify_schemas([known, more])
            # Tables of facts are the same in all recordings; those of payloads are not.
            if known is not None and not is_payload:
                break
        if known is None:
            raise failure or UsageError(f"no table {table} in the recordings")
        return _fields(known.insert(0, pyarrow.field("trace_id", pyarrow.string())))

    def reader(self, schema: StructType) -> "DataSourceReader":
        return _TraceReader(dict(self.options), self._table(), self._paths(), schema)


def _set_environment(options: Dict[str, str]) -> None:
    """Sets the variables that options name. Spark gives options in small letters; variables have large ones."""
    os.environ.update({name[len("env.") :].upper(): value for name, value in options.items() if name.lower().startswith("env.")})


def _reader(path: str, options: Dict[str, str]) -> "_tracequet.Recordings":
    def split(name: str) -> List[str]:
        return [part for part in options.get(name, "").split(",") if part]

    return _tracequet.Recordings(
        [path],
        providers=split("providers"),
        processes=split("processes"),
        manifests=split("manifests"),
        symbols=split("symbols"),
        dominators=None,
        start_ns=_commands.nanoseconds(options.get("start")),
        end_ns=_commands.nanoseconds(options.get("end")),
        signed=True,
        # The name of the recording is put in here: the partitions know it.
        hive=False,
    )


@dataclass
class _Recording(InputPartition):
    address: str
    key: str


class _TraceReader(DataSourceReader):
    def __init__(self, options: Dict[str, str], table: str, paths: List[str], schema: StructType) -> None:
        self.options, self.table, self.paths, self.columns = options, table, paths, schema
        if options.get("unreadable", "fail") not in ("fail", "skip"):
            raise UsageError("the option unreadable is fail or skip")

    def partitions(self) -> Sequence[InputPartition]:
        return [_Recording(path, key) for path, key in zip(self.paths, _keys(self.paths))]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        assert isinstance(partition, _Recording)
        _set_environment(self.options)
        target = to_arrow_schema(self.columns, timezone="UTC")
        with _Local(partition.address) as path:
            try:
                reader = _reader(path, self.options)
                found, _ = reader.tables([self.table] if not self.table.startswith("event/") else None)
            except (RecordingError, OSError):
                if self.options.get("unreadable") == "skip":
                    return
                raise
            mine = [(selection, schema) for name, selection, schema in found if name == self.table]
            if not mine:
                return
            selection, schema = mine[0]
            wanted = [name for name in target.names if name in schema.names()]
            stream = reader.stream(self.table, selection, schema, wanted)
            for batch in pyarrow.RecordBatchReader.from_stream(stream):
                yield _fit(batch, target, partition.key)


def _fit(batch: pyarrow.RecordBatch, target: pyarrow.Schema, key: str) -> pyarrow.RecordBatch:
    """The batch with exactly these columns."""
    columns = []
    for field in target:
        if field.name == "trace_id":
            columns.append(pyarrow.array([key] * batch.num_rows, field.type))
            continue
        place = batch.schema.get_field_index(field.name)
        if place < 0:
            columns.append(pyarrow.nulls(batch.num_rows, field.type))
            continue
        columns.append(_cast(batch.column(place), field.type))
    return pyarrow.RecordBatch.from_arrays(columns, schema=target)


def _cast(array: pyarrow.Array, kind: pyarrow.DataType) -> pyarrow.Array:
    if array.type == kind:
        return array
    if pyarrow.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(kind)


# What became of a recording.
_RESULT = "path string, trace_id string, status string, error string, hash string, bytes bigint, seconds double"


def convert(
    spark: Any,
    inputs: Union[str, Sequence[str]],
    output: str,
    *,
    tables: Optional[Sequence[str]] = None,
    partitions: Optional[int] = None,
    environment: Optional[Dict[str, str]] = None,
    **options: Any,
) -> Any:
    """Converts recordings on the executors into one dataset, each a task, and returns a DataFrame with a row for each:
    `path`, `trace_id`, `status` (`converted`, `skipped`, `failed`), `error`, `hash`, `bytes` of the recording,
    `seconds`. `hash` is BLAKE3, or SHA-256 where the dataset was begun by a version that knew its recordings by that.

    `inputs` are recordings, directories or addresses. `output` is a directory that all executors see, or an address of
    an object store. A dataset that is there already is added to; a recording whose content it has is skipped, so that a
    job that was ended continues where it was. A recording that cannot be read is a row, and no error of the job.
    `options` are those of `tracequet convert`; `address_type` is `int64` unless it is given. `partitions`: tasks,
    instead of one for each recording. `environment`: variables for the executors, such as those of an object store.
    """
    paths = _recordings([inputs] if isinstance(inputs, str) else list(inputs))
    options = {"address_type": "int64", **options}
    if tables is not None:
        options["tables"] = ",".join(tables)
    known, new_hash = _known(output)
    count = max(1, min(len(paths), partitions or len(paths)))

    def tasks(batches: Iterator[pyarrow.RecordBatch], work: Any) -> Iterator[pyarrow.RecordBatch]:
        os.environ.update(environment or {})
        for batch in batches:
            for task in batch.column(0).to_pylist():
                for number in range(task, len(paths), count):
                    rows = [work(number)]
                    yield pyarrow.RecordBatch.from_pylist(rows, schema=_result_schema())

    def hashes(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        return tasks(batches, lambda number: _hash(paths[number], new_hash()))

    # Which have the same content is known only when all have been read: of those one is converted.
    spread = spark.range(0, count, 1, count)
    hashed = {row["path"]: row for row in spread.mapInArrow(hashes, _RESULT).collect()}
    seen: Dict[str, Optional[str]] = dict(known)
    done: List[Dict[str, Any]] = []
    todo: List[str] = []
    for path in dict.fromkeys(paths):
        row = hashed[path].asDict()
        if row["status"] == "failed":
            done.append(row)
        elif row["hash"] in seen:
            done.append({**row, "status": "skipped", "trace_id": seen[row["hash"]]})
        else:
            seen[row["hash"]] = None
            todo.append(path)
    if todo:
        paths = todo
        count = max(1, min(len(paths), partitions or len(paths)))
        work = {path: hashed[path]["hash"] for path in paths}

        def conversions(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            return tasks(batches, lambda number: _convert(paths[number], work[paths[number]], output, options))

        done += [row.asDict() for row in spark.range(0, count, 1, count).mapInArrow(conversions, _RESULT).collect()]
        by_hash = {row["hash"]: row["trace_id"] for row in done if row["status"] == "converted"}
        for row in done:
            if row["status"] == "skipped" and row["trace_id"] is None:
                row["trace_id"] = by_hash.get(row["hash"])
    if not _is_local(output):
        _describe(output)
    order = {path: number for number, path in enumerate(hashed)}
    done.sort(key=lambda row: order[row["path"]])
    names = _result_schema().names
    return spark.createDataFrame([tuple(row[name] for name in names) for row in done], _RESULT)


def _result_schema() -> pyarrow.Schema:
    text, number = pyarrow.string(), pyarrow.int64()
    kinds = {"path": text, "trace_id": text, "status": text, "error": text, "hash": text, "bytes": number}
    return pyarrow.schema([*kinds.items(), ("seconds", pyarrow.float64())])


def _row(path: str, status: str, **more: Any) -> Dict[str, Any]:
    return {**{name: None for name in _result_schema().names}, "path": path, "status": status, **more}


def _hash(address: str, digest: Any) -> Dict[str, Any]:
    size, began = 0, time.monotonic()
    try:
        if _is_local(address) or address.startswith("http"):
            with _Local(address) as path, open(path, "rb") as file:
                for piece in iter(lambda: file.read(1 << 20), b""):
                    digest.update(piece)
                    size += len(piece)
        else:
            with _stores.opened(address) as file:
                for piece in iter(lambda: file.read(1 << 20), b""):
                    digest.update(piece)
                    size += len(piece)
    except OSError as error:
        return _row(address, "failed", error=str(error))
    seconds = time.monotonic() - began
    return _row(address, "hashed", hash=digest.hexdigest(), bytes=size, seconds=seconds)


def _convert(address: str, hash: str, output: str, options: Dict[str, Any]) -> Dict[str, Any]:
    began = time.monotonic()
    folder = None
    try:
        with _Local(address) as path:
            size = os.path.getsize(path)
            if _is_local(output):
                target, more = _local(output), ["--append"]
            else:
                folder = tempfile.mkdtemp(prefix="tracequet-")
                target, more = os.path.join(folder, "out"), ["--layout", "hive"]
            arguments = ["convert", "--output", target, "--quiet", *more, *_commands._options(options), "--", path]
            failure: Optional[Exception] = None
            try:
                _commands.run(arguments)
            except (Error, OSError) as error:
                failure = error
            entry = _entry(target, hash)
            if entry is None:
                message = str(failure or "nothing was written")
                return _row(address, "failed", hash=hash, bytes=size, error=message, seconds=time.monotonic() - began)
            if folder is not None:
                if _hash_at(output, entry["trace_id"]) not in (None, hash):
                    message = f"another recording has the key {entry['trace_id']}, expected a free one: give the file another name"
                    return _row(address, "failed", hash=hash, bytes=size, error=message, seconds=time.monotonic() - began)
                _publish(target, output, entry["trace_id"])
            failed = entry.get("status") == "failed"
            return _row(
                address,
                "failed" if failed else "converted",
                trace_id=entry["trace_id"],
                hash=hash,
                bytes=size,
                error=entry.get("error") if failed else None,
                seconds=time.monotonic() - began,
            )
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _entries(dataset: str) -> Iterator[Dict[str, Any]]:
    """The recordings of a dataset: those of its packs, and the others by the files of its folder `manifest`."""
    names = _entry_files(dataset)
    packed = set()
    for pack in _packs(names):
        for recorded, _, _ in pack["recordings"]:
            packed.add(recorded["trace_id"])
            yield recorded
    for name in names:
        if not _format.is_entry_of_pack(name):
            for entry in _parsed(_read(name)):
                # A recording of a pack may have an entry that is left over.
                if entry["trace_id"] not in packed:
                    yield entry


def _packs(names: List[str]) -> List[Dict[str, Any]]:
    """The packs among the files of entries that no other one has replaced."""
    texts = [_read(name) for name in names if _format.is_entry_of_pack(name)]
    packs = [json.loads(text) for text in texts if text]
    gone = {name for pack in packs for name in pack["replaces"]}
    return [pack for pack in packs if pack["pack"] not in gone]


def _entry_files(dataset: str) -> List[str]:
    """The files of entries, of recordings and of packs."""
    if _is_local(dataset):
        folder = os.path.join(_local(dataset), _format.ENTRIES)
        found = []
        for path in (folder, os.path.join(folder, _format.PACKS)):
            if os.path.isdir(path):
                found += [os.path.join(path, name) for name in sorted(os.listdir(path)) if _format.is_entry(name)]
        return found
    try:
        return [name for name in _stores.listed(f"{dataset.rstrip('/')}/{_format.ENTRIES}") if _format.is_entry(name)]
    except FileNotFoundError:
        return []


def _read(name: str) -> bytes:
    """What is in a file or an object; nothing if it was removed meanwhile."""
    try:
        with open(name, "rb") if _is_local(name) else _stores.opened(name) as file:
            return bytes(file.read())
    except FileNotFoundError:
        return b""


def _parsed(text: bytes) -> Iterator[Dict[str, Any]]:
    """An entry. One that is damaged costs itself: `dataset verify` names it."""
    try:
        entry = json.loads(text)
    except ValueError:
        return
    if isinstance(entry, dict) and isinstance(entry.get("trace_id"), str):
        yield entry


def _hash_of(entry: Dict[str, Any]) -> str:
    """The hash by which a recording is known: its BLAKE3, or its SHA-256 where an earlier version wrote the entry."""
    return str(entry.get("blake3") or entry.get("sha256") or "")


def _known(dataset: str) -> Tuple[Dict[str, str], Callable[[], Any]]:
    """Hashes of the recordings that a dataset has, with their keys; and what takes such hashes of others."""
    entries = list(_entries(dataset))
    known = {_hash_of(entry): entry["trace_id"] for entry in entries if entry.get("status") != "failed"}
    is_older = any(entry.get("sha256") and not entry.get("blake3") for entry in entries)
    return known, hashlib.sha256 if is_older else _tracequet.Blake3


def _hash_at(dataset: str, key: str) -> Optional[str]:
    """The hash of the recording that has this key in an object store, if one has it."""
    try:
        with _stores.opened(f"{dataset.rstrip('/')}/{_format.ENTRIES}/{_format.entry(key)}") as file:
            return next((_hash_of(entry) for entry in _parsed(file.read())), "")
    except FileNotFoundError:
        return None


def _entry(dataset: str, hash: str) -> Optional[Dict[str, Any]]:
    return next((entry for entry in _entries(dataset) if _hash_of(entry) == hash), None)


def _publish(folder: str, output: str, key: str) -> None:
    """Copies the files of one recording into an object store, its entry last: what has none is not in the dataset.
    Before them the files without rows that a dataset has once for each table, where they are not there yet."""
    system, root = _stores.store(output)
    files = [os.path.join(path, name) for path, _, names in os.walk(folder) for name in names]
    own = [path for path in files if _format.is_of(path, key)]

    def target_of(path: str) -> str:
        return root.rstrip("/") + "/" + os.path.relpath(path, folder).replace(os.sep, "/")

    empty = [path for path in files if _format.is_of(path, _format.NO_RECORDING)]
    there = {found.path for found in system.get_file_info([target_of(path) for path in empty]) if found.is_file}
    for path in [*[path for path in empty if target_of(path) not in there], *own, os.path.join(folder, _format.ENTRIES, _format.entry(key))]:
        target = target_of(path)
        with open(path, "rb") as source, system.open_output_stream(target) as sink:
            shutil.copyfileobj(source, sink, 1 << 20)


def _describe(output: str) -> None:
    """Writes `manifest.json` of a dataset in an object store, which sums up its entries."""
    inputs: List[Dict[str, Any]] = []
    failed: List[Dict[str, Any]] = []
    tables: Dict[str, Dict[str, Any]] = {}
    last: Dict[str, Any] = {}

    def add(name: str, rows: int, size: int) -> None:
        known = tables.setdefault(name, {"name": name, "rows": 0, "bytes": 0})
        known["rows"] += rows
        known["bytes"] += size

    packs: List[Dict[str, Any]] = []
    for pack in _packs(_entry_files(output)):
        packs.append({"name": pack["pack"], "recordings": len(pack["recordings"])})
        for table in pack["tables"]:
            for file in table["files"]:
                add(table["name"], file["rows"], file["bytes"])
    for entry in _entries(output):
        last = entry
        if "tables" not in entry:
            # It is in a pack, which is named as a whole.
            continue
        for table in entry.pop("tables"):
            add(table["name"], table["rows"], table["bytes"])
        (failed if entry.get("status") == "failed" else inputs).append(entry)
    if not last:
        return
    text = {"tool": "tracequet", "version": last.get("version"), "schema_version": last.get("schema_version")}
    more = {"layout": "hive", "format": "parquet", "inputs": inputs, "failed": failed, "packs": packs, "tables": list(tables.values())}
    system, root = _stores.store(output)
    with system.open_output_stream(f"{root.rstrip('/')}/{_format.MANIFEST}") as sink:
        sink.write(json.dumps({**text, **more}, indent=2).encode())
