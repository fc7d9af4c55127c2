"""A private model of randomised answers: all that is known of a record is a level of joint bins, which is true with a known probability.

With K levels a record is told as a level with probability q + (p - q) P(level), where p is the probability of the truth and q = (1 - p) /
(K - 1). P(level) is what the model says of the bins together (``bin_chances``). Nothing that the copy of the model held of records stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors

from pymc_dp.models.opaque import hidden_in, opaque
from pymc_dp.models.pickled import unlisted
from pymc_dp.models.structure import arrays_above
from pymc_dp.models.written_numbers import MOST_WRITTEN, numbers_in
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.private_models.as_made import AsMade, as_made
from pymc_dp.publications.bin_chances import binned_value, chances_of
from pymc_dp.publications.observed import observed_numbers
from pymc_dp.publications.publication import Noted
from pymc_dp.publications.rows import as_computed, taken_out
from pymc_dp.releases.answers import RandomisedAnswers

if TYPE_CHECKING:
    import xarray as xr


def observe_answers(clone: pm.Model, answers: RandomisedAnswers) -> None:
    """Put the law of randomised answers in the place of all that a copy of the model observes."""
    check_observed(clone, answers)
    order = [name for name in clone.named_vars if name in answers.edges]
    below = {name: [other for other in order if other != name and clone[name] in set(ancestors([clone[other]]))] for name in order}
    randoms = {name: taken_out(clone, name) for name in order}
    for name in order:
        _check_unknowns(clone, name, randoms[name])
    _check_arrays(clone, list(randoms.values()), answers)
    _check_hidden(clone, list(randoms.values()), answers)
    values = [binned_value(name, randoms[name], answers.edges[name], bool(below[name])) for name in answers.edges]
    with clone:
        released = pm.Data(f"{answers.name}_released", answers.told)
        chances = chances_of(values, answers, released)
        incomplete = pm.Beta(f"{answers.name}_incomplete", 1, 1)
        others = (1 - answers.truth) / (answers.levels - 1)
        level = pt.switch(pt.eq(released, answers.levels - 1), incomplete, (1 - incomplete) * chances)
        row = pt.log(others + (answers.truth - others) * level)
        pm.CustomDist(answers.name, row, logp=as_computed, observed=released, shape=answers.told.shape)
    clone.publication = NotedAnswers(answers, as_made(clone))


@dataclass(frozen=True, eq=False, repr=False)
class NotedAnswers(Noted):
    """What is known of a model of randomised answers: who was told as what, and what that cost.

    Attributes
    ----------
    answers : RandomisedAnswers
    terms : AsMade
        See ``Noted``.
    statistics : tuple
        None.
    """

    answers: RandomisedAnswers
    terms: AsMade
    statistics: tuple[()] = ()

    def __str__(self) -> str:
        """The answers, in lines."""
        return repr(self.answers)

    def group(self) -> "xr.DataTree":
        """The group ``privacy`` of a tree: how records were told, and what it cost."""
        return self.answers.to_datatree()

    @property
    def promise(self) -> str:
        """Whose promise it is."""
        cost = float(self.answers.cost.epsilon)
        return f"epsilon {cost:g}, delta 0: every record was randomised once, by pymc_dp, before anything was computed from it"

    def remedy(self, added: str) -> str:
        """What to write where something was added to the model."""
        return "Add it to the model before published(model, answers)."


def check_observed(model: pm.Model, answers: RandomisedAnswers) -> None:
    """Refuse a model that does not observe these values, of so many records."""
    names = [str(rv.name) for rv in model.observed_RVs]
    if missing := [name for name in answers.edges if name not in names]:
        raise Refusal(f"{missing[0]!r} is not observed in this model. Give it observed= zeros, one for every record.")
    if missing := [name for name in names if name not in answers.edges]:
        raise Refusal(f"{missing[0]!r} is observed, and no bounds are given for it. Add it to bounds: all that is observed is private.")
    for rv in model.observed_RVs:
        if observed_numbers(model, rv).shape != answers.told.shape:
            raise Refusal(
                f"{rv.name} must have one number of every record. Write observed=np.zeros({answers.told.size}), and a variable a column."
            )
    if any(name in model.named_vars for name in (answers.name, f"{answers.name}_incomplete", f"{answers.name}_released")):
        raise Refusal(f"The private model calls its answers {answers.name}. Give what has that name another one.")


def _check_unknowns(clone: pm.Model, name: str, random: Variable) -> None:
    """Refuse what rests on a private value and is not observed: the value is summed out, so it has none."""
    for other in (*clone.free_RVs, *clone.deterministics, *clone.potentials):
        if random in set(ancestors([other])):
            raise Refusal(
                f"{other.name} rests on {name}, whose true values are summed out. Let only what is observed rest on it, and leave out"
                " pm.Deterministic and pm.Potential of it."
            )


def _check_arrays(clone: pm.Model, randoms: Sequence[Variable], answers: RandomisedAnswers) -> None:
    """Refuse arrays by record that were not declared public; take those that nothing needs out of the copy, and labels of records.

    What is left of the copy is published with it.
    """
    terms = [*clone.free_RVs, *clone.deterministics, *clone.potentials, *randoms]
    needed = set(arrays_above(terms, through_unknowns=True))
    dropped = {str(array.name) for array in clone.data_vars if array not in needed}
    for array in list(clone.data_vars):
        name = str(array.name)
        if array in needed and name not in answers.public:
            raise Refusal(
                f"{name} is pm.Data and not said to be public. Write public=[{name!r}], or observe it, with a distribution and bounds."
            )
        if array not in needed:
            clone.data_vars.remove(array)
            clone.named_vars.pop(name)
            clone.named_vars_to_dims.pop(name, None)
    for name in set(vars(clone)) & {*(str(random.name) for random in randoms), *dropped}:
        delattr(clone, name)  # PyMC keeps what a model names as its attributes, too
    held = needed - {*clone.data_vars, *clone.dim_lengths.values()}
    if any(not isinstance(array, Constant) or _as_many(array.data, answers) for array in held):
        raise Refusal("The model holds an array as long as the records. Write it as pm.Data, with its name in public= if it is public.")
    if sum(array.data.size for array in held) >= answers.told.size > 1:
        raise Refusal("The model's arrays hold as many numbers as there are records. Write them as pm.Data, with their names in public=.")
    used = {dim for dims in clone.named_vars_to_dims.values() for dim in dims}
    for dim, length in list(clone.dim_lengths.items()):
        if dim not in used:
            clone._coords.pop(dim, None)
            clone._dim_lengths.pop(dim, None)
        elif int(length.eval()) >= answers.told.size:
            clone._coords[dim] = None
    for rv in clone.free_RVs:
        start = clone.rvs_to_initial_values.get(rv)
        if isinstance(start, Variable) or (isinstance(start, np.ndarray) and _as_many(start, answers)):
            clone.rvs_to_initial_values[rv] = None


def _as_many(array: np.ndarray, answers: RandomisedAnswers) -> bool:
    """Whether an array may hold a number of each record: as long as they are, or with as many numbers in another shape."""
    return answers.told.size in array.shape or array.size >= answers.told.size > 1


def _check_hidden(clone: pm.Model, randoms: Sequence[Variable], answers: RandomisedAnswers) -> None:
    """Refuse what no graph shows: arrays within operations of the user's own, in functions of distributions and transforms, in notes."""
    declared = [array for array in clone.data_vars if array.name in answers.public]
    public = [*declared, *(array.get_value(borrow=True) for array in declared)]

    def is_public(thing: object) -> bool:
        return any(thing is array for array in public)

    left = [*clone.free_RVs, *clone.deterministics, *clone.potentials]
    by_itself = {term: _by_itself(term, [*left, *randoms]) for term in (*left, *randoms)}
    for term in by_itself:
        if reason := opaque(term, is_public) or hidden_in(clone.rvs_to_transforms.get(term), is_public):
            raise Refusal(f"{term.name} {reason}. Write it as a graph of PyTensor's own, with arrays as pm.Data named in public=.")
    parameters = [by_itself[random].owner.inputs for random in randoms]  # PyMC notes on the variable itself what it observed
    if reason := unlisted(
        [left, parameters], lambda thing: is_public(thing) or (isinstance(thing, np.ndarray) and not _as_many(thing, answers))
    ):
        raise Refusal(f"What is left of the model without records holds {reason}. Write arrays as pm.Data, with their names in public=.")
    written = {term: numbers_in(expression) for term, expression in by_itself.items()}
    for what, many in [(each.name, written[each]) for each in written] + [("Potentials", sum(written[each] for each in clone.potentials))]:
        if many > MOST_WRITTEN:
            raise Refusal(
                f"Many single numbers stand in {what}, as a loop over records would write them. Write them as pm.Data, with its name in"
                " public=."
            )


def _by_itself(term: Variable, terms: Sequence[Variable]) -> Variable:
    """The expression of a term in which the model's others are nothing but variables."""
    [expression] = graph_replace([term], {other: other.type() for other in terms if other is not term}, strict=False)
    return expression
