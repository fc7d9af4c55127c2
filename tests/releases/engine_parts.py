"""What the tests of engines share: a table in parts, what a release of it says, and a worker that waits to be killed the first time."""

import os
import signal
import threading
import time
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
from checks import contents, seam_of

import pymc_dp as pmdp

RNG = np.random.default_rng(1)
N, PARTS = 61, 4
FRAME = pd.DataFrame({"x": RNG.normal(size=N), "site": RNG.integers(0, 3, N), "y": RNG.normal(size=N), "k": RNG.integers(0, 2, N)})
DECLARED = {"bounds": {"x": (-2, 2), "y": (-1, 1)}, "epsilon": 1}
KINDS = [{}, {"neighbours": "add_remove"}, {"missing": ["y"]}]
CANARY = 7123.456789
MOST = 2
"""So many rows of a person count in these tests."""
OF_PERSONS = [{"unit": pmdp.Person("who", MOST), "neighbours": neighbours, "missing": ["y"]} for neighbours in ("replace", "add_remove")]
"""Declarations where rows of persons are protected together; for ``with_persons``."""


def model(placeholder=0.0):
    with pm.Model() as built:
        x, site = pm.Data("x", np.full(2, placeholder)), pm.Data("site", np.zeros(2, dtype=int))
        pm.Bernoulli("k", pm.Beta("p", 1, 1, shape=3)[site], observed=np.zeros(2, dtype=int))
        pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, pm.HalfNormal("sd"), observed=np.full(2, placeholder))
    return built


def votes():
    """A model that is read quickly."""
    with pm.Model() as built:
        pm.Bernoulli("k", pm.Beta("p", 1, 1), observed=np.zeros(2, dtype=int))
    return built


LABELS = ["north", "west", "south"]


def sites():
    """A model with labels of the levels of a column."""
    with pm.Model(coords={"place": LABELS}) as built:
        share = pm.Beta("p", 1, 1, dims="place")
        pm.Bernoulli("k", share[pm.Data("site", np.zeros(2, dtype=int))], observed=np.zeros(2, dtype=int))
    return built


def of_labels():
    """The table that ``sites`` reads, with labels, and what is said of it with numbers in their place."""
    frame = FRAME[["site", "k"]]
    return frame.assign(site=np.array(LABELS, dtype=object)[frame["site"]]), said(frame, sites())


def said(data, built=None, **more):
    """All that a release says where the noise is nothing, and so its exact sums."""
    with seam_of(0):
        released = pmdp.release(built or model(), data=data, **(DECLARED if built is None or "y" in built else {"epsilon": 1}) | more)
    return contents(released)


def odd(frame=FRAME):
    """Some values that are no numbers, one of each kind, which make columns objects."""
    found = frame.astype(object)
    found.loc[3, "y"], found.loc[4, "x"], found.loc[50, "site"], found.loc[51, "k"] = "secret", None, "1", float("nan")
    return found


NO_NUMBERS = [None, "?", "", "0x", "NaN", "1_0", "--1", "\u0661", "1e", "2020-01-01", "[1]", "\x00", "1+1j", "9" * 101]
NO_VALUES = [
    *NO_NUMBERS[:4],
    b"\xff",
    Decimal("NaN"),
    datetime(2020, 1, 1),
    [1],
    {},
    complex(1, 1),
    float("nan"),
    pd.NA,
    set(),
    np.zeros(2),
]
"""14 kinds of what is no number, as a file of text holds them, and as Python does."""


def malformed(kinds):
    """A table in which 14 rows are of one kind of no number each, the first and the last among them; and one where they are NaN."""
    places = np.linspace(0, N - 1, len(kinds)).astype(int)
    frame, missing = FRAME.astype(object), FRAME.astype(float)
    for place, value in zip(places, kinds, strict=True):
        for column in range(frame.shape[1]):
            frame.iat[place, column] = value
        missing.iloc[place] = np.nan
    return frame, missing


def with_persons(frame=FRAME):
    """Twelve people whose rows lie all over the table, somebody with a name of text, and rows of nobody."""
    names = np.random.default_rng(2).integers(0, 12, N).astype(object)
    names[[5, 30, 45, 60]], names[[7, 50]] = "ann", None
    return frame.assign(who=pd.Series(names, index=frame.index).astype("string"))


def of_one_person(name, rows=9):
    """More rows of one person, who is always at the second site and always 1."""
    return pd.DataFrame({"x": 0.5, "site": 1, "y": 0.25, "k": 1, "who": pd.array([name] * rows, dtype="string")})


def files_in(folder, frame=FRAME, cuts=(0, 20, 20, 59, N)):
    """The parts of a table as Parquet files, of which one is empty and each has its own types."""
    for part, (first, last) in enumerate(pairwise(cuts)):
        chunk = frame[first:last]
        found = chunk.infer_objects()
        texts = list(frame) if part == 2 else list(found.select_dtypes(object))
        found.astype(dict.fromkeys(texts, "string")).to_parquet(folder / f"{part}.parquet")
    return folder


class Killer(threading.Thread):
    """Kills the process that says that it waits for it, and knows whom it killed."""

    def __init__(self, place):
        super().__init__(daemon=True)
        self.place, self.killed = Path(place), None

    def run(self):
        while self.killed is None:
            time.sleep(0.05)
            words = (self.place / "waits").read_text() if (self.place / "waits").exists() else ""
            if words.endswith("\n"):
                os.kill(int(words), signal.SIGKILL)
                self.killed = int(words)


class DiesOnce:
    """Sums of a part, by a worker that has read it and then waits to be killed, the first time that it is asked for any."""

    def __init__(self, place):
        self.place = str(place)

    def __call__(self, opened, source, *persons):
        import os
        import time

        from pymc_dp.releases.from_data import sums_of

        sums = sums_of(opened, source, *persons)
        with open(f"{self.place}/calls", "a") as calls:
            calls.write(f"{os.getpid()}\n")
        try:
            waits = os.open(f"{self.place}/waits", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return sums
        os.write(waits, f"{os.getpid()}\n".encode())
        time.sleep(600)
        raise AssertionError("nobody killed this process")

    def calls(self):
        return (Path(self.place) / "calls").read_text().split()


def fails(opened, source, *persons):
    """What fails with a record in its words."""
    raise ValueError([block["y"].tolist() for block in source.blocks()])
