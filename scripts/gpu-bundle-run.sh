#!/bin/sh
# Runs the bundle beside it: every test program, the conformance suite at larger sizes, every fixture's proof, and with
# SANITIZE=1 compute-sanitizer on the small ones; with SANITIZE=only nothing else. A table comes last; what the programs say
# goes to $OUT (default: out). The exit status is 0 if all passed.
#   SANITIZE_TOOLS    memcheck racecheck
#   SANITIZE_SECONDS  300, for each part
#   SANITIZE_BESIDE   parts at once: half as many as there are cores
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-out}
mkdir -p "$out"
# As many GPUs as the driver's own tool lists: a test must not pass over one that the program refuses.
export TANDEM_REQUIRE_GPU="${TANDEM_REQUIRE_GPU:-$(nvidia-smi -L | wc -l)}"
[ "$TANDEM_REQUIRE_GPU" -ge 1 ] || { echo "run.sh: nvidia-smi lists no GPU" >&2; exit 1; }
table=$out/table.txt
failures=0

# row <what> <status> <seconds> <words>
row() {
    if [ "$2" -eq 0 ]; then word=ok; else word=FAILED failures=$((failures + 1)); fi
    printf '%-36s %-7s %4ss  %s\n' "$1" "$word" "$3" "$4" >>"$table"
}

# tested <what> <log's name> <status> <seconds>: the row of a test program.
tested() {
    row "$1" "$3" "$4" "$(sed -n 's/^test result: [a-zA-Z]*\. //p' "$out/$2.log" | cut -d';' -f1,2)"
    [ "$3" -eq 0 ] || grep -A4 'panicked at' "$out/$2.log" | head -40
}

tests() {
    for program in "$here"/tests/*; do
        name=$(basename "$program")
        start=$(date +%s)
        "$program" >"$out/$name.log" 2>&1
        tested "test $name" "$name" $? $(($(date +%s) - start))
    done
}

# Transforms of three passes, and beside them sums of half a million points, one curve after the other, since each may fill half of the
# memory that is free. Most of the time is the CPU's, with what the GPU's results are compared with: one to two minutes on 16 cores,
# it is estimated.
larger() {
    start=$(date +%s)
    TANDEM_CONFORMANCE_LOG_N=20 "$here/tests/conformance" cuda::ntt >"$out/conformance-ntt.log" 2>&1 &
    TANDEM_CONFORMANCE_LOG_N=19 "$here/tests/conformance" --test-threads 1 cuda::msm >"$out/conformance-msm.log" 2>&1
    tested "test conformance, sums of 2^19" conformance-msm $? $(($(date +%s) - start))
    wait $!
    tested "test conformance, transforms of 2^20" conformance-ntt $? $(($(date +%s) - start))
}

proofs() {
    for key in "$here"/fixtures/*.zkey; do
        [ -e "$key" ] || continue
        stem=${key%.zkey}
        name=$(basename "$stem")
        start=$(date +%s)
        {
            "$here/tandem" prove "$key" "$stem.wtns" "$out/$name.proof.json" "$out/$name.public.json" --device cuda &&
                "$here/tandem" verify "$stem.vkey.json" "$out/$name.public.json" "$out/$name.proof.json"
        } >"$out/$name.log" 2>&1
        row "prove and verify $name" $? $(($(date +%s) - start)) ""
    done
}

# part <tool> <name> <log2 size> <GPU, or all> <program> <argument>..: runs it under a tool; status and seconds go to a file.
part() {
    tool=$1 log=$out/$1-$2.log
    export TANDEM_CONFORMANCE_LOG_N="$3"
    [ "$4" = all ] || export CUDA_VISIBLE_DEVICES="$4" TANDEM_REQUIRE_GPU=1
    program=$here/$5
    shift 5
    start=$(date +%s)
    # Tests ask for too much memory on purpose: errors of the API are theirs to check.
    timeout "${SANITIZE_SECONDS:-300}" compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 9 \
        "$program" "$@" >"$log" 2>&1
    status=$?
    # A name that no test has.
    grep -q '^test result: ok\. 0 passed' "$log" && status=1
    echo "$status $(($(date +%s) - start))" >"${log%.log}.status"
}

# All parts, the longest first. Only what moves data between GPUs has all of them. The suite's half that compares every operation
# with the CPU is left out. Sizes for memcheck and for racecheck, which takes far longer.
parts() {
    while read -r filter memory race gpus; do
        filters=$((${filters:-0} + 1)) number=$filters
        for tool in $tools; do
            size=$memory
            [ "$tool" = racecheck ] && size=$race
            number=$((number + 1))
            [ "$gpus" = one ] && gpu=$((number % TANDEM_REQUIRE_GPU)) || gpu=all
            name=conformance-$(echo "$filter" | tr -s : -)
            echo "$tool $name $size $gpu tests/conformance --test-threads 1 cuda::$filter"
        done
    done <<END
msm::Bls12_381 8 4 one
msm::Bn254 8 4 one
ntt_spread::Bls12_381 6 4 all
ntt_spread::Bn254 6 4 all
ntt_spread::Goldilocks 6 4 all
ntt_spread::BabyBear 6 4 all
reduce 4 4 all
ntt::Bls12_381 8 6 one
ntt_products::Bls12_381 8 6 one
ntt_products::Bn254 8 6 one
ntt::Bn254 8 6 one
ntt::Goldilocks 8 6 one
ntt::BabyBear 8 6 one
poseidon::Bls12_381 6 4 one
poseidon::Bn254 6 4 one
sort 8 6 all
memory 8 6 all
spmv 8 6 one
vector 8 6 one
END
    for tool in $tools; do
        echo "$tool gpu 8 all tests/gpu --test-threads 1"
        # Its test of a rate is none under a tool.
        echo "$tool backend 8 all tests/backend --test-threads 1 --skip take_their_link"
        for program in "$here"/micro/msm-*; do
            name=$(basename "$program")
            [ -x "$program" ] || continue
            for i in 0 1; do echo "$tool $name-$i 4 $((i % TANDEM_REQUIRE_GPU)) micro/$name small $i 2"; done
        done
    done
}

sanitize() {
    tools=${SANITIZE_TOOLS:-memcheck racecheck}
    rm -f "$out"/*.status
    parts >"$out/parts.txt"
    OUT=$out xargs -P "${SANITIZE_BESIDE:-$((($(nproc) + 1) / 2))}" -L 1 sh "$here/$(basename "$0")" part <"$out/parts.txt"
    while read -r tool name rest; do
        read -r status seconds <"$out/$tool-$name.status" || status=1 seconds=0
        words=$(sed -n 's/.*\(\(ERROR\|RACECHECK\) SUMMARY\)/\1/p; s/^test result: [a-zA-Z]*\. \([^;]*\);.*/\1,/p; / sums wrong$/p' "$out/$tool-$name.log" | tr '\n' ' ')
        [ "$status" -ne 124 ] || words="not done in time"
        row "$tool $name" "$status" "$seconds" "$words"
    done <"$out/parts.txt"
}

if [ "${1:-}" = part ]; then
    shift
    part "$@"
    exit 0
fi
: >"$table"
if [ "${SANITIZE:-0}" != only ]; then
    tests
    larger
    proofs
fi
[ "${SANITIZE:-0}" = 0 ] || sanitize

cat "$table"
echo "$failures failed"
[ "$failures" -eq 0 ]
