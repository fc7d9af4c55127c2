"""The nouns ``Answer`` and ``Price``, which a session returns. Whatever in them comes from a record has noise on it."""

from dataclasses import dataclass
from fractions import Fraction
from html import escape

from pymc_dp.privacy.layout import notes_in_html, page, wrapped

PUBLIC, FREE, PAID = "public", "from history", "paid"
"""How an answer was found."""
EXACT, BLUE, POSTERIOR = "exact", "fixed-question interval (BLUE)", "posterior"
UNDETERMINED = "posterior, not determined by the answers"
"""What its interval is."""


@dataclass(frozen=True)
class Answer:
    """An answer to one question.

    Attributes
    ----------
    question : str
        Its canonical text.
    value : float
    interval : tuple of float
        Where the exact answer lies, lower and upper end.
    confidence : float
        With which probability it does; ``kind`` says in which sense.
    kind : {"posterior", "posterior, not determined by the answers", "fixed-question interval (BLUE)", "exact"}
        "posterior": given every answer so far, whatever made you ask; where the answers do not determine the question, what they leave open
        is the prior's. "fixed-question interval (BLUE)": so many of the intervals hold, of
        questions that were fixed beforehand; of questions chosen, repeated or given up by earlier answers fewer do.
    how : {"paid", "from history", "public"}
    epsilon : Fraction
        What the session costs more than before, in nats: 0 where nobody who pays most paid for this.
    own : Fraction
        What the noise of the answer's own draw would cost by itself; 0 where nothing was drawn.
    """

    question: str
    value: float
    interval: tuple[float, float]
    confidence: float
    kind: str
    how: str
    epsilon: Fraction = Fraction(0)
    own: Fraction = Fraction(0)

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.interval[1] - self.interval[0]

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        low, high = self.interval
        where = "" if self.kind == EXACT else f", {_percent(self.confidence)} in [{low:.6g}, {high:.6g}], {self.kind}"
        return wrapped(f"{self.question}: {self.value:.6g}{where}; {self._cost()}")

    def _cost(self) -> str:
        if self.how != PAID:
            return self.how
        return f"paid epsilon {float(self.epsilon):.6g}" + (f" (its own noise: {float(self.own):.6g})" if self.own != self.epsilon else "")

    def _repr_html_(self) -> str:
        rows = [("answer", f"{self.value:.6g}")]
        if self.kind != EXACT:
            rows.append((f"{_percent(self.confidence)} {self.kind}", f"{self.interval[0]:.6g} to {self.interval[1]:.6g}"))
        rows.append(("cost", self._cost()))
        return page(f"<p><code>{escape(self.question)}</code></p>", notes_in_html(rows))


@dataclass(frozen=True)
class Price:
    """What questions would cost, asked in this order; nothing was spent to know it.

    Attributes
    ----------
    epsilon : Fraction
        What the session would cost more than now, all of them together, in nats.
    questions : tuple of str
    own : tuple of Fraction
        What the noise of each would cost by itself; 0 where the answer follows from what is known by then, or is public.
    fits : bool
        Whether that much is left.
    """

    epsilon: Fraction
    questions: tuple[str, ...]
    own: tuple[Fraction, ...]
    fits: bool

    @property
    def separately(self) -> Fraction:
        """The sum of the noises' own costs: what a session would pay that does not see which records a question touches."""
        return sum(self.own, Fraction(0))

    def __repr__(self) -> str:
        paid = sum(epsilon > 0 for epsilon in self.own)
        return wrapped(
            f"Price: epsilon {float(self.epsilon):.6g} for {len(self.questions):,} question{'s' * (len(self.questions) != 1)}, {paid:,} of"
            f" them with noise of their own (epsilon {float(self.separately):.6g} one by one);"
            f" {'fits' if self.fits else 'does not fit'} into what is left"
        )


def _percent(confidence: float) -> str:
    return f"{100 * confidence:.6g} %"
