"""Ordinary PyMC models in the spellings people use, on generated records. Each takes the number of records and a seed."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

COORDS = {"group": ["a", "b", "c"], "town": ["n", "s"], "item": ["i", "j"], "level": list("wxyz")}
BOUNDS = {"k": (0, 6), "x": (-4.0, 8.0)}


def records(n, seed=0):
    """Values inside the bounds, so that the clamped model and the user's have the same likelihood."""
    rng = np.random.default_rng(seed)
    return {
        "y": rng.integers(0, 2, n),
        "k": rng.integers(0, 7, n),
        "c": rng.integers(0, 4, n),
        "x": 2 + np.rint(rng.uniform(-1, 1, n) * 2**13) * 6 / 2**13,
        "g": np.arange(n) % 3,
        "h": np.arange(n) // 3 % 2,
        "Y": rng.integers(0, 2, (n, 2)),
    }


def shared_bernoulli(n=60, seed=0):
    r = records(n, seed)
    with pm.Model() as model:
        theta = pm.Beta("theta", 2, 3)
        pm.Bernoulli("y", theta, observed=r["y"])
    return model, {}


def shared_with_data_and_dims(n=60, seed=0):
    r = records(n, seed)
    with pm.Model(coords={"person": [f"id-{k}" for k in range(n)]}) as model:
        y = pm.Data("answers", r["y"].astype("float32"), dims="person")
        logit = pm.Normal("logit", 0, 2, initval=0.3)
        pm.Deterministic("odds", pm.math.exp(logit))
        pm.Bernoulli("y", logit_p=logit, observed=y, dims="person")
    return model, {}


def indexed_by_data(n=60, seed=0):
    r = records(n, seed)
    with pm.Model(coords=COORDS | {"person": np.arange(n)}) as model:
        g = pm.Data("g", r["g"].astype("int8"), dims="person")
        theta = pm.Beta("theta", 1, 1, dims="group")
        p = pm.Deterministic("p", theta[g], dims="person")
        pm.Deterministic("spread", theta.max() - theta.min())
        pm.Bernoulli("y", p, observed=r["y"], dims="person")
    return model, {"public": ["g"]}


def indexed_by_dim(n=60, seed=0):
    r = records(n, seed)
    with pm.Model(coords=COORDS) as model:
        mu = pm.Normal("mu", 0, 1)
        tau = pm.HalfNormal("tau", 1)
        z = pm.Normal("z", 0, 1, dims="group")
        pm.Bernoulli("y", logit_p=(mu + tau * z)[r["g"]], observed=r["y"])
    return model, {"public": ["group"]}


def several_indices(n=60, seed=0):
    r = records(n, seed)
    with pm.Model(coords=COORDS) as model:
        a = pm.Normal("a", 0, 1, dims="group")
        b = pm.Normal("b", 0, 1, dims="town")
        s = pm.HalfNormal("s", 1)
        pm.Poisson("k", pm.math.exp(a[r["g"]] + s * b[r["h"]]), observed=r["k"])
    return model, {"public": ["group", "town"], "bounds": {"k": BOUNDS["k"]}}


def logarithms_of_sums(n=60, seed=0):
    """Row by row, of arrays with fewer axes than there are."""
    r = records(n, seed)
    with pm.Model(coords=COORDS) as model:
        a = pm.Normal("a", 0, 1, dims="group")
        b = pm.Normal("b", 0, 1, dims=("town", "group"))
        u = pm.Beta("u", 2, 2, dims="town")
        rate = pt.logaddexp(a[r["g"]], 0.5) + pt.logsumexp(b[r["h"]], axis=1) ** 2 - pt.special.xlogy(2.0, u[r["h"]])
        pm.Poisson("k", rate, observed=r["k"])
    return model, {"public": ["group", "town"], "bounds": {"k": BOUNDS["k"]}}


def two_way_table(n=60, seed=0):
    r = records(n, seed)
    with pm.Model(coords=COORDS) as model:
        rate = pm.Gamma("rate", 2, 1, dims=("group", "town"))
        pm.Poisson("k", rate[r["g"], r["h"]], observed=r["k"])
    return model, {"public": [r["g"], "town"], "bounds": {"k": BOUNDS["k"]}}


def normal_known_sigma(n=60, seed=0):
    r = records(n, seed)
    with pm.Model(coords=COORDS) as model:
        mu = pm.Normal("mu", 1, 2, dims="group")
        pm.Normal("x", mu[r["g"]], 1.5, observed=r["x"])
    return model, {"public": ["x:0"], "bounds": {"x": BOUNDS["x"]}}


def normal_unknown_sigma(n=60, seed=0):
    r = records(n, seed)
    with pm.Model(coords=COORDS) as model:
        mu = pm.StudentT("mu", nu=4, mu=1, sigma=2, dims="group")
        sigma = pm.HalfCauchy("sigma", 2, dims="town")
        pm.Normal("x", mu=mu[r["g"]], sigma=sigma[r["h"]], observed=r["x"])
    return model, {"public": ["group", "town"], "bounds": {"x": BOUNDS["x"]}}


def normal_by_precision(n=60, seed=0):
    r = records(n, seed)
    with pm.Model() as model:
        pm.Normal("x", pm.Flat("mu"), tau=pm.Gamma("tau", 2, 2), observed=r["x"])
    return model, {"bounds": {"x": BOUNDS["x"]}}


def categorical_table(n=60, seed=0):
    r = records(n, seed)
    with pm.Model(coords=COORDS) as model:
        p = pm.Dirichlet("p", np.ones((3, 4)), dims=("group", "level"))
        pm.Categorical("c", p=p[r["g"]], observed=r["c"])
    return model, {"public": ["group"]}


def categorical_softmax(n=60, seed=0):
    r = records(n, seed)
    with pm.Model(coords=COORDS) as model:
        b = pm.Normal("b", 0, 1, dims=("town", "level"))
        eta = pm.math.concatenate([b[r["h"]][:, :3], pm.math.zeros_like(b[r["h"]][:, :1])], axis=-1)
        pm.Categorical("c", logit_p=eta, observed=r["c"])
    return model, {"public": ["town"]}


def ordered(n=60, seed=0):
    r = records(n, seed)
    with pm.Model(coords=COORDS) as model:
        cut = pm.Normal("cut", 0, 2, shape=3, transform=pm.distributions.transforms.ordered, initval=[-1.0, 0.0, 1.0])
        eta = pm.Normal("eta", 0, 1, dims="group")
        pm.OrderedLogistic("c", eta=eta[r["g"]], cutpoints=cut, observed=r["c"], compute_p=False)
    return model, {"public": ["group"]}


def columns(n=60, seed=0):
    r = records(n, seed)
    with pm.Model(coords=COORDS | {"person": np.arange(n)}) as model:
        p = pm.Beta("p", 1, 1, dims=("group", "item"))
        pm.Bernoulli("Y", p[r["g"]], observed=r["Y"], dims=("person", "item"))
    return model, {"public": ["group"]}


def public_covariate(n=60, seed=0):
    r = records(n, seed)
    with pm.Model() as model:
        age = pm.Data("age", r["h"] * 10.0 + 20)
        standard = (age - age.mean()) / age.std()
        b = pm.Normal("b", 0, 1, shape=2)
        pm.Bernoulli("y", pm.math.invlogit(b[0] + b[1] * standard), observed=r["y"])
    return model, {"public": ["age"]}


def public_design(n=60, seed=0):
    r = records(n, seed)
    X = np.column_stack([np.ones(n), r["h"], r["g"]])
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=3)
        mu = pm.math.exp(pm.math.dot(X, b) * 0.3)
        pm.Poisson("k", mu, observed=r["k"])
    return model, {"public": [X], "bounds": {"k": BOUNDS["k"]}}


def several_observed(n=60, seed=0):
    r = records(n, seed)
    with pm.Model(coords=COORDS) as model:
        rate = pm.Gamma("rate", 2, 1)
        theta = pm.Deterministic("theta", 1 - pm.math.exp(-rate))
        sigma = pm.Exponential("sigma", 1, initval="prior")
        pm.Bernoulli("y", theta, observed=r["y"])
        pm.Poisson("k", rate, observed=r["k"])
        pm.Normal("x", rate, sigma, observed=r["x"])
        pm.Potential("soft", -((rate - 2) ** 2))
    return model, {"bounds": BOUNDS}


def missing_values(n=60, seed=0):
    r = records(n, seed)
    y = np.where(np.arange(n) % 7 == 0, np.nan, r["x"])
    with pm.Model(coords=COORDS) as model:
        mu = pm.Normal("mu", 0, 3, dims="group")
        sigma = pm.HalfNormal("sigma", 2)
        pm.Normal("x", mu[r["g"]], sigma, observed=y)
    return model, {"public": ["group"], "bounds": {"x": BOUNDS["x"]}}


SPELLINGS = [
    shared_bernoulli, shared_with_data_and_dims, indexed_by_data, indexed_by_dim, several_indices, logarithms_of_sums, two_way_table,
    normal_known_sigma, normal_unknown_sigma, normal_by_precision, categorical_table, categorical_softmax, ordered, columns,
    public_covariate, public_design, several_observed,
]  # fmt: skip
EVERY_MODEL = [*SPELLINGS, missing_values]
