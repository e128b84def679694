"""Global arrays in kernels of Triton, in its interpreter on pretend PEs."""

from __future__ import annotations

import os
from random import choice, getrandbits, randrange

import numpy as np
import pytest
from shared import KIND, random

import tandem
from tandem._kernel import view

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


def test_addresses_of_large_arrays() -> None:
    """Against Python's own arithmetic, of arrays that no test has the memory for."""
    from triton_kernels import addresses

    found = np.zeros(1, "uint64")
    for _ in range(300):
        pes = choice([1, 2, 3, 7, 8, 32])
        length = 1 + getrandbits(choice([1, 8, 32, 33, 45]))
        block = choice([1, 2, 2**31, 2**32 + 1, -(-length // pes), 1 + getrandbits(20)])
        index = choice([0, length - 1, length // 2, randrange(length)])
        rule = (1 << 46, 1 << 38, length, block, pes, randrange(pes))
        of = view(rule, "float32", None, True)  # type: ignore[arg-type]
        pe, place = of.owner(index)
        for kind, size in [(triton.language.float32, 4), (triton.language.int8, 1), (triton.language.float64, 8)]:
            addresses[(1,)](found.ctypes.data, of.rule, index, kind)
            assert found[0] == (1 << 46) + (pe << 38) + place * size, (rule, index)


def test_a_shift_along_a_ring(world: tandem.World) -> None:
    from triton_kernels import shift

    slot = world.zeros(4, "int32")
    for pe in range(world.size):
        part = slot.on(pe)
        shift[(1,)](part.ptr, pe, (pe + 1) % world.size, slot.stride or 0, N=4)
        del part
    for pe in range(world.size):
        assert (slot.read(pe) == (pe - 1) % world.size).all()
