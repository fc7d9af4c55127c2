"""What says of every value whether an event was seen there: an input of a likelihood that is a part of what is observed."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from pytensor.graph.basic import Variable
from pytensor.graph.op import Op

from pymc_dp.models.event_tables import EventLaw
from pymc_dp.models.likelihood_rv import LikelihoodRV
from pymc_dp.models.spec import Placeholder
from pymc_dp.models.structure import Unreduced

LEVELS = frozenset((0, 1))
"""What it can be: 1 of an event."""


def only_flag(told: Callable[[float], frozenset[str]]) -> float | None:
    """The one flag that means what it says, 1 or 0, where any other means the opposite; None where the nearest of both counts.

    So ``e == 1`` says of a status of 2 that there was no event, and ``e != 0`` of -1 that there was one.

    Parameters
    ----------
    told : callable
        From a flag to what the formula says there: see ``says_what``.

    Raises
    ------
    Unreduced
        Where other numbers are told apart.
    """
    above, below = told(2), told(-1)
    if above & {"event", "line"} and below & {"none", "line"}:
        return None
    if "none" in above & below:
        return 1.0
    if "event" in above & below:
        return 0.0
    raise Unreduced("what says whether there was an event has more meanings than two. Write 1 of an event and 0 of any other record")


def with_events(
    operation: Op, inputs: tuple[Placeholder, ...], parameters: Sequence[Variable]
) -> tuple[tuple[Placeholder, ...], EventLaw | None]:
    """Inputs of which the one that tells events says so, and how events are distributed; None of a likelihood without such a one.

    Raises
    ------
    Unreduced
        Where it is public: what is observed is not.
    """
    if not isinstance(operation, LikelihoodRV) or operation.survival is None:
        return inputs, None
    flag = next((i for i in inputs if i.variable is parameters[-1]), None)
    if flag is None or not flag.private or flag.axis is None:
        name = "what says whether there was an event" if flag is None or not flag.name else flag.name
        raise Unreduced(f"{name} is a part of what is observed, and so private. Leave it out of public")
    if flag.parent:
        raise Unreduced(f"{flag.name} is a part of what is observed here, and is observed by itself as well. Leave one of the two out")
    told = tuple(replace(i, event=True, only=operation.only, limits=(0.0, 1.0)) if i is flag else i for i in inputs)
    return told, EventLaw(operation.density, operation.survival)


def uses_of(arrays: tuple[tuple[str, str, bool], ...], inputs: Sequence[Placeholder]) -> tuple[tuple[str, str, bool], ...]:
    """Arrays above a likelihood and how they are used, what tells events being called so."""
    flags = {placeholder.name for placeholder in inputs if placeholder.event}
    return tuple((name, "event or not" if name in flags else used, public) for name, used, public in arrays)


def levels_of_flag(name: str, declared: object) -> frozenset[int]:
    """The levels of what tells events, which is all that bounds may say of it.

    Raises
    ------
    Unreduced
        Where they say anything else.
    """
    if not isinstance(declared, set | frozenset | tuple | list) or len(declared) != len(LEVELS) or set(declared) != LEVELS:
        raise Unreduced(f"{name} says whether there was an event, by 1 and 0. Write bounds={{{name!r}: {{0, 1}}}}, or leave it out")
    return LEVELS
