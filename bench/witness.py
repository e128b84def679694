#!/usr/bin/env python3
"""Witnesses from circom's WebAssembly: `tandem witness` beside V8, on the same circuits, file to file.

    python3 bench/witness.py [--tandem target/release/tandem] [--runs 7] [--json rows.jsonl]

`npm ci --prefix tests/e2e --ignore-scripts` fetches the circuits, circom and the peer's libraries. The two take turns, and the median
counts. Each witness is compared with the other's, byte by byte. "tandem" is a run without a recording, "record" one that is recorded,
"later" one that replays that (on other inputs where they are random, "replayed" so many times), and "V8 alone" leaves out node's start.
Times of processes are by the clock and by the processor, where a busy machine disturbs less.
"""
import argparse
import datetime
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGES = os.path.join(ROOT, "tests/e2e/node_modules")
CIPHERS = os.path.join(PACKAGES, "@reclaimprotocol/circom-symmetric-crypto/resources")


def bits(count):
    return [random.getrandbits(1) for _ in range(count)]


def inputs(circuit):
    if circuit == "membership":
        with open(os.path.join(ROOT, "demo/membership.input.json"), encoding="utf-8") as file:
            return json.load(file)
    if circuit == "eddsa":
        with open(os.path.join(ROOT, "tests/e2e/circuits/eddsa.input.json"), encoding="utf-8") as file:
            return json.load(file)
    if circuit == "chacha20":
        words = lambda count: [bits(32) for _ in range(count)]
        return {"key": words(8), "nonce": words(3), "counter": bits(32), "in": words(16)}
    if circuit == "aes-256-ctr":
        return {"key": bits(256), "nonce": bits(96), "counter": bits(32), "in": bits(512)}
    return {"in": bits(512)}


def run(command, **environment):
    """Output, and milliseconds by the clock and by the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    wall = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout + (done.stderr if "-v" in command else ""), wall * 1e3, cpu * 1e3


def module(circuit, folder):
    """The circuit's WebAssembly; compiled where no package has it."""
    source = "demo/membership.circom" if circuit == "membership" else f"tests/e2e/circuits/{circuit}.circom"
    if os.path.isdir(os.path.join(CIPHERS, circuit)):
        return os.path.join(CIPHERS, circuit, "circuit.wasm")
    circom = os.path.join(PACKAGES, "circom2/cli.js")
    run(["node", circom, os.path.join(ROOT, source), "--wasm", "--O2", "-l", PACKAGES, "-o", folder])
    return os.path.join(folder, f"{circuit}_js/{circuit}.wasm")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tandem", default=os.path.join(ROOT, "target/release/tandem"))
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", help="file to append rows to")
    options = parser.parse_args()
    columns = ["tandem", "tandem cpu", "record", "record cpu", "later", "later cpu", "node", "node cpu", "V8 alone"]
    print(f"{'ms':<13}" + "".join(f"{name:>11}" for name in columns) + f"{'replayed':>10}")
    with tempfile.TemporaryDirectory() as folder:
        file = lambda name: os.path.join(folder, name)
        for circuit in ["aes-256-ctr", "chacha20", "sha256_512", "eddsa", "membership"]:
            wasm = module(circuit, folder)
            for name in ["input.json", "other.json"]:
                with open(file(name), "w", encoding="utf-8") as out:
                    json.dump(inputs(circuit), out)
            ours = [options.tandem, "witness", wasm, file("input.json"), file("ours.wtns"), "--recordings"]
            recorded = [options.tandem, "witness", wasm, file("other.json"), file("recorded.wtns"), "--recordings", "all"]
            replayed = 0
            theirs = ["node", os.path.join(ROOT, "bench/peers/v8/witness.mjs"), PACKAGES, wasm, file("input.json"), file("theirs.wtns")]
            times = {name: [] for name in columns}
            for turn in range(options.runs + 1):
                first = run(ours + ["off"])
                cache = file(f"{circuit}.{turn}")
                record = run(recorded, TANDEM_CACHE_DIR=cache)
                later = run(ours[:1] + ["-v"] + ours[1:] + ["all"], TANDEM_CACHE_DIR=cache)
                replayed += "replayed the recording" in later[0]
                alone, their_wall, their_cpu = run(theirs)
                with open(file("ours.wtns"), "rb") as one, open(file("theirs.wtns"), "rb") as other:
                    if one.read() != other.read():
                        sys.exit(f"{circuit}: the witnesses differ")
                if turn > 0:  # the first turn warms the page cache
                    ours_ms = [ms for done in (first, record, later) for ms in done[1:]]
                    for name, ms in zip(columns, ours_ms + [their_wall, their_cpu, float(alone)]):
                        times[name].append(ms)
            medians = {name: statistics.median(of) for name, of in times.items()}
            print(f"{circuit:<13}" + "".join(f"{medians[name]:>11.0f}" for name in columns) + f"{replayed:>10}", flush=True)
            if options.json:
                row = {"what": "witness_cli", "circuit": circuit, "device": f"CPU, {os.cpu_count()} cores",
                       "replayed": replayed, "ms_median": {name: round(ms, 1) for name, ms in medians.items()}, "runs": options.runs,
                       "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                       "command": "python3 bench/witness.py"}
                with open(options.json, "a", encoding="utf-8") as out:
                    out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
