"""Times that end by an event or by being lost from sight: the probabilities of (interval, event) for every interval between public edges.

An event has the density that the user wrote. Losses are independent of events, with a hazard that is constant within an interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt

from pymc_dp.laws.kernel import LEAST, Tensor
from pymc_dp.models.binned import at_points
from pymc_dp.models.interval_nodes import nodes_between
from pymc_dp.models.likelihood_rv import Written


@dataclass(frozen=True, eq=False)
class EventLaw:
    """How events are distributed in time.

    Attributes
    ----------
    density, survival : Written
        The logarithms of both, of a time and of parameters.
    """

    density: Written
    survival: Written

    def at_times(self, edges: Sequence[float], parameters: Sequence[Tensor]) -> Tensor:
        """What ``with_losses`` needs of parameters on cells (G, *C), beside each other: (G, *C, 2 T + K).

        The density and the survival at T nodes of quadrature, times their weights, and the survival at the lower edges of K intervals.
        """
        nodes, log_weights, lower = *_nodes(edges)[:2], np.array(edges[:-1])
        dense = at_points(self.density, nodes, parameters) + log_weights  # which may be infinite at an edge
        alive = at_points(self.survival, np.append(nodes, lower), parameters) + np.append(log_weights, np.zeros(len(lower)))
        return pt.exp(pt.concatenate([dense, alive], axis=-1))


def with_losses(edges: Sequence[float], at_times: Tensor, hazards: Tensor) -> Tensor:
    """Probabilities (G, *C, 2 K): of an event in each interval, and then of being lost in each.

    At an edge the probability of being there still is S(edge) exp(-H(edge)), where H is the cumulative hazard of losses. Between two edges
    it falls by what becomes of records there. Which part of that are events is the ratio of two integrals over the interval: of
    f(t) exp(-H(t)), and of c S(t) exp(-H(t)), where c is the hazard of losses. So all probabilities add up to 1, and a density that is
    narrower than the nodes lie is still one. Before the first edge nothing is lost, and the last interval has no end.

    All sums are products with plain matrices: an operation for each interval, and its gradient, take seconds each to compile.

    Parameters
    ----------
    edges : sequence of float
        K + 1 of them, in increasing order.
    at_times : tensor
        See ``EventLaw.at_times``.
    hazards : tensor
        (G, *C, K), of losses per unit of time; of length one where columns share them.
    """
    _, _, interval, since = _nodes(edges)
    T, K = len(since), len(edges) - 1
    dense, alive, at_edges = at_times[..., :T], at_times[..., T : 2 * T], at_times[..., 2 * T :]
    of_interval = np.eye(K)[interval]
    widths = np.append(np.diff(edges)[:-1], 0.0)
    staying = at_edges * pt.exp(-(hazards @ (widths[:, None] * np.triu(np.ones((K, K)), 1))))
    leaving = staying @ (np.eye(K) - np.eye(K, k=-1))
    of_node = hazards @ of_interval.T
    still = pt.exp(-of_node * since)
    events, losses = (dense * still) @ of_interval, (alive * still * of_node) @ of_interval
    share = events / pt.maximum(events + losses, LEAST)
    before = (1 - staying) * (np.arange(K) == 0)
    return pt.maximum(pt.concatenate([leaving * share + before, leaving * (1 - share)], axis=-1), LEAST)


def _nodes(edges: Sequence[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Nodes (T,) of all intervals, logarithms of their weights, which interval each is in, and how far from its lower edge."""
    nodes, log_weights, pieces = nodes_between(np.array(edges[1:-1]), edges[0], np.inf)
    interval = np.repeat(np.arange(len(pieces)), pieces).repeat(len(nodes) // sum(pieces))
    return nodes, log_weights, interval, nodes - np.array(edges)[interval]
