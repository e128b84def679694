#!/bin/sh
# Makes .build/gpu-bundle.tar.xz: what a machine with a GPU needs to run the tiers gpu and sanitizer, and nothing to build.
# Unpack it there and run `sh gpu-bundle/run.sh`.
set -eu
cd "$(dirname "$0")/.."
export TANDEM_REQUIRE_NVCC=1
# The architecture of the machine that will run it.
export TANDEM_CUDA_ARCHS="${TANDEM_CUDA_ARCHS:-90}"
# Test programs hold the same native code each: a dictionary as large as all of them leaves a third.
compress="xz -T1 --lzma2=preset=1,dict=192MiB"
# The archive's size at the most.
most_mib=${TANDEM_BUNDLE_MIB:-58}
bundle=.build/gpu-bundle
rm -rf "$bundle"
mkdir -p "$bundle/tests" "$bundle/fixtures"

cargo build --release -p tandem-prover
target=${CARGO_TARGET_DIR:-target}
strip -o "$bundle/tandem" "$target/release/tandem"

# One line for each test executable: its name and its path. Those that need no GPU ran here.
cargo xtask test --list gpu >"$bundle/programs"
# Those of a library have its name.
# shellcheck disable=SC2046 # words on purpose
cargo test --release --no-run --message-format=json -p tandem-cuda -p tandem-ops-cuda -p tandem-engine -p tandem-fabric \
    -p tandem-fabric-examples --lib --test processes $(sed -n '/^tandem_/!s/^/--test /p' "$bundle/programs") >"$bundle/messages"
sed -n 's/.*"name":"\([^"]*\)".*"executable":"\([^"]*\)".*/\1 \2/p' "$bundle/messages" |
    while read -r name path; do
        # It runs with processes of its own (the tier processes).
        [ "$name" != processes ] || strip -o "$bundle/$name" "$path"
        grep -qx "$name" "$bundle/programs" || continue
        [ ! -e "$bundle/tests/$name" ] || { echo "gpu-bundle: two test programs are named $name" >&2; exit 1; }
        strip -o "$bundle/tests/$name" "$path"
    done
while read -r name; do
    [ -e "$bundle/tests/$name" ] || { echo "gpu-bundle: no test program $name was built" >&2; exit 1; }
done <"$bundle/programs"
rm "$bundle/messages" "$bundle/programs"

cp scripts/gpu-bundle-run.sh "$bundle/run.sh"
[ -e "$bundle/processes" ] || { echo "gpu-bundle: no test program processes was built" >&2; exit 1; }
cp scripts/killed.sh scripts/several.sh scripts/gpu-processes.sh scripts/gpu-nvshmem.sh scripts/nccl-graph.sh "$bundle/"

# Benches, and the peers that were built (build.sh in the folders of bench/peers).
cp bench/gpu.sh bench/ntt.sh bench/groth16.sh bench/compare.py bench/fabric.sh bench/serve.sh bench/soak.sh bench/fabric.py bench/several.py "$bundle/"
mkdir -p "$bundle/peers"
cp bench/peers/cufft.py "$bundle/peers/"
for peer in .build/peers/sppark-bn254 .build/peers/sppark-bls12_381 .build/peers/sppark-goldilocks .build/peers/sppark-baby_bear \
    .build/peers/nvshmem .build/peers/cub-reduce .build/peers/cub-sort; do
    if [ -x "$peer" ]; then
        strip -o "$bundle/peers/$(basename "$peer")" "$peer"
    fi
done

# The library that stands before NCCL, where it was built (scripts/nccl.sh library).
if [ -e "$target/release/libtandem_nccl.so" ]; then
    strip -o "$bundle/libtandem_nccl.so" "$target/release/libtandem_nccl.so"
    cp integrations/nccl/tests/gpu.py "$bundle/nccl.py"
fi

# The checks of sums (bench/micro/msm.cu), where they were built: small ones for compute-sanitizer.
for program in .build/msm-*; do
    if [ -x "$program" ]; then
        mkdir -p "$bundle/micro"
        strip -o "$bundle/micro/$(basename "$program")" "$program"
    fi
done

# Circuits with a key, a witness and a verification key: the demo, and those that the end-to-end tests left behind
# (`make test` first), smaller ones before larger, as far as there is room. With TANDEM_BUNDLE_REAL=1 also constraints and witnesses of those
# whose keys find none, some hundred KiB each when packed: bench/groth16.sh makes keys of them.
cp demo/membership.zkey demo/membership.wtns demo/membership.vkey.json "$bundle/fixtures/"
taken=$(tar -C .build -c gpu-bundle | $compress | wc -c)
# real <folder> <name>
real() {
    case $2 in
    *-bls12381) made="$target/tmp/circuits/bls12381/${2%-bls12381}.r1cs" ;;
    *) made="$target/tmp/circuits/bn128/$2.r1cs" ;;
    esac
    # Published circuits lie beside their keys.
    for r1cs in "$(dirname "$(readlink -f "$1/circuit.zkey")")/circuit.r1cs" "$made"; do
        [ -e "$r1cs" ] || continue
        mkdir -p "$bundle/real"
        xz -T1 -6 -c "$r1cs" >"$bundle/real/$2.r1cs.xz"
        xz -T1 -6 -c "$1/ours.wtns" >"$bundle/real/$2.wtns.xz"
        taken=$((taken + $(cat "$bundle/real/$2".*.xz | wc -c)))
        if [ $taken -gt $((most_mib << 20)) ]; then
            echo "gpu-bundle: no room for the constraints of $2" >&2
            rm "$bundle/real/$2".*.xz
        fi
        return
    done
    echo "gpu-bundle: no constraints of $2" >&2
}
for folder in $(ls -dSL "$target"/tmp/e2e/*/circuit.zkey 2>/dev/null | tac | xargs -r -n 1 dirname); do
    name=$(basename "$folder")
    more=$(cat "$folder/circuit.zkey" "$folder/ours.wtns" "$folder/ours.vkey.json" | gzip | wc -c)
    if [ $((taken + more)) -gt $((most_mib << 20)) ]; then
        echo "gpu-bundle: no room for $name ($((more >> 20)) MiB)" >&2
        [ "${TANDEM_BUNDLE_REAL:-0}" = 0 ] || real "$folder" "$name"
        continue
    fi
    taken=$((taken + more))
    cp -L "$folder/circuit.zkey" "$bundle/fixtures/$name.zkey"
    cp "$folder/ours.wtns" "$bundle/fixtures/$name.wtns"
    cp "$folder/ours.vkey.json" "$bundle/fixtures/$name.vkey.json"
done

# One after the other: a pipe would hide what fails first.
tar -C .build -cf "$bundle.tar" gpu-bundle
$compress -f "$bundle.tar"
size=$(($(stat -c %s "$bundle.tar.xz") >> 20))
echo "gpu-bundle: $bundle.tar.xz, $size MiB, $(ls "$bundle/tests" | wc -l) test programs, for $TANDEM_CUDA_ARCHS"
[ "$size" -le "$most_mib" ] || { echo "gpu-bundle: more than $most_mib MiB" >&2; exit 1; }
