#!/usr/bin/env python3
"""What each protocol costs for one circuit on the CPU, whole programs, from files to files: tandem beside snarkjs.

    python3 bench/protocols.py [--tandem target/release/tandem] [--circuits eddsa,membership] [--runs 3] [--json rows.jsonl]

circom compiles the circuits, tandem makes the keys (of test powers of tau, which the keys of PLONK and FFLONK share), and both programs
prove with them. The programs take turns, so that a busy machine is unfair to none; the median counts. snarkjs runs once. `tandem
verify` accepts every proof. The time of the processors is kept beside that of the clock: it tells what a busy machine hides.
"""
import argparse
import datetime
import json
import os
import statistics
import tempfile

from cpu_provers import ROOT
from end_to_end import inputs
from plonk_provers import SNARKJS, run

SOURCES = {"eddsa": "tests/e2e/circuits/eddsa.circom", "membership": "demo/membership.circom"}
PROTOCOLS = {"groth16": "Groth16", "plonk": "PLONK", "fflonk": "FFLONK"}
# A proof as bytes: points over BN254 as their two coordinates, in G2 of two halves each, and scalars.
PROOF_BYTES = {"groth16": 2 * 64 + 128, "plonk": 9 * 64 + 6 * 32, "fflonk": 4 * 64 + 16 * 32}
# Powers of two that a ptau has for the rows of the circuits above: FFLONK takes eight times as many as its domain.
POWER = 18


def measure(options, circuit, protocol, folder, r1cs, witness, ptau):
    file = lambda name: os.path.join(folder, name)
    tandem, key = [options.tandem, "-q", "--device", "cpu"], file(f"{circuit}.{protocol}.zkey")
    setup = ["setup", r1cs, key] if protocol == "groth16" else ["setup", "--protocol", protocol, "--ptau", ptau, r1cs, key]
    run(tandem + setup)
    run(tandem + ["export-vkey", key, file("vkey.json")])
    inspected = os.popen(f"'{options.tandem}' inspect --json '{key}'").read()
    domain = json.loads(inspected)["domain"]
    provers = {"tandem": tandem + ["prove"], "snarkjs": SNARKJS + [protocol, "prove"]}
    figures = {name: [] for name in provers}
    for turn in range(options.runs):
        for name, command in provers.items():
            if name == "snarkjs" and turn >= 1:
                continue
            figures[name].append(run(command + [key, witness, file("proof.json"), file("public.json")]))
            run(tandem + ["verify", file("vkey.json"), file("public.json"), file("proof.json")])
    median = lambda of: {name: round(statistics.median(run[of] for run in runs), 1) for name, runs in figures.items()}
    row = {"what": "protocols_cli", "circuit": circuit, "protocol": protocol, "log_n": domain.bit_length() - 1,
           "device": f"CPU, {os.cpu_count()} cores", "key_mib": round(os.path.getsize(key) / (1 << 20), 1),
           "ms_median": median(0), "ms_processors": median(1), "mib": median(2), "runs": options.runs,
           "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
           "load": round(os.getloadavg()[0], 1), "command": "python3 bench/protocols.py"}
    print(json.dumps(row), flush=True)
    return row


def tables(rows, latest, digits, of_lines):
    """The last rows as a table for each circuit, for report.py."""
    order = list(PROTOCOLS)
    key = lambda row: (row["circuit"], order.index(row["protocol"]))
    found = sorted(latest([row for row in rows if row["what"] == "protocols_cli"], key).items())
    head = ["", "rows", "key, MiB", "proof, bytes", *(f"{program}, {unit}" for unit in ("cpu ms", "MiB") for program in ("tandem", "snarkjs"))]
    parts = []
    for circuit in sorted({row["circuit"] for _, row in found}):
        lines = [
            [PROTOCOLS[row["protocol"]], f"2^{row['log_n']}", digits(row["key_mib"]), str(PROOF_BYTES[row["protocol"]])]
            + [digits(row[figure][program]) for figure in ("ms_processors", "mib") for program in ("tandem", "snarkjs")]
            for _, row in found
            if row["circuit"] == circuit
        ]
        parts.append(f"The circuit `{circuit}`:\n\n{of_lines(head, lines)}")
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tandem", default=os.path.join(ROOT, "target/release/tandem"))
    parser.add_argument("--circuits", default=",".join(SOURCES))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", help="file to append rows to")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ptau = os.path.join(folder, "test.ptau")
        run([options.tandem, "-q", "ptau", "--test", str(POWER), ptau])
        for circuit in options.circuits.split(","):
            file = lambda name: os.path.join(folder, name)
            circom = os.path.join(ROOT, "tests/e2e/node_modules/circom2/cli.js")
            source = os.path.join(ROOT, SOURCES[circuit])
            include = os.path.join(ROOT, "tests/e2e/node_modules")
            run(["node", circom, source, "--r1cs", "--wasm", "--O2", "-l", include, "-o", folder])
            with open(file("input.json"), "w", encoding="utf-8") as out:
                json.dump(inputs(circuit), out)
            run([options.tandem, "-q", "witness", file(f"{circuit}_js/{circuit}.wasm"), file("input.json"), file("wtns")])
            for protocol in PROTOCOLS:
                row = measure(options, circuit, protocol, folder, file(f"{circuit}.r1cs"), file("wtns"), ptau)
                if options.json:
                    with open(options.json, "a", encoding="utf-8") as out:
                        out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
