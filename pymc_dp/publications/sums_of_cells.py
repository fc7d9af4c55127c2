"""Published counts, and sums of a family's statistics, by cell -> noisy statistics, as the plan for the model of a record needs them.

Shapes: G cells, C columns of the observed variable, K numbers, R statistics of a family.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pymc_dp.families.by_column import columns_of
from pymc_dp.models.tabulated import Table
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.privacy.accounting import Cost, Refusal
from pymc_dp.publications.publication import Codebook
from pymc_dp.publications.told import NUMBER, PublishedNumber, check_possible, published_numbers
from pymc_dp.releases.described_cells import inputs_of_table
from pymc_dp.releases.noisy_statistic import NoisyStatistic

FINER = 2**20
"""Into so many parts a count, or the scale of a noise, is divided where published numbers are held as whole ones."""
LARGEST = 2.0**62
"""Whole numbers beyond are not held."""
EXACT = 1e-3
"""The scale of noise that stands for none, in units of half the range of a record's statistic: far less than one record."""
EXACT_COUNT = 0.01
"""The scale of noise that stands for none on a count, which is whole: another count is less probable by exp(-100)."""
COUNTED = ("Bernoulli", "Binomial", "Categorical", "Multinomial")
"""Families whose sums are counts with the probabilities of the model: nothing is clamped, and noise is on whole numbers."""
SAY_NUMBER = (
    "Write n=1000, or n=(1012, pymc_dp.LaplaceNoise(2.0)) where a noisy number was published, with arrays where there are several cells."
)
"""What to write of the number of records."""
MOST_GROUPS = 50
"""So many kinds of noise one observed variable may have: each is a term of its own."""


@dataclass(frozen=True, eq=False)
class PublishedCells:
    """The published cells of one observed variable.

    Attributes
    ----------
    n : (G,) int64 ndarray
        Records in each; 0 where their numbers are unknown.
    inputs : tuple of ndarray
        The public inputs of the likelihood, one row for every cell.
    grid : tuple of int
        How cells are arranged, where they are all combinations of several indices; else empty.
    """

    n: np.ndarray
    inputs: tuple[np.ndarray, ...]
    grid: tuple[int, ...]

    def shapes(self, columns: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The shapes in which published numbers may be given."""
        return [(len(self.n), *columns), *([(*self.grid, *columns)] if self.grid else [])]


def noisy_statistic(planned: PlannedStatistic, inputs: tuple[np.ndarray, ...], **how: Any) -> NoisyStatistic:
    """A noisy statistic of this plan, of which somebody else knows the sensitivity and the cost."""
    known: dict[str, Any] = {
        "distribution": planned.likelihood.distribution, "structure": planned.structure, "tabulated": isinstance(planned.family, Table),
        "sizes": planned.sizes, "inputs": inputs, "domain": planned.domain, "regression": planned.regression,
        "known": np.zeros((0, 0, 0)), "difference": 0, "square": 0, "cost": Cost(Fraction(0)),
        "grid": planned.grid.shape if planned.grid.within else (), "within": planned.grid.within,
        "binned": tuple(sorted(planned.likelihood.in_bins)),
    }  # fmt: skip
    return NoisyStatistic(**known | how)


def of_cells(planned: PlannedStatistic, books: Mapping[str, tuple[object, Codebook]], cells: PublishedCells) -> list[NoisyStatistic]:
    """Sums in cells of which the numbers of records are known: one statistic for all cells whose noise is alike.

    Raises
    ------
    Refusal
        Where the noise on these numbers cannot be expressed.
    """
    name, family = planned.likelihood.name, planned.family
    assert family is not None
    counts, K, free = is_counted(planned), len(planned.statistics), planned.sizes == "free"
    names = list(_own_sums(planned))
    if free:
        _check_number_of_records(planned, books, counts)
        names = list(planned.statistics) if counts else [NUMBER, *names]
    table, scaled = (planned.statistics, ()) if counts and K > 1 else ((), () if counts else planned.statistics)
    numbers = published_numbers(name, books, names, cells.shapes(planned.likelihood.columns), table, scaled)
    if counts and len(numbers) != K:
        raise Refusal(
            f"{name} needs each of {', '.join(planned.statistics)} once. "
            + (
                "Or write n=1000, the exact number of records."
                if free and K == 2
                else "Of levels that were not published leave the cells out, or merge them in the model."
            )
            if K > 1
            else f"{' and '.join(number.name for number in numbers)} of {name} are one number. Write the one with less noise."
        )
    groups: dict[object, list[int]] = {}
    for g in range(len(cells.n)):
        key = _kind_of_counts(name, numbers, g) if counts else _kind_of_sums(name, numbers, g)
        if key is not None:
            groups.setdefault(key, []).append(g)
    if not groups:
        raise Refusal(f"No number of {name} was published: all are NaN. Leave {name} out of the model.")
    if len(groups) > MOST_GROUPS:
        raise Refusal(
            f"{name} has {len(groups):,} kinds of noise, more than {MOST_GROUPS}. Round the scales of the noise so that cells share them."
        )
    make = _counts if counts else _sums
    result = []
    for k, places in enumerate(groups.values(), 1):
        variable = name if len(groups) == 1 else f"{name}_{k}"
        result.append(make(planned, variable, numbers, cells, np.array(places)))
    return result


def _check_number_of_records(planned: PlannedStatistic, books: Mapping[str, tuple[object, Codebook]], counts: bool) -> None:
    """Refuse sums of which nobody says of how many records; counts of all levels say it themselves."""
    name = planned.likelihood.name
    if counts and NUMBER in books:
        raise Refusal(
            f"Counts of all levels of {name} say how many records there are. Leave n out, and write {', '.join(planned.statistics)}. Or"
            f" {totals_in_words(planned)}"
        )
    if not counts and NUMBER not in books:
        raise Refusal(f"How many records {name} was summed over is not said. {SAY_NUMBER}")
    if planned.likelihood.columns and not counts:
        raise Refusal(f"{name} has several columns, whose number of records must be known. Write n=1000, or a variable for each column.")


def totals_in_words(planned: PlannedStatistic) -> str:
    """What to write where some levels were counted, with noise, among noisy numbers of records."""
    name = planned.likelihood.name
    more = (
        f", and pm.Binomial('{name}_2', people - {name}_1, p_2 / (1 - p_1), observed=[...]) for a second level"
        if len(planned.statistics) > 2
        else ""
    )
    first = f"{name}_1" if more else name
    return (
        f"write a model of the totals, people = pm.DiscreteUniform('people', 0, 5000, observed=[1012]) and {first} = pm.Binomial({first!r},"
        f" people, {'p_1' if more else 'p'}, observed=[...]){more}, with published(model, {{'people': law, {first!r}: law}})."
    )


def is_counted(planned: PlannedStatistic) -> bool:
    """Whether its sums are counts with the probabilities of the model."""
    return planned.likelihood.distribution in COUNTED or planned.likelihood.make is not None


def _kind_of_counts(name: str, numbers: list[PublishedNumber], g: int) -> tuple | None:
    """The noise on all counts of a cell, which must be one; None where nothing was published."""
    values = np.stack([number.values[g] for number in numbers])
    missing = np.isnan(values)
    if missing.all():
        return None
    kinds = {(number.kind, number.whole, scale) for number in numbers for scale in np.unique(_scale_of_counts(number)[g]).tolist()}
    if missing.any() or len(kinds) > 1:
        raise Refusal(
            f"Counts of one cell of {name} have different noise, or some were not published. Write one noise for all counts of a cell, and"
            " NaN for all of a cell or for none. Where noises differ a little, write the largest: intervals are then somewhat too wide."
        )
    return kinds.pop()


def _scale_of_counts(number: PublishedNumber) -> np.ndarray:
    return np.full(number.values.shape, EXACT_COUNT) if number.kind == "exact" else number.scale


def _kind_of_sums(name: str, numbers: list[PublishedNumber], g: int) -> tuple | None:
    """Which sums of a cell were published, and their kind of noise; None where none was."""
    there = [~np.isnan(number.values[g]) for number in numbers]
    if any(mask.any() != mask.all() for mask in there):
        raise Refusal(f"Sums of {name} were published for some columns of a cell and not for others. Write two observed variables.")
    present = tuple(bool(mask.all()) for mask in there)
    if not any(present):
        return None
    if numbers[0].name == NUMBER and not (present[0] and any(present[1:])):
        raise Refusal(f"A cell of {name} has sums and no number of records, or a number and no sums. Write NaN for all of a cell, or none.")
    kinds = {number.kind for number, is_there in zip(numbers, present, strict=True) if is_there} - {"exact"}
    if len(kinds) > 1:
        raise Refusal(
            f"Sums of {name} in one cell have Laplace and Gaussian noise, which is not understood together. Write one kind for both: for"
            " Laplace noise that is small beside the other, GaussianNoise.from_variance(2 * scale**2)."
        )
    return (*present, kinds.pop() if kinds else "gaussian")


def _counts(
    planned: PlannedStatistic, variable: str, numbers: list[PublishedNumber], cells: PublishedCells, places: np.ndarray
) -> NoisyStatistic:
    """Counts with one noise."""
    values = np.stack([number.values[places] for number in numbers], axis=-1)
    first = numbers[0]
    scale = float(_scale_of_counts(first)[places].ravel()[0])
    return noisy_statistic(
        planned, inputs_in(planned, cells.inputs, places), variable=variable, statistics=planned.statistics,
        n=records(planned, cells, places),
        **_as_counts(variable, values, first, scale),
    )  # fmt: skip


def _as_counts(variable: str, values: np.ndarray, like: PublishedNumber, scale: float) -> dict[str, Any]:
    """Counts as whole numbers, and the noise on them. Real noise is on a finer lattice, where its log-density is what it is on the line."""
    if like.kind == "exact" and ((values % 1 != 0).any() or (values < 0).any()):
        raise Refusal(f"{variable} holds an exact count that is no whole number from 0 on. Look at it, or write the noise that is on it.")
    whole = like.whole or like.kind == "exact"
    finer = 1 if whole else FINER
    mechanism = "gaussian" if like.kind == "gaussian" else "laplace"
    deviation = scale if mechanism == "gaussian" and not whole else 0.0
    noisy = _held(variable, values * finer)
    return {"noisy": noisy, "scale": scale * finer, "mechanism": mechanism, "divisor": finer, "deviation": deviation}


def _sums(
    planned: PlannedStatistic, variable: str, numbers: list[PublishedNumber], cells: PublishedCells, places: np.ndarray
) -> NoisyStatistic:
    """Sums with noise of one kind, each in units of its noise."""
    rows_by_name = _own_sums(planned)
    if planned.sizes == "free":
        rows_by_name[NUMBER] = np.eye(next(iter(rows_by_name.values())).shape[-1])[0]
    present = [number for number in numbers if not np.isnan(number.values[places[0]]).any()]
    rows = np.stack([rows_by_name[number.name] for number in present], axis=-2)  # of every column, where they have bounds of their own
    sums = rows[..., [number.name != NUMBER for number in present], 1:]
    if sums.shape[-2] > sums.shape[-1] or (np.linalg.matrix_rank(sums) < sums.shape[-2]).any():
        raise Refusal(
            f"The sums {', '.join(number.name for number in present)} of {variable} follow from each other, so that one of them was"
            " published twice. Leave the one with more noise out."
        )
    for number in present:
        if number.name == "sum y" and planned.sizes == "public" and planned.domain.clamps:
            at = replace(number, values=number.values[places], scale=number.scale[places])
            check_possible(variable, at, cells.n[places], *_ends(planned))
    none = EXACT * np.where(rows[..., 1:].any(axis=-1), np.abs(rows[..., 1:]).sum(axis=-1), 1.0)
    spread = np.stack(
        [
            np.broadcast_to(none[..., k], number.values[places].shape) if number.kind == "exact" else number.spread[places]
            for k, number in enumerate(present)
        ],
        axis=-1,
    )
    values = np.stack([number.values[places] for number in present], axis=-1)
    kinds = {number.kind for number in present} - {"exact"}
    return noisy_statistic(
        planned, inputs_in(planned, cells.inputs, places), variable=variable, statistics=tuple(number.name for number in present),
        n=records(planned, cells, places),
        noisy=_held(variable, values / spread * FINER), scale=float(FINER), divisor=FINER, mechanism=kinds.pop() if kinds else "gaussian",
        combination=rows / spread[..., None],
    )  # fmt: skip


def _own_sums(planned: PlannedStatistic) -> dict[str, np.ndarray]:
    """By the names of sums that may have been published, how each is made of the number of records and the family's R sums: (*C, 1 + R).

    One row (1 + R,) where all columns have the same bounds.
    """
    family, domain = planned.likelihood.family, planned.domain
    assert family is not None
    parts = columns_of(domain) if domain.columns else [domain]
    each = [dict(reversed(family.own_sums(part))) for part in parts]  # of two rows of one name the first
    names = [name for name, _ in family.own_sums(parts[0]) if all(name in rows for rows in each)]
    shape = (*planned.likelihood.columns, -1) if domain.columns else -1
    return {name: np.array([rows[name] for rows in each]).reshape(shape) for name in names}


def _ends(planned: PlannedStatistic) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of every column (*C,), or of all."""
    domain = planned.domain
    if not domain.columns:
        return np.array(domain.lower), np.array(domain.upper)
    lower, upper = zip(*domain.columns, strict=True)
    return np.reshape(lower, planned.likelihood.columns), np.reshape(upper, planned.likelihood.columns)


def records(planned: PlannedStatistic, cells: PublishedCells, places: np.ndarray) -> np.ndarray:
    """Known numbers of records of some cells."""
    return cells.n[places] if planned.sizes == "public" else np.zeros(0, np.int64)


def _held(variable: str, values: np.ndarray) -> np.ndarray:
    """Numbers rounded to whole ones, as int64."""
    if (np.abs(values) >= LARGEST).any():
        raise Refusal(f"A published number of {variable} is too large beside its noise. Look at the number, the noise and the bounds.")
    return np.rint(values).astype(np.int64)


def inputs_in(planned: PlannedStatistic, inputs: tuple[np.ndarray, ...], places: np.ndarray) -> tuple[np.ndarray, ...]:
    """The likelihood's inputs in some of the cells. Of a covariate that is summed there is one row, which is not read."""
    summed = {k for k, placeholder in enumerate(planned.likelihood.inputs) if placeholder.private}.difference(planned.grid.inputs)
    pairs = zip(planned.likelihood.inputs, inputs, strict=True)
    return tuple(
        array if placeholder.axis is None or k in summed else np.take(array, places, axis=placeholder.axis)
        for k, (placeholder, array) in enumerate(pairs)
    )


def cells_of_unknown_size(planned: PlannedStatistic, inputs: tuple[np.ndarray, ...]) -> PublishedCells:
    """Cells for all levels of the covariates, with numbers of records that are unknown; ``inputs`` have no axis of records."""
    shape = planned.grid.shape
    return PublishedCells(np.zeros(planned.grid.size, np.int64), inputs_of_table(planned, inputs), shape if len(shape) > 1 else ())


def of_table(planned: PlannedStatistic, books: Mapping[str, tuple[object, Codebook]], cells: PublishedCells) -> list[NoisyStatistic]:
    """Counts of all combinations of covariates and outcomes, of which only the number of all records is known.

    Raises
    ------
    Refusal
        Where the sums are no counts, or their noise is not one.
    """
    likelihood, family = planned.likelihood, planned.family
    assert family is not None
    name, columns, V = likelihood.name, likelihood.columns, planned.grid.size
    indices = ", ".join(placeholder.name for placeholder in likelihood.inputs if placeholder.private)
    only_total_known = len(cells.n) == 1 and planned.sizes == "simplex"
    if not only_total_known or not is_counted(planned) or family.cell_sensitivity(planned.domain).total != 1:
        raise Refusal(
            f"Sums of {name} by cells of {indices} are understood where the number of records in each cell is known. Write n= with one for"
            " every cell."
        )
    shapes = [(V, *columns), *([(*planned.grid.shape, *columns)] if len(planned.grid.shape) > 1 else [])]
    numbers = published_numbers(name, books, planned.statistics, shapes, planned.statistics)
    if len(numbers) < len(planned.statistics):
        raise Refusal(
            f"The table of {name} needs {', '.join(planned.statistics)} in every cell of {indices}. Write those that are missing."
        )
    kinds = {_kind_of_counts(name, numbers, v) for v in range(V)}
    if len(kinds) > 1 or None in kinds:
        raise Refusal(
            f"Counts of the table of {name} need one noise, and none may be missing. Write the noise of the largest scale for all:"
            " intervals are then somewhat too wide."
        )
    values, scale = np.stack([number.values for number in numbers], axis=-1), float(_scale_of_counts(numbers[0]).ravel()[0])
    inputs = inputs_of_table(planned, cells.inputs)
    return [
        noisy_statistic(
            planned, inputs, variable=name, statistics=planned.statistics, n=cells.n, **_as_counts(name, values, numbers[0], scale)
        )
    ]
