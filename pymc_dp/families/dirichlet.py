"""Dirichlet: the sums of the logarithms of the shares, each clamped to its bounds."""

from collections.abc import Sequence
from math import log

import numpy as np
import pytensor.tensor as pt

from pymc_dp.families.beta import Beta
from pymc_dp.families.family import Domain, Example, Scaled
from pymc_dp.laws.kernel import Tensor

BETA = Beta()
NOTHING = 1e-30
"""A variance of log y below this is taken for this."""


class Dirichlet(Scaled):
    """Dirichlet(a), a over the last axis."""

    DISTRIBUTION = "Dirichlet"
    BOUNDS = "unit"
    NDIM = 1
    EXAMPLES = (
        Example(Domain(0.01, 0.95, levels=3, unknown=(True,)), (((2.0, 3.0, 5.0), (9.0, 0.5, 1.5)),)),
        Example(Domain(0.01, 0.95, levels=2, unknown=(True,)), (((2.0, 3.0), (4.0, 0.7)),)),
    )

    def ranges(self, domain: Domain) -> tuple[tuple[str, float, float], ...]:
        """One logarithm a share. A total map need not make shares add up to 1, so that all may go from one bound to the other."""
        return tuple((f"log y of level {k}", log(domain.lower), log(domain.upper)) for k in range(domain.levels))

    def raw(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """(..., K) -> K arrays of shape (...)."""
        return tuple(np.log(values[..., k]) for k in range(domain.levels))

    def moments(self, domain: Domain, *parameters: Tensor) -> tuple[tuple[Tensor, ...], tuple[tuple[Tensor, ...], ...]]:
        """Means and variances are those of clamped shares, each of which is Beta(a_k, sum of the others); correlations are approximate.

        They are taken from shares of which nothing is clamped, whose logarithms have the covariance
        tri_gamma(a_i) [i = j] - tri_gamma(sum of a). Where half of the shares lie beyond a bound they are off by up to .1.
        """
        (a,) = parameters
        total, K = a.sum(axis=-1, keepdims=True), domain.levels
        (mean,), ((variance,),) = BETA.moments(Domain(domain.lower, domain.upper, unknown=(True, False)), a, total - a)
        shared = pt.tri_gamma(total)
        # What clamping leaves of each standard deviation: nothing where all of a share lies beyond a bound, at which a root has no slope.
        left = pt.sqrt(pt.maximum(variance, NOTHING) / (pt.tri_gamma(a) - shared))
        covariance = tuple(
            tuple(variance[..., i] if i == j else -shared[..., 0] * left[..., i] * left[..., j] for j in range(i + 1)) for i in range(K)
        )
        return tuple(mean[..., k] for k in range(K)), covariance

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Move sums to mean logarithms between the bounds whose exponentials add up to less than 1, or a has no bound.

        The geometric means of shares add up to 1 only where all records are the same; the noise could tell a sum below
        exp(-spread / n), in the units of the logarithms. Means with more are moved towards the lower bound, all
        by the same factor.
        """
        floor = np.minimum(spread / n, 1.0)
        half = (log(domain.upper) - log(domain.lower)) / 2
        lowest = floor - 1
        above = np.clip(noisy / n, lowest, -lowest) - lowest

        def too_much(factor: np.ndarray) -> np.ndarray:
            logarithms = log(domain.lower) + (1 + lowest + factor * above) * half
            return np.exp(logarithms).sum(axis=-1, keepdims=True) > np.exp(-floor * half)

        most, least = np.ones_like(above[..., :1]), np.zeros_like(above[..., :1])
        for _ in range(60):
            middle = (most + least) / 2
            excess = too_much(middle)
            most, least = np.where(excess, middle, most), np.where(excess, least, middle)
        return (lowest + above * least) * n

    def from_sums(self, sums: Sequence[Tensor], n: Tensor, domain: Domain, *parameters: Tensor) -> Tensor:
        """Sum over levels of a_k sum log y_k, minus n log B(a)."""
        (a,) = parameters
        linear = sum((a[..., k] * total for k, total in enumerate(sums)), pt.zeros(()))
        return linear + n * (pt.gammaln(a.sum(axis=-1)) - pt.gammaln(a).sum(axis=-1))


FAMILIES = (Dirichlet(),)
