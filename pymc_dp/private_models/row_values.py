"""Rows with a value each, of any distribution of real numbers: the exact values are unknowns of the private model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, pi, sqrt

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import _default_transform
from pymc.logprob.transforms import Transform
from pytensor.graph.basic import Variable

from pymc_dp.laws.kernel import Tensor
from pymc_dp.models.binned import support_of
from pymc_dp.models.spec import Likelihood
from pymc_dp.privacy.guard import quiet
from pymc_dp.private_models.likelihood import LATENT, NoisyLikelihood
from pymc_dp.releases.noisy_statistic import NoisyStatistic

STEPS = 6
"""Newton's steps to invert ``laplace_of_normal``."""


@dataclass(frozen=True)
class Coordinates:
    """How samplers see exact values: transformed to the whole line, less a centre and divided by a unit, both known for every row.

    Under Laplace noise the line is bent besides, so that the noise alone would make what samplers see standard normal. Its density has a
    kink at what was released, in every row, which cost a sampler sixteen times as many steps.

    Attributes
    ----------
    transform : Transform or None
        Of values to the whole line.
    start : ndarray
        Where chains start: (rows, *C) values in the user's units, near what was released.
    given : ndarray
        Centres, units and whether the line is bent, (3, rows, *C). The unit is that of the noise there. Elsewhere it is at most 1, so that
        jitter is small where there is little noise.
    """

    transform: Transform | None
    start: np.ndarray
    given: np.ndarray

    def seen(self, values: Tensor, given: Tensor) -> Tensor:
        """Values as samplers see them."""
        in_units = ((values if self.transform is None else self.transform.forward(values)) - given[0]) / given[1]
        return pt.switch(given[2] > 0, normal_of_laplace(in_units), in_units)

    def values(self, seen: Tensor, given: Tensor) -> Tensor:
        """The inverse of ``seen``."""
        on_line = _on_line(seen, given)
        return on_line if self.transform is None else self.transform.backward(on_line)

    def log_slope(self, seen: Tensor, given: Tensor) -> Tensor:
        """The logarithm of the derivative of ``values``."""
        own = 0.0 if self.transform is None else self.transform.log_jac_det(_on_line(seen, given))
        return pt.log(given[1]) + own + pt.switch(given[2] > 0, log(2 / pi) / 2 - pt.log(_tail(_size(seen))), 0.0)


def _on_line(seen: Tensor, given: Tensor) -> Tensor:
    return given[0] + given[1] * pt.switch(given[2] > 0, laplace_of_normal(seen), seen)


def laplace_of_normal(x: Tensor) -> Tensor:
    """The number below which a Laplace variable of scale 1 is as often as a standard normal variable is below x."""
    size = _size(x)
    above = size**2 / 2 - pt.log(_tail(size))
    return pt.switch(x < 0, -above, above)


def normal_of_laplace(s: Tensor) -> Tensor:
    """The inverse of ``laplace_of_normal``, by Newton's steps from a normal variable as far out; there is no derivative."""
    size = _size(s)
    x = pt.sqrt(2 * size)
    for _ in range(STEPS):
        tail = _tail(x)
        x = x - (x**2 / 2 - pt.log(tail) - size) * tail * sqrt(pi / 2)
    return pt.switch(s < 0, -x, x)


def _size(x: Tensor) -> Tensor:
    """The absolute value, with a derivative at 0."""
    return pt.switch(x < 0, -x, x)


def _tail(size: Tensor) -> Tensor:
    """How often a standard normal variable is further out, either way, over exp(-size²/2)."""
    return pt.erfcx(size / sqrt(2))


def coordinates(random: Variable, noisy: NoisyStatistic) -> Coordinates:
    """Coordinates for values of this distribution of which so much is released."""
    transform, domain = _default_transform(random.owner.op, random), noisy.domain
    least, largest = support_of(random)
    lower, upper = max(domain.lower, least), min(domain.upper, largest)
    noise = min(noisy.noise.standard_deviation * domain.half_width, (upper - lower) / 4)
    start = np.clip(domain.middle + domain.half_width * noisy.values[..., 0], lower + noise, upper - noise)
    value = pt.vector(dtype="float64")
    on_line = value if transform is None else transform.forward(value)
    centre, slope = pm.compile([value], [on_line, pt.grad(on_line.sum(), value)])(start.ravel())
    unit, bent = np.minimum(noise * np.abs(slope), 1.0), np.zeros(centre.shape)
    if not noisy.noise.gaussian:  # with the kink at the centre
        bent = (start == domain.middle + domain.half_width * noisy.values[..., 0]).ravel().astype(float)
        unit = np.where(bent > 0, noisy.noise.spread * domain.half_width * np.abs(slope), unit)
    return Coordinates(transform, start, np.stack([centre, unit, bent]).reshape(3, *start.shape))


def values_of_rows(
    private: pm.Model, likelihood: Likelihood, noisy: NoisyStatistic, parameters: Sequence[Variable], dims: Sequence[str | None]
) -> NoisyLikelihood:
    """Exact values that have the user's own distribution, and what is released of each: itself, clamped and scaled, with noise.

    No number is approximated: what a sampler draws besides are the values (data augmentation), in ``coordinates`` of their own.

    Parameters
    ----------
    private : pm.Model
        The model that the values are added to; it is in context.
    likelihood : Likelihood
    noisy : NoisyStatistic
        The value of every row, (rows, *C, 1).
    parameters : sequence of Variable
        On the rows, (rows, *C) each.
    dims : sequence of str or None
        Of the values.
    """
    again, name, many = _distribution(likelihood), f"{noisy.variable}{LATENT}", len(parameters)
    seen_as = coordinates(again(*parameters), noisy)

    def density(seen: Variable, *arguments: Variable) -> Variable:
        *own, given = arguments
        return pm.logp(again(*own), seen_as.values(seen, given)) + seen_as.log_slope(seen, given)

    def drawn(*arguments: Variable) -> Variable:
        *own, given, _ = arguments
        return seen_as.seen(again(*own), given)

    given = pm.Data(f"{name}_given", seen_as.given)
    latent = pm.CustomDist(
        name, *parameters, given, logp=density, dist=drawn, dims=tuple(dims), initval=np.zeros_like(seen_as.start),
        default_transform=None, signature=f"{','.join(['()'] * many)},(three)->()", dtype="float64",
    )  # fmt: skip

    def logp(value: Variable, *arguments: Variable) -> Variable:
        noise = noisy.noise
        law = pm.Normal.dist(0, noise.standard_deviation) if noise.gaussian else pm.Laplace.dist(0, noise.spread)
        return pm.logp(law, value[..., 0] - scaled(seen_as.values(*arguments[many : many + 2]), noisy))

    def simulate(*arguments: Variable) -> Variable:
        return scaled(seen_as.values(*arguments[many : many + 2]), noisy)[..., None] + noisy.noise.simulated(noisy.noisy.shape)

    return NoisyLikelihood(noisy.values, (), (latent, given), simulate, logp)


def plain_values(likelihood: Likelihood, noisy: NoisyStatistic, parameters: Sequence[Variable]) -> NoisyLikelihood:
    """The noisy values as if they were exact, moved between the bounds: no nearer to them than the noise reaches."""
    again, many = _distribution(likelihood), len(parameters)
    start = coordinates(again(*parameters), noisy).start

    def logp(value: Variable, *arguments: Variable) -> Variable:
        return pm.logp(again(*arguments[:many]), noisy.domain.middle + noisy.domain.half_width * value[..., 0])

    def simulate(*arguments: Variable) -> Variable:
        return scaled(again(*arguments[:many]), noisy)[..., None]

    return NoisyLikelihood(((start - noisy.domain.middle) / noisy.domain.half_width)[..., None], (), (), simulate, logp)


def scaled(values: Tensor, noisy: NoisyStatistic) -> Tensor:
    """Values in units of what is released: -1 at the lower bound and 1 at the upper one, where those beyond are."""
    u = (values - noisy.domain.middle) / noisy.domain.half_width
    return pt.clip(u, -1.0, 1.0) if noisy.domain.clamps else u


def _distribution(likelihood: Likelihood) -> Callable[..., Variable]:
    """The user's own distribution, from its parameters."""

    def again(*parameters: Variable) -> Variable:
        assert likelihood.again is not None
        with quiet():  # operations that are made anew warn
            return likelihood.again(*parameters)

    return again
