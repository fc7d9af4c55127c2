"""Discrete latent chains, trees and mixtures: exact joint draws of all states, and the likelihood with the states summed out.

Pure arithmetic on arrays: no model and no record is seen here. ``states`` reads the
arrays off a PyMC model. Shapes: R chains, T steps, K states.
"""

from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.random import Generator

from pymc_dp.laws.kernel import Kernel
from pymc_dp.privacy.accounting import Refusal


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
    shared = log_transition.ndim == 2
    tables = log_transition[None] if shared else np.broadcast_to(log_transition, (*batch, K, K)).reshape(R, K, K)
    parent = np.where(np.arange(R * T) % T, np.arange(R * T) - 1, -1)
    table = np.zeros(R * T, np.int64) if shared else np.repeat(np.arange(R), T)
    from pymc_dp.gibbs.loops import downward, upward  # which imports numba, in half a second

    beliefs, scaled, log_sums = upward(unary.reshape(R * T, K), np.ascontiguousarray(tables, np.float64), table, parent)
    if not np.isfinite(log_sums).all():
        raise Refusal("No sequence of states is possible for what is seen. Write probabilities that are above 0 where it can happen.")
    states = downward(beliefs, scaled, np.ascontiguousarray(tables, np.float64), table, parent, rng.random(R * T))
    return states.reshape(*batch, T), log_sums[parent < 0].reshape(batch)


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
