"""Models found where people publish them: galleries of examples, textbooks, courses and analyses. Each is written anew, in the spelling it
was found in, and says where.

``gallery.GALLERY`` holds these models, too.
"""

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
from gallery import COUNTS, COUNTY, GALLERY, REALS, TOWN, Entry, N, entry, records
from gallery_bins import BINS, HALVES, POSITIVE, binned
from scipy import stats

import pymc_dp as pmdp

BEYOND = (0, 12)


# ---------- surveys and votes
@entry("table", coords={"state": list("abcd"), "age_edu": range(4)})
def vote_of_1988(r):
    """Gelman and Hill (2007), chapter 14: products of truth values beside effects of states."""
    female, black = pm.Data("female", r.h), pm.Data("black", r.Y[:, 0])
    b0, b_female, b_black, b_both = (pm.Normal(name, 0, 10) for name in ("b0", "b_female", "b_black", "b_both"))
    age = pm.Normal("a_age", 0, pm.HalfNormal("sigma_age", 5), dims="age_edu")
    state = pm.Normal("a_state", 0, pm.HalfNormal("sigma_state", 5), dims="state")
    eta = b0 + b_female * female + b_black * black + b_both * female * black + age[r.i] + state[r.c]
    pm.Bernoulli("y", p=pm.math.invlogit(eta), observed=r.y)
    return {"bounds": {"female": (0, 1), "black": (0, 1)}}


@entry("indexed")
def ideal_points_of_roll_calls(r):
    """An analysis of roll calls: which party is on the right is said by a Potential on unknowns."""
    mu = pm.Normal("mu_group", [0, 0.5], 2, shape=2)
    xi = pm.Normal("xi", mu[np.array([0, 1, 1])], 1, shape=3)
    alpha, beta = pm.Normal("alpha", 0, 5, shape=4), pm.Normal("beta", 0, 2.5, shape=4)
    pm.Potential("order", pm.math.switch(mu[0] > mu[1], 0, -1000))
    pm.Bernoulli("vote", logit_p=beta[r.i] * xi[r.g] - alpha[r.i], observed=r.y)
    pm.Deterministic("spread", mu[1] - mu[0])
    return {}


@entry("indexed", coords=lambda n: {"pollster": list("abcd"), "month": range(5), "observation": range(n)})
def approval_polls(r):
    """An analysis of approval polls: a random walk over months, bias of pollsters, and an overdispersed count of a public sample."""
    month, pollster, size = pm.Data("month_id", r.t), pm.Data("pollster_id", r.i), pm.Data("samplesize", 7 + r.h)
    mu = pm.GaussianRandomWalk("mu", sigma=pm.HalfNormal("s", 0.5), init_dist=pm.Normal.dist(0, 1), dims="month")
    eta = mu[month] + pm.Normal("bias", 0, 0.15, dims="pollster")[pollster]
    popularity = pm.Deterministic("popularity", pm.math.invlogit(eta), dims="observation")
    theta = pm.Exponential("theta_offset", 1.0) + 10.0
    alpha, beta = popularity * theta, (1.0 - popularity) * theta
    pm.BetaBinomial("approve", alpha=alpha, beta=beta, n=size, observed=r.k, dims="observation")
    return {"bounds": {"approve": (0, 8)}, "public": ["month_id", "pollster_id", "samplesize"]}


@entry("indexed")
def ratings_with_sorted_cutpoints(r):
    """An analysis of turf trials: effects that add up to zero by their last one, codes from one on, and cutpoints that are sorted."""
    df = pd.DataFrame({"entry_id": r.g + 1, "rater_id": r.i + 1})
    effect, free, cuts = pm.Normal("entry", shape=3), pm.Normal("beta_free", shape=3), pm.Normal("tau_free", [-1.0, 0.5], shape=2)
    beta = pm.Deterministic("beta", pt.concatenate([free, -pt.sum(free, keepdims=True)]))
    tau = pm.Deterministic("tau", pt.concatenate([cuts, -pt.sum(cuts, keepdims=True)]))
    eta = effect[df["entry_id"].to_numpy() - 1] - beta[df["rater_id"].to_numpy() - 1]
    pm.OrderedLogistic("y", cutpoints=pt.sort(tau), eta=eta, observed=r.c, compute_p=False)
    return {}


@entry("table", coords=lambda n: {"first": ["ec", "er"], "alternative": ["ec", "er", "gc"], "obs": range(n)})
def choice_among_three_by_price(r):
    """PyMC's examples, discrete choice: utilities stacked and transposed, prices as small integers, and an alternative worth nothing."""
    beta, alpha = pm.Normal("beta", 0, 1), pm.Normal("alpha", 0, 1, dims="first")
    utility = pm.math.stack([alpha[0] + beta * r.h, alpha[1] + beta * r.t, pt.zeros(len(r.y))]).T
    p = pm.Deterministic("p", pm.math.softmax(utility, axis=1), dims=("obs", "alternative"))
    pm.Categorical("choice", p=p, observed=r.g, dims="obs")
    return {"bounds": {"choice:0": (0, 1), "choice:1": (0, 4)}}


# ---------- psychology
@entry("indexed")
def worth_of_constructs(r):
    """An analysis of paired comparisons: how well each participant discriminates times a difference."""
    winner, loser = r.i, (r.i + 1 + r.g) % 4
    alpha = pm.ZeroSumNormal("alpha", sigma=1.5, shape=4)
    offset, sigma = pm.Normal("kappa_offset", 0, 1, shape=3), pm.HalfNormal("sigma_kappa", 0.5)
    kappa = pm.Deterministic("kappa", pm.math.exp(offset * sigma))
    pm.Bernoulli("won", p=pm.math.sigmoid(kappa[r.g] * (alpha[winner] - alpha[loser])), observed=r.y.astype(np.int8))
    return {}


@entry("indexed", coords={"student": COUNTY, "item": range(4)})
def three_parameters_of_items(r):
    """Courses on item response: a difficulty, a discrimination and a chance to guess for every item."""
    a, b, c = pm.LogNormal("a", 0, 0.5, dims="item"), pm.Normal("b", dims="item"), pm.Beta("c", 5, 17, dims="item")
    theta = pm.Normal("theta", dims="student")
    pm.Bernoulli("correct", c[r.i] + (1 - c[r.i]) / (1 + pm.math.exp(-a[r.i] * (theta[r.g] - b[r.i]))), observed=r.y)
    return {}


@entry("indexed")
def graded_response(r):
    """An analysis of a survey: cutpoints of each item by a first one and cumulated steps."""
    first, steps = pm.Normal("first_cut", 0, 3, shape=(4, 1)), pm.Exponential("steps", 1.0, shape=(4, 2))
    cuts = pm.Deterministic("cuts", pt.concatenate([first, first + pt.cumsum(steps, axis=1)], axis=1))
    eta = pm.LogNormal("a", 0, 0.5, shape=4)[r.i] * pm.Normal("theta", shape=3)[r.g]
    pm.OrderedLogistic("y", eta=eta, cutpoints=cuts[r.i], observed=r.c, compute_p=False)
    return {}


@entry("indexed")
def thresholds_of_a_normal(r):
    """Kruschke (2015), chapter 23: probabilities of ratings between thresholds, of which the ends are fixed, put together in the graph."""
    mu, sigma = pm.Normal("mu", 2, 4, shape=2), pm.Uniform("sigma", 0.1, 10, shape=2)
    theta = pt.stack([pt.constant(0.5), pm.Normal("theta", 1.5, 0.1), pt.constant(2.5)])
    below = [pm.math.invprobit((theta[k] - mu) / sigma) for k in range(3)]
    p = pt.stack([below[0], below[1] - below[0], below[2] - below[1], 1 - below[2]], axis=1)
    pm.Categorical("y", p=pt.clip(p, 1e-9, 1)[r.h], observed=r.c)
    return {}


@entry("table")
def logistic_with_guessing(r):
    """Kruschke (2015), chapter 21."""
    guess = pm.Beta("guess", 1, 9)
    eta = pm.Normal("beta0", 0, 2) + pm.Normal("beta1", 0, 2) * pm.Data("weight", r.t)
    pm.Bernoulli("male", p=guess * 0.5 + (1 - guess) * pm.math.sigmoid(eta), observed=r.y)
    return {"bounds": {"weight": (0, 4)}}


@entry("indexed")
def therapeutic_touch(r):
    """Kruschke (2015), chapter 9: subjects around a mode, with a concentration."""
    omega, kappa = pm.Beta("omega", 1, 1), pm.Gamma("kappa_minus2", 1, 0.1) + 2
    theta = pm.Beta("theta", alpha=omega * (kappa - 2) + 1, beta=(1 - omega) * (kappa - 2) + 1, shape=3)
    pm.Bernoulli("y", theta[r.g], observed=r.y)
    return {}


@entry("table")
def retention_of_memories(r):
    """Lee and Wagenmakers (2014), chapter 10: an exponential decay to a floor of each subject, kept below 1."""
    a, b = pm.Beta("alpha", 1, 1, shape=3)[r.g], pm.Beta("beta", 1, 1, shape=3)[r.g]
    theta = pt.minimum(1 - 1e-6, pm.math.exp(-a * pm.Data("t", r.t)) * (1 - b) + b * 0.5 + 1e-6)
    pm.Binomial("k", p=theta, n=6, observed=r.k)
    return {"bounds": {"t": (0, 4)}}


@entry("table")
def dogs_that_learn(r):
    """Gelman and Hill (2007), chapter 24: shocks and avoidances so far."""
    b = [pm.Normal(f"beta{k}", 0, 10) for k in (1, 2, 3)]
    pm.Bernoulli("y", logit_p=b[0] + b[1] * r.k + b[2] * r.t, observed=r.y)
    return {"bounds": {"y:0": (0, 6), "y:1": (0, 4)}}


@entry("indexed")
def chimpanzees_with_actors_and_blocks(r):
    """McElreath (2020), m14.3: two matrices of effects, each by an LKJ prior, and indices of rows and columns together."""
    actor, block, treatment = r.g, r.h, r.i
    effects = []
    for name, size in (("actor", 3), ("block", 2)):
        chol, _, _ = pm.LKJCholeskyCov(f"chol_{name}", n=4, eta=2, sd_dist=pm.Exponential.dist(1.0, shape=4))
        effects.append(pm.Deterministic(name, pt.dot(chol, pm.Normal(f"z_{name}", 0, 1, shape=(4, size))).T))
    p = pm.math.sigmoid(pm.Normal("g", shape=4)[treatment] + effects[0][actor, treatment] + effects[1][block, treatment])
    pm.Binomial("pulled_left", 1, p, observed=r.y)
    return {}


# ---------- medicine and epidemiology
@entry("aggregate", rows=12)
def institutions_ranked(r):
    """BUGS examples, surgical: a logit with a vague prior for every hospital."""
    mu, variance = pm.Normal("mu", 0.0, 1000.0), pm.InverseGamma("sigmasq", 2, 1)
    b = pm.Normal("b", mu=mu, sigma=pm.Deterministic("sigma", pt.sqrt(variance)), shape=12)
    pm.Binomial("deaths", n=pm.Data("operations", 7 + r.t), logit_p=b, observed=r.k)
    pm.Deterministic("mean", pm.math.invlogit(mu))
    return {"unit": "individual", "public": ["operations"]}


@entry("aggregate", rows=12)
def plates_of_seeds(r):
    """BUGS examples, seeds: a precision, an effect of every plate, and a logit written out."""
    tau, a = pm.Gamma("tau", 1, 1), [pm.Normal(f"alpha_{k}", 0, 10) for k in range(3)]
    eta = a[0] + a[1] * pm.Data("x1", r.h) + a[2] * pm.Data("x2", r.y) + pm.Normal("b", 0, tau=tau, shape=(12,))
    pm.Binomial("germinated", pm.Data("total", 7 + r.t), pt.exp(eta) / (1 + pt.exp(eta)), observed=r.k)
    return {"unit": "individual", "public": ["x1", "x2", "total"]}


@entry("aggregate", coords={"area": range(3)})
def disease_of_areas(_):
    """PyMC's examples, Besag-York-Mollié: structured and unstructured effects of areas, and expected numbers."""
    W = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0.0]])
    theta, phi = pm.Normal("theta", 0, 1, dims="area"), pm.ICAR("phi", dims="area", W=W)
    rho = pm.Beta("rho", 2, 2)
    effect = pm.Deterministic("mixture", pt.sqrt(1 - rho) * theta + pt.sqrt(rho) * phi, dims="area")
    eta = pm.Data("log_E", np.log([10.0, 20, 30])) + pm.Normal("beta0", 0, 1) + pm.HalfNormal("sigma", 1) * effect
    pm.Poisson("cases", pt.exp(eta), observed=np.array([3, 4, 5]))
    return {"unit": pmdp.Individual(events=1), "public": ["log_E"]}


@entry("shared", "shared", "shared")
def prevalence_with_sensitivity_and_specificity(r):
    """Gelman and Carpenter (2020), on seroprevalence: three samples, of which two tell of the test."""
    prevalence, sensitivity, specificity = pm.Beta("prevalence", 1, 9), pm.Beta("sensitivity", 9, 1), pm.Beta("specificity", 99, 1)
    pm.Bernoulli("survey", prevalence * sensitivity + (1 - prevalence) * (1 - specificity), observed=r.y)
    pm.Bernoulli("ill", sensitivity, observed=r.h[: len(r.y) - 2])
    pm.Bernoulli("well", 1 - specificity, observed=(r.g[: len(r.y) - 4] > 0).astype(int))
    return {}


@entry("indexed", "indexed", coords={"clinic": COUNTY})
def outcome_and_dropout(r):
    """Joint models of longitudinal outcomes: the effect of a clinic stands in the outcome and in whether somebody leaves."""
    clinic, u = pm.Data("clinic_idx", r.g), pm.Normal("u", dims="clinic")
    pm.Normal("y", pm.Normal("m") + u[clinic], pm.HalfNormal("s"), observed=r.x)
    pm.Bernoulli("dropped", logit_p=pm.Normal("a") + pm.Normal("b") * u[clinic], observed=r.y)
    return {"bounds": {"y": REALS}, "public": ["clinic"]}


@entry("indexed")
def heights_by_age(r):
    """Growth curves: Gompertz in public whole years, of which there are few."""
    age, a = pm.Data("age", r.t.astype(float)), pm.Normal("a", 6, 1)
    b, c = pm.LogNormal("b", 0, 0.5), pm.LogNormal("c", 0, 0.5)
    pm.Normal("height", a * pm.math.exp(-b * pm.math.exp(-c * age)), pm.HalfNormal("s") + 0.5, observed=r.x)
    return {"bounds": {"height": REALS}, "public": ["age"]}


@entry("indexed", coords={"treatment": COUNTY})
def half_effective_doses(r):
    """An analysis of dose and response: four parameters, of which one differs by treatment and is stacked from numbers."""
    lower, upper, slope = pm.Normal("lower"), pm.Normal("upper", 4, 1), pm.HalfNormal("slope")
    middles = [pm.Normal(f"log_EC50_{name}", 2, 1) for name in COUNTY]
    middle = pm.Deterministic("log_EC50", pm.math.stack(middles), dims="treatment")
    dose = pm.Data("log10_dose", r.t.astype(float))
    mu = lower + (upper - lower) / (1 + pm.math.exp(-slope * (dose - middle[r.g])))
    pm.Normal("y", mu, pm.HalfNormal("s") + 0.5, observed=r.x)
    return {"bounds": {"y": REALS}, "public": ["log10_dose"]}


# ---------- counts
@entry("table", coords={"age": COUNTY})
def zeros_and_counts_of_smokers(r):
    """Zero-inflated negative binomial regressions: both the share of zeros and the mean rest on a treatment."""
    smoker, age = pm.Data("smoker", r.h), pm.Data("age_idx", r.g)
    psi = pm.math.sigmoid(pm.Normal("p0") + pm.Normal("p1") * smoker)
    mu = pm.math.exp(pm.Normal("a", 0, 1, dims="age")[age] + pm.Normal("b", 0, 0.5) * smoker)
    pm.ZeroInflatedNegativeBinomial("days", psi=psi, mu=mu, alpha=pm.Exponential("alpha", 1), observed=r.k)
    return {"bounds": {"days": BEYOND, "smoker": (0, 1)}}


@entry("indexed")
def days_in_hospital(r):
    """Hurdle negative binomial, by group."""
    psi, mu = pm.Beta("psi", 2, 2, shape=2), pm.math.exp(pm.Normal("a", 1, 1, shape=3))
    pm.HurdleNegativeBinomial("days", psi=psi[r.h], mu=mu[r.g], alpha=pm.Gamma("alpha", 2, 1), observed=r.k)
    return {"bounds": {"days": BEYOND}}


@entry("table")
def detections_of_sites(r):
    """Occupancy models: zero-inflated binomial."""
    psi = pm.math.invlogit(pm.Normal("a", 0, 1.5) + pm.Normal("b") * pm.Data("treated", r.h))
    pm.ZeroInflatedBinomial("seen", psi=psi, n=6, p=pm.Beta("p", 1, 1, shape=3)[r.g], observed=r.k)
    return {"bounds": {"seen": COUNTS, "treated": (0, 1)}}


@entry("indexed")
def disasters_before_and_after(r):
    """PyMC's introduction, coal mining: an unknown year between public ones."""
    years, change = pm.Data("years", 1850 + r.t), pm.DiscreteUniform("change", lower=1850, upper=1854)
    rate = pm.math.switch(change >= years, pm.Exponential("early", 1.0), pm.Exponential("late", 1.0))
    pm.Poisson("disasters", rate, observed=r.k)
    return {"bounds": {"disasters": COUNTS}, "public": ["years"]}


# ---------- economics and causes
@entry("linear", coords={"education": COUNTY})
def wages_by_age_and_education(r):
    """Mincer's equation: age and its square, a gap, and effects of education."""
    age, female = pm.Data("age", r.z), pm.Data("female", r.h)
    curve = pm.Normal("b1") * age + pm.Normal("b2") * age**2 + pm.Normal("gap") * female
    pm.Normal("log_wage", pm.Normal("a", 0, 5, dims="education")[r.g] + curve, pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"log_wage": REALS, "age": (-1, 1), "female": (0, 1)}}


@entry("linear", coords={"instruments": ["1", "z"], "covariates": ["1", "x"]})
def instrument_and_outcome(r):
    """CausalPy, instrumental variables: two responses, each with covariates of its own, and errors that go together."""
    X, Z = pm.Data("X", np.column_stack([np.ones(len(r.y)), r.w])), pm.Data("Z", np.column_stack([np.ones(len(r.y)), r.X[:, 1]]))
    chol, _, _ = pm.LKJCholeskyCov("chol", eta=2, n=2, sd_dist=pm.Exponential.dist(1, shape=2))
    outcome = pm.math.dot(X, pm.Normal("beta_z", 0, 2, dims="covariates"))
    treatment = pm.math.dot(Z, pm.Normal("beta_t", 0, 2, dims="instruments"))
    pm.MvNormal("Y", mu=pt.stack((outcome, treatment), axis=1), chol=chol, observed=np.stack((r.x, r.z)).T, shape=(len(r.y), 2))
    return {"bounds": {"Y": [REALS, (-1, 1)], "X": (-1, 1), "Z": (-1, 1)}}


@entry("table", coords=lambda n: {"coeffs": list("abc"), "obs_ind": range(n)})
def propensity_to_be_treated(r):
    """CausalPy, propensity scores: an intercept among whole-numbered columns."""
    X = pm.Data("X", np.column_stack([np.ones(len(r.y), dtype=int), r.h, r.t]), dims=["obs_ind", "coeffs"])
    p = pm.Deterministic("p", pm.math.invlogit(pt.dot(X, pm.Normal("b", 0, 1, dims="coeffs"))))
    pm.Bernoulli("t_pred", p=p, observed=pm.Data("t", r.y, dims="obs_ind"), dims="obs_ind")
    return {"bounds": {"X": (0, 4)}}


@entry("linear", tolerance=1e-4, coords={"unit": COUNTY, "time": range(5), "since": range(4)})
def effects_by_time_since_treatment(r):
    """Event studies: effects of units, of times and of times since treatment, one of which is set to 0, for the treated."""
    unit, time, since, treated = (pm.Data(k, v) for k, v in (("u", r.g), ("t", r.t), ("e", r.i), ("treated", r.h)))
    effect = pt.set_subtensor(pm.Normal("beta", 0, 1, dims="since")[1], 0.0)
    mu = pm.Normal("a", 0, 5, dims="unit")[unit] + pm.Normal("d", 0, 5, dims="time")[time] + effect[since] * treated
    pm.Normal("y", mu, pm.HalfNormal("s", 2), observed=r.x)
    return {"bounds": {"y": REALS, "treated": (0, 1)}}


# ---------- spellings
@entry("linear")
def slopes_from_a_packed_triangle(r):
    """An analysis of astronomical residuals, in the older way to write an LKJ prior."""
    packed = pm.LKJCholeskyCov("packed", n=2, eta=2.0, sd_dist=pm.HalfNormal.dist(1.0, shape=2), compute_corr=False)
    L = pm.expand_packed_triangular(2, packed, lower=True)
    beta = pm.Deterministic("beta", pm.Normal("mu", 0, 5, shape=2) + pm.Normal("eps", 0, 1, shape=(3, 2)) @ L.T)
    pm.Normal("y", beta[r.g, 0] + beta[r.g, 1] * pm.Data("z", r.z), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "z": (-1, 1)}}


@entry("linear")
def covariance_of_rows(r):
    """Martin (2018), chapter 3: a covariance stacked from two standard deviations and a correlation."""
    a, b, rho = pm.HalfNormal("sigma_1", 10), pm.HalfNormal("sigma_2", 10), pm.Uniform("rho", -1, 1)
    cov = pm.math.stack(([a**2, a * b * rho], [a * b * rho, b**2]))
    pm.MvNormal("Y", mu=pm.Normal("mu", mu=[2, 0], sigma=10, shape=2), cov=cov, observed=np.stack((r.x, r.z)).T)
    return {"bounds": {"Y": [REALS, (-1, 1)]}}


def observed_after_it_was_written(n=N, seed=0):
    """``pm.observe`` of a model that was written without records, the covariate being one of its variables."""
    r = records(n, seed)
    with pm.Model(coords={"obs": range(n)}) as model:
        x = pm.Normal("x", 0, 1, dims="obs")
        pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, pm.HalfNormal("s"), dims="obs")
    return pm.observe(model, {"x": r.z, "y": r.x}), {"bounds": {"y": REALS, "x": (-1, 1)}}


GALLERY.append(Entry(observed_after_it_was_written, ("shared", "linear"), 1e-6))


@entry("table")
def softmax_written_out(r):
    """Regressions of several classes: exponentials divided by their sum over the last axis."""
    eta = pm.Normal("alpha", 0, 1, shape=3) + pm.math.dot(pm.Data("X", r.Y), pm.Laplace("beta", 0, 1, shape=(2, 3)))
    pm.Categorical("y", p=pm.math.exp(eta) / pm.math.sum(pm.math.exp(eta), axis=1, keepdims=True), observed=r.g)
    return {"bounds": {"X": (0, 1)}}


@entry("indexed")
def choices_as_rows_of_ones_and_zeros(r):
    """A multinomial of one trial in place of a category."""
    p = pm.math.softmax(pm.Normal("b", shape=(3, 3)), axis=-1)
    pm.Multinomial("choice", n=1, p=p[r.g], observed=np.eye(3, dtype=int)[r.i % 3])
    return {}


@entry("indexed", coords={"group": [*TOWN, "both"]})
def answers_as_real_numbers(r):
    """Columns as pandas reads them where one of them had gaps: truth values as floats, groups as nullable integers."""
    df = pd.DataFrame({"group": pd.array(r.g, dtype="Int64"), "answer": r.y.astype(float)})
    p = pm.math.sigmoid(pm.Normal("a", dims="group"))[df["group"].to_numpy(dtype=int)]
    pm.Bernoulli("y", p=p, observed=df["answer"])
    return {"public": ["group"]}


# ---------- outcomes in bins
@binned(
    "indexed",
    cdf=lambda x, v, r: stats.t.cdf(x, v["nu"] + 1, v["mu"][r.g][:, None], (v["s"] + v["t"] * v["z"])[r.g][:, None]),
    coords={"group": COUNTY},
)
def groups_with_means_and_spreads(r):
    """An analysis of behaviour: hierarchical means and standard deviations, and Student's t."""
    g = pm.Data("g", r.g)
    mu = pm.Normal("mu", pm.Normal("mu0", 0.0, 1.5), pm.HalfNormal("tau", 1.0), dims="group")
    sigma = pm.HalfNormal("s", 1.0) + pm.HalfNormal("t", 0.5) * pm.HalfNormal("z", 1.0, dims="group")
    sigma = pm.Deterministic("sigma", sigma, dims="group")
    pm.StudentT("y", nu=pm.Exponential("nu", 1 / 30) + 1, mu=mu[g], sigma=sigma[g], observed=r.x)
    return {"bounds": {"y": BINS}, "public": ["group"]}


@binned(
    "indexed", edges=HALVES,
    cdf=lambda x, v, r: stats.gamma.cdf(x, (v["mu"] / v["sigma"])[r.g][:, None] ** 2, scale=(v["sigma"] ** 2 / v["mu"])[r.g][:, None]),
)  # fmt: skip
def tips_by_day(r):
    """Martin (2024), chapter 2: Gamma by mean and standard deviation, and a coordinate that repeats the day of every row."""
    days = np.array(["Thur", "Fri", "Sat"])
    idx = pd.Categorical(days[r.g], categories=days).codes
    pm.modelcontext(None).add_coords({"day": days, "day_of_row": days[idx]})
    mu, sigma = pm.HalfNormal("mu", sigma=5, dims="day"), pm.HalfNormal("sigma", sigma=1, dims="day")
    pm.Gamma("tip", mu=mu[idx], sigma=sigma[idx], observed=np.maximum(np.abs(r.x), 1e-3), dims="day_of_row")
    return {"bounds": {"tip": POSITIVE}, "public": ["day"]}


def _saccade(value, mu, sigma, early):
    """Either of two processes is first: docs of models of decisions at a threshold."""
    slow, fast = pm.Normal.dist(mu, sigma), pm.Normal.dist(0, early)
    either = [pm.logp(a, value) + pm.logcdf(b, value) for a, b in ((slow, fast), (fast, slow))]
    return pt.logsumexp(pt.stack(either, axis=0), axis=0)


@binned("shared", cdf=lambda x, v, r: stats.norm.cdf(x, v["mu"], v["s"] + 1) * stats.norm.cdf(x, 0, v["early"] + 1))
def promptness_of_saccades(r):
    """The LATER model: a density of one's own, whose distribution function is not written."""
    s, early = pm.HalfNormal("s", 1) + 1, pm.HalfNormal("early", 1) + 1
    pm.CustomDist("promptness", pm.Normal("mu", 0, 1), s, early, logp=_saccade, observed=r.x)
    return {"bounds": {"promptness": BINS}}
