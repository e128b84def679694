#!/usr/bin/env python3
"""PLONK and FFLONK proofs on the CPU, whole programs, from files to files: tandem beside snarkjs.

    python3 bench/plonk_provers.py [--tandem target/release/tandem] [--made 14,16] [--runs 5] [--json rows.jsonl]

Circuits are made up for the rows; `tandem bench plonk --keep` makes them with keys from test powers of tau. snarkjs is that of
`npm ci --prefix tests/e2e --ignore-scripts`. The programs take turns, so that a busy machine is unfair to none; the median
counts. `tandem verify` accepts every proof. snarkjs runs at most three times. The time of the processors is kept beside that of the clock:
it tells what a busy machine hides.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from cpu_provers import PACKAGES, ROOT

SNARKJS = ["node", os.path.join(PACKAGES, "snarkjs/build/cli.cjs")]


def run(command):
    """Milliseconds by the clock and of all processors, and the most memory in MiB."""
    with tempfile.TemporaryFile() as out:
        started = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stderr=out)
        _, status, used = os.wait4(child.pid, 0)
        took = (time.monotonic() - started) * 1e3
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            out.seek(0)
            sys.exit(f"{' '.join(command)}: exit status {child.returncode}\n{out.read().decode(errors='replace')}")
        return took, (used.ru_utime + used.ru_stime) * 1e3, used.ru_maxrss / 1024


def measure(options, protocol, size, folder):
    file = lambda name: os.path.join(folder, name)
    tandem = [options.tandem, "-q", "--device", "cpu"]
    run(tandem + ["bench", protocol, "--log-n", str(size), "--runs", "1", "--keep", folder])
    key, witness = file(f"{protocol}{size}.zkey"), file(f"{protocol}{size}.wtns")
    run(tandem + ["export-vkey", key, file("vkey.json")])
    provers = {"tandem": tandem + ["prove"], "snarkjs": SNARKJS + [protocol, "prove"]}
    figures = {name: [] for name in provers}
    for turn in range(options.runs):
        for name, command in provers.items():
            if name == "snarkjs" and turn >= 3:
                continue
            figures[name].append(run(command + [key, witness, file("proof.json"), file("public.json")]))
            run(tandem + ["verify", file("vkey.json"), file("public.json"), file("proof.json")])
    median = lambda of: {name: round(statistics.median(run[of] for run in runs), 1) for name, runs in figures.items()}
    clock, processors, memory = median(0), median(1), median(2)
    cells = [f"{figure[name]:>14.0f}" for figure in (clock, processors) for name in provers]
    ratio = clock["snarkjs"] / clock["tandem"]
    print(f"{protocol:<7} 2^{size:<3}" + "".join(cells) + f"{ratio:>7.1f}", flush=True)
    return {"what": "plonk_cli", "protocol": protocol, "log_n": size, "device": f"CPU, {os.cpu_count()} cores",
            "ms_median": clock, "ms_processors": processors, "mib": memory, "runs": options.runs,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "load": round(os.getloadavg()[0], 1), "command": "python3 bench/plonk_provers.py"}


def table(rows, latest, digits, of_lines):
    """The last rows as a paragraph and a table, for report.py."""
    found = latest([row for row in rows if row["what"] == "plonk_cli"], lambda row: (row["protocol"] != "plonk", row["log_n"]))
    figures = ("ms_median", "ms_processors", "mib")
    lines = [
        [f"{row['protocol'].upper()} 2^{row['log_n']}"]
        + [digits(row[figure][program]) for figure in figures for program in ("tandem", "snarkjs")]
        for _, row in sorted(found.items())
    ]
    head = ["", *(f"{program}, {unit}" for unit in ("ms", "cpu ms", "MiB") for program in ("tandem", "snarkjs 0.7.6"))]
    load = max((row["load"] for row in found.values()), default=0)
    return f"""PLONK and FFLONK of circuits made up for the rows, whole programs from files to files (`python3 bench/plonk_provers.py`). The machine's load
was up to {load:.0f}: where it is more than 2, the time of the processors, "cpu ms", is the fairer one. "MiB" is the most memory that a
program had.

{of_lines(head, lines)}"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tandem", default=os.path.join(ROOT, "target/release/tandem"))
    parser.add_argument("--made", default="14,16", help="rows of the keys, as powers of two")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", help="file to append rows to")
    options = parser.parse_args()
    titles = [f"{name} {unit}" for unit in ("ms", "cpu ms") for name in ("ours", "snarkjs")]
    print(f"{'':<13}" + "".join(f"{title:>14}" for title in titles) + "  ratio")
    for protocol in ("plonk", "fflonk"):
        for size in map(int, options.made.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                row = measure(options, protocol, size, folder)
            if options.json:
                with open(options.json, "a", encoding="utf-8") as out:
                    out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
