"""Bounds from the records: what they cost is what a record can do, nothing else is seen of it, and they lie where they should."""

import itertools
import warnings
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
import test_privacy_routes as routes
from checks import flat, mostly_slow
from scipy.special import log_softmax

import pymc_dp as pmdp
from pymc_dp.families.family import all_families
from pymc_dp.families.limits import check_bounds
from pymc_dp.models.spec import RecordPath
from pymc_dp.privacy import mechanisms
from pymc_dp.releases.quantiles import Column, scores, sensitivity

HALF, THIRD, QUARTER = Fraction(1, 2), Fraction(1, 3), Fraction(1, 4)


class Choices:
    """Stands at the seam of choices: keeps the scores and answers with a fixed place."""

    def __init__(self, share=0.5):
        self.rows, self.scales, self.share = [], [], share

    def __call__(self, found, scale):
        self.rows.append(np.array(found))
        self.scales.append(scale)
        return int((len(found) - 1) * self.share)


@pytest.fixture
def seam(monkeypatch):
    choices = Choices()
    monkeypatch.setattr(mechanisms, "_opendp_choice", choices)
    return choices


def incomes(values):
    with pm.Model() as model:
        pm.LogNormal("income", pm.Normal("mean", 8, 4), pm.HalfNormal("sd", 2), observed=routes.data("records", values))
    return model


def of_incomes(values, **more):
    given = {"names": "income", "within": {"income": (1, 10**6)}, "epsilon": 1.0}
    return pmdp.private_bounds(incomes(values), **given | more)


# ---------- what a record can do


def neighbours_of(candidates, values, records, neighbours):
    """Counts (G,) of all pairs of data sets, a record having so many values, each at a candidate or missing."""
    several = list(itertools.combinations_with_replacement(range(candidates + 1), values))
    for others in itertools.combinations_with_replacement(several, records - 1):
        shared = np.bincount([*itertools.chain(*others)], minlength=candidates + 1)
        of = [shared + np.bincount(record, minlength=candidates + 1) for record in several]
        pairs = itertools.combinations(of, 2) if neighbours == "replace" else ((shared, each) for each in of)
        yield from ((first[:candidates], second[:candidates]) for first, second in pairs)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize(
    ("quantile", "candidates", "values", "records"),
    [(HALF, 3, 1, 7), (THIRD, 3, 1, 8), (1 - THIRD, 3, 1, 8), (QUARTER, 3, 1, 9), (Fraction(3, 4), 3, 1, 9), (HALF, 3, 2, 4)],
)
def test_all_pairs_on_a_small_lattice(quantile, candidates, values, records, neighbours):
    """The range by which the scores of any two neighbours differ is at most what is declared, and of some two it is that."""
    of = cache(lambda counts: scores(np.array(counts), quantile))
    pairs = neighbours_of(candidates, values, records, neighbours)
    largest = max(int(np.ptp(of(tuple(first)) - of(tuple(second)))) for first, second in pairs)
    assert largest == sensitivity(quantile, values, neighbours)


def losses(first, second, neighbours, seam):
    """Of both choices, the largest change of a candidate's log-probability."""
    seam.rows.clear(), seam.scales.clear()
    for values in (first, second):
        of_incomes(values, quantiles=(0.25, 0.75), neighbours=neighbours)
    before, after = (
        [log_softmax(row / scale) for row, scale in zip(seam.rows[k : k + 2], seam.scales[k : k + 2], strict=True)] for k in (0, 2)
    )
    return np.array([np.abs(a - b).max() for a, b in zip(before, after, strict=True)])


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_the_exact_loss_never_exceeds_epsilon_and_nearly_attains_it(neighbours, seam):
    """Worst are candidates far below a quantile where some just at it are by far the best: a record that passes both moves their scores
    apart. A record that comes does so at one end for the one quantile, at the other for the other.
    """
    spread = (400, 601 if neighbours == "replace" else 600, 2000, 999 if neighbours == "replace" else 1000)
    rows = np.repeat([1.0, 10.0, 1e3, 1e6], spread)
    others = [
        np.append(rows, record) if neighbours == "add_remove" else np.append(np.delete(rows, place), record)
        for record, place in itertools.product((1e6, 1.0, 50.0, np.nan, -np.inf, 1e300), (0, 1500, -1))
    ]
    found = np.array([losses(rows, other, neighbours, seam) for other in others])
    assert found.max() <= 0.5 + 1e-9
    assert (found.max(axis=0) >= 0.99 * 0.5)[: 2 if neighbours == "replace" else 1].all()
    assert neighbours == "add_remove" or found.sum(axis=1).max() >= 0.99


MOVES = [np.nan, np.inf, -np.inf, -0.0, 1e308, 5e-324, -7.0, 0.5, 99.0, 2.0]


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_whole_path_costs_what_is_charged(neighbours, seam, tmp_path):
    """Ranges of scores over scales, which are epsilon at most, whatever a record of several variables and columns says."""
    rng = np.random.default_rng(3)
    rows = rng.lognormal(size=(30, 4))

    def chosen(rows):
        seam.rows.clear(), seam.scales.clear()
        with pm.Model() as model:
            X = routes.data("X", rows[:, :2])
            pm.Normal("y", pm.math.dot(X, pm.Normal("b", 0, 1, shape=2)), 1.0, observed=routes.data("ys", rows[:, 2]))
            pm.Poisson("k", pm.Gamma("rate", 2, 1, shape=2), observed=routes.data("ks", np.floor(rows[:, 2:])))
        return pmdp.private_bounds(
            model, names=["X", "y", "k"], within={"X": [(-1, 5), (0.01, 50)], "y": (-100, 100), "k": (0, 20)}, epsilon=Fraction(3, 2),
            neighbours=neighbours, quantiles=(0.1, 0.9), candidates=41,
        ), [*seam.rows], [*seam.scales]  # fmt: skip

    first, scored, scales = chosen(rows)
    assert len(scales) == 8  # two columns of X, y, and k, whose columns are taken together
    for kind, position in itertools.product(MOVES, (0, 29)):
        other = rows.copy()
        other[position] = kind
        other = np.vstack([rows, other[position]]) if neighbours == "add_remove" else other
        second, scored_other, scales_other = chosen(other)
        assert (repr(first), scales) == (repr(second), scales_other)
        spent = sum(Fraction(int(np.ptp(a - b))) / Fraction(scale) for a, b, scale in zip(scored, scored_other, scales, strict=True))
        assert spent <= first.cost.epsilon == Fraction(3, 2)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_columns_that_are_taken_together_are_all_paid_for(neighbours, seam):
    """One record with a value in each of three columns moves the scores of a median three times as far as one value: what is charged."""
    rows = np.stack([np.arange(300) % 3 * 10.0] * 3, axis=1)
    other = np.append(rows, [[0.0] * 3], axis=0) if neighbours == "add_remove" else np.append(rows[1:], [[20.0] * 3], axis=0)
    for records in (rows, other):
        with pm.Model() as model:
            pm.Poisson("k", pm.Gamma("rate", 2, 1, shape=3), observed=routes.data("ks", records))
        pmdp.private_bounds(model, names="k", within={"k": (0, 20)}, epsilon=1.0, quantiles=(0.25, 0.5), neighbours=neighbours)
    low, median = (float(np.ptp(seam.rows[k] - seam.rows[k + 2]) / seam.scales[k]) for k in (0, 1))
    assert 0.499 <= median <= 0.5
    assert low <= 0.5


# ---------- what is seen


NEEDS = [
    routes.private_integer_index, routes.table_of_covariates, routes.tabulated, routes.linear, routes.linear_with_a_square,
    routes.log_linear, routes.multivariate, routes.mediator,
]  # fmt: skip
"""Routes of records with names that need bounds."""


def seen(route, rows, neighbours, folder):
    """Everything that leaves, the noise held still."""
    model, arguments = routes.build(route, rows)
    within = {}
    for name, pair in arguments["bounds"].items():
        if "(" not in name:
            within[name] = (min(pair), max(pair)) if isinstance(pair, set) else pair
    ledger = pmdp.Ledger(folder / f"{len(list(folder.iterdir()))}.ledger", epsilon=2, neighbours=neighbours, create=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chosen = pmdp.private_bounds(
            model, names=list(within), within=within, epsilon=1.0, neighbours=neighbours, candidates=21, ledger=ledger
        )  # fmt: skip
    charges = ledger.entries().drop(columns=["time", "hash"]).to_csv()
    told = [dict(chosen), chosen.notes, chosen.cost, chosen.unit, chosen.chosen, chosen.neighbours, chosen.promise, charges]
    return [*told, [(each.category, str(each.message)) for each in caught]]


@pytest.mark.parametrize("neighbours", mostly_slow(["replace", "add_remove"], 0, 1))
@pytest.mark.parametrize("route", NEEDS, ids=lambda route: route.__name__)
def test_every_malformed_neighbour_looks_the_same(route, neighbours, seam, tmp_path):
    """Whatever a record holds, and under add_remove whether it is there: in every column and in all of them."""
    rows = routes.records()
    first = seen(route, rows, neighbours, tmp_path)
    for other in list(routes.malformed(rows, neighbours, (3,)))[::7]:
        assert seen(route, other, neighbours, tmp_path) == first


def test_no_number_of_records_is_in_what_is_said_under_add_remove(seam):
    told = [repr(of_incomes(np.full(many, 30.0), neighbours="add_remove")) for many in (0, 1, 40, 4000)]
    assert len(set(told)) == 1
    told = [repr(of_incomes(np.full(many, 30.0))) for many in (40, 4000)]
    assert "of 40 values" in told[0]
    assert len(set(told)) == 2


def test_nothing_of_a_record_is_in_the_result_or_in_an_error(monkeypatch, seam):
    import cloudpickle

    marked = 7123.456789012345
    chosen = of_incomes(np.full(30, marked))
    assert np.float64(marked).tobytes() not in cloudpickle.dumps(chosen)

    def fails(found, scale):
        raise ValueError(f"{marked} {found}")

    monkeypatch.setattr(mechanisms, "_opendp_choice", fails)
    with pytest.raises(pmdp.PrivateComputationError) as caught:
        of_incomes(np.full(30, marked))
    assert "7123" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_the_charge_is_on_disk_before_a_record_is_read(monkeypatch, tmp_path):
    """Where the choice fails, the charge is there; what was refused costs nothing."""
    ledger = pmdp.Ledger(tmp_path / "a.ledger", epsilon=2, create=True)
    spent = []
    real = Column.counts
    monkeypatch.setattr(Column, "counts", lambda column: (spent.append(ledger.remaining().epsilon), real(column))[1])
    chosen = of_incomes(np.full(30, 9.0), epsilon=0.5, ledger=ledger)
    assert spent == [Fraction(3, 2)]
    assert chosen.ledger_head == ledger.head
    row = ledger.entries().iloc[-1]
    assert (row.what, row.mechanism, row.epsilon) == ("lower bound of income, upper bound of income", "choice", 0.5)
    assert row.rho == pytest.approx(2 * 0.25**2 / 8)
    with pytest.raises(pmdp.Refusal, match="is left"):
        of_incomes(np.full(30, 9.0), epsilon=1.6, ledger=ledger)
    assert len(spent) == 1


# ---------- what is chosen


def test_missing_values_are_not_counted_and_others_are_moved_to_the_ends():
    grid = np.array([1.0, 2.0, 4.0])
    values = np.array([np.nan, np.nan, -np.inf, 0.0, 1.0, 1.5, 2.0, 3.0, 9.0, np.inf])
    path = RecordPath(pytensor.shared(values, borrow=True), 0)
    column = Column("x", "x", grid, False, False, (0,), path, len(values))
    assert column.counts().tolist() == [3, 2, 3]


def test_whether_a_value_is_missing_shows_nowhere_also_where_pymc_imputes_it(seam):
    """Passed to ``observed`` as it is, an array with NaN becomes two variables in PyMC."""
    told, counted = [], []
    for record in (5.0, np.nan):
        values = np.append(np.linspace(1, 900, 29), record)
        with warnings.catch_warnings(), pm.Model() as model:
            warnings.simplefilter("ignore")
            pm.LogNormal("income", pm.Normal("mean", 8, 4), pm.HalfNormal("sd", 2), observed=values)
        told.append(repr(pmdp.private_bounds(model, names="income", within={"income": (1, 10**6)}, epsilon=1.0, quantiles=(0.25, 0.5))))
        counted.append(-seam.rows[-1][-1])  # above the largest candidate is nothing, below it all that is counted
    assert told[0] == told[1]
    assert counted == [30, 29]


@pytest.mark.parametrize("quantile", [HALF, QUARTER, Fraction(1, 200), Fraction(199, 200)])
def test_scores_say_how_far_a_share_is_from_the_quantile(quantile):
    counts = np.random.default_rng(1).integers(0, 40, 60)
    shares = np.cumsum(counts) / counts.sum()
    expected = -np.abs(shares - float(quantile)) * counts.sum() * quantile.denominator
    np.testing.assert_allclose(scores(counts, quantile), expected, atol=1e-6)
    assert scores(np.full(5, 2**61), quantile).min() >= -mechanisms.LARGEST_SUM


@pytest.mark.parametrize(("many", "epsilon"), [(1000, 0.5), (30_000, 0.1), (30_000, 0.5)])
def test_chosen_ranks_are_as_near_as_is_said(many, epsilon):
    """Lognormal incomes; one choice in 20 may be further off, so of 60 choices 12 or more are further with a probability below 1e-4."""
    values = np.exp(np.random.default_rng(2).normal(10, 1, many))
    off, step = [], 1e8 ** (1 / 999)
    for _ in range(30):
        chosen = of_incomes(values, within={"income": (1, 1e8)}, epsilon=epsilon, widen=0)
        (lower, upper), quantile = chosen["income"], float(chosen.notes[0].split()[4])
        rank = float(chosen.notes[0].split("by at most ")[1].split()[0])
        assert 0.005 <= quantile <= 0.08
        off += [abs((values <= lower * step).sum() - quantile * many), abs((values <= upper / step).sum() - (1 - quantile) * many)]
    assert np.mean(np.array(off) > rank + 0.02 * many * quantile) < 12 / 60


@pytest.mark.parametrize("ends", [(-3.0, 5.0), (0.01, 50.0), (0.0, 20.0), (0.02, 0.9)])
@pytest.mark.parametrize("widen", [0, 0.25, 10])
def test_whatever_is_chosen_makes_bounds(ends, widen, seam):
    """Any two candidates, in any order: bounds within the ends, the lower one first, that every family takes that could have these ends."""
    for whole in (False, True) if ends[1] > 1 else (False,):
        lower, upper = (np.floor(ends[0]), ends[1]) if whole else ends
        logarithmic = lower > 0 and upper > 10 * lower
        grid = np.geomspace(lower, upper, 15) if logarithmic else np.linspace(lower, upper, 15)
        grid[[0, -1]] = lower, upper
        grid = np.unique(np.rint(grid)) if whole else grid
        column = Column("x", "x", grid, logarithmic, whole, (0,), RecordPath(None), None)
        for low, high in itertools.product(range(len(grid)), repeat=2):
            found = column.between(low, high, widen)
            assert grid[0] <= found[0] < found[1] <= grid[-1]
            assert found[0] <= grid[min(low, high)] + 1e-9
            assert found[1] >= grid[max(low, high)] - 1e-9
            assert not whole or all(type(end) is int for end in found)
            kinds = {"integer"} if whole and lower >= 0 else {"real"} | ({"positive"} if lower > 0 else set())
            kinds |= {"unit"} if 0 < lower < upper < 1 else set()
            for family in all_families():
                if family.BOUNDS in kinds:
                    check_bounds(family, "x", found)


def test_columns_and_vectors_get_pairs_of_their_own(seam):
    rows = np.random.default_rng(0).normal(size=(50, 4))
    model, _ = routes.build(routes.multivariate, rows)
    chosen = pmdp.private_bounds(model, names="Y", within={"Y": [(-9, 9), (1, 50)]}, epsilon=1.0)
    (_, first), (second, _) = chosen["Y"]
    assert first < 9
    assert second >= 1
    released = pmdp.release(model, epsilon=1.0, bounds=chosen)
    assert released["Y"].variable == "Y"


def test_the_result_is_bounds_and_others_stay(seam):
    model, _ = routes.build(routes.linear, routes.records(40))
    chosen = pmdp.private_bounds(model, names=["x"], within={"x": (-50, 50)}, epsilon=1.0, bounds={"z": (-1, 2)})
    assert set(chosen) == {"z", "x"}
    assert chosen["z"] == (-1, 2)
    assert chosen.chosen == ("x",)
    assert "values at a bound are taken for what they are" in flat(chosen)
    assert "epsilon 1 was spent on x" in chosen._repr_html_()
    with pytest.raises(AttributeError):
        chosen.cost = None
    assert pmdp.release(model, epsilon=1.0, bounds={**chosen, "z": (-2, 2)})["x"].structure == "linear"


@pytest.mark.parametrize(("widen", "y", "x"), [(None, 0.25, 1.0), (0.5, 0.5, 0.5)])
def test_bounds_of_a_regression_are_moved_further_apart(widen, y, x, monkeypatch):
    """Of [-100, 140] the candidates -10 and 50 are chosen, which are 60 apart."""
    places = itertools.cycle((0.375, 0.625))
    monkeypatch.setattr(mechanisms, "_opendp_choice", lambda found, scale: round((len(found) - 1) * next(places)))
    rows = np.ones((30, 4))
    with pm.Model() as plain:
        pm.Normal("y", pm.Normal("mu"), pm.HalfNormal("sd"), observed=rows[:, 0])
    model, _ = routes.build(routes.linear, rows)
    given = {"epsilon": 1.0, "candidates": 401, "widen": widen}
    chosen = pmdp.private_bounds(plain, names="y", within={"y": (-100, 140)}, **given)["y"]
    assert chosen == pytest.approx((-10 - y * 60, 50 + y * 60))
    for ends in pmdp.private_bounds(model, names=["x", "z"], within={"x": (-100, 140), "z": (-100, 140)}, **given).values():
        assert ends == pytest.approx((-10 - x * 60, 50 + x * 60))


def test_models_that_can_only_be_drawn_from_get_bounds_too(seam):
    with pm.Model() as model:
        pm.StudentT("y", nu=3, mu=pm.Uniform("m", -9, 9), sigma=1.0, observed=routes.data("ys", np.linspace(-3, 3, 60)))
    chosen = pmdp.private_bounds(model, names="y", within={"y": (-90, 90)}, epsilon=5.0)
    assert "values at a bound are taken for what they are" in flat(chosen)
    seam.share = 0.3
    drawn = pmdp.sample(model=model, epsilon=5.0, bounds=chosen, mechanism=pmdp.PosteriorSample(points=21))
    assert drawn.posterior["m"].shape == (1, 1)
    with pm.Model() as model:
        m = pm.Uniform("m", -9, 9)
        pm.Normal("y", m, 1.0, observed=np.zeros(9))
        pm.Potential("more", (pm.Data("z", np.ones(9)) * m).sum())
    with pytest.raises(pmdp.Refusal):
        pmdp.private_bounds(model, names="y", within={"y": (-90, 90)}, epsilon=5.0)


def test_where_nobody_says_how_wide_to_look_the_priors_do(seam):
    values = np.exp(np.random.default_rng(0).normal(8, 1, 300))
    chosen = pmdp.private_bounds(incomes(values), names="income", epsilon=1.0)
    assert any("which is what the priors expect" in note for note in chosen.notes)
    with pm.Model() as vague:
        pm.Normal("y", pm.Normal("mu", 0, 1e9), pm.HalfNormal("sd", 1), observed=values)
    with pytest.raises(pmdp.Refusal, match=r"too far apart. Write within=\{'y'"):
        pmdp.private_bounds(vague, names="y", epsilon=1.0)
    model, _ = routes.build(routes.linear, routes.records())
    with pytest.raises(pmdp.Refusal, match=r"Nothing public says between which values z lies. Write within=\{'z'"):
        pmdp.private_bounds(model, names="z", epsilon=1.0, bounds={"x": (-2, 3)})


WRONG = [
    ({"names": ()}, "names must be names"), ({"names": 3}, "names must be names"), ({"names": ["income", "income"]}, "names must be names"),
    ({"names": "wages", "within": {"wages": (1, 2)}}, "Write one of 'income'"), ({"within": (1, 2)}, "within says pairs by name"),
    ({"within": {"income": (1, 9), "age": (1, 2)}}, "not among names"), ({"within": {"income": 3}}, "pair of numbers"),
    ({"within": {"income": (0, 9)}}, "positive"), ({"within": {"income": (1, np.nextafter(1, 2))}}, "too close"),
    ({"bounds": {"income": (1, 9)}}, "given already"), ({"bounds": 3}, "bounds says pairs"), ({"quantiles": 0.5}, "two numbers"),
    ({"quantiles": (0.9, 0.1)}, "lower one first"), ({"quantiles": (1e-9, 0.5)}, "six decimals"), ({"quantiles": (0.1, 0.5, 0.9)}, "two"),
    ({"widen": -1}, "widen is the share"), ({"candidates": 2}, "from 3 to"), ({"epsilon": 0}, "epsilon must be"),
    ({"epsilon": 1e-18}, "larger epsilon"), ({"neighbours": "none"}, "neighbours"), ({"unit": "individual"}, "are records|totals"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "match"), WRONG)
def test_what_is_wrong_is_refused_before_anything_is_paid(words, match, tmp_path):
    ledger = pmdp.Ledger(tmp_path / "a.ledger", epsilon=3, create=True)
    head = ledger.head
    with pytest.raises(pmdp.Refusal, match=match):
        of_incomes(np.full(30, 9.0), **{"ledger": ledger} | words)
    assert ledger.head == head


def test_private_indices_and_variables_with_limits_need_none():
    model, _ = routes.build(routes.private_integer_index, routes.records())
    with pytest.raises(pmdp.Refusal, match="Leave g out of names"):
        pmdp.private_bounds(model, names="g", within={"g": (0, 2)}, epsilon=1.0)
    model, _ = routes.build(routes.private_cells, routes.records())
    with pytest.raises(pmdp.Refusal, match="Leave y out of names"):
        pmdp.private_bounds(model, names="y", within={"y": (0, 1)}, epsilon=1.0)


def test_columns_are_looked_for_between_their_own_ends(seam):
    """Ends with the labels of the columns in another order were taken by their places."""
    with pm.Model(coords={"feature": ["age", "income"]}) as model:
        X = pm.Data("X", np.ones((9, 2)), dims=("person", "feature"))
        pm.Normal("y", X @ pm.Normal("b", dims="feature"), 1, observed=np.zeros(9))
    ends = pd.DataFrame([(1, 1e6), (1, 100)], index=["income", "age"])
    for within in (ends, np.ma.masked_array(ends, mask=[[False, True], [False, False]])):
        with pytest.raises(pmdp.Refusal, match=r"pairs in a list, in the order of the columns|Some bounds of X are masked"):
            pmdp.private_bounds(model, names="X", within={"X": within}, epsilon=1.0)
    assert len(pmdp.private_bounds(model, names="X", within={"X": ends.to_numpy()[::-1]}, epsilon=1.0)["X"]) == 2
