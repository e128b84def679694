#!/bin/sh
# Builds the sppark peer into .build/peers/. Needs nvcc in NVCC, on PATH, or from the wheels in .cuda/.
set -eu
cd "$(dirname "$0")"
root=$(cd ../../.. && pwd)
NVCC=${NVCC:-$(command -v nvcc || echo "$root/.cuda/nvidia/cu13/bin/nvcc")}
toolkit=$(dirname "$(dirname "$NVCC")")
export NVCC PATH="$(dirname "$NVCC"):$PATH"
# The wheels keep their libraries in lib, where nvcc does not look.
export LIBRARY_PATH="$toolkit/lib64:$toolkit/lib"
export CARGO_TARGET_DIR="$root/.build/peers/target"
nice cargo build --release --locked
for name in bn254 bls12_381 goldilocks baby_bear; do
    cp "$CARGO_TARGET_DIR/release/sppark-$name" "$root/.build/peers/"
done
