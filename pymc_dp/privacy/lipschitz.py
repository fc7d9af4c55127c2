"""How far one record can move a log-likelihood, whatever the parameters are; and what a draw from a posterior then reveals.

A likelihood is Lipschitz with constant L under a distance rho between records if |log p(x | theta) - log p(y | theta)| <= L rho(x, y)
for *all* parameters theta the prior allows (DNMR14 and ZRD16, Assumption 1). The functions here give constants of single
likelihoods, of Bayesian networks and of independent records, and turn a constant into privacy, divergence, and what it takes to tell
two data sets apart. Nothing here reads a record.

``PosteriorSample`` finds in the model what its own draws cost. These functions are for draws that another program makes, for which a
constant has to be known, and for checking what the papers say. Nobody checks that a constant belongs to your likelihood.

Constants are rounded up, by more than the arithmetic behind them can be off. They are of likelihoods as they are written here, with
values and parameters within the limits that are given: values beyond must be moved there before, parameters must be kept there by
a *truncated* prior (``pymc_dp.models.bounded_priors``).

The papers' second assumption, that large constants are improbable under the prior, is not offered: what rests on it is false
(docs/theory.md has a counterexample).

Examples
--------
>>> pmdp.lipschitz.privacy(pmdp.lipschitz.discrete(smallest=0.1), draws=2)
Cost(epsilon=8.7889, delta=0, rho=4.8278)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import atanh, ceil, exp, inf, isfinite, log, log1p, nextafter, sqrt, tanh
from numbers import Integral, Real
from typing import Any

from pymc_dp.privacy.accounting import Cost, Refusal, bounded_range, compose, exact_delta
from pymc_dp.privacy.layout import as_written

METRICS = ("record", "variables", "families")
"""What is counted between two records of a network: 1 if they differ; the variables that do; the families that do."""


@dataclass(frozen=True, repr=False)
class Lipschitz:
    """A constant, and the distance it belongs to.

    Attributes
    ----------
    constant : float
        In nats per unit of the distance, L.
    metric : str
        The distance rho between two records x and y, in words.
    """

    constant: float
    metric: str
    __repr__ = as_written

    def __post_init__(self) -> None:
        _number("constant", self.constant)


# ---------- constants of single likelihoods
def laplace(scale: float) -> Lipschitz:
    """The constant of Laplace(mu, scale) with a fixed scale and any mu: 1 / scale, under |x - y|.

    The log-density is -|x - mu| / scale, and ||x - mu| - |y - mu|| <= |x - y|, with equality wherever mu is not between them.
    """
    return Lipschitz(_up(1 / _number("scale", scale)), "|x - y|")


def exponential(largest_rate: float) -> Lipschitz:
    """The constant of Exponential(rate) with rates up to ``largest_rate``: that rate, under |x - y|.

    The log-density is log(rate) - rate x, so the difference is rate |x - y| exactly.
    """
    return Lipschitz(_up(_number("largest_rate", largest_rate)), "|x - y|")


def normal(sigma: float, largest_mean: float, largest_value: float) -> Lipschitz:
    """The constant of Normal(mu, sigma), sigma known, |mu| <= B and |x| <= R: (R + B) / sigma^2, under |x - y|.

    (x - mu)^2 - (y - mu)^2 = (x - y)(x + y - 2 mu), so the difference is |x - y| |(x + y) / 2 - mu| / sigma^2; the second factor comes
    as near to R + B as one likes, with x and y at one end and mu at the other.
    """
    sigma, B, R = _number("sigma", sigma), _number("largest_mean", largest_mean), _number("largest_value", largest_value)
    return Lipschitz(_up((R + B) / sigma**2), "|x - y|")


def discrete(smallest: float, levels: int = 2) -> Lipschitz:
    """The constant of Bernoulli or Categorical with K levels, no probability below w: log((1 - (K - 1) w) / w), under 1{x != y}.

    One probability is at least w and another at most what K - 1 others leave, so this is the largest log-ratio (FGWC16, equation 15).
    """
    return Lipschitz(_log_ratio(smallest, levels), "1 if x and y differ")


def poisson(smallest_rate: float, largest_rate: float, largest_value: int) -> Lipschitz:
    """The constant of Poisson(rate), rates in [lo, hi], counts up to M: max(log hi, log(M / lo)), under |x - y|.

    From k - 1 to k the log-probability moves by log(rate) - log(k), for k from 1 to M; that is largest at (hi, 1), smallest at (lo, M).
    """
    low, high = _number("smallest_rate", smallest_rate), _number("largest_rate", largest_rate)
    most = _number("largest_value", largest_value)
    if low > high or most < 1:
        raise Refusal("The smallest rate is above the largest, or no count but 0 is possible. Write for example poisson(0.5, 10, 20).")
    return Lipschitz(_up(max(log(high), log(most) - log(low)) + 2.0**-40), "|x - y|")


def geometric(largest_probability: float) -> Lipschitz:
    """The constant of Geometric(p) with p up to ``largest_probability``: -log(1 - p), under |x - y|.

    The log-probability of x is log p + (x - 1) log(1 - p): linear in x.
    """
    p = _number("largest_probability", largest_probability)
    if p >= 1:
        raise Refusal("largest_probability must be below 1. Write for example 0.9, and keep p there by a truncated prior.")
    return Lipschitz(_up(-log1p(-p)), "|x - y|")


def linear_regression(sigma: float, radius: float, largest_response: float, largest_covariates: float) -> Lipschitz:
    """The constant of y ~ Normal(w'x, sigma), sigma known, ||w|| <= B, |y| <= R_y, ||x|| <= R_x: (R_y + B R_x) / sigma^2.

    Under |y - y'| + B ||x - x'||. With residuals r and r', |r^2 - r'^2| / 2 = |r - r'| |r + r'| / 2; the first factor is at most that
    distance, the second at most R_y + B R_x, and both are attained in the limit where y and -w'x are at their ends. An intercept is
    a covariate that is 1. Of one record replaced by another, ``bounded_range`` of 4 R_y R_x B / sigma^2 (if B R_x <= R_y) costs less
    (docs/theory.md).
    """
    sigma, B = _number("sigma", sigma), _number("radius", radius)
    response, covariates = _number("largest_response", largest_response), _number("largest_covariates", largest_covariates)
    return Lipschitz(_up((response + B * covariates) / sigma**2), f"|y - y'| + {B:g} ||x - x'||")


# ---------- constants of what is made of them
def network(
    parents: Mapping[str, Iterable[str]], smallest: float, *, levels: int | Mapping[str, int] = 2, metric: str = "record"
) -> Lipschitz:
    """The constant of a discrete Bayesian network whose tables hold no probability below ``smallest``.

    log p(x) is a sum over families, a variable with its parents, and each term moves by at most L_i = log((1 - (K_i - 1) w) / w), and only
    where the family differs: a row of a table may be as far from another row as two entries of one. So, for any arrows,

    - ``"record"``, 1 if x and y differ at all: the sum of all L_i. This is what one replaced record costs, and it is attained by two
      records that differ in every family.
    - ``"variables"``, the number of variables that differ: max_k (L_k + the sum of L_i over children i of k), since a variable is in its
      own family and in its children's; of binary variables max_k (1 + children of k) log((1 - w) / w). DNMR14's Lemma 7 has log(1 / w),
      right only where w bounds the probabilities of whole records.
    - ``"families"``, the number of families that differ: max_i L_i. That is the printed constant of ZRD16's Lemma 2 and Theorem 4, which
      counts variables; without arrows these are the same. It is *not* what a record costs: a record differs in up to all families.

    Parameters
    ----------
    parents : mapping
        The names of the parents of every variable, by its name.
    smallest : float
        What no entry of a table is below: see ``smallest_probability``.
    levels : int or mapping
        Number of levels of all variables, or of each by name.
    metric : str
        One of ``METRICS``.
    """
    arrows = {name: tuple(above) for name, above in parents.items()}
    if not arrows or not all(set(above) <= set(arrows) - {name} for name, above in arrows.items()):
        raise Refusal('Every parent must be a variable itself, and no variable its own. Write for example {"a": (), "b": ("a",)}.')
    if isinstance(levels, Mapping) and set(levels) != set(arrows):
        raise Refusal("levels must name every variable once, or be one number for all.")
    left = set(arrows)
    while left:
        first = {name for name in left if not set(arrows[name]) & left}
        if not first:
            raise Refusal("The arrows make a circle, so this is no Bayesian network. Leave one of them out.")
        left -= first
    by_family = {name: _log_ratio(smallest, levels[name] if isinstance(levels, Mapping) else levels) for name in arrows}
    if metric == "record":
        return Lipschitz(_up(sum(by_family.values())), "1 if x and y differ")
    if metric == "variables":
        through = {name: by_family[name] + sum(by_family[child] for child, above in arrows.items() if name in above) for name in arrows}
        return Lipschitz(_up(max(through.values())), "number of variables in which x and y differ")
    if metric == "families":
        return Lipschitz(max(by_family.values()), "number of families in which x and y differ")
    raise Refusal(f"metric must be one of {', '.join(map(repr, METRICS))}.")


def samples(likelihood: Lipschitz) -> Lipschitz:
    """The constant of independent records with this likelihood: that of one record, under the sum of their distances.

    Log-likelihoods add up, and so do the distances. DNMR14's Lemma 1 multiplies by the number of records once more than is right.
    """
    return Lipschitz(likelihood.constant, f"sum over records of: {likelihood.metric}")


# ---------- what they promise
def privacy(likelihood: Lipschitz, distance: float = 1.0, *, draws: int = 1, delta: object = 0) -> Cost:
    """What draws from the posterior cost, between two data sets this far apart: 2 L rho each.

    The log-ratio of the two posteriors is the log-likelihood's difference, within [-L rho, L rho], plus a constant: a range of 2 L rho, so
    a draw is 2 L rho-differentially private (DNMR14, Theorem 2 (i)) and has (2 L rho)^2 / 8 in zero-concentrated differential
    privacy (bounded range). Fresh draws add up; whatever is computed from one draw costs nothing more.

    This is privacy under a pseudo-metric: data sets further apart are less alike. It is the usual, record-level one only with the
    largest distance that replacing one record can bring about: 1 under ``1 if x and y differ``; under |x - y| the width of
    the values' range; under the number of variables that differ, all of them. It holds for draws from the posterior itself.

    Parameters
    ----------
    likelihood : Lipschitz
        Constant of one record, which is also that of all together: see ``samples``.
    distance : float
        Between two data sets, in the metric of the constant.
    draws : int
    delta : float
        0 asks for a pure epsilon.

    Returns
    -------
    Cost

    Examples
    --------
    >>> privacy(discrete(0.1))
    Cost(epsilon=4.39445, delta=0, rho=2.41389)
    """
    if not (isinstance(draws, Integral) and not isinstance(draws, bool) and draws >= 1):
        raise Refusal("draws must be a whole number of at least 1. Write for example draws=10.")
    eta = 2 * Fraction(likelihood.constant) * Fraction(_number("distance", distance))
    return compose([bounded_range(eta)] * int(draws), delta=delta)


def divergence(likelihood: Lipschitz, distance: float = 1.0) -> float:
    """Kullback-Leibler divergence between the posteriors of two data sets this far apart, at most, in nats.

    With eta = 2 L rho and u = eta / (exp(eta) - 1), it is u - 1 - log u: the most that two distributions can have whose log-ratio stays
    within an interval of length eta, and attained by two parameters of unequal prior probability. Where all that is known of
    log-ratios is that they lie within [-2 L rho, 2 L rho] it would be 2 L rho tanh(L rho), four times as much where L rho is small:
    2 (L rho)^2 instead of eta^2 / 8. DNMR14's Theorem 1 (i) has 2 L rho.
    """
    eta = 2 * likelihood.constant * _number("distance", distance)
    log_u = log(eta) - eta - log1p(-exp(-eta))
    return _up(min(eta**2 / 8, exp(log_u) - 1 - log_u + 2.0**-45))  # where eta is small the closed form cancels


def draws_to_tell(likelihood: Lipschitz, distance: float, delta: float, *, cells: int = 2) -> int:
    """How many draws it takes at least to tell two data sets this far apart: with fewer they cannot be told, with more they may be.

    For someone who sorts fresh posterior draws into cells fixed beforehand. Frequencies are within sqrt(3 log(1 / delta) / n) of the
    probabilities in L1 distance, with probability 1 - delta, if there are at most log2 sqrt(1 / delta) cells (DNMR14, Lemma 2); and the
    probabilities under both posteriors are within 2 tanh(L rho / 2) of each other, because their log-ratio varies by 2 L rho at most. So
    n >= 3 log(1 / delta) / (4 tanh(L rho / 2)^2) is necessary. That is more than 3 log(1 / delta) / (4 L rho), the paper's Theorem 3, and
    more than 3 log(1 / delta) / (4 L^2 rho^2).

    It is not sufficient, though the paper can be read so: a likelihood that ignores its record has every constant, and tells nothing.

    Parameters
    ----------
    likelihood : Lipschitz
    distance : float
    delta : float
        The probability of a wrong conclusion that is accepted.
    cells : int
        Into which draws are sorted.
    """
    nats = _error(delta, cells)
    return max(1, ceil(0.75 * nats / tanh(likelihood.constant * _number("distance", distance) / 2) ** 2 * (1 - 2.0**-40)))


def distance_to_tell(likelihood: Lipschitz, draws: int, delta: float, *, cells: int = 2) -> float:
    """How far apart two data sets must be at least to be told apart from so many draws, infinite if none can: see ``draws_to_tell``."""
    share = 0.75 * _error(delta, cells) / _number("draws", draws)
    return 2 * atanh(sqrt(share)) / likelihood.constant * (1 - 2.0**-40) if share < 1 else inf


# ---------- numbers
def _error(delta: float, cells: int) -> float:
    """log(1 / delta), for so many cells."""
    error = float(exact_delta(delta))
    if error <= 0 or not (isinstance(cells, Integral) and int(cells) >= 2):
        raise Refusal("delta must lie between 0 and 1, and draws be sorted into two or more cells. Write for example delta=0.01, cells=2.")
    if cells > -log(error) / (2 * log(2)) * (1 + 1e-12):
        raise Refusal(f"The bound holds for up to log2 sqrt(1/delta) cells. Write a delta of at most {4.0**-cells:.3g} for {cells} cells.")
    return -log(error)


def _log_ratio(smallest: float, levels: int) -> float:
    w = _number("smallest", smallest)
    if not (isinstance(levels, Integral) and not isinstance(levels, bool) and int(levels) >= 2 and Fraction(w) * int(levels) < 1):
        raise Refusal("levels must be a whole number of at least 2, smallest below 1 / levels. Write for example smallest=0.1, levels=3.")
    return _up(log1p(float((1 - int(levels) * Fraction(w)) / Fraction(w))))  # of the ratio minus 1, which may be tiny


def _number(name: str, value: Any) -> float:
    if isinstance(value, Real) and not isinstance(value, bool) and isfinite(value) and float(value) > 0:
        return float(value)
    raise Refusal(f"{name} must be a positive finite number. Write for example {name}=1.")


def _up(value: float) -> float:
    """A value raised by more than a few roundings can have made it too small."""
    return nextafter(value * (1 + 2.0**-45), inf)
