"""Bounds as users write them, checked and brought into one form: for observed variables, private covariates, features and predictors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import inf, prod
from typing import NamedTuple

import numpy as np

from pymc_dp.families.family import Domain
from pymc_dp.families.limits import check_bounds, check_spelling, is_pair, single
from pymc_dp.families.normal import ROW_VALUES
from pymc_dp.models.event_flags import LEVELS, levels_of_flag
from pymc_dp.models.intervals import interval
from pymc_dp.models.problems import is_of_potential
from pymc_dp.models.spec import Likelihood, Linear, ModelSpec, Placeholder
from pymc_dp.models.structure import Unreduced, above
from pymc_dp.plans.bin_nodes import nodes_of
from pymc_dp.plans.bins import Bins
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.calls import explained_class, not_numbers
from pymc_dp.privacy.layout import as_written, counted

APART = "Write an observed variable for every column, as with observed={}[:, 0], and bounds of each"
"""What to write where columns cannot have bounds of their own, with the variable's name in it."""
ONE_OR_EACH = "Write one pair for all of them, or one for each, in the order of the columns"
LEAST_PREDICTOR, MOST_PREDICTOR = 0.01, 20.0
"""The narrowest and the widest bounds of a linear predictor behind a link."""


@dataclass(frozen=True)
class Bounded:
    """What the user said of a private covariate: bounds, and levels where it is a closed list of values.

    Attributes
    ----------
    lower, upper : ndarray
        Of the shape of one record's entries, with an axis of length one for the records.
    levels : tuple of float or None
    norm : float
        The largest Euclidean norm of one record's entries together.
    edges : tuple of float
        Where it is counted in bins, the edges of all; ``levels`` then stand for the bins, each lying in its own.
    """

    lower: np.ndarray
    upper: np.ndarray
    levels: tuple[float, ...] | None = None
    norm: float = inf
    edges: tuple[float, ...] = ()

    @property
    def plain(self) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
        """Lower and upper bounds of a record's entries, and all values if they were listed."""
        return tuple(map(float, self.lower.ravel())), tuple(map(float, self.upper.ravel())), self.levels or ()


@explained_class
class Natural(NamedTuple):
    """Bounds outside which no value can lie, such as ages in a survey of adults: ``bounds={"age": pymc_dp.Natural(17, 90)}``.

    With a plain pair, the private model assumes that values at a bound may have been clamped there. With natural bounds it assumes that
    nothing was clamped: a normal model of ages whose tail reaches below 17 is then fitted as it would be without privacy. The promise does
    not depend on it: values outside are clamped in both cases. A response with covariates is always modelled as if nothing was clamped;
    there natural bounds say that this is so, and that ``sample`` need not warn.

    Attributes
    ----------
    lower, upper : float
        In the units of the values.

    Examples
    --------
    >>> with pm.Model() as ages:
    ...     mean, sd = pm.Normal("mean", 40, 20), pm.HalfNormal("sd", 20)
    ...     age = pm.Normal("age", mean, sd, observed=np.linspace(17, 90, 200))
    >>> pmdp.inspect(ages, bounds={"age": pmdp.Natural(17, 90)}).rows[0].structure
    'shared'
    """

    lower: float
    upper: float


@explained_class
@dataclass(frozen=True, repr=False)
class Norm:
    """A bound on the Euclidean norm of a record's entries, for a covariate with several columns. Longer records are shortened to it.

    Parameters
    ----------
    largest : float
        The largest norm, in the units of the covariate.

    Examples
    --------
    >>> with pm.Model() as line:
    ...     w, X = pm.Normal("w", 0, 1, shape=2), pm.Data("X", np.eye(2)[votes])
    ...     y = pm.Normal("y", X @ w, 1, observed=np.linspace(0, 1, 200))
    >>> pmdp.inspect(line, bounds={"X": pmdp.Norm(1.0), "y": (0, 1)}).rows[0].structure
    'linear'
    """

    largest: float
    __repr__ = as_written

    def __post_init__(self) -> None:
        number = isinstance(self.largest, int | float) and not isinstance(self.largest, bool)
        if not number or not 0 < self.largest < inf:
            raise Refusal('A norm must be a positive number. Write for example bounds={"X": pymc_dp.Norm(1.0)}.')


def predictor_name(likelihood: Likelihood) -> str:
    """What bounds call the linear predictor of a likelihood with a link, such as "logit(y)"."""
    return "" if likelihood.linear is None else f"{likelihood.linear.link}({likelihood.name})"


def private_covariates(likelihood: Likelihood) -> list[Placeholder]:
    """The private inputs whose bounds the user must give."""
    return [placeholder for placeholder in likelihood.inputs if placeholder.private and not placeholder.index]


def kind_of(likelihood: Likelihood) -> str:
    """Which bounds an observed variable can have: see ``Family.BOUNDS``."""
    if likelihood.distribution == "LogNormal":
        return "positive"
    return "real" if likelihood.family is None else likelihood.family.BOUNDS


def covariate_bounds(likelihood: Likelihood, bounds: Mapping[str, object]) -> dict[str, Bounded]:
    """Bounds of the private covariates, one pair of arrays each, of the shape of one record's entries.

    Raises
    ------
    Unreduced
        For bounds that are none.
    """
    result = {}
    for placeholder in private_covariates(likelihood):
        if placeholder.variable.type.dtype == "bool":
            pair: object = (0, 1)
        elif placeholder.event:
            pair = levels_of_flag(placeholder.name, bounds.get(placeholder.name, LEVELS))
        elif placeholder.name in bounds:
            pair = bounds[placeholder.name]
        elif placeholder.limits is not None:
            pair = placeholder.limits
        else:
            continue
        shape = shape_of_record(placeholder)
        if isinstance(pair, Bins):
            edges = _edges_of(placeholder, likelihood, pair)
            middles = tuple(nodes_of(edges, placeholder.whole, 1)[0][:, 0].tolist())
            result[placeholder.name] = Bounded(np.full(shape, edges[0]), np.full(shape, edges[-1]), middles, edges=edges)
        elif isinstance(pair, Norm):
            if placeholder.whole:
                raise Unreduced(
                    f"{placeholder.name} holds integers, which cannot be shortened. Write bounds={{{placeholder.name!r}: (lower, upper)}}"
                )
            result[placeholder.name] = Bounded(np.full(shape, -pair.largest), np.full(shape, pair.largest), None, float(pair.largest))
        elif isinstance(pair, set | frozenset):
            levels = _levels(placeholder.name, pair)
            result[placeholder.name] = Bounded(np.full(shape, levels[0]), np.full(shape, levels[-1]), levels)
        else:
            result[placeholder.name] = Bounded(*ends_of(placeholder.name, pair, shape, whole=placeholder.whole))
        if not placeholder.holds((of := result[placeholder.name]).lower, of.upper):
            kept = f"{placeholder.name} holds integers of type {placeholder.variable.type.dtype}, and its bounds lie beyond these"
            raise Unreduced(f"{kept}. Write a pm.Data of real numbers, such as np.zeros(2), or narrower bounds")
    return result


def _edges_of(placeholder: Placeholder, likelihood: Likelihood, bins: Bins) -> tuple[float, ...]:
    """The edges of the bins in which a covariate is counted."""
    if placeholder.name not in likelihood.in_bins:
        raise Unreduced(
            f"{placeholder.name} is an observed variable, so that its own likelihood says where in a bin it lies, which what depends on it"
            f" does not know. Round {placeholder.name} before the model, and leave its bins out of bounds"
        )
    edges = bins.all_edges()
    if placeholder.whole and not (nodes_of(edges, True, 1)[1] > 0).all():
        raise Unreduced(f"{placeholder.name} holds integers, and one of its bins holds none. Write wider bins for {placeholder.name}")
    return edges


def _levels(name: str, values: set[object] | frozenset[object]) -> tuple[float, ...]:
    """A closed list of values that a covariate can have."""
    try:
        levels = sorted({float(level) for level in values})  # type: ignore[arg-type]
    except (TypeError, ValueError):
        levels = []
    if len(levels) < 2 or not np.isfinite(levels).all():
        raise Unreduced(f"levels of {name} must be two or more finite numbers. Write for example bounds={{{name!r}: {{0, 1}}}}")
    return tuple(levels)


def ends_of(name: str, pair: object, shape: Sequence[int], whole: bool) -> tuple[np.ndarray, np.ndarray]:
    """Bounds as two arrays of one shape, however they were spelled: a pair for all entries, or a list of pairs, one an entry.

    Raises
    ------
    Unreduced
        For anything else.
    """
    example = f"Write bounds={{{name!r}: (lower, upper)}}, one such pair per column, or all its values as a set: {{0, 1, 2}}"
    try:
        ends = np.asarray(pair, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise Unreduced(f"bounds of {name} must be numbers. {example}") from None
    if ends.shape == (2,):
        lower, upper = (np.broadcast_to(end, shape) for end in ends)
    elif ends.ndim == 2 and ends.shape[1] == 2 and ends.shape[0] == int(np.prod(shape)):
        lower, upper = ends[:, 0].reshape(shape), ends[:, 1].reshape(shape)
    else:
        raise Unreduced(f"bounds of {name} must be a pair of numbers. {example}")
    if np.size(lower) > 1 and np.isfinite(lower).all() and (lower == upper).any() and (lower <= upper).all():
        raise Unreduced(
            f"a column of {name} has one value alone by its bounds. Leave such columns out: a column of ones in X is an intercept,"
            " a + X @ b, which takes no noise"
        )
    if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower < upper).all()):
        raise Unreduced(f"bounds of {name} must be finite, the lower one first. {example}")
    if whole and not ((np.rint(lower) == lower).all() and (np.rint(upper) == upper).all() and (np.abs([lower, upper]) < 2**40).all()):
        raise Unreduced(f"{name} holds integers, so its bounds must be integers of at most 2**40. {example}")
    return np.array(lower, dtype=float), np.array(upper, dtype=float)


def needs(likelihood: Likelihood, bounds: Mapping[str, object]) -> str | None:
    """The bounds a likelihood still lacks, as a sentence."""
    if likelihood.refusal is not None or (likelihood.aggregate and likelihood.family is not ROW_VALUES):
        return None
    missing = []
    if likelihood.natural is None and likelihood.name not in bounds:
        missing.append(likelihood.name)
    missing += [
        placeholder.name
        for placeholder in private_covariates(likelihood)
        if placeholder.name not in bounds and placeholder.limits is None and placeholder.variable.type.dtype != "bool"
    ]
    if not missing:
        return None
    example = {"integer": "(0, 40)", "positive": "(0.1, 200)", "nonnegative": "(0, 200)", "unit": "(0.01, 0.99)"}
    trials = likelihood.known[0] if likelihood.distribution in ("Binomial", "BetaBinomial") and likelihood.known else None
    most = likelihood.limits[1] if trials is None else trials // 1
    own = f"(0, {most:g})" if 0 < most < np.inf else example.get(kind_of(likelihood), "(0, 200)")
    written = ", ".join(f"{name!r}: {own if name == likelihood.name else '(lower, upper)'}" for name in dict.fromkeys(missing))
    what = (
        f"{likelihood.name} is {likelihood.distribution}, so it needs bounds"
        if missing[0] == likelihood.name
        else f"{missing[0]} is private, so it needs bounds"
    )
    return f"{what} before anything is released. Write bounds={{{written}}} with numbers of your own; values outside are clamped."


def bounds_by_name(spec: ModelSpec, bounds: Mapping[str, object] | None) -> dict[str, object]:
    """The user's bounds, each naming an observed variable or a private covariate."""
    if bounds is None:
        return {}
    by_name = {likelihood.name: likelihood for likelihood in spec.likelihoods}
    covariates = {placeholder.name for likelihood in spec.likelihoods for placeholder in likelihood.inputs if placeholder.private}
    linked = [likelihood for likelihood in spec.likelihoods if likelihood.linear is not None and likelihood.linear.link]
    names = [*by_name, *sorted(covariates), *map(predictor_name, linked)]
    # Where records are read by something else their names are not known: the refusal speaks.
    unread = any(likelihood.refusal for likelihood in spec.likelihoods) or any(map(is_of_potential, spec.problems))
    for name, pair in bounds.items() if isinstance(bounds, Mapping) else ():
        if words := not_numbers(str(name), pair):
            raise Refusal(words)
    if not isinstance(bounds, Mapping) or not (unread or all(name in names for name in bounds)):
        if isinstance(bounds, tuple | list) and len(bounds) == 2 and names:
            raise Refusal(f"bounds are given by name. Write bounds={{{names[0]!r}: (lower, upper)}}.")
        listed = f"Write one of {', '.join(map(repr, names))}." if names else "There are none here: leave bounds out."
        known = {placeholder.name for likelihood in spec.likelihoods for placeholder in likelihood.inputs}
        if isinstance(bounds, Mapping) and (public := [name for name in bounds if name not in names and name in known]):
            raise Refusal(f"{public[0]} is public, and needs no bounds. Leave {public[0]} out of bounds.")
        unknown = [str(name) for name in bounds if name not in names] if isinstance(bounds, Mapping) else []
        near = [meant for name in unknown for meant in names if get_close_matches(name.lower(), [meant.lower()])]
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise Refusal(f"bounds must name observed variables and private covariates. {listed}{hint}")
    columns = {placeholder.name: prod(e or 1 for e in shape_entries(placeholder)) for k in spec.likelihoods for placeholder in k.inputs}
    columns |= {name: prod(k.columns) * (k.levels if k.distribution == "MvNormal" else 1) for name, k in by_name.items()}
    for name in bounds:
        given = bounds[name]
        check_spelling(name, given, columns.get(name, 1))
        if isinstance(given, list | tuple) and any(isinstance(one, Bins) for one in given):
            raise Refusal(f"Bins of {name} are the same for all of its columns. {APART.format(name)}. Or write one pymc_dp.Bins for all.")
        if isinstance(bounds[name], Bins):
            if name not in by_name and (words := no_bins(spec, name)):
                raise Refusal(words)
            continue
        if name in by_name and by_name[name].refusal is None and by_name[name].natural is not None:
            raise Refusal(f"{name} is {by_name[name].distribution}, whose values are limited by themselves. Leave {name} out of bounds.")
        for pair in pairs_of(bounds[name]) or [bounds[name]]:
            if name not in by_name or (family := by_name[name].family) is None:
                break
            check_bounds(family, name, pair)
            if isinstance(pair, Natural) and not family.UNCLAMPED and by_name[name].linear is None:
                raise Refusal(
                    f"{name} is {family.DISTRIBUTION}, whose law is known only with values moved to the bounds. Write"
                    f" bounds={{{name!r}: (lower, upper)}}, so wide that hardly any is."
                )
    return {name: _numbered(spec, name, bound, bounds) if isinstance(bound, Bins) else bound for name, bound in bounds.items()}


def _numbered(spec: ModelSpec, name: str, bins: Bins, bounds: Mapping[str, object]) -> Bins:
    """Bins whose number is known: written, or by the rule for an observed variable or a covariate."""
    if name in {likelihood.name for likelihood in spec.likelihoods}:
        return Bins(edges=bins.all_edges(spec.many.get(name)))
    several, most = 1, 0
    for likelihood in spec.likelihoods:
        together = [i for i in private_covariates(likelihood) if isinstance(bounds.get(i.name), Bins) and not i.parent]
        if name in {placeholder.name for placeholder in together}:
            several = max(several, sum(int(np.prod([e or 1 for e in shape_entries(i)])) for i in together))
            most = max(most, spec.many.get(likelihood.name, 0))
    return Bins(edges=bins.all_edges(most or None, covariates=several))


def shape_entries(placeholder: Placeholder) -> list[int | None]:
    """Lengths of the axes of a covariate besides that of the records."""
    return [length for axis, length in enumerate(placeholder.variable.type.shape) if axis != placeholder.axis]


def no_bins(spec: ModelSpec, name: str) -> str:
    """Why a covariate cannot be counted in bins, and what to write instead; "" where it can."""
    for likelihood in spec.likelihoods:
        for placeholder in likelihood.inputs:
            if placeholder.name == name and placeholder.index:
                return f"{name} is an index, every level of which is a cell. Leave {name} out of bounds."
            if placeholder.name == name and placeholder.variable.type.dtype == "bool":
                return f"{name} holds truth values, which need no bins. Leave {name} out of bounds."
    return ""


def pairs_of(bounds: object) -> list[object]:
    """The bounds of every column, where there is a pair for each: a list of pairs, or an array; else nothing."""
    if not isinstance(bounds, list | tuple | np.ndarray) or not len(bounds) or not all(map(is_pair, bounds)):
        return []
    return [pair if isinstance(pair, Natural) else tuple(map(single, pair)) for pair in bounds]


def one_or_each(likelihood: Likelihood, declared: object) -> list[object]:
    """What was declared of an observed variable: one pair of bounds for all its columns, or one for each where they differ."""
    pairs = pairs_of(declared)
    if not pairs:
        return [declared]
    if len(pairs) != (many := prod(likelihood.columns)):
        columns, written = counted(many, "column"), counted(len(pairs), "pair")
        raise Unreduced(f"{likelihood.name} has {columns}, and its bounds are {written}. {ONE_OR_EACH}")
    return pairs[:1] if len(set(pairs)) == 1 else pairs


def binned_domain(likelihood: Likelihood, bins: object) -> Domain:
    """What is publicly known about values that are counted in bins, which need not lie within the outer edges."""
    assert isinstance(bins, Bins)
    edges = bins.all_edges()
    return replace(likelihood.domain((edges[0], edges[-1])), edges=edges, clamps=False)


def shape_of_record(placeholder: Placeholder) -> tuple[int, ...]:
    """The shape of one record's entries, with an axis of length one for the records."""
    shape = [1 if axis == placeholder.axis else length for axis, length in enumerate(placeholder.variable.type.shape)]
    if None in shape:
        raise Unreduced(f"the number of columns of {placeholder.name} is not fixed. Give it as an array with a fixed shape")
    return tuple(int(length) for length in shape)


def feature_bounds(
    likelihood: Likelihood, linear: Linear, covariates: Mapping[str, Bounded]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Bounds of the private features by interval arithmetic; of public ones nothing is known before they are read."""
    private_inputs = private_covariates(likelihood)
    ends = {
        covariate.variable: (covariates[covariate.name].lower, covariates[covariate.name].upper)
        for covariate in private_inputs
        if covariate.name in covariates
    }
    public = {placeholder.variable for placeholder in likelihood.inputs if not placeholder.private}
    lower, upper = [], []
    for name, feature, private in zip(linear.names, linear.features, linear.private, strict=True):
        low, high = -1.0, 1.0
        if private and len(ends) == len(private_inputs):
            if any(v in public for v in above([feature])):
                raise Unreduced(
                    f"its feature {name} multiplies private and public covariates. Compute it before the model, and give bounds to"
                    " the result"
                )
            low, high = (float(end) for end in (np.min(interval(feature, ends)[0]), np.max(interval(feature, ends)[1])))
            if not low < high:  # the same for all records
                low, high = low - 1, high + 1
        lower.append(low)
        upper.append(high)
    return tuple(lower), tuple(upper)


def as_declared(domain: Domain, bounds: object) -> Domain:
    """Within natural bounds nothing was moved to them; those of columns are all natural, or none is."""
    kinds = [isinstance(pair, Natural) for pair in pairs_of(bounds) or [bounds]]
    if any(kinds) and not all(kinds):
        raise Unreduced("bounds of some columns are pymc_dp.Natural and of others not. Write them for all columns, or for none")
    return replace(domain, clamps=False) if all(kinds) else domain
