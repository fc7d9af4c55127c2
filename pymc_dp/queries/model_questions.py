"""Questions of a session about the unknowns of a model: they are paid from its ledger, and recorded there before records are read."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pymc_dp.posterior import ask
from pymc_dp.privacy.accounting import Refusal, exact_epsilon
from pymc_dp.privacy.guard import UnaccountedWarning
from pymc_dp.queries.account import Account

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

MODEL_WORDS = {"fresh", "smallest", "method", "bounds", "public"}
"""What may be said of a question about a model besides its epsilon."""


def ask_model(
    account: Account, questions: Mapping[str, Callable], epsilon: object, model: "pm.Model | None", words: dict[str, Any]
) -> "xr.DataTree":
    """Answers from draws of a model's posterior: see ``QuerySession.ask_model``.

    The cost is set aside before the model is asked, and put back where the call was refused before anything was drawn.
    """
    if wrong := sorted(words.keys() - MODEL_WORDS):
        raise Refusal(
            f"A session takes no {wrong[0]}: it is of pure epsilon, with a unit, neighbours and a ledger of its own. Leave it out and"
            " write for example session.ask_model(questions, epsilon=1.0). With a delta, call pymc_dp.ask with the same ledger."
        )
    if account.saved.person is not None:
        raise Refusal(
            "The price of draws from a posterior is that of one row, and this session protects all rows of a person. Release the"
            " model with unit=pymc_dp.Person(...)."
        )
    more, saved = exact_epsilon(epsilon), account.saved
    account.set_aside(more)
    questions, seen = _noting(questions)
    try:
        return ask(questions, epsilon=more, model=model, unit=saved.unit, neighbours=saved.neighbours, ledger=account.payer, **words)
    except (Refusal, UnaccountedWarning) as reason:
        if not seen and not hasattr(reason, "tree"):  # nothing was drawn that anybody saw
            account.put_back(more)
        raise


def _noting(questions: Mapping[str, Callable]) -> tuple[Mapping[str, Callable], list[str]]:
    """Questions about a model that note their names once they are handed a draw, and the list that they note them in."""
    seen: list[str] = []

    def noting(name: str, question: Callable) -> Callable:
        def answer(draw: Any) -> Any:
            seen.append(name)
            return question(draw)

        return answer

    if isinstance(questions, Mapping):
        questions = {name: noting(name, question) if callable(question) else question for name, question in questions.items()}
    return questions, seen
