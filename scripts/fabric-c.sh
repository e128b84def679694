#!/bin/sh
# Tests the fabric's functions of C (integrations/c) from C on pretend PEs. `scripts/fabric-c.sh library` makes the optimised library instead, with
# kernels where there is nvcc, and prints where it is. Needs a C compiler.
set -eu
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
cd integrations/c

case ${1-} in
library)
    cargo build --locked --release
    echo "$CARGO_TARGET_DIR/release/libtandem_fabric_c.so"
    exit ;;
"") ;;
*) echo "usage: scripts/fabric-c.sh [library]" >&2; exit 2 ;;
esac

# The tests run without a GPU: kernels that nothing runs are not compiled.
export TANDEM_NVCC=none TANDEM_REQUIRE_NVCC=0
cargo fmt --check
cargo clippy --quiet --locked --all-targets -- -D warnings
cargo build --quiet --locked
cargo test --quiet --locked
