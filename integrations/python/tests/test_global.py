"""Arrays over all PEs, on the host."""

from __future__ import annotations

import numpy as np
import pytest
from shared import DTYPES, SIZES, random

import tandem

DEALT = ["block", "cyclic", 3, 64]


@pytest.mark.parametrize("distribution", DEALT)
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_are_where_the_layout_says(
    world: tandem.World, rng: np.random.Generator, dtype: str, distribution: object
) -> None:
    for size in SIZES:
        array = world.global_array(size, dtype, distribution)  # type: ignore[arg-type]
        assert len(array) == size and array.dtype == dtype
        data = random(rng, size, dtype)
        array[:] = data
        np.testing.assert_array_equal(array[:], data)
        np.testing.assert_array_equal(array[size // 3 : size // 2], data[size // 3 : size // 2])
        parts = [array.part.read(pe) for pe in range(world.size)]
        for i in rng.integers(0, size, min(size, 20)):
            pe, place = array.owner(i)
            assert parts[pe][place] == data[i] == array[int(i)] and array.index_of(pe, place) == i
        assert sum(array.local_length(pe) for pe in range(world.size)) == size


@pytest.mark.parametrize("to", DEALT)
@pytest.mark.parametrize("source", DEALT)
def test_assignment_keeps_indices(world: tandem.World, rng: np.random.Generator, to: object, source: object) -> None:
    for dtype in ["uint8", "float16", "int32", "complex64", "complex128"]:
        for size in [0, 1, 2, 9, 501]:
            a, b = world.global_array(size, dtype, source), world.global_array(size, dtype, to)  # type: ignore[arg-type]
            data = random(rng, size, dtype)
            a[:] = data
            b.assign(a)
            world.synchronize()
            np.testing.assert_array_equal(b[:], data)


def test_what_is_wrong_is_named(four: tandem.World) -> None:
    array = four.global_array(10, "float32")
    for use in [lambda: array[10], lambda: array[-11], lambda: array.owner(10), lambda: array.index_of(3, 1),
                lambda: array.index_of(4, 0), lambda: array.local_length(4), lambda: array.on(4)]:  # fmt: skip
        with pytest.raises(IndexError):
            use()
    with pytest.raises(ValueError, match="steps of 1"):
        array[::2]
    with pytest.raises(ValueError, match=r"data of shape \[3\] for 2 elements"):
        array[0:2] = np.zeros(3, "float32")
    with pytest.raises(TypeError, match="data of the type float64"):
        array[0:2] = np.zeros(2)
    with pytest.raises(TypeError, match="float32 from float64"):
        array.assign(four.global_array(10))
    with pytest.raises(tandem.InvalidError, match="10 elements from 11"):
        array.assign(four.global_array(11, "float32"))
    for wrong in ["blocks", 0, -1, 1.5]:
        with pytest.raises(ValueError):
            four.global_array(10, "float32", wrong)  # type: ignore[arg-type]
    with pytest.raises(tandem.InvalidError, match="evenly spaced"):
        four.split([0, 1, 3]).global_array(10).on(0)
    array[3] = 2.5
    assert array[3] == 2.5 and array[-7] == 2.5
