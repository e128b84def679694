#!/usr/bin/env bash
# Makes the files of this folder from membership.circom with other people's tools: circom for the circuit, snarkjs for the
# ceremony (two phases, one contribution each), the witness and the verification key. Takes about ten minutes, most of it in
# `powersoftau prepare phase2`. Nothing here uses Tandem. The contributions' randomness is thrown away, so the result differs each time.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=tests/e2e/node_modules/.bin
[ -x "$tools/circom2" ] || npm ci --prefix tests/e2e --ignore-scripts --no-audit --no-fund
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
entropy() { head -c 64 /dev/urandom | od -An -tx1 | tr -d ' \n'; }

"$tools/circom2" demo/membership.circom --r1cs --wasm --O2 -l tests/e2e/node_modules -o "$work"
"$tools/snarkjs" powersoftau new bn128 13 "$work/0.ptau"
"$tools/snarkjs" powersoftau contribute "$work/0.ptau" "$work/1.ptau" --name=demo -e="$(entropy)"
"$tools/snarkjs" powersoftau prepare phase2 "$work/1.ptau" "$work/final.ptau"
"$tools/snarkjs" groth16 setup "$work/membership.r1cs" "$work/final.ptau" "$work/0.zkey"
"$tools/snarkjs" zkey contribute "$work/0.zkey" "$work/membership.zkey" --name=demo -e="$(entropy)"
"$tools/snarkjs" zkey verify "$work/membership.r1cs" "$work/final.ptau" "$work/membership.zkey"
"$tools/snarkjs" zkey export verificationkey "$work/membership.zkey" "$work/membership.vkey.json"
"$tools/snarkjs" wtns calculate "$work/membership_js/membership.wasm" demo/membership.input.json "$work/membership.wtns"
"$tools/snarkjs" wtns check "$work/membership.r1cs" "$work/membership.wtns"
cp "$work"/membership.{zkey,vkey.json,wtns} demo/
ls -l demo
