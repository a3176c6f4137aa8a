#!/usr/bin/env bash
# Record the worked example of docs/CI.md afresh: record.sh OUT [RUNS]. Writes OUT/main-N.nettrace, without the switch,
# and OUT/change-N.nettrace, with it, and what the program says that it allocates: OUT/main.truth.txt and
# OUT/change.truth.txt. Takes the runtime and the compiler that samples/record.sh finds or installs.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$1 runs=${2:-5}
mkdir -p "$out"
out=$(cd "$out" && pwd)
# A recording has the paths of the program and the runtime in it, and these say nothing of a machine.
work=/tmp/orders
rm -rf "$work" && mkdir "$work"
trap 'rm -rf "$work"' EXIT

. "$here/compile.sh" "$here/Orders.cs" "$work/orders.dll"
cp -a "$runtime" "$work/dotnet"
dotnet=$work/dotnet/dotnet
cd "$work"
export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1            # no libicu needed
for ((n = 1; n <= runs; n++)); do
  for kind in main change; do
    arguments=()
    [ "$kind" = main ] || arguments=(waste)
    # Collections and allocations: keyword 1 of the runtime, level 5. With 0x80000000000 .NET 10 samples allocations at
    # random, while ticks come at regular steps. On 3.1 the output is a folder, and since then a file.
    to=$work/$kind-$n.nettrace
    case $framework in */3.1.*) prefix=COMPlus_; mkdir "$to" ;; *) prefix=DOTNET_ ;; esac
    # A small generation 0 (4 MB), so that a short run has collections; no rundown where it can be left out.
    env "${prefix}GCgen0size=400000" "${prefix}EnableEventPipe=1" "${prefix}EventPipeConfig=Microsoft-Windows-DotNETRuntime:0x80000000001:5" \
      "${prefix}EventPipeRundown=0" "${prefix}EventPipeOutputPath=$to" "$dotnet" "$work/orders.dll" "${arguments[@]}" > "$out/$kind.truth.txt"
    if [ -d "$to" ]; then to=$(ls "$to"/*.nettrace); fi
    mv "$to" "$out/$kind-$n.nettrace"
  done
done
