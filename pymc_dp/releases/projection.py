"""Sums over all records with public weights: they are released in place of one sum per public row if there are many such rows.

A sum for every feature of the linear predictor tells of the coefficients what a number for every record tells, and takes its noise
once. Everything here is computed from what is public. Shapes: G cells, which are distinct public rows, C columns, P features, K
statistics.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytensor

from pymc_dp.families.family import Sensitivity
from pymc_dp.families.grid import POINTS
from pymc_dp.models.spec import Predictor
from pymc_dp.plans.statistic import MOST_PROJECTED, PlannedStatistic
from pymc_dp.privacy.mechanisms import LARGEST_SUM

LEAST_POINTS = 2**6
"""Features that are rounded to fewer points on either side of their middle are not used."""
DETERMINED = 1e-9
"""The share of a feature's square that is left by the features before it, at which it is taken for a combination of them."""


@dataclass(frozen=True, eq=False)
class Projection:
    """Public weights of the sums that are released.

    Attributes
    ----------
    names : tuple of str
        Of the features.
    weights : (G, *C, P) int64 ndarray
    points : int
        What stands for 1 in them.
    """

    names: tuple[str, ...]
    weights: np.ndarray
    points: int

    def planned(self, statistic: PlannedStatistic) -> PlannedStatistic:
        """The plan with these sums in place of those by cell, and how far one record can move them.

        A record keeps its public row, so its weights w; another value in its place moves every statistic t of a column, and the sums by
        the products of w and the difference of t. In L1 that is |w| times |difference|, and the same in L2, with the largest w of any
        row. Weights and statistics are integers, so nothing is rounded.
        """
        family = statistic.family
        assert family is not None
        of_value = family.sensitivity(statistic.domain)
        of_columns = np.abs(self.weights).reshape(len(self.weights), -1)
        largest, square = int(of_columns.sum(axis=1).max()), int((of_columns**2).sum(axis=1).max())
        why = f"{of_value.why}, times features that add up to at most {largest / self.points:.4g} for one record"
        sensitivity = Sensitivity(
            of_value.difference * largest, of_value.square * square, of_value.largest * int(of_columns.max(initial=0)), why
        )
        names = (f"{name} · {feature}" if feature != "1" else name for feature, name in product(self.names, statistic.statistics))
        return replace(statistic, statistics=tuple(names), of_row=sensitivity)

    def totals(self, by_cell: np.ndarray) -> np.ndarray:
        """The sums (1, *C, P K) from exact sums by cell (G, *C, K), in integers that ``projection_of`` keeps from overflowing."""
        summed = np.einsum("g...p,g...k->...pk", self.weights, by_cell)
        return summed.reshape(1, *summed.shape[:-2], -1)


def projection_of(planned: PlannedStatistic, inputs: Sequence[np.ndarray], n: np.ndarray) -> Projection | None:
    """The weights, or None where sums by cell are released: see ``is_better``.

    Parameters
    ----------
    planned : PlannedStatistic
    inputs : sequence of ndarray
        The public inputs on every cell.
    n : (G,) ndarray
        Records in them.
    """
    predictor, family = planned.likelihood.predictor, planned.family
    if not planned.may_project or predictor is None or family is None:
        return None
    values = _values(predictor, planned, inputs, len(n))
    if values is None:
        return None
    blocks = list(_blocks(predictor, planned, inputs, values))
    if sum(block.shape[-1] for _, block in blocks) > 2 * MOST_PROJECTED:
        return None
    names = tuple(name for several, _ in blocks for name in several)
    whole = np.concatenate([block for _, block in blocks], axis=-1)
    kept = _independent(whole)
    features = whole[..., kept]
    size = int(n.sum()) * family.sensitivity(planned.domain).largest
    points = POINTS
    while size * points >= LARGEST_SUM and points >= LEAST_POINTS:
        points //= 2
    statistics = len(planned.statistics)
    if points < LEAST_POINTS or not is_better(features, statistics):
        return None
    return Projection(tuple(names[k] for k in kept), np.rint(features * points).astype(np.int64), points)


def is_better(features: np.ndarray, statistics: int) -> bool:
    """Whether sums weighted by features (G, *C, P) tell more than sums by cell.

    Noise on one of G cells hides a share of what its records tell that is in proportion to G; noise on sums of features one in proportion
    to L², L being what their sizes add up to for one record, and to the features' spread, a quarter of their range's square at most. So
    there are to be at least 4 L² cells, and more than twice as many as features. This rests on neither epsilon nor records.
    """
    G, P = len(features), features.shape[-1]
    largest = np.abs(features).sum(axis=-1).max()
    return bool(P * statistics <= MOST_PROJECTED and G >= 2 * P and (2 * largest) ** 2 <= G)


def _values(predictor: Predictor, planned: PlannedStatistic, inputs: Sequence[np.ndarray], cells: int) -> list[np.ndarray] | None:
    """Every feature on every cell (G, *C), in the user's units; None where one is not finite."""
    variables = [placeholder.variable for placeholder in planned.likelihood.inputs]
    with pytensor.config.change_flags(numba__cache=False):
        function = pytensor.function(variables, list(predictor.features), mode="FAST_COMPILE", on_unused_input="ignore")
        values = function(*[np.asarray(array, dtype=v.type.dtype) for array, v in zip(inputs, variables, strict=True)])
    shape = (cells, *planned.likelihood.columns)
    broadcast = [np.broadcast_to(np.asarray(value, dtype=float), shape) for value in values]
    return broadcast if all(np.isfinite(value).all() for value in broadcast) else None


def _blocks(
    predictor: Predictor, planned: PlannedStatistic, inputs: Sequence[np.ndarray], values: Sequence[np.ndarray]
) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """For every feature and set of inputs the names and values (G, *C, L) of a feature for every level: from -1 to 1.

    Where a constant feature has these levels, too, other features are counted from the middle of their values.
    """
    constant = predictor.indices[0] if predictor.names[0] == "1" else ()
    for name, indices, value in zip(predictor.names, predictor.indices, values, strict=True):
        for levels in indices:
            named, codes = _levels(planned, inputs, levels, len(value))
            if len(named) > 2 * MOST_PROJECTED:
                yield named, np.empty((*value.shape, len(named)))
                continue
            centred = name != "1" and any(set(levels) <= set(others) for others in constant)
            scaled = _scaled(value, centred)
            inside = (codes[:, None] == np.arange(len(named))).reshape(len(value), *[1] * (value.ndim - 1), len(named))
            names = tuple(" · ".join(part for part in (name if name != "1" or not level else "", level) if part) for level in named)
            yield names, scaled[..., None] * inside


def _scaled(value: np.ndarray, centred: bool) -> np.ndarray:
    """A feature by its largest absolute value; ``centred``, from the middle of its values."""
    value = value - (value.max() / 2 + value.min() / 2) if centred else value
    largest = np.abs(value).max()
    return value / largest if largest > 0 else value


def _levels(
    planned: PlannedStatistic, inputs: Sequence[np.ndarray], indices: Sequence[int], cells: int
) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the levels of several indices together, those that occur, and which of them every cell has."""
    if not indices:
        return ("",), np.zeros(cells, dtype=np.int64)
    placeholders = [planned.likelihood.inputs[k] for k in indices]
    columns = [np.moveaxis(inputs[k], p.axis or 0, 0).reshape(cells, -1) for k, p in zip(indices, placeholders, strict=True)]
    distinct, codes = np.unique(np.concatenate(columns, axis=1), axis=0, return_inverse=True)
    titles = [p.name for p, column in zip(placeholders, columns, strict=True) for _ in range(column.shape[1])]
    names = tuple(", ".join(f"{title}={level}" for title, level in zip(titles, row, strict=True)) for row in distinct)
    return names, codes.reshape(-1)


def _independent(features: np.ndarray) -> list[int]:
    """Features (G, *C, P) that are no combination of those before them: the diagonal of a Cholesky factor tells."""
    flat = features.reshape(-1, features.shape[-1])
    left = flat.T @ flat
    sizes, kept = np.diag(left).copy(), []
    for k in range(len(left)):
        pivot = left[k, k]
        if pivot > DETERMINED * sizes[k]:
            kept.append(k)
            left = left - np.outer(left[:, k], left[k]) / pivot
    return kept
