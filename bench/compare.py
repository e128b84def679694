#!/usr/bin/env python3
"""Prints rows of `tandem bench` beside those of peers: python3 bench/compare.py rows.jsonl

Rows with a "peer" are theirs. The ratio is their time over ours: above 1, ours is faster. Sums with scalars that are hard on
buckets have the time of random ones over theirs; at least 0.5 is wanted.
"""
import json
import re
import sys

# Rows of numbers have no curve.
CURVES = {
    None: "",
    "bn128": "BN254",
    "bn254": "BN254",
    "bls12381": "BLS12-381",
    "bls12_381": "BLS12-381",
    "goldilocks": "Goldilocks",
    "baby-bear": "BabyBear",
}
# What of ours does the work of what of theirs, if not of the same. Sums: scalars on the device, result on the host.
SAME = {"msm_g1": "msm_resident"}
HARD = re.compile(r"(msm_g[12])_\w+")


def field(row):
    """The curve or the field of a row."""
    return CURVES[row.get("curve") or row.get("field")]


def order(row):
    """The orders of a transform before and after; older rows are all of natural to bit-reversed."""
    return row.get("order") or ("NR" if row["what"] == "ntt" else "")


def main(path):
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    if not any("peer" not in row and "what" in row for row in rows):
        sys.exit(f"compare.py: {path} has no row of ours")
    theirs = {}
    sums = [row for row in rows if "peer" not in row and row.get("what") in ("msm_g1", "msm_g2")]
    random = {(row["what"], field(row), row["log_n"]): row for row in sums}
    for row in rows:
        if "peer" in row and "what" in row:
            theirs[row["what"], order(row), field(row), row["log_n"]] = row
    print(f"{'':<14} {'curve':<10} {'size':>5} {'ours ms':>10} {'peer ms':>10} {'ratio':>7}  peer")
    ours = [row for row in rows if "peer" not in row and "what" in row]
    for row in sorted(ours, key=lambda r: (r["what"], field(r), order(r), r["log_n"])):
        # Transforms over cosets, inverses and batches have no peer.
        plain = not {"coset", "inverse", "batch"} & row.keys()
        what = SAME.get(row["what"], row["what"])
        peer = theirs.get((what, order(row), field(row), row["log_n"])) if plain else None
        line = f"{row['what'] + ' ' + order(row):<14} {field(row):<10} 2^{row['log_n']:<3} {row['ms_median']:>10.3f}"
        if peer:
            # From the call until the host has the result, where that is what ours is.
            ms = peer.get("ms_to_host", peer["ms"])
            line += f" {ms:>10.3f} {ms / row['ms_median']:>7.2f}  {peer['peer']}"
        hard = HARD.fullmatch(row["what"])
        easy = random.get((hard[1], field(row), row["log_n"])) if hard else None
        if easy:
            line += f" {easy['ms_median']:>10.3f} {easy['ms_median'] / row['ms_median']:>7.2f}  random scalars"
        print(line)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: compare.py ROWS.jsonl")
    main(sys.argv[1])
