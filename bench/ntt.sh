#!/bin/sh
# Transforms on one GPU and spread over all: `sh bench/ntt.sh [FOLDER]` with the program in FOLDER (the GPU bundle). Rows go
# to $OUT/ntt.jsonl; the medians are printed last. 2^32 elements of BLS12-381 need two GPUs of 141 GB.
set -u
failures=0
here=${1:-.build/gpu-bundle}
out=${OUT:-out}
mkdir -p "$out"
rows=$out/ntt.jsonl
: >"$rows"
: >"$out/ntt.txt"
# bench <device> <options>
bench() {
    device=$1
    shift
    timeout 60 "$here/tandem" -q --device "$device" bench ntt "$@" --json "$rows" >>"$out/ntt.txt" 2>&1 ||
        { echo "bench ntt $* on $device failed:"; tail -3 "$out/ntt.txt"; failures=$((failures + 1)); }
}
for device in cuda cuda:0; do
    bench $device --curve bn254 --log-n 18..20 --runs 20
    bench $device --curve bn254 --log-n 24 --runs 10
    bench $device --curve bn254 --log-n 26 --runs 10
    bench $device --curve bn254 --log-n 28 --runs 10
    bench $device --curve bls12-381 --log-n 28 --runs 10
done
bench cuda --curve bls12-381 --log-n 32 --runs 10
for device in cuda cuda:0; do
    for field in goldilocks baby-bear; do
        bench $device --field $field --log-n 20..24 --runs 20
        bench $device --field $field --log-n 27 --runs 10
    done
done
# sppark beside it (BN254 is in gpu.sh), where it was built (bench/peers/sppark/build.sh) and lies in the bundle. PEER_SIZES="24 27" takes 20 s more,
# for its checks on the host.
for peer in goldilocks baby_bear; do
    [ -x "$here/peers/sppark-$peer" ] || continue
    for n in ${PEER_SIZES:-24}; do
        timeout 60 "$here/peers/sppark-$peer" $n $n >>"$out/ntt-peers.jsonl" 2>>"$out/ntt.txt" ||
            { echo "sppark-$peer 2^$n failed:"; tail -3 "$out/ntt.txt"; failures=$((failures + 1)); }
    done
done
[ ! -e "$out/ntt-peers.jsonl" ] || cat "$out/ntt-peers.jsonl"
python3 - "$rows" <<'EOF' || failures=$((failures + 1))
import json, sys
for line in open(sys.argv[1]):
    row = json.loads(line)
    print(f"{row['field']:10} 2^{row['log_n']} on {row['lanes']} of {row['device'].count('cuda:')} GPUs: {row['ms_median']:.3f} ms, least {row['ms_min']:.3f}")
EOF
# Rows of none are no measurement.
[ -s "$rows" ] || { echo "no rows"; failures=$((failures + 1)); }
echo "$failures failed"
[ "$failures" -eq 0 ]
