"""Several holders' releases under one model: the density is that of all of them, and what does not fit is refused in words."""

import warnings
from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from checks import points, seam_of
from scipy import stats

import pymc_dp as pmdp
from pymc_dp.publications.same_people import combined

HOSPITALS = ("north", "south", "east")
GAUSSIAN = pmdp.Gaussian(delta=1e-6)
QUIET = {"progressbar": False, "compute_convergence_checks": False}


def own_model(values, family="Normal", **more):
    """What one holder writes."""
    with pm.Model() as model:
        if family == "Normal":
            pm.Normal("stay", pm.Normal("level", 0, 9), pm.HalfNormal("spread", 5), observed=values, **more)
        else:
            pm.Bernoulli("stay", pm.Beta("level", 1, 1), observed=values)
    return model


def releases():
    """Of three holders with different epsilon, noise, bounds, neighbours and numbers of people."""
    rng = np.random.default_rng(1)
    rows = [rng.normal(4 + k, 2, 60 + k) for k in range(3)]
    how = [
        {"epsilon": 2.0, "bounds": {"stay": (-6, 14)}, "unit": "patient"},
        {"epsilon": 0.7, "bounds": {"stay": (-5, 20)}, "mechanism": pmdp.Gaussian(delta=1e-6)},
        {"epsilon": 1.0, "bounds": {"stay": (-4, 16)}, "neighbours": "add_remove"},
    ]
    return {name: pmdp.release(own_model(y), **arguments) for name, y, arguments in zip(HOSPITALS, rows, how)}


@pytest.fixture(scope="module")
def released():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return releases()


def joint_model(names=tuple(f"{name}_stay" for name in HOSPITALS), family="Normal"):
    """A level for every hospital."""
    with pm.Model(coords={"hospital": HOSPITALS}) as model:
        if family == "Normal":
            level = pm.Normal("level", pm.Normal("middle", 0, 9), pm.HalfNormal("between", 3), dims="hospital")
            spread = pm.HalfNormal("spread", 5)
            for k, name in enumerate(names):
                pm.Normal(name, level[k], spread, observed=np.zeros(2))
        else:
            level = pm.Beta("level", 1, 1, dims="hospital")
            for k, name in enumerate(names):
                pm.Bernoulli(name, level[k], observed=np.zeros(2, int))
    return model


def likelihood_of(model):
    return model.compile_logp(vars=model.observed_RVs, mode="FAST_COMPILE")


# ---------- different people


@pytest.mark.parametrize("names", [tuple(f"{name}_stay" for name in HOSPITALS), HOSPITALS])
def test_the_density_is_the_sum_of_all_holders(released, names):
    public = pmdp.published(joint_model(names), released)
    alone = [likelihood_of(pmdp.rewrite(own_model(np.zeros(3)), released[name])) for name in HOSPITALS]
    ours = likelihood_of(public)
    for point in points(public):
        each = [{"level": point["level"][k], "spread_log__": point["spread_log__"]} for k in range(3)]
        for at, name in zip(each, names):
            at |= {key.replace(name, "stay", 1): value for key, value in point.items() if key.startswith(f"{name}_")}
        assert ours(point) == pytest.approx(sum(one(at) for one, at in zip(alone, each)), rel=1e-10)
    assert [variable.name for variable in public.observed_RVs] == list(names)
    assert public.publication.holders == {name: (holder,) for name, holder in zip(names, HOSPITALS)}


def test_at_exact_statistics_it_is_the_model_of_all_records(exact_seam):
    """Up to a constant, where no noise is drawn and so little is said to be there that no other count may stand behind a number."""
    rng = np.random.default_rng(2)
    rows = {name: rng.binomial(1, 0.3, 40 + k) for k, name in enumerate(HOSPITALS)}
    several = {name: pmdp.release(own_model(y, "Bernoulli"), epsilon=200.0) for name, y in rows.items()}
    public = pmdp.published(joint_model(HOSPITALS, "Bernoulli"), several)
    with joint_model((), "Bernoulli") as truth:
        for k, name in enumerate(HOSPITALS):
            pm.Bernoulli(name, truth["level"][k], observed=rows[name])
    ours, theirs = public.compile_logp(mode="FAST_COMPILE"), truth.compile_logp(mode="FAST_COMPILE")
    differences = [ours(point) - theirs(point) for point in points(public)]
    np.testing.assert_allclose(differences, differences[0], atol=1e-8)


def of_ward(ward, values=(0.0, 0.0)):
    """A model that all holders share: each has wards of its own."""
    with pm.Model(coords={"ward": ["a", "b", "c", "d"]}) as model:
        level = pm.Normal("level", 0, 9, dims="ward")
        pm.Normal("stay", level[pm.Data("of", ward)], 2.0, observed=np.asarray(values, float))
    return model


def test_one_likelihood_in_common_is_read_at_the_cells_of_each_holder():
    rng = np.random.default_rng(3)
    first, second = np.repeat([0, 1], 20), np.repeat([1, 3], 25)
    how = {"epsilon": 1.0, "bounds": {"stay": (-9, 9)}, "public": ["of"]}
    several = [pmdp.release(of_ward(w, rng.normal(w, 2.0)), **how) for w in (first, second)]
    public = pmdp.published(of_ward(np.zeros(2, int)), several)
    alone = [likelihood_of(pmdp.rewrite(of_ward(np.zeros(2, int)), release)) for release in several]
    ours = likelihood_of(public)
    for point in points(public):
        assert ours(point) == pytest.approx(sum(one(point) for one in alone), rel=1e-10)
    assert public.publication.holders == {"release_1_stay": ("release_1",), "release_2_stay": ("release_2",)}


def test_an_index_beyond_the_tables_of_the_model_is_refused():
    released = [
        pmdp.release(of_ward(np.repeat([0, k], 9), np.zeros(18)), epsilon=1.0, bounds={"stay": (-9, 9)}, public=["of"]) for k in (1, 3)
    ]
    with pm.Model(coords={"ward": ["a", "b"]}) as smaller:
        pm.Normal("stay", pm.Normal("level", dims="ward")[pm.Data("of", [0, 1])], 2.0, observed=np.zeros(2))
    with pytest.raises(pmdp.Refusal, match="release_2 has an index beyond the tables"):
        pmdp.published(smaller, released)


def test_an_index_from_the_end_is_refused():
    """The last of two wards at home is not the last of four in the model."""
    released = [
        pmdp.release(of_ward(np.repeat([0, k], 9), np.zeros(18)), epsilon=1.0, bounds={"stay": (-9, 9)}, public=["of"]) for k in (1, -1)
    ]
    with pytest.raises(pmdp.Refusal, match="release_2 has an index that counts from the end"):
        pmdp.published(of_ward([0, 1]), released)


# ---------- the same people


def two_of_the_same(epsilon=1.0, mechanism=GAUSSIAN, second=10):
    """Two releases of 30 people, of whom 10 say yes, with noises of 4 and -3."""
    several = {}
    for name, noise, price, many in (("spring", 4, 1.0, 10), ("autumn", -3, epsilon, second)):
        with seam_of(noise):
            several[name] = pmdp.release(own_model(np.arange(20 + many) < many, "Bernoulli"), epsilon=price, mechanism=mechanism)
    return several


@pytest.mark.parametrize("epsilon", [1.0, 0.4])
def test_one_true_count_behind_two_noisy_ones_is_counted_once(epsilon):
    """By enumeration of every true count; taken for different people, the density is another one."""
    several = two_of_the_same(epsilon)
    model = own_model(np.zeros(2, int), "Bernoulli")
    public = pmdp.published(model, several, same_people=[("spring", "autumn")])
    z, scale = np.array([[release["stay"].noisy.item(), release["stay"].scale] for release in several.values()]).T
    s = np.arange(31)
    noise = -0.5 * ((z - s[:, None]) / scale) ** 2
    ours, apart = likelihood_of(public), likelihood_of(pmdp.published(model, several))
    logits = np.linspace(-2.5, 1.5, 7)

    def spread(density):
        enumerated = [np.logaddexp.reduce(stats.binom.logpmf(s, 30, 1 / (1 + np.exp(-logit))) + noise.sum(axis=1)) for logit in logits]
        return np.ptp([density({"level_logodds__": np.array(logit)}) for logit in logits] - np.array(enumerated))

    assert spread(ours) < 1e-5
    assert spread(apart) > 0.1
    assert public.publication.same_people == (("spring", "autumn"),)
    assert [variable.name for variable in public.observed_RVs] == ["stay"]


def test_two_noisy_sums_of_the_same_people_are_normal_together():
    """Sums of clamped normal values: the exact sums are equal, so their noisy ones have the covariance that the exact one has."""
    y = np.random.default_rng(5).normal(1, 2, 80)
    with pm.Model() as model:
        pm.Normal("stay", pm.Normal("level", 0, 9), 2.0, observed=y)
    several = [pmdp.release(model, epsilon=e, mechanism=pmdp.Gaussian(delta=1e-6), bounds={"stay": (-30, 30)}) for e in (0.5, 0.9)]
    public = likelihood_of(pmdp.published(model, several, same_people=True))
    z = np.array([release["stay"].values.item() for release in several])
    sd = [release["stay"].noise.standard_deviation for release in several]

    def together(level):
        return stats.multivariate_normal(2 * [80 * level / 30], 80 * (2 / 30) ** 2 + np.diag(np.square(sd))).logpdf(z)

    differences = [public({"level": np.array(level)}) - together(level) for level in np.linspace(-2, 4, 5)]
    np.testing.assert_allclose(differences, differences[0], atol=1e-5)


def test_what_cannot_be_combined_is_refused_and_says_how_to_declare_different_people():
    model = own_model(np.zeros(2, int), "Bernoulli")
    laplace = two_of_the_same(mechanism="laplace")
    with pytest.raises(pmdp.Refusal, match=r"only Gaussian noises.*different people, leave them out of same_people"):
        pmdp.published(model, laplace, same_people=True)
    pmdp.published(model, laplace)
    fewer = two_of_the_same(second=9)
    with pytest.raises(pmdp.Refusal, match=r"different numbers of records.*leave them out of same_people"):
        pmdp.published(model, fewer, same_people=True)
    y, gaussian = np.linspace(0, 9, 50), pmdp.Gaussian(delta=1e-6)
    other = [pmdp.release(own_model(y), epsilon=1.0, mechanism=gaussian, bounds={"stay": (0, upper)}) for upper in (9, 10)]
    with pytest.raises(pmdp.Refusal, match="different bounds"):
        pmdp.published(own_model(y), other, same_people=True)
    with pytest.raises(pmdp.Refusal, match=r"two likelihoods of it\. Write one, named stay"):
        pmdp.published(joint_model(("spring", "autumn"), "Bernoulli"), two_of_the_same(), same_people=True)


def test_releases_in_which_other_rows_of_a_person_count_are_not_of_one_true_statistic():
    """One row of each person is not four, nor are all rows; and what else a row says decides which rows count."""
    rng = np.random.default_rng(6)
    with pm.Model(coords={"row": range(60)}) as one:
        pm.Data("who", np.repeat(np.arange(15), 4), dims="row")
        pm.Bernoulli("stay", pm.Beta("level", 1, 1), observed=rng.integers(0, 2, 60), dims="row")
    with pm.Model(coords={"row": range(60)}) as two:
        pm.Data("who", np.repeat(np.arange(15), 4), dims="row")
        pm.Bernoulli("stay", pm.Beta("level", 1, 1), observed=one["stay"].eval(), dims="row")
        pm.Bernoulli("ill", pm.Beta("share", 1, 1), observed=rng.integers(0, 2, 60), dims="row")

    def of(model, unit):
        return pmdp.release(model, epsilon=1.0, mechanism=GAUSSIAN, neighbours="add_remove", unit=unit)

    one_row, four_rows = pmdp.Person("who", at_most=1), pmdp.Person("who", at_most=4)
    for model, several in (
        (one, [of(one, one_row), of(one, four_rows)]),
        (one, [of(one, "visit"), of(one, four_rows)]),
        (two, [of(one, one_row), of(two, one_row)]),
    ):
        pmdp.published(model, several)
        with pytest.raises(pmdp.Refusal, match="not the same rows of them count in both"):
            pmdp.published(model, several, same_people=True)
    for again in ([of(one, one_row), of(one, one_row)], [of(one, "visit"), of(one, "patient's visit")]):
        assert len(pmdp.published(one, again, same_people=True).observed_RVs) == 1


def test_releases_in_which_missing_covariates_count_as_something_else_are_not_of_one_true_statistic():
    def of(missing):
        with pm.Model() as model:
            pm.Bernoulli("stay", pm.Beta("level", 1, 1, shape=3)[pm.Data("of", np.repeat([0, 1], 20))], observed=np.arange(40) % 2)
        return pmdp.release(model, epsilon=1.0, mechanism=GAUSSIAN, missing=missing)

    with pm.Model() as model:
        pm.Bernoulli("stay", pm.Beta("level", 1, 1, shape=3)[pm.Data("of", np.zeros(2, int))], observed=np.zeros(2, int))
    for several in ([of({"of": 0}), of({"of": 2})], [of({"of": 0}), of({})]):
        pmdp.published(model, several)
        with pytest.raises(pmdp.Refusal, match="missing values count as something else"):
            pmdp.published(model, several, same_people=True)
    assert len(pmdp.published(model, [of({"of": 0}), of({"of": 0})], same_people=True).observed_RVs) == 1


# ---------- what does not fit


def _poisson():
    with pm.Model() as model:
        for name in HOSPITALS:
            pm.Poisson(name, pm.Gamma(f"rate_{name}", 1, 1), observed=[1, 2])
    return model


def _known_spread():
    with pm.Model() as model:
        for name in HOSPITALS:
            pm.Normal(name, pm.Normal(f"level_{name}"), 2.0, observed=np.zeros(2))
    return model


def _with_index():
    with pm.Model() as model:
        for name in HOSPITALS:
            level = pm.Normal(f"level_{name}", shape=2)
            pm.Normal(name, level[pm.Data(f"of_{name}", [0, 1])], pm.HalfNormal(f"spread_{name}"), observed=np.zeros(2))
    return model


def _one_index():
    with pm.Model() as model:
        level = pm.Normal("level", shape=2)
        pm.Normal("stay", level[pm.Data("of", [0, 1])], pm.HalfNormal("spread"), observed=np.zeros(2))
    return model


REFUSED = {
    "a misspelt holder": (joint_model, lambda r: {"nroth": r["north"]}, "neither nroth_stay nor stay"),
    "a misspelt likelihood": (lambda: joint_model(("north_stay", "south_stay", "east_stya")), dict, "neither east_stay nor stay"),
    "nobody's": (joint_model, lambda r: {"north": r["north"], "south": r["south"]}, "Nobody released east_stay"),
    "another distribution": (_poisson, dict, "north does not fit north: it was released from a Normal, and the model has a Poisson"),
    "other unknowns": (_known_spread, dict, "one that you know needs a narrow prior"),
    "one index for all": (_one_index, dict, "needs a likelihood for each, such as north_stay"),
    "another array": (_with_index, dict, "0 arrays above the likelihood, and the model has of_north"),
    "the same one twice": (joint_model, lambda r: r | {"east": r["north"]}, "north and east are one and the same release"),
    "no release": (joint_model, lambda r: r | {"east": 3}, "What east gave is no Release"),
    "beside a law": (joint_model, lambda r: r | {"east": pmdp.RoundedToBase(3)}, "What east gave is no Release"),
    "no name": (joint_model, lambda r: r | {"e/ast": r["east"]}, "names of text without a slash"),
    "one alone": (joint_model, lambda r: r["north"], "Write rewrite"),
    "two meanings": (
        lambda: joint_model(("a_stay", "stay")),
        lambda r: {"a": r["north"], "stay": r["south"], "b": r["east"]},
        "stay may be the likelihood of stay and b",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(released, case):
    make, given, words = REFUSED[case]
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.published(make(), given(released))


@pytest.mark.parametrize(
    ("same", "words"),
    [
        ([("north", "west")], "names 'west'"),
        (["north"], "two holders and more"),
        ([("north", "south"), ("south", "east")], "one group only"),
        ("north", "groups of holders"),
    ],
)
def test_groups_of_the_same_people_are_checked(released, same, words):
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.published(joint_model(), released, same_people=same)


def test_a_release_that_was_read_twice_is_found_where_no_chance_explains_it(tmp_path):
    """Two counts of few people may agree, whether they are two or one; forty numbers with noise do not."""
    with pm.Model() as model:
        pm.Normal("stay", pm.Normal("level", shape=40), 1.0, observed=np.zeros((9, 40)))
    for own, bounds, found in ((model, {"stay": (-1, 1)}, True), (own_model(np.zeros(9, int), "Bernoulli"), None, False)):
        released = pmdp.release(own, epsilon=1.0, bounds=bounds)
        released.to_netcdf(tmp_path / "one.nc")
        again = pmdp.Release.from_netcdf(tmp_path / "one.nc")
        if not found:
            assert len(pmdp.published(own, [released, again]).observed_RVs) == 2
            continue
        with pytest.raises(pmdp.Refusal, match="one and the same release"):
            pmdp.published(own, [released, again])


def test_other_trials_are_another_likelihood():
    """A number of successes of ten is none of twenty: the bounds of a likelihood are part of it."""

    def make(trials):
        with pm.Model() as model:
            pm.Binomial("y", trials, pm.Beta("p", 1, 1), observed=np.zeros(30, int))
        return model

    several = [pmdp.release(make(10), epsilon=1.0) for _ in range(2)]
    with pytest.raises(pmdp.Refusal, match="values lie from 0 to 10, and the model's from 0 to 20"):
        pmdp.published(make(20), several)


def test_records_that_are_added_are_no_release(released):
    public = pmdp.published(joint_model(), released)
    with public:
        pm.Normal("west_stay", public["middle"], 1.0, observed=np.zeros(9))
    with pytest.raises(pmdp.Refusal, match=r"west_stay was added to a model of published numbers.*Nobody released it"):
        pmdp.sample(10, model=public)


def test_nothing_more_can_be_asked_of_published_releases(released):
    with pytest.raises(pmdp.Refusal, match="Leave epsilon out"):
        pmdp.sample(10, model=pmdp.published(joint_model(), released), epsilon=1.0)
    with pytest.raises(pmdp.Refusal, match="Leave values out"):
        pmdp.published(joint_model(), released, values={"north_stay": [1.0]})


# ---------- the result


@pytest.mark.filterwarnings("ignore::pymc_dp.ClampedWarning")  # which the noise may well make
def test_a_tree_says_whose_promises_it_holds_and_makes_the_model_again(released, tmp_path):
    public = pmdp.published(joint_model(), released)
    steps = {"nuts_sampler": "pymc", "nuts": {"max_treedepth": 1}, "compile_kwargs": {"mode": "FAST_COMPILE"}}
    idata = pmdp.sample(2, tune=2, chains=1, random_seed=1, model=public, **steps, **QUIET)
    idata.to_netcdf(tmp_path / "draws.nc", engine="h5netcdf")
    for tree in (idata, xr.open_datatree(tmp_path / "draws.nc", engine="h5netcdf").load()):
        table = tree["privacy"].to_dataset()
        assert list(table["holder"].values) == list(HOSPITALS)
        assert table["epsilon"].values.tolist() == [2.0, 0.7, 1.0]
        assert table["neighbours"].values.tolist() == ["replace", "replace", "add_remove"]
        assert table["unit"].values.tolist() == ["patient", "row", "row"]
        assert table["ledger_head"].values.tolist() == [released[name].ledger_head for name in HOSPITALS]
        assert "no epsilon is claimed" in tree.attrs["promise"]
        assert "epsilon" not in tree.attrs
        assert "epsilon" not in tree["posterior"].attrs
        assert "east_stay_size" in tree["latent_statistics"].data_vars
        assert "east_stay_size" not in tree["posterior"].data_vars
        with pytest.raises(pmdp.Refusal, match="releases of several holders"):
            pmdp.private_model(tree, joint_model())
        again = pmdp.published(joint_model(), tree)
        assert again.publication.releases == released
        point = points(public, 1)[0]
        assert likelihood_of(again)(point) == likelihood_of(public)(point)


def test_a_line_for_every_holder(released):
    lines = str(pmdp.published(joint_model(), released).publication).splitlines()
    assert len(lines) == 4
    assert lines[0].startswith('north: epsilon 2, delta 0, protects one row, which you say is one "patient" (replace)')
    assert lines[3] == "You say that no two hold the same people."


@pytest.mark.parametrize("largest", [2, 2**20, 2**45, 2**61])
def test_large_sums_of_the_same_people_are_combined_without_overflow(largest):
    """Whatever their size: between the two, as near to each as its noise says."""
    first = pmdp.release(own_model(np.zeros(4)), epsilon=1.0, delta=1e-6, mechanism="gaussian", bounds={"stay": (-1, 1)}).statistics[0]
    signs = np.resize([1, -1], first.noisy.shape)
    statistics = [replace(first, noisy=(largest - apart) * signs, scale=scale) for apart, scale in ((0, 2.0), (min(largest, 1000), 4.0))]
    found = combined(["spring", "autumn"], statistics)
    expected = (0.8 * statistics[0].values + 0.2 * statistics[1].values) / first.lattice
    np.testing.assert_allclose(found.values / first.lattice, expected, rtol=1e-15, atol=1.0 if largest > 2**40 else 1e-5)
    assert found.noise.standard_deviation == pytest.approx(first.lattice / np.sqrt(2.0**-2 + 4.0**-2), rel=1e-12)
