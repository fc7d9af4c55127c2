"""``randomise``: every record is replaced by a random answer, once, and any likelihood can then be used for the answers."""

from collections.abc import Iterable, Mapping

import numpy as np
import pymc as pm
from pytensor.tensor.random.basic import BernoulliRV

from pymc_dp.plans.bins import Bins
from pymc_dp.plans.protection import check_unit, with_records
from pymc_dp.privacy.accounting import Refusal, check_neighbours, exact_epsilon
from pymc_dp.privacy.calls import explained
from pymc_dp.privacy.guard import boundary
from pymc_dp.privacy.ledger import Ledger, Part
from pymc_dp.publications.observed import observed_numbers
from pymc_dp.publications.published import published
from pymc_dp.publications.rows import is_split, is_whole
from pymc_dp.releases.answers import MOST_LEVELS, RandomisedAnswers, prepared_answers


@explained
def randomise(
    model: pm.Model | None = None,
    *,
    data: object,
    epsilon: object,
    bounds: Mapping[str, object],
    public: Iterable[str] = (),
    unit: str = "row",
    neighbours: str = "replace",
    ledger: Ledger | Part | None = None,
) -> RandomisedAnswers:
    """Replace every record by a random answer, once (local differential privacy): for models whose likelihood has no statistics to release.

    All private values of a record are put in bins together, which makes one of K levels. The answer for the record is that level with
    probability p, and otherwise one of the K - 1 others, all equally probable, with p (K - 1) / (1 - p) at most exp(epsilon): K-ary
    randomised response. So each answer is epsilon-differentially private by itself, for data sets in which one record is exchanged for
    another. ``published(model, answers)`` then makes the private model: your own likelihood of the answers, with the true values summed
    out. Intervals are far wider than with noisy sums or counts: use it only where ``inspect`` refuses the model.

    Parameters
    ----------
    model : pm.Model or None
        The model with zeros in the place of records, one for every record; a model that observes anything but one number again and again
        is refused. Every private value must be an observed variable: private covariates need a distribution of their own. What else the
        model holds is published with the private model. None means the model in context.
    data : DataFrame, pyarrow.Table, xarray.Dataset, or path or list of Parquet files
        The records: a column for every observed variable, named as it is. The number of rows is public.
    epsilon : int, float, Decimal or Fraction
        What every record pays, in nats.
    bounds : mapping
        For every observed variable ``Bins``, whose outer bins are open, so that no value is clamped; or a pair of whole numbers, so that
        each whole number from the lower to the upper one is a bin. ``Bins(lower, upper)`` without a number of bins takes it from epsilon.
    public : list of str
        Names of the ``pm.Data`` that are public, such as groups by record.
    unit : str
        What a row stands for, in words. One row is protected; a person with several pays epsilon for each.
    neighbours : "replace"
        "add_remove" is refused: every record has an answer, so the number of records is public.
    ledger : Ledger, optional
        The budget of this data set, which is charged before a record is read.

    Returns
    -------
    RandomisedAnswers
        Public: the bins, the answer for every record in the order of rows, the probability that an answer is true, and the cost.

    Raises
    ------
    Refusal
        When this cannot be done, before anything is paid or read: the private model is built with made-up answers first.
    PrivateComputationError
        When something fails inside; always the same words.

    Notes
    -----
    Records with a value that is missing, not finite, or no number have a level of their own, the last. The private model has the share
    of such records as an unknown, with a uniform prior, and assumes that it does not depend on the values.
    Warner (1965); Kairouz, Bonawitz and Ramage (2016), Discrete distribution estimation under local privacy.

    Examples
    --------
    >>> import pandas as pd
    >>> x = np.linspace(-2, 2, 200)
    >>> records = pd.DataFrame({"x": x, "y": 1 + x})
    >>> with pm.Model() as regression:
    ...     x = pm.Normal("x", pm.Normal("centre"), pm.HalfNormal("spread"), observed=np.zeros(200))
    ...     mean = pm.Normal("a") + pm.Normal("b") * x
    ...     y = pm.StudentT("y", nu=4, mu=mean, sigma=pm.HalfNormal("sigma"), observed=np.zeros(200))
    >>> answers = pmdp.randomise(regression, data=records, epsilon=4.0, bounds={"x": pmdp.Bins(-3, 3), "y": pmdp.Bins(-4, 6)})
    >>> answers.shape, answers.told.shape
    ((5, 5), (200,))
    >>> private = pmdp.published(regression, answers)
    >>> [variable.name for variable in private.observed_RVs]
    ['x_y_told']
    """
    if not isinstance(check_unit(unit), str):
        raise Refusal('Every row is randomised and pays by itself. Write unit="row", or in words what a row stands for.')
    if check_neighbours(neighbours) != "replace":
        raise Refusal('Every record has an answer, so the number of records is public. Write neighbours="replace".')
    names = tuple(public) if isinstance(public, Iterable) else ()
    if isinstance(public, str) or not isinstance(public, Iterable) or not all(isinstance(name, str) for name in names):
        raise Refusal("public must be a list of names of pm.Data. Write for example public=['group'].")
    meant = with_records(model)
    _check_holds_no_records(meant)
    edges = _edges_of(meant, bounds, float(exact_epsilon(epsilon)))
    prepared = prepared_answers(data, edges, epsilon=epsilon, unit=unit, public=names, ledger=ledger)
    published(meant, prepared.imagined)
    return prepared.pay_and_draw()


@boundary
def _check_holds_no_records(model: pm.Model) -> None:
    """Refuse a model that observes different numbers, in the same words also where some are missing, of which PyMC makes another model.

    Records that are all alike cannot be told from placeholders, and are accepted. So that acceptance rests on no record, models hold zeros,
    and records come by ``data=`` alone.
    """
    for rv in model.observed_RVs:
        numbers = observed_numbers(model, rv)
        if is_split(model, str(rv.name)) or (numbers != numbers.ravel()[:1]).any():
            raise Refusal("This model observes records. Write observed=np.zeros(N) in their place, and the records in data=.")


def chosen(epsilon: float, values: int) -> int:
    """How many bins a value has where nobody says it, of records with so many private values.

    About the number at which the parameters of a normal law, or of a normal regression, are known best where the bins span 8 standard
    deviations (``benchmarks/randomised_records.py bins``): more bins tell more, and are told truly less often.
    """
    return int(np.clip(round(3 * epsilon - 5), 5, 24) if values == 1 else np.clip(round(3 * epsilon / values - 1), 3, 12))


def _edges_of(model: pm.Model, bounds: object, epsilon: float) -> dict[str, tuple[float, ...]]:
    """The edges of the bins of every observed variable."""
    observed = {str(rv.name): rv for rv in model.observed_RVs}
    if not isinstance(bounds, Mapping) or not observed:
        raise Refusal('bounds must say of every observed variable which bins it has. Write bounds={"y": pymc_dp.Bins(0, 100)}.')
    if unknown := [name for name in bounds if name not in observed]:
        raise Refusal(f"{unknown[0]!r} is not observed in this model. Write bounds for {', '.join(observed)}.")
    edges = {}
    for name, rv in observed.items():
        bound, whole = bounds.get(name), is_whole(rv)
        if bound is None and isinstance(rv.owner.op, BernoulliRV):
            bound = (0, 1)
        if isinstance(bound, Bins):
            number = chosen(epsilon, len(observed)) if bound.by_rule else None
            edges[name] = (Bins(bound.lower, bound.upper, number) if number else bound).all_edges()
        elif whole and (levels := _levels_in(bound)):
            edges[name] = Bins(edges=[k - 0.5 for k in (*levels, levels[-1] + 1)]).all_edges()
        else:
            pair = " or a pair of whole numbers, such as (0, 3)," if whole else ""
            raise Refusal(f"{name} needs bins{pair} in bounds. Write for example bounds={{{name!r}: pymc_dp.Bins(0, 100, 8)}}.")
    return edges


def _levels_in(pair: object) -> list[int]:
    """All whole numbers from one to another, where a pair of them is given, the lower one first."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        return []
    if not all(isinstance(end, int | np.integer) and not isinstance(end, bool) for end in pair):
        return []
    return list(range(int(pair[0]), min(int(pair[1]), int(pair[0]) + MOST_LEVELS) + 1)) if pair[0] < pair[1] else []
