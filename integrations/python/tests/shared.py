"""What the tests share: worlds of 1 to 8 PEs, sizes on the edges, random data.

The PEs are pretend ones, or with TANDEM_PYTHON_DEVICE=cuda as many PEs of the first GPU. Tests that look into pretend PEs from
this process are skipped there, and test_gpu.py is for GPUs alone.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

import tandem

KIND = os.environ.get("TANDEM_PYTHON_DEVICE", "sim")
if KIND == "cuda":
    # Several PEs on one GPU run beside each other.
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "32"

SIZES = [0, 1, 2, 3, 7, 64, 1000, 4099]
DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
NUMBERS = ["uint32", "int32", "uint64", "int64", "float32", "float64"]


def devices(pes: int) -> str:
    """What opens a world of so many PEs."""
    return f"sim:{pes}" if KIND == "sim" else "cuda:" + ",".join(["0"] * pes)


def random(rng: np.random.Generator, shape: Any, dtype: str) -> npt.NDArray[Any]:
    """Random elements of any of the types, every bit of the integers."""
    kind = np.dtype(dtype)
    found: npt.NDArray[Any]
    if kind == np.bool_:
        found = rng.integers(0, 2, shape).astype(np.bool_)
    elif kind.kind in "iu":
        info = np.iinfo(kind)
        found = rng.integers(info.min, info.max, shape, dtype=kind.type, endpoint=True)
    elif kind.kind == "c":
        found = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(kind)
    else:
        found = rng.standard_normal(shape).astype(kind)
    return found


def fill(rng: np.random.Generator, team: tandem.Team, array: tandem.Array) -> list[npt.NDArray[Any]]:
    """Random elements on every PE, and copies of them."""
    data = [random(rng, array.shape, array.dtype) for _ in range(team.size)]
    for pe, part in enumerate(data):
        array.write(pe, part)
    return data
