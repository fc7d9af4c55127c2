"""What a chain updates in one sweep: its blocks, in order, and how far one record can move each."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import prod

import numpy as np
import pymc as pm
from numpy.random import Generator
from pymc.model.fgraph import ModelFreeRV, ModelPotential
from pytensor.graph.basic import Variable
from pytensor.tensor.subtensor import AdvancedSubtensor

from pymc_dp.gibbs.conditional import fixed_generator
from pymc_dp.models.bounded_priors import TrimmedDirichletRV
from pymc_dp.models.reader import read_model
from pymc_dp.models.structure import above, is_cast
from pymc_dp.models.unknowns import Unknown
from pymc_dp.plans.rowwise import Rowwise, check_finite
from pymc_dp.posterior.densities import NEVER
from pymc_dp.posterior.paid_gibbs.kernel import Block, Kernel, Latent, State
from pymc_dp.posterior.paid_gibbs.parts import kernel_of, latents_of
from pymc_dp.posterior.paid_gibbs.sensitivity import sensitivities_of
from pymc_dp.posterior.paid_gibbs.sites import made_up
from pymc_dp.posterior.paid_gibbs.updates import check_prior, state_after
from pymc_dp.posterior.price import NAT, Task
from pymc_dp.posterior.records import Reading
from pymc_dp.privacy.accounting import Refusal, exact_epsilon
from pymc_dp.privacy.mechanisms import LARGEST_SUM
from pymc_dp.privacy.requests import Annealing, Barker, Gibbs, Penalty

SIMPLICES = (pm.Dirichlet.rv_type, TrimmedDirichletRV)
"""Probabilities that add up to 1, as units of a grid: two at a time are drawn, given their sum."""
TRIALS = 10
"""Made-up states at which the prior of latents that records share must be what is read of it."""


def reading_of(task: Task) -> Reading:
    """The model, read once, with what every record has for itself, or reads an entry of."""
    latents = latents_of(task.model)
    read = read_model(task.model, task.protection.public, sized=task.protection.sized, rowwise=True, latents=latents)
    return Reading(*read, task.protection, latents)


def unknowns_without_children(reading: Reading) -> frozenset[str]:
    """Names of the unknowns on which the prior of no other variable rests, nor a Potential."""
    priors = {v: v.owner.inputs[0] for v in reading.spec.kept if isinstance(v.owner.op, ModelFreeRV | ModelPotential)}
    unknowns = {unknown.name: unknown.variable for unknown in reading.rows.unknowns}
    return frozenset(
        name for name, unknown in unknowns.items() if not any(unknown in above([prior]) for v, prior in priors.items() if v is not unknown)
    )


def kernel_and_blocks(task: Task, reading: Reading, absolute: bool = False) -> tuple[Kernel, tuple[Block, ...]]:
    """The kernel of a chain, and the blocks that it updates in one sweep, or a refusal; ``absolute`` as for ``kernel_of``."""
    request, rows, public = task.mechanism, reading.rows, reading.public
    assert isinstance(request, Gibbs | Annealing)
    if task.neighbours != "replace":
        raise Refusal(
            'Gibbs sweeps show how many records there are, because each is asked at every update. Write neighbours="replace", or draw with'
            " PosteriorSample."
        )
    check_finite(rows)
    kernel = kernel_of(rows, public, reading.latents, reading.prior, request.points, absolute)
    touching = set(above([part.rows.density for part in kernel.parts]))
    for unknown, stand_in in zip(rows.unknowns, rows.stand_ins, strict=True):
        operation = unknown.variable.owner.inputs[0].owner.op
        if operation.ndim_supp and (type(operation) not in SIMPLICES or stand_in in touching):
            raise Refusal(
                f"The entries of {unknown.name} depend on each other, so they have no grid of their own. Write numbers in its place; a"
                " pm.Dirichlet may say how frequent the levels of latents are."
            )
    blocks, rng = _with_steps(request.steps, kernel, rows, unknowns_without_children(reading)), fixed_generator()
    for block in [block for block in blocks if block.latent is not None] * TRIALS:
        check_prior(kernel, block, *made_up_states(kernel, block, rng))
    return kernel, blocks


def made_up_states(kernel: Kernel, block: Block, rng: Generator) -> tuple[State, State]:
    """Two states that differ in one latent, at made-up numbers: always the same, whatever the records."""
    numbers = np.concatenate([np.ravel(value) for value in made_up(kernel.unknowns, rng).values()])
    state = State(numbers, tuple(rng.integers(latent.levels, size=length_of(kernel, latent)) for latent in kernel.latents))
    return state, state_after(kernel, block, state, rng.integers(block.options, size=block.rows))


def length_of(kernel: Kernel, latent: Latent) -> int:
    """How many entries a latent has."""
    return kernel.public.many if latent.sites is None else prod(latent.sites.shape)


def check_size(kernel: Kernel) -> None:
    """Refuse scores that could not be added up."""
    if kernel.public.many * kernel.largest + NEVER * kernel.temper * NAT > LARGEST_SUM / 8:
        raise Refusal("epsilon is so small, or a log-likelihood so large, that scores do not fit 64-bit integers. Narrow the priors.")


def _with_steps(steps: Sequence[Barker], kernel: Kernel, rows: Rowwise, alone: Collection[str]) -> tuple[Block, ...]:
    """What is updated in one sweep. Unknowns that steps are for move last, those of one step together, or each for itself where all the
    entries of a vector are updated at once.
    """
    by_name = _blocks(kernel, rows, alone)
    named = [name for step in steps for name in step.names]
    for name in named:
        if name not in by_name:
            raise Refusal(f"A step is for unknowns of the model, and {name} is none. Write {' or '.join(by_name)}, or leave it out.")
        if not all(block.sensitivity for block in by_name[name]) or by_name[name][0].latent is not None:
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
        blocks.append(_priced(kernel, block))
    return tuple(blocks)


def _blocks(kernel: Kernel, rows: Rowwise, alone: Collection[str]) -> dict[str, list[Block]]:
    """What is updated in one sweep, by name and in order, and how far a record can move each."""
    touching = set(above([part.rows.density for part in kernel.parts]))
    blocks: dict[str, list[Block]] = {}
    for k, latent in enumerate(kernel.latents):
        blocks[latent.name] = [_priced(kernel, Block(latent.name, length_of(kernel, latent), latent.levels, latent=k))]
    start = 0
    for unknown, stand_in in zip(rows.unknowns, rows.stand_ins, strict=True):
        places = tuple(range(start, start + unknown.size))
        start += unknown.size
        several = _of_unknown(kernel, unknown, stand_in, places, unknown.name in alone)
        blocks[unknown.name] = [_priced(kernel, block) for block in several] if stand_in in touching else several
    return blocks


def _priced(kernel: Kernel, block: Block) -> Block:
    """A block with how far a record can move it."""
    return replace(block, sensitivities=sensitivities_of(kernel, block))


def _of_unknown(kernel: Kernel, unknown: Unknown, stand_in: Variable, places: tuple[int, ...], alone: bool) -> list[Block]:
    """The blocks of one unknown: pairs that share a sum, all entries together, or each by itself."""
    name, points = unknown.name, kernel.grids.shape[1]
    if unknown.variable.owner.inputs[0].owner.op.ndim_supp:
        pairs, last = zip(np.ndindex(*unknown.shape), places, strict=True), unknown.shape[-1] - 1
        return [Block(f"{name}{list(at)}", 1, points, (), (k,), shared=k + 1) for at, k in pairs if at[-1] < last]
    indexes = {reads_one_entry(part.rows, stand_in) for part in kernel.parts if stand_in in set(above([part.rows.density]))}
    index = indexes.pop() if len(indexes) == 1 else None
    opened = kernel.open is not None and stand_in in set(above([kernel.open.density]))
    if index is not None and alone and not opened:
        return [Block(name, unknown.size, points, (), places, index)]
    labels = [f"[{', '.join(map(str, at))}]" for at in np.ndindex(*unknown.shape)] if unknown.shape else [""]
    return [Block(f"{name}{label}", 1, points, (), (place,)) for label, place in zip(labels, places, strict=True)]


def reads_one_entry(rows: Rowwise, stand_in: Variable) -> Variable | None:
    """The placeholder that says which entry of a vector of unknowns each record reads, with one place for each record; None if there is
    none, or if records read several entries.

    Given everything else the entries are then independent, if their prior is, and an update draws them together. An index that all
    records share, such as an order or that of a mean, is none: through it each of them reads several.
    """
    by_record = {*rows.values, *(placeholder.variable for placeholder, _ in rows.inputs if placeholder.axis == 0)}
    indexes: set[Variable] = set()
    for variable in above([rows.density]):
        if variable.owner is None or stand_in not in variable.owner.inputs:
            continue
        operation, inputs = variable.owner.op, variable.owner.inputs
        if not isinstance(operation, AdvancedSubtensor) or operation.idx_list != (0,) or inputs[0] is not stand_in or len(inputs) != 2:
            return None
        index = inputs[1]
        while is_cast(index):
            index = index.owner.inputs[0]
        if index not in by_record or index.type.ndim != 1:
            return None
        indexes.add(index)
    return indexes.pop() if len(indexes) == 1 and stand_in.type.ndim == 1 else None
