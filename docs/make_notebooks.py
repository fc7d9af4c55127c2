"""Run notebooks and keep their outputs: `python docs/make_notebooks.py [NAME ...]`, all of them without a name.

Each is run by its own kernel in a folder of its own, so that what it writes does not stay.
"""

import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
WHERE = re.compile(r"/[^\s:\"']*/(?=(site-packages|pymc_dp)/)|/[^\s:\"']*/ipykernel_\d+/\d+\.py:\d+: ")
"""Folders of the machine that ran a notebook, before what is installed there, and the files that it kept cells in."""


def executed(path: Path, seconds: int = 600):
    """The notebook with new outputs; an error in a cell is raised."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, 4)
    # Where there is no BLAS, PyTensor warns of it. Nothing here needs one, and readers have machines of their own.
    os.environ["PYTENSOR_FLAGS"] = ",".join(filter(None, [os.environ.get("PYTENSOR_FLAGS"), "blas__ldflags="]))
    with TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=seconds, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when each cell ran
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                output.text = WHERE.sub("", output.text)
    return notebook


def main(names: list[str]) -> None:
    """Run them one after the other."""
    import nbformat

    for path in [NOTEBOOKS / f"{name}.ipynb" for name in names] or sorted(NOTEBOOKS.glob("*.ipynb")):
        start = perf_counter()
        nbformat.write(executed(path), path)
        print(f"{path.stem}: {perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
