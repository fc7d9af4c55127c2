"""Published ratios of two noisy counts, a part and its whole, of which neither was published."""

from dataclasses import dataclass
from functools import cache
from math import ceil, floor, inf
from typing import Any, ClassVar

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.noises import GaussianNoise, LaplaceNoise, Noise, positive

NODES = 40
"""Of each piece of an integral. Between its ends an integrand is smooth, and falls by no more than exp(-60) or so."""
LEAST_WEIGHT = 1e-14
"""Counts at the ends of a window are left out where they are less probable than this share of the most probable one."""
EXAMPLE = "NoisyRatio(LaplaceNoise(10), of=[120, 45])"


@dataclass(frozen=True, eq=False, repr=False)
class NoisyRatio(Noise):
    """The ratio (part + noise) / (whole + noise) of two counts. The model observes the part; the whole is known.

    Parameters
    ----------
    noise : LaplaceNoise or GaussianNoise
        On the part, of one scale for all rows.
    of : int or array of int
        The true whole of every row. Parts from 0 to this are possible.
    noise_of : LaplaceNoise or GaussianNoise, optional
        On the whole; by default as on the part. The two noises are independent.

    Notes
    -----
    Give the ratios in ``values=``, because the model observes counts. Let A be the noisy part and B the noisy whole. The chance that A / B
    is at most x is that of (A <= x B and B > 0) or (A >= x B and B < 0): an integral over B, which is computed in pieces by Gauss
    and Legendre's rule. It is right also where the noisy whole may be negative, as it may be of small wholes.

    Examples
    --------
    >>> with pm.Model() as truth:
    ...     share = pm.Beta("share", 1, 1)
    ...     online = pm.Binomial("online", [120, 45], share, observed=[0, 0])
    >>> law = [pmdp.NoisyRatio(pmdp.LaplaceNoise(10), of=[120, 45]), pmdp.Clipped(0, 1)]
    >>> public = pmdp.published(truth, {"online": law}, values={"online": [0.53, 1.0]})
    >>> law[0].words
    'ratio of two counts, with Laplace noise of scale 10 and Laplace noise of scale 10'
    """

    noise: Any
    of: Any
    noise_of: Any = None

    whole: ClassVar[bool] = False
    movable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for noise in (self.noise, self.below_it):
            if not isinstance(noise, LaplaceNoise | GaussianNoise):
                raise Refusal(
                    "The noises of a ratio are LaplaceNoise or GaussianNoise, also in the place of discrete noise that is wide. Write"
                    f" {EXAMPLE}."
                )
            if isinstance(noise.scale, Variable) or np.ndim(noise.scale):
                raise Refusal(f"A noise of a ratio needs a scale that is one number. Write {EXAMPLE}.")
        wholes = positive(self.of, "of", EXAMPLE)
        if (wholes % 1 != 0).any():
            raise Refusal(f"of holds counts, which are whole. Write {EXAMPLE}.")

    @property
    def below_it(self) -> Any:
        """The noise on the whole."""
        return self.noise if self.noise_of is None else self.noise_of

    @property
    def setting(self) -> object:
        """The whole."""
        return self.of

    @property
    def words(self) -> str:
        """What was done, in words."""
        return f"ratio of two counts, with {self.noise.words} and {self.below_it.words}"

    def window(self, whole: float, low: float, high: float) -> tuple[int, np.ndarray]:
        """The first part that may stand behind a ratio from low to high, and the chance (or density) given it and those that follow."""
        reach = self.noise.reach(self.noise.scale), self.below_it.reach(self.below_it.scale)
        first, last = 0, int(whole)
        if low > 0:
            first = max(first, floor(low * whole - reach[0] - low * reach[1]))
        if high < inf:
            last = min(last, ceil(high * whole + reach[0] + abs(high) * reach[1]))
        parts = np.arange(first, last + 1, dtype=float)
        weights = self._chances(parts, whole, low, high) if parts.size else parts
        likely = np.flatnonzero(weights > LEAST_WEIGHT * weights.max(initial=0.0))
        if not likely.size:
            return first, np.zeros(1)
        return first + int(likely[0]), weights[likely[0] : likely[-1] + 1]

    def _chances(self, parts: np.ndarray, whole: float, low: float, high: float) -> np.ndarray:
        if low == high:
            return self.density(parts, whole, low)
        if high == inf:
            return self.at_most(parts, whole, low, contrary=True)
        upper = self.at_most(parts, whole, high)
        return upper if low == -inf else np.maximum(upper - self.at_most(parts, whole, low), 0.0)

    def density(self, parts: np.ndarray, whole: float, ratio: float) -> np.ndarray:
        """Density of the ratio given each of parts (Y,)."""
        b, weights = self._nodes(parts, whole, ratio)
        noise_density = self.noise.density(ratio * b - parts[:, None], self.noise.scale)
        return (weights * np.abs(b) * noise_density * self.below_it.density(b - whole, self.below_it.scale)).sum(axis=1)

    def at_most(self, parts: np.ndarray, whole: float, ratio: float, contrary: bool = False) -> np.ndarray:
        """The chance that the ratio is at most this, or at least, given each of parts (Y,)."""
        b, weights = self._nodes(parts, whole, ratio)
        apart = (ratio * b - parts[:, None]) * np.where(b < 0, -1.0, 1.0) * (-1.0 if contrary else 1.0)
        chance = self.noise.below(apart, self.noise.scale)
        return (weights * chance * self.below_it.density(b - whole, self.below_it.scale)).sum(axis=1)

    def _nodes(self, parts: np.ndarray, whole: float, ratio: float) -> tuple[np.ndarray, np.ndarray]:
        """Values of the noisy whole and their weights, (Y, nodes), between the places where the integrand is not smooth."""
        reach = self.below_it.reach(self.below_it.scale)
        ends = [np.full(parts.shape, place) for place in (whole - reach, 0.0, whole, whole + reach)]
        if ratio != 0:
            middle, wide = parts / ratio, self.noise.reach(self.noise.scale) / abs(ratio)
            ends += [middle - wide, middle, middle + wide]
        edges = np.sort(np.clip(np.stack(ends, axis=1), whole - reach, whole + reach), axis=1)
        at, shares = _legendre()
        half = 0.5 * np.diff(edges, axis=1)[..., None]
        b = 0.5 * (edges[:, 1:] + edges[:, :-1])[..., None] + half * at
        return b.reshape(len(parts), -1), (half * shares).reshape(len(parts), -1)


@cache
def _legendre() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(NODES)
