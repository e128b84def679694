#!/usr/bin/env bash
# Unmodified bellperson 0.26 and 0.27 with integrations/supraseal-c2 in place of the crate of that name: every proof against bellperson's own
# prover. Takes some ten minutes on two cores, most of them to build. TANDEM_PROOFS=1000 makes a thousand random proofs more of each.
set -euo pipefail
cd "$(dirname "$0")/../integrations/supraseal-c2"
export TANDEM_NVCC="${TANDEM_NVCC:-none}" TANDEM_REQUIRE_NVCC="${TANDEM_REQUIRE_NVCC:-0}"
cargo test --locked -p supraseal-c2
cargo test --locked -p supraseal-c2 --features curio
# One after the other: in one build, features of one version of bellperson would be the other test's, too.
for version in 0_26 0_27; do
    TANDEM_DEVICE="${TANDEM_DEVICE:-sim:3}" cargo test --locked -p "bellperson-$version"
done
