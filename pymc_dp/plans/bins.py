"""Bins of an observed variable: public edges, by which its values become counts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite

import numpy as np

from pymc_dp.models.tabulated import MOST_VALUES
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.calls import explained_class
from pymc_dp.privacy.layout import as_written

FEWEST, MOST, UNKNOWN = 8, 60, 20
"""The fewest and the most bins that are chosen from the number of records, and how many there are where that is private."""
FEWEST_OF_COVARIATE, UNKNOWN_OF_COVARIATE = 4, 6
"""The same of a private covariate, each of whose bins has all the counts of the outcome."""
MOST_OF_COVARIATE, MOST_OF_SEVERAL = 24, 12
"""The most of one covariate, and of each of several."""
EXAMPLE = "Write for example pymc_dp.Bins(0, 100, 40), or pymc_dp.Bins(edges=[0, 10, 100])"


@explained_class
@dataclass(frozen=True, repr=False)
class Bins:
    """Bounds that release counts in bins (a histogram), for any likelihood of single numbers: ``bounds={"y": pymc_dp.Bins(0, 100, 40)}``.

    A record adds 1 to the count of one bin, so it moves the counts by 2 if it is replaced by another, however many bins there are.
    The first bin also holds everything below it, and the last one everything above, so no value is clamped. A value that is equal to an
    edge belongs to the bin below that edge. The private model is about binned data: the probability of a bin is the one that your
    likelihood gives it.

    Private covariates that are real numbers can be put in bins, too: ``bounds={"x": pymc_dp.Bins(0, 50, 10), ...}``. Then counts are
    released for every combination of bins. A record still adds 1 to one count. The private model integrates the likelihood over the
    bin that a covariate lies in, with a density that the counts of the neighbouring bins suggest (docs/bins.md). That is approximate; the
    error vanishes as bins become narrow.

    Parameters
    ----------
    lower, upper : float
        In the units of the values: the lower edge of the first bin and the upper edge of the last, which both are open.
    bins : int, optional
        How many bins of equal width. If left out it is 1.5 times the cube root of the number of records, rounded, from 8 to 60, and
        20 where that number is private: about the number at which a mean and a standard deviation are estimated best at epsilon 1, where
        ``upper - lower`` is 8 to 16 standard deviations. For a covariate it is the cube root of the number of records, from 4 to 24, for
        several covariates the fourth root, from 4 to 12; and 6 where that number is private.
    edges : sequence of float, optional
        Instead of the other arguments: the edges of all bins in increasing order, one more than there are bins.

    Raises
    ------
    Refusal
        For edges that are not finite and increasing.

    See Also
    --------
    pymc_dp.queries.Brackets : of the columns of a ``QuerySession``.

    Examples
    --------
    >>> with pm.Model() as times:
    ...     mu, sigma, nu = pm.Normal("mu", 300, 100), pm.HalfNormal("sigma", 50), pm.Exponential("nu", 0.01)
    ...     rt = pm.ExGaussian("rt", mu, sigma, nu=nu, observed=np.linspace(200, 900, 200))
    >>> row = pmdp.inspect(times, bounds={"rt": pmdp.Bins(0, 1500, 30)}).rows[0]
    >>> len(row.statistics), row.sensitivity
    (30, 2.0)
    """

    lower: float | None = None
    upper: float | None = None
    bins: int | None = None
    edges: Sequence[float] | None = field(default=None, kw_only=True)
    __repr__ = as_written

    def __post_init__(self) -> None:
        if self.edges is not None:
            if (self.lower, self.upper, self.bins) != (None, None, None):
                raise Refusal(f"Bins take edges, or a lower and an upper end, not both. {EXAMPLE}.")
            object.__setattr__(self, "edges", _edges(self.edges))
            return
        ends = _numbers([self.lower, self.upper])
        if not (isfinite(ends[0]) and isfinite(ends[1]) and ends[0] < ends[1]):
            raise Refusal(f"Bins need two finite numbers, the lower one first. {EXAMPLE}.")
        whole = self.bins is None or (isinstance(self.bins, int | np.integer) and not isinstance(self.bins, bool))
        if not whole or not (self.bins is None or 2 <= self.bins <= MOST_VALUES):
            raise Refusal(f"The number of bins must be an integer from 2 to {MOST_VALUES:,}. {EXAMPLE}.")
        object.__setattr__(self, "lower", ends[0])
        object.__setattr__(self, "upper", ends[1])
        if self.bins is not None:
            _edges(np.linspace(ends[0], ends[1], int(self.bins) + 1))

    @property
    def by_rule(self) -> bool:
        """Whether their number is chosen from the number of records."""
        return self.edges is None and self.bins is None

    def all_edges(self, records: int | None = None, *, covariates: int = 0) -> tuple[float, ...]:
        """All edges; ``records`` is their number where that is public, ``covariates`` how many entries of covariates are in bins together.

        It is 0 of an observed variable.
        """
        if self.edges is not None:
            return tuple(self.edges)
        assert self.lower is not None
        assert self.upper is not None
        by_rule = default_covariate_bins(records, covariates) if covariates else default_bins(records)
        return _edges(np.linspace(self.lower, self.upper, (self.bins or by_rule) + 1))


def default_bins(records: int | None) -> int:
    """How many bins there are where the user does not say it: see ``Bins``."""
    return UNKNOWN if records is None else int(np.clip(np.rint(1.5 * records ** (1 / 3)), FEWEST, MOST))


def default_covariate_bins(records: int | None, covariates: int) -> int:
    """How many bins a covariate has where the user does not say it, and so many are in bins together: see ``Bins``."""
    if records is None:
        return UNKNOWN_OF_COVARIATE
    root, most = (records ** (1 / 3), MOST_OF_COVARIATE) if covariates == 1 else (records ** (1 / 4), MOST_OF_SEVERAL)
    return int(np.clip(np.rint(root), FEWEST_OF_COVARIATE, most))


def binned_in(bounds: object) -> frozenset[str]:
    """The names whose bounds are bins."""
    return frozenset(name for name, bound in bounds.items() if isinstance(bound, Bins)) if isinstance(bounds, Mapping) else frozenset()


def _numbers(several: Iterable[object]) -> list[float]:
    """Numbers as floats; two infinities where one of them is no number, so that they are refused as not finite."""
    try:
        return [float(number) for number in several]  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return [inf, inf]


def _edges(edges: Iterable[object]) -> tuple[float, ...]:
    """Edges of bins, finite, increasing, at least three."""
    numbers = _numbers(edges) if isinstance(edges, Iterable) else []
    if not (3 <= len(numbers) <= MOST_VALUES + 1 and np.isfinite(numbers).all() and (np.diff(numbers) > 0).all()):
        raise Refusal(f"Edges of bins must be three or more finite numbers in increasing order, at most {MOST_VALUES + 1}. {EXAMPLE}.")
    return tuple(numbers)
