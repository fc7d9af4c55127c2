"""Cells whose records others hold, with the inputs of the likelihood in each cell as they describe them. No record is read."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_dp.models.linear_mean import linear_mean
from pymc_dp.models.reader import read_model
from pymc_dp.models.spec import Likelihood, ModelSpec
from pymc_dp.models.structure import above, substitute
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.releases.cells import cell_inputs
from pymc_dp.releases.statistics import Cells, evaluate


def read_described(
    model: pm.Model, public: Iterable[str], records: Iterable[int], binned: Collection[str]
) -> tuple[ModelSpec, dict[str, tuple[Variable, ...]]]:
    """The model without records, and for every observed variable the expressions that its likelihood's inputs stand for.

    Sums were published by cell: in each a public covariate has one value, which makes its mean another one, and is no feature.
    """
    spec, paths = read_model(model, public, records, binned=binned)
    spec = replace(spec, likelihoods=tuple(_in_cells(likelihood) for likelihood in spec.likelihoods))
    return spec, {name: tuple(path.variable for path in of.inputs) for name, of in paths.items()}


def _in_cells(likelihood: Likelihood) -> Likelihood:
    if likelihood.refusal is not None or (likelihood.linear is None and likelihood.not_linear is None):
        return likelihood
    linear, not_linear = linear_mean(likelihood.distribution, likelihood.parameters, likelihood.inputs, in_cells=True)
    return replace(likelihood, linear=linear, not_linear=not_linear)


def value_in_cells(expression: Variable, cell_values: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """What an expression of public arrays is in cells of which others say what these arrays are there.

    None where it rests on another array: it may hold dummy rows, which say nothing. Where nothing is given, the expression has no axis of
    records, and is what it is in the model.
    """
    if not cell_values:
        return evaluate(expression)
    leaves = [
        leaf for leaf in above([expression]) if leaf.owner is None and (leaf.name in cell_values or getattr(leaf.type, "ndim", 1) > 0)
    ]
    if not leaves or any(leaf.name not in cell_values for leaf in leaves):
        return None
    return evaluate(
        substitute(expression, {leaf: pt.constant(np.asarray(cell_values[str(leaf.name)], dtype=leaf.type.dtype)) for leaf in leaves})
    )


def inputs_of_table(planned: PlannedStatistic, inputs: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """The inputs of a likelihood in all private cells of a single public one, of which ``inputs`` are the public ones."""
    return cell_inputs(planned, Cells(np.zeros(0), np.ones(1), inputs), [False] * len(planned.likelihood.inputs))
