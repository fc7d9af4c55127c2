"""A step that draws all states of latent chains, trees or mixtures at once, however the model is written.

``blocks`` says how the numbers of a model are read off the user's own graph, and ``chains`` draws. In every sweep what was read is compared
with the graph at the states that were drawn, so a table that is the same no longer is an error, not a wrong draw.

Shapes: S sites, K states, M tables, G groups of numbers that are the same table, E numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from numpy.random import Generator
from pymc.blocking import PointType, StatsType
from pymc.util import RandomGenerator, get_random_generator
from pytensor.graph.basic import Variable

from pymc_dp.gibbs.blocks import Block, block
from pymc_dp.gibbs.conditional import Point, fixed_generator, initial_point_of, jittered
from pymc_dp.gibbs.exact import ExactStep
from pymc_dp.privacy.accounting import Refusal

TOLERANCE = 1e-9
"""How well what was read must agree with the graph, beside the largest number of it."""
TRIALS = 2
"""How many sweeps are tried at made-up points before a step is handed out."""


class Reading(NamedTuple):
    """Numbers of a model at a point.

    Attributes
    ----------
    single, double : Callable
        ``Block.single`` and ``Block.double`` at the point.
    numbers : (K, E) ndarray
        Those of ``single``, were its site in each state.
    seen : (D E,) ndarray
        Those of ``double``, at ``Block.designs``.
    """

    single: Callable[..., Sequence[np.ndarray]]
    double: Callable[..., Sequence[np.ndarray]]
    numbers: np.ndarray
    seen: np.ndarray


def reading(block: Block, point: Point) -> Reading:
    """Read them off the model's own graph."""
    single, double = block.single.at(point), block.double.at(point)
    numbers = np.array([single(*values)[0] for values in block.everywhere])
    seen = [double(*values)[0] for values in block.designs]
    return Reading(single, double, numbers, seen[0] if len(seen) == 1 else np.concatenate([np.zeros(0), *seen]))


def potentials(block: Block, read: Reading) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What was read, added up: the log-density of the model is the sum of these at the states, but for a constant.

    Returns
    -------
    unary : (S, K) ndarray
        Of each site, by places.
    tables : (M, K, K) ndarray
        Between a parent's state and a site's: see ``Block.table``.
    groups : (G, K, K) ndarray
        The tables of the numbers of ``Block.double``.

    Raises
    ------
    ArithmeticError
        Where one of a pair of states is no number.
    """
    from pymc_dp.gibbs import loops  # which imports numba, in half a second

    return loops.assembled(read.numbers, read.seen, *block.sources)


def sweep(block: Block, point: Point, rng: Generator) -> tuple[list[np.ndarray], float]:
    """Values of the variables, their states drawn from their joint conditional given everything else, and how far the model was off.

    Raises
    ------
    ArithmeticError
        Where no state is possible, or the numbers are no longer what they were when the step was made: data of another pattern, say.
    """
    from pymc_dp.gibbs import loops

    read, uniforms = reading(block, point), rng.random(len(block.order))
    where = (block.table, block.parent, block.order, block.layout.lowest)
    states, values, groups = loops.sweep(read.numbers, read.seen, uniforms, *block.sources, *where)
    if not len(states):
        raise ArithmeticError("No state is possible at some site, given the other variables.")
    drawn = block.layout.split(values)
    return drawn, misfit(block, read, groups, drawn, states)


def misfit(block: Block, read: Reading, groups: np.ndarray, drawn: list[np.ndarray], states: np.ndarray) -> float:
    """How far what was read is off the model's own graph at values with these states (S,), by places.

    Raises
    ------
    ArithmeticError
        Where the model no longer has the form that it had.
    """
    from pymc_dp.gibbs import loops

    [ones], [pairs] = read.single(*drawn), read.double(*drawn)
    off = loops.misfit(ones, pairs, states, read.numbers, block.of_single, groups, block.group, block.of_double)
    if off > TOLERANCE:
        raise ArithmeticError("The model no longer has the form that it had when the step was made. Make the step after pm.set_data.")
    return off


# ---------- the step
class ForwardBackward(ExactStep):
    """Draws all states of latent chains, trees or mixtures from their exact joint conditional.

    Forward filtering and backward sampling, on any discrete variables of a model whose log-density is a sum of numbers of one or two of
    their entries: independent mixtures; Markov chains by ``pymc_extras.DiscreteMarkovChain``, by one ``pm.Categorical`` a step, by a
    ``pm.CustomDist``, or by a ``pm.Potential`` on transitions; hidden Markov trees. Emissions are any likelihood that has one factor a
    step, or one an observation.

    Parameters
    ----------
    vars : list of Variable
        Discrete variables of the model, or their values.
    model : pm.Model, optional
    states : mapping, optional
        From names to numbers of states, where PyMC does not know them: of a ``pm.CustomDist``.
    rng, initial_point, compile_kwargs, blocked
        As for PyMC's own steps.

    Raises
    ------
    Refusal
        Where the variables cannot be drawn together.
    """

    name = "forward_backward"

    def __init__(
        self,
        vars: Sequence[Variable],
        *,
        model: pm.Model | None = None,
        states: Mapping[str, int] | None = None,
        rng: RandomGenerator = None,
        initial_point: PointType | None = None,
        compile_kwargs: Mapping[str, Any] | None = None,
        blocked: bool = True,
    ) -> None:
        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(variable, variable) for variable in vars]
        randoms = [model.values_to_rvs[value] for value in self.vars]
        start = initial_point_of(model) if initial_point is None else initial_point
        self.block = block(model, randoms, states or {}, start, **(compile_kwargs or {}))
        tried = fixed_generator()
        for _ in range(TRIALS):
            try:
                sweep(self.block, jittered(start, tried), tried)
            except ArithmeticError as reason:
                names = ", ".join(str(random.name) for random in randoms)
                raise Refusal(f"{names} cannot be drawn together: {reason} Leave them to another step of PyMC.") from None
        self.rng = get_random_generator(rng)

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """One draw of all states."""
        drawn, off = sweep(self.block, point, self.rng)
        return {**point, **dict(zip(self.block.layout.names, drawn, strict=True))}, [{"misfit": off}]
