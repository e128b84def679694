#!/bin/sh
# Says which glibc a program needs, and fails if it needs a later one than is allowed: scripts/oldest-glibc.sh PROGRAM [VERSION]
set -eu
symbols=$(objdump -T "$1")
needs=$(printf '%s\n' "$symbols" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
[ -n "$needs" ] || { echo "$1: names no glibc" >&2; exit 1; }
needs=${needs#GLIBC_}
echo "$1 needs glibc $needs"
[ $# -gt 1 ] || exit 0
latest=$(printf '%s\n%s\n' "$needs" "$2" | sort -V | tail -n 1)
if [ "$latest" != "$2" ]; then
    echo "$1: needs glibc $needs, at most $2 is allowed:" >&2
    printf '%s\n' "$symbols" | grep "GLIBC_$needs)" >&2
    exit 1
fi
