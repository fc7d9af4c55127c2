"""The planted mistakes still fit the package: every one is where it is said to be, and every test that kills one exists."""

import ast
from collections import Counter, defaultdict

import pytest
from mutants import MUTANTS
from planting import PAGE, ROOT, planters, run
from sampled import FIRST, WHOLE, seconds


def test_every_mistake_is_planted_in_one_place():
    """The text stands once in its file, and Python reads what takes its place."""
    files = defaultdict(list)
    for mutant in MUTANTS:
        files[mutant.file].append(mutant)
    for file, planted in files.items():
        text = (ROOT / "pymc_dp" / file).read_text()
        assert {mutant.name: text.count(mutant.old) for mutant in planted} == {mutant.name: 1 for mutant in planted}, file
        assert [mutant.name for mutant in planted if mutant.new == mutant.old] == []
        for mutant in planted:
            ast.parse(text.replace(mutant.old, mutant.new), filename=f"{file} with the mistake: {mutant.name}")


def test_every_mistake_has_a_name_and_a_test():
    assert len(MUTANTS) >= 40
    assert {name: times for name, times in Counter(one.name for one in MUTANTS).items() if times > 1} == {}
    for file in {one.killer.partition("::")[0] for one in MUTANTS}:
        [path] = (ROOT / "tests").rglob(file)
        tree = ast.parse(path.read_text())
        there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert {one.test for one in MUTANTS if one.killer.startswith(file)} <= {f"{file}::{name}" for name in there}


def test_what_is_sampled_is_there():
    assert seconds().keys() >= WHOLE | FIRST
    for name in seconds():
        file, _, function = name.partition("::")
        [path] = (ROOT / "tests").rglob(file)
        assert f"def {function}(" in path.read_text(), name


def test_the_page_lists_them_all():
    rows = [line.split(" | ")[:2] for line in PAGE.read_text().splitlines() if line.startswith("| ")][1:]
    assert [(name.removeprefix("| "), file) for name, file in rows] == [(one.name, f"`{one.file}`") for one in MUTANTS]


@pytest.fixture(scope="module")
def planter():
    with planters() as (one,):
        yield one


@pytest.mark.slow
def test_the_unchanged_copy_passes(planter):
    outcome = run(planter, list(dict.fromkeys(mutant.killer for mutant in MUTANTS)))
    assert outcome.passed, outcome.output[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mistake_is_found(mutant, planter):
    outcome = run(planter, [mutant.killer], mutant)
    assert outcome.killed, outcome.output[-2000:]
