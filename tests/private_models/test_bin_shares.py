"""How many records are in each bin of private covariates: shares about those of normal covariates."""

from itertools import product

import numpy as np
import pymc as pm
import pytest
from checks import seam_of
from scipy import stats

import pymc_dp as pmdp
from pymc_dp.private_models.bin_shares import AT_LEAST, CONCENTRATION, MEANS, SPREAD, SPREADS
from pymc_dp.private_models.checking import _check_proper
from pymc_dp.private_models.fingerprint import data_of_release, fingerprint

BINS = {"x": pmdp.Bins(edges=[-3, -1, 0, 4]), "z": pmdp.Bins(0, 10, 2), "w": pmdp.Bins(0, 1, 4), "age": pmdp.Bins(18, 60, 3)}
LEVELS = {"h": range(2), "k": range(3)}
N = 40


def regression(names, groups=1):
    """A model of all these covariates, in this order; and of ``groups`` public cells."""
    rng = np.random.default_rng(0)
    values = {"x": rng.normal(size=N), "z": rng.uniform(0, 10, N), "w": rng.uniform(0, 1, N), "age": rng.integers(18, 61, N)}
    with pm.Model() as model:
        rate = pm.Normal("a")
        for name in names:
            if name in BINS:
                rate = rate + pm.Normal(f"b_{name}") * pm.Data(name, values[name])
            else:
                levels = len(LEVELS[name])
                rate = rate + pm.Normal(f"b_{name}", shape=levels)[pm.Data(name, rng.integers(0, levels, N))]
        if groups > 1:
            rate = rate + pm.Normal("c", shape=groups)[pm.Data("g", np.arange(N) % groups)]
        pm.Bernoulli("y", logit_p=rate, observed=rng.integers(0, 2, N))
    return model


def private_of(names, groups=1, noise=0, epsilon=1.0, **options):
    bounds = {name: BINS[name] if name in BINS else LEVELS[name] for name in names}
    with seam_of(noise):
        public = {"public": ["g"]} if groups > 1 else {}
        return pmdp.privatize(regression(names, groups), epsilon=epsilon, bounds=bounds, **public, **options)


def shares_of_normals(names, normals, levels):
    """Concentrations (V,) of one public cell, one cell after the other, by SciPy: normals (L, K), levels (L,)."""
    binned, others = [name for name in names if name in BINS], [name for name in names if name in LEVELS]
    combinations = list(product(*(LEVELS[name] for name in others)))
    ends = {name: np.array(BINS[name].edges or np.linspace(BINS[name].lower, BINS[name].upper, BINS[name].bins + 1)) for name in binned}
    middles = {name: (edges[1:] + edges[:-1]) / 2 for name, edges in ends.items()}
    if "age" in binned:  # whole numbers, of which a bin holds its upper edge
        ends["age"], middles["age"] = np.array([17.5, 32.5, 46.5, 60.5]), np.array([25.0, 39.5, 53.5])
    result = []
    for cell in product(*(range(len(BINS_OF[name])) if name in BINS else LEVELS[name] for name in names)):
        where = dict(zip(names, cell, strict=True))
        at = combinations.index(tuple(where[name] for name in others))
        z, share, pairs, before = normals[at], levels[at], 2 * len(binned), []
        for d, name in enumerate(binned):
            low, high = ends[name][0], ends[name][-1]
            mean, sd = (low + high) / 2 + MEANS * (high - low) * z[2 * d], SPREAD * (high - low) * np.exp(SPREADS * z[2 * d + 1])
            line, left = 0.0, 1.0
            for far in before:
                r = np.tanh(z[pairs])
                pairs, line, left = pairs + 1, line + left * r * far, left * np.sqrt(1 - r**2)
            conditional, k = stats.norm(mean + sd * line, sd * left), where[name]
            last = k == len(ends[name]) - 2
            share = share * ((1.0 if last else conditional.cdf(ends[name][k + 1])) - (0.0 if k == 0 else conditional.cdf(ends[name][k])))
            before.append((middles[name][k] - mean - sd * line) / (sd * left))
        result.append(AT_LEAST + CONCENTRATION * len(combinations) * share)
    return np.array(result)


BINS_OF = {"x": range(3), "z": range(2), "w": range(4), "age": range(3)}
NAMES = [("x",), ("age",), ("z", "x"), ("h", "x"), ("x", "h", "z"), ("h", "w", "k"), ("x", "z", "w")]


def evaluated(private, sizes, seed):
    """Values of latents and their log-density at a random point of the private model."""
    variables = [private[name] for name in ("y_size", "y_size_shape", "y_size_levels") if name in private.named_vars]
    terms = [private["y_size"], *private.potentials] if sizes == "free" else [private["y_size"]]
    start, rng = private.initial_point(), np.random.default_rng(seed)
    point = start | {private.rvs_to_values[v].name: rng.normal(size=start[private.rvs_to_values[v].name].shape) for v in variables}
    values = private.compile_fn(
        private.replace_rvs_by_values(variables), inputs=private.value_vars, point_fn=True, mode="FAST_COMPILE", on_unused_input="ignore"
    )(point)
    density = private.compile_logp(vars=terms, jacobian=False, mode="FAST_COMPILE")(point)
    return dict(zip((v.name for v in variables), values, strict=True)), float(density)


@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_shares_follow_a_dirichlet_law_about_normal_covariates(names):
    """Against SciPy: bins between bounds, of whole numbers, beside levels in any order, and of correlated covariates."""
    private = private_of(names)
    for seed in range(3):
        values, density = evaluated(private, "simplex", seed)
        [share], [normals] = values["y_size"], values["y_size_shape"]
        alpha = shares_of_normals(names, normals, values.get("y_size_levels", np.ones((1, 1)))[0])
        assert alpha.sum() == pytest.approx(AT_LEAST * len(alpha) + CONCENTRATION * len(normals))
        np.testing.assert_allclose(density, stats.dirichlet.logpdf(share / share.sum(), alpha), rtol=1e-6)


@pytest.mark.parametrize("names", [("x",), ("h", "x")], ids=" ".join)
def test_numbers_of_records_that_nobody_knows_have_these_shares_and_any_sum(names):
    """The density of sizes is that of shares, times that of their sum, which is flat: N^(1 - V) for V sizes that add up to N."""
    private = private_of(names, neighbours="add_remove")
    for seed in range(3):
        values, density = evaluated(private, "free", seed)
        size, [normals] = values["y_size"].ravel(), values["y_size_shape"]
        alpha = shares_of_normals(names, normals, values.get("y_size_levels", np.ones((1, 1)))[0])
        expected = stats.dirichlet.logpdf(size / size.sum(), alpha) - (len(size) - 1) * np.log(size.sum())
        np.testing.assert_allclose(density, expected, rtol=1e-6)


def test_every_public_cell_has_normal_covariates_of_its_own():
    private = private_of(("x",), groups=2)
    values, density = evaluated(private, "simplex", 0)
    shares, normals = values["y_size"], values["y_size_shape"]
    each = zip(shares, normals, strict=True)
    expected = sum(stats.dirichlet.logpdf(share / share.sum(), shares_of_normals(("x",), z, np.ones(1))) for share, z in each)
    np.testing.assert_allclose(density, expected, rtol=1e-6)


def test_many_small_public_cells_have_one_mean_of_shares_about_which_all_vary():
    private = private_of(("x",), groups=8)
    assert private["y_size_mean"].eval().shape == (1, 3)
    assert private["y_size_shape"].eval().shape == (1, 1, 2)
    density = private.compile_logp(vars=[private["y_size_mean"]], jacobian=False, mode="FAST_COMPILE")
    start = private.initial_point()
    variables = private.replace_rvs_by_values([private["y_size_mean"], private["y_size_shape"]])
    both = private.compile_fn(variables, inputs=private.value_vars, point_fn=True, mode="FAST_COMPILE", on_unused_input="ignore")
    [mean], [normals] = both(start)
    expected = stats.dirichlet.logpdf(mean / mean.sum(), shares_of_normals(("x",), normals, np.ones(1)))
    np.testing.assert_allclose(float(density(start)), expected, rtol=1e-6)


@pytest.mark.parametrize(("names", "options"), [(("h",), {}), (("x",), {"missing": ["y"]})], ids=["levels", "left out"])
def test_elsewhere_shares_are_flat(names, options):
    assert not {"y_size_shape", "y_size_shares"} & set(private_of(names, **options).named_vars)


def test_another_release_needs_nothing_compiled_again():
    keys = set()
    for noise in (0, 3):
        private = private_of(("h", "x"), noise=noise)
        keys.add(fingerprint(private, private.initial_point(), data_of_release(private), None).key)
    assert len(keys) == 1


def test_what_is_believed_of_shares_is_no_part_of_the_posterior():
    tree = pmdp.sample(
        30, tune=30, chains=1, model=regression(("h", "x")), epsilon=1.0, bounds={"h": LEVELS["h"], "x": BINS["x"]}, random_seed=1,
        progressbar=False,
    )  # fmt: skip
    latents = {"y_size_shape", "y_size_levels"}
    assert latents <= set(tree["latent_statistics"].data_vars)
    assert not {*latents, "y_size"} & set(tree["posterior"].data_vars)


def test_models_of_unknown_numbers_of_records_are_not_compared_and_the_advice_is_about_these():
    """The model has a Potential of shares, which the user did not write."""
    with pytest.raises(pmdp.Refusal, match="y_size has an improper prior"):
        _check_proper("one", private_of(("x",), neighbours="add_remove"))
