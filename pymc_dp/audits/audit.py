"""A lower bound on the epsilon of any mechanism, found by running it.

An audit can show that a promise is broken, never that it is kept. It knows nothing of how the mechanism works, so it holds for any
function: ours, somebody else's, or what a user wrote around either.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import exp, inf, isfinite

import numpy as np

from pymc_dp.audits.events import Event, choose, clopper_pearson_upper, lower_bound
from pymc_dp.audits.outcomes import Outcome, names, run
from pymc_dp.audits.progress import progress
from pymc_dp.privacy.accounting import Refusal, exact_delta, exact_epsilon
from pymc_dp.privacy.calls import explained
from pymc_dp.privacy.layout import notes_in_html, page, wrapped

FEWEST = 100
"""Runs of each data set below which nothing can be found."""
SURE = 0.999
"""The power for which ``Audit.factor`` is stated."""


@dataclass(frozen=True, eq=False)
class Audit:
    """The result of ``audit``: what runs of a mechanism showed about its epsilon.

    Attributes
    ----------
    lower : float
        Lower confidence bound on epsilon, in nats. The mechanism's epsilon is larger, except with a probability of at most ``alpha``.
        It is 0 where nothing was shown.
    epsilon, delta : Fraction
        What was claimed.
    event : str
        The event that was counted, in words; chosen on other runs than those counted.
    swapped : bool
        Whether it is more likely under ``D_neighbour`` than under ``D``.
    hits : (int, int)
        In how many runs the event came about: on ``D``, and on ``D_neighbour``.
    counted : int
        Runs of each data set on which it was counted.
    n : int
        Runs of each data set altogether.
    alpha : float
    scores : (2, counted) float64 ndarray
        The numbers that decide the event, for runs on ``D`` and on ``D_neighbour``; NaN where a run has no such number.
    cut : float
        The threshold on these numbers.
    above : bool
        Whether the event is a score of ``cut`` or more; otherwise of ``cut`` or less.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> noisy = lambda votes: sum(votes) + round(rng.exponential() - rng.exponential())  # Laplace noise of scale 1
    >>> result = pmdp.audit(noisy, [0, 1], [1, 1], epsilon=1.0, n=2_000, progressbar=False)
    >>> result.passed
    True
    """

    lower: float
    epsilon: Fraction
    delta: Fraction
    event: str
    swapped: bool
    hits: tuple[int, int]
    counted: int
    n: int
    alpha: float
    scores: np.ndarray
    cut: float
    above: bool

    @property
    def passed(self) -> bool:
        """Whether what was found is within what is claimed. It does not show that the claim is true."""
        return self.lower <= float(self.epsilon)

    def detects(self, factor: float) -> float:
        """The probability that this audit had failed a mechanism whose epsilon is ``factor`` times what it claims.

        Computed for Laplace noise on one number that the two data sets move as far as they can, from the binomial laws of the two
        counts, at the threshold that promises the largest bound.

        Parameters
        ----------
        factor : float
            1 or more.

        Returns
        -------
        float
        """
        return _power(factor, float(self.epsilon), float(self.delta), self.counted, self.alpha)

    @cached_property
    def factor(self) -> float:
        """The factor by which epsilon must be exceeded to be found with probability 0.999, or infinity; see ``detects``."""
        low, high = 1.0, 2.0
        while self.detects(high) < SURE:
            low, high = high, 2 * high
            if high > 2**20:
                return inf
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (low, middle) if self.detects(middle) >= SURE else (middle, high)
        return high

    def _rows(self) -> Iterator[tuple[str, str]]:
        claimed = f"epsilon {float(self.epsilon):g}" + (f", delta {float(self.delta):g}" if self.delta else "")
        yield "claimed", claimed
        yield "found", f"epsilon is at least {self.lower:.3g} (this is wrong with probability {self.alpha:g} at most)"
        yield "event", self.event
        for name, hits in zip(("on D", "on D_neighbour"), self.hits, strict=True):
            yield name, f"in {hits:,} of {self.counted:,} runs ({hits / self.counted:.3g})"
        power = (
            f"a claim exceeded by a factor of {self.factor:.3g} is found with probability {SURE}"
            if isfinite(self.factor)
            else "none at this n"
        )
        yield "power", f"{power} (computed for Laplace noise on one number)"

    def __repr__(self) -> str:
        rows = list(self._rows())
        width = max(len(name) for name, _ in rows)
        title = f"Audit: {'passed' if self.passed else 'FAILED'}"
        return "\n".join([title, *(wrapped(text, f"  {name.ljust(width)}  ", " " * (width + 4)) for name, text in rows)])

    def _repr_html_(self) -> str:
        title = "<p><b>Audit: passed</b></p>" if self.passed else "<div class='first'><b>Audit: FAILED</b></div>"
        return page(title, notes_in_html(self._rows()))


@explained
def audit(
    mechanism: Callable,
    D: object,
    D_neighbour: object,
    *,
    epsilon: object,
    delta: float = 0,
    n: int = 20_000,
    alpha: float = 1e-6,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> Audit:
    """A lower confidence bound on the epsilon of any function, from runs on two neighbouring data sets.

    On one half of the runs an event is chosen that tells the two data sets apart: a threshold on some number of the output or on
    several together, low-order bits of a double, one value, a shape, a word, a warning, an exception with its type and text. On the other
    half it is counted, and Clopper-Pearson limits of its two probabilities bound epsilon. One event is counted, so nothing is corrected
    for the many that were looked at. If the claim is true, the audit fails with a probability of at most ``alpha``.

    Parameters
    ----------
    mechanism : callable
        A function from a data set to anything; it must leave the data set as it is. An exception it raises is an outcome like any other.
        Write ``lambda data: ...`` around a function of more arguments.
    D, D_neighbour : object
        Two data sets that differ in one record, as far apart as they can be: an audit sees no more than this pair shows. Both
        directions are tried.
    epsilon, delta : float
        What is claimed of the mechanism.
    n : int
        Runs of each data set; ``Audit.factor`` tells what they can find.
    alpha : float
        Probability of failing a mechanism that keeps its promise.
    random_seed : int, optional
        The seed of the order in which the two data sets take turns. It does not seed the mechanism's noise.
    progressbar : bool

    Returns
    -------
    Audit
        The bound, the event that it was counted on, and whether the claim passed.

    Raises
    ------
    Refusal
        For arguments that cannot be meant, and when every run raised the same exception.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> noisy = lambda votes: sum(votes) + round(rng.exponential() - rng.exponential())  # Laplace noise of scale 1
    >>> result = pmdp.audit(noisy, [0, 1], [1, 1], epsilon=0.1, n=2_000, progressbar=False)
    >>> result.passed, result.lower > 0.1
    (False, True)
    """
    claimed, slack = exact_epsilon(epsilon), exact_delta(delta)
    _check(mechanism, n, alpha)
    tuning, counting = n // 2, n - n // 2
    rng = np.random.default_rng(random_seed)
    labels: dict[str, list[str]] = {}
    with progress("auditing", "runs", 2 * n, progressbar) as advance:
        first, second = _observed(mechanism, (D, D_neighbour), tuning, rng, advance, labels)
        _check_that_it_runs(first, second)
        event = choose(first, second, float(slack), alpha, counting, labels)
        del first, second
        outcomes = _observed(mechanism, (D, D_neighbour), counting, rng, advance, {})
    return _counted(event, outcomes, claimed, slack, n, alpha)


def _counted(
    event: Event | None, outcomes: tuple[list[Outcome], list[Outcome]], claimed: Fraction, slack: Fraction, n: int, alpha: float
) -> Audit:
    """What an event shows about epsilon that was chosen on other runs than these; None where all runs were alike."""
    counting = len(outcomes[0])
    if event is None:
        nothing = np.full((2, counting), np.nan)
        return Audit(0.0, claimed, slack, "none: all runs were alike", False, (0, 0), counting, n, alpha, nothing, 0.0, True)
    scores = np.stack([event.scores(runs) for runs in outcomes])
    first, second = (int(event.holds(values).sum()) for values in scores)
    more, fewer = (second, first) if event.swapped else (first, second)
    lower = float(lower_bound(more, fewer, counting, float(slack), alpha))
    return Audit(lower, claimed, slack, event.words, event.swapped, (first, second), counting, n, alpha, scores, event.cut, event.above)


def _check(mechanism: object, n: object, alpha: object) -> None:
    if not callable(mechanism):
        raise Refusal("mechanism must be a function of one data set. Write for example audit(lambda data: ..., D, E, epsilon=1.0).")
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < FEWEST:
        raise Refusal(f"n must be an integer of {FEWEST} or more. Write for example n=20_000.")
    if isinstance(alpha, bool) or not isinstance(alpha, int | float | np.floating) or not 1e-100 <= alpha < 1:
        raise Refusal("alpha must be a number from 1e-100 to less than 1. Write for example alpha=1e-6.")


def _check_that_it_runs(first: list[Outcome], second: list[Outcome]) -> None:
    """A mechanism that does nothing but raise the same exception is a slip of whoever wrote it, and would pass."""
    outcomes = [*first, *second]
    if all(outcome.raised for outcome in outcomes) and len({(outcome.look, outcome.numbers.tobytes()) for outcome in outcomes}) == 1:
        raise Refusal("Every run raised the same exception, so there is nothing to audit. Call mechanism(D) once by itself and repair it.")


def _observed(
    mechanism: Callable, data: tuple[object, object], n: int, rng: np.random.Generator, advance: Callable[[], None], labels: dict
) -> tuple[list[Outcome], list[Outcome]]:
    """The outcomes of n runs on either data set.

    They take turns in random order, so that what changes with time tells nothing about the data.
    """
    outcomes: tuple[list[Outcome], list[Outcome]] = ([], [])
    with warnings.catch_warnings(record=True, action="always") as warned:
        assert warned is not None
        for which in rng.permutation(np.repeat([0, 1], n)):
            outcome, output = run(mechanism, data[which], warned)
            if outcome.look not in labels and len(labels) < FEWEST:
                labels[outcome.look] = names(output)
            outcomes[which].append(outcome)
            advance()
    return outcomes


def _power(factor: float, epsilon: float, delta: float, n: int, alpha: float) -> float:
    """See ``Audit.detects``: Laplace noise of scale 1 / (factor * epsilon) about 0 and about 1, the event a value of t or more."""
    from scipy.stats import binom

    true = factor * epsilon
    t = np.concatenate([np.linspace(0, 1, 201), 1 + np.geomspace(0.01, 10, 100) / true])
    p = np.where(t < 1, 1 - 0.5 * np.exp(-true * np.abs(1 - t)), 0.5 * np.exp(-true * np.abs(t - 1)))
    q = 0.5 * np.exp(-true * t)
    best = int(np.argmax(lower_bound(n * p, n * q, n, delta, alpha)))
    misses = np.arange(binom.ppf(1e-9, n, q[best]), binom.isf(1e-9, n, q[best]) + 1)
    # The fewest hits with which the audit fails: those whose lower limit is above exp(epsilon) times the upper limit of the misses.
    target = exp(min(epsilon, 700.0)) * clopper_pearson_upper(misses, n, alpha / 2) + delta
    needed = np.where(target < 1, binom.isf(alpha / 2, n, np.minimum(target, 1.0)) + 1, n + 1)
    return float((binom.pmf(misses, n, q[best]) * binom.sf(needed - 1, n, p[best])).sum())
