"""Published sums of records and published rows under one model, with unknowns in common.

Each part is read by itself, from a copy of the model without the other's observed variables. The rows are then observed in the private
model of the sums as well.
"""

from collections.abc import Iterable

import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.observed import observed_numbers
from pymc_dp.publications.rows import forget, is_split


def without(clone: pm.Model, names: Iterable[str]) -> pm.Model:
    """A copy of a model that does not observe these variables; the copy that is given is changed.

    Raises
    ------
    Refusal
        Where something else rests on them.
    """
    gone: dict[Variable, str] = {}
    for name in names:
        parts = (f"{name}_observed", f"{name}_unobserved") if is_split(clone, f"{name}_observed") else ()
        gone |= {forget(clone, part): name for part in (*parts, name)}
    for other in (*clone.basic_RVs, *clone.deterministics, *clone.potentials):
        if on := [gone[variable] for variable in ancestors([other]) if variable in gone]:
            raise Refusal(
                f"{other.name} depends on {on[0]}, and only one of them is in statistics. Model both by something that they depend on."
            )
    return clone


def observed_too(private: pm.Model, other: pm.Model) -> None:
    """Add to ``private`` all that ``other`` observes, and what stands above it. Variables of one name are the same."""
    for dim, labels in other.coords.items():
        if dim not in private.coords:
            private.add_coord(dim, labels, length=int(other.dim_lengths[dim].eval()))
    replaced: dict[Variable, Variable] = {}
    for variable in (*other.data_vars, *other.free_RVs, *other.observed_RVs, *other.deterministics, *other.potentials):
        name, dims = str(variable.name), other.named_vars_to_dims.get(str(variable.name))
        if name in private.named_vars:
            if variable in other.observed_RVs:
                raise Refusal(f"{name} would be the name of two variables. Name the variable {name} otherwise.")
            replaced |= {} if variable in other.data_vars else {variable: private[name]}
        elif variable in other.data_vars:
            private.register_data_var(variable, dims=dims)
        else:
            [copied] = graph_replace([variable], replaced, strict=False)
            _register(private, other, variable, copied, dims)
            replaced[variable] = copied


def _register(private: pm.Model, other: pm.Model, variable: Variable, copied: Variable, dims: tuple[str | None, ...] | None) -> None:
    """Add one variable as what it is in the other model."""
    name = str(variable.name)
    if variable in other.observed_RVs:
        private.register_rv(copied, name, observed=observed_numbers(other, variable), dims=dims)
    elif variable in other.free_RVs:
        initial, transform = other.rvs_to_initial_values.get(variable), other.rvs_to_transforms[variable]
        private.register_rv(copied, name, dims=dims, default_transform=None, transform=transform, initval=initial)
    else:
        copied.name = name
        (private.deterministics if variable in other.deterministics else private.potentials).append(copied)
        private.add_named_variable(copied, dims=dims)
