"""The functions that users call to draw: everything is checked and prepared, then paid for, and then records are read."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pymc as pm

from pymc_dp.plans.missing import warn_of_missing
from pymc_dp.plans.naming import check_names, drawn_of
from pymc_dp.plans.protection import Protection, in_context, protection_of, warn_of_weak_promises
from pymc_dp.posterior.price import Task
from pymc_dp.posterior.result import Drawn, posterior_group, privacy_group
from pymc_dp.posterior.routes import prepared
from pymc_dp.posterior.schedules import Schedule
from pymc_dp.posterior.tables import network_group
from pymc_dp.privacy.accounting import Cost, Refusal, exact_delta, exact_epsilon, rho_of
from pymc_dp.privacy.calls import explained
from pymc_dp.privacy.guard import PACKAGE, boundary
from pymc_dp.privacy.ledger import Ledger, Part, check_ledger, receipt_for
from pymc_dp.privacy.mechanisms import Gaussian, Laplace
from pymc_dp.privacy.requests import PosteriorRequest, PosteriorSample
from pymc_dp.private_models.diagnostics import ClampedWarning, ConvergenceWarning
from pymc_dp.private_models.labels import labelled
from pymc_dp.releases.prepared import check_doubles, warn_that_nothing_remembers

if TYPE_CHECKING:
    import xarray as xr


def task_of(
    model: pm.Model | None, epsilon: object, delta: object, request: PosteriorRequest, protection: Protection, *, mode: bool = False,
    ledger: Ledger | Part | None = None, data: object = None,
) -> Task:  # fmt: skip
    """The task, or a refusal of what is asked for."""
    if request.epsilon_per_update is not None:
        if epsilon is not None:
            raise Refusal("epsilon and epsilon_per_update say what may be spent in two ways. Write one of them.")
        epsilon = request.epsilon_per_update
    if protection.aggregate or (protection.person is not None and not isinstance(request, PosteriorSample)):
        raise Refusal('Draws from the posterior protect single rows. Write unit="row", or mechanism="laplace".')
    if protection.disjoint:
        raise Refusal(
            'A draw from the posterior rests on all observed variables at once. Leave disjoint out, or write mechanism="laplace".'
        )
    noise = Laplace() if exact_delta(delta) == 0 else Gaussian()
    total = noise.total(exact_epsilon(epsilon), exact_delta(delta))
    return Task(in_context(model), total, request, mode, protection, check_ledger(ledger), exact_delta(delta), data)


class Payable(NamedTuple):
    """A draw of which nothing is refused any more and nothing has been paid. No record can be reached from it but by ``pay_and_draw``,
    which gives what was drawn and the head of the ledger.
    """

    cost: Cost
    schedule: Schedule | None
    caution: str
    pay_and_draw: Callable[[], tuple[Drawn, str]]


@boundary
def _checked(
    model: pm.Model | None, epsilon: object, delta: object, request: PosteriorRequest, protection: Protection,
    ledger: Ledger | Part | None = None, mode: bool = False, data: object = None,
) -> Payable:  # fmt: skip
    """Read the model, price the draws, and refuse whatever can be refused. No record is read, and nothing is paid."""
    check_doubles()
    task = task_of(model, epsilon, delta, request, protection, mode=mode, ledger=ledger, data=data)
    prepared_draw = prepared(task)
    price, public = prepared_draw.price, prepared_draw.spec.public
    check_names(drawn_of(prepared_draw.spec), prepared_draw.spec.coords)

    @boundary
    def pay_and_draw() -> tuple[Drawn, str]:
        receipt = receipt_for(task.ledger, price.cost, price.draws, neighbours=task.neighbours, unit=protection.unit, public=public)
        return prepared_draw.draw(receipt), receipt.head

    return Payable(price.cost, prepared_draw.schedule, prepared_draw.caution, pay_and_draw)


def _drawn(payable: Payable, protection: Protection, ledger: Ledger | Part | None) -> tuple[Drawn, str]:
    """What was drawn, and the head of the ledger. What nobody declared is said first: where warnings are errors, nothing is spent."""
    if protection.missing is None:
        warn_of_missing()
    if ledger is None:
        warn_that_nothing_remembers()
    if payable.caution:
        warnings.warn(payable.caution, ClampedWarning, skip_file_prefixes=(PACKAGE,))
    return payable.pay_and_draw()


def _total(epsilon: object, delta: object) -> Cost:
    """What is about to be spent in all."""
    total, limit = exact_epsilon(epsilon), exact_delta(delta)
    return Cost(total, limit, rho_of(total, limit) if limit else None)


def sample_posterior(
    model: pm.Model | None, request: PosteriorRequest, epsilon: object, protection: Protection, *, delta: object,
    ledger: Ledger | Part | None, data: object = None,
) -> "xr.DataTree":  # fmt: skip
    """Draws from a posterior, paid for one by one: see ``sample``, which calls this."""
    import xarray as xr

    model, by_update = in_context(model), request.epsilon_per_update is not None
    checked = cache(lambda: _checked(model, epsilon, delta, request, protection, ledger, data=data))
    spent = lambda: checked().cost if by_update else _total(epsilon, delta)  # noqa: E731
    warn_of_weak_promises(model, spent, protection, elsewhere=data is not None)
    drawn, head = _drawn(checked(), protection, ledger)
    groups = {"posterior": posterior_group(drawn), "privacy": privacy_group(drawn, head)}
    if drawn.running is not None:
        coords = {name: groups["posterior"][name] for name in ("chain", "draw")}
        stats = {"epsilon": drawn.running, **drawn.stats}
        groups["sample_stats"] = xr.Dataset({name: (("chain", "draw"), values) for name, values in stats.items()}, coords=coords)
    if drawn.network is not None:
        groups["network"] = network_group(drawn)
    tree = labelled(xr.DataTree.from_dict(groups), drawn.spent, groups)
    try:
        if drawn.warning:
            warnings.warn(drawn.warning, ConvergenceWarning, skip_file_prefixes=(PACKAGE,))
    except Warning as raised:  # where warnings are errors, what was paid for is in it
        raised.tree = tree  # type: ignore[attr-defined]
        raise
    return tree


@explained
def find_MAP(  # noqa: N802 - PyMC's own name
    *,
    epsilon: object,
    model: pm.Model | None = None,
    smallest: float | None = None,
    points: int | None = None,
    truncate: str | Mapping[str, tuple[float, float]] | None = None,
    bounds: Mapping[str, object] | None = None,
    public: Iterable[object] = (),
    unit: str = "row",
    neighbours: str = "replace",
    missing: Mapping[str, object] | Iterable[str] | None = None,
    ledger: Ledger | Part | None = None,
    data: object = None,
) -> dict[str, np.ndarray]:
    """A private maximum a posteriori (MAP) estimate, by the exponential mechanism on a public grid.

    At a large epsilon it is the mode of the posterior, at a small one a draw from a flattened posterior. A point of the grid is drawn with
    probability in proportion to exp(epsilon score / C), where its score is the log posterior density, which one record moves by a range
    of at most C (ZRD16, Algorithm 3, corrected: their scores are probabilities of
    sets, which promises nothing for densities; docs/theory.md). If S_t are the points whose score is within t of the best, the
    probability that the result lies outside S_2t is at most exp(-epsilon t / C) / (share of the grid in S_t).

    Parameters
    ----------
    epsilon : int, float, Decimal or Fraction
        Total cost in nats.
    model : pm.Model, optional
        The model in context if left out: a Bayesian network of Bernoulli and Categorical variables, with Beta or Dirichlet priors on its
        tables; or any model with up to three unknown numbers, whose priors are bounded or truncated (``truncate=``).
    smallest : float
        For Bayesian networks, the least probability of a split of levels, .01 if left out. C grows as it gets smaller.
    points : int, optional
        The number of points of the grid in every direction.
    truncate : "prior" or mapping of str to (float, float), optional
        How to truncate priors: see ``PosteriorSample``.
    bounds, public, unit, neighbours, missing, ledger, data
        See ``release``; ``data`` for Bayesian networks.

    Returns
    -------
    dict of str to ndarray
        The value of every free variable, by name, as ``pm.find_MAP`` gives it.

    Raises
    ------
    Refusal
        When the model is not of this kind: before any record is read, with what to write instead.

    Examples
    --------
    >>> sorted(pmdp.find_MAP(model=model, epsilon=1.0))
    ['share']
    """
    protection = protection_of(bounds=bounds, public=public, unit=unit, neighbours=neighbours, missing=missing)
    warn_of_weak_promises(model, lambda: Cost(exact_epsilon(epsilon)), protection, elsewhere=data is not None)
    request = PosteriorSample(1, smallest, points=points, truncate=truncate)
    drawn, _ = _drawn(_checked(in_context(model), epsilon, 0, request, protection, ledger, mode=True, data=data), protection, ledger)
    return {name: values[0] for name, values in drawn.values.items()}


@boundary
def schedule(model: pm.Model, request: object, epsilon: object, delta: object, protection: Protection) -> Schedule:
    """Every update that ``sample`` would pay for, and what all of them cost: free, no record is read. The same code charges."""
    if not isinstance(request, PosteriorRequest) or not request.scheduled:
        raise Refusal(
            "inspect lists the payments of mechanism=pymc_dp.Gibbs(sweeps=50), whose chain pays at every update. Other draws from the"
            " posterior cost what epsilon says: leave mechanism out to see what a release would be, or write pymc_dp.advise(model,"
            " epsilon=1) to compare it with draws."
        )
    checked = _checked(model, epsilon, delta, request, protection)
    assert checked.schedule is not None
    return checked.schedule
