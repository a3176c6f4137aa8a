#!/usr/bin/env bash
# Installs tracequet from the releases of this action's repository, unless it is there: install.sh VERSION FOLDER
# (VERSION: a tag, or `latest`). Prints the folder of the program. Needs `gh` with GH_TOKEN, and REPOSITORY.
set -euo pipefail

version=$1 folder=$2
# The bash of Git for Windows has paths of its own, which other programs do not know.
native() { if command -v cygpath >/dev/null; then cygpath -w "$1"; else printf '%s\n' "$1"; fi; }
if there=$(command -v tracequet); then native "$(dirname "$there")"; exit; fi
kind=tar.gz
case $(uname -sm) in
  "Linux x86_64") target=x86_64-unknown-linux-gnu ;;
  "Linux aarch64") target=aarch64-unknown-linux-gnu ;;
  "Darwin x86_64") target=x86_64-apple-darwin ;;
  "Darwin arm64") target=aarch64-apple-darwin ;;
  MINGW* | MSYS* | CYGWIN*)
    kind=zip
    # Not that of `uname`: the shell may run emulated.
    case ${RUNNER_ARCH:-${PROCESSOR_ARCHITEW6432:-${PROCESSOR_ARCHITECTURE:-}}} in
      X64 | AMD64) target=x86_64-pc-windows-msvc ;;
      ARM64) target=aarch64-pc-windows-msvc ;;
      *) target= ;;
    esac
    ;;
  *) target= ;;
esac
[ -n "$target" ] || { echo "no release for $(uname -sm): put tracequet on the PATH before" >&2; exit 1; }
mkdir -p "$folder"
cd "$folder"
download=(release download --repo "$REPOSITORY" --clobber --pattern "tracequet-*-$target.$kind" --pattern SHA256SUMS)
if [ "$version" != latest ]; then download+=("$version"); fi
gh "${download[@]}" >&2
archive=$(ls tracequet-*-"$target.$kind")
# Not every macOS has sha256sum.
if command -v sha256sum >/dev/null; then sum=(sha256sum); else sum=(shasum -a 256); fi
grep " [*]\{0,1\}$archive\$" SHA256SUMS | "${sum[@]}" --check --strict >&2
case $kind in
  zip)
    unzip -q -o "$archive"
    cp -R "${archive%.zip}"/. .
    ;;
  *) tar -xzf "$archive" --strip-components 1 ;;
esac
native "$(pwd)"
