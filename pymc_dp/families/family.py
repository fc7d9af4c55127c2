"""What a likelihood family must say of itself.

A family is one class in ``families/``, found because its module lists it in ``FAMILIES``, and nothing else changes. Its docstrings are the
argument for its sensitivity. Shapes: N records, C columns, K statistics, G cells.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dp.families.grid import POINTS, filled, onto_grid
from pymc_dp.families.own_sums import Rows, own_sums
from pymc_dp.families.values import double_of
from pymc_dp.laws.kernel import Tensor
from pymc_dp.laws.law import Law, Moments


@dataclass(frozen=True)
class Domain:
    """What is publicly known about one observed variable before any record is read.

    Attributes
    ----------
    lower, upper : float
        Bounds in the user's units; values outside are clamped.
    levels : int
        Number of categories, for families that have them.
    unknown : tuple of bool
        For each parameter of the likelihood, whether it depends on an unknown.
    known : tuple of float or None
        For each parameter, its value where it is a plain number in the model.
    fill : float or None
        What a missing value becomes, if not the middle.
    clamps : bool
        Whether values may lie outside the bounds; where none can, by the user's word, the law of sums is that of values as they are.
    edges : tuple of float
        Of a variable that is counted in bins, the edges of all bins: those between two bins are not the first and not the last.
    columns : tuple of (float, float)
        The bounds of every column, where they have bounds of their own; ``lower`` and ``upper`` are then the outermost of all.
    """

    lower: float = 0.0
    upper: float = 0.0
    levels: int = 0
    unknown: tuple[bool, ...] = ()
    known: tuple[float | None, ...] = ()
    fill: float | None = None
    clamps: bool = True
    edges: tuple[float, ...] = ()
    columns: tuple[tuple[float, float], ...] = ()

    @property
    def middle(self) -> float:
        """The public fill: what a missing value becomes."""
        return self.lower / 2 + self.upper / 2 if self.fill is None else self.fill

    @property
    def half_width(self) -> float:
        """Half the distance between the bounds."""
        return (self.upper - self.lower) / 2


@dataclass(frozen=True)
class Sensitivity:
    """How far one value can move its family's statistics, in lattice units, with the reason.

    Attributes
    ----------
    difference : int
        Largest L1 distance between the statistics of two values: the cost of a change in place.
    square : int
        Largest squared L2 distance between them.
    largest : int
        Largest size of any one of the statistics of one value: a sum over n values is at most n times it.
    why : str
        The argument in one line, for people.
    """

    difference: int
    square: int
    largest: int
    why: str

    def of_rows(self, rows: int) -> "Sensitivity":
        """The sensitivity of a person of whom so many rows count, one after the other: L1 distances add up, and L2 distances at most.

        In L2 no root of ``rows`` is to be had: all rows of a person may say the same, and so move the same sum the same way.
        """
        if rows == 1:
            return self
        why = f"{self.why}, in each of {rows} rows"
        return Sensitivity(self.difference * rows, self.square * rows**2, self.largest, why)


@dataclass(frozen=True)
class CellSensitivity:
    """A family's statistics with the count among them, as entries that are never negative and always add up to ``total``.

    A value that may be in any cell, or not be there at all, needs its count released as well. In this basis its L1 norm is
    ``total`` whatever it is, so that coming or going costs ``total`` and moving to another cell ``2 total``; a count beside
    statistics centred on 0 costs half as much again (docs/theory.md).

    Attributes
    ----------
    names : tuple of str
    matrix : tuple of tuples of int
        Entry k of a value is matrix[k][0] + sum_i matrix[k][i] t_i, in lattice units: shape (L, 1 + K).
    total : int
        What the entries of every value add up to.
    square : int
        Largest squared L2 norm of the entries of one value.
    """

    names: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]
    total: int
    square: int


@dataclass(frozen=True)
class Example:
    """Parameters to try a family on: used by the tests and the docs.

    Attributes
    ----------
    domain : Domain
    cells : tuple of tuples
        One tuple per parameter, one entry per cell, at least two cells.
    """

    domain: Domain
    cells: tuple[tuple[object, ...], ...]


class Family(ABC):
    """The questions every family answers; see ``families/poisson.py`` for the plainest answers."""

    DISTRIBUTION: str
    """Name of the distribution in PyMC, or another where it has none there, being made of others."""
    BOUNDS = "none"
    """"none", "integer", "real", "nonnegative", "positive" or "unit": what bounds its observed variable needs, and where they may lie."""
    WHOLE = False
    """Whether the statistics rest on a value rounded to a whole number between its bounds, and on nothing else."""
    NDIM = 0
    """How many trailing axes of the observed array belong to a single value."""
    KNOWN: tuple[tuple[int, str], ...] = ()
    """Parameters, by position, that must be plain numbers because the statistics rest on them, with what people call them."""
    FIXED: tuple[tuple[int, str], ...] = ()
    """Parameters that must not depend on an unknown."""
    UNCLAMPED = False
    """Whether the law of the sums is known for values of which none lies outside the bounds, ``Natural`` ones."""
    NATURAL: tuple[float, float] = (0.0, 1.0)
    """Where values lie by themselves, when BOUNDS is "none" and there are no levels."""
    EXAMPLES: Sequence[Example]

    def natural(self, levels: int, known: Sequence[float | None]) -> tuple[float, float] | None:
        """Between which values a value lies by itself; None where bounds must be given."""
        if self.BOUNDS != "none":
            return None
        return (0.0, float(levels - 1)) if levels else self.NATURAL

    @abstractmethod
    def lattice(self, domain: Domain) -> float:
        """Size of one lattice unit, in units of the statistics."""

    @abstractmethod
    def statistics(self, domain: Domain) -> tuple[str, ...]:
        """Names of the K statistics of one value."""

    def own_sums(self, domain: Domain) -> Rows:
        """Sums that others may publish, in units of the values."""
        return own_sums(self.statistics(domain), self.ranges(domain) if isinstance(self, Scaled) else (), single=self.NDIM == 0)

    @abstractmethod
    def exact(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """K int64 arrays of the shape of ``values``: the statistics, in lattice units.

        ``values`` is float64, already filled and clamped. Elementwise, so that a record's statistics depend on nothing else.
        """

    def doubles(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """The whole numbers of ``exact``, as float64 where that is faster to add up."""
        return self.exact(values, domain)

    def completes(self, domain: Domain) -> bool:
        """Whether ``doubles`` are the same of numbers that were not completed: neither clamped to the bounds nor filled where missing."""
        return False

    def whole_values(self, domain: Domain) -> range | None:
        """The whole numbers that a value is rounded to before its statistics are taken, or None where they rest on more than that.

        What is summed of many values then follows from how often each of these occurs.
        """
        return range(int(domain.lower), int(domain.upper) + 1) if self.WHOLE else None

    @abstractmethod
    def sensitivity(self, domain: Domain) -> Sensitivity:
        """How far one value can move the statistics."""

    @abstractmethod
    def cell_sensitivity(self, domain: Domain) -> CellSensitivity:
        """The statistics with the count among them, for values that may be in any cell."""

    @abstractmethod
    def law(self, domain: Domain, n: Tensor, *parameters: Tensor) -> Law:
        """Law of the statistics summed over n records, in units of the statistics, clamping included."""

    @abstractmethod
    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Noisy sums (..., K) moved into the set that n records can produce, for ``noise_aware=False``."""

    @abstractmethod
    def log_likelihood(self, sums: Tensor, n: Tensor, domain: Domain, *parameters: Tensor) -> Tensor:
        """Log-likelihood of n records with these exact sums (..., K), up to a constant, as if nothing had been clamped."""


def clamped_counts(domain: Domain, n: Tensor, first: Tensor, second: Tensor, inside: Tensor, above: Tensor) -> Moments:
    """The law of a sum of n clamped counts, from the moments of one count y, not clamped.

    Parameters
    ----------
    first, second : Tensor
        Sums of y and of y² over the counts between the bounds, times their probabilities.
    inside, above : Tensor
        The probabilities of a count between the bounds, and of one at the upper bound or beyond.
    """
    lower, upper = domain.lower, domain.upper
    # Moments about the lower bound: less cancels.
    mean = first - lower * inside + (upper - lower) * above
    square = second - 2 * lower * first + lower**2 * inside + (upper - lower) ** 2 * above
    return Moments(n, (mean + lower,), ((pt.maximum(square - mean**2, 0.0),),))


class Summed(Family):
    """A family of counts whose one statistic is the sum of the values, each clamped to integer bounds."""

    BOUNDS = "integer"
    WHOLE = True
    UNIT = "count"
    """What people call one value."""

    def lattice(self, domain: Domain) -> float:
        """Counts are integers."""
        return 1.0

    def statistics(self, domain: Domain) -> tuple[str, ...]:
        """The sum of the clamped values."""
        return ("sum",)

    def exact(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """The clamped value itself, rounded to an integer."""
        return (np.rint(values).astype(np.int64),)

    def sensitivity(self, domain: Domain) -> Sensitivity:
        """A clamped value lies in [lower, upper], so two differ by at most upper - lower, and none is above upper."""
        lower, upper = int(domain.lower), int(domain.upper)
        why = f"a {self.UNIT} is clamped to {lower} to {upper}, so one record moves the sum by at most {upper - lower}"
        return Sensitivity(upper - lower, (upper - lower) ** 2, upper, why)

    def cell_sensitivity(self, domain: Domain) -> CellSensitivity:
        """What is missing to the upper bound, and what is above the lower one: two parts of upper - lower."""
        lower, upper = int(domain.lower), int(domain.upper)
        return CellSensitivity(("sum of upper - y", "sum of y - lower"), ((upper, -1), (-lower, 1)), upper - lower, (upper - lower) ** 2)

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Move noisy sums into [n lower, n upper]."""
        return np.clip(noisy, n * domain.lower, n * domain.upper)


class Scaled(Family):
    """A family with one or two real statistics t(y), each centred and scaled to u in [-1, 1] over its own range.

    A subclass says what t is, its range, the mean and covariance of t of the clamped value, and the log-likelihood in t.
    """

    BOUNDS = "real"

    @abstractmethod
    def ranges(self, domain: Domain) -> tuple[tuple[str, float, float], ...]:
        """The name of every statistic, and its least and largest value between the bounds."""

    @abstractmethod
    def raw(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """The statistics t(y), elementwise, in their own units."""

    @abstractmethod
    def moments(self, domain: Domain, *parameters: Tensor) -> tuple[tuple[Tensor, ...], tuple[tuple[Tensor, ...], ...]]:
        """Means and lower triangle of the covariance of t of one clamped value, in the units of t."""

    @abstractmethod
    def from_sums(self, sums: Sequence[Tensor], n: Tensor, domain: Domain, *parameters: Tensor) -> Tensor:
        """Log-likelihood of n records with these sums of t, up to a constant."""

    def lattice(self, domain: Domain) -> float:
        """1/POINTS of half a statistic's range."""
        return 1.0 / POINTS

    def statistics(self, domain: Domain) -> tuple[str, ...]:
        """Each u = (t - middle) / half-width of the range of t."""
        return tuple(f"sum u({name})" for name, *_ in self.ranges(domain))

    def exact(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """Each u on its grid, clipped to the grid's ends whatever rounding did."""
        return tuple(u.astype(np.int64) for u in self.doubles(values, domain))

    def doubles(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """Each u on its grid."""
        with np.errstate(all="ignore"):
            raw = self.raw(values, domain)
        scaled = zip(raw, self.ranges(domain), strict=True)
        return tuple(onto_grid(t, lower / 2 + upper / 2, (upper - lower) / 2) for t, (_, lower, upper) in scaled)

    def sensitivity(self, domain: Domain) -> Sensitivity:
        """Every u moves by at most 2, and all do so together where the statistics are monotone in the value: lower to upper."""
        K = len(self.ranges(domain))
        names = ", ".join(name for name, *_ in self.ranges(domain))
        why = f"{names}, scaled to [-1, 1]: moves by at most 2" + (" each, together, from one bound to the other" if K > 1 else "")
        return Sensitivity(2 * K * POINTS, 4 * K * POINTS**2, POINTS, why)

    def cell_sensitivity(self, domain: Domain) -> CellSensitivity:
        """For every u the pair (1 - u, 1 + u), which adds up to 2; at either bound one of a pair is 2 and the other 0."""
        names, matrix, ranges = [], [], self.ranges(domain)
        for k, (name, *_) in enumerate(ranges):
            for sign, word in ((-1, "-"), (1, "+")):
                names.append(f"sum 1 {word} u({name})")
                matrix.append((POINTS, *(sign * (i == k) for i in range(len(ranges)))))
        return CellSensitivity(tuple(names), tuple(matrix), 2 * POINTS * len(ranges), 4 * POINTS**2 * len(ranges))

    def law(self, domain: Domain, n: Tensor, *parameters: Tensor) -> Law:
        """The normal law that the central limit gives, from the mean and covariance of one clamped value."""
        means, covariance = self.moments(domain, *parameters)
        centre = [lower / 2 + upper / 2 for _, lower, upper in self.ranges(domain)]
        half = [(upper - lower) / 2 for _, lower, upper in self.ranges(domain)]
        scaled = tuple((mean - c) / h for mean, c, h in zip(means, centre, half, strict=True))
        return Moments(
            n, scaled, tuple(tuple(entry / half[i] / half[j] for j, entry in enumerate(row)) for i, row in enumerate(covariance))
        )

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Every sum into [-n, n], short of the ends by the noise: with all values at a bound, a likelihood may have no bound."""
        most = n - np.minimum(spread, n)
        return np.clip(noisy, -most, most)

    def log_likelihood(self, sums: Tensor, n: Tensor, domain: Domain, *parameters: Tensor) -> Tensor:
        """The log-likelihood of the subclass, ``from_sums``, on sums of t in their own units."""
        ranges = self.ranges(domain)
        centred = [n * (lower / 2 + upper / 2) + sums[..., k] * ((upper - lower) / 2) for k, (_, lower, upper) in enumerate(ranges)]
        return self.from_sums(centred, n, domain, *parameters)


@cache
def all_families() -> tuple[Family, ...]:
    """Every family in the folders of ``pymc_dp.families.__path__``, by name of its module; another folder may be appended there."""
    package = import_module("pymc_dp.families")
    names = sorted(module.name for module in iter_modules(package.__path__))
    return tuple(family for name in names for family in getattr(import_module(f"{package.__name__}.{name}"), "FAMILIES", ()))


def of_operation(operation: object) -> Family | None:
    """The family whose PyMC distribution a random variable's operation belongs to, if any."""
    for family in all_families():
        if type(operation) is getattr(vars(pm).get(family.DISTRIBUTION), "rv_type", None):
            return family
    return None


def name_of_operation(operation: object) -> str:
    """What PyMC calls the distribution of a random variable's operation."""
    if type(operation) is pm.MvNormal.rv_type:
        return "MvNormal"
    family = of_operation(operation)
    return str(getattr(operation, "_print_name", (type(operation).__name__,))[0]) if family is None else family.DISTRIBUTION


def named(distribution: str) -> Family:
    """The family of a PyMC distribution, by the distribution's name."""
    return next(family for family in all_families() if distribution == family.DISTRIBUTION)


def complete(values: np.ndarray, domain: Domain) -> np.ndarray:
    """A total map into the domain: float64 of any input, missing values to the public fill, the rest clamped.

    Where columns have bounds of their own, the last axes of ``values`` are those of the columns.
    """
    if domain.columns:
        whole = values.reshape(-1, len(domain.columns))
        ends = [replace(domain, lower=lower, upper=upper, columns=()) for lower, upper in domain.columns]
        return np.stack([complete(whole[:, c], part) for c, part in enumerate(ends)], axis=1).reshape(values.shape)
    with np.errstate(all="ignore"):
        if values.dtype == object:
            values = np.asarray([double_of(value) for value in values.ravel()], dtype=np.float64).reshape(values.shape)
        clamped = np.asarray(np.clip(values.astype(np.float64, copy=False), domain.lower, domain.upper))  # anew; what is missing stays so
        return clamped if values.dtype.kind in "biu" else filled(clamped, min(max(domain.middle, domain.lower), domain.upper))
