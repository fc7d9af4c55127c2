"""The log-probability of published numbers that were made from counts: sums over all counts that are possible given each.

Counts are whole and not negative. For Poisson, binomial and negative binomial counts a loop goes from one count to the next; for any other
distribution PyMC's own log-probability is evaluated at every count of the window.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import BinomialRV, CategoricalRV, NegBinomialRV, PoissonRV

from pymc_dp.laws.kernel import LEAST, NEGLIGIBLE, Kernel, Tensor, by_cell
from pymc_dp.laws.recursions import CLOSED, CONTRARY, OPEN, window_sum
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.events import Events
from pymc_dp.publications.noises import NATS, SIGMAS, DiscreteGaussian, DiscreteLaplace
from pymc_dp.publications.truths import levels_of
from pymc_dp.publications.windows import Windows, windows_above, windows_of

MOST_TERMS = 5_000_000
"""The most terms that are evaluated one by one for all rows together."""
LEAST_CHANCE = 1e-15
"""A probability that is one less another is never taken to be smaller."""
CLEAR = 4.0
"""A window that ends so many standard deviations above the mean is summed as it is; below that, its contrary is."""


def log_counts(name: str, random: Variable, events: Events, shape: tuple[int, ...]) -> Tensor:
    """Log-probability (or density, of real noise) of every row's event; shape as that of the rows."""
    if isinstance(events.setting, Variable):
        return _unknown_scale(name, random, events, shape)
    inside = _log_sum(name, random, windows_of(name, events), shape)
    return inside if events.least is None else inside - _log_sum(name, random, windows_above(name, events), shape)


def _log_rest(inside: Tensor) -> Tensor:
    """Log of 1 less a probability."""
    return pt.log(pt.maximum(-pt.expm1(pt.minimum(inside, 0.0)), LEAST_CHANCE))


def _log_sum(name: str, random: Variable, windows: Windows, shape: tuple[int, ...]) -> Tensor:
    """Log of the sum over a window; over an open one as 1 less what it lacks, where that is not nearly 1."""
    if isinstance(random.owner.op, CategoricalRV) and not windows.open.any():
        return _log_told(random, windows)
    ratios = _ratios(random)
    if ratios is None:
        _check_terms(name, windows.longest, shape)
        counts, weights = windows.padded()
        with np.errstate(divide="ignore"):
            logs = np.maximum(np.log(weights), NEGLIGIBLE)
        inside = windows.top + pt.logsumexp(pm.logp(random, counts) + logs, axis=0)
        return pt.switch(windows.open, _log_rest(inside), inside) if windows.open.any() else inside
    a, b, mode = ratios
    low, high = np.maximum(windows.start, 0).astype(float), windows.last.astype(float)
    mean = (a + b) / (1 - a)
    likely = pt.lt(high, mean + CLEAR * pt.sqrt(mean / (1 - a)))
    contrary = pt.and_(windows.open, likely)
    kind = pt.switch(contrary, float(CONTRARY), np.where(windows.open, float(OPEN), float(CLOSED)))
    at = pt.clip(pt.floor(mode), pt.switch(contrary, 0.0, np.minimum(low, high)), high)
    at, kind = disconnected_grad(at), disconnected_grad(kind)
    fixed = [pt.as_tensor(array.astype(float)) for array in (windows.start, windows.first, windows.length)]
    [rest] = by_cell(Kernel(window_sum, (1, 2)), shape, [at, a, b, *fixed, kind], windows.table)
    inside = windows.top + pm.logp(random, at.astype("int64")) + rest
    return pt.switch(contrary, _log_rest(inside), inside) if windows.open.any() else inside


def _log_told(random: Variable, windows: Windows) -> Tensor:
    """Log of the sum over a categorical variable's levels of their probabilities times the weights, without an index of records."""
    [p] = random.owner.op.dist_params(random.owner)
    levels = np.arange(levels_of(random)).reshape(-1, *[1] * windows.start.ndim)
    weights = np.moveaxis(windows.weights(levels), 0, -1)
    return windows.top + pt.log(pt.maximum((p * weights).sum(axis=-1), LEAST))


def _ratios(random: Variable) -> tuple[Tensor, Tensor, Tensor] | None:
    """Numbers a and b with f(s + 1) / f(s) = a + b / (s + 1), and the mode, not rounded; None for distributions not of Panjer's class."""
    operation = random.owner.op
    if isinstance(operation, PoissonRV):
        [mu] = (parameter.astype("float64") for parameter in operation.dist_params(random.owner))
        return pt.zeros(()), mu, mu
    if isinstance(operation, BinomialRV):
        n, p = (parameter.astype("float64") for parameter in operation.dist_params(random.owner))
        odds = p / pt.maximum(1 - p, 1e-300)
        return -odds, (n + 1) * odds, (n + 1) * p
    if isinstance(operation, NegBinomialRV):
        n, p = (parameter.astype("float64") for parameter in operation.dist_params(random.owner))
        return 1 - p, (n - 1) * (1 - p), (n - 1) * (1 - p) / p
    return None


def _check_terms(name: str, length: int, shape: tuple[int, ...]) -> None:
    rows = int(np.prod(shape))
    if rows * length > MOST_TERMS:
        raise Refusal(
            f"{name} needs {length:,} terms in each of {rows:,} rows, more than {MOST_TERMS:,} in all. Write Poisson, Binomial or"
            " NegativeBinomial, whose sums end where nothing is left, or fit fewer rows at once."
        )


def _unknown_scale(name: str, random: Variable, events: Events, shape: tuple[int, ...]) -> Tensor:
    """Discrete noise whose scale is a variable of the model: windows as wide as noise of the largest scale needs."""
    noise = events.noise
    if not isinstance(noise, DiscreteLaplace | DiscreteGaussian):
        raise Refusal(f"{name} counts, and an unknown scale needs whole noise then. Write DiscreteLaplace(scale, largest=50).")
    if noise.largest is None:
        raise Refusal(
            f"The scale of the noise on {name} is unknown: say what it cannot exceed. Write {type(noise).__name__}(scale, largest=50)."
        )
    if events.least is not None or not (events.low == events.high).all():
        raise Refusal(f"{name} has noise of an unknown scale, and was rounded, clipped or left out. Give the scale as a number.")
    laplace = isinstance(noise, DiscreteLaplace)
    reach = int(np.ceil((NATS if laplace else SIGMAS) * noise.largest)) + 1
    _check_terms(name, 2 * reach + 1, shape)
    apart = np.arange(-reach, reach + 1).reshape(-1, *[1] * len(shape))
    counts = events.low.astype(int) - apart
    scale = events.setting
    if laplace:
        logs = -np.abs(apart) / scale + pt.log(pt.tanh(0.5 / scale))
    else:
        logs = -0.5 * (apart / scale) ** 2
        logs = logs - pt.logsumexp(-0.5 * (apart / (scale + np.zeros(shape))) ** 2, axis=0)
    possible = counts >= 0
    terms = pm.logp(random, np.maximum(counts, 0)) + pt.switch(possible, logs, NEGLIGIBLE)
    return pt.logsumexp(terms, axis=0)
