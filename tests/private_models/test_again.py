"""The private model behind a tree, again: from the tree alone, in another process, by other samplers."""

import subprocess
import sys

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dp as pmdp

BACK = np.array([40, 100, 140])
"""Of 200 records in every group, those with a one."""
MAKE = """
import numpy as np
import pymc as pm

def make(g, y):
    with pm.Model(coords={"group": ["a", "b", "c"]}) as model:
        effect = pm.Normal("effect", pm.Normal("middle", 0, 1.5), pm.HalfNormal("spread", 1), dims="group")
        pm.Bernoulli("y", logit_p=effect[pm.Data("g", g)], observed=y)
    return model
"""
EXECUTED: dict = {}
exec(MAKE, EXECUTED)
QUIET = {"progressbar": False, "compute_convergence_checks": False}


def records():
    g = np.repeat(np.arange(3), 200)
    return g, (np.arange(600) % 200 < BACK[g]).astype(int)


@pytest.fixture(scope="module")
def fitted():
    model = EXECUTED["make"](*records())
    return model, pmdp.sample(
        1000, tune=1000, chains=2, cores=1, random_seed=1, model=model, epsilon=2.0, public=["g"], missing={}, **QUIET
    )


@pytest.fixture(scope="module")
def short():
    """A tree of few draws, for what does not look at them."""
    model = EXECUTED["make"](*records())
    steps = {"nuts_sampler": "pymc", "compile_kwargs": {"mode": "FAST_COMPILE"}}
    return model, pmdp.sample(5, tune=5, chains=1, random_seed=1, model=model, epsilon=2.0, public=["g"], missing={}, **steps, **QUIET)


def dummy():
    return EXECUTED["make"](np.zeros(4, int), np.zeros(4, int))


def test_it_is_the_model_of_the_release_whatever_rows_the_model_holds(short):
    model, tree = short
    rewritten = pmdp.rewrite(model, pmdp.Release.from_datatree(tree))
    point = rewritten.initial_point()
    density = rewritten.compile_logp(mode="FAST_COMPILE")(point)
    with dummy():
        again = pmdp.private_model(tree)
    for private in (again, pmdp.private_model(tree, model)):
        assert private.privacy == rewritten.privacy
        assert private.noise_aware
        assert private.compile_logp(mode="FAST_COMPILE")(point) == density
    assert not pmdp.private_model(tree, dummy(), noise_aware=False).noise_aware


def test_what_is_not_a_private_fit_is_refused_in_words(short):
    model, tree = short
    private = pmdp.private_model(tree, model)
    with pytest.raises(pmdp.Refusal, match="private model already"):
        pmdp.private_model(tree, private)
    for wrong in ((private.privacy, model), (tree, private.privacy), (tree["posterior"].to_dataset(), model)):
        with pytest.raises(pmdp.Refusal, match=r"Write private_model\(idata, model\)"):
            pmdp.private_model(*wrong)
    with pytest.raises(pmdp.Refusal, match="not a release"):
        pmdp.private_model(xr.DataTree.from_dict({"posterior": tree["posterior"].to_dataset()}), model)
    with pm.Model() as other:
        pm.Poisson("count", pm.Exponential("rate", 1), observed=np.zeros(3, int))
    with pytest.raises(pmdp.Refusal, match="another shape"):
        pmdp.private_model(tree, other)
    with pm.Model() as pair:
        pm.Bernoulli("party", pm.Beta("share", 1, 1), observed=np.array([0, 1]))
    paid = pmdp.sample(model=pair, epsilon=1.0, mechanism=pmdp.PosteriorSample(draws=1))
    with pytest.raises(pmdp.Refusal, match="paid for one by one"):
        pmdp.private_model(paid, pair)


ELSEWHERE = f"""
import sys
import warnings
import xarray as xr
import pymc_dp as pmdp
warnings.simplefilter("ignore")
{MAKE}
path, engine = sys.argv[1:]
tree = xr.open_datatree(path, engine=engine).load()
private = pmdp.private_model(tree, make(np.zeros(4, int), np.zeros(4, int)))
draws = pm.sample(1000, tune=1000, chains=2, cores=1, random_seed=2, model=private, progressbar=False)
assert pmdp.to_share(pmdp.annotate(draws, private.privacy)).attrs["epsilon"] == 2.0
new = pmdp.posterior_predictive(tree, model=make(np.zeros(4, int), np.zeros(4, int)), given={{"group": ["c", "a"]}}, random_seed=1)
assert new["predictions"]["y"].dims == ("chain", "draw", "record")
print(*draws["posterior"]["effect"].mean(("chain", "draw")).values)
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["h5netcdf", "zarr"])
@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning", "ignore::zarr.errors.UnstableSpecificationWarning")
def test_a_bare_process_goes_on_from_the_file(fitted, engine, tmp_path):
    """A new process has the model's text, dummy rows and the file. Its posterior is that of the first process."""
    pytest.importorskip(engine)
    _, tree = fitted
    path = tmp_path / "tree"
    _ = tree.to_netcdf(path, engine=engine) if engine == "h5netcdf" else tree.to_zarr(path)
    done = subprocess.run([sys.executable, "-c", ELSEWHERE, path, engine], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    close_to(tree, np.array(done.stdout.split()[-3:], dtype=float))


def close_to(tree, means):
    """Means of effects within five standard errors of 400 independent draws, which every sampler here has more than; one in a million."""
    posterior = tree["posterior"]["effect"]
    spread = posterior.std(("chain", "draw")).values
    assert (spread > 0.1).all()
    np.testing.assert_array_less(np.abs(means - posterior.mean(("chain", "draw")).values), 5 * spread / np.sqrt(400) * np.sqrt(2))


def by_nuts(name):
    def sampled(private):
        # "parallel" has a device for every chain
        words = {"nuts_sampler_kwargs": {"chain_method": "vectorized"}} if name == "blackjax" else {}
        return pm.sample(1000, tune=1000, chains=2, cores=1, model=private, nuts_sampler=name, random_seed=2, **QUIET, **words)

    return sampled


def by_smc(private):
    return pm.sample_smc(1000, chains=2, cores=1, model=private, random_seed=2, progressbar=False)


def by_advi(private):
    with private:
        return pm.fit(20_000, random_seed=2, progressbar=False).sample(1000, random_seed=3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("draw", "needs"),
    [*((by_nuts(name), name) for name in ("pymc", "nutpie", "numpyro", "blackjax")), (by_smc, "pymc"), (by_advi, "pymc")],
    ids=["pymc", "nutpie", "numpyro", "blackjax", "smc", "advi"],
)
def test_every_sampler_draws_from_the_same_posterior(fitted, draw, needs):
    pytest.importorskip(needs)
    model, tree = fitted
    private = pmdp.private_model(tree, model)
    drawn = draw(private)
    close_to(tree, drawn["posterior"]["effect"].mean(("chain", "draw")).values)
    assert pmdp.annotate(drawn, private.privacy).attrs["epsilon"] == 2.0


@pytest.mark.filterwarnings("ignore")
def test_a_private_model_is_sampled_again_for_nothing(short):
    """With the same cost in its result; what would say how to spend is refused."""
    model, tree = short
    released = pmdp.Release.from_datatree(tree)
    private = pmdp.rewrite(model, released)
    steps = {"nuts_sampler": "pymc", "compile_kwargs": {"mode": "FAST_COMPILE"}}
    again = pmdp.sample(5, tune=5, chains=1, model=private, **steps, **QUIET)
    assert again.attrs["epsilon"] == tree.attrs["epsilon"]
    np.testing.assert_array_equal(pmdp.Release.from_datatree(again)["y"].noisy, released["y"].noisy)
    with pytest.raises(pmdp.Refusal, match=r"already private.*Leave weights out"):
        pmdp.sample(5, model=private, weights={"y": 1})


@pytest.mark.parametrize("added", ["observed", "potential", "free", "deterministic", "data", "released", "labels", "by hand"])
def test_records_do_not_pass_for_a_release(added):
    """What is added to a private model, or put in place of its release, would be drawn or shown without noise, as certified."""
    records = np.linspace(-1, 1, 9)
    with pm.Model(coords={"group": ["a", "b"]}) as model:
        mu = pm.Normal("mu", 0, 1, dims="group")
        pm.Normal("y", mu[pm.Data("g", np.arange(40) % 2)], 1.0, observed=np.linspace(-1, 1, 40))
    private = pmdp.privatize(model, epsilon=1.0, bounds={"y": (-1, 1)}, public=["g"], missing={})
    with private:
        mu = private["mu"][0]
        if added == "observed":
            pm.Normal("z", mu, 0.001, observed=records)
        elif added == "potential":
            pm.Potential("z", -1e6 * (mu - records[3]) ** 2)
        elif added == "free":
            pm.CustomDist("z", mu, logp=lambda value, mean: -1e6 * (mean - records[3]) ** 2 - value**2)
        elif added == "deterministic":
            pm.Deterministic("z", mu + records)
        elif added == "data":
            pm.Data("z", records)
        elif added == "released":
            pm.set_data({"y_released": private["y_released"].get_value() + 1})
        elif added == "labels":
            private._coords["group"] = ("Zwingli", "b")
        else:
            model.privacy = private.privacy
    with pytest.raises(pmdp.Refusal, match=r"z was added|y_released is no longer|group is no longer|not known what this private model"):
        pmdp.sample(5, tune=5, chains=1, model=model if added == "by hand" else private, **QUIET)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_interventions_and_observations_are_pymc_s_own(fitted):
    """Where nothing spreads, effects are the middle. What is observed beside the release is not covered by it."""
    model, tree = fitted
    private = pmdp.private_model(tree, model)
    fixed = pm.do(private, {"middle": 5.0, "spread": 1e-3})
    drawn = pm.sample(300, tune=500, chains=1, model=fixed, random_seed=1, **QUIET)
    np.testing.assert_allclose(drawn["posterior"]["effect"].mean(("chain", "draw")), 5.0, atol=0.01)
    observed = pm.observe(private, {"spread": 1e-3})
    drawn = pm.sample(500, tune=1000, chains=1, model=observed, random_seed=1, **QUIET)
    middle = drawn["posterior"]["middle"].values
    assert abs(middle.mean() - np.log(280 / 320)) < 0.5
    assert np.ptp(drawn["posterior"]["effect"].mean(("chain", "draw")).values) < 0.01
    with pytest.raises(pmdp.Refusal, match="not drawn from the private model"):
        pmdp.annotate(drawn, private.privacy)


def test_leaving_one_out_does_not_start_by_itself(short):
    """A private fit has no log-likelihood of records. ``az.loo`` says so in place of a number that means something else."""
    with pytest.raises(TypeError, match="log likelihood not found"):
        az.loo(short[1])


def test_leaving_one_out_would_leave_out_a_cell(short):
    """What ``pm.compute_log_likelihood`` adds has an entry for each of three groups, and none for any of 600 records."""
    model, tree = short
    added = pm.compute_log_likelihood(tree.copy(deep=True), model=pmdp.private_model(tree, model), progressbar=False)
    assert dict(added["log_likelihood"]["y"].sizes) == {"chain": 1, "draw": 5, "y_cell": 3}
