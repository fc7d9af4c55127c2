"""Parameters of cells whose private covariates are in bins: averages over where in its bin a covariate may be.

Every cell has rows of its own, one for each combination of nodes between the edges of its bins. Their weights are those of a density
which is exponential within a bin, and as steep there as the numbers of records in the bins beside it say (docs/bins.md).
"""

from math import prod

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_dp.models.spec import Likelihood
from pymc_dp.plans.bin_nodes import NODES, Within, middles_and_widths, nodes_of
from pymc_dp.releases.noisy_statistic import NoisyStatistic

STEEPEST = 6.0
"""By how much the logarithm of a density changes at most from one edge of a bin to the other."""
AT_LEAST = 0.5
"""Records that every bin is taken to hold more than it does, where densities of bins are compared: none has a density of 0."""


def nodes_in(noisy: NoisyStatistic) -> int:
    """How many rows every cell has."""
    return NODES[len(noisy.within)] ** len(noisy.within)


def inputs_at_nodes(likelihood: Likelihood, noisy: NoisyStatistic) -> list[np.ndarray]:
    """The inputs of a likelihood on the rows of all cells, (cells times nodes) along their axes of records."""
    many, cells, places = nodes_in(noisy), len(noisy.noisy), _places(noisy)
    result = []
    for k, (placeholder, values) in enumerate(zip(likelihood.inputs, noisy.inputs, strict=True)):
        axis = placeholder.axis
        if axis is None:
            result.append(values)
            continue
        rows = np.moveaxis(np.repeat(values, many, axis=axis), axis, 0).copy()
        flat = rows.reshape(len(rows), prod(rows.shape[1:]))
        for d, within in enumerate(noisy.within):
            if within.place == k:
                nodes, _ = nodes_of(within.edges, placeholder.whole, NODES[len(noisy.within)])
                flat[:, within.entry] = nodes[places[within.axis]][:, _node(noisy, d)].reshape(cells * many)
        result.append(np.moveaxis(flat.reshape(rows.shape), 0, axis).astype(values.dtype))
    return result


def averaged(noisy: NoisyStatistic, parameters: list[Variable], size: Variable) -> list[Variable]:
    """Probabilities on cells from those on their nodes, (cells times nodes, *C) and core axes.

    Parameters
    ----------
    noisy : NoisyStatistic
    parameters : list of Variable
        The last are probabilities; there are no others.
    size : Variable
        (cells, *C), of length one where columns share it: the numbers of records of cells, or what is in proportion to them.
    """
    if not noisy.within:
        return parameters
    p, columns = parameters[-1], noisy.noisy.ndim - 2
    if p.type.ndim > 1 + columns:  # of levels or values: they need not add up to 1
        p = p / p.sum(axis=-1, keepdims=True)
    weights = _weights(noisy, size)
    core = p.type.ndim - 1 - columns
    shape = [int(length) for length in p.type.shape[1:]]
    at_nodes = p.reshape((len(noisy.noisy), nodes_in(noisy), *shape))
    return [(at_nodes * pt.shape_padright(weights, core)).sum(axis=1)]


def _weights(noisy: NoisyStatistic, size: Variable) -> Variable:
    """Weights (cells, nodes, *C) that add up to 1 over the nodes of every cell."""
    G, V, many, places = len(noisy.noisy) // prod(noisy.grid), prod(noisy.grid), NODES[len(noisy.within)], _places(noisy)
    rest = [int(length) for length in size.type.shape[1:]]
    base, exponent = np.ones((G * V, nodes_in(noisy))), 0.0
    for d, within in enumerate(noisy.within):
        whole = noisy.inputs[within.place].dtype.kind in "iu"
        nodes, weights = nodes_of(within.edges, whole, many)
        middles, widths = middles_and_widths(within.edges, whole)
        far = (nodes - middles[:, None]) / widths[:, None]
        place, node = places[within.axis], _node(noisy, d)
        base = base * weights[place][:, node]
        slope = _slopes(noisy, within, size, middles, widths).reshape((G * V, 1, *rest))
        exponent = exponent + slope * pt.constant(far[place][:, node].reshape(G * V, -1, *[1] * len(rest)))
    unscaled = base.reshape(G * V, -1, *[1] * len(rest)) * pt.exp(exponent)
    return unscaled / unscaled.sum(axis=1, keepdims=True)


def _slopes(noisy: NoisyStatistic, within: Within, size: Variable, middles: np.ndarray, widths: np.ndarray) -> Variable:
    """The change of the log-density of a covariate over the width of each cell's bin: (G, *grid, *C)."""
    G, rest = len(noisy.noisy) // prod(noisy.grid), [int(length) for length in size.type.shape[1:]]
    by_axis = pt.moveaxis(size.reshape((G, *noisy.grid, *rest)), 1 + within.axis, -1)
    density = pt.log(by_axis / widths + AT_LEAST / widths.mean())
    raw = pt.dot(density, _differences(middles, widths).T)
    return pt.moveaxis(STEEPEST * pt.tanh(raw / STEEPEST), -1, 1 + within.axis)


def _differences(middles: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """The matrix (bins, bins) from values at middles of bins to their change over every bin.

    That of the parabola through the values at the middles of a bin and of its two neighbours, or at an end of the two next to it.
    """
    B = len(middles)
    matrix = np.zeros((B, B))
    for k in range(B):
        three = np.arange(3) + min(max(k - 1, 0), B - 3) if B > 2 else np.arange(B)
        for j in three:
            (p, *q) = middles[three[three != j]]
            rise = 2 * middles[k] - p - q[0] if q else 1.0  # the derivative of Lagrange's polynomial that is 1 at j
            matrix[k, j] = widths[k] * rise / np.prod(middles[j] - np.array([p, *q]))
    return matrix


def _places(noisy: NoisyStatistic) -> np.ndarray:
    """For every axis of the grid, which level or bin each cell has there: (axes, cells)."""
    V = prod(noisy.grid)
    return np.tile(np.indices(noisy.grid).reshape(len(noisy.grid), V), (1, len(noisy.noisy) // V))


def _node(noisy: NoisyStatistic, d: int) -> np.ndarray:
    """Which node of its bin an entry has, for every row of a cell."""
    binned = len(noisy.within)
    return np.indices((NODES[binned],) * binned).reshape(binned, -1)[d]
