"""The door: the only function that reads records. Inspection and statistics stand before it; all after it sees a Release.

Everything is checked first, then the cost is charged, then the records are read, once, and noise is added before anything
leaves. Nothing about the values can raise, warn, or change the course of the computation.
"""

import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import version
from os.path import dirname

import numpy as np
import pymc as pm

from pymc_dp.accounting import Refusal, check_delta, check_neighbours, exact_epsilon, shares
from pymc_dp.blank import Leaves, dissect
from pymc_dp.boundary import UnaccountedWarning, boundary
from pymc_dp.inspection import Planned, check_unit, in_context, plan
from pymc_dp.mechanisms import Laplace, resolve
from pymc_dp.noisy import NoisyStatistic, Release
from pymc_dp.statistics import Cells, cells, check_overflow, exact_totals, records_of


def release(
    model: pm.Model | None = None,
    *,
    epsilon: object,
    delta: float = 0,
    mechanism: str | Laplace = "laplace",
    bounds: Mapping[str, object] | None = None,
    public: Iterable[object] = (),
    unit: str = "row",
    neighbours: str = "replace",
    weights: Mapping[str, object] | None = None,
    ledger: object = None,
    data: object = None,
) -> Release:
    """Release the noisy sufficient statistics of a model's observed variables, once.

    The result is epsilon-differentially private: for any two data sets that differ in one record, the probability of every
    set of results differs by a factor of at most exp(epsilon). One record is one index of the first axis of the observed
    variables.

    Parameters
    ----------
    model : pm.Model, optional
        The model in context if left out. Its first axis of observed values runs over the records.
    epsilon : int, float, Decimal or Fraction
        Total cost in nats, read as the decimal that was written.
    delta : float
        0; Laplace noise needs none.
    mechanism : "laplace" or Laplace()
    bounds : mapping
        (lower, upper) for every observed variable that needs them, in its own units; values outside are clamped.
    public : list
        What everyone may know: names of ``pm.Data``, of dims (every index into them), ``"<observed>:<k>"`` as ``inspect``
        lists it, or the arrays themselves. It protects what a record says, not which cell it is in.
    unit : str
        What one row stands for, in words; every summary repeats it.
    neighbours : "replace"
        One record is exchanged for another; the number of records is public.
    weights : mapping, optional
        How to share epsilon among several observed variables; equal shares if left out.
    ledger, data
        Not offered yet.

    Returns
    -------
    Release

    Raises
    ------
    Refusal
        When the request cannot be met, before any record is read: the message says what to write instead.
    PrivateComputationError
        When something fails inside; always the same words.
    """
    _warn_that_nothing_remembers()  # before anything is spent: where warnings are errors, nothing is
    return _release(
        model, epsilon=epsilon, delta=delta, mechanism=mechanism, bounds=bounds, public=public, unit=unit, neighbours=neighbours,
        weights=weights, ledger=ledger, data=data,
    )  # fmt: skip


@cache
def _warn_that_nothing_remembers() -> None:
    """Cached, so that it speaks once per process; it points at the user's line, not at ours."""
    message = "Nothing remembers what is spent on these records: keep account of every release yourself."
    warnings.warn(message, UnaccountedWarning, skip_file_prefixes=(dirname(__file__),))


@boundary
def _release(model, *, epsilon, delta, mechanism, bounds, public, unit, neighbours, weights, ledger, data) -> Release:
    if ledger is not None:
        raise Refusal("A ledger is not offered yet. Leave ledger out, and keep account of every release yourself.")
    if data is not None:
        raise Refusal("data= is not offered yet. Leave it out: the records are those that the model observes.")
    total, delta = exact_epsilon(epsilon), check_delta(delta)
    noise, unit, neighbours = resolve(mechanism), check_unit(unit), check_neighbours(neighbours)
    found, leaves = dissect(in_context(model), public)
    steps = plan(found, bounds)
    cost = shares(total, [step.likelihood.name for step in steps], weights)
    scales = [noise.calibrate(step.sensitivity, cost[step.likelihood.name]) for step in steps]
    grouped = [_public_cells(step, leaves[step.likelihood.name]) for step in steps]
    statistics = []
    for step, scale, cell in zip(steps, scales, grouped, strict=True):
        name = step.likelihood.name
        noisy = _noisy(step, leaves[name], cell, noise, scale)
        family = step.family
        names, structure = family.statistics(step.domain), step.likelihood.structure
        released = NoisyStatistic(
            name, family.DISTRIBUTION, structure, names, noisy, cell.n, cell.inputs, step.domain, step.sensitivity, scale, cost[name]
        )
        statistics.append(released)
    versions = {package: version(package) for package in ("pymc_dp", "pymc", "opendp")}
    return Release(tuple(statistics), total, delta, noise.name, unit, neighbours, found.public, versions)


def _public_cells(step: Planned, leaf: Leaves) -> Cells:
    """The cells of one observed variable, from public inputs and the number of records."""
    shape = records_of(leaf.observed, leaf.missing).shape
    if shape[0] == 0:
        raise Refusal(f"{step.likelihood.name} has no records. Observe an array with one entry per record.")
    if shape[1:] != step.likelihood.columns:
        raise Refusal(f"{step.likelihood.name} has other columns than its likelihood. Give it the shape of its likelihood.")
    check_overflow(step.family, step.domain, shape[0])
    return cells(leaf.inputs, shape[0])


def _noisy(step: Planned, leaf: Leaves, cell: Cells, mechanism: Laplace, scale: float) -> np.ndarray:
    """Exact statistics go in and noisy ones come out; the exact ones exist on these lines only."""
    exact = exact_totals(records_of(leaf.observed, leaf.missing), step.family, step.domain, cell)
    return mechanism.draw(exact, scale)
