"""``release``, the one function that reads records for a private model.

Everything is checked first, then the cost is charged, then the records are read, once, and noise is added before anything
leaves. Nothing about the values can raise, warn, or change the course of the computation.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.metadata import version
from typing import Any

import numpy as np
import pymc as pm

from pymc_dp.models.level_labels import labels_of_axes, texts_of_levels
from pymc_dp.models.reader import read_model
from pymc_dp.models.spec import RecordPaths
from pymc_dp.plans.disjoint import check_same_records
from pymc_dp.plans.division import Divided
from pymc_dp.plans.network import Network, Node
from pymc_dp.plans.person import Person, key_column, key_of
from pymc_dp.plans.plan import Plan, planned_release
from pymc_dp.plans.protection import Individual, Protection, protection_of, warn_of_weak_promises, with_records
from pymc_dp.privacy.accounting import Cost, Weights, exact_delta, exact_epsilon
from pymc_dp.privacy.calls import explained
from pymc_dp.privacy.guard import boundary
from pymc_dp.privacy.ledger import Ledger, Part, check_ledger, receipt_for
from pymc_dp.privacy.mechanisms import Fourier, Mechanism, resolve
from pymc_dp.privacy.receipts import Draw, Receipt
from pymc_dp.releases.cells import PublicCells, public_cells_of
from pymc_dp.releases.division import shares_of
from pymc_dp.releases.from_data import (
    check_declared,
    check_rounds,
    check_tables,
    columns_read,
    sized_by,
    source_of,
    summed,
    sums_of,
    tables_over,
    with_records_of,
)  # fmt: skip
from pymc_dp.releases.headers import alone
from pymc_dp.releases.network_tables import (
    by_coefficients,
    coefficients_draw,
    exact_tables,
    from_child,
    shared_tables,
    shift_of,
)  # fmt: skip
from pymc_dp.releases.persons import rows_that_count
from pymc_dp.releases.prepared import PreparedRelease, check_doubles
from pymc_dp.releases.progress import check_progressbar
from pymc_dp.releases.release import Release
from pymc_dp.releases.rounds import Read, in_rounds, reader_after, reader_of
from pymc_dp.releases.shared_plan import sums_of_parts
from pymc_dp.releases.source import Elsewhere, Source
from pymc_dp.releases.spread import Spread


@explained
def release(
    model: pm.Model | None = None,
    *,
    epsilon: object,
    delta: float = 0,
    mechanism: str | Mechanism = "laplace",
    bounds: Mapping[str, object] | None = None,
    public: Iterable[object] = (),
    unit: str | Individual | Person = "row",
    neighbours: str = "replace",
    missing: Mapping[str, object] | Iterable[str] | None = None,
    disjoint: Iterable[object] | bool | None = None,
    weights: Weights = None,
    ledger: Ledger | Part | None = None,
    data: object = None,
    progressbar: bool = False,
) -> Release:
    """Release the noisy sufficient statistics of a model's observed variables, once.

    The result is (epsilon, delta)-differentially private: for any two neighbouring data sets, the probability of every set of
    results differs by a factor of at most exp(epsilon), and by delta besides. A record is one row: one index along the first axis of
    the observed variables. ``sample`` releases and samples in one call; ``rewrite`` makes a private model of a release.

    Parameters
    ----------
    model : pm.Model, optional
        The model in context if left out. Its first axis of observed values runs over the records.
    epsilon : int, float, Decimal or Fraction
        The total cost in nats: the smaller, the more private. 0.1 to 1 is a strong promise. Read as the decimal that was written.
    delta : float
        0 for Laplace noise; above 0 for Gaussian noise, for example 1e-6.
    mechanism : "laplace", "gaussian", "fourier", Laplace(), Gaussian(delta=...) or Fourier(nonnegative=...)
        The noise. "fourier" is for Bayesian networks.
    bounds : mapping
        ``{"age": (0, 100)}`` for every observed variable that needs bounds and every private covariate, in their own units, or a set of
        levels, ``{"treated": {0, 1}}``; values outside are clamped to the nearest. ``inspect`` says which are needed. "logit(y)" and
        "log(y)" bound the linear predictor of y, which opts in to an approximate likelihood (docs/theory.md).
    public : list
        Arrays that everyone may know: names of ``pm.Data``, of dims (every index into them), ``"<observed>:<k>"`` as ``inspect``
        lists it, or the arrays themselves. Where an index is public, what a record says is protected, not which cell it is in.
    unit : str, Individual or Person
        What one row stands for, in words: your claim, which every summary repeats as yours. ``Person("patient_id", at_most=5)`` protects
        all rows of a person who has several; "individual" or ``Individual`` protects one individual where rows are totals.
    neighbours : "replace" or "add_remove"
        "replace": one record is exchanged for another, and the number of records is public. "add_remove": a record is added or removed,
        and the number of records is private.
    missing : mapping or list, optional
        What missing values count as, by name of an observed variable or a private covariate: "left out" (a list of names says the same),
        or a level that the variable can have. {} says that none are missing. What is not named counts as the middle of its bounds where
        it is missing, and intervals do not allow for that.
    disjoint : list or True, optional
        Observed variables of different people, such as the arms of a trial: names, ``["treated", "control"]``, a list of such lists, or
        True for all. Each then gets all of epsilon instead of a share. That no person has records in two of them is your claim,
        which every summary repeats as yours; in which of them a person is stays visible.
    weights : mapping or "equal", optional
        How to divide epsilon (rho with Gaussian noise) among several observed variables, ``{"income": 2, "vote": 1}``. If left out, such
        that expected posteriors are narrowest; ``inspect(model, epsilon=...)`` shows how. Disjoint ones count as one and have one weight.
    ledger : Ledger, optional
        The budget of this data set, or a part of it, which is charged before a record is read. Without one nothing remembers
        what was spent.
    data : DataFrame, pyarrow.Table, table of DuckDB, xarray.Dataset, or path, pattern, list or directory of Parquet files, optional
        The records, where the model observes only placeholders: columns are named as its observed variables and ``pm.Data``, and hold
        numbers or labels of the model's dims. They are read in blocks, once in every round of noise; DataFrames of dask and Spark are
        summed by their workers (docs/large_data.md).
    progressbar : bool
        Whether your terminal shows how many rows of ``data`` were read. Where their number is private, let nobody else see the bar: it is
        not part of the release. It is written to no notebook, file or log.

    Returns
    -------
    Release

    Raises
    ------
    Refusal
        When the request cannot be met, before any record is read: the message says what to write instead.
    PrivateComputationError
        When something fails inside. Its words are always the same, because an error could reveal a record.

    Examples
    --------
    >>> released = pmdp.release(model, epsilon=1.0)
    >>> released["vote"].statistics, released["vote"].noisy.shape
    (('ones',), (1, 1))
    """
    protection = protection_of(
        bounds=bounds, public=public, unit=unit, neighbours=neighbours, missing=missing, disjoint=disjoint, persons=True
    )
    return prepared(
        model, protection, epsilon=epsilon, delta=delta, mechanism=mechanism, weights=weights, ledger=ledger, data=data,
        progressbar=check_progressbar(progressbar, data),
    ).pay_and_draw()  # fmt: skip


def prepared(
    model: pm.Model | None, protection: Protection, *, epsilon: object, delta: float = 0, mechanism: str | Mechanism = "laplace",
    weights: Weights = None, ledger: Ledger | Part | None = None, data: object = None, progressbar: bool = False,
) -> PreparedRelease:  # fmt: skip
    """Everything of a release that can be refused, with one reading of the model; see ``release`` for the arguments."""
    warn_of_weak_promises(
        model, lambda: resolve(mechanism).total(exact_epsilon(epsilon), exact_delta(delta)), protection, elsewhere=data is not None
    )
    return _checked(model, protection, epsilon, delta, mechanism, weights, ledger, data, progressbar)


@boundary
def _checked(
    model: pm.Model | None, protection: Protection, epsilon: object, delta: object, mechanism: object, weights: Weights,
    ledger: object, data: object, progressbar: bool,
) -> PreparedRelease:  # fmt: skip
    """Read the model, plan, and refuse whatever can be refused. No record is read, and nothing is paid."""
    check_doubles()
    ledger = check_ledger(ledger)
    noise, neighbours = resolve(mechanism), protection.neighbours
    total = noise.total(exact_epsilon(epsilon), exact_delta(delta))
    meant = with_records(model)
    spec, paths = read_model(meant, protection.public, aggregate=protection.aggregate, sized=protection.sized, binned=protection.binned)
    source = None
    if data is not None:
        check_declared(protection)
        source = source_of(meant, columns_read(meant, spec, paths, protection), data, key_column(spec, protection.person))
        if isinstance(noise, Fourier):
            check_tables(source, "Fourier coefficients")
        spec = sized_by(spec, source, protection)
    whole = planned_release(spec, protection)
    at_most = None if protection.person is None else protection.person.at_most
    if protection.person is not None and source is None:
        key = key_of(meant, spec, protection.person)
        paths = {name: replace(path, key=key) for name, path in paths.items()}
    priced = priced_of(whole, paths, noise, total, weights, source)
    draws = priced.draws

    @boundary
    def pay() -> Receipt:
        return receipt_for(ledger, total, draws, neighbours=neighbours, unit=protection.unit, public=spec.public)

    @boundary
    def finish(receipt: Receipt, exact: Mapping[str, np.ndarray] | None, again: Read | None = None) -> Release:
        return released(priced, paths, noise, receipt, exact, again)

    @boundary
    def sums(opened: Sequence[PublicCells]) -> dict[str, np.ndarray]:
        assert source is not None
        if isinstance(source.table, Spread):
            return sums_of_parts(opened, source, protection.sized, sums_of, at_most)
        with alone(source.table):
            return summed(opened, source, at_most, sized=protection.sized, progressbar=progressbar)

    @boundary
    def pay_and_draw() -> Release:
        receipt = pay()
        if source is None:
            return finish(receipt, None)
        if isinstance(noise, Fourier) and priced.network is not None:
            with alone(source.table):
                tables = tables_over(priced.opened, priced.network, source, sized=protection.sized, progressbar=progressbar)
            return finish(receipt, tables)
        return finish(receipt, sums(priced.released), lambda cells: sums([cells])[cells.name])

    crowds, columns = tuple(cells.crowd for cells in priced.opened), {} if source is None else source.columns
    return PreparedRelease(
        priced.plan, crowds, ledger is not None, pay_and_draw, pay, finish, tuple(priced.released), columns, priced.parts
    )


@dataclass(frozen=True, eq=False)
class Priced:
    """What will be released, cell by cell, and what every drawing of noise costs. It holds nothing from a record.

    Attributes
    ----------
    plan : Plan
    noise : Mechanism
    total : Cost
    network : Network or None
    opened : list of PublicCells
        One per observed variable.
    covered : dict of str to Node
        Observed variables that are not released by themselves, with the node whose table holds their counts.
    costs : list of Cost
        Of every observed variable that is released by itself; one where all are released together.
    draws : list of Draw
    shift : int or None
        See ``shift_of``.
    versions : dict of str to str
        Of packages, for the release to say.
    shares : dict of str to Fraction
        Of the cost, of every observed variable that is released by itself.
    """

    plan: Plan
    noise: Mechanism
    total: Cost
    network: Network | None
    opened: list[PublicCells]
    covered: Mapping[str, Node]
    costs: list[Cost]
    draws: list[Draw]
    shift: int | None
    versions: dict[str, str]
    shares: Mapping[str, Fraction]

    @property
    def released(self) -> list[PublicCells]:
        """The observed variables that are released by themselves."""
        return [cells for cells in self.opened if cells.name not in self.covered]

    @property
    def parts(self) -> tuple[Divided, ...]:
        """How the cost is divided among them; nothing where all are released together."""
        if len(self.costs) < len(self.released):
            return ()
        left, parts = iter(self.draws), []
        for cells in self.released:
            rounds = [next(left) for _ in cells.shares]
            draw = rounds[0 if cells.residuals else -1]
            noise = self.noise.noise(draw.scale, cells.planned.lattice / cells.points)
            parts.append(Divided(cells.name, self.shares[cells.name], noise.standard_deviation))
        return tuple(parts)


def priced_of(
    whole: Plan, paths: Mapping[str, RecordPaths], noise: Mechanism, total: Cost, weights: Weights,
    source: Source | None = None,
) -> Priced:  # fmt: skip
    """Cells and prices of what is planned, or a refusal. Of the arrays at these paths only those that are public, and shapes, are read.

    With a source the arrays are placeholders, and the number of records is that of the source.
    """
    neighbours = whole.protection.neighbours
    network, unlike, covered = shared_tables(whole, noise)
    opened = [public_cells_of(planned, paths[planned.likelihood.name]) for planned in whole.statistics]
    if source is not None:
        opened = [with_records_of(cells, source) for cells in opened]
    released = [cells for cells in opened if cells.name not in covered]
    if source is not None:
        check_rounds(released, source)
    if isinstance(noise, Fourier):
        if source is None and not whole.protection.sized:
            check_same_records(whole.spec)
        draws, costs = [coefficients_draw(network, unlike, weights, noise, total, neighbours)], [total]
        parts: dict[str, Fraction] = {}
    else:
        parts = shares_of(released, weights, whole.disjoint, noise, total, network)
        group_of = {name: group for group in whole.disjoint for name in group}
        costs = [noise.share(total, parts[cells.name]) for cells in released]
        if source is None or not isinstance(source.table, Elsewhere):
            staged = {cells.name: cells.in_stages(noise, cost) for cells, cost in zip(released, costs, strict=True)}
            opened, released = [staged.get(cells.name, cells) for cells in opened], list(staged.values())
        draws = [d for cells, cost in zip(released, costs, strict=True) for d in cells.draws(noise, cost, group_of.get(cells.name, ()))]
    versions = {package: version(package) for package in ("pymc_dp", "pymc", "opendp")}
    return Priced(whole, noise, total, network, opened, covered, costs, draws, shift_of(noise, network, total, neighbours), versions, parts)


def released(
    priced: Priced, paths: Mapping[str, RecordPaths], noise: Any, receipt: Receipt, exact: Mapping[str, np.ndarray] | None = None,
    again: Read | None = None,
) -> Release:  # fmt: skip
    """Read the records, and add noise before anything leaves; ``exact`` are sums over records that are not in the model.

    Of Fourier coefficients they are those of ``tables_over``. What needs several rounds looks at such records ``again``. The noise that is
    drawn is the one that was priced; where no record is anybody's, an imitation of it, with a seed (``simulated``).
    """
    whole, network = priced.plan, priced.network
    if isinstance(priced.noise, Fourier) and network is not None:
        tables = exact_tables(priced.opened, paths, network) if exact is None else exact
        statistics = by_coefficients(priced.opened, tables, network, noise, priced.total, priced.draws[0], priced.shift, receipt)
    else:
        statistics, left = {}, iter(priced.draws)
        if exact is None:
            read = reader_of(paths, rows_that_count(whole.spec.likelihoods, paths, whole.protection.person))
        else:
            read = reader_after(exact, again)
        for cells, cost in zip(priced.released, priced.costs, strict=True):
            rounds = [next(left) for _ in cells.shares]
            statistics[cells.name] = in_rounds(cells, read, noise, rounds, cost, receipt)
        for cells in priced.opened:
            if cells.name in priced.covered and network is not None:
                holder = priced.covered[cells.name]
                statistics[cells.name] = from_child(cells, statistics[holder.variable], network, holder, noise)
    labels = labels_of_axes(whole.spec)
    in_order = tuple(
        replace(statistics[name], labels=texts_of_levels(likelihood, labels), named=tuple(array.name for array in likelihood.inputs))
        for name, likelihood in ((cells.name, cells.planned.likelihood) for cells in priced.opened)
    )
    declared = (str(whole.protection.unit), whole.protection.neighbours, whole.spec.public)
    return Release(
        in_order, priced.total, noise.name, *declared, receipt.head, priced.versions, network, whole.missing, whole.disjoint
    )  # fmt: skip
