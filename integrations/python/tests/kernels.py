"""The kernels that the simulator runs and the compiler compiles."""

from __future__ import annotations

from typing import Any

from numba import cuda

from tandem.numba import jit


@jit
def reverse(b: Any, a: Any) -> None:
    """b[i] = 2 * a[n - 1 - i], by any PE, of all PEs."""
    i = cuda.grid(1)
    if i < len(a):
        b[i] = a[len(a) - 1 - i] * 2


@jit
def number(a: Any) -> None:
    """Each PE writes to its own elements which they are."""
    place = cuda.grid(1)
    if place < a.local_length():
        a[a.index_of(place)] = a.index_of(place) + 1000 * a.me
