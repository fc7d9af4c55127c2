"""Blank + Release -> an ordinary ``pm.Model`` without any record. Everything PyMC does with it costs nothing more.

The observed variables of the rewritten model are the noisy statistics, under the user's names. Free variables keep names,
dims, coords, transforms, initial values and order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.model.fgraph import ModelDeterministic, ModelNamed, model_from_fgraph
from pymc.pytensorf import constant_fold
from pytensor.graph import FunctionGraph
from pytensor.graph.basic import Variable

from pymc_dp import law as laws
from pymc_dp.accounting import Refusal
from pymc_dp.blank import Blank, Likelihood, blank
from pymc_dp.boundary import boundary
from pymc_dp.inspection import in_context
from pymc_dp.noisy import NoisyStatistic, Release
from pymc_dp.scatter import scatter
from pymc_dp.structure import substitute
from pymc_dp.tables import probabilities

SHARED = "_shared"
"""Ending of the names of what the features' moments have in common in all cells: the model's own, too."""
LATENT = "_noise"
"""Ending of the names of latent noise variables: the model's own, not the user's."""
SIZE = "_size"
"""Ending of the names of unknown numbers of records per cell: the model's own, too."""
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
        records = {int(one.n.sum()) for one in release.statistics}
        aggregate, sized = any(one.structure == "aggregate" for one in release.statistics), release.neighbours == "replace"
        found = blank(model, release.public, records, aggregate=aggregate, sized=sized)
    except Refusal:
        raise Refusal(ANOTHER_SHAPE) from None
    pairs = _matched(found, release)
    if noise_aware:
        check_noise_aware([noisy.distribution for _, noisy in pairs if not knows_its_noise(noisy)])
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
    if set(by_name) != {likelihood.name for likelihood in found.likelihoods}:
        raise Refusal(ANOTHER_SHAPE)
    pairs = [(likelihood, by_name[likelihood.name]) for likelihood in found.likelihoods]
    if not all(_same_shape(likelihood, noisy) for likelihood, noisy in pairs):
        raise Refusal(ANOTHER_SHAPE)
    return pairs


def _same_shape(likelihood: Likelihood, noisy: NoisyStatistic) -> bool:
    linear = likelihood.linear.names if noisy.regression is not None and likelihood.linear is not None else None
    return (
        noisy.distribution == likelihood.distribution
        and noisy.noisy.shape[1:-1] == likelihood.columns
        and (noisy.domain.unknown, noisy.domain.levels) == (likelihood.unknown, likelihood.levels)
        and noisy.tabulated == (likelihood.make is not None)
        and (linear is None) == (noisy.regression is None)
        and (noisy.regression is None or noisy.regression.names == linear)
        and len(noisy.inputs) == len(likelihood.inputs)
        and all(value.ndim == given.variable.type.ndim for value, given in zip(noisy.inputs, likelihood.inputs, strict=True))
    )


def knows_its_noise(noisy: NoisyStatistic) -> bool:
    """Whether the law of this noisy statistic is known well enough to be part of the likelihood."""
    if noisy.regression is not None:
        return noisy.regression.q == 1
    return noisy.family is None or noisy.family.NOISE_AWARE


def check_noise_aware(refused: Sequence[str]) -> None:
    """Refuse a noise-aware posterior where it could not be right."""
    if refused:
        raise Refusal(
            f"The noise cannot be made part of a {refused[0]} likelihood of this shape yet. Write noise_aware=False, and read its"
            " intervals as too narrow."
        )


def _at_cells(likelihood: Likelihood, noisy: NoisyStatistic) -> list[Variable]:
    """The user's own parameters, evaluated on one row per cell: shape (G, *C) and core axes, float64.

    Of a regression: the coefficients (G, *C, F), or (G, *C, q, F), and the scale.
    """
    rows = {given.variable: pt.constant(value) for given, value in zip(likelihood.inputs, noisy.inputs, strict=True)}
    batch = noisy.noisy.shape[:-1]
    result = []
    for k, (parameter, core) in enumerate(zip(likelihood.parameters, likelihood.core_ndims, strict=True)):
        if noisy.regression is not None and k == 0:
            assert likelihood.linear is not None
            parameter, core = likelihood.linear.coefficients, core + 1
        # CustomDist does not check how its parameters broadcast, so they leave here in full shape.
        full = np.zeros(batch + (1,) * core)
        result.append(substitute(parameter, rows).astype("float64") + full)
    if noisy.regression is not None and noisy.regression.link:
        return [result[0], pt.ones(batch)]
    if noisy.tabulated:
        assert likelihood.make is not None
        p = probabilities(likelihood.make, result, likelihood.core_ndims, noisy.domain)
        return [p + np.zeros((*batch, 1))]
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
    for node in graph.toposort():
        if isinstance(node.op, ModelDeterministic | ModelNamed) and node.outputs[0] not in graph.outputs:
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
    name = noisy.variable
    private.add_coord(f"{name}_cell", _labels(found, likelihood, noisy), length=len(noisy.noisy))
    private.add_coord(f"{name}_statistic", list(noisy.statistics))
    columns = []
    for axis, (dim, length) in enumerate(zip(likelihood.column_dims, likelihood.columns, strict=True)):
        columns.append(dim if dim in found.coords else f"{name}_column_{axis}")
        if dim not in found.coords:
            private.add_coord(columns[-1], length=length)
    dims = (f"{name}_cell", *columns, f"{name}_statistic")
    columns_many = len(likelihood.columns)
    if noise_aware:
        likely = (_noise_aware if noisy.regression is None else _noisy_moments)(private, noisy, columns_many, parameters)
    else:
        likely = _plug_in(noisy, columns_many, parameters)
    data = pm.Data(f"{name}_released", likely.observed, dims=dims, shape=noisy.noisy.shape)
    given = [*parameters, *likely.sizes, *likely.latents]
    pm.CustomDist(name, *given, dist=likely.simulate, logp=likely.logp, dtype="float64", observed=data, dims=dims)


@dataclass(frozen=True)
class _Likely:
    """A likelihood of noisy statistics: what is observed, what is latent, and the functions of a CustomDist.

    What the functions' closures hold is public: pickles of the model carry them.
    """

    observed: np.ndarray
    sizes: tuple[Variable, ...]
    latents: tuple[Variable, ...]
    simulate: Callable[..., Variable]
    logp: Callable[..., Variable]


def _noise_aware(private: pm.Model, noisy: NoisyStatistic, columns: int, parameters: list[Variable]) -> _Likely:
    """The noise is part of the likelihood, and so are numbers of records that are not public."""
    name, noise, many = noisy.variable, noisy.noise, len(parameters)
    sizes, n = _sizes(private, noisy, columns)

    def law(*given: Variable) -> laws.Law:
        own, size = given[:many], given[many] if sizes else pt.constant(n)
        if noisy.structure == "aggregate":
            return laws.Count(*own) if noisy.distribution == "Binomial" else laws.Rates(own[0][..., None])
        family = noisy.family
        assert family is not None
        of_records = family.law(noisy.domain, size, *own)
        if noisy.sizes == "public":
            return of_records
        spread = family.spread(noisy.domain)
        basis = tuple((row[0] * noisy.lattice, *map(float, row[1:])) for row in spread.matrix)
        own_law = laws.in_cells(of_records, basis, size)
        if noisy.sizes == "simplex" and isinstance(own_law, laws.Rates):
            return _table(own_law, noisy)
        return own_law

    joint = noisy.sizes == "simplex" and isinstance(law(*parameters, *sizes), laws.Counts)
    shape = noisy.noisy.shape
    flat = (len(noisy.n), *shape[1:-1], noisy.private_cells * shape[-1])

    def together(value: Variable) -> Variable:
        """The counts of all private cells of a public one beside each other."""
        return _beside(value, noisy) if joint else value

    seen = _beside(noisy.values, noisy) if joint else noisy.values
    many_records = noisy.n.astype(float) if joint else n.reshape(-1)
    if noisy.structure == "aggregate" and noisy.distribution == "Binomial":
        [many_records] = constant_fold([parameters[0]])  # every row has its own number of trials, which is public
    plan = laws.plan(law(*parameters, *sizes), seen, many_records, noise)
    latents: tuple[Variable, ...] = ()
    if plan.latents:
        length = tuple(seen.shape[:-1])
        dims = [f"{name}{LATENT}_{axis}" for axis in range(len(length) + 1)]
        for dim, size in zip(dims, (*length, plan.latents), strict=True):
            private.add_coord(dim, length=size)
        latents = (pm.Normal(f"{name}{LATENT}", dims=dims),)
    hidden_from = many + len(sizes)

    def logp(value: Variable, *given: Variable) -> Variable:
        density = laws.log_density(law(*given[:hidden_from]), together(value), noise, plan, *given[hidden_from:])
        if not joint:
            return density
        # One density for all private cells of a public one: it stands at the first of them.
        first = np.zeros(shape[:-1]).reshape(len(noisy.n), noisy.private_cells, *shape[1:-1])
        first[:, 0] = 1.0
        spread_out = pt.repeat(density, noisy.private_cells, axis=0)
        return spread_out * first.reshape(shape[:-1])

    def simulate(*given: Variable) -> Variable:
        drawn = laws.simulated(law(*given[:hidden_from]), noise, flat if joint else shape)
        return _apart(drawn, noisy) if joint else drawn

    return _Likely(noisy.values, sizes, latents, simulate, logp)


def _noisy_moments(private: pm.Model, noisy: NoisyStatistic, columns: int, parameters: list[Variable]) -> _Likely:
    """Second moments with noise: the exact ones are latent, see ``scatter``."""
    regression, name = noisy.regression, noisy.variable
    assert regression is not None
    sizes, n = _sizes(private, noisy, columns)
    batch = noisy.noisy.shape[:-1]
    B, K = int(np.prod(batch)), noisy.noisy.shape[-1]
    many = np.broadcast_to(n, batch).reshape(B)
    known = np.broadcast_to(noisy.known * noisy.lattice, (*batch, regression.size, regression.size)).reshape(B, *[regression.size] * 2)
    law = scatter(regression, noisy.noise, noisy.values.reshape(B, K), known, many)
    dims = [f"{name}{LATENT}_{axis}" for axis in range(2)]
    for dim, length in zip(dims, (B, law.latents), strict=True):
        private.add_coord(dim, length=length)
    latents: list[Variable] = [pm.Normal(f"{name}{LATENT}", dims=dims)]
    if law.shared:
        private.add_coord(f"{name}{SHARED}_0", length=law.shared)
        latents.append(pm.Normal(f"{name}{SHARED}", dims=f"{name}{SHARED}_0"))

    arrays = law.arrays()
    # As data, so that another release of the same shape makes the same graph where it can.
    latents += [pm.Data(f"{name}{LATENT}_{key}", array, shape=array.shape) for key, array in arrays.items()]

    def flat(given: Sequence[Variable]) -> tuple[Any, ...]:
        phi, sigma, *rest = given
        size = (rest.pop(0) + np.zeros(batch)).reshape((B,)) if sizes else pt.constant(many)
        latent, shared = rest.pop(0), rest.pop(0) if law.shared else None
        placed = dict(zip(arrays, rest, strict=True))
        return size, phi.reshape((B, len(regression.names))), sigma.reshape((B,)), latent, shared, placed

    def logp(value: Variable, *given: Variable) -> Variable:
        return law.log_density(value.reshape((B, K)), *flat(given)).reshape(batch)

    def simulate(*given: Variable) -> Variable:
        return law.simulated(*flat(given[:-1])).reshape((*batch, K))

    return _Likely(noisy.values, sizes, tuple(latents), simulate, logp)


def _sizes(private: pm.Model, noisy: NoisyStatistic, columns: int) -> tuple[tuple[Variable, ...], np.ndarray]:
    """Numbers of records per cell: unknown variables where they are not public, and what is known or guessed of them."""
    name, V = noisy.variable, noisy.private_cells
    ones = [1] * columns
    if noisy.sizes == "public":
        return (), noisy.n.astype(float).reshape(-1, *ones)
    by_cell = noisy.values.reshape(len(noisy.noisy), -1, noisy.noisy.shape[-1])
    if noisy.regression is not None:
        guess = np.maximum(by_cell[..., noisy.regression.entries.index((0, 0))].mean(axis=-1), 1.0)
    else:
        assert noisy.family is not None
        guess = np.maximum(by_cell.sum(axis=-1).mean(axis=-1) / (noisy.family.spread(noisy.domain).total * noisy.lattice), 1.0)
    if noisy.sizes == "free":
        private.add_coord(f"{name}_kind", length=len(noisy.noisy))
        size = pm.HalfFlat(f"{name}{SIZE}", dims=f"{name}_kind", initval=guess)
        return (size.reshape((-1, *ones)),), guess.reshape(-1, *ones)
    # Flat on the simplex of the public number of records: theory in docs/theory.md.
    private.add_coord(f"{name}_group", length=len(noisy.n))
    private.add_coord(f"{name}_kind", length=V)
    share = pm.Dirichlet(f"{name}{SIZE}", np.ones(V), dims=(f"{name}_group", f"{name}_kind"))
    size = (share * noisy.n[:, None]).reshape((-1, *ones))
    return (size,), guess.reshape(-1, *ones)


def _table(rates: laws.Rates, noisy: NoisyStatistic) -> laws.Law:
    """Independent Poisson counts given that all of a public cell add up to its public number are multinomial."""
    beside = _beside(rates.rate + pt.zeros(noisy.noisy.shape), noisy)
    n = noisy.n.astype(float).reshape(-1, *[1] * (noisy.noisy.ndim - 2))
    return laws.Counts(pt.constant(n), beside / beside.sum(axis=-1, keepdims=True))


def _beside(value, noisy: NoisyStatistic):
    """(G V, *C, K) -> (G, *C, V K)."""
    G, V = len(noisy.n), noisy.private_cells
    shape = noisy.noisy.shape
    apart = value.reshape((G, V, *shape[1:]))
    order = (0, *range(2, len(shape)), 1, len(shape))
    return apart.transpose(order).reshape((G, *shape[1:-1], V * shape[-1]))


def _apart(value: Variable, noisy: NoisyStatistic) -> Variable:
    """The inverse of ``_beside``."""
    G, V = len(noisy.n), noisy.private_cells
    shape = noisy.noisy.shape
    together = value.reshape((G, *shape[1:-1], V, shape[-1]))
    order = (0, len(shape) - 1, *range(1, len(shape) - 1), len(shape))
    return together.transpose(order).reshape(shape)


def _plug_in(noisy: NoisyStatistic, columns: int, parameters: list[Variable]) -> _Likely:
    """The statistics, projected onto what exact ones could be, are used as if they were exact."""
    ones = [1] * columns
    n = noisy.n.astype(float).reshape(-1, *ones) if noisy.sizes == "public" else np.ones((len(noisy.noisy), *ones))
    if noisy.regression is not None:
        return _plug_in_moments(noisy, n)
    if noisy.structure == "aggregate":
        return _plug_in_totals(noisy, parameters)
    family, domain, shape = noisy.family, noisy.domain, noisy.noisy.shape
    assert family is not None
    if noisy.sizes == "public":
        observed = family.project(noisy.values, n[..., None], noisy.noise.spread, domain)

        def counted(value: Variable) -> tuple[Variable, Variable]:
            return value, pt.constant(n)
    else:
        # Entries that are never negative and add up to the total of every record: their sum is the number of records.
        spread = family.spread(domain)
        matrix = np.array(spread.matrix, dtype=float) * np.array([noisy.lattice, *[1.0] * (len(spread.matrix[0]) - 1)])
        entries = np.maximum(noisy.values, 0.0)
        found = np.maximum(entries.sum(axis=-1) / (spread.total * noisy.lattice), 1e-9)
        sums = (entries - found[..., None] * matrix[:, 0]) @ np.linalg.pinv(matrix[:, 1:]).T
        sums = family.project(sums, found[..., None], noisy.noise.spread, domain)
        observed = sums @ matrix[:, 1:].T + found[..., None] * matrix[:, 0]

        def counted(value: Variable) -> tuple[Variable, Variable]:
            sizes = value.sum(axis=-1) / (spread.total * noisy.lattice)
            return pt.dot(value - sizes[..., None] * matrix[:, 0], np.linalg.pinv(matrix[:, 1:]).T), sizes

    def logp(value: Variable, *given: Variable) -> Variable:
        sums, sizes = counted(value)
        return family.log_likelihood(sums, sizes, domain, *given)

    def simulate(*arguments: Variable) -> Variable:
        given = arguments[: len(parameters)]
        if noisy.sizes == "public":
            return laws.simulated(family.law(domain, pt.constant(n), *given), None, shape)
        basis = tuple((row[0] * noisy.lattice, *map(float, row[1:])) for row in family.spread(domain).matrix)
        sizes = pt.constant(observed.sum(axis=-1) / (family.spread(domain).total * noisy.lattice))
        return laws.simulated(laws.in_cells(family.law(domain, sizes, *given), basis, sizes), None, shape)

    return _Likely(observed, (), (), simulate, logp)


def _plug_in_moments(noisy: NoisyStatistic, n: np.ndarray) -> _Likely:
    regression = noisy.regression
    assert regression is not None
    known = noisy.known * noisy.lattice
    observed = regression.project(noisy.values, known, noisy.noise.spread)

    def normal(phi: Variable, scale: Variable) -> tuple[Variable, Variable]:
        return regression.as_normal(phi) if regression.link else (phi, scale)

    def logp(value: Variable, *given: Variable) -> Variable:
        return regression.log_likelihood(value, pt.constant(n), known, *normal(*given))

    def simulate(*given: Variable) -> Variable:
        return regression.simulated(observed, n, known, *normal(*given[:2]))

    return _Likely(observed, (), (), simulate, logp)


def _plug_in_totals(noisy: NoisyStatistic, parameters: list[Variable]) -> _Likely:
    """Totals of rows as if they were exact."""
    binomial = noisy.distribution == "Binomial"
    observed = np.maximum(noisy.values, 0.0)

    def logp(value: Variable, *given: Variable) -> Variable:
        s = value[..., 0]
        if not binomial:
            return s * pt.log(pt.maximum(given[0], 1e-300)) - given[0]
        trials, p = given
        s, p = pt.minimum(s, trials), pt.clip(p, 1e-300, 1 - 1e-16)
        return s * pt.log(p) + (trials - s) * pt.log1p(-p)

    def simulate(*given: Variable) -> Variable:
        law = laws.Count(*given[:2]) if binomial else laws.Rates(given[0][..., None])
        return laws.simulated(law, None, noisy.noisy.shape)

    return _Likely(observed, (), (), simulate, logp)


def _labels(found: Blank, likelihood: Likelihood, noisy: NoisyStatistic) -> list[object] | None:
    """Labels of the cells, where a single public index into a labelled dim makes them."""
    if len(likelihood.inputs) != 1 or likelihood.inputs[0].labels is None or likelihood.aggregate:
        return None
    labels = found.coords.get(likelihood.inputs[0].labels)
    return None if labels is None else [labels[int(k)] for k in noisy.inputs[0]]
