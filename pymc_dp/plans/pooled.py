"""Whether second moments may be summed over all cells, because only the intercept differs between cells: read off the graph."""

from pymc_dp.families.second_moments import Regression
from pymc_dp.models.structure import above
from pymc_dp.plans.covariate_features import CovariateFeatures
from pymc_dp.plans.statistic import PlannedStatistic


def may_pool(planned: PlannedStatistic) -> bool:
    """Whether only the intercept differs between public cells, and every feature is a private covariate of its own."""
    likelihood, regression = planned.likelihood, planned.regression
    if regression is None or likelihood.linear is None or not _plain(planned, regression):
        return False
    by_cell = {placeholder.variable for placeholder in likelihood.inputs if placeholder.axis is not None}
    if not likelihood.linear.by_cell[0] or any(likelihood.linear.by_cell[1:]):
        return False
    if any(variable in by_cell for variable in above(list(likelihood.parameters[1:]))):
        return False
    uses, straight = CovariateFeatures(likelihood, {name: bounded.plain for name, bounded in planned.bounds.items()}).uses()
    used_by_feature = uses[1:]
    return all(straight[1:]) and len(set().union(*used_by_feature)) == len(used_by_feature)


def _plain(planned: PlannedStatistic, regression: Regression) -> bool:
    """Whether numbers of records are public, and the response and its features as simple as the law of pooled sums takes them."""
    return (
        planned.sizes == "public"
        and not planned.exchanged
        and planned.at_most is None
        and not planned.grid.inputs
        and not planned.likelihood.columns
        and regression.q == 1
        and not regression.link
        and not regression.scale_known
        and not regression.basis
        and len(regression.names) > 1
        and all(regression.private[1:])
    )


def pooling_in_words(statistic: PlannedStatistic) -> str:
    """What is released where public cells are many, in words."""
    regression = statistic.regression
    assert regression is not None
    F, K = len(regression.names), len(statistic.statistics)
    by_cell = ", ".join(statistic.statistics[:F])
    return (
        f"only the intercept differs between public cells. Where those are many, {F} numbers are released of each ({by_cell}) and {K} over"
        " all cells, in place of all numbers of each. Before the noise both are multiplied by small whole numbers, chosen from how many"
        " records the cells have and how much noise there will be. The sensitivity shown is that of one cell where those are few; noise"
        " has the scale of the other"
    )
