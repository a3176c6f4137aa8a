#!/usr/bin/env python3
"""Kills programs that work on one dataset: killed_lake.py TRACEQUET FOLDER [--minutes 10] [--writers 4] [--each 100]
[--seed 1]

In FOLDER (which needs some 2 GB; nothing is left there) it makes small recordings out of samples/, for each of four
writers its own. A writer appends them a few at a time, and begins again from the first when it has done all: those that
went come back. Every second writer uses --pack, and every third recording has the label keep=no. Beside them one
program compacts, one expires the recordings with keep=no, and one removes a recording and adds it again. Each of these
processes is killed (SIGKILL) after a random time, most of them before they are done. Meanwhile a reader asks for rows
that a glob over the files finds twice, and whether the entries can be read.

In the end each program runs once undisturbed. Then every table of the dataset must have exactly the rows of one that
was made in one run of the recordings that stay (tests/python/same_lakes.py, EXCEPT ALL both ways), and `dataset verify`
must find nothing wrong. Prints Markdown. The Python needs duckdb.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
from many import changed

ROOT = Path(__file__).parent.parent
SAMPLES = ["gc-churn.nettrace", "events.nettrace", "stacks.nettrace"]
TABLES = "metric,finding,gc,gc_pause,process,event_type,gc_surviving_range,gc_moved_range,gc_generation_range,method,callsite,frame,allocation,exception,event/Microsoft-Windows-DotNETRuntime"


class Roles:
    def __init__(self, program, lake, seed):
        self.program, self.lake, self.seed = program, lake, seed
        self.end = threading.Event()
        self.lock = threading.Lock()
        self.kills, self.runs, self.wrong, self.looks, self.skipped = {}, {}, [], 0, 0

    def run(self, role, arguments, dice):
        """Runs the program, and kills it after a random time most times. Returns whether it ended by itself."""
        process = subprocess.Popen([self.program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        patience = dice.choice([0.02, 0.1, 0.5, 2, 5]) * dice.random() if dice.random() < 0.8 else None
        try:
            _, errors = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            with self.lock:
                self.kills[role] = self.kills.get(role, 0) + 1
            return False
        with self.lock:
            self.runs[role] = self.runs.get(role, 0) + 1
            # 1: a removal of what is not there.
            if process.returncode not in (0, 2) and not (role == "remove" and b"there is no recording" in errors):
                self.wrong.append(f"{role} ended with {process.returncode}: {errors.decode()[-400:]}")
        return True

    def writer(self, number, recordings):
        dice = random.Random(f"{self.seed} writer {number}")
        while not self.end.is_set():
            at = 0
            while at < len(recordings) and not self.end.is_set():
                few = recordings[at:at + dice.randint(1, 8)]
                done = True
                for keep in ("yes", "no"):
                    chosen = [path for path in few if (path.name.count("keep-no") == 1) == (keep == "no")]
                    if chosen:
                        more = ["--pack"] if number % 2 else []
                        done &= self.run(" ".join(["append", *more]), append(self.lake, chosen, keep, *more), dice)
                at += len(few) if done else 0

    def repeat(self, role, arguments, pause):
        dice = random.Random(f"{self.seed} {role}")
        while not self.end.is_set():
            self.run(role, arguments(dice), dice)
            self.end.wait(pause * dice.random())

    def remover(self, recordings):
        dice = random.Random(f"{self.seed} remove")
        while not self.end.is_set():
            keys = [path.name[:-5] for path in (self.lake / "manifest").glob("*.json")]
            keys += [one for pack in (self.lake / "manifest" / "packed").glob("*.json") for one in keys_of(pack)]
            if keys:
                self.run("remove", ["dataset", "remove", self.lake, dice.choice(keys)], dice)
            self.end.wait(dice.random())

    def reader(self):
        """No row is there twice for a glob, and all entries can be read."""
        while not self.end.is_set():
            for table, columns in (("trace", "trace_id"), ("gc", "trace_id, process_id, gc_id")):
                query = f"""SELECT {columns}, count(*) FROM read_parquet('{self.lake}/{table}/*/*.parquet', hive_partitioning = false)
                            GROUP BY ALL HAVING count(*) > 1 LIMIT 3"""
                try:
                    found = duckdb.connect().execute(query).fetchall()
                except duckdb.Error:
                    # A file that was listed is gone.
                    self.skipped += 1
                    continue
                self.looks += 1
                if found:
                    self.wrong.append(f"twice in {table}: {found}")
            if (self.lake / "manifest.json").exists():
                listed = subprocess.run([self.program, "dataset", "list", self.lake], capture_output=True)
                if listed.returncode != 0:
                    self.wrong.append(f"list ended with {listed.returncode}: {listed.stderr.decode()[-400:]}")


def keys_of(pack):
    import json

    try:
        return [recorded["trace_id"] for recorded, _, _ in json.loads(pack.read_bytes())["recordings"]]
    except (FileNotFoundError, ValueError):
        return []


def append(lake, recordings, keep, *more):
    return ["convert", "-q", "--append", *more, "--tables", TABLES, "--label", f"keep={keep}", "-o", lake, *recordings]


def made(folder, writer, count):
    folder.mkdir(parents=True)
    recordings = [(Path(name).stem, (ROOT / "samples" / name).read_bytes()) for name in SAMPLES]
    paths = []
    for number in range(count):
        name, recording = recordings[number % len(recordings)]
        keep = "no" if number % 3 == 2 or number % 7 == 0 else "yes"
        path = folder / f"{name}-keep-{keep}-{writer}-{number:05}.nettrace"
        path.write_bytes(changed(recording, writer * count + number))
        paths.append(path)
    return paths


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--each", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    folder, program = arguments.folder.resolve(), os.path.abspath(arguments.program)
    folder.mkdir(parents=True)
    load = os.getloadavg()[0]
    try:
        lake, plain = folder / "lake", folder / "plain"
        recordings = [made(folder / f"of-{writer}", writer, arguments.each) for writer in range(arguments.writers)]
        roles = Roles(program, lake, arguments.seed)
        expire = ["dataset", "expire", lake, "--keep-last", "0", "--where", "keep=no"]
        threads = [threading.Thread(target=roles.writer, args=(n, own)) for n, own in enumerate(recordings)]
        compact = lambda dice: ["dataset", "compact", lake, "--grace", dice.choice(["0", "1h"])]
        threads.append(threading.Thread(target=roles.repeat, args=("compact", compact, 1)))
        threads.append(threading.Thread(target=roles.repeat, args=("compact", compact, 3)))
        threads.append(threading.Thread(target=roles.repeat, args=("expire", lambda _: expire, 5)))
        threads.append(threading.Thread(target=roles.remover, args=(recordings,)))
        threads.append(threading.Thread(target=roles.reader))
        # The other roles need a dataset.
        subprocess.run([program, *append(lake, recordings[0][1:2], "yes")], check=True)
        for thread in threads:
            thread.start()
        time.sleep(arguments.minutes * 60)
        roles.end.set()
        for thread in threads:
            thread.join()
        # Undisturbed, once each.
        subprocess.run([program, *expire], check=True, stdout=subprocess.DEVNULL)
        kept = [path for own in recordings for path in own if "keep-yes" in path.name]
        for target in (lake, plain):
            subprocess.run([program, *append(target, kept, "yes")], check=True)
        packs = len(list((lake / "manifest" / "packed").glob("*.json")))
        print(f"Load before the run {load:.1f}. {arguments.minutes:g} minutes, {arguments.writers} writers.\n")
        print("| role | killed | ended by itself |\n|---|---:|---:|")
        for role in sorted({*roles.kills, *roles.runs}):
            print(f"| {role} | {roles.kills.get(role, 0):,} | {roles.runs.get(role, 0):,} |")
        print(f"\n{sum(roles.kills.values()):,} kills. The glob was asked {roles.looks:,} times ({roles.skipped:,} more found a file gone).")
        for end in ("as it was", "compacted"):
            if end == "compacted":
                subprocess.run([program, "dataset", "compact", lake, "--grace", "0"], check=True, stdout=subprocess.DEVNULL)
            verified = subprocess.run([program, "dataset", "verify", lake], capture_output=True, text=True)
            same = subprocess.run([sys.executable, ROOT / "tests/python/same_lakes.py", plain, lake], capture_output=True, text=True)
            print(f"{end}: {verified.stdout.strip().splitlines()[-1]}; {(same.stdout + same.stderr).strip().splitlines()[-1]}")
            if verified.returncode or same.returncode:
                roles.wrong.append(f"{end}: {verified.stdout[-600:]}")
        print(f"{packs} packs and {len(kept):,} recordings in the end.")
        for wrong in roles.wrong[:20]:
            print(f"WRONG: {wrong}")
        sys.exit(1 if roles.wrong else 0)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
