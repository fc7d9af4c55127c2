"""Hidden states of regions from noisy counts of events: writes benchmarks/results/hidden.csv, docs/hidden.md and docs/hidden.png.

    python benchmarks/hidden.py run --data DIRECTORY [--splits S] [--paid P]
    python benchmarks/hidden.py summary

Every split of either country is one run of ``examples/conflict.py``, which holds out a tenth of the region-months; Gibbs that pays at
every update is run for the first P of them only. What is in the CSV is not run again.
The events (``ged_iraq``, ``ged_mexico``: UCDP GED, CC BY 4.0, Sundberg and Melander 2013) are not shipped.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE, PICTURE = ROOT / "benchmarks" / "results" / "hidden.csv", ROOT / "docs" / "hidden.md", ROOT / "docs" / "hidden.png"
COUNTRIES = ("iraq", "mexico")
STATES, EPSILONS = (1, 2, 3, 10), (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
POSTERIORS = {"noise-aware": "C0", "plug-in": "C1", "one draw": "C2", "paid Gibbs": "C3"}
PAID, FREE, SCORE, USED = "paid Gibbs", "no privacy", "held-out nats an event", "states in use"
KEPT = 1.0
"""From this epsilon on the page says how many states are in use."""


def run(data: Path, splits: int, paid: int) -> None:
    """Split by split, the countries in turn, so that an early end leaves as many of each."""
    done = pd.read_csv(RESULTS) if RESULTS.exists() else pd.DataFrame(columns=["country", "split", "posterior"])
    for split in range(1, splits + 1):
        for country in COUNTRIES:
            there = done.loc[(done["country"] == country) & (done["split"] == split), "posterior"]
            names = [name for name in (FREE, *POSTERIORS) if name not in set(there) and (name != PAID or split <= paid)]
            if not names:
                continue
            with tempfile.TemporaryDirectory() as folder:
                events = data / f"ged_{country}" / "events_coded.parquet"
                words = ["--states", *map(str, STATES), "--epsilon", *map(str, EPSILONS), "--splits", "1", "--seed", str(split)]
                words += ["--posteriors", *names, "--output", folder]
                subprocess.run([sys.executable, ROOT / "examples" / "conflict.py", "--data", events, *words], check=True)
                found = pd.read_csv(Path(folder) / "conflict.csv").assign(country=country, split=split)
            done = pd.concat([done, found], ignore_index=True)
            done.to_csv(RESULTS, index=False)
            print(f"{country}, split {split}", flush=True)


def _told(some: pd.DataFrame) -> str:
    """The mean score, and the mean number of states in use where that was counted."""
    if some.empty:
        return ""
    used = some[USED].mean()
    return f"{some[SCORE].mean():.3f}" + (f" ({used:.1f})" if used == used else "")


def _kept(found: pd.DataFrame) -> str:
    """How many of most states are used, from the least mean to the largest, of each country and posterior."""
    some = found[(found["states"] == max(STATES)) & ((found["epsilon"] >= KEPT) | (found["posterior"] == FREE))]
    means = some.groupby(["country", "posterior", "epsilon"], dropna=False)[USED].mean()
    told = []
    for country in found["country"].unique():
        ends = {name: (of.min(), of.max()) for name, of in means[country].groupby("posterior") if name != PAID}
        each = (f"{name} {low:.1f}" + (f" to {high:.1f}" if high - low > 0.05 else "") for name, (low, high) in ends.items())
        told.append(f"{country.title()} {', '.join(each)}")
    return "; ".join(told)


def summary() -> None:
    found = pd.read_csv(RESULTS)
    many = found.groupby("country")["split"].nunique()
    by = found[found["posterior"] == PAID].groupby("country")["split"].nunique()
    paid = ", ".join(f"{country.title()}: {several} split{'s' * (several > 1)}" for country, several in by.items())
    lines = [
        "# Hidden states of events, measured",
        "",
        "Written by `python benchmarks/hidden.py`. Events of the UCDP GED (CC BY 4.0; Sundberg and Melander 2013), Iraq from 2004 to"
        " 2018 and Mexico, each with a region, a month and five categorical features. The number of events of each region, month and"
        " level is released once; replacing one event moves the table of each feature by 2. A tenth of the region-months is held out. The"
        " score is the log-likelihood of a held-out event, in nats, given the states around it. The tables have means over splits"
        f" ({', '.join(f'{country.title()}: {splits}' for country, splits in many.items())}), standard errors of differences in square"
        " brackets, and in round brackets the number of states that hold 2 % of region-months or more.",
        "",
        "- *Plug-in*: noisy counts below 0 are set to 0, and all counts are then taken as exact (FGWC16, section 5).",
        "- *Noise-aware*: the exact counts are unknown and are drawn together with everything else, by `pymc_dp.hidden_markov`.",
        "- *One draw*: one posterior sample with the likelihood flattened to what epsilon allows (FGWC16's comparison). Its epsilon holds"
        " only if the chain had converged, which cannot be known; the epsilon of the other two holds whatever the sampler does.",
        "- *Paid Gibbs*: thirty sweeps with `mechanism=Gibbs(30, burn_in=20)` that read the events at every update (FGWC16, section 4.2);"
        " all of them are charged. It has a delta of 1e-6, which makes it cheaper; the others have none. The score is the mean over its"
        f" last ten states; {paid}. The second number says how much better it is than one draw for the same split.",
        "- *No privacy*: the EM algorithm, the best of six starts.",
        "",
        "The plug-in takes positive noise for events, and the more so the more region-months are empty. At epsilon 0.1 the noise of a count"
        " has a scale of 100 events. Then nothing is learned: the noise-aware posterior is nearly the prior, and one draw, which spends its"
        f" epsilon on the profiles alone, is as good or better. From epsilon {KEPT:g} on, so many of {max(STATES)} states are in use:"
        f" {_kept(found)}. A flattened likelihood does not distinguish states.",
        "",
        "In every sweep, paid Gibbs reads the events once for all states, which costs twice the range of an event's log-likelihood over the"
        " states because an event may belong to another month, and once for each of eight splits of levels. Thirty sweeps flatten the"
        " likelihood so far that more states make its predictions worse: it can afford only one state, which is naive Bayes.",
        "",
        "![Held-out log-likelihood against epsilon](hidden.png)",
    ]
    for country in many.index:
        lines += ["", f"## {country.title()}", "", f"| states | epsilon | {' | '.join(POSTERIORS)} | noise-aware less plug-in |"]
        lines += ["|---" * (3 + len(POSTERIORS)) + "|"]
        one = found[found["country"] == country]
        for states in STATES:
            some = one[one["states"] == states]
            for epsilon in EPSILONS:
                table = some[some["epsilon"] == epsilon].pivot(index="split", columns="posterior", values=[SCORE, USED])
                told = [_told(some[(some["epsilon"] == epsilon) & (some["posterior"] == name)]) for name in POSTERIORS]
                if told[-1]:
                    told[-1] += f", {(table[SCORE, PAID] - table[SCORE, 'one draw']).mean():+.3f}"
                gain = table[SCORE, "noise-aware"] - table[SCORE, "plug-in"]
                lines.append(f"| {states} | {epsilon:g} | {' | '.join(told)} | {gain.mean():+.3f} [{gain.sem():.3f}] |")
            lines.append(f"| {states} | no privacy | {_told(some[some['posterior'] == FREE])} | | | | |")
    PAGE.write_text("\n".join(lines) + "\n")
    size = (3.4 * len(STATES), 3 * len(many))
    figure, axes = plt.subplots(len(many), len(STATES), figsize=size, sharex=True, sharey="row", squeeze=False)
    for row, country in zip(axes, many.index, strict=True):
        for axis, states in zip(row, STATES, strict=True):
            some = found[(found["country"] == country) & (found["states"] == states)]
            for name, colour in POSTERIORS.items():
                means = some[some["posterior"] == name].groupby("epsilon")[SCORE].mean()
                axis.plot(means.index, means, "o-", color=colour, label=name)
            axis.axhline(some.loc[some["posterior"] == FREE, SCORE].mean(), color="black", ls="--", label=FREE)
            axis.set(xscale="log", title=f"{country.title()}, {'naive Bayes' if states == 1 else f'{states} states'}")
        row[0].set_ylabel("held-out nats an event")
    for axis in axes[-1]:
        axis.set_xlabel("epsilon")
    axes[0, -1].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=90)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "summary"))
    parser.add_argument("--data", type=Path, help="the directory of both countries' directories")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--paid", type=int, default=1, help="splits in which Gibbs that pays is run as well")
    given = parser.parse_args()
    if given.what == "run":
        if given.data is None:
            parser.error("run needs --data")
        run(given.data, given.splits, given.paid)
    summary()
