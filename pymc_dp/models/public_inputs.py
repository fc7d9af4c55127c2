"""Which function of public arrays an input of a likelihood is. A release keeps it, so that it cannot be taken for the release of another
model.

Only the graph decides, and constants in it that are no records: knots, frequencies, weights of a sum. What a ``pm.Data`` holds does not.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytensor.xtensor as px
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable

from pymc_dp.models.reduction import Input
from pymc_dp.models.same_arrays import shape_of
from pymc_dp.models.structure import SKIPPED, arrays_above, substitute

ROWS = 1024
"""Of made-up arrays: more than there are likely to be entries of a table."""
RANGES = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)
"""How far from 0 the entries of made-up arrays are: a covariate may be a share, an age, a year or a wage."""
MOST = 1e300
"""What is larger counts as this in means, and what is no number as 0."""
ROUNDING = 1e-6
"""By how much means differ that are the same, however a function was written."""

type Means = tuple[tuple[float, ...], ...]
"""The mean of an expression at made-up arrays, and of its size, for every range and for whole numbers; nothing where it has none there."""


@dataclass(frozen=True)
class PublicInput:
    """An expression of public arrays, on stand-ins for those that hold what belongs to the rows or may be set anew.

    Attributes
    ----------
    expression : Variable
    stand_ins : tuple of Variable
    shapes : tuple of tuple of int
        Of what is put in their places.
    """

    expression: Variable
    stand_ins: tuple[Variable, ...]
    shapes: tuple[tuple[int, ...], ...]

    def means(self) -> Means:
        """Weighted means, in which every entry counts by another number, so that no two functions have the same ones by chance."""
        with pytensor.config.change_flags(numba__cache=False), np.errstate(all="ignore"):
            try:
                function = pytensor.function(list(self.stand_ins), self.expression, mode="FAST_COMPILE", on_unused_input="ignore")
            except Exception:  # the graph alone has decided
                return ()
            some = [self._made_up(largest, whole) for whole in (False, True) for largest in RANGES]
            return tuple(() if arrays is None else _mean(function, arrays) for arrays in some)

    def _made_up(self, largest: float, whole: bool) -> list[np.ndarray] | None:
        """Arrays from minus to plus the largest: multiples of irrational numbers, less whole parts; None where they must be whole."""
        if not whole and any(stand_in.type.dtype != "float64" for stand_in in self.stand_ins):
            return None
        arrays = []
        for place, (stand_in, shape) in enumerate(zip(self.stand_ins, self.shapes, strict=True), 1):
            parts = np.arange(1, prod(shape) + 1) * 2.0 ** (place / (len(self.shapes) + 1)) % 1
            kind, values = np.dtype(stand_in.type.dtype), (largest * (2 * parts - 1)).reshape(shape)
            values = np.rint(values) if whole else values
            if kind.kind in "iu":
                values = np.clip(values, np.iinfo(kind).min, np.iinfo(kind).max)
            arrays.append((values > 0 if kind.kind == "b" else values).astype(kind))
        return arrays


def _mean(function: Callable[..., object], arrays: Sequence[np.ndarray]) -> tuple[float, ...]:
    """The mean of a function's values, and of their sizes."""
    try:
        values = np.asarray(function(*arrays), dtype=float).ravel()
    except Exception:  # such as an index that points beyond its table
        return ()
    values = np.clip(np.nan_to_num(values, nan=0.0), -MOST, MOST)
    weights = (0.5 + np.arange(1, len(values) + 1) * 2**0.2 % 1) / max(len(values), 1)
    return float((weights * values).sum()), float((weights * np.abs(values)).sum())


def public_inputs(expression: Variable, records: Collection[int]) -> tuple[PublicInput, ...]:
    """What an input may be: two readings where a constant may hold either rows or what belongs to the model.

    Parameters
    ----------
    expression : Variable
        Of public arrays alone.
    records : collection of int
        How many there may be; none where that is private.
    """
    arrays = arrays_above([expression])
    doubtful = [array for array in arrays if isinstance(array, Constant) and set(records) & set(shape_of(array))]
    free = [array for array in arrays if not isinstance(array, Constant)]
    readings = [free, [*free, *doubtful]] if doubtful else [free]
    return tuple(_reading(expression, several, records) for several in readings)


def shared_constants(inputs: Iterable[Input]) -> dict[Variable, Variable]:
    """Public arrays that all records share, by their placeholders. Of a ``pm.Data`` it is what it holds now."""
    shared = [data for data in inputs if data.axis is None and not data.private]
    return {data.placeholder: substitute(data.expression, _held(data.expression), SKIPPED) for data in shared}


def _held(expression: Variable) -> dict[Variable, Variable]:
    """Constants in the place of every ``pm.Data`` that an expression of public arrays rests on."""
    changing = [array for array in arrays_above([expression]) if isinstance(array, SharedVariable)]
    held = {array: pt.constant(np.array(array.get_value(borrow=True))) for array in changing}
    return {array: px.as_xtensor(value, dims=array.type.dims) if hasattr(array.type, "dims") else value for array, value in held.items()}


def _reading(expression: Variable, arrays: Sequence[Variable], records: Collection[int]) -> PublicInput:
    """The expression on stand-ins for these arrays, which have as many rows wherever they are as long as the records."""
    shapes = tuple(tuple(ROWS if length in records else length for length in shape_of(array)) for array in arrays)
    try:  # a function is the same one of whole numbers and of others
        return _on_stand_ins(expression, arrays, shapes, ["float64"] * len(arrays))
    except Exception:  # but an index holds whole numbers alone
        return _on_stand_ins(expression, arrays, shapes, [array.type.dtype for array in arrays])


def _on_stand_ins(
    expression: Variable, arrays: Sequence[Variable], shapes: tuple[tuple[int, ...], ...], dtypes: Sequence[str]
) -> PublicInput:
    stand_ins = tuple(
        pt.tensor(dtype=dtype, shape=tuple(1 if length == 1 else None for length in shape))
        for dtype, shape in zip(dtypes, shapes, strict=True)
    )
    named = (
        px.as_xtensor(stand_in, dims=array.type.dims) if hasattr(array.type, "dims") else stand_in  # of an array of ``pymc.dims``
        for array, stand_in in zip(arrays, stand_ins, strict=True)
    )
    return PublicInput(substitute(expression, dict(zip(arrays, named, strict=True)), SKIPPED), stand_ins, shapes)


def may_be_an_array(told: Sequence[Means]) -> bool:
    """Whether an input may be a public array as it is, by one of its readings: at whole numbers up to 100, which every type holds."""
    array = pt.vector(dtype="float64")
    own = PublicInput(array, (array,), ((ROWS,),)).means()
    some = slice(len(RANGES), len(RANGES) + 3)
    return any(all(reading[some]) and _same(reading[some], own[some]) for reading in told)


def same_inputs(told: Sequence[Means], own: Sequence[PublicInput]) -> bool:
    """Whether one of the readings of an input has the means that one of those of a release has, wherever both have some."""
    return not told or any(_same(first, second.means()) for second in own for first in told)


def _same(told: Means, own: Means) -> bool:
    """Whether means are the same, at those made-up arrays at which both are known."""
    return all(abs(first[0] - second[0]) <= ROUNDING * second[1] for first, second in zip(told, own) if first and second)
