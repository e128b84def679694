#!/usr/bin/env bash
# The tests of scripts, side by side: they mostly wait. What one says comes in one piece.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0 processes=()
for test in *.sh; do
    [ "$test" = run.sh ] && continue
    bash "$test" >"$work/$test" 2>&1 &
    processes+=($!)
done
for process in "${processes[@]}"; do
    wait "$process" || status=1
done
cat "$work"/*
exit "$status"
