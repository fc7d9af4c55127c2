"""Priors of numbers of records per cell that are not public, and the coordinates in which a sampler draws them."""

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

NEWTON = 12
"""Steps to where a rate lies among a sampler's coordinates."""


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


def any_shares(alpha: Variable, near: Variable, size: Variable) -> Variable:
    """Shares of which all are as likely, drawn."""
    return pm.Dirichlet.dist(alpha, size=size)


def flat_shares(value: Variable, alpha: Variable, near: Variable) -> Variable:
    """Log-density (G,) of a flat Dirichlet law: see ``shares_about``."""
    return pt.full(value.shape[:1], lgamma(alpha.type.shape[-1]))


def shares_about(value: Variable, alpha: Variable, near: Variable) -> Variable:
    """Log-density (G,) of a Dirichlet law. PyMC's own looks at every share and takes two seconds to compile."""
    constant = pt.gammaln(alpha.sum(axis=-1)) - pt.gammaln(alpha).sum(axis=-1)
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
        return (logits_of(value) - near[..., 0]) / near[..., 1]

    def backward(self, value: Variable, *inputs: Variable) -> Variable:
        """Shares, each of which takes its part of what those before it leave."""
        like = pt.zeros((value.shape[0], value.type.shape[-1] + 1))
        return Kernel(shares, (2,), 0, shares_back)(value, inputs[-2], like)

    def log_jac_det(self, value: Variable, *inputs: Variable) -> Variable:
        """See ``laws.shares.shares_volume``."""
        return Kernel(shares_volume, (0,))(value, inputs[-2], return_list=True)[0]


def logits_of(shares):
    """Logits (..., V - 1) of shares (..., V): 0 where all are alike."""
    V = shares.shape[-1] if isinstance(shares, np.ndarray) else shares.type.shape[-1]
    log = np.log if isinstance(shares, np.ndarray) else pt.log
    left = (shares[..., None] * np.tri(V, V - 1, -1)).sum(axis=-2)
    return log(shares[..., :-1]) - log(left) + np.log(np.arange(V - 1.0, 0, -1))
