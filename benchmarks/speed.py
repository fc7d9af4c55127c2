"""What the first call costs, and what the next ones do: writes benchmarks/results/speed.csv and docs/speed.md.

    python benchmarks/speed.py
    python benchmarks/speed.py --next  # calls after the first alone, with what the machine has compiled; takes some minutes

Every first call runs in a fresh process: once with an empty PyTensor compile directory, once with the directory that this left
behind, and once with the one that ``python -m pymc_dp compile`` leaves. The user's own model, without privacy, is compiled in an empty
directory for comparison.
"""

import argparse
import csv
import json
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
DRAWS = 1000
ROUNDS = 2
TARGET = 10
"""Seconds that a first call should take at most."""


# ---------- the models, as one would write them without privacy: (model, arguments of pymc_dp.sample)
def shared_bernoulli():
    import pymc as pm

    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("theta", 1, 1), observed=rng().integers(0, 2, 1000))
    return model, {}


def indexed_bernoulli():
    import pymc as pm

    g, y = rng().integers(0, 20, 2000), rng().integers(0, 2, 2000)
    with pm.Model(coords={"group": range(20)}) as model:
        mu, tau = pm.Normal("mu", 0, 1), pm.HalfNormal("tau", 1)
        a = pm.Normal("a", mu, tau, dims="group")
        pm.Bernoulli("y", logit_p=a[g], observed=y)
    return model, {"public": ["group"]}


def private_index():
    import pymc as pm

    g, y = rng().integers(0, 6, 2000), rng().integers(0, 2, 2000)
    with pm.Model(coords={"group": range(6)}) as model:
        theta = pm.Beta("theta", 2, 2, dims="group")
        pm.Bernoulli("y", theta[g], observed=y)
    return model, {}


def poisson_clamped():
    import pymc as pm

    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("rate", 2, 1), observed=rng().poisson(2.0, 1000))
    return model, {"bounds": {"y": (0, 6)}}


def normal_unknown_sigma():
    import pymc as pm

    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0, 5), pm.HalfNormal("sigma", 3), observed=rng().normal(1.0, 2.0, 1000))
    return model, {"bounds": {"y": (-8, 10)}}


def categorical():
    import pymc as pm

    with pm.Model() as model:
        pm.Categorical("y", pm.Dirichlet("p", np.ones(4)), observed=rng().integers(0, 4, 1000))
    return model, {}


def table():
    import pymc as pm

    age, treated, y = rng().integers(0, 4, 2000), rng().integers(0, 2, 2000), rng().integers(0, 2, 2000)
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=3)
        pm.Bernoulli("y", logit_p=b[0] + b[1] * age + b[2] * treated, observed=y)
    return model, {"bounds": {"y:0": (0, 3), "y:1": {0, 1}}}


def aggregate():
    import pymc as pm

    n = rng().integers(20, 200, 30)
    with pm.Model(coords={"town": range(30)}) as model:
        a, b = pm.Gamma("a", 2, 0.5), pm.Gamma("b", 2, 0.5)
        theta = pm.Beta("theta", a, b, dims="town")
        pm.Binomial("y", pm.Data("n", n, dims="town"), theta, observed=rng().binomial(n, 0.3), dims="town")
    return model, {"unit": "individual", "public": ["n"]}


def linear(P: int):
    import pymc as pm

    X = rng().uniform(-1, 1, (1000, P))
    y = 0.3 + X @ np.linspace(0.5, -0.5, P) + rng().normal(0, 0.5, 1000)
    with pm.Model() as model:
        data = pm.Data("X", X)
        b = pm.Normal("b", 0, 1, shape=P)
        pm.Normal("y", pm.Normal("a", 0, 1) + pm.math.dot(data, b), pm.HalfNormal("sigma", 1), observed=y)
    return model, {"bounds": {"X": (-1, 1), "y": (-4, 4)}}


def logistic():
    import pymc as pm

    X = rng().uniform(-1, 1, (1000, 2))
    y = rng().binomial(1, 1 / (1 + np.exp(-(0.3 + X @ [1.0, -1.0]))))
    with pm.Model() as model:
        data = pm.Data("X", X)
        b = pm.Normal("b", 0, 1, shape=2)
        pm.Bernoulli("y", logit_p=pm.Normal("a", 0, 1) + pm.math.dot(data, b), observed=y)
    return model, {"bounds": {"X": (-1, 1), "logit(y)": (-3, 3)}}


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


STRUCTURES: dict[str, Callable] = {
    "shared Bernoulli": shared_bernoulli,
    "indexed Bernoulli, 20 groups": indexed_bernoulli,
    "private index, 6 groups": private_index,
    "Poisson, clamped": poisson_clamped,
    "Normal, sigma unknown": normal_unknown_sigma,
    "Categorical, 4 levels": categorical,
    "table, 2 covariates": table,
    "aggregate, 30 towns": aggregate,
    "linear, 1 covariate": lambda: linear(1),
    "linear, 5 covariates": lambda: linear(5),
    "linear, 14 covariates": lambda: linear(14),
    "logistic, 2 covariates": logistic,
}


# ---------- one call, in the process that measures it
class Watch:
    """Wall and CPU seconds in the functions that it stands around."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def around(self, where: object, name: str, label: str) -> None:
        function = getattr(where, name)

        def timed(*arguments, **more):
            start, busy = time.perf_counter(), time.process_time()
            try:
                return function(*arguments, **more)
            finally:
                self.add(label, start, busy)

        setattr(where, name, timed)

    def add(self, label: str, start: float, busy: float) -> None:
        """What has passed since these two clocks were read."""
        self.seconds[label] = self.seconds.get(label, 0.0) + time.perf_counter() - start
        self.seconds[f"{label}_cpu"] = self.seconds.get(f"{label}_cpu", 0.0) + time.process_time() - busy


def one_call(structure: str, private: bool, repeat: int = 0) -> dict:
    """Seconds of every part of one call, and of ``repeat`` more in the same process."""
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    start = time.perf_counter()
    import arviz as az
    import nutpie
    import pymc as pm

    from pymc_dp import sampling
    from pymc_dp.releases.from_records import PreparedRelease

    imported = time.perf_counter() - start
    watch = Watch()
    for name, label in (("prepared", "inspect"), ("rewritten", "rewrite")):
        watch.around(sampling, name, label)
    watch.around(PreparedRelease, "pay_and_draw", "release")
    watch.around(nutpie, "compile_pymc_model", "compile")
    watch.around(nutpie, "sample", "sampling")
    model, arguments = STRUCTURES[structure]()
    sampler = {"progressbar": False, "random_seed": 1, "chains": 2, "cores": 1, "nuts_sampler": "nutpie"}

    def call():
        if not private:
            return pm.sample(DRAWS, model=model, **sampler)
        try:
            return sampling.sample(DRAWS, model=model, epsilon=1.0, **arguments, **sampler)
        except sampling.Refusal as refusal:
            if "noise_aware=False" not in str(refusal):
                raise
            watch.seconds["plug-in"] = 1.0
            return sampling.sample(DRAWS, model=model, epsilon=1.0, noise_aware=False, **arguments, **sampler)

    found = []
    for _ in range(1 + repeat):
        watch.seconds.clear()
        start, busy = time.perf_counter(), time.process_time()
        tree = call()
        watch.add("total", start, busy)
        ess = min(float(value.min()) for value in az.ess(tree["posterior"].to_dataset()).data_vars.values())
        divergences = int(tree["sample_stats"]["diverging"].sum())
        found.append({"import": imported, "ess": ess, "divergences": divergences} | watch.seconds)
    return found[0] | {"again": found[1:]}


def in_process(structure: str, private: bool, compiled: Path, repeat: int = 0) -> dict:
    """``one_call`` in a fresh process with this compile directory."""
    command = [__file__, "--one", structure, "--repeat", str(repeat), *([] if private else ["--plain"])]
    return json.loads(output(command, compiled).splitlines()[-1])


def output(command: list[str], compiled: Path) -> str:
    """What Python writes, with this compile directory."""
    flags = [flag for flag in os.environ.get("PYTENSOR_FLAGS", "").split(",") if flag and not flag.startswith("base_compiledir=")]
    environment = os.environ | {"PYTENSOR_FLAGS": ",".join([f"base_compiledir={compiled}", *flags])}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return done.stdout


# ---------- telling
PARTS = ("release", "rewrite", "compile", "sampling", "total", "compile_cpu", "sampling_cpu", "total_cpu")
FIELDS = ("structure", "call", "likelihood", *PARTS, "min_ess", "ess_per_second", "divergences")


def rows_of(name: str, found: dict[str, dict]) -> list[dict]:
    """One row for each kind of call; effective draws are told per CPU second, which other work on the machine changes least."""
    rows = []
    for call, one in found.items():
        likelihood = "no privacy" if call == "plain" else "plug-in" if "plug-in" in one else "noise-aware"
        seconds = {part: round(one.get(part, 0.0), 3) for part in PARTS}
        rest = {"min_ess": round(one["ess"]), "ess_per_second": round(one["ess"] / one["sampling_cpu"]), "divergences": one["divergences"]}
        rows.append({"structure": name, "call": call, "likelihood": likelihood} | seconds | rest)
    return rows


def measured(name: str, ahead: Path) -> list[dict]:
    """First call with an empty compile directory, with a warm one, with one compiled ahead, calls after that; the model without privacy."""
    with tempfile.TemporaryDirectory(prefix="pymc_dp_speed_") as folder:
        cold = in_process(name, True, Path(folder))
        warm = in_process(name, True, Path(folder), repeat=ROUNDS)
    with tempfile.TemporaryDirectory(prefix="pymc_dp_speed_") as folder:
        plain = in_process(name, False, Path(folder))
    with tempfile.TemporaryDirectory(prefix="pymc_dp_speed_") as folder:
        prepared = in_process(name, True, shutil.copytree(ahead, Path(folder), dirs_exist_ok=True))
    again = {key: float(np.median([one[key] for one in warm["again"]])) for key in warm["again"][0]}
    return rows_of(name, {"cold": cold, "warm directory": warm, "same process": again, "plain": plain, "compiled ahead": prepared})


def measured_next(name: str, rows: list[dict]) -> list[dict]:
    """The rows with calls after the first measured anew."""
    import pytensor

    later = in_process(name, True, Path(pytensor.config.base_compiledir), repeat=ROUNDS)["again"]
    [new] = rows_of(name, {"same process": {key: float(np.median([one[key] for one in later])) for key in later[0]}})
    return [new if (row["structure"], row["call"]) == (name, "same process") else row for row in rows]


def page(rows: list[dict]) -> str:
    """The table, a row for each structure."""
    lines = [
        "# What a call costs",
        "",
        f"Written by `python benchmarks/speed.py`: `pymc_dp.sample({DRAWS}, epsilon=1, ...)` with nutpie, two chains in turn, on"
        f" one of {os.cpu_count()} {platform.machine()} cores that were shared with other work: so all seconds are CPU seconds of the"
        " process; `benchmarks/results/speed.csv` has wall seconds too. First: a fresh process and an empty compile directory. Ahead: the"
        " same after `python -m pymc_dp compile`, as about any call on a machine that has sampled a few other private models. Again: a"
        " fresh process with the directory that was left. Next: another release and fit in the same process, median; nothing is compiled"
        " then. Importing takes 1 to"
        " 2 s more. The logistic row was measured before cosine and sine of features were released with a link, which made it slower.",
        "",
        "| structure | likelihood | first | of it compiling | compiling the model without privacy | first, ahead | again | next |"
        " of it sampling | least ESS | ESS per s | s per 1,000 effective draws | divergences |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    names = dict.fromkeys(row["structure"] for row in rows)
    for name in names:
        cold, warm, again, plain, ahead = (row for row in rows if row["structure"] == name)
        lines.append(
            f"| {name} | {cold['likelihood']} | {cold['total_cpu']:.1f} | {cold['compile_cpu']:.1f} | {plain['compile_cpu']:.1f} |"
            f" {ahead['total_cpu']:.1f} |"
            f" {warm['total_cpu']:.1f} | {again['total_cpu']:.1f} | {again['sampling_cpu']:.2f} | {again['min_ess']:,.0f} |"
            f" {again['ess_per_second']:,.0f} | {1000 / again['ess_per_second']:.2f} | {again['divergences']:.0f} |"
        )
    short = {call: sum(row["total_cpu"] < TARGET for row in rows if row["call"] == call) for call in ("cold", "compiled ahead")}
    later = [row["total_cpu"] for row in rows if row["call"] == "same process"]
    floor = min(row["compile_cpu"] for row in rows if row["call"] == "plain")
    lines += [
        "",
        f"{short['cold']} of {len(names)} first calls take less than {TARGET} s, {short['compiled ahead']} after"
        f" `python -m pymc_dp compile`, which takes a minute or two, once; the least of these models takes {floor:.1f} s without privacy."
        f" Of {len(later)} next calls {sum(seconds < 1 for seconds in later)} take less than 1 s: what nutpie compiled is kept in memory by"
        " all that went into it, and another release is data that it is given (`fingerprint`, `nutpie_draws`). With any other difference,"
        " also in the number of records or in epsilon, a model is compiled anew. With 14 covariates half of the time goes into small"
        " systems of equations, which several threads of BLAS solve slowly on cores that are busy."
        " Most of a first call is numba, which compiles every operation of the graph, most in a tenth of a second to a second each."
        " So integrals, sums and convolutions, the second moments of linear likelihoods, and shares of records are one loop each with its"
        " derivatives, entry by entry (`laws`, `moment_loops`), which is compiled once and called by its address (`compiled`); what differs"
        " between releases is data of the graph, one array a likelihood beside the released one, so that the compile directory serves the"
        " next release; and matrices of two or three rows are written out. What a private call takes longer than the same model without"
        " privacy goes into latents and into numbers of records that are not known.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=STRUCTURES, default=list(STRUCTURES), help="run these again, and keep the other rows")
    parser.add_argument("--next", action="store_true", help="measure calls after the first alone, and keep what is known of the others")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--repeat", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one_call(arguments.one, not arguments.plain, arguments.repeat)))
        return
    results = ROOT / "benchmarks" / "results" / "speed.csv"
    results.parent.mkdir(exist_ok=True)
    rows = kept(results, [] if arguments.next else arguments.only)
    if arguments.next:
        for name in arguments.only:
            rows = measured_next(name, rows)
            print(*[row for row in rows if row["structure"] == name and row["call"] == "same process"], flush=True)
        write(rows, results)
        return
    with tempfile.TemporaryDirectory(prefix="pymc_dp_speed_") as ahead:
        print(output(["-m", "pymc_dp", "compile"], Path(ahead)), flush=True)
        for name in arguments.only:
            rows = sorted(rows + measured(name, Path(ahead)), key=lambda row: list(STRUCTURES).index(row["structure"]))
            print(*[row for row in rows if row["structure"] == name], sep="\n", flush=True)
            write(rows, results)


def write(rows: list[dict], results: Path) -> None:
    """The rows, and the page that is made of them."""
    with results.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    (ROOT / "docs" / "speed.md").write_text(page(rows))


def _number(text: str) -> float:
    """As it was written, so that rows that are kept stay the same."""
    return int(text) if text.isdigit() else float(text)


def kept(results: Path, again: list[str]) -> list[dict]:
    """Rows of earlier runs, of structures that are not run again."""
    if not results.exists():
        return []
    words = ("structure", "call", "likelihood")
    with results.open(newline="") as file:
        rows = [{key: value if key in words else _number(value) for key, value in row.items()} for row in csv.DictReader(file)]
    return [row for row in rows if row["structure"] in STRUCTURES and row["structure"] not in again]


if __name__ == "__main__":
    main()
