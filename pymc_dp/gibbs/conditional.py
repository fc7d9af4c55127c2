"""The factors of a model's density that a variable is part of, compiled as functions of it and of the rest.

A step method needs nothing else of a model: ``states`` and ``conjugate`` find out what they have to know by evaluating these
functions. So any spelling of a model goes through, and what does not fit is seen in the numbers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import pymc as pm
import pytensor
from numpy.random import Generator
from pymc.logprob.basic import transformed_conditional_logp
from pymc.logprob.utils import replace_rvs_by_values
from pymc.pytensorf import compile as compile_graph
from pytensor.compile.executor import Function
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import WalkingGraphRewriter, node_rewriter
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.link.numba.linker import NumbaLinker
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.subtensor import AdvancedSubtensor

type Point = Mapping[str, np.ndarray]

PROBE = Mode("py", "fast_compile")
"""The mode of functions that are called a few times: nothing is compiled to machine code, which takes longer than calling them."""
FEW = 200
"""Entries of which a function costs next to nothing."""
JITTER = 0.4
"""How far made-up points lie from the initial one, on the unconstrained scale."""


@dataclass(frozen=True)
class Factors:
    """The log-density of a model, factor by factor.

    Attributes
    ----------
    values : dict
        From each random variable to what stands for its value: PyMC's own, transformed ones, but for those asked for as they are.
    terms : tuple of Variable
        Elementwise log-densities of variables, then potentials.
    of : tuple of Variable
        Whose log-densities they are, or which potentials.
    """

    values: dict[Variable, Variable]
    terms: tuple[Variable, ...]
    of: tuple[Variable, ...]

    def depending_on(self, variables: Iterable[Variable], without: Iterable[Variable] = ()) -> list[Variable]:
        """The factors in which one of these values stands, without those of some random variables, and without some potentials."""
        several, left_out = set(variables), set(without)
        terms = [term for term, whose in zip(self.terms, self.of, strict=True) if whose not in left_out]
        return [term for term in terms if several & set(ancestors([term]))]


def factors(model: pm.Model, natural: Iterable[Variable] = ()) -> Factors:
    """The factors of a model, with some variables as they are instead of transformed.

    The other variables keep their transforms, and with them the determinants: what is held fixed in a step is what PyMC's
    points hold, so where the support of one depends on another, that one's conditional has the determinant in it, as it must.
    """
    values, transforms = dict(model.rvs_to_values), dict(model.rvs_to_transforms)
    for random in natural:
        if transforms[random] is not None:
            values[random] = random.type(name=f"{random.name}_natural")
            transforms[random] = None
    terms = transformed_conditional_logp(model.basic_RVs, rvs_to_values=values, rvs_to_transforms=transforms)
    potentials = replace_rvs_by_values(model.potentials, rvs_to_values=values, rvs_to_transforms=transforms) if model.potentials else []
    return Factors(values, (*terms, *potentials), (*model.basic_RVs, *model.potentials))


@dataclass(frozen=True)
class Compiled:
    """A function of some values, given first and in order, and of the rest of a point.

    Attributes
    ----------
    given : int
        How many values.
    rest : tuple of str
        What of a point it needs.
    function : Callable
        Of the values and of the rest.
    """

    given: int
    rest: tuple[str, ...]
    function: Callable

    @cached_property
    def direct(self) -> tuple[Callable, Sequence[list[np.ndarray]]]:
        """What costs least to call, and where the values of shared variables are kept that it has to be given last.

        That is what numba made of the graph, without what PyTensor does around it.
        """
        function = self.function
        if not isinstance(function, Function) or not isinstance(function.maker.linker, NumbaLinker):
            return function, ()
        return function.vm.jit_fn, function.vm.inputs[self.given + len(self.rest) :]

    def __reduce__(self) -> tuple[type, tuple]:
        """Pickle all but what numba made, which no other process can call."""
        return Compiled, (self.given, self.rest, self.function)

    def __call__(self, point: Point, *values: np.ndarray) -> Sequence[np.ndarray]:
        """The values of the function at a point."""
        return self.at(point)(*values)

    def at(self, point: Point) -> Callable[..., Sequence[np.ndarray]]:
        """The function of the values at a point."""
        function, shared = self.direct
        rest = [np.asarray(point[name]) for name in self.rest] + [value for [value] in shared]
        return (lambda *values: function(*values, *rest)) if rest else function


def compiled(model: pm.Model, values: Sequence[Variable], graphs: Sequence[Variable], **settings: object) -> Compiled:
    """Compile graphs as functions of values and of the rest of a point, as far as they need it."""
    needed, probe = set(ancestors(graphs)), settings.get("mode") is PROBE
    rest = [value for value in model.value_vars if value in needed and value not in set(values)]
    outputs = list(graphs) if probe else rewrite_graph(list(graphs), include=(), custom_rewrite=BEFORE)
    with pytensor.config.change_flags(cxx="" if probe else pytensor.config.cxx):
        function = compile_graph([*values, *rest], outputs, on_unused_input="ignore", **{"mode": None, **settings})
    function.trust_input = True
    return Compiled(len(values), tuple(str(value.name) for value in rest), function)


@node_rewriter([Elemwise])
def before_picking(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """f(x[states]) as f(x)[states]: a logarithm is taken for each entry of x, not for each site."""
    picked = node.inputs[0].owner
    if len(node.inputs) > 1 or picked is None or not isinstance(picked.op, AdvancedSubtensor):
        return None
    x, *states = picked.inputs
    if None in x.type.shape or prod(x.type.shape) > FEW:
        return None
    return [picked.op(node.op(x), *states)]


BEFORE = WalkingGraphRewriter(before_picking, order="in_to_out")


def fixed_generator() -> Generator:
    """What made-up points are drawn with: always the same, so that a model is understood or not, whenever it is asked."""
    return np.random.default_rng(0)


def initial_point_of(model: pm.Model) -> dict[str, np.ndarray]:
    """PyMC's own initial point; compiling it takes longer than evaluating it once."""
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        return model.initial_point(random_seed=0)


def jittered(start: Point, rng: Generator) -> dict[str, np.ndarray]:
    """A point near another: what is true of a model at a few of these is taken to be true of it, and checked later."""
    return {
        name: np.asarray(value + JITTER * rng.normal(size=value.shape), value.dtype) if value.dtype.kind == "f" else value
        for name, value in ((name, np.asarray(value)) for name, value in start.items())
    }
