"""Pages that are made from the code are what the code makes, and code on pages runs."""

import ast
import contextlib
import doctest
import io
import pkgutil
import re
import runpy
import sys
import warnings
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytensor
import pytest
import test_families
import test_sensitivity

import pymc_dp as pmdp
import pymc_dp.families
from pymc_dp.families.family import all_families, named
from pymc_dp.privacy import mechanisms
from pymc_dp.privacy.receipts import Draw, Receipt

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_of_likelihoods_is_up_to_date():
    assert (DOCS / "likelihoods.md").read_text() == runpy.run_path(str(DOCS / "make_table.py"))["table"]()


def test_the_page_of_proofs_is_up_to_date():
    assert (DOCS / "proofs.md").read_text() == runpy.run_path(str(DOCS / "make_proofs.py"))["page"]()


def promises():
    """Rows of the table of the guarantee: promise, argument, code and tests."""
    lines = (DOCS / "guarantee.md").read_text().splitlines()
    start = lines.index("| promise | argument | code | test |") + 2
    for line in lines[start:]:
        if not line.startswith("| "):
            return
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


@pytest.mark.parametrize("row", list(promises()), ids=lambda row: row[0])
def test_what_the_guarantee_names_is_there(row):
    """Code by its module and name below the package, tests by their file and name."""
    promise, argument, code, tests = row
    assert promise
    assert argument
    for name in re.findall(r"`([^`]+)`", code):
        assert pkgutil.resolve_name(f"pymc_dp.{name}") is not None
    names = re.findall(r"`([^`]+)`", tests)
    assert names
    for name in names:
        file, test = name.split("::")
        [path] = Path(__file__).parents[1].rglob(file)
        tree = ast.parse(path.read_text())
        assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name


def test_the_tests_that_the_page_of_expectations_names_are_there():
    named = re.findall(r"`(test_\w+\.py)::(\w+)`", (DOCS / "expectations.md").read_text())
    assert len(named) >= 9
    for file, test in named:
        [path] = Path(__file__).parents[1].rglob(file)
        assert test in {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}, test


@pytest.mark.parametrize("page", ["queries.md", "persons.md"])
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    """One after the other, as a newcomer would paste them."""
    monkeypatch.chdir(tmp_path)
    blocks, names = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.S), {}
    assert len(blocks) > 3
    for block in blocks:
        exec(compile(block, page, "exec"), names)


@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning", "ignore:invalid value encountered", "ignore:overflow encountered")
def test_the_page_on_noisy_numbers_runs(capsys):
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "noisy_numbers.md").read_text(), flags=re.DOTALL)
    assert len(blocks) > 10
    for block in blocks:
        exec(compile(block, "noisy_numbers.md", "exec"), names)
        assert np.isfinite(names["public"].compile_logp(mode="FAST_COMPILE")(names["public"].initial_point()))
    assert "rounded at random to a multiple of 3" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pymc_dp.UnaccountedWarning")
def test_the_page_on_any_likelihood_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "any_likelihood.md").read_text(), flags=re.DOTALL)
    names = {}
    exec(compile("\n".join(blocks), "any_likelihood.md", "exec"), names)
    assert abs(names["idata"].posterior["b"].mean() - 0.4) < 0.4  # 1.25 variances of what is told hold 1 of the dose
    assert "each answered with one of 26 levels" in " ".join(capsys.readouterr().out.split())


def test_the_page_on_censuses_runs(capsys):
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "census.md").read_text(), flags=re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "census.md", "exec"), names)
    assert (names["tree"].posterior["count_block"].sum("block") == 60).all()
    assert "sums over one table" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pymc_dp.UnaccountedWarning", "ignore:invalid value encountered")
def test_code_on_the_page_of_exact_conditional_draws_runs():
    """Without compiling, which would take longer than running it."""
    found: dict[str, object] = {}
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        for block in re.findall(r"```python\n(.*?)```", (DOCS / "gibbs.md").read_text(), flags=re.DOTALL):
            exec(block, found)
            if "steps" in found and "states" not in found:
                assert [step.name for step in found["steps"]] == ["forward_backward", "conjugate", "conjugate"]
    assert found["states"].shape == (100, 4, 12)
    agreed = (found["states"].mean(axis=0) > 0.5) == found["truth"]
    assert max(agreed.mean(), 1 - agreed.mean()) > 0.9  # the states have no names


def test_the_page_on_posteriors_runs_and_prints_what_it_says():
    """Its blocks of Python, one after the other; a block of text below is what was printed."""
    namespace, printed = {}, ""
    blocks = re.findall(r"^```(python|text)\n(.*?)^```", (DOCS / "posterior.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 7
    for kind, block in blocks:
        if kind == "text":
            assert block.strip() == printed.strip()
            continue
        output = io.StringIO()
        with contextlib.redirect_stdout(output), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(block, namespace)
        printed = output.getvalue()


@pytest.fixture
def another_folder_of_families():
    """Folders that a page appends are taken off again, and with them what was found there."""
    before = list(pymc_dp.families.__path__), set(sys.modules)
    all_families.cache_clear()
    yield
    pymc_dp.families.__path__[:] = before[0]
    for name in set(sys.modules) - before[1]:
        if name.startswith("pymc_dp.families."):
            del sys.modules[name]
    all_families.cache_clear()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_the_page_on_extending_adds_works_as_if_it_were_in_the_package(tmp_path, monkeypatch, another_folder_of_families):
    """A block that begins with the name of a file becomes that file; the others run in order. Neighbours are tried as for every family."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mechanisms, "MECHANISMS", dict(mechanisms.MECHANISMS))
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "extending.md").read_text(), flags=re.DOTALL)
    files = [block for block in blocks if block.startswith("# likelihoods/")]
    assert len(files) == 1
    for block in blocks:
        if block in files:
            file = tmp_path / block.splitlines()[0].removeprefix("# ")
            file.parent.mkdir()
            file.write_text(block)
        else:
            with pytensor.config.change_flags(cxx=""):
                exec(compile(block, "extending.md", "exec"), names)
    family = named("Gumbel")
    assert type(family).__module__ == "pymc_dp.families.gumbel"
    for example in family.EXAMPLES:
        test_families.test_law_of_the_sum_by_simulation(family, example)
        test_families.test_reach_is_never_exceeded_and_attained(family, example)
        test_families.test_spread_has_one_norm_for_all_values(family, example)
        test_families.test_plug_in_likelihood_is_pymc_s_own_up_to_a_constant(family, example)
        test_families.test_projected_means_are_those_of_values_of_the_domain(family, example)
        for setting in ("public cells", "private cells", "add or remove", "private cells, add or remove"):
            test_sensitivity.test_sums_in_cells_move_by_no_more_than_is_paid_for(family, example.domain, setting)

    released = names["released"]
    assert isinstance(released, pmdp.Release)
    released.to_netcdf("rounded.release")
    again = pmdp.Release.from_netcdf("rounded.release")
    assert again == released
    noise, receipt = names["RoundedToFive"](), Receipt([Draw("many", "laplace", 1, 1, 4.0, 50_000)], pmdp.Cost(Fraction(1)))
    spread = noise.draw(np.zeros(50_000, dtype=np.int64), 4.0, receipt).std()
    assert abs(spread / noise.noise(4.0, 1.0).standard_deviation - 1) < 0.03  # six standard errors

    @dataclass(frozen=True)
    class TooLittle(pmdp.Laplace):
        name = "too_little"

        def calibrate(self, difference, square, cost):
            return super().calibrate(difference, square, cost) / 2

    with pytest.raises(pmdp.Refusal, match="remembers its noise by a name"):
        pmdp.release(names["coin"], epsilon=0.3, mechanism=TooLittle())
    mechanisms.MECHANISMS["too_little"] = TooLittle
    with pytest.raises(pmdp.Refusal, match="cost more than is charged"):
        pmdp.release(names["coin"], epsilon=0.3, mechanism=TooLittle())


def wrong_examples(texts, folder, monkeypatch):
    """What is wrong with the examples in docstrings, by name: all go on from those of the first, each in a folder of its own."""
    wrong, names = {}, {}
    for name, text in texts.items():
        test = doctest.DocTestParser().get_doctest(text or "", names if not names else dict(names), name, None, 0)
        names = names or test.globs
        if not test.examples or any(doctest.SKIP in example.options for example in test.examples):
            wrong[name] = "no example, or one that is skipped"
            continue
        (folder / name).mkdir()
        monkeypatch.chdir(folder / name)
        said = io.StringIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            doctest.DocTestRunner().run(test, out=said.write, clear_globs=False)
        if said.getvalue():
            wrong[name] = said.getvalue()
    return wrong


def test_every_public_name_has_an_example_that_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    texts = {"pymc_dp": pymc_dp.__doc__} | {name: getattr(pymc_dp, name).__doc__ for name in pymc_dp.__all__}
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        assert wrong_examples(texts, tmp_path, monkeypatch) == {}


def test_examples_that_are_missing_skipped_or_wrong_are_noticed(tmp_path, monkeypatch):
    texts = {"start": ">>> a = 2", "right": ">>> a\n2", "missing": "Nothing.", "none": None, "wrong": ">>> a\n3", "raises": ">>> b"}
    skipped = {"skipped": ">>> a  # doctest: +SKIP"}
    assert set(wrong_examples(texts | skipped, tmp_path, monkeypatch)) == {"missing", "none", "wrong", "raises", "skipped"}
