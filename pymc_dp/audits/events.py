"""From runs of a mechanism on two data sets, the event that tells them apart most surely.

Scores are fitted on some runs and the event, a score with a cut, is chosen on others; the audit counts it on yet others. So nothing
that is tried here can make the audit's confidence wrong: a bad choice only loses power.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from pymc_dp.audits.outcomes import Outcome

FIRST, MOST_SHIFTED = 4, 4
"""Coordinates looked at by themselves: the first that vary, and those that differ most between the data sets."""
MOST_JOINT = 200
"""Coordinates whose correlations are used."""
CUTS = 25
"""Quantiles in each tail, and in the middle, at which a score may be cut."""
DOUBT = 2.0
"""Standard errors by which an event is believed to have been lucky."""
FAR = 50.0
"""Standardised coordinates are cut off here before they are added up."""


def clopper_pearson_lower(hits: np.ndarray, n: float, alpha: float) -> np.ndarray:
    """Lower Clopper-Pearson limit of the probability of what came about in ``hits`` of ``n`` runs, wrong with probability alpha."""
    from scipy.special import betaincinv

    return np.where(hits > 0, betaincinv(np.maximum(hits, 1e-300), n - hits + 1, alpha), 0.0)


def clopper_pearson_upper(hits: np.ndarray, n: float, alpha: float) -> np.ndarray:
    """The upper limit; see ``clopper_pearson_lower``."""
    return 1 - clopper_pearson_lower(n - hits, n, alpha)


def lower_bound(hits: ArrayLike, misses: ArrayLike, n: float, delta: float, alpha: float) -> np.ndarray:
    """A lower confidence bound on epsilon from counts of one event, in nats; 0 where nothing is shown.

    The event has probability p under one data set and q under the other, and epsilon is at least log((p - delta) / q). With
    confidence 1 - alpha, p is at least and q at most a Clopper-Pearson limit at alpha / 2 each.

    Parameters
    ----------
    hits, misses : array
        In how many of ``n`` runs the event came about under the first data set, and under the second.
    n : float
    delta, alpha : float

    Returns
    -------
    ndarray
    """
    p, q = clopper_pearson_lower(np.asarray(hits), n, alpha / 2), clopper_pearson_upper(np.asarray(misses), n, alpha / 2)
    return np.log(np.maximum((p - delta) / q, 1.0))


@dataclass(frozen=True)
class Runs:
    """N runs on one data set, as outcomes of which the most frequent look has numbered coordinates.

    Parameters
    ----------
    outcomes : sequence of Outcome
    look : str
        The look of the runs whose numbers are coordinates.
    K : int
        How many numbers those have.
    """

    outcomes: Sequence[Outcome]
    look: str
    K: int

    @cached_property
    def coordinates(self) -> np.ndarray:
        """(N, K) float64; rows of NaN where the run looks otherwise."""
        absent = np.full(self.K, np.nan)
        rows = [outcome.numbers if outcome.look == self.look else absent for outcome in self.outcomes]
        return np.concatenate(rows).reshape(len(rows), self.K)


@dataclass(frozen=True)
class Score:
    """A number for every run, larger where one data set is more likely.

    Attributes
    ----------
    name : str
        What it is, in words.
    of : callable
        From ``Runs`` to (N,) float64; NaN where it says nothing.
    outcomes : mapping of str to float
        Where it is a score of outcomes one by one: their score in words. All others have score 0.
    """

    name: str
    of: Callable[[Runs], np.ndarray]
    outcomes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """A score with a cut.

    Attributes
    ----------
    score : Score
    cut : float
    above : bool
        Whether the event is a score of ``cut`` or more; otherwise of ``cut`` or less.
    swapped : bool
        Whether it is more likely under the second data set.
    look : str
    K : int
        As in ``Runs``.
    """

    score: Score
    cut: float
    above: bool
    swapped: bool
    look: str
    K: int

    def scores(self, outcomes: Sequence[Outcome]) -> np.ndarray:
        """(N,) float64: what the event cuts."""
        return self.score.of(Runs(outcomes, self.look, self.K))

    def holds(self, scores: np.ndarray) -> np.ndarray:
        """(N,) bool, from (N,) scores."""
        return scores >= self.cut if self.above else scores <= self.cut

    @property
    def words(self) -> str:
        """The event in words."""
        if not self.score.outcomes:
            return f"{self.score.name} is at {'least' if self.above else 'most'} {self.cut:.8g}"
        inside = {outcome: bool(self.holds(np.array(value))) for outcome, value in self.score.outcomes.items()}
        other = bool(self.holds(np.array(0.0)))  # outcomes not seen before have score 0
        listed = [outcome for outcome, within in inside.items() if within != other]
        shown = ", ".join(listed[:6]) + (f", ... ({len(listed)} of them)" if len(listed) > 6 else "")
        return f"{self.score.name} is {'none of ' if other else 'one of ' if len(listed) > 1 else ''}{shown}"


def choose(first: Sequence[Outcome], second: Sequence[Outcome], delta: float, alpha: float, n: int, labels: Mapping) -> Event | None:
    """The event that promises the largest bound at ``n`` further runs of each data set; None where all runs were alike.

    Parameters
    ----------
    first, second : sequence of Outcome
        N runs of each data set: scores are fitted on one half of them and cuts chosen on the other, for an outcome seen only
        once says nothing about the runs it was seen in.
    delta, alpha : float
        As in ``lower_bound``.
    n : int
        Runs of each data set on which the event will be counted.
    labels : mapping of str to list of str
        Names of the coordinates, by look.
    """
    look = Counter(outcome.look for outcome in (*first, *second)).most_common(1)[0][0]
    K = next(len(outcome.numbers) for outcome in (*first, *second) if outcome.look == look)
    half = len(first) // 2
    fitted = [Runs(outcomes[:half], look, K) for outcomes in (first, second)]
    chosen = [Runs(outcomes[half:], look, K) for outcomes in (first, second)]
    candidates = []
    for score in scores(fitted[0], fitted[1], labels.get(look, [])):
        values = [np.sort(numbers[~np.isnan(numbers)]) for numbers in map(score.of, chosen)]
        cuts = _cuts(np.concatenate(values))
        for above in (True, False):
            hits, misses = ((len(v) - np.searchsorted(v, cuts)) if above else np.searchsorted(v, cuts, "right") for v in values)
            candidates += [(score, above, False, cuts, hits, misses), (score, above, True, cuts, misses, hits)]
    if not candidates:
        return None
    # Two standard errors are taken off, and one run more is missed, lest an event be chosen for having been lucky.
    runs = len(first) - half
    hits, misses = (np.concatenate([outcome[k] for outcome in candidates]) for k in (4, 5))
    fewer = np.maximum(hits - DOUBT * np.sqrt(hits * (1 - hits / runs)), 0)
    more = np.minimum(misses + DOUBT * np.sqrt(misses * (1 - misses / runs)) + 1, runs)
    promised = lower_bound(fewer * n / runs, more * n / runs, n, delta, alpha)
    if not promised.max() > 0:
        promised = (hits - misses) / np.sqrt(hits + misses + 1)
    best = int(np.argmax(promised))
    for score, above, swapped, cuts, *_ in candidates:
        if best < len(cuts):
            return Event(score, float(cuts[best]), above, swapped, look, K)
        best -= len(cuts)
    raise AssertionError


def _cuts(values: np.ndarray) -> np.ndarray:
    if not len(values):
        return values
    tail = np.geomspace(min(10 / len(values), 0.05), 0.1, CUTS)
    levels = np.concatenate([tail, np.linspace(0.1, 0.9, CUTS), 1 - tail])
    return np.unique(np.sort(values)[np.minimum((levels * len(values)).astype(int), len(values) - 1)])


def scores(first: Runs, second: Runs, labels: Sequence[str]) -> list[Score]:
    """Candidate scores, fitted to N runs of each data set."""
    coordinates = np.concatenate([first.coordinates, second.coordinates])
    varying = np.flatnonzero((coordinates != coordinates[:1]).any(axis=0))
    # In the order of how simple they are, for of events that promise the same the first is chosen.
    candidates = _outcome_by_outcome("the form of the output", _looks, first, second)
    candidates += _of_coordinates(first, second, coordinates, varying, labels) if len(varying) else []
    return [*candidates, *_outcome_by_outcome("the output", _whole, first, second)]


def _of_coordinates(first: Runs, second: Runs, coordinates: np.ndarray, varying: np.ndarray, labels: Sequence[str]) -> list[Score]:
    """Scores of the columns ``varying`` of ``coordinates``, those of all runs."""
    candidates: list[Score] = []
    scale = _Scale.of(coordinates[:, varying], varying)
    z, w = scale(first), scale(second)
    N = len(z)
    shift, spread = z.mean(0) - w.mean(0), np.abs(z).mean(0) - np.abs(w).mean(0)
    surprise = np.abs(shift) / np.sqrt((z.var(0) + w.var(0)) / N + 1e-12)
    wider = np.abs(spread) / np.sqrt((np.abs(z).var(0) + np.abs(w).var(0)) / N + 1e-12)
    single = [*range(min(FIRST, len(varying))), *np.argsort(-surprise)[:MOST_SHIFTED], *np.argsort(-wider)[: MOST_SHIFTED // 2]]
    for k in dict.fromkeys(map(int, single)):
        column = int(varying[k])
        label = labels[column] if column < len(labels) else f"number {column} of the output"
        candidates += _of_one(label, column, float(scale.centre[k]))
        if len(coordinates[0]) > 1:
            candidates += _outcome_by_outcome(label, partial(_value, column), first, second)
    moved = np.flatnonzero((surprise > 3) | (surprise >= np.sort(surprise)[-min(MOST_SHIFTED, len(surprise))]))
    moved = moved[np.argsort(-surprise[moved])][:MOST_JOINT]
    return [*candidates, *(_of_many(scale, z, w, shift, moved) if len(varying) > 1 else [_likelihood_ratio(scale, z, w, moved)])]


@dataclass(frozen=True)
class _Scale:
    """Coordinates made comparable: about a centre, in units of a spread, never NaN or infinite."""

    columns: np.ndarray
    centre: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, columns: np.ndarray) -> "_Scale":
        values = np.where(np.isfinite(values), values, 0.0)
        centre = np.median(values, axis=0)
        away = np.abs(values - centre)
        spread = np.quantile(away, 0.9, axis=0)
        spread = np.where(spread > 0, spread, away.max(axis=0))
        return cls(columns, centre, np.where(spread > 0, spread, 1.0))

    def __call__(self, runs: Runs) -> np.ndarray:
        """(N, K) float64."""
        with np.errstate(invalid="ignore"):
            z = (runs.coordinates[:, self.columns] - self.centre) / self.spread
        return np.clip(np.nan_to_num(z, nan=0.0), -FAR, FAR)


def _of_one(label: str, column: int, centre: float) -> list[Score]:
    """Scores of one coordinate: its value, its distance from the centre, and its lowest bits."""

    def value(runs: Runs) -> np.ndarray:
        return runs.coordinates[:, column]

    return [
        Score(label, value),
        Score(f"the distance of {label} from {centre:.6g}", lambda runs: np.abs(value(runs) - centre)),
        Score(f"the power of 2 of which {label} is an odd multiple", lambda runs: lowest_bit(value(runs))[0]),
        Score(f"the number of bits at the end of {label} that are 0", lambda runs: lowest_bit(value(runs))[1]),
    ]


def _of_many(scale: _Scale, z: np.ndarray, w: np.ndarray, shift: np.ndarray, moved: np.ndarray) -> list[Score]:
    """Scores of several coordinates together, from standardised ones (N, K) of both data sets."""
    variance = z.var(0) + w.var(0) + 1e-12
    within = np.atleast_2d(np.cov(z[:, moved].T) + np.cov(w[:, moved].T))
    direction = np.linalg.solve(within + 1e-6 * (np.trace(within) / len(moved) + 1e-12) * np.eye(len(moved)), shift[moved])
    many = f"{len(moved)} coordinates"
    return [
        Score(f"the projection of {len(z[0])} coordinates on the shift of their means", lambda runs: scale(runs) @ (shift / variance)),
        Score(f"the linear discriminant of {many}", lambda runs: scale(runs)[:, moved] @ direction),
        Score(f"the sum of {many}, each in the direction of its shift", lambda runs: scale(runs)[:, moved] @ np.sign(shift[moved])),
        _likelihood_ratio(scale, z, w, moved),
        Score("the sum of all coordinates", lambda runs: runs.coordinates[:, scale.columns].sum(axis=1)),
        Score("the largest coordinate", lambda runs: runs.coordinates[:, scale.columns].max(axis=1)),
        Score("the smallest coordinate", lambda runs: runs.coordinates[:, scale.columns].min(axis=1)),
    ]  # fmt: skip


def _likelihood_ratio(scale: _Scale, z: np.ndarray, w: np.ndarray, moved: np.ndarray) -> Score:
    """The log-likelihood ratio of independent Laplace noise about either data set's own median."""
    centres = [np.median(values[:, moved], axis=0) for values in (z, w)]
    spreads = [np.abs(values[:, moved] - centre).mean(0) + 1e-6 for values, centre in zip((z, w), centres, strict=True)]

    def ratio(runs: Runs) -> np.ndarray:
        near, far = (
            np.abs(scale(runs)[:, moved] - centre) / spread + np.log(spread) for centre, spread in zip(centres, spreads, strict=True)
        )
        return (far - near).sum(axis=1)

    return Score(f"the log-likelihood ratio under Laplace noise of {len(moved)} coordinate{'s' * (len(moved) > 1)}", ratio)


def lowest_bit(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The power of 2 of which each of N doubles is an odd multiple, and its number of trailing zero bits: both float64 (N,)."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    exponent, fraction = (bits >> 52) & 0x7FF, bits & (2**52 - 1)
    whole = np.where(exponent > 0, fraction | 2**52, fraction)
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    power = np.maximum(exponent, 1) - 1075 + zeros
    known = np.isfinite(values)
    return np.where(known, np.where(whole == 0, 1024, power), np.nan), np.where(known, np.where(whole == 0, 53, zeros), np.nan)


def _whole(runs: Runs) -> list[Hashable]:
    return [(outcome.look, outcome.numbers.tobytes()) for outcome in runs.outcomes]


def _looks(runs: Runs) -> list[Hashable]:
    return [outcome.look for outcome in runs.outcomes]


def _value(column: int, runs: Runs) -> list[Hashable]:
    return [float(value).hex() for value in runs.coordinates[:, column]]


def _in_words(outcome: Hashable) -> str:
    """An outcome, short enough for a line."""
    if isinstance(outcome, tuple):
        look, numbers = outcome[0], [f"{number:.8g}" for number in np.frombuffer(outcome[1])]
        if look.count("#") == len(numbers):  # a text, or no numbers at all
            text = "".join(between + number for between, number in zip(look.split("#"), [*numbers, ""], strict=True))
        else:
            text = " ".join(numbers)
    else:
        text = str(outcome)
        text = f"{float.fromhex(text):.8g}" if text.lstrip("-").startswith("0x") else text
    return text if len(text) <= 90 else text[:87] + "..."


def _outcome_by_outcome(name: str, key: Callable[[Runs], list[Hashable]], first: Runs, second: Runs) -> list[Score]:
    """The log-ratio of how often each outcome was seen; nothing where none was seen twice or all are one."""
    seen, other = Counter(key(first)), Counter(key(second))
    ratios = {outcome: float(np.log((seen[outcome] + 0.5) / (other[outcome] + 0.5))) for outcome in seen | other}
    if len(ratios) < 2 or max((seen + other).values()) < 2:
        return []
    words = {_in_words(outcome): value for outcome, value in sorted(ratios.items(), key=lambda pair: -abs(pair[1]))}
    return [Score(name, lambda runs: np.array([ratios.get(outcome, 0.0) for outcome in key(runs)]), words)]
