"""Hints before anything is paid for: which noise is narrower, how many numbers are released and from how many records, what is
protected.
"""

import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod, sqrt

from pymc_dp.families.family import Sensitivity
from pymc_dp.plans.person import EXAMPLE
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.privacy.accounting import ALL_ROWS, protected, rho_of
from pymc_dp.privacy.guard import PACKAGE
from pymc_dp.privacy.layout import as_written

DELTA = Fraction(1, 10**6)
"""At which Gaussian noise is compared, at epsilon 1. At an epsilon of .1 it is an eighth narrower beside Laplace noise than at 1."""
FEWEST_RECORDS = 3
"""On average in a cell: with fewer, what is released says little of any cell but noise."""


class SparseCellsWarning(UserWarning):
    """There are about as many cells as records, so that noise is on every record. It rests on what is public: records were not read.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", pmdp.SparseCellsWarning)  # stop there, before anything is spent
    """


@dataclass(frozen=True, repr=False)
class NoDensity:
    """Why an observed variable often has no density where its priors lead.

    Attributes
    ----------
    variable : str
    share : float
        Of draws from the priors.
    reason : str
        A sentence that says what to write instead.
    """

    variable: str
    share: float
    reason: str
    __repr__ = as_written


def gaussian_width(sensitivity: Sensitivity, part: Fraction = Fraction(1)) -> float:
    """How wide Gaussian noise is at epsilon 1 and delta 1e-6, Laplace noise of epsilon 1 being 1 wide.

    Parameters
    ----------
    sensitivity : Sensitivity
    part : Fraction
        The share that a variable has of epsilon, or of rho.

    Examples
    --------
    >>> round(gaussian_width(Sensitivity(1, 1, 1, "")), 1), round(gaussian_width(Sensitivity(100, 100, 100, "")), 2)
    (3.2, 0.32)
    """
    laplace = sqrt(2) * sensitivity.difference / part
    return sqrt(sensitivity.square / (2 * rho_of(Fraction(1), DELTA) * part)) / laplace


def is_sparse(cells: int, records: int) -> bool:
    """Whether there are too few records for so many cells."""
    return cells > 1 and records < FEWEST_RECORDS * cells


def numbers_of(statistic: PlannedStatistic, records: int | None) -> str:
    """How many numbers are released of a variable, from how many records where that is public, in words. Public cells are unknown here."""
    likelihood, cells = statistic.likelihood, statistic.grid.size
    many = cells * prod(likelihood.columns) * len(statistic.statistics)
    public = any(not placeholder.private and placeholder.axis is not None for placeholder in likelihood.inputs)
    words = f"{many:,} of {likelihood.name}"
    if likelihood.aggregate:
        words = f"{words} in every row"
    elif public and statistic.regression is None:
        words = f"{words} in every public cell (release counts the cells)"
    if records is not None:
        words = f"{words}, from {records:,} {'rows' if likelihood.aggregate else 'records'}"
    crowded = records is not None and not likelihood.aggregate and is_sparse(cells, records)
    return f"{words}: {SPARSE}" if crowded else words


def nameless_in_words(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """That arrays without a name, where the number of records is private, are not known to be one and the same.

    PyTensor copies an array in which there is nothing, so that looking at their memory would tell no record from one.

    Parameters
    ----------
    names : sequence of str
        Of private arrays without a name of their own.
    """
    if len(names) > 1:
        several = f"{', '.join(names[:-1])} and {names[-1]}"
        yield (
            "arrays without a name",
            f"{several} count as different ones, each with noise of its own, even if one is written twice: where the number of records is"
            " private, whether they are one is not looked at. pm.Data('group', group), used twice, is one",
        )


def promise_in_words(unit: str, neighbours: str, disjoint: Sequence[Sequence[str]], indices: Collection[str]) -> Iterator[tuple[str, str]]:
    """What is protected, in words, and what that says nothing about.

    Parameters
    ----------
    unit, neighbours : str
    disjoint : sequence of sequences of str
        Groups of observed variables of different people.
    indices : collection of str
        Names of the arrays that are indices.
    """
    whole, replaced = unit.startswith(ALL_ROWS), neighbours == "replace"
    if whole:
        change = "exchanged for any other's (replace)" if replaced else "whether they are there or not (add_remove)"
        yield "protects", f"{protected(unit)}, {change}; the number of rows is private, and so is whose they are"
        if not unit.endswith(", at most 1"):
            yield "rows of one person", INDEPENDENT
        if any(unit.startswith(f"{ALL_ROWS}{name}, ") for name in indices):
            yield "one cell for every person", "of whom little is known then; a row made of each person's says more (docs/persons.md)"
        return
    change = "replaced by any other (replace)" if replaced else "whether it is there or not (add_remove)"
    seen = "the number of rows and everything public stay visible" if replaced else "everything public stays visible"
    yield "protects", f"{protected(unit, disjoint)}, {change}; {seen}"
    if unit != "individual":
        yield "several rows of one person", f"are protected one by one, not together; {EXAMPLE} protects all of them"


INDEPENDENT = (
    "are independent given the unknowns, as the model has them; if they are more alike, intervals are too narrow, with and without privacy:"
    " count one row of each, or make one row of all (docs/persons.md)"
)
SPARSE = (
    "about as many cells as records, so what is released is private, but little more than noise on single records; use fewer levels or"
    " fewer public covariates, so that each cell holds many records"
)


def warn_of_sparse_cells(several: Iterable[tuple[str, int, int]]) -> None:
    """Warn of observed variables, each with its number of cells and of records, that have about as many of one as of the other.

    It points at the user's line, and repeats nothing but what is public.
    """
    for name, cells, records in several:
        if is_sparse(cells, records):
            warnings.warn(
                f"{name} has {cells:,} cells and {records:,} records: {SPARSE}.", SparseCellsWarning, skip_file_prefixes=(PACKAGE,)
            )
