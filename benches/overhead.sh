#!/usr/bin/env bash
# What recording costs the recorded program: the same programs without a profiler, with one whose callbacks do nothing,
# and recorded, in turn.
#
#   benches/overhead.sh [--runtime DIR] [--runs N] [--write]
#
#   --runtime  the folder with `dotnet` in it; without it as samples/record.sh finds one
#   --runs     runs of each (9)
#   --write    put the result into docs/PERFORMANCE.md, too
#
# Needs python3 and what samples/record.sh needs.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case ${1:-} in -h|--help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 0 ;; esac
cargo build --release --locked --package tracequet-recorder --manifest-path "$here/../Cargo.toml" >&2
exec python3 -B "$here/overhead.py" "$@"
