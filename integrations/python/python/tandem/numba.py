"""Global arrays inside kernels of numba-cuda.

    from numba import cuda
    from tandem.numba import jit            # cuda.jit, which knows global arrays

    @jit
    def reverse(b, a):
        i = cuda.grid(1)
        if i < len(a):
            b[i] = a[len(a) - 1 - i]

A kernel gets the `GlobalView` of the PE that it runs on (`GlobalArray.on`). `a[i]`, `len(a)`, `a.me`, `a.index_of(place)` and
`a.local_length()` compile to arithmetic: nothing is linked. With NUMBA_ENABLE_CUDASIM=1 the same kernel runs on pretend PEs.
"""

from __future__ import annotations

import operator
from typing import Any, Callable, List, Optional, Tuple

from numba import config, cuda

from ._kernel import GlobalView, Rule

__all__ = ["extensions", "jit"]

#: For `cuda.jit(extensions=...)`, beside those of others. The simulator needs none.
extensions: List[Any] = []


def jit(function: Optional[Callable[..., Any]] = None, **options: Any) -> Any:
    """`numba.cuda.jit` for kernels whose arguments are global arrays; it takes the same options."""
    if not config.ENABLE_CUDASIM:
        options["extensions"] = [*options.get("extensions", []), *extensions]
    decorator = cuda.jit(**options)
    return decorator if function is None else decorator(function)


if not config.ENABLE_CUDASIM:
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.cudadecl import registry as typing
    from numba.cuda.cudaimpl import registry as lowering
    from numba.cuda.extending import models, register_model, typeof_impl
    from numba.cuda.np.numpy_support import from_dtype
    from numba.cuda.typing.templates import AbstractTemplate, AttributeTemplate, signature

    _U64 = ir.IntType(64)
    _U128 = ir.IntType(128)

    class GlobalArrayType(types.Type):
        """The type of a `GlobalView` in a kernel."""

        def __init__(self, dtype: Any) -> None:
            self.dtype = dtype
            super().__init__(name=f"tandem.GlobalArray({dtype})")

    @register_model(GlobalArrayType)
    class _Model(models.StructModel):
        def __init__(self, manager: Any, kind: GlobalArrayType) -> None:
            super().__init__(manager, kind, [(field, types.uint64) for field in Rule._fields])

    @typeof_impl.register(GlobalView)
    def _typeof(view: GlobalView, _context: Any) -> GlobalArrayType:
        return GlobalArrayType(from_dtype(view.dtype))

    class _Extension:
        """Passes a view as its numbers, one parameter each."""

        @staticmethod
        def prepare_args(kind: Any, value: Any, **_options: Any) -> Tuple[Any, Any]:
            if isinstance(kind, GlobalArrayType):
                return types.UniTuple(types.uint64, len(Rule._fields)), tuple(value.rule)
            return kind, value

    extensions.append(_Extension())

    def _field(builder: Any, array: Any, name: str) -> Any:
        return builder.extract_value(array, Rule._fields.index(name))

    def _divide(builder: Any, number: Any, by: Any, reciprocal: Any) -> Tuple[Any, Any]:
        """Quotient and rest, as `detail::Divisor` of tandem/fabric/array.cuh has them."""
        product = builder.mul(builder.zext(number, _U128), builder.zext(reciprocal, _U128))
        quotient = builder.trunc(builder.lshr(product, ir.Constant(_U128, 64)), _U64)
        rest = builder.sub(number, builder.mul(quotient, by))
        is_short = builder.icmp_unsigned(">=", rest, by)
        quotient = builder.select(is_short, builder.add(quotient, ir.Constant(_U64, 1)), quotient)
        return quotient, builder.select(is_short, builder.sub(rest, by), rest)

    def _split(builder: Any, array: Any, number: Any, name: str) -> Tuple[Any, Any]:
        return _divide(builder, number, _field(builder, array, name), _field(builder, array, f"{name}_reciprocal"))

    def _pointer(context: Any, builder: Any, kind: GlobalArrayType, array: Any, index: Any) -> Any:
        block, inside = _split(builder, array, index, "block")
        turn, pe = _split(builder, array, block, "pes")
        place = builder.add(builder.mul(turn, _field(builder, array, "block")), inside)
        data = context.get_data_type(kind.dtype)
        part = builder.add(_field(builder, array, "base"), builder.mul(pe, _field(builder, array, "stride")))
        size = ir.Constant(_U64, context.get_abi_sizeof(data))
        return builder.inttoptr(builder.add(part, builder.mul(place, size)), data.as_pointer())

    @typing.register_global(operator.getitem)
    class _GetItem(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 2 and isinstance(args[0], GlobalArrayType) and isinstance(args[1], types.Integer):
                return signature(args[0].dtype, args[0], types.uint64)
            return None

    @typing.register_global(operator.setitem)
    class _SetItem(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 3 and isinstance(args[0], GlobalArrayType) and isinstance(args[1], types.Integer):
                return signature(types.none, args[0], types.uint64, args[0].dtype)
            return None

    @typing.register_global(len)
    class _Len(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 1 and isinstance(args[0], GlobalArrayType):
                return signature(types.int64, args[0])
            return None

    @typing.register_attr
    class _Attributes(AttributeTemplate):
        key = GlobalArrayType

        def resolve_me(self, _array: Any) -> Any:
            return types.int64

        def resolve_index_of(self, array: Any) -> Any:
            return types.BoundFunction(_IndexOf, array)

        def resolve_local_length(self, array: Any) -> Any:
            return types.BoundFunction(_LocalLength, array)

    class _IndexOf(AbstractTemplate):
        key = "tandem.GlobalArray.index_of"

        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 1 and isinstance(args[0], types.Integer):
                return signature(types.int64, types.uint64, recvr=self.this)
            return None

    class _LocalLength(AbstractTemplate):
        key = "tandem.GlobalArray.local_length"

        def generic(self, args: Any, kws: Any) -> Any:
            return None if args else signature(types.int64, recvr=self.this)

    @lowering.lower(operator.getitem, GlobalArrayType, types.uint64)
    def _get(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = sig.args[0]
        return context.unpack_value(builder, kind.dtype, _pointer(context, builder, kind, *args))

    @lowering.lower(operator.setitem, GlobalArrayType, types.uint64, types.Any)
    def _set(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = sig.args[0]
        context.pack_value(builder, kind.dtype, args[2], _pointer(context, builder, kind, args[0], args[1]))
        return context.get_dummy_value()

    @lowering.lower(len, GlobalArrayType)
    def _len(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _field(builder, args[0], "length")

    @lowering.lower_getattr(GlobalArrayType, "me")
    def _me(context: Any, builder: Any, kind: Any, array: Any) -> Any:
        return _field(builder, array, "me")

    @lowering.lower("tandem.GlobalArray.index_of", GlobalArrayType, types.uint64)
    def _index_of(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, place = args
        turn, inside = _split(builder, array, place, "block")
        block = builder.add(builder.mul(turn, _field(builder, array, "pes")), _field(builder, array, "me"))
        return builder.add(builder.mul(block, _field(builder, array, "block")), inside)

    @lowering.lower("tandem.GlobalArray.local_length", GlobalArrayType)
    def _local_length(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = args[0]
        full, inside = _split(builder, array, _field(builder, array, "length"), "block")
        turns, before = _split(builder, array, full, "pes")
        me, block = _field(builder, array, "me"), _field(builder, array, "block")
        is_partial = builder.icmp_unsigned("==", me, before)
        last = builder.select(is_partial, inside, ir.Constant(_U64, 0))
        last = builder.select(builder.icmp_unsigned("<", me, before), block, last)
        return builder.add(builder.mul(turns, block), last)
