"""Whether a function that somebody wrote as the density of a CustomDist is a density at all, up to a constant factor."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytensor
import pytensor.tensor as pt

from pymc_dp.laws.kernel import Tensor
from pymc_dp.models.structure import Unreduced

POINTS = np.array([-20, -10, -5, -3, -2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 20])
"""Between these a density is integrated by a rule each. A density may jump at any of them."""
TRIED = (0.5, 2.5, 1.0)
"""Values of parameters at which an integral is taken: each may be a place, a scale, a shape or, the first, a probability."""
FEW = 2
"""Of more parameters than these two values are tried."""
ALIKE = 1e-3
"""Integrals that differ by less, relatively, are one."""


def check_density(
    density: Callable[..., Tensor], many: int, nodes_between: Callable[[np.ndarray, float, float], tuple[np.ndarray, np.ndarray, list[int]]]
) -> None:
    """Refuse a function whose integral over all real numbers is not the same at most of its parameters.

    The integral of a density is 1, and a constant factor says nothing. Where it differs, or is none, what lies in a bin is no probability,
    and dividing by the sum of all bins would change the model: so it is with probabilities of counts, taken between whole numbers, with a
    factor left out that rests on a parameter, and with a formula used where no values are. Parameters that do not go together, such as a
    lower end above an upper one, give no positive number, and do not count.

    Parameters
    ----------
    density : callable
        The logarithm of it, of values and parameters that are arrays of one shape.
    many : int
        How many parameters there are.
    nodes_between : callable
        Nodes and logarithms of weights between points and two ends: ``binned.nodes_between``.
    """
    nodes, log_weights, _ = nodes_between(POINTS, -np.inf, np.inf)
    rows = np.array(list(product(TRIED if many <= FEW else TRIED[:2], repeat=many)))
    value = pt.constant(np.broadcast_to(nodes, (len(rows), len(nodes))))
    parameters = [pt.constant(np.broadcast_to(column[:, None], value.type.shape)) for column in rows.T.reshape(many, len(rows))]
    function = pytensor.function([], density(value, *parameters), mode="FAST_COMPILE")
    with np.errstate(all="ignore"):
        integrals = np.exp(np.broadcast_to(function(), value.type.shape) + log_weights).sum(axis=1)
    integrals = integrals[np.isfinite(integrals) & (integrals > 0)]
    alike = (np.abs(integrals - integrals[:, None]) <= ALIKE * integrals).sum(axis=1)
    if not 2 * alike.max(initial=0) > integrals.size:
        raise Unreduced(
            "the density of its CustomDist is none over all real numbers. Let logp be -inf where no values are:"
            ' pt.switch(value > 0, ..., -np.inf); of counts, write dtype="int64" and logcdf='
        )
