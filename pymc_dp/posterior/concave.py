"""Exact draws of many unknowns where their log-posterior is concave: of regressions with a known link under normal or uniform priors.

What is drawn is what ``markov`` draws, at no higher a price, without a chain that has to converge.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.distributions.truncated import TruncatedRV
from pymc.model.fgraph import ModelPotential
from pytensor.graph.basic import Variable

from pymc_dp.models.ball_prior import BallNormalRV
from pymc_dp.models.elementwise_intervals import Interval
from pymc_dp.models.intervals import interval
from pymc_dp.models.spec import ModelSpec
from pymc_dp.models.structure import Unreduced, above, constant_value, is_unknown, substitute, untruncated
from pymc_dp.models.truncated_priors import is_constrained
from pymc_dp.models.unknowns import Unknown
from pymc_dp.plans.ranges import pieces
from pymc_dp.plans.rowwise import Rowwise, check_finite, entries_of, norms_of
from pymc_dp.posterior.ball_regression import is_affine
from pymc_dp.posterior.concave_laws import Law, law_of, range_of_energy, steepest
from pymc_dp.posterior.densities import log_prior
from pymc_dp.posterior.envelope import Part, Target
from pymc_dp.posterior.imagined import accepted_of_imagined, imagined
from pymc_dp.posterior.price import NAT, REAL_ARITHMETIC, Task, cutting_off, priced
from pymc_dp.posterior.records import Reading
from pymc_dp.posterior.rejection import drawn_by_rejection
from pymc_dp.posterior.result import Drawn, Prepared, drawn_for
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.mechanisms import generator
from pymc_dp.privacy.receipts import Receipt

type Density = Callable[[np.ndarray], np.ndarray]
type Quadratic = tuple[np.ndarray, np.ndarray]
type Records = Callable[[Reading], Mapping[Variable, np.ndarray]]
MOST = 12
"""So many unknown numbers are drawn by rejection at most: of more, too few proposals are accepted."""
FEWEST = 1e-5
"""A draw is refused where a smaller share of proposals would be accepted, of made-up records."""
MOST_NATS = 2.0**30
"""By no more than this may one record move a log-density."""
SURE = 1e-6
"""Of the precision of a prior so small a share is given up for rounding."""
STEP = 3 / 16
"""Linear and quadratic functions are read off where unknowns move by this share of their width from the middle, and by twice that: so that
no rounding leads out of their support.
"""


def is_concave(spec: ModelSpec, rows: Rowwise) -> bool:
    """Whether the log-posterior is certainly concave: likelihoods of ``law_of`` whose predictors are affine in all unknowns together,
    in 64 bits, and independent priors that are normal, half of a normal or uniform, whatever they were cut off to.
    """
    read = [law_of(likelihood, parameters) for likelihood, parameters in zip(rows.likelihoods, rows.parameters, strict=True)]
    affine = all(one is not None and _is_double(one[1], rows.stand_ins) and is_affine(one[1], rows.stand_ins) for one in read)
    return affine and all(map(_is_quadratic, rows.unknowns)) and not any(isinstance(v.owner.op, ModelPotential) for v in spec.kept)


def _is_double(predictor: Variable, unknowns: Sequence[Variable]) -> bool:
    """Whether all that rests on unknowns is computed in 64 bits: differences of shorter numbers are no slopes."""
    resting = [part for part in above([predictor]) if not set(unknowns).isdisjoint(above([part]))]
    return all(part.type.dtype == "float64" for part in resting)


def _is_quadratic(unknown: Unknown) -> bool:
    """Whether the log-density of an unknown is certainly quadratic where it has one, and rests on no other unknown."""
    random = unknown.variable.owner.inputs[0]
    if any(is_unknown(variable) for variable in above(list(random.owner.inputs))) or is_constrained(unknown.variable):
        return False
    if isinstance(random.owner.op, TruncatedRV):
        random = untruncated(random)[0]
    kinds = (pm.Normal, pm.HalfNormal, pm.Uniform, pm.TruncatedNormal)
    return isinstance(random.owner.op, BallNormalRV) or type(random.owner.op) in {kind.rv_type for kind in kinds}


def by_rejection(task: Task) -> Prepared:
    """Draws of all unknowns from the flattened posterior, exact but for floating point.

    One record moves the log-posterior by no more than the ranges of its energies together. Where every prior is normal, it also pulls no
    harder than its slopes allow, times the norm of its features in standard deviations of the prior: see ``Draw.rho``.
    """
    reading = task.rowwise
    rows, prior = reading.rows, reading.prior
    if task.mode:
        raise Refusal("A mode is sought on a grid, of three unknown numbers at most. Draw from the posterior: PosteriorSample().")
    check_finite(rows, cutting_off(task))
    density = log_prior(prior, rows)
    quadratic = _quadratic(density, *_middle_and_step(rows))
    if not all(np.isfinite(part).all() for part in quadratic):
        raise Refusal("A prior has no density within its ends. Truncate it where it has some mass.")
    precision = np.concatenate([_precision(unknown) for unknown in rows.unknowns])
    one, pull, ends = 0.0, 0.0, []
    for part in reading.parts:
        cut = pieces(entries_of(part.rows, part.public.arrays), part.public.shared, {}).given
        for k, ((law, _), value) in enumerate(zip(_laws(part.rows), part.rows.values, strict=True)):
            ends.append(_predictors(part.rows, k, cut))
            one += range_of_energy(law, ends[-1], cut[value])
            pull += float((steepest(law, ends[-1], cut[value]) * _size(part.rows, k, cut, precision)).max())
    records = 2 if task.neighbours == "replace" else 1
    if not one * records < MOST_NATS:
        raise Refusal("One record can move the posterior by too much. Truncate the priors further.")
    names = ", ".join(unknown.name for unknown in rows.unknowns)
    square = ceil((records * pull * NAT) ** 2) if records * pull < MOST_NATS else None
    price = priced(task, [(names, max(ceil(records * one * NAT), 1), rows.size)], square)

    if (share := accepted_of_imagined(_target(reading, imagined, ends, price.temperature, density, quadratic))) < FEWEST:
        raise Refusal(
            f"A draw would take too long: of made-up records one proposal in {1 / max(share, 1e-99):.0e} is accepted. Write narrower priors"
            f" or fewer unknowns, or {cutting_off(task, 'mcmc')}, private only as far as its chains converge."
        )

    def draw(receipt: Receipt) -> Drawn:
        rng = generator(price.draws, receipt)
        target = _target(reading, Reading.exact, ends, price.temperature, density, quadratic)
        values = reading.values(drawn_by_rejection(target, task.mechanism.draws, rng))
        return drawn_for(task, reading.spec, prior, values, price, REAL_ARITHMETIC, intervals=rows.intervals)

    return Prepared(reading.spec, price, REAL_ARITHMETIC, draw, reading.shown, intervals=rows.intervals)


def _laws(rows: Rowwise) -> list[tuple[Law, Variable]]:
    read = [law_of(likelihood, parameters) for likelihood, parameters in zip(rows.likelihoods, rows.parameters, strict=True)]
    return [one for one in read if one is not None]


def _middle_and_step(rows: Rowwise) -> tuple[np.ndarray, np.ndarray]:
    """From where, and by how much (P,), unknowns are moved to read functions off."""
    return (rows.lower + rows.upper) / 2, STEP * (rows.upper - rows.lower)


def _between(rows: Rowwise, k: int, expression: Variable, given: Mapping[Variable, Interval], norms: Mapping[Variable, float]) -> Interval:
    """Between which ends an expression of a likelihood lies, or a refusal."""
    try:
        return interval(expression, given, {**norms_of(rows), **norms})
    except Unreduced as reason:
        raise Refusal(f"The regression of {rows.likelihoods[k].name} has no bounds: {reason}.") from None


def _predictors(rows: Rowwise, k: int, cut: Mapping[Variable, Interval]) -> Interval:
    """Between which ends the predictor of a likelihood lies, for every piece of the box of a record."""
    boxes, radii = {}, {}
    for stand_in, unknown in zip(rows.stand_ins, rows.unknowns, strict=True):
        boxes[stand_in] = unknown.lower.reshape(unknown.shape), unknown.upper.reshape(unknown.shape)
        if np.isfinite(unknown.radius):
            radii[stand_in] = unknown.radius
    return _between(rows, k, _laws(rows)[k][1], {**cut, **boxes}, radii)


def _precision(unknown: Unknown) -> np.ndarray:
    """The precision (size,) of a prior, nothing more than is certain; 0 where it is flat, or its standard deviation is no plain number."""
    random = unknown.variable.owner.inputs[0]
    if isinstance(random.owner.op, TruncatedRV):
        random = untruncated(random)[0]
    operation = random.owner.op
    if isinstance(operation, BallNormalRV):
        return np.full(unknown.size, operation.precision * (1 - SURE))
    sigma = None if type(operation) is pm.Uniform.rv_type else constant_value(operation.dist_params(random.owner)[1])
    precision = 0.0 if sigma is None else (1 - SURE) / np.asarray(sigma, dtype=float) ** 2
    return np.broadcast_to(precision, unknown.shape).ravel()


def _size(rows: Rowwise, k: int, cut: Mapping[Variable, Interval], precision: np.ndarray) -> np.ndarray:
    """For every piece of the box of a record, the largest norm of its features times the prior's standard deviations, for one likelihood;
    infinite where a prior is flat.

    Of every unknown array it is bounded in two ways: by each feature between its ends, and as the largest change of the predictor over a
    ball, with norms that were declared.
    """
    if not (precision > 0).all():
        return np.array(np.inf)
    predictor = _laws(rows)[k][1]
    zeros = {s: np.zeros(unknown.shape) for s, unknown in zip(rows.stand_ins, rows.unknowns, strict=True)}
    at_zero = substitute(predictor, {s: pt.constant(zero.astype(s.type.dtype)) for s, zero in zeros.items()})
    start = _between(rows, k, at_zero, cut, {})
    moved = predictor if all(np.ptp(end) == 0 and end.max() == 0 for end in start) else predictor - at_zero

    def largest(stand_in: Variable, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        boxes = {s: (low, high) if s is stand_in else (zero, zero) for s, zero in zeros.items()}
        norm = float(np.sqrt((high**2).sum())) if low is high else float(high.max())
        lower, upper = _between(rows, k, moved, {**cut, **boxes}, {stand_in: norm})
        return np.maximum(-lower, upper)

    squares = np.zeros(())
    for stand_in, deviations in zip(rows.stand_ins, rows.split(1 / np.sqrt(precision)), strict=True):
        units = [deviations * unit.reshape(deviations.shape) for unit in np.eye(deviations.size)]
        by_feature = sum(largest(stand_in, unit, unit) ** 2 for unit in units)
        squares = squares + np.minimum(by_feature, largest(stand_in, -deviations, deviations) ** 2)
    return np.sqrt(squares)


def _target(
    reading: Reading, records: Records, ends: Sequence[Interval], temperature: float, density: Density, quadratic: Quadratic
) -> Target:
    """What is drawn from: the prior, and the flattened likelihood, in which no predictor leaves the ends on which the price rests."""
    rows = reading.rows
    parts = []
    for some in reading.parts:
        exact = records(some)
        for k, ((law, predictor), value) in enumerate(zip(_laws(some.rows), some.rows.values, strict=True)):
            values = exact[value].astype(float)
            features, offset = _affine(some.rows, predictor, exact, len(values))
            kept = some.rows.kept[k] if some.rows.kept else None
            weight = np.ones(len(offset)) if kept is None else exact[kept][:, 0]
            # made-up records stand for as many as are there
            weight = weight * (some.public.many / len(values) if reading.protection.sized else 1) / temperature
            parts.append(Part(law, features, offset, values, weight))

    def log_density(points: np.ndarray) -> np.ndarray:
        total = density(points)
        for part, (low, high) in zip(parts, ends, strict=True):
            total = total - part.law.energy(np.clip(part.predictors(points), low.min(), high.max()), part.values) @ part.weight
        return total

    places = np.cumsum([0, *(unknown.size for unknown in rows.unknowns)])
    balls = [
        (slice(start, start + unknown.size), unknown.radius)
        for start, unknown in zip(places, rows.unknowns, strict=False)
        if np.isfinite(unknown.radius)
    ]
    return Target(parts, *quadratic, rows.lower, rows.upper, balls, log_density)


def _quadratic(density: Density, middle: np.ndarray, step: np.ndarray) -> Quadratic:
    """The precision (P, P) and the shift (P,) of a quadratic log-density, by differences, which of a quadratic are exact."""
    P = len(middle)
    moves = np.diag(step)
    at = density(middle[None])[0]
    up, down = density(middle + moves), density(middle - moves)
    pairs = np.array([density(middle + moves + moves[k]) for k in range(P)])
    precision = -(pairs - up[:, None] - up[None, :] + at) / np.outer(step, step)
    return precision, (up - down) / (2 * step) + precision @ middle


def _affine(rows: Rowwise, predictor: Variable, exact: Mapping[Variable, np.ndarray], many: int) -> tuple[np.ndarray, np.ndarray]:
    """Features (N, P) and offsets (N,) of a predictor that is affine in all unknowns, by differences."""
    inputs, (middle, step) = list(exact), _middle_and_step(rows)
    with pytensor.config.change_flags(numba__cache=False):
        of = pytensor.function([*rows.stand_ins, *inputs], predictor, mode="FAST_COMPILE", on_unused_input="ignore")
    points = [middle, *(middle + np.diag(step))]
    values = [np.broadcast_to(of(*rows.split(point), *(exact[v] for v in inputs)), (many,)) for point in points]
    features = np.stack([(moved - values[0]) / h for moved, h in zip(values[1:], step, strict=True)], axis=1)
    return features, values[0] - features @ middle
