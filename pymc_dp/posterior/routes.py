"""Which way of drawing is taken for a request and a model. This is the one module that knows all of them."""

from collections.abc import Callable

from pymc_dp.plans.network import Network, network_of
from pymc_dp.posterior.ball_regression import in_ball, is_regression
from pymc_dp.posterior.concave import MOST, by_rejection, is_concave
from pymc_dp.posterior.grid import on_grid
from pymc_dp.posterior.markov import by_chains
from pymc_dp.posterior.paid_gibbs.annealed import by_annealing
from pymc_dp.posterior.paid_gibbs.sweeps import by_gibbs
from pymc_dp.posterior.price import Task, cutting_off
from pymc_dp.posterior.result import Prepared
from pymc_dp.posterior.tables import Unlike, of_tables
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.requests import MOST_UNKNOWNS, Annealing, Gibbs, PosteriorRequest, PosteriorSample

OR_WITHOUT_DATA = "or leave data out, and let the model observe the records."


def prepared(task: Task) -> Prepared:
    """A draw in the way that suits the request and the model, or a refusal. A request with a method ``prepared`` says it itself."""
    if task.data is not None and not isinstance(task.mechanism, PosteriorSample):
        raise Refusal(f'Chains that pay at every update ask records in the model. Write mechanism="laplace", {OR_WITHOUT_DATA}')
    by_itself: Callable[[Task], Prepared] | None = getattr(task.mechanism, "prepared", None)
    if by_itself is not None:
        return by_itself(task)
    return next(way for kind, way in WAYS.items() if isinstance(task.mechanism, kind))(task)


def _sampled(task: Task) -> Prepared:
    """Independent draws: of a network's tables where the model is one that has them, otherwise of all unknowns together."""
    assert isinstance(task.mechanism, PosteriorSample)
    unlike, source = "", task.source
    if task.mechanism.method != "exact" or task.mechanism.truncate is not None:
        unlike = "method and truncate are for other models" if source is not None else ""
    else:
        network, why = _network(task)
        unlike = why if source is not None else ""
        if network is not None and task.protection.missing:
            unlike = "where missing values are left out, or count as a level, networks are released, not drawn"
        elif network is not None:
            try:
                return of_tables(task, network)
            except Unlike as reason:
                unlike = str(reason)
    if source is not None:
        raise Refusal(
            "With data= draws from the posterior are of tables of probabilities that Bernoulli or Categorical variables"
            f' have{f": {unlike.rstrip('.')}" if unlike else ""}. Write mechanism="laplace", {OR_WITHOUT_DATA}'
        )
    if task.protection.person is not None:
        raise Refusal(
            "Draws from the posterior protect all rows of a person where they are of tables of probabilities that Bernoulli or Categorical"
            f' variables have{f": {unlike.rstrip('.')}" if unlike else ""}. Write mechanism="laplace", or unit="row".'
        )
    try:
        return _by_row(task)
    except Refusal as reason:
        if not unlike or task.mechanism.smallest is not None:
            raise
        raise Refusal(f"{reason} As a Bayesian network it cannot be drawn either: {unlike.rstrip('.')}.") from None


def _network(task: Task) -> tuple[Network | None, str]:
    """The model as a Bayesian network, where it is one that could be released; or None and the reason why it is none."""
    try:
        statistics = task.plan.statistics
    except Refusal as reason:
        return None, str(reason)
    return network_of(statistics, alone=True) if statistics else (None, "")


def _by_row(task: Task) -> Prepared:
    """Whatever is no network: read record by record."""
    assert isinstance(task.mechanism, PosteriorSample)
    rows = task.rowwise.rows
    if task.mechanism.smallest is not None:
        raise Refusal(
            "smallest is the least probability in a Bayesian network, and this model is not drawn as one. Truncate the priors instead,"
            " for example with pm.Truncated."
        )
    if task.mechanism.method == "mcmc":
        return by_chains(task)
    if is_regression(task.rowwise.spec, rows):
        return in_ball(task)
    if MOST_UNKNOWNS < rows.size <= MOST and is_concave(task.rowwise.spec, rows):
        return by_rejection(task)
    if rows.size > MOST_UNKNOWNS:
        unbounded = not all(unknown.finite for unknown in rows.unknowns)
        written = cutting_off(task, "mcmc") if unbounded else 'PosteriorSample(method="mcmc")'
        linear = " A linear regression is drawn exactly with its coefficients as one pymc_dp.BallNormal and a number for sigma."
        raise Refusal(
            f"{rows.size:,} unknown numbers are more than the {MOST_UNKNOWNS} that can be drawn exactly."
            + (
                linear
                if any(likelihood.distribution == "Normal" and likelihood.linear is not None for likelihood in rows.likelihoods)
                else ""
            )
            + f' Otherwise write mechanism="laplace", or {written}, private only as far as its chains converge.'
        )
    return on_grid(task)


WAYS: dict[type[PosteriorRequest], Callable[[Task], Prepared]] = {
    PosteriorSample: _sampled,
    Gibbs: by_gibbs,
    Annealing: by_annealing,
}
"""How each kind of request is drawn."""
