"""The query model of DNMR14: questions about the unknowns, answered from draws of the posterior."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pymc as pm

from pymc_dp.plans.protection import protection_of
from pymc_dp.posterior.draws import sample_posterior
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.ledger import Ledger, Part
from pymc_dp.privacy.requests import PosteriorSample
from pymc_dp.private_models.labels import extended

if TYPE_CHECKING:
    import xarray as xr


def ask(
    questions: Mapping[str, Callable[["xr.Dataset"], object]],
    *,
    epsilon: object,
    model: pm.Model | None = None,
    fresh: bool = False,
    delta: float = 0,
    smallest: float | None = None,
    method: str = "exact",
    bounds: Mapping[str, object] | None = None,
    public: Iterable[object] = (),
    unit: str = "row",
    neighbours: str = "replace",
    missing: Mapping[str, object] | Iterable[str] | None = None,
    ledger: Ledger | Part | None = None,
) -> "xr.DataTree":
    """Answers to questions q(theta), from one draw of the posterior or from a fresh one each (DNMR14, Algorithm 1).

    One draw is paid for once, whatever is asked of it: its answers belong together, as one possible truth. Fresh draws make answers
    that are independent given the records, and each is paid for: at the same epsilon the posterior they come from is flatter.

    Parameters
    ----------
    questions : mapping of str to callable
        From one draw, a Dataset of the model's free variables and Deterministics with its dims and coords, to a number or array.
    epsilon, delta
        What all answers together may cost.
    fresh : bool
        Whether every question gets a draw of its own.
    smallest, method
        See ``PosteriorSample``.
    model, bounds, public, unit, neighbours, missing, ledger
        See ``release``.

    Returns
    -------
    xarray.DataTree
        As ``sample`` gives it, with a group ``answers``: a variable for every question.

    Raises
    ------
    Refusal
        As ``sample``; also where nothing is asked.
    Exception
        Whatever a question raises, with what was paid for in its attribute ``tree``.
    """
    _check_questions(questions)
    protection = protection_of(bounds=bounds, public=public, unit=unit, neighbours=neighbours, missing=missing)
    request = PosteriorSample(len(questions) if fresh else 1, smallest, method)
    tree = sample_posterior(model, request, epsilon, protection, delta=delta, ledger=ledger)
    try:
        return extended(tree, "answers", _answers(questions, tree["posterior"].to_dataset()), covers=True)
    except Exception as error:
        error.tree = tree  # type: ignore[attr-defined]
        raise


def _check_questions(questions: object) -> None:
    """Refuse what are no functions by names that a tree can hold."""
    if not isinstance(questions, Mapping) or not questions or not all(map(callable, questions.values())):
        raise Refusal('questions must be functions by name. Write for example ask({"twice": lambda draw: 2 * draw.mu}, epsilon=1.0).')
    if odd := [name for name in questions if not isinstance(name, str) or not name or "/" in name or name in ("chain", "draw")]:
        raise Refusal(f"{odd[0]!r} cannot be the name of an answer. Write a text without slashes, and not the name of a dim of draws.")


def _answers(questions: Mapping[str, Callable[["xr.Dataset"], object]], draws: "xr.Dataset") -> "xr.Dataset":
    """The answers: each question gets a draw of its own where there are several."""
    import xarray as xr

    answers = {}
    for k, (name, question) in enumerate(questions.items()):
        answer = question(draws.isel(chain=0, draw=k if draws.sizes["draw"] > 1 else 0, drop=True))
        answers[name] = answer if isinstance(answer, xr.DataArray) else xr.DataArray(np.asarray(answer))
    return xr.Dataset(answers)
