"""Blank -> its likelihoods as a table; or the reason and what to write instead. The blank stands before, the door after.

``plan`` is what the door and the table share: which observed variables can be released, with which domain and sensitivity.
Nothing here reads a value, and an ``Inspection`` holds words and numbers only, so it pickles without a record.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape

import pymc as pm

from pymc_dp.accounting import Refusal, check_neighbours
from pymc_dp.blank import Blank, Likelihood, blank
from pymc_dp.boundary import boundary
from pymc_dp.family import Domain, Family, check_bounds


@dataclass(frozen=True)
class Row:
    """One observed variable of an ``Inspection``.

    Attributes
    ----------
    variable, distribution : str
    structure : str
        "shared", "indexed", or "" where it cannot be released.
    statistics : tuple of str
        What would be released for every cell.
    sensitivity : float or None
        Largest L1 distance that one record can move them by, in units of the statistics.
    reason : str
        Why it is that, or why the variable cannot be released and what to write instead.
    mechanisms : tuple of str
        Those that fit.
    needs : str or None
        The argument still missing before it can be released.
    """

    variable: str
    distribution: str
    structure: str
    statistics: tuple[str, ...]
    sensitivity: float | None
    reason: str
    mechanisms: tuple[str, ...]
    needs: str | None = None


@dataclass(frozen=True)
class Inspection:
    """What a release of a model would contain and how far one record can move it. Free: no value was read.

    Attributes
    ----------
    rows : tuple of Row
    problems : tuple of str
        What makes the model as a whole impossible to release.
    arrays : tuple of (str, str, str)
        Arrays the likelihoods rest on: name, use, "public" or "private".
    dropped : dict of str to str
        Deterministics, data and dims that do not survive the rewrite, and why.
    labels : dict of str to tuple of str
        Every coordinate label that will be published.
    stays : tuple of str
        Arrays that stay in the model, above its priors, and are published with it.
    unit, neighbours : str
    """

    rows: tuple[Row, ...]
    problems: tuple[str, ...]
    arrays: tuple[tuple[str, str, str], ...]
    dropped: Mapping[str, str]
    labels: Mapping[str, tuple[str, ...]]
    stays: tuple[str, ...]
    unit: str
    neighbours: str

    def __repr__(self) -> str:
        header = ("variable", "likelihood", "structure", "released", "one record moves it by", "mechanism")
        body = [_cells(row) for row in self.rows]
        widths = [max(len(line[k]) for line in (header, *body)) for k in range(len(header))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in (header, *body)]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([*lines, "", *(f"{title}: {text}" for title, text in self._notes())])

    def _repr_html_(self) -> str:
        header = ("variable", "likelihood", "structure", "released", "one record moves it by", "mechanism")
        head = "".join(f"<th style='text-align:left'>{escape(cell)}</th>" for cell in header)
        body = "".join(
            "<tr>" + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in _cells(row)) + "</tr>" for row in self.rows
        )
        notes = "".join(f"<li><b>{escape(title)}</b>: {escape(text)}</li>" for title, text in self._notes())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><ul>{notes}</ul>"

    def _notes(self) -> Iterable[tuple[str, str]]:
        for row in self.rows:
            if row.reason:
                yield row.variable, row.reason
            if row.needs:
                yield "needed", row.needs
        for problem in self.problems:
            yield "model", problem
        for use in ("public", "private"):
            names = [f"{name} ({kind})" for name, kind, status in self.arrays if status == use]
            if names:
                yield use, ", ".join(names)
        if self.dropped:
            yield "dropped", "; ".join(f"{name} ({reason})" for name, reason in self.dropped.items())
        for dim, labels in self.labels.items():
            shown = ", ".join(labels[:8]) + (f", ... ({len(labels)} labels)" if len(labels) > 8 else "")
            yield f"published labels of {dim}", shown or "none"
        if self.stays:
            yield "stays in the model, published", "; ".join(self.stays)
        if len(self.rows) > 1:
            share = f"1/{len(self.rows)} each to {', '.join(row.variable for row in self.rows)}; weights= shares it otherwise"
            yield "epsilon", share
        protected = f"one {self.unit}, replaced by any other ({self.neighbours})"
        yield "protects", f"{protected}; the number of {self.unit}s and everything public stay visible"


def _cells(row: Row) -> tuple[str, ...]:
    moved = "" if row.sensitivity is None else f"{row.sensitivity:.6g}"
    return (row.variable, row.distribution, row.structure or "not released", ", ".join(row.statistics), moved, ", ".join(row.mechanisms))


@dataclass(frozen=True)
class Planned:
    """One observed variable that can be released.

    Attributes
    ----------
    sensitivity : int
        Largest L1 distance between the exact statistics of neighbouring data sets, in lattice units.
    """

    likelihood: Likelihood
    family: Family
    domain: Domain
    sensitivity: int
    why: str


def planned(likelihood: Likelihood, bounds: tuple[float, float] | None) -> Planned:
    """Domain and sensitivity of one observed variable.

    Neighbours replace one record. Its cell is public and the same in both data sets, so only its own cell moves; it moves by
    the family's ``difference`` in each of the record's columns, and the L1 distances of columns add.
    """
    family = likelihood.family
    assert family is not None
    domain = likelihood.domain(bounds)
    reach = family.reach(domain)
    columns = 1
    for length in likelihood.columns:
        columns *= length
    why = reach.why if columns == 1 else f"{reach.why}, in each of {columns} columns"
    return Planned(likelihood, family, domain, reach.difference * columns, why)


def plan(found: Blank, bounds: Mapping[str, object] | None) -> tuple[Planned, ...]:
    """Everything that would be released, or a refusal.

    Raises
    ------
    Refusal
        With every reason, and what to write instead.
    """
    checked = bounds_by_name(found, bounds)
    reasons = [*found.problems, *(likelihood.refusal for likelihood in found.likelihoods if likelihood.refusal)]
    if reasons:
        raise Refusal("\n".join(f"{reason}{advice(found, reason)}" for reason in reasons))
    missing = [needed for likelihood in found.likelihoods if (needed := needs(likelihood, checked))]
    if missing:
        raise Refusal("\n".join(missing))
    return tuple(planned(likelihood, checked.get(likelihood.name)) for likelihood in found.likelihoods)


def advice(found: Blank, reason: str) -> str:
    """How to declare public what stands in the way, where that is what could help."""
    for likelihood in found.likelihoods:
        for name, _, public in likelihood.arrays:
            if not public and (f"{name} is private" in reason or f"private array {name}" in reason):
                return f" If everyone may know {name}, write public=[{name!r}]."
    return ""


def needs(likelihood: Likelihood, bounds: Mapping[str, object]) -> str | None:
    """The bounds an observed variable still lacks, as a sentence."""
    family = likelihood.family
    if family is None or family.BOUNDS == "none" or likelihood.name in bounds:
        return None
    example = "(0, 40)" if family.BOUNDS == "integer" else "(lower, upper)"
    return (
        f"{likelihood.name} is {family.DISTRIBUTION}, so it needs bounds before anything is released."
        f" Write bounds={{{likelihood.name!r}: {example}}}; values outside are clamped."
    )


def bounds_by_name(found: Blank, bounds: Mapping[str, object] | None) -> dict[str, tuple[float, float]]:
    """The user's bounds, each checked against its observed variable's family."""
    if bounds is None:
        return {}
    by_name = {likelihood.name: likelihood for likelihood in found.likelihoods}
    if not isinstance(bounds, Mapping) or not all(name in by_name for name in bounds):
        raise Refusal(f"bounds must name observed variables. Write one of {', '.join(map(repr, by_name)) or 'none, for there are none'}.")
    given = ((name, by_name[name].family, pair) for name, pair in bounds.items())
    return {name: check_bounds(family, name, pair) for name, family, pair in given if family is not None}


def check_unit(unit: object) -> str:
    """What one record stands for, in the user's words."""
    if unit == "individual":
        raise Refusal(
            'unit="individual", for rows that are totals, is not offered yet. Write unit="row" and observe one row per individual.'
        )
    if not isinstance(unit, str) or not unit.strip():
        raise Refusal('unit must say what one row stands for. Write unit="row", or for example unit="person-year".')
    return unit


def in_context(model: object) -> pm.Model:
    """The model meant: the one given, or the one whose ``with`` block this is."""
    try:
        found = pm.modelcontext(model)
    except TypeError:
        found = None
    if not isinstance(found, pm.Model):
        raise Refusal("There is no model here. Write model=..., or call inside the model's with block.")
    return found


@boundary
def inspect(
    model: pm.Model | None = None,
    *,
    bounds: Mapping[str, object] | None = None,
    public: Iterable[object] = (),
    unit: str = "row",
    neighbours: str = "replace",
) -> Inspection:
    """What would be released from a model and how far one record can move it. Reads shapes and the graph, never a value.

    Parameters
    ----------
    model : pm.Model, optional
        The model in context if left out.
    bounds : mapping, optional
        (lower, upper) for observed variables, in their own units. What is missing is listed, not refused.
    public : list, optional
        What everyone may know: names of ``pm.Data``, of dims (every index into them), ``"<observed>:<k>"`` as this table
        lists it, or the arrays themselves.
    unit : str
        What one row stands for, in words.
    neighbours : str
        "replace": one record is exchanged for another.

    Returns
    -------
    Inspection

    Raises
    ------
    Refusal
        For arguments that name nothing or are malformed; a model that cannot be released is described, not refused.
    """
    unit, neighbours = check_unit(unit), check_neighbours(neighbours)
    found = blank(in_context(model), public)
    checked = bounds_by_name(found, bounds)
    arrays = {entry[0]: (entry[0], entry[1], "public" if entry[2] else "private") for one in found.likelihoods for entry in one.arrays}
    labels = {dim: tuple(str(label) for label in values or ()) for dim, values in found.coords.items()}
    rows = tuple(_row(found, likelihood, checked) for likelihood in found.likelihoods)
    return Inspection(rows, found.problems, tuple(arrays.values()), dict(found.dropped), labels, found.stays, unit, neighbours)


def _row(found: Blank, likelihood: Likelihood, bounds: Mapping[str, tuple[float, float]]) -> Row:
    family = likelihood.family
    if likelihood.refusal is not None or family is None:
        reason = likelihood.refusal or ""
        return Row(likelihood.name, likelihood.distribution, "", (), None, reason + advice(found, reason), ())
    missing = needs(likelihood, bounds)
    statistics = family.statistics(likelihood.domain(bounds.get(likelihood.name)))
    name, distribution, structure = likelihood.name, likelihood.distribution, likelihood.structure
    if missing and family.BOUNDS == "integer":
        return Row(name, distribution, structure, statistics, None, "", ("laplace",), missing)
    would = planned(likelihood, bounds.get(name))
    moved = would.sensitivity * family.lattice(would.domain)
    return Row(name, distribution, structure, statistics, moved, would.why, ("laplace",), missing)
