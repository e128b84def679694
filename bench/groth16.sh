#!/bin/sh
# Whole proofs on one GPU and on all: `sh bench/groth16.sh [FOLDER]` with the program in FOLDER (the GPU bundle). Rows go to
# $OUT/groth16.jsonl, the stages of each to $OUT/groth16.txt, traces to $OUT; the medians are printed last. 70 s on two H200s, most of it
# for making keys.
set -u
here=${1:-.build/gpu-bundle}
out=${OUT:-out}
mkdir -p "$out"
rows=$out/groth16.jsonl
: >"$rows"
: >"$out/groth16.txt"
# bench <device> <options>
bench() {
    device=$1
    shift
    timeout 60 "$here/tandem" -q --device "$device" bench groth16 "$@" --json "$rows" >>"$out/groth16.txt" 2>&1 ||
        { echo "bench groth16 $* on $device failed:"; tail -3 "$out/groth16.txt"; }
}
for device in cuda cuda:0; do
    bench $device --log-n 20 --runs 20 --trace "$out/groth16-$(echo $device | tr -d :)-20.json"
    bench $device --log-n 22 --runs 10 --trace "$out/groth16-$(echo $device | tr -d :)-22.json"
    bench $device --log-n 16 --runs 20
    bench $device --log-n 18 --runs 20
    bench $device --log-n 20 --runs 10 --curve bls12-381
done
for schedule in split each; do bench cuda --log-n 20 --runs 10 --schedule $schedule; done
python3 - "$rows" <<'EOF'
import json, sys
for line in open(sys.argv[1]):
    row = json.loads(line)
    lanes = ", ".join(f"{l['computes_ms']:.2f} + {l['copies_ms']:.2f} + {l['idle_ms']:.2f}" for l in row["lanes"])
    print(f"{row['curve']:9} 2^{row['log_n']} {row['schedule']:6} {row['device'].count('cuda:')} GPUs: "
          f"{row['ms_median']:.2f} ms, {row['proofs_per_s']:.1f} a second; computing, copying, idle: {lanes}")
EOF
