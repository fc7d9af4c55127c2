"""Whether a released statistic belongs to a likelihood: shapes and what is declared decide, values are not looked at."""

from collections.abc import Mapping

import numpy as np

from pymc_dp.models.level_labels import named_axes, texts_of_levels
from pymc_dp.models.public_inputs import ROUNDING, same_inputs
from pymc_dp.models.spec import Likelihood
from pymc_dp.plans.covariate_features import CovariateFeatures
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.releases.noisy_statistic import NoisyStatistic


def difference(likelihood: Likelihood, noisy: NoisyStatistic, labels: Mapping[str, tuple[object, ...]], holder: str = "") -> str | None:
    """The difference, in words, between a statistic and what would be released of a likelihood; None where it fits.

    Parameters
    ----------
    likelihood : Likelihood
        Of a model that takes the statistic in place of records.
    noisy : NoisyStatistic
    labels : mapping
        What that model calls the levels of its arrays and observed variables: see ``models.level_labels.labels_of_axes``.
    holder : str
        Whose statistic it is, where there are several: the model may have this name before those of its arrays.
    """
    linear = likelihood.linear.names if noisy.regression is not None and likelihood.linear is not None else None
    domain, natural = noisy.domain, likelihood.natural
    if noisy.distribution != likelihood.distribution:
        return f"it was released from a {noisy.distribution}, and the model has a {likelihood.distribution}"
    if noisy.noisy.shape[1:-1] != likelihood.columns:
        return f"it has columns of shape {noisy.noisy.shape[1:-1]}, and the model has {likelihood.columns}"
    if domain.levels != likelihood.levels:
        return f"it has {domain.levels} levels, and the model has {likelihood.levels}"
    if domain.unknown != likelihood.unknown:
        narrow = any(was and not now for was, now in zip(domain.unknown, likelihood.unknown, strict=True))
        return "other parameters of its distribution were unknown when it was released than are in the model" + (
            ", and one that you know needs a narrow prior in the place of its number" if narrow else ""
        )
    if natural is not None and not domain.edges and not likelihood.aggregate and (domain.lower, domain.upper) != natural:
        return f"its values lie from {domain.lower:g} to {domain.upper:g}, and the model's from {natural[0]:g} to {natural[1]:g}"
    family = likelihood.family
    for place, called in () if family is None or noisy.regression is not None else family.KNOWN + family.FIXED:
        if domain.known[place] != likelihood.known[place]:
            return f"its statistics rest on {called}, which was {domain.known[place]} and is {likelihood.known[place]} in the model"
    if noisy.tabulated != (likelihood.make is not None) or bool(domain.edges) != (likelihood.between is not None):
        return "it is a table of counts and the model's likelihood is none, or the other way round"
    if (linear is None) != (noisy.regression is None) or (noisy.regression is not None and noisy.regression.names != linear):
        return f"it has the features {_features(noisy)}, and the model's mean has {', '.join(linear) if linear else 'none'}"
    if noisy.regression is not None and not _has_features(likelihood, noisy):
        return "its features are other functions of the covariates than those of the model's mean, or the same written in another way"
    if set(noisy.binned) != likelihood.in_bins:
        names = ", ".join(sorted(set(noisy.binned) ^ likelihood.in_bins))
        return f"{names} was counted in bins where it was released and is not in the model, or the other way round"
    if len(noisy.inputs) != len(likelihood.inputs):
        arrays = ", ".join(placeholder.name for placeholder in likelihood.inputs) or "none"
        return f"it was released with {len(noisy.inputs)} arrays above the likelihood, and the model has {arrays}"
    if order := _in_another_order(likelihood, noisy, holder):
        return order
    if any(value.ndim != placeholder.variable.type.ndim for value, placeholder in zip(noisy.inputs, likelihood.inputs, strict=True)):
        return "arrays above its likelihood had other numbers of axes than the model's have"
    other = [p.name for told, p in zip(noisy.told, likelihood.inputs, strict=False) if not same_inputs(told, p.readings)]
    if other:
        return f"{other[0]} was in it as another function, or beside other constants, than it is in the model"
    return _other_labels(likelihood, noisy, labels)


def _other_labels(likelihood: Likelihood, noisy: NoisyStatistic, labels: Mapping[str, tuple[object, ...]]) -> str | None:
    """What stands in the place of something with other labels than in the release, in words. Labels that are nowhere there say nothing."""
    names, several = named_axes(likelihood), texts_of_levels(likelihood, labels)
    for called, was, now in zip(names, noisy.labels, several, strict=False):
        if moved := [label for label in was if label in now and was.index(label) != now.index(label)]:
            places = f"{was.index(moved[0])} and is level {now.index(moved[0])} of {called}"
            return f"{moved[0]!r} was level {places} in the model, which has its labels in another order"
        if was and now and not set(was) & set(now) and was in several:
            return f"{called} had the labels that {names[several.index(was)]} has in the model, so that one is taken for the other"
    return None


def _in_another_order(likelihood: Likelihood, noisy: NoisyStatistic, holder: str) -> str | None:
    """Which arrays stand in another order than in the release, in words: a statistic is of the first, the second and so on."""
    now = [placeholder.name.removeprefix(f"{holder}_") for placeholder in likelihood.inputs]
    was_common, now_common = [name for name in noisy.named if name in now], [name for name in now if name in noisy.named]
    if was_common == now_common:
        return None
    return f"it was released from a model with {', '.join(was_common)} in this order, and the model has {', '.join(now_common)}"


def _has_features(likelihood: Likelihood, noisy: NoisyStatistic) -> bool:
    """Whether the model's features have the means that those of the release have, over points within bounds. Older releases hold none."""
    assert noisy.regression is not None
    told = np.array(noisy.regression.probed)
    if not told.size:
        return True
    own = np.array(CovariateFeatures(likelihood, {name: ends for name, *ends in noisy.covariates}).probed())
    # Each in its own units: incomes may stand beside shares.
    return told.shape == own.shape and bool((np.abs(told - own) <= ROUNDING * own[1]).all())


def _features(noisy: NoisyStatistic) -> str:
    return "none" if noisy.regression is None else ", ".join(noisy.regression.names)


def refuse_older(noisy: NoisyStatistic) -> None:
    """Refuse what an older version released in a form whose intervals did not hold."""
    if noisy.regression is not None and noisy.regression.link and not noisy.anchor.size:
        raise Refusal(
            f"{noisy.variable} was released by an older version, as moments of features, whose intervals did not hold. Read its numbers"
            f" with Release[{noisy.variable!r}].values, or release the model again."
        )
