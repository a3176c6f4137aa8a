#!/usr/bin/env python3
"""Measures a compacted dataset by its number of recordings: fleet.py TRACEQUET FOLDER [--counts 1000,10000,100000]
[--sample gc-churn.nettrace] [--tables figures] [--spark]

In FOLDER (nothing is left there) it makes recordings of one of samples/, each with another process id and time, adds
them to one dataset with `--append --pack`, a thousand at a time, and removes them. At each of the counts it compacts
the dataset, lists and verifies it, adds one recording, checks rules on the 20 newest runs of a label against 20
others, asks which recordings are older than a day, and asks DuckDB for the pauses of one day's recordings, one
recording, and one commit (with --spark, Spark for the first). Prints Markdown. The Python needs duckdb, and pyspark
and Java for --spark.
"""

import argparse
import os
import shutil
import statistics
import time
from pathlib import Path

import duckdb
from batch import files_of, run
from many import changed

SAMPLES = Path(__file__).parent.parent / "samples"
RULES = 'rules = ["gc.count >= 0", "gc.pause.p99 <= baseline * 100"]\n'
CHUNK = 1000
DAY = """SELECT count(*), quantile_cont(m.value, 0.5) FROM {metric} m JOIN {trace} t USING (trace_id)
    WHERE m.name = 'gc.pause.p99' AND day(t.start_ts) = 7"""


def timed(arguments, times=3):
    """Medians of seconds on the clock, seconds of processors and megabytes."""
    runs = [run(arguments) for _ in range(times)]
    return tuple(statistics.median(column) for column in zip(*runs))


def views(lake):
    return {table: f"read_parquet('{lake}/{table}/*/*.parquet', hive_partitioning = false)" for table in ("trace", "gc", "metric", "trace_label")}


def questions(lake, key):
    tables = views(lake)
    return [
        DAY.format(**tables),
        f"SELECT generation, count(*), sum(pause_ns) FROM {tables['gc']} WHERE trace_id = '{key}' GROUP BY ALL",
        f"""SELECT m.value FROM {tables['metric']} m WHERE m.name = 'gc.pause.p99' AND m.trace_id IN
            (SELECT trace_id FROM {tables['trace_label']} WHERE name = 'commit' AND value = 'c1')""",
    ]


def asked(query):
    """Median of the seconds on the clock of three connections."""
    took = []
    for _ in range(3):
        connection = duckdb.connect()
        began = time.monotonic()
        connection.execute(query).fetchall()
        took.append(time.monotonic() - began)
    return statistics.median(took)


def asked_of_spark(lake):
    """Seconds of the second of two runs of the day's query: the first one compiles it."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for table in ("trace", "metric"):
        spark.read.parquet(f"{lake}/{table}/*/*.parquet").createOrReplaceTempView(table)
    query = DAY.format(metric="metric", trace="trace").replace("quantile_cont(m.value, 0.5)", "percentile(m.value, 0.5)")
    for _ in range(2):
        began = time.monotonic()
        spark.sql(query).collect()
        took = time.monotonic() - began
    spark.stop()
    return took


def add(program, lake, folder, sample, chunk, tables):
    """Adds recordings number CHUNK * chunk and on. Seconds of processors and megabytes."""
    recording, coming = (SAMPLES / sample).read_bytes(), folder / "coming"
    coming.mkdir()
    for number in range(CHUNK * chunk, CHUNK * (chunk + 1)):
        (coming / f"{Path(sample).stem}-{number:06}.nettrace").write_bytes(changed(recording, number))
    labels = ["--label", f"branch={'b' if chunk % 10 == 9 else 'main'}", "--label", f"commit=c{chunk}"]
    _, cpu, peak = run([program, "convert", "-q", "--append", "--pack", "--tables", tables, *labels, coming, "-o", lake])
    shutil.rmtree(coming)
    return cpu, peak


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--counts", default="1000,10000,100000")
    parser.add_argument("--sample", default="gc-churn.nettrace")
    parser.add_argument("--tables", default="figures")
    parser.add_argument("--spark", action="store_true")
    arguments = parser.parse_args()
    program, folder = os.path.abspath(arguments.program), arguments.folder.resolve()
    print(f"Load before the run {os.getloadavg()[0]:.1f}; tables: {arguments.tables}; times in seconds, memory in MB.\n")
    head = "recordings|add: CPU ms each|MB|compact: CPU s|MB|packs|files|MB|list|verify|MB|append one|CPU|check|MB|check --since LABEL|expire --dry-run"
    head += "|one day: DuckDB|one recording|a commit" + ("|one day: Spark" if arguments.spark else "")
    print(f"| {' | '.join(head.split('|'))} |\n{'|---:' * (head.count('|') + 1)}|")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lake, rules = folder / "lake", folder / "rules.toml"
        rules.write_text(RULES)
        chunks = 0
        for count in (int(count) for count in arguments.counts.split(",")):
            added = []
            for chunk in range(chunks, -(-count // CHUNK)):
                added.append(add(program, lake, folder, arguments.sample, chunk, arguments.tables))
            chunks += len(added)
            last = added[-10:]
            _, compact, compact_peak = run([program, "dataset", "compact", lake, "--grace", "0"])
            number, size = files_of(lake)
            packs = len(list((lake / "manifest" / "packed").glob("*.json")))
            listed, verified = timed([program, "dataset", "list", lake]), run([program, "dataset", "verify", lake])
            key = duckdb.sql(f"SELECT max(trace_id) FROM {views(lake)['trace']}").fetchall()[0][0]
            appended, one = [], folder / "one.nettrace"
            for turn in range(3):
                one.write_bytes(changed((SAMPLES / arguments.sample).read_bytes(), 1_000_000 + 10 * count + turn))
                appended.append(run([program, "convert", "-q", "--append", "--tables", arguments.tables, "--label", "branch=main", "--label", "commit=new", one, "-o", lake]))
            appended = [statistics.median(column) for column in zip(*appended)]
            check = [program, "check", lake, "--rules", rules, "--new", "commit=new", "--last", "20"]
            checked = timed([*check, "--baseline", "branch=main", "--since", "400d"])
            since = timed([*check, "--baseline", "branch=main,commit!=new", "--since", "commit=c0"])
            expired = timed([program, "dataset", "expire", lake, "--older-than", "1d", "--dry-run"])
            answers = [f"{asked(query):.3f}" for query in questions(lake, key)]
            if arguments.spark:
                answers.append(f"{asked_of_spark(lake):.2f}")
            cells = [f"{CHUNK * chunks:,}", f"{1000 * statistics.median(cpu for cpu, _ in last) / CHUNK:.1f}", f"{max(peak for _, peak in last):.0f}",
                     f"{compact:.1f}", f"{compact_peak:.0f}", packs, f"{number:,}", f"{size:,.0f}", f"{listed[0]:.2f}", f"{verified[0]:.1f}", f"{verified[2]:.0f}",
                     f"{appended[0]:.2f}", f"{appended[1]:.2f}", f"{checked[0]:.2f}", f"{checked[2]:.0f}", f"{since[0]:.2f}", f"{expired[0]:.2f}", *answers]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
