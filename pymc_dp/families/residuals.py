"""Sums of residuals: the second release of a linear likelihood, at coefficients that are estimated from its first.

Noise on second moments has the scale of the bounds of the response. What is left of the response once b'D is taken off, with coefficients b
that are public, varies less. So after the second moments, at a part of epsilon, the rest of it pays for the sums over records of

    D r  and  r²,  with r = w - b'D, clamped to [-C, C] and to [-3C/2, 3C/2],

in units of C and C². (Few residuals are beyond the larger bound even where tails are heavier than a normal law's, so sigma is hardly
less than without clamping.) Both b and C are computed from what the first release says, noise and all (``next_residuals``), which is
post-processing: the second release is one of adaptive composition, and its sensitivity, in units of C, is known before the first.

Given the exact moments M = sum D D', S = sum D w and sum w², sums of residuals that are not clamped are S - M b and so on: the noise on M
costs slopes only as far as they are from b. What clamping takes off is told by the normal law (``kept``; docs/theory.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import erf, erfc, exp, gcd, pi, sqrt

import numpy as np

from pymc_dp.families.family import Sensitivity
from pymc_dp.families.grid import POINTS, onto_grid
from pymc_dp.families.second_moments import Regression

FIRST = Fraction(1, 2)
"""The share of epsilon that pays for second moments."""
ENOUGH = 7000
"""Records times epsilon, for each private feature, from which on residuals are released: with fewer, coefficients told by half of epsilon
are more often so far off that more is lost than gained. Beyond it a coefficient can still be wider than from a single release."""
FEATURES = range(2, 6)
"""With so many private features: a single one gains little, and more were not looked at."""
WIDE = 2.75
"""So many standard deviations of a residual it may be large, before it is clamped,"""
NARROW = 2.5
"""or so many, if that is more than"""
LARGE = 0.8
"""this part of half the response's range."""
LEAST = 2.0**-20
"""The least C, in parts of half the response's range."""
TOGETHER = 6
"""What all F products weigh together, in units of C, where the square weighs 1 in units of C²: p F."""
FARTHEST = 4.0
"""No coefficient of scaled features is taken to be larger, in units of half the response's range."""


@dataclass(frozen=True)
class Residuals:
    """Where residuals are taken, and what noise their sums have.

    Attributes
    ----------
    coefficients : tuple of float
        b, of the F scaled features, for a response scaled to [-1, 1].
    clamp : float
        C, in units of half the response's range.
    scale : float
        Of the noise, in lattice units.
    """

    coefficients: tuple[float, ...]
    clamp: float
    scale: float = 0.0

    @property
    def features(self) -> int:
        """F, the constant 1 included."""
        return len(self.coefficients)

    @property
    def clamp_squares(self) -> float:
        """Where squares of residuals are clamped, in the same units."""
        return 1.5 * self.clamp

    @property
    def weights(self) -> tuple[int, ...]:
        """The factor that each of the F + 1 sums is multiplied by before the noise."""
        products, square = weights_of(self.features)
        return (*[products] * self.features, square)

    @property
    def units(self) -> np.ndarray:
        """What 1 is in each of the F + 1 released numbers, in lattice units of a response on [-1, 1]: (F + 1,)."""
        return self.clamp ** np.array([*[1.0] * self.features, 2.0]) / (np.array([*[2] * self.features, 4]) * np.array(self.weights))

    def columns(self, whole: np.ndarray) -> np.ndarray:
        """Whole numbers (F + 2, N): features as they are, from -POINTS to POINTS, and residuals twice, in units of C / (2 POINTS).

        The second time they are clamped to three halves of C; the first are the same numbers, clamped to C. Every step is elementwise, so
        that a record's residual rests on the record and on what is public, and on nothing else.

        Parameters
        ----------
        whole : (F + 1, N) float64 ndarray
            Features and the response on their grids, POINTS standing for 1; it is changed.
        """
        rest = whole[self.features] / POINTS
        for f, coefficient in enumerate(self.coefficients):
            rest = rest - whole[f] * (coefficient / POINTS)
        wide = 3 * onto_grid(rest, 0.0, self.clamp_squares)
        whole[self.features] = np.clip(wide, -2 * POINTS, 2 * POINTS)
        return np.concatenate([whole, wide[None]])

    def entries(self) -> tuple[tuple[int, int], ...]:
        """Which products of two columns are summed."""
        F = self.features
        return (*((f, F) for f in range(F)), (F + 1, F + 1))


def weights_of(features: int) -> tuple[int, int]:
    """By what products of a residual with a feature are multiplied before the noise, and by what its square is: 2 p s and s, p = 6 / F.

    In units of C and C² products weigh p times as much as the square then, and what it adds to the sensitivity is a tenth. With
    less weight sigma would be wider than coefficients; with twice as much, noise on products would grow by a tenth.
    """
    both = gcd(2 * TOGETHER, features)
    return 2 * TOGETHER // both, features // both


def statistics_of(regression: Regression) -> tuple[str, ...]:
    """Names of the sums of residuals."""
    names = [name.partition(" ")[2].rpartition(" ")[0] for name in _products(regression)]
    return ("sum residual", *(f"sum {name} residual" for name in names), "sum residual²")


def _products(regression: Regression) -> list[str]:
    """Names of products of a feature with the response, but for the constant."""
    last = len(regression.names)
    return [name for name, (i, j) in zip(regression.statistics(), regression.entries, strict=True) if 0 < i < j == last]


def sensitivity_of(regression: Regression) -> Sensitivity:
    """How far one record, replaced by another, can move the sums of residuals together, exactly, in lattice units.

    Let x and x' be the features of the two, each at most 1 in size, the first of them 1, and r and r' their residuals, in units of C: any
    numbers in [-3/2, 3/2], which in products are clamped to [-1, 1]: z(r). Then abs(x_j z(r) - x'_j z(r')) <= z(a) + z(b) with a = abs(r)
    and b = abs(r'). Let a >= b. The F products, times p, and the square move by at most

        p F (z(a) + z(b)) + a² - b².

    That grows with a, so a = 3/2. Its derivative by b is p F - 2 b > 0 below 1, because p F = 6, and -2 b above. So it is largest at
    b = 1: 2 p F + 5/4. It is attained by x = x' = (1, ..., 1), r = 3/2 and r' = -1. The squared L2 distance is at most
    p² F (z(a) + z(b))² + (a² - b²)², which grows with a as well; by b its derivative is 2 p² F (1 + b) - 4 b (9/4 - b²) below 1, of which
    the first is at least 12, because p² F = 36 / F >= 6, and the second at most 4 (9/4), and negative above: 4 p² F + 25/16. All of it is
    in units of 4 s POINTS² lattice units, and their square, with the weights 2 p s and s of ``weights_of``.
    """
    F, (products, square) = len(regression.names), weights_of(len(regression.names))
    assert fits(regression)
    why = (
        f"products of {F} features with a residual on [-1, 1], times {TOGETHER / F:.3g}, and its square on [0, 9/4], together:"
        f" {2 * TOGETHER + 1.25}"
    )
    L1, L2 = (4 * products * F + 5 * square) * POINTS**2, (16 * products**2 * F + 25 * square**2) * POINTS**4
    return Sensitivity(L1, L2, max(2 * products, 9 * square) * POINTS**2, why)


def fits(regression: Regression) -> bool:
    """Whether the argument of ``sensitivity_of`` and the law are about such a likelihood: all features are private, numbers public."""
    private = sum(regression.private)
    one_normal = regression.q == 1 and not regression.link and not regression.scale_known and not regression.counted
    return one_normal and private in FEATURES and private == len(regression.names) - 1


def worth_it(regression: Regression, records: int, epsilon: Fraction) -> bool:
    """Whether residuals are released: a rule from public numbers, at which most coefficients become narrower and some may become wider."""
    return fits(regression) and records * epsilon >= ENOUGH * sum(regression.private)


def residuals_in_words(regression: Regression) -> str:
    """When residuals are released, in words, after others; nothing where they never are."""
    if not fits(regression):
        return ""
    least = ENOUGH * sum(regression.private)
    return (
        f"; with mechanism=Laplace(residuals=True), where records times epsilon are {least:,} or more, half of epsilon pays for sums of"
        " residuals, after which most coefficients are narrower; residuals are clamped, and intervals of the intercept allow for errors"
        " that are skew"
    )


def kept(k: float) -> tuple[float, float]:
    """What clamping to [-k, k] leaves of a standard normal variable z: of its covariance with z, and of its mean square.

    The first is also P(abs(z) < k). For jointly normal x and z the covariance of x with the clamped z is that part of the one with z.
    """
    inside, density, beyond = erf(k / sqrt(2)), exp(-(k**2) / 2) / sqrt(2 * pi), erfc(k / sqrt(2)) / 2
    return inside, inside - 2 * k * density + 2 * k**2 * beyond


def cut_off(k: float) -> float:
    """By how many sigma clamping to [-k, k] may move the mean of residuals: the standard deviation of what a posterior allows for.

    It is what the mean of exponential errors, the most skew of those that are common, is moved by: the mean of z - k beyond k, z + 1
    being exponential. Errors that are symmetric about 0 are not moved. All sums of residuals move together, as an intercept moves them.
    """
    return exp(-(1 + k))


def next_residuals(regression: Regression, moments: np.ndarray, n: int, noise: float) -> Residuals:
    """Where residuals are taken, from what was released. Any result is as private as another.

    Parameters
    ----------
    moments : (F + 1, F + 1) ndarray
        Of features and response, with noise, scaled to [-1, 1].
    n : int
        Records.
    noise : float
        Standard deviation of the noise before anything that was multiplied is divided.
    """
    F, (every, response) = len(regression.names), regression.multipliers
    values, vectors = np.linalg.eigh(moments[:F, :F])
    lengths = np.maximum(values, noise / every)
    features = (vectors * lengths) @ vectors.T
    square = max(moments[F, F] / n, 0.0)
    # Coefficients are normal about 0 with standard deviation 1 beforehand: about as large as those that bounds allow.
    variances = (noise / response) ** 2 + square * lengths + 1e-12  # of products with the response, along each of the vectors
    covariance = (vectors / (lengths**2 / variances + 1)) @ vectors.T
    b = np.clip(covariance @ (vectors * (lengths / variances)) @ vectors.T @ moments[:F, F], -FARTHEST, FARTHEST)
    left = np.array([*-b, 1.0])
    # The noise on that mean square, of which one standard deviation is added to be sure; and what b may be off by.
    deviations = np.full((F + 1, F + 1), noise / every)
    deviations[:F, F] = deviations[F, :F] = noise / response
    deviations[0, 0] = 0.0
    twice = np.outer(left, left) * (2 - np.eye(F + 1)) * deviations
    off = sqrt(float((np.triu(twice) ** 2).sum()))
    variance = (max(float(left @ moments @ left), 0.0) + off + max(float((features * covariance).sum()), 0.0)) / n
    spread = sqrt(variance)
    clamp = min(max(min(WIDE * spread, max(NARROW * spread, LARGE)), LEAST), 1.0)
    return Residuals(tuple(map(float, b)), clamp)
