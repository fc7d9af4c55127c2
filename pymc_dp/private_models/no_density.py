"""Whether the priors put much of their mass where an observed variable has no density, found by ``inspect`` before anything is paid for.

PyMC gives no density to a probability above 1, to a negative rate or spread, or to a covariance that is none. No record is read, nor any
public array of the length of records: covariates are at the ends of their bounds, indices at their levels, and what rests on anything else
is not judged.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.transforms import _default_transform
from pymc.model.fgraph import ModelFreeRV, ModelPotential
from pytensor.graph.basic import Variable, equal_computations
from pytensor.tensor.linalg import Cholesky
from pytensor.tensor.subtensor import AdvancedSubtensor

from pymc_dp.models.spec import Likelihood, ModelSpec, Placeholder
from pymc_dp.models.structure import Unreduced, above, constant_value, index_by_axis, scalar_name, substitute, without_casts
from pymc_dp.plans.bounds import Bounded, covariate_bounds
from pymc_dp.plans.hints import NoDensity
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.private_models.possible import compared, comparisons_of, holds, never_negative
from pymc_dp.private_models.prior_check import DRAWS, drawn_together
from pymc_dp.private_models.rewrite import without_likelihoods

OFTEN = 0.1
"""The share of draws without a density above which something is said."""
MOST_ROWS = 64
"""The most combinations of levels and of ends of bounds at which parameters are computed."""
PARTIAL = ("Log", "Log2", "Log10", "Log1p", "Sqrt", "Pow")
"""Functions that have no value at some negative numbers."""
WORDS = {
    "probability": (
        "a probability of {} is below 0 or above 1", "pm.Beta, pm.Dirichlet for several that add up to 1, or a link such as pm.math.sigmoid"
    ),
    "positive": ("a rate or spread of {} is negative", "pm.HalfNormal, or a link such as pm.math.exp"),
    "covariance": ("a covariance of {} is none, as it is not positive definite", "pm.LKJCholeskyCov"),
    "other": ("a parameter of {} is none that it can have", "priors that keep inside"),
}  # fmt: skip
"""By kind of what is not kept: what is wrong, and what to write instead."""
TOGETHER = (
    "; every combination of {} counts. If some never occur, as of x and 1 - x, of dummies of one factor, or of an array that is written"
    " twice, write one array: p[group] with pm.Data('group', group), or 1 - x within the model"
)
"""Where several private numbers of a record are combined."""


def no_density_by_prior(spec: ModelSpec, bounds: Mapping[str, object]) -> tuple[NoDensity, ...]:
    """Of every observed variable that has no density at more than a tenth of draws from the priors: the share, and what to write instead.

    Nothing is said where a Potential or a transform of the user's own may keep unknowns from there, or where PyMC cannot draw from priors.

    Parameters
    ----------
    spec : ModelSpec
    bounds : mapping
        By name, as the user gave them.
    """
    return _often_none(spec, bounds, spec.likelihoods)


def check_cells(spec: ModelSpec, bounds: Mapping[str, object]) -> None:
    """Refuse a model with cells in which it has no density, whatever the unknowns are or at many draws from the priors.

    Parameters
    ----------
    spec : ModelSpec
    bounds : mapping
        By name, as the user gave them.

    Raises
    ------
    Refusal
    """
    _check_levels(spec, bounds)
    _check_combinations(spec, bounds)


def _check_combinations(spec: ModelSpec, bounds: Mapping[str, object]) -> None:
    """Refuse observed variables that rest on several private numbers of a record and often have no density at a combination of these.

    Every combination is a cell of the private model, which forbids unknowns at which a cell has no density. The user's own model forbids
    them only where records are there, and of ``x`` and ``1 - x``, of dummies of one factor, or of an array that is written twice, there
    are none at most combinations: ``a * x + b * (1 - x)`` would come out with a + b below 1.
    """
    several = [likelihood for likelihood in spec.likelihoods if _combined(likelihood)]
    for found in _often_none(spec, bounds, several):
        raise Refusal(f"{found.variable} cannot be sampled: {found.reason}.")


def _combined(likelihood: Likelihood) -> tuple[str, ...]:
    """The names of the private numbers of a record, if there are several."""
    private = [p for p in likelihood.inputs if p.private and p.axis is not None]
    entries = sum(prod(length or 1 for axis, length in enumerate(p.variable.type.shape) if axis != p.axis) for p in private)
    return tuple(dict.fromkeys(p.name for p in private)) if entries > 1 else ()


def _often_none(spec: ModelSpec, bounds: Mapping[str, object], likelihoods: Sequence[Likelihood]) -> tuple[NoDensity, ...]:
    """Those without a density at more than a tenth of draws from the priors."""
    if any(isinstance(variable.owner.op, ModelPotential) for variable in spec.kept):
        return ()
    conditions = {likelihood.name: _judged(likelihood, bounds) for likelihood in likelihoods if likelihood.refusal is None}
    conditions = {name: several for name, several in conditions.items() if several}
    _, carried = without_likelihoods(spec, conditions) if conditions else (None, {})
    found = []
    for name, several in carried.items():
        try:
            kept = np.array(drawn_together([pt.all(condition) for condition in several]))
        except Exception:  # a prior of the user's own that cannot be drawn from, or draws at which nothing is defined
            continue
        share = float(np.mean(~kept.all(axis=0)))
        if share > OFTEN:
            wrong, instead = WORDS[_kind(conditions[name][int(kept.mean(axis=1).argmin())], conditions[name])]
            where = (
                f"in {share:.0%} of {DRAWS} draws from the priors {wrong.format(name)}, where {name} has no density and chains are stopped"
            )
            names = _combined(next(likelihood for likelihood in likelihoods if likelihood.name == name))
            alone = TOGETHER.format(" and ".join(names)) if names else ""
            found.append(NoDensity(name, share, f"{where}: write {instead}{alone}"))
    return tuple(found)


def _check_levels(spec: ModelSpec, bounds: Mapping[str, object]) -> None:
    """Refuse levels of private covariates at which an observed variable has no density whatever the unknowns are, such as a weight of 2.

    Every cell of such a level is a part of the private model, which has no density then: it would fail after it was paid for. The refusal
    names the levels, which are the user's own.
    """
    for likelihood in spec.likelihoods:
        if likelihood.refusal is not None:
            continue
        for comparison in _judged(likelihood, bounds, private_levels=True):
            unknown = any(v.owner is not None and isinstance(v.owner.op, ModelFreeRV) for v in above([comparison]))
            kept = None if unknown else constant_value(comparison)
            if kept is not None and not np.all(kept):
                named = [p.name for p in likelihood.inputs if p.private and not p.index]
                raise Refusal(
                    f"{likelihood.name} has no density, whatever the unknowns are, at some of the levels of {' and '.join(named)}: a"
                    " probability is below 0 or above 1 there, or a rate or spread is not above 0. Declare in bounds levels at which it has"
                    " a density, or write the model so that it has one at each."
                )


def _judged(likelihood: Likelihood, bounds: Mapping[str, object], *, private_levels: bool = False) -> list[Variable]:
    """What PyMC checks of parameters, does not always hold by the priors, and can be judged without records.

    With ``private_levels`` only what rests on private covariates at the levels that they are counted at.
    """
    try:
        covariates = covariate_bounds(likelihood, bounds)
    except (Refusal, Unreduced):  # the table says what is wrong with them
        covariates = {}
    inputs = likelihood.inputs
    if private_levels:
        inputs = tuple(p for p in inputs if p.private and p.name in covariates and covariates[p.name].levels is not None)
    rows = _rows(likelihood, inputs, covariates)
    comparisons = [substitute(comparison, rows) for comparison in comparisons_of(likelihood, list(likelihood.parameters))]
    unread = {placeholder.variable for placeholder in likelihood.inputs}
    stated = [one for one in comparisons if not unread & set(above([one])) and not _kept_by_transforms(one)]
    return [comparison for comparison in stated if _may_be_none(comparison) or not holds(comparison)]


def _kept_by_transforms(comparison: Variable) -> bool:
    """Whether a transform of the user's own, such as ``ordered``, keeps an unknown from where draws from its prior may lead."""
    unknowns = [v.owner for v in above([comparison]) if v.owner is not None and isinstance(v.owner.op, ModelFreeRV)]
    pairs = [(node.op.transform, node.inputs[0]) for node in unknowns]
    return any(
        transform is not None and type(transform) is not type(_default_transform(random.owner.op, random)) for transform, random in pairs
    )


def _may_be_none(comparison: Variable) -> bool:
    """Whether it compares numbers of something of which there may be none, as the logarithm of a negative number."""
    nodes = [v.owner for v in above([comparison], through_unknowns=False) if v.owner is not None]
    return any(scalar_name(node.op) in PARTIAL and not never_negative(node.inputs[0]) for node in nodes)


def _rows(likelihood: Likelihood, inputs: Sequence[Placeholder], covariates: Mapping[str, Bounded]) -> dict[Variable, Variable]:
    """What stands for records: all combinations of levels and of ends of bounds, or some where these are many; only of what is known."""
    tables = _lengths_of_tables(likelihood)
    choices = {p: _choices(p, covariates.get(p.name), tables.get(p.variable, 1)) for p in inputs}
    known = {placeholder: several for placeholder, several in choices.items() if several}
    of_entries = [options for several in known.values() for options in several]
    if not of_entries:
        return {}
    many = [len(options) for options in of_entries]
    if prod(many) <= MOST_ROWS:
        picks = np.array(list(product(*map(range, many))))
    else:  # multiples of irrational numbers, less whole parts
        parts = np.arange(1, MOST_ROWS + 1)[:, None] * 2.0 ** (np.arange(1, len(many) + 1) / (len(many) + 1)) % 1
        picks = (parts * many).astype(int)
    columns = iter([np.asarray(options)[pick] for options, pick in zip(of_entries, picks.T, strict=True)])
    rows = {}
    for placeholder, several in known.items():
        shape = [length for axis, length in enumerate(placeholder.variable.type.shape) if axis != placeholder.axis]
        values = np.stack([next(columns) for _ in several], axis=-1).reshape([len(picks), *shape])
        values = np.moveaxis(values, 0, placeholder.axis or 0)
        rows[placeholder.variable] = pt.constant(values.astype(placeholder.variable.type.dtype))
    return rows


def _lengths_of_tables(likelihood: Likelihood) -> dict[Variable, int]:
    """Of every index the length of the shortest table that it points into, where that is known."""
    lengths: dict[Variable, int] = {}
    indices = {placeholder.variable for placeholder in likelihood.inputs if placeholder.index}
    for node in (v.owner for v in above([*likelihood.parameters]) if v.owner is not None and isinstance(v.owner.op, AdvancedSubtensor)):
        for axis, entry in enumerate(index_by_axis(node)):
            index = None if isinstance(entry, slice) else without_casts(node.inputs[1 + entry])
            length = constant_value(node.inputs[0].shape[axis]) if index in indices else None
            if index is not None and length is not None:
                lengths[index] = min(int(length), lengths.get(index, int(length)))
    return lengths


def _choices(placeholder: Placeholder, bounded: Bounded | None, length: int) -> list[tuple[float, ...]]:
    """The values at which each of one record's entries is taken; nothing where they are not known without reading."""
    shape = [length for axis, length in enumerate(placeholder.variable.type.shape) if axis != placeholder.axis]
    if placeholder.axis is None or None in shape:
        return []
    many = prod(shape)
    if bounded is not None and bounded.levels is not None:
        return [bounded.levels] * many
    if bounded is not None:
        return list(zip(bounded.lower.ravel(), bounded.upper.ravel(), strict=True))
    if placeholder.index:
        return [tuple(range(placeholder.levels or length))] * many
    return []


def _kind(comparison: Variable, others: Sequence[Variable]) -> str:
    """What kind of number is not such as it must be: a key of ``WORDS``."""
    nodes = [v.owner for v in above([comparison], through_unknowns=False) if v.owner is not None]
    if any(isinstance(getattr(node.op, "core_op", node.op), Cholesky) for node in nodes):
        return "covariance"
    if holds(comparison):  # so it fails where nothing is defined, as the logarithm of a negative number
        return "positive"
    larger, smaller = compared(comparison)
    at_most_1 = [less for more, less in map(compared, others) if _is(more, 1)]
    if _is(larger, 1) or any(equal_computations([larger], [one]) for one in at_most_1):
        return "probability"
    return "positive" if _is(smaller, 0) else "other"


def _is(variable: Variable, number: float) -> bool:
    value = constant_value(variable)
    return value is not None and bool(np.all(np.asarray(value) == number))
