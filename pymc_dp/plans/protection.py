"""What a user declares of a model's records: their bounds, what is public, what a row stands for, and which data sets are neighbours."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from numbers import Real

import pymc as pm

from pymc_dp.models.bambi_models import built, check_built, from_bambi
from pymc_dp.models.reader import most_records, read_spec
from pymc_dp.models.spec import ModelSpec
from pymc_dp.plans.bins import binned_in
from pymc_dp.plans.disjoint import Groups, check_disjoint
from pymc_dp.plans.person import EXAMPLE, Person
from pymc_dp.privacy.accounting import ALL_ROWS, Cost, Refusal, check_neighbours, counts_rows, is_whole
from pymc_dp.privacy.calls import explained_class
from pymc_dp.privacy.guard import PrivateComputationError, boundary, warn_if_weak
from pymc_dp.privacy.layout import as_written


@explained_class
@dataclass(frozen=True, repr=False)
class Individual:
    """Rows that are totals over individuals: what is protected is one individual, not one row.

    Which rows there are, and everything declared public along them, is public; each row's total is released by itself. Leave rows without
    a total out: one that is missing counts as 0, and a missing real value as the middle of its bounds. No individual may decide whether a
    row has one, as where small totals are suppressed: to and from what is missing a row moves further than is paid for.

    Parameters
    ----------
    events : int, optional
        For Poisson totals, the most events of one individual over all rows.
    membership : "private" or "public"
        Whether it is public which row an individual is counted in.
    rows : int
        How many rows one individual is counted in at most.
    moves : float, optional
        For rows of real numbers, such as means, how far one individual can move the value of a row at most, in its units: by another
        value, and by being counted there or not. For a mean of at least n values between a and b that is (b - a) / n. It is said of the
        numbers in the array: where these were rounded, to float32 or to two digits, add the distance between two neighbouring ones.

    Examples
    --------
    >>> with pm.Model() as totals:
    ...     rate = pm.Gamma("rate", 2, 1, shape=2)
    ...     calls = pm.Poisson("calls", rate, observed=[3, 5])
    >>> pmdp.inspect(totals, unit=pmdp.Individual(events=2)).rows[0].sensitivity
    4.0
    """

    events: int | None = None
    membership: str = "private"
    rows: int = 1
    moves: float | None = None
    __repr__ = as_written

    def __post_init__(self) -> None:
        for name in ("events", "rows", "moves"):  # read once, so that what is charged is what was checked
            object.__setattr__(self, name, _read_once(getattr(self, name), fraction=name == "moves"))
        events = self.events is None or is_whole(self.events, 1)
        if not (self.moves is None or (isinstance(self.moves, float) and 0 < self.moves < inf)):
            raise Refusal("moves is how far one individual can move a row: a positive number. Write for example Individual(moves=0.5).")
        if not (is_whole(self.rows, 1) and events and self.membership in ("private", "public")):
            raise Refusal(
                'Write for example Individual(events=3, membership="public", rows=1): positive integers, and "public" or "private".'
            )

    def __str__(self) -> str:
        return "individual"

    @property
    def relation(self) -> str:
        """All that decides which data sets are neighbours, for the ledger."""
        written = f"Individual(events={self.events!r}, membership={self.membership!r}, rows={self.rows!r}"  # as ledgers hold it
        written += ")" if self.moves is None else f", moves={self.moves!r})"
        return "individual" if self == Individual() else written


def _read_once(number: object, *, fraction: bool) -> object:
    """A number as Python's own: one of a class of its own may say something else each time. What is no such number stays as it is."""
    if isinstance(number, bool):
        return number
    if not fraction:
        return int.__int__(number) if isinstance(number, int) else number
    try:
        return float.__float__(number) if isinstance(number, float) else float(number) if isinstance(number, Real) else number
    except OverflowError:
        return inf


def check_unit(unit: object) -> str | Individual | Person:
    """What is protected: ``Person`` for all rows of one, ``Individual`` for rows that are totals, or a row, in the user's words."""
    if isinstance(unit, Individual | Person):
        return unit
    if hasattr(unit, "__array__"):
        raise Refusal('An array says whose a row is in Person. Write unit=pymc_dp.Person(ids, at_most=5, name="patient").')
    if not isinstance(unit, str) or not unit.strip():
        raise Refusal(
            'unit must say what one row stands for. Write unit="row", or for example unit="person-year";'
            ' or, where people have several rows, unit=pymc_dp.Person("patient_id", at_most=5).'
        )
    if unit == "individual":
        return Individual()
    if unit.startswith(ALL_ROWS):
        raise Refusal(f"unit in words protects one row, whatever they say. Write {EXAMPLE} for all rows of a person.")
    return unit


NO_MODELS = {
    "Release": "is a Release, which has its noisy numbers already. Write pymc_dp.rewrite(model, release)",
    "DataTree": "is a result, not a model. Write model= with the pm.Model that it was drawn from",
    "InferenceData": "is a result, not a model. Write model= with the pm.Model that it was drawn from",
    "DataFrame": "is a table, not a model. Write a pm.Model with its columns as observed= and in pm.Data, and model= with that",
    "str": "is a text. Write model= with the pm.Model itself, not its name",
}
"""What is given in place of a model by mistake, by the name of its type, and what to write."""


ALREADY_PRIVATE = "This model is already private: its records are noisy numbers."


def in_context(model: object) -> pm.Model:
    """The model meant: the one given, or the one whose ``with`` block this is."""
    try:
        meant = built(model) if from_bambi(model) else pm.modelcontext(model)
    except TypeError:
        meant = None
    if not isinstance(meant, pm.Model):
        if type(model).__name__ in NO_MODELS:
            raise Refusal(f"What is given as the model {NO_MODELS[type(model).__name__]}.")
        raise Refusal("There is no model here. Write model=..., or call inside the model's with block.")
    check_built(meant)
    return meant


def with_records(model: object) -> pm.Model:
    """The model meant, which must hold records: a private model holds noisy numbers, of which nothing is released."""
    meant = in_context(model)
    if hasattr(meant, "privacy"):
        raise Refusal(f"{ALREADY_PRIVATE} Write pymc_dp.sample(model=private), or pm.sample(model=private), which costs nothing.")
    return meant


@dataclass(frozen=True, eq=False)
class Protection:
    """What a user declares of the records of a model, checked as far as that can be done without the model: ``protection_of`` makes it.

    Attributes
    ----------
    bounds : mapping or None
        By name, as the user wrote them.
    public : iterable
        Names of ``pm.Data``, of dims, ``"<observed>:<k>"``, or the arrays themselves.
    unit : str, Individual or Person
    neighbours : {"replace", "add_remove"}
    missing : mapping, list or None
        As the user wrote it.
    disjoint : tuple of tuples of str, or bool
        Groups of observed variables of different people, as the user wrote them; True for one group of all.
    """

    bounds: Mapping[str, object] | None = None
    public: Iterable[object] = ()
    unit: str | Individual | Person = "row"
    neighbours: str = "replace"
    missing: object = None
    disjoint: Groups | bool = False

    @property
    def aggregate(self) -> bool:
        """Whether rows are totals over individuals."""
        return isinstance(self.unit, Individual)

    @property
    def sized(self) -> bool:
        """Whether the number of records is public."""
        return counts_rows(self.unit, self.neighbours)

    @property
    def person(self) -> Person | None:
        """Whose rows are protected together, where it is not one row that is."""
        return self.unit if isinstance(self.unit, Person) else None

    @property
    def binned(self) -> frozenset[str]:
        """The observed variables and covariates that are counted in bins."""
        return binned_in(self.bounds)

    def read(self, model: pm.Model) -> ModelSpec:
        """The model without its records, as these declarations make it."""
        return read_spec(model, self.public, aggregate=self.aggregate, sized=self.sized, binned=self.binned)


@boundary
def protection_of(
    *, bounds: Mapping[str, object] | None = None, public: Iterable[object] = (), unit: object = "row", neighbours: object = "replace",
    missing: object = None, disjoint: object = None, persons: bool = False,
) -> Protection:  # fmt: skip
    """The arguments that every function with records takes, as one value. What can be read only once becomes a list.

    Parameters
    ----------
    persons : bool
        Whether the function knows how to protect all rows of a person.

    Raises
    ------
    Refusal
        For a unit, neighbours or disjoint variables that mean nothing, and for a ``Person`` where single rows are protected.
    """
    if isinstance(unit, Person) and not persons:
        raise Refusal(
            f'This knows single rows only. Write unit="row" here; all rows of one {unit.name} are protected by release and sample, with'
            f" unit=pymc_dp.{unit!r}."
        )
    if isinstance(unit, Person) and disjoint:
        raise Refusal(f"A {unit.name} may have rows in every observed variable. Leave disjoint out: epsilon is shared among them.")
    public = list(public) if isinstance(public, Iterator) else public
    missing = list(missing) if isinstance(missing, Iterator) else missing
    return Protection(bounds, public, check_unit(unit), check_neighbours(neighbours), missing, check_disjoint(disjoint))


def warn_of_weak_promises(model: pm.Model | None, spent: Callable[[], Cost], protection: Protection, *, elsewhere: bool = False) -> None:
    """Warn, before anything is spent, where an epsilon or a delta promises little. Of the model its public number of records is read.

    Parameters
    ----------
    model : pm.Model or None
    spent : callable
        To what is about to be spent; where it refuses, nothing is said here, for ``release`` refuses as well.
    protection : Protection
        It says whether the number of records is public.
    elsewhere : bool
        Whether records are in ``data=``: the rows of the model are then placeholders, and their number says nothing.
    """
    try:
        cost = spent()
        records = most_records(in_context(model)) if cost.delta and protection.sized and not elsewhere else None
    except (Refusal, PrivateComputationError):
        return
    warn_if_weak(cost, records)
