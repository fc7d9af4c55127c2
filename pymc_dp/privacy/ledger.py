"""The ledger: a file that remembers what was spent on one data set, that processes share, and that refuses to spend more than was granted.

Every release is covered by a charge that was committed to disk before a record was read; nothing is ever paid back. ``journal``
keeps the file, ``entries`` what stands in it, ``budget`` the sums. docs/guarantee.md says what a ledger promises and what it cannot.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pymc_dp.privacy import budget
from pymc_dp.privacy.accounting import ALL_ROWS, Cost, Refusal, as_cost, check_neighbours, exact_delta, exact_epsilon, protected
from pymc_dp.privacy.budget import WHOLE, Grant, Units, units_of
from pymc_dp.privacy.calls import attribute_error, explained, not_opened
from pymc_dp.privacy.charges import Charge, Step, check_fits, cost_of_draws
from pymc_dp.privacy.entries import cost_facts, cost_in, draw_facts, draws_in, follows, granted_in, readable, session_in, table, verified
from pymc_dp.privacy.journal import Journal, Opened
from pymc_dp.privacy.layout import aligned, in_html, notes_in_html, page, sentences, wrapped
from pymc_dp.privacy.receipts import Draw, Receipt

if TYPE_CHECKING:
    import pandas as pd

INSTEAD = {
    **dict.fromkeys(("epsilon", "delta", "spent", "left", "balance"), "Write ledger.granted, ledger.remaining() or ledger.entries()."),
    **dict.fromkeys(("to_dataframe", "to_frame", "history"), "Write ledger.entries()."),
    **dict.fromkeys(("close", "save", "commit"), "Nothing is open between two calls, and each is on disk when it returns."),
}


class Ledger:
    """The budget of one data set, in a file.

    Every process that releases anything about the same records opens the same file. A charge is written before the records are
    read, and stays whatever happens then. Spending is within the grant while the sum of pure epsilons is at most epsilon, or,
    where delta is positive, while the sum of rho is at most what (epsilon, delta) allows (each a valid stopping rule when the
    next cost depends on earlier answers: Whitehouse, Ramdas, Rogers, Wu 2023, Theorem 1; one of the two needs no delta, so
    that either may hold).

    Parameters
    ----------
    path : str or Path
        The file, on a local disk. A second file of the same name with ``.lock`` after it belongs to it.
    epsilon, delta : numbers, optional
        What may be spent in all, in nats. Needed with ``create=True``; for an existing ledger they must be what the ledger says.
    neighbours : {"replace", "add_remove"}, optional
        Which data sets count as neighbours in everything that is charged; "replace" where a ledger is created without it.
    unit : str, Individual or Person, optional
        What is protected; "row" where a ledger is created without it.
    parts : sequence of str
        Names of disjoint parts of the data set, by something public that never changes. What is charged to different parts does
        not add up, because a record is in one of them only.
    create : bool
        Make the file, which must not exist.
    anchor : str, optional
        The head that stands in the newest result. The ledger is refused unless it remembers that result; a file that was copied,
        moved or put back by itself is taken only with this proof that it lacks nothing.

    Raises
    ------
    Refusal
        When the file is missing, damaged, locked for long, a copy, older than it should be, or says something else.

    Examples
    --------
    >>> ledger = pmdp.Ledger("survey.ledger", epsilon=2.0, create=True)
    >>> released = pmdp.release(model, epsilon=0.5, ledger=ledger)
    >>> ledger.remaining()
    Cost(epsilon=1.5, delta=0)
    """

    @explained
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        epsilon: object = None,
        delta: object = None,
        neighbours: str | None = None,
        unit: object = None,
        parts: Sequence[object] = (),
        create: bool = False,
        anchor: str | None = None,
    ) -> None:
        try:
            self.path = Path(os.path.realpath(os.fsdecode(path)))
        except (TypeError, ValueError):
            raise Refusal("path must be the name of a file. Write for example Ledger('survey.ledger').") from None
        self._journal, self._first = Journal(self.path, follows), ""
        if isinstance(parts, str):
            raise Refusal('parts must be a list of names. Write for example parts=("north", "south").')
        names = tuple(map(str, parts))
        if create:
            self._create(epsilon, 0 if delta is None else delta, neighbours or "replace", unit or "row", names)
        with self._journal.opened(anchor) as opened:
            entries = verified(opened)
        facts, granted = entries[0].facts, granted_in(entries[-1])
        self._first = entries[0].hash
        self.neighbours: str = facts["neighbours"]
        self.unit: str = facts["unit"]
        self.parts: tuple[str, ...] = tuple(facts["parts"])
        wanted = {
            "epsilon": None if epsilon is None else str(exact_epsilon(epsilon)),
            "delta": None if delta is None else str(exact_delta(delta)),
            "neighbours": neighbours,
            "unit": None if unit is None else _relation(unit),
            "parts": names or None,
        }
        stored = asdict(granted) | {"neighbours": self.neighbours, "unit": self.unit, "parts": self.parts}
        for name, value in wanted.items():
            if value is not None and value != stored[name]:
                words = stored[name] if name in {"epsilon", "delta"} else repr(stored[name])
                raise Refusal(f"{self.path.name} was made with {name}={words}. Write that, or leave {name} out.")

    # ---------- what one can ask

    @property
    def head(self) -> str:
        """The hash of the newest entry: the anchor that every result carries."""
        with self._open() as opened:
            return opened.newest().hash

    @property
    def granted(self) -> Cost:
        """What may be spent in all."""
        with self._open() as opened:
            return granted_in(opened.newest()).cost

    def remaining(self, after: Iterable[object] = (), *, part: str | None = None) -> Cost:
        """What may still be spent, now or after a planned batch of releases; nothing is charged.

        Parameters
        ----------
        after : iterable of Cost, Step or numbers
            Planned costs; a number is a pure epsilon. ``compose`` says what a batch costs by itself.
        part : str, optional
            The part of the data set that pays; all of it if left out.

        Returns
        -------
        Cost
            ``epsilon``: of the largest release with Laplace noise that fits, in nats. ``delta``: of the grant. ``rho``: of the
            largest release with Gaussian noise that fits; None where delta is 0.

        Raises
        ------
        Refusal
            When the batch does not fit.
        """
        planned, where = list(after), self._part(part)
        with self._open() as opened:
            entry = opened.newest()
            stored = dict[str, Units]()
            for step in (cost for cost in planned if isinstance(cost, Step)):
                if step.session not in stored:
                    stored[step.session] = self._stored(opened, step, where)
        spent, granted = entry.facts["spent"], granted_in(entry)
        for cost in (cost if isinstance(cost, Step) else as_cost(cost) for cost in planned):
            if isinstance(cost, Step):
                units, stored[cost.session] = budget.increment(stored[cost.session], units_of(cost.total)), units_of(cost.total)
            else:
                units = units_of(cost)
            check_fits(cost, units, spent, granted, where, self.path.name)
            spent = budget.add(spent, units, where)
        return budget.cost_left(spent, granted, where)

    def session(self, name: str) -> tuple[Charge, ...]:
        """What a session has charged, in order, after the whole chain has been verified; nothing where it has charged nothing.

        ``cost`` is what a draw costs by itself, ``draws[0].variable`` the question in words. That it was charged says not that it was
        answered: a crash may have come between.
        """
        with self._open() as opened:
            entries = verified(opened)
        return tuple(
            Charge(entry.facts["once"], draws_in(entry), cost_in(entry.facts["cost"]), entry.hash)
            for entry in entries
            if session_in(entry).get("name") == name
        )

    def paid_for(self, head: str) -> str | None:
        """From which part the result with this head was paid; None where this ledger did not pay for it."""
        with self._open() as opened:
            redeemed = opened.find("WHERE kind = 'redeem' AND hash = ?", head)
            charge = redeemed and opened.find("WHERE kind = 'charge' AND once = ?", redeemed.facts["once"])
        return charge.facts["part"] if charge else None

    def entries(self) -> "pd.DataFrame":
        """Everything that was written, one row per entry, after the whole chain has been verified.

        Columns: time (UTC), kind (open, grant, move, charge), part, session (its name), what (variables or questions), disjoint (variables
        of which the user said that each person has records in only one: the largest of their costs counts), public (arrays), mechanism,
        epsilon, delta, rho, redeemed (whether the records were read), hash. Of a session's charges epsilon and rho are what it costs more
        than before.
        """
        with self._open() as opened:
            return table(verified(opened))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise attribute_error(self, name, INSTEAD)

        __enter__ = __exit__ = not_opened("Write ledger = pymc_dp.Ledger(...), without with; nothing is open between two calls.")

    def __repr__(self) -> str:
        """What was granted, what is left, and the entries."""
        return "\n".join([wrapped(self._promise()), *sentences(self._left(), "  ", "    "), aligned(*readable(self.entries()))])

    def _repr_html_(self) -> str:
        return page(f"<p><b>{escape(self._promise())}</b></p>", notes_in_html(self._left()), in_html(*readable(self.entries())))

    def _left(self) -> list[tuple[str, str]]:
        """What is left, of all of it and of each part."""
        return [(f"left for {part}" if part else "left", budget.words(self.remaining(part=part or None))) for part in (WHOLE, *self.parts)]

    def _promise(self) -> str:
        granted = self.granted
        words = f"epsilon {budget.decimal(granted.epsilon)}, delta {budget.decimal(granted.delta)}"
        return f"Ledger {self.path.name}: {words}, protects {protected(self.unit)} ({self.neighbours})"

    # ---------- what one can do

    def grant(self, *, epsilon: object, delta: object = None) -> None:
        """Raise what may be spent in all, to ``epsilon`` (and ``delta``); the entry stays in the chain.

        Raises
        ------
        Refusal
            When that is less than before.
        """
        with self._open() as opened, opened.transaction() as newest:
            old = granted_in(newest)
            new = Grant.of(epsilon, Fraction(old.delta) if delta is None else delta)
            if Fraction(new.epsilon) < Fraction(old.epsilon) or Fraction(new.delta) < Fraction(old.delta):
                raise Refusal(f"A grant can only be raised. {self.path.name} has epsilon {old.epsilon} and delta {old.delta} already.")
            opened.append("grant", {"granted": asdict(new)})

    def part(self, name: object) -> "Part":
        """One of the disjoint parts of the data set, to be given to ``release`` as its ledger."""
        return Part(self, self._part(name or "no name"))

    def charge(
        self,
        cost: Cost | Step,
        draws: Sequence[Draw],
        *,
        neighbours: str,
        unit: object,
        public: Sequence[str] = (),
        part: str | None = None,
    ) -> Charge:
        """Write down what is about to be released; on disk when this returns. ``release`` calls it before it reads a record.

        For a ``Step`` the increment of its session's total is charged, and its one draw is paid for; an increment of 0 is written, too.
        Before anything is written, how many draws the session has charged must be what the step says, in the same transaction:
        of two copies of a session, each with cells of its own, the second would get them free otherwise.

        Raises
        ------
        Refusal
            When less is left, neighbours or unit are not those of the ledger, or another copy of a session has gone on. Nothing is
            written then.
        """
        where = self._part(part)
        if neighbours != self.neighbours:
            raise Refusal(f"{self.path.name} is kept for neighbours={self.neighbours!r}. Write that.")
        if _relation(unit) != self.unit:
            raise Refusal(f"{self.path.name} was made for {_in_words(self.unit)}. Write {unit_as_written(self.unit)}.")
        worth = cost_of_draws(cost, draws)
        Receipt(draws, worth)  # raises where the draws cost more than is paid for
        with self._open() as opened, opened.transaction() as newest:
            facts: dict[str, Any] = {"cost": cost_facts(worth), "draws": draw_facts(draws), "part": where, "public": list(public)}
            if isinstance(cost, Step):
                stored = self._stored(opened, cost, where)
                facts["session"] = {"name": cost.session, "count": cost.count, "before": stored, "total": cost_facts(cost.total)}
                units, nonce = budget.increment(stored, units_of(cost.total)), cost.once
                if any((more or 0) < 0 for more in units):
                    raise Refusal("A session never costs less than before. Count what every record has paid in all of its draws.")
            else:
                units, nonce = units_of(cost), os.urandom(16).hex()
            check_fits(cost, units, newest.facts["spent"], granted_in(newest), where, self.path.name)
            facts["spent"] = budget.add(newest.facts["spent"], units, where)
            entry = opened.append("charge", facts, once=nonce, units=units[1] or None)
        return Charge(nonce, tuple(draws), worth, entry.hash)

    def redeem(self, charge: Charge) -> Receipt:
        """Turn a charge into the right to draw, once and for all: a copy of it, in any process, is worth nothing afterwards.

        The right is lost where the ledger has been moved since: a copy might redeem the same charge.
        """
        with self._open() as opened, opened.transaction():
            charged = opened.find("WHERE kind = 'charge' AND once = ?", charge.nonce)
            if (
                charged is None
                or charged.hash != charge.head
                or charged.facts["draws"] != draw_facts(charge.draws)
                or charged.facts["cost"] != cost_facts(charge.cost)
                or opened.find("WHERE kind = 'move' AND id > ?", charged.id)
            ):
                raise Refusal(f"{self.path.name} knows no such charge. Call pymc_dp.release again, which makes a new one.")
            if opened.find("WHERE kind = 'redeem' AND once = ?", charge.nonce):
                raise Refusal("This charge has been redeemed already. Call pymc_dp.release again, which makes a new one.")
            entry = opened.append("redeem", {}, once=charge.nonce)
        return Receipt(charge.draws, charge.cost, entry.hash)

    # ---------- inside

    def _open(self) -> AbstractContextManager[Opened]:
        return self._journal.opened(first=self._first)

    def _part(self, name: object) -> str:
        if name is None or str(name) in self.parts:
            return WHOLE if name is None else str(name)
        raise Refusal(f"{self.path.name} has no part of that name. Its parts are {', '.join(self.parts) or 'none: leave part out'}.")

    def _stored(self, opened: Opened, step: Step, part: str) -> Units:
        """What the session has cost so far, where it has charged as often as the step says and from the same part."""
        before = opened.find("WHERE kind = 'charge' AND once = ?", f"{step.session}:{step.count - 1}") if step.count else None
        if opened.find("WHERE kind = 'charge' AND once = ?", step.once):
            raise Refusal("Another copy of this session has asked since. Load it again: QuerySession(..., history=the same file).")
        if step.count and before is None:
            raise Refusal(f"{self.path.name} does not remember all that this session has asked. Put the newest copy of the ledger back.")
        if before is not None and before.facts["part"] != part:
            raise Refusal("A session pays from one part of the data set. Give it the part it began with.")
        return (0, 0) if before is None else units_of(cost_in(session_in(before)["total"]))

    def _create(self, epsilon: object, delta: object, neighbours: str, unit: object, names: tuple[str, ...]) -> None:
        if epsilon is None:
            raise Refusal("A new ledger needs to know what may be spent. Write for example Ledger(path, epsilon=1.0, create=True).")
        if len(set(names)) < len(names) or WHOLE in names:
            raise Refusal('parts must be different names. Write for example parts=("north", "south").')
        if names and _relation(unit).startswith(ALL_ROWS):
            raise Refusal("One person may have rows in several parts, so their costs add up. Leave parts out, or write unit='row'.")
        facts: dict[str, Any] = {"neighbours": check_neighbours(neighbours), "unit": _relation(unit), "parts": list(names)}
        facts |= {"granted": asdict(Grant.of(epsilon, delta)), "spent": {part: [0, 0] for part in (WHOLE, *names)}}
        self._journal.create(facts, carried=("granted", "spent"))


@dataclass(frozen=True)
class Part:
    """One of the disjoint parts of a data set, which pays from the same ledger."""

    ledger: Ledger
    name: str

    def charge(self, cost: Cost | Step, draws: Sequence[Draw], *, neighbours: str, unit: object, public: Sequence[str] = ()) -> Charge:
        """Write down what this part is about to pay: see ``Ledger.charge``."""
        return self.ledger.charge(cost, draws, neighbours=neighbours, unit=unit, public=public, part=self.name)

    def __repr__(self) -> str:
        return wrapped(f"Part {self.name} of {self.ledger.path.name}: left {budget.words(self.ledger.remaining(part=self.name))}")

    def redeem(self, charge: Charge) -> Receipt:
        """Turn a charge into the right to draw: see ``Ledger.redeem``."""
        return self.ledger.redeem(charge)


def check_ledger(ledger: object) -> Ledger | Part | None:
    """A ledger, a part of one, or None; anything else is refused."""
    if ledger is None or isinstance(ledger, Ledger | Part):
        return ledger
    raise Refusal('ledger must be a pymc_dp.Ledger, not a path. Write ledger=pymc_dp.Ledger("survey.ledger").')


def receipt_for(
    ledger: Ledger | Part | None, cost: Cost | Step, draws: Sequence[Draw], *, neighbours: str, unit: object, public: Sequence[str]
) -> Receipt:
    """The right to draw this noise: charged to the ledger and redeemed, or, without one, unaccounted."""
    if ledger is None:
        return Receipt(draws, cost_of_draws(cost, draws))
    return ledger.redeem(ledger.charge(cost, draws, neighbours=neighbours, unit=unit, public=public))


def _relation(unit: object) -> str:
    """What one row stands for, with everything that decides which data sets are neighbours."""
    relation = getattr(unit, "relation", unit)
    if not isinstance(relation, str) or not relation.strip() or (isinstance(unit, str) and unit.startswith(("Individual(", ALL_ROWS))):
        raise Refusal(
            'unit must say what one row stands for. Write unit="row", for example, unit=Individual(events=3), or'
            ' unit=Person("patient_id", at_most=5).'
        )
    return relation


def _in_words(relation: str) -> str:
    """What a ledger protects, for its refusals."""
    return relation if relation.startswith(ALL_ROWS) else f"rows with unit={relation!r}"


def unit_as_written(relation: str) -> str:
    """How a unit is written that stands for what a ledger protects."""
    if relation.startswith(ALL_ROWS):
        return f"unit=pymc_dp.Person({relation.removeprefix(ALL_ROWS)!r}, at_most=...)"
    return f"unit={relation!r}"
