#!/usr/bin/env python3
"""Gas of a call of a verifier contract, and the bytes of its code: ours beside snarkjs's.

    python3 bench/verifier_gas.py [--json rows.jsonl]

The end-to-end tests of contracts print the figures: solc compiles with its optimiser, an EVM runs the call. It takes some minutes.
"""
import argparse
import datetime
import json
import re
import subprocess
import sys

from cpu_provers import ROOT

TEST = ["cargo", "test", "--locked", "-p", "tandem-prover", "--test", "e2e", "public_signal", "--", "--nocapture", "--test-threads", "1"]
# groth16-multiplier-NAME: 1502 bytes, gas 196939 ours, 1352 bytes, gas 196422 snarkjs's
LINE = re.compile(r"(groth16|plonk|fflonk)-(\w+)-\S+: (\d+) bytes, gas (\d+) ours, (?:(\d+|null) bytes, gas (\d+|null) snarkjs's|none)")
PUBLICS = {"private": 0, "multiplier": 1, "publics": 100}
NAMES = {"groth16": "Groth16", "plonk": "PLONK", "fflonk": "FFLONK"}


def rows_of(text):
    when = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    number = lambda digits: int(digits) if digits and digits != "null" else None
    for protocol, circuit, *figures in LINE.findall(text):
        size, gas, their_size, their_gas = map(number, figures)
        yield {"what": "verifier_gas", "protocol": protocol, "publics": PUBLICS[circuit],
               "gas": {"tandem": gas, "snarkjs": their_gas}, "bytes": {"tandem": size, "snarkjs": their_size},
               "date": when, "command": "python3 bench/verifier_gas.py"}


def table(rows, latest, _, of_lines):
    """The last rows as a table, for report.py."""
    found = latest([row for row in rows if row["what"] == "verifier_gas"], lambda row: (row["protocol"], row["publics"]))
    number = lambda figure: f"{figure:,}" if figure else ""

    def cell(protocol, publics):
        row = found.get((protocol, publics))
        if row is None:
            return ""
        theirs = number(row["gas"]["snarkjs"])
        # Without a figure the contract does not compile, or is too long for a chain.
        return number(row["gas"]["tandem"]) + (f" ({theirs})" if theirs else "")

    counts = sorted({publics for _, publics in found})
    signals = lambda count: f"{count} public signal" + ("" if count == 1 else "s")
    lines = [[signals(count)] + [cell(protocol, count) for protocol in NAMES] for count in counts]
    return of_lines(["gas of a call (of snarkjs's contract)"] + list(NAMES.values()), lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", help="file to append rows to")
    options = parser.parse_args()
    done = subprocess.run(TEST, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(TEST)}: exit status {done.returncode}\n{done.stdout}")
    rows = list(rows_of(done.stdout))
    for row in rows:
        print(f"{row['protocol']:<8} {row['publics']:>4} signals  {row['gas']}  {row['bytes']} bytes")
    if options.json:
        with open(options.json, "a", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
