"""How epsilon is divided by what the priors say of a release, before it is paid for. Only what is public is looked at.

Numbers of records are used where they are public. Where they are not, or where nothing can be said of a variable, shares are equal.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import exp

import numpy as np

from pymc_dp.families.family import complete
from pymc_dp.models.simulated_values import drawn_by_priors
from pymc_dp.plans.disjoint import Groups
from pymc_dp.plans.division import Expectation, divided
from pymc_dp.plans.network import Network
from pymc_dp.privacy.accounting import Cost, Weights, shares
from pymc_dp.privacy.mechanisms import Gaussian, Mechanism
from pymc_dp.releases.cells import PublicCells
from pymc_dp.releases.totals import totals_of_rows

DRAWS, COPIES, ROWS, SIZES = 60, 8, 16, 50
"""Draws from the priors, values of each on the same row, rows at most, which are cells, and sizes of cells that are looked at."""
SEED = 0
"""So that one release is always divided the same way."""
SLOPE = 1 / 3
"""Mean square of a feature that is as likely anywhere between -1 and 1."""


def shares_of(
    released: Sequence[PublicCells], weights: Weights, disjoint: Groups, noise: Mechanism, total: Cost,
    network: Network | None,
) -> dict[str, Fraction]:  # fmt: skip
    """The share of every observed variable: as the user says, or by what is expected (``divided``).

    Equal shares stay where something is not public, or unknown: numbers of records that are private, laws that cannot be drawn from; and
    for Bayesian networks, whose tables are compared with Fourier coefficients and bounded (``utility``) at equal shares.
    """
    names = [cells.name for cells in released]
    if weights is not None or network is not None or any(cells.planned.sizes == "free" for cells in released):
        return shares(names, weights, disjoint)
    equal = shares(names, None, disjoint)
    if set(equal.values()) == {Fraction(1)}:
        return equal
    expectations = [expectation_of(cells, noise, total) for cells in released]
    known = [expectation for expectation in expectations if expectation is not None]
    return divided(known, disjoint) if len(known) == len(expectations) else equal


def expectation_of(cells: PublicCells, noise: Mechanism, total: Cost) -> Expectation | None:
    """What a release is expected to tell of one observed variable with a public number of records; None where that is not known."""
    planned, last = cells.planned, cells.planned.rounds[-1]
    part = Fraction(1) if len(cells.shares) == 1 else cells.shares[-1]
    power = 1 if noise.priced_as == Gaussian.name else 2
    scale = noise.calibrate(last.difference, last.square, total if part == 1 else noise.share(total, part))
    variance = noise.noise(scale, 1.0).standard_deviation ** 2
    if planned.regression is not None and planned.regression.link:
        return _of_scores(cells, variance, power)
    values = _values(cells)
    if values is None:
        return None
    if planned.regression is not None:
        return _of_moments(cells, values, variance, power)
    statistics = _statistics(cells, values)
    within, between = _variances(statistics)
    n = cells.cells.n.astype(float)
    if cells.projection is not None:
        weights = cells.projection.weights.astype(float)
        squares = np.moveaxis(weights**2, 0, -1).reshape(-1, len(n))
        signal = squares @ n
        mean = np.maximum(signal / max(float(n.sum()), 1.0), 1e-300)
        return Expectation(cells.name, signal, within, between[:, None] / mean, variance, power)
    signal = _few(n if planned.sizes == "public" else n / planned.grid.size)
    return Expectation(cells.name, signal, within, np.repeat(between[:, None], len(signal), axis=1), variance, power)


def _values(cells: PublicCells) -> np.ndarray | None:
    """Values (DRAWS, COPIES, rows, ...) that the priors expect in some of the cells, private covariates of regressions in the middle."""
    planned, likelihood = cells.planned, cells.planned.likelihood
    if likelihood.again is None:
        return None
    many = len(cells.cells.n) * (1 if likelihood.aggregate else planned.grid.size)
    picked = np.linspace(0, many - 1, min(many, ROWS)).astype(int)
    known = {}
    for placeholder, array in zip(likelihood.inputs, cells.inputs, strict=True):
        bounded = planned.bounds.get(placeholder.name)
        if planned.regression is not None and placeholder.private and not placeholder.index and bounded is not None:
            array = np.broadcast_to((bounded.lower + bounded.upper) / 2, array.shape)
        elif placeholder.axis is not None and array.shape[placeholder.axis] == many:
            array = np.take(array, picked, axis=placeholder.axis)
        known[placeholder.variable] = array, placeholder.axis
    return drawn_by_priors(likelihood, known, len(picked), DRAWS, COPIES, SEED)


def _statistics(cells: PublicCells, values: np.ndarray) -> np.ndarray:
    """The released statistics of single records with these values: (K, DRAWS, COPIES, numbers)."""
    planned, family = cells.planned, cells.planned.family
    if planned.likelihood.aggregate:
        several = [totals_of_rows(values, planned).astype(float)]
    else:
        assert family is not None
        several = [statistic.astype(float) for statistic in family.exact(complete(values, planned.domain), planned.domain)]
        if planned.sizes != "public":
            matrix = family.cell_sensitivity(planned.domain).matrix
            several = [row[0] + np.tensordot(row[1:], several, 1) for row in matrix]
    return np.stack([statistic.reshape(*values.shape[:2], -1) for statistic in several])


def _variances(statistics: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variances of statistics (K, draws, copies, numbers) given the unknowns (draws, K), and of their means by the priors (K,)."""
    within = statistics.var(axis=2, ddof=1)
    noise = within.mean(axis=(1, 2)) / statistics.shape[2]
    between = statistics.mean(axis=2).var(axis=1, ddof=1).mean(axis=-1)
    return within.mean(axis=-1).T, np.maximum(between - noise, 0.0)


def _of_moments(cells: PublicCells, values: np.ndarray, variance: float, power: int) -> Expectation:
    """What second moments are expected to tell: coefficients of all features, each from its products with responses scaled to [-1, 1]."""
    planned, regression = cells.planned, cells.planned.regression
    assert regression is not None
    columns = planned.domain.columns
    pairs = zip(*columns, strict=True) if columns else (regression.response_lower, regression.response_upper)
    lower, upper = (np.array(ends).reshape(-1, regression.q) for ends in pairs)
    entries = values.reshape(*values.shape[:2], -1, regression.q)
    scaled = np.clip((entries - (lower + upper) / 2) / ((upper - lower) / 2), -1, 1)
    within, between = _variances(np.moveaxis(scaled, -1, 0))
    n = _spread(cells)
    signal = np.concatenate([n, *[n * SLOPE] * (len(regression.names) - 1)])
    noise = variance * planned.lattice**2
    return Expectation(cells.name, signal, within, np.repeat(between[:, None], len(signal), axis=1), noise, power)


def _of_scores(cells: PublicCells, variance: float, power: int) -> Expectation:
    """What scores are expected to tell: all coefficients, with the predictor in its middle and priors of a quarter of its width."""
    regression = cells.planned.regression
    assert regression is not None
    scores = regression.scores
    mean = exp(scores.middle) if scores.link == "log" else 1 / (1 + exp(-scores.middle))
    weight = min(mean, scores.most) if scores.link == "log" else mean * (1 - mean)
    n = _spread(cells) * weight
    signal = np.concatenate([n, *[n * SLOPE] * (len(regression.names) - 1)])
    between = np.full((1, len(signal)), ((scores.predictor[1] - scores.predictor[0]) / 4) ** 2)
    noise = variance * (cells.planned.lattice * scores.unit) ** 2
    return Expectation(cells.name, signal, np.ones((1, 1)), between, noise, power)


def _spread(cells: PublicCells) -> np.ndarray:
    """Records in a cell, taken to be as many in each private one of a public one."""
    return _few(cells.cells.n / cells.planned.grid.size)


def _few(n: np.ndarray) -> np.ndarray:
    """A few of many numbers, at equal distances in the order of size."""
    return np.sort(n.astype(float))[np.linspace(0, len(n) - 1, min(len(n), SIZES)).astype(int)]
