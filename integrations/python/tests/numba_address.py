"""Runs what the compiler gets for `a[i]`, `index_of` and `local_length` on this processor, against Python's own arithmetic.

The same code of LLVM becomes the GPU's; sizes are those of arrays that no test has the memory for.
"""

from __future__ import annotations

import ctypes
import random

from llvmlite import binding, ir
from numba.cuda import types
from numba.cuda.dispatcher import _Kernel
from numba.cuda.typing.typeof import Purpose, typeof

import tandem.numba as tn
from tandem import GlobalView
from tandem._kernel import view

LARGEST = 2**64 - 1
U64 = ir.IntType(64)
ARRAY = ir.LiteralStructType([U64] * 8)


class Context:
    """What lowering asks of numba's context."""

    @staticmethod
    def get_data_type(kind: object) -> ir.Type:
        return {types.float32: ir.FloatType(), types.int8: ir.IntType(8), types.float64: ir.DoubleType()}[kind]

    @staticmethod
    def get_abi_sizeof(kind: ir.Type) -> int:
        return {"float": 4, "i8": 1, "double": 8}[str(kind)]


module = ir.Module()
for name in ["address1", "address4", "address8", "index_of", "local_length"]:
    function = ir.Function(module, ir.FunctionType(U64, [U64] * 9), name)
    builder = ir.IRBuilder(function.append_basic_block())
    array = ir.Constant(ARRAY, ir.Undefined)
    for at, number in enumerate(function.args[:8]):
        array = builder.insert_value(array, number, at)
    index = function.args[8]
    if name.startswith("address"):
        kind = tn.GlobalArrayType({"1": types.int8, "4": types.float32, "8": types.float64}[name[-1]])
        builder.ret(builder.ptrtoint(tn._pointer(Context, builder, kind, array, index), U64))
    elif name == "index_of":
        builder.ret(tn._index_of(Context, builder, None, (array, index)))
    else:
        builder.ret(tn._local_length(Context, builder, None, (array,)))

binding.initialize_native_target()
binding.initialize_native_asmprinter()
engine = binding.create_mcjit_compiler(
    binding.parse_assembly(str(module)), binding.Target.from_default_triple().create_target_machine()
)
engine.finalize_object()


def call(name: str, of: GlobalView, index: int) -> int:
    function = ctypes.CFUNCTYPE(*[ctypes.c_uint64] * 10)(engine.get_function_address(name))
    return int(function(*of.rule, index))


for _ in range(20_000):
    pes = random.choice([1, 2, 3, 4, 5, 7, 8, 31, 32])
    length = random.getrandbits(random.choice([1, 2, 8, 31, 32, 33, 40, 45]))
    block = random.choice([1, 2, 3, 2**31, 2**32 + 1, max(1, -(-length // pes)), 1 + random.getrandbits(random.randrange(1, 40))])
    # On a GPU 256 GiB lie between two PEs; a team may be counted backwards.
    stride = random.choice([1 << 38, LARGEST - (1 << 38) + 1, 3 << 38])
    me = random.randrange(pes)
    of = view((1 << 46, stride, length, block, pes, me), "float32", None, True)  # type: ignore[arg-type]
    assert call("local_length", of, 0) == of.local_length()
    for index in {0, 1, length - 1, length // 2, block, block - 1, pes * block, random.randrange(length + 1)}:
        if not 0 <= index < max(1, length):
            continue
        pe, place = of.owner(index)
        for size in [1, 4, 8]:
            expected = ((1 << 46) + pe * stride + place * size) & LARGEST
            assert call(f"address{size}", of, index) == expected, (of.rule, index)
        if index < of.local_length():
            assert call("index_of", of, index) == of.index_of(index), (of.rule, index)
for length in range(40):
    for pes in range(1, 6):
        for block in range(1, 9):
            every = [view((0, 0, length, block, pes, me), "float32", None, True) for me in range(pes)]  # type: ignore[arg-type]
            found = [call("index_of", of, place) for of in every for place in range(call("local_length", of, 0))]
            assert sorted(found) == list(range(length))
# A launch passes a view as its eight numbers.
of = view((1 << 46, 1 << 38, 1000, 10, 4, 2), "float32", None, True)  # type: ignore[arg-type]
passed: list[ctypes.c_uint64] = []
kernel = object.__new__(_Kernel)
kernel.extensions = tn.extensions
kernel._prepare_args(typeof(of, Purpose.argument), of, 0, [], passed)
assert [number.value for number in passed] == list(of.rule)
print("ok")
