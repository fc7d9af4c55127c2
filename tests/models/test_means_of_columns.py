"""Means over columns, columns that are flattened, and whole powers: read as sums and products, and what is near them is refused."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import EXACT, log_density, seam_of, spread_of_differences

import pymc_dp as pmdp

pytestmark = pytest.mark.filterwarnings("ignore")

N = 40
RNG = np.random.default_rng(2)
COLUMNS, G, Y = RNG.uniform(-1, 1, (N, 3)), RNG.integers(0, 4, (N, 2)), RNG.normal(size=N).clip(-3, 3)
BOUNDS = {"y": (-3, 3), "X": (-1, 1)}


def model(mean):
    with pm.Model() as built:
        b, c = pm.Normal("b", shape=3), pm.Normal("c")
        pm.Normal("y", mean(pm.Data("X", COLUMNS), b, c), pm.HalfNormal("s"), observed=Y)
    return built


def of_members(mean):
    with pm.Model() as built:
        pm.Normal("y", mean(pm.Normal("a", shape=4)[pm.Data("G", G)]), pm.HalfNormal("s"), observed=Y)
    return built


def exact(built, **arguments):
    with seam_of(0):
        released = pmdp.release(built, epsilon=1.0, **arguments)["y"]
    return released.noisy.tolist(), released.difference


PAIRS = {
    "a mean of columns": (lambda X, b, c: c * X.mean(axis=1), lambda X, b, c: c * (X.sum(axis=1) / 3)),
    "a mean of products": (lambda X, b, c: (X * b).mean(axis=-1), lambda X, b, c: (X * b).sum(axis=-1) / 3),
    "a mean of what is turned round": (lambda X, b, c: c * X.T.mean(axis=0), lambda X, b, c: c * (X.sum(axis=1) / 3)),
    "a length, cast": (lambda X, b, c: c * X.sum(axis=1) / pt.cast(X.shape[1], "float64"), lambda X, b, c: c * X.sum(axis=1) / 3.0),
    "a column, flattened": (lambda X, b, c: pt.dot(X, b[:, None]).flatten(), lambda X, b, c: X @ b),
    "a column, in another shape": (lambda X, b, c: pt.dot(X, b[:, None]).reshape((-1,)), lambda X, b, c: X @ b),
    "a square": (lambda X, b, c: (X[:, 0] - c) ** 2, lambda X, b, c: (X[:, 0] - c) * (X[:, 0] - c)),
    "a cube": (lambda X, b, c: b[0] * (X[:, 0] - c) ** 3, lambda X, b, c: b[0] * ((X[:, 0] - c) * (X[:, 0] - c) * (X[:, 0] - c))),
}


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("written", PAIRS)
def test_they_are_read_as_sums_and_products(written, neighbours):
    """The same numbers, and one record moves them by as much."""
    if neighbours == "add_remove" and "a column" in written:
        pytest.skip("a shape is refused where the number of records is private")
    ours, plain = (exact(model(mean), bounds=BOUNDS, neighbours=neighbours) for mean in PAIRS[written])
    assert ours == plain


@pytest.mark.parametrize("written", PAIRS)
def test_the_private_model_is_the_user_s(written):
    built = model(PAIRS[written][0])
    with seam_of(0):
        released = pmdp.release(built, epsilon=EXACT, bounds=BOUNDS)
    assert spread_of_differences(log_density(built), built, pmdp.rewrite(built, released, noise_aware=False)) < 1e-2


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_a_mean_of_effects_of_several_groups(neighbours):
    """Of all that a record is a member of."""
    ours, plain = (
        exact(of_members(mean), bounds={"y": (-3, 3)}, neighbours=neighbours)
        for mean in (lambda a: a.mean(axis=1), lambda a: a.sum(axis=1) / 2)
    )
    assert ours == plain


REFUSED = {
    "a mean of records": lambda X, b, c: c * X.sum(axis=1) - X.mean(),
    "means of records": lambda X, b, c: (X - X.mean(axis=0)) @ b,
    "how many records there are": lambda X, b, c: c * X.sum(axis=1) / X.shape[0],
    "how many numbers there are": lambda X, b, c: c * X.sum(axis=1) / X.size,
    "the length of what no record is read of": lambda X, b, c: X @ b + c * pm.Data("Z", COLUMNS).shape[1],
    "a length that an unknown chooses": lambda X, b, c: c * X.sum(axis=1) / X.shape[pt.cast(c > 0, "int64")],
    "a power that is no whole number": lambda X, b, c: (X[:, 0] - c) ** 1.5,
    "an unknown power": lambda X, b, c: (X[:, 0] - c) ** b[0],
    "a fifth power": lambda X, b, c: (X[:, 0] - c) ** 5,
}


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("written", REFUSED)
def test_what_is_near_them_is_refused(written, neighbours):
    with pytest.raises(pmdp.Refusal):
        pmdp.release(model(REFUSED[written]), epsilon=1.0, bounds=BOUNDS, neighbours=neighbours)
