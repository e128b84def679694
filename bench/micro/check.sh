#!/bin/sh
# Takes every micro-bench through nvcc's front end, cudafe++, as many at a time as there are cores: what they use of the crates'
# headers is there and fits. No code is made, which would take minutes. Needs nvcc in NVCC, on PATH, or from the wheels in .cuda/.
set -eu
cd "$(dirname "$0")/../.."
NVCC=${NVCC:-$(command -v nvcc || echo "$PWD/.cuda/nvidia/cu13/bin/nvcc")}
export NVCC
PATH=$(dirname "$NVCC"):$PATH
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
# nvcc has no option for it, and says which commands it would run: the first two are the preprocessor and the front end. msm.cu is one
# program a group.
printf '%s\n' bench/micro/*.cu | xargs -P "$(nproc)" -I {} sh -euc '
    commands=$("$NVCC" --dryrun --keep-dir "$TMPDIR" -std=c++17 -arch=sm_90 -DBN254_G1 -I crates/ops-cuda/native/include \
        -I crates/cuda/native/include -I crates/fabric/native/include -c {} 2>&1 | sed -n "s/^#\\$ //; / -E -x c++ /,/cudafe++/p" |
        sed "/cudafe++/q")
    case $commands in *cudafe++*) ;; *) echo "{}: nvcc does not name its front end" >&2; exit 1 ;; esac
    eval "$commands" || { echo "{}: does not compile" >&2; exit 1; }'
