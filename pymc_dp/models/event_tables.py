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

    def at_times(self, edges: Sequence[float], parameters: Sequence[Tensor]) -> list[Tensor]:
        """What ``with_losses`` needs of parameters on cells.

        The density and the survival at T nodes of quadrature, (G, *C, T) each, and the survival at the lower edges of K intervals,
        (G, *C, K).
        """
        nodes, lower = _nodes(edges)[0], np.array(edges[:-1])
        places = ((self.density, nodes), (self.survival, nodes), (self.survival, lower))
        return [pt.exp(at_points(of, points, parameters)) for of, points in places]


def with_losses(edges: Sequence[float], at_times: Sequence[Tensor], hazards: Tensor) -> Tensor:
    """Probabilities (G, *C, 2 K): of an event in each interval, and then of being lost in each.

    At an edge the probability of being there still is S(edge) exp(-H(edge)), where H is the cumulative hazard of losses. Between two edges
    it falls by what becomes of records there. Which part of that are events is the ratio of two integrals over the interval: of
    f(t) exp(-H(t)), and of c S(t) exp(-H(t)), where c is the hazard of losses. So all probabilities add up to 1, and a density that is
    narrower than the nodes lie is still one. Before the first edge nothing is lost, and the last interval has no end.

    All sums are products with plain matrices, and nothing is put together or taken apart: an operation for each interval, each of these,
    and their gradients, take seconds to compile.

    Parameters
    ----------
    edges : sequence of float
        K + 1 of them, in increasing order.
    at_times : sequence of tensor
        See ``EventLaw.at_times``.
    hazards : tensor
        (G, *C, K), of losses per unit of time; of length one where columns share them.
    """
    dense, alive, at_edges = at_times
    _, weights, of_interval, since = _nodes(edges)
    K, widths = len(edges) - 1, np.append(np.diff(edges)[:-1], 0.0)
    staying = at_edges * pt.exp(-(hazards @ (widths[:, None] * np.triu(np.ones((K, K)), 1))))
    leaving = staying @ (np.eye(K) - np.eye(K, k=-1))
    still = pt.exp(-(hazards @ (since * of_interval.T)))
    events, losses = (dense * still) @ (weights * of_interval), (alive * still) @ (weights * of_interval) * hazards
    share = events / pt.maximum(events + losses, LEAST)
    before = (1 - staying) * (np.arange(K) == 0)
    is_event = np.array([[1.0], [0.0]])
    by_event, lost = (pt.expand_dims(part, -2) for part in (leaving * share + before, leaving * (1 - share)))
    p = is_event * by_event + (1 - is_event) * lost
    return pt.maximum(p.reshape((*(p.shape[k] for k in range(p.type.ndim - 2)), 2 * K)), LEAST)


def _nodes(edges: Sequence[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Nodes (T,) of all intervals, their weights (T, 1), 1 where a node is in an interval (T, K), how far each is from its lower edge."""
    nodes, log_weights, pieces = nodes_between(np.array(edges[1:-1]), edges[0], np.inf)
    interval = np.repeat(np.arange(len(pieces)), pieces).repeat(len(nodes) // sum(pieces))
    return nodes, np.exp(log_weights)[:, None], np.eye(len(pieces))[interval], nodes - np.array(edges)[interval]
