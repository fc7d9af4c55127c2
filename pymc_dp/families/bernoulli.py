"""Bernoulli: the number of ones in each cell, whether written with ``p`` or ``logit_p``."""

import numpy as np
import pytensor.tensor as pt

from pymc_dp.family import Domain, Example, Reach
from pymc_dp.law import Count, Tensor

DISTRIBUTION = "Bernoulli"
BOUNDS = "none"
LAW = Count
EXAMPLES = (Example(Domain(0, 1, unknown=(True,)), ((0.03, 0.5, 0.9),)),)


def lattice(domain: Domain) -> float:
    """Counts are integers."""
    return 1.0


def statistics(domain: Domain) -> tuple[str, ...]:
    """The ones; the zeros follow, n being public."""
    return ("ones",)


def exact(values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
    """1 for a one, 0 for a zero; halves go to 0, as ``np.rint`` rounds them."""
    return (np.rint(values).astype(np.int64),)


def reach(domain: Domain) -> Reach:
    """A value is 0 or 1, so two values differ by at most 1, and one has norm at most 1 (docs/theory.md, ZRD16 Lemma 1)."""
    return Reach(1, 1, "one count carries everything, n being public: it moves by at most 1")


def law(domain: Domain, n: Tensor, p: Tensor) -> Count:
    """The sum of n ones and zeros is Binomial; nothing is clamped."""
    return Count(n, p)


def project(noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
    """Into [0, n]."""
    return np.clip(noisy, 0, n)


def log_likelihood(sums: Tensor, n: Tensor, domain: Domain, p: Tensor) -> Tensor:
    """S log p + (n - s) log(1 - p); a factor with nothing to count is left out, so p = 0 or 1 stays possible."""
    s = sums[..., 0]
    p = pt.clip(p, 1e-300, 1 - 1e-16)
    return s * pt.log(p) + (n - s) * pt.log1p(-p)
