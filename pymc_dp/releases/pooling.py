"""Sums by public cell for what differs between cells, and second moments over all cells for the rest.

Where only the intercept of a normal likelihood differs between cells, its records tell of the parameters through their sums of features
and of responses cell by cell, and through squares and products over all cells. So these are what is released, and the totals of the sums
besides, which the noise of many small cells would hide. Noise that a square would have had in every one of G cells it has once.

All is made of exact sums by cell, and all of it gets its noise from one draw: sums by cell are multiplied by one whole number before it,
and what is summed over all cells by another. Shapes: G cells, F features, K statistics of a cell.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Self

import numpy as np

from pymc_dp.families.family import Sensitivity
from pymc_dp.plans.pooled import may_pool
from pymc_dp.plans.statistic import PlannedStatistic, sensitivity_of_sums
from pymc_dp.privacy.mechanisms import LARGEST_SUM
from pymc_dp.releases.noisy_statistic import NoisyStatistic

MULTIPLIERS = ((4, 1), (2, 1), (1, 1), (1, 2), (1, 3))
"""By what sums over all cells, and sums by cell, may be multiplied."""
WORSE = 1.1
"""By so much wider than from all second moments by cell no expected posterior may be."""
LEAST_FREEDOM = 5
"""How many more records than cells and features there must be: what varies within cells has so many degrees of freedom."""
EPSILONS = (0.5, 1.0, 4.0)
"""At which expected posteriors are compared before epsilon is known."""
KNOWN = 0.5
"""What would be known from second moments by cell: posterior standard deviations below this share of the prior's."""
SIGMA, BETWEEN, SPREAD = 0.25, 0.125, 0.1
"""Of a typical response between bounds of -1 and 1: sigma, the standard deviation of intercepts, and the variance of a feature."""


@dataclass(frozen=True)
class Pooling:
    """What is released in place of all second moments by cell.

    Attributes
    ----------
    whole, cell : int
        By what sums over all cells, and sums by cell, are multiplied.
    first : int
        How many of the K statistics are sums, of features and the response: these come first, and are released by cell.
    """

    whole: int
    cell: int
    first: int

    def planned(self, statistic: PlannedStatistic, cells: int) -> PlannedStatistic:
        """The plan with these sums in place of those by cell, and how far one record can move them: see ``reach``."""
        names = [f"{name} · cell {g}" for g in range(cells) for name in statistic.statistics[: self.first]]
        plain = _plain(statistic)
        return replace(plain, statistics=(*names, *statistic.statistics), of_row=self.reach(plain))

    def reach(self, statistic: PlannedStatistic) -> Sensitivity:
        """How far one record, replaced in its cell, moves all of it together.

        A record is in one cell, which is public. So it adds to the sums by cell what it adds to the totals of a feature, or of the
        response, times cell / whole: as it would to a product with one more public feature, which is that ratio in its cell and 0 in
        others. That is one release of the second moments of one cell, with public features 1 and the ratio, times ``whole``; its
        argument, and the proof that it is exact, are those of ``Regression.sensitivity``.
        """
        statistic = _plain(statistic)
        regression = statistic.regression
        assert regression is not None
        ratio = self.cell / self.whole
        like = replace(regression, public_norm=1 + ratio, public_square=1 + ratio**2)
        in_one_cell = sensitivity_of_sums(like, statistic.likelihood, statistic.sizes, statistic.grid)
        why = f"{in_one_cell.why}; sums over all cells times {self.whole}, sums by cell times {self.cell}"
        return Sensitivity(in_one_cell.difference * self.whole, in_one_cell.square * self.whole**2, in_one_cell.largest * self.whole, why)

    def totals(self, by_cell: np.ndarray) -> np.ndarray:
        """The integers (1, G first + K) that are released, from exact sums (G, K): ``pooling_of`` keeps them from overflowing."""
        whole = by_cell.sum(axis=0) * self.whole
        return np.concatenate([(by_cell[:, : self.first] * self.cell).ravel(), whole])[None]

    def at_noise(
        self, planned: PlannedStatistic, n: np.ndarray, deviation: Callable[[Sensitivity], float]
    ) -> tuple[Self, PlannedStatistic]:
        """With the multipliers that are best at this noise, and the plan with them; the same where none is better.

        As in ``pooling_of``, but at one noise, and what second moments by cell would hardly tell may become wider: where it would be
        ``KNOWN``, no expected posterior is wider than from these by more than ``WORSE``. It rests on public numbers alone.

        Parameters
        ----------
        planned : PlannedStatistic
            With these sums.
        n : (G,) ndarray
        deviation : callable
            From how far one record moves what is released, the standard deviation of the noise, in units of what is multiplied by 1.
        """
        plain = _plain(replace(planned, statistics=planned.statistics[len(n) * self.first :]))
        by_cell = _deviations(deviation(plain.of_row), n, 1.0, 0.0, sqrt(len(n)))
        known = by_cell < KNOWN * np.array([inf, inf, BETWEEN**2, BETWEEN])
        best, least = self, inf
        for whole, cell in MULTIPLIERS:
            pooling = replace(self, whole=whole, cell=cell)
            reach = pooling.reach(plain)
            if int(n.sum()) * max(reach.largest, 1) * max(whole, cell) < LARGEST_SUM:
                ratios = _deviations(deviation(reach), n, cell, whole, 1 / whole) / by_cell
                if (ratios[known] <= WORSE).all() and (score := float(np.log(ratios).sum())) < least:
                    best, least = pooling, score
        return best, best.planned(plain, len(n))

    def multipliers(self, cells: int, released: int) -> np.ndarray:
        """The factor (G first + K,) that each of the released numbers was multiplied by."""
        return np.repeat([self.cell, self.whole], [cells * self.first, released - cells * self.first]).astype(np.int64)


@dataclass(frozen=True)
class Pooled:
    """Released numbers apart: sums (G, F) by cell, their totals (F,), and second moments over all cells (K - F,), each in units of 1.

    The first F - 1 sums are those of features, the last that of the response.
    """

    cells: np.ndarray
    totals: np.ndarray
    moments: np.ndarray


def apart(noisy: NoisyStatistic) -> Pooled:
    """What was released where sums are pooled."""
    regression, G = noisy.regression, len(noisy.n)
    assert regression is not None
    first, row = len(regression.names), noisy.values.reshape(-1)
    return Pooled(row[: G * first].reshape(G, first), row[G * first :][:first], row[(G + 1) * first :])


def pooling_of(planned: PlannedStatistic, n: np.ndarray) -> Pooling | None:
    """How sums are pooled over cells of n (G,) records, or None where all second moments are released by cell.

    By what sums are multiplied is what makes the expected posteriors least wide, of those in which none is wider than without pooling by
    more than ``WORSE``, at any of ``EPSILONS``. It rests on numbers of records alone; once the noise is known, ``Pooling.at_noise`` may
    choose others.
    """
    if not may_pool(planned):
        return None
    planned = _plain(planned)
    assert planned.regression is not None
    first, best, least = len(planned.regression.names), None, 0.0
    if int(n.sum()) - len(n) - (first - 1) < LEAST_FREEDOM:
        return None
    laplace = sqrt(2) * planned.lattice / np.array(EPSILONS)
    by_cell = np.array([_deviations(planned.of_row.difference * noise, n, 1.0, 0.0, sqrt(len(n))) for noise in laplace])
    for whole, cell in MULTIPLIERS:
        pooling = Pooling(whole, cell, first)
        reach = pooling.reach(planned)
        if int(n.sum()) * max(reach.largest, 1) * max(whole, cell) >= LARGEST_SUM:
            return None
        ratios = np.array([_deviations(reach.difference * noise, n, cell, whole, 1 / whole) for noise in laplace]) / by_cell
        score = float(np.log(ratios).sum())
        if (ratios <= WORSE).all() and score < least:
            best, least = pooling, score
    return best


def _plain(planned: PlannedStatistic) -> PlannedStatistic:
    """The plan with nothing multiplied: sums that are pooled have multipliers of their own."""
    assert planned.regression is not None
    return planned.with_regression(replace(planned.regression, multipliers=(1, 1)))


def _deviations(noise: float, n: np.ndarray, cell: float, whole: float, over_all: float) -> np.ndarray:
    """Expected posterior standard deviations (4,): of a slope, and of intercepts the mean, their spread, and one of them.

    Parameters
    ----------
    noise : float
        Standard deviation of the noise on what is multiplied by 1.
    n : (G,) ndarray
    cell, whole : float
        By what sums by cell and their totals are multiplied; 0 where totals are not released.
    over_all : float
        Noise on a second moment over all cells, in units of that on one number.
    """
    N, G = float(n.sum()), len(n)
    slope = SIGMA**2 / (N * SPREAD) + (noise * over_all / (N * SPREAD)) ** 2
    mean = (BETWEEN**2 + SIGMA**2 * G / N) / G + (noise / N) ** 2 / (whole**2 + cell**2 / G)
    of_cell = SIGMA**2 / n + (noise / cell / n) ** 2
    spread = 1 / (1 / BETWEEN**4 + (0.5 / (BETWEEN**2 + of_cell) ** 2).sum())
    intercept = (1 / (1 / BETWEEN**2 + 1 / of_cell)).mean()
    return np.sqrt([slope, mean, spread, intercept])
