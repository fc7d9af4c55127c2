"""What follows from a session's noisy answers: an answer with its interval, a probability, draws. Nothing here sees a record."""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.queries.answer import BLUE, EXACT, POSTERIOR, PUBLIC, UNDETERMINED, Answer
from pymc_dp.queries.blue import estimate, interval_about, probability_above
from pymc_dp.queries.completion import answers, interval_given_all, probability_given_all
from pymc_dp.queries.language import Question
from pymc_dp.queries.language import question as understood
from pymc_dp.queries.plan import Plan, State, Terms, completion_of, drawn_from, meant, plan_of
from pymc_dp.queries.schema import Schema

if TYPE_CHECKING:
    import xarray as xr


def answer_of(plan: Plan, state: State, terms: Terms, width: float | None, paid: Fraction) -> Answer:
    """The answer to a planned question from all that is known by now.

    Parameters
    ----------
    width : float or None
        Width of the fixed-question interval, where noise was paid for: known before, so that it can be said whatever fails now.
    paid : Fraction
        What the session costs more with it.
    """
    question, asks, level = plan.question, plan.meant, terms.level
    if plan.how == PUBLIC:
        value = _public_value(plan, state)
        return Answer(question.text, value, (value, value), level, EXACT, PUBLIC)
    blue = estimate(state.known, asks)
    try:
        completion = completion_of(state, asks, terms)
        interval = None if completion is None else interval_given_all(completion, asks, level)
    except Exception:
        if width is None:
            raise
        interval = None
    kind = BLUE if interval is None else POSTERIOR if blue is not None else UNDETERMINED
    if interval is None:
        assert blue is not None
        interval = interval_about(blue, level, width)
    return Answer(question.text, interval.value, (interval.lower, interval.upper), level, kind, plan.how, paid, plan.own)


def probability_of(question: Question, state: State, terms: Terms, above: float) -> float:
    """The probability that the answer to a question is greater than a number: see ``QuerySession.probability``."""
    plan, _ = plan_of(state, question, terms, state)
    if plan.how == PUBLIC:
        return float(_public_value(plan, state) > above)
    completion = completion_of(state, plan.meant, terms)
    if completion is not None:
        return probability_given_all(completion, plan.meant, above)
    blue = estimate(state.known, plan.meant)
    assert blue is not None
    return probability_above(blue, above)


def posterior_of(questions: Sequence[Question] | None, state: State, schema: Schema) -> "xr.DataTree":
    """Draws of answers given every noisy answer: see ``QuerySession.posterior``."""
    if not len(state.known):
        raise Refusal("Nothing was answered yet, so there is no posterior. Ask a question with width= or epsilon=.")
    if questions is None:
        questions = [understood(answer.question.text, schema) for answer in state.known.answered]
    by_text = {question.text: question for question in questions}
    return answers(drawn_from(state.known), [meant(question, state.complete) for question in by_text.values()])


def _public_value(plan: Plan, state: State) -> float:
    """The answer to a question that every record counts alike in."""
    return int(plan.meant.weights.ravel()[0]) * (state.asked.records or 0) / plan.question.divisor
