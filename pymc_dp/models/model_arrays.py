"""What every array of a model is: whether it holds records, whether it may stay in a private model, and what it is called."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pymc as pm
from pymc.model.fgraph import ModelFreeRV, ModelNamed, ModelObservedRV, ModelPotential
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.models.declared import declared_public, names_of_arrays
from pymc_dp.models.model_graph import ModelGraph, graph_of
from pymc_dp.models.observed import Observed, imputed_names, observed_variables
from pymc_dp.models.same_arrays import data_of, same_array, shape_of
from pymc_dp.models.structure import above, arrays_above


@dataclass(frozen=True)
class ModelArrays:
    """A model's graph and what is known of its arrays. Short-lived and never handed on: it holds the arrays of records.

    Attributes
    ----------
    graph : ModelGraph
    observed : sequence of Observed
    stand_ins : mapping of Variable to Observed
        The arrays that stand for observed variables in the parameters of others.
    names : mapping of Variable to str
    public : set of Variable
        The arrays declared public.
    vouched : set of str
        The variables all of whose functions and numbers were declared public.
    records : set of int
        Numbers of records; empty where they are private.
    aggregate, sized : bool
        See ``read_model``.
    binned : frozenset of str
        Names of what is counted in bins.
    """

    graph: ModelGraph
    observed: Sequence[Observed]
    stand_ins: Mapping[Variable, Observed]
    names: Mapping[Variable, str]
    public: set[Variable]
    vouched: set[str]
    records: set[int]
    aggregate: bool
    sized: bool
    binned: frozenset[str] = frozenset()

    @cached_property
    def imputed(self) -> set[str]:
        """The names that PyMC makes up for the parts of observed variables with missing values."""
        return imputed_names(self.observed)

    @cached_property
    def predictions(self) -> set[Variable]:
        """The free variables that nothing observed rests on, and no Potential: they are predicted, and no priors."""
        ends = [*self.graph.of_kind(ModelObservedRV), *self.graph.of_kind(ModelPotential)]
        return set(self.graph.of_kind(ModelFreeRV)) - set(above(ends))

    @cached_property
    def above_priors(self) -> set[Variable]:
        """The arrays that a prior is computed from."""
        free = [v for v in self.graph.of_kind(ModelFreeRV) if v.owner.op.name not in self.imputed and v not in self.predictions]
        return set(arrays_above([v.owner.inputs[0] for v in free], through_unknowns=True))

    @cached_property
    def private(self) -> set[Variable]:
        """Every array of records: observed, or directly above a likelihood and not declared public."""
        private: set[Variable] = set()
        for observed in self.observed:
            private |= {array for array in observed.arrays if array not in self.public}
            private |= set(arrays_above([observed.value, *([observed.missing] if observed.missing is not None else [])]))
            # A likelihood that is no plain random variable shows no parameters: all above it counts.
            if not observed.parameters:
                private |= set(arrays_above(observed.random.owner.inputs)) - self.public
        return private

    @cached_property
    def open_arrays(self) -> set[Variable]:
        """The arrays that may stay: above a prior, or public and of no record; ``inspect`` lists those that do."""
        rows = set() if self.aggregate else {array for observed in self.observed for array in observed.arrays}
        return (self.above_priors | (self.public - rows)) - self.private

    @cached_property
    def originals(self) -> set[Variable]:
        """The user's own variables behind the private arrays: the graph holds copies of them."""
        named = self.graph.model.named_vars
        return {named[self.names[array]] for array in self.private if self.names.get(array) in named}

    def reaches_prior(self, array: Variable) -> bool:
        """Whether an array stands above a prior, itself or as a view of the same memory."""
        return array in self.above_priors or any(same_array(other, data_of(array)) for other in self.above_priors)

    def rests_on_observed(self, variable: Variable) -> bool:
        """Whether one of the model's variables is computed from an observed one."""
        return any(
            v.owner is not None and (isinstance(v.owner.op, ModelObservedRV) or name_of_random(v) in self.imputed)
            for v in above([variable.owner.inputs[0]])
        )

    def rests_on_length(self, variables: Iterable[Variable], record_dims: set[str]) -> bool:
        """Whether any is computed from the length of a dim of records."""
        dim_lengths = self.graph.graph._dim_lengths
        lengths = {dim_lengths[dim] for dim in record_dims if dim in dim_lengths}
        return any(variable in lengths for variable in ancestors(list(variables)))

    def dims_of(self, array: Variable) -> tuple[str | None, ...]:
        """The names of the axes of an array of data, where it has any."""
        return next((tuple(v.owner.op.dims) for v in self.graph.of_kind(ModelNamed) if v.owner.inputs[0] is array), ())

    def in_words(self, array: Variable) -> str:
        """An array that stays, by its name, and by its shape where the number of records is public."""
        if not self.sized:
            return self.names.get(array) or "an array"
        shape = shape_of(array)
        long = ", as long as the records" if self.records & set(shape) else ""
        return f"{self.names.get(array) or 'an array'} of shape {shape}{long}"


def arrays_of(
    model: pm.Model,
    public: Iterable[object] = (),
    records: Iterable[int] | None = None,
    latents: Mapping[str, int | None] | None = None,
    *,
    aggregate: bool = False,
    sized: bool = True,
    rowwise: bool = False,
    binned: Collection[str] = (),
) -> ModelArrays:
    """The arrays of a model; see ``read_model`` for the arguments."""
    latents = dict(latents or {})
    graph = graph_of(model, latents, sized=sized, rowwise=rowwise, binned=binned)
    observed, stand_ins = observed_variables(graph, latents, binned)
    names = names_of_arrays(graph, observed, stand_ins, sized=sized)
    declared, vouched = declared_public(public, names, graph, observed, stand_ins)
    lengths: Iterable[int] = ()
    if sized:
        lengths = (length for variable in observed for length in variable.records) if records is None else records
    return ModelArrays(graph, observed, stand_ins, names, declared, vouched, set(lengths), aggregate, sized, frozenset(binned))


def name_of_random(variable: Variable) -> str | None:
    """The name of one of the model's random variables; None of anything else that is computed."""
    return getattr(variable.owner.op, "name", None) if isinstance(variable.owner.op, ModelFreeRV | ModelObservedRV) else None
