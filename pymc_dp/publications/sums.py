"""Published sums, with a publisher's noise, in place of the records of a model, which nobody here has.

What is planned for the model of a record says which sums its likelihood rests on. Published ones become ``NoisyStatistic`` values of that
plan, from which ``rewrite`` makes the private model as it does from a release. Nothing is read but shapes, and nothing is charged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_dp.models.level_labels import dim_of_levels
from pymc_dp.models.reader import read_spec
from pymc_dp.models.spec import Likelihood, ModelSpec
from pymc_dp.plans.bins import binned_in
from pymc_dp.plans.bounds import APART
from pymc_dp.plans.plan import planned_release, refuse_problems
from pymc_dp.plans.protection import protection_of
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.calls import meant_by
from pymc_dp.private_models.as_made import AsMade, as_made
from pymc_dp.private_models.rewrite import assembled
from pymc_dp.publications.labelled import Coords, Dims, check_labels, labels_in
from pymc_dp.publications.noises import doubles
from pymc_dp.publications.publication import Codebook, Noted, steps_of
from pymc_dp.publications.sums_of_cells import PublishedCells, cells_of_unknown_size, is_counted, of_cells, of_table, totals_in_words
from pymc_dp.publications.sums_of_products import of_products
from pymc_dp.publications.table_steps import is_table
from pymc_dp.publications.told import EXAMPLE, NUMBER, TABLE, books_of
from pymc_dp.releases.described_cells import inputs_of_table, read_described, value_in_cells
from pymc_dp.releases.noisy_statistic import NoisyStatistic

if TYPE_CHECKING:
    import xarray as xr

OTHERWISE = " Here, in place of public=, write n= with a number of records for every cell, and cells=."
"""What to write where a release would have public arrays."""

CLAMPED = " Here bounds are those to which the publisher clamped each record; write pymc_dp.Natural(lower, upper) if it clamped none."
"""What bounds are, where they are missing."""

CELLS_NEED_SIZES = (
    "cells= needs a number of records for every cell. Write n= with exact ones, or a pair of noisy ones and their law,"
    " n=([1012, 388], pymc_dp.LaplaceNoise(2.0)). Or leave cells out, and list the levels of its arrays in bounds, such as"
    ' bounds={"dose": {0, 1, 2}}.'
)
"""Where cells are described, and their numbers of records are not."""

ROWS = "rows"
"""What is said to be published of a variable of which each row was."""

type Books = dict[str, dict[str, tuple[object, Codebook]]]
"""By observed variable and by name: published numbers, and what was done to them."""


@dataclass(frozen=True, eq=False, repr=False)
class PublishedSums(Noted):
    """What was done to published sums of records, by observed variable and name.

    Attributes
    ----------
    laws : mapping of str to mapping of str to Codebook
    statistics : tuple of NoisyStatistic
        What the model observes, under its names.
    terms : AsMade
        See ``Noted``.
    beside : mapping of str to Codebook
        Of other observed variables, of which rows were published, or sums over a table of counts, what was done to these.
    """

    laws: Mapping[str, Mapping[str, Codebook]]
    statistics: tuple[NoisyStatistic, ...]
    terms: AsMade
    beside: Mapping[str, Codebook] = field(default_factory=dict)

    @property
    def _entries(self) -> list[tuple[str, str, Codebook]]:
        sums = [(variable, name, law) for variable, of in self.laws.items() for name, law in of.items()]
        return [*sums, *((variable, TABLE if is_table(law) else ROWS, law) for variable, law in self.beside.items())]

    @property
    def rows(self) -> Mapping[str, Codebook]:
        """What was done to other observed variables."""
        return self.beside

    def __str__(self) -> str:
        """A line for every published sum, and for every variable of which rows were published."""
        return "\n".join(f"{variable}, {name}: {law}" for variable, name, law in self._entries)

    def group(self) -> "xr.DataTree":
        """The group ``privacy`` of a tree: what was declared of every sum."""
        import xarray as xr

        entries = self._entries
        columns = {
            "variable": [variable for variable, _, _ in entries],
            "statistic": [name for _, name, _ in entries],
            "law": [law.words for _, _, law in entries],
            "source": [law.source for _, _, law in entries],
            "declared": [law.promise for _, _, law in entries],
        }
        return xr.DataTree(xr.Dataset({name: (("sum",), np.asarray(values, dtype=str)) for name, values in columns.items()}))

    def remedy(self, added: str) -> str:
        """What to write where something was added to the model."""
        return f"Add it to the model of a record, and write which of its sums were published: statistics={{..., {added!r}: ...}}."


def of_sums(model: pm.Model, statistics: object, bounds: Mapping[str, object] | None, n: object, cells: object) -> pm.Model:
    """The model of a record with published sums in place of its records; see ``published``."""
    private_spec = read_spec(model, binned=binned_in(bounds))
    refuse_problems(private_spec)
    books = _books(private_spec, statistics)
    unknown = _with_unknown_numbers(books, n)
    _check_labels(model.coords, private_spec, books, n, cells)
    cell_values = _given_cells(model, cells)
    sizes = {name: _sizes(name, n) if not unknown else np.ones(_published_sizes(books[name], cell_values), np.int64) for name in books}
    if unknown and cell_values and not any(several.ndim for several in sizes.values()):
        raise Refusal(CELLS_NEED_SIZES)
    summed = set(bounds or {})  # covariates with bounds are summed, others are what cells are made of
    public = [
        placeholder.name
        for likelihood in private_spec.likelihoods
        if sizes[likelihood.name].ndim
        for placeholder in likelihood.inputs
        if placeholder.name not in summed
    ]
    protection = protection_of(
        bounds=bounds, public=list(dict.fromkeys(public)), neighbours="add_remove" if unknown and not cell_values else "replace"
    )
    totals = {int(counts.sum()) for counts in sizes.values() if not unknown}
    spec, expressions = read_described(model, list(dict.fromkeys(public)), totals, protection.binned)
    try:
        whole = planned_release(spec, protection)
    except Refusal as reason:
        more = OTHERWISE if "public=" in str(reason) else CLAMPED if "bounds=" in str(reason) else ""
        raise Refusal(f"{reason}{more}") from None
    if apart := [planned.likelihood.name for planned in whole.statistics if planned.domain.columns and planned.regression is not None]:
        raise Refusal(
            f"Published sums of the regression of {apart[0]} take one pair of bounds for all its columns. {APART.format(apart[0])}."
        )
    by_name = {likelihood.name: likelihood for likelihood in private_spec.likelihoods}
    pairs: list[tuple[Likelihood, NoisyStatistic]] = []
    for planned in whole.statistics:
        name = planned.likelihood.name
        published_cells = _cells(planned, by_name[name], expressions[name], sizes[name], cell_values)
        if unknown and cell_values:
            planned, published_cells = _of_unknown_size(planned, published_cells)
        of = of_products if planned.regression is not None else of_table if planned.sizes == "simplex" else of_cells
        several = of(planned, books[name], published_cells)
        _check_names(name, several, spec)
        pairs += [(planned.likelihood, statistic) for statistic in several]
    private = assembled(spec, pairs)
    laws = {variable: {name: book for name, (_, book) in of_variable.items()} for variable, of_variable in books.items()}
    private.publication = PublishedSums(laws, private.released, as_made(private))
    return private


def _check_labels(coords: Coords, spec: ModelSpec, books: Books, n: object, cells: object) -> None:
    """Refuse numbers with labels in another order than the model's, or than those of others beside them: they are of the same cells.

    Without described cells there is an axis for every index, in the order in which the model has them.
    """
    dims: dict[str, Dims] = dict.fromkeys((likelihood.name for likelihood in spec.likelihoods), None)
    for likelihood in spec.likelihoods if cells is None else ():
        dims[likelihood.name] = tuple(dim_of_levels(spec, index.name) for index in likelihood.inputs if index.index)
    alike = next(iter(dims.values())) if len(set(dims.values())) == 1 else None
    given = [
        (f"{name} of {of}", part, dims[of])
        for of, sums in books.items() for name, (numbers, book) in sums.items() for part in (numbers, *steps_of(book))
    ]  # fmt: skip
    given += [(f"n of {name}", part, dims.get(name)) for name, part in n.items()] if isinstance(n, Mapping) else [("n", n, alike)]
    given += [(f"cells of {name}", part, None) for name, part in cells.items()] if isinstance(cells, Mapping) else []
    known = dict(coords)
    for what, numbers, by in given:
        check_labels(what, numbers, known, by)
        known |= labels_in(what, numbers)


def _books(spec: ModelSpec, statistics: object) -> Books:
    """What is said of every observed variable, in the model's order."""
    names = [likelihood.name for likelihood in spec.likelihoods]
    if not names:
        raise Refusal("This model observes nothing. Write a likelihood of one record, with any numbers as observed=.")
    if not isinstance(statistics, Mapping):
        raise Refusal(f"statistics must say by observed variable which sums were published. Write statistics={EXAMPLE}.")
    if unknown := [name for name in statistics if name not in names]:
        meant = meant_by(str(unknown[0]), names) or (
            f"The names of sums are within: statistics={{{names[0]!r}: {{'sum {names[0]}': (412.0, law)}}}}."
        )
        raise Refusal(f"{unknown[0]!r} is no observed variable of this model. Write {', '.join(names)}. {meant}")
    if missing := [name for name in names if name not in statistics]:
        raise Refusal(f"Nothing is said of {missing[0]}. Write which of its sums were published, or leave it out of the model.")
    return {name: books_of(name, statistics[name]) for name in names}


def _with_unknown_numbers(books: Books, n: object) -> bool:
    """Whether numbers of records are not known; noisy ones become one more of the published numbers of each observed variable.

    A noisy number is a pair of it and of the law of its noise. Counts of all levels need none.
    """
    numbers = {name: n.get(name) if isinstance(n, Mapping) else n for name in books}
    noisy = {name: pair for name, pair in numbers.items() if isinstance(pair, tuple) and len(pair) == 2 and not _is_number(pair[1])}
    known = [name for name, number in numbers.items() if number is not None and name not in noisy]
    if known and len(known) < len(numbers):
        [other, *_] = [name for name in numbers if name not in known]
        raise Refusal(
            f"The number of records of {known[0]} is known and that of {other} is not, which is not understood together. Write models of"
            " their own, or n= that is noisy for both."
        )
    for name, pair in noisy.items():
        if NUMBER in books[name]:
            raise Refusal(
                f"The number of records of {name} is there twice. Write it as n= or among its statistics, the one with less noise."
            )
        books[name] |= books_of(name, {NUMBER: pair})
    return not known


def _published_sizes(books: Mapping[str, tuple[object, Codebook]], cell_values: Mapping[str, np.ndarray]) -> tuple[int, ...]:
    """The shape of the numbers of records in described cells, where they were published with noise."""
    return np.asarray(books[NUMBER][0]).shape if cell_values and NUMBER in books else ()


def _of_unknown_size(planned: PlannedStatistic, cells: PublishedCells) -> tuple[PlannedStatistic, PublishedCells]:
    """Sums in described cells, planned as of known numbers of records, with these as unknowns.

    The number in each cell has a flat prior and is one more sum, as where one record may come or go. Sums that are published already need
    no sensitivity, and their law given the numbers is the same.
    """
    if planned.sizes != "public":
        raise Refusal(CELLS_NEED_SIZES)
    if is_counted(planned):
        raise Refusal(f"Counts of {planned.likelihood.name} in cells= need exact numbers of records. Or {totals_in_words(planned)}")
    if planned.regression is None:
        return replace(planned, sizes="free"), PublishedCells(np.zeros_like(cells.n), cells.inputs, cells.grid)
    regression = replace(planned.regression, counted=True)
    free = replace(planned, sizes="free", regression=regression, statistics=regression.statistics())
    return free, PublishedCells(np.zeros_like(cells.n), inputs_of_table(planned, cells.inputs), cells.grid)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number)


def _sizes(name: str, n: object) -> np.ndarray:
    """Numbers of records: () of all, or one for every cell, in any shape."""
    numbers = n.get(name) if isinstance(n, Mapping) else n
    remedy = "Write n=1000, or n=[400, 600] where there is one for every cell, or both by name of the observed variable."
    array = doubles(numbers)
    if not array.size or not (np.isfinite(array) & (array >= 1) & (array % 1 == 0)).all():
        raise Refusal(f"The number of records of {name} must be a whole number from 1 on. {remedy}")
    return array.astype(np.int64)


def _given_cells(model: pm.Model, cells: object) -> dict[str, np.ndarray]:
    """Values of public arrays in the published cells."""
    if cells is None:
        return {}
    if not isinstance(cells, Mapping):
        raise Refusal('cells holds, by name, what arrays are in the published cells. Write cells={"age": [20, 40, 60]}.')
    data = {str(variable.name) for variable in model.data_vars}
    if unknown := [name for name in cells if name not in data]:
        raise Refusal(f"{unknown[0]!r} is no pm.Data of this model. Write cells= with names of {', '.join(sorted(data)) or 'none'}.")
    result = {name: np.asarray(values) for name, values in cells.items()}
    if single := [name for name, values in result.items() if not values.ndim]:
        raise Refusal(f"cells needs an array with one entry for every published cell. Write cells={{{single[0]!r}: [20, 40, 60]}}.")
    return result


def _cells(
    planned: PlannedStatistic,
    private: Likelihood,
    expressions: Sequence[Variable],
    sizes: np.ndarray,
    cell_values: Mapping[str, np.ndarray],
) -> PublishedCells:
    """The published cells of one observed variable: numbers of records and the inputs of its likelihood in each, and how they are arranged.

    Where nothing is said, cells are all combinations of what indices point to, in order.
    """
    likelihood = planned.likelihood
    by_record = [placeholder for placeholder in likelihood.inputs if placeholder.axis is not None and not placeholder.private]
    grid: tuple[int, ...] = ()
    if by_record and not cell_values:
        levels = {placeholder.name: placeholder.levels for placeholder in private.inputs if placeholder.index and placeholder.plain}
        if lacking := [
            placeholder.name
            for placeholder in by_record
            if levels.get(placeholder.name) is None or len(placeholder.variable.type.shape) > 1
        ]:
            raise Refusal(f"What {lacking[0]} is in the published cells is not said. Write cells={{{lacking[0]!r}: [...]}}, one for each.")
        grid = tuple(int(levels[placeholder.name] or 0) for placeholder in by_record)
        places = np.indices(grid).reshape(len(grid), -1)
        cell_values = {placeholder.name: place for placeholder, place in zip(by_record, places, strict=True)}
    if planned.sizes != "free":
        _check_sizes(likelihood.name, sizes, grid, {len(values) for values in cell_values.values()} if by_record else set())
    inputs = []
    for placeholder, expression in zip(likelihood.inputs, expressions, strict=True):
        if placeholder.private:
            continue
        if placeholder.axis is not None and placeholder.plain and placeholder.name in cell_values:
            inputs.append(np.moveaxis(cell_values[placeholder.name].astype(placeholder.variable.type.dtype), 0, placeholder.axis))
            continue
        value = value_in_cells(expression, {} if placeholder.axis is None else cell_values)
        if value is None or (placeholder.axis is not None and value.shape[placeholder.axis] != sizes.size):
            raise Refusal(
                f"{likelihood.name} rests on arrays that are not in cells. Write every array with an entry for each record as a pm.Data,"
                " and cells={...} with what each is in the published cells."
            )
        inputs.append(value)
    if planned.sizes == "free":
        return cells_of_unknown_size(planned, tuple(inputs))
    return PublishedCells(sizes.reshape(-1), tuple(inputs), grid if len(grid) > 1 else ())


def _check_sizes(name: str, sizes: np.ndarray, grid: tuple[int, ...], cells: set[int]) -> None:
    """Refuse numbers of records that are not one for every cell; without cells there is one."""
    if not cells:
        if sizes.ndim:
            raise Refusal(f"{name} has no cells: its records are all alike beforehand. Write its number of records as n=1000.")
    elif len(cells) > 1 or sizes.shape not in {(count,) for count in cells} | {grid}:
        raise Refusal(
            f"{name} has {sizes.shape} numbers of records and {max(cells):,} cells. Write n= with one for every cell, and arrays of this"
            " length in cells=."
        )


def _check_names(name: str, statistics: Sequence[NoisyStatistic], spec: ModelSpec) -> None:
    """Refuse names that the model has already."""
    taken = {*spec.order, *spec.coords} - {name}
    if clash := [statistic.variable for statistic in statistics if statistic.variable in taken]:
        raise Refusal(f"{clash[0]} would be the name of two variables. Name the variable {clash[0]} otherwise.")
