"""Puts, gets, signals, waits, atomics and barriers against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from shared import DTYPES, SIZES, fill, random

import tandem


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_put_and_get_move_what_is_there(world: tandem.World, rng: np.random.Generator, dtype: str, size: int) -> None:
    source, inbox, outbox = (world.zeros(size, dtype) for _ in range(3))
    data = fill(rng, world, source)
    n = world.size
    for pe in range(n):
        world[pe].put(inbox, source, (pe + 1) % n)
        world[pe].get(outbox, source, (pe + n - 1) % n)
    world.synchronize()
    for pe in range(n):
        np.testing.assert_array_equal(inbox.read(pe), data[(pe + n - 1) % n])
        np.testing.assert_array_equal(outbox.read(pe), data[(pe + n - 1) % n])


def test_new_memory_is_zero(world: tandem.World) -> None:
    for dtype in DTYPES:
        array = world.zeros((3, 5), dtype)
        assert array.shape == (3, 5) and array.dtype == dtype and array.size == 15 and len(array) == 3
        for pe in range(world.size):
            assert not array.read(pe).any()


def test_parts_of_arrays_are_where_numpy_has_them(four: tandem.World, rng: np.random.Generator) -> None:
    array = four.zeros((4, 6, 5), "int32")
    whole = random(rng, array.shape, "int32")
    array.write(2, whole)
    indices: list[Any] = [0, 3, -1, (1, 2), (1, -1, 4), slice(1, 3), (2, slice(1, 4)), (2, 5, slice(0, 2)), slice(None), slice(2, 2),
                  (slice(None), slice(None)), (0, slice(4, 2)), slice(3, 100), slice(-2, None), (0, slice(2, 3, 2))]
    for index in indices:
        part = array[index]
        np.testing.assert_array_equal(part.read(2), whole[index])
        assert part.shape == whole[index].shape
    np.testing.assert_array_equal(array.reshape(8, 15)[3].read(2), whole.reshape(8, 15)[3])
    np.testing.assert_array_equal(array[1].reshape((30,)).read(2), whole[1].reshape(30))


def test_a_put_of_a_part_leaves_the_rest(four: tandem.World, rng: np.random.Generator) -> None:
    array = four.zeros((5, 7), "float64")
    data = fill(rng, four, array)
    four[1].put(array[2, 3:6], array[4, 0:3], 3)
    four.synchronize()
    data[3][2, 3:6] = data[1][4, 0:3]
    for pe in range(4):
        np.testing.assert_array_equal(array.read(pe), data[pe])


def test_who_has_waited_for_a_signal_sees_the_data(world: tandem.World, rng: np.random.Generator) -> None:
    n = world.size
    data, ready = world.zeros(1000, "int64"), world.zeros(n, "uint64")
    rounds = random(rng, (20, 1000), "int64")
    copies = world.zeros((20, 1000), "int64")
    for number, values in enumerate(rounds, 1):
        data.write(0, values)
        # Once around the ring.
        for pe in range(n):
            if pe > 0:
                world[pe].wait(ready[pe], "==", number, source=pe - 1)
            world[pe].put(copies[number - 1], data, pe)
            if pe + 1 < n:
                world[pe].put_signal(data, data, pe + 1, ready[pe + 1], number)
        world.synchronize()
    for pe in range(n):
        np.testing.assert_array_equal(copies.read(pe), rounds)


def test_signals_add_up(world: tandem.World) -> None:
    word = world.zeros((), "uint64")
    for pe in range(world.size):
        world[pe].signal(word, 0, 3, add=True)
    world[0].wait(word, "==", 3 * world.size)
    world.synchronize()
    world.wait_until(0, word, ">=", 3 * world.size)
    assert word.read(0) == 3 * world.size


@pytest.mark.parametrize("dtype", ["uint32", "int32", "uint64", "int64"])
def test_atomics_against_numpy(four: tandem.World, rng: np.random.Generator, dtype: str) -> None:
    word, old = four.zeros(1, dtype), four.zeros(1, dtype)
    now = random(rng, 1, dtype)
    word.write(1, now)
    apply: dict[Any, Any] = {"set": lambda a, b: b, "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    for op, function in apply.items():
        value = random(rng, 1, dtype)
        four[0].atomic(word, op, int(value[0]), 1, into=old)
        four.synchronize()
        assert old.read(0) == now
        with np.errstate(over="ignore"):
            now = function(now, value)
        assert word.read(1) == now
    four[2].atomic(word, "compare_swap", 7, 1, expected=int(now[0]))
    four[2].atomic(word, "compare_swap", 9, 1, expected=8)
    four.synchronize()
    assert word.read(1) == 7


def test_a_barrier_orders_what_comes_before_and_after(world: tandem.World) -> None:
    n = world.size
    mine, seen = world.zeros(n, "int64"), world.zeros((10, n), "int64")
    values = world.zeros((10, 1), "int64")
    for pe in range(n):
        values.write(pe, (100 * np.arange(10) + pe).reshape(10, 1))
    for step in range(10):
        for pe in range(n):
            for other in range(n):
                world[pe].put(mine[pe : pe + 1], values[step], other)
        world.barrier()
        for pe in range(n):
            world[pe].put(seen[step], mine, pe)
        world.barrier()
    world.synchronize()
    for pe in range(n):
        np.testing.assert_array_equal(seen.read(pe), 100 * np.arange(10)[:, None] + np.arange(n))


def test_a_split_team_numbers_its_own_pes(four: tandem.World, rng: np.random.Generator) -> None:
    team = four.split([3, 1])
    assert team.members == [3, 1] and team.names == [four[3].name, four[1].name]
    array = team.zeros(11, "float32")
    data = random(rng, 11, "float32")
    array.write(0, data)
    team[0].put(array, array, 1)
    team.barrier()
    team.synchronize()
    np.testing.assert_array_equal(array.read(1), data)
    # The same memory is PE 1's of the world.
    whole = four.zeros(11, "float32")
    whole.write(1, data)
    team[1].put(array, whole, 0)
    team.synchronize()
    np.testing.assert_array_equal(array.read(0), data)
    assert team.split([1])[0].name == four[1].name


def test_a_team_is_a_sequence_of_pes(four: tandem.World) -> None:
    assert [pe.number for pe in four] == [0, 1, 2, 3] and [pe.name for pe in four] == four.names
    assert four[-1].number == 3 and len(four) == four.size == 4
    assert (four[0].stream is None) == (four[0].device is None) == (not four.is_cuda)
