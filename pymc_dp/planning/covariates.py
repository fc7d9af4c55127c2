"""Laws of private covariates and indices -> simulated ones. The user gives the law; otherwise all values are equally probable."""

from collections.abc import Iterator, Mapping

import numpy as np
import pymc as pm
import pytensor
from pymc.distributions.shape_utils import change_dist_size
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType

from pymc_dp.models.spec import Placeholder
from pymc_dp.models.structure import Unreduced
from pymc_dp.plans.bounds import Bounded, bounds_by_name, covariate_bounds
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.releases.simulated import PublicSide

LAW = "Write covariate_law={{{0!r}: pm.Normal.dist(40, 12)}}, an array of draws, or a function of (rng, size)"


def simulated_covariates(
    side: PublicSide, laws: Mapping[str, object], records: Mapping[str, int], rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """The private arrays of these observed variables, but observed ones, by name, with records along their axis of records."""
    result: dict[str, np.ndarray] = {}
    for variable, placeholder, bounded in private_arrays(side):
        if variable in records and placeholder.name not in result:
            entries, axis = entries_of(placeholder), placeholder.axis or 0
            if placeholder.name in laws:
                values = drawn_from(laws[placeholder.name], placeholder.name, records[variable], entries, rng)
            else:
                values = _uniform(placeholder, bounded, records[variable], entries, rng)
            values = np.rint(values).astype(np.int64) if placeholder.whole or placeholder.index else values
            if placeholder.index and ((values < 0) | (values >= (placeholder.levels or 1))).any():
                raise Refusal(
                    f"The law of {placeholder.name} gives numbers that are no entry of its table. Let it give 0 to"
                    f" {(placeholder.levels or 1) - 1}."
                )
            result[placeholder.name] = np.moveaxis(values, 0, axis)
    return result


def private_arrays(side: PublicSide) -> Iterator[tuple[str, Placeholder, Bounded | None]]:
    """Every private input that is no observed variable: of which observed variable, and its bounds."""
    declared = bounds_by_name(side.spec, side.protection.bounds)
    for likelihood in side.spec.likelihoods:
        try:
            bounds = covariate_bounds(likelihood, declared)
        except Unreduced as reason:
            raise Refusal(f"{likelihood.name} cannot be simulated: {reason}.") from None
        for placeholder in likelihood.inputs:
            if placeholder.private and not placeholder.parent:
                yield likelihood.name, placeholder, bounds.get(placeholder.name)


def entries_of(placeholder: Placeholder) -> tuple[int, ...]:
    """The shape of what one record holds of an array."""
    return tuple(int(length or 1) for axis, length in enumerate(placeholder.variable.type.shape) if axis != placeholder.axis)


def assumptions(side: PublicSide, laws: Mapping[str, object]) -> tuple[str, ...]:
    """What is assumed of private arrays, in words.

    Raises
    ------
    Refusal
        For laws of what is no private array.
    """
    arrays = {placeholder.name: placeholder for _, placeholder, _ in private_arrays(side)}
    for name in laws:
        if name not in arrays:
            known = f"Write one of {', '.join(map(repr, arrays))}." if arrays else "Leave covariate_law out: nothing here needs one."
            raise Refusal(f"covariate_law names {name!r}, which is no private covariate. {known}")
    assumed = []
    for name, placeholder in arrays.items():
        if name in laws:
            assumed.append(f"{name} follows the law in covariate_law")
        elif placeholder.index:
            assumed.append(f"all {placeholder.levels} levels of {name} are taken to be equally frequent; covariate_law says otherwise")
        else:
            assumed.append(f"{name} is taken to be uniform within its bounds; covariate_law says otherwise")
    return tuple(assumed)


def drawn_from(law: object, name: str, records: int, entries: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draws from a law that a user wrote: (records, *entries), finite numbers.

    Raises
    ------
    Refusal
        For what is no law, or one of another shape.
    """
    size = (records, *entries)
    try:
        values = _of_kind(law, size, rng)
    except Exception:
        raise Refusal(f"The law of {name} cannot be drawn from. {LAW.format(name)}.") from None
    if values.shape != size or values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise Refusal(f"The law of {name} must give finite numbers of shape {entries or '()'} for every record. {LAW.format(name)}.")
    return values


def _of_kind(law: object, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """A distribution of PyMC is drawn from, an array sampled with replacement, a function called."""
    if isinstance(law, Variable):
        many = int(np.prod(size)) if law.type.ndim == 0 else size[0]  # a number is one law for all entries
        alone = sum(isinstance(variable.type, RandomType) for variable in ancestors([law])) == 1
        if alone and isinstance(law.owner.op, RandomVariable):  # all at once: the same draws, many times as quick
            law, many = change_dist_size(law, (many,), expand=True), 1
        with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
            values = np.asarray(pm.draw(law, draws=many, random_seed=rng))
        return values.reshape(size)
    if callable(law):
        return np.asarray(law(rng, size))
    values = np.asarray(law)
    return values[rng.integers(len(values), size=size if values.ndim == 1 else size[0])]


def _uniform(
    placeholder: Placeholder, bounded: Bounded | None, records: int, entries: tuple[int, ...], rng: np.random.Generator
) -> np.ndarray:
    """All values as likely: levels, whole numbers within bounds, or real ones."""
    size = (records, *entries)
    if placeholder.index or bounded is None:
        return rng.integers(placeholder.levels or 2, size=size)
    if bounded.levels is not None and not bounded.edges:
        return rng.choice(np.array(bounded.levels), size=size)
    lower, upper = (end.reshape(entries) for end in (bounded.lower, bounded.upper))
    return rng.integers(lower.astype(int), upper.astype(int) + 1, size=size) if placeholder.whole else rng.uniform(lower, upper, size=size)
