"""What all pictures have in common: Matplotlib if it is installed, colours that differ in grey, and the check of what is drawn."""

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from pymc_dp.privacy.accounting import Refusal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIRST, SECOND, WRONG = "#1b6ca8", "#e07b00", "#b00020"
LOOKS = (("black", "o", "-"), (FIRST, "s", "--"), (SECOND, "^", "-."), ("#8c8c8c", "D", ":"), ("#6b9e3f", "v", "--"))
"""Colour, marker and line of the first, second, ... of several things in one picture: no two are alike without colour."""
LIGHT = {WRONG: "#ff6b6b", FIRST: "#5aa9e6"}
"""Colours that are hard to see on a dark page, and what they become there."""
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "+++", "ooo")
"""Of the first, second, ... of several bars: no two are alike without colour."""
BESIDE = ((4, -11), (4, 5), (4, -22), (4, 16), (4, -33), (4, 27))
"""Places of a name beside its point, in points of type: the first that is free is taken."""
LONGEST = 28
"""Characters of a name beside a point; of a longer one the end is left out."""


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
    """A colour as it is, where it is seen in Matplotlib's present style: in a dark one black is drawn as its axes are, and red lighter."""
    from matplotlib.colors import to_rgb

    settings = pyplot().rcParams
    if colour == "black":
        return str(settings["axes.edgecolor"])
    return LIGHT.get(colour, colour) if sum(to_rgb(settings["figure.facecolor"])) < 1.5 else colour


def entitle(figure: "Figure", words: str, **style: Any) -> None:
    """A title over the whole figure, in as many lines as its width asks for: one that is wider would be cut at both ends."""
    figure.suptitle(fill(words, max(int(8 * figure.get_figwidth()), 20)), **style)


def name_points(ax: "Axes", points: Sequence[tuple[Any, float, str]]) -> None:
    """Write its name beside every point, below or above it, so that no two names stand over each other; one without room is left out."""
    figure, taken = ax.figure, list[Any]()
    figure.draw_without_rendering()  # type: ignore[union-attr]
    for at, height, name in points:
        short = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
        for place in BESIDE:
            text = ax.annotate(short, (at, height), place, textcoords="offset points", fontsize=8)
            box = text.get_window_extent()
            if box.x1 > figure.bbox.x1:
                text.set(ha="right")
                box = text.get_window_extent()
            if box.y0 >= ax.bbox.y0 and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()


def check_drawn(thing: object, kind: type, example: str) -> None:
    """Refuse to draw what is not of this kind."""
    if not isinstance(thing, kind):
        raise Refusal(f"This draws a {kind.__name__}, not a {type(thing).__name__}. Write {example}.")
