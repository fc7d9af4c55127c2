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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dp.law import Tensor
from pymc_dp.mechanisms import Noise
from pymc_dp.regression import Regression

SPREAD_OF_MEAN = 0.15
"""The mean of a feature on [-1, 1] is mu / sqrt(1 + mu²) with mu = SPREAD_OF_MEAN sinh(z), z standard normal.

Bounds are laid around the records, so a mean is near their middle, mostly within a standard deviation of the feature; the tails of
sinh are for features to whom that does not happen, counts and incomes, so that little noise already tells them. A prior that is as
wide everywhere reads the noise of a small sum as a mean far out, and then a sum of responses as news of the slope.
"""
SHARE = (-3.0, 2.0)
"""Prior mean and sd of the logit of a feature's variance, as a share of the largest there could be at its mean.

In the median it is that of bounds 4.6 standard deviations out, between the 3 of a close guess and the 7 of a careful one.
"""
ALIKE = 0.75
"""With several cells, the share of these prior variances that all cells have in common."""
TYPICAL = 0.1
"""A known sigma, as a share of half the response's range, as far as the choice of latents goes."""
MOST_SQUARE = 3.0
"""The largest variance of a logarithmic predictor that is believed of released values."""
CLOSE = {"logit": 1.5, "log": 0.5}
"""With a link, latents are centred on a released sum whose noise is less than so many times what is left of the sum itself.

For logit a little more than 1, because the kink of Laplace noise is then in the latent alone, and not across a ridge of the
coefficients; for log less, because more of it makes steps diverge at the exponential wall.
"""
NODES = 9
"""Gauss-Hermite nodes over what is left of a linear predictor, given a feature."""
HALF, DEPTH = 20, 25.0
"""Gauss-Legendre nodes on either side of the mode of a feature, and how many nats down they go."""
STEPS = 40
"""Levenberg-Marquardt steps towards the features' moments that fit best."""


@dataclass(frozen=True)
class Scatter:
    """The law of one release of second moments, and where its latents are centred.

    Shapes: B cells (public and private ones, and columns), F features of which m are private, k = the number of unknown moments
    of features in a cell.

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
    middle, prior, shift, scale : (k,), (k,), (B, k, k) and (B, k, k) ndarrays
        Prior mean and sd; the unknowns are start + shift @ shared + scale @ latent.
    start : (B, k) ndarray
    spread : (B,) ndarray
        With a log link, the standard deviation of the response about its best linear predictor, from released values.
    inside, reach : (B, F) ndarrays
        Where released values put the factor's inverse times sum D w, and the noise on that; with a link, of sum D w itself.
    near : (B, F) ndarray of bool
        Entries of it that are better centred there than on their own law: their noise is less than sigma, or with a link about as
        much as what is left of the sum.
    near_squares : (B,) ndarray of bool
        The same for sum w².
    """

    regression: Regression
    noise: Noise
    order: tuple[int, ...]
    factor: np.ndarray
    places: np.ndarray
    middle: np.ndarray
    prior: np.ndarray
    start: np.ndarray
    shift: np.ndarray
    scale: np.ndarray
    spread: np.ndarray
    inside: np.ndarray
    reach: np.ndarray
    near: np.ndarray
    near_squares: np.ndarray

    def arrays(self) -> dict[str, np.ndarray]:
        """What differs from release to release: in a graph as data, so that the graph does not."""
        features = {"start": self.start, "scale": self.scale} if self.unknowns else {}
        several = {"shift": self.shift} if self.shared else {}
        response = {"inside": self.inside, "reach": self.reach} if self.near.any() else {}
        variance = {"spread": self.spread} if self.regression.link == "log" else {}
        return {"factor": self.factor} | features | several | response | variance

    @property
    def unknowns(self) -> int:
        """How many moments of features are unknown in a cell."""
        return len(self.middle)

    @property
    def latents(self) -> int:
        """Standard latents a cell: moments of features, products with the response, and its squares."""
        return self.unknowns + len(self.order) + (not self.regression.scale_known)

    @property
    def shared(self) -> int:
        """Standard latents that all cells have in common."""
        return self.unknowns if len(self.start) > 1 else 0

    def log_density(
        self, noisy: Tensor, n: Tensor, phi: Tensor, sigma: Tensor, latent: Tensor, shared: Tensor | None, given: Mapping[str, Tensor]
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
        given : mapping
            ``arrays``, as graphs.
        """
        factor, own = self._features(latent, shared, given)
        residuals = [self._kernel(noisy, self._pairs, n[:, None] * self._moments(factor, self._pairs))]
        F = len(self.order)
        x = _pick(latent, range(self.unknowns, self.unknowns + F), self.latents)
        root, total = pt.sqrt(n)[:, None], own
        if self.regression.link:
            sums, exchanged = self._placed(*self._linked(phi, factor, given, n), x, given)
            residuals.append(self._kernel(noisy, self._responses, sums))
            return total + exchanged + sum(residuals[1:], residuals[0])
        c, sigma = self._coefficients(phi, sigma)
        # Everything about the response is told by e, standard normal: S = root L (root L'c + sigma e).
        along = root * (factor * c[:, :, None]).sum(axis=1)
        inside = along + sigma[:, None] * x
        if self.near.any():
            close = given["inside"] + given["reach"] * x
            e = (close - along) / sigma[:, None]
            exchanged = 0.5 * x**2 - 0.5 * e**2 - pt.log(sigma[:, None] / given["reach"])
            inside = pt.switch(self.near, close, inside)
            total = total + pt.switch(self.near, exchanged, 0.0).sum(axis=1)
        sums = root * (factor * inside[:, None, :]).sum(axis=2)
        residuals.append(self._kernel(noisy, self._responses, sums))
        if not self.regression.scale_known:
            t = _pick(latent, [self.latents - 1], self.latents)[:, 0]
            freedom = pt.maximum(n - F, 0.5)
            explained = (inside**2).sum(axis=1)
            squares = explained + sigma**2 * _chi_square(freedom, t)
            last = len(self.regression.entries) - 1
            if self.near_squares.any():
                close = _pick(noisy, [last], last + 1)[:, 0] + self.noise.standard_deviation * t
                left = close - explained
                possible = pt.gt(left, 0)
                left = pt.switch(possible, left, 1.0)
                density = (freedom / 2 - 1) * pt.log(left / sigma**2) - left / (2 * sigma**2) - pt.log(sigma**2)
                density = density - pt.gammaln(freedom / 2) - freedom / 2 * np.log(2) + np.log(self.noise.standard_deviation)
                own = density + 0.5 * t**2 + 0.5 * np.log(2 * np.pi)
                total = total + pt.switch(self.near_squares, pt.switch(possible, own, -np.inf), 0.0)
                squares = pt.switch(self.near_squares, close, squares)
            residuals.append(self._kernel(noisy, [last], squares[:, None]))
        return total + sum(residuals[1:], residuals[0])

    def simulated(
        self, n: Tensor, phi: Tensor, sigma: Tensor, latent: Tensor, shared: Tensor | None, given: Mapping[str, Tensor]
    ) -> Tensor:
        """A predictive draw (B, K) of the released moments, given the features' moments."""
        factor, _ = self._features(latent, shared, given)
        B, F = len(self.start), len(self.order)
        root, e = pt.sqrt(n)[:, None], pm.Normal.dist(shape=(B, F))
        if self.regression.link:
            mean, root = self._linked(phi, factor, given, n)
            products = mean + (root * e[:, None, :]).sum(axis=2)
        else:
            c, sigma = self._coefficients(phi, sigma)
            inside = root * (factor * c[:, :, None]).sum(axis=1) + sigma[:, None] * e
            products = root * (factor * inside[:, None, :]).sum(axis=2)
        parts = [n[:, None] * self._moments(factor, self._pairs), products]
        places = [*self._pairs, *self._responses]
        if not self.regression.scale_known:
            freedom = pt.maximum(n - F, 0.5)
            parts.append(((inside**2).sum(axis=1) + sigma**2 * pm.ChiSquared.dist(freedom, shape=(B,)))[:, None])
            places.append(len(self.regression.entries) - 1)
        true = pt.concatenate(parts, axis=1)[:, np.argsort(places)]
        return true + self.noise.simulated((B, len(places)))

    @property
    def _pairs(self) -> list[int]:
        """Released moments of features alone."""
        return [k for k, (_, j) in enumerate(self.regression.entries) if j < len(self.order)]

    @property
    def _responses(self) -> list[int]:
        """Released products with the response, in the order of the features."""
        F, places = len(self.order), {pair: k for k, pair in enumerate(self.regression.entries)}
        return [places[f, F] for f in self.order]

    def _kernel(self, noisy: Tensor, places: list[int], true: Tensor) -> Tensor:
        if not places:
            return pt.zeros(noisy.shape[0])
        r = (_pick(noisy, places, len(self.regression.entries)) - true) / self.noise.standard_deviation
        return (-0.5 * r**2 if self.noise.gaussian else -sqrt(2) * pt.abs(r)).sum(axis=1)

    def _features(self, latent: Tensor, shared: Tensor | None, given: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Factor (B, F, F) of the features' moments divided by n, and its log-density less that of its latents."""
        if not self.unknowns:
            return given["factor"], pt.zeros(len(self.start))
        x = _pick(latent, range(self.unknowns), self.latents)
        unknown = given["start"] + (given["scale"] * x[:, None, :]).sum(axis=2)
        middle, spread = self.middle, self.prior
        if shared is not None:
            common = self.prior * sqrt(ALIKE) * shared
            unknown = unknown + (given["shift"] * common).sum(axis=2)
            middle, spread = self.middle + common, self.prior * sqrt(1 - ALIKE)
        own = (0.5 * x**2 - 0.5 * ((unknown - middle) / spread) ** 2).sum(axis=1)
        return _factor(unknown, given["factor"], self.places, self.unknowns, pt.exp), own

    def _moments(self, factor, places: list[int]):
        """Released moments of features (B, len(places)), divided by n."""
        position, F = {f: k for k, f in enumerate(self.order)}, len(self.order)
        pairs = [self.regression.entries[k] for k in places]
        products = (factor[:, :, None, :] * factor[:, None, :, :]).sum(axis=3).reshape((len(self.start), F * F))
        return _pick(products, [position[i] * F + position[j] for i, j in pairs], F * F)

    def _coefficients(self, phi: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
        """Coefficients (B, F) in the order of the factor, and sigma, in units of u."""
        centre, half = self.regression.centres()
        F = len(self.order)
        own = self._of_features(phi)
        return (own - centre[F] * np.eye(F)[0]) / half[F], sigma / half[F]

    def _of_features(self, phi: Tensor) -> Tensor:
        """Coefficients of the scaled features (B, F), in the order of the factor."""
        centre, half = self.regression.centres()
        F = len(self.order)
        onto = np.diag(half[:F])
        onto[1:, 0] = centre[1:F]
        return _dot(phi, onto[:, self.order])

    def _placed(self, mean: Tensor, root: Tensor, x: Tensor, given: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Sums (B, F) with this mean and triangular root of their covariance, from latents x, and the exchange of densities (B,).

        A sum that is near its released value is that, moved by x noises; else x is what remains of it, given those before.
        """
        F, zero = len(self.order), pt.zeros(len(self.start))
        if not self.near.any():
            return mean + (root * x[:, None, :]).sum(axis=2), zero
        e, total, sums = pt.zeros_like(x), zero, pt.zeros_like(x)
        for k in range(F):
            own = _pick(x, [k], F)[:, 0]
            before = _pick(mean, [k], F)[:, 0] + (_row(root, k, F) * e).sum(axis=1)
            spread = _pick(_row(root, k, F), [k], F)[:, 0]
            reach = _pick(given["reach"], [k], F)[:, 0]
            close = _pick(given["inside"], [k], F)[:, 0] + reach * own
            left = pt.switch(self.near[:, k], (close - before) / spread, own)
            sums = sums + (before + spread * left)[:, None] * np.eye(F)[k]
            e = e + left[:, None] * np.eye(F)[k]
            exchanged = 0.5 * own**2 - 0.5 * left**2 - pt.log(spread / reach)
            total = total + pt.switch(self.near[:, k], exchanged, 0.0)
        return sums, total

    def _linked(self, phi: Tensor, factor: Tensor, given: Mapping[str, Tensor], n: Tensor) -> tuple[Tensor, Tensor]:
        """With a link: mean (B, F) of the sums of D w, and the triangular root (B, F, F) of their covariance.

        Every feature in turn is a beta variable on [-1, 1] with its mean and variance, and the rest of the linear predictor is
        normal given it, with the mean and variance that the second moments imply. So a single feature, or a binary one among
        many, is not taken for normal (docs/theory.md).
        """
        regression, F = self.regression, len(self.order)
        centre, half = regression.centres()
        own = self._of_features(phi)
        moments = (factor[:, :, None, :] * factor[:, None, :, :]).sum(axis=3)
        mean = _dot(moments.reshape((len(self.start), F * F)), np.eye(F * F)[:, :F])  # the first feature is 1
        covariance = moments - mean[:, :, None] * mean[:, None, :]
        with_eta = (covariance * own[:, None, :]).sum(axis=2)
        eta, square = (mean * own).sum(axis=1), (with_eta * own).sum(axis=1)
        variance = (covariance * np.eye(F)).sum(axis=2)
        # All features but the first, whose variance is 0.
        others = range(1, F)
        m, v, slope = (_pick(each, others, F) for each in (mean, variance, with_eta))
        v = pt.maximum(v, 1e-9)
        slope = slope / v
        left = pt.maximum(square[:, None] - slope**2 * v, 0.0)
        u, weights = _beta_nodes(m, v)
        mu = eta[:, None, None] + slope[:, :, None] * (u - m[:, :, None])
        if regression.link == "log":
            g = pt.exp(pt.minimum(mu + left[:, :, None] / 2, 50.0))
        else:
            nodes, each = np.polynomial.hermite_e.hermegauss(NODES)
            inner = mu[:, :, :, None] + pt.sqrt(left + 1e-12)[:, :, None, None] * nodes
            g = (pt.sigmoid(inner) * (each / each.sum())).sum(axis=3)
        alone, together = (weights * g).sum(axis=2), (weights * u * g).sum(axis=2)
        # E g, as seen from every feature, weighted by its part in the predictor.
        part = slope**2 * v + 1e-6
        level = (part * alone).sum(axis=1) / part.sum(axis=1)
        products = together - alone * m + m * level[:, None]
        full = level[:, None] * np.eye(F)[0] + _dot(products, np.eye(F)[1:])
        root = pt.sqrt(n)[:, None, None] * factor / half[F]
        exactly = n[:, None] * (full - centre[F] * mean) / half[F]
        if regression.link == "log":  # a variance that moves with the coefficients would excuse any misfit
            return exactly, given["spread"][:, None, None] * root
        joint = ((full - mean * level[:, None]) * own).sum(axis=1)
        spread = pt.sqrt(pt.maximum(level * (1 - level) - joint**2 / pt.maximum(square, 1e-9), 1e-6))
        # The variance of y is not the same at all values of a feature: what weighs in sum u y is that far from the mean of u.
        deviation = u - m[:, :, None]
        line = level[:, None, None] + ((together - alone * m) / v)[:, :, None] * deviation
        residual = weights * pt.maximum(g * (1 - 2 * line) + line**2, 1e-9)
        factors = pt.sqrt((residual * deviation**2).sum(axis=2) / (v * residual.sum(axis=2)))
        factors = np.eye(F)[0] + _dot(factors, np.eye(F)[1:])
        # The first column is what every sum has of the mean of y.
        factors = np.eye(F)[0] + factors[:, :, None] * (1 - np.eye(F)[0])
        return exactly, spread[:, None, None] * factors * root


def _beta_nodes(mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes and weights (B, m, 2 HALF) of beta variables on [-1, 1] with this mean and variance.

    In t = log((1 + u) / (1 - u)) the density is log-concave, exp(a t) / (1 + exp t)^(a + b), with tails exp(a t) and exp(-b t); either side
    of its mode is integrated to DEPTH nats, more densely near it.
    """
    total = pt.maximum((1 - mean**2) / variance - 1, 1e-4)
    a, b = (pt.maximum((1 + sign * mean) / 2, 1e-6) * total for sign in (1, -1))
    a, b = a[:, :, None], b[:, :, None]
    mode, wide = pt.log(a / b), pt.sqrt(2 * DEPTH * (a + b) / (a * b))
    legendre, each = np.polynomial.legendre.leggauss(HALF)
    x = np.concatenate([(legendre + 1) / 2, (legendre + 1) / 2])
    below = np.repeat([1.0, 0.0], HALF)
    reach = below * (DEPTH / a + wide) + (1 - below) * (DEPTH / b + wide)
    t = mode + (1 - 2 * below) * reach * x**2
    density = a * t - (a + b) * pt.softplus(t) + pt.log(reach * x * np.concatenate([each, each]))
    weights = pt.exp(density - pt.max(density, axis=2, keepdims=True))
    return pt.tanh(t / 2), weights / weights.sum(axis=2, keepdims=True)


def scatter(regression: Regression, noise: Noise, noisy: np.ndarray, known: np.ndarray, n: np.ndarray) -> Scatter:
    """The law of these released moments, with its latents centred by what they say.

    Parameters
    ----------
    noisy : (B, K) ndarray
    known : (B, R, R) ndarray
        Moments of public features, zero elsewhere.
    n : (B,) ndarray
        Records, or as far as released values tell.
    """
    F, B = len(regression.names), len(noisy)
    private = [f for f in range(F) if regression.private[f]]
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
    k = 2 * m + len(slopes)
    places = np.full((m, F), k)
    for place, (i, j) in enumerate(slopes):
        places[i, j] = 2 * m + place
    middle = np.concatenate([np.zeros(m), np.full(m, SHARE[0]), np.zeros(len(slopes))])
    prior = np.concatenate([np.ones(m), np.full(m, SHARE[1]), np.full(len(slopes), 1 / sqrt(F))])
    none = np.zeros((B, k, k))
    nothing = np.zeros((B, F))
    law = Scatter(
        regression, noise, tuple(order), factor, places, middle, prior, np.tile(middle, (B, 1)), none, none,
        np.ones(B), nothing, nothing, nothing.astype(bool), np.zeros(B, dtype=bool),
    )  # fmt: skip
    if k:
        start, shift, scale = _centred(law, noisy, size)
        law = replace(law, start=start, shift=shift, scale=scale)
    return _with_response(law, noisy, known, size)


def _pick(array, places: Sequence[int], width: int):
    """Columns of a matrix (B, width), as a product with ones and zeros."""
    return _dot(array, np.eye(width)[:, list(places)])


def _row(arrays, k: int, width: int):
    """Row k of matrices (B, width, width)."""
    return (arrays * np.eye(width)[k][:, None]).sum(axis=1)


def _dot(array, matrix: np.ndarray):
    """Product of (B, K) and (K, L), written out: it compiles in a fraction of the time of a matrix product or of indexing."""
    return (array[:, :, None] * matrix).sum(axis=1)


def _factor(unknown, known, places: np.ndarray, k: int, exp: Callable):
    """Cholesky factor (B, F, F) of the features' moments over n, from the unknowns (B, k)."""
    m, F = places.shape
    z, share = _pick(unknown, range(m), k), _pick(unknown, range(m, 2 * m), k)
    mu = SPREAD_OF_MEAN / 2 * (exp(z) - exp(-z))
    mean = mu / (1 + mu**2) ** 0.5
    rest = 1 / ((1 + mu**2) * (1 + exp(-share))) ** 0.5
    rows = np.eye(F)[F - m :]
    if k > 2 * m:
        slopes = _dot(unknown, np.eye(k + 1)[:k, places.ravel()]).reshape((-1, m, F))
        rows = rows + slopes
        rest = rest / (1 + (slopes**2).sum(axis=2)) ** 0.5
    rows = mean[:, :, None] * np.eye(F)[0] + rest[:, :, None] * rows
    # Rows of private features stand below those of public ones, which are zero there.
    return known + (np.eye(F)[F - m :][None, :, :, None] * rows[:, :, None, :]).sum(axis=1)


def _centred(law: Scatter, noisy: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The unknowns that fit the released values and the prior best, by Levenberg-Marquardt, and their spread there."""
    B, k = law.start.shape
    spread = law.prior * (sqrt(1 - ALIKE) if law.shared else 1.0)
    # The count of a private cell is no moment of features that are unknown.
    places = [p for p in law._pairs if law.regression.entries[p] != (0, 0)]

    def misfit(x: np.ndarray) -> np.ndarray:
        factor = _factor(x, law.factor, law.places, law.unknowns, np.exp)
        moments = n[:, None] * law._moments(factor, places)
        return np.concatenate([(moments - noisy[:, places]) / law.noise.standard_deviation, (x - law.middle) / spread], axis=1)

    def slope(x: np.ndarray) -> np.ndarray:
        step = 1e-5
        return np.stack([(misfit(x + step * np.eye(k)[j]) - misfit(x - step * np.eye(k)[j])) / (2 * step) for j in range(k)], axis=2)

    x, damping = law.start.copy(), np.full(B, 1e-2)
    r = misfit(x)
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
    J = slope(x)
    precision = np.einsum("bri,brj->bij", J, J)
    covariance = np.linalg.inv(precision)
    return x, covariance / spread**2, np.linalg.cholesky((covariance + covariance.transpose(0, 2, 1)) / 2)


def _with_response(law: Scatter, noisy: np.ndarray, known: np.ndarray, n: np.ndarray) -> Scatter:
    """Where released values put the moments of the response, and which of their latents are better centred there."""
    regression, F = law.regression, len(law.order)
    factor = law.factor if not law.unknowns else _factor(law.start, law.factor, law.places, law.unknowns, np.exp)
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
        square = np.minimum(explained / rate**2, MOST_SQUARE)
        law = replace(law, spread=np.sqrt(rate + rate**2 * (np.expm1(square) - square)))
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


def _with_linked(law: Scatter, sums: np.ndarray, factor: np.ndarray, n: np.ndarray) -> Scatter:
    """With a link: which sums are better told by their released values than by the coefficients."""
    centre, half = (ends[len(law.order)] for ends in law.regression.centres())
    spread = law.spread
    if law.regression.link == "logit":  # only what it surely is
        p = centre + half * (np.abs(sums[:, 0]) + 2 * law.noise.standard_deviation) / n
        spread = np.sqrt(np.maximum(p * (1 - p), 0.0))
    own = spread[:, None] * np.einsum("bkk->bk", factor) / half
    reach = np.full_like(sums, law.noise.standard_deviation)
    return replace(law, inside=sums, reach=reach, near=reach < CLOSE[law.regression.link] * own)


def _chi_square(freedom: Tensor, standard: Tensor) -> Tensor:
    """A chi-square variable from a standard normal one, by Wilson and Hilferty's cube root."""
    small = 2 / (9 * freedom)
    return freedom * pt.maximum(1 - small + standard * pt.sqrt(small), 0.0) ** 3
