"""Opening recordings and datasets, and what their tables give to other libraries."""

import datetime
import gc
import gzip
import http.server
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
import zipfile

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.compute
import pytest

import tracequet
from conftest import CHURN, SAMPLES, recordings


def test_the_lines_of_the_readme():
    trace = tracequet.open(CHURN)
    assert len(trace["gc"].to_pandas()) == 19
    answer = trace.sql("SELECT count(*) AS n, max(pause_ms) > 0 AS paused FROM gc_summary")
    assert answer.fetchall() == [(19, True)]
    assert "gc-churn" in trace._repr_html_() and "19" not in repr(trace)
    assert trace["gc_moved_range"].to_arrow().num_rows == 3400


def test_every_table_of_every_sample_is_that_of_the_dataset(tmp_path):
    for number, sample in enumerate(recordings()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tracequet.LossWarning)
            tracequet.convert(sample, tmp_path / str(number))
        stored, trace = tracequet.open(tmp_path / str(number)), tracequet.open(sample)
        assert sorted(trace.tables) == sorted(stored.tables)
        filled = [name for name, rows, _ in stored._reader.tables() if rows]
        # Each table reads the whole sample: of the larger samples some tables are enough.
        chosen = filled if sample.stat().st_size < 200_000 else filled[:12]
        for name in chosen:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", tracequet.LossWarning)
                ours, theirs = trace[name].to_arrow(), stored[name].to_arrow()
            assert ours.schema.equals(theirs.schema), name
            assert ours.num_rows == theirs.num_rows
            if name not in ("trace",):
                keys = [(c, "ascending") for c in ours.column_names if pyarrow.types.is_integer(ours.schema.field(c).type)]
                numbers = [c for c, _ in keys]
                if keys:
                    assert ours.select(numbers).sort_by(keys).equals(theirs.select(numbers).sort_by(keys)), (sample, name)


def test_a_table_gives_a_new_stream_each_time_and_takes_chosen_columns():
    table = tracequet.open(CHURN)["gc"]
    assert pyarrow.table(table).num_rows == pyarrow.table(table).num_rows == 19
    assert polars.DataFrame(table).height == 19
    chosen = table.select("pause_ns", "gc_id")
    assert chosen.columns == ["gc_id", "pause_ns"]
    assert chosen.to_arrow().column_names == ["gc_id", "pause_ns"]
    assert pyarrow.schema(chosen).names == ["gc_id", "pause_ns"]
    assert list(table.types)[0] == table.columns[0]
    assert sum(batch.num_rows for batch in table.batches()) == 19
    assert "gc_id" in table._repr_html_()
    with pytest.raises(tracequet.UsageError, match="no column nothing"):
        table.select("nothing")
    stream = tracequet.open(CHURN)._stream(table)
    stream.__arrow_c_stream__()
    with pytest.raises(ValueError, match="read already"):
        stream.__arrow_c_stream__()


def test_streams_that_are_not_read_to_their_end_end_their_thread():
    trace = tracequet.open(SAMPLES / "stacks.nettrace")
    before = threads()
    for _ in range(20):
        reader = trace["event_type"].batches()
        del reader
        reader = pyarrow.RecordBatchReader.from_stream(trace["callsite"])
        reader.read_next_batch()
        del reader
    gc.collect()
    for _ in range(100):
        if threads() <= before:
            break
        threading.Event().wait(0.05)
    assert threads() <= before


def threads():
    """The threads of this process that read."""
    own = pathlib.Path("/proc/self/task")
    if not own.exists():
        return 0
    return sum((task / "comm").read_text().strip() == "tracequet" for task in own.iterdir())


def test_a_dataset_opens_in_either_format_and_layout(tmp_path, dataset, lake):
    arrow = tmp_path / "arrow"
    tracequet.convert(CHURN, arrow, format="arrow")
    for path in (dataset, arrow):
        trace = tracequet.open(path)
        assert trace["gc"].to_arrow().num_rows == 19
        assert trace["gc"].select("gc_id").to_arrow().column_names == ["gc_id"]
        for query in ("SELECT count(*) FROM gc", "SELECT count(*) FROM GC", 'SELECT count(*) FROM "gc"'):
            assert trace.sql(query).fetchall() == [(19,)], (path, query)
        # A quote in a text does not hide a name in quotes that comes after it.
        starts = next(name for name in trace.tables if name.endswith("/GCStart"))
        assert trace.sql(f"SELECT '\"', count(*) FROM \"{starts}\"").fetchall() == [('"', trace[starts].to_arrow().num_rows)], path
        assert str(CHURN) in trace._repr_html_()
    both = tracequet.open(lake)
    assert len(both.recordings) == 2
    assert both.sql("SELECT count(DISTINCT trace_id) FROM trace").fetchall() == [(2,)]
    table = both["thread"].to_arrow()
    assert table.column_names[0] == "trace_id" and len(set(table["trace_id"].to_pylist())) == 2
    with pytest.raises(tracequet.UsageError, match="as it was written"):
        tracequet.open(dataset, providers=["x"])
    with pytest.raises(tracequet.UsageError, match="no table nothing"):
        tracequet.open(dataset)["nothing"]
    shutil.copytree(dataset, tmp_path / "cut")
    with open(tmp_path / "cut" / "gc.parquet", "r+b") as file:
        file.truncate(100)
    with pytest.raises(tracequet.DatasetError, match="gc.parquet"):
        tracequet.open(tmp_path / "cut")["gc"].to_arrow()


def test_a_compacted_dataset_has_the_same_rows(tmp_path):
    lake, ids = tmp_path / "lake", []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tracequet.LossWarning)
        tracequet.convert([CHURN, SAMPLES / "events.nettrace", SAMPLES / "server-gc.nettrace", SAMPLES / "callbacks.corprof"], lake)

    def tables():
        trace = tracequet.open(lake)
        found = {name: trace[name].to_arrow() for name in trace.tables}
        ids.append(sorted(str(recording) for recording in trace.recordings))
        # The rows of a recording keep their order, whichever recording comes first.
        return {name: sorted(str(row) for row in table.to_pylist()) for name, table in found.items()}, trace

    before, _ = tables()
    assert len(before) > 40 and sum(map(len, before.values())) > 1000
    done = tracequet._commands.run(["dataset", "compact", str(lake), "--grace", "0"])
    assert done.returncode == 0 and list((lake / "manifest" / "packed").iterdir())
    after, trace = tables()
    assert ids[0] == ids[1] and len(ids[0]) == 4
    assert before.keys() == after.keys()
    for name, rows in before.items():
        assert after[name] == rows, name
    assert trace.sql("SELECT count(*) FROM gc").fetchall() == [(len(before["gc"]),)]


def test_recordings_are_hashed_once(tmp_path):
    """Their keys have digits of the hash. A file that says it did not change keeps its key, whatever its last byte
    is.
    """
    paths = [tmp_path / "a.nettrace", tmp_path / "b.nettrace"]
    for number, path in enumerate(paths):
        path.write_bytes(CHURN.read_bytes() + bytes([number]))
    keys = lambda trace: trace["gc"].to_arrow()["trace_id"].unique().to_pylist()
    trace = tracequet.open(paths)
    first = keys(trace)
    stat = os.stat(paths[1])
    paths[1].write_bytes(CHURN.read_bytes() + bytes([7]))
    os.utime(paths[1], ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert keys(trace) == first and len(first) == 2
    other = keys(tracequet.open(paths))
    assert other[0] == first[0] and other[1] != first[1]
    # What has no key is not hashed at all, and a file that did change is hashed again.
    assert trace["gc"].select("gc_id").to_arrow().num_rows == 38
    os.utime(paths[1], ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000_000))
    assert keys(trace) == other


def test_an_archive_of_several_recordings_is_several(tmp_path):
    both = tmp_path / "both.zip"
    with zipfile.ZipFile(both, "w") as archive:
        archive.write(CHURN, "a.nettrace")
        archive.write(SAMPLES / "server-gc.nettrace", "b.nettrace")
    trace = tracequet.open(both)
    counts = trace["gc"].to_pandas().groupby("trace_id", observed=True).size().to_dict()
    assert len(counts) == 2 and trace["gc"].columns[0] == "trace_id"
    assert dict(trace.sql("SELECT trace_id, count(*) FROM gc GROUP BY 1").fetchall()) == counts
    found = tracequet.inspect(both)
    assert [one["collection_count"] for one in found] == [counts[key] for key in sorted(counts)]
    assert "a.nettrace" in trace._repr_html_() and "b.nettrace" in trace._repr_html_()
    assert len(trace.inspect()) == 2


def test_a_heap_dump_is_a_recording(tmp_path):
    shutil.copy(SAMPLES / "heap-10.gcdump", tmp_path)
    shutil.copy(CHURN, tmp_path)
    trace = tracequet.open(tmp_path)
    assert len(trace.paths) == 2 and trace["heap_object"].to_arrow().num_rows > 100
    text = tracequet.open(tmp_path / "heap-10.gcdump")._repr_html_()
    assert "a heap dump" in text and "expected" not in text


def test_several_recordings_are_one_trace(tmp_path):
    for name in ("gc-churn.nettrace", "events.nettrace"):
        shutil.copy(SAMPLES / name, tmp_path)
    (tmp_path / "notes.txt").write_text("not a recording")
    (tmp_path / "deep").mkdir()
    with open(CHURN, "rb") as file, gzip.open(tmp_path / "deep" / "packed.nettrace.gz", "wb") as packed:
        shutil.copyfileobj(file, packed)
    (tmp_path / "broken.nettrace").write_bytes(b"Nettracf")
    with pytest.warns(tracequet.LossWarning, match="broken.nettrace.*at byte") as reported:
        trace = tracequet.open(tmp_path)
    assert len(reported) == 1 and len(trace.warnings) == 1
    assert len(trace.paths) == 3
    table = trace["gc"].to_pandas()
    counts = table.groupby("trace_id", observed=True).size().to_dict()
    assert sorted(counts.values())[-2:] == [19, 19] and len(counts) in (2, 3)
    # Payload tables that only one recording has, and those that several have.
    names = [name for name in trace.tables if name.startswith("event/")]
    assert names
    assert trace[names[0]].to_arrow().column_names[0] == "trace_id"
    assert trace.sql("SELECT count(*) FROM gc").fetchall()[0][0] == len(table)
    by_pattern = tracequet.open(str(tmp_path / "**" / "*.gz"))
    assert by_pattern["gc"].to_arrow().num_rows == 19
    assert tracequet.open([CHURN, SAMPLES / "events.nettrace"])["gc"].columns[0] == "trace_id"
    # Keys are the same, whoever reads.
    assert set(counts) == {key for key, in trace.sql("SELECT DISTINCT trace_id FROM gc").fetchall()}


def test_filters():
    whole = tracequet.open(CHURN)["gc"].to_arrow()
    half = whole["start_ts_ns"].to_pylist()[9]
    first = tracequet.open(CHURN, end=half / 1e9)["gc"].to_arrow().num_rows
    assert 0 < first < 19
    same = tracequet.open(CHURN, end=datetime.timedelta(microseconds=half // 1000))["gc"].to_arrow().num_rows
    assert abs(same - first) <= 1
    with pytest.raises(tracequet.UsageError, match="the last event is"):
        tracequet.open(CHURN, start="1h")["gc"].to_arrow()
    with pytest.raises(tracequet.UsageError, match="expected start to be less"):
        tracequet.open(CHURN, start="2s", end="1s")
    with pytest.raises(tracequet.UsageError, match="is no time"):
        tracequet.open(CHURN, start="soon")
    with pytest.raises(tracequet.UsageError, match="no events of process 4"):
        tracequet.open(CHURN, processes=[4])["gc"].to_arrow()
    with pytest.raises(tracequet.UsageError, match="no events of the provider Nobody"):
        tracequet.open(CHURN, providers=["Nobody"])["gc"].to_arrow()
    # One that is known, but not recorded.
    only = tracequet.open(CHURN, providers=["Microsoft-DotNETCore-SampleProfiler"])
    assert only["gc"].to_arrow().num_rows == 0 and not any(t.startswith("event/") for t in only.tables)
    assert only.sql("SELECT count(*) FROM gc").fetchall() == [(0,)]
    signed = tracequet.open(CHURN, address_type="int64")["gc_moved_range"]
    assert not any(kind == "UInt64" for kind in signed.types.values())
    assert signed.to_arrow().schema.field("old_range_start").type == pyarrow.int64()


def test_payload_tables_in_sql():
    trace = tracequet.open(CHURN)
    name = next(t for t in trace.tables if t.startswith("event/") and t.endswith("GCStart"))
    rows = trace[name].to_arrow().num_rows
    assert rows == 19
    assert trace.sql(f'SELECT count(*) FROM "{name}"').fetchall() == [(rows,)]
    assert trace.sql(f'SELECT count(*) FROM "{name}" JOIN gc ON true').fetchall() == [(rows * 19,)]
    assert trace.sql("SELECT count(*) FROM gc WHERE generation >= $least", least=0).fetchall() == [(19,)]
    with pytest.raises(tracequet.UsageError, match="no table event/x/y"):
        trace.sql('SELECT * FROM "event/x/y"')


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with tracequet.open(CHURN) as trace:
        trace.sql("SELECT count(*) FROM gc").fetchall()
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())
    trace = tracequet.open(CHURN)
    trace.sql("SELECT count(*) FROM gc").fetchall()
    del trace
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_an_address_is_copied(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, directory=str(SAMPLES), **named)

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        with tracequet.open(f"{base}/gc-churn.nettrace") as trace:
            assert trace["gc"].to_arrow().num_rows == 19
        with pytest.raises(OSError, match="404"):
            tracequet.open(f"{base}/nothing.nettrace")
        server.shutdown()
    assert not list(tmp_path.iterdir())


def test_a_folder_elsewhere_is_said_to_be_one(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(tracequet.UsageError, match="this is a folder.*pyarrow.fs.copy_files.*feature `cloud`"):
        tracequet.open(SAMPLES.absolute().as_uri())
    with tracequet.open((SAMPLES / "gc-churn.nettrace").absolute().as_uri()) as trace:
        assert trace["gc"].to_arrow().num_rows == 19
    # The commands are those of the command line.
    for call in (lambda: tracequet.convert("s3://bucket/night/", tmp_path / "out"), lambda: tracequet.stats("s3://bucket/lake")):
        with pytest.raises(tracequet.UsageError, match="without the feature `cloud`.*tracequet.open copies a recording by pyarrow"):
            call()
    assert not list(tmp_path.iterdir())


def test_progress_is_told():
    reported = []
    trace = tracequet.open(CHURN, progress=lambda position, total: reported.append((position, total)))
    trace["gc"].to_arrow()
    assert reported and reported[-1][1] == os.path.getsize(CHURN)


def test_a_summary_for_notebooks_escapes_what_is_in_a_recording(tmp_path):
    odd = tmp_path / "a<b>.nettrace"
    shutil.copy(CHURN, odd)
    text = tracequet.open(odd)._repr_html_()
    assert "a&lt;b&gt;" in text and "<b>." not in text
    assert "of generation" in text


def test_each_kind_of_collection_is_said_once():
    from tracequet._html import _collections

    kinds = [(0, "blocking", 7), (1, "foreground", 1), (1, "blocking", 2), (2, "background", 4), (2, "blocking", 2)]
    groups = [{"generation": g, "kind": kind, "count": count, "duration_ns": 1} for g, kind, count in kinds]
    groups.append({"generation": None, "kind": None, "count": 1, "duration_ns": 0})
    expected = "7 of generation 0, 3 of generation 1, 4 of generation 2 in the background, 2 of generation 2"
    assert _collections(groups) == expected + ", 1 of an unknown generation"


def test_python_is_not_held_up_while_a_recording_is_read():
    """Another thread runs meanwhile: the GIL is released."""
    trace = tracequet.open(SAMPLES / "stacks.nettrace")
    ran, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            ran[0] += 1
            stop.wait(0.0005)

    other = threading.Thread(target=count)
    other.start()
    before = ran[0]
    for _ in range(20):
        trace["callsite"].to_arrow()
    after = ran[0]
    stop.set()
    other.join()
    assert after - before > 5


def test_python_is_not_held_up_while_recordings_are_listed(tmp_path):
    for number in range(60):
        (tmp_path / f"{number}.nettrace").symlink_to(CHURN)
    trace, ran = tracequet.open(tmp_path), []
    other = threading.Thread(target=lambda: ran.append(trace.tables))
    other.start()
    turns = 0
    while other.is_alive():
        turns += 1
        other.join(0.001)
    assert turns > 5 and len(ran[0]) > 40


def test_memory_does_not_grow_with_a_table_that_is_read_in_batches(tmp_path):
    for number in range(150):
        (tmp_path / f"{number}.nettrace").symlink_to(CHURN)
    code = f"""
import resource, tracequet
trace = tracequet.open({str(tmp_path)!r})
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
table = trace["gc_moved_range"]
list(table.select("gc_id").batches())
before, read = peak(), 0
for batch in table.batches():
    read += batch.nbytes
print(peak() - before, read >> 20)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    grown, read = map(int, done.stdout.split())
    assert read > 15 and grown < read / 2, (grown, read)


def test_every_view_answers(dataset, lake):
    for path in (CHURN, dataset, lake):
        trace = tracequet.open(path)
        trace.sql("SELECT 1")
        views = [name for name, in trace.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()]
        assert {"gc_summary", "cpu_by_method", "pauses", "gc", "trace"} <= set(views) and len(views) > 60
        for view in views:
            trace.sql(f'SELECT * FROM "{view}" LIMIT 3').fetchall()


def test_sql_says_that_it_needs_duckdb(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(tracequet.UsageError, match="pip install duckdb"):
        tracequet.open(CHURN).sql("SELECT 1")


def test_everything_public_is_described():
    missing = []
    for name in tracequet.__all__:
        thing = getattr(tracequet, name)
        members = [m for m in vars(thing).items() if not m[0].startswith("_")] if isinstance(thing, type) else []
        for of, one in [(name, thing), *((f"{name}.{m}", value) for m, value in members)]:
            described = getattr(one, "__doc__", None)
            if not described and not (isinstance(thing, type) and issubclass(thing, tuple)):
                if callable(one) or isinstance(one, property):
                    missing.append(of)
    assert not missing


def test_options_that_fill_more(tmp_path):
    heap = SAMPLES / "heap-10.nettrace"
    plain, full = tracequet.open(heap), tracequet.open(heap, dominators=True, symbols=[tmp_path])
    assert len(plain["heap_dominator"].collect()) == 0
    rows = len(full["heap_dominator"].collect())
    assert rows > 100 and len(tracequet.open(heap, dominators=2**30)["heap_dominator"].collect()) == rows
    assert full.sql("SELECT count(*) FROM heap_dominator").fetchall() == [(rows,)]
    summary = tracequet.convert(heap, tmp_path / "out", dominators="1G", tables=["heap_dominator"])
    assert {table["name"]: table["rows"] for table in summary["tables"]}["heap_dominator"] == rows
    # Too little memory: the table stays empty.
    assert len(tracequet.open(heap, dominators=1000)["heap_dominator"].collect()) == 0


def test_figures_are_a_table():
    metrics = tracequet.open(CHURN)["metric"].to_pandas().set_index("name")
    assert metrics.loc["gc.count", "value"] == 19
