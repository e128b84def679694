#!/usr/bin/env bash
# Mutation tests: each edit of cargo-mutants to code that no test notices is named.
#   scripts/mutants.sh [BASE]            what differs from BASE (main), all of it
#   scripts/mutants.sh --sample SECONDS  in so much time a share of the code that differs from day to day
#
# A survivor fails the first, which is for whoever makes a change. It does not fail the sample: which edits a day brings says nothing of the
# change that is tested. Survivors of it are named, and a sample that tried nothing counts as skipped.
# With TANDEM_MUTANTS_SHARE=7 the sample is that of the seventh share.
set -euo pipefail
cd "$(dirname "$0")/.."
version=27.1.0
# Shares of a sample; a day has one of them.
shares=97
# Packages whose edits the sample tries: what runs hostile programs, and builds within the time that a sample has.
packages=(tandem-witness)
tools=$PWD/.build/tools
out=.build/mutants
export TANDEM_NVCC=none TANDEM_REQUIRE_NVCC=0
# Outside crates are built once; those of a copy of the tree are its own.
export CARGO_TARGET_DIR="$PWD/.build/mutants-target" RUST_BACKTRACE=0

if [ "$("$tools/bin/cargo-mutants" mutants --version 2>/dev/null)" != "cargo-mutants $version" ]; then
    cargo install cargo-mutants --version "$version" --locked --quiet --debug --root "$tools" --target-dir "$tools/target"
    rm -rf "$tools/target"
fi
mutants() { "$tools/bin/cargo-mutants" mutants --output "$out" --colors never --no-times "$@"; }
survivors() { [ ! -e "$out/mutants.out/missed.txt" ] || sed 's/^/survived: /' "$out/mutants.out/missed.txt"; }
tried() { cat "$out"/mutants.out/{missed,caught,timeout}.txt 2>/dev/null | grep -c . || true; }

mkdir -p "$out"
rm -rf "$out/mutants.out"
# Copies of the tree, which one that was stopped leaves behind.
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
if [ "${1:-}" != --sample ]; then
    git diff "${1:-main}" -- '*.rs' >"$out/diff"
    [ -s "$out/diff" ] || { echo "mutants: nothing differs from ${1:-main}"; exit 0; }
    status=0
    mutants --in-diff "$out/diff" || status=$?
    survivors
    exit "$status"
fi

share=${TANDEM_MUTANTS_SHARE:-$(($(date +%s) / 86400))}
echo "mutants: share $((share % shares)) of $shares, ${2:-90} s"
names=()
for package in "${packages[@]}"; do names+=(--package "$package"); done
# The tests pass as they are, or the step before this one has failed.
status=0
timeout --signal=INT --kill-after=60 "${2:-90}" "$tools/bin/cargo-mutants" mutants --output "$out" --colors never --no-times \
    "${names[@]}" --sharding round-robin --shard "$((share % shares))/$shares" --baseline skip --timeout 120 || status=$?
survivors
# 2: survivors, 3: some took too long, 124 and 130: the time is over. What else it says is a fault of the command.
case $status in 0 | 2 | 3 | 124 | 130 | 137) ;; *) echo "mutants: exit status $status"; exit 1 ;; esac
echo "mutants: $(tried) tried, $(survivors | grep -c . || true) survived"
# Not a fault of what is tested, and no pass either: it counts as a skip (scripts/count-tests.awk).
[ "$(tried)" -gt 0 ] || echo "skipped: mutants::sample: no edit was tried in ${2:-90} s"
