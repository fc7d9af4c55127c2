"""The best linear unbiased estimate of one more answer, and the law of its error (XX12). History stands before, completion beside.

The estimate is a weighted sum of noisy answers, so its error is the same weighted sum of their noises, whose law is known whatever
the records are: its intervals are right for a question that was fixed beforehand, and they are called that, *fixed-question intervals*.
Whoever keeps asking until an interval pleases needs the posterior given every answer, ``completion``.

Shapes: m answers, R rows (distinct questions), r rows of a basis, G atoms. Everything is in lattice units of the questions but for what
an ``Estimate``, an ``Interval`` and a ``Law`` say, which is in units of the answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from hashlib import sha256
from math import ceil, exp, expm1, floor, gcd, inf, log, log1p, log10, pi

import numpy as np
from scipy.linalg import lu_factor, qr

from pymc_dp.accounting import Refusal, exact_epsilon
from pymc_dp.queries.history import History, divided, sensitivity_of
from pymc_dp.queries.language import Question

PUBLIC = -1
"""Stands for the row of a basis that is known exactly: the number of records."""
INSIDE, OUTSIDE = 1e-9, 1e-4
"""What is left of a row of size 1 after subtracting what a basis explains: below the first it is rounding, above the second it is not."""
PRIME = 2**31 - 1
MANY = 32
"""More new answers than these are taken in all at once."""
LEAST_VARIANCE = 1e-6
"""Answers are not weighted as if they had less: of noise that is different from 0 once in a million times."""
NO_VARIANCE = 1e-30
LOST = 1e-12
"""The most probability outside the grid on which a law is computed."""
CLOSEST = 1e-10
"""A confidence is at least so far from 1: what is computed is right to 1e-11."""
POINTS = 2**16
"""Of the grid where noises have no common lattice."""
SHARP = 32.0
"""The exponent of the window by which values are given to points of that grid: what it leaves out is 64 exp(-32), 8e-13."""
MOST_POINTS = 2**18
"""Of the grid where they have one."""
DENOMINATORS = 60
FAINT = 1e-14
"""A characteristic function below this is taken as 0."""
SMALL = 0.2
"""Below this argument a characteristic function is its first cumulants."""


@dataclass(frozen=True, eq=False)
class Basis:
    """The answers so far as r independent rows with exact inverse and covariance; updated by one row at a time.

    Attributes
    ----------
    answers : int
        How many were taken in.
    rows : np.ndarray
        int64, (r,): the rows of the history that are independent; PUBLIC first under ``replace``.
    pivots : tuple of tuple of int
        r cells on which they are independent, as levels of the touched columns.
    inverse : np.ndarray
        (r, r): of the rows, each divided by its largest entry, on the pivots.
    dependent, coefficients : np.ndarray
        int64, (R - r,), the other rows; (R - r, r), the same as sums of the basis.
    precision : np.ndarray
        (R,): the sum over a row's answers of 1 / variance, of the row so divided.
    tops : np.ndarray
        (R,): the largest entry of every row.
    covariance : np.ndarray
        (r, r): of the best estimates of the basis, (M' W M)^-1 with M the rows as sums of the basis.
    """

    answers: int
    rows: np.ndarray
    pivots: tuple[tuple[int, ...], ...]
    inverse: np.ndarray
    dependent: np.ndarray
    coefficients: np.ndarray
    precision: np.ndarray
    tops: np.ndarray
    covariance: np.ndarray


@dataclass(frozen=True, eq=False)
class Estimate:
    """The best linear unbiased estimate of a question's answer from a history.

    Attributes
    ----------
    question : Question
    value : float
        In units of the answer.
    coefficients : np.ndarray
        (m,): A of XX12, Theorem 3.1: units of the answer per lattice unit of every noisy answer.
    scales : np.ndarray
        (m,): of the noises.
    """

    question: Question
    value: float
    coefficients: np.ndarray
    scales: np.ndarray

    @property
    def variance(self) -> float:
        """Of its error: the sum of coefficient^2 2q / (1 - q)^2, q = exp(-1/scale), which is the discrete Laplace law's."""
        return float((self.coefficients**2 * variances(self.scales)).sum())

    @cached_property
    def law(self) -> "Law":
        """Of its error, by Algorithm 2 of XX12."""
        return convolved(self.coefficients, self.scales)


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

    def below(self, distance: float, *, equal: bool = False) -> float:
        """P(error < distance), or <= if ``equal``; or less."""
        if distance > 0 or (equal and distance == 0):
            return (1 + self._points(distance - self.slack, equal=equal)) / 2
        return (1 - self._points(self.slack - distance, equal=not equal)) / 2

    def distance(self, confidence: float) -> float:
        """The smallest distance with ``within(distance) >= confidence``: Algorithm 3 of XX12."""
        return self._least(_checked(confidence)) * self.step + self.slack


@dataclass(frozen=True, eq=False)
class OneNoise(Law):
    """Of a multiple of one noise, in closed form, where a grid would have too many points: ``mass`` is empty.

    P(abs(noise) <= k) = 1 - 2 q^(k + 1) / (1 + q) with q = exp(-1 / scale), as in ``fresh_epsilon``.
    """

    scale: float

    def _up_to(self, k: int) -> float:
        return -expm1(log(2) - (k + 1) / self.scale - log1p(exp(-1 / self.scale)))

    def _least(self, confidence: float) -> int:
        found = max(floor((log(2) - log1p(-confidence) - log1p(exp(-1 / self.scale))) * self.scale) - 1, 0)
        while self._up_to(found) < confidence:
            found += max(found // 2**50, 1)
        return found


@dataclass(frozen=True)
class Interval:
    """Where the answer lies, in its own units.

    ``kind`` says what the confidence is about. ``"fixed question"``: whatever the records are, so many of the intervals of questions
    fixed beforehand hold their answers; of questions chosen, repeated or given up by earlier answers fewer do.
    """

    value: float
    lower: float
    upper: float
    confidence: float
    kind: str = "fixed question"

    @property
    def length(self) -> float:
        """Upper less lower."""
        return self.upper - self.lower


def variances(scales: np.ndarray) -> np.ndarray:
    """Of discrete Laplace noise: 2q / (1 - q)^2 with q = exp(-1/scale), 1 / (2 sinh(1 / (2 scale))^2)."""
    with np.errstate(over="ignore"):
        return 0.5 / np.sinh(0.5 / np.asarray(scales, dtype=float)) ** 2


# ---------- the estimate
def estimate(history: History, question: Question) -> Estimate | None:
    """The best linear unbiased estimate, or None where the answers do not determine this question.

    XX12, Theorem 3.1: A = Q (H' W H)^+ H' W, if Q is a sum of rows of H, which it is also required to be here. Under ``replace`` the
    number of records is one more row, without noise. With a basis B of the rows, H = M B and Q = t B, so A = t (M' W M)^-1 M' W, all
    in the space of answers.

    Whether Q is a sum of rows is seen on all atoms: t is what it would have to be on r of them. All entries are integers, so what is
    left is either rounding, below 1e-9 of the largest weight, or far more; in between, which was not met, an elimination modulo
    2^31 - 1 decides. What is left below 1e-9 would shift the estimate by that share of one record's weight for every record.

    The first call takes in all answers; after ``append`` only the new ones, each by a bordering of the inverse or one update of the
    covariance.
    """
    parts = divided(history, question)
    if len(parts.parent) > len(history.cells):
        return None
    basis = basis_of(history)
    top = max(float(np.abs(parts.weights).max()), 1.0)
    t, inside, _ = _solved(history, basis, parts.weights, top)
    if not inside:
        return None
    t = t * top
    u = basis.covariance @ t
    by_row = np.zeros(len(history.rows))
    own = basis.rows != PUBLIC
    by_row[basis.rows[own]] = basis.precision[basis.rows[own]] * u[own]
    by_row[basis.dependent] = basis.precision[basis.dependent] * (basis.coefficients @ u)
    # What rounding left of A M = t goes to the rows of the basis themselves, so that the estimate is unbiased to the last digit.
    held = np.zeros(len(t))
    held[own] = by_row[basis.rows[own]]
    left = t - held - by_row[basis.dependent] @ basis.coefficients
    by_row[basis.rows[own]] += left[own]
    places = np.array(history.places, dtype=np.int64)
    share = basis.tops[places] ** 2 / np.maximum(variances(history.scales), LEAST_VARIANCE) / basis.precision[places]
    coefficients = (by_row / basis.tops)[places] * share
    value = float(coefficients @ history.noisy)
    if not own.all():
        assert history.records is not None
        value += float(left[~own][0]) * history.records
    divisor = question.divisor
    return Estimate(question, value / divisor, coefficients / divisor, history.scales)


def basis_of(history: History) -> Basis:
    """The basis of a history: what is remembered of an earlier one, and the answers since."""
    basis = history.remembered.get("basis")
    if basis is None or basis.answers < len(history):
        basis = history.remembered["basis"] = _grown(history, basis)
    return basis


def _grown(history: History, before: Basis | None) -> Basis:
    if before is None or len(history) - before.answers > MANY:
        return _anew(history)
    new = len(history) - before.answers
    most = min(len(before.rows) + new, len(history.cells))
    r, dependent = len(before.rows), list(before.dependent)
    rows, pivots, tops = list(before.rows), list(before.pivots), _tops(history, before.tops)
    inverse, covariance, precision = np.zeros((most, most)), np.zeros((most, most)), np.zeros(len(tops))
    inverse[:r, :r], covariance[:r, :r], precision[: len(before.precision)] = before.inverse, before.covariance, before.precision
    coefficients = np.zeros((len(dependent) + new, most))
    coefficients[: len(dependent), :r] = before.coefficients
    seen = len(before.precision)
    for k in range(before.answers, len(history)):
        row = history.places[k]
        variance = max(float(variances(history.scales[k])), LEAST_VARIANCE) / tops[row] ** 2
        if row >= seen:
            seen = row + 1
            now = Basis(k, np.array(rows, np.int64), tuple(pivots), inverse[:r, :r], *(np.zeros(0),) * 3, tops, covariance)
            t, inside, left = _solved(history, now, history.rows[row], tops[row])
            if inside:
                coefficients[len(dependent), :r] = t
                dependent.append(row)
            else:
                pivot = int(np.abs(left).argmax())
                column = _scaled(history, now, np.array([pivot]))[:, 0]
                towards = inverse[:r, :r] @ column
                inverse[:r, :r] += np.outer(towards / left[pivot], t)
                inverse[:r, r], inverse[r, :r], inverse[r, r] = -towards / left[pivot], -t / left[pivot], 1 / left[pivot]
                covariance[r, r] = variance
                rows.append(row)
                pivots.append(_cell(history, pivot))
                precision[row] = 1 / variance
                r += 1
                continue
        precision[row] += 1 / variance
        inner = covariance[:r, :r]
        by = np.eye(1, r, rows.index(row))[0] if row in rows else coefficients[dependent.index(row), :r]
        to = inner @ by
        gain = to / (by @ to + variance)
        inner -= np.outer(gain, to)
        inner -= np.outer(inner @ by, gain)
        inner += np.outer(gain * variance, gain)  # Joseph's form, which stays positive where precise answers follow noisy ones
    return Basis(
        len(history), np.array(rows, np.int64), tuple(pivots), inverse[:r, :r].copy(), np.array(dependent, np.int64),
        coefficients[: len(dependent), :r].copy(), precision, tops, covariance[:r, :r].copy(),
    )  # fmt: skip


def _anew(history: History) -> Basis:
    """A basis by two pivoted decompositions: which rows are independent, and on which atoms."""
    known = int(history.neighbours == "replace")
    tops = _tops(history, np.zeros(0))
    scaled = history.rows / tops[:, None]
    chosen, atoms = np.zeros(0, np.int64), np.zeros(known, np.int64)
    if len(scaled):
        free = scaled - scaled[:, :1] if known else scaled  # a row and the public one: what is left once they agree on an atom
        triangle, order = qr(free.T, mode="r", pivoting=True)
        sizes = np.abs(np.diag(triangle))
        rank = int((sizes > OUTSIDE).sum())
        if (sizes[rank:] > INSIDE).any():
            rank = _rank(np.vstack([np.ones((known, free.shape[1])), history.rows])) - known
        chosen = np.sort(order[:rank])
        if rank:
            swapped = np.arange(free.shape[1])
            for k, other in enumerate(lu_factor(free[chosen].T)[1]):
                swapped[[k, other]] = swapped[[other, k]]
            atoms = np.concatenate([atoms, swapped[:rank]])
    rows = np.concatenate([np.full(known, PUBLIC), chosen]).astype(np.int64)
    basis = np.vstack([np.ones((known, scaled.shape[1])), scaled[chosen]])
    inverse = np.linalg.inv(basis[:, atoms])
    dependent = np.setdiff1d(np.arange(len(scaled)), chosen)
    coefficients = scaled[dependent][:, atoms] @ inverse
    weight = tops[list(history.places)] ** 2 / np.maximum(variances(history.scales), LEAST_VARIANCE)
    precision = np.bincount(np.array(history.places, np.int64), weights=weight, minlength=len(scaled))
    information = np.diag(precision[chosen]) + (coefficients[:, known:].T * precision[dependent]) @ coefficients[:, known:]
    covariance = np.zeros((len(rows), len(rows)))
    covariance[known:, known:] = np.linalg.inv(information)
    pivots = tuple(_cell(history, int(atom)) for atom in atoms)
    return Basis(len(history), rows, pivots, inverse, dependent, coefficients, precision, tops, covariance)


def _tops(history: History, known: np.ndarray) -> np.ndarray:
    return np.concatenate([known, np.abs(history.rows[len(known) :]).max(axis=1, initial=0.0)])


def _cell(history: History, atom: int) -> tuple[int, ...]:
    place = int(np.argmax(history.labels == atom))
    return tuple(int(level) for level in np.unravel_index(place, history.sizes)) if history.sizes else ()


def _scaled(history: History, basis: Basis, atoms: np.ndarray) -> np.ndarray:
    """The rows of a basis, each divided by its largest entry, on some atoms."""
    own = basis.rows != PUBLIC
    found = np.ones((len(basis.rows), len(atoms)))
    found[own] = history.rows[np.ix_(basis.rows[own], atoms)] / basis.tops[basis.rows[own], None]
    return found


def _solved(history: History, basis: Basis, weights: np.ndarray, top: float) -> tuple[np.ndarray, bool, np.ndarray]:
    """A row of integers (G,) divided by its largest as a sum t (r,) of the basis, whether it is one, and what is left of it."""
    given = weights / top
    if not len(basis.rows):
        return np.zeros(0), not given.any(), given
    cells = np.zeros((len(basis.pivots), len(history.sizes)), np.int64)
    for k, pivot in enumerate(basis.pivots):  # columns touched since have any level
        cells[k, : len(pivot)] = pivot
    atoms = history.labels[np.ravel_multi_index(tuple(cells.T), history.sizes)] if history.sizes else np.zeros(len(cells), np.int64)
    own = basis.rows != PUBLIC

    def rest(t: np.ndarray) -> np.ndarray:
        by_row = np.zeros(len(history.rows))
        by_row[basis.rows[own]] = t[own] / basis.tops[basis.rows[own]]
        return given - by_row @ history.rows - t[~own].sum()

    t = given[atoms] @ basis.inverse
    left = rest(t)
    if np.abs(left).max() > 1e-13:
        t = t + left[atoms] @ basis.inverse
        left = rest(t)
    most = float(np.abs(left).max())
    if INSIDE < most < OUTSIDE:
        rows = np.vstack([np.ones((int((~own).sum()), len(given))), history.rows[basis.rows[own]], weights])
        return t, _rank(rows) < len(rows), left
    return t, most <= INSIDE, left


def _rank(rows: np.ndarray) -> int:
    """The rank of a matrix of integers, by elimination modulo a prime: wrong only where the prime divides the minors that decide."""
    table = rows.astype(np.int64) % PRIME
    rank = 0
    for column in range(table.shape[1]):
        nonzero = np.flatnonzero(table[rank:, column])
        if nonzero.size:
            table[[rank, rank + nonzero[0]]] = table[[rank + nonzero[0], rank]]
            table[rank] = table[rank] * pow(int(table[rank, column]), -1, PRIME) % PRIME
            below = table[rank + 1 :]
            below -= below[:, column : column + 1] * table[rank] % PRIME
            below %= PRIME
            rank += 1
    return rank


# ---------- the law of its error
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
    sizes, each = np.abs(np.asarray(coefficients, dtype=float)), variances(scales)
    some = (sizes > 0) & (each > NO_VARIANCE)
    sizes, each = sizes[some], each[some]
    if not len(sizes):
        return Law(1.0, np.ones(1), 0.0)
    spread = sizes * np.sqrt(each)
    kept = spread > 1e-9 * np.linalg.norm(spread) / len(spread)
    unit, whole = _unit(sizes[kept])
    on_lattice = np.zeros(len(sizes))
    on_lattice[kept] = whole * unit
    reach = _reach(sizes, each)
    if unit and 2 * reach / unit + 1 <= MOST_POINTS:
        points = max(1 << ceil(log(2 * reach / unit + 3, 2)), 64)
        step, sizes, slack = unit, on_lattice, _reach(np.abs(sizes - on_lattice), each)
    else:
        if len(sizes) == 1:
            return OneNoise(float(sizes[0]), np.zeros(0), 0.0, float(np.asarray(scales)[some][0]))
        width = SHARP / pi + 0.5
        points, step = POINTS, reach / (POINTS / 2 - 1 - ceil(width))
        slack = width * step
    (sizes, each), times = np.unique(np.stack([sizes, each]), axis=1, return_counts=True)
    angles = 2 * pi * np.arange(points // 2 + 1) / points
    transform = _characteristic(sizes, each, times, angles / step)
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


def _reach(sizes: np.ndarray, each: np.ndarray) -> float:
    """Where P(abs(error) > reach) <= 1e-12."""
    sizes, each = sizes[sizes > 0], each[sizes > 0]
    if not len(sizes):
        return 0.0
    (sizes, each), times = np.unique(np.stack([sizes, each]), axis=1, return_counts=True)
    edge = float((2 * np.arcsinh(np.sqrt(0.5 / each)) / sizes).min())  # cosh a = 1 + 1 / v is 2 sinh(a / 2)^2 = 1 / v
    best = inf
    for share in (*np.linspace(0.05, 0.9, 18), 0.95, 0.98, 0.99):
        moments = -np.log1p(-np.minimum(2 * each * np.sinh(sizes * share * edge / 2) ** 2, 1 - 1e-15))
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


def _characteristic(sizes: np.ndarray, each: np.ndarray, times: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """The product of 1 / (1 + 2 v sin(a t / 2)^2), largest noises first, so that the rest is needed at few frequencies."""
    found, alive = np.zeros(len(frequencies)), np.arange(len(frequencies))
    product = np.ones(len(frequencies))
    order = np.argsort(-sizes * np.sqrt(each))
    sizes, each, times = sizes[order], each[order], times[order]
    k, many = 0, 4
    while k < len(sizes) and alive.size:
        t, rest = frequencies[alive], slice(k, len(sizes))
        top = t[-1]
        if sizes[rest].max() * top < SMALL and sizes[k] * np.sqrt(each[k]) * top < SMALL:
            a, v, n = sizes[rest], each[rest], times[rest]
            second, fourth = n @ (v * a**2) / 2, n @ ((v / 24 + v**2 / 8) * a**4)
            sixth = n @ ((v / 720 + v**2 / 48 + v**3 / 24) * a**6)
            product *= np.exp(-second * t**2 + fourth * t**4 - sixth * t**6)
            break
        for a, v, n in zip(sizes[k : k + many], each[k : k + many], times[k : k + many], strict=True):
            sine = np.sin((0.5 * a) * t)
            one = 1 + (2 * v) * (sine * sine)
            product *= 1 / one if n == 1 else np.exp(-n * np.log(one))  # one**n may overflow
        k, many = k + many, 16
        stay = product > FAINT
        alive, product = alive[stay], product[stay]
    found[alive] = product
    return found


def simulated(coefficients: np.ndarray, scales: np.ndarray, draws: int, text: str, step: float | None = None) -> Law:
    """The law of sum_k A_k noise_k by simulation: Algorithm 1 of XX12, with discrete noise.

    The expected sum of squared errors of the probabilities is (1 - sum p^2) / draws (Corollary 4.1). The generator is numpy's and its
    seed comes from the text of the question, so the same answers give the same numbers; it protects nothing.

    Parameters
    ----------
    coefficients, scales : np.ndarray
        (m,).
    draws : int
    text : str
        Of the question.
    step : float, optional
        Of the grid that sums are rounded to, after they are summed; as ``convolved`` chooses it if left out.
    """
    fine = convolved(coefficients, scales)
    step = fine.step if step is None else step
    seed = int.from_bytes(sha256(text.encode()).digest()[:8], "big")
    rng = np.random.default_rng(seed)
    total = np.zeros(draws)
    for size, scale in zip(np.abs(coefficients), scales, strict=True):
        if size > 0:
            failure = -expm1(-1 / scale)
            total += size * (rng.geometric(failure, draws) - rng.geometric(failure, draws))
    points = np.rint(total / step).astype(np.int64)
    half = int(np.abs(points).max())
    return Law(step, np.bincount(points + half, minlength=2 * half + 1) / draws, float(np.abs(total - points * step).max()))


# ---------- what it says
def interval(found: Estimate, confidence: float) -> Interval:
    """The shortest interval about the estimate that holds the answer with this confidence."""
    half = found.law.distance(_checked(confidence))
    return Interval(found.value, found.value - half, found.value + half, confidence)


def confidence_of(found: Estimate, lower: float, upper: float) -> float:
    """The confidence of an interval: P(lower <= answer <= upper), with the answer the estimate less its error, of a symmetric law."""
    if not lower <= upper:
        raise Refusal("The interval must not end before it begins. Write lower <= upper.")
    return max(found.law.below(found.value - lower, equal=True) + found.law.below(upper - found.value, equal=True) - 1, 0.0)


def probability_above(found: Estimate, value: float, *, equal: bool = False) -> float:
    """P(answer > value), or >= if ``equal``: the confidence of the interval from there on."""
    return found.law.below(found.value - value, equal=equal)


# ---------- the least epsilon
def fresh_epsilon(question: Question, neighbours: str, length: object, confidence: float) -> Fraction:
    """The least epsilon at which an answer of its own has an interval no longer than ``length``, to six digits, rounded up.

    The noise is an integer: P(abs(noise) <= h) = 1 - 2 q^(h + 1) / (1 + q) with q = exp(-epsilon / sensitivity) and h the most lattice
    units in half the length. Continuous noise would need epsilon = (2 S / L) log(1 / delta) (XX12, section 5; docs/theory.md).

    Parameters
    ----------
    length : float
        Of the interval, in units of the answer: an answer +- length / 2.
    confidence : float
    """
    delta, half = 1 - _checked(confidence), min(floor(exact_epsilon(length) * question.divisor / 2), 10**300)
    sensitivity = sensitivity_of(question, neighbours)
    if sensitivity == 0:
        return Fraction(0)
    low, high = 0.0, 1.0

    def enough(rate: float) -> bool:
        return log(2) - (half + 1) * rate - log(delta) <= log1p(np.exp(-rate))

    while not enough(high):
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return _digits(sensitivity * high * (1 + 1e-12), 6)


def least_epsilon(history: History, question: Question, length: object, confidence: float) -> Fraction:
    """The least epsilon at which a new answer *and* the history have a fixed-question interval no longer than ``length``.

    The best estimate weighs the old estimate, of variance V, and the new answer, of variance v, by V and v. Its law is found at
    every epsilon that is tried, so what is returned, to three digits and rounded up, was seen to be enough. Its width need not fall
    at every step of epsilon, as the weights minimise a variance and no width: bisection then finds one of the epsilons at which it
    crosses. It is never more than ``fresh_epsilon``, at which the new answer alone is enough; 0 where the history is.
    """
    fresh = fresh_epsilon(question, history.neighbours, length, confidence)
    found = estimate(history, question)
    if found is None or fresh == 0:
        return fresh
    half = float(exact_epsilon(length)) / 2 * (1 + 1e-12)
    if found.law.within(half) >= confidence:
        return Fraction(0)
    sensitivity, variance = sensitivity_of(question, history.neighbours), found.variance

    def enough(epsilon: Fraction) -> bool:
        scale = float(sensitivity / epsilon)
        own = float(variances(np.array(scale))) / question.divisor**2
        weight = variance / (variance + own)
        law = convolved(np.append((1 - weight) * found.coefficients, weight / question.divisor), np.append(found.scales, scale))
        return law.within(half) >= confidence

    return _least(enough, fresh)


def _least(enough: Callable[[Fraction], bool], most: Fraction) -> Fraction:
    low, high = -12.0, 0.0  # logarithms of the share of the most
    best = most
    while high - low > 1e-3:
        middle = (low + high) / 2
        tried = _digits(float(most) * np.exp(middle), 3)
        if tried < most and enough(tried):
            best, high = min(best, tried), middle
        else:
            low = middle
    return best


def _digits(value: float, digits: int) -> Fraction:
    """The value to so many significant digits, rounded up."""
    unit = Fraction(10) ** (floor(log10(value)) - digits + 1)
    return ceil(Fraction(value) / unit) * unit


def _checked(confidence: float) -> float:
    """The confidence, if intervals can have it: to be asked before anything is paid."""
    if not 0 < confidence < 1:
        raise Refusal("The confidence must lie between 0 and 1. Write for example confidence=0.95.")
    if 1 - confidence < CLOSEST:
        raise Refusal(f"The confidence is too close to 1: it is computed up to {CLOSEST:g} of that. Write 0.999999 or less.")
    return confidence
