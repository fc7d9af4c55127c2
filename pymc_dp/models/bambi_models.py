"""Models that bambi builds from a formula and a table: taken where it computed nothing from all records together.

By default bambi scales priors by the records and subtracts their means from predictors before there is a model to look at, so that
every row of its arrays, and constants of priors, hold something of all records. Nothing in the PyMC model tells. So the bambi model
itself is asked for, whose settings and formula say it. Types of columns are read, and no value.
"""

import re
from typing import Any

import pymc as pm

from pymc_dp.privacy.accounting import Refusal

ROWS = "__obs__"
"""The dim of records in every model that bambi builds."""
MARK = "rows_of_bambi_alone"
"""The attribute of a PyMC model whose bambi model was looked at."""
SETTINGS = {"auto_scale": "scales priors by the records", "center_predictors": "subtracts means of the records", "dropna": "drops rows"}
"""What must be False, and what bambi does otherwise."""
BY_ROW = frozenset({"I", "offset", "p", "prop", "proportion", "abs", *(f"{home}{name}" for home in ("", "np.", "numpy.") for name in
                    ("log", "log1p", "log2", "log10", "exp", "sqrt", "abs"))})  # fmt: skip
"""Functions that a formula may call: each row of what they return rests on that row alone."""
TOKEN = re.compile(r"\s*(?:(?P<name>[A-Za-z_.][\w.]*)|(?P<other>\d[\d.]*(?:e[+-]?\d+)?|\*\*|[-~+*:/|(),^]))", re.IGNORECASE)


def from_bambi(given: object) -> bool:
    """Whether this is a model of bambi, which need not be installed."""
    return any(kind.__module__.split(".")[0] == "bambi" and kind.__name__ == "Model" for kind in type(given).__mro__)


def built(given: Any) -> pm.Model:
    """The PyMC model that bambi builds, where nothing in it rests on several records.

    Raises
    ------
    Refusal
        When a setting, a function or a column makes bambi compute something from all records.
    """
    wrong = {name: words for name, words in SETTINGS.items() if getattr(given, name, None) is not False}
    if wrong:
        raise Refusal(
            f"bambi {' and '.join(wrong.values())} before there is a model to look at, and that would not be private. Write"
            f" bambi.Model(..., {', '.join(f'{name}=False' for name in wrong)}), and priors of your own."
        )
    formula = given.formula
    for text in [formula] if isinstance(formula, str) else [formula.main, *formula.additionals]:
        _check(text, given.data.dtypes, {*formula.additionals_lhs} if hasattr(formula, "additionals_lhs") else set())
    if not given.built:
        try:
            given.build()
        except Exception:  # what it says may hold values
            raise Refusal("bambi cannot build this model. Write bambi_model.build(), which says why.") from None
    model = given.backend.model
    setattr(model, MARK, True)
    return model


def check_built(model: pm.Model) -> None:
    """Refuse a model that bambi has built, without the bambi model that says what was computed from the records."""
    if ROWS in model.coords and not hasattr(model, MARK):
        raise Refusal(
            "bambi has built this model, and by default it computes priors and predictors from the records, which would not be private."
            " Give the bambi model itself, model=bambi_model, so that its settings can be checked."
        )


def _check(formula: str, types: Any, parameters: set[str]) -> None:
    """Refuse what is not known to treat a formula's rows one by one: a function, an attribute, a variable that is no column."""
    place, tokens = 0, []
    while formula[place:].strip():
        match = TOKEN.match(formula, place)
        if match is None:
            raise Refusal(f"The formula has {formula[place:].strip()[0]!r}, which is not read here. Compute a column of the table instead.")
        tokens.append((match["name"], match["other"]))
        place = match.end()
    for (name, _), (_, before), (_, after) in zip(tokens, [(None, None), *tokens], [*tokens[1:], (None, None)], strict=False):
        if name is None or name in parameters:
            continue
        if after == "(":
            if name not in BY_ROW:
                raise Refusal(
                    f"The formula calls {name}, which may compute something from all records. Compute a column of the table instead, with"
                    " constants of your own: (x - 50) / 25."
                )
        elif name not in types.index:
            raise Refusal(f"The formula names {name}, which is no column of the table. Write a number for it.")
        elif before == "|" or types[name].kind not in "biuf":
            _check_levels(name, types[name])


def _check_levels(name: str, kind: Any) -> None:
    """Refuse levels that bambi would collect from the records."""
    if getattr(kind, "name", "") != "category":
        raise Refusal(
            f"bambi would find the levels of {name} in the records, and one record may have a level of its own. Write them:"
            f' frame["{name}"] = pandas.Categorical(frame["{name}"], ["level", "another"]).'
        )
