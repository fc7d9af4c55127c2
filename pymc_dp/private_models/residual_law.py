"""The law of noisy second moments if sums of residuals were released as well.

Both are readings of one truth: moments M of features, products S with a normal response, and its square. Sums of residuals
r = w - b'D are S - M b and sum w² - 2 b'S + b'M b. Residuals that were clamped are told by the normal law with their mean square
(``families.residuals.kept``): for jointly normal x and z the covariance of x with z clamped is a known part of that with z. Latents are
those of ``moment_law``, for residuals in place of responses, centred on what was released of these.

Everything here is arithmetic on a release.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dp.families.residuals import Residuals, cut_off, kept
from pymc_dp.laws.kernel import Kernel, Tensor
from pymc_dp.privacy.noise_law import Noise
from pymc_dp.private_models.moment_law import Related, Scatter, scatter
from pymc_dp.private_models.residual_loops import drawn_residual_moments, residual_moments
from pymc_dp.releases.noisy_statistic import NoisyStatistic

CLOSE = 30.0
"""Up to so many times as wide as their own law is given the parameters, latents are centred on what was released of them.

About their own law chains would begin where coefficients are far off, and there moments of features would give way before these do.
"""
STEPS = 50
"""Of a search for the sum of squares that clamped ones tell."""


@dataclass(frozen=True)
class ResidualScatter(Scatter):
    """A law of second moments and of sums of residuals; the attributes of ``Scatter`` are about residuals where they are about responses.

    Attributes
    ----------
    residuals : Residuals
    noise_on_residuals : Noise
        In lattice units of residuals, as a share of ``Residuals.units``.
    square : (float, float)
        Where the sum of squared residuals is centred, and the noise on that.
    skew : float
        By how many sigma the mean of residuals may be off where more of them are cut off on one side: see ``cut_off``.
    """

    residuals: Residuals
    noise_on_residuals: Noise
    square: tuple[float, float]
    skew: float

    def given(self) -> np.ndarray:
        """All that is no variable (B, W), as in ``Scatter``, with what ``residual_loops`` needs about residuals."""
        given, (centre, half) = super().given(), self.regression.centres()
        F, b = len(self.order), np.array(self.residuals.coefficients)[list(self.order)]
        products, square = self.deviations_of_residuals[[0, -1]]
        off = np.zeros(F + 1)
        off[:F], off[F] = half[F] * b, 1.0
        off[0] += centre[F]
        more = [*b, self.residuals.clamp, *self.square, products, square, *self.order, self.residuals.clamp_squares, self.skew]
        return np.concatenate([given[:, : -F - 2], np.tile([*off, *more], (len(given), 1))], axis=1)

    @property
    def latents(self) -> int:
        """As many as without residuals, and one for what is cut off of residuals."""
        return super().latents + 1

    @property
    def deviations_of_residuals(self) -> np.ndarray:
        """Standard deviations (F + 1,) of the noise on sums of residuals, for a response on [-1, 1]."""
        return self.noise_on_residuals.standard_deviation * self.residuals.units

    def log_density(
        self, noisy: Tensor, n: Tensor, phi: Tensor, sigma: Tensor, latent: Tensor, shared: Tensor | None, given: Tensor
    ) -> Tensor:
        """Log-density of moments and sums of residuals (1, K + F + 1) and of latents, with the arguments that it has in ``Scatter``."""
        common = self._in_cells(shared)
        return Kernel(residual_moments, (2, 3, 4))(noisy, n, phi, sigma, latent, common, given, return_list=True)[0]

    def simulated(self, n: Tensor, phi: Tensor, sigma: Tensor, latent: Tensor, shared: Tensor | None, given: Tensor) -> Tensor:
        """A predictive draw (1, K + F + 1), given the features' moments."""
        K, F = len(self.regression.entries), len(self.order)
        freedom = pt.maximum(n - F, 0.5)
        blank = np.zeros((1, F + 1))
        draws = pt.concatenate([pm.Normal.dist(shape=(1, K - 1)), pm.ChiSquared.dist(freedom, shape=(1,))[:, None], blank], axis=1)
        true = Kernel(drawn_residual_moments, (0,), 0)(draws, n, phi, sigma, latent, self._in_cells(shared), given)
        first = self.noise.simulated((1, K)) / np.array(self.regression.weights)
        second = self.noise_on_residuals.simulated((1, F + 1)) * self.residuals.units
        return true + pt.concatenate([first, second], axis=1)


def residual_law(noisy: NoisyStatistic, known: np.ndarray, n: np.ndarray, related: Sequence[Related] = ()) -> ResidualScatter:
    """The law of one release, with its latents centred by what it says.

    Parameters
    ----------
    noisy : NoisyStatistic
        With residuals.
    known, n, related
        As those of ``scatter``.
    """
    regression, residuals = noisy.regression, noisy.residuals
    assert regression is not None
    assert residuals is not None
    K, F = len(regression.entries), residuals.features
    values = noisy.values.reshape(1, -1)
    deviations = noisy.deviations[K:]
    size = float(n[0])
    centre, reach, inside = _unclamped(values[0, -1], float(deviations[-1]), residuals, size)
    # Moments of residuals in the places of those of the response, for what is centred on them.
    about = values[:, :K].copy()
    about[:, [regression.entries.index((f, F)) for f in range(F)]] = values[:, K : K + F] / inside
    about[:, -1] = centre
    law = scatter(regression, noisy.noise, values[:, :K], known, n, related)
    like = scatter(regression, _of_products(noisy, float(deviations[0]) / inside), about, known, n, related)
    near = like.reach < CLOSE * np.sqrt(centre / size)
    # The sum of squares has a latent of its own only where what features explain of it, which is less, is surely less.
    surely = near.all(axis=1) & (((np.abs(like.inside) + 3 * like.reach) ** 2).sum(axis=1) + 6 * reach < centre / 2)
    centred_law = replace(
        law, inside=like.inside, reach=like.reach, near=near, near_squares=surely & (reach < CLOSE * centre * np.sqrt(2 / size))
    )
    parts = {field.name: getattr(centred_law, field.name) for field in fields(Scatter)}
    skew = cut_off(residuals.clamp / np.sqrt(centre / size))
    return ResidualScatter(**parts, residuals=residuals, noise_on_residuals=noisy.noise_on_residuals, square=(centre, reach), skew=skew)


def plain_moments(noisy: NoisyStatistic) -> np.ndarray:
    """Values (1, K + F + 1) in which what residuals tell of products with the response, and of its square, is in the place of these."""
    regression, residuals = noisy.regression, noisy.residuals
    assert regression is not None
    assert residuals is not None
    K, F, b = len(regression.entries), residuals.features, np.array(residuals.coefficients)
    values = noisy.values.reshape(1, -1).copy()
    [moments] = regression.matrix(values[:, :K], noisy.known.reshape(1, F + 1, F + 1) * noisy.lattice)
    square, _, inside = _unclamped(values[0, -1], float(noisy.deviations[-1]), residuals, float(noisy.n[0]))
    products, features = values[0, K : K + F] / inside, moments[:F, :F]
    values[0, [regression.entries.index((f, F)) for f in range(F)]] = products + features @ b
    values[0, regression.entries.index((F, F))] = square + 2 * b @ products + b @ features @ b
    return values.reshape(noisy.values.shape)


def _of_products(noisy: NoisyStatistic, deviation: float) -> Noise:
    """Noise that has this standard deviation on products with the response, once these are divided by what they are multiplied by."""
    regression = noisy.regression
    assert regression is not None
    noise = noisy.noise
    return Noise(noise.scale * deviation * regression.multipliers[1] / noise.standard_deviation, noise.step)


def _unclamped(released: float, noise: float, residuals: Residuals, n: float) -> tuple[float, float, float]:
    """The sum of squares R that clamped ones with noise tell, how far it may be off, and what clamping leaves of covariances.

    R times what is left of squares grows with R: halving finds the R that gives what was released, or the largest in reach.
    """
    low, high = noise / 2, n * 4.0
    for _ in range(STEPS):
        middle = np.sqrt(low * high)
        low, high = (low, middle) if middle * kept(residuals.clamp_squares / np.sqrt(middle / n))[1] > released else (middle, high)
    k = residuals.clamp_squares / np.sqrt(high / n)
    slope = max(kept(k)[0] - 2 * k * np.exp(-(k**2) / 2) / np.sqrt(2 * np.pi), 0.05)
    return float(high), float(noise / slope), max(kept(residuals.clamp / np.sqrt(high / n))[0], 0.05)
