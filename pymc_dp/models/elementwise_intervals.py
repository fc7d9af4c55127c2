"""The range of an elementwise operation, given the ranges of its inputs: a table from operation to rule."""

from collections.abc import Callable, Sequence
from functools import partial, reduce

import numpy as np

from pymc_dp.models.structure import Unreduced

type Interval = tuple[np.ndarray, np.ndarray]
"""The least and the largest value of every entry."""


def special(name: str) -> Callable:
    """A function of SciPy, which is slow to import and seldom needed."""

    def function(*arrays: np.ndarray, **options: object) -> np.ndarray:
        from scipy import special

        return getattr(special, name)(*arrays, **options)

    return function


INCREASING: dict[str, Callable] = {
    "Exp": np.exp, "Log": np.log, "Log1p": np.log1p, "Expm1": np.expm1, "Sqrt": np.sqrt, "Tanh": np.tanh, "Identity": np.positive,
    "ArcTan": np.arctan, "Floor": np.floor, "Ceil": np.ceil, "Log2": np.log2, "Log10": np.log10, "Sinh": np.sinh, "Sign": np.sign,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Softplus": lambda x: np.logaddexp(0.0, x), "Erf": special("erf"),
    "RoundHalfToEven": np.rint, "Trunc": np.trunc,
}  # fmt: skip
"""Operations of one argument that never decrease."""
DECREASING: dict[str, Callable] = {
    "Neg": np.negative, "Erfc": special("erfc"), "Erfcx": special("erfcx"),
    "Log1mexp": lambda x: np.where(x < -0.7, np.log1p(-np.exp(x)), np.log(-np.expm1(x))),
}  # fmt: skip
"""Operations of one argument that never increase."""
CORNERS: dict[str, Callable] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Minimum": np.minimum, "Maximum": np.maximum, "ScalarMinimum": np.minimum,
    "ScalarMaximum": np.maximum,
}  # fmt: skip
"""Operations whose extremes lie where every argument is at one of its ends."""
COMPARED: dict[str, Callable] = {
    "LT": lambda a, b: (a[1] < b[0], a[0] < b[1]), "LE": lambda a, b: (a[1] <= b[0], a[0] <= b[1]),
    "GT": lambda a, b: (a[0] > b[1], a[1] > b[0]), "GE": lambda a, b: (a[0] >= b[1], a[1] >= b[0]),
    "EQ": lambda a, b: ((a[0] == a[1]) & (b[0] == b[1]) & (a[0] == b[0]), (a[0] <= b[1]) & (b[0] <= a[1])),
    "NEQ": lambda a, b: ((a[0] > b[1]) | (b[0] > a[1]), ~((a[0] == a[1]) & (b[0] == b[1]) & (a[0] == b[0]))),
}  # fmt: skip
"""Comparisons: whether they hold for certain, and whether they may."""
LOG_GAMMA, BESSEL, INCOMPLETE_BETA = special("gammaln"), special("i0e"), special("betainc")
LOWEST_LOG_GAMMA = 1.4616321449683623
"""Where the logarithm of the gamma function is least."""


def elementwise(name: str, inputs: Sequence[Interval], whole: bool) -> Interval:
    """The interval of an operation, by its name; ``whole`` says whether all its arguments are integers.

    Raises
    ------
    Unreduced
        When the operation is not known, or has no value somewhere within the intervals of its arguments.
    """
    low, high = inputs[0]
    if name in INCREASING:
        return INCREASING[name](low), INCREASING[name](high)
    if name in DECREASING:
        return DECREASING[name](high), DECREASING[name](low)
    if name in COMPARED:
        certain, possible = COMPARED[name](*inputs)
        return certain.astype(float), possible.astype(float)
    if name in CORNERS:
        return reduce(lambda first, second: corners(CORNERS[name], first, second), inputs)
    if name in OF_INTEGERS:
        return OF_INTEGERS[name](*inputs, whole)
    if name in RULES:
        return RULES[name](*inputs)
    raise Unreduced(unknown_operation(name))


def corners(function: Callable, first: Interval, second: Interval) -> Interval:
    """The interval of a function of two arguments whose extremes lie where each is at one of its ends."""
    values = [function(a, b) for a in first for b in second]
    return np.minimum.reduce(values), np.maximum.reduce(values)


def unknown_operation(name: str) -> str:
    """Why an operation is refused that no rule is known for."""
    return (
        f"a private covariate goes through {name}, whose values have no known bounds. Compute it before the model, and give bounds to the"
        " result"
    )


def _second(first: Interval, second: Interval) -> Interval:
    """The second argument in the shape of both."""
    like = np.zeros_like(first[0])
    return second[0] + like, second[1] + like


def _size(x: Interval) -> Interval:
    """The absolute value."""
    low, high = np.abs(x[0]), np.abs(x[1])
    return np.where((x[0] <= 0) & (x[1] >= 0), 0.0, np.minimum(low, high)), np.maximum(low, high)


def _square(x: Interval) -> Interval:
    least, most = _size(x)
    return least**2, most**2


def _bessel(x: Interval) -> Interval:
    """A function that is even, and never increases from 0 on."""
    least, most = _size(x)
    return BESSEL(most), BESSEL(least)


def _log_gamma(x: Interval) -> Interval:
    low, high = x
    ends = LOG_GAMMA(low), LOG_GAMMA(high)
    inside = (low <= LOWEST_LOG_GAMMA) & (high >= LOWEST_LOG_GAMMA)
    least = np.where(inside, LOG_GAMMA(LOWEST_LOG_GAMMA), np.minimum(*ends))
    return np.where(low >= 0, least, -np.inf), np.where(low >= 0, np.maximum(*ends), np.inf)


def _incomplete_gamma(function: Callable, upper: bool, shape: Interval, x: Interval) -> Interval:
    """The distribution function of Gamma(shape, 1), or what is left of it: it grows with x, and falls with the shape, because a larger
    shape adds an independent positive part.
    """
    ends = function(shape[1], x[0]), function(shape[0], x[1])
    low, high = ends[::-1] if upper else ends
    inside = (shape[0] > 0) & (x[0] >= 0)
    return np.where(inside, low, -np.inf), np.where(inside, high, np.inf)


def _incomplete_beta(a: Interval, b: Interval, x: Interval) -> Interval:
    """The distribution function of Beta(a, b): it grows with x, and with b, and falls with a, because densities' ratios are monotone."""
    inside = (a[0] > 0) & (b[0] > 0) & (x[0] >= 0) & (x[1] <= 1)
    low, high = INCOMPLETE_BETA(a[1], b[0], x[0]), INCOMPLETE_BETA(a[0], b[1], x[1])
    return np.where(inside, low, -np.inf), np.where(inside, high, np.inf)


def _wave(x: Interval) -> Interval:
    return -np.ones_like(x[0]), np.ones_like(x[0])


def _quotient(top: Interval, bottom: Interval) -> Interval:
    through_zero = (bottom[0] <= 0) & (bottom[1] >= 0)
    low, high = corners(np.divide, top, bottom)
    return np.where(through_zero, -np.inf, low), np.where(through_zero, np.inf, high)


def _whole_quotient(top: Interval, bottom: Interval) -> Interval:
    if (bottom[0] <= 0).any():
        raise Unreduced("a private covariate is divided by what may be 0. Compute it before the model, and give bounds to the result")
    return corners(np.floor_divide, top, bottom)


def _remainder(top: Interval, bottom: Interval, whole: bool) -> Interval:
    least, most = bottom
    if not (np.all(least == most) and np.all(least > 0)):
        raise Unreduced(unknown_operation("Mod"))
    like = np.zeros_like(top[0])
    return like, least - whole + like


def _clipped(x: Interval, lower: Interval, upper: Interval) -> Interval:
    """A function that never decreases in any of its three arguments, unless the ends are the wrong way round."""
    if (lower[1] > upper[0]).any():
        raise Unreduced("a private covariate is clipped between ends of which the lower may be the higher. Write the lower end first")
    return np.minimum(np.maximum(x[0], lower[0]), upper[0]), np.minimum(np.maximum(x[1], lower[1]), upper[1])


def _logical(function: Callable, *inputs: Interval) -> Interval:
    """AND or OR. Of integers these work on bits, which no bounds are known for."""
    if any(((end != 0) & (end != 1)).any() for pair in inputs for end in pair):
        raise Unreduced(unknown_operation("an operation on bits"))
    lows, highs = zip(*inputs, strict=True)
    return reduce(function, lows), reduce(function, highs)


def _not(x: Interval, whole: bool) -> Interval:
    if whole:
        raise Unreduced(unknown_operation("an operation on bits"))
    return 1 - x[1], 1 - x[0]


def _switched(condition: Interval, first: Interval, second: Interval) -> Interval:
    (certain, possible), (first_low, first_high), (second_low, second_high) = condition, first, second
    union = np.minimum(first_low, second_low), np.maximum(first_high, second_high)
    yes, no = certain >= 1, possible <= 0
    return (
        np.where(yes, first_low, np.where(no, second_low, union[0])),
        np.where(yes, first_high, np.where(no, second_high, union[1])),
    )


def _power(base: Interval, exponent: Interval, whole: bool) -> Interval:
    """Powers of a base that is not negative, by its logarithm; of any, where the exponent is an integer from 0 on, the same for all."""
    if whole and (exponent[0] < 0).any():
        raise Unreduced("a whole number may be raised to a negative power, which has no value. Write 2.0 ** x for 2 ** x")
    if np.all(exponent[0] == exponent[1]) and np.all(np.rint(exponent[0]) == exponent[0]) and np.all(exponent[0] >= 0):
        low, high = corners(np.power, base, exponent)
        straddles = (base[0] <= 0) & (base[1] >= 0) & (exponent[0] > 0)
        return np.where(straddles, np.minimum(low, 0.0), low), high
    logs = np.log(np.maximum(base[0], 0)), np.log(np.maximum(base[1], 0))
    low, high = corners(np.multiply, logs, exponent)
    negative = base[0] < 0
    return np.where(negative, -np.inf, np.exp(low)), np.where(negative, np.inf, np.exp(high))


RULES: dict[str, Callable[..., Interval]] = {
    "Second": _second, "Abs": _size, "Sqr": _square, "GammaLn": _log_gamma, "I0e": _bessel, "Cos": _wave, "Sin": _wave,
    "TrueDiv": _quotient, "Reciprocal": lambda x: _quotient((np.ones(()), np.ones(())), x), "IntDiv": _whole_quotient, "Clip": _clipped,
    "GammaInc": partial(_incomplete_gamma, special("gammainc"), False), "BetaInc": _incomplete_beta,
    "GammaIncC": partial(_incomplete_gamma, special("gammaincc"), True),
    "AND": partial(_logical, np.minimum), "OR": partial(_logical, np.maximum), "Switch": _switched,
}  # fmt: skip
"""Other operations, from their arguments."""
OF_INTEGERS: dict[str, Callable[..., Interval]] = {"Mod": _remainder, "Invert": _not, "Pow": _power}
"""Operations that are others for integers, from their arguments, and whether all of these are integers."""
