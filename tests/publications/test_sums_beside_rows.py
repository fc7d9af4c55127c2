"""Published sums of records and published rows in one model: each has the density that it has alone, and what is refused."""

import warnings

import arviz as az
import numpy as np
import pymc as pm
import pytest
from checks import points
from scipy import stats

import pymc_dp as pmdp

LAWS = {"deaths": pmdp.RoundedToBase(3), "cost": [pmdp.LaplaceNoise(1.0), pmdp.Threshold(0.0, absent="listed")]}
SUMS = {"statistics": {"visits": {"sum visits": (412.0, pmdp.LaplaceNoise(30.0))}}, "bounds": {"visits": (0, 20)}, "n": 200}


def model(of=("deaths", "cost", "visits")):
    with pm.Model(coords={"area": ["north", "south"]}) as result:
        people = pm.Data("people", [10.0, 20.0], dims="area")
        rate, effect = pm.Gamma("rate", 2, 1), pm.Normal("effect", dims="area")
        level = pm.Deterministic("level", rate * pm.math.exp(effect), dims="area")
        pm.Potential("belief", -(effect**2).sum())
        if "deaths" in of:
            pm.Poisson("deaths", level * people, observed=[12, 21], dims="area")
        if "cost" in of:
            with warnings.catch_warnings():  # PyMC warns that it imputes, which is undone
                warnings.simplefilter("ignore")
                pm.Normal("cost", rate, 1, observed=[1.0, np.nan, 2.5])
        if "visits" in of:
            pm.Poisson("visits", rate, observed=[0])
    return result


@pytest.fixture(scope="module")
def together():
    return pmdp.published(model(), LAWS, **SUMS)


def test_each_part_has_the_density_that_it_has_alone(together):
    """And what both have in common counts once: priors, and a potential."""
    rows, sums = pmdp.published(model(("deaths", "cost")), LAWS), pmdp.published(model(("visits",)), **SUMS)
    assert {str(variable.name) for variable in together.observed_RVs} == {"visits", "deaths", "cost", "cost_absent"}
    whole, first = (of.compile_logp(mode="FAST_COMPILE") for of in (together, rows))
    second = sums.compile_logp(vars=sums.observed_RVs, mode="FAST_COMPILE")
    for point in points(together, 4):
        alone = {str(sums.rvs_to_values[variable].name): point[str(sums.rvs_to_values[variable].name)] for variable in sums.free_RVs}
        assert whole(point) == pytest.approx(first(point) + second(alone), abs=1e-8)


def test_variables_are_in_the_users_order_with_their_dims(together):
    assert [variable.name for variable in together.free_RVs] == ["rate", "effect", "cost_absent_true"]
    assert [variable.name for variable in together.deterministics] == ["level"]
    assert together.named_vars_to_dims["deaths"] == together.named_vars_to_dims["level"] == ("area",)
    assert together.rvs_to_transforms[together["rate"]] is not None
    assert str(together.publication).splitlines() == [
        "visits, sum visits: Laplace noise of scale 30",
        "deaths, rows: rounded at random to a multiple of 3",
        "cost, rows: Laplace noise of scale 1, then not shown below 0",
    ]
    assert together.publication.group()["statistic"].values.tolist() == ["sum visits", "rows", "rows"]


def test_data_and_unknowns_of_rows_may_be_changed(together):
    """New deaths are multiples of 3, with twice as many people twice as many; 1,000 draws are off by a tenth in one of 10^9 runs."""
    fixed = pm.do(together, {"rate": 2.0, "effect": np.zeros(2)})
    before = pm.draw(fixed["deaths"], 1000, random_seed=1)
    with fixed:
        pm.set_data({"people": [100.0, 200.0]})
    after = pm.draw(fixed["deaths"], 1000, random_seed=1)
    assert (before % 3 == 0).all()
    np.testing.assert_allclose(before.mean(axis=0), [20, 40], rtol=0.1)
    np.testing.assert_allclose(after.mean(axis=0), [200, 400], rtol=0.1)


def resting():
    with pm.Model() as result:
        rate = pm.Gamma("rate", 2, 1)
        visits = pm.Poisson("visits", rate, observed=[0, 1])
        pm.Normal("cost", visits, 1, observed=[1.0, 2.0])
    return result


REFUSED = {
    "in both": (model(), LAWS | {"visits": pmdp.Exact()}, {}, "visits is in laws and in statistics"),
    "in none": (model(), {"cost": LAWS["cost"]}, {}, "Nothing is said of deaths"),
    "one rests on the other": (resting(), {"cost": pmdp.Exact()}, {}, "cost depends on visits, and only one"),
    "another name": (model(), LAWS | {"births": pmdp.Exact()}, {}, "'births' is no observed variable"),
    "another sum": (model(), LAWS, {"statistics": {**SUMS["statistics"], "births": {}}}, "'births' is no observed variable"),
    "no mapping": (model(), pmdp.RoundedToBase(3), {}, "laws says by name"),
    "values of nothing": (model(("visits",)), None, {"values": {"visits": [1.0]}}, "Leave values and same_people out"),
    "same people": (model(), LAWS, {"same_people": True}, "Leave values and same_people out"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    truth, laws, arguments, words = REFUSED[case]
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.published(truth, laws, **SUMS | arguments)


QUERIES = [
    pmdp.TableQuery([2, 5], pmdp.DiscreteGaussian(1.5), dims=("area",)),
    pmdp.TableQuery(6.3, pmdp.LaplaceNoise(1.0)),
    pmdp.TableQuery([np.nan, 2], pmdp.Exact(), dims=("area",), sign=">="),
]
TABLE = pmdp.PublishedTable({"area": ["north", "south"]}, QUERIES)
ILL = {"statistics": {"ill": {"ones": (13, pmdp.DiscreteLaplace(2.0))}}, "n": 40}


def with_table():
    """People by area, of whom sums were published, and the ones among 40 records, with the rate in common."""
    with pm.Model(coords={"area": ["north", "south"]}) as result:
        rate = pm.Gamma("rate", 2, 1)
        pm.Poisson("people", rate * np.array([1.0, 2.0]), observed=[0, 0], dims="area")
        pm.Bernoulli("ill", 1 - pm.math.exp(-rate / 4), observed=[0])
    return result


def enumerated(rates):
    """(rates, tables): log-density of table and rate given all that was published, up to a constant; and the tables."""
    tables = np.array([(a, b) for a in range(25) for b in range(2, 25)])
    sums = -0.5 * (((tables - [2, 5]) / 1.5) ** 2).sum(axis=1) - np.abs(tables.sum(axis=1) - 6.3)
    people = stats.poisson(rates[:, None, None] * [1.0, 2.0]).logpmf(tables).sum(axis=2)
    ones = np.arange(41)
    chance = np.exp(-np.abs(13 - ones) / 2.0) * stats.binom(40, 1 - np.exp(-rates[:, None] / 4)).pmf(ones)
    return tables, stats.gamma(2).logpdf(rates)[:, None] + people + sums + np.log(chance.sum(axis=1))[:, None]


def test_a_table_beside_sums_of_records_has_the_density_of_both():
    public = pmdp.published(with_table(), {"people": TABLE}, **ILL)
    logp, rates = public.compile_logp(mode="FAST_COMPILE", jacobian=False), np.array([0.4, 1.7, 3.0])
    tables, logs = enumerated(rates)
    some = [(j, k) for j in range(3) for k in (0, 30, 51, 200)]
    found = [logp({"rate_log__": np.log(rates[j]), "people_true": tables[k]}) for j, k in some]
    np.testing.assert_allclose(np.diff(found), np.diff([logs[place] for place in some]), rtol=0, atol=1e-6)
    assert str(public.publication).splitlines()[1].startswith("people, table: sums over one table")
    assert [step.name for step in pmdp.table_steps(public)] == ["published_table"]


@pytest.mark.slow
def test_draws_of_a_table_beside_sums_are_those_of_the_posterior():
    """Against all tables and a grid of rates: 4 chains of 1,500 draws, five standard errors, so a false alarm in 10^6 runs."""
    rates = np.linspace(0.01, 8, 500)
    tables, logs = enumerated(rates)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    expected = {"rate": weights.sum(axis=1) @ rates, "a": weights.sum(axis=0) @ tables[:, 0], "b": weights.sum(axis=0) @ tables[:, 1]}
    public = pmdp.published(with_table(), {"people": TABLE}, **ILL)
    posterior = pmdp.sample(1500, tune=500, chains=4, cores=1, model=public, random_seed=3, progressbar=False).posterior
    drawn = posterior["people_true"].values
    for name, values in {"rate": posterior["rate"].values, "a": drawn[..., 0] * 1.0, "b": drawn[..., 1] * 1.0}.items():
        assert abs(values.mean() - expected[name]) < 5 * float(az.mcse(values)), name
