#!/usr/bin/env python3
"""From input.json to proof.json, one process, files to files: tandem beside snarkjs and, where a program is named, rapidsnark.

    python3 bench/end_to_end.py [--tandem target/release/tandem] [--device cpu --device cuda:0] [--rapidsnark PATH] [--native FOLDER]
                                [--runs 7] [--made 16,20,22] [--circuits NAME,...] [--json rows.jsonl] [--plot FILE.svg]
                                [--pack FOLDER | --packed FOLDER]

`npm ci --prefix tests/e2e --ignore-scripts` fetches circuits, keys, circom and snarkjs; --circuits= leaves them out. --made adds keys of
circuits made up for the size, from a witness file on. --pack puts what the circuits' keys are made of into a folder, and ends; --packed
takes it from there, on a machine without packages. "First" is the first use of a key, with an empty cache folder, which checks it;
"later" the median of --runs more. The programs take turns, so that a busy machine is unfair to none. snarkjs runs at most three times.
rapidsnark reads the witness that snarkjs computes, or, with --native, the program CIRCUIT_cpp/CIRCUIT of that folder, which circom --c
and make build there; its time is that of both. Peers take turns with the first --device. Every proof is verified with `tandem verify`. On GPUs
the time of a bare CUDA context is measured beside: of a process that opens one and ends, less that of one that does nothing.
"""
import argparse
import datetime
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGES = os.path.join(ROOT, "tests/e2e/node_modules")
CIPHERS = os.path.join(PACKAGES, "@reclaimprotocol/circom-symmetric-crypto/resources")
SNARKJS = ["node", os.path.join(PACKAGES, "snarkjs/build/cli.cjs")]
CIRCUITS = ["multiplier", "eddsa", "semaphore-20", "membership", "chacha20", "sha256_512", "aes-128-ctr", "aes-256-ctr"]
# Opens a context of the driver.
CONTEXT = """
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
if cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
    raise SystemExit("no CUDA context")
"""
COLOURS = {"tandem, first": "#7fb3c8", "tandem": "#0b6e99", "rapidsnark, C++": "#6aa84f", "rapidsnark": "#3f7d20", "snarkjs": "#c2410c"}
# What ICICLE-Snark's authors publish (read off the charts of its README: "complex" circuits, keys cached in the process): constraints and ms.
PUBLISHED = {"100K": 37, "200K": 49, "400K": 67, "800K": 100, "1.6M": 187, "3.2M": 366}
PUBLISHED_BY = "https://github.com/ingonyama-zk/icicle-snark"


def bits(count):
    return [random.getrandbits(1) for _ in range(count)]


def inputs(circuit):
    files = {"membership": "demo/membership.input.json", "eddsa": "tests/e2e/circuits/eddsa.input.json"}
    if circuit in files:
        with open(os.path.join(ROOT, files[circuit]), encoding="utf-8") as file:
            return json.load(file)
    if circuit == "multiplier":
        return {"a": str(random.getrandbits(250)), "b": str(random.getrandbits(250))}
    if circuit == "sha256_512":
        return {"in": bits(512)}
    if circuit == "chacha20":
        words = lambda count: [bits(32) for _ in range(count)]
        return {"key": words(8), "nonce": words(3), "counter": bits(32), "in": words(16)}
    if circuit.startswith("semaphore"):
        siblings = [str(random.getrandbits(250)) for _ in range(20)]
        return {"secret": str(random.getrandbits(250)), "merkleProofLength": 20, "merkleProofIndex": 1,
                "merkleProofSiblings": siblings, "message": "42", "scope": "2"}
    return {"key": bits(int(circuit.split("-")[1])), "nonce": bits(96), "counter": bits(32), "in": bits(512)}


def run(command, folder=None):
    """Its output, milliseconds by the clock, and the most memory that it had, in MiB."""
    environment = dict(os.environ, **({"TANDEM_CACHE_DIR": folder} if folder else {}))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        _, status, used = os.wait4(child.pid, 0)
        took = (time.monotonic() - started) * 1e3
        child.returncode = os.waitstatus_to_exitcode(status)
        text = lambda file: (file.seek(0), file.read().decode(errors="replace"))[1]
        if child.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit status {child.returncode}\n{text(out)}{text(err)}")
        return text(out), took, used.ru_maxrss / 1024


def pack(circuits, into):
    """Into a folder: of each circuit the program, and its constraints, or its key where no package has these."""
    os.makedirs(into, exist_ok=True)
    for circuit in circuits:
        with tempfile.TemporaryDirectory() as folder:
            found = {kind: file for kind, file in sources(circuit, folder).items() if kind != "zkey" or circuit.startswith("semaphore")}
            for kind, file in found.items():
                shutil.copy(file, os.path.join(into, f"{circuit}.{kind}"))


def packed(tandem, circuit, pack, folder):
    """The program and the key of a circuit that `pack` put into a folder."""
    wasm, key, r1cs = [os.path.join(pack, f"{circuit}.{kind}") for kind in ["wasm", "zkey", "r1cs"]]
    if not os.path.exists(key):
        key = os.path.join(folder, f"{circuit}.zkey")
        run([tandem, "-q", "setup", r1cs, key])
    return [wasm, key]


def sources(circuit, folder):
    """The circuit's program and, where they are there, its key and its constraints; compiled where no package has them."""
    if circuit.startswith("semaphore"):
        return {kind: os.path.join(PACKAGES, f"@zk-kit/semaphore-artifacts/{circuit}.{kind}") for kind in ["wasm", "zkey"]}
    if os.path.isdir(os.path.join(CIPHERS, circuit)):
        names = {"wasm": "circuit.wasm", "zkey": "circuit_final.zkey", "r1cs": "circuit.r1cs"}
        return {kind: os.path.join(CIPHERS, circuit, name) for kind, name in names.items()}
    source = "demo/membership.circom" if circuit == "membership" else f"tests/e2e/circuits/{circuit}.circom"
    circom = ["node", os.path.join(PACKAGES, "circom2/cli.js")]
    run(circom + [os.path.join(ROOT, source), "--r1cs", "--wasm", "--O2", "-l", PACKAGES, "-o", folder])
    return {"wasm": os.path.join(folder, f"{circuit}_js/{circuit}.wasm"), "r1cs": os.path.join(folder, f"{circuit}.r1cs")}


def circuit_files(tandem, circuit, folder):
    """The circuit's program and key, which is made where no package has it."""
    found = sources(circuit, folder)
    if "zkey" not in found:
        found["zkey"] = os.path.join(folder, f"{circuit}.zkey")
        run([tandem, "-q", "setup", found["r1cs"], found["zkey"]])
    return [found["wasm"], found["zkey"]]


class Bench:
    """The programs, and what was measured."""

    def __init__(self, options, folder):
        self.options, self.folder, self.rows = options, folder, []
        version, _, _ = run([options.tandem, "--version"])
        self.build = version.strip()

    def file(self, name):
        return os.path.join(self.folder, name)

    def ours(self, device, command, cache):
        """One proof: milliseconds, MiB, the stages, and the device."""
        files = [self.file("proof.json"), self.file("public.json")]
        full = [self.options.tandem, "--device", device] + command + files + ["--json"]
        out, took, memory = run(full, cache)
        report = json.loads(out)
        stages = {}
        for stage in report["stages"]:
            if stage["lane"] is None:
                stages[stage["name"]] = stages.get(stage["name"], 0) + stage["ms"]
        stages["proof"] = report["seconds"] * 1e3
        self.verify()
        return took, memory, stages, report["device"]

    def verify(self):
        files = [self.file(name) for name in ["vkey.json", "public.json", "proof.json"]]
        run([self.options.tandem, "-q", "verify"] + files)

    def peers(self, circuit, wasm, key):
        """The commands of each peer, one after the other."""
        proof = [self.file("proof.json"), self.file("public.json")]
        full = [SNARKJS + ["groth16", "fullprove", self.file("input.json"), wasm, key] + proof]
        peers = {"snarkjs": full}
        if self.options.rapidsnark:
            files = [self.file("input.json"), self.file("peer.wtns")]
            native = os.path.join(self.options.native or "", f"{circuit}_cpp", circuit)
            has_native = bool(self.options.native) and os.access(native, os.X_OK)
            witness = [native] + files if has_native else SNARKJS + ["wtns", "calculate", wasm] + files
            peers["rapidsnark, C++" if has_native else "rapidsnark"] = [witness, [self.options.rapidsnark, key, files[1]] + proof]
        return peers

    def measure(self, what, command, key, peers):
        run([self.options.tandem, "-q", "export-vkey", key, self.file("vkey.json")])
        for device in self.options.device:
            self.measure_on(device, what, command, key, peers)
            peers = {}

    def measure_on(self, device, what, command, key, peers):
        with tempfile.TemporaryDirectory() as cache:
            first = self.ours(device, command, cache)
            later, theirs = [], {name: [] for name in peers}
            for turn in range(self.options.runs):
                later.append(self.ours(device, command, cache))
                for name, commands in peers.items():
                    if name == "snarkjs" and turn >= 3:
                        continue
                    ran = [run(command) for command in commands]
                    theirs[name].append((sum(took for _, took, _ in ran), max(memory for _, _, memory in ran)))
                    self.verify()
        median = lambda values: round(statistics.median(values), 1)
        stages = {name: median([run[2].get(name, 0) for run in later]) for name in later[0][2]}
        row = {"what": "end_to_end", "circuit": what, "device": first[3], "key_mib": round(os.path.getsize(key) / 2**20, 1),
               "ms_median": {"tandem": median([run[0] for run in later])}, "ms_first": round(first[0], 1), "stages": stages,
               "stages_first": {name: round(ms, 1) for name, ms in first[2].items()},
               "peak_mib": {"tandem": median([run[1] for run in later])}, "runs": self.options.runs, "build": self.build,
               "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
               "command": "python3 bench/end_to_end.py"}
        for name, runs in theirs.items():
            row["ms_median"][name], row["peak_mib"][name] = median([ms for ms, _ in runs]), median([mib for _, mib in runs])
        if is_gpu(first[3]):
            took = lambda program: run([sys.executable, "-c", "import ctypes\n" + program])[1]
            row["context_ms"] = median([took(CONTEXT) - took("") for _ in range(self.options.runs)])
        self.rows.append(row)
        self.tell(row)
        if self.options.json:
            with open(self.options.json, "a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")

    def tell(self, row):
        ours, first = row["ms_median"]["tandem"], row["ms_first"]
        line = f"{row['circuit']:<14}{'gpu' if is_gpu(row['device']) else 'cpu':<5}{first:>8.0f}{ours:>9.0f}"
        for names in [PEERS_OF_WITNESS, ["snarkjs"]]:
            found = [row["ms_median"][name] for name in names if name in row["ms_median"]]
            line += f"{found[0]:>12.0f}" if found else f"{'-':>12}"
        line += f"{row['peak_mib']['tandem']:>10.0f}"
        print(line)
        if "context_ms" in row:
            bare = row["context_ms"]
            print(f"    {ours - bare:.0f} ms ({first - bare:.0f} first) beyond a context of {bare:.0f}")
        shown = [name for name in row["stages"] if row["stages"][name] >= 0.01 * ours and name in SHOWN]
        stages = ", ".join(f"{name} {row['stages'][name]:.0f}" for name in shown)
        print(textwrap.fill(stages, 76, initial_indent="    ", subsequent_indent="    "), flush=True)


# rapidsnark, by where its witness comes from.
PEERS_OF_WITNESS = ["rapidsnark, C++", "rapidsnark"]


def is_gpu(device):
    return "CPU" not in device and "sim:" not in device


# The stages that a line tells, some of them beside each other.
SHOWN = ["witness", "read witness", "open device", "open key", "check key", "load key", "proof"]


def plot(rows, path):
    """Bars of milliseconds, one a program, circuit by circuit, on a log scale."""
    import math

    bars = []
    for row in rows:
        times = {"tandem, first": row["ms_first"], **row["ms_median"]}
        gpu = ", GPU" if is_gpu(row["device"]) and len({r["device"] for r in rows}) > 1 else ""
        bars += [(row["circuit"] + gpu if name == "tandem, first" else "", name, times[name]) for name in COLOURS if name in times]
    low = 10 ** math.floor(math.log10(min(ms for *_, ms in bars)))
    high = 10 ** math.ceil(math.log10(max(ms for *_, ms in bars)))
    left, width, height = 150, 760, 60 + 18 * len(bars) + 8 * len(rows)
    at = lambda ms: left + (width - left - 90) * math.log10(ms / low) / math.log10(high / low)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
           f'<text x="{left}" y="20" font-size="15">From input to proof, ms, {"; ".join(dict.fromkeys(row["device"] for row in rows))}</text>']
    tick = low
    while tick <= high:
        out.append(f'<line x1="{at(tick):.1f}" x2="{at(tick):.1f}" y1="32" y2="{height - 24}" stroke="#dddddd"/>'
                   f'<text x="{at(tick):.1f}" y="{height - 8}" text-anchor="middle" fill="#444444">{tick:g}</text>')
        tick *= 10
    y = 32
    for circuit, name, ms in bars:
        y += 8 if circuit else 0
        out.append(f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{circuit}</text>'
                   f'<rect x="{left}" y="{y}" width="{at(ms) - left:.1f}" height="15" fill="{COLOURS[name]}"/>'
                   f'<text x="{at(ms) + 5:.1f}" y="{y + 12}" fill="#444444">{name} {ms:.0f}</text>')
        y += 18
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out + ["</svg>"]) + "\n")


def tables(rows, latest, digits, table, on):
    """From input to proof, a table a machine that has rows."""
    parts = []
    for machine in ("cpu2", "h100x1", "h200x1"):
        of = [r for r in rows if r["machine"] == machine and r["what"] == "end_to_end"]
        found = latest(of, lambda r: (r["circuit"], is_gpu(r["device"])))
        if not found:
            continue
        beyond = lambda ms, row: digits(ms - row["context_ms"]) if "context_ms" in row else ""
        lines = []
        several = len({on_gpu for _, on_gpu in found}) > 1
        for (circuit, on_gpu), row in found.items():
            name = f"{circuit}, {'GPU' if on_gpu else 'CPU'}" if several else circuit
            ours, stages = row["ms_median"]["tandem"], row["stages"]
            of_stages = [digits(stages.get(stage)) for stage in ("witness", "open key", "check key", "load key", "proof")]
            peers = [digits(row["ms_median"].get(peer)) for peer in ("rapidsnark, C++", "rapidsnark", "snarkjs")]
            gpu = [beyond(ours, row), beyond(row["ms_first"], row)]
            lines.append([name, digits(row["ms_first"]), digits(ours)] + gpu + of_stages + [digits(row["peak_mib"]["tandem"])] + peers + [digits(row["peak_mib"].get("rapidsnark, C++"))])
        head = ["", "first use", "later", "later, beyond a context", "first, beyond a context", "witness", "open key", "check key", "load key"]
        head += ["proof", "peak MiB", "rapidsnark with a C++ witness", "rapidsnark", "snarkjs", "peak MiB of rapidsnark with a C++ witness"]
        parts.append(f"{on(machine, '')}\n\n{table(head, lines, len(head))}")
    if not parts:
        return ""
    return f"""## From files to files

One process, from its input files to its proof, ms (`python3 bench/end_to_end.py`). The first use of a key checks it. Parts run beside
each other: device and witness beside the key. On a GPU, "beyond a context" is without what a program takes that opens a context
and ends.

{chr(10).join(parts)}
ICICLE-Snark was not run here. [Its authors publish]({PUBLISHED_BY}), for one RTX 4090 beside a Ryzen 9 9950X, proofs of one key that the process
holds already, from a witness file: {", ".join(f"{ms} ms for {size}" for size, ms in PUBLISHED.items())} constraints.
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tandem", default=os.path.join(ROOT, "target/release/tandem"))
    parser.add_argument("--device", action="append", help="as of tandem --device; may be given again; cpu where it is not")
    parser.add_argument("--rapidsnark", help="rapidsnark's prover, built elsewhere")
    parser.add_argument("--native", help="folder of CIRCUIT_cpp/CIRCUIT, circom's witness programs in C++, for rapidsnark")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--circuits", default=",".join(CIRCUITS), help="those to measure")
    packs = parser.add_mutually_exclusive_group()
    packs.add_argument("--pack", help="folder to put what keys are made of into, for --packed")
    packs.add_argument("--packed", help="such a folder")
    parser.add_argument("--made", default="", help="sizes of circuits made up, by their binary logarithms")
    parser.add_argument("--json", help="file to append rows to")
    parser.add_argument("--plot", help="SVG file to draw")
    options = parser.parse_args()
    options.device = options.device or ["cpu"]
    unknown = set(filter(None, options.circuits.split(","))) - set(CIRCUITS)
    if unknown or options.runs < 1:
        parser.error(f"expected circuits of {','.join(CIRCUITS)} and at least one run")
    circuits = list(filter(None, options.circuits.split(",")))
    if options.pack:
        pack(circuits, options.pack)
        return
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        print(f"{bench.build}, median of {options.runs}, {os.cpu_count()} cores")
        print(f"{'circuit':<14}{'on':<5}{'first ms':>8}{'later ms':>9}{'rapidsnark':>12}{'snarkjs':>12}{'peak MiB':>10}")
        for circuit in circuits:
            if options.packed:
                wasm, key = packed(options.tandem, circuit, options.packed, folder)
            else:
                wasm, key = circuit_files(options.tandem, circuit, folder)
            with open(bench.file("input.json"), "w", encoding="utf-8") as out:
                json.dump(inputs(circuit), out)
            peers = {} if options.packed else bench.peers(circuit, wasm, key)
            bench.measure(circuit, ["fullprove", bench.file("input.json"), wasm, key], key, peers)
        for size in filter(None, options.made.split(",")):
            run([options.tandem, "-q", "bench", "setup", "--log-n", size, "--runs", "1", "--keep", folder])
            key, witness = bench.file(f"n{size}.zkey"), bench.file(f"n{size}.wtns")
            bench.measure(f"made 2^{size}", ["prove", key, witness], key, {})
        if options.plot and bench.rows:
            plot(bench.rows, options.plot)


if __name__ == "__main__":
    main()
