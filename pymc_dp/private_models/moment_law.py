"""The law of noisy second moments of features and responses.

Given the second moments M = sum D D' of the features D = (1, u, ...), those of a normal response w = D'c + sigma e are known
exactly, whatever the features' distribution: S = sum D w is Normal(M c, sigma² M), and sum w² - S' M^-1 S is sigma² times a
chi-square variable with n - F degrees of freedom (theory: Wishart augmentation, docs/theory.md). So M and S are latent, and the
released values are their noisy readings. M is what private features leave unknown; its prior is weak and given by moments of
features on [-1, 1].

Everything here is arithmetic on a release. Latents are standard normal variables, moved and scaled by what the released values say
about them; that changes the geometry the sampler sees, never the posterior. Scores of a response with a link have the same law, M
being their information and sigma the root of what they are divided by (``scores``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dp.families.anchors import fitted, widened
from pymc_dp.families.expected_scores import points_of_features
from pymc_dp.families.second_moments import Regression
from pymc_dp.laws.kernel import Kernel, Tensor
from pymc_dp.privacy.noise_law import Noise
from pymc_dp.private_models.moment_loops import (
    LARGEST_MEAN,
    SHARE,
    SHARE_BY_WEIGHT,
    SPREAD_OF_MEAN,
    drawn_moments,
    normal_moments,
    packed,
    steepness,
)
from pymc_dp.private_models.score_loops import LOG, LOGIT, NO_LINK

ALIKE = 0.25
"""With several cells, the share of these prior variances that all cells have in common.

Groups differ in their covariates, as ages of students, employed and retired people do. At three quarters a mean that was released with
noise of a tenth of the bounds could be taken for noise, and then the difference of a group's outcomes for one that the covariate does not
explain."""
TYPICAL = 0.1
"""A known sigma, as a share of half the response's range, as far as the choice of latents goes."""


CLEAR = 20.0
"""What features leave of the sum of squares, in standard deviations of the noise on it, from which on it is surely not noise."""


@dataclass(frozen=True)
class Related:
    """Private features that share covariates, and the normal law of the coordinates of their moments.

    Attributes
    ----------
    features : tuple of int
    middle, root : (k,) and (k, k) ndarrays
        Of the coordinates of their means, of their shares of variance, and of their partial slopes on each other, row by row.
    squares : tuple of (int, int, float, float)
        Which of them are straight lines in the square of another before it: their places, and (a, b) where the square of the second is
        a + b times the first. Its coordinate of the mean then means nothing.
    """

    features: tuple[int, ...]
    middle: np.ndarray
    root: np.ndarray
    squares: tuple[tuple[int, int, float, float], ...] = ()


@dataclass(frozen=True)
class Scatter:
    """The law of one release of second moments, and where its latents are centred.

    Shapes: B cells (public and private ones, and columns), F features of which m are private, k = the number of unknowns of a cell:
    moments of features.

    Attributes
    ----------
    regression : Regression
    noise : Noise
    order : tuple of int
        The features, public ones first.
    factor : (B, F, F) ndarray
        Cholesky factor of the public features' moments, each divided by n; zero in the rows of private ones.
    places : (m, F) ndarray of int
        Which entry of the unknowns is which partial slope; the last stands for none.
    middle, root : (k,) and (k, k) ndarrays
        What moments are functions of is middle + root @ unknowns, and unknowns are standard normal beforehand.
    squares : (m, 3) ndarray
        Means of features that moments of others tell: ``moment_loops``.
    start, shift, scale : (B, k), (B, k, k) and (B, k, k) ndarrays
        The unknowns are start + shift @ shared + scale @ latent.
    inside, reach : (B, F) ndarrays
        Where released values put the factor's inverse times sum D w, and the noise on that.
    near : (B, F) ndarray of bool
        Entries of it that are better centred there than on their own law: their noise is less than sigma.
    near_squares : (B,) ndarray of bool
        Where the sum of w² is better centred on its released value.
    anchor, widened : (B, F) and (B,) ndarrays
        Where scores were released: the coefficients of scaled features at which they were taken, and what their standard deviations are
        multiplied by for what a curve leaves open.
    features : (B, P F + (F - 1)²) ndarray
        What features are taken to be, with a logit link: ``points_of_features``, as a row.
    """

    regression: Regression
    noise: Noise
    order: tuple[int, ...]
    factor: np.ndarray
    places: np.ndarray
    middle: np.ndarray
    root: np.ndarray
    squares: np.ndarray
    start: np.ndarray
    shift: np.ndarray
    scale: np.ndarray
    inside: np.ndarray
    reach: np.ndarray
    near: np.ndarray
    near_squares: np.ndarray
    anchor: np.ndarray
    widened: np.ndarray
    features: np.ndarray

    def given(self) -> np.ndarray:
        """All that is no variable (B, W): in a graph as data, so that another release makes the same graph."""
        B, F = len(self.start), len(self.order)
        # Coefficients of scores are about the anchor, in units of their own; those of a response about its middle.
        off = np.zeros((B, F + 2 + self.features.shape[1]))
        off[:, F], off[:, F + 1] = self.widened, {"": NO_LINK, "logit": LOGIT, "log": LOG}[self.regression.link]
        if self.regression.link:
            off[:, F + 2 :] = self.features
            off[:, :F] = self.anchor[:, list(self.order)]
        else:
            off[:, 0] = self.regression.centres()[0][F]
        return np.concatenate([self.of_features(), self.inside, self.reach, self.near, self.near_squares[:, None], off], axis=1)

    def of_features(self) -> np.ndarray:
        """The part of ``given`` that tells of features, of the noise and of what was released; of a first response its half width."""
        B, F, k = len(self.start), len(self.order), self.unknowns
        alike = ALIKE if self.shared else 0.0
        position = {f: a for a, f in enumerate(self.order)}
        weighted = zip(self.regression.entries, self.regression.weights, strict=True)
        entries = np.array([[position.get(i, i), position.get(j, j), weight] for (i, j), weight in weighted])
        half = 1.0 if self.regression.link else self.regression.centres()[1][F]
        settings = self.noise.standard_deviation, self.noise.gaussian, half, len(self.places), sqrt(alike), sqrt(1 - alike)
        shift = self.shift if self.shared else np.zeros((B, k, 0))
        onto = self.regression.onto_scaled()[:, list(self.order)]
        return packed(settings, entries, onto, self.middle, self.root, self.squares, self.factor, self.start, self.scale, shift)

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviations (K,) of the noise on every released moment."""
        return self.noise.standard_deviation / np.array(self.regression.weights)

    @property
    def unknowns(self) -> int:
        """How many numbers of features are unknown in a cell."""
        return len(self.middle)

    @property
    def latents(self) -> int:
        """Standard latents a cell: of unknowns, of products with the response, and of its squares."""
        return self.unknowns + len(self.order) + (not self.regression.scale_known)

    @property
    def shared(self) -> int:
        """Standard latents that all cells have in common, where there are several: one of every unknown."""
        return self.unknowns if len(self.start) > 1 else 0

    def log_density(
        self, noisy: Tensor, n: Tensor, phi: Tensor, sigma: Tensor, latent: Tensor, shared: Tensor | None, given: Tensor
    ) -> Tensor:
        """Log-density (B,) of released moments (B, K), and of the latents, less that of standard normal ones, up to a constant.

        Parameters
        ----------
        n : (B,)
        phi : (B, F)
            Coefficients, in the user's units.
        sigma : (B,)
        latent : (B, latents)
        shared : (shared,) or None
        given : (B, W)
            As the method of this name tells.
        """
        common = self._in_cells(shared)
        return Kernel(normal_moments, (1, 2, 3, 4, 5))(noisy, n, phi, sigma, latent, common, given, return_list=True)[0]

    def simulated(self, n: Tensor, phi: Tensor, sigma: Tensor, latent: Tensor, shared: Tensor | None, given: Tensor) -> Tensor:
        """A predictive draw (B, K) of the released moments, given the features' moments."""
        shape = (len(self.start), len(self.regression.entries))
        draws = pm.Normal.dist(shape=shape)
        if not self.regression.scale_known:
            freedom = pt.maximum(n - len(self.order), 0.5)
            draws = pt.concatenate([draws[:, :-1], pm.ChiSquared.dist(freedom, shape=shape[:1])[:, None]], axis=1)
        true = Kernel(drawn_moments, (0,), 0)(draws, n, phi, sigma, latent, self._in_cells(shared), given)
        return true + self.noise.simulated(shape) / np.array(self.regression.weights)

    def _in_cells(self, shared: Tensor | None) -> Tensor | np.ndarray:
        """What all cells have in common (B, shared), in every one."""
        B = len(self.start)
        if shared is None:
            return np.zeros((B, self.shared))
        return shared[None] if B == 1 else shared[None] + np.zeros((B, 1))

    @property
    def _pairs(self) -> list[int]:
        """Released moments of features alone."""
        return [k for k, (_, j) in enumerate(self.regression.entries) if j < len(self.order)]

    @property
    def _responses(self) -> list[int]:
        """Released products with the response, in the order of the features."""
        F, places = len(self.order), {pair: k for k, pair in enumerate(self.regression.entries)}
        return [places[f, F] for f in self.order]

    def _moments(self, factor: np.ndarray, places: list[int]) -> np.ndarray:
        """Released moments of features (B, len(places)), divided by n."""
        position = {f: k for k, f in enumerate(self.order)}
        first, second = ([position[self.regression.entries[k][end]] for k in places] for end in (0, 1))
        return (factor @ factor.transpose(0, 2, 1))[:, first, second]


def scatter(
    regression: Regression, noise: Noise, noisy: np.ndarray, known: np.ndarray, n: np.ndarray, related: Sequence[Related] = (),
    anchor: np.ndarray | None = None,
) -> Scatter:  # fmt: skip
    """The law of these released moments, with its latents centred by what they say.

    Parameters
    ----------
    noisy : (B, K) ndarray
    known : (B, R, R) ndarray
        Moments of public features, zero elsewhere.
    n : (B,) ndarray
        Records, or as far as released values tell.
    related : sequence of Related
        What is believed beforehand of private features that are computed from the same covariates.
    anchor : (B, F) ndarray, optional
        With a link: the coefficients of scaled features at which the scores were taken.
    """
    law = of_features(regression, noise, noisy, known, n, related)
    if anchor is not None:
        law = replace(law, anchor=anchor)
    return _with_response(law, noisy, np.maximum(n, 1.0))


def of_features(
    regression: Regression, noise: Noise, noisy: np.ndarray, known: np.ndarray, n: np.ndarray, related: Sequence[Related]
) -> Scatter:
    """The part of ``scatter`` that is about features; latents of responses are centred on their own law."""
    F, B = len(regression.names), len(noisy)
    together = [f for group in related for f in group.features]
    # Features that tell of each other come first, so that others are told by them, and not each of them by the others.
    private = [*together, *(f for f in range(F) if regression.private[f] and f not in together)]
    order = [*(f for f in range(F) if not regression.private[f]), *private]
    f, m = F - len(private), len(private)
    factor = np.zeros((B, F, F))
    if regression.counted:
        factor[:, 0, 0] = 1.0
    else:
        inner = known[:, order[:f]][:, :, order[:f]] / np.maximum(n, 1.0)[:, None, None]
        factor[:, :f, :f] = np.linalg.cholesky(inner + 1e-9 * np.eye(f))
    # Unknowns: m means, m shares of variance, then the partial slopes of every private feature on those before it.
    slopes = [(i, j) for i in range(m) for j in range(1, f + i)]
    k = 2 * m + len(slopes)
    places = np.full((m, F), k)
    for place, (i, j) in enumerate(slopes):
        places[i, j] = 2 * m + place
    share = SHARE_BY_WEIGHT if regression.link else SHARE
    middle = np.concatenate([np.zeros(m), np.full(m, share[0]), np.zeros(len(slopes))])
    root = np.diag(np.concatenate([np.ones(m), np.full(m, share[1]), np.ones(len(slopes))]))
    first, squares = 0, np.zeros((m, 3))
    for group in related:
        of_group = range(first, first + len(group.features))
        at = [*of_group, *(m + i for i in of_group), *(places[i, f + j] for i in of_group for j in range(first, i))]
        middle[at] = group.middle
        root[np.ix_(at, at)] = group.root
        for feature, by, constant, slope in group.squares:
            squares[first + feature] = f + first + by, constant, slope
        first += len(group.features)
    none = np.zeros((B, k, k))
    nothing = np.zeros((B, F))
    law = Scatter(
        regression, noise, tuple(order), factor, places, middle, root, squares, np.zeros((B, k)), none, none, nothing, nothing,
        nothing.astype(bool), np.zeros(B, dtype=bool), nothing, np.ones(B),
        np.zeros((B, 0)),
    )  # fmt: skip
    if k:
        start, shift, scale = _centred(law, noisy, np.maximum(n, 1.0))
        law = replace(law, start=start, shift=shift, scale=scale)
    return law


def _factor(law: Scatter, unknown: np.ndarray) -> np.ndarray:
    """Cholesky factor (B, F, F) of the features' moments over n, from the unknowns (B, k), as ``moment_loops`` fills it."""
    m, F = law.places.shape
    predictors = law.middle + unknown @ law.root.T
    mu = SPREAD_OF_MEAN * np.sinh(predictors[:, :m])
    slopes = np.concatenate([steepness(F) * np.sinh(predictors), np.zeros((len(predictors), 1))], axis=1)[:, law.places]
    length = (1 + np.exp(-predictors[:, m : 2 * m])) * (1 + (slopes**2).sum(axis=2))
    factor = np.concatenate([law.factor[:, : F - m], slopes + np.eye(F)[F - m :]], axis=1)
    for p, (by, constant, slope) in enumerate(law.squares):
        mean = mu[:, p] / np.sqrt(1 + mu[:, p] ** 2)
        if slope:
            mean = np.clip(((factor[:, int(by)] ** 2).sum(axis=1) - constant) / slope, -LARGEST_MEAN, LARGEST_MEAN)
        factor[:, F - m + p] *= np.sqrt((1 - mean**2) / length[:, p])[:, None]
        factor[:, F - m + p, 0] = mean
    return factor


def _centred(law: Scatter, noisy: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The unknowns that fit the released values and the prior best, and their spread there."""
    spread = sqrt(1 - ALIKE) if law.shared else 1.0
    # The count of a private cell is no moment of features that are unknown.
    places = [p for p in law._pairs if law.regression.entries[p] != (0, 0)]

    def misfit(x: np.ndarray) -> np.ndarray:
        expected = n[:, None] * law._moments(_factor(law, x), places)
        return np.concatenate([(expected - noisy[:, places]) / law.deviations[places], x / spread], axis=1)

    x, slopes = fitted(misfit, np.zeros_like(law.start))
    covariance = np.linalg.inv(slopes.transpose(0, 2, 1) @ slopes)
    return x, covariance / spread**2, np.linalg.cholesky((covariance + covariance.transpose(0, 2, 1)) / 2)


def _with_response(law: Scatter, noisy: np.ndarray, n: np.ndarray) -> Scatter:
    """Where released values put the moments of the response, and which of their latents are better centred there."""
    regression, F = law.regression, len(law.order)
    typical = _factor(law, law.start) if law.unknowns else law.factor
    factor = typical * np.sqrt(n)[:, None, None]
    inverse = np.linalg.inv(factor)
    inside = (inverse * noisy[:, None, law._responses]).sum(axis=2)
    reach = np.sqrt((inverse**2 * law.deviations[law._responses] ** 2).sum(axis=2))
    if regression.link:
        information = np.empty_like(factor)
        information[np.ix_(range(len(n)), law.order, law.order)] = factor @ factor.transpose(0, 2, 1)
        score = np.empty_like(inside)
        score[:, law.order] = noisy[:, law._responses]
        wider = widened(regression.scores, score, information, law.noise.standard_deviation)
        near = reach < wider[:, None] * regression.scores.unit**-0.5
        law = replace(law, inside=inside, reach=reach, near=near, widened=wider)
        if regression.link == "log":
            return law
        points, rest = points_of_features(typical[:, 1:, 0], typical[:, 1:, 1:])
        return replace(law, features=np.concatenate([points.reshape(len(n), -1), rest.reshape(len(n), -1)], axis=1))
    if regression.scale_known:
        return replace(law, inside=inside, reach=reach, near=reach < TYPICAL)
    # A public feature that is 0 in its cell tells nothing.
    explained = np.where(reach < 1.0, np.maximum(inside**2 - reach**2, 0.0), 0.0).sum(axis=1)
    # Only what sigma surely is: where it could be next to nothing, latents centred on released values make a funnel.
    of_square = law.deviations[-1]
    residual = np.maximum(noisy[:, -1] - explained - 4 * of_square, 0.0)
    sigma2 = residual / n
    # Of few records more than features sigma may be next to nothing, unless hardly any noise is on what they leave.
    enough = (n >= F + 5) | (residual > CLEAR * of_square)
    near = enough[:, None] & (reach < np.sqrt(sigma2)[:, None])
    return replace(law, inside=inside, reach=reach, near=near, near_squares=enough & (of_square < sigma2 * np.sqrt(2 * n)))
