"""What has been spent on one data set: a file that remembers, shared between processes, that refuses more than was granted.

Every release is covered by a charge that was committed to disk before a record was read; nothing is ever paid back. Entries
form a chain of hashes, and the newest hash, the head, stands in every result. Costs come from ``accounting``, receipts go to
``mechanisms``; ``release`` charges. docs/guarantee.md says what a ledger promises and what it cannot.
"""

import errno
import hashlib
import json
import os
import sqlite3
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from fractions import Fraction
from html import escape
from math import ceil, floor, isqrt
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from pymc_dp.accounting import Cost, Refusal, as_cost, check_neighbours, epsilon_of, exact_delta, exact_epsilon, rho_of
from pymc_dp.mechanisms import Draw, Receipt

with suppress(ImportError):  # not there on a platform that a ledger is not offered on; it says so
    import fcntl

if TYPE_CHECKING:
    import pandas as pd

TESTED = ("linux",)
"""Where the locks have been tested; elsewhere a ledger refuses to work."""
UNITS = 10**12
"""Integer units in one nat of epsilon, and in one of rho. Charges are rounded up, grants down."""
LARGEST_GRANT = 1000
"""In nats. More protects nobody, and its units would not fit 64 bits."""
PATIENCE = 60.0
"""Seconds to wait for other processes."""
FORMAT = 1
WHOLE = ""
"""The part that is all of the data set."""

SCHEMA = """
CREATE TABLE entries (
    id INTEGER PRIMARY KEY CHECK (id > 0),
    kind TEXT NOT NULL CHECK (kind IN ('open', 'grant', 'move', 'charge')),
    pure INTEGER CHECK (pure > 0),
    rho INTEGER CHECK (rho > 0),
    facts TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    CHECK (kind <> 'charge' OR rho IS NOT NULL)
);
CREATE TABLE receipts (nonce TEXT PRIMARY KEY, entry INTEGER NOT NULL UNIQUE, redeemed INTEGER NOT NULL CHECK (redeemed IN (0, 1)));
CREATE TRIGGER no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are for ever'); END;
CREATE TRIGGER no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are for ever'); END;
CREATE TRIGGER no_return BEFORE UPDATE ON receipts WHEN OLD.redeemed = 1 BEGIN SELECT RAISE(ABORT, 'redeemed once'); END;
"""

_working = Lock()
os.register_at_fork(before=_working.acquire, after_in_parent=_working.release, after_in_child=_working.release)
# No child inherits an open connection: a fork waits until the transaction is over. SQLite must not be carried across one.


@dataclass(frozen=True)
class Charge:
    """What a ledger has written down, to be redeemed once: see ``Ledger.charge``."""

    nonce: str
    draws: tuple[Draw, ...]
    cost: Cost
    head: str


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


type _Spent = dict[str, list[int | None]]
"""By part: units of pure epsilon, or None where something spent is not pure, and units of rho."""


@dataclass(frozen=True)
class _Entry:
    """A link of the chain: ``facts`` holds everything, what is granted and spent after it included."""

    id: int
    kind: str
    facts: dict[str, Any]
    hash: str

    @property
    def granted(self) -> _Grant:
        return _Grant(**self.facts["granted"])

    @property
    def spent(self) -> _Spent:
        return self.facts["spent"]


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
        On a local disk. Beside it stands ``path + ".lock"``, which belongs to it.
    epsilon, delta : numbers, optional
        What may be spent in all, in nats. Needed with ``create=True``; of an existing ledger they must be what it says.
    neighbours : {"replace", "add_remove"}, optional
        Which data sets count as neighbours in everything that is charged; "replace" where a ledger is created without it.
    unit : str, optional
        What one row stands for; "row" where a ledger is created without it.
    parts : sequence of str
        Names of disjoint parts of the data set, by something public that never changes. What is charged to different parts does
        not add up, because a record is in one of them only.
    create : bool
        Make the file, which must not exist.
    anchor : str, optional
        The head that stands in the newest result. The ledger is refused unless it remembers that result; a ledger that was
        moved or put back from a copy is taken only with this proof that it lacks nothing.

    Raises
    ------
    Refusal
        When the file is missing, damaged, locked for long, a copy, older than it should be, or says something else.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        epsilon: object = None,
        delta: object = None,
        neighbours: str | None = None,
        unit: str | None = None,
        parts: Sequence[str] = (),
        create: bool = False,
        anchor: str | None = None,
    ) -> None:
        if sys.platform not in TESTED:
            raise Refusal(f"A ledger has not been tested on {sys.platform}, so it is not offered there. Release without one, or on Linux.")
        self.path = Path(os.path.realpath(path))
        if create:
            self._create(epsilon, 0 if delta is None else delta, neighbours or "replace", unit or "row", parts)
        with self._opened(anchor) as opened:
            entries = _verified(opened.connection, self.path.name)
        facts = entries[0].facts
        self.neighbours: str = facts["neighbours"]
        self.unit: str = facts["unit"]
        self.parts: tuple[str, ...] = tuple(facts["parts"])
        granted, said = entries[-1].granted, {"neighbours": neighbours, "unit": unit, "parts": tuple(parts) or None}
        said |= {"epsilon": None if epsilon is None else str(exact_epsilon(epsilon))}
        said |= {"delta": None if delta is None else str(exact_delta(delta))}
        stored = {"neighbours": self.neighbours, "unit": self.unit, "parts": self.parts} | asdict(granted)
        for name, value in said.items():
            if value is not None and value != stored[name]:
                words = repr(stored[name]) if isinstance(stored[name], str) and name not in {"epsilon", "delta"} else stored[name]
                raise Refusal(f"{self.path.name} was opened with another {name}. Write {name}={words}, or leave {name} out.")

    # ---------- what one can ask

    @property
    def head(self) -> str:
        """The hash of the newest entry: the anchor that every result carries."""
        with self._opened() as opened:
            return opened.newest().hash

    @property
    def granted(self) -> Cost:
        """What may be spent in all."""
        with self._opened() as opened:
            granted = opened.newest().granted
        return Cost(Fraction(granted.epsilon), Fraction(granted.delta), Fraction(granted.rho, UNITS) if granted.rho else None)

    def remaining(self, after: Iterable[object] = (), *, part: str | None = None) -> Cost:
        """What may still be spent, now or after a planned batch of releases; nothing is charged.

        Parameters
        ----------
        after : iterable of Cost or numbers
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
        with self._opened() as opened:
            entry = opened.newest()
        spent, where = entry.spent, self._part(part)
        for cost in map(as_cost, after):
            self._check(cost, spent, entry.granted, where)
            spent = _after(spent, cost, where)
        return _left(spent, entry.granted, where)

    def entries(self) -> "pd.DataFrame":
        """Everything that was written, one row per entry, after the whole chain has been verified.

        Columns: time (UTC), kind (open, grant, move, charge), part, what (variables), mechanism, epsilon, delta, rho, redeemed
        (whether the records were read), hash.
        """
        import pandas as pd

        with self._opened() as opened:
            entries = _verified(opened.connection, self.path.name)
            redeemed = dict(opened.connection.execute("SELECT entry, redeemed FROM receipts"))
        rows = []
        for one in entries:
            cost = one.facts.get("cost", {})
            rows.append(
                {
                    "time": one.facts["time"],
                    "kind": one.kind,
                    "part": one.facts.get("part", WHOLE),
                    "what": ", ".join(draw["variable"] for draw in one.facts.get("draws", [])),
                    "mechanism": ", ".join(dict.fromkeys(draw["mechanism"] for draw in one.facts.get("draws", []))),
                    "epsilon": float(Fraction(cost.get("epsilon") or one.granted.epsilon)),
                    "delta": float(Fraction(cost.get("delta") or one.granted.delta)),
                    "rho": float(_cost(cost).concentrated) if cost else float(Fraction(one.granted.rho, UNITS)),
                    "redeemed": bool(redeemed.get(one.id, False)),
                    "hash": one.hash,
                }
            )
        return pd.DataFrame(rows).set_index(pd.Index([one.id for one in entries], name="entry"))

    def __repr__(self) -> str:
        """What was granted, what is left, and the entries."""
        granted, left = self.granted, self.remaining()
        lines = [
            f"Ledger {self.path.name}: epsilon {_plain(granted.epsilon)}, delta {_plain(granted.delta)},"
            f" protects one {self.unit} ({self.neighbours})",
            f"  left: {_words(left)}",
        ]
        lines += [f"  left for {part}: {_words(self.remaining(part=part))}" for part in self.parts]
        return "\n".join([*lines, self.entries().drop(columns=["hash"]).to_string()])

    def _repr_html_(self) -> str:
        granted = self.granted
        left = "".join(
            f"<li>{escape(part) or 'left'}: {escape(_words(self.remaining(part=part or None)))}</li>" for part in (WHOLE, *self.parts)
        )
        table = self.entries()
        table["hash"] = table["hash"].str[:12]
        return (
            f"<div><b>Ledger {escape(self.path.name)}</b>: epsilon {_plain(granted.epsilon)}, delta {_plain(granted.delta)}, protects"
            f" one {escape(self.unit)} ({self.neighbours})<ul>{left}</ul>{table.to_html(float_format='{:.6g}'.format)}</div>"
        )

    # ---------- what one can do

    def grant(self, *, epsilon: object, delta: object = None) -> None:
        """Raise what may be spent in all, to ``epsilon`` (and ``delta``); the entry stays in the chain.

        Raises
        ------
        Refusal
            When that is less than before.
        """
        with self._opened() as opened, opened.transaction() as newest:
            old = newest.granted
            new = _Grant.of(epsilon, Fraction(old.delta) if delta is None else delta)
            if Fraction(new.epsilon) < Fraction(old.epsilon) or Fraction(new.delta) < Fraction(old.delta):
                raise Refusal(f"A grant can only be raised. {self.path.name} has epsilon {old.epsilon} and delta {old.delta} already.")
            opened.append("grant", {"granted": new})

    def part(self, name: str) -> "Part":
        """One of the disjoint parts of the data set, to be given to ``release`` as its ledger."""
        if self._part(name) == WHOLE:
            raise Refusal("A part needs a name. Leave the part out to charge the whole data set.")
        return Part(self, name)

    def charge(self, cost: Cost, draws: Sequence[Draw], *, neighbours: str, unit: str, part: str | None = None) -> Charge:
        """Write down what is about to be released; on disk when this returns. ``release`` calls it before it reads a record.

        Raises
        ------
        Refusal
            When less is left, or neighbours or unit are not those of the ledger. Nothing is written then.
        """
        where = self._part(part)
        if neighbours != self.neighbours:
            raise Refusal(f"{self.path.name} counts {self.neighbours} neighbours. Write neighbours={self.neighbours!r}.")
        if unit != self.unit:
            raise Refusal(f"One row of the data set of {self.path.name} is one {self.unit}. Write unit={self.unit!r}.")
        Receipt(draws, cost)  # raises where the draws cost more than is paid for
        with self._opened() as opened, opened.transaction() as newest:
            self._check(cost, newest.spent, newest.granted, where)
            nonce = os.urandom(16).hex()
            paid = {"cost": _cost_facts(cost), "draws": _draw_facts(draws), "part": where, "nonce": nonce}
            entry = opened.append("charge", {**paid, "spent": _after(newest.spent, cost, where)}, cost)
            opened.connection.execute("INSERT INTO receipts VALUES (?, ?, 0)", (nonce, entry.id))
        return Charge(nonce, tuple(draws), cost, entry.hash)

    def redeem(self, charge: Charge) -> Receipt:
        """Turn a charge into the right to draw, once and for all: a copy of it, in any process, is worth nothing afterwards."""
        with self._opened() as opened, opened.transaction():
            asked = "SELECT facts FROM entries, receipts WHERE entries.id = receipts.entry AND nonce = ?"
            facts = json.loads((opened.connection.execute(asked, (charge.nonce,)).fetchone() or ["{}"])[0])
            if facts.get("draws") != _draw_facts(charge.draws) or facts.get("cost") != _cost_facts(charge.cost):
                raise Refusal(f"{self.path.name} knows no such charge. Call pymc_dp.release again, which makes a new one.")
            once = "UPDATE receipts SET redeemed = 1 WHERE nonce = ? AND redeemed = 0"
            if opened.connection.execute(once, (charge.nonce,)).rowcount != 1:
                raise Refusal("This charge has been redeemed already. Call pymc_dp.release again, which makes a new one.")
        return Receipt(charge.draws, charge.cost, charge.head)

    # ---------- inside

    def _part(self, name: str | None) -> str:
        if name is None or name in self.parts:
            return name or WHOLE
        raise Refusal(f"{self.path.name} has no part of that name. Its parts are {', '.join(self.parts) or 'none: leave part out'}.")

    def _check(self, cost: Cost, spent: _Spent, granted: _Grant, part: str) -> None:
        """Refuse a cost that does not fit, in words that say what would."""
        if _fits(_after(spent, cost, part), granted):
            return
        if cost.delta and not granted.rho:
            raise Refusal(f"{self.path.name} grants no delta, which Gaussian noise needs. Use Laplace noise, or grant a delta.")
        left = _left(spent, granted, part)
        fits = left.epsilon if not cost.delta else epsilon_of(left.rho, cost.delta) if left.rho else Fraction(0)
        fits = min(Fraction(floor(fits * UNITS), UNITS), cost.epsilon)
        lower = f"Lower epsilon to {_plain(fits)}, or ask" if fits else "Ask"
        raise Refusal(
            f"This release costs epsilon {_plain(cost.epsilon)} and {_plain(fits)} is left in {self.path.name}."
            f" {lower} the data owner for a larger grant."
        )

    def _create(self, epsilon: object, delta: object, neighbours: str, unit: str, parts: Sequence[str]) -> None:
        if epsilon is None:
            raise Refusal("A new ledger needs to know what may be spent. Write for example Ledger(path, epsilon=1.0, create=True).")
        names = [] if isinstance(parts, str) else [str(part) for part in parts]
        if isinstance(parts, str) or len(set(names)) < len(names) or WHOLE in names:
            raise Refusal('parts must be different names. Write for example parts=("north", "south").')
        facts = {"format": FORMAT, "neighbours": check_neighbours(neighbours), "unit": str(unit), "parts": names}
        facts |= {"granted": _Grant.of(epsilon, delta), "spent": {part: [0, 0] for part in (WHOLE, *names)}}
        with _refusing(self.path.name), _locked(self.path) as anchor:
            if os.path.lexists(self.path):
                raise Refusal(f"{self.path.name} exists already. Leave create out to open it.")
            building = self.path.with_name(f"{self.path.name}.{os.urandom(8).hex()}.new")
            try:
                with _working, closing(sqlite3.connect(building, isolation_level=None)) as connection:
                    connection.execute("PRAGMA synchronous = EXTRA")
                    connection.executescript(SCHEMA)
                    first = _written(connection, 1, "open", facts, None)
                anchor.write(first.hash, _place(building, self.path))
                os.rename(building, self.path)
                _sync(self.path.parent)
            finally:
                building.unlink(missing_ok=True)

    @contextmanager
    def _opened(self, anchor: str | None = None) -> "Iterator[_Opened]":
        """The file, looked at first, under its lock; for as long as this block."""
        with _refusing(self.path.name), _locked(self.path) as noted:
            _check_file(self.path)
            source = f"{self.path.as_uri()}?mode=rw"
            with _working, closing(sqlite3.connect(source, uri=True, isolation_level=None, timeout=PATIENCE)) as connection:
                opened = _Opened(connection, self.path, noted)
                opened.check(anchor)
                yield opened


@dataclass(frozen=True)
class Part:
    """One of the disjoint parts of a data set, which pays from the same ledger."""

    ledger: Ledger
    name: str

    def charge(self, cost: Cost, draws: Sequence[Draw], *, neighbours: str, unit: str) -> Charge:
        """As ``Ledger.charge``, for this part."""
        return self.ledger.charge(cost, draws, neighbours=neighbours, unit=unit, part=self.name)

    def redeem(self, charge: Charge) -> Receipt:
        """As ``Ledger.redeem``."""
        return self.ledger.redeem(charge)


# ---------- the file


@dataclass(frozen=True)
class _Anchor:
    """The lock file, locked. It notes the newest head and where the ledger stands; an older copy does not know that head."""

    descriptor: int

    def read(self) -> tuple[str, str]:
        head, _, place = os.pread(self.descriptor, 256, 0).decode("ascii", "replace").strip().partition(" ")
        return head, place

    def write(self, head: str, place: str) -> None:
        os.pwrite(self.descriptor, f"{head} {place}".ljust(255).encode() + b"\n", 0)


@contextmanager
def _locked(path: Path) -> Iterator[_Anchor]:
    """One process, and one thread, at a time.

    The lock is on a file of its own: SQLite's own locks vanish when any descriptor of the ledger is closed in the process.
    """
    lock, deadline = f"{path}.lock", time.monotonic() + PATIENCE
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            while not _try_lock(descriptor):
                if time.monotonic() > deadline:
                    raise Refusal(f"{path.name} has been locked for {PATIENCE:g} seconds. Try again when the other processes are done.")
                time.sleep(0.002 + 0.008 * os.urandom(1)[0] / 255)
            try:
                if os.path.lexists(lock) and os.path.samestat(os.stat(lock), os.fstat(descriptor)):
                    yield _Anchor(descriptor)
                    return
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _check_file(path: Path) -> None:
    if not os.path.lexists(path):
        raise Refusal(f"{path.name} does not exist. Write create=True to make a new ledger.")
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise Refusal(f"{path.name} must be an ordinary file with one name. Remove links to it.")


def _place(file: Path, path: Path) -> str:
    """Where a ledger stands: its name and its inode, which a copy does not share."""
    return f"{os.stat(file).st_ino}:{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}"


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    """Whatever SQLite or the system says becomes a refusal: no ledger, no release."""
    try:
        yield
    except sqlite3.Error as error:
        said = getattr(error, "sqlite_errorname", None) or ""
        words = (reason for beginning, reason in REASONS.items() if said.startswith(beginning))
        raise Refusal(f"{name} {next(words, 'cannot be used. Check the file and its folder.')}") from None
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        raise Refusal(f"{name} {REASONS['SQLITE_FULL' if full else 'SQLITE_READONLY']}") from None
    except (KeyError, TypeError, AttributeError, UnicodeError, json.JSONDecodeError):
        raise Refusal(f"{name} {REASONS['SQLITE_CORRUPT']}") from None


REASONS = {
    "SQLITE_BUSY": "is locked by another program. Try again when it is done.",
    "SQLITE_LOCKED": "is locked by another program. Try again when it is done.",
    "SQLITE_FULL": "cannot be written: the disk is full. Make room first.",
    "SQLITE_IOERR": "cannot be written or read. Make room on the disk, and check it.",
    "SQLITE_READONLY": "cannot be written. Make the file and its folder writeable.",
    "SQLITE_CANTOPEN": "cannot be opened. Make the file and its folder readable and writeable.",
    "SQLITE_CORRUPT": "is damaged. Put the newest copy back, and open it with anchor=.",
    "SQLITE_NOTADB": "is not a ledger, or is damaged. Put the newest copy back, and open it with anchor=.",
    "SQLITE_ERROR": "is not a ledger, or is damaged. Put the newest copy back, and open it with anchor=.",
    "SQLITE_CONSTRAINT": "refused the entry, which breaks its rules. Check it with python -m pymc_dp ledger.",
}


@dataclass(frozen=True)
class _Opened:
    """A connection to a ledger whose lock is held."""

    connection: sqlite3.Connection
    path: Path
    anchor: _Anchor

    def newest(self) -> _Entry:
        """The last entry of the chain, whose own hash is right."""
        row = self.connection.execute("SELECT id, kind, facts, hash FROM entries ORDER BY id DESC LIMIT 1").fetchone()
        if row is None:
            raise Refusal(f"{self.path.name} {REASONS['SQLITE_CORRUPT']}")
        return _read(row, self.path.name)

    @contextmanager
    def transaction(self) -> Iterator[_Entry]:
        """What is written in this block is on disk at its end, or not written at all."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.newest()
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise
        self.anchor.write(self.newest().hash, _place(self.path, self.path))

    def append(self, kind: str, facts: dict[str, Any], cost: Cost | None = None) -> _Entry:
        """Write the next link, inside a transaction."""
        newest = self.newest()
        carried = {"granted": newest.facts["granted"], "spent": newest.spent, "prev": newest.hash}
        return _written(self.connection, newest.id + 1, kind, carried | facts, cost)

    def check(self, anchor: str | None) -> None:
        """The file has a ledger's journal, is where it was made, and is no older than what was last seen of it."""
        name = self.path.name
        if self.connection.execute("PRAGMA journal_mode").fetchone() != ("delete",):
            raise Refusal(f"{name} has another journal than a ledger's, so another program changed it. Put the newest copy back.")
        self.connection.execute("PRAGMA synchronous = EXTRA")
        newest, (noted, place) = self.newest(), self.anchor.read()
        for head in (anchor, noted):
            if head and not self.connection.execute("SELECT 1 FROM entries WHERE hash = ?", (head,)).fetchone():
                raise Refusal(f"{name} does not remember all that was charged: it was put back or cut. Put the newest copy back.")
        if noted and place == _place(self.path, self.path):
            return
        if not anchor or anchor != newest.hash:
            raise Refusal(
                f"{name} was copied, moved or put back, so it may lack charges. Open it with anchor=, the ledger head in the newest"
                " result that was paid from it."
            )
        with self.transaction():
            self.append("move", {})


# ---------- the chain


def _written(connection: sqlite3.Connection, number: int, kind: str, facts: dict[str, Any], cost: Cost | None) -> _Entry:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    facts = {**facts, "granted": _plain_grant(facts["granted"]), "id": number, "kind": kind, "time": now}
    text = json.dumps(facts, sort_keys=True)
    pure, rho = (None, None) if cost is None else _units(cost)
    row = (number, kind, pure, rho, text, _hash(text))
    connection.execute("INSERT INTO entries (id, kind, pure, rho, facts, hash) VALUES (?, ?, ?, ?, ?, ?)", row)
    return _Entry(number, kind, json.loads(text), _hash(text))


def _plain_grant(granted: _Grant | dict) -> dict:
    return asdict(granted) if isinstance(granted, _Grant) else granted


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(row: tuple, name: str) -> _Entry:
    number, kind, text, found = row
    facts = json.loads(text)
    if found != _hash(text) or (number, kind) != (facts["id"], facts["kind"]):
        raise Refusal(f"{name} was changed: entry {number} is not what was written. Put the newest copy back, and open it with anchor=.")
    return _Entry(number, kind, facts, found)


def _verified(connection: sqlite3.Connection, name: str) -> list[_Entry]:
    """The whole chain: every link hashed, joined to the one before, and every sum done again."""
    if connection.execute("PRAGMA quick_check").fetchone() != ("ok",):
        raise Refusal(f"{name} {REASONS['SQLITE_CORRUPT']}")
    rows = connection.execute("SELECT id, kind, facts, hash, pure, rho FROM entries ORDER BY id").fetchall()
    entries: list[_Entry] = []
    for number, (*row, pure, rho) in enumerate(rows, 1):
        entry = _read(tuple(row), name)
        before = entries[-1] if entries else None
        right = entry.id == number and entry.facts.get("prev") == (before.hash if before else None)
        right &= (entry.kind == "open") == (before is None)
        if before is not None and entry.kind == "charge":
            cost = _cost(entry.facts["cost"])
            right &= (pure, rho) == _units(cost) and entry.spent == _after(before.spent, cost, entry.facts["part"])
            right &= _fits(entry.spent, entry.granted)
        elif before is not None:
            right &= entry.spent == before.spent
        if before is not None and entry.kind != "grant":
            right &= entry.granted == before.granted
        if not right:
            raise Refusal(f"{name} was changed: entry {number} does not follow from the one before. Put the newest copy back.")
        entries.append(entry)
    if not entries or entries[0].facts["format"] != FORMAT:
        raise Refusal(f"{name} is not a ledger that this version can read. Use the version that made it.")
    return entries


def _cost_facts(cost: Cost) -> dict[str, str | None]:
    return {"epsilon": str(cost.epsilon), "delta": str(cost.delta), "rho": None if cost.rho is None else str(cost.rho)}


def _cost(facts: dict[str, str | None]) -> Cost:
    return Cost(Fraction(facts["epsilon"] or 0), Fraction(facts["delta"] or 0), None if facts["rho"] is None else Fraction(facts["rho"]))


def _draw_facts(draws: Sequence[Draw]) -> list[dict[str, Any]]:
    return [asdict(one) | {"difference": str(one.difference), "square": str(one.square)} for one in draws]


# ---------- sums


def _units(cost: Cost) -> tuple[int | None, int]:
    """Units of pure epsilon, None where the cost is not pure, and of rho; rounded up."""
    return (None if cost.delta else ceil(cost.epsilon * UNITS)), ceil(cost.concentrated * UNITS)


def _after(spent: _Spent, cost: Cost, part: str) -> _Spent:
    pure, rho = _units(cost)
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
