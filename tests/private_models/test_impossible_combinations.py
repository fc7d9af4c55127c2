"""Private numbers of a record that never occur together, such as ``x`` and ``1 - x``: every combination is a cell, and must have a density.

Where it has none at many draws from the priors, the private model would forbid unknowns that the user's own allows: refused before paying.
"""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as pmdp

N = 120
X, G, Y = np.arange(N) % 2, np.arange(N) % 3, (np.arange(N) % 5 == 0).astype(int)
PAID = []
"""What the ledger had when a call had ended."""


def two_shares():
    return pm.Beta("a", 1, 1), pm.Beta("b", 1, 1)


def x_and_what_is_left():
    a, b = two_shares()
    pm.Bernoulli("y", a * X + b * (1 - X), observed=Y)
    return {"bounds": {"y:0": {0, 1}, "y:1": {0, 1}}}


def the_same_with_names():
    a, b = two_shares()
    pm.Bernoulli("y", a * pm.Data("yes", X) + b * pm.Data("no", 1 - X), observed=Y)
    return {"bounds": {"yes": {0, 1}, "no": {0, 1}}}


def dummies():
    X = pm.Data("D", (G[:, None] == np.arange(3)).astype(float))
    pm.Bernoulli("y", (X * pm.Beta("p", 1, 1, shape=3)).sum(axis=1), observed=Y)
    return {"bounds": {"D": {0, 1}}}


def an_index_written_twice():
    c = pm.Beta("c", 1, 1, shape=3)
    pm.Bernoulli("y", c[G] + (1 - c[G]) * pm.Beta("p", 1, 1), observed=Y)
    return {"neighbours": "add_remove"}


def rates():
    low, high = pm.Normal("low", 3, 1), pm.Normal("high", 3, 1)
    pm.Poisson("y", low * pm.Data("x", X) - high * pm.Data("z", G > 1), observed=Y)
    return {"bounds": {"y": (0, 12), "x": {0, 1}, "z": {0, 1}}}


def within_the_model():
    (a, b), x = two_shares(), pm.Data("x", X)
    pm.Bernoulli("y", a * x + b * (1 - x), observed=Y)
    return {"bounds": {"x": {0, 1}}}


def an_index():
    pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=3)[pm.Data("g", G)], observed=Y)
    return {}


def a_named_index_written_twice():
    c, g = pm.Beta("c", 1, 1, shape=3), pm.Data("g", G)
    pm.Bernoulli("y", c[g] + (1 - c[g]) * pm.Beta("p", 1, 1), observed=Y)
    return {"neighbours": "add_remove"}


def the_same_memory_where_the_number_is_public():
    return an_index_written_twice() | {"neighbours": "replace"}


def with_a_link():
    pm.Bernoulli("y", pm.math.sigmoid(pm.Normal("a") * X + pm.Normal("b") * (1 - X)), observed=Y)
    return {"bounds": {"y:0": {0, 1}, "y:1": {0, 1}}}


def rarely():
    a, b = pm.Beta("a", 1, 20), pm.Beta("b", 1, 20)
    pm.Bernoulli("y", a * X + b * (1 - X), observed=Y)
    return {"bounds": {"y:0": {0, 1}, "y:1": {0, 1}}}


def of_a_single_covariate():
    """Both of its levels may occur, and so PyMC's own model forbids the same."""
    pm.Bernoulli("y", pm.Normal("a", 0.5, 0.5) + pm.Normal("b", 0, 0.5) * pm.Data("x", X), observed=Y)
    return {"bounds": {"x": {0, 1}}}


def _paid(make, path, call):
    with pm.Model() as model:
        arguments = make()
    ledger = pmdp.Ledger(path / "own.ledger", epsilon=10, create=True, neighbours=arguments.get("neighbours", "replace"))
    try:
        return call(model=model, epsilon=1.0, ledger=ledger, missing={}, **arguments)
    finally:
        PAID.append(10 - ledger.remaining().epsilon)


@pytest.mark.parametrize("call", [lambda **rest: pmdp.sample(10, **rest), pmdp.privatize], ids=["sample", "privatize"])
@pytest.mark.parametrize(
    ("make", "names"),
    [
        (x_and_what_is_left, "y:0 and y:1"),
        (the_same_with_names, "yes and no"),
        (dummies, "D"),
        (an_index_written_twice, "y:0 and y:1"),
        (rates, "x and z"),
    ],
)
def test_they_are_refused_before_paying(make, names, call, tmp_path):
    with pytest.raises(pmdp.Refusal, match=rf"y cannot be sampled: in \d+% of 400 draws.*every combination of {names} counts.*p\[group\]"):
        _paid(make, tmp_path, call)
    assert PAID.pop() == 0


@pytest.mark.parametrize(
    "make",
    [
        within_the_model,
        an_index,
        a_named_index_written_twice,
        the_same_memory_where_the_number_is_public,
        with_a_link,
        rarely,
        of_a_single_covariate,
    ],
)
def test_others_are_paid_for(make, tmp_path):
    private = _paid(make, tmp_path, pmdp.privatize)
    assert PAID.pop() == 1
    assert np.isfinite(private.compile_logp(mode="FAST_COMPILE")(private.initial_point()))
