"""Whatever can be known to fail is refused before it is paid for; what is asked from within a call pays by no plan that no longer holds."""

import os
import random
import signal
import subprocess
import sys
import warnings
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
from checks import mostly_slow
from test_ledger import in_child, limited, model, new, pay
from test_sessions import SCHEMA, frame, opened, table_model

import pymc_dp as pmdp
from pymc_dp.releases.prepared import warn_that_nothing_remembers

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.UnaccountedWarning")


@contextmanager
def nothing_is_paid(ledger):
    """Refused, and the ledger is as it was."""
    before = ledger.head
    with pytest.raises(pmdp.Refusal) as refusal:
        yield refusal
    assert ledger.head == before


# ---------- a call from within a call


class Within:
    """Does something once, when it is looked at, and notes what came of it."""

    def __init__(self, act):
        self.act, self.said = act, []

    def __call__(self):
        if self.act is not None:
            act, self.act = self.act, None
            try:
                self.said.append(act())
            except pmdp.Refusal as reason:
                self.said.append(str(reason))


def text_that_acts(act):
    class Text(str):
        def __str__(self):
            act()
            return str.__str__(self)

    return Text("age >= 3")


def number_that_acts(act, value):
    class Number(Fraction):
        def __float__(self):
            act()
            return float(value)

    return Number(value)


def list_that_acts(act, questions):
    class Questions(list):
        def __iter__(self):
            act()
            return list.__iter__(self)

    return Questions(questions)


ENTRANCES = {
    "a text": lambda session, act: session.ask(text_that_acts(act), epsilon=0.635, method="blue"),
    "a text in a list": lambda session, act: session.ask(["age == 5", text_that_acts(act)], epsilon=0.3, method="blue"),
    "a list": lambda session, act: session.ask(list_that_acts(act, ["age >= 3"]), epsilon=0.635, method="blue"),
    "a confidence": lambda session, act: session.ask("age >= 3", None, number_that_acts(act, 0.9), epsilon=0.635, method="blue"),
    "a width": lambda session, act: session.ask("age >= 3", number_that_acts(act, 12), method="blue"),
}


@pytest.mark.parametrize("enter", ENTRANCES.values(), ids=ENTRANCES)
def test_what_is_released_is_charged_when_a_call_is_entered_from_within(enter, tmp_path, exact_seam):
    """The sum of all noise drawn, for the record that is counted in each question, is no more than the ledger says was spent."""
    session = opened(tmp_path)
    act = Within(lambda: session.ask("age >= 2", epsilon=0.3, method="blue"))
    enter(session, act)
    assert len(act.said) == 1
    assert "in the middle of the call that this one was made from" in act.said[0]
    released = sum(1 / Fraction(scale) for scale in exact_seam.scales)
    spent = 2 - session._account.ledger.remaining().epsilon
    assert released <= spent
    assert spent == session.cost
    assert session.ask("age >= 2", epsilon=0.25, method="blue").how == "paid"  # the next call is none from within


def test_a_signal_handler_cannot_ask_between_plan_and_charge(tmp_path, exact_seam):
    session, said = opened(tmp_path, 9), []

    def handler(*_):
        try:
            said.append(session.ask("age >= 2", epsilon=0.3, method="blue"))
        except pmdp.Refusal as reason:
            said.append(reason)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for delay in (0.001, 0.003, 0.01):
            signal.setitimer(signal.ITIMER_REAL, delay)
            session.ask([f"age >= {age}" for age in (1, 2, 3, 4, 5)], epsilon=0.1, method="blue")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert any(isinstance(one, pmdp.Refusal) for one in said)
    asked = 15 + sum(not isinstance(one, pmdp.Refusal) for one in said)
    assert len(exact_seam.scales) == len(session.history) == asked
    assert sum(1 / Fraction(scale) for scale in exact_seam.scales) <= 9 - session._account.ledger.remaining().epsilon == session.cost


def test_every_call_from_within_is_refused_and_looking_is_not(tmp_path, monkeypatch):
    session = opened(tmp_path, 9, complete=True)
    released = pmdp.release(table_model(frame()), epsilon=1, ledger=session._account.ledger)
    session.ask("age >= 1", epsilon=0.5)
    calls = {
        "ask": lambda: session.ask("age >= 1"),
        "price": lambda: session.price("age >= 1", width=3),
        "probability": lambda: session.probability("age >= 1", 3),
        "posterior": session.posterior,
        "add": lambda: session.add(released, {"sex": ["age", "sex"]}, levels={"sex": ["f", "m"]}),
        "observe": lambda: session.observe("seen", "age >= 1", value=1.0),
        "ask_model": lambda: session.ask_model({"p": lambda draw: draw.p}, epsilon=1, model=table_model(frame())),
    }
    said = {}

    def act():
        for name, call in calls.items():
            with pytest.raises(pmdp.Refusal) as refusal:
                call()
            said[name] = str(refusal.value)
        assert len(session.history) == 2
        assert session.cost > 0.5
        assert "QuerySession: 2 questions" in repr(session)

    real = type(session._table).totals
    monkeypatch.setattr(type(session._table), "totals", lambda self, questions: act() or real(self, questions))
    answer = session.ask("sex == 'f'", epsilon=0.5)
    monkeypatch.undo()
    assert list(said) == list(calls)
    assert all("in the middle of the call" in words for words in said.values())
    assert session.ask("sex == 'f'").epsilon == 0
    assert (answer.how, session.cost) == ("paid", 1)
    assert 9 - 1 - session.cost == session.remaining.epsilon


def test_what_is_given_is_looked_at_once(tmp_path):
    """So that what is planned is what was checked, and what is charged."""
    session, looked = opened(tmp_path), []
    session.ask([text_that_acts(lambda: looked.append(1))], number_that_acts(lambda: looked.append(2), 12), method="blue")
    assert looked == [1, 2]


def test_a_ledger_does_not_wait_for_itself(tmp_path, monkeypatch):
    monkeypatch.setattr("pymc_dp.privacy.journal.PATIENCE", 0.5)
    ledger, said = new(tmp_path), []

    class Public(list):
        def __iter__(self):
            with pytest.raises(pmdp.Refusal) as refusal:
                pay(ledger, Fraction(1, 2))
            said.append(str(refusal.value))
            return list.__iter__(self)

    pay(ledger, Fraction(1, 4), public=Public(["x"]))
    assert said
    assert "in use by the call that this one was made from" in said[0]
    assert ledger.remaining().epsilon == Fraction(3, 4)
    pay(ledger, Fraction(3, 4))


# ---------- arguments of pm.sample


class Missing:
    """Packages that are not there."""

    def __init__(self, *names):
        self.names = names

    def __enter__(self):
        self.before = {name: sys.modules.get(name) for name in self.names}
        sys.modules.update(dict.fromkeys(self.names))

    def __exit__(self, *_):
        for name, module in self.before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


def nothing(*_, **__):
    return None


IMPOSSIBLE = {
    "no jax, numpyro": {"nuts_sampler": "numpyro"},
    "no jax, blackjax": {"nuts_sampler": "blackjax"},
    "an unknown sampler": {"nuts_sampler": "stan"},
    "no name of a sampler": {"nuts_sampler": 3},
    "no jax for the backend": {"backend": "jax"},
    "an unknown backend": {"backend": "nonsense"},
    "a backend and a mode": {"backend": "c", "compile_kwargs": {"mode": "FAST_COMPILE"}},
    "an unknown mode": {"compile_kwargs": {"mode": "nonsense"}},
    "an unknown word for PyTensor": {"compile_kwargs": {"nonsense": 1}},
    "no dict to compile with": {"compile_kwargs": 3},
    "an unknown way to start processes": {"mp_ctx": "nonsense"},
    "no chains": {"chains": 0},
    "half a chain": {"chains": 1.5},
    "chains as text": {"chains": "2"},
    "a truth value of chains": {"chains": True},
    "negative tuning": {"tune": -1},
    "tuning as text": {"tune": "many"},
    "cores as text": {"cores": "x"},
    "no cores": {"cores": 0},
    "no blas cores": {"blas_cores": "all"},
    "a seed of -1": {"random_seed": -1},
    "a seed below": {"random_seed": -5},
    "a seed as text": {"random_seed": "one"},
    "a legacy seed": {"random_seed": np.random.RandomState(1)},
    "an array of seeds": {"random_seed": np.array([1, 2])},
    "an unknown start": {"init": "nonsense"},
    "a start that is no text": {"init": 3},
    "retries as text": {"jitter_max_retries": "x"},
    "no iterations": {"n_init": 0},
    "an unknown bar": {"progressbar": "nonsense"},
    "a callback that cannot be called": {"callback": 3},
    "a callback of nutpie": {"callback": nothing, "nuts_sampler": "nutpie"},
    "an unknown word for ArviZ": {"idata_kwargs": {"nonsense": 1}},
    "no dict for ArviZ": {"idata_kwargs": [1]},
    "an unknown variable": {"var_names": ["nonsense"]},
    "a variable twice": {"var_names": ["theta", "theta"]},
    "a name instead of a list": {"var_names": "theta"},
    "an observed variable": {"var_names": ["y"]},
    "a start of an unknown variable": {"initvals": {"nonsense": 0.5}},
    "a start by an unknown strategy": {"initvals": {"theta": "nonsense"}},
    "a start of another shape": {"initvals": {"theta": [0.5, 0.5]}},
    "a start that is no dict": {"initvals": 3},
    "a start by variable": {"initvals": {3: 0.5}},
    "starts of other chains": {"initvals": [{"theta": 0.5}], "chains": 2},
    "starts of every chain for nutpie": {"initvals": [{"theta": 0.5}], "chains": 1, "nuts_sampler": "nutpie"},
    "settings that are no dict": {"metropolis": 3},
    "settings of another step": {"slice": {"w": 1}, "nuts_sampler": "nutpie"},
    "settings twice": {"nuts": {}, "nuts_sampler_kwargs": {}},
    "a target twice": {"nuts": {"target_accept": 0.9}, "target_accept": 0.8},
    "a target of 2": {"target_accept": 2},
    "a target as text": {"nuts": {"target_accept": "high"}},
    "an unknown setting": {"nuts": {"nonsense": 1}, "nuts_sampler": "pymc"},
    "a backend among the settings": {"nuts": {"backend": "jax"}},
    "a setting unknown to nutpie": {"nuts": {"nonsense": 1}, "nuts_sampler": "nutpie"},
    "a setting unknown to the sampler PyMC takes": {"nuts": {"nonsense": 1}},
    "a depth as text": {"nuts": {"max_treedepth": "deep"}},
    "a depth below 0": {"nuts": {"maxdepth": -1}},
    "a depth of 0": {"nuts": {"max_treedepth": 0}, "nuts_sampler": "pymc"},
    "an unknown adaptation": {"nuts": {"adaptation": "nonsense"}},
    "draws among the settings": {"nuts": {"draws": 5}, "nuts_sampler": "nutpie"},
    "chains among the settings": {"nuts": {"chains": 5}},
    "a model among the settings": {"nuts": {"model": pm.Model()}, "nuts_sampler": "pymc"},
    "a mass matrix among the settings": {"nuts": {"scaling": np.ones(3)}, "nuts_sampler": "pymc"},
    "a mean to start from": {"nuts": {"init_mean": np.ones(5)}, "nuts_sampler": "nutpie"},
    "no tree from nutpie": {"nuts": {"return_raw_trace": True}, "nuts_sampler": "nutpie"},
    "drawing in the background": {"nuts": {"blocking": False}},
    "settings by number": {"nuts": {3: 1}},
    "settings of nutpie for PyMC": {"nuts": {"maxdepth": 5}, "nuts_sampler": "pymc"},
    "settings of nutpie, a start for PyMC": {"nuts": {"maxdepth": 5}, "init": "adapt_diag"},
    "settings of a step nobody takes": {"metropolis": {"tune_interval": 5}},
    "steps of no size": {"nuts": {"step_scale": 0}, "nuts_sampler": "pymc"},
    "a truth value as a depth": {"nuts": {"max_treedepth": True}, "nuts_sampler": "pymc"},
    "tuning for ever": {"tune": 10**30},
    "coordinates for ArviZ": {"idata_kwargs": {"coords": 3}},
    "a truth value as text": {"idata_kwargs": {"include_transformed": "yes"}},
    "nothing kept": {"var_names": []},
    "the beginning of a name": {"var_names": ["y_noisemaker"]},
    "a start outside the support": {"initvals": {"theta": 3.0}},
    "a start that is not a number": {"initvals": {"theta": np.nan}},
    "a start that is an object": {"initvals": {"theta": object()}},
    "a start outside the support in one chain": {"initvals": [{"theta": 0.5}, {"theta": -1.0}], "chains": 2},
    "a start by transformed name that is infinite": {"initvals": {"theta_logodds__": np.inf}},
    "a step": {"step": object()},
    "a trace": {"trace": object()},
    "no tree": {"return_inferencedata": False},
    "an unknown word": {"nonsense": 1},
}


@pytest.mark.parametrize("arguments", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_sampling_would_fail_on_is_refused_before_it_is_paid_for(arguments, tmp_path):
    ledger = new(tmp_path)
    with Missing("jax", "numpyro", "blackjax"), nothing_is_paid(ledger):
        pmdp.sample(20, model=model(), epsilon=0.5, ledger=ledger, **{"progressbar": False, "chains": 1, "cores": 1} | arguments)


def test_a_model_that_sampling_cannot_draw_is_refused_before_it_is_paid_for(tmp_path):
    ledger = new(tmp_path)
    with pm.Model() as known:
        pm.Bernoulli("y", 0.3, observed=np.arange(20) % 2)
    with nothing_is_paid(ledger) as refusal:
        pmdp.sample(20, model=known, epsilon=0.5, ledger=ledger)
    assert "nothing to draw" in str(refusal.value)
    with pm.Model() as whole:
        pm.Bernoulli("y", pm.math.sigmoid(pm.Poisson("k", 1) - 1.0), observed=np.arange(20) % 2)
    with nothing_is_paid(ledger) as refusal:
        pmdp.sample(20, model=whole, epsilon=0.5, ledger=ledger, nuts_sampler="nutpie")
    assert "k is a whole number" in str(refusal.value)


def test_a_private_model_in_single_precision_is_refused_before_it_is_paid_for(tmp_path):
    """PyMC moves starting points by numbers of PyTensor's precision, and cannot put those in the place of doubles."""
    ledger = new(tmp_path)
    with pytensor.config.change_flags(floatX="float32"):
        with pm.Model() as groups:
            pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=2)[pm.Data("g", np.arange(20) % 2)], observed=np.arange(20) % 2)
        for called in (pmdp.release, pmdp.privatize, pmdp.sample):
            with nothing_is_paid(ledger) as refusal:
                called(model=groups, epsilon=0.5, missing={}, ledger=ledger)
            assert 'floatX = "float64"' in str(refusal.value)


@pytest.mark.parametrize("mechanism", [pmdp.PosteriorSample(points=5), pmdp.PosteriorSample(method="mcmc"), pmdp.Gibbs(2, points=3)])
def test_draws_in_single_precision_are_refused_before_they_are_paid_for(mechanism, tmp_path):
    """A chain was paid for and failed, where PyTensor was set to it after the model was made."""
    ledger = new(tmp_path)
    with pm.Model() as model:
        pm.Normal("y", pm.Uniform("a", -2, 2), 1.0, observed=np.linspace(-1, 1, 20))
    with pytensor.config.change_flags(floatX="float32"), nothing_is_paid(ledger) as refusal:
        pmdp.sample(model=model, epsilon=2, bounds={"y": (-3, 3)}, mechanism=mechanism, missing={}, ledger=ledger)
    assert 'floatX = "float64"' in str(refusal.value)


IMPOSSIBLE_PRIORS = {
    "no width": lambda: pm.Normal("a", 0, -1),
    "no mass": lambda: pm.CustomDist("a", logp=nowhere),
    "cut points that are equal": lambda: pm.Normal("a", 0, 1, shape=3, transform=pm.distributions.transforms.ordered).sum(),
    "a start outside": lambda: pm.Beta("a", 1, 1, initval=3.0),
}


def nowhere(value):
    return value * 0 - np.inf


@pytest.mark.parametrize("sampler", ["nutpie", "pymc", None])
@pytest.mark.parametrize("prior", IMPOSSIBLE_PRIORS.values(), ids=IMPOSSIBLE_PRIORS)
def test_priors_that_no_chain_can_start_in_are_refused_before_paying(prior, sampler, tmp_path):
    ledger = new(tmp_path)
    with pm.Model() as impossible:
        pm.Bernoulli("y", pm.math.sigmoid(prior()), observed=np.arange(20) % 2)
    with nothing_is_paid(ledger) as refusal:
        pmdp.sample(20, model=impossible, epsilon=0.5, ledger=ledger, nuts_sampler=sampler, progressbar=False, chains=1)
    assert "tart" in str(refusal.value)


def test_labels_that_no_tree_can_hold_are_refused_before_paying(tmp_path):
    ledger = new(tmp_path)
    with pm.Model(coords={"group": [("a", 1), ("b", 2)]}) as paired:
        pm.Bernoulli("y", pm.Beta("theta", 1, 1, dims="group")[0], observed=np.arange(20) % 2)
    with nothing_is_paid(ledger) as refusal:
        pmdp.sample(20, model=paired, epsilon=0.5, ledger=ledger)
    assert "labels of dim group cannot be held" in str(refusal.value)


def test_a_model_that_is_refused_is_asked_for_no_density(tmp_path):
    """It might rest on records: here a prior's width does, so that records would show in whether there is a density."""
    words = []
    for width in (-1.0, 1.0):
        (tmp_path / str(width)).mkdir()
        with pm.Model() as leaking:
            x = pm.Data("x", np.full(20, width))
            pm.Bernoulli("y", pm.math.sigmoid(pm.Normal("a", 0, x.mean()) + x), observed=np.arange(20) % 2)
        with pytest.raises(pmdp.Refusal) as refusal:
            pmdp.sample(20, model=leaking, epsilon=0.5, ledger=new(tmp_path / str(width)))
        words.append(str(refusal.value))
    assert words[0] == words[1]


POSSIBLE = {
    "everything left out": {"tune": 20, "chains": 1, "cores": None, "initvals": None, "nuts": None, "var_names": None},
    "everything plain": {
        "chains": np.int64(2), "cores": 1, "tune": 20, "random_seed": [1, 2], "init": "adapt_diag", "var_names": ("theta",),
        "initvals": [{"theta": 0.5}, None], "nuts_sampler": "pymc", "nuts": {"max_treedepth": 5, "target_accept": 0.9},
        "callback": nothing, "idata_kwargs": {"include_transformed": True}, "backend": "numba", "blas_cores": None,
    },
    "nutpie": {
        "nuts_sampler": "nutpie", "nuts": {"maxdepth": 5}, "random_seed": np.random.default_rng(1), "initvals": {"theta": "prior"},
        "chains": 1, "progressbar": "combined",
    },
    "every setting of PyMC": {
        "nuts_sampler": "pymc", "nuts": {"max_treedepth": 5, "step_scale": 0.3, "Emax": 500, "gamma": 0.1, "k": 0.7, "t0": 5}, "chains": 1,
        "init": "adapt_diag",
    },
    "low rank": {
        "nuts": {"adaptation": "low_rank", "target_accept": 0.9, "max_treedepth": 6}, "idata_kwargs": {"include_transformed": True},
    },
    "by transformed name": {"initvals": {"theta_logodds__": 0.0}, "nuts_sampler": "pymc", "chains": 1, "cores": 1},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("arguments", mostly_slow(POSSIBLE.values(), 0, 1, 3, 5), ids=POSSIBLE)
def test_what_sampling_can_do_is_not_refused(arguments, tmp_path):
    ledger = new(tmp_path)
    short = {"tune": 20, "chains": 1, "cores": 1, "progressbar": False, "compute_convergence_checks": False}
    tree = pmdp.sample(20, model=model(), epsilon=0.5, ledger=ledger, **short | arguments)
    assert tree["posterior"].sizes["draw"] == 20


# ---------- the one warning


def warned(call, *, refused=False):
    """The warnings of a call that nothing remembers, in a process that has not said so yet."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if refused:
            with pytest.raises(pmdp.Refusal):
                call()
        else:
            call()
    return [one for one in caught if one.category is pmdp.UnaccountedWarning]


def rates():
    with pm.Model() as model:
        pm.Poisson("k", pm.Gamma("rate", 2, 1), observed=np.arange(30) % 4)
    return model


POINT = {"mechanism": pmdp.PosteriorSample(1), "epsilon": 5.0}
SHORT = {"draws": 20, "tune": 20, "chains": 1, "progressbar": False, "compute_convergence_checks": False}
SPENDING = {
    "release": (lambda **words: pmdp.release(model(), **{"epsilon": 1.0} | words), {"bounds": 3}),
    "privatize": (lambda **words: pmdp.privatize(model(), **{"epsilon": 1.0} | words), {"weights": 3}),
    "sample": (lambda **words: pmdp.sample(model=model(), **SHORT | {"epsilon": 1.0} | words), {"chains": 0}),
    "a draw": (lambda **words: pmdp.sample(model=model(), **POINT | words), {"bounds": 3}),
    "find_MAP": (lambda **words: pmdp.find_MAP(model=model(), **{"epsilon": 1.0} | words), {"bounds": 3}),
    "bounds": (
        lambda **words: pmdp.private_bounds(rates(), **{"names": "k", "within": {"k": (0, 9)}, "epsilon": 1.0} | words),
        {"bounds": 3},
    ),
    "a session": (lambda **words: pmdp.QuerySession(frame(), SCHEMA).ask("age >= 1", **{"epsilon": 1.0} | words), {"epsilon": None}),
    "a question about a model": (
        lambda **words: pmdp.QuerySession(frame(), SCHEMA).ask_model(
            {"p": lambda draw: draw.theta}, **{"epsilon": 5.0, "model": model()} | words
        ),
        {"method": "nonsense"},
    ),
}


@pytest.mark.parametrize(("call", "wrong"), SPENDING.values(), ids=SPENDING)
def test_only_a_call_that_spends_warns_that_nothing_remembers(call, wrong, exact_seam):
    """At the caller's line, once; and where warnings are errors, before any noise is drawn."""
    warn_that_nothing_remembers.cache_clear()
    assert warned(lambda: call(**wrong), refused=True) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error", pmdp.UnaccountedWarning)
        with pytest.raises(pmdp.UnaccountedWarning):
            call()
    assert exact_seam.scales == []
    (one,) = warned(call)
    assert Path(one.filename).name == Path(__file__).name
    assert warned(call) == []


def test_a_question_about_a_model_that_only_warned_is_not_counted():
    session = pmdp.QuerySession(frame(), SCHEMA, epsilon=5)
    warn_that_nothing_remembers.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error", pmdp.UnaccountedWarning)
        with pytest.raises(pmdp.UnaccountedWarning):
            session.ask_model({"p": lambda draw: draw.theta}, epsilon=5, model=model())
    assert session.cost == 0


# ---------- files that are written after paying


def test_a_history_that_cannot_be_written_is_found_out_before_the_charge(tmp_path):
    """Its name leaves no room for that of the file it is built in."""
    session = opened(tmp_path)
    session.ask("age == 1", epsilon=0.25)
    long = tmp_path / ("a" * 250)
    (tmp_path / "asked").rename(long)
    other = pmdp.QuerySession(frame(), SCHEMA, ledger=session._account.ledger, history=long)
    with nothing_is_paid(session._account.ledger) as refusal:
        other.ask("age == 2", epsilon=0.25)
    assert "so the answer would be lost" in str(refusal.value)
    with nothing_is_paid(session._account.ledger):
        other.ask_model({"p": lambda draw: draw.theta}, epsilon=1, model=model())
    assert other.cost == Fraction(1, 4)
    assert other.ask("age == 1").how == "from history"


def test_a_history_without_room_is_found_out_before_the_charge(tmp_path):
    """The ledger has room; the file of the session, which holds a long list of levels, has none."""
    ledger = new(tmp_path)
    session = pmdp.QuerySession(pd.DataFrame({"age": [1, 2, 3]}), {"age": range(40_000)}, ledger=ledger, history=tmp_path / "asked")
    before = ledger.head
    size = (tmp_path / "asked").stat().st_size
    assert size > 4 * ledger.path.stat().st_size
    assert in_child(lambda: limited(lambda: session.ask("age == 1", epsilon=0.25, method="blue"), size - 1)) == 1
    assert ledger.head == before
    assert [path.name for path in tmp_path.glob("*.new")] == []


def test_a_report_that_cannot_be_written_is_found_out_before_the_charge(tmp_path):
    ledger = new(tmp_path, 9)
    with pm.Model() as made:
        pm.StudentT("x", 4, pm.TruncatedNormal("mu", 0, 1, lower=-1, upper=1), sigma=1, observed=np.linspace(-1, 1, 20))
    (tmp_path / "file").write_text("")
    for report in (tmp_path, tmp_path / "file" / "report", tmp_path / ("a" * 250), tmp_path / "none" / "report"):
        with nothing_is_paid(ledger) as refusal:
            drawn = pmdp.PosteriorSample(method="mcmc", report=report, tune=5, steps=5)
            pmdp.sample(model=made, epsilon=1, mechanism=drawn, bounds={"x": (-2, 2)}, ledger=ledger)
        assert "The report cannot be written" in str(refusal.value)


# ---------- damaged files


def damages(whole, step, flips, seed=0):
    """The content cut at every ``step``-th length, and with bytes changed at random."""
    rng = random.Random(seed)
    yield from (whole[:length] for length in range(0, len(whole), step))
    for _ in range(flips):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 1, 1, 4])):
            damaged[rng.randrange(len(damaged))] ^= rng.randrange(1, 256)
        yield bytes(damaged)


AMOUNTS = [pytest.param(211, 150, id="some"), pytest.param(1, 20_000, id="all", marks=pytest.mark.slow)]


@pytest.mark.parametrize(("step", "flips"), AMOUNTS)
def test_a_damaged_ledger_is_refused_or_says_the_same(tmp_path, step, flips):
    ledger = new(tmp_path)
    for _ in range(30):
        ledger.redeem(pay(ledger, Fraction(1, 100)))
    lock = Path(f"{ledger.path}.lock")
    whole, note, refused = ledger.path.read_bytes(), lock.read_bytes(), 0
    for damaged in damages(whole, step, flips):
        ledger.path.write_bytes(damaged)
        lock.write_bytes(note)
        try:
            found = pmdp.Ledger(ledger.path)
            assert (found.remaining().epsilon, len(found.entries())) == (Fraction(7, 10), 31)
            assert len(damaged) == len(whole)
        except pmdp.Refusal:
            refused += 1
    assert refused > len(range(0, len(whole), step))


@pytest.mark.parametrize(("step", "flips"), [pytest.param(5, 100, id="some"), pytest.param(1, 5000, id="all", marks=pytest.mark.slow)])
def test_a_damaged_note_is_refused_or_says_the_same(tmp_path, step, flips):
    """Behind the note stand blanks, which may be cut."""
    ledger = new(tmp_path)
    pay(ledger, Fraction(1, 10))
    lock = Path(f"{ledger.path}.lock")
    note, refused = lock.read_bytes(), 0
    for damaged in damages(note, step, flips):
        lock.write_bytes(damaged)
        try:
            assert pmdp.Ledger(ledger.path).remaining().epsilon == Fraction(9, 10)
        except pmdp.Refusal:
            refused += 1
    assert refused > len(note.rstrip()) // step


@pytest.mark.parametrize(("step", "flips"), [pytest.param(7, 300, id="some"), pytest.param(1, 10_000, id="all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("stored", [True, False])
def test_a_damaged_history_is_refused(tmp_path, step, flips, stored):
    """With a ledger or without one, where nothing else knows what was spent."""
    ledger = new(tmp_path, 9) if stored else None
    path = tmp_path / "asked"
    session = pmdp.QuerySession(frame(), SCHEMA, ledger=ledger, history=path, epsilon=8)
    session.ask(["age == 1", "sex == 'f'"], epsilon=0.25, method="blue")
    session.ask_model({"p": lambda draw: draw.theta}, epsilon=5, model=model())
    whole = path.read_bytes()
    for damaged in damages(whole, step, flips):
        path.write_bytes(damaged)
        try:
            found = pmdp.QuerySession(frame(), SCHEMA, ledger=ledger, history=path, epsilon=8)
            assert (found.cost, found.history.equals(session.history)) == (session.cost, True)  # a blank for another
        except pmdp.Refusal:
            pass
    path.write_bytes(whole)
    assert pmdp.QuerySession(frame(), SCHEMA, ledger=ledger, history=path).cost == session.cost


HOMELESS = """
import pymc as pm
import pymc_dp as pmdp

ledger = pmdp.Ledger("survey.ledger", epsilon=1, create=True)
with pm.Model() as model:
    pm.Bernoulli("y", pm.Beta("theta", 1, 1), observed=[0, 1, 1])
try:
    pmdp.sample(20, tune=20, model=model, epsilon=0.5, missing={}, ledger=ledger, progressbar=False)
except pmdp.Refusal as refusal:
    print(ledger.remaining().epsilon, refusal)
"""


@pytest.mark.slow
def test_a_container_without_a_home_is_told_before_it_pays(tmp_path):
    """PyTensor has nowhere to put what it compiles."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/proc/none", "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", HOMELESS], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("1 PyMC cannot start from here"), done.stderr
    assert "set PYTENSOR_FLAGS=base_compiledir=" in done.stdout


@pytest.mark.parametrize(("step", "flips"), [pytest.param(97, 300, id="some"), pytest.param(1, 5000, id="all", marks=pytest.mark.slow)])
def test_a_damaged_release_is_refused(tmp_path, step, flips):
    """Nothing of it is shown to the netCDF library, which may hang on such files."""
    released, path = pmdp.release(model(), epsilon=1.0), tmp_path / "release.nc"
    released.to_netcdf(path)
    whole = path.read_bytes()
    for damaged in damages(whole, step, flips):
        path.write_bytes(damaged)
        with pytest.raises(pmdp.Refusal, match="holds no release that this version wrote, or it is damaged"):
            pmdp.Release.from_netcdf(path)
    path.write_bytes(whole)
    assert repr(pmdp.Release.from_netcdf(path)) == repr(released)
    assert os.listdir(tmp_path) == ["release.nc"]
    tree = released.to_datatree()
    del tree["0"]["noisy"]
    with pytest.raises(pmdp.Refusal, match="not a release that this version can read"):
        pmdp.Release.from_datatree(tree)


def test_a_history_that_is_a_pipe_is_refused(tmp_path):
    """Opening it would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(pmdp.Refusal, match="gone or cannot be read"):
        pmdp.QuerySession(pd.DataFrame({"age": [1, 2, 3]}), {"age": range(5)}, history=tmp_path / "pipe")
