#!/bin/sh
# Tandem and its peers on one GPU, in one run: `sh bench/gpu.sh [FOLDER [LOG_MAX]]` with the programs in FOLDER (the
# GPU bundle) and those of bench/peers in FOLDER/peers. Rows go to $OUT/rows.jsonl; a table with ratios is printed last.
set -u
failures=0
here=${1:-.build/gpu-bundle}
top=${2:-24}
out=${OUT:-out}
mkdir -p "$out"
rows=$out/rows.jsonl
: >"$rows"
for curve in bn254 bls12_381; do
    if [ -x "$here/peers/sppark-$curve" ]; then
        timeout 150 "$here/peers/sppark-$curve" 18 "$top" >"$out/sppark-$curve.jsonl" 2>"$out/sppark-$curve.log" ||
            { echo "sppark-$curve failed:"; tail -3 "$out/sppark-$curve.log"; failures=$((failures + 1)); }
        cat "$out/sppark-$curve.jsonl" >>"$rows"
    fi
    for what in ntt msm; do
        "$here/tandem" -q --device cuda:0 bench $what --curve "$(echo $curve | tr _ -)" --log-n "18..$top" --runs 10 --json "$rows" \
            >"$out/bench-$what-$curve.txt" 2>&1 || { echo "bench $what $curve failed:"; tail -3 "$out/bench-$what-$curve.txt"; failures=$((failures + 1)); }
    done
done
timeout 60 "$here/tandem" -q --device cuda:0 bench msm --scalars equal,one,sparse,two,window --log-n 20 --runs 10 --json "$rows" \
    >"$out/bench-msm-hard.txt" 2>&1 || { echo "bench msm of hard scalars failed:"; tail -3 "$out/bench-msm-hard.txt"; failures=$((failures + 1)); }
for field in goldilocks baby_bear; do
    last=$((top + 3 < 27 ? top + 3 : 27))
    if [ -x "$here/peers/sppark-$field" ]; then
        timeout 60 "$here/peers/sppark-$field" 16 "$last" >"$out/sppark-$field.jsonl" 2>"$out/sppark-$field.log" ||
            { echo "sppark-$field failed:"; tail -3 "$out/sppark-$field.log"; failures=$((failures + 1)); }
        cat "$out/sppark-$field.jsonl" >>"$rows"
    fi
    for order in nr nn; do
        timeout 60 "$here/tandem" -q --device cuda:0 bench ntt --field "$(echo $field | tr _ -)" --order $order --log-n "16..$last" \
            --runs 10 --json "$rows" >"$out/bench-ntt-$field-$order.txt" 2>&1 ||
            { echo "bench ntt $field failed:"; tail -3 "$out/bench-ntt-$field-$order.txt"; failures=$((failures + 1)); }
    done
done
for log_n in 24 30; do
    if [ -x "$here/peers/cub-reduce" ]; then
        timeout 60 "$here/peers/cub-reduce" $log_n >>"$rows" 2>"$out/cub-reduce.log" ||
            { echo "cub-reduce failed:"; tail -3 "$out/cub-reduce.log"; failures=$((failures + 1)); }
    fi
    for element in u64 f32 f64; do
        timeout 90 "$here/tandem" -q --device cuda:0 bench reduce --element $element --log-n $log_n --data lanes --runs 10 --json "$rows" \
            >"$out/bench-reduce-$element-$log_n.txt" 2>&1 ||
            { echo "bench reduce $element 2^$log_n failed:"; tail -3 "$out/bench-reduce-$element-$log_n.txt"; failures=$((failures + 1)); }
    done
done
timeout 60 "$here/tandem" -q --device cuda:0 bench poseidon --arity 11 --log-n 22 --json "$rows" >"$out/bench-poseidon.txt" 2>&1 &&
    timeout 60 "$here/tandem" -q --device cuda:0 bench poseidon --tree --log-n 24 --json "$rows" >>"$out/bench-poseidon.txt" 2>&1 ||
    { echo "bench poseidon failed:"; tail -3 "$out/bench-poseidon.txt"; failures=$((failures + 1)); }
timeout 60 "$here/tandem" -q --device cuda:0 bench vector --log-n 20..22 --runs 10 --json "$rows" >"$out/bench-vector.txt" 2>&1 ||
    { echo "bench vector failed:"; tail -3 "$out/bench-vector.txt"; failures=$((failures + 1)); }
for field in bn254 bls12-381 goldilocks; do
    timeout 90 "$here/tandem" -q --device cuda:0 bench sumcheck --field $field --degree 1,2,3,4 --log-n "20..$top" --runs 10 --json "$rows" \
        >"$out/bench-sumcheck-$field.txt" 2>&1 ||
        { echo "bench sumcheck $field failed:"; tail -3 "$out/bench-sumcheck-$field.txt"; failures=$((failures + 1)); }
done
for precision in f32 f64; do
    timeout 120 "$here/tandem" -q --device cuda:0 bench fft --precision $precision --log-n "16..$((top + 2))" --runs 10 --json "$rows" \
        >"$out/bench-fft-$precision.txt" 2>&1 || { echo "bench fft $precision failed:"; tail -3 "$out/bench-fft-$precision.txt"; failures=$((failures + 1)); }
    timeout 120 "$here/tandem" -q --device cuda:0 bench fft --precision $precision --sides 4096x4096,256x256x256 --runs 10 --json "$rows" \
        >"$out/bench-fft-grid-$precision.txt" 2>&1 ||
        { echo "bench fft --sides, $precision, failed:"; tail -3 "$out/bench-fft-grid-$precision.txt"; failures=$((failures + 1)); }
done
timeout 120 python3 "$here/peers/cufft.py" 16 "$((top + 2))" 4096x4096 256x256x256 >>"$rows" 2>"$out/cufft.log"
case $? in
0) ;;
3) cat "$out/cufft.log" ;;
*) echo "cuFFT failed:"; tail -3 "$out/cufft.log"; failures=$((failures + 1)) ;;
esac
python3 "$here/compare.py" "$rows" || failures=$((failures + 1))
echo "$failures failed"
[ "$failures" -eq 0 ]
