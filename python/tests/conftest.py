"""What the tests share: the samples of the project, and what a test of a missing library says."""

import os
import pathlib
import sys
import warnings

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
SHARED = pathlib.Path(os.environ.get("TRACEQUET_SHARED", ROOT.parent / "shared"))
CHURN = SAMPLES / "gc-churn.nettrace"


def recordings():
    """All samples."""
    found = sorted(p for p in SAMPLES.iterdir() if p.suffix in (".nettrace", ".etl", ".corprof", ".gcdump"))
    assert len(found) > 8
    return found


@pytest.fixture(scope="session")
def dataset(tmp_path_factory):
    """The dataset of one sample."""
    import tracequet

    path = tmp_path_factory.mktemp("dataset") / "churn"
    tracequet.convert(CHURN, path)
    return path


@pytest.fixture(scope="session")
def lake(tmp_path_factory):
    """A dataset of two samples."""
    import tracequet

    path = tmp_path_factory.mktemp("lake") / "lake"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tracequet.LossWarning)
        tracequet.convert([CHURN, SAMPLES / "events.nettrace"], path)
    return path


# Samples that together fill nearly every table, and have events of every layout.
MANY = ("subjects.nettrace", "heap-10.nettrace", "stacks.nettrace", "events.nettrace", "callbacks.corprof", "described.etl", "kernel.etl")


@pytest.fixture(scope="session")
def signed(tmp_path_factory):
    """A hive dataset of many samples, with signed addresses: what Spark is to read."""
    import tracequet

    path = tmp_path_factory.mktemp("signed") / "lake"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tracequet.LossWarning)
        tracequet.convert([SAMPLES / name for name in (*MANY, CHURN.name)], path, layout="hive", address_type="int64")
    return path


@pytest.fixture(scope="session")
def flat(tmp_path_factory):
    """A flat dataset of one sample, with unsigned addresses."""
    import tracequet

    path = tmp_path_factory.mktemp("flat") / "heap"
    tracequet.convert(SAMPLES / "heap-10.nettrace", path)
    return path


def files_of(dataset, table):
    """The Parquet files of a table, in either layout."""
    alone = dataset / f"{table}.parquet"
    found = [alone] if alone.is_file() else sorted((dataset / table).glob("trace=*/*.parquet"))
    assert found, table
    return [str(path) for path in found]


sys.path.insert(0, str(pathlib.Path(__file__).parent))
