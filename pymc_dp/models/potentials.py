"""Potentials that are the likelihood of records: each becomes an observed variable, whose values are the array that the user has in bins.

A user who has no distribution for a likelihood writes its logarithm: ``pm.Potential("like", pm.logp(dist, t).sum())``, or with flags that
say of which times an event was seen, ``flag * pm.logp(dist, t) + (1 - flag) * log_survival``. Which array holds the values is what the user
declares and what the formula says of made-up numbers; no value of a record is read. What is not understood stays a Potential.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import combinations

import numpy as np
import pytensor.tensor as pt
from pymc.model.fgraph import ModelDeterministic, ModelNamed, ModelObservedRV, ModelPotential
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.shape import SpecifyShape

from pymc_dp.models.any_length import of_any_length
from pymc_dp.models.custom_density import is_density, is_density_and_survival, says_what
from pymc_dp.models.event_flags import only_flag
from pymc_dp.models.likelihood_rv import LikelihoodRV, Written
from pymc_dp.models.opaque import opaque
from pymc_dp.models.reduction import ENTRY_BY_ENTRY
from pymc_dp.models.structure import (
    Unreduced,
    above,
    arrays_above,
    constant_value,
    is_array,
    is_unknown,
    rebuilt,
    scalar_name,
    substitute,
    without_casts,
)
from pymc_dp.models.written_numbers import MOST_WRITTEN, numbers_in

PLAIN = (
    ". A plain array that is written twice, or as 1 - e, is taken for two: write t = pm.Data('t', times) and e = pm.Data('e', events), and"
    ' bounds={"t": ...}'
)
"""What is to be said beside, where arrays have no name."""
PASSED = (CheckAndRaise, ModelDeterministic, ModelNamed, SpecifyShape, Alloc)
"""Operations whose result has the entries of their first input."""
MOST_PARAMETERS = 10
"""A formula of more is not tried out."""
MOST_ARRAYS = 8
"""Of so many arrays it is tried whether they are the flags of events."""
IN_BINS = 'bounds={"t": pymc_dp.Bins(lower, upper)} of t = pm.Data("t", times)'
"""How bins are declared of values that a Potential reads."""
FORMS = (
    "write pm.logp(dist, t) in the Potential, or, where e is 1 of an event and 0 where no more is known than that none was seen before t,"
    " e * pm.logp(dist, t) + (1 - e) * pm.logccdf(dist, t), with all records in t and e: t[e == 1] beside t[e == 0] would show how many"
    " events there are"
)
"""What a Potential may say of every record."""


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
    arrays = {v: arrays_above([v]) for v in potentials}
    found: list[tuple[Variable, list[Variable], LikelihoodRV, list[Variable]]] = []
    reasons: dict[str, str] = {}
    for array, group in _candidates(potentials, arrays, names, binned):
        try:
            found.append((array, group, *_likelihood([v.owner.inputs[0] for v in group], array, sized=sized)))
        except (Unreduced, RecursionError) as reason:
            words = str(reason) if isinstance(reason, Unreduced) else "its formula is nested too deeply. Write it with fewer operations"
            reasons |= {v.owner.op.name: words for v in group if v.owner.op.name not in reasons}
    for array, group, operation, parameters in found:
        others = [other for other, several, *_ in found if other is not array and set(several) & set(group)]
        if others:
            reasons |= {v.owner.op.name: "which of its arrays in bins holds the values is not clear. Leave the others out" for v in group}
            continue
        _observe(graph, names.get(array), array, group, operation(*parameters, size=(array.shape[0],)))
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
def _likelihood(expressions: Sequence[Variable], array: Variable, *, sized: bool) -> tuple[LikelihoodRV, list[Variable]]:
    """The density that Potentials are of the values in an array, or density and survival, and the parameters of both.

    Raises
    ------
    Unreduced
        Where they are none, or not understood.
    """
    if array.type.ndim != 1:
        raise Unreduced("its values have several columns. Write one Potential for each, of an array with one entry per record")
    if reason := next((reason for v in expressions if (reason := opaque(v, lambda thing: False))), None):
        raise Unreduced(f"it {reason}, which may hold records. Write it with PyTensor operations")
    if sum(map(numbers_in, expressions)) > MOST_WRITTEN:
        raise Unreduced("many single numbers stand in it, as a loop over records would write them. Write them as an array")
    plain = any(isinstance(v, Constant) and v.type.ndim == 1 for v in [array, *arrays_above(list(expressions))])
    expressions, stand_ins = (expressions, {}) if sized else of_any_length(expressions)
    operation, parameters = _read(expressions, stand_ins.get(array, array), PLAIN if plain else "")
    back = {stand_in: whole for whole, stand_in in stand_ins.items()}
    return operation, [substitute(parameter, back) for parameter in parameters]


def _read(expressions: Sequence[Variable], array: Variable, plain: str) -> tuple[LikelihoodRV, list[Variable]]:
    """What ``_likelihood`` says of expressions that may be looked into; ``plain`` is said beside where they are none."""
    parts = [part for expression in expressions for part in _by_record(expression)]
    for part in parts:
        _check_entries(part, array, {})  # before they are added: how many records were selected decides whether they can be
    try:
        formula = sum(parts)
    except ValueError:
        raise Unreduced("it has sums over arrays of several lengths. Write one Potential for each") from None
    if formula.type.ndim != 1:
        raise Unreduced("it has another number of axes than its values. Write one number per record, or their sum")
    formula = substitute(formula, {}, (CheckAndRaise,))
    function = _Formula(formula, {array: None})
    density = function.written()
    if is_density(density, function.parameters):
        return LikelihoodRV(density), function.parameters
    found = []
    flags = [v for v in arrays_above([formula]) if v is not array and v.type.ndim == 1]
    for flag in flags[:MOST_ARRAYS]:
        try:
            function = _Formula(formula, {array: None, flag: None})
            density, survival = (function.written({flag: told}) for told in (True, False))
        except Unreduced:
            continue
        if is_density_and_survival(density, survival, function.parameters):
            only = None if flag.type.dtype == "bool" else only_flag(partial(_told_of, function, flag, density, survival))
            found.append((LikelihoodRV(density, survival, only), [*function.parameters, flag]))
    if len(found) != 1:
        raise Unreduced(
            "what it says of a record is neither the log-density of a value over all real numbers, being -inf where no values are, nor,"
            f" with flags of events, log-density and log-survival of one distribution. {FORMS[0].upper()}{FORMS[1:]}"
            f"{plain}"
        )
    return found[0]


def _told_of(
    function: "_Formula", flag: Variable, density: Callable[..., Variable], survival: Callable[..., Variable], number: float
) -> frozenset[str]:
    """What the formula says where a flag is this number: see ``says_what``."""
    return says_what(number, function.written({flag: number}), density, survival, function.parameters)


def _by_record(expression: Variable) -> list[Variable]:
    """What a Potential says of every record, of which it is the sum, or which it has one by one: parts that are to be added."""
    node = expression.owner
    if expression.type.ndim or node is None:
        return [expression]
    if isinstance(node.op, PASSED):
        return _by_record(node.inputs[0])
    if isinstance(node.op, CAReduce) and scalar_name(node.op) == "Add":
        if node.inputs[0].type.shape == (1,):  # beside others it would be taken for one of every record
            raise Unreduced("it has the sum of one number beside that over records. Write this as a Potential of its own")
        return [node.inputs[0]]
    if scalar_name(node.op) == "Add":
        return [part for operand in node.inputs for part in _by_record(operand)]
    if scalar_name(node.op) == "Sub":
        return [*_by_record(node.inputs[0]), *(-part for part in _by_record(node.inputs[1]))]
    if scalar_name(node.op) == "Neg":
        return [-part for part in _by_record(node.inputs[0])]
    raise Unreduced("it is more than a sum over records. Write the sum over records as a Potential of its own")


def _check_entries(variable: Variable, array: Variable, done: dict[Variable, bool]) -> bool:
    """Whether a part rests on an array, whose entries it then meets one by one; ``done`` is what was found so far."""
    if variable not in done:
        done[variable] = variable is array
        if variable is not array and variable.owner is not None and not is_unknown(variable):
            for operand in _entries(variable):
                done[variable] |= _check_entries(operand, array, done)
            if done[variable]:
                _check_entry(variable)
    return done[variable]


def _check_entry(variable: Variable) -> None:
    """Refuse an operation that does not meet the entries of values one by one."""
    node = variable.owner
    if variable.type.ndim != 1 or not isinstance(node.op, (*PASSED, Elemwise, *ENTRY_BY_ENTRY)):
        raise Unreduced(
            f"it passes its values through {type(node.op).__name__}, which may mix or select records. {FORMS[0].upper()}{FORMS[1:]}."
            " Of a mixture, write pm.Mixture(..., observed=t), or pt.logaddexp of two logarithms rather than pm.math.logsumexp of many"
        )


class _Formula:
    """A formula of one entry of some arrays: what it rests on beside these, as parameters that may be anything apart from each other.

    ``pm.logp`` writes log(sigma) beside 1 / sigma: as one parameter each they would not go together. So a parameter is what the formula
    has of an unknown, or of an array, as a whole; where it has the same unknown in several places it is followed up to what they share.
    """

    def __init__(self, formula: Variable, of: dict[Variable, None]) -> None:
        self._formula, self._of = formula, of
        self._rests: dict[Variable, bool] = {}
        self.parameters = self._apart(self._cut(formula))
        if not any(is_unknown(v) for v in above(self.parameters)):
            raise Unreduced("it rests on no unknown of the model")
        if len(self.parameters) > MOST_PARAMETERS:
            raise Unreduced(f"it has more than {MOST_PARAMETERS} parameters. Write it with a distribution's own, mu = a + b * x")

    def _rests_on_values(self, variable: Variable) -> bool:
        if variable not in self._rests:
            through = variable.owner is not None and not is_unknown(variable)
            self._rests[variable] = variable in self._of or (through and any(map(self._rests_on_values, _entries(variable))))
        return self._rests[variable]

    def _cut(self, variable: Variable) -> list[Variable]:
        """The largest parts that do not rest on the values, in order, plain numbers left out."""
        if variable in self._of:
            return []
        if not self._rests_on_values(variable):
            return [] if _is_number(variable) else [variable]
        _check_entry(variable)
        return list(dict.fromkeys(part for operand in _entries(variable) for part in self._cut(operand)))

    def _apart(self, parts: list[Variable]) -> list[Variable]:
        """Parts of which no two rest on one unknown or array, as far as they can be followed."""
        while True:
            parts = _distinct(parts)
            opened = next((part for pair in combinations(parts, 2) if _share(*pair) for part in _to_open(*pair)), None)
            if opened is None:
                return parts
            place = parts.index(opened)
            inner = [operand for operand in _entries(opened) if not _is_number(operand)]
            parts = [*parts[:place], *inner, *parts[place + 1 :]]

    def written(self, told: dict[Variable, float] | None = None) -> Written:
        """The formula of one vector of values and one of each parameter; the entries of some arrays are ``told`` to be a number."""
        vectors = [pt.dvector(f"argument_{k}") for k in range(1 + len(self.parameters))]
        [value] = [array for array in self._of if array not in (told or {})]
        done: dict[Variable, Variable] = {value: vectors[0]}
        done |= {array: pt.expand_dims(pt.constant(number, dtype=array.type.dtype), 0) for array, number in (told or {}).items()}
        for parameter, vector in zip(self.parameters, vectors[1:], strict=True):
            done[parameter] = vector.astype(parameter.type.dtype)
        known = list(done)

        def visit(variable: Variable) -> Variable:
            if variable not in done:
                twin = next((k for k in known if alike(k, variable)), None)
                done[variable] = done[twin] if twin is not None else variable if variable.owner is None else _simplified(variable, visit)
            return done[variable]

        return Written(tuple(vectors), visit(self._formula).astype("float64"))


def _simplified(variable: Variable, visit: Callable[[Variable], Variable]) -> Variable:
    """An operation on other inputs; a choice whose condition is told is what it chooses, and a product with 0 is 0."""
    node = variable.owner
    if isinstance(node.op, PASSED):
        return visit(node.inputs[0])
    if isinstance(node.op, DimShuffle):
        operand = visit(node.inputs[0])
        return operand if operand.type.ndim == variable.type.ndim else rebuilt(node, variable, [operand])
    if scalar_name(node.op) == "Switch":
        condition, *choices = node.inputs
        told = _told(visit(condition))
        return visit(choices[0 if told else 1]) if told is not None else rebuilt(node, variable, [visit(v) for v in node.inputs])
    inputs = [visit(operand) for operand in node.inputs]
    if scalar_name(node.op) == "Mul" and any(_told(operand) == 0 for operand in inputs):
        return pt.expand_dims(pt.constant(0.0), tuple(range(variable.type.ndim)))
    return rebuilt(node, variable, inputs)


def _told(variable: Variable) -> float | None:
    """The number that an expression is; None if it rests on an argument."""
    if any(v.owner is None and not isinstance(v, Constant) for v in above([variable])) or any(map(is_unknown, above([variable]))):
        return None
    value = constant_value(variable)
    return None if value is None or np.size(value) != 1 else float(np.ravel(value)[0])


def _entries(variable: Variable) -> list[Variable]:
    """What the entries of a variable are computed from; of checks and names, the first input alone."""
    if variable.owner is None:
        return []
    return variable.owner.inputs[:1] if isinstance(variable.owner.op, PASSED) else list(variable.owner.inputs)


def _is_number(variable: Variable) -> bool:
    """Whether an expression rests on no unknown and no array."""
    return not arrays_above([variable]) and not any(map(is_unknown, above([variable])))


def _leaves(variable: Variable) -> set[Variable]:
    """The unknowns and arrays that an expression rests on."""
    return {v for v in above([variable], through_unknowns=False) if is_unknown(v) or is_array(v)}


def _share(one: Variable, other: Variable) -> bool:
    """Whether two parts rest on one unknown, or, where both are computed from data alone, on one array."""
    both = _leaves(one) & _leaves(other)
    of_data = not any(map(is_unknown, _leaves(one) | _leaves(other)))
    return bool(both) if of_data else any(map(is_unknown, both))


def _to_open(one: Variable, other: Variable) -> list[Variable]:
    """Which of two parts is followed further: the one that the other stands above, else any that can be."""
    below = [v for v, above_it in ((one, other), (other, one)) if above_it in set(above([v], through_unknowns=False))]
    return [v for v in below or (one, other) if _opens(v)]


def _opens(variable: Variable) -> bool:
    """Whether an expression is made of others entry by entry."""
    node = variable.owner
    if node is None or is_unknown(variable) or _is_root(variable):
        return False
    expanded = isinstance(node.op, DimShuffle) and node.op.is_left_expand_dims
    return isinstance(node.op, (Elemwise, *ENTRY_BY_ENTRY, ModelDeterministic)) or expanded


def _is_root(variable: Variable) -> bool:
    """Whether a variable is an array of data, or that by another name or type."""
    return is_array(without_casts(variable))


def alike(one: Variable, other: Variable, done: dict[tuple[Variable, Variable], bool] | None = None) -> bool:
    """Whether two expressions are written alike: the same operations on the same arrays and unknowns. No array's numbers are compared.

    ``done`` is what was found of pairs so far.
    """
    done = {} if done is None else done
    if one is other or (one, other) in done:
        return done.get((one, other), True)
    if one.type != other.type:
        found = False
    elif one.owner is None or other.owner is None:
        numbers = not is_array(one) and not is_array(other)
        found = numbers and isinstance(one, Constant) and isinstance(other, Constant) and bool(one.equals(other))
    else:
        pairs = list(zip(one.owner.inputs, other.owner.inputs, strict=False))
        same = one.owner.op == other.owner.op and len(one.owner.inputs) == len(other.owner.inputs) and not is_unknown(one)
        found = same and one.index == other.index and all(alike(*pair, done) for pair in pairs)
    done[one, other] = found
    return found


def _distinct(parts: Sequence[Variable]) -> list[Variable]:
    """Parts, each once, of those written alike the first."""
    kept: list[Variable] = []
    for part in parts:
        if not any(alike(part, other) for other in kept):
            kept.append(part)
    return kept
