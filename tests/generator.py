"""Whole random models on neighbouring data: what one record could change must not be seen, and noise must cover what it moves.

Of every seed a program is written (``programs``, ``themes``), built on data D and on neighbours D' that differ in all that one record says,
and asked for the same. With the noise held still everything that is seen must be equal; the integers at the seam may differ by what is
charged; and nothing that leaves may hold a marked value. A program is text: ``described`` prints what failed as it would be written.

    python tests/generator.py --seeds 0:2000 [--only axes,functions] [--show 3]
"""

import argparse
import random
import re
import struct
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

import conftest  # noqa: F401 - sets where PyTensor compiles
import numpy as np
import pytensor
import pytest
from checks import pickled, watched
from holders import namespace
from programs import Program, Writer
from scipy.special import logsumexp
from themes import THEMES

import pymc_dp as pmdp
from pymc_dp import mechanisms
from pymc_dp.posterior import annealed, sweeps
from pymc_dp.release import warn_that_nothing_remembers

CANARY = 7123.456789012345
MARKS = [struct.pack(order + kind, CANARY) for order in "<>" for kind in "df"] + [b"7123.45678", b"7123.456"]
"""How the marked value is written: doubles and singles of either byte order, and digits."""
EPSILON = 3
HIDING = ("unnamed", "functions", "missing", "python", "scalars")
"""Themes whose private models are always looked at."""
DOORS = {
    "draw": lambda model, given: pmdp.sample(model=model, mechanism=pmdp.PosteriorSample(points=5), **given),
    "find_MAP": lambda model, given: pmdp.find_MAP(model=model, points=5, **given),
    "gibbs": lambda model, given: pmdp.sample(model=model, mechanism=pmdp.Gibbs(2, points=3), **given),
    "annealing": lambda model, given: pmdp.sample(model=model, mechanism=pmdp.Annealing(2, points=3), **given),
}


def program_of(seed: int, only=()) -> Program:
    """The program of a seed; with ``only``, of these themes."""
    rng = random.Random(seed)
    chosen = {theme: weight or 1 for theme, weight in THEMES.items() if theme.__name__ in only} or THEMES
    theme = rng.choices(list(chosen), list(chosen.values()))[0]
    program = Program(seed, theme.__name__)
    program.sizes = {"person": rng.choice([4, 5, 6]), "item": rng.choice([2, 3])}
    if rng.random() < 0.08:
        program.sizes["item"] = program.sizes["person"]
    program.neighbours = rng.choice(["replace", "replace", "replace", "add_remove"])
    program.door = rng.choices(["release", "draw", "find_MAP", "gibbs", "annealing"], [72, 12, 7, 5, 4])[0]
    program.mechanism = rng.choice(["laplace", "laplace", "gaussian"])
    program.aware, program.rewritten = rng.random() < 0.15, rng.random() < 0.4
    theme(Writer(program, rng))
    program.rewritten |= program.theme in HIDING
    if program.door in ("gibbs", "annealing") and rng.random() < 0.9 and any(one.kind == "real" for one in program.columns.values()):
        program.door = "draw"  # chains take seconds where records cannot be listed
    return program


# ---------- records
def values_of(column, shape, rng: random.Random) -> np.ndarray:
    """Ordinary values, for a column of D."""
    several = {"real": [-1.0, 0.0, 0.5, 1.0, 0.25], "level": [0, 1], "bit": [0, 1], "count": [0, 1, 2], "total": [0, 3, 0.5, 1.5, 2.5]}[column.kind]
    flat = [rng.choice(several) for _ in range(int(np.prod(shape)))]
    if column.kind == "count" and column.dtype != "float64":
        flat = [int(value) for value in flat]
    return np.array(flat, dtype=float).reshape(shape).astype(column.dtype)


def records_of(program: Program, rng: random.Random) -> dict[str, np.ndarray]:
    """The columns of D."""
    data = {}
    for name, column in program.columns.items():
        data[name] = values_of(column, [program.sizes[axis] for axis in column.axes], rng)
        if program.present is not None and column.observed and column.dtype == "float64":
            data[name][program.present :] = np.nan
    return data


def another(column, old, change: str, rng: random.Random):
    """What a record may say instead."""
    if change == "canary" and column.dtype == "float64" and column.kind == "real":
        return CANARY
    if change == "nan" and column.observed and column.dtype.startswith("float"):
        return np.nan
    if change == "back":
        return 0.5
    floats = [-1.0, 1.0, 0.0, 0.5, 2.0, np.nan, np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, -0.0]
    integers = [0, 1, 1, 0, 2, -1, 4, 100]
    value = rng.choice(floats if column.kind == "real" or (column.dtype.startswith("float") and rng.random() < 0.2) else integers)
    with np.errstate(all="ignore"):
        return np.array(value).astype(column.dtype)


def another_total(program: Program, old: np.ndarray, rng: random.Random) -> np.ndarray:
    """Totals of one row, of which one individual is another one: one trial of every column, or at most two events of all."""
    if "events" not in program.unit:
        return old + np.array([rng.choice([-1, 1, 1]) for _ in np.ravel(old)]).reshape(np.shape(old)).astype(old.dtype)
    new = np.array(old)
    for step in rng.choice([(1,), (2,), (-1,), (-2,), (2, -2), (1, -1), (1, -2)]) if new.ndim else rng.choice([(1,), (2,), (-1,), (-2,)]):
        new[(rng.randrange(len(new)),) if new.ndim else ()] += step
    return new


def neighbour_of(program: Program, data: dict, change: str, rng: random.Random) -> tuple[dict, str]:
    """Another data set, in which one record says other things everywhere, or is not there; and in words what it is."""
    moving = sorted({column.moves for column in program.columns.values() if column.moves and column.observed})
    if program.neighbours == "add_remove":
        moving = [axis for axis in moving if axis != "item"] or moving
    axis = "person" if program.change == "remove" else rng.choice(moving)
    place = rng.randrange(max(program.sizes[axis], 1)) if rng.random() < 0.5 else 0
    found, told = dict(data), f"{axis} {place}"
    for name, column in program.columns.items():
        if column.moves != axis:
            continue
        at = (slice(None),) * column.axes.index(axis) + (place,)
        if program.neighbours == "add_remove":
            found[name] = np.delete(data[name], place, axis=column.axes.index(axis))
            continue
        found[name] = data[name].copy()
        part = found[name][at]
        if program.present is not None and column.observed and column.dtype == "float64":
            here = np.flatnonzero(~np.isnan(data[name]) if change == "nan" else np.isnan(data[name]))
            at = (int(here[place % len(here)]),) if len(here) else at
            part = found[name][at]
        if program.change == "total":
            found[name][at] = another_total(program, part, rng)
        else:
            found[name][at] = [another(column, old, change, rng) for old in part] if np.ndim(part) else another(column, part, change, rng)
        told += f"; {name}{list(at) if len(at) > 1 else list(at)} = {found[name][at].tolist()}"
    return found, told + (" removed" if program.neighbours == "add_remove" else "")


def built(program: Program, data: dict):
    """The model, or None where PyMC cannot make it."""
    sizes = dict(program.sizes)
    for name, column in program.columns.items():
        sizes |= dict(zip(column.axes, data[name].shape, strict=True))
    scope = namespace() | {name: array.copy() for name, array in data.items()} | {"sizes": sizes}
    try:
        exec(compile(program.text, f"<program {program.seed}>", "exec"), scope)
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
    return scope["model"], ""


# ---------- what is seen
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


def arguments_of(program: Program, inspected) -> dict:
    """Arguments of the doors; bounds of all that needs some, by the names that inspect says."""
    names = {row.variable for row in inspected.rows} | {name for name, _, _ in inspected.arrays}
    bounds = {name: pair for name, pair in program.bounds.items() if name in names}
    observed = {row.variable for row in inspected.rows}
    bounds |= {name: (-1.0, 1.0) for name, use, status in inspected.arrays if status == "private" and use == "covariate" and name not in bounds and name not in observed}
    for name in re.findall(r"(?:logit|log)\(\w+\)", repr(inspected)) if program.theme != "missing" else ():
        bounds.setdefault(name, (-3.0, 3.0))
    given = {"bounds": bounds, "public": program.public, "neighbours": program.neighbours}
    if program.unit != '"row"':
        given["unit"] = eval(program.unit, {"pmdp": pmdp})
    return given


def look(program: Program, model, base=None, *, scan=False) -> Seen:
    """Ask everything of a model, with the noise held still: as much as was asked of ``base``, by the same arguments."""
    seen, choices = Seen(), Choices()
    with watched(0, base.answers if base else ()) as (seam, output, caught), pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanisms, "_opendp_choice", choices)
        for room in (sweeps, annealed):
            patch.setattr(room, "generator", lambda draws, receipt: np.random.default_rng(5))
        unit = {} if program.unit == '"row"' else {"unit": eval(program.unit, {"pmdp": pmdp})}
        inspected = tried(seen, "inspect", lambda: pmdp.inspect(model, public=program.public, neighbours=program.neighbours, **unit))
        if inspected is not None:
            seen.add("inspect", repr(inspected))
            seen.given = given = base.given if base else arguments_of(program, inspected)
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
    for k, statistic in enumerate(statistics[: len(one.rows)]):
        moved = [abs(a - b) for a, b in zip(one.rows[k], other.rows[k], strict=True)]
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


@dataclass
class Outcome:
    """Of one seed."""

    program: Program
    built: bool
    accepted: bool = False
    breaks: list[tuple[str, str]] = field(default_factory=list)
    data: dict = field(default_factory=dict)
    told: str = ""
    seconds: float = 0.0
    refusal: str = ""
    unrepeatable: bool = False

    def described(self) -> str:
        """The recipe, as it would be written in a test."""
        p = self.program
        lines = [f"# seed {p.seed}, {p.theme}; {p.door}, {p.neighbours}, {p.mechanism}, unit {p.unit}, noise_aware={p.aware}"]
        lines += [f"{name} = np.array({array.tolist()}, dtype={str(array.dtype)!r})" for name, array in self.data.items()]
        lines += [f"# neighbour: {self.told}", p.text, f"# public={p.public}, bounds={p.bounds}"]
        return "\n".join([*lines, *(f"# {kind}: {words}" for kind, words in self.breaks)])


def check(seed: int, only=()) -> Outcome:
    """Write the program of a seed and compare it on neighbours."""
    start, program = time.process_time(), program_of(seed, only)
    rng = random.Random(f"records {seed}")
    data = records_of(program, rng)
    model, why = built(program, data)
    outcome = Outcome(program, model is not None, data=data)
    if model is None:
        outcome.refusal = f"not built, {why}"
        return outcome
    base = look(program, model)
    outcome.accepted = base.result is not None
    if base.result is None:
        outcome.refusal = str(base.told[-4][1]) if len(base.told) > 3 else ""
    removing = program.neighbours == "add_remove"
    ways = [program.change] if program.change != "any" else ["any"] if removing else ["canary", "any"][: rng.choice([1, 1, 2])]
    if not outcome.accepted and ways[0] == "canary":
        ways = [rng.choice(["canary", "any"])]
    for way in ways:
        there, told = neighbour_of(program, data, way, rng)
        other, _ = built(program, there)
        if other is None:
            continue
        found = compared(program, base, look(program, other, base, scan=way == "canary"))
        if found and not outcome.breaks:
            again = compared(program, base, look(program, built(program, data)[0], base))
            outcome.unrepeatable = bool(again) and again[0][0] == found[0][0]
            outcome.breaks, outcome.told = ([] if outcome.unrepeatable else found), told
    if removing and outcome.accepted and not outcome.breaks:
        outcome.breaks, outcome.told = scanned(program, data, rng)
    outcome.seconds = time.process_time() - start
    return outcome


def scanned(program: Program, data: dict, rng: random.Random) -> tuple[list, str]:
    """Look for the marked value where neighbours have one record less, by one look more."""
    if rng.random() < 0.5 or not any(c.kind == "real" and c.dtype == "float64" and c.moves for c in program.columns.values()):
        return [], ""
    replaced = Program(**(vars(program) | {"neighbours": "replace"}))
    there, told = neighbour_of(replaced, data, "canary", rng)
    model, _ = built(program, there)
    return ([("canary", f"in the {label}") for label in look(program, model, scan=True).marked], told) if model else ([], "")


# ---------- many
@dataclass
class Summary:
    """What was found with many seeds."""

    generated: int = 0
    built: int = 0
    accepted: int = 0
    seconds: float = 0.0
    breaks: list[Outcome] = field(default_factory=list)
    themes: dict[str, Counter] = field(default_factory=dict)
    refusals: Counter = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        own = self.themes.setdefault(outcome.program.theme, Counter())
        for counted, true in (("generated", True), ("built", outcome.built), ("accepted", outcome.accepted), ("broken", bool(outcome.breaks)),
                              ("unrepeatable", outcome.unrepeatable)):  # fmt: skip
            own[counted] += true
        self.generated, self.built, self.accepted = self.generated + 1, self.built + outcome.built, self.accepted + outcome.accepted
        self.seconds += outcome.seconds
        if outcome.refusal:
            self.refusals[f"{outcome.program.theme}: {outcome.refusal}"[:150]] += 1
        if outcome.breaks:
            self.breaks.append(outcome)

    @property
    def share(self) -> float:
        return self.accepted / max(self.built, 1)

    def __str__(self) -> str:
        lines = [f"{self.generated} models written, {self.built} built, {self.accepted} accepted ({self.share:.0%}), {len(self.breaks)} broken;"
                 f" {1000 * self.seconds / max(self.generated, 1):.0f} ms of one core each"]  # fmt: skip
        for theme, own in sorted(self.themes.items()):
            lines.append(f"  {theme:18} {own['generated']:6} written {own['built']:6} built {own['accepted']:6} accepted {own['broken']:5} broken {own['unrepeatable']:3} unrepeatable")
        kinds = Counter((one.program.theme, kind) for one in self.breaks for kind, _ in one.breaks)
        return "\n".join([*lines, *(f"  {theme}, {kind}: {many}" for (theme, kind), many in kinds.most_common())])


def many(seeds, only=(), told=None) -> Summary:
    """Check seeds one after the other; ``told`` is called with what each gave, and the summary so far."""
    summary = Summary()
    with watched(0):
        warn_that_nothing_remembers()
    with pytensor.config.change_flags(cxx="", traceback__limit=0):  # faster: nothing is compiled
        for seed in seeds:
            with watched(0):  # what PyMC says while a model is made
                outcome = check(seed, only)
            summary.add(outcome)
            if told is not None:
                told(outcome, summary)
    return summary


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", default="0:500", help="first:last, or one seed")
    parser.add_argument("--only", default="", help=f"themes, by commas: {', '.join(theme.__name__ for theme in THEMES)}")
    parser.add_argument("--show", type=int, default=0, help="how many breaks of each kind to print as programs")
    parser.add_argument("--refusals", type=int, default=0, help="how many kinds of refusals to print")
    given = parser.parse_args(arguments)
    first, _, last = given.seeds.partition(":")
    only = tuple(filter(None, given.only.split(",")))
    shown: Counter = Counter()

    def told(outcome: Outcome, summary: Summary) -> None:
        if outcome.breaks:
            key = (outcome.program.theme, outcome.breaks[0][0])
            shown[key] += 1
            if shown[key] <= given.show:
                print(outcome.described() + "\n", flush=True)  # noqa: T201
        if summary.generated % 500 == 0:
            print(summary, flush=True)  # noqa: T201

    summary = many(range(int(first), int(last or int(first) + 1)), only, told)
    for refusal, often in summary.refusals.most_common(given.refusals):
        print(f"{often:5} {refusal}")  # noqa: T201
    print(summary)  # noqa: T201
    return len(summary.breaks)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
