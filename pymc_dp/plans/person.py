"""``Person``: the promise about all rows of a person, and the array that says which rows those are. Only ``releases/persons`` reads its
values.

A person is as many places as rows count at most, and each place holds a row or nothing. So whatever a person's rows are exchanged for,
what is released moves by no more than that many times what one place moves it, in L1; and in L2 as well, by the triangle inequality.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pymc as pm
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable

from pymc_dp.models.same_arrays import data_of
from pymc_dp.models.spec import ModelSpec
from pymc_dp.models.structure import arrays_above
from pymc_dp.privacy.accounting import ALL_ROWS, Refusal, is_whole
from pymc_dp.privacy.calls import explained_class, meant_by

READABLE = "biufcUSOT"
"""Kinds of arrays that can say whose row it is: whole and other numbers, texts, and objects that are these."""
EXAMPLE = 'unit=pymc_dp.Person("patient_id", at_most=5)'
EXAMPLE_OF_ARRAY = 'unit=pymc_dp.Person(ids, at_most=5, name="patient")'


@explained_class
@dataclass(frozen=True, eq=False, repr=False)
class Person:
    """A unit that protects all rows of a person together, however many there are: ``unit=pymc_dp.Person("patient_id", at_most=5)``.

    Neighbouring data sets differ in all rows of one person: they are exchanged for all rows of another one ("replace"), or are there or not
    ("add_remove"). Either way the number of rows is private. At most ``at_most`` rows of each person count. Which of them do is as good as
    random and always the same: it depends on a hash of the person's identifier and of the row, and on no other person.
    A row without an identifier is left out.

    Parameters
    ----------
    key : str or array
        The identifier of the person for every row: the name of a ``pm.Data`` of the model, which no likelihood need use, or an array (N,)
        of whole numbers or texts, or a column of pandas, polars or Arrow. With ``data=``, the name of a column. PyMC keeps whole numbers
        of a ``pm.Data`` in 32 bits: give larger ones as an array, because two people whose numbers differ by 2**32 would be one. In an
        array whole numbers beyond 2**53 identify nobody: give those as a list, or as a column of type ``Int64``.
    at_most : int
        How many rows of a person count at most. Noise is this many times as wide as for single rows.
    name : str, optional
        What a person is called in summaries and ledgers: the name of the ``pm.Data`` if left out. An array needs a name, because a
        ledger adds up what was spent on persons with one name.

    Raises
    ------
    Refusal
        When an argument is of the wrong kind; the message says what to write instead.

    Examples
    --------
    >>> with pm.Model() as visits:
    ...     patient = pm.Data("patient_id", np.repeat(np.arange(50), 4))
    ...     ill = pm.Bernoulli("ill", pm.Beta("share", 1, 1), observed=np.tile([0, 1], 100))
    >>> pmdp.inspect(visits, unit=pmdp.Person("patient_id", at_most=3), neighbours="add_remove").rows[0].sensitivity
    3.0
    """

    key: object = None
    at_most: int = 0
    name: str = ""
    declared: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        named = isinstance(self.name, str) and isinstance(self.key, str | Variable | np.ndarray | list | tuple) | hasattr(
            self.key, "__array__"
        )
        if isinstance(self.at_most, np.integer):
            object.__setattr__(self, "at_most", int(self.at_most))
        if not is_whole(self.at_most, 1) or not named or isinstance(self.key, Variable):
            raise Refusal(
                f"Person needs the name of a pm.Data, or an array, and how many rows of a person count at most. Write {EXAMPLE}, or"
                f" {EXAMPLE_OF_ARRAY}."
            )
        if not isinstance(self.key, str):
            object.__setattr__(self, "declared", is_declared(getattr(self.key, "dtype", None)) or isinstance(self.key, np.ma.MaskedArray))
            object.__setattr__(self, "key", _as_array(self.key))
        if not self.name.strip():
            if not isinstance(self.key, str):
                raise Refusal(f"An array does not say what its people are called, and ledgers add up by that. Write {EXAMPLE_OF_ARRAY}.")
            object.__setattr__(self, "name", self.key)

    def __str__(self) -> str:
        return f"{self.relation}, at most {self.at_most}"

    def __repr__(self) -> str:
        return f"Person({self.name!r}, at_most={self.at_most})"

    @property
    def relation(self) -> str:
        """All that decides which data sets are neighbours, for the ledger: how many rows count does not, for the promise is of all."""
        return f"{ALL_ROWS}{self.name}"


def is_declared(kind: Any) -> bool:
    """Whether a type of NumPy, pandas or polars, or none at all, holds any name beside any other, so that none decides on the type.

    NumPy's own, which pandas finds by looking at all entries, do not: where one is missing or has a fraction they are doubles, and text
    where one is a word.
    """
    while getattr(kind, "categories", None) is not None:
        kind = getattr(kind.categories, "dtype", None)
    return not isinstance(getattr(kind, "subtype", kind), np.dtype) and str(kind) != "str"


def _as_array(entries: object) -> np.ndarray:
    """What was given, as an array along the rows; of what is no plain array every entry as it is, so that none decides on the others."""
    if getattr(getattr(entries, "dtype", None), "kind", "O") not in "mM":
        entries = _entries(entries)
    if isinstance(entries, list | tuple):
        key = np.empty(len(entries), dtype=object)
        for place, name in enumerate(entries):
            key[place] = name
        return key
    key = np.asarray(entries)
    if key.ndim != 1 or key.dtype.kind not in READABLE:
        raise Refusal(f"Whose a row is, is said by one whole number or text per row. Write {EXAMPLE}, or an array (N,) of these.")
    return key


def _entries(column: Any) -> Any:
    """A column of pandas, polars or Arrow, or a masked array, as what its entries are.

    As arrays of NumPy they would lose who is missing, or become doubles where one is, and two large numbers the same one.
    """
    if isinstance(column, np.ma.MaskedArray):
        whole = column.data.astype(object)
        whole[np.ma.getmaskarray(column)] = None
        return whole
    if isinstance(getattr(column, "dtype", None), np.dtype):  # nothing is lost, and memory stays that of the model's arrays
        return np.asarray(column)
    if hasattr(column, "astype"):
        return column.astype(object)
    listed = getattr(column, "to_pylist", None) or getattr(column, "to_list", None)
    return column if listed is None else listed()


def key_column(spec: ModelSpec, person: Person | None) -> str | None:
    """The column of a table that says whose the rows are; all observed variables are columns of the same rows.

    Raises
    ------
    Refusal
        Where it is no name, or is declared public, or where the model's own array of that name stays in the private model.
    """
    if person is None:
        return None
    if not isinstance(person.key, str):
        raise Refusal(f"With data= the key is a column. Write {EXAMPLE}, with the name of one.")
    if person.key in spec.public:
        raise Refusal(f"{person.key} is declared public, and with it whose the rows are, and how many. Leave it out of public.")
    if person.key in spec.stays:
        raise Refusal(f"{person.key} stands above a prior, where no record enters. Write the prior without it.")
    return person.key


def key_of(model: pm.Model, spec: ModelSpec, person: Person) -> Variable | np.ndarray:
    """The array that says whose the rows are: no value of it is read.

    Raises
    ------
    Refusal
        Where there is no such array, where it may stay in the private model, or where it need not be along the rows of all observed
        variables.
    """
    key = person.key
    if isinstance(key, str):
        data_array = model.named_vars.get(key)
        if not isinstance(data_array, SharedVariable) or data_array.type.ndim != 1:
            meant = meant_by(key, [str(v.name) for v in model.data_vars if v.type.ndim == 1])
            raise Refusal(
                f"unit names {key!r}, which is no pm.Data with one entry per row. {meant or f'Write pm.Data({key!r}, ids) in the model.'}"
                f" An array will do as well: unit=pymc_dp.Person(ids, at_most={person.at_most}, name={key!r}); and so will"
                f" a column of the table, where records are given as data=."
            )
        if key in spec.public:
            raise Refusal(f"{key} is declared public, and with it whose the rows are, and how many. Leave it out of public.")
        _check_dim(model, spec, key)
        key = data_array
    if len(spec.on_one_axis) > 1:
        raise Refusal(
            f"{' and '.join(together[0] for together in spec.on_one_axis)} need not have the same rows, so {person.name} cannot say whose"
            ' rows both are. If row k of one and row k of the other are one row, give them one dim, dims="visit", with'
            ' pm.Model(coords={"visit": range(...)}).'
        )
    kept = (data_of(array) for array in arrays_above(list(spec.kept), through_unknowns=True))
    memory = data_of(key) if isinstance(key, Variable) else key
    stays = any(np.may_share_memory(array, memory) for array in kept if isinstance(array, np.ndarray))
    if stays or (isinstance(person.key, str) and person.key in spec.stays):
        raise Refusal(f"{person.name} stands above a prior, and would stay in the private model. Write the prior without it.")
    return key


def _check_dim(model: pm.Model, spec: ModelSpec, name: str) -> None:
    """Refuse a key along another dim than the records of an observed variable, where both have names."""
    along = dict(model.named_vars_to_dims)
    for likelihood in spec.likelihoods:
        first, other = ((along.get(named) or (None,))[0] for named in (name, likelihood.name))
        if first and other and first != other:
            raise Refusal(
                f"{name} lies along {first!r}, but the rows of {likelihood.name} along {other!r}. Name in unit what says of each row of"
                f" {likelihood.name} whose it is."
            )
