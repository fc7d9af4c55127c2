"""Whether a private model is still as it was made: what is added to it or changed afterwards may come from records."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pymc as pm
from pytensor.compile.sharedvalue import SharedVariable

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.private_models.fingerprint import DATA

REMEDY = "Change your own model instead, and make the private one again, which costs nothing: pymc_dp.rewrite(model, private.privacy)."


@dataclass(frozen=True, eq=False)
class AsMade:
    """What a model held when it was made.

    Attributes
    ----------
    names : frozenset of str
        Of all its variables. Any of another name may hold records, or draw the posterior to them: a density may be any function.
    numbers : mapping of str to ndarray
        Its data that are what was released.
    labels : mapping of str to tuple or None
        The labels of its dims.
    """

    names: frozenset[str]
    numbers: Mapping[str, np.ndarray]
    labels: Mapping[str, tuple | None]

    def added(self, model: pm.Model) -> list[str]:
        """Names of variables that it did not have."""
        return sorted(set(model.named_vars) - self.names)

    def changed(self, model: pm.Model) -> list[str]:
        """Names of released data, and of dims, that are no longer what they were."""
        now = as_made(model)
        numbers = [name for name, array in self.numbers.items() if not np.array_equal(array, now.numbers.get(name, np.nan), equal_nan=True)]
        return numbers + [dim for dim, labels in self.labels.items() if now.labels.get(dim, labels) != labels]


def as_made(model: pm.Model) -> AsMade:
    """What a model holds now."""
    data = {name: variable for name, variable in model.named_vars.items() if name.endswith(DATA) and isinstance(variable, SharedVariable)}
    labels = {str(dim): None if labels is None else tuple(labels) for dim, labels in model.coords.items()}
    return AsMade(frozenset(model.named_vars), {name: variable.get_value(borrow=False) for name, variable in data.items()}, labels)


def unchanged(private: pm.Model) -> pm.Model:
    """The private model itself, if it is what ``rewrite`` made: for what was added to it, or put in place of a release, nobody has paid.

    Raises
    ------
    Refusal
        When it is not, or when that is not known.
    """
    made = getattr(private, "as_made", None)
    if not isinstance(made, AsMade):
        raise Refusal(f"It is not known what this private model was made of. {REMEDY}")
    if added := made.added(private):
        raise Refusal(f"{added[0]} was added to a private model, and may hold records, of which nothing was paid for. {REMEDY}")
    if changed := made.changed(private):
        raise Refusal(f"{changed[0]} is no longer what was released. {REMEDY}")
    return private
