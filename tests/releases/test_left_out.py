"""Missing values that are declared: what is released is that of the records that have them, and no record moves more than is paid for."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import flat, log_density, mostly_slow, refused, seam_of
from test_missing import seen as seen_of

import pymc_dp as pmdp
from pymc_dp.models.reader import read_spec
from pymc_dp.plans.missing import in_words, warn_of_missing
from pymc_dp.plans.plan import planned_release
from pymc_dp.plans.protection import protection_of
from pymc_dp.private_models.sizes import most_kept

pytestmark = pytest.mark.filterwarnings("ignore")  # PyMC warns of imputation
NAN = np.nan
G = np.array([0, 1, 0, 1, 1])


def normal(y):
    pm.Normal("y", pm.Normal("mu"), pm.HalfNormal("s"), observed=y)


def known_sigma(y):
    pm.Normal("y", pm.Normal("mu"), 1, observed=y)


def counts(y):
    pm.Poisson("y", pm.Exponential("l", 1), observed=y)


def coins(y):
    pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=y)


def levels(y):
    pm.Categorical("y", pm.Dirichlet("p", np.ones(3)), observed=y)


def groups(y):
    pm.Normal("y", pm.Normal("mu", shape=2)[G[: len(y)]], 1, observed=y)


def columns(y, other):
    pm.Normal("y", pm.Normal("mu", shape=2), pm.HalfNormal("s"), observed=np.column_stack([y, other]))


def vectors(y, other):
    pm.MvNormal("y", pm.Normal("mu", shape=2), np.eye(2), observed=np.column_stack([y, other]))


def index(y, x):
    pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=3)[pt.as_tensor(x).astype("int64")], observed=y)


def covariate(y, x):
    pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, pm.HalfNormal("s"), observed=y)


def two_covariates(y, x, w):
    b = pm.Normal("b", shape=2)
    pm.Normal("y", pm.Normal("a") + b[0] * x + b[1] * w, 1, observed=y)


def table(y, x):
    pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Normal("b") * x, observed=y)


def parent(y, x):
    x = pm.Bernoulli("x", pm.Beta("q", 1, 1), observed=x)
    pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=2)[x], observed=y)


def robust(y, x):
    pm.StudentT("y", nu=3.0, mu=pm.Normal("a") + pm.Normal("b") * x, sigma=1.0, observed=y)


def zero_inflated(y):
    pm.ZeroInflatedPoisson("y", pm.Beta("p", 1, 1), pm.Exponential("l", 1), observed=y)


WHOLE, REAL, COIN, LEVEL = (NAN, 0.0, 3.0), (NAN, -1.0, 1.0, 0.5), (NAN, 0.0, 1.0), (NAN, 0.0, 1.0, 2.0)
CASES = {
    "normal": (normal, [REAL], {"bounds": {"y": (-1, 1)}}, ["y"]),
    "known sigma": (known_sigma, [REAL], {"bounds": {"y": (-1, 1)}}, ["y"]),
    "counts": (counts, [WHOLE], {"bounds": {"y": (0, 3)}}, ["y"]),
    "coins": (coins, [COIN], {}, ["y"]),
    "levels": (levels, [LEVEL], {}, ["y"]),
    "public groups": (groups, [REAL], {"bounds": {"y": (-1, 1)}, "public": ["y:0"]}, ["y"]),
    "columns": (columns, [REAL, REAL], {"bounds": {"y": (-1, 1)}}, ["y"]),
    "vectors, public covariance": (vectors, [REAL, REAL], {"bounds": {"y": (-1, 1)}, "public": ["y:0"]}, ["y"]),
    "covariate": (covariate, [REAL, REAL], {"bounds": {"y": (-1, 1), "y:0": (-1, 1)}}, ["y:0"]),
    "covariate and response": (covariate, [REAL, REAL], {"bounds": {"y": (-1, 1), "y:0": (-1, 1)}}, ["y:0", "y"]),
    "two covariates": (two_covariates, [REAL, REAL, REAL], {"bounds": dict.fromkeys(("y", "y:0", "y:1"), (-1, 1))}, ["y:0", "y:1"]),
    "public covariate": (covariate, [REAL, (0.7,)], {"bounds": {"y": (-1, 1)}, "public": ["y:0"]}, ["y"]),
    "table": (table, [COIN, COIN], {"bounds": {"y:0": {0, 1}}}, ["y:0", "y"]),
    "zero-inflated": (zero_inflated, [WHOLE], {"bounds": {"y": (0, 3)}}, ["y"]),
    "network": (parent, [COIN, COIN], {}, ["x", "y"]),
    "bins": (robust, [REAL, COIN], {"bounds": {"y": pmdp.Bins(-1, 1, 3), "y:0": {0, 1}}}, ["y", "y:0"]),
}


def built(make, *arrays):
    with pm.Model() as model:
        make(*(np.array(array, dtype=float) for array in arrays))
    return model


def exact(model, **arguments):
    """The integers that noise is put on, and the draws that were paid for."""
    with seam_of(0) as seam:
        released = pmdp.release(model, epsilon=1.0, **arguments)
    return [np.array(sums, dtype=object) for sums in seam.exact], released


def records_of(values):
    """Every combination of what a record may say, and three others that stay."""
    others = [[one[min(1, len(one) - 1)] for one in values], [one[-1] for one in values], [one[0] for one in values]]
    for record in product(*values):
        yield [np.array([said, *(other[k] for other in others)]) for k, said in enumerate(record)]


@pytest.mark.parametrize("neighbours", mostly_slow(["replace", "add_remove"], 0))
@pytest.mark.parametrize("case", CASES)
def test_no_record_moves_more_than_is_paid_for(case, neighbours):
    """All pairs of what one record may say, missing or not; one of them attains most of it, in L1 or in L2."""
    make, values, arguments, missing = CASES[case]
    if neighbours == "add_remove" and "public" in arguments:
        pytest.skip("nothing may be public")
    several, released = [], None
    for arrays in records_of(values):
        sums, released = exact(built(make, *arrays), neighbours=neighbours, missing=missing, **arguments)
        several.append(sums)
    if neighbours == "add_remove":  # a record in which everything is missing is as good as none
        without, _ = exact(built(make, *(array[1:] for array in arrays)), neighbours=neighbours, missing=missing, **arguments)
        pairs = [(sums, without) for sums in several]
    else:
        pairs = [(one, other) for one in several for other in several]
    for place, statistic in enumerate(released.statistics):
        moved = [one[place] - other[place] for one, other in pairs]
        first, second = max(int(np.abs(each).sum()) for each in moved), max(int((each**2).sum()) for each in moved)
        assert first <= statistic.difference
        assert second <= statistic.square
        assert first >= 0.74 * statistic.difference or second >= 0.74 * statistic.square


@pytest.mark.parametrize("case", [case for case in CASES if "public" not in case])
def test_what_is_released_is_that_of_the_records_that_have_it(case):
    """The same integers as of these records alone, where the number of records is private; columns one by one.

    What is multiplied before the noise is divided: it need not be the same, because records do not move it as far in both.
    """
    make, values, arguments, missing = CASES[case]
    rng = np.random.default_rng(1)
    arrays = [rng.choice(np.array(one), 12) for one in values]
    found, released = exact(built(make, *arrays), missing=missing, **arguments)
    holes = [np.isnan(array) for array in arrays]
    if case == "network":  # each variable's own records
        x, y = arrays[1][~holes[1]], [array[~holes[0] & ~holes[1]] for array in arrays]
        whole = [exact(built(coins, x), neighbours="add_remove")[0][0], exact(built(make, *y), neighbours="add_remove")[0][1]]
        assert [each.tolist() for each in found] == [each.tolist() for each in whole]
        return
    if case == "columns":
        whole = [exact(built(normal, array[~hole]), neighbours="add_remove", **arguments)[0][0] for array, hole in zip(arrays, holes)]
        assert found[0].tolist() == np.concatenate(whole).tolist()
        return
    gone = np.any([hole for hole, name in zip(holes, ["y", "y:0", "y:1"]) if name in missing], axis=0)
    whole, alone = exact(built(make, *(array[~gone] for array in arrays)), neighbours="add_remove", **arguments)
    for one, other, statistic, its in zip(found, whole, released.statistics, alone.statistics, strict=True):
        divided = [
            sums.reshape(step.noisy.shape) // (1 if step.times is None else step.times) for sums, step in ((one, statistic), (other, its))
        ]
        assert divided[0].tolist() == divided[1].tolist()
    assert any(hole.any() for hole in holes)


def test_a_vector_with_a_hole_is_left_out_whole():
    """As if its row were not there."""
    y, other = np.array([0.5, NAN, -1, 0.2]), np.array([1, 0.3, NAN, -0.4])
    arguments = {"bounds": {"y": (-1, 1)}, "public": ["y:0"], "missing": ["y"]}
    found, whole = (exact(built(vectors, y[rows], other[rows]), **arguments)[0] for rows in (slice(None), [0, 3]))
    assert found[0].tolist() == whole[0].tolist()


HOLES = {"none": [0.0, 1, 1, 0, 1], "the first": [NAN, 1, 1, 0, 1], "all but one": [NAN] * 4 + [1.0], "all": [NAN] * 5}


@pytest.mark.parametrize(
    "case", mostly_slow(["normal", "coins", "public groups", "zero-inflated", "table", "covariate", "network"], 0, 3, 5)
)
def test_nothing_shows_whether_anything_is_missing(case):
    """Words, graphs, shapes, types and order, of inspection, release and private model."""
    make, values, arguments, missing = CASES[case]
    shown = set()
    for holes in HOLES.values():
        model = built(make, *[holes] * len(values))
        with seam_of(3):
            released = pmdp.release(model, epsilon=1.0, missing=missing, **arguments)
        private = pmdp.rewrite(model, released)
        told = repr(released), repr(pmdp.inspect(model, missing=missing, **arguments))
        shapes = [(one.noisy.shape, one.n.tolist(), one.sizes, one.left_out) for one in released.statistics]
        names = [(name, variable.type, private.named_vars_to_dims.get(name)) for name, variable in private.named_vars.items()]
        shown.add(repr((told, shapes, names, seen_of(model, arguments.get("public", ())))))
    assert len(shown) == 1


def test_the_private_model_is_that_of_the_records_that_have_it():
    """Exact counts: the log-density differs from that of the user's own model on those records by a constant, their number being known."""
    rng = np.random.default_rng(3)
    y = rng.choice(np.array([0.0, 1, 2, NAN]), 400)
    with seam_of(0):
        private = pmdp.rewrite(model := built(levels, y), pmdp.release(model, epsilon=1e9, missing=["y"]))
    own = log_density(built(levels, y[~np.isnan(y)].astype(int)))
    ours = log_density(private)
    size, values = {"y_size_aboutmost__": np.array([0.4])}, []
    for _ in range(5):
        point = {"p_simplex__": rng.normal(size=2)}
        values.append(own(point) - ours(point | size))
    assert np.ptp(values) < 1e-6


def test_levels_that_stand_for_missing_values():
    """A Categorical level, an entry of a table and a listed covariate: what is released is that of values put in by hand."""
    for make, name, level, arrays, arguments in [
        (levels, "y", 2, [[0, NAN, 1, 2, NAN]], {}),
        (index, "y:0", 2, [[0, 1, 1, 0, 1], [0, NAN, 1, 2, NAN]], {}),
        (table, "y:0", 1, [[0, 1, 1, 0, 1], [0, NAN, 1, 0, NAN]], {"bounds": {"y:0": {0, 1}}}),
        (parent, "x", 1, [[0, 1, 1, 0, 1], [0, NAN, 1, 0, NAN]], {}),
    ]:
        filled = [np.nan_to_num(np.array(array, dtype=float), nan=level) for array in arrays]
        found, _ = exact(built(make, *arrays), missing={name: level}, **arguments)
        wanted, _ = exact(built(make, *filled), **arguments)
        assert [each.tolist() for each in found] == [each.tolist() for each in wanted]
        middle, _ = exact(built(make, *arrays), **arguments)
        assert [each.tolist() for each in middle] != [each.tolist() for each in wanted]


@pytest.mark.parametrize(
    ("make", "arrays", "arguments", "words"),
    [
        (normal, [[0, 1]], {"bounds": {"y": (-1, 1)}, "missing": {"y": 0}}, 'not one of few levels. Write "left out"'),
        (levels, [[0, 2]], {"missing": {"y": 3}}, "which is no level of y"),
        (levels, [[0, 2]], {"missing": {"z": "left out"}}, "Write one of 'y'"),
        (levels, [[0, 2]], {"missing": {"y": "mean"}}, "left out, or counts as one of its levels"),
        (levels, [[0, 2]], {"missing": {"y": True}}, "left out, or counts as one of its levels"),
        (levels, [[0, 2]], {"missing": "y"}, "missing says by name"),
        (levels, [[0, 2]], {"missing": 3}, "missing says by name"),
        (table, [[0, 1], [0, 1]], {"bounds": {"y:0": {0, 1}}, "missing": {"y:0": 0.5}}, "no level of y:0"),
        (parent, [[0, 1], [0, 1]], {"mechanism": "fourier", "missing": ["x"]}, "not counted from the same records"),
        (parent, [[0, 1], [0, 1]], {"mechanism": pmdp.Laplace(share_counts=True), "missing": ["x"]}, "not counted from the same records"),
    ],
)
def test_refused(make, arrays, arguments, words):
    model = built(make, *arrays)
    told = refused(pmdp.release, model, epsilon=1.0, **arguments)
    assert told is not None
    assert words in told


def test_rows_that_are_totals_cannot_be_left_out():
    with pm.Model() as model:
        pm.Binomial("y", n=np.array([3, 4]), p=pm.Beta("p", 1, 1, shape=2), observed=np.array([1, 2]))
    assert "totals" in refused(pmdp.release, model, epsilon=1.0, public=["y:0"], unit="individual", missing=["y"])


def test_what_is_not_declared_is_said_once_and_for_all():
    warn_of_missing.cache_clear()
    model = built(normal, [0.0, 1.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            pmdp.release(model, epsilon=1.0, bounds={"y": (-1, 1)})
    assert [one.category for one in caught].count(pmdp.MissingWarning) == 1
    warn_of_missing.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pmdp.release(model, epsilon=1.0, bounds={"y": (-1, 1)}, missing={})
    assert pmdp.MissingWarning not in [one.category for one in caught]
    shown = flat(pmdp.inspect(model, bounds={"y": (-1, 1)}, missing=["y"]))
    left = "records without y are left out, and how many remain is private and released with noise"
    assert f"missing values: {left} protects:" in shown
    assert in_words({"y": "left out"}, ["y", "x"]).startswith(f"{left}; elsewhere any that there are count as the middle")
    assert in_words({"y": "left out", "x": "left out"}, ["y", "x"]) == left.replace("without y", "without y, x")
    assert in_words({"y": 2.0}).startswith("of y count as 2; elsewhere")
    assert "count as the middle of the bounds" in flat(pmdp.inspect(model, bounds={"y": (-1, 1)}))


def test_what_was_declared_is_in_the_file(tmp_path):
    model = built(columns, [0, NAN, 1], [1, 0, NAN])
    released = pmdp.release(model, epsilon=1.0, bounds={"y": (-1, 1)}, missing=["y"])
    released.to_netcdf(tmp_path / "r.nc")
    again = pmdp.Release.from_netcdf(tmp_path / "r.nc")
    assert again == released
    assert again.missing == {"y": "left out"}
    assert again["y"].left_out == ("y",)
    assert pmdp.rewrite(model, again)["y_size"].eval(mode="FAST_COMPILE").shape == (1, 2)


def test_the_plug_in_takes_the_released_number_of_records():
    """Without noise it is the mean of those that are there."""
    y = np.array([0.5, NAN, 0.25, NAN, 0.75, 0.5])
    with seam_of(0):
        private = pmdp.rewrite(model := built(known_sigma, y), pmdp.release(model, epsilon=1e9, bounds={"y": (-1, 1)}, missing=["y"]),
                               noise_aware=False)  # fmt: skip
    density = private.compile_logp(mode="FAST_COMPILE")
    at = np.linspace(0, 1, 2001)
    best = at[np.argmax([density({"mu": mu}) + 0.5 * mu**2 for mu in at])]
    assert best == pytest.approx(0.5, abs=2e-3)


def test_a_number_of_records_up_to_a_half_more_stands_for_whole_numbers():
    """Of 40 records none is missing: the posterior of mu with the unknown number integrated out, against a sum over whole numbers.

    Nothing is at random here. Up to N + 1/2 the mean is .003 standard deviations from that of the sum; up to N it is .039.
    """
    N, within = 40, 12
    with seam_of(0):
        released = pmdp.release(model := built(known_sigma, np.full(N, 0.5)), epsilon=5.0, bounds={"y": (-1, 1)}, missing=["y"])
    private = pmdp.rewrite(model, released)
    density = private.compile_logp(mode="FAST_COMPILE")
    [most] = most_kept(private.privacy["y"])
    mus = np.linspace(0.0, 1.6, 17)

    def mean_and_sd(numbers):
        """Of mu, all these numbers of records being as likely."""
        shares = np.minimum(numbers / most, 1 - 1e-12)
        volume = np.log(shares) + np.log1p(-shares)  # of the logit, in which the sampler steps
        values = [[density({"mu": mu, "y_size_logodds__": [logit]}) for logit in np.log(shares / (1 - shares))] for mu in mus]
        weights = np.exp(np.array(values) - volume).sum(axis=1)
        mean = np.average(mus, weights=weights)
        return mean, np.sqrt(np.average((mus - mean) ** 2, weights=weights))

    step = 0.1
    whole, sd = mean_and_sd(np.arange(N - within, N + 1.0))
    between, _ = mean_and_sd(np.arange(N - within, most, step) + step / 2)
    assert abs(between - whole) < 0.02 * sd


def test_what_weights_add_up_to_is_at_most_the_largest_weight_of_each():
    """And where there are no records none is left; numbers of others are whole."""
    rng = np.random.default_rng(0)
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Normal("b") * pm.Data("x", np.zeros(30)), observed=rng.integers(0, 2, 30))
    statistic = pmdp.release(model, epsilon=1.0, bounds={"x": (-1, 1), "logit(y)": (-3, 3)}, missing={})["y"]
    assert statistic.sizes == "kept"
    np.testing.assert_allclose(most_kept(statistic), 30 * statistic.regression.scores.largest_weight)
    grouped = pmdp.release(built(groups, [0.5, NAN, 1, 0, 0]), epsilon=1.0, bounds={"y": (-1, 1)}, public=["y:0"], missing=["y"])["y"]
    np.testing.assert_allclose(most_kept(grouped), [2.5, 3.5])
    np.testing.assert_allclose(most_kept(replace(grouped, n=np.array([0, 5]))), [0, 5.5])


def test_sizes_are_no_more_than_there_are_records():
    """And several likelihoods each have their own."""
    model = built(parent, [0, 1, NAN], [NAN, 1, 0])
    private = pmdp.rewrite(model, pmdp.release(model, epsilon=1.0, missing=["x", "y"]))
    assert {"x_size", "y_size"} <= set(private.named_vars)
    steps = planned_release(read_spec(model), protection_of(missing=["x", "y"])).statistics
    assert [step.sizes for step in steps] == ["kept", "kept"]
    assert [step.left_out for step in steps] == [("x",), ("y", "x")] or [set(step.left_out) for step in steps] == [{"x"}, {"x", "y"}]
