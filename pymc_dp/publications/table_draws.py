"""``sample_table``: draws of a table of counts given all published sums of it. Every draw meets all exact ones.

Shapes: C chains, D draws, n possible cells, m published rows.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.cell_prior import CellPrior
from pymc_dp.publications.publication import PROMISE
from pymc_dp.publications.table_bounds import Hard, hard_rows, nearest_table
from pymc_dp.publications.table_queries import AT_LEAST, AT_MOST, EQUAL, PublishedTable, Rows, rows_of

if TYPE_CHECKING:
    import xarray as xr

    from pymc_dp.publications.table_prior import CellLaw

MOST_NUMBERS = 200_000_000
"""Counts in all draws that are kept."""


type Margin = tuple[np.ndarray, tuple[str, ...], tuple[int, ...]]
"""(n,) the sum to which a cell belongs; the dims; the shape."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A published table, made ready for the moves: all arrays that the loops take."""

    table: PublishedTable
    rows: Rows
    hard: Hard
    arrays: dict[str, Any]


def problem_of(table: PublishedTable) -> Problem:
    """Rows by cell, near cells by dim, and cells in the same exact sums."""
    rows = rows_of(table)
    hard = hard_rows(rows)
    by_cell = rows.matrix.tocsc()
    scales = np.where(rows.kinds < EQUAL, rows.scales, 1.0)
    places = table.possible
    cell_at = np.full(int(np.prod(table.shape)), -1)
    cell_at[places] = np.arange(len(places))
    many = np.bincount(hard.classes)
    arrays = {
        "columns": (by_cell.indptr.astype(np.int64), by_cell.indices.astype(np.int64), by_cell.data.astype(float)),
        "noise": (rows.kinds.astype(np.int64), 1 / scales**2, 1 / scales),
        "grid": _grid(table),
        "places": places,
        "cell_at": cell_at,
        "alike": (np.argsort(hard.classes, kind="stable"), np.cumsum(many) - many, many, hard.classes),
    }
    return Problem(table, rows, hard, arrays)


def _grid(table: PublishedTable) -> tuple[np.ndarray, ...]:
    """For every dim all labels as near ones of each other, and for every group those in the same group, in flat arrays."""
    sizes = np.array(table.shape)
    strides = np.append(np.cumprod(sizes[::-1])[-2::-1], 1).astype(np.int64)
    dims = list(table.coords)
    systems = [(dims.index(dim), np.zeros(size, dtype=np.int64)) for dim, size in zip(dims, table.shape)]
    for dim, labels in table.groups.values():
        systems.append((dims.index(dim), np.unique([str(label) for label in labels], return_inverse=True)[1]))
    counts = [np.bincount(label) for _, label in systems]
    return (
        strides, sizes, np.array([axis for axis, _ in systems]),
        np.cumsum([0] + [len(label) for _, label in systems[:-1]]),
        np.concatenate([label for _, label in systems]),
        np.concatenate([np.argsort(label, kind="stable") for _, label in systems]),
        np.concatenate([np.cumsum(many) - many for many in counts]),
        np.concatenate(counts),
        np.cumsum([0] + [len(many) for many in counts[:-1]]),
    )  # fmt: skip


class Chain:
    """One chain: a table x (n,) that meets all exact rows, and what is left of the published sums."""

    def __init__(self, problem: Problem, rng: np.random.Generator, start: np.ndarray) -> None:
        self.problem, self.rng = problem, rng
        self.x = nearest_table(problem.hard, start)
        self.residual = problem.rows.values - problem.rows.matrix @ self.x
        starts = problem.arrays["columns"][0]
        longest = 4 * int(np.diff(starts).max(initial=0)) + 1
        rows = len(self.residual)
        self.work = (
            np.zeros(rows), np.empty(longest, np.int64), np.empty(2 * longest), np.empty(longest), np.empty(longest), np.empty(2),
        )  # fmt: skip

    def sweep(self, law: "CellLaw") -> None:
        """Moves from every cell, under a law of the cells."""
        from pymc_dp.publications.table_moves import sweep

        arrays = self.problem.arrays
        sweep(
            self.rng, self.x, self.residual, arrays["columns"], arrays["noise"], law.parts, arrays["grid"], arrays["places"],
            arrays["cell_at"], arrays["alike"], self.work,
        )  # fmt: skip


def least_squares(rows: Rows) -> np.ndarray:
    """(n,): numbers >= 0 whose sums are nearest to the published ones, weighted by precision; exact ones weigh most. Not whole."""
    from scipy.optimize import minimize

    values, noisy = rows.values, rows.kinds < EQUAL
    precisions = np.zeros(len(values))
    precisions[noisy] = 1 / rows.scales[noisy] ** 2
    precisions[rows.kinds == EQUAL] = 10 * precisions.max(initial=0.1)
    across = rows.matrix.T.tocsr()

    def misfit(x: np.ndarray) -> tuple[float, np.ndarray]:
        left = rows.matrix @ x - values
        for kind, sign in ((AT_LEAST, -1), (AT_MOST, 1)):
            bound = rows.kinds == kind
            precisions[bound] = 10 * precisions.max(initial=0.1) * (sign * left[bound] > 0)
        weighted = precisions * left
        return 0.5 * float(left @ weighted), across @ weighted

    start = np.full(rows.matrix.shape[1], max(float(values.max(initial=1.0)), 1.0) / max(rows.matrix.shape[1], 1))
    return minimize(misfit, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(start), options={"maxiter": 300}).x


def sample_table(
    table: PublishedTable,
    draws: int = 500,
    *,
    tune: int = 200,
    chains: int = 2,
    thin: int = 1,
    prior: CellPrior | str | None = None,
    keep: Sequence[Sequence[str]] | None = None,
    name: str = "count",
    random_seed: int | None = None,
) -> "xr.DataTree":
    """Draws of a table of counts given every published sum of it: whole, not negative, and in agreement with every exact row.

    Parameters
    ----------
    table : PublishedTable
    draws, tune, chains, thin : int
        Kept of every chain; sweeps before these; chains; sweeps for each draw.
    prior : CellPrior or "flat", optional
        By default ``CellPrior()``, which learns how uneven the table is. "flat" means that every table is as probable before; where most
        cells are nearly empty it makes their sums too large.
    keep : sequence of tuple of str, optional
        Margins that are kept: ``[("tract",), ("tract", "sex")]``, named ``count_tract`` and ``count_tract_sex``. By default the whole
        table, named ``count``; () is the total, ``count_total``.
    name : str
        Of the table in the result.
    random_seed : int, optional

    Returns
    -------
    DataTree
        Group ``posterior``: the table, or margins of it, as int64 with dims chain, draw and those of the table. Group ``privacy``: laws
        and sources of the queries, and whose promise they are.

    Raises
    ------
    Refusal
        Where no table meets the exact rows, or nothing says how large a cell may be.

    Notes
    -----
    Gibbs moves of whole records between cells by slice sampling, so that nothing is tuned. The likelihood is exact: discrete noise stays
    discrete. Look at R-hat: sums that are published far more precisely than their parts need more sweeps.

    Examples
    --------
    >>> law = pmdp.DiscreteGaussian(2.0)
    >>> queries = [pmdp.TableQuery([[4, 7], [9, 12]], law, dims=("area", "sex")), pmdp.TableQuery(30, pmdp.Exact())]
    >>> table = pmdp.PublishedTable({"area": ["a", "b"], "sex": ["f", "m"]}, queries)
    >>> tree = pmdp.sample_table(table, draws=50, tune=20, random_seed=1)
    >>> set(tree.posterior["count"].sum(("area", "sex")).values.ravel().tolist())
    {30}
    """
    problem = problem_of(table)
    margins = _margins(table, keep, name)
    _check(problem, prior, [draws, chains, thin, tune], margins)
    start = least_squares(problem.rows)
    kept = {margin: np.empty((chains, draws, int(np.prod(shape))), dtype=np.int64) for margin, (_, _, shape) in margins.items()}
    unknowns = {"shape": np.full((chains, draws), np.nan), "mean": np.full((chains, draws), np.nan)}

    def drawn_by(chain: int, rng: np.random.Generator) -> None:
        state = Chain(problem, rng, start * rng.gamma(10, 0.1, len(start)))
        law, factors = _law(table, prior, state)
        for k in range(-tune, draws * thin):
            state.sweep(law)
            if factors is not None:
                factors.update(rng, state.x)
                law = factors.law
            if k >= 0 and k % thin == 0:
                for margin, (place, _, shape) in margins.items():
                    kept[margin][chain, k // thin] = np.bincount(place, weights=state.x, minlength=int(np.prod(shape)))
                if factors is not None:
                    unknowns["shape"][chain, k // thin], unknowns["mean"][chain, k // thin] = factors.shape, factors.level

    with ThreadPoolExecutor() as pool:  # each chain has its own generator, so that their order does not matter
        list(pool.map(drawn_by, range(chains), np.random.default_rng(random_seed).spawn(chains)))
    return _tree(table, margins, kept, unknowns if prior != "flat" else {})


def _law(table: PublishedTable, prior: CellPrior | str | None, state: Chain) -> tuple["CellLaw", Any]:
    from pymc_dp.publications.table_prior import Factors, even

    if prior == "flat":
        return even(len(state.x)), None
    factors = Factors(table, prior if isinstance(prior, CellPrior) else CellPrior(), state.rng, state.x)
    factors.update(state.rng, state.x)
    return factors.law, factors


def _margins(
    table: PublishedTable, keep: Sequence[Sequence[str]] | None, name: str
) -> dict[str, tuple[np.ndarray, tuple[str, ...], tuple[int, ...]]]:
    if keep is None:
        place, shape = table.margin_of(tuple(table.coords))
        return {name: (place[table.possible], tuple(table.coords), shape)}
    result = {}
    for dims in ((dims,) if isinstance(dims, str) else tuple(dims) for dims in keep):
        place, shape = table.margin_of(dims)
        result[f"{name}_{'_'.join(dims) or 'total'}"] = (place[table.possible], dims, shape)
    return result


def _check(problem: Problem, prior: CellPrior | str | None, numbers: list[int], margins: dict[str, Margin]) -> None:
    if min(numbers[:3]) < 1 or numbers[3] < 0:
        raise Refusal("draws, chains and thin are at least 1, and tune at least 0. Write sample_table(table, draws=500, tune=200).")
    if numbers[0] * numbers[1] * sum(int(np.prod(shape)) for _, _, shape in margins.values()) > MOST_NUMBERS:
        raise Refusal(f"The draws would hold more than {MOST_NUMBERS:,} counts. Keep margins, such as keep=[('tract',)], or fewer draws.")
    if prior == "flat":
        rows = problem.rows
        lowest = rows.matrix.min(axis=1).toarray().ravel()
        ends = (lowest >= 0) & (rows.kinds != AT_LEAST)
        if not ((rows.matrix[np.flatnonzero(ends)] != 0).sum(axis=0) > 0).all():
            raise Refusal("A cell is in no published sum that ends it, so that a flat prior has no posterior. Write prior=CellPrior().")
    elif prior is not None and not isinstance(prior, CellPrior):
        raise Refusal('prior is CellPrior() or "flat". Write sample_table(table, prior=pymc_dp.CellPrior()).')


def _tree(table: PublishedTable, margins: dict[str, Margin], kept: dict[str, np.ndarray], unknowns: dict[str, np.ndarray]) -> "xr.DataTree":
    import xarray as xr

    data: dict[str, Any] = {}
    for margin, (_, dims, shape) in margins.items():
        data[margin] = (("chain", "draw", *dims), kept[margin].reshape(*kept[margin].shape[:2], *shape))
    coords = {dim: table.labels_of(dim) for _, dims, _ in margins.values() for dim in dims}
    hyper = {f"cell_{unknown}": (("chain", "draw"), values) for unknown, values in unknowns.items()}
    books = [query.book for query in table.queries]
    columns = {
        "law": [book.words if query.sign == "=" else f"{query.sign}, {book.words}" for book, query in zip(books, table.queries)],
        "source": [book.source for book in books],
        "declared": [book.promise for book in books],
    }
    promise = {"promise": PROMISE}
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs=promise),
            "posterior": xr.Dataset(data | hyper, coords=coords, attrs=promise),
            "privacy": xr.Dataset({name: (("query",), np.asarray(values, dtype=str)) for name, values in columns.items()}, attrs=promise),
        }
    )
