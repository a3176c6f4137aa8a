#!/usr/bin/env bash
# Builds target/site for a web server, behind web/build.sh: the page as index.html, with a button for SQL, and DuckDB-WASM in the folder duckdb
# beside it. DuckDB-WASM and the reader of its answers (Apache Arrow) come from npm, at these versions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
site=$target/site
rm -rf "$site" "$target/duckdb-wasm"
mkdir -p "$site/duckdb" "$target/duckdb-wasm"
node web/build.mjs "$target/tracequet-web.wasm" "$target/tracequet-unpack.wasm" "$site/index.html" with-sql

from() { # NAME VERSION HASH: unpacks a package of npm
  local packed
  packed=$(cd "$target/duckdb-wasm" && npm pack --silent "$1@$2")
  echo "$3  $target/duckdb-wasm/$packed" | sha256sum --check --quiet
  mkdir -p "$target/duckdb-wasm/$1"
  tar -xzf "$target/duckdb-wasm/$packed" -C "$target/duckdb-wasm/$1" --strip-components=1
}
from @duckdb/duckdb-wasm 1.32.0 13c29d80888b795cb493b281685d3d3e1738db2fad50d419e2884c6585789722
from apache-arrow 17.0.0 3517f9ef256e9e5bf819f92652028545131660784c68818604e9025ec643b317
duckdb=$target/duckdb-wasm/@duckdb/duckdb-wasm/dist
cp web/duckdb/* "$duckdb/duckdb-eh.wasm" "$duckdb/duckdb-browser-eh.worker.js" "$site/duckdb"
cp "$target/duckdb-wasm/apache-arrow/Arrow.es2015.min.js" "$site/duckdb/arrow.js"
# Its modules name apache-arrow, which browsers do not find: a script that takes the one before it.
{
  echo 'globalThis.duckdb = ((module, require) => {'
  cat "$duckdb/duckdb-browser.cjs"
  printf '\nreturn module.exports; })({ exports: {} }, () => Arrow);\n'
} >"$site/duckdb/duckdb.js"
echo "$site: $(du -sm "$site" | cut -f 1) MB"
