"""What all steps that draw from exact conditionals have in common, as PyMC's step methods."""

from typing import Any, ClassVar

import numpy as np
from pymc.step_methods.compound import BlockedStep, StepMethodState
from pymc.step_methods.state import dataclass_state


@dataclass_state
class ExactState(StepMethodState):
    """Nothing is tuned."""


class ExactStep(BlockedStep):
    """Draws all its variables at once, and tells how far the model was off what was read from it."""

    default_blocked = True
    default_tune_steps = 0
    stats_dtypes_shapes: ClassVar[dict[str, Any]] = {"misfit": (np.float64, [])}
    tune = False
    _state_class = ExactState
