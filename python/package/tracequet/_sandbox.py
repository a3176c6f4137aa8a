"""Answers one query over a dataset, in a process of its own that may do little. It runs as a file and imports nothing
of this package.

The request is a JSON object on standard input, the answer one on standard output. DuckDB reads no file: the tables are
Arrow data that was opened before the query came. Where the system can, the process writes no file and has bounded
memory and time.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import stat
import sys
from typing import Any, Dict, List, Set, Tuple

# The view of a table in `views.sql`: its name, what stands before the files, and the files.
_TABLE = re.compile(r"""^CREATE OR REPLACE VIEW "((?:[^"]|"")+)" AS SELECT (.*)FROM read_(parquet|arrow)\('((?:[^']|'')*)'\);$""")

# Any view or macro of `views.sql`: which of both, and its name. Names of tables are in quotes.
MADE = re.compile(r'CREATE OR REPLACE (?P<kind>VIEW|MACRO) (?:"(?P<quoted>(?:[^"]|"")+)"|(?P<name>\w+))')

# A query with one of these asks which tables there are.
_CATALOG = re.compile(r"\b(show|describe|summarize|information_schema|(duckdb|pg|pragma|sqlite)_\w+)\b", re.IGNORECASE)

STATEMENTS = ("SELECT", "EXPLAIN")

# Bytes of a script with views: ours has less than 1 MB, with a view for each of 512 payload tables.
MOST_SCRIPT = 8 << 20


def main() -> None:
    """Answers the request on standard input."""
    request = json.load(sys.stdin)
    _bound(request["memory"], request["seconds"])
    sys.meta_path.insert(0, _NoPandas())
    try:
        answer = _answer(request)
    except Exception as error:  # noqa: BLE001 (the process that asked reports it)
        answer = {"error": f"{type(error).__name__}: {error}"}
    json.dump(answer, sys.stdout)


class _NoPandas:
    """Hides pandas from pyarrow, which imports it where it is installed: that would take half of the time of a short
    query.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


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
    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error as error:
        return {"error": f"{error}"}
    kinds = [statement.type.name for statement in statements]
    if len(kinds) != 1 or kinds[0] not in STATEMENTS:
        return {"error": f"one SELECT is answered, the query has {', '.join(kinds) or 'no statement'}"}
    try:
        answer = _connection(request, whole=False).execute(statements[0])
    except duckdb.CatalogException:
        # A query can put a name together, and the message of an unknown name proposes views that have similar ones.
        answer = _connection(request, whole=True).execute(statements[0])
    names = [column[0] for column in answer.description]
    types = [str(column[1]) for column in answer.description]
    skipped = 0
    while skipped < offset:
        passed = len(answer.fetchmany(min(offset - skipped, 1024)))
        if not passed:
            break
        skipped += passed
    letters = request["letters"]
    names, types = ([_value(text, letters) for text in texts] for texts in (names, types))
    found: Dict[str, Any] = {"columns": names, "types": types}
    if request.get("is_schema"):
        return found
    # Names, types and rows are one answer. Half of it is for rows.
    most = request["bytes"]
    head = _size(found)
    if head > most // 2:
        return {"error": f"the names and types of {len(names)} columns take {head} bytes, expected {most // 2} at most: select fewer columns"}
    rows, left = _page(answer, limit, letters, most - head)
    if left and not rows:
        return {"error": f"a row of {len(names)} columns takes more than {most - head} bytes: select fewer columns"}
    found["rows"] = rows
    if left:
        found["next_offset"] = offset + len(rows)
    return found


def _connection(request: Dict[str, Any], whole: bool) -> Any:
    """DuckDB with all views of a dataset, or with those that the query needs, which takes less time."""
    import duckdb

    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "threads": "2"}
    )
    connection.execute(f"SET memory_limit='{request['memory'] // 1_000_000}MB'; SET temp_directory=''")
    connection.execute("SET python_enable_replacements=false; SET TimeZone='UTC'")
    root = os.path.realpath(request["dataset"])
    statements = _script(root)
    if not whole and not _CATALOG.search(request["query"]):
        statements = _needed(statements, request["query"])
    script = [_register(connection, root, text) for text in statements]
    # From here on no file, no extension and no setting: the script with the views belongs to the dataset, too.
    connection.execute("SET enable_external_access=false; SET lock_configuration=true")
    connection.execute("\n".join(script))
    return connection


def _script(root: str) -> List[str]:
    """The statements of `views.sql` without comments. Those that load DuckDB's reader of Arrow files are left out:
    pyarrow reads these.
    """
    import duckdb

    lines = script(root).splitlines()
    text = "\n".join(line for line in lines if not line.startswith(("INSTALL ", "LOAD ", "--")))
    return [statement.query.strip() for statement in duckdb.extract_statements(text)]


def script(root: str) -> str:
    """The text of `views.sql`. Fails on what is no file, or larger than a script is."""
    path = inside(root, os.path.join(root, "views.sql"))
    # A pipe is opened without waiting for its other end.
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path} is no file")
        text = file.read(MOST_SCRIPT + 1)
    if len(text) > MOST_SCRIPT:
        raise ValueError(f"{path}: expected a script of at most {MOST_SCRIPT >> 20} MB")
    return text.decode("utf-8")


def _needed(statements: List[str], query: str) -> List[str]:
    """The statements that make a view or macro which the query or another needed statement mentions, and those that
    make neither. In the script a statement comes after those that it needs."""
    needed: List[str] = []
    mentioned = _names(query)
    for statement in reversed(statements):
        made = MADE.match(statement)
        if not made or (made["quoted"] or made["name"]).lower() in mentioned:
            needed.append(statement)
            mentioned |= _names(statement)
    return needed[::-1]


def _names(text: str) -> Set[str]:
    """All that may be a name in SQL, in lower case: words, and texts in double quotes."""
    lower = text.lower()
    return {*re.findall(r"\w+", lower), *re.findall(r'"((?:[^"]|"")+)"', lower)}


def _page(answer: Any, limit: int, letters: int, most: int) -> Tuple[List[List[Any]], bool]:
    """Rows that fit into a small answer, and whether there are more. The values of a first row that does not fit are
    shortened further.
    """
    rows: List[List[Any]] = []
    # Bytes of an answer beside its names, types and rows.
    size = 100
    while True:
        fetched = answer.fetchmany(1)
        if not fetched:
            return rows, False
        row = [_value(value, letters) for value in fetched[0]]
        if not rows and size + _size(row) > most:
            row = [_value(value, max(most // len(row) // 8 - 30, 0)) for value in fetched[0]]
        size += _size(row) + 2
        if len(rows) >= limit or size > most:
            return rows, True
        rows.append(row)


def _size(value: Any) -> int:
    """Bytes of a value in a message of the protocol: JSON within a text of JSON."""
    return len(json.dumps(json.dumps(value)))


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
    text = str(value)
    return text if len(text) <= letters else f"{text[:letters]}… ({len(text)} letters)"


def _register(connection: Any, root: str, statement: str) -> str:
    """The statement to run. For the view of a table, pyarrow opens the files, DuckDB gets them under a name of their
    own, and the view is over that name. Any other statement stays as it is."""
    match = _TABLE.match(statement)
    if not match:
        return statement
    import pyarrow.dataset

    name, _, kind, place = (text.replace("''", "'").replace('""', '"') for text in match.groups())
    files = [inside(root, path) for path in _files(root, place)]
    source = pyarrow.dataset.dataset(files, format="ipc" if kind == "arrow" else "parquet", partitioning=None)
    own = f"files of {name}"
    connection.register(own, source)
    quoted, of = name.replace('"', '""'), own.replace('"', '""')
    # What stands before is the key of the only recording: a text.
    return f'CREATE OR REPLACE VIEW "{quoted}" AS SELECT {match.group(2)}FROM "{of}";'


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
