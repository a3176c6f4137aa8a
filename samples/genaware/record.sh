#!/usr/bin/env bash
# Records the heap of GenAware.cs at the end of a collection of generation 1: record.sh DOTNET_10 OUT
#
# DOTNET_10 is the folder of a runtime, which also has the compiler: `csharp OUT.dll FILE`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dotnet=$1 out=$2
stage=/tmp/genaware-stage
rm -rf "$stage" && mkdir -p "$stage" "$out"
"$dotnet/csharp" "$stage/GenAware.dll" "$here/GenAware.cs"
for clean in "" -clean; do
  (cd "$stage" && DOTNET_ROOT=$dotnet DOTNET_gcConcurrent=0 DOTNET_GCGenAnalysisGen=1 DOTNET_GCGenAnalysisBytes=1000 \
    DOTNET_GCGenAnalysisIndex=3 DOTNET_GCGenAnalysisTrace=1 "$dotnet/dotnet" GenAware.dll $clean)
  zstd -q -19 -f "$stage"/gcgenaware.*.nettrace -o "$out/gcgenaware$clean.nettrace.zst"
  rm "$stage"/gcgenaware.*.nettrace
done
rm -rf "$stage"
