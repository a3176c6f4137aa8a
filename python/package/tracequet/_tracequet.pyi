"""The part of the package that is written in Rust."""

from os import PathLike
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union, final

from typing_extensions import Self

__version__: str
__all__ = [
    "Batches",
    "Dataset",
    "Recordings",
    "Schema",
    "Stream",
    "__version__",
    "expand",
    "is_recording_name",
    "main",
]

def main(arguments: Sequence[str]) -> int: ...
def expand(paths: Sequence[str]) -> Tuple[List[str], int]: ...
def is_recording_name(path: Union[str, PathLike[str]]) -> bool: ...
@final
class Schema:
    def names(self) -> List[str]: ...
    def columns(self) -> List[Tuple[str, str]]: ...
    def __arrow_c_schema__(self) -> Any: ...

@final
class Stream:
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def collect(self, progress: Optional[Callable[[int, int], None]] = None) -> Batches: ...

@final
class Batches:
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __arrow_c_schema__(self) -> Any: ...
    def __len__(self) -> int: ...

@final
class Recordings:
    def __new__(
        cls,
        inputs: Sequence[str],
        *,
        providers: Sequence[str],
        processes: Sequence[str],
        manifests: Sequence[str],
        symbols: Sequence[str],
        start_ns: Optional[int],
        end_ns: Optional[int],
        retained: Optional[int],
        signed: bool,
        hive: bool,
    ) -> Self: ...
    def tables(
        self, names: Optional[Sequence[str]] = None
    ) -> Tuple[List[Tuple[str, str, Schema]], List[Tuple[str, str]]]: ...
    def stream(self, name: str, selection: str, schema: Schema, columns: Optional[Sequence[str]] = None) -> Stream: ...
    def take_losses(self) -> List[Tuple[str, str, str, int, int, str, Optional[int]]]: ...

@final
class Dataset:
    def __new__(cls, path: Union[str, PathLike[str]]) -> Self: ...
    def tables(self) -> List[Tuple[str, int, int]]: ...
    def recordings(self) -> List[Tuple[str, str, int, int, int, bool]]: ...
    def schema(self, name: str) -> Schema: ...
    def stream(self, name: str, schema: Schema, columns: Optional[Sequence[str]] = None) -> Stream: ...
