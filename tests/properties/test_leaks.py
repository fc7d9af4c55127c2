"""Leaks and wrong posteriors that were possible once; every docstring says what went wrong."""

import os

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import seam_of, watched
from pytensor.tensor.special import LogSoftmax, LogSumExp, Softmax

import pymc_dp as pmdp
from pymc_dp.models.intervals import products_as_sums
from pymc_dp.posterior import grid
from pymc_dp.privacy import mechanisms

REAL = 7123.456789012345
pytestmark = [pytest.mark.filterwarnings("ignore")]


def observe(model, frozen=(), *, rewrite=True, epsilon=1, **arguments):
    """All that is seen of one model, and the integers that reached the seam, with the release (None if refused)."""
    told, released = [], None
    with seam_of(0, frozen) as seam:
        looking = {name: value for name, value in arguments.items() if name in {"bounds", "public", "unit", "neighbours"}}
        try:
            told.append(repr(pmdp.inspect(model, **looking)))
        except Exception as error:
            told.append((type(error), str(error)))
        try:
            released = pmdp.release(model, epsilon=epsilon, **arguments)
            told.append(repr(released))
            for one in released.statistics:
                told.append([one.noisy.tolist(), one.n.tolist(), one.scale, one.known.tolist(), [given.tolist() for given in one.inputs]])
            if rewrite:
                private = pmdp.rewrite(model, released, noise_aware=False)
                told += [sorted(private.named_vars), str(private.coords)]
                told += [pytensor.dprint(variable, file="str") for variable in private.free_RVs]
        except Exception as error:
            told.append((type(error), str(error)))
    return told, seam, released


def chosen_bounds(model, *, bounds=None, **arguments):
    """What is seen of bounds that are chosen from the records, within those that are given; and the scores by scale, which get noise."""
    within = {name: pair for name, pair in (bounds or {}).items() if "(" not in name and isinstance(pair, tuple | list)}
    given, scored = {name: arguments[name] for name in ("public", "unit", "neighbours") if name in arguments}, []

    def first(scores, scale):
        scored.append(np.array(scores) / scale)
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanisms, "_opendp_choice", first)
        try:
            return repr(pmdp.private_bounds(model, names=list(within), within=within, epsilon=1, candidates=31, **given)), scored
        except Exception as error:
            return (type(error), str(error)), scored


def neighbours_look_alike(model, other, **arguments):
    """Seen alike given the same noisy outputs, and moved by no more than what is paid for; a refusal of both is fine."""
    (told, scored), (told_other, scored_other) = chosen_bounds(model, **arguments), chosen_bounds(other, **arguments)
    assert told == told_other
    assert sum(np.ptp(a - b) for a, b in zip(scored, scored_other, strict=True)) <= 1 + 1e-9
    told, seam, released = observe(model, **arguments)
    told_other, seam_other, released_other = observe(other, frozen=seam.exact, **arguments)
    assert told == told_other
    assert (released is None) == (released_other is None)
    if released is None:
        return
    for one, first, second in zip(released.statistics, seam.exact, seam_other.exact, strict=True):
        moved = [abs(a - b) for a, b in zip(first, second, strict=True)]
        if arguments.get("mechanism") == "gaussian":
            assert sum(entry**2 for entry in moved) <= one.square
        else:
            assert sum(moved) <= one.difference


@pytest.mark.parametrize("mixing", [Softmax, LogSoftmax, LogSumExp])
def test_an_operation_whose_axis_counts_from_the_end(mixing):
    """PyTensor's functions count axes from 0, its operations keep what they are given: -1 is the axis of records here. One record moves
    the shares of all."""

    def model(value):
        x = np.zeros(100)
        x[3] = value
        with pm.Model() as model:
            b = pm.Normal("b", shape=2)
            data = pm.Data("x", x)
            share = mixing(axis=(-1,))(data) / 20 + (data * 0 if mixing is LogSumExp else 0)
            pm.Normal("y", b[0] + b[1] * share, 1, observed=np.ones(100))
        return model

    neighbours_look_alike(model(0.0), model(20.0), bounds={"y": (0, 1), "x": (0, 20)}, rewrite=False)


MIXING = [
    lambda x: pt.logsumexp(x) + 0 * x, lambda x: pt.logsumexp(x, axis=0, keepdims=True) + 0 * x,
    lambda x: pt.logsumexp(x[None] - x[:, None], axis=0), lambda x: pt.logsumexp(x[None] - x[:, None], axis=1),
    lambda x: pt.logaddexp(x[:, None], x[None]).sum(axis=1), lambda x: pt.logaddexp(x, x[::-1]), lambda x: pt.logaddexp(x, x.max()),
    lambda x: pt.special.xlogy(x, 1 + x.sum()), lambda x: pt.special.xlog1py(x[::-1], 1.0),
    lambda x: pt.logaddexp(x, x[:, None])[3],
]  # fmt: skip
"""Functions of a column in which one record meets another."""


@pytest.mark.parametrize("mixed", MIXING)
def test_logarithms_of_sums_in_which_records_meet(mixed):
    """Those of one record's own values are read row by row; these are refused."""
    x = np.linspace(0, 1, 20)
    with pm.Model() as model:
        b = pm.Normal("b", shape=2)
        pm.Normal("y", b[0] + b[1] * mixed(pm.Data("x", x)), 1, observed=np.ones(20))
    with pytest.raises(pmdp.Refusal, match=r"x|records"):
        pmdp.release(model, epsilon=1.0, bounds={"y": (0, 1), "x": (0, 1)})


@pytest.mark.parametrize("q", [2, 3, 4])
def test_gaussian_sensitivity_of_counted_moments_changed_in_place(q):
    """MvNormal with a known covariance and a private index, Gaussian noise: a record that stays in its cell and changes sign
    moves each of the q sums by 2, squared L2 distance 4 q, but ``_counted_reach`` charges 2 (1 + q), the distance of a move between
    cells, so the true rho is up to twice the charged one. By brute force over features m and responses q it happens whenever
    2 q > m + 2 and the scale is known."""

    def model(values):
        with pm.Model() as model:
            pm.MvNormal("Y", pm.Normal("mu", shape=(2, q))[np.zeros(6, dtype=int)], cov=pt.eye(q), observed=values)
        return model

    other = np.ones((6, q))
    other[0] = -1
    neighbours_look_alike(model(np.ones((6, q))), model(other), bounds={"Y": (-1, 1)}, mechanism="gaussian", delta=1e-6)


@pytest.mark.parametrize(
    ("before", "after", "rows"), [([5, 2, 1], [2, 5, 1], 2), ([[5, 2], [1, 1]], [[2, 5], [1, 1]], 1)], ids=["rows", "columns"]
)
def test_individual_in_several_public_rows(before, after, rows):
    """Individual(events=3, membership="public") is charged 3. With rows=2 (or two columns) an individual who had 3 events in one
    of its rows is replaced by one who has 3 in the other of the same rows: 6. Twice the epsilon."""

    def model(totals):
        with pm.Model() as model:
            pm.Poisson("k", pm.Gamma("rate", 2, 1), observed=np.array(totals))
        return model

    neighbours_look_alike(model(before), model(after), unit=pmdp.Individual(events=3, membership="public", rows=rows))


@pytest.mark.parametrize("use", ["index", "covariate"])
def test_a_private_array_of_one_row_beside_many_records(use):
    """A private array with a single row is broadcast to all N records: its value moves N records at once, and the charge is for one.
    The index of ten records can be read off the release."""

    def model(value):
        with pm.Model() as model:
            if use == "index":
                pm.Poisson("k", pm.Gamma("mu", 1, 1, shape=3)[np.array([int(value)])], observed=np.arange(10) % 3)
            else:
                pm.Normal("k", pm.Normal("b") * pm.Data("x", np.array([value])), 1, observed=np.arange(10.0) % 3)
        return model

    bounds = {"k": (0, 5)} | ({"x": (0, 2)} if use == "covariate" else {})
    neighbours_look_alike(model(0.0), model(2.0), bounds=bounds)


FAMILIES = {
    "MvNormal": (lambda p, y: pm.MvNormal("y", p, cov=pt.eye(3), observed=y), {"bounds": {"y": (-1, 8)}}),
    "Dirichlet": (lambda p, y: pm.Dirichlet("y", pt.exp(p), observed=y), {"bounds": {"y": (0.01, 0.9)}}),
    "Multinomial": (lambda p, y: pm.Multinomial("y", 5, pm.math.softmax(p, axis=-1), observed=y), {}),
}


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_record_that_is_missing_as_a_whole(name, public):
    """One record of a multivariate likelihood that is wholly missing makes inspect and release refuse (in words that depend on it),
    while the same data without it are released: whether a record is missing is told exactly. PyMC masks the parameter
    with one entry per row then, and ``_without_mask`` only knows masks of the shape of the values."""
    draw, arguments = FAMILIES[name]
    rng = np.random.default_rng(0)
    y = rng.multinomial(5, [0.2, 0.3, 0.5], 8).astype(float) if name == "Multinomial" else rng.dirichlet(np.ones(3), 8)
    other = y.copy()
    other[3] = np.nan

    def model(values):
        with pm.Model() as model:
            draw(pm.Normal("a", shape=(2, 3))[np.arange(8) % 2], values)
        return model

    arguments = arguments | ({"public": ["y:0"]} if public else {})
    neighbours_look_alike(model(y), model(other), rewrite=name != "Dirichlet", **arguments)


def test_a_public_column_does_not_open_the_private_ones():
    """``public=[X[:, 0]]``, or a column of a DataFrame whose ``to_numpy()`` is in the model, opens all of X, because
    ``same_array`` asks whether memory is shared at all: the private second column is in the release in clear."""
    X = np.column_stack([np.arange(6.0), [REAL, 1, 2, 3, 4, 5]])
    with pm.Model() as model:
        pm.Poisson("k", pt.exp(pt.dot(X, pm.Normal("b", shape=2))), observed=np.arange(6))
    try:
        released = pmdp.release(model, epsilon=1, public=[X[:, 0]], bounds={"k": (0, 6)})
    except pmdp.Refusal:
        return
    assert np.float64(REAL).tobytes() not in cloudpickle.dumps(released)


def test_add_remove_refusal_does_not_depend_on_the_number_of_records():
    """``_release`` calls ``read_model`` without ``sized=``: under add_remove, release refuses if and only if the number of records
    is the length of an initial value (or of an array in a transform). Suggested: sized=neighbours == "replace" there, as in inspect.
    """

    def refused(n):
        with pm.Model() as model:
            mu = pm.Normal("mu", shape=3, initval=np.array([-1.0, 0.0, 1.0]))
            pm.Bernoulli("y", logit_p=mu.sum(), observed=np.arange(n) % 2)
        try:
            pmdp.release(model, epsilon=1, neighbours="add_remove")
        except pmdp.Refusal:
            return True
        return False

    assert refused(3) == refused(4)


def test_initial_values_under_add_remove():
    """And what release accepts there, rewrite refuses for any array among the initial values: paid for in vain."""
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=3, initval=np.array([-1.0, 0.0, 1.0]))
        pm.Bernoulli("y", logit_p=mu.sum(), observed=np.arange(7) % 2)
    try:
        released = pmdp.release(model, epsilon=1, neighbours="add_remove")
    except pmdp.Refusal:
        return
    pmdp.rewrite(model, released)


def test_add_remove_without_any_record():
    """No record at all fails with PrivateComputationError (``reshape(0, -1)``), one record does not."""

    def model(n):
        with pm.Model() as model:
            pm.Bernoulli("y", pm.Beta("theta", 1, 1), observed=np.zeros(n))
        return model

    neighbours_look_alike(model(0), model(1), neighbours="add_remove")


@pytest.mark.parametrize("use", ["mean", "whole"])
def test_add_remove_with_a_public_array_that_is_summed_up(use):
    """Under add_remove a public array along the records is refused, but not where it is used only summed up: then its exact
    mean with and without the record, or all N entries, are in ``Release.inputs``."""

    def model(n):
        with pm.Model() as model:
            age, b = pm.Data("age", np.arange(float(n))), pm.Normal("b", shape=2)
            p = b[0] + b[1] * age.mean() if use == "mean" else pt.exp(b[0] * age).sum()
            pm.Bernoulli("y", logit_p=p, observed=np.arange(n) % 2)
        return model

    _, _, first = observe(model(4), neighbours="add_remove", public=["age"])
    _, _, second = observe(model(5), neighbours="add_remove", public=["age"])
    if first is not None or second is not None:
        told = [[given.tolist() for given in one["y"].inputs] for one in (first, second)]
        assert told[0] == told[1]


@pytest.mark.parametrize("view", [False, True])
def test_the_same_memory_above_a_prior_and_above_a_likelihood(view):
    """ "An array that stands above a likelihood and above a prior is refused unless declared public": true of a ``pm.Data``, but a
    numpy array written in both places becomes two constants, compared by identity. PyTensor does not copy it, so that it can be
    seen. The private covariate is published in clear."""
    X = np.array([0.1, 0.2, 0.3, 0.4, 0.5, REAL])
    covariate = X[::-1] if view else X
    with pm.Model() as model:
        z = pm.Normal("z", mu=pt.as_tensor(X).mean())
        pm.Normal("y", pm.Normal("b") * covariate + z, 1, observed=np.arange(6.0))
    arguments = {"bounds": {"y": (0, 5), "y:0": (0, 1)}}
    try:
        private = pmdp.rewrite(model, pmdp.release(model, epsilon=1, **arguments), noise_aware=False)
    except pmdp.Refusal:
        return
    assert np.float64(REAL).tobytes() not in cloudpickle.dumps(private)


def test_a_name_that_the_library_gives_as_well():
    """A ``pm.Data`` may be called "y:0", as the library calls the first array without a name: public=["y:0"] opens both, and
    inspect shows one."""
    x = np.array([REAL, 1.0, 2.0, 3.0, 4.0, 5.0])
    with pm.Model() as model:
        data, b = pm.Data("y:0", np.arange(6.0)), pm.Normal("b", shape=2)
        pm.Poisson("y", pt.exp(b[0] * data + b[1] * x), observed=np.arange(6))
    try:
        released = pmdp.release(model, epsilon=1, public=["y:0"], bounds={"y": (0, 6)})
    except pmdp.Refusal:
        return
    assert np.float64(REAL).tobytes() not in cloudpickle.dumps(released)


def test_add_remove_with_a_prior_over_the_dim_of_private_data():
    """The observed variable has no dims, but a private ``pm.Data`` has the dim of the records, and so has a free variable:
    the number of records and their labels are in inspect and in the private model."""

    def model(n):
        with pm.Model(coords={"person": [f"id-{k}" for k in range(n)]}) as model:
            g = pm.Data("g", np.arange(n) % 2, dims="person")
            pm.Normal("z", dims="person")
            pm.Bernoulli("y", logit_p=pm.Normal("mu", shape=2)[g], observed=np.arange(n) % 2)
        return model

    neighbours_look_alike(model(4), model(5), neighbours="add_remove")


def test_add_remove_with_the_number_of_records_above_a_prior():
    """``model.dim_lengths`` of the records' dim above a prior (as in a regularised horseshoe) is frozen to the exact number,
    which stays in the private model."""

    def model(n):
        with pm.Model(coords={"person": range(n)}) as model:
            mu = pm.Normal("mu", sigma=1 / pt.sqrt(model.dim_lengths["person"]))
            pm.Bernoulli("y", logit_p=mu, observed=np.arange(n) % 2, dims="person")
        return model

    neighbours_look_alike(model(4), model(5), neighbours="add_remove")


def test_a_missing_total_is_not_a_huge_one(exact_seam):
    """A missing row of totals becomes the middle of (0, 2**40), 549755813888 events, and the posterior follows it.
    Which rows there are is public, so suggested: refuse missing totals before reading, or leave those rows out.
    """
    with pm.Model() as model:
        pm.Poisson("k", pm.Gamma("rate", 2, 1), observed=np.array([3.0, np.nan, 4.0]))
    try:
        pmdp.release(model, epsilon=1, unit=pmdp.Individual(events=3))
    except pmdp.Refusal:
        return
    assert max(exact_seam.exact[0]) < 1000


@pytest.mark.parametrize("beta", ["shared", "indexed"])
def test_weibull_is_offered(beta):
    """``pm.Weibull`` of PyMC 6 is a SymbolicRandomVariable, whose parameters are not read: "its graph could not be read"."""
    with pm.Model() as model:
        b = pm.HalfNormal("b", shape=2)
        pm.Weibull("y", 2.0, b[0] if beta == "shared" else b[np.arange(6) % 2], observed=np.ones(6))
    assert pmdp.inspect(model, bounds={"y": (0, 3)}).rows[0].structure


def test_dirichlet_can_be_rewritten():
    """The release is paid for, and rewrite fails with PrivateComputationError whatever the cells: ``simulate`` asks the family
    for moments that it does not have.
    """
    with pm.Model() as model:
        pm.Dirichlet("y", pt.exp(pm.Normal("a", shape=3)), observed=np.random.default_rng(0).dirichlet(np.ones(3), 6))
    pmdp.rewrite(model, pmdp.release(model, epsilon=1, bounds={"y": (0.01, 0.9)}), noise_aware=False)


def test_a_private_negative_index_means_what_it_means_to_pymc(exact_seam):
    """-1 is the last level for NumPy and PyMC, and for a public index here; a private one is clamped to the
    first level."""
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=pm.Normal("mu", shape=3)[np.array([-1, -1, -1, 0])], observed=np.ones(4))
    released = pmdp.release(model, epsilon=1)
    assert released["y"].values[..., 1].tolist() == [1, 0, 3]


def same_posterior(model, points, **arguments):
    """The plug-in posterior of exact statistics is the user's, up to a constant."""
    private = observe_private(model, **arguments)
    if private is None:
        return
    user, ours = (one.compile_logp(mode="FAST_COMPILE") for one in (model, private))
    start = {name: np.array(value) for name, value in points[0].items()}
    for point in points[1:]:
        point = {name: np.array(value) for name, value in point.items()}
        assert ours(point) - ours(start) == pytest.approx(user(point) - user(start), abs=1e-2)


def observe_private(model, **arguments):
    with seam_of(0):
        try:
            return pmdp.rewrite(model, pmdp.release(model, epsilon=10**7, **arguments), noise_aware=False)
        except pmdp.Refusal:
            return None


def test_a_table_gathered_by_a_computed_private_index():
    """``intervals`` gathers at the two ends of an index as if tables were sorted: [0, 5, 1][i] is bounded by (0, 1),
    so that every feature of 5 is clamped to 1 without a word."""
    with pm.Model() as model:
        x = pm.Data("x", np.linspace(0, 1, 9))
        level = (x > 0.3).astype("int64") + (x > 0.6).astype("int64")
        pm.Normal("y", pt.stack([0.0, 5.0, 1.0])[level] * pm.Normal("b"), 1, observed=np.linspace(-2, 4, 9))
    same_posterior(model, [{"b": 0.0}, {"b": 1.0}, {"b": 0.5}], bounds={"y": (-3, 5), "x": (0, 1)})


@pytest.mark.parametrize("limit", [lambda: -pt.constant(-4.0), lambda: pt.sqr(pt.constant(2.0))], ids=["minus", "square"])
def test_a_limit_that_is_computed(limit):
    """``tables._number`` walks through any operation of one argument, not only casts and shapes: a limit of
    -(-4) is read as -4 and 2 squared as 2."""
    with pm.Model() as model:
        censored = pm.Poisson.dist(pm.Gamma("r", 2, 1))
        pm.Censored("k", censored, lower=None, upper=limit(), observed=np.array([0, 1, 2, 4, 4, 3, 2, 1]))
    same_posterior(model, [{"r_log__": 0.0}, {"r_log__": 0.7}, {"r_log__": -0.5}], bounds={"k": (0, 4)})


@pytest.mark.parametrize("arguments", [{"epsilon": 10**400}, {"epsilon": 1, "bounds": {"k": (0, 10**400)}}, {"epsilon": 1, "columns": 0}])
def test_odd_arguments_are_refused(arguments):
    """Public oddities end in PrivateComputationError rather than in a refusal that says what to write."""
    columns = arguments.pop("columns", None)
    with pm.Model() as model:
        pm.Poisson("k", pm.Gamma("r", 2, 1), observed=np.ones((4, columns) if columns is not None else 4, dtype=int))
    with pytest.raises(pmdp.Refusal):
        pmdp.release(model, **({"bounds": {"k": (0, 4)}} | arguments))


def test_privatize_reads_an_iterator_of_public_names_once():
    """``privatize`` reads ``public`` twice (``sample`` makes a list first): of an iterator nothing is left at the door, so that
    what the user declared public is paid for as private, without a word.
    """
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("theta", 1, 1, shape=2)[np.arange(4) % 2], observed=np.ones(4))
    assert pmdp.privatize(model, epsilon=1, public=iter(["y:0"])).privacy.public == ("y:0",)


@pytest.mark.parametrize("name", ["y_noise_given", "y_noise_0", "y_size_given", "y_shared_0", "y_column_0"])
def test_names_that_the_rewritten_model_makes_up_are_refused_before_anything_is_spent(name):
    with pm.Model() as model:
        pm.Normal(name)
        pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Normal("b") * pm.Data("x", np.linspace(-1, 1, 50)), observed=np.arange(50) % 2)
    with pytest.raises(pmdp.Refusal, match=f"The name {name} is needed"):
        pmdp.release(model, epsilon=1, bounds={"x": (-1, 1), "logit(y)": (-3, 3)})


def test_real_numbers_cast_to_a_private_index_make_the_cells_that_they_make_in_the_model(exact_seam):
    """A cast cuts off; rounding would put .9 and 1.9 into other cells than the user's."""
    with pm.Model() as model:
        x = pm.Data("x", np.array([0.2, 0.9, 1.9, 2.9]))
        pm.Bernoulli("y", logit_p=pm.Normal("a", shape=3)[x.astype("int64")], observed=np.array([0, 1, 1, 0]))
    released = pmdp.release(model, epsilon=10**9)["y"]
    assert released.values.squeeze().sum(axis=-1).tolist() == [2, 1, 1]


def test_real_numbers_that_are_an_index_and_a_covariate_are_refused():
    with pm.Model() as model:
        x = pm.Data("x", np.array([0.2, 0.9, 1.9, 2.9]))
        level = pm.Normal("a", shape=3)[x.astype("int64")]
        pm.Bernoulli("y", logit_p=level + pm.Normal("b") * x, observed=np.array([0, 1, 1, 0]))
    with pytest.raises(pmdp.Refusal, match="Give the index as integers"):
        pmdp.release(model, epsilon=1)


@pytest.mark.parametrize("bounds", [(30, 50), (0, 1e-300), (-50, -30)])
def test_bounds_of_a_predictor_that_are_far_out_or_too_close_are_refused_before_anything_is_spent(bounds):
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Normal("b") * pm.Data("x", np.linspace(-1, 1, 50)), observed=np.arange(50) % 2)
    with pytest.raises(pmdp.Refusal, match="too far apart, too far out or too close"):
        pmdp.release(model, epsilon=1, bounds={"x": (-1, 1), "logit(y)": bounds})


@pytest.mark.parametrize("first", [0.1, 7.3, 99.0])
def test_one_individual_moves_the_values_of_two_rows(first):
    """Somebody leaves one class, whose mean rises by 2.5, and comes to another, whose mean falls."""

    def model(means):
        with pm.Model() as model:
            pm.Normal("score", pm.Normal("class", 50, 10, shape=3), 5, observed=np.array(means))
        return model

    unit = pmdp.Individual(moves=2.5)
    neighbours_look_alike(model([first, 50.0, 60]), model([first + 2.5, 47.5, 60]), unit=unit, bounds={"score": (0, 100)}, rewrite=False)


@pytest.mark.parametrize("first", [0.5, 1.5, 2.0])
def test_counts_of_levels_with_halves(first):
    """One individual is counted at another level: one count is one lower, another one higher."""

    def model(counts):
        with pm.Model() as model:
            pm.Multinomial("y", 9, pm.Dirichlet("p", np.ones((2, 3))), observed=pm.Data("counts", np.array([counts, [2.0, 3, 4]])))
        return model

    neighbours_look_alike(model([first, 5.5, 2.0]), model([first + 1, 4.5, 2.0]), unit="individual", rewrite=False)


@pytest.mark.parametrize("first", [0.5, 1.5, 2.5, 0.3, 0.0, 7.0])
@pytest.mark.parametrize("make", [
    lambda y: pm.Poisson("y", pm.Exponential("l", 1, shape=3), observed=y),
    lambda y: pm.Binomial("y", 9, pm.Beta("p", 1, 1, shape=3), observed=y),
])  # fmt: skip
def test_totals_with_halves(make, first):
    """One event more moved a total of .5 to 1.5 and, rounded to the nearest even, from 0 to 2: twice the charge."""

    def model(total):
        with pm.Model() as model:
            make(pm.Data("totals", np.array([total, 2.0, 5.0])))
        return model

    unit = pmdp.Individual(events=1, membership="public")
    neighbours_look_alike(model(first), model(first + 1), unit=unit, rewrite=False)


def test_another_triangle_is_not_taken_for_the_lower_one():
    """Indices of an upper triangle became those of a lower one, and the posterior another without a word."""
    with pm.Model() as model:
        packed = pm.Normal("packed", shape=6)
        square = pt.set_subtensor(pt.zeros((3, 3))[np.triu_indices(3)], packed)
        pm.Bernoulli("y", logit_p=(square @ np.ones(3))[pm.Data("group", np.arange(12) % 3)], observed=np.arange(12) % 2)
    with pytest.raises(pmdp.Refusal):
        pmdp.release(model, epsilon=1, public=["group"])


def test_an_axis_without_a_dim_is_refused_in_words():
    """PyMC raised, where the model is copied, and so nothing said what to write."""
    with pm.Model(coords={"feature": ["age", "income"]}) as model:
        X = pm.Data("X", np.zeros((4, 2)), dims=(None, "feature"))
        pm.Normal("y", X @ pm.Normal("b", dims="feature"), 1, observed=np.zeros(4))
    for call in (pmdp.inspect, lambda model: pmdp.release(model, epsilon=1.0, bounds={"y": (-1, 1), "X": (-1, 1)})):
        with pytest.raises(pmdp.Refusal, match=r"An axis of X has no dim.*Name every axis"):
            call(model)


def test_one_array_observed_twice_is_refused_in_words():
    """PyMC raised, about a name, where the model is copied."""
    with pm.Model() as model:
        values, mu = pm.Data("values", np.zeros(4)), pm.Normal("mu")
        for name in ("first", "second"):
            pm.Normal(name, mu, 1, observed=values)
    for call in (pmdp.inspect, lambda model: pmdp.release(model, epsilon=1.0, bounds={"first": (-1, 1), "second": (-1, 1)})):
        with pytest.raises(pmdp.Refusal, match="first and second observe the same array values"):
            call(model)


def test_a_pipe_is_no_release(tmp_path):
    """Reading it would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(pmdp.Refusal, match="no file"):
            pmdp.Release.from_netcdf(path)


SPELLED = {
    "matmul": lambda X, K: X @ (pt.ones(K) / K),
    "stack": lambda X, K: X @ pt.stack([1 / K] * K),
    "tensordot": lambda X, K: pt.tensordot(X, pt.ones(K) / K, axes=[[1], [0]]),
    "a matrix": lambda X, K: (X @ (pt.ones((K, 2)) / K))[:, 0],
}


@pytest.mark.parametrize("spelling", SPELLED)
def test_a_record_that_goes_moves_no_other_s_rounding(spelling, exact_seam):
    """BLAS adds up a row in another order where there are four or more than where there are fewer: its feature fell on another lattice
    point. Alone it is put beside its like."""
    K, P, rng = 12, 2**15, np.random.default_rng(0)
    while True:
        r = rng.uniform(-1, 1, K)
        r[0] += ((rng.integers(-P // 2, P // 2) + 0.5) / P - r.mean()) * K
        w = np.ones(K) / K
        three = np.stack([r, *-np.ones((2, K))])
        if abs(r[0]) <= 1 and np.rint(np.dot(np.stack([*three, -np.ones(K)]), w)[0] * P) != np.rint(np.dot(three, w)[0] * P):
            break

    def exact(X, y):
        with pm.Model() as model:
            feature = SPELLED[spelling](pm.Data("x", X), K)
            pm.Normal("y", pm.Normal("a") + pm.Normal("b") * feature, 1, observed=y)
        released = pmdp.release(model, epsilon=1.0, bounds={"x": (-1, 1), "y": (-1, 1)}, neighbours="add_remove")
        return np.array(exact_seam.exact[-1], dtype=object), released["y"].difference

    most = 0
    for sign in (-1.0, 1.0):
        for own in (-1.0, 1.0):
            for others in (0, 2):
                rest = np.stack([r, *np.full((others, K), sign)])
                both, declared = exact(np.stack([*rest, np.full(K, sign)]), np.full(others + 2, own))
                moved = int(np.abs(both - exact(rest, np.full(others + 1, own))[0]).sum())
                assert moved <= declared
                most = max(most, moved)
    assert most == declared


OF_COLUMNS = {
    "a sum": lambda X: (X * (1 / 12)).sum(axis=1),
    "a product": lambda X: X @ (pt.ones(12) / 12),
    "turned": lambda X: (X.T * (1 / 12)).sum(axis=0),
}


@pytest.mark.parametrize("spelling", OF_COLUMNS)
def test_a_record_that_goes_moves_no_other_s_sum_of_columns(spelling, exact_seam):
    """Columns lie behind each other in memory, and were added up one after the other; those of a record alone lay in a row, and were added
    up pairwise."""
    K, P, rng = 12, 2**15, np.random.default_rng(0)
    for _ in range(30_000):
        r = rng.uniform(-1, 1, K)
        r[0] += ((rng.integers(-P // 2, P // 2) + 0.5) / P - r.mean()) * K
        rows = np.stack([r, r]) * (1 / K)
        one_after_the_other, pairwise = (array.sum(axis=1)[0] for array in (np.asfortranarray(rows), rows))
        if abs(r[0]) <= 1 and np.rint(one_after_the_other * P) != np.rint(pairwise * P):
            break
    else:
        pytest.skip("this NumPy adds up in one order")

    def exact(rows, y):
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("a") + pm.Normal("b") * OF_COLUMNS[spelling](pm.Data("x", rows)), 1, observed=y)
        released = pmdp.release(model, epsilon=1.0, bounds={"x": (-1, 1), "y": (-1, 1)}, neighbours="add_remove", missing={})
        return np.array(exact_seam.exact[-1], dtype=object), released["y"].difference

    for sign in (-1.0, 1.0):
        for own in (-1.0, 1.0):
            both, declared = exact(np.stack([r, np.full(K, sign)]), np.array([own, own]))
            assert np.abs(both - exact(r[None], np.array([own]))[0]).sum() <= declared


@pytest.mark.parametrize("shape", [(), (1,), (2,), (2, 3)])
def test_a_record_alone_is_released(shape):
    """Its like is put beside it, of whatever shape its covariate is."""
    for n in (2, 1, 0):
        with pm.Model() as model:
            x = pm.Data("x", np.ones((n, *shape))) ** 2
            pm.Normal("y", pm.Normal("b") * x.sum(axis=tuple(range(1, x.ndim))), 1, observed=np.ones(n))
        bounds = {"x": (-1, 1), "y": (-1, 1)}
        released = pmdp.release(model, epsilon=1.0, bounds=bounds, neighbours="add_remove", missing={})
        assert released.statistics


def test_a_record_that_goes_moves_no_other_s_log_likelihood(monkeypatch):
    """Values of several columns, in whichever order they lie in memory, are one record's: of a record alone nothing tells that order."""
    seen, log_likelihood = [], grid.log_likelihood

    def watched(rows, arrays):
        of = log_likelihood(rows, arrays)
        return lambda *given: seen.append(of(*given)[:, 0]) or of(*given)

    monkeypatch.setattr(grid, "log_likelihood", watched)
    rng = np.random.default_rng(0)
    for _ in range(4):
        row = rng.uniform(-1, 1, 12)
        for rows in (row[None], np.asfortranarray(np.stack([row, np.ones(12)]))):
            with pm.Model() as model:
                pm.Normal("y", pm.Uniform("b", -1, 1), 1, observed=rows)
            mechanism = pmdp.PosteriorSample(points=3, draws=1)
            pmdp.sample(model=model, mechanism=mechanism, epsilon=1.0, bounds={"y": (-1, 1)}, neighbours="add_remove", missing={})
    for alone, beside in zip(seen[::2], seen[1::2], strict=True):
        assert (alone == beside).all()


OF_ITEMS = {
    "a score": lambda items: (pt.ones(12) / 12) @ pt.stack(items),
    "a score, turned": lambda items: pt.stack(items).T @ (pt.ones(12) / 12),
    "maxima": lambda items: pt.maximum(pt.stack(items), -1).sum(axis=0) / 12,
}


def test_a_record_that_goes_moves_no_other_s_norm(exact_seam):
    """Entries that are kept in a ball: NumPy adds the squares up pairwise where one record is left. One entry by itself attains the box."""
    K, P, rng = 12, 2**15, np.random.default_rng(0)
    for _ in range(30_000):
        r, on_edge = rng.uniform(-1, 1, K), (rng.integers(-P // 2, P // 2) + 0.5) / P
        r[0] = on_edge * np.sqrt((r[1:] ** 2).sum() / (1 - on_edge**2))
        both = np.stack([r, r], axis=1).T
        first, alone = (rows[0, 0] * (1 / np.sqrt((rows**2).sum(axis=1)[0])) for rows in (both, both[:1]))
        if np.rint(first * P) != np.rint(alone * P):
            break
    else:
        pytest.skip("this NumPy adds up in one order")

    def exact(X, y):
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("a") + pm.Normal("b") * pm.Data("x", X)[:, 0], 1, observed=y)
        released = pmdp.release(model, epsilon=1.0, bounds={"x": pmdp.Norm(1.0), "y": (-1, 1)}, neighbours="add_remove")
        return np.array(exact_seam.exact[-1], dtype=object), released["y"].difference

    most = 0
    for sign in (-1.0, 1.0):
        for own in (-1.0, 1.0):
            both, declared = exact(np.stack([r, sign * np.eye(K)[0]]), np.array([own, own]))
            moved = int(np.abs(both - exact(r[None], np.array([own]))[0]).sum())
            assert moved <= declared
            most = max(most, moved)
    assert most == declared


@pytest.mark.parametrize("spelling", OF_ITEMS)
def test_a_record_that_goes_moves_no_other_s_sum_of_items(spelling, exact_seam):
    """NumPy adds items up pairwise where one record is left, and one after the other where there are two."""
    K, P, rng = 12, 2**15, np.random.default_rng(0)
    items = [pt.dvector() for _ in range(K)]
    summed = pytensor.function(items, products_as_sums(OF_ITEMS[spelling](items)), mode="FAST_COMPILE")
    for _ in range(30_000):
        r = rng.uniform(-1, 1, K)
        r[0] += ((rng.integers(-P // 2, P // 2) + 0.5) / P - r.mean()) * K
        first, alone = (summed(*np.ascontiguousarray(rows.T))[-1] for rows in (np.stack([-np.ones(K), r]), r[None]))
        if abs(r[0]) <= 1 and np.rint(first * P) != np.rint(alone * P):
            break
    else:
        pytest.skip("this NumPy adds up in one order")

    def exact(rows, y):
        with pm.Model() as model:
            columns = [pm.Data(f"x{k}", np.ascontiguousarray(rows[:, k])) for k in range(K)]
            pm.Normal("y", pm.Normal("a") + pm.Normal("b") * OF_ITEMS[spelling](columns), 1, observed=y)
        bounds = dict.fromkeys([*(f"x{k}" for k in range(K)), "y"], (-1, 1))
        released = pmdp.release(model, epsilon=1.0, bounds=bounds, neighbours="add_remove")
        return np.array(exact_seam.exact[-1], dtype=object), released["y"].difference

    for sign in (-1.0, 1.0):
        for own in (-1.0, 1.0):
            both, declared = exact(np.stack([np.full(K, sign), r]), np.array([own, own]))
            assert np.abs(both - exact(r[None], np.array([own]))[0]).sum() <= declared


def summed_columns(y, g, X):
    pm.Normal("y", pm.Normal("b") * pt.as_tensor(X).T.sum(axis=0), 1.0, observed=y)


def rows_of_a_table(y, g, X):
    pm.Normal("y", pm.Normal("b", shape=(2, 2))[pt.as_tensor(g)].sum(axis=1), 1.0, observed=y)


@pytest.mark.parametrize("make", [summed_columns, rows_of_a_table])
def test_nothing_is_said_of_records_where_chains_would_start(make, tmp_path):
    """The priors' density came from PyMC's of the whole model, which computes what it can of records beforehand: it warned of a sum of two
    infinities, and printed an index that counts down, before anything was paid."""
    ledger, said = pmdp.Ledger(tmp_path / "ledger", epsilon=1, create=True), []
    bounds = {"y": (-1, 1)} | ({"y:0": (1, 2)} if make is summed_columns else {})
    for g, X in (([1, 0], np.ones((2, 3))), ([1, 1], np.array([[1.0, 2.0, 3.0], [np.inf, -np.inf, np.nan]]))):
        with pm.Model() as model:
            make(np.zeros(2), np.array(g, dtype="uint8"), X)
        with watched(0) as (_, output, caught), pytest.raises(pmdp.Refusal, match="is left in ledger"):
            pmdp.sample(model=model, epsilon=2, bounds=bounds, ledger=ledger)
        said.append((output.getvalue(), [one.category for one in caught if one.category is not pmdp.SparseCellsWarning]))
    assert said == [("", [])] * 2
