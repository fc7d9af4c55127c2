"""Exact law x noise law = log-density and predictive draw of a noisy statistic. Noise stands before, families after.

A family says which law its summed statistic has, with the parameters as a PyTensor graph; this module puts the noise on top.
It knows no family and no mechanism by name. Shapes: G cells, C columns (the trailing axes of the observed variable), K
statistics; every noisy statistic is float64 of shape (G, *C, K), in units of the statistic.

Each law has a *plan*: which of its forms is exact and finite for released values of this size under this noise. The plan is
made once, from released values and public counts, so it costs no privacy and is the same for every parameter value.
"""

from dataclasses import dataclass
from math import exp, log, log1p, pi, sqrt

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad
from pytensor.tensor.signal import convolve1d

from pymc_dp.mechanisms import Noise

REACH = 28
"""Noise beyond this many scales is left out of a window: a share of exp(-28) of the probability."""
NARROW_REACH = 20
"""The same for windows of several counts, whose cost grows with the square of their length: a share of exp(-20)."""
WINDOW = 512
"""The longest half-window, in counts, that is summed term by term."""
LARGE = 10_000
"""From so many of either outcome on, a count is taken as normal: off by less than a twentieth of a nat at 3 sd."""
NODES = 40
"""Gauss-Legendre nodes on each side of a kink."""
FEW = 6
"""Up to so many counts are convolved; more are taken by a saddle point."""
LONG = 50_000
"""The most terms a cell that are summed at a saddle point."""
NEWTON = 5
"""Steps towards the saddle point."""
DEPTH = 20.0
"""Integrands are followed down to exp(-DEPTH) of their top."""
NEGLIGIBLE = -1e6
"""Stands for log 0 where a term of a sum vanished; finite, so that gradients stay numbers."""

type Tensor = pt.TensorVariable


@dataclass(frozen=True)
class Count:
    """One count: a Binomial(n, p) variable, exactly. ``n`` and ``p`` broadcast to (G, *C); a record brings ``trials`` of n."""

    n: Tensor
    p: Tensor
    trials: int = 1


@dataclass(frozen=True)
class Counts:
    """K > 2 counts: a Multinomial(n, p) variable. ``n`` broadcasts to (G, *C), ``p`` to (G, *C, K); see ``Count``."""

    n: Tensor
    p: Tensor
    trials: int = 1


@dataclass(frozen=True)
class Rates:
    """K independent Poisson counts: ``rate`` broadcasts to (G, *C, K)."""

    rate: Tensor


@dataclass(frozen=True)
class Moments:
    """Sums of R statistics of n independent clamped records, by exact mean and covariance and the central limit.

    ``mean[i]`` and ``covariance[i][j]`` (i >= j) are those of one record's statistic and broadcast to (G, *C), as ``n`` does.
    Where ``basis`` is given, what was summed are the K combinations basis[k][0] + sum_i basis[k][i] t_i.
    """

    n: Tensor
    mean: tuple[Tensor, ...]
    covariance: tuple[tuple[Tensor, ...], ...]
    basis: tuple[tuple[float, ...], ...] | None = None

    def combined(self) -> tuple[list[Tensor], list[list[Tensor]]]:
        """Mean and lower triangle of the covariance of the K sums."""
        if self.basis is None:
            return [self.n * m for m in self.mean], [[self.n * entry for entry in row] for row in self.covariance]
        R = len(self.mean)
        mean = [self.n * (row[0] + sum(c * m for c, m in zip(row[1:], self.mean, strict=True) if c)) for row in self.basis]
        covariance = []
        for i, row in enumerate(self.basis):
            entries = []
            for other in self.basis[: i + 1]:
                parts = [
                    row[a + 1] * other[b + 1] * self.covariance[max(a, b)][min(a, b)]
                    for a in range(R)
                    for b in range(R)
                    if row[a + 1] and other[b + 1]
                ]
                entries.append(self.n * sum(parts[1:], parts[0]) if parts else pt.zeros_like(self.n))
            covariance.append(entries)
        return mean, covariance


Law = Count | Counts | Rates | Moments


def in_cells(law: Law, basis: tuple[tuple[float, ...], ...], sizes: Tensor) -> Law:
    """The law of the statistics with the count among them, when the numbers of records are ``sizes``, themselves unknown.

    With a flat prior on the number n of records in a cell, n is Poisson given a rate with a flat prior, because the integral
    of a Poisson probability over its rate is 1 for every n. Counts of the kinds of record are then independent Poisson counts,
    exactly (docs/theory.md).
    """
    match law:
        case Count(trials=1):
            return Rates(sizes[..., None] * pt.stack([1 - law.p, law.p], axis=-1))
        case Counts(trials=1):
            return Rates(sizes[..., None] * law.p)
        case Count():
            return Moments(sizes, (law.trials * law.p,), ((law.trials * law.p * (1 - law.p),),), basis)
        case Counts():
            K = law.p.type.shape[-1]
            p = [law.p[..., k] for k in range(K)]
            covariance = tuple(tuple(law.trials * (p[i] * (1 - p[i]) if i == j else -p[i] * p[j]) for j in range(i + 1)) for i in range(K))
            return Moments(sizes, tuple(law.trials * entry for entry in p), covariance, basis)
        case Moments():
            return Moments(sizes, law.mean, law.covariance, basis)
    raise TypeError(type(law))


@dataclass(frozen=True)
class Plan:
    """Which form of a law's log-density to use.

    Attributes
    ----------
    form : {"closed", "window", "mixed", "convolution", "saddle", "mixture", "normal", "pair", "latent"}
    closed : ndarray of bool or None
        For "mixed", the cells (G, *C) that keep the closed form. For "latent", the cells (G, *C, 1) whose latents are the
        standardised exact sums; those of the others are the standardised noise.
    length : int
        For "window", "convolution" and "saddle", how many counts a window holds.
    latents : int
        Standard latents a cell.
    """

    form: str
    closed: np.ndarray | None = None
    length: int = 0
    latents: int = 0

    @property
    def exponential(self) -> bool:
        """Whether the latents are standard exponential variables; else they are standard normal."""
        return self.form == "mixture"


def plan(law: Law, noisy: np.ndarray, n: np.ndarray, noise: Noise) -> Plan:
    """Choose the form of a law's log-density from released values: docs/theory.md.

    Parameters
    ----------
    law : Law
        Its type and its basis decide, not its parameters.
    noisy : (G, *C, K) float ndarray
    n : (G,) or (G, *C) ndarray
        Records per cell: public, or as far as released values tell. Of rows that are totals, their numbers of trials.
    """
    K = noisy.shape[-1]
    match law:
        case Moments():
            if noise.gaussian or K == 1:
                return Plan("normal")
            return Plan("pair") if K == 2 else _plan_latent(law, noisy, n, noise)
        case Counts():
            length = min(2 * max(noise.reach(NARROW_REACH), 16), int(n.max()) * law.trials) + 1
            if K <= FEW and length <= 2 * WINDOW + 1:
                return Plan("convolution", length=length)
            if K > FEW and length * K <= LONG:
                return Plan("saddle", length=length)
            return Plan("normal") if noise.gaussian else Plan("mixture", latents=K)
        case Count():
            total = (n if n.ndim == noisy.ndim - 1 else n.reshape(-1, *[1] * (noisy.ndim - 2))) * law.trials
            return _plan_counts(noisy[..., 0], noise, int(total.max()), total - noisy[..., 0])
        case Rates():
            return _plan_counts(noisy, noise, int(max(noisy.max(), 0)) + 2 * noise.reach(REACH), None)
    raise TypeError(type(law))


def _plan_counts(z: np.ndarray, noise: Noise, most: int, others: np.ndarray | None) -> Plan:
    """``others`` are the counts of the other outcome, where there is one."""
    half = max(noise.reach(REACH), 64)
    length = min(2 * half, most) + 1
    large = z >= LARGE if others is None else (z >= LARGE) & (others >= LARGE)
    if noise.gaussian:
        return Plan("normal") if half > WINDOW or large.all() else Plan("window", length=length)
    # Both tails of the closed form underflow for counts beyond about 1400 scales squared.
    closed = z <= 300 * noise.scale**2
    if closed.all():
        return Plan("closed")
    if large.all():
        return Plan("normal")
    if (closed | large).all():
        return Plan("mixed", closed)
    return Plan("window", length=length) if half <= WINDOW else Plan("mixed", closed)


def _plan_latent(law: Moments, noisy: np.ndarray, n: np.ndarray, noise: Noise) -> Plan:
    """Latents for the exact sums, standardised by whichever is larger, their own spread or the noise (docs/theory.md)."""
    basis = _basis(law)
    sizes = np.maximum(n, 1.0).reshape(-1, *[1] * (noisy.ndim - 1))
    # Statistics are scaled to about one unit, so that a record's standard deviation is some three tenths of it.
    unit = np.abs(basis[:, 1:]).max(axis=1).min() * 0.3
    noisy_cells = np.broadcast_to(noise.standard_deviation > unit * np.sqrt(sizes), (*noisy.shape[:-1], 1))
    return Plan("latent", closed=noisy_cells, latents=len(law.mean))


def _basis(law: Moments) -> np.ndarray:
    """What was summed, (K, 1 + R), from the count and the statistics."""
    return np.eye(len(law.mean) + 1)[1:] if law.basis is None else np.array(law.basis)


def log_density(law: Law, noisy: Tensor, noise: Noise, plan: Plan, latent: Tensor | None = None) -> Tensor:
    """Log-density (G, *C) of a noisy statistic ``noisy`` (G, *C, K) under exact law and noise."""
    match law:
        case Count():
            z = noisy[..., 0]
            if plan.form == "closed":
                return _count_closed(z, law.n, law.p, noise)
            if plan.form == "window":
                return _count_window(z, law.n, law.p, noise, plan.length)
            normal = _normal_plus_noise(z, law.n * law.p, law.n * law.p * (1 - law.p), noise)
            if plan.form == "normal":
                return normal
            # The closed form is evaluated everywhere, so its large counts are replaced where it is not used.
            inside = pt.switch(plan.closed, z, 0.0)
            return pt.switch(plan.closed, _count_closed(inside, law.n, law.p, noise), normal)
        case Rates():
            return _rates(noisy, law.rate, noise, plan).sum(axis=-1)
        case Counts():
            if plan.form == "convolution":
                return _counts_convolution(noisy, law.n, law.p, noise, plan.length)
            if plan.form == "saddle":
                return _counts_saddle(noisy, law.n, law.p, noise, plan.length)
            return _counts_normal(noisy, law.n, law.p, noise, latent)
        case Moments():
            if plan.form == "latent":
                return _latent_sums(noisy, law, noise, plan, latent)
            mean, covariance = law.combined()
            if len(mean) == 1:
                return _normal_plus_noise(noisy[..., 0], mean[0], covariance[0][0], noise)
            return (
                _normals_plus_gaussian(noisy, mean, covariance, noise)
                if noise.gaussian
                else _pair_plus_laplace(noisy, mean, covariance, noise)
            )


def simulated(law: Law, noise: Noise | None, shape: tuple[int, ...]) -> Tensor:
    """A predictive draw of this shape (G, *C, K) of the noisy statistic, as a random graph; exact without noise."""
    match law:
        case Count():
            exact = pm.Binomial.dist(law.n.astype("int64"), law.p, shape=shape[:-1])[..., None]
        case Counts():
            exact = pm.Multinomial.dist(law.n.astype("int64"), law.p, shape=shape)
        case Rates():
            exact = pm.Poisson.dist(law.rate, shape=shape)
        case Moments():
            sums = _sums(law, pm.Normal.dist(shape=(*shape[:-1], len(law.mean))))
            exact = sums if law.basis is None else _in_basis(law, sums)
    return exact.astype("float64") if noise is None else exact + noise.simulated(shape)


def _sums(law: Moments, standard: Tensor) -> Tensor:
    """Sums (..., R) of the statistics from standard normal variables (..., R)."""
    factor = _cholesky([[law.n * entry for entry in row] for row in law.covariance])
    parts = [
        law.n * mean + sum((entry * standard[..., j] for j, entry in enumerate(row)), pt.zeros(()))
        for mean, row in zip(law.mean, factor, strict=True)
    ]
    return pt.stack(parts, axis=-1)


def _in_basis(law: Moments, sums: Tensor) -> Tensor:
    """What was summed (..., K), from the sums (..., R) of the statistics."""
    assert law.basis is not None
    R = len(law.mean)
    parts = [law.n * row[0] + sum(row[i + 1] * sums[..., i] for i in range(R) if row[i + 1]) for row in law.basis]
    return pt.stack(parts, axis=-1)


def _latent_sums(z: Tensor, law: Moments, noise: Noise, plan: Plan, latent: Tensor) -> Tensor:
    """Three and more sums under Laplace noise: the exact sums are latent, R a cell (docs/theory.md).

    A standard normal latent x means either the exact sums standardised by their own law, or their distance from where the
    released values point in units of the noise; then the law of the sums replaces the latent's own density. Both describe one
    posterior; whichever of the two spreads is larger makes the gentler geometry.
    """
    direct = _sums(law, latent)
    basis = _basis(law)
    start = pt.dot(z - (law.n + pt.zeros(z.type.shape[:-1]))[..., None] * basis[:, 0], np.linalg.pinv(basis[:, 1:]).T)
    near = start + latent * (noise.standard_deviation / np.abs(basis[:, 1:]).max())
    closed = np.asarray(plan.closed)
    sums = pt.switch(closed, direct, near)
    factor = _cholesky([[law.n * entry for entry in row] for row in law.covariance])
    residual = [sums[..., i] - law.n * mean for i, mean in enumerate(law.mean)]
    own = _log_normal(residual, factor)
    exchanged = own + 0.5 * (latent**2).sum(axis=-1)
    exact = sums if law.basis is None else _in_basis(law, sums)
    kernel = (-pt.abs(z - exact) / noise.spread).sum(axis=-1)
    return kernel + pt.switch(closed[..., 0], 0.0, exchanged)


def _log_normal(residual: list[Tensor], factor: list[list[Tensor]]) -> Tensor:
    """Log-density of a normal vector, up to a constant, from its residuals and the Cholesky factor of its covariance."""
    standard: list[Tensor] = []
    total = pt.zeros(())
    for i, row in enumerate(factor):
        entry = (residual[i] - sum((row[j] * standard[j] for j in range(i)), pt.zeros(()))) / row[i]
        standard.append(entry)
        total = total - 0.5 * entry**2 - pt.log(row[i])
    return total


def _normals_plus_gaussian(z: Tensor, mean: list[Tensor], covariance: list[list[Tensor]], noise: Noise) -> Tensor:
    """Correlated normal sums plus Gaussian noise are normal."""
    K, v = len(mean), noise.standard_deviation**2
    full = [[entry + (v if i == j else 0.0) for j, entry in enumerate(row)] for i, row in enumerate(covariance)]
    residual = [z[..., i] - m for i, m in enumerate(mean)]
    return _log_normal(residual, _cholesky(full)) - 0.5 * K * log(2 * pi)


def _rates(z: Tensor, rate: Tensor, noise: Noise, plan: Plan) -> Tensor:
    """Log-probability of every noisy Poisson count."""
    if plan.form == "window":
        s = pt.maximum(pt.round(z) - (plan.length - 1) // 2, 0.0)[..., None] + np.arange(float(plan.length))
        rate = pt.maximum(rate, 1e-300)[..., None]
        terms = s * pt.log(rate) - rate - pt.gammaln(s + 1) + noise.log_kernel(z[..., None] - s)
        return pt.logsumexp(terms, axis=-1)
    normal = _normal_plus_noise(z, rate, rate, noise)
    if plan.form == "normal":
        return normal
    if plan.form == "closed":
        return _rate_closed(z, rate, noise)
    inside = pt.switch(plan.closed, z, 0.0)
    return pt.switch(plan.closed, _rate_closed(inside, rate, noise), normal)


def _rate_closed(z: Tensor, rate: Tensor, noise: Noise) -> Tensor:
    """Poisson plus discrete Laplace in closed form: exponentially tilted tails (docs/theory.md)."""
    decay = -noise.log_ratio
    q, inverse = exp(-decay), exp(min(decay, 700.0))
    inside = pt.ge(z, 0)
    s = pt.switch(inside, z, 0.0)
    below = pt.switch(inside, pt.gammaincc(s + 1.0, rate * inverse), 0.0)
    above = pt.switch(inside, pt.gammainc(s + 1.0, rate * q), 1.0)
    lower = -z * decay + rate * (inverse - 1) + _log(below)
    upper = z * decay - rate * (1 - q) + _log(above)
    return pt.logaddexp(lower, upper) + log(-np.expm1(-decay)) - log1p(q)


def _count_closed(z: Tensor, n: Tensor, p: Tensor, noise: Noise) -> Tensor:
    """Binomial plus discrete Laplace in closed form: exponentially tilted tails (docs/theory.md)."""
    decay = -noise.log_ratio
    q, inverse = exp(-decay), exp(min(decay, 700.0))
    heavy = 1 - p + p * inverse
    light = 1 - p + p * q
    below = _binomial_cdf(z, n, p * inverse / heavy)
    above = _binomial_survival(z, n, p * q / light)
    lower = -z * decay + n * pt.log(heavy) + _log(below)
    upper = z * decay + n * pt.log(light) + _log(above)
    return pt.logaddexp(lower, upper) + log(-np.expm1(-decay)) - log1p(q)


def _binomial_cdf(z: Tensor, n: Tensor, p: Tensor) -> Tensor:
    inside = pt.and_(pt.ge(z, 0), pt.lt(z, n))
    s = pt.switch(inside, z, 0.0)
    return pt.switch(inside, pt.betainc(pt.maximum(n - s, 1.0), s + 1.0, 1 - p), pt.switch(pt.lt(z, 0), 0.0, 1.0))


def _binomial_survival(z: Tensor, n: Tensor, p: Tensor) -> Tensor:
    inside = pt.and_(pt.ge(z, 0), pt.lt(z, n))
    s = pt.switch(inside, z, 0.0)
    return pt.switch(inside, pt.betainc(s + 1.0, pt.maximum(n - s, 1.0), p), pt.switch(pt.lt(z, 0), 1.0, 0.0))


def _log(probability: Tensor) -> Tensor:
    """Log of a probability that may have underflowed; such a term is negligible beside its partner."""
    positive = pt.gt(probability, 1e-290)
    return pt.switch(positive, pt.log(pt.switch(positive, probability, 1.0)), NEGLIGIBLE)


def _count_window(z: Tensor, n: Tensor, p: Tensor, noise: Noise, length: int) -> Tensor:
    """The same sum, term by term, over every count within REACH scales of the released one."""
    s = _window_start(z, n, length)[..., None] + np.arange(float(length))
    n, p = n[..., None] if n.ndim else n, p[..., None] if p.ndim else p
    valid = pt.le(s, n)
    s = pt.switch(valid, s, 0.0)
    terms = (
        pt.gammaln(n + 1) - pt.gammaln(s + 1) - pt.gammaln(n - s + 1)
        + s * pt.log(pt.maximum(p, 1e-300)) + (n - s) * pt.log(pt.maximum(1 - p, 1e-300))
        + noise.log_kernel(z[..., None] - s)
    )  # fmt: skip
    return pt.logsumexp(pt.switch(valid, terms, -np.inf), axis=-1)


def _normal_plus_noise(z: Tensor, mean: Tensor, variance: Tensor, noise: Noise) -> Tensor:
    """Normal plus Laplace in its stable two-branch form (docs/theory.md), or plus Gaussian."""
    if noise.gaussian:
        whole = variance + noise.standard_deviation**2
        return -0.5 * ((z - mean) ** 2 / whole + pt.log(2 * pi * whole))
    b = noise.spread
    sd = pt.sqrt(pt.maximum(variance, (1e-9 * b) ** 2))
    residual = z - mean

    def tail(r: Tensor) -> Tensor:
        u = (sd / b - r / sd) / sqrt(2)
        right = pt.gt(u, 0)
        # Both branches are evaluated, so each sees a harmless argument where it is not used.
        on_right = -(residual**2) / (2 * sd**2) + pt.log(pt.erfcx(pt.switch(right, u, 1.0)))
        v = pt.switch(right, 0.0, u)
        on_left = pt.switch(right, 0.0, sd**2 / (2 * b**2) - r / b) + log(2) + _log_ndtr(-sqrt(2) * v)
        return pt.switch(right, on_right, on_left)

    return pt.logaddexp(tail(residual), tail(-residual)) - log(4 * b)


def _log_ndtr(x: Tensor) -> Tensor:
    """Log of the standard normal distribution function for x >= 0, where it needs no care."""
    return pt.log1p(-0.5 * pt.erfc(x / sqrt(2)))


def _counts_convolution(z: Tensor, n: Tensor, p: Tensor, noise: Noise, length: int) -> Tensor:
    """Multinomial plus discrete Laplace, exactly: forward convolution over windows (docs/theory.md).

    The sum over all (s_1..s_K) with total n of prod_k p_k^s_k / s_k! q^abs(z_k - s_k) is one coefficient of a product of K
    polynomials. Multiplying every s_k by the same exp(tilt) leaves it unchanged up to exp(-tilt n), so the tilt is chosen,
    without differentiating through it, to put the mass of the product near n, where the sum does not underflow.
    """
    K = z.type.shape[-1]
    batch = z.type.shape[:-1]
    B = int(np.prod(batch))
    p, n = (p + pt.zeros(z.type.shape)).reshape((B, K)), (n + pt.zeros(batch)).reshape((B, 1))
    z = z.reshape((B, K))
    log_rate = pt.log(n * pt.maximum(p, 1e-300))
    start = _window_start(z, n, length)
    if noise.gaussian:
        window = start[..., None] + np.arange(float(length))
        base = window * log_rate[..., None] - pt.gammaln(window + 1) + noise.log_kernel(z[..., None] - window)
        tilt = _saddle(pt.switch(pt.le(window, n[..., None]), base, -np.inf), window, n)
    else:
        tilt = disconnected_grad(_tilt(z, n, log_rate, start, length, -noise.log_ratio))
    # Levels count up from the start of their windows, and the last one takes what they leave: n - sum of starts - t. All are
    # evaluated in one array, wide enough for the product of all but the last, and zero outside their windows.
    last = np.arange(K) == K - 1
    t = np.arange(float((K - 1) * length))
    base = pt.switch(last, n - pt.switch(last, 0.0, start).sum(axis=-1, keepdims=True), start)
    s = base[..., None] + np.where(last[:, None], -t, t)
    inside = pt.and_(pt.and_(pt.ge(s, 0), pt.le(s, n[..., None])), last[:, None] | (t < length))
    terms = s * (log_rate + tilt)[..., None] - pt.gammaln(pt.maximum(s, 0.0) + 1) + noise.log_kernel(z[..., None] - s)
    terms = pt.switch(inside, terms, -np.inf)
    top = pt.max(terms, axis=-1)
    weights = pt.exp(terms - top[..., None])
    product = weights[:, 0, :length]
    for k in range(1, K - 1):
        product = convolve1d(product, weights[:, k, :length], mode="full")
    coefficient = (product * weights[:, K - 1, : (K - 1) * (length - 1) + 1]).sum(axis=-1)
    n, tilt = n[:, 0], tilt[:, 0]
    result = _log(coefficient) + top.sum(axis=-1) + pt.gammaln(n + 1) - n * pt.log(n) - n * tilt
    return result.reshape(batch)


def _window_start(z: Tensor, n: Tensor, length: int) -> Tensor:
    """First count of a window of this length around each released one, inside [0, n] as far as it fits."""
    return pt.clip(pt.round(z) - (length - 1) // 2, 0.0, pt.maximum(n - length + 1.0, 0.0))


def _tilt(z: Tensor, n: Tensor, log_rate: Tensor, start: Tensor, length: int, decay: float) -> Tensor:
    """A tilt (B, 1) at which the modes of the K factors add up to about n, from a grid that is dense near 0.

    It need not be exact: positive terms are summed, so that only underflow, hundreds of nats away, has to be avoided.
    """
    grid = np.sinh(np.linspace(-5.0, 5.0, 257)) / np.sinh(5.0) * (decay + 20.0)
    rate = log_rate[:, None, :] + grid[:, None]
    mode = pt.clip(z[:, None, :], pt.exp(pt.minimum(rate - decay, 50.0)), pt.exp(pt.minimum(rate + decay, 50.0)))
    mode = pt.clip(mode, start[:, None, :], start[:, None, :] + length - 1.0)
    # The sum of the modes grows with the tilt, so the steps taken before it reaches n add up to the tilt.
    below = pt.lt(mode.sum(axis=-1), n)
    return grid[0] + pt.switch(below[:, :-1], np.diff(grid), 0.0).sum(axis=-1, keepdims=True)


def _counts_saddle(z: Tensor, n: Tensor, p: Tensor, noise: Noise, length: int) -> Tensor:
    """Multinomial plus noise for many levels: the coefficient of ``_counts_convolution`` by a saddle point.

    Tilted so that the K independent window sums have mean n in total, the probability that they add up to n is that of a
    normal law with their total variance; with more than FEW of them that is close to a hundredth of a nat (docs/theory.md).
    """
    n = (n + pt.zeros(z.type.shape[:-1]))[..., None]
    log_rate = pt.log(n * pt.maximum(p, 1e-300))
    s = _window_start(z, n, length)[..., None] + np.arange(float(length))
    base = s * log_rate[..., None] - pt.gammaln(s + 1) + noise.log_kernel(z[..., None] - s)
    base = pt.switch(pt.le(s, n[..., None]), base, -np.inf)

    tilt = _saddle(base, s, n)
    total, mean, variance = _tilted(base, s, tilt)
    missed = -0.5 * ((n[..., 0] - mean) ** 2 / variance + pt.log(2 * pi * variance))
    n, tilt = n[..., 0], tilt[..., 0]
    return total + missed - n * tilt + pt.gammaln(n + 1) - n * pt.log(n)


def _tilted(base: Tensor, s: Tensor, tilt: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Log-total, and mean and variance of the sum over levels, of windows (..., K, L) tilted by exp(tilt s)."""
    terms = base + s * tilt[..., None]
    total = pt.logsumexp(terms, axis=-1)
    weight = pt.exp(terms - total[..., None])
    mean = (weight * s).sum(axis=-1)
    variance = (weight * (s - mean[..., None]) ** 2).sum(axis=-1)
    return total.sum(axis=-1), mean.sum(axis=-1), pt.maximum(variance.sum(axis=-1), 1e-6)


def _saddle(base: Tensor, s: Tensor, n: Tensor) -> Tensor:
    """The tilt (..., 1) at which the windows have mean n in total, by Newton's method; no gradient goes through it."""
    tilt = pt.zeros_like(n)
    for _ in range(NEWTON):
        _, mean, variance = _tilted(base, s, tilt)
        tilt = disconnected_grad(tilt + pt.clip((n[..., 0] - mean) / variance, -1.0, 1.0)[..., None])
    return tilt


def _counts_normal(z: Tensor, n: Tensor, p: Tensor, noise: Noise, latent: Tensor | None) -> Tensor:
    """Multinomial by the central limit, Gaussian noise, or Laplace noise as a scale mixture with K latents (docs/theory.md; BS18).

    Given the latents the released counts are Normal with covariance n (diag p - p p') + diag v, whose determinant and
    inverse are closed (Sherman-Morrison); 1 - n sum p^2 / (n p + v) is written without cancellation.
    """
    n = n[..., None] if n.ndim else n
    v = noise.standard_deviation**2 * (pt.ones_like(p) if latent is None else latent)
    residual = z - n * p
    diagonal = n * p + v
    slack = (p * v / diagonal).sum(axis=-1)
    quadratic = (residual**2 / diagonal).sum(axis=-1)
    pull = (p * residual / diagonal).sum(axis=-1)
    quadratic = quadratic + (n[..., 0] if n.ndim else n) * pull**2 / slack
    return -0.5 * (quadratic + pt.log(diagonal).sum(axis=-1) + pt.log(slack) + z.type.shape[-1] * log(2 * pi))


def _pair_plus_laplace(z: Tensor, mean: list[Tensor], covariance: list[list[Tensor]], noise: Noise) -> Tensor:
    """Two correlated normal sums, each plus Laplace: one integral in closed form, the other by Gauss-Legendre.

    With s1 = m1 + sd1 x, k = sd1 / b and x0 = (z1 - m1) / sd1, the density is 1/(2b) times the integral over x of
    phi(x) exp(-k abs(x - x0)) p(z2 given s1), where z2 given s1 is normal plus Laplace (docs/theory.md). It is split at the
    kink x0. On either side x = x0 +- t and the weight is exp(-t^2/2 - a t) with a = k +- x0, so the nodes go where that
    is within exp(-DEPTH) of its top. They move with the parameters; no gradient is taken through them, because the
    integral does not depend on where its nodes are.
    """
    b = noise.spread
    sd = pt.sqrt(pt.maximum(covariance[0][0], (1e-9 * b) ** 2))
    slope = covariance[1][0] / sd
    left_over = pt.maximum(covariance[1][1] - slope**2, 0.0)
    kink, decay = (z[..., 0] - mean[0]) / sd, sd / b
    legendre, weights = np.polynomial.legendre.leggauss(NODES)
    # The two sides of the kink are one more axis: (G, *C, side, node).
    sign = np.array([[1.0], [-1.0]])
    mean_1, slope, left_over, kink, decay = (entry[..., None, None] for entry in (mean[1], slope, left_over, kink, decay))
    a = disconnected_grad(decay + sign * kink)
    low = pt.maximum(-a - sqrt(2 * DEPTH), 0.0)
    # -a + sqrt(a^2 + 2 DEPTH), without cancellation for large a.
    high = pt.switch(pt.gt(a, 0), 2 * DEPTH / (pt.abs(a) + pt.sqrt(a**2 + 2 * DEPTH)), pt.abs(a) + sqrt(2 * DEPTH))
    t = low + (high - low) * ((legendre + 1) / 2)
    x = kink + sign * t
    others = _normal_plus_noise(z[..., 1, None, None], mean_1 + slope * x, left_over, noise)
    terms = -0.5 * x**2 - decay * t + others + pt.log((high - low) * (weights / 2))
    top = disconnected_grad(pt.max(terms, axis=(-2, -1), keepdims=True))
    total = pt.exp(terms - top).sum(axis=(-2, -1))
    return pt.log(total) + top[..., 0, 0] - log(2 * b) - 0.5 * log(2 * pi)


def _cholesky(matrix: list[list[Tensor]]) -> list[list[Tensor]]:
    """Cholesky factor of a small matrix given by its lower triangle, entry by entry: elementwise graphs compile fast."""
    factor: list[list[Tensor]] = []
    for i, row in enumerate(matrix):
        done: list[Tensor] = []
        for j in range(i + 1):
            entry = row[j] - sum((done[m] * (factor[j] if j < i else done)[m] for m in range(j)), pt.zeros(()))
            done.append(entry / factor[j][j] if j < i else pt.sqrt(pt.maximum(entry, 1e-30)))
        factor.append(done)
    return factor
