"""The vocabulary of noise: the law of a published number given the true one, as those who publish describe it.

Every class says within which distance of the published number the truth may lie, and how probable each is. All but a share of 1e-13 of
the probability of a noise lies within its ``reach``.
"""

from dataclasses import dataclass, field
from math import ceil, exp, log, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.privacy.accounting import Refusal

NATS = 30.0
"""Noise is followed until it is less probable than exp(-NATS)."""
SIGMAS = 7.8
"""So many standard deviations of normal noise are exp(-NATS) of the probability."""


def positive(value: object, name: str, example: str) -> np.ndarray:
    """An array of positive finite numbers, or a refusal that says what to write."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if not array.size or not (np.isfinite(array).all() and (array > 0).all()):
        raise Refusal(f"{name} must be a positive number, or an array with one for every row. Write for example {example}.")
    return array


class Step:
    """One thing that was done to a number before it was published."""

    @property
    def words(self) -> str:
        """What was done, in words."""
        raise NotImplementedError


class Noise(Step):
    """The first step: published given true. ``setting`` is its number for every row, such as a scale."""

    whole: ClassVar[bool] = True
    """Whether whole numbers stay whole."""
    moved: ClassVar[bool] = True
    """Whether the law is that of a difference, the same wherever the truth lies."""

    @property
    def setting(self) -> object:
        """A number, an array, or a variable of the model."""
        return 0.0

    def pmf(self, setting: float) -> np.ndarray:
        """Probabilities of the differences published - true = -R, ..., R. Of whole noise that is moved."""
        raise NotImplementedError

    def check(self, published: np.ndarray) -> str | None:
        """What is wrong with published numbers (rows,) that this cannot give, in words."""
        return None


@dataclass(frozen=True, eq=False)
class Exact(Noise):
    """Nothing was done: the number is the true one. For totals that are published as they are, beside others that are noisy.

    Examples
    --------
    >>> pmdp.Exact().words
    'published as it is'
    """

    @property
    def words(self) -> str:
        """What was done, in words."""
        return "published as it is"

    def pmf(self, setting: float) -> np.ndarray:
        """No difference."""
        return np.ones(1)


@dataclass(frozen=True, eq=False)
class _Scaled(Noise):
    scale: Any
    largest: float | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        if isinstance(self.scale, Variable):
            if self.largest is not None:
                positive(self.largest, "largest", f"{name}(scale, largest=50)")
            return
        if self.largest is not None:
            raise Refusal(f"largest is for a scale that is a variable of the model. Write {name}(scale) alone.")
        positive(self.scale, f"The scale of {name}", f"{name}(10.0)")

    @property
    def setting(self) -> object:
        """The scale."""
        return self.scale

    @property
    def words(self) -> str:
        """What was done, in words."""
        return f"{self.NAME} noise of scale {shown(self.scale)}"

    NAME: ClassVar[str] = ""


def shown(setting: object) -> str:
    """A setting in words: a number, a range, or the name of a variable."""
    if isinstance(setting, Variable):
        return str(setting.name or "that is unknown")
    array = np.asarray(setting, dtype=float)
    low, high = float(array.min()), float(array.max())
    return f"{low:g}" if low == high else f"{low:g} to {high:g}, by row"


class _LaplaceScales(_Scaled):
    @classmethod
    def from_epsilon(cls, epsilon: object, sensitivity: float = 1.0) -> Self:
        """Noise that gives ``epsilon`` to numbers that one unit moves by ``sensitivity`` at most: scale = sensitivity / epsilon."""
        name = cls.__name__
        share = positive(epsilon, "epsilon", f"{name}.from_epsilon(0.1)")
        return cls(positive(sensitivity, "sensitivity", f"{name}.from_epsilon(0.1, sensitivity=2)") / share)


class _GaussianScales(_Scaled):
    @classmethod
    def from_variance(cls, variance: object) -> Self:
        """Noise of this variance parameter, a number or one for every row: scale = sqrt(variance)."""
        return cls(np.sqrt(positive(variance, "variance", f"{cls.__name__}.from_variance(4.0)")))

    @classmethod
    def from_rho(cls, rho: object, sensitivity: float = 1.0) -> Self:
        """Noise that gives ``rho`` (zero-concentrated privacy, nats): scale = sensitivity / sqrt(2 rho)."""
        share = positive(rho, "rho", f"{cls.__name__}.from_rho(0.1)")
        return cls(positive(sensitivity, "sensitivity", f"{cls.__name__}.from_rho(0.1, sensitivity=1)") / np.sqrt(2 * share))

    @classmethod
    def from_margin(cls, margin: object, level: float = 0.95) -> Self:
        """Noise that lies within plus or minus ``margin`` with probability ``level``, as clean rooms state it."""
        from scipy.special import ndtri  # not with the package: import is to be light

        size = positive(margin, "margin", f"{cls.__name__}.from_margin(12.0, level=0.95)")
        return cls(size / float(ndtri((1 + share_of(level, "level")) / 2)))


def share_of(value: object, name: str) -> float:
    """A number between 0 and 1, without the ends."""
    share = float(positive(value, name, f"{name}=0.95"))
    if share >= 1:
        raise Refusal(f"{name} must be below 1. Write for example {name}=0.95.")
    return share


class DiscreteLaplace(_LaplaceScales):
    """Two-sided geometric noise: whole numbers k with probability proportional to exp(-abs(k) / scale).

    Parameters
    ----------
    scale : float, array or PyMC variable
        In units of the published number; an array has one for every row. ``DiscreteLaplace.from_epsilon(epsilon, sensitivity)`` and
        ``from_variance`` compute it.
    largest : float, optional
        Of a scale that is an unknown of the model: what it cannot exceed. Sums go as far as noise of that scale would.

    Notes
    -----
    Ghosh, Roughgarden and Sundararajan (2012), the geometric mechanism.

    Examples
    --------
    >>> pmdp.DiscreteLaplace.from_epsilon(0.1).words
    'discrete Laplace noise of scale 10'
    """

    NAME = "discrete Laplace"

    @classmethod
    def from_variance(cls, variance: object) -> Self:
        """Noise of this variance, 2 q / (1 - q)^2 with q = exp(-1 / scale)."""
        half = positive(variance, "variance", "DiscreteLaplace.from_variance(4.0)") / 2
        return cls(-1 / np.log1p(-2 / (1 + np.sqrt(1 + 4 * half))))

    def pmf(self, setting: float) -> np.ndarray:
        """Geometric to both sides."""
        reach = ceil(NATS * setting)
        weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / setting)
        return weights * np.tanh(0.5 / setting)


class DiscreteGaussian(_GaussianScales):
    """Discrete Gaussian noise: whole numbers k with probability proportional to exp(-k^2 / (2 scale^2)).

    Parameters
    ----------
    scale : float, array or PyMC variable
        In units of the published number. ``from_variance`` takes the parameter scale^2, as the US Census writes it beside every number;
        ``from_rho`` and ``from_margin`` compute it.
    largest : float, optional
        Of a scale that is an unknown of the model: what it cannot exceed.

    Notes
    -----
    Canonne, Kamath and Steinke (2020).

    Examples
    --------
    >>> pmdp.DiscreteGaussian.from_variance([4.0, 25.0]).words
    'discrete Gaussian noise of scale 2 to 5, by row'
    """

    NAME = "discrete Gaussian"

    def pmf(self, setting: float) -> np.ndarray:
        """Normal densities, normalised."""
        reach = ceil(SIGMAS * setting) + 1
        weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / setting) ** 2)
        return weights / weights.sum()


class LaplaceNoise(_LaplaceScales):
    """Laplace noise on the real line: density exp(-abs(x) / scale) / (2 scale).

    Parameters
    ----------
    scale : float, array or PyMC variable
        In units of the published number. ``from_epsilon``, ``from_variance`` and ``from_margin`` compute it.

    Examples
    --------
    >>> pmdp.LaplaceNoise.from_epsilon(0.5, sensitivity=2).words
    'Laplace noise of scale 4'
    """

    NAME = "Laplace"
    whole = False

    @classmethod
    def from_variance(cls, variance: object) -> Self:
        """Noise of this variance, 2 scale^2."""
        return cls(np.sqrt(positive(variance, "variance", "LaplaceNoise.from_variance(4.0)") / 2))

    @classmethod
    def from_margin(cls, margin: object, level: float = 0.95) -> Self:
        """Noise that lies within plus or minus ``margin`` with probability ``level``."""
        return cls(positive(margin, "margin", "LaplaceNoise.from_margin(12.0, level=0.95)") / -log(1 - share_of(level, "level")))

    def density(self, x: np.ndarray, setting: float) -> np.ndarray:
        """Of a difference."""
        return np.exp(-np.abs(x) / setting) / (2 * setting)

    def below(self, x: np.ndarray, setting: float) -> np.ndarray:
        """Probability of a smaller difference."""
        tail = 0.5 * np.exp(-np.abs(x) / setting)
        return np.where(x < 0, tail, 1 - tail)

    def reach(self, setting: float) -> float:
        """Beyond lies a share of exp(-NATS)."""
        return NATS * setting


class GaussianNoise(_GaussianScales):
    """Normal noise of standard deviation ``scale``.

    Parameters
    ----------
    scale : float, array or PyMC variable
        In units of the published number. ``from_variance``, ``from_rho`` and ``from_margin`` compute it.

    Examples
    --------
    >>> pmdp.GaussianNoise.from_margin(19.6, level=0.95).words
    'Gaussian noise of scale 10.0004'
    """

    NAME = "Gaussian"
    whole = False

    def density(self, x: np.ndarray, setting: float) -> np.ndarray:
        """Of a difference."""
        return np.exp(-0.5 * (x / setting) ** 2) / (sqrt(2 * np.pi) * setting)

    def below(self, x: np.ndarray, setting: float) -> np.ndarray:
        """Probability of a smaller difference."""
        from scipy.special import ndtr

        return ndtr(x / setting)

    def reach(self, setting: float) -> float:
        """Beyond lies a share of exp(-NATS)."""
        return SIGMAS * setting


@dataclass(frozen=True, eq=False)
class Skellam(Noise):
    """Skellam noise: the difference of two Poisson numbers of mean variance / 2 each.

    Parameters
    ----------
    variance : float or array
        In squared units of the published number; an array has one for every row.

    Examples
    --------
    >>> pmdp.Skellam(4.0).words
    'Skellam noise of variance 4'
    """

    variance: Any

    def __post_init__(self) -> None:
        positive(self.variance, "The variance of Skellam", "Skellam(4.0)")

    @property
    def setting(self) -> object:
        """The variance."""
        return self.variance

    @property
    def words(self) -> str:
        """What was done, in words."""
        return f"Skellam noise of variance {shown(self.variance)}"

    def pmf(self, setting: float) -> np.ndarray:
        """exp(-v) I_k(v), the modified Bessel function of the first kind."""
        from scipy.special import ive

        reach = ceil(8 * sqrt(setting)) + 30
        return ive(np.abs(np.arange(-reach, reach + 1)), setting)


@dataclass(frozen=True, eq=False)
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


@dataclass(frozen=True, eq=False)
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
    moved: ClassVar[bool] = False

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


@dataclass(frozen=True, eq=False)
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
    moved: ClassVar[bool] = False

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
        return f"{wrong[0]:g} is none of 0, ..., {many - 1}" if wrong.size else None


@dataclass(frozen=True, eq=False)
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
