"""A second look for records, after that of ``opaque``: everything that a pickle of the model would hold, whatever graph it belongs to."""

import functools
import pickle
import re
import types
import typing
from collections.abc import Callable

import numpy as np
from pymc.distributions.custom import CustomDistRV, CustomSymbolicDistRV
from pymc.logprob.transforms import Transform
from pytensor.graph.utils import Scratchpad

from pymc_dp.models.allow_list import LIBRARIES, MOST_BITS, MOST_NUMBERS, MOST_TEXT, TOO_MUCH, is_of_a_library
from pymc_dp.models.opaque import OWN, hidden_in
from pymc_dp.models.source_lines import Nowhere, notes_without_lines


def unlisted(things: object, known: Callable[[object], bool], declared: typing.Iterable[object] = ()) -> str | None:
    """What a pickle of these things would hold that people are not told of, in words; None if nothing.

    This way of looking knows nothing of graphs, and finds what none of the rules above does: the notes that hang on a variable, say.

    Parameters
    ----------
    things : object
        Variables, expressions and what belongs to them.
    known : callable
        Whether people are told of an array.
    declared : iterable
        Objects, such as transforms, that are not gone into: everything they hold was declared public.
    """
    pickled = _Pickled(known, declared)
    pickled.dump(things)
    return pickled.reason


class _Pickled(pickle.Pickler):
    """A pickle that is thrown away, and what was seen on the way."""

    def __init__(self, known: Callable[[object], bool], declared: typing.Iterable[object]) -> None:
        super().__init__(Nowhere())
        self._known = known
        self._declared = {id(thing): thing for thing in declared}
        self.reason: str | None = None

    def dump(self, things: object) -> None:
        """Look at all that these things hold. What cannot be looked at is a reason, too."""
        try:
            super().dump(things)
        except Exception:
            self._note("something that cannot be looked into")

    def _note(self, reason: str | None) -> None:
        self.reason = self.reason or reason

    def persistent_id(self, thing: object) -> None:
        """Called for every object, plain containers included."""
        if type(thing) in (bytes, bytearray) and len(thing) > MOST_TEXT:  # type: ignore[arg-type]
            self._note("bytes")
        elif (type(thing) is int and thing.bit_length() > MOST_BITS) or (
            type(thing) is str and (len(thing) > 50 * MOST_TEXT or len(re.findall(r"\d+", thing)) > 4 * MOST_NUMBERS)
        ):
            self._note(TOO_MUCH)
        elif type(thing) in (list, tuple, set, frozenset):
            reals = sum(isinstance(part, float | np.floating) for part in thing)  # type: ignore[attr-defined]
            # PyTensor notes the same reason again and again: of texts and whole numbers the different ones count.
            truths = sum(type(part) is bool for part in thing)  # type: ignore[attr-defined]
            others = len({part for part in thing if type(part) in (int, str)})  # type: ignore[attr-defined]
            if reals > MOST_NUMBERS or truths + others > 4 * MOST_NUMBERS:
                self._note(f"a {type(thing).__name__} of many numbers or texts")

    def reducer_override(self, thing: object) -> typing.Any:
        """Called for everything else; what was looked at by other rules is not gone into."""
        if id(thing) in self._declared:
            return str, ()
        if isinstance(thing, Scratchpad):  # of which no private model has the lines of the user's program
            return dict, (notes_without_lines(thing),)
        if isinstance(thing, Transform):  # looked at by itself
            return str, ()
        if isinstance(thing, np.ndarray):
            self._note(None if thing.ndim == 0 or self._known(thing) else f"an array of shape {thing.shape} beside its graph")
            return str, ()
        if isinstance(thing, types.FunctionType | functools.partial | types.MethodType):
            self._note(hidden_in(thing, self._known))
            return str, ()
        if isinstance(thing, types.ModuleType) or (type(thing).__name__ == "Generator" and is_of_a_library(type(thing))):
            return str, ()
        kind = thing if isinstance(thing, type) else type(thing)
        custom = issubclass(kind, CustomDistRV | CustomSymbolicDistRV | Transform)  # looked at by ``opaque``
        if isinstance(thing, type):
            return (str, ()) if custom else NotImplemented
        if not (custom or kind in OWN or kind.__module__.partition(".")[0] in LIBRARIES | {"frozendict"}):
            self._note(f"an object of type {kind.__name__}")
        return NotImplemented
