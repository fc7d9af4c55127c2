"""Plans -> the table of ``inspect``: what would be released, or why not and what to write instead. It holds words and numbers only."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from html import escape
from math import log

import numpy as np

from pymc_dp.families.residuals import residuals_in_words
from pymc_dp.families.scores import ROUNDS, SECOND
from pymc_dp.families.second_moments import Regression
from pymc_dp.models.spec import Likelihood, ModelSpec, advice
from pymc_dp.models.structure import is_nameless
from pymc_dp.plans.bins import Bins
from pymc_dp.plans.bounds import bounds_by_name, needs, private_covariates
from pymc_dp.plans.cells import FEW_CELLS, bins_in_words
from pymc_dp.plans.disjoint import Groups, disjoint_of
from pymc_dp.plans.division import Divided
from pymc_dp.plans.hints import NoDensity, gaussian_width, nameless_in_words, numbers_of, promise_in_words
from pymc_dp.plans.missing import Missing, in_words, missing_by_name
from pymc_dp.plans.network import MOST_COEFFICIENTS, FamilyCost, Network, family_costs, network_of, record_splits
from pymc_dp.plans.plan import planned
from pymc_dp.plans.pooled import may_pool, pooling_in_words
from pymc_dp.plans.protection import Protection
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.privacy.accounting import ALL_ROWS, Refusal, shares
from pymc_dp.privacy.layout import aligned, as_written, first_in_html, in_html, listed, notes_in_html, page, sentences, wrapped
from pymc_dp.privacy.requests import SMALLEST


@dataclass(frozen=True, repr=False)
class Row:
    """One observed variable of an ``Inspection``.

    Attributes
    ----------
    variable, distribution : str
    structure : str
        "shared", "indexed", "table", "linear", "aggregate", or "" where it cannot be released.
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
    numbers : str
        How many numbers are released, from how many records where that is public, in words.
    gaussian : float or None
        How wide Gaussian noise would be at epsilon 1 and delta 1e-6, Laplace noise being 1 wide, at equal shares of epsilon.
    """

    variable: str
    distribution: str
    structure: str
    statistics: tuple[str, ...]
    sensitivity: float | None
    reason: str
    mechanisms: tuple[str, ...]
    needs: str | None = None
    numbers: str = ""
    gaussian: float | None = None
    __repr__ = as_written


@dataclass(frozen=True)
class Inspection:
    """What a release of a model would contain and how far one record can move it. It costs nothing, because no value was read.

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
    network : Network or None
        Where the observed variables are a Bayesian network.
    families : tuple of FamilyCost
        What the counts of every family of the network cost.
    schedule : Schedule or None
        Every update of a mechanism that pays as it goes, and their price, where one was named.
    records : str
        What a record is: along which axis of which array records lie.
    missing : dict of str to (str or float)
        What was declared of missing values, by name: "left out", or the level that they count as.
    outside : dict of str to float
        The prior probability that a value lies beyond its bounds, by name, as far as it is known without records: ``outside_by_prior``.
    no_density : tuple of NoDensity
        Observed variables without a density at many draws from the priors, as far as it is known without records.
    disjoint : tuple of tuples of str
        Groups of observed variables of which the user says that each person has records in only one.
    columns : tuple of (str, str)
        Of records beside the model, every column that would be read, and what its values are read as.
    parts : tuple of Divided
        How epsilon would be divided among observed variables, where one was named.

    Examples
    --------
    >>> inspected = pmdp.inspect(model)
    >>> inspected.rows[0].statistics, inspected.rows[0].sensitivity
    (('ones',), 1.0)
    """

    rows: tuple[Row, ...]
    problems: tuple[str, ...]
    arrays: tuple[tuple[str, str, str], ...]
    dropped: Mapping[str, str]
    labels: Mapping[str, tuple[str, ...]]
    stays: tuple[str, ...]
    unit: str
    neighbours: str
    network: Network | None = None
    families: tuple[FamilyCost, ...] = ()
    schedule: object = None
    records: str = ""
    missing: Missing = field(default_factory=dict)
    outside: Mapping[str, float] = field(default_factory=dict)
    no_density: tuple[NoDensity, ...] = ()
    disjoint: Groups = ()
    columns: tuple[tuple[str, str], ...] = ()
    parts: tuple[Divided, ...] = ()

    def __repr__(self) -> str:
        first = sentences(self._first())
        parts = [*first, *([""] if first else []), aligned(self._header, [_cells(row) for row in self.rows]), "", *sentences(self._notes())]
        if self.network is not None:
            parts += ["", wrapped(self._network(), rest=""), aligned(FAMILIES, [_family(family) for family in self.families])]
        if self.schedule is not None:
            parts += ["", repr(self.schedule)]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        parts = [first_in_html(self._first()), in_html(self._header, [_cells(row) for row in self.rows]), notes_in_html(self._notes())]
        if self.network is not None:
            parts += [f"<p>{escape(self._network())}</p>", in_html(FAMILIES, [_family(family) for family in self.families])]
        if self.schedule is not None:
            parts.append(f"<pre>{escape(repr(self.schedule))}</pre>")
        return page(*parts)

    @property
    def _header(self) -> tuple[str, ...]:
        """The titles of the table's columns: where all rows of a person are protected, one speaks of a person and not of a record."""
        whole = self.unit.startswith(ALL_ROWS)
        return tuple(title.replace("one record", "one person") if whole else title for title in HEADER)

    def _network(self) -> str:
        """The network in one line, above its families."""
        assert self.network is not None
        size = self.network.size()
        fourier = f"{size:,} Fourier coefficients" if size <= MOST_COEFFICIENTS else "too many Fourier coefficients"
        flat = record_splits(self.network, self.neighbours) * log((1 - SMALLEST) / SMALLEST)
        return (
            f"a Bayesian network of {len(self.families)} variables, {fourier}. At epsilon 1 PosteriorSample draws from a posterior as flat"
            f" as if there were {flat:.3g} times fewer records. Noise at epsilon 1 (at another epsilon, divided by it):"
        )

    def _first(self) -> Iterable[tuple[str, str]]:
        """What is still to be done before anything can be released."""
        for row in self.rows:
            if row.needs:
                yield "needed", row.needs
            elif not row.structure:
                yield "refused", row.reason
        for problem in self.problems:
            yield "model", problem

    def _notes(self) -> Iterable[tuple[str, str]]:
        for row in self.rows:
            if row.reason and row.structure:
                yield row.variable, row.reason
        if self.outside:
            shares = ", ".join(f"{share:.0%} of {name}" for name, share in self.outside.items())
            covariates = any(use == "covariate" for _, use, _ in self.arrays)
            given = "; with covariates in the middle of their bounds, or at each of their levels" if covariates else ""
            yield "beyond the bounds by the prior", f"{shares}{given}"
        for found in self.no_density:
            yield "no density by the prior", found.reason
        if self.columns:
            read_as = ", ".join(f"{name} ({kind})" for name, kind in self.columns)
            yield "columns of data", f"{read_as}; none was read, and dates, and text that is none of these, will count as missing"
        for use in ("public", "private"):
            names = [f"{name} ({kind})" for name, kind, status in self.arrays if status == use]
            if names:
                yield use, ", ".join(names)
        if self.neighbours != "replace" or self.unit.startswith(ALL_ROWS):
            yield from nameless_in_words([name for name, _, status in self.arrays if status == "private" and is_nameless(name)])
        if self.dropped:
            yield "dropped", "; ".join(f"{name} ({reason})" for name, reason in self.dropped.items())
        for dim, labels in self.labels.items():
            yield f"published labels of {dim}", listed(labels, "labels") or "none"
        if self.stays:
            yield "stays in the model, published", "; ".join(self.stays)
        if self.records:
            only = "".join(f"; of {', '.join(group)} it is in only one, as you say" for group in self.disjoint)
            yield "a record is", f"{self.records}{only}"
        if numbers := "; ".join(row.numbers for row in self.rows if row.numbers):
            yield "released numbers", numbers
        if widths := ", ".join(f"{row.gaussian:.2g} for {row.variable}" for row in self.rows if row.gaussian is not None):
            yield "gaussian noise", f"how wide it is, laplace noise being 1 wide: {widths} (at epsilon 1, delta 1e-6)"
        if any(row.structure and row.structure != "aggregate" for row in self.rows):
            private = [name for name, _, status in self.arrays if status == "private"]
            yield "missing values", in_words(self.missing, [*(row.variable for row in self.rows), *private])
        if len(self.rows) > 1:
            yield "epsilon", self._shared()
        indices = [name for name, use, _ in self.arrays if use == "index"]
        yield from promise_in_words(self.unit, self.neighbours, self.disjoint, indices)

    def _shared(self) -> str:
        """How epsilon is shared among observed variables, in words."""
        names, group_of = [row.variable for row in self.rows], {name: group for group in self.disjoint for name in group}
        together = list(dict.fromkeys(group_of.get(name, (name,)) for name in names))
        if len(together) == 1:
            return f"all of it to each of {', '.join(names)}, in parallel"
        if self.parts:
            listed = ", ".join(f"{float(part.share):.3g} to {part.variable} (noise sd {part.noise:.4g})" for part in self.parts)
            apart = "; disjoint ones in parallel" if self.disjoint else ""
            return f"{listed}{apart}; weights= divides it otherwise"
        listed = ", ".join(group[0] if len(group) == 1 else f"each of ({', '.join(group)}) in parallel" for group in together)
        if self.network is not None or self.neighbours != "replace" or self.unit.startswith(ALL_ROWS):
            return f"1/{len(together)} each to {listed}; weights= shares it otherwise"
        narrowest = "so that expected posteriors are narrowest"
        return f"divided among {listed} {narrowest}; inspect(..., epsilon=1.0) shows how, weights= divides it otherwise"


HEADER = ("variable", "likelihood", "structure", "released", "one record moves it by", "mechanism")
FAMILIES = ("family", "in-degree", "counts", "noise sd of a count: laplace", "fourier")


def _family(cost: FamilyCost) -> tuple[str, ...]:
    parents = f" | {', '.join(cost.node.parents)}" if cost.node.parents else ""
    return (f"{cost.node.name}{parents}", str(len(cost.node.parents)), str(cost.cells), f"{cost.laplace:.4g}", f"{cost.fourier:.4g}")


def _cells(row: Row) -> tuple[str, ...]:
    moved = "" if row.sensitivity is None else f"{row.sensitivity:.6g}"
    shown = listed(row.statistics, "in all", 6)
    return (row.variable, row.distribution, row.structure or "not released", shown, moved, ", ".join(row.mechanisms))


def inspection_of(spec: ModelSpec, protection: Protection) -> Inspection:
    """What a release of a model would say. Nothing is refused but bounds and missing values that name nothing.

    Raises
    ------
    Refusal
    """
    disjoint = disjoint_of(spec, protection.disjoint, sized=protection.sized)
    bounds, missing = bounds_by_name(spec, protection.bounds), missing_by_name(spec, protection.missing)
    uses = [entry for likelihood in spec.likelihoods for entry in likelihood.arrays]
    arrays = {name: (name, use, "public" if public else "private") for name, use, public in uses}
    # Of a model that is refused nothing is published, and which of its dims are those of records is not always known.
    refused = spec.problems or any(likelihood.refusal for likelihood in spec.likelihoods)
    labels = {} if refused else {dim: tuple(str(label) for label in values or ()) for dim, values in spec.coords.items()}
    parts = shares([likelihood.name for likelihood in spec.likelihoods], disjoint=disjoint) if spec.likelihoods else {}
    described = [_row(spec, likelihood, bounds, protection, missing, parts[likelihood.name]) for likelihood in spec.likelihoods]
    rows, statistics = tuple(row for row, _ in described), [statistic for _, statistic in described if statistic is not None]
    network = network_of(statistics)[0] if len(statistics) == len(rows) and protection.person is None else None
    if network is not None:
        rows = rows if disjoint else tuple(replace(row, mechanisms=(*row.mechanisms, "fourier")) for row in rows)
    listed = network is not None and network.size() <= MOST_COEFFICIENTS
    return Inspection(
        rows,
        spec.problems,
        tuple(arrays.values()),
        dict(spec.dropped),
        labels,
        spec.stays,
        str(protection.unit),
        protection.neighbours,
        network,
        family_costs(network, statistics, protection.neighbours, disjoint) if network is not None and listed else (),
        records="" if protection.aggregate else spec.records,
        missing=missing,
        disjoint=disjoint,
    )


def _row(
    spec: ModelSpec, likelihood: Likelihood, bounds: Mapping[str, object], protection: Protection, missing: Missing, part: Fraction
) -> tuple[Row, PlannedStatistic | None]:
    """One observed variable in the table, and its plan where there is one."""

    def refused(reason: str) -> tuple[Row, None]:
        return Row(likelihood.name, likelihood.distribution, "", (), None, reason + advice(spec.likelihoods, reason), ()), None

    if likelihood.refusal is not None:
        return refused(likelihood.refusal)
    lacking = needs(likelihood, bounds)
    # Sensitivities of scaled statistics do not depend on the bounds; those of counts do, and are left out until bounds are given.
    guessed = {name: pair for name, pair in _guesses(likelihood).items() if name not in bounds} | dict(bounds)
    try:
        statistic = planned(likelihood, guessed, protection.neighbours, protection.unit, missing)
    except Refusal as refusal:
        return refused(str(refusal))
    regression, grid, settled = statistic.regression, statistic.grid, set(_guesses(likelihood)) <= {likelihood.name, *bounds}
    moved: float | None = statistic.sensitivity.difference * statistic.lattice
    reason = statistic.sensitivity.why
    unbounded = lacking is not None and (statistic.lattice == 1.0 or bool(grid.inputs) or regression is not None)
    if unbounded:
        moved, reason = None, ""
    if regression is not None and not regression.counted and not all(regression.private[1:]):
        moved, reason = None, "second moments of what is private, with public features known; sensitivity follows from their values"
        reason += regression.said_of_multipliers()
    if regression is not None and not unbounded:
        reason = "; ".join(words for words in (reason, _said_of(regression)) if words)
    if statistic.domain.edges:
        reason = "; ".join(part for part in (reason, _in_bins(statistic, (protection.bounds or {}).get(likelihood.name))) if part)
    if grid.within:
        reason = "; ".join(part for part in (reason, *bins_in_words(statistic)) if part)
    if statistic.may_move_values and not lacking:
        reason = f"{reason}; {MOVED}" if reason else MOVED
    if statistic.may_project:
        reason = f"{reason}; {_projected(statistic)}" if reason else _projected(statistic)
    if may_pool(statistic):
        reason = "; ".join(part for part in (reason, pooling_in_words(statistic)) if part)
    if statistic.sizes != "public":
        reason = "; ".join(words for words in (reason, f"{grid.size:,} private cells" if grid.size > 1 and settled else "") if words)
    numbers = "" if lacking else numbers_of(statistic, spec.many.get(likelihood.name))
    width = None if moved is None else gaussian_width(statistic.sensitivity, part)
    names, mechanisms, described = statistic.statistics, ("laplace", "gaussian"), (likelihood.distribution, statistic.structure)
    return Row(likelihood.name, *described, names, moved, reason, mechanisms, lacking, numbers, width), statistic


CLAMPED = "values beyond the bounds are clamped; without covariates the likelihood allows for that, but let bounds hold nearly all values"
MOVED = "values beyond the bounds are clamped; the likelihood allows for that, but where many are, intervals are wider"
WIDE = (
    "values beyond the bounds are clamped; the likelihood does not allow for that, and slopes come out too flat: let bounds reach 4 sd"
    " from the mean"
)


def _projected(statistic: PlannedStatistic) -> str:
    """What is released where distinct public rows are many, in words."""
    predictor = statistic.likelihood.predictor
    assert predictor is not None
    shown = ", ".join(predictor.names[:6]) + (", ..." if len(predictor.names) > 6 else "")
    return (
        f"if there are many distinct public rows, sums over all records weighted by the features of {shown} are released instead: one set"
        " for all rows, with a likelihood that is approximate where few records have a feature"
    )


def _in_bins(statistic: PlannedStatistic, bins: object) -> str:
    """Which bins values are counted in, in words."""
    edges = statistic.domain.edges
    widths = np.diff(edges)
    wide = f" of width {widths[0]:.4g}" if np.allclose(widths, widths[0]) else ""
    by_rule = ", as many as its records make useful" if isinstance(bins, Bins) and bins.by_rule else ""
    return f"{len(edges) - 1} bins{wide} from {edges[0]:.6g} to {edges[-1]:.6g}{by_rule}, open at both ends: no value is moved"


def _said_of(regression: Regression) -> str:
    """What its law leaves open, in words."""
    if regression.link:
        return _approximation(regression)
    return CLAMPED if regression.clamped_vectors else WIDE + residuals_in_words(regression)


def _approximation(regression: Regression) -> str:
    """What is approximate about a likelihood with a link, in words."""
    rounds = ", ".join(f"{float(share):.0%}" for share in ROUNDS)
    first, least = float(ROUNDS[0]), float(min(SECOND))
    other = f", or of {first:.0%} and {1 - first:.0%} where noise is strong, or up to {1 - first - least:.0%} in the last where it is weak"
    other = other if regression.link == "logit" else ""
    return (
        f"scores and their information, in rounds of {rounds} of epsilon{other}; the likelihood is approximated by that of normal"
        " features near the coefficients of the last round, made wider by the error that this may have; where noise hides the information"
        " slopes rest on priors"
        + (f"; records above the upper bound of {regression.link} count less" if regression.link == "log" else "")
        + " (one or two features, rounded, with all their values as bounds, {0, 1, 2}, are a table, which is exact)"
    )


def _guesses(likelihood: Likelihood) -> dict[str, object]:
    """Bounds of some size, to see the structure by where the user has not given any."""
    guesses: dict[str, object] = {}
    if likelihood.natural is None:
        guesses[likelihood.name] = {"unit": (0.25, 0.75), "positive": (1.0, 2.0)}.get(
            likelihood.family.BOUNDS if likelihood.family else "real", (0.0, 1.0)
        )
    unlimited = [covariate for covariate in private_covariates(likelihood) if covariate.limits is None]
    guesses |= {covariate.name: (0, FEW_CELLS) if covariate.whole else (1.0, 2.0) for covariate in unlimited}
    return guesses
