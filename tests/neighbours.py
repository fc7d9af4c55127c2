"""Records for the programs of ``generator``, data sets that differ in one record, and models made of both."""

import random

import numpy as np
from holders import namespace
from programs import Program

CANARY = 7123.456789012345


def values_of(column, shape, rng: random.Random) -> np.ndarray:
    """Ordinary values, for a column of D."""
    several = {"real": [-1.0, 0.0, 0.5, 1.0, 0.25], "level": [0, 1], "bit": [0, 1], "count": [0, 1, 2], "total": [3, 0.5, 1.5, 2.5]}[
        column.kind
    ]
    flat = [rng.choice(several) for _ in range(int(np.prod(shape)))]
    if column.kind == "count" and column.dtype != "float64":
        flat = [int(value) for value in flat]
    return np.array(flat, dtype=float).reshape(shape).astype(column.dtype)


def records_of(program: Program, rng: random.Random) -> dict[str, np.ndarray]:
    """The columns of D."""
    data = {}
    for name, column in program.columns.items():
        data[name] = values_of(column, [program.sizes[axis] for axis in column.axes], rng)
        if program.present is not None and column.observed and column.dtype == "float64":
            data[name][program.present :] = np.nan
    return data


def another(column, old, change: str, rng: random.Random):
    """What a record may say instead."""
    if change == "canary" and column.dtype == "float64" and column.kind == "real":
        return CANARY
    if change == "nan" and column.observed and column.dtype.startswith("float"):
        return np.nan
    if change == "back":
        return 0.5
    floats = [-1.0, 1.0, 0.0, 0.5, 2.0, np.nan, np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, -0.0]
    integers = [0, 1, 1, 0, 2, -1, 4, 100]
    value = rng.choice(floats if column.kind == "real" or (column.dtype.startswith("float") and rng.random() < 0.2) else integers)
    with np.errstate(all="ignore"):
        return np.array(value).astype(column.dtype)


def another_total(program: Program, old: np.ndarray, rng: random.Random) -> np.ndarray:
    """Totals of one row, of which one individual is another one: one trial of every column, or at most two events of all."""
    if "events" not in program.unit:
        return old + np.array([rng.choice([-1, 1, 1]) for _ in np.ravel(old)]).reshape(np.shape(old)).astype(old.dtype)
    new = np.array(old)
    for step in rng.choice([(1,), (2,), (-1,), (2, -2), (1, -1), (1, -2)]) if new.ndim else rng.choice([(1,), (1,), (-1,), (2,)]):
        new[(rng.randrange(len(new)),) if new.ndim else ()] += step
    return new


def neighbour_of(program: Program, data: dict, change: str, rng: random.Random) -> tuple[dict, str]:
    """Another data set, in which one record says other things everywhere, or is not there; and in words what it is."""
    moving = sorted({column.moves for column in program.columns.values() if column.moves and column.observed})
    if program.neighbours == "add_remove":
        moving = [axis for axis in moving if axis != "item"] or moving
    axis = "person" if program.change == "remove" else rng.choice(moving)
    place = rng.randrange(max(program.sizes[axis], 1)) if rng.random() < 0.5 else 0
    for name, column in program.columns.items():
        if program.present is not None and column.observed and column.dtype == "float64" and program.neighbours != "add_remove":
            here = np.flatnonzero(~np.isnan(data[name]) if change == "nan" else np.isnan(data[name]))
            place = int(here[place % len(here)]) if len(here) else place
            break
    found, told = dict(data), f"{axis} {place}"
    for name, column in program.columns.items():
        if column.moves != axis:
            continue
        at = (slice(None),) * column.axes.index(axis) + (place,)
        if program.neighbours == "add_remove":
            found[name] = np.delete(data[name], place, axis=column.axes.index(axis))
            continue
        found[name] = data[name].copy()
        part = found[name][at]
        if program.change == "total":
            found[name][at] = another_total(program, part, rng)
        else:
            found[name][at] = [another(column, old, change, rng) for old in part] if np.ndim(part) else another(column, part, change, rng)
        told += f"; {name}{list(at)} = {found[name][at].tolist()}"
    return found, told + (" removed" if program.neighbours == "add_remove" else "")


def built(program: Program, data: dict):
    """The model, or None where PyMC cannot make it."""
    sizes = dict(program.sizes)
    for name, column in program.columns.items():
        sizes |= dict(zip(column.axes, data[name].shape, strict=True))
    scope = namespace() | {name: array.copy() for name, array in data.items()} | {"sizes": sizes}
    try:
        exec(compile(program.text, f"<program {program.seed}>", "exec"), scope)
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
    return scope["model"], ""
