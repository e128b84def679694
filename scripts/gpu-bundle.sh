#!/bin/sh
# Makes .build/gpu-bundle: what a machine with a GPU needs to run the tests of tiers T6 and T7, and nothing to build.
# Copy the folder there and run `sh gpu-bundle/run.sh`.
set -eu
cd "$(dirname "$0")/.."
export TANDEM_REQUIRE_NVCC=1
# The architecture of the machine that will run it.
export TANDEM_CUDA_ARCHS="${TANDEM_CUDA_ARCHS:-90}"
most_mib=55
bundle=.build/gpu-bundle
rm -rf "$bundle"
mkdir -p "$bundle/tests" "$bundle/fixtures"

cargo build --release -p tandem
target=${CARGO_TARGET_DIR:-target}
strip -o "$bundle/tandem" "$target/release/tandem"

# One line for each test executable: its name and its path. T0 and T4 need compilers, and the CPU suite ran here.
cargo test --release --no-run --message-format=json -p tandem-cuda -p tandem-ops-cuda -p tandem-conformance \
    >"$bundle/messages"
sed -n 's/.*"name":"\([^"]*\)".*"executable":"\([^"]*\)".*/\1 \2/p' "$bundle/messages" |
    while read -r name path; do
        case $name in
        t0* | t4* | cpu | mutation | properties | tandem_conformance) ;;
        *) strip -o "$bundle/tests/$name" "$path" ;;
        esac
    done
rm "$bundle/messages"
[ -n "$(ls "$bundle/tests")" ] || { echo "gpu-bundle: no test executable was built" >&2; exit 1; }

# Circuits with a key, a witness and a verification key of one name.
for key in demo/*.zkey tests/e2e/fixtures/*.zkey; do
    stem=${key%.zkey}
    if [ -f "$stem.zkey" ] && [ -f "$stem.wtns" ] && [ -f "$stem.vkey.json" ]; then
        cp "$stem.zkey" "$stem.wtns" "$stem.vkey.json" "$bundle/fixtures/"
    fi
done
cp scripts/gpu-bundle-run.sh "$bundle/run.sh"

# Benches, and the peers that were built (bench/peers/sppark/build.sh).
cp bench/gpu.sh bench/compare.py "$bundle/"
for peer in .build/peers/sppark-bn254 .build/peers/sppark-bls12_381; do
    if [ -x "$peer" ]; then
        mkdir -p "$bundle/peers"
        strip -o "$bundle/peers/$(basename "$peer")" "$peer"
    fi
done

size=$(du -sm "$bundle" | cut -f1)
echo "gpu-bundle: $bundle, $size MiB, $(ls "$bundle/tests" | wc -l) test programs, for $TANDEM_CUDA_ARCHS"
[ "$size" -le "$most_mib" ] || { echo "gpu-bundle: more than $most_mib MiB" >&2; exit 1; }
