"""What noise ResidualPlanner would put on the tables of a network, beside what is released now. Prints what docs/networks.md quotes.

    python benchmarks/residual_planner.py --data DIRECTORY

ResidualPlanner (Xiao, He, Zhang, Kifer 2023, arXiv 2305.08175) releases, in place of tables that overlap, what each set of variables adds
to its subsets, with Gaussian noise of variances that are the best there are for the sum of variances over all counts of all families.
Everything here is exact and needs no records: variances of the counts of all families at equal rho, one record being replaced, with a
public number of records. The cost of ResidualPlanner is the largest over which variables differ between two records, found by climbing.
``check`` compares the formulas with least squares on whole tables.
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from itertools import chain, combinations, product
from math import prod, sqrt
from pathlib import Path

import numpy as np

Set = tuple[str, ...]
NETWORKS = ("asia", "cancer", "survey", "alarm")


def subsets(family: Set) -> Iterable[Set]:
    """All subsets, the empty one among them, in alphabetical order of their members."""
    return chain.from_iterable(combinations(sorted(family), size) for size in range(len(family) + 1))


class Variances:
    """Of the counts of all families, given variances of what sets of variables add to their subsets ("residuals")."""

    def __init__(self, parents: Mapping[str, list[str]], levels: Mapping[str, int]) -> None:
        self.levels = levels
        self.families = [tuple(sorted((node, *parents[node]))) for node in levels]
        self.residuals = sorted({part for family in self.families for part in subsets(family)}, key=lambda part: (len(part), part))[1:]

    def cells(self, members: Iterable[str]) -> int:
        """How many combinations of levels."""
        return prod(self.levels[name] for name in members)

    def weight(self, part: Set, family: Set) -> float:
        """What one unit of variance of a residual adds to the sum of variances over a family's counts."""
        return prod(self.levels[name] - 1 for name in part) / self.cells(set(family) - set(part))

    def total(self, residual: Mapping[Set, float]) -> float:
        """The sum of variances over all counts of all families."""
        return sum(residual[part] * self.weight(part, family) for family in self.families for part in subsets(family) if part)

    def raw(self, tables: list[Set], variances: list[float]) -> float:
        """Of all families, each read from its own table."""
        return sum(self.cells(family) * variance for family, variance in zip(tables, variances, strict=True))

    def by_least_squares(self, tables: list[Set], variances: list[float]) -> dict[Set, float]:
        """Of residuals, told by all tables that hold them: a table tells one with the variance of a count times the cells it adds up."""
        return {
            part: 1 / sum(1 / (v * self.cells(set(t) - set(part))) for t, v in zip(tables, variances, strict=True) if set(part) <= set(t))
            for part in self.residuals
        }

    def planned(self) -> dict[Set, float]:
        """Those of ResidualPlanner at the squared L2 sensitivity 1: proportional to sqrt(cost / weight), section 5 of the paper."""
        costs = {part: prod(1 - 1 / self.levels[name] for name in part) for part in self.residuals}
        weights = {part: sum(self.weight(part, family) for family in self.families if set(part) <= set(family)) for part in self.residuals}
        shape = {part: sqrt(costs[part] / weights[part]) for part in self.residuals}
        moved = self.moved(shape)
        return {part: value * moved for part, value in shape.items()}

    def moved(self, variances: Mapping[Set, float], climbs: int = 30) -> float:
        """The largest squared L2 distance, in units of noise, by which one record that is replaced moves all residuals together."""
        rng = np.random.default_rng(0)

        def distance(differs: set[str]) -> float:
            agree = {
                part: prod(-1 / self.levels[name] if name in differs else 1 - 1 / self.levels[name] for name in part)
                for part in self.residuals
            }
            alone = {part: prod(1 - 1 / self.levels[name] for name in part) for part in self.residuals}
            return sum(2 * (alone[part] - agree[part]) / variances[part] for part in self.residuals)

        largest = 0.0
        for climb in range(climbs):
            differs = {name for name in self.levels if climb == 0 or rng.random() < 0.5}
            here, better = distance(differs), True
            while better:
                better = False
                for name in self.levels:
                    there = distance(differs ^ {name})
                    if there > here * (1 + 1e-12):
                        differs, here, better = differs ^ {name}, there, True
            largest = max(largest, here)
        return largest


def compared(parents: Mapping[str, list[str]], levels: Mapping[str, int]) -> dict[str, float]:
    """Sums of variances over all counts of all families, at the squared L2 sensitivity 1, by what is released."""
    of = Variances(parents, levels)
    families = of.families
    # Of a root of two levels one count is released, which one record moves by 1: as two counts of half of that variance, by least squares.
    alone = [2 if len(family) > 1 or levels[family[0]] > 2 else 1 for family in families]
    each = [float(len(families) * moves) for moves in alone]
    largest = [family for family in dict.fromkeys(families) if not any(set(family) < set(other) for other in families)]
    roots = [sqrt(of.cells(family)) for family in largest]
    return {
        "released now": of.raw(families, each),
        "and least squares": of.total(of.by_least_squares(families, [v if moves == 2 else v / 2 for v, moves in zip(each, alone)])),
        "largest tables and least squares": of.total(of.by_least_squares(largest, [2.0 * len(largest)] * len(largest))),
        "and shares by their size": of.total(of.by_least_squares(largest, [2 * sum(roots) / root for root in roots])),
        "ResidualPlanner": of.total(of.planned()),
    }


def check() -> None:
    """Least squares on all cells of a small network, beside the formula; residuals of two levels and three."""
    parents: dict[str, list[str]] = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
    levels = {"a": 3, "b": 2, "c": 2, "d": 3}
    of = Variances(parents, levels)
    cells = list(product(*(range(k) for k in levels.values())))
    names, variances = list(levels), [2.0, 3.0, 5.0, 7.0]

    def summing(table: Set) -> np.ndarray:
        places = [names.index(name) for name in table]
        return np.array(
            [[all(cell[p] == v for p, v in zip(places, at)) for cell in cells] for at in product(*(range(levels[n]) for n in table))], float
        )

    known = np.ones((1, len(cells)))  # the number of records is public
    information = sum(summing(t).T @ summing(t) / v for t, v in zip(of.families, variances)) + 1e9 * known.T @ known
    covariance = np.linalg.pinv(information, rcond=1e-15, hermitian=True)
    exact = sum(np.trace(summing(t) @ covariance @ summing(t).T) for t in of.families)
    np.testing.assert_allclose(of.total(of.by_least_squares(of.families, variances)), exact, rtol=1e-5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data / "bn_dev"
    check()
    for name in NETWORKS:
        facts = json.loads((folder / f"{name}.json").read_text())
        found = compared(facts["parents"], {node: len(states) for node, states in facts["states"].items()})
        if name == NETWORKS[0]:
            print("| network | " + " | ".join(found) + " |\n" + "|---" * (len(found) + 1) + "|")
        first = found["released now"]
        print(f"| {name} | " + " | ".join(f"{sqrt(value / first):.2f}" for value in found.values()) + " |")


if __name__ == "__main__":
    main()
