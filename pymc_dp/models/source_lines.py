"""Lines of the user's program, which PyTensor keeps on all that it builds, for its errors: records may be written out in them.

They are callers' lines as well, such as ``model = build([5.1, 4.9])``. So a private model has none, nor has a plan that travels.
"""

from contextlib import suppress
from io import BytesIO
from typing import Any

import cloudpickle
import numpy as np
from pytensor.graph.utils import Scratchpad

LINES = "trace"
"""What they are called among the notes (``tag``) of a variable or a node."""


def notes_without_lines(notes: Scratchpad) -> dict[str, object]:
    """The notes on a variable or a node but for these lines."""
    return {name: note for name, note in vars(notes).items() if name != LINES}


def forget_lines(thing: object) -> None:
    """Take these lines off all that a pickle of a thing would hold, and from there only.

    Constants and what operations compute within themselves are shared with the model that a private one is made of, so they lose theirs in
    both. What cannot be pickled is left where that is met.
    """
    with suppress(Exception):
        _Forgetting(Nowhere()).dump(thing)


def dumped_without_lines(thing: object) -> bytes:
    """A pickle without these lines; the thing keeps them."""
    file = BytesIO()
    _Without(file).dump(thing)
    return file.getvalue()


class Nowhere:
    """A file that keeps nothing."""

    def write(self, data: bytes) -> int:
        """Let it go."""
        return len(data)


class _Without(cloudpickle.Pickler):
    """A pickle in which notes have no lines."""

    def reducer_override(self, thing: object) -> Any:
        if isinstance(thing, Scratchpad):
            return _notes, (notes_without_lines(thing),)
        return super().reducer_override(thing)


class _Forgetting(cloudpickle.Pickler):
    """A pickle that is thrown away, and takes the lines off all notes on the way."""

    def reducer_override(self, thing: object) -> Any:
        if isinstance(thing, Scratchpad):
            vars(thing).pop(LINES, None)
        if isinstance(thing, np.ndarray) and thing.dtype != object:
            return str, ()
        return super().reducer_override(thing)


def _notes(notes: dict[str, object]) -> Scratchpad:
    pad = Scratchpad()
    vars(pad).update(notes)
    return pad
