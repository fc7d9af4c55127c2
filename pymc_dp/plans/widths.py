"""The noun ``PlannedWidths``: how wide a posterior is expected to be at every epsilon, and without privacy; its table, and the epsilon that
a width needs.

It holds numbers from simulated records, so nothing in it is from anybody, and nothing in it is a release.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from math import exp, inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dp.privacy.accounting import ALL_ROWS, Refusal
from pymc_dp.privacy.layout import aligned, as_written, counted, in_html, notes_in_html, page, sentences

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

MEASURES = ("sd", "interval")
"""What is told of a posterior: its standard deviation, and how wide the interval between ``QUANTILES`` is."""
QUANTILES = (0.05, 0.95)
GUESSES = (0.5, 0.1)
"""What an attacker believes beforehand, in the table."""
RESAMPLES = 400
"""So many times the simulations are drawn again, with replacement, to say how sure an epsilon is."""


@dataclass(frozen=True, repr=False)
class PlannedWidth:
    """One line of a plan: one variable at one epsilon, averages over simulations and entries.

    Attributes
    ----------
    variable, mechanism : str
    epsilon : float
    interval, interval_without : float
        How wide the 90 % interval is after a release, and without privacy.
    error : float
        Standard error of ``interval``, from how much simulations differ.
    sd, sd_without : float
        Standard deviations of the posterior.
    narrowest, widest : float
        ``interval`` of single entries, where the variable has several.
    """

    variable: str
    mechanism: str
    epsilon: float
    interval: float
    interval_without: float
    error: float
    sd: float
    sd_without: float
    narrowest: float
    widest: float
    __repr__ = as_written

    @property
    def privacy(self) -> float:
        """The share of the posterior's variance that is there for privacy; the rest would be there without."""
        return max(1 - (self.sd_without / self.sd) ** 2, 0.0) if self.sd > 0 else 0.0


@dataclass(frozen=True, repr=False)
class Reached:
    """The epsilon at which an interval is as narrow as was asked for.

    Attributes
    ----------
    variable, mechanism : str
    width : float
        What was asked for.
    epsilon : float
        Infinite where the interval is wider even without privacy, or at the largest epsilon that was tried.
    low, high : float
        90 % of how it comes out when the simulations are drawn again.
    reason : str
        Why there is none, or that the least epsilon that was tried is enough.
    """

    variable: str
    mechanism: str
    width: float
    epsilon: float
    low: float
    high: float
    reason: str = ""
    __repr__ = as_written


@dataclass(frozen=True, eq=False)
class PlannedWidths:
    """How wide posteriors are expected to be after a release, and without privacy: ``plan`` makes it, from simulated records.

    Attributes
    ----------
    private : xarray.Dataset
        Every variable of dims (measure, mechanism, epsilon, simulation, ...).
    without : xarray.Dataset
        The same without privacy, of dims (measure, simulation, ...).
    truths : xarray.Dataset
        The values of the unknowns that records were simulated from, of dims (chain, draw, ...): one draw a simulation.
    records : mapping of str to int
        How many records were simulated of every observed variable.
    protects : str
        What would be protected, in words: see ``protected``.
    neighbours : str
    assumptions : tuple of str
        What the numbers rest on, in sentences.
    width : mapping of str to float
        The widths of intervals that were asked for.

    Examples
    --------
    >>> planned = pmdp.plan(model, epsilon=[0.1, 1], simulations=1, draws=50, tune=50, random_seed=1, progressbar=False)
    >>> [row.epsilon for row in planned.rows]
    [0.1, 1.0]
    >>> planned.rows[0].interval > planned.rows[0].interval_without
    True
    """

    private: "xr.Dataset"
    without: "xr.Dataset"
    truths: "xr.Dataset"
    records: Mapping[str, int]
    protects: str
    neighbours: str
    assumptions: tuple[str, ...]
    width: Mapping[str, float] = field(default_factory=dict)

    @property
    def rows(self) -> tuple[PlannedWidth, ...]:
        """Every variable at every epsilon."""
        return tuple(self._rows())

    def _rows(self) -> Iterator[PlannedWidth]:
        for name in self.private.data_vars:
            private, without = _by_entry(self.private[name], 4), _by_entry(self.without[name], 2)
            for m, mechanism in enumerate(self.private["mechanism"].values):
                for e, epsilon in enumerate(self.private["epsilon"].values):
                    sd, interval = private[:, m, e]
                    by_simulation, by_entry = interval.mean(axis=1), interval.mean(axis=0)
                    many = len(by_simulation)
                    error = float(by_simulation.std(ddof=1) / many**0.5) if many > 1 else inf
                    yield PlannedWidth(
                        str(name), str(mechanism), float(epsilon), float(interval.mean()), float(without[1].mean()), error,
                        float((sd**2).mean() ** 0.5), float((without[0] ** 2).mean() ** 0.5),
                        float(by_entry.min()), float(by_entry.max()),
                    )  # fmt: skip

    def risk(self, epsilon: float, guess: float = 0.5) -> float:
        """What somebody can believe about one person at most, after a release, who believed it with probability ``guess`` before.

        Whoever knows all other records and believes something of one record with probability p believes it afterwards with at most
        p e^epsilon / (1 - p + p e^epsilon). Where records come and go (add_remove), that is so of whether a record is there, and with twice
        epsilon of what it says.
        """
        odds = exp(min(epsilon, 700.0)) * guess / (1 - guess) if guess < 1 else inf
        return 1.0 if odds == inf else odds / (1 + odds)

    def epsilon_for(self, width: Mapping[str, float]) -> tuple[Reached, ...]:
        """For every variable named, the epsilon at which its 90 % interval is as narrow as this: of several entries, the widest.

        Between the epsilons of the plan, log width is taken to be linear in log epsilon. Nothing is said beyond them.

        Parameters
        ----------
        width : mapping of str to float
            By name, how wide the interval may be, in units of the variable.

        Raises
        ------
        Refusal
            For names or widths that mean nothing.
        """
        check_width(width, [str(name) for name in self.private.data_vars])
        mechanisms = self.private["mechanism"].values
        return tuple(self._reached(name, float(w), m) for name, w in width.items() for m in range(len(mechanisms)))

    def _reached(self, name: str, width: float, m: int) -> Reached:
        epsilons = np.log(self.private["epsilon"].values)
        private, without = _by_entry(self.private[name], 4)[1, m], _by_entry(self.without[name], 2)[1]
        mechanism, many = str(self.private["mechanism"].values[m]), private.shape[1]
        resampled = np.random.default_rng(0).integers(many, size=(RESAMPLES, many))
        crossings = np.array([_crossing(epsilons, private[:, picked].mean(axis=1).max(axis=-1), width) for picked in resampled])
        low, high = np.quantile(crossings, QUANTILES, method="nearest")
        widest = private.mean(axis=1).max(axis=-1)
        epsilon, reason = _crossing(epsilons, widest, width), ""
        least = float(without.mean(axis=0).max())
        if epsilon == inf and least >= width:
            reason = f"without privacy it is {least:.3g} wide already: that takes more records"
        elif epsilon == inf:
            reason = f"at epsilon {np.exp(epsilons[-1]):g} it is still {widest[-1]:.3g} wide, and {least:.3g} without privacy"
        elif widest[0] <= width:
            reason = "this or less: it is the least that was tried"
        return Reached(name, mechanism, width, epsilon, float(low), float(high), reason)

    def to_dataframe(self) -> "pd.DataFrame":
        """The table as a ``pandas.DataFrame``, a row for every variable, mechanism and epsilon."""
        import pandas as pd

        table = pd.DataFrame([{**row.__dict__, "privacy": row.privacy} for row in self.rows])
        return table.set_index(["variable", "mechanism", "epsilon"])

    def __repr__(self) -> str:
        parts = [text if isinstance(text, str) else aligned(*text) for text in self._tables()]
        return "\n".join([*parts, "", *sentences(self._notes())])

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(text)}</p>" if isinstance(text, str) else in_html(*text) for text in self._tables()]
        return page(*parts, notes_in_html(self._notes()))

    def _tables(self) -> Iterator[Any]:
        """Tables, as header and body, and the lines between them."""
        several = len(self.private["mechanism"]) > 1
        yield WIDTHS if several else WIDTHS[:1] + WIDTHS[2:], [_cells(row, several) for row in self.rows]
        if self.width:
            yield ""
            yield NEEDED if several else NEEDED[:1] + NEEDED[2:], [_needed(reached, several) for reached in self.epsilon_for(self.width)]
        yield ""
        header = ("epsilon", *(f"{guess:.0%} sure {about} becomes" for about, _ in self._about for guess in GUESSES))
        yield (
            header,
            [
                (f"{epsilon:g}", *(f"{self.risk(factor * float(epsilon), guess):.1%}" for _, factor in self._about for guess in GUESSES))
                for epsilon in self.private["epsilon"].values
            ],
        )

    @property
    def _about(self) -> tuple[tuple[str, int], ...]:
        """What an attacker may guess, and how many epsilons that costs."""
        person = self.protects.startswith(ALL_ROWS)
        if self.neighbours == "replace":
            return (("of all rows of a person" if person else "of a record", 1),)
        return (
            (("whether a person is there", 1), ("of what the rows say", 2))
            if person
            else (("whether a record is there", 1), ("of what it says", 2))
        )

    def _notes(self) -> Iterator[tuple[str, str]]:
        simulated = ", ".join(f"{count:,} records of {name}" for name, count in self.records.items())
        yield "simulated", f"{counted(self.without.sizes['simulation'], 'data set')} of {simulated}; no record of yours was read"
        for text in self.assumptions:
            yield "assumed", text
        fails = "; with a delta, by at most delta more" if self._has_delta else ""
        yield (
            "how sure",
            f"somebody knows all other records, and is 50% or 10% sure of a guess about {self.protects}. After the release they can be so"
            f" sure at most{fails}",
        )
        entries = "; in parentheses: of the narrowest and the widest entry" if any(row.narrowest < row.widest for row in self.rows) else ""
        yield "± is", f"the standard error of the width over the simulations{entries}"

    @property
    def _has_delta(self) -> bool:
        return any("delta" in str(mechanism) for mechanism in self.private["mechanism"].values)


WIDTHS = ("variable", "mechanism", "epsilon", "width of 90 % interval", "without privacy", "wider by", "sd", "variance due to privacy")
NEEDED = ("variable", "mechanism", "width wanted", "epsilon needed", "90 % interval", "why")


def _cells(row: PlannedWidth, several: bool) -> tuple[str, ...]:
    entries = f" ({row.narrowest:.3g} to {row.widest:.3g})" if row.narrowest < row.widest else ""
    error = f" ± {row.error:.2g}" if row.error < inf else ""
    wider = row.interval / row.interval_without if row.interval_without > 0 else inf
    cells = (row.variable, *((row.mechanism,) if several else ()), f"{row.epsilon:g}", f"{row.interval:.3g}{error}{entries}")
    return (*cells, f"{row.interval_without:.3g}", f"x {wider:.3g}", f"{row.sd:.3g}", f"{row.privacy:.0%}")


def _needed(reached: Reached, several: bool) -> tuple[str, ...]:
    low, high = (f"{end:.3g}" if end < inf else "none" for end in (reached.low, reached.high))
    needed = f"{reached.epsilon:.3g}" if reached.epsilon < inf else "none"
    cells = (reached.variable, *((reached.mechanism,) if several else ()), f"{reached.width:g}", needed)
    return (*cells, f"{low} to {high}" if needed != "none" or low != "none" else "", reached.reason)


def _by_entry(values: "xr.DataArray", dims: int) -> np.ndarray:
    """An array with these many dims before those of the variable, whose entries become one axis."""
    return values.values.reshape(*values.shape[:dims], -1)


def _crossing(log_epsilons: np.ndarray, widths: np.ndarray, width: float) -> float:
    """The epsilon at which a width that falls with epsilon is this; the least where it is narrower there, infinity where it never is."""
    falling = np.log(np.maximum(np.minimum.accumulate(widths), 1e-300))
    below = np.flatnonzero(falling <= log(width))
    if not len(below):
        return inf
    k = int(below[0])
    if k == 0:
        return float(np.exp(log_epsilons[0]))
    share = (falling[k - 1] - log(width)) / (falling[k - 1] - falling[k])
    return float(np.exp(log_epsilons[k - 1] + share * (log_epsilons[k] - log_epsilons[k - 1])))


def check_width(width: object, names: list[str]) -> None:
    """Refuse widths that are none, or of what is not drawn."""
    listed = ", ".join(map(repr, names))
    if not isinstance(width, Mapping) or not width or not set(width) <= set(names):
        raise Refusal(f"width gives the width of an interval by name. Write for example width={{{names[0]!r}: 0.1}}, of {listed}.")
    for name, value in width.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
            raise Refusal(f"width[{name!r}] must be a positive number, in units of {name}.")
