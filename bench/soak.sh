#!/bin/sh
# A service under load for a quarter of an hour, and the memory that it has: `sh bench/soak.sh [FOLDER]` with the program in FOLDER (the GPU
# bundle). Callers submit a witness, wait for its proof and submit the next one; each proof is verified. Every ten seconds the memory of
# the service, that of its workers (of their own, without files), and what all GPUs have in use, is written to $OUT/soak.csv. Memory is flat if the most of the last
# third is no more than a fiftieth, or 4 MiB, above the most of the second third. Rows of the jobs go to $OUT/soak-jobs.jsonl, one of the whole run
# to $OUT/soak.jsonl.
#   LOG_N    20: binary logarithm of the circuit's rows
#   SECONDS_LONG  900
#   CALLERS  8
#   JOBS     2000, for each row
#   DEVICE   cuda:0, of the one worker; cpu where there is no GPU
set -u
here=${1:-.build/gpu-bundle}
out=${OUT:-out}
mkdir -p "$out"
out=$(realpath "$out")
rows=$out/soak-jobs.jsonl
csv=$out/soak.csv
made=$(mktemp -d)
service=
trap '[ -z "$service" ] || kill "$service"; wait; rm -rf "$made"' EXIT
"$here/tandem" -q bench setup --log-n "${LOG_N:-20}" --keep "$made" || exit 1
zkey=$(ls "$made"/n*.zkey)
TANDEM_SERVE_KEY_PROOFS=1000000 TANDEM_SERVE_KEY_MEMORY_MIB=65536 TANDEM_SERVE_IN_HAND="${IN_HAND:-4}" \
    "$here/tandem" serve --listen 127.0.0.1:8556 --data "$made/data" --worker "${DEVICE:-cuda:0}" >"$out/soak-service.log" 2>&1 &
service=$!
python3 - "$here/tandem" "$service" "$zkey" "${zkey%.zkey}.wtns" "$rows" "$csv" "${SECONDS_LONG:-900}" "${CALLERS:-8}" "${JOBS:-2000}" <<'PYTHON'
import json, os, subprocess, sys, threading, time, urllib.request

program, service, zkey, witness, rows, csv = sys.argv[1:7]
seconds, callers, jobs = (int(text) for text in sys.argv[7:10])


def below(pid):
    """All processes that it and its children have started, by any of its threads."""
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/children") as file:
            found += file.read().split()
    return found + [one for child in found for one in below(child)]


def own_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss_Anon:"))


def gpu_mib():
    asked = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        return sum(int(line) for line in subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split())
    except (OSError, subprocess.CalledProcessError):
        return 0


def is_ready():
    try:
        return urllib.request.urlopen("http://127.0.0.1:8556/ready", timeout=1).status == 200
    except OSError:
        return False


for _ in range(600):
    if is_ready():
        break
    time.sleep(0.1)
else:
    sys.exit("soak.sh: the service is not ready")

samples, over = [], threading.Event()


def sample():
    with open(csv, "w") as file:
        print("seconds,service_kib,workers_kib,gpus_mib", file=file, flush=True)
        while not over.wait(10):
            try:
                workers = sum(own_kib(pid) for pid in below(service))
                one = (time.monotonic() - begun, own_kib(service), workers, gpu_mib())
            except (OSError, StopIteration):
                continue  # A process came or went.
            samples.append(one)
            print(f"{one[0]:.0f},{one[1]},{one[2]},{one[3]}", file=file, flush=True)


begun = time.monotonic()
thread = threading.Thread(target=sample)
thread.start()
failed = 0
while time.monotonic() - begun < seconds:
    command = [program, "-q", "bench", "serve", zkey, witness, "-c", str(callers), "--jobs", str(jobs), "--json", rows,
               "--server", "http://127.0.0.1:8556"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        failed += 1
        print(done.stderr[-400:])
        if failed == 3:
            break
over.set()
thread.join()
third = len(samples) // 3
if third == 0:
    sys.exit("soak.sh: too short to compare")
jobs_rows = [json.loads(line) for line in open(rows)] if os.path.exists(rows) else []
rates = [row["proofs_per_s"] for row in jobs_rows]
print(f"{len(rates)} times {jobs} jobs of {callers} callers in {samples[-1][0]:.0f} s, {failed} failed, "
      f"{min(rates, default=0):.1f} to {max(rates, default=0):.1f} proofs a second")
grows = 0
row = {name: jobs_rows[-1].get(name) for name in ("commit", "date", "device")} if jobs_rows else {}
row |= {"what": "soak", "command": "sh soak.sh", "clients": callers, "jobs": jobs * len(rates), "failed": failed,
        "log_n": int(os.environ.get("LOG_N", 20)), "seconds": round(samples[-1][0])}
for name, place, unit in [("service", 1, 1024), ("workers", 2, 1024), ("gpus", 3, 1)]:
    first, second, last = (max(x[place] for x in samples[at:at + third]) / unit for at in (0, third, 2 * third))
    row[f"{name}_mib"] = [round(most, 1) for most in (first, second, last)]
    print(f"{name}: at most {first:.1f} MiB in the first third, {second:.1f} in the second, {last:.1f} in the last")
    if last > max(second * 1.02, second + 4):
        grows += 1
        print(f"{name}: memory grows")
with open(os.path.join(os.path.dirname(rows), "soak.jsonl"), "a") as file:
    print(json.dumps(row, sort_keys=True, separators=(",", ":")), file=file)
sys.exit(failed + grows > 0)
PYTHON
