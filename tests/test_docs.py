"""Pages that are made from the code are what the code makes."""

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


def test_the_table_of_likelihoods_is_up_to_date():
    assert (DOCS / "likelihoods.md").read_text() == runpy.run_path(str(DOCS / "make_table.py"))["table"]()


@pytest.mark.parametrize("page", ["queries.md"])
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    """One after the other, as a newcomer would paste them."""
    monkeypatch.chdir(tmp_path)
    blocks, names = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.S), {}
    assert len(blocks) > 3
    for block in blocks:
        exec(compile(block, page, "exec"), names)
