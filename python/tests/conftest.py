"""What the tests share: the samples of the project, and what a test of a missing library says."""

import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
SHARED = pathlib.Path(os.environ.get("TRACEQUET_SHARED", ROOT.parent / "shared"))
CHURN = SAMPLES / "gc-churn.nettrace"


def recordings():
    """All samples."""
    found = sorted(p for p in SAMPLES.iterdir() if p.suffix in (".nettrace", ".etl", ".corprof"))
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
    tracequet.convert([CHURN, SAMPLES / "events.nettrace"], path)
    return path


sys.path.insert(0, str(pathlib.Path(__file__).parent))
