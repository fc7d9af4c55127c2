"""Chains that disagree, that hardly move or that diverge are named in one line, and others are not."""

import re
import warnings

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dp as pmdp
from pymc_dp.private_models.diagnostics import warn_if_unsettled

APART = np.array([[0.0], [3.0]])
ADVICE = "Draw longer."


def tree(diverging=0, draws=500, **variables):
    """Draws (chain, draw, ...) by name, with as many divergent ones."""
    posterior = xr.Dataset({name: (("chain", "draw", *(f"{name}_{k}" for k in range(np.ndim(v) - 2))), v) for name, v in variables.items()})
    diverged = np.zeros((posterior.sizes["chain"], draws), dtype=bool)
    diverged.flat[:diverging] = True
    return xr.DataTree.from_dict({"posterior": posterior, "sample_stats": xr.Dataset({"diverging": (("chain", "draw"), diverged)})})


def settled(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({"mu": settled(2, 500) + APART, "nu": settled(2, 500)}, [r"R-hat of mu is 1\.\d+, above 1\.05", "least effective"]),
        ({"mu": settled(2, 500), "theta": settled(2, 500, 3) + np.array([0, 0, 1]) * [[[0]], [[2]]]}, ["R-hat of theta is"]),
        ({"mu": np.cumsum(settled(2, 500), axis=1)}, ["R-hat of mu", r"the least effective sample size is \d+, below 200"]),
        ({"mu": settled(2, 500), "diverging": 7}, ["^The chains cannot be trusted: 7 of 1,000 draws diverged. Draw longer.$"]),
        ({"mu": settled(1, 500), "diverging": 1}, ["1 of 500 draws diverged"]),
    ],
)
def test_what_is_wrong_is_said_in_one_line(made, words):
    with pytest.warns(pmdp.ConvergenceWarning) as caught:
        warn_if_unsettled(tree(**made), ADVICE)
    assert len(caught) == 1
    for pattern in words:
        assert re.search(pattern, str(caught[0].message)), str(caught[0].message)


@pytest.mark.parametrize(
    "made",
    [
        {"mu": settled(4, 1000), "theta": settled(4, 1000, 3), "draws": 1000},
        {"constant": np.ones((2, 500)), "whole": np.random.default_rng(2).integers(0, 5, (2, 500)), "none": np.ones((2, 500, 0))},
        {"mu": settled(2, 50) + APART, "draws": 50},
        {"mu": settled(1, 500)},
    ],
)
def test_what_is_not_wrong_is_not_said(made):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_unsettled(tree(**made), ADVICE)


def two_modes():
    with pm.Model() as model:
        pm.Normal("y", pm.math.abs(pm.Normal("mu", 0, 5)), 1, observed=np.random.default_rng(1).normal(3, 1, 300))
    return model


@pytest.mark.filterwarnings("default:The chains cannot be trusted")
@pytest.mark.parametrize("check", [True, False])
def test_sample_says_that_its_chains_disagree(check):
    """Each chain starts, and stays, at a mode of its own: the posterior has one at 3 and one at -3."""
    short = {"draws": 200, "tune": 200, "chains": 2, "cores": 1, "progressbar": False, "nuts_sampler": "pymc"}
    starts = [{"mu": 3.0}, {"mu": -3.0}]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pmdp.sample(
            epsilon=10.0, model=two_modes(), bounds={"y": (-5, 11)}, initvals=starts, compute_convergence_checks=check, init="adapt_diag",
            **short,
        )  # fmt: skip
    said = [str(one.message) for one in caught if one.category is pmdp.ConvergenceWarning]
    assert len(said) == check
    if check:
        assert "R-hat of mu is" in said[0]
        assert "pymc_dp.private_model(idata, model)" in said[0]
