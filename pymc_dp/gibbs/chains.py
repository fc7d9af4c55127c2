"""Discrete latent chains, trees and mixtures: exact joint draws of all states, and the likelihood with the states summed out.

Pure arithmetic on arrays, compiled by numba: no model and no record is seen here. ``states`` stands after and reads the
arrays off a PyMC model. Shapes: R chains, T steps, K states, S sites (all steps of all chains), M transition tables.

Sites stand in an order in which each comes after the one it depends on. Messages run up to the sites without a parent and
states are drawn on the way down. On a chain that is forward filtering and backward sampling read from the other end (the
joint law of the states, and so of the draw, is the same), and it serves trees and mixtures, too. Sums are taken of
exponentials, which cost K of them a site and not K², and again in logarithms where such a sum is so small that something may
have been lost: states that differ by thousands of nats are drawn right.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.random import Generator

from pymc_dp.accounting import Refusal
from pymc_dp.kernels import Kernel

SMALL = 1e-250
"""A sum of exponentials below this is taken again in logarithms: terms of it may have underflowed."""


def forward_backward(
    log_initial: np.ndarray, log_transition: np.ndarray, log_emission: np.ndarray, rng: Generator
) -> tuple[np.ndarray, np.ndarray]:
    """States of hidden Markov chains drawn from their exact joint law, by forward filtering and backward sampling.

    Leading axes broadcast, so that one call serves many chains, and many draws of the parameters: this is how states are
    recovered after NUTS has sampled the parameters with ``marginal_likelihood``.

    Parameters
    ----------
    log_initial : (..., K) ndarray
        Log-probabilities of the first state, up to a constant.
    log_transition : (..., K, K) ndarray
        From the state of the row to that of the column.
    log_emission : (..., T, K) ndarray
        Log-likelihood of what is seen at each step under each state; 0 where nothing is seen. With T = 1 the chains are
        independent mixtures.
    rng : numpy.random.Generator

    Returns
    -------
    states : (..., T) ndarray of int64
    log_likelihood : (...) ndarray
        Of all that is seen, the states summed out.

    Raises
    ------
    Refusal
        When no sequence of states is possible for some chain.
    """
    T, K = log_emission.shape[-2:]
    batch = np.broadcast_shapes(log_initial.shape[:-1], log_transition.shape[:-2], log_emission.shape[:-2])
    unary = np.broadcast_to(log_emission, (*batch, T, K)).astype(np.float64).reshape(-1, T, K)
    R = len(unary)
    unary[:, 0] += np.broadcast_to(log_initial, (*batch, K)).reshape(R, K)
    one = log_transition.ndim == 2
    tables = log_transition[None] if one else np.broadcast_to(log_transition, (*batch, K, K)).reshape(R, K, K)
    parent = np.where(np.arange(R * T) % T, np.arange(R * T) - 1, -1)
    table = np.zeros(R * T, np.int64) if one else np.repeat(np.arange(R), T)
    beliefs, scaled, many = upward()(unary.reshape(R * T, K), np.ascontiguousarray(tables, np.float64), table, parent)
    if not np.isfinite(many).all():
        raise Refusal("No sequence of states is possible for what is seen. Write probabilities that are above 0 where it can happen.")
    states = downward()(beliefs, scaled, np.ascontiguousarray(tables, np.float64), table, parent, rng.random(R * T))
    return states.reshape(*batch, T), many[parent < 0].reshape(batch)


def marginal_likelihood(log_initial: Any, log_transition: Any, log_emission: Any) -> pt.TensorVariable:
    """Log-likelihood (R,) of hidden Markov chains with the states summed out, by the forward algorithm: for ``pm.Potential``.

    The derivatives are those of the smoothed states (Fisher's identity): by a log-emission the probability of that state at
    that step, by the logarithm of a transition probability the expected number of such transitions. There are no second ones.

    Parameters
    ----------
    log_initial : (K,) or (R, K) tensor
        Logarithms: a probability of 0 is fine as a constant, and has no derivative.
    log_transition : (K, K) or (R, K, K) tensor
    log_emission : (R, T, K) tensor
        Of known K and T.

    Returns
    -------
    (R,) tensor
    """
    emission = pt.as_tensor(log_emission).astype("float64")
    initial, transition = pt.as_tensor(log_initial).astype("float64"), pt.as_tensor(log_transition).astype("float64")
    R, K = emission.shape[0], emission.shape[2]
    initial = initial if initial.type.ndim == 2 else initial[None] + pt.zeros((R, 1))
    transition = transition if transition.type.ndim == 3 else transition[None] + pt.zeros((R, 1, 1))
    flat = [initial, transition.reshape((R, K * K)), emission.reshape((R, -1))]
    return Kernel(smoothed, (0, 1, 2))(*flat, return_list=True)[0]


# ---------- the loops
def smoothed(initial, transition, emission):
    """Log-likelihoods (R,) of chains, and derivatives by initial (R, K), transition (R, K K) and emission (R, T K).

    Forward and backward in logarithms; the two meet in the smoothed probabilities of states and of pairs of states.
    """
    R, K = initial.shape
    T = emission.shape[1] // K
    value, by_initial = np.empty(R), np.zeros_like(initial)
    by_transition, by_emission = np.zeros_like(transition), np.zeros_like(emission)
    ahead, back, terms = np.empty((T, K)), np.zeros((T, K)), np.empty(K)
    for r in range(R):
        for t in range(T):
            for k in range(K):
                if t == 0:
                    ahead[t, k] = initial[r, k] + emission[r, k]
                else:
                    for j in range(K):
                        terms[j] = ahead[t - 1, j] + transition[r, j * K + k]
                    ahead[t, k] = _log_sum_exp(terms) + emission[r, t * K + k]
        for t in range(T - 2, -1, -1):
            for j in range(K):
                for k in range(K):
                    terms[k] = transition[r, j * K + k] + emission[r, (t + 1) * K + k] + back[t + 1, k]
                back[t, j] = _log_sum_exp(terms)
        value[r] = _log_sum_exp(ahead[T - 1])
        if value[r] == -np.inf:
            continue
        for t in range(T):
            for k in range(K):
                by_emission[r, t * K + k] = np.exp(ahead[t, k] + back[t, k] - value[r])
                if t == 0:
                    by_initial[r, k] = by_emission[r, k]
                    continue
                arrived = emission[r, t * K + k] + back[t, k] - value[r]
                for j in range(K):
                    by_transition[r, j * K + k] += np.exp(ahead[t - 1, j] + transition[r, j * K + k] + arrived)
    return value, by_initial, by_transition, by_emission


def _log_sum_exp(terms):
    """Log of the sum of exponentials; minus infinity where all are."""
    top = terms.max()
    if top == -np.inf:
        return top
    total = 0.0
    for j in range(len(terms)):
        total += np.exp(terms[j] - top)
    return top + np.log(total)


PARTS = (_log_sum_exp,)
"""What the loops call."""


def _upward(unary, tables, table, parent):
    """Messages to the parents.

    Parameters: log-potentials (S, K) of states and (M, K, K) of a parent's state and its child's, which of the latter stands
    between a site and its parent (S,), and the parents (S,), -1 where there is none. Returns what is believed of each site
    (S, K) given all below it, in logarithms, its exponential over its largest, and the logarithm of the sum (S,) at roots.
    """
    S, K = unary.shape
    beliefs, scaled, many = unary.copy(), np.empty((S, K)), np.zeros(S)
    whole = np.exp(tables)
    for s in range(S - 1, -1, -1):
        top = -np.inf
        for k in range(K):
            top = max(top, beliefs[s, k])
        if not -np.inf < top < np.inf:
            many[s] = np.nan  # no state is possible, or a potential is no number
            return beliefs, scaled, many
        for k in range(K):
            scaled[s, k] = np.exp(beliefs[s, k] - top)
        up = parent[s]
        if up < 0:
            total = 0.0
            for k in range(K):
                total += scaled[s, k]
            many[s] = top + np.log(total)
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
    return beliefs, scaled, many


def _downward(beliefs, scaled, tables, table, parent, uniforms):
    """States (S,) drawn from what ``_upward`` believes: roots first, each by inversion of one uniform number of (S,)."""
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


@cache
def upward() -> Callable:
    """``_upward``, compiled when it is first used: numba takes half a second to import."""
    from numba import njit

    return njit(_upward, error_model="numpy")


@cache
def downward() -> Callable:
    """``_downward``, compiled when it is first used."""
    from numba import njit

    return njit(_downward, error_model="numpy")
