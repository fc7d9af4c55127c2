"""How well chains move: writes benchmarks/results/geometry.csv and docs/geometry.md.

    python benchmarks/geometry.py run [--cases a,b] [--minutes M] [--releases R]
    python benchmarks/geometry.py compare
    python benchmarks/geometry.py summary

Every family and structure of ``calibration.py``, from much noise to little and from few records to many: parameters from the prior,
records from the model, a release, and the private posterior by four chains at the default settings of ``pymc_dp.sample``.
Where chains had trouble, ``compare`` samples the user's own model with the same records. What is in the CSV is not run again.
"""

import argparse
import csv
import time
import warnings
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import calibration
import numpy as np
import nutpie
import pandas as pd
from arviz_stats.base import array_stats

import pymc_dp as pmdp
from pymc_dp.private_models.default_steps import suited

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "geometry.csv", ROOT / "docs" / "geometry.md"
EPSILONS, SIZES = (0.05, 1.0, 10.0), (50, 1000, 20_000)
FAR_EPSILONS, FAR_SIZES = (0.05, 1e6), (10, 1_000_000)
"""The ends between which everything is to sample."""
DRAWS, CHAINS, RELEASES = 1000, 4, 1
R_HAT = 1.01
UNIT, OWN = ["case", "epsilon", "n", "release"], ["own_divergences", "own_r_hat"]
FIELDS = (*UNIT, "divergences", "r_hat", "ess", "gradients", "seconds", *OWN)


def fits(name: str, epsilon: float, N: int, releases: Sequence[int]) -> Iterator[dict]:
    """One row for every release of a unit."""
    simulator = calibration.Simulator(name, epsilon, N)
    posteriors = calibration.Posteriors(simulator.model, True)
    for release, replicate in enumerate(simulator.replicates(0, max(releases) + 1)):
        if release not in releases:
            continue
        sampler = posteriors.prepared(replicate.release, check=True)
        unit = {"case": name, "epsilon": epsilon, "n": N, "release": release}
        yield unit | _sampled(sampler, list(replicate.truth), replicate.seed, **suited(replicate.release, sampler.n_dim))


def _sampled(sampler: object, names: Sequence[str], seed: int, **nuts: str) -> dict:
    """How four chains at the default settings went."""
    start = time.process_time()
    tree = nutpie.sample(sampler, draws=DRAWS, chains=CHAINS, cores=1, seed=seed, progress_bar=False, **nuts)
    seconds = time.process_time() - start
    draws = np.concatenate([tree["posterior"][name].values.reshape(CHAINS, DRAWS, -1) for name in names], axis=-1)
    of_all = {"chain_axis": 0, "draw_axis": 1}
    return {
        "divergences": int(tree["sample_stats"]["diverging"].sum()),
        "r_hat": f"{np.max(array_stats.rhat(draws, **of_all)):.4f}",
        "ess": round(float(np.min(array_stats.ess(draws, **of_all, method="bulk")))),
        "gradients": int(tree["sample_stats"]["n_steps"].sum()),
        "seconds": f"{seconds:.2f}",
    }


def troubled(found: pd.DataFrame) -> pd.Series:
    """Fits with divergent draws, or with an R-hat that is too large."""
    return (found["divergences"] > 0) | (found["r_hat"] >= R_HAT)


def compare() -> None:
    """Beside every such fit, the user's own model without privacy, with the same records."""
    found = pd.read_csv(RESULTS)
    for place, row in found[troubled(found) & found["own_r_hat"].isna()].iterrows():
        simulator = calibration.Simulator(*row[UNIT[:3]])
        *_, replicate = simulator.replicates(0, int(row["release"]) + 1)
        own = _sampled(nutpie.compile_pymc_model(simulator.model), list(replicate.truth), replicate.seed)
        found.loc[place, OWN] = [own["divergences"], float(own["r_hat"])]
        print(*found.loc[place], flush=True)
        found.to_csv(RESULTS, index=False)


def units_of(cases: Sequence[str]) -> list[tuple[str, float, int]]:
    """Every (case, epsilon, N)."""
    grid = [*product(EPSILONS, SIZES), *product(FAR_EPSILONS, FAR_SIZES)]
    return [(name, epsilon, N) for name in cases for epsilon, N in grid]


def run(cases: Sequence[str], minutes: float, releases: int) -> None:
    """All that is not in the CSV yet."""
    warnings.simplefilter("ignore")
    deadline = time.time() + 60 * minutes
    if not RESULTS.exists():
        RESULTS.write_text(",".join(FIELDS) + "\n")
    found = pd.read_csv(RESULTS)
    done = set(zip(found["case"], found["epsilon"], found["n"], found["release"], strict=True))
    units = units_of(cases)
    left = {unit: [k for k in range(releases) if (*unit, k) not in done] for unit in units}
    for number, (unit, several) in enumerate(left.items(), 1):
        if time.time() > deadline:
            break
        if not several:
            continue
        try:
            for row in fits(*unit, several):
                with RESULTS.open("a", newline="") as file:
                    csv.DictWriter(file, FIELDS, lineterminator="\n").writerow(row)
                print(f"[{number}/{len(left)}]", *row.values(), flush=True)
        except (pmdp.Refusal, RuntimeError) as failure:
            print(f"[{number}/{len(left)}]", *unit, f"FAILED: {failure}", flush=True)


def _told(some: pd.DataFrame) -> str:
    """The worst of some fits."""
    divergent, total, high = int((some["divergences"] > 0).sum()), int(some["divergences"].sum()), int((some["r_hat"] >= R_HAT).sum())
    return f"{len(some)} | {divergent} ({total}) | {high} | {some['r_hat'].max():.3f} | {some['ess'].min():,.0f}"


def summary() -> None:
    found = pd.read_csv(RESULTS)
    bad = found[troubled(found)]
    heads = ["fits", "with divergences (draws)", f"R-hat of {R_HAT} or more", "largest R-hat", "least ESS"]
    lines = [
        "# Geometry, measured",
        "",
        "Written by `python benchmarks/geometry.py`. It fits every family and structure of [calibration](calibration.md). Parameters are"
        f" drawn from the prior and records from the model; epsilon {', '.join(f'{one:g}' for one in EPSILONS)} with N"
        f" {', '.join(f'{one:,}' for one in SIZES)}, and epsilon {' and '.join(f'{one:,g}' for one in FAR_EPSILONS)} with N"
        f" {' and '.join(f'{one:,}' for one in FAR_SIZES)}; {CHAINS} chains of {DRAWS:,} draws, one after another, at the default"
        " settings of `pymc_dp.sample` with nutpie."
        " R-hat is the largest and the effective sample size the smallest over all parameters of the user's model. Seconds are CPU seconds"
        " of sampling, including tuning but not compilation.",
        "",
        f"{found.groupby(UNIT[:3]).ngroups} of {len(units_of(list(calibration.CASES)))} units are run."
        f" Of {len(found)} fits {len(found) - len(bad)} have no divergent draw and an R-hat below {R_HAT}; all fits together have"
        f" {found['divergences'].sum():,} divergent draws of {len(found) * CHAINS * DRAWS:,}.",
        "",
        "| model | " + " | ".join([*heads, "gradients a draw", "seconds, median", "most"]) + " |",
        "|---" * (len(heads) + 4) + "|",
    ]
    for name, some in found.groupby("case", sort=False):
        each = (some["gradients"] / (CHAINS * DRAWS)).median()
        times = some["seconds"]
        lines.append(f"| {name.replace('_', ' ')} | {_told(some)} | {each:.0f} | {times.median():.1f} | {times.max():.1f} |")
    if len(bad):
        head = "| model | epsilon | N | divergent draws | R-hat | least ESS | without privacy: divergent draws | R-hat |"
        lines += ["", "Fits that diverge or have such an R-hat, and the model without privacy:", "", head, "|---" * 8 + "|"]
        for row in bad.sort_values("divergences", ascending=False).itertuples():
            own = f"{row.own_divergences:.0f} | {row.own_r_hat:.3f}" if row.own_r_hat == row.own_r_hat else " | "
            name = row.case.replace("_", " ")
            lines.append(f"| {name} | {row.epsilon:g} | {row.n:,} | {row.divergences} | {row.r_hat:.3f} | {row.ess:,} | {own} |")
    PAGE.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "compare", "summary"])
    parser.add_argument("--cases", default=",".join(calibration.CASES), help="names, separated by commas")
    parser.add_argument("--minutes", type=float, default=np.inf, help="stop after so many minutes")
    parser.add_argument("--releases", type=int, default=RELEASES)
    given = parser.parse_args()
    if given.command == "run":
        run(given.cases.split(","), given.minutes, given.releases)
    elif given.command == "compare":
        compare()
    else:
        summary()


if __name__ == "__main__":
    main()
