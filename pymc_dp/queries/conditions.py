"""The region of cells that meet a condition, in a normal form: conditions that mean the same under a schema have one region."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import ceil, floor

import numpy as np

from pymc_dp.privacy.accounting import Refusal, nearest_double
from pymc_dp.queries.expressions import Among, Compared, Condition, Every, Literal, Opposite, Several
from pymc_dp.queries.regions import Cells, Joined, Region, literal_text, name_text, region_of_column, region_text
from pymc_dp.queries.schema import Column, Schema, repr_of_edge


def normal_form(condition: Condition, schema: Schema, kept: bool = True) -> Region:
    """A condition, or its opposite, as a region."""
    if isinstance(condition, Opposite):
        return normal_form(condition.part, schema, not kept)
    if isinstance(condition, Several):
        return _joined(isinstance(condition, Every) == kept, [normal_form(part, schema, kept) for part in condition.parts], schema)
    assert isinstance(condition, Compared | Among)
    column = schema.column(condition.column)
    cells = _compared(column, condition) if isinstance(condition, Compared) else _among(column, condition.values)
    return region_of_column(column, cells if kept else ~cells)


def _joined(every: bool, regions: Iterable[Region], schema: Schema) -> Region:
    """The intersection of regions if ``every``, or their union: cells of one column become one part, equal parts are there once."""
    single: dict[str, np.ndarray] = {}
    others: dict[str, Joined] = {}
    for region in _flat(every, regions):
        if isinstance(region, bool):
            if region != every:
                return region
        elif isinstance(region, Cells):
            name, cells = region.column.name, region.cells
            single[name] = cells if name not in single else single[name] & cells if every else single[name] | cells
        else:
            others[region_text(region)] = region
    parts: list[Cells | Joined] = []
    for name in sorted(single, key=schema.names.index):
        region = region_of_column(schema.column(name), single[name])
        if isinstance(region, bool):
            if region != every:
                return region
        else:
            parts.append(region)
    parts += [others[text] for text in sorted(others)]
    return every if not parts else parts[0] if len(parts) == 1 else Joined(every, tuple(parts))


def _flat(every: bool, regions: Iterable[Region]) -> Iterator[Region]:
    """Regions, with those of the same kind taken apart: an intersection of intersections is one."""
    for region in regions:
        if isinstance(region, Joined) and region.every == every:
            yield from region.parts
        else:
            yield region


def _compared(column: Column, compared: Compared) -> np.ndarray:
    if compared.comparison in ("==", "!="):
        cells = _among(column, (compared.value,))
        return cells if compared.comparison == "==" else ~cells
    if column.kind == "bins":
        levels = _bins(column, compared)
    elif column.kind == "numbers" and isinstance(compared.value, Fraction):
        number, numbers = compared.value, column.values[:-1]
        low, high = max(floor(number), -(2**60)), min(ceil(number), 2**60)
        low, high = min(low, 2**60), max(high, -(2**60))
        levels = {"<": numbers < high, "<=": numbers <= low, ">": numbers > low, ">=": numbers >= high}[compared.comparison]
    else:
        raise Refusal(
            f"{column.name} cannot be compared by {compared.comparison} with {literal_text(compared.value)}, because {column.described()}. "
            f"Write {name_text(column)} == {literal_text(column.levels[0])}, or {name_text(column)} in [...]."
        )
    if not levels.any():
        raise Refusal(
            f"Nothing in {column.name} is {compared.comparison} {literal_text(compared.value)}: {column.described()}. "
            "Write a smaller or larger number; values that are no level count in the extra cell."
        )
    return np.append(levels, False)


def _bins(column: Column, compared: Compared) -> np.ndarray:
    """The bins on one side of an edge; an edge belongs to the bin that begins there."""
    edge = nearest_double(compared.value) if isinstance(compared.value, Fraction) else None
    if edge not in column.edges or compared.comparison not in ("<", ">="):
        raise Refusal(
            f"{column.name} is known by its bins only, and {compared.comparison} {literal_text(compared.value)} would cut through one. "
            f"Write < or >= with one of its edges: {column.described()}."
        )
    k = column.edges.index(edge)
    above = np.arange(len(column.levels)) >= k
    return above if compared.comparison == ">=" else ~above


def _among(column: Column, values: tuple[Literal, ...]) -> np.ndarray:
    cells = np.zeros(column.size, dtype=bool)
    for value in values:
        wanted = {"numbers": Fraction, "truth": bool, "text": str, "bins": str}[column.kind]
        # A fraction equals, and hashes as, the whole number that it is.
        if not isinstance(value, wanted) or value not in column.places:
            name = name_text(column)
            instead = f"for example {name} == {literal_text(column.levels[0])}"
            if column.edges:
                instead = f"< and >= with its edges, such as {name} >= {repr_of_edge(column.edges[0])}"
            raise Refusal(f"{literal_text(value)} is no level of {column.name}: {column.described()}. Write {instead}.")
        cells[column.places[value]] = True  # type: ignore[index]  # see above
    return cells
