"""What was done to numbers after noise was added (rounding, clipping, ...), and the range of the noisy number that each published value
leaves.

Every published row is an event: the noisy number before rounding, clipping and suppression lies between two ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.noises import Exact, Noise, Step, doubles, positive, shown

WHOLE = 1e-9
"""So near to a whole number a multiple is taken for one: what divides it has a rounding error."""


@dataclass(frozen=True, eq=False)
class Ends:
    """Intervals, one for every row: where they begin and end, and whether these ends are left out."""

    low: np.ndarray
    high: np.ndarray
    low_open: np.ndarray
    high_open: np.ndarray

    @classmethod
    def closed(cls, low: np.ndarray, high: np.ndarray) -> "Ends":
        """Intervals with their ends."""
        return cls(low, high, np.zeros(low.shape, dtype=bool), np.zeros(low.shape, dtype=bool))

    def inside(self) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last number of every interval."""
        low, high = np.nextafter(self.low, np.inf), np.nextafter(self.high, -np.inf)
        return np.where(self.low_open, low, self.low), np.where(self.high_open & np.isfinite(self.high), high, self.high)


@dataclass(frozen=True, eq=False, repr=False)
class Rounded(Step):
    """Rounding to the nearest multiple of a base, always the same way.

    Parameters
    ----------
    base : float
        10 for tens, 0.1 for tenths.
    ties : str
        Where a number in the middle goes: "up", or to the "even" multiple, as Python and R round.

    Examples
    --------
    >>> pmdp.Rounded(10).words
    'rounded to a multiple of 10'
    """

    base: float
    ties: str = "up"

    def __post_init__(self) -> None:
        if positive(self.base, "base", "Rounded(10)").ndim:
            raise Refusal("base must be one number. Write Rounded(10).")
        if self.ties not in ("up", "even"):
            raise Refusal('ties are rounded "up" or to "even" multiples. Write Rounded(10, ties="even").')

    @property
    def words(self) -> str:
        """What was done, in words."""
        return f"rounded to a multiple of {self.base:g}"

    def before(self, ends: "Ends") -> "Ends":
        """Between which numbers lies what is rounded into an interval."""
        with np.errstate(invalid="ignore"):
            low, high = ends.low / self.base, ends.high / self.base
            first = np.where(np.abs(low - np.rint(low)) < WHOLE, np.rint(low) + ends.low_open, np.ceil(low))
            last = np.where(np.abs(high - np.rint(high)) < WHOLE, np.rint(high) - ends.high_open, np.floor(high))
            even = self.ties == "even"
            return Ends((first - 0.5) * self.base, (last + 0.5) * self.base, even & (first % 2 == 1), (last % 2 == 1) | (not even))

    def check(self, published: np.ndarray) -> str | None:
        """Only multiples are published."""
        wrong = published[np.abs(published / self.base - np.rint(published / self.base)) > 1e-6]
        return f"{wrong[0]:g} is no multiple of {self.base:g}" if wrong.size else None


@dataclass(frozen=True, eq=False, repr=False)
class Clipped(Step):
    """Numbers outside two ends were moved to the nearer one, such as noisy counts below 0 that are published as 0.

    Parameters
    ----------
    lower, upper : float or array, optional
        The ends; an array has one for every row.

    Examples
    --------
    >>> pmdp.Clipped(lower=0).words
    'clipped to at least 0'
    """

    lower: Any = -np.inf
    upper: Any = np.inf

    def __post_init__(self) -> None:
        ends = _numbers(self.lower, "lower", "Clipped(lower=0)"), _numbers(self.upper, "upper", "Clipped(upper=100)")
        if not (ends[0] < ends[1]).all():
            raise Refusal("lower must be less than upper. Write Clipped(lower=0, upper=100).")

    @property
    def words(self) -> str:
        """What was done, in words."""
        ends = {"at least": self.lower, "at most": self.upper}
        return "clipped to " + " and ".join(f"{word} {shown(end)}" for word, end in ends.items() if np.isfinite(np.asarray(end)).any())

    def before(self, ends: "Ends") -> "Ends":
        """Between which numbers lies what is clipped into an interval, which is empty where nothing does."""
        below = (ends.low < self.lower) | ((ends.low == self.lower) & ~ends.low_open)
        above = (ends.high > self.upper) | ((ends.high == self.upper) & ~ends.high_open)
        low, high = np.where(below, -np.inf, ends.low), np.where(above, np.inf, ends.high)
        beyond = (ends.high < self.lower) | (ends.low > self.upper)
        beyond |= ((ends.high == self.lower) & ends.high_open) | ((ends.low == self.upper) & ends.low_open)
        return Ends(np.where(beyond, np.inf, low), np.where(beyond, -np.inf, high), ends.low_open & ~below, ends.high_open & ~above)

    def check(self, published: np.ndarray) -> str | None:
        """Nothing is published beyond the ends."""
        wrong = published[(published < self.lower) | (published > self.upper)]
        return f"{wrong[0]:g} lies beyond the ends" if wrong.size else None


@dataclass(frozen=True, eq=False, repr=False)
class Threshold(Step):
    """Only numbers of at least ``lowest`` were published.

    Parameters
    ----------
    lowest : float or array
        The least number that is published; an array has one for every row.
    absent : str
        "listed": all rows are in the table, and those that were not published are NaN, each known to lie below (censored). "unlisted":
        rows that were not published are not in the table, and how many there were is unknown (truncated). Only you can know which.

    Examples
    --------
    >>> pmdp.Threshold(450, absent="unlisted").words
    'left out below 450'
    """

    lowest: Any
    absent: str = ""

    def __post_init__(self) -> None:
        _numbers(self.lowest, "lowest", 'Threshold(450, absent="listed")')
        if self.absent not in ("listed", "unlisted"):
            raise Refusal(
                'Say what became of rows below the threshold: absent="listed" where they are in your table, as NaN, or absent="unlisted"'
                " where they are not in it."
            )

    @property
    def words(self) -> str:
        """What was done, in words."""
        return f"{'left out' if self.absent == 'unlisted' else 'not shown'} below {shown(self.lowest)}"

    def check(self, published: np.ndarray) -> str | None:
        """Nothing is published below."""
        wrong = published[published < np.asarray(self.lowest, dtype=float)]
        return f"{wrong[0]:g} lies below the threshold" if wrong.size else None


@dataclass(frozen=True, eq=False, repr=False)
class Suppressed(Step):
    """Rows whose true count lay between two ends, these included, were not published, before anything else was done: small cells.

    They are in the table, as NaN. All other rows were published, those below ``lowest`` too: with ``Suppressed(1, 9)`` counts of 0 and
    from 10 on. Rows that were taken out to hide others (secondary suppression) are not such: take them out of the model.

    Parameters
    ----------
    lowest, highest : int or array
        The least and the largest true count that is not published; an array has one for every row.

    Examples
    --------
    >>> pmdp.Suppressed(1, 9).words
    'not shown where the true count is 1 to 9'
    """

    lowest: Any
    highest: Any

    def __post_init__(self) -> None:
        low, high = (_numbers(end, name, "Suppressed(1, 9)") for name, end in (("lowest", self.lowest), ("highest", self.highest)))
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low >= 0).all() and (low <= high).all()):
            raise Refusal("lowest and highest are counts, the lower one first. Write for example Suppressed(1, 9).")
        if (low != np.rint(low)).any() or (high != np.rint(high)).any():
            raise Refusal("lowest and highest are whole numbers. Write for example Suppressed(1, 9).")

    @property
    def words(self) -> str:
        """What was done, in words."""
        return f"not shown where the true count is {shown(self.lowest)} to {shown(self.highest)}"


def _numbers(value: object, name: str, example: str) -> np.ndarray:
    array = doubles(value)
    if not array.size or np.isnan(array).any():
        raise Refusal(f"{name} must be a number, or an array with one for every row. Write for example {example}.")
    return array


@dataclass(frozen=True)
class Events:
    """The interval in which the noisy number of every row lies: arrays of the shape of the rows.

    Attributes
    ----------
    noise : Noise
        The first step.
    setting : array or Variable
        Its number for every row.
    low, high : array
        Between them, ends included, lay the noisy number. They are equal where it was published as it was.
    least : array or None
        Where rows that were not published are not in the table: a row is in it only if the noisy number is at least this.
    hidden : Suppressed or None
        Where rows with such true counts were not published: with an end for every row. ``absent`` says which rows they are, whose
        ``low`` and ``high`` are these ends.
    absent : array of bool or None
    """

    noise: Noise
    setting: Any
    low: np.ndarray
    high: np.ndarray
    least: np.ndarray | None
    hidden: Suppressed | None = None
    absent: np.ndarray | None = None

    @property
    def as_it_was(self) -> bool:
        """Whether nothing was done to the truth."""
        return isinstance(self.noise, Exact) and self.least is None and self.hidden is None and bool((self.low == self.high).all())


def events_of(name: str, published: np.ndarray, steps: Sequence[Step], rows: np.ndarray | None = None, whole: bool = True) -> Events:
    """What was published of a variable, and what was done to it, as events.

    Parameters
    ----------
    name : str
    published : array
        NaN where nothing was published.
    steps : sequence of Step
        In the order in which they were taken.
    rows : array of bool, optional
        The rows of the table that are meant; the others are left out of the result.
    whole : bool
        Whether the truth is a count.
    """
    hidden = steps[0] if steps and isinstance(steps[0], Suppressed) else None
    noise, later = noise_and_rest(name, steps if hidden is None else steps[1:], hidden)
    shape = published.shape
    absent = np.isnan(published)
    threshold = later[-1] if later and isinstance(later[-1], Threshold) else None
    if hidden is not None:
        hidden = _suppressed(name, hidden, noise, shape, whole)
    elif absent.any() and (threshold is None or threshold.absent == "unlisted"):
        raise Refusal(
            f'{name} has missing values, and nothing says why. Add Threshold(lowest, absent="listed") to what was done to it if they lie'
            " below a threshold, take these rows out of the model, or write 0 where the publisher leaves rows of 0 out."
        )
    later = [_by_row(name, step, shape) for step in later]
    setting: Any = noise.setting if _is_unknown(noise) else _spread(name, noise.setting, shape)
    if published.size == 0:
        raise Refusal(f"{name} has no rows. Give it the published numbers as observed=.")
    _check(name, published, absent, noise, later)
    ends, least = Ends.closed(published.astype(float), published.astype(float)), None
    for step in reversed(later):
        if isinstance(step, Threshold):
            ends = Ends(np.where(absent, -np.inf, ends.low), np.where(absent, step.lowest, ends.high), ends.low_open, absent)
            least = Ends.closed(step.lowest, np.full(shape, np.inf)) if step.absent == "unlisted" else None
        else:
            ends, least = step.before(ends), least if least is None else step.before(least)
    if hidden is not None:
        low, high = np.where(absent, hidden.lowest, ends.low), np.where(absent, hidden.highest, ends.high)
        ends = Ends(low, high, ends.low_open & ~absent, ends.high_open & ~absent)
    (low, high), lowest = ends.inside(), None if least is None else least.inside()[0]
    if whole and noise.whole:
        with np.errstate(invalid="ignore"):
            low, high, lowest = np.ceil(low), np.floor(high), lowest if lowest is None else np.ceil(lowest)
    if (low > high).any():
        raise Refusal(f"{name} holds {published[low > high][0]:g}, which cannot be published after {_steps(steps)}. Look at what was done.")
    if lowest is not None and not np.isfinite(lowest).all():
        raise Refusal(f"Of {name} every number is published after {_steps(steps)}. Leave Threshold out.")
    if ((low == -np.inf) & (high == np.inf)).any():
        raise Refusal(f"{name} has rows of which nothing is known after {_steps(steps)}. Take them out of the model.")
    chosen = np.ones(shape, dtype=bool) if rows is None else rows
    if rows is not None:
        setting = setting if _is_unknown(noise) else setting[chosen]
        low, high, absent = low[chosen], high[chosen], absent[chosen]
        lowest = lowest if lowest is None else lowest[chosen]
        hidden = hidden if hidden is None else Suppressed(hidden.lowest[chosen], hidden.highest[chosen])
    return Events(noise, setting, low, high, lowest, hidden, None if hidden is None else absent)


def _suppressed(name: str, hidden: Suppressed, noise: Noise, shape: tuple[int, ...], whole: bool) -> Suppressed:
    """The ends of hidden counts, spread over the rows; or a refusal of what is not understood beside them."""
    if not whole:
        raise Refusal(
            f"{name} is no count, and Suppressed is about true counts. Write pm.Poisson, pm.Binomial, pm.NegativeBinomial or alike."
        )
    if _is_unknown(noise):
        raise Refusal(f"{name} has noise of an unknown scale, and counts that were suppressed. Give the scale as a number.")
    return Suppressed(_spread(name, hidden.lowest, shape), _spread(name, hidden.highest, shape))


def noise_and_rest(name: str, steps: Sequence[Step], hidden: Suppressed | None = None) -> tuple[Noise, list[Any]]:
    """The noise, which comes first, or after ``hidden`` true counts, and what was done afterwards."""
    first = steps[0] if steps and isinstance(steps[0], Noise) else None
    later = list(steps[1:] if first is not None else steps)
    if not later and first is None and hidden is None:
        raise Refusal(f"Nothing is said of {name}. Write for example laws={{{name!r}: pymc_dp.DiscreteLaplace(10)}}.")
    if any(isinstance(step, Noise) for step in later):
        raise Refusal(
            f"{name} has noise that is not the first step. Write the noise first, one only, and then rounding, clipping, threshold."
        )
    if any(isinstance(step, Suppressed) for step in later):
        raise Refusal(f"Suppressed is about true counts of {name}, before any noise. Write it first, and only once; or Threshold, last.")
    if hidden is not None and not all(isinstance(step, Rounded) for step in later):
        raise Refusal(
            f"{name} was suppressed by its true counts, and was clipped or had a threshold besides, which is not understood together. Write"
            " [Suppressed(1, 9), noise], with Rounded after it where that was done."
        )
    if any(isinstance(step, Threshold) for step in later[:-1]):
        raise Refusal(f"The threshold of {name} must be the last step. Write [noise, rounding, threshold].")
    return first or Exact(), later


def _is_unknown(noise: Noise) -> bool:
    return isinstance(noise.setting, Variable)


def _steps(steps: Sequence[Step]) -> str:
    return ", then ".join(step.words for step in steps)


def _spread(name: str, value: object, shape: tuple[int, ...]) -> np.ndarray:
    """A number of every row, from one or from an array."""
    array = np.asarray(value, dtype=float)
    if array.ndim == 1 and array.size > 1 and shape.count(array.size) > 1:
        raise Refusal(
            f"{name} has rows of shape {shape}, and an array of {array.size} numbers beside them could be of either axis. Give a number for"
            " every row, or the array with an axis of length 1, such as scale[:, None]."
        )
    try:
        return np.array(np.broadcast_to(array, shape))
    except ValueError:
        raise Refusal(
            f"{name} has rows of shape {shape}, and an array of shape {array.shape} beside them. Give one number for every row."
        ) from None


def _by_row(name: str, step: Any, shape: tuple[int, ...]) -> Any:
    """A step with its numbers spread over the rows."""
    if isinstance(step, Clipped):
        return Clipped(_spread(name, step.lower, shape), _spread(name, step.upper, shape))
    if isinstance(step, Threshold):
        return Threshold(_spread(name, step.lowest, shape), step.absent)
    return step


def _check(name: str, published: np.ndarray, absent: np.ndarray, noise: Noise, later: Sequence[Any]) -> None:
    """Refuse what cannot have been published."""
    there = published[~absent]
    if not np.isfinite(there).all():
        raise Refusal(f"{name} holds numbers that are not finite. Write NaN for rows that were not published, and only there.")
    words, last = None, [step for step in later if not isinstance(step, Threshold)][-1:]  # what was done before it shows no more
    for step in [*last, *(step for step in later if isinstance(step, Threshold))] if there.size else []:
        if isinstance(step, Clipped):
            words = words or Clipped(step.lower[~absent], step.upper[~absent]).check(there)
        elif isinstance(step, Threshold):
            words = words or Threshold(step.lowest[~absent], step.absent).check(there)
        else:
            words = words or step.check(there)
    if all(isinstance(step, Threshold) for step in later):
        words = words or noise.check(there)
    if words is not None:
        raise Refusal(f"{name} cannot have been published like this: {words}. Look at what was done, or at the row.")
