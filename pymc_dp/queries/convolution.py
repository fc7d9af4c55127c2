"""The law of a weighted sum of noises: the error of an answer that is computed from noisy answers.

The laws of noises are known whatever the records are, so probabilities and distances of their sum are, too.

Shapes: m noises, K points of a grid on either side of 0. Scales are in lattice units of the questions, what a ``Law`` says in units of
the answer.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from math import ceil, exp, expm1, floor, gcd, inf, log, log1p, pi

import numpy as np

from pymc_dp.privacy.accounting import Refusal

NO_VARIANCE = 1e-30
LOST = 1e-12
"""The most probability outside the grid on which a law is computed."""
CLOSEST = 1e-10
"""A confidence is at least so far from 1: what is computed is right to 1e-11."""
POINTS = 2**16
"""Points of the grid where noises have no common lattice."""
SHARP = 32.0
"""The exponent of the window by which values are given to points of that grid: what it leaves out is 64 exp(-32), 8e-13."""
MOST_POINTS = 2**18
"""The most points of the grid where noises have a common lattice."""
DENOMINATORS = 60
FAINT = 1e-14
"""A characteristic function below this is taken as 0."""
SMALL = 0.2
"""Below this argument a characteristic function is its first cumulants."""


@dataclass(frozen=True, eq=False)
class Law:
    """A symmetric law on a grid about 0, and how far a value may lie from its point of the grid.

    What is said errs on the safe side by that much: probabilities are never said to be more than they are, nor distances less.

    Attributes
    ----------
    step : float
        Between points of the grid.
    mass : np.ndarray
        (2 K + 1,): the probability of every point from -K step to K step.
    slack : float
        Every value is within so much of its point; 0 where the points are the values.
    """

    step: float
    mass: np.ndarray
    slack: float

    @cached_property
    def reached(self) -> np.ndarray:
        """(K + 1,): the probability of points at most k steps from 0. Rounding may make it fall a little; then the lower is taken."""
        middle = len(self.mass) // 2
        sums = np.cumsum(np.concatenate([self.mass[middle : middle + 1], self.mass[middle + 1 :] + self.mass[:middle][::-1]]))
        return np.minimum.accumulate(sums[::-1])[::-1]

    def _points(self, distance: float, *, equal: bool) -> float:
        """The probability of points less than a distance from 0, or at most, if ``equal``; rounding aside."""
        steps = min(distance / self.step, 1e300)
        k = floor(steps * (1 + 1e-12) + 1e-9) if equal else ceil(steps * (1 - 1e-12) - 1e-9) - 1
        return self._up_to(k) if k >= 0 else 0.0

    def _up_to(self, k: int) -> float:
        """The probability of points at most k steps from 0."""
        return float(self.reached[min(k, len(self.reached) - 1)])

    def _least(self, confidence: float) -> int:
        """The least k for which that is so much."""
        return int(np.searchsorted(self.reached, confidence))

    def within(self, distance: float) -> float:
        """P(abs(error) <= distance), or less."""
        return self._points(distance - self.slack, equal=True)

    def below(self, distance: float) -> float:
        """P(error < distance), or less."""
        if distance > 0:
            return (1 + self._points(distance - self.slack, equal=False)) / 2
        return (1 - self._points(self.slack - distance, equal=True)) / 2

    def distance(self, confidence: float) -> float:
        """The smallest distance with ``within(distance) >= confidence``: Algorithm 3 of XX12."""
        return self._least(checked_confidence(confidence)) * self.step + self.slack


@dataclass(frozen=True, eq=False)
class OneNoise(Law):
    """The law of a multiple of one noise, in closed form, where a grid would have too many points: ``mass`` is empty.

    P(abs(noise) <= k) = 1 - 2 q^(k + 1) / (1 + q) with q = exp(-1 / scale), as in ``fresh_epsilon``.
    """

    scale: float

    def _up_to(self, k: int) -> float:
        return -expm1(log(2) - (k + 1) / self.scale - log1p(exp(-1 / self.scale)))

    def _least(self, confidence: float) -> int:
        k = max(floor((log(2) - log1p(-confidence) - log1p(exp(-1 / self.scale))) * self.scale) - 1, 0)
        while self._up_to(k) < confidence:
            k += max(k // 2**50, 1)
        return k


def variances(scales: np.ndarray) -> np.ndarray:
    """Variances of discrete Laplace noise: 2q / (1 - q)^2 with q = exp(-1/scale), 1 / (2 sinh(1 / (2 scale))^2)."""
    with np.errstate(over="ignore"):
        return 0.5 / np.sinh(0.5 / np.asarray(scales, dtype=float)) ** 2


def convolved(coefficients: np.ndarray, scales: np.ndarray) -> Law:
    """The law of sum_k A_k noise_k, by discrete convolution: Algorithm 2 of XX12, done where a convolution is a product.

    The characteristic function of discrete Laplace noise of variance v is 1 / (1 + v (1 - cos t)), so that of the sum is a product
    known at every frequency, and a Fourier transform gives probabilities. No interval that is made of them is too short:

    Where all A_k are multiples B_k of one unit, to 1e-10, so is S' = sum_k B_k noise_k, whose probabilities the transform gives exactly.
    What S' leaves out is a sum of noises, too, and with probability 1 - 1e-12 not beyond Chernoff's bound, which is the slack.

    One noise alone has its law in closed form.

    Elsewhere S has no lattice, but may be all but on one (a precise answer among noisy ones), so that a quantile a little before an atom
    would miss all of it. Here each value s is given to the points i of a grid with probabilities K(s / step - i), where K, a Kaiser
    window convolved with a box of one step, is positive and adds up to 1 over the points, whatever s. That is a randomised rounding R of
    S by at most the width of K, 10.7 steps, the slack: P(abs(S) <= d + slack) >= P(abs(R) <= d), for any S. The transform of R is that
    of S times that of K, and what it has beyond the frequencies of the grid is at most 8e-13: sums of probabilities are right to 1e-11.
    No noise is rounded before the sum, which in the paper's algorithm adds a twelfth of a squared step for every noise.

    The grid ends where Chernoff's bound for the error is 1e-12, E exp(a noise) = 1 / (1 - v (cosh a - 1)). So no more is lost, or
    appears from the other end.
    """
    sizes, noise_variances = np.abs(np.asarray(coefficients, dtype=float)), variances(scales)
    some = (sizes > 0) & (noise_variances > NO_VARIANCE)
    sizes, noise_variances = sizes[some], noise_variances[some]
    if not len(sizes):
        return Law(1.0, np.ones(1), 0.0)
    spread = sizes * np.sqrt(noise_variances)
    kept = spread > 1e-9 * np.linalg.norm(spread) / len(spread)
    unit, whole = _unit(sizes[kept])
    on_lattice = np.zeros(len(sizes))
    on_lattice[kept] = whole * unit
    reach = _reach(sizes, noise_variances)
    if unit and 2 * reach / unit + 1 <= MOST_POINTS:
        points = max(1 << ceil(log(2 * reach / unit + 3, 2)), 64)
        step, sizes, slack = unit, on_lattice, _reach(np.abs(sizes - on_lattice), noise_variances)
    else:
        if len(sizes) == 1:
            return OneNoise(float(sizes[0]), np.zeros(0), 0.0, float(np.asarray(scales)[some][0]))
        width = SHARP / pi + 0.5
        points, step = POINTS, reach / (POINTS / 2 - 1 - ceil(width))
        slack = width * step
    (sizes, noise_variances), times = np.unique(np.stack([sizes, noise_variances]), axis=1, return_counts=True)
    angles = 2 * pi * np.arange(points // 2 + 1) / points
    transform = _characteristic(sizes, noise_variances, times, angles / step)
    if step != unit:
        transform = transform * _window(points)
    mass = np.fft.fftshift(np.fft.irfft(transform, points))[1:]
    return Law(step, (mass + mass[::-1]) / 2, slack)


@cache
def _window(points: int) -> np.ndarray:
    """(points / 2 + 1,): the transform of K at the frequencies of a grid."""
    angles = 2 * pi * np.arange(points // 2 + 1) / points
    deep = SHARP * np.sqrt(np.maximum(1 - (angles / pi) ** 2, 1e-16))
    return np.sinh(deep) / deep * (SHARP / np.sinh(SHARP)) * np.sinc(angles / (2 * pi))


def _reach(sizes: np.ndarray, noise_variances: np.ndarray) -> float:
    """Where P(abs(error) > reach) <= 1e-12."""
    sizes, noise_variances = sizes[sizes > 0], noise_variances[sizes > 0]
    if not len(sizes):
        return 0.0
    (sizes, noise_variances), times = np.unique(np.stack([sizes, noise_variances]), axis=1, return_counts=True)
    edge = float((2 * np.arcsinh(np.sqrt(0.5 / noise_variances)) / sizes).min())  # cosh a = 1 + 1 / v is 2 sinh(a / 2)^2 = 1 / v
    best = inf
    for share in (*np.linspace(0.05, 0.9, 18), 0.95, 0.98, 0.99):
        moments = -np.log1p(-np.minimum(2 * noise_variances * np.sinh(sizes * share * edge / 2) ** 2, 1 - 1e-15))
        best = min(best, (log(2 / LOST) + float(times @ moments)) / (share * edge))
    return best


def _unit(sizes: np.ndarray) -> tuple[float, np.ndarray]:
    """The largest number that all are multiples of, and which; or 0."""
    least = sizes.min()
    for denominator in range(1, DENOMINATORS + 1):
        whole = np.rint(sizes / least * denominator)
        if (np.abs(sizes / least * denominator - whole) <= 1e-10 * whole).all() and whole.max() < 2**40:
            common = gcd(*map(int, whole))
            return float(least * common / denominator), whole / common
    return 0.0, np.zeros(len(sizes))


def _characteristic(sizes: np.ndarray, noise_variances: np.ndarray, times: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """The product of 1 / (1 + 2 v sin(a t / 2)^2), largest noises first, so that the rest is needed at few frequencies."""
    values, alive = np.zeros(len(frequencies)), np.arange(len(frequencies))
    product = np.ones(len(frequencies))
    order = np.argsort(-sizes * np.sqrt(noise_variances))
    sizes, noise_variances, times = sizes[order], noise_variances[order], times[order]
    k, many = 0, 4
    while k < len(sizes) and alive.size:
        t, rest = frequencies[alive], slice(k, len(sizes))
        top = t[-1]
        if sizes[rest].max() * top < SMALL and sizes[k] * np.sqrt(noise_variances[k]) * top < SMALL:
            a, v, n = sizes[rest], noise_variances[rest], times[rest]
            second, fourth = n @ (v * a**2) / 2, n @ ((v / 24 + v**2 / 8) * a**4)
            sixth = n @ ((v / 720 + v**2 / 48 + v**3 / 24) * a**6)
            product *= np.exp(-second * t**2 + fourth * t**4 - sixth * t**6)
            break
        for a, v, n in zip(sizes[k : k + many], noise_variances[k : k + many], times[k : k + many], strict=True):
            sine = np.sin((0.5 * a) * t)
            factor = 1 + (2 * v) * (sine * sine)
            product *= 1 / factor if n == 1 else np.exp(-n * np.log(factor))  # one**n may overflow
        k, many = k + many, 16
        stay = product > FAINT
        alive, product = alive[stay], product[stay]
    values[alive] = product
    return values


def checked_confidence(confidence: float) -> float:
    """The confidence, if intervals can have it: to be asked before anything is paid."""
    if not 0 < confidence < 1:
        raise Refusal("The confidence must lie between 0 and 1. Write for example confidence=0.95.")
    if 1 - confidence < CLOSEST:
        raise Refusal(f"The confidence is too close to 1: it is computed up to {CLOSEST:g} of that. Write 0.999999 or less.")
    return confidence
