"""Which arrays are the same or share memory, by identity, layout and shape. No value is compared."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.lib.array_utils import byte_bounds
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable

from pymc_dp.models.structure import above, arrays_above, is_nameless, same_memory, substitute


def data_of(array: Variable) -> object:
    """What a constant or shared variable holds; only its identity and its shape may be looked at."""
    if isinstance(array, Constant):
        return array.data
    return array.get_value(borrow=True) if isinstance(array, SharedVariable) else None


def shape_of(array: Variable) -> tuple[int, ...]:
    """The shape of an array, which is public."""
    data = data_of(array)
    return data.shape if isinstance(data, np.ndarray) else ()


def shapes_of_nameless(arrays: Iterable[Variable], name_of: Callable[[Variable], str]) -> str:
    """The shapes of arrays that have no name in the model, in words."""
    shapes = {name: shape_of(array) for array in arrays if is_nameless(name := name_of(array))}
    return "".join(f", {name} being an array of shape {shape} without a name" for name, shape in shapes.items())


def known_shape(expression: Variable) -> tuple[int | None, ...]:
    """The shape of what is computed from data, as far as that of the data tells it: the type of a ``pm.Data`` does not say its length."""
    shared = [array for array in arrays_above([expression]) if isinstance(array, SharedVariable)]
    return substitute(expression, {array: array.type.clone(shape=shape_of(array))() for array in shared}).type.shape


def same_array(array: Variable, item: object) -> bool:
    """Whether an array of the graph is this very object or shares its memory; values are not compared."""
    data = data_of(array)
    item = getattr(item, "values", item)
    if data is item:
        return True
    if not (isinstance(data, np.ndarray) and isinstance(item, np.ndarray)):
        return False
    try:
        return np.shares_memory(data, item, max_work=10_000)
    except np.exceptions.TooHardError:
        return False


def first_of_each(arrays: Sequence[Variable], *, sized: bool) -> dict[Variable, Variable]:
    """Of each array the first that is the same one: an array that is written twice in a formula is two constants of one memory."""
    return {array: next(first for first in arrays if same_memory(first, array, sized=sized)) for array in arrays}


def covers(item: object, array: Variable) -> bool:
    """Whether an object holds all of an array of the graph: it is that array, or that array is a part of it."""
    return part_of(data_of(array), getattr(item, "values", item))


def part_of(part: object, whole: object) -> bool:
    """Whether an array is another one, or a part of its memory; values are not compared."""
    if part is whole:
        return True
    if not (isinstance(part, np.ndarray) and isinstance(whole, np.ndarray)) or not part.size:
        return False
    if part.ctypes.data == whole.ctypes.data and (part.shape, part.strides, part.dtype) == (whole.shape, whole.strides, whole.dtype):
        return True
    (start, end), (first, last) = byte_bounds(part), byte_bounds(whole)
    return first <= start and end <= last and last - first == whole.nbytes


def may_overlap(first: Variable, second: Variable) -> bool:
    """Whether two arrays may have memory in common. Only where they begin and end is looked at, so that views in turns do, too."""
    a, b = data_of(first), data_of(second)
    return a is b if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)) else bool(np.may_share_memory(a, b))


def laid_out_differently(first: Variable, axis: int, second: Variable, other: int) -> bool:
    """Whether two arrays are views of the same memory in which their records, along these axes, are laid out differently.

    Only the layout is looked at: which array owns the memory, and the length and the stride of both axes.
    """
    a, b = data_of(first), data_of(second)
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)) or _owner(a) is not _owner(b):
        return False
    if a.size and b.size and not np.may_share_memory(a, b):
        return False
    return (a.shape[axis], a.strides[axis]) != (b.shape[other], b.strides[other])


def _owner(array: np.ndarray) -> object:
    """The object whose memory an array is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array if array.base is None else array.base


def rests_on(thing: object, arrays: set[Variable]) -> bool:
    """Whether this is one of these arrays, or rests on one, or shares its memory."""
    if isinstance(thing, Variable):
        return any(root in arrays for root in above([thing]))
    return any(same_array(array, thing) for array in arrays)


def constant_length(length: Variable) -> int | None:
    """The length of a dim, where it is a constant."""
    return int(length.data) if isinstance(length, Constant) else None


def in_one_row(variable: Variable, axis: int) -> bool:
    """Whether constants have a single row along an axis, such as knots written as ``knots[None, :]``.

    Where there are several records it stands for all of them; where there is one, it may be that one's own.
    """
    return bool(variable.type.broadcastable[axis]) and all(isinstance(array, Constant) for array in arrays_above([variable]))
