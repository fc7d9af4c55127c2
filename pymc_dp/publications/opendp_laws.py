"""Laws of noise read off OpenDP measurements: a measurement notes which constructor made it, with which arguments."""

from typing import Any

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.noises import DiscreteGaussian, DiscreteLaplace, GaussianNoise, LaplaceNoise, Noise
from pymc_dp.publications.tables import RandomisedResponse

FINE = 1e-6
"""Noise on a grid is taken as continuous where a step of the grid is at most this share of its scale."""
WHOLE = {f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64, "size")}
"""OpenDP's names of the types of whole numbers."""
REAL = {"f32", "f64"}
KINDS = {
    "make_laplace": (DiscreteLaplace, LaplaceNoise),
    "make_geometric": (DiscreteLaplace, None),
    "make_gaussian": (DiscreteGaussian, GaussianNoise),
}
"""What each constructor adds, to whole and to real numbers. (Measurements of ``then_laplace`` and the like name these constructors.)"""
INSTEAD = (
    "Give the step that adds the noise by itself, such as opendp.measurements.make_laplace(*space, scale=10.0), or write its law:"
    " pymc_dp.DiscreteLaplace(10.0)."
)


def from_opendp(step: object) -> object:
    """The law of noise that an OpenDP measurement adds. Whatever is no object of OpenDP is given back as it is.

    Laplace, geometric and Gaussian noise on numbers or vectors of them, and randomised response are read. A measurement that does
    more, such as a chain, is refused: what it does to a number before or after the noise is not in the law of the noise.
    """
    if not type(step).__module__.startswith("opendp."):
        return step
    noted = getattr(step, "__opendp_dict__", None)
    made = noted.get("__function__") if isinstance(noted, dict) else None
    given = noted.get("__kwargs__") if isinstance(noted, dict) else None
    if not isinstance(made, str) or not isinstance(given, dict):
        raise Refusal(f"What this object of OpenDP ({type(step).__name__}) does cannot be read off it. {INSTEAD}")
    if made in KINDS:
        return _noise(made, given)
    if made == "make_randomized_response_bool":
        return RandomisedResponse(given["prob"], 2)
    if made == "make_randomized_response":
        return RandomisedResponse(given["prob"], len(given["categories"]))
    what = "is a chain of several steps" if made.startswith("make_chain") else f"was made by {made}, whose law is not known here"
    raise Refusal(f"This object of OpenDP {what}. {INSTEAD}")


def _noise(made: str, given: dict[str, Any]) -> Noise:
    """The law of noise that ``made`` adds with these arguments."""
    kind = str(given["input_domain"])
    types = [name for name in WHOLE | REAL if f"T={name})" in kind or f"T={name}," in kind]
    if len(types) != 1:
        raise Refusal(f"Of numbers of {kind} it cannot be said whether they are whole. {INSTEAD}")
    law = KINDS[made][types[0] in REAL]
    scale = float(given["scale"])
    if law is None or given.get("bounds") is not None:
        raise Refusal(f"Numbers that {made} moves into bounds have another law. {INSTEAD} Then pymc_dp.Clipped(lower, upper) follows it.")
    k = given.get("k")
    if k is not None and (types[0] in WHOLE or 2.0**k > FINE * scale):
        raise Refusal(f"Noise on a grid of 2**{k} is neither whole nor continuous here. {INSTEAD}")
    return law(scale)
