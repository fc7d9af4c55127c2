"""Unknowns from the prior, or as the user assumes them -> records from the user's own likelihoods."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
import pytensor
from pymc.model.fgraph import ModelFreeRV

from pymc_dp.models.spec import Likelihood, ModelSpec, Placeholder
from pymc_dp.models.truncated_priors import is_constrained
from pymc_dp.planning.covariates import simulated_covariates
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.private_models.predictive import drawn_on
from pymc_dp.private_models.predictive_rows import Rows, with_parents
from pymc_dp.private_models.rewrite import without_likelihoods
from pymc_dp.releases.simulated import ByInput, PublicSide

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False)
class Simulated:
    """Records that are nobody's.

    Attributes
    ----------
    observed : mapping of str to ndarray
    inputs : mapping of str to tuple of ndarray
        For every observed variable all inputs of its likelihood, public ones as they are.
    """

    observed: Mapping[str, np.ndarray]
    inputs: ByInput


def planned_records(side: PublicSide, records: object) -> dict[str, int]:
    """How many records every observed variable is to have.

    Raises
    ------
    Refusal
        Where their number is private and not said, or where what is public has another length.
    """
    names = [likelihood.name for likelihood in side.spec.likelihoods]
    if records is None:
        if not side.records:
            rows = "rows that count" if side.protection.person is not None else "records"
            raise Refusal(f"The number of {rows} is private, so it cannot be looked up. Write records=, the number to plan for.")
        return dict(side.records)
    if isinstance(records, bool) or not isinstance(records, int | np.integer) or records < 1:
        raise Refusal("records must be a positive whole number. Write for example records=1000.")
    for likelihood in side.spec.likelihoods:
        if side.records.get(likelihood.name) == records:
            continue
        fixed = [placeholder.name for placeholder in likelihood.inputs if not placeholder.private and placeholder.axis is not None]
        if likelihood.aggregate or fixed:
            what = f"{fixed[0]} is public, and has one entry for each of them" if fixed else "every row is a total of its own"
            raise Refusal(f"records={records} is not the number of records of this model, and {what}. Leave records out.")
    return dict.fromkeys(names, int(records))


def simulated_unknowns(spec: ModelSpec, assuming: Mapping[str, object], simulations: int, rng: np.random.Generator) -> "xr.Dataset":
    """Values of all unknowns, of dims (chain, draw, ...): those assumed, and the others from the priors given them.

    Raises
    ------
    Refusal
        Where a prior cannot be drawn from, or an assumed value has no place.
    """
    import xarray as xr

    priors, _ = without_likelihoods(spec, {})
    names = [name for name in spec.order if name in {variable.name for variable in priors.free_RVs}]
    shapes = priors.eval_rv_shapes()
    values = {name: _assumed(name, value, names, shapes) for name, value in assuming.items()}
    rest = [name for name in names if name not in values]
    drawn: list[np.ndarray] = []
    free = [v for v in spec.kept if isinstance(v.owner.op, ModelFreeRV) and not hasattr(v.owner.inputs[0].type, "dims")]
    if held := next((v.owner.op.name for v in free if v.owner.op.name in rest and is_constrained(v)), None):
        raise Refusal(
            f"The transform of {held} says more of it than its prior does, such as an order, and draws from the prior do not keep to that."
            f" Write assuming={{{held!r}: ...}}."
        )
    if rest:
        with_assumed = pm.do(priors, {priors[name]: value for name, value in values.items()}) if values else priors
        try:
            with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
                drawn = pm.draw([with_assumed[name] for name in rest], draws=simulations, random_seed=rng)
        except Exception:
            raise Refusal(
                f"The priors of {', '.join(rest)} cannot be drawn from together. Write assuming={{{rest[0]!r}: ...}}, and so for others."
            ) from None
    points = {name: np.broadcast_to(value, (simulations, *value.shape)) for name, value in values.items()}
    points |= {name: np.reshape(value, (simulations, *shapes[name])) for name, value in zip(rest, drawn, strict=True)}
    data = {name: (("chain", "draw", *(f"{name}_axis_{k}" for k in range(points[name].ndim - 1))), points[name][None]) for name in names}
    return xr.Dataset(data, coords={"chain": [0], "draw": np.arange(simulations)})


def _assumed(name: str, value: object, names: list[str], shapes: Mapping[str, tuple[int, ...]]) -> np.ndarray:
    """An assumed value in the shape of its unknown."""
    if name not in names:
        raise Refusal(f"assuming names {name!r}, which is no unknown of this model. Write names of {', '.join(map(repr, names))}.")
    shape = tuple(int(length) for length in shapes[name])
    try:
        return np.broadcast_to(np.asarray(value, dtype=float), shape).copy()
    except (TypeError, ValueError):
        raise Refusal(f"assuming[{name!r}] must be a number, or numbers of shape {shape}.") from None


def simulated_records(
    side: PublicSide, truth: "xr.Dataset", laws: Mapping[str, object], records: Mapping[str, int], rng: np.random.Generator
) -> Simulated:
    """Private covariates from their laws, and observed variables from their likelihoods given those and one draw of the unknowns."""
    covariates, spec = simulated_covariates(side, laws, records, rng), side.spec
    ordered = with_parents(spec, [likelihood.name for likelihood in spec.likelihoods], {})
    for likelihood in ordered:
        if likelihood.again is None:
            raise Refusal(
                f"{likelihood.name} is {likelihood.distribution}, which cannot be drawn from its parameters, so nothing is planned."
            )
    rows = [_rows(side, likelihood, covariates, records[likelihood.name]) for likelihood in ordered]
    drawn = drawn_on(truth, rows, int(rng.integers(2**31)))
    observed = {likelihood.name: np.array(drawn[likelihood.name].values[0, 0]) for likelihood in ordered}
    inputs = {
        likelihood.name: tuple(
            public if public is not None else _typed((observed | covariates)[placeholder.name], placeholder)
            for placeholder, public in zip(likelihood.inputs, side.inputs[likelihood.name], strict=True)
        )
        for likelihood in ordered
    }
    return Simulated(observed, inputs)


def _rows(side: PublicSide, likelihood: Likelihood, covariates: Mapping[str, np.ndarray], length: int) -> Rows:
    """What the placeholders of a likelihood stand for, but for those of parents, which are drawn."""
    values = {}
    for placeholder, public in zip(likelihood.inputs, side.inputs[likelihood.name], strict=True):
        if not placeholder.parent:
            values[placeholder.variable] = public if public is not None else _typed(covariates[placeholder.name], placeholder)
    return Rows(likelihood, values, length, f"{likelihood.name}_record", {})


def rows_for(side: PublicSide, likelihood: Likelihood, laws: Mapping[str, object], many: int, rng: np.random.Generator) -> list[Rows]:
    """Some rows of a likelihood and of those of its parents that are observed, to draw from: of what is public, at most so many records.

    Raises
    ------
    Refusal
        Where a law cannot be drawn from.
    """
    ordered = with_parents(side.spec, [likelihood.name], {})
    lengths = {
        array.shape[placeholder.axis]
        for member in ordered
        for placeholder, array in zip(member.inputs, side.inputs[member.name], strict=True)
        if array is not None and placeholder.axis is not None
    } - {1}
    length = min(lengths, default=many)
    picked = np.linspace(0, length - 1, min(length, many)).astype(int)
    inputs = {
        member.name: tuple(
            array if array is None or p.axis is None or array.shape[p.axis] == 1 else np.take(array, picked, axis=p.axis)
            for p, array in zip(member.inputs, side.inputs[member.name], strict=True)
        )
        for member in ordered
    }
    fewer = replace(side, inputs=dict(side.inputs) | inputs)
    covariates = simulated_covariates(fewer, laws, dict.fromkeys(inputs, len(picked)), rng)
    return [_rows(fewer, member, covariates, len(picked)) for member in ordered]


def _typed(array: np.ndarray, placeholder: Placeholder) -> np.ndarray:
    return array.astype(placeholder.variable.type.dtype)
