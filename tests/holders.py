"""What the programs of ``generator`` may name: libraries, and things that hold an array."""

import array
import collections
import contextlib
import functools
import operator
import types

import numpy as np
import pandas as pd
import pymc as pm
import pymc.dims as pmd
import pytensor
import pytensor.ifelse
import pytensor.sparse
import pytensor.tensor as pt
import scipy.interpolate
import scipy.sparse
import scipy.stats
import xarray as xr
from pymc.distributions.dist_math import SplineWrapper
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import wrap_py
from pytensor.typed_list import TypedListType
from pytensor.typed_list.basic import TypedListConstant

Pair = collections.namedtuple("Pair", ["first", "second"])


class Slots:
    """An object without a dictionary."""

    __slots__ = ("kept",)

    def __init__(self, kept):
        self.kept = kept

    def __getstate__(self):
        return self.kept

    def __setstate__(self, kept):
        self.kept = kept


class Keeper:
    """An object that is called."""

    def __init__(self, kept):
        self._kept = {"a": [kept]}

    def __call__(self, k):
        return self._kept["a"][0][k]


class Shift(pm.distributions.transforms.Transform):
    """A transform that holds something."""

    name = "shift"

    def __init__(self, held, read):
        self.held, self.read = held, read

    def forward(self, value, *inputs):
        return value - self.read()

    def backward(self, value, *inputs):
        return value + self.read()

    def log_jac_det(self, value, *inputs):
        return pt.zeros_like(value)


class Box(pytensor.graph.Op):
    """An operation of the user's own."""

    def __init__(self, held):
        self.held = held

    def make_node(self, a):
        a = pt.as_tensor(a)
        return pytensor.graph.Apply(self, [a], [a.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(inputs[0] * self.held[0])


def deep(held, depth):
    """A function that holds a function, and so on."""
    if depth == 0:
        return lambda: held[0]
    inner = deep(held, depth - 1)
    return lambda: inner()


def closed(h, held, function):
    """A function of the other arguments."""
    return lambda *given: function(h, held, *given)


def spline(held):
    return scipy.interpolate.InterpolatedUnivariateSpline(np.arange(len(held)) * 1.0, held, k=1)


def wrapped(held):
    return wrap_py([pt.dscalar], [pt.dscalar])(lambda a: np.asarray(a * held[0]))


def graph_of(held):
    a = pt.dscalar()
    return OpFromGraph([a], [(a * pt.as_tensor(held)).sum()])


def named(kind, bases, content):
    return type(kind, bases, content)


def namespace() -> dict[str, object]:
    """The names of a program, but for its columns."""
    return dict(NAMES)


NAMES = {
    "np": np, "pm": pm, "pmd": pmd, "pt": pt, "pytensor": pytensor, "pd": pd, "xr": xr, "scipy": scipy, "functools": functools,
    "collections": collections,
    "operator": operator, "types": types, "array": array, "contextlib": contextlib,
    "Slots": Slots, "Keeper": Keeper,
    "Shift": Shift, "Box": Box, "Pair": Pair, "deep": deep, "closed": closed, "spline": spline, "wrapped": wrapped, "graph_of": graph_of,
    "Named": named, "SplineWrapper": SplineWrapper, "TypedListType": TypedListType, "TypedListConstant": TypedListConstant,
}  # fmt: skip
try:
    import polars

    NAMES["pl"] = polars
except ImportError:  # declared for development only
    NAMES["pl"] = pd
