"""One pass over the records -> exact integers. Called by the door alone, which adds the noise before anything leaves.

A value computed from records is called ``exact`` and exists only here and in ``release``. Every map is total: whatever a
record holds, it becomes a value of the domain, and nothing raises. Per-record work is elementwise and sums are of integers,
so a statistic depends on neither order, batch nor machine. Shapes: N records, C columns, G cells, K statistics.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytensor
from pymc.model.fgraph import ModelNamed
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable

from pymc_dp.accounting import Refusal
from pymc_dp.family import Domain, Family, complete
from pymc_dp.mechanisms import LARGEST_SUM
from pymc_dp.structure import above, substitute

EXACT_DOUBLE = 2**53


@dataclass(frozen=True)
class Cells:
    """Which cell every record belongs to: public, because everything it is made from is.

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


def cells(given: Sequence[tuple[Variable, int | None]], records: int) -> Cells:
    """Group the records by their public inputs: one cell for every combination that occurs.

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
    arrays = [(evaluate(expression), axis) for expression, axis in given]
    codes, rows = np.zeros(records, dtype=np.int64), []
    for array, axis in arrays:
        if axis is None:
            continue
        by_row = np.moveaxis(array, axis, 0)
        if by_row.shape[0] not in {1, records}:
            raise Refusal("A public array and an observed variable have different numbers of records. Give every array one row per record.")
        by_row = np.broadcast_to(by_row, (records, *by_row.shape[1:]))
        rows.append(by_row)
        for column in by_row.reshape(records, -1).T:
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


def check_overflow(family: Family, domain: Domain, records: int) -> None:
    """No sum of this many records can leave the integers: a public inequality, checked before a record is read."""
    if records * family.reach(domain).norm >= LARGEST_SUM:
        raise Refusal("The bounds and the number of records together exceed 64-bit integers. Narrow the bounds.")


def exact_totals(values: np.ndarray, family: Family, domain: Domain, grouped: Cells) -> np.ndarray:
    """Exact sums (G, *C, K) of the family's statistics, in lattice units, as int64.

    Sums go through doubles only in blocks whose absolute values add up to less than 2**53, where they are exact in any order.
    """
    statistics = family.exact(complete(values, domain), domain)
    columns, G = values.shape[1:], len(grouped.n)
    block = max(EXACT_DOUBLE // max(family.reach(domain).norm, 1), 1)
    totals = np.zeros((G, int(np.prod(columns)), len(statistics)), dtype=np.int64)
    for k, statistic in enumerate(statistics):
        flat = statistic.reshape(len(values), -1)
        for c in range(flat.shape[1]):
            if G == 1:
                totals[0, c, k] = flat[:, c].sum(dtype=np.int64)
                continue
            for start in range(0, len(values), block):
                part = slice(start, start + block)
                sums = np.bincount(grouped.codes[part], weights=flat[part, c], minlength=G)
                totals[:, c, k] += sums.astype(np.int64)
    return totals.reshape(G, *columns, len(statistics))


def records_of(observed: Variable, missing: Variable | None) -> np.ndarray:
    """The array behind an observed variable, before PyMC cast it; missing values put back as NaN."""
    while observed.owner is not None:
        observed = observed.owner.inputs[0]
    values = np.asarray(value_of(observed))
    if missing is None:
        return values
    where = np.asarray(value_of(missing))
    whole = np.full(where.shape, np.nan)
    whole[where] = values
    return whole


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
