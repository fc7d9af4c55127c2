"""Annealed importance sampling that pays at every update, and for its weight (Neal 2001).

From an exact draw of the prior a chain goes up a ladder of powers of the likelihood. A transition at a power beta is a sweep whose
scores count beta times as much, so it costs beta times as much. Its weight is the exponential of the sum of all steps in beta, times the
log-likelihood before each. Its mean over chains is the evidence; one record moves the exponent by C times the sum of the steps, which is C.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import expm1, inf, log

import numpy as np
from numpy.random import Generator

from pymc_dp.posterior.paid_gibbs.blocks import check_size, kernel_and_blocks, reading_of, unknowns_without_children
from pymc_dp.posterior.paid_gibbs.costs import draw_of, pure_of, rho_of, spent_so_far, statistics_of, update_of
from pymc_dp.posterior.paid_gibbs.kernel import Block, Held, Kernel, State
from pymc_dp.posterior.paid_gibbs.sensitivity import log_likelihood_sensitivity
from pymc_dp.posterior.paid_gibbs.sweeps import updated
from pymc_dp.posterior.paid_gibbs.updates import held_of, numbers_of, prior_part, sampled_options, total
from pymc_dp.posterior.price import CERTIFIED, NAT, Price, Task
from pymc_dp.posterior.result import WEIGHT, Drawn, Prepared, drawn_for
from pymc_dp.posterior.schedules import Schedule, Update
from pymc_dp.privacy.accounting import Cost, Refusal, epsilon_of, exact_epsilon
from pymc_dp.privacy.mechanisms import LARGEST_SUM, Gaussian, Laplace, generator
from pymc_dp.privacy.receipts import Draw, Receipt
from pymc_dp.privacy.requests import RUNG, Annealing

MOST_JOINT = 2**20
"""Up to so many states of numbers that rest on each other are drawn at once."""


@dataclass(frozen=True)
class AnnealedChains:
    """What annealed chains will do, and what it costs: no record has been read.

    Attributes
    ----------
    kernel : Kernel
    blocks : tuple of Block
        What is updated in a sweep, in order.
    powers : tuple of int
        Powers of the likelihood, in units of 1 / RUNG, from 0, the prior, to RUNG.
    scales : tuple of float
        What scores are divided by at every power in between.
    sensitivities : tuple of int
        How far one record moves every part of the log-likelihood, in units of 1 / NAT.
    price : Price
        The last draw of each chain is the noise of its weight.
    first : tuple of (tuple of int, (M, k) ndarray, (M,) ndarray)
        Places, the values that they may begin with, and their log-probabilities.
    """

    kernel: Kernel
    blocks: tuple[Block, ...]
    powers: tuple[int, ...]
    scales: tuple[float, ...]
    sensitivities: tuple[int, ...]
    price: Price
    first: tuple[tuple[tuple[int, ...], np.ndarray, np.ndarray], ...]

    @property
    def sensitivity(self) -> int:
        """How far one record moves the log-likelihood, C, in units of 1 / NAT."""
        return sum(self.sensitivities)

    @property
    def noise(self) -> Draw:
        """The noise of a weight."""
        return self.price.draws[-1]

    @property
    def unit(self) -> float:
        """One unit of the integer that gets noise, in nats."""
        return 1 / (self.price.scale * RUNG)


def by_annealing(task: Task) -> Prepared:
    """Chains that can be paid for."""
    request, reading = task.mechanism, reading_of(task)
    assert isinstance(request, Annealing)
    kernel, blocks = kernel_and_blocks(task, reading, absolute=True)
    plan = planned_chains(task, kernel, blocks, joint=len(unknowns_without_children(reading)) < len(kernel.unknowns))
    price = plan.price

    def draw(receipt: Receipt) -> Drawn:
        held, rng = held_of(kernel, reading.exact()), generator((), receipt)
        ends = [annealed_chain(plan, request, held, receipt, rng) for _ in range(request.chains)]
        values = reading.values(np.array([numbers for numbers, _ in ends]))
        facts = {
            "rungs": request.rungs, "sweeps": request.sweeps, "curve": float(request.curve), "chains": request.chains,
            "asks": len(price.draws), "points": kernel.grids.shape[1], "weight_noise": plan.noise.mechanism,
            "weight_scale": plan.noise.scale * plan.unit, "weight_log_mean": log_mean(plan.noise, plan.unit),
        }  # fmt: skip
        updates = statistics_of(price.draws[: len(price.draws) // request.rounds - 1])
        return drawn_for(
            task, reading.spec, reading.prior, values, price, CERTIFIED, facts=facts, running=spent_so_far(task, price),
            stats={"log_weight": np.array([[weight] for _, weight in ends])}, statistics=(*updates, (WEIGHT, NAT * RUNG)),
        )  # fmt: skip

    return Prepared(reading.spec, price, CERTIFIED, draw, kernel.public.many, schedule=schedule_of(plan, request))


def planned_chains(task: Task, kernel: Kernel, blocks: tuple[Block, ...], joint: bool) -> AnnealedChains:
    """Annealed chains with their price: the lowest temperature at which all updates and weights cost no more than is asked for.

    Of what is paid, ``share`` is for the weights, and what the path leaves over where it is not flattened.

    Raises
    ------
    Refusal
        Where a chain could not begin with an exact draw of the prior, or ``share`` leaves nothing.
    """
    request = task.mechanism
    assert isinstance(request, Annealing)
    if any(latent.sites is not None for latent in kernel.latents):
        raise Refusal("A climb begins with a draw of the prior, and latents that records read by an index have none. Sum them out.")
    if len(kernel.latents) > 1 or (kernel.latents and kernel.open is None):
        raise Refusal("A climb begins with a draw of the prior, which has one latent a record that rests on no record. Write one latent.")
    if any(block.shared is not None for block in blocks):
        raise Refusal("A climb begins with a draw of the prior, and a Dirichlet variable has none on a grid. Write numbers in its place.")
    powers, sensitivities = (0, *request.powers), tuple(log_likelihood_sensitivity(kernel, part) for part in kernel.parts)
    inner, asking = powers[1:-1], [block for block in blocks if block.sensitivity]
    if not task.delta and any(block.variance is not None for block in asking):
        raise Refusal("The noise of a Penalty step is Gaussian, which has no pure epsilon. Write delta=1e-6, or Barker steps.")
    parts = [(block, Fraction(block.sensitivity * power, RUNG)) for power in inner for block in asking] * request.sweeps
    path = 1 - exact_epsilon(request.share)
    scale = float(NAT)
    if parts and task.delta:
        squares = sum((sensitivity**2 / (4 if block.variance is None else block.variance) for block, sensitivity in parts), Fraction(0))
        assert task.total.rho is not None
        allowed = Cost(task.total.epsilon, task.delta, task.total.rho * path)
        scale = max(scale, Gaussian().calibrate(0, request.chains * squares, allowed))  # type: ignore[arg-type]
    elif parts:
        whole = request.chains * sum((sensitivity for _, sensitivity in parts), Fraction(0))
        scale = max(scale, Laplace().calibrate(whole, 0, Cost(task.total.epsilon * path)))  # type: ignore[arg-type]
    scales = tuple(scale * RUNG / power for power in inner)
    draws = [
        draw_of(replace(block, name=name_of(block, power)), at)
        for power, at in zip(inner, scales, strict=True) for _ in range(request.sweeps) for block in asking
    ]  # fmt: skip
    draws.append(_weight(task, RUNG * sum(sensitivities), draws))
    rho = request.chains * rho_of(draws)
    if task.delta:
        cost = Cost(min(epsilon_of(rho, task.delta), task.total.epsilon), task.delta, rho)
    else:
        cost = Cost(request.chains * pure_of(draws), rho=rho)
    tempered = replace(kernel, temper=max(scales, default=scale) / NAT)
    check_size(tempered)
    if kernel.public.many * kernel.largest * RUNG > LARGEST_SUM / 8:
        raise Refusal("Log-likelihoods are so large that a weight does not fit 64-bit integers. Narrow the priors.")
    return AnnealedChains(
        kernel, blocks, powers, scales, sensitivities, Price(scale, cost, tuple(draws) * request.chains), _prior_on_grid(kernel, joint)
    )


def name_of(block: Block, power: int) -> str:
    """The name of an update at a rung."""
    return f"{block.name} at {power / RUNG:.4g}"


def _weight(task: Task, difference: int, path: Sequence[Draw]) -> Draw:
    """The noise of the weight of one chain: all that the path leaves over."""
    chains = task.mechanism.chains
    if task.delta:
        assert task.total.rho is not None
        rest = task.total.rho / chains - rho_of(path)
        scale = Gaussian().calibrate(0, difference**2, Cost(task.total.epsilon, task.delta, rest))
        return Draw(WEIGHT, Gaussian.name, difference, difference**2, scale, 1)
    rest = task.total.epsilon / chains - pure_of(path)
    return Draw(WEIGHT, Laplace.name, difference, difference**2, Laplace().calibrate(difference, 0, Cost(rest)), 1)


def _prior_on_grid(kernel: Kernel, joint: bool) -> tuple[tuple[tuple[int, ...], np.ndarray, np.ndarray], ...]:
    """The prior on the grid, to draw from exactly: places, values and log-densities, of each number by itself or of all together."""
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


def prior_draw(plan: AnnealedChains, held: Held, rng: Generator) -> State:
    """An exact draw of the prior, on the grid. It rests on no record."""
    numbers = np.zeros(len(plan.kernel.grids))
    for places, values, weights in plan.first:
        numbers[list(places)] = values[sampled_options(weights[None], rng)[0]]
    state = State(numbers, tuple(np.zeros(plan.kernel.public.many, dtype=np.int64) for _ in plan.kernel.latents))
    for block in plan.blocks:
        if block.latent is not None:
            state = replace(state, latents=(sampled_options(prior_part(plan.kernel, block, state, held), rng),))
    return state


def annealed_chain(plan: AnnealedChains, request: Annealing, held: Held, receipt: Receipt, rng: Generator) -> tuple[np.ndarray, float]:
    """The numbers (P,) that one chain ends with, and the noisy logarithm of its weight.

    The integer that gets noise is the sum over rungs of the step of the power, in units of 1 / RUNG, times the log-likelihood before it.
    Whatever the path, one record moves every log-likelihood by ``sensitivity`` at most and the steps add up to RUNG.
    """
    state, weight = prior_draw(plan, held, rng), 0
    for k, (before, power) in enumerate(pairwise(plan.powers)):
        weight += (power - before) * total(plan.kernel, state, held, plan.sensitivities)
        if power == RUNG:
            break
        kernel = replace(plan.kernel, temper=plan.scales[k] / NAT)
        for _ in range(request.sweeps):
            for block in plan.blocks:
                state = updated(kernel, block, state, held, plan.scales[k], receipt, rng)
    noise = Gaussian() if plan.noise.mechanism == Gaussian.name else Laplace()
    [noisy] = noise.draw(np.array([weight]), plan.noise.scale, receipt)
    return state.numbers, float(noisy) * plan.unit


def log_mean(noise: Draw, unit: float) -> float:
    """The logarithm of the mean of exp(noise): what it adds to the mean weight. Infinite for Laplace noise of a scale of 1 nat and more."""
    if noise.mechanism == Gaussian.name:
        return (noise.scale * unit) ** 2 / 2
    rate = 1 / noise.scale
    if unit >= rate:
        return inf
    return 2 * log(-expm1(-rate)) - log(-expm1(unit - rate)) - log(-expm1(-unit - rate))


def schedule_of(plan: AnnealedChains, request: Annealing) -> Schedule:
    """Every update of one chain, and its weight, with what each costs: for people."""
    paid, updates = iter(plan.price.draws), []
    for power in plan.powers[1:-1]:
        for block in plan.blocks * request.sweeps:
            updates.append(update_of(replace(block, name=name_of(block, power)), paid, power / RUNG))
    updates.append(Update(WEIGHT, 1, 1, plan.sensitivity / NAT, plan.noise.pure, plan.noise.rho))
    return Schedule(tuple(updates), request, plan.price.temperature, plan.price.cost)
