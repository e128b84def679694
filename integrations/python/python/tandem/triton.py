"""Global arrays inside kernels of Triton: addresses are computed, nothing is linked.

    import tandem.triton
    from tandem.triton import pointer

    @triton.jit
    def reverse(b, a, N: tl.constexpr):
        i = tl.program_id(0) * N + tl.arange(0, N)
        inside = i < a.length
        x = tl.load(pointer(a, a.length - 1 - i, tl.float32), mask=inside)
        tl.store(pointer(b, i, tl.float32), x, mask=inside)

    reverse[(blocks,)](b.on(pe).rule, a.on(pe).rule, N=1024)

A kernel gets the `rule` of the `GlobalView` of the PE that it runs on. The view has to live until the kernel has run. With
TRITON_INTERPRET=1 the same kernel runs on pretend PEs.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

__all__ = ["pointer", "remote"]


# Annotations are text: Triton up to 3.6 looks names in them up as in code.
@triton.jit
def _divide(number: "Any", by: "Any", reciprocal: "Any") -> "Any":
    # As detail::Divisor of tandem/fabric/array.cuh: a multiplication, and a correction by at most one.
    quotient = tl.umulhi(number, reciprocal)
    rest = number - quotient * by
    is_short = rest >= by
    return tl.where(is_short, quotient + 1, quotient), tl.where(is_short, rest - by, rest)


@triton.jit
def pointer(array: "Any", index: "Any", dtype: tl.constexpr) -> "Any":
    """Pointers to the elements `index` of a global array, whose elements are `dtype`."""
    index = tl.cast(index, tl.uint64)
    by = tl.cast(array.block, tl.uint64)
    pes = tl.cast(array.pes, tl.uint64)
    zero = index - index
    block, inside = _divide(index, by, zero + tl.cast(array.block_reciprocal, tl.uint64))
    turn, pe = _divide(block, pes, zero + tl.cast(array.pes_reciprocal, tl.uint64))
    place = turn * by + inside
    size: tl.constexpr = dtype.primitive_bitwidth // 8
    part = tl.cast(array.base, tl.uint64) + pe * tl.cast(array.stride, tl.uint64)
    return (part + place * size).to(tl.pointer_type(dtype), bitcast=True)


@triton.jit
def remote(mine: "Any", me: "Any", pe: "Any", stride: "Any") -> "Any":
    """Where PE `pe` has what PE `me` has at the pointers `mine` to an array whose `Array.stride` is `stride`."""
    step = (tl.cast(pe, tl.int64) - tl.cast(me, tl.int64)) * tl.cast(stride, tl.int64)
    return (mine.to(tl.uint64, bitcast=True) + step.to(tl.uint64)).to(mine.dtype, bitcast=True)
