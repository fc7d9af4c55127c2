"""Categorical over K levels: the number of records at each level, or at the last one only when there are two."""

import numpy as np
import pytensor.tensor as pt

from pymc_dp.family import Domain, Example, Family, Reach, Spread, onto_simplex
from pymc_dp.law import Count, Counts, Law, Tensor


class Categorical(Family):
    """Categorical(p), p over the last axis; it need not be normalised."""

    DISTRIBUTION = "Categorical"
    EXAMPLES = (
        Example(Domain(0, 2, levels=3, unknown=(True,)), (((0.2, 0.3, 0.5), (0.9, 0.05, 0.05), (0.1, 0.6, 0.3)),)),
        Example(Domain(0, 1, levels=2, unknown=(True,)), (((0.2, 0.8), (0.6, 0.4)),)),
    )

    def lattice(self, domain: Domain) -> float:
        """Counts are integers."""
        return 1.0

    def statistics(self, domain: Domain) -> tuple[str, ...]:
        """One count a level; of two levels, the second is enough, n being public."""
        return ("level 1",) if domain.levels == 2 else tuple(f"level {k}" for k in range(domain.levels))

    def exact(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """Indicators of the levels; a missing value goes to the middle level."""
        level = np.rint(values).astype(np.int64)
        counted = (1,) if domain.levels == 2 else range(domain.levels)
        return tuple((level == k).astype(np.int64) for k in counted)

    def reach(self, domain: Domain) -> Reach:
        """A value has one indicator equal to 1, so two values differ by 2: one count down, another up (docs/theory.md).

        With two levels a single count is kept and moves by 1. With more, leaving a level out saves nothing: two of the counts
        that are kept can still move.
        """
        if domain.levels == 2:
            return Reach(1, 1, 1, "of two levels one count carries everything, n being public: it moves by at most 1")
        return Reach(2, 2, 1, "one count goes down by 1 and another up by 1")

    def spread(self, domain: Domain) -> Spread:
        """One count a level: exactly one of them is 1."""
        if domain.levels == 2:
            return Spread(("level 0", "level 1"), ((1, -1), (0, 1)), 1, 1)
        unit = tuple((0, *(int(i == k) for i in range(domain.levels))) for k in range(domain.levels))
        return Spread(self.statistics(domain), unit, 1, 1)

    def law(self, domain: Domain, n: Tensor, p: Tensor) -> Law:
        """Multinomial, or Binomial when there are two levels; nothing is clamped. ``p`` is (..., K)."""
        p = p / p.sum(axis=-1, keepdims=True)
        return Count(n, p[..., 1]) if domain.levels == 2 else Counts(n, p)

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Onto the simplex of size n: negative counts to 0, then rescaled; uniform where nothing is left."""
        if domain.levels == 2:
            return np.clip(noisy, 0, n)
        return onto_simplex(noisy, n)

    def log_likelihood(self, sums: Tensor, n: Tensor, domain: Domain, p: Tensor) -> Tensor:
        """Sum over levels of s_k log p_k."""
        log_p = pt.log(pt.maximum(p / p.sum(axis=-1, keepdims=True), 1e-300))
        if domain.levels == 2:
            return sums[..., 0] * log_p[..., 1] + (n - sums[..., 0]) * log_p[..., 0]
        return (sums * log_p).sum(axis=-1)


FAMILIES = (Categorical(),)
