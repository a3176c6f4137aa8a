"""Makes a DuckDB extension of the library that cargo built: package.py LIBRARY [OUT] [--platform P] [--version V]

Appends what DuckDB looks for at the end of the file: the interface that the extension was made for, its version, the
oldest version of DuckDB's C interface that it runs with, and the platform. A signature would follow; there is none, so
that DuckDB has to be told that it may load unsigned extensions. Without --platform it is for this machine.
"""

import argparse
import pathlib
import platform
import re

# The version that crates/duckdb/src/capi/entry.rs asks for.
C_INTERFACE = "v1.2.0"
FIELD = 32
FIELDS = 8
SIGNATURE = 256


def this_platform() -> str:
    """What DuckDB calls this machine."""
    system = {"Linux": "linux", "Darwin": "osx", "Windows": "windows"}[platform.system()]
    machine = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine().lower()]
    return f"{system}_{machine}"


def package_version() -> str:
    """The version of the workspace."""
    manifest = pathlib.Path(__file__).parents[2].joinpath("Cargo.toml").read_text(encoding="utf-8")
    return re.search(r'^version = "(.+)"$', manifest, re.MULTILINE)[1]


def footer(platform_name: str, version: str) -> bytes:
    """The end of the file: the head of a custom section of WebAssembly, the fields from the last on, the signature."""
    fields = ["4", platform_name, C_INTERFACE, version, "C_STRUCT", "", "", ""]
    parts = [field.encode().ljust(FIELD, b"\0") for field in reversed(fields)]
    if len(parts) != FIELDS or any(len(part) != FIELD for part in parts):
        raise SystemExit(f"a field is longer than {FIELD} bytes: {fields}")
    # Section 0 of 531 bytes (LEB128), named with 16 bytes, of 512 bytes.
    head = bytes([0, 0x93, 0x04, 16]) + b"duckdb_signature" + bytes([0x80, 0x04])
    return head + b"".join(parts) + bytes(SIGNATURE)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("library", type=pathlib.Path)
    arguments.add_argument("out", type=pathlib.Path, nargs="?", default=pathlib.Path("tracequet.duckdb_extension"))
    arguments.add_argument("--platform", default=this_platform())
    arguments.add_argument("--version", default=package_version())
    given = arguments.parse_args()
    given.out.write_bytes(given.library.read_bytes() + footer(given.platform, given.version))


if __name__ == "__main__":
    main()
