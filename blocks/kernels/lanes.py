"""What NumPy has no word for: a fused multiply-add, whole vectors, a pair moved at once, a cache line asked for."""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir  # type: ignore[import-untyped]  # llvmlite ships no types
from numba.core import types
from numba.extending import intrinsic


@intrinsic
def fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401 - Numba's own signature
    """Return ``a * b + c`` rounded once, float64: the same bits whether or not the loop around is vectorised."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), build


@intrinsic
def widest(typing_context: Any) -> Any:  # noqa: ANN401 - Numba's own signature
    """Have the loops of the function around vectorised as wide as the processor is, not as its tuning prefers.

    LLVM keeps to half of AVX-512 on processors that once clocked down for it; these loops run a seventh faster whole.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        # The set's own check knows flags alone; what it holds is written to the function's header as it is.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), build


@intrinsic
def move_pair(typing_context: Any, target: Any, at: Any, source: Any, index: Any) -> Any:  # noqa: ANN401
    """Copy ``source[index : index + 2]`` to ``target[at : at + 2]`` in one load and one store.

    Both are contiguous 1-D arrays of one type; the indices are uint64 and are not checked.
    """
    bits = source.dtype.bitwidth
    wide = ir.IntType(2 * bits)

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        def address(array: int, position: int) -> Any:  # noqa: ANN401
            view = context.make_array(signature.args[array])(context, builder, arguments[array])
            return builder.bitcast(builder.gep(view.data, [arguments[position]]), ir.PointerType(wide))

        value = builder.load(address(2, 3), align=bits // 8)
        builder.store(value, address(0, 1), align=bits // 8)
        return context.get_dummy_value()

    return types.void(target, types.uint64, source, types.uint64), build


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:  # noqa: ANN401
    """Ask for the cache line of ``array[index]``: contiguous, 1-D, a uint64 index that is not checked nor read."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.bitcast(builder.gep(view.data, [arguments[1]]), ir.PointerType(ir.IntType(8)))
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        # For reading, to be kept in every cache, from the data cache.
        builder.call(function, [place, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, types.uint64), build
