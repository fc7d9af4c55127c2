"""Where in its bin a private covariate may be: points between the edges, over which the private model averages."""

from math import inf
from typing import NamedTuple

import numpy as np

NODES = (1, 12, 6, 4)
"""How many nodes every bin has, for 0, 1, 2 and 3 entries that are in bins together; more are refused."""


class Within(NamedTuple):
    """One entry of a private covariate that is counted in bins.

    Attributes
    ----------
    axis : int
        Of the grid of private cells.
    place, entry : int
        Which of the likelihood's inputs it is, and which entry of a record there.
    edges : tuple of float
        Of all bins.
    """

    axis: int
    place: int
    entry: int
    edges: tuple[float, ...]


def nodes_of(edges: tuple[float, ...], whole: bool, many: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (bins, many) between the edges of every bin, and their weights, which add up to 1 in every bin.

    Those of Gauss and Legendre for real numbers. Of integers all that lie in the bin, or so many of them at equal distances; a bin holds
    its upper edge and not its lower one, but for the first, which holds both. Nodes that are too many have no weight, and so has a bin
    without an integer.
    """
    low, high = np.array(edges[:-1])[:, None], np.array(edges[1:])[:, None]
    if not whole:
        x, w = np.polynomial.legendre.leggauss(many)
        return low + (x + 1) / 2 * (high - low), np.broadcast_to(w / 2, (len(low), many)).copy()
    nodes, weights = np.rint((low + high) / 2) + np.zeros((1, many)), np.zeros((len(low), many))
    for k, (first, last) in enumerate(integers_of(edges)):
        inside = last - first + 1
        if inside <= many:
            nodes[k] = np.minimum(first + np.arange(many), max(last, first))
            weights[k, : max(inside, 0)] = 1 / max(inside, 1)
        else:
            nodes[k], weights[k] = first + np.floor((np.arange(many) + 0.5) * inside / many), 1 / many
    return nodes, weights


def integers_of(edges: tuple[float, ...]) -> list[tuple[int, int]]:
    """For every bin the first and the last integer in it."""
    ends = np.floor(edges).astype(np.int64)
    return [(int(np.ceil(edges[0])) if k == 0 else int(ends[k]) + 1, int(ends[k + 1])) for k in range(len(ends) - 1)]


def middles_and_widths(edges: tuple[float, ...], whole: bool) -> tuple[np.ndarray, np.ndarray]:
    """The middle of every bin and how wide it is: of integers, how many it holds."""
    if not whole:
        return (np.array(edges[1:]) + np.array(edges[:-1])) / 2, np.diff(edges)
    ends = np.array(integers_of(edges), dtype=float)
    return ends.mean(axis=1), ends[:, 1] - ends[:, 0] + 1


def rows_with_nodes(cells: int, binned: int) -> float:
    """How many rows parameters are evaluated on, where so many entries are in bins."""
    return cells * NODES[binned] ** binned if binned < len(NODES) else inf
