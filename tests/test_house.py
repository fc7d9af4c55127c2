"""The house: one direction, one door, one seam, and nothing heavy at import."""

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pymc_dp

PACKAGE = Path(pymc_dp.__file__).parent
CORRIDOR = [
    "accounting", "truncation", "boundary", "journal", "mechanisms", "ledger", "compiled", "kernels", "law", "family", "families",
    "scores", "regression", "wishart", "scatter", "vectors", "structure", "tables", "blank", "linear", "intervals", "hiding", "opaque",
    "entries", "anatomy", "missing", "naming", "planning", "unknowns", "rowwise", "networks", "lipschitz", "inspection", "utility",
    "statistics", "noisy", "consistency", "diagnosed", "release", "likely", "related", "rewrite", "prior_check", "labels", "annotation",
    "gibbs", "prediction", "predictive", "posterior", "settings", "sampling", "queries", "outcomes", "events", "audit", "plots", "ahead",
    "__main__",
]  # fmt: skip
RECORDS = {"statistics", "release", "posterior"}
RECORDS_OF_QUERIES = {"batches", "table", "session"}


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room != "__init__":
            yield room, path, ast.parse(path.read_text())


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_each_room_imports_only_from_its_left():
    seen = set()
    for room, path, tree in modules():
        seen.add(room)
        for name in imported(tree):
            if name.startswith("pymc_dp.") and room != "families":
                assert CORRIDOR.index(name.split(".")[1]) <= CORRIDOR.index(room), (path, name)
            elif name.startswith("pymc_dp."):
                assert name.split(".")[1] in {"kernels", "family", "families", "law"}, (path, name)
    assert seen == set(CORRIDOR)


def test_records_are_seen_in_four_rooms_only():
    for room, path, tree in modules():
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if room not in RECORDS and not (room == "queries" and path.stem in RECORDS_OF_QUERIES):
            assert not names & {"records_of", "exact_totals", "value_of"}, path
            assert not {"pymc_dp.queries.table", "pymc_dp.queries.batches"} & set(imported(tree)), path
            assert not any(name.startswith("pymc_dp.statistics") for name in imported(tree)), path
            assert not any(name == "exact" for name in names) or room in {"accounting", "mechanisms", "law"}, path
        if room not in RECORDS | {"anatomy", "sampling"}:
            assert "dissect" not in names, path


def test_only_the_mechanisms_import_opendp_and_nobody_else_draws():
    for room, path, tree in modules():
        if any(name.split(".")[0] == "opendp" for name in imported(tree)):
            assert room == "mechanisms", path
        text, place = path.read_text(), str(path.relative_to(PACKAGE).with_suffix(""))
        for forbidden in ("default_rng", "np.random", "import random", "secrets", ".laplace(", "gumbel", "random_seed="):
            # The order in which data sets take turns; and noise on tables without a record, to see how much it needs.
            allowed = {
                "audit": {"default_rng": None, "np.random": None},
                "networks": {"default_rng": 1, "np.random": 1, ".laplace(": 1},
                "related": {"default_rng": 1, "np.random": 6},  # made-up covariates, always the same
                "mechanisms": {"default_rng": 1, "np.random": 2},  # the generator of draws of real numbers
                "gibbs/conditional": {"default_rng": 1, "np.random": 1, "random_seed=": 1},  # made-up points, always the same
                "gibbs/hidden": {"default_rng": 1, "np.random": 5},  # of its draws, which cost nothing
                "prior_check": {"random_seed=": 1},  # of draws from the prior, always the same
                "posterior/chain": {"random_seed=": 1},  # which gets that generator
                "posterior/advice": {"random_seed=": 1},  # of what is imagined, without records
                "predictive": {"random_seed=": 2},  # of draws from the posterior predictive distribution, which cost nothing
                "queries/table": {"secrets": 1},  # of a database, which are switched off
                "queries/convolution": {"default_rng": 1, "np.random": 1},  # sums of noise, imagined, with a seed from the question
                "queries/completion": {"default_rng": 2, "np.random": 4, ".laplace(": 1},  # draws of a posterior, seeds from the history
            }
            times = allowed.get(place, {}).get(forbidden, 0)
            assert times is None or text.count(forbidden) == times, (path, forbidden)
        assert room != "networks" or "np.random.default_rng(0)" in text  # always the same, so that nothing rests on it


def test_modules_open_with_what_they_are_for():
    for _, path, tree in modules():
        assert ast.get_docstring(tree), path


def timed(code):
    """What a process prints that may keep compiled modules, as most may: the next one reads them."""
    allowed = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=allowed).stdout)


def test_import_is_light():
    """It takes less than a quarter of what ``import pymc`` does, best of three, and loads neither arviz, nutpie, OpenDP, matplotlib nor
    SciPy's statistics.
    """
    code = "import time; t = time.process_time; a = t(); import pymc; b = t(); import pymc_dp; print((t() - b) / (b - a))"
    assert min(timed(code) for _ in range(3)) < 1 / 4
    loaded = "import sys, pymc_dp; print(sum(name in sys.modules for name in ('arviz', 'nutpie', 'opendp', 'matplotlib', 'scipy.stats')))"
    assert timed(loaded) == 0


@pytest.mark.parametrize("name", pymc_dp.__all__)
def test_public_names_have_docstrings(name):
    assert getattr(pymc_dp, name).__doc__


def test_types_and_a_version_come_with_the_package():
    """``py.typed`` tells type checkers of a user's project to read ours (PEP 561)."""
    package = Path(pymc_dp.__file__).parent
    assert (package / "py.typed").exists()
    assert pymc_dp.__version__ == tomllib.loads((package.parent / "pyproject.toml").read_text())["project"]["version"]
