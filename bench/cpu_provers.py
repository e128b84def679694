#!/usr/bin/env python3
"""Whole proofs on the CPU, from files to files: tandem beside snarkjs and, where a program is named, rapidsnark.

    python3 bench/cpu_provers.py [--tandem target/release/tandem] [--rapidsnark PATH] [--runs 10] [--json rows.jsonl]

The circuits are those of @reclaimprotocol/circom-symmetric-crypto (`npm ci --prefix tests/e2e --ignore-scripts`), with
random inputs. The programs take turns, so that a busy machine is unfair to none; the median counts. Every proof is
verified with `tandem verify`. snarkjs runs at most three times.
"""
import argparse
import datetime
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGES = os.path.join(ROOT, "tests/e2e/node_modules")
CIRCUITS = os.path.join(PACKAGES, "@reclaimprotocol/circom-symmetric-crypto/resources")


def bits(count):
    return [random.getrandbits(1) for _ in range(count)]


def inputs(circuit):
    if circuit == "chacha20":
        words = lambda count: [bits(32) for _ in range(count)]
        return {"key": words(8), "nonce": words(3), "counter": bits(32), "in": words(16)}
    return {"key": bits(int(circuit.split("-")[1])), "nonce": bits(96), "counter": bits(32), "in": bits(512)}


def run(command):
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return (time.monotonic() - started) * 1e3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tandem", default=os.path.join(ROOT, "target/release/tandem"))
    parser.add_argument("--rapidsnark", help="rapidsnark's prover, built elsewhere")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--json", help="file to append rows to")
    options = parser.parse_args()
    provers = {"tandem": [options.tandem, "-q", "--device", "cpu", "prove"]}
    if options.rapidsnark:
        provers["rapidsnark"] = [options.rapidsnark]
    provers["snarkjs"] = ["node", os.path.join(PACKAGES, "snarkjs/build/cli.cjs"), "groth16", "prove"]
    print(f"{'circuit':<14}" + "".join(f"{name + ' ms':>16}" for name in provers) + "   median of "
          f"{options.runs} (snarkjs {min(3, options.runs)}), {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        file = lambda name: os.path.join(folder, name)
        for circuit in ["chacha20", "aes-128-ctr", "aes-256-ctr"]:
            source = os.path.join(CIRCUITS, circuit)
            key = os.path.join(source, "circuit_final.zkey")
            with open(file("input.json"), "w", encoding="utf-8") as out:
                json.dump(inputs(circuit), out)
            run([options.tandem, "-q", "witness", os.path.join(source, "circuit.wasm"), file("input.json"), file("w.wtns")])
            run([options.tandem, "-q", "export-vkey", key, file("vkey.json")])
            times = {name: [] for name in provers}
            for turn in range(options.runs + 1):
                for name, command in provers.items():
                    if name == "snarkjs" and turn > 3:
                        continue
                    took = run(command + [key, file("w.wtns"), file("proof.json"), file("public.json")])
                    run([options.tandem, "-q", "verify", file("vkey.json"), file("public.json"), file("proof.json")])
                    if turn > 0:  # the first turn warms the page cache and remembers the check of the key
                        times[name].append(took)
            medians = {name: statistics.median(of) for name, of in times.items()}
            print(f"{circuit:<14}" + "".join(f"{medians[name]:>16.0f}" for name in provers), flush=True)
            if options.json:
                row = {"what": "prove_cli", "circuit": circuit, "device": f"CPU, {os.cpu_count()} cores",
                       "ms_median": {name: round(ms, 1) for name, ms in medians.items()}, "runs": options.runs,
                       "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                       "command": "python3 bench/cpu_provers.py"}
                with open(options.json, "a", encoding="utf-8") as out:
                    out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
