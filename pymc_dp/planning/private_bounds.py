"""``private_bounds``: bounds from the records, at a price that is known before, for variables whose scale nobody knows.

Two candidates of a public list are chosen near two quantiles of the values. Where nobody says how wide to look, candidates lie within the
bounds that the priors suggest, which are free.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape

import numpy as np
import pymc as pm

from pymc_dp.planning.bounds import suggest_bounds
from pymc_dp.plans.protection import Protection, protection_of, warn_of_weak_promises, with_records
from pymc_dp.privacy.accounting import Cost, Refusal, exact_epsilon, protected
from pymc_dp.privacy.calls import explained
from pymc_dp.privacy.guard import boundary
from pymc_dp.privacy.layout import page, wrapped
from pymc_dp.privacy.ledger import Ledger, Part
from pymc_dp.releases.prepared import warn_that_nothing_remembers
from pymc_dp.releases.quantiles import NEAREST, Column, Quantiles, in_logarithms, prepared_quantiles
from pymc_dp.releases.release import PROMISE

COARSE = 10
"""Candidates that values spread over, given the unknowns, for suggested bounds to be of use to look within."""


@dataclass(frozen=True, eq=False)
class PrivateBounds(Mapping[str, object]):
    """Bounds by name, as ``bounds=`` takes them, and what they cost: ``private_bounds`` makes it. It holds no record.

    ``{**result, "age": (18, 90)}`` puts others beside them.

    Attributes
    ----------
    bounds : dict
        Those that were given, and those that were chosen.
    chosen : tuple of str
        Names of what was chosen from the records.
    cost : Cost
        What was charged for them together, in nats.
    unit, neighbours : str
        What one row stands for, and which data sets are neighbours.
    notes : tuple of str
        What the bounds rest on: public numbers alone.
    ledger_head : str
        That of the ledger after the charge, or "unaccounted".
    promise : str
        The kind of promise, see docs/guarantee.md.

    Examples
    --------
    >>> with pm.Model() as heights:
    ...     mean, sd = pm.Normal("mean", 170, 50), pm.HalfNormal("sd", 50)
    ...     height = pm.Normal("height", mean, sd, observed=np.linspace(150, 190, 200))
    >>> chosen = pmdp.private_bounds(heights, names="height", within={"height": (0, 300)}, epsilon=1.0)
    >>> chosen.cost.epsilon, chosen.promise, pmdp.inspect(heights, bounds=chosen).rows[0].needs
    (Fraction(1, 1), 'certified', None)
    """

    bounds: Mapping[str, object]
    chosen: tuple[str, ...]
    cost: Cost
    unit: str
    neighbours: str
    notes: tuple[str, ...]
    ledger_head: str
    promise: str = PROMISE

    def __getitem__(self, name: str) -> object:
        return self.bounds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.bounds)

    def __len__(self) -> int:
        return len(self.bounds)

    def __repr__(self) -> str:
        return "\n".join([wrapped(f"bounds={dict(self.bounds)}"), *(wrapped(line, "  ", "    ") for line in self._lines())])

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self._lines())
        return page(f"<code>bounds={escape(str(dict(self.bounds)))}</code><ul>{lines}</ul>")

    def _lines(self) -> list[str]:
        words = f"epsilon {float(self.cost.epsilon):g} was spent on {', '.join(self.chosen)}; it protects {protected(self.unit)}"
        return [f"{words} ({self.neighbours}, {self.promise})", *self.notes]


@explained
def private_bounds(
    model: pm.Model | None = None,
    *,
    names: str | Iterable[str],
    epsilon: object,
    within: Mapping[str, object] | None = None,
    quantiles: tuple[float, float] | None = None,
    widen: float | None = None,
    candidates: int = 1000,
    bounds: Mapping[str, object] | None = None,
    public: Iterable[object] = (),
    unit: str = "row",
    neighbours: str = "replace",
    ledger: Ledger | Part | None = None,
) -> PrivateBounds:
    """Choose bounds from the records, privately: near two quantiles of the values, among public candidates. It costs epsilon.

    It is for models whose scale nobody knows. Bounds that you know are better, and ``suggest_bounds`` is free. A bound near a quantile
    cuts a tail: values beyond it are moved to it. The private model knows that for most likelihoods, and loses what the tail would have
    told. It does not know it of covariates and of responses that have covariates: there the tail is missing from what it sees, so such
    bounds are moved further apart. Draws from the posterior itself (``PosteriorSample``) never know it: write a larger ``widen`` for them.
    Whatever is released with the bounds afterwards costs its own epsilon on top.

    Missing values are not counted, whatever they count as later.

    Parameters
    ----------
    model : pm.Model, optional
        The model in context if left out.
    names : str or list of str
        Observed variables and private covariates whose bounds are wanted. Every column of a covariate gets a pair of its own.
    epsilon : int, float, Decimal or Fraction
        Total cost in nats, for all names together: half of a column's share for each of its bounds.
    within : mapping, optional
        By name the pair between which all candidates lie, as wide as you must: public, so from no record. Where both ends are
        positive and ten times apart, candidates are evenly spaced in logarithms. If left out, what ``suggest_bounds`` says, where that is
        of use.
    quantiles : (float, float), optional
        The shares of values below the lower and the upper bound. If left out, (0.005, 0.995), or less far out where so small an epsilon
        could not tell them from the ends of the data; (0.05, 0.95) where the number of records is private.
    widen : float, optional
        By which share of their distance the chosen candidates are moved apart, on either side: of logarithms where candidates are spaced
        so; by one candidate at least. It costs nothing. If left out, 0.25, and 1 of covariates and of responses that have covariates.
    candidates : int
        How many there are, for every bound.
    bounds : mapping, optional
        Those that you know already, which are kept.
    public, unit, neighbours, ledger
        See ``release``.

    Returns
    -------
    PrivateBounds
        A mapping: use it as ``bounds=``. It says what it cost and what it rests on.

    Raises
    ------
    Refusal
        Before any record is read, and before anything is paid.

    Examples
    --------
    >>> with pm.Model() as incomes:
    ...     mean, sd = pm.Normal("mean", 8, 4), pm.HalfNormal("sd", 2)
    ...     income = pm.LogNormal("income", mean, sd, observed=np.exp(np.linspace(8, 12, 2000)))
    >>> chosen = pmdp.private_bounds(incomes, names="income", within={"income": (1, 1e8)}, epsilon=0.5)
    >>> lower, upper = chosen["income"]
    >>> bool(1 <= lower < np.exp(10) < upper <= 1e8)
    True
    >>> released = pmdp.release(incomes, epsilon=0.5, bounds=chosen)
    """
    protection = protection_of(bounds=bounds, public=public, unit=unit, neighbours=neighbours)
    model = with_records(model)
    wanted = _checked_names(names, within, bounds)
    warn_of_weak_promises(model, lambda: Cost(exact_epsilon(epsilon)), protection)
    notes: list[str] = []
    look = {name: (within or {})[name] for name in wanted if name in (within or {})}
    if len(look) < len(wanted):
        look |= _suggested([name for name in wanted if name not in look], model, protection, candidates, notes)
    prepared = prepared_quantiles(
        model, protection, {name: look[name] for name in wanted}, epsilon=epsilon, quantiles=quantiles, candidates=candidates,
        widen=widen, ledger=ledger,
    )  # fmt: skip
    del model
    if ledger is None:
        warn_that_nothing_remembers()
    return _chosen(prepared, dict(bounds or {}), wanted, protection, notes)


@boundary
def _checked_names(names: object, within: object, bounds: object) -> tuple[str, ...]:
    """The names whose bounds are wanted: all different, and none with bounds already."""
    wanted = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Iterable) else ()
    if not wanted or not all(isinstance(name, str) for name in wanted) or len(set(wanted)) < len(wanted):
        raise Refusal('names must be names of observed variables and private covariates. Write for example names=["income"].')
    for what, mapping in (("within", within), ("bounds", bounds)):
        if mapping is not None and not isinstance(mapping, Mapping):
            raise Refusal(f"{what} says pairs by name. Write for example {what}={{{wanted[0]!r}: (1, 1e6)}}.")
    for name in within or ():  # type: ignore[attr-defined]
        if name not in wanted:
            raise Refusal(f"within names {name!r}, which is not among names. Write it in both, or leave it out of within.")
    for name in wanted:
        if name in (bounds or ()):  # type: ignore[operator]
            raise Refusal(f"bounds of {name} are given already. Leave {name} out of names, or out of bounds.")
    return wanted


def _suggested(names: list[str], model: pm.Model, protection: Protection, candidates: int, notes: list[str]) -> dict[str, object]:
    """Between which values to look where nobody said: the bounds that the priors suggest, or a refusal that says what to write."""
    free = suggest_bounds(
        model, bounds=protection.bounds, public=protection.public, unit=protection.unit, neighbours=protection.neighbours
    )  # fmt: skip
    for name in names:
        write = f"Write within={{{name!r}: (lower, upper)}}, as wide as you must, but from no record."
        if name not in free:
            raise Refusal(f"Nothing public says between which values {name} lies. {write}")
        even = any(not in_logarithms(*ends) for ends in np.asarray(free[name], dtype=float).reshape(-1, 2))
        if even and free.times.get(name, 0.0) * COARSE > candidates:
            raise Refusal(f"The priors expect {name} between such values that candidates would be too far apart. {write}")
        notes.append(f"{name}: candidates lie between {free[name]}, which is what the priors expect")
    return {name: free[name] for name in names}


def _chosen(
    prepared: Quantiles, known: dict[str, object], wanted: tuple[str, ...], protection: Protection, notes: list[str]
) -> PrivateBounds:
    """Pay, choose, and put the pairs of every name together."""
    for column, pair, rank in zip(prepared.columns, prepared.quantiles, prepared.ranks, strict=True):
        notes.extend(_notes(column, tuple(map(float, pair)), rank))
    ends, head = prepared.pay_and_choose()
    for name in wanted:
        pairs = [pair for column, pair in zip(prepared.columns, ends, strict=True) if column.name == name]
        known[name] = pairs[0] if len(pairs) == 1 else pairs
    return PrivateBounds(known, wanted, prepared.cost, prepared.unit, protection.neighbours, tuple(notes), head)


def _notes(column: Column, pair: tuple[float, ...], rank: float) -> Iterator[str]:
    """What a pair of bounds rests on, in words, from public numbers."""
    label, (low, high) = column.label, pair
    yield (
        f"{label}: near the quantiles {low:g} and {high:g}, and then moved apart; each misses its quantile by at most {rank:.0f} values,"
        " 19 times in 20"
    )
    values = None if column.records is None else column.records * len(column.places)
    if values is not None and min(low, 1 - high) * values < rank * 0.999:
        further = "" if low >= NEAREST else ", or leave quantiles out"
        yield (
            f"{label}: of {values} values these quantiles are too near the ends to be told from them, so a bound may lie anywhere beyond"
            f" the data. Write a larger epsilon{further}."
        )
    if column.taken_as_is:
        yield (
            f"{label}: values at a bound are taken for what they are there, so a tail that is cut off is missing. Write a larger widen"
            " where tails are long."
        )
