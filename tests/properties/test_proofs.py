"""What ``proofs`` proves: that no two records are further apart than is declared, and that some are as far apart.

The provers are tried as well: against brute force where that can be had, and on sensitivities that are too small by 1, which they refuse.
"""

import ast
import itertools
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import proofs
import pymc as pm
import pytensor.tensor as pt
import pytest
from proofs import Linear, Verdict, once
from test_draws import Choices, coin, counts, groups, replaced, sampled

import pymc_dp as pmdp
from pymc_dp.families.family import Domain, Scaled, named
from pymc_dp.families.grid import POINTS
from pymc_dp.families.scores import Scores
from pymc_dp.families.second_moments import Regression
from pymc_dp.models.reader import read_model
from pymc_dp.models.spec import Likelihood, Placeholder
from pymc_dp.plans.network import Network, Node
from pymc_dp.plans.plan import planned, planned_release
from pymc_dp.plans.protection import protection_of
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.posterior.ball_regression import cost_in_ball
from pymc_dp.posterior.densities import MOST_PAIRS
from pymc_dp.posterior.grid import _sensitivity_of_clipped, _sensitivity_of_pairs
from pymc_dp.posterior.price import NAT
from pymc_dp.privacy import mechanisms
from pymc_dp.queries.language import question
from pymc_dp.releases.statistics import Cells
from pymc_dp.releases.totals import clamped, exact_totals

PACKAGE = Path(pmdp.__file__).parent
EXAMPLES = proofs.examples()
EXAMPLE_IDS = [f"{family.DISTRIBUTION}-{k}" for k, (family, _) in enumerate(EXAMPLES)]
every_example = pytest.mark.parametrize(("family", "domain"), EXAMPLES, ids=EXAMPLE_IDS)


def proved(verdicts, least=1.0):
    """Nothing exceeds what is declared, and this share of it is attained."""
    for one in verdicts:
        assert one.holds, one
        assert one.share >= least, one


# ---------- one value
@every_example
def test_one_value(family, domain):
    proved(once(proofs.of_one_value, family, domain), 0.9999 if family.DISTRIBUTION == "VonMises" else 1.0)


@every_example
def test_cells(family, domain):
    proved(once(proofs.in_cells, family, domain), 0.9999 if family.DISTRIBUTION == "VonMises" else 1.0)


ONE_NUMBER = [(f, d) for f, d in EXAMPLES if not f.NDIM and (isinstance(f, Scaled) or f.DISTRIBUTION in {"Normal", "LogNormal"})]


@pytest.mark.parametrize(("family", "domain"), ONE_NUMBER, ids=[f"{f.DISTRIBUTION}-{k}" for k, (f, _) in enumerate(ONE_NUMBER)])
def test_every_double_becomes_one_of_the_vectors_whose_pairs_are_gone_through(family, domain):
    """All doubles next to a place where an integer changes are found; every lattice value occurs, and none is jumped over."""
    found = proofs.reached(family, domain)
    _, points = proofs.holding(family, domain)
    if family.DISTRIBUTION == "CensoredExponential":
        (u, event), whole = found.T, np.arange(-POINTS, POINTS + 1)
        assert set(u[event == POINTS]) == set(whole)
        assert set(map(tuple, found[event != POINTS])) == {(0, 0)}
    elif len(points) > 2**12:
        assert set(map(bytes, np.ascontiguousarray(found))) == set(map(bytes, np.ascontiguousarray(points)))
    else:
        assert np.abs(found).max() == POINTS
        assert all(len(np.unique(column)) == 2 * POINTS + 1 for column in found.T)
        assert np.abs(np.diff(found, axis=0)).max() == 1
    sensitivity = family.sensitivity(domain)
    assert 0.9999 * sensitivity.difference <= proofs.largest_L1(found) <= sensitivity.difference


@pytest.mark.parametrize(("family", "domain"), [(f, d) for f, d in EXAMPLES if isinstance(f, Scaled)])
def test_whatever_a_logarithm_says_the_integers_stay_in_their_box(family, domain, monkeypatch):
    """Subtracting, dividing, multiplying, rounding and clipping are monotone, so the ends say what all doubles between become."""
    K = len(family.statistics(domain))
    largest = np.finfo(float).max
    ends = np.array([-np.inf, -largest, -1.0, -5e-324, -0.0, 5e-324, 1.0, largest, np.inf, np.nan])
    monkeypatch.setattr(type(family), "raw", lambda *_: (ends,) * K)
    integers = np.stack(family.exact(ends, domain), axis=-1)
    assert (np.diff(integers[:-1], axis=0) >= 0).all()
    assert np.abs(integers).max() == POINTS


@pytest.mark.parametrize("name", ["Normal", "LogNormal"])
def test_so_do_those_of_a_normal_value(name):
    """The integer u lies between -POINTS and POINTS for any double at all, clamped or not."""
    largest = np.finfo(float).max
    values = np.array([-np.inf, -largest, -1.0, 0.0, 1.0, largest, np.inf])
    family, domain = named(name), Domain(0.5, 2.0, unknown=(True, False))
    with np.errstate(all="ignore"):
        [u] = family.exact(values if name == "Normal" else np.maximum(values, 0), domain)
    assert u.min() == -POINTS
    assert u.max() == POINTS
    assert (np.diff(u) >= 0).all()


def test_whole_numbers_are_all_that_counts_become():
    """Rounding is monotone, and the bounds are whole, so that a clamped count becomes a whole number between them."""
    for family, domain in EXAMPLES:
        if family.DISTRIBUTION in {"Poisson", "Geometric", "NegativeBinomial", "Binomial"}:
            doubles = np.unique([*np.linspace(domain.lower, domain.upper, 10_001), np.nextafter(domain.upper, 0), np.nan, -np.inf, np.inf])
            found = proofs.integers_of(family, domain, doubles)
            assert (found.min(), found.max()) == (domain.lower, domain.upper)


def test_cosines_are_as_exact_as_the_proof_needs():
    """Against long doubles at 100,000 angles: 100 times nearer than the proof allows."""
    angles = np.concatenate([np.random.default_rng(0).uniform(-np.pi, np.pi, 100_000), np.linspace(-np.pi, np.pi, 9)])
    if np.finfo(np.longdouble).eps > 2.0**-60:
        pytest.skip("no longer doubles here")
    for function in (np.cos, np.sin):
        apart = np.abs(function(angles.astype(np.longdouble)) - function(angles)).max()
        assert apart * POINTS < float(proofs.SLACK) / 100


# ---------- whole records
SETTINGS = proofs.settings() + proofs.settings_by_column()


@pytest.mark.parametrize("setting", SETTINGS, ids=[setting.title for setting in SETTINGS])
def test_whole_records(setting):
    proved(once(proofs.of_records, setting))


@pytest.mark.parametrize("rows", [1, 3])
def test_all_rows_of_a_person(rows):
    """Of every setting of whole records."""
    for setting in proofs.settings():
        proved(proofs.of_persons(setting, rows))


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_whole_records_with_two_indices_and_a_covariate(neighbours):
    """All records of a count, two private indices and a private covariate with levels: any two of 72."""
    g, h = (
        Placeholder(pt.tensor(name, dtype="int64", shape=(None,)), 0, name, private=True, index=True, levels=k)
        for name, k in {"g": 2, "h": 3}.items()
    )
    x = Placeholder(pt.tensor("x", dtype="float64", shape=(None,)), 0, "x", private=True)
    family = named("Poisson")
    likelihood = Likelihood("y", "Poisson", family, unknown=(True,), inputs=(g, h, x))
    step = planned(likelihood, {"y": (1, 4), "x": {0.0, 1.0, 2.5}}, neighbours)
    given = np.array(list(itertools.product([1, 2, 3, 4], [0, 1], [0, 1, 2], [0.0, 1.0, 2.5])))
    private = {name: column[:, None] for name, column in zip(("g", "h", "x"), given.T[1:])}
    alone = Cells(np.arange(len(given)), np.ones(len(given), dtype=int), ())
    sums = clamped(exact_totals(given[:, 0], step, alone, private, None, None, None)).reshape(len(given), -1)
    assert sums.shape == (72, 18 * 2)
    L1, squared = proofs.largest_of_pairs(sums) if neighbours == "replace" else (proofs.max_norm(sums), proofs.max_square(sums))
    proved((Verdict("L1", step.sensitivity.difference, L1, L1), Verdict("squared L2", step.sensitivity.square, squared, squared)))


@pytest.mark.parametrize("total", proofs.TOTALS, ids=str)
def test_totals(total):
    proved(proofs.of_totals(*total))


@pytest.mark.parametrize("trials", [1.5, 2.5, 3.0, 3.5])
def test_part_of_a_trial_is_none(trials, exact_seam):
    """The trials of a Binomial may be written as a tensor that is no whole number: a record is then between 0 and the whole ones."""
    for record in (-1, 0, 0.5, 1, 1.5, 2, 3, 3.5, 4, 9, np.nan):
        with pm.Model() as model:
            y = pm.Data("records", np.array([0.0, 1.0, 0.0]))
            pm.Binomial("y", n=pt.constant(trials), p=pm.Beta("p", 1, 1), observed=y)
        model["records"].set_value(np.array([record, 1.0, 0.0]))
        charged = pmdp.release(model, epsilon=1.0)["y"].difference
    sums = np.array(exact_seam.exact)
    assert np.ptp(sums) == charged == int(trials)


# ---------- second moments
LINEAR = proofs.linear_cases()


@pytest.mark.parametrize(("case", "small"), LINEAR, ids=[f"{case.title}{', all signs' * small}" for case, small in LINEAR])
def test_second_moments(case, small):
    proved(once(proofs.of_moments, case, small), 0.9999)


@pytest.mark.parametrize(
    "case", proofs.SCORED, ids=lambda case: f"{case.link} {case.features} {case.most:g}{' first' * case.without_slopes}"
)
def test_scores(case):
    """With a log link weights are bounded by themselves, and at first anchors with another mean than 1/2 both responses are taken for the
    farther one; all else is nearly attained."""
    farther = case.without_slopes and sum(case.predictor) != 0
    proved(once(proofs.of_scores, case), 0.4 if case.link == "log" else 0.45 if farther else 0.8)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        Linear(4), Linear(4, known=True), Linear(3, 2, known=True), Linear(3, 1, (0.5,)), Linear(2, 3, (0.5,), True),
        Linear(3, multipliers=(1, 2)), Linear(3, 1, (0.5,), True, multipliers=(2, 3)),
    ],
)  # fmt: skip
def test_second_moments_of_five_entries(case):
    """All signs and all boxes say the same as the bounds for any number; so they do of four entries that are multiplied."""
    many = proofs.in_place_L1_many if case.multipliers == (1, 1) else proofs.in_place_L1_multiplied
    assert proofs.in_place_L1(case) == many(case)
    assert proofs.in_place_squared(case) == proofs.corners_squared(case)
    proved(proofs.of_moments(case, False), 0.9999)


def test_integers_of_second_moments_stay_in_their_box():
    """For any doubles, and the constant is the constant."""
    regression = Linear(1, 1, (0.5,)).regression()
    values = np.array([-np.inf, -1e308, -1.0, -0.0, 1.0, 1e308, np.inf, np.nan])
    columns = regression.scaled(np.stack([values] * 3, axis=-1), values[:, None])
    assert np.abs(columns).max() == POINTS
    assert (np.diff(columns[:-1], axis=0) >= 0).all()
    assert (columns[:, 0] == POINTS).all()


def linear_model(columns=1, index=None, sigma=None, link=""):
    rng = np.random.default_rng(0)
    with pm.Model() as model:
        x = pm.Data("x", rng.normal(size=(12, 2)))
        a = pm.Normal("a", shape=3)[pm.Data("g", np.arange(12) % 3)] if index else pm.Normal("a")
        mean = a + x @ pm.Normal("b", shape=2)
        observed = rng.normal(size=(12, columns)) if columns > 1 else rng.normal(size=12)
        if link:
            pm.Bernoulli("y", logit_p=mean, observed=observed > 0)
        else:
            pm.Normal("y", mean[:, None] if columns > 1 else mean, sigma or pm.HalfNormal("s"), observed=observed)
    return model


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("made", [{}, {"columns": 3}, {"index": True}, {"sigma": 2.0}, {"link": "logit"}], ids=str)
def test_plans_of_linear_likelihoods(made, neighbours):
    """What a model is charged is what is proved of its second moments: times its columns, and every entry where a record comes or goes."""
    bounds = {"x": (-1, 1), "logit(y)": (-3, 3)} if made.get("link") else {"x": (-1, 1), "y": (-2, 2)}
    found, _ = read_model(linear_model(**made))
    [step] = planned_release(found, protection_of(bounds=bounds, neighbours=neighbours)).statistics
    assert isinstance(step, PlannedStatistic)
    counted = neighbours == "add_remove" or "index" in made
    if made.get("link"):
        place = 2 if neighbours == "add_remove" else 0
        two = once(proofs.of_scores, Scores(3, "logit", 1.0, (-3.0, 3.0)))[place : place + 2]
        assert (step.sensitivity.difference, step.sensitivity.square) == tuple(one.declared for one in two)
        return
    assert step.regression is not None
    assert step.regression.multipliers[0] < step.regression.multipliers[1]
    case = Linear(2, 1, (), bool(made.get("sigma")), counted, step.regression.multipliers)
    if neighbours == "add_remove":
        ones = proofs.moments_of(case, np.ones((1, 3)))
        norms = [measure(ones) for measure in (proofs.max_norm, proofs.max_square)]
        verdicts = (
            Verdict("L1", step.sensitivity.difference, made.get("columns", 1) * norms[0], 0),
            Verdict("squared L2", step.sensitivity.square, made.get("columns", 1) * norms[1], 0),
        )
    else:
        pairs = zip(once(proofs.of_moments, case, True), (step.sensitivity.difference, step.sensitivity.square), strict=True)
        verdicts = tuple(replace(one, declared=declared, bound=made.get("columns", 1) * one.bound) for one, declared in pairs)
    for one in verdicts:
        assert one.bound <= one.declared <= one.bound * Fraction(10_001, 10_000)


# ---------- networks, draws, questions
@pytest.mark.parametrize(("nodes", "levels"), [(1, (2, 3, 4, 5)), (2, (2, 3, 4, 5)), (3, (2, 3)), (4, (2,))])
def test_networks(nodes, levels):
    many, _, exact = once(proofs.of_networks, nodes, levels)
    assert many == len(levels) ** nodes * 2 ** (nodes * (nodes - 1) // 2)
    assert exact


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "levels"), [(3, (2, 3, 4, 5)), (4, (2, 3)), (5, (2,))])
def test_more_networks(nodes, levels):
    assert proofs.of_networks(nodes, levels)[2]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_networks_of_five_variables_and_levels(seed):
    rng = np.random.default_rng(seed)
    parents = {k: tuple(f"v{a}" for a in range(k) if rng.random() < 0.5) for k in range(5)}
    network = Network(tuple(Node(f"v{k}", f"v{k}", 0, int(rng.integers(2, 6)), parents[k]) for k in range(5)))
    assert all(one.declared == one.bound == one.attained for one in proofs.of_network(network))


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_draws_of_tables(neighbours):
    """Exact; a variable of three levels without a parent has a level that is in one split alone."""
    for levels in (2, 4, 3, 5):
        for nodes in (1, 2, 3) if levels == 2 else (1, 2) if levels < 5 else (1,):
            for network in proofs.networks_up_to(nodes, (levels,)):
                proved(proofs.of_table_draws(network, neighbours), 1.0)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("ball", proofs.BALLS, ids=str)
def test_draws_in_a_ball(ball, neighbours):
    proved(proofs.of_ball(*ball, neighbours), 0.99999)


@pytest.mark.parametrize("name", ["coin", "counts", "groups"])
def test_listed_records(name, monkeypatch):
    """All records that can occur, through the whole path: the scores of two differ by no more than the price says, and some by as much."""
    seam = Choices()
    monkeypatch.setattr(mechanisms, "_opendp_choice", seam)
    makes = {"coin": (coin, range(2)), "counts": (counts, range(6)), "groups": (lambda y: groups(y=y), range(2))}
    make, values = makes[name]
    start = np.arange(40) % 2
    trees = [sampled(model, 1.0, **arguments) for model, arguments in (make(replaced(start, value)) for value in values)]
    declared = round(float(trees[0]["privacy"]["sensitivity"].item()) * NAT)
    largest = max(int(np.ptp(a - b)) for a, b in itertools.combinations(seam.scores, 2))
    proved((Verdict("range of scores", declared, largest, largest),))


def test_more_listed_records():
    """All pairs up to 64 records; beyond, never less than all pairs say."""
    rng = np.random.default_rng(1)
    for V, G in ((2, 5), (MOST_PAIRS, 9), (MOST_PAIRS + 1, 7), (200, 3)):
        table, open_codes = rng.integers(-99, 99, (V, G)), rng.integers(0, 3 if V == 2 else 1, V)
        pairs = [int(np.ptp(a - b)) for (a, i), (b, j) in itertools.product(zip(table, open_codes), repeat=2) if i == j]
        found = _sensitivity_of_pairs(table, open_codes, "replace")
        assert found == max(pairs) if V <= MOST_PAIRS else found >= max(pairs)
        assert _sensitivity_of_pairs(table, open_codes, "add_remove") == max(int(np.ptp(row)) for row in table)


def test_clipped_records():
    """The range of a difference is convex in each of two records, so it is largest where both are at an end at every point."""
    rng = np.random.default_rng(4)
    for G in (2, 3, 5):
        for _ in range(6):
            least, most = np.sort(rng.integers(-99, 99, (2, G)), axis=0)
            corners = np.array(list(itertools.product(*zip(least, most))))
            pairs = max(int(np.ptp(corners - one, axis=1).max()) for one in corners)
            assert _sensitivity_of_clipped(least, most, "replace") == pairs
            assert _sensitivity_of_clipped(least, most, "add_remove") >= int(np.ptp(corners, axis=1).max())


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("asked", proofs.QUESTIONS)
def test_questions(asked, neighbours):
    proved(proofs.of_question(question(asked, proofs.SCHEMA), neighbours))


@pytest.mark.parametrize(("epsilon", "edges"), proofs.EDGES)
def test_answers(epsilon, edges):
    """All levels occur, that of incomplete records too, and all but a billionth of the largest ratio is used."""
    verdicts, (_, laws) = proofs.of_answers(epsilon, edges), proofs.told(epsilon, edges)
    assert laws.shape == (1 + np.prod([len(several) - 1 for several in edges.values()]),) * 2
    proved(verdicts, 1 - 1e-9)


# ---------- the provers can refuse
def lowered(monkeypatch, owner, name, **by):
    """What a method says, with some of its numbers less by so much."""
    before = getattr(owner, name)

    def after(*arguments, **named_arguments):
        said = before(*arguments, **named_arguments)
        return replace(said, **{field: getattr(said, field) - less for field, less in by.items()}) if by else said - 1

    monkeypatch.setattr(owner, name, after)


def refused(verdicts):
    return not all(one.holds for one in verdicts)


ONE_OF_EACH = list({family.DISTRIBUTION: (family, domain) for family, domain in reversed(EXAMPLES)}.values())


@pytest.mark.parametrize("field", ["difference", "square", "largest"])
def test_a_reach_that_is_less_by_1_is_refused(field, monkeypatch):
    for family, domain in ONE_OF_EACH:
        rounding = {"difference": 3, "square": 200, "largest": 1}[field] if family.DISTRIBUTION == "VonMises" else 1
        with monkeypatch.context() as patch:
            lowered(patch, type(family), "sensitivity", **{field: rounding})
            assert refused(proofs.of_one_value(family, domain)), family.DISTRIBUTION


@pytest.mark.parametrize("field", ["total", "square"])
def test_a_spread_that_is_less_by_1_is_refused(field, monkeypatch):
    for family, domain in ONE_OF_EACH:
        with monkeypatch.context() as patch:
            lowered(
                patch, type(family), "cell_sensitivity", **{field: 200 if family.DISTRIBUTION == "VonMises" and field == "square" else 1}
            )
            assert refused(proofs.in_cells(family, domain)), family.DISTRIBUTION


def planned_less(monkeypatch, field):
    before = proofs.planned

    def after(*given):
        step = before(*given)
        return replace(step, of_row=replace(step.of_row, **{field: getattr(step.of_row, field) - 1}))

    monkeypatch.setattr(proofs, "planned", after)


@pytest.mark.parametrize("field", ["difference", "square"])
def test_plans_that_are_less_by_1_are_refused(field, monkeypatch):
    planned_less(monkeypatch, field)
    assert all(refused(proofs.of_records(setting)) for setting in SETTINGS)
    assert all(refused(proofs.of_persons(setting, 3)) for setting in proofs.settings())
    assert all(refused(proofs.of_totals(*total)) for total in proofs.TOTALS)


@pytest.mark.parametrize("field", ["difference", "square"])
def test_second_moments_that_are_less_by_1_are_refused(field, monkeypatch):
    lowered(monkeypatch, Regression, "sensitivity", **{field: 1})
    for case, small in LINEAR:
        assert refused(proofs.of_moments(case, small and case.size < 3)), case


def test_networks_questions_and_draws_that_are_less_by_1_are_refused(monkeypatch):
    for name in ("fourier_sensitivity", "fourier_square"):
        with monkeypatch.context() as patch:
            lowered(patch, Network, name)
            assert all(refused(proofs.of_network(network)) for network in proofs.networks_up_to(2, (2, 3)))
    lowered(monkeypatch, proofs.Question, "sensitivity")
    assert all(refused(proofs.of_question(question(asked, proofs.SCHEMA), "add_remove")) for asked in proofs.QUESTIONS)
    with monkeypatch.context() as patch:
        patch.setattr(proofs, "cost_in_ball", lambda *given: cost_in_ball(*given) - 1 / NAT)
        assert all(refused(proofs.of_ball(*ball, "replace")) for ball in proofs.BALLS)
    lowered(monkeypatch, proofs, "record_splits")
    assert all(refused(proofs.of_table_draws(network, "replace")) for network in proofs.networks_up_to(2, (2,)))


@pytest.mark.parametrize(("epsilon", "edges"), proofs.EDGES)
def test_a_truth_that_is_told_a_little_more_often_is_refused(epsilon, edges, monkeypatch):
    before = proofs.truth_probability
    monkeypatch.setattr(proofs, "truth_probability", lambda *given: before(*given) + 16 * np.spacing(before(*given)))
    assert refused(proofs.of_answers(epsilon, edges))


# ---------- the provers are right
def test_largest_distances_are_those_of_all_pairs():
    rng = np.random.default_rng(2)
    for M, K in ((1, 1), (2, 3), (50, 2), (40, 5)):
        points = rng.integers(-(2**30), 2**30, (M, K))
        pairs = [[abs(int(x) - int(y)) for x, y in zip(a, b)] for a, b in itertools.product(points, repeat=2)]
        assert proofs.largest_L1(points) == max(map(sum, pairs))
        assert proofs.largest_of_pairs(points) == (max(map(sum, pairs)), max(sum(x * x for x in pair) for pair in pairs))
    assert proofs.max_square(np.array([[2**40, -(2**40)], [1, 1]])) == 2**81


def test_the_farthest_squares_are_those_of_all_pairs(monkeypatch):
    """Of a coarser lattice, with many points and every pair of them."""
    monkeypatch.setattr(proofs, "POINTS", 2**10)
    u = np.arange(-(2**10), 2**10 + 1)
    for points in (np.stack([u * 2**10, u * u], axis=-1), u[:, None]):
        assert len(points) > 2000
        assert proofs.farthest_squared(points) == proofs.largest_of_pairs(points)[1]


@pytest.mark.slow
def test_the_farthest_squares_of_a_normal_value_are_those_of_all_pairs():
    u = np.arange(-POINTS, POINTS + 1)
    largest = farthest = 0
    for one in range(0, POINTS + 1, 8):  # u and -u are alike; eight at a time
        own = np.arange(one, min(one + 8, POINTS + 1))[:, None]
        first, second = np.abs(u - own) * POINTS, np.abs(u * u - own * own)
        largest, farthest = max(largest, int((first + second).max())), max(farthest, int((first * first + second * second).max()))
    sensitivity = named("Normal").sensitivity(Domain(-1, 1, unknown=(True, True)))
    assert (largest, farthest) == (sensitivity.difference, sensitivity.square)


def test_points_near_a_circle_hold_those_of_all_angles():
    """On a coarse lattice, 200,000 angles: every one of them is near, and all that is near is met."""
    near = proofs.near_circle(2**6)
    angles = np.linspace(-np.pi, np.pi, 200_001)
    met = np.unique(np.rint(2**6 * np.stack([np.cos(angles), np.sin(angles)], axis=-1)).astype(int), axis=0)
    np.testing.assert_array_equal(near, met)


def test_doubles_are_in_order():
    doubles = np.array([-np.inf, -1e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, np.nextafter(1, 2), np.inf])
    places = proofs.ordinal(doubles)
    assert (np.diff(places) > 0).all()
    np.testing.assert_array_equal(proofs.double_at(places), doubles)
    assert list(proofs.ordinal(np.array([-5e-324, -0.0, 0.0, 5e-324]))) == [-1, 0, 0, 1]


def test_steps_are_found_to_the_last_double():
    tried = ((lambda x: np.rint(x * 7), -2.0, 3.0), (lambda x: -np.floor(np.log(x)), 1e-9, 1e9), (np.zeros_like, 0.0, 1.0))
    for function, low, high in tried:
        doubles = proofs.steps_of(lambda x, of=function: of(x).astype(np.int64), low, high)
        at = function(doubles)
        changes = np.flatnonzero(np.diff(at))
        assert len(changes) == abs(at[-1] - at[0])
        assert (np.diff(proofs.ordinal(doubles))[changes] == 1).all()


def test_signs_are_gone_through_once():
    """As many as there are graphs with loops: 2, 6, 20, 90."""
    assert [sum(1 for _ in proofs.different_signs(Linear(M - 1))) for M in (1, 2, 3, 4)] == [2, 6, 20, 90]


def test_what_is_multiplied_is_gone_through_by_three_arguments():
    """One response: whatever the multipliers, all signs and the bound for any number of features say the same; so do boxes and corners."""
    for private, public, known in ((0, (), False), (1, (0.5,), True), (2, (), False)):
        for multipliers in ((1, 1), (2, 3), (1, 7)):
            case = Linear(private, 1, public, known, multipliers=multipliers)
            assert proofs.in_place_L1(case) == proofs.in_place_L1_multiplied(case), case
            assert proofs.in_place_squared(case) == proofs.corners_squared(case), case


def test_tops_of_quadratics_are_those_of_a_grid():
    rng = np.random.default_rng(3)
    grid = np.linspace(-1, 1, 41)
    for M in (1, 2, 3):
        v = np.stack(np.meshgrid(*[grid] * M), axis=-1).reshape(-1, M)
        for _ in range(12):
            signs, linear = np.triu(rng.choice([-3, -1, 1, 2], (M, M))), Fraction(int(rng.integers(0, 9)), 4)
            linear = [linear * int(of) for of in rng.integers(0, 3, M)]
            values = v @ np.array(linear, dtype=float) + np.einsum("ni,ij,nj->n", v, signs, v)
            top = float(proofs.top_of(linear, signs))
            assert values.max() - 1e-12 <= top <= values.max() + 0.02


COARSE = [
    Linear(0), Linear(1), Linear(0, 2), Linear(1, 1, (), True), Linear(1, 1, (0.5,)),
    *(Linear(1, 1, (0.5,), known, multipliers=multipliers) for known in (False, True) for multipliers in ((2, 3), (1, 2), (1, 3))),
]  # fmt: skip


@pytest.mark.parametrize("case", COARSE, ids=lambda case: case.title)
def test_bounds_of_second_moments_hold_on_all_pairs_of_a_coarse_lattice(case):
    """All pairs of records of 17 values an entry, computed by the code: within a few percent of what is proved for all."""
    grid = np.linspace(-1, 1, 17)
    records = np.stack(np.meshgrid(*[grid] * case.size), axis=-1).reshape(-1, case.size)
    L1, squared = proofs.largest_of_pairs(proofs.moments_of(case, records))
    assert 0.95 * proofs.in_place_L1(case) <= Fraction(L1, POINTS**2) <= proofs.in_place_L1(case)
    assert proofs.in_place_squared(case) == Fraction(squared, POINTS**4)


# ---------- nothing is left out
@cache
def makers():
    """All functions in the package that make a Sensitivity, a CellSensitivity or a Draw, but for reading one back from a file."""
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        place = str(path.relative_to(PACKAGE))
        for scope, node in functions(ast.parse(path.read_text())):
            called = {one.func.id for one in ast.walk(node) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)}
            if called & {"Sensitivity", "CellSensitivity", "Draw"}:
                found.add(f"{place}:{scope}{node.name}")
    return found - {"privacy/entries.py:draws_in"}


def functions(tree):
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield "", node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.", inner) for inner in node.body if isinstance(inner, ast.FunctionDef))


def test_every_sensitivity_is_listed_with_its_proof():
    listed = {place for one in proofs.SENSITIVITIES for place in one.where}
    assert makers() - listed == set()
    for one in proofs.SENSITIVITIES:
        assert one.kind in {proofs.ALL_PAIRS, proofs.CERTIFIED_BOUND, proofs.ARGUED}
        file, _, name = one.test.partition("::")
        [path] = Path(__file__).parents[1].rglob(file)
        assert f"def {name}(" in path.read_text()
        for place in one.where:
            file, _, name = place.partition(":")
            assert (PACKAGE / file).exists()
            assert not name or f"def {name.split('.')[-1]}(" in (PACKAGE / file).read_text(), place
