"""Pages that are made from the code are what the code makes."""

import contextlib
import io
import re
import runpy
import warnings
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def test_the_table_of_likelihoods_is_up_to_date():
    assert (DOCS / "likelihoods.md").read_text() == runpy.run_path(str(DOCS / "make_table.py"))["table"]()


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
