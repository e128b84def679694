"""Collectives against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from shared import DTYPES, NUMBERS, SIZES, devices, fill, random

import tandem

COMBINE = {"sum": np.add, "min": np.minimum, "max": np.maximum}


def same(dtype: str, found: Any, expected: Any) -> None:
    """Sums of floating-point numbers depend on their order."""
    if np.dtype(dtype).kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("op", list(COMBINE))
@pytest.mark.parametrize("dtype", NUMBERS)
def test_reductions(world: tandem.World, rng: np.random.Generator, dtype: str, op: Any, wait: bool) -> None:
    n = world.size
    for size in [0, 1, 2, 5, 501]:
        source, to, part = world.zeros(n * size, dtype), world.zeros(n * size, dtype), world.zeros(size, dtype)
        data = fill(rng, world, source)
        with np.errstate(over="ignore"):
            expected = COMBINE[op].reduce(data, dtype=dtype)
        world.all_reduce(source, to, op, wait=wait)
        world.reduce_scatter(source, part, op, wait=wait)
        world.reduce(source, n - 1, op=op, wait=wait)
        if not wait:
            world.synchronize()
        for pe in range(n):
            same(dtype, to.read(pe), expected)
            same(dtype, part.read(pe), expected[pe * size : (pe + 1) * size])
        same(dtype, source.read(n - 1), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_copies(world: tandem.World, rng: np.random.Generator, dtype: str, size: int) -> None:
    n = world.size
    source, to = world.zeros((n, size), dtype), world.zeros((n, size), dtype)
    data = fill(rng, world, source)
    world.all_gather(source[0], to)
    world.synchronize()
    for pe in range(n):
        np.testing.assert_array_equal(to.read(pe), [part[0] for part in data])
    world.all_to_all(source, to)
    world.synchronize()
    for pe in range(n):
        np.testing.assert_array_equal(to.read(pe), [part[pe] for part in data])
    world.broadcast(source, n // 2)
    world.synchronize()
    for pe in range(n):
        np.testing.assert_array_equal(source.read(pe), data[n // 2])


def test_a_job_has_the_other_pes_as_helpers(rng: np.random.Generator) -> None:
    dgx = tandem.Topology.preset("dgx1-v100-4")
    with tandem.World(devices(4), topology=dgx) as world:
        assert world.topology == dgx
        source = world.zeros(100_003, "float32")
        data = fill(rng, world, source)
        world.broadcast(source, 1, pes=[1, 0], wait=True)
        np.testing.assert_array_equal(source.read(0), data[1])
        np.testing.assert_array_equal(source.read(2), data[2])
        np.testing.assert_array_equal(source.read(3), data[3])


def test_a_split_team_has_its_own(four: tandem.World, rng: np.random.Generator) -> None:
    team = four.split([2, 0, 3])
    array = team.zeros(33, "int64")
    data = fill(rng, team, array)
    team.all_reduce(array, wait=True)
    for pe in range(3):
        np.testing.assert_array_equal(array.read(pe), sum(data))


def test_collectives_come_after_what_queues_were_told(world: tandem.World, rng: np.random.Generator) -> None:
    n = world.size
    array, start = world.zeros(1000, "int64"), world.zeros(1000, "int64")
    data = fill(rng, world, start)
    for pe in range(n):
        world[pe].put(array, start, pe)
    for _ in range(5):
        world.all_reduce(array)
    world.synchronize()
    with np.errstate(over="ignore"):
        expected = np.sum(data, axis=0)
        for _ in range(4):
            expected = expected * n
    for pe in range(n):
        np.testing.assert_array_equal(array.read(pe), expected)


def test_random_programs(rng: np.random.Generator) -> None:
    """Puts, gets and collectives in a random order, with a barrier between, against a model in NumPy."""
    for _ in range(10):
        n = int(rng.integers(1, 9))
        with tandem.World(devices(n)) as world:
            arrays = [world.zeros(60 * n, "uint32") for _ in range(3)]
            model = [np.stack(fill(rng, world, array)) for array in arrays]
            for _ in range(30):
                a, b = (int(i) for i in rng.choice(3, 2, replace=False))
                pe, other, at, length = (int(rng.integers(0, high)) for high in (n, n, 50, 10))
                kind = rng.choice(["put", "get", "sum", "broadcast", "transpose"])
                part = slice(at, at + length)
                if kind == "put":
                    world[pe].put(arrays[a][part], arrays[b][part], other)
                    model[a][other][part] = model[b][pe][part]
                elif kind == "get":
                    world[pe].get(arrays[a][part], arrays[b][part], other)
                    model[a][pe][part] = model[b][other][part]
                elif kind == "sum":
                    world.all_reduce(arrays[b], arrays[a])
                    model[a][:] = model[b].sum(axis=0, dtype=np.uint32)
                elif kind == "broadcast":
                    world.broadcast(arrays[b], pe, arrays[a])
                    model[a][:] = model[b][pe]
                else:
                    world.all_to_all(arrays[b], arrays[a])
                    model[a] = model[b].reshape(n, n, 60).swapaxes(0, 1).reshape(n, 60 * n).copy()
                world.barrier()
            world.synchronize()
            for array, expected in zip(arrays, model):
                for pe in range(n):
                    np.testing.assert_array_equal(array.read(pe), expected[pe])


def test_random_is_random(rng: np.random.Generator) -> None:
    for dtype in DTYPES:
        assert len(np.unique(random(rng, 100, dtype))) > 1
