"""Models as textbooks and tutorials spell them: McElreath (2020), Gelman and Hill (2007), Kruschke (2015), and the examples of PyMC, brms
and bambi. ``gallery.GALLERY`` holds these models, too.
"""

import numpy as np
import pandas as pd
import pymc as pm
import pymc.dims as pmd
import pytensor.tensor as pt
from gallery import COUNTS, COUNTY, GALLERY, POSITIVE, REALS, entry, positive
from patsy import dmatrix

import pymc_dp as pmdp

UNIT = (-1, 1)
BEYOND = (0, 12)
ORDERED = {"transform": pm.distributions.transforms.ordered, "initval": np.array([-1.0, 0, 1])}
FIRST = len(GALLERY)


# ---------- McElreath (2020)
@entry("linear")
def divorces(r):
    """m5.3, with columns of a data frame as they are."""
    df = pd.DataFrame({"A": r.z, "M": r.w, "D": r.x})
    a, b_age, b_marriage = pm.Normal("a", 0, 0.2), pm.Normal("bA", 0, 0.5), pm.Normal("bM", 0, 0.5)
    pm.Normal("D", mu=a + b_age * df["A"] + b_marriage * df["M"], sigma=pm.Exponential("sigma", 1), observed=df["D"])
    return {"bounds": {"D": REALS, "D:0": UNIT, "D:1": UNIT}}


@entry("indexed")
def milk_of_clades(r):
    """m5.9: levels by ``pandas.factorize``."""
    clade, _ = pd.factorize(np.array(["Ape", "New World Monkey", "Strepsirrhine"])[r.g])
    pm.Normal("kcal", pm.Normal("a", 0, 0.5, shape=3)[clade], pm.Exponential("sigma", 1), observed=r.x)
    return {"bounds": {"kcal": REALS}}


@entry("linear", tolerance=1e-2)
def plants_and_fungus(r):
    """m6.7: a height times a sum."""
    h0, treatment, fungus = pm.Data("h0", r.z + 2), pm.Data("treatment", r.h), pm.Data("fungus", r.y)
    p = pm.LogNormal("a", 0, 0.2) + pm.Normal("bt", 0, 0.5) * treatment + pm.Normal("bf", 0, 0.5) * fungus
    pm.Normal("h1", pm.Deterministic("mu", h0 * p), pm.Exponential("sigma", 1), observed=r.x)
    return {"bounds": {"h1": REALS, "h0": (1, 3), "treatment": (0, 1), "fungus": (0, 1)}}


@entry("linear")
def brains_by_polynomials(r):
    """m7.3: a matrix of powers, and the logarithm of a standard deviation."""
    mu = pm.Normal("a", 0.5, 1) + pm.math.dot(np.column_stack([r.z**k for k in (1, 2, 3)]), pm.Normal("b", 0, 10, shape=3))
    pm.Normal("brain", mu=mu, sigma=pm.math.exp(pm.Normal("log_sigma")), observed=r.x)
    return {"bounds": {"brain": REALS, "brain:0": UNIT}}


@entry("indexed")
def chimpanzees(r):
    """m11.4: binomials of one trial."""
    p = pm.Deterministic("p", pm.math.invlogit(pm.Normal("a", 0, 1.5, shape=3)[r.g] + pm.Normal("b", 0, 0.5, shape=4)[r.i]))
    pm.Binomial("pulled_left", 1, p, observed=r.y)
    return {}


@entry("indexed")
def monasteries_with_public_days(r):
    """m11.12: the logarithm of the days is added."""
    log_days, monastery = pm.Data("log_days", np.log(np.where(r.h, 7, 1))), pm.Data("monastery", r.h)
    pm.Poisson("y", pm.math.exp(log_days + pm.Normal("a") + pm.Normal("b") * monastery), observed=r.k)
    return {"bounds": {"y": COUNTS}, "public": ["log_days", "monastery"]}


@entry("table")
def monasteries_with_private_days(r):
    log_days, monastery = pm.Data("log_days", np.log(np.where(r.h, 7, 1))), pm.Data("monastery", r.h)
    pm.Poisson("y", pm.math.exp(log_days + pm.Normal("a") + pm.Normal("b") * monastery), observed=r.k)
    return {"bounds": {"y": COUNTS, "log_days": {0.0, float(np.log(7))}, "monastery": (0, 1)}}


@entry("shared")
def careers_by_income(r):
    """m11.13: scores stacked from unknowns, the last of which is 0."""
    a, b, income = pm.Normal("a", 0, 1, shape=2), pm.HalfNormal("b", 0.5), [1, 2, 5]
    s = pm.math.stack([a[0] + b * income[0], a[1] + b * income[1], 0.0])
    pm.Categorical("career", p=pm.math.softmax(s, axis=0), observed=r.g)
    return {}


@entry("indexed")
def tools_by_a_power_of_population(r):
    """m11.11: a model of what is known of tools, in which a public covariate has an unknown exponent."""
    P, cid = pm.Data("P", np.exp2(r.t)), pm.Data("cid", r.h)
    a, b, g = pm.Normal("a", 1, 1, shape=2), pm.Exponential("b", 1, shape=2), pm.Exponential("g", 1)
    pm.Poisson("T", pm.math.exp(a[cid]) * P ** b[cid] / g, observed=r.k)
    return {"bounds": {"T": COUNTS}, "public": ["P", "cid"]}


@entry("indexed")
def admissions_with_public_numbers(r):
    """m12.1: a beta-binomial of so many applications."""
    theta = pm.Deterministic("theta", pm.Exponential("phi", 1) + 2)
    pbar = pm.math.invlogit(pm.Normal("a", 0, 1.5, shape=2)[r.h])
    pm.BetaBinomial("admit", pbar * theta, (1 - pbar) * theta, pm.Data("applications", 6 + r.t), observed=r.k)
    return {"bounds": {"admit": (0, 10)}, "public": ["applications"]}


@entry("shared")
def trolley_cutpoints_alone(r):
    """m12.4."""
    pm.OrderedLogistic("response", eta=0, cutpoints=pm.Normal("cutpoints", 0.0, 1.5, shape=3, **ORDERED), observed=r.c)
    return {}


@entry("table")
def trolley_with_education(r):
    """m12.6: an ordered covariate beside treatments."""
    delta = pt.cumsum(pt.concatenate([pt.zeros(1), pm.Dirichlet("delta", np.repeat(2.0, 3))]))
    b = [pm.Normal(name, 0, 0.5) for name in ("bE", "bA", "bI", "bC")]
    phi = b[0] * delta[r.i] + b[1] * r.h + b[2] * r.y + b[3] * r.Y[:, 0]
    pm.OrderedLogistic("R", phi, pm.Normal("kappa", 0, 1.5, shape=3, **ORDERED), observed=r.c)
    return {"bounds": {"R:1": (0, 1), "R:2": (0, 1), "R:3": (0, 1)}}


@entry("indexed")
def chimpanzees_with_centred_effects(r):
    """m13.4."""
    a = pm.Normal("a", pm.Normal("a_bar", 0, 1.5), pm.Exponential("sigma_a", 1), shape=3)
    g, b = pm.Normal("g", 0, pm.Exponential("sigma_g", 1), shape=2), pm.Normal("b", 0, 0.5, shape=4)
    pm.Bernoulli("L", logit_p=a[r.g] + g[r.h] + b[r.i], observed=r.y)
    return {"public": ["L:0"]}


@entry("linear", tolerance=1e-2)
def weights_of_cylinders(r):
    """m16.1, with the logarithm of a product taken apart."""
    p, k, h = pm.Beta("p", 2, 18), pm.Exponential("k", 0.5), pm.Data("h", np.exp2(r.z))
    mu = pm.math.log(np.pi * k * p**2) + 3 * pm.math.log(h)
    pm.LogNormal("w", mu, pm.Exponential("sigma", 1), observed=positive(r))
    return {"bounds": {"w": POSITIVE, "h": POSITIVE}}


@entry("table")
def nuts_opened(r):
    """m16.4: growth in age, and how long somebody worked."""
    seconds, age = pm.Data("seconds", 2.0**r.i), pm.Data("age", (1.0 + r.t) / 5)
    phi, k, theta = pm.LogNormal("phi", 0, 0.1), pm.LogNormal("k", 1, 0.25), pm.LogNormal("theta", 1, 0.25)
    pm.Poisson("n", seconds * phi * (1 - pm.math.exp(-k * age)) ** theta, observed=r.k)
    return {"bounds": {"n": COUNTS, "seconds": {1, 2, 4, 8}, "age": {0.2, 0.4, 0.6, 0.8, 1.0}}}


# ---------- Gelman and Hill (2007)
@entry("linear")
def scores_of_children(r):
    """Chapter 3: an interaction, of a centred covariate."""
    hs, iq, b = pm.Data("mom_hs", r.h), pm.Data("mom_iq", 100 + 16 * r.z), pm.Normal("b", 0, 10, shape=4)
    mu = b[0] + b[1] * hs + b[2] * (iq - 100) / 15 + b[3] * hs * (iq - 100) / 15
    pm.Normal("kid_score", mu, pm.HalfCauchy("sigma", 5), observed=r.x)
    return {"bounds": {"kid_score": REALS, "mom_hs": (0, 1), "mom_iq": (84, 116)}}


@entry("table", coords={"eth": COUNTY, "precinct": range(4)})
def stops_by_the_police(r):
    """Chapter 15: arrests of the year before as a private exposure, and crossed effects."""
    a, b = pm.Normal("a", dims="eth"), pm.Normal("b", 0, pm.HalfNormal("s"), dims="precinct")
    arrests = pm.Data("arrests", 1 + r.t)
    pm.Poisson("stops", mu=pm.math.exp(pm.math.log(arrests) + a[r.g] + b[r.i]), observed=r.k)
    return {"bounds": {"stops": COUNTS, "arrests": (1, 5)}, "public": ["eth", "precinct"]}


@entry("table", coords={"county": COUNTY})
def radon_with_a_centred_predictor_of_counties(r):
    """Chapter 12: the predictor is an array of numbers."""
    mu = pm.Normal("g0", 0, 10) + pm.Normal("g1", 0, 10) * np.array([0.25, -0.5, 1.0])
    a = pm.Normal("a", mu=mu, sigma=pm.HalfNormal("sigma_a"), dims="county")
    pm.Normal("y", a[r.g] + pm.Normal("b", 0, 10) * r.h, pm.HalfNormal("sigma_y"), observed=r.x)
    return {"bounds": {"y": REALS, "y:1": (0, 1)}}


@entry("linear")
def radon_with_a_predictor_of_rows(r):
    """The same, merged into the rows of a data frame."""
    u, a = np.array([0.25, -0.5, 1.0])[r.g], pm.Normal("a", 0, pm.HalfNormal("sigma_a"), shape=3)
    g0, g1, b = (pm.Normal(name, 0, 10) for name in ("g0", "g1", "b"))
    pm.Normal("y", a[r.g] + g0 + g1 * u + b * r.h, pm.HalfNormal("sigma_y"), observed=r.x)
    return {"bounds": {"y": REALS, "y:1": UNIT, "y:2": (0, 1)}}


# ---------- Kruschke (2015)
@entry("indexed")
def anova_of_two_factors(r):
    """Chapter 20."""
    a0, a1, a2 = pm.Normal("a0", 2, 10), pm.Normal("a1", 0, 2, shape=3), pm.Normal("a2", 0, 2, shape=2)
    mu = a0 + a1[r.g] + a2[r.h] + pm.Normal("a1a2", 0, 1, shape=(3, 2))[r.g, r.h]
    pm.Normal("y", mu, sigma=pm.Uniform("s", 0.01, 10), observed=r.x)
    return {"bounds": {"y": REALS}, "public": ["y:0", "y:1"]}


@entry("indexed")
def deflections_that_add_up_to_zero(r):
    """The same by two axes of a ZeroSumNormal."""
    cells = pm.ZeroSumNormal("ab", 1, shape=(3, 2), n_zerosum_axes=2)
    mu = pm.Normal("mu", 0, 5) + pm.ZeroSumNormal("a", 1, shape=3)[r.g] + cells[r.g, r.h]
    pm.Normal("y", mu, pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS}}


@entry("aggregate", rows=8, tolerance=1e-3)  # values are rounded to a 65,536th of the bounds
def eight_schools(r):
    """Gelman et al., Bayesian Data Analysis, section 5.5: estimates of eight schools with known standard errors, not centred."""
    effects, errors = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    theta = pm.Normal("mu", 0, 5) + pm.HalfCauchy("tau", 5) * pm.Normal("eta", shape=8)
    pm.Normal("effect", pm.Deterministic("theta", theta), pm.Data("errors", errors), observed=effects)
    return {"unit": pmdp.Individual(moves=3), "public": ["errors"], "bounds": {"effect": (-80, 100)}}


@entry("aggregate", rows=8, tolerance=2e-2)
def eight_schools_robust(r):
    """Gelman et al., Bayesian Data Analysis, section 17.4: the same with t distributions."""
    effects, errors = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    theta = pm.StudentT("theta", nu=4, mu=pm.Normal("mu", 0, 5), sigma=pm.HalfCauchy("tau", 5), shape=8)
    pm.StudentT("effect", nu=4, mu=theta, sigma=pm.Data("errors", errors), observed=effects)
    return {"unit": pmdp.Individual(moves=3), "public": ["errors"], "bounds": {"effect": (-80, 100)}}


@entry("aggregate", rows=12, tolerance=2e-2)
def costs_of_regions(r):
    """A mean cost for every region, positive and skewed, each about a mean of its own."""
    mean = pm.LogNormal("region", pm.Normal("mu", 3, 1), pm.HalfNormal("tau", 1), shape=12)
    pm.Gamma("cost", mu=mean, sigma=mean * pm.HalfNormal("cv", 1), observed=20 * np.exp(r.z[:12] / 3))
    return {"unit": pmdp.Individual(moves=0.5), "bounds": {"cost": (0, 200)}}


@entry("aggregate", rows=12, tolerance=2e-2)
def means_of_classes(r):
    """A mean of every class, with a spread that is to be found."""
    pm.Normal("score", pm.Normal("class", 50, 10, shape=12), pm.HalfNormal("s", 5), observed=40 + 2 * r.z[:12])
    return {"unit": pmdp.Individual(moves=2.5, membership="public"), "bounds": {"score": (0, 100)}}


@entry("aggregate", rows=12)
def batting_averages(r):
    """Chapter 9: a beta around a mode above totals."""
    omega, kappa = pm.Beta("omega", 1, 1), pm.Gamma("kappa", 0.5, 0.1) + 2
    theta = pm.Beta("theta", omega * (kappa - 2) + 1, (1 - omega) * (kappa - 2) + 1, shape=12)
    pm.Binomial("hits", n=10 + r.t, p=theta, observed=r.k)
    return {"unit": "individual", "public": ["hits:0"]}


@entry("aggregate", rows=6)
def cells_of_a_contingency_table(r):
    """Chapter 24: counts of cells are Poisson."""
    a1, a2 = pm.Normal("a1", shape=3), pm.Normal("a2", shape=2)
    pm.Poisson("count", pt.exp(pm.Normal("a0", 3, 1) + a1[[0, 0, 1, 1, 2, 2]] + a2[[0, 1] * 3]), observed=5 + r.k)
    return {"unit": pmdp.Individual(events=1), "public": ["count:0", "count:1"]}


# ---------- survival, tests and choices
@entry("table")
def hazards_of_periods(r):
    """Discrete time: a row for every period that somebody was at risk, and a complementary log-log link."""
    eta = pm.Normal("a", -2, 1, shape=5)[pm.Data("period", r.t)] + pm.Normal("b") * pm.Data("drug", r.h)
    pm.Bernoulli("event", p=1 - pm.math.exp(-pm.math.exp(eta)), observed=r.y)
    return {"bounds": {"drug": (0, 1)}}


@entry("indexed", "indexed", tolerance=1e-2)
def buyers_and_what_they_spend(r):
    """PyMC's examples, A/B tests of revenue."""
    pm.Bernoulli("buys", pm.Beta("theta", 1, 1, shape=2)[r.h], observed=r.y)
    pm.Exponential("revenue", pm.Gamma("lam", 2, 1, shape=2)[r.h], observed=positive(r))
    return {"bounds": {"revenue": POSITIVE}}


@entry("indexed")
def ratings_by_cumulative_logits(r):
    """Differences of cumulative probabilities, put together by columns."""
    q = pm.math.sigmoid(pm.Normal("cut", [-1.0, 0, 1], 1, shape=3, **ORDERED) - pm.Normal("b", shape=3)[r.g][:, None])
    pm.Categorical("y", p=pt.concatenate([q[:, :1], q[:, 1:] - q[:, :-1], 1 - q[:, -1:]], axis=1), observed=r.c)
    return {}


@entry("indexed")
def cutpoints_of_groups(r):
    cuts = pm.Normal("cuts", [-1.0, 0, 1], 1, shape=(3, 3), transform=ORDERED["transform"], initval=np.array([[-1.0, 0, 1]] * 3))
    pm.OrderedLogistic("c", eta=0.0, cutpoints=cuts[r.g], observed=r.c)
    return {}


@entry("shared")
def zeros_by_a_mixture(r):
    """Zero inflation by a DiracDelta."""
    w = pm.Beta("w", 1, 1)
    pm.Mixture("k", w=pt.stack([w, 1 - w]), comp_dists=[pm.DiracDelta.dist(0), pm.Poisson.dist(pm.Gamma("mu", 2, 1))], observed=r.k)
    return {"bounds": {"k": BEYOND}}


@entry("indexed")
def films_by_users(r):
    """Probabilistic matrix factorisation."""
    U, V = pm.Normal("U", shape=(3, 2)), pm.Normal("V", shape=(4, 2))
    pm.Normal("rating", pm.Normal("m") + (U[r.g] * V[r.i]).sum(axis=-1), pm.HalfNormal("s", 3), observed=r.x)
    return {"bounds": {"rating": REALS}}


@entry("indexed")
def members_of_several_groups(r):
    """brms, ``mm(g1, g2)``: effects of a row of indices, added up."""
    members = np.column_stack([r.i, (r.i + 1 + r.g) % 4])
    pm.Bernoulli("won", logit_p=pm.Normal("skill", shape=4)[members].sum(axis=1), observed=r.y)
    return {}


# ---------- slopes that vary
@entry("linear", coords={"group": COUNTY, "coef": list("abc")})
def slopes_by_einsum(r):
    b = pm.Normal("b", dims=("group", "coef"))
    pm.Normal("y", pt.einsum("ij,ij->i", pm.Data("X", r.X), b[r.g]), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "X": UNIT}, "public": ["group"]}


@entry("linear")
def slopes_by_columns_of_ones_and_zeros(r):
    D, x = pm.Data("D", np.eye(3)[r.g]), pm.Data("x", r.z)
    pm.Normal("y", D @ pm.Normal("a", shape=3) + (D @ pm.Normal("b", shape=3)) * x, pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "D": (0, 1), "x": UNIT}}


@entry("linear", coords={"group": COUNTY})
def slopes_that_add_up_to_zero(r):
    a, b = (pm.ZeroSumNormal(name, 1, dims="group") for name in ("a_g", "b_g"))
    mu = (pm.Normal("a", 0, 5) + a[r.g]) + (pm.Normal("b") + b[r.g]) * pm.Data("x", r.z)
    pm.Normal("y", mu, pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "x": UNIT}}


@entry("linear", coords={"group": COUNTY})
def spreads_of_groups_in_a_regression(r):
    g, s = pm.Data("g", r.g), pm.HalfNormal("s", dims="group")
    pm.Normal("y", pm.Normal("a", 0, 5, dims="group")[g] + pm.Normal("b") * pm.Data("x", r.z), s[g], observed=r.x)
    return {"bounds": {"y": REALS, "x": UNIT}}


@entry("linear")
def slopes_of_public_arms(r):
    """Trials: who was treated is public, the covariate is not."""
    x, arm = pm.Data("x", r.z), pm.Data("arm", r.h)
    pm.Normal("y", pm.Normal("a", shape=2)[arm] + pm.Normal("b", shape=2)[arm] * x, pm.HalfNormal("s", 3), observed=r.x)
    return {"bounds": {"y": REALS, "x": UNIT}, "public": ["arm"]}


@entry("linear")
def private_groups_and_a_public_covariate(r):
    w = pm.Data("w", r.w)
    pm.Normal("y", pm.Normal("a", 0, 5, shape=3)[r.g] + pm.Normal("b", shape=3)[r.g] * w, pm.HalfNormal("s", 3), observed=r.x)
    return {"bounds": {"y": REALS}, "public": ["w"]}


# ---------- spellings
@entry("table")
def interaction_of_truth_values(r):
    post, treated, b = pm.Data("post", r.h.astype(bool)), pm.Data("treated", r.y.astype(bool)), pm.Normal("b", 0, 2, shape=4)
    pm.Normal("y", b[0] + b[1] * treated + b[2] * post + b[3] * (treated & post), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS}}


@entry("linear")
def two_lines_by_switch(r):
    is_a, x, b = pm.Data("is_a", r.h.astype(bool)), pm.Data("x", r.z), pm.Normal("b", shape=4)
    pm.Normal("y", pm.math.switch(is_a, b[0] + b[1] * x, b[2] + b[3] * x), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "x": UNIT}}


@entry("table")
def groups_by_nested_where(r):
    g, m = pm.Data("g", r.g), pm.Normal("m", shape=3)
    pm.Normal("y", pt.where(pt.eq(g, 0), m[0], pt.where(pt.eq(g, 1), m[1], m[2])), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "g": (0, 2)}}


@entry("table")
def index_of_pairs(r):
    g, h = pm.Data("g", r.g), pm.Data("h", r.h)
    pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=6)[g * 2 + h], observed=r.y)
    return {"bounds": {"g": (0, 2), "h": (0, 1)}}


@entry("table")
def age_in_decades(r):
    pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=5)[(pm.Data("age", 20 + 5 * r.t) - 20) // 10], observed=r.y)
    return {"bounds": {"age": (20, 40)}}


@entry("table")
def days_of_the_week(r):
    pm.Poisson("k", pm.math.exp(pm.Normal("w", shape=7)[pm.Data("day", r.t + 7) % 7]), observed=r.k)
    return {"bounds": {"day": (7, 11), "k": COUNTS}}


@entry("linear")
def centred_and_scaled_by_public_numbers(r):
    x, mean, sd = pm.Data("x", r.z), pm.Data("mean", 0.25), pm.Data("sd", 0.5)
    pm.Normal("y", pm.Normal("a") + pm.Normal("b") * (x - mean) / sd, pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "x": UNIT}, "public": ["mean", "sd"]}


@entry("linear", tolerance=0.05)
def public_covariate_standardised_in_the_graph(r):
    x = pm.Data("x", r.z)
    pm.Normal("y", pm.Normal("a") + pm.Normal("b") * (x - x.mean()) / x.std(), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS}, "public": ["x"]}


@entry("linear")
def splines_of_public_groups(r):
    """Weights of a basis by group, the basis being private."""
    B = dmatrix("bs(year, df=4, degree=3, include_intercept=True, lower_bound=-1, upper_bound=1) - 1", {"year": r.z})
    B, w = np.rint(np.asarray(B) * 64) / 64, pm.Normal("w", 0, 3, shape=(4, 3))
    pm.Normal("D", pm.Normal("a", 2, 5) + (B * w[:, r.g].T).sum(axis=1), pm.Exponential("s", 1), observed=r.x)
    return {"bounds": {"D": REALS, "D:0": (0, 1)}, "public": ["D:1"]}


@entry("linear", tolerance=0.02)
def growth_with_changes_of_trend(r):
    """Prophet's trend, in a private time."""
    t, s, delta = pm.Data("t", r.z), np.array([-0.5, 0, 0.5]), pm.Laplace("delta", 0, 0.1, shape=3)
    A = (t[:, None] > s) * 1.0
    mu = (pm.Normal("k") + pt.dot(A, delta)) * t + (pm.Normal("m") + pt.dot(A, -s * delta))
    pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=r.x)
    return {"bounds": {"y": REALS, "t": UNIT}, "public": ["y:0", "y:1"]}


@entry("linear", tolerance=0.02)
def a_hinge(r):
    t = pm.Data("t", r.z)
    mu = pm.Normal("a") + pm.Normal("b") * t + pm.Normal("c") * pm.math.maximum(t - 0.25, 0)
    pm.Normal("y", mu, pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "t": UNIT}}


@entry("indexed")
def standard_errors_that_are_public(r):
    """Meta-analysis."""
    pm.Normal("y", pm.Normal("mu", 0, 5), pm.Data("se", np.exp2(r.z)), observed=r.x)
    return {"bounds": {"y": REALS}, "public": ["se"]}


@entry("table")
def means_of_private_sizes(r):
    n = pm.Data("n", 1 + r.t)
    pm.Normal("y", pm.Normal("a", 0, 5, shape=3)[r.g], pm.HalfNormal("s", 3) / pm.math.sqrt(n), observed=r.x)
    return {"bounds": {"y": REALS, "n": (1, 5)}, "public": ["y:0"]}


@entry("indexed")
def effects_held_near_zero_by_a_potential(r):
    b = pm.Normal("b", shape=3)
    pm.Potential("soft", pm.logp(pm.Normal.dist(0, 0.03), b.sum()))
    pm.Bernoulli("y", logit_p=b[r.g], observed=r.y)
    return {}


@entry("indexed", tolerance=1e-2)
def inverse_gamma_by_mean(r):
    sigma = pm.HalfNormal("sigma") + 0.5
    pm.InverseGamma("c", mu=pm.Gamma("mu", 2, 2, shape=3)[r.g], sigma=sigma, observed=positive(r))
    return {"bounds": {"c": POSITIVE}}


@entry("linear")
def two_measurements_of_groups(r):
    chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.Exponential.dist(1.0, shape=2))
    pm.MvNormal("Y", pm.Normal("mu", 0, 5, shape=(3, 2))[r.g], chol=chol, observed=r.YX)
    return {"bounds": {"Y": [REALS, UNIT]}}


@entry("linear", coords=lambda n: {"group": COUNTY, "obs": np.arange(n), "coef": list("abc")})
def named_dims_with_slopes(r):
    X, g = pmd.Data("X", r.X, dims=("obs", "coef")), pmd.Data("g", r.g, dims="obs")
    a, b = pmd.Normal("a", 0, 1, dims="group"), pmd.Normal("b", 0, 1, dims=("group", "coef"))
    mu = a.isel(group=g) + (X * b.isel(group=g)).sum("coef")
    pmd.Normal("y", mu, pmd.HalfNormal("s", 1), observed=pmd.Data("target", r.x, dims="obs"))
    return {"bounds": {"y": REALS, "X": UNIT}}


@entry("table", coords=lambda n: {"obs": np.arange(n)})
def named_dims_by_switch(r):
    treated = pmd.Data("treated", r.h, dims="obs")
    p = pmd.math.switch(treated > 0, pmd.Beta("p_b", 1, 1), pmd.Beta("p_a", 1, 1))
    pmd.Bernoulli("y", p, observed=pmd.as_xtensor(r.y, dims=("obs",)))
    return {"bounds": {"treated": (0, 1)}}


BOOKS = tuple(each.name for each in GALLERY[FIRST:])
