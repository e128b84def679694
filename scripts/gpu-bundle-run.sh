#!/usr/bin/env bash
# Runs the bundle beside it, `sh run.sh [TIER...]`. The tier gpu, which is the default, is every test program, the conformance
# suite at larger sizes, every fixture's proof and proofs that are killed; the tier sanitizer is compute-sanitizer on the small ones; the
# tier pes is what is written for several GPUs, on the first GPU alone; the tier processes is the fabric's teams of several processes
# (gpu-processes.sh), under MPS where there is one GPU; the tier nvshmem is its teams of GPUs of several nodes (gpu-nvshmem.sh). A table comes
# last; what the programs say goes to $OUT (default: out). The exit status is 0 if all passed.
#   PES                 2 4: how many PEs, or lanes, the one GPU stands for in the tier pes
#   SANITIZE_TOOLS      memcheck racecheck
#   SANITIZE_SECONDS    300, for each part
#   SANITIZE_BESIDE     parts at once: half as many as there are cores
#   SANITIZE_MEMORY_GB  host memory for parts that run at once: what is available
# Arrays: what `sh run.sh` started goes on in bash.
[ -n "${BASH_VERSION:-}" ] && ! shopt -oq posix || exec bash "$0" "$@"
set -uo pipefail
[ $# -gt 0 ] || set -- gpu
for tier in "$@"; do
    case $tier in
    gpu | pes | processes | nvshmem | sanitizer) ;;
    *) echo "run.sh: there is no tier $tier here; there are gpu, pes, processes, nvshmem and sanitizer" >&2; exit 2 ;;
    esac
done
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-out}
mkdir -p "$out"
# As many GPUs as the driver's own tool lists: a test must not pass over one that the program refuses.
export TANDEM_REQUIRE_GPU="${TANDEM_REQUIRE_GPU:-$(nvidia-smi -L | wc -l)}"
[ "$TANDEM_REQUIRE_GPU" -ge 1 ] || { echo "run.sh: nvidia-smi lists no GPU" >&2; exit 1; }
table=$out/table.txt
rows=0
failures=0
skips=0

# row <what> <status> <seconds> <words>: a status of "skipped" is neither a pass nor a failure.
row() {
    local word=ok
    rows=$((rows + 1))
    case $2 in
    0) ;;
    skipped) word=skipped skips=$((skips + 1)) ;;
    *) word=FAILED failures=$((failures + 1)) ;;
    esac
    printf '%-36s %-7s %4ss  %s\n' "$1" "$word" "$3" "$4" >>"$table"
}

# fault <log> <status> [<tool>]: why what wrote the log did not pass; nothing if it did. A status of 0 is not enough: the program's own
# last line must say that tests passed, and a tool's summary that it found nothing and that the program did not die under it.
fault() {
    local last skipped summaries clean='^========= ERROR SUMMARY: 0 errors$'
    [ "$2" -ne 124 ] || { echo "not done in time"; return; }
    [ "$2" -eq 0 ] || { echo "exit status $2"; return; }
    last=$(grep -av -e '^=========' -e 'skipped: .*::' -e '^[[:space:]]*$' "$1" | tail -n 1)
    skipped=$(grep -ac 'skipped: .*::' "$1")
    if [[ $last =~ ^test\ result:\ ok\.\ ([0-9]+)\ passed\;\ 0\ failed\; ]]; then
        [ "${BASH_REMATCH[1]}" -gt "$skipped" ] || { needs_more "$1" "$skipped" || echo "no test ran"; return; }
    elif ! [[ $last =~ ^[^:]+:\ [1-9][0-9]*\ cases\ of\ .*,\ 0\ sums\ wrong$ ]]; then
        echo "its last line is no result"
        return
    fi
    [ $# -gt 2 ] || return
    if grep -aqE "Target application returned an error|process didn.t terminate successfully" "$1"; then
        echo "the program died under the tool"
        return
    fi
    [ "$3" != racecheck ] || clean='^========= RACECHECK SUMMARY: 0 hazards displayed \(0 errors, 0 warnings\)$'
    summaries=$(grep -aE '^========= [A-Z]+ SUMMARY: ' "$1")
    [ -n "$summaries" ] || { echo "the tool gave no summary"; return; }
    ! grep -aqvE "$clean" <<<"$summaries" || echo "the tool found something"
}

# needs_more <log> <skips>: whether tests were skipped and every one of them for want of more GPUs than this machine has.
needs_more() {
    [ "$2" -gt 0 ] && [ "$(grep -acE "skipped: .*::.*: $TANDEM_REQUIRE_GPU of [0-9]+ GPUs\$" "$1")" -eq "$2" ]
}

# judge <what> <log> <seconds> <status> [<tool>]: the row of what wrote the log.
judge() {
    local why words status=0
    why=$(fault "$2" "${@:4}")
    words=$(sed -n 's/.*\(\(ERROR\|RACECHECK\) SUMMARY\)/\1/p; s/^test result: [a-zA-Z]*\. \([^;]*; [^;]*\);.*/\1,/p; / sums wrong$/p' "$2" | tr '\n' ' ')
    if [ -n "$why" ]; then
        status=1
    elif [[ $words =~ ([0-9]+)\ passed ]] && [ "${BASH_REMATCH[1]}" -eq "$(grep -ac 'skipped: .*::' "$2")" ]; then
        status=skipped
    fi
    row "$1" "$status" "$3" "${why:+$why; }$words$(grep -ac 'skipped: .*::' "$2") skipped"
    [ "$status" != 1 ] || grep -a -A4 'panicked at' "$2" | head -40
}

tests() {
    local program name start status
    for program in "$here"/tests/*; do
        name=$(basename "$program")
        start=$(date +%s)
        "$program" >"$out/$name.log" 2>&1
        status=$?
        judge "test $name" "$out/$name.log" $(($(date +%s) - start)) $status
    done
}

# PEs of one GPU run beside each other, each with its share of the multiprocessors: what waits for another PE is tested as on several GPUs.
pes() {
    local number program name start status
    for number in ${PES:-2 4}; do
        for program in "$here"/tests/*; do
            name=$(basename "$program")
            start=$(date +%s)
            # One after the other: together the kernels of all PEs fill the GPU.
            TANDEM_TEST_PES=$number CUDA_DEVICE_MAX_CONNECTIONS=32 "$program" --test-threads 1 >"$out/$name-$number.log" 2>&1
            status=$?
            judge "test $name, $number PEs on a GPU" "$out/$name-$number.log" $(($(date +%s) - start)) $status
        done
    done
}

# Transforms of three passes, and beside them sums of half a million points, one curve after the other, since each may fill half of the
# memory that is free. Most of the time is the CPU's, with what the GPU's results are compared with: one to two minutes on 16 cores,
# it is estimated.
larger() {
    local start status
    start=$(date +%s)
    TANDEM_CONFORMANCE_LOG_N=20 "$here/tests/conformance" cuda::ntt >"$out/conformance-ntt.log" 2>&1 &
    TANDEM_CONFORMANCE_LOG_N=19 "$here/tests/conformance" --test-threads 1 cuda::msm >"$out/conformance-msm.log" 2>&1
    status=$?
    judge "test conformance, sums of 2^19" "$out/conformance-msm.log" $(($(date +%s) - start)) $status
    wait $!
    status=$?
    judge "test conformance, transforms of 2^20" "$out/conformance-ntt.log" $(($(date +%s) - start)) $status
}

proofs() {
    local key stem name start status
    for key in "$here"/fixtures/*.zkey; do
        stem=${key%.zkey}
        name=$(basename "$stem")
        start=$(date +%s)
        # A proof from elsewhere must not stand for this one; without a key the program fails, and so does the row.
        rm -f "$out/$name.proof.json" "$out/$name.public.json"
        {
            "$here/tandem" prove "$key" "$stem.wtns" "$out/$name.proof.json" "$out/$name.public.json" --device cuda &&
                "$here/tandem" verify "$stem.vkey.json" "$out/$name.public.json" "$out/$name.proof.json"
        } >"$out/$name.log" 2>&1
        status=$?
        row "prove and verify $name" $status $(($(date +%s) - start)) ""
    done
}

# Kills proofs of the largest circuit at every stage.
killed() {
    local key stem name start status
    key=$(ls -S "$here"/fixtures/*.zkey | head -n 1)
    stem=${key%.zkey}
    name=$(basename "$stem")
    start=$(date +%s)
    sh "$here/killed.sh" "$here/tandem" "$key" "$stem.wtns" "$stem.vkey.json" cuda >"$out/killed.log" 2>&1
    status=$?
    row "kill proofs of $name" $status $(($(date +%s) - start)) "$(tail -n 1 "$out/killed.log")"
}

# part <tool> <name> <log2 size> <share> <GPU, or all> <program> <argument>..: runs it under a tool; status and seconds go to a file.
part() {
    local tool=$1 log=$out/$1-$2.log program=$here/$6 gpu=$5 start
    export TANDEM_CONFORMANCE_LOG_N="$3" TANDEM_CONFORMANCE_SHARE="$4"
    [ "$gpu" = all ] || export CUDA_VISIBLE_DEVICES="$gpu" TANDEM_REQUIRE_GPU=1
    shift 6
    start=$(date +%s)
    # Tests ask for too much memory on purpose: errors of the API are theirs to check.
    timeout "${SANITIZE_SECONDS:-300}" compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 9 \
        "$program" "$@" >"$log" 2>&1
    echo "$? $(($(date +%s) - start))" >"${log%.log}.status"
}

# All parts, the longest first: the host memory in GB that it takes at the most, and the arguments of `part`. Only what moves data
# between GPUs has all of them. The suite's half that compares every operation with the CPU is left out. Sizes for memcheck and for
# racecheck, which takes far longer and far more memory: there long ones come in shares, so that each ends in two minutes.
parts() {
    local filter memory race gpus on shares gb number=0 tool size share of gpu name program i one
    while read -r filter memory race gpus shares gb; do
        for tool in $tools; do
            size=$memory of=1 on=${gpus%,*}
            [ "$tool" = racecheck ] && size=$race of=$shares on=${gpus#*,}
            for ((share = 0; share < of; share++)); do
                number=$((number + 1))
                [ "$on" = one ] && gpu=$((number % TANDEM_REQUIRE_GPU)) || gpu=all
                name=conformance-${filter//::/-}
                [ "$of" -eq 1 ] || name+=-$share
                echo "$([ "$tool" = racecheck ] && echo "$gb" || echo 4) $tool $name $size $share/$of $gpu" \
                    "tests/conformance --test-threads 1 cuda::$filter"
            done
        done
    done <<<"$filters"
    for tool in $tools; do
        echo "8 $tool gpu 8 0/1 all tests/gpu --test-threads 1"
        if [ "$tool" = racecheck ]; then
            for one in $(listed backend); do echo "16 $tool backend-$one 8 0/1 all tests/backend --test-threads 1 --exact $one"; done
        else
            # Its tests of time are none under a tool.
            echo "8 $tool backend 8 0/1 all tests/backend --test-threads 1 --skip take_their_link --skip does_not_wait_for_it"
        fi
        for program in "$here"/micro/msm-*; do
            name=$(basename "$program")
            [ -x "$program" ] || continue
            for i in 0 1; do echo "8 $tool $name-$i 4 0/1 $((i % TANDEM_REQUIRE_GPU)) micro/$name small $i 2"; done
        done
    done
}

# filter, log2 of sizes for memcheck and racecheck, GPUs (or those for memcheck, then those for racecheck), shares and GB under racecheck
filters='msm::Bls12_381 8 4 one 12 64
msm::Bn254 8 4 one 12 64
ntt_spread::Bls12_381 6 4 all 1 8
ntt_spread::Bn254 6 4 all 1 8
ntt_spread::Goldilocks 6 4 all 1 8
ntt_spread::BabyBear 6 4 all 1 8
reduce 4 4 all 1 8
ntt_cube::Bls12_381 6 4 all 1 8
ntt_cube::Bn254 6 4 all 1 8
ntt::Bls12_381 8 6 one 1 8
ntt_products::Bls12_381 8 6 one 1 8
ntt_products::Bn254 8 6 one 1 8
ntt::Bn254 8 6 one 1 8
ntt::Goldilocks 8 6 one 1 8
ntt::BabyBear 8 6 one 1 8
fft::Complex32 8 6 all 1 8
fft::Complex64 8 6 all 1 8
fft_grid::Complex32 8 6 all 1 8
fft_grid::Complex64 8 6 all 1 8
poseidon::Bls12_381 6 4 one 1 8
poseidon::Bn254 6 4 one 1 8
sort 8 6 all,one 4 16
memory 8 6 all 1 8
spmv 8 6 one 1 8
vector 8 6 one 1 8
plonk_rows 8 6 one 1 8
batch_inverse 8 6 one 1 8
scan 8 6 one 1 8
point_ntt 8 6 one 1 8
sumcheck::Bls12_381 8 6 one 1 8
sumcheck::Bn254 8 6 one 1 8
sumcheck::Goldilocks 8 6 one 1 8
gather 8 6 all 1 8'

# listed <program>: its tests, those of time left out.
listed() {
    "$here/tests/$1" --list 2>>"$out/list.log" | sed -n 's/: test$//p' | grep -vE 'take_their_link|does_not_wait_for_it'
}

# Every test of the suite on GPUs belongs to a part.
nothing_is_left_out() {
    local left
    left=$(listed conformance | grep '^cuda::' | grep -vE "^cuda::($(cut -d' ' -f1 <<<"$filters" | paste -sd'|'))(::|\$)")
    [ -z "$left" ]
    row "every test has its part" $? 0 "$(tr '\n' ' ' <<<"$left")"
}

# Starts parts, given as lines of `parts`, as far as there are cores and memory; one that needs more memory than there is runs alone.
schedule() {
    local beside=${SANITIZE_BESIDE:-$((($(nproc) + 1) / 2))} gb line pid used=0
    local free=${SANITIZE_MEMORY_GB:-$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)}
    local -A running=()
    while read -r gb line; do
        while [ ${#running[@]} -gt 0 ] && { [ ${#running[@]} -ge "$beside" ] || [ $((used + gb)) -gt "$free" ]; }; do
            sleep 0.1
            for pid in "${!running[@]}"; do
                kill -0 "$pid" 2>/dev/null || { used=$((used - running[$pid])); unset "running[$pid]"; }
            done
        done
        # shellcheck disable=SC2086 # words on purpose
        part $line </dev/null &
        running[$!]=$gb used=$((used + gb))
    done
    wait
}

sanitize() {
    local gb tool name rest status seconds
    tools=${SANITIZE_TOOLS:-memcheck racecheck}
    rm -f "$out"/*.status
    nothing_is_left_out
    parts | grep -E "${SANITIZE_PARTS:-.}" >"$out/parts.txt"
    schedule <"$out/parts.txt"
    while read -r gb tool name rest; do
        status=1 seconds=0
        [ ! -e "$out/$tool-$name.status" ] || read -r status seconds <"$out/$tool-$name.status"
        judge "$tool $name" "$out/$tool-$name.log" "$seconds" "$status" "$tool"
    done <"$out/parts.txt"
}

# With several GPUs each process has its own, and needs no server.
processes() {
    local alone=
    [ "$TANDEM_REQUIRE_GPU" -eq 1 ] || alone=1
    NO_MPS=${NO_MPS:-$alone} OUT="$out/processes" sh "$here/gpu-processes.sh" "$here/processes" >"$out/processes.txt" 2>&1
    each_part processes
}

nvshmem() {
    OUT="$out/nvshmem" sh "$here/gpu-nvshmem.sh" "$here/processes" >"$out/nvshmem.txt" 2>&1
    each_part nvshmem
}

# each_part <tier>: a row for each part that a script has run.
each_part() {
    grep -q '^part ' "$out/$1.txt" || row "$1" 1 0 "$(tail -n 1 "$out/$1.txt")"
    while read -r name status seconds; do
        row "$1, $name" "$status" "$seconds" ""
    done < <(sed -n 's/^part \(.*\): status \([0-9]*\), \([0-9]*\) s$/\1 \2 \3/p' "$out/$1.txt")
}

: >"$table"
for tier in "$@"; do
    case $tier in
    gpu) tests; larger; proofs; killed ;;
    pes) pes ;;
    processes) processes ;;
    nvshmem) nvshmem ;;
    sanitizer) sanitize ;;
    esac
done

cat "$table"
echo "$((rows - failures - skips)) passed, $failures failed, $skips skipped"
[ "$failures" -eq 0 ] && [ "$rows" -gt "$skips" ]
