"""The table of transforms as a cube in docs/guides/transforms.md, for report.py."""


def table(rows, latest, digits, of_lines):
    """Of each size the last rows of one machine with two GPUs: by passes, and as a cube with either way of its exchange."""
    by_machine = latest(
        [row for row in rows if row["what"] == "ntt" and row.get("as") == "cube"],
        lambda row: (row["machine"], row["log_n"], row["exchange"]),
    )
    machine = max((row["date"], at[0]) for at, row in by_machine.items())[1]
    cubes = {at[1:]: row for at, row in by_machine.items() if at[0] == machine}
    runs = {row["command"] for row in cubes.values()}
    passes = latest([row for row in rows if row["what"] == "ntt" and "as" not in row and row.get("command") in runs], lambda row: row["log_n"])
    ms = lambda row, of="ms_median": digits(row[of]) if row else ""
    ways = [(way, words) for way, words in (("nvlink", "over NVLink"), ("host", "through the host")) if any(at[1] == way for at in cubes)]
    lines = []
    for size in sorted({size for size, _ in cubes}):
        of_ways = [cubes.get((size, way)) for way, _ in ways]
        lines.append([f"2^{size}", ms(passes.get(size)), *(ms(row, of) for row in of_ways for of in ("ms_median", "exchange_ms_median"))])
    head = ["size", "passes, ms", *(cell for _, words in ways for cell in (f"cube, {words}", "its exchange"))]
    return of_lines(head, lines, len(head) - 1)
