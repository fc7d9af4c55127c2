"""The house: one direction, one door, one seam, and nothing heavy at import."""

import ast
import inspect
import os
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import pymc_dp

PACKAGE = Path(pymc_dp.__file__).parent
ROOMS = {
    "privacy": "costs, noise and how it is drawn, the ledger of what was spent, and the guard around functions that see records",
    "laws": "the probability law of an exact statistic with noise on it, and the compiled loops that compute it",
    "families": "likelihoods with sufficient statistics, a file each: how far a record moves the statistics, their law; regressions",
    "models": "what is read from a model's graph, but no record: likelihoods, parameters, and which arrays hold records",
    "plans": "what would be released, in which public and private cells, and how far one record can move it; the table of `inspect`",
    "releases": "the records are read and counted, noise is added once: the `Release` is all that later steps see",
    "private_models": "the private model, made of a model's shape and a release; what is noted on its draws; draws of new records",
    "publications": "numbers that somebody else made private, or records that were randomised, and models that allow for what was done",
    "gibbs": "exact conditional draws for private models, which cost nothing: latent chains and mixtures, conjugate blocks, exact counts",
    "posterior": "private draws from the posterior itself, also without sufficient statistics; its mode; Gibbs that pays at every update",
    "queries": "questions about a table under a budget, answered from earlier answers where those are good enough",
    "audits": "lower bounds on the epsilon of any function",
    "plots": "pictures of posteriors, networks, hidden states, audits, ledgers and plans",
    "sampling": "the functions `inspect`, `sample` and `privatize`, which do all of this in one call",
    "planning": "how wide intervals will be, from simulated records; bounds from the priors, free, or from the records, at a price",
    "precompile": "compiles in advance what private models have in common",
    "__main__": "the command line: `python -m pymc_dp`",
}
"""What is in the package, each entry importing from itself and from those before it."""
SEE_RECORDS = (
    "releases.statistics", "releases.cells", "releases.network_tables", "releases.from_records", "releases.rounds", "releases.simulated",
    "releases.persons", "releases.person_names", "releases.person_blocks", "releases.quantiles", "releases.columns", "releases.from_data",
    "releases.headers", "releases.duck", "releases.partial", "releases.shared_plan", "releases.source", "releases.stored",
    "releases.spread", "releases.engines", "releases.dask_tables", "releases.dask_arrays",
    "releases.spark_tables", "releases.by_part", "releases.totals", "releases.progress", "releases.described_cells", "releases.answers",
    "posterior", "queries.table", "queries.batches", "queries.persons", "queries.session",
)  # fmt: skip
"""Where records are named: nothing else is handed any."""
COUNT_RECORDS = {
    "pymc_dp.releases.statistics",
    "pymc_dp.queries.table",
    "pymc_dp.queries.batches",
    "pymc_dp.queries.persons",
    "pymc_dp.releases.source",
}
PAGE = PACKAGE.parent / "docs" / "architecture.md"


@cache
def modules():
    """Name without the package's, path and tree of every module."""
    return list(read_modules())


def read_modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name:
            yield name, path, ast.parse(path.read_text())


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@cache
def uses():
    """Of every module of ours those that it imports, also where only types are checked and within functions."""
    names = {name for name, _, _ in modules()}
    found = {}
    for name, _, tree in modules():
        wanted = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pymc_dp":
                home = node.module.removeprefix("pymc_dp").removeprefix(".")
                inner = {f"{home}.{alias.name}".removeprefix(".") for alias in node.names}
                wanted |= (inner & names) | ({home} if inner - names else set())
        found[name] = wanted
    return found


def test_each_room_imports_only_from_those_before_it():
    order = list(ROOMS)
    assert {name.split(".")[0] for name, _, _ in modules()} == set(order)
    for name, others in uses().items():
        for other in others:
            assert other, f"{name} imports from the package itself"
            assert order.index(other.split(".")[0]) <= order.index(name.split(".")[0]), f"{name} imports {other}"


def test_no_module_imports_itself_in_a_circle():
    left = {name: others - {name} for name, others in uses().items()}
    while free := {name for name, others in left.items() if not others & left.keys()}:
        left = {name: others for name, others in left.items() if name not in free}
    assert not left


def test_the_page_lists_the_rooms():
    table = "\n".join(["| entry | what lives there |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in ROOMS.items())])
    assert table in PAGE.read_text(), f"docs/architecture.md must hold:\n{table}"


def test_the_page_of_modules_is_up_to_date():
    sys.path.insert(0, str(PAGE.parent))
    import make_modules

    assert make_modules.PAGE.read_text() == make_modules.page(), "run: python docs/make_modules.py"


MOST_LINES = {"function": 60, "class": 300, "file": 400}
"""Of code and comments; the docstring of a function or class is not counted."""


def lengths():
    """What is long, by kind and name: a function or class without its own docstring."""
    for name, path, tree in modules():
        yield "file", name, len(path.read_text().splitlines())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                said = node.body[0] if ast.get_docstring(node) else None
                kind = "class" if isinstance(node, ast.ClassDef) else "function"
                told = said.end_lineno - said.lineno + 1 if said is not None else 0
                yield kind, f"{name}.{node.name}", node.end_lineno - node.lineno + 1 - told


def test_nothing_is_too_long_to_be_read_at_once():
    assert not [(kind, name, lines) for kind, name, lines in lengths() if lines > MOST_LINES[kind]]


def sees_records(name):
    return any(name == one or name.startswith(f"{one}.") for one in SEE_RECORDS)


def test_records_are_seen_only_where_it_is_said():
    for name, path, tree in modules():
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if not sees_records(name):
            assert not names & {"records_of", "exact_totals", "value_of"}, path
            assert not COUNT_RECORDS & set(imported(tree)), path
            assert "exact" not in names or name in {"privacy.accounting", "privacy.mechanisms", "laws.law"}, path
        if name != "models.reader" and not sees_records(name):
            assert "read_model" not in names, path


def test_only_the_mechanisms_import_opendp_and_nobody_else_draws():
    for room, path, tree in modules():
        if any(name.split(".")[0] == "opendp" for name in imported(tree)):
            assert room == "privacy.mechanisms", path
        text, place = path.read_text(), str(path.relative_to(PACKAGE).with_suffix(""))
        for forbidden in ("default_rng", "np.random", "import random", "secrets", ".laplace(", "gumbel", "random_seed="):
            # The order in which data sets take turns; and noise on tables without a record, to see how much it needs.
            allowed = {
                "audits/audit": {"default_rng": None, "np.random": None},
                "plans/network": {"default_rng": 1, "np.random": 1, ".laplace(": 1},
                "private_models/feature_shapes": {"default_rng": 1, "np.random": 5},  # made-up covariates, always the same
                "privacy/mechanisms": {"default_rng": 1, "np.random": 2},  # the generator of draws of real numbers
                "gibbs/conditional": {"default_rng": 1, "np.random": 1, "random_seed=": 1},  # made-up points, always the same
                "gibbs/hmm": {"default_rng": 1, "np.random": 5},  # of its draws, which cost nothing
                "models/simulated_values": {"random_seed=": 1},  # of draws from the prior, always the same
                "private_models/prior_check": {"random_seed=": 1},  # of draws from the prior, always the same
                "posterior/grid": {"default_rng": 1, "np.random": 1},  # where in the cell of a point that was drawn
                "posterior/imagined": {"default_rng": 2, "np.random": 2},  # made-up records, always the same
                "posterior/markov": {"random_seed=": 1},  # which gets that generator
                "posterior/advice": {"random_seed=": 1},  # of what is imagined, without records
                "private_models/checking": {"default_rng": 1, "np.random": 4, "random_seed=": 4},  # of draws from a fit, which cost nothing
                "private_models/synthetic": {"default_rng": 2, "np.random": 4, "random_seed=": 1},  # of synthetic records
                "private_models/predictive": {"random_seed=": 2},  # of draws from the posterior predictive distribution, which cost nothing
                "releases/simulated": {"np.random": 2, "random_seed=": 1},  # noise on simulated records, which protects nothing
                "plans/widths": {"default_rng": 1, "np.random": 1, "random_seed=": 1},  # simulations drawn again, always the same
                "planning/covariates": {"np.random": 4, "random_seed=": 1},  # simulated covariates
                "planning/records": {"np.random": 3, "random_seed=": 1},  # simulated records
                "planning/plan": {"default_rng": 1, "np.random": 2, "random_seed=": 1},  # the seed of a plan; of an example
                "planning/bounds": {"default_rng": 1, "np.random": 2},  # draws from the prior, always the same
                "publications/predicted": {"np.random": 5, ".laplace(": 1},  # draws of what others publish, which cost nothing
                "publications/table_draws": {"default_rng": 1, "np.random": 3, "random_seed=": 1},  # draws of a table, which cost nothing
                "publications/table_prior": {"np.random": 5},  # draws of a table, which cost nothing
                "publications/table_steps": {"default_rng": 2, "np.random": 2},  # draws of a table, which cost nothing
                "plots/budgets": {"random_seed=": 1},  # of an example
                "plots/posteriors": {"random_seed=": 1},  # of an example
                "queries/table": {"secrets": 1},  # of a database, which are switched off
                "queries/completion": {"default_rng": 2, "np.random": 4, ".laplace(": 1},  # draws of a posterior, seeds from the history
            }
            times = allowed.get(place, {}).get(forbidden, 0)
            assert times is None or text.count(forbidden) == times, (path, forbidden)
        assert room != "plans.network" or "np.random.default_rng(0)" in text  # always the same, so that nothing rests on it


def test_modules_open_with_what_they_are_for():
    for _, path, tree in modules():
        assert ast.get_docstring(tree), path


def timed(code):
    """What a process prints that may keep compiled modules, as most may: the next one reads them."""
    allowed = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=allowed).stdout)


def test_import_is_light():
    """It takes less than a third of what ``import pymc`` does, best of three, and loads neither arviz, nutpie, OpenDP, matplotlib nor
    SciPy's statistics and functions.
    """
    code = "import time; t = time.process_time; a = t(); import pymc; b = t(); import pymc_dp; print((t() - b) / (b - a))"
    assert any(timed(code) < 1 / 3 for _ in range(3))
    heavy = "arviz", "nutpie", "opendp", "matplotlib", "scipy.stats", "scipy.special"
    assert timed(f"import sys, pymc_dp; print(sum(name in sys.modules for name in {heavy}))") == 0


def test_completion_offers_public_names_only():
    """All of them, those too that are loaded when they are first named."""
    assert set(dir(pymc_dp)) - {"queries", "__version__"} == set(pymc_dp.__all__)
    assert all(hasattr(pymc_dp, name) for name in dir(pymc_dp))


@pytest.mark.parametrize("name", pymc_dp.__all__)
def test_public_names_have_docstrings(name):
    assert getattr(pymc_dp, name).__doc__


def callables(name):
    """A public function, or the methods of a public class that are its own, by name."""
    named = getattr(pymc_dp, name)
    if inspect.isclass(named):
        members = {f"{name}.{key}": getattr(member, "__func__", member) for key, member in vars(named).items() if key[0] != "_"}
        return {key: member for key, member in members.items() if inspect.isfunction(member)}
    return {name: named} if callable(named) else {}


@pytest.mark.parametrize("name", pymc_dp.__all__)
def test_public_names_have_types(name):
    """Without them ``mypy --strict`` complains of every script that calls these."""
    for key, function in callables(name).items():
        signature = inspect.signature(inspect.unwrap(function))
        untyped = [word for word, said in signature.parameters.items() if said.annotation is said.empty and word not in ("self", "cls")]
        assert not untyped, key
        assert signature.return_annotation is not signature.empty, key


def test_types_and_a_version_come_with_the_package():
    """``py.typed`` tells type checkers of a user's project to read ours (PEP 561)."""
    package = Path(pymc_dp.__file__).parent
    assert (package / "py.typed").exists()
    assert pymc_dp.__version__ == tomllib.loads((package.parent / "pyproject.toml").read_text())["project"]["version"]
