"""The planted mistakes still fit the package: every one is where it is said to be, and every test that kills one exists."""

import ast
from collections import Counter

import pytest
from mutants import MUTANTS, PAGE, ROOT, run

every_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)


@every_mutant
def test_a_mistake_is_planted_in_one_place(mutant):
    text = (ROOT / "pymc_dp" / mutant.file).read_text()
    assert text.count(mutant.old) == 1
    assert mutant.new != mutant.old
    ast.parse(text.replace(mutant.old, mutant.new))


def test_every_mistake_has_a_name_and_a_test():
    assert len(MUTANTS) >= 40
    assert {name: times for name, times in Counter(one.name for one in MUTANTS).items() if times > 1} == {}
    for file in {one.killer.partition("::")[0] for one in MUTANTS}:
        tree = ast.parse((ROOT / "tests" / file).read_text())
        there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert {one.test for one in MUTANTS if one.killer.startswith(file)} <= {f"{file}::{name}" for name in there}


def test_the_page_lists_them_all():
    rows = [line.split(" | ")[:2] for line in PAGE.read_text().splitlines() if line.startswith("| ")][1:]
    assert [(name.removeprefix("| "), file) for name, file in rows] == [(one.name, f"`{one.file}`") for one in MUTANTS]


@pytest.mark.slow
def test_the_unchanged_copy_passes():
    outcome = run(list(dict.fromkeys(one.killer for one in MUTANTS)))
    assert (outcome.code, outcome.imported) == (0, True), outcome.output[-2000:]


@pytest.mark.slow
@every_mutant
def test_every_mistake_is_found(mutant):
    outcome = run([mutant.killer], mutant)
    assert outcome.killed, outcome.output[-2000:]
