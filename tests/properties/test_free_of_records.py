"""What is looked at before anything is paid for rests on no record: settings of samplers, names and labels, and the order of words."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from checks import mostly_slow, watched

import pymc_dp as pmdp

pytestmark = [pytest.mark.filterwarnings("ignore")]
SHORT = {"tune": 20, "chains": 1, "cores": 1, "progressbar": False, "random_seed": 1, "compute_convergence_checks": False}
QUICK = {"nuts_sampler": "pymc", "compile_kwargs": {"mode": "FAST_COMPILE"}}


def said_of(model, **words):
    """How sampling was refused or failed, and how many times noise was asked for."""
    with watched(0) as (seam, _, _):
        try:
            pmdp.sample(20, model=model, epsilon=1.0, **SHORT | words)
        except Exception as error:
            return f"{type(error).__name__}: {error}", len(seam.exact)
    return "accepted", len(seam.exact)


# ---------- starts and settings, where an outcome is missing
def test_no_private_index_is_in_a_refusal():
    """PyMC's own density of the missing outcome said: index 71234 is out of bounds."""
    said = []
    for code in (1, 71234):
        g, y = np.array([0, 1, 0, 1, code]), np.array([0.0, 1, 1, 0, np.nan])
        with pm.Model() as model:
            t = pm.Normal("t", 0, 1, shape=2)
            pm.Normal("y", t[pm.Data("g", g)], 1, observed=y)
        said.append(said_of(model, bounds={"y": (0, 1)}, **QUICK))
    assert "71234" not in said[1][0]
    assert said[0] == said[1]


def test_no_refusal_tells_on_which_side_a_private_covariate_lies():
    """Of a threshold in the model, and so as many bits as one asks for."""
    said = []
    for value in (0.6, 0.4):
        x, y = np.array([0.9, 0.8, value, 0.7]), np.array([1.0, 0, np.nan, 2])
        with pm.Model() as model:
            pm.Poisson("y", pm.Exponential("b", 1) * (pm.Data("x", x) - 0.5), observed=y)
        said.append(said_of(model, bounds={"y": (0, 4), "x": {0.6, 1.0}}, **QUICK))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "words",
    [*mostly_slow([{"nuts_sampler": "nutpie"}]), {"var_names": ["y_unobserved"]}, {"var_names": ["l", "y"]}, {"nuts": {"maxdepth": 5}},
     {"nuts": {"step_scale": 0.2}}, {"initvals": {"y_unobserved": 1}}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("neighbours", mostly_slow(["replace", "add_remove"], 0))
def test_no_refusal_tells_whether_a_value_is_missing(words, neighbours):
    """PyMC's y_unobserved is a whole number, which nutpie does not draw, and a name that can be asked for."""
    said = []
    for value in (2.0, np.nan):
        with pm.Model() as model:
            pm.Poisson("y", pm.Exponential("l", 1), observed=np.array([0.0, 1, value, 1]))
        quick = {} if {"nuts", "nuts_sampler"} & set(words) else QUICK
        said.append(said_of(model, bounds={"y": (0, 4)}, neighbours=neighbours, **quick, **words))
    assert said[0] == said[1]


@pytest.mark.slow
def test_the_order_of_problems_does_not_tell_whether_a_value_is_missing():
    """Of a set of names, whose order depends on how many there are."""
    endings = ["released", "noise", "cell", "statistic", "size", "share", "group", "kind", "shared", "table", "level"]
    for one in endings:
        for other in endings:
            said = []
            for value in (1.0, np.nan):
                with pm.Model() as model:
                    p = pm.Exponential("p", 1)
                    for name in dict.fromkeys([one, other]):
                        pm.Deterministic(f"y_{name}", 2 * p)
                    pm.Poisson("y", p, observed=np.array([0.0, 1, value]))
                said.append(repr(pmdp.inspect(model, bounds={"y": (0, 4)})))
            assert said[0] == said[1], (one, other)


def test_problems_come_in_the_order_of_names():
    with pm.Model() as model:
        p = pm.Exponential("p", 1)
        for name in ("y_size", "y_cell", "y_noise", "y_table", "y_level"):
            pm.Deterministic(name, 2 * p)
        pm.Poisson("y", p, observed=np.array([0, 1, 2]))
    problems = pmdp.inspect(model, bounds={"y": (0, 4)}).problems
    assert list(problems) == sorted(problems)
    assert len(problems) == 5


# ---------- names and labels that no tree can hold
def refused_for_nothing(tmp_path, call):
    """Refused, and nothing was charged."""
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=100.0, create=True)
    with pytest.raises(pmdp.Refusal) as refusal:
        call(ledger)
    assert ledger.remaining().epsilon == 100
    return str(refusal.value)


LABELS = {"tuples": ("k", [(1, 2), (3, 4)]), "a MultiIndex": ("k", pd.MultiIndex.from_tuples([(1, 2), (3, 4)])), "a slash": ("k/l", [0, 1])}
DOORS = {
    "draw": pmdp.PosteriorSample(points=5), "gibbs": pmdp.Gibbs(2, points=3), "annealing": pmdp.Annealing(2, points=3),
    "mcmc": pmdp.PosteriorSample(method="mcmc", steps=5, tune=5),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("labels", LABELS)
def test_labels_that_no_tree_can_hold_at_doors_of_draws(labels, door, tmp_path):
    dim, given = LABELS[labels]
    with pm.Model(coords={dim: given}) as model:
        t = pm.Uniform("t", 0.1, 0.9, dims=dim)
        pm.Bernoulli("y", t[pm.Data("g", np.array([0, 1, 1, 0]))], observed=np.array([0, 1, 1, 0]))
    words = refused_for_nothing(tmp_path, lambda ledger: pmdp.sample(model=model, mechanism=DOORS[door], epsilon=2.0, ledger=ledger))
    assert dim in words


OTHER_LABELS = {
    "dates": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)], "intervals": pd.interval_range(0, 2),
    "periods": pd.period_range("2020", periods=2), "mixed": ["a", 1], "None": [None, "a"], "large": [2**70, 1],
    "time zones": pd.date_range("2020", periods=2, tz="UTC"), "bytes": [b"a", b"b"], "complex": [1j, 2], "short": np.array([1, 2], "i1"),
}  # fmt: skip


def labelled(labels, dim="k"):
    with pm.Model(coords={dim: labels}) as model:
        pm.Bernoulli("y", pm.math.sigmoid(pm.Normal("a", dims=dim).sum()), observed=np.array([0, 1, 1]))
    return model


@pytest.mark.parametrize("labels", OTHER_LABELS)
def test_labels_that_some_sampler_cannot_hold(labels, tmp_path):
    model = labelled(OTHER_LABELS[labels])
    refused_for_nothing(tmp_path, lambda ledger: pmdp.sample(20, model=model, epsilon=0.5, ledger=ledger, **SHORT))


HELD = [
    ["a", "b"], [1, 2], [0.5, 1], [True, False], pd.date_range("2020", periods=2), pd.timedelta_range(0, periods=2), np.array(["a", "b"]),
    pd.Categorical(["a", "b"]), [datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1)], np.array([1, 2], "u8"),
]  # fmt: skip


@pytest.mark.parametrize(
    "labels",
    mostly_slow(HELD, 0, 4, 7),
    ids=lambda labels: type(labels).__name__,
)  # fmt: skip
def test_labels_that_are_held(labels):
    model = labelled(labels)
    words, _ = said_of(model, **QUICK)
    assert words == "accepted"


def test_dims_that_no_tree_can_hold(tmp_path):
    model = labelled([0, 1], "k/l")
    refused_for_nothing(tmp_path, lambda ledger: pmdp.sample(20, model=model, epsilon=0.5, ledger=ledger, **SHORT))


def test_a_dim_called_like_one_that_is_made(tmp_path):
    with pm.Model(coords={"b_dim_0": [0, 1]}) as model:
        both = pm.Normal("b", shape=3).sum() + pm.Normal("c", dims="b_dim_0").sum()
        pm.Bernoulli("y", pm.math.sigmoid(both), observed=np.array([0, 1, 1]))
    assert "b_dim_0" in refused_for_nothing(tmp_path, lambda ledger: pmdp.sample(20, model=model, epsilon=0.5, ledger=ledger, **SHORT))


# ---------- words that sampling fails on
WORDS = [{"compile_kwargs": given} for given in (
    {"on_unused_input": "ignore"}, {"profile": True}, {"random_seed": 1}, {"inputs": []}, {"givens": {}}, {"jitter_rvs": 3},
    {"default_initialization_strategy": "x"},
)] + [{"draws": 2**63}, {"draws": 2**63, "nuts_sampler": "pymc"}, {"draws": 10**15}, {"tune": 10**8}]  # fmt: skip


@pytest.mark.parametrize("words", WORDS, ids=str)
def test_words_that_sampling_fails_on(words, tmp_path):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("theta", 2, 2), observed=np.array([0, 1, 1, 0]))
    call = {"draws": 20} | SHORT | words
    refused_for_nothing(tmp_path, lambda ledger: pmdp.sample(model=model, epsilon=0.5, ledger=ledger, **call))


@pytest.mark.parametrize("word", ["draws", "steps", "tune"])
def test_chains_for_ever(word):
    with pytest.raises(pmdp.Refusal, match="an integer from"):
        pmdp.PosteriorSample(method="mcmc", **{word: 10**30})


@pytest.mark.parametrize("kind", [pmdp.ClampedWarning, pmdp.ConvergenceWarning])
def test_where_warnings_are_errors_what_was_paid_for_is_kept(kind):
    ages = 17 + np.clip(np.random.default_rng(3).gamma(2.5, 8.6, 5000), 0, 73)
    with pm.Model() as model:
        pm.Normal("age", pm.Normal("mu", 40, 20), pm.HalfNormal("s", 20), observed=ages)
    with warnings.catch_warnings():
        warnings.simplefilter("error", kind)
        words = SHORT | {"chains": 2, "tune": 1, "compute_convergence_checks": True}
        with pytest.raises(kind) as raised:
            pmdp.sample(120, model=model, epsilon=5.0, bounds={"age": (17, 90)}, **words)
    assert pmdp.Release.from_datatree(raised.value.tree) == raised.value.release
