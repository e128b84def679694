#!/usr/bin/env bash
# What only several GPUs can show, `sh several.sh [PART...]` beside the bundle's programs. Parts, all of them unless some are named:
#   suite       every test program on all GPUs, and the sanitizers on what moves data between GPUs
#   proofs      Groth16 by every schedule beside one GPU
#   transforms  one transform over all GPUs beside one GPU
#   fabric      the fabric beside NCCL and NVSHMEM
# Benches run on 2, 4, 8, ... GPUs, as many as there are. Rows and logs go to $OUT (default: out); a table comes last. A part that has not ended
# SECONDS_LEFT (default: 540) after the start is stopped and counted as failed.
[ -n "${BASH_VERSION:-}" ] && ! shopt -oq posix || exec bash "$0" "$@"
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath -m "${OUT:-out}")
ends=$((SECONDS + ${SECONDS_LEFT:-540}))
[ $# -gt 0 ] || set -- suite proofs transforms fabric
for part in "$@"; do
    case $part in
    suite | proofs | transforms | fabric) ;;
    *) echo "several.sh: there is no part $part; there are suite, proofs, transforms and fabric" >&2; exit 2 ;;
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
    while [ "$count" -lt "$gpus" ]; do
        echo "$count"
        count=$((2 * count))
    done
    echo "$gpus"
}

for part in "$@"; do
    case $part in
    suite)
        part suite "$gpus" bash "$here/run.sh" gpu
        SANITIZE_PARTS='conformance-(ntt_spread|reduce|memory)' part sanitizer "$gpus" bash "$here/run.sh" sanitizer
        ;;
    proofs) for count in $(counts); do part proofs "$count" sh "$here/groth16.sh" "$here"; done ;;
    transforms) for count in $(counts); do part transforms "$count" sh "$here/ntt.sh" "$here"; done ;;
    fabric) for count in $(counts); do part fabric "$count" sh "$here/fabric.sh" "$here"; done ;;
    esac
done

python3 "$here/several.py" "$out" || failures=$((failures + 1))
cat "$table"
echo "$failures failed"
[ "$failures" -eq 0 ]
