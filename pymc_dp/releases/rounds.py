"""The noisy statistics of one observed variable, in one round, or in several if noisy numbers of one round decide where the next one
looks.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from pymc_dp.families.anchors import BENT, best_way, next_anchor
from pymc_dp.families.residuals import next_residuals, statistics_of
from pymc_dp.models.spec import RecordPaths
from pymc_dp.privacy.accounting import Cost
from pymc_dp.privacy.mechanisms import Mechanism
from pymc_dp.privacy.receipts import Draw, Receipt
from pymc_dp.releases.by_part import Arrays, exact_sums
from pymc_dp.releases.cells import PublicCells, by_record
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.statistics import as_many, evaluate, records_of
from pymc_dp.releases.totals import totals_of_rows

type Read = Callable[[PublicCells], np.ndarray]
"""To the exact statistics (cells, *C, K) of an observed variable at the anchor of its cells. They are for noise to be added to, at once."""


def in_rounds(cells: PublicCells, read: Read, noise: Mechanism, rounds: list[Draw], cost: Cost, receipt: Receipt) -> NoisyStatistic:
    """The noisy statistics of one observed variable; scores again and again, each time where the round before puts the coefficients.

    So are residuals, once, after second moments.
    """
    regression = cells.planned.regression
    if cells.residuals:
        return _with_residuals(cells, read, noise, rounds, cost, receipt)
    if regression is None or not regression.link:
        [draw] = rounds
        return cells.noisy_statistic(noise.draw(read(cells), draw.scale, receipt), noise, draw, cost)
    left = list(rounds)
    while True:
        draw = left.pop(0)
        anchor = cells.anchor
        assert isinstance(anchor, np.ndarray)
        statistic = cells.noisy_statistic(noise.draw(read(cells), draw.scale, receipt), noise, draw, cost)
        if not left:
            return statistic
        F, moments = len(regression.names), regression.matrix(statistic.values, cells.known * statistic.lattice)
        flat = moments.reshape(-1, *moments.shape[-2:])
        scores = flat[:, :F, F], flat[:, :F, :F], statistic.noise.standard_deviation, anchor.reshape(-1, F)
        there = next_anchor(regression.scores, *scores)
        if draw is rounds[0] and regression.link == "logit":
            ways = cells.ways_on(noise, rounds)
            deviations = {way: [one.scale / draw.scale * scores[2] for one in draws] for way, draws in ways.items()}
            way = best_way(regression.scores, *scores, there, deviations)
            if way != "twice":
                receipt.exchange(left, ways[way])
                left = list(ways[way])
            if way == "here":
                there = scores[3]
            elif len(left) > 1:
                there = next_anchor(regression.scores, *scores, bent=BENT)
        cells = cells.at(there.reshape(anchor.shape))


def _with_residuals(cells: PublicCells, read: Read, noise: Mechanism, rounds: list[Draw], cost: Cost, receipt: Receipt) -> NoisyStatistic:
    """Second moments with noise, and sums of residuals, with noise, where the noisy moments put the coefficients."""
    first, second = rounds
    regression = cells.planned.regression
    assert regression is not None
    statistic = cells.noisy_statistic(noise.draw(read(cells), first.scale, receipt), noise, first, cost)
    [moments] = regression.matrix(statistic.values, cells.known * statistic.lattice)
    place = next_residuals(regression, moments, int(cells.cells.n.sum()), statistic.noise.standard_deviation)
    noisy = noise.draw(read(cells.at(place)), second.scale, receipt)
    names = (*statistic.statistics, *statistics_of(regression))
    all_noisy = np.concatenate([statistic.noisy, noisy], axis=-1)
    return replace(statistic, noisy=all_noisy, statistics=names, residuals=replace(place, scale=second.scale))


def reader_of(paths: Mapping[str, RecordPaths], counted: np.ndarray | None) -> Read:
    """What reads the records of a model. ``counted`` says which rows count, (N,) bool, where a person may have several."""
    return lambda cells: _totals(cells, paths[cells.name], counted)


def reader_after(exact: Mapping[str, np.ndarray], again: Read | None) -> Read:
    """What gives sums that one pass over other records has made of all variables, and looks at these ``again`` for another round."""
    left = dict(exact)

    def read(cells: PublicCells) -> np.ndarray:
        if cells.name in left:
            return left.pop(cells.name)
        assert again is not None
        return again(cells)

    return read


def _totals(cells: PublicCells, paths: RecordPaths, counted: np.ndarray | None = None) -> np.ndarray:
    """The exact statistics, for the caller to add noise to: it keeps them no longer."""
    planned, records = cells.planned, len(cells.cells.codes)
    values = records_of(paths.observed)
    if planned.likelihood.aggregate:
        return totals_of_rows(values, planned)
    return exact_sums(cells, values, _arrays(cells, paths, records), counted)


def _arrays(cells: PublicCells, paths: RecordPaths, records: int) -> Arrays:
    """The arrays of inputs: private ones as they are, and, where there are features, public ones."""
    arrays: Arrays = []
    for placeholder, path in zip(cells.planned.likelihood.inputs, paths.inputs, strict=True):
        if placeholder.private and path.axis is not None:
            arrays.append((placeholder, as_many(records_of(path), path.axis, records), path.axis))
        elif cells.planned.regression is not None and not placeholder.index:
            arrays.append((placeholder, by_record(evaluate(path.variable), path.axis, records), path.axis))
    return arrays
