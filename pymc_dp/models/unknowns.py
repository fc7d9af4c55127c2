"""The free variables of a model, and the supports of their distributions.

Supports are read from the distributions, never guessed: what is not known is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import pymc as pm
from pymc.distributions.transforms import Transform
from pymc.distributions.truncated import TruncatedRV
from pytensor.graph.basic import Variable

from pymc_dp.models.ball_prior import BallNormalRV
from pymc_dp.models.bounded_priors import TrimmedBetaRV, TrimmedDirichletRV
from pymc_dp.models.structure import constant_value, untruncated
from pymc_dp.privacy.accounting import Refusal


@dataclass(frozen=True)
class Unknown:
    """A free variable of the model and where its values lie.

    Attributes
    ----------
    variable : Variable
        The model's.
    name : str
    shape : tuple of int
    lower, upper : (size,) ndarray
        Its support; infinite where it has no end.
    radius : float
        The largest Euclidean norm of all its entries; infinite if none is known.
    transform : Transform or None
        Where its prior was cut off, what keeps a chain within these ends.
    """

    variable: Variable
    name: str
    shape: tuple[int, ...]
    lower: np.ndarray
    upper: np.ndarray
    radius: float = np.inf
    transform: Transform | None = None

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return prod(self.shape)

    @property
    def finite(self) -> bool:
        """Whether its support is."""
        return bool(np.isfinite(self.lower).all() and np.isfinite(self.upper).all())


def by_name(unknowns: Sequence[Unknown], numbers: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers (..., P) as one array per unknown, in its own shape."""
    parts = np.split(numbers, np.cumsum([unknown.size for unknown in unknowns])[:-1], axis=-1)
    return {unknown.name: part.reshape((*numbers.shape[:-1], *unknown.shape)) for unknown, part in zip(unknowns, parts, strict=True)}


UNIT, REAL, POSITIVE = (0.0, 1.0), (-np.inf, np.inf), (0.0, np.inf)
SUPPORTS: dict[str, tuple[float, float]] = {
    "Beta": UNIT, "Kumaraswamy": UNIT, "Dirichlet": UNIT, "Exponential": POSITIVE, "Gamma": POSITIVE, "InverseGamma": POSITIVE,
    "HalfNormal": POSITIVE, "HalfCauchy": POSITIVE, "HalfStudentT": POSITIVE, "LogNormal": POSITIVE, "Weibull": POSITIVE,
    "Wald": POSITIVE, "Normal": REAL, "StudentT": REAL, "Cauchy": REAL, "Laplace": REAL, "Logistic": REAL,
    "Gumbel": REAL, "SkewNormal": REAL, "AsymmetricLaplace": REAL, "ExGaussian": REAL, "Flat": REAL,
}  # fmt: skip
"""Between which values distributions lie whatever their parameters."""
LIMITED = {"Uniform": (0, 1), "TruncatedNormal": (2, 3), "Triangular": (0, 2)}
"""Which parameters are the ends of a distribution."""


def _known(variable: Variable) -> np.ndarray | None:
    """The value of a constant expression."""
    value = constant_value(variable)
    return None if value is None else np.asarray(value, dtype=float)


def support_of(random: Variable) -> tuple[np.ndarray, np.ndarray] | None:
    """The support of a random variable, as far as it is known."""
    operation = random.owner.op
    if isinstance(operation, TrimmedBetaRV):
        return np.asarray(operation.limits[0]), np.asarray(operation.limits[1])
    if isinstance(operation, TrimmedDirichletRV):
        return np.asarray(operation.smallest), np.asarray(1 - (random.type.shape[-1] - 1) * operation.smallest)
    if isinstance(operation, BallNormalRV):
        return np.asarray(-operation.radius), np.asarray(operation.radius)
    if isinstance(operation, TruncatedRV):
        base, lower, upper = untruncated(random)
        inner = support_of(base) or (np.asarray(-np.inf), np.asarray(np.inf))
        limits = [_known(end) for end in (lower, upper)]
        low, high = (np.asarray(end) if limit is None else limit for end, limit in zip(inner, limits, strict=True))
        return np.maximum(low, inner[0]), np.minimum(high, inner[1])
    for name, pair in SUPPORTS.items():
        if type(operation) is getattr(pm, name).rv_type:
            return np.asarray(pair[0]), np.asarray(pair[1])
    for name, (first, second) in LIMITED.items():
        if type(operation) is getattr(pm, name).rv_type:
            parameters = operation.dist_params(random.owner)
            ends = [_known(parameters[place]) for place in (first, second)]
            low, high = (np.asarray(end) if limit is None else limit for end, limit in zip(REAL, ends, strict=True))
            return low, high
    return None


def shape_of_unknown(variable: Variable) -> tuple[int, ...]:
    """The shape of a free variable, or a refusal where it is not fixed."""
    shape = _known(variable.owner.inputs[0].shape)
    if shape is None:
        raise Refusal(f"The shape of {variable.owner.op.name} is not fixed. Give it dims or a shape.")
    return tuple(int(length) for length in shape)


def unknown_of(variable: Variable) -> Unknown:
    """A free variable with its support, or a refusal."""
    name, random = variable.owner.op.name, variable.owner.inputs[0]
    full = shape_of_unknown(variable)
    ends = support_of(random)
    if ends is None or not str(random.type.dtype).startswith("float"):
        raise Refusal(f"Where the values of {name} lie is not known, so a draw of it is not offered. Write pm.Uniform or pm.Truncated.")
    lower, upper = (np.broadcast_to(end, full).ravel().astype(float) for end in ends)
    inside = isinstance(random.owner.op, BallNormalRV) and len(full) == 1
    return Unknown(variable, name, full, lower, upper, random.owner.op.radius if inside else np.inf)
