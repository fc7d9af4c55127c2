"""The state from which a session goes on, made of its file and the charges in its ledger. Nothing here sees a record."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.ledger import Ledger
from pymc_dp.privacy.receipts import Draw
from pymc_dp.queries.history import Answered, History
from pymc_dp.queries.language import Question
from pymc_dp.queries.language import question as understood
from pymc_dp.queries.plan import State, short_text
from pymc_dp.queries.schema import Schema
from pymc_dp.queries.session_file import Saved, damaged

_WORDS = {
    "schema": "schema", "neighbours": "kind of neighbours", "unit": "unit", "part": "part of the ledger", "complete": "promise (complete=)",
    "records": "number of records", "person": "column of persons, or number of rows that count",
}  # fmt: skip


def check_same(saved: Saved, new: Saved, name: str) -> None:
    """Refuse to go on with a session under another schema, unit or the like than it began with."""
    for what, words in _WORDS.items():
        if getattr(saved, what) != getattr(new, what):
            raise Refusal(f"{name} is a session with another {words}. Open it with the same, or choose another name.")


def empty(saved: Saved) -> State:
    """The state of a session that has asked nothing."""
    history = History.empty(saved.neighbours, saved.records, saved.at_most)
    return State(frozenset(saved.complete), history, history)


def without_gaps(saved: Saved) -> Saved:
    """A session that no ledger remembers, without what was lost: nobody has seen it, and it is not in the file."""
    own = [item for item in saved.items if item.number is not None]
    numbers = {id(item): number for number, item in enumerate(own)}
    return replace(saved, items=tuple(replace(item, number=numbers.get(id(item))) for item in saved.items))


def restored(saved: Saved, ledger: Ledger | None, path: Path) -> State:
    """The state of the session in a file: what the ledger remembers was charged, and the answers in the file.

    Raises
    ------
    Refusal
        When the file holds an answer that the ledger does not remember the charge of, or is damaged.
    """
    answered = {item.number: item.answered for item in saved.items if item.number is not None}
    if ledger is None:
        charged = [answered[number] for number in sorted(answered)]
    else:
        charged = [_charged(charge.draws[0], charge.cost.epsilon, saved) for charge in ledger.session(saved.name)]
    for number, answer in answered.items():
        if number >= len(charged) or not same_noise(answer, charged[number]):
            owner = path.name if ledger is None else ledger.path.name
            raise Refusal(f"{path.name} holds an answer that {owner} does not remember the charge of. Put the newest copies of both back.")
    state = empty(saved)
    try:
        for number, answer in enumerate(charged):
            state = state.after(answered.get(number, answer))
        if len(answered) < len(charged) or len(answered) < len(saved.items):
            state = replace(state, known=History.empty(saved.neighbours, saved.records, saved.at_most))
            for item in saved.items:
                state = state.knowing(item.answered)
    except (ArithmeticError, ValueError):
        raise damaged(path) from None
    return state


def _charged(draw: Draw, epsilon: Fraction, saved: Saved) -> Answered:
    """A draw as the ledger remembers it, its answer unknown."""
    question = understood(draw.variable, saved.schema)
    if question.sensitivity(saved.neighbours, saved.at_most) != draw.difference:
        raise Refusal("The schema is not the one that was asked about before. Give the session the schema it began with.")
    return Answered(question, epsilon, draw.scale, 0)


def same_noise(first: Answered, second: Answered) -> bool:
    """Whether two answers are to the same question, with noise of the same cost and scale."""
    return (first.question.text, first.epsilon, first.scale) == (second.question.text, second.epsilon, second.scale)


def check_written(question: Question, schema: Schema) -> None:
    """Refuse a question that cannot be read again from its text, which is all that the ledger and the file of the session keep of it."""
    try:
        reread = understood(question.text, schema)
        same = (
            reread.divisor == question.divisor and reread.columns == question.columns and np.array_equal(reread.weights, question.weights)
        )
    except Refusal:
        same = False
    if not same:
        raise Refusal(f"{short_text(question)} is too long to be written down. Ask in parts, or declare coarser levels.")
