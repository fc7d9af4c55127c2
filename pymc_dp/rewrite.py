"""Blank + Release -> an ordinary ``pm.Model`` without any record. Everything PyMC does with it costs nothing more.

The observed variables of the rewritten model are the noisy statistics, under the user's names. Free variables keep names,
dims, coords, transforms, initial values and order.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.model.fgraph import ModelDeterministic, ModelNamed, model_from_fgraph
from pytensor.graph import FunctionGraph
from pytensor.graph.basic import Variable

from pymc_dp import law as laws
from pymc_dp.accounting import Refusal
from pymc_dp.blank import Blank, Likelihood, blank
from pymc_dp.boundary import boundary
from pymc_dp.inspection import in_context
from pymc_dp.noisy import NoisyStatistic, Release
from pymc_dp.structure import substitute

LATENT = "_noise"
"""Ending of the names of latent noise variables: the model's own, not the user's."""
ANOTHER_SHAPE = "This release was made from a model of another shape. Release this model with pymc_dp.release(model, epsilon=...)."


@boundary
def rewrite(model: pm.Model | None, release: Release, *, noise_aware: bool = True) -> pm.Model:
    """The model with its records replaced by a release: an ordinary ``pm.Model``, free to use in any way.

    Parameters
    ----------
    model : pm.Model or None
        Taken for its shape only: no value is read, and dummy rows of any number give the same result. None means the model
        in context.
    release : Release
        Made from this model, or from one of the same shape.
    noise_aware : bool
        True: the noise is part of the likelihood, and intervals cover. False: the statistics are projected onto what exact
        ones could be and used as if they were exact, as ZRD16 and FGWC16 do; intervals are too narrow.

    Returns
    -------
    pm.Model
        Its observed variables are the noisy statistics, of shape (cells, columns, statistics); ``privacy`` is the release.

    Raises
    ------
    Refusal
        When the release was made from a model of another shape.
    """
    if not isinstance(release, Release):
        raise Refusal("release must be what pymc_dp.release returned. Write rewrite(model, pymc_dp.release(model, epsilon=...)).")
    model = in_context(model)
    try:
        found = blank(model, release.public, {int(one.n.sum()) for one in release.statistics})
    except Refusal:
        raise Refusal(ANOTHER_SHAPE) from None
    pairs = _matched(found, release)
    parameters = {likelihood.name: _at_cells(likelihood, noisy) for likelihood, noisy in pairs}
    private, parameters = _without_likelihoods(found, parameters)
    with private:
        for likelihood, noisy in pairs:
            _observe(private, found, likelihood, noisy, parameters[likelihood.name], noise_aware)
    for name, value in found.initial.items():
        private.set_initval(private[name], value)
    order = {name: k for k, name in enumerate(found.order)}
    for several in (private.free_RVs, private.deterministics):
        several.sort(key=lambda variable: order.get(variable.name, len(order)))
    private.privacy = release
    return private


def _matched(found: Blank, release: Release) -> list[tuple[Likelihood, NoisyStatistic]]:
    """Each likelihood with its noisy statistic, or a refusal: shapes decide, values are not looked at."""
    reasons = [*found.problems, *(likelihood.refusal for likelihood in found.likelihoods if likelihood.refusal)]
    if reasons:
        raise Refusal("\n".join(reasons))
    by_name = {noisy.variable: noisy for noisy in release.statistics}
    same = [
        likelihood.name in by_name
        and likelihood.family is not None
        and by_name[likelihood.name].distribution == likelihood.family.DISTRIBUTION
        and by_name[likelihood.name].noisy.shape[1:-1] == likelihood.columns
        and by_name[likelihood.name].domain.unknown == likelihood.unknown
        and by_name[likelihood.name].domain.levels == likelihood.levels
        and len(by_name[likelihood.name].inputs) == len(likelihood.inputs)
        and all(
            value.ndim == given.variable.type.ndim for value, given in zip(by_name[likelihood.name].inputs, likelihood.inputs, strict=True)
        )
        for likelihood in found.likelihoods
    ]
    if len(by_name) != len(found.likelihoods) or not all(same):
        raise Refusal(ANOTHER_SHAPE)
    return [(likelihood, by_name[likelihood.name]) for likelihood in found.likelihoods]


def _at_cells(likelihood: Likelihood, noisy: NoisyStatistic) -> list[Variable]:
    """The user's own parameters, evaluated on one row per cell: shape (G, *C) and core axes, float64."""
    rows = {given.variable: pt.constant(value) for given, value in zip(likelihood.inputs, noisy.inputs, strict=True)}
    batch = noisy.noisy.shape[:-1]
    result = []
    for parameter, core in zip(likelihood.parameters, likelihood.core_ndims, strict=True):
        # CustomDist does not check how its parameters broadcast, so they leave here in full shape.
        full = np.zeros(batch + (1,) * core)
        result.append(substitute(parameter, rows).astype("float64") + full)
    return result


def _without_likelihoods(found: Blank, parameters: dict[str, list[Variable]]) -> tuple[pm.Model, dict[str, list[Variable]]]:
    """A model of what survives, and the parameters as graphs of its variables."""
    carried = {
        f"pymc_dp:{name}:{k}": (name, ModelDeterministic(name=f"pymc_dp:{name}:{k}")(parameter))
        for name, several in parameters.items()
        for k, parameter in enumerate(several)
    }
    graph = FunctionGraph(outputs=[*found.kept, *(variable for _, variable in carried.values())], clone=False)
    # A variable that is dropped may still stand above one that is kept: its value stays, its name goes.
    names = {variable.owner.op.name for variable in found.kept} | set(carried)
    for node in graph.toposort():
        if isinstance(node.op, ModelDeterministic | ModelNamed) and node.op.name not in names:
            graph.replace(node.outputs[0], node.inputs[0], import_missing=True)
    graph._coords = dict(found.coords)
    graph._dim_lengths = dict(found.lengths)
    private = model_from_fgraph(graph, mutate_fgraph=True)
    moved: dict[str, list[Variable]] = {name: [] for name in parameters}
    for key, (name, _) in carried.items():
        variable = private.named_vars.pop(key)
        private.deterministics.remove(variable)
        variable.name = None
        moved[name].append(variable)
    return private, moved


def _observe(
    private: pm.Model, found: Blank, likelihood: Likelihood, noisy: NoisyStatistic, parameters: list[Variable], noise_aware: bool
) -> None:
    """Add one noisy statistic as an observed variable; the model is the one in context."""
    name, family, domain = noisy.variable, noisy.family, noisy.domain
    private.add_coord(f"{name}_cell", _labels(found, likelihood, noisy), length=len(noisy.n))
    private.add_coord(f"{name}_statistic", list(noisy.statistics))
    columns = []
    for axis, (dim, length) in enumerate(zip(likelihood.column_dims, likelihood.columns, strict=True)):
        columns.append(dim if dim in found.coords else f"{name}_column_{axis}")
        if dim not in found.coords:
            private.add_coord(columns[-1], length=length)
    dims = (f"{name}_cell", *columns, f"{name}_statistic")
    shape = noisy.noisy.shape
    n = noisy.n.astype("float64").reshape(-1, *[1] * len(likelihood.columns))
    noise = noisy.noise if noise_aware else None
    # What the closures hold is public: pickles of the model carry them.
    if noise is not None:
        plan = laws.plan(type(family.law(domain, pt.constant(n), *parameters)), noisy.values, noisy.n, noise)
        latent = [pm.Exponential(f"{name}{LATENT}", 1.0, dims=dims)] if plan.latent else []

        def logp(value: Variable, *given: Variable) -> Variable:
            own, hidden = given[: len(parameters)], given[len(parameters) :]
            return laws.log_density(family.law(domain, pt.constant(n), *own), value, noise, plan, *hidden)

        observed = noisy.values
    else:
        latent = []

        def logp(value: Variable, *given: Variable) -> Variable:
            return family.log_likelihood(value, pt.constant(n), domain, *given)

        observed = family.project(noisy.values, n[..., None], noisy.noise.spread, domain)

    def simulate(*given: Variable) -> Variable:
        return laws.simulated(family.law(domain, pt.constant(n), *given[: len(parameters)]), noise, shape)

    data = pm.Data(f"{name}_released", observed, dims=dims, shape=shape)
    pm.CustomDist(name, *parameters, *latent, dist=simulate, logp=logp, dtype="float64", observed=data, dims=dims)


def _labels(found: Blank, likelihood: Likelihood, noisy: NoisyStatistic) -> list[object] | None:
    """Labels of the cells, where a single public index into a labelled dim makes them."""
    if len(likelihood.inputs) != 1 or likelihood.inputs[0].labels is None:
        return None
    labels = found.coords.get(likelihood.inputs[0].labels)
    return None if labels is None else [labels[int(k)] for k in noisy.inputs[0]]
