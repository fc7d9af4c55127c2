"""Pages that are made from the code are what the code makes."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def test_the_table_of_likelihoods_is_up_to_date():
    assert (DOCS / "likelihoods.md").read_text() == runpy.run_path(str(DOCS / "make_table.py"))["table"]()
