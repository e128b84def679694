"""The table of Filecoin's partitions in docs/guides/filecoin.md, for report.py."""

SHAPES = ["porep-32g", "text", "window", "snap", "winning"]


def table(rows, latest, digits, of_lines):
    """The last row of each shape, size and limit of memory."""

    def key(row):
        words = row["command"].split()
        limit = words[words.index("--gpu-memory") + 1] if "--gpu-memory" in words else ""
        return row["machine"], SHAPES.index(row["shape"]), row["log_n"], limit

    found = sorted(latest([row for row in rows if row["what"] == "porep"], key).items())
    head = ["", "GPU", "GPU memory", "s a partition", "gpu_total_ms", "ntt_msm_h_ms", "batch_add_ms", "to the GPU, GiB", "waits for copies", "least, ms"]
    lines = [
        [f"`{row['shape']}` 2^{row['log_n']}", machine.removesuffix("x1").upper(), limit or "all"]
        + [digits(row[name]) for name in ("s_per_partition", "gpu_total_ms", "ntt_msm_h_ms", "batch_add_ms")]
        + [digits(row["bytes_to_device"] / (1 << 30)), f"{row['copy_wait_share']:.0%}", digits(row["bound_ms"])]
        for (machine, _, _, limit), row in found
    ]
    return of_lines(head, lines)
