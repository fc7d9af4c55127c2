"""What all pictures share: Matplotlib where it is installed, colours that differ in grey, and the check of what is drawn."""

from typing import Any

from pymc_dp.privacy.accounting import Refusal

FIRST, SECOND, WRONG = "#1b6ca8", "#e07b00", "#b00020"
LOOKS = (("black", "o", "-"), (FIRST, "s", "--"), (SECOND, "^", "-."), ("0.55", "D", ":"), ("#6b9e3f", "v", "--"))
"""Colour, marker and line of the first, second, ... of several things in one picture: no two are alike without colour."""


def pyplot() -> Any:
    """``matplotlib.pyplot``, or a refusal where it is not installed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        missing = True
    else:
        return plt
    assert missing
    raise Refusal("Pictures need matplotlib, which is not installed. Write pip install matplotlib.")


def ink(colour: str = "black") -> str:
    """A colour as it is, but black as that of the axes in Matplotlib's present style: in a dark one black would not be seen."""
    return str(pyplot().rcParams["axes.edgecolor"]) if colour == "black" else colour


def check_drawn(thing: object, kind: type, example: str) -> None:
    """Refuse to draw what is not of this kind."""
    if not isinstance(thing, kind):
        raise Refusal(f"This draws what is of the kind {kind.__name__}, and not {type(thing).__name__}. Write {example}.")
