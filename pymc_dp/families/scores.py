"""Scores: what a regression with a logit or log link is released as.

At coefficients a that are public, the anchor, a record with scaled features D = (1, u, ...), all in [-1, 1], and response y brings

    score        D (y - mean),  mean = inverse link of D'a
    information  weight D D',   weight = derivative of the mean: mean (1 - mean) for logit, mean for log, less where counts are clamped.

Summed over records, the score is normal about information times (coefficients - anchor), to first order, with the information as its
covariance: second moments of a normal response with sigma 1, whatever the features' distribution (docs/theory.md). The nearer the
anchor, the better that is. So three rounds are released, each at the anchor that the one before tells; the last has most of epsilon,
and it alone is what a posterior is drawn from. Everything but ``record_scores`` is arithmetic on what is public.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from math import ceil, exp

import numpy as np

from pymc_dp.families.family import POINTS, Sensitivity

ROUNDS = (Fraction(3, 20), Fraction(1, 4), Fraction(3, 5))
"""Shares of epsilon, or of rho with Gaussian noise.

An anchor need not be exact: what it is off by is squared in what the last round leaves open.
"""
PARTS = 64
"""Pieces of the means from 1/2 to 1, in each of which a score and its weight are bounded by its ends."""
UNIT = (2 * PARTS) ** 2
"""What bounds of scores and weights are whole numbers of: 1/UNIT."""
STEPS = 40
"""Levenberg-Marquardt steps towards coefficients that fit best."""
STRAIN = 0.2
"""The largest part of the mean of scores that a straight line may be off by."""
FARTHEST = 40.0
"""The largest linear predictor of which a mean is taken."""
LEAST_VARIANCE = 1e-9
"""Of any combination of features, as far as an anchor is concerned."""
CONCENTRATION = 1e-3, 200.0
"""How much nearer than -1 and 1, and to its mean, a beta variable lies: the sum of its parameters."""


@dataclass(frozen=True)
class Scores:
    """Of which regression.

    Attributes
    ----------
    features : int
        F, the constant 1 included.
    link : {"logit", "log"}
    most : float
        The largest response; 1 with logit. Counts beyond it are taken for it.
    predictor : (float, float)
        Between which values the linear predictor is taken to lie. With a log link, records beyond the upper one count less.
    known : bool
        Whether all features are public, so that the information is: then the scores alone are released, and a record in the place of
        another has its features.
    public_norm, public_square : float
        Then, the largest sum of absolute values, and of squares, of one record's features.
    """

    features: int
    link: str
    most: float
    predictor: tuple[float, float]
    known: bool
    public_norm: float
    public_square: float

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
        1 - it, a score is at most m and the weight is m (1 - m), which falls from 1/2 on.
        """
        if self.link == "log":
            return np.array([[UNIT, 0, ceil(self.largest_weight * UNIT)]], dtype=np.int64)
        ends = range(PARTS, 2 * PARTS)
        return np.array([[2 * PARTS * (k + 1), (k + 1) * (2 * PARTS - k - 1), k * (2 * PARTS - k)] for k in ends], dtype=np.int64)

    def norms(self) -> tuple[int, int]:
        """L1 norm and squared L2 norm, at most, of what one record adds, in lattice units of 1/POINTS² and their squares.

        With features at most 1 in size F scores are at most q, and F (F + 1) / 2 weights at most w. Each is rounded, by half a unit; what
        floating point does before is far less than another half.
        """
        F, many = self.features, self.released
        pairs = 0 if self.known else F * (F + 1) // 2
        q, _, w = self._pieces.T
        norm = int((F * q + pairs * w).max()) * (POINTS**2 // UNIT) + many
        square = int((F * q**2 + pairs * w**2).max()) * (POINTS**2 // UNIT) ** 2
        return norm, square + 2 * norm + many

    @property
    def released(self) -> int:
        """K: how many sums."""
        return self.features if self.known else self.features * (self.features + 3) // 2

    def reach(self, moves: bool) -> Sensitivity:
        """How far one record, replaced by another, can move the sums together (docs/theory.md).

        In two cells (``moves``): by what either adds. In one: of public features only y changes, by ``most``, and a score by that times
        the feature. Of private ones ``_apart`` tells. Two roundings, and what floating point does before, change an entry by less than
        two units, and (d + 2)² is d² + 4 d + 4.
        """
        F, many = self.features, self.released
        one, square_of_one = self.norms()
        if self.known:
            span = Fraction(ceil(self.most / self.unit * POINTS), POINTS)
            difference = ceil(span * ceil(self.public_norm * POINTS) * POINTS)
            square = ceil(span**2 * ceil(self.public_square * POINTS) * POINTS**3)
            why = f"{F} scores of public features, in which only the response changes: {difference / POINTS**2:.4g}"
        else:
            difference, square = (self._apart(power) * (POINTS**2 // UNIT) ** power for power in (1, 2))
            why = f"{F} scores and {many - F} weights, which are small where scores are large, together: {difference / POINTS**2:.4g}"
        L1 = difference + 2 * many
        L2 = square + 4 * L1 + 4 * many
        if moves:
            L1, L2 = max(L1, 2 * one), max(L2, 2 * square_of_one)
        return Sensitivity(L1, L2, one, why)

    def _apart(self, power: int) -> int:
        """The largest sum of differences (power 1), or of their squares (2), of two records in one cell, in units of 1/UNIT**power.

        Let the sizes of y - mean and the weights of two records be q, r and w, v. Diagonal weights w u² are never negative: they differ
        by at most the larger of w and v, and that of the constant by |w - v|. Every other difference is linear in each feature of
        either record, so their sum is convex in each, and largest where features are -1 or 1. There, of the F products of feature and
        score, let k have different signs in the two records: they differ by q + r, the others by |q - r|. A product of two features
        has different signs where one of them is of the k and the other is not: k (F - k) weights differ by w + v, the others by |w - v|.
        All this is convex in q, r, w and v, so largest at the ends of a piece.
        """
        F, best = self.features, 0
        first, second = self._pieces[:, None], self._pieces[None]
        for q, r in ((first[..., 0], second[..., 0]), (first[..., 0], 0), (0, second[..., 0])):
            for w, v in product((first[..., 1], first[..., 2]), (second[..., 1], second[..., 2])):
                squares = (F - 1) * np.maximum(w, v) ** power + np.abs(w - v) ** power
                for k in range(F + 1):
                    across = k * (F - k)
                    scores = k * (q + r) ** power + (F - k) * np.abs(q - r) ** power
                    others = across * (w + v) ** power + (F * (F - 1) // 2 - across) * np.abs(w - v) ** power
                    best = max(best, int((scores + squares + others).max()))
        return best


def record_scores(of: Scores, columns: np.ndarray, responses: np.ndarray, anchor: np.ndarray) -> Iterator[np.ndarray]:
    """One int64 array (N,) after another: entries of the information, row by row, then scores after each row, in units of 1/POINTS².

    In the order of the upper triangle of (features, response). Every step is elementwise, and means are computed record by record with
    the C library's exponential: NumPy's own may differ in the last digit with a record's place in the array.

    Parameters
    ----------
    columns : (N, F) int ndarray
        Features on their grid, POINTS standing for 1.
    responses : (N,) ndarray
        Within their bounds.
    anchor : (N, F) ndarray
        Coefficients of scaled features.
    """
    F, u = of.features, columns / POINTS
    predictor = np.zeros(len(u))
    for f in range(F):
        predictor = predictor + u[:, f] * anchor[:, f]
    if of.link == "logit":
        small = np.array([exp(-min(abs(value), FARTHEST)) for value in predictor.tolist()])
        mean, weight = np.where(predictor >= 0, 1.0, small) / (1 + small), small / (1 + small) ** 2
        residual = responses - mean
    else:
        top = of.predictor[1]
        rate = np.array([exp(max(min(value, FARTHEST), -FARTHEST)) for value in predictor.tolist()])
        # Above the bound a record counts exp(bound - predictor) times: its features alone decide, so the expected score stays right.
        count = np.array([exp(min(top - min(value, FARTHEST), 0.0)) for value in predictor.tolist()])
        mean, weight = _clamped(rate, of.most)
        residual, weight = count * (responses - mean), count * weight
    score = np.clip(np.nan_to_num(residual / of.unit), -1.0, 1.0)
    weight = np.clip(np.nan_to_num(weight / of.unit), 0.0, of.largest_weight)
    for i in range(F):
        if not of.known:
            for j in range(i, F):
                yield np.rint(weight * u[:, i] * u[:, j] * POINTS**2).astype(np.int64)
        yield np.rint(score * u[:, i] * POINTS**2).astype(np.int64)


def _clamped(rate: np.ndarray, most: float) -> tuple[np.ndarray, np.ndarray]:
    """The mean of a Poisson count Y that is taken for the whole number ``most`` where it is more, and the derivative by log(rate).

    For a function f that grows by 0 to 1 a step, the covariance of Y and f(Y) is rate E[f(Y + 1) - f(Y)] (Chen 1975), which is that
    derivative, rate P(Y < most); and at least the variance of f(Y), since Y - f(Y) grows with Y as well. So the information is never
    less than the variance of the score.
    """
    from scipy.special import pdtr, pdtrc

    below = pdtr(most - 2, rate) if most > 1 else np.zeros_like(rate)
    return rate * below + most * pdtrc(most - 1, rate), rate * pdtr(most - 1, rate)


# ---------- anchors
def first_anchor(of: Scores, batch: tuple[int, ...]) -> np.ndarray:
    """Before anything is known (*batch, F): the middle of the linear predictor's bounds."""
    anchor = np.zeros((*batch, of.features))
    anchor[..., 0] = (of.predictor[0] + of.predictor[1]) / 2
    return anchor


def next_anchor(of: Scores, score: np.ndarray, information: np.ndarray, noise: float, anchor: np.ndarray) -> np.ndarray:
    """Coefficients (B, F) nearer to those of the records, from what was released at an anchor. Any result is as private as another.

    Parameters
    ----------
    score, information : (B, F) and (B, F, F) ndarrays
        With noise, in units of 1.
    noise : float
        Its standard deviation, in these units.
    """
    about, first = anchor, not anchor[..., 1:].any()
    if first and len(score) > 1:  # what all cells say together is where each is expected
        all_of_them = score.sum(axis=0)[None], information.sum(axis=0)[None], noise * np.sqrt(len(score))
        about = _inverted(of, *all_of_them, anchor[:1], anchor[:1]) + np.zeros_like(anchor)
    found = _inverted(of, score, information, noise, anchor, about)
    middle, half = first_anchor(of, (1,)), (of.predictor[1] - of.predictor[0]) / 2
    return middle + np.clip(np.nan_to_num(found - middle), -2 * half, 2 * half)


def straightened(of: Scores, score: np.ndarray, information: np.ndarray, noise: float, anchor: np.ndarray) -> np.ndarray:
    """Coefficients (B, F) about which a straight line is where scores are expected to come from what they are expected to be there.

    The line is information times coefficients less these. At the anchor it would touch the curve; from a little off, as far as means
    and covariances of the features tell, it meets it.
    """
    _, mean, own, moments = _told_of(of, information, noise)
    step = _inverted(of, score, information, noise, anchor, anchor) - anchor
    expected = _expected(of, anchor)(anchor, step, mean, own)
    return anchor + step - np.linalg.solve(moments, expected[..., None])[..., 0]


def _spread(of: Scores) -> np.ndarray:
    """How far (F,) coefficients of scaled features may be from where they are expected beforehand: a standard deviation."""
    return (of.predictor[1] - of.predictor[0]) / 4 * np.array([2.0, *[1.0] * (of.features - 1)])


def _step(of: Scores, score: np.ndarray, information: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean (B, F) and covariance (B, F, F) of coefficients less their anchor, which are normal about 0 beforehand."""
    own = information / of.unit
    ridge = noise**2 + LEAST_VARIANCE * np.einsum("bii->b", np.abs(own))
    onto = information @ np.linalg.inv(own + ridge[:, None, None] * np.eye(of.features))
    covariance = np.linalg.inv(onto @ information + np.diag(_spread(of) ** -2.0))
    return (covariance @ onto @ score[..., None])[..., 0], covariance


def widened(of: Scores, score: np.ndarray, information: np.ndarray, noise: float) -> np.ndarray:
    """By how much the standard deviation of a score grows (B,), for what a straight line leaves open at coefficients off the anchor.

    Where the linear predictor is off by t, the mean moves by weight t (1 + t (1 - 2 mean) / 2 + ...) with logit, and by weight
    (exp(t) - 1) with log: by a part of weight t that grows with t, and in which direction is not known. With v the mean square of t that
    is expected now, over records by weight, whitened scores are root(size v) long, and each may be off by
    STRAIN root(v / (v + 1/4)) of that, beside its own 1.

    Parameters
    ----------
    score, information : (B, F) and (B, F, F) ndarrays
        As far as released values tell, in units of 1.
    noise : float
        Standard deviation of the noise on a score.
    """
    step, covariance = _step(of, score, information, noise)
    size = np.maximum(information[:, 0, 0], 1e-9)
    square = step[:, :, None] * step[:, None, :] + covariance
    v = np.einsum("bij,bij->b", information, square) / size
    return np.sqrt(1 + size * of.unit * (STRAIN * v) ** 2 / (v + 0.25))


def _told_of(of: Scores, information: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What information tells: the sum of weights (B,), means (B, F - 1) and covariances of the features, and (B, F, F) moments of all.

    By weight, and no smaller than their noise.
    """
    count = np.maximum(information[:, 0, 0], noise)
    mean = np.clip(information[:, 0, 1:] / count[:, None], -1.0, 1.0)
    own = information[:, 1:, 1:] / count[:, None, None] - mean[:, :, None] * mean[:, None, :]
    values, vectors = np.linalg.eigh(own)
    least = np.clip(noise / count, LEAST_VARIANCE, 0.1)
    own = (vectors * np.clip(values, least[:, None], of.features)[:, None]) @ vectors.transpose(0, 2, 1)
    moments = np.concatenate([np.ones((len(count), 1)), mean], axis=1)
    moments = moments[:, :, None] * moments[:, None, :]
    moments[:, 1:, 1:] += own
    return count, mean, own, moments


def _inverted(of: Scores, score: np.ndarray, information: np.ndarray, noise: float, anchor: np.ndarray, about: np.ndarray) -> np.ndarray:
    """Coefficients (B, F) at which the scores are expected, as far as means and covariances of the features, by weight, tell.

    ``about`` is what is expected of coefficients beforehand. With a logit link a step from an anchor with slopes is no longer than 1, in
    the predictor's root mean square, by weight: far from the anchor's own records its weights tell little.
    """
    spread = _spread(of)
    count, mean, own, moments = _told_of(of, information, noise)
    root = np.linalg.inv(np.linalg.cholesky(moments / of.unit + (noise**2 / count)[:, None, None] * np.eye(of.features)))
    root /= np.sqrt(count)[:, None, None]
    expected = _expected(of, anchor)

    def misfit(z: np.ndarray) -> np.ndarray:
        away = score - count[:, None] * expected(anchor, about + z * spread - anchor, mean, own)
        return np.concatenate([(root @ away[..., None])[..., 0], z], axis=1)

    step = about + fitted(misfit, np.zeros((len(score), of.features)))[0] * spread - anchor
    if of.link == "logit" and anchor[..., 1:].any():
        length = np.sqrt(np.einsum("bi,bij,bj->b", step, moments, step))
        step /= np.maximum(length, 1.0)[:, None]
    return anchor + step


def _expected(of: Scores, anchor: np.ndarray) -> Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """By which function of anchor, step, means and covariances of the features scores are expected."""
    if of.link == "log":
        return _by_beta_variables
    return partial(_by_normal_variables, nodes=5 if anchor[..., 1:].any() else 2)


def _by_normal_variables(anchor: np.ndarray, step: np.ndarray, mean: np.ndarray, own: np.ndarray, nodes: int) -> np.ndarray:
    """Scores (B, F) to be expected with a logit link, per unit of weight, if by weight the predictor and the step it makes are normal.

    They are integrated on ``nodes`` x ``nodes`` nodes of Gauss and Hermite. Where a step t is made from a predictor e, the mean moves by
    weight (1 - exp(-t)) g(e + t) / g(e). From an anchor without slopes all weights are the same; with two nodes a step has two values
    then, and a steep slope is found too small rather than too large.

    Parameters
    ----------
    anchor, step : (B, F) ndarrays
        A step is from the anchor.
    mean, own : (B, F - 1) and (B, F - 1, F - 1) ndarrays
        Means and covariances of the features, by weight.
    """
    from scipy.special import expit

    z, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = np.outer(weights, weights).ravel() / weights.sum() ** 2
    first, second = np.repeat(z, nodes), np.tile(z, nodes)
    of_anchor, of_step = ((own @ part[:, 1:, None])[..., 0] for part in (anchor, step))
    middle, moved = (part[:, 0] + (mean * part[:, 1:]).sum(axis=1) for part in (anchor, step))
    s = np.sqrt(np.maximum((anchor[:, 1:] * of_anchor).sum(axis=1), 1e-12))
    of_anchor = of_anchor / s[:, None]
    onto = (of_anchor * step[:, 1:]).sum(axis=1)
    left = of_step - onto[:, None] * of_anchor
    r = np.sqrt(np.maximum((left * step[:, 1:]).sum(axis=1), 1e-12))
    e = middle[:, None] + s[:, None] * first
    t = moved[:, None] + onto[:, None] * first + r[:, None] * second
    e, t = np.clip(e, -FARTHEST, FARTHEST), np.clip(t, -FARTHEST, FARTHEST)
    h = -np.expm1(-t) * expit(e + t) / expit(e)
    level, by_first, by_second = h @ weights, h @ (weights * first), h @ (weights * second)
    slopes = of_anchor * by_first[:, None] + left * (by_second / r)[:, None]
    return np.concatenate([level[:, None], mean * level[:, None] + slopes], axis=1)


def _by_beta_variables(anchor: np.ndarray, step: np.ndarray, mean: np.ndarray, own: np.ndarray) -> np.ndarray:
    """The same with a log link: means are exp(predictor), so that a step t tilts the weights by exp(t).

    Features are taken for beta variables between their bounds, of the same mean and variance, whose correlations are those of normal
    variables: the cumulant generating function is the sum of those of beta variables, and half t' (other covariances) t. It does not
    rest on the anchor.
    """
    from scipy.special import hyp1f1

    t = np.clip(step[:, 1:], -FARTHEST, FARTHEST)
    below = np.clip((1 + mean) / 2, 1e-6, 1 - 1e-6)
    whole = 4 * below * (1 - below)  # the variance of a feature that is -1 or 1
    variance = np.einsum("bii->bi", own)
    size = np.clip(whole / variance - 1, *CONCENTRATION)
    a, b = below * size, (1 - below) * size
    generating = hyp1f1(a, a + b, 2 * t)
    tilted = 2 * below * hyp1f1(a + 1, a + b + 1, 2 * t) / generating - 1
    others = own.copy()
    others[:, range(t.shape[1]), range(t.shape[1])] = np.minimum(variance, whole) - whole / (size + 1)
    along = (others @ t[..., None])[..., 0]
    grown = np.exp(np.clip(step[:, 0] + (np.log(generating) - t + along * t / 2).sum(axis=1), -FARTHEST, FARTHEST))[:, None]
    return np.concatenate([grown - 1, grown * (tilted + along) - mean], axis=1)


def fitted(misfit: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least squares of misfits (M, R) by numbers (M, k), row by row, by Levenberg-Marquardt, and the derivatives (M, R, k) there."""
    k = x.shape[1]

    def slope(x: np.ndarray) -> np.ndarray:
        step = 1e-5
        return np.stack([(misfit(x + step * np.eye(k)[j]) - misfit(x - step * np.eye(k)[j])) / (2 * step) for j in range(k)], axis=2)

    damping, r = np.full(len(x), 1e-2), misfit(x)
    for _ in range(STEPS):
        J = slope(x)
        gram = np.einsum("bri,brj->bij", J, J)
        gradient = np.einsum("bri,br->bi", J, r)
        ridge = damping[:, None] * np.maximum(np.einsum("bii->bi", gram), 1e-12)
        step = np.linalg.solve(gram + ridge[:, :, None] * np.eye(k), gradient[..., None])[..., 0]
        there = x - np.clip(step, -1.0, 1.0)
        found = misfit(there)
        better = (found**2).sum(axis=1) < (r**2).sum(axis=1)
        x, r = np.where(better[:, None], there, x), np.where(better[:, None], found, r)
        damping = np.where(better, damping / 3, damping * 4)
    return x, slope(x)
