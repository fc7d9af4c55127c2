"""Formulas as MathML, which browsers show by themselves: no page fetches a script. conf.py names this file among its extensions."""

import itertools
import re

from docutils import nodes
from latex2mathml import converter

BEHIND = r"(<mrow>|(?:[\[<=~]|&#x(?:00028|0005B|0002C|0003D|02264|0003C);)</mo>)"  # what a sign stands behind that belongs to a number
MENDED = [  # what browsers would set otherwise than TeX does
    (r"<mo>([A-Za-z]+)</mo>", r"<mi>\1</mi>"),  # names such as Var are no operators
    (r"(?<!<msub>)(?<!<msup>)(?<!<munder>)(<mi>[A-Za-z]{2,}</mi>)(?!<mo|</)", r'\1<mspace width="0.17em"/>'),
    (r"(<msub><mi>[A-Za-z]{2,}</mi><m[in]>\w</m[in]></msub>)(?!<mo|</)", r'\1<mspace width="0.17em"/>'),
    (r"(</mi>|</mn>|</msub>|</msup>|&#x00029;</mo>)(?=<mi>[A-Za-z]{2,}</mi>)", r'\1<mspace width="0.17em"/>'),
    (BEHIND + "<mo>&#x02212;", r'\1<mo form="prefix">&#x02212;'),
    ("<mo>(/|&#x0002F;)</mo>", r'<mo lspace="0" rspace="0">\1</mo>'),
    ("<mi>&#x0007E;</mi>", "<mo>&#x0223C;</mo>"),
    ("<mi>(&#x00393;|&#x003A3;|&#x003A6;)</mi>", r'<mi mathvariant="normal">\1</mi>'),
]


def mathml(tex: str, display: str) -> str:
    """A formula of TeX, in a line or on a line of its own."""
    # a name is converted as a whole; GitHub, which shows the pages too, forbids \operatorname
    text = converter.convert(tex.replace(r"\mathrm", r"\operatorname"), display=display)
    for pattern, replacement in MENDED:
        text = re.sub(pattern, replacement, text)
    sides = itertools.cycle(["prefix", "postfix"])  # of an absolute value
    return re.sub("<mo[^>]*>(&#x0007C;|&#x02016;)", lambda bar: f'<mo form="{next(sides)}" stretchy="false">{bar[1]}', text)


def inline(page, node) -> None:
    """No line ends between a formula and the comma behind it."""
    page.body.append(f'<span class="formula">{mathml(node.astext(), "inline")}{node.get("behind", "")}</span>')
    raise nodes.SkipNode


def display(page, node) -> None:
    """A formula on a line of its own."""
    page.body.append(mathml(node.astext(), "block"))
    raise nodes.SkipNode


def keep_commas(app, doctree, name) -> None:
    """Let formulas take the punctuation behind them."""
    for node in list(doctree.findall(nodes.math)):
        text = node.next_node(descend=False, siblings=True)
        if isinstance(text, nodes.Text) and (marks := re.match(r"[,.;:)]+", text)):
            node["behind"] = marks[0]
            [place] = [place for place, child in enumerate(text.parent) if child is text]  # texts that say the same are equal
            text.parent[place] = nodes.Text(text[marks.end() :])


def setup(app) -> None:
    """Sphinx calls this."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.connect("doctree-resolved", keep_commas)
