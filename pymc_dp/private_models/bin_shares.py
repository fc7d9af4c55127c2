"""What is believed beforehand of how many records lie in each bin of private covariates.

A flat prior of all cells would believe that covariates fill their bounds, and the more so the more bins there are. So shares of cells vary
about those of normal covariates, whose means, spreads and correlations are unknown: docs/theory.md, "Covariates in bins". Shapes: G public
cells, L combinations of levels of covariates that are not in bins, D covariates in bins, and V cells, L times the numbers of bins.
"""

from math import prod

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_dp.plans.bin_nodes import Within, middles_and_widths
from pymc_dp.releases.noisy_statistic import NoisyStatistic

MEANS = 0.25
"""Standard deviation of the mean of a covariate about the middle of its bounds, in units of their distance."""
SPREAD, SPREADS = 1 / 6, 0.5
"""The median of a covariate's standard deviation, in these units, and the standard deviation of its logarithm."""
CONCENTRATION = 10.0
"""So near are shares to those of normal covariates: as if so many records had been seen of every combination of levels."""
AT_LEAST = 0.2
"""What is added to the concentration of every cell."""


def knows_bins(noisy: NoisyStatistic) -> bool:
    """Whether shares of private cells are those of covariates in bins."""
    return bool(noisy.within) and noisy.sizes in ("simplex", "free")


def unknowns_of(noisy: NoisyStatistic) -> tuple[int, int]:
    """L, and how many standard normal unknowns the shares of each combination of levels have: a mean, a spread, and correlations."""
    D, bins = len(noisy.within), prod(noisy.grid[within.axis] for within in noisy.within)
    return prod(noisy.grid) // bins, 2 * D + D * (D - 1) // 2


def concentrations(noisy: NoisyStatistic, normals: Variable, levels: Variable | None) -> Variable:
    """Concentrations (G, V) of the Dirichlet law of shares.

    Parameters
    ----------
    noisy : NoisyStatistic
    normals : Variable
        (G, L, K), standard normal: see ``unknowns_of``.
    levels : Variable or None
        (G, L): the shares of combinations of levels. None where L is 1.
    """
    L, _ = unknowns_of(noisy)
    shares = _of_normal_covariates(noisy, normals)
    if levels is not None:
        shares = shares * levels.reshape((-1, L, *[1] * len(noisy.within)))
    others = [axis for axis in range(len(noisy.grid)) if axis not in [within.axis for within in noisy.within]]
    order = [*others, *(within.axis for within in noisy.within)]
    apart = shares.reshape((-1, *(noisy.grid[axis] for axis in order)))
    in_order = apart.transpose([0, *(1 + order.index(axis) for axis in range(len(order)))])
    return AT_LEAST + CONCENTRATION * L * in_order.reshape((-1, prod(noisy.grid)))


def _of_normal_covariates(noisy: NoisyStatistic, normals: Variable) -> Variable:
    """Shares (G, L, *bins) that add up to 1 for each combination of levels.

    The first covariate is normal; each other one is normal about a line in those before it, which are taken at the middles of their bins.
    """
    D = len(noisy.within)
    one = pt.ones((*normals.shape[:2], *[1] * D))
    shares, before = one, list[Variable]()
    pairs = iter(range(2 * D, normals.type.shape[2]))
    for d, within in enumerate(noisy.within):
        mean = pt.shape_padright(MEANS * normals[:, :, 2 * d], D)
        sd = pt.shape_padright(SPREAD * pt.exp(SPREADS * normals[:, :, 2 * d + 1]), D)
        line, left = pt.zeros_like(one), one  # in units of the standard deviation
        for residual in before:
            r = pt.shape_padright(pt.tanh(normals[:, :, next(pairs)]), D)
            line, left = line + left * r * residual, left * pt.sqrt(1 - r**2)
        inner, middles = (np.reshape(places, (-1, *[1] * (D - 1 - d))) for places in _cuts(noisy, within))
        below = 0.5 * pt.erfc(-((inner - mean) / sd - line) / left / np.sqrt(2))
        none = pt.zeros_like(below.take([0], axis=2 + d))
        shares = shares * pt.diff(pt.concatenate([none, below, none + 1], axis=2 + d), axis=2 + d)
        before.append(((middles - mean) / sd - line) / left)
    return shares


def _cuts(noisy: NoisyStatistic, within: Within) -> tuple[np.ndarray, np.ndarray]:
    """The ends between bins and the middles of bins, from the middle of the bounds and in units of their distance."""
    middles, widths = middles_and_widths(within.edges, whole=noisy.inputs[within.place].dtype.kind in "iu")
    low, high = middles[0] - widths[0] / 2, middles[-1] + widths[-1] / 2
    return (((middles + widths / 2)[:-1] - (low + high) / 2) / (high - low), (middles - (low + high) / 2) / (high - low))
