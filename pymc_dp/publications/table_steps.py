"""A PyMC model on top of a published table: the table is an unknown of the model, and a step method draws it by moves of whole records.

The rest of the model sees a table of counts, as if it had been published exactly, and is drawn by whatever PyMC takes for it.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.step_methods.compound import BlockedStep, StepMethodState
from pymc.step_methods.state import dataclass_state
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import NegBinomialRV, PoissonRV

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.noises import Step
from pymc_dp.publications.publication import Codebook, Noted
from pymc_dp.publications.table_queries import AT_LEAST, EQUAL, GAUSSIAN, LAPLACE, PublishedTable, rows_of

SUMS = "_sums"
"""Ends the name of the published sums of a variable."""
TINY = 1e-250


@dataclass(frozen=True, eq=False)
class TableSums(Step):
    """What was done to the sums of a table, for the group ``privacy``."""

    table: PublishedTable

    @property
    def words(self) -> str:
        """In words: every law once."""
        laws = dict.fromkeys(query.book.words if query.sign == "=" else f"{query.sign} bounds" for query in self.table.queries)
        return f"sums over one table: {'; '.join(laws)}"


def book_of(table: PublishedTable) -> Codebook:
    """The laws and sources of a table's queries as one."""
    sources = dict.fromkeys(query.book.source for query in table.queries if query.book.source)
    promises = dict.fromkeys(query.book.promise for query in table.queries if query.book.promise)
    return Codebook(TableSums(table), "; ".join(sources), "; ".join(promises))


def add_table(name: str, latent: str, random: Variable, dims: tuple[str | None, ...] | None, table: PublishedTable) -> None:
    """The table as an unknown of the model in context, and the published sums as observed."""
    from pymc_dp.publications.table_bounds import hard_rows, nearest_table
    from pymc_dp.publications.table_draws import least_squares

    if not isinstance(random.owner.op, PoissonRV | NegBinomialRV):
        raise Refusal(f"A table that was published as sums is Poisson or NegativeBinomial, and {name} is neither. Write pm.Poisson.")
    if len(table.possible) < np.prod(table.shape):
        raise Refusal(f"The model gives every cell of {name} a chance. Leave impossible out, and give empty cells a mean near 0.")
    model, rows = pm.modelcontext(None), rows_of(table)
    start = nearest_table(hard_rows(rows), least_squares(rows)).reshape(table.shape)
    true = model.register_rv(random, latent, dims=dims, initval=start)
    flat = true.astype("float64").ravel()
    sums = pt.stack([pt.zeros(())]) if not len(rows.values) else _times(rows.matrix, flat)
    pm.CustomDist(
        f"{name}{SUMS}", sums, np.where(rows.kinds < EQUAL, rows.scales, 1.0), rows.kinds.astype("int64"), logp=_log_sums,
        observed=rows.values, shape=rows.values.shape,
    )  # fmt: skip


def _times(matrix: Any, flat: Variable) -> Variable:
    """(m,): a constant sparse matrix times a vector: gathered and added up, which every backend of PyTensor compiles."""
    entries = matrix.tocoo()
    return pt.inc_subtensor(pt.zeros(matrix.shape[0])[entries.coords[0]], flat[entries.coords[1]] * entries.data)


def _log_sums(value: Variable, sums: Variable, scale: Variable, kind: Variable) -> Variable:
    """Log-probability of the published sums up to a constant of theirs."""
    left = value - sums
    noise = pt.switch(pt.eq(kind, GAUSSIAN), -0.5 * (left / scale) ** 2, -pt.abs(left) / scale)
    met = pt.switch(pt.eq(kind, EQUAL), pt.eq(left, 0), pt.switch(pt.eq(kind, AT_LEAST), pt.le(left, 0), pt.ge(left, 0)))
    return pt.switch(pt.le(kind, LAPLACE), noise, pt.switch(met, 0.0, -np.inf))


@dataclass_state
class TableState(StepMethodState):
    """Nothing is tuned."""


class TableStep(BlockedStep):
    """Draws a published table given the rest of the model, by sweeps of moves that leave its posterior as it is."""

    name = "published_table"
    default_blocked = True
    default_tune_steps = 0
    stats_dtypes_shapes: ClassVar[dict[str, Any]] = {"moved": (np.float64, [])}
    tune = False
    _state_class = TableState

    def __init__(self, variables: Any, model: pm.Model, table: PublishedTable, sweeps: int = 2, rng: Any = None) -> None:
        from pymc_dp.publications.table_draws import problem_of

        [latent] = variables
        self.vars = [model.rvs_to_values[latent]]
        self.problem, self.sweeps = problem_of(table), sweeps
        self.chain: Any = None
        self.rng, self.is_poisson = np.random.default_rng(rng), isinstance(latent.owner.op, PoissonRV)
        parameters = model.replace_rvs_by_values([pt.broadcast_to(p, latent.shape) for p in latent.owner.op.dist_params(latent.owner)])
        self.parameters = model.compile_fn(parameters, point_fn=True, on_unused_input="ignore")

    def set_rng(self, rng: Any) -> None:
        """The generator of a chain."""
        self.rng, self.chain = np.random.default_rng(rng), None

    def setup_chain(self, rng: Any, tune: int = 0, draws: int = 0) -> None:
        """A chain begins."""
        self.set_rng(rng)

    def step(self, point: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], list[dict[str, float]]]:
        """The table anew, given everything else at a point."""
        from pymc_dp.publications.table_draws import Chain

        name = str(self.vars[0].name)
        before = np.asarray(point[name], dtype=np.int64)
        if self.chain is None:
            self.chain = Chain(self.problem, self.rng, before.ravel().astype(float))
        chain = self.chain
        law = self._law(point)
        for _ in range(self.sweeps):
            chain.sweep(law)
        table = chain.x.reshape(before.shape).astype(np.asarray(point[name]).dtype)
        return point | {name: table}, [{"moved": float(np.abs(table - before).sum())}]

    def _law(self, point: dict[str, np.ndarray]) -> Any:
        from pymc_dp.publications.table_prior import mixed, poisson

        values = [np.maximum(np.asarray(parameter, dtype=float).ravel(), TINY) for parameter in self.parameters(point)]
        if self.is_poisson:
            return poisson(values[0])
        return mixed(np.maximum(values[0] * (1 - values[1]) / values[1], TINY), values[0])


def tables_of(publication: Noted) -> dict[str, PublishedTable]:
    """The tables of which sums were published, by name."""
    return {name: book.steps[0].table for name, book in publication.rows.items() if is_table(book)}  # type: ignore[index]


def is_table(book: Codebook) -> bool:
    """Whether sums over a table were published."""
    return isinstance(book.steps, tuple) and isinstance(book.steps[0], TableSums)


def table_steps(model: pm.Model, sweeps: int = 2) -> list[TableStep]:
    """Steps for ``pm.sample`` that draw the published tables of a model, which ``pymc_dp.sample`` takes by itself.

    Parameters
    ----------
    model : pm.Model
        What ``published`` gave.
    sweeps : int
        Of moves from every cell, in each step.

    Returns
    -------
    list of TableStep
        One for every published table: ``pm.sample(model=public, step=pmdp.table_steps(public))``.

    Raises
    ------
    Refusal
        Where the model has no published table.

    Examples
    --------
    >>> with pm.Model() as truth:
    ...     people = pm.Poisson("people", pm.Gamma("rate", 2, 0.1), shape=2, observed=[0, 0])
    >>> queries = [pmdp.TableQuery([12, 31], pmdp.DiscreteGaussian(3.0), dims=("area",)), pmdp.TableQuery(40, pmdp.Exact())]
    >>> public = pmdp.published(truth, {"people": pmdp.PublishedTable({"area": ["a", "b"]}, queries)})
    >>> [step.name for step in pmdp.table_steps(public)]
    ['published_table']
    """
    publication = getattr(model, "publication", None)
    tables = tables_of(publication) if isinstance(publication, Noted) else {}
    if not tables:
        raise Refusal("This model has no published table. Write published(model, {'people': PublishedTable(coords, queries)}).")
    with model:
        return [TableStep([model[f"{name}_true"]], model, table, sweeps) for name, table in tables.items()]
