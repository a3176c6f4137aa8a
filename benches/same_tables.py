"""Converts recordings with two builds of tracequet and compares the tables by content.

    python benches/same_tables.py OLD NEW FILE|FOLDER... [--cache DIR] [--filter TEXT] [--timeout S] [-- OPTION...]
    python benches/same_tables.py --self-test

Compared are: the exit code, the error of a refused recording, the set of tables, the columns with their types, and all
values row by row in their order. Rows that are the same in another order are reported as such. Files with equal bytes
are not opened. What stands behind `--` goes to both builds as options of `convert`.

`--cache` keeps what OLD wrote; it must be a folder of its own for each OLD and each set of options. Exit code 1 says
that something differs. Needs a Python with duckdb and pyarrow.
"""

import argparse
import concurrent.futures
import filecmp
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow.feather

ENDINGS = (".nettrace", ".netperf", ".etl", ".corprof", ".zip", ".diagsession")
PACKED = (".gz", ".zst")


def recordings(paths):
    """The files, and all files of the folders that are recordings by their names."""
    for path in paths:
        if path.is_file():
            yield path
        elif path.is_dir():
            for file in sorted(path.rglob("*")):
                name = file.name.lower()
                for ending in PACKED:
                    name = name.removesuffix(ending)
                if file.is_file() and name.endswith(ENDINGS):
                    yield file
        else:
            sys.exit(f"{path}: no such file or folder")


def convert(program, recording, out, options, timeout):
    """Converts into OUT/data and returns what is compared beside the tables."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    command = [program, "convert", recording, "-o", out / "data", "--quiet", *options]
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
        code = run.returncode
        error = run.stderr.decode(errors="replace").strip() if code not in (0, 2) else ""
        # Names of the output and of what is beside it until it is whole.
        error = re.sub(re.escape(str(out)) + r"/(data|\.data\.partial-\w+)", "OUT", error)
    except subprocess.TimeoutExpired:
        code, error = f"none in {timeout} s", ""
    result = {"exit code": code, "error": error}
    (out / "result.json").write_text(json.dumps(result))
    return result


def files(folder):
    """The files of a dataset, without those that it has of tables without rows for all recordings."""
    found = (file for file in sorted(folder.rglob("*")) if file.is_file() and file.parent.name != "trace=none")
    return {str(file.relative_to(folder)): file for file in found}


def relation(connection, name, file):
    """The file as a view of this name; its columns with their types."""
    if file.suffix == ".arrow":
        connection.register(name, pyarrow.feather.read_table(file, memory_map=False))
    else:
        connection.execute(f"CREATE OR REPLACE VIEW {quoted(name)} AS FROM read_parquet('{str(file).replace(chr(39), chr(39) * 2)}', "
                           "hive_partitioning = false)")
    return {row[0]: row[1] for row in connection.execute(f"DESCRIBE {quoted(name)}").fetchall()}


def has_rows(connection, file):
    relation(connection, "only", file)
    return connection.execute("SELECT count(*) FROM \"only\"").fetchone()[0] > 0


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def different_columns(connection, old_file, new_file):
    """Gives a column and what is different about it; the column is empty for what is about whole rows."""
    old, new = relation(connection, "old", old_file), relation(connection, "new", new_file)
    for column in old.keys() - new.keys():
        yield column, "no such column in NEW"
    for column in new.keys() - old.keys():
        yield column, "no such column in OLD"
    both = [column for column in old if column in new]
    if both != [column for column in new if column in old]:
        yield "", "order of columns"
    for column in both:
        if old[column] != new[column]:
            yield column, f"type {old[column]} became {new[column]}"
    both = [column for column in both if old[column] == new[column]]
    old_rows, new_rows = (connection.execute(f"SELECT count(*) FROM {side}").fetchone()[0] for side in ("old", "new"))
    if not both:
        if old_rows != new_rows:
            yield "", f"{old_rows} rows became {new_rows}"
        return
    names = ", ".join(map(quoted, both))

    def only_in(a, b):
        return connection.execute(
            f"SELECT count(*) FROM (SELECT {names} FROM {a} EXCEPT ALL SELECT {names} FROM {b})").fetchone()[0]

    if old_rows != new_rows:
        yield "", f"{old_rows} rows became {new_rows}: {only_in('old', 'new')} gone, {only_in('new', 'old')} come"
        return
    # A few columns at a time: a table may have thousands.
    differences = {}
    for at in range(0, len(both), 200):
        some = both[at:at + 200]
        counts = ", ".join(f"count_if(old.{quoted(c)} IS DISTINCT FROM new.{quoted(c)})" for c in some)
        differences.update(zip(some, connection.execute(f"SELECT {counts} FROM old POSITIONAL JOIN new").fetchone()))
    differences = {column: count for column, count in differences.items() if count}
    if not differences:
        return
    if only_in("old", "new") == 0:
        yield "", f"order of rows ({max(differences.values())} of {old_rows})"
        return
    for column, count in differences.items():
        yield column, f"{count} of {old_rows} rows"


def different_tables(connection, old, new):
    """Gives a table, a column and what is different about it."""
    old, new = files(old), files(new)
    for name in sorted(old.keys() | new.keys()):
        table = name.removesuffix(".parquet").removesuffix(".arrow")
        if name == "manifest.json":    # holds the sizes of the files
            continue
        # Of several recordings: one that has no rows of a table may have a file of it or not.
        only = old.get(name) or new[name]
        if (name in old) != (name in new) and "/trace=" in name and not has_rows(connection, only):
            continue
        if name not in new:
            yield table, "", "not in NEW"
        elif name not in old:
            yield table, "", "not in OLD"
        elif filecmp.cmp(old[name], new[name], shallow=False):
            continue
        elif name.endswith((".parquet", ".arrow")):
            try:
                for column, difference in different_columns(connection, old[name], new[name]):
                    yield table, column, difference
            except (duckdb.Error, OSError) as error:
                yield table, "", f"cannot be read: {error}"
        else:
            yield table, "", "text"


def compare(args, recording, work):
    """All differences of one recording."""
    slug = hashlib.sha256(str(recording.resolve()).encode()).hexdigest()[:16]
    kept = args.cache / slug if args.cache else work / "old" / slug
    new_out = work / "new" / slug
    old = None
    if args.cache and (kept / "result.json").is_file():
        old = json.loads((kept / "result.json").read_text())
    if old is None:
        old = convert(args.old, recording, kept, args.options, args.timeout)
    new = convert(args.new, recording, new_out, args.options, args.timeout)
    found = [("", name, f"{old[name]!r} became {new[name]!r}") for name in old if old[name] != new[name]]
    connection = duckdb.connect(config={"threads": 1})
    found += different_tables(connection, kept / "data", new_out / "data")
    connection.close()
    if not args.keep:
        shutil.rmtree(new_out, ignore_errors=True)
        if not args.cache:
            shutil.rmtree(kept, ignore_errors=True)
    return found


def self_test():
    """Makes pairs of small datasets, each with one difference, and expects that it is found."""
    base = "SELECT range::UBIGINT AS id, ['a', 'b', NULL][1 + range % 3] AS name, 'NaN'::DOUBLE AS x FROM range(1000)"
    cases = [
        (base, []),
        (f"FROM ({base}) ORDER BY id DESC", [("t", "", "order of rows (1000 of 1000)")]),
        (f"SELECT id, if(id = 7, NULL, name) AS name, x FROM ({base})", [("t", "name", "1 of 1000 rows")]),
        (f"SELECT id, name, if(id = 7, 1.0, x) AS x FROM ({base})", [("t", "x", "1 of 1000 rows")]),
        (f"FROM ({base}) WHERE id <> 7", [("t", "", "1000 rows became 999: 1 gone, 0 come")]),
        (f"SELECT id::BIGINT AS id, name, x FROM ({base})", [("t", "id", "type UBIGINT became BIGINT")]),
        (f"SELECT id, x FROM ({base})", [("t", "name", "no such column in NEW")]),
        (f"SELECT *, 1 AS y FROM ({base})", [("t", "y", "no such column in OLD")]),
        (f"SELECT name, id, x FROM ({base})", [("t", "", "order of columns")]),
        (None, [("t", "", "not in NEW")]),
    ]
    connection = duckdb.connect(config={"threads": 1})
    with tempfile.TemporaryDirectory() as folder:
        for number, (query, expected) in enumerate(cases):
            old, new = (Path(folder) / f"{number}" / side for side in ("old", "new"))
            for side, text in ((old, base), (new, query)):
                side.mkdir(parents=True)
                if text is not None:
                    connection.execute(f"COPY ({text}) TO '{side}/t.parquet' (ROW_GROUP_SIZE {300 if side == new else 1000})")
            found = list(different_tables(connection, old, new))
            if found != expected:
                sys.exit(f"the comparison is broken: {query}: expected {expected}, found {found}")
        for code, out in ((0, ""), (1, "refused"), (2, "")):
            program = Path(folder) / f"program{code}"
            program.write_text(f"#!/bin/sh\nmkdir -p \"$4\"\nprintf '%s' '{out}' >&2\nexit {code}\n")
            program.chmod(0o755)
        recording = Path(folder) / "some.nettrace"
        recording.write_bytes(b"")
        for code, expected in ((0, []), (1, ["exit code", "error"]), (2, ["exit code"])):
            args = argparse.Namespace(old=Path(folder) / "program0", new=Path(folder) / f"program{code}", cache=None,
                                      options=[], timeout=10, keep=False)
            found = [what for _, what, _ in compare(args, recording, Path(folder) / "work")]
            if found != expected:
                sys.exit(f"the comparison is broken: exit code {code}: expected {expected}, found {found}")
    print(f"{len(cases) + 3} cases: every difference is found")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    arguments = sys.argv[1:]
    options = arguments[arguments.index("--") + 1:] if "--" in arguments else []
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("paths", type=Path, nargs="+", metavar="FILE|FOLDER")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--filter", default="", help="only recordings whose path contains this")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for each conversion")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="keep what NEW wrote in a folder beside the cache")
    args = parser.parse_args(arguments[:arguments.index("--")] if "--" in arguments else arguments)
    args.options = options
    for program in (args.old, args.new):
        if not os.access(program, os.X_OK):
            sys.exit(f"{program}: no program")
    self_test()
    chosen = [path for path in dict.fromkeys(recordings(args.paths)) if args.filter in str(path)]
    if not chosen:
        sys.exit("no recordings")
    if args.keep and args.cache:
        work = args.cache.parent
        work.mkdir(parents=True, exist_ok=True)
    else:
        work = Path(tempfile.mkdtemp(prefix="same-tables-"))
    differing, total = 0, Counter()
    try:
        # The long ones first, so that no worker is left with one at the end.
        chosen.sort(key=lambda path: -path.stat().st_size)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            runs = {pool.submit(compare, args, path, work): path for path in chosen}
            for run in concurrent.futures.as_completed(runs):
                found = run.result()
                differing += bool(found)
                for table, column, difference in found:
                    what = ".".join(part for part in (table, column) if part) or "rows"
                    print(f"{runs[run]}: {what}: {difference}", flush=True)
                for what in {(table, column) for table, column, _ in found}:
                    total[what] += 1
    finally:
        if not args.keep:
            shutil.rmtree(work, ignore_errors=True)
    if total:
        print("\nrecordings with a difference, by table and column:")
        for (table, column), count in sorted(total.items(), key=lambda item: (-item[1], item[0])):
            print(f"{count:5} {'.'.join(part for part in (table, column) if part)}")
    print(f"{len(chosen)} recordings, {differing} differ")
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
