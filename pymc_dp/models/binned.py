"""Any likelihood of single numbers, through bins: it becomes the probability of every interval between public edges.

Where PyMC knows a distribution function (``pm.logcdf``) probabilities are its differences. Where it knows a density only (``pm.logp``) they
are integrals of it, divided by their sum. Mixtures, truncated and censored distributions and atoms are taken apart, so that an atom belongs
to the interval that it lies in. An interval holds its upper end and not its lower one.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions import mixture, transforms
from pymc.distributions.censored import CensoredRV
from pymc.distributions.custom import CustomDistRV
from pymc.distributions.distribution import DiracDelta
from pymc.distributions.truncated import TruncatedRV
from pymc.logprob.transforms import CircularTransform, LogOddsTransform, LogTransform
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType

from pymc_dp.families.family import Domain
from pymc_dp.laws.kernel import LEAST, Tensor
from pymc_dp.models.allow_list import is_of_extras
from pymc_dp.models.custom_density import check_density
from pymc_dp.models.custom_formulas import components_of_custom, one_by_one
from pymc_dp.models.integrands import Integrand, integral_of
from pymc_dp.models.interval_nodes import nodes_between, sums_between
from pymc_dp.models.likelihood_rv import LikelihoodRV, Written, variable_of
from pymc_dp.models.opaque import operation_problem
from pymc_dp.models.structure import Unreduced, untruncated
from pymc_dp.models.tabulated import Parametrised, number_in, on_grid

SYMBOLIC = tuple(
    getattr(pm, name).rv_type
    for name in (
        "AsymmetricLaplace", "ExGaussian", "HalfCauchy", "HalfStudentT", "Kumaraswamy", "Weibull", "DiscreteWeibull",
    )
)  # fmt: skip
"""Distributions that PyMC writes as graphs of others, with parameters that are numbers."""
COUNTED = tuple(
    getattr(pm, name).rv_type for name in ("Bernoulli", "Binomial", "DiscreteUniform", "Geometric", "NegativeBinomial", "Poisson")
)
"""Distributions of integers whose distribution function PyMC evaluates at many points at once."""
IMPROPER = tuple(getattr(pm, name).rv_type for name in ("Flat", "HalfFlat", "Simulator"))


def parametrised_in_bins(random: Variable) -> Parametrised | None:
    """The parameters of a distribution of single numbers, and the probabilities of intervals; None where it cannot be read.

    ``between(points, *parameters)`` of the result takes P increasing points and parameters on cells (G, *C) and core axes; it gives the
    probabilities (G, *C, P + 1) of what lies up to the first point, between them, and beyond the last.

    Raises
    ------
    Unreduced
        Where a density of the user's own is not known to be a function of one value.
    """
    if random.owner is None:
        return None
    operation = random.owner.op
    if isinstance(operation, mixture.MixtureRV | mixture._HurdleRV):
        return _mixture(random)
    if isinstance(operation, TruncatedRV | CensoredRV):
        return _limited(random, isinstance(operation, CensoredRV))
    if type(operation) is DiracDelta.rv_type:
        place = number_in(operation.dist_params(random.owner)[0])
        return None if place is None else _atom(place)
    if isinstance(operation, CustomDistRV):
        return _custom(random)
    if isinstance(operation, LikelihoodRV):
        return _written(random)
    if type(operation) in SYMBOLIC:
        rv_type = type(operation)
        return _single(random, lambda *parameters: rv_type.rv_op(*parameters))
    plain = isinstance(operation, RandomVariable) and not isinstance(operation, MinibatchRandomVariable)
    if not plain or operation.ndim_supp or any(operation.ndims_params) or type(operation) in IMPROPER:
        return None
    if np.dtype(operation.dtype).kind != "f" and type(operation) not in COUNTED:
        return None
    return _single(random, partial(variable_of, operation))


def in_bins(between: Callable[..., Tensor], parameters: Sequence[Tensor], domain: Domain) -> Tensor:
    """Probabilities of the bins of a domain (G, *C, K), none of which is 0, where logarithms have no derivative.

    The outer edges are not between two bins; they only say where to look.
    """
    inner = np.array(domain.edges[1:-1])
    of_points = between(np.array(domain.edges), *parameters)
    first, last = (part.sum(axis=-1, keepdims=True) for part in (of_points[..., :2], of_points[..., len(inner) + 1 :]))
    return pt.maximum(pt.concatenate([first, of_points[..., 2 : len(inner) + 1], last], axis=-1), LEAST)


# ---------- distributions of one kind


def _single(random: Variable, make: Callable[..., Variable]) -> Parametrised:
    """A distribution that is not made of others."""
    parameters = tuple(random.owner.op.dist_params(random.owner))
    cores, whole = (0,) * len(parameters), np.dtype(random.type.dtype).kind != "f"
    if type(random.owner.op) is pm.AsymmetricLaplace.rv_type:
        return Parametrised(parameters, cores, make, between=_by_distribution(_asymmetric_laplace))
    try:
        known = not is_of_extras(type(random.owner.op))  # GenExtreme's logcdf is -inf above an upper end, where it should be 0
        pm.logcdf(random, 0.5)
    except NotImplementedError:
        known = False
    if not known:
        return Parametrised(parameters, cores, make, between=_by_density(lambda value, *ps: pm.logp(make(*ps), value), support_of(random)))

    def logcdf(value: Tensor, *parameters: Tensor) -> Tensor:
        return pm.logcdf(make(*parameters), value)

    by_distribution = _by_distribution(logcdf)
    between = (lambda points, *ps: by_distribution(np.floor(points), *ps)) if whole else by_distribution
    return Parametrised(parameters, cores, make, between=between)


def support_of(random: Variable) -> tuple[float, float]:
    """Between which values a density lies, by the transform that PyMC has for it."""
    transform = transforms._default_transform(random.owner.op, random)
    if isinstance(transform, LogTransform):
        return 0.0, np.inf
    if isinstance(transform, LogOddsTransform):
        return 0.0, 1.0
    return (-np.pi, np.pi) if isinstance(transform, CircularTransform) else (-np.inf, np.inf)


def has_plain_support(random: Variable) -> bool:
    """Whether ``support_of`` knows where a density lies: between numbers, and not between unknowns."""
    transform = transforms._default_transform(random.owner.op, random)
    return isinstance(transform, CircularTransform | LogOddsTransform | LogTransform | None)


def _asymmetric_laplace(value: Tensor, b: Tensor, kappa: Tensor, mu: Tensor) -> Tensor:
    """The log-distribution function: the integral of b / (kappa + 1/kappa) exp(-(x - mu) b s kappa^s), where s is the sign of x - mu."""
    below, above = pt.minimum(value - mu, 0.0), pt.maximum(value - mu, 0.0)
    lower = 2 * pt.log(kappa) - pt.log1p(kappa**2) + below * b / kappa
    return pt.switch(value <= mu, lower, pt.log1p(-pt.exp(-above * b * kappa) / (1 + kappa**2)))


def _custom(random: Variable) -> Parametrised:
    """A density of the user's own, once it is one of single values; its distribution function where the user gave that."""
    operation = random.owner.op
    parameters = tuple(operation.dist_params(random.owner))
    if operation.ndim_supp or any(operation.ndims_params):
        raise Unreduced("its likelihood is a CustomDist of vectors. Bins are for single numbers")
    density = one_by_one(pm.logp, operation, len(parameters))
    if density is None:
        raise Unreduced("its likelihood is a CustomDist without a density. Write one: pm.CustomDist(..., logp=...)")
    cores, distribution = (0,) * len(parameters), one_by_one(pm.logcdf, operation, len(parameters))
    whole = np.dtype(operation.dtype).kind != "f"
    weights: tuple[Written, ...] = ()
    if distribution is not None:
        by_distribution = _by_distribution(distribution)
        between = (lambda points, *ps: by_distribution(np.floor(points), *ps)) if whole else by_distribution
    elif whole:
        raise Unreduced("its CustomDist is of whole numbers, of which bins hold several. Give it logcdf=, too")
    elif operation_problem(operation, lambda thing: False):  # of an array that may hold records not even the integral may be looked at
        raise Unreduced("its CustomDist holds more than formulas, so its density cannot be checked. Pass numbers as parameters, or logcdf=")
    elif components := components_of_custom(density, parameters):
        between, weights = _of_components(components), tuple(weight for weight, _ in components)
    else:
        unchecked = density.unchecked()
        check_density(unchecked, parameters)
        between = _by_density(density, (-np.inf, np.inf), integral_of(unchecked, parameters))
    return Parametrised(parameters, cores, partial(variable_of, operation), between=between, weights=weights)


def _written(random: Variable) -> Parametrised:
    """A density that was written in a Potential, of which ``potentials`` knows that it is one. Flags of events are read elsewhere."""
    operation = random.owner.op
    parameters = tuple(operation.dist_params(random.owner))
    weights = tuple(weight for weight, _ in operation.components)
    if weights:
        between = _of_components(operation.components)
    else:  # what an event's density is in bins, its survival says
        whole = integral_of(operation.density, parameters) if operation.survival is None else None
        between = _by_density(operation.density, (-np.inf, np.inf), whole)
    return Parametrised(parameters, (0,) * len(parameters), partial(variable_of, operation), between=between, weights=weights)


def _of_components(components: Sequence[tuple[Written, Written]]) -> Callable[..., Tensor]:
    """Probabilities by weights and densities of the components of a mixture, each integrated by itself."""

    def between(points: np.ndarray, *parameters: Tensor) -> Tensor:
        parts = [
            at_points(weight, np.zeros(1), parameters) * _by_density(density, (-np.inf, np.inf))(points, *parameters)
            for weight, density in components
        ]
        return pt.add(*parts)

    return between


# ---------- distributions made of others


def _mixture(random: Variable) -> Parametrised | None:
    """Weights times the probabilities of every component."""
    weights, *components = [part for part in random.owner.inputs if not isinstance(part.type, RandomType)]
    trees = [parametrised_in_bins(component) for component in components]
    read = [tree for tree in trees if tree is not None and tree.between is not None]
    if len(read) < len(trees):
        return None
    if len(read) == 1:  # the last axis of its parameters runs over the components
        (tree,) = read
        whole = tuple(
            parameter if parameter.type.ndim > core else pt.expand_dims(parameter, 0)
            for parameter, core in zip(tree.parameters, tree.cores, strict=True)
        )

        def between(points: np.ndarray, weight: Tensor, *others: Tensor) -> Tensor:
            return (weight[..., None] * tree.between(points, *others)).sum(axis=-2)  # type: ignore[misc]

        cores = (1, *(core + 1 for core in tree.cores))
        return Parametrised((weights, *whole), cores, lambda weight, *ps: pm.Mixture.dist(weight, tree.make(*ps)), between=between)
    ends = np.cumsum([0, *(len(tree.parameters) for tree in read)])

    def of_each(what: Callable[[Parametrised, tuple], Tensor], others: tuple) -> list[Tensor]:
        return [what(tree, others[start:end]) for tree, (start, end) in zip(read, pairwise(ends), strict=True)]

    def all_between(points: np.ndarray, weight: Tensor, *others: Tensor) -> Tensor:
        parts = of_each(lambda tree, ps: tree.between(points, *ps), others)  # type: ignore[misc]
        return sum((weight[..., k, None] * part for k, part in enumerate(parts[1:], 1)), weight[..., 0, None] * parts[0])

    def make(weight: Tensor, *others: Tensor) -> Variable:
        distributions = of_each(lambda tree, ps: tree.make(*ps), others)
        return (
            pm.Mixture.dist(weight, distributions)
            if isinstance(random.owner.op, mixture.MixtureRV)
            else mixture._Hurdle.dist(weight, distributions)
        )

    parameters = (weights, *(parameter for tree in read for parameter in tree.parameters))
    return Parametrised(parameters, (1, *(core for tree in read for core in tree.cores)), make, between=all_between)


def _limited(random: Variable, censored: bool) -> Parametrised | None:
    """A distribution that is cut off at plain numbers, or of which what lies beyond limits is counted at them."""
    base, *limits = random.owner.inputs if censored else untruncated(random)
    tree, ends = parametrised_in_bins(base), [number_in(limit) for limit in limits]
    if tree is None or tree.between is None:
        return None
    if None in ends:
        return _censored_each(tree, limits) if censored else None
    low, high = (float(end) for end in ends if end is not None)
    inner, whole = tree.between, np.dtype(base.type.dtype).kind != "f"

    def between(points: np.ndarray, *parameters: Tensor) -> Tensor:
        below, above = points < low, points >= high
        inside = points[~below & ~above]
        if censored:
            within = inner(inside, *parameters)
        else:  # an interval does not hold its lower end, so that of integers the limit itself would be left out
            first, last = ([end] if np.isfinite(end) else [] for end in (low - whole, high))
            whole_mass = inner(np.array([*first, *inside[inside < high], *last]), *parameters)
            kept = whole_mass[..., len(first) : whole_mass.type.shape[-1] - len(last)]
            within = kept / pt.maximum(kept.sum(axis=-1, keepdims=True), LEAST)
        return _padded(within, int(below.sum()), int(above.sum()))

    kind, (lower, upper) = pm.Censored if censored else pm.Truncated, (end if np.isfinite(end) else None for end in (low, high))
    return Parametrised(tree.parameters, tree.cores, lambda *ps: kind.dist(tree.make(*ps), lower=lower, upper=upper), between=between)


def _censored_each(tree: Parametrised, limits: Sequence[Variable]) -> Parametrised:
    """A distribution censored at limits of which one or both are parameters, such as the follow-up of every record.

    Let I be the interval that holds the upper limit. Intervals below I keep their probabilities, I has that of everything from its lower
    end on, and those above I have none. So no distribution function is needed at the limit, and the atom is where such values are counted.
    """
    inner, many, ends = tree.between, len(tree.parameters), [number_in(limit) for limit in limits]
    others = tuple(limit for limit, end in zip(limits, ends, strict=True) if end is None)

    def limits_in(parameters: Sequence[Tensor]) -> list[Tensor]:
        parameter_limits = iter(parameters[many:])
        return [next(parameter_limits) if end is None else pt.constant(end) for end in ends]

    def between(points: np.ndarray, *parameters: Tensor) -> Tensor:
        low, high = (pt.expand_dims(limit, -1) for limit in limits_in(parameters))
        bottom, top = np.array([-np.inf, *points]), np.array([*points, np.inf])
        p = inner(points, *parameters[:many])  # type: ignore[misc]
        p = pt.switch(low > top, 0.0, pt.switch(low > bottom, pt.cumsum(p, axis=-1), p))
        from_above = pt.cumsum(p[..., ::-1], axis=-1)[..., ::-1]
        return pt.switch(high <= bottom, 0.0, pt.switch(high <= top, from_above, p))

    def make(*parameters: Tensor) -> Variable:
        lower, upper = limits_in(parameters)
        return pm.Censored.dist(tree.make(*parameters[:many]), lower=lower, upper=upper)

    return Parametrised((*tree.parameters, *others), (*tree.cores, *(0 for _ in others)), make, between=between)


def _atom(place: float) -> Parametrised:
    """All of the probability at one plain number."""

    def between(points: np.ndarray) -> Tensor:
        return pt.constant((np.arange(len(points) + 1) == np.searchsorted(points, place)).astype(float))

    return Parametrised((), (), lambda: pm.DiracDelta.dist(np.asarray(place)), between=between)


# ---------- probabilities of intervals


def _by_distribution(logcdf: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Differences of a distribution function, and above its middle of what is missing to 1: small ones are right at both ends."""

    def between(points: np.ndarray, *parameters: Tensor) -> Tensor:
        if not len(points):
            return at_points(lambda value, *several: value * 1.0, np.ones(1), parameters)
        log_below = at_points(logcdf, points, parameters)
        below, missing = pt.exp(log_below), pt.expm1(log_below)
        low = _padded(below, 1, 0)
        from_below, from_above = _padded(below, 0, 1, 1.0) - low, _padded(missing, 0, 1) - _padded(missing, 1, 0, -1.0)
        return pt.maximum(pt.switch(low < 0.5, from_below, from_above), 0.0)

    return between


def _by_density(logp: Callable[..., Tensor], support: tuple[float, float], whole: float | None = None) -> Callable[..., Tensor]:
    """Integrals of a density, divided by their sum, so that a density narrower than the nodes lie is still one.

    One of the user's own may be a mixture, of which a narrow component is lost: so it is noted what the ``whole`` integrates to.
    """

    def between(points: np.ndarray, *parameters: Tensor) -> Tensor:
        integrand = Integrand(logp, whole, points) if isinstance(logp, Written) and whole is not None else None
        lower, upper = support
        below, above = int((points <= lower).sum()), int((points >= upper).sum())
        infinite = integrand.infinite if integrand is not None else ()
        nodes, log_weights, pieces = nodes_between(points[below : len(points) - above], lower, upper, infinite)
        log_mass = at_points(logp, nodes, parameters, integrand) + log_weights
        mass = pt.exp(log_mass - log_mass.max(axis=-1, keepdims=True))
        sums = sums_between(mass, pieces)
        return _padded(sums / sums.sum(axis=-1, keepdims=True), below, above)

    return between


def at_points(of: Callable[..., Tensor], values: np.ndarray, parameters: Sequence[Tensor], integrand: Integrand | None = None) -> Tensor:
    """A function of a value and parameters at these values (P,), for parameters on cells: (G, *C, P). It may be one that is integrated."""
    full = [
        numeric(pt.expand_dims(parameter, -1) + np.zeros(len(values)), None if integrand is None else (integrand, k))
        for k, parameter in enumerate(parameters)
    ]
    batch = parameters[0].type.ndim if parameters else 0
    return on_grid(of, full, np.asarray(values, dtype=float).reshape((1,) * batch + (-1,)))


def _padded(values: Tensor, before: int, after: int, fill: float = 0.0) -> Tensor:
    """Entries of the same value put before the last axis, or after it."""
    ends = [pt.zeros_like(values[..., :1]) + fill + np.zeros(many) for many in (before, after) if many]
    parts = [*(ends[:1] if before else []), values, *(ends[-1:] if after else [])]
    return pt.concatenate(parts, axis=-1) if len(parts) > 1 else values


class Numeric(OpFromGraph):
    """The operation of ``numeric``.

    Attributes
    ----------
    of : (Integrand, int) or None
        Of a parameter of a user's own density that is integrated: that, and which parameter it is.
    """

    of: tuple[Integrand, int] | None = None


def numeric(parameter: Tensor, of: tuple[Integrand, int] | None = None) -> Tensor:
    """A parameter of unchanged value, whose derivatives count as 0 where they are no numbers.

    Formulas of a distribution may have no derivative at values that it cannot have, or so far out that nothing is left to differ. The
    probability below such a point does not depend on the parameter, and each point has its own entry here.
    """
    inner = parameter.type()
    operation = Numeric([inner], [inner * 1.0], pullback=_finite_part, inline=True)
    operation.of = of
    return operation(parameter)


def _finite_part(inputs: Sequence[Tensor], outputs: Sequence[Tensor], gradients: Sequence[Tensor]) -> list[Tensor]:
    """Derivatives that are numbers, and 0 in place of others."""
    (gradient,) = gradients
    return [pt.switch(pt.isnan(gradient) | pt.isinf(gradient), 0.0, gradient)]
