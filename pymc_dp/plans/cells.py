"""Sums of a family's statistics, cell by cell: which private cells there are, and how far one record moves the sums."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.tensor.subtensor import AdvancedSubtensor

from pymc_dp.families.by_column import ByColumn, of_record, with_columns
from pymc_dp.families.family import Domain, Sensitivity
from pymc_dp.families.limits import check_bounds
from pymc_dp.models.alternatives import AT_RANDOM
from pymc_dp.models.custom_density import AS_POTENTIAL
from pymc_dp.models.intervals import interval
from pymc_dp.models.linear import length
from pymc_dp.models.spec import MIXED, Likelihood, Placeholder
from pymc_dp.models.structure import Unreduced, above
from pymc_dp.models.tabulated import MOST_VALUES
from pymc_dp.plans.bin_nodes import rows_with_nodes
from pymc_dp.plans.bounds import APART, Bounded, as_declared, binned_domain, one_or_each, predictor_name, shape_of_record
from pymc_dp.plans.statistic import Grid, PlannedStatistic, over_columns, structure_of

MOST_CELLS = 100_000
"""The most private cells that are released: more are noise and nothing else."""


FEW_CELLS = 16
"""Up to so many private cells, discrete covariates of a normal likelihood are cells rather than features."""


def grid_of(likelihood: Likelihood, covariates: Mapping[str, Bounded]) -> Grid | None:
    """The private cells; None where a bound is missing or a covariate is a real number."""
    return levels_of(likelihood, [k for k, placeholder in enumerate(likelihood.inputs) if placeholder.private], covariates)


def levels_of(likelihood: Likelihood, inputs: Sequence[int], covariates: Mapping[str, Bounded]) -> Grid | None:
    """All combinations of the levels of these inputs."""
    levels: list[tuple[tuple[float, ...], ...]] = []
    edges = [covariates[name].edges if (name := likelihood.inputs[k].name) in covariates else () for k in inputs]
    for k in inputs:
        placeholder = likelihood.inputs[k]
        if placeholder.index:
            if placeholder.levels is None:
                return None
            levels.append((tuple(map(float, range(placeholder.levels))),) * int(np.prod(shape_of_record(placeholder))))
        elif placeholder.name in covariates and (bounded := covariates[placeholder.name]).levels is not None:
            levels.append((bounded.levels or (),) * bounded.lower.size)
        elif placeholder.whole and placeholder.name in covariates:
            ends = zip(covariates[placeholder.name].lower.ravel(), covariates[placeholder.name].upper.ravel(), strict=True)
            entries = []
            for low, high in ends:
                if high - low >= MOST_CELLS:
                    return None
                entries.append(tuple(map(float, range(int(low), int(high) + 1))))
            levels.append(tuple(entries))
        else:
            return None
    return Grid(tuple(inputs), tuple(levels), tuple(edges) if any(edges) else ())


def check_tables(likelihood: Likelihood, grid: Grid) -> None:
    """Every index computed from private inputs stays inside its table on all private cells."""
    ends = {}
    for k, several, edges in zip(grid.inputs, grid.levels, grid.bins, strict=True):
        placeholder = likelihood.inputs[k]
        low, high = (np.array([(edges or entry)[end] for entry in several]).reshape(shape_of_record(placeholder)) for end in (0, -1))
        ends[placeholder.variable] = (low, high)
    for variable in above(list(likelihood.parameters), through_unknowns=False):
        if variable.owner is None or not isinstance(variable.owner.op, AdvancedSubtensor):
            continue
        table, *indices = variable.owner.inputs
        for place, entry in enumerate(variable.owner.op.idx_list):
            if not isinstance(entry, int) or not any(leaf in ends for leaf in above([indices[entry]])):
                continue
            try:
                low, high = interval(indices[entry], ends)
            except Unreduced as reason:
                looked_up = "If it is looked up in a table, write a[table][index] in place of a[table[index]]"
                raise Unreduced(f"an index is computed from a private one, and {reason}. {looked_up}") from None
            rows = length(table, place)
            if rows is None or (np.asarray(low) < -rows).any() or (np.asarray(high) >= rows).any():
                names = ", ".join(dict.fromkeys(placeholder.name for placeholder in likelihood.inputs if placeholder.variable in ends))
                within = f"Give bounds of {names}, or narrower ones"
                raise Unreduced(f"an index computed from {names} goes beyond its table within the bounds. {within}")


def planned_cells(
    likelihood: Likelihood,
    bounds: Mapping[str, object],
    covariates: Mapping[str, Bounded],
    grid: Grid,
    sizes: str,
    *,
    exchanged: bool,
) -> PlannedStatistic:
    """Sums of the family's statistics per cell.

    Public cells: neighbours replace one record within its cell, which moves its statistics by the family's ``difference`` in
    each of the record's columns, and columns add. Private cells: a record leaves one cell with all it brought and enters
    another, at twice the total of ``CellSensitivity`` (and twice its squared norm, the cells being different); a move within a cell is
    less. One record more or less moves one cell, by the total. Where records are left out a record may bring its entries or nothing, and
    another one as well: entries are never negative, so two of them are no further apart than both together from nothing. So it is where
    one of a person's records is ``exchanged`` for one of another's, or for nothing.
    Counts of values or in bins are such sums: one entry of a record is 1, the others are 0. Bins of a covariate make private cells as
    levels do: whatever a record holds, it lies in one of them.
    """
    family = likelihood.family
    assert family is not None
    declared = bounds.get(likelihood.name)
    if likelihood.between is not None:
        domain = binned_domain(likelihood, declared)
    else:
        domain = as_declared(_domain(likelihood, declared, sizes), declared)
    if likelihood.make is not None and not domain.edges and domain.upper - domain.lower >= MOST_VALUES:
        raise Unreduced(f"its bounds hold more than {MOST_VALUES:,} values, each of which is counted. Narrow them")
    check_tables(likelihood, grid)
    structure = structure_of(likelihood)
    names = with_columns(family, domain).statistics(domain)
    if sizes == "public":
        sensitivity = of_record(family, domain) if domain.columns else over_columns(family.sensitivity(domain), likelihood.columns)
        return PlannedStatistic(likelihood, structure, domain, sizes, grid, None, covariates, names, sensitivity)
    moved = with_columns(family, domain).cell_sensitivity(domain)
    moves = "kept" if exchanged else sizes
    times = 1 if moves == "free" else 2
    what = f"adds at most {moved.total * with_columns(family, domain).lattice(domain):.6g} to the numbers of its cell"
    how = {"free": "comes or goes", "kept": "may be left out, and so may the one in its place"}.get(
        moves, "may be replaced by one of another cell"
    )
    why = f"a record {what}; it {how}"
    sensitivity = over_columns(Sensitivity(times * moved.total, times * moved.square, moved.total, why), likelihood.columns)
    return PlannedStatistic(likelihood, structure, domain, sizes, grid, None, covariates, moved.names, sensitivity)


def _domain(likelihood: Likelihood, declared: object, sizes: str) -> Domain:
    """What is known about values once bounds are checked: one pair for all columns, or one for each."""
    family, name = likelihood.family, likelihood.name
    assert family is not None
    pairs = one_or_each(likelihood, declared)
    if len(pairs) == 1:
        return likelihood.domain(None if pairs[0] is None else check_bounds(family, name, pairs[0]))
    columns = tuple(check_bounds(family, name, pair) for pair in pairs)
    if likelihood.make is not None:
        raise Unreduced(
            f"how many values lie between bounds is the same for all columns of {name}, whose values are counted. {APART.format(name)}"
        )
    if family.FIXED:
        raise Unreduced(f"bounds of {name} must hold all numbers of successes. Leave {name} out of bounds")
    if family.NDIM:
        raise Unreduced(f"values of {name} are vectors, which have one pair of bounds in all columns. {APART.format(name)}")
    domain = replace(likelihood.domain((min(low for low, _ in columns), max(high for _, high in columns))), columns=columns)
    if sizes != "public" and not ByColumn(family).shares_cells(domain):
        raise Unreduced(
            f"numbers of records are private, and released with counts between the same bounds in all columns. {APART.format(name)}"
        )
    return domain


def _advise_draws(likelihood: Likelihood) -> str:
    """How to draw from the posterior, where a record has a density; else nothing."""
    vector = likelihood.family is not None and likelihood.family.NDIM > 0
    if likelihood.again is None or vector or likelihood.ordered:
        return ""
    return '; or draw from the posterior itself: mechanism=pymc_dp.PosteriorSample(truncate="prior")'


def _advise_bins(likelihood: Likelihood, placeholder: Placeholder) -> str:
    """How to count a covariate in bins, where that is possible; else nothing. Of what is censored it may be the limit, and is not named."""
    binned, counted = likelihood.between is not None, likelihood.make is not None or likelihood.distribution in MIXED
    if placeholder.parent or not placeholder.plain or placeholder.axis is None or likelihood.distribution == "Censored":
        return ""
    if not (counted or in_bins_too(likelihood)):
        return ""
    outcome = "" if binned or counted else f"{likelihood.name!r}: pymc_dp.Bins(lower, upper), "
    return f"; or count it in bins: bounds={{{outcome}{placeholder.name!r}: pymc_dp.Bins(lower, upper)}}"


def _advise_bernoulli(likelihood: Likelihood) -> str:
    """How to use scores of two levels, which are those of a yes or no; else nothing."""
    if likelihood.distribution != "Categorical" or likelihood.levels != 2:
        return ""
    logit = f"logit({likelihood.name})"
    return f"; or write pm.Bernoulli(p=pm.math.sigmoid(...)) of the second level, and bounds={{{logit!r}: (-3, 3)}}"


def _advise_randomise(likelihood: Likelihood, placeholder: Placeholder) -> str:
    """How to tell every record at random, where that is possible; else nothing. Of what is censored a covariate may be the limit."""
    if not likelihood.alone or likelihood.distribution == "Censored" or not (placeholder.plain or placeholder.parent):
        return ""
    observed = "" if placeholder.parent else f"give {placeholder.name} a distribution of its own, and "
    return f"; or {observed}{AT_RANDOM}"


def _advise_potential(likelihood: Likelihood) -> str:
    """How to write what is censored at times that nobody planned; else nothing."""
    return f"; or, if it was not planned beforehand, write {AS_POTENTIAL}" if likelihood.distribution == "Censored" else ""


def in_bins_too(likelihood: Likelihood) -> bool:
    """Whether the values of a likelihood are single numbers, which can be counted in bins or one by one."""
    return likelihood.family is not None and likelihood.family.NDIM == 0 and not likelihood.levels


def _advise_public(likelihood: Likelihood) -> str:
    """How to make cells public, which may be as many as there are."""
    private = [placeholder for placeholder in likelihood.inputs if placeholder.private and placeholder.name and not placeholder.parent]
    if not private:
        return ""
    most = max(private, key=lambda placeholder: placeholder.levels or MOST_CELLS)
    return f", or, if everyone may know them, write public=[{most.name!r}]"


def checked_grid(likelihood: Likelihood, covariates: Mapping[str, Bounded], grid: Grid | None) -> Grid:
    """The private cells, once nothing speaks against them.

    Raises
    ------
    Unreduced
        Where a private covariate is a real number, or where there are too many cells.
    """
    for placeholder in likelihood.inputs:
        if (
            placeholder.private
            and not placeholder.index
            and not placeholder.whole
            and (placeholder.name not in covariates or covariates[placeholder.name].levels is None)
        ):
            name, drawn = placeholder.name, _advise_draws(likelihood)
            reason = likelihood.not_linear or f"its likelihood, {likelihood.distribution}, is not normal"
            if likelihood.linear is not None and likelihood.linear.link:
                linked = predictor_name(likelihood)
                raise Unreduced(
                    f"the private covariate {name} is a real number, and {reason}. To release second moments and use an"
                    f" approximate likelihood, say between which values {linked} lies: bounds={{{linked!r}: (-3, 3)}}. If {name}"
                    f" has few levels, list them: bounds={{{name!r}: {{0, 1}}}}, which is exact{_advise_bins(likelihood, placeholder)}"
                )
            if _index_computed_from(placeholder.variable, likelihood.parameters):
                bins = _advise_bins(likelihood, placeholder)
                raise Unreduced(
                    f"an index is computed from the private covariate {name}, a real number. Compute it before the model, as in"
                    f" pm.Data('level', ({name} > 3).astype(int)), and index with that; if everyone may know {name}, write"
                    f" public=[{name!r}]{bins and f'{bins}, with edges=[...] where the index changes'}"
                )
            raise Unreduced(
                f"the private covariate {name} is a real number, and {reason}. If it has few levels, list them:"
                f" bounds={{{name!r}: {{0, 1}}}}; if everyone may know it, write public=[{name!r}]{drawn}"
                f"{_advise_bernoulli(likelihood)}{_advise_bins(likelihood, placeholder)}{_advise_randomise(likelihood, placeholder)}"
                f"{_advise_potential(likelihood)}"
            )
    if grid is None:
        most = max((i for i in likelihood.inputs if i.private and i.name in covariates), key=lambda i: np.max(covariates[i.name].upper))
        raise Unreduced(
            f"its private covariates have more than {MOST_CELLS:,} levels. Give them fewer{_advise_public(likelihood)}"
            f"{_advise_bins(likelihood, most)}"
        )
    if grid.within and rows_with_nodes(grid.size, len(grid.within)) > MOST_CELLS:
        binned = ", ".join(likelihood.inputs[k].name for k, edges in zip(grid.inputs, grid.bins, strict=True) if edges)
        raise Unreduced(
            f"the bins of {binned} are too many together, with what else makes cells. Write fewer bins, or bin fewer covariates"
        )
    if grid.size > MOST_CELLS:
        names = ", ".join(likelihood.inputs[k].name for k in grid.inputs)
        raise Unreduced(
            f"the private {names} make {grid.size:,} cells, more than {MOST_CELLS:,}. Give them fewer levels{_advise_public(likelihood)}"
        )
    return grid


def _index_computed_from(covariate: Variable, parameters: Sequence[Variable]) -> bool:
    """Whether a parameter is indexed by what is computed from a covariate."""
    indices = [index for v in above([*parameters]) if v.owner and isinstance(v.owner.op, AdvancedSubtensor) for index in v.owner.inputs[1:]]
    return covariate in set(above(indices))


def bins_in_words(statistic: PlannedStatistic) -> list[str]:
    """Which bins covariates are counted in, in words."""
    phrases = []
    for k, edges in zip(statistic.grid.inputs, statistic.grid.bins, strict=True):
        if edges:
            name = statistic.likelihood.inputs[k].name
            phrases.append(
                f"{name} in {len(edges) - 1} bins from {edges[0]:.6g} to {edges[-1]:.6g}, values beyond being moved there; the likelihood"
                f" is integrated over where in its bin {name} lies, which is approximate where bins are wide"
            )
    return phrases
