"""Rows of values with an unknown of their own: the probabilities of rows, what is counted and how far it moves, what is refused."""

import re
from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import EXACT, log_density, points, refused, watched
from scipy import special, stats

import pymc_dp as pmdp
from pymc_dp.families.family import Domain, complete
from pymc_dp.models.reader import read_spec
from pymc_dp.models.row_patterns import PATTERNS, rows_of

pytestmark = pytest.mark.filterwarnings("ignore")
N, GROUP = 40, np.arange(40) % 2
FINE = np.linspace(-9, 9, 4001)
"""Where the reference looks at a standard normal unknown, far more closely than the library."""


def answers(many=2, items=3, seed=0):
    rng = np.random.default_rng(seed)
    return np.clip(np.rint((many - 1) / 2 + rng.normal(size=(N, 1)) + rng.normal(size=(N, items)) * many / 3), 0, many - 1).astype(int)


def one_parameter(Y):
    with pm.Model(coords={"person": range(len(Y)), "item": range(Y.shape[1])}) as model:
        b, s = pm.Normal("b", 0, 2, dims="item"), pm.HalfNormal("s", 1)
        theta = pm.Normal("theta", 0, s, dims="person")
        pm.Bernoulli("y", logit_p=theta[:, None] - b[None, :], observed=Y, dims=("person", "item"))
    return model


def two_parameters(Y):
    with pm.Model(coords={"item": range(Y.shape[1])}) as model:
        a, b = pm.LogNormal("a", 0, 0.5, dims="item"), pm.Normal("b", dims="item")
        theta = pm.Normal("theta", shape=len(Y))
        pm.Bernoulli("y", p=pm.math.invlogit(a * (theta[:, None] - b)), observed=Y)
    return model


def guessing(Y):
    with pm.Model() as model:
        b, c = pm.Normal("b", shape=Y.shape[1]), pm.Beta("c", 5, 17)
        z, s = pm.Normal("z", 0, 1, shape=len(Y)), pm.HalfNormal("s", 1)
        pm.Bernoulli("y", p=c + (1 - c) * pm.math.invprobit(s * z[:, None] - b), observed=Y)
    return model


def not_centred(Y):
    with pm.Model(coords={"person": range(len(Y))}) as model:
        b, s, z = pm.Normal("b", shape=Y.shape[1]), pm.HalfNormal("s", 1), pm.Normal("z", dims="person")
        theta = pm.Deterministic("theta", s * z, dims="person")
        pm.Bernoulli("y", logit_p=theta[:, None] - b, observed=Y)
    return model


def groups(Y):
    with pm.Model() as model:
        g = pm.Data("g", GROUP[: len(Y)])
        m, b, s = pm.Normal("m", shape=2), pm.Normal("b", shape=Y.shape[1]), pm.HalfNormal("s", 1)
        theta = pm.Normal("theta", m[g], s, shape=len(Y))
        pm.Bernoulli("y", logit_p=theta[:, None] - b, observed=Y)
    return model


def shifts(Y):
    with pm.Model() as model:
        g = pm.Data("g", GROUP[: len(Y)])
        d, theta = pm.Normal("d", shape=(2, Y.shape[1])), pm.Normal("theta", 0, 0.7, shape=len(Y))
        pm.Bernoulli("y", logit_p=theta[:, None] + d[g], observed=Y)
    return model


def several_trials(Y):
    with pm.Model() as model:
        b, s, theta = pm.Normal("b", shape=Y.shape[1]), pm.HalfNormal("s", 1), pm.Normal("theta", shape=len(Y))
        pm.Binomial("y", n=3, logit_p=s * theta[:, None] - b, observed=Y)
    return model


def steep(Y):
    with pm.Model() as model:
        theta = pm.Normal("theta", shape=len(Y))
        pm.Bernoulli("y", logit_p=10 * (theta[:, None] - pm.Normal("b", 0, 0.1, shape=Y.shape[1])), observed=Y)
    return model


def many_trials(Y):
    with pm.Model() as model:
        b, theta = pm.Normal("b", shape=Y.shape[1]), pm.Normal("theta", shape=len(Y))
        pm.Binomial("y", n=31, logit_p=5 * theta[:, None] - b, observed=Y)
    return model


def graded(Y):
    with pm.Model() as model:
        b, theta = pm.Normal("b", shape=(Y.shape[1], 2)), pm.Normal("theta", shape=len(Y))
        above = pm.math.invlogit(theta[:, None, None] - b)
        pm.Categorical(
            "y", p=pt.stack([1 - above[..., 0], above[..., 0] * (1 - above[..., 1]), above[..., 0] * above[..., 1]], -1), observed=Y
        )
    return model


def graded_by_cutpoints(Y):
    """Cutpoints that a transform keeps in order."""
    with pm.Model() as model:
        ordered = {"transform": pm.distributions.transforms.ordered, "initval": np.tile([-1.0, 1.0], (Y.shape[1], 1))}
        cuts, theta = pm.Normal("cuts", [-1.0, 1.0], 1, shape=(Y.shape[1], 2), **ordered), pm.Normal("theta", shape=len(Y))
        pm.OrderedLogistic("y", eta=pm.LogNormal("a", 0, 0.5, shape=Y.shape[1]) * theta[:, None], cutpoints=cuts, observed=Y)
    return model


def bernoulli(p):
    return np.stack([1 - p, p], axis=-1)


def trials(p, n=3):
    return stats.binom.pmf(np.arange(n + 1), n, p[..., None])


def by_steps(above):
    return np.stack([1 - above[..., 0], above[..., 0] * (1 - above[..., 1]), above[..., 0] * above[..., 1]], axis=-1)


def by_cutpoints(eta, cuts):
    return np.diff(special.expit(cuts - eta[..., None]), axis=-1, prepend=0.0, append=1.0)


# The probabilities (..., items, values) of a person's answers at numbers t of a standard normal, shape (t, persons or 1, items, values).
T = FINE[:, None, None]
MODELS = {
    one_parameter: (answers(), {}, lambda v: bernoulli(special.expit(v["s"] * T - v["b"]))),
    two_parameters: (answers(), {}, lambda v: bernoulli(special.expit(v["a"] * (T - v["b"])))),
    guessing: (answers(), {}, lambda v: bernoulli(v["c"] + (1 - v["c"]) * special.ndtr(v["s"] * T - v["b"]))),
    not_centred: (answers(), {}, lambda v: bernoulli(special.expit(v["s"] * T - v["b"]))),
    groups: (answers(), {"public": ["g"]}, lambda v: bernoulli(special.expit(v["m"][GROUP][:, None] + v["s"] * T - v["b"]))),
    shifts: (answers(), {"public": ["g"]}, lambda v: bernoulli(special.expit(0.7 * T + v["d"][GROUP]))),
    several_trials: (answers(4), {}, lambda v: trials(special.expit(v["s"] * T - v["b"]))),
    steep: (answers(items=8), {}, lambda v: bernoulli(special.expit(10 * (T - v["b"])))),
    many_trials: (answers(32, items=2), {}, lambda v: trials(special.expit(5 * T - v["b"]), 31)),
    graded: (answers(3), {}, lambda v: by_steps(special.expit(T[..., None] - v["b"]))),
    graded_by_cutpoints: (answers(3), {}, lambda v: by_cutpoints(v["a"] * T, v["cuts"])),
}


def summed(model, Y, of_values):
    """The log-density of a model with the unknowns of records summed out, by the trapezoidal rule on a fine grid."""
    kept = [rv for rv in model.free_RVs if rv.name not in ("theta", "z")]
    unknowns = model.compile_fn(model.replace_rvs_by_values(kept), inputs=model.value_vars, mode="FAST_COMPILE", on_unused_input="ignore")
    prior = model.compile_logp(vars=kept, jacobian=False, mode="FAST_COMPILE")
    weights = stats.norm.pdf(FINE) * (FINE[1] - FINE[0])

    def density(point):
        point = model.initial_point() | point
        values = dict(zip([rv.name for rv in kept], unknowns(point), strict=True))
        given = of_values(values)  # (t, persons or 1, items, values)
        given = np.broadcast_to(given, (len(FINE), len(Y), *given.shape[2:]))
        of_rows = np.take_along_axis(given, Y[None, :, :, None], axis=-1)[..., 0].prod(axis=-1)
        return prior(point) + np.log(weights @ of_rows).sum()

    return density


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_rows_have_the_probability_that_a_finer_sum_gives_them(make, exact_seam):
    """At exact counts the log-density differs from the model's own, its unknowns summed out otherwise, by a constant."""
    Y, arguments, of_values = MODELS[make]
    model = make(Y)
    private = pmdp.rewrite(model, pmdp.release(model, epsilon=EXACT, **arguments), noise_aware=False)
    assert not {"theta", "z"} & set(private.named_vars)
    ours, theirs = log_density(private), summed(model, Y, of_values)
    differences = [theirs(point) - ours(point) for point in points(private, 4)]
    assert np.ptp(differences) < (1e-4 if make in (steep, many_trials) else 1e-6), differences


def counted(Y, make=one_parameter, **arguments):
    """The integers that a release of these rows adds noise to."""
    with watched(0) as (seam, _, _):
        pmdp.release(make(Y), epsilon=1.0, **arguments)
    return np.array(seam.exact).ravel()


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_all_pairs_of_rows_move_the_counts_by_what_is_charged(neighbours):
    """Of two records, one is any other row, or not there: no pair moves the counts by more than is charged, and some by as much."""
    rows = list(product((0, 1), repeat=3))
    charged = pmdp.inspect(one_parameter(np.array(rows)), neighbours=neighbours).rows[0].sensitivity
    assert charged == {"replace": 2, "add_remove": 1}[neighbours]
    fixed = np.array([[0, 1, 1]])
    with_row = {row: counted(np.vstack([fixed, [row]]), neighbours=neighbours) for row in rows}
    others = [counted(fixed, neighbours=neighbours)] if neighbours == "add_remove" else list(with_row.values())
    moved = [np.abs(one - other).sum() for one in with_row.values() for other in others]
    assert max(moved) == charged


@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf, 1e300, -3.0, 0.5, 7.0, "x", None])
def test_whatever_an_entry_holds_a_row_is_counted_once(wild):
    values = np.array([[0, 1, 1], [wild, 1, 0], [1, wild, wild]], dtype=object)
    domain = Domain(0.0, 1.0, levels=3, known=(1.0, None))
    indicators = np.array(PATTERNS.exact(complete(values, domain), domain))
    assert indicators.shape == (8, 3)
    assert (indicators.sum(axis=0) == 1).all()
    assert indicators[3, 0] == 1  # 0 1 1


def test_rows_are_named_in_the_order_of_their_counts():
    Y = answers(3)
    released = pmdp.release(graded(Y), epsilon=EXACT)["y"]
    assert released.statistics == tuple(" ".join(map(str, row)) for row in rows_of(3, 3))
    found = dict(zip(released.statistics, np.rint(released.values.ravel()), strict=True))
    rows, many = np.unique(Y, axis=0, return_counts=True)
    assert {" ".join(map(str, row)): n for row, n in zip(rows, many, strict=True)} == {row: n for row, n in found.items() if n}


def test_rows_with_a_missing_entry_may_be_left_out():
    Y = answers().astype(float)
    Y[:7, 1] = np.nan
    counts = counted(Y, missing={"y": "left out"})
    assert counts.sum() == N - 7


def with_two_of_them(Y):
    with pm.Model() as model:
        theta = pm.Normal("theta", shape=len(Y))
        pm.Bernoulli("y", logit_p=theta[:, None] - pm.Normal("a", shape=2), observed=Y[:, :2])
        pm.Bernoulli("x", logit_p=theta[:, None] - pm.Normal("b", shape=1), observed=Y[:, 2:])
    return model


def by_a_covariate(Y):
    with pm.Model() as model:
        theta, g = pm.Normal("theta", shape=len(Y)), pm.Data("g", GROUP)
        pm.Bernoulli("y", logit_p=theta[:, None] - pm.Normal("b", shape=(2, 3))[g], observed=Y)
    return model


def of_another_law(Y):
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=pm.StudentT("theta", 4, shape=len(Y))[:, None] - pm.Normal("b", shape=3), observed=Y)
    return model


def of_real_values(Y):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("theta", shape=len(Y))[:, None] + pm.Normal("b", shape=3), 1.0, observed=Y)
    return model


def mixed_between_records(Y):
    with pm.Model() as model:
        theta = pm.Normal("theta", shape=len(Y))
        pm.Bernoulli("y", logit_p=(theta - theta.mean())[:, None] - pm.Normal("b", shape=3), observed=Y)
    return model


def in_a_potential(Y):
    model = one_parameter(Y)
    with model:
        pm.Potential("near", -(model["theta"] ** 2).sum())
    return model


def in_an_order(Y):
    with pm.Model() as model:
        theta = pm.Normal("theta", shape=len(Y), transform=pm.distributions.transforms.ordered)
        pm.Bernoulli("y", logit_p=theta[:, None] - pm.Normal("b", shape=3), observed=Y)
    return model


def above_an_end(Y):
    with pm.Model() as model:
        theta = pm.Normal("theta", shape=len(Y), transform=pm.distributions.transforms.Interval(0, None))
        pm.Bernoulli("y", logit_p=theta[:, None] - pm.Normal("b", shape=3), observed=Y)
    return model


def too_wide(Y):
    with pm.Model() as model:
        theta = pm.Normal("theta", 0, 100, shape=len(Y))
        pm.Bernoulli("y", logit_p=theta[:, None] - pm.Normal("b", shape=3), observed=Y)
    return model


def by_a_step(Y):
    with pm.Model() as model:
        theta = pm.Normal("theta", shape=len(Y))
        pm.Bernoulli("y", p=pt.switch(theta[:, None] > pm.Normal("b", shape=3), 0.9, 0.1), observed=Y)
    return model


def beyond_one(Y):
    with pm.Model() as model:
        theta = pm.Normal("theta", shape=len(Y))
        pm.Bernoulli("y", p=pm.Beta("b", 9, 9, shape=3) + 0.1 * theta[:, None], observed=Y)
    return model


REFUSED = {
    in_an_order: "transform of theta says more of it than its prior does",
    above_an_end: "transform of theta says more of it than its prior does",
    too_wide: "values follow it so steeply",
    by_a_step: "values follow it so steeply",
    beyond_one: "its probabilities leave 0 to 1 where the unknown is 6 standard deviations from its mean",
    with_two_of_them: "put columns that share it beside each other",
    by_a_covariate: r"rests on the private g.*public=\['g'\]",
    of_another_law: r"not one number a record with a pm\.Normal prior",
    of_real_values: "row of several values, of Bernoulli, Binomial, Categorical",
    mixed_between_records: "theta was not summed out: it is not read record by record",
    in_a_potential: "potential near",
}


def test_totals_with_a_share_of_each_are_not_told_of_a_transform_that_nobody_wrote():
    with pm.Model() as model:
        pm.Binomial("cases", n=[120, 140], p=pm.Beta("p", 1, 1, shape=2), observed=[13, 24])
    (row,) = pmdp.inspect(model).rows
    assert 'write unit="individual"' in row.reason
    assert "transform" not in row.reason


@pytest.mark.parametrize("make", REFUSED, ids=lambda make: make.__name__)
def test_what_cannot_be_summed_out_is_refused(make):
    assert re.search(f"(?i){REFUSED[make]}", refused(pmdp.release, make(answers()), epsilon=1.0))


def test_too_many_rows_are_refused():
    with pm.Model() as one_column:
        pm.Binomial("y", n=65, logit_p=pm.Normal("theta", shape=N)[:, None] - pm.Normal("b"), observed=answers()[:, :1])
    assert "rows are of 65 trials" in refused(pmdp.release, one_column, epsilon=1.0)
    assert "2^11 rows of values" in refused(pmdp.release, one_parameter(answers(items=11)), epsilon=1.0)
    assert pmdp.inspect(one_parameter(answers(items=10))).rows[0].structure == "shared"


def test_a_refused_model_shows_no_labels_of_records():
    """Where a model is refused it is not always known which dims are those of records; here ``theta`` is read backwards."""
    shown = []
    for many in (N, N - 1):
        with pm.Model(coords={"person": range(many)}) as model:
            theta = pm.Normal("theta", dims="person")
            pm.Bernoulli("y", logit_p=theta[::-1][:, None] - pm.Normal("b", shape=3), observed=answers()[:many])
        shown.append(pmdp.inspect(model, neighbours="add_remove"))
    assert shown[0].rows[0].structure == ""
    assert str(shown[0]) == str(shown[1])


def test_rows_are_drawn_with_their_probability_which_is_their_density():
    """20,000 rows; each of 8 shares within 5.3 standard errors (false alarm 1e-6). Two of them exchanged are seen with power 1."""
    p = np.arange(1, 9) / 36
    rows = read_spec(one_parameter(answers())).likelihoods[0].again(pt.constant(1.0), pt.constant(p))
    drawn = pm.draw(rows, 20_000, random_seed=2, mode="FAST_COMPILE")
    found = np.array([(drawn == row).all(axis=1).mean() for row in rows_of(3, 2)])
    assert (np.abs(found - p) < 5.3 * np.sqrt(p * (1 - p) / len(drawn))).all()
    assert pm.logp(rows, rows_of(3, 2)).eval() == pytest.approx(np.log(p))
