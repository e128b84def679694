#!/bin/sh
# Kills proofs at every stage and looks at what is left: scripts/killed.sh TANDEM KEY.zkey WITNESS.wtns VKEY.json [DEVICE] [KILLS]
#
# A whole proof is timed first. Then KILLS proofs are ended at moments spread over that time, by SIGTERM and SIGKILL in turn.
# After each: the outputs are whole and valid or absent, SIGTERM leaves no unfinished file, and on a GPU no memory stays in use. One proof more
# then runs to its end in the same folder. The exit status is 0 if all of this holds.
set -eu
tandem=$1 key=$2 witness=$3 vkey=$4 device=${5:-cpu} kills=${6:-20}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
proof=$folder/proof.json public=$folder/public.json
failures=0

fail() {
    echo "killed: $*" >&2
    failures=$((failures + 1))
}
prove() { "$tandem" -q --device "$device" prove "$key" "$witness" "$proof" "$public"; }
now_ms() { date +%s%3N; }
gpu_mib() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | awk '{ sum += $1 } END { print sum + 0 }'; }

begun=$(now_ms)
prove
whole=$(($(now_ms) - begun))
"$tandem" verify "$vkey" "$public" "$proof" >/dev/null
case $device in cuda*) idle=$(gpu_mib) ;; esac

kill=0 ended=0
while [ $kill -lt "$kills" ]; do
    rm -f "$proof" "$public"
    if [ $((kill % 2)) -eq 0 ]; then signal=TERM expected=143; else signal=KILL expected=137; fi
    at=$((whole * (kill + 1) / (kills + 1)))
    # Not through the function: the signal is for the program and not for a shell around it.
    "$tandem" -q --device "$device" prove "$key" "$witness" "$proof" "$public" 2>"$folder/stderr" &
    pid=$!
    sleep "$(printf '%d.%03d' $((at / 1000)) $((at % 1000)))"
    kill -$signal $pid 2>/dev/null || true
    status=0
    wait $pid || status=$?
    case $status in
    0) ended=$((ended + 1)) ;;
    "$expected") ;;
    *) fail "SIG$signal after $at of $whole ms: exit status $status, expected $expected" ;;
    esac
    if [ -e "$proof" ] && [ -e "$public" ]; then
        "$tandem" verify "$vkey" "$public" "$proof" >/dev/null || fail "SIG$signal after $at ms: the proof that is left is not valid"
    elif [ $signal = TERM ] && { [ -e "$proof" ] || [ -e "$public" ]; }; then
        fail "SIG$signal after $at ms: one output without the other"
    fi
    if [ $signal = TERM ] && ls -A "$folder" | grep -q '\.part$'; then fail "SIG$signal after $at ms: an unfinished file is left"; fi
    kill=$((kill + 1))
done

rm -f "$proof" "$public"
prove
"$tandem" verify "$vkey" "$public" "$proof" >/dev/null || fail "the proof after the kills is not valid"
if ls -A "$folder" | grep -q '\.part$'; then fail "unfinished files of killed proofs stay: $(ls -A "$folder" | tr '\n' ' ')"; fi
case $device in
cuda*)
    used=$(gpu_mib)
    [ "$used" -le $((idle + 64)) ] || fail "$used MiB of GPU memory are in use after the kills, $idle before"
    ;;
esac
[ "$ended" -lt "$kills" ] || fail "no proof was killed: all ended before their signal"
echo "killed: $kills proofs on $device, $ended of them ended first, $failures failures"
[ "$failures" -eq 0 ]
