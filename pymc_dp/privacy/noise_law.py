"""The law of a discrete noise, as the private model needs it. ``mechanisms`` has how the same noise is scaled and drawn.

A posterior is right only if the noise that is modelled is the noise that is drawn; ``tests/privacy/test_noise.py`` compares the two.
"""

from dataclasses import dataclass
from math import ceil, exp, expm1, log, log1p, pi, sqrt

import numpy as np
import pymc as pm
import pytensor.tensor as pt


@dataclass(frozen=True)
class Noise:
    """Discrete noise on a public lattice: ``step`` times an integer K, independent for every entry.

    Parameters
    ----------
    scale : float
        In lattice units: of discrete Laplace noise, P(K = k) proportional to exp(-abs(k) / scale); of discrete Gaussian noise
        to exp(-k^2 / (2 scale^2)).
    step : float
        Size of one lattice unit, in units of the statistic.
    gaussian : bool
    """

    scale: float
    step: float = 1.0
    gaussian: bool = False

    @property
    def log_ratio(self) -> float:
        """Log q = -1/scale: the log-probability that Laplace noise loses with every further lattice unit."""
        return -1.0 / self.scale

    @property
    def standard_deviation(self) -> float:
        """The standard deviation in units of the statistic: sqrt(2 q) / (1 - q) lattice units for Laplace noise (docs/theory.md)."""
        if not self.gaussian:
            return sqrt(2.0) * self.spread
        if self.scale > 8:  # the discrete and the continuous law agree to exp(-2 pi^2 scale^2)
            return self.scale * self.step
        k = np.arange(-80.0, 81.0)
        weights = np.exp(-(k**2) / (2 * self.scale**2))
        return max(sqrt(float((k**2 * weights).sum() / weights.sum())), 1e-3) * self.step

    @property
    def spread(self) -> float:
        """Scale of the continuous Laplace law of the same variance, in units of the statistic.

        Kept at a thousandth of a lattice unit or more, where the noise is all but absent: log-densities stay finite.
        """
        if self.gaussian:
            return self.standard_deviation / sqrt(2.0)
        return max(exp(self.log_ratio / 2) / -expm1(self.log_ratio), 1e-3) * self.step

    def reach(self, nats: float) -> int:
        """Lattice units within which all but a share of about exp(-nats) of the noise lies."""
        return ceil(nats * self.scale if not self.gaussian else sqrt(2 * nats) * self.scale)

    @property
    def kernel(self) -> tuple[float, float, float]:
        """Log-probability of noise of d, in units of the statistic: a multiple of abs(d), one of d^2, and a constant."""
        if not self.gaussian:
            q = exp(self.log_ratio)
            return self.log_ratio / self.step, 0.0, log1p(-q) - log1p(q)
        k = np.arange(1.0, 10 * min(self.scale, 8.0) + 10)
        inside = 1 + 2 * np.exp(-(k**2) / (2 * self.scale**2)).sum() if self.scale <= 8 else sqrt(2 * pi) * self.scale
        return 0.0, -1 / (2 * (self.scale * self.step) ** 2), -log(inside)

    def simulated(self, size: tuple[int, ...]) -> pt.TensorVariable:
        """Noise of this law as a random graph for predictive draws, in units of the statistic: shape ``size``.

        The difference of two geometric variables is a discrete Laplace variable; a rounded normal variable is a discrete
        Gaussian one to within a hundredth of the probability for scales of 1 and more. It is simulated, not private: it is
        seeded with the model's other random variables.
        """
        if self.gaussian:
            return pt.round(pm.Normal.dist(0.0, self.standard_deviation / self.step, shape=size)) * self.step
        failure = -expm1(self.log_ratio)
        first, second = (pm.Geometric.dist(failure, shape=size) for _ in range(2))
        return (first - second).astype("float64") * self.step
