#!/usr/bin/env bash
# What only several GPUs can show, `sh several.sh [PART...]` beside the bundle's programs. Parts, all of them unless some are named:
#   suite       every test program on all GPUs
#   sanitizer   the sanitizers on what moves data between GPUs
#   proofs      Groth16 by every schedule beside one GPU
#   large       the same at 2^24 rows
#   plonk       PLONK by every schedule beside one GPU
#   transforms  one transform over all GPUs beside one GPU
#   primitives  sums, sorts and Poseidon over all GPUs beside one GPU
#   fabric      the fabric beside NCCL and NVSHMEM
#   service     a service with a worker a GPU, and with one over all
#   jobs        collectives of two of the GPUs, which the others may help
#   processes   the fabric's teams of several processes, each with GPUs of its own
# Benches run on 2, 4, 8, ... GPUs, as many as there are, or on COUNTS="4" of them. Rows and logs go to $OUT (default: out); a table comes last. A part that has not ended
# SECONDS_LEFT (default: 540) after the start is stopped and counted as failed.
[ -n "${BASH_VERSION:-}" ] && ! shopt -oq posix || exec bash "$0" "$@"
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath -m "${OUT:-out}")
ends=$((SECONDS + ${SECONDS_LEFT:-540}))
all="suite sanitizer proofs large plonk transforms primitives fabric service jobs processes"
# shellcheck disable=SC2086 # words on purpose
[ $# -gt 0 ] || set -- $all
for part in "$@"; do
    case " $all " in
    *" $part "*) ;;
    *) echo "several.sh: there is no part $part; there are $all" >&2; exit 2 ;;
    esac
done
gpus=$(nvidia-smi -L | wc -l)
[ "$gpus" -ge 2 ] || { echo "several.sh: nvidia-smi lists $gpus GPUs; this is for several" >&2; exit 1; }
mkdir -p "$out"
table=$out/several.txt
: >"$table"
failures=0

# part <name> <GPUs> <command>...: runs it on so many GPUs, in a folder of $OUT of its own, as long as there is time.
part() {
    local name=$1-$2 count=$2 start=$SECONDS left=$((ends - SECONDS)) status=1 word
    shift 2
    if [ "$left" -gt 0 ]; then
        mkdir -p "$out/$name"
        CUDA_VISIBLE_DEVICES=$(seq -s, 0 $((count - 1))) TANDEM_REQUIRE_GPU=$count OUT="$out/$name" \
            timeout "$left" "$@" >"$out/$name/said.txt" 2>&1
        status=$?
    fi
    case $left:$status in
    *:0) word=ok ;;
    *:124) word="stopped: no time was left" ;;
    0:* | -*) word="not begun: no time was left" ;;
    *) word=FAILED ;;
    esac
    [ "$status" -eq 0 ] || failures=$((failures + 1))
    printf '%-24s %4ss  %s\n' "$name" $((SECONDS - start)) "$word" >>"$table"
}

# Powers of two up to the number of GPUs, and that number.
counts() {
    local count=2
    if [ -n "${COUNTS:-}" ]; then
        printf '%s\n' $COUNTS
        return
    fi
    while [ "$count" -lt "$gpus" ]; do
        echo "$count"
        count=$((2 * count))
    done
    echo "$gpus"
}

# What is measured on so many GPUs, and on one of them.
primitives() {
    local name=primitives device
    for device in cuda cuda:0; do
        for what in "msm --log-n 20..24 --runs 10" "msm --log-n 22 --runs 10 --g2" "msm --curve bls12-381 --log-n 24 --runs 10" \
            "sort --log-n 28 --runs 5" "sort --log-n 28 --runs 5 --pairs" "reduce --log-n 29 --data lanes,pinned --runs 5" \
            "poseidon --tree --log-n 24" "poseidon --arity 11 --log-n 22" "poseidon --arity 11 --log-n 22 --pinned"; do
            # shellcheck disable=SC2086 # words on purpose
            "$here/tandem" -q --device $device bench $what --json "$OUT/$name.jsonl" ||
                { echo "bench $what on $device failed"; return 1; }
        done
    done
}

# Every schedule of PLONK beside one GPU.
plonk() {
    "$here/tandem" -q --device cuda bench plonk --compare --log-n 20 --runs 10 --json "$OUT/plonk.jsonl" &&
        "$here/tandem" -q --device cuda bench plonk --compare --log-n 22 --runs 5 --json "$OUT/plonk.jsonl"
}

# What two GPUs do together while the others may help; the plan's rate is in each row.
jobs_of_two() {
    local what nccl
    export NCCL_NVLS_ENABLE=0
    nccl=${NCCL:-$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/nvidia/nccl/lib/libnccl.so.2}
    for what in broadcast allreduce allgather reducescatter alltoall; do
        "$here/tandem" -q --device cuda bench $what --among 0,1 -b 1M -e 1G -f 32 --nccl "$nccl" --json "$OUT/jobs.jsonl" || return 1
    done
}
export -f primitives plonk jobs_of_two
export here

for part in "$@"; do
    case $part in
    suite) part suite "$gpus" bash "$here/run.sh" gpu ;;
    sanitizer) SANITIZE_PARTS='conformance-(ntt_spread|reduce|memory)' part sanitizer "$gpus" bash "$here/run.sh" sanitizer ;;
    proofs) for count in $(counts); do part proofs "$count" sh "$here/groth16.sh" "$here"; done ;;
    large)
        for count in $(counts); do
            part large "$count" "$here/tandem" -q --device cuda bench groth16 --compare --log-n 24 --runs 5 --json "$out/large-$count/large.jsonl"
        done
        ;;
    plonk) for count in $(counts); do part plonk "$count" bash -c plonk; done ;;
    transforms) for count in $(counts); do part transforms "$count" sh "$here/ntt.sh" "$here"; done ;;
    primitives) for count in $(counts); do part primitives "$count" bash -c primitives; done ;;
    fabric) for count in $(counts); do part fabric "$count" sh "$here/fabric.sh" "$here"; done ;;
    service) part service "$gpus" sh "$here/serve.sh" "$here" ;;
    processes) part processes "$gpus" bash "$here/run.sh" processes ;;
    jobs) [ "$gpus" -le 2 ] || part jobs "$gpus" bash -c jobs_of_two ;;
    esac
done

python3 "$here/several.py" "$out" || failures=$((failures + 1))
cat "$table"
echo "$failures failed"
[ "$failures" -eq 0 ]
