"""The law of noisy second moments of several responses: its derivatives, one response, simulated records, and the user's own density.

False alarms: comparisons with simulated moments allow 6 standard errors (2e-9 each, some 100 of them). With as many degrees of
freedom for each response, as if those before it were not there, a square is 10.6 standard errors off.
"""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import EXACT, log_density
from pymc.blocking import DictToArrayBijection

import pymc_dp as pmdp
from pymc_dp.families.second_moments import Regression
from pymc_dp.privacy.noise_law import Noise
from pymc_dp.private_models.moment_law import scatter
from pymc_dp.private_models.vector_law import vector_scatter

N = 60
RNG = np.random.default_rng(3)
X, Z, G = RNG.normal(size=N), RNG.uniform(-1, 1, N), np.arange(N) % 2
ROWS = np.stack([1 + X, Z - X, 0.5 * X], 1) + RNG.multivariate_normal(np.zeros(3), [[1, 0.6, 0.2], [0.6, 1.5, -0.3], [0.2, -0.3, 0.8]], N)
BOUNDS = {"Y": [(-5, 7), (-6, 6), (-4, 4)], "x": (-4, 4), "z": (-1, 1)}


def of(columns=3, covariance="unknown", cells=False, square=False, many=N):
    """A model of so many rows of as many columns, and what is declared of them; each cell may have its own intercepts."""

    def model(rows=ROWS):
        with pm.Model() as model:
            x, z = pm.Data("x", X[:many]), pm.Data("z", Z[:many])
            a = pm.Normal("a", 0, 2, shape=(2, columns))[pm.Data("g", G[:many])] if cells else pm.Normal("a", 0, 2, shape=columns)
            b = pm.Normal("b", 0, 2, shape=(2, columns))
            mu = a + x[:, None] * b[0] + (x**2 if square else z)[:, None] * b[1]
            if covariance == "unknown":
                chol, *_ = pm.LKJCholeskyCov("chol", n=columns, eta=2, sd_dist=pm.HalfNormal.dist(2))
                pm.MvNormal("Y", mu, chol=chol, observed=rows[:many, :columns])
            else:
                pm.MvNormal("Y", mu, cov=pt.eye(columns) + 0.3, observed=rows[:many, :columns])
        return model

    bounds = {name: pair for name, pair in BOUNDS.items() if name != "z" or not square}
    return model, {"bounds": bounds | {"Y": BOUNDS["Y"][:columns]}, "public": ["g"] if cells else [], "missing": {}}


KINDS = {
    "three": {},
    "known covariance": {"covariance": "known"},
    "cells": {"columns": 2, "cells": True},
    "x beside its square": {"columns": 2, "square": True},
}


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("noise", [{}, {"mechanism": "gaussian", "delta": 1e-6}], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("epsilon", [0.5, pytest.param(3000.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_are_those_of_the_density(kind, epsilon, noise, neighbours):
    """With latents that are centred on their own law, and on released values."""
    make, arguments = of(**KINDS[kind])
    if neighbours == "add_remove":
        arguments |= {"neighbours": "add_remove", "public": []}
    private = pmdp.rewrite(make(), pmdp.release(make(), epsilon=epsilon, **noise, **arguments))
    start = DictToArrayBijection.map(private.initial_point())
    density, slope = (compiled(mode="FAST_COMPILE") for compiled in (private.compile_logp, private.compile_dlogp))

    def at(point):
        return DictToArrayBijection.rmap(type(start)(point, start.point_map_info))

    point = start.data + np.random.default_rng(1).normal(size=start.data.size) * (0.3 if epsilon < 1 else 0.02)
    step = 1e-6
    found = np.array([(density(at(point + step * one)) - density(at(point - step * one))) / (2 * step) for one in np.eye(point.size)])
    assert np.isfinite(found).all()
    assert slope(at(point)) == pytest.approx(found, rel=1e-4, abs=2e-6 * max(1, abs(float(density(at(point))))))


def test_of_one_response_it_is_the_law_of_one():
    regression = Regression(
        ("1", "x", "z"), (False, True, True), (-1.0, -4.0, -1.0), (1.0, 4.0, 1.0), (-5.0,), (7.0,), scale_known=False
    )  # fmt: skip
    D = np.stack([np.ones(N), X / 4, Z, (ROWS[:, 0] - 1) / 6], 1)
    moments = D.T @ D
    values = np.array([[moments[i, j] for i, j in regression.entries]])
    known = np.zeros((1, 4, 4))
    known[0, 0, 0] = N
    for scale in (1e9, 1e-3):
        noise = Noise(scale, regression.lattice) if scale > 1 else Noise(scale / regression.lattice, regression.lattice)
        one, several = (law(regression, noise, values, known, np.array([float(N)])) for law in (scatter, vector_scatter))
        latent, phi, sigma = RNG.normal(size=(1, one.latents)) * 0.1, np.array([[1.0, 0.9, -0.1]]), np.array([1.1])
        assert several.latents == one.latents
        assert (one.near == several.near_responses[:, 0, :3]).all()
        given = [pt.constant(part) for part in (values, np.array([float(N)]))]
        first = one.log_density(*given, pt.constant(phi), pt.constant(sigma), pt.constant(latent), None, pt.constant(one.given()))
        second = several.log_density(
            *given, pt.constant(phi[:, None]), pt.constant(sigma[:, None, None] ** 2), pt.constant(latent), None,
            pt.constant(several.given()),
        )  # fmt: skip
        first, second = pytensor.function([], [first, second], mode="FAST_COMPILE")()
        assert second == pytest.approx(first, rel=1e-9)


@pytest.mark.parametrize("covariance", ["unknown", "known"])
def test_simulated_moments_are_those_of_records(covariance):
    """Records are drawn about the same features again and again; so are released numbers, from the same parameters."""
    few = 12
    make, arguments = of(covariance=covariance, many=few)
    released = pmdp.release(make(), epsilon=EXACT, **arguments)
    [noisy] = released.statistics
    private = pmdp.rewrite(make(), released)
    point = private.initial_point()
    a, b = point["a"] + [1.0, 0, 0], np.array([[1.0, -1, 0.5], [0, 1, 0]])
    root = np.array([[1.0, 0, 0], [0.6, 1.07, 0], [0.2, -0.4, 0.77]]) if covariance == "unknown" else np.linalg.cholesky(np.eye(3) + 0.3)
    fixed = {private["a"]: pt.constant(a), private["b"]: pt.constant(b), private["Y_noise"]: pt.zeros(private["Y_noise"].type.shape)}
    if covariance == "unknown":
        fixed |= {private["chol"]: pt.constant(root[np.tril_indices(3)])}
    [drawn] = pytensor.graph.replace.graph_replace([private["Y"]], fixed, strict=False)
    draw = pm.compile([], drawn, mode="FAST_COMPILE", random_seed=2)
    many = 8000
    ours = np.array([draw().ravel() for _ in range(many)])
    regression, rng = noisy.regression, np.random.default_rng(4)
    centre, half = (np.array(part) for part in regression.centres())
    D = np.stack([np.ones(N), X, Z], 1)[:few]
    y = D @ np.vstack([a, b]) + rng.normal(size=(many, few, 3)) @ root.T
    columns = np.concatenate([np.broadcast_to(D, (many, few, 3)), y], axis=-1)
    columns = (columns - centre) / half
    columns[..., 0] = 1.0
    theirs = np.stack([(columns[..., i] * columns[..., j]).sum(axis=1) for i, j in regression.entries], axis=1)
    of_responses = [k for k, (_, j) in enumerate(regression.entries) if j >= 3]
    for one, two in ((ours, theirs), (_products(ours), _products(theirs))):
        error = np.sqrt((one.var(axis=0) + two.var(axis=0)) / many) + 1e-3
        off = np.abs(one.mean(axis=0) - two.mean(axis=0)) / error
        kept = off if one.shape[1] > ours.shape[1] else off[of_responses]
        assert kept.max() < 6


def _products(rows):
    """Products of deviations from the mean."""
    apart = rows - rows.mean(axis=0)
    return (apart[:, :, None] * apart[:, None]).reshape(len(rows), -1)


@pytest.mark.parametrize("kind", KINDS)
def test_at_exact_statistics_the_density_is_the_user_s_own(kind):
    """Latents at 0 are exact moments, so that what is left is the density of responses given features, at whatever parameters."""
    make, arguments = of(**KINDS[kind])
    private = pmdp.rewrite(make(), pmdp.release(make(), epsilon=EXACT, **arguments))
    ours, theirs, rng = log_density(private), log_density(make()), np.random.default_rng(5)
    latents = {name: value for name, value in private.initial_point().items() if name.startswith("Y_")}
    apart = []
    for _ in range(6):
        point = {name: value + rng.normal(size=value.shape) * 0.2 for name, value in make().initial_point().items()}
        apart.append(float(ours(point | latents)) - float(theirs(point)))
    assert np.ptp(apart) < 1e-2


@pytest.mark.slow
def test_more_entries_than_clamping_is_known_of():
    """Six columns without covariates have the same law; at this epsilon the posterior is that of the records."""
    rows = np.random.default_rng(6).normal(size=(500, 6)) + np.arange(6) / 3
    with pm.Model() as model:
        pm.MvNormal("y", pm.Normal("mu", 0, 3, shape=6), pt.eye(6), observed=rows)
    drawn = pmdp.sample(
        300, tune=300, chains=2, model=model, epsilon=1000.0, bounds={"y": (-6, 8)}, missing={}, progressbar=False, random_seed=1
    )
    assert drawn.posterior["mu"].mean(("chain", "draw")).values == pytest.approx(rows.mean(axis=0), abs=0.015)
    assert drawn.posterior["mu"].std(("chain", "draw")).values == pytest.approx(500**-0.5, rel=0.3)
