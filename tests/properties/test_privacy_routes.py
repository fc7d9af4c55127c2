"""Record and replay on every route records can take: private cells, features, totals, Gaussian noise, add-remove neighbours.

Given the same noisy outputs everything an adversary sees is the same for two neighbouring data sets, and the exact integers that
reached the seam differ by no more than was paid for.
"""

import itertools
import pickle
import tempfile
import warnings
from dataclasses import replace
from fractions import Fraction
from functools import partial

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytest
from checks import mostly_slow, seam_of
from test_privacy import MALFORMED

import pymc_dp as pmdp
from pymc_dp.families import residuals
from pymc_dp.families.family import named
from pymc_dp.models.spec import Likelihood
from pymc_dp.plans.totals import planned_totals
from pymc_dp.releases.totals import totals_of_rows

COORDS = {"group": ["a", "b", "c"]}


def data(name, values):
    """PyMC takes missing values only later, as a user would set them."""
    variable = pm.Data(name, np.zeros(np.shape(values)))
    variable.set_value(np.asarray(values, dtype=float))
    return variable


def private_cells(rows):
    theta = pm.Beta("theta", 1, 1, dims="group")
    pm.Bernoulli("y", theta[data("g", rows[:, 1]).astype("int64")], observed=data("y_data", rows[:, 0]))
    return {"bounds": {"g": {0, 1, 2}}}


def private_integer_index(rows):
    with np.errstate(all="ignore"):
        g = np.clip(np.nan_to_num(rows[:, 1], nan=7.0), -9, 9).astype("int8")
    pm.Normal("x", pm.Normal("mu", dims="group")[pm.Data("g", g)], pm.HalfNormal("s"), observed=data("x_data", rows[:, 2]))
    return {"bounds": {"x": (-2, 3)}}


def table_of_covariates(rows):
    b = pm.Normal("b", shape=2)
    z = data("z", rows[:, 1])
    pm.Poisson("k", pm.math.exp(b[0] + b[1] * z), observed=data("k_data", rows[:, 3]))
    return {"bounds": {"k": (0, 6), "z": {0, 1, 2}}}


def tabulated(rows):
    pm.ZeroInflatedPoisson("k", pm.Beta("psi", 1, 1), pm.Gamma("rate", 2, 1), observed=data("k_data", rows[:, 3]))
    return {"bounds": {"k": (0, 6)}}


def linear(rows):
    b = pm.Normal("b", shape=2)
    pm.Normal("x", b[0] + b[1] * data("z", rows[:, 1]), pm.HalfNormal("s"), observed=data("x_data", rows[:, 2]))
    return {"bounds": {"x": (-2, 3), "z": (-1, 2)}}


def linear_with_a_square(rows):
    z = data("z", rows[:, 1])
    mu = pm.Normal("a") + pm.Normal("b") * z + pm.Normal("c") * (z - 0.5) ** 2
    pm.Normal("x", mu, 1.5, observed=data("x_data", rows[:, 2]))
    return {"bounds": {"x": (-2, 3), "z": (-1, 2)}}


def linear_of_two(rows):
    b = pm.Normal("b", shape=3)
    mu = b[0] + b[1] * data("z", rows[:, 1]) + b[2] * data("w", rows[:, 3])
    pm.Normal("x", mu, pm.HalfNormal("s"), observed=data("x_data", rows[:, 2]))
    return {"bounds": {"x": (-2, 3), "z": (-1, 2), "w": (0, 6)}}


def logistic(rows):
    pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Normal("b") * data("z", rows[:, 2]), observed=data("y_data", rows[:, 0]))
    return {"bounds": {"z": (-2, 2), "logit(y)": (-3, 3)}}


def log_linear(rows):
    rate = pm.math.exp(pm.Normal("a") + pm.Normal("b") * data("z", rows[:, 2]))
    pm.Poisson("k", rate, observed=data("k_data", rows[:, 3]))
    return {"bounds": {"z": (-2, 2), "k": (0, 6), "log(k)": (-2, 2)}}


def multivariate(rows):
    chol, *_ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.HalfNormal.dist(1, shape=2))
    pm.MvNormal("Y", pm.Normal("m", shape=2), chol=chol, observed=data("Y_data", rows[:, 1:3]))
    return {"bounds": {"Y": [(-1, 2), (-2, 3)]}}


def multinomial(rows):
    pm.Multinomial("M", n=5, p=pm.Dirichlet("p", np.ones(4)), observed=data("M_data", rows))
    return {}


def network(rows):
    """Observed variables above observed variables, two of them above the third."""
    g = pm.Categorical("g", pm.Dirichlet("p", np.ones(3)), observed=data("g_data", rows[:, 1]))
    y = pm.Bernoulli("y", pm.Beta("theta", 1, 1, dims="group")[g], observed=data("y_data", rows[:, 0]))
    pm.Bernoulli("x", pm.Beta("q", 1, 1, shape=(3, 2))[g, y], observed=data("x_data", rows[:, 2]))
    return {}


def mediator(rows):
    z = pm.Normal("z", pm.Normal("m"), 1, observed=data("z_data", rows[:, 1]))
    pm.Normal("x", pm.Normal("a") + pm.Normal("b") * z, pm.HalfNormal("s"), observed=data("x_data", rows[:, 2]))
    return {"bounds": {"x": (-2, 3), "z": (-1, 2)}}


ROUTES = [
    private_cells, private_integer_index, table_of_covariates, tabulated, linear, linear_with_a_square, logistic, log_linear,
    multivariate, multinomial, network, mediator,
]  # fmt: skip
SETTINGS = [("laplace", "replace"), ("gaussian", "replace"), ("laplace", "add_remove"), ("gaussian", "add_remove")]
FOURIER = [("fourier", "replace"), ("fourier", "add_remove")]
STAGED = [("residuals", "replace"), ("residuals", "add_remove")]
"""Sums of residuals are asked for, and released where records are replaced."""


@pytest.fixture(autouse=True)
def few_records_are_enough(monkeypatch):
    """For sums of residuals."""
    monkeypatch.setattr(residuals, "ENOUGH", 1)


def build(route, rows):
    with warnings.catch_warnings(), pm.Model(coords=COORDS) as model:
        warnings.simplefilter("ignore")
        arguments = route(rows)
    return model, arguments


def seen(route, rows, mechanism, neighbours, frozen=(), density=True):
    """Everything that leaves: words, numbers, pickles, names, coordinates; and what reached the seam."""
    model, arguments = build(route, rows)
    arguments |= {"neighbours": neighbours}
    with seam_of(2, frozen) as seam, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        inspection = pmdp.inspect(model, **arguments)
        noise = pmdp.Laplace(residuals=True) if mechanism == "residuals" else mechanism
        spent = {"mechanism": noise} | ({"delta": 1e-6} if mechanism == "gaussian" else {})
        with tempfile.TemporaryDirectory() as folder:
            ledger = pmdp.Ledger(f"{folder}/ledger", epsilon=2, delta=1e-6, neighbours=neighbours, create=True)
            released = pmdp.release(model, epsilon=Fraction(3, 2), ledger=ledger, **spent, **arguments)
            charges = ledger.entries().drop(columns=["time", "hash"]).to_csv()
        released = replace(released, ledger_head="the same")  # times and receipts differ, from which heads are made
        private = pmdp.rewrite(model, released)
        told = [charges, repr(inspection), inspection._repr_html_(), pickle.dumps(released), repr(released), private.coords]
        told += [sorted(private.named_vars), [(v.name, v.type.shape) for v in private.basic_RVs]]
        if density:
            told.append(float(private.compile_logp(mode="FAST_COMPILE")(private.initial_point())))
        told.append(
            [(w.category, str(w.message)) for w in caught if w.category is not pmdp.UnaccountedWarning and "BLAS" not in str(w.message)]
        )
        assert str(rows.tobytes()) not in str(cloudpickle.dumps(private))
    return [*told, seam.scales], seam, released


def neighbour_of(rows, kind, position, column):
    other = rows.copy()
    other[position, column] = kind
    return other


def records(count=9):
    rng = np.random.default_rng(17)
    return np.column_stack(
        [rng.integers(0, 2, count), rng.integers(0, 3, count), rng.normal(size=count), rng.integers(0, 7, count)]
    ).astype(float)


def check(route, mechanism, neighbours, rows, *others, density=True):
    first, seam, released = seen(route, rows, mechanism, neighbours, density=density)
    assert all((one.residuals is not None) == ((mechanism, neighbours) == STAGED[0]) for one in released.statistics)
    return [
        check_other(first, seam, released, seen(route, other, mechanism, neighbours, seam.answers, density), mechanism) for other in others
    ]


def check_other(first, seam, released, of_other, mechanism):
    second, seam_other, _ = of_other
    assert first == second
    moved = [[a - b for a, b in zip(one, two, strict=True)] for one, two in zip(seam.exact, seam_other.exact, strict=True)]
    if mechanism != "gaussian":
        cost = sum(Fraction(sum(map(abs, some))) / Fraction(scale) for some, scale in zip(moved, seam.scales, strict=True))
        assert cost <= Fraction(3, 2)
        return cost
    cost, draws = Fraction(0), iter(zip(moved, seam.scales, strict=True))
    for statistic in released.statistics:
        scale = None
        while scale != statistic.scale:  # of scores several draws, the last at this scale
            some, scale = next(draws)
            assert sum(value**2 for value in some) <= statistic.square
            cost += Fraction(sum(value**2 for value in some)) / (2 * Fraction(scale) ** 2)
        assert Fraction(statistic.square) / (2 * Fraction(scale) ** 2) <= statistic.cost.rho
    assert next(draws, None) is None
    assert cost <= sum(statistic.cost.rho for statistic in released.statistics) <= released.cost.rho
    return cost


def in_short(route, setting):
    """Whether a route is taken by default: with Laplace noise where records are replaced, or three with Gaussian noise where they come."""
    return setting == SETTINGS[0] or (setting == SETTINGS[3] and route in (tabulated, network, mediator))


WAYS = [
    pytest.param(route, *setting, id="-".join([route.__name__, *setting]), marks=() if in_short(route, setting) else pytest.mark.slow)
    for route in ROUTES
    for setting in SETTINGS
]
WAYS += [pytest.param(linear_of_two, *setting, id="-".join(setting)) for setting in STAGED]


@pytest.mark.parametrize(("route", "mechanism", "neighbours"), WAYS)
def test_neighbours_look_the_same_and_cost_what_was_paid(route, mechanism, neighbours):
    """Two malformed neighbours a route and setting here, every kind in every column in the slow suite."""
    rows, others = records(), []
    for kind, column in ((np.nan, slice(None)), (1e308, 1), *(((-1e308, 2), (5e-324, 3)) if mechanism == "residuals" else ())):
        other = neighbour_of(rows, kind, 4, column)
        others.append(np.vstack([rows, other[4:5]]) if neighbours == "add_remove" else other)
    check(route, mechanism, neighbours, rows, *others)


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("mechanism", "neighbours"), mostly_slow(FOURIER, 1), ids=["replace", "add_remove"])
def test_neighbours_of_a_network_look_the_same(mechanism, neighbours, step):
    """Every malformed kind in every column, in one record, or one in five; one in ten with the private model's log-density, too."""
    rows = records()
    others = list(malformed(rows, neighbours, (3,)))[::step]
    check(network, mechanism, neighbours, rows, *others, density=False)
    check(network, mechanism, neighbours, rows, *others[::10])


def malformed(rows, neighbours, positions):
    """One record of every malformed kind, in every column and in all, at some positions; the same one more, or one less."""
    for kind, column, position in itertools.product(MALFORMED, (0, 1, 2, 3, slice(None)), positions):
        other = neighbour_of(rows, kind, position, column)
        if neighbours == "add_remove":
            yield np.delete(other, position, axis=0) if column == 0 and kind == 0.5 else np.vstack([rows, other[position : position + 1]])
        else:
            yield other


@pytest.mark.parametrize(
    "positions", [pytest.param((3,), marks=pytest.mark.slow), pytest.param((0, 2, 4, 6, 8), marks=pytest.mark.nightly)], ids=["one", "five"]
)
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize(
    ("route", "mechanism"),
    [*((route, "laplace") for route in ROUTES), (linear_of_two, "residuals")],
    ids=lambda part: getattr(part, "__name__", part),
)
def test_every_malformed_neighbour_looks_the_same(route, mechanism, neighbours, positions):
    """70 pairs of data sets for a route and a relation, 350 every night; one in ten with the private model's log-density, too."""
    rows = records()
    others = list(malformed(rows, neighbours, positions))
    check(route, mechanism, neighbours, rows, *others, density=False)
    check(route, mechanism, neighbours, rows, *others[::10])


def linear_beside_public_features(responses):
    with pm.Model() as model:
        b = pm.Normal("b", shape=3)
        x = pm.Data("x", np.column_stack([[5.0, -5.0, 5.0, 1.0], [2.0, 2.0, -2.0, 0.0]]))
        pm.Normal("y", b[0] + x @ b[1:], pm.HalfNormal("s"), observed=data("y_data", responses))
    return model, {"public": ["x"], "bounds": {"y": (-1, 3)}}


def linear_of_bounds(rows):
    with pm.Model() as model:
        b = pm.Normal("b", shape=2)
        pm.Normal("y", b[0] + b[1] * data("z", rows[:, 0]), pm.HalfNormal("s"), observed=data("y_data", rows[:, 1]))
    return model, {"bounds": {"z": (0, 1), "y": (0, 1)}, "neighbours": "add_remove"}


@pytest.mark.parametrize(
    ("make", "before", "after", "L1", "L2"),
    [
        (linear_beside_public_features, np.array([3.0, 0, 1, 2]), np.array([-1.0, 0, 1, 2]), 6, 12),
        (linear_of_bounds, np.array([[0.5, 0.1], [0.2, 0.3]]), np.array([[0.5, 0.1], [0.2, 0.3], [1, 1]]), 8, 12),
    ],
    ids=["public features", "one record more"],
)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_second_moments_cost_what_some_record_moves(make, before, after, L1, L2, mechanism):
    """Public features at their largest, in which a response goes from one bound to the other: 2 in each of sum y and two sums x y.
    And a record at the upper bounds that comes: 1 in each of the six sums, of which two are multiplied by 2.
    """
    sums = []
    for values in (before, after):
        model, arguments = make(values)
        with seam_of(0) as seam:
            noise = {} if mechanism == "laplace" else {"delta": 1e-6}
            released = pmdp.release(model, epsilon=1.0, mechanism=mechanism, **noise, **arguments)["y"]
        sums.append(np.array(seam.exact[0]) * released.lattice)
    moved = np.abs(sums[1] - sums[0])
    assert (moved.sum(), (moved**2).sum()) == (L1, L2)
    assert L1 <= released.difference * released.lattice <= L1 * 1.01
    assert L2 <= released.square * released.lattice**2 <= L2 * 1.01


def test_sums_of_residuals_cost_what_some_record_moves():
    """Both features at their upper bounds, in which a response goes from one bound to the other: both draws together cost what was paid."""
    rows = records()
    rows[4, 1:] = 2, 3, 6
    [cost] = check(linear_of_two, *STAGED[0], rows, neighbour_of(rows, -2, 4, 2), density=False)
    assert cost > 0.85 * 1.5


def test_totals_cost_what_one_individual_can_move():
    trials, died = np.array([20, 18, 25]), np.array([4, 0, 25])
    for other in ([5, 0, 25], [4, 1, 25], [4, 0, 24]):
        moved = []
        for values in (died, np.array(other)):
            with seam_of(0) as seam, pm.Model() as model:
                pm.Binomial("y", pm.Data("n", trials), pm.Beta("p", 1, 1, shape=3), observed=values)
                released = pmdp.release(model, epsilon=1.0, unit="individual", public=["n"])
            moved.append(np.array(seam.exact[0]))
        assert np.abs(moved[0] - moved[1]).sum() == 1 == released["y"].difference


@pytest.mark.parametrize(("levels", "rows"), [(2, 1), (3, 1), (3, 2)])
def test_counts_of_levels_cost_what_one_individual_can_move(levels, rows):
    """Somebody who is counted at another level in each of its rows."""
    counts = np.array([[4, 9, 3], [0, 7, 1], [2, 2, 0]])[:, :levels]
    moved = []
    for change in (0, 1):
        values = counts.copy()
        values[:rows, 1] -= change
        values[:rows, 0] += change
        with seam_of(0) as seam, pm.Model() as model:
            n, p = pm.Data("n", counts.sum(axis=1)), pm.Dirichlet("p", np.ones((3, levels)))
            pm.Multinomial("y", n, p, observed=values)
            released = pmdp.release(model, epsilon=1.0, unit=pmdp.Individual(rows=rows), public=["n"])
        moved.append(np.array(seam.exact[0]))
    difference = np.abs(moved[0] - moved[1])
    assert (difference.sum(), (difference**2).sum()) == (released["y"].difference, released["y"].square)
    assert difference.sum() == rows * (1 if levels == 2 else 2)


@pytest.mark.parametrize(
    ("unit", "neighbours", "difference", "square"),
    [
        (pmdp.Individual(events=3), "replace", 6, 18),
        (pmdp.Individual(events=3, membership="public"), "replace", 3, 9),
        (pmdp.Individual(events=3), "add_remove", 3, 9),
    ],
    ids=str,
)
def test_totals_of_events(unit, neighbours, difference, square):
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("rate", 2, 1, shape=4) * pm.Data("hours", [1.0, 2.0, 3.0, 4.0]), observed=[5, 0, 2, 9])
    released = pmdp.release(model, epsilon=1.0, unit=unit, public=["hours"], neighbours=neighbours)
    assert (released["y"].difference, released["y"].square) == (difference, square)
    private = pmdp.rewrite(model, released)
    assert private["y"].eval().shape == (4, 1)
    assert all(np.isfinite(value) for value in private.point_logps().values())


VALUES = {
    "known": lambda mu, y: pm.Normal("y", mu, 2.0, observed=y),
    "unknown": lambda mu, y: pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=y),
    "StudentT": lambda mu, y: pm.StudentT("y", nu=4, mu=mu, sigma=pm.HalfNormal("sigma"), observed=y),
    "Gamma": lambda mu, y: pm.Gamma("y", mu=pm.math.exp(mu), sigma=2.0, observed=y),
}
"""Distributions of the value of a row."""


@pytest.mark.parametrize("of_values", VALUES)
@pytest.mark.parametrize(
    ("unit", "neighbours", "rows"),
    [
        (pmdp.Individual(moves=0.7), "replace", 2),
        (pmdp.Individual(moves=0.7, membership="public"), "replace", 1),
        (pmdp.Individual(moves=0.7, membership="public", rows=3), "replace", 3),
        (pmdp.Individual(moves=0.7, rows=2), "add_remove", 2),
    ],
    ids=str,
)
def test_values_of_rows_cost_what_one_individual_can_move(unit, neighbours, rows, of_values):
    """Values as far apart as they may be, anywhere between the bounds and beyond them, each also at the edges of its grid points."""
    rng = np.random.default_rng(1)
    point = 20 / 2**15
    means = np.concatenate([rng.uniform(-11, 31, 5_000), rng.normal(10, 1e6, 500), [-10, 30, 0, -10.35, 29.65]])
    means = np.concatenate([means, (np.rint(means / point) + 0.5) * point])
    moved = []
    for values in (means, means + 0.7, np.nextafter(means + 0.7, -np.inf)):
        with seam_of(0) as seam, pm.Model() as model:
            VALUES[of_values](pm.Normal("theta", 0, 1, shape=len(means)), values)
            released = pmdp.release(model, epsilon=1.0, unit=unit, neighbours=neighbours, bounds={"y": (-10, 30)})
        moved.append(np.array(seam.exact[0]).ravel())
    farthest = max(np.abs(other - moved[0]).max() for other in moved[1:])
    assert farthest * rows <= released["y"].difference <= farthest * rows * 1.01
    assert farthest**2 * rows <= released["y"].square <= farthest**2 * rows * 1.02


def exact_rows(observe, values, **arguments):
    """The exact integers of rows, and what is released of them."""
    with pm.Model() as model:
        observe(values)
    with seam_of(0) as seam:
        released = pmdp.release(model, epsilon=1.0, **arguments)
    return np.array(seam.exact[0], dtype=object).ravel(), released["y"]


@pytest.mark.parametrize("hold", [np.asarray, lambda values: pm.Data("values", values)], ids=["array", "data"])
@pytest.mark.parametrize("distribution", ["poisson", "binomial", "multinomial"])
def test_totals_that_pymc_turns_into_others_cost_what_one_individual_can_move(distribution, hold):
    """PyMC makes 32-bit integers of an array: 2^31 became -2^31, was clamped to 0, and one event moved a total by 2,147,483,647."""
    totals = np.concatenate([np.arange(-3, 4) + seam for seam in (0, 2**31, 2**32, 3 * 2**31, 2**40, 2**62)])

    def observe(values):
        if distribution == "poisson":
            pm.Poisson("y", pm.Gamma("rate", 2, 1), observed=hold(values))
        elif distribution == "binomial":
            pm.Binomial("y", 2**20, pm.Beta("p", 1, 1), observed=hold(values))
        else:
            pm.Multinomial("y", 2**20, pm.Dirichlet("p", np.ones(3)), observed=hold(np.stack([values, 9 - values, values], axis=1)))

    unit = pmdp.Individual(events=1, membership="public")
    (before, of), (after, _) = (exact_rows(observe, values, unit=unit) for values in (totals, totals + 1))
    farthest = np.abs(after - before).reshape(len(totals), -1)
    assert farthest.max() == 1
    assert of.difference == (2 if distribution == "multinomial" else 1)


@pytest.mark.parametrize("distribution", ["Poisson", "Binomial"])
def test_totals_that_are_no_whole_numbers_cost_no_more(distribution):
    """To the nearest even, one event would move .5 to 1.5 and so 0 to 2. What PyMC casts before has nothing behind the point."""
    likelihood = Likelihood("y", distribution, named(distribution), unknown=(True,), aggregate=True)
    planned = planned_totals(likelihood, {}, "replace", pmdp.Individual(events=1, membership="public"))
    values = np.concatenate([np.arange(-9, 10) / 2, np.random.default_rng(1).uniform(-9, 9, 1_000), [2.0**40 - 0.5, 1e300, -1e300]])
    before, after = totals_of_rows(values, planned), totals_of_rows(values + 1, planned)
    assert np.abs(after - before).max() == 1 == planned.sensitivity.difference


@pytest.mark.parametrize("hold", [np.asarray, lambda values: pm.Data("values", values)], ids=["array", "data"])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("bounds", [(0, 100), (-300.5, -0.25), (-1e6, 1e9), (-(2.0**31), -(2.0**30))])
def test_values_that_pymc_turns_into_others_cost_what_one_individual_can_move(bounds, kind, hold):
    """A whole number of 2^31 went to the lower bound, and one of 2^31 - 1 to the upper one."""
    width = bounds[1] - bounds[0]
    moves = max(1, int(width / 50))
    rng = np.random.default_rng(1)
    seams = [rng.integers(-2 * width, 2 * width, 2_000) + seam for seam in (-(2**31), 0, 2**31, 2**32)]
    values = np.concatenate([*seams, np.arange(-5, 5) + 2**31, [2**62, -(2**62)]]).astype(kind)

    def observe(values):
        pm.Normal("y", pm.Normal("mu"), 1, observed=hold(values))

    unit = pmdp.Individual(moves=moves, membership="public")
    (before, of), *others = (exact_rows(observe, values + by, unit=unit, bounds={"y": bounds}) for by in (0, 1, moves))
    farthest = max(np.abs(after - before).max() for after, _ in others)
    assert farthest <= of.difference <= 1.01 * farthest
    inside = (values >= bounds[0]) & (values <= bounds[1])
    wanted = np.rint((values[inside] - sum(bounds) / 2) / (width / 2) * 2**15)
    assert inside.sum() > 200
    assert np.abs(before[inside] - wanted).max() <= 1, "values within the bounds stay what they are"


def test_bounds_where_pymc_turns_whole_numbers_into_others_are_refused():
    normal = partial(exact_rows, lambda y: pm.Normal("y", pm.Normal("mu"), 1, observed=y), [1.0, 2], unit=pmdp.Individual(moves=1e8))
    for bounds in ((0, 2**31), (-(2**31) - 1, 0), (-5e9, 5e9)):
        with pytest.raises(pmdp.Refusal, match=r"of 32 bits\. Rescale it in the model"):
            normal(bounds={"y": bounds})


def test_values_of_models_made_in_float32_are_refused():
    """PyMC rounded them, and made 16-bit integers of whole numbers: 32,768 became -32,768."""
    with pytensor.config.change_flags(floatX="float32"), pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1, observed=np.array([2**15, 2, 3]))
    with pytest.raises(pmdp.Refusal, match="set to float32 when the model was made"):
        pmdp.release(model, epsilon=1.0, unit=pmdp.Individual(moves=1), bounds={"y": (0, 10)})


def in_float32(values, **of):
    with pytensor.config.change_flags(floatX="float32"), pm.Model() as model:
        pm.Laplace("y", pm.Normal("mu"), 1, observed=values, **of)
    return model


def data_in_float32(values):
    with pm.Model() as model:
        with pytensor.config.change_flags(floatX="float32"):
            data = pm.Data("values", values)
        pm.Laplace("y", pm.Normal("mu"), 1, observed=data)
    return model


def totals_in_float32(values):
    with pm.Model() as model:
        with pytensor.config.change_flags(floatX="float32"):
            data = pm.Data("values", values)
        pm.Poisson("y", pm.Gamma("mu", 2, 1), observed=data)
    return model


@pytest.mark.parametrize("make", [partial(in_float32, dtype="float64"), data_in_float32, totals_in_float32])
@pytest.mark.parametrize("value", [2**15, 2.0**24 + 1])
def test_values_that_were_rounded_before_the_model_had_them_are_refused(make, value):
    """The variable said float64. One individual moved a value by 964 times what was charged, and a Poisson total by twice that."""
    unit = pmdp.Individual(events=1) if make is totals_in_float32 else pmdp.Individual(moves=1)
    with pytest.raises(pmdp.Refusal, match="set to float32 when the model was made"):
        pmdp.release(make(np.array([value, 2, 3])), epsilon=1.0, unit=unit, bounds={} if unit.events else {"y": (0, 10)})


@pytest.mark.xfail(strict=True, reason="no type is left that tells of it where every unknown is float64, too")
def test_totals_rounded_by_a_model_in_float32_all_of_whose_variables_say_float64():
    with pytensor.config.change_flags(floatX="float32"), pm.Model() as model:
        pm.Poisson("y", pm.Gamma("mu", 2, 1, dtype="float64"), observed=np.array([2.0**24 + 1, 2, 3]))
    with pytest.raises(pmdp.Refusal, match="set to float32"):
        pmdp.release(model, epsilon=1.0, unit=pmdp.Individual(events=1))


class OtherEachTime(float):
    """0.5, which is larger or smaller as it likes, and says something else each time it is asked."""

    asked = 0

    def __float__(self):
        self.asked += 1
        return 5.0 if self.asked == 1 else 0.01

    def __gt__(self, other):
        return True

    __lt__ = __gt__


class ThreeTimesNothing(int):
    """3, of which no product and no power is more than 1."""

    def __mul__(self, other):
        return 1

    __rmul__ = __pow__ = __mul__


def test_numbers_of_a_class_of_their_own_are_read_once():
    """A moves that said 5 to the ledger and 0.01 to the noise got noise for 0.01, and a negative one that said it was positive passed."""
    normal = partial(exact_rows, lambda y: pm.Normal("y", pm.Normal("mu"), 1, observed=y), [1.0, 2], bounds={"y": (0, 5)})
    poisson = partial(exact_rows, lambda y: pm.Poisson("y", pm.Gamma("rate", 2, 1), observed=y), [1, 2])
    for moves in (OtherEachTime(0.5), np.float32(0.5), Fraction(1, 2), np.longdouble(0.5)):
        unit = pmdp.Individual(moves=moves)
        assert unit == pmdp.Individual(moves=0.5)
        assert unit.relation == pmdp.Individual(moves=0.5).relation
        assert normal(unit=unit)[1].difference == normal(unit=pmdp.Individual(moves=0.5))[1].difference
    of = poisson(unit=pmdp.Individual(events=ThreeTimesNothing(3), rows=ThreeTimesNothing(3)))[1]
    assert (of.difference, of.square) == (6, 18)
    for moves in (OtherEachTime(-3.0), Fraction(10**400), 10**400, np.longdouble("1e4000"), Fraction(1, 10**400)):
        with pytest.raises(pmdp.Refusal, match="moves is how far"):
            pmdp.Individual(moves=moves)


def test_totals_that_cannot_be_promised_are_refused():
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("rate", 2, 1, shape=4), observed=[5, 0, 2, 9])
    with pytest.raises(pmdp.Refusal, match="events=m"):
        pmdp.release(model, epsilon=1.0, unit="individual")
    with pm.Model() as counts:
        pm.Multinomial("y", 9, pm.Dirichlet("p", np.ones((2, 3))), observed=[[4, 3, 2], [9, 0, 0]])
    with pm.Model() as means:
        pm.Normal("y", pm.Normal("theta", shape=3), 1, observed=[1.0, 2.0, 3.0])
    for unit, bounds, words in [
        ("individual", {"y": (0, 4)}, r"Individual\(moves=m\)"),
        (pmdp.Individual(moves=0.1), {}, "it needs bounds before anything is released"),
        (pmdp.Individual(moves=0.1), {"y": (0, 1e4)}, "4,096 times as wide as moves=0.1"),
    ]:  # fmt: skip
        with pytest.raises(pmdp.Refusal, match=words):
            pmdp.release(means, epsilon=1.0, unit=unit, bounds=bounds)
    with pm.Model() as between:
        pm.Uniform("y", 0, pm.HalfNormal("end", shape=3), observed=[1.0, 2.0, 3.0])
    with pytest.raises(pmdp.Refusal, match="its likelihood is Uniform, of which a release is not offered"):
        pmdp.release(between, epsilon=1.0, unit=pmdp.Individual(moves=1), bounds={"y": (0, 5)})
    for moves in (0, -1, np.inf, np.nan, "1", True):
        with pytest.raises(pmdp.Refusal, match="moves is how far"):
            pmdp.Individual(moves=moves)
    with pytest.raises(pmdp.Refusal, match="how many individuals there are"):
        pmdp.release(counts, epsilon=1.0, unit="individual", neighbours="add_remove")
    with pm.Model() as model:
        pm.Binomial("y", pm.Data("n", [9, 9]), pm.Beta("p", 1, 1, shape=2), observed=[5, 0])
    with pytest.raises(pmdp.Refusal, match="private array n"):
        pmdp.release(model, epsilon=1.0, unit="individual")
    with pytest.raises(pmdp.Refusal, match="reveals how many"):
        pmdp.release(model, epsilon=1.0, unit="individual", public=["n"], neighbours="add_remove")
    with pytest.raises(pmdp.Refusal, match="positive integers"):
        pmdp.Individual(events=0)


def short(values):
    return pm.Data("short", values)


@pytest.mark.parametrize("length", [1, 4])
def test_a_private_array_needs_one_row_per_record(length):
    """A shorter one would be broadcast, and one entry of it would move many records."""
    for body in (
        lambda: pm.Normal("x", pm.Normal("b") * short(np.ones(length)), 1, observed=data("x_data", np.zeros(9))),
        lambda: pm.Bernoulli(
            "x", pm.Beta("p", 1, 1, dims="group")[short(np.ones(length, dtype=int))], observed=data("x_data", np.zeros(9))
        ),
    ):
        with pm.Model(coords=COORDS) as model:
            body()
        bounds = {"short": (0, 1)} if "b" in model.named_vars else {}
        bounds |= {"x": (-1, 1)} if "b" in model.named_vars else {}
        with pytest.raises(pmdp.Refusal, match="one row per record"):
            pmdp.release(model, epsilon=1.0, bounds=bounds)


def test_negative_private_indices_count_from_the_end(exact_seam):
    """As NumPy's do, so that the private model is the user's."""
    with pm.Model(coords=COORDS) as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1, dims="group")[pm.Data("g", [-1, 0, 2, -3, 1, 99, -99])], observed=np.ones(7))
    released = pmdp.release(model, epsilon=1.0)
    np.testing.assert_array_equal(released["y"].noisy[:, 1], [3, 1, 3])


def test_an_index_that_leaves_its_table_within_the_bounds_is_refused():
    with pm.Model(coords=COORDS) as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1, dims="group")[pm.Data("g", [1, 2, 3]) - 1], observed=[0, 1, 1])
    with pytest.raises(pmdp.Refusal, match="beyond its table"):
        pmdp.release(model, epsilon=1.0, bounds={"g": (1, 6)})
    assert pmdp.release(model, epsilon=1.0, bounds={"g": (1, 3)})["y"].noisy.shape == (3, 2)


@pytest.mark.parametrize("of_values", VALUES)
def test_a_parameter_for_every_row_is_told_of_means_over_people(of_values, exact_seam):
    """What the refusal says to write is written, and works."""
    with pm.Model() as model:
        VALUES[of_values](pm.Normal("theta", shape=4), np.array([1.0, 2.0, 4.0, 3.0]))
    with pytest.raises(pmdp.Refusal, match=r"means of many people.*unit=pymc_dp\.Individual\(moves=m\)"):
        pmdp.release(model, epsilon=1.0, bounds={"y": pmdp.Bins(0, 10)})
    released = pmdp.release(model, epsilon=1e6, unit=pmdp.Individual(moves=1), bounds={"y": (0, 10)})
    np.testing.assert_allclose(5 + 5 * released["y"].values.ravel(), [1, 2, 4, 3], atol=1e-3)
    pmdp.rewrite(model, released).point_logps()
