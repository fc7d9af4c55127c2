"""The random variable whose log-density a user wrote in a ``pm.Potential``, as a function of its values and of parameters."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.laws.kernel import Tensor
from pymc_dp.models.structure import substitute
from pymc_dp.models.written_numbers import numbers_in

POTENTIAL = "Potential"
"""What a likelihood is called that was written in one."""


@dataclass(frozen=True, eq=False)
class Written:
    """A function that stands in a graph: of values and parameters, entry by entry.

    Attributes
    ----------
    vectors : tuple of Variable
        What stands in ``graph`` for the values, and for every parameter.
    graph : Variable
        It rests on nothing else.
    """

    vectors: tuple[Variable, ...]
    graph: Variable

    def unchecked(self) -> "Written":
        """The function without PyMC's checks of parameters, which raise where it is only tried out."""
        return Written(self.vectors, substitute(self.graph, {}, (CheckAndRaise,)))

    def __call__(self, value: Tensor, *parameters: Tensor) -> Tensor:
        """The function of arrays that broadcast against each other."""
        whole = pt.zeros_like(sum(parameters, value * 1.0))
        flat = [(argument + whole).reshape((-1,)) for argument in (value, *parameters)]
        of_all = substitute(self.graph, dict(zip(self.vectors, flat, strict=True))) + pt.zeros_like(flat[0])  # it may rest on none
        return of_all.reshape(whole.shape)


class LikelihoodRV(RandomVariable):
    """The operation of such a random variable. Its parameters are those of the functions, and the flags of events last, if there are any.

    Attributes
    ----------
    density : Written
        The logarithm of it.
    survival : Written or None
        The logarithm of the probability of what is larger than a value, where flags say of which values no more is known.
    only : float or None
        The one flag that means what it says, 1 or 0, where any other means the opposite; None where the nearest of both counts.
    components : tuple of (Written, Written)
        Of a mixture, the weight of every component and the logarithm of its density. All are functions of all parameters.
    """

    name = "potential"
    dtype = "float64"
    _print_name = (POTENTIAL, f"\\operatorname{{{POTENTIAL}}}")
    __props__ = ("density", "survival", "only", "components")

    def __init__(
        self,
        density: Written,
        survival: Written | None = None,
        only: float | None = None,
        components: tuple[tuple[Written, Written], ...] = (),
    ) -> None:
        self.density, self.survival, self.only, self.components = density, survival, only, components
        many = len(density.vectors) - 1 + (survival is not None)
        super().__init__(signature=f"{','.join(['()'] * many)}->()")

    @classmethod
    def rng_fn(cls, *args: object) -> np.ndarray:
        """Refuse to draw: of a density that is written out nobody knows how."""
        raise NotImplementedError("A density that was written in a pm.Potential has no draws.")


def variable_of(operation: RandomVariable, *parameters: Any, size: Any = None, rng: Any = None) -> Any:
    """The random variable that an operation makes of these parameters."""
    rng = pt.random.shared_rng(seed=None) if rng is None else rng
    return operation(*parameters, size=size, rng=rng, return_next_rng=True)[1]


def numbers_of_formula(random: Variable) -> int:
    """How many single numbers stand in the formulas of such a random variable; 0 of any other."""
    operation = random.owner.op
    if not isinstance(operation, LikelihoodRV):
        return 0
    return sum(numbers_in(formula.graph) for formula in (operation.density, operation.survival) if formula is not None)
