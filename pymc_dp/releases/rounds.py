"""The noisy statistics of one observed variable, in one round, or in several if noisy numbers of one round decide where the next one
looks.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from pymc_dp.families.anchors import BENT, Way, best_way, next_anchor
from pymc_dp.families.family import complete
from pymc_dp.families.residuals import next_residuals, statistics_of
from pymc_dp.models.spec import RecordPaths
from pymc_dp.privacy.accounting import Cost
from pymc_dp.privacy.mechanisms import Mechanism
from pymc_dp.privacy.receipts import Draw, Receipt
from pymc_dp.releases.by_part import Arrays, exact_sums
from pymc_dp.releases.cells import PublicCells, by_record
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.statistics import as_many, evaluate, records_of

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
    for place in range(len(rounds)):
        draw, anchor, regression = rounds[place], cells.anchor, cells.planned.regression
        assert isinstance(anchor, np.ndarray)
        assert regression is not None
        statistic = cells.noisy_statistic(noise.draw(read(cells), draw.scale, receipt), noise, draw, cost)
        if place == len(rounds) - 1:
            break
        F, moments = len(regression.names), regression.matrix(statistic.values, cells.known * statistic.lattice)
        flat = moments.reshape(-1, *moments.shape[-2:])
        scores = flat[:, :F, F], flat[:, :F, :F], statistic.noise.standard_deviation, anchor.reshape(-1, F)
        there = next_anchor(regression.scores, *scores)
        if place == 0 and regression.link == "logit":
            ways = _ways_on(cells, noise, rounds)
            deviations = {way: [one.scale / draw.scale * scores[2] for one in draws] for way, (_, draws) in ways.items()}
            way = best_way(regression.scores, *scores, there, deviations)
            cells, draws = ways[way]
            if draws != rounds[1:]:
                receipt.exchange(rounds[1:], draws)
                rounds = [draw, *draws]
            if way.name == "here":
                continue
            if len(rounds) > 2:
                there = next_anchor(regression.scores, *scores, bent=BENT)
        cells = cells.at(there.reshape(anchor.shape))
    return statistic


def _ways_on(cells: PublicCells, noise: Mechanism, rounds: list[Draw]) -> dict[Way, tuple[PublicCells, list[Draw]]]:
    """What may follow the first round: what is summed, and draws that cost no more than those that are left.

    With several slopes sums may be left as they are, too, which a record moves less: each of these draws has the cost of one that was paid
    for, or of all that are left, at the sensitivity of its own sums. (One slope has hardly more noise if they are multiplied.)
    """
    ways: dict[Way, tuple[PublicCells, list[Draw]]] = {}
    several = cells.planned.regression is not None and len(cells.planned.regression.names) > 2
    for summed in (cells.plain, cells) if several else (cells,):
        regression = summed.planned.regression
        assert regression is not None
        times, moved = regression.scores.times, (sensitivity for sensitivity, _ in summed.rounds)
        first, *left = (replace(draw, difference=one.difference, square=one.square) for draw, one in zip(rounds, moved, strict=True))
        ways[Way("here", times)] = summed, [summed.instead(noise, first, rounds[1:])]
        ways[Way("there", times)] = summed, [summed.instead(noise, left[0], rounds[1:])]
        as_paid = [summed.instead(noise, mine, [paid]) for mine, paid in zip(left, rounds[1:], strict=True)]
        ways[Way("twice", times)] = summed, rounds[1:] if summed is cells else as_paid
    return ways


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
        # One individual moves a total by whole events. Rounding down keeps totals that are no whole numbers as near: from x' <= x + m
        # follows floor(x') <= floor(x) + m. To the nearest even, one event would move .5 to 1.5 and so 0 to 2.
        return np.floor(complete(values, planned.domain)).astype(np.int64)[..., None]
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
