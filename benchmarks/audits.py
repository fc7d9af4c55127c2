"""What the library's own audits run, and how long they take: writes docs/audits.md.

    python benchmarks/audits.py [--slow] [--layers exact,ledger]

Every layer is a selection of tests. Tests are counted and timed as pytest tells; a layer that fails stops the run. Without ``--slow``
the part that runs by default is timed, and what was measured before is kept.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "audits.json"
PAGE = ROOT / "docs" / "audits.md"


@dataclass(frozen=True)
class Layer:
    """Tests that belong together: files, what pytest's ``-k`` chooses of them, and what they try."""

    name: str
    files: tuple[str, ...]
    chosen: str
    tries: str
    join: str


LAYERS = (
    Layer(
        "exact",
        ("test_sensitivity.py",),
        "",
        "every family and structure, public and private cells, records exchanged, added and removed; for each more than 10,000 pairs of"
        " records that stretch its values, by climbing, and of any doubles: the integer distance is never above the sensitivity, and 99 %"
        " of it is attained",
        "an example in `EXAMPLES` of its family, or a row of `REGRESSIONS`",
    ),
    Layer(
        "record and replay",
        ("test_privacy.py", "test_privacy_routes.py", "test_session_privacy.py"),
        "replay or look or malformed or totals or attained or order",
        "neighbours of 14 malformed kinds: given the same noisy numbers, all words, pickles, shapes, labels, warnings, logs and charges"
        " are the same, and the numbers that get noise cost no more than was paid",
        "a function in `ROUTES`",
    ),
    Layer(
        "noise",
        ("test_noise.py",),
        "",
        "200,000 draws against the exact law at five scales, a scale 5 % off refused, an oracle of its own; no two numbers share noise,"
        " nothing off the lattice, forked and spawned children differ",
        "an entry of `LAWS`",
    ),
    Layer(
        "black box",
        ("test_blackbox.py", "test_audit.py", "test_anchor_bugs.py", "test_session_privacy.py"),
        "not session_privacy or audit or claim or three",
        "`pymc_dp.audit` on whole releases and sessions of pairs whose exact epsilon is 0.9 of the claim and more; on planted bugs and"
        " published ones, which it must find; and 400 times on right mechanisms",
        "a `Pair`",
    ),
    Layer(
        "canaries",
        ("test_privacy.py", "test_leaks.py", "test_session_privacy.py"),
        "canar or carr or leak or pickle or cache",
        "marked records in values, covariates, indices and labels: not in any tree, pickle, page, word, log, frame of an exception or file",
        "a model of `test_canaries_are_nowhere`",
    ),
    Layer(
        "refusals",
        ("test_refusals.py", "test_gallery_refused.py", "test_hiding_places.py"),
        "",
        "odd models and arguments: refused with a reason before noise is asked for, in words that do not depend on values, or handled"
        " right",
        "a function under `@case`",
    ),
    Layer(
        "ledger",
        ("test_ledger.py", "test_sessions.py"),
        "",
        "races of 64 processes, kills at nine points and at any time, files cut, changed, copied, put back, full and read-only, random"
        " programs beside fractions",
        "paying through `Ledger.charge`",
    ),
    Layer(
        "whole models",
        ("test_generator.py",),
        "",
        "models at random, each a program that can be read: leaves, axes, names, missing values, operations, functions and what they hold,"
        " both neighbour relations, both noises, every function that reads records; on neighbours the exact loss at the noise is at most"
        " the charge, and all else is equal",
        "a theme in `themes.py` or a likelihood in `likelihoods.py`",
    ),
    Layer(
        "proofs",
        ("test_proofs.py",),
        "",
        "sensitivities proved ([proofs.md](proofs.md)): all pairs of values of the lattice, all pairs of records, bounds by branching",
        "a row of `proofs.py`",
    ),
    Layer(
        "mutants", ("test_mutants.py",), "", "planted mistakes ([mutants.md](mutants.md)): each found by the test it names", "a `Mutant`"
    ),
)
FOUND = """
## What they found

Each of these mistakes was corrected when it was found, and a test for it was kept.

- A frame of `SystemExit` or `CancelledError`, raised by a signal handler in the middle of a release, held the exact sums; only ordinary
  exceptions and Ctrl-C had been emptied.
- `Individual(events=..., rows=...)` decides which data sets are neighbours, and the ledger did not compare it.
- A receipt for the price of the exponential mechanism could be used for Laplace noise, which has four times its rho. Draws of negative
  cost could pay for other draws.
- The lock file could be somebody else's file, which was then overwritten. A lock file that a crash had damaged, or that was moved
  twice, locked the owner out.
- A ledger that was deleted could be made anew with a fresh budget. A charge that was redeemed in a copy could be redeemed again.
- SQLite's own locks vanish when any descriptor of the file is closed in the process: with them alone a second process gets through
  (`test_closing_the_file_elsewhere_does_not_open_the_door` shows both).
- The file of a session could name a charge by a negative number, counted from the end, and so give one charge two answers. An interval
  between the smallest and the largest of 4,000 draws was called a 99.9999 % interval.
- Arrow infers one type from all values of a pandas category. One record that held bytes made every text a value in no level, and the
  count of 999 became 0. One record could make encoded columns of a table overflow 32 bits, and texts of 4 GB fail.
- A session's ledger remembered questions but not the schema that gives them meaning. With another schema in the edited file, records
  that had been paid for looked as if nothing had been paid. A session is now identified by what its questions mean.
- PyMC imputes missing counts by a variable of its own. A Gibbs chain took this variable for a latent that every record has, and refused
  the model, so that one missing value decided whether it was refused. Later the same variable, where it reads states that records
  share, was taken for a prior that reads them.
- States that records share were drawn from a prior whose form was determined at made-up values with all other latents at 0. A prior
  with another form elsewhere gave a wrong posterior without any message. The form is now compared with the prior, before the charge and
  in every sweep.
- One text in a column of NumPy's longlong made all other numbers values in no level. Chunks with dictionaries of dictionaries were read
  with the dictionary of the chunk before. A macro called `strlen`, or profiling, in the database that held the table revealed records.
- Some models were accepted although the library did not understand them: parameters computed along another axis than records, random
  variables without a name, functions that held lists or frames, a dtype that tells one record from none, totals with halves. They are
  refused since ([guarantee.md](guarantee.md)).
- An estimate that lies nearly on a lattice had intervals that ended just before an atom: 95 % intervals held the truth in 92.7 % of
  cases.
"""
WHEN = {"default": "not slow and not nightly", "slow": "slow", "nightly": "nightly"}


def pytest(layer: Layer, marker: str, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "pytest", "-q", "-m", marker, *arguments, *(f"tests/{name}" for name in layer.files)]
    return subprocess.run(command + (["-k", layer.chosen] if layer.chosen else []), cwd=ROOT, capture_output=True, text=True, check=False)


def counted(layer: Layer, marker: str) -> int:
    return sum("::" in line for line in pytest(layer, marker, "--collect-only", "-n", "0").stdout.splitlines())


def timed(layer: Layer, marker: str) -> dict:
    """Wall seconds on two cores, and the number of tests that passed; a failure ends it."""
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        start = time.perf_counter()
        done = pytest(layer, marker, "-n", "2", f"--junitxml={report.name}")
        seconds = time.perf_counter() - start
        if done.returncode not in {0, 5}:
            sys.exit(f"{layer.name} failed:\n{done.stdout[-3000:]}")
        suite = ElementTree.parse(report.name).getroot()[0].attrib
    return {"passed": int(suite["tests"]) - int(suite["skipped"]), "seconds": round(seconds)}


def page(measured: dict) -> str:
    lines = [
        "# The library's own audits",
        "",
        f"Written by `python benchmarks/audits.py`: tests by layer, and wall seconds on {measured['machine']}. *Default* runs with"
        " `uv run pytest`, *slow* with `-m slow`, *nightly* with `-m nightly`.",
        "",
        "| layer | what is tried | tests: default | slow | nightly | seconds: default | slow | a new mechanism joins by |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for layer in LAYERS:
        found = measured.get(layer.name, {})
        numbers = [f"{found.get('counts', {}).get(when, 0):,}" for when in WHEN]
        numbers += [str(found[when]["seconds"]) if when in found else "-" for when in ("default", "slow")]
        lines.append(f"| {layer.name} | {layer.tries} | {' | '.join(numbers)} | {layer.join} |")
    return "\n".join([*lines, FOUND])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--slow", action="store_true", help="time the slow tests, too")
    parser.add_argument("--layers", default=",".join(layer.name for layer in LAYERS))
    given = parser.parse_args()
    measured = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    measured["machine"] = f"two of {os.cpu_count()} {platform.machine()} cores, Python {platform.python_version()}"
    for layer in (layer for layer in LAYERS if layer.name in given.layers.split(",")):
        found = measured.setdefault(layer.name, {})
        found["counts"] = {when: counted(layer, marker) for when, marker in WHEN.items()}
        for when in ("default", "slow") if given.slow else ("default",):
            found[when] = timed(layer, WHEN[when])
            print(layer.name, when, found[when], flush=True)
            RESULTS.write_text(json.dumps(measured, indent=1) + "\n")
    PAGE.write_text(page(measured))


if __name__ == "__main__":
    main()
