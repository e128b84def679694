#!/usr/bin/env bash
# scripts/oldest-glibc.sh allows what an old glibc has and refuses what needs a later one.
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "oldest-glibc: $1" >&2; exit 1; }

# gettid came with glibc 2.30.
printf 'extern int gettid(void);\nint main(void) { return gettid() == 0; }\n' | gcc -x c - -o "$dir/new"
sh scripts/oldest-glibc.sh "$dir/new" 99.0 >/dev/null || fail "a later glibc was refused"
! sh scripts/oldest-glibc.sh "$dir/new" 2.28 >/dev/null 2>"$dir/said" || fail "a program that needs more than 2.28 was allowed"
grep -q 'at most 2.28 is allowed' "$dir/said" || fail "the reason was not told: $(cat "$dir/said")"
: >"$dir/none"
! sh scripts/oldest-glibc.sh "$dir/none" 2.28 >/dev/null 2>&1 || fail "what is no program was allowed"
echo "oldest-glibc: ok"
