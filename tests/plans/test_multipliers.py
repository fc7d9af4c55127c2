"""Second moments that are multiplied by small whole numbers before the noise: chosen by what is public, divided again, told, and kept."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import proofs
import pymc as pm
import pytest
from checks import EXACT, flat, seam_of

import pymc_dp as pmdp
from pymc_dp.families.grid import POINTS
from pymc_dp.families.second_moments import Regression
from pymc_dp.models.reader import read_model
from pymc_dp.plans.moments import MULTIPLIERS
from pymc_dp.plans.plan import planned_release
from pymc_dp.plans.protection import protection_of
from pymc_dp.private_models.annotation import privacy_group
from pymc_dp.private_models.plug_in_moments import project
from pymc_dp.private_models.sizes import _noise_of_sizes
from pymc_dp.publications.same_people import combined
from pymc_dp.releases.release import Release

BOUNDS = {"y": (-3, 3), "x": (-2, 2)}
RNG = np.random.default_rng(4)
X, Y = RNG.uniform(-2, 2, (30, 8)), RNG.normal(size=30)


def made(features=2, *, x=None, y=None, sigma=None, more=0, link=False):
    """A regression of so many covariates, and ``more`` of another array."""
    x = X[:, :features] if x is None else x
    y = Y[: len(x)] if y is None else y
    with pm.Model() as model:
        mean = pm.Normal("a") + pm.Data("x", x) @ pm.Normal("b", shape=x.shape[1])
        if more:
            mean = mean + pm.Data("z", X[: len(x), -more:]) @ pm.Normal("c", shape=more)
        if link:
            pm.Bernoulli("y", logit_p=mean, observed=y > 0)
        else:
            pm.Normal("y", mean, sigma or pm.HalfNormal("s"), observed=y)
    return model


def planned(model, neighbours="replace", **more):
    public = more.get("public", ())
    bounds = {name: pair for name, pair in BOUNDS.items() if name not in public}
    [step] = planned_release(read_model(model, public)[0], protection_of(bounds=bounds, neighbours=neighbours, **more)).statistics
    return step


def multipliers(model, neighbours="replace", **more):
    return planned(model, neighbours, **more).regression.multipliers


@pytest.mark.parametrize(("features", "chosen"), [(1, (1, 1)), (2, (2, 3)), (3, (1, 2)), (8, (1, 3))])
def test_those_are_chosen_that_make_slopes_narrowest(features, chosen):
    """By the proofs' own sensitivities: least Laplace noise, and no more Gaussian noise than without."""
    assert multipliers(made(features)) == chosen

    def noise(every, response):
        case = proofs.Linear(features, multipliers=(every, response))
        variance = Fraction(1, response**2) + Fraction(1, 5 * every**2)
        return proofs.in_place_L1_multiplied(case) ** 2 * variance, proofs.corners_squared(case) * variance

    costs = {each: noise(*each) for each in MULTIPLIERS}
    allowed = [each for each in MULTIPLIERS if costs[each][1] <= costs[1, 1][1]]
    assert chosen == min(allowed, key=lambda each: costs[each][0])
    assert costs[2, 3][0] < costs[1, 1][0]


def test_where_the_argument_does_not_reach_nothing_is_multiplied():
    assert multipliers(made(3), public=["x"]) == (1, 1)
    ends = (-1.0,), (1.0,)
    for wrong in ((0, 1), (3, 2), (2, 1), (-1, -1)):
        with pytest.raises(ValueError, match="argument"):
            Regression(("1",), (False,), *ends, *ends, False, multipliers=wrong)
    with pytest.raises(ValueError, match="argument"):
        Regression(("1",), (False,), *ends, (-1.0,) * 2, (1.0,) * 2, False, multipliers=(1, 2))
    with pytest.raises(ValueError, match="argument"):
        Regression(("1",), (False,), *ends, *ends, True, link="logit", predictor=(-3.0, 3.0), multipliers=(1, 2))


@pytest.mark.parametrize(("features", "times"), [(1, 3), (3, 2)])
def test_the_information_of_a_logit_link_is_multiplied(features, times):
    """Three times with one slope and twice with more: noise on it hides how much a feature varies long before noise on scores matters."""
    linked = {"x": (-2, 2), "logit(y)": (-3, 3)}
    [step] = planned_release(read_model(made(features, link=True))[0], protection_of(bounds=linked)).statistics
    assert step.regression.multipliers == (times, 1)
    for (_, j), weight in zip(step.regression.entries, step.regression.weights, strict=True):
        assert weight == (times if j <= features else 1)


@pytest.mark.parametrize(("features", "upper", "times"), [(1, 1, 3), (3, 1, 2), (1, 2, 2), (1, 3, 1), (1, 9, 1)])
def test_the_information_of_a_log_link_is_multiplied_up_to_what_scores_may_be(features, upper, times):
    """Of counts up to 20 the largest weight is exp(upper) / 20, and at most 1."""
    with pm.Model() as model:
        rate = pm.math.exp(pm.Normal("a") + pm.Data("x", X[:, :features]) @ pm.Normal("b", shape=features))
        pm.Poisson("y", rate, observed=np.arange(30))
    linked = {"x": (-2, 2), "y": (0, 20), "log(y)": (-3, upper)}
    [step] = planned_release(read_model(model)[0], protection_of(bounds=linked)).statistics
    assert step.regression.multipliers == (times, 1)
    assert times == 1 or times * step.regression.scores.largest_weight <= 1
    for (_, j), weight in zip(step.regression.entries, step.regression.weights, strict=True):
        assert weight == (times if j <= features else 1)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_no_record_decides_and_no_value_of_a_public_covariate(neighbours):
    public = ["z"] if neighbours == "replace" else []
    other = made(2, x=np.where(X[:, :2] > 0, 2.0, -2.0)[:5], y=np.full(5, 3.0), more=1)
    bounds = BOUNDS if public else BOUNDS | {"z": (-2, 2)}
    how = {"public": public, "bounds": bounds, "neighbours": neighbours, "epsilon": 1}
    with seam_of(0):
        first, second = (pmdp.release(model, **how)["y"] for model in (made(2, more=1), other))
    assert first.regression.multipliers == second.regression.multipliers == (1, 2)


@pytest.mark.parametrize(("neighbours", "features"), [("replace", 2), ("replace", 3), ("add_remove", 2)])
def test_what_is_released_is_the_sum_of_the_records_once_it_is_divided(neighbours, features):
    with seam_of(0) as seam:
        released = pmdp.release(made(features), epsilon=1, bounds=BOUNDS, neighbours=neighbours)["y"]
    u = np.column_stack([np.ones(30), np.rint(X[:, :features] / 2 * POINTS) / POINTS, np.rint(np.clip(Y / 3, -1, 1) * POINTS) / POINTS])
    expected = [(u[:, i] * u[:, j]).sum() for i, j in released.regression.entries]
    assert np.allclose(released.values.ravel(), expected, rtol=0, atol=1e-9)
    every, response = released.regression.multipliers
    assert (np.array(seam.exact[0]) % [response if i <= features < j else every for i, j in released.regression.entries] == 0).all()
    assert [seam.scales[0]] == [pytest.approx(released.difference, rel=1e-6)]


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_noise_is_as_wide_as_is_said(mechanism):
    """Of 400 cells: the spread of every entry within six standard errors (one run in 10^7), which are a fifth to a third of it."""
    records = 800
    x, y = np.random.default_rng(1).uniform(-2, 2, (records, 2)), np.zeros(records)
    delta = 1e-6 if mechanism == "gaussian" else 0
    with pm.Model() as model:
        slopes = pm.Normal("b", shape=(400, 2))
        g = pm.Data("g", np.arange(records) % 400)
        pm.Normal("y", (pm.Data("x", x) * slopes[g]).sum(axis=-1), pm.HalfNormal("s"), observed=y)
    how = {"epsilon": 1, "bounds": BOUNDS, "public": ["g"], "mechanism": mechanism, "delta": delta}
    with seam_of(0):
        exact = pmdp.release(model, **how)["y"]
    released = pmdp.release(model, **how)["y"]
    assert released.regression.multipliers == (2, 3)
    noise = released.values - exact.values
    said = released.deviations
    assert len(set(said.round(9))) == 2
    assert np.allclose(said[0] * 2, released.noise.standard_deviation)
    kurtosis = 6 if mechanism == "laplace" else 3
    assert (np.abs(noise.std(axis=0) / said - 1) < 6 * np.sqrt((kurtosis - 1) / 4 / 400)).all()


def test_a_release_is_kept_as_it_is_and_older_ones_are_read(tmp_path):
    released = pmdp.release(made(3), epsilon=1, bounds=BOUNDS)
    again = Release.from_datatree(released.to_datatree())
    assert again == released
    assert again["y"].regression.multipliers == (1, 2)
    assert (again["y"].values == released["y"].values).all()

    def changed(edit):
        tree = released.to_datatree()
        facts = json.loads(tree["0"].attrs["statistic"])
        edit(facts["regression"])
        tree["0"].attrs["statistic"] = json.dumps(facts)
        return tree

    older = Release.from_datatree(changed(lambda regression: regression.pop("multipliers")))["y"]
    assert older.regression.multipliers == (1, 1)
    assert (older.values == older.noisy * older.lattice).all()
    with pytest.raises(pmdp.Refusal, match="can read"):
        Release.from_datatree(changed(lambda regression: regression.update(multipliers=[3, 1])))


def test_records_beside_the_model_and_in_parts_make_the_same_sums():
    frame = pd.DataFrame({"u": X[:, 0], "v": X[:, 1], "w": X[:, 2], "y": Y})

    def model(records):
        with pm.Model() as built:
            mean = pm.Normal("a")
            for name in "uvw":
                mean = mean + pm.Normal(f"b_{name}") * pm.Data(name, records[name].to_numpy())
            pm.Normal("y", mean, pm.HalfNormal("s"), observed=records["y"].to_numpy())
        return built

    how = {"epsilon": 1, "bounds": dict.fromkeys("uvw", (-2, 2)) | {"y": (-3, 3)}}
    placeholders = model(frame[:2] * 0)
    with seam_of(0) as seam:
        pmdp.release(model(frame), **how)
        pmdp.release(placeholders, data=frame, **how)
        shared = pmdp.share_out(placeholders, parts=2, records=30, **how)
        parts = [pmdp.partial_statistics(shared.plan, chunk, k) for k, chunk in enumerate((frame[:11], frame[11:]))]
        released = pmdp.add_up(shared, parts)["y"]
    assert seam.exact[0] == seam.exact[1] == seam.exact[2]
    assert len(set(seam.scales)) == 1
    assert released.regression.multipliers == (1, 2)


def test_it_is_told_before_and_after():
    told = flat(pmdp.inspect(made(2), bounds=BOUNDS))
    words = (
        "products with the response are multiplied by 3, all others by 2 before the noise, and divided after it, and so their noise is 2/3"
    )
    assert words in told
    assert "multiplied by 2 before" in flat(pmdp.inspect(made(3, more=1), bounds=BOUNDS, public=["z"]))
    assert "multiplied" not in flat(pmdp.inspect(made(1), bounds=BOUNDS))
    released = pmdp.release(made(2), epsilon=1, bounds=BOUNDS)
    small, large = sorted({f"{sd:.4g}" for sd in released["y"].deviations}, key=float)
    assert f"noise sd {small} of products with the response, {large} of all others" in flat(released)
    shown = privacy_group(released)["scale"].values
    assert np.allclose(shown * np.sqrt(2), released["y"].deviations)
    assert 3 * float(small) == pytest.approx(2 * float(large), rel=1e-3)
    row = pmdp.inspect(made(2), bounds=BOUNDS).rows[0]
    assert row.sensitivity == released["y"].difference * released["y"].lattice


def test_numbers_of_records_have_the_noise_of_their_own_sum():
    released = pmdp.release(made(2), epsilon=1, bounds=BOUNDS, neighbours="add_remove")["y"]
    place = released.statistics.index("n")
    assert released.regression.multipliers == (1, 2)
    for every in (1, 2):
        multiplied = replace(released, regression=replace(released.regression, multipliers=(every, 3)))
        assert _noise_of_sizes(multiplied) == pytest.approx(multiplied.deviations[place])
        assert _noise_of_sizes(multiplied) == pytest.approx(released.noise.standard_deviation / every)


def test_without_a_model_of_the_noise_the_least_variance_is_that_of_the_squares():
    with seam_of(0):
        released = pmdp.release(made(2), epsilon=1, bounds=BOUNDS)
    private = pmdp.rewrite(made(2), released, noise_aware=False)
    statistic = released["y"]
    known = statistic.known * statistic.lattice
    spread = statistic.noise.spread / 2
    expected = project(statistic.regression, statistic.values, known, spread)
    observed = private.rvs_to_values[private["y"]].eval()
    assert np.allclose(observed, expected)
    matrices = statistic.regression.matrix(observed, known)[0]
    assert np.linalg.eigvalsh(matrices - np.diag([0, 1, 1, 1]) * spread)[0] == pytest.approx(0, abs=1e-6)


def test_without_noise_to_speak_of_the_records_sums_are_what_a_model_is_told():
    """Whatever they were multiplied by: the density of the private model is highest, over slopes, where least squares are."""
    released = pmdp.release(made(3), epsilon=EXACT, bounds=BOUNDS)
    matrix = released["y"].regression.matrix(released["y"].values, released["y"].known * released["y"].lattice)[0]
    u = np.column_stack([np.ones(30), X[:, :3] / 2, Y / 3])
    assert np.allclose(matrix, u.T @ u, atol=30 / POINTS)


def test_releases_of_the_same_people_are_combined_by_their_own_numbers():
    how = {"epsilon": 1, "bounds": BOUNDS, "mechanism": "gaussian", "delta": 1e-6}
    first, second = (pmdp.release(made(3), **how)["y"] for _ in range(2))
    assert first.regression.multipliers == (1, 2)
    both = combined(["a", "b"], [first, second])
    assert np.allclose(both.values, (first.values + second.values) / 2, rtol=1e-9, atol=1e-6)
    assert np.allclose(both.deviations, first.deviations / np.sqrt(2), rtol=1e-9)
