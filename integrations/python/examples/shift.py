"""A shift along a ring, and how long it takes: every PE writes to the next one.

    python shift.py sim:4
    python shift.py cuda:0,1
    python -m tandem run -n 4 python shift.py      # a process for each PE
"""

from __future__ import annotations

import sys
import time

import numpy as np

import tandem


def shift(world: tandem.World, elements: int, rounds: int) -> float:
    """Shifts random data once around, checks it, and returns GB/s of each PE over `rounds` shifts."""
    n = world.size
    source, inbox = world.zeros(elements, "int32"), world.zeros(elements, "int32")
    data = [np.random.default_rng(pe).integers(0, 2**31, elements, dtype="int32") for pe in range(n)]
    for pe in world:
        source.write(pe.number, data[pe.number])
        pe.put(inbox, source, (pe.number + 1) % n)
    world.barrier()
    world.synchronize()
    for pe in world:
        np.testing.assert_array_equal(inbox.read(pe.number), data[pe.number - 1])
    world.barrier()
    world.synchronize()
    begun = time.perf_counter()
    for _ in range(rounds):
        for pe in world:
            pe.put(inbox, source, (pe.number + 1) % n)
    world.barrier()
    world.synchronize()
    return rounds * source.nbytes / (time.perf_counter() - begun) / 1e9


def ping_pong(world: tandem.World, rounds: int) -> float:
    """Microseconds of a round trip of signals between PEs 0 and 1, told to their queues."""
    words = world.zeros(2, "uint64")
    ping, pong = words[0], words[1]
    begun = time.perf_counter()
    for number in range(1, rounds + 1):
        for pe in world:
            if pe.number == 0:
                pe.signal(ping, 1, number)
                pe.wait(pong, ">=", number, source=1)
            elif pe.number == 1:
                pe.wait(ping, ">=", number, source=0)
                pe.signal(pong, 0, number)
    world.barrier()
    world.synchronize()
    assert pong.read(0) == ping.read(1) == rounds
    return (time.perf_counter() - begun) / rounds * 1e6


def main() -> None:
    meeting = tandem.Meeting.from_env()
    devices = sys.argv[1] if len(sys.argv) > 1 else "sim:1" if meeting else "sim:4"
    with tandem.World(devices, meeting=meeting) as world:
        lines = [f"{devices}: {world.size} PEs"]
        for kib in [4, 64, 1024, 16384]:
            rate = shift(world, kib * 256, 20)
            lines.append(f"  shift of {kib:6} KiB: {rate:8.3f} GB/s of each PE")
        if world.size > 1:
            lines.append(f"  ping-pong: {ping_pong(world, 200):.1f} us there and back")
        if 0 in world.local:
            print("\n".join(lines))


if __name__ == "__main__":
    main()
