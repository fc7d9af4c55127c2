"""Observed variables of disjoint people: each has all of epsilon, one record never moves more than that, and nobody is told otherwise."""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import flat, refused, seam_of

import pymc_dp as pmdp
from pymc_dp.plans.protection import protection_of
from pymc_dp.privacy.accounting import Cost, protected, shares
from pymc_dp.privacy.receipts import Draw, Receipt, adds_up_to
from pymc_dp.releases.from_records import prepared

ARMS = ("treated", "control")
EPSILON = Fraction(1, 2)


# ---------- models of two arms, and what a record of one arm can say


def coins(data):
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=2)
        for k, arm in enumerate(ARMS):
            pm.Bernoulli(arm, p[k], observed=data[arm][:, 0].astype(int))
    return model, {}


def numbers(data):
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu", 0, 1, shape=2), pm.HalfNormal("sigma", 1)
        for k, arm in enumerate(ARMS):
            pm.Normal(arm, mu[k], sigma, observed=data[arm][:, 0])
    return model, {"bounds": dict.fromkeys(ARMS, (-1, 1))}


def private_cells(data):
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=(2, 2))
        for k, arm in enumerate(ARMS):
            clinic = pm.Data(f"{arm}_clinic", data[arm][:, 1].astype(int))
            pm.Bernoulli(arm, p[k][clinic], observed=data[arm][:, 0].astype(int))
    return model, {}


def slopes(data):
    with pm.Model() as model:
        beta, sigma = pm.Normal("beta", 0, 1, shape=2), pm.HalfNormal("sigma", 1)
        for k, arm in enumerate(ARMS):
            x = pm.Data(f"{arm}_x", data[arm][:, 1])
            pm.Normal(arm, beta[k] * x, sigma, observed=data[arm][:, 0])
    return model, {"bounds": {name: (-1, 1) for arm in ARMS for name in (arm, f"{arm}_x")}}


def left_out(data):
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=2)
        for k, arm in enumerate(ARMS):
            values = data[arm][:, 0]
            pm.Bernoulli(arm, p[k], observed=np.ma.masked_array(np.nan_to_num(values).astype(int), np.isnan(values)))
    return model, {"missing": list(ARMS)}


FAR, THIRD = 1.0, -1 / 3
CASES = {
    "coins": (coins, [((0, 0), (1, 0)), ((1, 0), (1, 0))]),
    "numbers": (numbers, [((1, 0), (-0.5, 0)), ((-1, 0), (1, 0))]),
    "private cells": (private_cells, [((1, 0), (0, 1)), ((0, 0), (1, 0))]),
    "slopes": (slopes, [((FAR, FAR), (THIRD, THIRD)), ((FAR, FAR), (-FAR, FAR))]),
    "left out": (left_out, [((1, 0), (0, 0)), ((1, 0), (np.nan, 0))]),
}
"""Of every model, pairs of records, (value, covariate), that are as far apart as any; or nearer."""
NOISES = {"laplace": {}, "gaussian": {"mechanism": "gaussian", "delta": 1e-6}}


def trial(record):
    """Records of both arms, the second shorter."""
    return {arm: np.array([record] * n, dtype=float) for arm, n in zip(ARMS, (3, 2), strict=True)}


def with_one(data, arm, record, neighbours):
    """A record in the place of another, or one more."""
    return data | {arm: np.vstack([[record], data[arm][1:] if neighbours == "replace" else data[arm]])}


def exactly(make, data, neighbours, **named):
    """The exact integers of every draw, their scales, and what was released."""
    model, arguments = make(data)
    with seam_of(0) as seam:
        released = pmdp.release(model, epsilon=EPSILON, neighbours=neighbours, **{"missing": {}} | arguments | named)
    return [np.array(exact) for exact in seam.exact], [Fraction(scale) for scale in seam.scales], released


def lost(first, second, scales, noise):
    """The exact loss between two data sets: of pure epsilon, or of rho."""
    moved = [[abs(int(x) - int(y)) for x, y in zip(a, b, strict=True)] for a, b in zip(first, second, strict=True)]
    if noise == "laplace":
        return sum((sum(m) / scale for m, scale in zip(moved, scales, strict=True)), Fraction(0))
    return sum((sum(x**2 for x in m) / (2 * scale**2) for m, scale in zip(moved, scales, strict=True)), Fraction(0))


@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("case", CASES)
def test_a_record_of_one_arm_moves_no_more_than_is_paid_for_and_attains_it(case, neighbours, noise):
    make, pairs = CASES[case]
    most, in_both, named = Fraction(0), Fraction(0), {"disjoint": ARMS, **NOISES[noise]}
    for record, another in pairs:
        data = trial(record)
        exact, scales, released = exactly(make, data, neighbours, **named)
        neighbour = {arm: with_one(data, arm, another, neighbours) for arm in ARMS}
        most = max(most, *(lost(exact, exactly(make, neighbour[arm], neighbours, **named)[0], scales, noise) for arm in ARMS))
        everywhere = with_one(neighbour["treated"], "control", another, neighbours)
        in_both = max(in_both, lost(exact, exactly(make, everywhere, neighbours, **named)[0], scales, noise))
    paid = released.cost.epsilon if noise == "laplace" else released.cost.rho
    assert Fraction(98, 100) * paid < most <= paid
    assert in_both > paid * Fraction(19, 10), "a person in both arms would lose twice as much: the claim matters"


# ---------- what is charged, and what is said


def two_arms(n=(100, 80)):
    return coins({arm: np.arange(2 * k).reshape(k, 2) // 2 % 2 for arm, k in zip(ARMS, n, strict=True)})[0]


def test_noise_of_two_arms_is_half_as_wide_and_the_whole_costs_as_much(tmp_path):
    model = two_arms()
    ledger = pmdp.Ledger(tmp_path / "trial.ledger", epsilon=1.0, create=True)
    apart = pmdp.release(model, epsilon=0.5, disjoint=ARMS, ledger=ledger, missing={})
    shared = pmdp.release(model, epsilon=0.5, ledger=ledger, missing={})
    assert [statistic.scale for statistic in apart.statistics] == [2.0, 2.0]
    assert [statistic.scale for statistic in shared.statistics] == [4.0, 4.0]
    assert apart.cost == shared.cost == Cost(EPSILON)
    assert [statistic.cost for statistic in apart.statistics] == [Cost(EPSILON)] * 2
    assert ledger.remaining().epsilon == 0
    assert ledger.entries()["disjoint"].tolist() == ["", "treated | control", ""]


def test_every_summary_repeats_the_claim_as_the_users(tmp_path):
    model = two_arms()
    claim = "one row, in only one of treated, control, which you say hold different people"
    inspected = flat(pmdp.inspect(model, disjoint=True))
    assert claim in inspected
    assert "all of it to each of treated, control, in parallel" in inspected
    assert "of treated, control it is in only one, as you say" in inspected
    released = pmdp.release(model, epsilon=0.5, disjoint=True, missing={})
    assert claim in flat(released)
    assert flat(released).count("epsilon 0.5 in parallel") == 2
    options = {"tune": 2, "chains": 1, "progressbar": False, "compute_convergence_checks": False}
    tree = pmdp.sample(2, model=model, epsilon=0.5, disjoint=True, missing={}, **options)
    assert tree.attrs["protects"] == claim
    assert tree.attrs["epsilon"] == 0.5
    assert tree["privacy"]["epsilon"].values.tolist() == [0.5, 0.5]
    assert tree["privacy"]["parallel"].values.tolist() == ["treated, control"] * 2
    assert json.loads(tree["privacy"].attrs["disjoint"]) == [list(ARMS)]
    assert pmdp.Release.from_datatree(pmdp.to_share(tree)).disjoint == (ARMS,)
    released.to_netcdf(tmp_path / "trial.release")
    again = pmdp.Release.from_netcdf(tmp_path / "trial.release")
    assert again == released
    assert again.disjoint == (ARMS,)


def test_what_was_written_before_there_were_disjoint_variables_is_read():
    released = pmdp.release(two_arms(), epsilon=0.5, missing={})
    tree = released.to_datatree()
    facts = json.loads(tree.attrs["release"])
    del facts["disjoint"]
    tree.attrs["release"] = json.dumps(facts | {"format": 5})
    assert pmdp.Release.from_datatree(tree) == released
    for other, writer, words in [
        (4, "0.0.9", f"format 4, of pymc_dp 0.0.9, and pymc_dp {pmdp.__version__} reads formats 5 to 7. Install pymc_dp 0.0.9 to read it."),
        (8, "1.0rc1", "Install pymc_dp 1.0rc1 or later to read it."),
        (8, "1; rm -rf", "Write it again"),
        ("8", "1.0", "Write it again"),
        (6.5, "1.0", "Write it again"),
    ]:
        tree.attrs["release"] = json.dumps(facts | {"format": other, "versions": {"pymc_dp": writer}})
        said = refused(pmdp.Release.from_datatree, tree)
        assert "not a release that this version can read" in said
        assert words in said


def test_words_of_what_is_protected():
    assert protected("patient", [("a", "b"), ("c", "d")]) == (
        'one row, which you say is one "patient", in only one of a, b and in only one of c, d, which you say hold different people'
    )


# ---------- how costs add up


def test_a_group_has_one_share_and_its_members_one_weight():
    groups = [("a", "b"), ("c", "d")]
    assert set(shares("abcde", disjoint=groups).values()) == {Fraction(1, 3)}
    weighted = shares("abcde", {"a": 2, "b": 2, "c": 1, "d": 1, "e": 5}, groups)
    assert [weighted[name] for name in "abcde"] == [Fraction(k, 8) for k in (2, 2, 1, 1, 5)]
    assert "one weight" in refused(shares, "abc", {"a": 2, "b": 1, "c": 1}, [("a", "b")])


def draw(name, epsilon, disjoint=(), mechanism="laplace"):
    return Draw(name, mechanism, 1, 1, float(1 / epsilon), 1, disjoint)


def test_disjoint_draws_cost_the_largest_and_all_others_their_sum():
    one, half, quarter, ab, cd = Fraction(1), Fraction(1, 2), Fraction(1, 4), ("a", "b"), ("c", "d")
    assert adds_up_to([draw("a", one, ab), draw("b", half, ab)])[0] == 1
    assert adds_up_to([draw("a", half, ab), draw("b", quarter, ab), draw("b", half, ab)])[0] == Fraction(3, 4), "rounds of b add up"
    assert adds_up_to([draw("a", half, ab), draw("b", quarter, ab), draw("e", quarter)])[0] == Fraction(3, 4)
    assert adds_up_to([draw("a", half, ab), draw("b", half, ab), draw("c", quarter, cd), draw("d", quarter, cd)])[0] == Fraction(3, 4)
    gaussian = [draw("a", one, ab, "gaussian"), draw("b", half, ab, "gaussian")]
    assert adds_up_to(gaussian) == (None, half)
    assert adds_up_to([draw("a", one), draw("b", half)]) == (Fraction(3, 2), half + Fraction(1, 8))
    Receipt([draw("a", half, ab), draw("b", half, ab)], Cost(half))
    assert "cost more" in refused(Receipt, [draw("a", half, ab), draw("b", half, ab), draw("c", quarter)], Cost(half))
    assert "one of the disjoint ones" in refused(draw, "c", half, ab)


# ---------- what cannot be disjoint


def paired():
    with pm.Model(coords={"patient": range(4)}) as model:
        p = pm.Beta("p", 1, 1, shape=2)
        pm.Bernoulli("treated", p[0], observed=[0, 1, 0, 1], dims="patient")
        pm.Bernoulli("control", p[1], observed=[0, 1, 1, 1], dims="patient")
    return model, {}


def above_each_other():
    with pm.Model() as model:
        p, q = pm.Beta("p", 1, 1), pm.Beta("q", 1, 1, shape=2)
        treated = pm.Bernoulli("treated", p, observed=[0, 1, 0, 1])
        pm.Bernoulli("control", q[treated], observed=[0, 1, 1, 1])
    return model, {}


def one_array():
    with pm.Model() as model:
        p, values = pm.Beta("p", 1, 1, shape=2), pm.Data("values", [0, 1, 0, 1])
        pm.Bernoulli("treated", p[0], observed=values)
        pm.Bernoulli("control", p[1], observed=values)
    return model, {}


def one_covariate():
    with pm.Model() as model:
        p, clinic = pm.Beta("p", 1, 1, shape=(2, 2)), pm.Data("clinic", [0, 1, 0, 1])
        pm.Bernoulli("treated", p[0][clinic], observed=[0, 1, 0, 1])
        pm.Bernoulli("control", p[1][clinic], observed=[0, 1, 1, 1])
    return model, {}


def views(first, second):
    """Parts of the memory of one array."""
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=(2, 2))
        several = np.array([0, 1, 0, 1, 1, 1, 0, 0])
        for k, (arm, part) in enumerate(zip(ARMS, (first, second), strict=True)):
            pm.Bernoulli(arm, p[k][pt.as_tensor(several[part])], observed=[0, 1, 0, 1])
    return model, {}


def views_in_turns():
    return views(slice(None, None, 2), slice(1, None, 2))


def through_a_third():
    with pm.Model() as model:
        p, q = pm.Beta("p", 1, 1, shape=2), pm.Beta("q", 1, 1, shape=(2, 2))
        treated = pm.Bernoulli("treated", p[0], observed=[0, 1, 0, 1])
        control = pm.Bernoulli("control", p[1], observed=[0, 1, 1, 1])
        pm.Bernoulli("third", q[treated, control], observed=[1, 1, 0, 0])
    return model, {}


def covariates_of_one_dim():
    with pm.Model(coords={"patient": range(4)}) as model:
        p = pm.Beta("p", 1, 1, shape=(2, 2))
        for k, arm in enumerate(ARMS):
            clinic = pm.Data(f"{arm}_clinic", [0, 1, 0, 1], dims="patient")
            pm.Bernoulli(arm, p[k][clinic], observed=[0, 1, 0, 1])
    return model, {}


def along_patients(arrange):
    """Numbers of 40 patients, of whom every one is in both arms: something above or behind them says so."""

    def make():
        with pm.Model(coords={"patient": range(40)}) as model:
            public = arrange(*np.random.default_rng(0).normal(size=(3, 40)))
        return model, {"bounds": dict.fromkeys(ARMS, (-3, 3)), "missing": {}} | ({"public": public} if public else {})

    make.__name__ = arrange.__name__
    return make


@along_patients
def values_of_one_dim(first, second, x):
    for arm, values in zip(ARMS, (first, second), strict=True):
        pm.Normal(arm, pm.Normal(f"mu_{arm}"), 1, observed=pm.Data(f"{arm}_values", values, dims="patient"))


@along_patients
def a_mean_of_the_others_dim(first, second, x):
    mu = pm.Deterministic("mu", pm.Normal("a") + pt.zeros(40), dims="patient")
    pm.Normal("treated", mu, 1, observed=first)
    pm.Normal("control", pm.Normal("b"), 1, observed=second, dims="patient")


@along_patients
def a_public_covariate_of_both(first, second, x):
    covariate = pm.Data("x", x)
    for arm, values in zip(ARMS, (first, second), strict=True):
        pm.Normal(arm, pm.Normal(f"b_{arm}") * covariate, 1, observed=values)
    return ["x"]


@along_patients
def a_public_covariate_of_the_others_dim(first, second, x):
    covariate = pm.Data("x", x, dims="patient")
    pm.Normal("treated", pm.Normal("b") * (covariate - covariate.mean()), 1, observed=first)
    pm.Normal("control", pm.Normal("a"), 1, observed=second, dims="patient")
    return ["x"]


@along_patients
def a_public_index_of_both(first, second, x):
    clinic = pm.Data("clinic", np.arange(40) % 4)
    for arm, values in zip(ARMS, (first, second), strict=True):
        pm.Normal(arm, pm.Normal(f"a_{arm}", shape=4)[clinic], 1, observed=values)
    return ["clinic"]


TOGETHER = (
    *(paired, above_each_other, one_covariate, views_in_turns, through_a_third, covariates_of_one_dim, values_of_one_dim),
    *(a_mean_of_the_others_dim, a_public_covariate_of_both, a_public_covariate_of_the_others_dim, a_public_index_of_both),
)


@pytest.mark.parametrize("make", [*TOGETHER, one_array], ids=lambda make: make.__name__)
def test_variables_with_records_in_common_are_not_disjoint(make, exact_seam):
    model, arguments = make()
    for call in (pmdp.inspect, pmdp.release, pmdp.privatize):
        words = {} if call is pmdp.inspect else {"epsilon": 1.0}
        assert "treated and control cannot be disjoint" in str(refused(call, model, disjoint=ARMS, **words, **arguments))
    assert not exact_seam.exact


def test_what_both_arms_share_besides_their_records_says_nothing_of_these():
    """Unknowns with dims, a table of constants, and names of their rows."""
    clinics = np.array([0.5, 1.0, 2.0, 1.5])
    with pm.Model(coords={"clinic": range(4)}) as model:
        effect = pm.Deterministic("effect", pm.Normal("raw", dims="clinic") * pt.as_tensor(clinics), dims="clinic")
        for k, arm in enumerate(ARMS):
            index = pm.Data(f"{arm}_clinic", (np.arange(40) + k) % 4)
            pm.Normal(arm, effect[index], 1, observed=np.linspace(-1, 1, 40))
    public = [f"{arm}_clinic" for arm in ARMS]
    inspected = pmdp.inspect(model, public=[*public, clinics], bounds=dict.fromkeys(ARMS, (-3, 3)), disjoint=True)
    assert not inspected.problems


def test_halves_of_one_array_may_be_disjoint():
    model, _ = views(slice(None, 4), slice(4, None))
    assert pmdp.release(model, epsilon=1.0, disjoint=True, missing={}).disjoint == (ARMS,)


def test_what_may_be_said_of_totals():
    with pm.Model(coords={"town": range(3)}) as model:
        rate = pm.Gamma("rate", 2, 1, shape=2)
        pm.Poisson("treated", rate[0], observed=[3, 4, 5], dims="town")
        pm.Poisson("control", rate[1], observed=[2, 4, 1], dims="town")
    released = pmdp.release(model, epsilon=1.0, unit=pmdp.Individual(events=2), disjoint=True)
    assert [statistic.scale for statistic in released.statistics] == [4.0, 4.0]


@pytest.mark.parametrize(
    ("disjoint", "words"),
    [
        (["treated"], "disjoint names observed variables"), ("treated", "disjoint names observed variables"),
        (["treated", "treated"], "disjoint names observed variables"), (3, "disjoint names observed variables"),
        ([["treated", "control"], "third"], "disjoint names observed variables"), ([], "disjoint names observed variables"),
        (["treated", "p"], "p, which is not an observed variable"),
        ([["treated", "control"], ["control", "treated"]], "in two groups"),
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused(disjoint, words):
    assert words in refused(pmdp.inspect, two_arms(), disjoint=disjoint)
    assert words in refused(pmdp.release, two_arms(), epsilon=1.0, disjoint=disjoint)


def test_one_variable_alone_is_not_disjoint():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=[0, 1])
    assert "Leave disjoint out" in refused(pmdp.release, model, epsilon=1.0, disjoint=True)


def two_networks():
    with pm.Model() as model:
        p, q = pm.Beta("p", 1, 1, shape=2), pm.Beta("q", 1, 1, shape=(2, 2))
        for k, arm in enumerate(ARMS):
            parent = pm.Bernoulli(arm, p[k], observed=[0, 1, 0, 1])
            pm.Bernoulli(f"{arm}_child", q[k][parent], observed=[0, 1, 1, 1])
    return model


@pytest.mark.parametrize(
    "mechanism",
    ["fourier", pmdp.Laplace(share_counts=True), pmdp.Gaussian(1e-6, share_counts=True)],
    ids=["fourier", "shared", "shared, gaussian"],
)
def test_what_is_released_together_is_not_disjoint(mechanism):
    assert "each released by themselves" in refused(pmdp.release, two_networks(), epsilon=1.0, mechanism=mechanism, disjoint=ARMS)


def test_two_networks_of_different_people():
    groups = [ARMS, [f"{arm}_child" for arm in ARMS]]
    released = pmdp.release(two_networks(), epsilon=1.0, disjoint=groups, missing={})
    assert {statistic.cost.epsilon for statistic in released.statistics} == {EPSILON}
    inspected = pmdp.inspect(two_networks(), disjoint=groups)
    for family in inspected.families:
        scale = released[family.node.variable].scale
        assert family.laplace == pytest.approx(2**0.5 * scale)
    assert all("fourier" not in row.mechanisms for row in inspected.rows)


@pytest.mark.parametrize(
    "mechanism", [pmdp.PosteriorSample(), pmdp.Gibbs(sweeps=2), pmdp.Annealing(rungs=2)], ids=["sample", "gibbs", "annealing"]
)
def test_draws_from_the_posterior_know_no_disjoint_variables(mechanism):
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=2)
        for k, arm in enumerate(ARMS):
            pm.Bernoulli(arm, p[k], observed=[0, 1, 0])
    assert "Leave disjoint out" in refused(pmdp.sample, model=model, epsilon=1.0, mechanism=mechanism, disjoint=ARMS)


def test_counts_of_different_people_are_no_table_of_a_session(tmp_path):
    released = pmdp.release(two_arms(), epsilon=1.0, disjoint=True, missing={})
    frame = pd.DataFrame({arm: [0, 1] for arm in ARMS})
    session = pmdp.QuerySession(frame, dict.fromkeys(ARMS, (0, 1)), epsilon=1.0)
    assert "no columns of one table" in refused(session.add, released)


# ---------- seen from outside


def arms_of(treated, control):
    return coins({arm: np.array([[value, 0], [0, 0]]) for arm, value in zip(ARMS, (treated, control), strict=True)})[0]


def released_counts(ready):
    """Read once, paid for and drawn again and again."""
    return [int(statistic.noisy.item()) for statistic in ready.draw().statistics]


def audited(neighbour, n):
    protection = protection_of(disjoint=ARMS, missing={})
    pair = [prepared(arms_of(*values), protection, epsilon=2.0) for values in ((0, 0), neighbour)]
    return pmdp.audit(released_counts, *pair, epsilon=2.0, n=n, random_seed=1, progressbar=False)


@pytest.mark.parametrize("neighbour", [(1, 0), (0, 1)])
def test_an_audit_of_two_arms_finds_no_more_than_was_paid(neighbour):
    audit = audited(neighbour, 1_000)
    assert audit.passed
    assert audit.lower > 1.0, "the audit has teeth"


@pytest.mark.slow
def test_an_audit_sees_a_person_who_is_in_both_arms():
    assert not audited((1, 1), 4_000).passed


WORDS = {"disjoint": {"disjoint": ["x", "y"]}, "people": {"unit": pmdp.Person(np.arange(0), at_most=2, name="who")}}
CUTS = {"one": lambda table: (table[:, 0], table[:, 0]), "columns": lambda table: (table[:, 0], table[:, 1])}


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_whether_arrays_share_memory_shows_no_private_number_of_records(cut, words):
    """Arrays without records share none, and views in turns of one record do not overlap."""
    said = set()
    for many in (0, 1, 2, 5):
        left, right = cut(np.zeros((many, 2)))
        with pm.Model() as model:
            pm.Normal("x", pm.Normal("a") * left, 1.0, observed=np.zeros(many))
            pm.Normal("y", pm.Normal("b") * right, 1.0, observed=np.zeros(many))
        bounds = {"x": (-1, 1), "y": (-1, 1), "x:0": (0, 1), "y:0": (0, 1)}
        with pytest.raises(pmdp.Refusal) as refused:
            pmdp.release(model, epsilon=1.0, neighbours="add_remove", bounds=bounds, **words)
        said.add(str(refused.value))
    assert len(said) == 1
