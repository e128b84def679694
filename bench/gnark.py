#!/usr/bin/env python3
"""Sums, transforms and PLONK proofs of BN254 on the CPU: tandem beside gnark-crypto and gnark.

    python3 bench/gnark.py [--tandem target/release/tandem] [--what msm-g1,msm-g2,ntt,plonk] [--sizes 14,16,18] [--turns 3]
                           [--runs 3] [--json rows.jsonl]

Builds bench/peers/gnark with Go, whose module proxy has both. The programs take turns, so that a busy machine is unfair to none; the
median of the turns counts, and in each the median of the runs. Keys are resident; a proof's time has its verification. gnark's circuit
is a chain of multiplications with as many gates as the domain has room for; tandem's is made up by `tandem bench plonk`.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEER = os.path.join(ROOT, "bench/peers/gnark")
OURS = {"msm-g1": ["msm"], "msm-g2": ["msm", "--g2"], "ntt": ["ntt"], "plonk": ["plonk"]}


def median_of(command):
    """What the last row of a program's output says."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    rows = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not rows:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}, {len(rows)} rows; expected one")
    return json.loads(rows[-1])["ms_median"]


def measure(options, gnark, what, size):
    runs = str(options.runs)
    ours = [options.tandem, "-q", "--device", "cpu", "bench", *OURS[what], "--log-n", str(size), "--runs", runs, "--json", "-"]
    commands = {"tandem": ours, "gnark": [gnark, what, str(size), runs]}
    figures = {name: [] for name in commands}
    for _ in range(options.turns):
        for name, command in commands.items():
            figures[name].append(median_of(command))
    took = {name: round(statistics.median(times), 2) for name, times in figures.items()}
    ratio = took["tandem"] / took["gnark"]
    print(f"{what:<8}2^{size:<4}{took['tandem']:>12.2f}{took['gnark']:>12.2f}{ratio:>10.2f}", flush=True)
    return {"what": f"gnark_{what}", "curve": "bn128", "log_n": size, "device": f"CPU, {os.cpu_count()} cores", "ms_median": took,
            "runs": options.turns * options.runs, "load": round(os.getloadavg()[0], 1),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "command": "python3 bench/gnark.py"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tandem", default=os.path.join(ROOT, "target/release/tandem"))
    parser.add_argument("--what", default=",".join(OURS))
    parser.add_argument("--sizes", default="14,16,18", help="binary logarithms")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3, help="of each program in a turn, after one to warm up")
    parser.add_argument("--json", help="file to append rows to")
    options = parser.parse_args()
    unknown = set(options.what.split(",")) - set(OURS)
    if unknown:
        parser.error(f"--what {', '.join(sorted(unknown))}: expected some of {', '.join(OURS)}")
    with tempfile.TemporaryDirectory() as folder:
        gnark = os.path.join(folder, "gnark")
        subprocess.run(["go", "build", "-o", gnark, "."], cwd=PEER, check=True)
        print(f"{'':<14}{'tandem ms':>12}{'gnark ms':>12}{'ratio':>10}")
        for what in options.what.split(","):
            for size in map(int, options.sizes.split(",")):
                row = measure(options, gnark, what, size)
                if options.json:
                    with open(options.json, "a", encoding="utf-8") as out:
                        out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
