"""ModelSpec + bounds -> what would be released of every likelihood, in which cells, and how far one record can move it.

``inspect`` and ``release`` both use these plans, so that what is shown is what is done. No value
is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pymc_dp.models.spec import Likelihood, ModelSpec, advice
from pymc_dp.models.structure import IN_GRAPH, Unreduced
from pymc_dp.plans.bounds import APART, bounds_by_name, covariate_bounds, needs
from pymc_dp.plans.cells import checked_grid, grid_of, planned_cells
from pymc_dp.plans.disjoint import Groups, disjoint_of
from pymc_dp.plans.missing import LEFT_OUT, Missing, leave_out, missing_by_name, no_level
from pymc_dp.plans.moments import is_linear, planned_moments
from pymc_dp.plans.person import Person
from pymc_dp.plans.protection import Individual, Protection
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.plans.totals import planned_totals
from pymc_dp.privacy.accounting import Refusal, counts_rows


@dataclass(frozen=True, eq=False)
class Plan:
    """What would be released from a model, whole.

    Attributes
    ----------
    spec : ModelSpec
    protection : Protection
    missing : dict of str to (str or float)
        What was declared of missing values, by name: "left out", or the level that they count as.
    statistics : tuple of PlannedStatistic
        One per observed variable, in the order of the model.
    disjoint : tuple of tuples of str
        Groups of observed variables of which the user says that each person has records in only one.
    """

    spec: ModelSpec
    protection: Protection
    missing: Missing
    statistics: tuple[PlannedStatistic, ...]
    disjoint: Groups = ()


def planned_release(spec: ModelSpec, protection: Protection) -> Plan:
    """Everything that would be released, or a refusal.

    Raises
    ------
    Refusal
        With every reason, and what to write instead.
    """
    disjoint = disjoint_of(spec, protection.disjoint, sized=protection.sized)
    bounds, missing = declared(spec, protection)
    statistics = (planned(likelihood, bounds, protection.neighbours, protection.unit, missing) for likelihood in spec.likelihoods)
    return Plan(spec, protection, missing, tuple(statistics), disjoint)


def declared(spec: ModelSpec, protection: Protection) -> tuple[dict[str, object], Missing]:
    """Bounds and what missing values count as, by name, of a model of which nothing is refused.

    Raises
    ------
    Refusal
        With every reason, and what to write instead.
    """
    bounds = bounds_by_name(spec, protection.bounds)
    refuse_problems(spec)
    lacking = [needed for likelihood in spec.likelihoods if (needed := needs(likelihood, bounds))]
    if lacking:
        raise Refusal("\n".join(lacking))
    return bounds, missing_by_name(spec, protection.missing)


def planned(
    likelihood: Likelihood, bounds: Mapping[str, object], neighbours: str = "replace", unit: object = "row", missing: Missing | None = None
) -> PlannedStatistic:
    """What would be released of one likelihood.

    Parameters
    ----------
    likelihood : Likelihood
        Without a refusal.
    bounds : mapping
        The user's, for this likelihood and its private covariates; see ``needs`` for what is missing.
    missing : mapping, optional
        See ``missing_by_name``.

    Raises
    ------
    Refusal
    """
    names = {likelihood.name, *(placeholder.name for placeholder in likelihood.inputs if placeholder.private)}
    rules = {name: rule for name, rule in (missing or {}).items() if name in names}
    try:
        if likelihood.aggregate:
            if rules:
                raise Unreduced("its rows are totals, and which there are is public. Leave it out of missing, and rows without a total out")
            return planned_totals(likelihood, bounds, neighbours, unit if isinstance(unit, Individual) else Individual())
        return _of_records(likelihood, bounds, neighbours, rules, unit if isinstance(unit, Person) else None)
    except Unreduced as reason:
        raise Refusal(f"{likelihood.name} cannot be released: {reason}.") from None


def _of_records(
    likelihood: Likelihood, bounds: Mapping[str, object], neighbours: str, rules: Missing, person: Person | None
) -> PlannedStatistic:
    """What would be released where a row is a record: second moments, or sums in cells.

    Where all rows of a person are protected their number is private with either neighbours. A person then is as many places as rows of hers
    count. Each holds a row or nothing, and "replace" exchanges that for another row or nothing, as where records may be left out.
    """
    covariates = covariate_bounds(likelihood, bounds)
    grid = grid_of(likelihood, covariates)
    public = [placeholder.name for placeholder in likelihood.inputs if not placeholder.private]
    if neighbours == "add_remove" and public:
        raise Unreduced(
            f"{public[0]} is public and may have an entry for every record, which reveals how many there are. With"
            ' neighbours="add_remove" no array that a likelihood depends on can be public. Write neighbours="replace", or leave'
            f" {public[0]} out of public; {IN_GRAPH}"
        )
    if person is not None and public:
        raise Unreduced(
            f"{public[0]} is public, and may have an entry for every row, which reveals how many there are, and whose. Where all rows of"
            f" one {person.name} are protected no array that a likelihood depends on can be public. Leave {public[0]} out of public;"
            f" {IN_GRAPH}"
        )
    left_out = tuple(name for name, rule in rules.items() if rule == LEFT_OUT)
    fills = {name: float(rule) for name, rule in rules.items() if rule != LEFT_OUT}
    sizes = "kept" if left_out else "simplex" if (grid is None or grid.inputs) else "public"
    sizes = sizes if counts_rows(person, neighbours) else "free"
    exchanged = person is not None and neighbours == "replace"
    if likelihood.between is None and is_linear(likelihood, grid, bounds, sizes):
        statistic = planned_moments(likelihood, bounds, covariates, sizes, exchanged=exchanged)
    else:
        cells = checked_grid(likelihood, covariates, grid)
        statistic = planned_cells(likelihood, bounds, covariates, cells, sizes, exchanged=exchanged)
        statistic = replace(statistic, domain=replace(statistic.domain, fill=fills.get(likelihood.name)))
    _check_fills(statistic, fills)
    at_most = None if person is None else person.at_most
    return replace(statistic, left_out=left_out, fills=fills, exchanged=exchanged, at_most=at_most)


def _check_fills(statistic: PlannedStatistic, fills: Mapping[str, float]) -> None:
    """A level that stands for what is missing is one that the variable can have: of few levels, or an entry of a table."""
    likelihood = statistic.likelihood
    levels: dict[str, Sequence[float]] = {}
    if (
        statistic.family is not None
        and statistic.family.NDIM == 0
        and not statistic.domain.edges
        and statistic.family.lattice(statistic.domain) == 1.0
    ):
        lower, upper = zip(*(statistic.domain.columns or [(statistic.domain.lower, statistic.domain.upper)]), strict=True)
        levels[likelihood.name] = range(int(max(lower)), int(min(upper)) + 1)
    for k, several, edges in zip(statistic.grid.inputs, statistic.grid.levels, statistic.grid.bins, strict=True):
        if edges:
            continue
        levels[likelihood.inputs[k].name] = sorted(set(several[0]).intersection(*several))
    for name, fill in fills.items():
        if name not in levels:
            raise Unreduced(f'a missing {name} cannot count as {fill:g}, because {name} is not one of few levels. Write "left out"')
        if fill not in levels[name]:
            each = f"{APART.format(name)} and a level of each"
            raise Unreduced(no_level(name, fill, levels[name], each if name == likelihood.name else leave_out(name)))


def refuse_problems(spec: ModelSpec) -> None:
    """Refuse a model with anything in it that cannot be read."""
    reasons = [*spec.problems, *(likelihood.refusal for likelihood in spec.likelihoods if likelihood.refusal)]
    if reasons:
        raise Refusal("\n".join(f"{reason}{advice(spec.likelihoods, reason)}" for reason in reasons))
