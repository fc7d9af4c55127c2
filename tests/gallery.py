"""Models as PyMC users write them, each with what is expected of it. Records lie inside the bounds and on dyadic grids.

A grid of sixteenths keeps squares and products of covariates on the lattice of the statistics, so that clamping and rounding change
nothing, and the rewritten log-density at exact statistics is the user's up to a constant.
"""

from dataclasses import dataclass
from functools import wraps

import numpy as np
import pandas as pd
import pymc as pm
import pymc.dims as pmd
import pytensor.tensor as pt
from patsy import dmatrix

import pymc_dp as pmdp

N = 97
MARK = 2 + 6 * 4321 / 2**13
"""One record's value, whose bytes are looked for."""
COUNTS, REALS = (0, 6), (-4.0, 8.0)
COUNTY, TOWN, ITEM = ["anoka", "blue earth", "cass"], ["n", "s"], ["i", "j"]


@dataclass(frozen=True)
class Entry:
    """One model of the gallery.

    Attributes
    ----------
    make : callable
        From a number of records and a seed to (model, arguments of ``release``).
    structures : tuple of str
        What ``inspect`` says of each observed variable.
    tolerance : float
        By how much the difference of log-densities may vary: more where public features are off the lattice.
    cdf : callable or None
        Of an outcome that is released in bins, its distribution function at edges: see ``gallery_bins``.
    edges : tuple of float
        Of these bins.
    seen : callable or None
        From records the values and the flags of events, or None in their place, where the likelihood is a Potential.
    """

    make: object
    structures: tuple[str, ...]
    tolerance: float
    cdf: object = None
    edges: tuple[float, ...] = ()
    seen: object = None

    @property
    def name(self):
        return self.make.__name__


GALLERY: list[Entry] = []


def entry(*structures, tolerance=1e-6, cdf=None, edges=(), rows=None, coords=None, seen=None):
    """Add a function to the gallery that writes a model of some records, in its context, and returns arguments of ``release``.

    ``rows`` is the number of records where that is always the same; ``coords`` are those of the model, or a function of that number.
    """

    def add(write):
        @wraps(write)
        def make(n=N, seed=0):
            n = rows or n
            with pm.Model(coords=coords(n) if callable(coords) else coords) as model:
                arguments = write(records(n, seed))
            return model, arguments

        GALLERY.append(Entry(make, structures, tolerance, cdf, edges, seen))
        return make

    return add


class Records(dict):
    """Columns by name, as attributes."""

    __getattr__ = dict.__getitem__


def records(n, seed=0):
    rng = np.random.default_rng(seed)
    grid = lambda *shape: np.rint(rng.uniform(-1, 1, shape) * 16) / 16  # noqa: E731
    X = grid(n, 3)
    X[0] = 1  # so that a public column is scaled by 1
    x = 2 + np.rint(rng.uniform(-1, 1, n) * 2**13) * 6 / 2**13
    x[n // 2] = MARK
    return Records(
        y=rng.integers(0, 2, n),
        k=rng.integers(0, 7, n),
        c=rng.integers(0, 4, n),
        g=np.arange(n) % 3,
        h=np.arange(n) // 3 % 2,
        t=rng.integers(0, 5, n),
        i=rng.integers(0, 4, n),
        x=x,
        z=grid(n),
        w=grid(n),
        X=X,
        Y=rng.integers(0, 2, (n, 2)),
        YX=np.column_stack([x, grid(n)]),
    )


# ---------- radon and other hierarchies
@entry("table")
def radon_pooled(r):
    floor = pm.Data("floor_idx", r.h)
    alpha, beta = pm.Normal("alpha", 0, 10), pm.Normal("beta", 0, 10)
    pm.Normal("log_radon", alpha + beta * floor, pm.Exponential("sigma", 1), observed=r.x)
    return {"bounds": {"log_radon": REALS, "floor_idx": (0, 1)}}


@entry("table", coords=lambda n: {"county": COUNTY, "obs_id": np.arange(n)})
def radon_varying_intercept(r):
    floor_idx = pm.Data("floor_idx", r.h, dims="obs_id")
    county_idx = pm.Data("county_idx", r.g, dims="obs_id")
    mu_a, sigma_a = pm.Normal("mu_a", 0, 10), pm.Exponential("sigma_a", 1)
    alpha = pm.Normal("alpha", mu=mu_a, sigma=sigma_a, dims="county")
    beta = pm.Normal("beta", 0, 10)
    mu = pm.Deterministic("mu", alpha[county_idx] + beta * floor_idx, dims="obs_id")
    pm.Normal("y", mu, sigma=pm.Exponential("sigma_y", 1), observed=r.x, dims="obs_id")
    return {"bounds": {"y": REALS, "floor_idx": (0, 1)}, "public": ["county"]}


@entry("table", coords={"county": COUNTY, "param": ["alpha", "beta"]})
def radon_noncentred_all_private(r):
    county_idx, floor = pm.Data("county_idx", r.g), pm.Data("floor", r.h)
    mu, sigma = pm.Normal("mu", shape=2), pm.HalfNormal("sigma_c", shape=2)
    z_a, z_b = pm.Normal("z_a", dims="county"), pm.Normal("z_b", dims="county")
    alpha = pm.Deterministic("alpha", mu[0] + z_a * sigma[0], dims="county")
    beta = pm.Deterministic("beta", mu[1] + z_b * sigma[1], dims="county")
    pm.Normal("y", alpha[county_idx] + beta[county_idx] * floor, pm.Exponential("s", 1), observed=r.x)
    return {"bounds": {"y": REALS, "floor": (0, 1)}}


@entry("table", coords={"county": COUNTY, "param": ["alpha", "beta"]})
def radon_covariation_with_lkj(r):
    chol, _, _ = pm.LKJCholeskyCov("chol_cov", eta=2.0, n=2, sd_dist=pm.Exponential.dist(1.0, shape=2))
    mu_ab = pm.Normal("mu_ab", 0, 5, dims="param")
    z = pm.Normal("z", dims=("param", "county"))
    ab = pm.Deterministic("ab_county", mu_ab + pt.dot(chol, z).T, dims=("county", "param"))
    mu = ab[r.g, 0] + ab[r.g, 1] * r.h
    pm.Normal("y", mu, pm.Exponential("sigma", 1), observed=r.x)
    return {"bounds": {"y": REALS, "y:3": (0, 1)}}


@entry("table", coords={"county": COUNTY})
def radon_with_uranium_of_the_county(r):
    uranium = pm.Data("uranium", [0.5, -0.25, 1.0], dims="county")
    gamma = pm.Normal("gamma", 0, 10, shape=2)
    alpha = gamma[0] + gamma[1] * uranium + pm.Normal("eps", dims="county") * pm.HalfNormal("tau")
    pm.Normal("y", alpha[r.g] + pm.Normal("beta") * pm.Data("floor", r.h), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "floor": (0, 1)}, "public": ["uranium", "county"]}


@entry("indexed", coords={"school": ["A", "B", "C"]})
def schools_noncentred(r):
    eta = pm.Normal("eta", 0, 1, dims="school")
    theta = pm.Deterministic("theta", pm.Normal("mu", 0, 5) + pm.HalfCauchy("tau", 5) * eta, dims="school")
    pm.Normal("score", mu=theta[r.g], sigma=2.5, observed=r.x)
    return {"bounds": {"score": REALS}}


@entry("linear", coords={"cafe": COUNTY})
def cafes_varying_slopes_centred(r):
    chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.Exponential.dist(1.0))
    ab = pm.MvNormal("ab", mu=pm.Normal("ab_bar", 0, 2, shape=2), chol=chol, dims=("cafe", "effect"), shape=(3, 2))
    wait = ab[:, 0][r.g] + ab[:, 1][r.g] * r.z
    pm.Normal("wait", wait, pm.Exponential("sigma", 1), observed=r.x)
    return {"bounds": {"wait": REALS, "wait:1": (-1, 1)}}


@entry("linear", coords=lambda n: {"subject": COUNTY, "obs": np.arange(n)})
def sleep_study(r):
    days, subject = pm.Data("days", r.t.astype(float), dims="obs"), pm.Data("subject_idx", r.g.astype("uint8"), dims="obs")
    b = pm.Normal("b", 0, 2, shape=2)
    a_s, b_s = pm.Normal("a_s", 0, 1, dims="subject"), pm.Normal("b_s", 0, 1, dims="subject")
    mu = (b[0] + a_s[subject]) + (b[1] + b_s[subject]) * days
    pm.Normal("reaction", mu, pm.HalfNormal("sigma", dims="subject")[subject], observed=r.x, dims="obs")
    return {"bounds": {"reaction": REALS, "days": (0, 4)}, "public": ["subject"]}


@entry("indexed", coords={"county": COUNTY, "region": TOWN})
def counties_within_regions(r):
    region_of = pm.Data("region_of", [0, 1, 1], dims="county")
    region = pm.Normal("a_region", 0, 1, dims="region")
    county = pm.Deterministic("county_effect", region[region_of] + 0.5 * pm.Normal("z", dims="county"), dims="county")
    pm.Bernoulli("y", logit_p=county[r.g], observed=r.y)
    return {"public": ["region_of"]}


@entry("indexed", coords={"area": COUNTY})
def areas_with_a_car_prior(r):
    W = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0.0]])
    phi = pm.CAR("phi", mu=np.zeros(3), tau=1.0, alpha=0.5, W=W, dims="area")
    pm.Poisson("k", pm.math.exp(pm.Normal("a") + phi[r.g]), observed=r.k)
    return {"bounds": {"k": COUNTS}}


@entry("indexed", coords={"week": range(5)})
def weekly_random_walk(r):
    week = pm.Data("week_idx", r.t)
    walk = pm.GaussianRandomWalk("walk", sigma=pm.HalfNormal("s"), init_dist=pm.Normal.dist(0, 1), dims="week")
    pm.Bernoulli("y", p=pm.math.sigmoid(walk[week]), observed=r.y)
    return {}


@entry("indexed")
def yearly_latent_gp(r):
    years = np.arange(5.0)[:, None]
    f = pm.gp.Latent(cov_func=pm.gp.cov.ExpQuad(1, ls=pm.Gamma("ls", 2, 1))).prior("f", X=years)
    pm.Bernoulli("y", logit_p=f[r.t], observed=r.y)
    return {"public": ["y:0"]}


@entry("indexed", coords={"dept": COUNTY, "gender": TOWN})
def zero_sum_departments(r):
    d = pm.ZeroSumNormal("d", sigma=1, dims="dept")
    a = pm.Normal("a", dims="gender")
    pm.Bernoulli("admit", logit_p=a[r.h] + d[r.g], observed=r.y)
    return {"public": ["dept"]}


# ---------- item response, sports, admissions, experiments
@entry("indexed", coords={"student": COUNTY, "item": range(4)})
def item_response_1pl(r):
    theta, b = pm.Normal("theta", dims="student"), pm.Normal("b", 0, 2, dims="item")
    pm.Bernoulli("correct", logit_p=theta[r.g] - b[r.i], observed=r.y)
    return {}


@entry("indexed", coords={"student": COUNTY, "item": range(4)})
def item_response_2pl(r):
    student, item = pm.Data("student_idx", r.g), pm.Data("item_idx", r.i)
    a, b = pm.LogNormal("a", 0, 0.5, dims="item"), pm.Normal("b", dims="item")
    theta = pm.Normal("theta", dims="student")
    p = pm.Deterministic("p", pm.math.invlogit(a[item] * (theta[student] - b[item])))
    pm.Bernoulli("correct", p=p, observed=r.y)
    return {"public": ["item_idx"]}


@entry("shared", coords=lambda n: {"item": ITEM, "person": np.arange(n)})
def item_response_wide_without_persons(r):
    pm.Bernoulli("Y", logit_p=-pm.Normal("difficulty", dims="item"), observed=pd.DataFrame(r.Y, columns=ITEM), dims=("person", "item"))
    return {}


@entry("indexed", "indexed", coords=lambda n: {"team": ["Wales", "France", "Ireland", "Italy"], "match": np.arange(n)})
def rugby(r):
    home = pm.Data("home_team", r.i, dims="match")
    away = pm.Data("away_team", (r.i + 1 + r.g) % 4, dims="match")
    home_advantage, intercept = pm.Normal("home", 0, 1), pm.Normal("intercept", 1, 1)
    atts_star = pm.Normal("atts_star", 0, pm.HalfNormal("sd_att", 2), dims="team")
    defs_star = pm.Normal("defs_star", 0, pm.HalfNormal("sd_def", 2), dims="team")
    atts = pm.Deterministic("atts", atts_star - pt.mean(atts_star), dims="team")
    defs = pm.Deterministic("defs", defs_star - pt.mean(defs_star), dims="team")
    home_theta = pt.exp(intercept + home_advantage + atts[home] + defs[away])
    away_theta = pt.exp(intercept + atts[away] + defs[home])
    pm.Poisson("home_points", mu=home_theta, observed=r.k, dims="match")
    pm.Poisson("away_points", mu=away_theta, observed=(r.k + r.i) % 7, dims="match")
    return {"public": ["home_team", "away_team"], "bounds": {"home_points": COUNTS, "away_points": COUNTS}}


@entry("indexed", coords={"gender": TOWN, "dept": COUNTY})
def admissions_one_row_per_applicant(r):
    p = pm.Beta("p", 1, 1, dims=("gender", "dept"))
    pm.Bernoulli("admit", p[r.h, r.g], observed=r.y)
    return {}


@entry("aggregate", rows=12, coords={"gender": TOWN, "dept": COUNTY})
def admissions_as_totals(r):
    applications = 10 + r.k
    alpha, delta = pm.Normal("alpha", 0, 1.5, dims="gender"), pm.Normal("delta", 0, 1.5, dims="dept")
    p = pm.math.invlogit(alpha[r.h] + delta[r.g])
    pm.Binomial("admit", n=pm.Data("applications", applications), p=p, observed=r.k)
    return {"unit": "individual", "public": ["applications", "gender", "dept"]}


@entry("aggregate", rows=10, coords={"contact": ["low", "high"]})
def tools_of_islands(r):
    cid = pm.Data("cid", r.h)
    a, b = pm.Normal("a", 3, 0.5, dims="contact"), pm.Normal("b", 0, 0.2, dims="contact")
    pm.Poisson("tools", pm.math.exp(a[cid] + b[cid] * pm.Data("log_pop", r.z[:10])), observed=r.k * 5)
    return {"unit": pmdp.Individual(events=1), "public": ["cid", "log_pop"]}


@entry("aggregate", rows=12)
def votes_of_towns(r):
    """Votes for three parties in every town, which are partially pooled."""
    votes = np.stack([r.k, 1 + r.k[::-1], 7 + r.h], axis=1)
    pooled = pm.Dirichlet("mean", np.ones(3)) * pm.Gamma("concentration", 4, 0.2)
    share = pm.Dirichlet("share", pooled, shape=(12, 3))
    pm.Multinomial("votes", n=pm.Data("voters", votes.sum(axis=1)), p=share, observed=votes)
    return {"unit": "individual", "public": ["voters"]}


@entry("aggregate", rows=10)
def ways_to_work(r):
    """A multinomial logit of counts in districts, with a public covariate."""
    counts = np.stack([r.k, 3 + r.h, 9 + r.k], axis=1)
    logits = pm.Normal("a", 0, 2, shape=3) + pm.Data("rain", r.z[:10])[:, None] * pm.Normal("b", 0, 1, shape=3)
    pm.Multinomial("ways", n=pm.Data("people", counts.sum(axis=1)), p=pm.math.softmax(logits, axis=1), observed=counts)
    return {"unit": "individual", "public": ["people", "rain"]}


@entry("shared", "shared")
def ab_test(r):
    p_A, p_B = pm.Uniform("p_A", 0, 1), pm.Uniform("p_B", 0, 1)
    pm.Deterministic("delta", p_A - p_B)
    pm.Bernoulli("obs_A", p_A, observed=r.y)
    pm.Bernoulli("obs_B", p_B, observed=r.h[: len(r.y) - 3])
    return {}


@entry("table")
def ab_test_by_switch(r):
    treated = pm.Data("treated", r.h)
    p = pm.math.switch(pt.eq(treated, 1), pm.Beta("p_b", 1, 1), pm.Beta("p_a", 1, 1))
    pm.Bernoulli("converted", p, observed=r.y)
    return {"bounds": {"treated": (0, 1)}}


@entry("shared", "shared")
def two_groups_compared(r):
    mu, sigma = pm.Normal("mu", 2, 4, shape=2), pm.Uniform("sigma", 0.1, 10, shape=2)
    pm.Normal("drug", mu=mu[0], sigma=sigma[0], observed=r.x)
    pm.Normal("placebo", mu=mu[1], tau=sigma[1] ** -2, observed=pd.Series(r.x[::-1].copy()))
    pm.Deterministic("effect", (mu[0] - mu[1]) / pm.math.sqrt((sigma**2).sum() / 2))
    return {"bounds": {"drug": REALS, "placebo": REALS}}


@entry("shared")
def coin_by_binomial(r):
    pm.Binomial("heads", n=6, p=pm.Beta("p", 2, 2), observed=r.k)
    return {}


@entry("indexed", coords={"tank": COUNTY})
def reed_frogs(r):
    """Trials that differ by row are public; the survivors are not."""
    density = np.array([6, 8, 10])[r.g]
    a = pm.Normal("a", pm.Normal("a_bar", 0, 1.5), pm.Exponential("sigma", 1), dims="tank")
    pm.Binomial("surv", n=density, p=pm.math.invlogit(a[r.g]), observed=r.k)
    return {"public": [r.g, "surv:0"], "bounds": {"surv": (0, 10)}}


@entry("indexed", coords={"player": COUNTY})
def free_throws_until_a_hit(r):
    pm.Geometric("throws", p=pm.Beta("p", 2, 2, dims="player")[r.g], observed=r.k + 1)
    return {"bounds": {"throws": (1, 7)}}


# ---------- counts
@entry("indexed", coords={"county": COUNTY})
def crimes_with_exposure(r):
    exposure = pm.Data("exposure", 2.0**r.i)
    log_rate = pm.Normal("log_rate", pm.Normal("m"), pm.HalfNormal("s"), dims="county")
    pm.Poisson("crimes", mu=pm.math.exp(log_rate[r.g] + pt.log(exposure)), observed=r.k)
    return {"public": ["exposure"], "bounds": {"crimes": COUNTS}}


@entry("table")
def sneezes_with_interaction(r):
    df = pd.DataFrame({"nsneeze": r.k, "alcohol": r.h, "nomeds": r.g > 0})
    alcohol, nomeds = pm.Data("alcohol", df["alcohol"].values), pm.Data("nomeds", df["nomeds"].values)
    b = pm.Normal("b", 0, 1, shape=4)
    mu = pm.math.exp(b[0] + b[1] * alcohol + b[2] * nomeds + b[3] * alcohol * nomeds)
    pm.Poisson("nsneeze", mu=mu, observed=df["nsneeze"])
    return {"bounds": {"nsneeze": COUNTS, "alcohol": (0, 1)}}


@entry("table", coords={"interval": ITEM})
def piecewise_hazard(r):
    death = r.Y
    lambda0 = pm.Gamma("lambda0", 0.5, 1, dims="interval")
    metastized = pm.Data("metastized", r.h)
    lambda_ = pm.Deterministic("lambda_", pt.outer(pt.exp(pm.Normal("beta") * metastized), lambda0))
    mu = pm.Deterministic("mu", pm.Data("exposure", np.array([[1, 0.5], [1, 1]])[r.y]) * lambda_)
    pm.Poisson("obs", mu, observed=death)
    return {"public": ["exposure"], "bounds": {"obs": (0, 1), "metastized": (0, 1)}}


@entry("table", tolerance=0.02)  # cells that are empty count for a thousandth of a record
def design_of_coded_columns(r):
    X = pd.get_dummies(pd.Series(pd.Categorical(r.g, categories=range(3))), drop_first=True)
    pm.modelcontext(None).add_coords({"predictor": [str(c) for c in X.columns]})
    pm.Poisson("k", pm.math.exp(pm.Normal("a") + X.values @ pm.Normal("b", dims="predictor")), observed=r.k)
    return {"bounds": {"k": COUNTS}}


# Cells that are empty count for a thousandth of a record.
@entry("table", tolerance=0.02, coords={"state": COUNTY, "age": range(4), "edu": TOWN})
def poststratification(r):
    state, age, edu, male = (pm.Data(name, v) for name, v in (("st", r.g), ("ag", r.i), ("ed", r.h), ("male", r.Y[:, 0])))
    eta = (
        pm.Normal("b0")
        + pm.Normal("a_state", 0, pm.HalfNormal("s1"), dims="state")[state]
        + pm.Normal("a_age", dims="age")[age]
        + pm.Normal("a_age_edu", dims=("age", "edu"))[age, edu]
        + pm.Normal("b_male") * male
    )
    pm.Bernoulli("yes", logit_p=eta, observed=r.y)
    return {"bounds": {"male": (0, 1)}}


# ---------- linear regression
@entry("linear")
def howell_heights(r):
    a, b, sigma = pm.Normal("a", 2, 20), pm.LogNormal("b", 0, 1), pm.Uniform("sigma", 0, 50)
    mu = pm.Deterministic("mu", a + b * (r.z - 0.25))
    pm.Normal("height", mu=mu, sigma=sigma, observed=r.x)
    return {"bounds": {"height": REALS, "height:0": (-1.25, 0.75)}}


@entry("linear", tolerance=1e-2)
def polynomial_in_the_graph(r):
    """Released as a Chebyshev polynomial, w**3 - .7502 w, whose values are no dyadic numbers."""
    w = pm.Data("weight", r.z, dims="obs")
    b = pm.Normal("b", 0, 1, shape=3)
    pm.Normal("height", b[0] * w + b[1] * w**2 + b[2] * w**3 + pm.Normal("a"), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"height": REALS, "weight": (-1, 1)}}


@entry("linear")
def polynomial_of_stacked_columns(r):
    X = np.vstack((r.z, r.z**2)).T
    mu = pm.Normal("a", 2, 10) + pm.math.dot(X, pm.Normal("b", 0, 10, shape=2))
    pm.Normal("height", mu, pm.Uniform("s", 0, 50), observed=r.x)
    return {"bounds": {"height": REALS, "height:0": [(-1, 1), (0, 1)]}}


@entry("linear")
def polynomial_stacked_in_the_graph(r):
    z = pm.Data("z", r.z)
    X = pt.stack([pt.ones_like(z), z, z**2], axis=1)
    pm.Normal("x", X @ pm.Normal("b", 0, 10, shape=3), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"x": REALS, "z": (-1, 1)}}


@entry("linear", coords={"cid": ["not", "africa"]})
def ruggedness_in_africa(r):
    cid, rugged = pm.Data("cid_idx", r.h), pm.Data("rugged_std", r.z)
    a, b = pm.Normal("a", 1, 0.1, dims="cid"), pm.Normal("b", 0, 0.3, dims="cid")
    pm.Normal("log_gdp", a[cid] + b[cid] * (rugged - 0.125), pm.Exponential("sigma", 1), observed=r.x)
    return {"bounds": {"log_gdp": REALS, "rugged_std": (-1, 1)}}


@entry("linear")
def tulips_with_interaction(r):
    a, bw, bs, bws = (pm.Normal(name, 0, 0.5) for name in ("a", "bw", "bs", "bws"))
    water, shade = pm.Data("water", r.z), pm.Data("shade", r.w)
    pm.Normal("blooms", a + bw * water + bs * shade + bws * water * shade, pm.Exponential("sigma", 1), observed=r.x)
    return {"bounds": {"blooms": REALS, "water": (-1, 1), "shade": (-1, 1)}}


@entry("linear")
def muscle_mass_moderation(r):
    """A slope that is itself linear in a moderator: a product of two sums."""
    x, m = pm.Data("x", r.z), pm.Data("m", r.w)
    beta = pm.Normal("beta", shape=4)
    pm.Normal("y", beta[0] + (beta[1] + beta[2] * m) * x + beta[3] * m, pm.HalfCauchy("sigma", 1), observed=r.x)
    return {"bounds": {"y": REALS, "x": (-1, 1), "m": (-1, 1)}}


@entry("linear")
def difference_in_differences(r):
    t, treated, group = pm.Data("t", r.t), pm.Data("treated", r.h), pm.Data("group", r.y)
    intercept, trend, delta_group, delta = (pm.Normal(name, 0, 5) for name in ("intercept", "trend", "Δgroup", "Δ"))
    mu = pm.Deterministic("mu", intercept + (delta_group * group) + (t * trend) + (delta * treated * group))
    pm.Normal("obs", mu, pm.HalfNormal("sigma", 5), observed=r.x)
    return {"bounds": {"obs": REALS, "t": (0, 4), "treated": (0, 1), "group": (0, 1)}}


@entry("linear", tolerance=0.05)
def interrupted_time_series(r):
    t = np.arange(len(r.y)) / len(r.y)
    after = (t > 0.7).astype(float)
    X = pm.Data("X", np.column_stack([np.ones(len(r.y)), t, after, after * (t - 0.7)]))
    pm.Normal("y", pt.dot(X, pm.Normal("beta", 0, 2, shape=4)), pm.HalfNormal("sigma", 2), observed=r.x)
    return {"bounds": {"y": REALS}, "public": ["X"]}


@entry("linear")
def regression_discontinuity(r):
    x, treated = pm.Data("x", r.z), pm.Data("treated", (r.z < 0).astype(float))
    delta = pm.Cauchy("effect", alpha=0, beta=1)
    mu = pm.Deterministic("mu", x + (delta * treated))
    pm.Normal("y", mu=mu, sigma=pm.HalfNormal("sigma", 1), observed=r.x)
    return {"bounds": {"y": REALS, "x": (-1, 1), "treated": (0, 1)}}


@entry("linear")
def discontinuity_by_switch(r):
    x = pm.Data("running", r.z)
    jump = pt.switch(x < 0, 0.0, pm.Normal("jump"))
    pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x + jump, pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "running": (-1, 1)}}


@entry("linear", tolerance=0.2)
def cherry_blossoms_with_splines(r):
    B = dmatrix("bs(year, df=5, degree=3, include_intercept=True, lower_bound=-1, upper_bound=1) - 1", {"year": r.z})
    pm.modelcontext(None).add_coords({"splines": np.arange(B.shape[1])})
    a, w = pm.Normal("a", 2, 5), pm.Normal("w", mu=0, sigma=3, dims="splines")
    mu = pm.Deterministic("mu", a + pm.math.dot(np.asarray(B, order="F"), w.T))
    pm.Normal("D", mu=mu, sigma=pm.Exponential("sigma", 1), observed=r.x)
    return {"bounds": {"D": REALS}, "public": ["D:0"]}


@entry("linear", tolerance=0.2, coords={"basis": range(6)})
def hsgp_linearised(r):
    Xs = pm.Data("Xs", r.z[:, None])
    gp = pm.gp.HSGP(m=[6], L=[2.0], cov_func=pm.Exponential("eta", 1) ** 2 * pm.gp.cov.Matern52(1, ls=pm.InverseGamma("ls", 3, 1)))
    gp._X_center = np.array([0.0])  # rather than the middle of these records: dummy rows would be another model
    phi, sqrt_psd = gp.prior_linearized(Xs)
    beta = pm.Normal("beta", 0, 1, dims="basis")
    f = pm.Deterministic("f", phi @ (beta * sqrt_psd))
    pm.Normal("y", f, pm.HalfNormal("sigma"), observed=r.x)
    return {"bounds": {"y": REALS}, "public": ["Xs", "y:0", "y:1", "y:2", "y:3"]}


@entry("linear", tolerance=0.2)
def hsgp_of_a_private_covariate(r):
    gp = pm.gp.HSGP(m=[3], L=[2.0], cov_func=pm.Exponential("eta", 1) ** 2 * pm.gp.cov.ExpQuad(1, ls=1.0))
    gp._X_center = np.array([0.0])
    phi, sqrt_psd = gp.prior_linearized(pm.Data("age", r.z)[:, None])
    f = pm.Normal("a", 0, 5) + phi @ (pm.Normal("beta", 0, 1, shape=3) * sqrt_psd)
    pm.Normal("y", f, pm.HalfNormal("sigma"), observed=r.x)
    return {"bounds": {"y": REALS, "age": (-1, 1)}, "public": ["y:0", "y:1", "y:2", "y:3"]}


@entry("linear", tolerance=0.2)
def bumps_of_a_private_covariate(r):
    bumps = pt.exp(-2 * (pm.Data("age", r.z)[:, None] - np.linspace(-1, 1, 3)) ** 2)
    pm.Normal("y", bumps @ pm.Normal("b", 0, 2, shape=3), pm.HalfNormal("sigma"), observed=r.x)
    return {"bounds": {"y": REALS, "age": (-1, 1)}, "public": ["y:0"]}


@entry("linear", tolerance=0.2)
def bumps_at_a_row_of_knots(r):
    knots = np.linspace(-1, 1, 3)
    bumps = pm.math.exp(-(((pm.Data("age", r.z)[:, None] - knots[None, :]) / np.array([[0.5, 0.7, 0.5]])) ** 2))
    pm.Normal("y", (bumps * pm.Normal("b", 0, 2, shape=3)).sum(axis=1), pm.HalfNormal("sigma"), observed=r.x)
    return {"bounds": {"y": REALS, "age": (-1, 1)}, "public": ["y:0", "y:1"]}


@entry("linear", tolerance=0.2)
def bumps_with_knots_first(r):
    knots = np.linspace(-1, 1, 3)
    age = pm.Data("age", r.z)
    b = pm.Normal("b", 0, 2, shape=3)
    pm.Normal("y", b @ pt.exp(-2 * (knots[:, None] - age[None, :]) ** 2), pm.HalfNormal("sigma"), observed=r.x)
    return {"bounds": {"y": REALS, "age": (-1, 1)}, "public": ["y:0"]}


@entry("linear")
def slope_about_a_row_of_knots(r):
    apart = pm.Data("age", r.z)[:, None] - np.array([[-0.5, 0.5]])
    pm.Normal("y", pm.math.dot(apart, pm.Normal("b", 0, 2, shape=2)), pm.HalfNormal("sigma"), observed=r.x)
    return {"bounds": {"y": REALS, "age": (-1, 1)}, "public": ["y:0"]}


@entry("indexed")
def hsgp_for_a_yes_or_no(r):
    gp = pm.gp.HSGP(m=[5], c=1.5, cov_func=pm.gp.cov.ExpQuad(1, ls=pm.InverseGamma("ls", 3, 1)))
    X = pm.Data("X", r.t.astype(float)[:, None])
    pm.Bernoulli("y", logit_p=pm.Normal("a") + gp.prior("f", X=X), observed=r.y)
    return {"public": ["X", "y:0", "y:1", "y:2", "y:3"]}


@entry("linear")
def sum_of_products(r):
    b = pm.Laplace("b", 0, 1, shape=3)
    pm.Normal("y", pm.Normal("a") + (pm.Data("X", r.X) * b).sum(axis=-1), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "X": (-1, 1)}}


@entry("linear", coords={"coef": list("abc")})
def dot_method(r):
    X = pm.Data("X", pd.DataFrame(r.X, columns=list("abc")))
    pm.Normal("y", X.dot(pm.Normal("b", dims="coef")), 1.5, observed=pm.Data("target", r.x))
    return {"bounds": {"y": REALS, "X": (-1, 1)}}


@entry("linear")
def transposed_dot(r):
    pm.Normal("y", pm.Normal("a") + pm.math.dot(pm.Normal("b", shape=3), r.X.T), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS}, "public": ["y:0"]}


@entry("linear")
def columns_by_hand(r):
    X = pm.Data("X", r.X)
    b = pm.Normal("b", shape=4)
    pm.Normal("y", b[0] + b[1] * X[:, 0] + b[2] * X[:, 1] + b[3] * X[:, 2], pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "X": (-1, 1)}}


@entry("linear")
def intercept_by_concatenation(r):
    X = pm.Data("X", r.X)
    design = pm.math.concatenate([pt.ones((X.shape[0], 1)), X], axis=1)
    pm.Normal("y", pt.dot(design, pm.Normal("b", shape=4)), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "X": (-1, 1)}}


@entry("linear")
def public_and_private_columns(r):
    X, z = pm.Data("X", r.X), pm.Data("z", r.z)
    mu = pm.Normal("a") + X @ pm.Normal("b", shape=3) + z * pm.Normal("c")
    pm.Normal("y", mu, pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "z": (-1, 1)}, "public": ["X"]}


@entry("linear")
def horseshoe(r):
    tau, lam = pm.HalfCauchy("tau", 1), pm.HalfCauchy("lam", 1, shape=3)
    beta = pm.Deterministic("beta", pm.Normal("z", shape=3) * lam * tau)
    pm.Normal("y", pt.dot(pm.Data("X", r.X), beta) + pm.Normal("beta0", 2, 10), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "X": (-1, 1)}}


@entry("linear", coords={"group": COUNTY, "coef": list("abc")})
def random_slopes_by_matrix(r):
    b = pm.Normal("b", dims=("group", "coef"))
    pm.Normal("y", (b[r.g] * pm.Data("X", r.X)).sum(-1), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "X": (-1, 1)}, "public": ["group"]}


@entry("linear", coords=lambda n: {"g__factor_dim": COUNTY, "row": np.arange(n)})
def as_bambi_builds_it(r):
    """A common design centred beforehand, coefficients joined from scalars, and expanded group effects."""
    intercept = pm.Normal("Intercept", 0, 5)
    common = pt.concatenate([pt.atleast_1d(pm.Normal("z")), pt.atleast_1d(pm.Normal("w"))])
    offset = pm.Normal("1|g_offset", 0, 1, dims="g__factor_dim") * pm.HalfNormal("1|g_sigma", 1)
    effect = pm.Deterministic("1|g", offset, dims="g__factor_dim")
    mu = intercept + pt.dot(np.column_stack([r.z, r.w]), common) + effect[r.g]
    mu = pm.Deterministic("mu", mu, dims="row")
    pm.Normal("y", mu, pm.HalfStudentT("sigma", 4, 1), observed=r.x, dims="row")
    return {"bounds": {"y": REALS, "y:0": (-1, 1)}}


@entry("linear", tolerance=1e-2)
def log_incomes_regressed(r):
    mu = pm.Normal("a") + pm.Normal("b") * pm.Data("z", r.z)
    pm.LogNormal("income", mu, pm.HalfNormal("s"), observed=np.exp(r.x))
    return {"bounds": {"income": (np.exp(-4), np.exp(8)), "z": (-1, 1)}}


# ---------- several responses
@entry("linear")
def correlated_responses(r):
    chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.Exponential.dist(1.0))
    pm.MvNormal("Y", mu=pm.Normal("mu", 0, 5, shape=2), chol=chol, observed=r.YX)
    return {"bounds": {"Y": [REALS, (-1, 1)]}}


@entry("linear", coords={"outcome": ITEM, "coef": list("abc")})
def seemingly_unrelated_regressions(r):
    B = pm.Normal("B", dims=("coef", "outcome"))
    mu = pm.Normal("a", dims="outcome") + pt.dot(pm.Data("X", r.X), B)
    pm.MvNormal("Y", mu, cov=np.array([[1, 0.25], [0.25, 2.0]]), observed=r.YX)
    return {"bounds": {"Y": [REALS, (-1, 1)]}, "public": ["X", "Y:0"]}


@entry("indexed", coords=lambda n: {"class": COUNTY, "feature": ITEM, "obs": np.arange(n)})
def naive_bayes(r):
    label = pm.Data("label", r.g)
    mu, sigma = pm.Normal("mu", 0, 3, dims=("class", "feature")), pm.HalfNormal("sigma", 2, dims=("class", "feature"))
    pm.Normal("X", mu=mu[label], sigma=sigma[label], observed=np.column_stack([r.x, r.x[::-1]]), dims=("obs", "feature"))
    return {"bounds": {"X": REALS}}


@entry("indexed", coords={"group": COUNTY, "item": ITEM})
def one_effect_for_two_answers(r):
    theta = pm.Normal("theta", dims="group")
    pm.Bernoulli("Y", p=pm.math.invlogit(theta[r.g][:, None] - pm.Normal("b", dims="item")), observed=r.Y)
    return {}


@entry("linear")
def growth_curves_in_columns(r):
    mu = pm.Normal("a", shape=2) + r.z[:, None] * pm.Normal("b", shape=2)
    pm.Normal("Y", mu, pm.HalfNormal("s", shape=2), observed=np.column_stack([r.x, r.x[::-1]]))
    return {"bounds": {"Y": REALS, "Y:0": (-1, 1)}}


# ---------- categories and ratings
@entry("table")
def trolley_ratings(r):
    action, intention = pm.Data("action", r.h), pm.Data("intention", r.y)
    cutpoints = pm.Normal("cutpoints", mu=[-1, 0, 1.5], sigma=1.5, transform=pm.distributions.transforms.ordered, shape=3)
    phi = pm.Normal("bA") * action + (pm.Normal("bI") + pm.Normal("bIA") * action) * intention
    pm.OrderedLogistic("response", eta=phi, cutpoints=cutpoints, observed=r.c)
    return {"bounds": {"action": (0, 1), "intention": (0, 1)}}


@entry("indexed")
def monotonic_education(r):
    delta = pt.concatenate([pt.zeros(1), pm.Dirichlet("delta", np.ones(3))])
    cutpoints = pm.Normal("cut", 0, 2, shape=3, transform=pm.distributions.transforms.ordered, initval=[-1.0, 0.0, 1.0])
    eta = pm.Normal("bE") * delta.cumsum()[pm.Data("edu", r.i)]
    pm.OrderedLogistic("response", eta=eta, cutpoints=cutpoints, observed=r.c, compute_p=False)
    return {}


@entry("table")
def iris_by_softmax(r):
    X = pm.Data("X", np.column_stack([r.h, r.g]))
    alpha, beta = pm.Normal("alpha", 0, 5, shape=4), pm.Normal("beta", 0, 5, shape=(2, 4))
    theta = pm.Deterministic("theta", pm.math.softmax(alpha + pt.dot(X, beta), axis=1))
    pm.Categorical("species", p=theta, observed=r.c)
    return {"bounds": {"X": [(0, 1), (0, 2)]}}


@entry("indexed", coords={"group": COUNTY})
def career_choice(r):
    """A reference level of zeros joined in the graph, softmax along the last axis."""
    b = pm.Normal("b", shape=(3, 3))
    s = pm.math.concatenate([b, pt.zeros((3, 1))], axis=1)
    pm.Categorical("career", p=pt.special.softmax(s, axis=-1)[r.g], observed=r.c)
    return {"public": ["career:0"]}


@entry("indexed")
def reference_level_by_set_subtensor(r):
    b = pt.set_subtensor(pt.zeros(3)[1:], pm.Normal("b", shape=2))
    pm.Bernoulli("y", logit_p=pm.Normal("a") + b[r.g], observed=r.y)
    return {}


# ---------- spellings of the same few things
@entry("indexed")
def taken(r):
    pm.Bernoulli("y", pt.take(pm.Beta("p", 1, 1, shape=3), r.g.astype("int8")), observed=r.y)
    return {}


@entry("indexed")
def categorical_codes(r):
    df = pd.DataFrame({"group": pd.Categorical(np.array(COUNTY)[r.g], categories=COUNTY), "y": r.y})
    pm.modelcontext(None).add_coords({"group": df["group"].cat.categories, "obs_id": df.index})
    p = pm.Beta("p", 1, 1, dims="group")
    pm.Bernoulli("y", p=p[df["group"].cat.codes.to_numpy()], observed=df["y"], dims="obs_id")
    return {"public": ["group"]}


@entry("table")
def truth_values_as_covariates(r):
    smoker, old = pm.Data("smoker", r.h.astype(bool)), r.g == 2
    eta = pm.Normal("a") + pm.Normal("b") * smoker + pm.Normal("c") * old
    pm.Bernoulli("y", p=pm.math.invprobit(eta), observed=r.y.astype(bool))
    return {}


@entry("table", coords={"group": COUNTY})
def data_of_every_kind(r):
    """Mutable data with dims, cast, named and renamed on the way."""
    pm.modelcontext(None).add_coord("obs", np.arange(len(r.y)))
    y, g, age = pm.Data("y_data", r.y, dims="obs"), pm.Data("g", r.g.astype("int32"), dims=["obs"]), pm.Data("age", 20 + r.i)
    decades = pm.Deterministic("decades", (age - 20) / 10)
    eta = pm.Deterministic("eta", pm.Normal("a", dims="group")[g] + pm.Normal("b") * decades, dims="obs")
    pm.Bernoulli("y", p=pm.Deterministic("p", pm.math.sigmoid(eta)), observed=y, dims="obs")
    return {"bounds": {"age": (20, 23)}}


@entry("indexed")
def public_age_standardised(r):
    age = 20.0 + r.i
    b = pm.Normal("b", 0, [2.0, 1.0, 0.5])
    eta = b[0] + b[1] * (age - 21.5) / 1.1 + b[2] * ((age - 21.5) / 1.1) ** 2
    pm.Bernoulli("y", logit_p=eta, observed=r.y)
    return {"public": ["y:0", "y:1"]}


@entry("table")
def where_and_abs(r):
    d = pm.Data("distance", r.t - 2)
    mu = pm.math.where(d >= 0, pm.Normal("a") * d, pm.Normal("b") * pm.math.abs(d))
    pm.Normal("x", mu, pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"x": REALS, "distance": (-2, 2)}}


@entry("table")
def nonlinear_in_a_coded_dose(r):
    dose = pm.Data("dose", r.t)
    emax, ec50, hill = pm.LogNormal("emax", 1, 0.5), pm.LogNormal("ec50", 0, 0.5), pm.LogNormal("hill", 0, 0.3)
    pm.Normal("x", emax * dose**hill / (ec50**hill + dose**hill + 1e-3), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"x": REALS, "dose": (0, 4)}}


@entry("indexed", coords={"group": COUNTY})
def group_spread_and_mean(r):
    g = pm.Data("g", r.g)
    sigma = pm.math.exp(pm.Normal("log_sigma", dims="group"))
    pm.Normal("x", pm.Normal("mu", 0, 5, dims="group")[g], sigma[g], observed=r.x)
    return {"bounds": {"x": REALS}}


@entry("indexed")
def three_way_table_of_effects(r):
    b = pm.Normal("b", shape=(3, 2, 4))
    pm.Bernoulli("y", logit_p=b[r.g, r.h, r.i], observed=r.y)
    return {"public": ["y:2"]}


@entry("indexed", coords={"new": [10, 20]})
def data_shared_by_prior_predictions(r):
    """A public grid stays for predictions."""
    grid = pm.Data("grid", [0.0, 1.0], dims="new")
    a, b = pm.Normal("a", shape=3), pm.Normal("b")
    pm.Deterministic("prediction", a[0] + b * grid, dims="new")
    pm.Poisson("k", pt.exp(a[r.g] + b), observed=r.k)
    return {"public": ["grid"], "bounds": {"k": COUNTS}}


# ---------- counts that are tabulated: the last value stands for all above it, so no record has it
BEYOND = (0, 9)


@entry("indexed", coords={"camp": COUNTY})
def zero_inflated_catches(r):
    psi, mu = pm.Beta("psi", 1, 1), pm.math.exp(pm.Normal("a", 0, 1, dims="camp"))
    pm.ZeroInflatedPoisson("fish", psi=psi, mu=mu[r.g], observed=r.k)
    return {"bounds": {"fish": BEYOND}}


@entry("table")
def drunken_monks(r):
    drunk = pm.Data("drunk", r.h)
    p = pm.math.invlogit(pm.Normal("ap") + pm.Normal("bp") * drunk)
    pm.ZeroInflatedPoisson("y", 1 - p, pm.math.exp(pm.Normal("al") + pm.Normal("bl") * drunk), observed=r.k)
    return {"bounds": {"y": BEYOND, "drunk": (0, 1)}}


@entry("indexed")
def hurdle_visits(r):
    pm.HurdlePoisson("visits", psi=pm.Beta("psi", 1, 1), mu=pm.Gamma("mu", 2, 1, shape=3)[r.g], observed=r.k)
    return {"bounds": {"visits": BEYOND}}


@entry("indexed")
def negative_binomial_counts(r):
    mu = pm.math.exp(pm.Normal("b0") + pm.Normal("b", shape=2)[r.h])
    pm.NegativeBinomial("y", mu=mu, alpha=pm.Exponential("alpha", 1), observed=r.k)
    return {"bounds": {"y": BEYOND}}


@entry("indexed")
def beta_binomial_admissions(r):
    pbar = pm.math.invlogit(pm.Normal("a", 0, 1.5, shape=2))
    theta = pm.Exponential("phi", 1) + 2
    pm.BetaBinomial("admit", alpha=pbar[r.h] * theta, beta=(1 - pbar[r.h]) * theta, n=6, observed=r.k)
    return {"bounds": {"admit": COUNTS}}


@entry("indexed")
def ordered_probit_ratings(r):
    cutpoints = pm.Normal("cut", 0, 2, shape=3, transform=pm.distributions.transforms.ordered, initval=[-1.0, 0.0, 1.0])
    pm.OrderedProbit("rating", eta=pm.Normal("eta", shape=3)[r.g], cutpoints=cutpoints, sigma=1, observed=r.c, compute_p=False)
    return {}


@entry("shared")
def counts_from_one_on(r):
    pm.Truncated("size", pm.Poisson.dist(pm.Gamma("mu", 2, 1)), lower=1, observed=np.maximum(r.k, 1))
    return {"bounds": {"size": (1, 9)}}


@entry("shared")
def counts_up_to_five_or_more(r):
    pm.Censored("visits", pm.Poisson.dist(pm.Gamma("mu", 2, 1)), lower=None, upper=5, observed=np.minimum(r.k, 5))
    return {"bounds": {"visits": (0, 5)}}


@entry("shared")
def two_kinds_of_customers(r):
    mu = pm.Gamma("mu", 2, 1, shape=2)
    pm.Mixture("k", w=pm.Dirichlet("w", np.ones(2)), comp_dists=[pm.Poisson.dist(mu[0]), pm.Poisson.dist(mu[1])], observed=r.k)
    return {"bounds": {"k": BEYOND}}


# ---------- named dims
@entry("indexed", coords=lambda n: {"group": COUNTY, "obs": np.arange(n)})
def named_dims_by_group(r):
    idx = pmd.Data("idx", r.g, dims="obs")
    a = pmd.Normal("a", 0, 1, dims="group")
    pmd.Bernoulli("y", logit_p=a.isel(group=idx), observed=pmd.as_xtensor(r.y, dims=("obs",)))
    return {}


@entry("linear", coords=lambda n: {"coef": list("abc"), "obs": np.arange(n)})
def named_dims_regression(r):
    X = pmd.Data("X", r.X, dims=("obs", "coef"))
    b = pmd.Normal("b", 0, 1, dims="coef")
    y = pmd.Data("target", r.x, dims="obs")
    pmd.Normal("y", X.dot(b) + pmd.Normal("a", 0, 5), pmd.HalfNormal("s", 1), observed=y)
    return {"bounds": {"y": REALS, "X": (-1, 1)}}


# ---------- positive numbers, proportions, angles, compositions
def positive(r):
    return np.exp2(np.rint((r.x - 2) / 6 * 2**10) / 2**10)


POSITIVE = (0.5, 2.0)


@entry("indexed", tolerance=1e-2, coords={"queue": COUNTY})
def waiting_times_exponential(r):
    pm.Exponential("wait", pm.Gamma("rate", 2, 1, dims="queue")[r.g], observed=positive(r))
    return {"bounds": {"wait": POSITIVE}}


@entry("indexed", tolerance=1e-2)
def cats_adopted_exponential(r):
    black = pm.Data("black", r.h)
    pm.Exponential("days", 1 / pm.math.exp(pm.Normal("a", 0, 1, shape=2)[black]), observed=positive(r))
    return {"bounds": {"days": POSITIVE}, "public": ["black"]}


@entry("indexed", tolerance=1e-2)
def gamma_by_mean(r):
    mu, alpha = pm.math.exp(pm.Normal("a", shape=3))[r.g], pm.Exponential("alpha", 1) + 0.5
    pm.Gamma("cost", alpha=alpha, beta=alpha / mu, observed=positive(r))
    return {"bounds": {"cost": POSITIVE}}


@entry("indexed", tolerance=1e-2)
def weibull_of_known_shape(r):
    pm.Weibull("t", alpha=1.5, beta=pm.math.exp(pm.Normal("b", shape=2))[r.h], observed=positive(r))
    return {"bounds": {"t": POSITIVE}}


@entry("indexed", tolerance=1e-2)
def incomes_by_group(r):
    pm.LogNormal("income", pm.Normal("mu", shape=3)[r.g], pm.HalfNormal("s"), observed=positive(r))
    return {"bounds": {"income": POSITIVE}}


@entry("indexed", tolerance=1e-2)
def proportions_of_groups(r):
    mu, kappa = pm.Beta("mu", 2, 2, shape=3)[r.g], pm.Exponential("kappa", 0.2) + 1
    pm.Beta("share", alpha=mu * kappa, beta=(1 - mu) * kappa, observed=np.clip((r.z + 1) / 2, 0.0625, 0.9375))
    return {"bounds": {"share": (0.0625, 0.9375)}}


@entry("shared", tolerance=1e-2)
def tails_of_pareto(r):
    pm.Pareto("wealth", alpha=pm.Gamma("alpha", 2, 1), m=0.5, observed=positive(r))
    return {"bounds": {"wealth": POSITIVE}}


@entry("shared", tolerance=1e-2)
def follow_up_that_ends(r):
    lifetime = pm.Exponential.dist(scale=pm.InverseGamma("mean", 3, 4))
    pm.Censored("t", lifetime, lower=None, upper=1.5, observed=np.minimum(positive(r), 1.5))
    return {"bounds": {"t": (0, 1.5)}}


@entry("indexed", tolerance=1e-2)
def relapse_by_arm_until_the_trial_ends(r):
    hazard = pm.math.exp(pm.Normal("log_hazard", shape=3))
    pm.Censored("t", pm.Exponential.dist(hazard[r.g]), lower=None, upper=1.25, observed=np.minimum(positive(r), 1.25))
    return {"bounds": {"t": (0, 1.25)}}


@entry("shared", tolerance=1e-2)
def absolute_errors(r):
    pm.HalfNormal("e", sigma=pm.HalfCauchy("s", 1), observed=positive(r))
    return {"bounds": {"e": (0, 2)}}


@entry("indexed", tolerance=1e-2)
def directions_of_wind(r):
    mu = pm.VonMises("mu", 0, 1, shape=2)
    pm.VonMises("angle", mu=mu[r.h], kappa=pm.Gamma("kappa", 2, 1), observed=r.z * 3)
    return {}


@entry("indexed", coords={"region": COUNTY, "party": list("ABC")})
def votes_multinomial(r):
    votes = np.column_stack([r.k, 6 - r.k, np.zeros(len(r.y), dtype=int)])
    p = pm.Dirichlet("p", np.ones(3), dims=("region", "party"))
    pm.Multinomial("votes", n=6, p=p[r.g], observed=votes)
    return {}


@entry("shared", tolerance=1e-2)
def compositions_dirichlet(r):
    a = 0.25 + (r.z + 1) / 8
    pm.Dirichlet("parts", a=pm.Gamma("a", 2, 1, shape=3), observed=np.column_stack([a, 0.75 * (1 - a), 0.25 * (1 - a)]))
    return {"bounds": {"parts": (0.0625, 0.9375)}}


# ---------- more spellings
@entry("indexed")
def named_twice(r):
    p = pm.Deterministic("p", pm.Deterministic("theta", pm.math.sigmoid(pm.Normal("a", shape=3))))
    pm.Bernoulli("y", p[r.g], observed=r.y)
    return {}


@entry("table")
def codes_from_one_on(r):
    pm.Bernoulli("y", logit_p=pm.Normal("a", shape=3)[pm.Data("county", r.g + 1) - 1], observed=r.y)
    return {"bounds": {"county": (1, 3)}}


@entry("linear")
def stan_style_indices(r):
    county = pm.Data("county", r.g + 1)
    pm.Normal("y", pm.Normal("a", shape=3)[county - 1] + pm.Normal("b") * pm.Data("z", r.z), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "county": (1, 3), "z": (-1, 1)}}


# ---------- observed variables that depend on observed variables
@entry("shared", "indexed", "indexed", coords={"side": ["left", "right"], "vote": ["crime", "water"]})
def naive_bayes_of_votes(r):
    party = pm.Bernoulli("party", pm.Beta("share", 1, 1), observed=r.y)
    pm.Bernoulli("votes", pm.Beta("for", 1, 1, dims=("side", "vote"))[party], observed=r.Y)
    pm.Categorical("region", pm.Dirichlet("where", np.ones(4), shape=(2, 4))[party], observed=r.i)
    return {}


@entry("shared", "indexed", "indexed")
def network_of_two_parents(r):
    smoke = pm.Categorical("smoke", pm.Dirichlet("p", np.ones(3)), observed=r.g)
    cough = pm.Bernoulli("cough", pm.math.sigmoid(pm.Normal("a", shape=3))[smoke], observed=r.h)
    pm.Bernoulli("xray", pm.Beta("q", 1, 1, shape=(3, 2))[smoke, cough], observed=r.y)
    return {}


@entry("shared", "table")
def parent_by_its_data(r):
    """The parent is written as the ``pm.Data`` that it observes, and enters a logistic regression."""
    treated = pm.Data("treated", r.h)
    pm.Bernoulli("t", pm.Beta("share", 1, 1), observed=treated)
    pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Normal("b") * treated, observed=r.y)
    return {}


@entry("shared", "linear")
def mediator_and_outcome(r):
    m = pm.Normal("m", pm.Normal("a"), 1, observed=r.w)
    pm.Normal("y", pm.Normal("c") + pm.Normal("b") * m, pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"m": (-1, 1), "y": REALS}}
