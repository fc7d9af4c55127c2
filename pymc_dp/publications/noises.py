"""The vocabulary of noise: the law of a published number given the true one, as those who publish describe it.

Every class says within which distance of the published number the truth may lie, and how probable each is. All but a share of 1e-13 of
the probability of a noise lies within its ``reach``.
"""

from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.layout import as_written

NATS = 30.0
"""Noise is followed until it is less probable than exp(-NATS)."""
SIGMAS = 7.8
"""So many standard deviations of normal noise are exp(-NATS) of the probability."""


def doubles(value: object) -> np.ndarray:
    """A number or numbers as doubles; NaN where it is neither, or masked."""
    try:
        return np.ma.filled(np.ma.asarray(value, dtype=float), np.nan)
    except (TypeError, ValueError):
        return np.array(np.nan)


def positive(value: object, name: str, example: str) -> np.ndarray:
    """An array of positive finite numbers, or a refusal that says what to write."""
    array = doubles(value)
    if not array.size or not (np.isfinite(array).all() and (array > 0).all()):
        raise Refusal(f"{name} must be a positive number, or an array with one for every row. Write for example {example}.")
    return array


class Step:
    """One thing that was done to a number before it was published."""

    __repr__ = as_written

    @property
    def words(self) -> str:
        """What was done, in words."""
        raise NotImplementedError


class Noise(Step):
    """A law of published numbers given true ones, the first step. ``setting`` is its parameter for every row, such as a scale."""

    whole: ClassVar[bool] = True
    """Whether whole numbers stay whole."""
    movable: ClassVar[bool] = True
    """Whether a true number that is larger by a base is published as one that is larger by that base, with the same probabilities."""

    @property
    def setting(self) -> object:
        """A number, an array, or a variable of the model."""
        return 0.0

    def pmf(self, setting: float) -> np.ndarray:
        """Probabilities of the differences published - true = -R, ..., R. Of whole noise."""
        raise NotImplementedError

    def check(self, published: np.ndarray) -> str | None:
        """What is wrong with published numbers (rows,) that this cannot give, in words."""
        return None


@dataclass(frozen=True, eq=False, repr=False)
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
        """Probability 1 of no difference between published and true numbers."""
        return np.ones(1)


@dataclass(frozen=True, eq=False, repr=False)
class _Scaled(Noise):
    scale: Any
    largest: float | None = None

    def __new__(cls, *settings: object, **named: object) -> Self:
        """Refuse what is no scale: publishers state an epsilon, a variance or a margin, from which a scale is made."""
        known = [field for field in ("scale", "largest") if field in named]
        if (others := [name for name in named if name not in known]) or not (settings or "scale" in known):
            made = [f"from_{name}" for name in others if hasattr(cls, f"from_{name}")]
            write = f"{cls.__name__}.{made[0]}({made[0].removeprefix('from_')})" if made else f"{cls.__name__}(10.0)"
            raise Refusal(f"{cls.__name__} is made from the scale of the noise. Write {write}.")
        return super().__new__(cls)

    def __getnewargs__(self) -> tuple[object, ...]:
        """What a copy begins with."""
        return self.scale, self.largest

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
        """Noise of which ``margin`` is the normal quantile at ``level``, 1.96 times the scale at 95 %, as publishers compute it."""
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
        In units of the published number; an array has one for every row. ``DiscreteLaplace.from_epsilon(epsilon, sensitivity)``,
        ``from_variance`` and ``from_margin`` compute it.
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

    @classmethod
    def from_margin(cls, margin: object, level: float = 0.95) -> Self:
        """Noise that lies within plus or minus ``margin`` with probability ``level``.

        With q = exp(-1 / scale), 2 q^(m + 1) / (1 + q) = 1 - level.
        """
        from scipy.optimize import brentq

        sizes, beyond = np.floor(positive(margin, "margin", "DiscreteLaplace.from_margin(12, level=0.95)")), 1 - share_of(level, "level")
        shares = [brentq(lambda q, m=m: 2 * q ** (m + 1) / (1 + q) - beyond, 0.0, 1.0, xtol=1e-15) for m in sizes.ravel()]
        return cls((-1 / np.log(shares)).reshape(sizes.shape))

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
        """Density of the noise at a difference of a published number and the true one."""
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
    >>> pmdp.GaussianNoise.from_rho(0.5, sensitivity=10).words
    'Gaussian noise of scale 10'
    """

    NAME = "Gaussian"
    whole = False

    def density(self, x: np.ndarray, setting: float) -> np.ndarray:
        """Density of the noise at a difference of a published number and the true one."""
        return np.exp(-0.5 * (x / setting) ** 2) / (sqrt(2 * np.pi) * setting)

    def below(self, x: np.ndarray, setting: float) -> np.ndarray:
        """Probability of a smaller difference."""
        from scipy.special import ndtr

        return ndtr(x / setting)

    def reach(self, setting: float) -> float:
        """Beyond lies a share of exp(-NATS)."""
        return SIGMAS * setting


@dataclass(frozen=True, eq=False, repr=False)
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
