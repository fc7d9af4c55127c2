"""The cut-offs of priors with infinite support, on request: between which values each unknown is kept.

What is drawn from then is the posterior under the model's own prior *given that every unknown lies in its interval*. The intervals come
from the priors alone, or are written down, and so are public. No privacy rests on how they were computed: whatever box they make, a
record's log-likelihood is bounded over that box.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pymc as pm
from pymc.distributions.transforms import LogTransform, Transform, _default_transform, logodds
from pymc.distributions.truncated import TruncatedRV
from pymc.logprob.transforms import IntervalTransform
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.models.ball_prior import BallNormalRV
from pymc_dp.models.bounded_priors import TrimmedBetaRV, TrimmedDirichletRV
from pymc_dp.models.elementwise_intervals import Interval
from pymc_dp.models.intervals import interval
from pymc_dp.models.structure import SKIPPED, Unreduced, constant_value, substitute, untruncated
from pymc_dp.models.unknowns import Unknown, shape_of_unknown, support_of
from pymc_dp.privacy.accounting import Refusal

TAIL = 0.001
"""The probability that is cut off in each tail of a prior."""
MONOTONE = (
    "Beta", "Cauchy", "Exponential", "Gamma", "Gumbel", "HalfCauchy", "HalfNormal", "HalfStudentT", "InverseGamma", "Kumaraswamy",
    "Laplace", "Logistic", "LogNormal", "Moyal", "Normal", "Pareto", "StudentT", "Triangular", "Uniform", "Weibull",
)  # fmt: skip
"""Distributions whose quantiles, at any one probability, never turn as one parameter grows and the others stay: so between bounds of all
parameters a quantile is least and largest where each is at one of its bounds. Of families of location and scale the quantile is linear in
both; Beta, Gamma, InverseGamma, Pareto and Triangular are ordered by each parameter (their densities' ratios are monotone, or their
distribution functions are); the absolute value of Student's t shrinks as its degrees of freedom grow; of LogNormal, Weibull and Kumaraswamy
quantiles are closed forms that are monotone in each."""
MADE_FOR_IT = (TrimmedBetaRV, TrimmedDirichletRV, BallNormalRV)
"""Priors that end where a draw needs it."""
REPLACED = (LogTransform, IntervalTransform, type(logodds))
"""Transforms of one number, in place of which a chain can keep it in an interval."""


def within_intervals(variables: Sequence[Variable], by_hand: Mapping[str, tuple[float, float]]) -> tuple[Unknown, ...]:
    """Every unknown with the interval that it is cut off to: what was written for it, or else the quantiles of its prior.

    Parameters
    ----------
    variables : sequence of Variable
        The model's free variables, each after those that its prior rests on.
    by_hand : mapping of str to (float, float)

    Raises
    ------
    Refusal
        Where a prior has no quantiles that are known, or a transform keeps an unknown in an order; and where ``by_hand`` names what is no
        unknown.
    """
    names = [variable.owner.op.name for variable in variables]
    if strange := [name for name in by_hand if name not in names]:
        raise Refusal(f"truncate names {strange[0]}, which is no unknown. Write {' or '.join(names)}, or leave it out.")
    intervals: dict[Variable, Interval] = {}
    return tuple(_within(variable, by_hand.get(variable.owner.op.name), intervals) for variable in variables)


def _within(variable: Variable, pair: tuple[float, float] | None, intervals: dict[Variable, Interval]) -> Unknown:
    """One unknown, whose interval is added to those that were found."""
    name, random = variable.owner.op.name, variable.owner.inputs[0]
    shape = shape_of_unknown(variable)
    if not str(random.type.dtype).startswith("float"):
        raise Refusal(f"{name} is a whole number, so a draw of it is not offered. Write it as a real number, or leave it out of the model.")
    support = support_of(random)
    if isinstance(random.owner.op, MADE_FOR_IT):
        if pair is not None:
            raise Refusal(f"The prior of {name} has ends of its own. Leave {name} out of truncate.")
        assert support is not None
        low, high = support
    elif type(random.owner.op) is pm.Dirichlet.rv_type:
        raise Refusal(f"{name} is bound by more than an interval. Write pymc_dp.TrimmedDirichlet({name!r}, a, smallest=0.01) in its place.")
    elif pair is not None:
        ends = support or (np.asarray(-np.inf), np.asarray(np.inf))
        low, high = np.maximum(pair[0], ends[0]), np.minimum(pair[1], ends[1])
    else:
        low, high = _quantiles(name, random, intervals)
        if _is_truncated(random) and support is not None:  # ends that were written stay
            low, high = (np.where(np.isfinite(end), end, cut) for end, cut in zip(_written(random), (low, high), strict=True))
    low, high = (np.broadcast_to(np.asarray(end, dtype=float), shape) for end in (low, high))
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise Refusal(f"No interval of {name} is left by its prior. Write one within its support: truncate={{{name!r}: (lower, upper)}}.")
    intervals[variable] = low, high
    inside = isinstance(random.owner.op, BallNormalRV) and len(shape) == 1
    transform = _keeping(name, variable, low, high)
    return Unknown(variable, name, shape, low.ravel(), high.ravel(), random.owner.op.radius if inside else np.inf, transform)


def _is_truncated(random: Variable) -> bool:
    return isinstance(random.owner.op, TruncatedRV) or type(random.owner.op) is pm.TruncatedNormal.rv_type


def _written(random: Variable) -> tuple[np.ndarray, np.ndarray]:
    """The ends that ``pm.Truncated`` was given, where they are numbers; infinite elsewhere."""
    everything = np.asarray(-np.inf), np.asarray(np.inf)
    base = untruncated(random)[0] if isinstance(random.owner.op, TruncatedRV) else None
    whole, inner = support_of(random), everything if base is None else support_of(base) or everything
    assert whole is not None
    low, high = whole
    return np.where(low > inner[0], low, -np.inf), np.where(high < inner[1], high, np.inf)


def _quantiles(name: str, random: Variable, intervals: Mapping[Variable, Interval]) -> Interval:
    """The least and the largest quantiles of a prior, over the intervals of all that its parameters rest on."""
    base = untruncated(random)[0] if isinstance(random.owner.op, TruncatedRV) else random
    by_hand = f"Write its interval: truncate={{{name!r}: (lower, upper)}}."
    kinds = [pm.TruncatedNormal, *(getattr(pm, distribution) for distribution in MONOTONE)]
    if base.owner is None or not any(type(base.owner.op) is kind.rv_type for kind in kinds):
        raise Refusal(f"The quantiles of the prior of {name} are not known. {by_hand}")
    parameters = base.owner.op.dist_params(base.owner)
    if _is_truncated(random):
        if any(constant_value(parameter) is None for parameter in parameters):
            raise Refusal(f"The prior of {name} is truncated, and its parameters are unknown. {by_hand}")
        ends = [_quantile(random, None, share) for share in (TAIL, 1 - TAIL)]
        return ends[0], ends[1]
    try:
        bounds = [interval(substitute(parameter, {}, SKIPPED), intervals) for parameter in parameters]
    except Unreduced:
        raise Refusal(f"The prior of {name} rests on what has no known bounds. {by_hand}") from None
    fixed = all((low == high).all() for low, high in bounds)
    corners = [[end for end, _ in bounds]] if fixed else [list(corner) for corner in product(*bounds)]
    low, high = (np.stack(np.broadcast_arrays(*(_quantile(base, c, share) for c in corners))) for share in (TAIL, 1 - TAIL))
    return low.min(axis=0), high.max(axis=0)


def _quantile(random: Variable, parameters: Sequence[np.ndarray] | None, share: Any) -> np.ndarray:
    """The value below which a share of a distribution lies, at these parameters or its own."""
    operation = random.owner.op
    plain = random
    if parameters is not None:
        make = operation if isinstance(operation, RandomVariable) else operation.rv_op  # of others, PyMC's own way to make one
        plain = make(*[np.asarray(parameter, dtype=float) for parameter in parameters])
    if isinstance(operation, TruncatedRV):
        plain, *limits = untruncated(random)
        below = [np.exp(pm.logcdf(plain, limit, warn_rvs=False).eval(mode="FAST_COMPILE")) for limit in limits]
        share = below[0] + share * (below[1] - below[0])
    with np.errstate(all="ignore"):
        return np.asarray(pm.icdf(plain, share, warn_rvs=False).eval(mode="FAST_COMPILE"), dtype=float)


def has_own_transform(variable: Variable) -> bool:
    """Whether an unknown has another transform than PyMC's default for its prior, such as one that keeps an order, or another interval."""
    random = variable.owner.inputs[0]
    own, usual = variable.owner.op.transform, _default_transform(random.owner.op, random)
    return type(own) is not type(usual) or _code_of_ends(own) != _code_of_ends(usual)


def _code_of_ends(transform: Transform | None) -> object:
    """The code that computes between which ends a transform keeps a variable; None where it computes none."""
    return getattr(getattr(transform, "args_fn", None), "__code__", None)


def is_constrained(variable: Variable) -> bool:
    """Whether the transform of an unknown may constrain it, to an order for example: draws from its prior do not know of that."""
    return variable.owner.op.transform is not None and has_own_transform(variable)


def _keeping(name: str, variable: Variable, low: np.ndarray, high: np.ndarray) -> Transform | None:
    """What keeps a chain within an interval, in place of the transform that the model has; None where that one does."""
    random, transform = variable.owner.inputs[0], variable.owner.op.transform
    if has_own_transform(variable):
        raise Refusal(
            f"The transform of {name} says more of it than its prior does, such as an order, and an interval would end that. Leave it out"
            " and sort what was drawn."
        )
    if isinstance(random.owner.op, MADE_FOR_IT):
        return None
    if getattr(random.owner.op, "ndim_supp", 1) or not (transform is None or isinstance(transform, REPLACED)):
        raise Refusal(f"{name} is bound by more than an interval, so its prior is not cut off. Write numbers with priors of their own.")
    ends = np.array(low), np.array(high)
    return IntervalTransform(lambda *_: ends)
