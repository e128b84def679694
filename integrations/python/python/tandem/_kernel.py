"""A global array as a kernel of one PE gets it."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, NamedTuple, Tuple

import numpy as np

from ._fabric import Part

_LARGEST = 2**64 - 1


class Rule(NamedTuple):
    """What an element's address is computed from; kernels get it by value.

    Element i is in block i // block, which PE (i // block) % pes has as its block number i // block // pes. The part of
    PE p begins at base + p * stride. `block_reciprocal` and `pes_reciprocal` are (2**64 - 1) // block and // pes: with them
    a division is a multiplication and a correction.
    """

    base: int
    stride: int
    length: int
    block: int
    block_reciprocal: int
    pes: int
    pes_reciprocal: int
    me: int


class GlobalView:
    """A global array for kernels of PE `me`. It keeps the memory: the world cannot be closed while it lives.

    In a kernel `view[i]` is element i of the whole array, on whichever PE it is. Indices are not checked on a GPU.
    """

    def __init__(self, rule: Rule, dtype: str, part: Part, is_cuda: bool) -> None:
        self.rule = rule
        self.dtype = np.dtype(dtype)
        self.is_cuda = is_cuda
        self._keep = part
        self._parts: Dict[int, Any] = {}

    @property
    def me(self) -> int:
        """The PE whose kernels it is for."""
        return self.rule.me

    def __len__(self) -> int:
        return self.rule.length

    def owner(self, index: int) -> Tuple[int, int]:
        """The PE that has element `index`, and where in its part."""
        block, inside = divmod(int(index), self.rule.block)
        turn, pe = divmod(block, self.rule.pes)
        return pe, turn * self.rule.block + inside

    def index_of(self, place: int) -> int:
        """Which element is at `place` of this PE's part."""
        turn, inside = divmod(int(place), self.rule.block)
        return (turn * self.rule.pes + self.rule.me) * self.rule.block + inside

    def local_length(self) -> int:
        """Elements of this PE."""
        full, inside = divmod(self.rule.length, self.rule.block)
        turns, before = divmod(full, self.rule.pes)
        last = self.rule.block if self.rule.me < before else inside if self.rule.me == before else 0
        return turns * self.rule.block + last

    # A kernel in a simulator runs as Python, on pretend PEs.

    def __getitem__(self, index: int) -> Any:
        pe, place = self._place(index)
        return self._part(pe)[place]

    def __setitem__(self, index: int, value: Any) -> None:
        pe, place = self._place(index)
        self._part(pe)[place] = value

    def _place(self, index: int) -> Tuple[int, int]:
        if self.is_cuda:
            raise TypeError("elements on a GPU are indexed inside kernels; on the host index the GlobalArray")
        if not 0 <= index < self.rule.length:
            raise IndexError(f"index {index} of a global array of {self.rule.length}, in a kernel of PE {self.me}")
        return self.owner(index)

    def _part(self, pe: int) -> Any:
        if pe not in self._parts:
            room = -(-(-(-self.rule.length // self.rule.block)) // self.rule.pes) * self.rule.block
            at = self.rule.base + pe * self.rule.stride
            memory = (ctypes.c_char * (room * self.dtype.itemsize)).from_address(at)
            self._parts[pe] = np.frombuffer(memoryview(memory), self.dtype)
        return self._parts[pe]

    def __repr__(self) -> str:
        return f"<tandem.GlobalView of {len(self)} {self.dtype} for PE {self.me}>"


def view(rule: Tuple[int, int, int, int, int, int], dtype: str, part: Part, is_cuda: bool) -> GlobalView:
    """Made by GlobalArray.on."""
    base, stride, length, block, pes, me = rule
    whole = Rule(base, stride, length, block, _LARGEST // block, pes, _LARGEST // pes, me)
    return GlobalView(whole, dtype, part, is_cuda)
