"""The log-likelihood of one record as a function of the unknowns, and the numbers that a record can hold.

Nothing here reads a record.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from math import prod
from operator import add

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.model.fgraph import ModelFreeRV
from pytensor.graph.basic import Variable

from pymc_dp.families.family import Domain
from pymc_dp.families.limits import finite_pair
from pymc_dp.models.intervals import products_as_sums
from pymc_dp.models.spec import Likelihood, ModelSpec, Placeholder
from pymc_dp.models.structure import SKIPPED, Unreduced, above, substitute
from pymc_dp.models.truncated_priors import within_intervals
from pymc_dp.models.unknowns import Unknown, by_name, unknown_of
from pymc_dp.plans.bins import Bins
from pymc_dp.plans.bounds import Bounded, covariate_bounds, one_or_each
from pymc_dp.plans.missing import LEFT_OUT, leave_out, no_level
from pymc_dp.plans.plan import declared
from pymc_dp.plans.protection import Protection
from pymc_dp.privacy.accounting import Refusal

MOST_RECORDS = 4096
"""The most values of one number of a record that are listed."""


# ---------- what a record is
@dataclass(frozen=True)
class Entry:
    """One number of a record: of an observed variable, or of an array its likelihood rests on.

    Attributes
    ----------
    variable : Variable
        A placeholder.
    axis : int
        Along which records lie.
    place : int
        Which of the numbers that it has for every record.
    lower, upper : float
    levels : tuple of float or None
        All values it can have, if they are few.
    """

    variable: Variable
    axis: int
    place: int
    lower: float
    upper: float
    levels: tuple[float, ...] | None


@dataclass(frozen=True)
class Rowwise:
    """The log-likelihood of a record, and all that is publicly known about records.

    Attributes
    ----------
    likelihoods : tuple of Likelihood
    parameters : tuple of tuples of Variable
        The parameters of every likelihood, on placeholders and stand-ins.
    values : tuple of Variable
        A placeholder for every observed variable, records along axis 0.
    domains : tuple of Domain
    bounds : dict of str to Bounded
        Between which values private covariates lie, by name.
    unknowns : tuple of Unknown
    stand_ins : tuple of Variable
        One for every unknown, in the graph.
    density : Variable
        The log-density (N,) of every record, on placeholders and stand-ins.
    each : tuple of Variable
        The log-densities of the likelihoods, which add up to ``density``.
    kept : tuple of (Variable or None)
        For every likelihood, a placeholder (N, columns) that is 0 where a record brings nothing because something is missing; None where
        nothing is left out.
    left_out : tuple of str
        Names of what may be missing, so that a record brings nothing.
    fills : dict of str to float
        Which level a missing value of these counts as.
    """

    likelihoods: tuple[Likelihood, ...]
    parameters: tuple[tuple[Variable, ...], ...]
    values: tuple[Variable, ...]
    domains: tuple[Domain, ...]
    bounds: Mapping[str, Bounded]
    unknowns: tuple[Unknown, ...]
    stand_ins: tuple[Variable, ...]
    density: Variable
    each: tuple[Variable, ...] = ()
    kept: tuple[Variable | None, ...] = ()
    left_out: tuple[str, ...] = ()
    fills: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def by_entry(self) -> Variable:
        """``density`` with every product of arrays as a sum of products: entry by entry, so that no record's part depends on where it
        stands or how many others there are, not even by rounding.
        """
        return products_as_sums(self.density)

    @cached_property
    def inputs(self) -> list[tuple[Placeholder, int]]:
        """Every input of every likelihood, once, with the likelihood it belongs to."""
        return [(placeholder, k) for k, likelihood in enumerate(self.likelihoods) for placeholder in likelihood.inputs]

    def only(self, places: Sequence[int]) -> "Rowwise":
        """The log-likelihood of a record of some of the likelihoods, by their places; the unknowns stay as they are."""

        def of(items: Sequence) -> tuple:
            return tuple(items[place] for place in places) if items else ()

        each = of(self.each)
        return replace(
            self, likelihoods=of(self.likelihoods), parameters=of(self.parameters), values=of(self.values), domains=of(self.domains),
            density=reduce(add, each), each=each, kept=of(self.kept),
        )  # fmt: skip

    @property
    def size(self) -> int:
        """How many unknown numbers there are."""
        return sum(unknown.size for unknown in self.unknowns)

    @property
    def lower(self) -> np.ndarray:
        """The least values (P,) of all unknown numbers."""
        return np.concatenate([unknown.lower for unknown in self.unknowns])

    @property
    def upper(self) -> np.ndarray:
        """The largest values (P,) of all unknown numbers."""
        return np.concatenate([unknown.upper for unknown in self.unknowns])

    @property
    def intervals(self) -> dict[str, tuple[object, object]]:
        """From where to where each unknown goes whose prior was cut off, by name: numbers, or lists where its entries differ."""
        cut_off = [unknown for unknown in self.unknowns if unknown.transform is not None]
        return {unknown.name: (_plainest(unknown, unknown.lower), _plainest(unknown, unknown.upper)) for unknown in cut_off}

    def split(self, numbers: np.ndarray) -> list[np.ndarray]:
        """Numbers (..., P) as one array per unknown, in its own shape."""
        return list(by_name(self.unknowns, numbers).values())


def _plainest(unknown: Unknown, ends: np.ndarray) -> object:
    """Ends of an unknown as one number, where they are, and else in its shape."""
    return float(ends[0]) if (ends == ends[0]).all() else ends.reshape(unknown.shape).tolist()


def rowwise(
    spec: ModelSpec, protection: Protection, latents: Collection[str] = (), truncate: Mapping[str, tuple[float, float]] | None = None
) -> Rowwise:
    """The log-likelihood of a record of this model, or a refusal; ``latents`` are free variables that are no numbers, and ``truncate`` cuts
    priors off (``models.truncated_priors``).
    """
    checked, rules = declared(spec, protection)
    left_out = tuple(name for name, rule in rules.items() if rule == LEFT_OUT)
    fills = {name: float(rule) for name, rule in rules.items() if rule != LEFT_OUT}
    numbers = [v for v in spec.kept if isinstance(v.owner.op, ModelFreeRV) and v.owner.op.name not in latents]
    unknowns = tuple(unknown_of(v) for v in numbers) if truncate is None else within_intervals(numbers, truncate)
    stand_ins = tuple(
        pt.tensor(f"unknown_{k}", dtype=unknown.variable.type.dtype, shape=unknown.shape) for k, unknown in enumerate(unknowns)
    )
    replaced = {unknown.variable: stand_in for unknown, stand_in in zip(unknowns, stand_ins, strict=True)}
    parameters: list[tuple[Variable, ...]] = []
    values: list[Variable] = []
    domains: list[Domain] = []
    bounds: dict[str, Bounded] = {}
    kept: list[Variable | None] = []
    for likelihood in spec.likelihoods:
        if not protection.sized:
            _check_private(likelihood)
        value, domain = _value(likelihood, checked)
        values.append(value)
        domains.append(domain)
        if binned := next((i.name for i in likelihood.inputs if isinstance(checked.get(i.name), Bins)), None):
            raise Refusal(f"Draws from the posterior itself need no bins. Write bounds={{{binned!r}: (lower, upper)}}.")
        try:
            bounds |= covariate_bounds(likelihood, checked)
        except Unreduced as reason:
            raise Refusal(f"{likelihood.name} cannot be drawn from: {reason}.") from None
        parameters.append(tuple(substitute(parameter, dict(replaced), SKIPPED) for parameter in likelihood.parameters))
        kept.append(_kept(likelihood, left_out))
    _check_fills(spec, domains, bounds, fills)
    densities = tuple(map(_density, spec.likelihoods, values, parameters, kept))
    density = reduce(add, densities)
    if not set(stand_ins) & set(above([density])):
        raise Refusal("The likelihood rests on no unknown, so the prior is the posterior. Draw from the prior.")
    return Rowwise(
        spec.likelihoods, tuple(parameters), tuple(values), tuple(domains), bounds, unknowns, stand_ins, density, densities, tuple(kept),
        left_out, fills,
    )  # fmt: skip


def _check_private(likelihood: Likelihood) -> None:
    """Refuse public arrays where records come and go: their lengths would tell how many there are."""
    public = next((placeholder.name for placeholder in likelihood.inputs if not placeholder.private), None)
    if public is not None:
        raise Refusal(
            f'{public} is public along the records, which reveals how many there are. Write neighbours="replace", or leave it private.'
        )


def _kept(likelihood: Likelihood, left_out: Collection[str]) -> Variable | None:
    """A placeholder for which values of a likelihood count, where some may be left out."""
    names = {likelihood.name, *(placeholder.name for placeholder in likelihood.inputs if placeholder.private)}
    if not names & set(left_out):
        return None
    return pt.tensor(f"{likelihood.name}_kept", dtype="float64", shape=(None, prod(likelihood.columns)))


def _check_fills(spec: ModelSpec, domains: Sequence[Domain], bounds: Mapping[str, Bounded], fills: Mapping[str, float]) -> None:
    """Refuse a level that missing values count as where it is none that the variable can have."""
    ends = {}
    for likelihood, domain in zip(spec.likelihoods, domains, strict=True):
        lowers, uppers = zip(*ends_of_columns(domain, 1), strict=True)
        ends[likelihood.name] = max(lowers), min(uppers)
    inputs = [placeholder for likelihood in spec.likelihoods for placeholder in likelihood.inputs]
    ends |= {i.name: (0.0, (i.levels or 1) - 1.0) for i in inputs if i.private and i.index}
    ends |= {name: (float(bounded.lower.max()), float(bounded.upper.min())) for name, bounded in bounds.items()}
    for name, fill in fills.items():
        levels = bounds[name].levels if name in bounds else None
        lower, upper = ends[name]
        if not lower <= fill <= upper or (levels is not None and fill not in levels):
            words = no_level(name, fill, ends[name] if lower <= upper else (), leave_out(name), kind="value")
            raise Refusal(f"{words[0].upper()}{words[1:]}.")


def _value(likelihood: Likelihood, bounds: Mapping[str, object]) -> tuple[Variable, Domain]:
    """A placeholder for the observed values, and their domain.

    Columns may have bounds of their own: every record is moved into them, and what a record can do is the range of its log-likelihood over
    all that lies within them, column by column.
    """
    name = likelihood.name
    try:
        pairs = one_or_each(likelihood, bounds[name]) if bounds.get(name) is not None else []
    except Unreduced as reason:
        raise Refusal(f"{name} cannot be drawn from: {reason}.") from None
    columns = tuple(finite_pair(name, pair) for pair in pairs)
    for pair in columns:
        within = max(pair[0], likelihood.limits[0]), min(pair[1], likelihood.limits[1])
        if pair != within:
            raise Refusal(f"{name} is censored, and has no values beyond. Write bounds={{{name!r}: ({within[0]:g}, {within[1]:g})}}.")
    assert likelihood.make is not None
    drawn = likelihood.make(*[parameter.type() for parameter in likelihood.parameters])
    dtype = "int64" if "int" in str(drawn.type.dtype) else "float64"
    domain = likelihood.domain((min(low for low, _ in columns), max(high for _, high in columns)) if columns else None)
    if len(columns) > 1 and likelihood.natural is None:
        domain = replace(domain, columns=columns)
    return pt.tensor(f"{name}_value", dtype=dtype, shape=(None, *likelihood.columns)), domain


def _density(likelihood: Likelihood, value: Variable, parameters: Sequence[Variable], kept: Variable | None) -> Variable:
    """The log-density (N,) of every record under one likelihood, summed over its columns; 0 where it brings nothing."""
    assert likelihood.make is not None
    # Distributions made of others do not broadcast against their values, so every parameter is as long as they are.
    like = pt.zeros_like(value, dtype="float64")
    full = [
        pt.shape_padleft(p, value.type.ndim + core - p.type.ndim) + pt.shape_padright(like, core)
        for p, core in zip(parameters, likelihood.core_ndims, strict=True)
    ]
    # PyMC clones what is above a distribution where it derives its density, so it sees stand-ins for all that is there.
    standing_in = [parameter.type() for parameter in full]
    log_p = pm.logp(likelihood.make(*standing_in), value)
    # Whether parameters are allowed may depend on records, so nothing is raised; what is not a number is clipped where records are read.
    densities = substitute(log_p, dict(zip(standing_in, full, strict=True)), SKIPPED)
    by_column = densities.reshape((value.shape[0], prod(likelihood.columns)))
    return (by_column if kept is None else pt.switch(kept, by_column, 0.0)).sum(axis=1)


def ends_of_columns(domain: Domain, many: int) -> Sequence[tuple[float, float]]:
    """The bounds of each of so many columns."""
    return domain.columns or ((domain.lower, domain.upper),) * many


def entries_of(rows: Rowwise, known: Mapping[Variable, np.ndarray]) -> list[Entry]:
    """All numbers of a record. ``known`` has the public arrays, whose values may be listed."""
    result = []
    for value, domain, likelihood in zip(rows.values, rows.domains, rows.likelihoods, strict=True):
        for place, (lower, upper) in enumerate(ends_of_columns(domain, prod(likelihood.columns))):
            levels = _levels(lower, upper) if value.type.dtype == "int64" else None
            result.append(Entry(value, 0, place, lower, upper, levels))
    for kept, likelihood in zip(rows.kept, rows.likelihoods):
        if kept is not None:
            result += [Entry(kept, 0, place, 0.0, 1.0, (0.0, 1.0)) for place in range(prod(likelihood.columns))]
    for placeholder, _ in rows.inputs:
        if placeholder.axis is not None and placeholder.private:
            result += _private_entries(placeholder, rows.bounds)
        elif placeholder.axis is not None:
            result += _public_entries(placeholder, known[placeholder.variable])
    return result


def _public_entries(placeholder: Placeholder, array: np.ndarray) -> list[Entry]:
    """The numbers that a record has of a public array, between the least and the largest of all records."""
    assert placeholder.axis is not None
    by_row = np.moveaxis(array, placeholder.axis, 0)
    result = []
    for place, column in enumerate(by_row.reshape(len(by_row), -1).T):
        distinct = np.unique(column)
        levels = tuple(map(float, distinct)) if len(distinct) <= MOST_RECORDS else None
        result.append(Entry(placeholder.variable, placeholder.axis, place, float(distinct[0]), float(distinct[-1]), levels))
    return result


def _private_entries(placeholder: Placeholder, bounds: Mapping[str, Bounded]) -> list[Entry]:
    """The numbers that a record has of a private array, between declared bounds or the ends of the table that an index points into."""
    axis = placeholder.axis
    assert axis is not None
    listed = None
    if placeholder.index:
        shape = [1 if k == axis else length or 1 for k, length in enumerate(placeholder.variable.type.shape)]
        lower, upper = np.zeros(shape), np.full(shape, (placeholder.levels or 1) - 1.0)
    else:
        bounded = bounds[placeholder.name]
        lower, upper, listed = bounded.lower, bounded.upper, bounded.levels
    result = []
    for place, (low, high) in enumerate(zip(np.moveaxis(lower, axis, 0).ravel(), np.moveaxis(upper, axis, 0).ravel(), strict=True)):
        levels = listed if listed is not None else _levels(low, high) if placeholder.whole or placeholder.index else None
        result.append(Entry(placeholder.variable, axis, place, float(low), float(high), levels))
    return result


def norms_of(rows: Rowwise) -> dict[Variable, float]:
    """The largest Euclidean norm of a record's entries, of the placeholders for which it was declared."""
    private = [placeholder for placeholder, _ in rows.inputs if placeholder.private and placeholder.name in rows.bounds]
    norms = {placeholder.variable: rows.bounds[placeholder.name].norm for placeholder in private}
    return {variable: norm for variable, norm in norms.items() if np.isfinite(norm)}


def _levels(lower: float, upper: float) -> tuple[float, ...] | None:
    """All whole numbers between these, if they are few."""
    return tuple(map(float, range(int(lower), int(upper) + 1))) if upper - lower < MOST_RECORDS else None


def check_finite(rows: Rowwise, cutting_off: str = "") -> None:
    """Refuse unknowns without ends: a posterior draw would have no bound. ``cutting_off`` is how it is written that priors are cut off."""
    for unknown in rows.unknowns:
        if not unknown.finite:
            name, low, high = unknown.name, ("0.1" if unknown.lower[0] == 0 else "-5"), "5"
            ball = f", or for coefficients pymc_dp.BallNormal({name!r}, precision=1.0, radius=3.0, shape={unknown.size})"
            at_once = f"Write {cutting_off}, which cuts all priors off at their quantiles, or truncate" if cutting_off else "Truncate"
            raise Refusal(
                f"{name} has no largest value, so one record could move the posterior without limit. {at_once} its prior:"
                f" pm.Truncated({name!r}, ..., lower={low}, upper={high}), or pm.Uniform{ball if len(unknown.shape) == 1 else ''}."
            )
