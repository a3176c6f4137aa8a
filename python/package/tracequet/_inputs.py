"""Finds the files for `open`: paths, directories, patterns and addresses."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Iterable, List, Optional, Sequence, Tuple

from . import _format, _tracequet
from ._errors import UsageError



def is_dataset(path: str) -> bool:
    """Whether `convert` wrote a directory."""
    return os.path.isfile(os.path.join(path, _format.MANIFEST))


def is_address(path: str) -> bool:
    """Whether this is the address of a remote file."""
    scheme, colon, _ = path.partition("://")
    return bool(colon) and scheme.replace("+", "").isalnum()


def expand(paths: Sequence[str]) -> Tuple[List[str], int]:
    """The files of paths, directories and patterns, as on the command line, and the number of their recordings: an
    archive may hold several."""
    for path in paths:
        if path == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)):
            raise UsageError(f"{path}: a pipe can be read only once, and each table reads the recording again: convert it first")
    return _tracequet.expand(paths)


def fetch(addresses: Iterable[str]) -> Tuple[List[str], Optional[str]]:
    """Copies remote inputs into a temporary directory. Returns the local paths and that directory, if there is one."""
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
    """Copies the file at an address into a directory. http and https need nothing; s3, gs, hdfs and others need
    pyarrow.
    """
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
