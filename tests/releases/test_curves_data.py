"""Smooth curves of private covariates, read in blocks: blocks, order and placeholders do not show, and records bring sums of their own."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import contents, mostly_slow, seam_of

import pymc_dp as pmdp
from pymc_dp.families.scores import ROUNDS
from pymc_dp.releases import by_part, source, totals

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(3)
ODD = [np.nan, np.inf, -np.inf, 1e300, 5e-324, -0.0, 2.0, -2.0, 2.5]
"""What records may hold besides ordinary numbers."""
N = 30
FRAME = pd.DataFrame({"x": np.r_[ODD, RNG.uniform(-2, 2, N - 9)], "y": np.r_[RNG.normal(size=N - 9), ODD], "site": RNG.integers(-1, 4, N)})
FRAME["who"] = RNG.integers(0, 9, N)


def spline(x, knots, degree):
    """B-splines by their recursion, as a list of features."""
    found = [pt.switch((x >= a) & (x < b), 1.0, 0.0) for a, b in pairwise(knots)]
    for d in range(1, degree + 1):
        found = [
            (x - knots[k]) / (knots[k + d] - knots[k]) * found[k]
            + (knots[k + d + 1] - x) / (knots[k + d + 1] - knots[k + 1]) * found[k + 1]
            for k in range(len(found) - 1)
        ]  # fmt: skip
    return found


def process(x, site):
    covariance = pm.HalfNormal("size") ** 2 * pm.gp.cov.Matern52(1, ls=pm.InverseGamma("scale", 3, 3))
    waves, deviations = pm.gp.HSGP(m=[4], L=[3.0], cov_func=covariance).prior_linearized(x[:, None])
    return waves @ (pm.Normal("weights", shape=4) * deviations)


CURVES = {
    "spline": lambda x, site: sum(pm.Normal(f"b{k}") * f for k, f in enumerate(spline(x, [-4, -2, -1, 0, 1, 2, 4], 3))),
    "process": process,
    "slopes": lambda x, site: pm.Normal("b", shape=3)[site] * pt.exp(-((x - 0.5) ** 2)) + pm.Normal("c") * pt.sin(3 * x),
}
LIKELIHOODS = {
    "normal": lambda mean, y: pm.Normal("y", mean, pm.HalfNormal("sd"), observed=y),
    "logistic": lambda mean, y: pm.Bernoulli("y", logit_p=mean, observed=y.astype(int)),
}
BOUNDS = {"normal": {"y": (-1, 1)}, "logistic": {"logit(y)": (-3, 3)}}


def said(curve, likelihood, data, placeholders=(-2.0, 2.0), **more):
    """All that a release says where the noise is nothing; its exact sums in the first round, and how far they may be moved."""
    with pm.Model() as model:
        x, site = pm.Data("x", np.array(placeholders)), pm.Data("site", np.zeros(len(placeholders), dtype=int))
        mean = pm.Normal("a", shape=3)[site] + CURVES[curve](x, site)
        LIKELIHOODS[likelihood](mean, np.zeros(len(placeholders)))
    public = [f"y:{k}" for k in range(4)] if curve == "process" else []
    bounds = BOUNDS[likelihood] | {"x": (-2, 2)}
    with seam_of(0) as seam:
        released = pmdp.release(model, epsilon=1, bounds=bounds, data=data, public=public, **more)
    return contents(released), np.array(seam.exact[0], dtype=object), seam.scales[0]


CASES = [(curve, likelihood) for curve in CURVES for likelihood in LIKELIHOODS]


@pytest.mark.parametrize(("curve", "likelihood"), mostly_slow(CASES, 2))
def test_blocks_order_and_placeholders_do_not_show(monkeypatch, curve, likelihood):
    expected = said(curve, likelihood, FRAME, missing=["x", "y"])[0]
    assert said(curve, likelihood, FRAME.sample(frac=1, random_state=1), (-2.0, 0.5, 2.0), missing=["x", "y"])[0] == expected
    for rows in (1, 7):
        for module, name in ((source, "NUMBERS_AT_ONCE"), (by_part, "ROWS_IN_PART"), (totals, "IN_CACHE")):
            monkeypatch.setattr(module, name, rows)
        assert said(curve, likelihood, FRAME, missing=["x", "y"])[0] == expected


@pytest.mark.parametrize(("curve", "likelihood"), mostly_slow([("slopes", "normal"), ("slopes", "logistic"), ("spline", "normal")], 0))
def test_every_record_brings_its_own_sums_and_no_more_than_is_paid_for(curve, likelihood):
    """In the first round, of which the coefficients at which scores are taken are known beforehand."""
    given = {"neighbours": "add_remove", "missing": ["y"]}
    _, whole, scale = said(curve, likelihood, FRAME, **given)
    each = [said(curve, likelihood, FRAME[k : k + 1], **given)[1] for k in (0, 3, 20)]
    rest = [said(curve, likelihood, FRAME.drop(index=k), **given)[1] for k in (0, 3, 20)]
    share = Fraction(1) if likelihood == "normal" else ROUNDS[0]
    for alone, others in zip(each, rest, strict=True):
        assert (alone + others == whole).all()
        assert sum(map(abs, map(int, alone))) / Fraction(scale) <= share
    assert any(alone.any() for alone in each)


def test_all_rows_of_a_person_move_sums_by_what_is_paid_for():
    """Whatever they are exchanged for: more rows, fewer, or none."""
    unit = {"unit": pmdp.Person("who", at_most=2), "missing": ["x"]}
    _, whole, scale = said("slopes", "normal", FRAME, **unit)
    farthest = Fraction(0)
    for who in FRAME["who"].unique()[:3]:
        others = FRAME[FRAME["who"] != who]
        odd = {"x": RNG.choice(ODD, 5), "y": RNG.choice(ODD, 5), "site": RNG.integers(0, 3, 5)}
        for rows in ({"x": []}, odd, {"x": [-2.0] * 20, "y": 1.0, "site": 0}):
            instead = pd.DataFrame(rows | {"who": 99}, columns=FRAME.columns)
            other = said("slopes", "normal", pd.concat([instead, others]), **unit)[1]
            farthest = max(farthest, sum(map(abs, map(int, whole - other))) / Fraction(scale))
    assert Fraction(1, 4) < farthest <= 1
