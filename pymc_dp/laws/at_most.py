"""Law of counts that add up to a public number at most, because some records are left out and how many is private.

That any number of values is there is as likely beforehand. Poisson counts about rates that may be anything say so as well, were it not for
totals above the number of records, which are taken out here (docs/theory.md, "Missing values").
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.dist_math import normal_lcdf
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.laws.kernel import Kernel, Tensor, by_cell
from pymc_dp.laws.limited import counts_at_most
from pymc_dp.privacy.noise_law import Noise

LONGEST = 5_000
"""Two counts are summed over in windows of so many at most."""
MOST_TERMS = 450
"""More counts are, in windows of so many together at most, of which sums take the square."""


@dataclass(frozen=True)
class AtMost:
    """K independent Poisson counts that add up to ``most`` or less: ``rate`` broadcasts to (G, *C, K), ``most`` to (G, *C).

    The density is that of the counts, times whether they add up to so many. The probability that counts of these rates do, by which that is
    to be divided, is also the density of the rates beforehand, times which it is to be taken: both are left out.
    """

    rate: Tensor
    most: Tensor


def summed(K: int, length: int) -> bool:
    """Whether K counts are summed over, in windows of so many."""
    return length <= LONGEST if K <= 2 else length * K <= MOST_TERMS


def log_density(law: AtMost, noisy: Tensor, noise: Noise, length: int) -> Tensor:
    """Log-density (G, *C) of counts with noise, (G, *C, K), by a sum over all counts in windows of this length."""
    inputs = (noisy, law.rate + np.zeros(noisy.type.shape), law.most)
    [value] = by_cell(Kernel(counts_at_most, (1,)), noisy.type.shape[:-1], inputs, length, noise.kernel)
    return value


def log_chance(law: AtMost, noisy: Tensor, noise: Noise) -> Tensor:
    """Logarithm (G, *C) of how probable it is, given noisy counts, that the exact ones add up to no more than they can.

    Both counts and noise are taken for normal, of their means and variances.
    """
    variance = noise.standard_deviation**2
    taken = law.rate / (law.rate + variance)
    left = law.most + 0.5 - (law.rate + taken * (noisy - law.rate)).sum(axis=-1)
    return normal_lcdf(0.0, pt.sqrt((taken * variance).sum(axis=-1)), left)


class CountsAtMostRV(RandomVariable):
    """Draws of Poisson counts, given that they add up to so many or less."""

    name = "counts_at_most"
    signature = "(k),()->(k)"
    dtype = "int64"
    _print_name = ("CountsAtMost", "\\operatorname{CountsAtMost}")

    @classmethod
    def rng_fn(cls, rng: Any, rate: Any, most: Any, size: Any) -> np.ndarray:
        """Their total by inversion, and which of them each is. Far below the rates' sum a total is a geometric number below ``most``."""
        from scipy.stats import poisson

        batch = np.broadcast_shapes(np.shape(rate)[:-1], np.shape(most)) if size is None else tuple(size)
        rate, most = np.broadcast_to(rate, (*batch, np.shape(rate)[-1])), np.broadcast_to(most, batch)
        whole = np.maximum(rate.sum(axis=-1), 1e-300)
        chance = poisson.cdf(most, whole)
        total = poisson.ppf(rng.uniform(size=batch) * chance, whole)
        below = rng.geometric(np.clip(1 - most / whole, 1e-3, 1.0)) - 1
        total = np.clip(np.where(chance > 1e-200, total, most - below), 0, most)
        return rng.multinomial(total.astype(np.int64), rate / whole[..., None])


def simulated(law: AtMost, shape: tuple[int, ...]) -> Tensor:
    """A draw of the counts (G, *C, K), without noise."""
    return CountsAtMostRV()(law.rate + np.zeros(shape), law.most + np.zeros(shape[:-1]), size=shape[:-1])
