#!/usr/bin/env bash
# Record the traces of this folder afresh, with src/Churn.cs on a real .NET runtime.
#
#   record.sh [OPTIONS] [OUT_DIR]     record into OUT_DIR (default: a new temporary folder), print the files
#   record.sh [OPTIONS] --print-runtime   print the runtime, its version and the compiler; exit 1 if there is none
#   record.sh [OPTIONS] --program         compile only; print the runtime's `dotnet` and the program, one a line
#
#   --runtime DIR|auto   the folder with `dotnet` in it. auto (default): DOTNET_ROOT, else the folder of `dotnet` on
#                        PATH, else .NET Core 3.1 from PyPI (the wheel dotnetcore2), kept in the cache
#   --only NAMES         record only these: gc-churn server-gc heap stacks events exit-early callbacks subjects measures
#   known
#                        lifetimes
#   --suffix TEXT        put TEXT behind each name, as in gc-churn-3.1.nettrace
#   --no-install         take only what is there: nothing from PyPI or apt
#
# The compiler is `csharp OUT.dll FILE...` in the runtime's folder, or the SDK's, or Mono's mcs (Debian: mono-mcs,
# installed when missing). `callbacks` is recorded by recorder/: TRACEQUET_RECORDER is its library, built when unset.
# Recordings are made in /tmp/churn, with copies of both. Runtime and program are kept in
# ${XDG_CACHE_HOME:-~/.cache}/tracequet; a lock keeps two runs at once apart.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
sources=("$here"/src/*.cs)
wheel=dotnetcore2 wheel_version=3.1.23
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/tracequet
# Where runtime and program are copied to and run: a recording has their paths in it, and this one says nothing of a
# machine.
stage=/tmp/churn
all="gc-churn server-gc heap stacks events exit-early callbacks subjects measures known awaits async-buffers lifetimes"

say() { echo "record.sh: $*" >&2; }
die() { say "$@"; exit 1; }

# ---- arguments

runtime=auto only=$all suffix= install=yes action=record out=
while [ $# -gt 0 ]; do
  case $1 in
    --runtime|--only|--suffix) [ $# -gt 1 ] || { say "$1 needs a value"; exit 2; } ;;
  esac
  case $1 in
    --runtime) runtime=$2; shift ;;
    --runtime=*) runtime=${1#*=} ;;
    --only) only=${2//,/ }; shift ;;
    --only=*) only=${1#*=}; only=${only//,/ } ;;
    --suffix) suffix=$2; shift ;;
    --suffix=*) suffix=${1#*=} ;;
    --no-install) install=no ;;
    --print-runtime) action=print ;;
    --program) action=program ;;
    -h|--help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) say "unknown option $1 (see --help)"; exit 2 ;;
    *) [ -z "$out" ] || { say "more than one folder: $out and $1"; exit 2; }; out=$1 ;;
  esac
  shift
done
for name in $only; do
  case " $all " in *" $name "*) ;; *) say "unknown recording $name (there are: $all)"; exit 2 ;; esac
done

# ---- what can be installed

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo -n "$@"
  else say "needs root for: $*"; return 1; fi
}

apt_install() {
  [ $install = yes ] && command -v apt-get >/dev/null || return 1
  say "installing $* with apt-get"
  local get=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  as_root "${get[@]}" install -y --no-install-recommends "$@" >&2 </dev/null && return 0
  as_root "${get[@]}" update >&2 </dev/null && as_root "${get[@]}" install -y --no-install-recommends "$@" >&2 </dev/null
}

pip() {
  if python3 -m pip --version >/dev/null 2>&1; then python3 -m pip "$@"
  elif type -P pip3 >/dev/null; then command pip3 "$@"
  elif type -P pip >/dev/null; then command pip "$@"
  else apt_install python3-pip && python3 -m pip "$@"; fi
}

# The folder of .NET Core 3.1 from PyPI, installed if need be. Called with the lock held.
wheel_runtime() {
  local to=$cache/$wheel-$wheel_version
  if [ ! -x "$to/$wheel/bin/dotnet" ]; then
    [ $install = yes ] || return 1
    say "installing $wheel==$wheel_version from PyPI into $to"
    local new=$to.new.$$
    rm -rf "$new"
    pip install --quiet --disable-pip-version-check --no-input --no-deps --target "$new" "$wheel==$wheel_version" >&2 </dev/null || { rm -rf "$new"; return 1; }
    chmod +x "$new/$wheel/bin/dotnet"
    rm -rf "$to"
    mv "$new" "$to"
  fi
  echo "$to/$wheel/bin"
}

# ---- the runtime

framework_of() { ls -d "$1"/shared/Microsoft.NETCore.App/[0-9]*/ 2>/dev/null | sort -V | tail -1 | sed 's:/*$::' || true; }

# Is this folder a runtime that can record (3.1 or later), and does it start?
usable() {
  [ -x "$1/dotnet" ] || return 1
  local version
  version=$(framework_of "$1"); version=${version##*/}
  case $version in ""|1.*|2.*|3.0.*) return 1 ;; esac
  "$1/dotnet" --list-runtimes >/dev/null 2>&1
}

mkdir -p "$cache" || die "cannot make $cache"
exec 9>"$cache/lock"
flock 9 || die "cannot lock $cache/lock"
unset DOTNET_STARTUP_HOOKS DOTNET_DiagnosticPorts
export DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1 DOTNET_SKIP_FIRST_TIME_EXPERIENCE=1 DOTNET_MULTILEVEL_LOOKUP=0
export PIP_ROOT_USER_ACTION=ignore
export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1            # no libicu needed

if [ "$runtime" != auto ]; then
  usable "$runtime" || die "no .NET runtime 3.1 or later that starts in $runtime"
else
  found=
  if [ -n "${DOTNET_ROOT:-}" ] && usable "$DOTNET_ROOT"; then found=$DOTNET_ROOT; fi
  if [ -z "$found" ] && dotnet=$(type -P dotnet); then
    dotnet=$(dirname "$(readlink -f "$dotnet")")
    if usable "$dotnet"; then found=$dotnet; fi
  fi
  if [ -z "$found" ]; then
    found=$(wheel_runtime) || die "no .NET runtime: none in DOTNET_ROOT, none on PATH, and $wheel==$wheel_version could not be installed from PyPI"
    usable "$found" || die "no .NET runtime: none in DOTNET_ROOT, none on PATH, and the one from PyPI does not start (see: $found/dotnet --list-runtimes)"
  fi
  runtime=$found
fi
runtime=$(cd "$runtime" && pwd)
export DOTNET_ROOT=$runtime
framework=$(framework_of "$runtime")
version=${framework##*/}
major=${version%%.*}

# ---- the compiler

# Portable symbols, which name no folder of this machine. mcs has no such option.
symbols=(-debug:portable -deterministic)
references() { local f; for f in "$1"/System*.dll "$1"/mscorlib.dll "$1"/netstandard.dll; do echo "-r:$f"; done; }

sdk=$(ls -d "$runtime"/sdk/*/Roslyn/bincore/csc.dll 2>/dev/null | sort -V | tail -1 || true)
if [ -x "$runtime/csharp" ]; then
  compiler=$runtime/csharp
  compile() { "$runtime/csharp" "$1" "${symbols[@]}" "-pathmap:$here/src=/src,$(dirname "$1")=$stage/app" "${sources[@]}"; }
elif [ -n "$sdk" ]; then
  compiler="$sdk (on this runtime)"
  compile() { local r; mapfile -t r < <(references "$framework"); "$runtime/dotnet" exec "$sdk" -nologo -noconfig -nostdlib -optimize+ -langversion:7.3 "${symbols[@]}" "-pathmap:$here/src=/src,$(dirname "$1")=$stage/app" "-out:$1" "${r[@]}" "${sources[@]}"; }
else
  type -P mcs >/dev/null || apt_install mono-mcs || die "no C# compiler: no csharp and no sdk in $runtime, and mcs (Debian: mono-mcs) is missing and could not be installed"
  # mcs does not read the assemblies of newer runtimes, but a program compiled against those of 3.1 runs there too.
  if [ "$major" = 3 ]; then refs=$framework
  else refs=$(wheel_runtime) || die "no C# compiler: mcs needs the assemblies of $wheel==$wheel_version, which could not be installed from PyPI"; refs=$(framework_of "$refs"); fi
  compiler="$(type -P mcs) against $refs"
  compile() { local r; mapfile -t r < <(references "$refs"); mcs -nostdlib -noconfig -optimize+ -langversion:7 -nowarn:1702 "-out:$1" "${r[@]}" "${sources[@]}"; }
fi

if [ $action = print ]; then
  echo "runtime: $runtime"
  echo "version: $version"
  echo "compiler: $compiler"
  exit 0
fi

# ---- the program, once for each source, runtime and compiler

key=$( { cat "${sources[@]}"; echo "$version $compiler"; } | sha256sum | cut -c1-16)
program=$cache/programs/$key/Churn.dll
if [ ! -f "$program" ]; then
  new=$cache/programs/$key.new.$$
  rm -rf "$new" "$cache/programs/$key"
  mkdir -p "$new"
  compile "$new/Churn.dll" >&2 || { rm -rf "$new"; die "src/*.cs do not compile with $compiler"; }
  cat > "$new/Churn.runtimeconfig.json" <<J
{"runtimeOptions":{"tfm":"netcoreapp3.1","framework":{"name":"Microsoft.NETCore.App","version":"$version"},"configProperties":{"System.GC.Concurrent":true,"System.Globalization.Invariant":true}}}
J
  mv "$new" "$cache/programs/$key"
fi
flock -u 9
exec 9>&-

if [ $action = program ]; then printf '%s\n' "$runtime/dotnet" "$program"; exit 0; fi

# ---- the recordings

[ -n "$out" ] || out=$(mktemp -d "${TMPDIR:-/tmp}/tracequet-samples.XXXXXX")
mkdir -p "$out"
out=$(cd "$out" && pwd)
exec 8>"$stage.lock"
flock 8 || die "cannot lock $stage.lock"
rm -rf "$stage"
mkdir "$stage" || die "cannot make $stage"
trap 'rm -rf "$stage"' EXIT
work=$stage/out
mkdir "$work"
cp -a "$runtime" "$stage/dotnet"
cp -a "$(dirname "$program")" "$stage/app"
runtime=$stage/dotnet program=$stage/app/Churn.dll
export DOTNET_ROOT=$runtime TMPDIR=$work
cd "$work"
ulimit -c 0                                               # exit-early is to end badly, without a core file

clr=Microsoft-Windows-DotNETRuntime
failed=

# run NAME [SETTING=VALUE...] -- MODE...: the program, with settings of the runtime (COMPlus_ was their name before 6)
run() {
  local name=$1 prefix=DOTNET_ settings=() status=0; shift
  [ "$major" -ge 6 ] || prefix=COMPlus_
  while [ "$1" != -- ]; do settings+=("$prefix$1"); shift; done; shift
  # The braces take the shell's own word on a process that was aborted.
  { timeout 120 env "${prefix}EnableDiagnostics=1" "${prefix}DbgEnableMiniDump=0" "${settings[@]}" \
    "$runtime/dotnet" "$program" "$@" >"$work/$name.log" 2>&1 </dev/null || status=$?; } 2>/dev/null
  return $status
}

# record NAME PROVIDERS [SETTING=VALUE...] -- MODE...: with a session from the start of the process to its end
record() {
  local name=$1 providers=$2; shift 2
  local to=$work/$name.nettrace status=0
  if [ "$major" -lt 5 ]; then to=$work/$name; mkdir "$to"; fi       # a folder on 3.1, a file since
  run "$name" EnableEventPipe=1 "EventPipeOutputPath=$to" EventPipeCircularMB=64 "EventPipeConfig=$providers" "$@" || status=$?
  if [ -d "$to" ]; then mv "$to"/*.nettrace "$to.nettrace" 2>/dev/null || true; fi
  finish "$name" $status
}

# finish NAME STATUS [EXTENSION FIRST_BYTES]
finish() {
  local name=$1 status=$2 extension=${3:-nettrace} magic=${4:-Nettrace} file=
  file=$work/$name.$extension
  if [ "$name" = exit-early ] && [ "$status" != 0 ] && [ "$status" != 124 ]; then status=0; fi
  if [ "$status" != 0 ] || [ "$(head -c 8 "$file" 2>/dev/null)" != "$magic" ]; then
    say "$name was not recorded (exit status $status):"; tail -5 "$work/$name.log" >&2; failed="$failed $name"; return 0
  fi
  cp "$file" "$out/.$name.$$" && mv "$out/.$name.$$" "$out/$name$suffix.$extension"
  printf '%s\t%s bytes\n' "$out/$name$suffix.$extension" "$(stat -c %s "$out/$name$suffix.$extension")"
}

# The library of recorder/, built if need be.
recorder_library() {
  if [ -n "${TRACEQUET_RECORDER:-}" ]; then echo "$TRACEQUET_RECORDER"; return 0; fi
  (cd "$here/.." && cargo build --quiet --locked --release --package tracequet-recorder) >&2 || return 1
  echo "${CARGO_TARGET_DIR:-$here/../target}/release/libtracequet_recorder.so"
}

say "recording with .NET $version in $runtime"
# A first generation of 1.5 MB, so that some collections start by themselves; no rundown where it can be left out.
gc=(GCgen0size=180000 EventPipeRundown=0)
for name in $only; do
  case $name in
    gc-churn)   record $name "$clr:0x400003:5" "${gc[@]}" -- churn ;;
    server-gc)  record $name "$clr:0x400001:5" "${gc[@]}" gcServer=1 GCHeapCount=2 -- churn 2 ;;
    stacks)     record $name "Microsoft-DotNETCore-SampleProfiler:0:5,$clr:0x14C14FCCBD:5" -- stacks ;;
    events)     record $name "Tracequet-Churn:0xFFFFFFFFFFFFFFFF:5,Tracequet-Churn-Described:0xFFFFFFFFFFFFFFFF:5,System.Threading.Tasks.TplEventSource:0x80:4" EventPipeRundown=0 -- events ;;
    exit-early) record $name "$clr:0x400003:5" EventPipeRundown=0 -- exit-early ;;
    subjects)   # with what the program says of itself, and its symbols, beside it
      record $name "Tracequet-Subjects:0xFFFFFFFFFFFFFFFF:5:EventCounterIntervalSec=0.2,System.Threading.Tasks.TplEventSource:0x80:4,System.Diagnostics.Eventing.FrameworkEventSource:0x2:5,System.Diagnostics.Metrics:0x2:4:Metrics=Tracequet.Subjects;RefreshInterval=0.2;SessionId=1,$clr:0x1C01C:5" -- subjects
      grep -E '^(exception|line|lock|request|nap|work|counter|instrument) ' "$work/$name.log" > "$out/$name$suffix.truth.txt" || true
      if [ -f "$stage/app/Churn.pdb" ]; then cp "$stage/app/Churn.pdb" "$out/Churn$suffix.pdb"; fi ;;
    measures)   # with what the program says of itself beside it
      record $name "System.Diagnostics.Metrics:0x2:4:Metrics=Tracequet.Measures;RefreshInterval=0.2;SessionId=1,Microsoft-Diagnostics-DiagnosticSource:0x2:4:FilterAndPayloadSpecs=[AS]Tracequet.Measures,$clr:0x4000001000C:5" EventPipeRundown=0 -- measures
      grep -E '^(wait|limit|workers|load|activity|gauge|histogram|level) ' "$work/$name.log" > "$out/$name$suffix.truth.txt" || true ;;
    known)      # with what the program says of itself beside it
      record $name "$clr:0x8000000C038:4" -- known
      grep -E '^(allocation|exception|site|wait) ' "$work/$name.log" > "$out/$name$suffix.truth.txt" || true ;;
    awaits)     # what `collect --for async` records of runtimes before .NET 11, with what the program says of itself beside it
      record $name "System.Threading.Tasks.TplEventSource:0xFB:5,Microsoft.AspNetCore.Hosting:0xFFFFFFFFFFFFFFFF:4,$clr:0x38:4" -- awaits
      grep -E '^(method|blocked|request|work) ' "$work/$name.log" > "$out/$name$suffix.truth.txt" || true ;;
    async-buffers) # buffers of the async profiler of .NET 11, written by the program, with what is in them beside it
      record $name "System.Runtime.CompilerServices.AsyncProfilerEventSource:0xFFFFFFFFFFFFFFFF:4,$clr:0x8038:5" -- async-buffers
      grep -E '^task ' "$work/$name.log" > "$out/$name$suffix.truth.txt" || true ;;
    lifetimes)  # what `collect --for lifetimes` records, with what the program says of itself beside it
      record $name "$clr:0x80000480039:5" GCgen0size=10000000 -- lifetimes
      grep -E '^life ' "$work/$name.log" > "$out/$name$suffix.truth.txt" || true ;;
    callbacks)  # with the recorder as the runtime's profiler: both versions of the callbacks, roots, handles, names
      library=$(recorder_library) && cp "$library" "$stage/libtracequet_recorder.so" || { say "no recorder"; failed="$failed $name"; continue; }
      status=0
      (
        for variable in "${!TRACEQUET_@}"; do unset "$variable"; done      # the recorder takes them for settings
        export CORECLR_ENABLE_PROFILING=1 CORECLR_PROFILER={6c1a7a1c-53a1-4b4b-9f2a-7c6f8f0f7c01}
        export CORECLR_PROFILER_PATH=$stage/libtracequet_recorder.so
        export TRACEQUET_OUTPUT=$work/callbacks.corprof TRACEQUET_RANGES=both
        run callbacks GCgen0size=180000 -- churn
      ) || status=$?
      finish callbacks $status corprof .corprof ;;
    heap)       # by attaching: the program asks its own runtime, over the diagnostics port, for a heap dump
      status=0; run heap -- heap "$work/heap.nettrace" || status=$?; finish heap $status ;;
  esac
done
[ -z "$failed" ] || die "not recorded:$failed"
