"""Law of noisy second moments of features and responses. Regression stands before, structure after.

Given the second moments M = sum D D' of the features D = (1, u, ...), those of a normal response w = D'c + sigma e are known
exactly, whatever the features' distribution: S = sum D w is Normal(M c, sigma² M), and sum w² - S' M^-1 S is sigma² times a
chi-square variable with n - F degrees of freedom (theory: Wishart augmentation, docs/theory.md). So M and S are latent, and the
released values are their noisy readings. M is what private features leave unknown; its prior is weak and given by moments of
features on [-1, 1].

Everything here is arithmetic on a release. Latents are standard normal variables, moved and scaled by what the released values say
about them; that changes the geometry the sampler sees, never the posterior. Under a log link the variance of S comes from released
values as well, and that is an approximation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dp.kernels import Kernel, Tensor
from pymc_dp.mechanisms import Noise
from pymc_dp.regression import Regression
from pymc_dp.shapes import LOOSE, waves_of
from pymc_dp.wishart import (
    HALF,
    LEAST_VARIANCE,
    SHARE,
    SPREAD_OF_MEAN,
    beta_nodes,
    drawn_moments,
    linked_moments,
    normal_moments,
    packed,
    steepness,
)

ALIKE = 0.75
"""With several cells, the share of these prior variances that all cells have in common."""
TYPICAL = 0.1
"""A known sigma, as a share of half the response's range, as far as the choice of latents goes."""
MOST_SQUARE = 3.0
"""The largest variance of a logarithmic predictor that is believed of released values."""
CLOSE = {"logit": 1.5, "log": 0.5}
"""With a link, latents are centred on a released sum whose noise is less than so many times what is left of the sum itself.

For logit a little more than 1, because the kink of Laplace noise is then in the latent alone, and not across a ridge of the
coefficients; for log less, where the mean rises exponentially.
"""
STEPS = 40
"""Levenberg-Marquardt steps towards the features' moments, and shapes, that fit best."""
EXACT, FAR = 1e-4, 5.0
"""How well waves of public features are met, as means, and the standard deviation of their tilts beforehand."""


@dataclass(frozen=True)
class Related:
    """Private features that share covariates, and the normal law of the coordinates of their moments.

    Attributes
    ----------
    features : tuple of int
        In the order of the regression.
    middle, root : (k,) and (k, k) ndarrays
        Of the coordinates of their means, of their shares of variance, and of their partial slopes on each other, row by row.
    """

    features: tuple[int, ...]
    middle: np.ndarray
    root: np.ndarray


@dataclass(frozen=True)
class Scatter:
    """The law of one release of second moments, and where its latents are centred.

    Shapes: B cells (public and private ones, and columns), F features of which m are private, k = the number of unknowns of a cell:
    moments of features, and with a link how far their laws are tilted (``shapes``), first as their waves tell, then beyond that.

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
    start, shift, scale : (B, k), (B, k, k) and (B, k, k) ndarrays
        The unknowns are start + shift @ shared + scale @ latent.
    rest : (B, F, F) ndarray
        With a log link, the Cholesky factor of what is left of a record's response times its whitened features: of its covariance,
        from released values.
    inside, reach : (B, F) ndarrays
        Where released values put the factor's inverse times sum D w, and the noise on that; with a link, of sum D w itself.
    near : (B, F) ndarray of bool
        Entries of it that are better centred there than on their own law: their noise is less than sigma, or with a link about as
        much as what is left of the sum.
    near_squares : (B,) ndarray of bool
        The same for sum w².
    shape : (B, F, 2) ndarray
        How far the laws of features are tilted, where that is known.
    shapeless : int
        How many features there are whose shape is unknown, the last ones.
    """

    regression: Regression
    noise: Noise
    order: tuple[int, ...]
    factor: np.ndarray
    places: np.ndarray
    middle: np.ndarray
    root: np.ndarray
    start: np.ndarray
    shift: np.ndarray
    scale: np.ndarray
    rest: np.ndarray
    inside: np.ndarray
    reach: np.ndarray
    near: np.ndarray
    near_squares: np.ndarray
    shape: np.ndarray
    shapeless: int

    def given(self) -> np.ndarray:
        """All that is no variable (B, W): in a graph as data, so that another release makes the same graph."""
        B, F, k = len(self.start), len(self.order), self.unknowns
        alike = ALIKE if self.shared else 0.0
        position = {f: a for a, f in enumerate(self.order)} | {F: F}
        sums = [[position[i], position[j]] for i, j in self.regression.entries]
        entries = np.array([*sums, *([position[i], F + k] for i in self.regression.waves for k in (1, 2))])
        centre, half = self.regression.centres()
        onto = np.diag(half[:F])
        onto[1:, 0] = centre[1:F]
        kind = {"": 0, "logit": 1, "log": 2}[self.regression.link]
        own = self.noise.standard_deviation, self.noise.gaussian, centre[F], half[F], kind, len(self.places)
        settings = *own, sqrt(alike), sqrt(1 - alike), self.shapeless
        shift = self.shift if self.shared else np.zeros((B, k, 0))
        near = np.column_stack([self.near, self.near_squares])
        return packed(
            settings, entries, onto[:, list(self.order)], self.middle, self.root,
            self.factor, self.start, self.scale, shift, self.rest, self.shape, self.inside, self.reach, near,
        )  # fmt: skip

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
        if self.regression.link:
            return Kernel(linked_moments, (1, 2, 3, 4))(noisy, n, phi, latent, common, given, return_list=True)[0]
        return Kernel(normal_moments, (1, 2, 3, 4, 5))(noisy, n, phi, sigma, latent, common, given, return_list=True)[0]

    def simulated(self, n: Tensor, phi: Tensor, sigma: Tensor, latent: Tensor, shared: Tensor | None, given: Tensor) -> Tensor:
        """A predictive draw (B, K) of the released moments, given the features' moments."""
        shape = (len(self.start), self.regression.many)
        draws = pm.Normal.dist(shape=shape)
        if not self.regression.scale_known:
            freedom = pt.maximum(n - len(self.order), 0.5)
            draws = pt.concatenate([draws[:, :-1], pm.ChiSquared.dist(freedom, shape=shape[:1])[:, None]], axis=1)
        true = Kernel(drawn_moments, (0,), 0)(draws, n, phi, sigma, latent, self._in_cells(shared), given)
        return true + self.noise.simulated(shape)

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
    regression: Regression, noise: Noise, noisy: np.ndarray, known: np.ndarray, n: np.ndarray, related: Sequence[Related] = ()
) -> Scatter:
    """The law of these released moments, with its latents centred by what they say.

    Parameters
    ----------
    noisy : (B, K) ndarray
    known : (B, R, R) or (B, R + 2, R) ndarray
        Moments of public features, zero elsewhere; two rows more of their waves, where those of private ones are released.
    n : (B,) ndarray
        Records, or as far as released values tell.
    related : sequence of Related
        What is believed beforehand of private features that are computed from the same covariates.
    """
    F, B = len(regression.names), len(noisy)
    together = [f for group in related for f in group.features]
    # Features that tell of each other come first, so that others are told by them, and not each of them by the others.
    private = [*together, *(f for f in range(F) if regression.private[f] and f not in together)]
    order = [*(f for f in range(F) if not regression.private[f]), *private]
    f, m = F - len(private), len(private)
    size = np.maximum(n, 1.0)
    factor = np.zeros((B, F, F))
    if regression.counted:
        factor[:, 0, 0] = 1.0
    else:
        inner = known[:, order[:f]][:, :, order[:f]] / size[:, None, None]
        factor[:, :f, :f] = np.linalg.cholesky(inner + 1e-9 * np.eye(f))
    # Unknowns: m means, m shares of variance, then the partial slopes of every private feature on those before it.
    slopes = [(i, j) for i in range(m) for j in range(1, f + i)]
    shapeless, beyond = (m if regression.shaped else F - 1, F - 1) if regression.link else (0, 0)
    of_shapes = 2 * (shapeless + beyond)
    k = 2 * m + len(slopes) + of_shapes
    places = np.full((m, F), k)
    for place, (i, j) in enumerate(slopes):
        places[i, j] = 2 * m + place
    middle = np.concatenate([np.zeros(m), np.full(m, SHARE[0]), np.zeros(len(slopes) + of_shapes)])
    root = np.diag(np.concatenate([np.ones(m), np.full(m, SHARE[1]), np.ones(len(slopes) + of_shapes)]))
    first = 0
    for group in related:
        own = range(first, first + len(group.features))
        at = [*own, *(m + i for i in own), *(places[i, f + j] for i in own for j in range(first, i))]
        middle[at] = group.middle
        root[np.ix_(at, at)] = group.root
        first += len(group.features)
    none = np.zeros((B, k, k))
    nothing = np.zeros((B, F))
    law = Scatter(
        regression, noise, tuple(order), factor, places, middle, root, np.zeros((B, k)), none, none,
        np.tile(np.eye(F), (B, 1, 1)), nothing, nothing, nothing.astype(bool), np.zeros(B, dtype=bool),
        _public_tilts(regression, order[:f], known, size), shapeless,
    )  # fmt: skip
    if k:
        start, shift, scale = _centred(law, noisy, size)
        law = replace(law, start=start, shift=shift, scale=scale)
    return _with_response(law, noisy, known, size)


def _public_tilts(regression: Regression, public: Sequence[int], known: np.ndarray, n: np.ndarray) -> np.ndarray:
    """How far the laws of public features are tilted (B, F, 2), in the order of the law: so that they have the waves that are known."""
    found = np.zeros((len(n), len(regression.names), 2))
    if regression.shaped and not regression.counted and len(public) > 1:
        f = list(public[1:])
        mean = known[:, 0, f] / n[:, None]
        variance = np.maximum(known[:, f, f] / n[:, None] - mean**2, LEAST_VARIANCE)
        waves = known[:, regression.size :, f].transpose(0, 2, 1) / n[:, None, None]
        found[:, 1 : len(public)] = _tilts(mean.ravel(), variance.ravel(), waves.reshape(-1, 2), EXACT, FAR)[0].reshape(len(n), -1, 2)
    return found


def _tilts(
    mean: np.ndarray, variance: np.ndarray, halves: np.ndarray, noise: np.ndarray | float, spread: float
) -> tuple[np.ndarray, np.ndarray]:
    """Tilts (M, 2) of laws whose waves, halved, are near these (M, 2), and the derivatives of the misfits by them.

    ``noise`` is that on the waves, a number or (M, 1), and ``spread`` the standard deviation of tilts beforehand.
    """
    nodes, share, logits = (np.empty((len(mean), 2 * HALF)) for _ in range(3))
    for row in range(len(mean)):
        beta_nodes(mean[row], variance[row], nodes[row], share[row], logits[row])

    def misfit(z: np.ndarray) -> np.ndarray:
        return np.concatenate([(waves_of(nodes, share, *z.T) / 2 - halves) / noise, z / spread], axis=1)

    return _fitted(misfit, np.zeros((len(mean), 2)))


def _factor(law: Scatter, unknown: np.ndarray) -> np.ndarray:
    """Cholesky factor (B, F, F) of the features' moments over n, from the unknowns (B, k), as ``wishart`` fills it."""
    m, F = law.places.shape
    told = law.middle + unknown @ law.root.T
    mu = SPREAD_OF_MEAN * np.sinh(told[:, :m])
    slopes = np.concatenate([steepness(F) * np.sinh(told), np.zeros((len(told), 1))], axis=1)[:, law.places]
    rest = 1 / np.sqrt((1 + mu**2) * (1 + np.exp(-told[:, m : 2 * m])) * (1 + (slopes**2).sum(axis=2)))
    rows = rest[:, :, None] * (slopes + np.eye(F)[F - m :])
    rows[:, :, 0] = mu / np.sqrt(1 + mu**2)
    return np.concatenate([law.factor[:, : F - m], rows], axis=1)


def _centred(law: Scatter, noisy: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The unknowns that fit the released values and the prior best, and their spread there: moments first, then shapes given these."""
    (B, k), regression, (m, F) = law.start.shape, law.regression, law.places.shape
    spread, own = sqrt(1 - ALIKE) if law.shared else 1.0, k - 2 * (law.shapeless + (F - 1) * bool(regression.link))
    # The count of a private cell is no moment of features that are unknown.
    places = [p for p in law._pairs if regression.entries[p] != (0, 0)]
    x, covariance = np.zeros((B, k)), np.tile(spread**2 * np.eye(k), (B, 1, 1))

    def misfit(moments: np.ndarray) -> np.ndarray:
        factor = _factor(law, np.concatenate([moments, x[:, own:]], axis=1))
        found = n[:, None] * law._moments(factor, places)
        return np.concatenate([(found - noisy[:, places]) / law.noise.standard_deviation, moments / spread], axis=1)

    if own:
        x[:, :own], slopes = _fitted(misfit, x[:, :own])
        covariance[:, :own, :own] = np.linalg.inv(slopes.transpose(0, 2, 1) @ slopes)
    if regression.waves:
        factor = _factor(law, x)[:, F - m :]
        variance = np.maximum((factor**2).sum(axis=2) - factor[:, :, 0] ** 2, LEAST_VARIANCE)
        released = noisy[:, len(regression.entries) :].reshape(B, m, 2)[:, np.argsort(np.argsort(law.order[F - m :]))]
        noise = np.repeat(np.hypot(law.noise.standard_deviation / n, LOOSE), m)[:, None]
        z, slopes = _tilts(factor[:, :, 0].ravel(), variance.ravel(), released.reshape(-1, 2) / np.repeat(n, m)[:, None], noise, spread)
        x[:, own : own + 2 * m] = z.reshape(B, 2 * m)
        blocks = np.linalg.inv(slopes.transpose(0, 2, 1) @ slopes).reshape(B, m, 2, 2)
        for a in range(m):
            at = slice(own + 2 * a, own + 2 * a + 2)
            covariance[:, at, at] = blocks[:, a]
    return x, covariance / spread**2, np.linalg.cholesky((covariance + covariance.transpose(0, 2, 1)) / 2)


def _fitted(misfit: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least squares of misfits (M, R) by numbers (M, k), row by row, by Levenberg-Marquardt, and the derivatives (M, R, k) there."""
    k = x.shape[1]

    def slope(x: np.ndarray) -> np.ndarray:
        step = 1e-5
        return np.stack([(misfit(x + step * np.eye(k)[j]) - misfit(x - step * np.eye(k)[j])) / (2 * step) for j in range(k)], axis=2)

    damping, r = np.full(len(x), 1e-2), misfit(x)
    for _ in range(STEPS):
        J = slope(x)
        gram = np.einsum("bri,brj->bij", J, J)
        gradient = np.einsum("bri,br->bi", J, r)
        ridge = damping[:, None] * np.maximum(np.einsum("bii->bi", gram), 1e-12)
        step = np.linalg.solve(gram + ridge[:, :, None] * np.eye(k), gradient[..., None])[..., 0]
        there = x - np.clip(step, -1.0, 1.0)
        found = misfit(there)
        better = (found**2).sum(axis=1) < (r**2).sum(axis=1)
        x, r = np.where(better[:, None], there, x), np.where(better[:, None], found, r)
        damping = np.where(better, damping / 3, damping * 4)
    return x, slope(x)


def _with_response(law: Scatter, noisy: np.ndarray, known: np.ndarray, n: np.ndarray) -> Scatter:
    """Where released values put the moments of the response, and which of their latents are better centred there."""
    regression, F = law.regression, len(law.order)
    factor = law.factor if not law.unknowns else _factor(law, law.start)
    factor = factor * np.sqrt(n)[:, None, None]
    inverse = np.linalg.inv(factor)
    inside = (inverse * noisy[:, None, law._responses]).sum(axis=2)
    reach = law.noise.standard_deviation * np.sqrt((inverse**2).sum(axis=2))
    if regression.link == "log":
        # inside / root n = L'c: the first entry is the mean of w, the others tell its best linear predictor's variance.
        centre, half = (ends[F] for ends in regression.centres())
        told = inside / np.sqrt(n)[:, None]
        least = np.maximum(reach[:, 0] / np.sqrt(n), 1e-3) * half
        rate = np.maximum(centre + half * told[:, 0], least)
        explained = np.maximum(told[:, 1:] ** 2 - reach[:, 1:] ** 2 / n[:, None], 0.0).sum(axis=1) * half**2
        law = replace(law, rest=_left_of_counts(rate, told[:, 1:], np.minimum(explained / rate**2, MOST_SQUARE)))
    if regression.link:
        return _with_linked(law, noisy[:, law._responses], factor, n)
    if regression.scale_known:
        return replace(law, inside=inside, reach=reach, near=reach < TYPICAL)
    enough = n >= F + 5
    # A public feature that is 0 in its cell tells nothing.
    explained = np.where(reach < 1.0, np.maximum(inside**2 - reach**2, 0.0), 0.0).sum(axis=1)
    # Only what sigma surely is: where it could be next to nothing, latents centred on released values make a funnel.
    sigma2 = np.maximum(noisy[:, -1] - explained - 4 * law.noise.standard_deviation, 0.0) / n
    near = enough[:, None] & (reach < np.sqrt(sigma2)[:, None])
    return replace(
        law, inside=inside, reach=reach, near=near, near_squares=enough & (law.noise.standard_deviation < sigma2 * np.sqrt(2 * n))
    )


def _left_of_counts(rate: np.ndarray, along: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Cholesky factor (B, F, F) of the covariance of r (1, z), for a count y of mean g = rate exp(t'z - |t|²/2) and z standard normal.

    r is what is left of y given z, plus what is left of g, and of g z, given sums of 1, z and their products. The first is g, and
    E g (1, z)(1, z)' = rate ((1, t')', (t, I + t t')). The second is what a series of Hermite polynomials in u = t'z / |t| has beyond
    the second degree: exp(|t| u - |t|²/2) = sum_k |t|^k He_k(u) / k!, and u He_k = He_(k+1) + k He_(k-1).

    Parameters
    ----------
    rate : (B,) ndarray
    along : (B, F - 1) ndarray
        The direction of t; of any length.
    square : (B,) ndarray
        The square of its length, the variance of the logarithmic predictor.
    """
    B, F = len(rate), along.shape[1] + 1
    length = np.sqrt((along**2).sum(axis=1, keepdims=True))
    direction = np.divide(along, length, out=np.zeros_like(along), where=length > 0)
    t, q, growth = np.sqrt(square)[:, None] * direction, square[:, None], np.exp(square)[:, None]
    counts = np.tile(np.eye(F), (B, 1, 1))
    counts[:, 1:, 0] = t
    curve = np.zeros((B, F, F))
    curve[:, 0, 0] = (growth - 1 - q - q**2 / 2)[:, 0]
    curve[:, 1:, 0] = curve[:, 0, 1:] = t * (2 * growth - 2 - 2 * q - q**2 / 2)
    own, others = (1 + 4 * q) * growth - q - (1 + q) ** 2 - 2 * q * (1 + q / 2) ** 2, growth - 1 - q
    outer = direction[:, :, None] * direction[:, None, :]
    curve[:, 1:, 1:] = own[:, :, None] * outer + others[:, :, None] * (np.eye(F - 1) - outer)
    whole = rate[:, None, None] * counts @ counts.transpose(0, 2, 1) + rate[:, None, None] ** 2 * curve
    return np.linalg.cholesky(whole)


def _with_linked(law: Scatter, sums: np.ndarray, factor: np.ndarray, n: np.ndarray) -> Scatter:
    """With a link: which sums are better told by their released values than by the coefficients."""
    centre, half = (ends[len(law.order)] for ends in law.regression.centres())
    root = factor @ law.rest / half
    if law.regression.link == "logit":  # only what it surely is
        p = centre + half * (np.abs(sums[:, 0]) + 2 * law.noise.standard_deviation) / n
        root = factor * np.sqrt(np.maximum(p * (1 - p), 1e-6))[:, None, None] / half
    own = np.einsum("bkk->bk", root)
    reach = np.full_like(sums, law.noise.standard_deviation)
    return replace(law, inside=sums, reach=reach, near=reach < CLOSE[law.regression.link] * own)
