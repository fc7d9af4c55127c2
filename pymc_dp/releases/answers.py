"""Randomised answers: the values of every record are put into public bins and replaced at random, once. ``RandomisedAnswers`` holds what
comes of it.

The bins of all private values of a record make one level, which is randomised whole, so a record pays once whatever it holds. Shapes: N
records, K levels, the last of which is that of incomplete records.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.metadata import version
from math import isfinite, prod
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dp.privacy.accounting import Cost, Refusal, exact_epsilon, protected
from pymc_dp.privacy.guard import boundary, warn_if_weak
from pymc_dp.privacy.layout import sentences, wrapped
from pymc_dp.privacy.ledger import check_ledger, receipt_for
from pymc_dp.privacy.mechanisms import Laplace, randomised_responses, truth_probability
from pymc_dp.privacy.receipts import UNACCOUNTED, Draw
from pymc_dp.releases.headers import alone
from pymc_dp.releases.prepared import warn_that_nothing_remembers
from pymc_dp.releases.sealed import read_sealed, write_sealed
from pymc_dp.releases.source import Source
from pymc_dp.releases.spread import Spread
from pymc_dp.releases.stored import is_one

if TYPE_CHECKING:
    import xarray as xr

MECHANISM = "randomised response"
MOST_LEVELS = 4096
"""The most levels that records are told by."""


@dataclass(frozen=True, eq=False)
class RandomisedAnswers:
    """A random answer for every record (randomised response), which is true with a known probability. ``randomise`` makes it.

    Each answer is one *level*: one combination of bins. It is covered by differential privacy, so it may be given away.

    Attributes
    ----------
    edges : mapping of str to tuple of float
        For every private value the edges of its bins, the outer ones included. The first bin also holds everything below it, the last one
        everything above it, and a value at an edge is in the bin below.
    told : array
        (N,) int64: the answer for every record: the index of its bins in an array of all combinations, flattened in the order of
        ``edges``; or the number of combinations, which is the level of records that are incomplete.
    truth : float
        The probability that an answer is the true level. Every other level has (1 - truth) / (levels - 1).
    cost : Cost
        What a record paid.
    unit : str
        What a row stands for.
    public : tuple of str
        Names of the arrays that were declared public.
    ledger_head : str
        The head of the ledger after it paid, or ``"unaccounted"``.
    versions : dict of str to str

    Examples
    --------
    >>> import pandas as pd
    >>> with pm.Model() as ill:
    ...     reported = pm.Bernoulli("ill", pm.Beta("share", 1, 1), observed=np.zeros(50, dtype=int))
    >>> answers = pmdp.randomise(ill, data=pd.DataFrame({"ill": [0, 1] * 25}), epsilon=2.0, bounds={})
    >>> answers.to_netcdf("ill.answers")
    >>> again = pmdp.RandomisedAnswers.from_netcdf("ill.answers")
    >>> again.levels, round(again.truth, 2), (again.told == answers.told).all()
    (3, 0.79, np.True_)
    """

    edges: Mapping[str, tuple[float, ...]]
    told: np.ndarray
    truth: float
    cost: Cost
    unit: str = "row"
    public: tuple[str, ...] = ()
    ledger_head: str = UNACCOUNTED
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many bins each value has."""
        return tuple(len(edges) - 1 for edges in self.edges.values())

    @property
    def levels(self) -> int:
        """How many levels there are, that of incomplete records included."""
        return prod(self.shape) + 1

    @property
    def name(self) -> str:
        """What the answers are called in a private model."""
        return "_".join((*self.edges, "told"))

    def facts(self) -> dict[str, str | float]:
        """What is known of them but the answers themselves, as plain values."""
        return {
            "epsilon": str(self.cost.epsilon), "delta": "0", "mechanism": MECHANISM, "truth": self.truth,
            "edges": json.dumps(dict(self.edges)), "unit": self.unit, "neighbours": "replace", "public": json.dumps(self.public),
            "ledger_head": self.ledger_head, "versions": json.dumps(self.versions),
        }  # fmt: skip

    def to_datatree(self) -> "xr.DataTree":
        """The answers as an ``xarray.DataTree``: ``told`` by record, and all that is known of them as attributes."""
        import xarray as xr

        return xr.DataTree(xr.Dataset({"told": ("record", self.told)}, attrs=self.facts()))

    @classmethod
    def from_datatree(cls, tree: "xr.DataTree") -> "RandomisedAnswers":
        """Answers from what ``to_datatree`` returned, or from a tree that ``sample`` drew from ``published(model, answers)``.

        Raises
        ------
        Refusal
            When the tree holds no answers that this version can read.
        """
        try:
            group = tree["privacy"] if "privacy" in tree.children else tree
            return cls._of_facts(group["told"].to_numpy(), dict(group.attrs))
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
            raise Refusal("This tree holds no answers that this version can read. Write them with RandomisedAnswers.to_netcdf.") from None

    @classmethod
    def _of_facts(cls, told: np.ndarray, facts: Mapping[str, Any]) -> "RandomisedAnswers":
        """Answers from a file's contents, which are checked: a ValueError where they cannot be what ``randomise`` made."""
        edges = {str(name): tuple(map(float, several)) for name, several in json.loads(facts["edges"]).items()}
        cost, truth = Cost(Fraction(facts["epsilon"])), float(facts["truth"])
        versions = {str(name): str(text) for name, text in json.loads(facts["versions"]).items()}
        public = tuple(map(str, json.loads(facts["public"])))
        answers = cls(edges, told, truth, cost, str(facts["unit"]), public, str(facts["ledger_head"]), versions)
        increasing = all(all(map(isfinite, several)) and (np.diff(several) > 0).all() for several in edges.values())
        levels = told.ndim == 1 and told.size > 0 and told.dtype == np.int64 and told.min() >= 0 and told.max() < answers.levels
        if facts["mechanism"] != MECHANISM or not (increasing and answers.shape and levels and 1 / answers.levels <= truth < 1):
            raise ValueError("not answers")
        return answers

    def to_netcdf(self, path: str | PathLike[str]) -> None:
        """Write the answers to a netCDF file with a checksum, whole or not at all; it holds no record."""
        write_sealed(self.to_datatree(), path, "answers")

    @classmethod
    def from_netcdf(cls, path: str | PathLike[str]) -> "RandomisedAnswers":
        """Read answers that ``to_netcdf`` wrote.

        Raises
        ------
        Refusal
            When the file is not what was written.
        """
        return cls.from_datatree(read_sealed(path, "answers", "RandomisedAnswers"))

    def __repr__(self) -> str:
        heading = f"Answers: epsilon {float(self.cost.epsilon):g}, delta 0, protects {protected(self.unit)} (replace), randomised response"
        heading += ", charged to no ledger" if self.ledger_head == UNACCOUNTED else ""
        return "\n".join([wrapped(heading), *sentences(self._notes(), "  ", "    ")])

    def _notes(self) -> list[tuple[str, str]]:
        bins = ", ".join(f"{name} in {many} bins" for name, many in zip(self.edges, self.shape, strict=True))
        return [
            ("records", f"{self.told.size:,}, each answered with one of {self.levels:,} levels"),
            ("levels", f"{bins}, and one for records with a value that is missing or not finite"),
            (
                "truth",
                f"an answer is the true level with probability {self.truth:.4g}, and otherwise one of the others, all equally probable",
            ),
        ]


@dataclass(frozen=True, eq=False)
class PreparedAnswers:
    """Answers of which nothing is refused any more and nothing has been paid.

    Attributes
    ----------
    imagined : RandomisedAnswers
        As they will be, with the same level for all records: it rests on the number of records and on nothing else of them.
    pay_and_draw : callable
        Charges the ledger, reads the records, and randomises.
    """

    imagined: RandomisedAnswers
    pay_and_draw: Callable[[], RandomisedAnswers]


def prepared_answers(
    data: object, edges: Mapping[str, tuple[float, ...]], *, epsilon: object, unit: str, public: Iterable[str], ledger: object
) -> PreparedAnswers:
    """Everything that can be refused: the columns that are needed, what it costs, whether it tells anything. No value is read."""
    cost = Cost(exact_epsilon(epsilon))
    warn_if_weak(cost)
    return _checked(data, dict(edges), cost, unit, tuple(public), ledger)


@boundary
def _checked(
    data: object, edges: dict[str, tuple[float, ...]], cost: Cost, unit: str, public: tuple[str, ...], unchecked_ledger: object
) -> PreparedAnswers:
    ledger = check_ledger(unchecked_ledger)
    source = Source.of(data, tuple(edges))
    if isinstance(source.table, Spread) or is_one(source.table, "duckdb", "DuckDBPyRelation"):
        raise Refusal("Answers keep the order of rows, which this table does not have. Write data=pandas.DataFrame(...), or Parquet files.")
    records = source.records
    if records == 0:
        raise Refusal("data has no records. Give a table with one row for every record.")
    scale = Laplace().calibrate(1, 1, cost)
    versions = {package: version(package) for package in ("pymc_dp", "pymc", "opendp")}
    blank = RandomisedAnswers(edges, np.zeros(records, dtype=np.int64), 1.0, cost, unit, public, versions=versions)
    if blank.levels > MOST_LEVELS:
        raise Refusal(f"These are {blank.levels:,} levels, more than {MOST_LEVELS:,}. Write fewer bins, or model fewer private values.")
    truth = truth_probability(scale, blank.levels)
    draw = Draw(", ".join(edges), "answer", 1, 1, scale, records)

    def of(levels: np.ndarray, head: str) -> RandomisedAnswers:
        return RandomisedAnswers(edges, levels, truth, cost, unit, public, head, versions)

    @boundary
    def drawn() -> RandomisedAnswers:
        receipt = receipt_for(ledger, cost, [draw], neighbours="replace", unit=unit, public=public)
        with alone(source.table):
            levels = levels_of_records(source, edges)
        return of(randomised_responses(levels, blank.levels, scale, receipt), receipt.head)

    def pay_and_draw() -> RandomisedAnswers:
        if ledger is None:
            warn_that_nothing_remembers()
        return drawn()

    return PreparedAnswers(of(blank.told, UNACCOUNTED), pay_and_draw)


def levels_of_records(source: Source, edges: Mapping[str, tuple[float, ...]]) -> np.ndarray:
    """The level (N,) that every record has, by itself: the place of its bins, or the last level where a value is missing or not finite.

    Of a value only the comparison with public edges counts. Whatever a record holds it has one of the K levels, so nothing can fail or be
    refused because of it, and no record's level rests on another record.
    """
    shape = tuple(len(several) - 1 for several in edges.values())
    levels = []
    for block in source.blocks():
        columns = [np.asarray(block[name], dtype=float) for name in edges]
        complete = np.all([np.isfinite(column) for column in columns], axis=0)
        places = [np.searchsorted(several[1:-1], column, side="left") for column, several in zip(columns, edges.values(), strict=True)]
        inside = [np.minimum(place, many - 1) for place, many in zip(places, shape, strict=True)]
        levels.append(np.where(complete, np.ravel_multi_index(inside, shape), prod(shape)))
    return np.concatenate(levels).astype(np.int64)
