"""Whole random models on neighbouring data: what one record could change must not be seen, and noise must cover what it moves.

Of every seed a program is written (``programs``, ``themes``), built on data D and on neighbours D' that differ in all that one record says,
and asked for the same. With the noise held still everything that is seen must be equal; the integers at the seam may differ by what is
charged; and nothing that leaves may hold a marked value. A program is text: ``described`` prints what failed as it would be written.

    python tests/generator.py --seeds 0:2000 [--only axes,functions] [--show 3]
"""

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import conftest  # noqa: F401 - sets where PyTensor compiles
import pytensor
from checks import watched
from neighbours import built, neighbour_of, records_of
from programs import Program, Writer
from seen import HIDING, compared, look
from themes import THEMES

from pymc_dp.plans.missing import warn_of_missing
from pymc_dp.releases.prepared import warn_that_nothing_remembers


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
        lines += [f"# neighbour: {self.told}", p.text, f"# public={p.public}, bounds={p.bounds}, missing={p.missing}"]
        return "\n".join([*lines, *(f"# {kind}: {words}" for kind, words in self.breaks)])


def check(seed: int, only=()) -> Outcome:
    """Write the program of a seed and compare it on neighbours."""
    with watched(0):
        warn_that_nothing_remembers()  # once, so that it is not seen of the first of two
        warn_of_missing()
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
COUNTED = ("written", "built", "accepted", "broken", "unrepeatable")


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
        for counted, true in zip(COUNTED, (True, outcome.built, outcome.accepted, bool(outcome.breaks), outcome.unrepeatable), strict=True):
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
        each = 1000 * self.seconds / max(self.generated, 1)
        told = (
            f"{self.generated} models written, {self.built} built, {self.accepted} accepted ({self.share:.0%}), {len(self.breaks)} broken"
        )
        lines = [f"{told}; {each:.0f} ms of one core each"]
        for theme, own in sorted(self.themes.items()):
            lines.append(f"  {theme:18}" + "".join(f" {own[what]:6} {what}" for what in COUNTED))
        kinds = Counter((one.program.theme, kind) for one in self.breaks for kind, _ in one.breaks)
        return "\n".join([*lines, *(f"  {theme}, {kind}: {many}" for (theme, kind), many in kinds.most_common())])


def many(seeds, only=(), told=None) -> Summary:
    """Check seeds one after the other; ``told`` is called with what each gave, and the summary so far."""
    summary = Summary()
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
