"""The conditional distributions that are recognised: their parameters from the slopes of a log-density, and exact draws from them.

Pure arithmetic on arrays. Everything is said on the unconstrained scale on which PyMC samples, where the determinants of its
transforms make the forms simplest: with x the variable and v its value, a Beta density is a log x + b log(1 - x), a Gamma density
a log x - b x. ``conjugate`` reads the slopes off a model.

Shapes: E entries of a variable, P parameters of one entry, D points, n entries that are drawn together, R rows of K shares.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator

LARGEST = 700.0
"""Draws end here on the scales of logarithms and logits, where the exponential does."""
FAR = 15.0
"""Logits are looked at up to here: beyond, what a proportion leaves of 1 is known to few digits."""
HALF = 1e-9
"""What was read off slopes is a half, if it is so near to it."""


class Form(Protocol):
    """A family of log-densities f(v) of values v (E,), linear in its parameters."""

    @property
    def name(self) -> str:
        """The name of the form."""

    @property
    def fitted(self) -> int:
        """How many points the parameters are read off."""

    def pattern(self, many: int, rng: Generator) -> np.ndarray:
        """What ``points`` are made of: (D, E), with D above ``fitted``."""

    def points(self, pattern: np.ndarray, present: np.ndarray) -> np.ndarray:
        """Points (D, E) at which slopes are taken: some to read the parameters off, and others to check them."""

    def fit(self, points: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Parameters from points (D, E) and derivatives of f there (D, E)."""

    def slope(self, parameters: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of f (D, E), and the size of the terms they are sums of."""

    def density(self, parameters: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The values (D,) of f, but for a constant, and the size of its terms."""

    def draw(self, parameters: np.ndarray, rng: Generator) -> np.ndarray:
        """Values (E,) from the density that is the exponential of f."""


def log_gamma(shape: np.ndarray, rng: Generator) -> np.ndarray:
    """Logarithms of Gamma(shape, 1) variables, which for small shapes are too small to be numbers."""
    return np.log(rng.standard_gamma(shape + 1)) - rng.standard_exponential(np.shape(shape)) / shape


def check_positive(parameters: np.ndarray) -> None:
    """An exponential of f that has an integral."""
    if not (parameters > 0).all():
        raise ArithmeticError("The conditional density has no finite integral.")


# ---------- each entry by itself
@dataclass(frozen=True)
class Entrywise:
    """Entries that are independent given everything else: f is a sum of functions of one entry each, with parameters (E, P)."""

    name: str

    @property
    def fitted(self) -> int:
        """How many numbers are fitted for an entry: as many as its form has parameters."""
        return {"generalized inverse gaussian": 3}.get(self.name, 2)

    def pattern(self, many: int, rng: Generator) -> np.ndarray:
        """Moves of all entries at once: to either side, or none, and last at random, so that entries that are not independent show."""
        several = [1.0, -1.0] if self.name == "beta" else [0.0, 1.0, -1.0][: self.fitted]
        signs = np.array(several)[:, None] * np.ones(many)
        return np.concatenate([signs, rng.choice([-1.0, 1.0], many)[None] * 1.4]) * rng.uniform(0.7, 1.3, many)

    def points(self, pattern: np.ndarray, present: np.ndarray) -> np.ndarray:
        """Around the present values, whose scale is theirs; of proportions around a half, because near 1 what is left is rounded."""
        if self.name == "beta":
            return np.concatenate([pattern[:2], np.clip(present, -FAR, FAR)[None]])
        return present + pattern

    def terms(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the parameters are multiplied by in f, and the derivatives: (..., E, P)."""
        v = points
        match self.name:
            case "beta":
                tilt = 1 / (1 + np.exp(-v))
                several = [(-np.logaddexp(0, -v), 1 - tilt), (-np.logaddexp(0, v), -tilt)]
            case "gamma":
                several = [(v, np.ones_like(v)), (-np.exp(v), -np.exp(v))]
            case "inverse gamma":
                several = [(-v, -np.ones_like(v)), (-np.exp(-v), np.exp(-v))]
            case "generalized inverse gaussian":
                several = [(v, np.ones_like(v)), (-np.exp(v), -np.exp(v)), (-np.exp(-v), np.exp(-v))]
            case "normal":
                several = [(v, np.ones_like(v)), (-0.5 * v**2, -v)]
        multipliers, slopes = zip(*several, strict=True)
        return np.stack(multipliers, axis=-1), np.stack(slopes, axis=-1)

    def fit(self, points: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """One small linear system an entry."""
        _, change = self.terms(points[: self.fitted])
        return np.linalg.solve(change.transpose(1, 0, 2), slopes[: self.fitted].T[..., None])[..., 0]

    def slope(self, parameters: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See ``Form``."""
        parts = parameters * self.terms(points)[1]
        return parts.sum(axis=-1), np.abs(parts).sum(axis=-1)

    def density(self, parameters: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See ``Form``."""
        parts = parameters * self.terms(points)[0]
        return parts.sum(axis=(-2, -1)), np.abs(parts).sum(axis=(-2, -1))

    def draw(self, parameters: np.ndarray, rng: Generator) -> np.ndarray:
        """See ``Form``."""
        a, b = parameters[:, 0], parameters[:, 1]
        if self.name == "normal":
            check_positive(b)
            return a / b + rng.standard_normal(len(a)) / np.sqrt(b)
        check_positive(parameters[:, 1:])
        if self.name == "generalized inverse gaussian":
            return np.clip(log_generalized_inverse_gaussian(a, b, parameters[:, 2], rng), -LARGEST, LARGEST)
        check_positive(a)
        first = log_gamma(a, rng)
        match self.name:
            case "beta":
                drawn = first - log_gamma(b, rng)
            case "gamma":
                drawn = first - np.log(b)
            case _:
                drawn = np.log(b) - first
        return np.clip(drawn, -LARGEST, LARGEST)


def log_generalized_inverse_gaussian(a: np.ndarray, b: np.ndarray, c: np.ndarray, rng: Generator) -> np.ndarray:
    """Logarithms of variables x whose logarithm has the log-density a log x - b x - c / x.

    With a = 1/2 they are the variances that make Laplace noise of normal noise, and their reciprocals are inverse Gaussian
    (docs/theory.md); other a go through SciPy.
    """
    flip = a > 0
    near, far = np.where(flip, c, b), np.where(flip, b, c)  # 1/x, or x, is inverse Gaussian: mean sqrt(far / near), shape 2 far
    if (np.abs(np.abs(a) - 0.5) < HALF).all():
        drawn = log_inverse_gaussian(np.sqrt(far / near), 2 * far, rng)
        return np.where(flip, -drawn, drawn)
    from scipy.stats import geninvgauss

    return np.log(geninvgauss.rvs(a, 2 * np.sqrt(b * c), scale=np.sqrt(c / b), random_state=rng))


def log_inverse_gaussian(mean: np.ndarray, shape: np.ndarray, rng: Generator) -> np.ndarray:
    """Logarithms of inverse Gaussian variables, by Michael, Schucany and Haas (1976), written so that nothing cancels."""
    half = rng.standard_normal(np.shape(mean)) ** 2 * mean / (2 * shape)
    smaller = np.log(mean) - np.log1p(half + np.sqrt(half * (2 + half)))
    first = rng.random(np.shape(mean)) <= 1 / (1 + np.exp(smaller - np.log(mean)))
    return np.where(first, smaller, 2 * np.log(mean) - smaller)


# ---------- rows of shares
@dataclass(frozen=True)
class Shares:
    """Rows of K shares, Dirichlet given everything else: f is the sum of a_k log x_k; parameters (R, K), values R (K - 1)."""

    rows: int
    name: str = "dirichlet"
    fitted: int = 2

    def pattern(self, many: int, rng: Generator) -> np.ndarray:
        """Shares that are not far from alike."""
        size = (2, self.rows, many // self.rows + 1)
        u = rng.choice([-1.0, 1.0], size) * rng.uniform(0.3, 0.9, size)
        return (u - u.mean(axis=-1, keepdims=True))[..., :-1].reshape(2, many)

    def points(self, pattern: np.ndarray, present: np.ndarray) -> np.ndarray:
        """Two where no share is nearly 1, and the present one, or one on the way to it."""
        rows = present.reshape(self.rows, -1)
        far = np.abs(np.column_stack([rows, rows.sum(axis=1)])).max(axis=1, keepdims=True)
        return np.concatenate([pattern, (rows * np.minimum(1.0, FAR / np.maximum(far, FAR))).reshape(1, -1)])

    def logs(self, points: np.ndarray) -> np.ndarray:
        """Logarithms (..., R, K) of the shares, as PyMC's transform makes them."""
        v = points.reshape(*points.shape[:-1], self.rows, -1)
        u = np.concatenate([v, -v.sum(axis=-1, keepdims=True)], axis=-1)
        top = u.max(axis=-1, keepdims=True)
        return u - top - np.log(np.exp(u - top).sum(axis=-1, keepdims=True))

    def fit(self, points: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """The slope by v_i is (a_i - a_K) - A (x_i - x_K), where A is the sum of all a: two points tell A."""
        x = np.exp(self.logs(points[:2]))
        lead = x[..., :-1] - x[..., -1:]
        slope_pair = slopes[:2].reshape(lead.shape)
        apart = lead[0] - lead[1]
        A = -((slope_pair[0] - slope_pair[1]) * apart).sum(axis=-1, keepdims=True) / (apart**2).sum(axis=-1, keepdims=True)
        beyond = slope_pair[0] + A * lead[0]
        last = (A - beyond.sum(axis=-1, keepdims=True)) / x.shape[-1]
        return np.concatenate([beyond + last, last], axis=-1)

    def slope(self, parameters: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See ``Form``."""
        x, A = np.exp(self.logs(points)), parameters.sum(axis=-1, keepdims=True)
        by_log = parameters - A * x
        size = np.abs(parameters).sum(axis=-1, keepdims=True) + np.zeros_like(x[..., :-1])
        return (by_log[..., :-1] - by_log[..., -1:]).reshape(points.shape), size.reshape(points.shape)

    def density(self, parameters: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See ``Form``."""
        parts = parameters * self.logs(points)
        return parts.sum(axis=(-2, -1)), np.abs(parts).sum(axis=(-2, -1))

    def draw(self, parameters: np.ndarray, rng: Generator) -> np.ndarray:
        """See ``Form``."""
        check_positive(parameters)
        u = log_gamma(parameters, rng)
        return np.clip(u[:, :-1] - u.mean(axis=-1, keepdims=True), -LARGEST, LARGEST).ravel()


# ---------- jointly normal
@dataclass(frozen=True)
class Jointly:
    """Entries that are jointly normal given everything else: f = h' v - v' L v / 2, parameters (n, 1 + n): h, then the precision L.

    ``scale`` (n,) is about the standard deviation of each entry given the others.
    """

    scale: tuple[float, ...]
    name: str = "multivariate normal"

    @property
    def fitted(self) -> int:
        """One point, and one for each entry moved by itself."""
        return 1 + len(self.scale)

    def pattern(self, many: int, rng: Generator) -> np.ndarray:
        """None, each entry by itself, and all at random."""
        apart = np.concatenate([np.zeros((1, many)), np.eye(many), rng.choice([-1.0, 1.0], (1, many)) * rng.uniform(0.7, 1.3, many)])
        return apart * np.array(self.scale)

    def points(self, pattern: np.ndarray, present: np.ndarray) -> np.ndarray:
        """Around the present one."""
        return present + pattern

    def fit(self, points: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Precisions are differences of slopes."""
        n = points.shape[1]
        precision = (slopes[0] - slopes[1 : n + 1]) / np.diag(points[1 : n + 1] - points[0])[:, None]
        precision = 0.5 * (precision + precision.T)
        return np.column_stack([slopes[0] + precision @ points[0], precision])

    def slope(self, parameters: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See ``Form``."""
        h, precision = parameters[:, 0], parameters[:, 1:]
        return h - points @ precision, np.abs(h) + np.abs(points) @ np.abs(precision)

    def density(self, parameters: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See ``Form``."""
        h, precision = parameters[:, 0], parameters[:, 1:]
        square = 0.5 * ((points @ precision) * points).sum(axis=-1)
        sizes = np.abs(points) @ np.abs(h) + 0.5 * ((np.abs(points) @ np.abs(precision)) * np.abs(points)).sum(axis=-1)
        return points @ h - square, sizes

    def draw(self, parameters: np.ndarray, rng: Generator) -> np.ndarray:
        """See ``Form``."""
        try:
            lower = np.linalg.cholesky(parameters[:, 1:])
        except np.linalg.LinAlgError:
            raise ArithmeticError("The conditional density has no finite integral.") from None
        mean = np.linalg.solve(lower, parameters[:, 0])
        return np.linalg.solve(lower.T, mean + rng.standard_normal(len(mean)))
