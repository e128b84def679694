#!/usr/bin/env python3
"""Writes docs/performance/results.md, its plots and the tables of guides in docs/guides from the rows in bench/baselines.

    python3 bench/report.py            write them
    python3 bench/report.py --check    exit with 1 if what is there is not what would be written

Of rows with the same key (machine, what, size, number of GPUs, and so on) the last one of the file counts. Rows with a
"peer" or a "library" other than ours are of other people's code. No dependencies.
"""

import json
import math
import sys
import textwrap
from pathlib import Path

import end_to_end
import guides
import one_h100
import plonk_provers
import scaling

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "performance"
GUIDES = ROOT / "docs" / "guides"
MACHINES = {
    "h200x1": "one NVIDIA H200, 16 host cores, driver 580.159.04, CUDA 13.0",
    "h200x2": "two NVIDIA H200 of one host (NVLink, 18 links), 32 host cores, driver 580.159.04, CUDA 13.0",
    "h200x4": "four NVIDIA H200 of one host (NVLink), 64 host cores, CUDA 13.0",
    "h100x1": "one NVIDIA H100 80GB HBM3, CUDA 13.0",
    "h100x2": "two NVIDIA H100 80GB HBM3 of one host (NVLink), 32 host cores, driver 580.159.04, CUDA 13.0",
    "h100x4": "four NVIDIA H100 80GB HBM3 of one host (NVLink), 64 host cores, driver 580.159.04, CUDA 13.0",
    "cpu2": "two cores of an AMD EPYC",
}
# Of this only a guide tells.
OF_GUIDES = ["cpu64"]
# Of these only the page on scaling tells.
ALSO = {"h200x8": "eight NVIDIA H200 of one host (NVSwitch, 18 links), 128 host cores, CUDA 13.0"}
FIELDS = {
    "bn128": "BN254",
    "bn254": "BN254",
    "bls12381": "BLS12-381",
    "bls12_381": "BLS12-381",
    "bls12-381": "BLS12-381",
    "goldilocks": "Goldilocks",
    "baby-bear": "BabyBear",
}
SIZES = {4096: "4 KiB", 65536: "64 KiB", 1 << 20: "1 MiB", 16 << 20: "16 MiB", 256 << 20: "256 MiB", 1 << 30: "1 GiB"}


def load(machines):
    rows = []
    for machine in machines:
        with open(ROOT / "bench" / "baselines" / f"{machine}.jsonl", encoding="utf-8") as file:
            rows += [dict(json.loads(line), machine=machine) for line in file if line.strip()]
    return rows


def field(row):
    return FIELDS.get(row.get("curve") or row.get("field"))


def gpus(row):
    return str(row.get("device", "")).count("(cuda:")


def latest(rows, key):
    """The last row of each key; rows whose key is None are left out."""
    found = {key(row): row for row in rows}
    found.pop(None, None)
    return found


def digits(x, places=3):
    """A number with so many significant digits, and no exponent."""
    if x is None:
        return ""
    whole = int(math.floor(math.log10(abs(x)))) + 1 if x else 1
    return f"{x:,.{max(places - whole, 0)}f}".replace(",", " ")


def ms(row):
    return digits(row.get("ms_median", row.get("ms"))) if row else ""


def table(head, lines, ours=9):
    """A Markdown table, of the lines that have a value in the first columns, and without columns that have none."""
    lines = [line for line in lines if any(line[1 : 1 + ours])]
    kept = [i for i in range(len(head)) if i == 0 or any(line[i] for line in lines)]
    pick = lambda line: "| " + " | ".join(line[i] for i in kept) + " |"
    return "\n".join([pick(head), "|" + "---|" * len(kept)] + [pick(line) for line in lines]) + "\n"


def on(machine, text):
    """A paragraph that names the machine, wrapped."""
    return textwrap.fill(f"Machine: {MACHINES[machine]}. {text}", 118, break_on_hyphens=False)


def ratio(theirs, ours):
    return f"{theirs / ours:.2f}" if theirs and ours else ""


# ---------------------------------------------------------------------------------------------------------------- plots

COLOURS = ["#0b6e99", "#c2410c", "#3f7d20", "#7c3aed", "#a16207", "#be185d"]


def plot(title, x_label, y_label, series, x_text):
    """Lines as SVG: series is a list of (name, [(x, y), ...]), x a power of two by its exponent; y is on a log scale."""
    width, height, left, top, right, bottom = 720, 400, 64, 40, 190, 52
    xs = sorted({x for _, points in series for x, _ in points})
    ys = [y for _, points in series for _, y in points]
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
    ticks = [10.0**k for k in range(low, high + 1)]
    step = (width - left - right) / (xs[-1] - xs[0] + 1)
    at_x = lambda x: left + step * (x - xs[0] + 0.5)
    at_y = lambda y: height - bottom - (height - top - bottom) * (math.log10(y) - low) / (high - low)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{left}" y="22" font-size="15" fill="#111111">{title}</text>',
    ]
    for y in ticks:
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{at_y(y):.1f}" y2="{at_y(y):.1f}" stroke="#dddddd"/>')
        out.append(f'<text x="{left - 8}" y="{at_y(y) + 4:.1f}" text-anchor="end" fill="#444444">{y:g}</text>')
    for x in xs:
        out.append(
            f'<text x="{at_x(x):.1f}" y="{height - bottom + 18}" text-anchor="middle" fill="#444444">{x_text(x)}</text>'
        )
    middle = (left + width - right) / 2
    out.append(f'<text x="{middle:.1f}" y="{height - 12}" text-anchor="middle" fill="#111111">{x_label}</text>')
    turned = (top + height - bottom) / 2
    out.append(
        f'<text x="16" y="{turned:.1f}" text-anchor="middle" fill="#111111" '
        f'transform="rotate(-90 16 {turned:.1f})">{y_label}</text>'
    )
    for i, (name, points) in enumerate(series):
        colour = COLOURS[i % len(COLOURS)]
        line = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in sorted(points))
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{at_x(x):.1f}" cy="{at_y(y):.1f}" r="3" fill="{colour}"/>' for x, y in sorted(points)]
        at = top + 8 + 20 * i
        out.append(f'<rect x="{width - right + 12}" y="{at - 9}" width="12" height="12" fill="{colour}"/>')
        out.append(f'<text x="{width - right + 30}" y="{at + 2}" fill="#111111">{name}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


# ------------------------------------------------------------------------------------------------------------- sections

# Hashes of width 3 have another kernel since.
HASHES_SINCE = "2026-11-22T08"
# Random scalars were below 2^245 before this, which makes sums 2 to 5 % faster than scalars of full size do.
FULL_SIZE_SINCE = "2026-11-22T23:50"


def sums(rows, files):
    of = [r for r in rows if r["machine"] == "h200x2" and r.get("what", "").startswith("msm")]
    ours = latest(
        [r for r in of if "peer" not in r and r["date"] >= FULL_SIZE_SINCE],
        lambda r: (r["what"], field(r), r["log_n"], r["lanes"]),
    )
    theirs = latest([r for r in of if "peer" in r], lambda r: (r["what"], field(r), r["log_n"]))
    sizes = sorted({key[2] for key in ours})
    lines = []
    for what, group in (("msm_g1", "G1"), ("msm_g2", "G2")):
        for curve in ("BN254", "BLS12-381"):
            for n in sizes:
                one, two = ours.get((what, curve, n, 1)), ours.get((what, curve, n, 2))
                peer = theirs.get(("msm_resident", curve, n)) if what == "msm_g1" else None
                if n < 18:
                    continue
                lines.append(
                    [
                        f"{curve} {group}, 2^{n}",
                        ms(one),
                        ms(two),
                        ms(peer),
                        ratio(peer and peer["ms"], one and one["ms_median"]),
                    ]
                )
    hard = []
    kinds = ("equal", "two", "one", "window", "sparse")
    for n in (20, 22, 24):
        random = ours.get(("msm_g1", "BN254", n, 1))
        hard.append([f"BN254 G1, 2^{n}", ms(random)] + [ms(ours.get((f"msm_g1_{k}", "BN254", n, 1))) for k in kinds])
    line = lambda curve, lanes: [
        (n, ours["msm_g1", curve, n, lanes]["ms_median"])
        for n in range(18, 27, 2)
        if ("msm_g1", curve, n, lanes) in ours
    ]
    peer = [
        (n, theirs["msm_resident", "BN254", n]["ms"])
        for n in range(18, 25, 2)
        if ("msm_resident", "BN254", n) in theirs
    ]
    files["msm.svg"] = plot(
        "MSM in G1, ms",
        "points",
        "ms",
        [
            ("BN254, one GPU", line("BN254", 1)),
            ("BN254, two GPUs", line("BN254", 2)),
            ("BLS12-381, one GPU", line("BLS12-381", 1)),
            ("BLS12-381, two GPUs", line("BLS12-381", 2)),
            ("sppark, BN254, one GPU", peer),
        ],
        x_text=lambda n: f"2^{n}",
    )
    intro = on(
        "h200x2",
        "Points and scalars lie on the GPUs, scalars are random and of full size, the result is on the "
        "host. Times in ms, medians. sppark 0.1.16 has resident scalars too.",
    )
    return f"""## Multi-scalar multiplication (MSM)

{intro}

```sh
tandem --device cuda:0 bench msm --log-n 20..24 --runs 20     # and --g2, --curve bls12-381, --device cuda
sh bench/peers/sppark/build.sh && make gpu-bundle             # then gpu.sh in the bundle
```

{table(["", "one GPU", "two GPUs", "sppark, one GPU", "sppark / ours"], lines, ours=1)}
![MSM in G1](msm.svg)

Scalars that fill few buckets, one GPU (`--scalars equal,two,one,window,sparse`):

{table(["", "random", "all equal", "two values", "all 1", "one window", "99 % zero"], hard)}"""


def transforms(rows, files):
    of = [r for r in rows if r.get("what") == "ntt" and not {"coset", "inverse", "batch", "as"} & r.keys()]
    order = lambda r: r.get("order") or "NR"
    ours = latest(
        [r for r in of if "peer" not in r],
        lambda r: (r["machine"], field(r), r["log_n"], r.get("lanes", gpus(r)), order(r)),
    )
    theirs = latest([r for r in of if "peer" in r], lambda r: (r["machine"], field(r), r["log_n"], order(r)))

    def beside(fields, sizes):
        lines = []
        for name in fields:
            for n in sizes:
                for kind, words in (("NR", "natural to bit-reversed"), ("NN", "natural to natural")):
                    one, peer = ours.get(("h200x1", name, n, 1, kind)), theirs.get(("h200x1", name, n, kind))
                    lines.append(
                        [
                            f"{name} 2^{n}, {words}",
                            ms(one),
                            ms(peer),
                            ratio(peer and peer["ms"], one and one["ms_median"]),
                        ]
                    )
        return table(["", "ours", "sppark", "sppark / ours"], lines, ours=1)

    def spread(fields, sizes):
        lines = []
        for name in fields:
            for n in sizes:
                one, two = ours.get(("h200x2", name, n, 1, "NR")), ours.get(("h200x2", name, n, 2, "NR"))
                gain = ratio(one and one["ms_median"], two and two["ms_median"])
                lines.append([f"{name} 2^{n}", ms(one), ms(two), gain] if two else [""])
        return table(["", "one GPU", "two GPUs", "one / two"], lines)

    large, small = ("BN254", "BLS12-381"), ("Goldilocks", "BabyBear")
    points = lambda name: [
        (n, ours["h200x1", name, n, 1, "NR"]["ms_median"])
        for n in range(16, 28)
        if ("h200x1", name, n, 1, "NR") in ours
    ]
    files["transforms.svg"] = plot(
        "Transforms on one GPU, natural to bit-reversed, ms",
        "elements",
        "ms",
        [(name, points(name)) for name in large + small if points(name)],
        x_text=lambda n: f"2^{n}",
    )
    return f"""## Transforms (NTT)

{on("h200x1", "Data is resident. Times in ms, medians. sppark 0.1.16 ran beside.")}

```sh
tandem --device cuda:0 bench ntt --field bn254 --order nr --log-n 18..24 --runs 10
sh bench/peers/sppark/build.sh && make gpu-bundle             # then gpu.sh in the bundle
```

{beside(large, range(18, 25, 2))}
![Transforms on one GPU](transforms.svg)

One transform spread over two GPUs, natural to bit-reversed (`ntt.sh` in the bundle).
{on("h200x2", "")}

{spread(large, range(18, 33))}
## Small fields

{on("h200x1", "As above, with `--field goldilocks` and `--field baby-bear`.")}

{beside(small, [16, 18, 20, 22, 24, 27])}
Spread over two GPUs, natural to bit-reversed.
{on("h200x2", "")}

{spread(small, range(20, 28))}"""


def proofs(rows, files):
    def key(row):
        if row.get("what") != "groth16" or row["machine"] != "h200x2" or "--compare" not in row["command"]:
            return None
        words = [word for word in row["command"].split() if word.endswith(".zkey")]
        name = Path(words[0]).stem if words else ""
        return name, field(row), row["log_n"], gpus(row), row["schedule"]

    of = latest(rows, key)

    def lines(synthetic):
        out = []
        for name, curve, n in sorted({k[:3] for k in of}, key=lambda k: (k[1] != "BN254", k[0], k[2])):
            if synthetic == bool(name):
                continue
            one = of.get((name, curve, n, 1, "auto"))
            two, split, each = (of.get((name, curve, n, 2, s)) for s in ("auto", "split", "each"))
            times = f"{one['ms_median'] / one['bound_ms']:.1f}" if one and one.get("bound_ms") and synthetic else ""
            persec = digits(each["proofs_per_s"]) if each else ""
            out.append([f"{curve} 2^{n}" + (f", {name}" if name else ""), ms(one), times, ms(two), ms(split), persec])
        return table(
            [
                "",
                "one GPU",
                "times its bound",
                "two GPUs (`roles`)",
                "two GPUs (`split`)",
                "two GPUs (`each`), proofs a second",
            ],
            out,
        )

    line = lambda count: [
        (n, of["", "BN254", n, count, "auto"]["ms_median"])
        for n in range(16, 25)
        if ("", "BN254", n, count, "auto") in of
    ]
    files["proofs.svg"] = plot(
        "Groth16 proofs on BN254, ms",
        "rows",
        "ms",
        [("one GPU", line(1)), ("two GPUs", line(2))],
        x_text=lambda n: f"2^{n}",
    )
    intro = on(
        "h200x2",
        "From the witness in host memory to the verified proof, key resident, tables for a million "
        "proofs. Circuits are made up for the size, half of the witness is dense. Times in ms, medians.",
    )
    return f"""## Proofs

{intro}
"Times its bound" divides by the [least time of the multiplications](bounds.md#proofs).

```sh
make gpu-bundle          # then LARGE=1 sh groth16.sh in the bundle
tandem --device cuda bench groth16 --compare --log-n 20 --runs 20
```

{lines(True)}
![Groth16 proofs on BN254](proofs.svg)

Real circuits, whose witnesses are mostly bits. The GPU computes for 1 to 2 ms of each. The rest is the host's, and
differs from process to process.

{lines(False)}"""


def fabric(rows, files):
    of = [r for r in rows if r["machine"] == "h200x2"]
    by_library = latest([r for r in of if "library" in r], lambda r: (r["what"], r["library"], r["bytes"]))
    by_scope = latest(
        [r for r in of if r.get("peer", "").startswith("NVSHMEM")], lambda r: (r["what"], r["scope"], r["bytes"])
    )
    names = {
        "p2p": "copy",
        "broadcast": "broadcast",
        "allreduce": "all-reduce",
        "reduce": "reduce",
        "allgather": "all-gather",
        "reducescatter": "reduce-scatter",
        "alltoall": "all-to-all",
    }
    rates, calls = [], []
    for what, name in names.items():
        for library, words in (("tandem", "ours"), ("NCCL 2.28.9", "NCCL")):
            found = [by_library.get((what, library, size)) for size in SIZES]
            rates.append([f"{name}, {words}"] + [digits(r["algbw"]) if r else "" for r in found])
            calls.append(
                [f"{name}, {words}"] + [digits(r["us_latency"]) if r and r.get("us_latency") else "" for r in found]
            )
    moves = []
    for what in ("put", "get"):
        for ours, scope, words in (
            (f"tandem {what}, thread", "thread", "one thread"),
            (f"tandem {what}, warp", "warp", "one warp"),
            (f"tandem {what}, block", "block", "one block"),
            (f"tandem {what}, grid", "grid", "128 blocks"),
            (f"tandem {what} on a queue", "stream", "on a queue"),
        ):
            for library, found in (("ours", by_library), ("NVSHMEM", by_scope)):
                key = (what, ours) if found is by_library else (what, scope)
                line = [found.get((*key, size)) for size in list(SIZES)[:4]]
                moves.append([f"{what}, {words}, {library}"] + [digits(r["algbw"]) if r else "" for r in line])
    trips = [
        [
            words,
            digits(by_library[("pingpong", ours, 8)]["us_latency"]) if ("pingpong", ours, 8) in by_library else "",
            digits(by_scope[("pingpong", scope, 8)]["us"]) if ("pingpong", scope, 8) in by_scope else "",
        ]
        for words, ours, scope in (
            ("signal", "tandem signal", "signal"),
            ("atomic increment", "tandem atomic", "atomic"),
            ("8 bytes that travel with their signal (`send`)", "tandem message (LL)", ""),
            ("`put_signal`", "tandem put_signal", "put-signal"),
        )
    ]
    links = []
    for what in ("upload", "download"):
        for library in sorted({k[1] for k in by_library if k[0] == what}):
            found = [by_library.get((what, library, size)) for size in (16 << 20, 256 << 20, 1 << 30)]
            links.append([f"{what}: {library}"] + [digits(r["algbw"]) if r else "" for r in found])
    line = lambda what, library: [
        (size.bit_length() - 1, by_library[what, library, size]["us_latency"])
        for size in SIZES
        if (what, library, size) in by_library
    ]
    files["fabric.svg"] = plot(
        "One call from the host to its end on both GPUs, us",
        "size",
        "us",
        [
            (f"{name}, {words}", line(what, library))
            for what, name in (("broadcast", "broadcast"), ("allreduce", "all-reduce"))
            for library, words in (("tandem", "ours"), ("NCCL 2.28.9", "NCCL"))
        ],
        x_text=lambda exponent: SIZES[1 << exponent],
    )
    head = [""] + list(SIZES.values())
    return f"""## The fabric

{on("h200x2", "NVLink multicast is off. One command, `fabric.sh` in the bundle, beside NCCL 2.28.9 and NVSHMEM 3.4.5.")}

Rate of queued calls, GB/s, as nccl-tests count it (algbw: the size of the call over its time):

{table(head, rates)}
One call from the host until it is complete on both GPUs, us:

{table(head, calls)}
![One call](fabric.svg)

Put and get inside a kernel, GB/s:

{table([""] + list(SIZES.values())[:4], moves)}
Round trip of 8 bytes, us:

{table(["", "ours", "NVSHMEM"], trips)}
Host memory to one GPU and back, GB/s:

{table(["", "16 MiB", "256 MiB", "1 GiB"], links)}"""


def others(rows):
    of = [r for r in rows if r["machine"] == "h200x2" and "peer" not in r]
    hashes = latest(
        of,
        lambda r: (
            (r["what"], r["log_n"], gpus(r))
            if r["what"].startswith("poseidon") and r["date"] >= HASHES_SINCE
            else None
        ),
    )
    lines = []
    for what, words in (
        ("poseidon_tree_t3_circomlib", "tree of arity 2 over 2^{} leaves"),
        ("poseidon_columns_t12_circomlib", "2^{} columns of 11, pageable"),
        ("poseidon_columns_pinned_t12_circomlib", "2^{} columns of 11, page-locked"),
    ):
        for n in sorted({k[1] for k in hashes if k[0] == what}):
            lines.append([words.format(n)] + [ms(hashes.get((what, n, count))) for count in (1, 2)])
    sorts = latest(
        of,
        lambda r: (
            (r["what"], r["log_n"], r["lanes"], r["way"])
            if r["what"].startswith("sort") and r["keys"] == "random"
            else None
        ),
    )
    cub = latest(
        [r for r in rows if r.get("peer", "").startswith("CUB")],
        lambda r: (r["what"], r["log_n"]) if r.get("ms") else None,
    )
    sorted_lines = []
    for what, words in (
        ("sort_u64", "keys of 64 bits"),
        ("sort_u32", "keys of 32 bits"),
        ("sort_u64_pairs", "pairs of 64 bits"),
        ("sort_u32_pairs", "pairs of 32 bits"),
    ):
        for n in sorted({k[1] for k in sorts if k[0] == what}):
            one, two = sorts.get((what, n, 1, "alone")), sorts.get((what, n, 2, "partition"))
            sorted_lines.append([f"2^{n} {words}", ms(cub.get((what, n))), ms(one), ms(two)])
    reduced = latest(
        of,
        lambda r: (
            (r["data"], r["lanes"], r["way"]) if r["what"] == "reduce_sum_u64" and r.get("log_n") == 30 else None
        ),
    )
    reduce_lines = [
        [
            f"{data}, {way}",
            *(
                digits(reduced[data, lanes, way]["gb_per_s"]) if (data, lanes, way) in reduced else ""
                for lanes in (1, 2)
            ),
        ]
        for data, way in sorted({(k[0], k[2]) for k in reduced})
    ]
    on_cpu = lambda what: latest([r for r in rows if r["machine"] == "cpu2" and r["what"] == what], lambda r: r["circuit"])
    cpu, witnesses = on_cpu("prove_cli"), on_cpu("witness_cli")
    ways = ["module", "first", "third", "later", "all first", "all later", "node", "C++", "graph"]
    witness_lines = [
        [name] + [digits(row["ms_processors"][way]) if way in row["ms_processors"] else "" for way in ways]
        + [f"{row['ms_processors']['node'] / row['ms_processors']['first']:.2f}"]
        for name, row in sorted(witnesses.items())
        if "ms_processors" in row
    ]
    cpu_lines = [
        [name] + [digits(row["ms_median"][p]) for p in ("tandem", "rapidsnark", "snarkjs")]
        for name, row in sorted(cpu.items())
    ]
    return f"""## Poseidon, sorts, reductions

{on("h200x2", "")}

Poseidon over BN254 with circomlib's constants, ms (`tandem bench poseidon --tree`, `--arity 11`, `--pinned`):

{table(["", "one GPU", "two GPUs"], lines)}
Sorts of random resident keys, ms (`tandem bench sort --way partition`, `bench/peers/cub`):

{table(["", "CUB 3.0, one GPU", "one GPU", "two GPUs"], sorted_lines)}
Sum of 2^30 words of 64 bits, GB/s (`tandem bench reduce --log-n 30`). "lanes" is data in GPU memory, split over the
GPUs; "first" is all of it in the memory of the first GPU:

{table(["data", "one GPU", "two GPUs"], reduce_lines)}
## The CPU

{on("cpu2", "Whole programs from files to files, ms, published keys of `@reclaimprotocol/circom-symmetric-crypto`, BN254.")}
The command is `python3 bench/cpu_provers.py --rapidsnark PATH`.

{table(["", "tandem", "rapidsnark", "snarkjs 0.7.6"], cpu_lines)}
Witnesses, ms of the processors that whole programs take (`python3 bench/witness.py`). "module" is `tandem witness` without recordings.
"first", "third" and "later" are runs by default: a short program is recorded in the first, a longer one in the third, and later ones replay it on
other inputs. "all first" and "all later" are a first and a second run with `--recordings all`. "node" runs circom's WebAssembly as snarkjs does, "C++"
is what `circom --c` makes, "graph" is circom-witnesscalc.
The machine's load was up to {max(row.get("load", 0) for row in witnesses.values()):.0f}:

{table(["", *ways, "node / first"], witness_lines)}
{plonk_provers.table(rows, latest, digits, table)}"""


def report():
    rows = load(MACHINES)
    files = {}
    sections = [
        sums(rows, files),
        transforms(rows, files),
        proofs(rows, files),
        fabric(rows, files),
        others(rows),
        one_h100.section(rows, latest, digits, table, field, ms, ratio, on),
        end_to_end.tables(rows, latest, digits, table, on),
    ]
    head = """# Results

<!-- Generated by bench/report.py from bench/baselines. Do not edit. -->

The latest rows of [bench/baselines](../../bench/baselines), as tables. [How we measure](method.md) says what the figures
mean, [bounds](bounds.md) what could be reached. `python3 bench/report.py` writes this page.

"""
    files["results.md"] = head + "\n".join(sections)
    files["scaling.md"] = scaling.page(rows + load(ALSO), latest, digits, table, field)
    for name, text in guides.pages(GUIDES, rows + load(OF_GUIDES), latest, digits, table).items():
        files[f"../guides/{name}"] = text
    return files


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__)
        return 2
    files = report()
    stale = [
        name
        for name, text in files.items()
        if not (OUT / name).exists() or (OUT / name).read_text(encoding="utf-8") != text
    ]
    if arguments:
        for name in stale:
            print(f"{(OUT / name).resolve().relative_to(ROOT)} is not what bench/report.py writes: run python3 bench/report.py")
        return 1 if stale else 0
    OUT.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (OUT / name).write_text(files[name], encoding="utf-8")
        print(f"wrote {(OUT / name).resolve().relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
