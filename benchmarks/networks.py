"""Bayesian networks under every mechanism: writes benchmarks/results/networks.csv, docs/networks.md and docs/networks.png.

    python benchmarks/networks.py run --data DIRECTORY [--repeats R] [--mechanism NAME]
    python benchmarks/networks.py aware --data DIRECTORY
    python benchmarks/networks.py memory --data DIRECTORY
    python benchmarks/networks.py summary

The data are the published networks asia, cancer, survey and alarm with 20,000 records each (``bn_dev``), the votes of 1984
(``voting_1984``) and the census of 1994 (``adult_uci``); they are not shipped. Of the networks the truth is known: the divergence of
the estimated network from it is that of joint distributions, in nats. Of votes and census, the class of held-out records is predicted.
"""

import argparse
import csv
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm

import pymc_dp as pmdp

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE, PICTURE = ROOT / "benchmarks" / "results" / "networks.csv", ROOT / "docs" / "networks.md", ROOT / "docs" / "networks.png"
PUBLISHED = ("asia", "cancer", "survey", "alarm")
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
COLUMNS = ("data", "records", "mechanism", "epsilon", "repeat", "measure", "value", "seconds")
WIDE = {"alarm": 2}
APART = ("megabytes", "variance left")
Tables = dict[str, np.ndarray]


# ---------- models
def network_model(parents: dict[str, list[str]], levels: dict[str, int], values: pd.DataFrame) -> pm.Model:
    """One Categorical variable a node, parents before children, with flat Dirichlet priors."""
    with pm.Model() as model:
        made: dict[str, object] = {}
        for name, above in parents.items():
            shape = (*(levels[parent] for parent in above), levels[name])
            table = pm.Dirichlet(f"{name}_probability", np.ones(shape[-1]), shape=shape)
            rows = table[tuple(made[parent] for parent in above)] if above else table
            made[name] = pm.Categorical(name, rows, observed=values[name].to_numpy())
    return model


def published(folder: Path, name: str) -> tuple[pm.Model, dict]:
    facts = json.loads((folder / "bn_dev" / f"{name}.json").read_text())
    values = pd.read_parquet(folder / "bn_dev" / f"{name}_sample_20000.parquet").astype(np.int64)
    parents = {node: facts["parents"][node] for node in facts["topological_order"]}
    return network_model(parents, {node: len(states) for node, states in facts["states"].items()}, values), facts


# ---------- mechanisms: from a model and an epsilon to conditional probability tables
def from_counts(release: pmdp.Release, *, clipped: bool = True, shifted: bool = False) -> Tables:
    """Posterior means under flat priors, the noisy counts moved into what is possible (ZRD16, Algorithms 1 and 2)."""
    tables = {}
    for node in release.network.nodes:
        counts = np.maximum(release.table(node.name, shifted=shifted), 0)
        counts = np.minimum(counts, release.statistics[0].n.sum()) if clipped and not shifted else counts
        tables[node.name] = (counts + 1) / (counts + 1).sum(axis=-1, keepdims=True)
    return tables


def drawn(tree) -> Tables:
    return {name.removesuffix("_table"): values.values[0, 0] for name, values in tree.network.data_vars.items()}


def mode(model: pm.Model, epsilon: float) -> Tables:
    found = pmdp.find_MAP(model=model, epsilon=epsilon)
    return {name.removesuffix("_probability"): values for name, values in found.items()}


MECHANISMS: dict[str, Callable[[pm.Model, float], Tables]] = {
    "Laplace": lambda model, e: from_counts(pmdp.release(model, epsilon=e)),
    "Laplace, shared counts": lambda model, e: from_counts(pmdp.release(model, epsilon=e, mechanism=pmdp.Laplace(share_counts=True))),
    "Laplace, least squares": lambda model, e: from_counts(pmdp.consistent(pmdp.release(model, epsilon=e))),
    "Fourier, minimal shift": lambda model, e: from_counts(pmdp.release(model, epsilon=e, mechanism="fourier"), shifted=True),
    "Fourier, t of 90 %": lambda model, e: from_counts(
        pmdp.release(model, epsilon=e, mechanism=pmdp.Fourier(nonnegative="stealth")), shifted=True
    ),
    "Fourier, clipped": lambda model, e: from_counts(pmdp.release(model, epsilon=e, mechanism="fourier")),
    "posterior draw": lambda model, e: drawn(pmdp.sample(model=model, epsilon=e, mechanism=pmdp.PosteriorSample())),
    "MAP": mode,
}


def aware(release: pmdp.Release, model: pm.Model) -> Tables:
    """Posterior means of the noise-aware model."""
    tree = pm.sample(500, tune=500, chains=2, cores=1, model=pmdp.rewrite(model, release), progressbar=False, random_seed=1)
    names = [node.variable for node in release.network.nodes]
    return {name: tree.posterior[f"{name}_table"].values.mean(axis=(0, 1)) for name in names}


AWARE: dict[str, Callable[[pm.Model, float], Tables]] = {
    "noise-aware, least squares": lambda model, e: aware(pmdp.consistent(pmdp.release(model, epsilon=e)), model),
    "noise-aware, Fourier": lambda model, e: aware(pmdp.release(model, epsilon=e, mechanism="fourier"), model),
}


def exact(facts_or_parents: dict[str, list[str]], levels: dict[str, int], values: pd.DataFrame) -> Tables:
    """Without privacy: posterior means under flat priors."""
    tables = {}
    for name, above in facts_or_parents.items():
        counts = np.zeros([levels[one] for one in (*above, name)])
        np.add.at(counts, tuple(values[one].to_numpy() for one in (*above, name)), 1)
        tables[name] = (counts + 1) / (counts + 1).sum(axis=-1, keepdims=True)
    return tables


# ---------- measures
def weights_of(facts: dict, many: int = 1_000_000) -> Tables:
    """The true probability of every combination of a node's parents, from a million records of the true network."""
    rng, values = np.random.default_rng(0), {}
    for node in facts["topological_order"]:
        table = np.array(facts["cpt"][node])[tuple(values[parent] for parent in facts["parents"][node])]
        table = np.broadcast_to(table, (many, table.shape[-1]))
        values[node] = (rng.random(many)[:, None] > table.cumsum(axis=1)).sum(axis=1).clip(0, table.shape[1] - 1)
    found = {}
    for node in facts["topological_order"]:
        above = facts["parents"][node]
        counts = np.zeros([len(facts["states"][parent]) for parent in above])
        np.add.at(counts, tuple(values[parent] for parent in above), 1) if above else None
        found[node] = counts / many if above else np.array(1.0)
    return found


def divergence(facts: dict, weights: Tables, tables: Tables) -> float:
    """Of the estimated joint distribution from the true one: sum over families, in nats."""
    total = 0.0
    for node in facts["topological_order"]:
        truth = np.array(facts["cpt"][node])
        own = np.maximum(tables[node].reshape(truth.shape), 1e-300)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(truth > 0, truth * (np.log(truth) - np.log(own)), 0.0).sum(axis=-1)
        total += float((weights[node] * each).sum())
    return total


# ---------- votes and census
def votes(folder: Path) -> pd.DataFrame:
    raw = pd.read_csv(folder / "voting_1984" / "house_votes_84.csv")
    codes = {"n": 0, "?": 1, "y": 2, "democrat": 0, "republican": 1}
    return raw.apply(lambda column: column.str.strip().map(codes)).astype(np.int64)


def census(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The class first. The closed lists of values are taken for public: the census bureau's own."""
    train, test = (pd.read_parquet(folder / "adult_uci" / f"adult_{part}.parquet") for part in ("train", "test"))
    names = ["income", "workclass", "education", "marital_status", "occupation", "relationship", "race", "sex"]
    train, test = (
        part[names].apply(lambda column: column.astype(str).str.strip().str.rstrip(".")).reset_index(drop=True) for part in (train, test)
    )
    lists = {name: sorted(set(train[name]) | set(test[name])) for name in names}
    first, second = (part.apply(lambda column: column.map(lists[column.name].index)).astype(np.int64) for part in (train, test))
    return first, second


def accuracy(tables: Tables, label: str, values: pd.DataFrame) -> float:
    logs = np.log(np.maximum(tables[label].ravel(), 1e-300))[None] + np.zeros((len(values), 1))
    for name in values.columns.drop(label):
        logs = logs + np.log(np.maximum(tables[name].reshape(logs.shape[1], -1), 1e-300))[:, values[name]].T
    return float((logs.argmax(axis=1) == values[label]).mean())


def classified(folder: Path, name: str, repeats: int) -> Iterator[tuple[int, pd.DataFrame, pd.DataFrame]]:
    if name == "census":
        train, test = census(folder)
        yield from ((repeat, train, test) for repeat in range(repeats))
    else:
        whole = votes(folder)
        for repeat in range(repeats):
            order = np.random.default_rng(repeat).permutation(len(whole))
            yield repeat, whole.iloc[order[87:]].reset_index(drop=True), whole.iloc[order[:87]].reset_index(drop=True)


# ---------- runs
def timed(mechanism: Callable[[pm.Model, float], Tables], model: pm.Model, epsilon: float) -> tuple[Tables, float]:
    start = time.perf_counter()
    return mechanism(model, epsilon), time.perf_counter() - start


def rows(
    folder: Path, repeats: int, mechanisms: dict[str, Callable], epsilons: tuple[float, ...], data: tuple[str, ...]
) -> Iterator[tuple]:
    for name in data:
        if name in PUBLISHED:
            model, facts = published(folder, name)
            weights = weights_of(facts)
            values = pd.read_parquet(folder / "bn_dev" / f"{name}_sample_20000.parquet").astype(np.int64)
            levels = {node: len(states) for node, states in facts["states"].items()}
            alone = divergence(facts, weights, exact({node: facts["parents"][node] for node in facts["topological_order"]}, levels, values))
            yield name, 20_000, "not private", "", 0, "divergence", alone, 0.0
            for mechanism, run in mechanisms.items():
                for epsilon in epsilons:
                    for repeat in range(min(repeats, WIDE.get(name, repeats))):
                        tables, seconds = timed(run, model, epsilon)
                        yield name, 20_000, mechanism, epsilon, repeat, "divergence", divergence(facts, weights, tables), seconds
            continue
        for repeat, train, test in classified(folder, name, repeats):
            label = train.columns[0]
            levels = {column: int(max(train[column].max(), test[column].max())) + 1 for column in train.columns}
            parents = {column: [] if column == label else [label] for column in train.columns}
            model = network_model(parents, levels, train)
            alone = accuracy(exact(parents, levels, train), label, test)
            yield name, len(train), "not private", "", repeat, "accuracy", alone, 0.0
            for mechanism, run in mechanisms.items():
                for epsilon in epsilons:
                    tables, seconds = timed(run, model, epsilon)
                    yield name, len(train), mechanism, epsilon, repeat, "accuracy", accuracy(tables, label, test), seconds


def written(found: Iterator[tuple], kept: Callable[[dict], bool]) -> None:
    """The rows found, and those of earlier runs that are kept."""
    old = list(csv.DictReader(RESULTS.open())) if RESULTS.exists() else []
    with RESULTS.with_suffix(".new").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([row[column] for column in COLUMNS] for row in old if kept(row))
        last = None
        for row in found:
            writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in row])
            if row[:3] != last:
                last = row[:3]
                print(*last, flush=True)
    RESULTS.with_suffix(".new").replace(RESULTS)


def memory(folder: Path) -> Iterator[tuple]:
    """Peak memory of a fresh process that builds alarm and runs one mechanism, in MB; and of one that builds it only."""
    for mechanism in ("model alone", *MECHANISMS):
        command = [sys.executable, __file__, "one", "--data", str(folder), "--mechanism", mechanism]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        yield "alarm", 20_000, mechanism, 1.0, 0, "megabytes", float(done.stdout.split()[-1]), 0.0


def gains(folder: Path) -> Iterator[tuple]:
    """How much of the noise's variance least squares leave, on average over counts: known without looking at a record."""
    for name in PUBLISHED:
        released = pmdp.release(published(folder, name)[0], epsilon=1.0)
        fitted = pmdp.consistent(released)
        before = [np.full(one.noisy.size, one.noise.standard_deviation**2) for one in released.statistics]
        after = [np.full(one.noisy.size, one.noise.standard_deviation**2) for one in fitted.statistics]
        yield name, 20_000, "Laplace, least squares", 1.0, 0, "variance left", float(sum(map(sum, after)) / sum(map(sum, before))), 0.0


def one(folder: Path, mechanism: str) -> None:
    model, _ = published(folder, "alarm")
    if mechanism in MECHANISMS:
        MECHANISMS[mechanism](model, 1.0)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def summary() -> None:
    whole = pd.read_csv(RESULTS)
    frame = whole[~whole.measure.isin(APART)]
    lines = [
        "# Bayesian networks",
        "",
        "Written by `python benchmarks/networks.py summary` from `benchmarks/results/networks.csv`. Every cost is for a whole"
        " record that is replaced by another. Numbers are medians over repetitions.",
        "",
        "![Divergence and accuracy against epsilon](networks.png)",
    ]
    for name in dict.fromkeys(frame.data):
        part = frame[frame.data == name]
        measure, records = part.measure.iloc[0], int(part.records.iloc[0])
        told = "divergence from the true joint distribution, nats" if measure == "divergence" else "accuracy on held-out records"
        alone = part[part.mechanism == "not private"].value.median()
        lines += ["", f"## {name}: {told}", "", f"{records:,} records. Without privacy: {alone:.4g}.", ""]
        table = part[part.mechanism != "not private"].pivot_table("value", "mechanism", "epsilon", "median", sort=False)
        table = table[sorted(table.columns)]
        lines.append("| mechanism | " + " | ".join(f"{epsilon:g}" for epsilon in table.columns) + " |")
        lines.append("|---|" + "---|" * len(table.columns))
        for mechanism, values in table.iterrows():
            lines.append(f"| {mechanism} | " + " | ".join("" if np.isnan(v) else f"{v:.3g}" for v in values) + " |")
    left = whole[whole.measure == "variance left"].set_index("data").value
    if len(left):
        told = ", ".join(f"{name} {value:.2f}" for name, value in left.items())
        lines += ["", "## What least squares gain", "", f"The share of the noise's variance that is left, on average over counts: {told}."]
    alarm = frame[(frame.data == "alarm") & (frame.mechanism != "not private")]
    if len(alarm):
        seconds = alarm.groupby("mechanism", sort=False).seconds.median()
        megabytes = whole[whole.measure == "megabytes"].set_index("mechanism").value
        lines += ["", "## Time and memory: alarm, 37 variables, 20,000 records", ""]
        lines += ["Times are from model to tables, on one of two shared x86_64 cores. Memory is the peak of a fresh process, which is"]
        lines += [f"{megabytes.get('model alone', np.nan):.0f} MB with PyMC and the model alone.", ""]
        lines += ["| mechanism | seconds | MB |", "|---|---|---|"]
        lines += [f"| {name} | {value:.2g} | {megabytes.get(name, np.nan):.0f} |" for name, value in seconds.items()]
    PAGE.write_text("\n".join(lines) + "\n")
    picture(frame)


def picture(frame: pd.DataFrame) -> None:
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(frame.data))
    figure, axes = plt.subplots(2, (len(names) + 1) // 2, figsize=(13, 7.5), layout="constrained")
    colours = plt.get_cmap("tab10")
    mechanisms = [one for one in dict.fromkeys(frame.mechanism) if one != "not private"]
    for axis, name in zip(axes.flat, names):
        part = frame[frame.data == name]
        for k, mechanism in enumerate(mechanisms):
            own = part[part.mechanism == mechanism].groupby("epsilon").value.median()
            if len(own):
                style = "--" if mechanism.startswith("noise-aware") else "-"
                axis.plot(own.index, own.to_numpy(), style, color=colours(k % 10), marker="o", markersize=3, label=mechanism)
        axis.axhline(part[part.mechanism == "not private"].value.median(), color="black", linewidth=1, label="not private")
        axis.set(xscale="log", title=f"{name} ({int(part.records.iloc[0]):,} records)", xlabel="epsilon")
        divergent = part.measure.iloc[0] == "divergence"
        axis.set_ylabel("divergence, nats" if divergent else "accuracy")
        if divergent:
            axis.set_yscale("log")
    handles = {label: handle for axis in axes.flat for handle, label in zip(*axis.get_legend_handles_labels())}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["run", "aware", "memory", "one", "summary"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--mechanism")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.what == "one":
        return one(given.data, given.mechanism)
    if given.what == "memory":
        written(chain(memory(given.data), gains(given.data)), lambda row: row["measure"] not in APART)
    if given.what == "run":
        wanted = MECHANISMS if given.mechanism is None else {given.mechanism: MECHANISMS[given.mechanism]}
        found = rows(given.data, given.repeats, wanted, EPSILONS, (*PUBLISHED, "votes", "census"))
        if given.mechanism is not None:
            found = (row for row in found if row[2] in wanted)
        written(
            found, lambda row: row["mechanism"] in AWARE or row["measure"] in APART or (given.mechanism and row["mechanism"] not in wanted)
        )
    if given.what == "aware":
        few = (0.1, 1.0)
        found = (row for row in rows(given.data, 1, AWARE, few, ("asia", "cancer", "survey")) if row[2] != "not private")
        written(found, lambda row: row["mechanism"] not in AWARE)
    return summary()


if __name__ == "__main__":
    main()
