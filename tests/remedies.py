"""What a refusal names, read from its words and written down: used to see that it works when written."""

import re
import warnings
from dataclasses import replace

import pymc_dp as pmdp

INSTEAD = re.compile(r"(PosteriorSample)\(((?:[^()]|\([^()]*\))*)\)")
BOUNDS = re.compile(r"bounds=(\{[^{}]*\})")
PUBLIC = re.compile(r"public=(\[[^\[\]]*\])")
UNIT = re.compile(r'unit="(\w+)"')
NEIGHBOURS = re.compile(r'neighbours="(\w+)"(?:\.|, or leave)')
EVENTS, MOVES = "unit=pymc_dp.Individual(events=m)", "unit=pymc_dp.Individual(moves=m)"
LEFT_OUT = re.compile(r"Leave (\w+) out of bounds")
SHORT = {"tune": 20, "steps": 5}
COARSE = {"points": 21}
"""Chains and grids that are drawn from to see that they are drawn from at all."""


def named(words, arguments, places, bins=False):
    """The arguments with what a refusal names in their place; ``places`` says what stands for (lower, upper).

    Where bins are named beside draws, it is those that are written with ``bins``.
    """
    found = dict(arguments)
    several = None if bins and "Bins" in words else INSTEAD.search(words)
    if several:
        mechanism = eval(f"pmdp.{several[0]}", {"pmdp": pmdp})
        found["mechanism"] = replace(mechanism, **(SHORT if mechanism.method == "mcmc" else COARSE))
        before = arguments.get("mechanism")
        if before is not None and before.method == "mcmc":
            found["mechanism"] = replace(before, truncate=mechanism.truncate)
    for written in BOUNDS.findall(words):
        if several and "Bins" in written:  # draws are named beside bins: these are written in test_binned.py
            continue
        known = eval(written, {"pymc_dp": pmdp}, dict(zip(("lower", "upper"), places, strict=True)))
        found["bounds"] = dict(arguments.get("bounds", {})) | known
    if found == arguments and (written := PUBLIC.search(words)):
        found["public"] = [*arguments.get("public", ()), *eval(written[1])]
    if unit := UNIT.search(words):
        found["unit"] = unit[1]
    if EVENTS in words:
        found["unit"] = pmdp.Individual(events=3)
    if MOVES in words:
        found["unit"] = pmdp.Individual(moves=0.5)
    if neighbours := NEIGHBOURS.search(words):
        found["neighbours"] = neighbours[1]
    if dropped := LEFT_OUT.search(words):
        found["bounds"] = {name: pair for name, pair in found["bounds"].items() if name != dropped[1]}
    return found


def followed(make, arguments, places=(-3.5, 3.5), epsilon=1.0, most=6, bins=False):
    """What comes of a model if every refusal is answered by what it names, and what was written in the end; see ``named`` for ``bins``.

    Returns the result, or the last refusal where it names nothing more, and the arguments.
    """
    for _ in range(most):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if "mechanism" in arguments:
                    return pmdp.sample(model=make(), epsilon=epsilon, **arguments), arguments
                return pmdp.release(make(), epsilon=epsilon, **arguments), arguments
        except pmdp.Refusal as refusal:
            following = named(str(refusal), arguments, places, bins)
            if following == arguments:
                return refusal, arguments
            arguments = following
    return None, arguments
