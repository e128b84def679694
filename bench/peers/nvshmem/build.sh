#!/bin/sh
# Builds the NVSHMEM peer into .build/peers/nvshmem, against the wheel nvidia-nvshmem-cu13 3.4.5, which is fetched with pip into
# .build/peers/nvshmem-wheel. Needs nvcc in NVCC, on PATH, or from the wheels in .cuda/. To run, it needs libnvshmem_host.so.3 and
# nvshmem_bootstrap_uid.so.3 on LD_LIBRARY_PATH: PyTorch's CUDA 13 wheels bring them (site-packages/nvidia/nvshmem/lib).
set -eu
cd "$(dirname "$0")"
root=$(cd ../../.. && pwd)
NVCC=${NVCC:-$(command -v nvcc || echo "$root/.cuda/nvidia/cu13/bin/nvcc")}
toolkit=$(dirname "$(dirname "$NVCC")")
out=$root/.build/peers
wheel=$out/nvshmem-wheel
if [ ! -e "$wheel/complete" ]; then
    rm -rf "$wheel"
    PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --target "$wheel" nvidia-nvshmem-cu13==3.4.5
    touch "$wheel/complete"
fi
# The wheel has no unversioned name to link with, and the driver's library is on GPU machines alone: an empty one of its name stands in.
ln -sf libnvshmem_host.so.3 "$wheel/nvidia/nvshmem/lib/libnvshmem_host.so"
echo | cc -shared -Wl,-soname,libcuda.so.1 -o "$wheel/libcuda.so" -x c -
nice "$NVCC" -std=c++17 -O2 -rdc=true -gencode arch=compute_90,code=sm_90 -I"$wheel/nvidia/nvshmem/include" -I"$toolkit/include/cccl" \
    peer.cu -o "$out/nvshmem" -L"$toolkit/lib64" -L"$toolkit/lib" -L"$wheel/nvidia/nvshmem/lib" -lnvshmem_device -lnvshmem_host \
    -L"$wheel" -Xlinker --no-as-needed -lcuda -Xlinker --unresolved-symbols=ignore-all
