"""The kernels that Triton interprets on pretend PEs and compiles for GPUs."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from tandem.triton import pointer, remote


# Annotations are text: Triton up to 3.6 looks names in them up as in code.
@triton.jit
def reverse(b: "Any", a: "Any", dtype: tl.constexpr, N: tl.constexpr) -> None:
    """b[i] = 2 * a[n - 1 - i], by any PE, of all PEs."""
    i = tl.program_id(0) * N + tl.arange(0, N)
    inside = i < a.length
    x = tl.load(pointer(a, a.length - 1 - i, dtype), mask=inside)
    tl.store(pointer(b, i, dtype), x + x, mask=inside)


@triton.jit
def addresses(out: "Any", array: "Any", index: "Any", dtype: tl.constexpr) -> None:
    """Where elements are."""
    there = tl.cast(out, tl.uint64).to(tl.pointer_type(tl.uint64), bitcast=True)
    tl.store(there, pointer(array, tl.cast(index, tl.uint64), dtype).to(tl.uint64, bitcast=True))


@triton.jit
def shift(mine: "Any", me: "Any", pe: "Any", stride: "Any", N: tl.constexpr) -> None:
    """Writes the PE's number into another PE's elements."""
    there = (tl.cast(mine, tl.uint64) + tl.arange(0, N).to(tl.uint64) * 4).to(tl.pointer_type(tl.int32), bitcast=True)
    tl.store(remote(there, me, pe, stride), tl.full((N,), 0, tl.int32) + me)
