"""The pictures of pictures.md: `python docs/make_pictures.py` runs the blocks of the page and writes docs/pictures_1.png and so on."""

import os
import re
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Run the blocks of the page in order, and write what each draws."""
    import matplotlib

    matplotlib.use("Agg")
    import numpy as np

    names: dict[str, object] = {}
    os.chdir(tempfile.mkdtemp())
    number = 0
    for block in re.findall(r"```python\n(.*?)```", (HERE / "pictures.md").read_text(), flags=re.DOTALL):
        for drawn in ("axes", "picture"):
            names.pop(drawn, None)
        exec(block, names)
        figure = None
        if "picture" in names:
            figure = names["picture"].viz["figure"].item()  # type: ignore[attr-defined]
        elif "axes" in names:
            figure = np.ravel(np.asarray(names["axes"], dtype=object))[0].figure
        if figure is not None:
            number += 1
            figure.savefig(HERE / f"pictures_{number}.png", dpi=90, facecolor="white", bbox_inches="tight")


if __name__ == "__main__":
    main()
