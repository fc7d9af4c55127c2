"""Where records can hide: in memory that is shared, in attributes, closures and classes, in operations of Python code.

Structure stands before: it reads graphs. This module looks where no graph shows anything, for ``blank`` to refuse what it finds.
Arrays are told by identity and shape; no value is compared.
"""

from collections.abc import Iterator
from types import CellType, FunctionType, MappingProxyType, MethodType, ModuleType

import numpy as np
from numpy.lib.array_utils import byte_bounds
from pymc.distributions.custom import CustomDistRV
from pymc.logprob.abstract import _logprob
from pytensor.compile.ops import FromFunctionOp
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.tensor.random.type import RandomType

from pymc_dp.structure import above, arrays_above
from pymc_dp.truncation import BallNormalRV, TrimmedBetaRV, TrimmedDirichletRV

OWN = (BallNormalRV, TrimmedBetaRV, TrimmedDirichletRV)
"""Operations of this package, which hold plain numbers only."""


def opaque(variable: Variable) -> str | None:
    """Why an operation above a variable cannot be looked into, or what it holds; None if all is plain."""
    for part in above([variable]):
        operation = None if part.owner is None else part.owner.op
        if isinstance(operation, CustomDistRV):
            functions = [_logprob.dispatch(type(operation)), *vars(type(operation)).values()]
            if any(True for function in functions for _ in arrays_inside(function)):
                return "is a CustomDist whose functions hold an array"
            continue
        cores = [core for core in (operation, getattr(operation, "core_op", None), getattr(operation, "scalar_op", None)) if core]
        homes = {type(core).__module__.partition(".")[0] for core in cores if type(core) not in OWN}
        if not homes <= {"pytensor", "pymc"} or any(isinstance(core, FromFunctionOp) for core in cores):
            return "passes through an operation of Python code"
    return None


def data_of(array: Variable) -> object:
    """What a constant or shared variable holds; only its identity and its shape may be looked at."""
    if isinstance(array, Constant):
        return array.data
    return array.get_value(borrow=True) if isinstance(array, SharedVariable) else None


def shape_of(array: Variable) -> tuple[int, ...]:
    """Its shape, which is public."""
    data = data_of(array)
    return data.shape if isinstance(data, np.ndarray) else ()


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


def covers(item: object, array: Variable) -> bool:
    """Whether an object holds all of an array of the graph: it is that array, or that array is a part of it."""
    data = data_of(array)
    item = getattr(item, "values", item)
    if data is item:
        return True
    if not (isinstance(data, np.ndarray) and isinstance(item, np.ndarray)) or not data.size:
        return False
    if data.ctypes.data == item.ctypes.data and (data.shape, data.strides, data.dtype) == (item.shape, item.strides, item.dtype):
        return True
    (start, end), (first, last) = byte_bounds(data), byte_bounds(item)
    return first <= start and end <= last and last - first == item.nbytes


def rests_on(thing: object, arrays: set[Variable]) -> bool:
    """Whether this is one of these arrays, or rests on one, or shares its memory."""
    if isinstance(thing, Variable):
        return any(root in arrays for root in above([thing]))
    return any(same_array(array, thing) for array in arrays)


def arrays_inside(thing: object, depth: int = 5) -> Iterator[object]:
    """The arrays and variables an object holds: in its attributes and its class's, in a function's closure and globals."""
    if isinstance(thing, np.ndarray) or (isinstance(thing, Variable) and not isinstance(thing.type, RandomType)):
        if thing.ndim if isinstance(thing, np.ndarray) else arrays_above([thing], through_unknowns=True):
            yield thing
        return
    if depth == 0 or thing is None or isinstance(thing, str | bytes | int | float | type | ModuleType | Variable):
        return
    parts: list[object] = []
    if isinstance(thing, dict):
        parts += thing.values()
    elif isinstance(thing, list | tuple | set | frozenset):
        parts += thing
    elif isinstance(thing, FunctionType):
        parts += [content for cell in thing.__closure__ or () for content in _content(cell)]
        parts += [thing.__defaults__, thing.__kwdefaults__]
        if (thing.__module__ or "").partition(".")[0] not in {"pytensor", "pymc", "numpy"}:
            parts += [thing.__globals__.get(name) for name in thing.__code__.co_names]
    elif isinstance(thing, MethodType):
        parts += [thing.__self__, thing.__func__]
    else:
        parts.append(getattr(thing, "__dict__", None))
        parts += [vars(kind) for kind in type(thing).__mro__ if kind.__module__.partition(".")[0] not in {"pytensor", "pymc", "builtins"}]
    for part in parts:
        yield from arrays_inside(dict(part) if isinstance(part, MappingProxyType) else part, depth - 1)


def _content(cell: CellType) -> list[object]:
    try:
        return [cell.cell_contents]
    except ValueError:  # the cell is empty
        return []


def number(length: Variable) -> int | None:
    """The length of a dim, where it is a constant."""
    return int(length.data) if isinstance(length, Constant) else None
