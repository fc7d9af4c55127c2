"""Whether the function that a user wrote as the density of a CustomDist integrates to the same number for all parameters, as a density
must up to a factor.
"""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_dp.laws.kernel import Tensor
from pymc_dp.models.structure import Unreduced, above, arrays_above, is_unknown
from pymc_dp.models.tabulated import number_in

POINTS = np.array([-20, -10, -5, -3, -2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 20])
"""Between these a density is integrated by a rule each. A density may jump at any of them."""
TRIED = (0.5, 2.5, 1.5)
"""Values of unknown parameters at which an integral is taken: each may be a place, a scale, a shape or, the first, a probability.

1 is none of them: powers of it, and its logarithm, hide a factor that was left out.
"""
FEW = 2
"""Of more parameters than these two values are tried."""
OF_DATA = (0.0, 1.0, 0.5, 2.0)
"""Values of parameters that are computed from data alone, which may be flags; of more than FEW, the first two."""
FAR = 1e10
"""An integral of which more than half lies beyond is infinite."""
ALIKE = 1e-3
"""Integrals that differ by less, relatively, are one."""


def check_density(
    density: Callable[..., Tensor],
    parameters: Sequence[Variable],
    nodes_between: Callable[[np.ndarray, float, float], tuple[np.ndarray, np.ndarray, list[int]]],
) -> None:
    """Refuse a function whose integral over all real numbers is not the same at most of its unknowns, and at all data beside them.

    The integral of a density is 1, and a constant factor says nothing. Where it differs, or is none, what lies in a bin is no probability,
    and dividing by the sum of all bins would change the model: so it is with probabilities of counts, taken between whole numbers, with a
    factor left out that rests on a parameter, with a formula used where no values are, and with a flag that says of each record whether
    its value is an event or what it was censored at. Parameters that do not go together, such as a lower end above an upper one, give no
    positive number, and do not count.

    Parameters
    ----------
    density : callable
        The logarithm of it, of values and parameters that are arrays of one shape.
    parameters : sequence of Variable
        As they are in the model: a plain number is tried as it is. No array is read.
    nodes_between : callable
        Nodes and logarithms of weights between points and two ends: ``binned.nodes_between``.
    """
    fixed = [number_in(parameter) for parameter in parameters]
    of_data = [number is None and _is_data(parameter) for parameter, number in zip(parameters, fixed, strict=True)]
    unknown = [number is None and not data for number, data in zip(fixed, of_data, strict=True)]
    tried, told = (values if sum(of) <= FEW else values[:2] for values, of in ((TRIED, unknown), (OF_DATA, of_data)))
    beside = [tried if is_unknown else (number or 0.0,) for is_unknown, number in zip(unknown, fixed, strict=True)]
    rows = np.array([
        np.where(of_data, data, row) for row in product(*beside) for data in product(*(told if d else (0.0,) for d in of_data))
    ])  # fmt: skip
    integrals = _integrals(density, rows.reshape(-1, len(parameters)), nodes_between).reshape(-1, len(told) ** sum(of_data))
    integrals = integrals[(integrals > 0).any(axis=1)]
    largest, smallest = (
        np.max(integrals, axis=1, where=integrals > 0, initial=0.0),
        np.min(integrals, axis=1, where=integrals > 0, initial=np.inf),
    )
    same = np.isfinite(largest) & (largest - smallest <= ALIKE * largest)
    found = largest[same]
    alike = (np.abs(found - found[:, None]) <= ALIKE * found).sum(axis=1)
    if 2 * alike.max(initial=0) > len(integrals):
        return
    if any(of_data) and not 2 * same.sum() > len(integrals):
        raise Unreduced(
            "the density of its CustomDist is none given the data that it is passed: what it integrates to differs with them. Where they"
            " say whether a value is an event or what it was censored at, write pm.Censored with the limit that was planned for each"
            " record, or count intervals and events (docs/bins.md)"
        )
    raise Unreduced(
        "the density of its CustomDist is none over all real numbers. Let logp be -inf where no values are:"
        ' pt.switch(value > 0, ..., -np.inf); of counts, write dtype="int64" and logcdf='
    )


def _is_data(parameter: Variable) -> bool:
    """Whether a parameter is computed from data and from no unknown."""
    return bool(arrays_above([parameter])) and not any(map(is_unknown, above([parameter])))


def _integrals(density: Callable[..., Tensor], rows: np.ndarray, nodes_between: Callable) -> np.ndarray:
    """Of a density at rows of parameters (R, P): (R,), infinite ones among them; NaN where it is no number."""
    nodes, log_weights, _ = nodes_between(POINTS, -np.inf, np.inf)
    shape = len(rows), len(nodes)
    value = pt.constant(np.broadcast_to(nodes, shape))
    function = pytensor.function(
        [], density(value, *(pt.constant(np.broadcast_to(column[:, None], shape)) for column in rows.T)), mode="FAST_COMPILE"
    )
    with np.errstate(all="ignore"):
        parts = np.exp(np.broadcast_to(function(), shape) + log_weights)
        whole, far = parts.sum(axis=1), parts[:, np.abs(nodes) > FAR].sum(axis=1)
        return np.where(far > whole / 2, np.inf, whole)
