"""What a likelihood family must say about itself. The law of noisy sums stands before, the families and the graph after.

A family is one module in ``families/`` with the functions of ``Family``; it is found because it is there, and nothing else
changes. Its docstrings are the argument for its sensitivity. Shapes: N records, C columns, K statistics, G cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

import numpy as np
import pymc as pm

from pymc_dp import families
from pymc_dp.accounting import Refusal
from pymc_dp.law import Law, Tensor


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
    """

    lower: float = 0.0
    upper: float = 0.0
    levels: int = 0
    unknown: tuple[bool, ...] = ()

    @property
    def middle(self) -> float:
        """The public fill: what a missing value becomes."""
        return self.lower / 2 + self.upper / 2

    @property
    def half_width(self) -> float:
        """Half the distance between the bounds."""
        return (self.upper - self.lower) / 2


@dataclass(frozen=True)
class Reach:
    """How far one value can move its family's statistics, in lattice units, with the reason.

    Attributes
    ----------
    difference : int
        Largest L1 distance between the statistics of two values: the cost of a change in place.
    norm : int
        Largest L1 norm of the statistics of one value.
    why : str
        The argument in one line, for people.
    """

    difference: int
    norm: int
    why: str


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


class Family(Protocol):
    """The questions every family answers; see ``families/poisson.py`` for the plainest answers."""

    DISTRIBUTION: str
    """Name of the distribution in PyMC."""
    BOUNDS: str
    """"none", "integer" or "real": what bounds its observed variable needs."""
    LAW: type
    """The class of ``law``'s result."""
    EXAMPLES: Sequence[Example]

    def lattice(self, domain: Domain) -> float:
        """Size of one lattice unit, in units of the statistics."""

    def statistics(self, domain: Domain) -> tuple[str, ...]:
        """Names of the K statistics of one value."""

    def exact(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """K int64 arrays of the shape of ``values``: the statistics, in lattice units.

        ``values`` is float64, already filled and clamped. Elementwise, so that a record's statistics depend on nothing else.
        """

    def reach(self, domain: Domain) -> Reach:
        """How far one value can move the statistics."""

    def law(self, domain: Domain, n: Tensor, *parameters: Tensor) -> Law:
        """Law of the statistics summed over n records, in units of the statistics, clamping included."""

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Noisy sums (..., K) moved into the set that n records can produce, for ``noise_aware=False``."""

    def log_likelihood(self, sums: Tensor, n: Tensor, domain: Domain, *parameters: Tensor) -> Tensor:
        """Log-likelihood of n records with these exact sums (..., K), up to a constant, as if nothing had been clamped."""


@cache
def all_families() -> tuple[Family, ...]:
    """Every family there is, by name of its module."""
    names = sorted(module.name for module in iter_modules(families.__path__))
    return tuple(cast(Family, import_module(f"pymc_dp.families.{name}")) for name in names)


def of_operation(operation: object) -> Family | None:
    """The family whose PyMC distribution a random variable's operation belongs to, if any."""
    for family in all_families():
        if type(operation) is getattr(pm, family.DISTRIBUTION).rv_type:
            return family
    return None


def named(distribution: str) -> Family:
    """The family of a PyMC distribution, by the distribution's name."""
    return next(family for family in all_families() if distribution == family.DISTRIBUTION)


def check_bounds(family: Family, name: str, bounds: object) -> tuple[float, float]:
    """Bounds of one observed variable as two floats, checked against what the family can use."""
    try:
        lower, upper = (float(bound) for bound in bounds)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise Refusal(f"bounds of {name} must be a pair of numbers. Write bounds={{{name!r}: (lower, upper)}}.") from None
    if not (np.isfinite([lower, upper]).all() and lower < upper):
        raise Refusal(f"bounds of {name} must be finite, the lower one first. Write bounds={{{name!r}: (lower, upper)}}.")
    if family.BOUNDS == "none":
        raise Refusal(f"{name} is {family.DISTRIBUTION}, whose values are limited by themselves. Leave {name} out of bounds.")
    if family.BOUNDS == "integer" and not (lower.is_integer() and upper.is_integer() and lower >= 0 and upper < 2**40):
        raise Refusal(f"{name} is a count, so its bounds must be integers from 0 to 2**40. Write for example bounds={{{name!r}: (0, 40)}}.")
    if not np.isfinite(upper - lower) or (upper - lower) / 2 <= np.spacing(max(abs(lower), abs(upper))) * 2**20:
        raise Refusal(f"bounds of {name} are too far apart or too close for double precision. Rescale {name} in the model.")
    return lower, upper


def complete(values: np.ndarray, domain: Domain) -> np.ndarray:
    """A total map into the domain: float64 of any input, missing values to the public fill, the rest clamped."""
    with np.errstate(all="ignore"):
        if values.dtype == object:
            flat = [_as_float(value) for value in values.ravel()]
            values = np.asarray(flat, dtype=np.float64).reshape(values.shape)
        numbers = values.astype(np.float64)
        return np.clip(np.where(np.isnan(numbers), domain.middle, numbers), domain.lower, domain.upper)


def _as_float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except Exception:
        return float("nan")
