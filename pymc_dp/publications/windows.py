"""The counts that are possible given every published number, and how probable the number is given each: tables, computed once.

Rows with the same noise and the same event share a table. Left out of a window are counts given which the event has a probability of
less than about 1e-13.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.events import Events
from pymc_dp.publications.noises import GaussianNoise, LaplaceNoise, Noise
from pymc_dp.publications.ratios import NoisyRatio
from pymc_dp.publications.tables import RoundedToBase, Transitions

MOST_ENTRIES = 20_000_000
"""The most entries of all tables together: 160 MB."""


@dataclass(frozen=True)
class Windows:
    """A window of counts start, ..., start + length - 1 for every row, with weights table[first], ...: arrays of the shape of the rows.

    Attributes
    ----------
    start, first, length : array of int
    top : array
        Weights are divided by the largest of the row's window; this is its logarithm.
    table : (T,) array
    open : array of bool
        Where the event is that the noisy number is large: then all counts above the window have weight 1.
    """

    start: np.ndarray
    first: np.ndarray
    length: np.ndarray
    top: np.ndarray
    table: np.ndarray
    open: np.ndarray

    @property
    def last(self) -> np.ndarray:
        """The last counts of the windows; of open ones at least 0."""
        return np.maximum(self.start + self.length - 1, np.where(self.open, 0, -1))

    @property
    def longest(self) -> int:
        """How many counts the longest window has."""
        return int((self.last - np.where(self.open, 0, self.start)).max()) + 1

    def weights(self, counts: np.ndarray) -> np.ndarray:
        """The weights (L, *rows) of counts (L, *rows), each divided by the largest of its row's window."""
        j = counts - self.start
        inside = (j >= 0) & (j < self.length)
        weights = np.where(inside, self.table[np.where(inside, self.first + j, 0)], 0.0)
        return np.where(self.open & (j >= self.length), 1.0, weights)

    def padded(self) -> tuple[np.ndarray, np.ndarray]:
        """Counts and weights of all windows with one axis more, in front: (L, *rows). Weights beyond a window are 0, counts at least 0.

        Of open windows these are the weights that they lack, from 0 on.
        """
        start = np.where(self.open, 0, self.start)
        counts = start + np.arange(self.longest).reshape(-1, *[1] * start.ndim)
        j = counts - self.start
        inside = (j >= 0) & (j < self.length)
        weights = np.where(inside, self.table[np.where(inside, self.first + j, 0)], 0.0)
        weights = np.where(self.open, np.where(counts <= self.last, 1 - weights, 0.0), weights)
        return np.maximum(counts, 0), np.where(counts >= 0, weights, 0.0)


def windows_of(name: str, events: Events) -> Windows:
    """The windows of the events of a variable that counts."""
    setting = np.asarray(events.setting)
    if events.hidden is None or events.absent is None:
        return _tables(name, events.noise, setting, events.low, events.high)
    return _without(name, events, np.broadcast_to(setting, events.low.shape))


def _without(name: str, events: Events, setting: np.ndarray) -> Windows:
    """The windows where some true counts were not published: of rows that were, without these; of the others, these alone."""
    assert events.hidden is not None
    assert events.absent is not None
    there, shape = ~events.absent, events.low.shape
    first, last = (np.asarray(end, dtype=int) for end in (events.hidden.lowest, events.hidden.highest))
    starts, tops, tables = np.zeros(shape, dtype=int), np.zeros(shape), {}
    if there.any():
        shown = _tables(name, events.noise, setting[there], events.low[there], events.high[there])
        starts[there], tops[there] = shown.start, shown.top
        of_shown = zip(np.argwhere(there).tolist(), shown.first, shown.length, shown.start, strict=True)
        for row, at, many, start in of_shown:
            counts = start + np.arange(many)
            weights = np.where((counts >= first[tuple(row)]) & (counts <= last[tuple(row)]), 0.0, shown.table[at : at + many])
            if not (weights[counts >= 0] > 0).any():
                number = events.low[tuple(row)]
                raise Refusal(
                    f"{name} holds {number:g}, which would not have been shown: {events.hidden.words}. Look at the row, or the ends."
                )
            tables[tuple(row)] = weights
    for row in np.argwhere(events.absent).tolist():
        starts[tuple(row)] = first[tuple(row)]
        tables[tuple(row)] = np.ones(last[tuple(row)] - first[tuple(row)] + 1)
    in_order = [tables[row] for row in np.ndindex(shape)]
    lengths = np.array([table.size for table in in_order]).reshape(shape)
    firsts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).reshape(shape)
    return Windows(starts, firsts, lengths, tops, np.concatenate(in_order), np.zeros(shape, dtype=bool))


def windows_above(name: str, events: Events) -> Windows:
    """The windows of numbers that are published at all, where rows of the others are not in the table."""
    assert events.least is not None
    return _tables(name, events.noise, np.asarray(events.setting), events.least, np.full(events.least.shape, np.inf))


def _tables(name: str, noise: Noise, setting: np.ndarray, low: np.ndarray, high: np.ndarray) -> Windows:
    """One table for all rows whose events are alike, but for a shift by a whole number where the noise allows one."""
    step = noise.base if isinstance(noise, RoundedToBase) else 1
    movable = np.isfinite(low) & noise.movable
    is_open = np.isposinf(high) & noise.movable
    shift = np.where(movable, np.floor(np.where(movable, low, 0.0) / step) * step, 0.0)
    keys = np.stack([array.ravel() for array in (setting, low - shift, high - shift)], axis=1)
    kinds, which = np.unique(keys, axis=0, return_inverse=True)
    weigh = _weigher(noise)
    starts, tables, tops, entries = [], [], [], 0
    for k, (number, lower, upper) in enumerate(kinds.tolist()):
        start, weights = weigh(number, lower, upper)
        top = 1.0 if upper == np.inf and noise.movable and weights.size else weights.max() if weights.size else 0.0
        if not top > 0:
            raise Refusal(f"{name} holds a number that no count can have been published as: {noise.words}. Look at the row, or the noise.")
        starts.append(start)
        tables.append(weights / top)
        tops.append(np.log(top))
        entries += weights.size
        if entries > MOST_ENTRIES:
            raise Refusal(
                f"{name} needs tables of more than {MOST_ENTRIES:,} entries: {k + 1:,} of {len(kinds):,} kinds of rows, {noise.words}."
                " Round scales so that rows share them, round real numbers to whole ones (with discrete noise), or fit fewer rows at once."
            )
    lengths = np.array([table.size for table in tables])
    firsts, which = np.concatenate([[0], np.cumsum(lengths)[:-1]]), which.reshape(low.shape)
    start = np.array(starts)[which] + shift.astype(int)
    negative = (start + lengths[which] - 1 < 0) & ~is_open
    if negative.any():
        raise Refusal(
            f"{name} holds {low[negative][0]:g}, which is too far below 0 to come from a count: {noise.words}. Look at the row, or the"
            " noise."
        )
    return Windows(start, firsts[which], lengths[which], np.array(tops)[which], np.concatenate(tables), is_open)


def _weigher(noise: Noise) -> Callable[[float, float, float], tuple[int, np.ndarray]]:
    """A function of a setting and the ends of an event: the first count of its window, and the event's probability given each."""
    if isinstance(noise, RoundedToBase):
        return lambda _, low, high: _rounded(noise.base, low, high)
    if isinstance(noise, Transitions):
        return lambda setting, low, high: _from_matrix(noise.table(setting), low, high)
    if isinstance(noise, NoisyRatio):
        return noise.window
    if isinstance(noise, LaplaceNoise | GaussianNoise):
        return lambda setting, low, high: _continuous(noise, setting, low, high)
    return lambda setting, low, high: _discrete(noise.pmf(setting), low, high)


def _rounded(base: int, low: float, high: float) -> tuple[int, np.ndarray]:
    """Random rounding: certain between multiples inside, and falling to 0 over one base beyond them."""
    if high == np.inf:
        return ceil(low / base) * base - base + 1, np.arange(1, base + 1) / base
    last = floor(high / base) * base
    start = 0 if low == -np.inf else ceil(low / base) * base - base + 1
    s = np.arange(start, last + base)
    weights = np.minimum(1.0, 1 - (s - last) / base)
    return start, weights if low == -np.inf else np.minimum(weights, 1 - (start + base - 1 - s) / base)


def _from_matrix(matrix: np.ndarray, low: float, high: float) -> tuple[int, np.ndarray]:
    columns = slice(int(max(low, 0)), int(min(max(high, -1), matrix.shape[1] - 1)) + 1)
    return 0, matrix[:, columns].sum(axis=1)


def _discrete(chances: np.ndarray, low: float, high: float) -> tuple[int, np.ndarray]:
    """Whole noise with these probabilities of differences -R, ..., R."""
    reach = (len(chances) - 1) // 2
    if high == np.inf:
        return int(low) - reach, np.minimum(np.cumsum(chances[::-1]), 1.0)
    high = int(high)
    if low == -np.inf:
        below = np.cumsum(chances)
        s = np.arange(0, high + reach + 1)
        return 0, np.minimum(below[np.minimum(high - s, reach) + reach], 1.0)
    return int(low) - reach, np.convolve(chances[::-1], np.ones(high - int(low) + 1))


def _continuous(noise: LaplaceNoise | GaussianNoise, setting: float, low: float, high: float) -> tuple[int, np.ndarray]:
    """Densities of a published number, or probabilities of an interval."""
    reach = noise.reach(setting)
    start = 0 if low == -np.inf else ceil(low - reach)
    if high == np.inf:
        return start, noise.below(np.arange(start, floor(low + reach) + 1) - low, setting)
    s = np.arange(start, floor(high + reach) + 1)
    if low == high:
        return start, noise.density(low - s, setting)
    if low == -np.inf:
        return start, noise.below(high - s, setting)
    # Taken from the side where tails are thin.
    lower, upper = low - s, high - s
    flipped = lower > 0
    ends = np.where(flipped, -upper, lower), np.where(flipped, -lower, upper)
    return start, noise.below(ends[1], setting) - noise.below(ends[0], setting)
