#!/usr/bin/env python3
"""Prints how what several.sh measured scales: `python3 several.py FOLDER` with the folder that it wrote to.

A line for each circuit or transform: its time on one GPU, that on several by each schedule, and their ratio. The exit status is 1
where `auto` takes more than 1.02 times what one GPU takes.
"""
import json
import sys
from pathlib import Path

MOST = 1.02


def gpus(row):
    """How many GPUs a row was measured on."""
    return row["device"].count("cuda:")


def subject(row):
    """What was measured, the devices and the schedule aside."""
    keys = [Path(word).stem for word in row.get("command", "").split() if word.endswith(".zkey")]
    of = row.get("curve") or row.get("field")
    return (row["what"], of, row["log_n"], row.get("order") or "", keys[0] if keys else "")


def lines(folder):
    """The table's lines, and how many are slower on several GPUs than on one."""
    alone, spread = {}, []
    for path in sorted(folder.glob("*/*.jsonl")):
        for text in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(text)
            if row.get("what") not in ("groth16", "ntt") or "peer" in row:
                continue
            if gpus(row) == 1:
                alone[subject(row)] = min(row["ms_median"], alone.get(subject(row), float("inf")))
            else:
                spread.append(row)
    slower = 0
    for row in spread:
        what, of, log_n, order, key = subject(row)
        one = alone.get(subject(row))
        schedule = row.get("schedule", "spread")
        if one is None:
            continue
        # With a proof on each GPU, what counts is proofs a second.
        took = 1e3 / row["proofs_per_s"] if schedule == "each" else row["ms_median"]
        worse = schedule == "auto" and took > MOST * one
        slower += worse
        words = f"{what} {of} 2^{log_n} {order or key}".strip()
        yield f"{words:44} {gpus(row)} GPUs {schedule:7} {one:9.2f} {took:9.2f} ms {one / took:5.2f}" + (
            "  SLOWER" if worse else ""
        )
    yield slower


def main():
    *table, slower = lines(Path(sys.argv[1]))
    print("\n".join(table) if table else "no rows of one GPU and of several")
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
