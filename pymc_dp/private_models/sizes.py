"""Numbers of records per cell that are not public: unknowns of the private model, with flat priors.

All numbers are as likely beforehand. What released values say of them decides only where a sampler starts and how long its steps are. Where
many public cells have few records each, the means of shares over these cells are what is as likely: see ``_means_of_shares``.
"""

from collections.abc import Callable
from math import lgamma
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.continuous import PositiveContinuous, UnitContinuous
from pymc.logprob.transforms import Transform
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.laws.kernel import LEAST, Kernel
from pymc_dp.laws.shares import shares, shares_back, shares_volume
from pymc_dp.releases.noisy_statistic import NoisyStatistic

SIZE = "_size"
"""Ending of the names of unknown numbers of records per cell, which are the model's own."""

MEAN = f"{SIZE}_mean"
"""Ending of the names of the means of shares over public cells."""
MANY_CELLS = 5
"""From so many public cells on their shares have unknown means."""
SMALL = 0.25
"""Noise, times the root of the number of public cells, in units of what a private cell holds, that flat priors may be combined with."""

WIDEST_STEP = 1.5
"""The longest step in the logarithm of a size, or in the logit of a share: about the standard deviation if all shares are as likely."""
NEWTON = 12
"""Steps to where a rate lies among a sampler's coordinates."""
FAR_BELOW = 30.0
"""A normal variable above 0 whose middle is so many standard deviations below 0, or more, is taken for an exponential one."""


# ---------- flat priors
class FromStartRV(RandomVariable):
    """A random variable whose parameters say where a sampler starts, and in which units it steps.

    They are parameters because PyMC copies no model that has an ``initval``.
    """

    signature = "(),()->()"
    dtype = "floatX"


def _start(random: Variable, size: Variable, start: Variable, *_: Variable) -> Variable:
    """The support point of ``Sizes``, ``Present`` and ``Kept``: where a sampler starts."""
    return pt.full(random.shape, start)


class SizesRV(FromStartRV):
    """Random variable of ``Sizes``: it has no draws, as ``pm.HalfFlat`` has none."""

    name = "sizes"
    _print_name = ("Sizes", "\\operatorname{Sizes}")

    @classmethod
    def rng_fn(cls, *args: object) -> np.ndarray:
        """Refuse to draw: a prior of which every number of records is as likely is improper."""
        raise NotImplementedError("Numbers of records that nobody knows have no prior draws. Write var_names=[...] with other unknowns.")


class Sizes(PositiveContinuous):
    """Numbers of records, of which all are as likely."""

    rv_op = SizesRV()
    support_point = staticmethod(_start)

    @staticmethod
    def logp(value: Variable, start: Variable, unit: Variable) -> Variable:
        """Flat above 0, and improper."""
        return pt.switch(pt.lt(value, 0), -np.inf, pt.zeros_like(value))


class PresentRV(RandomVariable):
    """Random variable of ``Present``."""

    name = "present"
    signature = "(),(),()->()"
    dtype = "floatX"
    _print_name = ("Present", "\\operatorname{Present}")

    @classmethod
    def rng_fn(cls, rng: Any, start: Any, most: Any, cells: Any, size: Any) -> np.ndarray:
        """Draw how many values there are, of which all numbers that add up to ``most`` or less are as likely; then rates given these."""
        shape, V = np.shape(start) if size is None else tuple(size), int(np.max(cells))
        most = np.broadcast_to(most, shape).reshape(-1, V, *shape[1:])[:, 0]
        share = rng.dirichlet(np.ones(V + 1), size=most.shape)
        numbers = rng.multinomial(most.astype(np.int64), share)[..., :V]
        return rng.gamma(np.moveaxis(numbers, -1, 1).reshape(shape) + 1.0)


class Present(PositiveContinuous):
    """Rates about which numbers of values vary that are not left out; ``cells`` of them, one after the other, are of one public number.

    Numbers of values are Poisson numbers about these, given that they add up to ``most`` or less. The density of rates for which all such
    numbers are as likely is the probability that Poisson numbers about them add up to so many, and what the law of the counts is divided by
    is the same. Both are left out (``laws.at_most``), so that the density is flat.
    """

    rv_op = PresentRV()
    support_point = staticmethod(_start)

    @staticmethod
    def logp(value: Variable, start: Variable, most: Variable, cells: Variable) -> Variable:
        """Flat above 0."""
        return pt.switch(pt.lt(value, 0), -np.inf, pt.zeros_like(value))


class KeptRV(FromStartRV):
    """Random variable of ``Kept``."""

    name = "kept"
    _print_name = ("Kept", "\\operatorname{Kept}")

    @classmethod
    def rng_fn(cls, rng: Any, start: Any, unit: Any, size: Any) -> np.ndarray:
        """Draw shares, of which every one is as likely."""
        return rng.uniform(size=np.shape(start) if size is None else size)


class Kept(UnitContinuous):
    """Shares of ``most_kept`` that are not left out, of which all are as likely."""

    rv_op = KeptRV()
    support_point = staticmethod(_start)

    @staticmethod
    def logp(value: Variable, start: Variable, unit: Variable) -> Variable:
        """Flat on (0, 1)."""
        return pt.switch(pt.lt(value, 0) | pt.gt(value, 1), -np.inf, pt.zeros_like(value))


def _any_shares(alpha: Variable, near: Variable, size: Variable) -> Variable:
    """Shares of which all are as likely, drawn."""
    return pm.Dirichlet.dist(alpha, size=size)


def _flat_shares(value: Variable, alpha: Variable, near: Variable) -> Variable:
    """Log-density of a flat Dirichlet law. PyMC's own looks at every share and takes two seconds to compile."""
    return pt.full(value.shape[:1], lgamma(alpha.type.shape[-1]))


def _shares_about(value: Variable, alpha: Variable, near: Variable) -> Variable:
    """Log-density (G,) of a Dirichlet law whose concentrations add up to the number of shares, as those of a flat one do."""
    constant = lgamma(value.type.shape[-1]) - pt.gammaln(alpha).sum(axis=-1)
    return constant + ((alpha - 1) * pt.log(pt.maximum(value, LEAST))).sum(axis=-1)


# ---------- the coordinates of a sampler
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


class AboutMost(Transform):
    """Rates about which numbers vary that are ``most`` or less: N sigmoid(x) + (sqrt(N) + 1) softplus(x), the inputs of ``Present``.

    All rates up to N are as likely beforehand, and sqrt(N) beyond it, which has tails of about the same length on both sides here.
    """

    name = "aboutmost"
    ndim_supp = 0

    def forward(self, value: Variable, *inputs: Variable) -> Variable:
        """By Newton's steps on the logarithm, which is concave, from below."""
        most = inputs[-2]
        x = pt.log(value) - pt.log(most + pt.sqrt(most) + 1)
        for _ in range(NEWTON):
            there = self.backward(x, *inputs)
            x = x + pt.log(value / there) * there / pt.exp(self.log_jac_det(x, *inputs))
        return x

    def backward(self, value: Variable, *inputs: Variable) -> Variable:
        """The rate."""
        most = inputs[-2]
        return most * pt.sigmoid(value) + (pt.sqrt(most) + 1) * pt.softplus(value)

    def log_jac_det(self, value: Variable, *inputs: Variable) -> Variable:
        """Logarithm of the derivative of the rate."""
        most = inputs[-2]
        return pt.log(most * pt.sigmoid(-value) + pt.sqrt(most) + 1) - pt.softplus(-value)


class Shares(Transform):
    """V shares by stick breaking, from V - 1 logits, each of a share in what those before it leave: ``laws.shares.shares``.

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
        """Shares, each of which takes its part of what those before it leave."""
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


# ---------- what released values say
def guessed_sizes(noisy: NoisyStatistic) -> np.ndarray:
    """Numbers of records per cell where they are public, and otherwise what released values say of them: see ``_released_sizes``."""
    if noisy.sizes == "public":
        return noisy.n.astype(float).reshape(-1, *[1] * (noisy.noisy.ndim - 2))
    return np.maximum(_released_sizes(noisy), 1.0)


def _released_sizes(noisy: NoisyStatistic) -> np.ndarray:
    """What released values say of the numbers of records per cell (G V, 1...), or (G V, *C) where every column has its own."""
    if noisy.regression is not None:
        sizes = noisy.values[..., noisy.regression.entries.index((0, 0))]
    elif noisy.combination.size:  # the first number is that of the records, in units of its noise
        sizes = noisy.values[..., 0] / noisy.combination[..., 0, 0]
    else:
        assert noisy.family is not None
        sizes = noisy.values.sum(axis=-1) / (noisy.family.cell_sensitivity(noisy.domain).total * noisy.unit)
    return sizes if noisy.variable in noisy.left_out else sizes.mean(axis=tuple(range(1, sizes.ndim)), keepdims=True)


def _noise_of_sizes(noisy: NoisyStatistic) -> float | np.ndarray:
    """Standard deviation of the noise on the released number of records of a cell and a column; (G,) where cells differ."""
    sd = noisy.noise.standard_deviation
    if noisy.combination.size:
        return sd / noisy.combination[..., 0, 0]
    if noisy.regression is not None:
        return sd / noisy.regression.weights[noisy.regression.entries.index((0, 0))]
    assert noisy.family is not None
    return float(sd * np.sqrt(noisy.noisy.shape[-1]) / (noisy.family.cell_sensitivity(noisy.domain).total * noisy.unit))


def shares_near(noisy: NoisyStatistic, counted: bool) -> tuple[np.ndarray, np.ndarray]:
    """Shares (G, V) that released values suggest, and their logits with standard deviations (G, V - 1, 2).

    Only where a sampler starts and how far it steps rests on them.
    """
    released = _released_sizes(noisy).reshape(-1, noisy.private_cells)
    return _near(released, _noise_of_shares(noisy), noisy.n, counted)


def _noise_of_shares(noisy: NoisyStatistic) -> np.ndarray:
    """Variance (G or 1, 1) of the noise on what ``_released_sizes`` says."""
    return np.reshape(_noise_of_sizes(noisy), (-1, 1)) ** 2 / np.prod(noisy.noisy.shape[1:-1])


def _near(released: np.ndarray, variance: np.ndarray, n: np.ndarray, counted: bool) -> tuple[np.ndarray, np.ndarray]:
    """What released sizes (G, V), with a variance of their noise, suggest of shares of n (G,) records: see ``shares_near``.

    Of equally likely shares every size is nearly exponential; the noise, and what counts move about their sizes, is taken as normal, so a
    size is a normal variable above 0.
    """
    from scipy.special import log_ndtr

    typical = np.maximum(n, 1)[:, None] / released.shape[1]
    sd = np.sqrt(variance + counted * np.maximum(released, 1.0))
    middle = released / sd - sd / typical
    above = np.maximum(middle, -FAR_BELOW)
    steep = np.exp(-0.5 * above**2 - log_ndtr(above)) / np.sqrt(2 * np.pi)
    low = middle < -FAR_BELOW  # exponential, as far as it goes
    size = sd * np.where(low, -1 / np.minimum(middle, -1.0), above + steep)
    variance = np.where(low, size**2, sd**2 * (1 - steep * (above + steep)))
    after, variance_after = (np.cumsum(array[:, ::-1], axis=1)[:, -2::-1] for array in (size, variance))
    shares = size / size.sum(axis=1, keepdims=True)
    logit_variance = variance[:, :-1] / size[:, :-1] ** 2 + variance_after / after**2
    return shares, np.stack([_logits(shares), np.sqrt(logit_variance)], axis=-1)


# ---------- the unknowns of the private model
def latent_sizes(private: pm.Model, noisy: NoisyStatistic, counted: bool = False) -> tuple[tuple[Variable, ...], np.ndarray]:
    """Numbers of records per cell: unknown variables where they are not public, and what is known or guessed of them.

    With ``counted`` counts vary about the sizes, as in a table; else the sizes are those of the records.
    """
    guess = guessed_sizes(noisy)
    if noisy.sizes == "public":
        return (), guess
    if noisy.sizes == "simplex":
        return (_sizes_of_shares(private, noisy, counted),), guess
    return (_independent_sizes(private, noisy, guess, counted),), guess


def _independent_sizes(private: pm.Model, noisy: NoisyStatistic, guess: np.ndarray, counted: bool) -> Variable:
    """Sizes that are free; or where some records are left out shares of public numbers, or rates about which counts of the others vary."""
    name = noisy.variable
    dims = [f"{name}_kind", *(f"{name}{SIZE}_{axis}" for axis, length in enumerate(guess.shape[1:]) if length > 1)]
    start = guess.reshape([len(guess), *(length for length in guess.shape[1:] if length > 1)])
    for dim, length in zip(dims, start.shape, strict=True):
        private.add_coord(dim, length=length)

    def unknown(prior: type[Sizes] | type[Kept], start: np.ndarray, unit: np.ndarray, transform: Transform) -> Variable:
        """Sizes as an unknown; in coordinates of its own, but for counts and sums of ours, whose conditional Gibbs knows by PyMC's."""
        if noisy.regression is None and not noisy.combination.size:
            return prior(f"{name}{SIZE}", [start, unit], dims=dims)
        start_and_unit = np.stack([start, unit], axis=-1)
        # Data, so that another release makes the same graph.
        data = pm.Data(f"{name}{SIZE}_given", start_and_unit, shape=start_and_unit.shape)
        return prior(f"{name}{SIZE}", [data[..., 0], data[..., 1]], dims=dims, default_transform=transform)

    if noisy.sizes == "free":
        start = np.maximum(start, 1.0)
        unit = np.minimum(_noise_of_sizes(noisy) / start, WIDEST_STEP)
        return unknown(Sizes, start, unit, LogFromStart()).reshape(guess.shape)
    if counted:
        public = np.repeat(noisy.n.astype(float), noisy.private_cells).reshape(-1, *[1] * (start.ndim - 1)) + np.zeros(start.shape)
        first = np.maximum(np.minimum(start, public), 1.0)
        return Present(f"{name}{SIZE}", [first, public, noisy.private_cells], dims=dims, default_transform=AboutMost()).reshape(guess.shape)
    most = most_kept(noisy).reshape(-1, *[1] * (start.ndim - 1)) + np.zeros(start.shape)
    noise = _noise_of_sizes(noisy) / np.maximum(most, 1.0)
    least = np.clip(noise, 1e-9, 0.05)  # so near to 0 and 1 a share starts
    share = np.clip(start / np.maximum(most, 1.0), least, 1 - least)
    unit = np.minimum(noise / (share * (1 - share)), WIDEST_STEP)
    return (unknown(Kept, share, unit, LogitFromStart()) * most).reshape(guess.shape)


def most_kept(noisy: NoisyStatistic) -> np.ndarray:
    """The upper end (G V,) of numbers of records that are left when some are left out, of which ``<y>_size`` is a share.

    Numbers are whole, 0 to N, all of them as likely beforehand. An integral up to N would count N itself half; up to N + 1/2 it is the
    sum over whole numbers by the midpoint rule (docs/theory.md, "Missing values"). What weights of scores add up to is no whole number.
    """
    public = np.repeat(noisy.n.astype(float), noisy.private_cells)
    if noisy.regression is not None and noisy.regression.link:
        return noisy.regression.scores.largest_weight * public
    return np.where(public > 0, public + 0.5, 0.0)


def _sizes_of_shares(private: pm.Model, noisy: NoisyStatistic, counted: bool) -> Variable:
    """Sizes that add up to public ones. The prior is flat on the simplex of each, or about means that are: theory in docs/theory.md."""
    name, V = noisy.variable, noisy.private_cells
    private.add_coord(f"{name}_group", length=len(noisy.n))
    private.add_coord(f"{name}_kind", length=V)
    together = _is_drowned(noisy)
    alpha = V * _means_of_shares(private, noisy) if together else np.ones(V)
    dims = (f"{name}_group", f"{name}_kind")
    share = _shares(f"{name}{SIZE}", alpha, shares_near(noisy, counted), dims, _shares_about if together else _flat_shares)
    return (share * noisy.n[:, None]).reshape((-1, *[1] * (noisy.noisy.ndim - 2)))


def _shares(name: str, alpha: Any, told: tuple[np.ndarray, np.ndarray], dims: tuple[str, ...], logp: Callable[..., Variable]) -> Variable:
    """Shares (G, V) that begin where released values put them."""
    shares, near = told
    return pm.CustomDist(
        name, alpha, pm.Data(f"{name}_given", near, shape=near.shape), dist=_any_shares, logp=logp, signature="(v),(w,e)->(v)", dims=dims,
        transform=Shares(), support_point=lambda *_: pt.constant(shares),
    )  # fmt: skip


def _is_drowned(noisy: NoisyStatistic) -> bool:
    """Whether flat priors of many public cells would move the mean of their shares by much of what noise leaves unknown of it.

    With noise of standard deviation r in units of what a private cell of a public one holds, a flat prior moves a share by about
    r^2 / (1 + r^2) of its distance from the others', whatever the number G of public cells, while the noise on the mean of all is
    r / sqrt(G). So r sqrt(G) is asked to be small. It rests on what is public: numbers of records and the scale of noise.
    """
    typical = np.median(noisy.n) / noisy.private_cells
    noise = np.sqrt(np.median(_noise_of_shares(noisy)) * len(noisy.n))
    return len(noisy.n) >= MANY_CELLS and bool(noise > SMALL * typical)


def _means_of_shares(private: pm.Model, noisy: NoisyStatistic) -> Variable:
    """What shares (V,) are on the average of all public cells: all means are as likely.

    A flat prior for every cell by itself would say of many together that half of all records are in each of two private cells.
    """
    name, released = f"{noisy.variable}{MEAN}", _released_sizes(noisy).reshape(-1, noisy.private_cells)
    variance = (_noise_of_shares(noisy) + np.zeros((len(noisy.n), 1))).sum(axis=0, keepdims=True)
    told = _near(released.sum(axis=0, keepdims=True), variance, noisy.n.sum(keepdims=True), counted=True)
    private.add_coord(f"{name}_all", length=1)
    return _shares(name, np.ones(noisy.private_cells), told, (f"{name}_all", f"{noisy.variable}_kind"), _flat_shares)[0]
