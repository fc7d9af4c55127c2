"""A release that is ready to be paid for: every refusal is behind it. It holds no record itself, and knows which function reads them."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytensor

from pymc_dp.families.values import Labels
from pymc_dp.plans.division import Divided
from pymc_dp.plans.hints import warn_of_sparse_cells
from pymc_dp.plans.missing import warn_of_missing
from pymc_dp.plans.plan import Plan
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.guard import PACKAGE, UnaccountedWarning
from pymc_dp.privacy.receipts import Receipt
from pymc_dp.releases.cells import PublicCells
from pymc_dp.releases.release import Release


@cache
def warn_that_nothing_remembers() -> None:
    """Cached, so that it speaks once per process; it points at the user's line, not at ours."""
    message = "Nothing remembers what is spent on these records. Write ledger=pymc_dp.Ledger(path, epsilon=...)."
    warnings.warn(message, UnaccountedWarning, skip_file_prefixes=(PACKAGE,))


def check_doubles() -> None:
    """Refuse what PyTensor would compute in numbers of half the length: of some models PyMC could then draw nothing."""
    if pytensor.config.floatX != "float64":
        raise Refusal(
            f"PyTensor is set to {pytensor.config.floatX}, in which PyMC cannot draw from all models. Write"
            ' pytensor.config.floatX = "float64" before the model is made.'
        )


@dataclass(frozen=True, eq=False)
class PreparedRelease:
    """A release of which nothing is refused any more and nothing has been paid: ``prepared`` makes it.

    Attributes
    ----------
    plan : Plan
        What will be released: no record is in it.
    crowds : tuple of (str, int, int)
        Of every observed variable its name, its number of cells and of records, as far as they are public.
    accounted : bool
        Whether a ledger remembers what is spent.
    draw : callable
        Charges the ledger, reads the records, and adds the noise.
    pay, finish : callable
        The first and the last part of that, where records are read elsewhere: to a receipt, and from it and exact sums to the release.
    opened : tuple of PublicCells
        Of every observed variable that is released by itself, all that is public.
    columns : dict of str to dict of str to int
        Those that are read, of records beside the model, and of each at which place its labels stand.
    parts : tuple of Divided
        How epsilon is divided among observed variables that are released by themselves.
    """

    plan: Plan
    crowds: tuple[tuple[str, int, int], ...]
    accounted: bool
    draw: Callable[[], Release]
    pay: Callable[[], Receipt]
    finish: Callable[[Receipt, Mapping[str, np.ndarray] | None], Release]
    opened: tuple[PublicCells, ...]
    columns: Mapping[str, Labels]
    parts: tuple[Divided, ...] = ()

    def pay_and_draw(self) -> Release:
        """The release, once it has been said what nobody declared; where warnings are errors, nothing is spent."""
        self.warn()
        return self.draw()

    def warn(self) -> None:
        """Say what nobody declared."""
        if self.plan.protection.missing is None:
            warn_of_missing()
        warn_of_sparse_cells(self.crowds)
        if not self.accounted:
            warn_that_nothing_remembers()
