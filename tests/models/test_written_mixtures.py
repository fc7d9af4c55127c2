"""Mixtures written out in a Potential: which are read, as what, and which are refused in words that help."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import flat, refused
from pymc.model.fgraph import ModelFreeRV
from scipy import stats

import pymc_dp as pmdp
from pymc_dp.models.by_record import by_record
from pymc_dp.models.model_arrays import arrays_of
from pymc_dp.models.reader import read_spec
from pymc_dp.models.record_formulas import RecordFormula
from pymc_dp.models.structure import SKIPPED, Unreduced, above, substitute

pytestmark = pytest.mark.filterwarnings("ignore")
N = 40
Y = np.linspace(-3, 7, N)
BINS = {"y": pmdp.Bins(-4, 8, 12)}
EDGES = np.linspace(-3, 7, 11)


def normal(y, m, s):
    return pm.logp(pm.Normal.dist(m, s), y)


def each(y, w, m, s):
    return [pt.log(w[k]) + normal(y, m[k], s[k]) for k in range(2)]


def columns(y, w, m, s):
    parts = normal(y[:, None], m, s)
    return pt.logaddexp(pt.log(w[0]) + parts[:, 0], pt.log(w[1]) + parts[:, -1])


SPELLINGS = {
    "logsumexp of a stack": lambda *of: pm.math.logsumexp(pt.stack(each(*of), axis=0), axis=0).sum(),
    "logsumexp of a list": lambda *of: pm.math.logsumexp(each(*of), axis=0).sum(),
    "stacked behind records": lambda *of: pt.logsumexp(pt.stack(each(*of), axis=1), axis=-1).sum(),
    "keepdims": lambda *of: pm.math.logsumexp(pt.stack(each(*of), axis=1), axis=1, keepdims=True).sum(),
    "not summed": lambda *of: pm.math.logsumexp(pt.stack(each(*of)), axis=0),
    "logaddexp": lambda *of: pt.logaddexp(*each(*of)).sum(),
    "an axis of components": lambda y, w, m, s: pm.math.logsumexp(pt.log(w) + normal(y[:, None], m, s), axis=1).sum(),
    "components before records": lambda y, w, m, s: pt.logsumexp(pt.log(w)[:, None] + normal(y, m[:, None], s[:, None]), axis=0).sum(),
    "columns": lambda *of: columns(*of).sum(),
    "sum of densities": lambda y, w, m, s: pt.log((w * pt.exp(normal(y[:, None], m, s))).sum(axis=1)).sum(),
    "product with weights": lambda y, w, m, s: pt.log(pt.dot(pt.exp(normal(y[:, None], m, s)), w)).sum(),
    "densities one by one": lambda y, w, m, s: pt.log(w[0] * pt.exp(normal(y, m[0], s[0])) + w[1] * pt.exp(normal(y, m[1], s[1]))).sum(),
    "weight behind the density": lambda y, w, m, s: pt.logaddexp(*[normal(y, m[k], s[k]) + pt.log(w[k]) for k in range(2)]).sum(),
    "Mixture of a list": lambda y, w, m, s: pm.logp(pm.Mixture.dist(w, [pm.Normal.dist(m[k], s[k]) for k in range(2)]), y).sum(),
    "Mixture of one": lambda y, w, m, s: pm.logp(pm.Mixture.dist(w, pm.Normal.dist(m, s, shape=2)), y).sum(),
    "NormalMixture": lambda y, w, m, s: pm.logp(pm.NormalMixture.dist(w, m, s), y).sum(),
    "CustomDist": lambda y, w, m, s: pm.logp(
        pm.CustomDist.dist(w, m, s, logp=lambda y, w, m, s: pt.logaddexp(*each(y, w, m, s)), signature="(k),(k),(k)->()"), y
    ).sum(),
}  # fmt: skip
WEIGHTS = {
    "Dirichlet": lambda: pm.Dirichlet("w", np.ones(2)),
    "TrimmedDirichlet": lambda: pmdp.TrimmedDirichlet("w", np.ones(2), smallest=0.01),
    "a share": lambda: (lambda p: pt.stack([p, 1 - p]))(pm.Beta("p", 2, 2)),
    "softmax": lambda: pm.math.softmax(pm.Normal("z", shape=2)),
}


def model_of(write, weights="Dirichlet", values=Y, array=pm.Data):
    """A model of a Potential, which ``write`` makes of values, weights, means and standard deviations."""
    with pm.Model() as model:
        m, s = pm.Normal("m", 0, 3, shape=2), pm.HalfNormal("s", 3, shape=2)
        pm.Potential("like", write(array("y", values), WEIGHTS[weights](), m, s))
    return model


def components_of(model):
    (observed,) = arrays_of(model, binned={"y"}).observed
    return len(observed.random.owner.op.components)


def probabilities(model, values, records=1):
    """For every record, of what lies up to the first edge, between them, and beyond the last, at these values of unknowns."""
    (observed,) = arrays_of(model, binned={"y"}).observed
    unknowns = [v for v in above(list(observed.parameters), through_unknowns=False) if v.owner and isinstance(v.owner.op, ModelFreeRV)]
    numbers = {v: pt.constant(np.asarray(values[v.owner.op.name], dtype=v.type.dtype)) for v in unknowns}
    parameters = [substitute(p, dict(numbers), SKIPPED) + np.zeros(records) for p in observed.parameters]
    return pytensor.function([], observed.tree.between(EDGES, *parameters), mode="FAST_COMPILE")()


def expected(w, m, s):
    inner = stats.norm.cdf(EDGES, np.reshape(m, (-1, 1)), np.reshape(s, (-1, 1)))
    return np.asarray(w) @ np.diff(inner, axis=1, prepend=0.0, append=1.0)


@pytest.mark.parametrize("name", SPELLINGS)
def test_mixtures_are_read_however_they_are_written(name):
    """As the probabilities of that mixture: also of a component so narrow that no node of quadrature lies where it is."""
    model = model_of(SPELLINGS[name])
    spec = read_spec(model, binned={"y"})
    assert not spec.problems
    (likelihood,) = spec.likelihoods
    assert (likelihood.name, likelihood.refusal, likelihood.inputs) == ("y", None, ())
    assert components_of(model) == 2
    for m, s in (([-1.2, 3.1], [0.8, 1.7]), ([-1.2, 3.1], [2.0, 1e-5])):
        [found] = probabilities(model, {"w": [0.3, 0.7], "m": m, "s": s})
        np.testing.assert_allclose(found, expected([0.3, 0.7], m, s), atol=1e-7)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", ["logsumexp of a stack", "Mixture of a list", "densities one by one"])
def test_weights_are_read_however_they_are_made(name, weights):
    model = model_of(SPELLINGS[name], weights)
    assert components_of(model) == 2
    values = {"w": [0.3, 0.7], "p": 0.3, "z": np.log([0.3, 0.7]), "m": [-1, 3], "s": [1, 2]}
    np.testing.assert_allclose(probabilities(model, values)[0], expected([0.3, 0.7], [-1, 3], [1, 2]), atol=1e-7)


def by_hand(y, m, s):
    return -(((y - m) / s) ** 2) / 2 - pt.log(s) - np.log(2 * np.pi) / 2


OTHERS = {
    "known components": (lambda y, w, m, s: pm.logp(pm.Mixture.dist(w, [pm.Normal.dist(0, 1), pm.Cauchy.dist(2, 1)]), y), 2),
    "weights that are numbers": (lambda y, w, m, s: pt.logaddexp(pt.log(0.25) + normal(y, m[0], 1), pt.log(0.75) + normal(y, m[1], 2)), 2),
    "three by twos": (
        lambda y, w, m, s: pt.logaddexp(
            pt.log(w[0]) + normal(y, m[0], 1),
            pt.logaddexp(pt.log(w[1]) + normal(y, m[1], 1) + pt.log(0.5), pt.log(w[1]) + normal(y, m[0], 3) + pt.log(0.5)),
        ),
        3,
    ),
    "twos in threes": (
        lambda y, w, m, s: pt.logaddexp(
            pt.logaddexp(pt.log(0.25) + normal(y, m[0], 1), pt.log(0.25) + normal(y, m[1], 3)), pt.log(0.5) + normal(y, 0, 1)
        ),
        3,
    ),
    "a weight of a mixture in a mixture": (
        lambda y, w, m, s: pt.logaddexp(
            pt.log(w[1]) + pt.logaddexp(normal(y, m[1], 1), normal(y, m[0], 3)) - np.log(2), pt.log(w[0]) + normal(y, 0, 1)
        ),
        3,
    ),
    "a density with a sum in it": (
        lambda y, w, m, s: pt.logaddexp(
            pt.log(w[0]) + normal(y, m[0], 1),
            pt.log(w[1]) + pt.log(1 + (y - m[1]) ** 4) - (y - m[1]) ** 2 / 2 - np.log(4 * np.sqrt(2 * np.pi)),
        ),
        2,
    ),
    "a weight that is no factor": (
        lambda y, w, m, s: pt.logaddexp(pt.log(w[0]) + normal(y, m[0], 1), pt.softplus(pt.log(w[1])) + normal(y, m[1], 1)),
        0,
    ),
}  # fmt: skip
"""What is said of a record, and as how many components it is read; 0 where it is refused."""


@pytest.mark.parametrize("name", OTHERS)
def test_other_mixtures(name):
    write, many = OTHERS[name]
    model = model_of(lambda *of: write(*of).sum())
    if many:
        assert components_of(model) == many
        assert pmdp.release(model, epsilon=1.0, bounds=BINS)["y"].noisy.size == 12
    else:
        assert "pm.Mixture('t', w" in refused(pmdp.release, model, epsilon=1.0, bounds=BINS)


COMMON = {
    "a factor of all": lambda y, w, m, s: np.log(2) + pt.logaddexp(*[pt.log(w[k] / 2) + normal(y, m[k], s[k]) for k in range(2)]),
    "a factor of a sum": lambda y, w, m, s: pt.log(2 * sum(w[k] / 2 * pt.exp(normal(y, m[k], s[k])) for k in range(2))),
    "1 as a factor": lambda *of: 1.0 * pt.logaddexp(*each(*of)),
    "what is subtracted from all": lambda y, w, m, s: (
        pt.logaddexp(*[pt.log(w[k]) - pt.log(s[k]) - (y - m[k]) ** 2 / (2 * s[k] ** 2) for k in range(2)]) - np.log(2 * np.pi) / 2
    ),
    "a quotient": lambda y, w, m, s: pt.log(
        sum(w[k] * pt.exp(-(((y - m[k]) / s[k]) ** 2) / 2) / s[k] for k in range(2)) / np.sqrt(2 * np.pi)
    ),
    "a quotient in each": lambda y, w, m, s: pt.log(
        sum(w[k] * pt.exp(-((y - m[k]) ** 2) / (2 * s[k] ** 2)) / pt.sqrt(2 * np.pi * s[k] ** 2) for k in range(2))
    ),
    "weights that are products": lambda y, w, m, s: pm.math.logsumexp(
        [pt.log(w[k]) + pt.log(w[j]) + by_hand(y, m[k], s[k]) for k in range(2) for j in range(2)], axis=0
    ),
    "a weight between the others": lambda y, w, m, s: pt.logaddexp(
        *[-pt.log(s[k]) + pt.log(w[k]) - (((y - m[k]) / s[k]) ** 2) / 2 - np.log(2 * np.pi) / 2 for k in range(2)]
    ),
    "a factor of the values": lambda y, w, m, s: pt.logaddexp(*[pt.log(w[k]) + normal(y, m[k], s[k]) + y for k in range(2)]) - y,
}  # fmt: skip


@pytest.mark.parametrize("name", COMMON)
def test_factors_are_distributed_over_terms(name):
    """A weight may be several of the factors that do not rest on the values."""
    model = model_of(lambda *of: COMMON[name](*of).sum())
    assert components_of(model) == (4 if name == "weights that are products" else 2)
    [found] = probabilities(model, {"w": [0.3, 0.7], "m": [-1.2, 3.1], "s": [0.8, 0.01]})
    np.testing.assert_allclose(found, expected([0.3, 0.7], [-1.2, 3.1], [0.8, 0.01]), atol=1e-7)


# ---------- in a CustomDist
def flat_arguments(write):
    """The function of two components, of their weights, means and standard deviations one after the other."""
    return lambda y, w, v, m, n, s, t: write(y, [w, v], [m, n], [s, t])


IN_A_CUSTOM_DIST = {
    "logaddexp": lambda *of: pt.logaddexp(*each(*of)),
    "logsumexp of a list": lambda *of: pm.math.logsumexp(each(*of), axis=0),
    "stacked behind values": lambda *of: pt.logsumexp(pt.stack(each(*of), axis=1), axis=-1),
    "log of a sum": lambda y, w, m, s: pt.log(sum(w[k] * pt.exp(normal(y, m[k], s[k])) for k in range(2))),
    "by hand": lambda y, w, m, s: pt.logaddexp(*[pt.log(w[k]) + by_hand(y, m[k], s[k]) for k in range(2)]),
    "NormalMixture": lambda y, *of: pm.logp(pm.NormalMixture.dist(*[pt.stack(parts, axis=-1) for parts in of]), y),
} | {name: COMMON[name] for name in ("a factor of all", "1 as a factor", "a quotient", "weights that are products")}  # fmt: skip
OF_A_CUSTOM_DIST = {
    "a share": lambda: (lambda p: (p, 1 - p))(pm.Beta("p", 2, 2)),
    "a Dirichlet": lambda: (lambda w: (w[0], w[1]))(pm.Dirichlet("w", np.ones(2))),
    "a logistic regression": lambda: (lambda p: (p, 1 - p))(pm.math.invlogit(pm.Normal("a") + pm.Normal("b") * pm.Data("x", X))),
    "by group": lambda: (lambda p: (p, 1 - p))(pm.Beta("q", 2, 2, shape=2)[GROUP]),
}


def custom_model_of(write, weights="a share"):
    with pm.Model() as model:
        m, s = pm.Normal("m", 0, 3, shape=2), pm.HalfNormal("s", 3, shape=2)
        w = OF_A_CUSTOM_DIST[weights]()
        pm.Deterministic("weights", pt.stack([part + np.zeros(N) for part in w], axis=-1))
        pm.CustomDist("y", *w, m[0], m[1], s[0], s[1], logp=flat_arguments(write), observed=Y)
    return model


@pytest.mark.parametrize(
    ("name", "weights"),
    [*((name, "a share") for name in IN_A_CUSTOM_DIST), *(("logaddexp", weights) for weights in [*OF_A_CUSTOM_DIST][1:])],
)
def test_a_mixture_in_a_custom_dist_is_read_as_one(name, weights):
    """A component of standard deviation .01 keeps its weight in bins of width 1."""
    model = custom_model_of(IN_A_CUSTOM_DIST[name], weights)
    values = {"w": [0.3, 0.7], "p": 0.3, "a": -0.2, "b": 0.7, "q": [0.3, 0.6], "m": [-1.2, 3.1], "s": [0.8, 0.01]}
    ours = probabilities(model, values, records=N)
    theirs = expected(pm.do(model, {v.name: values[v.name] for v in model.free_RVs})["weights"].eval(), values["m"], values["s"])
    np.testing.assert_allclose(ours, theirs, atol=1e-7)


def test_a_component_keeps_its_weight_where_the_other_is_computed_from_it():
    """All weights are 1 together whatever the parameters, so that the whole could be taken for any density."""
    with pm.Model() as model:
        parameters = pm.Beta("p", 2, 2), pm.Normal("m"), pm.HalfNormal("s")
        density = lambda y, p, m, s: pt.logaddexp(pt.log(p) + normal(y, 0, 1), pt.log1p(-p) + normal(y, m, s))  # noqa: E731
        pm.CustomDist("y", *parameters, logp=density, observed=Y)
    [found] = probabilities(model, {"p": 0.3, "m": 3.1, "s": 0.01})
    np.testing.assert_allclose(found, expected([0.3, 0.7], [0, 3.1], [1, 0.01]), atol=1e-7)


def test_a_mixture_in_a_custom_dist_is_released():
    model = custom_model_of(IN_A_CUSTOM_DIST["logaddexp"], "a logistic regression")
    private = pmdp.privatize(model, epsilon=1.0, bounds=BINS | {"x": {-1, 0, 1}})
    assert np.isfinite(private.compile_logp(mode="FAST_COMPILE")(private.initial_point()))


def test_weights_of_a_custom_dist_that_do_not_add_up_are_refused():
    with pm.Model() as model:
        p = pm.Beta("p", 2, 2)
        density = flat_arguments(IN_A_CUSTOM_DIST["logaddexp"])
        pm.CustomDist("y", p, 1 - p**2, 0.0, pm.Normal("m"), 1.0, pm.HalfNormal("s"), logp=density, observed=Y)
    assert "is none over all real numbers" in refused(pmdp.release, model, epsilon=1.0, bounds=BINS)


def test_densities_of_pymc_with_checks_of_parameters_may_stand_in_a_custom_dist():
    """Checks raise at made-up numbers that do not go together: a lower end above an upper one."""
    with pm.Model() as model:
        low = pm.Normal("low")
        pm.CustomDist("y", low, low + 1, logp=lambda y, low, high: pm.logp(pm.Uniform.dist(low, high), y), observed=Y)
    [found] = probabilities(model, {"low": 1.0})
    np.testing.assert_allclose(found, np.diff(stats.uniform(1, 1).cdf(EDGES), prepend=0, append=1), atol=1e-12)


GROUP, X = np.arange(N) % 2, np.linspace(-1, 1, N)
BY_RECORD = {
    "by group": lambda group, x: pm.Dirichlet("w", np.ones(3), shape=(2, 3))[group],
    "softmax of a covariate": lambda group, x: pm.math.softmax(x[:, None] * pm.Normal("b", shape=3), axis=1),
    "softmax with one left out": lambda group, x: pm.math.softmax(
        pt.concatenate([pt.zeros_like(x)[:, None], x[:, None] * pm.Normal("b", shape=2)], axis=1), axis=-1
    ),
    "shares of shares": lambda group, x: (lambda p, q: pt.stack([p, (1 - p) * q, (1 - p) * (1 - q)], axis=-1))(
        pm.math.invlogit(pm.Normal("a") + pm.Normal("b") * x), pm.Beta("q", 2, 2, shape=2)[group]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_RECORD)
def test_weights_may_differ_between_records(name):
    values = {
        "a": -0.2,
        "b": [0.7, -0.4, 0.2],
        "q": [0.3, 0.6],
        "w": [[0.1, 0.3, 0.6], [0.5, 0.3, 0.2]],
        "m": [-1.2, 0.4, 3.1],
        "s": [0.8, 1e-5, 1.7],
    }
    with pm.Model() as model:
        y, x, group = pm.Data("y", Y), pm.Data("x", X), pm.Data("group", GROUP)
        w = pm.Deterministic("weights", BY_RECORD[name](group, x))
        pm.Potential("like", pm.logp(pm.NormalMixture.dist(w, pm.Normal("m", shape=3), pm.HalfNormal("s", shape=3)), y).sum())
    values = {v.name: np.resize(values[v.name], v.type.shape) for v in model.free_RVs}
    assert components_of(model) == 3
    bounds = BINS | ({} if name == "by group" else {"x": {-1, 0, 1}})
    assert pmdp.release(model, epsilon=1.0, bounds=bounds)["y"].noisy.shape[-1] == 12
    ours = probabilities(model, values, records=N)
    theirs = expected(pm.do(model, values)["weights"].eval(), values["m"], values["s"])
    np.testing.assert_allclose(ours, theirs, atol=1e-7)
    assert theirs.std(axis=0).max() > 0.01


def test_eight_components_with_a_covariate():
    """More parameters than a formula may have that is tried out as a whole."""
    with pm.Model() as model:
        m, s, y, x = pm.Normal("m", shape=8), pm.HalfNormal("s", shape=8), pm.Data("y", Y), pm.Data("x", np.arange(N) % 2)
        mixture = pm.NormalMixture.dist(pm.Dirichlet("w", np.ones(8)), m + pm.Normal("b") * x[:, None], s)
        pm.Potential("like", pm.logp(mixture, y).sum())
    assert components_of(model) == 8
    for neighbours in ("replace", "add_remove"):
        assert pmdp.release(model, epsilon=1.0, bounds=BINS | {"x": (0, 1)}, neighbours=neighbours)["y"].noisy.shape == (2, 12)


# ---------- what is refused
def no_constants(y, w, m, s):
    return pm.math.logsumexp(pt.log(w) - (y[:, None] - m) ** 2 / 2, axis=1).sum()


REFUSED = {
    "factors that are left out": no_constants,
    "weights that add up at some numbers only": lambda y, w, m, s: (
        lambda p: pm.math.logsumexp(pt.log(pt.stack([p, pt.switch(p < 0.8, 1 - p, 0.9)])) + normal(y[:, None], m, s), axis=1).sum()
    )(pm.math.invlogit(m[0])),
    "weights that do not add up": lambda y, w, m, s: pm.math.logsumexp(pt.log(s) + normal(y[:, None], m, 1), axis=1).sum(),
    "vectors that are no proportions": lambda y, w, m, s: pm.logp(
        pm.NormalMixture.dist(pm.MvNormal("v", np.zeros(2), np.eye(2)), m, s), y
    ).sum(),
    "weights by a covariate that do not add up": lambda y, w, m, s: (
        lambda p: pm.math.logsumexp(pt.log(pt.stack([p, 1 - p**2], axis=1)) + normal(y[:, None], m, s), axis=1).sum()
    )(pm.math.invlogit(m[0] * pm.Data("x", np.arange(N) % 2))),
    "more parameters than are tried out": lambda y, w, m, s: pm.math.logsumexp(
        pt.log(pm.Gamma("v", 1, 1, shape=5)) + normal(y[:, None], pm.Normal("n", shape=5), m[0]), axis=1
    ).sum(),
    "more components than are written out": lambda y, w, m, s: pm.math.logsumexp(
        normal(y[:, None], pm.Normal("many", shape=11), 1) - np.log(11), axis=1
    ).sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_mixtures_that_are_not_understood_are_refused(name):
    words = refused(pmdp.release, model_of(REFUSED[name]), epsilon=1.0, bounds=BINS)
    assert "pm.Mixture('t', w, [pm.Normal.dist(mu[0], sigma), pm.Normal.dist(mu[1], sigma)], observed=t)" in words
    assert "pm.logp(pm.Mixture.dist(w, [...]), t) in the Potential" in words


def test_what_a_refusal_says_can_be_written():
    words = refused(pmdp.release, model_of(no_constants), epsilon=1.0, bounds=BINS)
    written = words[words.index("pm.Mixture(") : words.index(", or pm.logp(pm.Mixture.dist(w")]
    with pm.Model() as model:
        names = {"pm": pm, "t": Y, "w": pm.Dirichlet("w", np.ones(2)), "mu": pm.Normal("mu", shape=2), "sigma": pm.HalfNormal("sigma")}
        eval(written, names)
    assert pmdp.release(model, epsilon=1.0, bounds={"t": BINS["y"]})["t"].noisy.size == 12
    with pm.Model() as model:
        names = {"pm": pm, "t": pm.Data("t", Y), "w": pm.Dirichlet("w", np.ones(2)), "mu": pm.Normal("mu", shape=2), "sigma": 1.0}
        components = written[written.index("[pm.Normal") : written.rindex(", observed")]
        pm.Potential("like", eval("pm.logp(pm.Mixture.dist(w, [...]), t)".replace("[...]", components), names).sum())
    assert pmdp.release(model, epsilon=1.0, bounds={"t": BINS["y"]})["t"].noisy.size == 12


# ---------- one record says nothing of another
TOGETHER = {
    "the first value": lambda y, x: y - y[0],
    "in reverse": lambda y, x: y - y[::-1],
    "every other": lambda y, x: y[:, None] - y[None, :],
    "every other, before": lambda y, x: y[None, :] - y[:, None],
    "a covariate of every other": lambda y, x: y[:, None] - x[None, :],
    "a sum of all": lambda y, x: y - y.sum(keepdims=True),
    "in turns": lambda y, x: pt.concatenate([y[3:], y[:3]]) - y,
    "turned about": lambda y, x: pt.stack([y, y], axis=1)[::-1] - y[:, None],
}


@pytest.mark.parametrize("n", [6, N])
@pytest.mark.parametrize("name", TOGETHER)
def test_records_that_meet_each_other_are_refused(name, n):
    """Also where there are as few of them as components are written out."""
    with pm.Model() as model:
        y, x = pt.as_tensor(Y[:n]), pt.as_tensor(np.linspace(0, 1, n))
        between = normal(TOGETHER[name](y, x), 0, pm.HalfNormal("s"))
        pm.Potential("like", (pm.math.logsumexp(between - np.log(n), axis=1) if between.ndim == 2 else between).sum())
    for neighbours in ("replace", "add_remove"):
        words = refused(pmdp.release, model, epsilon=1.0, bounds={"like": BINS["y"]}, neighbours=neighbours)
        assert "mix" in words or "what the value of another is" in words


@pytest.mark.parametrize("write", [
    lambda y, v: pm.logp(pm.NormalMixture.dist(v, [0.0, 1.0], pm.HalfNormal("s", shape=2)), y),
    lambda y, v: pm.math.logsumexp(pt.log(v) + normal(y[:, None], pm.Normal("m", shape=2), 1), axis=1),
])  # fmt: skip
def test_no_value_decides_whether_weights_add_up(write):
    """Those of private arrays are not looked at."""
    words = []
    for values in ([0.3, 0.7], [0.3, 0.3], [-1.0, 9.0]):
        with pm.Model() as model:
            pm.Potential("like", write(pm.Data("y", Y), pm.Data("v", np.array(values))).sum())
        words.append(refused(pmdp.release, model, epsilon=1.0, bounds=BINS))
    assert words[0] is not None
    assert words[0] == words[1] == words[2]


@pytest.mark.parametrize("array", [pm.Data, lambda name, values: pt.as_tensor(values)], ids=["named", "plain"])
@pytest.mark.parametrize("name", ["Mixture of a list", "an axis of components", "components before records"])
def test_the_number_of_records_does_not_show_where_it_is_private(name, array):
    """Also where there are as many as components, or one."""
    bounds = {("y" if array is pm.Data else "like"): BINS["y"]}
    models = [model_of(SPELLINGS[name], values=Y[:n], array=array) for n in (0, 1, 2, N)]
    shown = {flat(pmdp.inspect(model, bounds=bounds, neighbours="add_remove")) for model in models}
    assert len(shown) == 1
    assert "not released" not in shown.pop()


@pytest.mark.parametrize("held", [pt.constant(Y), np.array(Y), pt.constant(Y).sum()], ids=["variable", "array", "above an expression"])
def test_an_operation_that_holds_an_array_is_refused(held):
    def write(y, w, m, s):
        mean = pm.math.softmax(m)
        mean.owner.op.secret = held
        return normal(y, mean[0], s[0]).sum()

    words = refused(pmdp.release, model_of(write), epsilon=1.0, bounds=BINS)
    assert words.startswith("The Potential like cannot be read as a likelihood: it passes through Softmax, whose property secret holds")


@pytest.mark.parametrize("of", [lambda y: pt.switch(pt.eq(pt.arange(N), 0), y, y), lambda y: y + pt.arange(N)])
def test_numbers_that_differ_between_records_are_refused(of):
    """They were taken for one number that all have in common, and the release failed when it had been paid for."""
    model = model_of(lambda y, w, m, s: normal(of(y), m[0], s[0]).sum())
    assert "Write them as pm.Data('x', numbers)" in refused(pmdp.release, model, epsilon=1.0, bounds=BINS)
    with pm.Model() as model:
        y, x = pm.Data("y", Y), pm.Data("x", np.arange(N) % 3)
        pm.Potential("like", normal(y + x, pm.Normal("m"), 1).sum())
    assert pmdp.release(model, epsilon=1.0, bounds=BINS | {"x": (0, 2)})["y"].noisy.shape == (3, 12)
    assert components_of(model_of(lambda y, w, m, s: pm.logp(pm.NormalMixture.dist(w, m, s), y * pt.ones(N)).sum())) == 2


def test_nothing_is_published_with_a_formula_but_numbers():
    y, x = pt.as_tensor(Y), pt.as_tensor(np.linspace(0, 1, N))
    formula = RecordFormula(y * pm.Normal.dist(), {y: None})
    assert formula.written(part=y * 2).graph.type.ndim == 1
    with pytest.raises(Unreduced, match="not one of its values and parameters"):
        formula.written(part=y * x)


# ---------- formulas of many records, as one
LAYOUTS = {
    "columns put together": lambda y, x, m: pt.concatenate([y[:, None] * m, x[:, None], pt.exp(y)[:, None]], axis=1).sum(axis=1),
    "a row of numbers": lambda y, x, m: (y[:, None] * pt.stack([m[0], m[1] ** 2, m[2]])).sum(axis=-1),
    "single columns": lambda y, x, m: (y[:, None] + m)[:, -1] * (x[:, None] * m[None, :])[:, 0],
    "a product of matrices": lambda y, x, m: pt.dot(y[:, None] + x[:, None] * m, pt.outer(m, m))[:, 1],
    "three axes": lambda y, x, m: (y[None, :, None] * m[:, None, None] + m[None, None, :2]).sum(axis=(0, 2)),
    "the largest of many": lambda y, x, m: pt.logsumexp(y[:, None] * m, axis=1) + pt.logaddexp(y, m[0]),
    "a column of its own": lambda y, x, m: (y * x)[:, None],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_written_out_is_what_was_written(name):
    y, x, m = pt.dvector(), pt.dvector(), pt.tensor(shape=(3,), dtype="float64")
    formula = LAYOUTS[name](y, x, m)
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=5), rng.normal(size=5), rng.normal(size=3)
    both = pytensor.function([y, x, m], [formula.flatten(), by_record(formula, y)], mode="FAST_COMPILE", on_unused_input="ignore")
    theirs, ours = both(*numbers)
    assert ours.shape == (5,)
    np.testing.assert_allclose(ours, theirs, rtol=1e-13)


@pytest.mark.parametrize("write", [lambda y: pt.sort(y), lambda y: y[:, None] * y, lambda y: y.mean() + y, lambda y: pt.cumsum(y)])
def test_what_cannot_be_written_out_is_refused(write):
    y = pt.dvector()
    with pytest.raises(Unreduced):
        by_record(write(y), y)


def _double_odds(y, p):
    """1/2 is its own complement: there, and nowhere else, one factor may be taken for another."""
    odds = pm.math.logit(p)
    return pt.logaddexp(pt.log1p(-p) + odds + normal(y, -1.2, 1.0), pt.log(p) - odds + normal(y, 3.1, 0.4))


def _half_odds(y, p):
    return pt.log(p) + pt.logaddexp(normal(y, -1.2, 1.0), pt.log((1 - p) / p) + normal(y, 3.1, 0.4))


@pytest.mark.parametrize("custom", [True, False])
@pytest.mark.parametrize("write", [_double_odds, _half_odds])
def test_a_factor_is_not_taken_for_its_complement(write, custom):
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        if custom:
            pm.CustomDist("y", p, logp=write, observed=Y)
        else:
            pm.Potential("like", write(pm.Data("y", Y), p).sum())
    (observed,) = arrays_of(model, binned={"y"}).observed
    assert len(observed.tree.weights) == 2
    for share in (0.3, 0.9):
        [found] = probabilities(model, {"p": share})
        np.testing.assert_allclose(found, expected([share, 1 - share], [-1.2, 3.1], [1.0, 0.4]), atol=1e-6)


BEYOND = {
    "above 1": (lambda: pm.Uniform("w", 0.5, 1.5), {"w": 1.3}, 1.3, 0),
    "a share": (lambda: pm.Uniform("w", 0, 1), {"w": 0.7}, 0.7, 2),
    "a quotient of shares": (lambda: pm.Uniform("a", 0, 1) / pm.Uniform("b", 0.5, 1), {"a": 0.78, "b": 0.6}, 1.3, 0),
    "a multiple of a share": (lambda: 1.5 * pm.Beta("a", 2, 2), {"a": 0.8}, 1.2, 0),
    "a quotient that is a share": (
        lambda: (lambda a, b: a / (a + (1 - a) * b))(pm.Beta("a", 2, 2), pm.Beta("b", 2, 2)),
        {"a": 0.4, "b": 0.5}, 0.4 / 0.7, 2,
    ),
}  # fmt: skip
"""A weight, numbers of its unknowns and it at these; and as how many components the mixture of it and 1 less it is read."""


@pytest.mark.parametrize("custom", [True, False])
@pytest.mark.parametrize("name", BEYOND)
def test_a_weight_may_be_above_1_where_the_sum_is_a_density(name, custom):
    """1.3 of a normal density less .3 of a narrower one: it is integrated as a whole, as its logarithm takes that of no weight."""

    def write(y, w):
        return pt.log(w * pt.exp(normal(y, 0, 2.0)) + (1 - w) * pt.exp(normal(y, 0, 1.5)))

    weight, values, share, components = BEYOND[name]
    with pm.Model() as model:
        if custom:
            pm.CustomDist("y", weight(), logp=write, observed=Y)
        else:
            pm.Potential("like", write(pm.Data("y", Y), weight()).sum())
    (observed,) = arrays_of(model, binned={"y"}).observed
    assert len(observed.tree.weights) == components
    [found] = probabilities(model, values)
    np.testing.assert_allclose(found, expected([share, 1 - share], [0, 0], [2.0, 1.5]), atol=1e-5)


def genotypes(y, p, q, m, s):
    return pt.log(sum(w * pt.exp(normal(y, m[k], s[k])) for k, w in enumerate([p**2, 2 * p * q, q**2])))


@pytest.mark.parametrize("custom", [True, False])
@pytest.mark.parametrize("prior", ["a share", "by group"])
def test_weights_may_be_powers(prior, custom):
    """Genotypes by the frequency of an allele (Hardy-Weinberg): a component of standard deviation .01 keeps its weight."""
    with pm.Model() as model:
        m, s = pm.Normal("m", 0, 3, shape=3), pm.HalfNormal("s", 3, shape=3)
        p = pm.Beta("p", 2, 2) if prior == "a share" else pm.Beta("q", 2, 2, shape=2)[pm.Data("group", GROUP)]
        if custom:
            flat = lambda y, p, q, *of: genotypes(y, p, q, of[:3], of[3:])  # noqa: E731
            pm.CustomDist("y", p, 1 - p, *(m[k] for k in range(3)), *(s[k] for k in range(3)), logp=flat, observed=Y)
        else:
            pm.Potential("like", genotypes(pm.Data("y", Y), p, 1 - p, m, s).sum())
    (observed,) = arrays_of(model, binned={"y"}).observed
    assert len(observed.tree.weights) == 3
    means, spreads = [-1.2, 0.4, 3.1], [0.8, 0.01, 1.7]
    found = probabilities(model, {"p": 0.3, "q": [0.3, 0.6], "m": means, "s": spreads}, records=N)
    for row, share in zip(found, [0.3] * N if prior == "a share" else np.array([0.3, 0.6])[GROUP], strict=True):
        weights = [share**2, 2 * share * (1 - share), (1 - share) ** 2]
        np.testing.assert_allclose(row, expected(weights, means, spreads), atol=1e-7)


def test_a_power_whose_exponent_is_no_number_is_no_weight():
    """(-1)**k is a number at whole exponents alone: what weights add up to at one of them says nothing of another."""
    with pm.Model() as model:
        k, half = pm.Data("k", GROUP), pm.Beta("p", 2, 2) / 2
        w = half + half * pt.constant(-1.0) ** k
        y = pm.Data("y", Y)
        pm.Potential("like", pt.logaddexp(pt.log(w) + normal(y, 0, 1), pt.log(1 - w) + normal(y, 2, 1)).sum())
    assert components_of(model) == 0
