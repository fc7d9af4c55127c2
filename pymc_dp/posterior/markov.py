"""Draws of a posterior by Markov chains: for any likelihood of single records, private only as far as the chains have converged.

Every draw is the last state of a chain of its own, from a posterior whose likelihood is flattened to what is paid for, and in which
every record's part is clipped to bounds found without looking at records. Nothing else of a chain leaves: neither its other states
nor how it went.
"""

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.distributions.custom import CustomDistRV, CustomSymbolicDistRV
from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.model.fgraph import ModelFreeRV, ModelPotential
from pymc.model.transform.conditioning import change_value_transforms, remove_value_transforms
from pytensor.compile.builders import OpFromGraph
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Shape, Shape_i

from pymc_dp.models.spec import ModelSpec
from pymc_dp.models.structure import above, is_product, is_unknown, scalar_name, substitute
from pymc_dp.models.truncated_priors import is_constrained
from pymc_dp.plans.ranges import Ranges, pieces, ranges
from pymc_dp.plans.rowwise import Rowwise, check_finite, entries_of, norms_of
from pymc_dp.posterior.price import IF_CONVERGED, NAT, READING, Task, cutting_off, priced
from pymc_dp.posterior.records import Reading, log_likelihood
from pymc_dp.posterior.result import Drawn, Prepared, drawn_for
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.files import try_to_write
from pymc_dp.privacy.mechanisms import generator
from pymc_dp.privacy.receipts import Receipt
from pymc_dp.privacy.requests import PosteriorSample
from pymc_dp.private_models.rewrite import without_likelihoods

START = 0.01
"""Chains start this share of an interval's length inside it, or further."""
ROOM = 2**16
"""Bytes that a report may take."""
WHATEVER = {
    *("Elemwise", "CAReduce", "DimShuffle", "Join", "MakeVector", "ScalarFromTensor", "TensorFromScalar", "Softmax", "LogSoftmax"),
    *("LogSumExp", "LogAddExp", "XLogY", "XLog1PY", "CumOp", "SortOp", "Sum", "Prod", "Max", "Min", "All", "Any"),
    *("ModelDeterministic", "ModelNamed", "TensorFromXTensor", "XTensorFromTensor", "XElemwise", "XReduce", "Rename", "Broadcast"),
    *("Transpose", "ExpandDims", "Squeeze", "Concat"),
}  # fmt: skip
"""Operations that have a value, or NaN, whatever they are given."""
PLACED = {"Alloc", "Reshape", "Subtensor", "AdvancedSubtensor", "AdvancedSubtensor1", "SpecifyShape"}
"""Those that have one whatever stands first, if the rest, lengths and places, is known."""


def by_chains(task: Task) -> Prepared:
    """The last states of as many chains as draws are wanted."""
    mechanism, reading = task.mechanism, task.rowwise
    rows, prior = reading.rows, reading.prior
    assert isinstance(mechanism, PosteriorSample)
    check_finite(rows, cutting_off(task))
    if held := next((unknown.name for unknown in rows.unknowns if is_constrained(unknown.variable)), None):
        raise Refusal(
            f"The transform of {held} may keep its values in some order, in which chains do not start. Leave it out and sort"
            " what was drawn."
        )
    _check_total(reading.spec)
    try:
        prior.logp()
    except NotImplementedError:
        raise Refusal("PyMC knows no density of one of the priors. Write pm.Uniform, or another prior with ends of its own.") from None
    if mechanism.report is not None:
        _check_report(mechanism.report)
    clipped = [_clipped(part) for part in reading.parts]
    width = sum(round((most - least) * NAT) for _, least, most in clipped)
    sensitivity = 2 * width if task.neighbours == "replace" else width
    names = [unknown.name for unknown in rows.unknowns]
    starts = _starts(rows, prior)
    price = priced(task, [(", ".join(names), sensitivity, rows.size)])

    def draw(receipt: Receipt) -> Drawn:
        rng = generator(price.draws, receipt)
        total = sum(_total(part, *ends) for part, ends in zip(reading.parts, clipped, strict=True))
        flattened, moved = without_likelihoods(reading.spec, {"likelihood": [total / price.temperature]})
        with flattened:
            pm.Potential("likelihood", moved["likelihood"][0])
        flattened = _within_ends(flattened, rows)
        with flattened, pytensor.config.change_flags(numba__cache=False):
            tree = pm.sample(
                mechanism.steps, tune=mechanism.tune, chains=max(mechanism.draws, 2), cores=1, random_seed=rng, nuts_sampler="pymc",
                progressbar=False, quiet=True, compute_convergence_checks=False, initvals=starts, var_names=names,
            )  # fmt: skip
        if tree["posterior"].sizes["draw"] < mechanism.steps:  # PyMC keeps what it has when it is interrupted
            raise KeyboardInterrupt
        if mechanism.report is not None:
            _report(Path(mechanism.report), tree, names)
        values = {name: tree["posterior"][name].values[: mechanism.draws, -1] for name in names}
        facts = {"reading": READING, "tune": mechanism.tune, "steps": mechanism.steps}
        return drawn_for(task, reading.spec, prior, values, price, IF_CONVERGED, intervals=rows.intervals, facts=facts)

    return Prepared(reading.spec, price, IF_CONVERGED, draw, reading.shown, intervals=rows.intervals)


def _clipped(reading: Reading) -> tuple[Ranges, float, float]:
    """The ranges of a record's log-likelihood, and the two ends that it is clipped to."""
    rows, public = reading.rows, reading.public
    bounds = ranges(rows, pieces(entries_of(rows, public.arrays), public.shared, norms_of(rows)))
    return bounds, float(np.rint(NAT * bounds.least.min())) / NAT, float(np.rint(NAT * bounds.most.max())) / NAT


def _total(reading: Reading, bounds: Ranges, least: float, most: float) -> Variable:
    """The clipped log-likelihood of all records, as a function of the model's unknowns. It holds the records."""
    rows, exact = reading.rows, reading.exact()
    reference = np.zeros(reading.public.many) if bounds.reference is None else log_likelihood(rows, exact)(bounds.reference[None])[0]
    shared = {variable: pytensor.shared(array, name=f"records_{k}") for k, (variable, array) in enumerate(exact.items())}
    records = [pytensor.shared(np.nan_to_num(reference), name="records_at_reference"), *shared.values()]
    return _log_likelihood(rows, list(shared), least, most)(*[unknown.variable for unknown in rows.unknowns], *records)


def _check_total(spec: ModelSpec) -> None:
    """Refuse priors and Potentials that may fail at some values of unknowns: whether a chain comes there rests on the records, and would
    show. Deterministics are computed from what was drawn, and not by chains.
    """
    rests: dict[Variable, bool] = {}
    for variable in spec.kept:
        if not isinstance(variable.owner.op, ModelFreeRV | ModelPotential):
            continue
        for part in above([variable.owner.inputs[0]], through_unknowns=False):
            if part.owner is not None and not _has_a_value(part.owner, rests):
                raise Refusal(
                    f"{variable.owner.op.name} goes through {type(part.owner.op).__name__}, which may fail at some values of unknowns."
                    " Whether a chain fails would tell of records. Write it with plain arithmetic, and check what was drawn."
                )


def _has_a_value(node: Apply, rests: dict[Variable, bool]) -> bool:
    """Whether an operation cannot fail because of the values of unknowns; of distributions, whether the density is PyMC's own."""
    if isinstance(node.op, ModelFreeRV | RandomVariable | SymbolicRandomVariable):
        return not isinstance(node.op, CustomDistRV | CustomSymbolicDistRV)
    unknown = [_rests_on_values(operand, rests) for operand in node.inputs]
    name = type(node.op).__name__
    if name in PLACED:
        return not any(unknown[1:])
    whole_quotient = scalar_name(node.op) in ("IntDiv", "Mod") and "float" not in str(node.outputs[0].type.dtype)
    return not any(unknown) or ((name in WHATEVER or is_product(node.op)) and not whole_quotient)


def _rests_on_values(variable: Variable, known: dict[Variable, bool]) -> bool:
    """Whether a variable rests on values of unknowns, and not on their shapes alone; ``known`` collects answers."""
    if variable not in known:
        node = variable.owner
        shape = node is not None and isinstance(node.op, Shape | Shape_i)
        known[variable] = node is not None and not shape and (is_unknown(variable) or any(_rests_on_values(v, known) for v in node.inputs))
    return known[variable]


def _within_ends(model: pm.Model, rows: Rowwise) -> pm.Model:
    """The model with the transforms that keep chains within the ends of priors that were cut off."""
    transforms = {unknown.name: unknown.transform for unknown in rows.unknowns if unknown.transform is not None}
    return change_value_transforms(model, {model[name]: transform for name, transform in transforms.items()}) if transforms else model


def _starts(rows: Rowwise, prior: pm.Model) -> dict[str, np.ndarray] | None:
    """Where chains start: as PyMC would start them, moved into the intervals of priors that were cut off. It rests on no record."""
    if not rows.intervals:
        return None
    cut_off = [unknown for unknown in rows.unknowns if unknown.name in rows.intervals]
    plain = remove_value_transforms(prior, [prior[unknown.name] for unknown in cut_off])
    point, starts = plain.initial_point(), {}
    for unknown in cut_off:
        value = np.asarray(point[plain.rvs_to_values[plain[unknown.name]].name], dtype=float)
        low, high = unknown.lower.reshape(unknown.shape), unknown.upper.reshape(unknown.shape)
        starts[unknown.name] = np.clip(value, low + START * (high - low), high - START * (high - low))
    return starts


def _log_likelihood(rows: Rowwise, inputs: list[Variable], least: float, most: float) -> OpFromGraph:
    """The log-likelihood of all records as an operation of the unknowns, the reference (N,) and the records.

    Every record's part is clipped, and what is no number becomes the least. So does its gradient become 0: a chain whose moves rest on
    any gradient keeps its law, and one record cannot stop it.
    """
    reference = pt.vector("reference", dtype="float64")

    def total(unknowns: list[Variable], reference: Variable, records: list[Variable]) -> Variable:
        by_record = substitute(rows.density, dict(zip([*rows.stand_ins, *inputs], [*unknowns, *records], strict=True))) - reference
        return pt.clip(pt.switch(pt.isnan(by_record), least, by_record), least, most).sum()

    def pullback(arguments: list[Variable], _: list[Variable], outer: list[Variable]) -> list[Variable]:
        unknowns, (reference, *records) = list(arguments[: len(rows.stand_ins)]), arguments[len(rows.stand_ins) :]
        likelihood = total(unknowns, reference, records)
        gradients = pytensor.grad(likelihood, unknowns, disconnected_inputs="ignore")
        finite = [pt.switch(pt.isnan(g) | pt.isinf(g), 0.0, g) * outer[0] for g in gradients]
        return [*finite, *(disconnected_type() for _ in (reference, *records))]

    stand_ins = [stand_in.type() for stand_in in rows.stand_ins]
    records = [variable.type() for variable in inputs]
    # Nothing is differentiated by records, and by an index among them it could not be.
    connected = [[True]] * len(stand_ins) + [[False]] * (1 + len(records))
    arguments = [*stand_ins, reference, *records]
    return OpFromGraph(arguments, [total(stand_ins, reference, records)], pullback=pullback, connection_pattern=connected)


def _check_report(report: str | PathLike[str]) -> None:
    """See that the report could be written, before anything is paid for."""
    try:
        try_to_write(Path(report), ROOM)
    except (OSError, TypeError, ValueError):
        raise Refusal(
            "The report cannot be written there. Write the path of a file in a folder that is there and writeable, on a disk with room."
        ) from None


def _report(path: Path, tree: Any, names: list[str]) -> None:
    """How the chains went, for whoever holds the records."""
    import arviz as az

    diagnostics = az.summary(tree, var_names=names, kind="diagnostics").to_dict("index")
    warning = "Computed from the records: not private, and not to be released."
    path.write_text(json.dumps({"warning": warning, "parameters": diagnostics}, indent=2, default=float))
