#!/usr/bin/env bash
# Installs tracequet from the releases of this action's repository, unless it is there: install.sh VERSION FOLDER
# (VERSION: a tag, or `latest`). Prints the folder of the program. Needs `gh` with GH_TOKEN, and REPOSITORY.
set -euo pipefail

version=$1 folder=$2
if there=$(command -v tracequet); then dirname "$there"; exit; fi
case $(uname -sm) in
  "Linux x86_64") target=x86_64-unknown-linux-gnu ;;
  "Linux aarch64") target=aarch64-unknown-linux-gnu ;;
  "Darwin x86_64") target=x86_64-apple-darwin ;;
  "Darwin arm64") target=aarch64-apple-darwin ;;
  *) echo "no release for $(uname -sm): put tracequet on the PATH before" >&2; exit 1 ;;
esac
mkdir -p "$folder"
cd "$folder"
download=(release download --repo "$REPOSITORY" --clobber --pattern "tracequet-*-$target.tar.gz" --pattern SHA256SUMS)
if [ "$version" != latest ]; then download+=("$version"); fi
gh "${download[@]}" >&2
archive=$(ls tracequet-*-"$target.tar.gz")
grep " $archive\$" SHA256SUMS | sha256sum --check --strict >&2
tar -xzf "$archive" --strip-components 1
pwd
