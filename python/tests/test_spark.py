"""Spark: the data source and the job, on a cluster of two executors on this machine."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings

import pyarrow
import pyarrow.compute
import pytest

pyspark = pytest.importorskip("pyspark")
if shutil.which("java") is None:
    pytest.skip("Spark needs a Java runtime", allow_module_level=True)

import tracequet
import tracequet.spark
from conftest import CHURN, SAMPLES, recordings
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Wherever the machine's name leads.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    session.dataSource.register(tracequet.spark.TraceDataSource)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def signed(tmp_path_factory):
    """A dataset for Spark."""
    path = tmp_path_factory.mktemp("signed") / "lake"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tracequet.LossWarning)
        tracequet.convert(CHURN, path, layout="hive", address_type="int64")
    return path


# Tables with unsigned numbers of every width, times, text, and many rows.
SOME = ("gc", "gc_moved_range")


def load(spark, table, path, **options):
    reader = spark.read.format("tracequet").option("table", table)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load(path if isinstance(path, list) else str(path))


def totals(frame):
    """The sum of each column of whole numbers, exactly, and the number of rows."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import IntegralType

    columns = [field.name for field in frame.schema if isinstance(field.dataType, IntegralType)]
    asked = [f.sum(f.col(f"`{name}`").cast("decimal(38,0)")).alias(f"c{place}") for place, name in enumerate(columns)]
    row = frame.agg(f.count("*").alias("rows"), *asked).collect()[0]
    return {"": row["rows"], **{name: int(row[f"c{place}"] or 0) for place, name in enumerate(columns)}}


def plain_totals(table):
    """The same of a table of pyarrow."""
    sums = {"": table.num_rows}
    for name in table.column_names:
        if pyarrow.types.is_integer(table.schema.field(name).type):
            sums[name] = sum(value for value in table[name].to_pylist() if value is not None)
    return sums


def test_tables_of_a_signed_dataset_and_of_the_data_source_are_the_same(spark, signed):
    trace, compared = tracequet.open(CHURN, address_type="int64"), 0
    names = [name for name, rows, _ in tracequet.open(signed)._reader.tables() if rows]
    payloads = [name for name in names if name.startswith("event/")]
    facts = [name for name in names if not name.startswith("event/")]
    # Each takes seconds: TRACEQUET_TEST_EVERY_TABLE=1 takes all of them.
    everything = os.environ.get("TRACEQUET_TEST_EVERY_TABLE") == "1"
    chosen = facts + payloads if everything else [n for n in facts if n in SOME] + payloads[:1]
    for name in chosen:
        stored = spark.read.option("basePath", str(signed / name)).parquet(str(signed / name)).drop("trace")
        assert not [f for f in stored.schema if "unsigned" in f.dataType.simpleString() or "decimal" in f.dataType.simpleString()]
        read = load(spark, name, CHURN)
        same = [(field.name, field.dataType.simpleString()) for field in stored.schema]
        assert [(field.name, field.dataType.simpleString()) for field in read.schema] == same, name
        expected = plain_totals(trace[name].to_arrow())
        assert totals(stored) == totals(read) == expected, name
        compared += 1
    assert compared >= 3 and payloads
    # Times are moments, whatever the zone of the session.
    first = load(spark, "gc", CHURN).selectExpr("min(unix_micros(start_ts))").collect()[0][0]
    own = trace["gc"].to_arrow()["start_ts"]
    assert first == pyarrow.compute.min(own.cast(pyarrow.int64())).as_py()


def test_a_directory_is_a_partition_for_each_recording(spark, tmp_path):
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        shutil.copy(CHURN, tmp_path / str(number) / "app.nettrace")
    frame = load(spark, "gc", tmp_path)
    assert frame.rdd.getNumPartitions() == 3
    counts = {row["trace_id"]: row["count"] for row in frame.groupBy("trace_id").count().collect()}
    assert counts == {"app": 19, "app_2": 19, "app_3": 19}
    assert load(spark, "gc", [str(CHURN), str(SAMPLES / "events.nettrace")]).rdd.getNumPartitions() == 2
    end = load(spark, "gc", CHURN, end="1ms")
    assert end.count() == 0
    (tmp_path / "broken.nettrace").write_bytes(b"nothing")
    with pytest.raises(Exception, match="broken.nettrace: at byte 0"):
        load(spark, "gc", tmp_path).count()
    assert load(spark, "gc", tmp_path, unreadable="skip").count() == 57
    with pytest.raises(Exception, match="no table 'nothing'"):
        load(spark, "nothing", CHURN).count()
    with pytest.raises(Exception, match="which table"):
        spark.read.format("tracequet").load(str(CHURN)).count()


@pytest.fixture(scope="session")
def night(tmp_path_factory):
    """Recordings of a night: good ones, one twice, and a broken one."""
    folder = tmp_path_factory.mktemp("night")
    for name in ("gc-churn.nettrace", "events.nettrace", "described.etl", "callbacks.corprof"):
        shutil.copy(SAMPLES / name, folder)
    shutil.copy(CHURN, folder / "twice.nettrace")
    (folder / "broken.nettrace").write_bytes(b"Nettracf")
    return folder


def check_lake(spark, lake, frame):
    rows = {pathlib.PurePosixPath(row["path"]).name: row for row in frame.collect()}
    statuses = sorted(row["status"] for row in rows.values())
    assert statuses == ["converted"] * 4 + ["failed", "skipped"], [tuple(row) for row in rows.values()]
    assert rows["broken.nettrace"]["status"] == "failed" and "at byte" in rows["broken.nettrace"]["error"]
    assert rows["gc-churn.nettrace"]["trace_id"] == rows["twice.nettrace"]["trace_id"]
    gc = spark.read.parquet(f"{lake}/gc")
    mine = gc.where(gc.trace_id == rows["gc-churn.nettrace"]["trace_id"])
    assert mine.count() == 19
    return rows


def test_a_job_makes_a_dataset_that_every_reader_knows(spark, night, tmp_path):
    lake = tmp_path / "lake"
    rows = check_lake(spark, lake, tracequet.spark.convert(spark, str(night), str(lake)))
    trace = tracequet.open(lake)
    assert len(trace.recordings) == 4
    assert trace.sql("SELECT count(*) FROM gc").fetchall()[0][0] == spark.read.parquet(f"{lake}/gc").count()
    # What is there is skipped, and tomorrow's recordings are added.
    shutil.copy(SAMPLES / "server-gc.nettrace", night)
    try:
        again = {row["path"]: row["status"] for row in tracequet.spark.convert(spark, str(night), str(lake)).collect()}
    finally:
        (night / "server-gc.nettrace").unlink()
    assert sorted(again.values()) == ["converted", "failed"] + ["skipped"] * 5
    assert len(tracequet.open(lake).recordings) == 5
    assert rows


def executors():
    """Processes of the executors of this session."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes()
                environment = (folder / "environ").read_bytes()
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in line and f"PYSPARK_PYTHON={sys.executable}".encode() in environment:
                found.append(int(folder.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the executor in /proc")
def test_an_executor_that_is_killed_costs_nothing(spark, night, tmp_path):
    many = tmp_path / "many"
    many.mkdir()
    for number in range(12):
        # The same events, and other bytes behind the end of the recording.
        (many / f"run{number}.nettrace").write_bytes(CHURN.read_bytes() + bytes([number]))
    lake = tmp_path / "lake"
    result, failure = [], []

    def job():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result.extend(tracequet.spark.convert(spark, str(many), str(lake)).collect())
        except Exception as error:  # noqa: BLE001
            failure.append(error)

    thread = threading.Thread(target=job)
    thread.start()
    began = time.monotonic()
    while not list(lake.glob("manifest/*.json")):
        assert thread.is_alive() and time.monotonic() - began < 120
        time.sleep(0.02)
    victims = executors()
    assert victims and thread.is_alive()
    os.kill(victims[0], signal.SIGKILL)
    thread.join(180)
    assert not thread.is_alive() and not failure, failure
    assert {row["status"] for row in result} <= {"converted", "skipped"} and len(result) == 12
    trace = tracequet.open(lake)
    assert len(trace.recordings) == 12
    assert trace["gc"].to_arrow().num_rows == 12 * 19
    assert spark.read.parquet(f"{lake}/gc").count() == 12 * 19


def test_an_object_store(spark, night, tmp_path, monkeypatch):
    pytest.importorskip("moto.server")
    from moto.server import ThreadedMotoServer
    from pyarrow import fs

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        variables = {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_REGION": "us-east-1",
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        store = fs.S3FileSystem(endpoint_override=f"{host}:{port}", scheme="http", allow_bucket_creation=True)
        store.create_dir("night")
        store.create_dir("lake")
        for path in night.iterdir():
            with open(path, "rb") as source, store.open_output_stream(f"night/in/{path.name}") as sink:
                shutil.copyfileobj(source, sink)
        with tracequet.open("s3://night/in/gc-churn.nettrace") as trace:
            assert trace["gc"].to_arrow().num_rows == 19
        # The executors run already, without these variables.
        frame = load(spark, "gc", "s3a://night/in/gc-churn.nettrace", **{"env." + k: v for k, v in variables.items()})
        assert frame.count() == 19
        result = tracequet.spark.convert(spark, "s3a://night/in", "s3a://lake/out", environment=variables)
        rows = {row["path"].rsplit("/", 1)[-1]: row for row in result.collect()}
        assert sorted(row["status"] for row in rows.values()) == ["converted"] * 4 + ["failed", "skipped"]
        local = tmp_path / "copy"
        fs.copy_files("lake/out", str(local), source_filesystem=store, destination_filesystem=fs.LocalFileSystem())
        trace = tracequet.open(local)
        assert len(trace.recordings) == 4
        assert spark.read.parquet(f"{local}/gc").where(f"trace_id = '{rows['gc-churn.nettrace']['trace_id']}'").count() == 19
        again = tracequet.spark.convert(spark, "s3a://night/in", "s3a://lake/out", environment=variables).collect()
        assert sorted(row["status"] for row in again) == ["failed"] + ["skipped"] * 5
    finally:
        server.stop()
