#!/bin/sh
# Takes every micro-bench through nvcc's front end, as many at a time as there are cores: what they use of the crates' headers is
# there and fits. No code is made. Needs nvcc in NVCC, on PATH, or from the wheels in .cuda/.
set -eu
cd "$(dirname "$0")/../.."
NVCC=${NVCC:-$(command -v nvcc || echo "$PWD/.cuda/nvidia/cu13/bin/nvcc")}
export NVCC
out=$(mktemp -d)
export out
trap 'rm -rf "$out"' EXIT
# matrix.cu has instructions of sm_90a alone; msm.cu is one program a group.
printf '%s\n' bench/micro/*.cu | xargs -P "$(nproc)" -I {} sh -c '
    "$NVCC" -std=c++17 --device-syntax-only -arch=sm_90a -DBN254_G1 -I crates/ops-cuda/native/include -I crates/cuda/native/include \
        -I crates/fabric/native/include -c -o "$out/$(basename {}).o" {} || { echo "{}: does not compile" >&2; exit 1; }'
