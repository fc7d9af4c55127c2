"""What the cells of a released statistic are called."""

from pymc_dp.models.spec import Likelihood, ModelSpec
from pymc_dp.releases.noisy_statistic import NoisyStatistic


def labels_of_cells(spec: ModelSpec, likelihood: Likelihood, noisy: NoisyStatistic) -> list[object] | None:
    """Labels of the cells, where a single public index into a labelled dim makes them."""
    if len(likelihood.inputs) != 1 or likelihood.inputs[0].labels is None or likelihood.aggregate or noisy.weights.size:
        return None
    labels = spec.coords.get(likelihood.inputs[0].labels)
    return None if labels is None else [labels[int(k)] for k in noisy.inputs[0]]
