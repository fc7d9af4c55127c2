"""What is known of one observed variable once its public arrays have been read, and before any record is: cells, inputs, features."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import inf, prod

import numpy as np
import pytensor.tensor as pt

from pymc_dp.families.anchors import first_anchor
from pymc_dp.families.family import Sensitivity
from pymc_dp.families.grid import POINTS
from pymc_dp.families.residuals import FIRST, Residuals, sensitivity_of, statistics_of, worth_it
from pymc_dp.families.scores import ROUNDS, SECOND
from pymc_dp.models.custom_density import AS_POTENTIAL
from pymc_dp.models.spec import RecordPaths
from pymc_dp.models.structure import substitute
from pymc_dp.models.tabulated import Table
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.privacy.accounting import Cost, Refusal
from pymc_dp.privacy.mechanisms import LARGEST_SUM, Laplace, Mechanism, check_law
from pymc_dp.privacy.receipts import Draw, adds_up_to
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.pooling import Pooling, pooling_of
from pymc_dp.releases.projection import Projection, projection_of
from pymc_dp.releases.statistics import Cells, cells, check_overflow, evaluate, features_of, records_of

type Anchor = np.ndarray | Residuals | None
"""Where scores are taken, (cells, *C, F), or residuals."""


@dataclass(frozen=True)
class PublicCells:
    """What is public about one likelihood once its public arrays have been read; no record has.

    Attributes
    ----------
    planned : PlannedStatistic
    cells : Cells
    inputs : tuple of ndarray
        As the likelihood takes them, on every cell.
    known : ndarray
        Second moments of public features.
    projection, pooling : optional
        How sums of cells are added up before noise.
    residuals : bool
        Whether sums of residuals follow second moments.
    anchor : (cells, *C, F) ndarray, Residuals or None
        Where scores are taken, or residuals.
    """

    planned: PlannedStatistic
    cells: Cells
    inputs: tuple[np.ndarray, ...]
    known: np.ndarray
    projection: Projection | None = None
    pooling: Pooling | None = None
    residuals: bool = False
    anchor: Anchor = None

    @property
    def name(self) -> str:
        """The name of the observed variable."""
        return self.planned.likelihood.name

    def at(self, anchor: Anchor) -> "PublicCells":
        """These cells, where scores or residuals are taken elsewhere."""
        return replace(self, anchor=anchor)

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """Shares of its epsilon: one, or with a link those of several rounds of scores; two where residuals follow second moments."""
        if self.residuals:
            return FIRST, 1 - FIRST
        return ROUNDS if len(self.planned.rounds) > 1 else (Fraction(1),)

    @property
    def rounds(self) -> tuple[tuple[Sensitivity, int], ...]:
        """How far one record can move what is released in every round, and how many numbers these are."""
        size = prod(self.at(None).shape)
        if self.residuals:
            assert self.planned.regression is not None
            return (self.planned.sensitivity, size), (sensitivity_of(self.planned.regression), len(statistics_of(self.planned.regression)))
        return tuple((sensitivity, size) for sensitivity in self.planned.rounds)

    def in_stages(self, noise: Mechanism, cost: Cost) -> "PublicCells":
        """These cells, with residuals after second moments, or pooled sums with other multipliers, where that is expected to be better.

        It rests on public numbers alone. Residuals are for Laplace noise that was asked to, of records that are all in one public cell,
        where rows are one person's each and all count.
        """
        planned = self.planned
        if self.pooling is not None:
            pooling, planned = self.pooling.at_noise(planned, self.cells.n, partial(self._deviation, noise, cost))
            return replace(self, planned=planned, pooling=pooling)
        one_public_cell = planned.likelihood.distribution == "Normal" and self.shape[:-1] == (1,) and planned.sizes == "public"
        if (
            not (isinstance(noise, Laplace) and noise.residuals and one_public_cell)
            or planned.regression is None
            or planned.left_out
            or planned.at_most is not None
        ):
            return self
        n = int(self.cells.n.sum())
        worth = worth_it(planned.regression, n, cost.epsilon)
        return replace(self, residuals=True) if worth and n * sensitivity_of(planned.regression).largest < LARGEST_SUM else self

    def _deviation(self, noise: Mechanism, cost: Cost, reach: Sensitivity) -> float:
        """The standard deviation of the noise that this cost pays for, where a record moves it all so far; infinite if it does not fit."""
        try:
            scale = noise.calibrate(reach.difference, reach.square, cost)
        except Refusal:
            return inf
        return noise.noise(scale, self.planned.lattice).standard_deviation

    def draws(self, noise: Mechanism, cost: Cost, disjoint: tuple[str, ...] = ()) -> list[Draw]:
        """The draws of noise that this cost pays for, one for every round; ``disjoint`` are those that the variable is one of."""
        draws, several = [], len(self.shares) > 1
        for (sensitivity, size), share in zip(self.rounds, self.shares, strict=True):
            difference, square = sensitivity.difference, sensitivity.square
            scale = noise.calibrate(difference, square, noise.share(cost, share) if several else cost)
            check_law(noise, scale, self.planned.lattice / self.points)
            draws.append(Draw(self.name, noise.priced_as, difference, square, scale, size, disjoint))
        return draws

    def instead(self, noise: Mechanism, draw: Draw, left: Sequence[Draw], part: Fraction = Fraction(1)) -> Draw:
        """The draw that costs what those cost that are left, or a part of it, for sums that a record moves as far as those of ``draw``."""
        pure, rho = adds_up_to([replace(one, disjoint=()) for one in left])
        cost = Cost(pure * part) if pure is not None else Cost(Fraction(0), Fraction(1), rho * part)
        return replace(draw, scale=noise.calibrate(draw.difference, draw.square, cost))

    def ways_on(self, noise: Mechanism, draws: Sequence[Draw]) -> dict[str, list[Draw]]:
        """The draws that may be made after the first of three, none of which ways costs more than the two that are left.

        A second round with a smaller share is no way where its noise would not fit 64-bit integers, which public numbers decide.
        """
        first, *left = draws
        ways = {"here": [self.instead(noise, first, left)], "there": [self.instead(noise, left[0], left)], "twice": left}
        for share in SECOND:
            part = share / (1 - ROUNDS[0])
            try:
                ways[f"twice, {share}"] = [self.instead(noise, left[0], left, each) for each in (part, 1 - part)]
            except Refusal:
                break
        return ways

    @property
    def points(self) -> int:
        """The number that a lattice unit of the family is divided by."""
        return 1 if self.projection is None else self.projection.points

    @property
    def multipliers(self) -> np.ndarray:
        """The factor on each of the numbers that will be released, where sums are pooled; else empty."""
        return np.zeros(0, dtype=np.int64) if self.pooling is None else self.pooling.multipliers(len(self.cells.n), self.shape[-1])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the integers that will be released at the anchor: cells, columns, statistics."""
        if isinstance(self.anchor, Residuals):
            assert self.planned.regression is not None
            return (1, len(statistics_of(self.planned.regression)))
        if self.projection is not None or self.pooling is not None:
            return (1, *self.planned.likelihood.columns, len(self.planned.statistics))
        cells = len(self.cells.n) * (1 if self.planned.likelihood.aggregate else self.planned.grid.size)
        return (cells, *self.planned.likelihood.columns, len(self.planned.statistics))

    @property
    def crowd(self) -> tuple[str, int, int]:
        """The variable's name, and its numbers of cells and of records: 0 where the latter is private or every row is a total."""
        counted = self.planned.sizes != "free" and not self.planned.likelihood.aggregate
        return (self.name, self.shape[0], int(self.cells.n.sum())) if counted else (self.name, 0, 0)

    def noisy_statistic(
        self, noisy: np.ndarray, noise: Mechanism, draw: Draw, cost: Cost, *, divisor: int | None = None, deviation: float = 0.0,
        shift: int = 0,
    ) -> NoisyStatistic:  # fmt: skip
        """What is released of this observed variable: noisy integers, and all that is publicly known about them."""
        planned, likelihood = self.planned, self.planned.likelihood
        return NoisyStatistic(
            variable=likelihood.name,
            distribution=likelihood.distribution,
            structure=planned.structure,
            tabulated=isinstance(planned.family, Table),
            statistics=planned.statistics,
            noisy=noisy,
            sizes=planned.sizes,
            n=np.zeros(0, dtype=np.int64) if planned.sizes == "free" else self.cells.n,
            inputs=self.inputs,
            domain=planned.domain,
            regression=planned.regression,
            known=self.known,
            difference=draw.difference,
            square=draw.square,
            scale=draw.scale,
            mechanism=noise.name,
            cost=cost,
            divisor=self.points if divisor is None else divisor,
            deviation=deviation,
            shift=shift,
            covariates=() if planned.regression is None else tuple((name, *bounded.plain) for name, bounded in planned.bounds.items()),
            left_out=planned.left_out,
            told=tuple(tuple(reading.means() for reading in placeholder.readings) for placeholder in likelihood.inputs),
            anchor=self.anchor if isinstance(self.anchor, np.ndarray) else np.zeros((0, 0)),
            weights=np.zeros((0, 0), dtype=np.int64) if self.projection is None else self.projection.weights,
            multipliers=self.multipliers,
            grid=planned.grid.shape if planned.grid.within else (),
            within=planned.grid.within,
            binned=tuple(likelihood.inputs[k].name for k, edges in zip(planned.grid.inputs, planned.grid.bins, strict=True) if edges),
        )


def public_cells_of(planned: PlannedStatistic, paths: RecordPaths) -> PublicCells:
    """The cells of one observed variable, from public inputs and the number of records."""
    likelihood = planned.likelihood
    shape = records_of(paths.observed).shape
    support = len(shape) - 1 - len(likelihood.columns)
    if shape[0] == 0 and planned.sizes != "free":
        raise Refusal(f"{likelihood.name} has no records. Observe an array with one entry per record.")
    if shape[1 : len(shape) - support] != likelihood.columns or support < 0:
        raise Refusal(f"{likelihood.name} has other columns than its likelihood. Give it the shape of its likelihood.")
    check_overflow(planned, shape[0])
    records = shape[0]
    for placeholder, path in zip(likelihood.inputs, paths.inputs, strict=True):
        if planned.sizes != "free" and placeholder.private and path.axis is not None and records_of(path).shape[path.axis] != records:
            raise Refusal(
                "A private array and an observed variable have different numbers of records. Give every array one row per record."
            )
    if likelihood.aggregate:
        one_each = Cells(np.arange(records), np.ones(records, dtype=np.int64), tuple(evaluate(path.variable) for path in paths.inputs))
        return PublicCells(planned, one_each, one_each.inputs, np.zeros((0, 0, 0)))
    # Covariates of a linear likelihood make features; what is left of the public inputs makes cells.
    featured = [
        planned.regression is not None and placeholder.axis is not None and not placeholder.index and not placeholder.private
        for placeholder in likelihood.inputs
    ]
    grouped = [
        (path.variable, path.axis)
        for path, placeholder, feature in zip(paths.inputs, likelihood.inputs, featured, strict=True)
        if not placeholder.private and not feature
    ]
    public_cells = cells(grouped, records)
    inputs = cell_inputs(planned, public_cells, featured)
    if planned.domain.edges:
        _check_limits(planned, inputs)
    _check_trials(planned, inputs)
    if planned.regression is None:
        projection = projection_of(planned, inputs, public_cells.n)
        planned = planned if projection is None else projection.planned(planned)
        return PublicCells(planned, public_cells, inputs, np.zeros((0, 0, 0)), projection)
    arrays = {
        placeholder.variable.name: by_record(evaluate(path.variable), path.axis, records)
        for placeholder, path, feature in zip(likelihood.inputs, paths.inputs, featured, strict=True)
        if feature or (not placeholder.private and path.axis is None)
    }
    return _with_public_features(planned, public_cells, inputs, arrays, records)


def _check_limits(planned: PlannedStatistic, inputs: tuple[np.ndarray, ...]) -> None:
    """Refuse outcomes in bins where a public array, or a level of a private one, is infinite for some records and not for others.

    As a limit of ``pm.Censored`` it says which records reached theirs. Then outcomes of the others do not have the law of all outcomes.
    """
    for placeholder, values in zip(planned.likelihood.inputs, inputs, strict=True):
        infinite = np.isinf(values) if values.dtype.kind == "f" else np.zeros(1, dtype=bool)
        if infinite.any() and not infinite.all():
            raise Refusal(
                f"{placeholder.name} is infinite for some records of {planned.likelihood.name}. A limit that is infinite where none was"
                " reached tells what happened, and intervals would be wrong. Write the limit that was planned for every record, whether or"
                f" not it was reached; where that is not known, write {AS_POTENTIAL}."
            )


def _check_trials(planned: PlannedStatistic, inputs: tuple[np.ndarray, ...]) -> None:
    """Refuse bounds between which some number of successes does not lie: the law of sums is that of numbers that were not clamped."""
    likelihood, domain = planned.likelihood, planned.domain
    for place, _ in () if planned.family is None or planned.regression is not None else planned.family.FIXED:
        if domain.known[place] is None and not domain.edges:
            given = {placeholder.variable: pt.constant(values) for placeholder, values in zip(likelihood.inputs, inputs, strict=True)}
            most = int(np.floor(evaluate(substitute(likelihood.parameters[place], given)).max()))
            if domain.lower > 0 or domain.upper < most:
                raise Refusal(
                    f"{likelihood.name} is {likelihood.distribution} of up to {most} trials, and bounds of ({domain.lower:g},"
                    f" {domain.upper:g}) would move some numbers of successes, of which intervals would know nothing. Write"
                    f" bounds={{{likelihood.name!r}: (0, {most})}}."
                )


def by_record(array: np.ndarray, axis: int | None, records: int) -> np.ndarray:
    """A public array with an entry for every record, or as it is where it has no axis of records."""
    if axis is None:
        return array
    if array.shape[axis] not in {1, records}:
        raise Refusal("A public array and an observed variable have different numbers of records. Give every array one row per record.")
    return np.broadcast_to(array, tuple(records if k == axis else length for k, length in enumerate(array.shape)))


def cell_inputs(planned: PlannedStatistic, public_cells: Cells, featured: list[bool]) -> tuple[np.ndarray, ...]:
    """Every input on every cell, public cells times private ones; the rows of features are one dummy each."""
    V, G = planned.grid.size, len(public_cells.n)
    public = iter(public_cells.inputs)
    private = dict(zip(planned.grid.inputs, planned.grid.values(), strict=True))
    result = []
    for k, (placeholder, feature) in enumerate(zip(planned.likelihood.inputs, featured, strict=True)):
        shape = [1 if axis == placeholder.axis else length for axis, length in enumerate(placeholder.variable.type.shape)]
        if k in private:
            rows = np.tile(private[k], (G, 1)).reshape(G * V, *[length for axis, length in enumerate(shape) if axis != placeholder.axis])
            result.append(np.moveaxis(rows, 0, placeholder.axis or 0).astype(placeholder.variable.type.dtype))
        elif placeholder.private or feature:
            result.append(np.zeros([length or 1 for length in shape], dtype=placeholder.variable.type.dtype))
        elif placeholder.axis is None:
            result.append(next(public))
        else:
            result.append(np.repeat(next(public), V, axis=placeholder.axis))
    return tuple(result)


def _with_public_features(
    planned: PlannedStatistic, public_cells: Cells, inputs: tuple[np.ndarray, ...], arrays: dict, records: int
) -> PublicCells:
    """Scale of the public features, their second moments, and with them the sensitivity: all public."""
    regression, linear = planned.regression, planned.likelihood.linear
    assert regression is not None
    assert linear is not None
    for placeholder in planned.likelihood.inputs:  # private covariates are not read here: any value inside their bounds will do
        if placeholder.private and placeholder.variable.name not in arrays:
            shape = tuple(
                records if axis == placeholder.axis else length or 1 for axis, length in enumerate(placeholder.variable.type.shape)
            )
            arrays[placeholder.variable.name] = np.zeros(shape)
    features = features_of(planned, arrays, records)
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
        size = max(float(np.abs(column[:, public]).sum(axis=1).max()) for column in columns) / POINTS
        square = max(float((column[:, public].astype(float) ** 2).sum(axis=1).max()) for column in columns) / POINTS**2
        planned = planned.with_regression(replace(regression, public_norm=size, public_square=square))
        known = np.stack([regression.known(column, public_cells.codes, len(public_cells.n)) for column in columns], axis=1)
        known = known.reshape(len(public_cells.n), *planned.likelihood.columns, *known.shape[2:])
        if (pooling := pooling_of(planned, public_cells.n)) is not None:
            return PublicCells(pooling.planned(planned, len(public_cells.n)), public_cells, inputs, known, pooling=pooling)
    else:
        planned = replace(planned, regression=regression)
        ones = [1] * len(planned.likelihood.columns)
        known = np.zeros((len(public_cells.n) * planned.grid.size, *ones, regression.size, regression.size))
    opened = PublicCells(planned, public_cells, inputs, known)
    return opened.at(first_anchor(regression.scores, opened.shape[:-1])) if regression.link else opened
