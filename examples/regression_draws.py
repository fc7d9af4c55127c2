# %% [markdown]
# # Linear regression by one draw from the posterior
#
# Zhang, Rubinstein and Dimitrakakis (AAAI 2016, figure 2) predict incomes from 14 demographic features of 370,000 census records, a tenth
# of them to learn from. The coefficients' prior is normal of precision b, cut off at the ball of radius 10/sqrt(b); features have norm 1 at
# most, incomes are scaled to [-1, 1]. On such records no likelihood can be moved far by one of them, and one draw from the posterior
# is private by itself: the larger b, the smaller the ball, and the smaller epsilon. This is that figure, with the exact epsilon beside it.
#
# Their census extract may not be passed on, and neither sigma nor the values of b are printed. Here sigma is 1 and b is 1 to 10^6. Records
# are generated, or those of a file of yours; every constant by which they are scaled is in this script, and none comes from the records.

# %%
import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

import pymc_dp as pmdp

arguments = argparse.ArgumentParser(description="Mean squared error of a private posterior draw, by the precision of the prior.")
arguments.add_argument(
    "--data",
    nargs="+",
    default=["generated"],
    metavar=("NAME", "PATH"),
    help="generated; or acs_nist_national, acs_resampled or adult_uci and a Parquet file or a directory of them (needs pyarrow)",
)
arguments.add_argument("--rows", type=int, default=37_000, help="generated records")
arguments.add_argument("--repeats", type=int, default=15, help="of splitting the records and drawing")
arguments.add_argument("--output", type=Path, default=Path("output"))
given = arguments.parse_args()
rng = np.random.default_rng(1)
warnings.simplefilter("ignore", pmdp.UnaccountedWarning)
P, SIGMA, PRECISIONS = 14, 1.0, tuple(10.0**k for k in range(7))
PAPER_BOUND = (121, 17.3, 4, 1.265, 0.4, 0.126, 0.04)  # max((1 + B)^2, 4 B if B <= 1), B = 10/sqrt(b), derived by hand


# %% Records: 14 columns within [-1, 1] and a response, by public constants
def scaled(values, low, high):
    """From [low, high] to [-1, 1]; what lies outside is moved to the ends."""
    return 2 * (np.clip(np.asarray(values, dtype=float), low, high) - low) / (high - low) - 1


def generated(rows):
    """Of a known law: ten columns around 0, four rare ones of 0 and 1, and a response that deviates by .3 from their sum."""
    columns = np.column_stack(
        [np.ones(rows), rng.uniform(-1, 1, (rows, 6)), rng.choice([-1, 1], (rows, 3)), rng.random((rows, 4)) < (0.5, 0.2, 0.1, 0.05)]
    )
    slopes = 0.25 * np.array([-0.4, 1, -1, 0.5, 0.2, 0, 0, 1, -0.5, 0.2, 0.8, -0.6, -0.4, 0.2])
    return columns, columns @ slopes + 0.3 * rng.standard_normal(rows)


def acs_nist_national(table):
    """Adults of 25 and more, of NIST's excerpt of the American Community Survey; incomes of 0 to 100,000 dollars."""
    table = table[(table.AGEP >= 25) & table.PINCP.notna() & table.EDU.notna()]
    age, status = scaled(table.AGEP, 25, 99), table.MSP
    columns = [
        np.ones(len(table)), age, 2 * age**2 - 1, 2 * (table.SEX == 2) - 1, scaled(table.EDU, 1, 13),
        status == 1, status == 3, status.isin([4, 5]), status == 6,  # married, widowed, divorced or separated, never married
        scaled(table.NOC.fillna(0), 0, 5), table.OWN_RENT == 1, table.HISP > 0, table.DPHY == 1, scaled(np.log10(table.DENSITY), 1, 5),
    ]  # fmt: skip
    return np.column_stack(columns).astype(float), scaled(table.PINCP, 0, 100_000)


def acs_resampled(table):
    """Rows drawn from the former's adults with income, by their weights; incomes of 0 to 100,000 dollars."""
    age, education = scaled(table.age, 25, 99), scaled(table.edu, 1, 13)
    female, married = 2 * table.female - 1, 2 * table.married - 1
    columns = [
        np.ones(len(table)), age, 2 * age**2 - 1, female, education, 2 * education**2 - 1, married,
        female * married, female * education, female * age, age * education,
        table.race == 2, table.race == 6, ~table.race.isin([1, 2, 6]),  # Black, Asian, other than those and White
    ]  # fmt: skip
    return np.column_stack(columns).astype(float), scaled(np.exp(table.log_income), 0, 100_000)


def adult_uci(table):
    """Becker and Kohavi's extract of the census of 1994; hours a week, 0 to 80, because incomes are not in it."""
    age, education = scaled(table.age, 17, 90), scaled(table.education_num, 1, 16)
    married = table.marital_status.isin(["Married-civ-spouse", "Married-AF-spouse"])
    female = 2 * (table.sex == "Female") - 1
    columns = [
        np.ones(len(table)), age, 2 * age**2 - 1, female, education, 2 * education**2 - 1, 2 * married - 1, female * (2 * married - 1),
        table.marital_status == "Never-married", table.relationship == "Own-child", table.race == "Black",
        table.race == "Asian-Pac-Islander", table.race.isin(["Amer-Indian-Eskimo", "Other"]), table.native_country == "United-States",
    ]  # fmt: skip
    return np.column_stack(columns).astype(float), scaled(table.hours_per_week, 0, 80)


def records(name, path=None):
    """Feature vectors of norm 1 at most, and responses in [-1, 1]."""
    if name == "generated":
        columns, response = generated(given.rows)
    else:
        import pandas as pd  # with pyarrow, which is no dependency

        reader = {"acs_nist_national": acs_nist_national, "acs_resampled": acs_resampled, "adult_uci": adult_uci}[name]
        columns, response = reader(pd.read_parquet(path))
    assert columns.shape[1] == P
    assert np.abs(columns).max() <= 1
    return columns / np.sqrt(P), np.clip(response, -1, 1)


name = given.data[0]
X, y = records(*given.data)
training = len(y) // 10
print(f"{name}: {len(y)} records, {training} to learn from, {P} features, {given.repeats} repetitions")
print(f"mean response {y.mean():.3f}, variance {y.var():.4f}, at an end of its bounds {np.mean(np.abs(y) == 1):.1%}")
everything = np.linalg.lstsq(X, y, rcond=None)[0]
best = np.mean((y - X @ everything) ** 2)
print(f"least squares of all records: MSE {best:.4f}, norm of the coefficients {np.linalg.norm(everything):.2f}\n")


# %% An ordinary PyMC model, and a private draw
def regression(features, response, b):
    with pm.Model() as model:
        w = pmdp.BallNormal("w", precision=b, radius=10 / np.sqrt(b), shape=P)
        pm.Normal("y", pm.math.dot(pm.Data("X", features), w), SIGMA, observed=response)
    return model


def drawn(features, response, b, epsilon, many=1):
    """Draws (many, P), and what each cost: no more than epsilon, and no more than a draw from the posterior as it is needs."""
    tree = pmdp.sample(
        model=regression(features, response, b),
        epsilon=epsilon * many,
        bounds={"X": pmdp.Norm(1.0), "y": (-1, 1)},
        mechanism=pmdp.PosteriorSample(draws=many),
    )
    assert tree.attrs["promise"] == "real-arithmetic"
    return tree.posterior["w"].values[0], tree.attrs["epsilon"] / many, tree.privacy.attrs["temperature"]


def whole(features, response, b):
    """Not private, and not cut off at a ball: a draw from the posterior, and its mean."""
    precision = b * np.eye(P) + features.T @ features / SIGMA**2
    mean = np.linalg.solve(precision, features.T @ response / SIGMA**2)
    return mean + np.linalg.solve(np.linalg.cholesky(precision).T, rng.standard_normal(P)), mean


class Test:
    """Mean squared errors on records that nothing was learned from, by their moments."""

    def __init__(self, features, response):
        self.moments = features.T @ features / len(response), features.T @ response / len(response), np.mean(response**2)

    def error(self, w):
        square, product, constant = self.moments
        return constant - 2 * product @ w + w @ square @ w


def split():
    order = rng.permutation(len(y))
    learn, test = order[:training], order[training:]
    return X[learn], y[learn], Test(X[test], y[test])


# %% Figure 2. Offered an epsilon of 200, the library draws from the posterior as it is, and takes less
FEW = 3  # repetitions of what is shown for comparison only: the mean of the posterior within the ball
errors = {kind: np.full((len(PRECISIONS), given.repeats), np.nan) for kind in ("private", "mean in the ball", "not private", "mean")}
epsilons = np.zeros(len(PRECISIONS))
for repeat in range(given.repeats):
    features, response, test = split()
    for k, b in enumerate(PRECISIONS):
        (w,), epsilons[k], temperature = drawn(features, response, b, 200.0)
        assert temperature == 1
        draw, mean = whole(features, response, b)
        errors["private"][k, repeat], errors["not private"][k, repeat], errors["mean"][k, repeat] = map(test.error, (w, draw, mean))
        if repeat < FEW:  # 50 draws would cost 50 times as much
            errors["mean in the ball"][k, repeat] = test.error(drawn(features, response, b, 200.0, 50)[0].mean(axis=0))
means = {kind: np.nanmean(several, axis=1) for kind, several in errors.items()}
bands = {kind: np.nanstd(several, axis=1) / np.sqrt(np.isfinite(several).sum(axis=1)) for kind, several in errors.items()}

print("mean squared error on the test records (standard error)")
head = f"{'b':>8} {'radius':>7} {'epsilon':>9} {'by hand':>8}"
print(f"{head}  {'private draw':>15}  {'mean in the ball':>15}  {'no ball: a draw':>15}  {'its mean':>15}")
for k, b in enumerate(PRECISIONS):
    row = "  ".join(f"{means[kind][k]:.4f} ({bands[kind][k]:.4f})" for kind in errors)
    print(f"{b:8g} {10 / np.sqrt(b):7.3g} {epsilons[k]:9.4f} {PAPER_BOUND[k]:8g}  {row}")
print(f"always 0: {np.mean(y**2):.4f}; the training mean: {y.var():.4f}; least squares: {best:.4f}\n")

# %% [markdown]
# The ball is too far out to be seen in the prior. In the posterior it is not: of many records the mean of a normal posterior without
# end lies where least squares puts it, and where the ball ends before, draws gather at its edge. That, and not chance, is what parts the
# private line from the others where it is above them. Drawing at random costs little beside it.
#
# Two ways lead to a small epsilon: a smaller ball, or a flatter likelihood. Where epsilon is less than the ball needs, the library
# flattens. At a fixed epsilon, which prior is best?

# %%
FIXED, SEVERAL = (0.1, 1.0, 4.0), PRECISIONS[:5]
print(f"at a fixed epsilon: mean squared error of a private draw [temperature], {min(given.repeats, 5)} repetitions")
print(f"{'epsilon':>8} " + "".join(f"{f'b = {b:g}':>20}" for b in SEVERAL))
for epsilon in FIXED:
    row = []
    for b in SEVERAL:
        found = []
        for _ in range(min(given.repeats, 5)):
            features, response, test = split()
            (w,), _, temperature = drawn(features, response, b, epsilon)
            found.append(test.error(w))
        row.append(f"{np.mean(found):.4f} [{temperature:.4g}]")
    print(f"{epsilon:8g} " + "".join(f"{one:>20}" for one in row))

# %%
figure, axis = plt.subplots(figsize=(8.5, 5), layout="constrained")
LOOKS = {
    "private": ("tab:orange", "-", "o", "one private draw, within the ball"),
    "mean in the ball": ("tab:red", ":", None, "posterior mean, not private, within the ball"),
    "not private": ("black", "-", "s", "one draw, not private, no ball"),
    "mean": ("grey", "--", None, "posterior mean, not private, no ball"),
}
for kind, (color, line, marker, label) in LOOKS.items():
    axis.plot(PRECISIONS, means[kind], color=color, linestyle=line, marker=marker, markersize=5, label=label)
    axis.fill_between(PRECISIONS, means[kind] - bands[kind], means[kind] + bands[kind], color=color, alpha=0.25, linewidth=0)
axis.axhline(best, color="grey", linewidth=0.8, linestyle=":")
axis.annotate("least squares of all records", (PRECISIONS[3], best), xytext=(0, 4), textcoords="offset points", ha="center", color="grey")
axis.set(xscale="log", xlabel="precision b of the prior", ylabel="mean squared error on test records")
second = axis.twinx()
second.plot(PRECISIONS, epsilons, color="tab:blue", linestyle="-.", marker="v", markersize=5, label="epsilon of the private draw")
second.set_yscale("log")
second.set_ylabel("epsilon", color="tab:blue")
second.tick_params(axis="y", which="both", colors="tab:blue")
lines = [*axis.get_lines()[: len(LOOKS)], *second.get_lines()]
figure.legend(lines, [line.get_label() for line in lines], loc="outside lower center", ncols=2, fontsize=9, frameon=False)
axis.set_title(f"{name}: {training:,} records to learn from, {given.repeats} repetitions")
given.output.mkdir(parents=True, exist_ok=True)
figure.savefig(given.output / f"regression_draws_{name}.png", dpi=120)
print(f"\nWritten: {given.output / f'regression_draws_{name}.png'}")
