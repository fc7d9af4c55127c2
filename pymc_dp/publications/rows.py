"""Rows of observed variables: taken out of a copy of the model, and observed again under the law of what was published."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.counts import log_counts
from pymc_dp.publications.events import Events, events_of
from pymc_dp.publications.noises import Step
from pymc_dp.publications.observed import observed_numbers
from pymc_dp.publications.predicted import Draws, drawn_anew, drawn_given, publisher
from pymc_dp.publications.ratios import NoisyRatio
from pymc_dp.publications.reals import check_real, log_given_latent, log_reals, needs_latent
from pymc_dp.publications.truths import check_truth

ABSENT = "_absent"
"""Ends the name of the rows of a variable that were not published."""
TRUE = "_true"
"""Ends the name of the true numbers of a variable, where they are unknowns."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of an observed variable: their distribution, the numbers of all rows, which of these are meant, and how they are named."""

    name: str
    of: str
    published: np.ndarray
    chosen: np.ndarray | None
    dims: tuple[str | None, ...] | None


def rows_of(clone: pm.Model, name: str, values: np.ndarray | None) -> list[Rows]:
    """The rows of a variable: all of them, or, where PyMC set those with missing values apart, those that were published and the others."""
    split = f"{name}_observed" in clone.named_vars and is_split(clone, f"{name}_observed")
    observed = clone[f"{name}_observed" if split else name]
    numbers = np.asarray(observed_numbers(clone, observed), dtype=float)
    if not split:
        if values is not None and values.shape != numbers.shape:
            raise Refusal(
                f"{name} has values of shape {values.shape}, and rows of shape {numbers.shape} in the model. Give one for every row."
            )
        return [Rows(name, name, numbers if values is None else values, None, clone.named_vars_to_dims.get(name))]
    joined = clone[name]
    while joined.owner is not None and len(joined.owner.inputs) == 1:
        joined = joined.owner.inputs[0]
    there: Any = np.asarray(joined.owner.inputs[-1].eval()) if joined.owner is not None else np.zeros(0)
    if there.dtype != bool or there.sum() != numbers.size:
        raise Refusal(f"PyMC has put the missing values of {name} together in a way that is not understood. Give it in values=.")
    forget(clone, name)
    whole = np.full(there.shape, np.nan)
    whole[there] = numbers
    return [
        Rows(name, f"{name}_observed", whole, there, None),
        Rows(f"{name}{ABSENT}", f"{name}_unobserved", whole, ~there, None),
    ]


def forget(model: pm.Model, name: str) -> Variable:
    """Take a variable out of a model: its distribution is all that is left of it."""
    variable = model.named_vars.pop(name)
    model.named_vars_to_dims.pop(name, None)
    for group in (model.free_RVs, model.observed_RVs, model.deterministics):
        if any(other is variable for other in group):
            group.remove(variable)
    value = model.rvs_to_values.pop(variable, None)
    if value is not None:
        model.values_to_rvs.pop(value, None)
        if value.name in model.named_vars and value not in model.data_vars:
            model.named_vars.pop(value.name)
    model.rvs_to_transforms.pop(variable, None)
    model.rvs_to_initial_values.pop(variable, None)
    return variable


def taken_out(clone: pm.Model, name: str) -> Variable:
    """Take the observed variable out of a model, or refuse one that has no law for every number."""
    random = forget(clone, name)
    operation = random.owner.op
    if hasattr(random.type, "dims"):
        raise Refusal(f"{name} is a distribution of pymc.dims. Write it with pm. and dims=.")
    if type(operation).__name__ == "MinibatchRandomVariable":
        raise Refusal(f"{name} is observed in minibatches. Give all its rows, without total_size.")
    if getattr(operation, "ndim_supp", 0):
        raise Refusal(
            f"{name} is multivariate, and one law for every number is all that is understood. Write it as rows of single numbers."
        )
    return random


def in_clone(step: Step, model: pm.Model, clone: pm.Model) -> Step:
    """A step whose scale is a variable of the model, with that of the copy in its place."""
    scale = getattr(step, "scale", None)
    if not isinstance(scale, Variable):
        return step
    above = list(ancestors([scale]))
    replaced = {
        variable: clone[variable.name] for variable in above if variable.name in clone.named_vars and variable in model.named_vars.values()
    }
    if not any(variable in model.basic_RVs for variable in above):
        raise Refusal("The scale of a noise is a variable, but not of this model. Write it inside the model's with block, with a prior.")
    [copied] = graph_replace([scale], replaced, strict=False)
    return type(step)(copied, step.largest)  # type: ignore[call-arg, attr-defined]


@dataclass(frozen=True, eq=False)
class Read:
    """Published rows: their distribution, the events that they are, whether the truth is whole, and what was done to it."""

    rows: Rows
    random: Variable
    events: Events
    whole: bool
    steps: tuple[Step, ...] = ()


def read(model: pm.Model, clone: pm.Model, name: str, steps: Sequence[Step], values_by_name: Mapping[str, np.ndarray]) -> list[Read]:
    """Take an observed variable out of a copy of the model; what was published of it, as events."""
    result = []
    for rows in rows_of(clone, name, values_by_name.get(name)):
        if rows.chosen is not None and not rows.chosen.any():
            raise Refusal(f"Of {name} no number was published. Leave it out of the model.")
        random = taken_out(clone, rows.of)
        whole = is_whole(random)
        cloned_steps = tuple(in_clone(step, model, clone) for step in steps)
        events = events_of(name, rows.published, cloned_steps, rows.chosen, whole)
        check_whole(name, events, whole, values_by_name)
        if whole:
            check_truth(name, random, events)
        result.append(Read(rows, random, events, whole, cloned_steps))
    return result


def is_whole(variable: Variable) -> bool:
    """Whether a variable counts."""
    return variable.type.dtype.startswith(("int", "uint", "bool"))


def check_whole(name: str, events: Events, whole: bool, values_by_name: Mapping[str, np.ndarray]) -> None:
    """Refuse noise on counts that is on real numbers where PyMC has made whole ones of these, and the other way round."""
    if not whole:
        check_real(name, events)
    elif (
        not events.noise.whole
        and name not in values_by_name
        and ((events.low == events.high).any() or isinstance(events.noise, NoisyRatio))
    ):
        raise Refusal(
            f"{name} counts, so PyMC made whole numbers of what it observes, and {events.noise.words} gives real ones. Give the published"
            f" numbers beside the model: published(model, laws, values={{{name!r}: numbers}})."
        )


def truth_of(read: Read) -> Variable | None:
    """The true numbers, as unknowns of the model in context, where they cannot be summed out."""
    return as_unknown(read.rows, read.random) if not read.whole and needs_latent(read.random, read.events) else None


def log_rows(read: Read, truth: Variable | None) -> Variable:
    """Log-probability of all published rows, given the true numbers or summed over them."""
    name, events = read.rows.name, read.events
    if truth is not None:
        return log_given_latent(name, truth, events)
    return log_counts(name, read.random, events, events.low.shape) if read.whole else log_reals(name, read.random, events)


def observe_alone(read: Read) -> Variable:
    """Add published rows on which nothing else rests to the model in context, in such a way that others can be drawn like them."""
    truth, published = truth_of(read), publisher(read.steps, read.events.setting)
    draws = drawn_anew(read.random, published) if truth is None else drawn_given(truth, published)
    return observe(read, log_rows(read, truth), draws)


def observe(read: Read, row: Variable, draws: Draws | None = None) -> Variable:
    """Add the published rows as an observed variable of the model in context, each with its log-probability."""
    rows, events, shape = read.rows, read.events, read.events.low.shape
    known = rows.published if rows.chosen is None else rows.published[rows.chosen]
    shown = np.where(np.isnan(known), np.where(np.isfinite(events.high), events.high, 0.0), known)
    drawn = {} if draws is None else {"random": draws.draw, "signature": f"(),{draws.signature}->()"}
    parameters = () if draws is None else draws.parameters
    return pm.CustomDist(
        rows.name, row + np.zeros(shape), *parameters, logp=as_computed, observed=shown, dims=rows.dims,
        shape=None if rows.dims else shape, **drawn,
    )  # fmt: skip


def as_computed(value: Variable, row: Variable, *parameters: Variable) -> Variable:
    """The log-probability of a row or a record, which was computed beforehand from what was published of it."""
    return row


def as_unknown(rows: Rows, random: Variable) -> Variable:
    """The true numbers as unknowns of the model in context."""
    return pm.modelcontext(None).register_rv(random, f"{rows.name}{TRUE}", dims=rows.dims)


def is_split(model: pm.Model, name: str) -> bool:
    """Whether PyMC made this variable of one with missing values."""
    base = name.removesuffix("_observed")
    return base != name and base in model.named_vars and f"{base}_unobserved" in model.named_vars
