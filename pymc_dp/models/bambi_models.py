"""Models that bambi builds from a formula and a table: they are taken if bambi computed nothing from all records together.

By default bambi scales priors by the records and subtracts their means from predictors before there is a model to look at, so that
every row of its arrays, and constants of priors, hold something of all records. It finds levels of factors in the records as well, also
where a type declares them, and calls functions by name, which may be anybody's. Nothing in the PyMC model tells. So the bambi model
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
NUMBERS = "iuf"
"""Kinds of the types whose values bambi takes as they are. Of truth values, categories and text it collects those that occur."""
TOKEN = re.compile(r"\s*(?:(?P<name>[A-Za-z_.][\w.]*)|\d[\d.]*|\*\*|[-~+*:/()])")


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
    # Of a further formula, "sigma ~ age", what stands on the left is a parameter's name.
    for text in [formula] if isinstance(formula, str) else [formula.main, *(text.partition("~")[2] for text in formula.additionals)]:
        _check(text, given.data.dtypes)
    if not given.built:
        raise Refusal("The bambi model is not built yet. Write bambi_model.build() before.")
    model = given.backend.model
    if {*model.coords} > {ROWS}:
        raise Refusal(
            f"bambi has found the levels of {', '.join(sorted({*model.coords} - {ROWS}))} in the records, and one record may have a level"
            " of its own. Write the model in PyMC, with coords of your own."
        )
    setattr(model, MARK, True)
    return model


def check_built(model: pm.Model) -> None:
    """Refuse a model that bambi has built, without the bambi model that says what was computed from the records."""
    if ROWS in model.coords and not hasattr(model, MARK):
        raise Refusal(
            "bambi has built this model, and by default it computes priors and predictors from the records, which would not be private."
            " Give the bambi model itself, model=bambi_model, so that its settings can be checked."
        )


def _check(formula: str, types: Any) -> None:
    """Refuse what is not known to treat a formula's rows one by one: all but columns of numbers, numbers, and arithmetic of terms."""
    place = 0
    while formula[place:].strip():
        match = TOKEN.match(formula, place)
        if match is None:
            sign = formula[place:].strip()[0]
            raise Refusal(
                "bambi would find the groups of (...|...) in the records, and one record may have a group of its own. Write the model in"
                " PyMC, with coords of your own: a[site]."
                if sign == "|"
                else f"The formula has {sign!r}, which is not read here. Compute a column of the table instead."
            )
        place, name = match.end(), match["name"]
        if name is None:
            continue
        if formula[place:].lstrip().startswith("("):
            raise Refusal(
                f"The formula calls {name}, which may compute something from all records. Compute a column of the table instead, with"
                " constants of your own: (x - 50) / 25."
            )
        if name not in types.index:
            raise Refusal(f"The formula names {name}, which is no column of the table. Write a number for it.")
        if types[name].kind not in NUMBERS:
            raise Refusal(
                f"bambi would find the levels of {name} in the records, and one record may have a level of its own. Write a column of"
                f" numbers in the table, such as frame['{name}_m'] = 1.0 * (frame['{name}'] == 'm'), or the model in PyMC, with coords of"
                " your own."
            )
