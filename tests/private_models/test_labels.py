"""What the promise of a tree covers: nothing that other programs put into it, and what is shared is that and nothing else."""

import json
import pickle
import warnings

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from checks import flat
from models import categorical_table, indexed_by_data, normal_unknown_sigma, several_observed

import pymc_dp as pmdp
from pymc_dp.private_models.labels import COVERS, DIGESTS, digest

CANARY = 7123.456789
QUICK = {"draws": 20, "tune": 20, "chains": 2, "cores": 1, "progressbar": False, "random_seed": 3, "nuts_sampler": "pymc"}
QUICK |= {"compute_convergence_checks": False, "compile_kwargs": {"mode": "FAST_COMPILE"}}
FAST = {"mode": "FAST_COMPILE"}


def measured():
    """Records with one that would be known again."""
    x = np.linspace(-1, 1, 60)
    x[17] = CANARY
    with pm.Model(coords={"group": ["a", "b", "c"]}) as model:
        mu = pm.Normal("mu", 0, 2, dims="group")
        pm.Normal("x", mu[np.arange(60) % 3], 1.0, observed=x)
    return model, {"bounds": {"x": (-4, 4)}, "public": ["group"]}


@pytest.fixture(scope="module")
def model():
    return measured()[0]


@pytest.fixture(scope="module")
def sampled(model):
    return pmdp.sample(model=model, epsilon=1.0, **measured()[1], **QUICK)


@pytest.fixture
def tree(sampled):
    return sampled.copy(deep=True)


def covers(tree):
    assert tree.attrs[COVERS] == tree["privacy"].attrs[COVERS]
    return json.loads(tree.attrs[COVERS])


def holds_canary(tree):
    return np.float64(CANARY).tobytes() in pickle.dumps(tree.load())


def saved_and_read(tree, tmp_path, kind):
    path = tmp_path / f"tree.{kind}"
    if kind == "nc":
        tree.to_netcdf(path, engine="h5netcdf")
        with xr.open_datatree(path, engine="h5netcdf") as back:
            return back.load()
    tree.to_zarr(path)
    return xr.open_datatree(path, engine="zarr").load()


FORMATS = [
    "nc",
    pytest.param(
        "zarr",
        marks=pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning", "ignore::zarr.errors.UnstableSpecificationWarning"),
    ),
]


def test_a_tree_lists_what_its_promise_covers(tree):
    assert covers(tree) == {"observed_data": ["x"], "posterior": ["mu"], "sample_stats": sorted(map(str, tree["sample_stats"].data_vars))}
    for name in covers(tree):
        assert json.loads(tree[name].attrs[COVERS]) == covers(tree)[name]
    assert tree.attrs["protects"] == "one row"


@pytest.mark.parametrize("added", ["predictive draws", "log-likelihoods", "per-record values", "records"])
def test_what_your_own_model_adds_is_not_covered_and_not_shared(tree, model, added, tmp_path):
    before, groups = covers(tree), None
    if added == "predictive draws":
        how = {"progressbar": False, "random_seed": 1, "compile_kwargs": FAST, "extend_inferencedata": True}
        pm.sample_posterior_predictive(tree, model=model, **how)
        names, groups = ["posterior_predictive"], ["posterior", "sample_stats"]
    elif added == "log-likelihoods":
        tree = pm.compute_log_likelihood(tree, model=model, progressbar=False, extend_inferencedata=True)
        names = ["log_likelihood"]
    elif added == "per-record values":
        tree["posterior"] = tree["posterior"].to_dataset().assign(fitted=(("chain", "draw", "row"), np.full((2, 20, 60), CANARY)))
        names = ["posterior/fitted"]
    else:
        tree["constant_data"] = xr.Dataset({"x": ("row", np.full(60, CANARY))})
        names = ["constant_data"]
    tree = saved_and_read(tree, tmp_path, "nc")
    assert covers(tree) == before
    assert "promise" not in tree[names[0]].attrs or added == "per-record values"
    assert holds_canary(tree) or added == "log-likelihoods"
    if groups:  # PyMC has put the records in the place of the released numbers
        with pytest.raises(pmdp.Refusal, match=r"observed_data/x is not what.*leave it out: groups=\['posterior', 'sample_stats'\]"):
            pmdp.to_share(tree)
        before.pop("observed_data")
    with pytest.warns(pmdp.NotSharedWarning, match=names[0]):
        shared = pmdp.to_share(tree, groups)
    assert not holds_canary(shared)
    assert covers(shared) == before
    assert set(shared.children) == {*before, "privacy"}
    assert set(shared["posterior"].data_vars) == {"mu"}


@pytest.mark.parametrize("kind", FORMATS)
def test_digests_survive_saving(tree, tmp_path, kind):
    """Booleans, text, whole and real numbers, missing ones, and text that is missing."""
    back = saved_and_read(tree, tmp_path, kind)
    shared = pmdp.to_share(back)
    assert covers(shared) == covers(tree)
    assert json.loads(shared["privacy"].attrs[DIGESTS]) == json.loads(tree["privacy"].attrs[DIGESTS])
    for name in covers(tree):
        xr.testing.assert_equal(shared[name].to_dataset(), tree[name].to_dataset())
    again = saved_and_read(shared, tmp_path / "again", kind) if (tmp_path / "again").mkdir() is None else None
    assert covers(pmdp.to_share(again)) == covers(tree)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("entries", [[None, None], [None, "diverged"], ["a", "b"]], ids=str)
def test_digests_of_what_may_be_missing_survive_saving(tmp_path, kind, entries):
    """As of nutpie's words about divergences: None where there is none."""
    one = xr.DataTree.from_dict({"sample_stats": xr.Dataset({"words": ("draw", np.array(entries, dtype=object))})})
    back = saved_and_read(one, tmp_path, kind)["sample_stats"]["words"]
    assert digest(back.dims, back.values) == digest(["draw"], one["sample_stats"]["words"].values)


@pytest.mark.slow
def test_draws_by_nutpie_are_shared_after_they_were_saved(model, tmp_path):
    settings = {"draws": 20, "tune": 20, "chains": 2, "nuts_sampler": "nutpie", "progressbar": False, "random_seed": 1}
    drawn = pmdp.sample(model=model, epsilon=1.0, missing={}, compute_convergence_checks=False, **settings, **measured()[1])
    back = saved_and_read(drawn, tmp_path, "nc")
    assert covers(pmdp.to_share(back)) == covers(drawn)


def test_digests_tell_values_dims_shapes_and_kinds_apart():
    one = digest(["a"], [1.0, np.nan])
    assert one == digest(["a"], np.array([1.0, -np.nan], dtype="float32"))
    others = [(["b"], [1.0, np.nan]), (["a"], [1.0, 2.0]), (["a"], [1, 2]), (["a"], ["1.0", ""]), (["a", "b"], [[1.0, np.nan]])]
    assert len({one, *(digest(*other) for other in others)}) == 6
    assert digest(["a"], np.array([None, "u"], dtype=object)) == digest(["a"], np.array(["", "u"]))
    assert digest(["a"], np.arange(3, dtype="int8")) == digest(["a"], np.arange(3)) == digest(["a"], np.arange(3, dtype=">u2"))
    assert digest(["a"], [True, False]) == digest(["a"], np.array([1, 0], dtype="int8"))


@pytest.mark.parametrize("change", ["values", "slice", "labels"])
def test_what_is_no_longer_what_it_was_is_refused(tree, change):
    if change == "values":
        tree["posterior"]["mu"][0, 0, 0] = CANARY
    elif change == "slice":
        tree = tree.isel(draw=slice(0, 5))
    else:
        tree["posterior"] = tree["posterior"].to_dataset().assign_coords(group=[str(CANARY), "b", "c"])
    with pytest.raises(pmdp.Refusal, match=r"posterior/\w+ is not what the promise covered"):
        pmdp.to_share(tree)
    if change != "slice":
        with pytest.warns(pmdp.NotSharedWarning, match="posterior"):
            shared = pmdp.to_share(tree, groups=["observed_data"])
        assert covers(shared) == {"observed_data": ["x"]}
        assert not holds_canary(shared)


def test_a_shared_tree_holds_copies_without_parents_and_attributes_of_others(tree):
    tree.attrs["note"] = tree["posterior"].attrs["note"] = "record 17"
    tree["posterior"]["mu"].attrs["note"] = "record 17"
    del tree["sample_stats"]["diverging"]
    with pytest.warns(pmdp.NotSharedWarning, match="attribute note"):
        shared = pmdp.to_share(tree)
    assert b"record 17" not in pickle.dumps(shared)
    assert shared.parent is None
    assert not np.shares_memory(shared["posterior"]["mu"].values, tree["posterior"]["mu"].values)
    assert "diverging" not in covers(shared)["sample_stats"]
    assert pmdp.to_share(shared).attrs == shared.attrs
    assert pmdp.to_share(shared.copy())["posterior"].attrs["promise"] == "certified"


def test_trees_without_a_list_are_not_shared(tree):
    with pytest.raises(pmdp.Refusal, match="does not say what its promise covers"):
        pmdp.to_share(xr.DataTree.from_dict({"posterior": tree["posterior"].to_dataset()}))
    with pytest.raises(pmdp.Refusal, match=r"takes the tree that pymc_dp\.sample returned"):
        pmdp.to_share(tree["posterior"].to_dataset())
    with pytest.raises(pmdp.Refusal, match="does not cover a group 'prior'"):
        pmdp.to_share(tree, groups=["prior"])
    with pytest.raises(pmdp.Refusal, match="groups must be a list"):
        pmdp.to_share(tree, groups="posterior")


# ---------- annotate


def test_annotate_covers_what_it_can_compare(model, sampled):
    private = pmdp.rewrite(model, pmdp.Release.from_datatree(sampled))
    raw = xr.DataTree.from_dict({name: sampled[name].to_dataset() for name in ("posterior", "sample_stats", "observed_data")})
    raw["constant_data"] = xr.Dataset({"x": ("row", np.full(60, CANARY))})
    annotated = pmdp.annotate(raw, private.privacy)
    assert set(covers(annotated)) == {"posterior", "sample_stats", "observed_data"}
    assert "promise" not in annotated["constant_data"].attrs
    assert pmdp.Release.from_datatree(annotated) == private.privacy


def test_predictive_draws_of_the_private_model_can_be_covered_and_those_of_your_own_cannot(model, tree):
    released = pmdp.Release.from_datatree(tree)
    private = pmdp.rewrite(model, released)
    how = {"progressbar": False, "random_seed": 1, "compile_kwargs": FAST}
    tree["posterior_predictive"] = pm.sample_posterior_predictive(tree, model=private, **how)["posterior_predictive"]
    assert "posterior_predictive" not in covers(tree)
    again = pmdp.annotate(tree, released)
    assert covers(again) == covers(tree) | {"posterior_predictive": ["x"]}
    assert pmdp.to_share(again)["posterior_predictive"].attrs["epsilon"] == 1.0
    tree["posterior_predictive"] = pm.sample_posterior_predictive(tree, model=model, **how)["posterior_predictive"]
    tree["posterior"] = tree["posterior"].to_dataset().assign(fitted=(("chain", "draw", "row"), np.full((2, 20, 60), CANARY)))
    assert covers(pmdp.annotate(tree, released)) == covers(tree)
    with pytest.warns(pmdp.NotSharedWarning, match=r"posterior/fitted, posterior/row.*posterior_predictive|posterior_predictive"):
        assert not holds_canary(pmdp.to_share(pmdp.annotate(tree, released)))


def test_annotate_refuses_records_of_the_same_shape_and_another_release(model, tree):
    released = pmdp.Release.from_datatree(tree)
    raw = xr.DataTree.from_dict({"posterior": tree["posterior"].to_dataset()})
    raw["observed_data"] = tree["observed_data"].to_dataset() + 1e-6
    with pytest.raises(pmdp.Refusal, match="not drawn from the private model"):
        pmdp.annotate(raw, released)
    del tree["observed_data"]
    with pytest.raises(pmdp.Refusal, match="another release"):
        pmdp.annotate(tree, pmdp.release(model, epsilon=0.1, **measured()[1]))


@pytest.mark.parametrize("make", [indexed_by_data, normal_unknown_sigma, categorical_table, several_observed])
def test_annotate_knows_what_the_plug_in_posterior_observes(make):
    model, arguments = make()
    private = pmdp.privatize(model, epsilon=0.3, noise_aware=False, **arguments)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The effect of Potentials")
        drawn = pm.sample_prior_predictive(3, model=private, random_seed=1, compile_kwargs=FAST)
    assert {"observed_data", "prior_predictive"} <= set(covers(pmdp.annotate(drawn, private.privacy)))


# ---------- the release in the tree


@pytest.mark.parametrize("kind", FORMATS)
def test_the_release_stays_in_the_tree(tree, model, tmp_path, kind):
    released = pmdp.Release.from_datatree(tree)
    back = pmdp.Release.from_datatree(saved_and_read(tree, tmp_path, kind))
    assert back == released
    assert back != pmdp.release(model, epsilon=1.0, **measured()[1])
    np.testing.assert_array_equal(back["x"].values, tree["observed_data"]["x"].values)
    ours, theirs = pmdp.rewrite(model, back), pmdp.rewrite(model, released)
    point = ours.initial_point()
    assert ours.compile_logp(mode="FAST_COMPILE")(point) == theirs.compile_logp(mode="FAST_COMPILE")(point)
    assert pmdp.Release.from_datatree(pmdp.to_share(tree)) == released


def test_draws_that_were_paid_for_hold_no_release():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Uniform("theta", 0.1, 0.9), observed=np.arange(40) % 2)
    drawn = pmdp.sample(model=model, epsilon=1.0, mechanism=pmdp.PosteriorSample())
    assert covers(drawn) == {"posterior": ["theta"]}
    assert set(pmdp.to_share(drawn).children) == {"posterior", "privacy"}
    with pytest.raises(pmdp.Refusal, match="holds no release"):
        pmdp.Release.from_datatree(drawn)


# ---------- what a row stands for


def test_the_unit_is_repeated_as_a_claim(tmp_path):
    """19,609 rows of 6,127 patients: no sentence of ours says that a patient is protected."""
    model, arguments = measured()
    ledger = pmdp.Ledger(tmp_path / "a.ledger", epsilon=3.0, create=True, unit="patient")
    released = pmdp.release(model, epsilon=1.0, unit="patient", ledger=ledger, **arguments)
    words = 'one row, which you say is one "patient"'
    inspected = pmdp.inspect(model, unit="patient", **arguments)
    for told in (flat(released), flat(inspected), flat(ledger), ledger._repr_html_().replace("&quot;", '"')):
        assert words in told
        assert "one patient" not in told
        assert "of patients" not in told
    annotated = pmdp.annotate(xr.DataTree.from_dict({"posterior": xr.Dataset({"mu": ("draw", np.ones(3))})}), released)
    assert annotated["posterior"].attrs["protects"] == words
    assert annotated.attrs["privacy_unit"] == "patient"
    assert "protects one row (replace)" in flat(pmdp.release(model, epsilon=1.0, **arguments))


def test_what_is_put_in_later_is_never_covered():
    """Adding a covered group sealed anew what had been put into the root and into ``privacy`` since; so did annotating again."""
    model, arguments = measured()
    tree = pmdp.sample(model=model, epsilon=1.0, **arguments, **QUICK)
    tree["fitted"] = ("row", np.arange(5.0) + CANARY)
    tree.attrs["note"] = str(CANARY)
    tree["privacy"]["raw"] = ("row", np.arange(5.0) + CANARY)
    tree["privacy/more"] = xr.DataTree(xr.Dataset({"raw": ("row", np.arange(5.0) + CANARY)}))
    later = pmdp.posterior_predictive(tree, model=model, random_seed=1)
    with pytest.warns(pmdp.NotSharedWarning, match="fitted"):
        shared = pmdp.to_share(later)
    assert "fitted" not in shared
    assert "note" not in shared.attrs
    assert "raw" not in shared["privacy"]
    assert "more" not in shared["privacy"].children
    assert "posterior_predictive" in shared.children


def test_annotate_covers_nothing_beside_what_it_compares():
    model, arguments = measured()
    private = pmdp.privatize(model, epsilon=1.0, **arguments)
    tree = pmdp.sample(model=model, epsilon=1.0, **arguments, **QUICK)
    release = pmdp.Release.from_datatree(tree)
    groups = {name: tree[name].to_dataset().drop_attrs() for name in ("posterior", "sample_stats", "observed_data")}
    observed = groups["observed_data"]
    raw = xr.DataTree.from_dict(groups | {"observed_data": observed.assign_coords(secret=("row", np.arange(7.0) + CANARY))})
    raw["observed_data"].attrs["mean"] = CANARY
    raw["observed_data/records"] = xr.DataTree(xr.Dataset({"x": ("row", np.arange(7.0) + CANARY)}))
    raw["rec"] = ("row", np.arange(7.0) + CANARY)
    with pytest.warns(pmdp.NotSharedWarning):
        shared = pmdp.to_share(pmdp.annotate(raw, release))
    assert set(shared["observed_data"].data_vars) == set(observed.data_vars)
    assert "secret" not in shared["observed_data"].coords
    assert "mean" not in shared["observed_data"].attrs
    assert "records" not in shared["observed_data"].children
    assert "rec" not in shared
    assert private.privacy.statistics
