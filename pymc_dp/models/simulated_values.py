"""New values of an observed variable, simulated from its likelihood for made-up rows; with unknowns from the priors unless others are
given.
"""

from collections.abc import Mapping

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.model.fgraph import ModelDeterministic, ModelNamed, ModelVar
from pytensor.graph.basic import Variable, clone_get_equiv
from pytensor.graph.fg import FunctionGraph

from pymc_dp.models.spec import Likelihood
from pymc_dp.models.structure import substitute
from pymc_dp.privacy.guard import quiet


def distribution_on(likelihood: Likelihood, known: dict[Variable, Variable], length: int) -> Variable:
    """The values of an observed variable on so many rows, as a random variable: ``known`` says what stands in place of its inputs."""
    batch, values = (length, *likelihood.columns), []
    for parameter, core in zip(likelihood.parameters, likelihood.core_ndims, strict=True):
        value = substitute(parameter, known, (ModelDeterministic, ModelNamed))
        dtype = value.type.dtype if value.type.dtype.startswith("int") else "float64"
        values.append(value.astype(dtype) + np.zeros(batch + (1,) * core, dtype=dtype))
    assert likelihood.again is not None
    with quiet():  # operations that are made anew warn
        return likelihood.again(*values)


def drawn_by_priors(
    likelihood: Likelihood, known: Mapping[Variable, tuple[np.ndarray, int | None]], length: int, draws: int, copies: int, seed: int
) -> np.ndarray | None:
    """Values (draws, copies, length, ...) of an observed variable: at every draw of the priors several on the same rows.

    No record is read: ``known`` says what stands for every input, and along which axis of it rows lie. Potentials are not heard. None where
    a prior cannot be drawn from, as an improper one, or where something is not defined at its draws.
    """
    rows = {variable: pt.constant(_repeated(value, axis, copies, variable)) for variable, (value, axis) in known.items()}
    try:
        output = distribution_on(likelihood, dict(rows), length * copies)
        copied = clone_get_equiv([], [output], copy_orphans=False)
        graph = FunctionGraph(outputs=[copied[output]], clone=False)
        for node in graph.toposort():
            if isinstance(node.op, ModelVar):
                graph.replace(node.outputs[0], node.inputs[0], import_missing=True)
        with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):  # the mode of loops inside, too
            values = pm.draw(graph.outputs[0], draws=draws, random_seed=seed).astype(float)
    except Exception:  # a prior of the user's own can raise anything
        return None
    values = values.reshape(draws, copies, length, *values.shape[2:])
    return values if np.isfinite(values).all() else None


def _repeated(value: np.ndarray, axis: int | None, copies: int, like: Variable) -> np.ndarray:
    """Rows again and again, one copy of all after the other; what all rows share as it is."""
    whole = value if axis is None or value.shape[axis] == 1 else np.concatenate([value] * copies, axis=axis)
    return whole.astype(like.type.dtype)
