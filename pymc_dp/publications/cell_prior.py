"""The prior of a published table: cell means are products over dims, and cells vary about these.

The count of cell c is Poisson with mean level g_c u_1 u_2 ..., a factor u for every label combination of each term, and g_c for the cell
itself. A factor of a term is Gamma(alpha, alpha), of mean 1, with an alpha of its own from a grid, whose points have unknown shares in each
term; g_c is Gamma(shape, shape) with log shape uniform. So what was published says how uneven areas are, whether a few are unlike the
others, and how far cells are from a product.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.layout import as_written
from pymc_dp.publications.table_queries import PublishedTable

MOST_JOINT = 200
"""So many label combinations of dims are a term of their own by default."""


@dataclass(frozen=True, eq=False, repr=False)
class CellPrior:
    """The prior of a table: means that are products over terms, and cells that differ from these by a gamma factor.

    Parameters
    ----------
    terms : sequence of tuple of str, optional
        Dims and groups whose label combinations have a factor each. By default every dim and group; every pair of these of which neither
        belongs to the other; and all dims together that have no group, where they have up to 200 combinations.
    level : (float, float)
        Shape and rate of the gamma prior of the mean of a cell.

    Notes
    -----
    A Poisson-gamma model with multiplicative gamma factors; means are not released numbers but unknowns that are drawn along.

    Examples
    --------
    >>> pmdp.CellPrior(terms=[("block",), ("sex", "age")]).terms
    (('block',), ('sex', 'age'))
    """

    terms: Sequence[Sequence[str]] | None = None
    level: tuple[float, float] = (0.5, 1e-4)
    __repr__ = as_written

    def __post_init__(self) -> None:
        if self.terms is not None:
            object.__setattr__(self, "terms", tuple((term,) if isinstance(term, str) else tuple(term) for term in self.terms))
        if len(self.level) != 2 or not min(self.level) > 0:
            raise Refusal("level is the shape and the rate of a gamma prior, both positive. Write CellPrior(level=(0.5, 0.0001)).")


def terms_of(table: PublishedTable) -> list[tuple[str, ...]]:
    """The terms of a table of which none were said."""
    sizes = dict(zip(table.coords, table.shape))
    grouped = {dim for dim, _ in table.groups.values()}
    terms: list[tuple[str, ...]] = []
    terms += [(dim,) for dim, size in sizes.items() if size > 1]
    terms += [(group,) for group in table.groups]
    terms += [(group, dim) for group, (base, _) in table.groups.items() for dim, size in sizes.items() if dim != base and size > 1]
    # Some areas have people of one kind only: men who are in prison, students.
    terms += [(base, dim) for base in sizes if base in grouped for dim, size in sizes.items() if dim not in grouped and size > 1]
    plain = tuple(dim for dim, size in sizes.items() if dim not in grouped and size > 1)
    for many in range(2, len(plain) + 1):
        for joint in combinations(plain, many):
            if many < len(sizes) and np.prod([sizes[dim] for dim in joint]) <= MOST_JOINT:
                terms.append(joint)
    return terms
