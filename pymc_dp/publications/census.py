"""``read_census``: measurements in the layout of a census, a row for every area and query, as a ``PublishedTable``."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.noises import DiscreteGaussian, Exact
from pymc_dp.publications.publication import Codebook
from pymc_dp.publications.table_queries import SIGNS, PublishedTable, TableQuery

COLUMNS = ("geocode", "query", "value", "variance", "sign")
SOURCE = "US Census Bureau, layout of the 2020 noisy measurement files; read 2026-11"


def read_census(
    measurements: object,
    coords: Mapping[str, Sequence[object]],
    *,
    levels: Mapping[str, int],
    source: str = SOURCE,
    impossible: Mapping[str, Any] | None = None,
) -> PublishedTable:
    """A published table from rows of geocode, query, values, variance and sign: for ``sample_table``.

    Parameters
    ----------
    measurements : path, data frame or mapping
        A Parquet file, or columns ``geocode`` (text, that of an area begins with that of the area it lies in), ``query`` ("total",
        "detailed" or dims such as "sex * race"), ``value`` (the sums of one area, in C order of the query's dims), ``variance`` (of
        discrete Gaussian noise: its parameter scale^2; not read of exact rows) and ``sign`` ("=", ">=" or "<=" of exact sums and
        bounds; empty of noisy ones).
    coords : mapping
        Dims of the table within one area and their labels, in the order of the "detailed" query.
    levels : mapping
        The digits of a geocode at every level: ``{"tract": 11, "block_group": 12, "block": 15}``. The finest is a dim of the table,
        the others are groups of it. An area without rows of the finest level within it is refused.
    source : str
        Of the measurements, for the group ``privacy``.
    impossible : mapping, optional
        By geocode of the finest level: array of bool over ``coords``, true of cells that are known to be empty.

    Returns
    -------
    PublishedTable
        Its dims are the finest level and ``coords``.

    Raises
    ------
    Refusal
        Where a column is missing, or a row is not understood.

    Examples
    --------
    >>> rows = {
    ...     "geocode": ["1", "11", "12", "1"],
    ...     "query": ["total", "detailed", "detailed", "total"],
    ...     "value": [[30], [4, 7], [9, 12], [29]],
    ...     "variance": [1.0, 4.0, 4.0, 0.0],
    ...     "sign": ["", "", "", ">="],
    ... }
    >>> pmdp.read_census(rows, {"sex": ["f", "m"]}, levels={"tract": 1, "block": 2}).shape
    (2, 2)
    """
    columns = _columns(measurements)
    by_digits = {digits: level for level, digits in levels.items()}
    if not levels or len(by_digits) < len(levels) or set(levels) & set(coords):
        raise Refusal('levels name how many digits a geocode has, each another number. Write levels={"tract": 11, "block": 15}.')
    finest = by_digits[max(by_digits)]
    codes = [str(code) for code in columns["geocode"]]
    areas = sorted({code for code in codes if len(code) == levels[finest]})
    for code in codes:
        if len(code) not in by_digits:
            raise Refusal(
                f"The geocode {code} has {len(code)} digits, which is none of the levels. Write levels={{'state': {len(code)}, ...}}."
            )
    groups = {level: (finest, [area[:digits] for area in areas]) for level, digits in levels.items() if level != finest}
    frame = PublishedTable({finest: areas, **coords}, [TableQuery(np.nan, Exact())], groups=groups)
    places = {level: {label: k for k, label in enumerate(frame.labels_of(level))} for level in levels}
    blocks: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for row, code in enumerate(codes):
        if code not in places[by_digits[len(code)]]:
            raise Refusal(f"No {finest} lies in the area {code}, so that nothing can be added up to it. Add the rows of its parts.")
        blocks[by_digits[len(code)], str(columns["query"][row]), _sign(columns["sign"][row])].append(row)
    queries = [_query(block, rows, codes, columns, frame, places, source) for block, rows in blocks.items()]
    return PublishedTable(frame.coords, queries, groups, _empty(impossible, areas, coords))


def _columns(measurements: object) -> dict[str, Any]:
    if isinstance(measurements, str | Path):
        try:
            from pyarrow import parquet
        except ImportError:
            raise Refusal("Parquet files need pyarrow. Write pip install 'pymc_dp[queries]', or give a data frame.") from None
        table = parquet.read_table(measurements)
        columns = {name: table[name].to_pylist() for name in table.column_names}
    else:
        columns = {str(name): list(measurements[name]) for name in measurements}  # type: ignore[attr-defined, index]
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise Refusal(f"Measurements need the columns {', '.join(COLUMNS)}; {missing[0]} is missing. Rename or add it.")
    return columns


def _sign(sign: object) -> str:
    """One of the signs, or nothing of noisy rows."""
    text = "" if sign is None or sign != sign else str(sign).strip()
    if text and text not in SIGNS:
        raise Refusal(f'The sign {text!r} is none of "=", ">=" and "<=", and is empty of noisy rows. Correct it.')
    return text


def _query(
    block: tuple[str, str, str],
    rows: list[int],
    codes: list[str],
    columns: dict[str, Any],
    table: PublishedTable,
    places: dict[str, dict[object, int]],
    source: str,
) -> TableQuery:
    """All rows of one level, query and sign as one query of the table, NaN of areas without a row."""
    level, query, sign = block
    inner = list(table.coords)[1:]
    dims = [] if query == "total" else inner if query == "detailed" else [name.strip() for name in query.split("*")]
    if not set(dims) <= set(inner):
        raise Refusal(f'The query {query!r} is neither "total" nor "detailed", nor made of {", ".join(inner)}. Name dims in coords alike.')
    shape = tuple(len(table.coords[dim]) for dim in dims)
    values, scales = np.full((len(places[level]), *shape), np.nan), np.ones((len(places[level]), *shape))
    for row in rows:
        place, entry = places[level][codes[row]], np.asarray(columns["value"][row], dtype=float).ravel()
        if len(entry) != int(np.prod(shape)):
            raise Refusal(f"The query {query!r} of {codes[row]} has {len(entry)} values where coords have {int(np.prod(shape))}.")
        if not np.isnan(values[place]).all():
            raise Refusal(f"The query {query!r} of {codes[row]} is there twice. Give one row for each.")
        values[place] = entry.reshape(shape)
        if not sign:
            variance = float(columns["variance"][row])
            if not variance > 0:
                raise Refusal(f'The query {query!r} of {codes[row]} has variance {variance:g} and no sign. Exact sums have the sign "=".')
            scales[place] = np.sqrt(variance)
    there = np.isfinite(values)
    scales[~there] = scales[there].min(initial=scales.max())  # not read, but printed
    noise = Exact() if sign else DiscreteGaussian(scales)
    return TableQuery(values, Codebook(noise, source, "the publisher's"), (level, *dims), sign or "=")


def _empty(impossible: Mapping[str, Any] | None, areas: list[str], coords: Mapping[str, Sequence[object]]) -> np.ndarray | None:
    if impossible is None:
        return None
    result = np.zeros((len(areas), *(len(labels) for labels in coords.values())), dtype=bool)
    for code, cells in impossible.items():
        if code not in areas or np.shape(cells) != result.shape[1:]:
            raise Refusal(f"impossible has an array of shape {result.shape[1:]} for geocodes of the finest level, and {code} has not.")
        result[areas.index(code)] = cells
    return result
