"""Bernoulli and Binomial: the number of successes in each cell, whether written with ``p`` or ``logit_p``."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt

from pymc_dp.families.family import CellSensitivity, Domain, Example, Family, Sensitivity
from pymc_dp.laws.kernel import Tensor
from pymc_dp.laws.law import Count


class Bernoulli(Family):
    """Bernoulli(p)."""

    DISTRIBUTION = "Bernoulli"
    WHOLE = True
    EXAMPLES: tuple[Example, ...] = (Example(Domain(0, 1, unknown=(True,)), ((0.03, 0.5, 0.9),)),)

    def lattice(self, domain: Domain) -> float:
        """Counts are integers."""
        return 1.0

    def statistics(self, domain: Domain) -> tuple[str, ...]:
        """The ones; the zeros follow, n being public."""
        return ("ones",)

    def exact(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """The number of successes; halves are rounded to even, as ``np.rint`` does."""
        return (np.rint(values).astype(np.int64),)

    def sensitivity(self, domain: Domain) -> Sensitivity:
        """A value is 0 or 1, so two values differ by at most 1, and one has norm at most 1 (docs/theory.md, ZRD16 Lemma 1)."""
        return Sensitivity(1, 1, 1, "one record moves the number of ones by at most 1; the zeros are the rest of the records")

    def cell_sensitivity(self, domain: Domain) -> CellSensitivity:
        """Zeros and ones: one of the two is 1."""
        return CellSensitivity(("zeros", "ones"), ((1, -1), (0, 1)), 1, 1)

    def law(self, domain: Domain, n: Tensor, *parameters: Tensor) -> Count:
        """The sum of n ones and zeros is Binomial; nothing is clamped."""
        (p,) = parameters
        return Count(n, p)

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Move noisy sums into [0, n]."""
        return np.clip(noisy, 0, n)

    def log_likelihood(self, sums: Tensor, n: Tensor, domain: Domain, *parameters: Tensor) -> Tensor:
        """S log p + (n - s) log(1 - p); a factor with nothing to count is left out, so p = 0 or 1 stays possible."""
        s = sums[..., 0]
        p = pt.clip(parameters[-1], 1e-300, 1 - 1e-16)
        return s * pt.log(p) + (n - s) * pt.log1p(-p)


class Binomial(Bernoulli):
    """Binomial(n, p). Where the number of trials n is not one plain number, the upper bound says how many they are at most."""

    DISTRIBUTION = "Binomial"
    FIXED = ((0, "n"),)
    BOUNDS = "integer"
    EXAMPLES = (
        Example(Domain(0, 1, unknown=(False, True), known=(1.0, None)), ((1, 1), (0.2, 0.7))),
        Example(Domain(0, 12, unknown=(False, True), known=(12.0, None)), ((12, 12, 12), (0.03, 0.5, 0.9))),
    )

    def natural(self, levels: int, known: Sequence[float | None]) -> tuple[float, float] | None:
        """Values lie between 0 and the number of trials, rounded down: of 3.5 trials 3 can succeed, and 3.5 would be rounded to 4."""
        return None if known[0] is None else (0.0, float(np.floor(known[0])))

    def statistics(self, domain: Domain) -> tuple[str, ...]:
        """The successes; the failures follow, n being public."""
        return ("successes",)

    def sensitivity(self, domain: Domain) -> Sensitivity:
        """A value lies in [0, trials], so two values differ by at most the number of trials."""
        trials = int(domain.upper)
        return Sensitivity(trials, trials**2, trials, f"a record has {trials} trials, so it moves the successes by at most {trials}")

    def cell_sensitivity(self, domain: Domain) -> CellSensitivity:
        """Failures and successes, which add up to the trials."""
        trials = int(domain.upper)
        return CellSensitivity(("failures", "successes"), ((trials, -1), (0, 1)), trials, trials**2)

    def law(self, domain: Domain, n: Tensor, *parameters: Tensor) -> Count:
        """The sum of n Binomial numbers of equally many trials is Binomial; nothing is clamped."""
        trials, p = parameters
        return Count(n * trials, p, int(domain.upper), trials if domain.known[:1] == (None,) else None)

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Move noisy sums into [0, n upper]."""
        return np.clip(noisy, 0, n * domain.upper)

    def log_likelihood(self, sums: Tensor, n: Tensor, domain: Domain, *parameters: Tensor) -> Tensor:
        """S log p + (n trials - s) log(1 - p)."""
        trials, p = parameters
        return super().log_likelihood(sums, n * trials, domain, p)


FAMILIES = (Bernoulli(), Binomial())
