#!/usr/bin/env bash
# Record samples/bugs afresh: record.sh TRACEQUET DOTNET CSHARP OUT. DOTNET is a .NET 10 runtime, CSHARP a compiler (`csharp OUT.dll FILE`).
set -euo pipefail
tracequet=$1 dotnet=$2 csharp=$3 out=$4
here=$(cd "$(dirname "$0")" && pwd)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
"$csharp" "$stage/Bugs.dll" "$here/Bugs.cs"
mkdir -p "$out"
# A recording of all events is large: of each bug those of its own kind, and the collections.
declare -A profiles=(
  [leak]=gc [sync]=threadpool [large]=gc,allocations [boxing]=gc,allocations [convoy]=gc,contention
  [exceptions]=gc,exceptions [queries]=gc
)
declare -A seconds=([leak]=12 [sync]=6 [large]=6 [boxing]=4 [convoy]=6 [exceptions]=4 [queries]=4)
for bug in leak sync large boxing convoy exceptions queries; do
  for clean in "" clean; do
    name=$bug${clean:+-clean}
    profile=${profiles[$bug]}
    more=()
    if [ "$bug" = queries ]; then
      profile=gc
      more=(--providers 'Microsoft-Diagnostics-DiagnosticSource:0x2:4:FilterAndPayloadSpecs="[AS]Shop*"')
    fi
    "$tracequet" collect -q --for "$profile" "${more[@]}" --keep "$stage/$name.nettrace" -o "$stage/$name" -- \
      "$dotnet" "$stage/Bugs.dll" "$bug" $clean "${seconds[$bug]}" || [ $? = 2 ]
    zstd -q -19 -f "$stage/$name.nettrace" -o "$out/$name.nettrace.zst"
  done
done
