#!/bin/sh
# Tests the library that stands before NCCL (integrations/nccl): on pretend PEs, before a stand-in for NCCL, with programs in C. `scripts/nccl.sh library`
# makes the optimised library instead, with kernels where there is nvcc, and prints where it is. Needs a C compiler and nm; with
# TANDEM_NCCL_INCLUDE=FOLDER, and TANDEM_CUDA_INCLUDE=FOLDER for cuda_runtime.h, the programs are compiled with NCCL's own header, and with
# TANDEM_NCCL_LIBRARIES=FILE:... the functions of these files must all be there.
set -eu
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
cd integrations/nccl

case ${1-} in
library)
    cargo build --locked --release
    echo "$CARGO_TARGET_DIR/release/libtandem_nccl.so"
    exit ;;
"") ;;
*) echo "usage: scripts/nccl.sh [library]" >&2; exit 2 ;;
esac

# The tests run without a GPU: kernels that nothing runs are not compiled.
export TANDEM_NVCC=none TANDEM_REQUIRE_NVCC=0
cargo fmt --check
cargo clippy --quiet --locked -- -D warnings
cargo clippy --quiet --locked --features pretend --all-targets -- -D warnings
cargo build --quiet --locked --features pretend
cargo test --quiet --locked --features pretend
