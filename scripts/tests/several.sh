#!/usr/bin/env bash
# several.sh with a pretend bundle and pretend GPUs: what fails, what has no time left and what is slower on several GPUs shows.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle=$work/bundle
mkdir -p "$bundle" "$work/bin"
cp scripts/several.sh bench/several.py "$bundle/"
wrong() { echo "scripts/tests/several.sh: $*" >&2; cat "$work/said" >&2; exit 1; }
printf '#!/bin/sh\nseq "$(cat "$WORK/gpus")"\n' >"$work/bin/nvidia-smi"
chmod +x "$work/bin/nvidia-smi"
printf 'echo "$* $CUDA_VISIBLE_DEVICES ${SANITIZE_PARTS:-all}" >>"$WORK/ran"\n' >"$bundle/run.sh"
printf 'echo "fabric $CUDA_VISIBLE_DEVICES" >>"$WORK/ran"; sleep "$(cat "$WORK/sleeps")"\n' >"$bundle/fabric.sh"
printf 'cp "$WORK/rows" "$OUT/groth16.jsonl"; exit "$(cat "$WORK/status")"\n' >"$bundle/groth16.sh"
printf 'echo "transforms $CUDA_VISIBLE_DEVICES" >>"$WORK/ran"\n' >"$bundle/ntt.sh"
# The program: what it is asked for, and a row of a sum for the file that --json names.
cat >"$bundle/tandem" <<'STUB'
#!/bin/sh
echo "$3 $5 $6 $7 $CUDA_VISIBLE_DEVICES" >>"$WORK/ran"
for file; do :; done
cat "$WORK/primitive-$3" >>"$file"
STUB
chmod +x "$bundle/tandem"
# row <devices> <schedule> <ms> <proofs a second>
row() { echo "{\"what\":\"groth16\",\"curve\":\"bn254\",\"log_n\":20,\"device\":\"$1\",\"schedule\":\"$2\",\"ms_median\":$3,\"proofs_per_s\":$4,\"plan\":\"H: lane 0\\nforetold: 1.75 times as fast as one lane\",\"command\":\"bench\"}"; }
# run <expected exit status> <variables>.. -- <parts>..
run() {
    local expected=$1 status=0 variables=()
    shift
    while [ "$1" != -- ]; do variables+=("$1"); shift; done
    shift
    rm -rf "$work/out" "$work/ran"
    env PATH="$work/bin:$PATH" WORK="$work" OUT="$work/out" "${variables[@]}" sh "$bundle/several.sh" "$@" >"$work/said" 2>&1 || status=$?
    [ "$status" -eq "$expected" ] || wrong "exit status $status, expected $expected"
}
echo 3 >"$work/gpus"
echo 0 >"$work/sleeps"
echo 0 >"$work/status"
two="X (cuda:0), X (cuda:1)"
{ row "X (cuda:0)" auto 10 100; row "$two" auto 10.1 99; row "$two" each 10 180; } >"$work/rows"
: >"$work/primitive-cuda"
: >"$work/primitive-cuda:0"
run 0 -- suite sanitizer proofs transforms fabric
grep -q 'bn254 2^20 .*2 GPUs each .* 1.80 (1.75)$' "$work/said" || wrong "proofs a second, on each GPU one"
printf '%s\n' 'gpu 0,1,2 all' 'sanitizer 0,1,2 conformance-(ntt_spread|reduce|memory)' 'transforms 0,1' 'transforms 0,1,2' 'fabric 0,1' 'fabric 0,1,2' |
    diff - "$work/ran" || wrong "other parts, or on other GPUs"
# Programs of its own: each on one GPU and on several, and jobs of two.
echo '{"what":"msm_g1","curve":"bn128","log_n":20,"device":"X (cuda:0), X (cuda:1)","lanes":2,"ms_median":5}' >"$work/primitive-cuda"
echo '{"what":"msm_g1","curve":"bn128","log_n":20,"device":"X (cuda:0)","lanes":1,"ms_median":9}' >"$work/primitive-cuda:0"
run 0 COUNTS=2 -- primitives
grep -q 'msm_g1 bn128 2^20 .*2 GPUs spread .* 1.80$' "$work/said" || wrong "a sum over two"
grep -qx 'cuda msm --log-n 20..24 0,1' "$work/ran" && grep -qx 'cuda:0 sort --log-n 28 0,1' "$work/ran" || wrong "other primitives"
echo '{"what":"broadcast","among":[0,1],"bytes":1048576,"algbw":90,"plan_gbs":100}' >"$work/primitive-cuda"
run 0 NCCL=nccl.so -- jobs plonk large
grep -q 'broadcast .*0.90$' "$work/said" || wrong "a job of two beside its plan"
grep -qx 'cuda allreduce --among 0,1 0,1,2' "$work/ran" && grep -qx 'cuda plonk --compare --log-n 0,1' "$work/ran" &&
    grep -qx 'cuda groth16 --compare --log-n 0,1,2' "$work/ran" || wrong "other parts"
# Slower by more than 2 %.
{ row "X (cuda:0)" auto 10 100; row "$two" auto 10.3 99; } >"$work/rows"
run 1 -- proofs
grep -q SLOWER "$work/said" || wrong "a proof that is slower on two"
row "X (cuda:0)" auto 10 100 >"$work/rows"
echo 1 >"$work/status"
run 1 -- proofs
grep -q '^proofs-2 .*FAILED' "$work/said" || wrong "a part that fails"
echo 5 >"$work/sleeps"
run 1 SECONDS_LEFT=1 -- fabric
grep -q '^fabric-2 .*stopped' "$work/said" && grep -q '^fabric-3 .*not begun' "$work/said" || wrong "what has no time left"
run 2 -- nonsense
echo 1 >"$work/gpus"
run 1 -- fabric
