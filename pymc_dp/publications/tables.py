"""The vocabulary of transition tables: the probability of every published value given the true one, such as random rounding and
randomised answers.
"""

from dataclasses import dataclass, field
from math import exp
from typing import Any, ClassVar, Self

import numpy as np

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.noises import Noise, positive, share_of, shown


@dataclass(frozen=True, eq=False, repr=False)
class NoiseTable(Noise):
    """Noise with given probabilities, the same wherever the truth lies.

    Parameters
    ----------
    differences : array of int
        Published less true.
    probabilities : array
        They add up to 1.

    Examples
    --------
    >>> pmdp.NoiseTable([-1, 0, 1], [0.25, 0.5, 0.25]).words
    'noise from a table of 3 differences'
    """

    differences: Any
    probabilities: Any

    def __post_init__(self) -> None:
        differences, chances = np.asarray(self.differences, dtype=float), np.asarray(self.probabilities, dtype=float)
        if differences.ndim != 1 or differences.shape != chances.shape or not differences.size:
            raise Refusal("differences and probabilities must have one entry each. Write NoiseTable([-1, 0, 1], [0.25, 0.5, 0.25]).")
        if not np.array_equal(differences, np.rint(differences)) or len(set(differences.tolist())) < len(differences):
            raise Refusal("differences must be whole numbers, each once. Write NoiseTable([-1, 0, 1], [0.25, 0.5, 0.25]).")
        if not (chances >= 0).all() or not abs(chances.sum() - 1) < 1e-9:
            raise Refusal("probabilities must not be negative and must add up to 1. Write NoiseTable([-1, 0, 1], [0.25, 0.5, 0.25]).")

    @property
    def words(self) -> str:
        """What was done, in words."""
        return f"noise from a table of {len(np.asarray(self.differences))} differences"

    def pmf(self, setting: float) -> np.ndarray:
        """The table, and zeros between."""
        places = np.asarray(self.differences, dtype=int)
        reach = int(np.abs(places).max())
        result = np.zeros(2 * reach + 1)
        result[places + reach] = np.asarray(self.probabilities, dtype=float)
        return result


@dataclass(frozen=True, eq=False, repr=False)
class RoundedToBase(Noise):
    """Random rounding to one of the two nearest multiples of a base, without bias: the nearer the more probable. Multiples stay.

    To base 3 the nearer multiple is taken with probability 2/3, which statistical offices call RR3; in general a number that is d from
    a multiple goes there with probability 1 - d / base.

    Parameters
    ----------
    base : int

    Examples
    --------
    >>> pmdp.RoundedToBase(3).words
    'rounded at random to a multiple of 3'
    """

    base: int

    def __post_init__(self) -> None:
        if isinstance(self.base, bool) or not isinstance(self.base, int | np.integer) or not 2 <= self.base <= 10_000:
            raise Refusal("base must be a whole number from 2 to 10,000. Write RoundedToBase(3).")

    @property
    def words(self) -> str:
        """What was done, in words."""
        return f"rounded at random to a multiple of {self.base}"

    def check(self, published: np.ndarray) -> str | None:
        """Only multiples are published, and none below 0."""
        wrong = published[(published % self.base != 0) | (published < 0)]
        return None if not wrong.size else f"{wrong[0]:g} is no multiple of {self.base}" if wrong[0] >= 0 else f"{wrong[0]:g} is negative"


@dataclass(frozen=True, eq=False, repr=False)
class Transitions(Noise):
    """A table of the probabilities of every published value given every true one, as cell-key methods and randomised answers have it.

    Parameters
    ----------
    matrix : (K, M) array
        Entry (s, v) is the probability that v is published where s = 0, ..., K - 1 is true; rows add up to 1. True values of K and
        more are taken to be impossible: give a count as many rows as it may need.

    Examples
    --------
    >>> pmdp.Transitions([[0.9, 0.1], [0.2, 0.8]]).words
    'one of 2 values published by a table of probabilities'
    """

    matrix: Any

    movable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        table = np.asarray(self.matrix, dtype=float)
        if table.ndim != 2 or not table.size or not (table >= 0).all() or not np.allclose(table.sum(axis=1), 1, rtol=0, atol=1e-9):
            raise Refusal(
                "matrix needs a row for every true value, whose probabilities add up to 1. Write Transitions([[0.9, 0.1], [0, 1]])."
            )

    @property
    def words(self) -> str:
        """What was done, in words."""
        return f"one of {np.asarray(self.matrix).shape[1]} values published by a table of probabilities"

    def table(self, setting: float) -> np.ndarray:
        """The matrix."""
        return np.asarray(self.matrix, dtype=float)

    def check(self, published: np.ndarray) -> str | None:
        """Only columns are published."""
        many = self.table(float(np.min(np.asarray(self.setting)))).shape[1]
        wrong = published[(published < 0) | (published >= many) | (published % 1 != 0)]
        return f"{wrong[0]:g} is none of the answers 0 to {many - 1}" if wrong.size else None


@dataclass(frozen=True, eq=False, repr=False)
class RandomisedResponse(Transitions):
    """Every answer was told truly with a known probability, and was otherwise one of the other answers, all equally probable.

    Parameters
    ----------
    truth : float or array
        The probability of the true answer: a number, or one for every row.
    levels : int
        How many answers there are: 0, ..., levels - 1.

    Notes
    -----
    Warner (1965); of epsilon-local privacy, ``RandomisedResponse.from_epsilon``. Of designs in which a coin decides whether the
    answer is true or drawn at random from all levels, truth = p + (1 - p) / levels.

    Examples
    --------
    >>> pmdp.RandomisedResponse(0.75).table(0.75)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """

    matrix: Any = field(default=None, init=False, repr=False)
    truth: Any = 0.75
    levels: int = 2

    def __init__(self, truth: Any, levels: int = 2) -> None:
        object.__setattr__(self, "truth", truth)
        object.__setattr__(self, "levels", levels)
        if isinstance(levels, bool) or not isinstance(levels, int | np.integer) or not 2 <= levels <= 10_000:
            raise Refusal("levels must be a whole number of at least 2. Write RandomisedResponse(0.75, levels=2).")
        if (positive(truth, "truth", "RandomisedResponse(0.75)") > 1).any():
            raise Refusal("truth is a probability. Write RandomisedResponse(0.75) where three of four answers are true.")

    @classmethod
    def from_epsilon(cls, epsilon: float, levels: int = 2) -> Self:
        """Randomised response of epsilon-local privacy: truth = exp(epsilon) / (exp(epsilon) + levels - 1)."""
        share = float(positive(epsilon, "epsilon", "RandomisedResponse.from_epsilon(1.0)"))
        return cls(1 / (1 + (levels - 1) * exp(-share)), levels)

    def check(self, published: np.ndarray) -> str | None:
        """Only answers are published."""
        words = super().check(published)
        return words and (
            f"{words}; with more answers write levels=, as in RandomisedResponse(0.75, levels=3), and write the number of yes among n"
            " answers as pm.Binomial('yes', n, truth * p + (1 - truth) * (1 - p)) with pymc_dp.Exact()"
        )

    @property
    def setting(self) -> object:
        """The probability of the true answer."""
        return self.truth

    @property
    def words(self) -> str:
        """What was done, in words."""
        return f"one of {self.levels} answers, true with probability {shown(self.truth)}"

    def table(self, setting: float) -> np.ndarray:
        """The matrix."""
        others = (1 - setting) / (self.levels - 1)
        return np.full((self.levels, self.levels), others) + (setting - others) * np.eye(self.levels)


@dataclass(frozen=True, eq=False, repr=False)
class UnrelatedQuestion(Transitions):
    """Yes or no to one of two questions, chosen at random and unseen: the one of interest, or one that has nothing to do with it.

    Parameters
    ----------
    asked : float or array
        The probability of the question of interest: a number, or one for every row.
    yes : float
        The probability of a yes to the other question, which is known: by design, as of a birthday in spring, or from a register.

    Notes
    -----
    Greenberg, Abul-Ela, Simmons and Horvitz (1969). ``ForcedResponse`` is the same with a coin or a die in the place of the other question.
    Answers are 0 (no) and 1 (yes).

    Examples
    --------
    >>> pmdp.UnrelatedQuestion(asked=0.7, yes=0.25).table(0.7)
    array([[0.925, 0.075],
           [0.225, 0.775]])
    """

    matrix: Any = field(default=None, init=False, repr=False)
    asked: Any = 0.7
    yes: float = 0.5

    def __init__(self, asked: Any, yes: float) -> None:
        object.__setattr__(self, "asked", asked)
        object.__setattr__(self, "yes", yes)
        if (positive(asked, "asked", "UnrelatedQuestion(asked=0.7, yes=0.25)") > 1).any():
            raise Refusal("asked is a probability. Write UnrelatedQuestion(asked=0.7, yes=0.25).")
        share_of(yes, "yes")

    @property
    def setting(self) -> object:
        """The probability of the question of interest."""
        return self.asked

    @property
    def words(self) -> str:
        """What was done, in words."""
        return f"yes or no to the question with probability {shown(self.asked)}, otherwise to another, with {self.yes:g} of yes"

    def table(self, setting: float) -> np.ndarray:
        """The matrix."""
        return setting * np.eye(2) + (1 - setting) * np.array([1 - self.yes, self.yes])


class ForcedResponse(UnrelatedQuestion):
    """Yes or no, but with known probabilities a die made people say yes, or no, whatever is true.

    Parameters
    ----------
    yes, no : float or array
        The probabilities of a yes and of a no that were forced; the rest of the answers are true. Arrays have one for every row, and the
        share of yes among forced answers is the same in all of them.

    Notes
    -----
    Boruch (1971).

    Examples
    --------
    >>> pmdp.ForcedResponse(yes=1 / 6, no=1 / 6).words
    'true with probability 0.666667, otherwise forced, to yes with probability 0.5'
    """

    def __init__(self, yes: Any, no: Any) -> None:
        example = "ForcedResponse(yes=1 / 6, no=1 / 6)"
        forced = positive(yes, "yes", example) + positive(no, "no", example)
        shares = np.asarray(yes, dtype=float) / forced
        if (forced >= 1).any():
            raise Refusal(f"yes and no together must leave some answers true. Write {example}.")
        if np.ptp(shares) > 1e-9:
            raise Refusal(
                "The share of yes among forced answers differs between rows. Give rows of each share an observed variable of their own, and"
                " a ForcedResponse."
            )
        asked = 1 - forced
        super().__init__(asked if np.ndim(asked) else float(asked), float(np.min(shares)))

    def __repr__(self) -> str:
        forced = 1 - np.asarray(self.asked)
        return f"ForcedResponse(yes={shown(forced * self.yes)}, no={shown(forced * (1 - self.yes))})"

    @property
    def words(self) -> str:
        """What was done, in words."""
        return f"true with probability {shown(self.asked)}, otherwise forced, to yes with probability {self.yes:g}"
