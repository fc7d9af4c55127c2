"""The nouns that describe a model without its records: its likelihoods on placeholders, and what stays of it. ``reader`` fills them in."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from re import search

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.families.family import Domain, Family
from pymc_dp.models.event_tables import EventLaw
from pymc_dp.models.likelihood_rv import Written
from pymc_dp.models.public_inputs import PublicInput
from pymc_dp.models.structure import IN_GRAPH

MIXED = ("Bernoulli", "Categorical")
"""Distributions whose parameter is the probability of every value, so that it can be averaged over where covariates lie."""


@dataclass(frozen=True)
class Placeholder:
    """One input of a likelihood: what a release must bring.

    Attributes
    ----------
    variable : Variable
    axis : int or None
        Its axis of records; None for a table that all share.
    name : str
        What people call the array it comes from.
    labels : str or None
        The dim whose labels name its values.
    private : bool
    index : bool
        Whether it points into a table.
    levels : int or None
        Of a private index, how many values it can have.
    wraps : bool
        Whether negative values of a private index count from the end, as in NumPy.
    inner : bool
        Whether it reaches a linear mean through indices only, so that it makes cells there and no features.
    parent : bool
        Whether it is another observed variable, whose name it then has.
    limits : tuple of float or None
        Of a parent or of what tells events, between which values its values lie by themselves.
    plain : bool
        Whether it stands for an array itself, and not for something computed from arrays.
    readings : tuple of PublicInput
        Where it is public, which function of the model's arrays it may be.
    event : bool
        Whether it says of every value if an event was seen there, by 1 and 0.
    only : float or None
        Of what tells events the one number that means what it says, 1 or 0, where any other means the opposite.
    """

    variable: Variable
    axis: int | None
    name: str
    labels: str | None = None
    private: bool = False
    index: bool = False
    levels: int | None = None
    wraps: bool = False
    inner: bool = False
    parent: bool = False
    limits: tuple[float, float] | None = None
    plain: bool = True
    readings: tuple[PublicInput, ...] = ()
    event: bool = False
    only: float | None = None

    @property
    def whole(self) -> bool:
        """Whether it holds integers or truth values."""
        return bool(self.variable.type.dtype.startswith(("int", "uint", "bool")))

    def holds(self, *values: np.ndarray) -> bool:
        """Whether its type has these numbers: PyMC makes 32 bits of whole ones."""
        if not self.whole or self.variable.type.dtype == "bool":
            return True
        limits = np.iinfo(self.variable.type.dtype)
        return all(bool(((array >= limits.min) & (array <= limits.max) | ~np.isfinite(array)).all()) for array in values)


@dataclass(frozen=True)
class Linear:
    """A mean that is affine in the unknowns: features of the covariates, times coefficients of cells and unknowns.

    Attributes
    ----------
    names : tuple of str
    features : tuple of Variable
        Graphs on the placeholders of covariates, each of shape (records, *columns), of length one where all share it; the first
        is 1.
    coefficients : Variable
        (cells, *columns, F), or (cells, *columns, q, F) for q responses; in the order of ``features``.
    private : tuple of bool
        Which features rest on a private covariate.
    link : str
        "" where the mean itself is affine; "logit" or "log" where that of the mean is.
    by_cell : tuple of bool
        Which coefficients may differ between cells.
    """

    names: tuple[str, ...]
    features: tuple[Variable, ...]
    coefficients: Variable
    private: tuple[bool, ...]
    link: str = ""
    by_cell: tuple[bool, ...] = ()


@dataclass(frozen=True)
class Predictor:
    """Public features that the parameters of a likelihood are made of, where they are functions of what is linear in the unknowns.

    Attributes
    ----------
    names : tuple of str
        "1" of the feature that is 1 for all, which stands first if there is one.
    features : tuple of Variable
        Graphs on the placeholders, each of shape (cells, *columns), of length one where all share it.
    indices : tuple of tuples of tuples of int
        For every feature, one tuple of inputs or several: its coefficient is a sum of numbers, each of which differs between the levels
        that these inputs have together. Of an empty tuple it is the same for all.
    """

    names: tuple[str, ...]
    features: tuple[Variable, ...]
    indices: tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True)
class Likelihood:
    """One observed variable, without its records.

    Attributes
    ----------
    name : str
    distribution : str
        As PyMC calls it.
    family : Family or None
        None for those that are linear only.
    refusal : str or None
        Why it cannot be released, and what to write instead.
    parameters : tuple of Variable
        On placeholders; axis 0 of each batch runs over cells.
    core_ndims : tuple of int
        How many trailing axes of each parameter belong to a single value.
    unknown : tuple of bool
        Which parameters depend on an unknown.
    known : tuple of float or None
        For each parameter, its value where it is a plain number.
    inputs : tuple of Placeholder
    columns : tuple of int
        Lengths of the trailing axes of the observed variable, without those of a single value.
    column_dims : tuple of str or None
    levels : int
        Categories, or entries of a single value.
    linear : Linear or None
    not_linear : str or None
        Why it is not, where it might have been.
    predictor : Predictor or None
        Where all of its inputs are public.
    aggregate : bool
        Whether every row is kept by itself, being a total.
    make : callable or None
        Of a likelihood that is tabulated or taken record by record, the distribution from its parameters.
    between : callable or None
        Of one that is counted in bins, the probabilities of intervals: see ``binned.parametrised_in_bins``.
    events : EventLaw or None
        Of one whose values end by an event or by being lost from sight, how events are distributed. The last parameter says which it was.
    edges : tuple of float
        Of such a one in a private model, in which no parameter says which it was, the edges of all bins.
    arrays : tuple of (str, str, bool)
        Arrays its parameters rest on: name, how it is used, whether it is public.
    again : callable or None
        The distribution from its parameters, to draw new values from.
    weights : tuple of Written
        Of a mixture that was written out the weights, as functions of values, which they do not rest on, and of its parameters.
    limits : (float, float)
        Where it is censored; infinite where it is not.
    in_bins : frozenset of str
        Names of the private covariates that are counted in bins.
    alone : bool
        Whether a record has a single number here whose distribution PyMC can evaluate, so that it may be told at random.
    ordered : bool
        Whether a prior of the model keeps its unknowns in an order, so that it is not cut off.
    own : str
        Of one that cannot be released because every record has an unknown of its own, the name of that; else "".
    """

    name: str
    distribution: str
    family: Family | None = None
    refusal: str | None = None
    parameters: tuple[Variable, ...] = ()
    core_ndims: tuple[int, ...] = ()
    unknown: tuple[bool, ...] = ()
    known: tuple[float | None, ...] = ()
    inputs: tuple[Placeholder, ...] = ()
    columns: tuple[int, ...] = ()
    column_dims: tuple[str | None, ...] = ()
    levels: int = 0
    linear: Linear | None = None
    not_linear: str | None = None
    predictor: Predictor | None = None
    aggregate: bool = False
    make: Callable[..., Variable] | None = None
    between: Callable[..., Variable] | None = None
    events: EventLaw | None = None
    edges: tuple[float, ...] = ()
    arrays: tuple[tuple[str, str, bool], ...] = ()
    again: Callable[..., Variable] | None = None
    weights: tuple[Written, ...] = ()
    limits: tuple[float, float] = (-inf, inf)
    in_bins: frozenset[str] = frozenset()
    alone: bool = False
    ordered: bool = False
    own: str = ""

    @property
    def natural(self) -> tuple[float, float] | None:
        """Between which values its values lie by themselves, if they do."""
        return None if self.family is None else self.family.natural(self.levels, self.known)

    def domain(self, bounds: tuple[float, float] | None = None) -> Domain:
        """What is publicly known about its values, once the bounds are given."""
        natural = self.natural
        lower, upper = natural if natural is not None else bounds if bounds is not None else (0.0, 1.0)
        return Domain(lower, upper, self.levels, self.unknown, self.known)


@dataclass(frozen=True)
class ModelSpec:
    """A model without records.

    Attributes
    ----------
    likelihoods : tuple of Likelihood
    problems : tuple of str
        What makes the whole model impossible to release.
    kept : tuple of Variable
        The model's free variables, and what else survives, as PyMC's model variables.
    order : tuple of str
        Names of all variables in the user's order.
    dropped : dict of str to str
        What does not survive, and why.
    coords : dict of str to tuple or None
        The dims that survive, with the labels that will be published.
    lengths : dict of str to Variable
    initial : dict of str to object
        Initial values the user gave.
    public : tuple of str
        Names of the arrays declared public.
    stays : tuple of str
        Arrays that stay in the model and are published with it.
    records : str
        Along which axis of which array records lie, in words.
    on_one_axis : tuple of tuples of str
        The observed variables, those together whose records lie along one axis.
    many : dict of str to int
        The number of records of every observed variable, where that is public.
    """

    likelihoods: tuple[Likelihood, ...]
    problems: tuple[str, ...]
    kept: tuple[Variable, ...]
    order: tuple[str, ...]
    dropped: Mapping[str, str]
    coords: Mapping[str, tuple[object, ...] | None]
    lengths: Mapping[str, Variable]
    initial: Mapping[str, object]
    public: tuple[str, ...]
    stays: tuple[str, ...]
    records: str = ""
    on_one_axis: tuple[tuple[str, ...], ...] = ()
    many: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordPath:
    """Where the records of one array are found.

    Attributes
    ----------
    variable : Variable
        The array itself where it is private; of public arrays, an expression.
    axis : int or None
        Of the records.
    missing : Variable or None
        Where the mask of missing values is, of an observed variable that has some.
    """

    variable: Variable
    axis: int | None = 0
    missing: Variable | None = None


@dataclass(frozen=True)
class RecordPaths:
    """Where the records of one observed variable are: never handed on by ``release``.

    Attributes
    ----------
    observed : RecordPath
    inputs : tuple of RecordPath
    key : Variable, array or None
        Where it stands whose the rows are, if all rows of a person are protected together.
    """

    observed: RecordPath
    inputs: tuple[RecordPath, ...]
    key: Variable | np.ndarray | None = None


def advice(likelihoods: Iterable[Likelihood], reason: str) -> str:
    """How to declare public what stands in the way, where that is what could help."""
    if IN_GRAPH in reason:  # no array can be public
        return ""
    said = search(r"private arrays? (.+?)( in a way|$)", reason)
    for likelihood in likelihoods:
        private = {name for name, _, public in likelihood.arrays if not public}
        if names := [name for name in (said[1].split(", ") if said else ()) if name in private]:
            return f" If everyone may know {', '.join(names)}, write public={names}."
    return ""
