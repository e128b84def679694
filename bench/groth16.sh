#!/bin/sh
# Whole proofs on one GPU and on all with each schedule, one key for all of a size, and of the real keys in FOLDER/fixtures:
# `sh bench/groth16.sh [FOLDER]` with the program in FOLDER (the GPU bundle). Rows go to $OUT/groth16.jsonl, the stages of each to
# $OUT/groth16.txt, traces to $OUT; the medians are printed last. 80 s on two H200s, most of it for making keys; LARGE=1 adds 2^24, 80 s and 10 GB of
# host memory. Circuits in $REAL, FOLDER/real unless set, as NAME.r1cs and NAME.wtns, each of them packed by xz or not, are real ones whose keys are
# too large to carry: a key of the same sizes is made of each here, in one or two seconds. SYNTHETIC=0 leaves the circuits made up for a size out.
set -u
failures=0
here=${1:-.build/gpu-bundle}
out=${OUT:-out}
mkdir -p "$out"
rows=$out/groth16.jsonl
: >"$rows"
: >"$out/groth16.txt"
# bench <seconds> <options>
bench() {
    seconds=$1
    shift
    timeout "$seconds" "$here/tandem" -q --device cuda bench groth16 --compare "$@" --json "$rows" >>"$out/groth16.txt" 2>&1 ||
        { echo "bench groth16 $* failed:"; tail -3 "$out/groth16.txt"; failures=$((failures + 1)); }
}
if [ "${SYNTHETIC:-1}" != 0 ]; then
    bench 60 --log-n 22 --runs 10 --trace "$out/groth16-22.json"
    bench 30 --log-n 20 --runs 20 --trace "$out/groth16-20.json"
    bench 30 --log-n 16..18 --runs 20
    bench 30 --log-n 20 --runs 10 --curve bls12-381
fi
# Three times: small proofs differ by a third from one process to the next.
for key in "$here"/fixtures/*.zkey; do
    for _ in 1 2 3; do
        [ -e "$key" ] && bench 20 "$key" "${key%.zkey}.wtns" --runs 20
    done
done
real=${REAL:-$here/real}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
for circuit in "$real"/*.r1cs "$real"/*.r1cs.xz; do
    [ -e "$circuit" ] || continue
    name=$(basename "${circuit%.xz}" .r1cs)
    for file in "$name.r1cs" "$name.wtns"; do
        if [ -e "$real/$file.xz" ]; then xz -dc "$real/$file.xz" >"$made/$file"; else cp "$real/$file" "$made/$file"; fi
    done
    if "$here/tandem" -q setup "$made/$name.r1cs" "$made/$name.zkey" --seed "$name" 2>>"$out/groth16.txt"; then
        for _ in 1 2 3; do bench 60 "$made/$name.zkey" "$made/$name.wtns" --runs 20; done
    else
        echo "setup $name failed:"
        tail -3 "$out/groth16.txt"
        failures=$((failures + 1))
    fi
    rm -f "$made/$name".*
done
[ "${LARGE:-0}" = 0 ] || bench 150 --log-n 24 --runs 10 --trace "$out/groth16-24.json"
python3 - "$rows" <<'PYTHON' || failures=$((failures + 1))
import json, os, sys
for line in open(sys.argv[1]):
    row = json.loads(line)
    key = " ".join(os.path.basename(word) for word in row["command"].split() if word.endswith(".zkey"))
    lanes = ", ".join(f"{l['computes_ms']:.2f} + {l['copies_ms']:.2f} + {l['idle_ms']:.2f}" for l in row["lanes"])
    bound = f"{row['ms_median'] / row['bound_ms']:.2f} times its bound" if row["bound_ms"] else "no bound"
    print(f"{row['curve']:9} 2^{row['log_n']} {row['schedule']:6} {row['device'].count('cuda:')} GPUs: {row['ms_median']:.2f} ms, "
          f"{bound}, {row['proofs_per_s']:.1f} a second; computing, copying, idle: {lanes} {key}".rstrip())
PYTHON
# Rows of none are no measurement.
[ -s "$rows" ] || { echo "no rows"; failures=$((failures + 1)); }
echo "$failures failed"
[ "$failures" -eq 0 ]
