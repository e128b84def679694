"""docs/performance/scaling.md: how proofs, primitives and copies scale from one GPU to four, from the rows of machines with several."""

SCALES = ("h100x2", "h100x4")
# Where copies among four GPUs are measured.
COPIES = "h200x4"
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


def page(rows, latest, digits, table, field):
    copies = [row for row in rows if row["machine"] in (*SCALES, COPIES) and "library" in row]
    rows = [row for row in rows if row["machine"] in SCALES]
    # One GPU is that of the machine with most of them that has such a row: GPUs of a kind differ by some hundredths.
    ordered = sorted(rows, key=lambda row: row["machine"])
    made_up = lambda row: row["what"] in PROVERS and ".zkey" not in row["command"] and "peer" not in row

    def proof(row):
        if not made_up(row) or row["schedule"] not in ("auto", "each"):
            return None
        return list(PROVERS).index(row["what"]), field(row) != "BN254", row["log_n"], gpus(row), row["schedule"]

    found = latest(ordered, lambda row: proof(row) if made_up(row) else None)
    proofs = []
    for at in sorted({key[:3] for key in found}):
        one = found.get((*at, 1, "auto"))
        if not one:
            continue
        several = [found.get((*at, count, "auto")) for count in (2, 4)]
        each = [found.get((*at, count, "each")) for count in (2, 4)]
        line = [f"{PROVERS[one['what']]} {field(one)} 2^{one['log_n']}", digits(one["ms_median"])]
        for row in several:
            line += [digits(row["ms_median"]), f"{one['ms_median'] / row['ms_median']:.2f}"] if row else ["", ""]
        line += [f"{row['proofs_per_s'] / one['proofs_per_s']:.2f}" if row else "" for row in each]
        proofs.append(line)

    def single(row):
        what = row["what"].split("_")[0]
        if what not in ("ntt", "msm", "sort", "reduce") or "ms_median" not in row or "peer" in row:
            return None
        if what == "ntt" and row.get("order") != "NR" or row.get("data") not in (None, "lanes") or row.get("keys", "random") != "random":
            return None
        if row.get("way") in ("merge", "read from the first") or row["what"] == "reduce_sum_u64" and row["log_n"] != 29:
            return None
        return row["what"], field(row) or "", row["log_n"], gpus(row)

    of = latest(ordered, single)
    names = {"ntt": "NTT", "msm_g1": "MSM G1", "msm_g2": "MSM G2", "sort_u64": "sort, keys of 64 bits", "sort_u64_pairs": "sort, pairs of 64 bits",
             "reduce_sum_u64": "sum of words of 64 bits"}
    primitives = []
    for at in sorted({key[:3] for key in of}, key=lambda key: (list(names).index(key[0]), key[1], key[2])):
        one, two, four = (of.get((*at, count)) for count in (1, 2, 4))
        if not (two or four):
            continue
        line = [f"{names[at[0]]} {at[1]} 2^{at[2]}".replace("  ", " "), digits(one["ms_median"]) if one else ""]
        for row in (two, four):
            line += [digits(row["ms_median"]) if row else "", f"{one['ms_median'] / row['ms_median']:.2f}" if row and one else ""]
        primitives.append(line)

    calls = latest([row for row in copies if row["machine"] == COPIES], lambda row: (row["what"], row["library"], row["bytes"]))
    collectives = []
    for what, name in COLLECTIVES.items():
        for library, words in (("tandem", "ours"), ("NCCL 2.28.9", "NCCL")):
            at = [calls.get((what, library, size)) for size in SIZES]
            small = [digits(row["us_latency"]) if row else "" for row in at[:2]]
            collectives.append([f"{name}, {words}"] + small + [digits(row["algbw"]) if row else "" for row in at[2:]])
    jobs = latest([row for row in copies if "among" in row], lambda row: (row["what"], row["library"], row["bytes"]))
    of_two = []
    for what, name in COLLECTIVES.items():
        ours, theirs = jobs.get((what, "tandem", 1 << 30)), jobs.get((what, "NCCL 2.28.9", 1 << 30))
        if ours:
            of_two.append([name, digits(ours["plan_gbs"]), digits(ours["algbw"]), f"{ours['algbw'] / ours['plan_gbs']:.2f}",
                           digits(theirs["algbw"]) if theirs else ""])
    links = []
    for what, name in (("upload", "host memory to one GPU"), ("download", "one GPU to host memory")):
        for library, words in (("tandem, one link, pinned", "one link"), ("tandem, all links, pinned", "four links")):
            row = calls.get((what, library, 1 << 30))
            links.append([f"{name}, {words}", digits(row["algbw"]) if row else ""])

    head = ["", "one GPU", "two GPUs", "one / two", "four GPUs", "one / four"]
    return f"""# How it scales

<!-- Generated by bench/report.py from bench/baselines. Do not edit. -->

From one GPU to four of one host, and what binds at each step. Machines: two, and four, NVIDIA H100 80GB HBM3 (NVLink, 18 links).
Times in ms, medians. `sh several.sh` in the bundle measures all of it on as many GPUs as there are
([method](method.md)).

## Proofs

Key resident, circuits made up for the size. One proof over all GPUs (`--schedule auto`), and, in the last columns, how many
times as many proofs a second where each GPU makes its own (`--schedule each`).

{table(head + ["`each`, two", "`each`, four"], proofs, ours=7)}
- **A proof a GPU scales best.** GPUs share nothing then. Take it where several proofs wait.
- **One proof of 2^22 rows**: each of four GPUs computes for little more than a fourth of the time (`lanes` in the rows). What is left does not
  shrink: the upload that every GPU begins with (the witness crosses four links, and is then exchanged), the longest sum in G2, and the
  end: the last sum's buckets, C, and the pairing equation.
- **One proof of 2^16 rows**: the host's own work takes as long as the GPU's. `auto` takes two GPUs of four. Processes differ by a
  third here.
- **PLONK has five rounds**, each of which waits for the transcript. Sums are split over the GPUs; what stands between them (transforms,
  the grand product, evaluations) is the first GPU's, but for the cosets of the quotient, of which there are three.

## Primitives

Data is on the GPUs before and after.

{table(head, primitives, ours=5)}
- **A transform** exchanges all its data once. Each of n GPUs sends (n - 1) / n of its share, which shrinks with n. Small fields compute less for each byte, and the exchange binds sooner.
- **A sort** by partition sends each key straight to the GPU that sorts it.

## Copies among four GPUs

GB/s of queued calls as nccl-tests count them (algbw), and for the first two sizes the time of one call in us. Four NVIDIA H200 of one
host; NVLink multicast is off.

{table(["", "4 KiB, us", "1 MiB, us", "16 MiB", "256 MiB", "1 GiB"], collectives)}
- **Small calls** take a ninth to a half of NCCL's time: a kernel that stays looks at a mailbox, so there is no launch.
- **A broadcast and an all-reduce** pass data along chains of GPUs. A chunk is there whole before it is passed on, so a chain takes some
  chunks to fill.

Two of the four GPUs as a job, 1 GiB (`--among 0,1`), beside the plan's rate. With a switch between them the other two are of no
help, and the plan says so. A broadcast exceeds it, since it also takes the way through host memory.

{table(["", "plan, GB/s", "ours", "ours / plan", "NCCL"], of_two)}
Host memory to and from one GPU, 1 GiB, page-locked, GB/s. The idle GPUs' PCIe links carry pieces, which reach their GPU by NVLink.

{table(["", "GB/s"], links, ours=1)}"""
