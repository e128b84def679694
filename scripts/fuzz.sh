#!/bin/sh
# Runs each fuzz target of the file readers for a bounded time: scripts/fuzz.sh [SECONDS] [TARGET...].
# `scripts/fuzz.sh build` only builds them.
#
# The readers have no unsafe code, so no address sanitizer is needed, and without one neither are the nightly compiler and
# cargo-fuzz: the coverage that libFuzzer steers by is a flag of LLVM that the stable compiler passes on. The targets are
# in the layout of cargo-fuzz all the same: `cargo +nightly fuzz run zkey` works where it is installed, too.
#
# The targets command_line and requests are others: they run the whole program (cargo xtask fuzz-command-line), and a service (cargo xtask
# fuzz-requests).
#
# TANDEM_FUZZ_SEED, a number, makes all of them begin with the same cases; without it they differ each time.
#
# New inputs gather in fuzz/corpus/TARGET, and one that fails lies in fuzz/artifacts/TARGET; neither is kept in git.
set -eu
cd "$(dirname "$0")/.."

seconds=${1:-60}
[ $# -gt 0 ] && shift
all="zkey plonk_zkey plonk_json params wtns r1cs ptau vkey_json proof_json public_json topology circuit module graph recording"
if [ "$*" = command_line ] || [ "$*" = requests ]; then
    [ -n "${TANDEM_BINARY:-}" ] || cargo build --release --locked --quiet -p tandem-prover
    exec cargo xtask "fuzz-$(echo "$*" | tr _ -)" "$seconds"
fi
host=$(rustc -vV | sed -n 's/^host: //p')

# The target is named so that the flags reach the crates and not their build scripts. No kernels: topologies need none.
TANDEM_REQUIRE_NVCC=0 TANDEM_NVCC=none RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1" \
    cargo build --release --locked --quiet --manifest-path fuzz/Cargo.toml --target "$host" \
    --target-dir "${CARGO_TARGET_DIR:-target}/fuzz"

[ "$seconds" != build ] || exit 0

# Runs one target.
fuzz() {
    target=$1
    corpus=fuzz/corpus/$target
    artifacts=fuzz/artifacts/$target
    mkdir -p "$corpus" "$artifacts"
    bytes=8192 longest=10
    case $target in
    vkey_json | proof_json | public_json) seeds=crates/formats/tests/data/*.${target%_json}.json ;;
    plonk_zkey) seeds=crates/formats/tests/data/*lonk.zkey bytes=32768 ;;
    plonk_json) seeds=crates/formats/tests/data/*lonk.*.json ;;
    topology) seeds=crates/fabric-topology/tests/data/* ;;
    # These run programs, some for most of a second.
    module) seeds=fuzz/seeds/module/* longest=30 ;;
    circuit) seeds=crates/witness/tests/data/multiplier.* bytes=65536 longest=30 ;;
    graph) seeds=crates/witness/tests/data/*.graph ;;
    recording) seeds=fuzz/seeds/recording/* ;;
    *) seeds=crates/formats/tests/data/*.$target ;;
    esac
    # Unquoted: these are patterns.
    for seed in $seeds; do
        cp "$seed" "$corpus/seed-$(basename "$seed")"
    done
    if ! "${CARGO_TARGET_DIR:-target}/fuzz/$host/release/$target" -max_total_time="$seconds" ${TANDEM_FUZZ_SEED:+"-seed=$TANDEM_FUZZ_SEED"} -max_len="$bytes" -timeout="$longest" \
        -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 -artifact_prefix="$artifacts/" "$corpus" \
        >"$artifacts/last.log" 2>&1; then
        tail -n 30 "$artifacts/last.log" >&2
        echo "fuzz $target: failed; the input lies in $artifacts" >&2
        return 1
    fi
    # A target that ran nothing found nothing.
    grep -qE 'number_of_executed_units: *[1-9]' "$artifacts/last.log" || { echo "fuzz $target: nothing ran" >&2; return 1; }
    echo "fuzz $target: $seconds s, $(grep -E 'number_of_executed_units|peak_rss_mb' "$artifacts/last.log" | tr -s ' \n' ' ')"
}

# One on each processor at a time.
[ $# -gt 0 ] || set -- $all
status=0
while [ $# -gt 0 ]; do
    processes=
    for _ in $(seq "$(nproc)"); do
        [ $# -gt 0 ] || break
        fuzz "$1" &
        processes="$processes $!"
        shift
    done
    for process in $processes; do
        wait "$process" || status=1
    done
done
exit "$status"
