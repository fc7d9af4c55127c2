"""Steps that propose a move and accept it privately: by Barker's rule, or by the penalty algorithm.

Barker's rule is a private choice between going and staying, drawn exactly (``updates.scores_in_rounds``,
``mechanisms.exponential_mechanism``). The penalty algorithm sees the logarithm of the ratio of posterior densities through discrete
Gaussian noise on the lattice of the scores. Plain Metropolis, which accepts with min(1, exp(r)), never rejects where r >= 0 and may
where r < 0: no epsilon covers that.
"""

from dataclasses import replace
from fractions import Fraction
from math import ceil, inf, nextafter, sqrt

import numpy as np
from numpy.random import Generator

from pymc_dp.posterior.paid_gibbs.kernel import Block, Held, Kernel, State
from pymc_dp.posterior.paid_gibbs.updates import prior_part, records_part
from pymc_dp.privacy.mechanisms import Gaussian
from pymc_dp.privacy.receipts import Receipt


def proposal(kernel: Kernel, block: Block, state: State, rng: Generator) -> Block:
    """The block with a move to choose: each number goes by a uniform number of points, or stays where that would leave its grid.

    The chance of going from one state to another is that of going back, so nothing of it enters the acceptance. It rests on no record.
    """
    places, points = list(block.places), kernel.grids.shape[1]
    at = np.abs(kernel.grids[places] - state.numbers[places, None]).argmin(axis=1)
    to = at + rng.integers(-block.width, block.width + 1, size=len(places))
    to = np.where((to < 0) | (to >= points), at, to)
    proposed = state.numbers.copy()
    proposed[places] = kernel.grids[places, to]
    return replace(block, proposed=proposed)


def lattice(scale: float, variance: Fraction) -> tuple[float, int]:
    """Noise of at least this variance, in nats^2, on scores in units of 1 / scale nats: its scale s, and the penalty m, in those units.

    m is a whole number and s^2 = m scale. Then exp(k / scale - m / 2 scale) is the ratio of the probabilities of k - m and of k under
    discrete Gaussian noise, whatever k, so accepting with min(1, exp(r + k / scale - m / 2 scale)) has a(r) = exp(r) a(-r) exactly:
    sum over k of min(p(k), exp(r) p(k - m)) is exp(r) times the same sum at -r, as k goes to m - k. With s^2 between multiples of
    scale the shifted law would lie between the points of the lattice, and the identity would only be close.
    """
    m = max(ceil(variance * Fraction(scale)), 1)
    s = sqrt(m * scale)
    while Fraction(s) ** 2 < m * Fraction(scale):
        s = nextafter(s, inf)
    return s, m


def acceptance(noisy: np.ndarray, prior: np.ndarray, scale: float, m: int) -> np.ndarray:
    """Probabilities of accepting, of noisy ratios in units of 1 / scale nats and of those of the prior, in nats."""
    with np.errstate(over="ignore"):
        return np.minimum(np.exp(prior + (noisy - m / 2) / scale), 1.0)


def penalised(kernel: Kernel, block: Block, state: State, held: Held, scale: float, receipt: Receipt, rng: Generator) -> np.ndarray:
    """Which of the proposed moves are made: (rows,) of 0 and 1.

    The records' part of every ratio is an integer, which one record moves by ``block.sensitivity`` at most, over all rows; the squared L2
    distance is no more than its square. All else is arithmetic on it and on what rests on no record.
    """
    assert block.variance is not None
    s, m = lattice(scale, block.variance)
    ends = records_part(kernel, block, state, held)
    noisy = Gaussian().draw(ends[:, 1] - ends[:, 0], s, receipt)
    prior = prior_part(kernel, block, state, held)
    prior = np.where(np.isfinite(prior), prior, -np.inf)
    allowed = np.isfinite(prior[:, 1])
    apart = np.where(allowed, prior[:, 1] - np.where(np.isfinite(prior[:, 0]), prior[:, 0], 0.0), -np.inf)
    return (rng.random(len(noisy)) < acceptance(noisy, apart, scale, m)).astype(int)
