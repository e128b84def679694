"""The guides that have tables of rows, for report.py."""

import re
import sys

import cubes
import fourier
import nvlink
import plonk_keys
import porep
import protocols
import verifier_gas


def pages(folder, rows, latest, digits, table):
    """The texts of the guides in a folder, by their names, with their tables made of the rows."""
    gas = {"gas": verifier_gas.table(rows, latest, digits, table)}
    costs = {"protocols": protocols.tables(rows, latest, digits, table)}
    of_guides = {
        "nvlink.md": nvlink.tables(rows, latest, digits, table),
        "circuit-developer.md": gas,
        "snarkjs.md": gas | costs | {"publics": plonk_keys.table(rows, latest, digits, table)},
        "transforms.md": {
            "fft": fourier.table(rows, latest, digits, table),
            "arrays": fourier.arrays(rows, latest, digits, table),
            "cubes": cubes.table(rows, latest, digits, table),
        },
        "filecoin.md": {"porep": porep.table(rows, latest, digits, table)},
    }
    text = lambda name: (folder / name).read_text(encoding="utf-8")
    return {name: filled(name, text(name), tables) for name, tables in of_guides.items()}


def filled(name, page, tables):
    """The page with each table between its marks, `<!-- rows: NAME -->` and `<!-- end of rows -->`."""
    left = set(tables)

    def put(mark):
        left.discard(mark[1])
        return f"<!-- rows: {mark[1]} -->\n\n{tables[mark[1]]}\n<!-- end of rows -->"

    page = re.sub(r"<!-- rows: (\w+) -->.*?<!-- end of rows -->", put, page, flags=re.DOTALL)
    if left:
        sys.exit(f"docs/guides/{name}: no mark for {', '.join(sorted(left))}")
    return page
