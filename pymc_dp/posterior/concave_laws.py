"""Laws of one value given a linear predictor whose log-density is concave in it: how it bends, and by how much one value can move it."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.models.elementwise_intervals import Interval
from pymc_dp.models.inverse_links import argument_of
from pymc_dp.models.spec import Likelihood
from pymc_dp.models.structure import scalar_name


@dataclass(frozen=True, eq=False)
class Law:
    """The energy of a value y given its linear predictor h: minus its log-density, up to what rests on y alone.

    Attributes
    ----------
    energy, slope, curvature : callable
        From h (..., N) and y (N,) to the energy and its first two derivatives by h. The second is not negative.
    best : callable
        From y to the h of least energy, infinite where there is none.
    bend : float
        The absolute third derivative is this times the second, at most.
    """

    energy: Callable[[np.ndarray, np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray, np.ndarray], np.ndarray]
    curvature: Callable[[np.ndarray, np.ndarray], np.ndarray]
    best: Callable[[np.ndarray], np.ndarray]
    bend: float


def _binomial(n: float) -> Law:
    """N trials with the logit h: n log(1 + e^h) - y h. Its curvature n p (1 - p) has the derivative n p (1 - p) (1 - 2 p)."""
    from scipy.special import expit, logit

    def energy(h: np.ndarray, y: np.ndarray) -> np.ndarray:
        return n * np.logaddexp(0, h) - y * h

    return Law(energy, lambda h, y: n * expit(h) - y, lambda h, y: n * expit(h) * expit(-h), lambda y: logit(y / n), bend=1.0)


def _poisson() -> Law:
    """The log rate h: e^h - y h. Its curvature e^h is its own derivative."""
    return Law(lambda h, y: np.exp(h) - y * h, lambda h, y: np.exp(h) - y, lambda h, y: np.exp(h) + 0 * y, _log, bend=1.0)


def _exponential() -> Law:
    """The log mean h: y e^-h + h. Its curvature y e^-h has the derivative -y e^-h."""
    return Law(lambda h, y: y * np.exp(-h) + h, lambda h, y: 1 - y * np.exp(-h), lambda h, y: y * np.exp(-h), _log, bend=1.0)


def _normal(sigma: float) -> Law:
    """The mean h, of known sigma: a quadratic."""
    flat = 1 / sigma**2
    return Law(lambda h, y: flat * (y - h) ** 2 / 2, lambda h, y: flat * (h - y), lambda h, y: flat + 0 * h, lambda y: y, bend=0.0)


def _log(y: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(y)


def law_of(likelihood: Likelihood, parameters: tuple[Variable, ...]) -> tuple[Law, Variable] | None:
    """The law of a likelihood's values given one predictor, and that predictor; None where it is not one of these."""
    rows = [placeholder.variable for placeholder in likelihood.inputs]

    def within(place: int, link: str) -> Variable | None:
        return argument_of(parameters[place], link, rows)

    law: Law | None = None
    predictor: Variable | None = None
    if likelihood.columns or likelihood.levels > 2 or any(map(_is_clipped, parameters)):
        return None
    match likelihood.distribution, likelihood.known:
        case "Normal", (_, float() as sigma):
            law, predictor = _normal(sigma), parameters[0]
        case "Bernoulli", _:
            law, predictor = _binomial(1.0), within(0, "Sigmoid")
        case "Binomial", (float() as n, _):
            law, predictor = _binomial(n), within(1, "Sigmoid")
        case "Poisson", _:
            law, predictor = _poisson(), within(0, "Exp")
        case "Exponential", _:
            law, predictor = _exponential(), within(0, "Exp")
            if predictor is None and parameters[0].owner is not None and scalar_name(parameters[0].owner.op) == "Reciprocal":
                rate = argument_of(parameters[0].owner.inputs[0], "Exp", rows)
                predictor = None if rate is None else -rate
    return None if law is None or predictor is None else (law, predictor)


def _is_clipped(mean: Variable) -> bool:
    """Whether a mean is kept off its ends by a clip, also where that is said to make no difference: a density is another one there."""
    return mean.owner is not None and scalar_name(mean.owner.op) == "Clip"


def range_of_energy(law: Law, predictor: Interval, value: Interval) -> float:
    """The largest range of a value's energy over predictors between two ends, whatever the value between its own: in nats.

    As a function of the predictor h the energy is convex, so it is largest at an end, and least at ``law.best`` moved between the ends.
    Of all laws here it is a(h) - y b(h) and what rests on y alone, so that the energy at one h less that at another is affine in y: the
    largest such difference is convex in y, and so largest at an end of y (docs/theory.md; checked against brute force).

    Parameters
    ----------
    law : Law
    predictor, value : (ndarray, ndarray)
        Lower and upper ends; of every piece of the box of a record, which broadcast.
    """
    low, high = predictor
    largest = 0.0
    for y in value:
        lowest = law.energy(np.clip(law.best(y), low, high), y)
        ranges = np.maximum(law.energy(low, y), law.energy(high, y)) - lowest
        largest = max(largest, float(np.where(np.isnan(ranges), np.inf, ranges).max()))  # infinity less infinity: it may be anything
    return largest


def steepest(law: Law, predictor: Interval, value: Interval) -> np.ndarray:
    """The largest absolute slope of a value's energy, for predictors and values between these ends, as in ``range_of_energy``.

    At one y the slope grows with h, because the energy is convex, and at one h it is affine in y: so it is largest and least at corners.
    """
    return np.max([np.abs(law.slope(h, y)) for h, y in product(predictor, value)], axis=0)
