"""What a trace answers beside its tables: findings, heaps, pages, profiles, and what notebooks show."""

import html
import html.parser
import json
import re
import subprocess
import sys

import pyarrow
import pyarrow.parquet
import pytest

import tracequet
from conftest import CHURN, SAMPLES, files_of


def shown(text):
    """The text of a piece of HTML, which must be well formed."""
    found, open_tags = [], []

    class Parser(html.parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            assert tag not in ("script", "img", "iframe"), tag
            if tag != "br":
                open_tags.append(tag)

        def handle_endtag(self, tag):
            assert open_tags.pop() == tag

        def handle_data(self, data):
            found.append(data)

    Parser().feed(text)
    assert not open_tags
    return "\n".join(found)


def test_findings_are_those_of_the_command(dataset, lake):
    for path in (CHURN, dataset, lake):
        findings = tracequet.open(path).findings
        commands = [{"trace_id": one["trace_id"], **finding} for one in tracequet.explain(path) for finding in one["findings"]]
        assert len(findings) == len(commands) > 10
        # The command sorts those of each recording.
        keys = [one["trace_id"] for one in commands]
        for ours, theirs in zip(sorted(findings, key=lambda finding: keys.index(finding.trace_id)), commands):
            # The command names the recording in the next step, of several by its key.
            theirs["next_step"] = theirs["next_step"].replace(f" --trace {ours.trace_id}", "")
            assert {**ours._asdict(), "next_step": ours.next_step.replace("IN", str(path))} == theirs
        assert findings[0].verdict == "warning" and not findings[0].of_recording
        # As a table it is the rows of `finding`.
        table = findings.to_arrow()
        assert sorted(table["rule"].to_pylist()) == sorted(finding.rule for finding in findings)
    text = shown(findings._repr_html_())
    assert findings[0].sentence in text and "recording" in text and "lack their events" in text


def test_explain_is_what_the_command_prints(dataset):
    text = tracequet.open(dataset).explain()
    assert isinstance(text, str) and repr(text) == str(text)
    assert "WARNING" in text and str(dataset) in text
    of_recording = tracequet.open(CHURN).explain(all=True)
    assert "FINE" in of_recording and str(CHURN) in of_recording and "/dataset" not in of_recording
    with pytest.raises(tracequet.UsageError, match="no-such-recording"):
        tracequet.open(dataset).explain(trace="no-such-recording")


def test_a_table_shows_its_first_rows(dataset, lake):
    for path in (CHURN, dataset, lake):
        table = tracequet.open(path)["gc"]
        rows = table.head(3)
        truth = table.to_arrow().slice(0, 3).to_pylist()
        assert rows == truth and len(rows) == 3
        text = shown(table._repr_html_())
        for name in table.columns:
            assert name in text
        assert "Int64, ns" in text and "Garbage collections." in text and "the first 10 rows" in text
        assert str(truth[0]["promoted_bytes"]) in text
        assert table.select("gc_id").head(2) == [{"gc_id": 1}, {"gc_id": 2}]
    assert table.head(0) == [] and len(table.head(1000)) == 19


@pytest.mark.parametrize("name", ("events.nettrace", "described.etl", "kernel.etl", "callbacks.corprof", "heap-10.gcdump"))
def test_the_first_rows_of_every_table_are_those_of_arrow(name):
    trace = tracequet.open(SAMPLES / name)
    seen = 0
    for table in trace.tables:
        rows = trace[table].head(2)
        truth = trace[table].to_arrow().slice(0, 2)
        assert len(rows) == truth.num_rows
        for ours, theirs in zip(rows, truth.to_pylist()):
            for column, value in theirs.items():
                assert ours[column] == value or value != value, (table, column, ours[column], value)
                seen += 1
    assert seen > 50


def test_rows_that_take_long_are_not_waited_for(monkeypatch):
    from tracequet import _html

    monkeypatch.setattr(_html, "PATIENCE", -1.0)
    # The table is made at the end of the recording.
    text = shown(tracequet.open(SAMPLES / "gc-churn.nettrace")["metric"]._repr_html_())
    assert "Rows are not shown" in text or "the first 10 rows" in text


def test_hostile_values_stay_text():
    from tracequet import _html

    evil = "<script>alert(1)</script>'\"&" + "x" * 500
    finding = {**tracequet.open(CHURN).findings[0]._asdict(), "sentence": evil, "own_method": evil, "next_step": evil}
    assert "<script" not in _html.findings([finding]) and evil in shown(_html.findings([finding]))
    table = _html.table(evil, evil, [(evil, evil, evil, evil)], [{evil: evil}])
    assert "<script" not in table and shown(table)


def test_a_trace_shows_its_findings(dataset):
    for path in (CHURN, dataset):
        trace = tracequet.open(path)
        text = shown(trace._repr_html_())
        assert trace.findings[0].sentence in text and "gc-churn" in text
    assert "trace.report()" in shown(tracequet.open(CHURN)._repr_html_())


def test_a_page_is_that_of_the_command(tmp_path, dataset):
    page = tmp_path / "report.html"
    assert tracequet.open(dataset).report(page) == str(page)
    command = [sys.executable, "-m", "tracequet", "report", str(dataset)]
    assert page.read_bytes() == subprocess.run(command, capture_output=True, check=True).stdout
    with pytest.raises(tracequet.UsageError, match="exists"):
        tracequet.open(dataset).report(page)
    assert tracequet.open(CHURN).report(page, overwrite=True) == str(page)
    assert "<h1" in page.read_text(encoding="utf-8")
    with pytest.raises(FileNotFoundError):
        tracequet.open(CHURN).report(tmp_path / "nowhere" / "report.html")
    with pytest.raises(tracequet.UsageError):
        tracequet.open(dataset).report(tmp_path / "other.html", trace="no-such-recording")
    assert not (tmp_path / "other.html").exists()


def test_heaps_and_paths():
    path = SAMPLES / "heap-10.nettrace"
    heap = tracequet.heap(path)
    assert heap["objects"] == 2351 and heap["types"][0]["type"] == "System.Byte[]"
    trace = tracequet.open(path)
    assert trace.heap() == heap
    city = trace.heap(type="City")
    assert city["object"]["type"] == "City" and city["shortest_path"][-1]["type"] == "City"
    again = trace.heap(object=city["object"]["address"])
    assert again["shortest_path"] == city["shortest_path"]
    with pytest.raises(tracequet.UsageError, match="NoSuchType"):
        tracequet.heap(path, type="NoSuchType")
    with pytest.raises(tracequet.UsageError):
        tracequet.heap(CHURN)


@pytest.mark.parametrize("format", ("speedscope", "folded", "pprof", "firefox", "perfetto", "otlp"))
def test_profiles(tmp_path, format):
    path = tmp_path / "profile"
    assert tracequet.export(SAMPLES / "stacks.nettrace", path, format=format) == str(path)
    trace = tracequet.open(SAMPLES / "stacks.nettrace")
    trace.export(tmp_path / "other", format=format)
    assert path.stat().st_size > 1000
    if format == "speedscope":
        names = {frame["name"] for frame in json.loads(path.read_text())["shared"]["frames"]}
        trace.export(path, own=True, overwrite=True)
        own = {frame["name"] for frame in json.loads(path.read_text())["shared"]["frames"]}
        assert "(framework)" in own - names
    with pytest.raises((tracequet.Error, FileExistsError)):
        tracequet.export(SAMPLES / "stacks.nettrace", path, format=format)
    with pytest.raises(tracequet.UsageError, match="nothing to export|expected no other choice"):
        tracequet.export(SAMPLES / "stacks.nettrace", tmp_path / "none", format=format, what="contention")


def test_comparisons(lake):
    found = tracequet.diff(CHURN, SAMPLES / "gc-churn-3.1.nettrace")
    by_name = {metric["metric"]: metric for metric in found["metrics"]}
    assert by_name["gc.count"]["base"] == 19
    same = tracequet.diff(CHURN, CHURN)
    assert all(metric["what"] == "same" for metric in same["metrics"] if metric["metric"] == "gc.count")
    with pytest.raises((tracequet.Error, OSError)):
        tracequet.diff(lake, baseline="branch=main", new="branch=nothing")


def test_differences(lake):
    other = SAMPLES / "gc-churn-3.1.nettrace"
    found = tracequet.diff(CHURN, other)
    allocations = next(section for section in found["sections"] if section["what"] == "allocation")
    for side, path in (("base", CHURN), ("new", other)):
        # The truth is in the table itself.
        amounts = tracequet.open(path)["allocation"].to_arrow()["allocation_bytes"].to_pylist()
        total = allocations[side]["total"]
        assert (total["count"], total["amount"]) == (len(amounts), sum(amounts)) and len(amounts) > 200
    assert {metric["metric"] for metric in found["metrics"]} & {"gc.count.gen0", "gc.count.gen1"}
    same = tracequet.diff(CHURN, CHURN, by="type", per="second")
    assert len(same["metrics"]) > 10 and same["per"] == "second"
    assert all(one["is_noise"] and one["what"] == "same" for one in same["metrics"] + same["findings"])
    assert all(row["is_noise"] and row["type"] for section in same["sections"] for row in section["rows"])
    chosen = tracequet.diff(lake, baseline="branch!=other", new="branch!=other")
    assert len(chosen["base"]) == len(chosen["new"]) == 2
    with pytest.raises((tracequet.Error, OSError)):
        tracequet.diff(lake, baseline="branch=main", new="branch=nothing")
    with pytest.raises(tracequet.UsageError):
        tracequet.diff(CHURN, other, by="nothing")


def test_what_cannot_be_recorded_is_an_error(tmp_path):
    for wrong in ({"process_id": 999_999_999}, {"name": "no-such-process"}, {}):
        with pytest.raises(tracequet.Error):
            tracequet.collect(tmp_path / "out", duration=1, **wrong)
    assert not (tmp_path / "out").exists()


def test_units_are_in_files_and_meanings_in_schemas(tmp_path, dataset, lake):
    units = {column["name"]: column.get("unit") for column in tracequet.schema("gc")[0]["columns"]}
    docs = {column["name"]: column["doc"] for column in tracequet.schema("gc")[0]["columns"]}
    assert units["pause_ns"] == "ns" and units["promoted_bytes"] == "bytes"
    tracequet.convert(CHURN, tmp_path / "arrow", format="arrow")
    schemas = [pyarrow.parquet.read_schema(path) for place in (dataset, lake) for path in files_of(place, "gc")]
    with pyarrow.ipc.open_file(str(tmp_path / "arrow" / "gc.arrow")) as file:
        schemas.append(file.schema)
    assert len(schemas) == 4
    for schema in schemas:
        for field in schema:
            if field.name != "trace_id":
                expected = {b"unit": units[field.name].encode()} if units[field.name] else {}
                assert {key: value for key, value in (field.metadata or {}).items() if key != b"PARQUET:field_id"} == expected
    for trace in map(tracequet.open, (CHURN, dataset, lake, tmp_path / "arrow")):
        for schema in (trace["gc"].to_arrow().schema, pyarrow.schema(trace["gc"]), pyarrow.schema(trace["gc"].select("pause_ns"))):
            field = schema.field("pause_ns")
            assert field.metadata == {b"unit": b"ns", b"doc": docs["pause_ns"].encode()}
        event = pyarrow.schema(trace["event/Microsoft-Windows-DotNETRuntime/GCStart"])
        assert b"doc" in event.field("ts_ns").metadata and not event.metadata


def test_functions_have_documents():
    for name in tracequet.__all__:
        assert name == "__version__" or re.search(r"\S", getattr(tracequet, name).__doc__ or ""), name
    public = [getattr(tracequet.Trace, name) for name in vars(tracequet.Trace) if not name.startswith("_")]
    assert len(public) > 8 and all(one.__doc__ for one in public)
