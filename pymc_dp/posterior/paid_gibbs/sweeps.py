"""Gibbs sampling that asks the records at every update, each a private choice with a price of its own (FGWC16, section 4).

Every unknown number is drawn on a public grid given all others, and every record's own unknown among its levels, by the exponential
mechanism. How far one record can move an update's scores is known, in integers, before the first is made, whatever
the state will be; so is the price of the whole schedule. What is released is the chain of the unknowns, and it would cost no more with
all states that led to it.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from pymc_dp.posterior.paid_gibbs.accept import penalised, proposal
from pymc_dp.posterior.paid_gibbs.blocks import check_size, kernel_and_blocks, length_of, reading_of
from pymc_dp.posterior.paid_gibbs.costs import price_of, spent_so_far, statistics_of, update_of
from pymc_dp.posterior.paid_gibbs.kernel import Block, Held, Kernel, State
from pymc_dp.posterior.paid_gibbs.updates import check_prior, held_of, rounds_of, sampled_in_rounds, scores_in_rounds, state_after
from pymc_dp.posterior.price import CERTIFIED, Price, Task
from pymc_dp.posterior.records import Reading
from pymc_dp.posterior.result import Drawn, Prepared, drawn_for
from pymc_dp.posterior.schedules import Schedule
from pymc_dp.privacy.mechanisms import exponential_mechanism, generator
from pymc_dp.privacy.receipts import Receipt
from pymc_dp.privacy.requests import Gibbs

START = 25
"""Sweeps of the prior alone, before the first that is paid for: where a chain starts."""


@dataclass(frozen=True)
class Sweeps:
    """What chains will do, and what it costs: no record has been read.

    Attributes
    ----------
    kernel : Kernel
    blocks : tuple of Block
        What is updated in a sweep, in order.
    price : Price
    schedule : Schedule
        What is done and paid for, for people.
    """

    kernel: Kernel
    blocks: tuple[Block, ...]
    price: Price
    schedule: Schedule


def by_gibbs(task: Task) -> Prepared:
    """Sweeps that can be paid for."""
    request, reading = task.mechanism, reading_of(task)
    assert isinstance(request, Gibbs)
    sweeps = planned_sweeps(task, reading)
    kernel, price = sweeps.kernel, sweeps.price

    def draw(receipt: Receipt) -> Drawn:
        held = held_of(kernel, reading.exact())
        states = [state for _ in range(request.chains) for state in chain_states(sweeps, request, held, receipt)]
        values = reading.values(np.array([state.numbers for state in states]))
        for k, latent in enumerate(kernel.latents):
            if latent.sites is not None:
                values[latent.name] = np.array([state.latents[k].reshape(latent.sites.shape) for state in states])
        facts = {
            "sweeps": request.sweeps, "chains": request.chains, "burn_in": request.burn_in, "thin": request.thin,
            "asks": sweeps.schedule.asks, "points": kernel.grids.shape[1],
        }  # fmt: skip
        return drawn_for(
            task, reading.spec, reading.prior, values, price, CERTIFIED, facts=facts, running=spent_so_far(task, price),
            statistics=tuple(statistics_of(price.draws[: len(price.draws) // request.rounds])),
        )  # fmt: skip

    return Prepared(reading.spec, price, CERTIFIED, draw, kernel.public.many, schedule=sweeps.schedule)


def planned_sweeps(task: Task, reading: Reading) -> Sweeps:
    """A schedule of updates, priced as a whole, or a refusal."""
    request = task.mechanism
    assert isinstance(request, Gibbs)
    kernel, blocks = kernel_and_blocks(task, reading)
    price = price_of(task, blocks)
    kernel = replace(kernel, temper=price.temperature)
    check_size(kernel)
    paid = iter(price.draws)
    updates = tuple(update_of(block, paid) for block in blocks)
    return Sweeps(kernel, blocks, price, Schedule(updates, request, price.temperature, price.cost))


def chain_states(sweeps: Sweeps, request: Gibbs, held: Held, receipt: Receipt) -> list[State]:
    """The states of one chain that are kept. It starts where sweeps of the prior alone lead, which rests on no record."""
    kernel, rng = sweeps.kernel, generator((), receipt)
    state = State(kernel.start, tuple(np.zeros(length_of(kernel, latent), dtype=np.int64) for latent in kernel.latents))
    for block in sweeps.blocks * START:
        if block.width:
            block = proposal(kernel, block, state, rng)
        state = state_after(kernel, block, state, sampled_in_rounds(kernel, block, state, held, rng))
    kept: list[State] = []
    for sweep in range(request.sweeps):
        for block in sweeps.blocks:
            state = updated(kernel, block, state, held, sweeps.price.scale, receipt, rng)
        if request.kept(sweep):
            kept.append(state)
    return kept


def updated(kernel: Kernel, block: Block, state: State, held: Held, scale: float, receipt: Receipt, rng: Generator) -> State:
    """The state after one update. Where it asks the records, the receipt must hold its draw."""
    if block.width:
        block = proposal(kernel, block, state, rng)
    if not block.sensitivity:
        choices = sampled_in_rounds(kernel, block, state, held, rng)
    elif block.variance is None:
        choices = choices_in_rounds(kernel, block, state, held, scale, receipt)
    else:
        choices = penalised(kernel, block, state, held, scale, receipt, rng)
    reached = state_after(kernel, block, state, choices)
    check_prior(kernel, block, state, reached)
    return reached


def choices_in_rounds(kernel: Kernel, block: Block, state: State, held: Held, scale: float, receipt: Receipt) -> np.ndarray:
    """Private choices, round by round. Together they are one draw: what a record says, it says of one row, or of two where it moves."""
    picked: list[int] = []
    exponential_mechanism(scores_in_rounds(kernel, block, state, held, picked), scale, receipt, picked, block.rows * block.options)
    choices = np.zeros(block.rows, dtype=np.int64)
    choices[np.concatenate(rounds_of(kernel, block))] = picked
    return choices
