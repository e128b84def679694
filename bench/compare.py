#!/usr/bin/env python3
"""Prints rows of `tandem bench` beside those of peers, or beside those of before.

    python3 bench/compare.py ROWS.jsonl               beside peers
    python3 bench/compare.py ROWS.jsonl --gate 5%     beside the last rows of the same devices in bench/baselines

Rows with a "peer" are theirs. The ratio is their time over ours: above 1, ours is faster. Sums with scalars that are hard on
buckets have the time of random ones over theirs; at least 0.5 is wanted.

The gate's exit status: 0 if no row takes longer than before by more than the tolerance, 1 if one does, 3 if there is nothing
to compare.
"""
import argparse
import json
import re
import sys
from pathlib import Path

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
    """The curve or the field of a row, or the precision of its numbers."""
    return CURVES[row.get("curve") or row.get("field")] or row.get("precision", "")


def order(row):
    """The orders of a transform before and after; older rows are all of natural to bit-reversed."""
    return row.get("order") or ("NR" if row["what"] == "ntt" else "")


def load(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


# What a row measured, and where it comes from. All other fields say what was measured.
MEASURED = {"algbw", "bound_ms", "busbw", "command", "commit", "date", "gb_per_s", "gkeys_per_s", "ms_median", "ms_min"}
MEASURED |= {"load", "memory_bytes", "mib", "ms_processors", "sent_bytes"}
MEASURED |= {"plan_gb_per_s", "proofs_per_s", "runs", "stages", "through_host", "us_latency", "us_queued", "wrong"}


def kind(row):
    """What a row is of, the device included, whichever of several equal GPUs it was."""
    said = {key: value for key, value in row.items() if key not in MEASURED and not isinstance(value, list)}
    said["device"] = re.sub(r" \(cuda:\d+\)", "", str(row.get("device")))
    return json.dumps(said, sort_keys=True)


def took(row):
    """Our time in ms, or None for a row that is not ours or has none."""
    if "peer" in row or not row.get("library", "tandem").startswith("tandem"):
        return None
    ms = row.get("ms_median") or (row.get("us_queued") or row.get("us_latency") or 0) / 1000
    return ms.get("tandem") if isinstance(ms, dict) else ms or None


def gate(rows, tolerance, baselines):
    """Prints each row of ours with its time before; see the top for the result."""
    before = {}
    for path in sorted(baselines.glob("*.jsonl")):
        before.update({kind(row): took(row) for row in load(path) if took(row)})
    compared, slower = 0, 0
    for row in (row for row in rows if took(row)):
        was = before.get(kind(row))
        if was is None:
            continue
        compared += 1
        ratio = took(row) / was
        late = ratio > 1 + tolerance
        slower += late
        named = ("what", "curve", "field", "circuit", "log_n", "sides", "bytes", "schedule", "order")
        words = " ".join(str(row[key]) for key in named if row.get(key))
        print(f"{words:<40} {was:>10.3f} ms before, {took(row):>10.3f} ms now, {ratio:.3f}{'  SLOWER' if late else ''}")
    ours = sum(1 for row in rows if took(row))
    if not compared:
        print(f"nothing to compare: {baselines} has no row like one of these {ours}, of the same device")
        return 3
    print(f"{compared} of {ours} rows compared, {slower} slower by more than {100 * tolerance:g}%")
    return 1 if slower else 0


def percent(text):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)%", text)
    if not match:
        raise argparse.ArgumentTypeError(f"expected a share such as 5%, not {text}")
    return float(match[1]) / 100


def beside_peers(path):
    rows = load(path)
    if not any("peer" not in row and "what" in row for row in rows):
        sys.exit(f"compare.py: {path} has no row of ours")
    theirs = {}
    sums = [row for row in rows if "peer" not in row and row.get("what") in ("msm_g1", "msm_g2")]
    random = {(row["what"], field(row), row["log_n"]): row for row in sums}
    for row in rows:
        if "peer" in row and "what" in row:
            theirs[row["what"], order(row), field(row), row["log_n"], row.get("sides")] = row
    print(f"{'':<14} {'curve':<10} {'size':>5} {'ours ms':>10} {'peer ms':>10} {'ratio':>7}  peer")
    ours = [row for row in rows if "peer" not in row and "what" in row]
    for row in sorted(ours, key=lambda r: (r["what"], field(r), order(r), r["log_n"])):
        # Transforms over cosets, inverses and batches have no peer.
        plain = not {"coset", "inverse", "batch"} & row.keys()
        what = SAME.get(row["what"], row["what"])
        peer = theirs.get((what, order(row), field(row), row["log_n"], row.get("sides"))) if plain else None
        line = f"{row['what'] + ' ' + row.get('sides', order(row)):<14} {field(row):<10} 2^{row['log_n']:<3} {row['ms_median']:>10.3f}"
        if peer:
            # From the call until the host has the result, where that is what ours is.
            ms = peer.get("ms_to_host", peer["ms"])
            line += f" {ms:>10.3f} {ms / row['ms_median']:>7.2f}  {peer['peer']}"
        hard = HARD.fullmatch(row["what"])
        easy = random.get((hard[1], field(row), row["log_n"])) if hard else None
        if easy:
            line += f" {easy['ms_median']:>10.3f} {easy['ms_median'] / row['ms_median']:>7.2f}  random scalars"
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", metavar="ROWS.jsonl")
    parser.add_argument("--gate", metavar="5%", type=percent)
    parser.add_argument("--baselines", metavar="FOLDER", type=Path, default=Path(__file__).resolve().parent / "baselines")
    arguments = parser.parse_args()
    if arguments.gate is None:
        return beside_peers(arguments.rows)
    return gate(load(arguments.rows), arguments.gate, arguments.baselines)


if __name__ == "__main__":
    sys.exit(main())
