#!/usr/bin/env bash
# Real proofs of Filecoin: filecoin-proofs of crates.io, unmodified, seals 2 KiB sectors and proves them through integrations/supraseal-c2: a
# WindowPoSt of two partitions, a WinningPoSt and PoReps, each verified by filecoin-proofs. It makes test parameters first, 1.1 GiB.
#   bash scripts/filecoin.sh [POREPS]
# All lies in a new folder of TMPDIR, which is removed in the end. TANDEM_FILECOIN=FOLDER keeps it there, so that a second run has only to prove.
# TANDEM_FILECOIN_PROVER=bellperson proves with bellperson's own prover.
set -euo pipefail
cd "$(dirname "$0")/../integrations/filecoin"
if [ -n "${TANDEM_FILECOIN:-}" ]; then
    mkdir -p "$TANDEM_FILECOIN"
    work=$(cd "$TANDEM_FILECOIN" && pwd)
else
    work=$(mktemp -d "${TMPDIR:-/tmp}/tandem-filecoin.XXXXXX")
    trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work/cuda/lib64" "$work/parameters" "$work/parents" "$work/sectors"
export CARGO_TARGET_DIR="$work/target" TMPDIR="$work/sectors"
export FIL_PROOFS_PARAMETER_CACHE="$work/parameters" FIL_PROOFS_PARENT_CACHE="$work/parents"
export TANDEM_NVCC="${TANDEM_NVCC:-none}" TANDEM_REQUIRE_NVCC="${TANDEM_REQUIRE_NVCC:-0}"
features=()
if [ "${TANDEM_FILECOIN_PROVER:-tandem}" = bellperson ]; then
    features=(--no-default-features)
else
    # bellperson's and neptune's own kernels come with the feature, and nothing here uses them. In place of nvcc this makes empty files of them.
    mkdir -p "$work/bin"
    printf '%s\n' '#!/bin/sh' 'while [ $# -gt 1 ]; do' '    [ "$1" = --output-file ] && : > "$2"' '    shift' 'done' > "$work/bin/nvcc"
    chmod +x "$work/bin/nvcc"
    export PATH="$work/bin:$PATH"
    # They link the driver's library. One whose functions say that there is no GPU stands for it, and is used where there is no driver.
    cargo fetch --locked
    names=$(cargo metadata --locked --format-version 1 | tr ',' '\n' | sed -n 's|.*"\(/[^"]*/cuda-driver-sys-[^/"]*\)/Cargo.toml".*|\1|p' | head -n 1)
    sed -n 's/^ *pub fn \(cu[A-Za-z0-9_]*\).*/int \1(void) { return 100; }/p' "$names/src/cuda.rs" | sort -u > "$work/cuda/no_gpu.c"
    cc -shared -o "$work/cuda/lib64/libcuda.so" -Wl,-soname,libcuda.so.1 "$work/cuda/no_gpu.c"
    export CUDA_LIBRARY_PATH="$work/cuda"
    if ! ldconfig -p | grep -q 'libcuda\.so\.1'; then
        ln -sf libcuda.so "$work/cuda/lib64/libcuda.so.1"
        export LD_LIBRARY_PATH="$work/cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    fi
fi
nice cargo build --locked --release -j "${CARGO_BUILD_JOBS:-1}" "${features[@]}"
nice "$work/target/release/tandem-filecoin" "$@"
