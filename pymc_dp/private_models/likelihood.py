"""Noisy statistic + parameters on its cells -> what is observed, what is latent, and the log-density of a ``pm.CustomDist``.

``rewrite`` puts the result into a model. What the functions' closures hold is public: pickles of the model
carry them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import lgamma
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.continuous import PositiveContinuous, UnitContinuous
from pymc.logprob.transforms import Transform
from pymc.pytensorf import constant_fold
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.families.anchors import straightened
from pymc_dp.laws import law as laws
from pymc_dp.laws.kernel import Kernel
from pymc_dp.laws.shares import shares, shares_back, shares_volume
from pymc_dp.private_models import plug_in_moments
from pymc_dp.private_models.moment_law import Related, scatter
from pymc_dp.private_models.vectors import vectors
from pymc_dp.releases.release import NoisyStatistic

SHARED = "_shared"
"""Ending of the names of what the features' moments have in common in all cells: the model's own, too."""
LATENT = "_noise"
"""Ending of the names of latent noise variables: the model's own, not the user's."""
SIZE = "_size"
"""Ending of the names of unknown numbers of records per cell: the model's own, too."""
TABLES = "_table"
"""Ending of the names of a network's conditional probability tables: the model's own, too."""

WIDEST_STEP = 1.5
"""Units of the logarithm of a size, or of the logit of a share, of which nothing is told: about the spread if all shares are as likely."""
FAR_BELOW = 30.0
"""So many standard deviations below 0 the middle of a normal variable above 0 may be before it is taken for an exponential one."""


@dataclass(frozen=True)
class NoisyLikelihood:
    """A likelihood of noisy statistics: what is observed, what is latent, and the functions of a CustomDist."""

    observed: np.ndarray
    sizes: tuple[Variable, ...]
    latents: tuple[Variable, ...]
    simulate: Callable[..., Variable]
    logp: Callable[..., Variable]


class SizesRV(RandomVariable):
    """Random variable of ``Sizes``: it has no draws, as ``pm.HalfFlat`` has none."""

    name = "sizes"
    signature = "(),()->()"
    dtype = "floatX"
    _print_name = ("Sizes", "\\operatorname{Sizes}")

    @classmethod
    def rng_fn(cls, *args: object) -> np.ndarray:
        """Refused: every number of records is as likely."""
        raise NotImplementedError("Numbers of records that nobody knows have no prior draws. Draw from the posterior.")


class Sizes(PositiveContinuous):
    """Numbers of records, of which all are as likely; where a sampler starts (PyMC copies no model with an ``initval``), and its units."""

    rv_op = SizesRV()

    @classmethod
    def dist(cls, start: np.ndarray, unit: np.ndarray, **kwargs: Any) -> Variable:
        """Without a name and without a model."""
        return super().dist([pt.as_tensor_variable(start), pt.as_tensor_variable(unit)], **kwargs)

    @staticmethod
    def support_point(random: Variable, size: Variable, start: Variable, unit: Variable) -> Variable:
        """Where a sampler starts."""
        return pt.full(random.shape, start)

    @staticmethod
    def logp(value: Variable, start: Variable, unit: Variable) -> Variable:
        """Improper, of any number above 0."""
        return pt.switch(pt.lt(value, 0), -np.inf, pt.zeros_like(value))


class LogFromStart(Transform):
    """Numbers of records by their logarithms, which count from where a sampler starts, in its units: the inputs of ``Sizes``.

    A sampler's steps are of one size where released values tell a number to a billionth as where they tell nothing.
    """

    name = "logsteps"
    ndim_supp = 0

    def forward(self, value: Variable, *inputs: Variable) -> Variable:
        """How far a logarithm is from the first, in units."""
        start, unit = inputs[-2:]
        return pt.log(value / start) / unit

    def backward(self, value: Variable, *inputs: Variable) -> Variable:
        """The number of records."""
        start, unit = inputs[-2:]
        return start * pt.exp(value * unit)

    def log_jac_det(self, value: Variable, *inputs: Variable) -> Variable:
        """Logarithm of the derivative of the number."""
        start, unit = inputs[-2:]
        return value * unit + pt.log(start * unit)


class KeptRV(RandomVariable):
    """Random variable of ``Kept``."""

    name = "kept"
    signature = "(),()->()"
    dtype = "floatX"
    _print_name = ("Kept", "\\operatorname{Kept}")

    @classmethod
    def rng_fn(cls, rng: Any, start: Any, unit: Any, size: Any) -> np.ndarray:
        """Every share is as likely."""
        return rng.uniform(size=np.shape(start) if size is None else size)


class Kept(UnitContinuous):
    """Shares of records that are not left out, of which all are as likely; where a sampler starts, and its units of their logits."""

    rv_op = KeptRV()

    @classmethod
    def dist(cls, start: np.ndarray, unit: np.ndarray, **kwargs: Any) -> Variable:
        """Without a name and without a model."""
        return super().dist([pt.as_tensor_variable(start), pt.as_tensor_variable(unit)], **kwargs)

    @staticmethod
    def support_point(random: Variable, size: Variable, start: Variable, unit: Variable) -> Variable:
        """Where a sampler starts."""
        return pt.full(random.shape, start)

    @staticmethod
    def logp(value: Variable, start: Variable, unit: Variable) -> Variable:
        """Flat on (0, 1)."""
        return pt.switch(pt.lt(value, 0) | pt.gt(value, 1), -np.inf, pt.zeros_like(value))


class LogitFromStart(Transform):
    """Shares by their logits, which count from where a sampler starts, in its units: the inputs of ``Kept``. See ``LogFromStart``."""

    name = "logitsteps"
    ndim_supp = 0

    def forward(self, value: Variable, *inputs: Variable) -> Variable:
        """How far a logit is from the first, in units."""
        start, unit = inputs[-2:]
        return (pt.log(value / start) - pt.log((1 - value) / (1 - start))) / unit

    def backward(self, value: Variable, *inputs: Variable) -> Variable:
        """The share."""
        start, unit = inputs[-2:]
        return pt.sigmoid(value * unit + pt.log(start) - pt.log1p(-start))

    def log_jac_det(self, value: Variable, *inputs: Variable) -> Variable:
        """Logarithm of the derivative of the share."""
        start, unit = inputs[-2:]
        logit = value * unit + pt.log(start) - pt.log1p(-start)
        return pt.log(unit) - pt.softplus(logit) - pt.softplus(-logit)


class Shares(Transform):
    """V shares by V - 1 logits, each of a share in what those before it leave: ``laws.shares``.

    Logits count from where released values put them, in units of how well those tell: the law's input before its generator. The largest
    of several, joining and splitting, of which PyMC's own transform is made, take seconds to compile. And where shares are counted the
    logits are independent.
    """

    name = "shares"
    ndim_supp = 1

    def forward(self, value: Variable, *inputs: Variable) -> Variable:
        """How far logits are from where they are told, in standard deviations."""
        near = inputs[-2]
        return (_logits(value) - near[..., 0]) / near[..., 1]

    def backward(self, value: Variable, *inputs: Variable) -> Variable:
        """Each takes its part of what those before it leave."""
        like = pt.zeros((value.shape[0], value.type.shape[-1] + 1))
        return Kernel(shares, (2,), 0, shares_back)(value, inputs[-2], like)

    def log_jac_det(self, value: Variable, *inputs: Variable) -> Variable:
        """See ``laws.shares.shares_volume``."""
        return Kernel(shares_volume, (0,))(value, inputs[-2], return_list=True)[0]


def _logits(shares):
    """Logits (..., V - 1) of shares (..., V): 0 where all are alike."""
    V = shares.shape[-1] if isinstance(shares, np.ndarray) else shares.type.shape[-1]
    log = np.log if isinstance(shares, np.ndarray) else pt.log
    left = (shares[..., None] * np.tri(V, V - 1, -1)).sum(axis=-2)
    return log(shares[..., :-1]) - log(left) + np.log(np.arange(V - 1.0, 0, -1))


def noisy_likelihood(
    private: pm.Model, noisy: NoisyStatistic, columns: int, parameters: list[Variable], noise_aware: bool, related: Sequence[Related] = ()
) -> NoisyLikelihood:
    """The likelihood of one noisy statistic; what is latent is added to the model, which is the one in context.

    Parameters
    ----------
    columns : int
        How many axes the observed variable has beside that of the records.
    parameters : list of Variable
        On the cells, in full shape.
    related : sequence of Related
        Of second moments: what is believed beforehand of features that are computed from the same covariates.
    """
    if not noise_aware:
        return plug_in(noisy, columns, parameters)
    if noisy.regression is not None and noisy.regression.q == 1:
        return _moments(private, noisy, columns, parameters, related)
    return _counts_or_sums(private, noisy, columns, parameters)


def _counts_or_sums(private: pm.Model, noisy: NoisyStatistic, columns: int, parameters: list[Variable]) -> NoisyLikelihood:
    """The noise is part of the likelihood, and so are numbers of records that are not public."""
    name, noise, many = noisy.variable, noisy.noise, len(parameters)
    guess = pt.constant(_guessed_sizes(noisy))
    sizes, n = _sizes(private, noisy, columns, counted=_joint(noisy, law_of(noisy, parameters, guess)))

    def law(*given: Variable) -> laws.Law:
        return law_of(noisy, list(given[:many]), given[many] if sizes else pt.constant(n))

    joint = _joint(noisy, law(*parameters, *sizes))
    shape = noisy.noisy.shape
    flat = (len(noisy.n), *shape[1:-1], noisy.private_cells * shape[-1])

    def together(value: Variable) -> Variable:
        """The counts of all private cells of a public one beside each other."""
        return _beside(value, noisy) if joint else value

    plan = plan_of(noisy, law(*parameters, *sizes))
    latents: tuple[Variable, ...] = ()
    if plan.latents:
        length = flat[:-1] if joint else shape[:-1]
        dims = [f"{name}{LATENT}_{axis}" for axis in range(len(length) + 1)]
        for dim, size in zip(dims, (*length, plan.latents), strict=True):
            private.add_coord(dim, length=size)
        latents = (pm.Normal(f"{name}{LATENT}", dims=dims, shape=(*length, plan.latents)),)
    hidden_from = many + len(sizes)

    def logp(value: Variable, *given: Variable) -> Variable:
        density = laws.log_density(law(*given[:hidden_from]), together(value), noise, plan, *given[hidden_from:])
        if not joint:
            return density
        # One density for all private cells of a public one: it stands at the first of them.
        first = np.zeros(shape[:-1]).reshape(len(noisy.n), noisy.private_cells, *shape[1:-1])
        first[:, 0] = 1.0
        spread_out = pt.repeat(density, noisy.private_cells, axis=0)
        return spread_out * first.reshape(shape[:-1])

    def simulate(*given: Variable) -> Variable:
        drawn = laws.simulated(law(*given[:hidden_from]), noise, flat if joint else shape)
        return _apart(drawn, noisy) if joint else drawn

    return NoisyLikelihood(noisy.values, sizes, latents, simulate, logp)


def law_of(noisy: NoisyStatistic, own: list[Variable], size: Variable) -> laws.Law:
    """The law of the exact statistic, from the likelihood's parameters on cells and the numbers of records in them."""
    if noisy.structure == "aggregate":
        return laws.Count(*own) if noisy.distribution == "Binomial" else laws.Rates(own[0][..., None])
    if noisy.regression is not None:
        return vectors(noisy.regression, size, *own)
    family = noisy.family
    assert family is not None
    of_records = family.law(noisy.domain, size, *own)
    if noisy.sizes == "public":
        return of_records
    spread = family.spread(noisy.domain)
    basis = tuple((row[0] * noisy.unit, *map(float, row[1:])) for row in spread.matrix)
    own_law = laws.in_cells(of_records, basis, size)
    if noisy.sizes == "simplex" and isinstance(own_law, laws.Rates):
        return _table(own_law, noisy)
    return own_law


def plan_of(noisy: NoisyStatistic, law: laws.Law) -> laws.Plan:
    """Which form of its law a noisy statistic gets."""
    if _joint(noisy, law):
        if noisy.covariance.size:
            return laws.Plan("correlated", covariance=noisy.covariance[None])
        return laws.plan(law, _beside(noisy.values, noisy), noisy.n.astype(float), noisy.noise, whole=noisy.divisor == 1)
    n = _guessed_sizes(noisy)
    if noisy.structure == "aggregate" and isinstance(law, laws.Count):
        [n] = constant_fold([law.n])  # every row has its own number of trials, which is public
    return laws.plan(law, noisy.values, n, noisy.noise, whole=noisy.divisor == 1)


def _joint(noisy: NoisyStatistic, law: laws.Law) -> bool:
    """Whether the counts of all private cells of a public one have one law together."""
    return noisy.sizes == "simplex" and isinstance(law, laws.Counts)


def _moments(
    private: pm.Model, noisy: NoisyStatistic, columns: int, parameters: list[Variable], related: Sequence[Related]
) -> NoisyLikelihood:
    """Second moments with noise: the exact ones are latent, see ``moment_law``."""
    regression, name = noisy.regression, noisy.variable
    assert regression is not None
    sizes, n = _sizes(private, noisy, columns)
    batch = noisy.noisy.shape[:-1]
    B, K, F = int(np.prod(batch)), noisy.noisy.shape[-1], len(regression.names)
    many = np.broadcast_to(n, batch).reshape(B)
    shape = (regression.size, regression.size)
    known = np.broadcast_to(noisy.known * noisy.lattice, (*batch, *shape)).reshape(B, *shape)
    law = scatter(regression, noisy.noise, noisy.values.reshape(B, K), known, many, related, anchor=noisy.anchor.reshape(-1, F))
    dims = [f"{name}{LATENT}_{axis}" for axis in range(2)]
    for dim, length in zip(dims, (B, law.latents), strict=True):
        private.add_coord(dim, length=length)
    latents: list[Variable] = [pm.Normal(f"{name}{LATENT}", dims=dims, shape=(B, law.latents))]
    if law.shared:
        private.add_coord(f"{name}{SHARED}_0", length=law.shared)
        latents.append(pm.Normal(f"{name}{SHARED}", dims=f"{name}{SHARED}_0", shape=(law.shared,)))

    given = law.given()
    latents.append(pm.Data(f"{name}{LATENT}_given", given, shape=given.shape))

    def flat(arguments: Sequence[Variable]) -> tuple[Any, ...]:
        phi, sigma, *rest = arguments
        size = (rest.pop(0) + np.zeros(batch)).reshape((B,)) if sizes else pt.constant(many)
        latent, shared = rest.pop(0), rest.pop(0) if law.shared else None
        return size, phi.reshape((B, F)), sigma.reshape((B,)), latent, shared, *rest

    def logp(value: Variable, *arguments: Variable) -> Variable:
        return law.log_density(value.reshape((B, K)), *flat(arguments)).reshape(batch)

    def simulate(*arguments: Variable) -> Variable:
        return law.simulated(*flat(arguments[:-1])).reshape((*batch, K))

    return NoisyLikelihood(noisy.values, sizes, tuple(latents), simulate, logp)


def _guessed_sizes(noisy: NoisyStatistic) -> np.ndarray:
    """Numbers of records per cell, as far as they are public or released values tell: see ``_released_sizes``."""
    if noisy.sizes == "public":
        return noisy.n.astype(float).reshape(-1, *[1] * (noisy.noisy.ndim - 2))
    return np.maximum(_released_sizes(noisy), 1.0)


def _released_sizes(noisy: NoisyStatistic) -> np.ndarray:
    """What released values say of the numbers of records per cell (G V, 1...), or (G V, *C) where every column has its own."""
    if noisy.regression is not None:
        sizes = noisy.values[..., noisy.regression.entries.index((0, 0))]
    else:
        assert noisy.family is not None
        sizes = noisy.values.sum(axis=-1) / (noisy.family.spread(noisy.domain).total * noisy.unit)
    return sizes if noisy.variable in noisy.left_out else sizes.mean(axis=tuple(range(1, sizes.ndim)), keepdims=True)


def _noise_of_sizes(noisy: NoisyStatistic) -> float:
    """Standard deviation of the noise on the released number of records of a cell and a column."""
    sd = noisy.noise.standard_deviation
    if noisy.regression is not None:
        return sd
    assert noisy.family is not None
    return float(sd * np.sqrt(noisy.noisy.shape[-1]) / (noisy.family.spread(noisy.domain).total * noisy.unit))


def _sizes(private: pm.Model, noisy: NoisyStatistic, columns: int, counted: bool = False) -> tuple[tuple[Variable, ...], np.ndarray]:
    """Numbers of records per cell: unknown variables where they are not public, and what is known or guessed of them.

    With ``counted`` counts are multinomial about the sizes, as in a table; else the sizes are those of the records.
    """
    name, V = noisy.variable, noisy.private_cells
    ones, guess = [1] * columns, _guessed_sizes(noisy)
    if noisy.sizes == "public":
        return (), guess
    if noisy.sizes in ("free", "kept"):
        largest = noisy.regression.scores.largest_weight if noisy.regression is not None and noisy.regression.link else 1.0
        dims = [f"{name}_kind", *(f"{name}{SIZE}_{axis}" for axis, length in enumerate(guess.shape[1:]) if length > 1)]
        start = guess.reshape([len(guess), *(length for length in guess.shape[1:] if length > 1)])
        for dim, length in zip(dims, start.shape, strict=True):
            private.add_coord(dim, length=length)

        def sampled(kind: type[Sizes] | type[Kept], start: np.ndarray, unit: np.ndarray, transform: Transform) -> Variable:
            """In coordinates of its own where there are features; else Gibbs knows the conditional of a size by PyMC's."""
            if noisy.regression is None:
                return kind(f"{name}{SIZE}", start, unit, dims=dims)
            both = np.stack([start, unit], axis=-1)
            given = pm.Data(f"{name}{SIZE}_given", both, shape=both.shape)  # data, so that another release makes the same graph
            return kind(f"{name}{SIZE}", given[..., 0], given[..., 1], dims=dims, default_transform=transform)

        if noisy.sizes == "free":
            start = np.maximum(start, 1.0)
            unit = np.minimum(_noise_of_sizes(noisy) / start, WIDEST_STEP)
            return (sampled(Sizes, start, unit, LogFromStart()).reshape(guess.shape),), guess
        most = largest * np.repeat(noisy.n.astype(float), V).reshape(-1, *[1] * (start.ndim - 1)) + np.zeros(start.shape)
        noise = _noise_of_sizes(noisy) / np.maximum(most, 1.0)
        least = np.clip(noise, 1e-9, 0.05)  # so near to 0 and 1 a share starts
        told = np.clip(start / np.maximum(most, 1.0), least, 1 - least)
        unit = np.minimum(noise / (told * (1 - told)), WIDEST_STEP)
        return ((sampled(Kept, told, unit, LogitFromStart()) * most).reshape(guess.shape),), guess
    # Flat on the simplex of the public number of records: theory in docs/theory.md.
    private.add_coord(f"{name}_group", length=len(noisy.n))
    private.add_coord(f"{name}_kind", length=V)
    shares, near = _near(noisy, counted)
    share = pm.CustomDist(
        f"{name}{SIZE}", np.ones(V), pm.Data(f"{name}{SIZE}_given", near, shape=near.shape), dist=_any_shares, logp=_flat,
        signature="(v),(w,e)->(v)", dims=(f"{name}_group", f"{name}_kind"), transform=Shares(),
        support_point=lambda *_: pt.constant(shares),
    )  # fmt: skip
    size = (share * noisy.n[:, None]).reshape((-1, *ones))
    return (size,), guess


def _near(noisy: NoisyStatistic, counted: bool) -> tuple[np.ndarray, np.ndarray]:
    """Shares (G, V) that released values suggest, and their logits with standard deviations (G, V - 1, 2).

    Only where a sampler starts and how far it steps rests on them. Of equally likely shares every size is nearly exponential; the noise,
    and what counts move about their sizes, is taken as normal, so a size is a normal variable above 0.
    """
    from scipy.special import log_ndtr

    noise, V = _noise_of_sizes(noisy), noisy.private_cells
    released, typical = _released_sizes(noisy).reshape(-1, V), np.maximum(noisy.n, 1)[:, None] / V
    sd = np.sqrt(noise**2 / np.prod(noisy.noisy.shape[1:-1]) + counted * np.maximum(released, 1.0))
    middle = released / sd - sd / typical
    above = np.maximum(middle, -FAR_BELOW)
    steep = np.exp(-0.5 * above**2 - log_ndtr(above)) / np.sqrt(2 * np.pi)
    low = middle < -FAR_BELOW  # exponential, as far as it goes
    size = sd * np.where(low, -1 / np.minimum(middle, -1.0), above + steep)
    variance = np.where(low, size**2, sd**2 * (1 - steep * (above + steep)))
    after, variance_after = (np.cumsum(each[:, ::-1], axis=1)[:, -2::-1] for each in (size, variance))
    shares = size / size.sum(axis=1, keepdims=True)
    told = variance[:, :-1] / size[:, :-1] ** 2 + variance_after / after**2
    return shares, np.stack([_logits(shares), np.sqrt(told)], axis=-1)


def _any_shares(alpha: Variable, near: Variable, size: Variable) -> Variable:
    return pm.Dirichlet.dist(alpha, size=size)


def _flat(value: Variable, alpha: Variable, near: Variable) -> Variable:
    """Log-density of shares of which all are as likely: a Dirichlet law's own looks at every share and takes two seconds to compile."""
    return pt.full(value.shape[:1], lgamma(alpha.type.shape[-1]))


def _table(rates: laws.Rates, noisy: NoisyStatistic) -> laws.Law:
    """Independent Poisson counts given that all of a public cell add up to its public number are multinomial."""
    ones = [1] * (noisy.noisy.ndim - 2)
    n, of_rows = noisy.n.astype(float).reshape(-1, *ones), np.repeat(noisy.n.astype(float), noisy.private_cells).reshape(-1, *ones, 1)
    # Divided where the rates are multiplied by the same numbers, not after they have been put beside each other.
    return laws.Counts(pt.constant(n), _beside(rates.rate / of_rows + np.zeros(noisy.noisy.shape), noisy))


def _beside(value, noisy: NoisyStatistic):
    """(G V, *C, K) -> (G, *C, V K)."""
    G, V = len(noisy.n), noisy.private_cells
    shape = noisy.noisy.shape
    apart = value.reshape((G, V, *shape[1:]))
    order = (0, *range(2, len(shape)), 1, len(shape))
    return apart.transpose(order).reshape((G, *shape[1:-1], V * shape[-1]))


def _apart(value: Variable, noisy: NoisyStatistic) -> Variable:
    """The inverse of ``_beside``."""
    G, V = len(noisy.n), noisy.private_cells
    shape = noisy.noisy.shape
    together = value.reshape((G, *shape[1:-1], V, shape[-1]))
    order = (0, len(shape) - 1, *range(1, len(shape) - 1), len(shape))
    return together.transpose(order).reshape(shape)


def plug_in(noisy: NoisyStatistic, columns: int, parameters: list[Variable]) -> NoisyLikelihood:
    """The statistics, projected onto what exact ones could be, are used as if they were exact."""
    ones = [1] * columns
    n = noisy.n.astype(float).reshape(-1, *ones) if noisy.sizes == "public" else np.ones((len(noisy.noisy), *ones))
    if noisy.regression is not None:
        return _plug_in_moments(noisy, n)
    if noisy.structure == "aggregate":
        return _plug_in_totals(noisy, parameters)
    family, domain, shape = noisy.family, noisy.domain, noisy.noisy.shape
    assert family is not None
    values = noisy.values + noisy.shift * noisy.lattice
    if noisy.sizes == "public":
        n = n + noisy.shift * noisy.lattice * (domain.upper - domain.lower + 1)
        observed = family.project(values, n[..., None], noisy.noise.spread, domain)

        def counted(value: Variable) -> tuple[Variable, Variable]:
            return value, pt.constant(n)
    else:
        # Entries that are never negative and add up to the total of every record: their sum is the number of records.
        spread = family.spread(domain)
        matrix = np.array(spread.matrix, dtype=float) * np.array([noisy.unit, *[1.0] * (len(spread.matrix[0]) - 1)])
        entries = np.maximum(values, 0.0)
        found = np.maximum(entries.sum(axis=-1) / (spread.total * noisy.unit), 1e-9)
        sums = (entries - found[..., None] * matrix[:, 0]) @ np.linalg.pinv(matrix[:, 1:]).T
        sums = family.project(sums, found[..., None], noisy.noise.spread, domain)
        observed = sums @ matrix[:, 1:].T + found[..., None] * matrix[:, 0]

        def counted(value: Variable) -> tuple[Variable, Variable]:
            sizes = value.sum(axis=-1) / (spread.total * noisy.unit)
            return pt.dot(value - sizes[..., None] * matrix[:, 0], np.linalg.pinv(matrix[:, 1:]).T), sizes

    def logp(value: Variable, *given: Variable) -> Variable:
        sums, sizes = counted(value)
        return family.log_likelihood(sums, sizes, domain, *given)

    def simulate(*arguments: Variable) -> Variable:
        given = arguments[: len(parameters)]
        if noisy.sizes == "public":
            return laws.simulated(family.law(domain, pt.constant(n), *given), None, shape)
        basis = tuple((row[0] * noisy.unit, *map(float, row[1:])) for row in family.spread(domain).matrix)
        sizes = pt.constant(observed.sum(axis=-1) / (family.spread(domain).total * noisy.unit))
        return laws.simulated(laws.in_cells(family.law(domain, sizes, *given), basis, sizes), None, shape)

    return NoisyLikelihood(observed, (), (), simulate, logp)


def _plug_in_moments(noisy: NoisyStatistic, n: np.ndarray) -> NoisyLikelihood:
    regression = noisy.regression
    assert regression is not None
    known = noisy.known * noisy.lattice
    observed = plug_in_moments.project(regression, noisy.values, known, noisy.noise.spread)

    away = plug_in_moments.in_users_units(regression, _line_of(noisy, observed, known)) if regression.link else 0.0

    def logp(value: Variable, phi: Variable, scale: Variable) -> Variable:
        return plug_in_moments.log_likelihood(regression, value, pt.constant(n), known, phi - away, scale)

    def simulate(phi: Variable, scale: Variable, *_: Variable) -> Variable:
        return plug_in_moments.simulated(regression, observed, n, known, phi - away, scale)

    return NoisyLikelihood(observed, (), (), simulate, logp)


def _line_of(noisy: NoisyStatistic, observed: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Coefficients (G * V, *C, F) about which the scores of a regression with a link are taken for linear."""
    regression, F = noisy.regression, noisy.anchor.shape[-1]
    assert regression is not None
    moments = regression.matrix(observed, known).reshape(-1, regression.size, regression.size)
    own = moments[:, :F, F], moments[:, :F, :F], noisy.noise.standard_deviation, noisy.anchor.reshape(-1, F)
    return straightened(regression.scores, *own).reshape(noisy.anchor.shape)


def _plug_in_totals(noisy: NoisyStatistic, parameters: list[Variable]) -> NoisyLikelihood:
    """Totals of rows as if they were exact."""
    binomial = noisy.distribution == "Binomial"
    observed = np.maximum(noisy.values, 0.0)

    def logp(value: Variable, *given: Variable) -> Variable:
        s = value[..., 0]
        if not binomial:
            return s * pt.log(pt.maximum(given[0], 1e-300)) - given[0]
        trials, p = given
        s, p = pt.minimum(s, trials), pt.clip(p, 1e-300, 1 - 1e-16)
        return s * pt.log(p) + (trials - s) * pt.log1p(-p)

    def simulate(*given: Variable) -> Variable:
        law = laws.Count(*given[:2]) if binomial else laws.Rates(given[0][..., None])
        return laws.simulated(law, None, noisy.noisy.shape)

    return NoisyLikelihood(observed, (), (), simulate, logp)
