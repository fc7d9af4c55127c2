"""Whole numbers that are levels already are counted at once: the sums are those of the general way, bit by bit."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from checks import seam_of

import pymc_dp as pmdp
from pymc_dp.releases import by_part, totals

RNG = np.random.default_rng(3)
N = 500


def coins(rows):
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=(3, 4))
        pm.Bernoulli("y", p[pm.Data("first", rows["first"]), pm.Data("second", rows["second"])], observed=rows["y"])
    return model, {}


def visits(rows):
    """Bounds begin above 0; cells and values together are more than int8 holds."""
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1, shape=4)
        pm.Poisson("y", rate[pm.Data("second", rows["second"])], observed=rows["y"] + 2)
    return model, {"y": (2, 60)}


def votes(rows):
    with pm.Model() as model:
        pm.Categorical("y", p=pm.Dirichlet("p", np.ones(5)), observed=rows["y"])
    return model, {}


FRAME = pd.DataFrame({"first": RNG.integers(0, 3, N), "second": RNG.integers(0, 4, N), "y": RNG.integers(0, 2, N)})
ODD = {"first": (3, -1, 2**40), "second": (-5, 200), "y": (2, -1, 300)}
"""Whole numbers that are no level."""


def sums(make, rows, neighbours, **more):
    bounds = make(rows)[1]
    shared = pmdp.share_out(
        make(FRAME[:2])[0], epsilon=1, bounds=bounds, neighbours=neighbours, parts=1, **more,
        **({"records": len(rows)} if neighbours == "replace" else {}),
    )  # fmt: skip
    table = rows.assign(y=rows["y"] + 2) if make is visits else rows
    return {name: exact.tolist() for name, exact in pmdp.partial_statistics(shared.plan, table, 0).exact.items()}


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("make", [coins, visits, votes])
@pytest.mark.parametrize("piece", [7, 2**17])
def test_levels_that_are_counted_at_once_have_the_sums_of_all_others(monkeypatch, make, neighbours, piece):
    frames = [FRAME, FRAME.astype(np.int8), FRAME.assign(second=FRAME["second"].astype(np.uint64))]
    for column, values in ODD.items():
        for value, place in zip(values, (0, 250, N - 1), strict=False):
            frames.append(FRAME.copy())
            frames[-1].loc[place, column] = value
    counted = []

    def seen(*arguments):
        counted.append(totals.totals_of_levels(*arguments))
        return counted[-1]

    monkeypatch.setattr(totals, "IN_CACHE", piece)
    for k, frame in enumerate(frames):
        monkeypatch.setattr(by_part, "totals_of_levels", seen)
        at_once = sums(make, frame, neighbours)
        assert k > 2 or counted[-1] is not None
        monkeypatch.setattr(by_part, "totals_of_levels", lambda *arguments: None)
        assert at_once == sums(make, frame, neighbours), k
    assert any(one is None for one in counted)


def test_rows_that_do_not_count_are_not_counted_at_once():
    """Of every person one row counts, whatever the rows are."""
    model, _ = coins(FRAME)
    unit = pmdp.Person(np.arange(N) % 50, at_most=1, name="who")
    with seam_of(0):
        found = pmdp.release(model, epsilon=1, neighbours="add_remove", missing={}, unit=unit)["y"].noisy
    assert found.sum() == 50
