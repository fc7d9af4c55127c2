"""Which way of drawing a model gets, and what users call."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pymc as pm

from pymc_dp.models.reader import read_model
from pymc_dp.models.spec import ModelSpec
from pymc_dp.plans.inspection import drawn_of
from pymc_dp.plans.missing import warn_of_missing
from pymc_dp.plans.naming import check_names
from pymc_dp.plans.network import network_of
from pymc_dp.plans.plan import plan
from pymc_dp.plans.protection import Protection, in_context, protection_of, warn_of_weak_promises
from pymc_dp.plans.rowwise import rowwise
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.posterior.annealed import by_annealing
from pymc_dp.posterior.ball_regression import in_ball, is_regression
from pymc_dp.posterior.grid import MOST_UNKNOWNS, on_grid
from pymc_dp.posterior.kernel import latents_of
from pymc_dp.posterior.markov import by_chains
from pymc_dp.posterior.price import Asked
from pymc_dp.posterior.result import Drawn, Prepared, posterior_group, privacy_group
from pymc_dp.posterior.schedule import Schedule
from pymc_dp.posterior.sweeps import by_gibbs
from pymc_dp.posterior.tables import network_group, of_tables
from pymc_dp.privacy.accounting import Cost, Refusal, exact_delta, exact_epsilon, rho_of
from pymc_dp.privacy.guard import boundary
from pymc_dp.privacy.ledger import Ledger, Part, check_ledger, paid
from pymc_dp.privacy.mechanisms import Gaussian, Laplace
from pymc_dp.privacy.requests import Annealing, Gibbs, PosteriorSample
from pymc_dp.private_models.labels import labelled
from pymc_dp.releases.from_records import warn_that_nothing_remembers

if TYPE_CHECKING:
    import xarray as xr


type Mechanism = PosteriorSample | Gibbs | Annealing


def asked_for(
    model: pm.Model | None, epsilon: object, delta: object, mechanism: Mechanism, protection: Protection, *, mode: bool = False,
    ledger: Ledger | Part | None = None,
) -> Asked:  # fmt: skip
    """What is asked, checked."""
    if isinstance(mechanism, Gibbs) and mechanism.epsilon_per_update is not None:
        if epsilon is not None:
            raise Refusal("epsilon and epsilon_per_update say what may be spent in two ways. Write one of them.")
        epsilon = mechanism.epsilon_per_update
    if protection.aggregate:
        raise Refusal('Draws from the posterior protect rows. Write unit="row".')
    noise = Laplace() if exact_delta(delta) == 0 else Gaussian()
    total = noise.total(exact_epsilon(epsilon), exact_delta(delta))
    return Asked(in_context(model), total, mechanism, mode, protection, check_ledger(ledger), exact_delta(delta))


def _drawn(
    model: pm.Model, epsilon: object, delta: object, mechanism: Mechanism, protection: Protection, ledger: Ledger | Part | None,
    mode: bool = False,
) -> tuple[Drawn, str]:  # fmt: skip
    """What left, and the head of the ledger. Everything is decided, then paid for, and then records are read."""
    pay_and_draw = _checked(model, epsilon, delta, mechanism, protection, ledger, mode)
    if protection.missing is None:
        warn_of_missing()
    if ledger is None:
        warn_that_nothing_remembers()
    return pay_and_draw()


@boundary
def _checked(
    model: pm.Model, epsilon: object, delta: object, mechanism: Mechanism, protection: Protection, ledger: Ledger | Part | None, mode: bool
) -> Callable[[], tuple[Drawn, str]]:
    """Everything that can be refused; what is left to do is charged first."""
    asked = asked_for(model, epsilon, delta, mechanism, protection, mode=mode, ledger=ledger)
    ready = prepared(asked)
    price, public = ready.price, ready.found.public
    check_names(drawn_of(ready.found), ready.found.coords)

    @boundary
    def pay_and_draw() -> tuple[Drawn, str]:
        receipt = paid(asked.ledger, price.cost, price.draws, neighbours=asked.neighbours, unit=protection.unit, public=public)
        return ready.draw(receipt), receipt.head

    return pay_and_draw


def prepared(asked: Asked) -> Prepared:
    """A draw in the way that suits this model, or a refusal. A mechanism with a method ``prepared`` says itself how it draws."""
    if (prepared_by_itself := getattr(asked.mechanism, "prepared", None)) is not None:
        return prepared_by_itself(asked)
    if isinstance(asked.mechanism, Gibbs | Annealing):
        latents = latents_of(asked.model)
        found, leaves = read_model(asked.model, asked.protection.public, rowwise=True, latents=latents)
        by = by_gibbs if isinstance(asked.mechanism, Gibbs) else by_annealing
        return by(asked, found, leaves, rowwise(found, asked.protection, latents), latents)
    unlike = ""
    if asked.mechanism.method == "exact":
        found, leaves = asked.statistics
        steps = _planned(found, asked)
        network = network_of(steps, alone=True)[0] if steps else None
        if network is not None and asked.protection.missing:
            unlike = "where missing values are left out, or count as a level, networks are released, not drawn"
        elif network is not None:
            ready = of_tables(asked, found, leaves, steps, network)
            if isinstance(ready, Prepared):
                return ready
            unlike = ready
    try:
        return _by_row(asked)
    except Refusal as reason:
        if not unlike or asked.mechanism.smallest is not None:
            raise
        raise Refusal(f"{reason} As a Bayesian network it cannot be drawn either: {unlike.rstrip('.')}.") from None


def _by_row(asked: Asked) -> Prepared:
    """Whatever is no network: read record by record."""
    mechanism = asked.mechanism
    assert isinstance(mechanism, PosteriorSample)
    found, leaves = asked.rowwise
    rows = rowwise(found, asked.protection)
    if mechanism.smallest is not None:
        raise Refusal(
            "smallest is the least probability in a Bayesian network, and this model is not drawn as one. Truncate the priors instead,"
            " for example with pm.Truncated."
        )
    if mechanism.method == "mcmc":
        return by_chains(asked, found, leaves, rows)
    if is_regression(found, rows):
        return in_ball(asked, found, leaves, rows)
    if rows.size > MOST_UNKNOWNS:
        linear = " A linear regression is drawn exactly with its coefficients as one pymc_dp.BallNormal and a number for sigma."
        raise Refusal(
            f"{rows.size} unknown numbers are more than the {MOST_UNKNOWNS} that can be drawn exactly."
            + (linear if any(one.distribution == "Normal" and one.linear is not None for one in rows.likelihoods) else "")
            + ' Otherwise write mechanism="laplace", or PosteriorSample(method="mcmc"), private only as far as its chains converge.'
        )
    return on_grid(asked, found, leaves, rows)


def _planned(found: ModelSpec, asked: Asked) -> tuple[PlannedStatistic, ...]:
    """The plans of a release, where there is one."""
    try:
        return plan(found, asked.protection).statistics
    except Refusal:
        return ()


def _total(model: pm.Model, mechanism: Mechanism, epsilon: object, delta: object, protection: Protection) -> Cost:
    """What is about to be spent, with a delta of any kind."""
    if isinstance(mechanism, Gibbs) and mechanism.epsilon_per_update is not None:
        return schedule(model, mechanism, epsilon, delta, protection).cost
    total, limit = exact_epsilon(epsilon), exact_delta(delta)
    return Cost(total, limit, rho_of(total, limit) if limit else None)


def sample_posterior(
    model: pm.Model | None, mechanism: Mechanism, epsilon: object, protection: Protection, *, delta: object = 0,
    ledger: Ledger | Part | None = None,
) -> "xr.DataTree":  # fmt: skip
    """Draws from a posterior, paid for one by one: see ``sample``, which calls this."""
    import xarray as xr

    model = in_context(model)
    warn_of_weak_promises(model, lambda: _total(model, mechanism, epsilon, delta, protection), protection.neighbours)
    drawn, head = _drawn(model, epsilon, delta, mechanism, protection, ledger)
    groups = {"posterior": posterior_group(drawn), "privacy": privacy_group(drawn, head)}
    if drawn.running is not None:
        coords = {name: groups["posterior"][name] for name in ("chain", "draw")}
        stats = {"epsilon": drawn.running, **drawn.stats}
        groups["sample_stats"] = xr.Dataset({name: (("chain", "draw"), values) for name, values in stats.items()}, coords=coords)
    if drawn.network is not None:
        groups["network"] = network_group(drawn)
    return labelled(xr.DataTree.from_dict(groups), drawn.spent, groups)


def find_MAP(  # noqa: N802 - PyMC's own name
    *,
    epsilon: object,
    model: pm.Model | None = None,
    smallest: float | None = None,
    points: int | None = None,
    bounds: Mapping[str, object] | None = None,
    public: Iterable[object] = (),
    unit: str = "row",
    neighbours: str = "replace",
    missing: Mapping[str, object] | Iterable[str] | None = None,
    ledger: Ledger | Part | None = None,
) -> dict[str, np.ndarray]:
    """A private maximum a posteriori estimate, by the exponential mechanism on a public grid.

    The score of a point is its log posterior density, which one record moves by a range of at most C; it is drawn with
    probability in proportion to exp(epsilon score / C) on the grid (ZRD16, Algorithm 3, corrected: their scores are probabilities of
    sets, which promises nothing for densities; docs/theory.md). At a large epsilon it is the mode of the posterior, at a small one a
    draw from a flattened posterior. Where S_t are the points whose score is within t of the best, the probability that the result
    lies outside S_2t is at most exp(-epsilon t / C) / (share of the grid in S_t).

    Parameters
    ----------
    epsilon : int, float, Decimal or Fraction
        Total cost in nats.
    model : pm.Model, optional
        The model in context if left out: a Bayesian network of Bernoulli and Categorical variables, with Beta or Dirichlet priors on its
        tables; or any model with up to three unknown numbers, whose priors have ends.
    smallest : float
        For Bayesian networks, the least probability of a split of levels, .01 if left out. C grows as it gets smaller.
    points : int, optional
        The number of points of the grid in every direction.
    bounds, public, unit, neighbours, missing, ledger
        See ``release``.

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
    warn_of_weak_promises(model, lambda: Cost(exact_epsilon(epsilon)), neighbours)
    drawn, _ = _drawn(in_context(model), epsilon, 0, PosteriorSample(1, smallest, points=points), protection, ledger, mode=True)
    return {name: values[0] for name, values in drawn.values.items()}


@boundary
def schedule(model: pm.Model, mechanism: Gibbs | Annealing, epsilon: object, delta: object, protection: Protection) -> Schedule:
    """Every update that ``sample`` would pay for, and what all of them cost: free, no record is read. The same code charges."""
    if not isinstance(mechanism, Gibbs | Annealing):
        raise Refusal(
            "A schedule is that of a chain that pays at every update. Write mechanism=pymc_dp.Gibbs(sweeps=50); other mechanisms charge"
            " what epsilon says."
        )
    ready = prepared(asked_for(model, epsilon, delta, mechanism, protection))
    check_names(drawn_of(ready.found), ready.found.coords)
    assert ready.schedule is not None
    return ready.schedule
