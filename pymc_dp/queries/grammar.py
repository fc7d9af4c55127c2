"""Questions as text: a small closed language, read into the objects of ``expressions``.

    question    = sum of terms: count(condition), count(), sum(column), sum(column, condition), decimal * term; or a condition, its count
    condition   = comparisons joined by ~ or not, & or and, | or or, in this order, each looser than any comparison
    comparison  = literals and columns between ==, !=, <, <=, >, >=, chained as in 18 <= age < 65; column in [literal, ...]; not in

There is nothing else: no functions, attributes, casts or patterns. Every text is read in one pass from left to right, in time
proportional to its length, or refused.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.queries.expressions import (
    DEEPEST,
    MIRRORED,
    MOST_NODES,
    Aggregate,
    Among,
    Col,
    Combination,
    Compared,
    Condition,
    Literal,
    coefficient,
)

LONGEST_TEXT = 10_000
"""Characters of a question."""

LONGEST_NUMBER = 100
"""Characters of a number in a question."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?(?![\w.]))
    | (?P<text>'(?:[^'\\]|\\['"\\])*' | "(?:[^"\\]|\\['"\\])*")
    | (?P<name>[^\W\d]\w*)
    | `(?P<quoted>[^`]+)`
    | (?P<sign>==|!=|<=|>=|<|>|&(?!&)|\|(?!\|)|~|\(|\)|\[|\]|,|\+|-|\*(?!\*))
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)

_INSTEAD = {
    "=": "Write == to compare.",
    "!": "Write ~ or not.",
    "&&": "Write &.",
    "||": "Write |.",
    "/": "Write a decimal coefficient, such as 0.5 * count(...).",
    ".": "Columns have no attributes; write `a name with a dot` between backticks.",
}

_WORDS = {"and": "&", "or": "|", "not": "~", "in": "in"}
_TRUTHS = {"true": True, "True": True, "false": False, "False": False}
RESERVED = frozenset(_WORDS) | frozenset(_TRUTHS)
"""Words that name a column only between backticks."""

_EXAMPLE = "Write for example age >= 65 & sex == 'f', or count(age >= 65) - 0.5 * sum(children, sex == 'f')."


@dataclass(frozen=True)
class _Token:
    kind: str
    word: str


_Value = Condition | Combination | Col | str | bool | Fraction
"""What a part of a question can be: a condition, counts and sums, a column, a literal."""


def parse(text: str) -> Condition | Combination:
    """What a question in text means.

    Raises
    ------
    Refusal
        In words that depend on the text alone.
    """
    if len(text) > LONGEST_TEXT:
        raise Refusal(f"A question may have {LONGEST_TEXT} characters. Write ranges, such as 18 <= age < 65, or ask several questions.")
    reader = _Reader(_tokens(text))
    value = reader.either()
    reader.expect("end", "")
    if isinstance(value, Condition | Combination):
        return value
    raise Refusal(f"{_named(value)} is no question by itself. {_EXAMPLE}")


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    while True:
        match = _TOKEN.match(text, at)
        if match is None:
            raise Refusal(_unreadable(text[at:].lstrip()))
        kind, at = str(match.lastgroup), match.end()
        word = match[kind]
        if kind == "number" and len(word) > LONGEST_NUMBER:
            raise Refusal(f"A number may have {LONGEST_NUMBER} characters. Write fewer digits.")
        if kind == "name" and word in _WORDS:
            kind, word = "sign", _WORDS[word]
        tokens.append(_Token(kind, word))
        if kind == "end":
            return tokens


def _unreadable(rest: str) -> str:
    start = rest[:2] if rest[:2] in _INSTEAD else rest[:1]
    if start in _INSTEAD:
        return f"{start} has no meaning in a question. {_INSTEAD[start]}"
    if start in ("'", '"'):
        return f"Text in a question needs {start} at both ends and \\{start} inside. {_EXAMPLE}"
    if start.isdigit():
        return f"{_cut(rest)} starts with a number that cannot be read. Write plain decimals, such as 65, 0.5 or 10_000."
    return f"{_cut(rest)} cannot be read as part of a question. {_EXAMPLE}"


class _Reader:
    """One pass over the tokens, by recursive descent; each method reads what its name says and leaves the rest."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens, self.at, self.depth = tokens, 0, 0

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def took(self, *words: str) -> str | None:
        """The sign that was next, if it is one of these."""
        if self.next.kind == "sign" and self.next.word in words:
            self.at += 1
            return self.tokens[self.at - 1].word
        return None

    def expect(self, kind: str, word: str) -> None:
        if self.next != _Token(kind, word):
            wanted = f"{word} is missing" if word else "the question should end"
            there = "at its end" if self.next.kind == "end" else f"before {_cut(self.next.word)}"
            raise Refusal(f"The question cannot be read: {wanted} {there}. {_EXAMPLE}")
        self.at += 1

    def nested(self, read: Callable[[], _Value]) -> _Value:
        self.depth += 1
        if self.depth > DEEPEST:
            raise Refusal(f"A question may be nested {DEEPEST} deep. Write it with fewer parentheses.")
        value = read()
        self.depth -= 1
        return value

    def either(self) -> _Value:
        value = self.both()
        while self.took("|"):
            value = _condition(value) | _condition(self.both())
        return value

    def both(self) -> _Value:
        value = self.opposite()
        while self.took("&"):
            value = _condition(value) & _condition(self.opposite())
        return value

    def opposite(self) -> _Value:
        if self.took("~"):
            return ~_condition(self.nested(self.opposite))
        return self.comparison()

    def comparison(self) -> _Value:
        left = self.sum()
        chain: Condition | None = None
        while True:
            if sign := self.took("==", "!=", "<=", ">=", "<", ">"):
                right = self.sum()
                link, left = _compared(left, sign, right), right
                chain = link if chain is None else chain & link
            elif chain is None and self.took("in"):
                return self.among(left)
            elif chain is None and self.next == _Token("sign", "~") and self.tokens[self.at + 1] == _Token("sign", "in"):
                self.at += 2
                return ~self.among(left)
            else:
                return left if chain is None else chain

    def among(self, left: _Value) -> Condition:
        if not isinstance(left, Col):
            raise Refusal(f"{_named(left)} stands before in, where a column should. Write for example sex in ['f', 'm'].")
        closing = {"[": "]", "(": ")"}.get(self.took("[", "(") or "")
        if closing is None:
            raise Refusal(f"in needs a list of literals. Write for example {_cut(left.name)} in ['f', 'm'].")
        values: list[Literal] = []
        while not self.took(closing):
            value = self.sum()
            if isinstance(value, Condition | Combination | Col):
                raise Refusal(f"{_named(value)} stands in a list, where only text, numbers and truth values may. {_EXAMPLE}")
            values.append(value)
            if len(values) > MOST_NODES:
                raise Refusal(f"A list may have {MOST_NODES:,} values. Write ranges, such as 18 <= age < 65.")
            if not self.took(","):
                self.expect("sign", closing)
                break
        if not values:
            raise Refusal(f"The list of {_cut(left.name)} is empty. Write the values that are meant, such as ['f', 'm'].")
        return Among(left.name, tuple(values))

    def sum(self) -> _Value:
        value = self.product()
        terms = [value]
        while sign := self.took("+", "-"):
            terms.append(_signed(self.product(), sign))
        if len(terms) == 1:
            return value
        parts = tuple(part for term in terms for part in _combination(term).terms)
        return Combination(parts)

    def product(self) -> _Value:
        value = self.signed()
        while self.took("*"):
            other = self.signed()
            number, term = (value, other) if isinstance(value, Fraction) else (other, value)
            if not isinstance(number, Fraction) or not isinstance(term, Combination):
                raise Refusal(f"{_named(value)} times {_within(other)} is no question. Write for example 0.5 * count(...).")
            value = term * coefficient(number)
        return value

    def signed(self) -> _Value:
        if sign := self.took("-", "+"):
            return _signed(self.nested(self.signed), sign)
        return self.atom()

    def atom(self) -> _Value:
        token = self.next
        if self.took("("):
            value = self.nested(self.either)
            self.expect("sign", ")")
            return value
        if token.kind in ("end", "sign"):
            there = "at the end of the question" if token.kind == "end" else f"before {token.word}"
            raise Refusal(f"Something is missing {there}. {_EXAMPLE}")
        self.at += 1
        if token.kind == "number":
            return Fraction(Decimal(token.word))
        if token.kind == "text":
            return re.sub(r"\\(.)", r"\1", token.word[1:-1])
        if token.kind == "name" and self.next == _Token("sign", "("):
            return self.call(token.word)
        if token.kind == "name" and token.word in _TRUTHS:
            return _TRUTHS[token.word]
        return Col(token.word)

    def call(self, name: str) -> Combination:
        if name not in ("count", "sum"):
            raise Refusal(f"There is no function {_cut(name)} in a question. Only count(condition) and sum(column, condition) are there.")
        self.took("(")
        column: str | None = None
        if name == "sum":
            argument = self.nested(self.either)
            if not isinstance(argument, Col):
                raise Refusal(f"sum needs the name of a column, and {_within(argument)} is none. Write for example sum(age, sex == 'f').")
            column = argument.name
            if not self.took(","):
                self.expect("sign", ")")
                return Combination(((Fraction(1), Aggregate(column, None)),))
        elif self.took(")"):
            return Combination(((Fraction(1), Aggregate(None, None)),))
        where = _condition(self.nested(self.either))
        self.expect("sign", ")")
        return Combination(((Fraction(1), Aggregate(column, where)),))


def _condition(value: _Value) -> Condition:
    if isinstance(value, Condition):
        return value
    if isinstance(value, Col):
        raise Refusal(f"{_named(value)} is no condition. Compare it with a value, as in age >= 65, sex == 'f' or smoker == true.")
    raise Refusal(f"{_named(value)} stands where a condition should. {_EXAMPLE}")


def _combination(value: _Value) -> Combination:
    if isinstance(value, Combination):
        return value
    if isinstance(value, Condition):
        raise Refusal(f"A condition cannot be added to anything. Write count(...) around it. {_EXAMPLE}")
    raise Refusal(f"{_named(value)} stands in a sum, where only counts and sums of columns may. Write each number itself. {_EXAMPLE}")


def _signed(value: _Value, sign: str) -> _Value:
    if isinstance(value, Fraction):
        return -value if sign == "-" else value
    return -_combination(value) if sign == "-" else _combination(value)


def _compared(left: _Value, sign: str, right: _Value) -> Condition:
    for column, comparison, value in ((left, sign, right), (right, MIRRORED[sign], left)):
        if isinstance(column, Col) and isinstance(value, str | bool | Fraction):
            return Compared(column.name, comparison, value)
    if isinstance(left, Condition | Combination) or isinstance(right, Condition | Combination):
        raise Refusal(f"Only a column and a literal can be compared, not conditions, counts and sums. {_EXAMPLE}")
    raise Refusal(f"{_named(left)} cannot be compared with {_within(right)}. Compare a column with text, a number or a truth value.")


def _named(value: _Value) -> str:
    if isinstance(value, Col):
        return f"The column {_cut(value.name)}"
    if isinstance(value, Condition):
        return "A condition"
    if isinstance(value, Combination):
        return "A count or sum"
    return f"The literal {_cut(repr(value) if isinstance(value, str | bool) else str(value))}"


def _within(value: _Value) -> str:
    """The same within a sentence."""
    named = _named(value)
    return named[0].lower() + named[1:]


def _cut(word: str) -> str:
    shown = word if word.isprintable() else ascii(word)
    return shown if len(shown) <= 40 else shown[:37] + "..."
