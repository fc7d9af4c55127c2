"""Questions about one table, one after the other: from what was answered before where that is good enough, paid for where it is not (XX12).

Whatever is decided is decided from the question, the schema and earlier noisy answers. Then the charge is written to the ledger, then
records are read, then noise is drawn, then the file of the session is written, and then the answer is given.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from functools import wraps
from html import escape
from math import isfinite
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from pymc_dp.posterior import ask
from pymc_dp.privacy.accounting import Cost, Refusal, check_neighbours, exact_epsilon, protected
from pymc_dp.privacy.charges import Step
from pymc_dp.privacy.guard import WEAK_EPSILON, UnaccountedWarning, boundary, warn_if_weak
from pymc_dp.privacy.ledger import Ledger, Part, check_ledger
from pymc_dp.privacy.mechanisms import Laplace
from pymc_dp.privacy.receipts import Draw, Receipt
from pymc_dp.queries.answer import BLUE, EXACT, PAID, POSTERIOR, PUBLIC, UNDETERMINED, Answer, Price
from pymc_dp.queries.as_likelihood import observed
from pymc_dp.queries.blue import Interval, estimate, probability_above
from pymc_dp.queries.completion import answers, fast_enough, interval_given_all, probability_given_all
from pymc_dp.queries.expressions import Combination, Condition
from pymc_dp.queries.from_release import counted
from pymc_dp.queries.history import Answered, History, sensitivity_of
from pymc_dp.queries.language import Question
from pymc_dp.queries.language import question as understood
from pymc_dp.queries.plan import (
    Plan,
    State,
    Terms,
    completion_of,
    drawn_from,
    meant,
    number_of,
    plan_of,
    plan_to_pay,
    short,
    shown,
    wider,
    width_of,
)
from pymc_dp.queries.schema import Schema
from pymc_dp.queries.session_file import Item, Saved, damaged, held
from pymc_dp.queries.table import Table
from pymc_dp.releases.from_records import warn_that_nothing_remembers
from pymc_dp.releases.release import Release

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm
    import xarray as xr
    from pytensor.tensor import TensorVariable

MODEL_WORDS = {"fresh", "smallest", "method", "bounds", "public"}
"""What may be said of a question about a model besides its epsilon."""
LONGEST = -(2**63)
"""No noisy answer takes more room in a file."""


def alone[F: Callable[..., Any]](method: F) -> F:
    """One call of a session after the other: other threads wait, and a call from within a call is refused.

    What is asked from within, by a signal handler or by an argument that runs code when it is looked at, would come between the plan of
    the outer call and its charge, so that the outer call would pay by a plan that no longer holds.
    """

    @wraps(method)
    def turn(self: "QuerySession", *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            if self._busy:
                raise Refusal(
                    "This session is in the middle of the call that this one was made from. Call it again when that call has returned."
                )
            try:
                self._busy = True
                return method(self, *args, **kwargs)
            finally:
                self._busy = False

    return cast(F, turn)


class QuerySession:
    """Questions about one table, answered with intervals from what was answered before, and paid for only when they must be.

    A question is a count of records that meet a condition, a sum, or a sum of those with decimal coefficients. When you say how wide its
    interval may be, it is answered from earlier answers if they are good enough, for nothing; otherwise the least noise that is needed
    is paid for, and combined with what is known; or it is refused, because less is left. The session costs what the record that is
    touched most has paid: questions about different records do not add up.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, pyarrow.Table, DuckDB table, or the path of a Parquet file
        Where the records are, one a row: see ``pymc_dp.queries.table``. It is read only after a charge, but for how many there are where
        that is public.
    schema : Schema or dict
        The public columns and their levels; never read from the records.
    ledger : Ledger or a part of one, optional
        The budget of the records. Without one nothing remembers what was spent, and nothing is promised beyond this process: opened again,
        such a session believes its file.
    neighbours : {"replace", "add_remove"}
        As in ``release``. Under "replace" the number of records is public.
    unit : str
        What one row stands for, in words.
    history : str or Path, optional
        The file of the session. If it is there, the session goes on; otherwise it is made. Without one, answers are gone when the
        process ends; what they cost is not.
    epsilon : number, optional
        The most that this session may cost, in nats, besides what the ledger allows.
    complete : True or list of str
        Columns in which every record has one of the levels, all of them if True: a promise about the records, which nothing checks. Then
        "age < 65" follows from "age >= 65". Where it is not kept answers are off by the records that do not keep it, and protected all the
        same.

    Raises
    ------
    Refusal
        When something does not fit together, before any record is read.

    Examples
    --------
    >>> session = pmdp.QuerySession(frame, {"age": range(0, 100), "sex": ["f", "m"]}, ledger=ledger)   # doctest: +SKIP
    >>> session.ask("age >= 65", width=40)                                                            # doctest: +SKIP
    """

    _facts: Saved
    _state: State
    _items: tuple[Item, ...]

    def __init__(
        self,
        table: object,
        schema: Schema | dict[str, object],
        *,
        ledger: Ledger | Part | None = None,
        neighbours: str = "replace",
        unit: str = "row",
        history: str | os.PathLike[str] | None = None,
        epsilon: object = None,
        complete: bool | Sequence[str] = (),
    ) -> None:
        check_ledger(ledger)
        self._schema = schema if isinstance(schema, Schema) else Schema.of(schema)
        self._neighbours, self._unit = check_neighbours(neighbours), unit
        if not isinstance(unit, str) or not unit.strip():
            raise Refusal('unit must say what one row stands for. Write for example unit="row".')
        self._complete = frozenset(_complete(complete, self._schema))
        self._limit = None if epsilon is None else exact_epsilon(epsilon)
        self._ledger = ledger.ledger if isinstance(ledger, Part) else ledger
        self._part = ledger.name if isinstance(ledger, Part) else None
        for ours, theirs, name in ((neighbours, "neighbours", "neighbours"), (unit, "unit", "unit")):
            if self._ledger is not None and getattr(self._ledger, theirs) != ours:
                raise Refusal(f"{self._ledger.path.name} has another {name}. Write {name}={getattr(self._ledger, theirs)!r}.")
        self._table = Table.of(table, self._schema)
        self._lock, self._busy = RLock(), False
        try:
            self._path = None if history is None else Path(os.path.realpath(os.fsdecode(history)))
        except (TypeError, ValueError):
            raise Refusal("history must be the name of a file. Write for example history='survey.session'.") from None
        records = self._table.records if neighbours == "replace" else None
        names = tuple(name for name in self._schema.names if name in self._complete)
        new = Saved(os.urandom(16).hex(), self._schema, neighbours, unit, self._part or "", names, records)
        self._begin(new)
        if self._path is not None:
            if not self._path.exists():
                with suppress(FileExistsError):  # by another copy, in this moment
                    new.write(self._path, new=True)
                    return
            with held(self._path):  # while another copy asks, its answer is neither there nor lost
                self._load(new)

    # ---------- what one can ask

    @overload
    def ask(
        self, asked: list, width: object = ..., confidence: float = ..., *, epsilon: object = ..., method: str | None = ...
    ) -> list: ...

    @overload
    def ask(
        self,
        asked: str | Condition | Combination,
        width: object = ...,
        confidence: float = ...,
        *,
        epsilon: object = ...,
        method: str | None = ...,
    ) -> Answer: ...

    @alone
    def ask(
        self, asked: object, width: object = None, confidence: float = 0.95, *, epsilon: object = None, method: str | None = None
    ) -> Answer | list[Answer]:
        """The answer to a question; of a list of them the answers, all or none, for exactly what ``price`` says of the list.

        Parameters
        ----------
        asked : str, Condition or Combination, or a list of them
            Such as "age >= 65 & sex == 'f'".
        width : number, optional
            How long its interval may be, upper less lower end, in units of the answer. What is paid for makes the fixed-question
            interval no longer than that, whatever the noise will be; the posterior's is mostly shorter, and longer where answers
            disagree: what is planned for is 5 % less, so that seldom matters.
        confidence : float
            Of the interval. Ends with less than 10 draws of the posterior beyond are not told from it: beyond 0.995 of 4,000 draws.
        epsilon : number, optional
            The most that its own noise may cost; what it costs, if no width is given. With neither, the question is answered from
            history.
        method : {"posterior", "blue"}, optional
            Of the interval: given every answer, or right for questions fixed beforehand. If left out, the posterior while it is drawn in
            about a second, and "blue" beyond.

        Returns
        -------
        Answer

        Raises
        ------
        Refusal
            When it cannot be read, or cannot be answered so with what is left: the message says which width or epsilon would do. A
            refused question costs nothing and changes nothing.
        PrivateComputationError
            When something fails after the charge; always the same words. The cost stands.
        """
        several, questions, terms = isinstance(asked, list | tuple), self._understood(asked), Terms.of(width, confidence, epsilon, method)
        plans, state = self._plans(questions, terms)
        self._check_left(plans, terms)
        if self.cost <= WEAK_EPSILON:  # said once, when the session as a whole comes to promise little
            warn_if_weak(Cost(state.asked.cost + self._models))
        before, widths = len(self._state.paid), list[float | None]([None] * len(plans))
        if paying := [plan for plan in plans if plan.how == PAID]:
            widths = [None if plan.how == PUBLIC else width_of(state, plan.meant, terms.level) for plan in plans]
            with self._unchanged():
                self._pay(paying, state)
        paid = iter(self._state.paid[before:])
        more = [next(paid) if plan.how == PAID else Fraction(0) for plan in plans]
        said = [self._said(plan, terms, width, one) for plan, width, one in zip(plans, widths, more, strict=True)]
        return said if several else said[0]

    @alone
    def price(
        self, asked: object, width: object = None, confidence: float = 0.95, *, epsilon: object = None, method: str | None = None
    ) -> Price:
        """What one question, or a list of them, would cost; nothing is spent, and ``ask`` costs exactly that.

        Parameters
        ----------
        asked : a question or a list of questions
        width, confidence, epsilon, method
            As in ``ask``, of each.

        Raises
        ------
        Refusal
            As ``ask``, but not where too little is left.
        """
        plans, state = self._plans(self._understood(asked), Terms.of(width, confidence, epsilon, method))
        own, texts = tuple(plan.own for plan in plans), tuple(plan.question.text for plan in plans)
        more = state.asked.cost - self._state.asked.cost
        return Price(more, texts, own, self._is_left([plan for plan in plans if plan.own]))

    @alone
    def probability(self, asked: object, above: float, *, method: str | None = None) -> float:
        """The probability that the answer is greater than a number, from history; it costs nothing.

        Parameters
        ----------
        asked : a question
        above : float
            In units of the answer.
        method : {"posterior", "blue"}, optional
            As in ``ask``. With "blue" it is the confidence of the interval from there on.

        Raises
        ------
        Refusal
            When it does not follow from what was answered.
        """
        number, terms, question = _number(above), Terms.of(None, 0.95, None, method), understood(asked, self._schema)
        plan, _ = plan_of(self._state, question, terms, self._state)
        if plan.how == PUBLIC:
            return float(self._public(plan) > number)
        completion = completion_of(self._state, plan.meant, terms)
        if completion is not None:
            return probability_given_all(completion, plan.meant, number)
        found = estimate(self._state.known, plan.meant)
        assert found is not None
        return probability_above(found, number)

    @alone
    def posterior(self, questions: Sequence[object] | None = None) -> "xr.DataTree":
        """Draws of answers given every noisy answer, to be looked at with ArviZ; they cost nothing.

        Parameters
        ----------
        questions : list of questions, optional
            Those that were answered with noise of their own, if left out.

        Returns
        -------
        xarray.DataTree
            With a group ``posterior``: dims chain and draw, a variable for every question, named by its text.

        Raises
        ------
        Refusal
            When nothing was answered, or too much for that to be drawn.
        """
        texts = None if questions is None else self._understood(questions)
        if not len(self._state.known):
            raise Refusal("Nothing was answered yet, so there is no posterior. Ask a question with width= or epsilon=.")
        asked = self._understood([one.question.text for one in self._state.known.answered]) if texts is None else texts
        every = {one.text: one for one in asked}
        found = answers(drawn_from(self._state.known), [meant(one, self._complete) for one in every.values()])
        found.attrs["cost"] = str(self.cost)
        return found

    @alone
    def add(self, release: Release, columns: Mapping[str, str | Sequence[str]] | None = None) -> int:
        """Take the counts of a release of the same records into what is known; nothing is paid, because the release was.

        Parameters
        ----------
        release : Release
            With Laplace noise, of columns that the session was promised to be ``complete``: a release moves values that are no level to
            one, and a session counts them in the extra cell.
        columns : mapping, optional
            For every observed variable the columns of its cells: of private or public indices and covariates in the order in which
            ``inspect`` lists them, then its own. If left out, variables without such are columns of the same name.

        Returns
        -------
        int
            How many counts were taken.

        Raises
        ------
        Refusal
            When the release is not of these records as far as can be known, or holds something else than counts.
        """
        if not isinstance(release, Release):
            raise Refusal("A session takes releases. Write session.add(pymc_dp.release(model, ...)).")
        if release.neighbours != self._neighbours or release.unit != self._unit:
            raise Refusal("The release protects something else. Make it with the neighbours and unit of the session.")
        if self._ledger is not None and self._ledger.paid_for(release.ledger_head) != (self._part or ""):
            raise Refusal(f"{self._ledger.path.name} did not pay for this release, so it may be of other records. Release with ledger=.")
        counts = counted(release, self._schema, columns, self._neighbours)
        open_ended = [name for name in self._schema.names if any(name in one.question.columns for one in counts)]
        if open_ended := [name for name in open_ended if name not in self._complete]:
            told = ", ".join(open_ended)
            raise Refusal(
                "A release moves values that are no level to one, and a session counts them apart. If"
                f" {told} has none, promise it: open the session with complete={open_ended!r}."
            )
        items = tuple(Item(one, None, release.ledger_head) for one in counts)
        if any(known.release == release.ledger_head and _twice(known.answered, one) for known in self._items for one in counts):
            raise Refusal("This release was added before, and its noise would be counted twice. Leave it out.")
        state = self._state
        for item in items:
            state = state.told(item.answered)
        with self._unchanged():
            self._state, self._items = state, (*self._items, *items)
            self._save()
        return len(items)

    @alone
    def observe(
        self, name: str, asked: object, *, probability: object = None, rate: object = None, value: object = None
    ) -> "TensorVariable":
        """An answer of this session as observed data of the PyMC model in context, its noise part of the likelihood.

        Of several answers to a question the one with the least noise is taken, as it was drawn: not combined with others.

        Parameters
        ----------
        name : str
            Of the observed variable.
        asked : a question that was paid for or came with a release
        probability : tensor, optional
            That a record meets the condition: the count is Binomial. Under "replace" only, where the number of records is public.
        rate : tensor, optional
            Of the number of records that meet the condition: the count is Poisson.
        value : tensor, optional
            What the exact answer is, in its own units.

        Raises
        ------
        Refusal
            When the question was not answered with noise of its own, or not exactly one of the three is given.
        """
        text = understood(asked, self._schema).text
        found = [item.answered for item in self._items if item.answered.question.text == text]
        records = self._state.asked.records
        if not found:
            raise Refusal(f"{text[:80]} has no noisy answer of its own. Ask it with epsilon=, or observe what it follows from.")
        return observed(name, min(found, key=lambda one: one.scale), records, probability=probability, rate=rate, value=value)

    def ask_model(
        self, questions: Mapping[str, Callable], *, epsilon: object, model: "pm.Model | None" = None, **words: Any
    ) -> "xr.DataTree":
        """Questions about the unknowns of a model, from draws of its posterior: ``pymc_dp.ask`` at the expense of the same ledger.

        Every draw is paid for whole and adds up with everything else that the session costs: a draw depends on all records. With
        ``method="mcmc"`` it is only as private as its chains have converged, whatever epsilon says; everything else that a session
        answers is certain.

        Parameters
        ----------
        questions, epsilon, model
            As in ``pymc_dp.ask``.
        **words
            Its ``fresh``, ``smallest``, ``method``, ``bounds`` and ``public``.

        Raises
        ------
        Refusal
            As ``pymc_dp.ask``, where the session may not cost so much, and of other words: unit, neighbours and ledger are the
            session's, and it has no delta.
        """
        if wrong := sorted(words.keys() - MODEL_WORDS):
            raise Refusal(
                f"A session takes no {wrong[0]}: it is of pure epsilon, with a unit, neighbours and a ledger of its own. Leave it out and"
                " write for example session.ask_model(questions, epsilon=1.0). With a delta, call pymc_dp.ask with the same ledger."
            )
        paying = self._ledger if self._part is None or self._ledger is None else self._ledger.part(self._part)
        more = exact_epsilon(epsilon)
        self._set_aside(more)
        seen: list[str] = []

        def noted(name: str, question: Callable) -> Callable:
            def answer(draw: Any) -> Any:
                seen.append(name)
                return question(draw)

            return answer

        if isinstance(questions, Mapping):
            questions = {name: noted(name, one) if callable(one) else one for name, one in questions.items()}
        try:
            return ask(questions, epsilon=more, model=model, unit=self._unit, neighbours=self._neighbours, ledger=paying, **words)
        except (Refusal, UnaccountedWarning) as reason:
            if not seen and not hasattr(reason, "tree"):  # nothing was drawn that anybody saw
                self._put_back(more)
            raise

    @property
    def remaining(self) -> Cost:
        """What may still be spent; each number by itself, as ``Ledger.remaining`` says them."""
        left = None if self._limit is None else self._limit - self.cost
        if self._ledger is None:
            return Cost(Fraction(0) if left is None else left)
        allowed = self._ledger.remaining(part=self._part)
        return allowed if left is None else replace(allowed, epsilon=min(allowed.epsilon, left))

    @property
    def cost(self) -> Fraction:
        """What the session has cost, in nats: what the record has paid that paid most, and what questions about models cost."""
        return self._state.asked.cost + self._models

    @property
    def history(self) -> "pd.DataFrame":
        """Everything that was asked and paid for or taken from a release, one row each.

        Columns: question, from ("paid", "release", or "lost" where a crash came between charge and answer), answer (noisy, in its own
        units), sd (of its noise), own (epsilon of its noise by itself), paid (what the session cost more with it).
        """
        import pandas as pd

        with self._lock:
            answered = {item.number for item in self._items}
            rows = [
                _row(one, PAID if number in answered else "lost", paid, self._neighbours)
                for number, (one, paid) in enumerate(zip(self._state.asked.answered, self._state.paid, strict=True))
            ]
            rows += [_row(item.answered, "release", Fraction(0), self._neighbours) for item in self._items if item.number is None]
        return pd.DataFrame(rows, columns=["question", "from", "answer", "sd", "own", "paid"])

    def __repr__(self) -> str:
        """The budget and the history."""
        table = self.history
        return f"{self._budget()}\n{table.to_string() if len(table) else '  nothing was asked yet'}"

    def _repr_html_(self) -> str:
        table = self.history
        return f"<div><b>{escape(self._budget())}</b>{table.to_html(float_format='{:.6g}'.format) if len(table) else ''}</div>"

    def __reduce__(self):
        """It holds the table."""
        raise TypeError("A session holds records, and is not copied or pickled. Open it again with its history file.")

    # ---------- inside: what is decided

    def _understood(self, asked: object) -> list[Question]:
        """One question or a list of them, read before anything is decided: looking at what was given may run somebody's code."""
        several: Iterable[object] = list(asked) if isinstance(asked, list | tuple) else [asked]
        return [understood(one, self._schema) for one in several]

    def _plans(self, questions: Sequence[Question], terms: Terms) -> tuple[list[Plan], State]:
        """How questions will be answered one after the other, from them and what is known now: not from what the first will say.

        And what will be known then. Only of the last is that kept: it is as large as a table of all pairs of records that are told apart.
        """
        plans, state = list[Plan](), self._state
        for question in questions:
            try:
                plan, state = plan_of(state, question, terms, self._state)
            except ArithmeticError:
                raise Refusal(
                    f"{shown(question)} cannot be reckoned with such numbers. Write a width, epsilon or confidence that is less extreme."
                ) from None
            plans.append(plan)
        if terms.method == "posterior" and not fast_enough(state.known):
            raise Refusal('With this question the posterior takes too long. Write method="blue": intervals for questions fixed beforehand.')
        return plans, state

    def _draws(self, plan: Plan, number: int) -> tuple[Step, list[Draw]]:
        sensitivity = sensitivity_of(plan.question, self._neighbours)
        draws = [Draw(plan.question.text, Laplace.name, sensitivity, sensitivity**2, plan.scale, 1)]
        return Step(self._name, number, Cost(plan.own), plan.total), draws

    def _is_left(self, plans: Sequence[Plan]) -> bool:
        """Whether so much may be spent, one after the other."""
        if plans and self._limit is not None and plans[-1].total.epsilon + self._models > self._limit:
            return False
        try:
            if plans and self._ledger is not None:
                steps = [self._draws(plan, number)[0] for number, plan in enumerate(plans, len(self._state.asked))]
                self._ledger.remaining(steps, part=self._part)
        except Refusal:
            return False
        return True

    def _check_left(self, plans: Sequence[Plan], terms: Terms) -> None:
        """Refuse what is not left, in words that say what would fit."""
        paying = [plan for plan in plans if plan.own]
        if not paying or self._is_left(paying):
            return
        if self._ledger is not None:  # a reason other than what is left is said in its own words
            self._ledger.remaining([Step(self._name, len(self._state.asked), Cost(Fraction(0)), self._state.total)], part=self._part)
        more = paying[-1].total.epsilon - self._state.asked.cost
        where = "this session's epsilon" if self._ledger is None else self._ledger.path.name
        costs = f"{float(more):.4g} more, and {float(self.remaining.epsilon):.4g} is left in {where}."
        if len(plans) > 1:
            raise Refusal(
                f"These {len(plans)} questions cost epsilon {costs} Ask fewer, or for wider intervals; price() says what they cost."
            )
        (plan,) = plans
        low, high = Fraction(0), plan.own
        for _ in range(24):
            middle = short((low + high) / 2)
            low, high = (
                (middle, high) if low < middle and self._is_left([plan_to_pay(self._state, plan.question, middle)[0]]) else (low, middle)
            )
        told = f"{shown(plan.question)} costs epsilon {costs}"
        if low:
            would = (
                f"width={wider(width_of(plan_to_pay(self._state, plan.question, low)[1], plan.meant, terms.level)):.4g}"
                if terms.length
                else f"epsilon={float(low):.4g}"
            )
            raise Refusal(f"{told} Write {would}, which fits, or ask the data owner for a larger grant.")
        if estimate(self._state.known, plan.meant) is not None:
            without = width_of(self._state, plan.meant, terms.level)
            raise Refusal(f"{told} Without noise of its own it is {without:.4g} wide: leave width and epsilon out.")
        raise Refusal(f"{told} Ask something that follows from what was answered, or ask the data owner for a larger grant.")

    def _said(self, plan: Plan, terms: Terms, width: float | None, paid: Fraction) -> Answer:
        """From what is known by now. Of what was paid for the width of the fixed-question interval is known, so that it can be said."""
        question, asks, level = plan.question, plan.meant, terms.level
        if plan.how == PUBLIC:
            value = self._public(plan)
            return Answer(question.text, value, (value, value), level, EXACT, PUBLIC)
        found = estimate(self._state.known, asks)
        try:
            completion = completion_of(self._state, asks, terms)
            said = None if completion is None else interval_given_all(completion, asks, level)
        except Exception:
            if width is None:
                raise
            said = None
        kind = BLUE if said is None else POSTERIOR if found is not None else UNDETERMINED
        if said is None:
            assert found is not None
            half = found.law.distance(level) if width is None else width / 2
            said = Interval(found.value, found.value - half, found.value + half, level)
        return Answer(question.text, said.value, (said.lower, said.upper), level, kind, plan.how, paid, plan.own)

    def _public(self, plan: Plan) -> float:
        """The answer to a question that every record counts alike in."""
        return int(plan.meant.weights.ravel()[0]) * (self._state.asked.records or 0) / plan.question.divisor

    # ---------- inside: what is paid

    @alone
    def _set_aside(self, more: Fraction) -> None:
        """Count a question about a model before it is asked."""
        with self._unchanged():
            if self._limit is not None and self.cost + more > self._limit:
                left = float(self._limit - self.cost)
                raise Refusal(f"This costs epsilon {float(more):.4g}, and {left:.4g} is left in this session's epsilon. Ask for less.")
            self._models += more
            try:
                self._save()
            except Refusal:
                self._models -= more
                raise

    @alone
    def _put_back(self, more: Fraction) -> None:
        """Of a question about a model that was refused before anything was drawn."""
        self._models -= more
        with suppress(Refusal), self._unchanged():
            self._save()

    def _pay(self, plans: Sequence[Plan], planned: State) -> None:
        """Charge, read, draw, save: all of them at once. From its charge on a cost stands, whatever fails; the answer is lost then."""
        for plan in plans:
            _check_written(plan.question, self._schema)
        first = len(self._state.asked)
        if self._path is not None:
            new = (Item(Answered(plan.question, plan.own, plan.scale, LONGEST), first + k) for k, plan in enumerate(plans))
            replace(self._facts, items=(*self._items, *new), models=self._models).check_room(self._path)
        if self._ledger is None:
            warn_that_nothing_remembers()
        noisy = self._drawn(plans, planned)
        self._state = planned.answered(noisy)
        paid = enumerate(self._state.asked.answered[first:], first)
        self._items = (*self._items, *(Item(one, number) for number, one in paid))
        self._save()

    @boundary
    def _drawn(self, plans: Sequence[Plan], planned: State) -> list[int]:
        """The noisy answers, in lattice units."""
        before, receipts, charged = self._state, list[Receipt](), list[Plan]()
        try:
            for plan in plans:
                step, draws = self._draws(plan, len(before.asked) + len(charged))
                charge = None
                if self._ledger is not None:
                    charge = self._ledger.charge(step, draws, neighbours=self._neighbours, unit=self._unit, part=self._part)
                charged.append(plan)
                receipts.append(Receipt(draws, step.own) if self._ledger is None or charge is None else self._ledger.redeem(charge))
        finally:
            self._state = planned.lost(before) if len(charged) == len(plans) else _charged(before, charged)
        exact = np.array(self._table.totals([plan.question for plan in plans]), dtype=np.int64)
        return [int(Laplace().draw(exact[k : k + 1], plan.scale, receipts[k])[0]) for k, plan in enumerate(plans)]

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Nobody else writes the file meanwhile, and it is as this session left it: what another copy wrote is never written over."""
        if self._path is None:
            yield
            return
        with held(self._path):
            if self._path.read_text(encoding="utf-8", errors="replace") != self._written:
                raise Refusal(
                    f"Another copy of this session has asked since, or taken a release, and {self._path.name} holds what this one does not"
                    " know. Load it again: QuerySession(..., history=the same file)."
                )
            yield

    def _save(self) -> None:
        if self._path is not None:
            facts = replace(self._facts, items=self._items, models=self._models)
            facts.write(self._path)
            self._written = facts.text

    def _begin(self, facts: Saved) -> None:
        empty = History.empty(self._neighbours, facts.records)
        self._facts, self._state = facts, State(self._complete, empty, empty)
        self._items, self._models, self._written = facts.items, facts.models, facts.text

    @property
    def _name(self) -> str:
        return self._facts.name

    def _load(self, new: Saved) -> None:
        """Go on with the session in the file, after comparing it with what is said now and with the ledger."""
        assert self._path is not None
        saved, name = Saved.read(self._path), self._path.name
        for what in ("schema", "neighbours", "unit", "part", "complete", "records"):
            if getattr(saved, what) != getattr(new, what):
                raise Refusal(f"{name} is a session with another {_WORDS[what]}. Open it with the same, or choose another name.")
        self._begin(saved)
        self._written = self._path.read_text(encoding="utf-8")
        answered = {item.number: item.answered for item in saved.items if item.number is not None}
        if self._ledger is None:
            charged = [answered[number] for number in sorted(answered)]
        else:
            charged = [self._charged(charge.draws[0], charge.cost.epsilon) for charge in self._ledger.session(saved.name)]
        for number, one in answered.items():
            if number >= len(charged) or not _same(one, charged[number]):
                owner = name if self._ledger is None else self._ledger.path.name
                raise Refusal(f"{name} holds an answer that {owner} does not remember the charge of. Put the newest copies of both back.")
        try:
            for number, one in enumerate(charged):
                self._state = self._state.after(answered.get(number, one))
            if len(answered) < len(charged) or len(answered) < len(saved.items):
                self._state = replace(self._state, known=History.empty(self._neighbours, saved.records))
                for item in saved.items:
                    self._state = self._state.told(item.answered)
        except (ArithmeticError, ValueError):
            raise damaged(self._path) from None

    def _charged(self, draw: Draw, own: Fraction) -> Answered:
        """A draw as the ledger remembers it, its answer unknown."""
        question = understood(draw.variable, self._schema)
        if sensitivity_of(question, self._neighbours) != draw.difference:
            raise Refusal("The schema is not the one that was asked about before. Give the session the schema it began with.")
        return Answered(question, own, draw.scale, 0)

    def _budget(self) -> str:
        """What was spent and is left, in words."""
        asked, lost = len(self._state.asked), len(self._state.asked) - sum(item.number is not None for item in self._items)
        told = f"QuerySession: {asked} question{'s' * (asked != 1)} paid for" + (f", {lost} of them lost" if lost else "")
        alone = sum((one.epsilon for one in self._state.asked.answered), self._models)
        told += f", epsilon {float(self.cost):.6g} (one by one: {float(alone):.6g})"
        left = "" if self._ledger is None and self._limit is None else f", left {float(self.remaining.epsilon):.6g}"
        paying = ", unaccounted" if self._ledger is None else f" of {self._ledger.path.name}"
        return f"{told}{left}{paying}; protects {protected(self._unit)} ({self._neighbours})"


_WORDS = {
    "schema": "schema", "neighbours": "kind of neighbours", "unit": "unit", "part": "part of the ledger", "complete": "promise (complete=)",
    "records": "number of records",
}  # fmt: skip


def _complete(complete: object, schema: Schema) -> tuple[str, ...]:
    if complete is True:
        return schema.names
    if isinstance(complete, Sequence) and not isinstance(complete, str):
        return tuple(schema.column(name).name for name in complete)
    raise Refusal("complete must be True or a list of columns in which every record has a level. Write for example complete=['age'].")


def _charged(before: State, plans: Sequence[Plan]) -> State:
    """These were charged and not answered."""
    state = before
    for plan in plans:
        state = state.after(Answered(plan.question, plan.own, plan.scale, 0)).lost(before)
    return state


def _same(one: Answered, other: Answered) -> bool:
    return (one.question.text, one.epsilon, one.scale) == (other.question.text, other.epsilon, other.scale)


def _twice(one: Answered, other: Answered) -> bool:
    return _same(one, other) and one.noisy == other.noisy


def _check_written(question: Question, schema: Schema) -> None:
    """A question is kept as text, in the ledger and in the file of the session: it has to be read again from that."""
    try:
        again = understood(question.text, schema)
        same = again.divisor == question.divisor and again.columns == question.columns and np.array_equal(again.weights, question.weights)
    except Refusal:
        same = False
    if not same:
        raise Refusal(f"{shown(question)} is too long to be written down. Ask in parts, or declare coarser levels.")


def _row(one: Answered, origin: str, paid: Fraction, neighbours: str) -> tuple:
    unit, noise = one.question.divisor, Laplace().noise(one.scale, 1.0)
    told = np.nan if origin == "lost" else one.noisy / unit
    return one.question.text, origin, told, noise.standard_deviation / unit, float(one.epsilon), float(paid)


def _number(above: object) -> float:
    if isfinite(given := number_of(above)):
        return given
    raise Refusal('above must be a finite number, in units of the answer. Write for example session.probability("age >= 65", 100).')
