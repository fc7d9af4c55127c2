"""Random whole models on neighbouring data: see ``generator``. What fails prints its program, which can become a test of its own."""

import pytest
from generator import check, many

pytestmark = pytest.mark.filterwarnings("ignore")  # PyMC warns of imputation, of casts and of Python operations
QUICK, SLOW, NIGHTLY = 60, 20_000, 500_000
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
