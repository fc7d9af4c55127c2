"""What has been spent on one data set: a file that remembers, shared between processes, that refuses more than was granted.

Every release is covered by a charge that was committed to disk before a record was read; nothing is ever paid back. ``journal``
keeps the entries, costs come from ``accounting``, receipts go to ``mechanisms``, and ``release`` charges. docs/guarantee.md
says what a ledger promises and what it cannot.
"""

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from fractions import Fraction
from html import escape
from math import ceil, floor, isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pymc_dp.privacy.accounting import Cost, Refusal, as_cost, check_neighbours, epsilon_of, exact_delta, exact_epsilon, protected, rho_of
from pymc_dp.privacy.journal import Entry, Journal, Opened
from pymc_dp.privacy.mechanisms import Draw, Receipt

if TYPE_CHECKING:
    import pandas as pd

UNITS = 10**12
"""Integer units in one nat of epsilon, and in one of rho. Charges are rounded up, grants down."""
LARGEST_GRANT = 1000
"""In nats. More protects nobody, and its units would not fit 64 bits."""
WHOLE = ""
"""The part that is all of the data set."""


@dataclass(frozen=True)
class Charge:
    """What a ledger has written down, to be redeemed once: see ``Ledger.charge``."""

    nonce: str
    draws: tuple[Draw, ...]
    cost: Cost
    head: str


@dataclass(frozen=True)
class Step:
    """One more draw of a session: charges that are paid for together, by what the record that pays most has paid in all of them.

    Questions about disjoint parts of the records have one record in one of them only, so the session costs the largest of what single
    records pay, not the sum of what draws cost. That is a valid stopping rule however the next question depends on earlier answers:
    for two fixed neighbours the loss of a transcript is at most the sum of what the records they differ in pay along it, and the ledger
    keeps the largest such sum within the grant on every path (docs/theory.md; Feldman, Zrnic 2021, individual privacy filters). So a draw
    may be made although only the increment of ``total`` is charged for it, which can be 0.

    The same holds in rho: given the past, a draw of pure epsilon a for two neighbours costs them a^2 / 2, and over one path the sum of
    the a^2 / 2 is at most half the square of the sum of the a, and at most the sum of what the draws cost whole. ``total.rho`` may be
    the smaller of the two; both grow from draw to draw, so their increments are what is charged.

    Attributes
    ----------
    session : str
        Its name, which no other session has: a digest of what gives its questions their meaning, the schema above all. So a text in the
        charges of a session always stands for the same question.
    count : int
        How many draws it has charged before this one.
    own : Cost
        What this draw would cost by itself: the most that any record pays for it.
    total : Cost
        What the session costs with it. Both are pure.
    """

    session: str
    count: int
    own: Cost
    total: Cost

    def __post_init__(self) -> None:
        named = re.fullmatch(r"[0-9a-f]{64}", self.session) and type(self.count) is int and self.count >= 0
        if not named or self.own.delta or self.total.delta:
            raise Refusal("A step needs the name of its session, how many came before, and pure costs. Let QuerySession make it.")
        if self.total.concentrated < self.own.concentrated:  # so it is where epsilon is less
            raise Refusal("A session costs at least what its newest draw costs. Count what every record pays in all of its draws.")

    @property
    def once(self) -> str:
        """What stands once in a ledger, so that of two copies of a session only one goes on."""
        return f"{self.session}:{self.count}"


@dataclass(frozen=True)
class _Grant:
    """What may be spent, as it was written and in units."""

    epsilon: str
    delta: str
    pure: int
    rho: int

    @classmethod
    def of(cls, epsilon: object, delta: object) -> "_Grant":
        total, allowed = exact_epsilon(epsilon), exact_delta(delta)
        if total > LARGEST_GRANT:
            raise Refusal(f"An epsilon above {LARGEST_GRANT} protects nobody. Write for example epsilon=1.0.")
        rho = floor(rho_of(total, allowed) * UNITS) if allowed else 0
        return cls(str(total), str(allowed), floor(total * UNITS), rho)


type _Units = tuple[int | None, int]
"""Of pure epsilon, None where a cost is not pure, and of rho."""
type _Spent = dict[str, list[int | None]]
"""By part: units of pure epsilon, or None where something spent is not pure, and units of rho."""


def _granted(entry: Entry) -> _Grant:
    return _Grant(**entry.facts["granted"])


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
    unit : str or Individual, optional
        What one row stands for; "row" where a ledger is created without it.
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
        self._journal, self._first = Journal(self.path, _follows), ""
        if isinstance(parts, str):
            raise Refusal('parts must be a list of names. Write for example parts=("north", "south").')
        names = tuple(map(str, parts))
        if create:
            self._create(epsilon, 0 if delta is None else delta, neighbours or "replace", unit or "row", names)
        with self._journal.opened(anchor) as opened:
            entries = _chain(opened)
        facts, granted = entries[0].facts, _granted(entries[-1])
        self._first = entries[0].hash
        self.neighbours: str = facts["neighbours"]
        self.unit: str = facts["unit"]
        self.parts: tuple[str, ...] = tuple(facts["parts"])
        said = {
            "epsilon": None if epsilon is None else str(exact_epsilon(epsilon)),
            "delta": None if delta is None else str(exact_delta(delta)),
            "neighbours": neighbours,
            "unit": None if unit is None else _relation(unit),
            "parts": names or None,
        }
        stored = asdict(granted) | {"neighbours": self.neighbours, "unit": self.unit, "parts": self.parts}
        for name, value in said.items():
            if value is not None and value != stored[name]:
                words = stored[name] if name in {"epsilon", "delta"} else repr(stored[name])
                raise Refusal(f"{self.path.name} was opened with another {name}. Write {name}={words}, or leave {name} out.")

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
            return _total(_granted(opened.newest()))

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
            stored = dict[str, _Units]()
            for step in (one for one in planned if isinstance(one, Step)):
                if step.session not in stored:
                    stored[step.session] = self._stored(opened, step, where)
        spent, granted = entry.facts["spent"], _granted(entry)
        for one in planned:
            if isinstance(one, Step):
                units, stored[one.session] = _difference(stored[one.session], _units(one.total)), _units(one.total)
            else:
                units = _units(as_cost(one))
            self._check(one if isinstance(one, Step) else as_cost(one), units, spent, granted, where)
            spent = _after(spent, units, where)
        return _left(spent, granted, where)

    def session(self, name: str) -> tuple[Charge, ...]:
        """What a session has charged, in order, after the whole chain has been verified; nothing where it has charged nothing.

        ``cost`` is what a draw costs by itself, ``draws[0].variable`` the question in words. That it was charged says not that it was
        answered: a crash may have come between.
        """
        with self._open() as opened:
            chain = _chain(opened)
        return tuple(
            Charge(one.facts["once"], tuple(map(_draw, one.facts["draws"])), _cost(one.facts["cost"]), one.hash)
            for one in chain
            if _session(one).get("name") == name
        )

    def paid_for(self, head: str) -> str | None:
        """From which part the result with this head was paid; None where this ledger did not pay for it."""
        with self._open() as opened:
            redeemed = opened.find("WHERE kind = 'redeem' AND hash = ?", head)
            charge = redeemed and opened.find("WHERE kind = 'charge' AND once = ?", redeemed.facts["once"])
        return charge.facts["part"] if charge else None

    def entries(self) -> "pd.DataFrame":
        """Everything that was written, one row per entry, after the whole chain has been verified.

        Columns: time (UTC), kind (open, grant, move, charge), part, session (its name), what (variables or questions), public (arrays),
        mechanism, epsilon, delta, rho, redeemed (whether the records were read), hash. Of a session's charges epsilon and rho are
        what it costs more than before.
        """
        import pandas as pd

        with self._open() as opened:
            chain = _chain(opened)
        redeemed = {one.facts["once"] for one in chain if one.kind == "redeem"}
        rows = []
        for one in (entry for entry in chain if entry.kind != "redeem"):
            granted, draws = _granted(one), one.facts.get("draws", [])
            cost = _cost(one.facts["cost"]) if one.kind == "charge" else _total(granted)
            more = [Fraction(units or 0, UNITS) for units in _paid(one)] if _session(one) else [cost.epsilon, cost.concentrated]
            rows.append(
                {
                    "time": one.facts["time"],
                    "kind": one.kind,
                    "part": one.facts.get("part", WHOLE),
                    "session": _session(one).get("name", ""),
                    "what": ", ".join(draw["variable"] for draw in draws),
                    "public": ", ".join(one.facts.get("public", [])),
                    "mechanism": ", ".join(dict.fromkeys(draw["mechanism"] for draw in draws)),
                    "epsilon": float(more[0]),
                    "delta": float(cost.delta),
                    "rho": float(more[1]) if one.kind == "charge" or cost.delta else 0.0,
                    "redeemed": one.kind == "charge" and one.facts["once"] in redeemed,
                    "hash": one.hash,
                }
            )
        return pd.DataFrame(rows, index=pd.RangeIndex(1, len(rows) + 1, name="entry"))

    def __repr__(self) -> str:
        """What was granted, what is left, and the entries."""
        granted, left = self.granted, self.remaining()
        lines = [
            f"Ledger {self.path.name}: epsilon {_plain(granted.epsilon)}, delta {_plain(granted.delta)},"
            f" protects {protected(self.unit)} ({self.neighbours})",
            f"  left: {_words(left)}",
        ]
        lines += [f"  left for {part}: {_words(self.remaining(part=part))}" for part in self.parts]
        table = self.entries().drop(columns=["hash"])
        return "\n".join([*lines, table.assign(session=table["session"].str[:12]).to_string()])

    def _repr_html_(self) -> str:
        granted = self.granted
        left = "".join(
            f"<li>{escape(part) or 'left'}: {escape(_words(self.remaining(part=part or None)))}</li>" for part in (WHOLE, *self.parts)
        )
        table = self.entries()
        for name in ("session", "hash"):
            table[name] = table[name].str[:12]
        return (
            f"<div><b>Ledger {escape(self.path.name)}</b>: epsilon {_plain(granted.epsilon)}, delta {_plain(granted.delta)}, protects"
            f" {escape(protected(self.unit))} ({self.neighbours})<ul>{left}</ul>{table.to_html(float_format='{:.6g}'.format)}</div>"
        )

    # ---------- what one can do

    def grant(self, *, epsilon: object, delta: object = None) -> None:
        """Raise what may be spent in all, to ``epsilon`` (and ``delta``); the entry stays in the chain.

        Raises
        ------
        Refusal
            When that is less than before.
        """
        with self._open() as opened, opened.transaction() as newest:
            old = _granted(newest)
            new = _Grant.of(epsilon, Fraction(old.delta) if delta is None else delta)
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

        Of a ``Step`` the increment of its session's total is charged, and its one draw is paid for; an increment of 0 is written, too.
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
            raise Refusal(f"{self.path.name} counts {self.neighbours} neighbours. Write neighbours={self.neighbours!r}.")
        if _relation(unit) != self.unit:
            raise Refusal(f"{self.path.name} was made for rows with unit={self.unit!r}. Write unit={self.unit!r}.")
        worth = _worth(cost, draws)
        Receipt(draws, worth)  # raises where the draws cost more than is paid for
        with self._open() as opened, opened.transaction() as newest:
            facts: dict[str, Any] = {"cost": _cost_facts(worth), "draws": _draw_facts(draws), "part": where, "public": list(public)}
            if isinstance(cost, Step):
                stored = self._stored(opened, cost, where)
                facts["session"] = {"name": cost.session, "count": cost.count, "before": stored, "total": _cost_facts(cost.total)}
                units, nonce = _difference(stored, _units(cost.total)), cost.once
                if any((more or 0) < 0 for more in units):
                    raise Refusal("A session never costs less than before. Count what every record has paid in all of its draws.")
            else:
                units, nonce = _units(cost), os.urandom(16).hex()
            self._check(cost, units, newest.facts["spent"], _granted(newest), where)
            facts["spent"] = _after(newest.facts["spent"], units, where)
            entry = opened.append("charge", facts, once=nonce, units=units[1] or None)
        return Charge(nonce, tuple(draws), worth, entry.hash)

    def redeem(self, charge: Charge) -> Receipt:
        """Turn a charge into the right to draw, once and for all: a copy of it, in any process, is worth nothing afterwards.

        The right is lost where the ledger has been moved since: a copy might redeem the same charge.
        """
        with self._open() as opened, opened.transaction():
            found = opened.find("WHERE kind = 'charge' AND once = ?", charge.nonce)
            if (
                found is None
                or found.hash != charge.head
                or found.facts["draws"] != _draw_facts(charge.draws)
                or found.facts["cost"] != _cost_facts(charge.cost)
                or opened.find("WHERE kind = 'move' AND id > ?", found.id)
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

    def _stored(self, opened: Opened, step: Step, part: str) -> _Units:
        """What the session has cost so far, where it has charged as often as the step says and from the same part."""
        before = opened.find("WHERE kind = 'charge' AND once = ?", f"{step.session}:{step.count - 1}") if step.count else None
        if opened.find("WHERE kind = 'charge' AND once = ?", step.once):
            raise Refusal("Another copy of this session has asked since. Load it again: QuerySession(..., history=the same file).")
        if step.count and before is None:
            raise Refusal(f"{self.path.name} does not remember all that this session has asked. Put the newest copy of the ledger back.")
        if before is not None and before.facts["part"] != part:
            raise Refusal("A session pays from one part of the data set. Give it the part it began with.")
        return (0, 0) if before is None else _units(_cost(_session(before)["total"]))

    def _check(self, cost: Cost | Step, units: _Units, spent: _Spent, granted: _Grant, part: str) -> None:
        """Refuse a cost that does not fit, in words that say what would."""
        if _fits(_after(spent, units, part), granted):
            return
        what, cost = ("question", Cost(Fraction(units[0] or 0, UNITS))) if isinstance(cost, Step) else ("release", cost)
        if cost.delta and not granted.rho:
            raise Refusal(f"{self.path.name} grants no delta, which Gaussian noise needs. Use Laplace noise, or grant a delta.")
        left = _left(spent, granted, part)
        fits = left.epsilon if not cost.delta else epsilon_of(left.rho, cost.delta) if left.rho else Fraction(0)
        fits = min(Fraction(floor(fits * UNITS), UNITS), cost.epsilon)
        lower = f"Lower epsilon to {_plain(fits)}, or ask" if fits else "Ask"
        raise Refusal(
            f"This {what} costs epsilon {_plain(cost.epsilon)} and {_plain(fits)} is left in {self.path.name}."
            f" {lower} the data owner for a larger grant."
        )

    def _create(self, epsilon: object, delta: object, neighbours: str, unit: object, names: tuple[str, ...]) -> None:
        if epsilon is None:
            raise Refusal("A new ledger needs to know what may be spent. Write for example Ledger(path, epsilon=1.0, create=True).")
        if len(set(names)) < len(names) or WHOLE in names:
            raise Refusal('parts must be different names. Write for example parts=("north", "south").')
        facts: dict[str, Any] = {"neighbours": check_neighbours(neighbours), "unit": _relation(unit), "parts": list(names)}
        facts |= {"granted": asdict(_Grant.of(epsilon, delta)), "spent": {part: [0, 0] for part in (WHOLE, *names)}}
        self._journal.create(facts, carried=("granted", "spent"))


@dataclass(frozen=True)
class Part:
    """One of the disjoint parts of a data set, which pays from the same ledger."""

    ledger: Ledger
    name: str

    def charge(self, cost: Cost | Step, draws: Sequence[Draw], *, neighbours: str, unit: object, public: Sequence[str] = ()) -> Charge:
        """As ``Ledger.charge``, for this part."""
        return self.ledger.charge(cost, draws, neighbours=neighbours, unit=unit, public=public, part=self.name)

    def redeem(self, charge: Charge) -> Receipt:
        """As ``Ledger.redeem``."""
        return self.ledger.redeem(charge)


def check_ledger(ledger: object) -> Ledger | Part | None:
    """A ledger, a part of one, or None."""
    if ledger is None or isinstance(ledger, Ledger | Part):
        return ledger
    raise Refusal("ledger must be a ledger. Write ledger=pymc_dp.Ledger(path, epsilon=...).")


def paid(
    ledger: Ledger | Part | None, cost: Cost | Step, draws: Sequence[Draw], *, neighbours: str, unit: object, public: Sequence[str]
) -> Receipt:
    """The right to draw this noise: charged to the ledger and redeemed, or, without one, unaccounted."""
    if ledger is None:
        cost = _worth(cost, draws)
        return Receipt(draws, cost)
    return ledger.redeem(ledger.charge(cost, draws, neighbours=neighbours, unit=unit, public=public))


def _relation(unit: object) -> str:
    """What one row stands for, with everything that decides which data sets are neighbours."""
    relation = getattr(unit, "relation", unit)
    if not isinstance(relation, str) or not relation.strip() or (isinstance(unit, str) and unit.startswith("Individual(")):
        raise Refusal('unit must say what one row stands for. Write unit="row", for example, or unit=Individual(events=3).')
    return relation


def _chain(opened: Opened) -> list[Entry]:
    """All entries, verified; every redemption is of an earlier charge, once, and the ledger has not been moved in between.

    Every charge of a session goes on where the one before it ended.
    """
    entries, open_charges, sessions = opened.entries(), set(), dict[str, tuple[int, _Units, str]]()
    for entry in entries:
        once, said = entry.facts["once"], _session(entry)
        if said:
            part = entry.facts["part"]
            if sessions.get(said["name"], (0, (0, 0), part)) != (said["count"], tuple(said["before"]), part):
                raise Refusal(f"{opened.path.name} was changed: entry {entry.id} does not go on with its session. Put the newest back.")
            sessions[said["name"]] = said["count"] + 1, _units(_cost(said["total"])), part
        if entry.kind == "charge":
            open_charges.add(once)
        elif entry.kind == "redeem":
            if once not in open_charges:
                raise Refusal(f"{opened.path.name} was changed: entry {entry.id} redeems what cannot be. Put the newest copy back.")
            open_charges.remove(once)
        elif entry.kind == "move":
            open_charges.clear()
    return entries


def _follows(before: Entry | None, entry: Entry) -> bool:
    """What was spent and granted follows from the entry before, by the sums below."""
    facts, spent, granted = entry.facts, entry.facts["spent"], _granted(entry)
    if before is None:
        return entry.kind == "open" and spent == {part: [0, 0] for part in (WHOLE, *facts["parts"])}
    if entry.kind == "charge":
        units = _paid(entry)
        right = facts["units"] == (units[1] or None) and spent == _after(before.facts["spent"], units, facts["part"]) and _goes_on(entry)
        return right and granted == _granted(before) and _fits(spent, granted)
    return (
        entry.kind in {"grant", "move", "redeem"}
        and spent == before.facts["spent"]
        and (granted == _granted(before) or entry.kind == "grant")
    )


def _session(entry: Entry) -> dict[str, Any]:
    """What a charge says of its session; nothing where it is none of a session's."""
    return entry.facts.get("session", {}) if entry.kind == "charge" else {}


def _goes_on(entry: Entry) -> bool:
    """A session's total never falls, and covers the draw that is paid for: some record pays for the whole of it."""
    said = _session(entry)
    if not said:
        return True
    total, worth, facts = _cost(said["total"]), _cost(entry.facts["cost"]), entry.facts
    grown = all(more is not None and more >= 0 for more in _paid(entry))
    covered = total.concentrated >= worth.concentrated  # so it is in epsilon
    return grown and covered and not total.delta and facts["once"] == f"{said['name']}:{said['count']}" and len(facts["draws"]) == 1


def _worth(cost: Cost | Step, draws: Sequence[Draw]) -> Cost:
    """What the draws may cost by themselves."""
    if not isinstance(cost, Step):
        return cost
    if len(draws) != 1:
        raise Refusal("A step of a session is one draw. Charge several by their cost.")
    return cost.own


def _cost_facts(cost: Cost) -> dict[str, str | None]:
    return {"epsilon": str(cost.epsilon), "delta": str(cost.delta), "rho": None if cost.rho is None else str(cost.rho)}


def _cost(facts: dict[str, str | None]) -> Cost:
    return Cost(Fraction(facts["epsilon"] or 0), Fraction(facts["delta"] or 0), None if facts["rho"] is None else Fraction(facts["rho"]))


def _draw_facts(draws: Sequence[Draw]) -> list[dict[str, Any]]:
    return [asdict(one) | {"difference": str(one.difference), "square": str(one.square)} for one in draws]


def _draw(facts: dict[str, Any]) -> Draw:
    return Draw(**facts | {"difference": int(facts["difference"]), "square": int(facts["square"])})


# ---------- sums


def _total(granted: _Grant) -> Cost:
    return Cost(Fraction(granted.epsilon), Fraction(granted.delta), Fraction(granted.rho, UNITS) if granted.rho else None)


def _units(cost: Cost) -> _Units:
    """What a cost comes to, rounded up."""
    return (None if cost.delta else ceil(cost.epsilon * UNITS)), ceil(cost.concentrated * UNITS)


def _difference(before: Sequence[int | None], after: _Units) -> _Units:
    """What is paid for a session that cost the one and now costs the other: increments of sums that were rounded up add up to the last."""
    return (after[0] or 0) - (before[0] or 0), after[1] - (before[1] or 0)


def _paid(entry: Entry) -> _Units:
    """What a charge paid."""
    said = _session(entry)
    return _difference(said["before"], _units(_cost(said["total"]))) if said else _units(_cost(entry.facts["cost"]))


def _after(spent: _Spent, units: _Units, part: str) -> _Spent:
    pure, rho = units
    old_pure, old_rho = spent[part]
    return {**spent, part: [None if pure is None or old_pure is None else old_pure + pure, (old_rho or 0) + rho]}


def _used(spent: _Spent, part: str | None = None) -> tuple[int | None, int]:
    """What one record may have paid: as part of the whole, and of one part, the worst of them or the given one."""
    parts = [spent[name] for name in spent if name != WHOLE and part in {None, WHOLE, name}]
    pures = [spent[WHOLE][0], *(pure for pure, _ in parts)]
    worst = max((pure or 0 for pure, _ in parts), default=0)
    pure = None if any(one is None for one in pures) else (spent[WHOLE][0] or 0) + worst
    return pure, (spent[WHOLE][1] or 0) + max((rho or 0 for _, rho in parts), default=0)


def _fits(spent: _Spent, granted: _Grant) -> bool:
    pure, rho = _used(spent)
    return (pure is not None and pure <= granted.pure) or rho <= granted.rho


def _left(spent: _Spent, granted: _Grant, part: str) -> Cost:
    """The largest costs that fit, each by itself: where other parts rest on one of the two sums, that sum decides."""
    (pure, rho), (worst_pure, worst_rho) = _used(spent, part), _used(spent)
    left = granted.rho - rho if worst_rho <= granted.rho else 0
    by_sum = granted.pure - pure if pure is not None and worst_pure is not None and worst_pure <= granted.pure else 0
    epsilon = max(by_sum, isqrt(2 * left * UNITS))
    return Cost(Fraction(epsilon, UNITS), Fraction(granted.delta), Fraction(left, UNITS) if granted.rho else None)


def _plain(value: Fraction) -> str:
    """A decimal that is not above the value."""
    digits = f"{Fraction(floor(value * UNITS), UNITS):.12f}".rstrip("0").rstrip(".")
    return digits if value >= Fraction(1, UNITS) or not value else f"{float(value):.6g}"


def _words(left: Cost) -> str:
    return f"epsilon {_plain(left.epsilon)}" + (
        f", or rho {_plain(left.rho)} at delta {_plain(left.delta)}" if left.rho is not None else ""
    )
