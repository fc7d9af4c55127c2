"""What would be released of one observed variable: its statistics, the cells they are summed in, and how far one record moves them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from pymc_dp.families.by_column import with_columns
from pymc_dp.families.family import Domain, Family, Sensitivity
from pymc_dp.families.scores import Scores
from pymc_dp.families.second_moments import Regression
from pymc_dp.models.spec import Likelihood
from pymc_dp.plans.bin_nodes import Within
from pymc_dp.plans.bounds import Bounded

MOST_PROJECTED = 100
"""The most sums that are weighted by public features."""


@dataclass(frozen=True)
class Grid:
    """The private cells: all combinations of the levels of a likelihood's private inputs.

    Attributes
    ----------
    inputs : tuple of int
        Which of the likelihood's inputs they are.
    levels : tuple of tuples of tuples of float
        For every entry of each, its levels in increasing order.
    edges : tuple of tuples of float
        For each, the edges of the bins that its levels stand for; empty where its levels are its values.
    """

    inputs: tuple[int, ...] = ()
    levels: tuple[tuple[tuple[float, ...], ...], ...] = ()
    edges: tuple[tuple[float, ...], ...] = ()

    @property
    def bins(self) -> tuple[tuple[float, ...], ...]:
        """For each input the edges of its bins, or nothing."""
        return self.edges or ((),) * len(self.inputs)

    @property
    def within(self) -> tuple[Within, ...]:
        """Which axes of the grid are bins, of which entries of which inputs."""
        binned_axes, axis = [], 0
        for place, several, edges in zip(self.inputs, self.levels, self.bins, strict=True):
            binned_axes += [Within(axis + entry, place, entry, edges) for entry in range(len(several)) if edges]
            axis += len(several)
        return tuple(binned_axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many levels every entry has."""
        return tuple(len(entry) for several in self.levels for entry in several)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return prod(len(entry) for several in self.levels for entry in several)

    def values(self) -> list[np.ndarray]:
        """For every input, its entries in every cell: (cells, entries)."""
        flat = [np.array(entry) for several in self.levels for entry in several]
        grid = np.indices([len(entry) for entry in flat]).reshape(len(flat), self.size)
        result, start = [], 0
        for several in self.levels:
            result.append(np.stack([flat[start + e][grid[start + e]] for e in range(len(several))], axis=-1))
            start += len(several)
        return result


@dataclass(frozen=True)
class PlannedStatistic:
    """One observed variable that can be released.

    Attributes
    ----------
    likelihood : Likelihood
    structure : {"shared", "indexed", "table", "linear", "aggregate"}
    domain : Domain
    sizes : {"public", "simplex", "kept", "free"}
        Whether the numbers of records in cells are public, add up to public ones, are at most public ones because some records are
        left out, or are unknown.
    grid : Grid
    regression : Regression or None
        For "linear"; what rests on values of public features is not yet in it.
    bounds : dict of str to Bounded
        Of the private covariates, by name.
    statistics : tuple of str
    of_row : Sensitivity
        How far one record can move the statistics, whatever the neighbours.
    left_out : tuple of str
        A record in which one of these is missing brings nothing.
    fills : dict of str to float
        Which level a missing value of these counts as.
    exchanged : bool
        Whether a record is exchanged for another although the number of records is free: one of a person's, for one of another's.
    at_most : int or None
        So many rows of a person count, and are protected together; None where single rows are.
    """

    likelihood: Likelihood
    structure: str
    domain: Domain
    sizes: str
    grid: Grid
    regression: Regression | None
    bounds: Mapping[str, Bounded]
    statistics: tuple[str, ...]
    of_row: Sensitivity
    left_out: tuple[str, ...] = ()
    fills: Mapping[str, float] = field(default_factory=dict)
    exchanged: bool = False
    at_most: int | None = None

    @property
    def sensitivity(self) -> Sensitivity:
        """The sensitivity of what is protected, one row or one person: noise is calibrated to its ``difference`` and ``square``."""
        return self.of_row.of_rows(self.at_most or 1)

    @property
    def family(self) -> Family | None:
        """The family of the likelihood; None where the statistics are those of a regression."""
        family = None if self.regression is not None else self.likelihood.family
        return None if family is None else with_columns(family, self.domain)

    @property
    def may_move_values(self) -> bool:
        """Whether values may lie beyond bounds that the user gave, to which they are moved, as the law of their sums has it."""
        counted = self.family is None or self.family.FIXED or self.domain.edges or self.structure == "aggregate"
        return not counted and self.domain.clamps and self.likelihood.natural is None

    @property
    def may_project(self) -> bool:
        """Whether everything above the likelihood is public, and made of features: then sums may be weighted by these."""
        return self.sizes == "public" and self.family is not None and self.likelihood.predictor is not None

    @property
    def lattice(self) -> float:
        """Size of one lattice unit, in units of the statistics."""
        if self.regression is not None:
            return self.regression.lattice
        assert self.family is not None
        return self.family.lattice(self.domain)

    def with_regression(self, regression: Regression) -> "PlannedStatistic":
        """This plan with another regression, once the values of public features are known."""
        return replace(self, regression=regression, of_row=sensitivity_of_sums(regression, self.likelihood, self._moves, self.grid))

    @property
    def _moves(self) -> str:
        """How a record moves: as one that may be left out, and another in its place, where it is exchanged and the number is free."""
        return "kept" if self.exchanged else self.sizes

    @property
    def rounds(self) -> tuple[Sensitivity, ...]:
        """How far one record can move what is released in every round: of a regression with a link there are several."""
        if self.regression is None or not self.regression.link:
            return (self.sensitivity,)
        rounds = (sensitivity_of_sums(scores, self.likelihood, self._moves, self.grid) for scores in self.regression.scores.rounds)
        return tuple(sensitivity.of_rows(self.at_most or 1) for sensitivity in rounds)


def sensitivity_of_sums(statistics: Regression | Scores, likelihood: Likelihood, moves: str, grid: Grid) -> Sensitivity:
    """How far one record can move sums of these statistics, in all its columns: in its cell, to another, or as one more or less."""
    sensitivity = statistics.sensitivity(moves=bool(grid.inputs))
    if moves == "free":  # one record comes or goes
        difference, square = statistics.most_added
        sensitivity = replace(sensitivity, difference=difference, square=square)
    return over_columns(sensitivity, likelihood.columns)


def over_columns(sensitivity: Sensitivity, columns: Sequence[int]) -> Sensitivity:
    """The sensitivity of a record with several columns: L1 distances add up, and so do squared L2 distances."""
    many = prod(columns)
    why = sensitivity.why if many == 1 else f"{sensitivity.why}, in each of {many} columns"
    return Sensitivity(sensitivity.difference * many, sensitivity.square * many, sensitivity.largest, why)


def structure_of(likelihood: Likelihood) -> str:
    """How the parameters depend on the record, in one word."""
    if likelihood.aggregate:
        return "aggregate"
    by_record = [placeholder for placeholder in likelihood.inputs if placeholder.axis is not None]
    if not by_record:
        return "shared"
    return "table" if any(placeholder.private and not placeholder.index for placeholder in by_record) else "indexed"
