"""The mean of a likelihood, its logit or its logarithm, as features of covariates times coefficients, if it is linear in the unknowns."""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable, equal_computations
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot

from pymc_dp.models.inverse_links import argument_of
from pymc_dp.models.linear import affine, fixed
from pymc_dp.models.spec import Linear, Placeholder
from pymc_dp.models.structure import Unreduced, above

LINEAR = {"Normal": 0, "LogNormal": 0, "MvNormal": 1}
"""Likelihoods whose mean may be linear in covariates, with the number of axes of a single value."""
LINKS = {"Bernoulli": ("Sigmoid", "logit"), "Poisson": ("Exp", "log")}
"""Likelihoods whose mean is a function of what may be linear in covariates: that function's operation, and its inverse's name."""


def linear_mean(
    distribution: str, parameters: tuple[Variable, ...], inputs: tuple[Placeholder, ...], *, in_cells: bool = False
) -> tuple[Linear | None, str | None]:
    """The mean as features times coefficients, where the likelihood is normal; else the reason why not.

    ``in_cells`` says that public covariates have one value in each cell, so that they are part of its coefficients and no features.
    """
    of_records = (data for data in inputs if data.axis is not None and not data.index and not data.inner)
    covariates = {data.variable: data for data in of_records if data.private or not in_cells}
    support, link, mean = LINEAR.get(distribution, 0), "", parameters[0]
    if distribution in LINKS:
        operation, link = LINKS[distribution]
        inside = argument_of(mean, operation, {v for v, data in covariates.items() if data.private})
        if inside is None:
            return None, f"its mean is not the inverse {link} of what is linear in the unknowns"
        mean = inside
    elif distribution not in LINEAR:
        return None, None
    if not (covariates or support) or (all(data.whole and not data.private for data in covariates.values()) and not support):
        return None, None
    if any(variable in covariates for variable in above(list(parameters[1:]))):
        return None, "its standard deviation depends on a covariate. Let it depend on groups, or on unknowns only"
    try:
        terms = affine(mean, set(covariates))
    except Unreduced as reason:
        return None, str(reason)
    features, coefficients = [("1", pt.ones(()), False)], []
    for d, c in terms:
        above_it = [covariates[v] for v in above([d]) if v in covariates]
        name, private = "·".join(dict.fromkeys(data.name for data in above_it)), any(data.private for data in above_it)
        for k in range(fixed(d)):
            if support and not d.type.broadcastable[-2]:  # every response has features of its own
                for r in range(fixed(d, -2)):
                    features.append((f"{name}[{k},{r}]", d[..., r, k], private))
                    coefficients.append(c[..., k] * np.eye(fixed(d, -2))[r])
                continue
            if above_it:
                features.append((name if fixed(d) == 1 else f"{name}[{k}]", d[..., 0, k] if support else d[..., k], private))
            coefficients.append(c[..., k])
    if all(any(v in covariates for v in above([d])) for d, _ in terms):
        coefficients.insert(0, pt.zeros(()))
    features, coefficients = _distinct(features, coefficients)
    # A sum, because joining and its gradient take seconds to compile.
    phi = sum((c[..., None] * unit for c, unit in zip(coefficients, np.eye(len(coefficients)), strict=True)), pt.zeros(()))
    names, variables, private_ones = zip(*features, strict=True)
    cells = {data.variable for data in inputs if data.axis is not None}
    by_cell = tuple(any(variable in cells for variable in above([c])) for c in coefficients)
    return Linear(names, variables, phi, private_ones, link, by_cell), None


def _distinct(features: list[tuple[str, Variable, bool]], coefficients: list[Variable]) -> tuple[list, list[Variable]]:
    """Features that are the same computation become one, with the sum of their coefficients."""
    kept, plain, summed = features[:1], [features[0][1]], coefficients[:1]
    for (name, feature, private), c in zip(features[1:], coefficients[1:], strict=True):
        simple = rewrite_graph(feature, include=("canonicalize",))
        twin = next((k for k, other in enumerate(plain[1:], 1) if equal_computations([simple], [other])), None)
        if twin is None:
            kept.append((name, feature, private))
            plain.append(simple)
            summed.append(c)
        else:
            summed[twin] = summed[twin] + c
    names: dict[str, int] = {}
    named = []
    for name, feature, private in kept:  # several features of one covariate have names of their own
        names[name] = names.get(name, 0) + 1
        named.append((name if names[name] == 1 else f"{name}#{names[name]}", feature, private))
    return named, summed


def rests_on_shared(linear: Linear | None, inputs: tuple[Placeholder, ...]) -> bool:
    """Whether a feature of private covariates rests on public arrays, too, which all records share."""
    shared = {data.variable for data in inputs if data.axis is None and not data.private}
    return linear is not None and any(private and shared & set(above([d])) for d, private in zip(linear.features, linear.private))


def as_pymc_reads(covariance: Variable, size: int) -> Variable:
    """A covariance (..., size, size) with its lower triangle above the diagonal, too: PyMC takes its Cholesky factor, and reads no more.

    What is above may be anything: in PyMC 6 an ``LKJCorr`` is a Cholesky factor, and models from before take it for the correlations.
    """
    if _is_square(covariance):
        return covariance
    below = covariance * pt.tri(size, k=-1)
    return covariance * pt.eye(size) + below + pt.swapaxes(below, -1, -2)


def _is_square(matrix: Variable) -> bool:
    """Whether a matrix is another one times its transpose, as PyMC writes it for ``chol=``."""
    while matrix.owner is not None and isinstance(matrix.owner.op, DimShuffle):
        matrix = matrix.owner.inputs[0]
    if matrix.owner is None or not isinstance(getattr(matrix.owner.op, "core_op", matrix.owner.op), Dot):
        return False
    left, right = matrix.owner.inputs
    return right.owner is not None and isinstance(right.owner.op, DimShuffle) and list(right.owner.inputs) == [left]
