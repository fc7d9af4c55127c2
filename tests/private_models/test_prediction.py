"""Predictive probabilities from a DataTree: against sums over the whole joint table."""

import itertools
import json

import numpy as np
import pytest
import xarray as xr

import pymc_dp as pmdp
from pymc_dp.plans.network import Network, Node

RNG = np.random.default_rng(6)
LEVELS = {"a": 2, "b": 3, "c": 2, "d": 2, "e": 3}
PARENTS = {"a": (), "b": ("a",), "c": ("b", "a"), "d": ("c",), "e": ()}
DRAWS = 7


def tree():
    nodes = tuple(Node(name, name, 0, levels, PARENTS[name]) for name, levels in LEVELS.items())
    group = {}
    for node in nodes:
        cells = int(np.prod([LEVELS[p] for p in node.parents]))
        table = RNG.dirichlet(np.ones(node.levels), (1, DRAWS, cells))
        group[f"{node.name}_table"] = (("chain", "draw", f"{node.name}_cell", f"{node.name}_level"), table)
    privacy = xr.Dataset(attrs={"network": json.dumps(Network(nodes).facts())})
    return xr.DataTree.from_dict({"network": xr.Dataset(group), "privacy": privacy})


TREE = tree()


def joint():
    """(draws, a, b, c, d, e)."""
    table = {name: TREE.network[f"{name}_table"].values[0] for name in LEVELS}
    shaped = {name: table[name].reshape(DRAWS, *[LEVELS[p] for p in PARENTS[name]], LEVELS[name]) for name in LEVELS}
    return np.einsum("za,zab,zbac,zcd,ze->zabcde", *(shaped[name] for name in LEVELS))


@pytest.mark.parametrize("known", [k for n in range(5) for k in itertools.combinations("abcde", n)], ids="".join)
def test_any_variable_given_any_others(known):
    whole = joint()
    values = {name: int(RNG.integers(LEVELS[name])) for name in known}
    for name in sorted(set(LEVELS) - set(known)):
        part = whole
        for other in LEVELS:
            axis = 1 + list(LEVELS).index(other)
            if other in values:
                part = part.take([values[other]], axis=axis)
            elif other != name:
                part = part.sum(axis=axis, keepdims=True)
        each = part.reshape(DRAWS, LEVELS[name])
        each = each / each.sum(axis=1, keepdims=True)
        found = pmdp.predict(TREE, name, values, probability=0.8)
        np.testing.assert_allclose(found.probability.values[0], each.mean(axis=0))
        np.testing.assert_allclose(found.lower.values[0], np.quantile(each, 0.1, axis=0))
        np.testing.assert_allclose(found.upper.values[0], np.quantile(each, 0.9, axis=0))


def test_many_records_at_once(monkeypatch):
    b, c = RNG.integers(0, 3, 50), RNG.integers(0, 2, 50)
    whole = pmdp.predict(TREE, "a", {"b": b, "c": c, "e": 1})
    monkeypatch.setattr(pmdp.private_models.prediction, "MOST_NUMBERS", 100)
    parts = pmdp.predict(TREE, "a", {"b": b, "c": c, "e": 1})
    xr.testing.assert_identical(whole, parts)
    for k in (0, 17, 49):
        alone = pmdp.predict(TREE, "a", {"b": b[k], "c": c[k]})
        np.testing.assert_allclose(whole.probability.values[k], alone.probability.values[0])


@pytest.mark.parametrize(
    ("variable", "given", "words"),
    [
        ("z", {}, "no 'z'"),
        ("a", {"z": 0}, "names 'z'"),
        ("a", {"b": 3}, "levels of b"),
        ("a", {"b": 0.5}, "levels of b"),
        ("a", {"b": [0, 1], "c": [0, 1, 1]}, "as many levels"),
        ("a", {"b": [[0, 1]]}, "levels of b"),
    ],
)
def test_what_is_not_of_the_network_is_refused(variable, given, words):
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.predict(TREE, variable, given)


def test_a_tree_without_a_network_is_refused():
    with pytest.raises(pmdp.Refusal, match="no Bayesian network"):
        pmdp.predict(xr.DataTree(), "a", {})
    groups = {"network": TREE.network.to_dataset().drop_vars("b_table"), "privacy": TREE.privacy.to_dataset()}
    with pytest.raises(pmdp.Refusal, match="b_table"):
        pmdp.predict(xr.DataTree.from_dict(groups), "a", {})
