"""Sums are of integers: exact in any block size, and refused where they could leave 64 bits."""

import sys
from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as pmdp
from pymc_dp.families.family import Domain, named
from pymc_dp.models.spec import Likelihood
from pymc_dp.plans.statistic import Grid, PlannedStatistic
from pymc_dp.releases import sums
from pymc_dp.releases.statistics import Cells, check_overflow
from pymc_dp.releases.totals import exact_totals

statistics = sys.modules["pymc_dp.releases.statistics"]


def step_of(family, domain, columns=()):
    likelihood = Likelihood("y", family.DISTRIBUTION, family, columns=columns, unknown=domain.unknown)
    return PlannedStatistic(likelihood, "shared", domain, "public", Grid(), None, {}, family.statistics(domain), family.sensitivity(domain))


@pytest.mark.parametrize("cells", [5, 1])
@pytest.mark.parametrize("largest", [2**53, 2**33, 1])
def test_sums_are_exact_in_any_block(monkeypatch, largest, cells):
    """Against Python's own integers, for squares of up to 2**30 in several cells and columns."""
    monkeypatch.setattr(sums, "EXACT_DOUBLE", largest)
    rng = np.random.default_rng(4)
    values, codes = rng.uniform(-3, 3, size=(400, 2)), rng.integers(0, cells, 400)
    family, domain = named("Normal"), Domain(-2.0, 2.0, unknown=(True, True))
    step = step_of(family, domain, columns=(2,))
    totals = exact_totals(values, step, Cells(codes, np.bincount(codes), ()), {}, None, None, None)
    integers = family.exact(np.clip(values, -2, 2), domain)
    for g in range(cells):
        for c in range(2):
            for k in range(2):
                assert totals[g, c, k] == sum(int(value) for value in integers[k][codes == g, c])


def test_sums_beyond_what_doubles_hold_are_exact():
    """Odd numbers whose sum is above 2**53: a sum in doubles would lose its last digits, so that they go through several blocks."""
    values = 2.0**39 - 1 - 2 * np.random.default_rng(6).integers(0, 1000, 40_000)
    step = step_of(named("Poisson"), Domain(0.0, 2.0**39, unknown=(True,)))
    for cells in (1, 2):
        places = Cells(np.zeros(len(values), dtype=int), np.array([len(values), 0][:cells]), ())
        totals = exact_totals(values, step, places, {}, None, None, None)
        assert totals[0, 0] == sum(int(value) for value in values) > sums.EXACT_DOUBLE


def test_sums_that_could_leave_64_bits_are_refused():
    step = step_of(named("Poisson"), Domain(0.0, 2.0**39, unknown=(True,)))
    check_overflow(step, 2**22)
    with pytest.raises(pmdp.Refusal, match="Narrow the bounds"):
        check_overflow(step, 2**23)


def test_sums_of_a_private_number_of_records_are_clamped_instead():
    """Nothing may be refused for what is private; two sums beyond the integers are at most as far apart as before."""
    step = replace(step_of(named("Poisson"), Domain(0.0, 2.0**39, unknown=(True,))), sizes="free")
    check_overflow(step, 2**30)
    assert (np.clip(sums.totals(np.zeros(3, int), np.array([2**62, 2**62, 5]), 1, 2**62), -(2**62), 2**62) == 2**62).all()


def test_public_arrays_must_have_one_row_per_record():
    g = np.array([0, 1, 2])
    with pm.Model() as model:
        theta = pm.Beta("theta", 1, 1, shape=3)
        y, index = pm.Data("values", np.zeros(3)), pm.Data("g", g)
        pm.Bernoulli("y", theta[index], observed=y)
    y.set_value(np.zeros(7))
    with pytest.raises(pmdp.Refusal, match="different numbers of records"):
        pmdp.release(model, epsilon=1.0, public=["g"])


def test_cells_are_the_combinations_that_occur(exact_seam):
    g, h, z = np.array([2, 0, 2, 2]), np.array([1, 1, 1, 0]), np.array([0.5, -1.0, 0.5, np.nan])
    with pm.Model() as model:
        a = pm.Normal("a", shape=(3, 2))
        pm.Bernoulli("y", logit_p=a[g, h] + pm.Data("z", np.zeros(4)), observed=[1, 1, 0, 1])
    model["z"].set_value(z)
    released = pmdp.release(model, epsilon=1.0, public=["y:0", "y:1", "z"])["y"]
    cells = sorted(zip(*(values.tolist() for values in released.inputs), released.n.tolist(), released.noisy[:, 0].tolist()), key=str)
    assert [(2, 1, 0.5, 2, 1) in cells, (0, 1, -1.0, 1, 1) in cells, len(cells)] == [True, True, 3]


def test_features_of_all_blocks_are_compiled_once_and_keep_no_record():
    x = pt.dvector("x")
    compiled = statistics._compiled((x * 2,), (x,), 1)
    assert compiled(np.arange(3.0))[0].tolist() == [0, 2, 4]
    assert statistics._compiled((x * 2,), (x,), 1) is not compiled  # another graph
    assert not [held for variable, [held] in compiled.vm.storage_map.items() if held is not None and not hasattr(variable, "data")]
