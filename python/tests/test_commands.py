"""The commands: results, exceptions, exit codes, and how they end."""

import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import warnings

import pytest

import tracequet
from conftest import CHURN, SAMPLES, SHARED

PROGRAM = pathlib.Path(sysconfig.get_path("scripts")) / ("tracequet.exe" if os.name == "nt" else "tracequet")


def program(*arguments, **named):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, **named)


def test_the_wheel_carries_the_program(tmp_path):
    assert program("--version").stdout.strip() == f"tracequet {tracequet.__version__}"
    done = program("convert", CHURN, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "gc.parquet").is_file()
    assert program("convert", CHURN, "-o", tmp_path / "out").returncode == 1
    broken = tmp_path / "broken.nettrace"
    broken.write_bytes(CHURN.read_bytes()[:30_000])
    assert program("inspect", broken).returncode == 2
    by_module = subprocess.run([sys.executable, "-m", "tracequet", "inspect", broken], capture_output=True)
    assert by_module.returncode == 2
    assert program("nonsense").returncode == 1


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("command", (["inspect", "-"], ["convert", "-", "-o", "out"]))
def test_ctrl_c_ends_the_program(tmp_path, command):
    process = subprocess.Popen(
        [PROGRAM, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    process.stdin.write(CHURN.read_bytes()[:50_000])
    process.stdin.flush()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    # By the signal, or by the code that a shell says for it.
    assert process.returncode in (-signal.SIGINT, 130)
    assert not list(tmp_path.iterdir())


def test_convert_tells_what_it_made(tmp_path):
    summary = tracequet.convert(CHURN, tmp_path / "a", tables=["gc", "gc_pause"], start=0, end="10m")
    assert {"gc", "gc_pause"} <= {table["name"] for table in summary["tables"]}
    assert summary["inputs"][0]["collection_count"] == 19
    with pytest.raises(tracequet.UsageError, match="is there already|exists|--overwrite"):
        tracequet.convert(CHURN, tmp_path / "a")
    tracequet.convert(CHURN, tmp_path / "a", overwrite=True, format="arrow", address_type="int64")
    assert (tmp_path / "a" / "gc.arrow").is_file()
    with pytest.raises(tracequet.UsageError):
        tracequet.convert(CHURN, tmp_path / "b", no_such_option=True)
    with pytest.raises(tracequet.UsageError, match="no table"):
        tracequet.convert(CHURN, tmp_path / "b", tables=["nothing"])
    assert not (tmp_path / "b").exists()


def test_losses_are_warnings_and_damage_an_exception_if_it_is_to_be(tmp_path):
    cut = tmp_path / "cut.nettrace"
    cut.write_bytes(CHURN.read_bytes()[:30_000])
    with pytest.warns(tracequet.LossWarning, match="cut.nettrace"):
        summary = tracequet.convert(cut, tmp_path / "out")
    assert summary["has_losses"]
    trace = tracequet.open(cut)
    with pytest.warns(tracequet.LossWarning, match="cut.nettrace"):
        trace["gc"].to_arrow()
    assert trace.warnings and trace.warnings[0].path == str(cut)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace["gc"].to_arrow()  # Once is enough.
    assert trace.diagnostics.to_arrow().num_rows > 0


def test_several_recordings_and_what_is_added_later(tmp_path):
    lake = tmp_path / "lake"
    broken = tmp_path / "broken.nettrace"
    broken.write_bytes(b"Nettracf")
    with pytest.warns(tracequet.LossWarning, match="broken.nettrace"):
        first = tracequet.convert([CHURN, broken, SAMPLES / "kernel.etl"], lake, append=True, label={"branch": "main"})
    assert len(first["inputs"]) == 2 and len(first["failed"]) == 1
    again = tracequet.convert(CHURN, lake, append=True)
    assert len(again["skipped"]) == 1 and not again["inputs"]
    trace = tracequet.open(lake)
    assert len(trace.recordings) == 2
    assert trace["gc"].to_arrow().num_rows == 19
    assert "main" in trace["trace_label"].to_arrow().to_pandas().to_string()


def test_inspect_schema_and_survived(dataset):
    found = tracequet.inspect(CHURN)
    assert found["collection_count"] == 19 and found["complete"]
    tables = tracequet.schema()
    assert {"gc", "gc_moved_range"} <= {table["name"] for table in tables}
    assert tracequet.schema("gc")[0]["columns"]
    moved = tracequet.open(CHURN)["gc_moved_range"].to_arrow().slice(0, 1).to_pylist()[0]
    for path in (CHURN, dataset):
        steps = tracequet.survived(path, moved["gc_id"], moved["old_range_start"])
        assert steps[0]["fate"] == "moved" and steps[0]["address_after"] == moved["new_range_start"]
        trace = tracequet.open(path)
        assert trace.survived(moved["gc_id"], hex(moved["old_range_start"])) == steps
    with pytest.raises(tracequet.UsageError, match="no collection 4000"):
        tracequet.survived(CHURN, 4000, 1)


def test_errors_say_path_and_offset(tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        tracequet.open(tmp_path / "nothing.nettrace")
    assert missing.value.filename == str(tmp_path / "nothing.nettrace")
    with pytest.raises(FileNotFoundError):
        tracequet.inspect(tmp_path / "nothing.nettrace")
    bad = tmp_path / "bad.nettrace"
    bad.write_bytes(b"Nettrace\x14\0\0\0!FastSerialization.2")
    for call in (tracequet.open, tracequet.inspect, lambda path: tracequet.convert(path, tmp_path / "out")):
        with pytest.raises(tracequet.RecordingError) as error:
            call(bad)
        assert error.value.path == str(bad) and isinstance(error.value.offset, int), call
    again = pickle.loads(pickle.dumps(error.value))
    assert (again.path, again.offset, str(again)) == (error.value.path, error.value.offset, str(error.value))
    for wrong in ("-", tmp_path, str(tmp_path / "*.etl"), []):
        if wrong == tmp_path:
            bad.unlink()
        with pytest.raises(tracequet.UsageError):
            tracequet.open(wrong)
    with pytest.raises(tracequet.UsageError, match="no table 'nothing'"):
        tracequet.open(CHURN)["nothing"]


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_ends_a_reading(tmp_path):
    """In a process of its own: a long reading, and an interrupt while it is on."""
    long = tmp_path / "long"
    long.mkdir()
    for number in range(400):
        (long / f"{number}.nettrace").symlink_to(CHURN)
    code = f"""
import tracequet, time, sys
trace = tracequet.open({str(long)!r})
print("ready", flush=True)
began = time.monotonic()
try:
    for _ in range(100):
        trace["gc_moved_range"].to_arrow()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    trace.close()
    print(tracequet.open({str(CHURN)!r})["gc"].to_arrow().num_rows, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert out == "interrupted\n19\n", err
    assert time.monotonic() - began < 20


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(
    "call",
    (
        # To list the tables of events is to read all recordings.
        "tracequet.open({folder!r}).tables",
        "tracequet.open([{recording!r}] * 30_000)",
        "tracequet.convert({folder!r}, {output!r})",
        "tracequet.open({folder!r}).sql('SELECT * FROM gc')",
    ),
)
def test_ctrl_c_ends_what_takes_long(tmp_path, call):
    folder = tmp_path / "long"
    folder.mkdir()
    # Bytes behind the end make each another recording: the same one would be read once.
    for number in range(300):
        (folder / f"{number}.nettrace").write_bytes(CHURN.read_bytes() + number.to_bytes(2, "little"))
    call = call.format(folder=str(folder), recording=str(CHURN), output=str(tmp_path / "out"))
    code = f"""
import tracequet
print("ready", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
else:
    print("not interrupted", flush=True)
"""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    # On a fast machine it may be done too soon.
    for delay in (0.7, 0.3, 0.1):
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        out, err = process.communicate(timeout=60)
        if out != "not interrupted\n":
            break
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
    assert out == "interrupted\n", (out, err)
    assert time.monotonic() - began < 20
    assert not (tmp_path / "out").exists() and not list(temporary.iterdir())


def test_stats_and_rules(tmp_path):
    (run,) = tracequet.stats(CHURN)
    assert next(metric["value"] for metric in run["metrics"] if metric["name"] == "gc.count") == 19
    rules = tmp_path / "rules.toml"
    rules.write_text('rules = ["gc.count <= 19", "gc.count <= 3"]')
    kept, broken = tracequet.check(CHURN, rules)
    assert (kept["verdict"], broken["verdict"]) == ("passed", "failed")
    rules.write_text('rules = ["gc.counts <= 19"]')
    with pytest.raises(tracequet.UsageError, match="gc.counts"):
        tracequet.check(CHURN, rules)


def read_everything(path, seconds=1.0):
    """Tables of a recording, all of them unless that takes too long. Gives the exception, or what was warned of."""
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always", tracequet.LossWarning)
        try:
            began = time.monotonic()
            trace = tracequet.open(path)
            for name in dict.fromkeys(("diagnostic", "gc", "gc_surviving_range", "event_type", "callsite", *trace.tables)):
                trace[name].collect()
                # Some are made to be slow.
                if time.monotonic() - began > seconds:
                    break
        except (tracequet.Error, OSError) as error:
            return error
    return [w.message for w in reported]


def says_what_is_lost(path):
    """Whether an exception or a warning comes of a damaged recording. One that is silent must have lost nothing."""
    if read_everything(path) != []:
        return True
    trace = tracequet.open(path)
    rows = trace["diagnostic"].to_arrow().to_pylist()
    assert not [row for row in rows if row["severity"] != "info"], path.name
    assert trace["trace"].to_arrow()["complete"].to_pylist() == [True], path.name
    return False


def damaged(name):
    """Recordings with damage, made of a sample: cut, with other bytes in them, with a hole, with nothing but their
    head.
    """
    whole = (SAMPLES / name).read_bytes()
    half = len(whole) // 2
    yield "cut", whole[:half]
    yield "cut at the end", whole[:-1]
    yield "head", whole[:64]
    yield "hole", whole[:half] + bytes(4096) + whole[half + 4096 :]
    yield "shifted", whole[:half] + b"x" + whole[half:]
    yield "inverted", whole[:half] + bytes(255 - byte for byte in whole[half : half + 2000]) + whole[half + 2000 :]
    yield "other", whole[:8] + bytes(reversed(whole[8:]))


@pytest.mark.parametrize("name", ("gc-churn.nettrace", "heap-10.gcdump", "callbacks.corprof", "kernel.etl"))
def test_damage_is_an_exception_or_a_warning(name, tmp_path):
    reported = set()
    for what, content in damaged(name):
        path = tmp_path / f"{what}.{name.rsplit('.', 1)[1]}"
        path.write_bytes(content)
        if says_what_is_lost(path):
            reported.add(what)
    assert {"cut", "head", "other"} <= reported and len(reported) >= 5, reported
    for content in (b"", b"\0" * 1000, b"Nettrace" * 100, b"PK\x03\x04" + b"x" * 100, b"\x28\xb5\x2f\xfd" + b"x" * 100, b"\x1f\x8b" * 9):
        (tmp_path / "nothing.nettrace").write_bytes(content)
        with pytest.raises(tracequet.RecordingError, match="nothing.nettrace: at byte"):
            tracequet.open(tmp_path / "nothing.nettrace")


@pytest.mark.parametrize("folder", ("nettrace/damaged", "nettrace/hostile", "nettrace/v6-writer", "corprof"))
def test_damaged_and_hostile_files_give_an_exception_or_a_warning(folder):
    root = SHARED / "data" / folder
    if not root.is_dir():
        if os.environ.get("CI") == "true" and os.environ.get("TRACEQUET_NO_SHARED") != "1":
            pytest.fail(f"{root} is not there")
        pytest.skip(f"{root} is not there")
    endings = (".nettrace", ".netperf", ".corprof", ".zst", ".gz")
    files = sorted(p for p in root.rglob("*") if p.is_file() and p.name.endswith(endings))
    assert files
    # Every sixth, because the tests in Rust read all. Larger files have the same damage, and many rows.
    reported = [says_what_is_lost(path) for path in files[::6] if path.stat().st_size <= 200_000]
    # Some of the writers of v6-writer write what is right.
    assert sum(reported) > len(reported) // 3
