"""Where chains start if the likelihood has no density at the means of the priors: probabilities above 1, negative rates.

What is computed here rests on priors, on public inputs and on the levels of private ones, not on what was released.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_dp.models.structure import above

MARGINS = (0.1, 0.01, 0.001)
"""How far inside a start is looked for, in units of what is compared: the largest that can be had."""
HALVINGS = 30
"""Of a jitter that leads to where there is no density."""

type Point = dict[str, np.ndarray]


def start_where_possible(private: pm.Model, excesses: Sequence[Variable]) -> None:
    """Move the initial values of a private model to where it has a density, if it has none where they are.

    Parameters
    ----------
    private : pm.Model
    excesses : sequence of Variable
        What ``possible`` gives: numbers that must be above 0. Squares of what they lack are made small: where they are linear in the
        unknowns a start is found if there is one. Where none is found initial values stay as they are, and PyMC says that it cannot start.
    """
    excesses = list(private.replace_rvs_by_values(list(excesses)))
    tops = set(above(excesses))
    moved = [v for v in private.free_RVs if private.rvs_to_values[v] in tops and v.type.dtype.startswith("float")]
    values = [private.rvs_to_values[variable] for variable in moved]
    inputs = [private.rvs_to_values[variable] for variable in private.free_RVs]
    how = {"mode": "FAST_COMPILE", "on_unused_input": "ignore"}
    least = pm.compile(inputs, pt.min(pt.stack([pt.min(excess) for excess in excesses])), **how)
    start = private.initial_point(0)
    if not moved or least(**start) > 0:
        return
    margin = pt.scalar("margin", dtype="float64")
    lack = pt.sum(pt.stack([pt.sum(pt.sqr(pt.maximum(margin - excess, 0.0))) for excess in excesses]))
    squares = pm.compile([*inputs, margin], [lack, *pt.grad(lack, values)], **how)
    for k in MARGINS:
        found = _least_lack(partial(squares, margin=k), start, [value.name for value in values])
        if least(**found) > 0:
            own = [_in_own_units(private, variable) for variable in moved]
            for variable, value in zip(moved, pm.compile(inputs, own, **how)(**found), strict=True):
                private.set_initval(variable, value)
            return


def _least_lack(squares: Callable[..., list[np.ndarray]], start: Point, names: Sequence[str]) -> Point:
    """The point at which least is lacking, over the values of these names."""
    from scipy.optimize import minimize  # not with the package: import is to be light

    shapes = [np.shape(start[name]) for name in names]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

    def point(flat: np.ndarray) -> Point:
        parts = np.split(flat, ends[:-1])
        return start | {name: part.reshape(shape) for name, part, shape in zip(names, parts, shapes, strict=True)}

    def both(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, *slopes = squares(**point(flat))
        return float(value), np.concatenate([np.ravel(slope) for slope in slopes])

    return point(minimize(both, np.concatenate([np.ravel(start[name]) for name in names]), jac=True, method="L-BFGS-B").x)


def _in_own_units(private: pm.Model, variable: Variable) -> Variable:
    """An unknown as its prior has it, from the values that samplers see."""
    value, transform = private.rvs_to_values[variable], private.rvs_to_transforms[variable]
    return value if transform is None else private.replace_rvs_by_values([transform.backward(value, *variable.owner.inputs)])[0]


def nearer(density: Callable[[np.ndarray], float], jittered: np.ndarray, start: Callable[[], np.ndarray]) -> np.ndarray:
    """A jittered point, or, where there is no density, one on the way back to the start that it was jittered from."""
    if np.isfinite(density(jittered)):
        return jittered
    begun = start()
    for k in range(1, HALVINGS):
        point = begun + (jittered - begun) * 0.5**k
        if np.isfinite(density(point)):
            return point
    return begun


def stopped_at(private: pm.Model) -> str:
    """What to do where chains fare badly because they run against values without a density; empty where there are none."""
    names = getattr(private, "stopped", ())
    if not names:
        return ""
    return (
        f" The likelihood of {' and of '.join(names)} has no density at some values that the priors allow, where chains are stopped: give"
        " its parameters priors that keep inside, as pm.Beta and pm.HalfNormal do, or a link, as pm.math.sigmoid or pm.math.exp."
    )
