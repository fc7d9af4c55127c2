"""What a sweep over latent chains costs: writes benchmarks/results/gibbs.csv.

    python benchmarks/gibbs.py

One sweep draws all states of R chains of T steps with K states given everything else, with Poisson counts seen at every step. Compared
are ForwardBackward, which reads the user's own graph; the same algorithm as loops written by hand for this one model and compiled by
numba; and, where pymc-extras is installed, its own Gibbs step on its DiscreteMarkovChain, which changes one state at a time. What
pm.sample adds to a sweep is reported apart. Times are of the processor, the median over blocks of sweeps, which take turns, so
that a busy machine counts little. --reference DIRECTORY names where pymc-extras is, if it is not installed with the rest.
"""

import argparse
import csv
import logging
import platform
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numba import njit
from numpy.random import default_rng

from pymc_dp.gibbs import ForwardBackward, forward_backward, gibbs_steps

RESULTS = Path(__file__).resolve().parent / "results" / "gibbs.csv"
SHAPES = ((18, 60, 2), (51, 36, 10))
COLUMNS = ("chains", "steps", "states", "method", "milliseconds_a_sweep", "beside_forward_backward", "machine")


@njit
def by_hand(log_initial, log_transition, log_rate, rate, y, uniforms):
    """Forward filtering and backward sampling of Poisson counts, for this one model. States (R, T)."""
    R, T = y.shape
    K = len(rate)
    states = np.empty((R, T), np.int64)
    transition, ahead, weights = np.exp(log_transition), np.empty((T, K)), np.empty(K)
    for r in range(R):
        for t in range(T):
            top = -np.inf
            for k in range(K):
                weights[k] = y[r, t] * log_rate[k] - rate[k]
                top = max(top, weights[k])
            total = 0.0
            for k in range(K):
                if t == 0:
                    before = np.exp(log_initial[k])
                else:
                    before = 0.0
                    for j in range(K):
                        before += ahead[t - 1, j] * transition[j, k]
                ahead[t, k] = before * np.exp(weights[k] - top)
                total += ahead[t, k]
            for k in range(K):
                ahead[t, k] /= total
        for t in range(T - 1, -1, -1):
            total = 0.0
            for k in range(K):
                weights[k] = ahead[t, k] * (1.0 if t == T - 1 else transition[k, states[r, t + 1]])
                total += weights[k]
            left, chosen = uniforms[r, t] * total, 0
            for k in range(K):
                chosen = k
                left -= weights[k]
                if left < 0:
                    break
            states[r, t] = chosen
    return states


def milliseconds(sweeps: Mapping[str, Callable[[], object]], seconds: float = 4.0) -> dict[str, float]:
    """Processor time of one call of each: the median over 100 blocks of calls, which take turns, so that all meet the same machine."""
    many = {}
    for name, sweep in sweeps.items():
        sweep()
        start = time.process_time()
        sweep()
        many[name] = max(1, int(seconds / 100 / max(time.process_time() - start, 1e-6)))
    blocks: dict[str, list[float]] = {name: [] for name in sweeps}
    for _ in range(100):
        for name, sweep in sweeps.items():
            start = time.process_time()
            for _ in range(many[name]):
                sweep()
            blocks[name].append((time.process_time() - start) / many[name])
    return {name: 1e3 * float(np.median(times)) for name, times in blocks.items()}


def simulated(R: int, T: int, K: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transition probabilities, rates, and counts (R, T) of chains."""
    rng = default_rng(1)
    P = 0.8 * np.eye(K) + 0.2 * rng.dirichlet(np.ones(K), K)
    rates = np.linspace(1, 4 * K, K)
    z = np.zeros((R, T), dtype=int)
    for t in range(1, T):
        z[:, t] = [rng.choice(K, p=P[k]) for k in z[:, t - 1]]
    return P, rates, rng.poisson(rates[z])


def by_potential(P: np.ndarray, rates: np.ndarray, y: np.ndarray) -> pm.Model:
    """The chains with a factor for their transitions."""
    K = len(rates)
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 0.1, shape=K, initval=rates)
        A = pm.Dirichlet("A", np.ones(K), shape=(K, K), initval=P)
        z = pm.Categorical("z", np.full(K, 1 / K), shape=y.shape)
        pm.Potential("transitions", pt.log(K * A)[z[:, :-1], z[:, 1:]])
        pm.Poisson("y", rate[z], observed=y)
    return model


def by_extras(P: np.ndarray, rates: np.ndarray, y: np.ndarray) -> pm.Model:
    """The chains as pymc-extras writes them."""
    from pymc_extras.distributions import DiscreteMarkovChain

    K = len(rates)
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 0.1, shape=K, initval=rates)
        A = pm.Dirichlet("A", np.ones(K), shape=(K, K), initval=P)
        z = DiscreteMarkovChain("z", P=A, init_dist=pm.Categorical.dist(p=np.full(K, 1 / K)), shape=y.shape)
        pm.Poisson("y", rate[z], observed=y)
    return model


def stepping(step: object, point: dict[str, np.ndarray]) -> Callable[[], object]:
    """One sweep after another."""
    at = [point]

    def sweep() -> None:
        at[0], _ = step.step(at[0])

    return sweep


def measured(R: int, T: int, K: int, extras: bool) -> dict[str, float]:
    """Milliseconds a sweep by method."""
    P, rates, y = simulated(R, T, K)
    model = (by_extras if extras else by_potential)(P, rates, y)
    point, sweeps = model.initial_point(), {}
    sweeps["ForwardBackward"] = stepping(ForwardBackward([model["z"]], model=model), point)
    rng, initial, transition = default_rng(2), np.full(K, -np.log(K)), np.log(P)
    sweeps["by hand, numba"] = lambda: by_hand(initial, transition, np.log(rates), rates, y, rng.random((R, T)))
    emission = y[..., None] * np.log(rates) - rates
    sweeps["forward_backward on arrays"] = lambda: forward_backward(initial, transition, emission, rng)
    if extras and K == 2:
        from pymc_extras.distributions.timeseries import DiscreteMarkovChainGibbsMetropolis

        sweeps["pymc-extras, one state at a time"] = stepping(DiscreteMarkovChainGibbsMetropolis([model["z"]], model=model), point)
    steps = gibbs_steps(model)
    assert sum(len(one.vars) for one in steps) == 3
    together = "gibbs_steps: states, rates and transitions"
    sweeps[together] = stepping(pm.CompoundStep(steps), point)
    found = milliseconds(sweeps)
    whole = found[together]
    draws = max(100, int(4e3 / whole))
    start = time.process_time()
    pm.sample(
        draws, tune=0, chains=1, cores=1, step=steps, model=model, progressbar=False, compute_convergence_checks=False, random_seed=1,
    )  # fmt: skip
    found["pm.sample, beside gibbs_steps"] = 1e3 * (time.process_time() - start) / draws - whole
    return found


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", help="where pymc-extras is, if it is not installed with the rest")
    arguments = parser.parse_args()
    if arguments.reference:
        sys.path.append(arguments.reference)
    try:
        import pymc_extras  # noqa: F401
    except ImportError:
        print("pymc-extras is not there: its step is left out.")
        extras = False
    else:
        extras = True
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    rows = []
    for R, T, K in SHAPES:
        found = measured(R, T, K, extras)
        for method, each in found.items():
            rows.append(
                (R, T, K, method, f"{each:.4g}", f"{each / found['ForwardBackward']:.3g}", platform.processor() or platform.machine())
            )
            print(*rows[-1], flush=True)
    with RESULTS.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])


if __name__ == "__main__":
    main()
