"""The expected scores at coefficients other than the anchor, within the loops over second moments; and the derivatives.

A straight line, information times the step c, is right near the anchor. Under noise the anchor is far off, and further than released
values tell: steep slopes are then taken for what a straight line makes of them, and their intervals end too early. So the expected score
is a curve here, a function of the coefficients and of the features' moments, which are unknowns of the model. Of L, the Cholesky factor
of the features' moments by weight, and z = (1, standardised features), a record's features are L z, its predictor at the anchor e = A'z
with A = L'anchor, and its step t = C'z with C = L'c. Per unit of weight, what is expected of L's inverse times the score is

logit    E[z h],  h = (mean(e + t) - mean(e)) / weight(e)
log      g - 1, and g L'r,  g = E[exp(t)],  r_f = (mean of u_f by weight exp(t) - its mean) / its variance

where in the first z has points, and what they leave is normal (``expected_scores.points_of_features``): of that only directions A and C
matter. They are given: while moments are sampled, L alone changes. In the second each feature u_f is a binomial variable on [-1, 1] of
its mean and variance: a binary one is just that, and one that varies little is normal; correlations act as those of normal variables do.
For small steps both are C.

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
    """How far e goes along its own direction, and t along that and along another: s, onto and r."""
    square = cross = length = 0.0
    for b in range(1, len(C)):
        square += A[b] ** 2
        cross += A[b] * C[b]
        length += C[b] ** 2
    s = sqrt(square + TINY)
    onto = cross / s
    return s, onto, sqrt(max(length - onto**2, 0.0) + TINY)


def _law_of_features(off, F):
    """What is taken of standardised features: points (P, F), each with its share before it, and what is left of them (F - 1, F - 1)."""
    end = len(off) - (F - 1) ** 2
    return off[F + 2 : end].reshape((-1, F)), off[end:].reshape((F - 1, F - 1))


def _left(rest, A, C, a, c):
    """Fills how far e and t go along what points leave of the features, (F,) with nothing in front. Whether they leave any."""
    F, any_left = len(C), False
    for k in range(F - 1):
        a[k + 1] = c[k + 1] = 0.0
        for b in range(F - 1):
            a[k + 1] += rest[b, k] * A[b + 1]
            c[k + 1] += rest[b, k] * C[b + 1]
            any_left = any_left or rest[b, k] != 0.0
    return any_left


def _at_point(point, A, C):
    """The predictor at the anchor, and the step, of a point."""
    e, t = A[0], C[0]
    for b in range(1, len(C)):
        e += A[b] * point[b]
        t += C[b] * point[b]
    return e, t


def _by_logit(off, factor, C, q):
    """Fills E[z h] (F,)."""
    F = len(C)
    A, a, c = np.empty(F), np.zeros(F), np.zeros(F)
    _straight(factor, off[:F], A)
    points, rest = _law_of_features(off, F)
    any_left = _left(rest, A, C, a, c)
    s, onto, r = _directions(a, c)
    many = len(NODES) if any_left else 1
    first = second = 0.0
    for b in range(F):
        q[b] = 0.0
    for p in range(len(points)):
        if points[p, 0] == 0.0:
            continue
        e, t = _at_point(points[p], A, C)
        level = 0.0
        for i in range(many):
            for j in range(many):
                x, y, weight = (NODES[i], NODES[j], points[p, 0] * WEIGHTS[i] * WEIGHTS[j]) if any_left else (0.0, 0.0, points[p, 0])
                h, _, _ = _moved(e + s * x, t + onto * x + r * y)
                level += weight * h
                first += weight * x * h
                second += weight * y * h
        q[0] += level
        for b in range(1, F):
            q[b] += points[p, b] * level
    for k in range(1, F):
        along = a[k] / s * first + (c[k] - onto * a[k] / s) / r * second
        for b in range(1, F):
            q[b] += rest[b - 1, k - 1] * along


def _by_logit_back(by_q, off, factor, C, by_C, by_factor):
    """Adds to the derivatives by C and by the factor."""
    F = len(C)
    A, by_A, by_rest = np.empty(F), np.zeros(F), np.zeros(F)
    a, c, by_a, by_c = np.zeros(F), np.zeros(F), np.zeros(F), np.zeros(F)
    _straight(factor, off[:F], A)
    points, rest = _law_of_features(off, F)
    any_left = _left(rest, A, C, a, c)
    s, onto, r = _directions(a, c)
    many = len(NODES) if any_left else 1
    by_first = by_second = 0.0
    for k in range(1, F):
        for b in range(1, F):
            by_rest[k] += rest[b - 1, k - 1] * by_q[b]
        by_first += by_rest[k] * a[k] / s
        by_second += by_rest[k] * (c[k] - onto * a[k] / s) / r
    first = second = by_s = by_onto = by_r = 0.0
    for p in range(len(points)):
        if points[p, 0] == 0.0:
            continue
        e, t = _at_point(points[p], A, C)
        by_level, of_e, of_t = by_q[0], 0.0, 0.0
        for b in range(1, F):
            by_level += by_q[b] * points[p, b]
        for i in range(many):
            for j in range(many):
                x, y, weight = (NODES[i], NODES[j], points[p, 0] * WEIGHTS[i] * WEIGHTS[j]) if any_left else (0.0, 0.0, points[p, 0])
                h, by_e, by_t = _moved(e + s * x, t + onto * x + r * y)
                first += weight * x * h
                second += weight * y * h
                slope = weight * (by_level + x * by_first + y * by_second)
                of_e += slope * by_e
                of_t += slope * by_t
                by_s += slope * by_e * x
                by_onto += slope * by_t * x
                by_r += slope * by_t * y
        by_A[0] += of_e
        by_C[0] += of_t
        for b in range(1, F):
            by_A[b] += of_e * points[p, b]
            by_C[b] += of_t * points[p, b]
    if any_left:
        _directions_back(by_rest, by_s, by_onto, by_r, first, second, a, c, s, onto, r, by_a, by_c)
        for k in range(1, F):
            for b in range(1, F):
                by_A[b] += rest[b - 1, k - 1] * by_a[k]
                by_C[b] += rest[b - 1, k - 1] * by_c[k]
    for b in range(F):
        for k in range(b, F):
            by_factor[k, b] += by_A[b] * off[k]


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
    _straight, _straight_back, _expected, _expected_back, _moved, _directions, _law_of_features, _left, _at_point, _by_logit,
    _by_logit_back, _directions_back, _tilted, _grown, _by_log, _by_log_back,
)  # fmt: skip
"""What the loops call."""
