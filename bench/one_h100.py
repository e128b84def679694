"""One H100 in docs/performance/results.md: sums and transforms beside sppark, proofs, also with little memory, sumchecks, the service."""

LIMIT = "--gpu-memory"
GIB = {"GiB": 1.0, "MiB": 1.0 / 1024}


def in_little(rows, on_h200, latest, digits):
    """Proofs of keys that do not fit into the memory that they may take, beside those of keys that do."""
    limited = [r for r in rows if r["machine"] == "h200x1" and r["what"] in ("plonk", "fflonk") and LIMIT in r["command"]]
    words = lambda r: r["command"].split()
    limit = lambda r: words(r)[words(r).index(LIMIT) + 1]
    gib = lambda r: float(limit(r)[:-3]) * GIB[limit(r)[-3:]]
    lines = []
    for (what, n, gigabytes), row in sorted(latest(limited, lambda r: (r["what"] == "fflonk", r["log_n"], -gib(r))).items()):
        whole = on_h200.get((2 if what else 1, False, n))
        stays = row["plan"].split("\n")[1].removeprefix("values on cosets are made by each proof, ").replace("sums in 1 pieces", "whole sums")
        lines.append([f"{'FFLONK' if what else 'PLONK'} 2^{n}", f"{-gigabytes:.2f}", digits(row["ms_median"]),
                      f"{row['ms_median'] / whole['ms_median']:.1f}" if whole else "", stays])
    return lines


def section(rows, latest, digits, table, field, ms, ratio, on):
    of = [r for r in rows if r["machine"] == "h100x1"]
    plain = [r for r in of if not {"coset", "inverse", "batch"} & r.keys()]
    key = lambda r: (r["what"], field(r), r.get("log_n"), r.get("order"))
    ours, theirs = latest([r for r in plain if "peer" not in r], key), latest([r for r in plain if "peer" in r], key)
    lines = []
    for what, same, order, names, sizes in (
        ("msm_g1", "msm_resident", None, ("BN254", "BLS12-381"), range(18, 25, 2)),
        ("ntt", "ntt", "NR", ("BN254", "BLS12-381"), range(18, 25, 2)),
        ("ntt", "ntt", "NR", ("Goldilocks", "BabyBear"), (18, 20, 22, 24, 27)),
    ):
        for name in names:
            for n in sizes:
                row, peer = ours.get((what, name, n, order)), theirs.get((same, name, n, order))
                words = f"{'MSM G1' if order is None else 'NTT'} {name} 2^{n}"
                lines.append([words, ms(row), ms(peer), ratio(peer and peer["ms"], row and row["ms_median"])])
    systems = {"groth16": "Groth16", "plonk": "PLONK", "fflonk": "FFLONK"}
    made_up = lambda r: r["what"] in systems and ".zkey" not in r["command"] and r.get("schedule") == "auto" and not r.get("ahead") and LIMIT not in r["command"]
    size = lambda r: (list(systems).index(r["what"]), field(r) != "BN254", r["log_n"])
    on_h100, on_h200 = (
        latest([r for r in rows if r["machine"] == m and r["what"] in systems and made_up(r)], size) for m in ("h100x1", "h200x1")
    )
    proved = []
    for at in sorted(on_h100.keys() | on_h200.keys()):
        h100, h200 = on_h100.get(at), on_h200.get(at)
        row = h100 or h200
        bound = next((r["bound_ms"] for r in (h100, h200) if r and "bound_ms" in r), None)
        times = f"{h200['ms_median'] / bound:.1f}" if h200 and bound else ""
        proved.append([f"{systems[row['what']]} {field(row)} 2^{row['log_n']}", ms(h100), ms(h200), times])
    checked = latest([r for r in of if r["what"] == "sumcheck"], lambda r: (r["field"], r["degree"], r["log_n"]))
    names = {"bn254": "BN254", "bls12-381": "BLS12-381", "goldilocks": "Goldilocks"}
    checked = [
        [f"{names[name]} 2^{n}, degree {degree}", ms(row), digits(row["bound_ms"]), f"{row['bound_ms'] / row['ms_median']:.2f}"]
        for (name, degree, n), row in sorted(checked.items())
    ]
    here = [r for r in rows if r["machine"] == "h200x1"]
    alone = latest([r for r in here if r["what"] == "groth16" and "n20.zkey" in r["command"]], lambda r: r["log_n"])[20]
    calls = latest([r for r in here if r["what"] == "serve" and r.get("in_hand", 4) == 4 and r["workers"] == 1],
                   lambda r: (r["clients"], "unix:" in r["command"]))
    served = [
        [f"{clients}, by a Unix socket" if by_socket else str(clients), digits(row["proofs_per_s"]), f"{row['proofs_per_s'] / alone['proofs_per_s']:.2f}", digits(row["ms_median"])]
        + [f"{row['no_proof']:.2f}", f"{row['idle']:.2f}"]
        for (clients, by_socket), row in sorted(calls.items())
    ]
    intro = on(
        "h100x1", "As above: MSMs, and transforms from natural to bit-reversed order, beside sppark 0.1.16, ms."
    )
    return f"""## One H100

{intro}

{table(["", "ours", "sppark", "sppark / ours"], lines, ours=1)}
Proofs with a resident key, ms (`tandem bench groth16`, `plonk`, `fflonk`), and beside one H200. The bound is of the arithmetic on an H200:

{table(["", "one H100", "one H200", "H200, times its bound"], proved)}
The same on one H200 with little GPU memory (`--gpu-memory`). Where not all of a key stays, each proof makes the values on cosets anew:

{table(["", "GiB", "ms", "times as long", "what else stays"], in_little(rows, on_h200, latest, digits))}
Sumchecks of products of `degree` tables, ms (`tandem bench sumcheck`), beside the time that reading and writing takes alone:

{table(["", "ours", "bound", "bound / ours"], checked, ours=1)}
A service with one worker on an H200, Groth16 of 2^20 rows, witnesses not synced to the disk (`bench/serve.sh` with `TANDEM_SERVE_SURVIVES=kill`). Each caller waits for
its proof. The share is that of what the engine proves alone; the last columns are those of the time without a proof, and without a job:

{table(["callers", "proofs a second", "share of the engine's", "median, ms", "no proof", "no job"], served, ours=1)}"""
