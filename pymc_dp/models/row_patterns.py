"""Rows of a few values with a latent number per row, such as the answers of a person and their ability: the rows are counted by pattern.

How many records have each row of values says everything. The probability of a row is that of its values given the unknown, which are
independent then, summed over the unknown's own distribution.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.logprob.utils import ParameterValueError
from pytensor.graph.basic import Variable
from pytensor.graph.replace import vectorize_graph

from pymc_dp.families.family import Domain
from pymc_dp.laws.kernel import Tensor
from pymc_dp.models.probabilities import at_made_up_numbers
from pymc_dp.models.spec import Likelihood, ModelSpec, Placeholder, RecordPaths
from pymc_dp.models.structure import Unreduced
from pymc_dp.models.tabulated import MOST_VALUES, Table, on_grid

OF_ROWS = ("Bernoulli", "Binomial", "Categorical")
"""Distributions of few values, whose rows are counted."""
FARTHEST, STEP, WIDEST, MOST_TRIALS = 6.0, 0.2, 0.1, 64
"""See ``nodes_of``; and the most trials of a row."""
INEXACT, RARE = 2e-3, 1e-6
"""By how much of itself the probability of a row may change where points lie twice as close, unless it is rare."""
LEAST = -1e30
"""In place of the logarithm of 0, of which many are added up."""


class Patterns(Table):
    """How many records have each row of values: its parameters are the largest value of an entry, and the probability of every row.

    The values of a record are its last axis, of ``Domain.levels`` entries, each an integer between the bounds.
    """

    DISTRIBUTION = "rows of values"
    BOUNDS = "none"
    WHOLE = False
    NDIM = 1
    KNOWN = ((0, "the largest value"),)

    def natural(self, levels: int, known: Sequence[float | None]) -> tuple[float, float] | None:
        """The values lie between 0 and the largest one."""
        return 0.0, float(known[0] or 0)

    def values(self, domain: Domain) -> range:
        """The places of the rows in ``rows_of``."""
        return range(_many(domain) ** domain.levels)

    def statistics(self, domain: Domain) -> tuple[str, ...]:
        """One count a row."""
        return tuple(" ".join(str(value) for value in row) for row in rows_of(domain.levels, _many(domain)))

    def exact(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """(..., entries) -> one indicator of the shape (...) for every row; a missing entry counts as the middle, rounded."""
        many, place = _many(domain), np.zeros(values.shape[:-1], dtype=np.int64)
        for k in range(domain.levels):
            place = place * many + np.rint(values[..., k]).astype(np.int64)
        return tuple((place == k).astype(np.int64) for k in self.values(domain))


PATTERNS = Patterns()


def _many(domain: Domain) -> int:
    """How many values an entry can have."""
    return int(domain.upper) + 1


def rows_of(entries: int, many: int) -> np.ndarray:
    """Every row of so many entries, each of which can have so many values: (many**entries, entries), the last entry changing fastest."""
    return np.array(list(product(range(many), repeat=entries)), dtype=np.int64).reshape(-1, entries)


def nodes_of(trials: int, finer: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Where an unknown is looked at, in its standard deviations, and the weights of these points.

    Given a row of so many trials a logit of slope s is known to 2 / (s sqrt(trials)) at best, and so narrow is what is summed: points lie
    STEP / sqrt(trials) apart, at most WIDEST. Probabilities of rows that are likely within two standard deviations are then right to
    1e-4 of themselves up to s = 10; where the slope is steeper they are less exact. Beyond the ends there is 2e-9 of the unknown. With
    ``finer`` points lie closer together, so many times.
    """
    half = finer * int(np.ceil(FARTHEST / min(WIDEST, STEP / np.sqrt(trials))))
    nodes = np.linspace(-FARTHEST, FARTHEST, 2 * half + 1)
    weights = np.exp(-(nodes**2) / 2)
    return nodes, weights / weights.sum()


def summed_out(
    read: tuple[ModelSpec, Mapping[str, RecordPaths]], own: Mapping[str, object], written: tuple[ModelSpec, dict[str, RecordPaths]]
) -> tuple[ModelSpec, dict[str, RecordPaths]]:
    """A model, and where its records are, in which the unknowns that every record has for itself are summed out.

    Parameters
    ----------
    read : (ModelSpec, mapping of str to RecordPaths)
        As if these unknowns had been observed.
    own : mapping of str to Transform or None
        Their names, and the transforms that the model has for them.
    written : (ModelSpec, mapping of str to RecordPaths)
        As it is: the result where one of them cannot be summed out, with the reason.
    """
    spec, paths = read
    by_name = {likelihood.name: likelihood for likelihood in spec.likelihoods}
    likelihoods, summed, found = [], {}, dict(written[1])
    for likelihood in written[0].likelihoods:
        try:
            summed[likelihood.name], kept, mine = _without_own(by_name, likelihood.name, own)
        except Unreduced as reason:
            if likelihood.own:
                likelihood = replace(likelihood, refusal=f"{likelihood.refusal} {likelihood.own} was not summed out: {reason}.")
        else:
            others = () if mine is None else paths[mine].inputs
            if likelihood.name in paths:
                inputs = (*(paths[likelihood.name].inputs[k] for k in kept), *others)
                found[likelihood.name] = replace(paths[likelihood.name], inputs=inputs)
        likelihoods.append(likelihood)
    if len(summed) < len(likelihoods):
        return replace(written[0], likelihoods=tuple(likelihoods)), written[1]
    return replace(
        spec,
        likelihoods=tuple(summed.values()),
        dropped={**spec.dropped, **dict.fromkeys(own, "every record has one of its own, which is summed out")},
        records=written[0].records,
        on_one_axis=tuple(together for axis in spec.on_one_axis if (together := tuple(name for name in axis if name not in own))),
        many={name: many for name, many in spec.many.items() if name not in own},
    ), found


def _without_own(by_name: Mapping[str, Likelihood], name: str, own: Mapping[str, object]) -> tuple[Likelihood, Sequence[int], str | None]:
    """A likelihood without the unknown of every record's own, which of its inputs are left, and the name of that unknown, if any."""
    likelihood = by_name[name]
    mine = _own_of(likelihood, own)
    if not mine:
        if likelihood.refusal is not None:
            raise Unreduced("it is not read record by record")
        return likelihood, range(len(likelihood.inputs)), None
    theirs = [other.name for other in by_name.values() if set(_own_of(other, own)) & set(mine)]
    if len(mine) > 1 or len(theirs) > 1:
        raise Unreduced(
            f"{' and '.join(mine)} {'are' if len(mine) > 1 else 'is'} above {' and '.join(theirs)}, and one unknown is summed out of one"
            " observed variable. Put columns that share it beside each other"
        )
    _entry(likelihood, by_name[mine[0]])  # a Beta has a transform that nobody wrote
    if own[mine[0]] is not None:
        raise Unreduced(
            f"the transform of {mine[0]} says more of it than its prior does, such as an order or an end. Leave the transform out"
        )
    return *summed_over(likelihood, by_name[mine[0]]), mine[0]


def _own_of(likelihood: Likelihood, own: Collection[str]) -> list[str]:
    """The unknowns of every record's own that a likelihood rests on."""
    return sorted({i.name for i in likelihood.inputs if i.parent and i.name in own})


def summed_over(likelihood: Likelihood, own: Likelihood) -> tuple[Likelihood, tuple[int, ...]]:
    """A likelihood of rows in which the unknown that every record has for itself is summed out, and which of its inputs are left.

    Parameters
    ----------
    likelihood : Likelihood
        Of the rows, with the unknown among its inputs.
    own : Likelihood
        Of the unknown, read as if it had been observed.

    Raises
    ------
    Unreduced
        Where it is not known how.
    """
    entry, many = _entry(likelihood, own), _many_values(likelihood)
    [entries] = likelihood.columns
    if many**entries > MOST_VALUES:
        raise Unreduced(
            f"each of the {many}^{entries} rows of values that can occur would be counted, and at most {MOST_VALUES:,} are. Observe fewer"
            " columns, or fewer values"
        )
    if (many - 1) * entries > MOST_TRIALS:
        raise Unreduced(f"its rows are of {(many - 1) * entries:,} trials each, and at most {MOST_TRIALS:,} are summed over exactly enough")
    rows = rows_of(entries, many)
    p = _probabilities(likelihood, own, entry, rows, many)
    _check_fine_enough(p, _probabilities(likelihood, own, entry, rows, many, finer=2), [*likelihood.inputs, *own.inputs])

    def again(most: Variable, probabilities: Variable) -> Variable:
        return _rows_drawn(probabilities, rows, many)

    kept = tuple(k for k, placeholder in enumerate(likelihood.inputs) if placeholder is not entry)
    summed = replace(
        likelihood,
        distribution=f"{likelihood.distribution} rows",
        family=PATTERNS,
        parameters=(pt.constant(float(many - 1)), p),
        core_ndims=(0, 1),
        unknown=(False, True),
        known=(float(many - 1), None),
        arrays=(*(used for used in likelihood.arrays if used[0] != own.name), *own.arrays),
        inputs=(*(likelihood.inputs[k] for k in kept), *own.inputs),
        columns=(),
        column_dims=(),
        levels=entries,
        linear=None,
        not_linear=None,
        predictor=None,
        make=again,
        again=again,
        alone=False,
    )
    return summed, kept


def _rows_drawn(probabilities: Variable, rows: np.ndarray, many: int) -> Variable:
    """Rows of values with these probabilities (..., rows), as a distribution of PyMC's: (..., entries)."""
    places = many ** np.arange(rows.shape[1] - 1, -1, -1)

    def drawn(p: Variable, size: Variable) -> Variable:
        return pt.constant(rows)[pm.Categorical.dist(p, size=size)]

    def logp(value: Variable, p: Variable) -> Variable:
        place = (value * places).sum(axis=-1).astype("int64")
        p = pt.broadcast_to(p, (*[place.shape[axis] for axis in range(place.type.ndim)], len(rows)))
        return pt.log(pt.take_along_axis(p, place[..., None], axis=-1)[..., 0])

    return pm.CustomDist.dist(probabilities, dist=drawn, logp=logp, signature="(p)->(e)", dtype="int64")


def _entry(likelihood: Likelihood, own: Likelihood) -> Placeholder:
    """The input that stands for the unknown, once all is seen to be as it must."""
    if likelihood.refusal is not None or likelihood.again is None or likelihood.distribution not in OF_ROWS or len(likelihood.columns) != 1:
        raise Unreduced(f"that is possible only where a record has a row of several values, of {', '.join(OF_ROWS)}")
    if own.refusal is not None or own.distribution != "Normal" or own.columns:
        raise Unreduced(f"{own.name} is not one number a record with a pm.Normal prior")
    if private := [i.name for i in (*likelihood.inputs, *own.inputs) if i.private and i.name != own.name]:
        raise Unreduced(f"it rests on the private {private[0]} as well. If everyone may know that, write public=[{private[0]!r}]")
    entries = [i for i in likelihood.inputs if i.name == own.name]
    if len(entries) != 1 or entries[0].variable.type.ndim != 1:
        raise Unreduced(f"{own.name} is used in more ways than as one number a record")
    return entries[0]


def _many_values(likelihood: Likelihood) -> int:
    """How many values an entry of a row can have."""
    natural = likelihood.natural
    if natural is None or not np.isfinite(natural).all():
        raise Unreduced("each of its entries has endlessly many values")
    return int(natural[1]) + 1


def _check_fine_enough(p: Tensor, finer: Tensor, inputs: Sequence[Placeholder]) -> None:
    """Refuse probabilities of rows that are others where the unknown is looked at twice as closely: both at made-up numbers.

    So it is where a row's values all but follow from the unknown, as with a standard deviation of 100 on the scale of logits, or a step.
    """
    try:
        summed, closer = at_made_up_numbers([p, finer], [(i.variable, i.axis, i.index) for i in inputs])
    except ParameterValueError:
        raise Unreduced(
            f"its probabilities leave 0 to 1 where the unknown is {FARTHEST:g} standard deviations from its mean. Write a link"
            " around them, such as pm.math.invlogit"
        ) from None
    except Exception:  # what has no made-up number, or is not defined there
        return
    likely = closer > RARE
    if not (np.abs(summed - closer)[likely] <= INEXACT * closer[likely]).all():
        raise Unreduced(
            "values follow it so steeply that the sum is not exact, as where it has a standard deviation of 100 on the scale of logits, or"
            " decides by a step. Write a prior of numbers that occur, such as pm.Normal(0, 3), and a smooth curve"
        )


def _probabilities(likelihood: Likelihood, own: Likelihood, entry: Placeholder, rows: np.ndarray, many: int, finer: int = 1) -> Tensor:
    """The probability of every row of values, for all cells: (cells, rows), cells of length one where nothing differs between them."""
    mean, deviation = (parameter.astype("float64") for parameter in own.parameters)
    cells = _cells([i for i in (*likelihood.inputs, *own.inputs) if i is not entry])
    nodes, weights = nodes_of((many - 1) * rows.shape[1], finer)
    numbers = (mean + deviation * nodes[:, None] + pt.zeros((1, cells))).astype(entry.variable.type.dtype)  # (nodes, cells)
    if cells == 1:
        numbers = pt.specify_shape(numbers, (len(nodes), 1))
    at_nodes = [_over(parameter, entry.variable, numbers) for parameter in likelihood.parameters]
    full = [
        pt.expand_dims(parameter, -1 - core) + np.zeros((many,) + (1,) * core)
        for parameter, core in zip(at_nodes, likelihood.core_ndims, strict=True)
    ]
    assert likelihood.again is not None
    make = likelihood.again
    grid = np.arange(many).reshape((1,) * 3 + (-1,))
    chances = on_grid(lambda value, *several: pm.logp(make(*several), value), full, grid)
    entries = rows.shape[1]
    chances = pt.maximum(chances, LEAST) + np.zeros((1, 1, entries, many))
    by_entry = chances.reshape((len(nodes), cells, entries * many))
    holds = (rows[:, :, None] == np.arange(many)).reshape(len(rows), entries * many)
    of_rows = pt.dot(by_entry, pt.constant(holds.T.astype(float)))
    return pt.exp(pt.logsumexp(of_rows + np.log(weights)[:, None, None], axis=0))


def _cells(inputs: Sequence[Placeholder]) -> Variable | int:
    """The number of cells, as any of these inputs has it; 1 where none differs between cells."""
    along = [i.variable.shape[i.axis] for i in inputs if i.axis is not None]
    return along[0] if along else 1


def _over(parameter: Variable, entry: Variable, numbers: Variable) -> Variable:
    """A parameter at every node of the unknown, along a first axis; as it is where it does not rest on the unknown."""
    [at_nodes] = vectorize_graph([parameter], {entry: numbers})
    return at_nodes
