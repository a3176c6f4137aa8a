#!/usr/bin/env bash
# Record samples/bugs afresh: record.sh TRACEQUET DOTNET CSHARP OUT [BUG...]. DOTNET is a .NET 10 runtime, CSHARP a
# compiler (`csharp OUT.dll FILE`). Everything is recorded, as a person would who does not know yet what is wrong.
# record-habits.sh records samples/habits.
set -euo pipefail
tracequet=$1 dotnet=$2 csharp=$3 out=$4
shift 4
here=$(cd "$(dirname "$0")" && pwd)
# A recording has the paths in it: these say nothing of a machine.
stage=/tmp/bugs-stage
rm -rf "$stage" && mkdir -p "$stage/runtime" "$out"
cp -r "$(dirname "$(readlink -f "$dotnet")")"/{dotnet,host,shared} "$stage/runtime"
"$csharp" "$stage/Bugs.dll" "$here/Bugs.cs"
[ $# -gt 0 ] || set -- leak sync large boxing convoy exceptions queries calls
for bug; do
  seconds=4
  [ "$bug" != leak ] || seconds=14
  [ "$bug" != calls ] || seconds=2
  for clean in "" clean; do
    name=$bug${clean:+-clean}
    "$tracequet" collect -q --for all --keep "$stage/$name.nettrace" -o "$stage/$name" -- \
      "$stage/runtime/dotnet" "$stage/Bugs.dll" "$bug" $clean "$seconds" || [ $? = 2 ]
    zstd -q -19 -f "$stage/$name.nettrace" -o "$out/$name.nettrace.zst"
  done
done
# The leak once more with a dump of the heap, which the program has to outlive.
"$tracequet" collect -q --for lifetimes --heap-at-end --duration 8 --keep "$stage/leak-heap.nettrace" -o "$stage/leak-heap" -- \
  "$stage/runtime/dotnet" "$stage/Bugs.dll" leak 12 || [ $? = 2 ]
zstd -q -19 -f "$stage/leak-heap.nettrace" -o "$out/leak-heap.nettrace.zst"
rm -rf "$stage"
