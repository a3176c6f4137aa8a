#!/usr/bin/env bash
# Records what Bench.cs does, and what it says of itself: record.sh TRACEQUET DOTNET_10 OUT
#
# DOTNET_10 is the folder of a runtime of .NET 10, which also has the compiler: `csharp OUT.dll FILE`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tracequet=$1 dotnet=$2 out=$3
# A recording has the paths in it: these say nothing of a machine.
stage=/tmp/bench-stage
rm -rf "$stage" && mkdir -p "$stage/runtime" "$out"
cp -r "$dotnet"/{dotnet,host,shared} "$stage/runtime"
"$dotnet/csharp" "$stage/Bench.dll" "$here/Bench.cs"
"$tracequet" collect -q --for cpu,gc,allocations --providers BenchmarkDotNet.EngineEventSource:0x7FFFFFFFFFFFFFFF:4 \
  --keep "$stage/bench.nettrace" -o "$stage/bench" -- "$stage/runtime/dotnet" "$stage/Bench.dll" > "$out/bench.truth.jsonl" || [ $? = 2 ]
zstd -q -19 -f "$stage/bench.nettrace" -o "$out/bench.nettrace.zst"
rm -rf "$stage"
