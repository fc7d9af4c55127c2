"""Log-densities and moments of cells with their derivatives, one loop each.

As a graph, a quadrature or a convolution and its derivatives are dozens of functions for numba to compile, and most of the time of
a first call goes there. Here the same arithmetic is one function, which numba compiles in a second and Python runs as it stands.
Entry by entry: an array that is assigned to a slice, or reduced, costs numba another second.
Derivatives are those of the integral or the sum, which are short, not those of every step towards it.

Shapes: B cells, K counts. ``noise`` is ``Noise.kernel``.
"""

import sys
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from math import erfc, lgamma, log, pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

type Tensor = pt.TensorVariable

NEGLIGIBLE = -1e6
"""Stands for log 0; finite, so that a sampler turns round instead of stopping."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)
"""Gauss-Legendre nodes and weights on each side of a kink."""
DEPTH = 20.0
"""Integrands are followed down to exp(-DEPTH) of their top."""
SHARP = 0.2
"""A bend of the integrand counts as a kink where it is shorter than this share of what is integrated over."""
TOLD = 1e-12
"""The largest share of a sum's variance that is taken for rounding where another sum tells it."""
FINE = 1e11
"""How many times as wide as the noise two sums together may be for differences of tails to tell derivatives."""
UNLIKE = 100.0
"""By how many times the noise's width they may differ: what a normal law times an exponential one adds up to cancels with its square."""
NEWTON = 5
"""Steps towards a saddle point."""
LEAST = 1e-150
"""Stands for a probability of 0, whose multiples by the noise's can still be divided by."""
KNOWN = 1e-13
"""The largest share of a sum's variance that is taken for rounding where several others tell it."""
RARE = 1e-12
"""The least probability of a count that is taken as normal."""
STEEP = 300.0
"""The most nats that noise is taken to lose from one count to the next."""
ROOT_2 = sqrt(2)


class Kernel(Op):
    """One or more values of every cell, and their derivatives by some of the inputs, by one loop.

    Parameters
    ----------
    loop : function
        Of a module of loops: arrays to values (B,), then the derivatives of the first one, of the second one, ...
    by : tuple of int
        The inputs, (B,) or (B, K), that these are derivatives by. There are no second derivatives.
    values : int
        How many values there are. With none, what the loop gives is an array like the input ``by``.
    back : function, optional
        Where there are none: a loop of the inputs and of what is multiplied by the derivatives of that array. It gives the derivatives by
        the first input.
    """

    __props__ = ("loop", "by", "values", "back")

    def __init__(self, loop: Callable, by: tuple[int, ...], values: int = 1, back: Callable | None = None) -> None:
        self.loop, self.by, self.values, self.back = loop, by, values, back
        _tell_numba()
        _tell_parts(loop.__module__)
        if find_spec("jax"):
            _tell_jax()

    def __reduce__(self) -> tuple:
        """Made anew where it is unpickled, so that numba is told there, too."""
        return Kernel, (self.loop, self.by, self.values, self.back)

    def make_node(self, *inputs: Tensor) -> Apply:
        """The first axis of the first input is that of the cells."""
        given = [pt.as_tensor(entry).astype("float64") for entry in inputs]
        value = pt.TensorType("float64", shape=given[0].type.shape[:1])
        slopes = [given[k].type() for _ in range(max(self.values, 1)) for k in self.by]
        return Apply(self, given, [*(value() for _ in range(self.values)), *slopes])

    def perform(self, node: Apply, inputs: list[np.ndarray], output_storage: list[list]) -> None:
        """The loop, in Python."""
        with np.errstate(all="ignore"):
            found = self.loop(*inputs)
        for storage, one in zip(output_storage, found if isinstance(found, tuple) else (found,), strict=True):
            storage[0] = one

    def infer_shape(self, node: Apply, shapes: list) -> list:
        """That of the cells, and of what the derivatives are by."""
        return [shapes[0][:1]] * self.values + [shapes[k] for k in self.by] * max(self.values, 1)

    def pullback(self, inputs: list[Tensor], outputs: list[Tensor], cotangents: list[Tensor]) -> list[Tensor]:
        """The derivatives that the loop gave."""
        if self.back is not None:
            return [Kernel(self.back, (0,), 0)(*inputs, cotangents[0]), *(disconnected_type() for _ in inputs[1:])]
        used = [not isinstance(each.type, DisconnectedType) for each in cotangents]
        if any(used[self.values :]):
            raise NotImplementedError("A noisy likelihood has first derivatives only. Use a sampler or an optimiser that needs no Hessian.")
        found = [disconnected_type() for _ in inputs]
        for place, k in enumerate(self.by):
            slopes = outputs[self.values + place :: len(self.by)]
            parts = [
                slope * (cotangent if slope.type.ndim == 1 else cotangent[:, None])
                for slope, cotangent, one in zip(slopes, cotangents, used, strict=False)
                if one
            ]
            found[k] = sum(parts[1:], parts[0])
        return found

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Only what there are derivatives by is connected."""
        by = self.by if self.back is None else (0,)
        return [[k in by] * len(node.outputs) for k in range(len(node.inputs))]


def by_cell(
    kernel: Kernel, batch: tuple[Any, ...], arrays: Sequence[Tensor], *settings: float | Sequence[float] | np.ndarray
) -> list[Tensor]:
    """The values (*batch) of a kernel, of arrays (*batch, ...) or such as broadcast to (*batch)."""
    flat = []
    for array in arrays:
        full = array if array.type.ndim > len(batch) or array.type.shape == batch else array + np.zeros(batch)
        rest = [full.shape[k] if full.type.shape[k] is None else full.type.shape[k] for k in range(len(batch), full.type.ndim)]
        flat.append(full if len(batch) == 1 else full.reshape((-1, *rest)))
    values = kernel(*flat, *map(np.asarray, settings), return_list=True)[: kernel.values]
    return values if len(batch) == 1 else [value.reshape(batch) for value in values]


@cache
def _tell_numba() -> None:
    """Register the operation, when the first is used: numba takes half a second to import."""
    from pytensor.link.numba.dispatch.basic import register_funcify_and_cache_key

    from pymc_dp.laws import compiled

    @register_funcify_and_cache_key(Kernel)
    def funcified(op: Kernel, node: Apply, **_: object) -> tuple[Callable, str]:
        if op.loop.__closure__:
            raise TypeError(f"{op.loop.__qualname__} is no loop of a module: what it closes over would not be told from another's.")
        written = [Path(file).read_bytes() for file in (__file__, compiled.__file__, op.loop.__code__.co_filename)]
        ranks = [each.type.ndim for each in node.inputs]
        like = [None] * op.values + list(op.by) * max(op.values, 1)
        key = sha256(f"{op.loop.__module__}.{op.loop.__qualname__} {ranks} {like} ".encode() + b"".join(written)).hexdigest()
        return compiled.by_address(op.loop, ranks, like, key), key


@cache
def _tell_parts(module: str) -> None:
    """Register what the loops of a module call."""
    from numba.extending import register_jitable

    for part in sys.modules[module].PARTS:
        register_jitable(error_model="numpy")(part)


@cache
def _tell_jax() -> None:
    """Where JAX is installed, for NumPyro: the loops that numba has compiled are called from it, with their derivatives."""
    import jax
    from numba import njit
    from pytensor.link.jax.dispatch.basic import jax_funcify

    @jax_funcify.register(Kernel)
    def funcified(op: Kernel, node: Apply, **_: object) -> Callable:
        loop, many = njit(op.loop, error_model="numpy"), len(op.by)
        by_first = None if op.back is None else njit(op.back, error_model="numpy")

        def called(*given: np.ndarray) -> tuple[np.ndarray, ...]:
            found = loop(*(np.asarray(array, dtype=np.float64) for array in given))
            return found if isinstance(found, tuple) else (found,)

        @jax.custom_vjp
        def run(*given: jax.Array) -> tuple[jax.Array, ...]:
            shapes = [given[0].shape[:1]] * op.values + [given[k].shape for k in op.by] * max(op.values, 1)
            results = tuple(jax.ShapeDtypeStruct(shape, np.float64) for shape in shapes)
            return jax.pure_callback(called, results, *given, vmap_method="sequential")

        def forward(*given: jax.Array) -> tuple[tuple[jax.Array, ...], tuple]:
            found = run(*given)
            return found, (given, found[op.values :])

        def backward(kept: tuple, cotangents: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            given, slopes = kept
            back = [jax.numpy.zeros_like(array) for array in given]
            if by_first is not None:
                shape = jax.ShapeDtypeStruct(given[0].shape, np.float64)
                back[0] = jax.pure_callback(by_first, shape, *given, cotangents[0], vmap_method="sequential")
            for value in range(op.values):
                for place, k in enumerate(op.by):
                    slope, cotangent = slopes[value * many + place], cotangents[value]
                    back[k] = back[k] + slope * (cotangent if slope.ndim == 1 else cotangent[:, None])
            return tuple(back)

        run.defvjp(forward, backward)
        return lambda *given: run(*(jax.numpy.asarray(array, dtype=np.float64) for array in given))


# ---------- sums of clamped records
def clamped_moments(mu, sigma):
    """Of u, a Normal(mu, sigma) value clamped to [-1, 1]: means of u and u², their variances and covariance.

    Derivatives by mu and sigma: with I_k the integral of d^k over values inside the bounds, the k-th moment moves with mu by
    k I_(k-1), and with sigma by k times the mean of d^(k-1) (d - m) / sigma inside.
    """
    found = np.empty((15, len(mu)))
    inside = np.empty(5)
    moment, by_mu, by_sigma = np.empty(5), np.zeros(5), np.zeros(5)
    for i in range(len(mu)):
        # Of d = u - c about the point c of [-1, 1] nearest to mu: nothing cancels when sigma is small.
        c = min(max(mu[i], -1.0), 1.0)
        s, m, lower, upper = sigma[i], mu[i] - c, -1 - c, 1 - c
        a, b = (lower - m) / s, (upper - m) / s
        at_lower, at_upper = np.exp(-0.5 * a**2) / sqrt(2 * pi), np.exp(-0.5 * b**2) / sqrt(2 * pi)
        below, above = 0.5 * erfc(-a / ROOT_2), 0.5 * erfc(b / ROOT_2)
        # Seen from the side where the tails are thin, so that a small mass is a difference of small numbers.
        near, far = (a, b) if a + b > 0 else (-b, -a)
        inside[0] = 0.5 * (erfc(near / ROOT_2) - erfc(far / ROOT_2))
        inside[1] = m * inside[0] - s * (at_upper - at_lower)
        for k in range(2, 5):
            edge = s * (upper ** (k - 1) * at_upper - lower ** (k - 1) * at_lower)
            inside[k] = m * inside[k - 1] + (k - 1) * s**2 * inside[k - 2] - edge
        for k in range(1, 5):
            moment[k] = lower**k * below + inside[k] + upper**k * above
            by_mu[k] = k * inside[k - 1]
            by_sigma[k] = k * (inside[k] - m * inside[k - 1]) / s
        variance = moment[2] - moment[1] ** 2
        third = moment[3] - moment[1] * moment[2]
        fourth = moment[4] - moment[2] ** 2
        of_square = 4 * c**2 * variance + 4 * c * third + fourth
        found[0, i] = c + moment[1]
        found[1, i] = c**2 + 2 * c * moment[1] + moment[2]
        found[2, i] = max(variance, 0.0)
        found[3, i] = 2 * c * variance + third
        found[4, i] = max(of_square, 0.0)
        for place in range(2):
            slope = by_mu if place == 0 else by_sigma
            by_variance = slope[2] - 2 * moment[1] * slope[1]
            by_third = slope[3] - moment[1] * slope[2] - moment[2] * slope[1]
            by_fourth = slope[4] - 2 * moment[2] * slope[2]
            found[5 + place, i] = slope[1]
            found[7 + place, i] = 2 * c * slope[1] + slope[2]
            found[9 + place, i] = by_variance if variance > 0 else 0.0
            found[11 + place, i] = 2 * c * by_variance + by_third
            found[13 + place, i] = 4 * c**2 * by_variance + 4 * c * by_third + by_fourth if of_square > 0 else 0.0
    return (
        found[0], found[1], found[2], found[3], found[4], found[5], found[6], found[7], found[8], found[9], found[10], found[11],
        found[12], found[13], found[14],
    )  # fmt: skip


def normal_plus_laplace(z, mean, variance, b):
    """Normal plus Laplace noise of scale b: log-density, and derivatives by mean and variance."""
    value, by_mean, by_variance = np.empty_like(mean), np.empty_like(mean), np.empty_like(mean)
    for i in range(len(z)):
        value[i], by_mean[i], by_variance[i] = _scores(z[i] - mean[i], variance[i], b[()])
    return value, by_mean, by_variance


def pair_plus_laplace(z, mean_1, mean_2, variance_1, covariance, variance_2, b):
    """Two correlated normal sums z (B, 2), each plus Laplace: one integral in closed form, the other by Gauss-Legendre.

    With s1 = m1 + sd1 x, k = sd1 / b and x0 = (z1 - m1) / sd1, the density is 1/(2b) times the integral over x of
    phi(x) exp(-k abs(x - x0)) p(z2 given s1), where z2 given s1 is normal plus Laplace (docs/theory.md). It is split at the
    kink x0. On either side x = x0 +- t, the integrand is log-concave, and the nodes go where it is within exp(-DEPTH) of its
    top. The derivatives are those of the integrand at a fixed x, averaged over it. Sums that tell each other, such as those of
    y - lower and of upper - y of so many records, are one normal variable: that integral has a closed form, too.
    """
    value, by_1, by_2 = np.empty_like(mean_1), np.empty_like(mean_1), np.empty_like(mean_1)
    by_11, by_21, by_22 = np.empty_like(mean_1), np.empty_like(mean_1), np.empty_like(mean_1)
    b = b[()]
    least = (1e-9 * b) ** 2
    many = len(NODES)
    terms, weighted = np.empty(4 * many), np.empty((5, 4 * many))
    for i in range(len(z)):
        sd = np.sqrt(max(variance_1[i], least))
        slope = covariance[i] / sd
        left_over = variance_2[i] - slope**2
        kink, decay = (z[i, 0] - mean_1[i]) / sd, sd / b
        other_decay = abs(slope) / b
        if left_over < TOLD * variance_2[i] and decay + other_decay < FINE and abs(decay - other_decay) < UNLIKE:
            value[i], by_1[i], by_2[i], by_sd, by_slope = _one_behind_both(kink, decay, (z[i, 1] - mean_2[i]) / slope, slope / b, b)
            by_21[i], by_22[i] = by_slope / sd, 0.0
            by_11[i] = (by_sd - by_slope * slope / sd) / (2 * sd) if variance_1[i] > least else 0.0
            continue
        place = 0
        for side in range(2):
            sign = 1.0 - 2.0 * side
            law = (z[i, 1] - mean_2[i], slope, max(left_over, least), b, kink, decay, sign)
            low, high = _reach_of_pair(law)
            other_kink = sign * (law[0] / slope - kink) if law[2] < (SHARP * slope * (high - low)) ** 2 else high
            for start, end in ((low, min(other_kink, high)), (max(other_kink, low), high)):
                if start >= end:
                    continue
                for j in range(many):
                    t = start + (end - start) * (NODES[j] + 1) / 2
                    x = kink + sign * t
                    other, by_mean, by_variance = _scores(law[0] - slope * x, law[2], b)
                    terms[place] = -0.5 * x**2 - decay * t + other + np.log((end - start) * WEIGHTS[j] / 2)
                    weighted[0, place] = -sign / b
                    weighted[1, place] = by_mean
                    weighted[2, place] = -sign * x / b
                    weighted[3, place] = by_mean * x
                    weighted[4, place] = by_variance
                    place += 1
        top = -np.inf
        for node in range(place):
            top = max(top, terms[node])
        total, means = 0.0, np.zeros(5)
        for node in range(place):
            weight = np.exp(terms[node] - top)
            total += weight
            for k in range(5):
                means[k] += weight * weighted[k, node]
        means /= total
        value[i] = np.log(total) + top - np.log(2 * b) - 0.5 * log(2 * pi)
        # From sd, slope and left_over, on which the integrand rests, to the covariances that these are made of.
        by_22[i] = means[4] if left_over > least else 0.0
        by_slope = means[3] - 2 * slope * by_22[i]
        by_1[i], by_2[i], by_21[i] = means[0], means[1], by_slope / sd
        by_11[i] = (means[2] - by_slope * slope / sd) / (2 * sd) if variance_1[i] > least else 0.0
    return value, by_1, by_2, by_11, by_21, by_22


def _one_behind_both(kink, decay, other, steep, b):
    """Integral over x of phi(x) exp(-decay |x - kink| - |steep (x - other)|) / 4b², its logarithm, and derivatives.

    Those are by the means and the standard deviations of the two sums: of signs, and of x times signs, averaged and over b. Between
    its kinks the integrand is a normal density times exp(rate x), whose integral and whose mean have closed forms, which cancel where
    one sum is far wider than the other (``UNLIKE``).
    """
    first = kink < other
    low, high = (kink, other) if first else (other, kink)
    of_low, of_high = (decay, abs(steep)) if first else (abs(steep), decay)
    both, rate = of_low + of_high, of_high - of_low
    at_low, at_high = -of_high * (high - low), -of_low * (high - low)
    left, right = _tail(low, 1.0, 1 / both) + at_low - log(2), _tail(-high, 1.0, 1 / both) + at_high - log(2)
    middle = _log_between(low - rate, high - rate) + 0.5 * rate**2 + of_low * low - of_high * high
    top = max(left, middle, right)
    left, middle, right = np.exp(left - top), np.exp(middle - top), np.exp(right - top)
    total = left + middle + right
    f_low = np.exp(-0.5 * low**2 + at_low - top) / sqrt(2 * pi)
    f_high = np.exp(-0.5 * high**2 + at_high - top) / sqrt(2 * pi)
    change = (high - low) * (rate - (low + high) / 2)
    rise = f_low * np.expm1(change) if abs(change) < 1 else f_high - f_low
    x_left = _moved(left, f_low, low, both)
    x_middle, x_right = rate * middle - rise, -_moved(right, f_high, -high, both)
    # Signs of low - x and of high - x.
    by_low, by_high = (left - middle - right) / (total * b), (left + middle - right) / (total * b)
    x_low, x_high = (x_left - x_middle - x_right) / (total * b), (x_left + x_middle - x_right) / (total * b)
    sign = 1.0 if steep > 0 else -1.0
    value = np.log(total) + top - 2 * np.log(2 * b)
    if first:
        return value, by_low, sign * by_high, x_low, sign * x_high
    return value, by_high, sign * by_low, x_high, sign * x_low


def _moved(mass, density, end, rate):
    """Integral of x phi(x) exp(rate x) up to an end, from that without x and the integrand there, through which it goes far out."""
    away = rate - end
    if away < 50:
        return rate * mass - density
    return end * mass - density * (1 - 3 / away**2 + 15 / away**4) / away**2


def _log_between(low, high):
    """Log of the standard normal probability of low to high."""
    if high - low < 1e-3:
        middle = (low + high) / 2
        change = (high - low) ** 2 * (middle**2 - 1) / 24
        return np.log(max(high - low, LEAST)) - 0.5 * middle**2 + np.log1p(change) - 0.5 * log(2 * pi)
    if low > 0:
        far, near = high, low
    elif high < 0:
        far, near = -low, -high
    else:
        return np.log(max(1 - 0.5 * erfc(high / ROOT_2) - 0.5 * erfc(-low / ROOT_2), LEAST))
    value = _log_erfcx(near / ROOT_2) - 0.5 * near**2 - log(2)
    beyond = _log_erfcx(far / ROOT_2) - 0.5 * far**2 - log(2)
    return value + np.log(max(-np.expm1(beyond - value), LEAST))


def _reach_of_pair(law):
    """Where, on one side of the kink, the integrand of a pair is within exp(-DEPTH) of its top there: from t to t.

    Its logarithm curves down by 1 or more, so its slope at the kink bounds how far away the top is.
    """
    top, high = 0.0, max(_pair_term(0.0, law)[1], 0.0)
    for _ in range(60):
        if high == 0:
            break
        t = (top + high) / 2
        _, slope, curvature = _pair_term(t, law)
        top, high = (t, high) if slope > 0 else (top, t)
        if (high - top) ** 2 * -curvature < 0.1 and (high - top) * abs(slope) < 0.1:
            break
    top_value, slope, _ = _pair_term(top, law)
    above = 2 * DEPTH / (max(-slope, 0.0) + np.sqrt(min(slope, 0.0) ** 2 + 2 * DEPTH)) + high - top
    below = min(sqrt(2 * DEPTH), top)
    for _ in range(60):
        wide, far = top_value - _pair_term(top + above / 2, law)[0] > DEPTH, top_value - _pair_term(top - below / 2, law)[0] > DEPTH
        above, below = above / (1 + wide), below / (1 + far)
        if not (wide or far):
            break
    return top - below, top + above


def _pair_term(t, law):
    """Logarithm of the integrand of a pair at t beyond the kink, up to a constant, its slope and its curvature."""
    residual, slope, left_over, b, kink, decay, sign = law
    x = kink + sign * t
    other, by_mean, by_variance = _scores(residual - slope * x, left_over, b)
    return -0.5 * x**2 - decay * t + other, sign * (slope * by_mean - x) - decay, slope**2 * (2 * by_variance - by_mean**2) - 1


def _scores(residual, variance, b):
    """Log-density of normal plus Laplace, and its derivatives by mean and variance.

    The derivative of the density by the mean is the difference of its two tails over b; by the variance it is half the second
    derivative by z, and the Laplace law's own second derivative is itself less a point mass, over b^2. Where the noise is
    nothing beside the normal law these differences cancel, and the normal law's own derivatives are taken.
    """
    sd = np.sqrt(variance)
    above, below = _tail(residual, sd, b), _tail(-residual, sd, b)
    value = max(above, below) + np.log1p(np.exp(-abs(above - below))) - np.log(4 * b)
    if sd > 1e4 * b:
        return value, residual / variance, (residual**2 / variance - 1) / variance / 2
    normal = -(residual**2) / (2 * variance) - np.log(sd) - 0.5 * log(2 * pi)
    return value, np.tanh((above - below) / 2) / b, (1 - np.exp(normal - value)) / b**2 / 2


def _tail(r, sd, b):
    """Log of the part of normal plus Laplace noise to one side, up to a constant, in the form that is stable where r is."""
    u = (sd / b - r / sd) / ROOT_2
    if u > 0:
        return _log_erfcx(u) - r**2 / (2 * sd**2)
    return sd**2 / (2 * b**2) - r / b + log(2) + np.log1p(-0.5 * erfc(-u))


def _log_erfcx(u):
    """Log of exp(u^2) erfc(u) for u > 0; far out by its continued fraction."""
    if u < 10:
        return u * u + np.log(erfc(u))
    fraction = u
    for k in range(16, 0, -1):
        fraction = u + k / (2 * fraction)
    return -np.log(sqrt(pi) * fraction)


# ---------- counts
def rate_window(z, rate, length, noise):
    """Poisson counts plus noise, by a sum over every count within the window, and the derivative by the rate."""
    value, by_rate = np.empty_like(rate), np.empty_like(rate)
    length = int(length[()])
    terms = np.empty(length)
    for i in range(len(z)):
        start = max(np.rint(z[i]) - (length - 1) // 2, 0.0)
        log_rate = np.log(max(rate[i], 1e-300))
        term = start * log_rate - rate[i] - lgamma(start + 1)
        for j in range(length):
            s = start + j
            terms[j] = term + _log_noise(z[i] - s, noise)
            term += log_rate - np.log(s + 1)
        value[i], mean = _log_sum(terms, length)
        by_rate[i] = (start + mean) / max(rate[i], 1e-300) - 1
    return value, by_rate


def count_window(z, n, p, length, noise):
    """Binomial counts plus noise, by a sum over every count within the window, and the derivative by p."""
    value, by_p = np.empty_like(p), np.empty_like(p)
    length = int(length[()])
    terms = np.empty(length)
    for i in range(len(z)):
        start = _window_start(z[i], n[i], length)
        chance, rest = max(p[i], 1e-300), max(1 - p[i], 1e-300)
        log_odds = np.log(chance) - np.log(rest)
        term = lgamma(n[i] + 1) - lgamma(start + 1) - lgamma(n[i] - start + 1) + start * log_odds + n[i] * np.log(rest)
        many = int(min(length, n[i] - start + 1))
        for j in range(many):
            s = start + j
            terms[j] = term + _log_noise(z[i] - s, noise)
            term += np.log(max(n[i] - s, 1.0) / (s + 1)) + log_odds
        value[i], mean = _log_sum(terms, many)
        by_p[i] = (start + mean) / chance - (n[i] - start - mean) / rest
    return value, by_p


def counts_convolution(z, n, p, length, noise):
    """Multinomial counts plus noise, exactly, z and p (B, K): forward convolution over windows (docs/theory.md).

    The sum over all (s_1..s_K) with total n of prod_k (n p_k)^s_k / s_k! noise(z_k - s_k) is one coefficient of a product of K
    polynomials. Multiplying every s_k by the same number leaves it unchanged up to a factor, so the terms of all levels are
    divided by their values at the likeliest counts that add up to n, tilted so that none is larger there: nothing underflows.
    The last level takes what the others leave. The derivatives are means of s_k, by the same products backwards.
    """
    value, by_p = np.empty_like(n), np.empty_like(p)
    length, last = int(length[()]), z.shape[1] - 1
    start, mode, rate = np.empty(last + 1), np.zeros(last, np.int64), np.empty(last + 1)
    weights = np.empty((last, length))
    final = np.empty(last * (length - 1) + 1)
    products = np.empty((last, len(final)))
    for i in range(len(z)):
        left = n[i]
        for k in range(last + 1):
            start[k], rate[k] = _window_start(z[i, k], n[i], length), n[i] * max(p[i, k], LEAST)
            if k < last:
                left -= start[k]
        value[i] = NEGLIGIBLE
        by_p[i] = 0.0
        if left < 0:
            continue
        # The likeliest counts: each step goes where it gains most, and the terms are log-concave.
        mode[:] = 0
        while True:
            best, step = 0.0, 0
            for k in range(last):
                gain = _ratio(start[k] + mode[k], n[i], z[i, k], rate[k], noise) if mode[k] < length - 1 else 0.0
                if gain > best:
                    best, step = gain, k
            if left < 1 or best <= _ratio(left - 1, n[i], z[i, last], rate[last], noise):
                break
            mode[step] += 1
            left -= 1
        tilt = max(best, _ratio(left, n[i], z[i, last], rate[last], noise), LEAST)
        value[i] = lgamma(n[i] + 1) - n[i] * np.log(n[i]) + _term(left, z[i, last], rate[last], noise)
        for k in range(last):
            value[i] += _term(start[k] + mode[k], z[i, k], rate[k], noise)
            weights[k, mode[k]] = 1.0
            for j in range(mode[k], length - 1):
                weights[k, j + 1] = weights[k, j] * _ratio(start[k] + j, n[i], z[i, k], rate[k], noise) / tilt
            for j in range(mode[k], 0, -1):
                weights[k, j - 1] = weights[k, j] / _ratio(start[k] + j - 1, n[i], z[i, k], rate[k], noise) * tilt
        total = 0
        for k in range(last):
            total += mode[k]
        final[total] = 1.0
        for t in range(total, len(final) - 1):
            s = left - (t + 1 - total)
            final[t + 1] = final[t] / _ratio(s, n[i], z[i, last], rate[last], noise) * tilt if s >= 0 else 0.0
        for t in range(total, 0, -1):
            final[t - 1] = final[t] * _ratio(left + total - t, n[i], z[i, last], rate[last], noise) / tilt
        # Forwards: the product of the first k + 1 levels. Backwards: what every entry of it is multiplied by afterwards.
        products[:] = 0.0
        for j in range(length):
            products[0, j] = weights[0, j]
        for k in range(1, last):
            for a in range(k * (length - 1) + 1):
                for j in range(length):
                    products[k, a + j] += products[k - 1, a] * weights[k, j]
        coefficient = 0.0
        for t in range(len(final)):
            coefficient += products[last - 1, t] * final[t]
        value[i] += np.log(coefficient)
        others = 0.0
        for k in range(last - 1, -1, -1):
            mean = 0.0
            wide = k * (length - 1) + 1
            for j in range(length):
                share = 0.0
                if k == 0:
                    share = final[j]
                else:
                    for a in range(wide):
                        share += products[k - 1, a] * final[a + j]
                mean += (start[k] + j) * weights[k, j] * share
            for a in range(wide if k > 0 else 0):
                share = 0.0
                for j in range(length):
                    share += weights[k, j] * final[a + j]
                final[a] = share
            mean /= coefficient
            others += mean
            by_p[i, k] = mean / p[i, k] if p[i, k] > LEAST else 0.0
        by_p[i, last] = (n[i] - others) / p[i, last] if p[i, last] > LEAST else 0.0
    return value, by_p


def counts_saddle(z, n, p, length, noise):
    """Multinomial counts plus noise for many levels, z and p (B, K): the coefficient of ``counts_convolution`` by a saddle point.

    Tilted so that the K independent window sums have mean n in total, the probability that they add up to n is that of a
    normal law with their total variance; with more than FEW of them that is close to a hundredth of a nat (docs/theory.md).
    """
    value, by_p = np.empty_like(n), np.empty_like(p)
    length, K = int(length[()]), z.shape[1]
    start, base = np.empty(K), np.empty((K, length))
    means, variances, thirds = np.empty(K), np.empty(K), np.empty(K)
    for i in range(len(z)):
        for k in range(K):
            start[k] = _window_start(z[i, k], n[i], length)
            log_rate = np.log(n[i] * max(p[i, k], 1e-300))
            term = start[k] * log_rate - lgamma(start[k] + 1)
            for j in range(length):
                s = start[k] + j
                base[k, j] = term + _log_noise(z[i, k] - s, noise) if s <= n[i] else -np.inf
                term += log_rate - np.log(s + 1)
        tilt = 0.0
        for step in range(NEWTON + 1):
            total = 0.0
            for k in range(K):
                top = -np.inf
                for j in range(length):
                    top = max(top, base[k, j] + tilt * (start[k] + j))
                mass = mean = square = cube = 0.0
                for j in range(length):
                    weight = np.exp(base[k, j] + tilt * (start[k] + j) - top)
                    mass += weight
                    mean += weight * j
                    square += weight * j**2
                    cube += weight * j**3
                mean, square, cube = mean / mass, square / mass, cube / mass
                total += np.log(mass) + top
                means[k], variances[k] = start[k] + mean, square - mean**2
                thirds[k] = cube - 3 * mean * square + 2 * mean**3
            missing, variance = n[i] - means.sum(), max(variances.sum(), 1e-6)
            if step < NEWTON:
                tilt += min(max(missing / variance, -1.0), 1.0)
        value[i] = total - 0.5 * (missing**2 / variance + np.log(2 * pi * variance))
        value[i] += lgamma(n[i] + 1) - n[i] * np.log(n[i]) - n[i] * tilt
        # A larger p_k tilts all levels the other way, so that the total stays n.
        by_variance = 0.5 * (missing**2 / variance - 1) / variance
        for k in range(K):
            change = variances[k] / variance
            by_log_p = means[k] + missing * change + by_variance * (thirds[k] - change * thirds.sum())
            by_p[i, k] = by_log_p / p[i, k] if p[i, k] > 1e-300 else 0.0
    return value, by_p


def latent_counts(z, n, p, latent, spread, deviation):
    """Multinomial counts by the central limit plus Laplace noise, z, p and the standard normal latents (B, K).

    The counts s have the law of independent normal ones of mean and variance e = n p, given that they add up to n. Were the noise normal,
    too, of its own variance v, then s given z would be independent again, of variance V = e v / (e + v) and mean z - (z - e) v / (e + v),
    on the same plane: s is standardised by that law, and the noise's own density at s takes the place of the normal one.
    """
    value, by_p, by_latent = np.zeros_like(n), np.empty_like(p), np.empty_like(p)
    K = z.shape[1]
    variance, pull = np.empty(K), np.empty(K)
    b, v = spread[()], deviation[()] ** 2
    for i in range(len(z)):
        # How far means, and counts, are from adding up to n.
        total, missing, over = 0.0, n[i], -n[i]
        for k in range(K):
            e = n[i] * max(p[i, k], RARE)
            mean, variance[k] = z[i, k] - (z[i, k] - e) * v / (e + v), e * v / (e + v)
            total += variance[k]
            missing -= mean
            over += mean + np.sqrt(variance[k]) * latent[i, k]
        value[i] = 0.5 * (np.log(n[i]) - missing**2 / total - np.log(total))
        pulled = 0.0
        for k in range(K):
            e = n[i] * max(p[i, k], RARE)
            off = (z[i, k] - e) * v / (e + v) - np.sqrt(variance[k]) * latent[i, k] + variance[k] * over / total
            value[i] += 0.5 * (off**2 / v - (z[i, k] - e) ** 2 / (e + v) - np.log1p(e / v)) - abs(off) / b
            pull[k] = np.sign(off) / b - off / v
            pulled += pull[k] * variance[k] / total
        for k in range(K):
            share, root, along, short = max(p[i, k], RARE), np.sqrt(variance[k]), pull[k] - pulled, missing / total
            e, drift = n[i] * share, 1 + z[i, k] / v
            by_variance = along * (drift + 0.5 * latent[i, k] / root - over / total) + short * drift + 0.5 * short**2 - 0.5 / total
            far = (z[i, k] - e) / (e + v)
            by_p[i, k] = n[i] * (by_variance * (v / (e + v)) ** 2 + far + 0.5 * far**2 - 0.5 / (e + v)) if p[i, k] >= RARE else 0.0
            by_latent[i, k] = root * along
    return value, by_p, by_latent


def latent_sums(z, n, mean, covariance, latent, basis, spread, deviation):
    """Three and more sums z (B, K) under Laplace noise, of n records: the exact sums of R statistics are latent (docs/theory.md).

    Of the statistics of a record: mean (B, R), covariance (B, R (R + 1) / 2), its lower triangle row by row. What was summed are the
    combinations basis (K, 1 + R) of the count and these sums. Given the parameters the sums are normal, and were the noise normal, they
    would be so given the released values, too: latent (B, R) is standard normal in that law. Of little noise that is how far the sums
    are from what was released, of much from what the parameters expect.
    """
    value, by_n, by_mean = np.zeros_like(n), np.zeros_like(n), np.zeros_like(mean)
    by_covariance, by_latent = np.zeros_like(covariance), np.zeros_like(latent)
    K, R, b, sd = z.shape[1], mean.shape[1], spread[()], deviation[()]
    own, told, by_own, by_told = np.zeros((R, R)), np.zeros((R, R)), np.zeros((R, R)), np.zeros((R, R))
    slope, by_slope, residual, by_residual, whole = np.empty((K, R)), np.empty((K, R)), np.empty(K), np.empty(K), np.empty(K)
    pull, e, by_e, by_sum, by_pull = np.empty(R), np.empty(R), np.empty(R), np.empty(R), np.empty(R)
    for i in range(len(z)):
        place = 0
        for r in range(R):
            for c in range(r + 1):
                own[r, c] = n[i] * covariance[i, place]
                place += 1
        _lower_root(own)
        # What was released, in units of the noise, by the standardised sums e; their precision, and its Cholesky factor.
        for k in range(K):
            whole[k] = basis[k, 0]
            for r in range(R):
                whole[k] += basis[k, r + 1] * mean[i, r]
                slope[k, r] = 0.0
                for a in range(r, R):
                    slope[k, r] += basis[k, a + 1] / sd * own[a, r]
            residual[k] = z[i, k] - n[i] * whole[k]
        for r in range(R):
            pull[r] = 0.0
            for k in range(K):
                pull[r] += slope[k, r] * residual[k] / sd
            for c in range(r + 1):
                told[r, c] = 1.0 if r == c else 0.0
                for k in range(K):
                    told[r, c] += slope[k, r] * slope[k, c]
        _lower_root(told)
        for r in range(R):
            for c in range(r):
                pull[r] -= told[r, c] * pull[c]
            pull[r] /= told[r, r]
        for r in range(R - 1, -1, -1):
            e[r] = pull[r] + latent[i, r]
            for a in range(r + 1, R):
                e[r] -= told[a, r] * e[a]
            e[r] /= told[r, r]
            value[i] += 0.5 * latent[i, r] ** 2 - 0.5 * e[r] ** 2 - np.log(told[r, r])
            by_e[r] = -e[r]
        for k in range(K):
            off = residual[k]
            for r in range(R):
                off -= sd * slope[k, r] * e[r]
            value[i] -= abs(off) / b
            by_residual[k] = -np.sign(off) / b
            for r in range(R):
                by_slope[k, r] = -sd * by_residual[k] * e[r]
                by_e[r] -= sd * slope[k, r] * by_residual[k]
        # Backward through the steps: of the sums, of the released values' pull, of both roots.
        for r in range(R):
            by_sum[r] = by_e[r]
            for c in range(r):
                by_sum[r] -= told[r, c] * by_sum[c]
            by_sum[r] /= told[r, r]
            by_latent[i, r] = latent[i, r] + by_sum[r]
        for r in range(R - 1, -1, -1):
            by_pull[r] = by_sum[r]
            for a in range(r + 1, R):
                by_pull[r] -= told[a, r] * by_pull[a]
            by_pull[r] /= told[r, r]
        for r in range(R):
            for c in range(r + 1):
                by_told[r, c] = -e[r] * by_sum[c] - by_pull[r] * pull[c] - (1 / told[r, r] if r == c else 0.0)
        _lower_root_back(told, by_told)
        for k in range(K):
            for r in range(R):
                by_slope[k, r] += residual[k] / sd * by_pull[r]
                by_residual[k] += slope[k, r] / sd * by_pull[r]
            for r in range(R):
                for c in range(r + 1):
                    by_slope[k, r] += by_told[r, c] * slope[k, c]
                    by_slope[k, c] += by_told[r, c] * slope[k, r]
        for r in range(R):
            for c in range(r + 1):
                by_own[r, c] = 0.0
                for k in range(K):
                    by_own[r, c] += basis[k, r + 1] / sd * by_slope[k, c]
        _lower_root_back(own, by_own)
        place = 0
        for r in range(R):
            for c in range(r + 1):
                by_covariance[i, place] = n[i] * by_own[r, c]
                by_n[i] += covariance[i, place] * by_own[r, c]
                place += 1
        for k in range(K):
            by_n[i] -= whole[k] * by_residual[k]
            for r in range(R):
                by_mean[i, r] -= n[i] * basis[k, r + 1] * by_residual[k]
    return value, by_n, by_mean, by_covariance, by_latent


def _lower_root(matrix):
    """Puts its Cholesky factor in the place of a matrix's lower triangle.

    Where those before it tell a sum, as the counts of all levels but one do the last, its pivot is rounding. It and its column are 0 then,
    as they stay whatever the parameters are.
    """
    for r in range(len(matrix)):
        rounding = KNOWN * matrix[r, r]
        for c in range(r + 1):
            for m in range(c):
                matrix[r, c] -= matrix[r, m] * matrix[c, m]
            if r == c:
                matrix[r, r] = np.sqrt(matrix[r, r]) if matrix[r, r] > rounding else 0.0
            else:
                matrix[r, c] = matrix[r, c] / matrix[c, c] if matrix[c, c] > 0 else 0.0


def _lower_root_back(root, slope):
    """Puts derivatives by the lower triangle of a matrix in the place of those by its Cholesky factor (Murray, 2016)."""
    for r in range(len(root) - 1, -1, -1):
        for c in range(r, -1, -1):
            if root[c, c] == 0:
                slope[r, c] = 0.0
                continue
            slope[r, c] /= root[c, c]
            if r == c:
                slope[r, c] /= 2
            else:
                slope[c, c] -= slope[r, c] * root[r, c]
            for m in range(c):
                slope[r, m] -= slope[r, c] * root[c, m]
                slope[c, m] -= slope[r, c] * root[r, m]


def correlated_counts(z, n, p, covariance):
    """Multinomial counts by the central limit plus correlated normal noise, z and p (B, K), its covariance (B, K K).

    Counts and noise both add up to what is known, so that the ones are added to the covariance: what that adds to the log-density is
    constant. Its derivative by p_k is n u_k (1 + u_k / 2 - p.u) - n (S_kk / 2 - (S p)_k), u = S (z - n p), S the inverse.
    """
    value, by_p = np.empty_like(n), np.empty_like(p)
    K = z.shape[1]
    factor, inverse = np.zeros((K, K)), np.zeros((K, K))
    for i in range(len(z)):
        for a in range(K):
            for b in range(a + 1):
                entry = covariance[i, a * K + b] + n[i] / K - n[i] * p[i, a] * p[i, b]
                if a == b:
                    entry += n[i] * p[i, a]
                for m in range(b):
                    entry -= factor[a, m] * factor[b, m]
                factor[a, b] = np.sqrt(max(entry, RARE)) if a == b else entry / factor[b, b]
        # The inverse of the factor, whose products are the inverse of the whole.
        for b in range(K):
            for a in range(b, K):
                entry = 1.0 if a == b else 0.0
                for m in range(b, a):
                    entry -= factor[a, m] * inverse[m, b]
                inverse[a, b] = entry / factor[a, a]
        value[i] = -0.5 * K * np.log(2 * np.pi)
        pulled, along = np.zeros(K), 0.0
        for a in range(K):
            standard = 0.0
            for m in range(a + 1):
                standard += inverse[a, m] * (z[i, m] - n[i] * p[i, m])
            value[i] -= 0.5 * standard**2 + np.log(factor[a, a])
            for m in range(a + 1):
                pulled[m] += inverse[a, m] * standard
        for k in range(K):
            along += p[i, k] * pulled[k]
        for k in range(K):
            diagonal = with_p = 0.0
            for m in range(K):
                whole = 0.0
                for a in range(max(k, m), K):
                    whole += inverse[a, k] * inverse[a, m]
                with_p += whole * p[i, m]
                if m == k:
                    diagonal = whole
            by_p[i, k] = n[i] * (pulled[k] * (1 + 0.5 * pulled[k] - along) - 0.5 * diagonal + with_p)
    return value, by_p


# ---------- shares
def shares(value, near, like):
    """V shares (G, V) by V - 1 logits, each of a share in what those before it leave: all are alike where the logits are 0.

    Values (G, V - 1) are how far the logits are from their middles, in standard deviations: near (G, V - 1, 2). ``like`` (G, V) says by
    its shape how many shares there are.
    """
    found, last = np.empty_like(like), like.shape[1] - 1
    for g in range(len(value)):
        rest = 0.0
        for k in range(last):
            x = near[g, k, 0] + near[g, k, 1] * value[g, k] - log(last - k)
            found[g, k] = np.exp(rest - np.logaddexp(0.0, -x))
            rest -= np.logaddexp(0.0, x)
        found[g, last] = np.exp(rest)
    return found


def shares_back(value, near, like, slope):
    """Derivatives by the values, from those by the shares: a share takes from all after it, in proportion."""
    found, last, share = np.empty_like(value), like.shape[1] - 1, shares(value, near, like)
    for g in range(len(value)):
        after = slope[g, last] * share[g, last]
        for k in range(last - 1, -1, -1):
            logit = near[g, k, 0] + near[g, k, 1] * value[g, k]
            own, taken = slope[g, k] * share[g, k], 1 / (1 + (last - k) * np.exp(-logit))
            found[g, k] = near[g, k, 1] * (own * (1 - taken) - after * taken)
            after += own
    return found


def shares_volume(value, near):
    """Log-determinant (G,) of the derivatives of the shares: the matrix is triangular. Each moves by part x (1 - part) x what is left."""
    volume, by_value, last = np.zeros(len(value)), np.empty_like(value), value.shape[1]
    for g in range(len(value)):
        for k in range(last):
            x = near[g, k, 0] + near[g, k, 1] * value[g, k] - log(last - k)
            volume[g] += np.log(near[g, k, 1]) - np.logaddexp(0.0, -x) - (last - k) * np.logaddexp(0.0, x)
            by_value[g, k] = near[g, k, 1] * (1 - (last - k + 1) / (1 + np.exp(-x)))
    return volume, by_value


def _window_start(z, n, length):
    """First count of a window of this length around the released one, inside [0, n] as far as it fits."""
    return min(max(np.rint(z) - (length - 1) // 2, 0.0), max(n - length + 1.0, 0.0))


def _log_noise(distance, noise):
    """Log-probability of noise of this size."""
    return noise[0] * abs(distance) + noise[1] * distance**2 + noise[2]


def _term(s, z, rate, noise):
    """Log of a Poisson count's probability, but for exp(-rate), and of the noise on it."""
    return s * np.log(rate) - lgamma(s + 1) + _log_noise(z - s, noise)


def _ratio(s, n, z, rate, noise):
    """By how much the next count's term is larger than this one's."""
    if s >= n:
        return 0.0
    change = _log_noise(z - s - 1, noise) - _log_noise(z - s, noise)
    return rate / (s + 1) * np.exp(min(max(change, -STEEP), STEEP))


def _log_sum(terms, many):
    """Log of the sum of exp(terms), of the first so many, and the mean place under these weights."""
    top = -np.inf
    for j in range(many):
        top = max(top, terms[j])
    total = mean = 0.0
    for j in range(many):
        weight = np.exp(terms[j] - top)
        total += weight
        mean += weight * j
    return np.log(total) + top, mean / total


PARTS = (
    shares, _one_behind_both, _moved, _log_between, _reach_of_pair, _pair_term, _scores, _tail, _log_erfcx, _window_start, _log_noise,
    _term, _ratio, _log_sum, _lower_root, _lower_root_back,
)  # fmt: skip
"""What the loops call."""
