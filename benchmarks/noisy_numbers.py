"""Numbers that others made private: coverage of intervals, a series of pageviews under three laws, and injuries rounded at random.

python benchmarks/noisy_numbers.py coverage [4 400]   rows of a data set, and data sets
python benchmarks/noisy_numbers.py pageviews
python benchmarks/noisy_numbers.py ratios
python benchmarks/noisy_numbers.py broadband FOLDER   with Microsoft's file of broadband usage by postal code
python benchmarks/noisy_numbers.py injuries FOLDER    with the files of Stats NZ's table 7935 and its populations

Without a folder, or where it is absent, broadband and injuries are left out. docs/noisy_numbers_measured.md has the results.
"""

import csv
import gzip
import sys
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pymc as pm
from arviz_stats.base import array_stats
from scipy import stats

import pymc_dp as pmdp


def geometric(rng, scale, size):
    return rng.geometric(-np.expm1(-1 / scale), size) - rng.geometric(-np.expm1(-1 / scale), size)


def discrete_gaussian(rng, scale, size):
    k = np.arange(-int(10 * scale) - 2, int(10 * scale) + 3)
    weights = np.exp(-0.5 * (k / scale) ** 2)
    return rng.choice(k, p=weights / weights.sum(), size=size)


def to_base(rng, y, base):
    down = y // base * base
    return down + base * (rng.random(y.shape) < (y - down) / base)


def above(lowest):
    return lambda v: np.where(v < lowest, np.nan, v)


def hidden(lowest, highest):
    return lambda y: np.where((y >= lowest) & (y <= highest), np.nan, y)


def half_up(base):
    return lambda v: np.floor(v / base + 0.5) * base


SMALL, LARGE, MIDDLE, CHANCE = stats.gamma(2, scale=2), stats.gamma(4, scale=2500), stats.gamma(9, scale=50), stats.beta(2, 2)
LISTED, UNLISTED = pmdp.Threshold(450, absent="listed"), pmdp.Threshold(450, absent="unlisted")


def poisson(prior):
    return (
        prior,
        lambda theta, at: pm.Poisson("y", theta, observed=at),
        lambda rng, theta: rng.poisson(theta),
        lambda v, t: stats.poisson.logpmf(v, t),
    )


def negative_binomial(prior, alpha=3.0):
    return (
        prior,
        lambda theta, at: pm.NegativeBinomial("y", mu=theta, alpha=alpha, observed=at),
        lambda rng, theta: rng.negative_binomial(alpha, alpha / (alpha + theta)),
        lambda v, t: stats.nbinom.logpmf(v, alpha, alpha / (alpha + t)),
    )


def binomial(n):
    return (
        CHANCE,
        lambda theta, at: pm.Binomial("y", n, theta, observed=at),
        lambda rng, theta: rng.binomial(n, theta),
        lambda v, t: stats.binom.logpmf(np.minimum(v, n), n, t),
    )


def bernoulli():
    return (
        CHANCE,
        lambda theta, at: pm.Bernoulli("y", theta, observed=at),
        lambda rng, theta: rng.binomial(1, theta),
        lambda v, t: stats.binom.logpmf(v, 1, t),
    )


def normal(sigma):
    return (
        stats.norm(0, 10),
        lambda theta, at: pm.Normal("y", theta, sigma, observed=at.astype(float)),
        lambda rng, theta: rng.normal(theta, sigma),
        lambda v, t: stats.norm.logpdf(v, t, sigma),
    )


CASES = {
    "RR3, Poisson around 4": (poisson(SMALL), pmdp.RoundedToBase(3), lambda r, y: to_base(r, y, 3)),
    "RR3, absent below 6, Poisson around 4": (
        poisson(SMALL), [pmdp.RoundedToBase(3), pmdp.Threshold(6, absent="listed")], lambda r, y: above(6)(to_base(r, y, 3)),
    ),
    "RR5, negative binomial around 4": (negative_binomial(SMALL), pmdp.RoundedToBase(5), lambda r, y: to_base(r, y, 5)),
    "discrete Gaussian 5, clipped at 0, Poisson around 4": (
        poisson(SMALL), [pmdp.DiscreteGaussian(5), pmdp.Clipped(lower=0)], lambda r, y: np.maximum(y + discrete_gaussian(r, 5, y.shape), 0),
    ),
    "Skellam 8, Poisson around 4": (poisson(SMALL), pmdp.Skellam(8), lambda r, y: y + r.poisson(4, y.shape) - r.poisson(4, y.shape)),
    "Laplace 4 (real), Poisson around 4": (poisson(SMALL), pmdp.LaplaceNoise(4), lambda r, y: y + r.laplace(0, 4, y.shape)),
    "discrete Laplace 4, rounded to tens, binomial of 30": (
        binomial(30), [pmdp.DiscreteLaplace(4), pmdp.Rounded(10)], lambda r, y: half_up(10)(y + geometric(r, 4, y.shape)),
    ),
    "discrete Laplace 30, censored below 450, Poisson around 450": (
        poisson(MIDDLE), [pmdp.DiscreteLaplace(30), LISTED], lambda r, y: above(450)(y + geometric(r, 30, y.shape)),
    ),
    "discrete Laplace 30, truncated below 450, Poisson around 450": (
        poisson(MIDDLE), [pmdp.DiscreteLaplace(30), UNLISTED], lambda r, y: above(450)(y + geometric(r, 30, y.shape)),
    ),
    "discrete Laplace 30, truncated below 450, negative binomial around 450": (
        negative_binomial(MIDDLE), [pmdp.DiscreteLaplace(30), UNLISTED], lambda r, y: above(450)(y + geometric(r, 30, y.shape)),
    ),
    "discrete Laplace 300, Poisson around 10,000": (poisson(LARGE), pmdp.DiscreteLaplace(300), lambda r, y: y + geometric(r, 300, y.shape)),
    "Gaussian 6, censored below 5, Normal": (
        normal(3.0), [pmdp.GaussianNoise(6), pmdp.Threshold(5, absent="listed")], lambda r, y: above(5)(y + r.normal(0, 6, y.shape)),
    ),
    "Laplace 6, Normal": (normal(3.0), pmdp.LaplaceNoise(6), lambda r, y: y + r.laplace(0, 6, y.shape)),
    "1 to 9 suppressed, Poisson around 4": (poisson(SMALL), pmdp.Suppressed(1, 9), lambda r, y: hidden(1, 9)(y)),
    "1 to 4 suppressed, then discrete Laplace 2, Poisson around 4": (
        poisson(SMALL), [pmdp.Suppressed(1, 4), pmdp.DiscreteLaplace(2)], lambda r, y: hidden(1, 4)(y) + geometric(r, 2, y.shape),
    ),
    "1 to 9 suppressed, then RR3, negative binomial around 4": (
        negative_binomial(SMALL), [pmdp.Suppressed(1, 9), pmdp.RoundedToBase(3)],
        lambda r, y: np.where(np.isnan(hidden(1, 9)(y)), np.nan, to_base(r, y, 3)),
    ),
    "answers true with probability 3/4, of people": (
        bernoulli(),
        pmdp.RandomisedResponse(0.75), lambda r, y: np.where(r.random(y.shape) < 0.75, y, 1 - y),
    ),
}  # fmt: skip


def is_truncated(law):
    return isinstance(law, list) and getattr(law[-1], "absent", "") == "unlisted"


def simulated(case, rows, replicates, rng):
    """True parameters, and what is published. Where absent rows are not in the table, rows are drawn until so many are published."""
    (prior, _, draw, _), law, publish = CASES[case]
    theta = prior.rvs(replicates, random_state=rng)
    full = np.broadcast_to(theta[:, None], (replicates, rows))
    seen = publish(rng, draw(rng, full))
    if is_truncated(law):
        # Where next to nothing is published, there would be no table: another parameter is taken.
        theta = np.where(np.isnan(seen).all(axis=1) & (theta < 150), 450.0, theta)
        full = np.broadcast_to(theta[:, None], full.shape)
        while np.isnan(seen).any():
            absent = np.isnan(seen)
            seen[absent] = publish(rng, draw(rng, full[absent]))
    return theta, seen


def ranks(case, rows, replicates, seed):
    """Where true parameters lie in posteriors, by the law and with published numbers taken as exact: quantiles of a fine grid."""
    (prior, build, _, log_exact), law, _ = CASES[case]
    theta, seen = simulated(case, rows, replicates, np.random.default_rng(seed))
    with pm.Model() as model:
        build(pm.Flat("theta", shape=replicates)[:, None], np.zeros(seen.shape, dtype=int))
    public = pmdp.published(model, {"y": law}, values={"y": seen})
    each = public.compile_logp(vars=public.observed_RVs, sum=False)

    def by_law(t):
        return each({"theta": t})[0].sum(axis=1)

    as_counts = seen if case.endswith("Normal") else np.maximum(np.round(seen), 0)

    def by_exact(t):
        return np.nansum(log_exact(as_counts, t[:, None]), axis=1)

    return theta, quantiles(by_law, prior, theta), quantiles(by_exact, prior, theta)


def quantiles(log_likelihood, prior, theta, points=160):
    """The posterior distribution function at theta: on a grid over the prior, and again where the posterior is."""
    grid = np.broadcast_to(prior.ppf((np.arange(points) + 0.5) / points)[:, None], (points, len(theta)))
    for _ in range(5):
        logs = np.array([log_likelihood(t) for t in grid]) + prior.logpdf(grid)
        logs += np.log(np.gradient(grid, axis=0))
        weights = np.exp(logs - logs.max(axis=0))
        below = np.cumsum(weights, axis=0) / weights.sum(axis=0)
        ends = [np.array([np.interp(q, below[:, k], grid[:, k]) for k in range(len(theta))]) for q in (1e-4, 1 - 1e-4)]
        width = np.maximum(ends[1] - ends[0], np.diff(grid, axis=0).max(axis=0))
        low, high = prior.support()
        edges = np.maximum(ends[0] - 0.3 * width, low), np.minimum(ends[1] + 0.3 * width, high)
        last, grid = grid, edges[0] + (edges[1] - edges[0]) * (np.arange(points)[:, None] + 0.5) / points
    half = below - 0.5 * weights / weights.sum(axis=0)
    return np.array([np.interp(theta[k], last[:, k], half[:, k], left=0.0, right=1.0) for k in range(len(theta))])


def covered(ranks, level):
    return np.mean(np.abs(ranks - 0.5) < level / 2)


def coverage(rows=4, replicates=400):
    """A table: how often intervals of 50 and 90 percent hold the truth. One answer says little: of answers there are ten times as many."""
    print("| what was done | 50 % | 90 % | taken as exact: 50 % | 90 % |\n|---|---|---|---|---|")
    for seed, case in enumerate(CASES):
        many = 10 * rows if "people" in case else rows
        _, by_law, by_exact = ranks(case, many, replicates, seed if rows == 4 else seed + 1000 * rows)
        print(
            f"| {case} | " + " | ".join(f"{covered(r, level):.2f}" for r in (by_law, by_exact) for level in (0.5, 0.9)) + " |", flush=True
        )


ERAS = ("to 2017-02-08", "to 2023-02-05", "since")


def pageviews(pages=40, days=15, seed=5):
    """Nothing changes for the readers of 40 pages, while the law of what is published changes twice."""
    rng = np.random.default_rng(seed)
    size = rng.normal(6.0, 1.3, pages)
    books = [
        pmdp.codebooks.pageviews_to_2017("listed"),
        pmdp.codebooks.pageviews_to_2023("listed"),
        pmdp.codebooks.pageviews("low", "listed"),
    ]
    draws = [lambda n: geometric(rng, 300, n), lambda n: geometric(rng, 30, n), lambda n: discrete_gaussian(rng, 18.23, n)]
    tables = []
    for draw, lowest in zip(draws, (3500, 450, 90), strict=True):
        views = rng.negative_binomial(10, 10 / (10 + np.exp(size)[:, None]), (pages, days))
        tables.append(above(lowest)(views + draw(views.shape)).astype(float))
    print("| era | rows published | their mean |\n|---|---|---|")
    for era, table in zip(ERAS, tables, strict=True):
        print(f"| {era} | {np.isfinite(table).sum()} of {table.size} | {np.nanmean(table):,.0f} |")
    whole = [f"era_{k}" for k in range(3)]
    for law in ("exact, published rows only", "the publisher's"):
        exact = law.startswith("exact")
        with pm.Model() as model:
            base = pm.Normal("base", 6, 2, shape=pages)
            change = pm.Normal("change", 0, 1, shape=2)
            alpha = pm.Gamma("alpha", 2, 0.2)
            for name, table, shift in zip(whole, tables, (change[0], 0.0, change[1]), strict=True):
                page = np.repeat(np.arange(pages), days)
                seen = table.ravel()
                keep = np.isfinite(seen) if exact else np.ones(seen.size, dtype=bool)
                observed = seen[keep].astype(int) if exact else np.zeros(seen.size, dtype=int)
                pm.NegativeBinomial(name, mu=pm.math.exp(base[page[keep]] + shift), alpha=alpha, observed=observed)
        laws = dict.fromkeys(whole, pmdp.Exact()) if exact else dict(zip(whole, books, strict=True))
        public = pmdp.published(model, laws, values={} if exact else {n: t.ravel() for n, t in zip(whole, tables, strict=True)})
        tree = pmdp.sample(400, tune=400, chains=2, model=public, progressbar=False, random_seed=1)
        ratio = np.exp(tree.posterior["change"].values.reshape(-1, 2))
        low, high = np.quantile(ratio, [0.05, 0.95], axis=0)
        print(
            f"{law}: views beside the middle era, before {low[0]:.2f} to {high[0]:.2f}, since {low[1]:.2f} to {high[1]:.2f} (90 %)",
            flush=True,
        )


AGES = [f"{low} - {low + 4} years" for low in range(0, 60, 5)] + ["60 years and over"]


def injury_tables(folder):
    """Deaths and people by (sex, ethnicity, age, year)."""

    def lines(name):
        with gzip.open(folder / name, "rt", encoding="utf-8-sig") as file:
            return list(csv.reader(file))

    people = {}
    for name, ethnicity in (("DPE403903_20230101_021709_80.csv.gz", "All"), ("DPE479901_20230101_021445_73.csv.gz", "Maori")):
        for row in lines(name):
            if row and row[0].isdigit() and len(row) > 2 * len(AGES):
                for k, (sex, age) in enumerate((sex, age) for sex in ("Male", "Female") for age in AGES):
                    people[sex, ethnicity, age, row[0]] = float(row[1 + k])
    deaths = defaultdict(int)
    for row in lines("TABLECODE7935_Data.csv.gz")[1:]:
        if len(row) > 6 and row[0].isdigit() and not row[3].startswith("Total"):
            age = "60 years and over" if row[3].startswith(("60", "90")) else row[3]
            deaths[row[1], row[2], age, row[0]] += int(row[6])
    years = sorted({key[3] for key in deaths if ("Male", "All", AGES[0], key[3]) in people})
    keys = [(sex, eth, age, year) for sex in ("Male", "Female") for eth in ("Maori", "Non Maori") for age in AGES for year in years]
    size = [people[s, "Maori", a, y] if e == "Maori" else people[s, "All", a, y] - people[s, "Maori", a, y] for s, e, a, y in keys]
    return keys, np.array([deaths[key] for key in keys]), np.array(size), years


def injuries(folder):
    """Rates by age, sex and ethnicity, smoothed by a hierarchy: by the law of random rounding, and with multiples of 3 taken as exact."""
    keys, deaths, people, years = injury_tables(folder)
    cells = sorted({key[:3] for key in keys})
    cell = np.array([cells.index(key[:3]) for key in keys])
    twice = np.array([key[2].startswith("60") for key in keys])  # two rounded numbers were added up
    keep = ~twice
    results = {}
    for law in (pmdp.Exact(), pmdp.codebooks.rr3()):
        with pm.Model() as model:
            middle, spread = pm.Normal("middle", -8, 2), pm.HalfNormal("spread", 2)
            rate = pm.Deterministic("rate", pm.math.exp(middle + spread * pm.Normal("z", shape=len(cells))))
            alpha = pm.Gamma("alpha", 2, 0.1)
            pm.NegativeBinomial("deaths", mu=rate[cell[keep]] * people[keep], alpha=alpha, observed=deaths[keep])
        public = pmdp.published(model, {"deaths": law})
        tree = pmdp.sample(500, tune=500, chains=2, model=public, progressbar=False, random_seed=2)
        results[str(public.publication)] = tree.posterior
    exact, rounded = results.values()
    rates = [1e5 * each["rate"].values.reshape(-1, len(cells)) for each in (exact, rounded)]
    print(f"{len(years)} years, {keep.sum()} rows, of which {np.mean(deaths[keep] == 0):.0%} are 0")
    alphas = [each["alpha"].values for each in (exact, rounded)]
    print("alpha: exact {:.1f} +- {:.1f}, RR3 {:.1f} +- {:.1f}".format(*[f(a) for a in alphas for f in (np.mean, np.std)]))
    small = [k for k in range(len(cells)) if not cells[k][2].startswith("60")]
    order = sorted(small, key=lambda k: deaths[keep][cell[keep] == k].sum())
    print("| cell | deaths a year | exact: rate of 100,000 | RR3 |\n|---|---|---|---|")
    for k in [*order[:4], *order[-2:]]:
        ends = [np.quantile(r[:, k], [0.05, 0.5, 0.95]) for r in rates]
        words = " | ".join(f"{e[1]:.1f} ({e[0]:.1f} to {e[2]:.1f})" for e in ends)
        print(f"| {', '.join(cells[k])} | {deaths[keep][cell[keep] == k].mean():.1f} | {words} |")
    widths = np.array([np.ptp(np.quantile(r[:, order], [0.05, 0.95], axis=0), axis=0) for r in rates])
    print("width of intervals, RR3 / exact, by cell: " + ", ".join(f"{q:.2f}" for q in np.quantile(widths[1] / widths[0], [0, 0.5, 1])))


def ratio_rows(rng, theta, wholes, scale=10):
    """Published ratios (replicates, rows) of binomial parts, clipped to 0 and 1."""
    parts = rng.binomial(wholes, theta[:, None])
    return np.clip((parts + rng.laplace(0, scale, parts.shape)) / (wholes + rng.laplace(0, scale, parts.shape)), 0, 1)


def ratios(replicates=400):
    """Coverage of the share behind ratios of two noisy counts, few and many, of small and of large wholes."""
    print("| wholes | rows | 50 % | 90 % | taken as exact: 50 % | 90 % |\n|---|---|---|---|---|---|")
    for seed, (low, high, rows) in enumerate([(20, 60, 4), (20, 60, 40), (200, 600, 4)]):
        rng = np.random.default_rng(seed)
        theta = CHANCE.rvs(replicates, random_state=rng)
        wholes = rng.integers(low, high, (replicates, rows))
        seen = ratio_rows(rng, theta, wholes)
        with pm.Model() as model:
            pm.Binomial("y", wholes, pm.Flat("theta", shape=replicates)[:, None], observed=np.zeros(seen.shape, dtype=int))
        law = [pmdp.NoisyRatio(pmdp.LaplaceNoise(10), of=wholes), pmdp.Clipped(0, 1)]
        public = pmdp.published(model, {"y": law}, values={"y": seen})
        by_row = public.compile_logp(vars=public.observed_RVs, sum=False)
        found = [
            quantiles(lambda t, by_row=by_row: by_row({"theta": t})[0].sum(axis=1), CHANCE, theta),
            quantiles(lambda t, s=seen, n=wholes: stats.binom.logpmf(np.round(s * n), n, t[:, None]).sum(axis=1), CHANCE, theta),
        ]
        shares = " | ".join(f"{covered(rank, level):.2f}" for rank in found for level in (0.5, 0.9))
        print(f"| {low} to {high} | {rows} | {shares} |", flush=True)


def wholes_of(errors, scale=10, share=0.5):
    """For mean absolute errors of a ratio, the wholes that have them, by simulation at this share."""
    rng = np.random.default_rng(1)
    top, bottom = rng.laplace(0, scale, (2, 20_000))
    wholes = np.unique(np.geomspace(8, 30_000, 400).astype(int))
    found = [np.abs(np.clip((share * n + top) / (n + bottom), 0, 1) - share).mean() for n in wholes]
    return wholes[np.argmin(np.abs(np.log(np.maximum(errors, 5e-4))[:, None] - np.log(found)), axis=1)]


def broadband(folder, states=("DE", "HI", "RI", "NV", "WY", "VT")):
    """Broadband usage by state, hierarchical over postal codes: ratios under their law, and taken as exact."""
    with gzip.open(folder / "broadband_data_zipcode.csv.gz", "rt", encoding="utf-8-sig") as file:
        rows = [row for row in csv.DictReader(file) if row["ST"] in states]
    state = np.array([states.index(row["ST"]) for row in rows])
    told = np.array([float(row["BROADBAND USAGE"]) for row in rows])
    wholes = wholes_of(np.array([float(row["ERROR RANGE (MAE)(+/-)"]) for row in rows]))
    law = pmdp.codebooks.broadband(wholes)
    print(f"{len(rows)} postal codes, {np.mean((told <= 0) | (told >= 1)):.0%} at 0 or 1; wholes {wholes.min()} to {wholes.max():,}")
    results = []
    for exact in (True, False):
        with pm.Model() as model:
            middle, spread = pm.Normal("middle", 0, 1.5, shape=len(states)), pm.HalfNormal("spread", 1, shape=len(states))
            logit = pm.Normal("logit", middle[state], spread[state])
            pm.Binomial(
                "online", wholes, logit_p=logit, observed=np.round(told * wholes).astype(int) if exact else np.zeros(len(rows), dtype=int)
            )
        public = pmdp.published(model, {"online": pmdp.Exact() if exact else law}, values={} if exact else {"online": told})
        tree = pmdp.sample(1000, tune=1000, chains=2, model=public, progressbar=False, random_seed=3)
        results.append(tree.posterior)
        of_states = np.concatenate([tree.posterior[name].values for name in ("middle", "spread")], axis=-1)
        r_hat = float(array_stats.rhat(of_states, chain_axis=0, draw_axis=1).max())
        print(f"{'exact' if exact else 'law'}: R-hat at most {r_hat:.3f}, {int(tree.sample_stats['diverging'].sum())} divergent draws")
    print(
        "| state | postal codes | at 0 or 1 | exact: median (90 %) | spread | law: median (90 %) | spread |\n|---|---|---|---|---|---|---|"
    )
    for k, name in enumerate(states):
        here = state == k
        words = []
        for each in results:
            low, middle, high = stats.logistic.cdf(np.quantile(each["middle"].values[..., k], [0.05, 0.5, 0.95]))
            words += [f"{middle:.2f} ({low:.2f} to {high:.2f})"]
            words += ["{1:.2f} ({0:.2f} to {2:.2f})".format(*np.quantile(each["spread"].values[..., k], [0.05, 0.5, 0.95]))]
        print(f"| {name} | {here.sum()} | {np.mean((told <= 0) | (told >= 1), where=here):.0%} | {' | '.join(words)} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    wanted = sys.argv[1:] or ["coverage", "pageviews"]
    if "coverage" in wanted:
        coverage(*map(int, wanted[1:]))
    if "pageviews" in wanted:
        pageviews()
    if "ratios" in wanted:
        ratios()
    if "broadband" in wanted:
        place = Path(wanted[-1])
        broadband(place) if place.is_dir() else print(f"There is no folder {place}: broadband is left out.")
    if "injuries" in wanted:
        place = Path(wanted[-1])
        injuries(place) if place.is_dir() else print(f"There is no folder {place}: the injuries are left out.")
