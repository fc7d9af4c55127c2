"""Noisy statistic + parameters on its cells -> what is observed, what is latent, and the log-density of a ``pm.CustomDist``.

``rewrite`` puts the result into a model. What the functions' closures hold is public: pickles of the model
carry them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.pytensorf import constant_fold
from pytensor.graph.basic import Variable

from pymc_dp.laws import law as laws
from pymc_dp.laws.combined import combined
from pymc_dp.laws.projected import projected
from pymc_dp.private_models.moment_law import Related, Scatter, scatter
from pymc_dp.private_models.pooled_law import pooled_law
from pymc_dp.private_models.residual_law import residual_law
from pymc_dp.private_models.sizes import guessed_sizes, latent_sizes, normal_unknowns
from pymc_dp.private_models.vector_law import vector_scatter
from pymc_dp.private_models.vectors import vectors
from pymc_dp.private_models.within_bins import averaged
from pymc_dp.releases.noisy_statistic import NoisyStatistic

SHARED = "_shared"
"""Ending of the names of what the features' moments have in common in all cells, which are the model's own."""
LATENT = "_noise"
"""Ending of the names of latent noise variables, which are the model's own."""
TABLES = "_table"
"""Ending of the names of a network's conditional probability tables, which are the model's own."""


@dataclass(frozen=True)
class NoisyLikelihood:
    """A likelihood of noisy statistics, as ``pm.CustomDist`` takes it.

    Attributes
    ----------
    observed : ndarray
    sizes, latents : tuple of Variable
        Unknowns that it adds to the model: numbers of records, and latent noise.
    simulate, logp : callable
        Functions of the parameters, the sizes and the latents, in this order. ``simulate`` takes a size after them, ``logp`` the value
        before them.
    """

    observed: np.ndarray
    sizes: tuple[Variable, ...]
    latents: tuple[Variable, ...]
    simulate: Callable[..., Variable]
    logp: Callable[..., Variable]


def noisy_likelihood(private: pm.Model, noisy: NoisyStatistic, parameters: list[Variable], related: Sequence[Related]) -> NoisyLikelihood:
    """The likelihood of one noisy statistic, of which the noise is a part; what is latent is added to the model in context.

    Parameters
    ----------
    private : pm.Model
    noisy : NoisyStatistic
    parameters : list of Variable
        On the cells, in full shape.
    related : sequence of Related
        What is believed beforehand of features that are computed from the same covariates, where second moments were released.
    """
    if noisy.multipliers.size:
        return _pooled_moments(private, noisy)
    if noisy.regression is not None and not noisy.regression.clamped_vectors:
        return _second_moments(private, noisy, parameters, related)
    if noisy.combination.size and noisy.sizes == "free":
        return _sums_beside_their_number(private, noisy, parameters)
    return _counts_or_sums(private, noisy, parameters)


def _sums_beside_their_number(private: pm.Model, noisy: NoisyStatistic, parameters: list[Variable]) -> NoisyLikelihood:
    """Published sums of records whose number is unknown: the first entry is the noisy number, in units of its noise, as the sums are."""
    unit, many = noisy.combination[..., 0, 0], len(parameters)
    sums = replace(noisy, noisy=noisy.noisy[..., 1:], statistics=noisy.statistics[1:], combination=noisy.combination[..., 1:, :])
    sizes, guess = latent_sizes(private, noisy)
    of_sums = _counts_or_sums(private, sums, parameters, (sizes, guess))

    def logp(value: Variable, *arguments: Variable) -> Variable:
        noise = pm.Normal.dist(0, noisy.noise.standard_deviation) if noisy.noise.gaussian else pm.Laplace.dist(0, noisy.noise.spread)
        return pm.logp(noise, value[..., 0] - unit * arguments[many]) + of_sums.logp(value[..., 1:], *arguments)

    def simulate(*arguments: Variable) -> Variable:
        number = (unit * arguments[many])[..., None] + noisy.noise.simulated((*noisy.noisy.shape[:-1], 1))
        return pt.concatenate([number, of_sums.simulate(*arguments)], axis=-1)

    return NoisyLikelihood(noisy.values, sizes, of_sums.latents, simulate, logp)


def _counts_or_sums(
    private: pm.Model, noisy: NoisyStatistic, parameters: list[Variable], given: tuple[tuple[Variable, ...], np.ndarray] | None = None
) -> NoisyLikelihood:
    """Counts or sums, and the numbers of records where those are not public: ``given`` if there already, as unknowns and guesses."""
    counted = given is None and counted_together(noisy, parameters)
    sizes, n = given or latent_sizes(private, noisy, counted=counted)
    joint = counted and noisy.private_cells > 1
    shape, many = noisy.noisy.shape, len(parameters)
    before_latents = many + len(sizes)

    def law(*arguments: Variable) -> laws.Law:
        return law_of(noisy, list(arguments[:many]), arguments[many] if sizes else pt.constant(n))

    together = (len(noisy.n), *shape[1:-1], noisy.private_cells * shape[-1]) if joint else shape
    plan = plan_of(noisy, law(*parameters, *sizes), n)
    latents = (normal_unknowns(private, f"{noisy.variable}{LATENT}", (*together[:-1], plan.latents)),) if plan.latents else ()

    def logp(value: Variable, *arguments: Variable) -> Variable:
        on_cells, latent = law(*arguments[:before_latents]), arguments[before_latents:]
        if not joint:
            return laws.log_density(on_cells, value, noisy.noise, plan, *latent)
        return _at_first_cells(laws.log_density(on_cells, _cells_joined(value, noisy), noisy.noise, plan, *latent), noisy)

    def simulate(*arguments: Variable) -> Variable:
        drawn = laws.simulated(law(*arguments[:before_latents]), noisy.noise, together)
        return cells_apart(drawn, noisy) if joint else drawn

    return NoisyLikelihood(noisy.values, sizes, latents, simulate, logp)


def law_of(noisy: NoisyStatistic, parameters: list[Variable], size: Variable) -> laws.Law:
    """The law of the exact statistic, from the likelihood's parameters on cells and the numbers of records in them."""
    if noisy.structure == "aggregate":
        return of_totals(noisy, parameters)
    if noisy.regression is not None:
        return vectors(noisy.regression, size, *parameters)
    family = noisy.family
    assert family is not None
    of_records = family.law(noisy.domain, size, *averaged(noisy, parameters, size))
    if noisy.combination.size:
        assert isinstance(of_records, laws.Moments)
        return combined(of_records, noisy.combination)
    if noisy.weights.size:
        return projected(of_records, noisy.weights / noisy.divisor)
    if noisy.sizes == "public":
        return of_records
    in_cells = laws.in_cells(of_records, entry_basis(noisy), size)
    if not isinstance(in_cells, laws.Rates) or noisy.sizes == "free":
        return in_cells
    return _table(in_cells, noisy) if noisy.sizes == "simplex" else _present(in_cells, noisy)


def of_totals(noisy: NoisyStatistic, parameters: Sequence[Variable]) -> laws.Law:
    """The law of the totals of rows, each with its own parameters."""
    if noisy.distribution == "Poisson":
        return laws.Rates(parameters[0][..., None])
    if noisy.distribution == "Binomial":
        return laws.Count(*parameters)
    assert noisy.family is not None
    if noisy.holds_values:
        return noisy.family.law(noisy.domain, pt.ones(noisy.batch), *parameters)
    return noisy.family.law(replace(noisy.domain, upper=1.0, known=()), *parameters)


def entry_basis(noisy: NoisyStatistic) -> tuple[tuple[float, ...], ...]:
    """How released entries are made of the number of records and their sums, where the number is not public: see ``CellSensitivity``."""
    assert noisy.family is not None
    return tuple((row[0] * noisy.unit, *map(float, row[1:])) for row in noisy.family.cell_sensitivity(noisy.domain).matrix)


def plan_of(noisy: NoisyStatistic, law: laws.Law, n: np.ndarray | None = None) -> laws.Plan:
    """Which form of its law a noisy statistic gets; ``n`` are known or guessed numbers of records, by default its own."""
    if _joint(noisy, law):
        if noisy.covariance.size and isinstance(law, laws.Counts):
            return laws.Plan("correlated", covariance=noisy.covariance[None])
        return laws.plan(law, _cells_joined(noisy.values, noisy), noisy.n.astype(float), noisy.noise, whole=noisy.whole)
    n = guessed_sizes(noisy) if n is None else n
    if noisy.structure == "aggregate" and isinstance(law, laws.Count | laws.Counts):
        [n] = constant_fold([law.n])  # every row has its own number of trials, which is public
    return laws.plan(law, noisy.values, n, noisy.noise, whole=noisy.whole)


def counted_together(noisy: NoisyStatistic, parameters: list[Variable]) -> bool:
    """Whether counts of cells vary about their sizes, so that these are probabilities or rates; else they are numbers of records."""
    return _joint(noisy, law_of(noisy, parameters, pt.constant(guessed_sizes(noisy))))


def _joint(noisy: NoisyStatistic, law: laws.Law) -> bool:
    """Whether the counts of all private cells of a public one have one law together."""
    return (noisy.sizes == "simplex" and isinstance(law, laws.Counts)) or isinstance(law, laws.AtMost)


def _second_moments(private: pm.Model, noisy: NoisyStatistic, parameters: list[Variable], related: Sequence[Related]) -> NoisyLikelihood:
    """Second moments with noise: the exact ones are latent, see ``moment_law``."""
    regression, name = noisy.regression, noisy.variable
    assert regression is not None
    sizes, n = latent_sizes(private, noisy)
    batch = noisy.noisy.shape[:-1]
    B, K, F = int(np.prod(batch)), noisy.noisy.shape[-1], len(regression.names)
    records = np.broadcast_to(n, batch).reshape(B)
    shape = (regression.size, regression.size)
    known = np.broadcast_to(noisy.known * noisy.lattice, (*batch, *shape)).reshape(B, *shape)
    if regression.q > 1:
        law: Scatter = vector_scatter(regression, noisy.noise, noisy.values.reshape(B, K), known, records, related)
    elif noisy.residuals is None:
        law = scatter(regression, noisy.noise, noisy.values.reshape(B, K), known, records, related, anchor=noisy.anchor.reshape(-1, F))
    else:
        law = residual_law(noisy, known, records, related)
    latents = [normal_unknowns(private, f"{name}{LATENT}", (B, law.latents))]
    if law.shared:
        latents.append(normal_unknowns(private, f"{name}{SHARED}", (law.shared,)))
    given = law.given()
    latents.append(pm.Data(f"{name}{LATENT}_given", given, shape=given.shape))

    def flat(arguments: Sequence[Variable]) -> tuple[Any, ...]:
        phi, sigma, *rest = arguments
        size = (rest.pop(0) + np.zeros(batch)).reshape((B,)) if sizes else pt.constant(records)
        latent, shared = rest.pop(0), rest.pop(0) if law.shared else None
        several = (regression.q,) if regression.q > 1 else ()
        return size, phi.reshape((B, *several, F)), sigma.reshape((B, *several, *several)), latent, shared, *rest

    def logp(value: Variable, *arguments: Variable) -> Variable:
        return law.log_density(value.reshape((B, K)), *flat(arguments)).reshape(batch)

    def simulate(*arguments: Variable) -> Variable:
        return law.simulated(*flat(arguments[:-1])).reshape((*batch, K))

    return NoisyLikelihood(noisy.values, sizes, tuple(latents), simulate, logp)


def _pooled_moments(private: pm.Model, noisy: NoisyStatistic) -> NoisyLikelihood:
    """Sums by cell and second moments over all cells, with noise: the exact ones are latent, see ``pooled_law``."""
    law, name = pooled_law(noisy), noisy.variable
    latent = normal_unknowns(private, f"{name}{LATENT}", (law.latents,))
    given = pm.Data(f"{name}{LATENT}_given", law.given, shape=law.given.shape)

    def logp(value: Variable, *arguments: Variable) -> Variable:
        return law.log_density(value[0], *arguments).reshape((1,))

    def simulate(*arguments: Variable) -> Variable:
        return law.simulated(*arguments[:-1])[None]

    return NoisyLikelihood(noisy.values, (), (latent, given), simulate, logp)


def _table(rates: laws.Rates, noisy: NoisyStatistic) -> laws.Law:
    """Independent Poisson counts given that all of a public cell add up to its public number are multinomial."""
    ones = [1] * (noisy.noisy.ndim - 2)
    n, of_rows = noisy.n.astype(float).reshape(-1, *ones), np.repeat(noisy.n.astype(float), noisy.private_cells).reshape(-1, *ones, 1)
    # Divided where the rates are multiplied by the same numbers, not after they have been put beside each other.
    return laws.Counts(pt.constant(n), _cells_joined(rates.rate / of_rows + np.zeros(noisy.noisy.shape), noisy))


def _present(rates: laws.Rates, noisy: NoisyStatistic) -> laws.AtMost:
    """Where records are left out, independent Poisson counts of a public cell add up to its public number at most."""
    most = pt.constant(noisy.n.astype(float).reshape(-1, *[1] * (noisy.noisy.ndim - 2)))
    rate = rates.rate if noisy.private_cells == 1 else _cells_joined(rates.rate + np.zeros(noisy.noisy.shape), noisy)
    return laws.AtMost(rate, most)


def _cells_joined(value, noisy: NoisyStatistic):
    """The statistics of all private cells of a public one beside each other: (G V, *C, K) -> (G, *C, V K)."""
    G, V = len(noisy.n), noisy.private_cells
    shape = noisy.noisy.shape
    apart = value.reshape((G, V, *shape[1:]))
    order = (0, *range(2, len(shape)), 1, len(shape))
    return apart.transpose(order).reshape((G, *shape[1:-1], V * shape[-1]))


def cells_apart(value: Variable, noisy: NoisyStatistic) -> Variable:
    """The inverse of ``_cells_joined``."""
    if noisy.private_cells == 1:
        return value
    G, V = len(noisy.n), noisy.private_cells
    shape = noisy.noisy.shape
    together = value.reshape((G, *shape[1:-1], V, shape[-1]))
    order = (0, len(shape) - 1, *range(1, len(shape) - 1), len(shape))
    return together.transpose(order).reshape(shape)


def _at_first_cells(density: Variable, noisy: NoisyStatistic) -> Variable:
    """One density (G, *C) for all private cells of a public one, at the first of them: (G V, *C), 0 at the others."""
    shape = noisy.noisy.shape[:-1]
    first = np.zeros(shape).reshape(len(noisy.n), noisy.private_cells, *shape[1:])
    first[:, 0] = 1.0
    return pt.repeat(density, noisy.private_cells, axis=0) * first.reshape(shape)
