#!/usr/bin/env python3
"""Prints how what several.sh measured scales: `python3 several.py FOLDER` with the folder that it wrote to.

A line for each circuit or primitive: its time on one GPU, that on several by each schedule or way, their ratio, and in parentheses the
one that the plan foretells. The exit status is 1 where `auto` takes more than 1.02 times what one GPU takes.
"""
import json
import re
import sys
from pathlib import Path

MOST = 1.02
PROOFS = ("groth16", "plonk", "fflonk")
SINGLE = ("ntt", "msm", "sort", "reduce", "poseidon")


def gpus(row):
    """How many GPUs a row was measured on: the lanes that worked, where they are counted."""
    lanes = row.get("lanes")
    return lanes if isinstance(lanes, int) else row["device"].count("cuda:")


def subject(row):
    """What was measured, the devices and the schedule aside."""
    keys = [Path(word).stem for word in row.get("command", "").split() if word.endswith(".zkey")]
    of = row.get("field") or row.get("curve") or ""
    return (row["what"], of, row["log_n"], row.get("order") or row.get("data") or "", keys[0] if keys else "")


def is_ours(row):
    """Whether a row has the time of one of our primitives or proofs."""
    what = row.get("what", "")
    return "peer" not in row and "ms_median" in row and (what in PROOFS or what.split("_")[0] in SINGLE)


def lines(folder):
    """The table's lines, and how many are slower on several GPUs than on one."""
    # The best of several rows: a small proof differs by a third from process to process.
    alone, spread, foretold = {}, {}, {}
    for path in sorted(folder.glob("*/*.jsonl")):
        for text in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(text)
            if not is_ours(row):
                continue
            if row["device"].count("cuda:") == 1 or gpus(row) == 1 and "schedule" not in row:
                alone[subject(row)] = min(row["ms_median"], alone.get(subject(row), float("inf")))
            else:
                schedule = row.get("schedule") or row.get("way") or "spread"
                # With a proof on each GPU, what counts is proofs a second.
                took = 1e3 / row["proofs_per_s"] if schedule == "each" else row["ms_median"]
                at = (subject(row), gpus(row), schedule)
                spread[at] = min(took, spread.get(at, float("inf")))
                plan = re.search(r"foretold: ([0-9.]+)", row.get("plan") or "")
                foretold[at] = plan[1] if plan else ""
    slower = 0
    for (found, count, schedule), took in spread.items():
        what, of, log_n, order, key = found
        one = alone.get(found)
        if one is None:
            continue
        worse = schedule == "auto" and took > MOST * one
        slower += worse
        words = " ".join(f"{what} {of} 2^{log_n} {order or key}".split())
        plan = foretold[found, count, schedule]
        yield f"{words:30} {count} GPUs {schedule:9} {one:7.2f} {took:7.2f} ms {one / took:5.2f}" + (
            f" ({plan})" if plan else ""
        ) + ("  SLOWER" if worse else "")
    yield slower


def jobs(folder):
    """What some of the GPUs did together, beside the rate that the plan foretells."""
    for path in sorted(folder.glob("*/*.jsonl")):
        for text in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(text)
            if "among" in row and "plan_gbs" in row:
                rate, plan = row["algbw"], row["plan_gbs"]
                yield f"{row['what']:13} GPUs {row['among']} {row['bytes']:>11} B {rate:8.1f} of {plan:6.1f} GB/s {rate / plan:5.2f}"


def main():
    *table, slower = lines(Path(sys.argv[1]))
    print("\n".join(table) if table else "no rows of one GPU and of several")
    for line in jobs(Path(sys.argv[1])):
        print(line)
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
