"""The query model of DNMR14: questions about the unknowns, answered from draws of the posterior."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pymc as pm

from pymc_dp.plans.protection import protection_of
from pymc_dp.posterior.draws import sample_posterior
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.calls import explained
from pymc_dp.privacy.ledger import Ledger, Part
from pymc_dp.privacy.requests import PosteriorSample
from pymc_dp.private_models.labels import extended

if TYPE_CHECKING:
    import xarray as xr


@explained
def ask(
    questions: Mapping[str, Callable[["xr.Dataset"], object]],
    *,
    epsilon: object,
    model: pm.Model | None = None,
    fresh: bool = False,
    delta: float = 0,
    smallest: float | None = None,
    method: str = "exact",
    truncate: str | Mapping[str, tuple[float, float]] | None = None,
    bounds: Mapping[str, object] | None = None,
    public: Iterable[object] = (),
    unit: str = "row",
    neighbours: str = "replace",
    missing: Mapping[str, object] | Iterable[str] | None = None,
    ledger: Ledger | Part | None = None,
) -> "xr.DataTree":
    """Answers to questions q(theta), from one draw of the posterior or from a fresh one each (DNMR14, Algorithm 1).

    One draw is paid for once, whatever is asked of it. Its answers belong together, as one possible truth. Fresh draws make answers
    that are independent given the records, and each draw is paid for, so at the same epsilon they come from a flatter posterior.

    Parameters
    ----------
    questions : mapping of str to callable
        Functions of one draw, a Dataset of the model's free variables and Deterministics, that give a number or an array.
    epsilon, delta
        The cost of all answers together.
    fresh : bool
        Whether every question gets a draw of its own.
    smallest, method, truncate
        See ``PosteriorSample``.
    model, bounds, public, unit, neighbours, missing, ledger
        See ``release``.

    Returns
    -------
    xarray.DataTree
        The tree that ``sample`` gives, with a group ``answers`` that has a variable for every question.

    Raises
    ------
    Refusal
        Where ``sample`` refuses, and where nothing is asked.
    Exception
        Whatever a question raises, with what was paid for in its attribute ``tree``.

    Examples
    --------
    >>> odds = {"odds": lambda draw: draw.share / (1 - draw.share)}
    >>> tree = pmdp.ask(odds, model=model, epsilon=1.0)
    >>> tree["answers"]["odds"].shape
    ()
    """
    _check_questions(questions)
    protection = protection_of(bounds=bounds, public=public, unit=unit, neighbours=neighbours, missing=missing)
    request = PosteriorSample(len(questions) if fresh else 1, smallest, method, truncate=truncate)
    tree = sample_posterior(model, request, epsilon, protection, delta=delta, ledger=ledger)
    return _answered(questions, tree)


def _check_questions(questions: object) -> None:
    """Refuse what are no functions by names that a tree can hold."""
    if not isinstance(questions, Mapping) or not questions or not all(map(callable, questions.values())):
        raise Refusal('questions must be functions by name. Write for example ask({"twice": lambda draw: 2 * draw.mu}, epsilon=1.0).')
    if odd := [name for name in questions if not isinstance(name, str) or not name or "/" in name or name in ("chain", "draw")]:
        raise Refusal(f"{odd[0]!r} cannot be the name of an answer. Write a text without slashes, and not the name of a dim of draws.")


def _answered(questions: Mapping[str, Callable[["xr.Dataset"], object]], tree: "xr.DataTree") -> "xr.DataTree":
    """Draws with the answers: each question gets a draw of its own where there are several. What was paid for is in any error."""
    import xarray as xr

    draws, answers = tree["posterior"].to_dataset(), {}
    try:
        for k, (name, question) in enumerate(questions.items()):
            answer = question(draws.isel(chain=0, draw=k if draws.sizes["draw"] > 1 else 0, drop=True))
            answers[name] = answer if isinstance(answer, xr.DataArray) else xr.DataArray(np.asarray(answer))
        return extended(tree, "answers", xr.Dataset(answers), covers=True)
    except Exception as error:
        error.tree = tree  # type: ignore[attr-defined]
        raise
