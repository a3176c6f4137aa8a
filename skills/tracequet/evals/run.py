#!/usr/bin/env python3
"""Runs the commands of SKILL.md on recordings whose cause is planted, and checks that each step shows what the skill promises.

    python3 skills/tracequet/evals/run.py target/debug/tracequet

No model is needed: the commands are taken from the skill's own blocks, so a command that no longer runs fails here. Steps in SQL need DuckDB
(the Python package); without it they are skipped, and the last line says so.
"""

import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SKILL = HERE.parent / "SKILL.md"


def commands():
    """The commands of the skill's `sh` blocks, by what an evaluation calls them: the command and its `--what` or `--type`."""
    found = {}
    for block in re.findall(r"^```sh\n(.*?)^```", SKILL.read_text(), re.M | re.S):
        for line in filter(None, block.splitlines()):
            words = shlex.split(line)
            name = words[1] if words[0] == "tracequet" else words[0]
            for option in ("--what", "--type"):
                if option in words:
                    name += f" {option}" + (f" {words[words.index(option) + 1]}" if option == "--what" else "")
            if name in found:
                sys.exit(f"two commands of the skill are called '{name}'")
            found[name] = words
    return found


class Case:
    """One recording, and what its steps have shown so far."""

    def __init__(self, program, case, folder):
        self.program, self.case, self.folder = program, case, folder
        self.finding = None

    def words(self, words):
        """A command of the skill with this recording's names in it."""
        names = {
            "tracequet": self.program,
            "app.nettrace": str(ROOT / self.case["recording"]),
            "before.nettrace": str(ROOT / self.case.get("before", "")),
            "heap.nettrace": str(ROOT / self.case.get("heap", "")),
            "System.String": self.case.get("type", ""),
            "app": str(self.folder / "app"),
        }
        return [names.get(word, word) for word in words]

    def run(self, words):
        """What the command prints. 2 says that events were lost, which is an answer."""
        done = subprocess.run(self.words(words), capture_output=True, text=True, cwd=self.folder)
        if done.returncode not in (0, 2):
            raise AssertionError(f"exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def query(self, sql):
        """Rows of a query over the dataset that `convert` wrote."""
        import duckdb

        with duckdb.connect() as connection:
            connection.execute(f"SET file_search_path = '{self.folder / 'app'}'")
            connection.execute((self.folder / "app" / "views.sql").read_text())
            return connection.execute(sql).fetchall()

    def check(self, step, skill):
        """Runs one step and compares what it shows with what is promised."""
        name = step["step"]
        if name == "evidence_sql":
            shown = self.query(self.finding["evidence_sql"])
        elif name == "duckdb":
            shown = self.query(skill["duckdb"][-1])
        else:
            shown = self.run(skill[name])
            if "--format" in skill[name] and "json" in skill[name]:
                shown = json.loads(shown)
        if name == "explain":
            self.finding = shown[0]["findings"][0]
            wanted = (step["first_rule"], step["own_method"], "warning")
            got = tuple(self.finding[key] for key in ("rule", "own_method", "verdict"))
            assert got == wanted, f"the first finding is {got}, expected {wanted}"
            assert self.finding["advice"] and self.finding["next_step"], "the first finding says neither what to change nor how to go on"
        if "first_line" in step:
            line = next((line for line in shown.splitlines() if line != "(framework)" and not line.startswith("(framework) ")), "")
            assert re.search(step["first_line"], line), f"the heaviest stack with user code is: {line}"
        if "rows" in step:
            assert len(shown) >= step["rows"], f"{len(shown)} rows, expected {step['rows']}"
        if "has" in step:
            text = shown if isinstance(shown, str) else json.dumps(shown, default=str)
            assert re.search(step["has"], text), f"'{step['has']}' is not in: {text[:400]}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = str(pathlib.Path(sys.argv[1]).resolve())
    skill = commands()
    try:
        import duckdb  # noqa: F401

        has_duckdb = True
    except ImportError:
        has_duckdb = False
    evals = json.loads((HERE / "evals.json").read_text())
    unused = set(skill) - {step["step"] for case in evals["recordings"] for step in case["steps"]}
    failed = skipped = passed = 0
    for case in evals["recordings"]:
        with tempfile.TemporaryDirectory() as folder:
            state = Case(program, case, pathlib.Path(folder))
            for step in case["steps"]:
                label = f"{case['recording']}: {step['step']}"
                if step["step"] in ("duckdb", "evidence_sql") and not has_duckdb:
                    skipped += 1
                    continue
                try:
                    state.check(step, skill)
                    passed += 1
                except (AssertionError, LookupError, ValueError, TypeError) as error:
                    failed += 1
                    print(f"FAILED {label}: {type(error).__name__}: {error}")
    # A command that no recording tries must at least be there.
    for name in sorted(unused):
        words = [program if word == "tracequet" else word for word in skill[name][:2]] + ["--help"]
        if subprocess.run(words, capture_output=True).returncode != 0:
            failed += 1
            print(f"FAILED {name}: {shlex.join(words)}")
    print(f"{passed} steps show what the skill promises, {failed} do not, {skipped} need DuckDB; only tried with --help: {', '.join(sorted(unused))}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
