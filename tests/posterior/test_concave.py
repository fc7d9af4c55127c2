"""Exact draws of concave log-posteriors: their laws, the envelope they are drawn under, what they cost, and what is refused."""

from fractions import Fraction

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import chisquare, norm

import pymc_dp as pmdp
from pymc_dp.plans.protection import protection_of
from pymc_dp.posterior import concave
from pymc_dp.posterior.concave_laws import _binomial, _exponential, _normal, _poisson, range_of_energy, steepest
from pymc_dp.posterior.draws import task_of
from pymc_dp.posterior.envelope import Part, Target, envelope_of
from pymc_dp.posterior.price import NAT
from pymc_dp.posterior.rejection import accepted, drawn_by_rejection
from pymc_dp.posterior.routes import prepared

pytestmark = pytest.mark.filterwarnings("ignore")
LAWS = {
    "Bernoulli": (_binomial(1.0), lambda h: pm.Bernoulli.dist(logit_p=h), (0.0, 1.0)),
    "Binomial": (_binomial(5.0), lambda h: pm.Binomial.dist(5, logit_p=h), (0.0, 5.0)),
    "Poisson": (_poisson(), lambda h: pm.Poisson.dist(pm.math.exp(h)), (0.0, 6.0)),
    "Exponential": (_exponential(), lambda h: pm.Exponential.dist(scale=pm.math.exp(h)), (0.25, 4.0)),
    "Normal": (_normal(0.7), lambda h: pm.Normal.dist(h, 0.7), (-2.0, 3.0)),
}
"""A law, PyMC's distribution given the predictor, and between which ends values lie."""
H = np.linspace(-4, 4, 161)


# ---------- laws of one value
@pytest.mark.parametrize("name", LAWS)
def test_energies_are_those_of_pymc_and_bend_no_faster_than_is_said(name):
    """Values, slopes and curvatures against PyMC's density and its derivatives; the third derivative beside the second."""
    law, distribution, (low, high) = LAWS[name]
    h = pt.vector("h", dtype="float64")
    for y in (low, high, np.rint((low + high) / 2)):
        density = pm.logp(distribution(h), np.full(len(H), y))
        energy = -density
        derivatives = [energy]
        for _ in range(3):
            derivatives.append(pytensor.grad(derivatives[-1].sum(), h))
        expected = pytensor.function([h], derivatives, mode="FAST_COMPILE")(H)
        values = np.full(len(H), y)
        computed = law.energy(H, values), law.slope(H, values), law.curvature(H, values)
        np.testing.assert_allclose(computed[0] - computed[0][0], expected[0] - expected[0][0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(computed[1], expected[1], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(computed[2], expected[2], rtol=1e-9, atol=1e-9)
        assert (computed[2] >= 0).all()
        assert (np.abs(expected[3]) <= law.bend * computed[2] + 1e-12).all()
        best = float(np.clip(law.best(np.array([y])), H[0], H[-1])[0])
        assert law.energy(np.array([best]), np.array([y]))[0] <= computed[0].min() + 1e-12


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("ends", [(-2.0, 2.0), (-0.5, 3.0), (1.0, 1.25), (-4.0, -3.0)])
def test_what_a_value_can_do_is_found_exactly(name, ends):
    """All values and predictors on a fine grid: never more than is said, and the most of it is attained."""
    law, _, (low, high) = LAWS[name]
    h, y = np.linspace(*ends, 401), np.linspace(low, high, 101)
    energies = law.energy(h, y[:, None])
    declared = range_of_energy(law, tuple(map(np.array, ends)), (np.array(low), np.array(high)))
    attained = np.ptp(energies, axis=1).max()
    assert attained <= declared * (1 + 1e-12)
    assert attained >= declared * 0.999
    slopes = np.abs(law.slope(h, y[:, None])).max()
    assert slopes == pytest.approx(float(steepest(law, tuple(map(np.array, ends)), (np.array(low), np.array(high)))), rel=1e-12)


# ---------- the envelope
def target(name, P, N, seed, *, temperature=1.0, spread=1.0, cut=3.0, ball=False, pulled=0.0):
    """A regression with random records, under independent normal priors that are cut off; ``pulled`` moves its mode to the ends."""
    rng = np.random.default_rng(seed)
    law, _, (low, high) = LAWS[name]
    features = np.column_stack([np.ones(N), rng.standard_t(3, size=(N, P - 1))]) if P > 1 else rng.normal(size=(N, 1))
    values = rng.uniform(low, high, N) if name in ("Normal", "Exponential") else rng.integers(low, high + 1, N).astype(float)
    values = np.where(rng.random(N) < pulled, high, values)
    part = Part(law, features, 0.1 * rng.normal(size=N), values, np.full(N, 1 / temperature))
    precision, shift = np.eye(P) / spread**2, rng.normal(size=P) / 10
    edge = np.full(P, cut * spread)
    balls = [(slice(0, P), cut * spread)] if ball else []

    def log_density(points):
        energies = part.law.energy(part.predictors(points), part.values) @ part.weight
        return -energies - ((points @ precision) * points).sum(axis=1) / 2 + points @ shift

    return Target([part], precision, shift, -edge, edge, balls, log_density)


HARD = [
    {"P": 1, "N": 3}, {"P": 2, "N": 40, "cut": 1.0, "pulled": 1.0}, {"P": 3, "N": 200, "temperature": 30.0},
    {"P": 4, "N": 300, "ball": True},
    {"P": 3, "N": 500, "ball": True, "cut": 0.5, "pulled": 1.0}, {"P": 5, "N": 80, "spread": 4.0, "temperature": 5.0},
    {"P": 8, "N": 300, "temperature": 50.0},
]  # fmt: skip


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("k", range(len(HARD)))
def test_no_density_is_above_the_envelope(name, k):
    """At proposals, and at points all over the support: the chance of acceptance is never above 1, and near the centre it is near 1."""
    found = target(name, seed=k, **HARD[k])
    envelope = envelope_of(found)
    rng = np.random.default_rng(k)
    P = len(found.lower)
    points, least = envelope.proposals(2000, rng)
    anywhere = rng.uniform(found.lower, found.upper, size=(2000, P))
    corners = np.where(rng.random((500, P)) < 0.5, found.lower, found.upper)
    others = np.concatenate([anywhere, corners, envelope.centre + 1e-3 * rng.normal(size=(100, P))])
    ends, free = envelope.steep != 0, envelope.steep == 0
    moved = others - envelope.centre
    left_over = (moved[:, free] - moved[:, ends] @ envelope.lean) @ np.linalg.inv(envelope.root)
    out = np.sqrt((left_over**2).sum(axis=1))
    shell = np.clip(np.searchsorted(envelope.edges, out, side="right") - 1, 0, len(envelope.least) - 1)
    known = moved[:, ends] @ envelope.steep[ends] + (envelope.least[shell] if free.any() else 0.0)
    points, least = np.concatenate([points, others]), np.concatenate([least, known])
    inside = ((points >= found.lower) & (points <= found.upper)).all(axis=1)
    for place, radius in found.balls:
        inside &= (points[:, place] ** 2).sum(axis=1) <= radius**2
    top = found.log_density(envelope.centre[None])[0]
    chances = found.log_density(points[inside]) - top + least[inside] - envelope.slack
    assert chances.max() <= 1e-9
    assert chances.max() >= -1.0
    assert envelope.slack < 0.05
    assert out.max(initial=0.0) <= envelope.edges[-1]


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("how", [{}, {"ball": True, "cut": 1.0, "pulled": 1.0}, {"cut": 1.0, "pulled": 0.9}])
def test_the_lowest_point_is_found_where_energies_are_large(name, how):
    """20,000 records that are not flattened: the search stops near the lowest point, and proposals are accepted."""
    found = target(name, 4, 20_000, seed=1, **how)
    assert envelope_of(found).slack < 0.1
    assert accepted(found, np.random.default_rng(0)) > 1e-4


CELLS = 600
"""Of the grid in each direction."""


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("how", [{}, {"temperature": 10.0}, {"ball": True, "cut": 0.7, "pulled": 1.0}, {"cut": 0.3, "pulled": 1.0}])
def test_draws_have_the_law_of_the_target(name, how):
    """Counts in cells of a grid in two dimensions, against the density summed over finer cells about them.

    4,000 draws of 20 cases; a false alarm in any of them has probability 1e-6, and a temperature off by 20 % (without any: 7 of 10
    of the cases in the middle of their box) is found.
    """
    found = target(name, 2, 60, seed=11, **how)
    draws = drawn_by_rejection(found, 4000, np.random.default_rng(12))
    room = np.ptp(draws, axis=0) / 10
    low, high = np.maximum(draws.min(axis=0) - room, found.lower), np.minimum(draws.max(axis=0) + room, found.upper)
    edges = [np.linspace(*ends, CELLS + 1) for ends in zip(low, high, strict=True)]
    middles = [(edge[1:] + edge[:-1]) / 2 for edge in edges]
    points = np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1).reshape(-1, 2)
    logs = found.log_density(points)
    for place, radius in found.balls:
        logs = np.where((points[:, place] ** 2).sum(axis=1) <= radius**2, logs, -np.inf)
    chances = np.exp(logs - logs.max()).reshape(CELLS, CELLS)
    chances /= chances.sum()
    # cells of about equal probability along each axis in turn
    cuts = np.searchsorted(np.cumsum(chances.sum(axis=1)), np.linspace(0, 1, 7)[1:-1])
    expected, counted = [], []
    for low, high in zip([0, *cuts], [*cuts, CELLS], strict=True):
        along = chances[low:high].sum(axis=0)
        if along.sum() == 0:
            continue
        within = np.searchsorted(np.cumsum(along) / along.sum(), np.linspace(0, 1, 5)[1:-1])
        for a, b in zip([0, *within], [*within, CELLS], strict=True):
            if a < b and low < high:
                expected.append(along[a:b].sum())
                x, y = draws.T
                inside = (x >= edges[0][low]) & (x < edges[0][high]) & (y >= edges[1][a]) & (y < edges[1][b])
                counted.append(inside.sum())
    assert np.sum(counted) >= 3990
    wanted = np.array(expected) * np.sum(counted)
    use = wanted > 20
    assert use.sum() >= 8
    assert chisquare(np.array(counted)[use], wanted[use] / wanted[use].sum() * np.array(counted)[use].sum()).pvalue > 1e-6 / 20


def test_many_unknowns_of_a_normal_regression_have_the_closed_form():
    """Ten unknowns, far from the ends: mean and covariance; a false alarm has probability 1e-6."""
    found = target("Normal", 10, 400, seed=5, cut=12.0)
    part = found.parts[0]
    precision = found.precision + part.features.T @ part.features / 0.49
    expected = np.linalg.solve(precision, found.shift + part.features.T @ (part.values - part.offset) / 0.49)
    draws = drawn_by_rejection(found, 3000, np.random.default_rng(6))
    whitened = (draws - expected) @ np.linalg.cholesky(precision)
    assert np.abs(whitened.mean(axis=0) * np.sqrt(3000)).max() < 5.6
    squares = (whitened**2).sum()
    assert abs(squares - 30_000) / np.sqrt(2 * 30_000) < 5.2


# ---------- the models
N = 300
RNG = np.random.default_rng(8)
X = np.clip(RNG.normal(size=(N, 4)), -2, 2)
Y = (RNG.random(N) < expit(X @ [0.5, -1.0, 0.2, 0.0] - 0.3)).astype(int)
BOUNDS = {"x": (-2, 2)}


def logistic(x=X, y=Y, prior=pm.Normal, **kwargs):
    with pm.Model() as model:
        a = pm.Normal("a", 0, 1.5)
        b = prior("b", **({"mu": 0, "sigma": 1} if prior is pm.Normal else kwargs), shape=x.shape[1])
        data = pm.Data("x", np.zeros(x.shape))
        data.set_value(x)  # pm.Data itself takes no NaN
        pm.Bernoulli("y", logit_p=a + data @ b, observed=y)
    return model


def ready(model, epsilon=1.0, draws=1, delta=0, neighbours="replace", bounds=BOUNDS, truncate="prior", **more):
    request = pmdp.PosteriorSample(draws, truncate=truncate)
    protection = protection_of(bounds=bounds, neighbours=neighbours, **more)
    return prepared(task_of(model, epsilon, delta, request, protection))


def drawn(model, epsilon=1.0, draws=1, bounds=BOUNDS, **more):
    return pmdp.sample(
        model=model, epsilon=epsilon, bounds=bounds, mechanism=pmdp.PosteriorSample(draws, truncate=more.pop("truncate", "prior")), **more
    )


QUANTILE = norm.ppf(0.999)


def test_a_logistic_regression_costs_the_most_that_its_predictor_can_do():
    """By hand: of a predictor within -H and H the log-likelihood of an answer ranges over H, and H = 3.09 (1.5 + 4 * 2)."""
    H = QUANTILE * (1.5 + 4 * 2)
    (draw,) = ready(logistic()).price.draws
    assert draw.difference == pytest.approx(2 * H * NAT, rel=1e-6)
    assert draw.scale == pytest.approx(2 * H * NAT, rel=1e-6)
    (alone,) = ready(logistic(), neighbours="add_remove").price.draws
    assert alone.difference == pytest.approx(H * NAT, rel=1e-6)
    tree = drawn(logistic())
    assert tree.attrs["promise"] == "real-arithmetic"
    assert tree.attrs["epsilon"] == pytest.approx(1)
    assert tree.privacy.attrs["temperature"] == pytest.approx(2 * H, rel=1e-6)
    assert tree.posterior.b.shape == (1, 1, 4)


def test_with_a_delta_a_draw_costs_what_its_slope_does():
    """By hand: the slope is 1 at most, features have the norm sqrt(1.5^2 + 4 * 2^2) in standard deviations, and 50 draws add up."""
    rise = 2 * np.sqrt(1.5**2 + 4 * 4)
    found = ready(logistic(), 2.0, 50, 1e-6)
    assert len(found.price.draws) == 50
    assert float(found.price.draws[0].square) == pytest.approx((rise * NAT) ** 2, rel=1e-4)
    rho = sum((draw.rho for draw in found.price.draws), Fraction(0))
    assert float(rho) == pytest.approx(50 * (rise / found.price.temperature) ** 2 / 2, rel=1e-4)
    assert rho <= found.price.cost.rho
    flat = 2 * QUANTILE * 9.5
    by_range = flat * np.sqrt(50 / (8 * float(found.price.cost.rho)))
    assert found.price.temperature < by_range / 2
    # under one norm for all of a record's features both bounds are by the norm
    H = QUANTILE * 1.5 + 2
    inside = ready(
        logistic(prior=lambda name, shape: pmdp.BallNormal(name, 4.0, 2.0, shape=shape)), 2.0, 1, 1e-6, bounds={"x": pmdp.Norm(1.0)}
    )
    assert float(inside.price.draws[0].square) == pytest.approx((2 * np.hypot(1.5, 0.5) * expit(H) * NAT) ** 2, rel=1e-4)
    assert inside.price.draws[0].difference == pytest.approx(2 * H * NAT, rel=1e-6)


def brute(law, features, values, boxes, precision):
    """The largest range over the corners of the box, and the largest rise, of the difference of any two of some records."""
    thetas = np.array(np.meshgrid(*boxes)).reshape(len(boxes), -1).T
    h = thetas @ features.T
    each = -np.array([law.energy(h, np.full(len(features), y)) for y in values])  # values, thetas, records
    each = np.moveaxis(each, 1, 2).reshape(-1, len(thetas))
    two = max(np.ptp(each - other, axis=1).max() for other in each)
    slopes = np.array([law.slope(h, np.full(len(features), y)) for y in values])
    gradients = slopes[..., None] * features / np.sqrt(precision)
    gradients = np.moveaxis(gradients, 1, 0).reshape(len(thetas), -1, features.shape[1])
    rise = max(np.sqrt(((g[:, None] - g[None]) ** 2).sum(axis=-1)).max() for g in gradients)
    return two, rise


@pytest.mark.parametrize("kind", ["Bernoulli", "Binomial", "Poisson", "Exponential", "Normal"])
def test_no_two_records_do_more_than_is_paid_for(kind):
    """Records and unknowns at the corners of their boxes, with one feature the square of the other: never more, and more than .4 of it."""
    law, _, (low, high) = LAWS[kind]
    x = np.linspace(-1, 1.5, 4 * N)[RNG.integers(0, 4 * N, N)]
    y = RNG.uniform(low, high, N) if kind in ("Normal", "Exponential") else RNG.integers(low, high + 1, N)
    with pm.Model() as model:
        b = [pm.Normal(f"b{k}", 0, 0.3 + 0.1 * k) for k in range(4)]
        data = pm.Data("x", x)
        eta = b[0] + b[1] * data + b[2] * data**2 + b[3] * 0.5
        made = {
            "Bernoulli": lambda: pm.Bernoulli("y", p=pm.math.invlogit(eta), observed=y),
            "Binomial": lambda: pm.Binomial("y", 5, pm.math.invlogit(eta), observed=y),
            "Poisson": lambda: pm.Poisson("y", pm.math.exp(eta), observed=y),
            "Exponential": lambda: pm.Exponential("y", 1 / pm.math.exp(eta), observed=y),
            "Normal": lambda: pm.Normal("y", eta, 0.7, observed=y),
        }
        made[kind]()
    bounds = {"x": (-1, 1.5)} | ({} if kind in ("Bernoulli", "Binomial") else {"y": (low, high)})
    found = ready(model, bounds=bounds, delta=1e-6)
    (draw,) = found.price.draws
    records = np.linspace(-1, 1.5, 11)
    features = np.column_stack([np.ones(11), records, records**2, np.full(11, 0.5)])
    sigma = 0.3 + 0.1 * np.arange(4)
    two, rise = brute(law, features, np.linspace(low, high, 5), [(-QUANTILE * s, QUANTILE * s) for s in sigma], 1 / sigma**2)
    assert 0.4 * draw.difference <= two * NAT <= draw.difference
    assert 0.4 * np.sqrt(float(draw.square)) <= rise * NAT <= np.sqrt(float(draw.square)) * (1 + 1e-6)


@pytest.mark.parametrize("law", ["Bernoulli", "Poisson", "Normal"])
def test_log_posteriors_that_differ_by_a_slope_are_as_hard_to_tell_apart_as_normals(law):
    """Renyi divergences by quadrature, of orders 1.5 to 20, of neighbours' posteriors under a normal prior that may be cut off: never above
    order * G^2 / 2, and above .9 of it where the likelihood is flat.
    """
    found, _, (low, high) = LAWS[law]
    rng, closest = np.random.default_rng(3), 0.0
    for trial in range(40):
        spread, cut, temperature = rng.choice([0.3, 1.0]), rng.choice([0.5, 3.0, 12.0]), rng.choice([1.0, 10.0, 1000.0])
        x = rng.uniform(-2, 2, size=rng.integers(1, 20))
        y = rng.choice([low, high], len(x)) if trial % 2 else np.full(len(x), high)
        x2, y2 = x.copy(), y.copy()
        if trial == 0:  # the likelihood is nearly flat, and the difference of two answers at one predictor linear
            spread, cut, temperature, y2[0] = 0.3, 12.0, 10.0, low
        else:
            x2[0], y2[0] = rng.choice([-2.0, 2.0, x[0]]), rng.choice([low, high])
        theta = np.linspace(-cut * spread, cut * spread, 20_001)
        first = -(found.energy(np.outer(theta, x), y)).sum(axis=1) / temperature - theta**2 / (2 * spread**2)
        second = -(found.energy(np.outer(theta, x2), y2)).sum(axis=1) / temperature - theta**2 / (2 * spread**2)
        ends = (theta[0] * 2.0, theta[-1] * 2.0)
        slope = float(steepest(found, tuple(map(np.array, ends)), (np.array(low), np.array(high))))
        rise = min(slope * (abs(x[0]) + abs(x2[0])), np.abs(np.gradient(first - second, theta)).max() * temperature) * spread / temperature
        p, q = first - logsumexp(first), second - logsumexp(second)
        for order in (1.5, 2.0, 5.0, 20.0):
            divergence = logsumexp(order * p + (1 - order) * q) / (order - 1)
            assert divergence <= order * rise**2 / 2 * (1 + 1e-6) + 1e-9
            closest = max(closest, divergence / (order * rise**2 / 2) if rise > 1e-6 else 0)
    assert closest > 0.9


def captured(monkeypatch, model, **how):
    """What would be drawn from, of a model with its records."""
    seen = []

    def kept(found, many, rng):
        seen.append(found)
        return drawn_by_rejection(found, many, rng)

    with monkeypatch.context() as patch:
        patch.setattr(concave, "drawn_by_rejection", kept)
        drawn(model, **how)
    return seen[0]


def test_the_target_is_the_models_own_posterior_flattened(monkeypatch):
    """Differences of log-densities between points, against PyMC's own with the likelihood divided by the temperature."""
    model = logistic()
    found = captured(monkeypatch, model, epsilon=20.0)
    temperature = ready(model, 20.0).price.temperature
    assert temperature > 1.2
    points = RNG.uniform(-1, 1, size=(6, 5))
    likelihood, prior = model.compile_logp(model["y"], jacobian=False), model.compile_logp([model["a"], model["b"]], jacobian=False)
    expected = [likelihood({"a": p[0], "b": p[1:]}) / temperature + prior({"a": p[0], "b": p[1:]}) for p in points]
    computed = found.log_density(points)
    np.testing.assert_allclose(computed - computed[0], np.array(expected) - expected[0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose([-found.energy(p) + found.energy(points[0]) for p in points], computed - computed[0], rtol=1e-8, atol=1e-8)
    numeric = [(found.energy(points[0] + 1e-6 * e) - found.energy(points[0] - 1e-6 * e)) / 2e-6 for e in np.eye(5)]
    np.testing.assert_allclose(found.gradient(points[0]), numeric, rtol=1e-5, atol=1e-5)


def test_whatever_a_record_held_it_is_within_its_bounds(monkeypatch):
    wild_x, wild_y = X.copy(), Y.copy()
    wild_x[0], wild_x[1, 0], wild_x[2] = 1e9, np.nan, -np.inf
    found = captured(monkeypatch, logistic(wild_x, wild_y), epsilon=20.0)
    assert np.abs(found.parts[0].features[:, 1:]).max() <= 2 + 1e-9
    assert np.isfinite(found.log_density(RNG.uniform(-1, 1, size=(3, 5)))).all()


def test_records_with_something_missing_bring_nothing(monkeypatch):
    """The posterior is that of the records in which nothing is missing."""
    holes = X.copy()
    holes[:50, 1] = np.nan
    how = {"epsilon": 20.0, "missing": {"x": "left out"}}
    with_holes, without = captured(monkeypatch, logistic(holes), **how), captured(monkeypatch, logistic(X[50:], Y[50:]), epsilon=20.0)
    points = RNG.uniform(-1, 1, size=(6, 5))
    first, second = with_holes.log_density(points), without.log_density(points)
    np.testing.assert_allclose(first - first[0], second - second[0], rtol=1e-9, atol=1e-9)


def two_outcomes():
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=4)
        data = pm.Data("x", X)
        pm.Bernoulli("y", logit_p=data @ b, observed=Y)
        pm.Normal("z", (data * b).sum(axis=1), 2.0, observed=X[:, 0])
    return model


def test_several_outcomes_of_a_record_are_drawn_from_together():
    found = ready(two_outcomes(), bounds={"x": (-2, 2), "z": (-2, 2)})
    H = QUANTILE * 8
    assert found.price.draws[0].difference == pytest.approx(2 * (H + (H + 2) ** 2 / 8) * NAT, rel=1e-6)
    assert found.promise == "real-arithmetic"


def test_outcomes_of_different_numbers_of_records_add_up(monkeypatch):
    """The log-density is PyMC's own, and a record costs what it can do in both outcomes."""
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=4)
        pm.Bernoulli("y", logit_p=pm.Data("x", X) @ b, observed=Y)
        pm.Normal("z", pm.Data("w", X[:50]) @ b, 2.0, observed=X[:50, 0])
    bounds = {"x": (-2, 2), "z": (-2, 2), "w": (-2, 2)}
    found, H = ready(model, bounds=bounds), QUANTILE * 8
    assert found.price.draws[0].difference == pytest.approx(2 * (H + (H + 2) ** 2 / 8) * NAT, rel=1e-6)
    assert found.records is None
    target = captured(monkeypatch, model, epsilon=400.0, bounds=bounds)
    T = ready(model, 400.0, bounds=bounds).price.temperature
    assert T == 1
    points = RNG.uniform(-1, 1, size=(5, 4))
    log_p = model.compile_logp(jacobian=False)
    expected = np.array([log_p({"b": point}) for point in points])
    computed = target.log_density(points)
    np.testing.assert_allclose(computed - computed[0], expected - expected[0], rtol=1e-8, atol=1e-8)


def test_a_private_number_of_records_is_not_shown():
    found = ready(logistic(), neighbours="add_remove")
    assert found.records is None
    assert found.promise == "real-arithmetic"


def coefficients():
    return pm.Normal("b", 0, 1, shape=4)


def linear():
    return pm.Data("x", X) @ coefficients()


def with_potential():
    b = coefficients()
    pm.Bernoulli("y", logit_p=pm.Data("x", X) @ b, observed=Y)
    pm.Potential("p", -(b**4).sum())


def spread():
    return pm.Uniform("s", 0.5, 2)


NOT_CONCAVE = {
    "unknown sigma": lambda: pm.Normal("z", linear(), spread(), observed=X[:, 0]),
    "Student's t": lambda: pm.StudentT("z", nu=4, mu=linear(), sigma=1.0, observed=X[:, 0]),
    "probit": lambda: pm.Bernoulli("y", p=pm.math.invprobit(linear()), observed=Y),
    "a product": lambda: pm.Bernoulli("y", logit_p=pm.Normal("c") * linear(), observed=Y),
    "a square": lambda: pm.Bernoulli("y", logit_p=pm.Data("x", X) @ coefficients() ** 2, observed=Y),
    "heavy tails": lambda: pm.Bernoulli("y", logit_p=pm.Data("x", X) @ pm.StudentT("b", nu=4, shape=4), observed=Y),
    "a hierarchy": lambda: pm.Bernoulli("y", logit_p=pm.Data("x", X) @ pm.Normal("b", 0, spread(), shape=4), observed=Y),
    "a Potential": with_potential,
    "thirteen": lambda: pm.Bernoulli("y", logit_p=pm.Data("x", np.tile(X, 4)[:, :13]) @ pm.Normal("b", shape=13), observed=Y),
}
"""Models whose log-posterior may bend the other way, or is not known to be of these laws."""


@pytest.mark.parametrize("name", NOT_CONCAVE)
def test_what_is_not_certainly_concave_is_refused(name):
    """As before: a grid is for three unknowns, and chains promise less."""
    with pm.Model() as model:
        NOT_CONCAVE[name]()
    bounds = {"x": (-2, 2)} | ({"z": (-2, 2)} if name in ("unknown sigma", "Student's t") else {})
    with pytest.raises(pmdp.Refusal, match="more than the 3 that can be drawn exactly"):
        ready(model, bounds=bounds)


def wide(N, x=3.0):
    with pm.Model() as model:
        b = pm.Normal("b", 0, 10, shape=12)
        pm.Bernoulli("y", logit_p=pm.Data("x", np.full((N, 12), x)) @ b, observed=np.ones(N, dtype=int))
    return model


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_what_would_take_too_long_is_refused_whatever_the_records_are(neighbours):
    """It is seen of made-up records; where their number is private nothing rests on it."""
    bounds, words = {"x": (-3, 3)}, set()
    for model in (wide(300), wide(300, x=-1.0), *([wide(20)] if neighbours == "add_remove" else [])):
        with pytest.raises(pmdp.Refusal, match="A draw would take too long") as refusal:
            ready(model, 30.0 if neighbours == "replace" else 1.5, bounds=bounds, neighbours=neighbours)
        words.add(str(refusal.value))
    assert len(words) == 1


def test_uniform_and_half_normal_priors_are_concave_and_flat_ones_have_no_slope():
    with pm.Model() as model:
        b = pm.Uniform("b", -1, 1, shape=3)
        c = pm.HalfNormal("c", 1.0)
        pm.Bernoulli("y", logit_p=pm.Data("x", X) @ pt.concatenate([b, c[None]]), observed=Y)
    found = ready(model, delta=1e-6)
    (draw,) = found.price.draws
    assert draw.square == draw.difference**2
    values = drawn(model, 30.0, 20, delta=1e-6).posterior
    assert np.abs(values.b).max() <= 1
    assert values.c.min() >= 0
