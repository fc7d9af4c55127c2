"""What is seen of a model with the noise held still, compared on neighbours: the oracle of ``generator``."""

import random
import re
import struct
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytensor
import pytest
from checks import pickled, watched
from neighbours import CANARY
from programs import Program
from scipy.special import logsumexp

import pymc_dp as pmdp
from pymc_dp.plans.protection import protection_of
from pymc_dp.posterior import grid
from pymc_dp.posterior.paid_gibbs import annealed, sweeps
from pymc_dp.privacy import mechanisms
from pymc_dp.private_models.settings import check_settings
from pymc_dp.releases.from_records import prepared

MARKS = [struct.pack(order + kind, CANARY) for order in "<>" for kind in "df"] + [b"7123.45678", b"7123.456"]
"""How the marked value is written: doubles and singles of either byte order, and digits."""
EPSILON = 3
HIDING = ("unnamed", "functions", "missing", "python", "scalars")
"""Themes whose private models are always looked at."""
SETTINGS: list[dict] = [
    {}, {"nuts_sampler": "nutpie"}, {"nuts_sampler": "pymc"}, {"var_names": ["y_unobserved"]}, {"initvals": {"y_unobserved": 1}},
    {"initvals": {"a": 0.5}}, {"nuts": {"step_scale": 0.2}},
]  # fmt: skip
"""Of samplers, which are looked at before anything is paid for."""
DOORS = {
    "draw": lambda model, given: pmdp.sample(model=model, mechanism=pmdp.PosteriorSample(points=5), **given),
    "find_MAP": lambda model, given: pmdp.find_MAP(model=model, points=5, **given),
    "gibbs": lambda model, given: pmdp.sample(model=model, mechanism=pmdp.Gibbs(2, points=3), **given),
    "annealing": lambda model, given: pmdp.sample(model=model, mechanism=pmdp.Annealing(2, points=3), **given),
}


@dataclass
class Seen:
    """All that is seen of one model, by labels, and what reached the seam."""

    told: list[tuple[str, object]] = field(default_factory=list)
    rows: list = field(default_factory=list)
    scales: list = field(default_factory=list)
    answers: list = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    result: object = None
    given: dict = field(default_factory=dict)

    def add(self, label: str, value: object) -> None:
        self.told.append((label, value))


class Choices:
    """Stands at the seam of choices: keeps the scores and answers with a fixed place."""

    def __init__(self):
        self.rows, self.scales = [], []

    def __call__(self, scores, scale):
        self.rows.append(np.array(scores))
        self.scales.append(scale)
        return len(scores) // 2


def declared(given: dict):
    """What is declared of the records, as ``sample`` takes it."""
    return protection_of(**{name: value for name, value in given.items() if name in ("bounds", "public", "unit", "neighbours", "missing")})


def arguments_of(program: Program, inspected) -> dict:
    """Arguments of the doors; bounds of all that needs some, by the names that inspect says."""
    names = {row.variable for row in inspected.rows} | {name for name, _, _ in inspected.arrays}
    bounds = {name: pair for name, pair in program.bounds.items() if name in names}
    observed = {row.variable for row in inspected.rows}
    bounds |= {
        name: (-1.0, 1.0)
        for name, use, status in inspected.arrays
        if status == "private" and use == "covariate" and name not in bounds and name not in observed
    }
    for name in re.findall(r"(?:logit|log)\(\w+\)", repr(inspected)) if program.theme != "missing" else ():
        bounds.setdefault(name, (-3.0, 3.0))
    given = {"bounds": bounds, "public": program.public, "neighbours": program.neighbours}
    if program.unit != '"row"':
        given["unit"] = eval(program.unit, {"pmdp": pmdp})
    rng = random.Random(f"missing {program.seed}")
    private = [name for name, _, status in inspected.arrays if status == "private"]
    names = [name for name in dict.fromkeys([*(row.variable for row in inspected.rows), *private]) if rng.random() < 0.5]
    if names and rng.random() < (0.8 if program.theme == "missing" else 0.3):
        program.missing = given["missing"] = names
    return given


def look(program: Program, model, base=None, *, scan=False) -> Seen:
    """Ask everything of a model, with the noise held still: as much as was asked of ``base``, by the same arguments."""
    seen, choices = Seen(), Choices()
    with watched(0, base.answers if base else ()) as (seam, output, caught), pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanisms, "_opendp_choice", choices)
        patch.setattr(grid, "_spread", lambda drawn, *_: drawn)  # behind the seam, and random
        for room in (sweeps, annealed):
            patch.setattr(room, "generator", lambda draws, receipt: np.random.default_rng(5))
        unit = {} if program.unit == '"row"' else {"unit": eval(program.unit, {"pmdp": pmdp})}
        inspected = tried(seen, "inspect", lambda: pmdp.inspect(model, public=program.public, neighbours=program.neighbours, **unit))
        if inspected is not None:
            seen.add("inspect", repr(inspected))
            seen.given = given = base.given if base else arguments_of(program, inspected)
            words = random.Random(f"settings {program.seed}").choice(SETTINGS)
            tried(seen, "settings", lambda: check_settings(words, model, prepared(model, declared(given), epsilon=1).plan.spec))
            if program.door == "release":
                released(program, model, given, seen, scan)
            else:
                drawn(program, model, given, seen)
    seen.add("printed", output.getvalue())
    seen.add("warned", [f"{one.category.__name__}: {one.message}" for one in caught])
    seen.add("seam", ([len(one) for one in (*seam.exact, *choices.rows)], [*seam.scales, *choices.scales]))
    seen.rows, seen.scales, seen.answers = [*seam.exact, *choices.rows], [*seam.scales, *choices.scales], seam.answers
    if scan and inspected is not None:
        marked(seen, "inspection", inspected)
        if seen.result is not None:
            marked(seen, "result", seen.result)
    return seen


def tried(seen: Seen, label: str, call):
    """The result of a call, or None; what it raises is seen."""
    try:
        return call()
    except Exception as error:
        seen.add(label, f"{type(error).__name__}: {error}")
        return None


def marked(seen: Seen, label: str, thing) -> list:
    """Note where the marked value is in a pickle; the arrays in it."""
    try:
        file, arrays = pickled(thing)
    except Exception as error:
        seen.add(f"pickle of {label}", type(error).__name__)
        return []
    if any(mark in file for mark in MARKS):
        seen.marked.append(label)
    return arrays


def released(program: Program, model, given: dict, seen: Seen, scan: bool) -> None:
    """Release, rewrite, and look at everything."""
    delta = {"delta": 1e-6} if program.mechanism == "gaussian" else {}
    result = tried(seen, "release", lambda: pmdp.release(model, epsilon=EPSILON, mechanism=program.mechanism, **given, **delta))
    if result is None:
        return
    seen.result = result
    seen.add("release", repr(result))
    for one in result.statistics:
        arrays = [one.noisy, one.n, one.known, *one.inputs]
        seen.add("statistics", [one.scale, one.difference, *((str(a.dtype), a.shape, a.tolist()) for a in arrays)])
    if not program.rewritten:
        return
    private = tried(seen, "rewrite", lambda: pmdp.rewrite(model, result, noise_aware=program.aware))
    if private is None:
        return
    everything = [*private.basic_RVs, *private.deterministics, *private.potentials, *private.data_vars]
    seen.add("names", (list(private.named_vars), str(private.coords), str(private.named_vars_to_dims)))
    seen.add("graph", printed(everything))
    if program.theme in HIDING:  # densities of priors are functions, which no pickle holds
        densities = densities_of(private)
        seen.add("density", printed(densities))
        marked(seen, "density", densities)
    kept = marked(seen, "private model", private)
    # of 32 bits are the seeds of generators
    seen.add("arrays", sorted((a.shape, str(a.dtype), repr(a.tolist())) for a in kept if a.dtype.kind in "fiubc" and a.dtype != np.uint32))


def densities_of(private) -> list:
    """Of the priors, or none where PyMC has none: its words rest on the order of sets."""
    try:
        return private.logp(vars=private.free_RVs, sum=False)
    except Exception:
        return []


def printed(variables) -> str:
    """Graphs in words, without addresses in memory."""
    return re.sub("0x[0-9a-f]{6,}", "", pytensor.dprint(variables, file="str", print_type=True)) if variables else ""


def drawn(program: Program, model, given: dict, seen: Seen) -> None:
    """A draw, a mode or a chain."""
    result = tried(seen, program.door, lambda: DOORS[program.door](model, given | {"epsilon": EPSILON}))
    if result is None:
        return
    seen.result = result
    if isinstance(result, dict):
        seen.add("mode", {name: (np.shape(value), str(np.asarray(value).dtype)) for name, value in result.items()})
        return
    exact = result.attrs.get("promise", "") != "real-arithmetic"
    for group in result.subtree:
        seen.add("attrs", {name: value for name, value in group.attrs.items() if name != "created_at"})
        for name, v in group.variables.items():
            seen.add("values", (str(name), v.dims, v.shape, str(v.dtype), np.asarray(v.values).tolist() if exact else ""))


# ---------- what must hold
def loss_of(program: Program, one: Seen, other: Seen) -> str:
    """Why the noise does not cover what differs at the seam, or nothing."""
    total, charged = Fraction(0), Fraction(EPSILON)
    gaussian = program.door == "release" and program.mechanism == "gaussian"
    if program.door == "release":
        charged = one.result.cost.rho if gaussian else one.result.cost.epsilon
    shares = []
    for first, second, scale in zip(one.rows, other.rows, one.scales, strict=True):
        if isinstance(first, np.ndarray):
            p, q = (row / scale - logsumexp(row / scale) for row in (first.astype(float), second.astype(float)))
            shares.append(Fraction(float(np.abs(p - q).max())) - Fraction(1, 10**7))
        else:
            moved = [abs(a - b) for a, b in zip(first, second, strict=True)]
            shares.append(sum(m * m for m in moved) / (2 * Fraction(scale) ** 2) if gaussian else sum(moved) / Fraction(scale))
    total = sum(shares, Fraction(0))
    if total > charged:
        return f"loss {float(total):.4g} at {float(charged):.4g} charged"
    statistics = one.result.statistics if program.door == "release" and program.mechanism != "fourier" else ()
    left = zip(one.rows, other.rows, one.scales, strict=True)
    for statistic in statistics:
        # Of several rounds the last is what it is released as, and has a scale of its own.
        rows = next(((a, b) for a, b, scale in left if (scale, len(a)) == (statistic.scale, statistic.noisy.size)), None)
        if rows is None:  # counts that are in another's table
            break
        moved = [abs(a - b) for a, b in zip(*rows, strict=True)]
        reach, most = (sum(m * m for m in moved), statistic.square) if gaussian else (sum(moved), statistic.difference)
        if reach > most:
            return f"{statistic.variable} moves by {reach} where {most} is declared"
    return ""


def compared(program: Program, one: Seen, other: Seen) -> list[tuple[str, str]]:
    """Kinds of breaks, and what is seen of them."""
    breaks = [("canary", f"in the {label}") for label in other.marked]
    first, second = ([(label, repr(value)) for label, value in seen.told] for seen in (one, other))
    unlike = next(((a, b) for a, b in zip(first, second, strict=False) if a != b), None)
    if unlike is not None or len(first) != len(second):
        (label, here), (label_there, there) = unlike or (("more", ""), ("less", ""))
        start = next((k for k, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), 0)
        cut = slice(max(start - 60, 0), start + 160)
        breaks.append((f"seen in {label}", f"{here[cut]}\n    | {label_there}: {there[cut]}"))
    elif one.result is not None and (loss := loss_of(program, one, other)):
        breaks.append(("loss", loss))
    return breaks
