"""Randomised answers and noised covariates: do intervals hold the truth, by the law and with what was told taken as exact; and how long.

    python benchmarks/randomised.py coverage [50 400] [2000 100]   rows and data sets; then, if you like, how many cases to leave out
    python benchmarks/randomised.py chains NAME 50 200             one case by Markov chains, where importance sampling fails
    python benchmarks/randomised.py latent                         a covariate whose true values are drawn, by NUTS
    python benchmarks/randomised.py speed                          log-density and gradient of 100,000 rows, CPU milliseconds

docs/noisy_numbers_measured.md has the results. Data sets are drawn with parameters from the prior. All data sets of a case are one
model, in which
each has its own parameters, so that it is compiled once. Posteriors are drawn by importance sampling, from a t distribution at the mode
that is adapted twice (once where rows are many); the effective size that all but one in a hundred reach is printed.
"""

import sys
import time
import warnings

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from scipy.special import expit, softmax

import pymc_dp as pmdp

EXACT, RR, RR3 = pmdp.Exact(), pmdp.RandomisedResponse(0.75), pmdp.RandomisedResponse(0.6, levels=3)
QUESTION = pmdp.UnrelatedQuestion(asked=0.7, yes=0.25)
WIDE, LOG = 1.5, 0.5
"""Standard deviations of the priors of coefficients and logits, and of logarithms of standard deviations. All have mean 0."""


def flipped(rng, x, truth=0.75):
    return np.where(rng.random(x.shape) < truth, x, 1 - x)


def geometric(rng, scale, size):
    return rng.geometric(-np.expm1(-1 / scale), size) - rng.geometric(-np.expm1(-1 / scale), size)


# A case: standard deviations of the prior of theta, whose second entry is the slope of interest; what is drawn given theta (D, K) and N;
# the model of theta, entries (D N,) each, and of the published numbers; the laws.


def outcome(law, told):
    def draw(rng, t, n):
        z = rng.normal(size=(len(t), n))
        return {"z": z, "y": told(rng, rng.binomial(1, expit(t[:, :1] + t[:, 1:2] * z)))}

    def build(t, d):
        pm.Bernoulli("y", logit_p=t[0] + t[1] * d["z"], observed=d["y"])

    return [WIDE, WIDE], draw, build, {"y": law}


def binary_linear():
    def draw(rng, t, n):
        x = rng.binomial(1, expit(t[:, 2:3]) * np.ones(n))
        return {"x": flipped(rng, x), "y": rng.normal(t[:, :1] + t[:, 1:2] * x, np.exp(t[:, 3:4]))}

    def build(t, d):
        x = pm.Bernoulli("x", logit_p=t[2], observed=d["x"])
        pm.Normal("y", t[0] + t[1] * x, pt.exp(t[3]), observed=d["y"])

    return [WIDE, WIDE, 1.0, LOG], draw, build, {"x": RR, "y": EXACT}


def binary_logistic(both):
    def draw(rng, t, n):
        z = rng.normal(size=(len(t), n))
        x = rng.binomial(1, expit(t[:, 2:3] + z))
        y = rng.binomial(1, expit(t[:, :1] + t[:, 1:2] * x + t[:, 3:4] * z))
        return {"z": z, "x": flipped(rng, x), "y": flipped(rng, y) if both else y}

    def build(t, d):
        x = pm.Bernoulli("x", logit_p=t[2] + d["z"], observed=d["x"])
        pm.Bernoulli("y", logit_p=t[0] + t[1] * x + t[3] * d["z"], observed=d["y"])

    return [WIDE, WIDE, 1.0, WIDE], draw, build, {"x": RR, "y": RR if both else EXACT}


def two_covariates():
    def draw(rng, t, n):
        x = rng.binomial(1, expit(t[:, 2:3]) * np.ones(n))
        w = rng.binomial(1, expit(t[:, 3:4] + t[:, 4:5] * x))
        return {"x": flipped(rng, x), "w": flipped(rng, w), "y": rng.normal(t[:, :1] + t[:, 1:2] * x + t[:, 5:6] * w, np.exp(t[:, 6:7]))}

    def build(t, d):
        x = pm.Bernoulli("x", logit_p=t[2], observed=d["x"])
        w = pm.Bernoulli("w", logit_p=t[3] + t[4] * x, observed=d["w"])
        pm.Normal("y", t[0] + t[1] * x + t[5] * w, pt.exp(t[6]), observed=d["y"])

    return [WIDE, WIDE, 1.0, 1.0, WIDE, WIDE, LOG], draw, build, {"x": RR, "w": RR, "y": EXACT}


def three_levels():
    def draw(rng, t, n):
        shares = softmax(np.stack([0 * t[:, 0], t[:, 3], t[:, 4]], axis=1), axis=1)
        x = (rng.random((len(t), n, 1)) > shares.cumsum(axis=1)[:, None, :2]).sum(axis=2)
        other = (x + rng.integers(1, 3, x.shape)) % 3
        told = np.where(rng.random(x.shape) < 0.6, x, other)
        means = np.stack([t[:, 0], t[:, 0] + t[:, 1], t[:, 0] + t[:, 2]], axis=1)
        return {"x": told, "y": rng.normal(np.take_along_axis(means, x, axis=1), 1.0)}

    def build(t, d):
        x = pm.Categorical("x", logit_p=pt.stack([0 * t[3], t[3], t[4]], axis=1), observed=d["x"])
        pm.Normal("y", t[0] + t[1] * pt.eq(x, 1) + t[2] * pt.eq(x, 2), 1.0, observed=d["y"])

    return [WIDE, WIDE, WIDE, 1.0, 1.0], draw, build, {"x": RR3, "y": EXACT}


def bounded_count():
    def draw(rng, t, n):
        x = rng.binomial(6, expit(t[:, 2:3]) * np.ones(n))
        y = rng.binomial(1, expit(t[:, :1] + t[:, 1:2] * (x - 3) / 2))
        return {"x": x + geometric(rng, 1.5, x.shape), "y": y}

    def build(t, d):
        x = pm.Binomial("x", 6, pm.math.sigmoid(t[2]), observed=d["x"])
        pm.Bernoulli("y", logit_p=t[0] + t[1] * (x - 3) / 2, observed=d["y"])

    return [WIDE, WIDE, 1.0], draw, build, {"x": pmdp.DiscreteLaplace(1.5), "y": EXACT}


def measured(law, noise, told=None):
    def draw(rng, t, n):
        x = rng.normal(t[:, 2:3], np.exp(t[:, 3:4]), (len(t), n))
        y = rng.normal(t[:, :1] + t[:, 1:2] * x, np.exp(t[:, 4:5]))
        return {"x": x + noise(rng, x.shape), "y": y if told is None else y + told.scale * rng.normal(size=x.shape)}

    def build(t, d):
        x = pm.Normal("x", t[2], pt.exp(t[3]), observed=d["x"])
        pm.Normal("y", t[0] + t[1] * x, pt.exp(t[4]), observed=d["y"])

    return [WIDE, WIDE, 1.0, LOG, LOG], draw, build, {"x": law, "y": told or EXACT}


CASES = {
    "y flipped (true: 3/4), logistic": lambda: outcome(RR, flipped),
    "y by an unrelated question (asked .7, yes .25), logistic": lambda: outcome(
        QUESTION, lambda r, y: np.where(r.random(y.shape) < 0.7, y, r.random(y.shape) < 0.25)
    ),
    "x flipped, y normal": binary_linear,
    "x flipped, goes with a public z, y logistic": lambda: binary_logistic(False),
    "x and y flipped, y logistic": lambda: binary_logistic(True),
    "x and w flipped, w goes with x, y normal": two_covariates,
    "x of 3 levels (true: .6), y normal": three_levels,
    "x binomial of 6, discrete Laplace 1.5, y logistic": bounded_count,
    "x normal, Laplace 1, y normal": lambda: measured(pmdp.LaplaceNoise(1.0), lambda r, s: r.laplace(0, 1, s)),
    "x normal, Gaussian 1, y normal with Gaussian 1": lambda: measured(
        pmdp.GaussianNoise(1.0), lambda r, s: r.normal(size=s), pmdp.GaussianNoise(1.0)
    ),
}


class Posteriors:
    """Log-posteriors of all data sets of a case, and their gradients."""

    def __init__(self, case, data, laws):
        prior, _, build, _ = case
        self.scale = np.array(prior)
        self.sets, rows = next(iter(data.values())).shape
        which = np.repeat(np.arange(self.sets), rows)
        with pm.Model() as model:
            theta = pm.Flat("theta", shape=(self.sets, len(prior)))
            build([theta[:, k][which] for k in range(len(prior))], {name: numbers.ravel() for name, numbers in data.items()})
        public = pmdp.published(model, laws)
        parts = public.logp(vars=public.observed_RVs, sum=False)
        each = sum(part.reshape((self.sets, rows)).sum(axis=1) for part in parts)
        value = public.rvs_to_values[public["theta"]]
        self._both = pytensor.function([value], [each, pt.grad(each.sum(), value)])
        self._value = pytensor.function([value], each)

    def value(self, theta):
        return self._value(theta) - 0.5 * ((theta / self.scale) ** 2).sum(axis=1)

    def slope(self, theta):
        """The logarithm (D,) and its gradient (D, K); -inf and 0 where logits are so large that PyMC finds no gradient."""
        value, slope = self._both(theta)
        found = np.isfinite(slope).all(axis=1)
        value = np.where(found, value - 0.5 * ((theta / self.scale) ** 2).sum(axis=1), -np.inf)
        return value, np.where(found[:, None], slope - theta / self.scale**2, 0.0)

    def curvature(self, theta, step=1e-4):
        """Less the Hessians (D, K, K)."""
        K = len(self.scale)
        rows = [(self.slope(theta - step * e)[1] - self.slope(theta + step * e)[1]) / (2 * step) for e in np.eye(K)]
        whole = np.stack(rows, axis=2)
        return (whole + whole.transpose(0, 2, 1)) / 2

    def mode(self, rounds=20):
        """Newton's steps, each as short as it must be to go up."""
        theta, damping = np.zeros((self.sets, len(self.scale))), np.ones(self.sets)
        value, slope = self.slope(theta)
        for _ in range(rounds):
            eigen, vectors = np.linalg.eigh(self.curvature(theta))
            eigen = np.maximum(np.abs(eigen), 1e-3) + damping[:, None]
            step = np.einsum("dij,dj->di", vectors, np.einsum("dji,dj->di", vectors, slope) / eigen)
            new = np.clip(theta + step, -8 * self.scale, 8 * self.scale)
            new_value, new_slope = self.slope(new)
            up = new_value >= value
            theta = np.where(up[:, None], new, theta)
            value, slope = np.where(up, new_value, value), np.where(up[:, None], new_slope, slope)
            damping = np.where(up, damping * 0.2, damping * 8 + 1e-3)
            if np.abs(step[up]).max(initial=0.0) < 1e-4:
                break
        return theta

    def draws(self, size, rng, rounds, freedom=5):
        """Draws (S, D, K) and weights (S, D): a t distribution at the mode, then one with the moments that were found."""
        middle = self.mode()
        eigen, vectors = np.linalg.eigh(self.curvature(middle))
        # Where it is nearly flat, the prior's width is the widest that makes sense.
        spread = np.einsum("dij,dj,dkj->dik", vectors, 1 / np.maximum(eigen, 1 / (2 * self.scale.max()) ** 2), vectors)
        for _ in range(rounds):
            root = np.linalg.cholesky(spread + 1e-10 * np.eye(len(self.scale)))
            normal = rng.normal(size=(size, self.sets, len(self.scale)))
            chi = rng.chisquare(freedom, (size, self.sets)) / freedom
            apart = normal / np.sqrt(chi)[..., None]
            theta = middle + np.einsum("dij,sdj->sdi", root, apart)
            far = (np.abs(theta) > 12 * self.scale).any(axis=2)  # the prior has nothing there
            logs = np.where(far, -np.inf, [self.value(np.clip(each, -12 * self.scale, 12 * self.scale)) for each in theta])
            logs += 0.5 * (freedom + len(self.scale)) * np.log1p((apart**2).sum(axis=2) / freedom)
            weights = np.exp(logs - logs.max(axis=0))
            weights /= weights.sum(axis=0)
            middle = np.einsum("sd,sdk->dk", weights, theta)
            spread = 1.2 * np.einsum("sd,sdi,sdj->dij", weights, theta - middle, theta - middle)
        return theta, weights

    def chain(self, start, spread, draws, tune, rng, leaps=12):
        """Hamiltonian Monte Carlo of every data set by itself, all at once: draws (S, D, K), and the shares accepted (D,)."""
        sets, K = start.shape
        root, step, theta = np.linalg.cholesky(spread), np.full(sets, 0.3), start
        value, slope = self.slope(theta)
        kept, accepted = [], np.zeros(sets)
        for k in range(tune + draws):
            if k == tune // 2:  # the second half of tuning and all draws use the covariance of what was drawn in the third quarter of it
                seen = np.array(kept[tune // 4 :])
                apart = seen - seen.mean(axis=0)
                root = np.linalg.cholesky(np.einsum("sdi,sdj->dij", apart, apart) / len(apart) + 1e-6 * np.eye(K))
                kept = []
            if k == tune:
                kept = []
            size = step * rng.uniform(0.7, 1.3, sets)
            moment = rng.normal(size=(sets, K))
            at, level, uphill, speed = theta, value, slope, moment
            for _ in range(rng.integers(leaps // 2, leaps + 1)):
                speed = speed + 0.5 * size[:, None] * np.einsum("dij,di->dj", root, uphill)
                at = np.clip(at + size[:, None] * np.einsum("dij,dj->di", root, speed), -12 * self.scale, 12 * self.scale)
                level, uphill = self.slope(at)
                speed = speed + 0.5 * size[:, None] * np.einsum("dij,di->dj", root, uphill)
            change = level - value - 0.5 * ((speed**2).sum(axis=1) - (moment**2).sum(axis=1))
            chance = np.where(np.isfinite(change), np.exp(np.minimum(change, 0)), 0.0)
            take = rng.random(sets) < chance
            theta, slope = np.where(take[:, None], at, theta), np.where(take[:, None], uphill, slope)
            value = np.where(take, level, value)
            kept.append(theta)
            if k < tune:
                step = step * np.exp((chance - 0.8) * 2 / (1 + k % (tune // 2)) ** 0.6)
            else:
                accepted += chance / draws
        return np.array(kept), accepted


def ranks_by_chains(name, rows, sets, seed, draws=500, tune=400, chains=4):
    """As ``ranks``, by Markov chains: true theta (D, K), draws (C, S, D, K) by the law, and the least share accepted."""
    case, rng = CASES[name](), np.random.default_rng(seed)
    prior, draw, _, laws = case
    truth = rng.normal(size=(sets, len(prior))) * np.array(prior)
    posteriors = Posteriors(case, draw(rng, truth, rows), laws)
    middle = posteriors.mode()
    eigen, vectors = np.linalg.eigh(posteriors.curvature(middle))
    spread = np.einsum("dij,dj,dkj->dik", vectors, 1 / np.maximum(eigen, 1 / posteriors.scale.max() ** 2), vectors)
    root = np.linalg.cholesky(spread)
    several = []
    for _ in range(chains):
        start = middle + np.einsum("dij,dj->di", root, rng.normal(size=middle.shape))
        several.append(posteriors.chain(start, spread, draws, tune, rng))
    return truth, np.array([each for each, _ in several]), min(share.min() for _, share in several)


def by_chains(name, rows, sets, moved=0):
    """A row of the table of coverage, by Markov chains in place of importance sampling, under the law alone."""
    truth, draws, accepted = ranks_by_chains(name, rows, sets, 10 * rows + list(CASES).index(name) + moved)
    rank = (draws < truth).mean(axis=(0, 1))
    t, mean = truth[:, 1], draws.mean(axis=(0, 1))
    between, within = draws.mean(axis=1).var(axis=0, ddof=1), draws.var(axis=1).mean(axis=0)
    rhat = np.sqrt(1 + between / within)
    by_law = " | ".join(f"{covered(rank[:, 1], level):.2f}" for level in (0.5, 0.9, 0.95))
    print(
        f"| {name} | {rows:,} | {sets} | {by_law} | {covered(rank, 0.9):.2f} | {(mean[:, 1] * t).sum() / (t**2).sum():.2f} |"
        f" R-hat: 99 % below {np.quantile(rhat, 0.99):.2f}, all below {rhat.max():.2f}; accepted at least {accepted:.2f}",
        flush=True,
    )


def ranks(name, rows, sets, seed, size=None, told=True):
    """Of every data set: true theta (D, K); ranks, means and effective sizes by the law, and with what was told taken as exact."""
    case, rng = CASES[name](), np.random.default_rng(seed)
    prior, draw, _, laws = case
    truth = rng.normal(size=(sets, len(prior))) * np.array(prior)
    data = draw(rng, truth, rows)
    size = size or max(200, min(1000, 30_000_000 // (rows * sets)))
    results = []
    for law in (laws, dict.fromkeys(laws, EXACT)) if told else (laws,):
        taken = dict(data)
        if law is not laws and "binomial" in name:  # what is told may lie outside of what a truth can be
            taken["x"] = np.clip(data["x"], 0, 6)
        theta, weights = Posteriors(case, taken, law).draws(size, rng, 3 if rows < 1000 else 2)
        below = (weights[..., None] * (theta < truth)).sum(axis=0)
        results.append((below, np.einsum("sd,sdk->dk", weights, theta), 1 / (weights**2).sum(axis=0)))
    return truth, results


def covered(rank, level):
    return np.mean(np.abs(rank - 0.5) < level / 2)


def coverage(sizes, cases=tuple(CASES), moved=0):
    print("| what was done | rows | data sets | 50 % | 90 % | 95 % | all: 90 % | slope | taken as exact: 90 % | slope | effective |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for rows, sets in sizes:
        for name in cases:
            truth, results = ranks(name, rows, sets, 10 * rows + list(CASES).index(name) + moved)
            t = truth[:, 1]
            (rank, mean, effective), (other, other_mean, _) = results
            by_law = " | ".join(f"{covered(rank[:, 1], level):.2f}" for level in (0.5, 0.9, 0.95))
            slopes = [(m[:, 1] * t).sum() / (t**2).sum() for m in (mean, other_mean)]
            print(
                f"| {name} | {rows:,} | {sets} | {by_law} | {covered(rank, 0.9):.2f} | {slopes[0]:.2f} | {covered(other[:, 1], 0.9):.2f} |"
                f" {slopes[1]:.2f} | {np.quantile(effective, 0.01):.0f} |",
                flush=True,
            )


def latent(rows=50, sets=100, seed=4):
    """A covariate with Laplace noise in a logistic regression: its true values are unknowns, drawn by NUTS with the rest."""
    rng = np.random.default_rng(seed)
    t = rng.normal(size=(sets, 4)) * np.array([WIDE, WIDE, 1.0, LOG])
    x = rng.normal(t[:, 2:3], np.exp(t[:, 3:4]), (sets, rows))
    y = rng.binomial(1, expit(t[:, :1] + t[:, 1:2] * x))
    told, which = x + rng.laplace(0, 1, x.shape), np.repeat(np.arange(sets), rows)
    for law in (pmdp.LaplaceNoise(1.0), EXACT):
        with pm.Model() as model:
            b0, b1 = pm.Normal("b0", 0, WIDE, shape=sets), pm.Normal("b1", 0, WIDE, shape=sets)
            middle, spread = pm.Normal("middle", 0, 1, shape=sets), pm.Normal("spread", 0, LOG, shape=sets)
            true = pm.Normal("x", middle[which], pt.exp(spread[which]), observed=told.ravel())
            pm.Bernoulli("y", logit_p=b0[which] + b1[which] * true, observed=y.ravel())
        public = pmdp.published(model, {"x": law, "y": EXACT})
        start = time.process_time()
        tree = pm.sample(1000, tune=1000, chains=2, cores=1, model=public, progressbar=False, random_seed=seed, nuts_sampler="nutpie")
        draws = tree.posterior["b1"].values
        rank = (draws.reshape(-1, sets) < t[:, 1]).mean(axis=0)
        slope = (draws.mean(axis=(0, 1)) * t[:, 1]).sum() / (t[:, 1] ** 2).sum()
        spent, wrong = time.process_time() - start, int(tree.sample_stats["diverging"].sum())
        levels = ", ".join(f"{covered(rank, level):.2f}" for level in (0.5, 0.9, 0.95))
        between = draws.mean(axis=1).var(axis=0, ddof=1) / draws.var(axis=1).mean(axis=0)
        print(
            f"{law.words}: {levels}; slope {slope:.2f}; {spent:.0f} s CPU; {wrong} divergent; R-hat to {np.sqrt(1 + between.max()):.2f}",
            flush=True,
        )


def speed(rows=100_000):
    """CPU milliseconds of one log-density with its gradient."""
    print("| model | ms |\n|---|---|")
    for name in CASES:
        prior, draw, build, laws = CASES[name]()
        rng = np.random.default_rng(1)
        data = draw(rng, 0.5 * np.ones((1, len(prior))), rows)
        with pm.Model() as model:
            theta = pm.Normal("theta", 0, 1, shape=len(prior))
            # Of all data sets one: what is multiplied by 1 has an entry a row where the case needs one.
            build(
                [theta[k] * np.ones(rows) if "3 levels" in name else theta[k] for k in range(len(prior))],
                {k: v[0] for k, v in data.items()},
            )
        public = pmdp.published(model, laws)
        value = public.rvs_to_values[public["theta"]]
        logp = public.logp()
        function = pytensor.function([value], [logp, pt.grad(logp, value)])
        function(0.3 * np.ones(len(prior)))
        times = []
        for _ in range(20):
            start = time.thread_time()
            function(0.3 * np.ones(len(prior)))
            times.append(time.thread_time() - start)
        print(f"| {name} | {1e3 * np.min(times):.1f} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    wanted, *numbers = sys.argv[1:] or ["coverage"]
    if wanted == "coverage":
        first = int(numbers.pop()) if len(numbers) % 2 else 0
        numbers = [int(number) for number in numbers] or [50, 400, 2000, 100]
        coverage(list(zip(numbers[::2], numbers[1::2], strict=True)), tuple(CASES)[first:])
    if wanted == "chains":
        by_chains(numbers[0], *map(int, numbers[1:]))
    if wanted == "latent":
        latent(*map(int, numbers))
    if wanted == "speed":
        speed()
