"""The DataTree that ``sample`` returns: its groups, what it says it cost, and that it survives being saved and sliced."""

import json
from fractions import Fraction

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from checks import flat
from models import indexed_by_data, normal_unknown_sigma, several_observed

import pymc_dp as pmdp

SAMPLER = {"draws": 100, "tune": 100, "chains": 2, "cores": 1, "progressbar": False, "random_seed": 3, "nuts_sampler": "pymc"}
SAMPLER |= {"compute_convergence_checks": False, "compile_kwargs": {"mode": "FAST_COMPILE"}}


@pytest.fixture(scope="module")
def tree():
    model, arguments = indexed_by_data(600)
    return pmdp.sample(model=model, epsilon=0.3, unit="answer", **arguments, **SAMPLER)


def spent(group):
    return group.attrs["epsilon"], group.attrs["delta"], group.attrs["epsilon_exact"]


def test_groups_and_attributes(tree):
    assert {"posterior", "sample_stats", "observed_data", "privacy"} <= set(tree.children)
    for group in (tree, *tree.children.values()):
        assert spent(group) == (0.3, 0.0, "3/10")
        assert group.attrs["privacy_unit"] == "answer"
        assert group.attrs["promise"] == "certified"
    privacy = tree["privacy"]
    assert privacy["variable"].values.tolist() == ["y"]
    assert privacy["epsilon"].item() == 0.3
    assert privacy["scale"].item() == pytest.approx(1 / 0.3)
    assert {"mechanism", "statistic", "sensitivity", "delta"} <= set(privacy.data_vars)
    assert json.loads(privacy.attrs["public"]) == ["g"]
    assert set(tree["posterior"].data_vars) == {"theta", "spread"}
    assert tree["observed_data"]["y"].dims == ("y_cell", "y_statistic")


@pytest.mark.parametrize("arguments", [{}, {"mechanism": "gaussian", "delta": 1e-6}], ids=["laplace", "gaussian"])
def test_attributes_tell_what_all_variables_cost_together(arguments):
    model, others = several_observed()
    released = pmdp.release(model, epsilon=0.3, weights={"y": 1, "k": 2, "x": 4}, **arguments, **others)
    drawn = xr.DataTree.from_dict({"posterior": xr.Dataset({"rate": ("draw", np.ones(3))})})
    annotated = pmdp.annotate(drawn, released)
    delta = arguments.get("delta", 0)
    assert spent(annotated) == spent(annotated["posterior"]) == spent(annotated["privacy"]) == (0.3, delta, "3/10")
    privacy = annotated["privacy"].to_dataset()
    assert set(privacy["delta"].values) == {delta}
    own = {name: float(released[name].cost.epsilon) for name in "ykx"}
    assert dict(zip(privacy["variable"].values, privacy["epsilon"].values)) == own
    if not delta:
        assert own == {"y": pytest.approx(0.3 / 7), "k": pytest.approx(0.6 / 7), "x": pytest.approx(1.2 / 7)}
    np.testing.assert_allclose(privacy["scale"], [one.scale * one.lattice for one in released.statistics for _ in one.statistics])


def test_survives_netcdf(tree, tmp_path):
    tree.to_netcdf(tmp_path / "tree.nc", engine="h5netcdf")
    back = xr.open_datatree(tmp_path / "tree.nc", engine="h5netcdf")
    xr.testing.assert_identical(back["privacy"].to_dataset(), tree["privacy"].to_dataset())
    assert spent(back["posterior"]) == spent(tree["posterior"])
    back.close()


@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning", "ignore::zarr.errors.UnstableSpecificationWarning")
def test_survives_zarr(tree, tmp_path):
    """Zarr warns that consolidated metadata and fixed-length text are not in its third specification; both are read back."""
    tree.to_zarr(tmp_path / "tree.zarr")
    back = xr.open_datatree(tmp_path / "tree.zarr", engine="zarr")
    assert back["privacy"]["variable"].values.tolist() == ["y"]
    assert spent(back["posterior"]) == spent(tree["posterior"])


def test_survives_slicing(tree):
    assert spent(tree["posterior"].isel(draw=slice(0, 10))) == spent(tree)
    assert spent(tree.sel(chain=0)["posterior"]) == spent(tree)
    assert spent(tree["posterior"].to_dataset()[["theta"]]) == spent(tree)


def test_summaries_plots_and_predictive_draws(tree):
    assert len(az.summary(tree)) == 4
    az.plot_trace_dist(tree, backend="none")
    model, arguments = indexed_by_data(600)
    private = pmdp.privatize(model, epsilon=0.3, **arguments)
    predictive = pm.sample_posterior_predictive(tree, model=private, progressbar=False, random_seed=1)
    assert predictive["posterior_predictive"]["y"].shape == (2, 100, 3, 1)


def test_latent_noise_is_in_a_group_of_its_own(monkeypatch):
    """Counts beyond any window have latent noise; the posterior holds the user's variables only."""
    n = 40_000
    with pm.Model() as model:
        pm.Categorical("c", pm.Dirichlet("p", np.ones(3)), observed=np.arange(n) % 3)
    tree = pmdp.sample(model=model, epsilon=0.02, **SAMPLER | {"draws": 5, "tune": 5})
    assert set(tree["posterior"].data_vars) == {"p"}
    assert set(tree["latent_statistics"].data_vars) == {"c_noise"}
    assert "c_statistic" not in tree["posterior"].coords
    assert spent(tree["latent_statistics"]) == (0.02, 0.0, "1/50")


def test_what_latent_moments_are_centred_on_stands_with_them():
    """The posterior and the constant data of a linear regression hold what the user put there, and predictions can be made."""
    x = np.linspace(-1, 1, 200)
    with pm.Model() as model:
        slope = pm.Normal("slope", 0, pm.Data("scale", 2.0))
        pm.Normal("y", slope * pm.Data("x", x), pm.HalfNormal("sigma"), observed=x)
    arguments = {"epsilon": 1.0, "bounds": {"x": (-2, 2), "y": (-4, 4)}, "public": ["scale"]}
    tree = pmdp.sample(model=model, **arguments, **SAMPLER)
    assert set(tree["posterior"].data_vars) == {"slope", "sigma"}
    assert set(tree["constant_data"].variables) == {"scale"}
    assert set(tree["latent_statistics"].data_vars) == {"y_noise", "y_noise_given"}
    private = pmdp.privatize(model, **arguments)
    predictive = pm.sample_posterior_predictive(tree, model=private, progressbar=False, random_seed=1)
    assert set(predictive["posterior_predictive"].data_vars) == {"y"}


def test_a_release_is_saved_and_loaded(tmp_path):
    model, arguments = several_observed()
    released = pmdp.release(model, epsilon=Fraction(1, 3), unit="person", **arguments)
    released.to_netcdf(tmp_path / "release.nc")
    back = pmdp.Release.from_netcdf(tmp_path / "release.nc")
    assert repr(back) == repr(released)
    assert back.epsilon == Fraction(1, 3)
    for one, other in zip(back.statistics, released.statistics):
        np.testing.assert_array_equal(one.noisy, other.noisy)
        assert (one.domain, one.scale, one.sensitivity, one.cost) == (other.domain, other.scale, other.sensitivity, other.cost)
    ours, theirs = pmdp.rewrite(model, back), pmdp.rewrite(model, released)
    point = ours.initial_point()
    assert ours.compile_logp(mode="FAST_COMPILE")(point) == theirs.compile_logp(mode="FAST_COMPILE")(point)
    tree = xr.DataTree()
    with pytest.raises(pmdp.Refusal, match="not a release"):
        pmdp.Release.from_datatree(tree)


def test_a_release_is_frozen():
    model, arguments = indexed_by_data()
    released = pmdp.release(model, epsilon=1.0, **arguments)
    with pytest.raises(AttributeError):
        released.epsilon = 5
    with pytest.raises(ValueError, match="read-only"):
        released["y"].noisy[0, 0] = 5


def test_weights_share_epsilon_exactly():
    model, arguments = several_observed()
    released = pmdp.release(model, epsilon=1, weights={"y": 1, "k": 2, "x": 4}, **arguments)
    assert [released[name].cost.epsilon for name in "ykx"] == [Fraction(1, 7), Fraction(2, 7), Fraction(4, 7)]


def test_the_same_seed_gives_the_same_draws_from_one_release_and_another_release():
    model, arguments = indexed_by_data(600)
    private = pmdp.privatize(model, epsilon=1e-3, **arguments)
    quick = {"draws": 30, "tune": 30, "chains": 1, "progressbar": False, "random_seed": 5, "compute_convergence_checks": False}
    quick |= {"nuts_sampler": "pymc", "compile_kwargs": {"mode": "FAST_COMPILE"}}
    first, second = (pm.sample(model=private, **quick)["posterior"]["theta"].values for _ in range(2))
    np.testing.assert_array_equal(first, second)
    noisy = [pmdp.sample(model=model, epsilon=1e-3, **arguments, **quick)["observed_data"]["y"].values for _ in range(2)]
    assert (noisy[0] != noisy[1]).any()


def test_what_is_paid_for_is_not_lost_when_sampling_fails():
    model, arguments = indexed_by_data()

    def fail(*_, **__):
        raise LookupError("no such draw")

    with pytest.raises(LookupError, match="no such draw") as caught:
        pmdp.sample(model=model, epsilon=1.0, callback=fail, **arguments, **SAMPLER | {"nuts_sampler": "pymc", "cores": 1})
    assert isinstance(caught.value.release, pmdp.Release)
    assert pmdp.rewrite(model, caught.value.release).privacy.epsilon == 1


def test_annotate_refuses_a_tree_of_records():
    model, arguments = normal_unknown_sigma()
    released = pmdp.release(model, epsilon=1.0, **arguments)
    raw = xr.DataTree.from_dict({"observed_data": xr.Dataset({"x": ("n", np.arange(60.0))})})
    with pytest.raises(pmdp.Refusal, match="not drawn from the private model"):
        pmdp.annotate(raw, released)


def test_inspection_shows_tight_joint_sensitivities():
    model, arguments = normal_unknown_sigma()
    [row] = pmdp.inspect(model, **arguments).rows
    assert row.sensitivity == 2.25
    assert "9/4" in row.reason
    model, arguments = indexed_by_data()
    [row] = pmdp.inspect(model, **arguments).rows
    assert row.sensitivity == 1
    model, arguments = several_observed()
    assert "divided among y, k, x so that expected posteriors are narrowest" in flat(pmdp.inspect(model))
    assert "1/3 each to y, k, x" in flat(pmdp.inspect(model, neighbours="add_remove"))
