"""``published``: a model of the truth, written as if the truth had been observed, becomes a model of what was published.

Everything here is public already, so nothing is charged and nothing is hidden.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
from pymc.model.fgraph import clone_model
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.models.model_graph import without_initial_values
from pymc_dp.models.source_lines import forget_lines
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.calls import explained
from pymc_dp.private_models.as_made import as_made
from pymc_dp.publications.beside_sums import observed_too, without
from pymc_dp.publications.covariates import observe_covariates
from pymc_dp.publications.federation import by_holder, federated, releases_in
from pymc_dp.publications.labelled import check_labels
from pymc_dp.publications.observed import observed_numbers
from pymc_dp.publications.publication import Codebook, Publication, steps_of
from pymc_dp.publications.responses import observe_answers
from pymc_dp.publications.rows import TRUE, is_split, observe_alone, read, taken_out
from pymc_dp.publications.sums import of_sums
from pymc_dp.publications.table_queries import PublishedTable
from pymc_dp.publications.table_steps import add_table, book_of
from pymc_dp.publications.told import EXAMPLE
from pymc_dp.releases.answers import MECHANISM, RandomisedAnswers
from pymc_dp.releases.release import Release

if TYPE_CHECKING:
    import xarray as xr


@explained
def published(
    model: pm.Model | None,
    laws: "Mapping[str, object] | Sequence[Release] | RandomisedAnswers | xr.DataTree | None" = None,
    *,
    values: Mapping[str, object] | None = None,
    same_people: Iterable[Iterable[str]] | bool = (),
    statistics: Mapping[str, Mapping[str, tuple[object, object]]] | None = None,
    bounds: Mapping[str, object] | None = None,
    n: object = None,
    cells: Mapping[str, object] | None = None,
) -> pm.Model:
    """Make a model of published numbers that already carry noise: your model of the truth, with what the publisher did in its likelihood.

    The published numbers may be rows with a known noise or rounding, releases of several holders, which become one model of all their
    people, sums of records that nobody here has, or randomised answers. The result is an ordinary ``pm.Model``, and nothing is charged.

    Parameters
    ----------
    model : pm.Model or None
        A model of the true numbers, written as if they had been observed: its observed variables hold the published numbers, NaN where a
        row was not published. None means the model in context. It is left as it is.
    laws : mapping, list of Release, RandomisedAnswers or xarray.DataTree
        *Rows*: for every observed variable what was done to it: a noise such as ``RoundedToBase(3)`` or ``DiscreteLaplace(30)``, a list of
        steps such as ``[DiscreteLaplace(30), Threshold(450, absent="listed")]``, or a ``Codebook``; ``Exact()`` where nothing was done. A
        ``PublishedTable`` where sums over a variable of counts were published: it is observed as zeros, which are not read. A covariate
        is an observed variable, or a ``pm.Data``, on which others depend.
        *Releases* by holder, such as ``{"north": release_1, "south": release_2}``: what ``north`` released of ``stay`` replaces what the
        likelihood ``north_stay`` observes, or ``north`` if it released nothing else, or else ``stay``, for all holders without one of
        their own. Only the structure of the model is used, as in ``rewrite``. In a list holders are called ``release_1``,
        ``release_2``, ...; a tree drawn from such a model holds its releases and makes the model again.
        *Answers* that ``randomise`` made of this model's records; or a tree drawn from such a model.
    values : mapping, optional
        Published numbers that the model cannot hold, by name, of the same shape as the observed variable: PyMC turns what a distribution
        of counts observes into whole numbers. They replace the model's.
    same_people : list of groups of holders, or True
        Holders whose releases are of the same people: ``[("spring", "autumn")]``, or True for all. Everyone else's people are taken to be
        different. Several Gaussian noises on one true statistic are combined exactly; other noises are refused.
    statistics : mapping, optional
        Published sums of records that nobody here has (``laws`` then are those of other observed variables, if there are any).
        By observed variable, and by names such as "sum y", "sum y²",
        "sum x y" or "ones", each a pair of the number and the law of its noise, in the publisher's units; a misspelt name is answered by
        the list of names. The model is that of one record, and any dummy rows give the same result. If there are cells, each number is an
        array with an entry for every cell; "table" holds all counts, levels along the last axis. Leave out sums that were not published.
    bounds : mapping, optional
        With ``statistics``: between which values the publisher clamped the values of observed variables and covariates before they were
        summed, as in ``release``, a pair for each column where these differ. ``Natural(lower, upper)`` if none lay outside, or bounds so
        wide that none could.
    n : int, array or mapping, optional
        With ``statistics``: how many records were summed, an array with an entry for every cell; by observed variable if they differ.
        If only a noisy number was published, a pair of it and its law, such as ``(1012, LaplaceNoise(2.0))``. If counts of all
        levels were published, leave it out. With one number for a table, the numbers in its cells are unknown.
    cells : mapping, optional
        With ``statistics``: by name of ``pm.Data``, its value in every published cell. By default all levels of an index.

    Returns
    -------
    pm.Model
        ``pm.sample(model=...)`` draws from it; ``pymc_dp.sample(model=...)`` does, too, and notes whose promise it is.
        ``pm.sample_posterior_predictive`` draws numbers as they would be published, if no row was left out. Free variables keep names,
        dims, transforms and order. True counts are summed out, exactly but for a tail probability of 1e-13 of the noise. True real numbers
        are integrated out where there is a closed form, and are otherwise unknowns ``<name>_true``, and so are tables (``table_steps``
        draws them). True values of a covariate are summed out record by record, or are unknowns ``<name>_true``. Rows that were not
        published are observed as ``<name>_absent``. The numbers are constants of the model, so make it again for others. For releases it
        is the private model that ``rewrite`` makes, with every holder's noisy statistics; ``publication`` lists the holders and their
        promises.

    Raises
    ------
    Refusal
        Where numbers cannot have been published like this, the law is not understood, or a release does not fit the model; the message
        says what to write instead.

    Examples
    --------
    >>> with pm.Model(coords={"area": ["north", "south"]}) as truth:
    ...     rate = pm.Gamma("rate", 2, 1, dims="area")
    ...     deaths = pm.Poisson("deaths", rate * [4.0, 9.0], observed=[3, 12], dims="area")
    >>> public = pmdp.published(truth, {"deaths": pmdp.RoundedToBase(3)})
    >>> print(public.publication)
    deaths: rounded at random to a multiple of 3

    >>> first, second = (pmdp.release(model, epsilon=1.0) for _ in range(2))  # in truth by two holders, each of its own records
    >>> together = pmdp.published(model, {"north": first, "south": second})
    >>> [observed.name for observed in together.observed_RVs]
    ['north_vote', 'south_vote']

    >>> with pm.Model() as one_record:
    ...     visits = pm.Poisson("visits", pm.Gamma("rate", 2, 1), observed=[0])
    >>> law = {"visits": {"sum visits": (412.0, pmdp.LaplaceNoise(30.0))}}
    >>> public = pmdp.published(one_record, statistics=law, bounds={"visits": (0, 20)}, n=100)
    >>> print(public.publication)
    visits, sum visits: Laplace noise of scale 30
    """
    model = _in_context(model)
    if statistics is not None:
        if same_people or (values is not None and laws is None):
            raise Refusal("statistics holds numbers and their laws. Leave values and same_people out.")
        return _of_sums(model, laws, values, statistics, {"bounds": bounds, "n": n, "cells": cells})
    if bounds is not None or n is not None or cells is not None:
        raise Refusal(f"bounds, n and cells are about sums of records. Write statistics={EXAMPLE}, too.")
    if _are_answers(laws):
        return _of_answers(model, laws, values, same_people)
    if _are_releases(laws):
        return _of_releases(model, laws, values, same_people)
    if same_people:
        raise Refusal("same_people is about releases by holder. Of numbers with a law every row has its own people: leave it out.")
    return _of_rows(model, laws, values)


def _of_rows(model: pm.Model, laws: Any, values: Mapping[str, object] | None) -> pm.Model:
    """The model of rows that were published, and of tables of which sums were."""
    books = _books(model, laws)
    assert isinstance(laws, Mapping)
    clone = _copied(model)
    values_by_name = _given(model, values)
    for name, book in books.items():
        for step in steps_of(book):
            check_labels(f"what was done to {name}", step, model.coords, model.named_vars_to_dims.get(name))
    observed_names = observe_covariates(model, clone, books, values_by_name)
    for name, book in books.items():
        if isinstance(law := laws[name], PublishedTable):
            _behind_sums(clone, name, law)
            continue
        if name in observed_names:
            continue
        for published_rows in read(model, clone, name, steps_of(book), values_by_name):
            _check_alone(clone, name, published_rows.random)
            with clone:
                observe_alone(published_rows)
    _in_order(model, clone)
    clone.publication = Publication(books, as_made(clone))
    return clone


def _of_sums(model: pm.Model, laws: Any, values: Mapping[str, object] | None, statistics: Any, about: Mapping[str, Any]) -> pm.Model:
    """The model of published sums of records, and of rows of other observed variables, if there are laws of these."""
    if laws is None:
        return of_sums(model, statistics, **about)
    if _are_answers(laws) or _are_releases(laws) or not isinstance(laws, Mapping) or not isinstance(statistics, Mapping):
        raise Refusal("Beside statistics, laws says by name what was done to the rows of other observed variables. Leave out what is not.")
    if both := [name for name in laws if name in statistics]:
        raise Refusal(f"{both[0]} is in laws and in statistics. Write it in statistics if its sums were published, else in laws.")
    rows = _of_rows(without(_copied(model), [name for name in statistics if name in model.named_vars]), laws, values)
    sums = of_sums(without(_copied(model), [name for name in rows.publication.laws if _is_observed(model, name)]), statistics, **about)
    observed_too(sums, rows)
    _in_order(model, sums)
    beside = {name: rows.publication.laws[name] for name in laws}
    sums.publication = replace(sums.publication, beside=beside, terms=as_made(sums))
    return sums


def _in_context(model: object) -> pm.Model:
    try:
        meant = pm.modelcontext(model)
    except TypeError:
        meant = None
    if not isinstance(meant, pm.Model):
        raise Refusal("There is no model here. Write published(model, laws), or call inside the model's with block.")
    if getattr(meant, "publication", None) is not None or getattr(meant, "privacy", None) is not None:
        raise Refusal("This model already knows how its numbers were made. Begin with the model of the truth.")
    return meant


def _is_observed(model: pm.Model, name: str) -> bool:
    return any(rv.name in {name, f"{name}_observed"} for rv in model.observed_RVs)


def _are_releases(laws: object) -> bool:
    """Whether releases are given, or a tree that holds them."""
    import xarray as xr

    several = laws.values() if isinstance(laws, Mapping) else laws if isinstance(laws, list | tuple) else [laws]
    return isinstance(laws, xr.DataTree) or any(isinstance(entry, Release) for entry in several)


def _are_answers(laws: object) -> bool:
    """Whether answers are given, or a tree that was drawn from a model of some."""
    import xarray as xr

    if isinstance(laws, xr.DataTree):
        return "privacy" in laws.children and laws["privacy"].attrs.get("mechanism") == MECHANISM
    return isinstance(laws, RandomisedAnswers)


def _of_answers(model: pm.Model, laws: Any, values: object, same_people: object) -> pm.Model:
    """The model of what records were told as."""
    if values is not None or same_people:
        raise Refusal("Answers are all that is known of the records. Leave values and same_people out.")
    clone = _copied(model)
    observe_answers(clone, laws if isinstance(laws, RandomisedAnswers) else RandomisedAnswers.from_datatree(laws))
    _in_order(model, clone)
    forget_lines(clone)
    return clone


def _of_releases(model: pm.Model, laws: Any, values: object, same_people: object) -> pm.Model:
    """The model of several holders' releases."""
    import xarray as xr

    if values is not None:
        raise Refusal("Releases hold their numbers. Leave values out.")
    if isinstance(laws, Release):
        raise Refusal("One release is that of one model. Write rewrite(model, release), or a list of several releases.")
    if isinstance(laws, xr.DataTree):
        releases, same = releases_in(laws)
        return federated(model, releases, same_people or same)
    return federated(model, by_holder(laws), same_people)


def _books(model: pm.Model, laws: object) -> dict[str, Codebook]:
    """What was done to every observed variable, in the model's order, and then to covariates that are data."""
    names = [name.removesuffix("_observed") if is_split(model, name) else name for name in (str(rv.name) for rv in model.observed_RVs)]
    if not names:
        raise Refusal("This model observes nothing. Write the published numbers as observed=.")
    if not isinstance(laws, Mapping):
        raise Refusal(f"laws must say by name what was done. Write laws={{{names[0]!r}: pymc_dp.RoundedToBase(3)}}.")
    data = [
        name
        for name in laws
        if name not in names and name in model.named_vars and name in {str(variable.name) for variable in model.data_vars}
    ]
    if paths := [law for law in laws.values() if isinstance(law, str | Path)]:
        raise Refusal(
            f"{str(paths[0])!r} is text. Write Release.from_netcdf(path) for a release in a file, or a law such as LaplaceNoise(3)."
        )
    if unknown := [name for name in laws if name not in [*names, *data]]:
        raise Refusal(f"{unknown[0]!r} is no observed variable of this model. Write one of {', '.join(map(repr, names))}.")
    if missing := [name for name in names if name not in laws]:
        raise Refusal(
            f"Nothing is said of {missing[0]}. Write what was done to it, or laws={{{missing[0]!r}: pymc_dp.Exact()}} if its publisher did"
            " nothing."
        )
    return {name: _book(laws[name]) for name in [*names, *data]}


def _book(law: object) -> Codebook:
    return book_of(law) if isinstance(law, PublishedTable) else law if isinstance(law, Codebook) else Codebook(law)


def _behind_sums(clone: pm.Model, name: str, table: PublishedTable) -> None:
    """A variable of which only sums were published: an unknown, and these sums."""
    shape, dims = observed_numbers(clone, clone[name]).shape, clone.named_vars_to_dims.get(name)
    if shape != table.shape:
        raise Refusal(f"{name} has shape {shape} in the model, and its table {table.shape}. Write zeros of that shape as observed=.")
    random = taken_out(clone, name)
    _check_alone(clone, name, random)
    with clone:
        add_table(name, f"{name}{TRUE}", random, dims, table)


def _copied(model: pm.Model) -> pm.Model:
    """A copy of the model, with its initial values."""
    try:
        with without_initial_values(model):
            clone = clone_model(model)
    except (NotImplementedError, ValueError) as error:
        raise Refusal(
            f"PyMC cannot copy this model: {error}. Build it anew, without sub-models, with a pm.Data of its own for each."
        ) from None
    for rv, value in model.rvs_to_initial_values.items():
        if value is not None and rv.name in clone.named_vars:
            clone.set_initval(clone[rv.name], value)
    return clone


def _given(model: pm.Model, values: object) -> dict[str, np.ndarray]:
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise Refusal('values must hold published numbers by name. Write values={"income": numbers}.')
    names = {str(rv.name) for rv in model.observed_RVs}
    result = {}
    for name, numbers in values.items():
        if name not in names:
            raise Refusal(
                f"{name!r} is no observed variable without missing values. Write values= for variables whose observed= holds whole numbers."
            )
        check_labels(f"values of {name}", numbers, model.coords, model.named_vars_to_dims.get(name))
        try:
            result[name] = np.ma.filled(np.ma.asarray(numbers, dtype=float), np.nan)
        except (TypeError, ValueError):
            raise Refusal(f"The values of {name} are no numbers. Write an array of numbers, NaN where nothing was published.") from None
    return result


def _check_alone(clone: pm.Model, name: str, random: Variable) -> None:
    """Refuse where something depends on the published numbers as if they were true."""
    others = [*clone.free_RVs, *clone.observed_RVs, *clone.deterministics, *clone.potentials]
    for other in others:
        if other is not random and any(variable is random for variable in ancestors([other])):
            raise Refusal(
                f"{other.name} depends on {name} as if its published numbers were true. Model {name} and {other.name} by something"
                " that both depend on."
            )


def _in_order(model: pm.Model, clone: pm.Model) -> None:
    """Free variables in the user's order: PyMC's copy has an order of its own."""
    order = {name: k for k, name in enumerate(model.named_vars)}
    for variables in (clone.free_RVs, clone.deterministics):
        variables.sort(key=lambda variable: order.get(variable.name, len(order)))
