"""How a question will be answered, and what it will cost: decided from the question and earlier noisy answers.

Nothing here can reach a record, so nothing that is decided here, no price and no refusal, depends on one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, isfinite, log10, nan
from numbers import Real

import numpy as np

from pymc_dp.privacy.accounting import Cost, Refusal, exact_epsilon
from pymc_dp.privacy.mechanisms import Laplace
from pymc_dp.queries.answer import FREE, PAID, PUBLIC
from pymc_dp.queries.basis import basis_of
from pymc_dp.queries.blue import estimate, least_epsilon
from pymc_dp.queries.completion import Completion, chains_agree, complete, fast_enough, interval_given_all
from pymc_dp.queries.history import Answered, History
from pymc_dp.queries.language import Question

QUICK = 1000
"""Answers times groups of records that they tell apart, up to which the posterior is drawn in about a second."""
DRAWS = 1000
"""Draws of the posterior in each of four chains while that is quick; a quarter of them beyond."""
LEAST_OUTSIDE = 10
"""So many draws are beyond either end of an interval, or the end is not known and the fixed-question interval is said."""
MOST_EPSILON = 1000
"""In nats: more protects nobody."""
METHODS = {"posterior": "posterior", "blue": "blue"}
"""Names of methods as plain text, whatever was written."""
SHORTER = Fraction(19, 20)
"""So much of the width is planned for where the posterior will be said: the ends of its interval are known to a fiftieth of its length."""


@dataclass(frozen=True, eq=False)
class State:
    """What was asked and what is known.

    Attributes
    ----------
    complete : frozenset of str
        Columns in which every record is promised to have a level.
    asked : History
        Every draw that was charged, answered or lost: what the session costs.
    known : History
        Every answer, those of releases included: what is inferred from. The same object where the two do not differ.
    squares : Fraction
        The sum of what the draws cost by themselves in rho.
    paid : tuple of Fraction
        By what every draw made the session dearer.
    """

    complete: frozenset[str]
    asked: History
    known: History
    squares: Fraction = Fraction(0)
    paid: tuple[Fraction, ...] = ()

    def after(self, answer: Answered) -> "State":
        """The state with one more draw, whose answer is known, and with what it says about records as they can be."""
        asked, asks = self.asked.append(answer), meant(answer.question, self.complete)
        known = asked if self.known is self.asked and asks is answer.question else self.known.append(replace(answer, question=asks))
        basis_of(known)  # answer by answer, so that a session that is loaded again says the same to the last digit
        return State(self.complete, asked, known, self.squares + answer.epsilon**2 / 2, (*self.paid, asked.cost - self.asked.cost))

    def knowing(self, answer: Answered) -> "State":
        """The state with an answer that is no draw of this session's, or whose draw is counted already."""
        known = self.known.append(replace(answer, question=meant(answer.question, self.complete)))
        basis_of(known)
        return replace(self, known=known)

    def answered(self, noisy: Sequence[int]) -> "State":
        """The state with these as the newest answers, which were planned with 0: everything else is as it was planned."""
        asked = _answered(self.asked, noisy)
        return replace(self, asked=asked, known=asked if self.known is self.asked else _answered(self.known, noisy))

    def lost(self, before: "State") -> "State":
        """The draw is charged, and its answer is not known."""
        return replace(self, known=before.known)

    @property
    def total(self) -> Cost:
        """What the session costs: see ``Step``."""
        return Cost(self.asked.cost, rho=min(self.asked.cost**2 / 2, self.squares))


def _answered(history: History, noisy: Sequence[int]) -> History:
    """Who is touched, what it costs and how answers are combined does not depend on the answers."""
    old = len(history) - len(noisy)
    new = [replace(answer, noisy=number) for answer, number in zip(history.answered[old:], noisy, strict=True)]
    remembered = {name: value for name, value in history.remembered.items() if name == "basis"}
    return replace(history, answered=(*history.answered[:old], *new), remembered=remembered)


@dataclass(frozen=True, eq=False)
class Plan:
    """How one question will be answered, which is known before any record is read.

    Attributes
    ----------
    question : Question
    meant : Question
        The question about records as they can be: see ``meant``.
    how : {"public", "from history", "paid"}
    own : Fraction
        What its noise will cost by itself; 0 where none is needed.
    scale : float
        Scale of that noise, in lattice units.
    total : Cost
        What the session costs once it is answered.
    """

    question: Question
    meant: Question
    how: str
    own: Fraction
    scale: float
    total: Cost


@dataclass(frozen=True)
class Terms:
    """What one wants of an answer: the length of its interval, or None; its confidence; the most that its noise may cost; the method."""

    length: float | None
    level: float
    most: Fraction | None
    method: str | None

    @classmethod
    def of(cls, width: object, confidence: object, epsilon: object, method: object) -> "Terms":
        """Terms from what was written; a refusal says what is wrong with it."""
        named = METHODS.get(method) if isinstance(method, str) else None
        if named is None and method is not None:
            raise Refusal('method must be "posterior" or "blue". Leave it out for the posterior while it is quick.')
        most = None if epsilon is None else exact_epsilon(epsilon)
        if most is not None and most > MOST_EPSILON:
            raise Refusal(f"An epsilon above {MOST_EPSILON:,} protects nobody. Write for example epsilon=0.1.")
        return cls(_width(width), _confidence(confidence), most, named)


def plan_of(state: State, question: Question, terms: Terms, now: State) -> tuple[Plan, State]:
    """A plan from the question and noisy answers alone, and what will be known then, with 0 for the noisy answer.

    Parameters
    ----------
    state : State
        Once all questions before it are answered, with 0 for what their noisy answers will be.
    now : State
        What is known while it is planned: the posterior is given that.

    Raises
    ------
    Refusal
        When it does not follow from what is known and nothing may be paid for it, or too little.
    """
    asks, length, level, most = meant(question, state.complete), terms.length, terms.level, terms.most
    if state.asked.sensitivity(asks) == 0:
        return Plan(question, asks, PUBLIC, Fraction(0), 0.0, state.total), state
    estimated = estimate(state.known, asks)
    free = Plan(question, asks, FREE, Fraction(0), 0.0, state.total), state
    if length is None and most is None:
        if estimated is not None or completion_of(now, asks, terms) is not None:
            return free
        example = width_of(plan_to_pay(state, question, Fraction(1, 10))[1], asks, level)
        raise Refusal(
            f"{short_text(question)} does not follow from what was answered so far. Write width=, or epsilon=: epsilon=0.1 would make it"
            f" {example:.4g} wide."
        )
    if length is None:
        assert most is not None
        return plan_to_pay(state, question, most)
    if estimated is not None and _known_within(now, asks, length, terms):
        return free
    # What is paid for protects records that are in no level, too: the same noise costs more where these could move the answer farther.
    farther = Fraction(state.asked.sensitivity(question), state.asked.sensitivity(asks))
    if terms.method != "blue" and is_quick(state.known):
        length = float(length * SHORTER)
    epsilon = least_epsilon(state.known, asks, length, level) * farther
    if epsilon == 0:
        return free
    plan, after = plan_to_pay(state, question, -rounded_down(-epsilon))
    while width_of(after, asks, level) > length * (1 + 1e-9):
        # On a lattice the estimate of least variance may have a wider interval than the new answer alone, which is wide enough.
        plan, after = plan_to_pay(state, question, -rounded_down(-plan.own * Fraction(102, 100)))
    if most is not None and plan.own > most:
        raise Refusal(
            f"{short_text(question)} needs noise of epsilon {float(plan.own):.4g} for a width of {terms.length:.6g}, which is more than"
            f" epsilon={float(most):.6g}. Write width={rounded_up(width_of(plan_to_pay(state, question, most)[1], asks, level)):.4g}, or a"
            " larger epsilon."
        )
    return plan, after


def plans_of(questions: Sequence[Question], terms: Terms, now: State) -> tuple[list[Plan], State]:
    """How questions will be answered one after the other, given what is known now: not given what the first answer will say.

    The state once all are answered comes with the plans; those between are not kept, because each is as large as a table of all pairs
    of records that are told apart.
    """
    plans, state = list[Plan](), now
    for question in questions:
        try:
            plan, state = plan_of(state, question, terms, now)
        except ArithmeticError:
            raise Refusal(
                f"{short_text(question)} cannot be reckoned with such numbers. Write a width, epsilon or confidence that is less extreme."
            ) from None
        plans.append(plan)
    if terms.method == "posterior" and not fast_enough(state.known):
        raise Refusal('With this question the posterior takes too long. Write method="blue": intervals for questions fixed beforehand.')
    return plans, state


def completion_of(state: State, asks: Question, terms: Terms) -> Completion | None:
    """The posterior given everything that is known now: where it is wanted or quick, and its chains agree on this question."""
    known = state.known
    if terms.method == "blue" or not len(known) or (terms.method is None and not is_quick(known)):
        return None
    completion = drawn_from(known)
    if (1 - terms.level) / 2 * completion.concentration.size < LEAST_OUTSIDE:
        return None
    return completion if chains_agree(completion, asks, terms.level) else None


def _known_within(state: State, asks: Question, length: float, terms: Terms) -> bool:
    """Whether the posterior's interval is short enough: valid whatever made anybody ask, so what is paid may rest on it."""
    completion = None if estimate(state.known, asks) is None else completion_of(state, asks, terms)
    return completion is not None and interval_given_all(completion, asks, terms.level).length <= length


def plan_to_pay(state: State, question: Question, epsilon: Fraction) -> tuple[Plan, State]:
    """A plan to pay for noise of this epsilon, and what will be known then."""
    sensitivity = state.asked.sensitivity(question)
    scale = Laplace().calibrate(sensitivity, sensitivity**2, Cost(epsilon))
    asks = meant(question, state.complete)
    after = state.after(Answered(question, epsilon, scale, 0))
    return Plan(question, asks, PAID, epsilon, scale, after.total), after


def width_of(state: State, asks: Question, level: float) -> float:
    """How wide the fixed-question interval is, whatever the noisy numbers are."""
    estimated = estimate(state.known, asks)
    assert estimated is not None
    return 2 * estimated.law.distance(level)


def meant(question: Question, complete: frozenset[str]) -> Question:
    """The question about records that have a level in every complete column: what it gives to the others does not matter.

    So the extra cell of such a column gets the weights of the first level, and questions that differ only there are one question.
    """
    kept, weights = [], question.weights
    for axis, name in reversed(list(enumerate(question.columns))):
        if name in complete:
            weights = weights.take([*range(weights.shape[axis] - 1), 0], axis=axis)
        if name in complete and (weights == weights.take([0], axis=axis)).all():
            weights = weights.take(0, axis=axis)
        else:
            kept.append(name)
    if weights is question.weights:
        return question
    return replace(question, columns=tuple(reversed(kept)), weights=weights)


def is_quick(known: History) -> bool:
    """Whether the posterior is drawn in about a second."""
    return len(known) * len(known.cells) <= QUICK


def drawn_from(known: History) -> Completion:
    """The posterior given these answers."""
    return complete(known, draws=DRAWS if is_quick(known) else DRAWS // 4)


def short_text(question: Question) -> str:
    """The text of a question, cut short."""
    return question.text if len(question.text) <= 80 else f"{question.text[:77]}..."


def rounded_down(epsilon: Fraction) -> Fraction:
    """A decimal of three digits that is not above it."""
    if not epsilon:
        return epsilon
    digits = floor(log10(abs(epsilon)))
    unit = Fraction(10) ** (digits - 2)
    return epsilon // unit * unit


def rounded_up(width: float) -> float:
    """Three digits that are not below it."""
    return float(-rounded_down(-Fraction(width)))


def number_of(value: object) -> float:
    """A number as a double; not a number if it is none, or too large."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return nan
    try:
        return float(value)
    except OverflowError:
        return nan


def _width(width: object) -> float | None:
    if width is None:
        return None
    if isfinite(number := number_of(width)) and number > 0:
        return number
    raise Refusal("width must be a positive finite number, the length of the interval in units of the answer. Write for example width=20.")


def _confidence(confidence: object) -> float:
    if 0 < (number := number_of(confidence)) < 1:
        return number
    raise Refusal("confidence must lie between 0 and 1. Write for example confidence=0.95.")


def number_above(above: object) -> float:
    """A finite number that an answer is compared with."""
    if isfinite(number := number_of(above)):
        return number
    raise Refusal('above must be a finite number, in units of the answer. Write for example session.probability("age >= 65", 100).')
