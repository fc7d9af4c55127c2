"""Residuals: what a linear likelihood is released as a second time, at coefficients that its first release tells.

Noise on second moments has the scale of the bounds of the response. What is left of the response once b'D is taken off, with coefficients b
that are public, varies less. So after the second moments, at a part of epsilon, the rest of it pays for the sums over records of

    D r  and  r²,  with r = w - b'D, clamped to [-C, C],

in units of C and C². Both b and C are computed from what the first release says, noise and all (``next_residuals``), which is
post-processing: the second release is one of adaptive composition, and its sensitivity, in units of C, is known before the first.

Given the exact moments M = sum D D', S = sum D w and sum w², sums of residuals that are not clamped are S - M b and so on: the noise on M
costs slopes only as far as they are from b. What clamping takes off is told by the normal law (``kept``; docs/theory.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import erf, erfc, exp, pi, sqrt

import numpy as np

from pymc_dp.families.family import POINTS, Sensitivity, onto_grid
from pymc_dp.families.second_moments import Regression

FIRST = Fraction(2, 5)
"""The share of epsilon that pays for second moments."""
ENOUGH = 7000
"""Records times epsilon, for each private feature, from which on residuals are released: with fewer, coefficients told by so small a part of
epsilon may be so far off that more is lost than gained."""
MOST_FEATURES = 5
"""The most private features with which that was measured."""
WIDE = 3.0
"""So many standard deviations of a residual it may be large, before it is clamped,"""
NARROW = 2.5
"""or so many, if that is more than"""
LARGE = 0.8
"""this part of half the response's range."""
LEAST = 2.0**-20
"""The least C, in parts of half the response's range."""
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
    def weights(self) -> tuple[int, ...]:
        """By what each of the F + 1 sums is multiplied before the noise."""
        return (*[1] * self.features, weight_of_square(self.features))

    @property
    def units(self) -> np.ndarray:
        """What 1 is in each of the F + 1 released numbers, in lattice units of a response on [-1, 1]: (F + 1,)."""
        return self.clamp ** np.array([*[1.0] * self.features, 2.0]) / np.array(self.weights)

    def columns(self, whole: np.ndarray) -> np.ndarray:
        """Whole numbers (F + 1, N) from -POINTS to POINTS: features as they are, and residuals in place of the response, both on their grid.

        Every step is elementwise, so that a record's residual rests on the record and on what is public, and on nothing else.

        Parameters
        ----------
        whole : (F + 1, N) float64 ndarray
            Features and the response on their grids, POINTS standing for 1; it is changed.
        """
        rest = whole[self.features] / POINTS
        for f, coefficient in enumerate(self.coefficients):
            rest = rest - whole[f] * (coefficient / POINTS)
        onto_grid(rest, 0.0, self.clamp, whole[self.features])
        return whole

    def entries(self) -> tuple[tuple[int, int], ...]:
        """Which products of two columns are summed."""
        return tuple((f, self.features) for f in range(self.features + 1))


def weight_of_square(features: int) -> int:
    """By what squares of residuals are multiplied before the noise: as much as costs nothing (``sensitivity_of``)."""
    return features // 2


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
    numbers in [-1, 1], since residuals are clamped. Then abs(x_j r - x'_j r') <= abs(r) + abs(r'). So with a = abs(r) >= b = abs(r') the F
    products and the square, which is multiplied by s, move by at most

        F (a + b) + s (a² - b²).

    That grows with a; and its derivative by b, F - 2 s b, is not negative where 2 s <= F. So it is at most its value at a = b = 1, which is
    2 F: the square costs nothing. It is attained by x = x' and r = -r'. The squared L2 distance is at most
    (a + b)² (F + s² (a - b)²), whose derivative by b has the sign of F - 2 s² b (a - b) >= F - s² / 2 >= F - F² / 8. Where F <= 8 that is
    not negative, and the distance at most 4 F.
    """
    F = len(regression.names)
    assert fits(regression)
    why = f"products of {F} features with a residual on [-1, 1], and its square times {weight_of_square(F)}, together: {2 * F}"
    return Sensitivity(2 * F * POINTS**2, 4 * F * POINTS**4, (F + weight_of_square(F)) * POINTS**2, why)


def fits(regression: Regression) -> bool:
    """Whether the argument of ``sensitivity_of`` and the law are about such a likelihood: all features are private, numbers public."""
    private = sum(regression.private)
    one_normal = regression.q == 1 and not regression.link and not regression.scale_known and not regression.counted
    return one_normal and 1 <= private <= MOST_FEATURES and private == len(regression.names) - 1


def worth_it(regression: Regression, records: int, epsilon: Fraction) -> bool:
    """Whether residuals are released, from what is public: no coefficient is then expected to be more than a tenth wider than without."""
    return fits(regression) and records * epsilon >= ENOUGH * sum(regression.private)


def kept(k: float) -> tuple[float, float]:
    """What clamping to [-k, k] leaves of a standard normal variable z: of its covariance with z, and of its mean square.

    The first is also P(abs(z) < k). For jointly normal x and z the covariance of x with the clamped z is that part of the one with z.
    """
    inside, density, beyond = erf(k / sqrt(2)), exp(-(k**2) / 2) / sqrt(2 * pi), erfc(k / sqrt(2)) / 2
    return inside, inside - 2 * k * density + 2 * k**2 * beyond


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
    features = (vectors * np.maximum(values, noise / every)) @ vectors.T
    square = max(moments[F, F] / n, 0.0)
    # Coefficients are normal about 0 with standard deviation 1 beforehand: about as large as those that bounds allow.
    onto = features @ np.linalg.inv((noise / response) ** 2 * np.eye(F) + square * features)
    covariance = np.linalg.inv(onto @ features + np.eye(F))
    b = np.clip(np.nan_to_num(covariance @ onto @ moments[:F, F]), -FARTHEST, FARTHEST)
    left = np.array([*-b, 1.0])
    # The noise on that mean square, of which one standard deviation is added to be sure; and what b may be off by.
    deviations = np.full((F + 1, F + 1), noise / every)
    deviations[:F, F] = deviations[F, :F] = noise / response
    deviations[0, 0] = 0.0
    twice = np.outer(left, left) * (2 - np.eye(F + 1)) * deviations
    off = sqrt(float((np.triu(twice) ** 2).sum()))
    variance = (max(float(left @ moments @ left), 0.0) + off + max(float((features * covariance).sum()), 0.0)) / n
    spread = sqrt(variance) if np.isfinite(variance) else 1.0
    clamp = min(max(min(WIDE * spread, max(NARROW * spread, LARGE)), LEAST), 1.0)
    return Residuals(tuple(map(float, b)), clamp)
