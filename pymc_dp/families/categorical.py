"""Categorical and Multinomial over K levels: how often each level occurs, or the last one only when there are two."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt

from pymc_dp.families.family import CellSensitivity, Domain, Example, Family, Sensitivity
from pymc_dp.families.limits import onto_simplex
from pymc_dp.laws.kernel import Tensor
from pymc_dp.laws.law import Count, Counts, Law


class Categorical(Family):
    """Categorical(p), p over the last axis."""

    DISTRIBUTION = "Categorical"
    WHOLE = True
    EXAMPLES: tuple[Example, ...] = (
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

    def trials(self, domain: Domain) -> int:
        """What the counts of one value add up to."""
        return 1

    def sensitivity(self, domain: Domain) -> Sensitivity:
        """The counts of a value are never negative and add up to its trials, so two values differ by twice that: docs/theory.md.

        One count goes down by all the trials, another up. With two levels a single count is kept and moves by the trials. With more,
        leaving a level out saves nothing: two of the counts that are kept can still move.
        """
        m = self.trials(domain)
        if domain.levels == 2:
            return Sensitivity(m, m**2, m, f"one record moves the count of one level by at most {m}; the other level has the rest")
        return Sensitivity(2 * m, 2 * m**2, m, f"one count goes down by at most {m} and others up by as much")

    def cell_sensitivity(self, domain: Domain) -> CellSensitivity:
        """One count a level: together they are the trials, and their squares add up to most where one holds them all."""
        m = self.trials(domain)
        if domain.levels == 2:
            return CellSensitivity(("level 0", "level 1"), ((m, -1), (0, 1)), m, m**2)
        unit = tuple((0, *(int(i == k) for i in range(domain.levels))) for k in range(domain.levels))
        return CellSensitivity(self.statistics(domain), unit, m, m**2)

    def law(self, domain: Domain, n: Tensor, *parameters: Tensor) -> Law:
        """Multinomial, or Binomial when there are two levels; nothing is clamped. The last parameter, p, is (..., K)."""
        p, m, each = parameters[-1], self.trials(domain), self._each(domain, parameters)
        p, total = p / p.sum(axis=-1, keepdims=True), n * (m if each is None else each)
        return Count(total, p[..., 1], m, each) if domain.levels == 2 else Counts(total, p, m, each)

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Onto the simplex of the size of all trials: negative counts to 0, then rescaled; uniform where nothing is left.

        Where trials differ their number is not known here: negative counts go to 0, and only more than can be is rescaled.
        """
        size = n * self.trials(domain)
        if domain.levels == 2:
            return np.clip(noisy, 0, size)
        if not self._differ(domain):
            return onto_simplex(noisy, size)
        counts = np.maximum(noisy, 0)
        return np.where(counts.sum(axis=-1, keepdims=True) > size, onto_simplex(noisy, size), counts)

    def log_likelihood(self, sums: Tensor, n: Tensor, domain: Domain, *parameters: Tensor) -> Tensor:
        """Sum over levels of s_k log p_k."""
        p = parameters[-1]
        log_p = pt.log(pt.maximum(p / p.sum(axis=-1, keepdims=True), 1e-300))
        if domain.levels == 2:
            each = self._each(domain, parameters)
            total = n * (self.trials(domain) if each is None else each)
            return sums[..., 0] * log_p[..., 1] + (total - sums[..., 0]) * log_p[..., 0]
        return (sums * log_p).sum(axis=-1)

    def _differ(self, domain: Domain) -> bool:
        """Whether records need not have the same number of trials."""
        return False

    def _each(self, domain: Domain, parameters: Sequence[Tensor]) -> Tensor | None:
        """How many trials a record of each cell has, where they differ; else None."""
        return parameters[0] if self._differ(domain) else None


class Multinomial(Categorical):
    """Multinomial(n, p); its last axis is the levels. Where n is not one plain number, the upper bound says how large it is at most."""

    DISTRIBUTION = "Multinomial"
    WHOLE = False
    NDIM = 1
    FIXED = ((0, "n"),)
    BOUNDS = "integer"
    EXAMPLES = (
        Example(Domain(0, 7, levels=3, unknown=(False, True), known=(7.0, None)), ((7, 7), ((0.2, 0.3, 0.5), (0.9, 0.05, 0.05)))),
        Example(Domain(0, 4, levels=2, unknown=(False, True), known=(4.0, None)), ((4, 4), ((0.2, 0.8), (0.6, 0.4)))),
        Example(Domain(0, 7, levels=3, unknown=(False, True), known=(None, None)), ((4, 7), ((0.2, 0.3, 0.5), (0.9, 0.05, 0.05)))),
        Example(Domain(0, 4, levels=2, unknown=(False, True), known=(None, None)), ((3, 1), ((0.2, 0.8), (0.6, 0.4)))),
    )

    def natural(self, levels: int, known: Sequence[float | None]) -> tuple[float, float] | None:
        """Values lie between 0 and the number of trials, rounded down, where it is the same for all."""
        return None if known[0] is None else (0.0, float(np.floor(known[0])))

    def trials(self, domain: Domain) -> int:
        """The parameter n, or the most that it can be, which is the upper bound of every count."""
        return int(domain.upper)

    def _differ(self, domain: Domain) -> bool:
        return domain.known[:1] == (None,)

    def exact(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """(..., K) -> K arrays of shape (...): counts that add up to n whatever was there.

        Each is capped by what those before it left of n, and the last takes what is left; counts that add up to n stay as they are.
        Where n differs the last is capped as well, so that counts add up to the most trials at most.
        """
        left, differ = np.full(values.shape[:-1], self.trials(domain), dtype=np.int64), self._differ(domain)
        counts = []
        for k in range(domain.levels - (not differ)):
            counts.append(np.minimum(np.rint(values[..., k]).astype(np.int64), left))
            left = left - counts[-1]
        counts = counts if differ else [*counts, left]
        return (counts[1],) if domain.levels == 2 else tuple(counts)


FAMILIES = (Categorical(), Multinomial())
