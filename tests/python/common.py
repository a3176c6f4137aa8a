"""What both scripts need: datasets as tracequet leaves them, and a DuckDB that stands in one."""

import json
import os
import re
import sys
from pathlib import Path

import duckdb
import pyarrow
import pyarrow.ipc


class Dataset:
    """A directory that `tracequet convert` made."""

    def __init__(self, path):
        self.path = Path(path).resolve()
        self.manifest = json.loads((self.path / "manifest.json").read_text())
        self.hive = self.manifest["layout"] == "hive"
        self.format = self.manifest["format"]
        self.rows = {table["name"]: table["rows"] for table in self.manifest["tables"]}

    def files(self, table):
        """The files of a table: one, or those of each recording or pack."""
        if self.hive:
            return sorted((self.path / table).glob(f"trace=*/part-*.{self.format}"))
        return [self.path / f"{table}.{self.format}"]


def connect(dataset):
    """DuckDB with the views of a dataset, from another directory as views.sql says how. What DuckDB needs an extension
    for that not every machine can install, the files of an Arrow dataset, it gets as tables of pyarrow.
    """
    os.chdir("/")
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"SET file_search_path = '{dataset.path}'")
    script = (dataset.path / "views.sql").read_text()
    if dataset.format == "arrow":
        script = re.sub(r"^(INSTALL|LOAD) nanoarrow.*$", "", script, flags=re.MULTILINE)
        for number, place in enumerate(re.findall(r"read_arrow\('(.*?)'\)", script)):
            files = sorted(dataset.path.glob(place))
            tables = [pyarrow.ipc.open_file(pyarrow.memory_map(str(file))).read_all() for file in files]
            # Payload tables of two recordings may differ, as DuckDB's readers do not mind.
            connection.register(f"arrow_{number}", pyarrow.concat_tables(tables, promote_options="permissive"))
            script = script.replace(f"read_arrow('{place}')", f"arrow_{number}")
    connection.execute(script)
    return connection


def statements(sql):
    """The statements of a script, without their comments. No string of ours holds a semicolon."""
    sql = "\n".join(line for line in sql.splitlines() if not line.lstrip().startswith("--"))
    return [statement.strip() for statement in sql.split(";") if statement.strip()]


def blocks(markdown, language):
    """The fenced blocks of a language, each with the heading above it."""
    found, heading = [], ""
    pattern = re.compile(r"^(#+ [^\n]*)$|^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    for match in pattern.finditer(markdown):
        if match[1]:
            heading = match[1].lstrip("# ")
        elif match[2] == language:
            found.append((heading, match[3]))
    return found


def finish(failures, done):
    """Says how it went and ends."""
    for failure in failures:
        print("FAILED", failure)
    print(done)
    sys.exit(1 if failures else 0)
