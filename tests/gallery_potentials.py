"""Models as PyMC users write them whose likelihood is a ``pm.Potential``, each with the distribution function of its values by SciPy.

The rewritten log-density at exact counts is that of binned data; with flags of events, that of bins in which events or losses fall, by sums
over a fine grid of points. ``gallery.GALLERY`` holds these models, too.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from gallery import entry
from scipy import stats

import pymc_dp as pmdp

EDGES = tuple(np.linspace(0, 8, 9))
TIMES = pmdp.Bins(edges=EDGES)


def times(r):
    """How long records were seen, to the full or half number."""
    return np.abs(r.x)


def potential(*structures, cdf, seen, edges=EDGES, tolerance=1e-3, **more):
    """``seen(r)`` are the values, and the flags of events where there are some; for ``cdf`` see ``gallery_bins``."""
    return entry(*structures, tolerance=tolerance, cdf=cdf, edges=tuple(edges), seen=seen, **more)


def logistic_cdf(x, alpha, beta):
    u = (x / beta) ** alpha
    return u / (1 + u)


# ---------- values alone
@potential(
    "table", edges=range(-4, 9), seen=lambda r: (r.x, None),
    cdf=lambda x, v, r: stats.t.cdf(x, v["nu"], (v["a"] + v["b"] * r.h)[:, None], v["s"]),
)  # fmt: skip
def student_t_by_a_potential(r):
    x, treated = pm.Data("x", r.x), pm.Data("treated", r.h)
    mu = pm.Normal("a", 0, 10) + pm.Normal("b", 0, 10) * treated
    law = pm.StudentT.dist(nu=pm.Gamma("nu", 2, 0.1), mu=mu, sigma=pm.HalfNormal("s", 5))
    pm.Potential("like", pm.logp(law, x).sum())
    return {"bounds": {"x": pmdp.Bins(-4, 8, 12), "treated": (0, 1)}}


@potential("shared", edges=range(-4, 9), seen=lambda r: (r.x, None), cdf=lambda x, v, r: stats.cauchy.cdf(x, v["m"], v["s"]))
def cauchy_by_a_potential_of_a_plain_array(r):
    pm.Potential("like", pm.logp(pm.Cauchy.dist(pm.Normal("m", 0, 5), pm.HalfNormal("s", 5)), r.x))
    return {"bounds": {"like": pmdp.Bins(-4, 8, 12)}}


# ---------- mixtures
def mixed(weight, cdf):
    """The distribution function of components with these weights (K,): ``cdf`` is theirs, (K, ...) of points."""
    return np.tensordot(weight, cdf, axes=1)


def of_normals(x, v, r):
    return mixed(v["w"], stats.norm.cdf(x, v["m"].reshape(-1, 1, 1), np.reshape(v["s"], (-1, 1, 1))))


@potential("shared", edges=range(-4, 9), seen=lambda r: (r.x, None), cdf=of_normals)
def two_normals_by_logsumexp(r):
    x, w, m, s = pm.Data("x", r.x), pm.Dirichlet("w", np.ones(2)), pm.Normal("m", 0, 5, shape=2), pm.HalfNormal("s", 5)
    parts = [pt.log(w[k]) + pm.logp(pm.Normal.dist(m[k], s), x) for k in range(2)]
    pm.Potential("like", pm.math.logsumexp(pt.stack(parts, axis=0), axis=0).sum())
    return {"bounds": {"x": pmdp.Bins(-4, 8, 12)}}


@potential("shared", edges=range(-4, 9), seen=lambda r: (r.x, None), cdf=of_normals)
def three_normals_of_a_plain_array(r):
    """``pm.logp`` of a distribution that PyMC mixes."""
    w, m, s = pm.Dirichlet("w", np.ones(3)), pm.Normal("m", 0, 5, shape=3), pm.HalfNormal("s", 5, shape=3)
    pm.Potential("like", pm.logp(pm.NormalMixture.dist(w=w, mu=m, sigma=s), r.x).sum())
    return {"bounds": {"like": pmdp.Bins(-4, 8, 12)}}


@potential(
    "table", edges=range(-4, 9), seen=lambda r: (r.x, None),
    cdf=lambda x, v, r: mixed(
        [v["p"], 1 - v["p"]],
        np.broadcast_arrays(stats.norm.cdf(x, (v["a"] + v["b"] * r.h)[:, None], v["s"]), stats.t.cdf(x, 3, v["a"], 4)),
    ),
)  # fmt: skip
def outliers_by_a_mixture(r):
    """Components of two kinds, one of which rests on a covariate."""
    x, treated, p = pm.Data("x", r.x), pm.Data("treated", r.h), pm.Beta("p", 4, 2)
    a, b = pm.Normal("a", 0, 5), pm.Normal("b", 0, 5)
    components = [pm.Normal.dist(a + b * treated, pm.HalfNormal("s", 5)), pm.StudentT.dist(nu=3, mu=a, sigma=4)]
    pm.Potential("like", pm.logp(pm.Mixture.dist(w=pt.stack([p, 1 - p]), comp_dists=components), x).sum())
    return {"bounds": {"x": pmdp.Bins(-4, 8, 12), "treated": (0, 1)}}


@potential(
    "shared", seen=lambda r: (times(r), None),
    cdf=lambda x, v, r: mixed(
        [v["p"], 1 - v["p"]], [stats.gamma.cdf(x, shape, scale=1 / rate) for shape, rate in zip((2, 5), v["rate"], strict=True)]
    ),
)  # fmt: skip
def waits_by_a_sum_of_densities(r):
    t, p, rate = pm.Data("t", times(r)), pm.Beta("p", 2, 2), pm.Gamma("rate", 2, 2, shape=2)
    short, long = (pt.exp(pm.logp(pm.Gamma.dist(shape, rate[k]), t)) for k, shape in enumerate((2, 5)))
    pm.Potential("like", pt.log(p * short + (1 - p) * long).sum())
    return {"bounds": {"t": TIMES}}


@potential(
    "indexed", edges=range(-4, 9), seen=lambda r: (r.x, None),
    cdf=lambda x, v, r: v["w"][r.h] @ stats.norm.cdf(x, v["m"][:, None], v["s"]),
)  # fmt: skip
def normals_with_weights_by_arm(r):
    x, arm = pm.Data("x", r.x), pm.Data("arm", r.h)
    w, m, s = pm.Dirichlet("w", np.ones(2), shape=(2, 2)), pm.Normal("m", 0, 5, shape=2), pm.HalfNormal("s", 5)
    pm.Potential("like", pm.logp(pm.NormalMixture.dist(w=w[arm], mu=m, sigma=s), x).sum())
    return {"bounds": {"x": pmdp.Bins(-4, 8, 12)}}


# ---------- times and events
def weibull(x, v, r):
    return stats.weibull_min.cdf(x, v["alpha"], scale=np.exp(v["a"] + v["b"] * r.h)[:, None])


@potential("table", seen=lambda r: (times(r), r.y), cdf=weibull)
def weibull_survival(r):
    t, event, treated = pm.Data("t", times(r)), pm.Data("event", r.y), pm.Data("treated", r.h)
    law = pm.Weibull.dist(pm.Gamma("alpha", 4, 3), pm.math.exp(pm.Normal("a", 1, 1) + pm.Normal("b", 0, 1) * treated))
    pm.Potential("like", (event * pm.logp(law, t) + (1 - event) * pm.logccdf(law, t)).sum())
    return {"bounds": {"t": TIMES, "treated": (0, 1)}}


@potential(
    "table", seen=lambda r: (times(r), r.y), cdf=lambda x, v, r: stats.lognorm.cdf(x, v["s"], scale=np.exp(v["m"][r.g])[:, None]),
    coords={"site": ["a", "b", "c"]},
)  # fmt: skip
def log_normal_survival_by_switch(r):
    t, event, site = pm.Data("t", times(r)), pm.Data("event", r.y.astype(bool)), pm.Data("site_idx", r.g)
    law = pm.LogNormal.dist(pm.Normal("m", 1, 1, dims="site")[site], pm.HalfNormal("s", 2))
    pm.Potential("like", pm.math.switch(event, pm.logp(law, t), pt.log1mexp(pm.logcdf(law, t))).sum())
    return {"bounds": {"t": TIMES}, "public": ["site_idx"]}


@potential("table", seen=lambda r: (times(r), r.y), cdf=lambda x, v, r: stats.expon.cdf(x, scale=1 / v["rate"][r.h][:, None]))
def constant_hazards(r):
    """A flag of floats, and a vector with an entry per record."""
    t, event = pm.Data("t", times(r)), pm.Data("event", r.y.astype(float))
    rate = pm.Gamma("rate", 2, 4, shape=2)[pm.Data("arm", r.h)]
    pm.Potential("like", event * pt.log(rate) - rate * t)
    return {"bounds": {"t": TIMES, "event": {0, 1}}}


@potential("table", seen=lambda r: (times(r), r.y), cdf=lambda x, v, r: logistic_cdf(x, v["alpha"], v["beta"]))
def log_logistic_by_where(r):
    t, event, alpha, beta = pm.Data("t", times(r)), pm.Data("event", r.y), pm.Gamma("alpha", 4, 2), pm.Gamma("beta", 4, 1)
    law = pm.CustomDist.dist(
        alpha, beta,
        logp=lambda t, a, b: pt.log(a / b) + (a - 1) * pt.log(t / b) - 2 * pt.log1p((t / b) ** a),
        logcdf=lambda t, a, b: pt.log((t / b) ** a) - pt.log1p((t / b) ** a),
    )  # fmt: skip
    pm.Potential("like", pt.where(pt.eq(event, 1), pm.logp(law, t), pt.log(1 - pt.exp(pm.logcdf(law, t)))).sum())
    return {"bounds": {"t": TIMES}}


@potential("table", seen=lambda r: (times(r), r.y), cdf=lambda x, v, r: -np.expm1(-v["c"] / v["k"] * np.expm1(v["k"] * x)))
def gompertz_in_two_potentials(r):
    """Events and losses each by themselves, with survival written by hand."""
    t, event, growth, level = pm.Data("t", times(r)), pm.Data("event", r.y), pm.Gamma("k", 4, 20), pm.Gamma("c", 4, 30)
    survival = -level / growth * pt.expm1(growth * t)
    pm.Potential("events", (event * (pt.log(level) + growth * t + survival)).sum())
    pm.Potential("losses", ((1 - event) * survival).sum())
    return {"bounds": {"t": TIMES}}


@potential("table", seen=lambda r: (times(r), r.y), cdf=lambda x, v, r: (1 - v["cured"]) * stats.weibull_min.cdf(x, 1.5, scale=v["beta"]))
def cured_by_a_deterministic_of_records(r):
    t, event, cured = pm.Data("t", times(r)), pm.Data("event", r.y), pm.Beta("cured", 2, 2)
    law = pm.Weibull.dist(1.5, pm.Gamma("beta", 4, 1))
    seen = pt.log1p(-cured) + pm.logp(law, t)
    unseen = pt.log(cured + (1 - cured) * pt.exp(pm.logccdf(law, t)))
    each = pm.Deterministic("each", event * seen + (1 - event) * unseen)
    pm.Potential("like", pm.math.sum(each))
    return {"bounds": {"t": TIMES}}


@potential("table", seen=lambda r: (times(r), r.y), cdf=lambda x, v, r: stats.weibull_min.cdf(x, v["alpha"], scale=v["scale"]))
def hazards_of_plain_arrays(r):
    """Times that are written twice are one array: where their memory is, says so."""
    t, alpha, scale = times(r), pm.Gamma("alpha", 4, 3), pm.Gamma("scale", 4, 1)
    hazard = alpha / scale * (t / scale) ** (alpha - 1)
    pm.Potential("like", (r.y * pt.log(hazard) - (t / scale) ** alpha).sum())
    return {"bounds": {"like": TIMES}}
