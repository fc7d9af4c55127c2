"""How long the law of an estimate's error takes, and how far off it is, as the history grows: Algorithms 1 and 2 of XX12.

python benchmarks/laws.py      writes benchmarks/results/laws.csv; half a minute on one idle core

The reference is the probability within the 95 % distance by a quadrature of the characteristic function on 400,001 points. Times are
processor time. Coefficients are real numbers, so that the error has no lattice, or signs, so that it has one.
"""

import csv
from hashlib import sha256
from math import expm1
from pathlib import Path
from time import process_time

import numpy as np

from pymc_dp.queries import convolution

DRAWS = 10_000


def simulated(coefficients: np.ndarray, scales: np.ndarray, draws: int, text: str, step: float | None = None) -> convolution.Law:
    """The law of sum_k A_k noise_k by simulation: Algorithm 1 of XX12, with discrete noise.

    The expected sum of squared errors of the probabilities is (1 - sum p^2) / draws (Corollary 4.1). The generator is numpy's and its
    seed comes from the text of the question, so the same answers give the same numbers; it protects nothing.

    Parameters
    ----------
    coefficients, scales : np.ndarray
        (m,).
    draws : int
    text : str
        Of the question.
    step : float, optional
        Of the grid that sums are rounded to, after they are summed; as ``convolved`` chooses it if left out.
    """
    fine = convolution.convolved(coefficients, scales)
    step = fine.step if step is None else step
    seed = int.from_bytes(sha256(text.encode()).digest()[:8], "big")
    rng = np.random.default_rng(seed)
    total = np.zeros(draws)
    for size, scale in zip(np.abs(coefficients), scales, strict=True):
        if size > 0:
            failure = -expm1(-1 / scale)
            total += size * (rng.geometric(failure, draws) - rng.geometric(failure, draws))
    points = np.rint(total / step).astype(np.int64)
    half = int(np.abs(points).max())
    return convolution.Law(step, np.bincount(points + half, minlength=2 * half + 1) / draws, float(np.abs(total - points * step).max()))


def within(sizes: np.ndarray, scales: np.ndarray, distance: float, lattice: bool) -> float:
    """P(abs(error) <= distance)."""
    variances = convolution.variances(scales)
    t = np.linspace(1e-12, np.pi if lattice else 60 / np.sqrt((sizes**2 * variances).max()), 400_001)
    log_cf = -sum(np.log1p(v * (1 - np.cos(a * t))) for a, v in zip(sizes, variances))
    if lattice:
        return np.trapezoid(np.exp(log_cf) * np.sin((distance + 0.5) * t) / np.sin(t / 2), t) / np.pi
    return 2 / np.pi * np.trapezoid(np.exp(log_cf) * np.sin(distance * t) / t, t)


def main() -> None:
    """One row for every length of history and kind of coefficients."""
    rng = np.random.default_rng(0)
    rows = []
    for answers in (3, 10, 30, 100, 300, 1000):
        scales, real = rng.uniform(2, 50, answers), rng.normal(size=answers)
        for kind, sizes in (("real", real), ("signs", np.sign(real))):
            start = process_time()
            law = convolution.convolved(sizes, scales)
            distance = law.distance(0.95)
            second = process_time() - start
            exact = within(sizes, scales, distance, kind == "signs")
            start = process_time()
            drawn = simulated(sizes, scales, DRAWS, "a question", law.step)
            first = process_time() - start
            errors = [abs(found.within(distance) - exact) for found in (drawn, law)]
            row = (answers, kind, f"{1e3 * first:.1f}", f"{errors[0]:.1e}", f"{1e3 * second:.1f}", f"{errors[1]:.1e}")
            print(*row)
            rows.append(row)
    with (Path(__file__).parent / "results" / "laws.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("answers", "coefficients", "simulated_ms", "simulated_error", "convolved_ms", "convolved_error"), *rows]
        )


if __name__ == "__main__":
    main()
