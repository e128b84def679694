"""A shift along a ring, and how long it takes: every PE writes to the next one.

    python shift.py sim:4
    python shift.py cuda:0,1
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
    for pe in range(n):
        source.write(pe, data[pe])
    for pe in range(n):
        world[pe].put(inbox, source, (pe + 1) % n)
    world.synchronize()
    for pe in range(n):
        np.testing.assert_array_equal(inbox.read(pe), data[pe - 1])
    begun = time.perf_counter()
    for _ in range(rounds):
        for pe in range(n):
            world[pe].put(inbox, source, (pe + 1) % n)
    world.synchronize()
    return rounds * source.nbytes / (time.perf_counter() - begun) / 1e9


def ping_pong(world: tandem.World, rounds: int) -> float:
    """Microseconds of a round trip of signals between PEs 0 and 1, told to their queues."""
    words = world.zeros(2, "uint64")
    ping, pong = words[0], words[1]
    begun = time.perf_counter()
    for number in range(1, rounds + 1):
        world[0].signal(ping, 1, number)
        world[1].wait(ping, ">=", number, source=0)
        world[1].signal(pong, 0, number)
        world[0].wait(pong, ">=", number, source=1)
    world.synchronize()
    assert pong.read(0) == ping.read(1) == rounds
    return (time.perf_counter() - begun) / rounds * 1e6


def main() -> None:
    devices = sys.argv[1] if len(sys.argv) > 1 else "sim:4"
    with tandem.World(devices) as world:
        print(f"{devices}: {world.size} PEs")
        for kib in [4, 64, 1024, 16384]:
            rate = shift(world, kib * 256, 20)
            print(f"  shift of {kib:6} KiB: {rate:8.3f} GB/s of each PE")
        if world.size > 1:
            print(f"  ping-pong: {ping_pong(world, 200):.1f} us there and back")


if __name__ == "__main__":
    main()
