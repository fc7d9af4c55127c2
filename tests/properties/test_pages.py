"""Blocks of the README and of user pages run as pasted, in order; notebooks hold the outputs of a run without errors."""

import contextlib
import io
import json
import re
import runpy
import shutil
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAGES = ["choosing.md", "large_data.md", "reading.md", "missing.md", "budgets.md"]
SAMPLED = ["start.md", "planning.md", "networks_guide.md", "draws.md", "intervals.md", "checking.md", "federations.md", "pictures.md"]
SAMPLED += ["pipeline.md", "bins.md"]


def blocks(page):
    """The blocks of a page in order, each with its kind."""
    return re.findall(r"^```(python|text)\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def words(text):
    """Without numbers and the width of columns, in which every run differs."""
    return re.sub(r"[-+]?\d[\d.,e]*", "0", text).split()


def run(page, folder, monkeypatch):
    """Run a page's Python as a newcomer would paste it; a block of text says what the block before it printed."""
    monkeypatch.chdir(folder)
    names, printed, many = {}, "", 0
    for kind, block in blocks(page):
        if kind == "text":
            assert words(block) == words(printed)
            continue
        said = io.StringIO()
        with contextlib.redirect_stdout(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(block, page.name, "exec"), names)
        printed, many = said.getvalue(), many + 1
    assert many


@pytest.mark.compiled
def test_the_readme_runs_as_pasted_and_prints_what_it_says(tmp_path, monkeypatch):
    assert len([kind for kind, _ in blocks(ROOT / "README.md") if kind == "python"]) >= 4
    run(ROOT / "README.md", tmp_path, monkeypatch)


def test_the_readme_is_short_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert link.startswith("https://") or (ROOT / link).exists(), link


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_notebook_tells_where_it_was_run(notebook):
    assert not re.search(r"/(tmp|work|home|root|Users)/|ipykernel_", notebook.read_text())


def test_a_page_that_prints_something_else_is_noticed(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text('```python\nprint("one 1")\n```\n\n```text\none 2.5\n```\n')
    run(page, tmp_path, monkeypatch)
    page.write_text('```python\nprint("one 1")\n```\n\n```text\ntwo 1\n```\n')
    with pytest.raises(AssertionError):
        run(page, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_user_page_run(page, tmp_path, monkeypatch):
    run(ROOT / "docs" / page, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("page", SAMPLED)
def test_the_blocks_of_a_page_that_samples_run(page, tmp_path, monkeypatch):
    run(ROOT / "docs" / page, tmp_path, monkeypatch)


def test_no_page_has_code_that_no_test_runs():
    """The tests name the pages whose blocks they run."""
    tests = [Path(__file__), Path(__file__).with_name("test_docs.py"), ROOT / "tests" / "releases" / "test_command.py"]
    run_by_tests = {page for test in tests for page in re.findall(r'"(\w+\.md)"', test.read_text())}
    with_code = {page.name for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")] if "```python" in page.read_text()}
    assert len(with_code) > 20
    assert with_code - run_by_tests - {"reference.md"} == set()  # that page is made of docstrings, which run


def outputs(notebook):
    """Of every cell of code, its number and its outputs."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [(cell["execution_count"], cell["outputs"]) for cell in cells]


def wrong_outputs(notebook):
    """What is wrong with a notebook's outputs: cells that did not run in order, errors, warnings, and no output."""
    found = outputs(notebook)
    wrong = [] if [number for number, _ in found] == list(range(1, len(found) + 1)) else ["not run from the first cell to the last"]
    wrong += [one["evalue"] for _, many in found for one in many if one["output_type"] == "error"]
    wrong += [one["text"] for _, many in found for one in many if one.get("name") == "stderr" and "Warning" in "".join(one["text"])]
    return wrong + ([] if any(many for _, many in found) else ["no output"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_holds_the_outputs_of_a_run_without_errors(path):
    text = path.read_text()
    assert wrong_outputs(json.loads(text)) == []
    assert len(text) < 1_000_000
    assert re.findall(r"/[^\s:\"]*/(?:site-packages|pymc_dp)/", text) == [], "folders of the machine that ran it"
    assert "](../" not in text.replace("](../docs/", ""), "a link that leads nowhere on the site"
    assert f"examples/{path.stem}\n" in (ROOT / "docs" / "examples.md").read_text()


def test_outputs_that_are_wrong_are_noticed():
    def notebook(number, *kept):
        return {"cells": [{"cell_type": "code", "execution_count": number, "outputs": list(kept)}]}

    told = {"output_type": "stream", "text": "1"}
    assert wrong_outputs(notebook(1, told)) == []
    assert wrong_outputs(notebook(2, told))
    assert wrong_outputs(notebook(None, told))
    assert wrong_outputs(notebook(1))
    assert wrong_outputs(notebook(1, {"output_type": "error", "evalue": "no"})) == ["no"]
    warned = {"output_type": "stream", "name": "stderr", "text": ["1: UserWarning: look", " 2"]}
    assert wrong_outputs(notebook(1, warned))
    assert wrong_outputs(notebook(1, warned | {"text": "NUTS[nutpie]: [share]"})) == []


def test_there_are_notebooks_enough_for_the_list_of_examples():
    listed = re.findall(r"^examples/(\w+)$", (ROOT / "docs" / "examples.md").read_text(), flags=re.MULTILINE)
    assert sorted(listed) == [path.stem for path in NOTEBOOKS]
    assert len(listed) >= 12


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path):
    """By a kernel, as a reader's: uv run --group docs pytest -m slow tests/properties/test_pages.py."""
    pytest.importorskip("nbclient", reason="with: uv run --group docs pytest")
    again = runpy.run_path(str(ROOT / "docs" / "make_notebooks.py"))["executed"](path)
    assert wrong_outputs(again) == []


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    """From a copy, because the build writes pages of its own beside those that are read."""
    build = pytest.importorskip("sphinx.cmd.build", reason="with: uv run --group docs pytest")
    for folder in ("docs", "notebooks", ".github"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("api", "examples", "_build"))
    shutil.copy(ROOT / "CHANGELOG.md", tmp_path)
    assert build.main(["-q", "-W", "--keep-going", str(tmp_path / "docs"), str(tmp_path / "site")]) == 0
    assert (tmp_path / "site" / "api" / "pymc_dp.sample.html").exists()
    theory = (tmp_path / "site" / "theory.html").read_text()
    assert theory.count("<math ") > 500, "formulas are typeset"
    assert not re.search(r"<(?:script|link)[^>]* (?:src|href)=\"(?:https?:)?//", theory), "and a page can be read offline"
