"""The law of noisy second moments of features and of several responses, whose errors are normal together.

Given the second moments of the features, a normal response has the law of ``moment_law``; and a second one, given the first, is a
normal response on the features and the first. So the lower Cholesky factor of all moments is filled row by row: a response's row is
G' c + sigma e, where G are the rows before it, c its coefficients on the features and on the responses before it and sigma what is left
of it then; and the square of the entry on the diagonal is sigma² times a chi-square variable, with n - F degrees of freedom less the
responses before it. That is Bartlett's decomposition of a Wishart matrix (Bartlett 1933), and exact whatever the features' distribution.

Where products of two responses are not released, those are independent given the features, and each has the law of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dp.families.second_moments import Regression
from pymc_dp.laws.kernel import Kernel, Tensor
from pymc_dp.privacy.noise_law import Noise
from pymc_dp.private_models.moment_law import CLEAR, TYPICAL, Related, Scatter, _factor, of_features
from pymc_dp.private_models.vector_loops import drawn_vectors, vector_moments


@dataclass(frozen=True)
class VectorScatter(Scatter):
    """A law of second moments of q responses; of the attributes of ``Scatter`` those about features count.

    Attributes
    ----------
    inside_responses, reach_responses : (B, q, F + q) ndarrays
        Where released values put the row of every response in the Cholesky factor of all moments, and the noise on that; in place F + r of
        response r its square, and the noise on it.
    near_responses : (B, q, F + q) ndarray of bool
        Which of them are better centred there than on their own law.
    """

    inside_responses: np.ndarray
    reach_responses: np.ndarray
    near_responses: np.ndarray

    @property
    def among(self) -> bool:
        """Whether products of two responses are released."""
        F = len(self.order)
        return (F, F + 1) in self.regression.entries

    @property
    def latents(self) -> int:
        """Standard latents a cell: of unknowns, and one for every released moment of responses."""
        F = len(self.order)
        return self.unknowns + sum(j >= F for _, j in self.regression.entries)

    def given(self) -> np.ndarray:
        """All that is no variable (B, W), as in ``Scatter``, with what ``vector_loops`` needs about responses."""
        B, F = len(self.start), len(self.order)
        centre, half = self.regression.centres()
        settings = [self.regression.q, self.among, not self.regression.scale_known, *centre[F:], *half[F:]]
        parts = [self.inside_responses, self.reach_responses, self.near_responses.astype(float)]
        return np.concatenate([self.of_features(), np.tile(settings, (B, 1)), *(part.reshape(B, -1) for part in parts)], axis=1)

    def log_density(
        self, noisy: Tensor, n: Tensor, phi: Tensor, sigma: Tensor, latent: Tensor, shared: Tensor | None, given: Tensor
    ) -> Tensor:
        """Log-density (B,) of released moments (B, K) and of the latents, as that of ``Scatter``, with a covariance for sigma.

        Parameters
        ----------
        phi : (B, q, F)
            Coefficients, in the user's units.
        sigma : (B, q, q)
            Covariance, in the user's units.
        """
        arguments = noisy, n, *self._rows(phi, sigma), latent, self._in_cells(shared), given
        return Kernel(vector_moments, (1, 2, 3, 4, 5))(*arguments, return_list=True)[0]

    def simulated(self, n: Tensor, phi: Tensor, sigma: Tensor, latent: Tensor, shared: Tensor | None, given: Tensor) -> Tensor:
        """A predictive draw (B, K) of the released moments, given the features' moments."""
        shape, F = (len(self.start), len(self.regression.entries)), len(self.order)
        draws = pm.Normal.dist(shape=shape)
        squares = [] if self.regression.scale_known else [self.regression.entries.index((F + r, F + r)) for r in range(self.regression.q)]
        for r, place in enumerate(squares):
            draws = draws[:, place].set(pm.ChiSquared.dist(pt.maximum(n - F - r * self.among, 0.5), shape=shape[:1]))
        true = Kernel(drawn_vectors, (0,), 0)(draws, n, *self._rows(phi, sigma), latent, self._in_cells(shared), given)
        return true + self.noise.simulated(shape) / np.array(self.regression.weights)

    def _rows(self, phi: Tensor, covariance: Tensor) -> tuple[Tensor, Tensor]:
        """Both as rows, one a cell."""
        B, F, q = len(self.start), len(self.order), self.regression.q
        return phi.reshape((B, q * F)), covariance.reshape((B, q * q))


def vector_scatter(
    regression: Regression, noise: Noise, noisy: np.ndarray, known: np.ndarray, n: np.ndarray, related: Sequence[Related] = ()
) -> VectorScatter:
    """The law of these released moments (B, K), with its latents centred by what they say; the arguments are those of ``scatter``."""
    law = of_features(regression, noise, noisy, known, n, related)
    parts = {field.name: getattr(law, field.name) for field in fields(Scatter)}
    shape = (len(noisy), regression.q, regression.size)
    centred = VectorScatter(**parts, inside_responses=np.zeros(shape), reach_responses=np.ones(shape), near_responses=np.zeros(shape, bool))
    return _with_responses(centred, noisy, np.maximum(n, 1.0))


def _with_responses(law: VectorScatter, noisy: np.ndarray, n: np.ndarray) -> VectorScatter:
    """Where released values put the moments of the responses, and which of their latents are better centred there.

    What a response is along one before it is centred there only if all of that one is.
    """
    regression, F, q = law.regression, len(law.order), law.regression.q
    position = {f: a for a, f in enumerate(law.order)} | {F + r: F + r for r in range(q)}
    places = {tuple(sorted((position[i], position[j]))): k for k, (i, j) in enumerate(regression.entries)}
    factor = np.zeros((len(n), F + q, F + q))
    factor[:, :F, :F] = (_factor(law, law.start) if law.unknowns else law.factor) * np.sqrt(n)[:, None, None]
    inside, reach, near = law.inside_responses.copy(), law.reach_responses.copy(), law.near_responses.copy()
    surely = np.ones((len(n), F + q), bool)
    for r in range(q):
        row, width = F + r, F + r * law.among
        of_row = [places[a, row] for a in range(width)]
        inverse = np.linalg.inv(factor[:, :width, :width])
        inside[:, r, :width] = (inverse * noisy[:, None, of_row]).sum(axis=2)
        reach[:, r, :width] = np.sqrt((inverse**2 * law.deviations[of_row] ** 2).sum(axis=2))
        factor[:, row, :width] = inside[:, r, :width]
        if regression.scale_known:
            near[:, r, :width] = reach[:, r, :width] < TYPICAL
            continue
        place = places[row, row]
        explained = np.where(reach < 1.0, np.maximum(inside**2 - reach**2, 0.0), 0.0)[:, r, :width].sum(axis=1)
        noise = law.deviations[place]
        residual = np.maximum(noisy[:, place] - explained - 4 * noise, 0.0)
        sigma2 = residual / n
        enough = (n >= F + q + 4) | (residual > CLEAR * noise)
        near[:, r, :width] = enough[:, None] & (reach[:, r, :width] < np.sqrt(sigma2)[:, None]) & surely[:, :width]
        inside[:, r, row], reach[:, r, row] = noisy[:, place], noise
        near[:, r, row] = enough & (noise < sigma2 * np.sqrt(2 * n)) & near[:, r, :width].all(axis=1)
        surely[:, row] = near[:, r, row]
        factor[:, row, row] = np.sqrt(np.maximum(noisy[:, place] - explained, noise))
    return replace(law, inside_responses=inside, reach_responses=reach, near_responses=near)
