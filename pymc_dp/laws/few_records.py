"""Law of the sums of u and of u² of few records each: what is left of the squares about the mean is a gamma variable, not a normal one.

Of n normal records of variance V the law is known: with A the sum of u less its mean, the squares about that mean add up to A² / n and an
independent V chi-square(n - 1). The central limit takes both sums as normal, which a sum of few squares is not. Clamped records get the
slope on A, the share of A² / n and the gamma law with which mean and covariance of both sums stay theirs, as far as n tells them from those
of many records (docs/theory.md).
"""

from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dp.laws.kernel import Kernel, Tensor, by_cell
from pymc_dp.laws.squares import squares_plus_noise
from pymc_dp.privacy.noise_law import Noise

FEW = 30
"""Of more records in every cell sums of squares are taken as normal."""
NARROW = 0.25
"""So are they where noise is wider than squares vary of values whose variance is this share of the largest there is."""
LEAST, MOST = 1e-3, 50.0
"""From how little to how much squares may vary given the values, in units of what those of normal values do."""


def few(n: np.ndarray, noise: Noise) -> bool:
    """Whether the law of few records is told from a normal one in any cell: n are the numbers of records, and public."""
    return bool(((n >= 1) & (n <= FEW) & (noise.standard_deviation <= NARROW * np.sqrt(2 * n))).any())


@dataclass(frozen=True)
class OfSquares:
    """The law of (sum u, sum u²) of n records: sum (u - mean)² is tilt A + share A² / n + a gamma variable, A being sum u - n mean."""

    n: Tensor
    mean: Tensor
    variance: Tensor
    tilt: Tensor
    share: Tensor
    shape: Tensor
    scale: Tensor

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """What the loop takes of it."""
        return self.n, self.mean, self.variance, self.tilt, self.share, self.shape, self.scale


def of_squares(n: Tensor, mean: Tensor, variance: Tensor, covariance: Tensor, of_square: Tensor) -> OfSquares:
    """The law from the mean and variance of u, its covariance with u² and the variance of u²; of one record nothing is left."""
    several = pt.maximum(n, 2.0)
    least = pt.maximum(variance, 1e-30)
    third = covariance - 2 * mean * variance
    fourth = of_square - 4 * mean * covariance + 4 * mean**2 * variance
    vary = pt.clip((fourth - third**2 / least) / (2 * least**2), LEAST, MOST)  # 1 where values are normal
    share = pt.minimum(vary, 1.0)
    left = 2 * (several * vary - share**2)
    alone = n < 2
    return OfSquares(
        n, mean, variance,
        tilt=pt.switch(alone, 0.0, (1 - 1 / several) * third / least),
        share=pt.switch(alone, 1.0, share),
        shape=pt.switch(alone, 0.0, (several - share) ** 2 / left),
        scale=least * left / (several - share),
    )  # fmt: skip


def log_density(law: OfSquares, noisy: Tensor, noise: Noise) -> Tensor:
    """Log-density (G, *C) of both sums with noise, (G, *C, 2)."""
    width = noise.standard_deviation if noise.gaussian else noise.spread
    kernel = Kernel(squares_plus_noise, (2, 3, 4, 5, 6, 7))
    [value] = by_cell(kernel, noisy.type.shape[:-1], (noisy, *law.parts), width, float(noise.gaussian))
    return value


def simulated(law: OfSquares, shape: tuple[int, ...]) -> Tensor:
    """A draw of both sums (G, *C, 2), without noise."""
    A = pt.sqrt(law.n * law.variance) * pm.Normal.dist(shape=shape[:-1])
    some = law.shape > 0
    gamma = pm.Gamma.dist(pt.switch(some, law.shape, 1.0), 1.0, shape=shape[:-1]) * law.scale * some
    first = law.n * law.mean + A
    squares = law.n * law.mean**2 + (2 * law.mean + law.tilt) * A + law.share * A**2 / pt.maximum(law.n, 1.0) + gamma
    # Of no record both are 0, or next to it.
    return pt.stack([first, pt.switch(law.n < 1, law.n * (law.mean**2 + law.variance), squares)], axis=-1)
