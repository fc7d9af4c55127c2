"""The sums of a likelihood that others may have published, in units of the values, as combinations of the number of records and the
family's statistics.
"""

from collections.abc import Sequence

type Rows = tuple[tuple[str, tuple[float, ...]], ...]
"""Names, and for each (c, a_1, ..., a_K), which stands for c n + sum_k a_k (sum of statistic k), statistics being in their own units.

``y`` in a name stands for the values.
"""


def plain(names: Sequence[str]) -> Rows:
    """The statistics themselves."""
    return tuple((name, (0.0, *(float(i == k) for i in range(len(names))))) for k, name in enumerate(names))


def own_sums(names: Sequence[str], ranges: Sequence[tuple[str, float, float]], *, single: bool) -> Rows:
    """The sums that others may publish of a family, as far as they follow from the names and ranges of its statistics.

    Parameters
    ----------
    names : sequence of str
        Of the K statistics.
    ranges : sequence of (str, float, float)
        Of statistics t that are scaled to u in [-1, 1], their names and ends: the sum of t is n times the middle plus half the range times
        the sum of u.
    single : bool
        Whether values are single numbers: then a single statistic that is not scaled is their sum.
    """
    rows: Rows = ()
    if ranges:
        rows = tuple(
            (f"sum {name}", (lower / 2 + upper / 2, *((upper - lower) / 2 * a for a in row[1:])))
            for (name, lower, upper), (_, row) in zip(ranges, plain(names), strict=True)
        )
    elif single and len(names) == 1:
        rows = (("sum y", (0.0, 1.0)),)
    return (*rows, *(entry for entry in plain(names) if entry[0] not in dict(rows)))
