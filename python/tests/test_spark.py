"""Spark: the data source and the job, on a cluster of two executors on this machine."""

import concurrent.futures
import functools
import os
import pathlib
import shutil
import signal
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

import sums
import tracequet
import tracequet.spark
from conftest import CHURN, SAMPLES
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Wherever the machine's name leads.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # For the driver and the executors: they live for two minutes, which is too short for Java's optimising compiler to
    # pay.
    os.environ["JAVA_TOOL_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
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


# What Spark makes of the types of our columns (docs/SPARK.md). Of those in lists and structs, too.
PROMISED = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
    "float": "float",
    "double": "double",
    "string": "string",
    "large_string": "string",
    "binary": "binary",
}


def promised(kind):
    """The type that docs/SPARK.md promises for a column of an Arrow type."""
    if pyarrow.types.is_dictionary(kind):
        return promised(kind.value_type)
    if pyarrow.types.is_timestamp(kind):
        assert kind.unit == "us" and kind.tz == "UTC"
        return "timestamp"
    if pyarrow.types.is_list(kind):
        return f"array<{promised(kind.value_type)}>"
    if pyarrow.types.is_struct(kind):
        return "struct<" + ",".join(f"{field.name}:{promised(field.type)}" for field in kind) + ">"
    return PROMISED[str(kind)]


def load(spark, table, path, **options):
    reader = spark.read.format("tracequet").option("table", table)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load(path if isinstance(path, list) else str(path))


# Reading a table takes Spark a second: TRACEQUET_TEST_EVERY_TABLE=1 takes all of them, otherwise all tables of facts,
# and some of those of events.
EVERY = os.environ.get("TRACEQUET_TEST_EVERY_TABLE") == "1"


def tables_of(dataset):
    names = tracequet.open(dataset).tables
    payloads = [name for name in names if name.startswith("event/")]
    return [name for name in names if not name.startswith("event/")] + payloads[:: 1 if EVERY else 12]


def answers(spark, questions):
    """What Spark answers for tables; those of many tables are one job."""
    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    # To compile a query takes longer than these tables do.
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        rows = []
        for first in range(0, len(questions), 24):
            together = functools.reduce(lambda one, other: one.union(other), questions[first : first + 24])
            rows += [row["answers"] for row in together.collect()]
        return rows
    finally:
        for name in settings:
            spark.conf.unset(name)


@pytest.mark.parametrize("layout", ("signed", "flat"))
def test_every_table_has_the_promised_types_and_the_same_sums(spark, layout, request):
    dataset = request.getfixturevalue(layout)
    trace, names = tracequet.open(dataset), tables_of(dataset)
    tables = {name: trace[name].to_arrow() for name in names}
    if layout == "signed":
        tables = {name: table.drop_columns("trace_id") for name, table in tables.items()}

    def stored(name):
        if layout == "flat":
            return spark.read.parquet(str(dataset / f"{name}.parquet"))
        frame = spark.read.option("basePath", str(dataset / name)).parquet(str(dataset / name))
        assert frame.schema["trace_id"].dataType.simpleString() == frame.schema["trace"].dataType.simpleString() == "string"
        return frame.drop("trace", "trace_id")

    with concurrent.futures.ThreadPoolExecutor(4) as readers:
        frames = dict(zip(names, readers.map(stored, names)))
    columns = {name: sums.columns_of(table.schema) for name, table in tables.items()}
    for name, table in tables.items():
        types = {field.name: field.dataType.simpleString() for field in frames[name].schema}
        assert types == {field.name: promised(field.type) for field in table.schema}, name
        assert layout == "flat" or not any("decimal" in kind for kind in types.values()), name
    answered = answers(spark, [sums.spark_question(frames[name], columns[name]) for name in names])
    for name, answer in zip(names, answered):
        expected = sums.of_pyarrow(tables[name], columns[name])
        assert sums.same(sums.spark_answer(answer, columns[name]), expected), name
    assert len(names) > (45 if layout == "flat" else 55)
    print(f"{layout}: {len(names)} tables, {sum(table.num_rows > 0 for table in tables.values())} of them with rows")


def test_the_data_source_gives_what_the_dataset_has(spark, signed):
    # Tables with unsigned numbers of every width, times, text, and many rows; lists of structs in the payload.
    trace = tracequet.open(signed)
    events = next(name for name in trace.tables if name.endswith("/GCPerHeapHistory") or name.endswith("/BulkType"))
    key = trace["trace"].to_pandas().set_index("path")["trace_id"][str(SAMPLES / CHURN.name)]
    names = [name for name in trace.tables if not name.startswith("event/")] if EVERY else ["gc", "gc_moved_range"]
    names.append(events)
    questions, expected = [], []
    for name in names:
        stored = trace[name].to_arrow()
        stored = stored.filter(pyarrow.compute.equal(stored["trace_id"].cast(pyarrow.string()), key)).drop_columns("trace_id")
        read = load(spark, name, CHURN)
        types = {field.name: field.dataType.simpleString() for field in read.schema}
        assert types == {"trace_id": "string", **{field.name: promised(field.type) for field in stored.schema}}, name
        columns = sums.columns_of(stored.schema)
        questions.append(sums.spark_question(read, columns))
        expected.append((name, columns, sums.of_pyarrow(stored, columns)))
    for answer, (name, columns, own) in zip(answers(spark, questions), expected):
        assert sums.same(sums.spark_answer(answer, columns), own), name
    # Times are moments, whatever the zone of the session.
    first = load(spark, "gc", CHURN).selectExpr("min(unix_micros(start_ts))").collect()[0][0]
    own = tracequet.open(CHURN)["gc"].to_arrow()["start_ts"]
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
    # The same of a dataset that was compacted: nothing is converted again, and the rows are there once.
    sums = {name: spark.read.parquet(f"{lake}/{name}").count() for name in ("gc", "gc_surviving_range", "metric", "trace")}
    assert all(sums.values())
    done = tracequet._commands.run(["dataset", "compact", str(lake), "--grace", "0"])
    assert done.returncode == 0 and list((lake / "manifest" / "packed").iterdir())
    assert {name: spark.read.parquet(f"{lake}/{name}").count() for name in sums} == sums
    check = spark.read.parquet(f"{lake}/gc").groupBy("trace_id").count().collect()
    assert rows["gc-churn.nettrace"]["trace_id"] in {row["trace_id"]: row["count"] for row in check if row["count"] == 19}
    again = [row["status"] for row in tracequet.spark.convert(spark, str(night), str(lake)).collect()]
    assert sorted(again) == ["failed"] + ["skipped"] * 5


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
