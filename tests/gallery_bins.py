"""Models as PyMC users write them whose outcome is released as counts in bins, each with its distribution function by SciPy.

The rewritten log-density at exact counts is that of binned data, which is computed here without the package: from the prior of the user's
model, SciPy's distribution functions and the bins that NumPy finds. ``gallery.GALLERY`` holds these models, too.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from gallery import entry
from scipy import stats

import pymc_dp as pmdp

EDGES = tuple(float(edge) for edge in range(-4, 9))
BINS, POSITIVE = pmdp.Bins(-4, 8, 12), pmdp.Bins(0, 8, 16)


def binned(*structures, cdf, edges=EDGES, tolerance=1e-4, **more):
    """``cdf(x, values, r)`` at edges (1, E), from values of the unknowns and the records, gives (N, E) or (1, E).

    The differences taken here of functions near 1 are off by more than the package's, and PyMC's normal distribution function by 2e-8.
    """
    return entry(*structures, tolerance=tolerance, cdf=cdf, edges=tuple(edges), **more)


HALVES = tuple(np.linspace(0, 8, 17))


@binned("table", cdf=lambda x, v, r: stats.t.cdf(x, v["nu"], (v["a"] + v["b"] * r.h)[:, None], v["s"]))
def student_t_on_a_treatment(r):
    treated = pm.Data("treated", r.h)
    mu = pm.Normal("a", 0, 10) + pm.Normal("b", 0, 10) * treated
    pm.StudentT("y", nu=pm.Gamma("nu", 2, 0.1), mu=mu, sigma=pm.HalfNormal("s", 5), observed=r.x)
    return {"bounds": {"y": BINS, "treated": (0, 1)}}


@binned(
    "indexed",
    cdf=lambda x, v, r: stats.exponnorm.cdf(x, v["nu"][r.g][:, None] / v["s"], v["mu"][r.g][:, None], v["s"]),
    coords={"condition": ["a", "b", "c"]},
)
def reaction_times_by_condition(r):
    condition = pm.Data("condition_idx", r.g)
    mu, nu = pm.Normal("mu", 2, 2, dims="condition"), pm.Gamma("nu", 2, 1, dims="condition")
    pm.ExGaussian("rt", mu=mu[condition], sigma=pm.HalfNormal("s", 1), nu=nu[condition], observed=r.x)
    return {"bounds": {"rt": BINS}}


@binned("indexed", edges=HALVES, cdf=lambda x, v, r: stats.invgauss.cdf(x, v["mu"][r.g][:, None] / v["lam"], scale=v["lam"]))
def first_passage_times(r):
    mu = pm.Gamma("mu", 3, 1, shape=3)
    pm.Wald("t", mu=mu[r.g], lam=pm.Gamma("lam", 3, 1), observed=np.abs(r.x))
    return {"bounds": {"t": POSITIVE}, "public": ["t:0"]}


@binned("shared", cdf=lambda x, v, r: v["w"] * stats.norm.cdf(x, *v["mu"][:1], 1) + (1 - v["w"]) * stats.norm.cdf(x, v["mu"][1], 2))
def two_normals(r):
    mu = pm.Normal("mu", [0, 4], 2, transform=pm.distributions.transforms.ordered, initval=[0.0, 4.0])
    w = pm.Beta("w", 2, 2)
    pm.Mixture("y", pt.stack([w, 1 - w]), [pm.Normal.dist(mu[0], 1.0), pm.Normal.dist(mu[1], 2.0)], observed=r.x)
    return {"bounds": {"y": BINS}}


@binned("indexed", cdf=lambda x, v, r: (v["w"] * stats.norm.cdf(x[..., None], v["mu"][r.h][:, None], v["s"])).sum(-1))
def three_normals_by_town(r):
    mu = pm.Normal("mu", [-2, 2, 6], 1, shape=(2, 3))
    pm.NormalMixture("y", w=pm.Dirichlet("w", np.ones(3)), mu=mu[r.h], sigma=pm.HalfNormal("s", 2, shape=3), observed=r.x)
    return {"bounds": {"y": BINS}}


@binned("indexed", edges=HALVES, cdf=lambda x, v, r: 1 - v["psi"][r.g][:, None] * stats.gamma.sf(x, v["a"], scale=1 / v["b"]))
def daily_rain_hurdle_gamma(r):
    psi = pm.Beta("psi", 2, 2, shape=3)
    rain = np.maximum(r.x, 0)
    pm.HurdleGamma("rain", psi=psi[r.g], alpha=pm.Gamma("a", 2, 1), beta=pm.Gamma("b", 2, 1), observed=rain)
    return {"bounds": {"rain": POSITIVE}}


@binned("shared", edges=HALVES, cdf=lambda x, v, r: 1 - v["psi"] * stats.lognorm.sf(x, 1.0, scale=np.exp(v["m"])))
def spending_hurdle_lognormal(r):
    pm.HurdleLogNormal("y", psi=pm.Beta("psi", 2, 2), mu=pm.Normal("m"), sigma=1.0, observed=np.maximum(r.x, 0))
    return {"bounds": {"y": POSITIVE}}


@binned("indexed", cdf=lambda x, v, r: stats.skewnorm.cdf(x, v["skew"], v["mu"][r.g][:, None], v["s"]))
def skew_normal_by_group(r):
    mu = pm.Normal("mu", 1, 2, shape=3)
    pm.SkewNormal("y", mu=mu[r.g], sigma=pm.HalfNormal("s", 3), alpha=pm.Normal("skew", 0, 2), observed=r.x)
    return {"bounds": {"y": BINS}}


@binned("indexed", edges=HALVES, cdf=lambda x, v, r: stats.weibull_min.cdf(x, v["a"], scale=v["b"][r.g][:, None]))
def weibull_by_group(r):
    pm.Weibull("t", pm.Gamma("a", 2, 1), pm.Gamma("b", 3, 1, shape=3)[r.g], observed=np.abs(r.x))
    return {"bounds": {"t": POSITIVE}}


@binned(
    "indexed",
    cdf=lambda x, v, r: stats.truncnorm.cdf(x, *((e - v["m"][r.h][:, None]) / v["s"] for e in (-5, 9)), v["m"][r.h][:, None], v["s"]),
)
def truncated_normal_by_town(r):
    m = pm.Normal("m", 2, 2, shape=2)
    pm.TruncatedNormal("y", m[r.h], pm.HalfNormal("s", 3), lower=-5, upper=9, observed=r.x)
    return {"bounds": {"y": BINS}}


def _truncated_t(x, v, r):
    low, high, at = (stats.t.cdf(np.clip(place, -4, 8), 4, v["m"], 2) for place in (-4, 8, x))
    return (at - low) / (high - low)


@binned("shared", cdf=_truncated_t)
def truncated_student_t(r):
    pm.Truncated("y", pm.StudentT.dist(nu=4, mu=pm.Normal("m"), sigma=2), lower=-4, upper=8, observed=r.x)
    return {"bounds": {"y": BINS}}


@binned("shared", cdf=lambda x, v, r: stats.cauchy.cdf(x, v["x0"], v["s"]))
def lighthouse(r):
    pm.Cauchy("flash", pm.Normal("x0", 0, 5), pm.HalfNormal("s", 3), observed=r.x)
    return {"bounds": {"flash": BINS}}


@binned("indexed", cdf=lambda x, v, r: stats.logistic.cdf(x, (v["a"] + v["z"])[r.g][:, None], v["s"]), coords={"county": ["a", "b", "c"]})
def logistic_with_varying_intercepts(r):
    a = pm.Normal("a", 0, 3) + pm.Normal("z", dims="county")
    pm.Logistic("y", a[r.g], pm.HalfNormal("s", 2), observed=r.x)
    return {"bounds": {"y": BINS}, "public": ["county"]}


@binned("shared", cdf=lambda x, v, r: stats.gumbel_r.cdf(x, v["m"], v["s"]))
def yearly_maxima(r):
    pm.Gumbel("flood", pm.Normal("m", 0, 3), pm.HalfNormal("s", 3), observed=r.x)
    return {"bounds": {"flood": BINS}}


@binned("indexed", cdf=lambda x, v, r: stats.laplace_asymmetric.cdf(x, v["k"], v["m"][r.g][:, None], 1 / v["b"]))
def quantiles_by_group(r):
    m = pm.Normal("m", 0, 3, shape=3)
    pm.AsymmetricLaplace("y", mu=m[r.g], b=pm.Gamma("b", 2, 2), kappa=pm.Gamma("k", 4, 4), observed=r.x)
    return {"bounds": {"y": BINS}}


@binned("shared", edges=np.linspace(0, 1, 9), cdf=lambda x, v, r: 1 - (1 - np.clip(x, 0, 1) ** v["a"]) ** v["b"])
def shares_kumaraswamy(r):
    pm.Kumaraswamy("share", pm.Gamma("a", 2, 1), pm.Gamma("b", 2, 1), observed=(r.x + 5) / 14)
    return {"bounds": {"share": pmdp.Bins(0, 1, 8)}}


@binned("indexed", edges=HALVES, cdf=lambda x, v, r: np.where(x >= 5, 1, stats.weibull_min.cdf(x, v["a"], scale=v["b"][r.h][:, None])))
def survival_censored_at_the_end_of_a_study(r):
    time = pm.Weibull.dist(pm.Gamma("a", 2, 1), pm.Gamma("b", 3, 1, shape=2)[r.h])
    pm.Censored("t", time, lower=None, upper=5.0, observed=np.minimum(np.abs(r.x), 5.0))
    return {"bounds": {"t": POSITIVE}}


def _until(x, limit, cdf):
    """Distribution function of what is censored at a limit of every record."""
    return np.where(x >= np.asarray(limit)[:, None], 1.0, cdf)


@binned(
    "table", edges=HALVES,
    cdf=lambda x, v, r: _until(x, 2 + r.t, stats.weibull_min.cdf(x, v["a"], scale=np.exp(v["b"] + v["d"] * r.h)[:, None])),
)  # fmt: skip
def survival_with_a_follow_up_for_each(r):
    followed, treated = pm.Data("followed", 2 + r.t), pm.Data("treated", r.h)
    scale = pm.math.exp(pm.Normal("b", 1, 0.3) + pm.Normal("d", 0, 0.3) * treated)
    time = pm.Weibull.dist(pm.Gamma("a", 8, 4), scale)
    pm.Censored("t", time, lower=None, upper=followed, observed=np.minimum(np.abs(r.x), 2 + r.t))
    return {"bounds": {"t": POSITIVE, "followed": (2, 6), "treated": (0, 1)}}


@binned("indexed", edges=HALVES, cdf=lambda x, v, r: _until(x, 2.25 + r.g, stats.lognorm.cdf(x, v["s"], scale=np.exp(v["m"]))))
def lognormal_times_with_public_follow_up(r):
    """Limits inside bins, and not at edges."""
    followed, time = pm.Data("followed", 2.25 + r.g), pm.LogNormal.dist(pm.Normal("m"), pm.HalfNormal("s", 1))
    pm.Censored("t", time, lower=None, upper=followed, observed=np.minimum(np.abs(r.x), 2.25 + r.g))
    return {"bounds": {"t": POSITIVE}, "public": ["followed"]}


@entry("indexed")
def hazards_of_events_and_losses(r):
    """A table of (interval, event or loss) or none of both: competing constant hazards in each interval."""
    edges = np.array([0.0, 1, 2, 4])
    t, event, bins = np.abs(r.x), r.y == 1, len(edges) - 1
    width = pm.Data("width", np.diff(edges))
    events, losses = pm.Gamma("events", 4, 20, shape=(2, bins)), pm.Gamma("losses", 4, 20, shape=bins)
    both = (events + losses) * width
    leaving = pm.math.exp(both - both.cumsum(axis=1)) * (1 - pm.math.exp(-both))
    by_event, by_loss = (leaving * rate / (events + losses) for rate in (events, losses))
    p = pt.concatenate([by_event, by_loss, pm.math.exp(-both.sum(axis=1, keepdims=True))], axis=1)
    code = np.where(t > edges[-1], 2 * bins, np.searchsorted(edges[1:-1], t) + np.where(event, 0, bins))
    pm.Categorical("left", p[pm.Data("treated", r.h)], observed=code)
    return {"public": ["width"]}


@binned(
    "table",
    cdf=lambda x, v, r: np.where(x < np.where(r.h, 1.5, -0.5)[:, None], 0, stats.t.cdf(x, 4, (v["a"] + v["b"] * r.t)[:, None], v["s"])),
)  # fmt: skip
def limits_of_detection_by_laboratory(r):
    limit = np.where(r.h, 1.5, -0.5)
    detected, dose = pm.Data("detected", limit), pm.Data("dose", r.t)
    level = pm.StudentT.dist(nu=4, mu=pm.Normal("a", 0, 3) + pm.Normal("b") * dose, sigma=pm.HalfNormal("s", 3))
    pm.Censored("y", level, lower=detected, upper=None, observed=np.maximum(r.x, limit))
    return {"bounds": {"y": BINS, "detected": {-0.5, 1.5}, "dose": (0, 4)}}


@binned("table", edges=HALVES, cdf=lambda x, v, r: stats.gamma.cdf(x, v["a"], scale=np.exp(v["m"] + v["b"] * r.t)[:, None] / v["a"]))
def gamma_regression_on_a_private_count(r):
    visits, a = pm.Data("visits", r.t), pm.Uniform("a", 1, 3)
    mean = pm.math.exp(pm.Uniform("m", 0, 2) + pm.Uniform("b", -0.2, 0.2) * visits)
    pm.Gamma("cost", alpha=a, beta=a / mean, observed=np.abs(r.x))
    return {"bounds": {"cost": POSITIVE, "visits": (0, 4)}}


@binned(
    "table", edges=tuple(np.linspace(0, 1, 9)),
    cdf=lambda x, v, r: stats.beta.cdf(x, *(v["k"] * share for share in _both(v["a"] + v["b"] * r.t[:, None]))),
)  # fmt: skip
def beta_regression_on_a_private_count(r):
    mean = pm.math.invlogit(pm.Normal("a") + pm.Normal("b", 0, 0.5) * pm.Data("classes", r.t))
    pm.Beta("share", alpha=mean * (k := pm.Gamma("k", 4, 1)), beta=(1 - mean) * k, observed=(r.x + 5) / 14)
    return {"bounds": {"share": pmdp.Bins(0, 1, 8), "classes": (0, 4)}}


def _both(eta):
    """A share by its logit, and the rest."""
    return 1 / (1 + np.exp(-eta)), 1 / (1 + np.exp(eta))


@binned("shared", cdf=lambda x, v, r: np.where(x < -1, 0, np.where(x >= 6, 1, stats.norm.cdf(x, v["m"], v["s"]))))
def tobit_at_both_ends(r):
    latent = pm.Normal.dist(pm.Normal("m", 0, 3), pm.HalfNormal("s", 3))
    pm.Censored("y", latent, lower=-1.0, upper=6.0, observed=np.clip(r.x, -1, 6))
    return {"bounds": {"y": BINS}}


def _hyperbolic_secant(value, mu, s):
    return -pt.log(2 * s) - pt.log(pt.cosh(np.pi / 2 * (value - mu) / s))


@binned("indexed", cdf=lambda x, v, r: stats.hypsecant.cdf(np.pi / 2 * (x - v["mu"][r.g][:, None]) / v["s"]))
def a_density_of_one_s_own(r):
    mu = pm.Normal("mu", 0, 3, shape=3)
    pm.CustomDist("y", mu[r.g], pm.HalfNormal("s", 3), logp=_hyperbolic_secant, observed=r.x)
    return {"bounds": {"y": BINS}}


@binned("shared", edges=HALVES, cdf=lambda x, v, r: np.maximum(2 * stats.t.cdf(x, 3, 0, v["s"]) - 1, 0))
def absolute_errors(r):
    pm.HalfStudentT("e", nu=3, sigma=pm.HalfNormal("s", 3), observed=np.abs(r.x))
    return {"bounds": {"e": POSITIVE}}


@binned("indexed", edges=HALVES, cdf=lambda x, v, r: stats.rice.cdf(x, v["nu"][r.h][:, None] / v["s"], scale=v["s"]))
def wind_speeds(r):
    nu = pm.HalfNormal("nu", 3, shape=2)
    pm.Rice("speed", nu=nu[r.h], sigma=pm.HalfNormal("s", 2), observed=np.abs(r.x))
    return {"bounds": {"speed": POSITIVE}}


@binned("shared", edges=(1, 1.5, 2, 3, 5, 10), cdf=lambda x, v, r: stats.pareto.cdf(x, v["a"]))
def incomes_pareto(r):
    """Also with edges of unequal widths."""
    pm.Pareto("income", alpha=pm.Gamma("a", 2, 1), m=1.0, observed=1 + np.abs(r.x))
    return {"bounds": {"income": pmdp.Bins(edges=[1, 1.5, 2, 3, 5, 10])}}


@binned("shared", cdf=lambda x, v, r: stats.moyal.cdf(x, v["m"], v["s"]))
def energy_losses(r):
    pm.Moyal("loss", pm.Normal("m", 0, 2), pm.HalfNormal("s", 2), observed=r.x)
    return {"bounds": {"loss": BINS}}


@binned("indexed", edges=HALVES, cdf=lambda x, v, r: stats.gamma.cdf(x, v["a"][r.g][:, None], scale=v["m"] / v["a"][r.g][:, None]))
def gamma_of_unknown_shapes(r):
    a, m = pm.Gamma("a", 2, 1, shape=3)[r.g], pm.Gamma("m", 3, 1)
    pm.Gamma("y", alpha=a, beta=a / m, observed=np.abs(r.x))
    return {"bounds": {"y": POSITIVE}}


@binned(
    "shared", edges=HALVES,
    cdf=lambda x, v, r: v["w"][0] * stats.lognorm.cdf(x, 1, scale=np.exp(v["m"])) + v["w"][1] * stats.expon.cdf(x, scale=1 / v["l"]),
)  # fmt: skip
def two_kinds_of_calls(r):
    kinds = [pm.LogNormal.dist(pm.Normal("m"), 1.0), pm.Exponential.dist(pm.Gamma("l", 2, 1))]
    pm.Mixture("minutes", pm.Dirichlet("w", np.ones(2)), kinds, observed=np.abs(r.x))
    return {"bounds": {"minutes": POSITIVE}}


@binned(
    "table",
    cdf=lambda x, v, r: stats.norm.cdf(x, (v["a"] + v["b"] * r.t + v["c"] * r.t**2)[:, None], np.exp(1.5 + v["d"] * r.h)[:, None]),
)  # fmt: skip
def normal_with_spread_by_treatment(r):
    time, treated = pm.Data("time", r.t), pm.Data("treated", r.h)
    mu = pm.Normal("a") + pm.Normal("b", 0, 0.5) * time + pm.Normal("c", 0, 0.1) * time**2
    pm.Normal("y", mu, pm.math.exp(1.5 + pm.Normal("d") * treated), observed=r.x)
    return {"bounds": {"y": BINS, "time": (0, 4), "treated": (0, 1)}}


@binned("shared", edges=(0, 1, 2, 4, 6), cdf=lambda x, v, r: stats.nbinom.cdf(np.floor(x), v["a"], v["a"] / (v["a"] + v["m"])))
def visits_in_coarse_bins(r):
    pm.NegativeBinomial("visits", mu=pm.Gamma("m", 2, 1), alpha=pm.Gamma("a", 2, 1), observed=r.k)
    return {"bounds": {"visits": pmdp.Bins(edges=[0, 1, 2, 4, 6])}}


@binned(
    "shared", edges=tuple(np.linspace(-3, 3, 9)),
    cdf=lambda x, v, r: stats.vonmises.cdf(x, v["k"], v["m"]) - stats.vonmises.cdf(-np.pi, v["k"], v["m"]),
)  # fmt: skip
def directions(r):
    pm.VonMises("angle", pm.Uniform("m", -1, 1), pm.Gamma("k", 2, 1), observed=r.z * 3)
    return {"bounds": {"angle": pmdp.Bins(-3, 3, 8)}}


# ---------- private covariates that are real numbers, in bins so narrow that where in its bin each lies makes no difference
DOSES = (0.0, 0.25, 0.5, 0.75, 1.0)
NARROW = pmdp.Bins(edges=[dose + side for dose in DOSES for side in (-1e-6, 1e-6)])


def dose_of(r):
    return pm.Data("dose", r.t / 4)


@entry("table")
def negative_binomial_on_a_dose(r):
    mean = pm.math.exp(pm.Normal("a") + pm.Normal("b", 0, 0.5) * dose_of(r))
    pm.NegativeBinomial("visits", mu=mean, alpha=pm.Gamma("alpha", 4, 1), observed=r.k)
    return {"bounds": {"visits": (0, 12), "dose": NARROW}}


@binned("table", cdf=lambda x, v, r: stats.t.cdf(x, v["nu"], (v["a"] + v["b"] * r.t / 4)[:, None], v["s"]))
def robust_regression_on_a_dose(r):
    mu = pm.Normal("a", 0, 3) + pm.Normal("b", 0, 3) * dose_of(r)
    pm.StudentT("y", nu=pm.Gamma("nu", 4, 1), mu=mu, sigma=pm.HalfNormal("s", 3), observed=r.x)
    return {"bounds": {"y": BINS, "dose": NARROW}}


@entry("table")
def hsgp_of_a_dose(r):
    gp = pm.gp.HSGP(m=[4], L=[1.0], cov_func=pm.HalfNormal("size") ** 2 * pm.gp.cov.Matern52(1, ls=pm.InverseGamma("ls", 3, 1)))
    gp._X_center = np.array([0.5])  # that of the doses, not of these records
    pm.Bernoulli("y", logit_p=pm.Normal("a") + gp.prior("f", X=dose_of(r)[:, None]), observed=r.y)
    return {"bounds": {"dose": NARROW}, "public": ["y:0", "y:1", "y:2", "y:3"]}


@entry("table")
def ordered_logistic_on_a_dose(r):
    cutpoints = pm.Normal("cut", [-1, 0, 1], 1, transform=pm.distributions.transforms.ordered, shape=3, initval=[-1.0, 0.0, 1.0])
    pm.OrderedLogistic("rating", eta=pm.Normal("b") * dose_of(r), cutpoints=cutpoints, observed=r.i)
    return {"bounds": {"dose": NARROW}}


@binned(
    "table", edges=HALVES,
    cdf=lambda x, v, r: stats.weibull_min.cdf(x, v["k"], scale=np.exp(v["a"] + v["b"] * r.t / 4 + v["c"] * r.h)[:, None]),
)  # fmt: skip
def weibull_survival_on_a_dose_and_a_treatment(r):
    eta = pm.Normal("a", 1, 0.3) + pm.Normal("b", 0, 0.3) * dose_of(r) + pm.Normal("c", 0, 0.3) * pm.Data("treated", r.h)
    pm.Weibull("t", pm.Uniform("k", 0.8, 1.5), pm.math.exp(eta), observed=np.abs(r.x))
    return {"bounds": {"t": POSITIVE, "dose": NARROW, "treated": (0, 1)}}


@entry("table")
def probit_by_public_group_on_a_dose(r):
    p = pm.math.invprobit(pm.Normal("a", shape=3)[pm.Data("group", r.g)] + pm.Normal("b") * dose_of(r))
    pm.Bernoulli("cured", p=p, observed=r.y)
    return {"bounds": {"dose": NARROW}, "public": ["group"]}


@entry("table")
def binomial_with_cloglog_on_a_dose(r):
    p = 1 - pm.math.exp(-pm.math.exp(pm.Normal("a", 0, 0.5) + pm.Normal("b", 0, 0.5) * dose_of(r)))
    pm.Binomial("dead", n=6, p=p, observed=r.k)
    return {"bounds": {"dead": (0, 6), "dose": NARROW}}
