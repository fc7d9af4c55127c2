"""Random variables of ``pymc.dims``, whose axes have names, translated to those of PyTensor, which the rest of this folder reads."""

import pytensor.tensor as pt
import pytensor.xtensor as px
from pymc.distributions.transforms import _default_transform
from pymc.model.fgraph import ModelDeterministic, ModelFreeRV, ModelVar
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph, Output
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph

from pymc_dp.models.same_arrays import constant_length
from pymc_dp.models.structure import above, is_wrapping


def lowered(random: Variable, graph: FunctionGraph) -> Variable:
    """A random variable with named axes as one of PyTensor's own, on the model's own variables."""
    variables = [v for v in above([random], through_unknowns=False) if v.owner is not None and isinstance(v.owner.op, ModelVar)]
    variables = [v for v in variables if not isinstance(v.owner.op, ModelDeterministic)]
    copies = [variable.type() for variable in variables]
    plain = rewrite_graph(clone_replace(random, dict(zip(variables, copies, strict=True))), include=("lower_xtensor",))
    originals: dict[Variable, Variable] = dict(zip(copies, variables, strict=True))
    for part in above([plain]):
        # Lengths of the unknowns' dims, which named arrays do not carry in their types.
        if part.owner is not None and is_wrapping(part.owner.op) and part.owner.inputs[0] in originals:
            variable = originals[part.owner.inputs[0]]
            lengths = [constant_length(graph._dim_lengths[dim]) if dim else None for dim in variable.owner.op.dims]
            if isinstance(variable.owner.op, ModelFreeRV) and None not in lengths:
                originals[part] = pt.specify_shape(part.owner.op(variable), lengths)
    while is_wrapping(plain.owner.op):
        plain = plain.owner.inputs[0]
    # The new graph belongs to nobody else, so its nodes are rewired; cloning would clone the unknowns, too.
    for part in [v for v in above([plain], through_unknowns=True) if v not in originals.values()]:
        if part.owner is not None and part not in variables:
            part.owner.inputs = [originals.get(operand, operand) for operand in part.owner.inputs]
    return plain


def lower_priors(graph: FunctionGraph) -> None:
    """Put priors of PyTensor's own in place of those with named axes: how they vary is read of plain ones only."""
    for node in graph.toposort():
        variable = node.outputs[0]
        if not isinstance(node.op, ModelFreeRV) or not hasattr(variable.type, "dims"):
            continue
        random = lowered(variable.owner.inputs[0], graph)
        for part in above([random]):  # PyTensor has no derivatives through named constants
            if part.owner is not None:
                part.owner.inputs = [_unnamed(operand) for operand in part.owner.inputs]
        operation = ModelFreeRV(name=node.op.name, dims=node.op.dims, transform=_default_transform(random.owner.op, random))
        plain = operation(random, random.type(node.inputs[1].name))
        named = px.as_xtensor(plain, dims=variable.type.dims)
        for client, place in list(graph.clients[variable]):
            replacement = plain if isinstance(client.op, Output) else named
            graph.change_node_input(client, place, replacement, import_missing=True, check=False)


def _unnamed(variable: Variable) -> Variable:
    """A constant without names of dims, where a named one was turned into one."""
    wrapped = variable.owner is not None and is_wrapping(variable.owner.op) and isinstance(variable.owner.inputs[0], Constant)
    return pt.constant(variable.owner.inputs[0].data) if wrapped else variable
