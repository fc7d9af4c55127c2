"""Potentials that are the likelihood of records: each becomes an observed variable, whose values are the array that the user has in bins.

A user who has no distribution for a likelihood writes its logarithm: ``pm.Potential("like", pm.logp(dist, t).sum())``, or with flags that
say of which times an event was seen, ``flag * pm.logp(dist, t) + (1 - flag) * log_survival``. Which array holds the values is what the user
declares and what the formula says of made-up numbers; no value of a record is read. What is not understood stays a Potential.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial, reduce
from operator import add

import numpy as np
import pytensor.tensor as pt
from pymc.model.fgraph import ModelNamed, ModelObservedRV, ModelPotential
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import CAReduce

from pymc_dp.models.any_length import of_any_length
from pymc_dp.models.by_record import by_record
from pymc_dp.models.custom_density import (
    OF_POINTS,
    is_density,
    is_density_and_survival,
    problem_of_values,
    says_something_of_points,
    says_what,
)
from pymc_dp.models.event_flags import only_flag
from pymc_dp.models.lengths import PLACED
from pymc_dp.models.likelihood_rv import LikelihoodRV, Written, variable_of
from pymc_dp.models.opaque import opaque
from pymc_dp.models.record_formulas import FORMS, OF_A_MIXTURE, PASSED, RecordFormula
from pymc_dp.models.same_arrays import first_of_each
from pymc_dp.models.single_points import HEAPED
from pymc_dp.models.structure import Unreduced, above, arrays_above, is_unknown, scalar_name, substitute
from pymc_dp.models.written_mixtures import as_mixture, is_sum
from pymc_dp.models.written_numbers import MOST_WRITTEN, numbers_in

PLAIN = (
    ". pm.logp copies a plain array, and what NumPy computes from one, such as 1 - e, is another array: write t = pm.Data('t', times) and"
    " e = pm.Data('e', events), 1 - e of this e, and bounds={\"t\": ...}"
)
"""What is to be said beside, where arrays have no name."""
NUMBERS = (
    "Write the number itself in its place, such as 3, and leave shape= out where parameters say how many there are:"
    " pm.Normal.dist(mu, sigma) of a mu that has two entries"
)
"""What to write in place of a length that a number in an array says."""
MOST_ARRAYS = 8
"""Of so many arrays it is tried whether they are the flags of events."""
IN_BINS = 'bounds={"t": pymc_dp.Bins(lower, upper)} of t = pm.Data("t", times)'
"""How bins are declared of values that a Potential reads."""


def observe_potentials(graph: FunctionGraph, binned: Collection[str], *, sized: bool) -> dict[str, str]:
    """Turn Potentials into observed variables, if they are likelihoods of what is counted in bins.

    Parameters
    ----------
    graph : FunctionGraph
        PyMC's graph of a model, which is changed.
    binned : collection of str
        The names for which bins were declared: of arrays, or of a Potential itself where its arrays have none.
    sized : bool
        Whether the number of records is public; if not, no length of an array decides anything.

    Returns
    -------
    dict of str to str
        Of those that stay although bins were declared of what they read: why.
    """
    potentials = [v for v in graph.outputs if isinstance(v.owner.op, ModelPotential)]
    names = {v.owner.inputs[0]: v for v in graph.outputs if isinstance(v.owner.op, ModelNamed)}
    first = first_of_each(arrays_above(potentials), sized=sized)
    arrays = {v: list(dict.fromkeys(first[array] for array in arrays_above([v]))) for v in potentials}
    found: list[tuple[Variable, list[Variable], LikelihoodRV, list[Variable]]] = []
    reasons: dict[str, str] = {}
    for array, group in _candidates(potentials, arrays, names, binned):
        try:
            found.append((array, group, *_likelihood([v.owner.inputs[0] for v in group], array, first, sized=sized)))
        except (Unreduced, RecursionError) as reason:
            words = str(reason) if isinstance(reason, Unreduced) else "its formula is nested too deeply. Write it with fewer operations"
            reasons |= {v.owner.op.name: words for v in group if v.owner.op.name not in reasons}
    for array, group, operation, parameters in found:
        others = [other for other, several, *_ in found if other is not array and set(several) & set(group)]
        if others:
            reasons |= {v.owner.op.name: "which of its arrays in bins holds the values is not clear. Leave the others out" for v in group}
            continue
        _observe(graph, names.get(array), array, group, variable_of(operation, *parameters, size=(array.shape[0],)))
        reasons = {name: reason for name, reason in reasons.items() if name not in {v.owner.op.name for v in group}}
    return reasons


def of_posterior(graph: FunctionGraph) -> dict[str, str]:
    """Why no Potential of a model is read where its posterior itself is drawn from, by name."""
    reason = (
        "draws from the posterior itself need to know which array holds values. Write it as an observed variable, pm.logp(dist, t) of"
        " pm.Weibull.dist(alpha, beta) as pm.Weibull(..., alpha, beta, observed=t), or leave mechanism out and count t in bins:"
        f" {IN_BINS}"
    )
    return {v.owner.op.name: reason for v in graph.outputs if isinstance(v.owner.op, ModelPotential)}


def _candidates(
    potentials: Sequence[Variable], arrays: dict[Variable, list[Variable]], names: dict[Variable, Variable], binned: Collection[str]
) -> Iterator[tuple[Variable, list[Variable]]]:
    """Arrays that may hold the values, with the Potentials that read them: those of a name in bins, or those of a Potential in bins."""
    for array, named in names.items():
        if named.owner.op.name in binned and (group := [v for v in potentials if array in arrays[v]]):
            yield array, group
    for potential in potentials:
        if potential.owner.op.name in binned:
            yield from ((array, [potential]) for array in arrays[potential][:MOST_ARRAYS] if array not in names)


def _observe(graph: FunctionGraph, named: Variable | None, array: Variable, group: Sequence[Variable], random: Variable) -> None:
    """Put an observed variable in the place of Potentials: of the name of its array, or else of the first Potential."""
    name, dims = (named.owner.op.name, named.owner.op.dims) if named is not None else (group[0].owner.op.name, ())
    for gone in [*group, *([] if named is None else [named])]:
        graph.remove_output(graph.outputs.index(gone))
    graph.add_output(ModelObservedRV(name=name, dims=dims)(random, array.astype(random.type.dtype)), import_missing=True)


# ---------- what the formula says of one record
def _likelihood(
    expressions: Sequence[Variable], array: Variable, first: dict[Variable, Variable], *, sized: bool
) -> tuple[LikelihoodRV, list[Variable]]:
    """The density that Potentials are of the values in an array, or density and survival, and the parameters of both.

    ``first`` is, of each array, the first that is the same one, which stands for it.

    Raises
    ------
    Unreduced
        Where they are none, or not understood.
    """
    if array.type.ndim != 1:
        raise Unreduced(
            "its values have more axes than that of records. Write one Potential for each column, of an array with one entry per record,"
            " and t[:, None] of t = pm.Data('t', times) in the model"
        )
    if reason := next((reason for v in expressions if (reason := opaque(v, _holds_no_array, sized=sized))), None):
        instead = f". {NUMBERS}" if reason == PLACED else ", which may hold records. Write it with PyTensor operations"
        raise Unreduced(f"it {reason}{instead}")
    if sum(map(numbers_in, expressions)) > MOST_WRITTEN:
        raise Unreduced("many single numbers stand in it, as a loop over records would write them. Write them as an array")
    plain = any(isinstance(v, Constant) and v.type.ndim == 1 for v in [array, *arrays_above(list(expressions))])
    expressions = [substitute(expression, dict(first)) for expression in expressions]
    expressions, stand_ins = (expressions, {}) if sized else of_any_length(expressions)
    operation, parameters = _read(expressions, stand_ins.get(array, array), PLAIN if plain else "")
    back = {stand_in: whole for whole, stand_in in stand_ins.items()}
    return operation, [substitute(parameter, back) for parameter in parameters]


def _holds_no_array(thing: object) -> bool:
    """Whether what an operation holds is an expression without arrays, such as that of the shape of its result."""
    return isinstance(thing, Variable) and not arrays_above([thing], through_unknowns=True)


def _read(expressions: Sequence[Variable], array: Variable, plain: str) -> tuple[LikelihoodRV, list[Variable]]:
    """What ``_likelihood`` says of expressions that may be looked into; ``plain`` is said beside where they are none."""
    # Each by itself, before they are added: how many records were selected decides whether they can be.
    parts = [by_record(part, array) for expression in expressions for part in _summed(expression)]
    try:
        formula = substitute(reduce(add, parts), {}, (CheckAndRaise,))
    except ValueError:
        raise Unreduced("it has sums over arrays of several lengths. Write one Potential for each") from None
    if not any(map(is_unknown, above([formula], through_unknowns=False))):
        raise Unreduced("it rests on no unknown of the model")
    beside = plain + (f". {OF_A_MIXTURE}" if is_sum(formula, array) else "")
    if mixture := as_mixture(formula, array):
        return mixture
    function = RecordFormula(formula, {array: None}).few(beside)
    density = function.written()
    if is_density(density, function.parameters):
        if problem := problem_of_values(density, function.parameters):
            raise Unreduced(problem)
        return LikelihoodRV(density), function.parameters
    found = []
    flags = [v for v in arrays_above([formula]) if v is not array and v.type.ndim == 1]
    for flag in flags[:MOST_ARRAYS]:
        try:
            function = RecordFormula(formula, {array: None, flag: None}).few()
            density, survival = (function.written({flag: told}) for told in (True, False))
        except Unreduced:
            continue
        if is_density_and_survival(density, survival, function.parameters):
            only = None if flag.type.dtype == "bool" else only_flag(partial(_told_of, function, flag, density, survival))
            found.append((LikelihoodRV(density, survival, only), [*function.parameters, flag]))
    if len(found) != 1:
        raise Unreduced(
            "what it says of a record is neither the log-density of a value over all real numbers, being -inf where no values are, as with"
            " pt.switch((t > 0) & (t < 1), ..., -np.inf), nor,"
            f" with flags of events, log-density and log-survival of one distribution. {FORMS[0].upper()}{FORMS[1:]}"
            f"{beside}. {OF_POINTS}"
        )
    operation, parameters = found[0]
    if problem := problem_of_values(_of_times(operation.density), parameters[:-1]):
        raise Unreduced(problem)
    if operation.survival and says_something_of_points(operation.survival, parameters[:-1]):
        raise Unreduced(HEAPED)
    return found[0]


def _of_times(density: Written) -> Written:
    """A density of what is never negative, where its formula need not say so."""
    return Written(density.vectors, pt.switch(density.vectors[0] < 0, -np.inf, density.graph))


def _told_of(
    function: "RecordFormula", flag: Variable, density: Callable[..., Variable], survival: Callable[..., Variable], number: float
) -> frozenset[str]:
    """What the formula says where a flag is this number: see ``says_what``."""
    return says_what(number, function.written({flag: number}), density, survival, function.parameters)


def _summed(expression: Variable) -> list[Variable]:
    """What a Potential says of every record, of which it is the sum, or which it has one by one: parts that are to be added."""
    node = expression.owner
    if expression.type.ndim or node is None:
        return [expression]
    if isinstance(node.op, PASSED):
        return _summed(node.inputs[0])
    if isinstance(node.op, CAReduce) and scalar_name(node.op) == "Add":
        if set(node.inputs[0].type.shape) == {1}:  # beside others it would be taken for one of every record
            raise Unreduced("it has the sum of one number beside that over records. Write this as a Potential of its own")
        return [node.inputs[0]]
    if scalar_name(node.op) == "Add":
        return [part for operand in node.inputs for part in _summed(operand)]
    if scalar_name(node.op) == "Sub":
        return [*_summed(node.inputs[0]), *(-part for part in _summed(node.inputs[1]))]
    if scalar_name(node.op) == "Neg":
        return [-part for part in _summed(node.inputs[0])]
    raise Unreduced("it is more than a sum over records. Write the sum over records as a Potential of its own")
