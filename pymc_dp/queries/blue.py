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

from pymc_dp.privacy.accounting import exact_epsilon
from pymc_dp.queries.basis import LEAST_VARIANCE, PUBLIC, basis_of, solved
from pymc_dp.queries.convolution import Law, checked_confidence, convolved, variances
from pymc_dp.queries.history import History, divided
from pymc_dp.queries.language import Question


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
        """Variance of its error: the sum of coefficient^2 2q / (1 - q)^2, q = exp(-1/scale), as noises are discrete Laplace variables."""
        return float((self.coefficients**2 * variances(self.scales)).sum())

    @cached_property
    def law(self) -> Law:
        """Law of its error, by Algorithm 2 of XX12."""
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
    t, inside, _ = solved(history, basis, parts.weights, top)
    if not inside:
        return None
    t = t * top
    u = basis.covariance @ t
    by_row = np.zeros(len(history.rows))
    answered = basis.rows != PUBLIC
    by_row[basis.rows[answered]] = basis.precision[basis.rows[answered]] * u[answered]
    by_row[basis.dependent] = basis.precision[basis.dependent] * (basis.coefficients @ u)
    # What rounding left of A M = t goes to the rows of the basis themselves, so that the estimate is unbiased to the last digit.
    held = np.zeros(len(t))
    held[answered] = by_row[basis.rows[answered]]
    left = t - held - by_row[basis.dependent] @ basis.coefficients
    by_row[basis.rows[answered]] += left[answered]
    places = np.array(history.places, dtype=np.int64)
    share = basis.tops[places] ** 2 / np.maximum(variances(history.scales), LEAST_VARIANCE) / basis.precision[places]
    coefficients = (by_row / basis.tops)[places] * share
    value = float(coefficients @ history.noisy)
    if not answered.all():
        assert history.records is not None
        value += float(left[~answered][0]) * history.records
    divisor = question.divisor
    return Estimate(question, value / divisor, coefficients / divisor, history.scales)


# ---------- what it says
def interval_about(estimated: Estimate, confidence: float, width: float | None = None) -> Interval:
    """The shortest interval about the estimate that holds the answer with this confidence; its width is computed where it is not given."""
    half = estimated.law.distance(confidence) if width is None else width / 2
    return Interval(estimated.value, estimated.value - half, estimated.value + half, confidence)


def probability_above(estimated: Estimate, value: float) -> float:
    """P(answer > value): the confidence of the interval from there on."""
    return estimated.law.below(estimated.value - value)


# ---------- the least epsilon
def fresh_epsilon(question: Question, neighbours: str, length: object, confidence: float, at_most: int | None = None) -> Fraction:
    """The least epsilon at which an answer of its own has an interval no longer than ``length``, to six digits, rounded up.

    The noise is an integer: P(abs(noise) <= h) = 1 - 2 q^(h + 1) / (1 + q) with q = exp(-epsilon / sensitivity) and h the most lattice
    units in half the length. Continuous noise would need epsilon = (2 S / L) log(1 / delta) (XX12, section 5; docs/theory.md).

    Parameters
    ----------
    length : float
        Length of the interval, in units of the answer: an answer +- length / 2.
    confidence : float
    """
    delta, half = 1 - checked_confidence(confidence), min(floor(exact_epsilon(length) * question.divisor / 2), 10**300)
    sensitivity = question.sensitivity(neighbours, at_most)
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
    fresh = fresh_epsilon(question, history.neighbours, length, confidence, history.at_most)
    before = estimate(history, question)
    if before is None or fresh == 0:
        return fresh
    half = float(exact_epsilon(length)) / 2 * (1 + 1e-12)
    if before.law.within(half) >= confidence:
        return Fraction(0)
    sensitivity, variance = history.sensitivity(question), before.variance

    def enough(epsilon: Fraction) -> bool:
        scale = float(sensitivity / epsilon)
        new_variance = float(variances(np.array(scale))) / question.divisor**2
        weight = variance / (variance + new_variance)
        law = convolved(np.append((1 - weight) * before.coefficients, weight / question.divisor), np.append(before.scales, scale))
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
