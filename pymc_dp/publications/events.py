"""What was done to numbers after the noise, and between which values the noisy number must then have lied.

Every published row is an event: the noisy number before rounding, clipping and suppression lies between two ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.noises import Exact, Noise, Step, doubles, positive, shown


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

    def before(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Between which numbers lies what is rounded into [low, high]."""
        with np.errstate(invalid="ignore"):
            first, last = np.ceil(low / self.base - 1e-9), np.floor(high / self.base + 1e-9)
            lower, upper = (first - 0.5) * self.base, (last + 0.5) * self.base
            if self.ties == "up":
                return lower, np.nextafter(upper, -np.inf)
            odd_first, odd_last = first % 2 == 1, last % 2 == 1
            return np.where(odd_first, np.nextafter(lower, np.inf), lower), np.where(odd_last, np.nextafter(upper, -np.inf), upper)

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

    def before(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Between which numbers lies what is clipped into [low, high]."""
        return np.where(low <= self.lower, -np.inf, low), np.where(high >= self.upper, np.inf, high)

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
    """

    noise: Noise
    setting: Any
    low: np.ndarray
    high: np.ndarray
    least: np.ndarray | None

    @property
    def as_it_was(self) -> bool:
        """Whether nothing was done to the truth."""
        return isinstance(self.noise, Exact) and self.least is None and bool((self.low == self.high).all())


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
    noise, later = noise_and_rest(name, steps)
    shape = published.shape
    absent = np.isnan(published)
    threshold = later[-1] if later and isinstance(later[-1], Threshold) else None
    if absent.any() and (threshold is None or threshold.absent == "unlisted"):
        raise Refusal(
            f'{name} has missing values, and nothing says why. Add Threshold(lowest, absent="listed") to what was done to it if they lie'
            " below a threshold, take these rows out of the model, or write 0 where the publisher leaves rows of 0 out."
        )
    later = [_by_row(name, step, shape) for step in later]
    setting: Any = noise.setting if _is_unknown(noise) else _spread(name, noise.setting, shape)
    if published.size == 0:
        raise Refusal(f"{name} has no rows. Give it the published numbers as observed=.")
    _check(name, published, absent, noise, later)
    low, high = (published.astype(float).copy() for _ in range(2))
    least = None
    for step in reversed(later):
        if isinstance(step, Threshold):
            below = np.broadcast_to(np.nextafter(np.asarray(step.lowest, dtype=float), -np.inf), shape)
            low, high = np.where(absent, -np.inf, low), np.where(absent, below, high)
            least = np.broadcast_to(np.asarray(step.lowest, dtype=float), shape) if step.absent == "unlisted" else None
        else:
            low, high = step.before(low, high)
            least = least if least is None else step.before(least, np.full(shape, np.inf))[0]
    if whole and noise.whole:
        with np.errstate(invalid="ignore"):
            low, high, least = np.ceil(low), np.floor(high), least if least is None else np.ceil(least)
    if (low > high).any():
        raise Refusal(f"{name} holds {published[low > high][0]:g}, which cannot be published after {_steps(steps)}. Look at what was done.")
    if least is not None and not np.isfinite(least).all():
        raise Refusal(f"Of {name} every number is published after {_steps(steps)}. Leave Threshold out.")
    if ((low == -np.inf) & (high == np.inf)).any():
        raise Refusal(f"{name} has rows of which nothing is known after {_steps(steps)}. Take them out of the model.")
    chosen = np.ones(shape, dtype=bool) if rows is None else rows
    if rows is not None:
        setting = setting if _is_unknown(noise) else setting[chosen]
        low, high, least = low[chosen], high[chosen], least if least is None else least[chosen]
    return Events(noise, setting, low, high, least)


def noise_and_rest(name: str, steps: Sequence[Step]) -> tuple[Noise, list[Any]]:
    """The noise, which comes first, and what was done afterwards."""
    first = steps[0] if steps and isinstance(steps[0], Noise) else None
    later = list(steps[1:] if first is not None else steps)
    if not later and first is None:
        raise Refusal(f"Nothing is said of {name}. Write for example laws={{{name!r}: pymc_dp.DiscreteLaplace(10)}}.")
    if any(isinstance(step, Noise) for step in later):
        raise Refusal(
            f"{name} has noise that is not the first step. Write the noise first, one only, and then rounding, clipping, threshold."
        )
    if any(isinstance(step, Threshold) for step in later[:-1]):
        raise Refusal(f"The threshold of {name} must be the last step. Write [noise, rounding, threshold].")
    return first or Exact(), later


def _is_unknown(noise: Noise) -> bool:
    return not isinstance(noise.setting, int | float | np.ndarray | list | tuple | np.generic)


def _steps(steps: Sequence[Step]) -> str:
    return ", then ".join(step.words for step in steps)


def _spread(name: str, value: object, shape: tuple[int, ...]) -> np.ndarray:
    """A number of every row, from one or from an array."""
    array = np.asarray(value, dtype=float)
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
    words = None
    for step in later:
        if isinstance(step, Clipped):
            words = words or Clipped(step.lower[~absent], step.upper[~absent]).check(there) if there.size else words
        elif isinstance(step, Threshold):
            words = words or (Threshold(step.lowest[~absent], step.absent).check(there) if there.size else None)
        else:
            words = words or step.check(there)
    if all(isinstance(step, Threshold) for step in later):
        words = words or noise.check(there)
    if words is not None:
        raise Refusal(f"{name} cannot have been published like this: {words}. Look at what was done, or at the row.")
