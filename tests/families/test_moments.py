"""Moments of clamped statistics against SciPy, over wide grids of parameters, and their gradients.

The reference integrates the statistics against SciPy's density on many short panels between quantiles, with SciPy's distribution
function for what lies beyond the bounds; counts are summed term by term.
"""

import itertools
from dataclasses import dataclass
from functools import cache
from math import pi

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dp.families.family import Domain, Scaled, named

LEVELS = np.concatenate([10.0 ** np.arange(-17.0, -1), np.linspace(0.05, 0.5, 10)])
NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)


@dataclass(frozen=True)
class Grid:
    """One family at many parameters: in ``values`` one tuple per parameter, of which all combinations are tried."""

    distribution: str
    domain: Domain
    values: tuple[tuple[float, ...], ...]
    scipy: object

    def points(self):
        return list(itertools.product(*self.values))


WIDE = tuple(10.0 ** np.arange(-6.0, 7))
ALPHAS = (1e-3, 0.02, 0.3, 1.0, 1.7, 5.0, 40.0, 1e3, 1e5)
UNKNOWN, SCALE_UNKNOWN = (True, True), (False, True)


def gammas(domain):
    return Grid("Gamma", domain, (ALPHAS, tuple(10.0 ** np.arange(-6.0, 7, 1.5))), lambda a, s: stats.gamma(a, scale=s))


def inverse_gammas(domain):
    return Grid("InverseGamma", domain, (ALPHAS, tuple(10.0 ** np.arange(-6.0, 7, 1.5))), lambda a, b: stats.invgamma(a, scale=b))


def betas(domain):
    return Grid("Beta", domain, (ALPHAS, ALPHAS), stats.beta)


def laplaces(mu):
    return Grid("Laplace", Domain(-3, 5, unknown=SCALE_UNKNOWN, known=(mu, None)), ((mu,), WIDE), lambda mu, b: stats.laplace(mu, b))


def half_normals(loc, lower):
    domain = Domain(lower, 6, unknown=SCALE_UNKNOWN, known=(loc, None))
    return Grid("HalfNormal", domain, ((loc,), WIDE), lambda loc, sigma: stats.halfnorm(loc, sigma))


def weibulls(alpha, lower):
    domain = Domain(lower, 6, unknown=SCALE_UNKNOWN, known=(alpha, None))
    return Grid("Weibull", domain, ((alpha,), WIDE), lambda alpha, beta: stats.weibull_min(alpha, scale=beta))


def paretos(m, lower):
    domain = Domain(lower, 20, unknown=(True, False), known=(None, m))
    return Grid("Pareto", domain, (WIDE[2:], (m,)), lambda alpha, m: stats.pareto(alpha, scale=m))


def censored(lower, limit):
    domain = Domain(lower, 8, unknown=(True, False), known=(None, limit))
    return Grid("CensoredExponential", domain, (WIDE, (limit,)), lambda s, limit: stats.expon(scale=s))


def negative_binomials(alpha, lower, upper):
    domain = Domain(lower, upper, unknown=SCALE_UNKNOWN, known=(alpha, None))
    return Grid("NegativeBinomial", domain, ((alpha,), (1e-9, 1e-6, 1e-3, 0.05, 0.3, 0.7, 0.99, 1 - 1e-9)), stats.nbinom)


GRIDS = {
    "Exponential": Grid("Exponential", Domain(0, 8, unknown=(True,)), (WIDE,), lambda s: stats.expon(scale=s)),
    "Exponential from 2": Grid("Exponential", Domain(2, 8, unknown=(True,)), (WIDE,), lambda s: stats.expon(scale=s)),
    **{f"CensoredExponential {limit} from {lower}": censored(lower, limit) for lower in (0, 2) for limit in (8.0, 20.0)},
    **{f"Weibull {a} from {lower}": weibulls(a, lower) for a in (0.3, 2.0, 30.0) for lower in (0.0, 0.7)},
    **{f"Pareto {m} from {lower}": paretos(m, lower) for m, lower in ((1.0, 1.0), (1.0, 3.0), (4.0, 1.0), (30.0, 1.0))},
    **{f"Laplace {mu}": laplaces(mu) for mu in (1.0, -2.5, 5.0, -3.5, 9.0)},
    **{f"HalfNormal {loc} from {lower}": half_normals(loc, lower) for loc, lower in ((0.0, 0.0), (0.0, 2.0), (-1.0, -3.0), (7.0, 1.0))},
    **{
        f"{make(Domain()).distribution} {unknown[0]} {lower} to {upper}": make(Domain(lower, upper, unknown=unknown))
        for make in (gammas, inverse_gammas)
        for unknown in (SCALE_UNKNOWN, UNKNOWN)
        for lower, upper in ((0.1, 8.0), (1e-6, 1e6), (2.0, 2.5))
    },
    **{
        f"Beta {lower} to {upper}": betas(Domain(lower, upper, unknown=UNKNOWN))
        for lower, upper in ((0.05, 0.9), (1e-9, 1 - 1e-6), (0.3, 0.31), (0.001, 0.01))
    },
    **{
        f"NegativeBinomial {alpha} {lower} to {upper}": negative_binomials(alpha, lower, upper)
        for alpha, lower, upper in ((0.05, 0, 8), (1.0, 0, 1), (7.0, 3, 60), (300.0, 10, 4000))
    },
    "VonMises": Grid(
        "VonMises",
        Domain(-pi, pi, unknown=UNKNOWN),
        ((-3.1, -1.0, 1e-9, 0.3, 2.0), (1e-6, 1e-3, 0.5, 3.0, 50.0, 1e3, 1e5)),
        None,
    ),
    "LogNormal": Grid(
        "LogNormal",
        Domain(0.2, 30, unknown=UNKNOWN),
        ((-40.0, -2.0, 0.0, 1.0, 5.0, 60.0), (1e-3, 0.1, 1.0, 20.0)),
        lambda mu, sigma: stats.lognorm(sigma, scale=np.exp(mu)),
    ),
}  # fmt: skip


@cache
def claimed(name):
    """A function of points (points, P) whose values are those of ``law``: means (points, K) and covariances (points, K, K) of the
    statistics in their units, and the derivatives (points, K + K * K, P) of all of them in the unknown parameters."""
    grid = GRIDS[name]
    family, P = named(grid.distribution), len(grid.values)
    inputs = [pt.vector(f"p{k}") for k in range(P)]
    law = family.law(grid.domain, pt.constant(1.0), *inputs)
    K = len(law.mean)
    whole = [law.covariance[max(i, j)][min(i, j)] for i in range(K) for j in range(K)]
    outputs = [entry + 0 * inputs[0] for entry in (*law.mean, *whole)]
    wanted = [given for given, unknown in zip(inputs, grid.domain.unknown) if unknown]
    gradients = [g for entry in outputs for g in pytensor.grad(entry.sum(), wanted, disconnected_inputs="ignore")]
    function = pytensor.function(inputs, [*outputs, *gradients], mode="FAST_COMPILE", on_unused_input="ignore")

    def call(points):
        values = function(*np.array(points, dtype=float).T)
        mean, covariance = np.stack(values[:K], -1), np.stack(values[K : K + K * K], -1).reshape(-1, K, K)
        return mean, covariance, np.stack(values[K + K * K :], -1).reshape(len(points), K + K * K, len(wanted))

    return call


def scaled_statistics(family, domain, values):
    """The statistics in [-1, 1], not rounded."""
    if not isinstance(family, Scaled):  # LogNormal
        low, high = np.log([domain.lower, domain.upper])
        u = (np.log(values) - (low + high) / 2) / ((high - low) / 2)
        return np.stack([u, u**2])
    return np.stack(
        [
            (np.clip(t, low, high) - (low + high) / 2) / ((high - low) / 2)
            for t, (_, low, high) in zip(family.raw(values, domain), family.ranges(domain))
        ]
    )


@np.errstate(all="ignore")
def by_quadrature(grid, point):
    """Mean (K,) and covariance (K, K) of the statistics of one clamped value."""
    family, domain, law = named(grid.distribution), grid.domain, grid.scipy(*point)
    lower, upper = domain.lower, domain.upper
    edges = [[lower, upper], np.linspace(lower, upper, 41), law.ppf(LEVELS), law.isf(LEVELS), point]
    if lower >= 0:  # a density may have a pole at 0, or at 1
        edges.append(np.geomspace(max(lower, 1e-60), upper, 300))
    if grid.distribution == "Beta":
        edges.append(1 - np.geomspace(1 - upper, 1 - lower, 300))
    edges = np.unique(np.clip(np.concatenate(edges), lower, upper))
    edges = np.interp(np.linspace(0, len(edges) - 1, 4 * len(edges) - 3), np.arange(len(edges)), edges)
    width = np.diff(edges)[:, None]
    y = (edges[:-1, None] + width * (NODES + 1) / 2).ravel()
    masses = (width * WEIGHTS / 2).ravel() * law.pdf(y)
    masses = np.concatenate([[law.cdf(lower)], masses, [law.sf(upper)]])
    t = scaled_statistics(family, domain, np.concatenate([[lower], y, [upper]]))
    np.testing.assert_allclose(masses.sum(), 1, rtol=1e-7)
    mean = (t * masses).sum(-1) / masses.sum()
    apart = t - mean[:, None]
    mean += (apart * masses).sum(-1)
    return mean, (apart[:, None] * apart[None] * masses).sum(-1) / masses.sum()


def by_summation(grid, point):
    """The same for counts, whose one statistic is the clamped count itself."""
    lower, upper = int(grid.domain.lower), int(grid.domain.upper)
    law, counts = grid.scipy(*point), np.arange(lower, upper + 1)
    masses = np.concatenate([[law.cdf(lower)], law.pmf(counts[1:-1]), [law.sf(upper - 1)]])
    mean = (counts * masses).sum() / masses.sum()
    return np.array([mean]), np.array([[((counts - mean) ** 2 * masses).sum() / masses.sum()]])


def on_the_circle(grid, point):
    """The same for angles."""
    mu, kappa = point
    scale = min(pi, 12 / np.sqrt(kappa))
    edges = np.linspace(-scale, scale, 200)
    width = np.diff(edges)[:, None]
    angle = (edges[:-1, None] + width * (NODES + 1) / 2).ravel()
    masses = (width * WEIGHTS).ravel() * np.exp(-2 * kappa * np.sin(angle / 2) ** 2)
    masses /= masses.sum()
    t = np.stack([np.cos(angle + mu), np.sin(angle + mu)])
    mean = (t * masses).sum(-1)
    apart = t - mean[:, None]
    return mean, (apart[:, None] * apart[None] * masses).sum(-1)


REFERENCES = {"NegativeBinomial": by_summation, "VonMises": on_the_circle}


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", GRIDS)
def test_moments_of_clamped_values(name, step):
    """Means within 1e-5 standard deviations and 1e-7 half-ranges, covariances within 1e-5: sums of a million records lose nothing.

    An absolute 1e-9 in means and 1e-12 in variances, in half-ranges, allows for rounding where a law is all but a point.
    """
    grid = GRIDS[name]
    reference = REFERENCES.get(grid.distribution, by_quadrature)
    means, covariances, _ = claimed(name)(grid.points())
    half = grid.domain.half_width if grid.distribution == "NegativeBinomial" else 1.0
    for point, mean, covariance in list(zip(grid.points(), means, covariances))[::step]:
        expected, spread = reference(grid, point)
        variances = np.diagonal(spread)
        assert np.abs(mean - expected).max() <= 1e-7 * half, point
        assert (np.abs(mean - expected) <= 1e-5 * np.sqrt(variances) + 1e-9 * half).all(), point
        assert (np.abs(covariance - spread) <= 1e-5 * np.sqrt(np.outer(variances, variances)) + 1e-12 * half**2).all(), point


@pytest.mark.parametrize("name", GRIDS)
def test_gradients_are_those_of_the_moments(name):
    """Finite everywhere, and within 1e-3 of central differences (and 1e-7 half-ranges where a parameter doubles, for rounding)."""
    grid = GRIDS[name]
    points = np.array(grid.points())
    call = claimed(name)
    gradients = call(points)[2]
    assert np.isfinite(gradients).all()
    half = grid.domain.half_width if grid.distribution == "NegativeBinomial" else 1.0
    for k, column in enumerate(np.flatnonzero(grid.domain.unknown)):
        unit = np.abs(points[:, column])
        if grid.distribution == "NegativeBinomial":
            unit = np.minimum(unit, 1 - unit)
        there, here = points.copy(), points.copy()
        there[:, column] += 1e-6 * unit
        here[:, column] -= 1e-6 * unit
        difference = [(a - b).reshape(len(points), -1) for a, b in zip(call(there)[:2], call(here)[:2])]
        numeric = np.concatenate(difference, -1) / 2e-6
        claim = gradients[..., k] * unit[:, None]
        assert (np.abs(claim - numeric) <= 1e-3 * np.abs(numeric) + 1e-7 * half**2).all()


@pytest.mark.parametrize("name", [name for name in GRIDS if name != "LogNormal"])
def test_moments_are_numbers_wherever_a_sampler_may_stray(name):
    """At the ends of double precision all is finite, means lie between the bounds and no variance is negative."""
    grid = GRIDS[name]
    ends = {"NegativeBinomial": (1e-200, 1 - 1e-16)}.get(grid.distribution, (1e-200, 1e-60, 1e60, 1e200))
    values = [ends if unknown else some for some, unknown in zip(grid.values, grid.domain.unknown)]
    mean, covariance, gradients = claimed(name)(list(itertools.product(*values)))
    half = grid.domain.half_width if grid.distribution == "NegativeBinomial" else 1.0
    middle = grid.domain.middle if grid.distribution == "NegativeBinomial" else 0.0
    for numbers in (mean, covariance, gradients):
        assert np.isfinite(numbers).all()
    assert (np.abs(mean - middle) <= half * (1 + 1e-9)).all()
    variances = np.diagonal(covariance, axis1=1, axis2=2)
    assert ((variances >= 0) & (variances <= half**2 * (1 + 1e-9))).all()
