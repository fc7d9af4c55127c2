"""The same models in other words: spellings that are read as the plain one. ``gallery.GALLERY`` holds these models, too."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from gallery import COUNTS, COUNTY, REALS, entry, positive

UNIT, SIZES, BEYOND = (-1, 1), (0.5, 2.0), (0, 12)


# ---------- logarithms of products
@entry("linear", tolerance=1e-2)
def weights_of_cylinders_in_one_logarithm(r):
    """McElreath (2020), m16.1, as it is printed."""
    p, k, h = pm.Beta("p", 2, 18), pm.Exponential("k", 0.5), pm.Data("h", np.exp2(r.z))
    pm.LogNormal("w", pm.math.log(np.pi * k * p**2 * h**3), pm.Exponential("sigma", 1), observed=positive(r))
    return {"bounds": {"w": (0.1, 20), "h": SIZES}}


@entry("linear", tolerance=1e-2)
def growth_with_an_unknown_exponent(r):
    """Allometry, of groups."""
    mass, k, b = pm.Data("mass", np.exp2(r.z)), pm.LogNormal("k", 0, 1, shape=3)[r.g], pm.Normal("b", 1, 1)
    pm.LogNormal("length", pm.math.log(k * mass**b), pm.Exponential("sigma", 1), observed=positive(r))
    return {"bounds": {"length": (0.1, 20), "mass": SIZES}}


@entry("linear", tolerance=1e-2)
def logarithm_to_the_base_ten_of_a_ratio(r):
    mass, height = pm.Data("mass", np.exp2(r.z)), pm.Data("height", np.exp2(r.w))
    index = pm.HalfNormal("k") * pt.sqrt(mass) / (height * pm.HalfNormal("m")) ** 2
    pm.Normal("y", pt.log10(index), pm.Exponential("sigma", 1), observed=r.x)
    return {"bounds": {"y": REALS, "mass": SIZES, "height": SIZES}}


# ---------- slopes of groups, taken out of a matrix
@entry("linear", coords={"group": COUNTY, "coef": list("abc")})
def slopes_taken_out_of_a_product(r):
    X, g, B = pm.Data("X", r.X), pm.Data("g", r.g), pm.Normal("B", dims=("group", "coef"))
    a = pm.Normal("a", dims="group")
    pm.Normal("y", (a + pt.dot(X, B.T))[pt.arange(len(r.x)), g], pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "X": UNIT}}


@entry("linear")
def slopes_taken_out_of_a_product_by_columns(r):
    X, B = pm.Data("X", r.X), pm.Normal("B", shape=(3, 3))
    pm.Normal("y", pt.dot(B, X.T)[r.g, pt.arange(X.shape[0])], pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "X": UNIT}, "public": ["y:0"]}


@entry("linear")
def slopes_on_a_diagonal(r):
    B = pm.Normal("B", shape=(3, 3))
    pm.Normal("y", pt.diag(pm.math.dot(r.X, B[r.g].T)), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "y:0": UNIT}}


# ---------- settings of curves as data
@entry("linear", tolerance=0.02)
def hinges_at_public_knots(r):
    age, knots = pm.Data("age", r.z), pm.Data("knots", [-0.5, 0.0, 0.5])
    mu = pm.Normal("a") + pm.math.dot(pt.maximum(age[:, None] - knots, 0), pm.Normal("b", shape=3))
    pm.Normal("y", mu, pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "age": UNIT}, "public": ["knots"]}


# ---------- tables of groups as data
@entry("indexed", coords={"county": COUNTY})
def a_predictor_of_counties_alone(r):
    """The radon of Gelman and Hill (2007), chapter 12, without effects of counties: the predictor has a value for each."""
    uranium, county = pm.Data("uranium", [0.25, -0.5, 1.0], dims="county"), pm.Data("county_idx", r.g)
    pm.Normal("y", pm.Normal("a", 0, 10) + pm.Normal("b", 0, 10) * uranium[county], pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS}, "public": ["uranium"]}


# ---------- votes of so many voters
def votes(r):
    """Rows of three counts, and how many they are together: 6 to 9."""
    many = 6 + r.i
    first = np.minimum(r.k, many)
    second = np.minimum(r.c, many - first)
    return np.column_stack([first, second, many - first - second]), many


@entry("indexed")
def votes_of_public_numbers_of_voters(r):
    counts, many = votes(r)
    pm.Multinomial("votes", n=pm.Data("many", many), p=pm.Dirichlet("p", np.ones(3)), observed=counts)
    return {"bounds": {"votes": (0, 9)}, "public": ["many"]}


@entry("indexed")
def votes_in_private_districts(r):
    counts, many = votes(r)
    pm.Multinomial("votes", n=many, p=pm.Dirichlet("p", np.ones(3), shape=(3, 3))[r.g], observed=counts)
    return {"bounds": {"votes": (0, 9)}, "public": ["votes:0"]}


@entry("indexed")
def votes_for_two(r):
    counts, many = votes(r)
    pair = np.column_stack([counts[:, 0], many - counts[:, 0]])
    pm.Multinomial("votes", n=many, p=pm.Dirichlet("p", np.ones(2), shape=(3, 2))[r.g], observed=pair)
    return {"bounds": {"votes": (0, 9)}, "public": ["votes:0", "votes:1"]}


# ---------- a yes or no as one of two levels
@entry("indexed")
def yes_or_no_as_two_levels(r):
    p = pm.Beta("p", 1, 1, shape=3)[r.g]
    pm.Categorical("y", p=pt.stack([1 - p, p], axis=-1), observed=r.y)
    return {}


@entry("shared")
def yes_or_no_of_a_list(r):
    p = pm.Beta("p", 1, 1)
    pm.Categorical("y", p=[1 - p, p], observed=r.y)
    return {}


@entry("indexed")
def yes_or_no_by_logits_beside_zero(r):
    a = pm.Normal("a", shape=3)[r.g]
    pm.Categorical("y", logit_p=pt.stack([pt.zeros_like(a), a], axis=1), observed=r.y)
    return {}


@entry("table")
def yes_or_no_by_two_softmaxes(r):
    eta = pm.Normal("a") + pm.Normal("b") * pm.Data("x", r.h)
    pm.Categorical("y", p=pm.math.softmax(pt.stack([pt.zeros_like(eta), eta], axis=-1), axis=-1), observed=r.y)
    return {"bounds": {"x": (0, 1)}}


@entry("indexed")
def pairs_of_ones_and_zeros(r):
    p = pm.Beta("p", 1, 1, shape=3)
    pm.Multinomial("y", n=1, p=pt.stack([p, 1 - p], axis=1)[r.g], observed=np.eye(2, dtype=int)[r.y])
    return {}


# ---------- links
@entry("indexed", coords=lambda n: {"county": COUNTY, "obs": range(n)})
def probit_as_a_deterministic(r):
    p = pm.Deterministic("p", pm.math.invprobit(pm.Normal("a", dims="county")[r.g]), dims="obs")
    pm.Bernoulli("y", p=p, observed=r.y, dims="obs")
    return {}


@entry("indexed")
def complementary_log_log(r):
    pm.Bernoulli("y", p=1 - pt.exp(-pt.exp(pm.Normal("a", shape=3)[r.g])), observed=r.y)
    return {}


@entry("indexed")
def log_log(r):
    pm.Bernoulli("y", p=pt.exp(-pt.exp(-pm.Normal("a", shape=3)[r.g])), observed=r.y)
    return {}


@entry("indexed")
def probability_by_tanh(r):
    pm.Bernoulli("y", p=0.5 * (1 + pm.math.tanh(pm.Normal("a", shape=3)[r.g])), observed=r.y)
    return {}


@entry("indexed")
def probability_by_arctan(r):
    """The link of Cauchy's distribution, for answers that are seldom wrong but then by far."""
    pm.Bernoulli("y", p=0.5 + pt.arctan(pm.Normal("a", shape=3)[r.g]) / np.pi, observed=r.y)
    return {}


@entry("indexed")
def probability_by_erf(r):
    pm.Bernoulli("y", p=0.5 * (1 + pm.math.erf(pm.Normal("a", shape=3)[r.g] / np.sqrt(2))), observed=r.y)
    return {}


@entry("indexed")
def probability_of_any_of_so_many(r):
    """Infected if any of the contacts was: their number is public."""
    contacts, p = pm.Data("contacts", 1.0 + r.i), pm.math.sigmoid(pm.Normal("a", shape=3)[r.g])
    pm.Bernoulli("y", p=1 - (1 - p) ** contacts, observed=r.y)
    return {"public": ["contacts"]}


@entry("indexed")
def rate_by_softplus(r):
    pm.Poisson("k", mu=pt.softplus(pm.Normal("a", shape=3)[r.g]), observed=r.k)
    return {"bounds": {"k": COUNTS}}


@entry("indexed")
def growth_that_levels_off(r):
    curve = pm.HalfNormal("top", 4) * pt.tanh(pm.HalfNormal("speed") * pt.arange(5) / 4.0)
    pm.Normal("y", mu=curve[pm.Data("week", r.t)], sigma=pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS}}


# ---------- counts of groups, and of so many
@entry("indexed")
def successes_of_public_trials_by_logits(r):
    pm.Binomial("k", n=pm.Data("n", 6 + r.i), logit_p=pm.Normal("a", shape=3)[r.g], observed=r.k)
    return {"public": ["n"], "bounds": {"k": (0, 9)}}


@entry("indexed")
def overdispersed_successes_of_public_trials(r):
    alpha, beta = pm.Gamma("alpha", 2, 1, shape=3)[r.g], pm.Gamma("beta", 2, 1)
    pm.BetaBinomial("k", n=pm.Data("n", 6 + r.i), alpha=alpha, beta=beta, observed=r.k)
    return {"public": ["n"], "bounds": {"k": (0, 9)}}


@entry("indexed")
def zeros_beside_successes_of_public_trials(r):
    p = pm.Beta("p", 1, 1, shape=3)[r.g]
    pm.ZeroInflatedBinomial("k", psi=pm.Beta("psi", 1, 1), n=pm.Data("n", 6 + r.i), p=p, observed=r.k)
    return {"public": ["n"], "bounds": {"k": (0, 9)}}


@entry("indexed")
def zeros_beside_counts_of_groups(r):
    psi, mu = pm.Beta("psi", 1, 1, shape=3), pm.Gamma("mu", 2, 1, shape=3)
    pm.ZeroInflatedPoisson("k", psi=psi[r.g], mu=mu[r.g], observed=r.k)
    return {"bounds": {"k": BEYOND}}


@entry("indexed")
def zeros_beside_overdispersed_counts(r):
    mu = pt.exp(pm.Normal("m", shape=3))[r.g]
    pm.ZeroInflatedNegativeBinomial("k", psi=pm.Beta("psi", 1, 1), mu=mu, alpha=pm.Gamma("alpha", 2, 1), observed=r.k)
    return {"bounds": {"k": BEYOND}}


@entry("indexed")
def overdispersion_of_groups(r):
    mu, alpha = pm.Gamma("mu", 2, 1, shape=3), pm.Gamma("alpha", 2, 1, shape=3)
    pm.NegativeBinomial("k", mu=mu[r.g], alpha=alpha[r.g], observed=r.k)
    return {"bounds": {"k": BEYOND}}


# ---------- public tables of which the length is not in the type
@entry("indexed")
def years_of_a_latent_process_as_data(r):
    years = pm.Data("years", np.arange(5.0)[:, None])
    f = pm.gp.Latent(cov_func=pm.gp.cov.ExpQuad(1, ls=pm.InverseGamma("ls", 3, 3))).prior("f", X=years)
    pm.Poisson("k", pm.math.exp(f[r.t]), observed=r.k)
    return {"bounds": {"k": COUNTS}, "public": ["years", "k:0"]}


@entry("indexed")
def years_of_waves_as_data(r):
    years, scale = pm.Data("years", np.arange(5.0)[:, None]), pm.InverseGamma("ls", 3, 3)
    f = pm.gp.HSGP(m=[4], c=1.5, cov_func=pm.gp.cov.ExpQuad(1, ls=scale)).prior("f", X=years)
    pm.Poisson("k", pm.math.exp(f[r.t]), observed=r.k)
    return {"bounds": {"k": COUNTS}, "public": ["years", "k:0", "k:1", "k:2", "k:3"]}


@entry("linear")
def public_columns_beside_their_squares(r):
    X = pm.Data("X", r.X)
    mu = pm.Normal("a") + pt.concatenate([X, X**2], axis=1) @ pm.Normal("b", shape=6)
    pm.Normal("y", mu, pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS}, "public": ["X"]}


# ---------- covariances
@entry("linear")
def rows_with_what_was_a_matrix_of_correlations(r):
    """PyMC reads the lower triangle of a covariance alone, and since PyMC 6 an LKJCorr holds a Cholesky factor."""
    corr, sd = pm.LKJCorr("corr", n=2, eta=2), pm.HalfNormal("sd", shape=2)
    pm.MvNormal("y", mu=pm.Normal("m", shape=2), cov=pt.diag(sd) @ corr @ pt.diag(sd), observed=r.YX)
    return {"bounds": {"y": [REALS, UNIT]}}


@entry("linear")
def two_outcomes_in_units_of_their_own(r):
    """A matrix of outcomes, each with bounds of its own."""
    a, b = pm.Normal("a", [2, 40], [5, 90], shape=2), pm.Normal("b", 0, [5, 90], shape=2)
    y = np.column_stack([r.x, 48 + 16 * r.w])
    pm.Normal("y", a + b * pm.Data("dose", r.z)[:, None], pm.HalfNormal("s", [1, 20], shape=2), observed=y)
    return {"bounds": {"dose": (-1, 1), "y": [REALS, (32.0, 64.0)]}}


# ---------- means over columns, and powers
@entry("linear", tolerance=1e-2)  # thirds and fourth powers are rounded
def an_index_of_items(r):
    """The mean of a person's answers is the covariate."""
    items, a, b = pm.Data("items", r.X), pm.Normal("a"), pm.Normal("b")
    pm.Normal("y", a + b * items.mean(axis=1), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "items": UNIT}}


@entry("indexed", coords={"county": COUNTY})
def members_of_two_groups(r):
    """Multiple membership: the mean of the effects of both."""
    both = pm.Data("both", np.column_stack([r.g, r.g[::-1]]))
    pm.Normal("y", pm.Normal("effect", dims="county")[both].mean(axis=-1), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS}}


@entry("linear", tolerance=1e-2)  # thirds and fourth powers are rounded
def a_peak_at_an_unknown_dose(r):
    dose, best = pm.Data("dose", r.z), pm.Normal("best")
    pm.Normal("y", pm.Normal("top") - pm.HalfNormal("k") * (dose - best) ** 2, pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "dose": UNIT}}
