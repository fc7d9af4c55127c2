"""Any output of any function -> what it looks like, and its numbers, so that runs can be compared. Events are chosen to the right.

Everything that someone who is handed the output can see is in one of the two: types, shapes, names, words, warnings, and an exception
in place of an output. What is printed, logged or written to files is not.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Number
from sys import intern
from typing import NamedTuple

import numpy as np

from pymc_dp.accounting import Refusal

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


class Outcome(NamedTuple):
    """What one run came to.

    Attributes
    ----------
    look : str
        Everything about it but its numbers.
    numbers : (K,) float64 ndarray
        In the order in which they stand in the output.
    raised : bool
    """

    look: str
    numbers: np.ndarray
    raised: bool


def run(mechanism: Callable[[object], object], data: object, warned: list) -> tuple[Outcome, object]:
    """One run: its outcome and its output, which is the exception if it raised one.

    Parameters
    ----------
    mechanism, data
    warned : list
        To which ``warnings.catch_warnings(record=True, action="always")`` appends; emptied here.
    """
    warned.clear()
    try:
        output, raised = mechanism(data), False
    except Exception as error:
        output, raised = error, True
    told = [f"{one.category.__name__}: {one.message}" for one in warned]
    if told:
        output = {"warned": ", ".join(told), "returned": output}
    return _outcome(output, raised), output


def names(output: object) -> list[str]:
    """What each number of an output is called: ``output[2]``, ``output.noisy[0,1]``."""
    return [name for path, part in parts(output) if not isinstance(part, str) for name in _entries(path, part)]


def _entries(path: str, part: np.ndarray) -> list[str]:
    return [path + ("[" + ",".join(map(str, index)) + "]" if index else "") for index in np.ndindex(part.shape)]


def _outcome(output: object, raised: bool) -> Outcome:
    if type(output) is float or type(output) is int:
        try:
            return Outcome(type(output).__name__, np.array([output], dtype=np.float64), False)
        except OverflowError:
            pass
    if type(output) is np.ndarray and output.dtype.kind in "iuf":
        return Outcome(f"{output.dtype}{output.shape}", output.astype(np.float64).ravel(), False)
    looks, numbers = [], []  # every array follows a word that tells its shape
    for path, part in parts(output):
        if isinstance(part, str):
            looks.append(f"{path} {part}" if path != "output" else part)
        else:
            numbers.append(part.astype(np.float64).ravel())
    return Outcome(intern("; ".join(looks)), np.concatenate(numbers) if numbers else np.zeros(0), raised)


def parts(output: object, path: str = "output") -> Iterator[tuple[str, str | np.ndarray]]:
    """Words and arrays of numbers that an output is made of, each with where it stands."""
    kind = type(output)
    if output is None or isinstance(output, bool | np.bool_ | bytes):
        yield path, repr(output)
    elif isinstance(output, str):
        yield from _words(output, path)
    elif isinstance(output, BaseException):
        yield from _words(f"{kind.__name__}: {output}", path)
    elif isinstance(output, Number | Decimal):
        yield path, kind.__name__
        yield from _number(output, path)
    elif isinstance(output, np.ndarray):
        yield from _array(output, path)
    elif isinstance(output, Mapping) and kind.__module__.split(".")[0] != "xarray":  # whose attributes are no items
        yield path, kind.__name__
        for key, value in output.items():
            yield from parts(value, f"{path}[{key!r}]")
    elif isinstance(output, Sequence | Set):
        yield path, f"{kind.__name__} of {len(output)}"
        for k, value in enumerate(output if isinstance(output, Sequence) else sorted(output, key=repr)):
            yield from parts(value, f"{path}[{k}]")
    elif is_dataclass(output):
        yield path, kind.__name__
        for field in fields(output):
            yield from parts(getattr(output, field.name), f"{path}.{field.name}")
    else:
        yield path, kind.__name__
        yield from _foreign(output, path)


def _number(output: object, path: str) -> Iterator[tuple[str, str | np.ndarray]]:
    if isinstance(output, Fraction):
        yield from parts([output.numerator, output.denominator], path)
        return
    try:
        numbers = np.array([output.real, output.imag] if isinstance(output, complex) else output, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):  # an integer too large, say
        yield path, repr(output)
    else:
        yield path, numbers


def _array(output: np.ndarray, path: str) -> Iterator[tuple[str, str | np.ndarray]]:
    yield path, f"{output.dtype}{output.shape}"
    if output.dtype.kind in "iufb":
        yield path, output
    elif output.dtype.kind == "c":
        yield path, np.stack([output.real, output.imag], axis=-1)
    elif output.dtype.kind in "mM":
        yield path, output.astype(np.int64)
    else:
        for index, value in zip(np.ndindex(output.shape), output.ravel().tolist()):
            yield from parts(value, f"{path}[{','.join(map(str, index))}]")


def _words(text: str, path: str) -> Iterator[tuple[str, str | np.ndarray]]:
    """A text as what stands between its numbers, and its numbers."""
    yield path, repr(NUMBER.sub("#", text))
    found = NUMBER.findall(text)
    if found:
        yield path, np.array([float(number) for number in found])


def _foreign(output: object, path: str) -> Iterator[tuple[str, str | np.ndarray]]:
    """Tables of pandas and xarray, and whatever says in words what it holds."""
    home = type(output).__module__.split(".")[0]
    if home == "xarray" and hasattr(output, "to_dict"):
        # Of a tree, data sets by path; of a data set or array, nested dicts.
        yield from parts(output.to_dict() if hasattr(output, "subtree") else output.to_dict(data="array"), path)
    elif home == "pandas" and hasattr(output, "columns"):
        columns = {str(name): column.to_numpy() for name, column in output.items()}  # type: ignore[attr-defined]
        yield from parts({"columns": columns, "index": output.index.to_numpy()}, path)  # type: ignore[attr-defined]
    elif home == "pandas" and hasattr(output, "index") and hasattr(output, "to_numpy"):
        yield from parts({"values": output.to_numpy(), "index": getattr(output.index, "to_numpy", list)()}, path)
    elif (text := repr(output)) and " at 0x" not in text and " object at " not in text:
        yield from _words(text, path)
    else:
        raise Refusal(
            f"The mechanism returned a {type(output).__name__}, which does not say what it holds. Return numbers, arrays, tables, text,"
            " or a dict of them."
        )
