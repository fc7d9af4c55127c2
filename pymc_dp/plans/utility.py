"""How far the release of a Bayesian network will be from the truth, computed before anything is spent.

Nothing here reads a record. The bounds are those of ZRD16 (Proposition 1, Theorem 3), with exact
sensitivities, and one on the Kullback-Leibler divergence in the place of its Theorem 1, which is wrong as printed (docs/theory.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log, prod

import numpy as np
import pymc as pm

from pymc_dp.plans.network import MOST_COEFFICIENTS, Network, Node, network_of
from pymc_dp.plans.plan import planned_release
from pymc_dp.plans.protection import Protection, protection_of, with_records
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.plans.walsh import bits_of
from pymc_dp.privacy.accounting import Refusal, Weights, exact_epsilon, shares
from pymc_dp.privacy.guard import boundary
from pymc_dp.privacy.layout import aligned, as_written


@dataclass(frozen=True, repr=False)
class FamilyUtility:
    """Bounds for one family; each kind holds for all families at once, with the probability asked for.

    Attributes
    ----------
    node : Node
    laplace : float
        No noisy count is further from the exact one, with Laplace noise on the tables (Proposition 1).
    fourier : float
        The noisy table, with noise on Fourier coefficients, is no further from the exact one in L1 distance (Theorem 3, without a shift).
    divergence : float or None
        Kullback-Leibler divergence of the Dirichlet posteriors from noisy counts, clipped to what is possible, from those of the exact
        ones: no more than this, if the exact counts are as expected.
    """

    node: Node
    laplace: float
    fourier: float
    divergence: float | None
    __repr__ = as_written


@dataclass(frozen=True)
class Utility:
    """Bounds on the error of a release of a network: see ``utility``.

    Attributes
    ----------
    epsilon, confidence : float
    families : tuple of FamilyUtility
    """

    epsilon: float
    confidence: float
    families: tuple[FamilyUtility, ...]

    @property
    def divergence(self) -> float | None:
        """The divergence of all families together: those of independent tables add up."""
        divergences = [family.divergence for family in self.families]
        return None if None in divergences else sum(value for value in divergences if value is not None)

    def __repr__(self) -> str:
        header = ("family", "laplace: a count is off by at most", "fourier: a table is off by at most (L1)", "KL divergence at most (nats)")
        body = []
        for family in self.families:
            parents = f" | {', '.join(family.node.parents)}" if family.node.parents else ""
            divergence = "" if family.divergence is None else f"{family.divergence:.4g}"
            body.append((f"{family.node.name}{parents}", f"{family.laplace:.4g}", f"{family.fourier:.4g}", divergence))
        return f"with probability {self.confidence:g}, at epsilon {self.epsilon:g}:\n{aligned(header, body)}"


@boundary
def utility(
    model: pm.Model | None = None,
    *,
    epsilon: object,
    confidence: float = 0.9,
    records: int | None = None,
    prior: float = 1.0,
    expected: Mapping[str, object] | None = None,
    bounds: Mapping[str, object] | None = None,
    public: Iterable[object] = (),
    neighbours: str = "replace",
    weights: Weights = None,
) -> Utility:
    """Bound how far a release of a Bayesian network at this epsilon will be from the truth. It costs nothing and reads the graph only.

    Parameters
    ----------
    model : pm.Model, optional
        The model in context if left out.
    epsilon : int, float, Decimal or Fraction
        The cost of the release, in nats.
    confidence : float
        The probability with which the bounds hold: for all families at once.
    records : int, optional
        How many records there will be, which the divergence needs.
    prior : float
        The concentration of every entry of the tables' Dirichlet priors.
    expected : mapping, optional
        For nodes by name, the expected joint probabilities of the family, parents first; equal ones where left out. What you expect,
        never what the data say.
    bounds, public, neighbours, weights
        See ``release``.

    Returns
    -------
    Utility

    Raises
    ------
    Refusal
        When the model is no Bayesian network.

    Examples
    --------
    >>> bounds = pmdp.utility(network, epsilon=1.0, records=200)
    >>> [round(family.laplace) for family in bounds.families]
    [8, 16]
    """
    protection, nats = protection_of(bounds=bounds, public=public, neighbours=neighbours), float(exact_epsilon(epsilon))
    if not (isinstance(confidence, float) and 0 < confidence < 1 and prior > 0 and (records is None or records > 0)):
        raise Refusal("confidence lies between 0 and 1, prior and records are positive. Write for example confidence=0.9, records=1000.")
    statistics = planned_release(protection.read(with_records(model)), protection).statistics
    network = _network(statistics)
    most, off = _largest_errors(network, statistics, protection, nats, 1 - confidence, weights)
    families = []
    for node in network.nodes:
        shape, bound = network.shape(node), most[node.variable]
        divergence = None if records is None else _divergence(bound, records * _expected(expected, node, shape), prior)
        families.append(FamilyUtility(node, bound, 2 ** bits_of(shape) * off, divergence))
    return Utility(nats, confidence, tuple(families))


def _network(statistics: Sequence[PlannedStatistic]) -> Network:
    """The Bayesian network that these make, or a refusal."""
    network, unlike = network_of(statistics)
    if network is None:
        raise Refusal(f"Bounds on the error are offered for Bayesian networks, and {unlike}. See pymc_dp.inspect.")
    if network.size() > MOST_COEFFICIENTS:
        raise Refusal("The families have too many coefficients together. See pymc_dp.inspect.")
    return network


def _largest_errors(
    network: Network, statistics: Sequence[PlannedStatistic], protection: Protection, epsilon: float, risk: float,
    weights: Weights,
) -> tuple[dict[str, float], float]:  # fmt: skip
    """How far Laplace noise moves any count of each variable at most, and any Fourier coefficient, but for this risk."""
    counts = sum(planned.grid.size * prod(planned.likelihood.columns) * len(planned.statistics) for planned in statistics)
    sensitivities = {planned.likelihood.name: planned.sensitivity.difference for planned in statistics}
    parts = shares(list(sensitivities), weights)
    scale = {name: difference / (epsilon * float(parts[name])) for name, difference in sensitivities.items()}
    coefficients = len(network.coefficients) - protection.sized
    off = network.fourier_sensitivity(protection.neighbours) / epsilon * log(coefficients / risk)
    return {name: of_name * log(counts / risk) for name, of_name in scale.items()}, off


def _expected(expected: Mapping[str, object] | None, node: Node, shape: tuple[int, ...]) -> np.ndarray:
    if expected is None or node.name not in expected:
        return np.full(shape, 1 / prod(shape))
    table = np.asarray(expected[node.name], dtype=float)
    if table.shape != shape or not (table >= 0).all() or not np.isclose(table.sum(), 1):
        raise Refusal(f"expected must hold the joint probabilities of {node.name} and its parents, of shape {shape}, which add up to 1.")
    return table


def _divergence(bound: float, counts: np.ndarray, prior: float) -> float:
    """The largest Kullback-Leibler divergence where no count is off by more than this bound (docs/theory.md)."""
    from scipy.special import polygamma

    return 0.5 * bound**2 * float(polygamma(1, np.maximum(prior, prior + counts - bound)).sum())
