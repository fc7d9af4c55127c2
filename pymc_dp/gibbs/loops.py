"""The loops of a sweep over discrete states, compiled by numba; imported at the first sweep, because numba takes half a second.

Sites stand in an order in which each comes after the one it depends on. Messages run up to the sites without a parent, and states are
drawn on the way down. On a chain that is forward filtering and backward sampling read from the other end (the joint law of the states, and
so of the draw, is the same), and it serves trees and mixtures, too. Sums are taken of exponentials, which cost K of them a site and not K²,
and again in logarithms where such a sum is so small that terms may have been lost: states thousands of nats apart are drawn right.

Shapes: S sites, K states, M tables of transitions, E numbers of the model.
"""

import numpy as np
from numba import njit

NOTHING = 1e-18
"""A probability below this, beside all of them, is left out."""
SMALL = 1e-250
"""A sum of exponentials below this is taken again in logarithms: terms of it may have underflowed."""
NEAR = 100.0
"""So many nats above another state are not too many to be a number beside it."""


@njit(cache=True, error_model="numpy")
def upward(unary, tables, table, parent):
    """Messages to the parents.

    Parameters: log-potentials (S, K) of states and (M, K, K) of a parent's state and its child's, which of the latter stands
    between a site and its parent (S,), and the parents (S,), -1 where there is none. Returns what is believed of each site
    (S, K) given all below it, in logarithms, its exponential over its largest, and the logarithm of the sum (S,) at roots.
    """
    S, K = unary.shape
    beliefs, scaled, log_sums = unary.copy(), np.empty((S, K)), np.zeros(S)
    whole = np.exp(tables)
    for s in range(S - 1, -1, -1):
        top = -np.inf
        for k in range(K):
            top = max(top, beliefs[s, k])
        if not -np.inf < top < np.inf:
            log_sums[s] = np.nan  # no state is possible, or a potential is no number
            return beliefs, scaled, log_sums
        for k in range(K):
            scaled[s, k] = np.exp(beliefs[s, k] - top)
        up = parent[s]
        if up < 0:
            total = 0.0
            for k in range(K):
                total += scaled[s, k]
            log_sums[s] = top + np.log(total)
            continue
        between = table[s]
        for j in range(K):
            total = 0.0
            for k in range(K):
                total += whole[between, j, k] * scaled[s, k]
            if total > SMALL:
                beliefs[up, j] += top + np.log(total)
                continue
            highest = -np.inf
            for k in range(K):
                highest = max(highest, tables[between, j, k] + beliefs[s, k])
            total = 0.0
            if highest > -np.inf:
                for k in range(K):
                    total += np.exp(tables[between, j, k] + beliefs[s, k] - highest)
                beliefs[up, j] += highest + np.log(total)
            else:
                beliefs[up, j] = -np.inf
    return beliefs, scaled, log_sums


@njit(cache=True, error_model="numpy")
def downward(beliefs, scaled, tables, table, parent, uniforms):
    """States (S,) drawn from what ``upward`` believes: roots first, each by inversion of one uniform number of (S,)."""
    S, K = beliefs.shape
    states, weights = np.empty(S, np.int64), np.empty(K)
    whole = np.exp(tables)
    for s in range(S):
        total = 0.0
        for k in range(K):
            weights[k] = scaled[s, k]
            if parent[s] >= 0:
                weights[k] *= whole[table[s], states[parent[s]], k]
            total += weights[k]
        if total < SMALL:
            highest = -np.inf
            for k in range(K):
                weights[k] = beliefs[s, k] + tables[table[s], states[parent[s]], k]
                highest = max(highest, weights[k])
            total = 0.0
            for k in range(K):
                weights[k] = np.exp(weights[k] - highest)
                total += weights[k]
        left = uniforms[s] * total
        chosen = -1
        for k in range(K):
            if weights[k] > 0.0:
                chosen = k
                left -= weights[k]
                if left < 0.0:
                    break
        states[s] = chosen
    return states


@njit(cache=True, error_model="numpy")
def drawn_without_logs(unary, tables, table, parent, uniforms):
    """States (S,) as ``upward`` and ``downward`` draw them, without logarithms; empty where something may have been lost by that."""
    S, K = unary.shape
    nothing = np.empty(0, np.int64)
    beliefs, whole, states = np.ones((S, K)), np.exp(tables), np.empty(S, np.int64)
    for s in range(S - 1, -1, -1):
        first = top = unary[s, 0]
        for k in range(1, K):
            if unary[s, k] > top:
                top = unary[s, k]
        if not -np.inf < top < np.inf:
            return nothing
        base = first if top - first < NEAR else top  # nearly always the first, whose exponential is 1 then
        if first < base:
            beliefs[s, 0] *= np.exp(first - base)
        largest = beliefs[s, 0]
        for k in range(1, K):
            beliefs[s, k] *= np.exp(unary[s, k] - base)
            largest = max(largest, beliefs[s, k])
        if not largest > SMALL:
            return nothing
        up = parent[s]
        if up < 0:
            continue
        between, less = table[s], 1 / largest
        for j in range(K):
            total = 0.0
            for k in range(K):
                total += whole[between, j, k] * beliefs[s, k]
            total *= less
            beliefs[up, j] *= total
            if not beliefs[up, j] > SMALL:
                for k in range(K):
                    if tables[between, j, k] > -np.inf:
                        return nothing  # it may be small, and yet all there is
    for s in range(S):
        total, j = 0.0, states[parent[s]] if parent[s] >= 0 else -1
        for k in range(K):
            total += beliefs[s, k] * (whole[table[s], j, k] if j >= 0 else 1.0)
        if not SMALL < total < np.inf:
            return nothing
        left, chosen = uniforms[s] * total, -1
        for k in range(K):
            weight = beliefs[s, k] * (whole[table[s], j, k] if j >= 0 else 1.0)
            if weight > 0.0:
                chosen = k
                left -= weight
                if left < 0.0:
                    break
        states[s] = chosen
    return states


@njit(cache=True, error_model="numpy")
def assembled(numbers, seen, place, fixed, read, lone, sums, M):
    """Log-potentials (S, K) of states, and (M, K, K) of those of a parent and its child, from numbers of a model.

    Parameters: numbers that rest on one site (K, E), were it in each state; others that were seen; the places of the former (E,), -1 for
    none, and what is added to them (S, K); where the entries of groups (G, K, K) stand among the latter, -1 for none, which groups rest on
    one site, the second (A, 2), and which are added up to which table (L, 2): tables first. Also returned are the groups (G, K, K).
    """
    unary, groups = fixed.copy(), np.empty(read.shape)
    G, K, _ = read.shape
    for e in range(len(place)):
        s = place[e]
        if s >= 0:
            for k in range(K):
                unary[s, k] += numbers[k, e]
    for g in range(G):
        for j in range(K):
            for k in range(K):
                groups[g, j, k] = seen[read[g, j, k]] if read[g, j, k] >= 0 else -np.inf
                if np.isnan(groups[g, j, k]):
                    raise ArithmeticError("The log-density of the model is no number at some state.")
    for a in range(len(lone)):
        for k in range(K):
            unary[lone[a, 0], k] += groups[lone[a, 1], 0, k]
    tables = np.zeros((M, K, K))
    for i in range(len(sums)):
        tables[sums[i, 0]] += groups[sums[i, 1]]
    return unary, tables, groups


@njit(cache=True, error_model="numpy")
def drawn(unary, tables, table, parent, uniforms):
    """States (S,) from their joint law, as ``upward`` and ``downward`` draw them; empty where there are none."""
    states = drawn_without_logs(unary, tables, table, parent, uniforms)
    if len(states):
        return states
    beliefs, scaled, log_sums = upward(unary, tables, table, parent)
    return downward(beliefs, scaled, tables, table, parent, uniforms) if np.isfinite(log_sums).all() else states


@njit(cache=True, error_model="numpy")
def sweep(numbers, seen, uniforms, place, fixed, read, lone, sums, M, table, parent, order, lowest):
    """States (S,) of all sites by their places, from their joint conditional, empty where there are none, and their values by sites.

    Parameters: those of ``assembled`` and ``drawn``; which site stands at each place (S,), and the value of the first state of each site
    (S,). Also returned are the groups (G, K, K).
    """
    unary, tables, groups = assembled(numbers, seen, place, fixed, read, lone, sums, M)
    states = drawn(unary, tables, table, parent, uniforms)
    values = np.empty_like(states)
    for s in range(len(states)):
        values[order[s]] = states[s] + lowest[order[s]]
    return states, values, groups


@njit(cache=True, error_model="numpy")
def misfit(ones, pairs, states, numbers, place, groups, group, places):
    """The largest difference of a model's numbers at some states (S,) from those that were read, over the largest of them.

    Parameters: numbers that rest on one site (E,), which were read as (K, E), and its place, -1 for none; and those of pairs of sites,
    which were read as groups (G, K, K), which group each is of, and places of parents and children, -1 for none.
    """
    worst, largest = 0.0, 1.0
    for e in range(len(ones)):
        gap = abs(ones[e] - numbers[states[place[e]] if place[e] >= 0 else 0, e])
        if np.isnan(gap):
            return np.inf
        worst, largest = max(worst, gap), max(largest, abs(ones[e]))
    most = worst / largest
    worst, largest = 0.0, 1.0
    for e in range(len(pairs)):
        j = states[places[e, 0]] if places[e, 0] >= 0 else 0
        k = states[places[e, 1]] if places[e, 1] >= 0 else 0
        gap = abs(pairs[e] - groups[group[e], j, k])
        if np.isnan(gap):
            return np.inf
        worst, largest = max(worst, gap), max(largest, abs(pairs[e]))
    return max(most, worst / largest)


@njit(cache=True, error_model="numpy")
def _ratio_of_next(s, noisy, total, odds, by_one, by_square):
    """The probability of the count s + 1 over that of s, given the noisy count: a decreasing function of s.

    The count is Binomial with these odds of so many trials, or where there are none (a negative total) Poisson with this rate; noise of d
    has log-probability by_one |d| + by_square d², but for a constant.
    """
    before, after = noisy - s, noisy - s - 1
    noise = np.exp(by_one * (abs(after) - abs(before)) + by_square * (after * after - before * before))
    return noise * odds / (s + 1) * (total - s if total >= 0 else 1.0)


@njit(cache=True, error_model="numpy")
def _mode(high, noisy, total, odds, by_one, by_square):
    """The most probable count from 0 to high, by bisection: see ``_ratio_of_next``."""
    low = 0.0
    while low < high:
        middle = np.floor((low + high) / 2)
        if _ratio_of_next(middle, noisy, total, odds, by_one, by_square) >= 1:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, error_model="numpy")
def latent_counts(noisy, total, odds, by_one, by_square, uniforms):
    """Counts (G,) from their conditional law given noisy ones (G,), by inversion of one uniform number each.

    The law is log-concave, so its mode is found by bisection, and its probabilities fall to both sides of it, faster and faster.
    """
    counts = np.empty(len(noisy))
    for g in range(len(noisy)):
        z, n, o = noisy[g], total[g], odds[g]
        mode, whole = _mode(n if n >= 0 else np.ceil(max(max(z, o), 0.0)) + 1, z, n, o, by_one, by_square), 1.0
        weight, s = 1.0, mode
        while (n < 0 or s < n) and weight > NOTHING * whole:
            weight *= _ratio_of_next(s, z, n, o, by_one, by_square)
            whole += weight
            s += 1
        weight, s = 1.0, mode
        while s > 0 and weight > NOTHING * whole:
            weight /= _ratio_of_next(s - 1, z, n, o, by_one, by_square)
            whole += weight
            s -= 1
        left = uniforms[g] * whole - 1.0
        count, weight, s = mode, 1.0, mode
        while left >= 0 and (n < 0 or s < n) and weight > NOTHING * whole:
            weight *= _ratio_of_next(s, z, n, o, by_one, by_square)
            left -= weight
            s += 1
            count = s
        if left >= 0:
            weight, s, count = 1.0, mode, mode
            while left >= 0 and s > 0 and weight > NOTHING * whole:
                weight /= _ratio_of_next(s - 1, z, n, o, by_one, by_square)
                left -= weight
                s -= 1
                count = s
        counts[g] = count
    return counts


@njit(cache=True, error_model="numpy")
def _window(noisy, rate, by_one, by_square, longest, weights):
    """Fills ``weights`` with those of counts from the first on that is not NOTHING beside the likeliest: that count, and how many.

    The counts are Poisson with this rate, given the noisy one; there are at most ``longest`` of them, and so many if more are needed.
    """
    mode = _mode(np.ceil(max(max(noisy, rate), 0.0)) + 1, noisy, -1.0, rate, by_one, by_square)
    first, weight = mode, 1.0
    while first > 0 and weight > NOTHING:
        first -= 1
        weight /= _ratio_of_next(first, noisy, -1.0, rate, by_one, by_square)
    many, s = 1, first
    weights[0] = weight
    while (s < mode or weight > NOTHING) and many < longest:
        weight *= _ratio_of_next(s, noisy, -1.0, rate, by_one, by_square)
        weights[many] = weight
        many += 1
        s += 1
    return first, many


@njit(cache=True, error_model="numpy")
def latent_tables(noisy, total, p, by_one, by_square, longest, uniforms):
    """Counts (G, K) that add up to their totals (G,), from their conditional law given noisy ones (G, K); empty where too long.

    Multinomial counts are Poisson ones given their sum. Rates in proportion to the probabilities p (G, K) are chosen so that the
    likeliest counts given the noisy ones add up to about the total; then windows around these hold all but a share of 1e-18 or so,
    sums over the later counts are convolved, and counts are drawn one after another.
    """
    (G, K), counts = noisy.shape, np.empty(noisy.shape)
    weights, first, many = np.empty((K, longest)), np.empty(K), np.empty(K, np.int64)
    for g in range(G):
        tilt = _tilt_to_total(noisy[g], total[g], p[g], by_one, by_square)
        for k in range(K):
            rate = p[g, k] * total[g] * np.exp(tilt)
            first[k], many[k] = _window(noisy[g, k], rate, by_one, by_square, longest, weights[k])
            if many[k] == longest:
                return np.empty((0, K))
        # sums[k] holds what is left of the total for counts k, ..., K - 1: from least[k] on.
        least, length = np.empty(K), np.empty(K, np.int64)
        least[K - 1], length[K - 1] = first[K - 1], many[K - 1]
        for k in range(K - 2, -1, -1):
            least[k], length[k] = least[k + 1] + first[k], length[k + 1] + many[k] - 1
        sums = _convolved(weights, many, length)
        left = total[g]
        for k in range(K - 1):
            whole = 0.0
            for s in range(many[k]):
                m = int(left - first[k] - s - least[k + 1])
                if 0 <= m < length[k + 1]:
                    whole += weights[k, s] * sums[k + 1, m]
            remaining, chosen = uniforms[g, k] * whole, -1
            for s in range(many[k]):
                m = int(left - first[k] - s - least[k + 1])
                if 0 <= m < length[k + 1] and weights[k, s] * sums[k + 1, m] > 0:
                    chosen = s
                    remaining -= weights[k, s] * sums[k + 1, m]
                    if remaining < 0:
                        break
            if chosen < 0:
                return np.empty((0, K))
            counts[g, k] = first[k] + chosen
            left -= counts[g, k]
        counts[g, K - 1] = left
    return counts


@njit(cache=True, error_model="numpy")
def _tilt_to_total(noisy, total, p, by_one, by_square):
    """The logarithm of the factor on all rates with which the likeliest counts (K,) given the noisy ones add up to about the total."""
    low, high = -50.0, 50.0
    for _ in range(60):
        tilt, likeliest = (low + high) / 2, 0.0
        for k in range(len(p)):
            rate = p[k] * total * np.exp(tilt)
            likeliest += _mode(total + 1, noisy[k], -1.0, rate, by_one, by_square)
        if likeliest < total:
            low = tilt
        else:
            high = tilt
    return high


@njit(cache=True, error_model="numpy")
def _convolved(weights, many, length):
    """Weights of sums over counts k, ..., K - 1, in row k, but for a factor; row 0 is not needed."""
    K = len(many)
    sums = np.zeros((K, length[0]))
    for s in range(many[K - 1]):
        sums[K - 1, s] = weights[K - 1, s]
    for k in range(K - 2, 0, -1):
        largest = 0.0
        for s in range(many[k]):
            for m in range(length[k + 1]):
                sums[k, s + m] += weights[k, s] * sums[k + 1, m]
        for m in range(length[k]):
            largest = max(largest, sums[k, m])
        for m in range(length[k]):
            sums[k, m] /= largest
    return sums
