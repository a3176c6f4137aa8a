"""Which files `open` means: paths, directories, patterns and addresses."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from typing import Iterable, List, Optional, Tuple

from ._errors import UsageError

PACKED = (".gz", ".zst", ".zip")
ENDINGS = (".nettrace", ".netperf", ".etl", ".etlgz", ".diagsession", ".corprof")


def is_recording(name: str) -> bool:
    """Whether a file is a recording by its name."""
    name = name.lower()
    for packed in PACKED:
        if name.endswith(packed):
            name = name[: -len(packed)]
            break
    return name.endswith(ENDINGS)


def is_dataset(path: str) -> bool:
    """Whether a directory is what `convert` wrote."""
    return os.path.isfile(os.path.join(path, "manifest.json"))


def is_address(path: str) -> bool:
    """Whether this is the address of a file elsewhere."""
    scheme, colon, _ = path.partition("://")
    return bool(colon) and scheme.replace("+", "").isalnum()


def expand(path: str) -> List[str]:
    """The recordings that a path stands for."""
    if path == "-":
        raise UsageError("a pipe can be read only once, and each table reads the recording anew: convert it first")
    if os.path.isdir(path):
        found = sorted(
            os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names if is_recording(name)
        )
        if not found:
            raise UsageError(f"{path}: has neither recordings nor the manifest.json of a dataset")
        return found
    if any(c in path for c in "*?[") and not os.path.exists(path):
        found = sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
        if not found:
            raise UsageError(f"{path}: no such files")
        return found
    # Whatever else is no file says so when it is opened.
    if os.path.exists(path) and not os.path.isfile(path):
        raise UsageError(f"{path}: a pipe can be read only once, and each table reads the recording anew: convert it first")
    return [path]


def fetch(addresses: Iterable[str]) -> Tuple[List[str], Optional[str]]:
    """Copies what lies elsewhere into a temporary directory. Returns the local paths and that directory, if there is one."""
    paths: List[str] = []
    folder: Optional[str] = None
    try:
        for number, address in enumerate(addresses):
            if not is_address(address):
                paths.append(address)
                continue
            if folder is None:
                folder = tempfile.mkdtemp(prefix="tracequet-")
            own = os.path.join(folder, str(number))
            os.mkdir(own)
            paths.append(copy(address, own))
        return paths, folder
    except BaseException:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def copy(address: str, folder: str) -> str:
    """Copies the file at an address into a directory. http and https need nothing; s3, gs, hdfs and others need pyarrow."""
    name = address.split("?", 1)[0].rstrip("/").rsplit("/", 1)[-1] or "recording"
    target = os.path.join(folder, name)
    if address.startswith(("http://", "https://")):
        from urllib.error import HTTPError, URLError
        from urllib.request import urlopen

        try:
            with urlopen(address) as source, open(target, "wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
        except (HTTPError, URLError) as error:
            raise OSError(f"{address}: {error}") from error
        return target
    from ._stores import opened

    with opened(address) as source, open(target, "wb") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)
    return target
