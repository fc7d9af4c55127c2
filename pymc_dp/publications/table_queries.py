"""Noisy and exact sums over the cells of one table that nobody published as a whole, as rows of a sparse matrix.

Shapes: n possible cells, m published rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.layout import aligned, in_html, notes_in_html, page, sentences, wrapped
from pymc_dp.publications.labelled import check_labels
from pymc_dp.publications.noises import DiscreteGaussian, DiscreteLaplace, Exact, GaussianNoise, LaplaceNoise, Noise
from pymc_dp.publications.publication import Codebook

if TYPE_CHECKING:
    from scipy.sparse import csr_array

GAUSSIAN, LAPLACE, EQUAL, AT_LEAST, AT_MOST = range(5)
"""Kinds of rows."""
SIGNS = {"=": EQUAL, ">=": AT_LEAST, "<=": AT_MOST}
MOST_CELLS = 1_000_000


@dataclass(frozen=True, eq=False)
class TableQuery:
    """Sums over the cells of a table, as they were published.

    Parameters
    ----------
    values : array
        One axis for each of ``dims``, in their order; NaN where a sum was not published. With a matrix: (rows,).
    law : noise, list of one noise, or Codebook
        ``DiscreteGaussian``, ``GaussianNoise``, ``DiscreteLaplace`` or ``LaplaceNoise``, whose scale may be an array of the shape of
        ``values``; or ``Exact()``.
    dims : tuple of str
        Which dims of the table, or groups of labels of one, are told apart. The sums are over all others; () is the total.
    sign : {"=", ">=", "<="}
        Of ``Exact()`` values: whether the sum is the value, or at least or at most that.
    matrix : array or sparse matrix, optional
        (rows, cells) of the weights of all cells of the table in C order, where the sums are no margins.

    Examples
    --------
    >>> by_sex = pmdp.TableQuery([[10, 12], [7, 3]], pmdp.DiscreteGaussian(2.0), dims=("area", "sex"))
    >>> total = pmdp.TableQuery(31, pmdp.Exact())
    """

    values: Any
    law: Any
    dims: Sequence[str] = ()
    sign: str = "="
    matrix: Any = None

    def __post_init__(self) -> None:
        steps = self.book.steps
        assert isinstance(steps, tuple)
        if len(steps) > 1 or not isinstance(steps[0], DiscreteGaussian | GaussianNoise | DiscreteLaplace | LaplaceNoise | Exact):
            raise Refusal(
                "Sums over one table have Gaussian or Laplace noise, or none, and nothing was done afterwards. Write"
                " TableQuery(values, DiscreteGaussian(2.0)) or TableQuery(values, Exact())."
            )
        if self.sign not in SIGNS or (self.sign != "=" and not isinstance(steps[0], Exact)):
            raise Refusal('A bound is an exact one. Write TableQuery(values, Exact(), sign=">="), or "<=" or "=".')
        if isinstance(steps[0].setting, Variable):
            raise Refusal("A sum over one table needs a scale that is a number. Write TableQuery(values, DiscreteGaussian(2.0)).")
        if np.ma.is_masked(self.values):  # what is masked was not published
            object.__setattr__(self, "values", np.ma.filled(np.ma.asarray(self.values, dtype=float), np.nan))
        if isinstance(self.dims, str):
            raise Refusal(f"dims are a tuple of names. Write dims=({self.dims!r},).")
        object.__setattr__(self, "dims", tuple(self.dims))

    def __repr__(self) -> str:
        """How many sums, of what, and what was done to them."""
        many, by, law, source = self.shown()
        return wrapped(f"TableQuery: {many} {'sum' if many == '1' else 'sums'}, {by}: {law}{f' ({source})' if source else ''}")

    def shown(self) -> tuple[str, str, str, str]:
        """How many sums, over what, what was done to them, and the source, in words."""
        numbers = np.asarray(self.values, dtype=float)
        many = int(np.isfinite(numbers).sum())
        names = " and ".join([", ".join(self.dims[:-1]), *self.dims[-1:]] if len(self.dims) > 1 else self.dims)
        by = "with weights" if self.matrix is not None else f"by {names}" if names else "the total"
        plain = {"=": "exact", ">=": "the true sum is at least this", "<=": "the true sum is at most this"}[self.sign]
        law = plain if isinstance(self.noise, Exact) else self.book.words.replace("by row", "by sum")
        return f"{many:,}" if many == numbers.size else f"{many:,} of {numbers.size:,}", by, law, self.book.source

    @property
    def book(self) -> Codebook:
        """The law, with its source."""
        return self.law if isinstance(self.law, Codebook) else Codebook(self.law)

    @property
    def noise(self) -> Noise:
        """The noise, or ``Exact()``."""
        steps = self.book.steps
        assert isinstance(steps, tuple)
        return steps[0]

    @property
    def kind(self) -> int:
        """The kind of this query's rows: Gaussian, Laplace, or one of the exact kinds."""
        noise = self.noise
        if isinstance(noise, Exact):
            return SIGNS[self.sign]
        return GAUSSIAN if isinstance(noise, DiscreteGaussian | GaussianNoise) else LAPLACE


@dataclass(frozen=True, eq=False)
class Rows:
    """Every published row of a table.

    Attributes
    ----------
    matrix : csr_array
        (m, n), of the possible cells.
    values : np.ndarray
        (m,).
    scales : np.ndarray
        (m,): of the noise; 0 of exact rows.
    kinds : np.ndarray
        (m,): GAUSSIAN, LAPLACE, EQUAL, AT_LEAST or AT_MOST.
    """

    matrix: "csr_array"
    values: np.ndarray
    scales: np.ndarray
    kinds: np.ndarray


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """A table of counts of which sums were published: margins, levels of geography, exact totals and bounds, noisy where they are.

    Parameters
    ----------
    coords : mapping
        Names of the dims of the table and their labels: a cell is a combination of labels.
    queries : sequence of TableQuery
    groups : mapping, optional
        Coarser labels of a dim: ``{"tract": ("block", tract_of_block)}``, in which ``tract_of_block`` has the tract of every block. The
        labels of a group are in the order in which they first occur.
    impossible : array of bool, optional
        Of the shape of the table: cells that are known to be empty (structural zeros).

    Raises
    ------
    Refusal
        Where shapes do not agree, a law is not understood, or exact rows cross each other: of any two exact sums or bounds one must hold
        the other or they must have no cell in common.

    Examples
    --------
    >>> law = pmdp.DiscreteGaussian(2.0)
    >>> table = pmdp.PublishedTable(
    ...     {"block": ["a", "b", "c"], "sex": ["f", "m"]},
    ...     [
    ...         pmdp.TableQuery([[4, 7], [-1, 0], [9, 12]], law, dims=("block", "sex")),
    ...         pmdp.TableQuery([12, 19], law, dims=("tract",)),
    ...         pmdp.TableQuery(30, pmdp.Exact()),
    ...     ],
    ...     groups={"tract": ("block", ["1", "1", "2"])},
    ... )
    >>> table.shape
    (3, 2)
    """

    coords: Mapping[str, Sequence[object]]
    queries: Sequence[TableQuery]
    groups: Mapping[str, tuple[str, Sequence[object]]] = field(default_factory=dict)
    impossible: Any = None

    def __repr__(self) -> str:
        """Dims and groups of the table, and a line for every query."""
        return "\n".join([wrapped(self._size()), *sentences(self._notes(), "  ", "    "), aligned(*self._sums())])

    def _repr_html_(self) -> str:
        return page(f"<p><b>{escape(self._size())}</b></p>", notes_in_html(self._notes()), in_html(*self._sums()))

    def _size(self) -> str:
        return f"PublishedTable of {np.prod(self.shape):,} cells: " + " x ".join(
            f"{dim} ({n:,})" for dim, n in zip(self.coords, self.shape)
        )

    def _notes(self) -> list[tuple[str, str]]:
        """Groups of labels, cells that are empty, and sources."""
        groups = [f"{name} ({len(set(labels)):,}) of {dim}" for name, (dim, labels) in self.groups.items()]
        empty = int(np.prod(self.shape)) - len(self.possible)
        notes = {
            "groups": "; ".join(groups),
            "impossible": f"{empty:,} cells" if empty else "",
            "source": "; ".join(dict.fromkeys(query.book.source for query in self.queries if query.book.source)),
        }
        return [note for note in notes.items() if note[1]]

    def _sums(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Titles, and a line for every query."""
        return ("sums", "which", "what was done"), [query.shown()[:3] for query in self.queries]

    def __post_init__(self) -> None:
        if not self.queries or not all(isinstance(query, TableQuery) for query in self.queries):
            raise Refusal("queries are a list of TableQuery. Write [TableQuery(values, DiscreteGaussian(2.0), dims=('sex',))].")
        if not self.coords or not np.prod(self.shape) or np.prod(self.shape) > MOST_CELLS:
            raise Refusal(f"A table has from 1 to {MOST_CELLS:,} cells. Give coords with labels, and larger tables area by area.")
        for name, (dim, labels) in self.groups.items():
            if name in self.coords or dim not in self.coords or len(labels) != len(self.coords[dim]):
                raise Refusal(
                    f"The group {name} needs a dim of coords and one label for each of its labels. Write {{'tract': ('block', tracts)}}."
                )
        known = {dim: self.labels_of(dim) for dim in (*self.coords, *self.groups)}
        for query in self.queries:
            for what, numbers in (("values", query.values), ("what was done", query.noise)):
                check_labels(f"{what} of a query by {query.dims}", numbers, known, query.dims)
        check_labels("impossible", self.impossible, known, tuple(self.coords))
        for name, (dim, of_group) in self.groups.items():
            check_labels(f"the group {name}", of_group, known, (dim,))
        if self.impossible is not None and np.shape(self.impossible) != self.shape:
            raise Refusal(f"impossible must have the shape of the table, {self.shape}.")

    @property
    def shape(self) -> tuple[int, ...]:
        """How many labels the table has along every dim."""
        return tuple(len(labels) for labels in self.coords.values())

    @property
    def possible(self) -> np.ndarray:
        """(n,): the cells that may hold somebody, as places in C order."""
        every = np.arange(int(np.prod(self.shape)))
        return every if self.impossible is None else every[~np.asarray(self.impossible, dtype=bool).ravel()]

    def labels_of(self, dim: str) -> list[object]:
        """The labels of a dim or group."""
        return list(self.coords[dim] if dim in self.coords else dict.fromkeys(self.groups[dim][1]))

    def level_of(self, dim: str) -> np.ndarray:
        """(cells,): which label of a dim or group every cell of the table has, in C order."""
        if dim not in self.coords and dim not in self.groups:
            raise Refusal(f"{dim} is neither a dim nor a group of the table. These are {', '.join([*self.coords, *self.groups])}.")
        base, labels = (dim, None) if dim in self.coords else self.groups[dim]
        axis = list(self.coords).index(base)
        levels = np.unravel_index(np.arange(int(np.prod(self.shape))), self.shape)[axis]
        if labels is None:
            return levels
        place = {label: k for k, label in enumerate(dict.fromkeys(labels))}
        return np.array([place[label] for label in labels])[levels]

    def margin_of(self, dims: Sequence[str]) -> tuple[np.ndarray, tuple[int, ...]]:
        """(cells,): to which sum of a margin every cell of the table belongs, and the shape of the margin."""
        shape = tuple(len(self.labels_of(dim)) for dim in dims if self.level_of(dim).size)
        place = np.zeros(int(np.prod(self.shape)), dtype=np.int64)
        for dim, many in zip(dims, shape):
            place = place * many + self.level_of(dim)
        return place, shape


def rows_of(table: PublishedTable) -> Rows:
    """All published rows, one query after the other."""
    from scipy.sparse import vstack

    blocks = [_block(table, query) for query in table.queries]
    matrix = vstack([block.matrix for block in blocks], format="csr")[:, table.possible]
    return Rows(
        matrix, *(np.concatenate([getattr(block, name) for block in blocks]) for name in ("values", "scales", "kinds"))
    )  # fmt: skip


def _block(table: PublishedTable, query: TableQuery) -> Rows:
    from scipy.sparse import csr_array

    cells = int(np.prod(table.shape))
    if query.matrix is None:
        place, shape = table.margin_of(query.dims)
        matrix = csr_array((np.ones(cells), (place, np.arange(cells))), shape=(int(np.prod(shape)), cells))
    else:
        matrix = csr_array(query.matrix, dtype=float)
        shape = (matrix.shape[0],)
        if matrix.shape[1] != cells or query.dims:
            raise Refusal(f"The matrix of a query has a column for each of the {cells} cells, and the query then has no dims.")
    values = np.asarray(query.values, dtype=float)
    scales = np.zeros(()) if query.kind >= EQUAL else np.array(query.noise.setting, dtype=float)
    if values.shape != shape or scales.shape not in ((), shape):
        by = f"by {', '.join(query.dims)}" if query.dims else "in all"
        raise Refusal(f"A query {by} has values of shape {values.shape} and scales of shape {scales.shape}. Both need {shape}.")
    known = ~np.isnan(values.ravel())
    scales = np.broadcast_to(scales, shape).ravel()[known]
    _check(query, matrix, values.ravel()[known])
    return Rows(matrix[np.flatnonzero(known)], values.ravel()[known], scales, np.full(int(known.sum()), query.kind))


def _check(query: TableQuery, matrix: "csr_array", values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise Refusal("Published sums are finite numbers, or NaN where none was published.")
    whole = np.array_equal(values, np.rint(values))
    if query.kind >= EQUAL and (not whole or not (matrix.data == 1).all()):
        raise Refusal("Exact sums and bounds are whole numbers of whole cells, weights 0 or 1. Give other sums a noise of small scale.")
    discrete = isinstance(query.noise, DiscreteGaussian | DiscreteLaplace)
    if discrete and not (whole and np.array_equal(matrix.data, np.rint(matrix.data))):
        raise Refusal("Discrete noise leaves whole numbers whole. Write GaussianNoise or LaplaceNoise for values that are not.")
