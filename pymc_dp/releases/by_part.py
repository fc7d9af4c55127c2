"""All records of one observed variable -> its exact sums, a part of the records at a time, so that intermediate arrays stay small.

Every record is looked at by itself, and sums are of integers: so parts, of any size and in any order, add up to what all records together
bring.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from pymc_dp.models.spec import Placeholder
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.releases.cells import PublicCells
from pymc_dp.releases.statistics import clamped_on_grid, complete_records, completed, feature_columns
from pymc_dp.releases.totals import clamped, exact_totals, totals_of_levels, within

ROWS_IN_PART = 2**18
"""Rows that are looked at together: many enough that what Python does between them does not count, and few enough for caches."""

type Arrays = list[tuple[Placeholder, np.ndarray, int | None]]
"""Of inputs of a likelihood their arrays, and the axis of each that runs over the records."""


def exact_sums(cells: PublicCells, values: np.ndarray, inputs: Arrays, counted: np.ndarray | None = None) -> np.ndarray:
    """The exact statistics of these records, as int64, for the caller to add noise to.

    Parameters
    ----------
    cells : PublicCells
        Whose codes say in which public cell every record is, and whose anchor, at which coefficients scores are taken, or residuals.
    values : (N, *C, ...) ndarray
        Observed values as they are.
    inputs : list
        Private arrays as they are, and, where there are features, public ones.
    counted : (N,) bool ndarray, optional
        Which rows count, where a person may have several.
    """
    records, rows, total = len(cells.cells.codes), _rows_in_part(cells), np.zeros((), dtype=object)
    as_they_are = clamped_on_grid(cells.planned)
    for start in range(0, max(records, 1), rows):
        part = slice(start, min(start + rows, records))
        total = total + _of_part(cells, values[part], inputs, part, counted, as_they_are)
    totals = clamped(total)
    if cells.pooling is not None:
        return cells.pooling.totals(totals)
    return totals if cells.projection is None else cells.projection.totals(totals)


def _rows_in_part(cells: PublicCells) -> int:
    """How many rows are looked at together: of second moments in one cell fewer, so that all columns of them stay in the cache (4 MB).

    Of single numbers more, which take little memory, and are summed a piece after the other (``sums.IN_CACHE``).
    """
    planned, many = cells.planned, len(cells.cells.n) * cells.planned.grid.size
    if planned.regression is None:
        return ROWS_IN_PART if planned.likelihood.columns else 4 * ROWS_IN_PART
    return ROWS_IN_PART if many > 1 else max(2 * ROWS_IN_PART // planned.regression.size, 1)


def _of_part(
    cells: PublicCells, values: np.ndarray, inputs: Arrays, part: slice, counted: np.ndarray | None,
    as_they_are: Collection[str],
) -> np.ndarray:  # fmt: skip
    """What some of the records bring, as Python's integers. Every record is looked at by itself, so that parts add up to the whole."""
    planned = cells.planned
    here = [(placeholder, array if axis is None else _rows(array, axis, part), axis) for placeholder, array, axis in inputs]
    raw = {placeholder.variable.name: (array, axis) for placeholder, array, axis in here if placeholder.private and axis is not None}
    if planned.at_most is None and len(cells.cells.n) == 1 and all(axis == 0 for _, axis in raw.values()):
        whole = totals_of_levels(values, planned, {name: array for name, (array, _) in raw.items()})
        if whole is not None:
            return whole
    private = {
        placeholder.variable.name: array[:, None]
        if placeholder.variable.name in as_they_are and array.dtype != object
        else _completed(planned, placeholder, array, axis)
        for placeholder, array, axis in here
        if placeholder.private and axis is not None
    }
    features = None if planned.regression is None else _features(planned, here, private, len(values))
    kept = complete_records(planned.likelihood, planned.left_out, values, raw) if planned.left_out else None
    if planned.at_most is not None:
        assert counted is not None
        rows = counted[part, None]
        kept = rows.repeat(int(np.prod(planned.likelihood.columns)), axis=1) if kept is None else kept & rows
    grouped = replace(cells.cells, codes=cells.cells.codes[part])
    return exact_totals(values, planned, grouped, private, features, kept, cells.anchor)


def _completed(planned: PlannedStatistic, placeholder: Placeholder, array: np.ndarray, axis: int) -> np.ndarray:
    """A private input mapped into its bounds: (N, entries). Numbers of levels that are levels already stay what they are."""
    if placeholder.index and array.ndim == 1 and (levels := within(array, 0, (placeholder.levels or 1) - 1)) is not None:
        return levels[:, None]
    return completed(planned.bounds, placeholder, array, axis, planned.fills.get(placeholder.name))


def _rows(array: np.ndarray, axis: int, part: slice) -> np.ndarray:
    return array[(*[slice(None)] * axis, part)]


def _features(planned: PlannedStatistic, inputs: Arrays, private: Mapping[str, np.ndarray], records: int) -> list[np.ndarray]:
    """All features of every record, private covariates clamped to their bounds."""
    arrays = {}
    for placeholder, array, axis in inputs:
        if placeholder.index:
            continue
        if placeholder.private and axis is not None:
            by_row = private[placeholder.variable.name].reshape(records, *array.shape[:axis], *array.shape[axis + 1 :])
            array = by_row if axis == 0 else np.moveaxis(by_row, 0, axis)
        arrays[placeholder.variable.name] = array
    return feature_columns(planned, arrays, records)
