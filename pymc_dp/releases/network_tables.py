"""The counts of a Bayesian network's variables, computed from noisy numbers that serve several of them: Fourier coefficients, or a
child's table.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import sqrt

import numpy as np

from pymc_dp.models.spec import RecordPaths
from pymc_dp.plans.network import MOST_COEFFICIENTS, Network, Node, network_of
from pymc_dp.plans.plan import Plan
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.plans.walsh import bits_of, divisor_of, inflation_of, weight_of
from pymc_dp.privacy.accounting import Cost, Refusal
from pymc_dp.privacy.mechanisms import Fourier, Mechanism, check_law
from pymc_dp.privacy.receipts import Draw, Receipt
from pymc_dp.releases.cells import PublicCells
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.statistics import family_tables, records_of


def coefficients_draw(network: Network | None, unlike: str, weights: object, noise: Fourier, total: Cost, neighbours: str) -> Draw:
    """The one draw of noise that Fourier coefficients need, or a refusal."""
    if network is None:
        raise Refusal(f'Fourier coefficients are those of a Bayesian network, and {unlike}. Write mechanism="laplace".')
    if weights is not None:
        raise Refusal("Fourier coefficients are shared by all families, so epsilon is not divided. Leave weights out.")
    if network.size() > MOST_COEFFICIENTS:
        raise Refusal(f'The families have more than {MOST_COEFFICIENTS:,} coefficients together. Write mechanism="laplace".')
    difference, square = network.fourier_sensitivity(neighbours), network.fourier_square(neighbours)
    size = len(network.coefficients) - (neighbours == "replace")  # the empty one is the number of records
    scale = noise.calibrate(difference, square, total)
    check_law(noise, scale, 1.0)
    return Draw("Fourier coefficients", noise.priced_as, difference, square, scale, size)


def by_coefficients(
    opened: list[PublicCells], exact: Mapping[str, np.ndarray], network: Network, noise: Fourier, total: Cost, draw: Draw,
    shift: int | None, receipt: Receipt,
) -> dict[str, NoisyStatistic]:  # fmt: skip
    """Every observed variable's counts, from noisy Fourier coefficients of the exact tables of all nodes."""
    tables, statistics = _noisy_tables(exact, network, noise, draw, receipt), {}
    shift = network.needed_shift(tables) if shift is None else shift
    known = draw.size < len(network.coefficients)
    for cells in opened:
        shape = network.shape(next(node for node in network.nodes if node.variable == cells.name))
        statistics[cells.name] = cells.noisy_statistic(
            _laid_out(cells.planned, network, tables), noise, draw, total, divisor=divisor_of(shape),
            deviation=0.0 if known and divisor_of(shape) == 2 else noise.deviation(draw.scale, bits_of(shape), inflation_of(shape)),
            shift=shift * weight_of(shape),
        )  # fmt: skip
    return statistics


def exact_tables(opened: Sequence[PublicCells], paths: Mapping[str, RecordPaths], network: Network) -> dict[str, np.ndarray]:
    """The exact tables of all nodes, of the records in a model, for the caller to add noise to."""
    arrays = {cells.name: records_of(paths[cells.name].observed) for cells in opened}
    return family_tables([cells.planned for cells in opened], arrays, network)


def _noisy_tables(
    tables: Mapping[str, np.ndarray], network: Network, noise: Fourier, draw: Draw, receipt: Receipt
) -> dict[str, np.ndarray]:
    """For every node the noisy table, as ``Network.tables`` gives it. The exact coefficients exist on these lines only."""
    exact = network.transformed(tables)
    known = len(exact) - draw.size
    return network.tables(np.concatenate([exact[:known], noise.draw(exact[known:], draw.scale, receipt)]))


def shift_of(noise: Mechanism, network: Network | None, total: Cost, neighbours: str) -> int | None:
    """What is added to the empty coefficient, decided before a record is read; None where the noisy tables decide."""
    if not isinstance(noise, Fourier) or noise.nonnegative == "minimal" or network is None:
        return None
    epsilon = float(total.epsilon)
    t = network.stealth(epsilon, neighbours) if noise.nonnegative == "stealth" else float(noise.nonnegative)
    return int(min(network.paper_shift(t, epsilon), 2.0**62))


def _laid_out(planned: PlannedStatistic, network: Network, tables: Mapping[str, np.ndarray]) -> np.ndarray:
    """Noisy tables as a likelihood's statistics: (cells, *C, K)."""
    columns = [tables[node.name].reshape(planned.grid.size, -1) for node in network.nodes if node.variable == planned.likelihood.name]
    several = np.stack(columns, axis=1).reshape(planned.grid.size, *planned.likelihood.columns, columns[0].shape[-1])
    return several[..., 1:] if len(planned.statistics) < several.shape[-1] else several


def from_child(cells: PublicCells, child: NoisyStatistic, network: Network, holder: Node, noise: Mechanism) -> NoisyStatistic:
    """The counts of a variable as the sums of its child's noisy ones: as many noises are added up as the child has levels."""
    node = network.nodes[network.place[cells.name]]
    table = child.noisy.reshape(len(child.noisy), -1, holder.levels)[:, holder.column].sum(axis=-1).reshape(network.shape(holder)[:-1])
    table = table.transpose([holder.parents.index(name) for name in (*node.parents, node.name)])
    deviation, divisor = child.noise.standard_deviation * sqrt(holder.levels), 1
    if len(cells.planned.statistics) < node.levels:  # one of two counts: half of what all, less the other, and itself make
        table, divisor, deviation = cells.cells.n.sum() + table[..., 1:] - table[..., :1], 2, deviation / sqrt(2)
    sensitivity = cells.planned.sensitivity
    difference, square = divisor * sensitivity.difference, divisor**2 * sensitivity.square
    draw = Draw(cells.name, noise.priced_as, difference, square, child.scale, table.size)
    noisy = table.reshape(cells.shape)
    return cells.noisy_statistic(noisy, noise, draw, Cost(Fraction(0)), divisor=divisor, deviation=deviation)


def shared_tables(whole: Plan, noise: Mechanism) -> tuple[Network | None, str, dict[str, Node]]:
    """The network, or why there is none, and what ``covered_by_children`` says; a refusal of what cannot be released once for several."""
    network, unlike = network_of(whole.statistics)
    if isinstance(noise, Fourier) or noise.share_counts:
        check_released_together(whole)
    return network, unlike, covered_by_children(noise, network, unlike)


def covered_by_children(noise: Mechanism, network: Network | None, unlike: str) -> dict[str, Node]:
    """Observed variables that are not released by themselves, with the node whose table holds their counts."""
    if not noise.share_counts:
        return {}
    if network is None:
        raise Refusal(f"Counts are shared in a Bayesian network, and {unlike}. Leave share_counts out.")
    return network.covered()


def check_released_together(whole: Plan) -> None:
    """Refuse to release the tables of several variables at once where each has to be released by itself."""
    if left_out := next((planned for planned in whole.statistics if planned.left_out), None):
        raise Refusal(
            f"Of {left_out.likelihood.name} records are left out where something is missing, so that families are not counted from the same"
            ' records. Write mechanism="laplace", or let missing values count as a level.'
        )
    if whole.disjoint:
        raise Refusal('Disjoint observed variables are each released by themselves. Write mechanism="laplace", or leave disjoint out.')
    if whole.protection.person is not None:
        name = whole.protection.person.name
        raise Refusal(f'All rows of one {name} are protected where every table is released by itself. Write mechanism="laplace".')
