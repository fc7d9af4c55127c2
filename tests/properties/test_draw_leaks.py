"""What tells neighbours apart where draws come from the posterior itself, or promises more than is done."""

import traceback

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.raise_op import Assert

import pymc_dp as pmdp
from pymc_dp.posterior import grid
from pymc_dp.posterior.price import READING
from pymc_dp.privacy import mechanisms

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(7)
N = 12
Y, X = RNG.normal(size=N), RNG.uniform(0.1, 2.9, size=N)
REAL = 7123.456789


def middle(scores, scale):
    """Stands at the seam: a fixed place whatever the scores, so that all that differs is what should not."""
    return len(scores) // 3


@pytest.fixture(autouse=True)
def seam(monkeypatch):
    monkeypatch.setattr(mechanisms, "_opendp_choice", middle)
    monkeypatch.setattr(grid, "_spread", lambda drawn, *_: drawn)  # behind the seam, and random


def sampled(model, epsilon=1.0, *, neighbours="replace", bounds=None, ledger=None, **how):
    mechanism = pmdp.PosteriorSample(**how)
    return pmdp.sample(model=model, epsilon=epsilon, mechanism=mechanism, bounds=bounds, neighbours=neighbours, ledger=ledger)


def seen(model, **arguments):
    """All that is public by promise: what was spent, how, and of which shape; or an exception in words."""
    try:
        tree = sampled(model, **arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return {**tree.attrs, **tree.privacy.attrs, "shapes": {name: v.shape for name, v in tree.posterior.variables.items()}}


def moved(array, record):
    array = np.array(array)
    array[4] = record
    return array


# ---------- the promise: add_remove, under which the number of records is private
def location(n):
    with pm.Model() as model:
        pm.StudentT("y", nu=3, mu=pm.Uniform("m", -1, 1), sigma=1.0, observed=Y[:n])
    return model, {"bounds": {"y": (-3, 3)}, "points": 21}


def rate(n):
    with pm.Model() as model:
        pm.Poisson("k", pm.Uniform("m", 0.5, 4), observed=np.arange(n) % 4)
    return model, {"bounds": {"k": (0, 5)}, "points": 21}


@pytest.mark.parametrize("make", [location, rate])
def test_whether_there_is_any_record_does_not_show(make):
    """Promised: (epsilon, 0) between one record and none. Without one, a sum over columns fails, which is an error, and paid for."""
    results = []
    for n in (1, 0):
        model, arguments = make(n)
        results.append(seen(model, neighbours="add_remove", **arguments))
    assert results[0] == results[1]
    assert isinstance(results[0], dict)


def scale_by_length(n):
    """The density of a record rests on the number of records, as the length of their dim."""
    with pm.Model(coords={"record": np.arange(n)}) as model:
        sigma = pt.sqrt(1.0 + model.dim_lengths["record"])
        pm.Normal("y", pm.Uniform("m", -1, 1), sigma, observed=Y[:n], dims="record")
    return model


def test_what_a_draw_costs_does_not_tell_the_number_of_records(tmp_path):
    """Promised: costs are decided without records; neighbours' scores differ by what is charged. Range, temperature, charge tell n."""
    results = []
    for n in (N - 1, N):
        ledger = pmdp.Ledger(tmp_path / f"{n}", epsilon=100, create=True, neighbours="add_remove")
        told = seen(scale_by_length(n), epsilon=50.0, neighbours="add_remove", bounds={"y": (-3, 3)}, points=21, ledger=ledger)
        told = (
            told
            if isinstance(told, str)
            else {name: value for name, value in told.items() if name not in ("ledger_head", "privacy_digests")}
        )
        results.append((told, ledger.remaining().epsilon))
    assert results[0] == results[1]


def total_of_all(n):
    with pm.Model(coords={"record": np.arange(n)}) as model:
        m = pm.Uniform("m", -1, 1)
        pm.Deterministic("total", m * model.dim_lengths["record"])
        pm.Normal("y", m, 1.0, observed=Y[:n], dims="record")
    return model


@pytest.mark.parametrize("door", ["draw", "release"])
def test_what_is_computed_from_draws_does_not_tell_the_number_of_records(door):
    """Promised: nothing of the number of records leaves but by the mechanism. total / m is that number, exactly, by either door."""
    ratios = []
    for n in (N - 1, N):
        model = total_of_all(n)
        if door == "draw":
            found = sampled(model, neighbours="add_remove", bounds={"y": (-3, 3)}, points=20).posterior
            ratios.append((found.total / found.m).values.item() if "total" in found else None)
        else:
            private = pmdp.privatize(model, epsilon=1.0, neighbours="add_remove", bounds={"y": (-3, 3)}, noise_aware=False)
            told = pm.draw([private["total"], private["m"]], mode="FAST_COMPILE") if "total" in private.named_vars else [0, 1]
            ratios.append(round(float(told[0] / told[1]), 6))
    assert ratios[0] == ratios[1]


# ---------- the promise: whatever a record holds, nothing fails
def by_computed_index(x):
    """Three rates, looked up by a real number that is rounded down; the bounds end where the table does."""
    with pm.Model() as model:
        t = pm.Uniform("t", -1, 1, shape=3)
        pm.Normal("y", t[pt.floor(pm.Data("x", x)).astype("int64")], 1.0, observed=Y)
    return model, {"bounds": {"x": (0, 3), "y": (-2, 2)}, "points": 5}


def by_power(x):
    """Powers of integers, which fail in NumPy where the exponent is negative; too many levels to be listed."""
    with pm.Model() as model:
        t = pm.Uniform("t", -1, 1)
        pm.Normal("y", t * 2 ** pm.Data("x", x.astype(int)), 1.0, observed=Y)
    return model, {"bounds": {"x": (-5000, 3), "y": (-2, 2)}, "points": 5}


@pytest.mark.parametrize(("make", "record"), [(by_computed_index, 3.5), (by_power, -3.0)])
def test_an_expression_that_fails_for_one_record_does_not_show(make, record):
    """Promised: certified, and pure epsilon. One record decides with certainty whether a draw or an error comes back."""
    results = []
    for value in (1.5, record):
        model, arguments = make(moved(X, value))
        results.append(seen(model, **arguments))
    assert results[0] == results[1]


def test_a_gradient_that_is_no_number_does_not_show(monkeypatch):
    """Promised: private as far as a chain has converged. A covariate at 0 makes the gradient of sqrt(m x) 0 / 0, the density being finite:
    no chain starts, or moves, which tells it with certainty. The gradient that a chain is given is 0 instead."""
    found = []

    def start(*_, **__):
        model = pm.modelcontext(None)
        found.append(model.compile_dlogp(mode="FAST_COMPILE")({"m_interval__": np.array(0.3)}).item())
        raise ValueError

    monkeypatch.setattr(pm, "sample", start)
    for value in (1.5, 0.0):
        with pm.Model() as model:
            pm.Normal("y", pt.sqrt(pm.Uniform("m", 0.5, 2) * pm.Data("x", moved(X, value))), 1.0, observed=Y)
        seen(model, bounds={"x": (0, 3), "y": (-2, 2)}, method="mcmc", tune=10, steps=5)
    assert np.isfinite(found).all()
    assert len(set(found)) == 2


# ---------- the promise: an exception carries no record, and comes before anything is spent or not at all
def named_like_a_dim():
    pm.Normal("y", pm.Uniform("draw", -1, 1), 1.0, observed=moved(Y, REAL))


def checked():
    t = pm.Uniform("t", -1, 1)
    pm.Deterministic("checked", Assert("t is too small")(t, t > 2))
    pm.Normal("y", t, 1.0, observed=moved(Y, REAL))


def records_in(value):
    """Whether an object, or what it holds, is a model that observes the canary."""
    models = [value, getattr(value, "model", None), getattr(getattr(value, "__dict__", {}).get("task"), "model", None)]
    values = [one.rvs_to_values[rv] for one in models if isinstance(one, pm.Model) for rv in one.observed_RVs]
    return any(REAL in one.data for one in values)


@pytest.mark.parametrize("body", [named_like_a_dim, checked])
def test_what_fails_behind_the_wall_carries_no_record(body, tmp_path):
    """Promised: no frame of ours in which a record is, and refusals before anything is spent. The tree is made outside the wall, with
    the user's model in hand, after the charge."""
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=1, create=True)
    with pm.Model() as model:
        body()
    if body is checked:  # of what was drawn: the draws are paid for, and come back without it
        assert set(sampled(model, bounds={"y": (-2, 2)}, points=20, ledger=ledger).posterior.data_vars) == {"t"}
        return
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is not promised
        sampled(model, bounds={"y": (-2, 2)}, points=20, ledger=ledger)
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)][2:]
    values = [(frame.f_code.co_name, *item) for frame in frames for item in frame.f_locals.items()]
    assert [(where, k) for where, k, value in values if k not in {"model", "args", "kwargs"} and records_in(value)] == []
    assert caught.type is not pmdp.Refusal or ledger.remaining().epsilon == 1


# ---------- the promise: what a draw by a Markov chain is said to be
def test_a_chain_has_more_randomness_than_can_be_tried_out(monkeypatch):
    """Promised: a draw within the total variation distance d of the posterior, by a generator seeded by the operating system. Nutpie
    makes all chains from one number below 2^30: who knows the other records could run each, and see which data set gives the very draw.
    PyMC's own sampler hands every chain a generator spawned from the one it is given."""
    given = []

    def kept(*_, **how):
        given.append(how)
        raise ValueError

    monkeypatch.setattr(pm, "sample", kept)
    model, arguments = location(N)
    seen(model, bounds=arguments["bounds"], method="mcmc", tune=10, steps=5)
    (how,) = given
    assert how["nuts_sampler"] == "pymc"
    assert how["random_seed"].bit_generator.seed_seq.entropy > 2**90


def test_several_chains_are_promised_no_more_than_they_keep():
    """Promised, of however many draws: delta grows by (1 + e^epsilon) d, if every draw lies within d. Ten draws from posteriors that are
    alike, each off by d in a direction of its own for either data set, differ by up to ten times that."""
    many, d, epsilon = 10, 0.1, 0.01
    outcomes = np.array(list(np.ndindex((2,) * many))).sum(axis=1)
    first, second = ((0.5 + s * d) ** outcomes * (0.5 - s * d) ** (many - outcomes) for s in (1, -1))
    delta = np.maximum(first - np.exp(epsilon) * second, 0).sum()
    formula = READING.split("-differential")[0]
    claimed = (1 + np.exp(epsilon)) * d * (many if "draws" in formula or "k d" in formula else 1)
    assert delta <= claimed


def test_a_chain_starts_whatever_the_number_of_records(monkeypatch):
    """Promised: under add_remove nothing of the number of records. Where bounds need no reference, an array of length 1 stands in
    and is not broadcast: one record gives a draw, two give an error, after the charge."""
    found = []

    def start(*_, **__):
        model = pm.modelcontext(None)
        found.append(model.compile_logp(mode="FAST_COMPILE")(model.initial_point()))
        raise ValueError

    monkeypatch.setattr(pm, "sample", start)
    for n in (1, 2):
        with pm.Model() as model:
            pm.Normal("y", pm.Uniform("m", -1, 1) * pm.Data("x", X[:n]), 1.0, observed=Y[:n])
        seen(model, neighbours="add_remove", bounds={"x": (-2, 2), "y": (-2, 2)}, method="mcmc", tune=5, steps=5)
    assert len(found) == 2
