#!/usr/bin/env bash
# The tests of scripts.
set -euo pipefail
cd "$(dirname "$0")"
for test in *.sh; do [ "$test" = run.sh ] || bash "$test"; done
