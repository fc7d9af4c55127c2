"""The law of an exact statistic and the law of the noise -> the log-density of the noisy statistic, and predictive draws of it.

A family says which law its summed statistic has, with the parameters as a PyTensor graph; this module puts the noise on top.
It knows no family and no mechanism by name. Shapes: G cells, C columns (the trailing axes of the observed variable), K
statistics; every noisy statistic is float64 of shape (G, *C, K), in units of the statistic.

Each law has a *plan*: which of its forms is exact and finite for released values of this size under this noise. The plan is
made once, from released values and public counts, so it costs no privacy and is the same for every parameter value.
"""

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dp.laws import at_most, closed_forms, events, few_records
from pymc_dp.laws.at_most import AtMost
from pymc_dp.laws.central_limit import correlated_counts, latent_counts, latent_sums
from pymc_dp.laws.counts import count_window, counts_convolution, counts_saddle, rate_window
from pymc_dp.laws.events import Events
from pymc_dp.laws.kernel import Kernel, Tensor, by_cell
from pymc_dp.laws.sums import pair_plus_laplace
from pymc_dp.privacy.noise_law import Noise

REACH = 28
"""Noise beyond this many scales is left out of a window: a share of exp(-28) of the probability."""
NARROW_REACH = 20
"""Noise left out of a window of several counts, whose cost grows with the square of its length: a share of exp(-20)."""
WINDOW = 512
"""The longest half-window, in counts, that is summed term by term."""
LARGE = 10_000
"""From so many of either outcome on, a count is taken as normal: off by less than a twentieth of a nat at 3 sd."""
SMOOTH = 4.0
"""Noise as large as Laplace noise of so many counts hides that counts are whole: the central limit is right to a tenth of a nat at 3 sd."""
SMOOTH_MANY = 1.9
"""Noise as large as that of so many counts hides it where there are more than FEW, whose saddle point is no more exact than that."""
FEW = 6
"""Up to so many counts are convolved; more are taken by a saddle point."""
LONG = 50_000
"""The most terms a cell that are summed at a saddle point."""


@dataclass(frozen=True)
class Count:
    """One count: a Binomial(n, p) variable, exactly. ``n`` and ``p`` broadcast to (G, *C); a record brings at most ``trials`` of n.

    ``each`` is how many a record of each cell brings, where that is not the same number in all cells.
    """

    n: Tensor
    p: Tensor
    trials: int = 1
    each: Tensor | None = None


@dataclass(frozen=True)
class Counts:
    """K > 2 counts: a Multinomial(n, p) variable. ``n`` broadcasts to (G, *C), ``p`` to (G, *C, K); see ``Count``."""

    n: Tensor
    p: Tensor
    trials: int = 1
    each: Tensor | None = None


@dataclass(frozen=True)
class Rates:
    """K independent Poisson counts: ``rate`` broadcasts to (G, *C, K)."""

    rate: Tensor


@dataclass(frozen=True)
class Moments:
    """Sums of R statistics of n independent clamped records, by exact mean and covariance and the central limit.

    ``mean[i]`` and ``covariance[i][j]`` (i >= j) are those of one record's statistic and broadcast to (G, *C), as ``n`` does.
    Where ``basis`` is given, what was summed are the K combinations basis[k][0] + sum_i basis[k][i] t_i. With ``squares`` there are two
    statistics, a value and its square. With ``events`` there are two as well: what an event adds, and whether a record is one; the basis
    is then ``events.IN_CELLS``, or none.
    """

    n: Tensor
    mean: tuple[Tensor, ...]
    covariance: tuple[tuple[Tensor, ...], ...]
    basis: tuple[tuple[float, ...], ...] | None = None
    squares: bool = False
    events: Events | None = None

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

    @property
    def of_squares(self) -> few_records.OfSquares:
        """The law of few records, of a value and its square."""
        return few_records.of_squares(self.n, self.mean[0], self.covariance[0][0], *self.covariance[1])


@dataclass(frozen=True)
class Joint:
    """Sums of R > 2 statistics of n independent records, by the central limit, as ``Moments`` but in arrays.

    ``n`` broadcasts to (G, *C), ``mean`` to (G, *C, R) and ``covariance`` to (G, *C, R, R). With ``counted`` the number of records is
    released before them.
    """

    n: Tensor
    mean: Tensor
    covariance: Tensor
    counted: bool = False

    @property
    def basis(self) -> np.ndarray:
        """What was summed, (K, 1 + R), from the count and the statistics."""
        R = self.mean.type.shape[-1]
        return np.eye(R + 1)[0 if self.counted else 1 :]


Law = Count | Counts | Rates | AtMost | Moments | Joint


def in_cells(law: Law, basis: tuple[tuple[float, ...], ...], sizes: Tensor) -> Law:
    """The law of the statistics with the count among them, when the numbers of records are ``sizes``, themselves unknown.

    With a flat prior on the number n of records in a cell, n is Poisson given a rate with a flat prior, because the integral
    of a Poisson probability over its rate is 1 for every n. Counts of the kinds of record are then independent Poisson counts,
    exactly (docs/theory.md).
    """
    match law:
        case Count(trials=1, each=None):
            # Written out: joining costs much time to compile, and so does its gradient.
            return Rates(sizes[..., None] * (np.array([1.0, 0.0]) + np.array([-1.0, 1.0]) * law.p[..., None]))
        case Counts(trials=1, each=None):
            return Rates(sizes[..., None] * law.p)
        case Count():
            each = law.trials if law.each is None else law.each
            return Moments(sizes, (each * law.p,), ((each * law.p * (1 - law.p),),), basis)
        case Counts():
            each, K = law.trials if law.each is None else law.each, law.p.type.shape[-1]
            p = [law.p[..., k] for k in range(K)]
            covariance = tuple(tuple(each * (p[i] * (1 - p[i]) if i == j else -p[i] * p[j]) for j in range(i + 1)) for i in range(K))
            return Moments(sizes, tuple(each * entry for entry in p), covariance, basis)
        case Moments():
            return Moments(sizes, law.mean, law.covariance, basis, events=law.events if basis == events.IN_CELLS else None)
    raise TypeError(type(law))


@dataclass(frozen=True)
class Plan:
    """Which form of a law's log-density to use.

    Attributes
    ----------
    form : {"closed", "window", "mixed", "convolution", "saddle", "normal", "pair", "squares", "events", "latent", "correlated", "limited"}
    closed : ndarray of bool or None
        For "mixed", the cells (G, *C) that keep the closed form.
    length : int
        For "window", "convolution", "saddle", "events" and "limited", how many counts a window holds.
    latents : int
        Standard latents a cell.
    covariance : ndarray or None
        For "correlated", that of the noise on K counts, (G, *C, K, K).
    """

    form: str
    closed: np.ndarray | None = None
    length: int = 0
    latents: int = 0
    covariance: np.ndarray | None = None


def plan(law: Law, noisy: np.ndarray, n: np.ndarray, noise: Noise, *, whole: bool = True) -> Plan:
    """Choose the form of a law's log-density from released values: docs/theory.md.

    Parameters
    ----------
    law : Law
        Its type and its basis decide, not its parameters.
    noisy : (G, *C, K) float ndarray
    n : (G,) or (G, *C) ndarray
        Records per cell: public, or as far as released values tell. Of rows that are totals, their numbers of trials.
    whole : bool
        Whether the noise on counts is whole: closed forms hold for whole counts only. Gaussian noise that is not stands for the sum
        of many others, so that no more than the central limit is asked of the counts where it is large.
    """
    K = noisy.shape[-1]
    match law:
        case Moments():
            if law.squares and few_records.few(n, noise):
                return Plan("squares")
            most = int(n.max()) if law.basis is None else LARGE
            if law.events and events.few(noisy, n) and (length := _window(noise, most)) <= 2 * WINDOW + 1:
                return Plan("events", length=length)
            if noise.gaussian or K == 1:
                return Plan("normal")
            return Plan("pair") if K == 2 else Plan("latent", latents=len(law.mean))
        case Joint():
            return Plan("normal") if noise.gaussian else Plan("latent", latents=law.mean.type.shape[-1])
        case Counts():
            if noise.standard_deviation >= (SMOOTH if K <= FEW else SMOOTH_MANY) * sqrt(2) and not (noise.gaussian and whole):
                return Plan("normal") if noise.gaussian else Plan("latent", latents=K)
            length = _window(noise, int(n.max()) * law.trials, NARROW_REACH, 16)
            if K <= FEW and length <= 2 * WINDOW + 1:
                return Plan("convolution", length=length)
            if K > FEW and length * K <= LONG:
                return Plan("saddle", length=length)
            return Plan("normal") if noise.gaussian else Plan("latent", latents=K)
        case Count():
            total = (n if n.ndim == noisy.ndim - 1 else n.reshape(-1, *[1] * (noisy.ndim - 2))) * law.trials
            return _plan_counts(noisy[..., 0], noise, int(total.max()), total - noisy[..., 0], whole)
        case AtMost() if whole and at_most.summed(K, length := _window(noise, int(n.max()), *((NARROW_REACH, 16) if K > 2 else ()))):
            return Plan("limited", length=length)
        case Rates() | AtMost():
            return _plan_counts(noisy, noise, int(max(noisy.max(), 0)) + 2 * ceil(noise.reach(REACH) * noise.step), None, whole)
    raise TypeError(type(law))


def _plan_counts(z: np.ndarray, noise: Noise, most: int, others: np.ndarray | None, whole: bool) -> Plan:
    """The form for counts of which none is more than ``most``; ``others`` are those of the other outcome, where there is one."""
    half, length = max(ceil(noise.reach(REACH) * noise.step), 64), _window(noise, most)
    large = z >= LARGE if others is None else (z >= LARGE) & (others >= LARGE)
    if noise.gaussian or not whole:
        return Plan("normal") if half > WINDOW or large.all() else Plan("window", length=length)
    # Both tails of the closed form underflow for counts beyond about 1400 scales squared, and for any count under little noise.
    closed = (z <= 300 * noise.scale**2) & (noise.scale >= 1)
    if closed.all():
        return Plan("closed")
    if large.all():
        return Plan("normal")
    if (closed | large).all():
        return Plan("mixed", closed)
    return Plan("window", length=length) if half <= WINDOW else Plan("mixed", closed)


def _window(noise: Noise, most: int, reach: float = REACH, least: int = 64) -> int:
    """How many counts a window holds, of which none is more than ``most``."""
    return min(2 * max(ceil(noise.reach(reach) * noise.step), least), most) + 1


def _basis(law: Moments) -> np.ndarray:
    """What was summed, (K, 1 + R), from the count and the statistics."""
    return np.eye(len(law.mean) + 1)[1:] if law.basis is None else np.array(law.basis)


def log_density(law: Law, noisy: Tensor, noise: Noise, plan: Plan, latent: Tensor | None = None) -> Tensor:
    """Log-density (G, *C) of a noisy statistic ``noisy`` (G, *C, K) under exact law and noise."""
    match law:
        case Count():
            z = noisy[..., 0]
            if plan.form == "closed":
                return closed_forms.count_plus_laplace(z, law.n, law.p, noise)
            if plan.form == "window":
                [value] = by_cell(Kernel(count_window, (2,)), z.type.shape, (z, law.n, law.p), plan.length, noise.kernel)
                return value
            normal = closed_forms.normal_plus_noise(z, law.n * law.p, law.n * law.p * (1 - law.p), noise)
            if plan.form == "normal":
                return normal
            # The closed form is evaluated everywhere, so its large counts are replaced where it is not used.
            inside = pt.switch(plan.closed, z, 0.0)
            return pt.switch(plan.closed, closed_forms.count_plus_laplace(inside, law.n, law.p, noise), normal)
        case Rates():
            return _rates(noisy, law.rate, noise, plan).sum(axis=-1)
        case AtMost():
            if plan.form == "limited":
                return at_most.log_density(law, noisy, noise, plan.length)
            return _rates(noisy, law.rate, noise, plan).sum(axis=-1) + at_most.log_chance(law, noisy, noise)
        case Counts():
            batch, inputs = noisy.type.shape[:-1], (noisy, law.n, law.p + np.zeros(noisy.type.shape))
            if plan.form in ("convolution", "saddle"):
                loop = counts_convolution if plan.form == "convolution" else counts_saddle
                [value] = by_cell(Kernel(loop, (2,)), batch, inputs, plan.length, noise.kernel)
                return value
            if plan.form == "latent":
                settings = (noise.spread, noise.standard_deviation)
                [value] = by_cell(Kernel(latent_counts, (2, 3)), batch, [*inputs, latent], *settings)
                return value
            if plan.covariance is not None:
                flat = pt.constant(plan.covariance.reshape(*batch, -1))
                [value] = by_cell(Kernel(correlated_counts, (2,)), batch, [*inputs, flat])
                return value
            return closed_forms.counts_plus_gaussian(noisy, law.n, law.p, noise)
        case Moments():
            if plan.form == "latent":
                batch = noisy.type.shape[:-1]
                means = pt.stack([mean + np.zeros(batch) for mean in law.mean], axis=-1)
                triangle = pt.stack([entry + np.zeros(batch) for row in law.covariance for entry in row], axis=-1)
                return _sums_plus_laplace(noisy, law.n, means, triangle, latent, _basis(law), noise)
            if plan.form == "squares":
                return few_records.log_density(law.of_squares, noisy, noise)
            if plan.form == "events" and law.events is not None:
                return events.log_density(law.events, law.n, noisy, noise, plan.length)
            mean, covariance = law.combined()
            if len(mean) == 1:
                return closed_forms.normal_plus_noise(noisy[..., 0], mean[0], covariance[0][0], noise)
            if noise.gaussian:
                return closed_forms.normals_plus_gaussian(noisy, mean, covariance, noise)
            inputs = (noisy, *mean, covariance[0][0], *covariance[1])
            [value] = by_cell(Kernel(pair_plus_laplace, (1, 2, 3, 4, 5)), noisy.type.shape[:-1], inputs, noise.spread)
            return value
        case Joint():
            if plan.form == "latent":
                R, batch = law.mean.type.shape[-1], np.zeros((*noisy.type.shape[:-1], 1))
                triangle = law.covariance[..., *np.tril_indices(R)] + batch
                return _sums_plus_laplace(noisy, law.n, law.mean + batch, triangle, latent, law.basis, noise)
            return closed_forms.vector_plus_gaussian(noisy, *_of_sums(law), noise)


def simulated(law: Law, noise: Noise | None, shape: tuple[int, ...]) -> Tensor:
    """A predictive draw of this shape (G, *C, K) of the noisy statistic, as a random graph; exact without noise."""
    match law:
        case Count():
            exact = pm.Binomial.dist(law.n.astype("int64"), law.p, shape=shape[:-1])[..., None]
        case Counts():
            exact = pm.Multinomial.dist(law.n.astype("int64"), law.p, shape=shape)
        case Rates():
            exact = pm.Poisson.dist(law.rate, shape=shape)
        case AtMost():
            exact = at_most.simulated(law, shape)
        case Moments(squares=True):
            exact = few_records.simulated(law.of_squares, shape)
        case Moments(events=Events() as of_event):
            exact = events.simulated(of_event, law.n, shape)
        case Moments():
            sums = _sums(law, pm.Normal.dist(shape=(*shape[:-1], len(law.mean))))
            exact = sums if law.basis is None else _in_basis(law, sums)
        case Joint():
            mean, covariance = _of_sums(law)
            # A released count does not vary, and a covariance with a row of zeros has no root: next to nothing is added.
            factor = pt.linalg.cholesky(covariance + 1e-12 * np.eye(shape[-1]))
            exact = mean + (factor * pm.Normal.dist(shape=(*shape[:-1], 1, shape[-1]))).sum(axis=-1)
    return exact.astype("float64") if noise is None else exact + noise.simulated(shape)


def _sums_plus_laplace(
    noisy: Tensor, n: Tensor, means: Tensor, triangle: Tensor, latent: Tensor | None, basis: np.ndarray, noise: Noise
) -> Tensor:
    """Log-density of three and more sums: the exact ones are latent."""
    kernel = Kernel(latent_sums, (1, 2, 3, 4))
    [value] = by_cell(kernel, noisy.type.shape[:-1], (noisy, n, means, triangle, latent), basis, noise.spread, noise.standard_deviation)
    return value


def _of_sums(law: Joint) -> tuple[Tensor, Tensor]:
    """Mean (..., K) and covariance (..., K, K) of what was summed, without noise."""
    basis, n = law.basis, pt.as_tensor(law.n)[..., None]
    mean = n * (basis[:, 0] + pt.dot(law.mean, basis[:, 1:].T))
    return mean, n[..., None] * (basis[:, 1:] @ law.covariance @ basis[:, 1:].T)


def _sums(law: Moments, standard: Tensor) -> Tensor:
    """Sums (..., R) of the statistics from standard normal variables (..., R)."""
    factor = closed_forms.cholesky([[law.n * entry for entry in row] for row in law.covariance])
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


def _rates(z: Tensor, rate: Tensor, noise: Noise, plan: Plan) -> Tensor:
    """Log-probability of every noisy Poisson count."""
    if plan.form == "window":
        [value] = by_cell(Kernel(rate_window, (1,)), z.type.shape, (z, rate), plan.length, noise.kernel)
        return value
    normal = closed_forms.normal_plus_noise(z, rate, rate, noise)
    if plan.form == "normal":
        return normal
    if plan.form == "closed":
        return closed_forms.rate_plus_laplace(z, rate, noise)
    inside = pt.switch(plan.closed, z, 0.0)
    return pt.switch(plan.closed, closed_forms.rate_plus_laplace(inside, rate, noise), normal)
