"""A file that only grows: entries in a chain of hashes, written to disk one at a time, under a lock of the file's own. ``ledger`` uses it.

It knows nothing of budgets. It sees to it that one process writes at a time, that what it says is written survives a crash,
and that a file which was changed, cut, copied or put back is not taken for the one that was left.
"""

import ctypes
import errno
import hashlib
import json
import os
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import RLock, get_ident
from typing import Any

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.files import BESIDE, REASONS, check_file, place_of, refusing, sync_folder

with suppress(ImportError):  # not there on a platform that a ledger is not offered on; it says so
    import fcntl

TESTED = ("linux",)
"""Where the locks have been tested; elsewhere nothing is opened."""
PATIENCE = 60.0
"""Seconds to wait for other processes."""
FORMAT = 1

SCHEMA = """
CREATE TABLE entries (
    id INTEGER PRIMARY KEY CHECK (id > 0),
    kind TEXT NOT NULL,
    once TEXT,
    units INTEGER CHECK (units > 0),
    facts TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    UNIQUE (kind, once)
);
CREATE TRIGGER no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are for ever'); END;
CREATE TRIGGER no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are for ever'); END;
"""
"""``once`` can stand only once for a kind of entry; ``units`` is what an entry costs, where it does."""

CREATING = "0" * 64
MAGIC = "pymc_dp lock"


# ---------- processes

_working = RLock()
_descriptors: set[int] = set()
_holders: dict[Path, int] = {}
"""Which thread of this process holds the lock of which journal."""
_process = object()
"""Another object in every process."""


def process() -> object:
    """What tells this process from its parent and its children, whatever their numbers."""
    return _process


def _parent_again() -> None:
    with suppress(RuntimeError):  # where waiting for the lock was interrupted
        _working.release()


def _child() -> None:
    """No child has a lock or a connection of its parent's."""
    global _working, _process
    for descriptor in _descriptors:
        with suppress(OSError):
            os.close(descriptor)
    _descriptors.clear()
    _holders.clear()
    _working, _process = RLock(), object()


# SQLite must not be carried across a fork, so a fork waits until another thread's transaction is over.
os.register_at_fork(before=lambda: _working.acquire(), after_in_parent=_parent_again, after_in_child=_child)


@contextmanager
def _connected(source: str, uri: bool) -> Iterator[sqlite3.Connection]:
    connection, here = sqlite3.connect(source, uri=uri, isolation_level=None, timeout=PATIENCE), _process
    try:
        yield connection
    finally:
        if here is _process:
            connection.close()
        else:  # a child of a fork in a signal handler: closing would undo what the parent writes, so it is never closed
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


# ---------- the chain


@dataclass(frozen=True)
class Entry:
    """A link of the chain; ``facts`` holds everything that was said."""

    id: int
    kind: str
    facts: dict[str, Any]
    hash: str


type Follows = Callable[[Entry | None, Entry], bool]
"""Whether what an entry says follows from the one before, or None before the first."""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(row: tuple, name: str) -> Entry:
    number, kind, once, units, text, digest = row
    facts = json.loads(text) if isinstance(text, str) and digest == _hash(text) else {}
    if not facts or (number, kind, once, units) != tuple(facts[key] for key in ("id", "kind", "once", "units")):
        raise Refusal(f"{name} was changed: entry {number} is not what was written. Put the newest copy back, and open it with anchor=.")
    return Entry(number, kind, facts, digest)


COLUMNS = "id, kind, once, units, facts, hash"


@dataclass(frozen=True)
class Opened:
    """A journal whose lock is held, and which is what it should be."""

    connection: sqlite3.Connection
    path: Path
    note: "_Note"
    follows: Follows

    def newest(self) -> Entry:
        """The last entry of the chain, whose own hash is right."""
        entry = self.find("ORDER BY id DESC LIMIT 1")
        if entry is None:
            raise Refusal(f"{self.path.name} {REASONS['SQLITE_CORRUPT']}")
        return entry

    def find(self, which: str, *values: object) -> Entry | None:
        """The first entry for which an SQL clause holds; None where it holds for none."""
        row = self.connection.execute(f"SELECT {COLUMNS} FROM entries {which}", values).fetchone()
        return None if row is None else _read(row, self.path.name)

    def entries(self) -> list[Entry]:
        """The whole chain: every link hashed, joined to the one before, and its consequences drawn again."""
        name, entries = self.path.name, list[Entry]()
        if self.connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            raise Refusal(f"{name} {REASONS['SQLITE_CORRUPT']}")
        for number, row in enumerate(self.connection.execute(f"SELECT {COLUMNS} FROM entries ORDER BY id").fetchall(), 1):
            entry, before = _read(row, name), entries[-1] if entries else None
            if number == 1 and entry.facts["format"] != FORMAT:
                raise Refusal(f"{name} has a format that this pymc_dp does not know. Install the version that made it, or a later one.")
            joined = entry.id == number and entry.facts["prev"] == (before.hash if before else None)
            if not (joined and self.follows(before, entry)):
                raise Refusal(f"{name} was changed: entry {number} does not follow from the one before. Put the newest copy back.")
            entries.append(entry)
        return entries

    @contextmanager
    def transaction(self) -> Iterator[Entry]:
        """What is written in this block is on disk at its end, or not written at all."""
        here = _process
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.newest()
            if here is not _process:
                raise Refusal("A process was forked in the middle of a charge, and its child cannot go on with it. Release again.")
            self.connection.execute("COMMIT")
        except BaseException:
            if here is _process and self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise
        self.note.write(self.newest().hash, place_of(self.path, self.path))

    def append(self, kind: str, facts: dict[str, Any], *, once: str | None = None, units: int | None = None) -> Entry:
        """Write the next link, inside a transaction; it is read back and checked before it can be committed."""
        before = self.newest()
        _insert(self.connection, before, kind, facts, once, units)
        entry = self.newest()
        if not self.follows(before, entry):
            raise Refusal("The entry does not follow from what the ledger says. Give costs as exact fractions.")
        return entry

    def check(self, anchor: str | None, first: str | None) -> None:
        """Check that the file has a ledger's journal and tables, stands where it stood, and is no older than what was last seen of it."""
        name, here = self.path.name, place_of(self.path, self.path)
        if self.connection.execute("PRAGMA journal_mode").fetchone() != ("delete",):
            raise Refusal(f"{name} has another journal than a ledger's, so another program changed it. Put the newest copy back.")
        self.connection.execute("PRAGMA synchronous = EXTRA")
        if _tables(self.connection) != _own_tables():
            raise Refusal(f"{name} is not a ledger, or was changed: its tables are others. Put the newest copy back.")
        if first and self.find("WHERE id = 1 AND hash = ?", first) is None:
            raise Refusal(f"{name} is another ledger than the one that was opened. Open it again.")
        newest, (noted, place) = self.newest(), self.note.read()
        for head in (anchor, noted if noted != CREATING else None):
            if head and self.find("WHERE hash = ?", head) is None:
                raise Refusal(
                    f"{name} does not remember all that was charged: it was put back or cut, or {name}.lock is another ledger's. Put the"
                    " newest copy back; or, if what it lacks is lost for good, remove the lock file and open it with anchor=."
                )
        if self.connection.execute("SELECT count(*) FROM entries").fetchone() != (newest.id,):
            raise Refusal(f"{name} was changed: an entry is missing. Put the newest copy back.")
        if noted and place == here:
            return
        if not anchor:
            raise Refusal(
                f"{name} was copied, moved or put back, so it may lack charges. Open it with anchor=, the ledger head in the newest"
                " result that was paid from it."
            )
        with self.transaction():
            self.append("move", {})
        self.note.sync()


def _insert(connection: sqlite3.Connection, before: Entry | None, kind: str, facts: dict, once: str | None, units: int | None) -> str:
    number = 1 if before is None else before.id + 1
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    carried = {} if before is None else {key: before.facts[key] for key in before.facts["carried"]}
    common = {"id": number, "kind": kind, "once": once, "units": units, "time": now, "prev": None if before is None else before.hash}
    if before is not None:
        common["carried"] = before.facts["carried"]
    text = json.dumps(carried | facts | common, sort_keys=True)
    connection.execute(f"INSERT INTO entries ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", (number, kind, once, units, text, _hash(text)))
    return _hash(text)


def _tables(connection: sqlite3.Connection) -> list:
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()


@cache
def _own_tables() -> list:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        return _tables(connection)


# ---------- the file


@dataclass(frozen=True)
class Journal:
    """A file, and what must hold of its entries."""

    path: Path
    follows: Follows

    def create(self, facts: dict[str, Any], carried: tuple[str, ...]) -> None:
        """Make the file with its first entry. What is ``carried`` is said again in every entry until it is said otherwise."""
        name = self.path.name
        first = facts | {"format": FORMAT, "carried": list(carried), "name": os.urandom(16).hex()}
        with refusing(name), _locked(self.path, create=True) as note:
            if os.path.lexists(self.path):
                raise Refusal(f"{name} exists already. Leave create out to open it.")
            if beside := [end for end in BESIDE if os.path.lexists(f"{self.path}{end}")]:
                raise Refusal(f"{name}{beside[0]} exists, which SQLite would take for its own. Choose another name for the ledger.")
            if note.read()[0] not in {"", CREATING}:
                raise Refusal(
                    f"{name} stood here before, and is gone with all it remembered. Put it back; or choose another name, for other data."
                )
            for left in self.path.parent.iterdir():  # by a crash
                if re.fullmatch(re.escape(name) + r"\.[0-9a-f]{32}\.new(-journal)?", left.name) and left.is_file():
                    left.unlink()
            building = self.path.with_name(f"{name}.{os.urandom(16).hex()}.new")
            try:
                with _working, _connected(str(building), uri=False) as connection:
                    connection.execute("PRAGMA synchronous = EXTRA")
                    connection.executescript(SCHEMA)
                    head = _insert(connection, None, "open", first, None, None)
                note.write(CREATING, place_of(building, self.path))
                os.rename(building, self.path)
                note.write(head, place_of(self.path, self.path))
                note.sync()
                sync_folder(self.path.parent)
            finally:
                building.unlink(missing_ok=True)

    @contextmanager
    def opened(self, anchor: str | None = None, first: str | None = None) -> Iterator[Opened]:
        """The file under its lock, for as long as this block. ``first`` is the hash of its first entry, where that is known."""
        with refusing(self.path.name), _locked(self.path) as note:
            check_file(self.path)
            with _working, _connected(f"{self.path.as_uri()}?mode={'rw' if note.writable else 'ro'}", uri=True) as connection:
                opened = Opened(connection, self.path, note, self.follows)
                opened.check(anchor, first)
                yield opened


@dataclass(frozen=True)
class _Note:
    """The lock file, locked. It notes the newest head and where the journal stands, which an older copy does not know."""

    descriptor: int
    name: str
    writable: bool

    def read(self) -> tuple[str, str]:
        """The head and the place; nothing where the file is new or a crash has spoilt it."""
        content = os.pread(self.descriptor, 4096, 0)
        lines = content.decode("ascii", "replace").split("\n")
        if not content.strip(b"\0\n "):
            return "", ""
        if lines[0] != MAGIC:
            raise Refusal(f"{self.name}.lock belongs to something else. Choose another name for the ledger.")
        head, place, sum_of_both = (*lines[1:4], "", "", "")[:3]
        return (head, place) if sum_of_both == _hash(head + place) else ("", "")

    def write(self, head: str, place: str) -> None:
        self.read()  # never over something else
        os.pwrite(self.descriptor, "\n".join([MAGIC, head, place, _hash(head + place), ""]).ljust(512).encode(), 0)

    def sync(self) -> None:
        os.fsync(self.descriptor)


@contextmanager
def _locked(path: Path, create: bool = False) -> Iterator[_Note]:
    """One process, and one thread, at a time; or several that may only read.

    The lock is on a file of its own: SQLite's own locks vanish when any descriptor of the journal is closed in the process.
    """
    if sys.platform not in TESTED:
        raise Refusal(f"A ledger has not been tested on {sys.platform}, so it is not offered there. Release without one, or on Linux.")
    if path.name.endswith((".lock", ".new", *BESIDE)):
        raise Refusal(f"{path.name} is a name for a file beside a ledger. Write for example survey.ledger.")
    if not (create or os.path.lexists(path)):
        raise Refusal(f"{path.name} does not exist. To make it, write pymc_dp.Ledger({path.name!r}, epsilon=..., create=True).")
    if _holders.get(path) == get_ident():  # it would wait for itself
        raise Refusal(f"{path.name} is in use by the call that this one was made from. Call again when that call has returned.")
    lock, deadline = f"{path}.lock", time.monotonic() + PATIENCE
    while True:
        descriptor, writable = _opened(lock, create)
        _descriptors.add(descriptor)
        try:
            while not _try_lock(descriptor, fcntl.LOCK_EX if writable else fcntl.LOCK_SH):
                if time.monotonic() > deadline:
                    raise Refusal(f"{path.name} has been locked for {PATIENCE:g} seconds. Try again when the other processes are done.")
                time.sleep(0.002 + 0.008 * os.urandom(1)[0] / 255)
            if os.path.lexists(lock) and os.path.samestat(os.stat(lock), os.fstat(descriptor)):
                note = _Note(descriptor, path.name, writable)
                note.read()  # refuses what is not ours
                if writable:
                    _share_with_the_same(descriptor, path)
                _holders[path] = get_ident()
                yield note
                return
        finally:
            if _holders.get(path) == get_ident():
                del _holders[path]
            if descriptor in _descriptors:
                _descriptors.discard(descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_UN)
                os.close(descriptor)


def _opened(lock: str, create: bool) -> tuple[int, bool]:
    """A descriptor of the lock file, and whether it may be written; who may only read it, such as an auditor, can look and not charge."""
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(lock, os.O_RDWR | os.O_CREAT | flags, 0o666), True
    except OSError as error:
        if create or error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS} or not os.path.lexists(lock):
            raise
        return os.open(lock, os.O_RDONLY | flags), False


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _share_with_the_same(descriptor: int, path: Path) -> None:
    """Whoever may write the journal may take its lock."""
    if os.path.lexists(path):
        of, lock = os.stat(path), os.fstat(descriptor)
        with suppress(PermissionError):
            if lock.st_mode & 0o777 != of.st_mode & 0o666 | 0o600:
                os.fchmod(descriptor, of.st_mode & 0o666 | 0o600)
            if (lock.st_uid, lock.st_gid) != (of.st_uid, of.st_gid):
                os.fchown(descriptor, of.st_uid, of.st_gid)
