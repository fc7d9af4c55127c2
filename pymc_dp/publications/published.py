"""``published``: a model of the truth, as if it had been seen, becomes a model of what was published.

Everything here is public already, so nothing is charged and nothing is hidden.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
from pymc.model.fgraph import clone_model
from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.calls import explained
from pymc_dp.publications.counts import log_counts
from pymc_dp.publications.events import Events, events_of
from pymc_dp.publications.federation import by_holder, federated, releases_in
from pymc_dp.publications.noises import Step
from pymc_dp.publications.publication import Codebook, Publication, terms_of
from pymc_dp.publications.reals import check_real, log_given_latent, log_reals, needs_latent
from pymc_dp.publications.table_queries import PublishedTable
from pymc_dp.publications.table_steps import add_table, book_of
from pymc_dp.releases.release import Release

if TYPE_CHECKING:
    import xarray as xr

ABSENT = "_absent"
"""Ends the name of the rows of a variable that were not published."""
TRUE = "_true"
"""Ends the name of the true numbers of a variable, where they are unknowns."""


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of an observed variable: their distribution, the numbers of all rows, which of these are meant, and how they are named."""

    name: str
    of: str
    published: np.ndarray
    chosen: np.ndarray | None
    dims: tuple[str | None, ...] | None


@explained
def published(
    model: pm.Model | None,
    laws: "Mapping[str, object] | Sequence[Release] | xr.DataTree",
    *,
    values: Mapping[str, object] | None = None,
    same_people: Iterable[Iterable[str]] | bool = (),
) -> pm.Model:
    """The model with the law of what was published in place of the law of the truth: an ordinary ``pm.Model``.

    What was published are numbers with a law that is known, or several holders' releases, which become one model of all their people.

    Parameters
    ----------
    model : pm.Model or None
        A model of the true numbers, written as if they had been seen: its observed variables hold the published numbers, NaN where a row
        was not published. None means the model in context. It is left as it is.
    laws : mapping, list of Release or xarray.DataTree
        Of every observed variable what was done to it: a noise such as ``RoundedToBase(3)`` or ``DiscreteLaplace(30)``, a list of steps
        such as ``[DiscreteLaplace(30), Threshold(450, absent="listed")]``, or a ``Codebook``. ``Exact()`` where nothing was done. A
        ``PublishedTable`` where sums over a variable of counts were published: it is observed as zeros, which are not read.
        Or releases by holder, such as ``{"north": release_1, "south": release_2}``: what ``north`` released of ``stay`` takes the place of
        the likelihood ``north_stay``, or ``north`` where it released nothing else; where there is neither, of ``stay``, which all have in
        common who have no own one. Of the model only the shape is used, as in ``rewrite``. A list is of holders called ``release_1``,
        ``release_2``, ...; a tree drawn from such a model holds its releases and makes the model again.
    values : mapping, optional
        Published numbers that the model cannot hold, by name, of the same shape as the observed variable: PyMC makes whole numbers of
        what a distribution of counts observes. They take the place of the model's.
    same_people : list of groups of holders, or True
        Holders whose releases are of the same people: ``[("spring", "autumn")]``, or True for all. Everyone else's people are taken to be
        different. Several Gaussian noises on one true statistic are combined exactly; other noises are refused.

    Returns
    -------
    pm.Model
        Free variables keep names, dims, transforms and order. Of a count the truth is summed out, exactly but for a share of 1e-13 of
        the noise. Of a real number it is summed out where there is a closed form, and is otherwise an unknown ``<name>_true``, and so
        is a table (``table_steps`` draws it). Rows
        that were not published are observed as ``<name>_absent``. The numbers are constants of the model, so make it again for others.
        ``pm.sample(model=...)`` draws from it; ``pymc_dp.sample(model=...)`` does, too, and notes whose promise it is. Of releases it is
        the private model that ``rewrite`` makes, with every holder's noisy statistics; ``publication`` lists the holders and their
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
    """
    model = _in_context(model)
    if _are_releases(laws):
        return _of_releases(model, laws, values, same_people)
    if same_people:
        raise Refusal("same_people is about releases by holder. Of numbers with a law every row has its own people: leave it out.")
    books = _books(model, laws)
    assert isinstance(laws, Mapping)
    clone = _copied(model)
    given = _given(model, values)
    for name, book in books.items():
        if isinstance(law := laws[name], PublishedTable):
            _behind_sums(clone, name, law)
            continue
        for rows in _rows_of(model, clone, name, given.get(name)):
            random = _taken_out(clone, rows.of)
            _check_alone(clone, name, random)
            steps = [_in_clone(step, model, clone) for step in _steps(book)]
            whole = random.type.dtype.startswith(("int", "uint", "bool"))
            events = events_of(name, rows.published, steps, rows.chosen, whole)
            _check_whole(name, events, whole, given)
            with clone:
                _observe(rows, random, events, whole)
    _in_order(model, clone)
    clone.publication = Publication(books, terms_of(clone))
    return clone


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


def _are_releases(laws: object) -> bool:
    """Whether releases are given, or a tree that holds them."""
    import xarray as xr

    several = laws.values() if isinstance(laws, Mapping) else laws if isinstance(laws, list | tuple) else [laws]
    return isinstance(laws, xr.DataTree) or any(isinstance(each, Release) for each in several)


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
    """What was done to every observed variable, in the model's order."""
    names = [name.removesuffix("_observed") if _is_split(model, name) else name for name in (str(rv.name) for rv in model.observed_RVs)]
    if not names:
        raise Refusal("This model observes nothing. Write the published numbers as observed=.")
    if not isinstance(laws, Mapping):
        raise Refusal(f"laws must say by name what was done. Write laws={{{names[0]!r}: pymc_dp.RoundedToBase(3)}}.")
    if unknown := [name for name in laws if name not in names]:
        raise Refusal(f"{unknown[0]!r} is no observed variable of this model. Write names of {', '.join(names)}.")
    if missing := [name for name in names if name not in laws]:
        raise Refusal(
            f"Nothing is said of {missing[0]}. Write what was done to it, or laws={{{missing[0]!r}: pymc_dp.Exact()}} if its publisher did"
            " nothing."
        )
    return {name: _book(laws[name]) for name in names}


def _book(law: object) -> Codebook:
    return book_of(law) if isinstance(law, PublishedTable) else law if isinstance(law, Codebook) else Codebook(law)


def _behind_sums(clone: pm.Model, name: str, table: PublishedTable) -> None:
    """A variable of which only sums were published: an unknown, and these sums."""
    shape, dims = tuple(clone.rvs_to_values[clone[name]].eval().shape), clone.named_vars_to_dims.get(name)
    if shape != table.shape:
        raise Refusal(f"{name} has shape {shape} in the model, and its table {table.shape}. Write zeros of that shape as observed=.")
    random = _taken_out(clone, name)
    _check_alone(clone, name, random)
    with clone:
        add_table(name, f"{name}{TRUE}", random, dims, table)


def _steps(book: Codebook) -> Sequence[Step]:
    assert isinstance(book.steps, tuple)
    return book.steps


def _is_split(model: pm.Model, name: str) -> bool:
    """Whether PyMC made this variable of one with missing values."""
    base = name.removesuffix("_observed")
    return base != name and base in model.named_vars and f"{base}_unobserved" in model.named_vars


def _copied(model: pm.Model) -> pm.Model:
    """A copy of the model. PyMC copies only models without initial values, so these are taken out, and put back in any case."""
    saved = dict(model.rvs_to_initial_values)
    try:
        for rv in saved:
            model.rvs_to_initial_values[rv] = None
        clone = clone_model(model)
    except (NotImplementedError, ValueError) as error:
        raise Refusal(
            f"PyMC cannot copy this model: {error}. Build it anew, without sub-models, with a pm.Data of its own for each."
        ) from None
    finally:
        model.rvs_to_initial_values.update(saved)
    for rv, value in saved.items():
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
        try:
            result[name] = np.ma.filled(np.ma.asarray(numbers, dtype=float), np.nan)
        except (TypeError, ValueError):
            raise Refusal(f"The values of {name} are no numbers. Write an array of numbers, NaN where nothing was published.") from None
    return result


def _rows_of(model: pm.Model, clone: pm.Model, name: str, given: np.ndarray | None) -> list[_Rows]:
    """The rows of a variable: all of them, or, where PyMC set those with missing values apart, those that were published and the others."""
    split = f"{name}_observed" in clone.named_vars and _is_split(clone, f"{name}_observed")
    observed = clone[f"{name}_observed" if split else name]
    numbers = np.asarray(clone.rvs_to_values[observed].eval(), dtype=float)
    if not split:
        if given is not None and given.shape != numbers.shape:
            raise Refusal(
                f"{name} has values of shape {given.shape}, and rows of shape {numbers.shape} in the model. Give one for every row."
            )
        return [_Rows(name, name, numbers if given is None else given, None, clone.named_vars_to_dims.get(name))]
    joined = clone[name]
    while joined.owner is not None and len(joined.owner.inputs) == 1:
        joined = joined.owner.inputs[0]
    there: Any = np.asarray(joined.owner.inputs[-1].eval()) if joined.owner is not None else np.zeros(0)
    if there.dtype != bool or there.sum() != numbers.size:
        raise Refusal(f"PyMC has put the missing values of {name} together in a way that is not understood. Give it in values=.")
    _forget(clone, name)
    whole = np.full(there.shape, np.nan)
    whole[there] = numbers
    return [
        _Rows(name, f"{name}_observed", whole, there, None),
        _Rows(f"{name}{ABSENT}", f"{name}_unobserved", whole, ~there, None),
    ]


def _forget(model: pm.Model, name: str) -> Variable:
    """Take a variable out of a model: its distribution is all that is left of it."""
    variable = model.named_vars.pop(name)
    model.named_vars_to_dims.pop(name, None)
    for group in (model.free_RVs, model.observed_RVs, model.deterministics):
        if any(each is variable for each in group):
            group.remove(variable)
    value = model.rvs_to_values.pop(variable, None)
    if value is not None:
        model.values_to_rvs.pop(value, None)
        if value.name in model.named_vars and value.name not in model.data_names:
            model.named_vars.pop(value.name)
    model.rvs_to_transforms.pop(variable, None)
    model.rvs_to_initial_values.pop(variable, None)
    return variable


def _taken_out(clone: pm.Model, name: str) -> Variable:
    random = _forget(clone, name)
    operation = random.owner.op
    if hasattr(random.type, "dims"):
        raise Refusal(f"{name} is a distribution of pymc.dims. Write it with pm. and dims=.")
    if type(operation).__name__ == "MinibatchRandomVariable":
        raise Refusal(f"{name} is observed in minibatches. Give all its rows, without total_size.")
    if getattr(operation, "ndim_supp", 0):
        raise Refusal(
            f"{name} is multivariate, and one law for every number is all that is understood. Write it as rows of single numbers."
        )
    return random


def _check_alone(clone: pm.Model, name: str, random: Variable) -> None:
    """Refuse where something depends on the published numbers as if they were true."""
    others = [*clone.free_RVs, *clone.observed_RVs, *clone.deterministics, *clone.potentials]
    for other in others:
        if other is not random and any(variable is random for variable in ancestors([other])):
            raise Refusal(
                f"{other.name} depends on {name} as if its published numbers were true. Model {name} and {other.name} by something"
                " that both depend on."
            )


def _in_clone(step: Step, model: pm.Model, clone: pm.Model) -> Step:
    """A step whose scale is a variable of the model, with that of the copy in its place."""
    scale = getattr(step, "scale", None)
    if not isinstance(scale, Variable):
        return step
    above = list(ancestors([scale]))
    replaced = {
        variable: clone[variable.name] for variable in above if variable.name in clone.named_vars and variable in model.named_vars.values()
    }
    if not any(variable in model.basic_RVs for variable in above):
        raise Refusal("The scale of a noise is a variable, but not of this model. Write it inside the model's with block, with a prior.")
    [copied] = graph_replace([scale], replaced, strict=False)
    return type(step)(copied, step.largest)  # type: ignore[call-arg, attr-defined]


def _check_whole(name: str, events: Events, whole: bool, given: Mapping[str, np.ndarray]) -> None:
    if not whole:
        check_real(name, events)
    elif not events.noise.whole and name not in given and (events.low == events.high).any():
        raise Refusal(
            f"{name} counts, so PyMC made whole numbers of what it observes, and {events.noise.words} gives real ones. Give the published"
            f" numbers beside the model: published(model, laws, values={{{name!r}: numbers}})."
        )


def _observe(rows: _Rows, random: Variable, events: Events, whole: bool) -> None:
    """Add the published rows as an observed variable of the model in context, and their true numbers where they are unknowns."""
    shape = events.low.shape
    if whole:
        row = log_counts(rows.name, random, events, shape)
    elif needs_latent(random, events):
        row = log_given_latent(rows.name, _as_unknown(rows, random), events)
    else:
        row = log_reals(rows.name, random, events)
    known = rows.published if rows.chosen is None else rows.published[rows.chosen]
    shown = np.where(np.isnan(known), np.where(np.isfinite(events.high), events.high, 0.0), known)
    pm.CustomDist(
        rows.name, row + np.zeros(shape), logp=_as_computed, observed=shown, dims=rows.dims, shape=None if rows.dims else shape
    )  # fmt: skip


def _as_computed(value: Variable, row: Variable) -> Variable:
    """The log-probability of a row, which was computed from its published number beforehand."""
    return row


def _as_unknown(rows: _Rows, random: Variable) -> Variable:
    """The true numbers as unknowns of the model in context."""
    return pm.modelcontext(None).register_rv(random, f"{rows.name}{TRUE}", dims=rows.dims)


def _in_order(model: pm.Model, clone: pm.Model) -> None:
    """Free variables in the user's order: PyMC's copy has an order of its own."""
    order = {name: k for k, name in enumerate(model.named_vars)}
    for variables in (clone.free_RVs, clone.deterministics):
        variables.sort(key=lambda variable: order.get(variable.name, len(order)))
