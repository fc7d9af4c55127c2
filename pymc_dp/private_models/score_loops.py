"""The expected scores at coefficients other than the anchor, within the loops over second moments; and the derivatives.

A straight line, information times the step c, is right near the anchor. Under noise the anchor is far off, and further than released
values tell: steep slopes are then taken for what a straight line makes of them, and their intervals end too early. So the expected score
is a curve here, a function of the coefficients and of the features' moments, which are unknowns of the model. Of L, the Cholesky factor
of the features' moments by weight, and z = (1, standard normal or so), a record's features are L z, its predictor at the anchor e = A'z
with A = L'anchor, and its step t = C'z with C = L'c. Per unit of weight, what is expected of L's inverse times the score is

logit    E[z h],  h = (mean(e + t) - mean(e)) / weight(e),  integrated over normal z. Only directions A and C matter.
log      g - 1, and g L'r,  g = E[exp(t)],  r_f = (mean of u_f by weight exp(t) - its mean) / its variance

where in the second each feature u_f is a binomial variable on [-1, 1] of its mean and variance: a binary one is just that, and one that
varies little is normal; correlations act as those of normal variables do. For small steps both are C.

Features need not be so distributed: what that leaves open is part of the scores' standard deviation (``anchors.widened``), by what released
values tell of the step. It must not grow with the sampled step itself: then coefficients far from all that was released would explain it.
"""

from math import exp, log, sqrt

import numpy as np

NO_LINK, LOGIT, LOG = 0, 1, 2
"""What ``off`` holds last."""
FAR = 30.0
"""The largest step, and the largest predictor at the anchor, that is told from one further out."""
TINY = 1e-12
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
NODES = tuple(float(node) for node in _NODES)
WEIGHTS = tuple(float(weight / _WEIGHTS.sum()) for weight in _WEIGHTS)


def _straight(factor, c, q):
    """Fills L'c (F,)."""
    for b in range(len(c)):
        q[b] = 0.0
        for a in range(b, len(c)):
            q[b] += factor[a, b] * c[a]


def _straight_back(by_q, factor, c, by_factor, by_c):
    """Adds to the derivatives by the factor and by c, from those by L'c."""
    for b in range(len(c)):
        for a in range(b, len(c)):
            by_factor[a, b] += by_q[b] * c[a]
            by_c[a] += by_q[b] * factor[a, b]


def _expected(off, factor, c, C, q):
    """Fills C = L'c and what is expected, q (F,)."""
    _straight(factor, c, C)
    link = off[len(c) + 1]
    if link == LOGIT:
        _by_logit(off, factor, C, q)
    elif link == LOG:
        _by_log(factor, c, C, q)
    else:
        for b in range(len(c)):
            q[b] = C[b]


def _expected_back(by_q, off, factor, c, C, by_factor, by_c):
    """Adds to the derivatives by the factor and by c, from those by what is expected."""
    F = len(c)
    by_C = np.zeros(F)
    link = off[F + 1]
    if link == LOGIT:
        _by_logit_back(by_q, off, factor, C, by_C, by_factor)
    elif link == LOG:
        _by_log_back(by_q, factor, c, C, by_C, by_factor, by_c)
    else:
        for b in range(F):
            by_C[b] = by_q[b]
    _straight_back(by_C, factor, c, by_factor, by_c)


# ---------- logit
def _moved(e, t):
    """h, and its derivatives by the predictor e at the anchor and by the step t."""
    by_e = by_t = 1.0
    if abs(e) > FAR:
        e, by_e = FAR * np.sign(e), 0.0
    if abs(t) > FAR:
        t, by_t = FAR * np.sign(t), 0.0
    at = 1 / (1 + exp(-e))
    ratio = (1 + exp(-e)) / (1 + exp(-e - t))
    h = (1 - exp(-t)) * ratio
    steep = exp(-t) * ratio**2
    return h, by_e * (steep - 1 - h * (1 - 2 * at)), by_t * steep


def _directions(A, C):
    """How far e goes along its own direction, and t along that and along another: s, onto and r; and how many directions there are."""
    F = len(C)
    if F == 2:
        return A[1], C[1], 0.0, 1
    square = cross = length = 0.0
    for b in range(1, F):
        square += A[b] ** 2
        cross += A[b] * C[b]
        length += C[b] ** 2
    s = sqrt(square + TINY)
    onto = cross / s
    return s, onto, sqrt(max(length - onto**2, 0.0) + TINY), len(NODES)


def _by_logit(off, factor, C, q):
    """Fills E[z h] (F,)."""
    F = len(C)
    A = np.empty(F)
    _straight(factor, off[:F], A)
    s, onto, r, many = _directions(A, C)
    level = first = second = 0.0
    for i in range(len(NODES)):
        for j in range(many):
            y, weight = (0.0, WEIGHTS[i]) if many == 1 else (NODES[j], WEIGHTS[i] * WEIGHTS[j])
            h, _, _ = _moved(A[0] + s * NODES[i], C[0] + onto * NODES[i] + r * y)
            level += weight * h
            first += weight * NODES[i] * h
            second += weight * y * h
    q[0] = level
    for b in range(1, F):
        q[b] = first if many == 1 else A[b] / s * first + (C[b] - onto * A[b] / s) / r * second


def _by_logit_back(by_q, off, factor, C, by_C, by_factor):
    """Adds to the derivatives by C and by the factor."""
    F = len(C)
    A, by_A = np.empty(F), np.zeros(F)
    _straight(factor, off[:F], A)
    s, onto, r, many = _directions(A, C)
    by_first, by_second = by_q[1], 0.0
    if many > 1:
        by_first = 0.0
        for b in range(1, F):
            by_first += by_q[b] * A[b] / s
            by_second += by_q[b] * (C[b] - onto * A[b] / s) / r
    first = second = by_s = by_onto = by_r = 0.0
    for i in range(len(NODES)):
        for j in range(many):
            y, weight = (0.0, WEIGHTS[i]) if many == 1 else (NODES[j], WEIGHTS[i] * WEIGHTS[j])
            h, by_e, by_t = _moved(A[0] + s * NODES[i], C[0] + onto * NODES[i] + r * y)
            first += weight * NODES[i] * h
            second += weight * y * h
            slope = weight * (by_q[0] + NODES[i] * by_first + y * by_second)
            by_A[0] += slope * by_e
            by_s += slope * by_e * NODES[i]
            by_C[0] += slope * by_t
            by_onto += slope * by_t * NODES[i]
            by_r += slope * by_t * y
    if many == 1:
        by_A[1] += by_s
        by_C[1] += by_onto
    else:
        _directions_back(by_q, by_s, by_onto, by_r, first, second, A, C, s, onto, r, by_A, by_C)
    for b in range(F):
        for a in range(b, F):
            by_factor[a, b] += by_A[b] * off[a]


def _directions_back(by_q, by_s, by_onto, by_r, first, second, A, C, s, onto, r, by_A, by_C):
    """Adds to the derivatives by A and C of several features."""
    F, length = len(C), 0.0
    for b in range(1, F):
        length += C[b] ** 2
        # q = A / s first + (C - onto A / s) / r second
        by_A[b] += by_q[b] * (first - onto / r * second) / s
        by_C[b] += by_q[b] * second / r
        by_s -= by_q[b] * A[b] * (first - onto / r * second) / s**2
        by_onto -= by_q[b] * A[b] / s * second / r
        by_r -= by_q[b] * (C[b] - onto * A[b] / s) * second / r**2
    by_length = by_r / (2 * r) if length > onto**2 else 0.0
    by_onto -= 2 * by_length * onto
    by_s -= by_onto * onto / s
    for b in range(1, F):
        by_A[b] += by_onto * C[b] / s + by_s * A[b] / s
        by_C[b] += by_onto * A[b] / s + 2 * by_length * C[b]


# ---------- log
def _tilted(factor, c, f):
    """The variance of a feature as a binomial variable, log E[exp(c (u - mean))], r, and what their derivatives need."""
    mean, variance = factor[f, 0], 0.0
    for b in range(1, f + 1):
        variance += factor[f, b] ** 2
    trials = (1 - mean**2) / variance
    x = 2 * c[f] / trials
    clipped = abs(x) > FAR
    x = min(max(x, -FAR), FAR)
    p = (1 + mean) / 2
    whole = 1 - p + p * exp(x)
    share = p * exp(x) / whole
    return mean, variance, trials, x, clipped, whole, share


def _grown(factor, c, C):
    """g, the mean of exp(t), or what is told from more of it."""
    total = C[0]
    for b in range(1, len(c)):
        total += C[b] ** 2 / 2
    for f in range(1, len(c)):
        mean, variance, trials, x, _, whole, _ = _tilted(factor, c, f)
        total += trials * (log(whole) - x / 2 * (1 + mean)) - c[f] ** 2 * variance / 2
    return (exp(total), 1.0) if abs(total) < FAR else (exp(FAR * np.sign(total)), 0.0)


def _by_log(factor, c, C, q):
    """Fills g - 1 and g L'r (F,)."""
    F = len(c)
    g, _ = _grown(factor, c, C)
    q[0] = g - 1
    for b in range(1, F):
        q[b] = 0.0
    for f in range(1, F):
        mean, variance, _, _, _, _, share = _tilted(factor, c, f)
        r = (2 * share - 1 - mean) / variance
        for b in range(1, f + 1):
            q[b] += g * factor[f, b] * r


def _by_log_back(by_q, factor, c, C, by_C, by_factor, by_c):
    """Adds to the derivatives by C, by the factor and by c."""
    F = len(c)
    g, inside = _grown(factor, c, C)
    by_total = by_q[0]
    for f in range(1, F):
        mean, variance, _, _, _, _, share = _tilted(factor, c, f)
        for b in range(1, f + 1):
            by_total += by_q[b] * factor[f, b] * (2 * share - 1 - mean) / variance
    by_total *= g * inside
    by_C[0] += by_total
    for b in range(1, F):
        by_C[b] += by_total * C[b]
    for f in range(1, F):
        mean, variance, trials, x, clipped, whole, share = _tilted(factor, c, f)
        p, r, by_r = (1 + mean) / 2, (2 * share - 1 - mean) / variance, 0.0
        for b in range(1, f + 1):
            by_r += by_q[b] * g * factor[f, b]
            by_factor[f, b] += by_q[b] * g * r
        by_share = 2 * by_r / variance
        by_variance = -by_r * r / variance - by_total * c[f] ** 2 / 2
        by_mean = -by_r / variance - by_total * trials * x / 2
        by_c[f] -= by_total * c[f] * variance
        # share and whole are functions of the mean and of x, and x of c and the number of trials.
        by_trials = by_total * (log(whole) - x / 2 * (1 + mean))
        by_mean += by_total * trials * (exp(x) - 1) / (2 * whole) + by_share * share * (1 - share) / (2 * p * (1 - p))
        by_x = by_total * trials * (share - (1 + mean) / 2) + by_share * share * (1 - share)
        if not clipped:
            by_c[f] += by_x * 2 / trials
            by_trials -= by_x * x / trials
        by_mean -= by_trials * 2 * mean / variance
        by_variance -= by_trials * trials / variance
        by_factor[f, 0] += by_mean
        for b in range(1, f + 1):
            by_factor[f, b] += 2 * by_variance * factor[f, b]


PARTS = (
    _straight, _straight_back, _expected, _expected_back, _moved, _directions, _by_logit, _by_logit_back, _directions_back, _tilted,
    _grown, _by_log, _by_log_back,
)  # fmt: skip
"""What the loops call."""
