"""Private covariates in bins: what is counted, how far a record moves it, what the private model makes of it, and what is refused."""

from itertools import combinations

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import EXACT, check_finite, check_no_records, log_density, mostly_slow, points, refused
from remedies import followed
from scipy import integrate, stats

import pymc_dp as pmdp
from pymc_dp.plans.bin_nodes import integers_of, middles_and_widths, nodes_of
from pymc_dp.plans.bins import FEWEST_OF_COVARIATE, MOST_OF_COVARIATE, MOST_OF_SEVERAL, UNKNOWN_OF_COVARIATE, default_covariate_bins
from pymc_dp.private_models.matching import difference
from pymc_dp.private_models.rewrite import spec_like
from pymc_dp.private_models.within_bins import AT_LEAST, STEEPEST, _differences, averaged, nodes_in
from pymc_dp.queries.from_release import counted
from pymc_dp.queries.schema import Schema
from pymc_dp.releases.release import Release

pytestmark = pytest.mark.filterwarnings("ignore")
N, EDGES, MOST = 83, (-1.5, -0.5, 0.25, 2.0), 5
"""Bins of unequal widths: the nearest middle of a bin is not always that of the bin that a value lies in."""
WILD = [-np.inf, -9.0, -1.5, -0.5, np.nextafter(-0.5, 0), -0.1, -0.05, 0.0, 0.25, np.nextafter(0.25, 1), 0.6, 2.0, 9.0, np.inf, np.nan]


def arrays(n=N, seed=3):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 0.8, n), np.minimum(rng.poisson(1.5, n), MOST), rng.integers(0, 2, n)


def regression(x, y, z=None, named=True):
    """Counts on a covariate, and on a treatment where there is one. PyMC has no data without numbers, but arrays."""
    with pm.Model() as model:
        eta = pm.Normal("a") + pm.Normal("b") * (pm.Data("x", x) if named else x)
        if z is not None:
            eta = eta + pm.Normal("c") * pm.Data("z", z)
        pm.NegativeBinomial("y", mu=pm.math.exp(eta), alpha=pm.Gamma("alpha", 2, 1), observed=y)
    return model


BOUNDS = {"x": pmdp.Bins(edges=EDGES), "y": (0, MOST)}


def exact_counts(x, y, most=MOST):
    """The counts of these records, where no noise is added: (bins, values)."""
    bounds = {"y:0": BOUNDS["x"], "y": (0, most)}
    return pmdp.release(regression(np.array(x), np.array(y), named=False), epsilon=1.0, bounds=bounds).statistics[0].noisy


# ---------- what is counted


def test_a_record_is_in_the_bin_of_its_covariate_whatever_it_holds(exact_seam):
    """An edge belongs to the bin below it; values beyond are in the outer bins; what is no number counts as the middle of all."""
    inner, middle = EDGES[1:-1], (EDGES[0] + EDGES[-1]) / 2
    counts = exact_counts(WILD, range(len(WILD)), most=len(WILD))
    places = [sum((middle if np.isnan(value) else value) > edge for edge in inner) for value in WILD]
    assert counts.argmax(axis=0).tolist()[: len(WILD)] == places
    assert (counts.sum(axis=0)[: len(WILD)] == 1).all()
    assert counts.sum() == len(WILD)


@pytest.mark.parametrize("neighbours", mostly_slow(["replace", "add_remove"], 0))
def test_no_record_moves_the_counts_by_more_than_is_paid_for(neighbours, exact_seam):
    """All pairs of records of a domain with every bin, every edge, values beyond and what is no number; some pair attains it."""
    values = [(x, y) for x in (-np.inf, -0.5, 0.25, np.nan) for y in (0, 99)]
    x, y = (np.array(column, dtype=float) for column in zip(*values, strict=True))
    row = pmdp.inspect(regression(x, y.astype(int), named=False), bounds={"y:0": BOUNDS["x"], "y": (0, MOST)}, neighbours=neighbours).rows[
        0
    ]
    each = [exact_counts([at], [int(count)]) for at, count in values]
    assert all(counts.min() == 0 and counts.sum() == 1 for counts in each)
    moved = [np.abs(one - other).sum() for one, other in combinations(each, 2)] if neighbours == "replace" else [c.sum() for c in each]
    assert max(moved) == row.sensitivity


@pytest.mark.parametrize("mechanism", [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 1e-6}], ids=["laplace", "gaussian"])
def test_the_release_is_charged_and_calibrated_as_a_table_is(mechanism):
    """Bins of x and levels of the same number cost the same: one draw of noise of the same scale on as many counts."""
    x, y, _ = arrays()
    binned = pmdp.release(regression(x, y), epsilon=1.0, bounds=BOUNDS, **mechanism)
    levels = pmdp.release(regression(np.arange(N) % 3, y), epsilon=1.0, bounds={"x": (0, 2), "y": (0, MOST)}, **mechanism)
    (ours,), (theirs,) = binned.statistics, levels.statistics
    assert (ours.scale, ours.difference, ours.square, ours.noisy.shape) == (theirs.scale, theirs.difference, theirs.square, (3, 6))
    assert binned.epsilon == levels.epsilon


@pytest.mark.slow
def test_the_release_holds_no_record_and_says_what_was_binned_when_it_is_read_again():
    x, y, z = arrays()
    model = regression(x, y, z)
    bounds = BOUNDS | {"z": {0, 1}}
    released = pmdp.release(model, epsilon=1.0, bounds=bounds)
    private = pmdp.rewrite(model, released, noise_aware=False)
    check_no_records(model, private, N)
    again = Release.from_datatree(released.to_datatree())
    assert again == released
    assert again.statistics[0].within == released.statistics[0].within
    assert set(again.statistics[0].binned) == {"x"}
    at = points(private, 1)[0]
    assert log_density(pmdp.rewrite(regression(*arrays(7, 9)), again, noise_aware=False))(at) == pytest.approx(
        log_density(private)(at), rel=1e-12
    )


# ---------- the private model at exact counts


def _density(x, k, counts):
    """The density of a covariate within bin k, written again from what docs/bins.md says of it; not divided by its integral."""
    widths, middles = np.diff(EDGES), (np.array(EDGES[1:]) + np.array(EDGES[:-1])) / 2
    of_bins = np.log(counts / widths + AT_LEAST / widths.mean())
    slope = np.polyval(np.polyder(np.polyfit(middles, of_bins, 2)), middles[k]) * widths[k]  # a parabola: there are three bins
    return np.exp(STEEPEST * np.tanh(slope / STEEPEST) * (x - middles[k]) / widths[k])


def test_probabilities_are_integrals_over_the_bin(exact_seam):
    """Of the likelihood by SciPy, by its adaptive quadrature: the log-density at exact counts is that, but for a constant."""
    x, y, _ = arrays()
    model = regression(x, y)
    private = pmdp.rewrite(model, pmdp.release(model, epsilon=EXACT, bounds=BOUNDS), noise_aware=False)
    table = np.zeros((3, MOST + 1))
    np.add.at(table, (np.searchsorted(EDGES[1:-1], x), y), 1)
    ours, differences = log_density(private), []
    for point in points(private):
        a, b, alpha = point["a"], point["b"], np.exp(point["alpha_log__"])
        prior = stats.norm.logpdf([a, b]).sum() + stats.gamma.logpdf(alpha, 2, scale=1)
        total = prior
        for k, counts in enumerate(table):
            of_bin = lambda at, k=k: _density(at, k, table.sum(axis=1))  # noqa: E731
            whole = integrate.quad(of_bin, EDGES[k], EDGES[k + 1])[0]

            def mass(at, value, of_bin=of_bin, alpha=alpha, a=a, b=b):
                p = alpha / (alpha + np.exp(a + b * at))
                return of_bin(at) * (stats.nbinom.pmf(value, alpha, p) if value < MOST else stats.nbinom.sf(MOST - 1, alpha, p))

            for value in np.flatnonzero(counts):
                total += counts[value] * np.log(integrate.quad(mass, EDGES[k], EDGES[k + 1], args=(value,))[0] / whole)
        differences.append(ours(point) - total)
    assert np.ptp(differences) < 1e-6


@pytest.mark.slow
def test_the_density_becomes_the_user_s_as_bins_become_narrow(exact_seam):
    """Bins that are an eighth as wide are off by less than a sixteenth: the error falls faster than the width."""
    x, y, _ = arrays()
    x, y = np.clip(x, -1.9, 1.9), np.minimum(y, MOST - 1)
    model = regression(x, y)
    off, theirs = [], log_density(model)
    for bins in (4, 32):
        bounds = {"x": pmdp.Bins(-2, 2, bins), "y": (0, 40)}
        private = pmdp.rewrite(model, pmdp.release(model, epsilon=EXACT, bounds=bounds), noise_aware=False)
        ours = log_density(private)
        off.append(np.ptp([theirs(point) - ours(point) for point in points(private)]))
    assert off[1] < off[0] / 4**2, off


@pytest.mark.parametrize("several", [1, 2])
def test_averages_of_equal_probabilities_are_those_probabilities(several):
    """Of one covariate or two, whatever the numbers of records: weights add up to 1 in every cell."""
    x, y, z = arrays()
    bounds = BOUNDS | {"z": pmdp.Bins(edges=[-0.5, 0.5, 1.5]) if several == 2 else {0, 1}}
    (noisy,) = pmdp.release(regression(x, y, z), epsilon=1.0, bounds=bounds).statistics
    p = np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.1])
    at_nodes = pt.constant(np.broadcast_to(p, (6 * nodes_in(noisy), 6)))
    sizes = pt.constant(np.array([0.0, 1e-9, 30.0, 2.0, 0.3, 500.0])[:, None])
    found = pytensor.function([], averaged(noisy, [at_nodes], sizes[:, 0]), mode="FAST_COMPILE")()[0]
    np.testing.assert_allclose(found, np.broadcast_to(p, (6, 6)), rtol=1e-12)


@pytest.mark.parametrize("edges", [[0, 1, 2], [-2, 0, 1, 5], [0, 1, 2, 3, 4, 5], [0, 1, 3, 4, 9, 20]])
def test_slopes_are_those_of_parabolas_through_three_bins(edges):
    """Of unequal bins, too; of two bins those of a line."""
    middles, widths = middles_and_widths(tuple(edges), False)
    curve = [0.3, -0.7, 0.4] if len(middles) > 2 else [0.0, -0.7, 0.4]
    found = _differences(middles, widths) @ np.polyval(curve, middles)
    np.testing.assert_allclose(found, np.polyval(np.polyder(curve), middles) * widths, rtol=1e-12)


# ---------- nodes


@pytest.mark.parametrize("many", [1, 4, 12])
def test_nodes_lie_in_their_bins_and_have_the_weights_of_the_law(many):
    nodes, weights = nodes_of(EDGES, False, many)
    assert (nodes > np.array(EDGES[:-1])[:, None]).all()
    assert (nodes < np.array(EDGES[1:])[:, None]).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_allclose((weights * nodes).sum(axis=1), (np.array(EDGES[1:]) + np.array(EDGES[:-1])) / 2)


def test_integers_in_bins_are_all_that_lie_there():
    edges = (0.0, 3.0, 3.5, 10.0, 100.0)
    assert integers_of(edges) == [(0, 3), (4, 3), (4, 10), (11, 100)]
    nodes, weights = nodes_of(edges, True, 12)
    assert weights.sum(axis=1) == pytest.approx([1, 0, 1, 1])
    assert nodes[0][weights[0] > 0].tolist() == [0, 1, 2, 3]
    assert nodes[2][weights[2] > 0].tolist() == [4, 5, 6, 7, 8, 9, 10]
    assert nodes[3].min() >= 11
    assert nodes[3].max() <= 100


@pytest.mark.slow
def test_whole_covariates_are_integrated_over_integers(exact_seam):
    """One integer in every bin: the density is the user's."""
    _, y, _ = arrays()
    model = regression(np.arange(N) % 4, y)
    bounds = {"x": pmdp.Bins(edges=[-0.5, 0.5, 1.5, 2.5, 3.5]), "y": (0, 40)}
    private = pmdp.rewrite(model, pmdp.release(model, epsilon=EXACT, bounds=bounds), noise_aware=False)
    theirs, ours = log_density(model), log_density(private)
    assert np.ptp([theirs(point) - ours(point) for point in points(private)]) < 1e-5


# ---------- how many bins


@pytest.mark.slow
def test_the_number_of_bins_follows_the_public_number_of_records():
    assert [default_covariate_bins(records, 1) for records in (10, 216, 10**6)] == [FEWEST_OF_COVARIATE, 6, MOST_OF_COVARIATE]
    assert [default_covariate_bins(records, 2) for records in (10**4, 10**6)] == [10, MOST_OF_SEVERAL]
    assert default_covariate_bins(None, 1) == UNKNOWN_OF_COVARIATE
    x, y, _ = arrays(216)
    bounds = {"x": pmdp.Bins(-2, 2), "y": (0, MOST)}
    for neighbours, bins in (("replace", 6), ("add_remove", UNKNOWN_OF_COVARIATE)):
        row = pmdp.inspect(regression(x, y), bounds=bounds, neighbours=neighbours).rows[0]
        assert f"x in {bins} bins from -2 to 2" in row.reason


@pytest.mark.slow
def test_cells_about_as_many_as_records_are_told():
    x, y, _ = arrays(30)
    bounds = {"x": pmdp.Bins(-2, 2, 20), "y": (0, MOST)}
    assert "about as many cells as records" in pmdp.inspect(regression(x, y), bounds=bounds).rows[0].numbers
    with pytest.warns(pmdp.SparseCellsWarning):
        pmdp.release(regression(x, y), epsilon=1.0, bounds=bounds)


# ---------- what is refused, and what works instead


def _censored(x):
    latent = pm.StudentT.dist(nu=4, mu=pm.Normal("m"), sigma=1)
    pm.Censored("y", latent, lower=None, upper=pm.Data("x", x), observed=np.minimum(np.sin(np.arange(N)), x))


def _multinomial(x):
    p = pm.math.invlogit(pm.Normal("b") * pm.Data("x", x))
    pm.Multinomial("y", n=3, p=pm.math.stack([p, 1 - p], axis=-1), observed=np.tile([1, 2], (N, 1)))


def _gamma(x):
    pm.Gamma("y", alpha=2.0, beta=pm.math.exp(pm.Normal("b") * pm.Data("x", x)), observed=np.abs(x) + 0.1)


def _parent(x):
    pm.StudentT("x", nu=4, mu=pm.Normal("m"), sigma=1, observed=pm.Data("values", x))
    pm.NegativeBinomial("y", mu=pm.math.exp(pm.Normal("b") * x_of("x")), alpha=1.0, observed=np.arange(N) % 4)


def x_of(name):
    return pm.modelcontext(None)[name]


def _index(x):
    pm.Bernoulli("y", p=pm.Beta("p", 1, 1, shape=3)[pm.Data("x", np.arange(N) % 3)], observed=np.arange(N) % 2)


def _truths(x):
    eta = pm.Normal("a") + pm.Normal("b") * pm.Data("x", x > 0)
    pm.Bernoulli("y", p=0.5 + 0.4 * pm.math.tanh(eta), observed=np.arange(N) % 2)


REFUSED = {
    "a limit that is in bins": (_censored, {"y": pmdp.Bins(-3, 3, 6)}, "is a censoring limit"),
    "totals of several trials": (_multinomial, {}, "not counted one by one"),
    "an outcome of which sums are released": (_gamma, {"y": (0.1, 9)}, "then y must be, too"),
    "an observed variable": (_parent, {"y": (0, 4)}, "its own likelihood says where"),
    "an index": (_index, {}, "is an index"),
    "truth values": (_truths, {}, "holds truth values"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_bins_cannot_tell_is_refused(name):
    make, bounds, words = REFUSED[name]
    with pm.Model() as model:
        make(arrays()[0])
    assert words in (refused(pmdp.release, model, epsilon=1.0, bounds={"x": pmdp.Bins(-2, 2, 5)} | bounds) or "")


def test_bins_that_are_too_many_together_or_hold_no_integer_are_refused():
    X = np.random.default_rng(1).normal(size=(N, 4))
    with pm.Model() as model:
        pm.NegativeBinomial("y", mu=pm.math.exp((pm.Data("X", X) * pm.Normal("b", shape=4)).sum(axis=1)), alpha=1.0, observed=arrays()[1])
    words = refused(pmdp.release, model, epsilon=1.0, bounds={"X": pmdp.Bins(-2, 2, 3), "y": (0, MOST)})
    assert "too many together" in words
    words = refused(pmdp.release, regression(np.arange(N), arrays()[1]), epsilon=1.0, bounds={"x": pmdp.Bins(0, 1, 4), "y": (0, MOST)})
    assert "one of its bins holds none" in words


def test_draws_from_the_posterior_itself_need_no_bins():
    x, y, _ = arrays()
    mechanism = pmdp.PosteriorSample(truncate="prior")
    words = refused(pmdp.sample, model=regression(x, y), epsilon=1.0, bounds=BOUNDS, mechanism=mechanism)
    assert "need no bins" in words


def test_counts_by_bin_answer_no_questions_about_single_levels():
    """A bin of integers stands in the release by one of them, which is not the only one that was counted."""
    bounds = {"x": pmdp.Bins(edges=[0, 2, 5, 8]), "y": (0, MOST)}
    released = pmdp.release(regression(np.arange(N) % 9, arrays()[1]), epsilon=1.0, bounds=bounds)
    schema = Schema.of({"x": range(9), "y": range(MOST + 1)})
    assert "says nothing about single questions" in (refused(counted, released, schema, {"y": ["x", "y"]}, "replace") or "")


def test_a_table_of_as_many_levels_is_another_one():
    x, y, _ = arrays()
    levels = pmdp.release(regression(np.arange(N) % 3, y), epsilon=1.0, bounds={"x": (0, 2), "y": (0, MOST)})
    (statistic,) = levels.statistics
    assert not statistic.within
    (of_bins,) = pmdp.release(regression(x, y), epsilon=1.0, bounds=BOUNDS).statistics
    spec = spec_like(regression(x, y), levels, [])
    assert "counted in bins where it was released" in difference(spec.likelihoods[0], of_bins, {})


@pytest.mark.slow
def test_no_records_are_made_up_of_which_only_bins_are_known():
    x, y, _ = arrays()
    tree = pmdp.sample(4, tune=4, chains=1, model=regression(x, y), epsilon=1.0, bounds=BOUNDS, progressbar=False, quiet=True)
    assert "given={'x'" in refused(pmdp.synthesize, tree, regression(x, y), rows=10, sets=2)
    assert pmdp.synthesize(tree, regression(x, y), rows=10, sets=2, given={"x": np.linspace(-1, 1, 10)})["y"].shape == (2, 10)


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("mechanism", [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 1e-6}], ids=["laplace", "gaussian"])
def test_the_noise_aware_density_and_its_gradient_are_finite(neighbours, mechanism):
    x, y, z = arrays()
    model = regression(x, y, z)
    bounds = BOUNDS | {"z": pmdp.Bins(edges=[-0.5, 0.5, 1.5])}
    check_finite(pmdp.rewrite(model, pmdp.release(model, epsilon=1.0, bounds=bounds, neighbours=neighbours, **mechanism)))


def _student_t(x):
    pm.StudentT("y", nu=4, mu=pm.Normal("a") + pm.Normal("b") * pm.Data("x", x), sigma=1, observed=x)


def _probit(x):
    pm.Bernoulli("y", p=pm.math.invprobit(pm.Normal("a") + pm.Normal("b") * pm.Data("x", x)), observed=(x > 0).astype(int))


def _ages(x):
    age = pm.Data("x", np.arange(N) * 10**6)
    pm.NegativeBinomial("y", mu=pm.math.exp(pm.Normal("b") * age / 10**7), alpha=1.0, observed=np.arange(N) % 4)


NAMED = [(_student_t, {}), (_gamma, {"x": (-2, 2), "y": (0.1, 9)}), (_probit, {"x": (-2, 2)}), (_ages, {"x": (0, 10**8), "y": (0, 4)})]


@pytest.mark.parametrize(("make", "bounds"), mostly_slow(NAMED, 0, 1, 2, 3), ids=lambda each: getattr(each, "__name__", ""))
def test_bins_that_a_refusal_names_are_released(make, bounds):
    """Draws are named beside them, too: what is written here is the bins."""

    def model():
        with pm.Model() as made:
            make(arrays()[0])
        return made

    result, written = followed(model, {"bounds": bounds}, places=(-3, 5), bins=True)
    assert isinstance(result, pmdp.Release), result
    assert result.statistics[0].binned == ("x",)
    assert isinstance(written["bounds"]["x"], pmdp.Bins)
