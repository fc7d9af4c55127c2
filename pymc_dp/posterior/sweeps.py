"""Gibbs sampling that asks the records at every update, each a private choice with a price of its own (FGWC16, section 4).

Every unknown number is drawn on a public grid given all others, and every record's own unknown among its levels, by the exponential
mechanism. How far one record can move an update's scores is known, in integers, before the first is made, whatever
the state will be; so is the price of the whole schedule. What is released is the chain of the unknowns, and it would cost no more with
all states that led to it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import pymc as pm
from numpy.random import Generator
from pymc.model.fgraph import ModelFreeRV, ModelPotential
from pytensor.graph.basic import Variable

from pymc_dp.gibbs.conditional import imagination
from pymc_dp.models.bounded_priors import TrimmedDirichletRV
from pymc_dp.models.spec import ModelSpec, RecordPaths
from pymc_dp.models.structure import above
from pymc_dp.plans.rowwise import Rowwise, check_finite
from pymc_dp.posterior.accept import penalised, proposal
from pymc_dp.posterior.densities import NEVER
from pymc_dp.posterior.kernel import Block, Held, Kernel, Latent, State, kernel_of, reads_one_entry
from pymc_dp.posterior.price import CERTIFIED, NAT, Asked, Price
from pymc_dp.posterior.records import Public, exact_records, public_part
from pymc_dp.posterior.result import Drawn, Prepared, left
from pymc_dp.posterior.schedule import Schedule, price_of, running, update_of
from pymc_dp.posterior.sensitivity import reach_of
from pymc_dp.posterior.sites import made_up
from pymc_dp.posterior.updates import check_prior, held_of, moved, rounds_asked, rounds_of, tossed_in_rounds
from pymc_dp.privacy.accounting import Refusal, exact_epsilon
from pymc_dp.privacy.mechanisms import LARGEST_SUM, chosen, generator
from pymc_dp.privacy.receipts import Receipt
from pymc_dp.privacy.requests import Annealing, Barker, Gibbs, Penalty
from pymc_dp.private_models.rewrite import without_likelihoods

SIMPLICES = (pm.Dirichlet.rv_type, TrimmedDirichletRV)
"""Probabilities that add up to 1, as units of a grid: two at a time are drawn, given their sum."""
TRIALS = 10
"""Made-up states at which the prior of latents that records share must be what is read of it."""
START = 25
"""Sweeps of the prior alone, before the first that is paid for: where a chain starts."""


@dataclass(frozen=True)
class Plan:
    """What will be done, and what it costs: no record has been read.

    Attributes
    ----------
    kernel : Kernel
    blocks : tuple of Block
        Of one sweep, in order.
    price : Price
    schedule : Schedule
        The same for people.
    """

    kernel: Kernel
    blocks: tuple[Block, ...]
    price: Price
    schedule: Schedule


def by_gibbs(
    asked: Asked, found: ModelSpec, leaves: Mapping[str, RecordPaths], rows: Rowwise, latents: Mapping[str, int | None]
) -> Prepared:
    """Sweeps that are ready to be paid for."""
    how = asked.mechanism
    assert isinstance(how, Gibbs)
    alone = {one.name for one in rows.unknowns if not under(found, one.variable)}
    prior, _ = without_likelihoods(found, {})
    planned = plan(asked, rows, public_part(rows, leaves, asked.neighbours), latents, alone, prior)
    kernel, price = planned.kernel, planned.price

    def draw(receipt: Receipt) -> Drawn:
        held = held_of(kernel, exact_records(rows, leaves, kernel.public))
        walked = [state for _ in range(how.chains) for state in walk(planned, how, held, receipt)]
        values = dict(zip([one.name for one in rows.unknowns], rows.split(np.array([one.numbers for one in walked])), strict=True))
        for k, latent in enumerate(kernel.latents):
            if latent.sites is not None:
                values[latent.name] = np.array([one.latents[k].reshape(latent.sites.shape) for one in walked])
        facts = {
            "sweeps": how.sweeps, "chains": how.chains, "burn_in": how.burn_in, "thin": how.thin, "asks": planned.schedule.asks,
            "points": kernel.grids.shape[1],
        }  # fmt: skip
        return left(asked, found, prior, values, price, CERTIFIED, facts=facts, running=running(asked, price))

    return Prepared(found, price, CERTIFIED, draw, kernel.public.many, schedule=planned.schedule)


def plan(asked: Asked, rows: Rowwise, public: Public, latents: Mapping[str, int | None], alone: Collection[str], prior: pm.Model) -> Plan:
    """A schedule of updates, priced as a whole.

    Parameters
    ----------
    asked : Asked
    rows : Rowwise
    public : Public
    latents : mapping
        What every record has for itself, or reads an entry of: see ``kernel.latents_of``.
    alone : collection of str
        Names of unknowns on which the prior of nothing else rests.
    prior : pm.Model
        The model without its likelihoods.

    Raises
    ------
    Refusal
    """
    how = asked.mechanism
    assert isinstance(how, Gibbs)
    kernel, blocks = laid_out(asked, rows, public, latents, alone, prior)
    price = price_of(asked, blocks)
    kernel = replace(kernel, temper=price.temperature)
    check_size(kernel)
    paid = iter(price.draws)
    updates = tuple(update_of(one, paid) for one in blocks)
    return Plan(kernel, blocks, price, Schedule(updates, how, price.temperature, price.cost))


def laid_out(
    asked: Asked,
    rows: Rowwise,
    public: Public,
    latents: Mapping[str, int | None],
    alone: Collection[str],
    prior: pm.Model,
    absolute: bool = False,
) -> tuple[Kernel, tuple[Block, ...]]:
    """What a chain is made of, and what it updates in one sweep, or a refusal: see ``plan``."""
    how = asked.mechanism
    assert isinstance(how, Gibbs | Annealing)
    if asked.neighbours != "replace":
        raise Refusal(
            'Gibbs sweeps show how many records there are, because each is asked at every update. Write neighbours="replace", or draw with'
            " PosteriorSample."
        )
    check_finite(rows)
    kernel = kernel_of(rows, public, latents, prior, how.points, absolute)
    touching = set(above([part.rows.density for part in kernel.parts]))
    for one, stand_in in zip(rows.unknowns, rows.stand_ins, strict=True):
        operation = one.variable.owner.inputs[0].owner.op
        if operation.ndim_supp and (type(operation) not in SIMPLICES or stand_in in touching):
            raise Refusal(
                f"The entries of {one.name} depend on each other, so they have no grid of their own. Write numbers in its place; a"
                " pm.Dirichlet may say how frequent the levels of latents are."
            )
    blocks, rng = _with_steps(how.steps, kernel, rows, alone), imagination()
    for block in [block for block in blocks if block.latent is not None] * TRIALS:
        check_prior(kernel, block, *imagined(kernel, block, rng))
    return kernel, blocks


def imagined(kernel: Kernel, block: Block, rng: Generator) -> tuple[State, State]:
    """Two states that differ in one latent, at made-up numbers: always the same, whatever the records."""
    numbers = np.concatenate([np.ravel(value) for value in made_up(kernel.unknowns, rng).values()])
    state = State(numbers, tuple(rng.integers(one.levels, size=length_of(kernel, one)) for one in kernel.latents))
    return state, moved(kernel, block, state, rng.integers(block.options, size=block.rows))


def length_of(kernel: Kernel, latent: Latent) -> int:
    """How many entries a latent has."""
    return kernel.public.many if latent.sites is None else prod(latent.sites.shape)


def check_size(kernel: Kernel) -> None:
    """Refuse scores that could not be added up."""
    if kernel.public.many * kernel.largest + NEVER * kernel.temper * NAT > LARGEST_SUM / 8:
        raise Refusal("epsilon is so small, or a log-likelihood so large, that scores do not fit 64-bit integers. Narrow the priors.")


def under(found: ModelSpec, unknown: Variable) -> bool:
    """Whether the prior of another variable rests on this one, or a Potential does."""
    others = [v for v in found.kept if isinstance(v.owner.op, ModelFreeRV | ModelPotential) and v is not unknown]
    return any(unknown in above([other.owner.inputs[0]]) for other in others)


def _with_steps(steps: Sequence[Barker], kernel: Kernel, rows: Rowwise, alone: Collection[str]) -> tuple[Block, ...]:
    """What is updated in one sweep. Unknowns that steps are for move last, those of one step together, or each for itself where all the
    entries of a vector are updated at once.
    """
    by_name = _blocks(kernel, rows, alone)
    named = [name for step in steps for name in step.names]
    for name in named:
        if name not in by_name:
            raise Refusal(f"A step is for unknowns of the model, and {name} is none. Write {' or '.join(by_name)}, or leave it out.")
        if not all(block.eta for block in by_name[name]) or by_name[name][0].latent is not None:
            raise Refusal(f"No step is needed for {name}: its update is free, or one price for all records. Leave it out of steps.")
    blocks = [block for name, several in by_name.items() if name not in named for block in several]
    points = kernel.grids.shape[1]
    for step in steps:
        several = [block for name in step.names for block in by_name[name]]
        places = tuple(place for block in several for place in block.places)
        width = max(round(step.width * (points - 1)), 1)
        variance = exact_epsilon(step.noise) ** 2 if isinstance(step, Penalty) else None
        many, index = (several[0].rows, several[0].index) if len(several) == 1 else (1, None)
        block = Block(", ".join(step.names), many, 2, (), places, index, width=width, variance=variance)
        blocks.append(replace(block, etas=reach_of(kernel, block)))
    return tuple(blocks)


def _blocks(kernel: Kernel, rows: Rowwise, alone: Collection[str]) -> dict[str, list[Block]]:
    """By name, what is updated in one sweep, in order, and how far a record can move each."""
    touching = set(above([part.rows.density for part in kernel.parts]))
    blocks: dict[str, list[Block]] = {}
    for k, latent in enumerate(kernel.latents):
        block = Block(latent.name, length_of(kernel, latent), latent.levels, latent=k)
        blocks[latent.name] = [replace(block, etas=reach_of(kernel, block))]
    points, start = kernel.grids.shape[1], 0
    for one, stand_in in zip(rows.unknowns, rows.stand_ins, strict=True):
        places = tuple(range(start, start + one.size))
        start += one.size
        if one.variable.owner.inputs[0].owner.op.ndim_supp:
            pairs = zip(np.ndindex(*one.shape), places, strict=True)
            several = [Block(f"{one.name}{list(at)}", 1, points, (), (k,), shared=k + 1) for at, k in pairs if at[-1] < one.shape[-1] - 1]
            blocks[one.name] = several
            continue
        indexes = {reads_one_entry(part.rows, stand_in) for part in kernel.parts if stand_in in set(above([part.rows.density]))}
        index = indexes.pop() if len(indexes) == 1 else None
        told = kernel.open is not None and stand_in in set(above([kernel.open.density]))
        if index is not None and one.name in alone and not told:
            several = [Block(one.name, one.size, points, (), places, index)]
        else:
            labels = [f"[{', '.join(map(str, where))}]" for where in np.ndindex(*one.shape)] if one.shape else [""]
            several = [Block(f"{one.name}{label}", 1, points, (), (place,)) for label, place in zip(labels, places, strict=True)]
        blocks[one.name] = [replace(block, etas=reach_of(kernel, block)) for block in several] if stand_in in touching else several
    return blocks


def walk(planned: Plan, how: Gibbs, held: Held, receipt: Receipt) -> list[State]:
    """The states of one chain that are kept. It starts where sweeps of the prior alone lead, which rests on no record."""
    kernel, rng = planned.kernel, generator((), receipt)
    state = State(kernel.start, tuple(np.zeros(length_of(kernel, one), dtype=np.int64) for one in kernel.latents))
    for block in planned.blocks * START:
        if block.width:
            block = proposal(kernel, block, state, rng)
        state = moved(kernel, block, state, tossed_in_rounds(kernel, block, state, held, rng))
    kept: list[State] = []
    for sweep in range(how.sweeps):
        for block in planned.blocks:
            state = updated(kernel, block, state, held, planned.price.scale, receipt, rng)
        if how.kept(sweep):
            kept.append(state)
    return kept


def updated(kernel: Kernel, block: Block, state: State, held: Held, scale: float, receipt: Receipt, rng: Generator) -> State:
    """The state after one update. Where it asks the records, the receipt must hold its draw."""
    if block.width:
        block = proposal(kernel, block, state, rng)
    if not block.eta:
        choices = tossed_in_rounds(kernel, block, state, held, rng)
    elif block.variance is None:
        choices = made_in_rounds(kernel, block, state, held, scale, receipt)
    else:
        choices = penalised(kernel, block, state, held, scale, receipt, rng)
    reached = moved(kernel, block, state, choices)
    check_prior(kernel, block, state, reached)
    return reached


def made_in_rounds(kernel: Kernel, block: Block, state: State, held: Held, scale: float, receipt: Receipt) -> np.ndarray:
    """Private choices, round by round. Together they are one draw: what a record says, it says of one row, or of two where it moves."""
    made: list[int] = []
    chosen(rounds_asked(kernel, block, state, held, made), scale, receipt, made, block.rows * block.options)
    choices = np.zeros(block.rows, dtype=np.int64)
    choices[np.concatenate(rounds_of(kernel, block))] = made
    return choices
