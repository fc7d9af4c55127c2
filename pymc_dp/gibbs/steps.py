"""``gibbs_steps``: which variables of a model can be drawn from their exact conditional, and the PyMC step methods that do it.

What is not recognised is left to PyMC, which assigns its own steps.
"""

from collections.abc import Iterable, Mapping
from math import prod

import numpy as np
import pymc as pm
from pymc.step_methods.compound import BlockedStep
from pytensor.graph.basic import Variable

from pymc_dp.gibbs.conditional import Point, factors, fixed_generator, initial_point_of
from pymc_dp.gibbs.conjugate import Block, Conjugate, compiled_block, conditional, recognised_block
from pymc_dp.gibbs.latents import Latent
from pymc_dp.gibbs.states import ForwardBackward
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.calls import explained

TOGETHER = 50
"""Entries of several variables that are drawn jointly, at most."""
INDEPENDENT = 1e-9
"""A partial correlation below this is rounding."""


@explained
def gibbs_steps(
    model: pm.Model | None = None, vars: Iterable[Variable | str] | None = None, *, compile_kwargs: Mapping[str, object] | None = None
) -> list[BlockedStep]:
    """Steps that draw variables of a model from their exact conditionals: ``pm.sample(step=pymc_dp.gibbs_steps())``.

    Latent chains, trees and mixtures of discrete variables are drawn all at once. Continuous variables are drawn where their conditional
    is Beta, Dirichlet, Gamma, inverse Gamma, generalized inverse Gaussian or normal; normal ones that depend on each other are drawn
    together. The conditionals are read from the model's graph, so any model will do, private or not. Where a private model knows its
    noise, counts without noise are drawn in between. PyMC assigns its own steps to the other variables.

    Parameters
    ----------
    model : pm.Model, optional
        The model in context if left out.
    vars : iterable of variables or names, optional
        Free variables to look at; all if left out.
    compile_kwargs : mapping, optional
        The argument ``compile_kwargs`` of PyMC's own steps.

    Returns
    -------
    list of step methods
        Empty where nothing is recognised.

    Raises
    ------
    Refusal
        When ``vars`` names what is no free variable of the model.

    Examples
    --------
    >>> private = pmdp.privatize(model, epsilon=1.0)
    >>> steps = pmdp.gibbs_steps(private)  # for pm.sample(step=steps, model=private)
    >>> [step.name for step in steps]
    ['conjugate']
    """
    model = pm.modelcontext(model)
    chosen = model.free_RVs if vars is None else [model[variable] if isinstance(variable, str) else variable for variable in vars]
    if not set(chosen) <= set(model.free_RVs):
        raise Refusal("vars must be free variables of the model. Write for example gibbs_steps(model, vars=['theta']).")
    start, settings = initial_point_of(model), dict(compile_kwargs or {})
    discrete = [variable for variable in chosen if np.asarray(start[model.rvs_to_values[variable].name]).dtype.kind != "f"]
    steps: list[BlockedStep] = _of_states(model, discrete, start, settings)
    for several, block in _blocks(model, [variable for variable in chosen if variable not in discrete], start, settings):
        steps.append(Conjugate(several, model=model, block=block))
    return steps


def _of_states(model: pm.Model, randoms: list[Variable], start: Point, settings: dict[str, object]) -> list[BlockedStep]:
    """All discrete variables at once if they can be, or each that can be."""
    if not randoms:
        return []
    try:
        return [ForwardBackward(randoms, model=model, initial_point=start, compile_kwargs=settings)]
    except Refusal:
        if len(randoms) == 1:
            return []
    return [step for variable in randoms for step in _of_states(model, [variable], start, settings)]


def _blocks(model: pm.Model, randoms: list[Variable], start: Point, settings: dict[str, object]) -> list[tuple[list[Variable], Block]]:
    """Each variable by itself if its conditional has a form; and normal ones together that depend on each other."""
    model_factors = factors(model)

    def size(several: list[Variable]) -> int:
        return sum(prod(np.shape(start[model.rvs_to_values[variable].name])) for variable in several)

    blocks: list[tuple[list[Variable], Block, list[Latent]]] = []
    for variable in randoms:
        easy = recognised_block(model, [variable], start, model_factors)
        if easy is None:
            continue
        several, (block, behind) = [variable], easy
        for k, (others, other, _) in reversed(list(enumerate(blocks))):
            if "normal" not in block.form.name or "normal" not in other.form.name or size(others + several) > TOGETHER:
                continue
            together = recognised_block(model, others + several, start, model_factors)
            if together is not None and _coupled(together[0], size(others), start):
                several, (block, behind) = others + several, together
                del blocks[k]
        blocks.append((several, block, behind))
    return [(several, compiled_block(block, model, several, model_factors, behind, **settings)) for several, block, behind in blocks]


def _coupled(block: Block, first: int, start: Point) -> bool:
    """Whether the first entries of a jointly normal block depend on the others."""
    precision = conditional(block, start, fixed_generator())[0][:, 1:]
    sizes = np.sqrt(np.diag(precision))
    return bool((np.abs(precision / sizes / sizes[:, None])[:first, first:] > INDEPENDENT).any())
