"""What a user says of published sums of records: names, numbers, and the law of the noise on each, checked and brought into one form.

Shapes: G cells, C columns of the observed variable.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.calls import meant_by
from pymc_dp.privacy.noise_law import Noise as LatticeNoise
from pymc_dp.publications.noises import NATS, SIGMAS, DiscreteGaussian, DiscreteLaplace, Exact, GaussianNoise, LaplaceNoise
from pymc_dp.publications.publication import Codebook, steps_of

TABLE = "table"
"""The name under which all counts of a table are given at once, one after the other along the last axis."""
NUMBER = "n"
"""The name of the number of records, where that is a published number, too."""
MEANS = ("mean", "average", "avg", "share", "proportion")
"""How names of means begin, which are no sums."""
ROUNDING = 1e-6
"""Share of a sum by which rounding may take it beyond what is possible."""
EXAMPLE = '{"y": {"sum y": (412.0, pymc_dp.LaplaceNoise(30.0))}}'


@dataclass(frozen=True, eq=False)
class PublishedNumber:
    """One published number of every cell and column.

    Attributes
    ----------
    name : str
        As the model's plan calls it.
    values : (G, *C) ndarray
        In the publisher's units; NaN where nothing was published.
    kind : {"laplace", "gaussian", "exact"}
    whole : bool
        Whether the noise is whole.
    scale : (G, *C) ndarray
        The parameter of the noise, in the publisher's units.
    """

    name: str
    values: np.ndarray
    kind: str
    whole: bool
    scale: np.ndarray

    @property
    def spread(self) -> np.ndarray:
        """(G, *C): of Laplace noise the scale of the continuous law of the same variance, of Gaussian noise the standard deviation."""
        if not self.whole:
            return self.scale
        gaussian = self.kind == "gaussian"
        laws = {s: LatticeNoise(s, gaussian=gaussian) for s in np.unique(self.scale).tolist()}
        of = {s: law.standard_deviation if gaussian else law.spread for s, law in laws.items()}
        return np.vectorize(of.__getitem__, otypes=[float])(self.scale)


def spelled(name: str, variable: str) -> str:
    """A name of a sum with the variable's own name in place of y, where that is understood."""
    text = re.sub(r"(?<![A-Za-z0-9_])y(?![A-Za-z0-9_])", lambda _: variable, name)
    return text if canonical(text, variable) == canonical(name, variable) else name


def canonical(name: str, variable: str) -> str:
    """A name however it is spelled: powers, products in any order, and the variable's own name in place of y.

    Of a sum of a product it says how often each factor stands in it: two names are alike where they are of one number.
    """
    alone = r"(?<![A-Za-z0-9_]){}(?![A-Za-z0-9_])".format
    text = name if variable == "y" else re.sub(alone(re.escape(variable)), "y", name)
    text = text.replace("**2", "²").replace("^2", "²").replace("*", " ").replace("·", " ")
    text = re.sub(alone(r"log(?: y|\(y\))"), "log_y", text)
    text = re.sub(r"(?<![A-Za-z0-9_])\(([^()]*)\)²", r"\1 \1", text)
    head, *rest = text.split() or [""]
    if head != "sum":
        return " ".join([head, *rest])
    factors = [factor.rstrip("²") for factor in rest for _ in range(1 + factor.endswith("²"))]
    return " ".join([head, *sorted(factors)])


def books_of(variable: str, statistics: object) -> dict[str, tuple[object, Codebook]]:
    """What is said of one observed variable: numbers and what was done to them, by name.

    Raises
    ------
    Refusal
        Where it is not said in this form.
    """
    if not isinstance(statistics, Mapping) or not statistics:
        raise Refusal(f"Say by name which sums of {variable} were published. Write statistics={EXAMPLE}.")
    result = {}
    for name, pair in statistics.items():
        if not isinstance(name, str) or not isinstance(pair, tuple) or len(pair) != 2:
            raise Refusal(
                f"{name!r} of {variable} needs its number and the law of its noise. Write statistics={{{variable!r}: {{{name!r}: (412.0,"
                " pymc_dp.LaplaceNoise(30.0))}}."
            )
        numbers, law = pair
        result[name] = (numbers, law if isinstance(law, Codebook) else Codebook(law))
    return result


def published_numbers(
    variable: str, books: Mapping[str, tuple[object, Codebook]], names: Sequence[str], shapes: Sequence[tuple[int, ...]],
    table: Sequence[str] = (), scaled: Sequence[str] = (),
) -> list[PublishedNumber]:  # fmt: skip
    """What was published of one observed variable, in the order of the names.

    Parameters
    ----------
    variable : str
    books : mapping
        See ``books_of``.
    names : sequence of str
        What sums are called that may have been published.
    shapes : sequence of tuple of int
        In which numbers may be given: of cells and columns, and of the arrays that stand for cells in the same order.
    table : sequence of str
        What ``"table"`` has along its last axis.
    scaled : sequence of str
        Names of sums of scaled values, as ``inspect`` prints them. They are understood, but publishers have others.

    Raises
    ------
    Refusal
        For a name that is none of these, a wrong shape, or a law that is none of sums.
    """
    by_name = {canonical(name, variable): name for name in reversed(names)}
    result: dict[str, PublishedNumber] = {}
    for name, (numbers, book) in books.items():
        if name == TABLE and table:
            for k, entry in enumerate(table):
                _add(result, variable, _entry(variable, entry, numbers, book, shapes, (k, len(table))))
            continue
        sum_name = by_name.get(canonical(name, variable))
        if sum_name is None:
            usual = [spelled(entry, variable) for entry in names if entry not in scaled] or names
            every = list(dict.fromkeys([*usual, *([TABLE] if table else [])]))
            mean = (
                f" A mean of n records is their sum divided by n: write {every[0]!r}, with n times the number and n times the scale."
                if canonical(name, variable).split()[:1] in [[word] for word in MEANS]
                else f" {meant_by(name, every)}".rstrip()
            )
            raise Refusal(f"{name!r} is no sum that a likelihood of {variable} rests on. Write one of {', '.join(map(repr, every))}.{mean}")
        _add(result, variable, _entry(variable, sum_name, numbers, book, shapes))
    return [result[name] for name in dict.fromkeys(names) if name in result]


def check_possible(variable: str, number: PublishedNumber, n: np.ndarray, lower: float | np.ndarray, upper: float | np.ndarray) -> None:
    """Refuse a sum of n records (G,), each from ``lower`` to ``upper``, that lies beyond what the noise can do to such a sum.

    These are bounds of all columns, or those of each, (*C,).
    """
    reach = {"laplace": NATS, "gaussian": SIGMAS}.get(number.kind, 0.0)
    slack = np.zeros(number.values.shape) if number.kind == "exact" else reach * number.spread
    most = n.reshape(-1, *[1] * (number.values.ndim - 1)).astype(float)
    least, largest = most * lower, most * upper
    wrong = (number.values < least - slack - ROUNDING * np.abs(least)) | (number.values > largest + slack + ROUNDING * np.abs(largest))
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0])
        many, lower, upper = (float(np.broadcast_to(each, wrong.shape)[place]) for each in (most, lower, upper))
        raise Refusal(
            f"{number.name} of {variable} is {number.values[place]:g}, and {many:,.0f} records from {lower:g} to {upper:g} add up to"
            f" {many * lower:g} to {many * upper:g}, beyond what this noise can add. Look at the units of the sum and of bounds."
        )


def _add(result: dict[str, PublishedNumber], variable: str, number: PublishedNumber) -> None:
    if number.name in result:
        raise Refusal(
            f"{number.name!r} of {variable} is there twice. Write it once: of two publications of one sum the one with less noise."
        )
    result[number.name] = number


def _entry(
    variable: str, name: str, numbers: object, book: Codebook, shapes: Sequence[tuple[int, ...]], entry: tuple[int, int] | None = None
) -> PublishedNumber:
    """One name: its numbers and noise, (G, *C), or of a table those of one entry of the last axis."""
    wanted = [shape if entry is None else (*shape, entry[1]) for shape in shapes]
    wanted += [shape[1:] for shape in wanted if shape[0] == 1]
    values = _in_shape(numbers, wanted, variable, name if entry is None else TABLE)
    kind, whole, scale = _noise(variable, name, book, values.shape, wanted)
    if entry is not None:
        values, scale = values[..., entry[0]], scale[..., entry[0]]
    if np.isinf(values).any():
        raise Refusal(f"{name} of {variable} holds an infinite number. Write NaN where nothing was published.")
    if whole and (values[np.isfinite(values)] % 1 != 0).any():
        raise Refusal(f"{name} of {variable} has whole noise and is no whole number. Write LaplaceNoise or GaussianNoise with its scale.")
    return PublishedNumber(name, values, kind, whole, scale)


def _in_shape(numbers: object, shapes: Sequence[tuple[int, ...]], variable: str, name: str) -> np.ndarray:
    """The numbers as an array of the first shape, of which the others are spellings."""
    try:
        array = np.ma.filled(np.ma.asarray(numbers, dtype=float), np.nan)
    except (TypeError, ValueError):
        raise Refusal(f"{name} of {variable} is no number. Write a number, or an array with one for every cell.") from None
    first = shapes[0]
    if array.shape not in shapes:
        known = " or ".join(str(shape) for shape in dict.fromkeys(shapes))
        raise Refusal(f"{name} of {variable} has shape {array.shape}, and cells and columns have {known}. Write one number for each.")
    return array.reshape(first)


def _noise(
    variable: str, name: str, book: Codebook, shape: tuple[int, ...], shapes: Sequence[tuple[int, ...]]
) -> tuple[str, bool, np.ndarray]:
    """Kind, whether it is whole, and the scale (G, *C) of the noise on one published sum."""
    steps = steps_of(book)
    law = steps[0]
    if len(steps) > 1:
        raise Refusal(
            f"{name} of {variable} was {book.words}. Of sums only noise is understood: leave a rounding out that is small beside the noise;"
            " a sum that was clipped or left out below a threshold says nothing here, so leave it out."
        )
    if isinstance(law, Exact):
        return "exact", False, np.full(shape, np.nan)
    if not isinstance(law, LaplaceNoise | DiscreteLaplace | GaussianNoise | DiscreteGaussian):
        raise Refusal(
            f"{name} of {variable} was {book.words}. Sums may have LaplaceNoise, DiscreteLaplace, GaussianNoise or DiscreteGaussian, or be"
            " Exact(); for another noise write the one of these with the same variance."
        )
    if isinstance(law.setting, Variable):
        raise Refusal(f"The scale of the noise on {name} of {variable} is a variable of a model. Write a number.")
    scale = np.asarray(law.setting, dtype=float)
    scale = scale.reshape(shape) if scale.shape in shapes else scale
    try:
        scale = np.broadcast_to(scale, shape)
    except ValueError:
        raise Refusal(
            f"The noise on {name} of {variable} has scales of shape {scale.shape}. Write one number, or {shape} of them."
        ) from None
    kind = "laplace" if isinstance(law, LaplaceNoise | DiscreteLaplace) else "gaussian"
    return kind, isinstance(law, DiscreteLaplace | DiscreteGaussian), scale
