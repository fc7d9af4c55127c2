"""How much probability the priors put beyond the bounds, computed before anything is paid for; ``inspect`` shows it.

No record is read, nor any array of a likelihood, private or public. Of arrays and numbers only those above priors are used: they stay in
the private model and are published with it, and the same table lists them.
"""

from collections.abc import Mapping

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor import config
from pytensor.graph.basic import Variable

from pymc_dp.models.spec import Likelihood, ModelSpec, Placeholder
from pymc_dp.models.structure import Unreduced, substitute
from pymc_dp.plans.bounds import Bounded, covariate_bounds, ends_of, pairs_of, predictor_name
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.guard import quiet
from pymc_dp.private_models.rewrite import without_likelihoods

DRAWS, ROWS = 400, 24
"""Draws from the priors, and rows of every draw, over which levels of indices and covariates take turns."""
SEED = 0
"""The seed of the draws, so that one model always gets the same answer."""


def outside_by_prior(spec: ModelSpec, bounds: Mapping[str, object]) -> dict[str, float]:
    """The prior probability that a value lies beyond its bounds, by name of the observed variable, or of its linear predictor.

    Covariates are in the middle of their bounds, or at each of their levels, and public indices at their first. What rests on other public
    arrays, whose values ``inspect`` does not read, is left out, and so is what PyMC cannot draw. Potentials are not heard.

    Parameters
    ----------
    spec : ModelSpec
    bounds : mapping
        By name, as the user gave them.
    """
    wanted, parameters = [], {}
    for likelihood in spec.likelihoods:
        linked = likelihood.linear is not None and likelihood.linear.link and predictor_name(likelihood) in bounds
        if likelihood.refusal is not None or likelihood.aggregate or likelihood.again is None or not (linked or likelihood.name in bounds):
            continue
        try:
            name, core = (predictor_name(likelihood), 0) if linked else (likelihood.name, likelihood.levels)
            entries = (core,) if core and likelihood.distribution == "MvNormal" else likelihood.columns if pairs_of(bounds[name]) else ()
            lower, upper = ends_of(name, bounds[name], entries, whole=False)
            rows = _rows(likelihood, covariate_bounds(likelihood, bounds))
        except (Refusal, Unreduced):  # the table says what is wrong with them
            continue
        if rows is not None:
            wanted.append((likelihood, bool(linked), lower, upper))
            parameters[likelihood.name] = [substitute(parameter, rows) for parameter in likelihood.parameters]
    if not wanted:
        return {}
    _, parameters = without_likelihoods(spec, parameters)
    shares = {}
    for likelihood, linked, lower, upper in wanted:
        values = _drawn(likelihood, parameters[likelihood.name], linked)
        if values is not None:
            name = predictor_name(likelihood) if linked else likelihood.name
            shares[name] = float(np.mean((values < lower) | (values > upper)))
    return shares


def drawn_together(variables: list[Variable]) -> list[np.ndarray]:
    """Values of variables of a model at the same draws from its priors, one draw along the first axis."""
    with config.change_flags(mode="FAST_COMPILE", cxx=""):  # the mode of loops inside, too: nothing waits for a compiler
        return pm.draw(variables, draws=DRAWS, random_seed=SEED)


def _drawn(likelihood: Likelihood, parameters: list[Variable], linked: bool) -> np.ndarray | None:
    """Values of an observed variable, or of its linear predictor, by the priors."""
    try:
        if linked:
            variable = parameters[0]
        else:
            assert likelihood.again is not None
            with quiet():  # operations that are made anew warn
                variable = likelihood.again(*parameters)
        (values,) = drawn_together([variable])
    except Exception:  # a prior of the user's own that cannot be drawn from, or draws at which nothing is defined
        return None
    if not linked:
        return values
    from scipy.special import logit  # not with the package: import is to be light

    with np.errstate(all="ignore"):
        return logit(values) if likelihood.linear.link == "logit" else np.log(values)  # type: ignore[union-attr]


def _rows(likelihood: Likelihood, covariates: Mapping[str, Bounded]) -> dict[Variable, Variable] | None:
    """What stands for the records in a likelihood's parameters; None where that is not known beforehand."""
    rows = {}
    for placeholder in likelihood.inputs:
        values = _values(placeholder, covariates.get(placeholder.name))
        if values is None:
            return None
        rows[placeholder.variable] = pt.constant(values.astype(placeholder.variable.type.dtype))
    return rows


def _values(placeholder: Placeholder, bounded: Bounded | None) -> np.ndarray | None:
    """One array of ROWS rows, of the shape of what it stands for."""
    shape = tuple(ROWS if axis == placeholder.axis else length for axis, length in enumerate(placeholder.variable.type.shape))
    if placeholder.axis is None or None in shape:
        return None
    turn = np.arange(ROWS).reshape([-1 if axis == placeholder.axis else 1 for axis in range(len(shape))])
    if bounded is not None and bounded.levels is not None:
        return np.broadcast_to(np.asarray(bounded.levels)[turn % len(bounded.levels)], shape)
    if bounded is not None:
        middle = (bounded.lower + bounded.upper) / 2
        return np.broadcast_to(np.rint(middle) if placeholder.whole else middle, shape)
    if placeholder.index:
        return np.broadcast_to(turn % (placeholder.levels or 1), shape)
    return None
