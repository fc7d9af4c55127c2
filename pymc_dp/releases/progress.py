"""A progress bar for rows that are being read, as PyMC draws its own. It is meant for those who hold the records and read them.

It shows how many rows were read, and how many a second; nothing of what is in them. The number of rows is public under "replace". Where it
is private, so is what the bar shows: it is then drawn on a terminal only, never into a notebook, a file or a log, which others may get to
see. It is not part of the release, is not there unless it was asked for, and is wiped off at the end. Whatever goes wrong with it, the
records are read.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any

import numpy as np

from pymc_dp.privacy.accounting import Refusal

SECONDS = 0.5
"""Between two drawings of the bar."""

ANYTHING = (Exception, SystemExit)
"""What goes wrong with a bar: rich leaves the program where nobody reads what it writes."""


def check_progressbar(progressbar: object, data: object) -> bool:
    """True or False, or a refusal before anything is paid; a bar needs rows that are read."""
    if not isinstance(progressbar, bool):
        raise Refusal("progressbar must be True or False. Leave it out for no bar.")
    if progressbar and data is None:
        raise Refusal("A bar shows rows of data= that are read. Leave progressbar out where the model observes the records.")
    return progressbar


def shown(blocks: Iterable[Mapping[str, np.ndarray]], records: int | None) -> Iterator[Mapping[str, np.ndarray]]:
    """Hand on blocks unchanged, while a bar says how many rows were read.

    Parameters
    ----------
    blocks : iterable of mappings
    records : int or None
        How many rows there are, where that is public.
    """
    bar, rows_read, drawn = None, 0, monotonic()
    with suppress(*ANYTHING):
        bar = _started(records)
    try:
        for block in blocks:
            yield block
            rows_read += len(next(iter(block.values())))
            if bar is not None and monotonic() - drawn > SECONDS:
                drawn = monotonic()
                with suppress(*ANYTHING):
                    bar.update(bar.task_ids[0], completed=rows_read, refresh=True)
    finally:
        with suppress(*ANYTHING):
            if bar is not None:
                bar.stop()


def _started(records: int | None) -> Any:
    """A bar that draws itself when it is told to, in no thread of its own; None where it may not be seen."""
    if records is None and not sys.stderr.isatty():
        return None
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rows(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = "" if not task.speed else f", {task.speed:,.0f} rows a second"
            return Text(f"{task.completed:,.0f} rows{speed}")

    columns = (TextColumn("reading"), BarColumn(), Rows(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True)
    bar.add_task("", total=records)
    bar.start()
    return bar
