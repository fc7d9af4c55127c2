"""Draws of the coefficients of a linear regression whose prior is a normal distribution cut off at a ball (ZRD16, section 5).

The posterior is a normal distribution cut off at the same ball, and is drawn exactly but for floating point: no Markov chain. Every
feature vector and response is moved into its declared bounds, on which the cost rests, whatever the records held.
"""

from collections.abc import Collection, Mapping
from math import ceil
from typing import Any

import numpy as np
import pytensor
from numpy.random import Generator
from pymc.model.fgraph import ModelPotential
from pytensor.graph.basic import Variable
from pytensor.tensor.basic import Join, MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.models.intervals import interval
from pymc_dp.models.spec import ModelSpec
from pymc_dp.models.structure import Unreduced, above, is_product, scalar_name, substitute
from pymc_dp.plans.ranges import pieces
from pymc_dp.plans.rowwise import Rowwise, entries_of, norms_of
from pymc_dp.posterior.price import NAT, REAL_ARITHMETIC, Task, priced
from pymc_dp.posterior.result import Drawn, Prepared, drawn_for
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.mechanisms import generator
from pymc_dp.privacy.receipts import Receipt

PROPOSALS = 2**14
"""So many proposals are made for every draw, whatever is accepted, and as many again where none is: with one in a thousand accepted, at
every ten-millionth draw."""


def is_regression(spec: ModelSpec, rows: Rowwise) -> bool:
    """Whether the one likelihood is normal, of known sigma and a mean that is affine in one unknown vector in a ball."""
    if len(rows.likelihoods) != 1 or len(rows.unknowns) != 1:
        return False
    (likelihood,), (unknown,) = rows.likelihoods, rows.unknowns
    normal = likelihood.distribution == "Normal" and likelihood.known[1] is not None and not likelihood.columns
    prior = np.isfinite(unknown.radius) and not any(isinstance(v.owner.op, ModelPotential) for v in spec.kept)
    return normal and prior and is_affine(rows.parameters[0][0], rows.stand_ins)


MOVING = (DimShuffle, Subtensor, AdvancedSubtensor, Reshape, SpecifyShape, Join, MakeVector, TensorFromScalar, ScalarFromTensor)
"""Operations that pick entries and lay them out anew."""


def is_affine(variable: Variable, unknowns: Collection[Variable]) -> bool:
    """Whether an expression is affine in unknowns together, for certain: only moved, added up, and multiplied by what rests on none."""
    known: dict[Variable, bool] = {}

    def rests_on_one(part: Variable) -> bool:
        return part in unknowns or any(other in unknowns for other in above([part]))

    def affine(part: Variable) -> bool:
        if part not in known:
            known[part] = part in unknowns or not rests_on_one(part) or combined(part)
        return known[part]

    def combined(part: Variable) -> bool:
        operation, inputs = part.owner.op, part.owner.inputs
        resting = [rests_on_one(operand) for operand in inputs]
        name = scalar_name(operation)
        one_factor = is_product(operation) or (isinstance(operation, Elemwise) and name == "Mul")
        quotient = isinstance(operation, Elemwise) and name == "TrueDiv" and not resting[1]
        sums = name == "Add" or (isinstance(operation, Elemwise) and name in {"Sub", "Neg", "Identity"})
        cast = isinstance(operation, Elemwise) and name == "Cast" and "float" in str(part.type.dtype)
        moved = isinstance(operation, MOVING) and (not any(resting[1:]) or isinstance(operation, Join | MakeVector))
        allowed = sums or cast or moved or quotient or (one_factor and sum(resting) == 1)
        return allowed and all(affine(operand) for operand, rests in zip(inputs, resting, strict=True) if rests)

    return affine(variable)


def cost_in_ball(size: float, response: float, radius: float, variance: float, neighbours: str) -> float:
    """The range over points of the ball of what a record, in place of another or besides, changes in the log-likelihood.

    With |x' w| at most U = size radius and |y| at most R, -(y - x' w)^2 / 2 sigma^2 varies over the ball by 2 R U / sigma^2 at most
    where U <= R (its extremes are at the ends, x' w = U and -U), and by (R + U)^2 / 2 sigma^2 otherwise; two records by twice that
    (docs/theory.md; checked against brute force).

    Parameters
    ----------
    size, response : float
        The largest norm of a feature vector, and the largest absolute response.
    radius, variance : float
    neighbours : str
    """
    largest = size * radius
    range_of_one = 2 * response * largest / variance if largest <= response else (response + largest) ** 2 / (2 * variance)
    return range_of_one * (2 if neighbours == "replace" else 1)


def pull_in_ball(size: float, response: float, radius: float, variance: float, precision: float, neighbours: str) -> float:
    """By how much, at most, what a record changes in the log-likelihood rises over a standard deviation of the prior: see ``Draw.rho``.

    The gradient of -(y - x' w)^2 / 2 sigma^2 is (y - x' w) x / sigma^2, and no longer than (R + U) size / sigma^2 in the ball.
    """
    return (2 if neighbours == "replace" else 1) * (response + size * radius) * size / (variance * np.sqrt(precision))


def in_ball(task: Task) -> Prepared:
    """Draws of the coefficients from the flattened posterior."""
    reading = task.rowwise
    rows, prior = reading.rows, reading.prior
    if task.mode:
        raise Refusal("A mode is sought on a grid, of three unknown numbers at most. Draw from the posterior: PosteriorSample().")
    (likelihood,), (unknown,) = rows.likelihoods, rows.unknowns
    law = unknown.variable.owner.inputs[0].owner.op
    sigma = likelihood.known[1]
    assert sigma is not None
    mean = rows.parameters[0][0]
    try:
        size, response = _largest(rows, mean, reading.public)
    except Unreduced as reason:
        raise Refusal(f"The regression of {likelihood.name} has no bounds: {reason}.") from None
    variance = sigma**2
    sensitivity = cost_in_ball(size, response, law.radius, variance, task.neighbours)
    pull = pull_in_ball(size, response, law.radius, variance, law.precision, task.neighbours)
    price = priced(task, [(unknown.name, ceil(sensitivity * NAT), unknown.size)], ceil((pull * NAT) ** 2))

    def draw(receipt: Receipt) -> Drawn:
        rng = generator(price.draws, receipt)
        exact = reading.exact()
        features, responses = _features(rows, mean, exact, reading.public.many)
        norms = np.sqrt((features**2).sum(axis=1, keepdims=True))
        features = features * np.where(norms > size, size / np.where(norms > 0, norms, 1.0), 1.0)
        responses = np.clip(responses, -response, response)
        if rows.kept[0] is not None:  # what is left out brings nothing: it lies in the ball and within the bounds, at their middle
            features, responses = features * exact[rows.kept[0]], responses * exact[rows.kept[0]][:, 0]
        flat = variance * price.temperature
        precision = law.precision * np.eye(unknown.size) + features.T @ features / flat
        drawn = truncated_normal(precision, features.T @ responses / flat, law.radius, task.mechanism.draws, rng)
        facts = {"radius": law.radius, "largest_feature": size, "largest_response": response}
        return drawn_for(task, reading.spec, prior, reading.values(drawn), price, REAL_ARITHMETIC, facts=facts)

    return Prepared(reading.spec, price, REAL_ARITHMETIC, draw, reading.shown)


def _largest(rows: Rowwise, mean: Any, public: Any) -> tuple[float, float]:
    """The largest norm of a feature vector and the largest absolute response less what needs no coefficient, from bounds alone."""
    cut = pieces(entries_of(rows, public.arrays), public.shared, {})
    value = cut.given[rows.values[0]]
    unit, zero = np.ones(rows.unknowns[0].shape), np.zeros(rows.unknowns[0].shape)
    stand_in, norms = rows.stand_ins[0], norms_of(rows)
    at_zero = interval(mean, {**cut.given, stand_in: (zero, zero)}, norms)
    offset = mean - substitute(mean, {stand_in: stand_in * 0.0})
    if np.ptp(at_zero[0]) == 0 and np.ptp(at_zero[1]) == 0 and at_zero[0].max() == at_zero[1].max() == 0:
        offset = mean
    low, high = interval(offset, {**cut.given, stand_in: (-unit, unit)}, {**norms, stand_in: 1.0})
    size = float(max(-low.min(), high.max()))
    response = float(max((value[1] - at_zero[0]).max(), (at_zero[1] - value[0]).max()))
    if not size > 0:
        raise Refusal("The mean rests on no coefficient. Leave the regression out.")
    return size, response


def _features(rows: Rowwise, mean: Any, exact: Mapping, many: int) -> tuple[np.ndarray, np.ndarray]:
    """Feature vectors (N, P), as differences of the mean, which is affine; and responses less what needs no coefficient (N,)."""
    stand_in, P = rows.stand_ins[0], rows.unknowns[0].size
    inputs = [variable for variable in exact if variable is not rows.values[0]]
    with pytensor.config.change_flags(numba__cache=False):
        of = pytensor.function([stand_in, *inputs], mean, mode="FAST_COMPILE", on_unused_input="ignore")
    units = [np.zeros(P), *np.eye(P)]
    means = [of(unit.reshape(rows.unknowns[0].shape), *(exact[v] for v in inputs)) for unit in units]
    at_zero, *at_units = (np.broadcast_to(values, (many,)) for values in means)
    return np.stack([at_unit - at_zero for at_unit in at_units], axis=1), exact[rows.values[0]] - at_zero


def truncated_normal(precision: np.ndarray, shift: np.ndarray, radius: float, many: int, rng: Generator) -> np.ndarray:
    """Independent draws (many, P) of a normal distribution restricted to the ball of this radius.

    By rejection: proposals are normal with the precision raised by t in every direction, t such that their mean square is that of
    the ball's edge, or 0 where it is less; one is accepted with probability exp(t (|w|^2 - radius^2) / 2), which is at most 1
    inside. So it is exact, and fast even where all the mass lies outside.

    Parameters
    ----------
    precision : (P, P) ndarray
    shift : (P,) ndarray
        Precision times the mean.
    radius : float
    many : int
    rng : Generator
    """
    values, vectors = np.linalg.eigh(precision)
    turned = vectors.T @ shift

    def square(t: float) -> float:
        return float(((turned / (values + t)) ** 2 + 1 / (values + t)).sum())

    tilt = 0.0
    if square(0.0) > radius**2:
        low, high = 0.0, 1.0
        while square(high) > radius**2:
            high *= 2
        for _ in range(100):
            tilt = (low + high) / 2
            low, high = (tilt, high) if square(tilt) > radius**2 else (low, tilt)
    mean, deviation = turned / (values + tilt), 1 / np.sqrt(values + tilt)
    result: list[np.ndarray] = []
    while len(result) < many:
        proposals = mean + deviation * rng.standard_normal((PROPOSALS, len(mean)))
        squares = (proposals**2).sum(axis=1)
        accepted = (squares <= radius**2) & (np.log(rng.random(PROPOSALS)) < tilt * (squares - radius**2) / 2)
        if accepted.any():
            result.append(proposals[np.argmax(accepted)])
    return np.array(result) @ vectors.T
