"""A latent variable of which each record reads one entry by an index: a chain of months that many events share, say.

Its entries are sites. Which site a record reads rests on the index, which may be private; what a site is likely to be given the other
sites rests on the prior alone, and is read off the user's own graph by ``gibbs.blocks``, whatever the spelling of the chain.

Shapes: N records, S sites, K states.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import pymc as pm
import pytensor
from numpy.random import Generator
from pytensor.graph.basic import Variable

from pymc_dp.gibbs.blocks import Block, block
from pymc_dp.gibbs.conditional import Point
from pymc_dp.gibbs.sites import NOBODY
from pymc_dp.gibbs.states import potentials, reading
from pymc_dp.models.bounded_priors import TrimmedDirichletRV
from pymc_dp.models.latent_index import entry_read
from pymc_dp.models.structure import above
from pymc_dp.models.unknowns import Unknown
from pymc_dp.privacy.accounting import Refusal


@dataclass(frozen=True)
class Sites:
    """The entries of a latent variable.

    Attributes
    ----------
    shape : tuple of int
    reads : Variable
        (N,): what says which of them each record reads (``entries.entry_read``), on the placeholders of the index.
    prior : Block
        How the prior of the sites is read.
    rounds : tuple of ndarray of int
        Sites that are drawn together: given all others, none rests on another of the same round.
    """

    shape: tuple[int, ...]
    reads: Variable
    prior: Block
    rounds: tuple[np.ndarray, ...]

    def of_records(self, exact: Mapping[Variable, np.ndarray], many: int) -> np.ndarray:
        """Which site each record reads: (N,), computed without touching any cache on disk."""
        inputs = [variable for variable in exact if variable in set(above([self.reads]))]
        with pytensor.config.change_flags(numba__cache=False):
            function = pytensor.function(inputs, self.reads, mode="FAST_COMPILE")
        return np.broadcast_to(entry_read(function(*(exact[variable] for variable in inputs)), prod(self.shape)), many)

    def log_densities(self, point: Point, several: Sequence[np.ndarray]) -> list[float]:
        """Log-densities of states (S,) of all sites together, up to a constant: what ``given_others`` takes the prior to be."""
        prior = self.prior
        unary, tables, _ = potentials(prior, reading(prior, point))
        below, result = np.flatnonzero(prior.parent != NOBODY), []
        for states in several:
            placed = states[prior.order]
            pairs = tables[prior.table[below], placed[prior.parent[below]], placed[below]]
            result.append(float(unary[np.arange(len(placed)), placed].sum() + pairs.sum()))
        return result

    def given_others(self, point: Point, states: np.ndarray) -> np.ndarray:
        """Log-densities (S, K) of every site in every state, up to a constant, were the others in these states (S,)."""
        prior = self.prior
        unary, tables, _ = potentials(prior, reading(prior, point))
        placed, result = states[prior.order], unary.copy()
        below = np.flatnonzero(prior.parent != NOBODY)
        parent, rows = prior.parent[below], np.arange(len(below))
        tables = tables[prior.table[below]]
        result[below] += tables[rows, placed[parent]]
        np.add.at(result, parent, tables[rows, :, placed[below]])
        return result[np.argsort(prior.order)]


def made_up(unknowns: Sequence[Unknown], rng: Generator) -> dict[str, np.ndarray]:
    """Numbers that the prior allows, by name: half of the time, half of them at an end of their support."""
    values, ends = {}, rng.choice([0.0, 0.5])
    for unknown in unknowns:
        random, inner = unknown.variable.owner.inputs[0], rng.uniform(size=unknown.size)
        inner = np.where(rng.random(unknown.size) < ends, np.rint(inner), inner)
        value = unknown.lower + inner * (unknown.upper - unknown.lower)
        if random.owner.op.ndim_supp:
            smallest = random.owner.op.smallest if isinstance(random.owner.op, TrimmedDirichletRV) else 0.0
            shares = 0.01 + inner.reshape(unknown.shape)
            value = smallest + (1 - shares.shape[-1] * smallest) * shares / shares.sum(axis=-1, keepdims=True)
        values[unknown.name] = value.reshape(unknown.shape)
    return values


def sites_of(model: pm.Model, name: str, levels: int, unknowns: Sequence[Unknown], parameter: Variable, start: Point) -> Sites:
    """The sites of a latent variable.

    Parameters
    ----------
    model : pm.Model
        The prior, without transforms.
    parameter : Variable
        What says which entry each record reads, on placeholders.
    start : mapping
        Values that the prior allows.

    Raises
    ------
    Refusal
        Where the prior of a site rests on more than pairs of sites, or pairs form a circle.
    """

    def near(point: Point, rng: Generator) -> dict[str, np.ndarray]:
        return {**point, **made_up(unknowns, rng)}

    try:
        prior = block(model, [model[name]], {name: levels}, start, near=near, mode="FAST_COMPILE")
    except Refusal:
        raise Refusal(
            f"The prior of {name} ties three of its entries together, or pairs of them in a circle. Write a chain or a tree, each entry"
            " resting on one other, or put the entries that belong together in one variable of more states."
        ) from None
    depth = np.zeros(prod(np.shape(start[name])), dtype=np.int64)
    for place, parent in enumerate(prior.parent):
        depth[place] = 0 if parent == NOBODY else depth[parent] + 1
    by_site = np.empty_like(depth)
    by_site[prior.order] = depth % 2
    rounds = tuple(np.flatnonzero(by_site == side) for side in (0, 1))
    return Sites(np.shape(start[name]), parameter, prior, tuple(places for places in rounds if len(places)))
