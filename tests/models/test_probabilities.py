"""Probabilities of levels that do not add up to 1 along the last axis are refused; those that do, in every spelling, are not."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import ancestors

import pymc_dp as pmdp

GROUPS, LEVELS = np.arange(60) % 2, np.arange(60) % 3
SOFTMAX = pm.math.softmax


def _model(probabilities, family: str = "Categorical") -> pm.Model:
    with pm.Model() as model:
        table = pm.Normal("table", 0, 1, shape=(2, 3))
        simplex = pm.Dirichlet("simplex", np.ones(3), shape=(2, 3))
        share = pm.Beta("share", 1, 1)
        group = pm.Data("group", GROUPS)
        p = probabilities(table, simplex, share, group)
        if family == "Categorical":
            pm.Categorical("choice", p=p, observed=LEVELS)
        else:
            pm.Multinomial("choice", n=2, p=p, observed=np.eye(3, dtype=int)[LEVELS] * 2)
    return model


NOT = {
    "softmax over the groups": lambda table, simplex, share, group: SOFTMAX(table, axis=0)[group],
    "no softmax": lambda table, simplex, share, group: pt.exp(table)[group],
    "shared by all": lambda table, simplex, share, group: pt.exp(table[0]),
    "probabilities one by one": lambda table, simplex, share, group: pm.math.invlogit(table)[group],
    "a product": lambda table, simplex, share, group: share * simplex[group],
    "one number and what is left, twice": lambda table, simplex, share, group: pt.stack([share, 1 - share, 1 - share]),
}
ADD_UP = {
    "softmax": lambda table, simplex, share, group: SOFTMAX(table[group], axis=-1),
    "softmax of the table": lambda table, simplex, share, group: SOFTMAX(table, axis=-1)[group],
    "softmax over the other axis, turned": lambda table, simplex, share, group: SOFTMAX(table.T, axis=0).T[group],
    "divided by their sum": lambda table, simplex, share, group: (pt.exp(table) / pt.exp(table).sum(-1, keepdims=True))[group],
    "a Dirichlet": lambda table, simplex, share, group: simplex[group],
    "a mixture": lambda table, simplex, share, group: share * simplex[0] + (1 - share) * simplex[1],
    "one number and what is left": lambda table, simplex, share, group: pt.stack([share, (1 - share) / 2, (1 - share) / 2]),
    "a table that all know": lambda table, simplex, share, group: pt.as_tensor([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])[group],
    "a covariate": lambda table, simplex, share, group: SOFTMAX(table[0] + table[1] * group[:, None], axis=-1),
}


@pytest.mark.parametrize("name", NOT)
@pytest.mark.parametrize("family", ["Categorical", "Multinomial"])
def test_probabilities_that_do_not_add_up_are_refused(name: str, family: str) -> None:
    """PyMC gives the model no density at all, so there is nothing to release for."""
    model = _model(NOT[name], family)
    with np.errstate(all="ignore"):
        assert model.compile_logp(vars=model["choice"])(model.initial_point()) == -np.inf
    for public in ([], ["group"]):
        with pytest.raises(pmdp.Refusal, match=r"do not add up to 1 along their last axis.*keepdims=True"):
            pmdp.release(model, epsilon=1.0, public=public)


@pytest.mark.parametrize("name", ADD_UP)
@pytest.mark.parametrize("public", [True, False])
def test_probabilities_that_add_up_are_released(name: str, public: bool) -> None:
    """However they are written, and no trace of the look at them is left in the user's model."""
    model = _model(ADD_UP[name])
    before = {id(v.owner.op): set(vars(v.owner.op)) for v in ancestors([model["choice"]]) if v.owner}
    given = {"bounds": {"group": {0, 1}}} if name == "a covariate" and not public else {}
    assert pmdp.inspect(model, public=["group"] if public else [], **given).rows[0].structure != "not released"
    assert before == {id(v.owner.op): set(vars(v.owner.op)) for v in ancestors([model["choice"]]) if v.owner}
