#!/bin/sh
# Builds the CUB peers into .build/peers/cub-reduce and cub-sort. Needs nvcc in NVCC, on PATH, or from the wheels in .cuda/; CUB is part of
# its headers (CCCL).
set -eu
cd "$(dirname "$0")"
root=$(cd ../../.. && pwd)
NVCC=${NVCC:-$(command -v nvcc || echo "$root/.cuda/nvidia/cu13/bin/nvcc")}
toolkit=$(dirname "$(dirname "$NVCC")")
mkdir -p "$root/.build/peers"
for peer in reduce sort; do
    nice "$NVCC" -std=c++17 -O3 -gencode arch=compute_90,code=sm_90 -cudart static -I "$toolkit/include/cccl" \
        -L "$toolkit/lib64" -L "$toolkit/lib" -o "$root/.build/peers/cub-$peer" "$peer.cu"
done
