#!/usr/bin/env bash
# Records what Spans.cs does, and what it says of itself: record.sh TRACEQUET DOTNET_10 OUT
#
# DOTNET_10 is the folder of a runtime with ASP.NET Core 10, which also has the compiler: `csharp OUT.dll FILE`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tracequet=$1 dotnet=$2 out=$3
# A recording has the paths in it: these say nothing of a machine.
stage=/tmp/spans-stage
rm -rf "$stage" && mkdir -p "$stage/runtime" "$out"
cp -r "$dotnet"/{dotnet,host,shared} "$stage/runtime"
"$dotnet/csharp" "$stage/Spans.dll" "$here/Spans.cs"
# Without the ids of TplEventSource: spans are within each other by their own ids alone.
"$tracequet" collect -q --for cpu,allocations \
  --providers 'Microsoft-Extensions-Logging:0xE:5,Microsoft-Diagnostics-DiagnosticSource:0xFFFFFFFFFFFFF7FF:5:FilterAndPayloadSpecs="[AS]*"' \
  --keep "$stage/spans.nettrace" -o "$stage/spans" -- \
  "$stage/runtime/dotnet" "$stage/Spans.dll" 6 > "$out/spans.truth.jsonl" || [ $? = 2 ]
zstd -q -19 -f "$stage/spans.nettrace" -o "$out/spans.nettrace.zst"
rm -rf "$stage"
