"""Which rows of every person count: at most so many, chosen by that person's own rows and by nothing else.

A hash of the person's name, of what a row says and of how many rows of the person that say the same come before it decides. Of rows that
say the same it does not matter which is which, so the order of rows decides nothing. Another person who comes, goes or is exchanged changes
nothing of what is counted of this one. Whatever an array holds, nothing raises: a row without a name is nobody's.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from hashlib import blake2b
from uuid import UUID

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.families.values import LARGEST_LEVEL, LONGEST_VALUE, READ, number_of_bits, plain
from pymc_dp.models.spec import Likelihood, RecordPaths
from pymc_dp.plans.person import Person
from pymc_dp.privacy.accounting import nearest_double
from pymc_dp.releases.statistics import as_many, records_of, value_of

PURPOSE = b"pymc_dp person"
"""Makes these hashes others than any that a data set's own names may come from."""
SPELLED = re.compile(r"([+-]?)([0-9]*)(?:(\.)([0-9]*))?", re.ASCII)
"""A number without an exponent, as those who read files of text take it for one: sign, whole digits, point, and digits after it."""
EXPONENT = re.compile(READ, re.ASCII | re.IGNORECASE)
"""A number with an exponent, or an infinite one, as they take it for one."""
TRUTHS = {"true": 1, "false": 0}
"""What truth values are where another value of their column is text, in small letters."""
NOBODY = frozenset({"", "na", "n/a", "#na", "#n/a", "#n/a n/a", "null", "nan", "-nan", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"})
"""What is missing to those who read files of text where all others are numbers, and text to some where one is not; in small letters."""


def rows_that_count(likelihoods: Sequence[Likelihood], paths: Mapping[str, RecordPaths], person: Person | None) -> np.ndarray | None:
    """Which rows of a model's records count, by all that is read of a row, in the order of names: (N,) bool, or None where all do."""
    if person is None:
        return None
    observed = {likelihood.name: records_of(paths[likelihood.name].observed) for likelihood in likelihoods}
    values_by_name, records = dict(observed), max(map(len, observed.values()))
    for likelihood in likelihoods:
        for placeholder, path in zip(likelihood.inputs, paths[likelihood.name].inputs, strict=True):
            if placeholder.private and path.axis is not None:
                values_by_name[placeholder.name] = np.moveaxis(records_of(path), path.axis, 0)
    key = paths[likelihoods[0].name].key
    assert key is not None
    whose = names_of(value_of(key) if isinstance(key, Variable) else key, records, declared=person.declared)
    return counted_rows(whose, person.at_most, [as_many(values_by_name[name], 0, records) for name in sorted(values_by_name)])


def counted_rows(whose: np.ndarray, at_most: int, values: Sequence[np.ndarray]) -> np.ndarray:
    """Which rows count: (N,) bool.

    Of a person with more rows than count, those count that have the smallest hashes of the person's name, what the row says, and its place
    among the person's own rows that say the same. It is the same in every release of the same columns, in any order of rows. To a model in
    which a person's rows are exchangeable it is a sample of them: every set of so many rows is as probable, over the hashes of names.

    Parameters
    ----------
    whose : (N, 2) uint64 ndarray
        As ``names_of`` makes it; 0, 0 is nobody.
    at_most : int
    values : sequence of ndarray
        Of shape (N, ...): numbers that say all that is read of a row.
    """
    counted = (whose != 0).any(axis=1)
    persons, many = _groups(whose)
    several = np.flatnonzero(counted & (many[persons] > at_most))
    if not len(several):
        return counted
    counted[several] = False
    contents = np.column_stack([whose[several], *(_bits(array, several) for array in values)])
    contents, several = contents[order := np.lexsort(contents.T[::-1])], several[order]
    place = _places(contents)
    drawn = _hashes(contents, place)
    first = contents[:, :2]
    order = np.lexsort((drawn[:, 1], drawn[:, 0], first[:, 1], first[:, 0]))
    counted[several[order[_places(first[order]) < at_most]]] = True
    return counted


def _groups(whose: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A number for the person of every row, (N,), and how many rows each has."""
    order = np.lexsort((whose[:, 1], whose[:, 0]))
    inside = np.empty(len(whose), dtype=np.int64)
    inside[order] = np.cumsum(_begins(whose[order])) - 1
    return inside, np.bincount(inside)


def _begins(rows: np.ndarray) -> np.ndarray:
    """Where a row differs from the one before: (N,) bool."""
    return np.append(True, (rows[1:] != rows[:-1]).any(axis=1))[: len(rows)]


def _places(rows: np.ndarray) -> np.ndarray:
    """The place of every row in its run of equal ones: (N,) uint64."""
    places = np.arange(len(rows))
    return (places - np.maximum.accumulate(np.where(_begins(rows), places, 0))).astype(np.uint64)


def _bits(array: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """What some rows say, as the bits of doubles: (N, K) uint64. Equal numbers have equal bits, and so has whatever is missing."""
    values = as_doubles(np.asarray(array)[rows]).reshape(len(rows), -1) + 0.0  # of which -0 becomes 0
    values[np.isnan(values)] = np.nan
    return values.view(np.uint64)


def as_doubles(values: np.ndarray) -> np.ndarray:
    """Each number as the nearest double, NaN where it is none: whatever holds the numbers, and whatever is among them."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    numbers = (plain(value) for value in values.ravel().tolist())
    doubles = [np.nan if number is None or isinstance(number, str) else nearest_double(number) for number in numbers]
    return np.array(doubles, dtype=np.float64).reshape(values.shape)


def _hashes(contents: np.ndarray, place: np.ndarray) -> np.ndarray:
    """(N, 2) uint64: of a person's name, what a row says, and its place among those that say the same."""
    text, width = np.column_stack([contents, place]).astype("<u8").tobytes(), 8 * (contents.shape[1] + 1)
    return _as_numbers(blake2b(text[k : k + width], digest_size=16, person=PURPOSE).digest() for k in range(0, len(text), width))


def _as_numbers(hashes: Iterable[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(hashes), ">u8").reshape(-1, 2).astype(np.uint64)


# ---------- whose a row is


def names_of(names: np.ndarray, records: int | None = None, *, declared: bool = True) -> np.ndarray:
    """To whom every row belongs: (N, 2) uint64, the same for equal names and for no others; 0, 0 for nobody.

    Parameters
    ----------
    names : (M,) ndarray
        Numbers, texts, or objects that are these.
    records : int, optional
        N, if it is not M: rows that the names do not reach are nobody's.
    declared : bool
        Whether the type they came in holds any name beside any other. If not, one name that is missing or has a fraction makes doubles
        of all, in which large whole numbers are lost: so these are nobody's there whatever the type.
    """
    names = names[:records]
    whose = np.zeros((len(names) if records is None else records, 2), dtype=np.uint64)
    if names.dtype.kind in "OT":
        known: dict[bytes, bytes] = {}
        hashes = []
        for value in names.astype(object):
            name = _name(value, declared)
            hashes.append(bytes(16) if name is None else known.get(name) or known.setdefault(name, _hash(name)))
        whose[: len(names)] = _as_numbers(hashes)
    else:
        distinct, places = np.unique(names, return_inverse=True, equal_nan=True)
        several = (_name(value, declared) for value in distinct)
        whose[: len(names)] = _as_numbers(bytes(16) if name is None else _hash(name) for name in several)[places.ravel()]
    return whose


def _hash(name: bytes) -> bytes:
    return blake2b(name, digest_size=16, person=PURPOSE).digest()


def _name(value: object, declared: bool) -> bytes | None:
    """What equal names have in common and no others: 3, 3.0, True's 1 and the digits of each are one; None for what is no name.

    So what becomes text, bytes or a double because of one row names the same people as before. A double beyond 2^53 may be several whole
    numbers, so it names nobody. Whole numbers are written in hexadecimal, which Python does for numbers of any length; of decimal digits
    it refuses more than 4,300, or than it is told, and one person's name would stop the release.
    """
    if isinstance(value, np.generic):
        value = _of_numpy(value)
    if type(value) is UUID and type(number := getattr(value, "int", None)) is int and 0 <= number < 2**128:
        value = str(value)
    if type(value) is bytes:
        value = value.decode(errors="surrogateescape")
    if type(value) is str:
        value = _spelled(value.rstrip("\0"))  # which NumPy takes off
    if type(value) is str:
        text = value.encode(errors="surrogatepass")
        return b"text " + text if len(text) <= LONGEST_VALUE else None
    if type(value) is complex:
        value = value.real if value.imag == 0 else None
    if type(value) is Decimal and value.is_finite() and abs(value.adjusted()) < 100:
        value = int(value) if value == value.to_integral_value() else float(value)
    if type(value) is float:
        if not abs(value) <= LARGEST_LEVEL:
            return None
        return f"number {int(value):x}".encode() if value.is_integer() else f"number {value!r}".encode()
    if type(value) not in (int, bool) or not (declared or abs(value) <= LARGEST_LEVEL):  # type: ignore[arg-type]
        return None
    return f"number {value:x}".encode()


def _of_numpy(value: np.generic) -> object:
    """A value of NumPy as Python's own; a date is none, nor is a duration."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return None
    with np.errstate(all="ignore"):
        return float(value) if isinstance(value, np.floating) else complex(value) if isinstance(value, np.complexfloating) else value.item()


def _spelled(text: str) -> str | int | float | Decimal | None:
    """The number that a text spells, in decimals, with an exponent, in sixteens or twos; None where it is missing; otherwise the text.

    So "007" is 7, "1.50" is 1.5 and "3E2" is 300, as they are to those who read them from a file in which all are numbers.
    """
    if len(text) > LONGEST_VALUE:
        return None
    alone = text.strip(" \t")
    small = alone.lower()
    if small in TRUTHS or small in NOBODY:
        return TRUTHS.get(small)
    if (number := number_of_bits(alone)) is not None:
        return Decimal(number)  # which nobody makes a double of
    found = SPELLED.fullmatch(alone)
    if found and (found[2] or found[4]):
        if (found[4] or "").strip("0"):
            return float(alone)
        whole = _whole(found[2] or "0") * (-1 if found[1] == "-" else 1)
        return whole if found[3] is None or abs(whole) <= LARGEST_LEVEL else None
    return float(alone) if EXPONENT.fullmatch(alone) else text


def _whole(digits: str) -> int:
    """The number of at most ``LONGEST_VALUE`` digits, half by half: Python may be told to read no more than 640 at once."""
    half = LONGEST_VALUE // 2
    return int(digits[:-half] or "0") * 10**half + int(digits[-half:])
