"""``suggest_bounds``: bounds from the priors and the laws of covariates, the only things that are known before anything is paid.

Values are drawn from the prior predictive distribution; bounds hold nearly all of them, rounded outward. No record is read.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from math import ceil, floor, inf, log10

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_dp.models.spec import Likelihood
from pymc_dp.models.structure import Unreduced
from pymc_dp.planning.covariates import drawn_from, entries_of
from pymc_dp.planning.records import rows_for, simulated_unknowns
from pymc_dp.plans.bounds import MOST_PREDICTOR, bounds_by_name, covariate_bounds, kind_of, needs, predictor_name, private_covariates
from pymc_dp.plans.person import Person
from pymc_dp.plans.plan import planned_release
from pymc_dp.plans.protection import Individual, protection_of, with_records
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.calls import explained
from pymc_dp.privacy.layout import page, wrapped
from pymc_dp.private_models.predictive import drawn_on
from pymc_dp.private_models.predictive_rows import with_parents
from pymc_dp.releases.simulated import PublicSide, public_side

DRAWS, ROWS = 1000, 100
"""Draws from the priors, and records of every draw."""
LAW_DRAWS = 100_000
"""Draws from the law of a covariate."""
SEED = 0
"""So that one model always gets the same bounds."""
USELESS = 20
"""Bounds so many times as wide as values spread, given the unknowns, are said to be of no use."""


class SuggestedBounds(dict[str, object]):
    """Bounds by name, as ``bounds=`` takes them, and what they rest on: ``suggest_bounds`` makes it.

    Attributes
    ----------
    notes : tuple of str
        What the bounds rest on, and where they are too wide to be of use.
    times : dict of str to float
        How many times as wide they are as values spread for given unknowns, by name of what the priors say something of.

    Examples
    --------
    >>> with pm.Model() as heights:
    ...     mean, sd = pm.Normal("mean", 170, 5), pm.HalfNormal("sd", 10)
    ...     height = pm.Normal("height", mean, sd, observed=np.linspace(150, 190, 200))
    >>> suggested = pmdp.suggest_bounds(heights)
    >>> pmdp.inspect(heights, bounds=suggested).rows[0].needs is None
    True
    """

    def __init__(self, bounds: Mapping[str, object], notes: Iterable[str] = (), times: Mapping[str, float] | None = None) -> None:
        super().__init__(bounds)
        self.notes, self.times = tuple(notes), dict(times or {})

    def __repr__(self) -> str:
        return "\n".join([wrapped(self._first()), *(wrapped(line, "  ", "    ") for line in self.notes)])

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return page(f"<code>{escape(self._first())}</code><ul>{notes}</ul>")

    def _first(self) -> str:
        return f"bounds={dict(self)}" if self else "No bounds can be suggested yet:"


@explained
def suggest_bounds(
    model: pm.Model | None = None,
    *,
    covariate_law: Mapping[str, object] | None = None,
    assuming: Mapping[str, object] | None = None,
    share: float = 0.999,
    bounds: Mapping[str, object] | None = None,
    public: Iterable[object] = (),
    unit: str | Individual | Person = "row",
    neighbours: str = "replace",
    missing: Mapping[str, object] | Iterable[str] | None = None,
) -> SuggestedBounds:
    """Suggest bounds from the priors: those that hold nearly all values that the model expects. No record is read, so it costs nothing.

    Bounds are as good as the priors: if these allow almost anything, bounds are so wide that the noise hides the records, and the result
    says so. Widen or narrow them by what you know, never by a look at the records.

    Parameters
    ----------
    model : pm.Model, optional
        The model in context if left out.
    covariate_law : mapping, optional
        By name of a private covariate, how its values are distributed: see ``plan``. Without one, and without bounds of your own, no
        bounds are suggested for a covariate, nor for what depends on it.
    assuming : mapping, optional
        Values of unknowns, as in ``plan``: needed where a prior is improper.
    share : float
        The share of values that the bounds hold.
    bounds : mapping, optional
        Those that you know already, which are kept.
    public, unit, neighbours, missing
        See ``release``.

    Returns
    -------
    SuggestedBounds
        A dict: use it as ``bounds=``. Printed, it says what it is based on.

    Raises
    ------
    Refusal
        Where the model cannot be released, or its priors cannot be drawn from.

    Examples
    --------
    >>> with pm.Model() as calls:
    ...     rate = pm.Gamma("rate", 3, 1)
    ...     called = pm.Poisson("called", rate, observed=votes)
    >>> pmdp.suggest_bounds(calls)["called"]
    (0, 16)
    """
    if isinstance(share, bool) or not isinstance(share, float) or not 0.5 <= share < 1:
        raise Refusal("share is the share of values that the bounds hold, from 0.5 to less than 1. Write for example share=0.999.")
    protection = protection_of(bounds=bounds, public=public, unit=unit, neighbours=neighbours, missing=missing, persons=True)
    side, rng = public_side(with_records(model), protection), np.random.default_rng(SEED)
    del model
    suggesting = _Suggesting(side, dict(covariate_law or {}), share, rng, bounds_by_name(side.spec, bounds))
    suggesting.covariates()
    suggesting.observed(dict(assuming or {}))
    try:
        planned_release(side.spec, replace(protection, bounds=suggesting.bounds))
    except Refusal as reason:
        if not any(needs(likelihood, suggesting.bounds) for likelihood in side.spec.likelihoods):  # else it was said already
            suggesting.notes.append(f"with these bounds the model is still refused: {reason}")
    if not suggesting.bounds and not suggesting.notes:
        suggesting.notes.append("nothing here needs bounds")
    return SuggestedBounds(suggesting.bounds, suggesting.notes, suggesting.times)


@dataclass(eq=False)
class _Suggesting:
    """What is known so far, on the way from covariates to observed variables.

    Attributes
    ----------
    side : PublicSide
    laws : mapping
    share : float
    rng : Generator
    bounds : dict
        Those given, and then those suggested.
    notes : list of str
    times : dict of str to float
        See ``SuggestedBounds``.
    """

    side: PublicSide
    laws: Mapping[str, object]
    share: float
    rng: np.random.Generator
    bounds: dict[str, object]
    notes: list[str] = field(default_factory=list)
    times: dict[str, float] = field(default_factory=dict)

    def covariates(self) -> None:
        """Bounds of private covariates, from their laws."""
        known = {p.name: p for likelihood in self.side.spec.likelihoods for p in likelihood.inputs if p.private and not p.parent}
        for name in self.laws:
            if name not in known:
                words = f"Write one of {', '.join(map(repr, known))}." if known else "Leave covariate_law out."
                raise Refusal(f"covariate_law names {name!r}, which is no private covariate. {words}")
        for name, placeholder in known.items():
            if placeholder.index or placeholder.variable.type.dtype == "bool" or name in self.bounds:
                continue
            if name not in self.laws:
                law = f"pm.{'DiscreteUniform.dist(0, 3)' if placeholder.whole else 'Normal.dist(40, 12)'}"
                self.notes.append(f"{name} is private and nothing is known of it: write covariate_law={{{name!r}: {law}}}, or its bounds")
                continue
            values = drawn_from(self.laws[name], name, LAW_DRAWS, entries_of(placeholder), self.rng)
            pairs = [self._ends(column, whole=placeholder.whole) for column in values.reshape(LAW_DRAWS, -1).T]
            self.bounds[name] = pairs[0] if len(set(pairs)) == 1 else pairs
            self.notes.append(f"{name}: {self.share:.4g} of its law in covariate_law lies within")

    def observed(self, assuming: Mapping[str, object]) -> None:
        """Bounds of observed variables and of linear predictors, from the priors."""
        wanted = list(self._wanted())
        if not wanted:
            return
        truth = simulated_unknowns(self.side.spec, assuming, DRAWS, self.rng)
        for likelihood, linked in wanted:
            name = predictor_name(likelihood) if linked else likelihood.name
            lacking = self._lacking(likelihood)
            if lacking:
                self.notes.append(f"{name}: it rests on {lacking}, of which nothing is known")
                continue
            side = replace(self.side, protection=replace(self.side.protection, bounds=self.bounds))
            *parents, row = rows_for(side, likelihood, self.laws, ROWS, self.rng)
            if linked:
                row = replace(row, likelihood=replace(likelihood, again=_mean))
            rows = [*parents, row]
            values = drawn_on(truth, rows, int(self.rng.integers(2**31)))[likelihood.name].values[0].astype(float)
            self._of_values(likelihood, name, _predictor(values, likelihood) if linked else values, linked)

    def _lacking(self, likelihood: Likelihood) -> str:
        """Private covariates of which nothing is known, of this likelihood and of those above it."""
        several = [
            placeholder for ancestor in with_parents(self.side.spec, [likelihood.name], {}) for placeholder in private_covariates(ancestor)
        ]
        known = {*self.bounds, *self.laws}
        names = [p.name for p in several if not p.parent and p.name not in known and p.variable.type.dtype != "bool"]
        return ", ".join(dict.fromkeys(names))

    def _wanted(self) -> Iterator[tuple[Likelihood, bool]]:
        """Likelihoods that need bounds, or whose linear predictor does."""
        for likelihood in self.side.spec.likelihoods:
            if likelihood.aggregate:
                continue
            if likelihood.natural is None and likelihood.name not in self.bounds:
                yield likelihood, False
            linear = likelihood.linear
            if linear is not None and linear.link and predictor_name(likelihood) not in self.bounds and self._real(likelihood):
                yield likelihood, True

    def _real(self, likelihood: Likelihood) -> bool:
        """Whether a private covariate is a real number and no closed list of levels, so that there are no cells."""
        try:
            covariates = covariate_bounds(likelihood, self.bounds)
        except Unreduced as reason:
            raise Refusal(f"{likelihood.name} cannot be released: {reason}.") from None
        closed = {name for name, bounded in covariates.items() if bounded.levels is not None}
        return any(not placeholder.whole and placeholder.name not in closed for placeholder in private_covariates(likelihood))

    def _of_values(self, likelihood: Likelihood, name: str, values: np.ndarray, linked: bool) -> None:
        """Bounds that hold nearly all of these values (draws, rows, ...), and whether they are of use."""
        if not np.isfinite(values).all():
            self.notes.append(f"{name}: the priors give values that are not finite, so no bounds hold them. Narrow the priors.")
            return
        kind = "real" if linked else kind_of(likelihood)
        vector = likelihood.distribution == "MvNormal" and not linked
        columns = values.reshape(-1, values.shape[-1]).T if vector else [values.ravel()]
        pairs = [self._ends(column, kind=kind) for column in columns]
        if linked:
            pairs = [(max(lower, -MOST_PREDICTOR / 2), min(upper, MOST_PREDICTOR / 2)) for lower, upper in pairs]
            if pairs[0][0] == -MOST_PREDICTOR / 2 or pairs[0][1] == MOST_PREDICTOR / 2:
                self.notes.append(f"{name}: the priors expect more than bounds of it can hold, so they are the widest. Narrow the priors.")
        self.bounds[name] = pairs[0] if len(set(pairs)) == 1 else pairs
        self.notes.append(
            f"{name}: {self.share:.4g} of what the priors expect lies within ({DRAWS} draws of the unknowns, {values.shape[1]} values each)"
        )
        self._warn(name, values.reshape(len(values), -1), pairs)

    def _warn(self, name: str, values: np.ndarray, pairs: list[tuple[float, float]]) -> None:
        """Say where bounds are so wide that noise, which goes with them, drowns what lies within."""
        spread = float(np.median(np.subtract(*np.quantile(values, [0.975, 0.025], axis=1))))
        width = max(upper - lower for lower, upper in pairs)
        self.times[name] = width / spread if spread > 0 else inf
        if spread * USELESS < width:
            times = f"{width / spread:.3g} times" if spread > 0 else "many times"
            self.notes.append(
                f"{name}: these bounds are {times} as wide as values spread for given unknowns, and noise grows with them: of little use."
                " Narrow the priors, or write bounds that you know."
            )

    def _ends(self, values: np.ndarray, kind: str = "real", whole: bool = False) -> tuple[float, float]:
        """Central quantiles, rounded outward to numbers that are easily read."""
        lower, upper = (float(end) for end in np.quantile(values, [(1 - self.share) / 2, (1 + self.share) / 2]))
        return rounded(lower, upper, "whole" if whole else kind)


def rounded(lower: float, upper: float, kind: str) -> tuple[float, float]:
    """Bounds no narrower than these, in steps of a fifth of the power of ten below their width, as a family can use them.

    Parameters
    ----------
    lower, upper : float
    kind : {"real", "positive", "nonnegative", "unit", "integer", "whole"}
        What values a family allows; "whole" for integers of either sign.
    """
    if kind in ("integer", "nonnegative"):
        lower = 0.0
    width = upper - lower
    size = 10.0 ** floor(log10(width if width > 0 else max(abs(upper), 1.0)))
    if kind in ("integer", "whole"):
        step = max(int(size / 5), 1)
        least = floor(lower / step) * step
        return least, max(ceil(upper / step) * step, least + 1)
    low, high = _times(floor(lower / size * 5), size / 5), _times(ceil(upper / size * 5), size / 5)
    if kind == "unit":
        return _below(lower), 1 - _below(1 - upper)
    if kind == "positive" and low <= 0:
        low = _below(lower)
    return low, max(high, low + size / 5)


def _times(steps: int, step: float) -> float:
    """A number of steps as the decimal that it is."""
    return float(f"{steps * step:.12g}")


def _below(value: float) -> float:
    """The largest number of one digit that is no larger than a positive one."""
    value = max(value, 1e-12)
    size = 10.0 ** floor(log10(value))
    return float(f"{floor(value / size * (1 + 1e-12)) * size:.6g}")


def _mean(*parameters: Variable) -> Variable:
    """The first parameter of a distribution, which stands in its place."""
    return parameters[0]


def _predictor(values: np.ndarray, likelihood: Likelihood) -> np.ndarray:
    """The linear predictor of a mean, within the widest bounds that it can have."""
    from scipy.special import logit  # not with the package: import is to be light

    assert likelihood.linear is not None
    with np.errstate(all="ignore"):
        predictor = logit(values) if likelihood.linear.link == "logit" else np.log(values)
    return np.clip(predictor, -MOST_PREDICTOR, MOST_PREDICTOR)
