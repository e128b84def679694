"""What one process of a world does in test_processes.py: `python members.py SCENE SEED PES`, started once for each process."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any, Callable

import numpy as np
import numpy.typing as npt

import tandem

LONG = 60.0
SHORT = 2.0
VICTIM = 1


def rank() -> int:
    return int(os.environ["TANDEM_RANK"])


def world_of(pes: str, **options: Any) -> tandem.World:
    """A world with as many PEs of each process as `pes` says, such as "2,1"."""
    return tandem.World(f"sim:{pes.split(',')[rank()]}", meeting=tandem.Meeting.from_env(), **options)


def meet(team: tandem.Team) -> None:
    team.barrier()
    team.synchronize()


def data(seed: int, pe: int, shape: Any, dtype: str) -> npt.NDArray[Any]:
    """The same in every process."""
    rng = np.random.default_rng([seed, pe])
    kind = np.dtype(dtype)
    found: npt.NDArray[Any]
    if kind.kind == "f":
        found = rng.standard_normal(shape).astype(kind)
    else:
        info = np.iinfo(kind)
        found = rng.integers(info.min, info.max, shape, dtype=kind.type, endpoint=True)
    return found


def raises(kind: type[BaseException], *texts: str) -> Callable[[Callable[[], Any]], BaseException]:
    """Calls a function, which must raise `kind` with all these texts."""

    def check(call: Callable[[], Any]) -> BaseException:
        try:
            call()
        except kind as error:
            assert all(text in str(error) for text in texts), f"{error!r}: expected {texts}"
            return error
        raise AssertionError(f"nothing was raised, expected {kind.__name__}")

    return check


def suite(seed: int, pes: str) -> None:
    meeting = tandem.Meeting.from_env()
    assert meeting is not None and (meeting.rank, meeting.size) == (rank(), len(pes.split(",")))
    with world_of(pes) as world:
        counts = [int(count) for count in pes.split(",")]
        n, first = sum(counts), sum(counts[: rank()])
        assert (world.size, len(world), world.local) == (n, n, list(range(first, first + counts[rank()])))
        assert [pe.number for pe in world] == world.local
        for pe in range(n):
            owner = world.process_of(pe)
            assert owner is not None and (owner == tandem.Process) is False
            assert (owner.pid == os.getpid()) == (owner.rank == rank()) == (pe in world.local)
            if pe not in world.local:
                raises(tandem.InvalidError, f"PE {pe} (sim:{pe}) is of process {owner.rank} (pid {owner.pid})")(lambda: world[pe])
        raises(IndexError)(lambda: world.process_of(n))
        copies(seed, world)
        views(seed, world)
        signals(seed, world)
        collectives(seed, world)
        arrays(seed, world)
        parts(seed, world)
        meet(world)


def copies(seed: int, world: tandem.World) -> None:
    n = world.size
    for size in [0, 1, 7, 4099]:
        x, y = world.zeros((2, size), "int16"), world.zeros((2, size), "int16")
        for pe in world.local:
            x.write(pe, data(seed, pe, (2, size), "int16"))
        meet(world)
        for pe in range(n):
            np.testing.assert_array_equal(x.read(pe), data(seed, pe, (2, size), "int16"))
        for mine in world:
            mine.put(y[0], x[1], (mine.number + 1) % n)
            mine.get(y[1], x[0], (mine.number + n - 1) % n)
        meet(world)
        for pe in range(n):
            left = data(seed, (pe + n - 1) % n, (2, size), "int16")
            np.testing.assert_array_equal(y.read(pe), [left[1], left[0]])
        meet(world)
    count = world.zeros((), "uint64")
    for mine in world:
        for pe in range(n):
            mine.atomic(count, "add", 3 + mine.number, pe)
    meet(world)
    assert all(count.read(pe) == sum(3 + pe for pe in range(n)) for pe in range(n))
    meet(world)


def views(seed: int, world: tandem.World) -> None:
    """NumPy sees the memory of all, in one piece, also where the heap has grown in several."""
    n = world.size
    kept = [world.zeros(size, "float64") for size in [1, 200_001, 3, 600_001]]
    for number, array in enumerate(kept):
        size = array.size
        for pe in world.local:
            np.asarray(array.on(pe))[:] = data(seed + number, pe, size, "float64")
        meet(world)
        for pe in range(n):
            there = np.asarray(array.on(pe))
            np.testing.assert_array_equal(there, data(seed + number, pe, size, "float64"))
            np.testing.assert_array_equal(there, array.read(pe))
            np.testing.assert_array_equal(np.from_dlpack(array.on(pe)), there)
        meet(world)
        # What one process stores in another's part is what that one has.
        for pe in world.local:
            np.asarray(array.on((pe + 1) % n))[-1] = pe + 0.5
        meet(world)
        for pe in world.local:
            assert array.read(pe)[-1] == np.asarray(array.on(pe))[-1] == (pe + n - 1) % n + 0.5
        meet(world)
    addresses = [kept[3].on(pe).ptr for pe in range(n)]
    assert kept[3].stride is None or {b - a for a, b in zip(addresses, addresses[1:])} == {kept[3].stride}


def signals(seed: int, world: tandem.World) -> None:
    n, size = world.size, 1001
    out, inbox = world.zeros(size, "float32"), world.zeros(size, "float32")
    ready, free = world.zeros((), "uint64"), world.zeros((), "uint64")
    for number in range(1, 6):
        for mine in world:
            me, right, left = mine.number, (mine.number + 1) % n, (mine.number + n - 1) % n
            mine.synchronize()
            out.write(me, data(seed + number, me, size, "float32"))
            mine.wait(free, ">=", number - 1, source=right)
            mine.put_signal(inbox, out, right, ready, number)
        for mine in world:
            me, left = mine.number, (mine.number + n - 1) % n
            world.wait_until(me, ready, ">=", number, source=left)
            np.testing.assert_array_equal(inbox.read(me), data(seed + number, left, size, "float32"))
            mine.signal(free, left, number)
    meet(world)


def same(dtype: str, found: Any, expected: Any) -> None:
    if np.dtype(dtype).kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    else:
        np.testing.assert_array_equal(found, expected)


def collectives(seed: int, world: tandem.World) -> None:
    n = world.size
    combine: Any = {"sum": np.add, "min": np.minimum, "max": np.maximum}
    cases: list[tuple[int, str, Any, bool]] = [
        (1, "float32", "sum", True), (5, "int64", "max", False), (4099, "uint32", "sum", True), (40_001 if n < 8 else 9001, "float64", "min", False),
    ]  # fmt: skip
    for size, dtype, op, wait in cases:
        x, wide, part = world.zeros(n * size, dtype), world.zeros((n, n * size), dtype), world.zeros(size, dtype)
        to = world.zeros(n * size, dtype)
        all_of = [data(seed + size, pe, n * size, dtype) for pe in range(n)]
        for pe in world.local:
            x.write(pe, all_of[pe])
        meet(world)
        expected = combine[op].reduce(all_of, dtype=dtype)
        root = size % n
        found: dict[str, list[Any]] = {}

        def keep(name: str, array: tandem.Array) -> None:
            if not wait:
                world.synchronize()
            found[name] = [array.read(pe) for pe in world.local]

        world.all_reduce(x, to, op, wait=wait)
        keep("all_reduce", to)
        world.reduce_scatter(x, part, op, wait=wait)
        keep("reduce_scatter", part)
        world.all_gather(x, wide, wait=wait)
        keep("all_gather", wide)
        world.all_to_all(x, to, wait=wait)
        keep("all_to_all", to)
        world.broadcast(x, root, to, wait=wait)
        keep("broadcast", to)
        for i, pe in enumerate(world.local):
            mine = slice(pe * size, (pe + 1) * size)
            same(dtype, found["all_reduce"][i], expected)
            same(dtype, found["reduce_scatter"][i], expected[mine])
            np.testing.assert_array_equal(found["all_gather"][i], all_of)
            np.testing.assert_array_equal(found["all_to_all"][i], np.concatenate([one[mine] for one in all_of]))
            np.testing.assert_array_equal(found["broadcast"][i], all_of[root])
        meet(world)


def arrays(seed: int, world: tandem.World) -> None:
    length = 1003
    whole = data(seed, 0, length, "int32")
    a, b = world.global_array(length, "int32", "cyclic"), world.global_array(length, "int32", 7)
    if rank() == 0:
        a[:] = whole
    meet(world)
    b.assign(a)
    meet(world)
    np.testing.assert_array_equal(b[:], whole)
    # As the kernels of a simulator index it.
    for pe in world.local:
        seen = b.on(pe)
        assert [seen[i] for i in range(0, length, 31)] == whole[::31].tolist()
        del seen
    meet(world)


def parts(seed: int, world: tandem.World) -> None:
    """A team of some PEs: a process may have none of these."""
    n = world.size
    odd = world.split(list(range(n - 1, -1, -2)))
    x = odd.zeros(3, "int32")
    for mine in odd:
        x.write(mine.number, np.full(3, mine.number + 1, "int32"))
    odd.barrier()
    odd.all_reduce(x)
    odd.synchronize()
    for mine in odd:
        assert x.read(mine.number).tolist() == [sum(range(1, odd.size + 1))] * 3
    assert [odd.members[pe] in world.local for pe in range(odd.size)] == [pe in odd.local for pe in range(odd.size)]
    meet(world)


def is_lost(world: tandem.World, call: Callable[[], Any], begun: float) -> None:
    """Sees that a call ends soon, because the victim has ended."""
    error = raises(tandem.FaultError, "PE 1 of process 1 (pid ", "is lost")(call)
    assert isinstance(error, tandem.FaultError) and time.monotonic() - begun < 30
    assert (error.kind, error.peer, error.process) == ("process", VICTIM, world.process_of(VICTIM))
    assert error.process is not None and str(error.process.pid) in str(error)
    raises(tandem.FaultError)(world.check)


def lost(seed: int, pes: str, end: Callable[[], Any]) -> None:
    """The victim ends by `end`, in a wait of all others. A team without it goes on."""
    world = world_of(pes, timeout=LONG)
    others = world.split([0, 2])
    word, x = world.zeros((), "uint64"), others.zeros(1000, "float32")
    meet(world)
    if rank() == VICTIM:
        # When all others wait.
        time.sleep(1)
        end()
        return
    begun = time.monotonic()
    world[rank()].wait(word, "==", 1, source=VICTIM)
    is_lost(world, world[rank()].synchronize, begun)
    is_lost(world, lambda: world.wait_until(rank(), word, "==", 1, source=VICTIM), begun)
    me = others.local[0]
    np.asarray(x.on(me))[:] = data(seed, me, 1000, "float32")
    others[me].put(x, x, me)
    meet(others)
    np.testing.assert_array_equal(x.read(1 - me), data(seed, 1 - me, 1000, "float32"))
    raises(tandem.ProcessError, "process 1 (pid ")(lambda: others.zeros(1))
    meet(others)
    world.close()


def killed(seed: int, pes: str) -> None:
    lost(seed, pes, lambda: os.kill(os.getpid(), signal.SIGKILL))


def exits(seed: int, pes: str) -> None:
    lost(seed, pes, lambda: sys.exit(3))


def fails(seed: int, pes: str) -> None:
    """An exception leaves the world's block, and the process goes on."""

    world = world_of(pes, timeout=LONG)
    word = world.zeros((), "uint64")
    meet(world)
    begun = time.monotonic()
    if rank() == VICTIM:
        time.sleep(1)
        try:
            with world:
                raise KeyError("something of the program's own")
        except KeyError:
            assert world.closed
            time.sleep(4)
        return
    world[rank()].wait(word, "==", 1, source=VICTIM)
    is_lost(world, world[rank()].synchronize, begun)


def closes(seed: int, pes: str) -> None:
    """One process closes its world early, which is no fault: what it has written stays."""
    world = world_of(pes, timeout=LONG)
    others = world.split([0, 2])
    x = world.zeros(100, "int64")
    meet(world)
    if rank() == VICTIM:
        for pe in [0, 2]:
            world[VICTIM].put(x, x, pe)
        x.write(VICTIM, data(seed, VICTIM, 100, "int64"))
        world.close()
        return
    while not x.read(VICTIM).any():
        time.sleep(0.01)
    time.sleep(0.5)
    for _ in range(3):
        meet(others)
    np.testing.assert_array_equal(x.read(VICTIM), data(seed, VICTIM, 100, "int64"))
    world.check()
    world.close()


def late(seed: int, pes: str) -> None:
    world = world_of(pes, timeout=SHORT)
    meet(world)
    if rank() == VICTIM:
        time.sleep(3 * SHORT)
        # They have given up, and may have ended since.
        raises(tandem.Error, "process ")(lambda: world.zeros(10))
        return
    victim = world.process_of(VICTIM)
    assert victim is not None
    raises(tandem.ProcessError, f"process 1 (pid {victim.pid})", "has not come")(lambda: world.zeros(10))
    begun = time.monotonic()
    world.barrier()
    error = raises(tandem.FaultError, f"process 1 (pid {victim.pid})")(world.synchronize)
    assert isinstance(error, tandem.FaultError) and error.kind == "barrier" and error.process == victim
    assert time.monotonic() - begun < SHORT + 20


def other_call(seed: int, pes: str) -> None:
    world = world_of(pes, timeout=LONG)
    size = 100_000 if rank() == VICTIM else 200_000
    raises(tandem.ProcessError, "process 0 (pid ", "process 1 (pid ", "the same calls in the same order")(lambda: world.zeros(size))


def other_window(seed: int, pes: str) -> None:
    window = 64 << 20 if rank() == VICTIM else 128 << 20
    raises(tandem.ProcessError, "process 0 (pid ", "process 1 (pid ", "67108864", "134217728")(lambda: world_of(pes, window=window))


def absent(seed: int, pes: str) -> None:
    meeting = tandem.Meeting.from_env(within=1.0)
    raises(tandem.ProcessError, "in vain for process 1 at ")(lambda: tandem.World("sim:1", meeting=meeting))


def one_fails(seed: int, pes: str) -> None:
    """What `tandem run` ends."""
    print(f"process {rank()}")
    world = world_of(pes, timeout=LONG)
    meet(world)
    if rank() == VICTIM:
        time.sleep(1)
        sys.exit(7)
    time.sleep(LONG)


if __name__ == "__main__":
    scene: Callable[[int, str], None] = globals()[sys.argv[1]]
    scene(int(sys.argv[2]), sys.argv[3])
