"""What is asked of the second door, what a draw costs, and what leaves."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from pymc_dp.accounting import Cost, epsilon_of
from pymc_dp.annotation import spent_on
from pymc_dp.blank import Blank
from pymc_dp.ledger import Ledger, Part
from pymc_dp.mechanisms import RUNG, UNACCOUNTED, Annealing, Draw, Gaussian, Gibbs, Laplace, PosteriorSample, Receipt
from pymc_dp.networks import Network

if TYPE_CHECKING:
    import xarray as xr

    from pymc_dp.posterior.schedule import Schedule

WEIGHT = "log weight"
"""The name of what gets noise at the end of an annealed chain, the last draw of each."""
NAT = 2**20
"""Scores are integers in units of 1 / NAT nats."""
CERTIFIED, REAL_ARITHMETIC, IF_CONVERGED = "certified", "real-arithmetic", "if-converged"
"""Promises: exact in integers; exact but for floating point; as exact as a Markov chain has converged."""
READING = (
    "(epsilon, delta + (1 + e^epsilon) k d)-differential privacy of k draws, if every one lies within the total variation distance d of the"
    " posterior"
)
"""What a draw by a Markov chain promises (docs/theory.md)."""


@dataclass(frozen=True)
class Asked:
    """What is asked of the second door.

    Attributes
    ----------
    model : pm.Model
    total : Cost
        What may be spent; where ``Gibbs`` says what an update costs, by one update.
    mechanism : PosteriorSample, Gibbs or Annealing
    mode : bool
        Whether the mode is wanted rather than draws.
    bounds : mapping or None
    public : list
    unit, neighbours : str
    ledger : Ledger, Part or None
    delta : Fraction
    missing : mapping, list or None
        What missing values count as, as the user wrote it.
    """

    model: pm.Model
    total: Cost
    mechanism: PosteriorSample | Gibbs | Annealing
    mode: bool
    bounds: Mapping[str, object] | None
    public: list[object]
    unit: str
    neighbours: str
    ledger: Ledger | Part | None
    delta: Fraction = Fraction(0)
    missing: object = None


@dataclass(frozen=True)
class Price:
    """What one draw costs, and how flat the posterior is made for it.

    Attributes
    ----------
    scale : float
        Scores are divided by it: NAT times the temperature.
    cost : Cost
        Of all draws together.
    draws : tuple of Draw
        The choices that are paid for.
    """

    scale: float
    cost: Cost
    draws: tuple[Draw, ...]

    @property
    def temperature(self) -> float:
        """The likelihood is taken to the power of its inverse."""
        return self.scale / NAT


def priced(asked: Asked, own: Sequence[tuple[str, int, int]], *, whole: bool = False) -> Price:
    """The least flattening at which all draws together cost no more than is asked for.

    Scores that neighbours move by a range of eta, drawn with probabilities in proportion to exp(score / scale), cost eta / scale, and
    eta^2 / (8 scale^2) in zCDP, because the logarithm of the ratio of probabilities stays in an interval of that length (Cesar, Rogers
    2021; docs/theory.md, bounded range). Draws add up, either way; the cheaper is taken where delta allows both. A draw is never
    sharper than the posterior (T = max(1, .)); a mode is, where epsilon allows it.

    Parameters
    ----------
    asked : Asked
    own : sequence of (str, int, int)
        Its name, eta in units of 1 / NAT and how many scores, of everything that is chosen by itself in one draw.
    whole : bool
        Charge all that is asked for, because it has decided where the posterior ends.
    """
    many, eta = asked.mechanism.rounds, sum(own_eta for _, own_eta, _ in own)
    least = Laplace().calibrate(eta * many, (eta * many) ** 2, Cost(asked.total.epsilon))
    concentrated = None
    if asked.total.delta:
        squares = sum(own_eta**2 for _, own_eta, _ in own)
        concentrated = Gaussian().calibrate(0, Fraction(many * squares, 4), asked.total)  # type: ignore[arg-type]
    scale = least if concentrated is None else min(least, concentrated)
    if not asked.mode:
        scale = max(scale, float(NAT))
    draws = [Draw(name, "choice", own_eta, own_eta**2, scale, size) for name, own_eta, size in own] * many
    rho = sum((one.rho for one in draws), Fraction(0))
    pure = sum((one.pure or Fraction(0) for one in draws), Fraction(0))
    together = epsilon_of(rho, asked.total.delta) if asked.total.delta else pure
    assert scale >= least or (asked.total.rho is not None and rho <= asked.total.rho)
    if scale < least or (together < pure and not whole):  # where the posterior is not flattened, for no more than it costs
        epsilon = asked.total.epsilon if whole else min(together, asked.total.epsilon)
        return Price(scale, Cost(epsilon, asked.total.delta, rho), tuple(draws))
    return Price(scale, Cost(asked.total.epsilon if scale == least or whole else pure, rho=rho), tuple(draws))


@dataclass(frozen=True)
class Prepared:
    """A draw that is ready to be paid for: no record has been read.

    Attributes
    ----------
    found : Blank
    price : Price
    promise : str
    draw : callable
        With a receipt for these draws: reads the records and draws.
    records : int or None
        How many there are, where that is public.
    smallest : float
        The least probability of a split, where the model's own prior goes further; 0 otherwise.
    schedule : Schedule or None
        Of a chain that pays on its way.
    """

    found: Blank
    price: Price
    promise: str
    draw: Callable[[Receipt], "Drawn"]
    records: int | None
    smallest: float = 0.0
    schedule: "Schedule | None" = None


@dataclass(frozen=True)
class Drawn:
    """What left: values of the model's free variables, and what is public about how.

    Attributes
    ----------
    found : Blank
    prior : pm.Model
        The model without its likelihoods.
    values : dict of str to (chains * draws, *shape) ndarray
    price : Price
    mechanism : PosteriorSample, Gibbs or Annealing
    spent : dict
        The attributes of every group.
    facts : dict
        More that is public, for the attributes of the privacy group.
    network : Network or None
    tables : dict of str to ndarray
        Of a network, by node (draws, *parents, levels).
    running : (chains, draws) ndarray or None
        Of a chain that pays on its way, the epsilon that was spent when a state was reached.
    stats : dict of str to (chains, draws) ndarray
        What else was paid for about every draw.
    """

    found: Blank
    prior: pm.Model
    values: Mapping[str, np.ndarray]
    price: Price
    mechanism: PosteriorSample | Gibbs | Annealing
    spent: Mapping[str, object]
    facts: Mapping[str, object] = field(default_factory=dict)
    network: Network | None = None
    tables: Mapping[str, np.ndarray] = field(default_factory=dict)
    running: np.ndarray | None = None
    stats: Mapping[str, np.ndarray] = field(default_factory=dict)


def left(asked: Asked, found: Blank, prior: pm.Model, values: Mapping[str, np.ndarray], price: Price, promise: str, **more: Any) -> Drawn:
    """What left, without anything that holds a record."""
    return Drawn(found, prior, values, price, asked.mechanism, spent_on(price.cost, asked.unit, asked.neighbours, promise), **more)


def posterior_group(drawn: Drawn) -> "xr.Dataset":
    """Draws of the model's own variables, with their dims and labels, and of what it computes from them."""
    import xarray as xr

    data, coords = {}, {}
    chains, many = drawn.mechanism.chains, drawn.mechanism.draws
    for name, values in drawn.values.items():
        shape = values.shape[1:]
        named = drawn.prior.named_vars_to_dims.get(name) or (None,) * len(shape)
        dims = [dim or f"{name}_dim_{axis}" for axis, dim in enumerate(named)]
        data[name] = (("chain", "draw", *dims), values.reshape(chains, many, *shape))
        for dim, length in zip(dims, shape, strict=True):
            labels = drawn.found.coords.get(dim)
            coords[dim] = np.arange(length) if labels is None else np.asarray(labels)
    found = xr.Dataset(data, coords={"chain": np.arange(chains), "draw": np.arange(many), **coords})
    if not drawn.prior.deterministics:
        return found
    try:
        how = {"mode": "FAST_COMPILE"}
        return pm.compute_deterministics(found, model=drawn.prior, merge_dataset=True, progressbar=False, compile_kwargs=how)
    except Exception:  # a check of the user's own, of what was drawn: the draws are paid for
        return found


def _statistics(mechanism: PosteriorSample | Gibbs | Annealing, several: Sequence[Draw]) -> list[str]:
    """What every entry of the privacy group is about: names of unknowns are the user's, and say nothing."""
    if isinstance(mechanism, PosteriorSample):
        return ["draw from the posterior"] * len(several)
    found = ["Gibbs update" if one.pure is not None else "log-ratio of a move" for one in several]
    return [*found[:-1], WEIGHT] if isinstance(mechanism, Annealing) else found


def privacy_group(drawn: Drawn, head: str) -> "xr.Dataset":
    """What was drawn, one entry for each thing that is chosen by itself; ``head`` is that of the ledger."""
    import xarray as xr

    mechanism = drawn.mechanism
    several = drawn.price.draws[: len(drawn.price.draws) // mechanism.rounds]
    statistics = _statistics(mechanism, several)
    units = [NAT * RUNG if statistic == WEIGHT else NAT for statistic in statistics]
    columns: dict[str, Sequence[object]] = {
        "variable": [one.variable for one in several],
        "statistic": statistics,
        "mechanism": [mechanism.name] * len(several),
        "sensitivity": [one.difference / unit for one, unit in zip(several, units, strict=True)],
        "scale": [one.scale / unit for one, unit in zip(several, units, strict=True)],
        "epsilon": [
            float(epsilon_of(one.rho * mechanism.rounds, drawn.price.cost.delta) if one.pure is None else one.pure * mechanism.rounds)
            for one in several
        ],
        "delta": [float(drawn.price.cost.delta)] * len(several),
    }
    return xr.Dataset(
        {name: (("release",), np.asarray(values)) for name, values in columns.items()},
        coords={"release": np.arange(len(several))},
        attrs={
            "mechanism": mechanism.name,
            "draws": mechanism.draws,
            "range": sum(one.difference / unit for one, unit in zip(several, units, strict=True)),
            "temperature": drawn.price.temperature,
            "public": json.dumps(list(drawn.found.public)),
            "ledger_head": head or UNACCOUNTED,
            "versions": json.dumps({package: version(package) for package in ("pymc_dp", "pymc", "opendp")}),
            **drawn.facts,
        },
    )
