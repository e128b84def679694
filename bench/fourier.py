"""The table of Fourier transforms of complex numbers in docs/guides/transforms.md, for report.py."""


def table(rows, latest, digits, of_lines):
    """The last row of each size, precision and number of H200, and of cuFFT on one."""
    fft = [row for row in rows if row["what"] == "fft" and row["machine"].startswith("h200")]
    key = lambda row: (row["log_n"], row["precision"], row["lanes"])
    ours = latest([row for row in fft if "peer" not in row], key)
    # Beside the peer, what ran on its machine.
    ours |= latest([row for row in fft if "peer" not in row and row["machine"] == "h200x1"], key)
    peer = latest([row for row in fft if row.get("peer", "").startswith("cuFFT")], lambda row: (row["log_n"], row["precision"]))
    ms = lambda row: digits(row.get("ms_median", row.get("ms"))) if row else ""

    def of(size, precision):
        one, theirs = ours.get((size, precision, 1)), peer.get((size, precision))
        return [ms(one), ms(theirs), f"{theirs['ms'] / one['ms_median']:.2f}" if one and theirs else ""]

    more = [(precision, lanes) for precision in ("f32", "f64") for lanes in (2, 4, 8)]
    head = ["size", *(f"{precision}{word}" for precision in ("f32", "f64") for word in (", ms", ", cuFFT", ", cuFFT / tandem"))]
    head += [f"{precision}, {lanes} GPUs" for precision, lanes in more]
    sizes = sorted({size for size, _, _ in ours})
    lines = [[f"2^{size}", *of(size, "f32"), *of(size, "f64"), *(ms(ours.get((size, *at))) for at in more)] for size in sizes]
    return of_lines(head, lines, len(head) - 1)


def arrays(rows, latest, digits, of_lines):
    """Arrays of several dimensions: the last row of each shape and number of H200, and of cuFFT on one."""
    of = [row for row in rows if row["what"] == "fft_grid" and row["machine"].startswith("h200") and row["precision"] == "f32"]
    ours = latest([row for row in of if "peer" not in row], lambda row: (row["sides"], row["lanes"]))
    peer = latest([row for row in of if "peer" in row], lambda row: row["sides"])
    counts = sorted({lanes for _, lanes in ours})
    shapes = sorted({(row["log_n"], row["sides"]) for row in ours.values()})
    ms = lambda row: digits(row.get("ms_median", row.get("ms"))) if row else ""
    lines = [[sides, *(ms(ours.get((sides, count))) for count in counts), ms(peer.get(sides))] for _, sides in shapes]
    head = ["sides", *(f"{count} GPU{'s' if count > 1 else ''}" for count in counts), "cuFFT, one GPU"]
    return of_lines(head, lines, len(head) - 1)
