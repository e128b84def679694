"""Global arrays in kernels of Triton, in its interpreter on pretend PEs."""

from __future__ import annotations

import os

import numpy as np
import pytest
from shared import KIND, random

import tandem

if KIND == "sim":
    # Triton reads it when a kernel is declared.
    os.environ["TRITON_INTERPRET"] = "1"
triton = pytest.importorskip("triton")
pytestmark = pytest.mark.skipif(KIND != "sim", reason="pretend PEs")


@pytest.mark.parametrize("distribution", ["block", "cyclic", 5])
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "uint64", "int8"])
def test_a_kernel_indexes_all_pes(
    world: tandem.World, rng: np.random.Generator, dtype: str, distribution: object
) -> None:
    from triton_kernels import reverse

    for size in [1, 2, 7, 33, 100]:
        a = world.global_array(size, dtype, distribution)  # type: ignore[arg-type]
        b = world.global_array(size, dtype, "cyclic")
        data = random(rng, size, dtype)
        a[:] = data
        pe = size % world.size
        to, source = b.on(pe), a.on(pe)
        reverse[(triton.cdiv(size, 16),)](to.rule, source.rule, getattr(triton.language, dtype), N=16)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(b[:], data[::-1] + data[::-1])
        del to, source


def test_a_shift_along_a_ring(world: tandem.World) -> None:
    from triton_kernels import shift

    slot = world.zeros(4, "int32")
    for pe in range(world.size):
        part = slot.on(pe)
        shift[(1,)](part.ptr, pe, (pe + 1) % world.size, slot.stride or 0, N=4)
        del part
    for pe in range(world.size):
        assert (slot.read(pe) == (pe - 1) % world.size).all()
