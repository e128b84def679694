"""One memory over the GPUs of a machine.

A `World` opens PEs (processing elements): GPUs, or pretend ones on a machine without a GPU. Its arrays lie on every PE;
each PE has an ordered queue that puts, gets, signals and waits; collectives work on all of them.

    import tandem

    world = tandem.World("sim:4")              # or "cuda:0,1"
    x = world.zeros(1000, "float32")
    x.write(0, data)
    world[0].put(x, x, 3)                      # from PE 0 to PE 3
    world.synchronize()

A `Meeting` makes a world of several processes, which `python -m tandem run` starts. `tandem.numba` and `tandem.triton` index a `GlobalArray` inside kernels.
"""

from ._errors import (
    ClosedError,
    DeviceError,
    Error,
    FaultError,
    InvalidError,
    NoPeerError,
    OutOfMemoryError,
    ProcessError,
)
from ._fabric import PE, Array, GlobalArray, Meeting, Part, Plan, Process, Team, Topology, World, built_with
from ._kernel import GlobalView

__all__ = [
    "PE",
    "Array",
    "ClosedError",
    "DeviceError",
    "Error",
    "FaultError",
    "GlobalArray",
    "GlobalView",
    "InvalidError",
    "Meeting",
    "NoPeerError",
    "OutOfMemoryError",
    "Part",
    "Plan",
    "Process",
    "ProcessError",
    "Team",
    "Topology",
    "World",
    "built_with",
]
