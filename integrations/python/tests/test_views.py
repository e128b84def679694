"""Other libraries see the memory without a copy, and it lives as long as they look."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import numpy as np
import pytest
from shared import DTYPES, KIND, SIZES, random

import tandem

pytestmark = pytest.mark.skipif(KIND != "sim", reason="pretend PEs")


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_sees_the_memory_itself(world: tandem.World, rng: np.random.Generator, dtype: str) -> None:
    for size in SIZES:
        array = world.zeros((2, size), dtype)
        for pe in range(world.size):
            view = np.asarray(array.on(pe))
            assert view.dtype == dtype and view.shape == (2, size)
            data = random(rng, (2, size), dtype)
            view[:] = data
            np.testing.assert_array_equal(array.read(pe), data)
            array.write(pe, data[::-1])
            np.testing.assert_array_equal(view, data[::-1])
            shared = np.from_dlpack(array.on(pe))  # type: ignore[arg-type]
            assert shared.dtype == dtype and shared.shape == (2, size)
            np.testing.assert_array_equal(shared, data[::-1])
            if size:
                assert np.shares_memory(shared, view) and view.ctypes.data == array.on(pe).ptr
        del view, shared


def test_dlpack_of_both_versions(four: tandem.World) -> None:
    array = four.zeros(5, "float32")
    part = array.on(1)
    assert part.__dlpack_device__() == (1, 0)
    assert '"dltensor"' in repr(part.__dlpack__())
    assert '"dltensor_versioned"' in repr(part.__dlpack__(max_version=(1, 0)))
    # A capsule that nobody consumes gives its view back.
    del part
    four.close()


def test_parts_of_arrays_that_grew_the_heap_are_whole(rng: np.random.Generator) -> None:
    """Every allocation lies in one piece, and those of two PEs are `stride` apart."""
    with tandem.World("sim:3", window=64 << 20) as world:
        kept = []
        for size in rng.integers(1, 200_000, 40):
            array = world.zeros(int(size), "uint8")
            assert array.stride == 64 << 20
            for pe in range(3):
                np.asarray(array.on(pe))[:] = pe + 1
            kept.append(array)
            if rng.integers(0, 3) == 0:
                kept.pop(int(rng.integers(0, len(kept))))
            for array in kept:
                assert [int(array.on(pe).ptr) - int(array.on(0).ptr) for pe in range(3)] == [0, 64 << 20, 128 << 20]
        for array in kept:
            for pe in range(3):
                assert (array.read(pe) == pe + 1).all()
        del array


def test_an_array_keeps_its_memory(rng: np.random.Generator) -> None:
    world = tandem.World("sim:2")
    array = world.zeros(1000, "int64")
    data = random(rng, 1000, "int64")
    array.write(1, data)
    del world
    gc.collect()
    np.testing.assert_array_equal(array.read(1), data)
    view = np.asarray(array.on(1))
    del array
    gc.collect()
    # Nothing but NumPy's view holds it now.
    np.testing.assert_array_equal(view, data)


def test_memory_that_nobody_holds_is_used_again(four: tandem.World) -> None:
    for _ in range(100):
        four.zeros(1 << 20, "uint8")
        time.sleep(0.01)
    assert four.heap_bytes[0] < 64 << 20, "freed memory is not used again"
    view = np.asarray(four.zeros(1 << 20, "uint8").on(0))
    view[:] = 7
    for _ in range(20):
        four.zeros(1 << 20, "uint8").write(0, np.full(1 << 20, 9, "uint8"))
    assert (view == 7).all(), "memory that is seen was given to somebody else"
    del view


@pytest.mark.parametrize("how", ["part", "numpy", "dlpack", "capsule", "global"])
def test_a_world_is_not_closed_while_somebody_looks(how: str) -> None:
    world = tandem.World("sim:2")
    array, dealt = world.zeros(10, "float32"), world.global_array(10, "float32")
    part = array.on(1)
    view: object = {
        "part": lambda: part,
        "numpy": lambda: np.asarray(part)[3:],
        "dlpack": lambda: np.from_dlpack(part)[3:],  # type: ignore[arg-type]
        "capsule": lambda: part.__dlpack__(),
        "global": lambda: dealt.on(1),
    }[how]()
    del part
    with pytest.raises(BufferError, match=r'World\("sim:2"\): \d views'):
        world.close()
    assert not world.closed
    array.read(1)
    del view
    world.close()
    assert world.closed
    world.close()


def test_a_closed_world_says_so() -> None:
    world = tandem.World("sim:2")
    team, array, dealt, pe = world.split([0]), world.zeros(10, "uint64"), world.global_array(10), world[1]
    part = array[2:3]
    world.close()
    for use in [
        lambda: world.zeros(1), lambda: world[0], lambda: world.size, lambda: world.barrier(), lambda: world.synchronize(),
        lambda: team.zeros(1), lambda: team.names, lambda: array.read(0), lambda: array.write(0, np.zeros(10, "uint64")),
        lambda: array.on(0), lambda: array[0], lambda: part.read(0), lambda: pe.put(array, array, 0), lambda: pe.name,
        lambda: pe.signal(part, 0), lambda: pe.synchronize(), lambda: dealt[0], lambda: dealt.on(0), lambda: dealt.part,
        lambda: world.all_reduce(array), lambda: world.check(), lambda: array.stride,
    ]:  # fmt: skip
        with pytest.raises(tandem.ClosedError, match=r'World\("sim:2"\) is closed'):
            use()
    assert "closed" in repr(world) and "closed" in repr(pe)


def test_closing_gives_the_memory_back() -> None:
    """Although arrays are still named."""

    def resident() -> int:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096

    before, kept = resident(), []
    for _ in range(5):
        world = tandem.World("sim:2")
        array = world.zeros(32 << 20, "uint8")
        for pe in range(2):
            np.asarray(array.on(pe))[:] = 1
        kept.append((world, array))
        world.close()
    # The threads of the pretend PEs end after it.
    end = time.monotonic() + 10
    while resident() - before > 64 << 20 and time.monotonic() < end:
        time.sleep(0.01)
    assert resident() - before <= 64 << 20 and len(kept) == 5


def test_with_waits_and_closes(rng: np.random.Generator) -> None:
    with tandem.World("sim:2") as world:
        array = world.zeros(10)
    assert world.closed
    # What went wrong in the queues is not lost.
    with pytest.raises(tandem.FaultError):
        with tandem.World("sim:2", timeout=0.2) as world:
            world[0].wait(world.zeros((), "uint64"), "==", 1)
    assert world.closed
    with pytest.raises(ZeroDivisionError):
        with tandem.World("sim:2") as world:
            view = np.asarray(world.zeros(10).on(0))
            raise ZeroDivisionError
    # What was raised is not hidden by the view that is in the way of closing.
    assert not world.closed and not view.any() and array.size == 10
    del view
    world.close()


def test_waits_let_other_threads_run(four: tandem.World) -> None:
    word = four.zeros((), "uint64")
    four[0].wait(word, "==", 1)
    waited = threading.Event()

    def wait() -> None:
        four.synchronize()
        waited.set()

    others = [lambda: four.wait_until(0, word, "==", 1), four[0].synchronize]
    threads = [threading.Thread(target=target) for target in [wait, *others]]
    for thread in threads:
        thread.start()
    # This thread runs although three others are inside a wait that only it can end.
    begun = time.monotonic()
    while time.monotonic() - begun < 0.2:
        assert not waited.is_set()
        time.sleep(0.01)
    four[1].signal(word, 0)
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


def test_worlds_are_freed_with_their_last_object() -> None:
    world = tandem.World("sim:2")
    gone = weakref.ref(np.asarray(world.zeros(3).on(0)))
    assert gone() is None
    world.close()
