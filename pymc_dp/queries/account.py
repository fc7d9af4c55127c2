"""What a session has asked and paid: kept in its file, charged to its ledger, within its own limit. Nothing here sees a record."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from functools import wraps
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pymc_dp.privacy.accounting import Cost, Refusal, protected
from pymc_dp.privacy.charges import Step
from pymc_dp.privacy.ledger import Ledger, Part, unit_as_written
from pymc_dp.privacy.mechanisms import Laplace
from pymc_dp.privacy.receipts import Draw
from pymc_dp.queries.answer import PAID, Price
from pymc_dp.queries.blue import estimate
from pymc_dp.queries.from_release import Orders, counted
from pymc_dp.queries.history import Answered
from pymc_dp.queries.plan import Plan, State, Terms, plan_to_pay, rounded_down, rounded_up, short_text, width_of
from pymc_dp.queries.restore import check_same, empty, restored, same_noise, without_gaps
from pymc_dp.queries.session_file import Item, Saved, held
from pymc_dp.releases.release import Release

if TYPE_CHECKING:
    import pandas as pd

LONGEST = -(2**63)
"""No noisy answer takes more room in a file."""


def one_call_at_a_time[F: Callable[..., Any]](method: F) -> F:
    """One call of a session after the other: other threads wait, and a call from within a call is refused.

    What is asked from within, by a signal handler or by an argument that runs code when it is looked at, would come between the plan of
    the outer call and its charge, so that the outer call would pay by a plan that no longer holds.
    """

    @wraps(method)
    def turn(self: Any, *args: Any, **kwargs: Any) -> Any:
        account = self if isinstance(self, Account) else self._account
        with account.lock:
            if account.busy:
                raise Refusal(
                    "This session is in the middle of the call that this one was made from. Call it again when that call has returned."
                )
            try:
                account.busy = True
                return method(self, *args, **kwargs)
            finally:
                account.busy = False

    return cast(F, turn)


class Account:
    """What a session has asked and paid.

    Attributes
    ----------
    lock, busy : RLock, bool
        Whether a call of the session runs: see ``one_call_at_a_time``.
    ledger : Ledger or None
        Where it pays, from ``part`` of the data set.
    limit : Fraction or None
        The most that it may cost, in nats, besides what the ledger allows.
    path : Path or None
        Its file; ``unit_as_written`` is what the session left there.
    saved : Saved
        What gives its questions their meaning; ``items`` are its answers since.
    state : State
        What was asked and what is known.
    models : Fraction
        What was paid for questions about models, in nats.
    """

    state: State
    items: tuple[Item, ...]

    def __init__(self, payer: Ledger | Part | None, limit: Fraction | None, path: Path | None, new: Saved) -> None:
        self.payer = payer
        self.ledger = payer.ledger if isinstance(payer, Part) else payer
        self.part = payer.name if isinstance(payer, Part) else None
        self.limit, self.path = limit, path
        self.lock, self.busy = RLock(), False
        self._begin(new)
        if path is not None:
            if not path.exists():
                with suppress(FileExistsError):  # by another copy, in this moment
                    new.write(path, new=True)
                    return
            with held(path):  # while another copy asks, its answer is neither there nor lost
                saved = Saved.read(path)
                check_same(saved, new, path.name)
                if self.ledger is None:
                    saved = without_gaps(saved)
                self._begin(saved)
                self.written = path.read_text(encoding="utf-8")
                self.state = restored(saved, self.ledger, path)

    def _begin(self, saved: Saved) -> None:
        self.saved, self.state, self.items, self.models, self.written = saved, empty(saved), saved.items, saved.models, saved.text

    @property
    def name(self) -> str:
        """The name of the session in the ledger."""
        return self.saved.name

    # ---------- what it costs

    @property
    def cost(self) -> Fraction:
        """What the session has cost, in nats: see ``QuerySession.cost``."""
        return self.state.asked.cost + self.models

    @property
    def remaining(self) -> Cost:
        """What may still be spent: see ``QuerySession.remaining``."""
        left = None if self.limit is None else self.limit - self.cost
        if self.ledger is None:
            return Cost(Fraction(0) if left is None else left)
        allowed = self.ledger.remaining(part=self.part)
        return allowed if left is None else replace(allowed, epsilon=min(allowed.epsilon, left))

    def step(self, plan: Plan, number: int) -> tuple[Step, list[Draw]]:
        """The charge for a planned question, with ``number`` draws charged before it, and its draw."""
        sensitivity = self.state.asked.sensitivity(plan.question)
        draws = [Draw(plan.question.text, Laplace.name, sensitivity, sensitivity**2, plan.scale, 1)]
        return Step(self.name, number, Cost(plan.own), plan.total), draws

    def is_left(self, plans: Sequence[Plan]) -> bool:
        """Whether so much may be spent, one plan after the other."""
        if plans and self.limit is not None and plans[-1].total.epsilon + self.models > self.limit:
            return False
        try:
            if plans and self.ledger is not None:
                steps = [self.step(plan, number)[0] for number, plan in enumerate(plans, len(self.state.asked))]
                self.ledger.remaining(steps, part=self.part)
        except Refusal:
            return False
        return True

    def check_left(self, plans: Sequence[Plan], terms: Terms) -> None:
        """Refuse what is not left, in words that say what would fit."""
        paying = [plan for plan in plans if plan.own]
        if not paying or self.is_left(paying):
            return
        if self.ledger is not None:  # a reason other than what is left is said in its own words
            self.ledger.remaining([Step(self.name, len(self.state.asked), Cost(Fraction(0)), self.state.total)], part=self.part)
        more = paying[-1].total.epsilon - self.state.asked.cost
        where = "this session's epsilon" if self.ledger is None else self.ledger.path.name
        costs = f"{float(more):.4g} more, and {float(self.remaining.epsilon):.4g} is left in {where}."
        if len(plans) > 1:
            raise Refusal(
                f"These {len(plans):,} questions cost epsilon {costs} Ask fewer, or for wider intervals; price() says what they cost."
            )
        (plan,) = plans
        costs = f"{short_text(plan.question)} costs epsilon {costs}"
        if epsilon := self._largest_left(plan):
            if terms.length:
                width = width_of(plan_to_pay(self.state, plan.question, epsilon)[1], plan.meant, terms.level)
            instead = f"width={rounded_up(width):.4g}" if terms.length else f"epsilon={float(epsilon):.4g}"
            raise Refusal(f"{costs} Write {instead}, which fits, or ask the data owner for a larger grant.")
        if estimate(self.state.known, plan.meant) is not None:
            width = width_of(self.state, plan.meant, terms.level)
            raise Refusal(f"{costs} Without noise of its own it is {width:.4g} wide: leave width and epsilon out.")
        raise Refusal(f"{costs} Ask something that follows from what was answered, or ask the data owner for a larger grant.")

    def _largest_left(self, plan: Plan) -> Fraction:
        """The largest epsilon of three digits at which the question could be paid for; 0 if there is none."""
        low, high = Fraction(0), plan.own
        for _ in range(24):
            middle = rounded_down((low + high) / 2)
            fits = low < middle and self.is_left([plan_to_pay(self.state, plan.question, middle)[0]])
            low, high = (middle, high) if fits else (low, middle)
        return low

    # ---------- its file

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Nobody else writes the file meanwhile, and it is as this session left it: what another copy wrote is never written over."""
        if self.path is None:
            yield
            return
        with held(self.path):
            if self.path.read_text(encoding="utf-8", errors="replace") != self.written:
                raise Refusal(
                    f"Another copy of this session has asked since, or taken a release, and {self.path.name} holds what this one does not"
                    " know. Load it again: QuerySession(..., history=the same file)."
                )
            yield

    def check_room(self, plans: Sequence[Plan]) -> None:
        """Refuse to pay where the answers could not be written."""
        if self.path is not None:
            first = len(self.state.asked)
            new = (Item(Answered(plan.question, plan.own, plan.scale, LONGEST), first + k) for k, plan in enumerate(plans))
            replace(self.saved, items=(*self.items, *new), models=self.models).check_room(self.path)

    def keep(self, state: State, items: Sequence[Item]) -> None:
        """Go on from a state with these items more, and save them."""
        self.state, self.items = state, (*self.items, *items)
        self.save()

    def save(self) -> None:
        """Write the file anew."""
        if self.path is not None:
            saved = replace(self.saved, items=self.items, models=self.models)
            saved.write(self.path)
            self.written = saved.text

    @one_call_at_a_time
    def set_aside(self, more: Fraction) -> None:
        """Count a question about a model before it is asked."""
        with self.unchanged():
            if self.limit is not None and self.cost + more > self.limit:
                left = float(self.limit - self.cost)
                raise Refusal(f"This costs epsilon {float(more):.4g}, and {left:.4g} is left in this session's epsilon. Ask for less.")
            self.models += more
            try:
                self.save()
            except Refusal:
                self.models -= more
                raise

    @one_call_at_a_time
    def put_back(self, more: Fraction) -> None:
        """Count a question about a model no more, which was refused before anything was drawn."""
        self.models -= more
        with suppress(Refusal), self.unchanged():
            self.save()

    def _check_new(self, head: str, answers: Sequence[Answered]) -> None:
        """Refuse answers of a release that were added before."""
        for item in self.items:
            added = item.answered
            if item.release == head and any(same_noise(added, answer) and added.noisy == answer.noisy for answer in answers):
                raise Refusal("This release was added before, and its noise would be counted twice. Leave it out.")

    def add(self, release: object, columns: Mapping[str, str | Sequence[str]] | None, levels: Orders | None = None) -> int:
        """Take the counts of a release into what is known: see ``QuerySession.add``."""
        if self.saved.person is not None:
            raise Refusal(
                "A release keeps other rows of a person than a session, because it reads other columns. Ask the session, or use the release"
                " by itself."
            )
        if not isinstance(release, Release):
            raise Refusal("A session takes releases. Write session.add(pymc_dp.release(model, ...)).")
        saved, ledger = self.saved, self.ledger
        if release.neighbours != saved.neighbours or release.unit != saved.unit:
            raise Refusal("The release protects something else. Make it with the neighbours and unit of the session.")
        if ledger is not None and ledger.paid_for(release.ledger_head) != (self.part or ""):
            raise Refusal(f"{ledger.path.name} did not pay for this release, so it may be of other records. Release with ledger=.")
        counts = counted(release, saved.schema, columns, saved.neighbours, saved.records, levels)
        touched = {name for answer in counts for name in answer.question.columns}
        if open_ended := [name for name in saved.schema.names if name in touched and name not in saved.complete]:
            raise Refusal(
                "A release moves values that are no level to one, and a session counts them apart. If"
                f" {', '.join(open_ended)} has none, promise it: open the session with complete={open_ended!r}."
            )
        self._check_new(release.ledger_head, counts)
        state = self.state
        for answer in counts:
            state = state.knowing(answer)
        with self.unchanged():
            self.keep(state, [Item(answer, None, release.ledger_head) for answer in counts])
        return len(counts)

    def least_noisy(self, text: str) -> Answered:
        """The answer to a question that has the least noise, as it was drawn."""
        answers = [item.answered for item in self.items if item.answered.question.text == text]
        if not answers:
            raise Refusal(f"{text[:80]} has no noisy answer of its own. Ask it with epsilon=, or observe what it follows from.")
        return min(answers, key=lambda answer: answer.scale)

    def price(self, plans: Sequence[Plan], planned: State) -> Price:
        """What planned questions would cost: see ``QuerySession.price``."""
        own_costs, texts = tuple(plan.own for plan in plans), tuple(plan.question.text for plan in plans)
        more = planned.asked.cost - self.state.asked.cost
        return Price(more, texts, own_costs, self.is_left([plan for plan in plans if plan.own]))

    # ---------- for people

    def table(self) -> "pd.DataFrame":
        """Everything that was asked: see ``QuerySession.history``."""
        import pandas as pd

        answered = {item.number for item in self.items}
        rows = [
            _row(answer, PAID if number in answered else "lost", paid)
            for number, (answer, paid) in enumerate(zip(self.state.asked.answered, self.state.paid, strict=True))
        ]
        rows += [_row(item.answered, "release", Fraction(0)) for item in self.items if item.number is None]
        return pd.DataFrame(rows, columns=["question", "from", "answer", "sd", "own", "paid"])

    def words(self) -> str:
        """What was spent and is left, in words."""
        asked, lost = len(self.state.asked), len(self.state.asked) - sum(item.number is not None for item in self.items)
        words = f"QuerySession: {asked} question{'s' * (asked != 1)} paid for" + (f", {lost} of them lost" if lost else "")
        alone = sum((answer.epsilon for answer in self.state.asked.answered), self.models)
        words += f", epsilon {float(self.cost):.6g}" + (f" (one by one: {float(alone):.6g})" if alone != self.cost else "")
        left = "" if self.ledger is None and self.limit is None else f", left {float(self.remaining.epsilon):.6g}"
        paying = ", charged to no ledger" if self.ledger is None else f" of {self.ledger.path.name}"
        return f"{words}{left}{paying}; protects {protected(self.saved.protects)} ({self.saved.neighbours})"


TITLES = {"sd": "noise sd", "own": "epsilon of its noise", "paid": "epsilon it cost"}


def history_table(table: "pd.DataFrame") -> tuple[list[str], list[list[str]]]:
    """The history for people, as header and body."""
    return [TITLES.get(column, column) for column in table.columns], [
        [entry if isinstance(entry, str) else f"{entry:.6g}" for entry in row] for row in table.itertuples(index=False)
    ]


def charged_and_lost(before: State, plans: Sequence[Plan]) -> State:
    """The state once these plans were charged and not answered."""
    state = before
    for plan in plans:
        state = state.after(Answered(plan.question, plan.own, plan.scale, 0)).lost(before)
    return state


def _row(answer: Answered, origin: str, paid: Fraction) -> tuple:
    unit, noise = answer.question.divisor, Laplace().noise(answer.scale, 1.0)
    noisy = np.nan if origin == "lost" else answer.noisy / unit
    return answer.question.text, origin, noisy, noise.standard_deviation / unit, float(answer.epsilon), float(paid)


def check_protects(ledger: Ledger | Part | None, neighbours: str, unit: str) -> None:
    """Refuse a ledger of other neighbours or another unit."""
    whole = ledger.ledger if isinstance(ledger, Part) else ledger
    if whole is not None and whole.neighbours != neighbours:
        raise Refusal(f"{whole.path.name} is kept for neighbours={whole.neighbours!r}. Write that.")
    if whole is not None and whole.unit != unit:
        raise Refusal(f"{whole.path.name} is kept for {unit_as_written(whole.unit)}. Write that.")


def path_of(history: str | os.PathLike[str] | None) -> Path | None:
    """The absolute path of the file of a session, or None."""
    try:
        return None if history is None else Path(os.path.realpath(os.fsdecode(history)))
    except (TypeError, ValueError):
        raise Refusal("history must be the name of a file. Write for example history='survey.session'.") from None
