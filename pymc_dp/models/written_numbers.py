"""How many single numbers a user wrote in an expression: a loop over records would write one for each."""

from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import ScalarInnerGraphOp

from pymc_dp.models.structure import above

MOST_WRITTEN = 60
"""So many single numbers may stand in the expression of one variable."""


def numbers_in(whole: Variable) -> int:
    """How many single numbers stand in an expression, as far as other unknowns: see ``numbers_written``."""
    expression = list(above([whole], through_unknowns=False))
    scalars = {getattr(part.owner.op, "scalar_op", None) for part in expression if part.owner is not None}
    within = [constant for scalar in scalars if isinstance(scalar, ScalarInnerGraphOp) for constant in ancestors(scalar.fgraph.outputs)]
    return sum(isinstance(part, Constant) and getattr(part.type, "ndim", None) in (None, 0) for part in [*expression, *within])
