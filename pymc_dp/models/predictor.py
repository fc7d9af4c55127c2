"""The public features of a linear predictor, where the parameters of a likelihood are functions of one.

They decide which sums over records are released, and nothing else. The law of sums with public weights is known whatever the
weights are, so nothing read here can make a likelihood wrong: it can only choose sums that say less than others would.
"""

from collections.abc import Iterable
from itertools import product
from math import inf, prod

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable, equal_computations
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.special import Softmax
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.models.linear import fixed, terms_of
from pymc_dp.models.spec import Likelihood, Predictor
from pymc_dp.models.structure import Unreduced, above, is_unknown, scalar_name

ADDED = {"Add", "Sub", "Neg", "Cast", "Identity", "Second"}
"""Elementwise operations whose result is a sum of functions of each of their inputs."""
MULTIPLIED = {"Mul", "TrueDiv"}
"""Elementwise operations that multiply sums out."""
MOVED = (DimShuffle, SpecifyShape, Sum, Reshape, JoinDims, SplitDims, Subtensor, AdvancedSubtensor, Alloc)
"""Operations that move entries of their first input, or add them up."""

SCALES = {"Exponential": 0, "Gamma": 1, "HalfNormal": 1, "Laplace": 1, "Poisson": 0, "Weibull": 1}
"""Distributions of which a parameter, by its place, says how large values are: records vary the more, the larger it makes them."""

type Sets = frozenset[frozenset[int]]
"""Sets of inputs: a number is a sum of numbers, each of which rests on the inputs of one set alone."""


def public_predictor(likelihood: Likelihood) -> Predictor | None:
    """The features of a likelihood whose inputs are all public; None where a parameter is no function of what is linear in the unknowns."""
    inputs, family = likelihood.inputs, likelihood.family
    if family is None or family.NDIM or likelihood.make is not None or any(placeholder.private for placeholder in inputs):
        return None
    rows = {placeholder.variable: k for k, placeholder in enumerate(inputs) if placeholder.axis is not None}
    covariates = {variable for variable, k in rows.items() if not inputs[k].index}
    statistics = len(family.statistics(likelihood.domain((0.25, 0.75))))  # how many there are does not rest on bounds
    features: dict[tuple[str, Variable], set[frozenset[int]]] = {}
    beside: set[Variable] = set()
    try:
        for k, (parameter, core) in enumerate(zip(likelihood.parameters, likelihood.core_ndims, strict=True)):
            if not _rests_on(parameter, rows):
                continue
            parameter = _without_exposure(parameter) if SCALES.get(family.DISTRIBUTION) == k else parameter
            linear, others = _linear_part(parameter, rows, covariates)
            beside |= others if statistics == 1 else others - _unknowns([*likelihood.parameters[:k], *likelihood.parameters[k + 1 :]])
            for d, c in terms_of(linear, covariates):
                if _unknowns([c]):  # an offset has no coefficient that a sum would tell of
                    _collect(features, likelihood, d, _sets(c, rows), core)
    except Unreduced:
        return None
    whole = frozenset(rows.values())
    if not features or any(whole in sets for sets in features.values()):  # a feature for every combination is a cell
        return None
    sums = statistics * sum(len(_largest(sets)) for sets in features.values())
    if beside and (statistics == 1 or sums < _count(_unknowns(likelihood.parameters))):
        return None
    sorted_features = sorted(features.items(), key=lambda entry: entry[0][0] != "1")
    names, variables = zip(*(key for key, _ in sorted_features), strict=True)
    indices = tuple(tuple(tuple(sorted(s)) for s in _largest(sets)) for _, sets in sorted_features)
    return Predictor(names, variables, indices)


def _rests_on(variable: Variable, rows: Iterable[Variable]) -> bool:
    return any(v in rows for v in above([variable], through_unknowns=False))


def _without_exposure(scale: Variable, *, inverse: bool = False) -> Variable:
    """A scale without the public numbers that it is multiplied by, such as ``rate * days``: records with a larger one vary more, so a sum
    that weighs them by these numbers would tell less than one that does not.

    Numbers that the inverse of a scale is multiplied by stay: a sum that weighs records by them is sufficient for what is unknown.
    """
    node = scale.owner
    name = "" if node is None or is_unknown(scale) else scalar_name(node.op)
    if name not in (*MULTIPLIED, "Reciprocal") or not _unknowns(node.inputs):
        return scale
    turned = [inverse != (name == "Reciprocal" or (name == "TrueDiv" and k == 1)) for k in range(len(node.inputs))]
    left = [
        _without_exposure(factor, inverse=under) if _unknowns([factor]) else factor if inverse else pt.ones(())
        for factor, under in zip(node.inputs, turned, strict=True)
    ]
    return pt.mul(*left) if name == "Mul" else left[0] / left[1] if name == "TrueDiv" else 1 / left[0]


def _linear_part(variable: Variable, rows: dict[Variable, int], covariates: set[Variable]) -> tuple[Variable, set[Variable]]:
    """What stands below functions of one argument, such as the inverse of a link, and the unknowns that these functions have of their own.

    Beside the argument may stand what is public of each record, such as an exposure that a rate is multiplied by.

    A sum for every feature tells no more numbers than there are features, which are needed for the coefficients: where there is one
    statistic, functions may have no unknowns of their own. Where there are more, they may have those of another parameter, of which the
    other statistics tell, such as the shape of a Gamma; and more, if at least as many sums are released as there are unknowns.
    """
    beside: set[Variable] = set()
    while variable.owner is not None and not is_unknown(variable):
        node = variable.owner
        carrying = {operand for operand in node.inputs if _rests_on(operand, rows)}
        if len(carrying) > 1 and not _is_linear(variable, covariates):
            carrying = {operand for operand in carrying if _unknowns([operand])}
        if len(carrying) != 1 or not isinstance(node.op, Elemwise | Softmax):
            break
        if not _is_nonlinear(node, carrying) and _is_linear(variable, covariates):
            break
        beside |= _unknowns([operand for operand in node.inputs if operand not in carrying])
        [variable] = carrying
    return variable, beside


def _unknowns(variables: Iterable[Variable]) -> set[Variable]:
    """The unknowns that variables are computed from, not those that these rest on."""
    return {v for v in above(list(variables), through_unknowns=False) if is_unknown(v)}


def _count(unknowns: Iterable[Variable]) -> float:
    """How many numbers unknowns are; infinite where that is not fixed."""
    return sum(inf if None in v.type.shape else prod(v.type.shape) for v in unknowns)


def _is_nonlinear(node: Apply, carrying: set[Variable]) -> bool:
    """Whether an operation is a function of its one argument that is not linear."""
    if isinstance(node.op, Softmax):
        return True
    name = scalar_name(node.op)
    return name not in ADDED | MULTIPLIED or (name == "TrueDiv" and node.inputs[0] not in carrying)


def _is_linear(variable: Variable, covariates: set[Variable]) -> bool:
    try:
        terms_of(variable, covariates)
    except Unreduced:
        return False
    return True


def _collect(features: dict[tuple[str, Variable], set[frozenset[int]]], likelihood: Likelihood, d: Variable, sets: Sets, core: int) -> None:
    """Add the features of a term, whose coefficients rest on these sets of inputs; the same feature is kept once."""
    for axis in range(-1 - core, -1):  # of entries of one value
        if not d.type.broadcastable[axis]:
            raise Unreduced("features differ between the entries of a value")
    names = dict.fromkeys(p.name for p in likelihood.inputs if p.variable in set(above([d])))
    for k in range(fixed(d)):
        feature = d[(..., *[0] * core, k)] if names else pt.ones(())
        name = "1" if not names else "·".join(names) + (f"[{k}]" if fixed(d) > 1 else "")
        simple = rewrite_graph(feature, include=("canonicalize",))
        same = next((key for key in features if equal_computations([key[1]], [simple])), (_unused(name, features), simple))
        features.setdefault(same, set()).update(sets)


def _unused(name: str, features: Iterable[tuple[str, Variable]]) -> str:
    """A name that no other feature has."""
    taken, place = {other for other, _ in features}, 1
    while (name if place == 1 else f"{name}#{place}") in taken:
        place += 1
    return name if place == 1 else f"{name}#{place}"


def _sets(variable: Variable, rows: dict[Variable, int]) -> Sets:
    """Sets of inputs such that a coefficient is a sum of functions of one set each; where that is not known, one set of all of them."""
    whole = frozenset(rows[v] for v in above([variable], through_unknowns=False) if v in rows)
    if len(whole) < 2 or variable.owner is None or is_unknown(variable):
        return frozenset({whole})
    node = variable.owner
    first = _sets(node.inputs[0], rows)
    if isinstance(node.op, MOVED) and not any(_rests_on(operand, rows) for operand in node.inputs[1:]):
        return first
    name = scalar_name(node.op) if isinstance(node.op, Elemwise) else ""
    if name in ADDED:
        return first.union(*(_sets(operand, rows) for operand in node.inputs[1:]))
    if name == "Mul" or (name == "TrueDiv" and not _rests_on(node.inputs[1], rows)):
        for operand in node.inputs[1:]:
            first = frozenset(a | b for a, b in product(first, _sets(operand, rows)))
        return first
    return frozenset({whole})


def _largest(sets: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """The sets that are no part of another one, in a fixed order."""
    several = set(sets)
    return sorted((s for s in several if not any(s < other for other in several)), key=sorted)
