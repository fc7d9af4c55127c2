"""``release``, the one function that reads records for a private model.

Everything is checked first, then the cost is charged, then the records are read, once, and noise is added before anything
leaves. Nothing about the values can raise, warn, or change the course of the computation.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib.metadata import version
from math import prod, sqrt

import numpy as np
import pymc as pm

from pymc_dp.families.anchors import first_anchor, next_anchor
from pymc_dp.families.family import POINTS, complete
from pymc_dp.families.scores import ROUNDS
from pymc_dp.models.reader import read_model
from pymc_dp.models.spec import RecordPaths
from pymc_dp.models.tabulated import TABLE
from pymc_dp.plans.inspection import check_unit, in_context, warn_of_weak_promises
from pymc_dp.plans.missing import missing_by_name, warn_of_missing
from pymc_dp.plans.network import MOST_COEFFICIENTS, Network, Node, bits_of, divisor_of, inflation_of, network_of, weight_of
from pymc_dp.plans.plan import Individual, Planned, plan
from pymc_dp.privacy.accounting import Cost, Refusal, check_neighbours, exact_delta, exact_epsilon, shares
from pymc_dp.privacy.guard import PACKAGE, UnaccountedWarning, boundary
from pymc_dp.privacy.ledger import Ledger, Part, check_ledger, paid
from pymc_dp.privacy.mechanisms import Draw, Fourier, Laplace, Mechanism, Receipt, resolve
from pymc_dp.releases.release import NoisyStatistic, Release
from pymc_dp.releases.statistics import (
    Cells,
    as_many,
    cells,
    check_overflow,
    complete_records,
    completed,
    evaluate,
    exact_totals,
    family_tables,
    features_of,
    records_of,
)


def release(
    model: pm.Model | None = None,
    *,
    epsilon: object,
    delta: float = 0,
    mechanism: str | Mechanism = "laplace",
    bounds: Mapping[str, object] | None = None,
    public: Iterable[object] = (),
    unit: str | Individual = "row",
    neighbours: str = "replace",
    missing: Mapping[str, object] | Iterable[str] | None = None,
    weights: Mapping[str, object] | None = None,
    ledger: Ledger | Part | None = None,
    data: object = None,
) -> Release:
    """Release the noisy sufficient statistics of a model's observed variables, once.

    The result is (epsilon, delta)-differentially private: for any two neighbouring data sets, the probability of every set of
    results differs by a factor of at most exp(epsilon), and by delta besides. One record is one index of the first axis of the
    observed variables.

    Parameters
    ----------
    model : pm.Model, optional
        The model in context if left out. Its first axis of observed values runs over the records.
    epsilon : int, float, Decimal or Fraction
        Total cost in nats, read as the decimal that was written.
    delta : float
        0 for Laplace noise; above 0 for Gaussian noise, for example 1e-6.
    mechanism : "laplace", "gaussian", "fourier", Laplace(), Gaussian(delta=...) or Fourier(nonnegative=...)
        "fourier" for Bayesian networks.
    bounds : mapping
        (lower, upper) for every observed variable that needs them and every private covariate, in their own units, or a set of
        levels; values outside are moved to the nearest. "logit(y)" and "log(y)" bound the linear predictor of y, which opts in
        to an approximate likelihood (docs/theory.md).
    public : list
        What everyone may know: names of ``pm.Data``, of dims (every index into them), ``"<observed>:<k>"`` as ``inspect``
        lists it, or the arrays themselves. It protects what a record says, not which cell it is in.
    unit : str or Individual
        What one row stands for, in words: your claim, which every summary repeats as yours. "individual" or ``Individual`` where rows
        are totals.
    neighbours : "replace" or "add_remove"
        One record is exchanged for another, and the number of records is public; or there is one more or one less.
    missing : mapping or list, optional
        What missing values count as, by name of an observed variable or a private covariate: "left out" (a list of names says the same),
        or a level that the variable can have. What is not named counts as the middle of its bounds wherever it is missing, which
        intervals do not know; {} says that nothing is.
    weights : mapping, optional
        How to share epsilon among several observed variables; equal shares if left out.
    ledger : Ledger, optional
        The budget of this data set, or a part of it, which is charged before a record is read. Without one nothing remembers
        what was spent.
    data
        Not offered yet.

    Returns
    -------
    Release

    Raises
    ------
    Refusal
        When the request cannot be met, before any record is read: the message says what to write instead.
    PrivateComputationError
        When something fails inside; always the same words.
    """
    warn_of_weak_promises(model, lambda: resolve(mechanism).total(exact_epsilon(epsilon), exact_delta(delta)), neighbours)
    pay_and_draw = _checked(
        model, epsilon=epsilon, delta=delta, mechanism=mechanism, bounds=bounds, public=public, unit=unit, neighbours=neighbours,
        missing=missing, weights=weights, ledger=ledger, data=data,
    )  # fmt: skip
    if missing is None:
        warn_of_missing()
    if ledger is None:
        warn_that_nothing_remembers()  # nothing is refused any more, and nothing is spent yet: where warnings are errors, nothing is
    return pay_and_draw()


@cache
def warn_that_nothing_remembers() -> None:
    """Cached, so that it speaks once per process; it points at the user's line, not at ours."""
    message = "Nothing remembers what is spent on these records. Write ledger=pymc_dp.Ledger(path, epsilon=...)."
    warnings.warn(message, UnaccountedWarning, skip_file_prefixes=(PACKAGE,))


@boundary
def _checked(
    model, *, epsilon, delta, mechanism, bounds, public, unit, neighbours, missing, weights, ledger, data
) -> Callable[[], Release]:  # fmt: skip
    """Everything that can be refused; what is left to do is charged first."""
    ledger = check_ledger(ledger)
    if data is not None:
        raise Refusal("data= is not offered yet. Leave it out: the records are those that the model observes.")
    noise, unit, neighbours = resolve(mechanism), check_unit(unit), check_neighbours(neighbours)
    total = noise.total(exact_epsilon(epsilon), exact_delta(delta))
    found, leaves = read_model(in_context(model), public, aggregate=isinstance(unit, Individual), sized=neighbours == "replace")
    missing = list(missing) if isinstance(missing, Iterator) else missing  # it is read twice
    steps = plan(found, bounds, neighbours, unit, missing)
    rules = missing_by_name(found, missing)
    network, unlike = network_of(steps)
    if left_out := next((one for one in steps if one.left_out), None):
        _check_whole(noise, left_out.likelihood.name)
    covered = _covered(noise, network, unlike)
    opened = [opened_of(step, leaves[step.likelihood.name]) for step in steps]
    own = [one for one in opened if one.name not in covered]
    if isinstance(noise, Fourier):
        draws, costs = [_coefficients(network, unlike, weights, noise, total, neighbours)], [total]
    else:
        parts = shares([one.name for one in own], weights)
        costs = [noise.share(total, parts[one.name]) for one in own]
        draws = [draw for one, cost in zip(own, costs, strict=True) for draw in one.draws(noise, cost)]
    shift = _shift(noise, network, total, neighbours)

    @boundary
    def pay_and_draw() -> Release:
        receipt = paid(ledger, total, draws, neighbours=neighbours, unit=unit, public=found.public)
        if isinstance(noise, Fourier) and network is not None:
            statistics = _by_coefficients(opened, leaves, network, noise, total, draws[0], shift, receipt)
        else:
            statistics, left = {}, iter(draws)
            for one, cost in zip(own, costs, strict=True):
                rounds = [next(left) for _ in one.rounds]
                statistics[one.name] = _in_rounds(one, leaves[one.name], noise, rounds, cost, receipt)
            for one in opened:
                if one.name in covered and network is not None:
                    holder = covered[one.name]
                    statistics[one.name] = _from_child(one, statistics[holder.variable], network, holder)
        in_order = tuple(statistics[one.name] for one in opened)
        versions = {package: version(package) for package in ("pymc_dp", "pymc", "opendp")}
        return Release(in_order, total, noise.name, str(unit), neighbours, found.public, receipt.head, versions, network, rules)

    return pay_and_draw


def _check_whole(noise: Mechanism, name: str) -> None:
    """Where records are left out, families are not counted from the same records, and their tables do not tell each other."""
    if isinstance(noise, Fourier) or (isinstance(noise, Laplace) and noise.share_counts):
        raise Refusal(
            f"Of {name} records are left out where something is missing, so that families are not counted from the same records. Write"
            ' mechanism="laplace", or let missing values count as a level.'
        )


def _covered(noise: Mechanism, network: Network | None, unlike: str) -> dict[str, Node]:
    """Observed variables that are not released by themselves, with the node whose table holds their counts."""
    if not isinstance(noise, Laplace) or not noise.share_counts:
        return {}
    if network is None:
        raise Refusal(f"Counts are shared in a Bayesian network, and {unlike}. Leave share_counts out.")
    return network.covered()


def _in_rounds(one: "PublicCells", leaf: RecordPaths, noise: Mechanism, rounds: list[Draw], cost: Cost, receipt: Receipt) -> NoisyStatistic:
    """The noisy statistics of one observed variable; scores again and again, each time where the round before puts the coefficients."""
    regression = one.step.regression
    if regression is None or not regression.link:
        [draw] = rounds
        return _statistic(one, noise.draw(_totals(one, leaf), draw.scale, receipt), noise, draw, cost)
    anchor = first_anchor(regression.scores, one.shape[:-1])
    for place, draw in enumerate(rounds):
        known = one.known if regression.counted else _known_at(one, anchor)
        noisy = noise.draw(_totals(one, leaf, anchor), draw.scale, receipt)
        statistic = _statistic(replace(one, known=known), noisy, noise, draw, cost, anchor=anchor)
        if place < len(rounds) - 1:
            F, moments = len(regression.names), regression.matrix(statistic.values, known * statistic.lattice)
            flat = moments.reshape(-1, *moments.shape[-2:])
            own = flat[:, :F, F], flat[:, :F, :F], statistic.noise.standard_deviation, anchor.reshape(-1, F)
            anchor = next_anchor(regression.scores, *own).reshape(anchor.shape)
    return statistic


def _known_at(one: "PublicCells", anchor: np.ndarray) -> np.ndarray:
    """The information of public features at an anchor, in lattice units."""
    regression, codes, features = one.step.regression, one.cells.codes, one.public_features
    assert regression is not None
    assert features is not None
    flat = anchor.reshape(len(anchor), -1, anchor.shape[-1])
    several = [
        regression.known_scores(regression.scaled(features[:, c], np.zeros((len(codes), 1))), codes, len(anchor), flat[codes, c])
        for c in range(flat.shape[1])
    ]
    return np.stack(several, axis=1).reshape(*anchor.shape[:-1], *several[0].shape[1:])


def _statistic(
    one: "PublicCells", noisy: np.ndarray, noise: Mechanism, draw: Draw, cost: Cost, *, divisor: int = 1, deviation: float = 0.0,
    shift: int = 0, anchor: np.ndarray | None = None,
) -> NoisyStatistic:  # fmt: skip
    """The noun of one observed variable."""
    step, likelihood = one.step, one.step.likelihood
    n = np.zeros(0, dtype=np.int64) if step.sizes == "free" else one.cells.n
    return NoisyStatistic(
        likelihood.name, likelihood.distribution, step.structure, step.family is TABLE, step.statistics, noisy, step.sizes, n, one.inputs,
        step.domain, step.regression, one.known, draw.difference, draw.square, draw.scale, noise.name, cost, divisor, deviation,
        shift=shift, covariates=() if step.regression is None else _covariates(step), left_out=step.left_out,
        anchor=np.zeros((0, 0)) if anchor is None else anchor,
    )  # fmt: skip


def _covariates(step: Planned) -> tuple[tuple[str, tuple[float, ...], tuple[float, ...], tuple[float, ...]], ...]:
    """What is publicly known of the private covariates."""
    return tuple(
        (name, tuple(map(float, bounded.lower.ravel())), tuple(map(float, bounded.upper.ravel())), bounded.levels or ())
        for name, bounded in step.bounds.items()
    )


def _from_child(one: "PublicCells", child: NoisyStatistic, network: Network, holder: Node) -> NoisyStatistic:
    """The counts of a variable as the sums of its child's noisy ones: as many noises are added up as the child has levels."""
    node = network.nodes[network.place[one.name]]
    table = child.noisy.reshape(len(child.noisy), -1, holder.levels)[:, holder.column].sum(axis=-1).reshape(network.shape(holder)[:-1])
    table = table.transpose([holder.parents.index(name) for name in (*node.parents, node.name)])
    deviation, divisor = child.noise.standard_deviation * sqrt(holder.levels), 1
    if len(one.step.statistics) < node.levels:  # one of two counts: half of what all, less the other, and itself make
        table, divisor, deviation = one.cells.n.sum() + table[..., 1:] - table[..., :1], 2, deviation / sqrt(2)
    step = replace(one.step.reach, difference=divisor * one.step.reach.difference, square=divisor**2 * one.step.reach.square)
    draw = Draw(one.name, Laplace.name, step.difference, step.square, child.scale, table.size)
    noisy = table.reshape(one.shape)
    return _statistic(one, noisy, Laplace(), draw, Cost(Fraction(0)), divisor=divisor, deviation=deviation)


def _by_coefficients(
    opened: list["PublicCells"], leaves: Mapping[str, RecordPaths], network: Network, noise: Fourier, total: Cost, draw: Draw,
    shift: int | None, receipt: Receipt,
) -> dict[str, NoisyStatistic]:  # fmt: skip
    """Every observed variable's counts, from noisy Fourier coefficients."""
    tables, statistics = _noisy_tables(opened, leaves, network, noise, draw, receipt), {}
    shift = network.needed_shift(tables) if shift is None else shift
    known = draw.size < len(network.coefficients)
    for one in opened:
        shape = network.shape(next(node for node in network.nodes if node.variable == one.name))
        statistics[one.name] = _statistic(
            one, _laid_out(one.step, network, tables), noise, draw, total, divisor=divisor_of(shape),
            deviation=0.0 if known and divisor_of(shape) == 2 else noise.deviation(draw.scale, bits_of(shape), inflation_of(shape)),
            shift=shift * weight_of(shape),
        )  # fmt: skip
    return statistics


def _coefficients(network: Network | None, unlike: str, weights: object, noise: Fourier, total: Cost, neighbours: str) -> Draw:
    """The one draw of noise that Fourier coefficients need, or a refusal."""
    if network is None:
        raise Refusal(f'Fourier coefficients are those of a Bayesian network, and {unlike}. Write mechanism="laplace".')
    if weights is not None:
        raise Refusal("Fourier coefficients are shared by all families, so epsilon is not divided. Leave weights out.")
    if network.size() > MOST_COEFFICIENTS:
        raise Refusal(f'The families have more than {MOST_COEFFICIENTS} coefficients together. Write mechanism="laplace".')
    difference, square = network.fourier_sensitivity(neighbours), network.fourier_square(neighbours)
    size = len(network.coefficients) - (neighbours == "replace")  # the empty one is the number of records
    return Draw("Fourier coefficients", Laplace.name, difference, square, noise.calibrate(difference, square, total), size)


def _noisy_tables(
    opened: list["PublicCells"], leaves: Mapping[str, RecordPaths], network: Network, noise: Fourier, draw: Draw, receipt: Receipt
) -> dict[str, np.ndarray]:
    """For every node the noisy table, as ``Network.tables`` gives it. The exact coefficients exist on these lines only."""
    observed = {one.name: leaves[one.name].observed for one in opened}
    exact = network.transformed(family_tables([one.step for one in opened], observed, network))
    known = len(exact) - draw.size
    return network.tables(np.concatenate([exact[:known], noise.draw(exact[known:], draw.scale, receipt)]))


def _shift(noise: Mechanism, network: Network | None, total: Cost, neighbours: str) -> int | None:
    """What is added to the empty coefficient, decided before a record is read; None where the noisy tables decide."""
    if not isinstance(noise, Fourier) or noise.nonnegative == "minimal" or network is None:
        return None
    epsilon = float(total.epsilon)
    t = network.stealth(epsilon, neighbours) if noise.nonnegative == "stealth" else float(noise.nonnegative)
    return int(min(network.paper_shift(t, epsilon), 2.0**62))


def _laid_out(step: Planned, network: Network, tables: Mapping[str, np.ndarray]) -> np.ndarray:
    """Noisy tables as a likelihood's statistics: (cells, *C, K)."""
    own = [tables[node.name].reshape(step.grid.size, -1) for node in network.nodes if node.variable == step.likelihood.name]
    several = np.stack(own, axis=1).reshape(step.grid.size, *step.likelihood.columns, own[0].shape[-1])
    return several[..., 1:] if len(step.statistics) < several.shape[-1] else several


@dataclass(frozen=True)
class PublicCells:
    """What is public about one likelihood once its public arrays have been read; no record has. Used by the doors alone."""

    step: Planned
    cells: Cells
    inputs: tuple[np.ndarray, ...]
    public_features: np.ndarray | None
    known: np.ndarray

    @property
    def name(self) -> str:
        """Of the observed variable."""
        return self.step.likelihood.name

    @property
    def rounds(self) -> tuple[Fraction, ...]:
        """Shares of its epsilon: one, or with a link those of several rounds of scores."""
        return ROUNDS if self.step.regression is not None and self.step.regression.link else (Fraction(1),)

    def draws(self, noise: Mechanism, cost: Cost) -> list[Draw]:
        """The draws of noise that this cost pays for, one for every round."""
        reach, several = self.step.reach, [cost] if len(self.rounds) == 1 else [noise.share(cost, share) for share in self.rounds]
        scales = [noise.calibrate(reach.difference, reach.square, own) for own in several]
        return [Draw(self.name, noise.name, reach.difference, reach.square, scale, prod(self.shape)) for scale in scales]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the integers that will be released: cells, columns, statistics."""
        cells = len(self.cells.n) * (1 if self.step.likelihood.aggregate else self.step.grid.size)
        return (cells, *self.step.likelihood.columns, len(self.step.statistics))


def opened_of(step: Planned, leaf: RecordPaths) -> PublicCells:
    """The cells of one observed variable, from public inputs and the number of records."""
    likelihood = step.likelihood
    shape = records_of(leaf.observed).shape
    support = len(shape) - 1 - len(likelihood.columns)
    if shape[0] == 0 and step.sizes != "free":
        raise Refusal(f"{likelihood.name} has no records. Observe an array with one entry per record.")
    if shape[1 : len(shape) - support] != likelihood.columns or support < 0:
        raise Refusal(f"{likelihood.name} has other columns than its likelihood. Give it the shape of its likelihood.")
    check_overflow(step, shape[0])
    records = shape[0]
    for given, one in zip(likelihood.inputs, leaf.inputs, strict=True):
        if step.sizes != "free" and given.private and one.axis is not None and records_of(one).shape[one.axis] != records:
            raise Refusal(
                "A private array and an observed variable have different numbers of records. Give every array one row per record."
            )
    if likelihood.aggregate:
        one_each = Cells(np.arange(records), np.ones(records, dtype=np.int64), tuple(evaluate(one.variable) for one in leaf.inputs))
        return PublicCells(step, one_each, one_each.inputs, None, np.zeros((0, 0, 0)))
    # Covariates of a linear likelihood make features; what is left of the public inputs makes cells.
    featured = [
        step.regression is not None and given.axis is not None and not given.index and not given.private for given in likelihood.inputs
    ]
    grouped = [
        (one.variable, one.axis)
        for one, given, feature in zip(leaf.inputs, likelihood.inputs, featured, strict=True)
        if not given.private and not feature
    ]
    found = cells(grouped, records)
    inputs = _cell_inputs(step, found, featured)
    if step.regression is None:
        return PublicCells(step, found, inputs, None, np.zeros((0, 0, 0)))
    arrays = {
        given.variable.name: by_record(evaluate(one.variable), one.axis, records)
        for given, one, feature in zip(likelihood.inputs, leaf.inputs, featured, strict=True)
        if feature or (not given.private and one.axis is None)
    }
    return _with_public_features(step, found, inputs, arrays, records)


def by_record(array: np.ndarray, axis: int | None, records: int) -> np.ndarray:
    """A public array with an entry for every record, or as it is where it has no axis of records."""
    if axis is None:
        return array
    if array.shape[axis] not in {1, records}:
        raise Refusal("A public array and an observed variable have different numbers of records. Give every array one row per record.")
    return np.broadcast_to(array, tuple(records if k == axis else length for k, length in enumerate(array.shape)))


def _cell_inputs(step: Planned, found: Cells, featured: list[bool]) -> tuple[np.ndarray, ...]:
    """Every input on every cell, public cells times private ones; the rows of features are one dummy each."""
    V, G = step.grid.size, len(found.n)
    public = iter(found.inputs)
    private = dict(zip(step.grid.inputs, step.grid.values(), strict=True))
    result = []
    for k, (given, feature) in enumerate(zip(step.likelihood.inputs, featured, strict=True)):
        shape = [1 if axis == given.axis else length for axis, length in enumerate(given.variable.type.shape)]
        if k in private:
            rows = np.tile(private[k], (G, 1)).reshape(G * V, *[length for axis, length in enumerate(shape) if axis != given.axis])
            result.append(np.moveaxis(rows, 0, given.axis or 0).astype(given.variable.type.dtype))
        elif given.private or feature:
            result.append(np.zeros([length or 1 for length in shape], dtype=given.variable.type.dtype))
        elif given.axis is None:
            result.append(next(public))
        else:
            result.append(np.repeat(next(public), V, axis=given.axis))
    return tuple(result)


def _with_public_features(step: Planned, found: Cells, inputs: tuple[np.ndarray, ...], arrays: dict, records: int) -> PublicCells:
    """Scale of the public features, their second moments, and with them the sensitivity: all public."""
    regression, linear = step.regression, step.likelihood.linear
    assert regression is not None
    assert linear is not None
    for given in step.likelihood.inputs:  # private covariates are not read here: any value inside their bounds will do
        if given.private and given.variable.name not in arrays:
            shape = tuple(records if axis == given.axis else length or 1 for axis, length in enumerate(given.variable.type.shape))
            arrays[given.variable.name] = np.zeros(shape)
    features = features_of(step, arrays, records)
    lower, upper = list(regression.lower), list(regression.upper)
    for k, private in enumerate(linear.private):
        if not private and k > 0:
            largest = float(np.abs(features[..., k]).max())
            if not np.isfinite(largest):
                raise Refusal(
                    f"The public feature {linear.names[k]} holds values that are not finite numbers. Fill or drop them before the model."
                )
            lower[k], upper[k] = (-largest, largest) if largest > 0 else (-1.0, 1.0)
    regression = replace(regression, lower=tuple(lower), upper=tuple(upper))
    if not regression.counted:
        nothing = np.zeros((records, regression.q))
        columns = [regression.scaled(features[:, c], nothing) for c in range(features.shape[1])]
        public = [k for k, private in enumerate(regression.private) if not private]
        size = max(float(np.abs(one[:, public]).sum(axis=1).max()) for one in columns) / POINTS
        square = max(float((one[:, public].astype(float) ** 2).sum(axis=1).max()) for one in columns) / POINTS**2
        step = step.with_regression(replace(regression, public_norm=size, public_square=square))
        known = np.stack([regression.known(one, found.codes, len(found.n)) for one in columns], axis=1)
        known = known.reshape(len(found.n), *step.likelihood.columns, *known.shape[2:])
    else:
        step = replace(step, regression=regression)
        ones = [1] * len(step.likelihood.columns)
        known = np.zeros((len(found.n) * step.grid.size, *ones, regression.size, regression.size))
    return PublicCells(step, found, inputs, features, known)


def _totals(one: PublicCells, leaf: RecordPaths, anchor: np.ndarray | None = None) -> np.ndarray:
    """The exact statistics, for the caller to add noise to: it keeps them no longer. Scores are taken at an anchor (cells, *C, F)."""
    step, records = one.step, len(one.cells.codes)
    values = records_of(leaf.observed)
    if step.likelihood.aggregate:
        # One individual moves a total by whole events. Rounding down keeps totals that are no whole numbers as near: from x' <= x + m
        # follows floor(x') <= floor(x) + m. To the nearest even, one event would move .5 to 1.5 and so 0 to 2.
        return np.floor(complete(values, step.domain)).astype(np.int64)[..., None]
    by_name = {given.variable.name: given for given in step.likelihood.inputs}
    raw = {
        given.variable.name: (as_many(records_of(at), at.axis, records), at.axis)
        for given, at in zip(step.likelihood.inputs, leaf.inputs, strict=True)
        if given.private and at.axis is not None
    }
    private = {
        name: completed(step.bounds, by_name[name], array, axis, step.fills.get(by_name[name].name)) for name, (array, axis) in raw.items()
    }
    features = None if step.regression is None else _features(one, leaf, private, records)
    kept = complete_records(step.likelihood, step.left_out, values, raw) if step.left_out else None
    return exact_totals(values, step, one.cells, private, features, kept, anchor)


def _features(one: PublicCells, leaf: RecordPaths, private: Mapping[str, np.ndarray], records: int) -> np.ndarray:
    """All features of every record, private covariates clamped to their bounds."""
    step = one.step
    arrays = {}
    for given, at in zip(step.likelihood.inputs, leaf.inputs, strict=True):
        if given.index:
            continue
        if given.private and at.axis is not None:
            others = tuple(length for k, length in enumerate(records_of(at).shape) if k != at.axis)
            arrays[given.variable.name] = np.moveaxis(private[given.variable.name].reshape(records, *others), 0, at.axis)
        else:
            arrays[given.variable.name] = by_record(evaluate(at.variable), at.axis, records)
    return features_of(step, arrays, records)
