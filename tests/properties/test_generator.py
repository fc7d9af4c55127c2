"""Random whole models on neighbouring data: see ``generator``. What fails prints its program, which can become a test of its own."""

import os
import shutil
import subprocess
import sys

import pytest
from generator import check, many
from mutants import MUTANTS
from planting import ROOT

pytestmark = pytest.mark.filterwarnings("ignore")  # PyMC warns of imputation, of casts and of Python operations
QUICK, SLOW, NIGHTLY = 25, 20_000, 500_000
CHUNK = 500
LEAST = 0.3
"""Of the models that PyMC makes, the share that must be accepted: otherwise refusals alone are tested."""


def holds(seeds, only=(), least=LEAST):
    summary = many(seeds, only)
    print(summary)  # noqa: T201 - how many were written and accepted
    assert not summary.breaks, "\n\n".join([str(summary), *(outcome.described() for outcome in summary.breaks[:5])])
    assert summary.share >= least, str(summary)


def test_random_models():
    """What one record says is not seen, and moves no more than is paid for."""
    holds(range(QUICK))


def test_random_models_of_many_public_cells():
    """Of which about half have pooled sums."""
    holds(range(6), only=("pooled",), least=0.8)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 500, 100))
def test_more_random_models_of_many_public_cells(first):
    holds(range(first, first + 100), only=("pooled",), least=0.8)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(QUICK, SLOW, CHUNK))
def test_more_random_models(first):
    holds(range(first, min(first + CHUNK, SLOW)))


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(SLOW, NIGHTLY, CHUNK))
def test_many_random_models(first):
    holds(range(first, first + CHUNK))


def test_a_program_is_the_same_whenever_it_is_written():
    first, second = check(4), check(4)
    assert first.described() == second.described()
    assert "with pm.Model(" in first.described()


RULES = {
    "models/opaque.py": [
        ('    """Why an operation is not understood: its class, or what its properties hold."""', "    return None"),
        ("    return None if known is None else _Search(known).visit(thing)", "    return None"),
    ],
    "models/pickled.py": [("    return pickled.reason", "    return None")],
    "models/structure.py": [("not isinstance(variable.owner.op, ModelFreeRV | ModelObservedRV)", "not is_unknown(variable)")],
}
"""Rules that stand beside others: text, and what takes its place or is put after it."""
MENDS = {
    "axes": ["a parent read along another axis", "an array read along another axis", "an array read along two axes"],
    "named_dims": ["a parent read along another axis", "an array read along another axis", "an array read along two axes"],
    "missing": ["the first entry stays", "a single value that is there"], "totals": ["totals to the nearest even"],
    "lengths": ["the type of an index", "an index without entries is another", "lengths decide a refusal"],
    "scalars": ["a loop over records"], "unnamed": ["random variables without a name"], "functions": [], "python": [],
}  # fmt: skip
"""By theme: the planted mistakes that take its mend out. Of the last ones, all rules of ``opaque`` go as well."""


@pytest.mark.slow
@pytest.mark.parametrize("theme", MENDS)
def test_what_broke_once_is_found_where_its_mend_is_taken_out(theme, tmp_path):
    """In a copy of the package: up to 240 models of the theme find it."""
    for name in ("pymc_dp", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    planted = [(one.file, one.old, one.new) for one in MUTANTS if one.name in MENDS[theme]]
    if theme in ("unnamed", "functions", "python"):
        planted += [(file, old, new) for file, changes in RULES.items() for old, new in changes]
    for file, old, new in planted:
        path = tmp_path / "pymc_dp" / file
        text = path.read_text()
        assert text.count(old) == 1, (file, old)
        path.write_text(text.replace(old, f"{old}\n{new}" if old.strip().startswith('"""') else new))
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{tmp_path / 'tests'}"}
    for first in range(0, 240, 40):
        command = [sys.executable, "tests/generator.py", "--seeds", f"{first}:{first + 40}", "--only", theme]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900)
        assert "models written" in done.stdout, done.stderr[-2000:]
        if done.returncode:
            return
    raise AssertionError(done.stdout)
