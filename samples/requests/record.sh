#!/usr/bin/env bash
# Records what Orders.cs does, and what it says of itself, and a server that waits for tasks: record.sh TRACEQUET DOTNET_10 OUT
#
# DOTNET_10 is the folder of a runtime with ASP.NET Core 10, which also has the compiler: `csharp OUT.dll FILE`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tracequet=$1 dotnet=$2 out=$3
# A recording has the paths in it: these say nothing of a machine.
stage=/tmp/orders-stage
rm -rf "$stage" && mkdir -p "$stage/runtime" "$out"
cp -r "$dotnet"/{dotnet,host,shared} "$stage/runtime"
"$dotnet/csharp" "$stage/Orders.dll" "$here/Orders.cs"
"$tracequet" collect -q --for all,requests --keep "$stage/orders.nettrace" -o "$stage/orders" -- \
  "$stage/runtime/dotnet" "$stage/Orders.dll" 2 > "$out/orders.truth.csv" || [ $? = 2 ]
zstd -q -19 -f "$stage/orders.nettrace" -o "$out/orders.nettrace.zst"
"$dotnet/csharp" "$stage/Quotes.dll" -debug:portable "-pathmap:$here=/src" "$here/Quotes.cs"
"$tracequet" collect -q --for threadpool,requests,cpu --keep "$stage/quotes.nettrace" -o "$stage/quotes" -- \
  "$stage/runtime/dotnet" "$stage/Quotes.dll" 4 || [ $? = 2 ]
zstd -q -19 -f "$stage/quotes.nettrace" -o "$out/quotes.nettrace.zst"
cp "$stage/Quotes.pdb" "$out"
rm -rf "$stage"
