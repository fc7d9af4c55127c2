"""ModelSpec + bounds -> what would be released of every likelihood, in which cells, and how far one record can move it.

``inspect`` and ``release`` both use these plans, so that what is shown is what is done. No value
is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, prod
from typing import NamedTuple

import numpy as np
from pytensor.tensor.subtensor import AdvancedSubtensor

from pymc_dp.families.family import Domain, Family, Sensitivity, check_bounds
from pymc_dp.families.second_moments import Regression
from pymc_dp.models.intervals import interval
from pymc_dp.models.linear import length
from pymc_dp.models.spec import Likelihood, Linear, ModelSpec, Placeholder
from pymc_dp.models.structure import Unreduced, above
from pymc_dp.models.tabulated import MOST_VALUES
from pymc_dp.plans.missing import LEFT_OUT, Missing, missing_by_name
from pymc_dp.privacy.accounting import Refusal

MOST_CELLS = 100_000
"""The most private cells that are released: more are noise and nothing else."""
LEAST_PREDICTOR, MOST_PREDICTOR = 0.01, 20.0
"""The narrowest and the widest bounds of a linear predictor behind a link."""
FEW_CELLS = 16
"""Up to so many private cells, discrete covariates of a normal likelihood are cells rather than features."""


@dataclass(frozen=True)
class Individual:
    """Rows that are totals over individuals: what is protected is one individual, not one row.

    Which rows there are, and everything declared public along them, is public; each row's total is released by itself.

    Parameters
    ----------
    events : int, optional
        For Poisson totals, the most events of one individual over all rows.
    membership : "private" or "public"
        Whether it is public which row an individual is counted in.
    rows : int
        How many rows one individual is counted in at most.

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

    def __post_init__(self) -> None:
        whole = isinstance(self.rows, int) and not isinstance(self.rows, bool) and self.rows >= 1
        events = self.events is None or (isinstance(self.events, int) and not isinstance(self.events, bool) and self.events >= 1)
        if not (whole and events and self.membership in ("private", "public")):
            raise Refusal(
                'Write for example Individual(events=3, membership="public", rows=1): positive integers, and "public" or "private".'
            )

    def __str__(self) -> str:
        return "individual"

    @property
    def relation(self) -> str:
        """All that decides which data sets are neighbours, for the ledger."""
        return "individual" if self == Individual() else repr(self)


@dataclass(frozen=True)
class Grid:
    """The private cells: all combinations of the levels of a likelihood's private inputs.

    Attributes
    ----------
    inputs : tuple of int
        Which of the likelihood's inputs they are.
    levels : tuple of tuples of tuples of float
        For every entry of each, its levels in increasing order.
    """

    inputs: tuple[int, ...] = ()
    levels: tuple[tuple[tuple[float, ...], ...], ...] = ()

    @property
    def size(self) -> int:
        """How many cells there are."""
        return prod(len(entry) for several in self.levels for entry in several)

    def values(self) -> list[np.ndarray]:
        """For every input, its entries in every cell: (cells, entries)."""
        flat = [np.array(entry) for several in self.levels for entry in several]
        grid = np.indices([len(entry) for entry in flat]).reshape(len(flat), self.size)
        result, start = [], 0
        for several in self.levels:
            result.append(np.stack([flat[start + e][grid[start + e]] for e in range(len(several))], axis=-1))
            start += len(several)
        return result


@dataclass(frozen=True)
class Bounded:
    """What the user said of a private covariate: bounds, and levels where it is a closed list of values.

    Attributes
    ----------
    lower, upper : ndarray
        Of the shape of one record's entries, with an axis of length one for the records.
    levels : tuple of float or None
    norm : float
        The largest Euclidean norm of one record's entries together.
    """

    lower: np.ndarray
    upper: np.ndarray
    levels: tuple[float, ...] | None = None
    norm: float = inf


class Natural(NamedTuple):
    """Bounds outside which no value can lie: ages of those who were asked from 17 on, ``bounds={"age": pymc_dp.Natural(17, 90)}``.

    Privacy does not rest on that: what lies outside is moved to the bounds, as with a plain pair. The private model does: with a plain
    pair it takes values at a bound for what was moved there, with natural bounds it takes all values for what they are. A normal
    model of ages whose tail reaches below 17 then is what it would be without privacy. A response with covariates is always taken for what
    it is; there natural bounds say that nothing was cut off, and that ``sample`` need not warn of it.

    Attributes
    ----------
    lower, upper : float
        In the units of the values.

    Examples
    --------
    >>> with pm.Model() as ages:
    ...     mean, sd = pm.Normal("mean", 40, 20), pm.HalfNormal("sd", 20)
    ...     age = pm.Normal("age", mean, sd, observed=np.linspace(17, 90, 200))
    >>> pmdp.inspect(ages, bounds={"age": pmdp.Natural(17, 90)}).rows[0].structure
    'shared'
    """

    lower: float
    upper: float


@dataclass(frozen=True)
class Norm:
    """A bound on the Euclidean norm of a record's entries, for a covariate with several columns. Longer records are shortened to it.

    Parameters
    ----------
    largest : float
        The largest norm, in the units of the covariate.

    Examples
    --------
    >>> with pm.Model() as line:
    ...     w, X = pm.Normal("w", 0, 1, shape=2), pm.Data("X", np.eye(2)[votes])
    ...     y = pm.Normal("y", X @ w, 1, observed=np.linspace(0, 1, 200))
    >>> pmdp.inspect(line, bounds={"X": pmdp.Norm(1.0), "y": (0, 1)}).rows[0].structure
    'linear'
    """

    largest: float

    def __post_init__(self) -> None:
        number = isinstance(self.largest, int | float) and not isinstance(self.largest, bool)
        if not number or not 0 < self.largest < inf:
            raise Refusal('A norm must be a positive number. Write for example bounds={"X": pymc_dp.Norm(1.0)}.')


@dataclass(frozen=True)
class Planned:
    """One observed variable that can be released.

    Attributes
    ----------
    likelihood : Likelihood
    structure : {"shared", "indexed", "table", "linear", "aggregate"}
    domain : Domain
    sizes : {"public", "simplex", "kept", "free"}
        Whether the numbers of records in cells are public, add up to public ones, are at most public ones because some records are
        left out, or are unknown.
    grid : Grid
    regression : Regression or None
        For "linear"; what rests on values of public features is not yet in it.
    bounds : dict of str to Bounded
        Of the private covariates, by name.
    statistics : tuple of str
    reach : Sensitivity
        Of one record: ``difference`` and ``square`` are what noise is calibrated to, whatever the neighbours.
    left_out : tuple of str
        A record in which one of these is missing brings nothing.
    fills : dict of str to float
        Which level a missing value of these counts as.
    """

    likelihood: Likelihood
    structure: str
    domain: Domain
    sizes: str
    grid: Grid
    regression: Regression | None
    bounds: Mapping[str, Bounded]
    statistics: tuple[str, ...]
    reach: Sensitivity
    left_out: tuple[str, ...] = ()
    fills: Mapping[str, float] = field(default_factory=dict)

    @property
    def family(self) -> Family | None:
        """None where the statistics are those of a regression."""
        return None if self.regression is not None else self.likelihood.family

    @property
    def lattice(self) -> float:
        """Size of one lattice unit, in units of the statistics."""
        if self.regression is not None:
            return self.regression.lattice
        assert self.family is not None
        return self.family.lattice(self.domain)

    def with_regression(self, regression: Regression) -> "Planned":
        """The same plan, once the values of public features are known."""
        reach = regression.reach(moves=bool(self.grid.inputs))
        return replace(self, regression=regression, reach=_columns_of(reach, self.likelihood.columns))


def structure_of(likelihood: Likelihood, grid: Grid | None, linear: bool) -> str:
    """How the parameters depend on the record, in one word."""
    if likelihood.aggregate:
        return "aggregate"
    if linear:
        return "linear"
    by_record = [given for given in likelihood.inputs if given.axis is not None]
    if not by_record:
        return "shared"
    return "table" if any(given.private and not given.index for given in by_record) else "indexed"


def planned(
    likelihood: Likelihood, bounds: Mapping[str, object], neighbours: str = "replace", unit: object = "row", missing: Missing | None = None
) -> Planned:
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
    try:
        own_names = {likelihood.name, *(given.name for given in likelihood.inputs if given.private)}
        own = {name: rule for name, rule in (missing or {}).items() if name in own_names}
        if likelihood.aggregate:
            if own:
                raise Unreduced("its rows are totals, and which there are is public. Leave it out of missing, and rows without a total out")
            return _aggregate(likelihood, neighbours, unit if isinstance(unit, Individual) else Individual())
        covariates = covariate_bounds(likelihood, bounds)
        grid = _grid(likelihood, covariates)
        linear = is_linear(likelihood, grid, bounds)
        if neighbours == "add_remove":
            for given in likelihood.inputs:
                if not given.private:
                    raise Unreduced(
                        f"{given.name} is public, and as long as there are records, for all that can be known: that reveals how many"
                        ' there are. With neighbours="add_remove" no array above a likelihood can be public'
                    )
        left_out = tuple(name for name, rule in own.items() if rule == LEFT_OUT)
        fills = {name: float(rule) for name, rule in own.items() if rule != LEFT_OUT}
        sizes = "free" if neighbours == "add_remove" else "kept" if left_out else "simplex" if (grid is None or grid.inputs) else "public"
        if linear:
            done = _linear(likelihood, bounds, covariates, sizes)
            _check_fills(done, fills)
            return replace(done, left_out=left_out, fills=fills)
        for given in likelihood.inputs:
            if (
                given.private
                and not given.index
                and not given.whole
                and (given.name not in covariates or covariates[given.name].levels is None)
            ):
                reason = likelihood.not_linear or f"its likelihood, {likelihood.distribution}, is not normal"
                if likelihood.linear is not None and likelihood.linear.link:
                    name = predictor_name(likelihood)
                    raise Unreduced(
                        f"the private covariate {given.name} is a real number, and {reason}. To release second moments and use an"
                        f" approximate likelihood, say between which values {name} lies: bounds={{{name!r}: (-3, 3)}}. If {given.name}"
                        f" has few levels, list them: bounds={{{given.name!r}: {{0, 1}}}}, which is exact"
                    )
                raise Unreduced(
                    f"the private covariate {given.name} is a real number, and {reason}. If it has few levels, list them:"
                    f" bounds={{{given.name!r}: {{0, 1}}}}; if everyone may know it, write public=[{given.name!r}]"
                )
        if grid is None:
            raise Unreduced(f"its private covariates have more than {MOST_CELLS} levels. Give them fewer")
        if grid.size > MOST_CELLS:
            names = ", ".join(likelihood.inputs[k].name for k in grid.inputs)
            raise Unreduced(f"the private {names} make {grid.size} cells, more than {MOST_CELLS}. Give them fewer levels")
        done = _cells(likelihood, bounds, covariates, grid, sizes)
        _check_fills(done, fills)
        return replace(done, domain=replace(done.domain, fill=fills.get(likelihood.name)), left_out=left_out, fills=fills)
    except Unreduced as reason:
        raise Refusal(f"{likelihood.name} cannot be released: {reason}.") from None


def is_linear(likelihood: Likelihood, grid: Grid | None, bounds: Mapping[str, object]) -> bool:
    """Whether a likelihood that could be either is released as second moments, rather than in cells."""
    if likelihood.linear is None:
        return False
    if likelihood.linear.link:
        return predictor_name(likelihood) in bounds
    covariates = [given for given in likelihood.inputs if given.axis is not None and not given.index and not given.inner]
    if likelihood.family is None or not all(given.whole or given.private for given in covariates):
        return True
    return grid is None or grid.size > FEW_CELLS


def predictor_name(likelihood: Likelihood) -> str:
    """What bounds call the linear predictor of a likelihood with a link, such as "logit(y)"."""
    return "" if likelihood.linear is None else f"{likelihood.linear.link}({likelihood.name})"


def private_covariates(likelihood: Likelihood) -> list[Placeholder]:
    """The private inputs whose bounds the user must give."""
    return [given for given in likelihood.inputs if given.private and not given.index]


def covariate_bounds(likelihood: Likelihood, bounds: Mapping[str, object]) -> dict[str, Bounded]:
    """Bounds of the private covariates, one pair of arrays each, of the shape of one record's entries.

    Raises
    ------
    Unreduced
        For bounds that are none.
    """
    result = {}
    for given in private_covariates(likelihood):
        if given.variable.type.dtype == "bool":
            pair: object = (0, 1)
        elif given.name in bounds:
            pair = bounds[given.name]
        elif given.limits is not None:
            pair = given.limits
        else:
            continue
        shape = _shape(given)
        if isinstance(pair, Norm):
            if given.whole:
                raise Unreduced(f"{given.name} holds integers, which cannot be shortened. Write bounds={{{given.name!r}: (lower, upper)}}")
            result[given.name] = Bounded(np.full(shape, -pair.largest), np.full(shape, pair.largest), None, float(pair.largest))
        elif isinstance(pair, set | frozenset):
            levels = _levels(given.name, pair)
            result[given.name] = Bounded(np.full(shape, levels[0]), np.full(shape, levels[-1]), levels)
        else:
            result[given.name] = Bounded(*ends_of(given.name, pair, shape, whole=given.whole))
    return result


def _levels(name: str, given: set[object] | frozenset[object]) -> tuple[float, ...]:
    """A closed list of values that a covariate can have."""
    try:
        levels = sorted({float(level) for level in given})  # type: ignore[arg-type]
    except (TypeError, ValueError):
        levels = []
    if len(levels) < 2 or not np.isfinite(levels).all():
        raise Unreduced(f"levels of {name} must be two or more finite numbers. Write for example bounds={{{name!r}: {{0, 1}}}}")
    return tuple(levels)


def ends_of(name: str, pair: object, shape: Sequence[int], whole: bool) -> tuple[np.ndarray, np.ndarray]:
    """Bounds as two arrays of one shape, however they were spelled: a pair for all entries, or a list of pairs, one an entry.

    Raises
    ------
    Unreduced
        For anything else.
    """
    example = f"Write bounds={{{name!r}: (lower, upper)}}, one such pair per column, or all its values as a set: {{0, 1, 2}}"
    try:
        given = np.asarray(pair, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise Unreduced(f"bounds of {name} must be numbers. {example}") from None
    if given.shape == (2,):
        lower, upper = (np.broadcast_to(end, shape) for end in given)
    elif given.ndim == 2 and given.shape[1] == 2 and given.shape[0] == int(np.prod(shape)):
        lower, upper = given[:, 0].reshape(shape), given[:, 1].reshape(shape)
    else:
        raise Unreduced(f"bounds of {name} must be a pair of numbers. {example}")
    if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower < upper).all()):
        raise Unreduced(f"bounds of {name} must be finite, the lower one first. {example}")
    if whole and not ((np.rint(lower) == lower).all() and (np.rint(upper) == upper).all() and (np.abs([lower, upper]) < 2**40).all()):
        raise Unreduced(f"{name} holds integers, so its bounds must be integers of at most 2**40. {example}")
    return np.array(lower, dtype=float), np.array(upper, dtype=float)


def _grid(likelihood: Likelihood, covariates: Mapping[str, Bounded]) -> Grid | None:
    """The private cells; None where a bound is missing or a covariate is a real number."""
    return _levels_of(likelihood, [k for k, given in enumerate(likelihood.inputs) if given.private], covariates)


def _levels_of(likelihood: Likelihood, inputs: Sequence[int], covariates: Mapping[str, Bounded]) -> Grid | None:
    """All combinations of the levels of these inputs."""
    levels: list[tuple[tuple[float, ...], ...]] = []
    for k in inputs:
        given = likelihood.inputs[k]
        if given.index:
            if given.levels is None:
                return None
            levels.append((tuple(map(float, range(given.levels))),) * _entries(given))
        elif given.name in covariates and (bounded := covariates[given.name]).levels is not None:
            levels.append((bounded.levels or (),) * bounded.lower.size)
        elif given.whole and given.name in covariates:
            ends = zip(covariates[given.name].lower.ravel(), covariates[given.name].upper.ravel(), strict=True)
            entries = []
            for low, high in ends:
                if high - low >= MOST_CELLS:
                    return None
                entries.append(tuple(map(float, range(int(low), int(high) + 1))))
            levels.append(tuple(entries))
        else:
            return None
    return Grid(tuple(inputs), tuple(levels))


def _columns_of(reach: Sensitivity, columns: Sequence[int]) -> Sensitivity:
    """Of a record with several columns: L1 distances add, and so do squared L2 distances."""
    many = prod(columns)
    why = reach.why if many == 1 else f"{reach.why}, in each of {many} columns"
    return Sensitivity(reach.difference * many, reach.square * many, reach.norm, why)


def _cells(
    likelihood: Likelihood,
    bounds: Mapping[str, object],
    covariates: Mapping[str, Bounded],
    grid: Grid,
    sizes: str,
) -> Planned:
    """Sums of the family's statistics per cell.

    Public cells: neighbours replace one record within its cell, which moves its statistics by the family's ``difference`` in
    each of the record's columns, and columns add. Private cells: a record leaves one cell with all it brought and enters
    another, at twice the total of ``CellSensitivity`` (and twice its squared norm, the cells being different); a move within a cell is
    less. One record more or less moves one cell, by the total. Where records are left out a record may bring its entries or nothing, and
    another one as well: entries are never negative, so two of them are no further apart than both together from nothing.
    """
    family = likelihood.family
    assert family is not None
    given = bounds.get(likelihood.name)
    domain = likelihood.domain(None if given is None else check_bounds(family, likelihood.name, given))
    domain = _as_said(domain, given)
    if likelihood.make is not None and domain.upper - domain.lower >= MOST_VALUES:
        raise Unreduced(f"its bounds hold more than {MOST_VALUES} values, each of which is counted. Narrow them")
    _check_tables(likelihood, grid)
    structure = structure_of(likelihood, grid, linear=False)
    if sizes == "public":
        reach = _columns_of(family.reach(domain), likelihood.columns)
        return Planned(likelihood, structure, domain, sizes, grid, None, covariates, family.statistics(domain), reach)
    spread = family.spread(domain)
    times = 1 if sizes == "free" else 2
    how = {"free": "comes or goes", "kept": "may be left out"}.get(sizes, "may move to another cell")
    also = {"free": "", "kept": ", and so may the one in its place"}.get(sizes, ", in the cell it leaves and the one it enters")
    why = f"a record that {how} moves entries that add up to {spread.total * family.lattice(domain):.6g}{also}"
    reach = _columns_of(Sensitivity(times * spread.total, times * spread.square, spread.total, why), likelihood.columns)
    return Planned(likelihood, structure, domain, sizes, grid, None, covariates, spread.names, reach)


def _check_tables(likelihood: Likelihood, grid: Grid) -> None:
    """Every index computed from private inputs stays inside its table on all private cells."""
    ends = {}
    for k, several in zip(grid.inputs, grid.levels, strict=True):
        given = likelihood.inputs[k]
        low, high = (np.array([entry[end] for entry in several]).reshape(_shape(given)) for end in (0, -1))
        ends[given.variable] = (low, high)
    for variable in above(list(likelihood.parameters), through_unknowns=False):
        if variable.owner is None or not isinstance(variable.owner.op, AdvancedSubtensor):
            continue
        table, *indices = variable.owner.inputs
        for place, entry in enumerate(variable.owner.op.idx_list):
            if not isinstance(entry, int) or not any(leaf in ends for leaf in above([indices[entry]])):
                continue
            low, high = interval(indices[entry], ends)
            rows = length(table, place)
            if rows is None or (np.asarray(low) < -rows).any() or (np.asarray(high) >= rows).any():
                names = ", ".join(dict.fromkeys(given.name for given in likelihood.inputs if given.variable in ends))
                raise Unreduced(f"an index computed from {names} goes beyond its table within the bounds. Narrow the bounds of {names}")


def _as_said(domain: Domain, given: object) -> Domain:
    """Within natural bounds nothing was moved to them."""
    return replace(domain, clamps=False) if isinstance(given, Natural) else domain


def _linear(likelihood: Likelihood, bounds: Mapping[str, object], covariates: Mapping[str, Bounded], sizes: str) -> Planned:
    """Second moments of features and responses, per cell of the indices.

    A record that is left out brings nothing. So where cells are public, another in its place moves the sums by what one brings, or by
    what one moves them in place; and where they are private, by what both bring in two cells.
    """
    linear = likelihood.linear
    assert linear is not None
    # Indices are cells; everything else makes features.
    cells = tuple(k for k, given in enumerate(likelihood.inputs) if given.private and (given.index or given.inner))
    grid = _levels_of(likelihood, cells, covariates)
    if grid is None:
        raise Unreduced(f"its private indices have more than {MOST_CELLS} levels. Give them fewer")
    if grid.size > MOST_CELLS:
        raise Unreduced(f"its private indices make {grid.size} cells, more than {MOST_CELLS}. Give them fewer levels")
    _check_tables(likelihood, grid)
    sizes = sizes if sizes in ("free", "kept") else "simplex" if cells else "public"
    if linear.link and sizes != "free" and (sizes != "public" or any(linear.private)):
        sizes = "kept"  # what weights add up to is at most the largest weight of every record
    counted = sizes != "public"
    lower, upper = _feature_bounds(likelihood, linear, covariates)
    q = likelihood.levels if likelihood.distribution == "MvNormal" else 1
    response = ends_of(likelihood.name, bounds.get(likelihood.name, (0.0, 1.0)), (q,), whole=False)
    if likelihood.family is not None and likelihood.name in bounds:
        for ends in zip(*response, strict=True):  # however they were spelled
            check_bounds(likelihood.family, likelihood.name, ends)
    if likelihood.distribution == "LogNormal":
        if not (response[0] > 0).all():
            raise Unreduced(f"bounds of {likelihood.name} must be positive. Write for example bounds={{{likelihood.name!r}: (0.1, 10)}}")
        response = (np.log(response[0]), np.log(response[1]))
    private = tuple(one or (counted and k > 0) for k, one in enumerate(linear.private))
    predictor = (0.0, 0.0)
    if linear.link:
        name = predictor_name(likelihood)
        ends = ends_of(name, bounds[name], (1,), whole=False)
        predictor = (float(ends[0][0]), float(ends[1][0]))
        response = (np.zeros(1), response[1])  # scores are centred on means of counts that are clamped from above alone
        if not LEAST_PREDICTOR <= predictor[1] - predictor[0] <= MOST_PREDICTOR or max(map(abs, predictor)) > MOST_PREDICTOR:
            raise Unreduced(f"bounds of {name} are too far apart, too far out or too close. Write for example bounds={{{name!r}: (-3, 3)}}")
    regression = Regression(
        linear.names, private, lower, upper, tuple(map(float, response[0])), tuple(map(float, response[1])),
        scale_known=bool(linear.link) or not likelihood.unknown[1], counted=counted, link=linear.link, predictor=predictor,
        public_norm=float(len(private) - sum(private)), public_square=float(len(private) - sum(private)),
    )  # fmt: skip
    domain = Domain(float(response[0].min()), float(response[1].max()), likelihood.levels, likelihood.unknown, likelihood.known)
    domain = _as_said(domain, bounds.get(likelihood.name))
    reach = regression.reach(moves=bool(cells))
    if sizes == "free":  # one record comes or goes
        difference, square = regression.largest
        reach = replace(reach, difference=difference, square=square)
    reach = _columns_of(reach, likelihood.columns)
    return Planned(likelihood, "linear", domain, sizes, grid, regression, covariates, regression.statistics(), reach)


def _check_fills(step: Planned, fills: Mapping[str, float]) -> None:
    """A level that stands for what is missing is one that the variable can have: of few levels, or an entry of a table."""
    likelihood = step.likelihood
    levels: dict[str, Sequence[float]] = {}
    if step.family is not None and step.family.NDIM == 0 and step.family.lattice(step.domain) == 1.0:
        levels[likelihood.name] = range(int(step.domain.lower), int(step.domain.upper) + 1)
    for k, several in zip(step.grid.inputs, step.grid.levels, strict=True):
        levels[likelihood.inputs[k].name] = sorted(set(several[0]).intersection(*several))
    for name, fill in fills.items():
        if name not in levels:
            raise Unreduced(f'a missing {name} cannot count as {fill:g}, because {name} is not one of few levels. Write "left out"')
        if fill not in levels[name]:
            raise Unreduced(f"a missing {name} cannot count as {fill:g}, which is no level of {name}. Write one that it can have")


def _entries(given: Placeholder) -> int:
    return int(np.prod(_shape(given)))


def _shape(given: Placeholder) -> tuple[int, ...]:
    """Of one record's entries, with an axis of length one for the records."""
    shape = [1 if axis == given.axis else length for axis, length in enumerate(given.variable.type.shape)]
    if None in shape:
        raise Unreduced(f"the number of columns of {given.name} is not fixed. Give it as an array with a fixed shape")
    return tuple(int(length) for length in shape)


def _feature_bounds(
    likelihood: Likelihood, linear: Linear, covariates: Mapping[str, Bounded]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Bounds of the private features by interval arithmetic; of public ones nothing is known before they are read."""
    bounded = [one for one in private_covariates(likelihood) if one.name in covariates]
    given = {one.variable: (covariates[one.name].lower, covariates[one.name].upper) for one in bounded}
    public = {one.variable for one in likelihood.inputs if not one.private}
    lower, upper = [], []
    for name, feature, private in zip(linear.names, linear.features, linear.private, strict=True):
        low, high = -1.0, 1.0
        if private and len(given) == len(private_covariates(likelihood)):
            if any(v in public for v in above([feature])):
                raise Unreduced(
                    f"its feature {name} multiplies private and public covariates. Compute it before the model, and give bounds to"
                    " the result"
                )
            low, high = (float(end) for end in (np.min(interval(feature, given)[0]), np.max(interval(feature, given)[1])))
            if not low < high:  # the same for all records
                low, high = low - 1, high + 1
        lower.append(low)
        upper.append(high)
    return tuple(lower), tuple(upper)


def _aggregate(likelihood: Likelihood, neighbours: str, unit: Individual) -> Planned:
    """Totals over individuals, each row by itself (docs/theory.md).

    Binomial rows with public numbers of trials: another outcome of one individual moves one total by 1 in each of its rows.
    Poisson rows: an individual has at most ``events`` events over all rows; another one in its place moves them by ``events``
    where it is counted in the same single row, and by twice that where it may be counted in others: from one row to another.
    """
    distribution = likelihood.distribution
    if distribution == "Binomial":
        if neighbours == "add_remove":
            raise Unreduced('its numbers of trials are public, which reveals how many individuals there are. Write neighbours="replace"')
        difference, square, why = unit.rows, unit.rows, f"another outcome of one individual moves a total by 1, in {unit.rows} row(s)"
    elif distribution == "Poisson":
        if unit.events is None:
            raise Unreduced(
                "one individual could have any number of events. Write unit=pymc_dp.Individual(events=m), m the most of one individual over"
                " all rows"
            )
        m = unit.events
        twice = neighbours == "replace" and (unit.membership == "private" or unit.rows > 1 or prod(likelihood.columns) > 1)
        difference, square = (2 * m, 2 * m**2) if twice else (m, m**2)
        why = f"one individual has at most {m} events" + (", here or in other rows" if twice else "")
    else:
        raise Unreduced(f'{distribution} rows are not totals of individuals. Write unit="row", or observe Binomial or Poisson totals')
    domain = Domain(0.0, 2.0**40, likelihood.levels, likelihood.unknown, likelihood.known, fill=0.0)
    reach = _columns_of(Sensitivity(difference, square, 2**40, why), likelihood.columns if distribution == "Binomial" else ())
    return Planned(likelihood, "aggregate", domain, "public", Grid(), None, {}, ("total",), reach)


def needs(likelihood: Likelihood, bounds: Mapping[str, object]) -> str | None:
    """The bounds a likelihood still lacks, as a sentence."""
    if likelihood.aggregate or likelihood.refusal is not None:
        return None
    missing = []
    if likelihood.natural is None and likelihood.name not in bounds:
        missing.append(likelihood.name)
    missing += [
        given.name
        for given in private_covariates(likelihood)
        if given.name not in bounds and given.limits is None and given.variable.type.dtype != "bool"
    ]
    if not missing:
        return None
    example = {"integer": "(0, 40)", "positive": "(0.1, 200)", "nonnegative": "(0, 200)", "unit": "(0.01, 0.99)"}
    kind = likelihood.family.BOUNDS if likelihood.family is not None else "real"
    written = ", ".join(
        f"{name!r}: {example.get(kind, '(0, 200)') if name == likelihood.name else '(lower, upper)'}" for name in dict.fromkeys(missing)
    )
    what = (
        f"{likelihood.name} is {likelihood.distribution}, so it needs bounds"
        if missing[0] == likelihood.name
        else f"{missing[0]} is private, so it needs bounds"
    )
    return f"{what} before anything is released. Write bounds={{{written}}}; values outside are clamped."


def bounds_by_name(found: ModelSpec, bounds: Mapping[str, object] | None) -> dict[str, object]:
    """The user's bounds, each naming an observed variable or a private covariate."""
    if bounds is None:
        return {}
    by_name = {likelihood.name: likelihood for likelihood in found.likelihoods}
    covariates = {given.name for likelihood in found.likelihoods for given in likelihood.inputs if given.private}
    predictors = [predictor_name(one) for one in found.likelihoods if one.linear is not None and one.linear.link]
    can = [*by_name, *sorted(covariates), *predictors]
    unread = any(likelihood.refusal for likelihood in found.likelihoods)  # its covariates are not known: the refusal speaks
    if not isinstance(bounds, Mapping) or not (unread or all(name in can for name in bounds)):
        told = ", ".join(map(repr, can)) or "none, for there are none"
        raise Refusal(f"bounds must name observed variables and private covariates. Write one of {told}.")
    for name in bounds:
        if name in by_name and by_name[name].refusal is None and by_name[name].natural is not None:
            raise Refusal(f"{name} is {by_name[name].distribution}, whose values are limited by themselves. Leave {name} out of bounds.")
        if name in by_name and (family := by_name[name].family) is not None and np.ndim(np.asarray(bounds[name], dtype=object)) <= 1:
            check_bounds(family, name, bounds[name])
            if isinstance(bounds[name], Natural) and not family.UNCLAMPED and by_name[name].linear is None:
                raise Refusal(
                    f"{name} is {family.DISTRIBUTION}, whose law is known only with values moved to the bounds. Write"
                    f" bounds={{{name!r}: (lower, upper)}}, so wide that hardly any is."
                )
    return dict(bounds)


def plan(
    found: ModelSpec, bounds: Mapping[str, object] | None, neighbours: str = "replace", unit: object = "row", missing: object = None
) -> tuple[Planned, ...]:
    """Everything that would be released, or a refusal.

    Raises
    ------
    Refusal
        With every reason, and what to write instead.
    """
    checked = bounds_by_name(found, bounds)
    refuse_problems(found)
    lacking = [needed for likelihood in found.likelihoods if (needed := needs(likelihood, checked))]
    if lacking:
        raise Refusal("\n".join(lacking))
    rules = missing_by_name(found, missing)
    return tuple(planned(likelihood, checked, neighbours, unit, rules) for likelihood in found.likelihoods)


def refuse_problems(found: ModelSpec) -> None:
    """Refuse a model with anything in it that cannot be read."""
    reasons = [*found.problems, *(likelihood.refusal for likelihood in found.likelihoods if likelihood.refusal)]
    if reasons:
        raise Refusal("\n".join(f"{reason}{advice(found, reason)}" for reason in reasons))


def advice(found: ModelSpec, reason: str) -> str:
    """How to declare public what stands in the way, where that is what could help."""
    for likelihood in found.likelihoods:
        for name, _, public in likelihood.arrays:
            if not public and f"private array {name}" in reason:
                told = reason.split("private array ")[1].split(" in a way")[0].split(", ")
                names = [one for one in told if one in {array[0] for array in likelihood.arrays}]
                return f" If everyone may know {', '.join(names)}, write public={names}."
    return ""
