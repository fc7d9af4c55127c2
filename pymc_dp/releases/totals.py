"""Values of records -> exact integers of every cell: which cell a record is in, and the sums of what it adds.

A value computed from records is called ``exact`` until noise is added. Every map is total and elementwise, and sums are of integers, so
that they depend on neither order, batch nor machine (``sums``). Shapes: N records, C columns, G cells, K statistics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from pymc_dp.families.family import Domain, complete
from pymc_dp.families.grid import POINTS, nearest_level
from pymc_dp.families.normal import ROW_VALUES
from pymc_dp.families.residuals import Residuals
from pymc_dp.families.second_moments import Regression
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.plans.totals import turned_at
from pymc_dp.privacy.mechanisms import LARGEST_SUM
from pymc_dp.releases.statistics import Cells
from pymc_dp.releases.sums import IN_CACHE, MOST_BITS, Bits, bits_of, counts, product_totals, totals


def clamped(totals: np.ndarray) -> np.ndarray:
    """Sums as int64. Clamping to the integers is 1-Lipschitz and so costs nothing."""
    return np.clip(totals, -LARGEST_SUM, LARGEST_SUM).astype(np.int64)


LARGEST = float(np.finfo(np.float64).max)
"""The largest double: what is beyond it is infinite."""


def totals_of_rows(values: np.ndarray, planned: PlannedStatistic) -> np.ndarray:
    """Exact totals (rows, *C, K) of individuals, every row by itself, in lattice units.

    One individual moves a total by whole events. Rounding down keeps totals that are no whole numbers as near: from x' <= x + m follows
    floor(x') <= floor(x) + m. To the nearest even, one event would move .5 to 1.5 and so 0 to 2. Of what is below 0 the size counts: PyMC
    turns 2^31 into -2^31, and other whole numbers likewise, and sizes of neighbours on a circle are neighbours. Real values are put on
    their grid, after the same (``turned_at``).
    """
    domain = planned.domain
    if planned.family is ROW_VALUES:
        numbers = complete(values, Domain(-LARGEST, LARGEST, fill=domain.middle))
        turned = complete(np.minimum(numbers, turned_at(domain) - numbers), domain)
        return ROW_VALUES.exact(turned, domain)[0][..., None]
    whole = np.floor(np.abs(complete(values, replace(domain, lower=-domain.upper)))).astype(np.int64)
    return whole[..., -len(planned.statistics) :] if planned.likelihood.levels else whole[..., None]


def exact_totals(
    values: np.ndarray,
    planned: PlannedStatistic,
    grouped: Cells,
    private: Mapping[str, np.ndarray],
    features: Sequence[np.ndarray] | None,
    kept: np.ndarray | None,
    anchor: np.ndarray | Residuals | None,
) -> np.ndarray:
    """Exact sums (cells, *C, K) of what is released, in lattice units, as Python's integers, which add up over blocks of records.

    Cells are public cells times private ones, in this order. Sums go through doubles only where these are exact (``sums``).

    Parameters
    ----------
    values : (N, *C, ...) ndarray
        Observed values as they are.
    planned : PlannedStatistic
    grouped : Cells
        The public cells.
    private : mapping
        The private inputs' arrays by placeholder name, records along axis 0: see ``completed``.
    features : sequence of (N, columns) float64 ndarray, or None
        F of them, for second moments, in the user's units: see ``feature_columns``.
    kept : (N, columns) bool ndarray or None
        Which records bring what they hold to which column; the others bring nothing. None: all do. See ``complete_records``.
    anchor : (cells, *C, F) ndarray, Residuals or None
        Of a regression with a link, the coefficients at which scores are taken; of another, where residuals are, whose sums are asked
        for then.
    """
    G, columns = len(grouped.n) * planned.grid.size, planned.likelihood.columns
    many, codes = prod(columns), private_codes(planned, private, len(grouped.codes))
    if len(grouped.n) > 1:
        codes = grouped.codes * planned.grid.size + codes
    by_column = [None] * many if kept is None else list(kept.T)
    sums: Sequence[object]
    if features is not None and (anchor is None or isinstance(anchor, Residuals)):
        sums = _moments(planned, values, features, codes, G, by_column, anchor)
    elif features is not None and isinstance(anchor, np.ndarray):
        sums = _scores(planned, values, features, anchor.reshape(G, many, -1)[codes], codes, G, by_column)
    else:
        sums = _of_family(planned, values, codes, G, by_column)
    # (columns, K, cells) -> (cells, *C, K)
    whole = np.moveaxis(np.array(sums, dtype=object), -1, 0)
    return whole.reshape(G, *columns, whole.shape[-1])


def _of_family(
    planned: PlannedStatistic, values: np.ndarray, codes: np.ndarray, G: int, kept: Sequence[np.ndarray | None]
) -> list[list[np.ndarray]]:
    """For every column the sums of the family's statistics (K, cells)."""
    family, domain, many = planned.family, planned.domain, len(kept)
    assert family is not None
    wholes = family.whole_values(domain)
    if wholes is not None and len(wholes) * G <= MOST_COUNTED:
        level = within(values, wholes.start, wholes.stop - 1)
        level = (np.rint(complete(values, domain)) if level is None else level).reshape(len(values), many)
        return _of_tables(planned, [_counted(level[:, c], wholes.start, len(wholes), codes, G, kept[c]) for c in range(many)])
    largest, sums = family.sensitivity(domain).largest, [[np.zeros(G, dtype=object) for _ in family.statistics(domain)] for _ in kept]
    as_they_are = family.completes(domain) and values.dtype != object
    for start in range(0, len(values), IN_CACHE):
        part = slice(start, start + IN_CACHE)
        numbers = values[part].astype(np.float64, copy=False) if as_they_are else complete(values[part], domain)
        for k, statistic in enumerate(family.doubles(numbers, domain)):
            for c, (rows, column) in enumerate(zip(kept, statistic.reshape(len(statistic), many).T, strict=True)):
                sums[c][k] = sums[c][k] + _kept_totals(column, codes[part], G, largest, None if rows is None else rows[part])
    sizes = (
        []
        if planned.sizes == "public"
        else [_counted(np.broadcast_to(0, len(codes)), 0, 1, codes, G, rows)[:, 0].astype(object) for rows in kept]
    )
    return _with_sizes(planned, sums, sizes)


def _with_sizes(planned: PlannedStatistic, sums: list[list[np.ndarray]], sizes: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """What is released of sums and of how many records each cell has, where that is not public."""
    if planned.sizes == "public":
        return sums
    assert planned.family is not None
    matrix = planned.family.cell_sensitivity(planned.domain).matrix
    return [
        [row[0] * n + sum(a * total for a, total in zip(row[1:], several, strict=True)) for row in matrix]
        for n, several in zip(sizes, sums, strict=True)
    ]


def _of_tables(planned: PlannedStatistic, tables: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """For every column the sums of the family's statistics (K, cells), from how often each value occurs in each cell: (cells, levels)."""
    family, domain = planned.family, planned.domain
    assert family is not None
    wholes = family.whole_values(domain)
    assert wholes is not None
    of_each = family.exact(np.array(wholes, dtype=np.float64), domain)
    records = max(int(table.sum()) for table in tables)
    kind = np.int64 if records * max(int(np.abs(statistic).max()) for statistic in of_each) < LARGEST_SUM else object
    sums = [
        [(table.astype(kind, copy=False) @ statistic.astype(kind, copy=False)).astype(object) for statistic in of_each] for table in tables
    ]
    return _with_sizes(planned, sums, [table.sum(axis=1).astype(object) for table in tables])


def totals_of_levels(values: np.ndarray, planned: PlannedStatistic, inputs: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """What ``exact_totals`` gives of whole numbers that are all levels already, in one public cell; None where that is not so, or not seen.

    Completing and rounding leaves them what they are, so they are counted at once, while they are in the cache. ``inputs`` are private
    arrays as they are, by placeholder name.
    """
    family, grid = planned.family, planned.grid
    wholes = None if family is None or planned.regression is not None or planned.likelihood.columns else family.whole_values(planned.domain)
    if wholes is None or len(wholes) * grid.size > MOST_COUNTED:
        return None
    columns = []
    for k, several, edges in zip(grid.inputs, grid.levels, grid.bins, strict=True):
        placeholder, levels = planned.likelihood.inputs[k], range(planned.likelihood.inputs[k].levels or 1)
        if not placeholder.index or edges or several != (tuple(levels),):
            return None
        columns.append((inputs[placeholder.variable.name], levels))
    table = _joint([*columns, (values, wholes)])
    if table is None:
        return None
    sums = np.array(_of_tables(planned, [table.reshape(grid.size, len(wholes))]), dtype=object)  # (1, K, cells)
    return np.moveaxis(sums[0], -1, 0)


def _joint(columns: Sequence[tuple[np.ndarray, range]]) -> np.ndarray | None:
    """How often all combinations of levels occur, int64 in the order of the columns; None where a number is no level."""
    if any(array.ndim != 1 for array, _ in columns):
        return None
    lengths, records = [len(levels) for _, levels in columns], len(columns[-1][0])
    many, table = prod(lengths), np.zeros(prod(lengths), dtype=np.int64)
    rows, kind = max(IN_CACHE, many), narrowest(many)
    bits = Bits(lengths, records, rows) if sum(map(bits_of, lengths)) <= MOST_BITS else None
    narrow = np.empty(min(rows, records), np.int8)
    for start in range(0, records, rows):
        joint: np.ndarray | None = None
        for k, (array, levels) in enumerate(columns):
            part = array[start : start + rows]
            place = narrow[: len(part)]
            if not _copied(part, levels.start, levels.stop - 1, place):
                return None
            if levels.start:
                place -= np.int8(levels.start)
            if bits is not None:
                bits.put(k, start, place)
            else:
                joint = place.astype(kind) if joint is None else joint * kind(len(levels)) + place
        if joint is not None:
            table += counts(joint, many)
    return table if bits is None else bits.counts()


MOST_COUNTED = 2**12
"""Numbers of records that are counted, cells times values: with more of them, statistics are summed."""


def within(values: np.ndarray, lower: int, upper: int) -> np.ndarray | None:
    """Whole numbers of which none lies outside these bounds, as int8; None where that is not so, or not seen.

    What completing and rounding makes of them is themselves.
    """
    if not values.size:
        return None
    narrow = np.empty(values.shape, np.int8)
    for start in range(0, len(values), IN_CACHE):
        if not _copied(values[start : start + IN_CACHE], lower, upper, narrow[start : start + IN_CACHE]):
            return None
    return narrow


def _copied(values: np.ndarray, lower: int, upper: int, narrow: np.ndarray) -> bool:
    """Whether values were seen to be whole numbers of which none lies outside these bounds, and are now in ``narrow``, which is of int8.

    Seen in their bits: none is negative, and none beyond int8. None is larger than the bits of all of them together, so that where these
    are no larger than the upper bound, nothing more is looked at. They are few enough to be looked at and copied while in the cache.
    """
    if values.dtype.kind not in "iu":
        return False
    bits = int(np.bitwise_or.reduce(values, axis=None))
    if not 0 <= bits <= np.iinfo(np.int8).max:
        return False
    narrow[...] = values
    if lower > 0 and lower > np.minimum.reduce(narrow, axis=None):
        return False
    return bits <= upper or bool(np.maximum.reduce(narrow, axis=None) <= upper)


def _counted(level: np.ndarray, first: int, levels: int, codes: np.ndarray, cells: int, kept: np.ndarray | None) -> np.ndarray:
    """How many records of every cell have each level from the first: int64 (cells, levels), of those that are kept."""
    many = cells * levels
    kind, table = narrowest(many), np.zeros(many, dtype=np.int64)
    for start in range(0, len(level), rows := max(IN_CACHE, many)):
        part = slice(start, start + rows)
        place = (level[part] - first if first else level[part]).astype(kind, copy=False)
        joint = place if cells == 1 else codes[part].astype(kind, copy=False) * kind(levels) + place
        table += counts(joint if kept is None else joint[kept[part]], many)
    return table.reshape(cells, levels)


def _kept_totals(statistic: np.ndarray, codes: np.ndarray, cells: int, largest: int, kept: np.ndarray | None) -> np.ndarray:
    """Per cell, of what records bring to a column: those that are left out there bring nothing."""
    return totals(codes, statistic if kept is None else statistic * kept, cells, largest)


def _moments(
    planned: PlannedStatistic, values: np.ndarray, features: Sequence[np.ndarray], codes: np.ndarray, G: int,
    kept: Sequence[np.ndarray | None], residuals: Residuals | None = None,
) -> list[np.ndarray]:  # fmt: skip
    """For every column the sums (K, cells) of second moments; a record that is left out has zeros for its integers.

    With ``residuals`` the sums are those of residuals, and of their products with features.
    """
    regression = planned.regression
    assert regression is not None
    entries, weights, largest = regression.entries, regression.weights, POINTS
    if residuals is not None:
        entries, weights, largest = residuals.entries(), residuals.weights, 3 * POINTS
    sums = []
    for c, rows in enumerate(kept):
        of_column = regression_of(planned, c)
        whole = of_column.on_grid([of[:, c] for of in features], _responses(values, planned, of_column, c))
        if residuals is not None:
            whole = residuals.columns(whole)
        if rows is not None:
            whole *= rows
        total = product_totals(whole, entries, codes, G, largest)
        sums.append(total * np.array(weights, dtype=object)[:, None])  # by what is multiplied before the noise
    return sums


def _scores(
    planned: PlannedStatistic, values: np.ndarray, features: Sequence[np.ndarray], anchors: np.ndarray, codes: np.ndarray, G: int,
    kept: Sequence[np.ndarray | None],
) -> list[list[np.ndarray]]:  # fmt: skip
    """For every column the sums (K, cells) of scores and their information at the anchors (N, columns, F) of records' cells."""
    regression, largest = planned.regression, planned.sensitivity.largest
    assert regression is not None
    sums = []
    for c, rows in enumerate(kept):
        [responses] = _responses(values, planned, regression, c)
        columns = regression.on_grid([of[:, c] for of in features], [responses]).T.astype(np.int64)
        statistics = regression.scored(columns, responses, anchors[:, c])
        sums.append([_kept_totals(statistic, codes, G, largest, rows) for statistic in statistics])
    return sums


def regression_of(planned: PlannedStatistic, column: int) -> Regression:
    """The regression of one column: where columns have bounds of their own, with those of its response."""
    assert planned.regression is not None
    if not planned.domain.columns:
        return planned.regression
    lower, upper = planned.domain.columns[column]
    return replace(planned.regression, response_lower=(lower,), response_upper=(upper,))


def _responses(values: np.ndarray, planned: PlannedStatistic, regression: Regression, column: int) -> list[np.ndarray]:
    """Every entry (N,) of one column of observed values, filled and clamped; their logarithms where that is what is normal.

    Numbers that are only put on a grid, which does the same (``Regression.clamps``), stay as they are.
    """
    flat = values.reshape(len(values), prod(planned.likelihood.columns), regression.q)[:, column]
    logarithmic, responses = planned.likelihood.distribution == "LogNormal", []
    for k, (lower, upper) in enumerate(zip(regression.response_lower, regression.response_upper, strict=True)):
        bounds = Domain(float(np.exp(lower)), float(np.exp(upper))) if logarithmic else Domain(lower, upper)
        if logarithmic:
            responses.append(np.log(complete(flat[:, k], bounds)))
        else:
            as_it_is = not regression.link and regression.clamps[len(regression.names) + k] and values.dtype != object
            responses.append(flat[:, k] if as_it_is else complete(flat[:, k], bounds))
    return responses


def private_codes(planned: PlannedStatistic, private: Mapping[str, np.ndarray], records: int) -> np.ndarray:
    """Which private cell every record belongs to, the nearest level of every entry or its bin: (N,) of the narrowest ints that hold all.

    A value at an edge is in the bin below.
    """
    kind, codes = narrowest(planned.grid.size), None
    for k, several, edges in zip(planned.grid.inputs, planned.grid.levels, planned.grid.bins, strict=True):
        placeholder = planned.likelihood.inputs[k]
        entries = private[placeholder.variable.name]
        for e, levels in enumerate(several):
            counted = placeholder.index and levels == tuple(range(len(levels)))  # ``completed`` rounded and clipped to these
            if edges:
                place = np.searchsorted(np.array(edges[1:-1]), entries[:, e]).astype(kind)
            else:
                place = entries[:, e].astype(kind, copy=False) if counted else nearest_level(entries[:, e], levels).astype(kind)
            codes = place if codes is None else codes * kind(len(levels)) + place
    return np.broadcast_to(kind(0), records) if codes is None else codes


def narrowest(many: int) -> type[np.signedinteger]:
    """The narrowest ints that hold all numbers below so many, and that number."""
    return next(kind for kind in (np.int8, np.int16, np.int32, np.int64) if many <= np.iinfo(kind).max)
