"""Loops as machine code that is compiled once, and called by its address from any function that a sampler compiles.

Numba takes the code of a function into each function that calls it, and optimises it there anew. What a sampler evaluates calls the loop
of a kernel four calls deep, and would be optimised four times with all of it, in every process. So a loop ends here: its arrays go by
pointer, to a name that every process gives to the address it has.

Imported when the first kernel is compiled, because numba takes half a second to import.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from llvmlite.binding import add_symbol
from numba import types
from numba.extending import register_jitable
from pytensor.configdefaults import config
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import numba_njit

ENTRIES: dict[str, list[Any]] = {}
"""Loops by their keys, the newest last. None is let go: code that was compiled before may call it."""


def by_address(loop: Callable, ranks: Sequence[int], like: Sequence[int | None], key: str) -> Callable:
    """What numba calls instead of the loop; the loop itself is compiled here, or read from PyTensor's compile directory.

    Parameters
    ----------
    loop : function
        Of arrays of float64, to one or several.
    ranks : sequence of int
        How many axes each of its arguments has.
    like : sequence
        Whose shape each of its results has: an argument, or None for the first axis of the first argument.
    key : str
        Names the loop with all that is compiled into it.
    """
    key = f"{key}_fastmath{int(config.numba__fastmath)}"
    name, arguments = loop.__name__, [f"x{k}" for k in range(len(ranks))]
    results = [f"y{k}" for k in range(len(like))]
    names, pointer = [*arguments, *results], types.CPointer(types.float64)
    kind = types.void(*[pointer] * len(names), types.CPointer(types.intp))
    axes = [f"{x}.shape[{axis}]" for x, rank in zip(arguments, ranks, strict=True) for axis in range(rank)]
    if key not in ENTRIES or not config.numba__cache:
        places = [range(start, start + rank) for rank, start in zip(ranks, np.cumsum([0, *ranks]), strict=False)]
        arrays = [_array(x, axes) for x, axes in zip(arguments, places, strict=True)]
        lines = [f"def {name}({', '.join([*names, 'shape'])}):", f"    results = loop({', '.join(arrays)})"]
        for k, (y, source) in enumerate(zip(results, like, strict=True)):
            place = _array(y, [0] if source is None else places[source])
            lines.append(f"    _copied({'results' if len(results) == 1 else f'results[{k}]'}, {place})")
        whole = globals() | {"loop": numba_njit(loop, error_model="numpy")}
        entry = compile_numba_function_src("\n".join(lines), name, whole, cache_key=f"entry_{key}")
        ENTRIES.setdefault(key, []).append(numba.cfunc(kind, cache=config.numba__cache)(entry))

    # Under this name the linker finds it, when code that calls it is read from disk, too: PyTensor asks for every operation's function
    # before it reads what calls them.
    symbol = f"pymc_dp_{key}"
    add_symbol(symbol, ENTRIES[key][-1].address)
    shapes = ["x0.shape[0]" if k is None else f"x{k}.shape" for k in like]
    lines = [
        f"def {name}({', '.join(arguments)}):",
        *(f"    {x} = np.ascontiguousarray({x})" for x, rank in zip(arguments, ranks, strict=True) if rank),
        *(f"    {y} = np.full({shape}, np.nan)" for y, shape in zip(results, shapes, strict=True)),
        f"    shape = np.array([{', '.join(axes)}])",
        f"    at({', '.join(f'{array}.ctypes' for array in [*names, 'shape'])})",
        f"    _kept({', '.join([*arguments, 'shape'])})",
        f"    return {', '.join(results)}",
    ]
    whole = globals() | {"at": types.ExternalFunction(symbol, kind)}
    return numba_njit(compile_numba_function_src("\n".join(lines), name, whole))


def _array(pointer: str, axes: Sequence[int]) -> str:
    return f"numba.carray({pointer}, ({''.join(f'shape[{axis}], ' for axis in axes)}))"


@register_jitable
def _copied(array, place):
    """Copies an array of the same size. Of another size, nothing is copied, so NaN is left, as by a loop that raised an exception."""
    source, target = array.reshape(array.size), place.reshape(place.size)
    if source.size == target.size:
        for k in range(target.size):
            target[k] = source[k]


@register_jitable
def _kept(*arrays):
    """Names arrays, so that they are not freed before."""
    return len(arrays)
