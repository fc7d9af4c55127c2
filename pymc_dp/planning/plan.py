"""``plan``: what epsilon buys, before anything is paid. Everything is simulated from the model and its priors; no record is read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
from pymc.model.fgraph import ModelPotential

from pymc_dp.audits.progress import progress
from pymc_dp.planning.covariates import assumptions
from pymc_dp.planning.fits import Fit, Sampler, fit_without_privacy, private_fit
from pymc_dp.planning.records import Simulated, planned_records, simulated_records, simulated_unknowns
from pymc_dp.plans.naming import drawn_of
from pymc_dp.plans.person import Person
from pymc_dp.plans.plan import planned_release
from pymc_dp.plans.protection import Individual, protection_of, with_records
from pymc_dp.plans.widths import MEASURES, PlannedWidths, check_width
from pymc_dp.privacy.accounting import Cost, Refusal, Weights, exact_delta, exact_epsilon, is_whole, protected
from pymc_dp.privacy.calls import explained
from pymc_dp.privacy.mechanisms import Mechanism, resolve
from pymc_dp.privacy.requests import MOST_DRAWS
from pymc_dp.releases.release import Release
from pymc_dp.releases.simulated import PublicSide, imagined_release, public_side

if TYPE_CHECKING:
    import xarray as xr

EPSILONS = (0.1, 0.3, 1.0, 3.0)
"""Planned for where nothing is said."""
BRACKET = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Tried where an epsilon is looked for."""


@explained
def plan(
    model: pm.Model | None = None,
    *,
    epsilon: object = None,
    width: Mapping[str, float] | None = None,
    assuming: Mapping[str, object] | None = None,
    covariate_law: Mapping[str, object] | None = None,
    records: int | None = None,
    simulations: int = 8,
    mechanism: str | Mechanism | Sequence[str | Mechanism] = "laplace",
    delta: float = 0,
    bounds: Mapping[str, object] | None = None,
    public: Iterable[object] = (),
    unit: str | Individual | Person = "row",
    neighbours: str = "replace",
    missing: Mapping[str, object] | Iterable[str] | None = None,
    disjoint: Iterable[object] | bool | None = None,
    weights: Weights = None,
    draws: int = 500,
    tune: int = 500,
    chains: int = 2,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> PlannedWidths:
    """Find out what epsilon buys, before anything is paid: how wide posteriors will be after a release, and without privacy.

    Unknowns are drawn from the priors, records from the likelihoods given them, and a release of these is simulated at every epsilon. The
    private model is fitted to each release, and your model to the simulated records without noise. No record of yours is read: public
    arrays are used as they are, and private ones are simulated. So it costs nothing, as long as what you write here does not come from
    the records.

    Parameters
    ----------
    model : pm.Model, optional
        The model in context if left out.
    epsilon : number or list of numbers, optional
        In nats; 0.1, 0.3, 1 and 3 if left out.
    width : mapping of str to float, optional
        The reverse question: by name of an unknown, how wide its 90 % interval may be. The epsilon that this takes is looked for between
        0.03 and 10, or among those in ``epsilon``.
    assuming : mapping, optional
        Values of unknowns to plan for, ``{"beta": 0.5}``; what is not named is drawn from the priors given them.
    covariate_law : mapping, optional
        By name of a private covariate or index, how its values are distributed: a distribution such as ``pm.Normal.dist(40, 12)``, an
        array of draws that do not come from the records, or a function of (rng, size). Without one they are uniform within their bounds,
        or over the levels of an index, and the table says so.
    records : int, optional
        How many records to plan for; as many as the model has if left out. Needed where their number is private. Another number than the
        model's is possible only if no public array has an entry per record. With ``unit=Person(...)``, how many rows count.
    simulations : int
        Data sets that are simulated, each with unknowns of its own.
    mechanism : str, Mechanism or list
        A noise, as ``release`` takes it; several are compared.
    delta, bounds, public, unit, neighbours, missing, disjoint, weights
        See ``release``. No simulated value is missing. Simulated rows of one person are correlated only if the model says so.
    draws, tune, chains : int
        Of every fit.
    random_seed : int, optional
        The same seed makes the same plan. The simulated noise protects nobody, so it may be seeded.
    progressbar : bool

    Returns
    -------
    PlannedWidths

    Raises
    ------
    Refusal
        Where the model cannot be released, or cannot be drawn from; the message says what to write instead.

    Examples
    --------
    >>> planned = pmdp.plan(model, epsilon=[0.1, 1], simulations=1, draws=50, tune=50, random_seed=1, progressbar=False)
    >>> [row.epsilon for row in planned.rows]
    [0.1, 1.0]
    """
    sampler = _checked_sampler(draws, tune, chains, simulations)
    protection = protection_of(
        bounds=bounds, public=public, unit=unit, neighbours=neighbours, missing=missing, disjoint=disjoint, persons=True
    )
    side = public_side(with_records(model), protection)
    del model
    whole, request = planned_release(side.spec, protection), _requested(epsilon, width, mechanism, delta)
    names = [drawn.name for drawn in drawn_of(side.spec)]
    if not names:
        raise Refusal("Nothing in this model is unknown, so there is no posterior. Put a prior on something.")
    if width is not None:
        check_width(width, names)
    laws, assumed, rng = dict(covariate_law or {}), dict(assuming or {}), np.random.default_rng(random_seed)
    many, notes = planned_records(side, records), assumptions(side, laws)
    truth = simulated_unknowns(side.spec, assumed, simulations, rng)

    def simulated(k: int) -> Simulated:
        return simulated_records(side, truth.isel(draw=[k]), laws, many, rng)

    def imagined(data: Simulated, noise: Mechanism, cost: Cost) -> Release:
        return imagined_release(whole, data.observed, data.inputs, noise, cost, weights, rng)

    private, without = [], []
    with progress("planning", "fits", simulations * (1 + len(request.costs)), progressbar) as advance:
        for data in map(simulated, range(simulations)):
            without.append(fit_without_privacy(side, data, sampler, _seed(rng)))
            advance()
            for noise, cost in request.costs:
                private.append(private_fit(side, imagined(data, noise, cost), sampler, _seed(rng)))
                advance()
    notes = (*notes, *_said(side, assumed, [*private, *without]))
    widths = _private_set(side, request, private, simulations), _without_set(side, without)
    protects = protected(protection.unit, whole.disjoint)
    return PlannedWidths(*widths, truth, many, protects, protection.neighbours, notes, dict(width or {}))


@dataclass(frozen=True)
class Request:
    """The settings that a plan compares.

    Attributes
    ----------
    epsilons : tuple of float
    mechanisms : tuple of str
        In words.
    costs : tuple of (Mechanism, Cost)
        Of every mechanism at every epsilon, in this order.
    """

    epsilons: tuple[float, ...]
    mechanisms: tuple[str, ...]
    costs: tuple[tuple[Mechanism, Cost], ...]


def _requested(epsilon: object, width: object, mechanism: object, delta: object) -> Request:
    """Mechanisms and epsilons, or a refusal."""
    if epsilon is None:
        epsilon = EPSILONS if width is None else BRACKET
    several = list(epsilon) if isinstance(epsilon, Iterable) and not isinstance(epsilon, str) else [epsilon]
    nats = sorted({exact_epsilon(number) for number in several})
    if not nats:
        raise Refusal("epsilon is an empty list. Write for example epsilon=[0.1, 1].")
    noises = [resolve(entry) for entry in (mechanism if isinstance(mechanism, list | tuple) else [mechanism])]
    costs, words = [], []
    for noise in noises:
        # A delta that is written beside the mechanisms is for those that need one.
        noise_delta = exact_delta(delta if noise.priced_as == "gaussian" or len(noises) == 1 else 0)
        costs += [(noise, noise.total(number, noise_delta)) for number in nats]
        words.append(noise.name + (f", delta {float(costs[-1][1].delta):g}" if costs[-1][1].delta else ""))
    if len(set(words)) < len(words) or not words:
        raise Refusal("mechanism names a noise twice, or none. Write every one once.")
    return Request(tuple(map(float, nats)), tuple(words), tuple(costs))


def _checked_sampler(draws: object, tune: object, chains: object, simulations: object) -> Sampler:
    for name, value, least in (("draws", draws, 2), ("tune", tune, 1), ("chains", chains, 1), ("simulations", simulations, 1)):
        if not is_whole(value, least, MOST_DRAWS):
            raise Refusal(f"{name} must be a whole number of at least {least}. Write for example {name}={max(least, 2)}.")
    return Sampler(draws, tune, chains)  # type: ignore[arg-type]


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def _said(side: PublicSide, assumed: Mapping[str, object], fits: Sequence[Fit]) -> tuple[str, ...]:
    """What the plan rests on besides laws of covariates."""
    drawn = "all unknowns are drawn from their priors" if not assumed else f"{', '.join(assumed)} as given, the rest drawn from the priors"
    notes = [drawn]
    if any(isinstance(variable.owner.op, ModelPotential) for variable in side.spec.kept):
        notes.append("potentials count in the fits, and not where unknowns are drawn")
    if side.protection.missing or side.protection.missing is None:
        notes.append("nothing is missing")
    if side.protection.person is not None:
        notes.append(f"rows that count are independent given the unknowns, also those of one {side.protection.person.name}")
    unsettled = sum(not fit.settled for fit in fits)
    if unsettled:
        notes.append(f"{unsettled} of {len(fits)} fits have chains that cannot be trusted; more tune= and draws= may mend them")
    return tuple(notes)


def _private_set(side: PublicSide, request: Request, fits: Sequence[Fit], simulations: int) -> "xr.Dataset":
    """Widths after a release: dims (measure, mechanism, epsilon, simulation, ...)."""
    shape = (simulations, len(request.mechanisms), len(request.epsilons))
    dims = ("measure", "mechanism", "epsilon", "simulation")
    coords: dict[str, list[Any]] = {"mechanism": list(request.mechanisms), "epsilon": list(request.epsilons)}
    arranged = {}
    for drawn in drawn_of(side.spec):
        values = np.stack([fit.widths[drawn.name] for fit in fits])
        values = values.reshape(*shape, *values.shape[1:])  # (simulation, mechanism, epsilon, measure, ...)
        arranged[drawn.name] = np.moveaxis(values, [3, 1, 2, 0], [0, 1, 2, 3])
    return _dataset(side, arranged, dims, coords)


def _without_set(side: PublicSide, fits: Sequence[Fit]) -> "xr.Dataset":
    """Widths without privacy: dims (measure, simulation, ...)."""
    arranged = {drawn.name: np.stack([fit.widths[drawn.name] for fit in fits], axis=1) for drawn in drawn_of(side.spec)}
    return _dataset(side, arranged, ("measure", "simulation"), {})


def _dataset(side: PublicSide, arranged: Mapping[str, np.ndarray], dims: tuple[str, ...], coords: Mapping[str, list[Any]]) -> "xr.Dataset":
    import xarray as xr

    labels = {dim: list(values) for dim, values in side.spec.coords.items() if values is not None}
    data, used = {}, set()
    for drawn in drawn_of(side.spec):
        axes = [dim or f"{drawn.name}_dim_{k}" for k, dim in enumerate(drawn.dims or (None,) * drawn.ndim)]
        data[drawn.name] = ((*dims, *axes), arranged[drawn.name])
        used |= set(axes)
    return xr.Dataset(data, coords={"measure": list(MEASURES), **coords, **{dim: labels[dim] for dim in used & set(labels)}})
