"""Published analyses, run privately, beside the numbers that were published: writes docs/published.md.

    python benchmarks/published.py DATA_DIR

DATA_DIR holds the folders counts_dev and cps1988. Every private fit spends its epsilon on a fresh release, so no two runs give the
same numbers; fits that are done are kept in --keep and not done again.
"""

import argparse
import json
import logging
import os
import platform
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm

import pymc_dp as pmdp

ROOT = Path(__file__).resolve().parents[1]
EPSILONS = (0.5, 1.0, 4.0)
HAIR = ["Black", "Brown", "Red", "Blond"]
EYES = ["Brown", "Blue", "Hazel", "Green"]


# ---------- the models, as one would write them without privacy
def rat_tumours(data: Path) -> pm.Model:
    rats = pd.read_csv(data / "counts_dev" / "rat_tumors_bda3.csv")
    with pm.Model(coords={"group": range(1, len(rats) + 1), "param": ["alpha", "beta"]}) as model:
        n = pm.Data("n", rats["K"], dims="group")
        ab = pm.HalfFlat("ab", dims="param", initval=[2.0, 14.0])
        pm.Potential("p(a, b)", -2.5 * pm.math.log(pm.math.sum(ab)))
        pm.Deterministic("X", pm.math.log(ab[0] / ab[1]))
        pm.Deterministic("Z", pm.math.log(pm.math.sum(ab)))
        theta = pm.Beta("theta", alpha=ab[0], beta=ab[1], dims="group")
        pm.Binomial("y", n=n, p=theta, observed=rats["y"], dims="group")
    return model


def admissions(data: Path) -> pm.Model:
    table = pd.read_csv(data / "counts_dev" / "ucb_admissions.csv")
    people = table.loc[table.index.repeat(table["Freq"])]
    gender = pd.Categorical(people["Gender"], categories=["Male", "Female"])
    with pm.Model(coords={"gender": gender.categories, "applicant": range(len(people))}) as model:
        gid = pm.Data("gid", gender.codes, dims="applicant")
        a = pm.Normal("a", 0, 1.5, dims="gender")
        pm.Bernoulli("admit", logit_p=a[gid], observed=(people["Admit"] == "Admitted").astype(int), dims="applicant")
    return model


def radon(data: Path, floor_levels: bool) -> pm.Model:
    homes = pd.read_csv(data / "counts_dev" / "radon_mn.csv")
    county, counties = homes["county"].factorize()
    with pm.Model(coords={"county": counties, "home": range(len(homes))}) as model:
        county_idx = pm.Data("county_idx", county, dims="home")
        floor = pm.Data("floor", homes["floor"].astype(int if floor_levels else float), dims="home")
        mu_a, sigma_a = pm.Normal("mu_a", 0, 10), pm.HalfNormal("sigma_a", 1)
        a = pm.Normal("a", mu_a, sigma_a, dims="county")
        b = pm.Normal("b", 0, 10)
        sigma_y = pm.HalfNormal("sigma_y", 2)
        pm.Normal("log_radon", a[county_idx] + b * floor, sigma_y, observed=homes["log_radon"], dims="home")
    return model


def wages(data: Path) -> pm.Model:
    people = pd.read_parquet(data / "cps1988" / "cps1988.parquet")
    with pm.Model(coords={"coef": ["1", "exp", "exp²", "educ", "afam"], "person": range(len(people))}) as model:
        experience = pm.Data("experience", people["experience"].astype(float), dims="person")
        education = pm.Data("education", people["education"].astype(float), dims="person")
        afam = pm.Data("afam", (people["ethnicity"] == "afam").astype(float), dims="person")
        b = pm.Normal("b", 0, 10, dims="coef")
        mu = b[0] + b[1] * experience + b[2] * experience**2 + b[3] * education + b[4] * afam
        pm.Normal("log_wage", mu, pm.HalfNormal("sigma", 2), observed=np.log(people["wage"]), dims="person")
    return model


def horse_kicks(data: Path) -> pm.Model:
    corps_years = pd.read_csv(data / "counts_dev" / "prussian_horsekicks.csv")
    with pm.Model() as model:
        lam = pm.Exponential("lam", 1)
        pm.Poisson("deaths", lam, observed=corps_years["y"])
    return model


def pumps(data: Path) -> pm.Model:
    pumps = json.loads((data / "counts_dev" / "pumps_bugs.json").read_text())
    with pm.Model(coords={"pump": range(1, len(pumps["x"]) + 1)}) as model:
        t = pm.Data("t", pumps["t"], dims="pump")
        alpha, beta = pm.Exponential("alpha", 1), pm.Gamma("beta", 0.1, 1)
        theta = pm.Gamma("theta", alpha, beta, dims="pump")
        pm.Poisson("x", theta * t, observed=pumps["x"], dims="pump")
    return model


def hair_and_eyes(data: Path) -> pm.Model:
    table = pd.read_csv(data / "counts_dev" / "hair_eye_color.csv")
    people = table.loc[table.index.repeat(table["Freq"])]
    hair, eye = pd.Categorical(people["Hair"], categories=HAIR), pd.Categorical(people["Eye"], categories=EYES)
    with pm.Model(coords={"hair": HAIR, "eye": EYES, "person": range(len(people))}) as model:
        hair_idx = pm.Data("hair_idx", hair.codes, dims="person")
        p = pm.Dirichlet("p", np.ones((len(HAIR), len(EYES))), dims=("hair", "eye"))
        pm.Categorical("eyes", p=p[hair_idx], observed=eye.codes, dims="person")
    return model


def least_squares(model: pm.Model) -> dict[str, tuple[float, float]]:
    """What a flat prior gives for the wages, without a sampler."""
    experience, education, afam = (model[name].get_value() for name in ("experience", "education", "afam"))
    X = np.column_stack([np.ones_like(afam), experience, experience**2, education, afam])
    y = model.rvs_to_values[model["log_wage"]].data
    coefficients, squares, *_ = np.linalg.lstsq(X, y)
    freedom = len(y) - X.shape[1]
    variance = squares[0] / freedom
    deviations = np.sqrt(variance * np.diag(np.linalg.inv(X.T @ X)))
    found = {name: (float(m), float(s)) for name, m, s in zip(wages_published(), coefficients, deviations)}
    return found | {"sigma": (float(np.sqrt(variance)), float(np.sqrt(variance / (2 * freedom))))}


def homes_on_the_first_floor(model: pm.Model, tree: object | None) -> float:
    """Their share: in truth, or as the private posterior has it, where it is a latent variable."""
    if tree is None:
        return float(model["floor"].get_value().mean())
    homes = np.bincount(model["county_idx"].get_value())
    shares = tree["latent_statistics"]["log_radon_size"].values.mean((0, 1))
    return float(homes @ shares[:, 1] / homes.sum())


# ---------- what was published
@dataclass(frozen=True)
class Quantity:
    """One number of an analysis: what was published of it, and where it is in the posterior."""

    published: str
    variable: str
    at: Mapping[str, object] = field(default_factory=dict)

    def draws(self, posterior) -> np.ndarray:
        return posterior[self.variable].sel(dict(self.at)).values.ravel()


def wages_published() -> dict[str, Quantity]:
    values = {"1": "4.321", "exp": "0.0775", "exp²": "-0.00132", "educ": "0.0857", "afam": "-0.243"}
    return {f"b[{name}]": Quantity(value, "b", {"coef": name}) for name, value in values.items()}


RADON = {
    "intercept": Quantity("1.46 (0.05)", "mu_a"),
    "floor": Quantity("-0.69 (0.07)", "b"),
    "sigma of homes": Quantity("0.76", "sigma_y"),
    "sigma of counties": Quantity("0.33", "sigma_a"),
}
WAGES = {"unit": "person", "bounds": {"log_wage": (3, 10), "experience": (-5, 65), "education": (0, 20), "afam": (0, 1)}}
ADMISSIONS = {
    "logit, men": Quantity("-0.22 (0.04)", "a", {"gender": "Male"}),
    "logit, women": Quantity("-0.83 (0.05)", "a", {"gender": "Female"}),
}
PUMPS = ["0.060", "0.101", "0.089", "0.116", "0.599", "0.608", "0.895", "0.876", "1.583", "1.983"]
HAIR_AND_EYES = {
    "P(brown eyes, black hair)": Quantity("68/108 = 0.630", "p", {"hair": "Black", "eye": "Brown"}),
    "P(blue eyes, blond hair)": Quantity("94/127 = 0.740", "p", {"hair": "Blond", "eye": "Blue"}),
    "P(green eyes, red hair)": Quantity("14/71 = 0.197", "p", {"hair": "Red", "eye": "Green"}),
}


@dataclass(frozen=True)
class Analysis:
    """A published analysis and how it is run privately.

    Attributes
    ----------
    title, source, record : str
        ``record`` says in words what one record is and what is public.
    make : callable
        The folder of the data -> the model.
    arguments : dict
        Of ``pymc_dp.inspect`` and ``pymc_dp.release``.
    quantities : dict of str to Quantity
    structure : str
        That ``inspect`` is expected to find.
    releases : int
        Fresh releases at every epsilon.
    noise_aware : bool
    draws : int
        Of each of the chains, after as many for tuning.
    exact : callable or None
        The model -> mean and standard deviation of every quantity without privacy; None: by sampling it.
    told : callable or None
        The model, and a private posterior or None -> a number for the remark.
    remark : str
    """

    title: str
    source: str
    record: str
    make: Callable[[Path], pm.Model]
    arguments: Mapping[str, object]
    quantities: Mapping[str, Quantity]
    structure: str
    releases: int = 5
    noise_aware: bool = True
    draws: int = 500
    exact: Callable[[pm.Model], dict[str, tuple[float, float]]] | None = None
    told: Callable[[pm.Model, object | None], float] | None = None
    remark: str = ""


ANALYSES = {
    "rat_tumours": Analysis(
        "Rat tumours",
        "Gelman et al., Bayesian Data Analysis, 3rd ed., section 5.3: 71 groups, (alpha + beta)^(-5/2)",
        "One rat, with or without a tumour. Public: the groups and how many rats each has.",
        rat_tumours,
        {"unit": "individual", "public": ["n"]},
        {
            "alpha": Quantity("2.4", "ab", {"param": "alpha"}),
            "beta": Quantity("14.3", "ab", {"param": "beta"}),
            "log(alpha/beta)": Quantity("mode -1.79", "X"),
            "log(alpha+beta)": Quantity("mode 2.74", "Z"),
            "theta of group 71": Quantity("none", "theta", {"group": 71}),
        },
        "aggregate",
        draws=1000,
        remark=(
            "The hyperprior of alpha + beta falls off so slowly that its mean is infinite: exact totals bound alpha and beta, noisy"
            " ones hardly do, and their posterior means are means of a long tail. That is not the noise model's doing:"
            " tests/properties/test_published.py compares the posterior with an exact one on a grid. The ratio alpha/beta, and with it the"
            " mean rate, hardly suffers. Divergent draws and the largest R-hat come from chains that follow the tail at small epsilons.\n\n"
            "The hyperprior is also improper. On exact totals the posterior is proper; on noisy ones, strictly, it is not: with"
            " alpha + beta near 0 every theta is 0 or 1, noise can explain every total at a finite cost, and the prior's mass there is"
            " infinite. That cost is some 60 nats at epsilon 0.5, so no chain goes there, but a proper hyperprior is the better habit."
        ),
    ),
    "admissions_gender_public": Analysis(
        "UCB admissions, gender public",
        "McElreath, Statistical Rethinking, 2nd ed., m11.7: 4,526 applicants",
        "One applicant, admitted or not. Public: every applicant's gender.",
        admissions,
        {"unit": "applicant", "public": ["gender"]},
        ADMISSIONS,
        "indexed",
    ),
    "admissions_gender_private": Analysis(
        "UCB admissions, gender private",
        "Source as above",
        "One applicant, admitted or not, and the gender. Public: the number of applicants.",
        admissions,
        {"unit": "applicant"},
        ADMISSIONS,
        "indexed",
        releases=3,
    ),
    "radon_second_moments": Analysis(
        "Radon, varying intercept, floor private, by second moments",
        "Gelman & Hill (2007), section 12.4: 919 homes in 85 counties",
        "One home: its log radon and floor. Public: which county each home is in. Bounds chosen beforehand: log radon (-3, 5), floor"
        " (0, 1).",
        lambda data: radon(data, floor_levels=False),
        {"unit": "home", "public": ["county"], "bounds": {"log_radon": (-3, 5), "floor": (0, 1)}},
        RADON,
        "linear",
        remark=(
            "Only the intercept differs between counties, so sums of floor and log radon are released of each, and second moments over"
            " all homes once. Before the noise sums over all homes are multiplied by 4 at epsilon .5 and 1, where a county of ten homes"
            " remains unknown in any case, and sums by county by 2 at epsilon 4; noise is as much narrower on them."
            " Without privacy every county tells about as much of the intercept; under noise a county tells as much as the square of its"
            " number of homes. Counties with many homes have less radon (St Louis above all), which the model does not know, so intercepts"
            " come out lower."
        ),
    ),
    "radon_cells": Analysis(
        "Radon, varying intercept, floor private, by cells",
        "Source as above",
        "As before; floor is an integer, so that every county has two private cells and the noise can be modelled.",
        lambda data: radon(data, floor_levels=True),
        {"unit": "home", "public": ["county"], "bounds": {"log_radon": (-3, 5), "floor": (0, 1)}},
        RADON,
        "table",
        releases=3,
        draws=1000,
        told=homes_on_the_first_floor,
        remark=(
            "How many homes of a county are on which floor is not public: it is drawn with the other unknowns, its shares about a mean that"
            " all counties have in common. {exact:.0%} were measured on the first floor; posterior means of that share: {found}."
        ),
    ),
    "wages": Analysis(
        "Wages, CPS 1988",
        "Kleiber & Zeileis, Applied Econometrics with R (2008), chapter 3: 28,155 men",
        "One man: log wage, experience, education and ethnicity. Public: their number. Bounds chosen beforehand: log wage (3, 10), which is"
        " 20 to 22,000 dollars a week, experience (-5, 65), education (0, 20), afam (0, 1).",
        wages,
        WAGES,
        wages_published() | {"sigma": Quantity("0.584", "sigma")},
        "linear",
        exact=least_squares,
    ),
    "wages_residuals": Analysis(
        "Wages, CPS 1988, with sums of residuals",
        "Source as above",
        "As before, with `mechanism=pymc_dp.Laplace(residuals=True)`.",
        wages,
        WAGES | {"mechanism": pmdp.Laplace(residuals=True)},
        wages_published() | {"sigma": Quantity("0.584", "sigma")},
        "linear",
        releases=12,
        exact=least_squares,
        remark=(
            "With four private features residuals are released where records times epsilon are 28,000 or more, so not at epsilon 0.5: the"
            " first column differs from that of the analysis above by chance only."
        ),
    ),
    "horse_kicks": Analysis(
        "Prussian horse kicks",
        "von Bortkiewicz (1898): 196 deaths in 280 corps-years",
        "One corps-year: its number of deaths, clamped to (0, 5). Public: the number of corps-years. A soldier is protected five times"
        " more strongly than that: one death moves the sum by 1.",
        horse_kicks,
        {"unit": "corps-year", "bounds": {"deaths": (0, 5)}},
        {"deaths per corps-year": Quantity("196/280 = 0.700", "lam")},
        "shared",
    ),
    "pumps": Analysis(
        "Pump failures",
        "BUGS examples, volume 1 (JAGS benchmark values): 10 pumps",
        "One failure, counted or not; which pump it would belong to is public, and so are the times of operation. Whole pumps are not"
        " protected: ten of them could not be.",
        pumps,
        {"unit": pmdp.Individual(events=1, membership="public"), "public": ["t"]},
        {"alpha": Quantity("0.706 (0.272)", "alpha"), "beta": Quantity("0.949 (0.549)", "beta")}
        | {f"theta {k}": Quantity(value, "theta", {"pump": k}) for k, value in enumerate(PUMPS, start=1)},
        "aggregate",
    ),
    "hair_public": Analysis(
        "Hair and eye colour, hair public",
        "Snee (1974): 592 students; published is the table itself",
        "One student: the colour of the eyes. Public: the colour of everyone's hair.",
        hair_and_eyes,
        {"unit": "student", "public": ["hair"]},
        HAIR_AND_EYES,
        "indexed",
        releases=3,
    ),
    "hair_private": Analysis(
        "Hair and eye colour, hair private",
        "Source as above",
        "One student: the colours of hair and eyes. Public: the number of students.",
        hair_and_eyes,
        {"unit": "student"},
        HAIR_AND_EYES,
        "indexed",
        releases=3,
    ),
}


# ---------- running
SAMPLER = {"chains": 2, "cores": 1, "nuts_sampler": "nutpie", "progressbar": False}


def summary(draws: np.ndarray) -> list[float]:
    """Mean, standard deviation and 90 % interval."""
    return [float(draws.mean()), float(draws.std()), *map(float, np.quantile(draws, [0.05, 0.95]))]


def health(tree) -> dict[str, float]:
    """Divergences, and the largest R-hat of the reported chains."""
    import arviz as az

    posterior = tree["posterior"].to_dataset()
    largest = max(float(rhat.max()) for rhat in az.rhat(posterior).data_vars.values())
    return {"divergences": int(tree["sample_stats"]["diverging"].sum()), "rhat": largest}


def without_privacy(analysis: Analysis, model: pm.Model) -> dict[str, list[float]]:
    if analysis.exact is not None:
        return {name: list(found) for name, found in analysis.exact(model).items()}
    tree = pm.sample(model=model, draws=2000, **SAMPLER, random_seed=1)
    return {name: summary(quantity.draws(tree["posterior"])) for name, quantity in analysis.quantities.items()}


def fit(analysis: Analysis, model: pm.Model, epsilon: float) -> dict:
    """One fresh release and its posterior."""
    start = time.perf_counter()
    tree = pmdp.sample(
        analysis.draws, tune=analysis.draws, model=model, epsilon=epsilon, noise_aware=analysis.noise_aware, **analysis.arguments, **SAMPLER
    )
    return {
        "quantities": {name: summary(quantity.draws(tree["posterior"])) for name, quantity in analysis.quantities.items()},
        "seconds": time.perf_counter() - start,
        "told": analysis.told(model, tree) if analysis.told else None,
        **health(tree),
    }


def machine() -> dict[str, object]:
    packages = ("pymc_dp", "pymc", "pytensor", "nutpie", "opendp", "numpy")
    versions = {"Python": platform.python_version()} | {package: version(package) for package in packages}
    return {"cores": os.cpu_count(), "architecture": platform.machine(), "versions": versions}


def run(analyses: Mapping[str, Analysis], data: Path, keep: Path) -> dict:
    """All fits that are not kept yet; the file is written after each. Fits of another machine or other versions are done again."""
    done = json.loads(keep.read_text()) if keep.exists() else {}
    if done.get("machine") != machine():
        done = {"machine": machine()}

    def store() -> None:
        keep.parent.mkdir(parents=True, exist_ok=True)
        keep.write_text(json.dumps(done, indent=1))

    for name, analysis in analyses.items():
        model = analysis.make(data)
        mine = done.setdefault(name, {})
        if "exact" not in mine:
            mine["exact"] = without_privacy(analysis, model)
            one = pmdp.release(model, epsilon=1, **analysis.arguments).statistics[0]
            mine["told"] = analysis.told(model, None) if analysis.told else None
            mine["noise"] = {"sensitivity": one.sensitivity, "sd": one.noise.standard_deviation, "numbers": int(one.noisy.size)}
            store()
        for epsilon in EPSILONS:
            fits = mine.setdefault(str(epsilon), [])
            while len(fits) < analysis.releases:
                fits.append(fit(analysis, model, epsilon))
                print(f"{name}, epsilon {epsilon:g}, release {len(fits)}: {fits[-1]['seconds']:.1f} s", flush=True)
                store()
    return done


# ---------- telling
CLOSE, USELESS = "close", "**useless**"
PLUG_IN = "plug-in (`noise_aware=False`): **intervals are too narrow**, so read the spread over releases instead"


def rounded(value: float, scale: float) -> str:
    """With two digits of the scale."""
    digits = max(0, 1 - int(np.floor(np.log10(scale)))) if scale > 0 else 3
    return f"{value:.{min(digits, 6)}f}"


def verdict(fits: list[dict], name: str, exact: list[float]) -> str:
    """In one word, by the rule that the page states."""
    means, sds = np.array([one["quantities"][name][:2] for one in fits]).T
    error = float(np.sqrt(np.mean((means - exact[0]) ** 2)))
    size = max(error, float(np.median(sds)))
    if size > abs(exact[0]) / 2 and size > 2 * exact[1]:
        return USELESS
    return CLOSE if error <= exact[1] and size <= 1.5 * exact[1] else f"{size / exact[1]:.1f}x"


def cell(fits: list[dict], name: str, exact: list[float]) -> str:
    means, sds, low, high = np.array([one["quantities"][name] for one in fits]).T
    scale = min(float(np.median(sds)), exact[1])
    held = int(((low <= exact[0]) & (exact[0] <= high)).sum())
    told = [rounded(v, scale) for v in (np.median(means), means.min(), means.max(), np.median(sds))]
    return f"{told[0]} [{told[1]}, {told[2]}] ({told[3]}); {held}/{len(fits)}; {verdict(fits, name, exact)}"


def section(analysis: Analysis, mine: dict) -> str:
    noise, fits = mine["noise"], [one for epsilon in EPSILONS for one in mine[str(epsilon)]]
    seconds, divergences = np.mean([one["seconds"] for one in fits]), sum(one["divergences"] for one in fits)
    lines = [
        f"## {analysis.title}",
        "",
        f"{analysis.source}. **One record:** {analysis.record}",
        "",
        f"Structure: {analysis.structure}; {'noise-aware' if analysis.noise_aware else PLUG_IN}. One record moves the released numbers"
        f" ({noise['numbers']} of them) by {noise['sensitivity']:.4g} in all, so at epsilon 1 each carries noise of standard deviation"
        f" {noise['sd']:.3g}. {len(fits)} fits, {seconds:.1f} s each: {divergences} divergent draws, R-hat at most"
        f" {max(one['rhat'] for one in fits):.2f}.",
        "",
        "| quantity | published | no privacy | " + " | ".join(f"epsilon {e:g}, {len(mine[str(e)])} releases" for e in EPSILONS) + " |",
        "|---|---|---|" + "---|" * len(EPSILONS),
    ]
    for name, quantity in analysis.quantities.items():
        mean, sd = mine["exact"][name][:2]
        private = " | ".join(cell(mine[str(epsilon)], name, [mean, sd]) for epsilon in EPSILONS)
        lines.append(f"| {name} | {quantity.published} | {rounded(mean, sd)} ({rounded(sd, sd)}) | {private} |")
    if analysis.remark:
        found = [f"epsilon {e:g}: {', '.join(f'{one["told"]:.0%}' for one in mine[str(e)])}" for e in EPSILONS] if analysis.told else []
        lines += ["", analysis.remark.format(exact=mine["told"], found="; ".join(found))]
    return "\n".join(lines)


def overview(analyses: Mapping[str, Analysis], done: dict) -> str:
    """For every analysis, the words that its quantities get at each epsilon."""
    lines = ["| analysis | posterior | " + " | ".join(f"epsilon {e:g}" for e in EPSILONS) + " |", "|---|---|" + "---|" * len(EPSILONS)]
    for name, analysis in analyses.items():
        told = []
        for epsilon in EPSILONS:
            words = [verdict(done[name][str(epsilon)], one, done[name]["exact"][one]) for one in analysis.quantities]
            close, useless = words.count(CLOSE), words.count(USELESS)
            noisier = [word for word in words if word not in (CLOSE, USELESS)]
            parts = [f"{close} close" if close else "", f"**{useless} useless**" if useless else ""]
            parts.append(f"{len(noisier)} at up to {max(noisier, key=lambda word: float(word[:-1]))}" if noisier else "")
            told.append(", ".join(filter(None, parts)))
        lines.append(f"| {analysis.title} | {'noise-aware' if analysis.noise_aware else 'plug-in'} | " + " | ".join(told) + " |")
    return "\n".join(lines)


def page(analyses: Mapping[str, Analysis], done: dict, script: str, title: str) -> str:
    seconds = sum(one["seconds"] for name in analyses for epsilon in EPSILONS for one in done[name][str(epsilon)])
    facts = done["machine"]
    versions = ", ".join(f"{package} {number}" for package, number in facts["versions"].items())
    head = f"""# {title}, run privately

Written by `python benchmarks/{script} DATA_DIR`. Every private result is a fresh release, so another run gives other numbers.
Measured on {facts["cores"]} {facts["architecture"]} cores, shared with other work ({versions});
the private fits took {seconds / 60:.0f} minutes, most of it compiling, with {SAMPLER["chains"]} chains of 500 or 1,000 draws each.

A cell has the median [smallest, largest] of the posterior means over the releases (and the median posterior standard deviation), in
how many releases the 90 % interval holds the posterior mean without privacy, and a verdict. The verdict follows this rule. Take the
larger of the root mean square error of the posterior means, against the one without privacy, and the median posterior standard
deviation. If it is more than half of the quantity itself and more than twice the standard deviation without privacy, the result is
**useless**. If the error is within that standard deviation and the larger within 1.5 times it, the result is *close*. Otherwise the
verdict is the ratio of the larger to that standard deviation. "No privacy" is the same model on the records themselves: mean
(standard deviation).

The number of intervals that hold is a check for gross errors; calibration is measured in [calibration.md](calibration.md). An
interval may be right and useless: the verdict is about what is learnt, not about whether the interval is honest."""
    return "\n\n".join([head, overview(analyses, done), *(section(one, done[name]) for name, one in analyses.items())]) + "\n"


def main(analyses: Mapping[str, Analysis], page_name: str, title: str, about: str | None) -> None:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder that holds the data")
    parser.add_argument("--only", nargs="+", choices=analyses, default=list(analyses), help="print these only, and write no page")
    stem = Path(page_name).stem
    parser.add_argument("--keep", type=Path, default=ROOT / "output" / f"{stem}.json", help="fits that are done")
    arguments = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    wanted = {name: analyses[name] for name in arguments.only}
    text = page(wanted, run(wanted, arguments.data, arguments.keep), f"{stem}.py", title)
    print(text)
    if set(wanted) == set(analyses):
        (ROOT / "docs" / page_name).write_text(text)


if __name__ == "__main__":
    main(ANALYSES, "published.md", "Published analyses", __doc__)
