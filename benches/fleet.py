#!/usr/bin/env python3
"""Measures a compacted dataset by its number of recordings: fleet.py TRACEQUET FOLDER [--counts 1000,10000,100000]
[--real 400] [--sample subjects.nettrace]

In FOLDER (nothing is left there) it converts some hundred recordings made of one of samples/ with `--tables figures`
(or --tables), compacts them, and measures: files, bytes, seconds. Then it makes a dataset of as many recordings as are
asked for out of copies of that: in each copy the keys, hashes and times are others, in the files of tables (written by
DuckDB) as in the entries. On each it lists, appends one recording, checks rules on the 20 newest runs of a label
against 20 others, and asks DuckDB three questions, each of one day's recordings or one recording. Prints Markdown. The
Python needs duckdb and pyarrow.
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import duckdb
from batch import files_of, made, run
from many import changed

SAMPLES = Path(__file__).parent.parent / "samples"
RULES = 'rules = ["gc.count >= 0", "gc.pause.p99 <= baseline * 100"]\n'


def timed(arguments, times=3):
    """Medians of seconds on the clock, seconds of processors and megabytes."""
    runs = [run(arguments) for _ in range(times)]
    return tuple(statistics.median(column) for column in zip(*runs))


def other(key, copy):
    """The key of a recording in a copy: as it is made of a name and a hash."""
    digits = hashlib.sha256(f"{key} {copy}".encode()).hexdigest()
    return f"{key.rsplit('-', 1)[0]}-{digits[:16]}", digits


def copied(pack_path, lake, target, copies, first):
    """A pack with the recordings of `copies` copies of another one; the first one is number `first`."""
    pack = json.loads(pack_path.read_bytes())
    old = pack["pack"]
    members = []
    for copy in range(first, first + copies):
        for recorded, tables, rows in pack["recordings"]:
            key, digits = other(recorded["trace_id"], copy)
            labels = {"branch": "main" if copy % 50 else f"b{copy // 50}", "commit": f"c{copy}"}
            start = f"2026-{1 + copy // 28 % 12:02}-{1 + copy % 28:02}{recorded['start'][10:]}"
            members.append((key, recorded["trace_id"], copy, [dict(recorded, trace_id=key, sha256=digits, labels=labels, start=start), tables, rows]))
    members.sort()
    connection = duckdb.connect()
    connection.execute("CREATE TABLE keys (new VARCHAR, old VARCHAR, copy INTEGER)")
    connection.executemany("INSERT INTO keys VALUES (?, ?, ?)", [member[:3] for member in members])
    connection.execute("SET preserve_insertion_order = true")
    new_name = "packed." + hashlib.sha256(f"{old} {first}".encode()).hexdigest()[:16]
    for table in pack["tables"]:
        if not table["files"]:
            continue
        folder = target / table["name"] / f"trace={new_name}"
        folder.mkdir(parents=True)
        source = lake / table["name"] / f"trace={old}" / "part-0.parquet"
        assert len(table["files"]) == 1
        path = folder / "part-0.parquet"
        connection.execute(f"""COPY (SELECT k.new AS trace_id, t.* EXCLUDE (trace_id, file_row_number)
            FROM read_parquet('{source}', file_row_number = true, hive_partitioning = false) t JOIN keys k ON k.old = t.trace_id
            ORDER BY k.new, file_row_number) TO '{path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 65536)""")
        rows = duckdb.sql(f"SELECT count(*) FROM '{path}'").fetchall()[0][0]
        table["files"] = [{"rows": rows, "bytes": path.stat().st_size}]
    recordings = [member[3] for member in members]
    tags = sorted(hashlib.sha256(member[0].encode()).hexdigest()[:16] for member in members)
    hashes = sorted(recorded["sha256"][:16] for recorded, _, _ in recordings)
    starts = [recorded["start"] for recorded, _, _ in recordings]
    index = {**pack["index"], "recordings": len(members), "version": recordings[0][0]["version"], "begin": [min(starts), max(starts)],
             "keys": "".join(tags), "hashes": "".join(hashes)}
    head = {**pack, "pack": new_name, "replaces": [], "index": index}
    del head["recordings"]
    compact = {"separators": (",", ":")}
    lines = ",\n".join(json.dumps(recording, **compact) for recording in recordings)
    entry = target / "manifest" / "packed" / f"{new_name}.json"
    entry.parent.mkdir(parents=True, exist_ok=True)
    entry.write_text(json.dumps(head, **compact)[:-1] + f',"recordings":[\n{lines}\n]}}\n')
    return [member[0] for member in members]


def questions(lake, key):
    views = {table: f"read_parquet('{lake}/{table}/*/*.parquet', hive_partitioning = false)" for table in ("trace", "gc", "metric", "trace_label", "finding")}
    return {
        "the collections of one recording": f"SELECT generation, count(*), sum(pause_ns) FROM {views['gc']} WHERE trace_id = '{key}' GROUP BY ALL",
        "a figure of the runs of one commit": f"""SELECT m.value FROM {views['metric']} m WHERE m.name = 'gc.pause.p99' AND m.trace_id IN
            (SELECT trace_id FROM {views['trace_label']} WHERE name = 'commit' AND value = 'c1')""",
        "the findings of one recording": f"SELECT rule, verdict, score FROM {views['finding']} WHERE trace_id = '{key}'",
    }


def asked(query):
    best = []
    for _ in range(3):
        connection = duckdb.connect()
        began = time.monotonic()
        connection.execute(query).fetchall()
        best.append(time.monotonic() - began)
    return statistics.median(best)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--counts", default="1000,10000,100000")
    parser.add_argument("--real", type=int, default=400)
    parser.add_argument("--sample", default="subjects.nettrace")
    parser.add_argument("--tables", default="figures")
    parser.add_argument("--pack", type=int, default=8000, help="recordings of a pack in the copies")
    arguments = parser.parse_args()
    program, folder = os.path.abspath(arguments.program), arguments.folder.resolve()
    print(f"Load before the run {os.getloadavg()[0]:.1f}; tables: {arguments.tables}.\n")
    try:
        recordings = made(folder / "recordings", arguments.real, [arguments.sample])
        lake = folder / "lake"
        seconds, cpu, peak = run([program, "convert", "-q", "--append", "--jobs", "0", "--tables", arguments.tables, "--label", "branch=main", recordings, "-o", lake])
        number, size = files_of(lake)
        print(f"{arguments.real} recordings: {seconds:.1f} s, {number:,} files, {size:,.1f} MB")
        stats = timed([program, "diff", lake, lake])
        print(f"- `diff` of it with itself: {stats[0]:.2f} s, {stats[1]:.2f} s of processor time")
        seconds, cpu, peak = run([program, "dataset", "compact", lake, "--grace", "0"])
        number, size = files_of(lake)
        print(f"- `dataset compact`: {seconds:.1f} s, {cpu:.1f} s of processor time, {peak:.0f} MB at the peak; then {number:,} files, {size:,.1f} MB")
        stats = timed([program, "diff", lake, lake])
        print(f"- `diff` then: {stats[0]:.2f} s, {stats[1]:.2f} s of processor time\n")
        one = made(folder / "one", 1, [arguments.sample]) / f"{Path(arguments.sample).stem}-00001.nettrace"
        rules = folder / "rules.toml"
        rules.write_text(RULES)
        [pack] = (lake / "manifest" / "packed").glob("*.json")
        print("| recordings | packs | files | MB | list: s | append one: s | CPU s | check: s | peak MB | check --since LABEL: s | one recording: s | a commit: s | findings: s |")
        print("|---:" * 13 + "|")
        for turn, count in enumerate(int(count) for count in arguments.counts.split(",")):
            target = folder / f"of-{count}"
            for table in lake.iterdir():
                if (table / "trace=none").is_dir():
                    shutil.copytree(table / "trace=none", target / table.name / "trace=none")
            shutil.copy(lake / "manifest.json", target)
            copies, per_pack, keys = -(-count // arguments.real), max(1, arguments.pack // arguments.real), []
            for first in range(0, copies, per_pack):
                keys += copied(pack, lake, target, min(per_pack, copies - first), first + 1)
            run([program, "dataset", "repair", target])
            number, size = files_of(target)
            packs = len(list((target / "manifest" / "packed").glob("*.json")))
            listed = timed([program, "dataset", "list", target])
            appended = []
            for turn in range(3):
                one.write_bytes(changed((SAMPLES / arguments.sample).read_bytes(), 30_000 + 10 * count + turn))
                appended.append(run([program, "convert", "-q", "--append", "--tables", arguments.tables, "--label", "branch=main", "--label", "commit=new", one, "-o", target]))
            appended = [statistics.median(column) for column in zip(*appended)]
            checked = timed([program, "check", target, "--rules", rules, "--new", "commit=new", "--baseline", "branch=main", "--last", "20", "--since", "400d"])
            since = timed([program, "check", target, "--rules", rules, "--new", "commit=new", "--baseline", "branch=main,commit!=new", "--since", "commit=c1", "--last", "20"])
            answers = [asked(query) for query in questions(target, keys[len(keys) // 2]).values()]
            print(f"| {len(keys):,} | {packs} | {number:,} | {size:,.0f} | {listed[0]:.2f} | {appended[0]:.2f} | {appended[1]:.2f} | {checked[0]:.2f} "
                  f"| {checked[2]:.0f} | {since[0]:.2f} | {' | '.join(f'{seconds:.3f}' for seconds in answers)} |", flush=True)
            shutil.rmtree(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
