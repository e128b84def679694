#!/usr/bin/env python3
"""Keys and proofs of PLONK and FFLONK for circuits that people use, tandem beside snarkjs: the keys are the same bytes, and each accepts
the other's proofs.

    python3 bench/plonk_keys.py [--tandem target/release/tandem] [--circuits membership,aes-128-ctr] [--protocols plonk] [--cut 8]
                                [--json rows.jsonl]

For each circuit: both make the key of the same test powers of tau, and the keys and verification keys are compared; snarkjs accepts
tandem's proof, and tandem snarkjs's; tandem refuses its proof with any field changed; calldata is compared. A key with many public signals is
large (160 bytes for each of them and each row): of two keys one lies on the disk at a time, and snarkjs, which holds 128 bytes for each
public signal and row, does not prove where that is more than --memory. It takes half an hour for a key of 1,152 public signals and 2^17 rows
on two cores: --cut N has it write the polynomials of N public signals only, by a copy of its program with that loop cut. The sections are
compared, those polynomials with ours, and all polynomials with the formula at random places; snarkjs proves with our key then, where --memory
lets it. circom compiles what no package has compiled; snarkjs is that of
`npm ci --prefix tests/e2e --ignore-scripts`. The first difference ends the run with status 1.
"""
import argparse
import copy
import datetime
import hashlib
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

from cpu_provers import ROOT as HERE
from end_to_end import PACKAGES, inputs, sources
from plonk_provers import SNARKJS, run

CIRCUITS = "multiplier,membership,eddsa,sha256_512,chacha20,aes-128-ctr,aes-256-ctr"
NODE = [SNARKJS[0], "--max-old-space-size=20000", *SNARKJS[1:]]
# The section of the Lagrange polynomials, of which each has its coefficients and four times as many values.
LAGRANGE = {"plonk": 13, "fflonk": 15}
# The scalar field of BN254, a root of unity of order 2^28, and what Montgomery's form multiplies by.
R = 21888242871839275222246405745257275088548364400416034343698204186575808495617
ROOT = pow(5, (R - 1) >> 28, R)
MONTGOMERY = 1 << 256


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def output(command, status=0):
    """What a program prints; the run ends if it does not end with `status`. It prints to a file, since node drops what a pipe has no room
    for when it ends."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
        out.seek(0)
        text = out.read()
    if done.returncode != status:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}, not {status}\n{text}{done.stderr}")
    return text.strip()


def same(what, ours, theirs):
    if ours != theirs:
        sys.exit(f"{what}: tandem's and snarkjs's differ\n{str(ours)[:300]}\n{str(theirs)[:300]}")


def sections(path):
    """Where each section of a key begins, and its length."""
    found = {}
    with open(path, "rb") as file:
        magic, _, count = struct.unpack("<4sII", file.read(12))
        assert magic == b"zkey"
        for _ in range(count):
            kind, length = struct.unpack("<IQ", file.read(12))
            found[kind] = (file.tell(), length)
            file.seek(length, 1)
    return found


def digest_of(path, begin, length):
    found = hashlib.sha256()
    with open(path, "rb") as file:
        file.seek(begin)
        while length and (part := file.read(min(length, 1 << 24))):
            found.update(part)
            length -= len(part)
    return found.hexdigest()


def parts(path, protocol, polynomials):
    """What each section holds, and the first bytes of that of Lagrange polynomials, by their hashes."""
    found = sections(path)
    first = lambda kind, length: min(length, polynomials) if kind == LAGRANGE[protocol] else length
    return {kind: digest_of(path, begin, first(kind, length)) for kind, (begin, length) in found.items()}


def check_formula(path, protocol, log_n, publics, places=64):
    """Compares Lagrange polynomials with their definition, each at random places: L_i has the coefficients w^-ij / n, and at x != w^i the
    value w^i (x^n - 1) / (n (x - w^i)), where w is of order n."""
    n = 1 << log_n
    begin, length = sections(path)[LAGRANGE[protocol]]
    same("length of the Lagrange polynomials", length, publics * 5 * n * 32)
    w, fine, inverse = pow(ROOT, 1 << (28 - log_n), R), pow(ROOT, 1 << (26 - log_n), R), pow(n, -1, R)
    with open(path, "rb") as file:
        for i in range(publics):
            at = pow(w, i, R)
            for place in [0, n, n + 4 * i, 5 * n - 1] + random.sample(range(5 * n), places):
                file.seek(begin + (i * 5 * n + place) * 32)
                found = int.from_bytes(file.read(32), "little")
                x = pow(fine, place - n, R)
                if place < n:
                    expected = pow(w, -i * place, R) * inverse
                else:
                    expected = 1 if x == at else at * (pow(x, n, R) - 1) * inverse * pow(x - at, -1, R)
                same(f"number {place} of Lagrange polynomial {i}", found, expected * MONTGOMERY % R)


def cut(protocol, count, folder):
    """snarkjs with its loop over public signals cut: the command."""
    with open(SNARKJS[1], encoding="utf-8") as file:
        text = file.read()
    loop, short = re.compile(r"for \(let i ?= ?0; i ?< ?l; i\+\+\)"), f"for (let i = 0; i < Math.min(l, {count}); i++)"
    # One for each of the two protocols.
    text, changes = loop.subn(short, text)
    same("loops over public signals in snarkjs", changes, 2)
    # Beside it lies what it looks for in its package, and what that is installed with.
    own, package = os.path.dirname(os.path.dirname(SNARKJS[1])), os.path.join(folder, "snarkjs")
    os.makedirs(os.path.join(package, "build"))
    for name in os.listdir(own):
        if name != "build":
            os.symlink(os.path.join(own, name), os.path.join(package, name))
    os.symlink(PACKAGES, os.path.join(folder, "node_modules"))
    program = os.path.join(package, "build/cli.cjs")
    with open(program, "w", encoding="utf-8") as file:
        file.write(text)
    return [*NODE[:2], program]


def fields(of, way=()):
    """Where a proof's numbers are: the keys on the way to each. The third coordinate of a point is always 1."""
    if isinstance(of, dict):
        for key, value in of.items():
            yield from fields(value, (*way, key))
    elif isinstance(of, list):
        for i in range(2):
            yield from fields(of[i], (*way, i))
    elif of.isdigit():
        yield way


def changed(proof, way):
    """The proof with the lowest bit of one number changed."""
    out = copy.deepcopy(proof)
    at = out
    for key in way[:-1]:
        at = at[key]
    at[way[-1]] = str(int(at[way[-1]]) ^ 1)
    return out


def table(rows, latest, digits, of_lines):
    """The last rows of circuits with many public signals as a table, for report.py, each of the machine where snarkjs proved. snarkjs's set-up counts
    where it was not cut."""
    many = [row for row in rows if row["what"] == "plonk_keys" and row["publics"] >= 1000]
    proved = latest([row for row in many if "snarkjs" in row["ms"]["prove"]], lambda row: (row["circuit"], row["protocol"]))
    whole = latest([row for row in many if not row.get("cut")], lambda row: (row["circuit"], row["protocol"], row["device"]))
    head = ["", "public signals", "key, GiB", "cores", *(f"{program} {what}" for what in ("set-up, cpu s", "proof, cpu s", "proof, MiB")
                                                        for program in ("tandem", "snarkjs"))]

    def line(circuit, protocol, row):
        all_of_it = whole.get((circuit, protocol, row["device"]))
        seconds = lambda row, what, program: digits(row["ms_processors"][what][program] / 1000)
        return [f"{circuit}, {'PLONK' if protocol == 'plonk' else 'FFLONK'}", str(row["publics"]), digits(row["key_mib"] / 1024),
                re.search(r"(\d+) cores", row["device"])[1], seconds(row, "setup", "tandem"), seconds(all_of_it, "setup", "snarkjs") if all_of_it else "",
                seconds(row, "prove", "tandem"), seconds(row, "prove", "snarkjs"), *(digits(row["mib"]["prove"][program]) for program in ("tandem", "snarkjs"))]

    return of_lines(head, [line(*key, row) for key, row in sorted(proved.items())])


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def measure(options, protocol, circuit, folder):
    file = lambda name: os.path.join(folder, name)
    tandem = [options.tandem, "-q"]
    found = sources(circuit, folder)
    with open(file("input.json"), "w", encoding="utf-8") as out:
        json.dump(inputs(circuit), out)
    ours = file("ours.zkey")
    setup = tandem + ["setup", "--protocol", protocol, "--ptau", file("powers.ptau"), found["r1cs"], ours]
    # What is too small a file for the circuit says which power is needed.
    run(tandem + ["ptau", "--test", "1", file("powers.ptau")])
    needed = re.search(r"use a file of power (\d+)", subprocess.run(setup, capture_output=True, text=True, check=False).stderr)
    if needed:
        run(tandem + ["ptau", "--test", needed[1], file("powers.ptau")])
    setups = {"tandem": run(setup)}
    size, ours_digest = os.path.getsize(ours), digest(ours)
    run(tandem + ["export-vkey", ours, file("ours.vkey.json")])
    run(tandem + ["witness", found["wasm"], file("input.json"), file("witness.wtns")])
    proofs = {"tandem": run(tandem + ["--device", "cpu", "prove", ours, file("witness.wtns"), file("proof.json"), file("public.json")])}
    verify = lambda proof, status=0: output([options.tandem, "verify", file("ours.vkey.json"), file("public.json"), proof], status)
    verify(file("proof.json"))
    publics, domain = len(load(file("public.json"))), load(file("ours.vkey.json"))["power"]
    is_cut = 0 < options.cut < publics
    if is_cut:
        few = options.cut * 5 * 32 << domain
        ours_parts = parts(ours, protocol, few)
        check_formula(ours, protocol, domain, publics)
    else:
        os.remove(ours)

    theirs = file("theirs.zkey")
    snarkjs = cut(protocol, options.cut, folder) if is_cut else NODE
    setups["snarkjs"] = run(snarkjs + [protocol, "setup", found["r1cs"], file("powers.ptau"), theirs])
    if is_cut:
        same("keys", ours_parts, parts(theirs, protocol, few))
        same("polynomials of the cut key", sections(theirs)[LAGRANGE[protocol]][1], few)
    else:
        same("keys", ours_digest, digest(theirs))
    run(NODE + ["zkey", "export", "verificationkey", theirs, file("theirs.vkey.json")])
    same("verification keys", load(file("ours.vkey.json")), load(file("theirs.vkey.json")))
    run(NODE + [protocol, "verify", file("theirs.vkey.json"), file("public.json"), file("proof.json")])
    calldata = output(NODE + ["zkey", "export", "soliditycalldata", file("public.json"), file("proof.json")])
    same("calldata", output([options.tandem, "calldata", file("public.json"), file("proof.json")]), calldata)
    proof = load(file("proof.json"))
    ways = list(fields(proof))
    for way in ways:
        with open(file("changed.json"), "w", encoding="utf-8") as out:
            json.dump(changed(proof, way), out)
        verify(file("changed.json"), 1)

    if publics << (domain + 7) <= options.memory << 30:
        files = [file("theirs.proof.json"), file("theirs.public.json")]
        # A cut key is no whole one. What both keys have is the same.
        proofs["snarkjs"] = run(NODE + [protocol, "prove", ours if is_cut else theirs, file("witness.wtns"), *files])
        same("public signals", load(file("public.json")), load(files[1]))
        verify(files[0])
        run(NODE + [protocol, "verify", file("theirs.vkey.json"), files[1], files[0]])
    os.remove(theirs)
    figures = lambda of: {"setup": {name: round(taken[of], 1) for name, taken in setups.items()},
                          "prove": {name: round(taken[of], 1) for name, taken in proofs.items()}}
    return {"what": "plonk_keys", "protocol": protocol, "circuit": circuit, "log_n": domain, "publics": publics,
            "key_mib": round(size / (1 << 20), 1), "sha256": ours_digest, "cut": options.cut if is_cut else None, "numbers_changed": len(ways), "ms": figures(0),
            "ms_processors": figures(1), "mib": figures(2), "device": f"CPU, {os.cpu_count()} cores",
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "load": round(os.getloadavg()[0], 1),
            "command": f"python3 bench/plonk_keys.py --circuits {circuit} --protocols {protocol}" + f" --cut {options.cut} --memory {options.memory}" * is_cut}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tandem", default=os.path.join(HERE, "target/release/tandem"))
    parser.add_argument("--circuits", default=CIRCUITS)
    parser.add_argument("--protocols", default="plonk,fflonk")
    parser.add_argument("--memory", type=int, default=8, help="GiB that snarkjs may hold of public signals' polynomials")
    parser.add_argument("--cut", type=int, default=0, help="public signals whose polynomials snarkjs writes; all unless set")
    parser.add_argument("--folder", help="where the keys are made; a temporary folder unless set")
    parser.add_argument("--json", help="file to append rows to")
    options = parser.parse_args()
    for circuit in options.circuits.split(","):
        for protocol in options.protocols.split(","):
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                row = measure(options, protocol, circuit, folder)
            print(json.dumps(row), flush=True)
            if options.json:
                with open(options.json, "a", encoding="utf-8") as out:
                    out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
