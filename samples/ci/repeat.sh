#!/usr/bin/env bash
# Whether the worked example of docs/CI.md fails when it should, and only then: repeat.sh [TIMES]. Each time it records
# the program afresh, five times without and five times with the switch, and five times more without. The check has to
# fail for those with the switch (exit code 3) and to pass for those without (0). TRACEQUET is the program; built in
# release when unset.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
times=${1:-20} right=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "${TRACEQUET:-}" ]; then
  (cd "$here/../.." && cargo build --quiet --release --locked)
  TRACEQUET=$here/../../target/release/tracequet
fi

# Adds recordings of a kind to the dataset under a label.
add() {
  "$TRACEQUET" convert --quiet --append "$work/$1/$2-*.nettrace" --output "$work/lake" --label "runs=$3"
}

for ((n = 1; n <= times; n++)); do
  rm -rf "${work:?}"/*
  "$here/record.sh" "$work/first" 5
  "$here/record.sh" "$work/second" 5
  add first main base
  add second main same
  add second change worse
  codes=()
  for runs in same worse; do
    code=0
    "$TRACEQUET" check "$work/lake" --rules "$here/perf.toml" --new "runs=$runs" --baseline runs=base > "$work/$runs.txt" || code=$?
    codes+=("$code")
  done
  if [ "${codes[*]}" = "0 3" ]; then
    right=$((right + 1))
  else
    cat "$work/same.txt" "$work/worse.txt"
  fi
  echo "$n: without the switch ${codes[0]} (0 is right), with it ${codes[1]} (3 is right)"
done
echo "$right of $times right"
[ "$right" = "$times" ]
