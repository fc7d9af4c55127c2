"""Annealed importance sampling that pays at every update, and for its weight (Neal 2001).

From an exact draw of the prior a chain goes up a ladder of powers of the likelihood. A transition at a power beta is a sweep whose
scores count beta times as much, so it costs beta times as much. Its weight is the exponential of the sum of all steps in beta, times the
log-likelihood before each. Its mean over chains is the evidence; one record moves the exponent by C times the sum of the steps, which is C.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import expm1, inf, log

import numpy as np
from numpy.random import Generator

from pymc_dp.models.spec import ModelSpec, RecordPaths
from pymc_dp.plans.rowwise import Rowwise
from pymc_dp.posterior.kernel import Block, Held, Kernel, State
from pymc_dp.posterior.price import CERTIFIED, NAT, Asked, Price
from pymc_dp.posterior.records import exact_records, public_part
from pymc_dp.posterior.result import WEIGHT, Drawn, Prepared, left
from pymc_dp.posterior.schedule import Schedule, Update, draw_of, running, update_of
from pymc_dp.posterior.sensitivity import height_of
from pymc_dp.posterior.sweeps import check_size, laid_out, under, updated
from pymc_dp.posterior.updates import free, held_of, numbers_of, tossed, total
from pymc_dp.privacy.accounting import Cost, Refusal, epsilon_of, exact_epsilon
from pymc_dp.privacy.mechanisms import LARGEST_SUM, Gaussian, Laplace, generator
from pymc_dp.privacy.receipts import Draw, Receipt
from pymc_dp.privacy.requests import RUNG, Annealing
from pymc_dp.private_models.rewrite import without_likelihoods

MOST_JOINT = 2**20
"""Up to so many states of numbers that rest on each other are drawn at once."""


@dataclass(frozen=True)
class Climb:
    """Chains that are ready to be paid for: no record has been read.

    Attributes
    ----------
    kernel : Kernel
    blocks : tuple of Block
        Of a sweep.
    powers : tuple of int
        Of the likelihood, in units of 1 / RUNG, from 0, the prior, to RUNG.
    scales : tuple of float
        By which scores are divided at every power in between.
    heights : tuple of int
        C of every part of the log-likelihood, in units of 1 / NAT.
    price : Price
        The last draw of each chain is the noise of its weight.
    first : tuple of (tuple of int, (M, k) ndarray, (M,) ndarray)
        Places, the values that they may begin with, and their log-probabilities.
    """

    kernel: Kernel
    blocks: tuple[Block, ...]
    powers: tuple[int, ...]
    scales: tuple[float, ...]
    heights: tuple[int, ...]
    price: Price
    first: tuple[tuple[tuple[int, ...], np.ndarray, np.ndarray], ...]

    @property
    def height(self) -> int:
        """C, in units of 1 / NAT."""
        return sum(self.heights)

    @property
    def noise(self) -> Draw:
        """Of a weight."""
        return self.price.draws[-1]

    @property
    def unit(self) -> float:
        """Of the integer that gets noise, in nats."""
        return 1 / (self.price.scale * RUNG)


def by_annealing(
    asked: Asked, found: ModelSpec, leaves: Mapping[str, RecordPaths], rows: Rowwise, latents: Mapping[str, int | None]
) -> Prepared:
    """Chains that are ready to be paid for."""
    how = asked.mechanism
    assert isinstance(how, Annealing)
    alone = [one.name for one in rows.unknowns if not under(found, one.variable)]
    prior, _ = without_likelihoods(found, {})
    kernel, blocks = laid_out(asked, rows, public_part(rows, leaves, asked.neighbours), latents, alone, prior, absolute=True)
    climb = climbing(asked, kernel, blocks, joint=len(alone) < len(rows.unknowns))
    price, public = climb.price, kernel.public

    def draw(receipt: Receipt) -> Drawn:
        held, rng = held_of(kernel, exact_records(rows, leaves, public)), generator((), receipt)
        climbed = [ascended(climb, how, held, receipt, rng) for _ in range(how.chains)]
        values = {one.name: part for one, part in zip(rows.unknowns, rows.split(np.array([one for one, _ in climbed])), strict=True)}
        facts = {
            "rungs": how.rungs, "sweeps": how.sweeps, "curve": float(how.curve), "chains": how.chains, "asks": len(price.draws),
            "points": kernel.grids.shape[1], "weight_noise": climb.noise.mechanism, "weight_scale": climb.noise.scale * climb.unit,
            "weight_log_mean": log_mean(climb.noise, climb.unit),
        }  # fmt: skip
        weights = np.array([[weight] for _, weight in climbed])
        return left(
            asked, found, prior, values, price, CERTIFIED, facts=facts, running=running(asked, price), stats={"log_weight": weights}
        )

    return Prepared(found, price, CERTIFIED, draw, public.many, schedule=schedule_of(climb, how))


def climbing(asked: Asked, kernel: Kernel, blocks: tuple[Block, ...], joint: bool) -> Climb:
    """The ladder with its price: the least flattening at which all updates and weights cost no more than is asked for.

    Of what is paid, ``share`` is for the weights, and what the path leaves over where it is not flattened.

    Raises
    ------
    Refusal
        Where a chain could not begin with an exact draw of the prior, or ``share`` leaves nothing.
    """
    how = asked.mechanism
    assert isinstance(how, Annealing)
    if any(one.sites is not None for one in kernel.latents):
        raise Refusal("A climb begins with a draw of the prior, and latents that records read by an index have none. Sum them out.")
    if len(kernel.latents) > 1 or (kernel.latents and kernel.open is None):
        raise Refusal("A climb begins with a draw of the prior, which has one latent a record that rests on no record. Write one latent.")
    if any(block.shared is not None for block in blocks):
        raise Refusal("A climb begins with a draw of the prior, and a Dirichlet variable has none on a grid. Write numbers in its place.")
    powers, heights = (0, *how.powers), tuple(height_of(kernel, part) for part in kernel.parts)
    inner, asking = powers[1:-1], [block for block in blocks if block.eta]
    if not asked.delta and any(block.variance is not None for block in asking):
        raise Refusal("The noise of a Penalty step is Gaussian, which has no pure epsilon. Write delta=1e-6, or Barker steps.")
    parts = [(block, Fraction(block.eta * power, RUNG)) for power in inner for block in asking] * how.sweeps
    path = 1 - exact_epsilon(how.share)
    scale = float(NAT)
    if parts and asked.delta:
        squares = sum((eta**2 / (4 if block.variance is None else block.variance) for block, eta in parts), Fraction(0))
        assert asked.total.rho is not None
        allowed = Cost(asked.total.epsilon, asked.delta, asked.total.rho * path)
        scale = max(scale, Gaussian().calibrate(0, how.chains * squares, allowed))  # type: ignore[arg-type]
    elif parts:
        whole = how.chains * sum((eta for _, eta in parts), Fraction(0))
        scale = max(scale, Laplace().calibrate(whole, 0, Cost(asked.total.epsilon * path)))  # type: ignore[arg-type]
    scales = tuple(scale * RUNG / power for power in inner)
    draws = [
        draw_of(replace(block, name=name_of(block, power)), at)
        for power, at in zip(inner, scales, strict=True) for _ in range(how.sweeps) for block in asking
    ]  # fmt: skip
    draws.append(_weight(asked, RUNG * sum(heights), draws))
    rho = how.chains * sum((one.rho for one in draws), Fraction(0))
    if asked.delta:
        cost = Cost(min(epsilon_of(rho, asked.delta), asked.total.epsilon), asked.delta, rho)
    else:
        cost = Cost(how.chains * sum((one.pure for one in draws if one.pure is not None), Fraction(0)), rho=rho)
    tempered = replace(kernel, temper=max(scales, default=scale) / NAT)
    check_size(tempered)
    if kernel.public.many * kernel.largest * RUNG > LARGEST_SUM / 8:
        raise Refusal("Log-likelihoods are so large that a weight does not fit 64-bit integers. Narrow the priors.")
    return Climb(kernel, blocks, powers, scales, heights, Price(scale, cost, tuple(draws) * how.chains), _beginnings(kernel, joint))


def name_of(block: Block, power: int) -> str:
    """Of an update at a rung."""
    return f"{block.name} at {power / RUNG:.4g}"


def _weight(asked: Asked, difference: int, path: Sequence[Draw]) -> Draw:
    """The noise of the weight of one chain: all that the path leaves over."""
    chains = asked.mechanism.chains
    if asked.delta:
        assert asked.total.rho is not None
        rest = asked.total.rho / chains - sum((one.rho for one in path), Fraction(0))
        scale = Gaussian().calibrate(0, difference**2, Cost(asked.total.epsilon, asked.delta, rest))
        return Draw(WEIGHT, Gaussian.name, difference, difference**2, scale, 1)
    rest = asked.total.epsilon / chains - sum((one.pure for one in path if one.pure is not None), Fraction(0))
    return Draw(WEIGHT, Laplace.name, difference, difference**2, Laplace().calibrate(difference, 0, Cost(rest)), 1)


def _beginnings(kernel: Kernel, joint: bool) -> tuple[tuple[tuple[int, ...], np.ndarray, np.ndarray], ...]:
    """What exact draws of the prior are made from: each number by itself, or all together where they rest on each other."""
    P, points = kernel.grids.shape
    if joint and points**P > MOST_JOINT:
        raise Refusal(
            f"A climb begins with a draw of the prior of {P} unknowns that rest on each other, at {points} points each: too many states."
            " Write fewer points, or priors without parameters."
        )
    if joint:
        mesh = np.stack(np.meshgrid(*kernel.grids, indexing="ij"), axis=-1).reshape(-1, P)
        result = [(tuple(range(P)), mesh, kernel.prior(mesh))]
    else:
        state = State(kernel.start, ())
        result = []
        for place in range(P):
            states = numbers_of(kernel, Block("", 1, points, (), (place,)), state)
            result.append(((place,), states[:, [place]], kernel.prior(states)))
    if not all(np.isfinite(weights).any() for _, _, weights in result):
        raise Refusal("The prior has no density on the grid. Write priors whose densities are positive at the middle of their supports.")
    return tuple(result)


def begun(climb: Climb, held: Held, rng: Generator) -> State:
    """An exact draw of the prior, on the grid. It rests on no record."""
    numbers = np.zeros(len(climb.kernel.grids))
    for places, values, weights in climb.first:
        numbers[list(places)] = values[tossed(weights[None], rng)[0]]
    state = State(numbers, tuple(np.zeros(climb.kernel.public.many, dtype=np.int64) for _ in climb.kernel.latents))
    for block in climb.blocks:
        if block.latent is not None:
            state = replace(state, latents=(tossed(free(climb.kernel, block, state, held), rng),))
    return state


def ascended(climb: Climb, how: Annealing, held: Held, receipt: Receipt, rng: Generator) -> tuple[np.ndarray, float]:
    """The numbers (P,) that one chain ends with, and the noisy logarithm of its weight.

    The integer that gets noise is the sum over rungs of the step of the power, in units of 1 / RUNG, times the log-likelihood before it.
    Whatever the path, one record moves every log-likelihood by ``height`` at most and the steps add up to RUNG.
    """
    state, weight = begun(climb, held, rng), 0
    for k, (before, power) in enumerate(pairwise(climb.powers)):
        weight += (power - before) * total(climb.kernel, state, held, climb.heights)
        if power == RUNG:
            break
        kernel = replace(climb.kernel, temper=climb.scales[k] / NAT)
        for _ in range(how.sweeps):
            for block in climb.blocks:
                state = updated(kernel, block, state, held, climb.scales[k], receipt, rng)
    noise = Gaussian() if climb.noise.mechanism == Gaussian.name else Laplace()
    [noisy] = noise.draw(np.array([weight]), climb.noise.scale, receipt)
    return state.numbers, float(noisy) * climb.unit


def log_mean(noise: Draw, unit: float) -> float:
    """The logarithm of the mean of exp(noise): what it adds to the mean weight. Infinite for Laplace noise of a scale of 1 nat and more."""
    if noise.mechanism == Gaussian.name:
        return (noise.scale * unit) ** 2 / 2
    rate = 1 / noise.scale
    if unit >= rate:
        return inf
    return 2 * log(-expm1(-rate)) - log(-expm1(unit - rate)) - log(-expm1(-unit - rate))


def schedule_of(climb: Climb, how: Annealing) -> Schedule:
    """The same for people."""
    paid, updates = iter(climb.price.draws), []
    for power in climb.powers[1:-1]:
        for block in climb.blocks * how.sweeps:
            updates.append(update_of(replace(block, name=name_of(block, power)), paid, power / RUNG))
    updates.append(Update(WEIGHT, 1, 1, climb.height / NAT, climb.noise.pure, climb.noise.rho))
    return Schedule(tuple(updates), how, climb.price.temperature, climb.price.cost)
