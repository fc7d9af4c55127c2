"""Formulas of the pages, as docs/formulas.py turns them into MathML: uv run --group docs pytest tests/properties/test_formulas.py."""

import re
import runpy
from pathlib import Path

import pytest

nodes = pytest.importorskip("docutils.nodes", reason="with: uv run --group docs pytest")
pytest.importorskip("latex2mathml", reason="with: uv run --group docs pytest")
DOCS = Path(__file__).parents[2] / "docs"
FORMULAS = runpy.run_path(str(DOCS / "formulas.py"))


def formulas():
    """Every formula of every page, with the page."""
    for page in sorted(DOCS.glob("*.md")):
        text = re.sub(r"^```.*?^```|`[^`]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for display, inline in re.findall(r"\$\$(.+?)\$\$|\$([^$]+)\$", text, flags=re.DOTALL):
            yield page.name, display or inline


def test_every_formula_is_understood_here_and_on_github():
    """A command that the converter does not know is left as it is. GitHub forbids one, and takes a backslash before a sign away."""
    found = list(formulas())
    assert len(found) > 1000
    for page, tex in found:
        assert "\\" not in FORMULAS["mathml"](tex, "inline"), (page, tex)
        assert "\\operatorname" not in tex, (page, tex)
        assert not re.search(r"\\[^A-Za-z]", tex), (page, tex)
        assert all(tex.count(left) == tex.count(right) for left, right in ("{}", ["\\left", "\\right"])), (page, tex)


def test_signs_and_bars_belong_to_what_follows():
    assert '<mo form="prefix">&#x02212;</mo><mn>1</mn>' in FORMULAS["mathml"]("[-1, 1]", "inline")
    sides = re.findall(r'form="(\w+)" stretchy="false">&#x0007C;', FORMULAS["mathml"]("|a| + |b|", "inline"))
    assert sides == ["prefix", "postfix"] * 2


def test_a_formula_takes_the_comma_behind_it_and_no_other():
    def text(paragraph):
        return "".join(child.astext() + child.get("behind", "") if isinstance(child, nodes.math) else child for child in paragraph)

    paragraph = nodes.paragraph("", "", nodes.Text("a"), nodes.Text(", "), nodes.math("", "b"), nodes.Text(", "), nodes.math("", "c"))
    FORMULAS["keep_commas"](None, paragraph, "page")
    assert text(paragraph) == "a, b, c"
    assert [child for child in paragraph if isinstance(child, nodes.Text)] == ["a", ", ", " "]
