"""Any likelihood through randomised records: the law of what was told, refusals before the charge, and no record in the private model."""

from fractions import Fraction
from itertools import product

import cloudpickle
import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats
from scipy.integrate import quad

import pymc_dp as pmdp
from pymc_dp.publications.randomise import chosen
from pymc_dp.releases.answers import RandomisedAnswers

EDGES = {"x": (-2.0, -0.5, 0.4, 2.0), "y": (-3.0, 0.0, 1.0, 3.0)}
REAL = 7123.456789012345


def truth_about(told, edges, truth=0.6):
    return RandomisedAnswers(edges, np.asarray(told), truth, pmdp.Cost(1))


def told_as(make, edges, point, truth=0.6):
    """Probability of every level, one record each, from the private model; the last one's is that of an incomplete record."""
    levels = truth_about([0], edges).levels
    answers = truth_about(np.arange(levels), edges, truth)
    private = pmdp.published(make(levels), answers)
    logs = private.compile_fn(private.logp(vars=[private[answers.name]], sum=False, jacobian=False)[0], inputs=private.value_vars)
    start = private.initial_point()
    for name, value in point.items():
        variable = private[name]
        transform = private.rvs_to_transforms[variable]
        start[private.rvs_to_values[variable].name] = np.asarray(
            value if transform is None else transform.forward(np.asarray(value), *variable.owner.inputs).eval()
        )
    return np.exp(logs(start))


def through(cells, truth, incomplete=0.5):
    """What is told where these are the probabilities of the bins: incomplete records are half of all at the initial point."""
    whole = np.append((1 - incomplete) * np.asarray(cells), incomplete)
    other = (1 - truth) / (len(whole) - 1)
    return other + (truth - other) * whole


def open_ends(edges):
    return list(zip([-np.inf, *edges[1:-1]], [*edges[1:-1], np.inf], strict=True))


def regression(many, extra=None):
    with pm.Model() as model:
        x = pm.Normal("x", 0.3, 0.8, observed=np.zeros(many))
        mean = pm.Normal("a") + pm.Normal("b") * x
        if extra is not None:
            mean = mean + pm.Data("extra", extra)
        pm.StudentT("y", nu=3, mu=mean, sigma=0.7, observed=np.zeros(many))
    return model


def test_a_private_covariate_is_integrated_over_its_bin():
    """Against adaptive quadrature of another library; a bin's own probability is what the cells of it add up to."""

    def density(v, high):
        return stats.norm(0.3, 0.8).pdf(v) * np.diff(stats.t(3, 0.4 - 1.2 * v, 0.7).cdf(high))[0]

    pairs = product(open_ends(EDGES["x"]), open_ends(EDGES["y"]))
    cells = [quad(density, max(low, -8), min(high, 8), args=(of_y,))[0] for (low, high), of_y in pairs]
    assert sum(cells) == pytest.approx(1, abs=1e-9)
    found = told_as(regression, EDGES, {"a": 0.4, "b": -1.2})
    np.testing.assert_allclose(found, through(cells, 0.6), rtol=1e-7)
    assert found.sum() == pytest.approx(1, abs=1e-9)


def test_public_arrays_by_record_change_the_way_and_not_the_law():
    answers = truth_about(np.arange(10), EDGES)
    alike = pmdp.published(regression(10), answers)
    by_record = pmdp.published(regression(10, np.zeros(10)), RandomisedAnswers(EDGES, answers.told, 0.6, pmdp.Cost(1), public=("extra",)))
    point = {"a": 0.4, "b": -1.2, "x_y_told_incomplete_logodds__": 0.3}
    logs = [model.compile_logp(mode="FAST_COMPILE")(point) for model in (alike, by_record)]
    assert logs[0] == pytest.approx(logs[1], rel=1e-12)
    moved = regression(10, np.arange(10) / 5)
    moved = pmdp.published(moved, RandomisedAnswers(EDGES, answers.told, 0.6, pmdp.Cost(1), public=("extra",)))
    assert moved.compile_logp(mode="FAST_COMPILE")(point) != pytest.approx(logs[0], rel=1e-3)


def poisson_mixture(many):
    with pm.Model() as model:
        kind = pm.Bernoulli("x", pm.Beta("share", 1, 1), observed=np.zeros(many, dtype=int))
        pm.Poisson("y", pm.math.exp(0.2 + 0.9 * kind), observed=np.zeros(many, dtype=int))
    return model


def test_levels_and_counts():
    edges = {"x": (-0.5, 0.5, 1.5), "y": (-0.5, 0.5, 2.5, 4.0)}
    cells = [
        (0.7, 0.3)[kind] * np.diff(stats.poisson(np.exp(0.2 + 0.9 * kind)).cdf(pair))[0]
        for kind in (0, 1)
        for pair in ((-1, 0), (0, 2), (2, np.inf))
    ]
    np.testing.assert_allclose(told_as(poisson_mixture, edges, {"share": 0.3}), through(cells, 0.6), rtol=1e-9)


def positive(many):
    with pm.Model() as model:
        x = pm.Gamma("x", 0.5, 1, observed=np.ones(many))
        pm.Mixture("y", [0.4, 0.6], [pm.Normal.dist(x, 1), pm.Normal.dist(-x, 2)], observed=np.zeros(many))
    return model


def test_densities_with_an_end_and_mixtures():
    """The density is infinite at 0, and no bin below it has any probability."""
    edges = {"x": (-9.0, -1.0, 0.5, 9.0), "y": EDGES["y"]}

    def density(u, high):  # of the square root of x
        y = 0.4 * stats.norm(u**2, 1).cdf(high) + 0.6 * stats.norm(-(u**2), 2).cdf(high)
        return 2 * u * stats.gamma(0.5).pdf(u**2) * np.diff(y)[0]

    pairs = product(open_ends(edges["x"]), open_ends(edges["y"]))
    cells = [quad(density, max(low, 0) ** 0.5, np.clip(high, 0, 40) ** 0.5, args=(np.array(of_y),))[0] for (low, high), of_y in pairs]
    np.testing.assert_allclose(told_as(positive, edges, {}), through(cells, 0.6), rtol=1e-6)


def outcomes_alone(many):
    with pm.Model() as model:
        pm.StudentT("x", nu=3, mu=0.2, sigma=0.7, observed=np.zeros(many))
        pm.Bernoulli("y", 0.3, observed=np.zeros(many, dtype=int))
    return model


def test_outcomes_on_which_nothing_rests():
    edges = {"x": EDGES["x"], "y": (-0.5, 0.5, 1.5)}
    cells = np.outer(np.diff(stats.t(3, 0.2, 0.7).cdf([-np.inf, -0.5, 0.4, np.inf])), [0.7, 0.3]).ravel()
    np.testing.assert_allclose(told_as(outcomes_alone, edges, {}), through(cells, 0.6), rtol=1e-9)


def measured_twice(many):
    with pm.Model() as model:
        true = pm.Normal("true", 0, 1, shape=many)
        pm.Normal("x", true, 0.5, observed=np.zeros(many))
        pm.Normal("y", 1 - true, 0.7, observed=np.zeros(many))
    return model


def test_unknowns_by_record():
    """True values behind measured ones: given these, both are independent."""
    true = np.linspace(-1, 1, 10)
    shares = [
        np.diff(stats.norm(mean, sd).cdf(np.array(open_ends(EDGES[name]))), axis=1)[:, 0]
        for t in true
        for name, mean, sd in (("x", t, 0.5), ("y", 1 - t, 0.7))
    ]
    each = [np.outer(x, y).ravel() for x, y in zip(shares[::2], shares[1::2], strict=True)]
    wanted = [through(cells, 0.6)[level] for level, cells in enumerate(each)]
    np.testing.assert_allclose(told_as(measured_twice, EDGES, {"true": true}), wanted, rtol=1e-7)


def far_tails(many):
    with pm.Model() as model:
        x = pm.Cauchy("x", 0, 1, observed=np.zeros(many))
        pm.Poisson("y", pm.math.exp(pm.Normal("a") * x), observed=np.zeros(many, dtype=int))
    return model


@pytest.mark.parametrize("slope", [0.5, 50.0, -50.0])
def test_derivatives_are_numbers_where_a_bin_has_no_probability(slope):
    """So that a sampler can start anywhere: Poisson means of exp(600) and exp(-600) are among them."""
    edges = {"x": (-4.0, -1.0, 1.0, 4.0), "y": (-0.5, 0.5, 2.5, 4.0)}
    private = pmdp.published(far_tails(10), truth_about(np.arange(10), edges))
    point = private.initial_point() | {"a": np.array(slope)}
    assert np.isfinite(private.compile_dlogp(mode="FAST_COMPILE")(point)).all()


# ---------- refusals come before the charge


def mean_of_all(many):
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, observed=np.zeros(many))
        pm.Normal("y", pm.Normal("a") + x.mean(), 1, observed=np.zeros(many))
    return model


def with_potential(many):
    model = regression(many)
    with model:
        pm.Potential("p", model["x"].sum())
    return model


def with_jumps(many):
    with pm.Model() as model:
        x = pm.Uniform("x", 0, 1, observed=np.zeros(many))
        pm.Normal("y", pm.Normal("a") * x, 1, observed=np.zeros(many))
    return model


def with_array(many):
    with pm.Model() as model:
        pm.Normal("x", pm.Normal("a") * np.arange(many), 1, observed=np.zeros(many))
        pm.Normal("y", 0, 1, observed=np.zeros(many))
    return model


def without_distribution(many):
    with pm.Model() as model:
        pm.Normal("x", pm.Normal("a"), 1, observed=np.zeros(many))
        pm.SkewNormal("y", mu=0, sigma=1, alpha=1, observed=np.zeros(many))
    return model


def in_columns(many):
    with pm.Model() as model:
        pm.Normal("x", pm.Normal("a"), 1, observed=np.zeros((many, 1)))
        pm.Normal("y", 0, 1, observed=np.zeros(many))
    return model


BINS = {"x": pmdp.Bins(-2, 2, 3), "y": pmdp.Bins(-2, 2, 3)}
REFUSED = {
    "mean": (mean_of_all, {}, "record by record"),
    "potential": (with_potential, {}, "rests on x"),
    "jumps": (with_jumps, {}, "integrated over a bin"),
    "array": (with_array, {}, "as long as the records"),
    "not public": (lambda many: regression(many, np.zeros(many)), {}, "not said to be public"),
    "no logcdf": (without_distribution, {}, "no distribution function"),
    "columns": (in_columns, {}, "one number of every record"),
    "another length": (lambda many: regression(many + 1), {}, "one number of every record"),
    "add_remove": (regression, {"neighbours": "add_remove"}, "the number of records is public"),
    "person": (regression, {"unit": pmdp.Person("x", at_most=2)}, "pays by itself"),
    "no bounds": (regression, {"bounds": {"x": BINS["x"]}}, "y needs bins"),
    "pairs": (regression, {"bounds": BINS | {"y": (0, 3)}}, "y needs bins"),
    "unknown": (regression, {"bounds": BINS | {"z": BINS["x"]}}, "is not observed"),
    "levels": (regression, {"bounds": {"x": pmdp.Bins(-2, 2, 100), "y": pmdp.Bins(-2, 2, 100)}}, "more than"),
    "epsilon": (regression, {"epsilon": 1e-18}, "larger epsilon"),
    "no column": (regression, {"data": pd.DataFrame({"x": np.zeros(8)})}, "y"),
    "no rows": (regression, {"data": pd.DataFrame({"x": [], "y": []})}, "no records"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_come_before_the_charge(case, tmp_path):
    make, words, said = REFUSED[case]
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=5, create=True)
    call = {"data": pd.DataFrame({"x": np.zeros(8), "y": np.zeros(8)}), "bounds": BINS, "epsilon": 2.0, "ledger": ledger} | words
    with pytest.raises(pmdp.Refusal, match=said):
        pmdp.randomise(make(8), **call)
    assert ledger.remaining().epsilon == 5


@pytest.mark.parametrize("value", [np.nan, np.inf, None, "text", 1e300, 0.0])
def test_acceptance_rests_on_no_record(value, tmp_path):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=5, create=True)
    data = pd.DataFrame({"x": [0.0, 1, 2, value], "y": [value, 0.0, 1, 2]}, dtype=object)
    answers = pmdp.randomise(regression(4), data=data, bounds=BINS, epsilon=2.0, ledger=ledger)
    assert answers.told.shape == (4,)
    assert ledger.remaining().epsilon == 3
    assert answers.ledger_head == ledger.head


@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
@pytest.mark.parametrize("value", [1.0, 2.0, np.nan, np.inf])
def test_a_model_that_observes_records_is_refused_in_the_same_words(value, tmp_path):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("a"), 1, observed=np.array([0.0, 1.0, 2.0, value]))
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=5, create=True)
    data = pd.DataFrame({"y": np.zeros(4)})
    with pytest.raises(pmdp.Refusal) as refusal:
        pmdp.randomise(model, data=data, bounds={"y": BINS["y"]}, epsilon=2.0, ledger=ledger)
    said = "This model observes records. Write observed=np.zeros(N) in their place, and the records in data=."
    assert str(refusal.value) == said
    assert ledger.remaining().epsilon == 5


# ---------- nothing of a record is left


def with_records(many):
    """A model that holds records where it need not: as what it observes, in data, in labels and in initial values."""
    values = np.linspace(0, 1, many)
    values[2] = REAL
    with pm.Model(coords={"record": values, "unused": values[:3]}) as model:
        x = pm.Normal("x", 0, 1, observed=pm.Data("held", values), dims="record")
        pm.Data("left", values[:4])
        each = pm.Normal("each", 0, 1, dims="record", initval=values)
        pm.Normal("y", pm.Normal("a") + x + each, 1, observed=values)
    return model, pd.DataFrame({"x": values, "y": values})


def test_nothing_of_a_record_is_in_the_answers_or_in_the_private_model():
    model, data = with_records(8)
    answers = pmdp.randomise(regression(8), data=data, bounds=BINS, epsilon=2.0)
    private = pmdp.published(model, answers)
    assert np.float64(REAL).tobytes() in cloudpickle.dumps(model)
    for kept in (answers, private):
        assert np.float64(REAL).tobytes() not in cloudpickle.dumps(kept)
    assert private.initial_point()["each"].shape == (8,)


def test_a_private_model_is_sampled_and_says_what_it_cost():
    data = pd.DataFrame({"x": np.linspace(-2, 2, 40), "y": np.linspace(-2, 2, 40)})
    answers = pmdp.randomise(regression(40), data=data, bounds=BINS, epsilon=6.0)
    private = pmdp.published(regression(40), answers)
    tree = pmdp.sample(20, tune=20, chains=1, model=private, progressbar=False, random_seed=1, compute_convergence_checks=False)
    assert "epsilon 6" in tree.posterior.attrs["promise"]
    assert tree["privacy"].attrs["mechanism"] == "randomised response"
    assert "17 levels" not in repr(answers)
    assert "10 levels" in repr(answers)


def test_the_number_of_bins_grows_with_epsilon_and_shrinks_with_values():
    assert [chosen(epsilon, 1) for epsilon in (0.5, 4, 6, 100)] == [5, 7, 13, 24]
    assert [chosen(epsilon, 2) for epsilon in (0.5, 4, 6, 100)] == [3, 5, 8, 12]
    assert chosen(4, 3) == 3


def test_a_file_holds_what_the_answers_hold(tmp_path):
    records = pd.DataFrame({"x": np.linspace(-1, 1, 40), "y": np.linspace(2, -2, 40)})
    ledger = pmdp.Ledger(tmp_path / "it.ledger", epsilon=5, unit="patient", create=True)
    bounds = {name: pmdp.Bins(edges=edges) for name, edges in EDGES.items()}
    answers = pmdp.randomise(regression(40), data=records, epsilon=Fraction(1, 3), bounds=bounds, unit="patient", ledger=ledger)
    answers.to_netcdf(tmp_path / "it.answers")
    again = RandomisedAnswers.from_netcdf(tmp_path / "it.answers")
    assert (again.edges, again.cost, again.truth, again.unit, again.public) == (EDGES, answers.cost, answers.truth, "patient", ())
    assert (again.ledger_head, again.versions, repr(again)) == (ledger.head, answers.versions, repr(answers))
    assert again.told.dtype == np.int64
    np.testing.assert_array_equal(again.told, answers.told)


def test_a_tree_of_draws_makes_the_private_model_again():
    answers = truth_about([3, 1, 9, 0], EDGES)
    private = pmdp.published(regression(4), answers)
    tree = pmdp.sample(
        20, tune=20, chains=1, model=private, nuts_sampler="pymc", compile_kwargs={"mode": "FAST_COMPILE"}, progressbar=False
    )
    again = pmdp.published(regression(4), tree)
    point = private.initial_point()
    assert again.compile_logp(mode="FAST_COMPILE")(point) == private.compile_logp(mode="FAST_COMPILE")(point)
    with pytest.raises(pmdp.Refusal, match=r"where records were randomised.* write pymc_dp.published again"):
        pmdp.private_model(tree, regression(4))


@pytest.mark.parametrize(
    ("attribute", "value"), [("mechanism", "laplace"), ("truth", 1.5), ("truth", 0.05), ("edges", '{"x": [1, 0]}'), ("epsilon", "much")]
)
def test_what_are_no_answers_is_refused(tmp_path, attribute, value):
    tree = truth_about([3, 1], EDGES).to_datatree()
    assert RandomisedAnswers.from_datatree(tree).levels == 10
    tree.attrs[attribute] = value
    with pytest.raises(pmdp.Refusal, match="holds no answers that this version can read"):
        RandomisedAnswers.from_datatree(tree)
    with pytest.raises(pmdp.Refusal, match="holds no answers"):
        RandomisedAnswers.from_datatree(tree.to_dataset())
    tree = truth_about([3, 10], EDGES).to_datatree()
    with pytest.raises(pmdp.Refusal, match="holds no answers"):
        RandomisedAnswers.from_datatree(tree)


def test_a_damaged_file_of_answers_is_refused(tmp_path):
    path = tmp_path / "it.answers"
    truth_about([3, 1], EDGES).to_netcdf(path)
    whole = path.read_bytes()
    for place in (0, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(pmdp.Refusal, match="This file holds no answers that this version wrote, or it is damaged"):
            RandomisedAnswers.from_netcdf(path)
    path.write_bytes(whole)
    with pytest.raises(pmdp.Refusal, match="This file holds no release"):
        pmdp.Release.from_netcdf(path)
