#!/usr/bin/env bash
# Record samples/habits afresh: record-habits.sh TRACEQUET DOTNET CSHARP OUT [NAME...]. DOTNET is a .NET 10 runtime with
# ASP.NET Core, CSHARP a compiler (`csharp OUT.dll FILE`). What is recorded is what the rule asks for, and what else
# gives frames their names.
set -euo pipefail
tracequet=$1 dotnet=$2 csharp=$3 out=$4
shift 4
here=$(cd "$(dirname "$0")" && pwd)
# A recording has the paths in it: these say nothing of a machine.
stage=/tmp/bugs-stage
rm -rf "$stage" && mkdir -p "$stage/runtime" "$out"
cp -r "$(dirname "$(readlink -f "$dotnet")")"/{dotnet,host,shared} "$stage/runtime"
"$csharp" "$stage/Habits.dll" "$here/Habits.cs"
"$csharp" "$stage/Ways.dll" "$here/Ways.cs"
program=Habits
names=" $* "

# record NAME OPTIONS SETTINGS MODE...: OPTIONS are those of `collect`, SETTINGS those of the runtime, without DOTNET_
record() {
  local name=$1 options=$2 settings=() setting
  for setting in $3; do settings+=("DOTNET_$setting"); done
  shift 3
  # shellcheck disable=SC2086
  env "${settings[@]}" "$tracequet" collect -q $options --tables trace --keep "$stage/$name.nettrace" -o "$stage/$name" -- \
    "$stage/runtime/dotnet" "$stage/$program.dll" "$@" || [ $? = 2 ]
  zstd -q -19 -f "$stage/$name.nettrace" -o "$out/$name.nettrace.zst"
  rm -rf "${stage:?}/$name" "$stage/$name.nettrace"
}

# both NAME OPTIONS SETTINGS MODE [SECONDS]: with the habit and without
both() {
  case $names in "  "|*" $1 "*) ;; *) return 0 ;; esac
  record "$1" "$2" "$3" "$4" ${5:+"$5"}
  record "$1-clean" "$2" "$3" "$4" clean ${5:+"$5"}
}

# differ NAME OPTIONS OPTIONS_CLEAN SETTINGS SETTINGS_CLEAN MODE...: the habit is a setting, of the runtime or of the
# recording
differ() {
  case $names in "  "|*" $1 "*) ;; *) return 0 ;; esac
  local name=$1 options=$2 options_clean=$3 settings=$4 settings_clean=$5
  shift 5
  record "$name" "$options" "$settings" "$@"
  record "$name-clean" "$options_clean" "$settings_clean" "$@"
}

# A budget of 4 MB, so that there are enough collections in a few seconds.
young=GCgen0size=0x400000
both handles "--for gc" "$young" handles 12
both grows "--for gc" "$young" grows 12
both finalizers "--for gc" "$young" finalizers 6
both pinned "--for gc" "$young" pinned 4
both induced "--for gc,contention" "$young" induced 3
both unstoppable "--for gc" "$young" unstoppable
both old "--for gc" "$young" old 2
both often "--for gc,allocations" "$young" often 2
both belt "--for lifetimes" "GCgen0size=0x200000" belt 3
both holes "--for gc" "$young" holes 2
both large-holes "--for gc" "" large-holes
both large-waits "--for gc,contention" "" large-waits 5
differ photos "--for gc" "--for gc" "gcConcurrent=0" "gcConcurrent=1" photos 3
# Stands for the memory of a container: 1 GB.
both cache "--for gc" "GCTotalPhysicalMemory=0x40000000" cache
both datas "--for gc" "gcServer=1 GCHeapCount=0" old 4
both strings "--for allocations" "" strings 2
differ unnamed "--for allocations --rundown off" "--for allocations" "" "" strings 2
both formulas "--for jit --rundown off" "" formulas 11
both find "--for database,contention" "" find 3
both inbox "--for threadpool" "" inbox
both counter "--for gc,requests" "" counter 2
differ noise "--for gc --providers Depot-Noise --buffer-size 1" "--for gc --providers Depot-Noise" "" "" noise
program=Ways
both hot "--for cpu --providers System.Runtime:0xFFFFFFFFFFFFFFFF:4:EventCounterIntervalSec=1" "" hot 3
both spawns "--for cpu --providers Microsoft-Windows-DotNETRuntime:0x10000:4" "" spawns 6
AS='Microsoft-Diagnostics-DiagnosticSource:0x2:4:FilterAndPayloadSpecs="[AS]*:TagObjects=TagObjects.*Enumerate"'
both dials "--for allocations --providers $AS" "" dials 4
both addins "--for exceptions --providers Microsoft-Windows-DotNETRuntime:0x4:4" "" addins 6
both rents "--for allocations" "" rents 3
both outbox "--for async" "" outbox 6
both parcels "--for gc --providers Depot-Parcels" "" parcels 3
both stuck "--for cpu --providers Microsoft-Windows-DotNETRuntime:0x1:4" "GCgen0size=0x400000" stuck 4
both picks "--for cpu,allocations" "" picks 1
both polls "--for async" "" polls 1
both opens "--for cpu,requests" "" opens 1
both clauses "--for async" "" clauses 2
AS='Microsoft-Diagnostics-DiagnosticSource:0x3:4:FilterAndPayloadSpecs="[AS]Depot.Rates/-ParentRatioSampler(all)
[AS]*
[AS]*"'
case $names in "  "|*" specs "*)
  "$tracequet" collect -q --rundown off --providers "$AS" --tables trace --keep "$stage/specs.nettrace" -o "$stage/specs" -- \
    "$stage/runtime/dotnet" "$stage/Ways.dll" dials clean 1 || [ $? = 2 ]
  zstd -q -19 -f "$stage/specs.nettrace" -o "$out/specs.nettrace.zst"
esac
rm -rf "$stage"
