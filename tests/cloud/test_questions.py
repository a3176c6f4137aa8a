"""Questions about a dataset in a store: the answers are those about the same dataset in a directory."""

import json

import pytest

from conftest import SAMPLES

GIVEN = [SAMPLES / name for name in ("gc-churn.nettrace", "heap.nettrace", "stacks.nettrace")]
# An object that survived a collection of gc-churn.
SURVIVOR = ["2", "139981729306672", "--follow", "--trace", "gc-churn"]
# The tables that are asked for; those of each event would take most of the time.
TABLES = """trace,metric,process,thread,event_type,gc,gc_pause,gc_generation_range,gc_surviving_range,gc_moved_range,gc_root,
gc_weak_element,heap_object,heap_reference,method,type,callsite,frame,cpu_sample,allocation,exception""".replace("\n", "")
QUESTIONS = [
    ["stats"],
    ["stats", "--latest", "--format", "markdown"],
    ["stats", "--json"],
    ["check", "--rules", "perf.toml", "--new", "run=2", "--baseline", "run=1"],
    ["check", "--rules", "perf.toml", "--json"],
    ["diff", "--baseline", "run=1", "--new", "run=2"],
    ["diff", "--baseline", "run=1", "--new", "run=2", "--json"],
    ["survived", *SURVIVOR],
    ["survived", *SURVIVOR, "--json"],
    ["cohorts", "--trace", "gc-churn", "--format", "csv"],
    ["cohorts", "--trace", "gc-churn"],
    ["export", "--trace", "stacks", "--format", "folded", "--by-thread"],
    ["export", "--trace", "stacks", "--format", "firefox"],
    ["export", "--trace", "gc-churn", "--what", "allocation", "--format", "pprof"],
    ["heap", "--trace", "heap"],
    ["heap", "--trace", "heap", "--json"],
    ["dataset", "list"],
    ["dataset", "verify"],
]
RULES = """
rules = ["gc.count <= baseline", "heap.size.max <= baseline * 1.1", "allocation.by_type[*] <= 1GB", "exception.count == 0"]
"""


def answer(program, question, lake, folder):
    """How the program ended, and what it said, with another name for the dataset."""
    # `dataset` has a command of its own, behind which the dataset stands.
    words = 2 if question[0] == "dataset" else 1
    process = program.start(*question[:words], lake, *question[words:], cwd=folder)
    out, err = process.communicate(timeout=120)
    assert not list(program.temporary.iterdir()), "temporary files are left"
    return process.returncode, out.replace(str(lake), "LAKE"), err.replace(str(lake), "LAKE")


def test_a_dataset_in_a_store_answers_as_that_of_a_directory(s3, bucket, tmp_path):
    (tmp_path / "perf.toml").write_text(RULES)
    stored, local = f"{bucket.address}/lake", tmp_path / "lake"
    for lake in (stored, local):
        s3("convert", *GIVEN[:2], "-o", lake, "--append", "--label", "run=1", "--tables", TABLES)
        s3("convert", GIVEN[2], "-o", lake, "--append", "--label", "run=2", "--tables", TABLES)
    for question in QUESTIONS:
        ours, theirs = answer(s3, question, stored, tmp_path), answer(s3, question, local, tmp_path)
        assert ours == theirs, question
        assert ours[0] in (0, 2, 3) and len(ours[1]) > 100 or question[1:] == ["verify"], (question, ours)
    # The verdicts stand on figures, and runs are known by what makes them comparable.
    said = json.loads(answer(s3, ["stats", "--json"], stored, tmp_path)[1])
    assert len(said) == 3 and all(run["fingerprint"]["format"] and len(run["metrics"]) > 20 for run in said)


def test_a_dataset_of_one_recording_answers_alike(s3, bucket, tmp_path):
    stored, local = f"{bucket.address}/one", tmp_path / "one"
    for lake in (stored, local):
        s3("convert", GIVEN[0], "-o", lake)
    for question in [["stats"], ["survived", *SURVIVOR[:3]], ["cohorts", "--format", "csv"], ["dataset", "list"], ["dataset", "verify"]]:
        ours, theirs = answer(s3, question, stored, tmp_path), answer(s3, question, local, tmp_path)
        assert ours == theirs and ours[0] == 0, question


@pytest.mark.parametrize("layout", ["one", "several"])
def test_figures_without_their_table_are_made_of_the_others(s3, bucket, tmp_path, layout):
    """As of a dataset in a directory: those tables are fetched."""
    tables = "trace,process,gc,gc_pause,allocation,event_type"
    stored, local, whole = f"{bucket.address}/few", tmp_path / "few", tmp_path / "whole"
    given = GIVEN[:1] if layout == "one" else GIVEN
    for lake in (stored, local):
        s3("convert", *given, "-o", lake, "--tables", tables)
    s3("convert", *given, "-o", whole)
    ours, theirs = (answer(s3, ["stats", "--json"], lake, tmp_path) for lake in (stored, local))
    assert ours == theirs
    figures, all_figures = ({(run["trace_id"], m["name"]): m["value"] for run in json.loads(said[1]) for m in run["metrics"]}
                            for said in (ours, answer(s3, ["stats", "--json"], whole, tmp_path)))
    assert {"gc.count", "gc.pause.p99", "allocation.bytes"} <= {name for _, name in figures}
    assert all(all_figures[key] == value for key, value in figures.items())
    assert "there are no metrics of finding, cpu_sample, " in ours[2], ours[2]


def test_recordings_with_and_without_that_table_stand_side_by_side(s3, bucket, tmp_path):
    lake = f"{bucket.address}/mixed"
    s3("convert", GIVEN[0], "-o", lake, "--append")
    s3("convert", GIVEN[1], "-o", lake, "--append", "--tables", "gc,gc_pause")
    said = json.loads(s3("stats", lake, "--json").out)
    names = [{metric["name"] for metric in run["metrics"]} for run in said]
    assert all({"gc.count", "gc.pause.p99"} <= of_run for of_run in names) and "allocation.bytes" in names[0]
