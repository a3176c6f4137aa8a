#!/usr/bin/env bash
# Builds target/tracequet.html: the program for WASI in one file with its page. `web/build.sh --profile quick` compiles faster, to larger and
# slower code. Needs node, and for the C of zstd clang, lld and wasi-libc (Debian: clang lld llvm wasi-libc libclang-rt-dev-wasm32). zopfli packs it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/common.sh

profile=web
[ "${1:-}" != --profile ] || profile=$2
command -v node >/dev/null || apt_install nodejs
command -v zopfli >/dev/null || apt_install zopfli
command -v wasm-ld >/dev/null && [ -d /usr/include/wasm32-wasi ] || apt_install clang lld llvm wasi-libc libclang-rt-dev-wasm32
cross wasm32-wasip1
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CC_wasm32_wasip1=clang AR_wasm32_wasip1=llvm-ar CFLAGS_wasm32_wasip1="--target=wasm32-wasi --sysroot=/usr"
# Recursion over nested data needs more than the megabyte of stack that the linker gives. SIMD is in all browsers since 2023.
RUSTFLAGS="-D warnings -C link-arg=-zstack-size=8388608 -C target-feature=+simd128" CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$target/web \
  cross_cargo build --profile "$profile" --target wasm32-wasip1 --package tracequet-web
cp "$target/web/wasm32-wasip1/$profile/tracequet-web.wasm" "$target/tracequet-web.wasm"
node web/build.mjs "$target/tracequet-web.wasm" "$target/tracequet.html"
