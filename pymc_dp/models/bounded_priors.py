"""Priors that are truncated and renormalised away from 0 and 1, so that one record can move a log-likelihood only so far.

A draw from a posterior is private by itself where no parameter lets the probabilities of two records differ too much
(docs/theory.md). A model is written with these distributions, and with ``BallNormal`` of ``ball_prior``, as with any of PyMC's, and whoever
finds one in a graph reads its support from the op of the variable: ``variable.owner.op.smallest`` of ``TrimmedBeta`` and
``TrimmedDirichlet``, ``.radius`` and ``.precision`` of ``BallNormal``, plain numbers all of them.

Truncated, never clipped: moving draws of another distribution to the nearest end puts atoms there, whose probabilities depend on
the records by more with every record there is. And only a draw from the posterior itself has the privacy that is said here. MCMC
approximates it, and what is missing is missing from the privacy, too.
"""

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import ceil, inf, nextafter
from numbers import Integral, Real
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.distribution import Distribution, _support_point
from pymc.distributions.transforms import Transform, _default_transform, simplex
from pymc.logprob.abstract import _logprob
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.models.likelihood_rv import variable_of
from pymc_dp.privacy.accounting import Refusal, check_neighbours, exact_epsilon

GRID = 2**53
"""Smallest probabilities are given in units of its inverse, so that 1 - w is a double, too."""
ROUNDS = 1000
"""How often draws of a Dirichlet are proposed at most; more would not come to an end in reasonable time."""


def smallest_probability(epsilon: object, *, tables: int = 1, levels: int = 2, neighbours: str = "replace") -> float:
    """How far from 0 probabilities must stay, so that one draw of all of them from their posterior costs no more than epsilon.

    Where every probability of a table's rows is at least w, those of K levels are at most 1 - (K - 1) w, so log-probabilities vary by
    T = log((1 - (K - 1) w) / w) at most. A record is in one row of each table. One record more or less changes the log-likelihood by
    one log-probability a table, of range T; one in another's place changes it by a difference of two, of range 2 T. A draw costs the
    range (bounded range; FGWC16, equation 15; ZRD16 trims so, but counts one variable of a record only: docs/theory.md). So
    w = 1 / (exp(epsilon / (2 d)) + K - 1) for d tables, and twice that epsilon under ``add_remove``.

    The result is that number, computed with 60 digits and rounded *up* to a multiple of 2^-53. More is safe, since T falls as w
    grows; and multiples of 2^-53 up to 1 are doubles, differences of them, too: so 1 - (K - 1) w is computed without rounding, and
    what is promised holds for the very numbers that a distribution is truncated to.

    Parameters
    ----------
    epsilon : int, float, Decimal or Fraction
        In nats, for one joint draw of all tables.
    tables : int
        In how many tables one record is counted: the number of observed variables it has.
    levels : int
        The number of levels of the variable; 2 for a Bernoulli variable. Where variables differ, call this once for each number of
        levels, with the same ``tables``.
    neighbours : str
        ``"replace"`` or ``"add_remove"``.

    Returns
    -------
    float
        The argument ``smallest`` of ``TrimmedBeta`` and ``TrimmedDirichlet``.

    Raises
    ------
    Refusal
        When epsilon is so small that nothing is left between the ends.

    Examples
    --------
    >>> round(pmdp.smallest_probability(1.0), 4)
    0.3775
    >>> round(pmdp.smallest_probability(30, tables=17), 4)
    0.2927
    """
    epsilon, relation = exact_epsilon(epsilon), check_neighbours(neighbours)
    tables, levels = _whole("tables", tables, 1), _whole("levels", levels, 2)
    share = epsilon / (tables * (2 if relation == "replace" else 1))
    if share > 40:
        return 1 / GRID  # 1 / (exp(40) + K - 1) is less
    with localcontext(Context(prec=60)):
        w = 1 / ((Decimal(share.numerator) / share.denominator).exp() + levels - 1)
        steps = ceil(Fraction(w * GRID) + Fraction(1, 10**30))
    if steps * levels >= GRID:
        raise Refusal("epsilon is too small: all probabilities would be equal. Write a larger epsilon, or have fewer tables.")
    return steps / GRID


class _Trimmed(RandomVariable):
    """What is common to both: a smallest probability, a plain number that is part of the op."""

    dtype = "floatX"
    __props__ = ("name", "signature", "dtype", "inplace", "smallest")

    def __init__(self, smallest: float = 0.25, **kwargs: Any) -> None:
        self.smallest = float(smallest)
        super().__init__(**kwargs)


class TrimmedBetaRV(_Trimmed):
    """Random variable of ``TrimmedBeta``."""

    name = "trimmed_beta"
    signature = "(),()->()"
    _print_name = ("TrimmedBeta", "\\operatorname{TrimmedBeta}")

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return self.smallest, _below(1 - Fraction(self.smallest))

    def rng_fn(self, rng: Any, alpha: Any, beta: Any, size: Any = None) -> np.ndarray:
        """Draws by the inverse of the distribution function, of whichever of theta and 1 - theta leans to 1."""
        from scipy.special import betaincinv

        shape = np.broadcast_shapes(np.shape(alpha), np.shape(beta)) if size is None else size
        alpha, beta = np.broadcast_to(alpha, shape), np.broadcast_to(beta, shape)
        more, less = np.maximum(alpha, beta), np.minimum(alpha, beta)
        below, above = _ends(more, less, *self.limits)
        drawn = betaincinv(more, less, below + rng.random(shape) * (above - below))
        return np.clip(np.where(alpha >= beta, drawn, 1 - drawn), *self.limits)  # against what rounding has moved beyond


class TrimmedBeta(Distribution):
    """A Beta distribution truncated to [smallest, 1 - smallest] and renormalised.

    The smallest probability is ``variable.owner.op.smallest``. One record of a Bernoulli variable replaced by another costs a posterior
    draw 2 log((1 - smallest) / smallest) at most: see ``smallest_probability``.

    Parameters
    ----------
    alpha, beta : tensor_like of float
        Positive parameters as ``pm.Beta`` takes them; they may be unknown themselves.
    smallest : float
        The smallest probability, above 0 and below 1/2. It is public and must not come from the records.

    Examples
    --------
    >>> with pm.Model():
    ...     theta = pmdp.TrimmedBeta("theta", 1, 1, smallest=pmdp.smallest_probability(1.0))
    >>> round(theta.owner.op.smallest, 4)
    0.3775
    """

    rv_type = TrimmedBetaRV

    @staticmethod
    def rv_op(alpha: Any, beta: Any, *, smallest: float, size: Any = None, rng: Any = None) -> Any:
        """The random variable, without a name."""
        return variable_of(TrimmedBetaRV(smallest), alpha, beta, size=size, rng=rng)

    @classmethod
    def dist(cls, alpha: Any, beta: Any, *, smallest: object, **kwargs: Any) -> Any:
        """The random variable, without a name and without a model, once its arguments are checked."""
        smallest = _smallest(smallest, 2)
        alpha, beta = _doubles(alpha), _doubles(beta)
        first, second = _plain(alpha), _plain(beta)
        if first is not None and second is not None:
            _check_concentrations(first, second)
            more, less = np.maximum(first, second), np.minimum(first, second)
            below, above = _ends(more, less, *TrimmedBetaRV(smallest).limits)
            if not (above - below > 1e-290).all():
                raise Refusal("Next to nothing of this Beta distribution lies within these limits. Write a smaller alpha and beta.")
        return super().dist([alpha, beta], smallest=smallest, **kwargs)


def _ends(more: Any, less: Any, low: float, high: float) -> tuple[Any, Any]:
    """The distribution function of Beta(more, less) at both ends: its lower tail, so that the difference keeps its digits."""
    from scipy.special import betainc

    return betainc(more, less, low), betainc(more, less, high)


@_logprob.register(TrimmedBetaRV)
def _trimmed_beta_logp(op: Any, values: Any, rng: Any, size: Any, alpha: Any, beta: Any, **kwargs: Any) -> Any:
    (value,), (low, high) = values, op.limits
    more, less = pt.maximum(alpha, beta), pt.minimum(alpha, beta)
    mass = pt.log(pt.betainc(more, less, high) - pt.betainc(more, less, low))
    inside = pt.and_(pt.ge(value, low), pt.le(value, high))
    theta = pt.switch(inside, value, 0.5)
    density = (
        (alpha - 1) * pt.log(theta) + (beta - 1) * pt.log1p(-theta) + pt.gammaln(alpha + beta) - pt.gammaln(alpha) - pt.gammaln(beta) - mass
    )
    return pt.switch(inside, density, -inf)


@_support_point.register(TrimmedBetaRV)
def _trimmed_beta_point(op: Any, rv: Any, *inputs: Any) -> Any:
    return pt.full(rv.shape, 0.5)


class TrimmedTransform(Transform):
    """A map from all reals to (smallest, 1 - smallest), by the logistic function."""

    name = "trimmed"
    ndim_supp = 0
    __props__ = ("smallest",)

    def __init__(self, smallest: float) -> None:
        self.smallest, self.width = smallest, _below(1 - 2 * Fraction(smallest))
        self.largest = _below(1 - Fraction(smallest))

    def forward(self, value: Any, *inputs: Any) -> Any:
        """The logit of the place within the limits."""
        return pt.log(value - self.smallest) - pt.log(self.smallest + self.width - value)

    def backward(self, value: Any, *inputs: Any) -> Any:
        """The value at a real number. What is added is never negative; a sum that is rounded up beyond the largest value is taken back."""
        return pt.minimum(self.smallest + self.width * pt.sigmoid(value), self.largest)

    def log_jac_det(self, value: Any, *inputs: Any) -> Any:
        """The logarithm of the derivative of ``backward``."""
        return np.log(self.width) - pt.softplus(value) - pt.softplus(-value)


@_default_transform.register(TrimmedBetaRV)
def _trimmed_beta_transform(op: Any, rv: Any) -> Transform:
    return TrimmedTransform(op.smallest)


class TrimmedDirichletRV(_Trimmed):
    """Random variable of ``TrimmedDirichlet``."""

    name = "trimmed_dirichlet"
    signature = "(k)->(k)"
    _print_name = ("TrimmedDirichlet", "\\operatorname{TrimmedDirichlet}")

    def rng_fn(self, rng: Any, a: Any, size: Any = None) -> np.ndarray:
        """Draws by rejection, from two proposals in turn: the whole Dirichlet, and the uniform distribution on what is left of the simplex.

        What either accepts has the truncated law exactly, however many it accepts, so both are kept: the first is accepted often
        where little is cut off, the second where little is left.
        """
        a = np.asarray(a, dtype=float)
        a = np.broadcast_to(a, a.shape if size is None else (*size, a.shape[-1]))
        flat = a.reshape(-1, a.shape[-1])
        drawn = np.empty_like(flat)
        for row in np.unique(flat, axis=0):
            mine = (flat == row).all(axis=1)
            drawn[mine] = self._draws(rng, row, int(mine.sum()))
        return drawn.reshape(a.shape)

    def _draws(self, rng: Any, a: np.ndarray, many: int) -> np.ndarray:
        left = _below(1 - len(a) * Fraction(self.smallest))
        peak = _peak(a, self.smallest)
        accepted: list[np.ndarray] = []
        for _ in range(ROUNDS):
            whole = rng.dirichlet(a, size=many + 100)
            within = self.smallest + left * rng.dirichlet(np.ones_like(a), size=many + 100)
            kept = np.log(rng.random(many + 100)) < ((a - 1) * np.log(within)).sum(axis=1) - peak
            accepted += [whole[(whole >= self.smallest).all(axis=1)], within[kept]]
            if sum(map(len, accepted)) >= many:
                return np.concatenate(accepted)[:many]
        raise Refusal("Next to nothing of this Dirichlet distribution lies within these limits. Write concentrations nearer to 1.")


class TrimmedDirichlet(Distribution):
    """A Dirichlet distribution truncated to probabilities of at least ``smallest`` and renormalised.

    The smallest probability is ``variable.owner.op.smallest``. One record of a Categorical variable of K levels replaced by another costs
    a posterior draw 2 log((1 - (K - 1) smallest) / smallest) at most: see ``smallest_probability``.

    The log-density is that of the Dirichlet *up to a constant*: the probability of what is left, which has no closed form, is left
    out. It depends on ``a`` and ``smallest`` only, so these are plain numbers. Draws are exact, by rejection.

    Parameters
    ----------
    a : array_like of float
        Positive concentrations, those of K levels along the last axis.
    smallest : float
        The smallest probability, above 0 and below 1/K; public.

    Examples
    --------
    >>> with pm.Model():
    ...     theta = pmdp.TrimmedDirichlet("theta", np.ones(3), smallest=pmdp.smallest_probability(1.0, levels=3))
    >>> round(theta.owner.op.smallest, 4)
    0.2741
    """

    rv_type = TrimmedDirichletRV

    @staticmethod
    def rv_op(a: Any, *, smallest: float, size: Any = None, rng: Any = None) -> Any:
        """The random variable, without a name."""
        return variable_of(TrimmedDirichletRV(smallest), a, size=size, rng=rng)

    @classmethod
    def dist(cls, a: Any, *, smallest: object, **kwargs: Any) -> Any:
        """The random variable, without a name and without a model, once its arguments are checked."""
        numbers = _plain(pt.as_tensor_variable(a))
        if numbers is None or numbers.ndim < 1 or numbers.shape[-1] < 2:
            raise Refusal("a must hold plain numbers, those of two or more levels along the last axis. Write for example a=np.ones(3).")
        _check_concentrations(numbers)
        smallest = _smallest(smallest, numbers.shape[-1])
        return super().dist([_doubles(numbers)], smallest=smallest, **kwargs)


def _peak(a: np.ndarray, smallest: float) -> float:
    """The largest sum of (a_k - 1) log theta_k with all theta_k >= smallest, or more.

    Where every a_k >= 1 it is concave, and largest where theta_k is in proportion to a_k - 1 or at the limit; terms of a_k < 1 are
    largest at the limit, so they are taken there and the others as if those had no more than that.
    """
    rising = a > 1
    free = 1 - smallest * (~rising).sum()
    most = float(((a - 1) * np.log(smallest))[~rising].sum())
    open_, shares = rising.copy(), np.full(len(a), smallest)
    while open_.any():
        shares[open_] = (free - smallest * (rising & ~open_).sum()) * (a - 1)[open_] / (a - 1)[open_].sum()
        low = open_ & (shares < smallest)
        if not low.any():
            break
        shares[low], open_ = smallest, open_ & ~low
    return most + float(((a - 1) * np.log(shares))[rising].sum()) + 1e-9


@_logprob.register(TrimmedDirichletRV)
def _trimmed_dirichlet_logp(op: Any, values: Any, rng: Any, size: Any, a: Any, **kwargs: Any) -> Any:
    (value,) = values
    inside = pt.and_(pt.all(pt.ge(value, op.smallest), axis=-1), pt.le(pt.abs(pt.sum(value, axis=-1) - 1), 1e-9))
    theta = pt.switch(inside[..., None], value, 0.5)
    density = pt.sum((a - 1) * pt.log(theta) - pt.gammaln(a), axis=-1) + pt.gammaln(pt.sum(a, axis=-1))
    return pt.switch(inside, density, -inf)


@_support_point.register(TrimmedDirichletRV)
def _trimmed_dirichlet_point(op: Any, rv: Any, *inputs: Any) -> Any:
    return pt.full(rv.shape, 1 / rv.shape[-1])


class TrimmedSimplexTransform(Transform):
    """A map from K - 1 reals to probabilities above ``smallest``: smallest + (1 - K smallest) softmax."""

    name = "trimmed_simplex"
    ndim_supp = 1
    __props__ = ("smallest", "levels")

    def __init__(self, smallest: float, levels: int) -> None:
        self.smallest, self.levels, self.left = smallest, levels, _below(1 - levels * Fraction(smallest))

    def forward(self, value: Any, *inputs: Any) -> Any:
        """The map of the whole simplex, applied to what lies above the limit."""
        return simplex.forward((value - self.smallest) / self.left, *inputs)

    def backward(self, value: Any, *inputs: Any) -> Any:
        """The probabilities at K - 1 reals. What is added is never negative, so rounding does not lead below the limit."""
        return self.smallest + self.left * simplex.backward(value, *inputs)

    def log_jac_det(self, value: Any, *inputs: Any) -> Any:
        """The logarithm of the derivative of ``backward``."""
        return simplex.log_jac_det(value, *inputs) + (self.levels - 1) * np.log(self.left)


@_default_transform.register(TrimmedDirichletRV)
def _trimmed_dirichlet_transform(op: Any, rv: Any) -> Transform:
    return TrimmedSimplexTransform(op.smallest, int(rv.type.shape[-1]))


# ---------- arguments
def _below(value: Fraction) -> float:
    """The largest double that is not above."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else nextafter(nearest, -inf)


def _plain(variable: Any) -> np.ndarray | None:
    """The numbers of a constant."""
    return np.asarray(variable.data) if hasattr(variable, "data") else None


def _doubles(value: Any) -> Any:
    """Small integers would be computed with in single precision."""
    variable = pt.as_tensor_variable(value)
    numbers = _plain(variable)
    return pt.as_tensor_variable(numbers.astype(float)) if numbers is not None else variable.astype("float64")


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least:
        return int(value)
    raise Refusal(f"{name} must be a whole number of at least {least}. Write for example {name}={least}.")


def _smallest(value: Any, levels: int) -> float:
    if isinstance(value, Real) and not isinstance(value, bool) and float(value) > 0 and Fraction(float(value)) * levels < 1:
        return float(value)
    raise Refusal(f"smallest must be a number above 0 and below 1/{levels}. Write smallest=smallest_probability(epsilon, levels={levels}).")


def _check_concentrations(*several: np.ndarray) -> None:
    if not all((numbers > 0).all() and np.isfinite(numbers).all() for numbers in several):
        raise Refusal("Concentrations must be positive finite numbers. Write for example 1.")
