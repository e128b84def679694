#!/usr/bin/env bash
# Tiers T0 to T5, everything that needs no GPU: installs what it needs into this checkout (nvcc from NVIDIA's wheels, the
# npm packages of tests/e2e), then checks and tests. A step that fails does not stop the later ones; the exit status tells.
set -uo pipefail
cd "$(dirname "$0")/.."
export TANDEM_REQUIRE_NVCC=1
export TANDEM_CUDA_ARCHS=90
fuzz_seconds=${TANDEM_FUZZ_SECONDS:-5}
failed=()

step() {
    local name=$1 begun=$SECONDS
    shift
    echo "== $name"
    if "$@"; then
        echo "== $name: ok, $((SECONDS - begun)) s"
    else
        echo "== $name: FAILED, $((SECONDS - begun)) s"
        failed+=("$name")
    fi
}

packages() {
    # The lock file decides; an install that is up to date is left alone.
    local done=tests/e2e/node_modules/.complete
    cmp -s tests/e2e/package-lock.json "$done" && return
    npm ci --prefix tests/e2e --ignore-scripts --no-audit --no-fund && cp tests/e2e/package-lock.json "$done"
}

step "nvcc" sh scripts/install-nvcc.sh
step "npm packages" packages
step "formatting" cargo fmt --all --check
step "rules of the house" cargo xtask tidy
step "bindings are up to date" cargo xtask bindgen --check
# T4 and T5 run the program as it is released.
step "release program" cargo build --release --locked -p tandem
export TANDEM_BINARY="${CARGO_TARGET_DIR:-$PWD/target}/release/tandem"
step "tests" cargo test --workspace --locked --no-fail-fast
step "fuzzing the readers" sh scripts/fuzz.sh "$fuzz_seconds"

if [ ${#failed[@]} -gt 0 ]; then
    printf 'make test: FAILED: %s\n' "${failed[@]}"
    exit 1
fi
echo "make test: ok, $SECONDS s"
