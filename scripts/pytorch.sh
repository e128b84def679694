#!/bin/sh
# Tests the backend of PyTorch's process groups (integrations/python/python/tandem/torch.py) with gloo as the oracle. No part of
# scripts/test.sh: PyTorch takes 4.7 GB with all that it needs. `scripts/pytorch.sh own` runs tests of PyTorch's own distributed suite
# instead. What follows goes to pytest, such as `-k messages`. Needs Python 3.11 to 3.13 with venv, Rust, and PyPI at the first run.
set -eu
cd "$(dirname "$0")/.."
venv=$PWD/.build/pytorch-venv
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
tools="torch==2.11.0 numpy==2.4.6 pytest==9.2.0 expecttest==0.3.0 maturin==1.16.0"

if [ "$(cat "$venv/installed" 2>/dev/null)" != "$tools" ]; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    # shellcheck disable=SC2086 # words on purpose
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --only-binary :all: $tools
    echo "$tools" >"$venv/installed"
fi
PATH=$venv/bin:$PATH
export TANDEM_NVCC=none TANDEM_REQUIRE_NVCC=0 PYTHONDONTWRITEBYTECODE=1
pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --force-reinstall \
    --config-settings "build-args=--profile dev --locked" ./integrations/python
tests=tests/test_torch.py
if [ "${1-}" = own ]; then
    shift
    tests=tests/torch_own.py
fi
cd integrations/python
python -m pytest --quiet -p no:cacheprovider "$tests" "$@"
