"""One pass over the records -> exact integers. Called by ``from_records`` alone, which adds the noise before anything leaves.

A value computed from records is called ``exact`` and exists only here and in ``release``. Every map is total: whatever a
record holds, it becomes a value of the domain, and nothing raises. Per-record work is elementwise and sums are of integers,
so a statistic depends on neither order, batch nor machine. Shapes: N records, C columns, G cells, K statistics.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from threading import get_ident
from typing import Any

import numpy as np
import pytensor
from pymc.model.fgraph import ModelNamed
from pytensor.compile.ops import DeepCopyOp
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable

from pymc_dp.families.family import Domain, complete
from pymc_dp.models.intervals import products_as_sums
from pymc_dp.models.spec import Likelihood, Placeholder, RecordPath
from pymc_dp.models.structure import above, substitute
from pymc_dp.plans.bounds import Bounded
from pymc_dp.plans.network import Network
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.mechanisms import LARGEST_SUM


@dataclass(frozen=True)
class Cells:
    """Which public cell every record belongs to: public, because everything it is made from is.

    Attributes
    ----------
    codes : (N,) int ndarray
    n : (G,) int ndarray
        Records per cell.
    inputs : tuple of ndarray
        The public inputs: one row per cell, or the whole table.
    """

    codes: np.ndarray
    n: np.ndarray
    inputs: tuple[np.ndarray, ...]


def cells(placeholder: Sequence[tuple[Variable, int | None]], records: int) -> Cells:
    """Group the records by these public inputs: one cell for every combination that occurs.

    Parameters
    ----------
    given : sequence of (expression, axis)
        Public data, with its axis of records or None.
    records : int
        N, public.

    Raises
    ------
    Refusal
        When a public array does not have one row per record.
    """
    arrays = [(evaluate(expression), axis) for expression, axis in placeholder]
    codes, rows = np.zeros(records, dtype=np.int64), []
    for array, axis in arrays:
        if axis is None:
            continue
        by_row = np.moveaxis(array, axis, 0)
        if by_row.shape[0] not in {1, records}:
            raise Refusal("A public array and an observed variable have different numbers of records. Give every array one row per record.")
        by_row = np.broadcast_to(by_row, (records, *by_row.shape[1:]))
        rows.append(by_row)
        for column in by_row.reshape(records, int(np.prod(by_row.shape[1:]))).T:
            ranks, distinct = _ranks(column)
            codes, _ = _ranks(codes * distinct + ranks)
    n = np.bincount(codes, minlength=1)
    some_row = np.zeros(len(n), dtype=np.int64)
    some_row[codes] = np.arange(records)
    by_cell = iter([row[some_row] for row in rows])
    inputs = tuple(array if axis is None else np.moveaxis(next(by_cell), 0, axis) for array, axis in arrays)
    return Cells(codes, n, inputs)


def _ranks(column: np.ndarray) -> tuple[np.ndarray, int]:
    """The rank of each entry among the distinct ones, and how many those are."""
    if column.dtype.kind in "iu" and len(column):
        low, high = int(column.min()), int(column.max())
        if high - low < 4 * len(column) + 1024:
            shifted = column.astype(np.int64) - low
            present = np.bincount(shifted) > 0
            return (np.cumsum(present) - 1)[shifted], int(present.sum())
    distinct, ranks = np.unique(column, return_inverse=True)
    return ranks.astype(np.int64), len(distinct)


def check_overflow(planned: PlannedStatistic, records: int) -> None:
    """No sum of this many records can leave the integers: a public inequality, checked before a record is read.

    Where the number of records is private it may not decide anything: sums are then clamped to the integers instead, which moves
    no two of them further apart.
    """
    if planned.sizes != "free" and records * max(planned.sensitivity.largest, 1) >= LARGEST_SUM:
        raise Refusal("The bounds and the number of records together exceed 64-bit integers. Narrow the bounds.")


def is_missing(array: np.ndarray) -> np.ndarray:
    """Which entries hold no number: NaN, None, and what cannot be read as one. Elementwise."""
    return np.isnan(complete(array, Domain(-1.0, 1.0, fill=np.nan)))


def complete_records(
    likelihood: Likelihood, left_out: Collection[str], values: np.ndarray, private: Mapping[str, tuple[np.ndarray, int]]
) -> np.ndarray:
    """Which records bring what they hold to which column: (N, columns).

    A record brings nothing to a column where its own value there is missing and is to be left out, and nothing to any where a covariate is.
    Of values that are vectors one missing entry is enough. Every record is looked at by itself.

    Parameters
    ----------
    left_out : collection of str
        Names of observed variables and private covariates.
    values : (N, *C, ...) ndarray
        Observed values as they are.
    private : mapping
        The private inputs' arrays as they are, and their axes of records, by placeholder name.
    """
    columns = int(np.prod(likelihood.columns))
    kept = np.ones((len(values), columns), dtype=bool)
    if likelihood.name in left_out:
        entries = int(np.prod(values.shape[1:])) // columns
        kept &= ~is_missing(values).reshape(len(values), columns, entries).any(axis=2)
    for placeholder in likelihood.inputs:
        if placeholder.private and placeholder.name in left_out and placeholder.variable.name in private:
            array, axis = private[placeholder.variable.name]
            by_row = np.moveaxis(is_missing(array), axis, 0)
            kept &= ~by_row.any(axis=tuple(range(1, by_row.ndim)))[:, None]
    return kept


def completed(
    bounds: Mapping[str, Bounded], placeholder: Placeholder, array: np.ndarray, axis: int, fill: float | None = None
) -> np.ndarray:
    """A private input with records along axis 0, mapped into its bounds whatever it held: (N, entries) float64.

    Missing values count as ``fill``, or where that is None as the middle of the bounds.
    """
    levels, by_row = placeholder.levels or 1, _records_first(array, axis)
    flat = by_row.reshape(len(by_row), prod(by_row.shape[1:]))
    if placeholder.index:
        lower, upper = np.zeros(flat.shape[1]), np.full(flat.shape[1], float(levels - 1))
    else:
        bounded = bounds[placeholder.name]
        lower, upper = (_records_first(end, axis).reshape(-1) for end in (bounded.lower, bounded.upper))
    flat = flat if placeholder.only is None else _compared(flat, placeholder.only)
    numbers = Domain(-(2.0**62), 2.0**62, fill=(levels - 1) / 2 if fill is None else fill)
    if placeholder.index and not placeholder.whole and not placeholder.parent:  # cast to an integer in the graph, which cuts off
        flat = np.trunc(complete(flat, numbers))
    if placeholder.index and placeholder.wraps:
        flat = complete(flat, numbers)
        flat = np.where((flat < 0) & (flat >= -levels), flat + levels, flat)
    entries = [complete(flat[:, k], Domain(lower[k], upper[k], fill=fill)) for k in range(flat.shape[1])]
    result = entries[0][:, None] if len(entries) == 1 else np.stack(entries).T if entries else np.zeros((len(flat), 0))
    if not placeholder.index and np.isfinite(bounds[placeholder.name].norm):
        squares = sum(column**2 for column in entries)  # one after the other: NumPy adds those of a record alone up in another order
        size, largest = np.sqrt(squares)[:, None], bounds[placeholder.name].norm
        result = result * np.where(size > largest, largest / np.where(size > 0, size, 1.0), 1.0)
    return np.rint(result) if placeholder.whole or placeholder.index else result


def _compared(flags: np.ndarray, only: float) -> np.ndarray:
    """Flags of which one number alone means what it says, 1 or 0, and any other the opposite; what is missing stays so."""
    numbers = complete(flags, Domain(-LARGEST_SUM, LARGEST_SUM, fill=np.nan))
    return np.where(np.isnan(numbers) | (numbers == only), numbers, 1.0 - only)


def _records_first(array: np.ndarray, axis: int) -> np.ndarray:
    """The array with the axis of its records in front; NumPy takes 20 times as long to find that it is there already."""
    return array if axis == 0 else np.moveaxis(array, axis, 0)


def family_tables(
    planned_statistics: Sequence[PlannedStatistic],
    arrays: Mapping[str, np.ndarray],
    network: Network,
    counted: np.ndarray | None = None,
    *,
    alike: bool = True,
) -> dict[str, np.ndarray]:
    """For every node of a network the table of counts of its family, as int64: exact.

    Every variable's records are turned into levels once, by its own rule, whatever they hold, and all families are counted from
    these: so that a record has one level of every variable, on which the sensitivity of Fourier coefficients rests. ``arrays`` are the
    observed values, by variable. ``counted`` says which records count, (N,) bool; all, if it is None.

    Where a variable has fewer records than others, those that it lacks are missing if all tables are to be of the same records
    (``alike``), as coefficients that they share are. Otherwise a family counts the records that all of its variables have, so that one
    more of a variable is one more in its tables, and not another in the place of what was missing.
    """
    levels: dict[str, np.ndarray] = {}
    most = max(len(arrays[planned.likelihood.name]) for planned in planned_statistics)
    for planned in planned_statistics:
        values = arrays[planned.likelihood.name]
        values = as_many(values, 0, most) if alike else values
        coded = np.rint(complete(values, planned.domain)).astype(np.int64).reshape(len(values), int(np.prod(planned.likelihood.columns)))
        levels |= {node.name: coded[:, node.column] for node in network.nodes if node.variable == planned.likelihood.name}
    tables = {}
    for node in network.nodes:
        shape, names = network.shape(node), (*node.parents, node.name)
        many = min(len(levels[name]) for name in names)
        family = tuple(levels[name][:many] if counted is None else levels[name][:many][counted[:many]] for name in names)
        tables[node.name] = np.bincount(np.ravel_multi_index(family, shape), minlength=int(np.prod(shape))).reshape(shape)
    return tables


def features_of(planned: PlannedStatistic, arrays: Mapping[str, np.ndarray], records: int) -> np.ndarray:
    """The features (N, columns, F) of every record: see ``feature_columns``."""
    return np.stack(feature_columns(planned, arrays, records), axis=-1)


def feature_columns(planned: PlannedStatistic, arrays: Mapping[str, np.ndarray], records: int) -> list[np.ndarray]:
    """Every feature (N, columns) of every record, from its covariates by placeholder name, each with its own axes.

    Elementwise in the record, products of arrays included (``products_as_sums``), computed without touching any cache on disk. A record
    alone is put beside its like: NumPy adds up entries in another order where the axis of records has length one. The arrays may be those
    of the covariates, so nobody writes into them.
    """
    linear = planned.likelihood.linear
    assert linear is not None
    if records == 1:
        axes = {placeholder.variable.name: placeholder.axis for placeholder in planned.likelihood.inputs}
        repeated = {name: array if (axis := axes[name]) is None else _twice(array, axis) for name, array in arrays.items()}
        return [column[:1] for column in feature_columns(planned, repeated, 2)]
    used = [placeholder for placeholder in planned.likelihood.inputs if placeholder.variable.name in arrays]
    function = _compiled(tuple(linear.features), tuple(placeholder.variable for placeholder in used), get_ident())
    arguments = [of_type(arrays[placeholder.variable.name], placeholder.variable) for placeholder in used]
    copied = _copied(function)
    whole = any(value is None for value in copied)
    values = function(*arguments) if whole else [arguments[value] if isinstance(value, int) else value for value in copied]
    shape = records, *planned.likelihood.columns
    full = (np.asarray(value, dtype=float) for value in values)
    return [(value if value.shape == shape else np.broadcast_to(value, shape)).reshape(records, prod(shape[1:])) for value in full]


def _twice(array: np.ndarray, axis: int) -> np.ndarray:
    """A single record and its like, beside each other in memory as those of ``completed`` are: NumPy adds entries up in the order in which
    they lie there.
    """
    one = array.take(0, axis)
    return np.moveaxis(np.stack([one, one], axis=-1), -1, axis)


def clamped_on_grid(planned: PlannedStatistic) -> frozenset[str]:
    """Placeholders' names of covariates of which the grid makes the same whether or not they were completed (``Regression.clamps``).

    What lies beyond their bounds is moved to these there, and what is missing to their middle. They are features themselves, each between
    bounds of its own, and stand in the model for nothing else.
    """
    regression, linear = planned.regression, planned.likelihood.linear
    if regression is None or linear is None or regression.link or regression.basis or planned.likelihood.columns:
        return frozenset()
    used = [placeholder for placeholder in planned.likelihood.inputs if not placeholder.index]
    copied = _copied(_compiled(tuple(linear.features), tuple(placeholder.variable for placeholder in used), get_ident()))
    if any(value is None for value in copied):
        return frozenset()
    clamped = set()
    for place, placeholder in enumerate(used):
        one_number = placeholder.variable.type.ndim == 1 and placeholder.axis == 0 and placeholder.variable.type.dtype == "float64"
        cell = any(planned.likelihood.inputs[k] is placeholder for k in planned.grid.inputs)
        if not placeholder.private or not one_number or cell or placeholder.name in planned.fills:
            continue
        bounded = planned.bounds[placeholder.name]
        its = [k for k, value in enumerate(copied) if isinstance(value, int) and value == place]
        same = all((regression.lower[k], regression.upper[k]) == (bounded.lower.item(), bounded.upper.item()) for k in its)
        if same and all(regression.clamps[k] for k in its) and not np.isfinite(bounded.norm):
            clamped.add(str(placeholder.variable.name))
    return frozenset(clamped)


@lru_cache(maxsize=8)
def _compiled(features: tuple[Variable, ...], inputs: tuple[Variable, ...], thread: int) -> Callable[..., list]:
    """Features as a function, compiled once for all blocks. Arguments lie in it for a call, so each thread has its own."""
    with pytensor.config.change_flags(numba__cache=False):
        return pytensor.function(list(inputs), list(map(products_as_sums, features)), mode="FAST_COMPILE", on_unused_input="ignore")


@lru_cache(maxsize=8)
def _copied(function: Any) -> tuple[int | np.ndarray | None, ...]:
    """Which argument each output of a compiled function is, or which constant, where the function does nothing but copy it; else None.

    Then calling it and taking that is the same. What the function does is seen in it after it was compiled.
    """
    graph = function.maker.fgraph
    outputs = [out.owner.inputs[0] if out.owner is not None and isinstance(out.owner.op, DeepCopyOp) else out for out in graph.outputs]
    places = {variable: place for place, variable in enumerate(graph.inputs)}
    return tuple(out.data if isinstance(out, Constant) else places.get(out) for out in outputs)


def of_type(array: np.ndarray, variable: Variable) -> np.ndarray:
    """The array in a placeholder's own type; integers are clipped to what it can hold."""
    kind = np.dtype(variable.type.dtype)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        array = np.clip(array, limits.min, limits.max)
    return array.astype(kind, copy=False)


def records_of(path: RecordPath) -> np.ndarray:
    """The array behind a private input or an observed variable, before PyMC cast it; missing values put back as NaN.

    Where PyMC casts real numbers to whole ones, what is behind the point is cut, and of a cast to yes or no all but 0 is 1, as PyMC has it.
    """
    observed, missing, casts = path.variable, path.missing, []
    while observed.owner is not None:
        casts.append(np.dtype(observed.type.dtype).kind)
        observed = observed.owner.inputs[0]
    values = np.asarray(value_of(observed))
    for kind in reversed(casts):
        if kind in "iu" and values.dtype.kind == "f":
            values = np.trunc(values)
        if kind == "b" and values.dtype.kind in "iuf":
            values = np.where(np.isnan(values), values, values != 0)
    if missing is None:
        return values
    where = np.asarray(value_of(missing))
    whole = np.full((*where.shape, *values.shape[1:]), np.nan)
    whole[where] = values
    return whole


def as_many(array: np.ndarray, axis: int, records: int) -> np.ndarray:
    """The array with so many records along an axis: those beyond are left out, and those that it lacks are missing.

    Where the number of records is private, whether arrays are as long as each other is so, too, and must not show.
    """
    if array.shape[axis] == records:
        return array
    by_row = np.moveaxis(array, axis, 0)[:records]
    whole = np.full((records, *by_row.shape[1:]), np.nan, dtype=object if array.dtype == object else np.float64)
    whole[: len(by_row)] = by_row
    return np.moveaxis(whole, 0, axis)


def value_of(root: Variable) -> np.ndarray:
    """What a constant or shared variable holds."""
    if isinstance(root, SharedVariable):
        return root.get_value(borrow=True)
    assert isinstance(root, Constant)
    return root.data


def evaluate(expression: Variable) -> np.ndarray:
    """The value of an expression of public data, computed without touching any cache on disk."""
    named = {v: v.owner.inputs[0] for v in above([expression]) if v.owner is not None and isinstance(v.owner.op, ModelNamed)}
    plain = substitute(expression, named)
    if plain.owner is None:
        return np.array(value_of(plain))  # a copy: a release freezes it, and the user's own array must stay writeable
    with pytensor.config.change_flags(numba__cache=False):
        return np.array(pytensor.function([], plain, mode="FAST_COMPILE")())
