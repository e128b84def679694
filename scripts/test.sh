#!/usr/bin/env bash
# All that needs no GPU (every tier of `cargo xtask test` but gpu and sanitizer): installs what it needs into this checkout (nvcc from NVIDIA's
# wheels, the npm packages of tests/e2e) and, where there is none, the distribution's Chromium, then checks and tests. A step that fails
# does not stop the later ones; the exit status tells. The last lines name what was skipped and what failed, and count: "12 passed, 0 failed,
# 3 skipped".
set -uo pipefail
cd "$(dirname "$0")/.."
export TANDEM_REQUIRE_NVCC=1
export TANDEM_CUDA_ARCHS=90
# Without a GPU nobody runs the kernels.
command -v nvidia-smi >/dev/null || export TANDEM_CUDA_QUICK=1
fuzz_seconds=${TANDEM_FUZZ_SECONDS:-5}
# What was right once stays right until the code changes; to look for more, run scripts/fuzz.sh, whose cases differ each time.
export TANDEM_FUZZ_SEED=${TANDEM_FUZZ_SEED:-1}
log=$(mktemp)
trap end_lists EXIT
. scripts/steps.sh

# The network may fail once.
again() { "$@" || { sleep 10 && "$@"; }; }

packages() {
    # The lock file decides; an install that is up to date is left alone.
    local done=tests/e2e/node_modules/.complete
    cmp -s tests/e2e/package-lock.json "$done" && return
    npm ci --prefix tests/e2e --ignore-scripts --no-audit --no-fund && cp tests/e2e/package-lock.json "$done"
}

# What waits for the network, or is one process, runs beside what cargo compiles: neither takes both processors all the time.
preparations() {
    step "npm packages" again packages
    step "browser" again sh scripts/install-chromium.sh
    step "database" again sh scripts/install-postgres.sh
    step "object store" again sh scripts/install-s3.sh
    step "code of gRPC is up to date" sh scripts/proto.sh --check
    step "spelling and native layout" sh scripts/style.sh
    step "deployment" sh scripts/deploy.sh
    step "scripts" bash scripts/tests/run.sh
    step "documents" sh scripts/docs.sh
    step "micro-benches" sh bench/micro/check.sh
}

# Beside the other tests: those of the service mostly wait, and what the rest compiles is mostly one crate at a time.
service_and_workspaces() {
    step "tests of the service" tests "" --test service
    step "package for Python" sh scripts/python.sh
    step "library before NCCL" sh scripts/nccl.sh
    step "fabric from C" sh scripts/fabric-c.sh
    more "fuzz targets" sh scripts/fuzz.sh build
}

# These run for a time, as one process or two, beside the edits.
fuzzing() {
    more "fuzzing the command line" sh scripts/fuzz.sh "$((2 * fuzz_seconds))" command_line
    more "fuzzing the service" sh scripts/fuzz.sh "$((2 * fuzz_seconds))" requests
}

# Words for scripts/test-runner.sh, and arguments of cargo test.
tests() {
    local runner
    runner=CARGO_TARGET_$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')_RUNNER="$PWD/scripts/test-runner.sh $1"
    shift
    env "$runner" cargo test --workspace --locked --no-fail-fast "$@"
}

step "nvcc" again sh scripts/install-nvcc.sh
beside preparations
step "formatting" cargo fmt --all --check
step "rules of the house" cargo xtask tidy
step "licences, sources and versions" cargo xtask deny
step "bindings are up to date" cargo xtask bindgen --check
# Documents of examples too: with the features of tests, for which clippy has read the outside crates. The build scripts of both are
# those that the tests need.
step "clippy" cargo clippy --workspace --all-targets --locked -- -D warnings
step "crates' documents" env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --lib --bins --examples --locked
step "test programs" cargo test --workspace --locked --no-run
join preparations
# What is fuzzed is the program that the tests run: one build fewer, and with checks that a release leaves out. TANDEM_BINARY names another.
export TANDEM_BINARY="${TANDEM_BINARY:-${CARGO_TARGET_DIR:-$PWD/target}/debug/tandem}"
export TANDEM_REQUIRE_GRPC=1
beside service_and_workspaces
step "tests" tests "but service"
join service_and_workspaces
more "fuzzing the readers" sh scripts/fuzz.sh "$fuzz_seconds"
beside fuzzing
more "edits that tests must notice" cargo xtask edits witness "${TANDEM_EDITS_SECONDS:-60}"
join fuzzing

echo "make test: $SECONDS s"
awk -f scripts/count-tests.awk "$log"
