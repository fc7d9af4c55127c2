"""Private covariates in bins: whether intervals cover, and their widths beside no privacy. Writes benchmarks/results/covariate_bins.csv.

    python benchmarks/covariate_bins.py run [--minutes M] [--cases gamma,student_t] [--records 50] [--data-sets 40]
    python benchmarks/covariate_bins.py summary

Parameters are drawn from the prior and records from the model; the covariate is normal in every other data set and skew in the rest, which
the private model is not told. Private models of one unit differ in released numbers only, so that each is compiled once and given the
numbers of every data set in turn. Data sets that are in the CSV are not drawn again. ``summary`` prints the table of docs/bins_measured.md.
"""

import argparse
import csv
import os
import time
import warnings
from collections import defaultdict
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np
import nutpie
import pymc as pm
import pytensor.tensor as pt

import pymc_dp as pmdp

RESULTS = Path(__file__).parent / "results" / "covariate_bins.csv"
RECORDS, EPSILONS = (2000, 50), (4.0, 0.5)
MANY, FEWEST, COMPARED = 40, 20, 8
"""Data sets of every unit, how many there must be for it to be in the table, and of how many the posterior without privacy is drawn."""
COLUMNS = ("case", "N", "epsilon", "data_set", "name", "truth", "low", "high", "sd", "sd_without")


def _line():
    """Intercept and slope, whose priors all cases share."""
    return pm.Normal("a", 0.5, 0.5), pm.Normal("b", 0, 0.5)


def negative_binomial(x, y):
    a, b = _line()
    pm.NegativeBinomial("y", mu=pm.math.exp(a + b * x), alpha=pm.Gamma("shape", 8, 4), observed=y)


def gamma(x, y):
    (a, b), shape = _line(), pm.Gamma("shape", 8, 4)
    pm.Gamma("y", alpha=shape, beta=shape / pm.math.exp(a + b * x), observed=y)


def student_t(x, y):
    a, b = _line()
    pm.StudentT("y", nu=4.0, mu=a + b * x, sigma=pm.Gamma("shape", 8, 8), observed=y)


def ordered_logistic(x, y):
    a, b = _line()
    pm.OrderedLogistic("y", eta=2 * b * x, cutpoints=pt.stack([-1.0 - a, 0.5 - a, 2.0 - a]), observed=y)


def probit(x, y):
    a, b = _line()
    pm.Bernoulli("y", p=0.5 * pt.erfc(-(a + 2 * b * x) / np.sqrt(2)), observed=y)


def beta(x, y):
    a, b = _line()
    pm.Beta("y", mu=pm.math.sigmoid(a + 2 * b * x), nu=6 * pm.Gamma("shape", 8, 8), observed=y)


def categorical(x, y):
    a, b = _line()
    pm.Categorical("y", p=pm.math.softmax(pt.stack([0 * x, a + 2 * b * x, -a - 2 * b * x], axis=1), axis=1), observed=y)


def binomial(x, y):
    a, b = _line()
    pm.Binomial("y", n=TRIALS, logit_p=a + 2 * b * x, observed=y)


def ordered_probit(x, y):
    a, b = _line()
    pm.OrderedProbit("y", eta=2 * b * x, cutpoints=pt.stack([-1.0 - a, 0.5 - a, 2.0 - a]), observed=y)


TRIALS = 6
CASES = {
    case.__name__: case
    for case in (student_t, negative_binomial, gamma, ordered_logistic, probit, beta, categorical, binomial, ordered_probit)
}
STEEP = ("ordered_logistic", "probit", "beta", "categorical", "binomial", "ordered_probit")
"""Where slopes are twice b."""
OUTCOMES = {
    "negative_binomial": (0, 10),
    "gamma": pmdp.Bins(0, 8, 10),
    "student_t": pmdp.Bins(-6, 7, 13),
    "beta": pmdp.Bins(0, 1, 10),
    "binomial": (0, 6),
}
COVARIATE = pmdp.Bins(-3, 3)


def truth_of(case, rng):
    """Parameters from the prior."""
    shape = {"negative_binomial": rng.gamma(8, 1 / 4), "gamma": rng.gamma(8, 1 / 4), "student_t": rng.gamma(8, 1 / 8)}
    shape["beta"] = shape["student_t"]
    return {"a": rng.normal(0.5, 0.5), "b": rng.normal(0, 0.5)} | ({"shape": shape[case]} if case in shape else {})


def records_of(case, N, k):
    """The truth of one data set, and its records."""
    rng = np.random.default_rng([k, N, len(case)])
    truth = truth_of(case, rng)
    x = rng.normal(size=N) if k % 2 == 0 else rng.gamma(4, 0.5, size=N) - 2
    eta, shape = truth["a"] + truth["b"] * x * (2 if case in STEEP else 1), truth.get("shape")
    if case == "negative_binomial":
        return truth, x, rng.poisson(rng.gamma(shape, np.exp(eta) / shape))
    if case == "gamma":
        return truth, x, rng.gamma(shape, np.exp(eta) / shape)
    if case == "student_t":
        return truth, x, eta + shape * rng.standard_t(4, N)
    if case in ("beta", "binomial"):
        p = 1 / (1 + np.exp(-eta))
        if case == "binomial":
            return truth, x, rng.binomial(TRIALS, p)
        return truth, x, np.clip(rng.beta(p * 6 * shape, (1 - p) * 6 * shape), 1e-9, 1 - 1e-9)  # some are 1 as doubles, of no density
    if case == "categorical":  # the largest of three utilities
        utilities = np.stack([0 * x, eta, -eta], axis=1) + rng.gumbel(size=(N, 3))
        return truth, x, utilities.argmax(axis=1)
    latent = eta + (rng.logistic(size=N) if case == "ordered_logistic" else rng.normal(size=N))
    return truth, x, np.searchsorted([-1.0, 0.5, 2.0], latent) if case.startswith("ordered") else (latent > 0).astype(int)


def user_model(case, x, y):
    """The user's model, of which both arrays are data."""
    with pm.Model() as model:
        CASES[case](pm.Data("x", x), pm.Data("outcome", y))
    return model


def drawn(compiled, data, seed):
    """Draws of a compiled model on these data."""
    draws = compiled.with_data(**data)
    return nutpie.sample(draws, draws=300, tune=300, chains=2, cores=1, seed=seed, progress_bar=False)["posterior"]


def fits(case, N, epsilon, wanted):
    """Rows of the CSV for these data sets of one unit."""
    bounds = {"x": COVARIATE} | ({"y": OUTCOMES[case]} if case in OUTCOMES else {})
    private = without = None
    for k in wanted:
        truth, x, y = records_of(case, N, k)
        model = user_model(case, x, y)
        released = pmdp.rewrite(model, pmdp.release(model, epsilon=epsilon, bounds=bounds))
        names = [str(name) for name in released.named_vars if str(name).endswith(("_released", "_given"))]
        data = {name: released[name].get_value() for name in names}
        private = private or nutpie.compile_pymc_model(released)
        posterior, exact = drawn(private, data, k + 1), None
        if k < COMPARED:
            without = without or nutpie.compile_pymc_model(model)
            exact = drawn(without, {"x": x, "outcome": y}, k + 1)
        for name, value in truth.items():
            draws = posterior[name].values.ravel()
            beside = "" if exact is None else f"{exact[name].values.std():.6g}"
            numbers = (value, *np.quantile(draws, [0.05, 0.95]), draws.std())
            yield case, N, epsilon, k, name, *(f"{number:.6g}" for number in numbers), beside


def read():
    if not RESULTS.exists():
        return []
    with RESULTS.open() as file:
        return list(csv.DictReader(file))


def units(cases, records=RECORDS):
    return [(case, N, epsilon) for N in records for epsilon in EPSILONS for case in CASES if case in cases]


def run(minutes, cases, records, sets):
    deadline = time.process_time() + 60 * minutes
    new = not RESULTS.exists()
    with RESULTS.open("a") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writer = csv.writer(file)
        if new:
            writer.writerow(COLUMNS)
        for unit in units(cases, records):
            start = time.process_time()
            done = {int(row["data_set"]) for row in read() if (row["case"], int(row["N"]), float(row["epsilon"])) == unit}
            for row in fits(*unit, [k for k in range(sets) if k not in done]):
                writer.writerow(row)
                file.flush()
                if time.process_time() > deadline:
                    return
            print(*unit, f"{time.process_time() - start:.0f} s", flush=True)


def summary():
    found = defaultdict(list)
    for row in read():
        low, truth, high = (float(row[column]) for column in ("low", "truth", "high"))
        ratio = float(row["sd"]) / float(row["sd_without"]) if row["sd_without"] else np.nan
        found[row["case"], int(row["N"]), float(row["epsilon"]), row["name"]].append((low <= truth <= high, ratio))
    print("| likelihood | N | epsilon | data sets | intercept covers | slope covers | shape covers | slope wider by |")
    print("|---|---|---|---|---|---|---|---|")
    for case, N, epsilon in units(CASES):
        parts = {name: np.array(found[case, N, epsilon, name], dtype=float).reshape(-1, 2) for name in ("a", "b", "shape")}
        if len(parts["b"]) >= FEWEST:
            covers = " | ".join(f"{part[:, 0].mean():.0%}" if len(part) else "" for part in parts.values())
            print(f"| {case} | {N} | {epsilon:g} | {len(parts['b'])} | {covers} | {np.nanmedian(parts['b'][:, 1]):.3g} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("run", "summary"))
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--records", default=",".join(map(str, RECORDS)))
    parser.add_argument("--data-sets", type=int, default=MANY)
    arguments = parser.parse_args()
    if arguments.what == "summary":
        summary()
    else:
        run(arguments.minutes, arguments.cases.split(","), [int(n) for n in arguments.records.split(",")], arguments.data_sets)
