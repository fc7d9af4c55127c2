"""The law of noisy sums by cell, and of noisy second moments over all cells, of features and a normal response.

Given the exact sums by cell of the features, X, and of the response, Y, what is left of the second moments over all cells is what varies
within cells: W = sum x x' - sum_g X X'/n, and the same with the response. Within cells the response is normal about a straight line in the
features, whose intercept does not matter. So, as in one cell (``moment_law``), the products within cells are Normal(W b, sigma² W), and
what they leave of the response's squares is sigma² times a chi-square variable with N - G - m degrees of freedom; both are independent of
Y, which is Normal(n a + X b, n sigma²). All of this is exact for a normal response. X, Y, W and the products are latent, each once, and
released totals and moments are noisy readings of functions of them: so nothing is taken for independent that is not.

What features are like is not known. Their sums by cell are taken as normal about a common mean, with a variance within cells, W, and one
between cells; priors are as weak as those of ``moment_loops``. Shapes: G cells, m features beside the constant.
"""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dp.families.second_moments import Regression
from pymc_dp.laws.kernel import ROOT_2, Tensor
from pymc_dp.privacy.noise_law import Noise
from pymc_dp.private_models.moment_loops import SHARE, SPREAD_OF_MEAN, steepness
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.pooling import Pooled, apart

BETWEEN = (log(0.25), 1.0)
"""Prior mean and sd of the logarithm of a feature's standard deviation between cells, in units of that within cells."""
FURTHEST = 0.9
"""Of a released mean on [-1, 1] where latents are centred."""
CLEAR = 0.3
"""The share of a feature's variance that its noise may be where latents are centred on the released one."""
NEAR = 0.7
"""The noise on the sum of responses in a cell, in standard deviations of that sum, up to which its latent is centred on it."""


@dataclass(frozen=True)
class PooledLaw:
    """The law of one release of pooled sums.

    Attributes
    ----------
    regression : Regression
    noise : Noise
        On what was multiplied by 1.
    n : (G,) ndarray
    given : (W,) ndarray
        All that is no variable but rests on released values: in a graph as data, so that another release makes the same graph. Where the
        2 m moments of features are centred, and their scales; the features' variances at most (m,), and by how much the coordinate of a
        feature's mean is lowered by the mean of what its sums are off (m,); where sums of responses are centred (G,) and their total,
        whether sums are, and whether the total is; the standard deviation of the noise on what was multiplied by 1; last what sums by cell
        are multiplied by, and what is summed over all cells.
    """

    regression: Regression
    noise: Noise
    n: np.ndarray
    given: np.ndarray

    @property
    def features(self) -> int:
        """How many features there are beside the constant, m."""
        return len(self.regression.names) - 1

    @property
    def numbers(self) -> int:
        """How many numbers are released, K: sums by cell, their totals, and products."""
        F = self.features + 1
        return (len(self.n) + 1) * F + F * (F + 1) // 2

    @property
    def latents(self) -> int:
        """Standard latents: moments of features, sums by cell, products within cells and what these leave."""
        m, G = self.features, len(self.n)
        return 4 * m + m * (m - 1) // 2 + G * (m + 1) + 1

    def log_density(self, noisy: Tensor, phi: Tensor, sigma: Tensor, latent: Tensor, given: Tensor) -> Tensor:
        """Log-density of the released numbers (K,), and of the latents, less that of standard normal ones, up to a constant.

        Parameters
        ----------
        noisy : (K,)
            As they were released, in units of 1.
        phi : (G, F)
            Coefficients, in the user's units.
        sigma : (G,)
        latent : (latents,)
        given : (W,)
            As the attribute of this name tells.
        """
        true, density = self._true(phi, sigma, latent, given, drawn=False)
        r = (noisy - true) * self._multipliers(given) / given[-3]
        return density + (-0.5 * r**2 if self.noise.gaussian else -ROOT_2 * pt.abs(r)).sum()

    def simulated(self, phi: Tensor, sigma: Tensor, latent: Tensor, given: Tensor) -> Tensor:
        """A predictive draw (K,) of the released numbers, given the features' moments and sums."""
        true, _ = self._true(phi, sigma, latent, given, drawn=True)
        return true + self.noise.simulated((self.numbers,)) / self._multipliers(given)

    def _multipliers(self, given: Tensor) -> Tensor:
        """What each of the released numbers (K,) was multiplied by."""
        by_cell = len(self.n) * (self.features + 1)
        return pt.concatenate([pt.full((by_cell,), given[-2]), pt.full((self.numbers - by_cell,), given[-1])])

    def _true(self, phi: Tensor, sigma: Tensor, latent: Tensor, given: Tensor, *, drawn: bool) -> tuple[Tensor, Tensor]:
        """The exact numbers (K,) from latents, and the log-density of these less that of standard normal ones; or a new draw of them."""
        m, G, n = self.features, len(self.n), self.n
        alpha, beta, s = self._scaled(phi, sigma)
        mean, variance, slopes, between, of_sums, of_response, of_products, of_square = self._latents(latent)
        factor, density = _within(variance, slopes, given, m)
        sums = []
        for f in range(m):
            sd = pt.sqrt(n + (n * pt.exp(BETWEEN[0] + BETWEEN[1] * between[f])) ** 2)
            off = sd * sum(factor[f][j] * of_sums[:, j] for j in range(f + 1))
            # The total is told better than the sums are: so the mean counts from where they leave it.
            at = given[f] + given[2 * m + f] * mean[f] - given[5 * m + f] * off.sum() / n.sum()
            density += 0.5 * (mean[f] ** 2 - at**2)
            ratio = SPREAD_OF_MEAN * pt.sinh(at)
            sums.append(n * ratio / pt.sqrt(1 + ratio**2) + off)
        expected = n * alpha + sum(beta[f] * sums[f] for f in range(m))
        spread = s * np.sqrt(n)
        freedom = max(float(n.sum()) - G, 1.0)
        if drawn:
            response = expected + spread * pm.Normal.dist(shape=(G,))
            of_products, chi = pm.Normal.dist(shape=(m,)), pm.ChiSquared.dist(max(freedom - m, 0.5))
        else:
            response, of_response_density = self._response(expected, spread, of_response, given[6 * m :])
            density, chi = density + of_response_density, _chi_square(of_square, max(freedom - m, 0.5))
        # What the response is along each direction of the features within cells.
        root = sqrt(freedom)
        along = [root * sum(factor[f][j] * beta[f] for f in range(j, m)) + s * of_products[j] for j in range(m)]
        moments = [
            freedom * sum(factor[i][k] * factor[j][k] for k in range(i + 1)) + (sums[i] * sums[j] / n).sum()
            if j < m
            else root * sum(factor[i][k] * along[k] for k in range(i + 1)) + (sums[i] * response / n).sum()
            for i in range(m)
            for j in range(i, m + 1)
        ]
        squares = sum(part**2 for part in along) + (response**2 / n).sum() + s**2 * chi
        by_cell = pt.stack([*sums, response], axis=1)
        return pt.concatenate([by_cell.reshape((G * (m + 1),)), by_cell.sum(axis=0), pt.stack([*moments, squares])]), density

    def _scaled(self, phi: Tensor, sigma: Tensor) -> tuple[Tensor, list[Tensor], Tensor]:
        """Intercepts (G,), slopes and sigma on the scale of what is released."""
        centre, half = self.regression.centres()
        m = self.features
        alpha = (phi[:, 0] + sum(phi[:, f] * centre[f] for f in range(1, m + 1)) - centre[-1]) / half[-1]
        return alpha, [phi[0, f] * (half[f] / half[-1]) for f in range(1, m + 1)], sigma[0] / half[-1]

    def _latents(self, latent: Tensor) -> list[Tensor]:
        """Latents by what they are of."""
        m, G = self.features, len(self.n)
        parts, start = [], 0
        for length in (m, m, m * (m - 1) // 2, m, G * m, G, m):
            parts.append(latent[start : start + length])
            start += length
        parts[4] = parts[4].reshape((G, m))
        return [*parts, latent[start]]

    def _response(self, expected: Tensor, spread: Tensor, of_response: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        """Sums of responses (G,), and their log-density less that of their latents.

        Latents are standard ones of the sums themselves; or all are centred on released sums; or one is, that of their total.
        """
        G, N = len(self.n), float(self.n.sum())
        released, total, near, near_total = given[:G], given[G], given[G + 1], given[G + 2]
        cell, whole = given[-2], given[-1]
        of_sum, of_total = (given[G + 3] / each for each in (cell, whole))
        # Centred ones are told by their total besides, so together they move less.
        lessened = 1 - 1 / pt.sqrt(1 + G * (whole / cell) ** 2)
        there = released + of_sum * (of_response - lessened * of_response.mean())
        off = (there - expected) / spread
        moved = (0.5 * of_response**2 - 0.5 * off**2 - pt.log(spread / of_sum)).sum()
        direction = np.sqrt(self.n / N)
        along, s = (of_response * direction).sum(), spread[0] / np.sqrt(self.n[0])
        e = (total + of_total * along - expected.sum()) / (s * sqrt(N))
        moved_total = 0.5 * along**2 - 0.5 * e**2 - pt.log(s * sqrt(N) / of_total)
        latent = of_response + pt.switch(near_total > 0, e - along, 0.0) * direction
        density = pt.switch(near > 0, moved, pt.switch(near_total > 0, moved_total, 0.0))
        return pt.switch(near > 0, there, expected + spread * latent), density


def _within(variance: Tensor, slopes: Tensor, given: Tensor, m: int) -> tuple[list[list[Tensor]], Tensor]:
    """The Cholesky factor of the features' covariance within cells, row by row, and the density less that of latents."""
    logits = given[m : 2 * m] + given[3 * m : 4 * m] * variance
    density = 0.5 * (variance**2 - ((logits - SHARE[0]) / SHARE[1]) ** 2).sum()
    partial, place, factor = steepness(m + 1) * pt.sinh(slopes), 0, []
    for f in range(m):
        row = [partial[place + j] for j in range(f)]
        place += f
        length = sum((slope**2 for slope in row), pt.ones(()))
        rest = pt.sqrt(given[4 * m + f] * pt.sigmoid(logits[f]) / length)
        factor.append([*(slope * rest for slope in row), rest])
    return factor, density


def _chi_square(latent: Tensor, freedom: float) -> Tensor:
    """A chi-square variable from a standard normal one, by Wilson and Hilferty's cube root."""
    small = 2 / (9 * freedom)
    return freedom * pt.maximum(1 - small + latent * sqrt(small), 0.0) ** 3


def pooled_law(noisy: NoisyStatistic) -> PooledLaw:
    """The law of what was released, with its latents centred by what the released numbers say."""
    regression, released, n = noisy.regression, apart(noisy), noisy.n.astype(float)
    assert regression is not None
    multipliers = noisy.multipliers[[0, -1]]
    of_sum, of_total = noisy.noise.standard_deviation / multipliers
    N, sigma = n.sum(), typical_sigma(noisy)
    near = of_sum < NEAR * sqrt(np.median(n)) * sigma
    near_total = of_total < NEAR * sqrt(N) * sigma
    # The best of both readings of the total.
    sums, G = released.cells[:, -1], len(n)
    sums = sums + (released.totals[-1] - sums.sum()) / G / (1 + (of_total / of_sum) ** 2 / G)
    of_features = _centred(released, len(regression.names) - 1, float(N), of_total)
    given = np.concatenate([*of_features, sums, [released.totals[-1], near, near_total, noisy.noise.standard_deviation], multipliers])
    return PooledLaw(regression, noisy.noise, n, given)


def typical_sigma(noisy: NoisyStatistic) -> float:
    """The standard deviation of the response over all cells, or less: what is left of it once noise is taken off."""
    released, N = apart(noisy), float(noisy.n.sum())
    noise = 2 * noisy.noise.standard_deviation / noisy.multipliers[-1]
    return sqrt(max(released.moments[-1] - released.totals[-1] ** 2 / N - noise, 0.0) / N)


def _centred(released: Pooled, m: int, N: float, noise: float) -> list[np.ndarray]:
    """Where the features' means and variances are centred, as ``moment_loops`` makes them of latents, and what else belongs to them."""
    means = np.clip(released.totals[:m] / N, -FURTHEST, FURTHEST)
    of_means = np.arcsinh(means / np.sqrt(1 - means**2) / SPREAD_OF_MEAN)
    steep = (1 - means**2) ** -1.5 / SPREAD_OF_MEAN / np.cosh(of_means)
    noise_of_means = noise / N * steep
    squares = released.moments[[f * (m + 1) - f * (f - 1) // 2 for f in range(m)]]
    shares = (squares / N - means**2) / (1 - means**2)
    clear = (shares > noise / N / CLEAR) & (shares < 1)
    shares = np.where(clear, np.clip(shares, 1e-9, 1 - 1e-9), 0.5)
    logits = np.where(clear, np.log(shares / (1 - shares)), SHARE[0])
    spread = np.where(clear, np.minimum(noise / N / shares + 2 / sqrt(N), 1.0), SHARE[1])
    return [
        of_means / (1 + noise_of_means**2),
        logits,
        np.minimum(noise_of_means, 1.0),
        spread,
        1 - means**2,
        steep / (1 + noise_of_means**2),
    ]
