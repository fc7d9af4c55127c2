"""Nodes and weights of quadrature between points, and from the outermost of them to the ends of a support, which may be infinite."""

from collections.abc import Collection, Sequence
from functools import cache
from itertools import pairwise

import numpy as np

from pymc_dp.laws.kernel import Tensor

NODES = 16
"""Of Gauss-Legendre quadrature between two points. A density a twentieth as wide as a bin is still found."""


def nodes_between(
    points: np.ndarray, lower: float, upper: float, infinite: Collection[float] = ()
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Nodes and log-weights (T,) between these points and the ends of the support, and how many times ``NODES`` each interval has.

    By Gauss and Legendre between two points; at the ends of all, and beside those points where a density may be ``infinite``, by rules
    for that and for heavy tails: tanh-sinh and exp-sinh (Takahasi and Mori, 1974, Double exponential formulas for numerical integration).
    """
    finite = [*([lower] if np.isfinite(lower) else []), *points, *([upper] if np.isfinite(upper) else [])]
    scale = finite[-1] - finite[0] if len(finite) > 1 else 1.0
    start, *inner, end = [lower, *points, upper] if len(points) else [lower, 0.0, upper] if not finite else [lower, finite[0] + 1.0, upper]
    parts = [_last(inner[0], start, scale), *(_between_points(*pair, infinite) for pair in pairwise(inner)), _last(inner[-1], end, scale)]
    pieces = [len(nodes) // NODES for nodes, _ in parts]
    nodes, log_weights = (np.concatenate(several) for several in zip(*parts, strict=True))
    return nodes, log_weights, pieces if len(points) else [sum(pieces)]


def sums_between(at_nodes: Tensor, pieces: Sequence[int]) -> Tensor:
    """Sums (..., K) over the nodes of each interval of what is given at all nodes (..., T); ``pieces`` are those of ``nodes_between``.

    By a product with a matrix, because an operation for each interval, and its gradient, take seconds each to compile.
    """
    return at_nodes @ np.repeat(np.eye(len(pieces)), np.array(pieces) * NODES, axis=0)


def _between_points(start: float, end: float, infinite: Collection[float]) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and log-weights: of Gauss and Legendre, or of tanh-sinh where a density may be infinite at either point."""
    if start in infinite or end in infinite:
        return _tanh_sinh(start, end)
    x, w = _gauss_legendre()
    return start + (end - start) * (1 + x) / 2, np.log(w * (end - start) / 2)


@cache
def _gauss_legendre() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(NODES)


def _last(start: float, end: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes from the outermost point to the end of the support: tanh-sinh where that is a number, exp-sinh where there is none."""
    if np.isfinite(end):
        return _tanh_sinh(start, end)
    t = np.linspace(-3.6, 4.2, 4 * NODES)
    distance = scale * np.exp(np.pi / 2 * np.sinh(t))
    return start + np.sign(end) * distance, np.log((t[1] - t[0]) * np.pi / 2 * np.cosh(t)) + np.log(distance)


def _tanh_sinh(start: float, end: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes between two points, at none of them, and log-weights. Powers of ten of distances are right at both ends."""
    t = np.linspace(-3.1, 3.1, 3 * NODES)
    u = np.pi / 2 * np.sinh(t)
    from_end, from_start = (1 / (1 + np.exp(sign * 2 * u)) for sign in (-1, 1))  # shares of the way
    nodes = np.where(from_end < 0.5, end + (start - end) * from_end, start + (end - start) * from_start)
    log_weights = np.log((t[1] - t[0]) * np.pi / 2 * np.cosh(t) / (2 * np.cosh(u) ** 2) * abs(end - start))
    return np.clip(nodes, *sorted((np.nextafter(start, end), np.nextafter(end, start)))), log_weights
