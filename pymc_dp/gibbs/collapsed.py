"""Latent chains whose transition probabilities are summed out: their log-density, and a step that draws all states.

With Dirichlet rows of transitions the states alone have a law in which every transition depends on all others. It is sampled without
giving that up: transitions are drawn given the states, all states given them, and the transitions are forgotten. That leaves the
law of the states unchanged, and moves whole chains where one state after another would get stuck.

Shapes: R chains, T steps, K states.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.random import Generator
from pymc.blocking import PointType, StatsType
from pymc.util import RandomGenerator, get_random_generator
from pytensor.graph.basic import Variable

from pymc_dp.gibbs.blocks import Block, block
from pymc_dp.gibbs.conditional import PROBE, Point, compiled, factors, fixed_generator, initial_point_of
from pymc_dp.gibbs.conjugate_forms import log_gamma
from pymc_dp.gibbs.exact import ExactStep
from pymc_dp.gibbs.states import misfit, potentials, reading
from pymc_dp.privacy.accounting import Refusal

ROUNDING = 1e-8


def collapsed_transitions(states: Variable, many: int, concentration: float = 1.0) -> Variable:
    """Log-density of chains of states, the rows of their common transition probabilities being Dirichlet and summed out.

    Parameters
    ----------
    states : (..., T) tensor
        From 0 to many - 1; the first states are given.
    many : int
        K.
    concentration : float
        Of the symmetric Dirichlet law of each row.

    Returns
    -------
    scalar tensor
        For ``pm.Potential``.
    """
    moves = (states[..., :-1] * many + states[..., 1:]).flatten()
    counts = pt.eq(moves[:, None], np.arange(many**2)).sum(axis=0).reshape((many, many)).astype("float64")
    rows = pt.gammaln(counts + concentration).sum(axis=1) - pt.gammaln(counts.sum(axis=1) + many * concentration)
    return rows.sum()


class CollapsedForwardBackward(ExactStep):
    """Draws all states of chains whose transition probabilities are summed out.

    Parameters
    ----------
    vars : list of one Variable
        The states, (R, T) or (T,), discrete and from 0 on.
    transitions : str
        Name of the potential that is ``collapsed_transitions`` of them, the only factor that ties them together.
    concentration : float
        As given there.
    model, rng, initial_point, compile_kwargs, blocked
        As for PyMC's own steps.

    Raises
    ------
    Refusal
        Where the potential says something else, or states are tied together by another factor.
    """

    name = "collapsed_forward_backward"

    def __init__(
        self,
        vars: Sequence[Variable],
        transitions: str,
        *,
        concentration: float = 1.0,
        model: pm.Model | None = None,
        rng: RandomGenerator = None,
        initial_point: PointType | None = None,
        compile_kwargs: Mapping[str, Any] | None = None,
        blocked: bool = True,
    ) -> None:
        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(variable, variable) for variable in vars]
        [value] = self.vars
        random, potential = model.values_to_rvs[value], model[transitions]
        start = initial_point_of(model) if initial_point is None else initial_point
        self.block = block(model, [random], {}, start, without=[potential], **(compile_kwargs or {}))
        many = set(self.block.layout.many.tolist())
        if len(self.block.of_double) or len(many) > 1 or self.block.layout.lowest.any():
            raise Refusal(f"States of {random.name} are tied together by more than {transitions!r}. Draw them with ForwardBackward.")
        [self.many] = many
        self.concentration = concentration
        _check_potential(model, value, potential, self.many, concentration, start)
        self.rng = get_random_generator(rng)

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """One draw of transitions, and then of all states."""
        [name] = self.block.layout.names
        drawn, off = sweep(self.block, point, self.many, self.concentration, self.rng)
        return {**point, name: drawn}, [{"misfit": off}]


def _check_potential(model: pm.Model, value: Variable, potential: Variable, many: int, concentration: float, start: Point) -> None:
    """A potential is what it should be, at made-up states."""
    split = factors(model)
    [theirs] = [term for term, whose in zip(split.terms, split.of, strict=True) if whose is potential]
    gap = theirs.sum() - collapsed_transitions(value, many, concentration)
    function, rng = compiled(model, [value], [gap], mode=PROBE), fixed_generator()
    shape, dtype = np.shape(start[value.name]), np.asarray(start[value.name]).dtype
    gaps = [function(start, rng.integers(many, size=shape).astype(dtype))[0] for _ in range(8)]
    if not np.ptp(gaps) < ROUNDING * (1 + np.prod(shape)):
        raise Refusal(
            f"The potential {potential.name!r} is not collapsed_transitions of {value.name} with concentration {concentration:g}."
            " Write pm.Potential(name, collapsed_transitions(states, many, concentration)), and the same concentration here."
        )


def sweep(known: Block, point: Point, many: int, concentration: float, rng: Generator) -> tuple[np.ndarray, float]:
    """States from a kernel that leaves their law unchanged, given everything else, and how far the model was off."""
    from pymc_dp.gibbs import loops  # which imports numba, in half a second

    [name] = known.layout.names
    present = np.asarray(point[name])
    T, S = present.shape[-1], present.size
    counts = np.zeros((many, many))
    np.add.at(counts, (present[..., :-1].ravel(), present[..., 1:].ravel()), 1)
    logs = log_gamma(counts + concentration, rng)
    tables = (logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))[None]
    read = reading(known, point)
    unary, _, groups = potentials(known, read)
    sites = np.arange(S)
    parent = np.where(sites % T, sites - 1, -1)
    states = loops.drawn(unary[np.argsort(known.order)], tables, np.zeros_like(sites), parent, rng.random(S))
    if not len(states):
        raise ArithmeticError("No state is possible at some site, given the other variables.")
    arrays = known.layout.arrays(states)
    return arrays[0], misfit(known, read, groups, arrays, states[known.order])
