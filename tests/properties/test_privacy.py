"""Nothing of a record leaves but through noise: canaries, and record/replay around the one place where noise is drawn."""

import asyncio
import copy
import itertools
import logging
import math
import pickle
import tempfile
import traceback
import warnings
from fractions import Fraction
from pathlib import Path

import arviz as az
import cloudpickle
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
from checks import watched
from conftest import COMPILED
from models import COORDS

import pymc_dp as pmdp
from pymc_dp.privacy import mechanisms

# Doubles no computation produces by itself, integers and words nobody else writes.
REAL = 7123.456789012345
INTEGER = 91_827_364_554
WORD = "zz-canary-4711"
NEEDLES = [np.float64(REAL).tobytes(), repr(REAL).encode(), b"7123.45", np.int64(INTEGER).tobytes(), str(INTEGER).encode(), WORD.encode()]


def found_in(blob):
    return [needle for needle in NEEDLES if needle in blob]


def marked_model():
    """A marked record in every place a record can be: observed values, covariates of Deterministics, coords."""
    n = 40
    x, k = np.linspace(0, 1, n), np.arange(n) % 5
    x[17], k[3] = REAL, INTEGER
    with pm.Model(coords=COORDS | {"person": [WORD, *map(str, range(n - 1))]}) as model:
        g = pm.Data("g", np.arange(n) % 3, dims="person")
        hidden = pm.Data("hidden", x, dims="person")
        mu = pm.Normal("mu", 0, 1, dims="group")
        pm.Deterministic("fitted", mu[g] + hidden, dims="person")
        pm.Deterministic("difference", mu[1] - mu[0])
        pm.Normal("x", mu[g], 1.0, observed=x, dims="person")
        pm.Poisson("k", pm.math.exp(mu[0]), observed=k)
    return model, {"public": ["g"], "bounds": {"x": (-1, 2), "k": (0, 9)}}


def marked_covariates():
    """Marked records in features, in private indices and in levels."""
    n = 40
    x, k, g, y = np.linspace(0, 1, n), np.arange(n) % 5, np.arange(n) % 3, np.arange(n) % 2
    x[17], k[3], g[5], y[7] = REAL, INTEGER, INTEGER, INTEGER
    with pm.Model(coords=COORDS) as model:
        beta = pm.Normal("beta", 0, 1, shape=3)
        covariate, index = pm.Data("covariate", x), pm.Data("index", g)
        pm.Normal("x", beta[0] + beta[1] * covariate, 1.0, observed=x[::-1])
        pm.Bernoulli("y", logit_p=beta[1] + beta[2] * covariate, observed=y)
        pm.Poisson("k", pm.math.exp(beta)[index], observed=k)
    return model, {"bounds": {"covariate": (0, 1), "x": (-1, 2), "logit(y)": (-3, 3), "k": (0, 9)}}


def files_under(*folders):
    return [path for folder in folders for path in Path(folder).rglob("*") if path.is_file()]


GAUSSIAN = {"mechanism": "gaussian", "delta": 1e-6}


@pytest.mark.parametrize(
    ("make", "mechanism"),
    [
        (marked_model, {}),
        pytest.param(marked_model, {}, marks=pytest.mark.slow),
        pytest.param(marked_model, GAUSSIAN, marks=pytest.mark.slow),
        pytest.param(marked_covariates, {}, marks=pytest.mark.slow),
        pytest.param(marked_covariates, GAUSSIAN, marks=pytest.mark.slow),
    ],
    ids=["laplace", "laplace-compiled", "gaussian", "laplace-covariates", "gaussian-covariates"],
)
def test_canaries_are_nowhere(make, mechanism, tmp_path, monkeypatch, caplog, capfd):
    """Not in any tree, pickle, page, word, log or file under the home, temporary, working and compile folders, the ledger's included."""
    caplog.set_level(logging.INFO)
    monkeypatch.chdir(tmp_path)
    for folder in ("HOME", "TMPDIR"):
        monkeypatch.setenv(folder, str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    model, arguments = make()
    assert found_in(cloudpickle.dumps(model)), "the canaries must be in the user's model, or this test could not fail"
    ledger = pmdp.Ledger(tmp_path / "survey.ledger", epsilon=2, delta=1e-6, create=True)
    inspection = pmdp.inspect(model, **arguments)
    released = pmdp.release(model, epsilon=1.0, ledger=ledger, **arguments, **mechanism)
    private = pmdp.rewrite(model, released)
    tree = pmdp.annotate(pm.sample(50, tune=50, chains=1, model=private, progressbar=True, compute_convergence_checks=False), released)
    tree = pm.sample_posterior_predictive(tree, model=private, extend_inferencedata=True, progressbar=False)
    tree.to_netcdf(tmp_path / "tree.nc", engine="h5netcdf")
    released.to_netcdf(tmp_path / "release.nc")
    blobs = {
        "inspection": pickle.dumps(inspection) + repr(inspection).encode() + inspection._repr_html_().encode(),
        "release": pickle.dumps(released) + repr(released).encode() + cloudpickle.dumps(copy.deepcopy(released)),
        "model": cloudpickle.dumps(private) + repr(private).encode() + str(private.coords).encode(),
        "tree": pickle.dumps(tree) + cloudpickle.dumps(tree.copy(deep=True)) + repr(tree).encode() + tree._repr_html_().encode(),
        "attributes": str(tree.attrs).encode(),
        "ledger": repr(ledger).encode() + ledger._repr_html_().encode() + pickle.dumps(ledger),
        "printed": "".join(capfd.readouterr()).encode() + caplog.text.encode(),
    }
    for node in tree.subtree:
        blobs[f"node {node.path}"] = pickle.dumps(node) + pickle.dumps(node.to_dataset()) + str(node.attrs).encode()
    blobs |= {str(path): path.read_bytes() for path in files_under(tmp_path, COMPILED)}
    assert pytensor.config.mode == "FAST_COMPILE" or len(files_under(COMPILED)) > 0, "slow cases compile as users do"
    assert {name: found for name, blob in blobs.items() if (found := found_in(blob))} == {}
    assert "person" not in private.coords
    assert not {"fitted", "hidden", "g", "covariate", "index"} & set(private.named_vars)


def locals_of(error):
    """Everything the frames of a traceback hold, our caller's own frame left out."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][1:]
    assert frames
    values = [value for frame in frames for name, value in frame.f_locals.items() if name not in {"args", "kwargs", "model"}]
    return b"".join(repr(value).encode() for value in values)


@pytest.mark.parametrize("broken", [True, False], ids=["failure", "refusal"])
def test_exceptions_carry_nothing(broken, monkeypatch):
    model, arguments = marked_model()
    if broken:

        def fail(*_):
            raise ValueError(f"value {REAL} {INTEGER}")

        monkeypatch.setattr(mechanisms, "_opendp_laplace", fail)
    else:
        arguments["bounds"].pop("k")
    with pytest.raises((pmdp.PrivateComputationError, pmdp.Refusal)) as caught:
        pmdp.release(model, epsilon=1.0, **arguments)
    error = caught.value
    assert type(error) is (pmdp.PrivateComputationError if broken else pmdp.Refusal)
    assert error.__cause__ is None
    assert error.__context__ is None
    ours = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__) if "pymc_dp" in frame.f_globals["__name__"]]
    assert {Path(name).name for name in ours} == {"calls.py", "guard.py", "from_records.py"} | ({"prepared.py"} if broken else set())
    assert len(ours) == 4, "the check of the call, the guard, and the functions in which it stands; no frame in which a record was read"
    assert found_in(str(error).encode() + repr(error.args).encode() + locals_of(error)) == []


def test_no_warning_leaves_the_wall(monkeypatch):
    """Whatever the libraries inside have to say of a value, nobody hears; what is said once before it is that nothing remembers."""

    def loud(exact, scale):
        warnings.warn(f"a value is {REAL}", RuntimeWarning, stacklevel=1)
        np.log(np.array([-1.0]) * exact[0])
        return list(exact)

    monkeypatch.setattr(mechanisms, "_opendp_laplace", loud)
    model, arguments = marked_model()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pmdp.release(model, epsilon=1.0, **arguments)
    assert [w.category for w in caught if w.category is not pmdp.UnaccountedWarning] == []


@pytest.mark.compiled
def test_no_compile_cache_holds_a_covariate():
    """Features are computed from records: no covariate is compiled into anything that stays."""
    n = 12
    x = np.linspace(0, 1, n)
    x[5] = REAL
    with pm.Model() as model:
        b = pm.Normal("b", shape=2)
        pm.Normal("y", b[0] + b[1] * pm.Data("x", x), 1.0, observed=np.linspace(-1, 1, n))
    pmdp.release(model, epsilon=1.0, bounds={"x": (0, 8000), "y": (-1, 1)})
    pm.draw(pm.Normal.dist(size=3), mode="NUMBA")  # something is compiled, or there might be no cache to look into
    files = files_under(COMPILED)
    assert files
    assert [path for path in files if found_in(path.read_bytes())] == []


@pytest.mark.compiled
def test_no_compile_cache_holds_what_a_model_observes_beside_randomised_answers():
    """A model of placeholders in which records are written by mistake: they are refused by ``randomise``, and read by ``published``."""

    def observing(numbers):
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("mu"), pm.HalfNormal("sd"), observed=numbers)
        return model

    y = np.linspace(0, 1, 12)
    y[5] = REAL
    arguments = {"data": pd.DataFrame({"y": y}), "epsilon": 2.0, "bounds": {"y": pmdp.Bins(0, 1)}}
    with pytest.raises(pmdp.Refusal, match="observes records") as caught:
        pmdp.randomise(observing(y), **arguments)
    frames = [frame.f_code.co_name for frame, _ in traceback.walk_tb(caught.value.__traceback__)][1:]
    assert frames == ["called", "randomise", "guarded"], "no frame in which a record was read"
    pmdp.published(observing(y), pmdp.randomise(observing(np.zeros(12)), **arguments))
    pm.draw(pm.Normal.dist(size=3), mode="NUMBA")  # something is compiled, or there might be no cache to look into
    files = files_under(COMPILED)
    assert files
    assert [path for path in files if found_in(path.read_bytes())] == []


def marked_draws():
    """A marked record in the covariates and responses of every kind of posterior draw."""
    n = 12
    x, y = np.linspace(-1, 1, n), np.linspace(-1, 1, n)
    x[5], y[7] = REAL, REAL + 1
    for method, unknown in (("exact", "uniform"), ("exact", "ball"), ("mcmc", "ball")):
        with pm.Model() as model:
            b = pm.Uniform("b", -1, 1, shape=2) if unknown == "uniform" else pmdp.BallNormal("b", 1.0, 1.0, shape=2)
            pm.Deterministic("slope", b[1])
            pm.Normal("y", b[0] + b[1] * pm.Data("x", x), 1.0, observed=y)
        yield model, pmdp.PosteriorSample(2, method=method, tune=20, steps=5)


@pytest.mark.parametrize("kind", [0, 1, 2], ids=["grid", "ball", "chains"])
def test_canaries_are_nowhere_in_posterior_draws(kind, tmp_path, caplog, capfd):
    """Not in the tree, nor in a word, a log or a compile cache."""
    caplog.set_level(logging.DEBUG)
    model, mechanism = list(marked_draws())[kind]
    assert found_in(cloudpickle.dumps(model)), "the canaries must be in the user's model, or this test could not fail"
    ledger = pmdp.Ledger(tmp_path / "survey.ledger", epsilon=9, create=True)
    tree = pmdp.sample(model=model, epsilon=9.0, bounds={"x": (0, 8000), "y": (-1, 1)}, mechanism=mechanism, ledger=ledger)
    tree.to_netcdf(tmp_path / "tree.nc", engine="h5netcdf")
    pm.draw(pm.Normal.dist(size=3), mode="NUMBA")  # something is compiled, or there might be no cache to look into
    blobs = [pickle.dumps(tree) + cloudpickle.dumps(tree.copy(deep=True)) + repr(tree).encode() + tree._repr_html_().encode()]
    blobs += [repr(ledger).encode(), "".join(capfd.readouterr()).encode() + caplog.text.encode()]
    files = [*files_under(COMPILED), *files_under(tmp_path)]
    assert len(files) > 2
    assert [found_in(blob) for blob in [*blobs, *(path.read_bytes() for path in files)] if found_in(blob)] == []


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_what_stops_a_program_carries_nothing(kind, monkeypatch):
    """A signal handler that leaves, say, in the middle: no frame of ours in which a record was read."""

    def stop(*_):
        raise kind(REAL)

    monkeypatch.setattr(mechanisms, "_opendp_laplace", stop)
    model, arguments = marked_model()
    with pytest.raises(kind) as caught:
        pmdp.release(model, epsilon=1.0, **arguments)
    ours = [frame.f_code.co_name for frame, _ in traceback.walk_tb(caught.value.__traceback__) if "pymc_dp" in frame.f_globals["__name__"]]
    assert ours == ["called", "release", "pay_and_draw", "guarded"]
    assert caught.value.__context__ is None
    assert found_in(repr(caught.value.args).encode() + locals_of(caught.value)) == []


MALFORMED = [math.nan, math.inf, -math.inf, -0.0, 1e308, -1e308, 5e-324, 2.0**53, -7.0, 0.5, 1.5, 99.0, 3.4e38, -1e-9]
"""Fourteen kinds of record that could make a careless computation raise, warn, overflow or branch."""


def replay_model(rows, plain=False):
    """Five observed variables on the same records, one of them with columns; ``rows`` is (N, 4).

    ``plain`` passes the arrays to ``observed``, where PyMC turns missing values into imputed variables; otherwise they are
    ``pm.Data``, set afterwards as a user would set them.
    """

    def given(name, values):
        return values if plain else pm.Data(name, np.zeros_like(values))

    with pm.Model(coords=COORDS) as model:
        g = pm.Data("g", np.arange(len(rows)) % 3)
        theta = pm.Beta("theta", 1, 1, dims="group")
        mu = pm.Normal("mu", 0, 1, dims="town")
        p = pm.Dirichlet("p", np.ones(3))
        pm.Bernoulli("y", theta[g], observed=given("y_data", rows[:, 0]))
        pm.Poisson("k", pm.math.exp(mu[0]), observed=given("k_data", rows[:, 1]))
        pm.Normal("x", mu[g % 2], pm.HalfNormal("s"), observed=given("x_data", rows[:, 2]))
        pm.Categorical("c", p, observed=given("c_data", rows[:, 3]))
        pm.Bernoulli("Y", theta[g][:, None], observed=given("Y_data", rows[:, :2]), shape=(len(rows), 2))
    if not plain:
        for name, values in zip(("y_data", "k_data", "x_data", "c_data", "Y_data"), (*rows.T, rows[:, :2])):
            model[name].set_value(values)
    return model


def everything_seen(rows, noise, frozen=(), plain=False):
    """What an adversary sees of one release: every output, word and charge. ``frozen`` replays noisy outputs."""
    with watched(noise, frozen) as (seam, output, caught):
        model = replay_model(rows, plain)
        heard = len(caught)
        arguments = {"public": ["g"], "bounds": {"k": (0, 9), "x": (-2, 3)}}
        try:
            inspection = pmdp.inspect(model, **arguments)
            released = pmdp.release(model, epsilon=Fraction(7, 3), **arguments)
            private = pmdp.rewrite(model, released)
            told = [repr(inspection), pickle.dumps(released), repr(released), sorted(private.named_vars), private.coords]
            told += [released[name].noisy.shape for name in "ykxcY"]
        except Exception as error:
            told = [type(error), str(error)]
        told += [(w.category, str(w.message)) for w in caught[heard:] if w.category is not pmdp.UnaccountedWarning]  # once per process
    return [*told, output.getvalue(), seam.scales], seam


def neighbour_pairs():
    """More than 300 pairs of data sets that differ in one record."""
    rng = np.random.default_rng(12)
    for kind, position, repeat in itertools.product(MALFORMED, (0, 5, 11), range(8)):
        rows = np.column_stack([rng.integers(0, 2, 12), rng.integers(0, 10, 12), rng.normal(size=12), rng.integers(0, 3, 12)]).astype(float)
        other = rows.copy()
        other[position, rng.integers(0, 4) if repeat else slice(None)] = kind
        if repeat == 7:
            rows[position] = rng.choice(MALFORMED, 4)
        yield rows, other


def test_record_and_replay_of_neighbours():
    """Given the same noisy outputs, everything seen is the same; the exact inputs differ by no more than was paid for."""
    pairs = list(neighbour_pairs())[::48]
    assert len(list(neighbour_pairs())) >= 300
    for rows, other in pairs:
        replay(rows, other)


@pytest.mark.parametrize("column", [0, 1, 2, 3, slice(None)])
def test_record_and_replay_of_a_missing_value(column):
    """PyMC builds another graph where a value is missing; the release, the inspection and the private model are the same."""
    rows, _ = next(neighbour_pairs())
    other = rows.copy()
    other[4, column] = math.nan
    replay(rows, other, plain=True)


def replay(rows, other, plain=False):
    seen, seam = everything_seen(rows, 3, plain=plain)
    seen_other, seam_other = everything_seen(other, 3, frozen=seam.answers, plain=plain)
    assert seen == seen_other
    assert not isinstance(seen[0], type), seen[:2]
    paid = sum(
        Fraction(sum(abs(a - b) for a, b in zip(first, second, strict=True))) / Fraction(scale)
        for first, second, scale in zip(seam.exact, seam_other.exact, seam.scales, strict=True)
    )
    assert paid <= Fraction(7, 3)


@pytest.mark.slow
def test_record_and_replay_of_all_neighbours():
    for rows, other in neighbour_pairs():
        replay(rows, other)


def test_the_charge_is_attained_by_some_pair():
    """A record that moves every statistic as far as it can uses the whole epsilon: the sensitivities are tight together."""
    rows = np.tile([[0.0, 0.0, 3.0, 0.0]], (6, 1))
    other = rows.copy()
    other[2] = [1.0, 9.0, -0.75, 2.0]  # u = -1/2 is -0.75 on (-2, 3)
    _, seam = everything_seen(rows, 0)
    _, seam_other = everything_seen(other, 0)
    paid = sum(
        Fraction(sum(abs(a - b) for a, b in zip(first, second))) / Fraction(scale)
        for first, second, scale in zip(seam.exact, seam_other.exact, seam.scales)
    )
    assert float(paid) == pytest.approx(7 / 3, rel=0.01)


def test_order_of_records_and_memory_do_not_matter(exact_seam):
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.integers(0, 2, 3000), rng.integers(0, 10, 3000), rng.normal(size=3000), rng.integers(0, 3, 3000)]).astype(
        float
    )
    # Records change places within their public cells (g, g % 2 repeat every six rows).
    shuffled = rows.reshape(500, 6, 4)[rng.permutation(500)].reshape(3000, 4)
    for variant in (rows, shuffled, np.asfortranarray(rows)):
        pmdp.release(replay_model(variant), epsilon=1.0, public=["g"], bounds={"k": (0, 9), "x": (-2, 3)})
    sums = [exact_seam.exact[k : k + 5] for k in (0, 5, 10)]
    assert sums[0] == sums[1] == sums[2]


def test_summaries_work_on_the_private_tree():
    model, arguments = marked_model()
    tree = pmdp.sample(100, tune=200, chains=2, model=model, epsilon=2.0, random_seed=1, progressbar=False, **arguments)
    assert set(az.summary(tree).index) == {"mu[a]", "mu[b]", "mu[c]", "difference"}
