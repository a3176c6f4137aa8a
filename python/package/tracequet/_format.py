"""Names of the files of a dataset, as the program writes them (`crates/dataset/src/format/paths.rs`)."""

from __future__ import annotations

import os

MANIFEST = "manifest.json"
"""Says that there is a dataset."""

ENTRIES = "manifest"
"""The folder with an entry of each of several recordings."""

PACKS = "packed"
"""The folder of the entries of packs (recordings that were compacted), in that of the entries."""

NO_RECORDING = "none"
"""The key under which there is a file without rows of each table."""

_ENTRY = ".json"


def entry(key: str) -> str:
    """The entry of a recording, in its folder."""
    return key + _ENTRY


def is_entry(name: str) -> bool:
    """Whether this is the name of an entry."""
    return name.endswith(_ENTRY)


def is_entry_of_pack(path: str) -> bool:
    """Whether the file of an entry is that of a pack."""
    return os.path.basename(os.path.dirname(path)) == PACKS


def partition(key: str) -> str:
    """The folder of a recording in that of a table."""
    return f"trace={key}"


def is_of(path: str, key: str) -> bool:
    """Whether a file of this machine holds a table of a recording."""
    return os.path.basename(os.path.dirname(path)) == partition(key)
