"""The rewritten model is the user's: same unknowns, same likelihood at exact statistics, nothing of the records."""

import itertools
import warnings

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import mostly_slow, pickled, seam_of
from models import EVERY_MODEL, SPELLINGS, categorical_table, indexed_by_data, missing_values, records, several_observed
from pymc.exceptions import ImputationWarning
from pymc.model.transform.conditioning import remove_value_transforms
from pytensor.graph.basic import Constant
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors
from scipy.special import logsumexp
from scipy.stats import beta, binom, gamma, multinomial, norm, t

import pymc_dp as pmdp
from pymc_dp.private_models.size_priors import LogFromStart, LogitFromStart, Shares
from pymc_dp.private_models.sizes import shares_near


def name_of(make):
    return make.__name__


def log_density(model):
    return model.compile_logp(mode="FAST_COMPILE", jacobian=False)


def points(model, count=5):
    """Unconstrained points around the initial one."""
    rng = np.random.default_rng(8)
    start = model.initial_point(random_seed=1)
    return [{name: value + 0.4 * rng.normal(size=value.shape) for name, value in start.items()} for _ in range(count)]


@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
@pytest.mark.parametrize("make", SPELLINGS, ids=name_of)
def test_likelihood_at_exact_statistics_is_the_user_s_up_to_a_constant(make, exact_seam):
    """Values inside the bounds and noise frozen at 0: at five points the log-densities differ by one constant."""
    model, arguments = make()
    private = pmdp.rewrite(model, pmdp.release(model, epsilon=1e9, **arguments), noise_aware=False)
    theirs, ours = log_density(model), log_density(private)
    differences = [theirs(point) - ours(point) for point in points(model)]
    np.testing.assert_allclose(differences, differences[0], rtol=1e-9, atol=1e-6)


@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
@pytest.mark.parametrize("make", EVERY_MODEL, ids=name_of)
def test_names_dims_transforms_initial_values_and_order_survive(make):
    model, arguments = make()
    private = pmdp.rewrite(model, pmdp.release(model, epsilon=1.0, **arguments))
    free = [rv for rv in model.free_RVs if not rv.name.endswith("_unobserved")]
    kept = [rv for rv in private.free_RVs if not rv.name.endswith("_noise")]
    assert [rv.name for rv in kept] == [rv.name for rv in free]
    for mine, yours in zip(kept, free):
        # PyMC 6.3 keeps lists here and 6.4 tuples.
        assert tuple(private.named_vars_to_dims.get(mine.name, ())) == tuple(model.named_vars_to_dims.get(yours.name, ()))
        assert type(private.rvs_to_transforms[mine]) is type(model.rvs_to_transforms[yours])
        assert str(private.rvs_to_initial_values[mine]) == str(model.rvs_to_initial_values[yours])
        assert private.rvs_to_values[mine].name == model.rvs_to_values[yours].name
        for dim in model.named_vars_to_dims.get(yours.name) or ():
            assert private.coords[dim] == model.coords[dim]
    assert sorted(rv.name for rv in private.observed_RVs) == sorted(one.variable for one in private.privacy.statistics)


@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
@pytest.mark.parametrize("make", EVERY_MODEL, ids=name_of)
@pytest.mark.parametrize("rows", mostly_slow([6, 61], 0))
def test_dummy_rows_of_any_length_give_the_same_model(make, rows):
    """``rewrite`` takes a model for its shape only."""
    model, arguments = make()
    released = pmdp.release(model, epsilon=1.0, **arguments)
    dummy, _ = make(rows, seed=99)
    first, second = pmdp.rewrite(model, released), pmdp.rewrite(dummy, released)
    ours, theirs = log_density(first), log_density(second)
    for point in points(first, 2):
        assert ours(point) == pytest.approx(theirs(point), rel=1e-12)
    assert first.coords == second.coords
    assert set(first.named_vars) == set(second.named_vars)


def test_a_single_dummy_row_is_enough():
    model, arguments = indexed_by_data()
    released = pmdp.release(model, epsilon=1.0, **arguments)
    first, second = pmdp.rewrite(model, released), pmdp.rewrite(indexed_by_data(1)[0], released)
    point = points(first, 1)[0]
    assert log_density(first)(point) == pytest.approx(log_density(second)(point), rel=1e-12)


def test_exact_statistics_are_those_of_the_cells(exact_seam):
    model, arguments = categorical_table(n=90)
    released = pmdp.release(model, epsilon=1.0, **arguments)
    r = records(90)
    expected = [[np.sum((r["g"] == g) & (r["c"] == c)) for c in range(4)] for g in range(3)]
    np.testing.assert_array_equal(released["c"].noisy, expected)
    np.testing.assert_array_equal(released["c"].n, [30, 30, 30])


@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
def test_missing_values_become_the_public_fill(exact_seam):
    """Half-way between -4 and 8 is 2, which is u = 0: missing values leave sum u and sum u² alone, and are counted."""
    model, arguments = missing_values()
    released = pmdp.release(model, epsilon=1.0, **arguments)
    r = records(60)
    u = np.where(np.arange(60) % 7 == 0, 0, (r["x"] - 2) / 6)
    np.testing.assert_allclose(released["x"].values[:, 0], [u[r["g"] == g].sum() for g in range(3)], atol=1e-3)
    np.testing.assert_allclose(released["x"].values[:, 1], [(u**2)[r["g"] == g].sum() for g in range(3)], atol=1e-3)
    np.testing.assert_array_equal(released["x"].n, [20, 20, 20])


def test_missing_values_in_a_table_of_columns(exact_seam):
    Y = np.where(np.arange(40).reshape(20, 2) % 9 == 0, np.nan, records(20)["Y"])
    with warnings.catch_warnings(), pm.Model() as model:
        warnings.simplefilter("ignore")
        pm.Bernoulli("Y", pm.Beta("p", 1, 1, shape=2), observed=Y)
    released = pmdp.release(model, epsilon=1.0)
    np.testing.assert_array_equal(released["Y"].noisy[0, :, 0], np.nansum(Y, axis=0))
    assert pmdp.rewrite(model, released)["Y"].eval().shape == (1, 2, 1)


def test_what_rests_on_records_is_dropped_and_listed():
    model, arguments = indexed_by_data()
    private = pmdp.privatize(model, epsilon=1.0, **arguments)
    assert {"p", "g"} & set(private.named_vars) == set()
    assert "spread" in private.named_vars
    assert "person" not in private.coords
    assert {"p", "g", "person"} <= set(pmdp.inspect(model, **arguments).dropped)
    assert private.coords["y_cell"] == ("a", "b", "c")


def test_a_public_array_for_predictions_survives():
    with pm.Model(coords={"new": [10, 20]}) as model:
        grid = pm.Data("grid", [0.0, 1.0], dims="new")
        b = pm.Normal("b")
        pm.Deterministic("prediction", b * grid, dims="new")
        pm.Bernoulli("y", logit_p=b, observed=[0, 1, 1])
    assert "prediction" not in pmdp.privatize(model, epsilon=1.0).named_vars
    kept = pmdp.privatize(model, epsilon=1.0, public=["grid"])
    assert {"prediction", "grid"} <= set(kept.named_vars)
    assert kept.coords["new"] == (10, 20)


@pytest.mark.parametrize("new", [pm.Data, lambda name, values: values], ids=["named", "written into the model"])
def test_predictions_of_new_people_are_dropped_with_their_covariates(new):
    """A free variable that nothing observed rests on is no prior: what it is computed from was not declared, and may hold people."""
    x, fresh = np.linspace(-1, 1, 40), np.array([0.3125, -0.4375, 0.8125])
    with pm.Model() as model:
        a, b = pm.Normal("a", np.array([1.0, 2.0]), shape=2), pm.Normal("b")
        pm.Normal("y", a[0] + b * pm.Data("x", x), 1, observed=x)
        ahead = pm.Normal("ahead", a[1] + b * new("fresh", fresh), 1)
        pm.Deterministic("mean_ahead", ahead.mean())
        pm.Normal("someone", a[0], 1)
    bounds = {"bounds": {"y": (-1, 1), "x": (-1, 1)}}
    inspected = pmdp.inspect(model, **bounds)
    assert {"ahead", "mean_ahead"} <= set(inspected.dropped)
    assert not any("(3,)" in said for said in inspected.stays)
    private = pmdp.privatize(model, epsilon=1.0, **bounds)
    assert {"a", "b", "someone"} <= set(private.named_vars)
    assert not {"ahead", "mean_ahead", "fresh"} & set(private.named_vars)
    assert fresh.tobytes() not in pickled(private)[0]
    if new is pm.Data:
        assert {"ahead", "mean_ahead", "fresh"} <= set(pmdp.privatize(model, epsilon=1.0, public=["fresh"], **bounds).named_vars)


def test_replications_of_the_records_are_dropped():
    """They rest on private covariates, or on what was observed, and have a row per record."""
    x = np.linspace(-1, 1, 40)
    with pm.Model(coords={"person": range(40)}) as model:
        mu = pm.Normal("a") + pm.Normal("b") * pm.Data("x", x, dims="person")
        y = pm.Normal("y", mu, 1, observed=x, dims="person")
        pm.Normal("again", mu, 1, dims="person")
        pm.Normal("next_year", y, 1, shape=40)
    bounds = {"bounds": {"y": (-1, 1), "x": (-1, 1)}}
    assert {"again", "next_year"} <= set(pmdp.inspect(model, **bounds).dropped)
    assert {variable.name for variable in pmdp.privatize(model, epsilon=1.0, **bounds).free_RVs} == {"a", "b", "y_noise"}


def test_a_model_of_another_shape_is_refused():
    model, arguments = indexed_by_data()
    released = pmdp.release(model, epsilon=1.0, **arguments)
    with pytest.raises(pmdp.Refusal, match="another shape"):
        pmdp.rewrite(several_observed()[0], released)


def test_the_user_s_model_is_left_as_it_was():
    model, arguments = several_observed()
    before = log_density(model)(points(model)[0])
    initial = dict(model.rvs_to_initial_values)
    pmdp.privatize(model, epsilon=1.0, **arguments)
    assert model.rvs_to_initial_values == initial
    assert log_density(model)(points(model)[0]) == before
    assert set(model.named_vars) == set(several_observed()[0].named_vars)


def test_the_model_in_context_is_the_default():
    model, arguments = indexed_by_data()
    with model:
        private = pmdp.privatize(epsilon=1.0, **arguments)
    assert private.privacy.epsilon == 1
    with pytest.raises(pmdp.Refusal, match="no model"):
        pmdp.release(epsilon=1.0)


@pytest.mark.parametrize("door", [pmdp.sample, pmdp.privatize])
def test_noise_aware_is_true_or_false_before_anything_is_paid_for(door, monkeypatch):
    model, arguments = indexed_by_data()
    monkeypatch.setattr("pymc_dp.releases.from_records.receipt_for", lambda *_, **__: pytest.fail("it was paid for"))
    with pytest.raises(pmdp.Refusal, match="noise_aware must be True or False"):
        door(model=model, epsilon=1.0, noise_aware="no", **arguments)


NOISES = [{}, {"mechanism": "gaussian", "delta": 1e-6}]


def released_log_density(model, released, points):
    """Log-density of the released statistics alone, one cell an entry, at unconstrained points."""
    private = pmdp.rewrite(model, released)
    compiled = private.compile_logp(vars=private.observed_RVs, sum=False, mode="FAST_COMPILE")
    return np.array([compiled(point)[0].ravel() for point in points])


def log_kernel(released, counts):
    """Log-probability of the noise that leads from each count to the released value: (cells, K, counts)."""
    slope, curve, constant = released.noise.kernel
    distance = released.values[..., None] - counts
    return slope * np.abs(distance) + curve * distance**2 + constant


@pytest.mark.parametrize("noise", NOISES, ids=["laplace", "gaussian"])
def test_totals_with_their_own_numbers_of_trials_have_the_law_of_a_sum_over_all_counts(noise):
    trials = np.array([50, 80, 120, 300])
    with pm.Model() as model:
        pm.Binomial("y", pm.Data("n", trials), pm.Beta("p", 1, 1, shape=4), observed=trials // 3)
    released = pmdp.release(model, epsilon=1, unit="individual", public=["n"], **noise)
    shares = [0.2, 0.4, 0.7]
    ours = released_log_density(model, released, [{"p_logodds__": np.full(4, np.log(p / (1 - p)))} for p in shares])
    counts = np.arange(301.0)
    kernel = log_kernel(released["y"], counts)[:, 0]
    wanted = [logsumexp(binom.logpmf(counts, trials[:, None], p) + kernel, axis=1) for p in shares]
    assert np.allclose(ours, wanted, atol=1e-8)


@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("noise", NOISES, ids=["laplace", "gaussian"])
def test_counts_of_rows_with_their_own_numbers_of_trials_have_the_law_of_a_sum_over_all_counts(noise, levels):
    trials = np.array([3, 8, 20])
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(levels))
        pm.Multinomial("y", pm.Data("n", trials), p, observed=multinomial.rvs(20, np.ones(levels) / levels, 3, random_state=1))
    released = pmdp.release(model, epsilon=2, unit="individual", public=["n"], **noise)
    shares = np.random.default_rng(1).dirichlet(np.ones(levels), 5)
    forward = model.rvs_to_transforms[model["p"]].forward
    ours = released_log_density(model, released, [{"p_simplex__": forward(pm.math.constant(share)).eval()} for share in shares])
    slope, curve, constant = released["y"].noise.kernel
    wanted = []
    for n, values in zip(trials, released["y"].values, strict=True):
        possible = np.array([counts for counts in itertools.product(range(n + 1), repeat=levels) if sum(counts) == n])
        distance = values - possible[:, -len(values) :]
        kernel = (slope * np.abs(distance) + curve * distance**2 + constant).sum(axis=1)
        wanted.append([logsumexp(multinomial.logpmf(possible, n, share) + kernel) for share in shares])
    np.testing.assert_allclose(ours, np.transpose(wanted), atol=1e-6)


@pytest.mark.parametrize("sigma", ["known", "unknown"])
@pytest.mark.parametrize("noise", NOISES, ids=["laplace", "gaussian"])
def test_values_of_rows_have_the_law_of_an_integral_over_all_values(noise, sigma):
    """In the private model each value is normal, unless it is clamped, and the noise is added to it."""
    errors = np.array([15.0, 10, 16])
    with pm.Model() as model:
        theta = pm.Normal("theta", 0, 20, shape=3)
        pm.Normal("y", theta, pm.Data("errors", errors) if sigma == "known" else pm.HalfFlat("sigma"), observed=[28.0, 8, -3])
    unit = pmdp.Individual(moves=2.5)
    released = pmdp.release(model, epsilon=1, unit=unit, public=["errors"] if sigma == "known" else [], bounds={"y": (-200, 200)}, **noise)
    rng, of = np.random.default_rng(1), released["y"]
    places, spreads = rng.normal(10, 15, (6, 3)), rng.uniform(3, 20, 6)
    at = [{"theta": place} | ({} if sigma == "known" else {"sigma_log__": np.log(s)}) for place, s in zip(places, spreads, strict=True)]
    ours = released_log_density(model, released, at)
    u = np.linspace(-1, 1, 2**16 + 1)
    slope, curve, constant = of.noise.kernel
    distance = of.values - u
    kernel = slope * np.abs(distance) + curve * distance**2 + constant
    wanted = [
        [logsumexp(kernel[k] + norm.logpdf(200 * u, place[k], errors[k] if sigma == "known" else spread)) for k in range(3)]
        for place, spread in zip(places, spreads, strict=True)
    ]
    differences = np.asarray(ours) - np.array(wanted)
    np.testing.assert_allclose(differences, np.broadcast_to(differences[:1], differences.shape), atol=1e-4)


ROWS = {
    "StudentT": (
        lambda a: pm.StudentT("y", nu=4, mu=a, sigma=3.0, observed=ROW_VALUES), lambda a: t(4, a, 3.0),
        30 + np.sinh(np.linspace(-12, 12, 640_001)),
    ),
    "Gamma": (
        lambda a: pm.Gamma("y", alpha=1.5, beta=1.5 / pm.math.exp(a / 20), observed=ROW_VALUES),
        lambda a: gamma(1.5, scale=np.exp(a / 20) / 1.5), np.geomspace(1e-9, 1e3, 200_001),
    ),
    "Beta": (
        lambda a: pm.Beta("y", 2.0, pm.math.exp(a / 20), observed=ROW_VALUES / 100), lambda a: beta(2.0, np.exp(a / 20)),
        np.linspace(0, 1, 200_002)[1:-1],
    ),
}  # fmt: skip
"""Distributions of rows, the same by SciPy, and points over which they are integrated."""
ROW_VALUES = np.array([2.0, 31, 58])


@pytest.mark.parametrize("epsilon", [1.0, 30.0])
@pytest.mark.parametrize("noise", NOISES, ids=["laplace", "gaussian"])
@pytest.mark.parametrize("which", ROWS)
def test_values_that_are_unknowns_integrate_to_the_law_of_what_is_released(which, noise, epsilon):
    """Over the exact value of every row: its distribution, clamped where it lies beyond the bounds, and the noise on it."""
    observe, of_scipy, grid = ROWS[which]
    with pm.Model() as model:
        observe(pm.Flat("a", shape=3))
    bounds = (0, 0.6) if which == "Beta" else (0, 60)
    unit = pmdp.Individual(moves=bounds[1] / 30, membership="public")
    private = pmdp.privatize(model, epsilon=epsilon, unit=unit, bounds={"y": bounds}, **noise)
    of = private.privacy["y"]
    value, many = private.rvs_to_values[private["y_noise"]], pt.dmatrix("many")
    density = sum(term for term in private.logp(vars=[private["y"], private["y_noise"]], sum=False))
    place = private.rvs_to_values[private["a"]]
    both = pytensor.function([place, many], vectorize_graph(density, {value: many}))
    seen = np.concatenate([-np.geomspace(1e-6, 1e3, 3_000)[::-1], np.geomspace(1e-6, 1e3, 3_000)])  # the kink of the noise is near 0
    seen = np.unique(np.concatenate([seen, np.linspace(-80, 80, 12_001)]))
    slope, curve, constant = of.noise.kernel
    differences = []
    for a in np.random.default_rng(1).normal(45, 10, (4, 3)):
        ours = np.log(np.trapezoid(np.exp(both(a, np.repeat(seen[:, None], 3, axis=1))), seen, axis=0))
        u = np.clip((grid - bounds[1] / 2) / (bounds[1] / 2), -1, 1)
        distance = of.values - u
        kernel = slope * np.abs(distance) + curve * distance**2 + constant
        wanted = np.log(np.trapezoid(np.exp(kernel + of_scipy(a[:, None]).logpdf(grid)), grid, axis=1))
        differences.append(ours - wanted)
    np.testing.assert_allclose(differences, np.broadcast_to(differences[:1], np.shape(differences)), atol=2e-3)


@pytest.mark.parametrize(
    ("of", "unit"),
    [(lambda p: pm.Binomial.dist(5, p), pmdp.Individual()), (lambda p: pm.Poisson.dist(3 * p), pmdp.Individual(events=2))],
    ids=["binomial", "poisson"],
)
def test_totals_of_a_number_of_trials_that_the_model_holds_have_the_model_s_own_density(of, unit, exact_seam):
    """A total lies between 0 and 5 by the model; what is released of it is not kept there."""
    y = np.array([0, 1, 1, 0])
    with pm.Model() as model:
        model.register_rv(of(pm.Beta("p", 1, 1, shape=4)), "y", observed=y)
    private = pmdp.privatize(model, epsilon=1e9, unit=unit)
    theirs, ours = log_density(model), log_density(private)
    differences = [theirs(point) - ours(point) for point in points(model)]
    np.testing.assert_allclose(differences, differences[0], rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("noise", NOISES, ids=["laplace", "gaussian"])
def test_records_of_several_trials_have_the_law_of_a_sum_over_all_counts(noise):
    rng = np.random.default_rng(2)
    with pm.Model() as model:
        pm.Binomial("y", 5, pm.Beta("p", 1, 1), observed=rng.binomial(5, 0.3, 50))
    released = pmdp.release(model, epsilon=0.3, **noise)
    shares = [0.1, 0.3, 0.5, 0.8]
    ours = released_log_density(model, released, [{"p_logodds__": np.log(p / (1 - p))} for p in shares])
    counts = np.arange(251.0)
    wanted = [[logsumexp(binom.logpmf(counts, 250, p) + log_kernel(released["y"], counts)[0, 0])] for p in shares]
    assert np.allclose(np.diff(ours, axis=0), np.diff(wanted, axis=0), atol=5e-3)  # .001 where noise is far out


@pytest.mark.parametrize("noise", NOISES, ids=["laplace", "gaussian"])
def test_records_of_several_trials_in_several_levels_have_the_law_of_a_sum_over_all_counts(noise):
    rng = np.random.default_rng(2)
    with pm.Model() as model:
        pm.Multinomial("y", 5, pm.Dirichlet("p", np.ones(3)), observed=rng.multinomial(5, [0.3, 0.3, 0.4], 50))
    released = pmdp.release(model, epsilon=4, **noise)
    points = [{"p_simplex__": np.array(point)} for point in ([0.0, 0.0], [0.3, -0.2], [-0.5, 0.4])]
    ours = released_log_density(model, released, points)
    counts = np.arange(251.0)
    kernel = log_kernel(released["y"], counts)[0]
    first, second = np.meshgrid(counts, counts, indexing="ij")
    inside = first + second <= 250
    third = np.where(inside, 250 - first - second, 0).astype(int)
    wanted = []
    for point in points:
        p = pm.distributions.transforms.simplex.backward(pt.constant(point["p_simplex__"])).eval()
        terms = multinomial.logpmf(np.stack([first, second, third], axis=-1), 250, p)
        terms = terms + kernel[0][:, None] + kernel[1] + kernel[2][third]
        wanted.append([logsumexp(terms[inside])])
    assert np.allclose(np.diff(ours, axis=0), np.diff(wanted, axis=0), atol=5e-3)  # .001 where noise is far out


@pytest.mark.parametrize("noise", NOISES, ids=["laplace", "gaussian"])
@pytest.mark.parametrize(("records", "epsilon"), [(50, 0.05), (1000, 0.3), (30_000, 5)])
def test_where_records_come_and_go_gradients_are_those_of_the_log_density(records, epsilon, noise):
    """Numbers of records are variables there: in every form of the law, central differences agree with the gradient."""
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.arange(records) % 3 == 0)
    private = pmdp.rewrite(model, pmdp.release(model, epsilon=epsilon, neighbours="add_remove", **noise))
    slope, density = private.compile_dlogp(mode="FAST_COMPILE"), private.compile_logp(mode="FAST_COMPILE")
    start = {name: np.asarray(value, dtype=float) for name, value in private.initial_point().items()}
    wanted = []
    for name, value in start.items():
        for k in range(value.size):
            step = (1e-5 * (np.arange(value.size) == k)).reshape(value.shape)
            wanted.append((density(start | {name: value + step}) - density(start | {name: value - step})) / 2e-5)
    assert np.allclose(slope(start), wanted, rtol=1e-4, atol=1e-4)


def test_shares_and_their_logits_are_one_to_one():
    """There and back, and the determinant of the derivatives, by differences."""
    rng = np.random.default_rng(0)
    shares, near = rng.dirichlet(np.ones(4), 3), np.stack([rng.normal(size=(3, 3)), rng.uniform(0.1, 2, (3, 3))], axis=-1)
    transform, value, inputs = Shares(), pt.matrix("value", shape=(3, 3)), (pt.constant(near), pt.constant(0))
    logits = transform.forward(pt.constant(shares), *inputs).eval(mode="FAST_COMPILE")
    outputs = [transform.backward(value, *inputs), transform.log_jac_det(value, *inputs)]
    function = pytensor.function([value], outputs, mode="FAST_COMPILE")
    back, jacobian = function(logits)
    np.testing.assert_allclose(back, shares, rtol=1e-12)
    steps = 1e-6 * np.eye(3)
    moved = np.stack([(function(logits + step)[0] - function(logits - step)[0])[:, :-1] / 2e-6 for step in steps], axis=-1)
    np.testing.assert_allclose(jacobian, np.linalg.slogdet(moved)[1], atol=1e-7)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("what", ["copy", "do", "observe", "untransformed"])
def test_models_with_unknown_sizes_can_be_copied_and_conditioned(neighbours, what):
    """PyMC does neither with a model that has an ``initval``; sizes start where released values put them all the same."""
    rng = np.random.default_rng(0)
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1, shape=3)[pm.Data("g", np.repeat([0, 1, 2], [30, 20, 10]))]
        pm.Poisson("y", rate, observed=rng.poisson(2, 60))
    private = pmdp.privatize(model, epsilon=10**4, bounds={"y": (0, 9)}, neighbours=neighbours)
    values = {"rate": np.full(3, 2.0)}
    changed = {
        "copy": private.copy, "do": lambda: pm.do(private, values), "observe": lambda: pm.observe(private, values),
        "untransformed": lambda: remove_value_transforms(private, [private["y_size"]]),
    }[what]()  # fmt: skip
    start = changed.initial_point()
    assert np.isfinite(changed.compile_logp()(start))
    if what == "untransformed":
        records = 60 if neighbours == "replace" else 1
        np.testing.assert_allclose(records * np.squeeze(start["y_size"]), [30, 20, 10], atol=0.1)


@pytest.mark.parametrize("counted", [False, True])
def test_sizes_start_where_released_values_put_them(counted):
    """Under hardly any noise where the records are, and in steps of the noise, or of what counts move by; under much all alike."""
    sizes, rng = np.array([435, 60, 5, 0]), np.random.default_rng(0)
    group = np.repeat(np.arange(4), sizes)
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1, shape=4)[pm.Data("g", group)]
        pm.Poisson("y", rate, observed=rng.poisson(2, 500))
    clear, hidden = (pmdp.release(model, epsilon=epsilon, bounds={"y": (0, 9)})["y"] for epsilon in (10**3, 10**-4))
    shares, near = shares_near(clear, counted)
    noise = np.sqrt(2) * clear.noise.standard_deviation / 9
    sd = np.sqrt(noise**2 + counted * sizes)
    if not counted:
        np.testing.assert_allclose(500 * shares[0], sizes, atol=6 * noise)
        steps = np.sqrt((sd[:2] / sizes[:2]) ** 2 + np.array([3, 2]) * noise**2 / np.array([65, 5]) ** 2)
        np.testing.assert_allclose(near[0, :2, 1], steps, rtol=0.25)
    np.testing.assert_allclose(500 * shares[0], sizes, atol=max(6 * noise, 3 * counted))
    assert 0.3 < near[0, 2, 1] < 1.5  # five records and none
    shares, near = shares_near(hidden, counted)
    np.testing.assert_allclose(shares, 0.25, rtol=0.05)
    np.testing.assert_allclose(near[..., 0], 0, atol=0.1)
    np.testing.assert_allclose(near[..., 1], np.sqrt([[1 + 1 / 3, 1 + 1 / 2, 2]]), rtol=0.02)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0**6])
@pytest.mark.parametrize("kind", ["coming and going", "left out", "weights"])
def test_a_sampler_s_steps_of_a_size_are_as_long_as_what_is_told_of_it(kind, epsilon):
    """A unit of the sampler's coordinate changes the log-density by about its square: from noise that hides all to next to none."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=300), rng.normal(size=300)
    more = {"coming and going": {"neighbours": "add_remove"}, "left out": {"missing": {"y": "left out"}}, "weights": {}}[kind]
    bounds = {"x": (-4, 4), "logit(y)": (-4, 4)} if kind == "weights" else {"x": (-4, 4), "y": (-5, 5)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImputationWarning)
        with pm.Model() as model:
            eta = pm.Normal("a") + pm.Normal("b") * pm.Data("x", x)
            if kind == "weights":
                pm.Bernoulli("y", logit_p=eta, observed=(y + x > 0).astype(int))
            else:
                pm.Normal("y", eta, 1.0, observed=np.where(rng.random(300) < 0.3, np.nan, y) if kind == "left out" else y)
        with seam_of(0):  # noise of 0: what it might be, and so the sampler's units, rests on its law alone
            private = pmdp.rewrite(model, pmdp.release(model, epsilon=epsilon, bounds=bounds, **more))
    logp, start = private.compile_logp(mode="FAST_COMPILE"), private.initial_point()
    [size] = [name for name in start if "_size_" in name]
    # All else stays where it is, so products of features with the size move, too.
    below, here, above = (float(logp(start | {size: start[size] + step})) for step in (-1.0, 0.0, 1.0))
    assert max(below, above) < here + 5
    assert 0.02 < here - (below + above) / 2 < 10


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("link", [False, True])
def test_what_was_compiled_for_one_release_serves_the_next(link, neighbours):
    """No released number is a constant of the graph: data alone differ."""
    rng = np.random.default_rng(0)
    x, constants = rng.normal(size=60), []
    with pm.Model() as model:
        eta = pm.Normal("a") + pm.Normal("b") * pm.Data("x", x)
        pm.Bernoulli("y", logit_p=eta, observed=rng.integers(0, 2, 60)) if link else pm.Normal("y", eta, 1.0, observed=rng.normal(size=60))
    bounds = {"x": (-4, 4)} | ({"logit(y)": (-4, 4)} if link else {"y": (-5, 5)})
    for _ in range(2):
        private = pmdp.privatize(model, epsilon=1.0, bounds=bounds, neighbours=neighbours)
        constants.append(sorted(str(one.data) for one in ancestors([private.logp()]) if isinstance(one, Constant)))
    assert constants[0] == constants[1]


def test_shares_and_sizes_and_their_coordinates_are_one_to_one():
    """Backward undoes forward, and the volume is that of finite differences."""
    for transform, values in ((LogitFromStart(), np.array([1e-6, 0.2, 0.999])), (LogFromStart(), np.array([1e-3, 30.0, 1e9]))):
        inputs = np.array([0.3, 0.3, 0.9]), np.array([1.5, 0.01, 1e-9])
        there = transform.forward(pt.constant(values), *map(pt.constant, inputs))
        np.testing.assert_allclose(transform.backward(there, *map(pt.constant, inputs)).eval(), values, rtol=1e-6)
        x, step = np.array([0.7, -0.4, 1.1]), 1e-5
        ends = [transform.backward(pt.constant(x + side * step), *map(pt.constant, inputs)).eval() for side in (-1, 1)]
        volume = transform.log_jac_det(pt.constant(x), *map(pt.constant, inputs)).eval()
        np.testing.assert_allclose(np.log((ends[1] - ends[0]) / (2 * step))[:2], volume[:2], rtol=1e-6)
