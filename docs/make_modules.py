"""Makes docs/modules.md: every module with the first sentence of what it says of itself, folder by folder.

python docs/make_modules.py
"""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "modules.md"
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "properties")]

from test_house import PACKAGE, ROOMS  # noqa: E402


def sentence(path):
    """The first paragraph of a module's docstring, as Markdown."""
    said = ast.get_docstring(ast.parse(path.read_text())) or ""
    return re.sub(r"``([^`]+)``", r"`\1`", " ".join(said.split("\n\n")[0].split())).replace(" -> ", " → ").replace("|", "\\|")


def page():
    """The page, as text."""
    lines = [
        "# Modules",
        "",
        "For those who look for a place in the code. It is made by `python docs/make_modules.py` from the first paragraph of every module.",
        "The order of the folders is explained in [architecture](architecture.md). An arrow stands between what a module is given and what",
        "it makes of that. Papers have the short names of [theory](theory.md), and words such as *cell* and *plug-in* are in the",
        "[glossary](glossary.md).",
    ]
    for room in ROOMS:
        paths = sorted((PACKAGE / room).rglob("*.py")) if (PACKAGE / room).is_dir() else [PACKAGE / f"{room}.py"]
        modules = [path for path in paths if path.name != "__init__.py"]
        lines += ["", f"## `{room}`", "", f"{ROOMS[room][0].upper()}{ROOMS[room][1:]}.", "", "| module | what lives there |", "|---|---|"]
        lines += [f"| `{path.relative_to(PACKAGE).with_suffix('')}` | {sentence(path)} |" for path in modules]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page())
