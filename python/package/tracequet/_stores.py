"""Object stores and other file systems by pyarrow, addressed as Spark addresses them."""

from __future__ import annotations

import os
from typing import Any, List, Tuple

from ._errors import UsageError


def store(address: str) -> Tuple[Any, str]:
    """The file system of an address, and the path in it. `s3a://` is `s3://`; the endpoint and the credentials come
    from the usual variables (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, ...)."""
    try:
        from pyarrow import fs
    except ImportError:
        raise UsageError(f"{address}: addresses other than http need pyarrow: pip install pyarrow") from None
    scheme, colon, path = address.partition("://")
    if not colon or scheme == "file":
        return fs.LocalFileSystem(), os.path.abspath(path if colon else address)
    if scheme in ("s3", "s3a", "s3n"):
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        more = {}
        if endpoint:
            protocol, _, host = endpoint.partition("://")
            more = {"endpoint_override": host.rstrip("/"), "scheme": protocol}
        return fs.S3FileSystem(**more), path
    if scheme == "abfss":
        scheme = "abfs"
    return fs.FileSystem.from_uri(f"{scheme}://{path}")


def opened(address: str) -> Any:
    """The file at an address, to be read."""
    system, path = store(address)
    from pyarrow import fs

    if system.get_file_info(path).type == fs.FileType.Directory:
        raise UsageError(
            f"{address}: this is a folder, expected the address of a recording. Copy the folder to this machine "
            f"(pyarrow.fs.copy_files, aws s3 cp --recursive, rclone copy) and open the copy; a tracequet that was built with the "
            f"feature `cloud` (cargo build --release --features cloud) reads it where it is"
        )
    return system.open_input_stream(path)


def listed(address: str) -> List[str]:
    """The addresses of all files below an address, or the address itself if it is a file."""
    from pyarrow import fs

    system, path = store(address)
    info = system.get_file_info(path)
    prefix = address[: len(address) - len(path)] if "://" in address and address.endswith(path) else ""
    if "://" in address and not prefix:
        prefix = address.partition("://")[0] + "://"
    if info.type == fs.FileType.File:
        return [address]
    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError(2, "No such file or directory", address)
    below = system.get_file_info(fs.FileSelector(path, recursive=True))
    return sorted(prefix + one.path for one in below if one.type == fs.FileType.File)
