#!/bin/sh
# Puts NVIDIA's CUDA 13.0 compiler into .cuda of this checkout, from the wheels that NVIDIA publishes on PyPI. Needs
# Python 3 and no root; touches nothing outside the checkout. Running it again does nothing.
set -eu
cd "$(dirname "$0")/.."

if [ -x .cuda/nvidia/cu13/bin/nvcc ] && [ -e .cuda/complete ]; then
    echo "nvcc is already in $(pwd)/.cuda" >&2
    exit 0
fi

if ! command -v python3 >/dev/null; then
    echo "install-nvcc: needs python3 (Debian, Ubuntu: apt install python3-venv)" >&2
    exit 1
fi
work=.build/nvcc.$$
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT INT TERM

# A system Python may come without pip, or refuse to install (PEP 668); an environment of our own has and does both.
if python3 -m pip --version >/dev/null 2>&1; then
    python=python3
elif python3 -m venv "$work/venv" >/dev/null 2>&1; then
    python=$work/venv/bin/python3
else
    echo "install-nvcc: python3 has neither pip nor venv (Debian, Ubuntu: apt install python3-venv)" >&2
    exit 1
fi

# --target keeps away from the system's packages, so the refusal of PEP 668 has no reason here.
PIP_BREAK_SYSTEM_PACKAGES=1 "$python" -m pip install --quiet --disable-pip-version-check --no-input --no-deps \
    --only-binary=:all: --require-hashes --target "$work/cuda" -r scripts/nvcc-wheels.txt

rm -rf .cuda
mv "$work/cuda" .cuda
touch .cuda/complete
# Cargo looks again for nvcc when a build script changes.
touch crates/cuda/build.rs crates/fabric/build.rs crates/ops-cuda/build.rs
.cuda/nvidia/cu13/bin/nvcc --version | tail -2 >&2
