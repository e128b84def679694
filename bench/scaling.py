"""docs/performance/scaling.md: how proofs, primitives and copies scale from one GPU to eight, from the rows of machines with several."""

SCALES = ("h100x2", "h100x4")
# Where copies among four GPUs are measured.
COPIES = "h200x4"
# Where everything among eight is, if there are rows.
EIGHT = "h200x8"
WORDS = {2: "two", 4: "four", 8: "eight"}
PROVERS = {"groth16": "Groth16", "plonk": "PLONK"}
COLLECTIVES = {
    "broadcast": "broadcast",
    "reduce": "reduce",
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "alltoall": "all-to-all",
}
SIZES = {4096: "4 KiB", 1 << 20: "1 MiB", 16 << 20: "16 MiB", 256 << 20: "256 MiB", 1 << 30: "1 GiB"}


def gpus(row):
    """How many GPUs a row was measured on: the lanes that worked, where they are counted."""
    lanes = row.get("lanes")
    return lanes if isinstance(lanes, int) else row["device"].count("cuda:")


def proofs(rows, counts, latest, digits, field):
    """A line for each proof: on one GPU, on so many, and a proof on each of so many."""
    # One GPU is that of the machine with most of them that has such a row: GPUs of a kind differ by some hundredths.
    def key(row):
        if row["what"] not in PROVERS or ".zkey" in row["command"] or "peer" in row or row["schedule"] not in ("auto", "each"):
            return None
        return list(PROVERS).index(row["what"]), field(row) != "BN254", row["log_n"], gpus(row), row["schedule"]

    found = latest(rows, key)
    lines = []
    for at in sorted({key[:3] for key in found}):
        one = found.get((*at, 1, "auto"))
        several = [found.get((*at, count, "auto")) for count in counts]
        each = [found.get((*at, count, "each")) for count in counts]
        if not one or not any(several + each):
            continue
        line = [f"{PROVERS[one['what']]} {field(one)} 2^{one['log_n']}", digits(one["ms_median"])]
        for row in several:
            line += [digits(row["ms_median"]), f"{one['ms_median'] / row['ms_median']:.2f}"] if row else ["", ""]
        line += [f"{row['proofs_per_s'] / one['proofs_per_s']:.2f}" if row else "" for row in each]
        lines.append(line)
    return lines


def primitives(rows, counts, latest, digits, field):
    """A line for each primitive: on one GPU, and on so many."""
    def key(row):
        what = row["what"].split("_")[0]
        if what not in ("ntt", "msm", "sort", "reduce") or "ms_median" not in row or "peer" in row:
            return None
        if what == "ntt" and (row.get("order") != "NR" or "--as" in row["command"]) or row.get("data") not in (None, "lanes") or row.get("keys", "random") != "random":
            return None
        if row.get("way") in ("merge", "read from the first") or row["what"] == "reduce_sum_u64" and row["log_n"] != 29:
            return None
        return row["what"], field(row) or "", row["log_n"], gpus(row)

    of = latest(rows, key)
    names = {"ntt": "NTT", "msm_g1": "MSM G1", "msm_g2": "MSM G2", "sort_u64": "sort, keys of 64 bits", "sort_u64_pairs": "sort, pairs of 64 bits",
             "reduce_sum_u64": "sum of words of 64 bits"}
    lines = []
    for at in sorted({key[:3] for key in of}, key=lambda key: (list(names).index(key[0]), key[1], key[2])):
        one, several = of.get((*at, 1)), [of.get((*at, count)) for count in counts]
        if not any(several):
            continue
        line = [f"{names[at[0]]} {at[1]} 2^{at[2]}".replace("  ", " "), digits(one["ms_median"]) if one else ""]
        for row in several:
            line += [digits(row["ms_median"]) if row else "", f"{one['ms_median'] / row['ms_median']:.2f}" if row and one else ""]
        lines.append(line)
    return lines


def copies(calls, count, digits):
    """Collectives of all GPUs beside NCCL's, and host memory to and from one over one link and over all."""
    collectives = []
    for what, name in COLLECTIVES.items():
        for library, words in (("tandem", "ours"), ("NCCL 2.28.9", "NCCL")):
            at = [calls.get((what, library, size)) for size in SIZES]
            if any(at):
                small = [digits(row["us_latency"]) if row else "" for row in at[:2]]
                collectives.append([f"{name}, {words}"] + small + [digits(row["algbw"]) if row else "" for row in at[2:]])
    links = []
    for what, name in (("upload", "host memory to one GPU"), ("download", "one GPU to host memory")):
        for library, words in (("tandem, one link, pinned", "one link"), ("tandem, all links, pinned", f"{WORDS[count]} links")):
            row = calls.get((what, library, 1 << 30))
            links.append([f"{name}, {words}", digits(row["algbw"]) if row else ""])
    return collectives, links


def of_two(jobs, digits):
    """Two GPUs as a job, with the others as helpers."""
    lines = []
    for what, name in COLLECTIVES.items():
        ours, theirs = jobs.get((what, "tandem", 1 << 30)), jobs.get((what, "NCCL 2.28.9", 1 << 30))
        if ours:
            lines.append([name, digits(ours["plan_gbs"]), digits(ours["algbw"]), f"{ours['algbw'] / ours['plan_gbs']:.2f}",
                          digits(theirs["algbw"]) if theirs else ""])
    return lines


def eight(rows, latest, digits, table, field):
    """The section of eight GPUs, where there are rows."""
    of_proofs = [row for row in rows if row["machine"] in (EIGHT, COPIES)]
    rows = [row for row in rows if row["machine"] == EIGHT]
    if not rows:
        return ""
    call = lambda row: None if "library" not in row or "among" in row else (row["what"], row["library"], row["bytes"])
    collectives, links = copies(latest(rows, call), 8, digits)
    jobs = latest([row for row in rows if "among" in row], lambda row: (row["what"], row["library"], row["bytes"]))
    return f"""

## Eight GPUs

The same on eight NVIDIA H200 of one host, which an NVSwitch joins. The one GPU is one of these. The proofs on four ran on
another host.

{table(["", "one GPU", "four GPUs", "one / four", "eight GPUs", "one / eight", "`each`, four", "`each`, eight"],
       proofs(of_proofs, [4, 8], latest, digits, field), ours=5)}
Groth16 on eight was measured when two lanes uploaded the witness and the others got it from the first, one after the other. Now all upload a piece
and exchange, as on four, and three lanes transform; the plan foretells 27 ms at 2^24, which has not run. PLONK on eight was measured
when the first GPU did all but its shares of sums and cosets; 29 ms are foretold at 2^22.

{table(["", "one GPU", "eight GPUs", "one / eight"], primitives(rows, [8], latest, digits, field), ours=3)}
Copies among all eight, as above:

{table(COPIED, collectives)}
- **All to all reach each other** over the switch at the rate of a link, so exchanges and sums need no relays: each GPU reads and writes the
  memory of all. Only what has one root goes along a chain.
- **The bound.** Each GPU sends and gets 7/8 of the data of an all-gather, a reduce-scatter or an all-to-all: at the 371 GB/s of a link
  each way that is 424 GB/s. An all-reduce does it twice, 212 GB/s. Kernels that store reach 365 of the 371.
- **A queued call** is a kernel on each GPU, and the host launches one after the other, some 7 us each: little data takes 8 times that, however
  it is moved. A call by itself has no launch while the kernels stay that look at a mailbox.

Two of the eight as a job, 1 GiB:

{table(["", "plan, GB/s", "ours", "ours / plan", "NCCL"], of_two(jobs, digits))}
Host memory to and from one GPU, 1 GiB, page-locked, GB/s:

{table(["", "GB/s"], links, ours=1)}
- **A link more** costs the start of its workers, so 16 MiB go over two links, 64 over three, and 1 GiB over all. Each slot by itself carries
  52 GB/s. What holds eight at once to half of that is not known; the machine tells of nothing that they share.
""".rstrip("\n")


COPIED = ["", "4 KiB, us", "1 MiB, us", "16 MiB", "256 MiB", "1 GiB"]


def page(rows, latest, digits, table, field):
    measured = [row for row in rows if row["machine"] in (*SCALES, COPIES) and "library" in row]
    ordered = sorted((row for row in rows if row["machine"] in SCALES), key=lambda row: row["machine"])
    calls = latest([row for row in measured if row["machine"] == COPIES], lambda row: (row["what"], row["library"], row["bytes"]))
    collectives, links = copies(calls, 4, digits)
    jobs = latest([row for row in measured if "among" in row], lambda row: (row["what"], row["library"], row["bytes"]))

    head = ["", "one GPU", "two GPUs", "one / two", "four GPUs", "one / four"]
    return f"""# How it scales

<!-- Generated by bench/report.py from bench/baselines. Do not edit. -->

From one GPU to four of one host, then [eight](#eight-gpus), and what binds at each step. Machines: two, and four, NVIDIA H100 80GB HBM3
(NVLink, 18 links). Times in ms, medians. `sh several.sh` in the bundle measures all of it on as many GPUs as there are
([method](method.md)).

## Proofs

Key resident, circuits made up for the size. One proof over all GPUs (`--schedule auto`), and, in the last columns, how many
times as many proofs a second where each GPU makes its own (`--schedule each`).

{table(head + ["`each`, two", "`each`, four"], proofs(ordered, [2, 4], latest, digits, field), ours=7)}
- **A proof a GPU scales best.** GPUs share nothing then. Take it where several proofs wait.
- **One proof of 2^22 rows**: each of four GPUs computes for little more than a fourth of the time (`lanes` in the rows). What is left does not
  shrink: the upload that every GPU begins with (the witness crosses four links, and is then exchanged), the longest sum in G2, and the
  end: the last sum's buckets, C, and the pairing equation.
- **One proof of 2^16 rows**: the host's own work takes as long as the GPU's. `auto` takes two GPUs of four. Processes differ by a
  third here.
- **PLONK has five rounds**, each of which waits for the transcript. When these figures were taken, all that stands between the sums was the
  first GPU's but for the cosets of the quotient, and copies went in the order of its work. Now the first GPU has the grand product, evaluations
  and divisions, and copies run beside its work ([plan](../design/plonk.md#several-lanes)).

## Primitives

Data is on the GPUs before and after.

{table(head, primitives(ordered, [2, 4], latest, digits, field), ours=5)}
- **A transform** exchanges all its data once. Each of n GPUs sends (n - 1) / n of its share, which shrinks with n. Small fields compute less for each byte, and the exchange binds sooner.
- **A sort** by partition sends each key straight to the GPU that sorts it.

## Copies among four GPUs

GB/s of queued calls as nccl-tests count them (algbw), and for the first two sizes the time of one call in us. Four NVIDIA H200 of one
host; NVLink multicast is off.

{table(COPIED, collectives)}
- **Small calls** take a ninth to a half of NCCL's time: a kernel that stays looks at a mailbox, so there is no launch.
- **A broadcast and an all-reduce** pass data along chains of GPUs. A chunk is there whole before it is passed on, so a chain takes some
  chunks to fill.

Two of the four GPUs as a job, 1 GiB (`--among 0,1`), beside the plan's rate. With a switch between them the other two are of no
help, and the plan says so. A broadcast exceeds it, since it also takes the way through host memory.

{table(["", "plan, GB/s", "ours", "ours / plan", "NCCL"], of_two(jobs, digits))}
Host memory to and from one GPU, 1 GiB, page-locked, GB/s. The idle GPUs' PCIe links carry pieces, which reach their GPU by NVLink.

{table(["", "GB/s"], links, ours=1).rstrip()}{eight(rows, latest, digits, table, field)}
"""
