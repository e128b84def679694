"""The tables of docs/guides/nvlink.md, from the rows in bench/baselines. bench/report.py puts them between their marks."""

MIB = 1 << 20
GIB = 1 << 30


def tables(rows, latest, digits, table):
    """The guide's tables by the names of their marks."""
    of = [r for r in rows if r["machine"] == "h200x2"]
    found = latest([r for r in of if "library" in r], lambda r: (r["what"], r["library"], r["bytes"]))
    by_scope = latest(
        [r for r in of if r.get("peer", "").startswith("NVSHMEM")], lambda r: (r["what"], r["scope"], r["bytes"])
    )
    rate = lambda what, library, size=GIB: digits(found[what, library, size]["algbw"])
    both = lambda *values: " / ".join(values)
    pinned, pageable = "tandem, all links, pinned", "tandem, all links, pageable"
    links = [
        ["a GPU", "the other, copy engine", rate("p2p", "cudaMemcpyPeer")],
        ["the same and the host's memory as a second way", "", rate("p2p", "tandem")],
        [
            "each GPU",
            "the other at the same time, each way, ours / NCCL",
            both(rate("p2p", "tandem, both ways"), rate("p2p", "NCCL 2.28.9, both ways")),
        ],
        [
            "a GPU",
            "the other, stores / loads of a kernel, 16 MiB",
            both(rate("put", "tandem put, grid", 16 * MIB), rate("get", "tandem get, grid", 16 * MIB)),
        ],
        ["page-locked host memory", "one GPU, its own slot", rate("upload", "cudaMemcpy, pinned")],
        ["page-locked host memory", "one GPU, over both slots and NVLink", rate("upload", pinned)],
        ["pageable host memory", "one GPU, the runtime's copy", rate("upload", "cudaMemcpy, pageable")],
        ["pageable host memory", "one GPU, over both slots, many threads", rate("upload", pageable)],
        [
            "one GPU",
            "page-locked host memory, own slot / over both",
            both(rate("download", "cudaMemcpy, pinned"), rate("download", pinned)),
        ],
    ]
    sums = latest(
        [r for r in of if r["what"] == "reduce_sum_u64" and r.get("log_n") == 30],
        lambda r: (r.get("data"), r.get("way"), r.get("lanes")),
    )
    time = lambda data, way, lanes: digits(sums[data, way, lanes]["ms_median"])
    split = [
        ["one GPU", time("lanes", "its own", 1), time("pinned", "streamed", 1)],
        ["each GPU its half", time("lanes", "a share each", 2), time("pinned", "streamed", 2)],
        ["all on GPU 0, GPU 1 reads its half over NVLink", time("lanes", "read from the first", 2), ""],
    ]
    ways = {
        "both slots, page-locked": pinned,
        "own slot": "tandem, one link, pinned",
        "both slots, pageable": pageable,
        "cudaMemcpy, pageable": "cudaMemcpy, pageable",
    }
    uploads = [
        [words] + [rate("upload", way, size) for way in ways.values()]
        for words, size in (("16 MiB", 16 * MIB), ("256 MiB", 256 * MIB), ("1 GiB", GIB))
    ]
    sizes = {"4 KiB": 4096, "1 MiB": MIB, "16 MiB": 16 * MIB}
    calls = []
    for what, words in (
        ("p2p", "copy"),
        ("broadcast", "broadcast"),
        ("allreduce", "all-reduce"),
        ("reduce", "reduce"),
        ("allgather", "all-gather"),
        ("reducescatter", "reduce-scatter"),
        ("alltoall", "all-to-all"),
    ):
        latency = lambda library, size: digits(found[what, library, size]["us_latency"])
        calls.append(
            [words]
            + [both(latency("tandem", size), latency("NCCL 2.28.9", size)) + " us" for size in sizes.values()]
            + [both(rate(what, "tandem"), rate(what, "NCCL 2.28.9")) + " GB/s"]
        )
    moves = []
    for what in ("put", "get"):
        for ours, scope, words in (("block", "block", "one block"), ("grid", "grid", "128 blocks")):
            line = [f"{what}, {words}"]
            for size in (4096, 65536, MIB, 16 * MIB):
                theirs = by_scope.get((what, scope, size))
                line.append(both(rate(what, f"tandem {what}, {ours}", size), digits(theirs["algbw"]) if theirs else "-"))
            moves.append(line)
    copied = latest([r for r in rows if r["what"] == "words" and r["machine"].startswith("h200")], lambda r: r["library"])
    from_where = {
        "tandem put on a queue": "another GPU, over NVLink",
        "cudaMemcpyPeer": "another GPU, the runtime's copy",
        "tandem, all links, pinned": "page-locked host memory, over two slots and NVLink",
        "cudaMemcpy, pinned": "page-locked host memory, its own slot",
        "tandem, all links, pageable": "pageable host memory, over two slots, many threads",
        "cudaMemcpy, pageable": "pageable host memory, the runtime's copy",
    }
    taken = lambda row: [digits(row["us_latency"] / 1e3), digits(row["algbw"])]
    words = [[where, *taken(copied[library])] for library, where in from_where.items()]
    return {
        "words": table(["2^30 words of 64 bits to a GPU from", "ms", "GB/s"], words),
        "links": table(["from", "to", "GB/s"], links),
        "split": table(["ms", "data on the GPUs", "data in page-locked host memory"], split),
        "uploads": table(["host memory to one GPU", *ways], uploads),
        "calls": table(["ours / NCCL", *sizes, "1 GiB, queued"], calls),
        "moves": table(["GB/s, ours / NVSHMEM", "4 KiB", "64 KiB", "1 MiB", "16 MiB"], moves),
    }
