"""Draws from the posterior itself where columns of one observed variable have bounds of their own: law, cost, and what is refused."""

import itertools
from fractions import Fraction

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from test_draws import sampled, seam  # noqa: F401  the seam is a fixture

import pymc_dp as pmdp

pytestmark = pytest.mark.filterwarnings("ignore")
N = 30
RNG = np.random.default_rng(3)
Y = np.column_stack([RNG.normal(0, 1, N), RNG.normal(30, 10, N)])
K = RNG.poisson([1, 8], size=(N, 2))
REALS, COUNTS = [(-3.0, 3.0), (0.0, 60.0)], [(0, 4), (2, 20)]
WILD = [-np.inf, -1e308, -3.0, 3.0, 60.0, np.nan]
ROWS = {"row": range(N)}


def students(*columns):
    """One outcome and ten times another, in units of their own; of one variable of two columns, or of two variables."""
    with pm.Model(coords=ROWS) as model:
        m, s = pm.Uniform("m", -1, 1), 1.0
        if len(columns) == 1:
            pm.StudentT("y", nu=3, mu=pt.stack([m, 30 + 10 * m]), sigma=pt.stack([s, 10.0]), observed=columns[0])
        else:
            pm.StudentT("y", nu=3, mu=m, sigma=s, observed=columns[0], dims="row")
            pm.StudentT("z", nu=3, mu=30 + 10 * m, sigma=10.0, observed=columns[1], dims="row")
    return model


def poissons(*columns):
    with pm.Model(coords=ROWS) as model:
        m = pm.Uniform("m", 0.5, 2)
        if len(columns) == 1:
            pm.Poisson("y", pt.stack([m, 8 * m]), observed=columns[0])
        else:
            pm.Poisson("y", m, observed=columns[0], dims="row")
            pm.Poisson("z", 8 * m, observed=columns[1], dims="row")
    return model


MODELS = {"reals": (students, Y, REALS), "counts": (poissons, K, COUNTS), "an array": (students, Y, np.array(REALS))}


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("name", MODELS)
def test_scores_and_cost_are_those_of_variables_of_their_own(name, neighbours, seam):  # noqa: F811
    make, records, pairs = MODELS[name]
    for missing in (None, ["y", "z"]):
        sampled(make(records), bounds={"y": pairs}, points=51, neighbours=neighbours, missing=missing and ["y"])
        sampled(make(*records.T), bounds={"y": pairs[0], "z": pairs[1]}, points=51, neighbours=neighbours, missing=missing)
        assert seam.scales[-1] == pytest.approx(seam.scales[-2])
        np.testing.assert_allclose(seam.scores[-1], seam.scores[-2], atol=2)


@pytest.mark.parametrize("name", ["reals", "counts"])
def test_no_two_records_are_further_apart_than_is_paid_for(name, seam):  # noqa: F811
    """All pairs of what one record may hold; and what is beyond its bounds counts as these, in each column."""
    make, records, pairs = MODELS[name]
    scores = {}
    values = [*WILD, 30.0] if name == "reals" else [-5, 0, 2, 4, 20, 10**9]
    for value in itertools.product(values, repeat=2):
        changed = np.array(records)
        changed[3] = value
        sampled(make(changed), bounds={"y": pairs}, points=11)
        scores[value] = seam.scores[-1]
    used = max(int(np.ptp(a - b)) for a, b in itertools.combinations(scores.values(), 2))
    assert Fraction(used) / Fraction(seam.scales[-1]) <= 1
    assert used / seam.scales[-1] > 1 / 3
    for value in scores:
        if not np.isnan(value).any():
            inside = tuple(np.clip(value, *np.transpose(pairs)))
            if inside in scores:
                np.testing.assert_array_equal(scores[value], scores[inside])


@pytest.mark.parametrize("how", [{"method": "mcmc"}, {"points": 21}])
def test_every_way_of_drawing_takes_them(how):
    tree = sampled(students(Y), epsilon=4.0, bounds={"y": REALS}, **how)
    assert tree.posterior["m"].size == 1


def test_natural_bounds_are_bounds():
    natural = [pmdp.Natural(*pair) for pair in REALS]
    assert sampled(students(Y), epsilon=4.0, bounds={"y": natural}, points=21).posterior["m"].size == 1


def test_a_mode_takes_them():
    tree = pmdp.find_MAP(model=students(Y), epsilon=4.0, bounds={"y": REALS}, points=51)
    assert abs(float(tree["m"])) <= 1


def test_updates_that_pay_as_they_go_take_them():
    mechanism = pmdp.Gibbs(sweeps=2)
    with pm.Model() as model:
        pm.Poisson("y", pt.stack([m := pm.Uniform("m", 0.5, 2), 8 * m]), observed=K)
    assert pmdp.sample(model=model, epsilon=4.0, mechanism=mechanism, bounds={"y": COUNTS}).posterior["m"].size


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ([*REALS, (0, 1)], "has 2 columns, and its bounds are 3 pairs"),
        ([(0, 1), (3, 2)], "lower one first"),
        ([(0, 1), (0, [1, 2])], "pair of num"),
    ],
)
def test_bounds_that_are_none_are_refused(bounds, words):
    with pytest.raises(pmdp.Refusal, match=words):
        sampled(students(Y), bounds={"y": bounds}, points=21)


def test_what_is_missing_counts_as_a_value_that_every_column_can_have(seam):  # noqa: F811
    counts = K.astype(float)
    counts[:3] = np.nan
    with pytest.raises(pmdp.Refusal, match="cannot count as 0"):
        sampled(poissons(counts), bounds={"y": COUNTS}, points=21, missing={"y": 0})
    sampled(poissons(counts), bounds={"y": COUNTS}, points=21, missing={"y": 3})
    counts[:3] = 3
    sampled(poissons(counts.astype(int)), bounds={"y": COUNTS}, points=21)
    np.testing.assert_array_equal(seam.scores[-1], seam.scores[-2])
