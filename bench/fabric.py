"""Tables of the rows that bench/fabric.sh wrote: python3 bench/fabric.py rows.jsonl"""

import json
import sys

UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def size(n):
    for unit, name in UNITS:
        if n >= unit and n % unit == 0:
            return f"{n // unit} {name}"
    return f"{n} B"


def table(title, head, lines):
    if not lines:
        return
    rows = [head] + lines
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(head))]
    print(f"\n{title}\n")
    for n, row in enumerate(rows):
        print("| " + " | ".join(str(cell).ljust(w) for cell, w in zip(row, widths)) + " |")
        if n == 0:
            print("|" + "|".join("-" * (w + 2) for w in widths) + "|")


def name(row):
    if "library" in row:
        return row["library"]
    return f"{row['peer'].split()[0]} {row['what']}, {row['scope']}"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    for row in rows:
        row.setdefault("us_queued", row.get("us"))
        row.setdefault("us_latency", row.get("us"))

    def of(what):
        return [row for row in rows if row.get("what") == what and "algbw" in row]

    def by_size(title, what, sizes=None, latency=True):
        """One line a size, one column a library: GB/s, and below 4 MiB microseconds of one call."""
        found = of(what)
        names = list(dict.fromkeys(name(row) for row in found))
        lines = []
        for n in sorted({row["bytes"] for row in found}):
            if sizes and n not in sizes:
                continue
            line = [size(n)]
            for column in names:
                row = next((r for r in found if r["bytes"] == n and name(r) == column), None)
                if row is None:
                    line.append("-")
                elif latency and n < 4 << 20:
                    line.append(f"{row['algbw']:.2f} ({row['us_latency']:.1f} us)")
                else:
                    line.append(f"{row['algbw']:.1f}")
            lines.append(line)
        table(title, ["size"] + names, lines)

    by_size("Copies between two GPUs: GB/s of queued calls (and one call to its end)", "p2p")
    by_size("Host memory to one GPU, GB/s", "upload", latency=False)
    by_size("One GPU to host memory, GB/s", "download", latency=False)
    by_size("Put from a kernel, GB/s", "put", latency=False)
    by_size("Get in a kernel, GB/s", "get", latency=False)
    table("Ping-pong of 8 bytes", ["", "round trip, us"], [[name(r), f"{r['us_latency']:.2f}"] for r in of("pingpong")])
    table("Collectives of 8 bytes inside kernels", ["", "us"], [[name(r), f"{r['us_latency']:.2f}"] for r in of("inside")])
    for what in ("broadcast", "allreduce", "alltoall", "reduce", "allgather", "reducescatter"):
        by_size(f"{what}: algbw GB/s of queued calls (and one call to its end)", what)
    sums = [row for row in rows if row.get("what") == "reduce_sum_u64"]
    ways = [[str(row["lanes"]), row["way"], row["data"], f"{row['ms_median']:.2f}", f"{row['gb_per_s']:.1f}"] for row in sums]
    table("Sum of 2^29 words of 64 bits", ["GPUs", "way", "data in", "ms", "GB/s"], ways)
    wrong = sum(row.get("wrong") or 0 for row in rows)
    print(f"\n{len(rows)} rows, {wrong} wrong elements")


main()
