#!/usr/bin/env bash
# Makes probe.pdb, native symbols of a small DLL, and probe.truth.txt: what llvm-symbolizer says of each byte of its
# code.
#
#   samples/native/make.sh      clang and the LLVM tools of version 14; the linker comes with Rust
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
home=$PWD at=/tmp/probe
mkdir -p $at && cp probe.cpp plain.cpp $at && cd $at
linker=$(rustc --print sysroot)/lib/rustlib/$(rustc --print host-tuple)/bin/rust-lld
flags=(--target=x86_64-pc-windows-msvc -O1 -fno-exceptions -Xclang -fdebug-compilation-dir=/src "-fdebug-prefix-map=$at=/src")
clang-14 "${flags[@]}" -g -gcodeview -c probe.cpp -o probe.obj
# Without debug information: its functions have public names only.
clang-14 "${flags[@]}" -c plain.cpp -o plain.obj
"$linker" -flavor link /dll /nodefaultlib /entry:DllMainCRTStartup /debug /Brepro /pdbaltpath:probe.pdb /map:probe.map \
  /pdb:probe.pdb /out:probe.dll probe.obj plain.obj

# The code begins at 0x1000 of the image. Of inlined functions the outermost line counts, that of the function itself.
size=$((16#$(sed -n 's/^ 0001:00000000 \([0-9a-f]*\)H .text.*/\1/p' probe.map)))
for ((rva = 0x1000; rva < 0x1000 + size; rva++)); do printf '0x%x\n' $((0x180000000 + rva)); done >addresses
llvm-symbolizer-14 --obj=probe.dll --output-style=JSON <addresses |
  python3 -c '
import itertools, json, sys

def what(line):
    """The function without its arguments, and the line."""
    symbol = json.loads(line)["Symbol"][-1]
    return symbol["FunctionName"].split("(")[0], symbol["FileName"], symbol["Line"]

print("# From this address of the image to that one: function, file and line, as llvm-symbolizer says of probe.dll and probe.pdb.")
for found, run in itertools.groupby(enumerate(sys.stdin, 0x1000), lambda row: what(row[1])):
    run = [address for address, _ in run]
    print(hex(run[0]), hex(run[-1] + 1), *found, sep="|")
' >"$home/probe.truth.txt"
cp probe.pdb "$home"
