"""Scores: what a regression with a logit or log link is released as.

At coefficients a that are public, the anchor, a record with scaled features D = (1, u, ...), all in [-1, 1], and response y brings

    score        D (y - mean),  mean = inverse link of D'a
    information  weight D D',   weight = derivative of the mean: mean (1 - mean) for logit, mean for log, less where counts are clamped.

Summed over records, the score is normal about information times (coefficients - anchor), to first order, with the information as its
covariance: second moments of a normal response with sigma 1, whatever the features' distribution (docs/theory.md). The nearer the
anchor, the better that is. So three rounds are released, each at the anchor that the one before tells; the last has most of epsilon,
and it alone is what a posterior is drawn from (``anchors``). With a logit link one round takes the place of the last two where noise
would hide what they tell, and where it hides little the second has less (``anchors.best_way``).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import ceil, exp, floor

import numpy as np

from pymc_dp.families.family import Sensitivity
from pymc_dp.families.grid import POINTS

ROUNDS = (Fraction(1, 5), Fraction(1, 5), Fraction(3, 5))
"""Shares of epsilon, or of rho with Gaussian noise.

An anchor need not be exact: what it is off by is squared in what the last round leaves open, and a little tells enough. Of 15 kinds of
records that were simulated with a logit link, 5,000 to 33,000 each, linear predictors were off by 1.9 times what they are without
privacy at epsilon 1, geometric mean, and by 2.3 times with 20, 30 and 50 %; of no kind was that better by more than 1 %.
"""
SECOND = Fraction(3, 20), Fraction(1, 10), Fraction(1, 20)
"""What the second of three rounds may have instead, with a logit link; the last has the rest."""
PARTS = 64
"""Pieces of the means from 1/2 to 1, in each of which a score and its weight are bounded by its ends."""
UNIT = (2 * PARTS) ** 2
"""What bounds of scores and weights are whole numbers of: 1/UNIT."""
FARTHEST = 40.0
"""The largest linear predictor of which a mean is taken."""


@dataclass(frozen=True)
class Scores:
    """What a regression with a link is released as: its link and its bounds.

    Attributes
    ----------
    features : int
        F, the constant 1 included.
    link : {"logit", "log"}
    most : float
        The largest response; 1 with logit. Counts beyond it are taken for it.
    predictor : (float, float)
        Between which values the linear predictor is taken to lie. With a log link, records beyond the upper one count less.
    without_slopes : bool
        Whether scores are taken at the first anchor only, where all records have the same mean and weight, which are public.
    times : int
        What the information is multiplied by before the noise, at least 1, and divided by after it.
    """

    features: int
    link: str
    most: float
    predictor: tuple[float, float]
    without_slopes: bool = False
    times: int = 1

    @property
    def rounds(self) -> tuple["Scores", ...]:
        """What is released in every round."""
        return (replace(self, without_slopes=True), *[self] * (len(ROUNDS) - 1))

    @property
    def middle(self) -> float:
        """The predictor at the first anchor, which is that of every record."""
        return (self.predictor[0] + self.predictor[1]) / 2

    @property
    def unit(self) -> float:
        """What scores and weights are divided by, so that both are at most 1 in size.

        With a log link counts are clamped, and so are their means; a weight, rate P(Y < most), is E[Y; Y <= most].
        """
        return self.most

    @property
    def largest_weight(self) -> float:
        """The largest weight, in these units."""
        return 0.25 if self.link == "logit" else min(1.0, exp(self.predictor[1]) / self.unit)

    @cached_property
    def _pieces(self) -> np.ndarray:
        """Bounds (pieces, 3) of one record: the size of y - mean is at most the first, its weight between the second and the third.

        In units of 1/UNIT; the bounds of one of the pieces hold for any record. With logit, y in [0, 1], and m the larger of the mean and
        1 - it, a score is at most m and the weight is m (1 - m), which falls from 1/2 on. Without slopes the mean and the weight are those
        that every record has, to the next whole unit or two on either side.
        """
        if self.without_slopes:
            mean, weight = (float(value[0]) / self.unit for value in _mean_and_weight(self, np.array([self.middle])))
            largest = ceil(max(mean, self.most / self.unit - mean) * UNIT) + 1
            return np.array([[min(largest, UNIT), max(floor(weight * UNIT) - 1, 0), ceil(weight * UNIT) + 1]], dtype=np.int64)
        if self.link == "log":
            return np.array([[UNIT, 0, ceil(self.largest_weight * UNIT)]], dtype=np.int64)
        ends = range(PARTS, 2 * PARTS)
        return np.array([[2 * PARTS * (k + 1), (k + 1) * (2 * PARTS - k - 1), k * (2 * PARTS - k)] for k in ends], dtype=np.int64)

    @property
    def most_added(self) -> tuple[int, int]:
        """L1 norm and squared L2 norm, at most, of what one record adds, in lattice units of 1/POINTS² and their squares.

        With features at most 1 in size F scores are at most q, and F (F + 1) / 2 weights at most w. Each is rounded, by half a unit; what
        floating point does before is far less than another half. Weights are multiplied after that: t by ``times``, and w t, rounded, is at
        most t more, whose square is w² t² + 2 t w t + t².
        """
        F, t = self.features, self.times
        pairs = F * (F + 1) // 2
        q, _, w = self._pieces.T
        norm = int((F * q + t * pairs * w).max()) * (POINTS**2 // UNIT) + F + t * pairs
        square = int((F * q**2 + t**2 * pairs * w**2).max()) * (POINTS**2 // UNIT) ** 2
        return norm, square + 2 * t * norm + F + t**2 * pairs

    @property
    def released(self) -> int:
        """K: how many sums."""
        return self.features * (self.features + 3) // 2

    def sensitivity(self, moves: bool) -> Sensitivity:
        """How far one record, replaced by another, can move the sums together (docs/theory.md).

        In two cells (``moves``): by what either adds. In one ``_apart`` tells, or, where one of the two is left out, what the other adds.
        Two roundings, and what floating point does before, change an entry by less than two units, and (d + 2)² is d² + 4 d + 4; one
        that is then multiplied by t, ``times``, by less than 2 t, and (d + 2 t)² is d² + 4 t d + 4 t².
        """
        F, many, t = self.features, self.released, self.times
        pairs = many - F
        norm, norm_square = self.most_added
        difference, square = (self._apart(power) * (POINTS**2 // UNIT) ** power for power in (1, 2))
        of = f"{pairs} weights" if t == 1 else f"{pairs} weights times {t}"
        why = f"{F} scores and {of}, which are small where scores are large, together: {difference / POINTS**2:.4g}"
        L1 = difference + 2 * (F + t * pairs)
        L2 = square + 4 * t * L1 + 4 * (F + t**2 * pairs)
        cells = 2 if moves else 1
        return Sensitivity(max(L1, cells * norm), max(L2, cells * norm_square), norm, why)

    def _apart(self, power: int) -> int:
        """The largest sum of differences (power 1), or of their squares (2), of two records in one cell, in units of 1/UNIT**power.

        Let the sizes of y - mean and the weights of two records be q, r and w, v. Diagonal weights w u² are never negative: they differ
        by at most the larger of w and v, and that of the constant by |w - v|. Every other difference is linear in each feature of
        either record, so their sum is convex in each, and largest where features are -1 or 1. There, of the F products of feature and
        score, let k have different signs in the two records: they differ by q + r, the others by |q - r|. A product of two features
        has different signs where one of them is of the k and the other is not: k (F - k) weights differ by w + v, the others by |w - v|.
        All this is convex in q, r, w and v, so largest at the ends of a piece; so it is with all weights multiplied by the same.
        """
        F, best, times = self.features, 0, self.times**power
        first, second = self._pieces[:, None], self._pieces[None]
        for q, r in ((first[..., 0], second[..., 0]), (first[..., 0], 0), (0, second[..., 0])):
            for w, v in product((first[..., 1], first[..., 2]), (second[..., 1], second[..., 2])):
                squares = (F - 1) * np.maximum(w, v) ** power + np.abs(w - v) ** power
                for k in range(F + 1):
                    across = k * (F - k)
                    scores = k * (q + r) ** power + (F - k) * np.abs(q - r) ** power
                    others = across * (w + v) ** power + (F * (F - 1) // 2 - across) * np.abs(w - v) ** power
                    best = max(best, int((scores + times * (squares + others)).max()))
        return best


def record_scores(scores: Scores, columns: np.ndarray, responses: np.ndarray, anchor: np.ndarray) -> Iterator[np.ndarray]:
    """One int64 array (N,) after another: entries of the information, row by row, then scores after each row, in units of 1/POINTS².

    In the order of the upper triangle of (features, response), the information multiplied by ``times``. Every step is elementwise, and
    means are computed record by record with the C library's exponential: NumPy's own may differ in the last digit with a record's place in
    the array.

    Parameters
    ----------
    columns : (N, F) int ndarray
        Features on their grid, POINTS standing for 1.
    responses : (N,) ndarray
        Within their bounds.
    anchor : (N, F) ndarray
        Coefficients of scaled features.
    """
    F, u = scores.features, columns / POINTS
    predictor = np.zeros(len(u))
    for f in range(F):
        predictor = predictor + u[:, f] * anchor[:, f]
    mean, weight = _mean_and_weight(scores, predictor)
    residual = responses - mean
    if scores.link == "log":
        # Above the bound a record counts exp(bound - predictor) times: its features alone decide, so the expected score stays right.
        count = np.array([exp(min(scores.predictor[1] - min(value, FARTHEST), 0.0)) for value in predictor.tolist()])
        residual, weight = count * residual, count * weight
    score = np.clip(np.nan_to_num(residual / scores.unit), -1.0, 1.0)
    weight = np.clip(np.nan_to_num(weight / scores.unit), 0.0, scores.largest_weight)
    for i in range(F):
        for j in range(i, F):
            yield np.rint(weight * u[:, i] * u[:, j] * POINTS**2).astype(np.int64) * scores.times
        yield np.rint(score * u[:, i] * POINTS**2).astype(np.int64)


def _mean_and_weight(scores: Scores, predictor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The means (N,) of records with these linear predictors (N,), and their derivatives, elementwise."""
    if scores.link == "logit":
        small = np.array([exp(-min(abs(value), FARTHEST)) for value in predictor.tolist()])
        return np.where(predictor >= 0, 1.0, small) / (1 + small), small / (1 + small) ** 2
    rate = np.array([exp(max(min(value, FARTHEST), -FARTHEST)) for value in predictor.tolist()])
    return _clamped(rate, scores.most)


def _clamped(rate: np.ndarray, most: float) -> tuple[np.ndarray, np.ndarray]:
    """The mean of a Poisson count Y that is taken for the whole number ``most`` where it is more, and the derivative by log(rate).

    For a function f that grows by 0 to 1 a step, the covariance of Y and f(Y) is rate E[f(Y + 1) - f(Y)] (Chen 1975), which is that
    derivative, rate P(Y < most); and at least the variance of f(Y), since Y - f(Y) grows with Y as well. So the information is never
    less than the variance of the score.
    """
    from scipy.special import pdtr, pdtrc

    below = pdtr(most - 2, rate) if most > 1 else np.zeros_like(rate)
    return rate * below + most * pdtrc(most - 1, rate), rate * pdtr(most - 1, rate)
