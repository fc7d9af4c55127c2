"""ModelSpec + Release -> an ordinary ``pm.Model`` without any record. Everything PyMC does with it costs nothing more.

The observed variables of the rewritten model are the noisy statistics, under the user's names. Free variables keep names,
dims, coords, transforms, initial values and order.
"""

from collections.abc import Collection, Iterable, Sequence
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.logprob.transforms import Transform
from pymc.model.fgraph import ModelDeterministic, ModelNamed, model_from_fgraph
from pytensor.graph import FunctionGraph
from pytensor.graph.basic import Variable, clone_get_equiv

from pymc_dp.models.bambi_models import from_bambi
from pymc_dp.models.binned import in_bins
from pymc_dp.models.event_tables import with_losses
from pymc_dp.models.level_labels import labels_of_axes
from pymc_dp.models.reader import read_spec
from pymc_dp.models.row_patterns import PATTERNS
from pymc_dp.models.source_lines import forget_lines
from pymc_dp.models.spec import Likelihood, ModelSpec
from pymc_dp.models.structure import substitute
from pymc_dp.models.tabulated import probabilities
from pymc_dp.plans.plan import refuse_problems
from pymc_dp.plans.protection import in_context
from pymc_dp.privacy.accounting import Refusal, counts_rows
from pymc_dp.privacy.guard import boundary
from pymc_dp.private_models.as_made import as_made
from pymc_dp.private_models.cell_labels import labels_of_cells
from pymc_dp.private_models.events import events_beside, hazards_of_losses
from pymc_dp.private_models.feature_shapes import related_features
from pymc_dp.private_models.likelihood import TABLES, noisy_likelihood
from pymc_dp.private_models.matching import difference, refuse_older
from pymc_dp.private_models.moment_law import Related
from pymc_dp.private_models.plug_in import plug_in
from pymc_dp.private_models.possible import only_where_possible, possible
from pymc_dp.private_models.possible_starts import start_where_possible
from pymc_dp.private_models.row_values import plain_values, values_of_rows
from pymc_dp.private_models.standardised import hidden_groups, standardise
from pymc_dp.private_models.within_bins import inputs_at_nodes, nodes_in
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.release import Release

if TYPE_CHECKING:
    import xarray as xr

ANOTHER_SHAPE = (
    "This release was made from a model of another shape. Write the model as it was when it was released, or release this one:"
    " pymc_dp.release(model, epsilon=...)."
)


@boundary
def rewrite(model: pm.Model | None, release: Release, *, noise_aware: bool = True) -> pm.Model:
    """The model with its records replaced by a release: an ordinary ``pm.Model``, free to use in any way.

    Parameters
    ----------
    model : pm.Model or None
        The model, of which only the shape is used: no value is read, and any number of dummy rows gives the same result. None means
        the model in context.
    release : Release
        A release of this model, or of one of the same shape.
    noise_aware : bool
        With True, the noise is part of the likelihood, and intervals cover. With False, the statistics are projected onto what exact
        ones could be and used as if they were exact, as ZRD16 and FGWC16 do; intervals are then too narrow.

    Returns
    -------
    pm.Model
        Its observed variables are the noisy statistics, of shape (cells, columns, statistics); ``privacy`` is the release.

    Raises
    ------
    Refusal
        When the release was made from a model of another shape.

    Examples
    --------
    >>> private = pmdp.rewrite(model, pmdp.Release.from_datatree(idata))
    >>> private["vote"].eval().shape  # cells, statistics
    (1, 1)
    """
    if type(release).__name__ == "DataTree":
        raise Refusal("rewrite needs a Release, and this is a DataTree, which holds one. Write private_model(idata, model).")
    if isinstance(model, Release) and isinstance(release, pm.Model):
        raise Refusal("The model comes first. Write rewrite(model, release).")
    check_noise_aware(noise_aware)
    if not isinstance(release, Release):
        raise Refusal("release must be what pymc_dp.release returned. Write rewrite(model, pymc_dp.release(model, epsilon=...)).")
    model = in_context(model)
    try:
        spec = spec_like(model, release, release.public)
    except Refusal:
        raise Refusal(ANOTHER_SHAPE) from None
    return rewritten(spec, release, noise_aware=noise_aware)


def check_noise_aware(noise_aware: object) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(noise_aware, bool):
        raise Refusal("noise_aware must be True or False.")


@boundary
def private_model(tree: "xr.DataTree", model: pm.Model | None = None, *, noise_aware: bool = True) -> pm.Model:
    """The private model behind a tree, again: for more draws, other samplers, other priors, ``pm.do`` and ``pm.observe``. It costs nothing.

    A tree that ``sample`` returned holds its release, also after it was saved and read in another process, so nothing else has to be kept.
    This is ``rewrite(model, Release.from_datatree(tree))``.

    Parameters
    ----------
    tree : xarray.DataTree
        A tree from ``sample`` or ``annotate``.
    model : pm.Model, optional
        Your model, or one of the same shape with other priors; the model in context if left out. No value of it is read, and dummy rows
        of any number give the same model.
    noise_aware : bool
        As in ``rewrite``, whatever the tree was drawn with.

    Returns
    -------
    pm.Model
        Its observed variables are the noisy statistics, of shape (cells, columns, statistics); ``privacy`` is the release.

    Raises
    ------
    Refusal
        When the tree holds no release, or that of a model of another shape.

    Examples
    --------
    >>> private = pmdp.private_model(idata, model)
    >>> more = pm.sample(20, tune=20, chains=1, model=private, progressbar=False)
    >>> pmdp.annotate(more, private.privacy).attrs["epsilon"]
    1.0
    """
    import xarray as xr

    if isinstance(tree, pm.Model) and isinstance(model, xr.DataTree):
        raise Refusal("The tree comes first. Write private_model(idata, model).")
    if not isinstance(tree, xr.DataTree) or not (isinstance(model, pm.Model | None) or from_bambi(model)):
        raise Refusal("private_model needs the DataTree that pymc_dp.sample returned, and your model. Write private_model(idata, model).")
    released = Release.from_datatree(tree)
    model = in_context(model)
    if hasattr(model, "privacy"):
        raise Refusal("This is a private model already. Use it as it is, or write private_model(idata, model) with your own model.")
    return rewrite(model, released, noise_aware=noise_aware)


@boundary
def rewritten(spec: ModelSpec, release: Release, *, noise_aware: bool = True) -> pm.Model:
    """The private model from what was read of the user's; see ``rewrite``.

    Raises
    ------
    Refusal
        When the release was made from a model of another shape.
    """
    by_name = {noisy.variable: noisy for noisy in release.statistics}
    refuse_problems(spec)
    if set(by_name) != {likelihood.name for likelihood in spec.likelihoods}:
        raise Refusal(ANOTHER_SHAPE)
    pairs = [(likelihood, by_name[likelihood.name]) for likelihood in spec.likelihoods]
    labels = labels_of_axes(spec)
    for likelihood, noisy in pairs:
        if words := difference(likelihood, noisy, labels):
            raise Refusal(f"{ANOTHER_SHAPE} Of {likelihood.name}: {words}.")
    private = assembled(spec, pairs, noise_aware=noise_aware, tables=release.network is not None)
    private.privacy, private.as_made = release, as_made(private)
    return private


def assembled(
    spec: ModelSpec, pairs: Sequence[tuple[Likelihood, NoisyStatistic]], *, noise_aware: bool = True, tables: bool = False
) -> pm.Model:
    """The private model in which noisy statistics stand for likelihoods, under the statistics' names; one likelihood may have several.

    Parameters
    ----------
    spec : ModelSpec
    pairs : sequence of (Likelihood, NoisyStatistic)
        Every likelihood of the model with each noisy statistic of its records, of which ``matching.difference`` says nothing.
    noise_aware : bool
        See ``rewrite``.
    tables : bool
        Whether a Bayesian network's conditional probability tables are added.
    """
    for _, noisy in pairs:
        refuse_older(noisy)
    pairs = [events_beside(likelihood, noisy) for likelihood, noisy in pairs]
    parameters = {noisy.variable: at_cells(likelihood, noisy) for likelihood, noisy in pairs}
    allowed = {_beside(noisy): _allowed(likelihood, noisy) for likelihood, noisy in pairs}
    related = {noisy.variable: related_features(likelihood, noisy) for likelihood, noisy in pairs if noise_aware}
    hidden = [name for likelihood, noisy in pairs if noise_aware for name in hidden_groups(likelihood, noisy)]
    private, parameters = without_likelihoods(spec, parameters | allowed, hidden)
    private.rvs_to_transforms = {variable: _own(transform) for variable, transform in private.rvs_to_transforms.items()}
    with private:
        for likelihood, noisy in pairs:
            shapes = related.get(noisy.variable, [])
            on_cells, where = parameters[noisy.variable], parameters[_beside(noisy)]
            columns = _observe(private, spec, likelihood, noisy, on_cells, where[:1], noise_aware, shapes)
            if tables:
                _tabulate(private, noisy, columns, on_cells)
    _set_initial_values(private, spec)
    excesses = {noisy.variable: parameters[_beside(noisy)][1:] for _, noisy in pairs}
    # Variables whose likelihood has no density at some values that the priors allow: chains are stopped there.
    private.stopped = tuple(name for name, of_likelihood in excesses.items() if of_likelihood)
    if private.stopped:
        start_where_possible(private, [excess for of_likelihood in excesses.values() for excess in of_likelihood])
    order = {name: k for k, name in enumerate(spec.order)}
    for variables in (private.free_RVs, private.deterministics):
        variables.sort(key=lambda variable: order.get(variable.name, len(order)))
    private.released, private.noise_aware = tuple(noisy for _, noisy in pairs), noise_aware
    forget_lines(private)
    return private


def _own(transform: Transform | None) -> Transform | None:
    """A transform whose graphs are no other model's: PyTensor rewrites those that a transform holds, in place, where they are compiled.

    So the next private model of the same model would have another graph, and would be compiled once more.
    """
    if transform is None or not any(isinstance(held, Variable) for held in vars(transform).values()):
        return transform
    return deepcopy(transform)


def spec_like(model: pm.Model, release: Release, public: Iterable[str]) -> ModelSpec:
    """What is read of a model of the shape that a release was made from, however many rows it has."""
    return spec_like_all(model, [release], public, {name for noisy in release.statistics for name in noisy.in_bins})


def spec_like_all(model: pm.Model, releases: Sequence[Release], public: Iterable[str], binned: Collection[str]) -> ModelSpec:
    """What is read of a model of the shapes that several releases were made from; ``binned`` are its variables that are counted in bins."""
    statistics = [noisy for release in releases for noisy in release.statistics]
    records = {int(noisy.n.sum()) for noisy in statistics}
    aggregate = any(noisy.structure == "aggregate" for noisy in statistics)
    sized = any(counts_rows(release.unit, release.neighbours) for release in releases)
    return read_spec(model, public, records, aggregate=aggregate, sized=sized, binned=binned)


def at_cells(likelihood: Likelihood, noisy: NoisyStatistic, inputs: Sequence[Variable] | None = None) -> list[Variable]:
    """The user's own parameters, evaluated on one row per cell: shape (G, *C) and core axes, float64.

    Of a regression: the coefficients (G, *C, F), or (G, *C, q, F), and the scale. ``inputs`` stand for the statistic's inputs, if given;
    else a cell of covariates in bins has a row for each of its nodes.
    """
    batch, result = _on_cells(likelihood, noisy, inputs)
    if noisy.regression is not None and noisy.regression.link:
        return [result[0], pt.full(batch, noisy.regression.scores.unit**-0.5)]
    if noisy.regression is not None and noisy.domain.columns:
        return _scaled_by_column(noisy, *result)
    if noisy.family is PATTERNS:
        return result[1:]
    if noisy.tabulated:
        assert likelihood.make is not None
        if likelihood.events is not None:
            return likelihood.events.at_times(likelihood.edges, result)
        if likelihood.between is not None:
            p = in_bins(likelihood.between, result, noisy.domain)
        else:
            p = probabilities(likelihood.make, result, likelihood.core_ndims, noisy.domain)
        return [p + np.zeros((*batch, 1))]
    return result


def _scaled_by_column(noisy: NoisyStatistic, coefficients: Variable, scale: Variable) -> list[Variable]:
    """Coefficients (G, *C, F) and scale (G, *C) of responses that every column has scaled to (-1, 1) by bounds of its own."""
    assert noisy.regression is not None
    lower, upper = (np.reshape(ends, noisy.noisy.shape[1:-1]) for ends in zip(*noisy.domain.columns, strict=True))
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    of_intercept = np.arange(len(noisy.regression.names)) == 0
    return [(coefficients - middle[..., None] * of_intercept) / half[..., None], scale / half]


def _on_cells(
    likelihood: Likelihood, noisy: NoisyStatistic, inputs: Sequence[Variable] | None = None
) -> tuple[tuple[int, ...], list[Variable]]:
    """The shape of cells, or of their nodes, and the parameters there; of a regression its coefficients and scale."""
    at_nodes = bool(noisy.within) and inputs is None
    values = map(pt.constant, inputs_at_nodes(likelihood, noisy) if at_nodes else noisy.inputs) if inputs is None else inputs
    rows = {placeholder.variable: value for placeholder, value in zip(likelihood.inputs, values, strict=True)}
    batch = (noisy.batch[0] * nodes_in(noisy), *noisy.batch[1:]) if at_nodes else noisy.batch
    result = []
    for k, (parameter, core) in enumerate(zip(likelihood.parameters, likelihood.core_ndims, strict=True)):
        if noisy.regression is not None and k == 0:
            assert likelihood.linear is not None
            parameter, core = likelihood.linear.coefficients, core + 1
        # CustomDist does not check how its parameters broadcast, so they leave here in full shape.
        full = np.zeros(batch + (1,) * core)
        result.append(substitute(parameter, rows).astype("float64") + full)
    return batch, result


def _beside(noisy: NoisyStatistic) -> str:
    """The name under which it is carried whether parameters are allowed: no variable of a model has it."""
    return f"{noisy.variable}:allowed"


def _allowed(likelihood: Likelihood, noisy: NoisyStatistic) -> list[Variable]:
    """Whether the parameters are such as the user's likelihood can have, and by how much; nothing if it follows from the priors."""
    if noisy.family is PATTERNS or (noisy.regression is not None and (noisy.regression.link or not likelihood.unknown[1])):
        return []
    batch, parameters = _on_cells(likelihood, noisy)
    if noisy.regression is not None:
        parameters[0] = pt.zeros((*batch, *[likelihood.levels] * likelihood.core_ndims[0]))
    return possible(likelihood, parameters)


def without_likelihoods(
    spec: ModelSpec, parameters: dict[str, list[Variable]], standardised: Sequence[str] = ()
) -> tuple[pm.Model, dict[str, list[Variable]]]:
    """A model of what survives, and the parameters as graphs of its variables. The spec stays as it is.

    ``standardised`` are names of free variables that a sampler is to see in other coordinates: see ``standardised.hidden_groups``.
    """
    carried = {
        f"pymc_dp:{name}:{k}": (name, ModelDeterministic(name=f"pymc_dp:{name}:{k}")(parameter))
        for name, of_likelihood in parameters.items()
        for k, parameter in enumerate(of_likelihood)
    }
    outputs = [*spec.kept, *(variable for _, variable in carried.values())]
    copies = clone_get_equiv([], outputs, copy_orphans=False)
    graph = FunctionGraph(outputs=[copies[variable] for variable in outputs], clone=False)
    # A variable that is dropped may still stand above one that is kept: its value stays, its name goes.
    for node in graph.toposort():
        if isinstance(node.op, ModelDeterministic | ModelNamed) and node.outputs[0] not in graph.outputs:
            graph.replace(node.outputs[0], node.inputs[0], import_missing=True)
    standardise(graph, standardised)
    graph._coords = dict(spec.coords)
    graph._dim_lengths = {dim: copies.get(length, length) for dim, length in spec.lengths.items()}
    private = model_from_fgraph(graph, mutate_fgraph=True)
    moved: dict[str, list[Variable]] = {name: [] for name in parameters}
    for key, (name, _) in carried.items():
        variable = private.named_vars.pop(key)
        private.deterministics.remove(variable)
        variable.name = next((own for own, other in private.named_vars.items() if other is variable), None)  # one of the user's may be it
        moved[name].append(variable)
    return private, moved


def priors_of(spec: ModelSpec) -> pm.Model:
    """The model without its likelihoods, with its initial values: no record is in it."""
    priors, _ = without_likelihoods(spec, {})
    _set_initial_values(priors, spec)
    return priors


def _set_initial_values(model: pm.Model, spec: ModelSpec) -> None:
    for name, value in spec.initial.items():
        model.set_initval(model[name], value)


def _observe(
    private: pm.Model, spec: ModelSpec, likelihood: Likelihood, noisy: NoisyStatistic, parameters: list[Variable], allowed: list[Variable],
    noise_aware: bool, related: Sequence[Related],
) -> list[str | None]:  # fmt: skip
    """Add one noisy statistic as an observed variable; the model is the one in context. The dims of its columns.

    Where what is ``allowed`` does not hold, if anything is said of it, there is no density.
    """
    name = noisy.variable
    private.add_coord(f"{name}_cell", labels_of_cells(spec, likelihood, noisy), length=len(noisy.noisy))
    private.add_coord(f"{name}_statistic", list(noisy.statistics))
    columns: list[str | None] = []
    for axis, (dim, length) in enumerate(zip(likelihood.column_dims, likelihood.columns, strict=True)):
        columns.append(dim if dim in spec.coords else f"{name}_column_{axis}")
        if dim not in spec.coords:
            private.add_coord(columns[-1], length=length)
    dims = (f"{name}_cell", *columns, f"{name}_statistic")
    if likelihood.events is not None:
        parameters = [with_losses(likelihood.edges, parameters, hazards_of_losses(private, likelihood, noisy))]
    if noisy.holds_values and noisy.distribution != "Normal":
        of_values = partial(values_of_rows, private, dims=dims[:-1]) if noise_aware else plain_values
        replacement = of_values(likelihood, noisy, parameters)
    else:
        replacement = noisy_likelihood(private, noisy, parameters, related) if noise_aware else plug_in(noisy)
    if allowed:
        replacement = only_where_possible(replacement)
    data = pm.Data(f"{name}_released", replacement.observed, dims=dims, shape=noisy.noisy.shape)
    arguments = [*parameters, *replacement.sizes, *replacement.latents, *allowed]
    pm.CustomDist(name, *arguments, dist=replacement.simulate, logp=replacement.logp, dtype="float64", observed=data, dims=dims)
    return columns


def _tabulate(private: pm.Model, noisy: NoisyStatistic, columns: list[str | None], parameters: list[Variable]) -> None:
    """Add the conditional probability table of a network's variable: cells of its parents, columns, levels."""
    name, p = noisy.variable, parameters[-1]
    one_of_two = np.array([1.0, 0.0]) + np.array([-1.0, 1.0]) * p[..., None]
    p = p / p.sum(axis=-1, keepdims=True) if noisy.domain.levels else one_of_two
    private.add_coord(f"{name}_level", length=max(noisy.domain.levels, 2))
    pm.Deterministic(f"{name}{TABLES}", p, dims=(f"{name}_cell", *columns, f"{name}_level"))
