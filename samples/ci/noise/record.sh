#!/usr/bin/env bash
# Record how figures of a build differ by chance: record.sh OUT.csv [RUNS]. Runs each build of Noise.cs RUNS times (40),
# in turn, and writes the figures that `tracequet stats` gives: build, run, metric, value. Takes the tracequet on PATH,
# and the runtime and the compiler that samples/record.sh finds; .NET 5 or later, which DOTNET_ROOT names.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(realpath -m "$1") runs=${2:-40}
work=/tmp/noise
rm -rf "$work" && mkdir "$work"
trap 'rm -rf "$work"' EXIT

. "$here/../compile.sh" "$here/Noise.cs" "$work/noise.dll"
case $framework in */3.1.*) echo "record.sh needs .NET 5 or later: set DOTNET_ROOT" >&2; exit 1 ;; esac
export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 DOTNET_gcServer=0 DOTNET_GCgen0size=400000 DOTNET_EnableEventPipe=1
export DOTNET_EventPipeConfig=Microsoft-Windows-DotNETRuntime:0x80000000001:5 DOTNET_EventPipeRundown=0
metrics='allocation.bytes gc.count gc.pause.p99 gc.pause.max gc.pause.total gc.survived.bytes heap.size.max'
echo build,run,metric,value >"$work/all.csv"
for ((n = 1; n <= runs; n++)); do
  for build in none more10 more30 survivors pauses; do
    DOTNET_EventPipeOutputPath=$work/$build.nettrace "$dotnet" "$work/noise.dll" $build
    tracequet stats "$work/$build.nettrace" --json | python3 -c '
import json, sys
figures = {metric["name"]: metric["value"] for metric in json.load(sys.stdin)[0]["metrics"]}
for name in sys.argv[3:]:
    print(*sys.argv[1:3], name, figures[name], sep=",")' $build $n $metrics >>"$work/all.csv"
  done
done
cp "$work/all.csv" "$out"
