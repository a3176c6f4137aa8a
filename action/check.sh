#!/usr/bin/env bash
# Adds recordings to a dataset and checks rules about them: what action.yml does, for any CI system. Its settings are in
# the environment:
#
#   RECORDINGS   files, directories or patterns, one a line
#   RULES        the file of rules (docs/CI.md)
#   DATASET      the dataset that grows
#   LABELS       labels of these recordings, one a line: commit=1a2b3c
#   NEW          which recordings are checked, by their labels
#   BASELINE     which ones they are compared with, by their labels; empty for none
#   REPORTS      folder for junit.xml, summary.md and report.html
#
# Ends with the exit code of `tracequet check`: 0 passed, 2 undecided, 3 a rule is broken; with 1 when nothing could be
# converted.
set -euo pipefail

# The lines of a text, as an array named `lines`.
lines_of() {
  lines=()
  local line
  while IFS= read -r line; do
    if [ -n "$line" ]; then lines+=("$line"); fi
  done <<< "$1"
}

lines_of "$RECORDINGS"
convert=(convert --quiet --append --jobs 0 --output "$DATASET")
recordings=("${lines[@]}")
lines_of "${LABELS:-}"
# An empty array is an error of `set -u` on the bash of macOS.
for label in ${lines[@]+"${lines[@]}"}; do convert+=(--label "$label"); done
code=0
tracequet "${convert[@]}" "${recordings[@]}" || code=$?
# With losses, or with a recording that could not be read, the check says which rules are undecided.
if [ $code != 0 ] && [ $code != 2 ]; then exit $code; fi

mkdir -p "$REPORTS"
check=(check "$DATASET" --rules "$RULES" --junit "$REPORTS/junit.xml" --markdown "$REPORTS/summary.md" --report "$REPORTS/report.html")
if [ -n "${NEW:-}" ]; then check+=(--new "$NEW"); fi
# The first run of the baseline has nothing to be compared with.
if [ -n "${BASELINE:-}" ]; then check+=(--baseline "$BASELINE" --pass-first); fi
tracequet "${check[@]}"
