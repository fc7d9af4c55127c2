"""A progress bar for long work, as PyMC draws its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(doing: str, units: str, total: int, shown: bool) -> Iterator[Callable[[], None]]:
    """Counts what is done, of so many units; shown as a bar, or not at all."""
    if not shown:
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(TextColumn(doing), BarColumn(), MofNCompleteColumn(), TextColumn(units), TimeRemainingColumn()) as bar:
        task = bar.add_task("", total=total)
        finished, step = 0, max(total // 200, 1)

        def advance() -> None:
            nonlocal finished
            finished += 1
            if finished % step == 0 or finished == total:
                bar.update(task, completed=finished)

        yield advance
