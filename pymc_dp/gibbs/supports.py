"""How many states a discrete variable has, read off its distribution."""

from collections.abc import Mapping
from dataclasses import dataclass

import pymc as pm
from pytensor.graph.basic import Variable

from pymc_dp.models.structure import constant_value
from pymc_dp.privacy.accounting import Refusal


@dataclass(frozen=True)
class Support:
    """The states of a discrete variable: so many, from the lowest on."""

    many: int
    lowest: int = 0


def support(random: Variable, states: Mapping[str, int]) -> Support:
    """The states of a discrete variable, read from its distribution, or as they are declared.

    Raises
    ------
    Refusal
        Where they are not known, or there is no last one.
    """
    name, operation = random.name, random.owner.op
    if name in states:
        return Support(int(states[name]))
    parameters = getattr(operation, "dist_params", lambda node: node.inputs)(random.owner)
    kind = getattr(operation, "_print_name", ("",))[0]
    if isinstance(operation, pm.Bernoulli.rv_type):
        return Support(2)
    if isinstance(operation, pm.Categorical.rv_type) or kind == "DiscreteMC":
        many = constant_value(parameters[0].shape[-1])
        if many is not None:
            return Support(int(many))
    if isinstance(operation, pm.Binomial.rv_type):
        trials = constant_value(parameters[0])
        if trials is not None and trials.min() == trials.max():
            return Support(int(trials.max()) + 1)
    if isinstance(operation, pm.DiscreteUniform.rv_type):
        ends = [constant_value(end) for end in parameters]
        if all(end is not None and end.min() == end.max() for end in ends):
            lowest, highest = (int(end.max()) for end in ends if end is not None)
            return Support(highest - lowest + 1, lowest)
    raise Refusal(f"How many states {name} has is not known. Write for example states={{{name!r}: 3}} for the states 0, 1 and 2.")
