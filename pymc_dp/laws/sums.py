"""Loops over one or two sums of clamped records, which are normal by the central limit theorem, under Laplace noise of scale b; with their
derivatives.

Derivatives are those of the integral, which are short, not those of every step towards it. Shapes: B cells.
"""

from math import erfc, log, pi, sqrt

import numpy as np

from pymc_dp.laws.kernel import LEAST, ROOT_2

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)
"""Gauss-Legendre nodes and weights on each side of a kink."""
DEPTH = 20.0
"""Integrands are followed down to exp(-DEPTH) of their top."""
SHARP = 0.2
"""A bend of the integrand counts as a kink where it is shorter than this share of what is integrated over."""
ROUNDING = 1e-12
"""The largest share of a sum's variance that is taken for rounding where another sum determines it."""
FINE = 1e11
"""How many times as wide as the noise two sums together may be for derivatives to be differences of tails."""
UNLIKE = 100.0
"""By how many times the noise's width they may differ: terms of that closed form cancel with its square."""


def clamped_moments(mu, sigma):
    """Means of u and u², their variances and covariance, where u is a Normal(mu, sigma) value clamped to [-1, 1].

    Derivatives by mu and sigma: with I_k the integral of d^k over values inside the bounds, the k-th moment moves with mu by
    k I_(k-1), and with sigma by k times the mean of d^(k-1) (d - m) / sigma inside.
    """
    out = np.empty((15, len(mu)))
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
        out[0, i] = c + moment[1]
        out[1, i] = c**2 + 2 * c * moment[1] + moment[2]
        out[2, i] = max(variance, 0.0)
        out[3, i] = 2 * c * variance + third
        out[4, i] = max(of_square, 0.0)
        for place in range(2):
            slope = by_mu if place == 0 else by_sigma
            by_variance = slope[2] - 2 * moment[1] * slope[1]
            by_third = slope[3] - moment[1] * slope[2] - moment[2] * slope[1]
            by_fourth = slope[4] - 2 * moment[2] * slope[2]
            out[5 + place, i] = slope[1]
            out[7 + place, i] = 2 * c * slope[1] + slope[2]
            out[9 + place, i] = by_variance if variance > 0 else 0.0
            out[11 + place, i] = 2 * c * by_variance + by_third
            out[13 + place, i] = 4 * c**2 * by_variance + 4 * c * by_third + by_fourth if of_square > 0 else 0.0
    return (
        out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7], out[8], out[9], out[10], out[11],
        out[12], out[13], out[14],
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
    top. The derivatives are those of the integrand at a fixed x, averaged over it. Sums that determine each other, such as those of
    y - lower and of upper - y of so many records, are one normal variable: that integral has a closed form, too.
    """
    value, by_1, by_2 = np.empty_like(mean_1), np.empty_like(mean_1), np.empty_like(mean_1)
    by_11, by_21, by_22 = np.empty_like(mean_1), np.empty_like(mean_1), np.empty_like(mean_1)
    b = b[()]
    least = (1e-9 * b) ** 2
    terms, weighted = np.empty(4 * len(NODES)), np.empty((5, 4 * len(NODES)))
    for i in range(len(z)):
        sd = np.sqrt(max(variance_1[i], least))
        slope = covariance[i] / sd
        left_over = variance_2[i] - slope**2
        kink, decay = (z[i, 0] - mean_1[i]) / sd, sd / b
        other_decay = abs(slope) / b
        if left_over < ROUNDING * variance_2[i] and decay + other_decay < FINE and abs(decay - other_decay) < UNLIKE:
            value[i], by_1[i], by_2[i], by_sd, by_slope = _determined_pair(kink, decay, (z[i, 1] - mean_2[i]) / slope, slope / b, b)
            by_21[i], by_22[i] = by_slope / sd, 0.0
            by_11[i] = (by_sd - by_slope * slope / sd) / (2 * sd) if variance_1[i] > least else 0.0
            continue
        place = 0
        for side in range(2):
            law = (z[i, 1] - mean_2[i], slope, max(left_over, least), b, kink, decay, 1.0 - 2.0 * side)
            place = _pair_nodes(law, place, terms, weighted)
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


def _pair_nodes(law, place, terms, weighted):
    """Fills logarithms of the integrand at nodes on one side of the kink, and its derivatives there, from a place on; the next place."""
    residual, slope, left_over, b, kink, decay, sign = law
    low, high = _limits_of_pair(law)
    other_kink = sign * (residual / slope - kink) if left_over < (SHARP * slope * (high - low)) ** 2 else high
    for start, end in ((low, min(other_kink, high)), (max(other_kink, low), high)):
        if start >= end:
            continue
        for j in range(len(NODES)):
            t = start + (end - start) * (NODES[j] + 1) / 2
            x = kink + sign * t
            other, by_mean, by_variance = _scores(residual - slope * x, left_over, b)
            terms[place] = -0.5 * x**2 - decay * t + other + np.log((end - start) * WEIGHTS[j] / 2)
            weighted[0, place] = -sign / b
            weighted[1, place] = by_mean
            weighted[2, place] = -sign * x / b
            weighted[3, place] = by_mean * x
            weighted[4, place] = by_variance
            place += 1
    return place


def _determined_pair(kink, decay, other, steep, b):
    """Integral over x of phi(x) exp(-decay |x - kink| - |steep (x - other)|) / 4b², its logarithm, and derivatives.

    Derivatives are by the means and the standard deviations of the two sums: averages of signs, and of x times signs, over b. Between
    its kinks the integrand is a normal density times exp(rate x), whose integral and whose mean have closed forms, which cancel where
    one sum is far wider than the other (``UNLIKE``).
    """
    first = kink < other
    low, high = (kink, other) if first else (other, kink)
    of_low, of_high = (decay, abs(steep)) if first else (abs(steep), decay)
    both_decays, rate = of_low + of_high, of_high - of_low
    at_low, at_high = -of_high * (high - low), -of_low * (high - low)
    left, right = _tail(low, 1.0, 1 / both_decays) + at_low - log(2), _tail(-high, 1.0, 1 / both_decays) + at_high - log(2)
    middle = _log_between(low - rate, high - rate) + 0.5 * rate**2 + of_low * low - of_high * high
    top = max(left, middle, right)
    left, middle, right = np.exp(left - top), np.exp(middle - top), np.exp(right - top)
    total = left + middle + right
    f_low = np.exp(-0.5 * low**2 + at_low - top) / sqrt(2 * pi)
    f_high = np.exp(-0.5 * high**2 + at_high - top) / sqrt(2 * pi)
    change = (high - low) * (rate - (low + high) / 2)
    rise = f_low * np.expm1(change) if abs(change) < 1 else f_high - f_low
    x_left = _mean_to_end(left, f_low, low, both_decays)
    x_middle, x_right = rate * middle - rise, -_mean_to_end(right, f_high, -high, both_decays)
    # Signs of low - x and of high - x.
    by_low, by_high = (left - middle - right) / (total * b), (left + middle - right) / (total * b)
    x_low, x_high = (x_left - x_middle - x_right) / (total * b), (x_left + x_middle - x_right) / (total * b)
    sign = 1.0 if steep > 0 else -1.0
    value = np.log(total) + top - 2 * np.log(2 * b)
    if first:
        return value, by_low, sign * by_high, x_low, sign * x_high
    return value, by_high, sign * by_low, x_high, sign * x_low


def _mean_to_end(mass, density, end, rate):
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


def _limits_of_pair(law):
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


PARTS = (_pair_nodes, _determined_pair, _mean_to_end, _log_between, _limits_of_pair, _pair_term, _scores, _tail, _log_erfcx)
"""What the loops call."""
