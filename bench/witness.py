#!/usr/bin/env python3
"""Witnesses of circom's circuits, file to file: `tandem witness` beside V8, circom's own C++ (`circom --c`) and circom-witnesscalc.

    python3 bench/witness.py [--tandem target/release/tandem] [--runs 7] [--packages DIR] [--witnesscalc DIR] [--json rows.jsonl] [CIRCUIT...]

`npm ci --prefix tests/e2e --ignore-scripts` fetches the circuits, circom and V8's part. C++ takes g++, make, nasm, libgmp-dev and
nlohmann-json3-dev, and is left out without nasm. semaphore and rsa2048 take the folder `--packages`, in which
`npm install --ignore-scripts @zk-email/circuits @semaphore-protocol/circuits` was run; they are left out without. sha256_16384 has a million
constraints; circom does not simplify them, which takes it minutes.

circom-witnesscalc takes the folder `--witnesscalc` with its programs build-circuit and calc-witness, and is left out without, and of circuits that
it refuses. It compiles the circuit itself: where its compiler orders wires otherwise than ours, its witness is not compared.

All take turns on the same inputs, and the median counts. Each witness is compared with V8's, byte by byte. "module" is a run that is not
recorded. "first", "third" and "later" are the first, the third and the fourth with one cache folder, empty before, and the default of
--recordings, with other inputs where they are random; "all first" and "all later" are the first two with --recordings all. "V8 alone" leaves out node's start. Times are by the clock, and
in ms_processors by the processor, where a busy machine disturbs less.
"""
import argparse
import datetime
import hashlib
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGES = os.path.join(ROOT, "tests/e2e/node_modules")
CIPHERS = os.path.join(PACKAGES, "@reclaimprotocol/circom-symmetric-crypto/resources")
CIRCUITS = ["aes-256-ctr", "chacha20", "eddsa", "keccak256", "membership", "rsa2048", "semaphore", "sha256_16384", "sha256_512"]
# Circuits of packages that the tests have not.
SOURCES = {
    "semaphore": 'pragma circom 2.1.6; include "@semaphore-protocol/circuits/src/semaphore.circom"; '
                 "component main {public [message, scope]} = Semaphore(20);",
    "rsa2048": 'pragma circom 2.1.6; include "@zk-email/circuits/lib/rsa.circom"; '
               "component main {public [modulus]} = RSAVerifier65537(121, 17);",
}
# A large one of a library that they have.
LARGE = {
    "sha256_16384": 'pragma circom 2.1.6; include "circomlib/circuits/sha256/sha256.circom"; component main = Sha256(16384);',
}
WAYS = ["module", "first", "third", "later", "all first", "all later", "node", "C++", "graph"]


def bits(count):
    return [random.getrandbits(1) for _ in range(count)]


def is_prime(n):
    """Miller and Rabin's test with 20 bases."""
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(20):
        x = pow(random.randrange(2, n - 1), odd, n)
        if x not in (1, n - 1) and all((x := x * x % n) != n - 1 for _ in range(twos - 1)):
            return False
    return True


def prime(size):
    while True:
        n = random.getrandbits(size) | 3 << (size - 2) | 1
        if n % 65537 != 1 and is_prime(n):
            return n


def signature():
    """A signature of PKCS #1, version 1.5, on a SHA-256 hash, in limbs of 121 bits."""
    p, q = prime(1024), prime(1024)
    modulus, hashed = p * q, random.getrandbits(256)
    padded = int("0001" + "ff" * 202 + "003031300d060960864801650304020105000420" + f"{hashed:064x}", 16)
    signed = pow(padded, pow(65537, -1, (p - 1) * (q - 1)), modulus)
    limbs = lambda n: [str(n >> 121 * i & (1 << 121) - 1) for i in range(17)]
    return {"message": limbs(hashed), "signature": limbs(signed), "modulus": limbs(modulus)}


def inputs(circuit):
    if circuit in ("membership", "eddsa"):
        name = "demo/membership.input.json" if circuit == "membership" else "tests/e2e/circuits/eddsa.input.json"
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            return json.load(file)
    if circuit == "chacha20":
        words = lambda count: [bits(32) for _ in range(count)]
        return {"key": words(8), "nonce": words(3), "counter": bits(32), "in": words(16)}
    if circuit == "aes-256-ctr":
        return {"key": bits(256), "nonce": bits(96), "counter": bits(32), "in": bits(512)}
    if circuit == "semaphore":
        numbers = [str(random.getrandbits(248)) for _ in range(23)]
        return {"secret": numbers[0], "merkleProofLength": 20, "merkleProofIndex": random.getrandbits(20),
                "merkleProofSiblings": numbers[3:], "message": numbers[1], "scope": numbers[2]}
    if circuit == "rsa2048":
        return signature()
    if circuit == "keccak256":
        return {"in": block(random.randbytes(100))}
    return {"in": bits(int(circuit.removeprefix("sha256_")))}


def block(message):
    """A message of SHA3-256, padded, in bits."""
    padded = bytearray(message.ljust(136, b"\0"))
    padded[len(message)] ^= 6
    padded[-1] ^= 0x80
    return [byte >> i & 1 for byte in padded for i in range(8)]


def check_keccak(values, witness):
    """The circuit is of this repository: its outputs are the hash."""
    message = bytes(sum(bit << i for i, bit in enumerate(values["in"][8 * j:8 * j + 8])) for j in range(100))
    with open(witness, "rb") as file:
        # Behind the header, wire 0 and before the inputs.
        ones = file.read()[-32 * 153665:][32:32 * 257]
    hashed = bytes(sum(ones[32 * (8 * j + i)] << i for i in range(8)) for j in range(32))
    if hashed != hashlib.sha3_256(message).digest():
        sys.exit("keccak256: the circuit gives another hash")


def run(command, folder=None, **environment):
    """What it says, and milliseconds by the clock and by the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, **environment})
    wall = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout + done.stderr, wall * 1e3, cpu * 1e3


def graph_of(circuit, source, libraries, witnesscalc, folder):
    """circom-witnesscalc's graph of a circuit, or None where it makes none."""
    graph = os.path.join(folder, f"{circuit}.graph")
    command = [os.path.join(witnesscalc, "build-circuit"), source, graph] + [word for library in libraries for word in ("-l", library)]
    # It leaves notes where it runs.
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, cwd=folder)
    if done.returncode == 0 and os.path.exists(graph):
        return graph
    why = (done.stderr or done.stdout).strip().splitlines() or ["no reason"]
    print(f"{circuit}: circom-witnesscalc makes no graph: {why[-1]}", file=sys.stderr)
    return None


def made(circuit, packages, witnesscalc, folder):
    """The circuit's WebAssembly and, where there is a source, its C++ and its graph, made; None where a package is missing."""
    if os.path.isdir(os.path.join(CIPHERS, circuit)):
        return os.path.join(CIPHERS, circuit, "circuit.wasm"), None, None
    source = os.path.join(ROOT, "demo/membership.circom" if circuit == "membership" else f"tests/e2e/circuits/{circuit}.circom")
    # circom finds libraries below the folder in which it runs.
    libraries, at = [PACKAGES], ROOT
    if circuit in SOURCES and packages is None:
        return None
    if circuit in SOURCES or circuit in LARGE:
        source = os.path.join(folder, f"{circuit}.circom")
        with open(source, "w", encoding="utf-8") as file:
            file.write({**SOURCES, **LARGE}[circuit])
    if circuit in SOURCES:
        at = os.path.abspath(packages)
        found = os.path.join(at, "node_modules")
        libraries = [found] + [os.path.join(found, name) for name in ("circomlib/circuits", "@zk-kit/binary-merkle-root.circom/src")]
    has_cpp = shutil.which("nasm") is not None
    circom = ["node", os.path.join(PACKAGES, "circom2/cli.js"), source, "--wasm", "--O0" if circuit in LARGE else "--O2",
              "-o", folder]
    run(circom + ["--c"] * has_cpp + [word for library in libraries for word in ("-l", library)], at)
    program = os.path.join(folder, f"{circuit}_cpp", circuit)
    if has_cpp:
        run(["make"], os.path.dirname(program))
    graph = graph_of(circuit, source, libraries, witnesscalc, folder) if witnesscalc else None
    return os.path.join(folder, f"{circuit}_js/{circuit}.wasm"), program if has_cpp else None, graph


def same(circuit, one, other):
    with open(one, "rb") as first, open(other, "rb") as second:
        if first.read() != second.read():
            sys.exit(f"{circuit}: the witnesses {one} and {other} differ")


def measure(circuit, options, folder):
    """Times of each way, by the clock and the processor, and what the recordings did."""
    file = lambda name: os.path.join(folder, name)
    programs = made(circuit, options.packages, options.witnesscalc, folder)
    if programs is None:
        return None
    wasm, program, graph = programs
    values = [inputs(circuit) for _ in range(2)]
    for name, of in zip(("input", "other"), values):
        with open(file(f"{name}.json"), "w", encoding="utf-8") as out:
            json.dump(of, out)
    ours = lambda name, out: [options.tandem, "-v", "witness", wasm, file(f"{name}.json"), file(out), "--recordings"]
    times, notes = {}, {}
    for turn in range(options.runs + 1):
        cache = file(f"{circuit}.{turn}")
        theirs = run(["node", os.path.join(ROOT, "bench/peers/v8/witness.mjs"), PACKAGES, wasm, file("input.json"), file("theirs.wtns")])
        ways = {"node": theirs, "V8 alone": (None, float(theirs[0]), None), "module": run(ours("input", "ours.wtns") + ["off"])}
        same(circuit, file("ours.wtns"), file("theirs.wtns"))
        for prefix, which in (("", "auto"), ("all ", "all")):
            kept = {"TANDEM_CACHE_DIR": cache + which}
            ways[prefix + "first"] = run(ours("other", "other.wtns") + [which], **kept)
            if which == "auto":
                # The third run of a long program is recorded.
                run(ours("input", "ours.wtns") + [which], **kept)
                ways["third"] = run(ours("other", "other.wtns") + [which], **kept)
            ways[prefix + "later"] = run(ours("input", "ours.wtns") + [which], **kept)
            same(circuit, file("ours.wtns"), file("theirs.wtns"))
            notes[prefix + "later"] = "replayed" in ways[prefix + "later"][0]
        if program:
            ways["C++"] = run([program, file("input.json"), file("cpp.wtns")], os.path.dirname(program))
            same(circuit, file("cpp.wtns"), file("theirs.wtns"))
        if graph:
            ways["graph"] = run([os.path.join(options.witnesscalc, "calc-witness"), graph, file("input.json"), file("graph.wtns")])
            if os.path.getsize(file("graph.wtns")) == os.path.getsize(file("theirs.wtns")):
                same(circuit, file("graph.wtns"), file("theirs.wtns"))
            elif turn == 0:
                print(f"{circuit}: circom-witnesscalc's witness has other wires, and is not compared", file=sys.stderr)
        if turn > 0:  # the first turn warms the page cache
            for name, (_, wall, cpu) in ways.items():
                times.setdefault(name, []).append((wall, cpu))
    if circuit == "keccak256":
        check_keccak(values[0], file("theirs.wtns"))
    return times, notes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("circuits", nargs="*", default=CIRCUITS, metavar="CIRCUIT")
    parser.add_argument("--tandem", default=os.path.join(ROOT, "target/release/tandem"))
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--packages", help="folder with node_modules for semaphore and rsa2048")
    parser.add_argument("--witnesscalc", type=os.path.abspath, help="folder with circom-witnesscalc's programs")
    parser.add_argument("--json", help="file to append rows to")
    options = parser.parse_args()
    print(f"{'ms of processors':<17}" + "".join(f"{name:>11}" for name in WAYS))
    for circuit in options.circuits:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(circuit, options, folder)
        if found is None:
            print(f"{circuit:<17} left out: it takes --packages")
            continue
        times, notes = found
        median = lambda i: {name: round(statistics.median(of), 1) for name in times
                            if None not in (of := [pair[i] for pair in times[name]])}
        clock, processors = median(0), median(1)
        print(f"{circuit:<17}" + "".join(f"{processors.get(name, float('nan')):>11.0f}" for name in WAYS), flush=True)
        if options.json:
            row = {"what": "witness_cli", "circuit": circuit, "device": f"CPU, {os.cpu_count()} cores", "replayed": notes,
                   "ms_median": clock, "ms_processors": processors, "runs": options.runs,
                   "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                   "load": round(os.getloadavg()[0], 1), "command": "python3 bench/witness.py"}
            with open(options.json, "a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
