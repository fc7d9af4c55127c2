"""A release whose records are read in parts, each by whoever holds it: the exact sums of the parts are added up, and noise is added
once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
import pymc as pm

from pymc_dp.plans.protection import in_context, protection_of
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.guard import boundary
from pymc_dp.privacy.layout import counted
from pymc_dp.privacy.receipts import Receipt
from pymc_dp.releases.from_data import sums_of, unread_in
from pymc_dp.releases.from_records import prepared
from pymc_dp.releases.prepared import PreparedRelease
from pymc_dp.releases.release import Release
from pymc_dp.releases.shared_plan import PartialStatistics, SharedPlan, added_up, part_of
from pymc_dp.releases.source import Elsewhere

MOST_PARTS = 10**6


@dataclass(eq=False, repr=False)
class SharedRelease:
    """A release that is paid for, and whose records are still to be read: ``share_out`` makes it, and it stays where it was made.

    Attributes
    ----------
    plan : SharedPlan
        For ``partial_statistics``.
    """

    plan: SharedPlan
    _ready: PreparedRelease
    _receipt: Receipt
    _records: int | None

    def __repr__(self) -> str:
        return f"SharedRelease({', '.join(self.plan.columns)}; {counted(self.plan.parts, 'part')})"

    def __reduce__(self) -> tuple:
        """The right to draw noise is there once."""
        raise TypeError("A shared release cannot be copied or pickled. Its plan can.")


def share_out(model: pm.Model | None = None, *, parts: int, records: int | None = None, **arguments: Any) -> SharedRelease:
    """Pay for a release whose records are read in parts, by processes, machines or an engine of your own.

    The ledger is charged here, before a record is read. A worker then calls ``partial_statistics(shared.plan, chunk, part)`` for its part
    of the records, and ``add_up`` makes one release of all parts. Which records are in which part is yours to say: every record is in one,
    and in the same if that is computed again. A record then moves the sums of all parts as far as those of its own part, and so as far as
    those of ``release``: the noise is the same.

    With ``unit=Person(...)`` every part is given the whole table, because which rows of a person count is decided by all of them. Each
    person counts in one part, which a hash of the identifier decides.

    Parameters
    ----------
    model : pm.Model, optional
        Built on a few placeholder rows, as for ``release(data=...)``.
    parts : int
        In how many parts the records are.
    records : int, optional
        The number of all records, which is public under "replace". Leave it out with neighbours="add_remove".
    **arguments
        The arguments of ``release`` without ``data``; ``epsilon`` is required.

    Returns
    -------
    SharedRelease

    Raises
    ------
    Refusal
        What ``release(data=...)`` refuses.

    Examples
    --------
    >>> import pandas as pd
    >>> with pm.Model() as votes:
    ...     _ = pm.Bernoulli("vote", pm.Beta("share", 1, 1), observed=np.zeros(2, dtype=int))
    >>> shared = pmdp.share_out(votes, parts=2, records=5, epsilon=1.0)
    >>> chunks = [pd.DataFrame({"vote": [0, 1, 1]}), pd.DataFrame({"vote": [1, 0]})]
    >>> parts = [pmdp.partial_statistics(shared.plan, chunk, k) for k, chunk in enumerate(chunks)]
    >>> int(pmdp.add_up(shared, parts)["vote"].n[0])
    5
    """
    if "epsilon" not in arguments or "data" in arguments:
        raise Refusal("share_out needs epsilon and no data. Write for example share_out(model, parts=8, records=10**6, epsilon=1.0).")
    parts, records = _of_numpy(parts), None if records is None else _of_numpy(records)
    if type(parts) is not int or not 1 <= parts <= MOST_PARTS:
        raise Refusal(f"parts must be a whole number from 1 to {MOST_PARTS:,}. Write in how many parts the records are.")
    kinds = ("bounds", "public", "unit", "neighbours", "missing", "disjoint")
    protection = protection_of(**{name: arguments.pop(name) for name in kinds if name in arguments}, persons=True)
    if protection.sized != (type(records) is int and records > 0):
        raise Refusal(
            'Write records=, a whole number: how many records all parts have together, which is public under "replace".'
            if protection.sized
            else "The number of records is private here. Leave records out."
        )
    ready = prepared(model, protection, data=Elsewhere(records or 0), **arguments)
    ready.warn()
    person = None if protection.person is None else (str(protection.person.key), protection.person.at_most)
    unread = unread_in(in_context(model), (*ready.columns, *(() if person is None else person[:1])))
    plan = SharedPlan(uuid4().hex, parts, ready.columns, unread, protection.sized, ready.opened, person)
    return SharedRelease(plan, ready, ready.pay(), records)


@boundary
def partial_statistics(plan: SharedPlan, chunk: object, part: int, *, whole: bool = False) -> PartialStatistics:
    """Exact sums over one part of the records of a shared release: private data, which only ``add_up`` is to see.

    Parameters
    ----------
    plan : SharedPlan
        ``shared.plan``; it pickles.
    chunk : object
        The records of this part, as ``release`` takes them as ``data``.
    part : int
        Which part it is, from 0.
    whole : bool
        That the chunk is the whole table, of which the persons of this part are to count: for ``unit=Person(...)``, and nothing else. Rows
        that are missing from it do not count; those of others change nothing.

    Returns
    -------
    PartialStatistics
        It pickles. Computed again it is the same.

    Raises
    ------
    Refusal
        For a chunk that is no table or lacks a column, and a part that there is not. Nothing that a record holds is in the message.
    PrivateComputationError
        When something fails inside; always the same words.

    Examples
    --------
    >>> import pandas as pd
    >>> with pm.Model() as votes:
    ...     _ = pm.Bernoulli("vote", pm.Beta("share", 1, 1), observed=np.zeros(2, dtype=int))
    >>> shared = pmdp.share_out(votes, parts=1, records=3, epsilon=1.0)
    >>> pmdp.partial_statistics(shared.plan, pd.DataFrame({"vote": [0, 1, 1]}), 0)
    PartialStatistics(part 0)
    """
    if not isinstance(plan, SharedPlan):
        raise Refusal("The plan is none of a shared release. Write partial_statistics(shared.plan, chunk, part).")
    part = _of_numpy(part)
    if type(part) is not int or not 0 <= part < plan.parts:
        raise Refusal(f"There are parts 0 to {plan.parts - 1}. Write which of them this is: partial_statistics(shared.plan, chunk, 0).")
    if whole != (plan.person is not None):
        raise Refusal(
            "A part is of single records, which the whole table would count in every part. Leave whole out."
            if whole
            else "Which rows of a person count is decided by all of them. Give every part the whole table, of which it counts its own"
            " persons: partial_statistics(shared.plan, table, part, whole=True)."
        )
    return part_of(plan, chunk, part, sums_of)


def add_up(shared: SharedRelease, parts: Iterable[PartialStatistics]) -> Release:
    """The release of all parts together: noise is added to the sums of all, once.

    Every part counts once, however often it was computed and in whatever order parts come. Of a part that comes several times the first
    is taken.

    Parameters
    ----------
    shared : SharedRelease
    parts : iterable of PartialStatistics

    Returns
    -------
    Release
        Before noise, bit by bit that of ``release`` of all records.

    Raises
    ------
    Refusal
        When a part is missing or of another release, when parts have another number of records than was said, and the second time.

    Examples
    --------
    >>> import pandas as pd
    >>> with pm.Model() as votes:
    ...     _ = pm.Bernoulli("vote", pm.Beta("share", 1, 1), observed=np.zeros(2, dtype=int))
    >>> shared = pmdp.share_out(votes, parts=1, records=3, epsilon=1.0)
    >>> part = pmdp.partial_statistics(shared.plan, pd.DataFrame({"vote": [0, 1, 1]}), 0)
    >>> pmdp.add_up(shared, [part, part])["vote"].noisy.shape
    (1, 1)
    """
    if not isinstance(shared, SharedRelease):
        raise Refusal("This is no shared release. Write shared = pymc_dp.share_out(...), and add_up(shared, parts).")
    return shared._ready.finish(shared._receipt, _together(shared, parts))


def _of_numpy(number: int) -> int:
    """A whole number of NumPy, such as of a loop over an array, as one of Python."""
    return int(number) if isinstance(number, np.integer) else number


@boundary
def _together(shared: SharedRelease, parts: Iterable[PartialStatistics]) -> dict[str, np.ndarray]:
    return added_up(shared.plan, parts, shared._records)
