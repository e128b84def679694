#!/bin/sh
# A running service on the GPUs of this machine beside its engine alone: `sh bench/serve.sh [FOLDER]` with the program in FOLDER (the GPU
# bundle). The engine proves again and again with one GPU. A service with a worker on each GPU, and one with a worker over all of them, is
# driven by 1 to 16 callers. Then a worker is killed again and again while jobs run, and none may be lost. Rows go to $OUT/serve.jsonl.
#   LOG_N    20: binary logarithm of the circuit's rows, or a range; ZKEY and WITNESS name one key in its place
#   JOBS     100, for each number of callers
#   CALLERS  2,4,8 for each GPU's worker
#   KILLS    empty: no worker is killed
#   SOCKET   1: callers come by a Unix socket, not over loopback
set -u
here=${1:-.build/gpu-bundle}
out=${OUT:-out}
mkdir -p "$out"
rows=$out/serve.jsonl
gpus=$(nvidia-smi -L | wc -l)
[ -z "${CUDA_VISIBLE_DEVICES:-}" ] || gpus=$(echo "$CUDA_VISIBLE_DEVICES" | tr ',' '\n' | wc -l)
made=$(mktemp -d)
service=
failures=0
stop() {
    [ -z "$service" ] || { kill "$service" 2>/dev/null; wait "$service"; }
    service=
}
trap 'stop; rm -rf "$made"' EXIT
fail() {
    echo "serve.sh: $*" >&2
    failures=$((failures + 1))
}

# serve <name> <device of a worker>...: starts a service and waits until it is ready.
serve() {
    name=$1
    shift
    workers=
    for device; do workers="$workers --worker $device"; done
    # A key on each device with tables for many proofs, as the engine's.
    # shellcheck disable=SC2086 # words on purpose
    TANDEM_SERVE_KEY_PROOFS=1000000 TANDEM_SERVE_KEY_MEMORY_MIB=65536 TANDEM_SERVE_IN_HAND="${IN_HAND:-4}" \
        "$here/tandem" serve --listen 127.0.0.1:8555 --socket "$made/socket" --data "$made/$name" $workers >"$out/serve-$name.log" 2>&1 &
    service=$!
    python3 - <<'PYTHON' || { fail "the service $name is not ready"; tail -5 "$out/serve-$name.log"; return 1; }
import sys, time, urllib.request
for _ in range(600):
    try:
        sys.exit(urllib.request.urlopen("http://127.0.0.1:8555/ready", timeout=1).status != 200)
    except OSError:
        time.sleep(0.1)
sys.exit(1)
PYTHON
}

# drive <callers> <jobs>
drive() {
    server=http://127.0.0.1:8555
    [ -z "${SOCKET:-}" ] || server=unix:$made/socket
    timeout 120 "$here/tandem" -q bench serve "$zkey" "$witness" -c "$1" --jobs "$2" --json "$rows" \
        --server "$server" >>"$out/serve.txt" 2>&1 ||
        { fail "bench serve -c $1 failed"; tail -3 "$out/serve.txt"; }
}

one() {
    timeout 120 "$here/tandem" -q --device cuda:0 bench groth16 "$zkey" "$witness" --runs 40 --json "$rows" >>"$out/serve.txt" 2>&1 ||
        { fail "bench groth16 failed"; tail -3 "$out/serve.txt"; }
    # shellcheck disable=SC2046 # words on purpose
    if serve each $(seq -f 'cuda:%.0f' 0 $((gpus - 1))); then
        for callers in $(echo "${CALLERS:-2,4,8}" | tr , ' '); do drive $((callers * gpus)) $((${JOBS:-100} * gpus)); done
        [ -n "${KILLS-yes}" ] || { stop; return 0; }
        # A worker is ended every five seconds; its jobs go on elsewhere, or with the next one.
        (rows=$out/serve-killed.jsonl && drive $((4 * gpus)) $((${JOBS:-100} * 5 * gpus)) && [ $failures -eq 0 ]) &
        driver=$!
        while kill -0 $driver 2>/dev/null; do
            sleep 5
            victim=$(pgrep -P "$service" | shuf -n 1)
            [ -z "$victim" ] || kill -9 "$victim" 2>/dev/null
        done
        wait $driver || fail "jobs were lost where workers are killed"
        grep -c 'event=worker_ended' "$out/serve-each.log" | sed 's/^/workers ended: /'
        stop
    fi
    [ "$gpus" -gt 1 ] || return 0
    if serve together cuda; then
        for callers in 1 4; do drive $callers "${JOBS:-100}"; done
        stop
    fi
}

if [ -n "${ZKEY:-}" ]; then
    zkey=$ZKEY witness=$WITNESS
    one
else
    "$here/tandem" -q bench setup --log-n "${LOG_N:-20}" --keep "$made" >>"$out/serve.txt" 2>&1 || fail "bench setup failed"
    for zkey in "$made"/n*.zkey; do
        witness=${zkey%.zkey}.wtns
        one
        rm -rf "$made/each" "$made/together"
    done
fi
python3 - "$rows" <<'PYTHON' || failures=$((failures + 1))
import json, sys
engine = 0.0
for line in open(sys.argv[1]):
    row = json.loads(line)
    if row["what"] == "groth16":
        engine = row["proofs_per_s"]
        print(f"engine alone, one GPU, 2^{row['log_n']}: {engine:.1f} proofs a second, {row['ms_median']:.2f} ms")
    elif row["what"] == "serve":
        print(f"{row['workers']} workers, {row['clients']} callers: {row['proofs_per_s']:.1f} proofs a second, "
              f"{row['proofs_per_s'] / engine / row['workers'] if engine else 0:.3f} of the engine for each worker, idle {row['idle']:.3f}, "
              f"median {row['ms_median']:.1f} ms")
PYTHON
echo "$failures failed"
[ "$failures" -eq 0 ]
