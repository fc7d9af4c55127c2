"""The log-likelihood of one record: certain bounds of it, against what is found by trying."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import mostly_slow
from hypothesis import given, settings
from hypothesis import strategies as st

import pymc_dp as pmdp
from pymc_dp.models.intervals import RepeatedInterval, interval
from pymc_dp.models.reader import read_model
from pymc_dp.models.structure import Unreduced
from pymc_dp.plans.protection import protection_of
from pymc_dp.plans.ranges import pieces, ranges
from pymc_dp.plans.rowwise import check_finite, entries_of, norms_of, rowwise
from pymc_dp.posterior.records import log_likelihood

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(5)
N = 12
X, Y, K = RNG.normal(size=N), RNG.integers(0, 2, N), RNG.integers(0, 5, N)
W = RNG.normal(size=(N, 2))


# ---------- interval arithmetic
def graphs(x, y):
    """Expressions of two vectors: x in any box, y in a box of positive numbers."""
    return [
        x * y - x, x / y, pt.exp(x) + y, pt.log(y) * x, pt.sqr(x) - x, abs(x) * y, pt.log1p(y) - pt.sigmoid(x), pt.softplus(x * y),
        pt.tanh(x) ** 3, y**2.5, y**x, pt.gammaln(y), pt.switch(pt.lt(x, y), x, y * 2), pt.switch(x > 0, pt.log(x), x),
        pt.maximum(x, 0.3) * pt.minimum(y, 1.2), pt.erf(x) - pt.erfc(y), pt.cos(x) * y, pt.sin(y), pt.expm1(-y) * x, pt.sqrt(y) // 0.5,
        pt.log1mexp(-y) + x, pt.ceil(x) - pt.floor(y), pt.logsumexp(pt.stack([x, y], axis=1), axis=1), pt.arctan(x) / (1 + y),
        pt.special.softmax(pt.stack([x, y, x * 0], axis=1), axis=1)[:, 0], pt.special.log_softmax(pt.stack([x, y], axis=1), axis=1)[:, 1],
        pt.stack([x, y], axis=1) @ pt.stack([y, x], axis=0)[:, :2], pt.stack([x, y], axis=1).max(axis=1), pt.cast(x * 3, "int64") * y,
        pt.eq(pt.round(x), 0) * y, pt.and_(x > 0, y > 1) * 2 + pt.invert(x > 0) * y,
        pt.reciprocal(y) * pt.sign(x), pt.mod(y, 3.0),
        pt.mod(pt.cast(pt.floor(y), "int64"), 3) * x, pt.arange(0.5, 2.6, 0.8) * y,
        pt.logaddexp(x, y, 0.5), pt.special.xlogy(x, y), pt.special.xlog1py(x, y), pt.clip(x, -y, y), pt.isnan(pt.sqrt(x)),
        pt.special.softmax(pt.stack([x, y, x * 0, y], axis=1).reshape((-1, 2, 2)), axis=(1, 2))[:, 1, 0],
        pt.gammainc(y, abs(x)), pt.gammaincc(y, x**2), pt.betainc(y, y + 1, pt.sigmoid(x)),
        pt.switch(x < -1, pt.log(pt.erfcx(-x) / 2) - x**2, pt.log1p(-pt.erfc(x) / 2)), pt.switch(x > 0.5, pt.reciprocal(x), y),
        pt.switch(pt.ge(0.5, x), x, pt.reciprocal(x)), pt.switch(pt.eq(x, 1.0), pt.log(x + y), y),
        pt.switch(pt.neq(x, 1.0), y, pt.log(x + y)),
        pt.switch(x <= 1, pt.switch(x >= -1, pt.arctan(x) * x, pt.reciprocal(x)), x), pt.log1mexp(-40 * y),
    ]  # fmt: skip


BOXED = pt.vector("x", dtype="float64"), pt.vector("y", dtype="float64")
GRAPHS = graphs(*BOXED)
PLACES = range(len(GRAPHS))


@pytest.mark.parametrize("place", PLACES)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_values_lie_within_their_interval(place, seed):
    """At the ends of random boxes and inside them."""
    rng = np.random.default_rng(seed)
    ends = [np.sort(rng.normal(scale=2, size=(2, 3)), axis=0), np.sort(rng.gamma(2, 1, size=(2, 3)) + 0.01, axis=0)]
    try:
        low, high = interval(GRAPHS[place], dict(zip(BOXED, map(tuple, ends), strict=True)))
    except Unreduced:
        assert place in {2, 11, 13}, "only what overflows or may be infinite is refused"
        return
    of = compiled(place)
    for _ in range(20):
        share = rng.choice([0.0, 1.0, rng.random()], size=(2, 3))
        at = [end[0] + part * (end[1] - end[0]) for end, part in zip(ends, share, strict=True)]
        value = of(*at)
        slack = 1e-9 * (1 + np.abs(value))
        assert (value >= low - slack).all()
        assert (value <= high + slack).all()


@pytest.mark.parametrize("changing", [0, 1])
def test_what_is_kept_between_boxes_changes_no_interval(changing):
    """Two of three boxes differ in one of the vectors only, and so does what rests on it."""
    rng = np.random.default_rng(5)
    kept, changed = BOXED[1 - changing], BOXED[changing]
    ends = {BOXED[0]: (-rng.random(3), rng.random(3)), BOXED[1]: (0.5 + rng.random(3), 2 + rng.random(3))}
    for graph in GRAPHS:
        repeated = RepeatedInterval(graph, {kept: ends[kept]}, [changed], {})
        for share in (0.0, 0.4, 1.0):
            low, high = ends[changed]
            box = {changed: (low, low + share * (high - low))}
            try:
                wanted = interval(graph, ends | box)
            except Unreduced:
                with pytest.raises(Unreduced):
                    repeated(box)
                continue
            np.testing.assert_array_equal(repeated(box), wanted)


CACHE: dict = {}


def compiled(place):
    if place not in CACHE:
        CACHE[place] = pytensor.function(BOXED, GRAPHS[place], mode="FAST_COMPILE", on_unused_input="ignore")
    return CACHE[place]


@pytest.mark.parametrize(
    ("of", "dtype", "low", "high", "value"),
    [
        (lambda x: -x, "uint8", 0, 5, 5), (lambda x: x - 3, "uint8", 0, 5, 1), (lambda x: x * x, "int8", 0, 100, 71),
        (lambda x: x**2, "int8", 0, 100, 71), (abs, "int8", -128, 100, -128), (lambda x: x.astype("int8"), "float64", 0, 300, 200.0),
        (lambda x: x.astype("uint8"), "int64", -3, 3, -3), (lambda x: pt.isnan(pt.sqrt(x)), "float64", -1, 7, -1.0),
        (lambda x: pt.isnan(x), "float64", -1, 7, 0.5), (lambda x: pt.add(x, x), "bool", 1, 1, 1),
        (lambda x: x.astype("float32"), "float64", 0, 0.7, 0.7), (lambda x: x.astype("float32"), "float64", 0.1, 5, 0.1),
    ],
)  # fmt: skip
def test_bounds_hold_for_every_kind_of_number(of, dtype, low, high, value):
    """Of kinds that cannot hold what is computed; short numbers are rounded; and what is no number is told from what is."""
    x = pt.tensor("x", dtype=dtype, shape=(None,))
    least, most = interval(of(x), {x: (np.array([float(low)]), np.array([float(high)]))})
    found = float(pytensor.function([x], of(x), mode="FAST_COMPILE")(np.array([value], dtype=dtype))[0])
    assert least[0] <= found <= most[0]


def test_what_is_not_known_is_refused():
    x = pt.vector("x", dtype="float64")
    with pytest.raises(Unreduced, match="lower end first"):
        interval(pt.clip(x, 3, 1), {x: (np.zeros(2), np.full(2, 4.0))})
    for graph in (pt.digamma(x), pt.cumsum(x), pt.bitwise_and(pt.cast(x, "int64"), 3), ~pt.cast(x > 1, "int64")):
        with pytest.raises(Unreduced, match="no known bounds"):
            interval(graph, {x: (np.zeros(2), np.full(2, 4.0))})


def test_what_may_be_no_number_is_not_taken_for_a_number():
    """A record that has no logarithm would point beyond a table that others do not: refused for all of them alike."""

    def outcome(value):
        x = np.ones(30)
        x[3] = value
        with pm.Model() as model:
            table = pm.Uniform("t", -2, 2) * pt.arange(3) / 10
            gone = pt.isnan(pt.log(pm.Data("x", x))).astype("int64")
            pm.Normal("y", table[gone * 5], 1, observed=np.linspace(0, 1, 30))
        with pytest.raises(pmdp.Refusal) as caught:
            pmdp.sample(model=model, mechanism=pmdp.PosteriorSample(), epsilon=1, bounds={"x": (-1, 1), "y": (0, 1)})
        return str(caught.value)

    assert outcome(1.0) == outcome(-0.5)


def test_a_branch_counts_only_where_it_is_taken():
    """What is compared with a number lies on one side of it within a branch; without that, these have no bounds."""
    x = pt.vector("x", dtype="float64")
    box = {x: (np.array([-3.0]), np.array([40.0]))}
    for of, low, high in (
        (pt.switch(x > 0.5, pt.log(x), 0.0), np.log(0.5), np.log(40)), (pt.switch(pt.lt(0.5, x), pt.log(x), 0.0), np.log(0.5), np.log(40)),
        (pt.switch(x <= 0.5, 0.0, pt.log(x)), np.log(0.5), np.log(40)), (pt.switch(pt.eq(x, 2.0), pt.log(x), 0.0), 0.0, np.log(2)),
        (pt.switch(pt.neq(x, 2.0), 0.0, pt.log(x)), 0.0, np.log(2)), (pt.switch(x < 0.5, 0.0, pt.reciprocal(x)), 0.0, 2.0),
    ):  # fmt: skip
        found = interval(of, box)
        assert (found[0], found[1]) == (pytest.approx(low), pytest.approx(high))
    for of in (pt.switch(x > -0.5, pt.log(x), 0.0), pt.switch(x < 0.5, pt.log(x), 0.0), pt.switch(pt.neq(x, 2.0), pt.log(x), 0.0)):
        with pytest.raises(Unreduced):
            interval(of, box)
    root = pt.sqrt(x)  # may be no number, which no comparison holds for: so nothing follows in the other branch
    with pytest.raises(Unreduced):
        interval(pt.switch(root < 1, 0.0, pt.reciprocal(root)), box)


def test_softmax_over_two_axes_of_a_private_covariate():
    with pm.Model() as model:
        share = pt.special.softmax(pm.Data("x", np.zeros((20, 2, 2))), axis=(1, 2))
        pm.Normal("y", pm.Normal("b") * share[:, 0, 0], 1, observed=np.ones(20))
    pmdp.release(model, epsilon=1, bounds={"y": (0, 1), "x": (0, 20)})


def test_products_are_no_larger_than_norms_allow():
    X, w = pt.matrix("X", dtype="float64"), pt.vector("w", dtype="float64")
    box = {X: (-np.ones((1, 3)), np.ones((1, 3))), w: (-np.ones(3), np.ones(3))}
    assert interval(X @ w, box)[1] == 3
    assert interval(X @ w, box, {w: 1.0})[1] == pytest.approx(np.sqrt(3))
    assert interval(X @ w, box, {w: 1.0, X: 0.5})[1] == pytest.approx(0.5)


# ---------- models, with what theory says of them
def bernoulli():
    pm.Bernoulli("y", pm.Truncated("t", pm.Beta.dist(2, 1), lower=0.1, upper=0.9), observed=Y)
    return {}, np.log(9)


def exponential():
    """DNMR14, Lemma 3's family on [0, 4]: the largest rate times the width, rates less that in the middle."""
    pm.Exponential("x", pm.Uniform("r", 0.5, 2), observed=abs(X))
    return {"bounds": {"x": (0, 4)}}, 0.75 * 4.0


def laplace():
    """Lemma 4's: |x - y| / s."""
    pm.Laplace("x", pm.Uniform("m", -10, 10), 2.0, observed=X)
    return {"bounds": {"x": (-3, 3)}}, 6 / 2.0


def poisson():
    pm.Poisson("k", pm.Uniform("m", 1, 4), observed=K)
    return {"bounds": {"k": (0, 6)}}, None


def student():
    pm.StudentT("x", nu=3, mu=pm.Uniform("m", -1, 1), sigma=1.0, observed=X)
    return {"bounds": {"x": (-3, 3)}}, None


def logistic():
    pm.Bernoulli("y", logit_p=pm.Data("W", W) @ pm.Uniform("w", -2, 2, shape=2), observed=Y)
    return {"bounds": {"W": (-1, 1)}}, 4.0


def logistic_of_norm():
    pm.Bernoulli("y", logit_p=pm.Data("W", W) @ pmdp.BallNormal("w", 1.0, 2.0, shape=2), observed=Y)
    return {"bounds": {"W": pmdp.Norm(1.5)}}, 3.0


def regression():
    """Half of theory.md's 4 Ry Rx B / s2."""
    pm.Normal("x", pm.Uniform("b", -0.5, 0.5) * pm.Data("z", W[:, 0]), 1.0, observed=X)
    return {"bounds": {"x": (-1, 1), "z": (-1, 1)}}, 1.0


def zero_inflated():
    pm.ZeroInflatedPoisson("k", pm.Uniform("psi", 0.2, 0.8), 2.0, observed=K)
    return {"bounds": {"k": (0, 6)}}, None


def negative_binomial():
    pm.NegativeBinomial("k", mu=pm.Uniform("m", 1, 3), alpha=2.0, observed=K)
    return {"bounds": {"k": (0, 6)}}, None


def gamma():
    pm.Gamma("x", pm.Uniform("a", 1, 3), pm.Uniform("b", 0.5, 2), observed=abs(X))
    return {"bounds": {"x": (0.2, 3)}}, None


def von_mises():
    pm.VonMises("x", pm.Uniform("m", -1, 1), pm.Uniform("k", 0.5, 2), observed=X)
    return {}, None


def groups():
    pm.Bernoulli("y", pmdp.TrimmedBeta("t", 1, 1, smallest=0.2, shape=2)[pm.Data("g", Y[::-1])], observed=Y)
    return {"public": ["g"]}, np.log(4)


def censored_normal():
    pm.Censored("x", pm.Normal.dist(pm.Uniform("m", -1, 1), 1.0), lower=-2.0, upper=2.0, observed=np.clip(X, -2, 2))
    return {"bounds": {"x": (-2, 2)}}, None


def truncated_normal():
    pm.TruncatedNormal("x", pm.Uniform("m", -1, 1), 1.0, lower=-3, upper=3, observed=np.clip(X, -3, 3))
    return {"bounds": {"x": (-3, 3)}}, None


def mixture():
    pm.Mixture("x", pm.math.stack([w := pm.Uniform("w", 0.2, 0.8), 1 - w]), [pm.Normal.dist(0, 1), pm.Laplace.dist(0, 2)], observed=X)
    return {"bounds": {"x": (-3, 3)}}, None


def two_variables():
    m = pm.Uniform("m", 0.2, 0.8)
    pm.Bernoulli("y", m, observed=Y)
    pm.Binomial("k", 4, m, observed=np.minimum(K, 4))
    return {}, 5 * np.log(4)


MODELS = [
    bernoulli, exponential, laplace, poisson, student, logistic, logistic_of_norm, regression, zero_inflated, negative_binomial, gamma,
    von_mises, groups, two_variables, censored_normal, truncated_normal, mixture,
]  # fmt: skip


def read(body, neighbours="replace"):
    with pm.Model() as model:
        arguments, known = body()
    found, leaves = read_model(model, arguments.get("public", ()), rowwise=True, sized=neighbours == "replace")
    rows = rowwise(found, protection_of(bounds=arguments.get("bounds"), neighbours=neighbours))
    check_finite(rows)
    public = {given.variable: np.array([0, 1]) for given, _ in rows.inputs if not given.private}
    return rows, entries_of(rows, public), known, leaves


def random_records(rows, entries, many, rng):
    """Records anywhere within the bounds, the corners included, as the placeholders take them; no longer than their norm."""
    columns: dict = {}
    for entry in entries:
        if entry.levels is not None:
            values = rng.choice(entry.levels, size=many)
        else:
            share = np.where(rng.random(many) < 0.4, rng.integers(0, 2, many), rng.random(many))
            values = entry.lower + share * (entry.upper - entry.lower)
        columns.setdefault((entry.variable, entry.axis), []).append(values)
    arrays = {}
    for (variable, axis), several in columns.items():
        flat = np.stack(several, axis=-1)
        largest = norms_of(rows).get(variable, np.inf)
        size = np.sqrt((flat.astype(float) ** 2).sum(axis=-1, keepdims=True))
        flat = np.where(size > largest, flat * largest / np.where(size > 0, size, 1), flat)
        shape = [length or 1 for k, length in enumerate(variable.type.shape) if k != axis]
        arrays[variable] = np.moveaxis(flat.reshape(many, *shape), 0, axis).astype(variable.type.dtype)
    return arrays


@pytest.mark.parametrize("body", mostly_slow(MODELS, 0, 3, 5, 7, 8, 12))
def test_no_record_leaves_its_bounds_and_the_constant_is_nearly_attained(body):
    """C by trying 3,000 records at 300 points of the unknowns: never above, and above 90 % of what is claimed."""
    rows, entries, known, _ = read(body)
    cut = pieces(entries, {}, norms_of(rows))
    found = ranges(rows, cut)
    rng = np.random.default_rng(7)
    corners = rng.integers(0, 2, size=(300, rows.size))
    share = np.where(rng.random((300, rows.size)) < 0.5, corners, rng.random((300, rows.size)))
    at = rows.lower + share * (rows.upper - rows.lower)
    for one, part in zip(rows.unknowns, np.split(at, np.cumsum([one.size for one in rows.unknowns])[:-1], axis=1), strict=True):
        size = np.sqrt((part**2).sum(axis=1, keepdims=True))
        part *= np.minimum(1, one.radius / np.maximum(size, 1e-12))
    of = log_likelihood(rows, random_records(rows, entries, 3000, rng))
    each = np.broadcast_to(of(at), (300, 3000))
    reference = 0.0 if found.reference is None else of(found.reference[None])
    least, most = found.at(at)
    # Some constants of models are in single precision; the door clips what that makes of them.
    assert (each - reference >= least[:, None] - 1e-6).all()
    assert (each - reference <= most[:, None] + 1e-6).all()
    tried = np.ptp(each - reference, axis=1).max()
    assert 0.9 * found.sensitivity <= tried <= found.sensitivity + 1e-6
    if known is not None:
        assert known * (1 - 1e-9) <= found.sensitivity <= 1.1 * known


def test_records_that_can_be_listed_are():
    for body, listed in ((bernoulli, True), (poisson, True), (student, False), (groups, True), (logistic, False)):
        _, entries, *_ = read(body)
        assert pieces(entries, {}, {}).listed == listed


# ---------- refusals
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda: pm.Normal("x", pm.Normal("m"), 1, observed=X), "m has no largest value"),
        (lambda: pm.Normal("x", 0, pm.HalfNormal("s"), observed=X), "s has no largest value"),
        (lambda: pm.Normal("x", 0, pm.Uniform("s", 0, 1), observed=X), "pm.Truncated\\('s'"),
        (lambda: pm.Bernoulli("x", pm.math.abs(pm.Uniform("s", -1, 1)), observed=Y), "has no bound"),
        (lambda: pm.CustomDist("x", pm.Uniform("m", 0, 1), logp=lambda v, m: -((v - v.mean()) ** 2) * m, observed=X), "may mix records"),
        (lambda: pm.Normal("x", pm.DiscreteUniform("m", 0, 3) * 1.0, 1, observed=X), "m lie is not known"),
        (lambda: pm.MvNormal("x", pm.Uniform("m", 0, 1, shape=2), np.eye(2), observed=W), "."),
    ],
)
def test_what_has_no_bound_is_refused(body, words):
    with pm.Model() as model:
        body()
    bounds = {} if model.observed_RVs[0].type.dtype.startswith("int") else {"x": (-3, 3)}
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.sample(model=model, epsilon=1, bounds=bounds, mechanism="posterior_sample")
