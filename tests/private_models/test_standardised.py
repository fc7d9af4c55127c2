"""Groups of unknowns of which little is known have standard coordinates in a sampler: the same posterior, without a funnel."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as pmdp
from pymc_dp.private_models import rewrite as rewriting
from pymc_dp.private_models.rewrite import rewrite, spec_like

pytestmark = pytest.mark.filterwarnings("ignore")
G = 8
RNG = np.random.default_rng(3)


def bernoulli(a, _, n):
    pm.Bernoulli("y", logit_p=a, observed=RNG.integers(0, 2, n))


def poisson(a, _, n):
    pm.Poisson("y", pm.math.exp(a), observed=RNG.poisson(2, n))


def normal(a, _, n):
    pm.Normal("y", a, pm.HalfNormal("sigma"), observed=RNG.normal(size=n))


def known_sigma(a, _, n):
    pm.Normal("y", a, 1.0, observed=RNG.normal(size=n))


def private_cells(a, x, n):
    pm.Normal("y", a + pm.Normal("b", shape=2)[x], pm.HalfNormal("sigma"), observed=RNG.normal(size=n))


def straight_line(a, x, n):
    pm.Normal("y", a + pm.Normal("b") * x, 1.0, observed=RNG.normal(size=n))


def in_bins(a, _, n):
    pm.StudentT("y", 4.0, mu=a, sigma=pm.HalfNormal("sigma"), observed=RNG.normal(size=n))


def levels(a, _, n):
    pm.OrderedLogistic("y", eta=a, cutpoints=pt.stack([-1.0, 1.0]), observed=RNG.integers(0, 3, n))


WRITTEN = (bernoulli, poisson, normal, known_sigma, private_cells, straight_line, in_bins, levels)
BOUNDS = {bernoulli: {}, levels: {}, poisson: {"y": (0, 12)}, in_bins: {"y": pmdp.Bins(-4, 4, 10)}}


def model_of(write, each, below=True):
    """G groups of so many records each, whose unknowns lie below others or not."""
    group = np.repeat(np.arange(G), each)
    with pm.Model() as model:
        a = pm.Normal("a", pm.Normal("mu"), pm.HalfNormal("tau"), shape=G) if below else pm.Normal("a", shape=G)
        write(a[pm.Data("group", group)], pm.Data("x", group % 2), len(group))
    return model


def released(write, each, epsilon, below=True, private=False):
    model = model_of(write, each, below)
    bounds = BOUNDS.get(write, {"y": (-4, 4)}) | ({"x": (0, 1)} if write in (private_cells, straight_line) else {})
    group = {"bounds": bounds | {"group": (0, G - 1)}} if private else {"bounds": bounds, "public": ["group"]}
    return model, pmdp.release(model, epsilon=epsilon, missing={}, **group)


def coordinates(private):
    transform = private.rvs_to_transforms[private["a"]]
    return "own" if transform is None else transform.name


@pytest.mark.parametrize("write", WRITTEN)
def test_groups_that_noise_hides_have_standard_coordinates(write):
    """Not where they lie below no unknown, or much is known of each."""
    assert coordinates(rewrite(*released(write, 20, 1.0))) == "standardised"
    assert coordinates(rewrite(*released(write, 20, 1.0, below=False))) == "own"
    assert coordinates(rewrite(*released(write, 400, 100.0))) == "own"
    assert coordinates(rewrite(*released(write, 400, 0.01))) == "standardised"


@pytest.mark.parametrize("write", [bernoulli, poisson, normal, known_sigma, in_bins, levels])
def test_groups_of_private_indices_have_them_too(write):
    assert coordinates(rewrite(*released(write, 20, 1.0, private=True))) == "standardised"
    assert coordinates(rewrite(*released(write, 400, 100.0, private=True))) == "own"


def test_neither_records_nor_what_was_released_of_them_decides():
    """Numbers of records, bounds and the noise do."""
    model, release = released(normal, 20, 1.0)
    (likelihood,) = spec_like(model, release, ["group"]).likelihoods
    chosen = set()
    for values in (release["y"].noisy, 0 * release["y"].noisy, -5 * release["y"].noisy):
        noisy = replace(release["y"], noisy=np.array(values))
        chosen.add(tuple(rewriting.hidden_groups(likelihood, noisy)))
    assert chosen == {("a",)}


def test_nothing_fails_where_there_are_no_records_or_no_entries():
    model, release = released(normal, 20, 1.0)
    (likelihood,) = spec_like(model, release, ["group"]).likelihoods
    assert rewriting.hidden_groups(likelihood, replace(release["y"], n=np.zeros(G, dtype=np.int64))) == ["a"]
    with pm.Model() as empty:
        nobody = pm.Normal("nobody", pm.Normal("mean"), 1, shape=0)
        pm.Normal("y", pm.Normal("m") + nobody.sum(), 1, observed=RNG.normal(size=20))
    assert rewrite(empty, pmdp.release(empty, epsilon=1.0, bounds={"y": (-4, 4)}, missing={}))["nobody"].eval().shape == (0,)


@pytest.mark.parametrize("write", WRITTEN)
def test_the_posterior_is_the_same(write, monkeypatch):
    """Densities of the whole private model in both coordinates differ by the volume that z has in a = mu + tau z, and nothing else."""
    model, release = released(write, 20, 1.0)
    standard = rewrite(model, release)
    monkeypatch.setattr(rewriting, "hidden_groups", lambda likelihood, noisy: [])
    own = rewrite(model, release)
    densities, rng = [one.compile_logp(mode="FAST_COMPILE") for one in (standard, own)], np.random.default_rng(0)
    start = own.initial_point()
    for _ in range(3):
        point = {name: value + 0.2 * rng.normal(size=value.shape) for name, value in start.items()}
        tau, z = np.exp(point["tau_log__"]), rng.normal(size=G)
        others = {name: value for name, value in point.items() if name != "a"}
        ours = densities[0](others | {"a_standardised__": z})
        np.testing.assert_allclose(ours, densities[1](point | {"a": point["mu"] + tau * z}) + G * np.log(tau), rtol=1e-9)


@pytest.mark.slow
def test_chains_that_would_stand_in_a_funnel_agree():
    """30 groups of 20: with their own coordinates R-hat was 1.10 and 1.06 in two fits, and 50 effective draws were left of 2,000."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(30), 20)
    with pm.Model() as model:
        a = pm.Normal("a", pm.Normal("mu"), pm.HalfNormal("tau"), shape=30)
        pm.Bernoulli("y", logit_p=a[pm.Data("group", group)], observed=rng.integers(0, 2, 600))
    tree = pmdp.sample(500, tune=500, chains=4, cores=1, model=model, epsilon=0.3, public=["group"], missing={}, random_seed=1, quiet=True)
    import arviz as az

    assert float(az.rhat(tree["posterior"].to_dataset()[["tau"]])["tau"]) < 1.03
    assert int(tree["sample_stats"]["diverging"].sum()) < 20
