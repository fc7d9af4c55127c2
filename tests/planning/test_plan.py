"""Plans: they rest on no record, simulate the user's own model, imitate the noise, and are as wide as conjugate posteriors say."""

from fractions import Fraction
from math import exp

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from checks import flat
from scipy.stats import chisquare

import pymc_dp as pmdp
from pymc_dp.planning.covariates import assumptions, drawn_from, simulated_covariates
from pymc_dp.planning.fits import ordinary_model
from pymc_dp.planning.plan import _requested
from pymc_dp.planning.records import planned_records, simulated_records, simulated_unknowns
from pymc_dp.plans.plan import planned_release
from pymc_dp.plans.protection import protection_of
from pymc_dp.plans.widths import PlannedWidths
from pymc_dp.privacy.accounting import Cost
from pymc_dp.privacy.mechanisms import Gaussian, Laplace
from pymc_dp.privacy.noise_law import Noise
from pymc_dp.releases.simulated import Imitation, imagined_release, public_side


def shared(y, x, g):
    pm.Bernoulli("y", pm.Beta("p", 2, 2), observed=(y > 0).astype(int))


def indexed(y, x, g):
    theta = pm.Beta("theta", 2, 2, shape=3)
    pm.Bernoulli("y", theta[pm.Data("g", g)], observed=(y > 0).astype(int))


def normal(y, x, g):
    pm.Normal("y", pm.Normal("mu", 1, 2), pm.HalfNormal("sd", 2), observed=y)


def missing(y, x, g):
    pm.Normal("y", pm.Normal("mu", 1, 2), 1.0, observed=np.where(y > 0.5, np.nan, y))


def linear(y, x, g):
    b = pm.Normal("b", 0, 1, shape=2)
    pm.Normal("y", b[0] + b[1] * pm.Data("x", x), pm.HalfNormal("sd", 1), observed=y)


def logistic(y, x, g):
    pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Normal("b") * pm.Data("x", x), observed=(y > 0).astype(int))


def network(y, x, g):
    above = pm.Bernoulli("above", pm.Beta("p", 1, 1), observed=(x > 0).astype(int))
    pm.Bernoulli("y", pm.Beta("q", 1, 1, shape=2)[above], observed=(y > 0).astype(int))


MODELS = {
    "shared": (shared, {}),
    "indexed": (indexed, {}),
    "normal": (normal, {"bounds": {"y": (-5, 5)}}),
    "missing": (missing, {"bounds": {"y": (-5, 5)}, "missing": ["y"]}),
    "linear": (linear, {"bounds": {"y": (-5, 5), "x": (-2, 2)}}),
    "logistic": (logistic, {"bounds": {"logit(y)": (-4, 4), "x": (-2, 2)}}),
    "network": (network, {}),
}


def written(write, records=60, seed=0):
    """A model of private values that are others with another seed."""
    rng = np.random.default_rng(seed)
    with pm.Model() as model:
        write(rng.normal(size=records), rng.normal(size=records), rng.integers(3, size=records))
    return model


def imagined(model, *, records=None, mechanism="laplace", assuming=None, seed=1, **declared):
    """What a plan would fit: simulated records and their release, by the steps of ``plan``, without the fits."""
    protection = protection_of(**declared, persons=True)
    side, rng = public_side(model, protection), np.random.default_rng(seed)
    whole, many = planned_release(side.spec, protection), planned_records(side, records)
    truth = simulated_unknowns(side.spec, assuming or {}, 1, rng)
    data = simulated_records(side, truth, {}, many, rng)
    [(noise, cost)] = _requested(1.0, None, mechanism, 0).costs
    return side, data, imagined_release(whole, data.observed, data.inputs, noise, cost, None, rng)


def same(first, second):
    """Whether two simulated data sets agree bit for bit."""
    assert first.observed.keys() == second.observed.keys()
    arrays = [(first.observed[name], second.observed[name]) for name in first.observed]
    arrays += [pair for name in first.inputs for pair in zip(first.inputs[name], second.inputs[name], strict=True)]
    return all(np.array_equal(a, b, equal_nan=True) and a.dtype == b.dtype for a, b in arrays)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
def test_a_plan_rests_on_no_record(name):
    write, declared = MODELS[name]
    _, first, released = imagined(written(write, seed=0), **declared)
    _, second, again = imagined(written(write, seed=1), **declared)
    assert same(first, second)
    assert released == again
    _, other, _ = imagined(written(write, seed=0), seed=2, **declared)
    assert not same(first, other)


@pytest.mark.parametrize("name", ["shared", "indexed", "normal"])
def test_a_private_number_of_records_decides_nothing(name):
    write, declared = MODELS[name]
    several = [written(write, records=records, seed=records) for records in (60, 61, 1)]
    with pytest.raises(pmdp.Refusal, match="records="):
        imagined(several[0], neighbours="add_remove", **declared)
    plans = [imagined(model, records=40, neighbours="add_remove", **declared) for model in several]
    assert all(same(plans[0][1], other[1]) and plans[0][2] == other[2] for other in plans)
    assert not plans[0][0].records


def of_persons(write, records, seed):
    model = written(write, records=records, seed=seed)
    with model:
        pm.Data("who", np.random.default_rng(seed).integers(9, size=records))
    return model


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("name", ["indexed", "normal", "linear"])
def test_a_plan_of_persons_is_of_rows_that_count_with_the_noise_of_their_release(name, neighbours):
    """Whose the rows are decides nothing, nor how many there are; all 4000 that are planned for count, and a release has this noise."""
    write, declared = MODELS[name]
    declared = declared | {"neighbours": neighbours, "unit": pmdp.Person("who", at_most=4)}
    several = [of_persons(write, records, records) for records in (60, 61, 5)]
    with pytest.raises(pmdp.Refusal, match=r"number of rows that count is private.*records="):
        imagined(several[0], **declared)
    plans = [imagined(model, records=4000, **declared) for model in several]
    assert all(same(plans[0][1], other[1]) and plans[0][2] == other[2] for other in plans)
    side, _, of_plan = plans[0]
    assert not side.records
    released = pmdp.release(several[0], epsilon=1.0, missing={}, **declared)
    assert of_plan["y"].scale == released["y"].scale
    assert of_plan["y"].sizes == released["y"].sizes == "free"
    if neighbours == "add_remove":
        single = imagined(several[0], records=4000, **declared | {"unit": "row"})[2]
        assert of_plan["y"].scale == 4 * single["y"].scale
    if name == "indexed":  # noise of six counts, at a scale of 8 or less: its standard deviation is 28
        assert abs(int(of_plan["y"].noisy.sum()) - 4000) < 250


def test_a_plan_of_persons_needs_to_know_whose_the_rows_are():
    with pytest.raises(pmdp.Refusal, match="Did you mean 'who'"):
        pmdp.plan(of_persons(shared, 60, 1), unit=pmdp.Person("whom", at_most=4), records=100)
    assert pmdp.suggest_bounds(of_persons(normal, 60, 1), unit=pmdp.Person("who", at_most=4))["y"][0] < 0


def test_public_arrays_are_used_as_they_are():
    g = np.repeat([0, 1, 2], 20)
    with pm.Model() as model:
        theta = pm.Beta("theta", 2, 2, shape=3)
        pm.Bernoulli("y", theta[pm.Data("g", g)], observed=np.zeros(60, int))
    _, data, released = imagined(model, public=["g"], assuming={"theta": [0, 1, 0.5]})
    np.testing.assert_array_equal(data.inputs["y"][0], g)
    np.testing.assert_array_equal(released["y"].n, [20, 20, 20])
    assert data.observed["y"][:20].sum() == 0
    assert data.observed["y"][20:40].sum() == 20
    with pytest.raises(pmdp.Refusal, match="g is public"):
        imagined(model, public=["g"], records=61)


@pytest.mark.parametrize("name", ["shared", "indexed", "normal", "linear", "logistic", "network"])
def test_records_are_fitted_by_the_model_of_the_user(name):
    """The model that is rebuilt without privacy has the density of the user's own, written with the simulated records."""
    write, declared = MODELS[name]
    side, data, _ = imagined(written(write), **declared)
    inputs = [array for likelihood in side.spec.likelihoods for array in data.inputs[likelihood.name]]
    y = data.observed["y"] if name in ("normal", "linear") else data.observed["y"] - 0.5
    x = data.observed["above"] - 0.5 if name == "network" else inputs[0] if inputs else None
    with pm.Model() as own:
        write(y, x, inputs[0] if inputs else None)
    ordinary, _ = ordinary_model(side, data)
    assert {variable.name for variable in ordinary.free_RVs} == {variable.name for variable in own.free_RVs}
    point = own.initial_point(3)
    for moved in (0.0, 0.3):
        at = {key: value + moved for key, value in point.items()}
        np.testing.assert_allclose(ordinary.compile_logp(mode="FAST_COMPILE")(at), own.compile_logp(mode="FAST_COMPILE")(at), rtol=1e-9)


def test_a_parameter_that_has_a_name_keeps_it():
    """A deterministic that is the parameter of rows as it stands had no name in the model of simulated rows, which nutpie refuses."""
    with pm.Model() as model:
        theta = pm.Deterministic("theta", pm.Normal("mu") + pm.HalfNormal("tau") * pm.Normal("z", shape=3))
        pm.Normal("y", theta, 2.0, observed=[1.0, 2.0, 3.0])
    side, data, _ = imagined(model, unit=pmdp.Individual(moves=0.5), bounds={"y": (-10, 10)})
    ordinary, _ = ordinary_model(side, data)
    assert [variable.name for variable in ordinary.deterministics] == ["theta"]
    assert ordinary["theta"].name == "theta"


@pytest.mark.parametrize(("noise", "scale"), [(Laplace(), 0.7), (Laplace(), 3.0), (Gaussian(), 2.0)])
def test_the_noise_has_the_law_of_the_mechanism(noise, scale):
    many = 40_000
    drawn = Imitation(noise, np.random.default_rng(1)).draw(np.full(many, 7), scale, None) - 7
    assert drawn.dtype == np.int64
    k = np.arange(-200, 201)
    p = np.exp(-np.abs(k) / scale) if noise.name == "laplace" else np.exp(-(k**2) / (2 * scale**2))
    p /= p.sum()
    expected = np.array([many * p[k == place].sum() for place in range(-6, 7)])
    counted = np.array([(drawn == place).sum() for place in range(-6, 7)])
    large = expected > 20
    rest = many - expected[large].sum(), many - counted[large].sum()
    assert chisquare([*counted[large], rest[1]], [*expected[large], rest[0]]).pvalue > 1e-4
    assert drawn.std() == pytest.approx(Noise(scale, gaussian=noise.name == "gaussian").standard_deviation, rel=0.03)
    again = Imitation(noise, np.random.default_rng(1)).draw(np.full(many, 7), scale, None) - 7
    np.testing.assert_array_equal(drawn, again)


def test_no_release_of_records_takes_the_imitation():
    imitation = Imitation(Laplace(), np.random.default_rng(1))
    with pytest.raises(pmdp.Refusal, match="mechanism must be"):
        pmdp.release(written(shared), epsilon=1.0, mechanism=imitation)


def test_laws_of_covariates():
    """A distribution, an array and a function; what is not said is uniform, and said to be."""
    model = written(linear, records=2_000)
    side = public_side(model, protection_of(bounds={"y": (-5, 5), "x": (-2, 4)}))
    rng, many = np.random.default_rng(1), {"y": 2_000}
    even = simulated_covariates(side, {}, many, rng)["x"]
    assert (even.min() >= -2) & (even.max() <= 4)
    assert even.mean() == pytest.approx(1, abs=0.15)
    assert "uniform" in assumptions(side, {})[0]
    for law in (pm.Normal.dist(1.5, 0.1), np.random.default_rng(2).normal(1.5, 0.1, 300), lambda rng, size: rng.normal(1.5, 0.1, size)):
        drawn = simulated_covariates(side, {"x": law}, many, rng)["x"]
        assert drawn.shape == (2_000,)
        assert drawn.mean() == pytest.approx(1.5, abs=0.03)
        assert drawn.std() == pytest.approx(0.1, rel=0.15)
    assert "follows the law" in assumptions(side, {"x": law})[0]
    with pytest.raises(pmdp.Refusal, match="no private covariate"):
        assumptions(side, {"z": law})
    for wrong in ("words", lambda rng, size: rng.normal(size=3), [np.nan, 1.0]):
        with pytest.raises(pmdp.Refusal, match="covariate_law"):
            drawn_from(wrong, "x", 100, (), rng)
    index = public_side(written(indexed), protection_of())
    assert set(simulated_covariates(index, {}, {"y": 200}, rng)["g"]) == {0, 1, 2}
    assert set(simulated_covariates(index, {"g": pm.Categorical.dist([0.5, 0.5, 0])}, {"y": 200}, rng)["g"]) == {0, 1}
    with pytest.raises(pmdp.Refusal, match="no entry of its table"):
        simulated_covariates(index, {"g": [3]}, {"y": 200}, rng)


def test_unknowns_are_as_assumed_or_from_the_priors_given_them():
    with pm.Model() as model:
        centre = pm.Normal("centre", 0, 1)
        pm.Normal("y", pm.Normal("mu", centre, 0.01, shape=2)[0], 1.0, observed=np.zeros(20))
    spec = public_side(model, protection_of(bounds={"y": (-9, 9)})).spec
    truth = simulated_unknowns(spec, {"centre": 5}, 30, np.random.default_rng(1))
    assert (truth["centre"] == 5).all()
    assert truth["mu"].shape == (1, 30, 2)
    assert abs(truth["mu"] - 5).max() < 0.1
    with pytest.raises(pmdp.Refusal, match="no unknown"):
        simulated_unknowns(spec, {"center": 5}, 3, np.random.default_rng(1))
    with pm.Model() as improper:
        pm.Normal("y", pm.Flat("mu"), 1.0, observed=np.zeros(20))
    spec = public_side(improper, protection_of(bounds={"y": (-9, 9)})).spec
    with pytest.raises(pmdp.Refusal, match="assuming="):
        simulated_unknowns(spec, {}, 3, np.random.default_rng(1))
    assert simulated_unknowns(spec, {"mu": 1}, 3, np.random.default_rng(1))["mu"].shape == (1, 3)


def made_up(neighbours="replace", without=0.4):
    """A plan whose widths are sqrt(without^2 + 1 / epsilon^2) in every simulation, and twice that for the second entry."""
    epsilons = np.array([0.1, 1.0, 10.0])
    widths = np.sqrt(without**2 + 1 / epsilons**2)[None, None, :, None, None] * np.array([1.0, 2.0]) * np.ones((2, 1, 1, 4, 1))
    private = xr.Dataset(
        {"b": (("measure", "mechanism", "epsilon", "simulation", "k"), widths)}, {"mechanism": ["laplace"], "epsilon": epsilons}
    )
    bare = xr.Dataset({"b": (("measure", "simulation", "k"), np.full((2, 4, 2), without) * [1.0, 2.0])})
    return PlannedWidths(private, bare, xr.Dataset(), {"y": 100}, "row", neighbours, ())


def test_an_order_that_draws_from_the_prior_do_not_keep_is_assumed_or_refused():
    with pm.Model() as model:
        cuts = pm.Normal("cuts", 0, 2, shape=2, transform=pm.distributions.transforms.ordered, initval=[-1.0, 1.0])
        pm.OrderedLogistic("y", eta=pm.Normal("b"), cutpoints=cuts, observed=np.arange(60) % 3)
    spec = public_side(model, protection_of()).spec
    with pytest.raises(pmdp.Refusal, match=r"assuming=\{'cuts'"):
        simulated_unknowns(spec, {}, 3, np.random.default_rng(1))
    with pytest.raises(pmdp.Refusal, match=r"assuming=\{'cuts'"):
        pmdp.plan(model, epsilon=1, simulations=1, progressbar=False)
    assert (simulated_unknowns(spec, {"cuts": [-1.0, 1.0]}, 3, np.random.default_rng(1))["cuts"] == [-1, 1]).all()


def test_the_epsilon_for_a_width():
    planned = made_up()
    [reached] = planned.epsilon_for({"b": 2 * (0.4**2 + 1) ** 0.5})  # the widest entry
    assert reached.epsilon == pytest.approx(1.0)
    assert (reached.low, reached.high) == (reached.epsilon, reached.epsilon)
    [between] = planned.epsilon_for({"b": 4.0})
    assert 0.1 < between.epsilon < 1
    assert planned.epsilon_for({"b": 100})[0].reason.startswith("this or less")
    [never] = planned.epsilon_for({"b": 0.5})
    assert never.epsilon == np.inf
    assert "takes more records" in never.reason
    [not_yet] = planned.epsilon_for({"b": 0.8000001})
    assert not_yet.epsilon == np.inf
    assert "still" in not_yet.reason
    for wrong in ({}, {"c": 1.0}, {"b": -1.0}, {"b": "narrow"}, "b"):
        with pytest.raises(pmdp.Refusal, match="width"):
            planned.epsilon_for(wrong)


def test_variance_is_split_into_sampling_and_privacy():
    row = made_up().rows[1]
    assert row.interval == pytest.approx(1.5 * (0.4**2 + 1) ** 0.5)
    assert (row.narrowest, row.widest) == pytest.approx(((0.4**2 + 1) ** 0.5, 2 * (0.4**2 + 1) ** 0.5))
    assert row.privacy == pytest.approx(1 / 1.16)
    assert "width of 90 % interval" in flat(made_up())
    assert "in parentheses: of the narrowest and the widest entry" in flat(made_up())
    table = made_up().to_dataframe()
    assert table.loc[("b", "laplace", 1.0), "privacy"] == row.privacy


def test_what_an_attacker_can_believe():
    """Posterior odds are at most e^epsilon times prior odds; of what a record says, twice where records come and go."""
    planned = made_up()
    for epsilon, guess in ((0.1, 0.5), (1.0, 0.5), (3.0, 0.1)):
        p = planned.risk(epsilon, guess)
        assert p / (1 - p) == pytest.approx(exp(epsilon) * guess / (1 - guess))
    assert planned.risk(1e6) == planned.risk(1.0, 1.0) == 1.0
    assert "73.1%" in flat(planned)
    assert "73.1%" in planned._repr_html_()
    header, body = list(made_up("add_remove")._tables())[-1]
    assert header == (
        "epsilon", "50% sure whether a record is there becomes", "10% sure whether a record is there becomes",
        "50% sure of what it says becomes",
        "10% sure of what it says becomes",
    )  # fmt: skip
    assert body[1][1] == f"{1 / (1 + exp(-1)):.1%}"
    assert body[1][3] == f"{1 / (1 + exp(-2)):.1%}"


def test_costs_are_those_of_releases():
    request = _requested([1, 0.1], None, ["laplace", pmdp.Gaussian(delta=1e-6)], 0)
    assert request.epsilons == (0.1, 1.0)
    assert request.mechanisms == ("laplace", "gaussian, delta 1e-06")
    assert request.costs[1] == (Laplace(), Cost(Fraction(1)))
    assert request.costs[3][1] == pmdp.Gaussian(delta=1e-6).total(Fraction(1), Fraction(0))
    for wrong in (
        {"epsilon": []},
        {"epsilon": 0},
        {"mechanism": "uniform"},
        {"mechanism": ["laplace", "laplace"]},
        {"mechanism": "gaussian"},
    ):
        with pytest.raises(pmdp.Refusal):
            _requested(**{"epsilon": 1, "width": None, "mechanism": "laplace", "delta": 0} | wrong)


@pytest.mark.parametrize(
    "wrong",
    [{"draws": 1}, {"simulations": 0}, {"records": -1}, {"width": {"q": 1.0}}, {"assuming": {"p": "much"}}, {"covariate_law": {"x": [1]}}],
)
def test_refused_before_anything_is_simulated(wrong):
    with pytest.raises(pmdp.Refusal, match=next(iter(wrong))):
        pmdp.plan(written(shared), progressbar=False, **wrong)


def test_widths_are_those_of_conjugate_posteriors():
    """Of a share of 400: sd sqrt(p q / n) without privacy, and with that of Laplace noise over n beside it."""
    n, p, epsilon, said = 400, 0.3, 0.3, {"p": 0.3}
    planned = pmdp.plan(
        written(shared, records=n), epsilon=epsilon, assuming=said, simulations=3, random_seed=1, draws=400, tune=300, progressbar=False
    )
    [row] = planned.rows
    sampling, noise = p * (1 - p) / n, 2 / (epsilon * n) ** 2
    assert row.sd_without == pytest.approx(sampling**0.5, rel=0.1)
    assert row.sd == pytest.approx((sampling + noise) ** 0.5, rel=0.1)
    assert row.privacy == pytest.approx(noise / (sampling + noise), abs=0.1)
    assert planned.truths["p"].values.tolist() == [[0.3] * 3]
    figure = pmdp.plot_plan(planned)[0, 0].figure
    figure.canvas.draw()
