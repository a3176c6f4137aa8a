#!/usr/bin/env bash
# Side by side with TraceEvent, the library behind PerfView and dotnet-trace, in one run.
#
#   benches/compare.sh KIT TRACES [--runs N] [--write]
#
#   KIT      a folder with `dotnet` and `apps/TraceDump/TraceDump.dll`, a small program over TraceEvent:
#            `raw FILE` dispatches every event, `csv FILE` prints every surviving and moved range
#   TRACES   a folder with *.nettrace, among them churn.nettrace (recorded with ranges)
#   --runs   runs of each command, the two sides in turn (5)
#   --write  put the result into docs/PERFORMANCE.md, too
#
# Needs /usr/bin/time, and a Python with duckdb: $TRACEQUET_PYTHON or target/venv/bin/python.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case ${1:-} in ""|-h|--help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 0 ;; esac
cargo build --release --locked --manifest-path "$here/../Cargo.toml" >&2
exec "${TRACEQUET_PYTHON:-$here/../target/venv/bin/python}" -B "$here/compare.py" "$@"
