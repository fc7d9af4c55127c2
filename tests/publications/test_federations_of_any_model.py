"""Whatever the structure: the density of two holders is the sum of theirs; two equal noisy numbers of one truth are one with less noise."""

from dataclasses import replace
from math import sqrt

import gallery_bins  # noqa: F401  its models are added to GALLERY
import gallery_potentials  # noqa: F401
import numpy as np
import pytest
from checks import points
from gallery import GALLERY

import pymc_dp as pmdp
from pymc_dp.private_models.rewrite import rewritten, spec_like

pytestmark = pytest.mark.filterwarnings("ignore")
QUICK = ("radon_pooled", "naive_bayes")


def parametrised(quick):
    return pytest.mark.parametrize(
        "entry", [pytest.param(e, id=e.name, marks=[] if e.name in quick else [pytest.mark.slow]) for e in GALLERY]
    )


def likelihood_of(model):
    return model.compile_logp(vars=model.observed_RVs, mode="FAST_COMPILE")


@parametrised(QUICK)
def test_two_holders_are_the_sum_of_both(entry):
    made = [entry.make(seed=seed) for seed in (0, 1)]
    several = {name: pmdp.release(model, epsilon=1.0, **how) for name, (model, how) in zip(("north", "south"), made)}
    if several["north"].network is not None:
        with pytest.raises(pmdp.Refusal, match="Bayesian network"):
            pmdp.published(made[0][0], several)
        return
    public = pmdp.published(made[0][0], several)
    alone = {name: pmdp.rewrite(made[0][0], release) for name, release in several.items()}
    ours, theirs = likelihood_of(public), {name: likelihood_of(model) for name, model in alone.items()}
    for point in points(public, 2):
        total = 0.0
        for name, one in theirs.items():
            at = {value.name: point.get(value.name, point.get(f"{name}_{value.name}")) for value in alone[name].value_vars}
            total += one(at)
        assert ours(point) == pytest.approx(total, rel=1e-9)


@parametrised(())
def test_equal_noisy_statistics_of_the_same_people_are_one_with_half_the_variance(entry):
    model, how = entry.make()
    try:
        first = pmdp.release(model, epsilon=1.0, mechanism=pmdp.Gaussian(delta=1e-6), **how)
    except pmdp.Refusal:
        pytest.skip("no release under Gaussian noise")
    second = replace(first, ledger_head="another")
    several = {"spring": first, "autumn": second}
    if first.network is not None or any(any(array.size for array in (s.weights, s.multipliers, s.anchor)) for s in first.statistics):
        with pytest.raises(pmdp.Refusal, match=r"not combined|Bayesian network"):
            pmdp.published(model, several, same_people=True)
        return
    public = pmdp.published(model, several, same_people=True)
    half = replace(first, statistics=tuple(replace(noisy, scale=noisy.scale / sqrt(2)) for noisy in first.statistics))
    one = rewritten(spec_like(model, half, half.public), half)
    ours, theirs = likelihood_of(public), likelihood_of(one)
    differences = [ours(point) - theirs(point) for point in points(public)]
    np.testing.assert_allclose(differences, differences[0], rtol=1e-6, atol=1e-5)
