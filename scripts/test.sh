#!/usr/bin/env bash
# All that needs no GPU (every tier of `cargo xtask test` but gpu and sanitizer): installs what it needs into this checkout (nvcc from NVIDIA's
# wheels, the npm packages of tests/e2e) and, where there is none, the distribution's Chromium, then checks and tests. A step that fails
# does not stop the later ones; the exit status tells. The last lines name what was skipped and what failed, and count: "12 passed, 0 failed,
# 3 skipped".
set -uo pipefail
cd "$(dirname "$0")/.."
export TANDEM_REQUIRE_NVCC=1
export TANDEM_CUDA_ARCHS=90
fuzz_seconds=${TANDEM_FUZZ_SECONDS:-5}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

step() {
    local name=$1 begun=$SECONDS status
    shift
    echo "== $name" | tee -a "$log"
    "$@" 2>&1 | tee -a "$log"
    status=${PIPESTATUS[0]}
    [ "$status" -eq 0 ] && status=ok || status=FAILED
    echo "== $name: $status, $((SECONDS - begun)) s" | tee -a "$log"
}

# The network may fail once.
again() { "$@" || { sleep 10 && "$@"; }; }

packages() {
    # The lock file decides; an install that is up to date is left alone.
    local done=tests/e2e/node_modules/.complete
    cmp -s tests/e2e/package-lock.json "$done" && return
    npm ci --prefix tests/e2e --ignore-scripts --no-audit --no-fund && cp tests/e2e/package-lock.json "$done"
}

step "nvcc" again sh scripts/install-nvcc.sh
step "npm packages" again packages
step "browser" again sh scripts/install-chromium.sh
step "database" again sh scripts/install-postgres.sh
step "object store" again sh scripts/install-s3.sh
step "formatting" cargo fmt --all --check
step "rules of the house" cargo xtask tidy
step "licences, sources and versions" cargo xtask deny
step "bindings are up to date" cargo xtask bindgen --check
step "code of gRPC is up to date" sh scripts/proto.sh --check
export TANDEM_REQUIRE_GRPC=1
step "spelling and native layout" sh scripts/style.sh
step "deployment" sh scripts/deploy.sh
step "scripts" bash scripts/tests/run.sh
step "documents" sh scripts/docs.sh
step "micro-benches" sh bench/micro/check.sh
# Documents of examples too: with the features of tests, for which clippy has read the outside crates. The build scripts of both are
# those that the tests need.
step "clippy" cargo clippy --workspace --all-targets --locked -- -D warnings
step "crates' documents" env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --lib --bins --examples --locked
# The tests of the program and those from end to end run it as it is released.
step "release program" cargo build --release --locked -p tandem-prover
export TANDEM_BINARY="${CARGO_TARGET_DIR:-$PWD/target}/release/tandem"
runner=CARGO_TARGET_$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')_RUNNER=$PWD/scripts/test-runner.sh
step "tests" env "$runner" cargo test --workspace --locked --no-fail-fast
step "package for Python" sh scripts/python.sh
step "library before NCCL" sh scripts/nccl.sh
step "fabric from C" sh scripts/fabric-c.sh
step "fuzzing the readers" sh scripts/fuzz.sh "$fuzz_seconds"
step "fuzzing the command line" sh scripts/fuzz.sh "$((2 * fuzz_seconds))" command_line
step "fuzzing the service" sh scripts/fuzz.sh "$((2 * fuzz_seconds))" requests
step "edits that tests must notice" cargo xtask edits witness "${TANDEM_EDITS_SECONDS:-60}"

echo "make test: $SECONDS s"
awk -f scripts/count-tests.awk "$log"
