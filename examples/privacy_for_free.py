# %% [markdown]
# # Privacy for free? One draw from the posterior, and Laplace noise on counts
#
# Foulds, Geumlek, Welling and Chaudhuri (UAI 2016) compare two private answers to the simplest question there is, how large a share of
# records says yes: a draw from the posterior itself, flattened until one record cannot move it much ("one posterior sample", OPS), and
# a posterior computed from counts with Laplace noise as if there were no noise. These are their figures 1, 2 and 8, on generated data.
# The epsilon and repetitions of figure 2 and the thirty releases of figure 1 are quoted; p, the truncation and N are recalled.
#
# Every epsilon here is that of one record *replaced* by another, the number of records being public:
#
# - A draw from the posterior truncated to [w, 1 - w] costs 2 C, where C = log((1 - w)/w). At a smaller epsilon the likelihood is raised to
#   the power 1/T, T = 2 C / epsilon. The paper tempers prior and likelihood alike, the library the likelihood only; the prior
#   being flat here, that is the same. Every further draw costs as much again.
# - The paper's Laplace mechanism puts noise of scale 2/epsilon on the number of ones *and* on that of zeros. The library releases that when
#   told that records come and go, at epsilon/2. Where the number of records is public, one count with noise of scale 1/epsilon
#   says more for the same epsilon, and that is what the library does. From either, draws are free.

# %%
import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
from scipy.stats import beta, binom, dlaplace, kstest

import pymc_dp as pmdp

arguments = argparse.ArgumentParser(description="One posterior sample against Laplace noise: figures 1, 2 and 8 of Foulds et al. (2016).")
arguments.add_argument("--repeats", type=int, default=1000, help="data sets for every N of figure 2")
arguments.add_argument("--output", type=Path, default=Path("output"))
given = arguments.parse_args()
given.output.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(1)
warnings.simplefilter("ignore", pmdp.UnaccountedWarning)
COLORS = {"not private": "black", "Laplace": "tab:blue", "one count": "tab:cyan", "OPS": "tab:orange", "noise-aware": "tab:green"}


# %% An ordinary PyMC model, and many of it at once
def share(records):
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        pm.Bernoulli("y", p, observed=records)
    return model


def counts(ones, n, epsilon, neighbours="replace"):
    """Noisy counts of R data sets of n records by one release: a record is in one set, so it moves one set's counts.

    Of more than a million records together, the noise is taken from sets of one record each: it does not depend on the records.
    """
    written = n if n * len(ones) <= 1_000_000 else 1
    kept = ones if written == n else np.zeros_like(ones)
    records = np.arange(written) < kept[:, None]
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=len(ones))
        pm.Bernoulli("y", p[pm.Data("set", np.repeat(np.arange(len(ones)), written))], observed=records.ravel().astype(int))
    public = ["set"] if neighbours == "replace" else []  # whose records come and go cannot be public
    noisy = pmdp.release(model, epsilon=epsilon, public=public, neighbours=neighbours)["y"]
    values = noisy.values.reshape(len(ones), -1)
    exact = np.stack([written - kept, kept], axis=1)[:, -values.shape[1] :]
    return values - exact + np.stack([n - ones, ones], axis=1)[:, -values.shape[1] :], noisy.scale


def draws(records, epsilon, smallest, many):
    """So many draws of p from the posterior, each of this epsilon at most; the temperature, and what one of them cost."""
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=records)
    tree = pmdp.sample(model=model, epsilon=many * epsilon, mechanism=pmdp.PosteriorSample(draws=many, smallest=smallest))
    return tree.posterior["p"].values.ravel(), tree.privacy.attrs["temperature"], tree.attrs["epsilon"] / many


class Truncated:
    """The law Beta(a, b) on [w, 1 - w]."""

    def __init__(self, a, b, w=0.0):
        self.whole, self.ends, self.a, self.b = beta(a, b), (w, 1 - w), a, b
        self.below, above = (self.whole.cdf(end) for end in self.ends)
        self.mass = above - self.below

    def cdf(self, x):
        return (self.whole.cdf(np.clip(x, *self.ends)) - self.below) / self.mass

    def pdf(self, x):
        return np.where((x >= self.ends[0]) & (x <= self.ends[1]), self.whole.pdf(x) / self.mass, 0)

    def draw(self):
        return self.whole.ppf(self.below + rng.random(np.shape(self.mass)) * self.mass)

    def mean_error(self, p):
        """E|theta - p|, from incomplete beta functions."""
        mean, higher = self.a / (self.a + self.b), beta(self.a + 1, self.b)

        def below_p(low, high):
            return p * (self.whole.cdf(high) - self.whole.cdf(low)) - mean * (higher.cdf(high) - higher.cdf(low))

        return (below_p(self.ends[0], p) - below_p(p, self.ends[1])) / self.mass


def agree(values, law):
    """P-value of Kolmogorov and Smirnov: whether draws on a grid of logits, moved by up to half a step, have a law."""
    logits = np.log(values / (1 - values))
    step = np.diff(np.unique(logits)).min()
    return kstest(1 / (1 + np.exp(-logits - rng.uniform(-0.5, 0.5, len(logits)) * step)), law.cdf).pvalue


def noise_aware(noisy, n, scale):
    """One draw of each noise-aware posterior, exactly.

    Under a flat prior every exact count is as likely as any other, so given a noisy one it is s with probability in proportion to
    exp(-|noisy - s| / scale), and p is Beta(1 + s, 1 + n - s).
    """
    reach = int(40 * scale)
    s = np.clip(noisy, 0, n)[:, None] + np.arange(-reach, reach + 1)
    weight = np.where((s >= 0) & (s <= n), -np.abs(noisy[:, None] - s) / scale, -np.inf)
    s = s[np.arange(len(s)), np.argmax(weight + rng.gumbel(size=s.shape), axis=1)]
    return rng.beta(1 + s, 1 + n - s)


# %% [markdown]
# ## Figure 1: posteriors
# 20 records of which 6 are ones, epsilon 1. Thirty releases of each kind.

# %%
EPSILON, W, N, ONES, RELEASES = 1.0, 0.2, 20, 6, 30
data = (np.arange(N) < ONES).astype(int)
drawn, temperature, cost = draws(data, EPSILON, W, 600)
C = np.log((1 - W) / W)
assert abs(temperature / (2 * C / EPSILON) - 1) < 1e-4
assert abs(cost / EPSILON - 1) < 1e-4
print(pmdp.inspect(share(data)), "\n")
exact, flat = Truncated(1 + ONES, 1 + N - ONES, W), Truncated(1 + ONES / temperature, 1 + (N - ONES) / temperature, W)

x = np.linspace(0.002, 0.998, 499)
pairs, scale_of_two = counts(np.full(RELEASES, ONES), N, EPSILON / 2, "add_remove")
plugged = [beta(1 + max(ones, 0), 1 + max(zeros, 0)).pdf(x) for zeros, ones in pairs]

release = pmdp.release(share(data), epsilon=EPSILON)
private = pmdp.rewrite(share(data), release)  # the posterior of noisy counts, as pymc_dp.sample would sample it
log_posterior = private.compile_logp(jacobian=False)
singles, scale_of_one = counts(np.full(RELEASES, ONES), N, EPSILON)
aware, s, apart = [], np.arange(N + 1), 0.0
for (noisy,) in singles:
    with private:
        pm.set_data({"y_released": np.full_like(release["y"].values, noisy)})
    density = np.exp([log_posterior({"p_logodds__": np.log(one / (1 - one))}) for one in x])
    aware.append(density / np.trapezoid(density, x))
    weight = np.exp(-np.abs(noisy - s) / scale_of_one)
    mixture = (beta(1 + s, 1 + N - s).pdf(x[:, None]) * weight / weight.sum()).sum(axis=1)
    apart = max(apart, np.abs(aware[-1] - mixture / np.trapezoid(mixture, x)).max())


def moments(density):
    density = density / np.trapezoid(density, x)
    mean = np.trapezoid(density * x, x)
    return mean, np.sqrt(np.trapezoid(density * (x - mean) ** 2, x))


print(f"Figure 1: epsilon {EPSILON:g}, {ONES} of {N} records, truncated at {W}: C = {C:.3f}, T = {temperature:.3f}")
print(f"noise scales: {scale_of_two:g} on either count (paper), {scale_of_one:g} on one count (library)")
print(f"{'posterior':38} {'mean':>6} {'sd':>6} {'sd of means':>12}")
for name, several in {
    "not private": [beta(1 + ONES, 1 + N - ONES).pdf(x)],
    "not private, truncated": [exact.pdf(x)],
    "one posterior sample is drawn from": [flat.pdf(x)],
    f"{RELEASES} Laplace releases, plug-in": plugged,
    f"{RELEASES} Laplace releases, noise-aware": aware,
}.items():
    means, deviations = np.array([moments(one) for one in several]).T
    print(f"{name:38} {means.mean():6.3f} {deviations.mean():6.3f} " + (f"{means.std(ddof=1):12.3f}" if len(means) > 1 else ""))
drop = [np.log(law.pdf(0.3) / law.pdf(0.6)) for law in (exact, flat)]
print(f"log density falls by {drop[0]:.3f} from .3 to .6, flattened by {drop[1]:.3f}: {drop[0] / drop[1]:.3f} times less")
fits, misfits = agree(drawn, flat), agree(drawn, exact)
assert fits > 1e-6
print(f"{len(drawn)} draws of the library, Kolmogorov-Smirnov p: {fits:.3f} for the flattened law, {misfits:.0e} for the other")
print(f"the library's noise-aware densities are the exact mixtures: largest difference {apart:.1e}\n")

figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharey=True, layout="constrained")
axes[0].hist(
    drawn, bins=np.linspace(W, 1 - W, 19), density=True, color=COLORS["OPS"], alpha=0.3, label=f"{len(drawn)} draws of the library"
)
inside = x[(x >= W) & (x <= 1 - W)]
axes[0].plot(inside, flat.pdf(inside), color=COLORS["OPS"], linewidth=2, label=f"what one draw comes from, T = {temperature:.2f}")
axes[0].plot(inside, exact.pdf(inside), color="black", linewidth=2, label="not private, truncated")
axes[0].set_title("one posterior sample")
for axis, several, name, title in (
    (axes[1], plugged, "Laplace", "two noisy counts, plug-in (the paper's Laplace)"),
    (axes[2], aware, "noise-aware", "one noisy count, noise-aware"),
):
    for k, one in enumerate(several):
        axis.plot(
            x, one, color=COLORS[name], linewidth=0.8, alpha=0.6, label=f"{len(several)} releases, in whole numbers" if k == 0 else None
        )
    axis.plot(x, beta(1 + ONES, 1 + N - ONES).pdf(x), color="black", linewidth=2, label="not private")
    axis.set_title(title)
for axis in axes:
    axis.set(xlim=(0, 1), xlabel="share of ones")
    axis.legend(fontsize=8, loc="upper right")
axes[0].set(ylim=(0, 7), ylabel="density")
figure.suptitle(f"Posteriors of a share: epsilon {EPSILON:g}, {ONES} ones among {N} records")
figure.savefig(given.output / "privacy_for_free_posteriors.png", dpi=120)

# %% [markdown]
# ## Figure 2: how far one draw is from the truth
# Epsilon .1, truth .1. Data, noise and one draw are new in every repetition. Draws from the flattened posterior are made here by inverting
# its distribution function, a thousand at once; the library's own draws of a few data sets are tested against the same law.

# %%
EPSILON, P, W = 0.1, 0.1, 0.05
SIZES = (1, 2, 3, 5, 10, 20, 50, 100, 300, 1000, 10_000, 100_000, 1_000_000)
REFERENCE = {  # means of 4,000 repetitions by a program without this library: not private, Laplace, one posterior sample
    1: (0.2771, 0.4178, 0.3969), 3: (0.1866, 0.4190, 0.3950), 5: (0.1495, 0.3923, 0.3952), 10: (0.1011, 0.3643, 0.3844),
    20: (0.0744, 0.2942, 0.3580), 50: (0.0473, 0.1896, 0.3028), 100: (0.0342, 0.1191, 0.2524), 300: (0.0198, 0.0563, 0.1466),
    1000: (0.0107, 0.0219, 0.0647), 10_000: (0.0035, 0.0040, 0.0188), 100_000: (0.0011, 0.0011, 0.0059),
    1_000_000: (0.0003, 0.0003, 0.0019),
}  # fmt: skip
print(f"Figure 2: epsilon {EPSILON:g}, p = {P}, truncated at {W}")
for n in (1, 10, 100, 1000):
    ones = round(P * n)
    drawn, temperature, _ = draws((np.arange(n) < ones).astype(int), EPSILON, W, 300)
    law = Truncated(1 + ones / temperature, 1 + (n - ones) / temperature, W)
    fits, misfits = agree(drawn, law), agree(drawn, Truncated(1 + ones, 1 + n - ones, W))
    assert fits > 1e-6
    print(f"300 draws of the library, {ones} of {n} records: T = {temperature:.2f}, ", end="")
    print(f"Kolmogorov-Smirnov p = {fits:.3f}, of the law without T {misfits:.0e}")
assert abs(temperature / (2 * np.log((1 - W) / W) / EPSILON) - 1) < 1e-4
T = temperature

errors = {}
for n in SIZES:
    ones = rng.binomial(n, P, given.repeats)
    pairs, scale_of_two = counts(ones, n, EPSILON / 2, "add_remove")
    singles, scale_of_one = counts(ones, n, EPSILON)
    two, one = np.maximum(pairs, 0), np.clip(singles[:, 0], 0, n)
    drawn = {
        "not private": rng.beta(1 + ones, 1 + n - ones),
        "Laplace": rng.beta(1 + two[:, 1], 1 + two[:, 0]),
        "OPS": Truncated(1 + ones / T, 1 + (n - ones) / T, W).draw(),
        "one count": rng.beta(1 + one, 1 + n - one),
        "noise-aware": noise_aware(singles[:, 0], n, scale_of_one),
    }
    errors[n] = {name: np.abs(values - P) for name, values in drawn.items()}
print(f"noise scales: {scale_of_two:g} on either count (paper), {scale_of_one:g} on one count (library)\n")

print(f"mean |draw - p| of {given.repeats} repetitions; in parentheses the reference, and by how many standard errors they differ")
print(f"{'N':>8} " + "".join(f"{name:^24}" for name in COLORS if name in ("not private", "Laplace", "OPS")) + "  one count  noise-aware")
furthest = []
for n, found in errors.items():
    row = f"{n:8} "
    for k, name in enumerate(("not private", "Laplace", "OPS")):
        mean, error = found[name].mean(), found[name].std() / np.sqrt(given.repeats)
        row += f"  {mean:.4f} "
        if n in REFERENCE:
            known = np.hypot(found[name].std() / np.sqrt(4000), 0.00003)  # of the reference, and of its rounding
            furthest.append((mean - REFERENCE[n][k]) / np.hypot(error, known))
            row += f"({REFERENCE[n][k]:.4f}, {furthest[-1]:+.1f})"
        else:
            row += " " * 14
    print(row + f"   {found['one count'].mean():.4f}     {found['noise-aware'].mean():.4f}")
print(f"{len(furthest)} comparisons: root mean square {np.sqrt(np.mean(np.square(furthest))):.2f}, largest {np.abs(furthest).max():.1f}\n")


# %% Where they cross is a matter of .002, which repetitions do not show: sums over all data and all noise do
def expected_without_noise(n):
    """E|draw - p| of draws that know the records, exactly: the sum over all data, up to 9 standard deviations off."""
    off = 9 * np.sqrt(n * P * (1 - P)) + 1
    ones = np.arange(max(int(n * P - off), 0), min(int(n * P + off), n) + 1)
    laws = {"not private": Truncated(1 + ones, 1 + n - ones), "OPS": Truncated(1 + ones / T, 1 + (n - ones) / T, W)}
    return {name: binom(n, P).pmf(ones) @ law.mean_error(P) for name, law in laws.items()}


def expected(n):
    """E|draw - p| of a data set of n records, exactly."""
    ones, law, e = np.arange(n + 1), binom(n, P).pmf(np.arange(n + 1)), np.arange(-400, 401)
    two, one = dlaplace(1 / scale_of_two).pmf(e), dlaplace(1 / scale_of_one).pmf(e)
    given_count = Truncated(1 + ones, 1 + n - ones).mean_error(P)
    joint = np.zeros((n + 401, n + 401))
    for s in ones:
        first, second = (np.bincount(np.maximum(count + e, 0), two, minlength=n + 401) for count in (s, n - s))
        joint += law[s] * np.outer(first, second)
    first, second = np.indices(joint.shape)
    noisy = np.arange(-400, n + 401)
    told = sum(law[s] * np.bincount(s + e + 400, one, minlength=len(noisy)) for s in ones)
    weight = np.exp(-np.abs(noisy[:, None] - ones) / scale_of_one)
    return {
        "not private": expected_without_noise(n)["not private"],
        "Laplace": (joint * Truncated(1 + first, 1 + second).mean_error(P)).sum(),
        "one count": told @ given_count[np.clip(noisy, 0, n)],
        "OPS": expected_without_noise(n)["OPS"],
        "noise-aware": told @ (weight @ given_count / weight.sum(axis=1)),
    }


print("Expected |draw - p|, exactly")
print(f"{'N':>8} " + "".join(f"{name:>13}" for name in COLORS) + "   simulation off by, in standard errors")
nothing = [Truncated(1, 1, w).mean_error(P) for w in (0, W)]
few = {n: expected(n) for n in range(1, 21)}
for n in (*range(1, 9), 10, 15, *SIZES[5:]):
    told = few.get(n) or expected_without_noise(n)
    off = [(errors[n][k].mean() - told[k]) / errors[n][k].std() * np.sqrt(given.repeats) for k in told] if n in errors else []
    print(f"{n:8} " + "".join(f"{told[name]:13.4f}" if name in told else " " * 13 for name in COLORS), end="   ")
    print(" ".join(f"{one:+.1f}" for one in off))
crossing = {
    name: next((n for n, told in few.items() if told[name] < told["OPS"]), None) for name in ("Laplace", "one count", "noise-aware")
}
print("smallest N at which it is nearer than OPS: " + ", ".join(f"{name} {n}" for name, n in crossing.items()))
print(f"a draw from the prior alone: {nothing[0]:.4f}, truncated as for OPS: {nothing[1]:.4f}")

# %% [markdown]
# The distance of one draw rewards a posterior that is too narrow, and a truth near 0 rewards counts moved up to 0. What
# noise-awareness is for shows where the truth is drawn from the prior: whether 90 % intervals hold it nine times in ten.

# %%
print(f"\np drawn from the prior, epsilon {EPSILON:g}, {given.repeats} repetitions")
print(f"{'N':>8} {'':12} a draw's error, the posterior mean's, 90 % intervals that hold p")
for n in (10, 100, 1000):
    p = rng.uniform(size=given.repeats)
    ones, s = rng.binomial(n, p), np.arange(n + 1)
    (zeros, two), one = np.maximum(counts(ones, n, EPSILON / 2, "add_remove")[0], 0).T, counts(ones, n, EPSILON)[0][:, 0]
    weight = np.exp(-np.abs(np.clip(one, 0, n)[:, None] - s) / scale_of_one)  # beyond 0 and n, all weights fall alike
    weight /= weight.sum(axis=1, keepdims=True)
    moved = np.clip(one, 0, n)
    told = {
        "Laplace": (rng.beta(1 + two, 1 + zeros), (1 + two) / (2 + two + zeros), beta(1 + two, 1 + zeros).cdf(p)),
        "one count": (rng.beta(1 + moved, 1 + n - moved), (1 + moved) / (2 + n), beta(1 + moved, 1 + n - moved).cdf(p)),
        "noise-aware": (
            noise_aware(one, n, scale_of_one), weight @ (1 + s) / (2 + n), (weight * beta(1 + s, 1 + n - s).cdf(p[:, None])).sum(axis=1)
        ),
    }  # fmt: skip
    for name, (draw, mean, below) in told.items():
        print(
            f"{n:8} {name:12} {np.abs(draw - p).mean():14.4f} {np.abs(mean - p).mean():20.4f} {np.mean(np.abs(below - 0.5) < 0.45):32.1%}"
        )
    sample = Truncated(1 + ones / T, 1 + (n - ones) / T, W).draw()
    print(f"{n:8} {'OPS':12} {np.abs(sample - p).mean():14.4f}")
print()

# %% What the asymptotics say
limit = np.sqrt((1 + T) / 2)
print(f"ratio to the error without privacy; OPS tends to sqrt((1 + T)/2) = {limit:.2f}, the others to 1")
for n in SIZES[-4:]:
    alone = errors[n]["not private"]
    ratios = {name: errors[n][name].mean() / alone.mean() for name in COLORS if name != "not private"}
    known = expected_without_noise(n)
    relative = np.sqrt(2 / given.repeats) * alone.std() / alone.mean()
    print(f"{n:8}  " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()) + f"; standard error {relative:.0%}", end="")
    print(f"; OPS exactly {known['OPS'] / known['not private']:.3f}")
slopes = {k: np.polyfit(np.log(SIZES[-4:]), np.log([errors[n][k].mean() for n in SIZES[-4:]]), 1)[0] for k in ("not private", "OPS")}
print("slopes from N = 1,000 on: " + ", ".join(f"{name} {slope:.3f}" for name, slope in slopes.items()) + " (-1/2)\n")

NAMES = {
    "not private": "not private",
    "Laplace": "two noisy counts, plug-in (the paper's Laplace)",
    "one count": "one noisy count, plug-in",
    "OPS": "one posterior sample",
    "noise-aware": "one noisy count, noise-aware",
}
figure, (axis, few_records) = plt.subplots(1, 2, figsize=(13, 5.5), width_ratios=(3, 2), layout="constrained")
for name, color in COLORS.items():
    style = {"color": color, "marker": "o", "markersize": 4, "linestyle": "--" if name == "noise-aware" else "-"}
    axis.plot(SIZES, [errors[n][name].mean() for n in SIZES], label=NAMES[name], **style)
    few_records.plot(few.keys(), [told[name] for told in few.values()], **style)
several = [(n, value) for n, values in REFERENCE.items() for value in values if value > 0.001]  # the rest has one digit
axis.plot(*zip(*several), "x", color="red", zorder=3, label="reference")
far = np.array(SIZES[-4:])
theory = limit * np.sqrt(2 / np.pi) * np.sqrt(2 * P * (1 - P) / far)
axis.plot(far, theory, color="grey", linestyle=":", label=f"not private times {limit:.2f}, in theory")
axis.set(xscale="log", yscale="log", xlabel="records", ylabel="mean distance of one draw from the truth")
axis.set_title(f"{given.repeats} repetitions")
axis.legend(fontsize=8, loc="lower left")
few_records.set(xlabel="records", xticks=[1, 5, 10, 15, 20], title="few records, exactly")
figure.suptitle(f"Error of one draw: epsilon {EPSILON:g}, p = {P}")
figure.savefig(given.output / "privacy_for_free_error.png", dpi=120)

# %% [markdown]
# ## Figure 8: what an adversary can make of the bound
# An untempered draw costs 2 C = 2.773 at w = .2. Given N other records, replacing one multiplies the density of a draw theta
# by odds(theta) / odds(m) at most, where m is the posterior mean: a loss of |logit theta - logit m|. An adversary chooses the others,
# one after another, each so that the next loss is largest.

# %%
W, LAST = 0.2, 1000
KNOWN = {0: 1.386, 1: 1.628, 5: 2.167, 10: 2.398, 50: 2.679, 100: 2.724, 1000: 2.768}
C = np.log((1 - W) / W)
theta = np.linspace(W, 1 - W, 20_001)
logit = np.log(theta / (1 - theta))


def local(ones, zeros):
    """The largest loss over theta when one more record is a one or a zero."""
    log = ones * np.log(theta) + zeros * np.log1p(-theta)
    density = np.exp(log - log.max())
    mean = np.trapezoid(density * theta, theta) / np.trapezoid(density, theta)
    return np.abs(logit - np.log(mean / (1 - mean))).max()


adversary, (ones, zeros) = [], (0, 0)
for n in range(LAST + 1):
    adversary.append(local(ones, zeros))
    if n < LAST:  # of two that are alike, a one
        more = local(ones + 1, zeros) >= local(ones, zeros + 1) - 1e-9
        ones, zeros = (ones + 1, zeros) if more else (ones, zeros + 1)
ordinary = {n: local(3 * n // 10, n - 3 * n // 10) for n in range(10, LAST + 1, 10)}
n = np.arange(LAST + 1)
mean = (n + 1) / (n + 2) * (1 - W) * (1 - (W / (1 - W)) ** (n + 2)) / (1 - (W / (1 - W)) ** (n + 1))  # of n ones, in closed form
closed = C + np.log(mean / (1 - mean))
_, untempered, cost = draws(np.zeros(20, dtype=int), 4.0, W, 1)

print(f"Figure 8: truncated at {W}, C = {C:.4f}. Offered epsilon 4, the library draws at temperature {untempered:g} and takes {cost:.4f}.")
print(f"The adversary chose {ones} ones and {zeros} zeros.")
print("N        " + " ".join(f"{k:>7}" for k in KNOWN))
print("measured " + " ".join(f"{adversary[k]:7.4f}" for k in KNOWN))
print("reference" + " ".join(f"{value:7.3f}" for value in KNOWN.values()) + f"   limit 2 C = {2 * C:.4f}")
print("30 % ones" + " ".join(f"{ordinary[k]:7.4f}" if k in ordinary else " " * 7 for k in KNOWN))
print(f"grid against closed form: largest difference {np.abs(closed - adversary).max():.1e}\n")
assert all(abs(adversary[k] - value) < 6e-4 for k, value in KNOWN.items())

figure, axis = plt.subplots(figsize=(9, 5), layout="constrained")
axis.plot(n, adversary, color="tab:red", linewidth=2, label="records chosen by an adversary")
axis.plot(KNOWN.keys(), KNOWN.values(), "x", color="black", label="reference", zorder=3, clip_on=False)
axis.plot(ordinary.keys(), ordinary.values(), color="tab:grey", linewidth=1.5, label="30 % of the records are ones")
axis.axhline(2 * C, color="black", linewidth=1, linestyle="--")
axis.annotate("2 C, what a draw is charged", (0, 2 * C), xytext=(4, 4), textcoords="offset points")
axis.axhline(C, color="black", linewidth=1, linestyle=":")
axis.annotate("C", (LAST, C), xytext=(-4, 4), textcoords="offset points", ha="right")
axis.set_xscale("symlog", linthresh=1)
axis.set(xlim=(0, LAST), ylim=(1.3, 2.95), xlabel="other records", ylabel="largest loss by replacing one record, nats")
axis.set_xticks([0, 1, 10, 100, 1000], ["0", "1", "10", "100", "1000"])
axis.set_title(f"Privacy loss of one untempered draw, truncated at {W}")
axis.legend(fontsize=9, loc="lower right", bbox_to_anchor=(1, 0.15))
figure.savefig(given.output / "privacy_for_free_adversary.png", dpi=120)
print(f"Written: {given.output}/privacy_for_free_posteriors.png, _error.png, _adversary.png")
