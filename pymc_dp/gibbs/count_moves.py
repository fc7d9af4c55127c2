"""Moves of exact counts given noisy ones: a loop that numba compiles when it is first run."""

import numpy as np
from numba import njit


@njit(cache=True)
def _choose(weights, total, first, end, rng):
    """One of first, ..., end - 1, in proportion to its weight, of which ``total`` is the sum."""
    u, v = rng.random() * total, first
    while v < end - 1 and u >= weights[v]:
        u -= weights[v]
        v += 1
    return v


@njit(cache=True)
def _one_more(noisy, count, q):
    """The ratio of the noise's probabilities, in proportion to q^abs(k), if a count is one more than it is."""
    return 1 / q if count < noisy else q


@njit(cache=True)
def _weigh_more(noisy, counts, profile, q, first, end, weights):
    """Weights of levels for one more event, by profile and noise; their sum."""
    total = 0.0
    for v in range(first, end):
        weights[v] = profile[v] * _one_more(noisy[v], counts[v], q)
        total += weights[v]
    return total


@njit(cache=True)
def _weigh_less(noisy, counts, q, first, end, weights):
    """Weights of levels for one event less, by counts and noise; their sum."""
    total = 0.0
    for v in range(first, end):
        weights[v] = counts[v] / _one_more(noisy[v], counts[v] - 1, q)
        total += weights[v]
    return total


@njit(cache=True)
def move_events(noisy, ratios, starts, profiles, z, counts, events, rates, seen, repeats, rng):
    """Metropolis-Hastings moves of exact counts given noisy ones: one event more or less in a step, and from level to level.

    One event more takes a level v of every variable with probability theta_v n_v / s, where n_v is how much likelier the noise gets
    and s the sum; one less takes v with c_v / (n_v s'), n_v as of the smaller count. Of N events, multinomial in every variable and Poisson
    in number, the acceptance of one more is then rate / (N + 1) times prod (N + 1) s / (s' n_v); of one less its inverse at N - 1.
    An event that is taken out of a level at random and put back with theta_v n_v / s is a draw from its own conditional law.
    """
    R, T, V = noisy.shape
    D = len(starts) - 1
    weights, chosen = np.zeros(V), np.zeros(D, dtype=np.int64)
    for r in range(R):
        for t in range(T):
            if not seen[r, t]:
                continue
            z_n, c, profile = noisy[r, t], counts[r, t], profiles[z[r, t]]
            for _ in range(repeats):
                more = rng.random() < 0.5
                if not more and events[r, t] == 0:
                    continue
                N = events[r, t] if more else events[r, t] - 1  # the smaller of the two
                ratio_up = rates[r, t] / (N + 1)
                for d in range(D):
                    first, end, q = starts[d], starts[d + 1], ratios[d]
                    if more:
                        up = _weigh_more(z_n, c, profile, q, first, end, weights)
                        v = _choose(weights, up, first, end, rng)
                        c[v] += 1
                        down = _weigh_less(z_n, c, q, first, end, weights)
                        c[v] -= 1
                    else:
                        down = _weigh_less(z_n, c, q, first, end, weights)
                        v = _choose(weights, down, first, end, rng)
                        c[v] -= 1
                        up = _weigh_more(z_n, c, profile, q, first, end, weights)
                    chosen[d] = v
                    ratio_up *= (N + 1) * up / (down * _one_more(z_n[v], c[v], q))
                # c is the smaller of the two now
                accepted = rng.random() < ratio_up if more else rng.random() * ratio_up < 1
                if accepted == more:
                    for d in range(D):
                        c[chosen[d]] += 1
                    events[r, t] = N + 1
                else:
                    events[r, t] = N
                if events[r, t] == 0:
                    continue
                for d in range(D):
                    first, end = starts[d], starts[d + 1]
                    for v in range(first, end):
                        weights[v] = c[v]
                    c[_choose(weights, events[r, t], first, end, rng)] -= 1
                    total = _weigh_more(z_n, c, profile, ratios[d], first, end, weights)
                    c[_choose(weights, total, first, end, rng)] += 1
