"""Answers one query over a dataset, in a process of its own that may do little. It runs as a file and imports nothing of this package.

The request is a JSON object on standard input, the answer one on standard output. DuckDB reads no file: the tables are Arrow data that
was opened before the query came. Where the system can, the process writes no file and has bounded memory and time.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import sys
from typing import Any, Dict, List, Tuple

# A view of a table in `views.sql`: its name, what stands before the files, and the files.
_VIEW = re.compile(r"""^CREATE OR REPLACE VIEW "((?:[^"]|"")+)" AS SELECT (.*)FROM read_(parquet|arrow)\('((?:[^']|'')*)'\);$""")

STATEMENTS = ("SELECT", "EXPLAIN")


def main() -> None:
    """Answers the request on standard input."""
    request = json.load(sys.stdin)
    _bound(request["memory"], request["seconds"])
    try:
        answer = _answer(request)
    except Exception as error:  # noqa: BLE001 (the process that asked reports it)
        answer = {"error": f"{type(error).__name__}: {error}"}
    json.dump(answer, sys.stdout)


def _bound(memory: int, seconds: int) -> None:
    """Limits memory, processor time and files of the process. It can write no file at all."""
    try:
        import resource
    except ImportError:
        return
    try:
        # The address space of DuckDB and Arrow is larger than what they use.
        resource.setrlimit(resource.RLIMIT_AS, (memory + (3 << 30),) * 2)
    except (OSError, ValueError):
        # macOS refuses it; DuckDB has its own limit.
        pass
    resource.setrlimit(resource.RLIMIT_CPU, (4 * seconds + 4,) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(request: Dict[str, Any]) -> Dict[str, Any]:
    import duckdb

    query, offset, limit = request["query"], request["offset"], request["rows"]
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "threads": "2"}
    )
    connection.execute(f"SET memory_limit='{request['memory'] // 1_000_000}MB'; SET temp_directory=''")
    connection.execute("SET python_enable_replacements=false; SET TimeZone='UTC'")
    script = _register(connection, request["dataset"])
    # From here on no file, no extension and no setting: the script with the views belongs to the dataset, too.
    connection.execute("SET enable_external_access=false; SET lock_configuration=true")
    connection.execute(script)
    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error as error:
        return {"error": f"{error}"}
    kinds = [statement.type.name for statement in statements]
    if len(kinds) != 1 or kinds[0] not in STATEMENTS:
        return {"error": f"one SELECT is answered, the query has {', '.join(kinds) or 'no statement'}"}
    answer = connection.execute(statements[0])
    names = [column[0] for column in answer.description]
    types = [str(column[1]) for column in answer.description]
    skipped = 0
    while skipped < offset:
        passed = len(answer.fetchmany(min(offset - skipped, 1024)))
        if not passed:
            break
        skipped += passed
    rows, left = _page(answer, limit, request["letters"], request["bytes"])
    found: Dict[str, Any] = {"columns": names, "types": types, "rows": rows}
    if left:
        found["next_offset"] = offset + len(rows)
    return found


def _page(answer: Any, limit: int, letters: int, most: int) -> Tuple[List[List[Any]], bool]:
    """Rows that fit into a small answer, and whether there are more. The first row is always given."""
    rows: List[List[Any]] = []
    size = 0
    while True:
        fetched = answer.fetchmany(1)
        if not fetched:
            return rows, False
        row = [_value(value, letters) for value in fetched[0]]
        size += len(json.dumps(row))
        if rows and (len(rows) >= limit or size > most):
            return rows, True
        rows.append(row)


def _value(value: Any, letters: int) -> Any:
    """A value as JSON has it. Numbers beyond 53 bits are texts, because many readers of JSON round them."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 1 << 53 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, bytearray)):
        value = base64.b64encode(value[:letters]).decode("ascii")
    text = value.isoformat(" ") if hasattr(value, "isoformat") else str(value)
    return text if len(text) <= letters else f"{text[:letters]}… ({len(text)} letters)"


def _register(connection: Any, dataset: str) -> str:
    """Hands the tables of a dataset to DuckDB, and gives the script of its views over them."""
    import pyarrow.dataset

    root = os.path.realpath(dataset)
    with open(inside(root, os.path.join(root, "views.sql")), encoding="utf-8") as file:
        lines = file.read().splitlines()
    script: List[str] = []
    for line in lines:
        view = _VIEW.match(line)
        if view is None:
            # DuckDB's reader of Arrow files is not needed here.
            if not line.startswith(("INSTALL ", "LOAD ")):
                script.append(line)
            continue
        name, before, kind, place = (text.replace("''", "'").replace('""', '"') for text in view.groups())
        files = [inside(root, path) for path in _files(root, place)]
        source = pyarrow.dataset.dataset(files, format="ipc" if kind == "arrow" else "parquet", partitioning=None)
        own = f"files of {name}"
        connection.register(own, source)
        quoted, of = name.replace('"', '""'), own.replace('"', '""')
        # What stands before is the key of the only recording: a text.
        script.append(f'CREATE OR REPLACE VIEW "{quoted}" AS SELECT {view.group(2)}FROM "{of}";')
    return "\n".join(script)


def _files(root: str, place: str) -> List[str]:
    """The files of a table: one, or for `table/*/*.parquet` one or more of each recording."""
    head, star, tail = place.partition("/*/*.")
    if not star:
        return [os.path.join(root, place)]
    folder = inside(root, os.path.join(root, head))
    found: List[str] = []
    for part in sorted(os.listdir(folder)):
        if os.path.isdir(os.path.join(folder, part)):
            inner = os.path.join(folder, part)
            found += [os.path.join(inner, name) for name in sorted(os.listdir(inner)) if name.endswith(f".{tail}")]
    return found


def inside(root: str, path: str) -> str:
    """The path with symbolic links resolved. Fails when that is not inside of `root`."""
    resolved = os.path.realpath(path)
    if resolved != root and not resolved.startswith(os.path.join(root, "")):
        raise PermissionError(f"{path} is not inside of {root}")
    return resolved


if __name__ == "__main__":
    main()
