"""Published bugs of another library, rebuilt from their description: the audit finds each, and passes it once it is repaired.

Noise is a discrete Laplace law on a fine lattice, so that what is found is the bug and not the low-order bits of doubles.
"""

import numpy as np
import pytest

import pymc_dp as pmdp

RNG = np.random.default_rng(7)
LATTICE = 2.0**-20


def noisy(value, sensitivity, epsilon):
    """A number on the lattice with Laplace noise; no noise where it is believed that nothing can move."""
    scale = sensitivity / epsilon / LATTICE
    noise = 0 if scale == 0 else np.subtract(*RNG.geometric(-np.expm1(-1 / scale), 2))
    return (np.rint(value / LATTICE) + noise) * LATTICE


def linear_regression(x, y, bounds, epsilon, repaired):
    """The objective of a regression of y on x through 0 is released as three sums: of y², of x y and of x².

    Epsilon is shared equally. The sensitivity of the sum of x² was to be the largest of the squared bounds, but the lower one was
    written twice in diffprivlib: 0 for bounds (0, 1), so that sum was released as it is.
    """
    lower, upper = bounds
    largest = max(abs(lower), abs(upper if repaired else lower)) ** 2
    return (
        abs(noisy((y**2).sum(), max(abs(lower), abs(upper)) ** 2, epsilon / 3)),
        noisy((x * y).sum(), upper**2 - lower**2, epsilon / 3),
        abs(noisy((x**2).sum(), largest, epsilon / 3)),
    )


def naive_bayes(rows, bounds, epsilon, repaired):
    """Counts and sums of a feature in two classes.

    A changed label takes its value out of one class's sum and puts it into the other's, so one of the sums moves by as much as the
    larger bound and so does the other; they were charged once, with a sensitivity of upper - lower.
    """
    lower, upper = bounds
    moved = 2 * max(abs(lower), abs(upper)) if repaired else upper - lower
    counted = 2 if repaired else 1
    values, labels = rows.T
    values = np.clip(values, lower, upper)
    counts = [noisy((labels == label).sum(), counted, epsilon / 2) for label in (0, 1)]
    sums = [noisy(values[labels == label].sum(), moved, epsilon / 2) for label in (0, 1)]
    return {"counts": counts, "sums": sums}


def audited(mechanism, D, other, epsilon, n):
    return pmdp.audit(mechanism, D, other, epsilon=epsilon, n=n, random_seed=1, progressbar=False)


@pytest.mark.parametrize(("bounds", "n"), [((0.0, 1.0), 4_000), ((0.25, 1.0), 4_000)])
def test_the_lower_bound_used_twice(bounds, n):
    """Claimed 2. With bounds (0, 1) the sums of x² never meet; with (0.25, 1) their noise is 16 times too small: both all but certain."""
    D, other = np.array([0.5, 1.0]), np.array([0.5, bounds[0]])
    y = np.array([0.5, 0.5])
    broken = audited(lambda x: linear_regression(x, y, bounds, 2.0, repaired=False), D, other, 2.0, n)
    repaired = audited(lambda x: linear_regression(x, y, bounds, 2.0, repaired=True), D, other, 2.0, n)
    assert broken.lower > 2.0, broken
    assert "output[2]" in broken.event
    assert repaired.passed, repaired


def test_a_label_that_changes():
    """Claimed 1, of values between 9 and 10: two sums move by 10 where 1 was expected, an epsilon of 11 in all, so all but certain."""
    D, other = np.array([[9.0, 0], [9.5, 1], [10.0, 0]]), np.array([[9.0, 0], [9.5, 1], [10.0, 1]])
    broken = audited(lambda rows: naive_bayes(rows, (9, 10), 1.0, repaired=False), D, other, 1.0, 6_000)
    repaired = audited(lambda rows: naive_bayes(rows, (9, 10), 1.0, repaired=True), D, other, 1.0, 6_000)
    assert broken.lower > 1.0, broken
    assert broken.lower > 3.0, "the published measurement found 4.33"
    assert repaired.passed, repaired
