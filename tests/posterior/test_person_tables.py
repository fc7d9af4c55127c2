"""Draws of tables of probabilities that protect all rows of a person: no person moves scores by more than is paid for."""

from itertools import combinations_with_replacement, product

import numpy as np
import pymc as pm
import pytest
from checks import mostly_slow, refused

import pymc_dp as pmdp
from pymc_dp.plans.protection import protection_of
from pymc_dp.posterior import tables
from pymc_dp.posterior.draws import task_of
from pymc_dp.posterior.routes import prepared
from pymc_dp.privacy.mechanisms import exponential_mechanism
from pymc_dp.privacy.receipts import Receipt
from pymc_dp.releases.persons import counted_rows, names_of

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS = list(product([0, 1], [0, 1, 2]))
OTHERS = [(1, ROWS[0]), (2, ROWS[4]), (1, ROWS[3]), (1, ROWS[5])]


def network(who, rows):
    """x, and y of three levels given x, with whose the rows are."""
    x, y = np.array(rows, dtype=int).reshape(-1, 2).T
    with pm.Model(coords={"visit": np.arange(len(who))}) as model:
        pm.Data("who", np.array(who), dims="visit")
        x = pm.Bernoulli("x", pm.Beta("q", 1, 1), observed=x, dims="visit")
        pm.Categorical("y", pm.Dirichlet("p", np.ones(3), shape=(2, 3))[x], observed=y, dims="visit")
    return model


def with_person(rows, name=9):
    """A model of others, and of a person with these rows among them."""
    who = [name] * len(rows) + [other for other, _ in OTHERS]
    said = list(rows) + [row for _, row in OTHERS]
    order = np.random.default_rng(len(rows)).permutation(len(who))
    return network([who[k] for k in order], [said[k] for k in order])


def scores_of(model, neighbours, at_most=2):
    """The integer scores of every split, node by node, and the draws that are paid for."""
    seen = []

    def watched(scores, scale, receipt, *more):
        seen.append(np.array(list(scores)))
        return exponential_mechanism(list(seen[-1]), scale, receipt, *more)

    protection = protection_of(unit=pmdp.Person("who", at_most), neighbours=neighbours, missing={}, persons=True)
    ready = prepared(task_of(model, 2, 0, pmdp.PosteriorSample(1, points=33), protection))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "exponential_mechanism", watched)
        ready.draw(Receipt(ready.price.draws, ready.price.cost))
    assert ready.records is None
    return seen, ready.price


@pytest.mark.parametrize("neighbours", mostly_slow(["add_remove", "replace"], 0))
def test_no_person_moves_scores_by_more_than_is_paid_for(neighbours):
    """All pairs of people of up to two rows, and some of five: the ranges by which scores differ, added up. Some pair attains it."""
    rng = np.random.default_rng(1)
    people = [list(rows) for many in range(3) for rows in combinations_with_replacement(ROWS, many)]
    people += [[ROWS[k] for k in rng.integers(0, len(ROWS), 5)] for _ in range(4)]
    found = [scores_of(with_person(rows, 9 + k % 2), neighbours) for k, rows in enumerate(people)]
    scores, price = [seen for seen, _ in found], found[0][1]
    assert {price.scale for _, price in found} == {price.scale}
    pairs = product(scores, scores) if neighbours == "replace" else ((one, scores[0]) for one in scores)
    moved = [[int(np.ptp(a - b, axis=1).sum()) for a, b in zip(one, other, strict=True)] for one, other in pairs]
    paid = [draw.difference for draw in price.draws]
    assert (np.max(moved, axis=0) <= paid).all()
    assert np.max(moved, axis=0).tolist() == paid
    assert price.cost.epsilon <= 2


def test_draws_are_those_of_the_rows_that_count():
    """A person has five rows, two of which count; the scores are those of these rows alone, at the same scale."""
    rows = [ROWS[k] for k in (0, 0, 5, 5, 3)]
    who, said = [9] * 5 + [name for name, _ in OTHERS], rows + [row for _, row in OTHERS]
    kept = counted_rows(names_of(np.array(who)), 2, [np.array(said)[:, 0], np.array(said)[:, 1]])
    assert kept.sum() == 5
    whole, price = scores_of(network(who, said), "add_remove")
    alone, _ = scores_of(network(np.arange(5), np.array(said)[kept]), "add_remove")
    assert all((one == other).all() for one, other in zip(whole, alone, strict=True))
    assert price.scale > 0


def test_what_is_not_drawn_by_tables_is_refused():
    with pm.Model() as model:
        pm.Data("who", np.arange(4))
        pm.Poisson("y", pm.Uniform("l", 1, 2), observed=np.arange(4))
    unit, table = pmdp.Person("who", 2), with_person(ROWS)
    for mechanism, given in (
        (pmdp.PosteriorSample(1), model),
        (pmdp.PosteriorSample(1, method="mcmc"), table),
        (pmdp.Gibbs(sweeps=1), table),
    ):
        bounds = {"y": (0, 5)} if given is model else None
        words = refused(pmdp.sample, model=given, epsilon=1, mechanism=mechanism, unit=unit, bounds=bounds)
        assert 'mechanism="laplace"' in words
