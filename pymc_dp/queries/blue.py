"""The best linear unbiased estimate of one more answer, and its interval (XX12).

The estimate is a weighted sum of noisy answers, so its error is the same weighted sum of their noises, whose law is known whatever
the records are: its intervals are right for a question that was fixed beforehand, and they are called that, *fixed-question intervals*.
Whoever keeps asking until an interval pleases needs the posterior given every answer, ``completion``.

Shapes: m answers, R rows (distinct questions), r rows of a basis, G atoms. Everything is in lattice units of the questions but for what
an ``Estimate`` and an ``Interval`` say, which is in units of the answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, log, log1p, log10

import numpy as np
from scipy.linalg import lu_factor, qr

from pymc_dp.privacy.accounting import Refusal, exact_epsilon
from pymc_dp.queries.convolution import Law, checked, convolved, variances
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
    def law(self) -> Law:
        """Of its error, by Algorithm 2 of XX12."""
        return convolved(self.coefficients, self.scales)


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


# ---------- what it says
def interval(found: Estimate, confidence: float) -> Interval:
    """The shortest interval about the estimate that holds the answer with this confidence."""
    half = found.law.distance(checked(confidence))
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
    delta, half = 1 - checked(confidence), min(floor(exact_epsilon(length) * question.divisor / 2), 10**300)
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
