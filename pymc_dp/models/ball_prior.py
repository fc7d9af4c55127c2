"""Coefficients whose prior is a normal distribution truncated to a ball; why it must be truncated is said in ``bounded_priors``."""

from math import inf, isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.distribution import Distribution, _support_point
from pymc.distributions.shape_utils import convert_shape
from pymc.distributions.transforms import Transform, _default_transform
from pymc.logprob.abstract import _logprob
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.models.likelihood_rv import variable_of
from pymc_dp.privacy.accounting import Refusal


class BallNormalRV(RandomVariable):
    """Random variable of ``BallNormal``: precision, radius and length are plain numbers that are part of the op."""

    name = "ball_normal"
    signature = "->(p)"
    dtype = "floatX"
    __props__ = ("name", "signature", "dtype", "inplace", "precision", "radius", "length")
    _print_name = ("BallNormal", "\\operatorname{BallNormal}")

    def __init__(self, precision: float = 1.0, radius: float = 1.0, length: int = 1, **kwargs: Any) -> None:
        self.precision, self.radius, self.length = float(precision), float(radius), int(length)
        super().__init__(**kwargs)

    @property
    def mass(self) -> float:
        """The probability of the ball under the whole normal distribution: that precision radius^2 is not exceeded by a chi-square."""
        from scipy.special import gammainc

        return float(gammainc(self.length / 2, self.precision * self.radius**2 / 2))

    def _supp_shape_from_params(self, dist_params: Any, param_shapes: Any = None) -> tuple[int]:
        return (self.length,)

    def rng_fn(self, rng: Any, size: Any = None) -> np.ndarray:
        """A uniform direction, as far out as the inverse of the distribution function of the radius says."""
        from scipy.special import gammaincinv

        shape = () if size is None else tuple(size)
        direction = rng.standard_normal((*shape, self.length))
        direction /= np.sqrt((direction**2).sum(axis=-1, keepdims=True))
        out = np.sqrt(2 * gammaincinv(self.length / 2, self.mass * rng.random((*shape, 1))) / self.precision)
        inward = 1 - (self.length + 8) * 2.0**-52  # more than rounding can have lengthened it
        return direction * np.minimum(out, self.radius) * inward


class BallNormal(Distribution):
    """Coefficients with independent normal priors, Normal(0, 1/precision), truncated to a ball and renormalised.

    With ||w|| <= radius, covariates and responses bounded, the likelihood of a linear regression is bounded, and a posterior draw is
    private by itself (ZRD16's linear regression; docs/theory.md). Its limits are ``variable.owner.op.radius`` and ``.precision``.
    With radius = 10 / sqrt(precision), as in that paper, the truncation is too far out to be seen.

    Parameters
    ----------
    precision : float
        The precision of every coefficient before truncation; a plain number, public.
    radius : float
        The radius of the ball; a plain number, public.
    shape or dims
        The last axis is that of the P coefficients that are in one ball together.

    Examples
    --------
    >>> with pm.Model():
    ...     w = pmdp.BallNormal("w", 100.0, 1.0, shape=3)
    >>> w.owner.op.radius, w.owner.op.precision
    (1.0, 100.0)
    """

    rv_type = BallNormalRV

    @staticmethod
    def rv_op(*, op: BallNormalRV, size: Any = None, rng: Any = None) -> Any:
        """The random variable, without a name."""
        return variable_of(op, size=size, rng=rng)

    @classmethod
    def dist(cls, precision: object, radius: object, *, shape: Any = None, **kwargs: Any) -> Any:
        """The random variable, without a name and without a model, once its arguments are checked."""
        precision, radius = _positive("precision", precision), _positive("radius", radius)
        lengths = convert_shape(shape)
        if not lengths:
            raise Refusal("How many coefficients there are must be said. Write for example shape=3, or dims.")
        op = BallNormalRV(precision, radius, _length(lengths[-1]))
        if not op.mass > 1e-290:
            raise Refusal("Next to nothing of this normal distribution lies within the ball. Write a larger radius, or more precision.")
        return super().dist([], op=op, shape=shape, **kwargs)


@_logprob.register(BallNormalRV)
def _ball_normal_logp(op: Any, values: Any, rng: Any, size: Any, **kwargs: Any) -> Any:
    (value,) = values
    square = pt.sum(value**2, axis=-1)
    constant = op.length / 2 * np.log(op.precision / (2 * np.pi)) - np.log(op.mass)
    return pt.switch(pt.le(pt.sqrt(square), op.radius), constant - op.precision / 2 * square, -inf)


@_support_point.register(BallNormalRV)
def _ball_normal_point(op: Any, rv: Any, *inputs: Any) -> Any:
    return pt.zeros(rv.shape)


class BallTransform(Transform):
    """A map from all of space into the open ball: along each direction radius tanh(distance), which for P = 1 is the logistic function."""

    name = "ball"
    ndim_supp = 1
    __props__ = ("radius", "length")

    def __init__(self, radius: float, length: int) -> None:
        self.radius, self.length = radius, length

    def forward(self, value: Any, *inputs: Any) -> Any:
        """The point that is mapped to a value: along each direction artanh(distance / radius)."""
        near, square, distance = _distance(value / self.radius)
        return value / self.radius * pt.switch(near, 1 + square / 3, pt.arctanh(distance) / distance)

    def backward(self, value: Any, *inputs: Any) -> Any:
        """The value at a point, rounded inward so that rounding does not lead out of the ball."""
        near, square, distance = _distance(value)
        inward = 1 - (self.length + 8) * 2.0**-52
        return self.radius * inward * value * pt.switch(near, 1 - square / 3, pt.tanh(distance) / distance)

    def log_jac_det(self, value: Any, *inputs: Any) -> Any:
        """The logarithm of the Jacobian of ``backward``: (tanh(r) / r)^(P-1) across, and 1 / cosh(r)^2 along the direction."""
        near, square, distance = (part[..., 0] for part in _distance(value))
        across = pt.switch(near, -square / 3, pt.log(pt.tanh(distance) / distance))
        along = pt.switch(near, -square, 2 * (np.log(2) - distance - pt.softplus(-2 * distance)))
        return self.length * np.log(self.radius) + (self.length - 1) * across + along


def _distance(value: Any) -> tuple[Any, Any, Any]:
    """Whether a point is so near the middle that a series is exact; its squared distance, and its distance where it is not near.

    The root has no derivative at 0, so it is taken of 1 there.
    """
    square = pt.sum(value**2, axis=-1, keepdims=True)
    near = pt.lt(square, 1e-8)
    return near, square, pt.sqrt(pt.switch(near, 1.0, square))


@_default_transform.register(BallNormalRV)
def _ball_normal_transform(op: Any, rv: Any) -> Transform:
    return BallTransform(op.radius, op.length)


def _length(value: Any) -> int:
    if isinstance(value, Integral):
        return int(value)
    if hasattr(value, "get_value"):  # of a dimension of the model
        return int(value.get_value())
    return int(pt.as_tensor_variable(value).eval(mode="FAST_COMPILE"))


def _positive(name: str, value: Any) -> float:
    if isinstance(value, Real) and not isinstance(value, bool) and isfinite(value) and float(value) > 0:
        return float(value)
    raise Refusal(f"{name} must be a positive finite number, not an unknown and not an array. Write for example {name}=1.0.")
