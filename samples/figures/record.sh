#!/usr/bin/env bash
# Records what Figures.cs does, and what it says of itself: record.sh DOTNET_10 OUT
#
# DOTNET_10 is the folder of a runtime with ASP.NET Core 10, which also has the compiler: `csharp OUT.dll FILE`.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dotnet=$1 out=$2
program=$(mktemp -d)
trap 'rm -rf "$program"' EXIT
mkdir -p "$out"
"$dotnet/csharp" "$program/Figures.dll" "$here/Figures.cs"

# record NAME MODE PROVIDERS
record() {
  DOTNET_EnableEventPipe=1 DOTNET_EventPipeOutputPath="$program/$1.nettrace" DOTNET_EventPipeRundown=0 \
    DOTNET_EventPipeConfig="$3" "$dotnet/dotnet" "$program/Figures.dll" "$2" > "$out/$1.truth.txt"
  zstd -q -19 -f "$program/$1.nettrace" -o "$out/$1.nettrace.zst"
}

flow=System.Threading.Tasks.TplEventSource:0x80:4
web=Microsoft.AspNetCore.Hosting:0:4,Microsoft-AspNetCore-Server-Kestrel:0:5,System.Net.Http:0:4
record requests requests "$web,$flow"
meters="System.Diagnostics.Metrics:0x2:4:Metrics=Tracequet.Figures;RefreshInterval=0.2;SessionId=1"
record counters counters "Tracequet-Figures:-1:5:EventCounterIntervalSec=0.2,$meters"
for mode in starved calm; do record $mode $mode Microsoft-Windows-DotNETRuntime:0x10000:4; done
