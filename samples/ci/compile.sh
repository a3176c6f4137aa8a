# Compiles a program of this folder: compile.sh is sourced by record.sh and noise/record.sh, with SOURCE and PROGRAM (a
# .dll to make). Sets `dotnet` and `framework`, by the runtime and the compiler that samples/record.sh finds or
# installs.
{ read -r dotnet; read -r churn; } < <("$(dirname "${BASH_SOURCE[0]}")/../record.sh" --program)
runtime=$(dirname "$dotnet")
framework=$(dirname "$(ls "$runtime"/shared/Microsoft.NETCore.App/*/System.Private.CoreLib.dll | tail -1)")
if [ -x "$runtime/csharp" ]; then
  "$runtime/csharp" "$2" "$1"
else
  references=()
  for file in "$framework"/System*.dll "$framework"/mscorlib.dll "$framework"/netstandard.dll; do references+=("-r:$file"); done
  mcs -nostdlib -noconfig -optimize+ -langversion:7 -nowarn:1702 "-out:$2" "${references[@]}" "$1"
fi
cp "${churn%.dll}.runtimeconfig.json" "${2%.dll}.runtimeconfig.json"
