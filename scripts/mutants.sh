#!/usr/bin/env bash
# Mutation tests: each edit of cargo-mutants to what differs from BASE (main) that no test notices is named. A survivor fails.
#   scripts/mutants.sh [BASE]
# The sample of edits that `make test` tries is of another kind, which takes a minute: cargo xtask edits.
set -euo pipefail
cd "$(dirname "$0")/.."
version=27.1.0
tools=$PWD/.build/tools
out=.build/mutants
export TANDEM_NVCC=none TANDEM_REQUIRE_NVCC=0
# Outside crates are built once; those of a copy of the tree are its own.
export CARGO_TARGET_DIR="$PWD/.build/mutants-target" RUST_BACKTRACE=0

if [ "$("$tools/bin/cargo-mutants" mutants --version 2>/dev/null)" != "cargo-mutants $version" ]; then
    cargo install cargo-mutants --version "$version" --locked --quiet --debug --root "$tools" --target-dir "$tools/target"
    rm -rf "$tools/target"
fi

mkdir -p "$out"
rm -rf "$out/mutants.out"
# Copies of the tree, which one that was stopped leaves behind.
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
git diff "${1:-main}" -- '*.rs' >"$out/diff"
[ -s "$out/diff" ] || { echo "mutants: nothing differs from ${1:-main}"; exit 0; }
status=0
"$tools/bin/cargo-mutants" mutants --output "$out" --colors never --no-times --in-diff "$out/diff" || status=$?
[ ! -e "$out/mutants.out/missed.txt" ] || sed 's/^/survived: /' "$out/mutants.out/missed.txt"
exit "$status"
