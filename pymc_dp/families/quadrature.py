"""Gauss-Legendre integrals for families whose clamped statistics have no closed moments: Gamma and Beta with log y.

The density is log-concave in the variable of integration; panels follow it from its top to where it has vanished, and break
at the bounds, where a clamped value has a kink. No gradient is taken through the nodes: an integral does not depend on them.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad

from pymc_dp.laws.kernel import Tensor

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
"""Gauss-Legendre on each panel."""
DROPS = np.array([-40.0, -10.0, -3.0, -0.5, 0.0, 0.5, 3.0, 10.0, 40.0])
"""Panels end where the log-density is about so far below its top, in nats, left (-) and right of it; beyond, nothing is left."""


def panels(top: Tensor, curvature: Tensor, left: Tensor | float, right: Tensor | float, cuts: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Nodes and weights (..., panels, nodes) for a log-concave density on the real line.

    A log-density with this curvature at its top and these slopes far out has dropped by D at a distance of about
    D / slope + log(1 + x + sqrt(2 x)), x = D / curvature: right for small D, and a little far for large D.

    Parameters
    ----------
    top : Tensor
        Where the density is largest.
    curvature : Tensor
        Second derivative of minus the log-density there.
    left, right : Tensor or float
        Slopes of the log-density far to the left and right; infinite where it falls ever more steeply.
    cuts : sequence of float
        Where panels must break besides, in increasing order.
    """
    top, curvature, left, right = (pt.as_tensor(entry)[..., None, None] for entry in (top, curvature, left, right))

    def edge(drop: np.ndarray) -> Tensor:
        # PyMC takes gradients of a simplified graph, from which disconnected_grad is gone: no square root of 0.
        x = np.maximum(np.abs(drop), 1e-12) / curvature
        return top + np.maximum(drop, 0) / right + np.minimum(drop, 0) / left + np.sign(drop) * pt.log1p(x + pt.sqrt(2 * x))

    # Two sorted sequences A and B are merged by the j-th smallest being min_i max(A_{j-i}, B_{i-1}), elementwise and in few operations.
    taken = np.arange(len(cuts) + 1)[:, None]
    kept = np.arange(len(DROPS) + len(cuts)) - taken
    ours = pt.switch(kept < 0, -np.inf, pt.switch(kept >= len(DROPS), np.inf, edge(DROPS[np.clip(kept, 0, len(DROPS) - 1)])))
    merged = pt.maximum(ours, np.array([-np.inf, *cuts])[:, None]).min(axis=-2)[..., None]
    merged = disconnected_grad(pt.clip(merged, edge(DROPS[:1]), edge(DROPS[-1:])))
    width = merged[..., 1:, :] - merged[..., :-1, :]
    return merged[..., :-1, :] + width * ((NODES + 1) / 2), width * (WEIGHTS / 2)


def expectations(statistics: Sequence[Tensor], masses: Tensor) -> tuple[tuple[Tensor, ...], tuple[tuple[Tensor, ...], ...]]:
    """Means and lower triangle of the covariance of statistics at nodes of these masses, which need not add up to 1.

    Everything is taken about the means, through which no gradient has to pass: nothing cancels, in values or gradients.
    """

    def integral(integrand: Tensor) -> Tensor:
        return integrand.sum(axis=(-2, -1))

    total = integral(masses)
    centres = [disconnected_grad(integral(masses * t) / total) for t in statistics]
    apart = [t - centre[..., None, None] for t, centre in zip(statistics, centres, strict=True)]
    means = tuple(centre + integral(masses * d) / total for centre, d in zip(centres, apart, strict=True))
    return means, tuple(tuple(integral(masses * d * e) / total for e in apart[: i + 1]) for i, d in enumerate(apart))


def inside_hull(noisy: np.ndarray, n: np.ndarray, spread: float, curve: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Noisy sums (..., 2) of two scaled statistics moved to means that values of the domain can have.

    The second statistic is a convex or concave function of the first, from corner to corner of the box [-1, 1]^2, so means lie
    between the curve and its chord. On the curve all values are the same and a likelihood may have no bound, so means stay
    short of it by what the noise could tell, spread / n, if the chord is not nearer.
    """
    floor = np.minimum(spread / n, 1.0)
    first = np.clip(noisy[..., :1] / n, floor - 1, 1 - floor)
    ends = np.array([-1.0, 1.0])
    rising = np.sign(curve(ends)[1] - curve(ends)[0])
    chord, bent = rising * first, curve(first)
    convex = curve(np.zeros(1))[0] < 0
    short = np.minimum(bent + floor, chord) if convex else np.maximum(bent - floor, chord)
    second = np.clip(noisy[..., 1:] / n, np.minimum(short, chord), np.maximum(short, chord))
    return np.concatenate([first, second], axis=-1) * n
