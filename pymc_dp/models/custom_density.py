"""Whether the function that a user wrote as the density of a CustomDist integrates to the same number for all parameters, as a density
must up to a factor.
"""

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import product

import cloudpickle
import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc.model.fgraph import ModelFreeRV
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable

from pymc_dp.laws.kernel import Tensor
from pymc_dp.models.either_side import UNSEEN, rows_in_units, says_something_unseen
from pymc_dp.models.interval_nodes import nodes_between
from pymc_dp.models.intervals import KEEPING
from pymc_dp.models.likelihood_rv import Written
from pymc_dp.models.rounded_values import ROUNDED, is_of_rounded
from pymc_dp.models.single_points import HEAPED, equalities, tells_points_apart
from pymc_dp.models.structure import Unreduced, above, arrays_above, is_cast, is_unknown, scalar_name, substitute
from pymc_dp.models.tabulated import number_in
from pymc_dp.models.unknowns import support_of

POINTS = np.array([-20, -10, -5, -3, -2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 20])
"""Between these a density is integrated by a rule each. A density may jump at any of them."""
TRIED = (0.5, 2.5, 1.5)
"""Values of unknown parameters at which an integral is taken: each may be a place, a scale, a shape or, the first, a probability.

1 is none of them: powers of it, and its logarithm, hide a factor that was left out.
"""
SHARES = (0.3, 0.8, 0.55)
"""Values of those unknown parameters with which there is no number at any other of ``TRIED`` than the first: 1/2 is its own complement."""
FEW = 2
"""Of more parameters than these two values are tried."""
OF_DATA = (0.0, 1.0, 0.5, 2.0)
"""Values of parameters that are computed from data alone, which may be flags; of more than FEW, the first two."""
ARITHMETIC = ("Add", "Sub", "Mul", "TrueDiv", "Neg")
"""What such unknowns are in may be negative, too."""
CLOSE = (0.1, 0.01, 0.001)
"""So far from 0 and from values that are tried a density is integrated by a rule each, too: it may be narrow, by a plain number, there."""
ENDS = (0.0, 1.0)
"""Where supports end: a density may be infinite there, as that of a Beta whose shapes are 1/2."""
NEAR = 1e-12
"""As good as 0, where formulas of times may be no numbers."""
FAR = 1e10
"""An integral of which more than half lies beyond is infinite."""
ALIKE = 1e-3
"""Integrals that differ by less, relatively, are one."""
AS_POTENTIAL = (
    "pm.Potential('like', (e * pm.logp(dist, t) + (1 - e) * pm.logccdf(dist, t)).sum()) with pm.Data('t', t) and pm.Data('e', e), where"
    " e is 1 of an event and 0 of what is censored, and bounds={'t': pymc_dp.Bins(lower, upper)}"
)
"""How times and flags of events are written."""
OF_NEGATIVE = (
    "it is no density where an unknown is negative: it integrates to another number there than where all are positive. A term in unknowns"
    " alone belongs in a prior, or in a pm.Potential of its own"
)
"""What is to be said of such a formula."""
OF_POINTS = (
    "A value that has a probability of its own, 0 or a limit, has no density: observe pm.HurdleGamma, pm.HurdleLogNormal or"
    " pm.Censored('t', dist, lower, upper)"
)
"""What to write in place of a formula that is a density at some values and a probability at others."""


def check_density(
    density: Callable[..., Tensor],
    parameters: Sequence[Variable],
) -> None:
    """Refuse a function whose integral over all real numbers is not the same at most of its unknowns, and at all data beside them.

    The integral of a density is 1, and a constant factor says nothing. Where it differs, or is none, what lies in a bin is no probability,
    and dividing by the sum of all bins would change the model: so it is with probabilities of counts, taken between whole numbers, with a
    factor left out that rests on a parameter, with a formula used where no values are, and with a flag that says of each record whether
    its value is an event or what it was censored at. Parameters that do not go together, such as a lower end above an upper one, give no
    positive number, and do not count.

    Parameters
    ----------
    density : callable
        The logarithm of it, of values and parameters that are arrays of one shape.
    parameters : sequence of Variable
        As they are in the model: a plain number is tried as it is. No array is read.
    """
    same, alike = _same_integrals(density, parameters)
    if alike:
        vectors = tuple(pt.dvector(f"argument_{k}") for k in range(1 + len(parameters)))
        if problem := problem_of_values(Written(vectors, density(*vectors)), parameters):
            raise Unreduced(f"the density of its CustomDist is not what it is read as: {problem}")
        return
    if any(map(_is_data, parameters)) and not same:
        raise Unreduced(
            "the density of its CustomDist is none given the data that it is passed: what it integrates to differs with them. Where they"
            " say whether a value is an event or what it was censored at, write pm.Censored with the limit that was planned for each"
            f" record, or {AS_POTENTIAL}"
        )
    raise Unreduced(
        "the density of its CustomDist is none over all real numbers. Let logp be -inf where no values are:"
        f' pt.switch(value > 0, ..., -np.inf); of counts, write dtype="int64" and logcdf=. {OF_POINTS}'
    )


def is_density(density: Callable[..., Tensor], parameters: Sequence[Variable]) -> bool:
    """Whether a function is a density up to a factor, as ``check_density`` says it, and at all data: none of it leaves no number."""
    return _same_integrals(density, parameters, everywhere=True)[1]


def is_whole_density(density: Callable[..., Tensor], parameters: Sequence[Variable]) -> bool:
    """Whether a function is a density as ``is_density`` says, without another factor than 1."""
    return _same_integrals(density, parameters, everywhere=True, to=1.0)[1]


def is_density_and_survival(density: Callable[..., Tensor], survival: Callable[..., Tensor], parameters: Sequence[Variable]) -> bool:
    """Whether two functions are the logarithms of a density and of the probability of what is larger.

    They must be so at most of their unknowns, and at all data beside these.

    Between any two of ``POINTS`` above 0 survival falls by the integral of the density. It is 1 at 0, where formulas of times begin, or
    else 1 less the integral up to the first of them. Where either is no number, or there are no events at all, parameters do not go
    together, and do not count, and neither do unknowns of which survival is no probability at any data.
    """
    rows, told = rows_for(density, parameters)
    nodes, log_weights, pieces = nodes_between(POINTS, -np.inf, np.inf)
    ends = np.array([NEAR, *POINTS[POINTS > 0]])
    with np.errstate(all="ignore"):
        mass = np.nan_to_num(np.exp(values_of_rows(density, rows, nodes) + log_weights), nan=0.0, posinf=np.inf)
        larger = np.exp(values_of_rows(survival, rows, ends))
    starts = np.cumsum([0, *pieces[:-1]]) * (len(nodes) // sum(pieces))
    between = np.add.reduceat(mass, starts, axis=1)[:, : len(POINTS)]
    first = len(POINTS) - len(ends) + 2
    expected, below = between[:, first:], between[:, :first].sum(axis=1)
    found = -np.diff(larger[:, 1:], axis=1)
    numbers = np.isfinite(expected).all(axis=1) & np.isfinite(found).all(axis=1)
    numbers &= (expected.sum(axis=1) > ALIKE) | (found.sum(axis=1) > ALIKE)
    counts = numbers & (np.abs(larger - 0.5) <= 0.5 + ALIKE).all(axis=1)
    starts_whole = np.minimum(1 - larger[:, 0], np.abs(1 - larger[:, 1] - below)) <= ALIKE
    same = counts & starts_whole & (np.abs(found - expected) <= ALIKE).all(axis=1)
    tried = counts.reshape(-1, told).any(axis=1)
    at_all = tried & (same | ~numbers).reshape(-1, told).all(axis=1)
    return bool(2 * at_all.sum() > tried.sum())


def says_something_of_points(density: Written, parameters: Sequence[Variable]) -> bool:
    """Whether a density says of single values what it does not say of those beside them: see ``tells_points_apart``."""
    rows, unknown = rows_for(density, parameters)[0], _unknown(parameters)
    others = rows_in_units([difference for *_, difference in equalities(density)], _at, rows, unknown)
    return any(tells_points_apart(density, _at, tried) for tried in [rows, *others])


def problem_of_values(density: Written, parameters: Sequence[Variable]) -> str:
    """Why a density may not be integrated, though it is one where it was tried: what it says of single values, of rounded ones, on a side
    of a number where next to no values are at the unknowns that were tried, or at negative unknowns; nothing of another.
    """
    if says_something_of_points(density, parameters):
        return HEAPED
    rows, unknown = rows_for(density, parameters)[0], _unknown(parameters)
    if is_of_rounded(density, _at, rows, unknown):
        return ROUNDED
    if says_something_unseen(density, _at, rows, unknown):
        return UNSEEN
    of_either_sign = np.array([bool(_may_be_negative(parameter)) for parameter in parameters], dtype=bool)
    return OF_NEGATIVE if _is_another_at_negative(density, rows, unknown & of_either_sign) else ""


def _may_be_negative(parameter: Variable) -> bool:
    """Whether it is an unknown that nothing keeps at or above 0, as it is or in sums and products."""
    if parameter.owner is None:
        return False
    operation = parameter.owner.op
    if isinstance(operation, ModelFreeRV):
        random = parameter.owner.inputs[0]
        ends = support_of(random)
        return random.type.dtype.startswith("float") and (ends is None or bool((ends[0] < 0).any()))
    if isinstance(operation, KEEPING) or is_cast(parameter):
        return _may_be_negative(parameter.owner.inputs[0])
    return scalar_name(operation) in ARITHMETIC and any(map(_may_be_negative, parameter.owner.inputs))


def _is_another_at_negative(density: Written, rows: np.ndarray, unknown: np.ndarray) -> bool:
    """Whether what is a density at positive unknowns is none where one of these is negative, though it has an integral there."""
    base = integrals_of_rows(density, rows)
    base = base[np.isfinite(base) & (base > 0)]
    # Points of the rules are close together about positive values of unknowns: what is narrow may be about negative ones.
    value = density.vectors[0]
    mirrored = Written(density.vectors, substitute(density.graph, {value: -value}))
    for k in np.flatnonzero(unknown):
        there = rows.copy()
        there[:, k] *= -1
        found = np.stack([integrals_of_rows(of, there) for of in (density, mirrored)])
        found = found[:, (np.isfinite(found) & (found > 0)).all(axis=0)]
        alike = (np.abs(found[..., None] - base) <= ALIKE * base).any(axis=(0, 2))
        if len(alike) and 2 * alike.sum() <= len(alike):
            return True
    return False


def _unknown(parameters: Sequence[Variable]) -> np.ndarray:
    """Which parameters (K,) are neither plain numbers nor computed from data alone."""
    return np.array([number_in(parameter) is None and not _is_data(parameter) for parameter in parameters], dtype=bool)


def says_what(
    flag: float,
    other: Callable[..., Tensor],
    density: Callable[..., Tensor],
    survival: Callable[..., Tensor],
    parameters: Sequence[Variable],
) -> frozenset[str]:
    """What a formula says where a flag is neither 1 nor 0.

    "event" or "none" where it is that at 1 or at 0, as a condition has it, and "line" where it is what a product makes of both.
    Compared at ``POINTS`` above 0, where all three are numbers.
    """
    rows, _ = rows_for(density, parameters)
    found, event, none = (values_of_rows(of, rows, POINTS[POINTS > 0]) for of in (other, density, survival))
    numbers = np.isfinite(found) & np.isfinite(event) & np.isfinite(none)
    with np.errstate(all="ignore"):
        several = {"event": event, "none": none, "line": flag * event + (1 - flag) * none}
        alike = {name: np.allclose(found[numbers], one[numbers], rtol=ALIKE, atol=ALIKE) for name, one in several.items()}
    return frozenset(name for name in several if alike[name])


def _same_integrals(
    density: Callable[..., Tensor], parameters: Sequence[Variable], *, everywhere: bool = False, to: float | None = None
) -> tuple[bool, bool]:
    """Whether a function integrates to the same at all data, at most of its unknowns; and whether to the same at most of these, too.

    Data at which it is no number do not count, as a standard deviation of 0, unless it is asked for a number ``everywhere``. ``to`` is
    the number that it must integrate to, if that is known.
    """
    rows, told = rows_for(density, parameters)
    integrals = integrals_of_rows(density, rows).reshape(-1, told)
    several, integrals = len(integrals) > 1, integrals[(integrals > 0).any(axis=1)]
    if several and len(integrals) < 2:  # a single number agrees with itself
        return False, False
    largest, smallest = (
        np.max(integrals, axis=1, where=integrals > 0, initial=0.0),
        np.min(integrals, axis=1, where=integrals > 0, initial=np.inf),
    )
    with np.errstate(all="ignore"):
        same = np.isfinite(largest) & (largest - smallest <= ALIKE * largest)
    same &= (integrals > 0).all(axis=1) | (not everywhere)
    found = largest[same]
    alike = (np.abs(found - (found[:, None] if to is None else np.array([[to]]))) <= ALIKE * found).sum(axis=1)
    return bool(2 * same.sum() > len(integrals)), bool(2 * alike.max(initial=0) > len(integrals))


def rows_for(of: Callable[..., Tensor], parameters: Sequence[Variable]) -> tuple[np.ndarray, int]:
    """Rows of values of parameters (R, P) at which a density is tried, and how many of them after each other differ in data alone.

    Those unknowns are taken for probabilities with which the density is a number at the first of ``TRIED`` and at no other.
    """
    rows, told = _tried(parameters)
    integrals = integrals_of_rows(of, rows)
    there = np.isfinite(integrals) & (integrals > 0)
    unknown = _unknown(parameters)
    first = unknown & (rows == TRIED[0])
    shares = {k for k in range(rows.shape[1]) if first[:, k].any() and there.any() and not (there & ~first[:, k]).any()}
    return _tried(parameters, shares) if shares else (rows, told)


def _tried(parameters: Sequence[Variable], shares: Collection[int] = ()) -> tuple[np.ndarray, int]:
    """Rows of values of parameters (R, P), and how many of them after each other differ in those that are computed from data alone.

    ``shares`` are those unknowns that are probabilities.
    """
    fixed = [number_in(parameter) for parameter in parameters]
    of_data = [number is None and _is_data(parameter) for parameter, number in zip(parameters, fixed, strict=True)]
    unknown = [number is None and not data for number, data in zip(fixed, of_data, strict=True)]
    many = len(TRIED) if sum(unknown) <= FEW else 2
    told = OF_DATA if sum(of_data) <= FEW else OF_DATA[:2]
    beside = [
        (SHARES if k in shares else TRIED)[:many] if is_unknown else (number or 0.0,)
        for k, (is_unknown, number) in enumerate(zip(unknown, fixed, strict=True))
    ]
    rows = np.array([
        np.where(of_data, data, row) for row in product(*beside) for data in product(*(told if d else (0.0,) for d in of_data))
    ])  # fmt: skip
    return rows.reshape(len(rows), len(parameters)), len(told) ** sum(of_data)


def _is_data(parameter: Variable) -> bool:
    """Whether a parameter is computed from data and from no unknown."""
    return bool(arrays_above([parameter])) and not any(map(is_unknown, above([parameter])))


def integrals_of_rows(density: Callable[..., Tensor], rows: np.ndarray) -> np.ndarray:
    """Of a density at rows of parameters (R, P): (R,), infinite ones among them; NaN where it is no number.

    One that is a number at some values and none at others nearby is none over all real numbers: its integral counts as infinite.
    """
    close = np.add.outer([*ENDS, *TRIED, *SHARES], [*CLOSE, *(-step for step in CLOSE)])
    nodes, log_weights, _ = nodes_between(np.union1d(POINTS, close), -np.inf, np.inf, ENDS)
    with np.errstate(all="ignore"):
        parts = np.exp(values_of_rows(density, rows, nodes) + log_weights)
        whole, far = parts.sum(axis=1), parts[:, np.abs(nodes) > FAR].sum(axis=1)
        nowhere = (np.isnan(parts) & (np.abs(nodes) < POINTS[-1])).any(axis=1) & (np.nansum(parts, axis=1) > 0)
        return np.where((far > whole / 2) | nowhere, np.inf, whole)


def values_of_rows(of: Callable[..., Tensor], rows: np.ndarray, points: np.ndarray) -> np.ndarray:
    """A function of values and parameters, at these points for each row of parameters (R, P)."""
    if isinstance(of, Written):
        return _at(of, np.broadcast_to(points, (len(rows), len(points))), rows)
    arguments = [np.broadcast_to(a, (len(rows), len(points))) for a in (points, *(column[:, None] for column in rows.T))]
    with np.errstate(all="ignore"):
        of_all = pytensor.function([], of(*map(pt.constant, arguments)), mode="FAST_COMPILE")()
    return np.broadcast_to(of_all, (len(rows), len(points)))


def _at(of: Written, points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A function of values and parameters, at points (R, P), of which each row has its own parameters (R, K)."""
    arguments = [np.broadcast_to(a, points.shape) for a in (points, *(column[:, None] for column in rows.T))]
    with np.errstate(all="ignore"):
        return _compiled(of)(*map(np.ravel, arguments)).reshape(points.shape)


@lru_cache(maxsize=32)
def _compiled(of: Written) -> Callable[..., np.ndarray]:
    """A function in which no record stands, called several times; compiled for Python, because a C compiler would take longer."""
    # A copy with operations of its own: what is compiled leaves its traces on them, and a model with such traces is refused.
    vectors, graph = cloudpickle.loads(cloudpickle.dumps((of.vectors, of.graph)))
    whole = graph + pt.zeros_like(vectors[0])  # it may rest on no values
    return pytensor.function(list(vectors), whole, mode=Mode(linker="py", optimizer="fast_compile"), on_unused_input="ignore")
