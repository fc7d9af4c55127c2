"""Times that end by an event or by being lost from sight: the probabilities of (interval, event) for every interval between public edges.

An event has the density that the user wrote. Losses are independent of events, with a hazard that is constant within an interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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

    def on_nodes(self, edges: Sequence[float], parameters: Sequence[Tensor]) -> Tensor:
        """What ``with_losses`` needs of parameters on cells (G, *C), beside each other: (G, *C, 2 T + K).

        At T nodes the density and the survival times the weights of the nodes, and at the lower edges of K intervals the survival.
        """
        points, log_weights, *_ = _nodes(edges)
        dense = pt.exp(at_points(self.density, points, parameters) + log_weights)
        alive = pt.exp(at_points(self.survival, points, parameters) + log_weights)
        return pt.concatenate([dense, alive, pt.exp(at_points(self.survival, np.array(edges[:-1]), parameters))], axis=-1)


def with_losses(edges: Sequence[float], on_nodes: Tensor, hazards: Tensor) -> Tensor:
    """Probabilities (G, *C, 2 K): of an event in each interval, and then of being lost in each.

    At an edge the probability of being there still is S(edge) exp(-H(edge)), where H is the cumulative hazard of losses. Between two edges
    it falls by what becomes of records there. Which part of that are events is the ratio of two integrals over the interval: of
    f(t) exp(-H(t)), and of c S(t) exp(-H(t)), where c is the hazard of losses. So all probabilities add up to 1, and a density that is
    narrower than the nodes lie is still one. Before the first edge nothing is lost, and the last interval has no end.

    Parameters
    ----------
    edges : sequence of float
        K + 1 of them, in increasing order.
    on_nodes : tensor
        See ``EventLaw.on_nodes``.
    hazards : tensor
        (G, *C, K), of losses per unit of time; of length one where columns share them.
    """
    _, _, interval, since = _nodes(edges)
    T, starts = len(since), np.searchsorted(interval, np.arange(len(edges)))
    dense, alive, at_edges = on_nodes[..., :T], on_nodes[..., T : 2 * T], on_nodes[..., 2 * T :]
    passed = pt.cumsum(hazards[..., :-1] * np.diff(edges)[:-1], axis=-1)
    kept = pt.exp(-pt.concatenate([pt.zeros_like(hazards[..., :1]), passed], axis=-1))
    staying = at_edges * kept
    leaving = staying - pt.concatenate([staying[..., 1:], pt.zeros_like(staying[..., :1])], axis=-1)
    of_node = hazards[..., interval]
    still = pt.exp(-of_node * since)
    events, losses = (
        pt.stack([part[..., start:end].sum(axis=-1) for start, end in pairwise(starts)], axis=-1)
        for part in (dense * still, alive * still * of_node)
    )
    share = events / pt.maximum(events + losses, LEAST)
    before = 1 - staying[..., :1]
    by_event = leaving * share
    by_event = pt.concatenate([by_event[..., :1] + before, by_event[..., 1:]], axis=-1)
    p = pt.concatenate([by_event, leaving * (1 - share)], axis=-1)
    return pt.maximum(p, LEAST)


def _nodes(edges: Sequence[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Nodes (T,) of all intervals, logarithms of their weights, which interval each is in, and how far from its lower edge."""
    nodes, log_weights, pieces = nodes_between(np.array(edges[1:-1]), edges[0], np.inf)
    interval = np.repeat(np.arange(len(pieces)), pieces).repeat(len(nodes) // sum(pieces))
    return nodes, log_weights, interval, nodes - np.array(edges)[interval]
