"""Beta: sums of log y and log(1 - y), or of the one whose parameter is unknown."""

from collections.abc import Sequence
from math import log, log1p

import numpy as np
import pytensor.tensor as pt

from pymc_dp.families.family import Domain, Example, Scaled
from pymc_dp.families.quadrature import expectations, inside_hull, panels
from pymc_dp.laws.kernel import Tensor

SMALLEST, LARGEST = np.float64(1e-50), 1e12
"""Parameters outside these are not told apart."""
BENDS = (-6.0, -2.0, 2.0, 6.0)
"""log y and log(1 - y) bend where logit y is about 0: panels there are short enough to follow them."""


class Beta(Scaled):
    """Beta(alpha, beta)."""

    DISTRIBUTION = "Beta"
    BOUNDS = "unit"
    EXAMPLES = (
        Example(Domain(0.05, 0.9, unknown=(True, True)), ((0.5, 2.0, 30.0), (0.4, 5.0, 3.0))),
        Example(Domain(0.05, 0.9, unknown=(True, False)), ((0.5, 2.0, 30.0), (0.4, 5.0, 3.0))),
        Example(Domain(0.05, 0.9, unknown=(False, True)), ((0.5, 2.0, 30.0), (0.4, 5.0, 3.0))),
    )

    def ranges(self, domain: Domain) -> tuple[tuple[str, float, float], ...]:
        """Log y and log(1 - y), of which one grows where the other falls; that of a parameter without unknowns says nothing."""
        named_ranges = ("log y", log(domain.lower), log(domain.upper)), ("log(1 - y)", log1p(-domain.upper), log1p(-domain.lower))
        return tuple(named_ranges[k] for k in _kept(domain))

    def raw(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """Log y and log(1 - y)."""
        return tuple((np.log, _log_rest)[k](values) for k in _kept(domain))

    def moments(self, domain: Domain, alpha: Tensor, beta: Tensor) -> tuple[tuple[Tensor, ...], tuple[tuple[Tensor, ...], ...]]:
        """Integrals over s = logit y, whose density is proportional to y^alpha (1 - y)^beta.

        Its top is at log(alpha / beta), where its curvature is alpha beta / (alpha + beta); far out its slopes are alpha and beta.
        """
        alpha, beta = pt.clip(alpha, SMALLEST, LARGEST), pt.clip(beta, SMALLEST, LARGEST)
        low, high = (log(bound) - log1p(-bound) for bound in (domain.lower, domain.upper))
        top = pt.log(alpha) - pt.log(beta)
        s, weights = panels(top, alpha / (1 + alpha / beta), alpha, beta, sorted((low, *BENDS, high)))
        log_y, log_rest = -pt.softplus(-s), -pt.softplus(s)
        below_top = alpha[..., None, None] * (log_y + pt.softplus(-top)[..., None, None]) + beta[..., None, None] * (
            log_rest + pt.softplus(top)[..., None, None]
        )
        clamped = pt.clip(s, low, high)
        statistics = [-pt.softplus((-1) ** (k + 1) * clamped) for k in _kept(domain)]
        return expectations(statistics, weights * pt.exp(below_top))

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Move sums to means that values between the bounds can have, short of those of equal values: there alpha + beta has no bound."""
        if len(_kept(domain)) == 1:
            return super().project(noisy, n, spread, domain)
        (_, lower, upper), (_, bottom, top) = self.ranges(domain)

        def curve(u: np.ndarray) -> np.ndarray:
            log_y = np.clip((lower + upper) / 2 + u * (upper - lower) / 2, lower, upper)
            return (np.log(-np.expm1(log_y)) - (bottom + top) / 2) / ((top - bottom) / 2)

        return inside_hull(noisy, n, spread, curve)

    def from_sums(self, sums: Sequence[Tensor], n: Tensor, domain: Domain, alpha: Tensor, beta: Tensor) -> Tensor:
        """Alpha sum log y + beta sum log(1 - y) - n log B(alpha, beta)."""
        linear = sum((parameter * total for parameter, total in zip([(alpha, beta)[k] for k in _kept(domain)], sums)), pt.zeros(()))
        return linear - n * (pt.gammaln(alpha) + pt.gammaln(beta) - pt.gammaln(alpha + beta))


def _kept(domain: Domain) -> tuple[int, ...]:
    """Statistics whose parameter is unknown; both where neither is."""
    return tuple(k for k in (0, 1) if domain.unknown[k]) or (0, 1)


def _log_rest(values: np.ndarray) -> np.ndarray:
    return np.log1p(-values)


FAMILIES = (Beta(),)
