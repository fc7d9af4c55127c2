"""Exact sums over records that are not in the model: block after block, all observed variables in one pass.

The model is built on a few placeholder rows, whose values are never read. What may be planned is read from it as where its own number
of records is private, so that the plan does not rest on how many placeholders there are.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pymc as pm

from pymc_dp.families.values import NO_LABELS, Labels
from pymc_dp.models.level_labels import places_of_labels
from pymc_dp.models.reader import read_spec
from pymc_dp.models.spec import Likelihood, ModelSpec, RecordPaths
from pymc_dp.plans.network import Network
from pymc_dp.plans.plan import refuse_problems
from pymc_dp.plans.protection import Protection
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.guard import boundary
from pymc_dp.privacy.mechanisms import LARGEST_SUM
from pymc_dp.releases.by_part import Arrays, exact_sums
from pymc_dp.releases.cells import PublicCells
from pymc_dp.releases.person_blocks import blocks_that_count, of_part
from pymc_dp.releases.progress import shown
from pymc_dp.releases.source import MOST_ROWS, Elsewhere, Source
from pymc_dp.releases.spread import Spread
from pymc_dp.releases.statistics import Cells, check_overflow, family_tables, records_of

INSTEAD = "Leave data out, and let the model observe the records."


def check_declared(protection: Protection) -> None:
    """Refuse declarations that are not known to be the same for records outside the model."""
    if protection.aggregate:
        raise Refusal(f"Rows of data= are records, not totals. {INSTEAD}")
    if protection.disjoint:
        raise Refusal(f"A row of data= has a value of every observed variable, so they are not disjoint. {INSTEAD}")


def check_tables(source: Source, wanted: str) -> None:
    """Refuse what is made of tables in which every record has one level of each variable, where this process does not read the records."""
    if isinstance(source.table, Spread | Elsewhere):
        raise Refusal(
            f"{wanted} rest on all variables of a record together, and workers add up those of each likelihood by itself. Write"
            ' mechanism="laplace", or give data= files.'
        )


def check_rounds(opened: Sequence[PublicCells], source: Source) -> None:
    """Refuse what looks at the records again, where every part of them is seen once."""
    several = next((cells.name for cells in opened if len(cells.shares) > 1), None)
    if several is not None and isinstance(source.table, Elsewhere):
        raise Refusal(
            f"The likelihood of {several} looks at the records several times, at coefficients that noisy numbers tell, and parts are summed"
            " once. Write release(..., data=...) with the whole table."
        )


def columns_of(likelihoods: Sequence[Likelihood], paths: Mapping[str, RecordPaths]) -> tuple[str, ...]:
    """Names of the columns that these likelihoods read: observed variables and private arrays with one number for every record."""
    names = []
    for likelihood in likelihoods:
        if likelihood.columns or records_of(paths[likelihood.name].observed).ndim != 1:
            raise Refusal(f"With data= one record has one number of every observed variable, and {likelihood.name} has several. {INSTEAD}")
        names.append(likelihood.name)
        for placeholder, path in zip(likelihood.inputs, paths[likelihood.name].inputs, strict=True):
            if path.axis is None and not placeholder.private:
                continue
            if not placeholder.private:
                raise Refusal(
                    f"{placeholder.name} is public and has an entry for every record, which data= does not offer. Leave it out of public,"
                    " or leave data out and let the model observe the records."
                )
            if path.axis is None or records_of(path).ndim != 1:
                raise Refusal(f"With data= one record has one number of {placeholder.name}. Write a pm.Data for every column. {INSTEAD}")
            names.append(placeholder.name)
    return tuple(dict.fromkeys(names))


def columns_read(model: pm.Model, spec: ModelSpec, paths: Mapping[str, RecordPaths], protection: Protection) -> dict[str, Labels]:
    """The columns that the model reads, and at which places the labels of their levels stand.

    A model that is refused where the number of records is private is refused, too: nothing in it may rest on how many placeholders there
    are.
    """
    refuse_problems(spec)
    refuse_problems(read_spec(model, protection.public, sized=False, binned=protection.binned))
    names = columns_of(spec.likelihoods, paths)
    return dict.fromkeys(names, NO_LABELS) | places_of_labels(spec, names)


def source_of(model: pm.Model, columns: Mapping[str, Labels], data: object, key: str | None = None) -> Source:
    """These columns of the data, and the one that says whose a row is. Arrays that no likelihood uses stay as they are, and no column may
    have their names.
    """
    return Source.of(data, columns, unread_in(model, (*columns, *(() if key is None else (key,)))), key)


def unread_in(model: pm.Model, names: Iterable[str]) -> tuple[str, ...]:
    """Names of arrays that no likelihood uses."""
    return tuple(sorted({str(array.name) for array in model.data_vars} - set(names)))


def sized_by(spec: ModelSpec, source: Source, protection: Protection) -> ModelSpec:
    """What is read of the model, with the number of records that the data have where it is public, not that of the placeholders."""
    return replace(spec, many=dict.fromkeys(spec.many, source.records)) if protection.sized else spec


def with_records_of(cells: PublicCells, source: Source) -> PublicCells:
    """The cells as the records of the data fill them: all that rests on the number of records follows that of the data.

    Without public arrays there is one public cell. Where the number of records is private nothing here depends on it.
    """
    planned = cells.planned
    if cells.projection is not None or len(cells.cells.n) != 1:
        raise Refusal(f"The likelihood of {cells.name} is not offered with data=. {INSTEAD}")
    if MOST_ROWS * max(1, *(sensitivity.largest for sensitivity, _ in cells.rounds)) >= LARGEST_SUM:
        raise Refusal("The bounds exceed 64-bit integers. Narrow the bounds.")
    if planned.sizes == "free":
        return cells
    records, placeholders = source.records, int(cells.cells.n.sum())
    if records == 0:
        raise Refusal("data has no records. Give a table with one row for every record.")
    check_overflow(planned, records)
    # Of the public features, which are the same in every row: sums of whole numbers, which are multiples of those of one row.
    exact = [int(value) // placeholders * records for value in cells.known.ravel()]
    known = np.array(exact, dtype=float).reshape(cells.known.shape)
    if [int(value) for value in known.ravel()] != exact:
        raise Refusal("The number of records is beyond what doubles hold. Split the data.")
    return replace(cells, cells=replace(cells.cells, n=np.array([records], dtype=cells.cells.n.dtype)), known=known)


def summed(
    opened: Sequence[PublicCells], source: Source, at_most: int | None = None, persons: tuple[int, int] = (0, 1), *,
    sized: bool = False, progressbar: bool = False,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Exact sums (cells, *C, K) of every observed variable, as int64, clamped to the integers that noise can be added to.

    Every record is in one block, and what it brings depends on itself: sums of whole numbers over blocks are those over all records in
    any order. No sum of one block is clamped (``with_records_of``). With ``at_most`` the blocks are of the rows that count, of those
    ``persons`` alone that are in this of so many parts. A bar says how many rows were read, of how many only where that is public
    (``sized``); then it is a failure if they are others than were counted before.
    """
    whole: dict[str, np.ndarray] = {cells.name: np.zeros(cells.shape, dtype=object) for cells in opened}
    read = 0
    _keep_memory()
    for block, times in _blocks(source, at_most, persons, sized, progressbar):
        rows = len(next(iter(block.values())))
        read += times * rows
        if rows == 0:
            continue
        filled, counted = Cells(np.broadcast_to(0, rows), np.array([rows]), ()), np.broadcast_to(True, rows)
        for cells in opened:
            inside = replace(cells, cells=replace(filled, inputs=cells.cells.inputs))
            exact = exact_sums(inside, block[cells.name], _inputs(cells, block), counted)
            whole[cells.name] = whole[cells.name] + times * exact.astype(object)
    if sized:
        _check_number(opened, read)
    return {name: np.clip(sums, -LARGEST_SUM, LARGEST_SUM).astype(np.int64) for name, sums in whole.items()}


@boundary
def sums_of(
    opened: Sequence[PublicCells], source: Source, at_most: int | None = None, persons: tuple[int, int] = (0, 1)
) -> dict[str, np.ndarray]:
    """Exact sums of observed variables over the records of a source: see ``summed``."""
    return summed(opened, source, at_most, persons)


KEPT = 2**24
"""Bytes that are kept for the next block; what one block takes on the way is less."""


def _keep_memory() -> None:
    """Let the C library keep what is freed, for the next block, rather than ask the system again, which takes longer than to add up.

    GNU's does so with pieces as large as the largest that it has given back to the system, up to 32 MB. Elsewhere nothing happens.
    """
    np.empty(KEPT, np.int8)


def tables_over(
    opened: Sequence[PublicCells], network: Network, source: Source, at_most: int | None = None, *, sized: bool = False,
    progressbar: bool = False,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Exact tables of counts of every node's family, as int64: see ``family_tables``, and ``summed`` for the arguments.

    Every record is in one block, and has one level of every variable there: counts over blocks are those over all records in any order.
    """
    planned, whole = [cells.planned for cells in opened], {node.name: np.zeros(network.shape(node), np.int64) for node in network.nodes}
    read = 0
    for block, times in _blocks(source, at_most, (0, 1), sized, progressbar):
        read += times * len(next(iter(block.values())))
        for name, table in family_tables(planned, block, network).items():
            whole[name] += times * table
    if sized:
        _check_number(opened, read)
    return whole


def _check_number(opened: Sequence[PublicCells], read: int) -> None:
    """Fail where a table has another number of rows than when it was counted, both of which are public: the law of sums rests on it."""
    if any(cells.planned.sizes != "free" and int(cells.cells.n.sum()) != read for cells in opened):
        raise RuntimeError


def _blocks(
    source: Source, at_most: int | None, persons: tuple[int, int], sized: bool, progressbar: bool
) -> Iterator[tuple[Mapping[str, np.ndarray], int]]:
    """Blocks of rows, and how many times what is in each counts.

    Rows that a database has counted are looked at once each: those whose number has a certain binary digit are a block, which counts as
    often as that digit stands for. A bar would show whether a database has counted, which one record can decide, so with a bar none does.
    """
    distinct = None if progressbar else source.distinct()
    if distinct is not None:
        rows, many = distinct
        for digit in range(int(many.max(initial=0)).bit_length()):
            there = (many >> digit) & 1 == 1
            yield {name: values[there] for name, values in rows.items()}, 2**digit
        return
    blocks = shown(source.blocks(), source.records if sized else None) if progressbar else source.blocks()
    for block in blocks if at_most is None else blocks_that_count(of_part(blocks, *persons), at_most):
        yield block, 1


def _inputs(cells: PublicCells, block: Mapping[str, np.ndarray]) -> Arrays:
    """The arrays of one block; public ones, which have no axis of records, are those of the cells."""
    pairs = zip(cells.planned.likelihood.inputs, cells.inputs, strict=True)
    return [
        (placeholder, block[placeholder.name] if placeholder.private else public, 0 if placeholder.private else None)
        for placeholder, public in pairs
    ]
