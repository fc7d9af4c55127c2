"""What a model may hold besides its graph: operations that are understood, and functions that hold plain numbers only.

The rules, with the names in ``allow_list``, say what may pass; whatever no rule names is refused. Memory that arrays share is looked at
in ``same_arrays``; ``problems`` says what is found here. No value is compared, and only public things are counted.
"""

import builtins
import dis
import functools
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator

import numpy as np
from pymc.distributions.custom import CustomDistRV, CustomSymbolicDistRV
from pymc.distributions.distribution import SymbolicRandomVariable, _support_point
from pymc.distributions.shape_utils import _change_dist_size
from pymc.distributions.transforms import CholeskyCovPacked
from pymc.logprob.abstract import _logccdf, _logcdf, _logprob
from pymc.logprob.transforms import Transform
from pymc.model.fgraph import ModelFreeRV, ModelObservedRV
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.type import Type
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Shape, Shape_i

from pymc_dp.models.allow_list import (
    LIBRARIES,
    MOST_BITS,
    MOST_NUMBERS,
    MOST_TEXT,
    OPERATIONS,
    PLAIN_TYPES,
    TOO_MUCH,
    is_library,
    is_of_a_library,
    is_of_extras,
)
from pymc_dp.models.ball_prior import BallNormalRV
from pymc_dp.models.bounded_priors import TrimmedBetaRV, TrimmedDirichletRV
from pymc_dp.models.lengths import PLACED, is_placed_by_values
from pymc_dp.models.likelihood_rv import LikelihoodRV
from pymc_dp.models.structure import above, arrays_above, inside

_FUNCTIONS = """
    abs all any bool callable complex dict divmod enumerate filter float frozenset hasattr int isinstance issubclass iter len list map max
    min next pow print range repr reversed round set slice sorted str sum super tuple type zip
"""
BUILTINS = {
    *_FUNCTIONS.split(),
    *(name for name, thing in vars(builtins).items() if isinstance(thing, type) and issubclass(thing, BaseException)),
}
"""Names of Python's own that reach nothing but what they are given."""
READING = {"loadtxt", "genfromtxt", "load", "fromfile", "fromregex", "memmap", "open_memmap", "DataSource", "loadmat", "read_text", "open"}
"""What reads files in libraries that are trusted otherwise."""
PLAIN = (bool, int, float, complex, str, tuple, list, set, frozenset, dict)
"""Python's own kinds of numbers, texts and containers."""
OF_A_CUSTOM_DIST = {"name", "inplace", "ndim_supp", "ndims_params", "signature", "dtype", "_print_name", "inline_logprob"}
"""What PyMC itself writes into the class of a CustomDist: settings of its own, which do not count as held."""
SETTINGS = {"specific_out", "transfer_type", "upgrade_to_float", "ScanInfo"}
"""Classes of PyTensor's whose objects hold plain settings of operations."""
COMPILED = "passes through {} as it was compiled when the model was evaluated"
"""Of an operation that keeps the function that its inner graph was compiled into, which may keep what it was given."""
CHECKED_APART = {"transform", "ufunc", "__doc__"}
"""Properties of operations that are looked at by themselves, or that PyTensor makes from others: no pickle of one holds a ufunc."""
OF_EVERY_CLASS = {"__doc__", "__module__", "__qualname__", "__dict__", "__weakref__", "__abstractmethods__", "_abc_impl"}
"""What Python itself puts into a class."""
OWN = (BallNormalRV, LikelihoodRV, TrimmedBetaRV, TrimmedDirichletRV)
"""Operations of this package, which hold plain numbers only, or a formula that was looked at before."""
RANDOM = (RandomVariable, SymbolicRandomVariable, MinibatchRandomVariable)
"""Operations whose result is random."""
type Known = Callable[[object], bool] | None
"""Whether an array, or a variable of a graph, is one that people are told of; None where everything was declared public."""


# ---------- operations
def opaque(variable: Variable, known: Known, *, sized: bool = True) -> str | None:
    """Why something above a variable is not understood; None if all is.

    Parameters
    ----------
    variable : Variable
        Below a model's own variable; all that it is computed from is looked at as far as other random variables of the model, inner
        graphs included.
    known : callable
        See ``Known``.
    sized : bool
        Whether numbers of records are public.
    """
    for part in above([variable], through_unknowns=False):
        if part.owner is not None and (reason := operation_problem(part.owner.op, known)):
            return reason
        if part.owner is not None and is_placed_by_values(part.owner, sized=sized):
            return PLACED
        if isinstance(part, Constant | SharedVariable) and type(part.type).__name__ not in PLAIN_TYPES:
            return "rests on a constant that is no array of numbers"
    return None


def operation_problem(operation: Op, known: Known) -> str | None:
    """Why an operation is not understood: its class, or what its properties hold."""
    kind = type(operation)
    if isinstance(operation, CustomDistRV | CustomSymbolicDistRV):
        within = known is not None and any(True for _ in arrays_above(inside(operation), through_unknowns=True))
        reason = "an array" if within else hidden_in(_functions_of(kind), known)
        return f"is a CustomDist whose functions hold {reason}" if reason else _properties_problem(operation, known)
    if kind in OWN:
        return None
    if not is_of_extras(kind) and (kind.__name__ not in OPERATIONS or not is_of_a_library(kind)):
        return f"passes through {kind.__name__}, an operation of Python code or one whose meaning is not known"
    return _properties_problem(operation, known)


def _properties_problem(operation: Op, known: Known) -> str | None:
    if vars(operation).get("_fn") is not None:
        return COMPILED.format(type(operation).__name__)
    for name, value in vars(operation).items():
        if name not in CHECKED_APART and (reason := _property_problem(value, known)):
            return f"passes through {type(operation).__name__}, whose property {name} holds {reason}"
    return None


def _property_problem(value: object, known: Known) -> str | None:
    """Properties are plain settings, types, other operations and inner graphs; a library's own records of settings, too."""
    if isinstance(value, Op):
        return "another operation that " + reason if (reason := operation_problem(value, known)) else None
    if isinstance(value, Type):
        return None if is_of_a_library(type(value)) else "a type of one's own"
    if hasattr(value, "apply_nodes"):  # an inner graph, whose variables ``above`` visits, too
        for node in value.apply_nodes:
            if reason := operation_problem(node.op, known):
                return "an inner graph that " + reason
        return None
    if type(value) in (tuple, list, set, frozenset) and len(value) <= 4 * MOST_NUMBERS:  # type: ignore[arg-type]
        return next((reason for part in value if (reason := _property_problem(part, known))), None)  # type: ignore[attr-defined]
    if type(value).__name__ in ("dict", "frozendict") and len(value) <= 4 * MOST_NUMBERS:  # type: ignore[arg-type]
        return next((reason for pair in value.items() for part in pair if (reason := _property_problem(part, known))), None)  # type: ignore[attr-defined]
    if type(value).__name__ in SETTINGS and is_of_a_library(type(value)):
        return _property_problem(list(getattr(value, "__dict__", {}).values()), known)
    if isinstance(value, Variable):
        return None if known is None or known(value) else "an array"
    return hidden_in(value, known)


def _functions_of(kind: type) -> list[object]:
    """What a CustomDist holds: its class, and the functions that PyMC registers for it."""
    registered = [dispatch.dispatch(kind) for dispatch in (_logprob, _logcdf, _logccdf, _support_point, _change_dist_size)]
    return [*registered, *(value for name, value in vars(kind).items() if name not in OF_EVERY_CLASS | OF_A_CUSTOM_DIST)]


# ---------- random variables that are no part of the model
def loose_random_variable(named: list[tuple[str, Variable]]) -> str | None:
    """The first of a model's variables that rests on a random variable that is neither one of them nor part of the distribution of one."""
    variables = [variable for _, variable in named]
    distributions: set[object] = set()

    def belongs(random: Variable) -> None:
        node = random.owner
        if node is None or node in distributions:
            return
        if is_random(node.op):
            distributions.add(node)
            if not isinstance(node.op, RandomVariable):  # a distribution made of others
                for operand in node.inputs:
                    belongs(operand)
        elif type(node.op).__name__ in ("TensorFromXTensor", "XTensorFromTensor", "Rename", "SpecifyShape", "DimShuffle"):
            belongs(node.inputs[0])

    for variable in variables:
        if isinstance(variable.owner.op, ModelFreeRV | ModelObservedRV):
            belongs(variable.owner.inputs[0])
    for name, variable in named:
        for part in _outside_operations([variable]):
            if part.owner is not None and is_random(part.owner.op) and part.owner not in distributions:
                return name
    return None


def is_random(operation: object) -> bool:
    """Whether an operation's result is random."""
    return isinstance(operation, RANDOM) or type(operation).__name__ == "XRV"


def _outside_operations(variables: list[Variable]) -> Iterator[Variable]:
    """Everything whose values these variables rest on, without what operations compute within themselves; a shape rests on no value."""
    stack, seen = list(variables), set()
    while stack:
        variable = stack.pop()
        if variable not in seen:
            seen.add(variable)
            yield variable
            if variable.owner is not None and not isinstance(variable.owner.op, Shape | Shape_i):
                first = isinstance(variable.owner.op, ModelFreeRV | ModelObservedRV)
                stack.extend(variable.owner.inputs[:1] if first else variable.owner.inputs)


# ---------- functions
def hidden_in(thing: object, known: Known) -> str | None:
    """What a function, or something beside it, holds that is not understood, in words; None if nothing.

    It may close over, have as defaults, or reach through globals up to ``MOST_NUMBERS`` plain numbers, alone or in short containers, names,
    functions of the same kind, and what belongs to a library. Arrays may pass that ``known`` knows.
    """
    return None if known is None else _Search(known).visit(thing)


class _Search:
    """One look at what hangs together, which counts the numbers in it."""

    def __init__(self, known: Callable[[object], bool]) -> None:
        self._known = known
        self._numbers = 0
        self._seen: dict[int, object] = {}

    def visit(self, thing: object) -> str | None:
        """Why it is not understood, or None."""
        if thing is None or thing is Ellipsis or thing is NotImplemented or isinstance(thing, np.dtype):
            return None
        if type(thing) in (bool, int, float, complex) or (isinstance(thing, np.generic) and is_of_a_library(type(thing))):
            return self._number(thing)
        if type(thing) is str:
            return self._text(thing)
        if id(thing) in self._seen:
            return None
        self._seen[id(thing)] = thing
        if isinstance(thing, bool | int | float | complex | str | tuple | list | set | frozenset | dict) and type(thing) not in PLAIN:
            return f"an object of type {type(thing).__name__}"  # of a kind of one's own, which may hold more
        rule = next((rule for kinds, rule in self._rules().items() if isinstance(thing, kinds)), None)
        return f"an object of type {type(thing).__name__}" if rule is None else rule(thing)

    def _rules(self) -> dict[type | tuple[type, ...], Callable[[typing.Any], str | None]]:
        """What may pass, and how it is looked at."""
        return {
            (tuple, list): self._several,  # of sets the length tells of the values
            (dict, types.MappingProxyType): lambda thing: self._several([*thing.keys(), *thing.values()]),
            slice: lambda thing: self._several([thing.start, thing.stop, thing.step]),
            np.ndarray: lambda thing: self._array(thing),
            Variable: lambda thing: None if self._known(thing) else "an array",
            types.FunctionType: self._function,
            (staticmethod, classmethod): lambda thing: self.visit(thing.__func__),
            property: lambda thing: self._several([thing.fget, thing.fset, thing.fdel]),
            functools.partial: lambda thing: self._several([thing.func, thing.args, thing.keywords, vars(thing)]),
            types.MethodType: lambda thing: self._several([thing.__self__, thing.__func__]),
            types.BuiltinFunctionType: lambda thing: None if isinstance(thing.__self__, types.ModuleType) else self.visit(thing.__self__),
            np.ufunc: lambda thing: None if self._is_named_ufunc(thing) else "a ufunc of one's own",
            types.CellType: lambda thing: self._several(_content(thing)),
            (types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType): lambda thing: None,
            types.MethodDescriptorType: lambda thing: None,
            types.ModuleType: lambda thing: None if is_library(thing) else f"the module {thing.__name__}",
            type: lambda thing: None if is_of_a_library(thing) or self._is_custom(thing) else f"the class {thing.__name__}",
            (types.GenericAlias, types.UnionType, typing.TypeVar): lambda thing: self._several(getattr(thing, "__args__", ())),
            Op: lambda thing: operation_problem(thing, self._known),
            Type: lambda thing: None if is_of_a_library(type(thing)) else "a type of one's own",
            Transform: self._transform,
            object: self._of_a_library,
        }

    def _number(self, thing: typing.Any) -> str | None:
        if isinstance(thing, int) and thing.bit_length() > MOST_BITS:
            return TOO_MUCH
        self._numbers += 1
        return TOO_MUCH if self._numbers > MOST_NUMBERS else None

    def _text(self, thing: str) -> str | None:
        """A name counts like a number, and so does every number in it."""
        if len(thing) > MOST_TEXT:
            return TOO_MUCH
        return self._number(0) or next((reason for digits in re.findall(r"\d+", thing) if (reason := self._number(int(digits)))), None)

    def _docstring(self, thing: object) -> str | None:
        """What people read of a function or class: a text of any length, with no more numbers than anything may hold."""
        if thing is None or (type(thing) is str and len(re.findall(r"\d+", thing)) <= MOST_NUMBERS):
            return None
        return TOO_MUCH if type(thing) is str else f"an object of type {type(thing).__name__} in the place of a docstring"

    def _several(self, things: typing.Iterable[object]) -> str | None:
        return next((reason for thing in things if (reason := self.visit(thing))), None)

    def _array(self, thing: np.ndarray) -> str | None:
        if thing.ndim == 0 and thing.dtype.kind in "biufc" and type(thing) is np.ndarray:
            return self._number(thing[()])
        return None if self._known(thing) else "an array"

    @staticmethod
    def _is_named_ufunc(thing: np.ufunc) -> bool:
        homes = (np, sys.modules.get("scipy.special"))
        return any(getattr(home, thing.__name__, None) is thing for home in homes)

    @staticmethod
    def _is_custom(kind: type) -> bool:
        return issubclass(kind, CustomDistRV | CustomSymbolicDistRV)

    def _of_a_library(self, thing: object) -> str | None:
        """What is left: a library's own function that is no plain one, such as NumPy's dispatchers; and names of types."""
        if callable(thing) and is_of_a_library(thing):
            return None
        if type(thing).__module__ == "typing":
            return self._several([*getattr(thing, "__args__", ()), *getattr(thing, "__metadata__", ())])
        return f"an object of type {type(thing).__name__}"

    def _transform(self, thing: Transform) -> str | None:
        # Of a packed Cholesky factor PyMC computes the places of the diagonal from the one number that it is given.
        computed_names = {"__doc__", "diag_idxs"} if type(thing) is CholeskyCovPacked else {"__doc__"}
        held: list[object] = [value for name, value in vars(thing).items() if name not in computed_names]
        for kind in type(thing).__mro__:
            if kind is object or is_of_a_library(kind):
                continue
            for name, value in vars(kind).items():
                if isinstance(value, types.MemberDescriptorType):  # a slot
                    held.append(getattr(thing, name, None))
                elif name not in OF_EVERY_CLASS:
                    held.append(value)
        documented = [vars(thing).get("__doc__"), *(vars(kind).get("__doc__") for kind in type(thing).__mro__ if not is_of_a_library(kind))]
        return next((reason for text in documented if (reason := self._docstring(text))), None) or self._several(held)

    def _function(self, function: types.FunctionType) -> str | None:
        if is_of_a_library(function):
            return None
        closure = [content for cell in function.__closure__ or () for content in _content(cell)]
        if _written_in_a_library(function):  # whose words of errors, and docstrings, may be long
            documented = [] if type(function.__doc__) is str else [function.__doc__]
            return self._several([*(content for content in closure if not isinstance(content, str)), *documented])
        if reason := self._docstring(function.__doc__):
            return reason
        held: list[object] = [*closure, function.__defaults__, function.__kwdefaults__, vars(function), function.__annotations__]
        return self._several(held) or self._code(function.__code__, function.__globals__)

    def _code(self, code: types.CodeType, names: dict[str, object]) -> str | None:
        """What a function's code reaches by name, and the containers that are written in it."""
        for instruction in dis.get_instructions(code):
            name = instruction.argval
            if instruction.opname == "IMPORT_NAME" and str(name).partition(".")[0] not in LIBRARIES:
                return f"an import of {name}"
            if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and str(name) in READING:
                return f"{name}, which reads a file"
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and (reason := self._name(str(name), code, names)):
                return reason
        for constant in code.co_consts:
            inner = isinstance(constant, types.CodeType)
            if inner and (reason := self._code(constant, names)):
                return reason
            if isinstance(constant, int) and constant.bit_length() > MOST_BITS:
                return TOO_MUCH
            plain = [part for part in constant if not isinstance(part, str)] if isinstance(constant, tuple | frozenset) else []
            if reason := self.visit(constant) if isinstance(constant, bytes) else self._several(plain):
                return reason
        return None

    def _name(self, name: str, code: types.CodeType, names: dict[str, object]) -> str | None:
        """What a global name stands for. Of a module of one's own, what the code names of it counts."""
        if name not in names:
            return None if name in BUILTINS or not hasattr(builtins, name) else f"the builtin {name}"
        thing = names[name]
        if isinstance(thing, types.ModuleType) and not is_library(thing):
            return self._several([vars(thing)[part] for part in code.co_names if part in vars(thing)])
        return self.visit(thing)


def _written_in_a_library(function: types.FunctionType) -> bool:
    """Whether a library's code made a function, such as those that PyMC puts around a user's: its globals are the library's."""
    home = sys.modules.get(function.__module__ or "")
    return home is not None and is_library(home) and function.__globals__ is vars(home)


def _content(cell: types.CellType) -> list[object]:
    try:
        return [cell.cell_contents]
    except ValueError:  # the cell is empty
        return []
