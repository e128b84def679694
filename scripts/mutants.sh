#!/usr/bin/env bash
# Mutation tests: each edit of cargo-mutants to what differs from BASE (main) that no test notices is named. A survivor fails.
#   scripts/mutants.sh [BASE] [OPTION OF CARGO-MUTANTS...], such as --file crates/formats/src/zkey/coefs.rs, or --list to see the edits
# Each edit is built and runs all tests of its crate: some minutes each for large ones. The last line is the verdict; the exit status is
# 0 where none survived, 2 where one did, 3 where tests ran too long under one, 4 where they fail without any.
# The sample of edits that `make test` tries is of another kind, which takes a minute: cargo xtask edits.
set -euo pipefail
cd "$(dirname "$0")/.."
version=27.1.0
tools=$PWD/.build/tools
out=.build/mutants
export TANDEM_NVCC=none TANDEM_REQUIRE_NVCC=0
# Outside crates are built once; those of a copy of the tree are its own.
export CARGO_TARGET_DIR="$PWD/.build/mutants-target" RUST_BACKTRACE=0

branch=main
case ${1:---} in
-*) ;;
*) branch=$1; shift ;;
esac
# What came to BASE since is not this change's.
base=$(git merge-base "$branch" HEAD) || { echo "mutants: no commit is called $branch, or it has none in common with this one" >&2; exit 1; }

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
git diff "$base" -- '*.rs' >"$out/diff"
[ -s "$out/diff" ] || { echo "mutants: no Rust source differs from $branch"; exit 0; }
# The crates of `default-members` alone would be looked at without --workspace.
status=0
"$tools/bin/cargo-mutants" mutants --workspace --output "$out" --colors never --no-times --in-diff "$out/diff" "$@" || status=$?

# count <outcome>: edits that came to it.
count() {
    if [ -e "$out/mutants.out/$1.txt" ]; then wc -l <"$out/mutants.out/$1.txt"; else echo 0; fi
}
[ -e "$out/mutants.out/outcomes.json" ] || exit "$status"
sed 's/^/survived: /' "$out/mutants.out/missed.txt"
sed 's/^/ran too long: /' "$out/mutants.out/timeout.txt"
echo "mutants: $(count caught) found by tests, $(count missed) survived, $(count timeout) ran too long, $(count unviable) do not compile"
exit "$status"
