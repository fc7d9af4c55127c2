"""Questions about one table, one after the other: answered from earlier answers if those are precise enough, and paid for if not (XX12).

Whatever is decided is decided from the question, the schema and earlier noisy answers. Then the charge is written to the ledger, then
records are read, then noise is drawn, then the file of the session is written, and then the answer is given. ``account`` keeps what was
asked and paid, ``inference`` says what follows from it; only the end of this module sees records.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np

from pymc_dp.plans.person import Person
from pymc_dp.privacy.accounting import Cost, check_neighbours, exact_epsilon
from pymc_dp.privacy.calls import explained, not_opened
from pymc_dp.privacy.guard import WEAK_EPSILON, boundary, warn_if_weak
from pymc_dp.privacy.layout import aligned, in_html, page, wrapped
from pymc_dp.privacy.ledger import Ledger, Part, check_ledger
from pymc_dp.privacy.mechanisms import Laplace
from pymc_dp.privacy.receipts import Receipt
from pymc_dp.queries.account import Account, charged_and_lost, check_protects, history_table, one_call_at_a_time, path_of
from pymc_dp.queries.answer import PAID, PUBLIC, Answer, Price
from pymc_dp.queries.as_likelihood import observed_answer
from pymc_dp.queries.expressions import Combination, Condition
from pymc_dp.queries.from_release import Orders
from pymc_dp.queries.inference import answer_of, posterior_of, probability_of
from pymc_dp.queries.language import Question, questions_of
from pymc_dp.queries.language import question as understood
from pymc_dp.queries.model_questions import ask_model
from pymc_dp.queries.persons import relation_and_person
from pymc_dp.queries.plan import Plan, State, Terms, number_above, plans_of, width_of
from pymc_dp.queries.restore import check_written
from pymc_dp.queries.schema import Schema, complete_columns
from pymc_dp.queries.session_file import Item, Saved
from pymc_dp.queries.table import Table
from pymc_dp.releases.prepared import warn_that_nothing_remembers
from pymc_dp.releases.release import Release

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm
    import xarray as xr
    from pytensor.tensor import TensorVariable

type Asked = str | Condition | Combination
"""One question, as a user writes it."""


class QuerySession:
    """Questions about one table, answered with intervals: from earlier answers where these suffice, otherwise paid for.

    A question is a count of records that meet a condition, a sum, or a sum of those with decimal coefficients. You say how wide its
    interval may be. If earlier answers are precise enough, the answer costs nothing. Otherwise a new one is paid for, with as much noise as
    the width allows, and combined with the earlier ones; if too little of the budget is left, it is refused. The session costs what was
    paid for the record that most was paid for: the costs of questions about different records do not add up.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame, pyarrow.Table, DuckDB table, or the path of a Parquet file
        The records, one a row: see ``pymc_dp.queries.table``. Only their number is read before a charge, where it is public.
    schema : Schema or dict
        The public columns and their levels; never read from the records.
    ledger : Ledger or a part of one, optional
        The budget of the records. Without one nothing remembers what was spent, and nothing is promised beyond this process: such a
        session relies on its file alone when it is opened again.
    neighbours : {"replace", "add_remove"}
        As in ``release``. Under "replace" the number of records is public.
    unit : str or Person
        What one row stands for, in words; or ``Person("patient_id", at_most=5)``, whose key is a column of the table: see ``release``.
    history : str or Path, optional
        The file of the session. If it exists, the session goes on; otherwise it is made. Without one, answers are lost when the
        process ends, and what they cost remains spent.
    epsilon : number, optional
        The most that this session may cost, in nats, besides what the ledger allows.
    complete : True or list of str
        Columns in which every record has one of the levels, or True for all columns. You promise this about the records, and nothing
        checks it. Then "age < 65" follows from "age >= 65". Answers are off by the records that break the promise, which are protected
        all the same.

    Raises
    ------
    Refusal
        When something does not fit together, before any record is read.

    Examples
    --------
    >>> import pandas as pd
    >>> people, schema = pd.DataFrame({"vote": votes}), {"vote": [0, 1]}
    >>> ledger = pmdp.Ledger("survey.ledger", epsilon=1.0, create=True)
    >>> session = pmdp.QuerySession(people, schema, ledger=ledger, history="survey.session")
    >>> session.ask("vote == 1", width=40).how
    'paid'
    >>> session.ask("vote == 1", width=40).epsilon  # it is remembered
    Fraction(0, 1)
    """

    @explained
    def __init__(
        self,
        table: object,
        schema: Schema | dict[str, object],
        *,
        ledger: Ledger | Part | None = None,
        neighbours: str = "replace",
        unit: str | Person = "row",
        history: str | os.PathLike[str] | None = None,
        epsilon: object = None,
        complete: bool | Sequence[str] = (),
    ) -> None:
        check_ledger(ledger)
        self._schema = schema if isinstance(schema, Schema) else Schema.of(schema)
        check_neighbours(neighbours)
        unit, person = relation_and_person(unit)
        promised = complete_columns(complete, self._schema)
        limit = None if epsilon is None else exact_epsilon(epsilon)
        check_protects(ledger, neighbours, unit)
        self._table = Table.of(table, self._schema, person)
        path = path_of(history)
        records = self._table.records if neighbours == "replace" and person is None else None
        part = ledger.name if isinstance(ledger, Part) else ""
        new = Saved(os.urandom(16).hex(), self._schema, neighbours, unit, part, promised, records, person=self._table.person)
        self._account = Account(ledger, limit, path, new)

    @overload
    def ask(
        self, asked: list, width: object = ..., confidence: float = ..., *, epsilon: object = ..., method: str | None = ...
    ) -> list: ...

    @overload
    def ask(
        self, asked: Asked, width: object = ..., confidence: float = ..., *, epsilon: object = ..., method: str | None = ...
    ) -> Answer: ...

    @one_call_at_a_time
    def ask(
        self, asked: object, width: object = None, confidence: float = 0.95, *, epsilon: object = None, method: str | None = None
    ) -> Answer | list[Answer]:
        """Answer a question, or all questions of a list or none of them, for exactly what ``price`` says.

        Parameters
        ----------
        asked : str, Condition or Combination, or a list of them
            Such as "age >= 65 & sex == 'f'".
        width : number, optional
            How long its interval may be, upper less lower end, in units of the answer. What is paid for makes the fixed-question
            interval no longer than that, whatever the noise will be; the posterior's is mostly shorter, and longer where answers
            disagree: what is planned for is 5 % less, so that seldom matters.
        confidence : float
            Confidence of the interval. The posterior does not tell ends with less than 10 draws beyond: above 0.995 of 4,000 draws.
        epsilon : number, optional
            The most that its own noise may cost; what it costs, if no width is given. With neither, the question is answered from
            history.
        method : {"posterior", "blue"}, optional
            "posterior": an interval given every answer. "blue": one that is right for questions fixed beforehand. If left out, the
            posterior while it is drawn in about a second, and "blue" beyond.

        Raises
        ------
        Refusal
            When it cannot be read, or cannot be answered so with what is left: the message says which width or epsilon would do. A
            refused question costs nothing and changes nothing.
        PrivateComputationError
            When something fails after the charge; always the same words. The cost stands.
        """
        several, questions = isinstance(asked, list | tuple), questions_of(asked, self._schema)
        answers = _answers(self._account, self._table, questions, Terms.of(width, confidence, epsilon, method))
        return answers if several else answers[0]

    @one_call_at_a_time
    def price(
        self, asked: object, width: object = None, confidence: float = 0.95, *, epsilon: object = None, method: str | None = None
    ) -> Price:
        """What one question, or a list of them, would cost; nothing is spent, and ``ask`` costs exactly that.

        Parameters
        ----------
        asked : a question or a list of questions
        width, confidence, epsilon, method
            As in ``ask``, for each question.

        Raises
        ------
        Refusal
            As ``ask``, but not where too little is left.
        """
        questions, terms = questions_of(asked, self._schema), Terms.of(width, confidence, epsilon, method)
        plans, planned = plans_of(questions, terms, self._account.state)
        return self._account.price(plans, planned)

    @one_call_at_a_time
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
        number, terms, question = number_above(above), Terms.of(None, 0.95, None, method), understood(asked, self._schema)
        return probability_of(question, self._account.state, terms, number)

    @one_call_at_a_time
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
        asked = None if questions is None else questions_of(questions, self._schema)
        tree = posterior_of(asked, self._account.state, self._schema)
        tree.attrs["cost"] = str(self.cost)
        return tree

    @one_call_at_a_time
    def add(self, release: Release, columns: Mapping[str, str | Sequence[str]] | None = None, *, levels: Orders | None = None) -> int:
        """Take the counts of a release of the same records into what is known; nothing is paid, because the release was.

        Parameters
        ----------
        release : Release
            With Laplace noise, of columns that the session was promised to be ``complete``: a release moves values that are no level of
            its own to one, and a session counts them in the extra cell. It must tell all levels of the schema, for the same reason.
        columns : mapping, optional
            For every observed variable the columns of its cells: of private or public indices and covariates in the order in which
            ``inspect`` lists them, then its own. If left out, variables without such are columns of the same name.
        levels : mapping, optional
            By column which levels the model numbers 0, 1, 2, ...: ``{"sex": ["m", "f"]}``; needed of texts that are not its labels.

        Returns
        -------
        int
            How many counts were taken.

        Raises
        ------
        Refusal
            When the release is not of these records as far as can be known, or holds something else than counts.
        """
        return self._account.add(release, columns, levels)

    @one_call_at_a_time
    def observe(
        self, name: str, asked: object, *, probability: object = None, rate: object = None, value: object = None
    ) -> "TensorVariable":
        """An answer of this session as observed data of the PyMC model in context, its noise part of the likelihood.

        Where a question has several answers, the one with the least noise is taken as it was drawn, not combined with others.

        Parameters
        ----------
        name : str
            Name of the observed variable.
        asked : a question that was paid for or came with a release
        probability : tensor, optional
            Probability that a record meets the condition: the count is Binomial. Under "replace" only, where the number of records is
            public.
        rate : tensor, optional
            Expected number of records that meet the condition: the count is Poisson.
        value : tensor, optional
            The exact answer itself, in its own units.

        Raises
        ------
        Refusal
            When the question was not answered with noise of its own, or not exactly one of the three is given.
        """
        text = understood(asked, self._schema).text
        answer, records = self._account.least_noisy(text), self._account.state.asked.records
        return observed_answer(name, answer, records, probability=probability, rate=rate, value=value)

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
            As ``pymc_dp.ask``; where the session may not cost so much; and for other words: unit, neighbours and ledger are the
            session's, and it has no delta.
        """
        return ask_model(self._account, questions, epsilon, model, words)

    @property
    def remaining(self) -> Cost:
        """What may still be spent; each number by itself, as ``Ledger.remaining`` says them."""
        return self._account.remaining

    @property
    def cost(self) -> Fraction:
        """What the session has cost, in nats: what the record has paid that paid most, and what questions about models cost."""
        return self._account.cost

    @property
    def history(self) -> "pd.DataFrame":
        """Everything that was asked and paid for or taken from a release, one row each.

        Columns: question, from ("paid", "release", or "lost" where a crash came between charge and answer), answer (noisy, in its own
        units), sd (of its noise), own (epsilon of its noise by itself), paid (what the session cost more with it).
        """
        with self._account.lock:
            return self._account.table()

    __enter__ = __exit__ = not_opened("Write session = pymc_dp.QuerySession(...), without with; nothing is open between two questions.")

    def __repr__(self) -> str:
        table = self.history
        return f"{wrapped(self._account.words())}\n{aligned(*history_table(table)) if len(table) else '  nothing was asked yet'}"

    def _repr_html_(self) -> str:
        table = self.history
        return page(f"<p><b>{escape(self._account.words())}</b></p>", in_html(*history_table(table)) if len(table) else "")

    def __reduce__(self) -> NoReturn:
        """A copy or a pickle would carry the table."""
        raise TypeError("A session holds records, and is not copied or pickled. Open it again with its history file.")


# ---------- what is paid and read


def _answers(account: Account, table: Table, questions: Sequence[Question], terms: Terms) -> list[Answer]:
    """Plan, refuse or pay, and say: see ``QuerySession.ask``."""
    plans, state = plans_of(questions, terms, account.state)
    account.check_left(plans, terms)
    if account.cost <= WEAK_EPSILON:  # said once, when the session as a whole comes to promise little
        warn_if_weak(Cost(state.asked.cost + account.models))
    before, widths = len(account.state.paid), list[float | None]([None] * len(plans))
    if paying := [plan for plan in plans if plan.how == PAID]:
        widths = [None if plan.how == PUBLIC else width_of(state, plan.meant, terms.level) for plan in plans]
        with account.unchanged():
            _pay(account, table, paying, state)
    paid = iter(account.state.paid[before:])
    more = [next(paid) if plan.how == PAID else Fraction(0) for plan in plans]
    return [answer_of(plan, account.state, terms, width, cost) for plan, width, cost in zip(plans, widths, more, strict=True)]


def _pay(account: Account, table: Table, plans: Sequence[Plan], planned: State) -> None:
    """Charge, read, draw, save: all plans at once. From its charge on a cost stands, whatever fails; the answer is lost then."""
    for plan in plans:
        check_written(plan.question, account.saved.schema)
    account.check_room(plans)
    if account.ledger is None:
        warn_that_nothing_remembers()
    first = len(account.state.asked)
    state = planned.answered(_drawn(account, table, plans, planned))
    account.keep(state, [Item(answer, number) for number, answer in enumerate(state.asked.answered[first:], first)])


@boundary
def _drawn(account: Account, table: Table, plans: Sequence[Plan], planned: State) -> list[int]:
    """The noisy answers, in lattice units."""
    before, receipts, charged = account.state, list[Receipt](), list[Plan]()
    ledger, saved = account.ledger, account.saved
    try:
        for plan in plans:
            step, draws = account.step(plan, len(before.asked) + len(charged))
            charge = None
            if ledger is not None:
                charge = ledger.charge(step, draws, neighbours=saved.neighbours, unit=saved.charged, part=account.part)
            charged.append(plan)
            receipts.append(Receipt(draws, step.own) if ledger is None or charge is None else ledger.redeem(charge))
    finally:
        account.state = planned.lost(before) if len(charged) == len(plans) else charged_and_lost(before, charged)
    exact = np.array(table.totals([plan.question for plan in plans]), dtype=np.int64)
    return [int(Laplace().draw(exact[k : k + 1], plan.scale, receipts[k])[0]) for k, plan in enumerate(plans)]
