"""Noisy statistics used as if they were exact (``noise_aware=False``), after they are moved to values that exact ones can have."""

from collections.abc import Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_dp.families.anchors import straightened
from pymc_dp.laws import law as laws
from pymc_dp.laws.projected import projected
from pymc_dp.private_models import plug_in_moments
from pymc_dp.private_models.likelihood import NoisyLikelihood, entry_basis, of_totals
from pymc_dp.private_models.residual_law import plain_moments
from pymc_dp.private_models.sizes import guessed_sizes
from pymc_dp.private_models.within_bins import averaged
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.pooling import apart


def plug_in(noisy: NoisyStatistic) -> NoisyLikelihood:
    """The likelihood of one noisy statistic as if it were exact; nothing is latent."""
    if noisy.multipliers.size:
        return _pooled(noisy)
    if noisy.regression is not None:
        return _moments(noisy)
    if noisy.structure == "aggregate":
        return _totals(noisy)
    if noisy.weights.size:
        return _weighted(noisy)
    return _sums(noisy) if noisy.sizes == "public" else _entries(noisy)


def _sums(noisy: NoisyStatistic) -> NoisyLikelihood:
    """Sums of public numbers of records."""
    family, domain = noisy.family, noisy.domain
    assert family is not None
    shift = noisy.shift * noisy.lattice
    n = guessed_sizes(noisy) + shift * (domain.upper - domain.lower + 1)
    observed = family.project(noisy.values + shift, n[..., None], noisy.noise.spread, domain)

    def logp(value: Variable, *arguments: Variable) -> Variable:
        return family.log_likelihood(value, pt.constant(n), domain, *arguments)

    def simulate(*arguments: Variable) -> Variable:
        return laws.simulated(family.law(domain, pt.constant(n), *arguments[:-1]), None, noisy.noisy.shape)

    return NoisyLikelihood(observed, (), (), simulate, logp)


def _weighted(noisy: NoisyStatistic) -> NoisyLikelihood:
    """Sums with public weights have their own law, without the noise: normal with the mean and covariance that the parameters give.

    No sums by cell say the same, unless the natural parameter is linear in the features. Of counts of levels the last follows from the
    others, so it is left out.
    """
    family, domain = noisy.family, noisy.domain
    assert family is not None
    n, weights = guessed_sizes(noisy) + np.zeros(noisy.batch), noisy.weights / noisy.divisor

    def law(arguments: Sequence[Variable]) -> tuple[laws.Law, laws.Joint]:
        by_cell = family.law(domain, pt.constant(n), *arguments)
        return by_cell, projected(by_cell, weights)

    def logp(value: Variable, *arguments: Variable) -> Variable:
        by_cell, joint = law(arguments)
        K = noisy.noisy.shape[-1] // weights.shape[-1]
        independent = [k for k in range(noisy.noisy.shape[-1]) if not isinstance(by_cell, laws.Counts) or k % K < K - 1]
        covariance = joint.covariance[..., independent, :][..., independent]
        return pm.logp(pm.MvNormal.dist(joint.mean[..., independent], covariance), value[..., independent])

    def simulate(*arguments: Variable) -> Variable:
        return laws.simulated(law(arguments[:-1])[1], None, noisy.noisy.shape)

    return NoisyLikelihood(noisy.values, (), (), simulate, logp)


def _entries(noisy: NoisyStatistic) -> NoisyLikelihood:
    """Entries that are never negative and add up to the same total for every record: their sum tells the number of records."""
    family, domain = noisy.family, noisy.domain
    assert family is not None
    basis = np.array(entry_basis(noisy))
    of_size, of_sums, total = basis[:, 0], basis[:, 1:], family.cell_sensitivity(domain).total * noisy.unit
    entries = np.maximum(noisy.values + noisy.shift * noisy.lattice, 0.0)
    sizes = np.maximum(entries.sum(axis=-1) / total, 1e-9)
    sums = (entries - sizes[..., None] * of_size) @ np.linalg.pinv(of_sums).T
    sums = family.project(sums, sizes[..., None], noisy.noise.spread, domain)
    observed = sums @ of_sums.T + sizes[..., None] * of_size

    def logp(value: Variable, *arguments: Variable) -> Variable:
        sizes = value.sum(axis=-1) / total
        sums = pt.dot(value - sizes[..., None] * of_size, np.linalg.pinv(of_sums).T)
        return family.log_likelihood(sums, sizes, domain, *averaged(noisy, list(arguments), sizes))

    def simulate(*arguments: Variable) -> Variable:
        sizes = pt.constant(observed.sum(axis=-1) / total)
        law = family.law(domain, sizes, *averaged(noisy, list(arguments[:-1]), sizes))
        return laws.simulated(laws.in_cells(law, entry_basis(noisy), sizes), None, noisy.noisy.shape)

    return NoisyLikelihood(observed, (), (), simulate, logp)


def _moments(noisy: NoisyStatistic) -> NoisyLikelihood:
    """Second moments of a regression."""
    regression = noisy.regression
    assert regression is not None
    n = guessed_sizes(noisy) if noisy.sizes == "public" else np.ones((len(noisy.noisy), *[1] * (noisy.noisy.ndim - 2)))
    known = noisy.known * noisy.lattice
    K = len(regression.entries)
    values = noisy.values if noisy.residuals is None else plain_moments(noisy)
    observed = plug_in_moments.project(regression, values, known, noisy.noise.spread / regression.multipliers[0])
    centre = plug_in_moments.in_users_units(regression, _centre_of(noisy, observed, known)) if regression.link else 0.0

    def logp(value: Variable, phi: Variable, scale: Variable) -> Variable:
        return plug_in_moments.log_likelihood(regression, value[..., :K], pt.constant(n), known, phi - centre, scale)

    def simulate(phi: Variable, scale: Variable, *_: Variable) -> Variable:
        drawn = plug_in_moments.simulated(regression, observed[..., :K], n, known, phi - centre, scale)
        return drawn if noisy.residuals is None else pt.concatenate([drawn, _of_residuals(noisy, drawn)], axis=-1)

    return NoisyLikelihood(observed, (), (), simulate, logp)


def _of_residuals(noisy: NoisyStatistic, moments: Variable) -> Variable:
    """Sums (1, F + 1) of residuals, as if none were clamped, of records with these moments (1, K)."""
    regression, residuals = noisy.regression, noisy.residuals
    assert regression is not None
    assert residuals is not None
    full = plug_in_moments.moments_of(regression, moments, noisy.known * noisy.lattice)
    F, left = residuals.features, np.array([*(-b for b in residuals.coefficients), 1.0])
    return pt.concatenate([(full @ left)[..., :F], ((full @ left) @ left)[..., None]], axis=-1)


def _pooled(noisy: NoisyStatistic) -> NoisyLikelihood:
    """Second moments of a regression over all cells, and sums by cell."""
    regression, n = noisy.regression, noisy.n.astype(float)
    assert regression is not None
    observed = plug_in_moments.project_pooled(apart(noisy), n, noisy.noise.spread / int(noisy.multipliers[-1]))

    def logp(value: Variable, phi: Variable, scale: Variable) -> Variable:
        return plug_in_moments.log_likelihood_pooled(regression, value[0], n, phi, scale).reshape((1,))

    def simulate(phi: Variable, scale: Variable, *_: Variable) -> Variable:
        return plug_in_moments.simulated_pooled(regression, observed, n, phi, scale)[None]

    return NoisyLikelihood(observed[None], (), (), simulate, logp)


def _centre_of(noisy: NoisyStatistic, observed: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Coefficients (G V, *C, F) about which the scores of a regression with a link are taken for linear."""
    regression, F = noisy.regression, noisy.anchor.shape[-1]
    assert regression is not None
    moments = regression.matrix(observed, known).reshape(-1, regression.size, regression.size)
    scores, information = moments[:, :F, F], moments[:, :F, :F]
    centre = straightened(regression.scores, scores, information, noisy.noise.standard_deviation, noisy.anchor.reshape(-1, F))
    return centre.reshape(noisy.anchor.shape)


def _totals(noisy: NoisyStatistic) -> NoisyLikelihood:
    """Totals of rows."""
    observed = noisy.values if noisy.holds_values else np.maximum(noisy.values, 0.0)

    def logp(value: Variable, *arguments: Variable) -> Variable:
        if noisy.distribution == "Poisson":
            return value[..., 0] * pt.log(pt.maximum(arguments[0], 1e-300)) - arguments[0]
        if noisy.holds_values:
            middle, half = noisy.domain.middle, noisy.domain.half_width
            return pm.logp(pm.Normal.dist((arguments[0] - middle) / half, arguments[1] / half), value[..., 0])
        trials, p = arguments
        if noisy.noisy.shape[-1] > 1:
            return (value * pt.log(pt.maximum(p / p.sum(axis=-1, keepdims=True), 1e-300))).sum(axis=-1)
        p = p[..., 1] / p.sum(axis=-1) if noisy.distribution == "Multinomial" else p
        total, p = pt.minimum(value[..., 0], trials), pt.clip(p, 1e-300, 1 - 1e-16)
        return total * pt.log(p) + (trials - total) * pt.log1p(-p)

    def simulate(*arguments: Variable) -> Variable:
        return laws.simulated(of_totals(noisy, list(arguments[:-1])), None, noisy.noisy.shape)

    return NoisyLikelihood(observed, (), (), simulate, logp)
