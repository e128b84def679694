#!/bin/sh
# Tandem and its peers on one GPU, in one run: `sh bench/gpu.sh [FOLDER [LOG_MAX]]` with the programs in FOLDER (the
# GPU bundle) and those of bench/peers in FOLDER/peers. Rows go to $OUT/rows.jsonl; a table with ratios is printed last.
set -u
here=${1:-.build/gpu-bundle}
top=${2:-24}
out=${OUT:-out}
mkdir -p "$out"
rows=$out/rows.jsonl
: >"$rows"
for curve in bn254 bls12_381; do
    if [ -x "$here/peers/sppark-$curve" ]; then
        timeout 150 "$here/peers/sppark-$curve" 18 "$top" >"$out/sppark-$curve.jsonl" 2>"$out/sppark-$curve.log" ||
            { echo "sppark-$curve failed:"; tail -3 "$out/sppark-$curve.log"; }
        cat "$out/sppark-$curve.jsonl" >>"$rows"
    fi
    for what in ntt msm; do
        "$here/tandem" -q --device cuda:0 bench $what --curve "$(echo $curve | tr _ -)" --log-n "18..$top" --runs 10 --json "$rows" \
            >"$out/bench-$what-$curve.txt" 2>&1 || { echo "bench $what $curve failed:"; tail -3 "$out/bench-$what-$curve.txt"; }
    done
done
python3 "$here/compare.py" "$rows"
