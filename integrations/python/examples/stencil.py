"""A stencil with halo exchange: each point becomes the mean of its four neighbours, in steps.

    python stencil.py sim:4
    python stencil.py cuda:0,1                     # with CuPy
    python -m tandem run -n 4 python stencil.py    # a process for each PE

The rows of the field are divided among the PEs. Each PE has two rows more, the halos, which its neighbours fill: by a put
with a signal behind each step. No PE waits for one that is not its neighbour.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, ContextManager

import numpy as np
import numpy.typing as npt

import tandem


def on_queue(world: tandem.World, pe: int) -> ContextManager[Any]:
    """Where arrays are computed on in the order of the PE's queue: its stream, or now, when the queue has done its work."""
    if not world.is_cuda:
        world[pe].synchronize()
        return contextlib.nullcontext()
    import cupy

    stack = contextlib.ExitStack()
    stack.enter_context(cupy.cuda.Device(world[pe].device))
    stack.enter_context(cupy.cuda.ExternalStream(world[pe].stream))
    return stack


def seen(world: tandem.World, array: tandem.Array, pe: int) -> Any:
    """A PE's part as an array of NumPy or CuPy, without a copy."""
    if not world.is_cuda:
        return np.asarray(array.on(pe))
    import cupy

    with on_queue(world, pe):
        return cupy.asarray(array.on(pe))


def step(to: Any, source: Any) -> None:
    """The inner points, of NumPy or CuPy; the columns at the edges stay."""
    to[1:-1, 1:-1] = (source[:-2, 1:-1] + source[2:, 1:-1] + source[1:-1, :-2] + source[1:-1, 2:]) / 4


def stencil(world: tandem.World, field: npt.NDArray[np.float32], steps: int) -> npt.NDArray[np.float32]:
    """The field after so many steps. Its rows without the first and the last are divided evenly among the PEs."""
    n = world.size
    rows, columns = (field.shape[0] - 2) // n, field.shape[1]
    assert rows * n == field.shape[0] - 2 and rows > 0
    fields = [world.zeros((rows + 2, columns), "float32") for _ in range(2)]
    # By side: how many halos have come from above, and from below.
    come = world.zeros(2, "uint64")
    for array in fields:
        for pe in world.local:
            array.write(pe, field[pe * rows : pe * rows + rows + 2])
    views = [{pe: seen(world, array, pe) for pe in world.local} for array in fields]
    world.barrier()
    for number in range(1, steps + 1):
        source, to = (number - 1) % 2, number % 2
        for pe in world.local:
            with on_queue(world, pe):
                step(views[to][pe], views[source][pe])
            if pe > 0:
                world[pe].put_signal(fields[to][rows + 1], fields[to][1], pe - 1, come[1], number)
            if pe + 1 < n:
                world[pe].put_signal(fields[to][0], fields[to][rows], pe + 1, come[0], number)
        for pe in world.local:
            if pe > 0:
                world[pe].wait(come[0], ">=", number, source=pe - 1)
            if pe + 1 < n:
                world[pe].wait(come[1], ">=", number, source=pe + 1)
    world.barrier()
    world.synchronize()
    out = field.copy()
    for pe in range(n):
        out[1 + pe * rows : 1 + (pe + 1) * rows] = fields[steps % 2].read(pe)[1:-1]
    return out


def main() -> None:
    meeting = tandem.Meeting.from_env()
    devices = sys.argv[1] if len(sys.argv) > 1 else "sim:1" if meeting else "sim:4"
    with tandem.World(devices, meeting=meeting) as world:
        # The same in every process.
        field = np.random.default_rng(7).standard_normal((2 + 32 * world.size, 100)).astype("float32")
        found = stencil(world, field, 50)
        whole = [field, field.copy()]
        for number in range(1, 51):
            step(whole[number % 2], whole[(number - 1) % 2])
        np.testing.assert_allclose(found, whole[0], rtol=1e-5, atol=1e-6)
        if 0 in world.local:
            print(f"{devices}: {world.size} PEs, 50 steps of {field.shape[0]} rows, as one array has them")


if __name__ == "__main__":
    main()
