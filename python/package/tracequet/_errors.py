"""Errors and warnings of the package."""

from __future__ import annotations

import warnings
from typing import Any, Iterable, List, NamedTuple, Optional


class Error(Exception):
    """Something failed. `path` and `offset` (in bytes of the unpacked recording) are the place, if it is known."""

    def __init__(self, message: str, path: Optional[str] = None, offset: Optional[int] = None) -> None:
        super().__init__(message)
        self.path = path
        self.offset = offset

    def __reduce__(self) -> Any:  # Exceptions cross processes, in Spark for one.
        return type(self), (str(self), self.path, self.offset)


class RecordingError(Error):
    """The file is not a recording that tracequet reads, or its header cannot be used."""


class DatasetError(Error):
    """A dataset, or a table of one, is missing, damaged, or of another version."""


class UsageError(Error, ValueError):
    """The request cannot be done: an unknown table, an output that exists already."""


class ProcessError(Error):
    """A process or its runtime could not be reached, refused the request, or did not answer in time."""


class LossWarning(UserWarning):
    """Events were lost, the recording is damaged or cut, or one of several could not be read."""


class Loss(NamedTuple):
    """A kind of loss of a recording, from rows of the table `diagnostic`."""

    path: str
    code: str
    severity: str
    rows: int
    count: int  # type: ignore[assignment]
    message: str
    offset: Optional[int]

    def __str__(self) -> str:
        place = "" if self.offset is None else f" (first at byte {self.offset})"
        times = "" if self.count <= 1 else f", {self.count} in all"
        return f"{self.path}: {self.severity} {self.code}: {self.message}{place}{times}"


def warn(losses: Iterable[Loss], known: List[Loss], stacklevel: int = 3) -> None:
    """Adds losses that are not known yet, and warns of them, once for each recording and kind."""
    for loss in losses:
        if any(old.path == loss.path and old.code == loss.code for old in known):
            continue
        known.append(loss)
        warnings.warn(str(loss), LossWarning, stacklevel=stacklevel)
