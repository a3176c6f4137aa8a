#!/usr/bin/env bash
# Builds target/tracequet.html: the program for WASI in one file with its page. `web/build.sh --profile quick` compiles faster, to larger and
# slower code. Needs node, and for the C of zstd clang, lld and wasi-libc (Debian: clang lld llvm wasi-libc libclang-rt-dev-wasm32). xz packs it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/common.sh

# Nested data of the deepest kind takes 0.3 MB of the stack. What is not optimised takes more.
profile=web stack=$((2 << 20))
[ "${1:-}" != --profile ] || profile=$2 stack=$((8 << 20))
command -v node >/dev/null || apt_install nodejs
command -v xz >/dev/null || apt_install xz-utils
command -v wasm-ld >/dev/null && [ -d /usr/include/wasm32-wasi ] || apt_install clang lld llvm wasi-libc libclang-rt-dev-wasm32
cross wasm32-wasip1
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# Tables are written with level 1 of zstd: compressors of higher levels are left out.
without=$(printf -- '-DZSTD_EXCLUDE_%s_BLOCK_COMPRESSOR ' DFAST GREEDY LAZY LAZY2 BTLAZY2 BTOPT BTULTRA)
export CC_wasm32_wasip1=clang AR_wasm32_wasip1=llvm-ar CFLAGS_wasm32_wasip1="--target=wasm32-wasi --sysroot=/usr $without"
# SIMD is in all browsers since 2023.
# Places in the code are written with as few bytes as they need.
RUSTFLAGS="-D warnings -C link-arg=-zstack-size=$stack -C link-arg=--compress-relocations -C target-feature=+simd128" CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$target/web \
  cross_cargo build --profile "$profile" --target wasm32-wasip1 --package tracequet-web
built=$target/web/wasm32-wasip1/$profile
cp "$built/tracequet-web.wasm" "$built/tracequet-unpack.wasm" "$target"
node web/build.mjs "$target/tracequet-web.wasm" "$target/tracequet-unpack.wasm" "$target/tracequet.html"
