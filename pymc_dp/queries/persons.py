"""Which rows of a table count if all rows of a person are protected, and the cell of each in all columns of the schema.

Which rows count is decided by these cells, so it is the same for all questions, and rows of one cell are the same to all of them.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from pymc_dp.plans.person import Person
from pymc_dp.privacy.accounting import ALL_ROWS, Refusal
from pymc_dp.queries.batches import batches_of
from pymc_dp.queries.schema import Column, Schema
from pymc_dp.queries.sql import cell_of, number_and_text
from pymc_dp.releases.duck import name_of, quoted
from pymc_dp.releases.person_names import check_key, names_in
from pymc_dp.releases.persons import counted_rows
from pymc_dp.releases.stored import is_one

WHOSE = "whose"
"""What the columns are called that say whose a row is: whose0 and whose1."""


def check_person(key: object, source: Any, names: Sequence[str]) -> None:
    """Refuse what names no column of a table that says whose a row is.

    Raises
    ------
    Refusal
        When it is no name, or the name of no column, of several, or of one of dates and the like.
    """
    if not isinstance(key, str):
        raise Refusal('A session finds whose a row is in a column of the table. Write unit=pymc_dp.Person("patient_id", at_most=5).')
    if names.count(key) != 1:
        if is_one(source, "pandas", "DataFrame") and key in source.index.names:
            raise Refusal(f"{key} is the index of the table, not a column. Write frame.reset_index().")
        there = "no column" if key not in names else "several columns"
        raise Refusal(f"The table has {there} called {key}, which unit names. Rename its columns, or name another in unit.")
    check_key(source, key)


def kept_cells(source: Any, schema: Schema, key: str, at_most: int, connection: Any) -> np.ndarray:
    """The cells of the rows that count, (rows, columns) int32: at most so many of every person, chosen by that person's rows only.

    Parameters
    ----------
    source : object
        The table.
    key : str
        The column that says whose a row is.
    connection : callable
        Opens a database in memory.
    """
    columns = schema.columns
    if is_one(source, "duckdb", "DuckDBPyRelation"):
        cells, whose = _of_duckdb(source, columns, key)
    else:
        batches = batches_of(source, columns, key)
        first = next(batches, None)
        if first is None:
            return np.zeros((0, len(columns)), dtype=np.int32)
        with connection() as database:
            import pyarrow as pa

            stream = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
            arrays = _cells_by_row(database.from_arrow(stream), columns, [f"{WHOSE}0", f"{WHOSE}1"]).fetchnumpy()
            cells, whose = _matrix(arrays, columns), np.column_stack([arrays[f"{WHOSE}{k}"] for k in range(2)]).astype(np.uint64)
    return cells[counted_rows(whose, at_most, [cells])]


def _matrix(arrays: Any, columns: Sequence[Column]) -> np.ndarray:
    return np.column_stack([np.asarray(arrays[f"c{axis}"], dtype=np.int32) for axis in range(len(columns))])


def _of_duckdb(source: Any, columns: Sequence[Column], key: str) -> tuple[np.ndarray, np.ndarray]:
    """Cells and whose they are of a table of DuckDB."""
    types = dict(zip(source.columns, source.types, strict=True))
    name = name_of(key, types[key].id)
    values = [*(f"{quoted(column.name)} AS value{axis}" for axis, column in enumerate(columns)), f"{name} AS {WHOSE}"]
    table = _cells_by_row(source.project(", ".join(values)), columns, [WHOSE]).fetch_arrow_table()
    names = table.column(WHOSE)
    return _matrix({name: table.column(name).to_numpy() for name in table.column_names if name != WHOSE}, columns), names_in(names)


def _cells_by_row(relation: Any, columns: Sequence[Column], others: Sequence[str]) -> Any:
    """A relation of cells c0, c1, ... and other columns, row by row, of one whose columns are value0 or cell0 and so on."""
    read, cells = [*others], []
    for axis, column in enumerate(columns):
        name = relation.columns[axis]
        if name.startswith("cell"):
            read.append(name)
            cells.append(f"CAST({name} AS INTEGER) AS c{axis}")
        else:
            number, text = number_and_text(column, name, relation.types[axis].id)
            read += [f"{number} AS n{axis}", f"{text} AS t{axis}"]
            cell = cell_of(column, f"n{axis}", None if text == "NULL" else f"t{axis}", list(range(column.size - 1)))
            cells.append(f"CAST({cell} AS INTEGER) AS c{axis}")
    return relation.project(", ".join(read)).project(", ".join([*others, *cells]))


def relation_and_person(unit: object) -> tuple[str, tuple[object, int] | None]:
    """What decides which tables are neighbours, in words, and of a ``Person`` its key and how many of its rows count."""
    person = (unit.key, unit.at_most) if isinstance(unit, Person) else None
    relation = unit.relation if isinstance(unit, Person) else unit
    if not isinstance(relation, str) or not relation.strip() or (relation.startswith(ALL_ROWS) and person is None):
        raise Refusal(
            'unit must say what one row stands for, or whose the rows are. Write for example unit="row", or'
            ' unit=pymc_dp.Person("patient_id", at_most=5).'
        )
    return relation, person
