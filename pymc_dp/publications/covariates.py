"""Covariates that were randomised or noised before they were published: observed variables, or data, on which other variables depend.

The true values of one record are summed out with all that rests on them: over every pattern of true values that may stand behind what
was published of the record. Nothing is approximated but for what windows leave out. Shapes: N records, P patterns.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import CategoricalRV

from pymc_dp.laws.kernel import NEGLIGIBLE
from pymc_dp.models.structure import is_array
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.candidates import Candidates, candidates_of
from pymc_dp.publications.counts import MOST_TERMS
from pymc_dp.publications.events import events_of
from pymc_dp.publications.measured import observe_measured
from pymc_dp.publications.noises import Exact
from pymc_dp.publications.observed import observed_numbers
from pymc_dp.publications.patterns import Mixed, Patterns, is_alike, same_for_all
from pymc_dp.publications.publication import Codebook, steps_of
from pymc_dp.publications.reals import needs_latent
from pymc_dp.publications.rows import Read, Rows, log_rows, observe, read, truth_of
from pymc_dp.publications.tables import Transitions
from pymc_dp.publications.truths import levels_of
from pymc_dp.publications.windows import windows_of

FEW = 4
"""Sums over so many patterns are written pattern by pattern: one loop over records, with no arrays in between."""


def observe_covariates(
    model: pm.Model, clone: pm.Model, books: Mapping[str, Codebook], values_by_name: Mapping[str, np.ndarray]
) -> set[str]:
    """Put the law of what was published in the place of all covariates with a law, and of what rests on them.

    Returns the names of the variables that are done.
    """
    _check_numbers(clone, books)
    below = {name: names for name in books if name in clone.named_vars and (names := dependents(clone, clone[name]))}
    data = {str(variable.name) for variable in clone.data_vars}
    for name in books:
        if name in data and name not in below:
            raise Refusal(f"{name} is data on which nothing observed rests. Say what was done to what is observed, and leave {name} out.")
    observed_names = observe_measured(model, clone, books, values_by_name, below)
    for group in _groups({name: names for name, names in below.items() if name not in observed_names}):
        members = [name for name in model.named_vars if name in group]
        covariates = [name for name in members if name in below]
        for name in members:
            _check_member(clone, name, books, covariates)
        if data_covariates := [name for name in covariates if name in data]:
            _check_data(clone, covariates, data_covariates, members)
        _observe_together(model, clone, books, values_by_name, members, covariates)
        observed_names |= set(members)
    return observed_names


def dependents(clone: pm.Model, variable: Variable) -> list[str]:
    """Names of all in the model that is computed from a variable."""
    others = [*clone.free_RVs, *clone.observed_RVs, *clone.deterministics, *clone.potentials]
    return [str(other.name) for other in others if other is not variable and variable in set(ancestors([other]))]


def _groups(below: Mapping[str, Sequence[str]]) -> list[set[str]]:
    """Covariates and what rests on them, those together that have something in common."""
    groups: list[set[str]] = []
    for name, others in below.items():
        whole = {name, *others}
        for group in [group for group in groups if group & whole]:
            groups.remove(group)
            whole |= group
        groups.append(whole)
    return groups


def _check_member(clone: pm.Model, name: str, books: Mapping[str, Codebook], covariates: Sequence[str]) -> None:
    whose = " and ".join(covariates)
    if name in books and f"{name}_observed" not in clone.named_vars:
        return
    base = name.removesuffix("_observed").removesuffix("_unobserved")
    if base in books:
        raise Refusal(
            f"{base} has missing values in a model of covariates. Write whole numbers as observed=, and what was published, NaN where"
            f" nothing was, as published(model, laws, values={{{base!r}: numbers}})."
        )
    if any(deterministic.name == name for deterministic in clone.deterministics):
        raise Refusal(
            f"{name} is computed from {whose}, whose true values are summed out, so it has no value. Write it without pm.Deterministic."
        )
    if any(potential.name == name for potential in clone.potentials):
        raise Refusal(
            f"The potential {name} rests on {whose}, whose true values are summed out. Write it as the likelihood of something observed."
        )
    raise Refusal(
        f"{name} is an unknown that rests on {whose}, whose true values are summed out. Let {name} rest on other unknowns only, and what is"
        f" observed on both {name} and {whose}."
    )


def _check_numbers(clone: pm.Model, books: Mapping[str, Codebook]) -> None:
    """Refuse a model that reads published numbers of one variable as plain numbers in another: they would pass for the truth."""
    seen = {
        str(rv.name): np.asarray(observed_numbers(clone, rv), dtype=float)
        for rv in clone.observed_RVs
        if rv.name in books and not isinstance(steps_of(books[str(rv.name)])[0], Exact)
    }
    for rv in (*clone.basic_RVs, *clone.potentials, *clone.deterministics):
        for array in ancestors([rv]):
            if not is_array(array) or array.type.ndim == 0:
                continue
            numbers = np.asarray(array.data if isinstance(array, Constant) else array.get_value(borrow=True))
            for name, published in seen.items():
                if numbers.shape == published.shape and _are_recoded(numbers.ravel(), published.ravel()):
                    raise Refusal(
                        f"{rv.name} rests on the published numbers of {name} as if they were true. Write it with the variable {name}"
                        f" instead: x = pm.Bernoulli({name!r}, ..., observed=...), and then x in {rv.name}."
                    )


MANY = 20
"""So many numbers are not a straight line of others by accident."""


def _are_recoded(numbers: np.ndarray, published: np.ndarray) -> bool:
    """Whether numbers are those that were published, or a straight line of them, such as 1 - x or x less its mean."""
    there = np.isfinite(published)
    if not there.any() or np.ptp(published[there]) == 0 or numbers.dtype.kind not in "biuf":
        return False
    numbers, published = numbers[there].astype(float), published[there]
    if np.array_equal(numbers, published):
        return True
    if len(published) < MANY or not np.isfinite(numbers).all() or np.ptp(numbers) == 0:
        return False
    return bool(abs(np.corrcoef(numbers, published)[0, 1]) > 1 - 1e-12)


def _check_data(clone: pm.Model, covariates: Sequence[str], data: Sequence[str], members: Sequence[str]) -> None:
    """Data have no prior: they get one where nothing else is known of a record that they could go with."""
    name = data[0]
    write = (
        f"{name} = pm.Bernoulli({name!r}, p, observed=answers), where p may depend on other covariates, or is pm.Beta('share', 1, 1)"
        " where it does not"
    )
    if len(data) < len(covariates):
        raise Refusal(f"{name} is data, and other covariates have a distribution. Write it as a distribution, too: {write}.")
    shape, data_variables = np.shape(clone[name].get_value()), {clone[covariate] for covariate in data}
    for other in (clone[member] for member in members if member not in data):
        for array in ancestors([other]):
            if not is_array(array) or array in data_variables:
                continue
            numbers = array.data if isinstance(array, Constant) else array.get_value(borrow=True)
            if np.ndim(numbers) and shape[0] in np.shape(numbers) and np.size(numbers) > 1 and np.ptp(np.asarray(numbers, float)) > 0:
                raise Refusal(
                    f"{name} is data, and {other.name} rests on {array.name or 'an array'} of the same records, with which the true {name}"
                    f" may go. Say of {name} how it is distributed: {write}."
                )


def _observe_together(
    model: pm.Model,
    clone: pm.Model,
    books: Mapping[str, Codebook],
    values_by_name: Mapping[str, np.ndarray],
    members: Sequence[str],
    covariates: Sequence[str],
) -> None:
    """One term for all that was published of a record."""
    data = [name for name in covariates if clone[name] in clone.data_vars]
    taken = {
        name: _data_read(clone, name, books[name]) if name in data else _single(model, clone, name, books[name], values_by_name)
        for name in members
    }
    shape = taken[covariates[0]].events.low.shape
    for name in covariates:
        if taken[name].events.low.shape != shape or len(shape) != 1:
            raise Refusal(
                f"{name} has shape {taken[name].events.low.shape} and {covariates[0]} {shape}. Write every covariate as a variable of its"
                " own, with one value a record."
            )
    candidates = [candidates_of(name, taken[name]) for name in covariates]
    outcomes = [name for name in members if name not in covariates]
    for name in outcomes:
        _check_outcome(name, taken[name], shape, covariates)
    _check_size(covariates, candidates, {name: taken[name] for name in outcomes}, shape[0])
    with clone:
        joint = _summed(taken, covariates, outcomes, candidates, data, shape)
        # The last one-dimensional variable has the log-probability of all that was published of a record; the others have 0.
        carrier = [name for name in members if taken[name].events.low.shape == shape][-1]
        for name in members:
            observe(taken[name], joint if name == carrier else pt.zeros(taken[name].events.low.shape))


def _check_size(covariates: Sequence[str], candidates: Sequence[Candidates], outcomes: Mapping[str, Read], rows: int) -> None:
    patterns = int(np.prod([len(of_covariate.values) for of_covariate in candidates]))
    terms = patterns * max(rows, sum(_terms(name, outcome) for name, outcome in outcomes.items()))
    if terms > MOST_TERMS:
        raise Refusal(
            f"{' and '.join(covariates)} have {patterns:,} patterns of true values, and {rows:,} rows: {terms:,} terms, more than"
            f" {MOST_TERMS:,}. Write covariates with fewer values, such as pm.Binomial('x', 5, p), or fit fewer rows at once."
        )


def _terms(name: str, outcome: Read) -> int:
    """How many terms the log-probability of all rows of an outcome has: one each, and one for every count that noise may hide."""
    if not outcome.whole or isinstance(outcome.events.setting, Variable):
        return outcome.events.low.size
    return int(windows_of(name, outcome.events).length.sum())


def _single(model: pm.Model, clone: pm.Model, name: str, book: Codebook, values_by_name: Mapping[str, np.ndarray]) -> Read:
    [published_rows] = read(model, clone, name, steps_of(book), values_by_name)
    return published_rows


def _data_read(clone: pm.Model, name: str, book: Codebook) -> Read:
    """A covariate that is data, taken out of the model."""
    variable = clone.named_vars.pop(name)
    dims = clone.named_vars_to_dims.pop(name, None)
    numbers = np.asarray(variable.get_value(), dtype=float)
    events = events_of(name, numbers, steps_of(book))
    if not isinstance(events.noise, Transitions):
        raise Refusal(
            f"{name} is data, and {events.noise.words} does not say which values are possible. Write how it is distributed, such as"
            f" {name} = pm.Binomial({name!r}, 10, p, observed=numbers), or pm.Normal for real numbers, with priors of their own."
        )
    return Read(Rows(name, name, numbers, None, dims), variable, events, True)


def _check_outcome(name: str, outcome: Read, shape: tuple[int, ...], covariates: Sequence[str]) -> None:
    if outcome.events.low.shape[:1] != shape:
        raise Refusal(
            f"{name} has shape {outcome.events.low.shape}, and {covariates[0]} {shape}. Write one row of {name} for every value of"
            f" {covariates[0]}, records along the first axis."
        )
    if not outcome.whole and needs_latent(outcome.random, outcome.events):
        raise Refusal(
            f"{name} rests on {' and '.join(covariates)}, whose true values are summed out, and would need an unknown a row itself:"
            f" {outcome.events.noise.words}. Write {name} as Normal with GaussianNoise of the same standard deviation."
        )


def _summed(
    taken: Mapping[str, Read],
    covariates: Sequence[str],
    outcomes: Sequence[str],
    candidates: Sequence[Candidates],
    data: Sequence[str],
    shape: tuple[int, ...],
) -> Variable:
    """Log-probability (N,) of all that was published of every record, summed over all patterns of true values."""
    sizes = [len(of_covariate.values) for of_covariate in candidates]
    places = np.indices(sizes).reshape(len(sizes), -1)
    logs = np.sum([of_covariate.logs[place] for of_covariate, place in zip(candidates, places, strict=True)], axis=0)
    possible = (logs > NEGLIGIBLE / 2).any(axis=1)
    places, logs = places[:, possible], logs[possible]
    values = [same_for_all(of_covariate.values[place]) for of_covariate, place in zip(candidates, places, strict=True)]
    graphs: list[Variable] = []
    randoms = [taken[name].random for name in covariates]
    seeds: dict[Variable, np.ndarray] = {}
    for name, numbers in zip(covariates, values, strict=True):
        variable = taken[name].random
        seeds[variable] = numbers
        if name not in data:
            value = variable.type.clone(shape=shape)(f"{name}_value")
            seeds[value] = numbers
            graphs.append(log_probability(variable, value, randoms))
    for name in outcomes:
        outcome = taken[name]
        row = (
            log_probability(outcome.random, _known(outcome), randoms) if outcome.events.as_it_was else log_rows(outcome, truth_of(outcome))
        )
        graphs.append(row + pt.zeros(outcome.events.low.shape))
    prior = _joint_share(data, [sizes[covariates.index(name)] for name in data], [values[covariates.index(name)] for name in data])

    try:
        return _over_patterns(graphs, seeds, logs, prior, shape)
    except Mixed as mixed:
        whose = " and ".join(covariates)
        raise Refusal(
            f"{' and '.join(outcomes or covariates)} cannot be read record by record along {whose}: {mixed}. Let every row rest on the"
            f" value of {whose} of the same record only, in arithmetic, as an index of a table, or as a column of a matrix."
        ) from None


def _over_patterns(
    graphs: Sequence[Variable], seeds: Mapping[Variable, np.ndarray], logs: np.ndarray, prior: Variable | None, shape: tuple[int, ...]
) -> Variable:
    """The logarithm (N,) of a sum over patterns of what graphs add up to there.

    Parameters of a pattern that is impossible do not matter; where those of a possible one are wrong, all is impossible.
    """
    alike = is_alike(graphs, list(seeds))

    def at(chosen: slice) -> tuple[Variable, Variable | None]:
        """What graphs add up to (P, N), and where parameters are wrong."""
        replaced = {
            seed: pt.constant((numbers if alike else np.broadcast_to(numbers, (len(numbers), *shape)))[chosen].astype(seed.type.dtype))
            for seed, numbers in seeds.items()
        }
        patterns = Patterns(replaced)
        total: Variable = pt.constant(logs[chosen])
        for graph in graphs:
            before = len(patterns.conditions)
            rows = patterns.rows(graph)
            rows = rows.sum(axis=tuple(range(2, rows.type.ndim))) if rows.type.ndim > 2 else rows
            checked = patterns.conditions[before:]
            total = total + (pt.switch(reduce(pt.and_, checked), rows, 0.0) if checked else rows)
        wrong = pt.invert(reduce(pt.and_, patterns.conditions)) & (total > -np.inf) if patterns.conditions else None
        return total if prior is None else total + prior[chosen], wrong

    if len(logs) > FEW:
        total, wrong = at(slice(None))
        whole, wrongs = pt.logsumexp(total, axis=0), [] if wrong is None else [wrong.any(axis=0)]
    else:
        found = [at(slice(p, p + 1)) for p in range(len(logs))]
        parts = [total[0] for total, _ in found]
        whole = pt.logaddexp(*parts) if len(parts) > 1 else parts[0]
        wrongs = [wrong[0] for _, wrong in found if wrong is not None]
    return pt.switch(reduce(pt.or_, wrongs), -np.inf, whole) if wrongs else whole


def _known(outcome: Read) -> Variable:
    """Numbers that were published as they are, of their variable's type."""
    return pt.constant(outcome.events.low.astype(outcome.random.type.dtype))


def log_probability(random: Variable, value: Variable, covariates: Sequence[Variable], of: Callable[..., Variable] = pm.logp) -> Variable:
    """Log-probability of values, or of what lies up to them, by ``pm.logcdf``.

    Of levels with a probability each, PyMC's own looks them up by an index of records.
    """
    if not isinstance(random.owner.op, CategoricalRV):
        # PyMC derives some log-probabilities from the graph, and takes unknowns in it for part of what is to be derived.
        unknowns = {variable: variable.type() for variable in (*pm.modelcontext(None).basic_RVs, *covariates) if variable is not random}
        [alone] = graph_replace([random], unknowns, strict=False)
        [row] = graph_replace([of(alone, value)], {stand_in: variable for variable, stand_in in unknowns.items()}, strict=False)
        return row
    [p] = random.owner.op.dist_params(random.owner)
    which = pt.eq(pt.expand_dims(value, -1), np.arange(levels_of(random)))
    return pt.switch(which, pt.log(p), 0.0).sum(axis=-1)


def _joint_share(data: Sequence[str], sizes: Sequence[int], values: Iterable[np.ndarray]) -> Variable | None:
    """The prior of covariates that are data: a share of every pattern, uniform over all shares, as an unknown of the model in context."""
    if not data:
        return None
    share = pm.Dirichlet(f"{'_'.join(data)}_share", np.ones(int(np.prod(sizes))))
    which = np.ravel_multi_index([numbers.astype(int) for numbers in values], sizes)
    return pt.log(share)[which]
