#!/bin/sh
# Builds the program and proves a real circuit: membership in a Merkle tree of depth 20 (demo/membership.circom).
# With an NVIDIA driver it is built for the GPUs found, with nvcc from NVIDIA's wheels; without one for the CPU alone, which
# takes a few minutes less.
set -eu
cd "$(dirname "$0")/.."

if [ -e /proc/driver/nvidia/version ] || nvidia-smi -L >/dev/null 2>&1; then
    sh scripts/install-nvcc.sh || echo "demo: no nvcc, so the CPU it is" >&2
    found=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d '. ' | sort -u | paste -sd, -)
    [ -n "$found" ] && export TANDEM_CUDA_ARCHS="${TANDEM_CUDA_ARCHS:-$found}"
else
    echo "demo: no NVIDIA driver here: building for the CPU alone" >&2
    export TANDEM_NVCC="${TANDEM_NVCC:-none}"
fi
cargo build --release --locked -p tandem-prover
tandem=${CARGO_TARGET_DIR:-target}/release/tandem

out=.build/demo
mkdir -p "$out"
step() { echo; echo "\$ tandem $*"; "$tandem" "$@"; }
echo
echo "The circuit: I know a secret whose hash is a leaf of the Merkle tree (Poseidon, depth 20) with this root."
step inspect demo/membership.zkey
step prove demo/membership.zkey demo/membership.wtns "$out/proof.json" "$out/public.json"
step verify demo/membership.vkey.json "$out/public.json" "$out/proof.json"
echo
echo "The proof is in $out/proof.json, the root of the tree in $out/public.json. snarkjs accepts them, too:"
echo "  npx snarkjs@0.7.6 groth16 verify demo/membership.vkey.json $out/public.json $out/proof.json"
echo "What to try next, with $tandem:"
echo "  tandem doctor                            what this machine offers, and why a GPU is not used"
echo "  tandem bench groth16 --log-n 12..16      proofs of larger circuits, with the time of each stage"
echo "  tandem prove --help                      your own circuit: circuit.zkey witness.wtns proof.json public.json"
