"""Anchors: the coefficients at which scores are summed next, and what released scores and their information say of the coefficients.

Everything here is arithmetic on what is public. Shapes: B cells, F features.
"""

from collections.abc import Callable, Mapping, Sequence
from math import sqrt

import numpy as np

from pymc_dp.families.expected_scores import Expected, expected_scores, undetermined
from pymc_dp.families.scores import Scores

STEPS = 40
"""Levenberg-Marquardt steps towards coefficients that fit best."""
STRAIN = 0.3, 0.2
"""By what part of the mean of scores a straight line may be off in every direction: of one slope, and of more, which have more directions.

Of 1,000 records with two humps, a slope of 2 and epsilon 1, 90 % intervals of it held .70 of 50 data sets at .2, and .86 and .88 at .3,
in two releases of each.
"""
FIRST_STRAIN = 0.1
"""By what part of the mean of scores the curve of the first step is off, about, in what features without two values leave of the step.

That is how far it is off in all directions together, which are taken to be alike.

Of 30,000 records with 1 to 8 features and slopes of .5 to 3, 12 data sets each, root mean squares were .04 to .15 with normal features, .03
to .12 with uniform ones, up to .1 with two humps, .15 to .22 with skewed ones, .02 to .09 with binary features beside normal ones. With
binary features alone, common or rare, nothing is left, and the curve was off by at most .003 of what a straight line says.
"""
LATER = 0.5
"""How far anchors may be moved after the first round, by what is believed beforehand: in parts of how far they may in the first."""
BENT = 0.1
"""What the curve of a first step is taken to be off by if two more rounds follow, with a logit link: a part of what a straight line says.

The curve is that of features with two values. Of others the step that fits exact sums may be far too long (``_inverted``). At an anchor
that is too steep all weights are small, so that noise hides what the next round says; one that is too flat costs little if another round
follows. If none does, it costs more: what is left to the curve is then far.
"""
WORTH = 1.3
"""What one more round must be expected to leave open at most, in parts of what two would.

Of 26 kinds of records that were simulated at epsilon 1, what is reckoned was .7 times what one round then left open and .8 times what two
did, geometric means, but of single kinds a tenth or ten times of it. At 1.3 the four covariates of `adult_uci` mostly get one more round,
after which linear predictors are off by 1.5 times what they are without privacy, and by 2.0 after two. For a normal feature with a slope of
2 and 20,000 records it is the other way, 2.9 and 1.8 times; at 1 that one gets two.
"""
NEAR = 0.3
"""Up to which mean square of the steps that linear predictors make from the first anchor the next round may be taken there, too.

At this mean square a posterior's expected scores of a single feature are off by at most 2 % of what a straight line says if it is normal,
uniform, binary, common or rare, or has two humps, and by 13 % if it is log-normal; ``widened`` allows a standard deviation of 15 to 22 %.
Slopes further off are found too steep where noise is strong: in a trial that allowed 2.5 and took one round more often, with a
curve for normal features, of 1,000 records with two humps at epsilon 1, 90 % intervals of a slope of 1 held .68, and of 2 .60, of 50 each.
"""
CLOSE = 1.05
"""How much more than with the best split the second of three rounds may leave open, if the last one then has less noise.

What is reckoned counts what a sample leaves open, too, which no split changes, and what the curve may be off by, which is more than it is
off for most records; the noise of the last round is known. For the four covariates of `adult_uci` at epsilon 5 slopes are off by .012
with 10 and 70 %, and by .015 with 20 and 60 %, root mean squares of 60 releases each.
"""
LEAST_VARIANCE = 1e-9
"""The least variance of any combination of features that anchors reckon with."""


def first_anchor(scores: Scores, batch: tuple[int, ...]) -> np.ndarray:
    """The anchor (*batch, F) of the first round, when nothing is known: the middle of the linear predictor's bounds."""
    anchor = np.zeros((*batch, scores.features))
    anchor[..., 0] = scores.middle
    return anchor


def next_anchor(
    scores: Scores, score: np.ndarray, information: np.ndarray, noise: float, anchor: np.ndarray, bent: float = 0.0
) -> np.ndarray:
    """Coefficients (B, F) nearer to those of the records, from what was released at an anchor. Any result is as private as another.

    Parameters
    ----------
    score, information : (B, F) and (B, F, F) ndarrays
        With noise, in units of 1.
    noise : float
        Its standard deviation, in these units.
    bent : float
        What the curve is taken to be off by, as ``BENT`` says.
    """
    expected, first = anchor, not anchor[..., 1:].any()
    if first and len(score) > 1:  # what all cells say together is where each is expected
        together = score.sum(axis=0)[None], information.sum(axis=0)[None], noise * np.sqrt(len(score))
        expected = _inverted(scores, *together, anchor[:1], anchor[:1], bent=bent) + np.zeros_like(anchor)
    coefficients = _inverted(scores, score, information, noise, anchor, expected, 1.0 if first else LATER, bent)
    middle, half = first_anchor(scores, (1,)), (scores.predictor[1] - scores.predictor[0]) / 2
    return middle + np.clip(np.nan_to_num(coefficients - middle), -2 * half, 2 * half)


def best_way(
    scores: Scores, score: np.ndarray, information: np.ndarray, noise: float, anchor: np.ndarray, there: np.ndarray,
    ways: Mapping[str, Sequence[float]],
) -> str:  # fmt: skip
    """How what is left after the first round is best spent: in one more round, at the first anchor or at the next, or in two.

    At the first anchor a record moves sums less, so that noise is less. But slopes are then told by scores further off, which must be
    allowed for (``widened``). One round has less noise than the last of two, whose anchor is nearer; and of two the last has the less
    noise, the less is left to the second. What each is expected to leave open is reckoned in squares of what linear predictors are off
    by, added up over records: any result is as private as another.

    Parameters
    ----------
    score, information, anchor : (B, F), (B, F, F) and (B, F) ndarrays
        Released in the first round, with noise, in units of 1.
    noise : float
        Standard deviation of the noise of the first round, in these units.
    there : (B, F) ndarray
        The anchor that these tell.
    ways : mapping of str to sequence of float
        Standard deviations of the noise of the rounds that are left: of one more at the first anchor ("here"), of one at the next
        ("there"), of two ("twice"), and of two whose second has ever less of epsilon (any other names, in this order).

    Returns
    -------
    The name of a way
    """
    count, mean, covariance, moments = _feature_moments(scores, information, noise)
    step, F, spread = there - anchor, scores.features, _spread(scores)
    unweighted, own = count[:, None, None] * moments, STRAIN[F > 2]
    expected = expected_scores(scores, anchor, mean, covariance)
    values, vectors = np.linalg.eigh(_steepness(expected, step))
    told = count[:, None, None] * (vectors * np.maximum(values, LEAST_VARIANCE)[:, None]) @ vectors.transpose(0, 2, 1)

    def left(noise: float, off: np.ndarray, unsloped: bool = False, v: np.ndarray | None = None, strain: float = own) -> np.ndarray:
        """Covariance (B, F, F) of coefficients after a round whose steps have mean squares ``off`` (B, F, F).

        ``v`` (B,) is what of these the curve does not know, which is all where none is given. ``unsloped`` says that the round is at
        the first anchor.
        """
        v = np.einsum("bij,bij->b", moments, off) if v is None else v
        wider = 1 + count * scores.unit * (strain * v) ** 2 / (v + 0.25)
        variance = noise**2 * (1 + np.einsum("bii->b", off) / scores.times**2)
        of_score = told * scores.unit * wider[:, None, None] + variance[:, None, None] * np.eye(F)
        local = np.linalg.inv(told @ np.linalg.solve(of_score, told) + np.diag(spread**-2.0))
        # As far as noise may hide that a feature varies at all, its slope may be anything.
        information = unweighted if unsloped else told
        alone = 1 / np.einsum("bii->bi", np.linalg.inv(information))[:, 1:]
        narrower = spread[1:] / np.sqrt(np.einsum("bii->bi", local))[:, 1:]
        odds = (np.exp(-sqrt(2) * alone * scores.times / noise) * narrower).sum(axis=1)[:, None, None]
        return (local + odds * np.diag(spread**2)) / (1 + odds)

    square = step[:, :, None] * step[:, None, :]
    # The first curve is right for features with two values, as far as these make the step; and what noise on the information does to
    # expected scores is as much less than with a straight line as they are.
    straight = np.linalg.solve(moments, expected(step)[..., None])
    unknown = np.einsum("bi,bij,bj->b", step[:, 1:], undetermined(mean, covariance), step[:, 1:])
    first = left(noise, straight @ straight.transpose(0, 2, 1), True, unknown, FIRST_STRAIN / sqrt(F))

    def total(of_coefficients: np.ndarray) -> float:
        """Squares of linear predictors, added up."""
        return float(count @ np.einsum("bij,bij->b", moments, of_coefficients))

    twice = {way: total(left(pair[1], left(pair[0], first))) for way, pair in ways.items() if len(pair) > 1}
    once = {"there": total(left(ways["there"][0], first))}
    if total(square) <= NEAR * count.sum():
        [here] = ways["here"]
        once["here"] = total(left(here, square + left(here, square + first, True), True))
    way = min(once, key=lambda way: once[way])
    if once[way] < WORTH * twice["twice"]:
        return way
    close = [way for way, error in twice.items() if error <= CLOSE * min(twice.values())]
    return close[-1] if close else "twice"  # what is no number decides nothing, and nothing fails


def _steepness(expected: Expected, step: np.ndarray) -> np.ndarray:
    """Derivatives (B, F, F) of expected scores by coefficients, a step from the anchor: the information there, per unit of weight."""
    near = 1e-4
    ahead, behind = (np.stack([expected(step + way * unit) for unit in np.eye(step.shape[1])], axis=2) for way in (near, -near))
    steepness = (ahead - behind) / (2 * near)
    return (steepness + steepness.transpose(0, 2, 1)) / 2


def straightened(scores: Scores, score: np.ndarray, information: np.ndarray, noise: float, anchor: np.ndarray) -> np.ndarray:
    """Coefficients (B, F) about which a straight line is where scores are expected to come from what they are expected to be there.

    The line is information times coefficients less these. At the anchor it would touch the curve; from a little off, as far as means
    and covariances of the features tell, it meets it.
    """
    _, mean, covariance, moments = _feature_moments(scores, information, noise)
    step = _inverted(scores, score, information, noise, anchor, anchor) - anchor
    expected = expected_scores(scores, anchor, mean, covariance)(step)
    return anchor + step - np.linalg.solve(moments, expected[..., None])[..., 0]


def _spread(scores: Scores) -> np.ndarray:
    """How far (F,) coefficients of scaled features may be from where they are expected beforehand: a standard deviation."""
    return (scores.predictor[1] - scores.predictor[0]) / 4 * np.array([2.0, *[1.0] * (scores.features - 1)])


def _step(scores: Scores, score: np.ndarray, information: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean (B, F) and covariance (B, F, F) of coefficients less their anchor, which are normal about 0 beforehand."""
    scaled = information / scores.unit
    ridge = noise**2 + LEAST_VARIANCE * np.einsum("bii->b", np.abs(scaled))
    onto = information @ np.linalg.inv(scaled + ridge[:, None, None] * np.eye(scores.features))
    covariance = np.linalg.inv(onto @ information + np.diag(_spread(scores) ** -2.0))
    return (covariance @ onto @ score[..., None])[..., 0], covariance


def widened(scores: Scores, score: np.ndarray, information: np.ndarray, noise: float) -> np.ndarray:
    """The factor (B,) by which a score's standard deviation grows, because scores off the anchor do not lie on a straight line.

    Where the linear predictor is off by t, the mean moves by weight t (1 + t (1 - 2 mean) / 2 + ...) with logit, and by weight
    (exp(t) - 1) with log: by a part of weight t that grows with t, and in which direction is not known. With v the mean square of t that
    is expected now, over records by weight, whitened scores are root(size v) long, and each may be off by
    STRAIN root(v / (v + 1/4)) of that, beside its own 1.

    Parameters
    ----------
    score, information : (B, F) and (B, F, F) ndarrays
        As far as released values tell, in units of 1.
    noise : float
        Standard deviation of the noise on a score.
    """
    step, covariance = _step(scores, score, information, noise)
    size = np.maximum(information[:, 0, 0], 1e-9)
    square = step[:, :, None] * step[:, None, :] + covariance
    v = np.einsum("bij,bij->b", information, square) / size
    return np.sqrt(1 + size * scores.unit * (STRAIN[scores.features > 2] * v) ** 2 / (v + 0.25))


def _feature_moments(scores: Scores, information: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Moments that the information tells: the sum of weights (B,), means (B, F - 1) and covariances of the features, and (B, F, F) of all.

    They are weighted, and no smaller than their noise, of which ``noise`` is the standard deviation before the information is divided.
    """
    noise = noise / scores.times
    count = np.maximum(information[:, 0, 0], noise)
    mean = np.clip(information[:, 0, 1:] / count[:, None], -1.0, 1.0)
    covariance = information[:, 1:, 1:] / count[:, None, None] - mean[:, :, None] * mean[:, None, :]
    values, vectors = np.linalg.eigh(covariance)
    least = np.clip(noise / count, LEAST_VARIANCE, 0.1)
    covariance = (vectors * np.clip(values, least[:, None], scores.features)[:, None]) @ vectors.transpose(0, 2, 1)
    moments = np.concatenate([np.ones((len(count), 1)), mean], axis=1)
    moments = moments[:, :, None] * moments[:, None, :]
    moments[:, 1:, 1:] += covariance
    return count, mean, covariance, moments


def _inverted(
    scores: Scores, score: np.ndarray, information: np.ndarray, noise: float, anchor: np.ndarray, about: np.ndarray, part: float = 1.0,
    bent: float = 0.0,
) -> np.ndarray:  # fmt: skip
    """Coefficients (B, F) at which the scores are expected, as far as means and covariances of the features, by weight, tell.

    ``about`` is what is expected of coefficients beforehand, their spread there ``part`` of the widest. With a logit link a step from an
    anchor with slopes is no longer than 1, in the predictor's root mean square, by weight: far from the anchor's own records its weights
    tell little. Scores have the further variance that ``bent`` says. Far from 0 they hardly grow with the predictor: where the law that
    features are taken to have is a little off, exact sums may be met by a step that is far too long.
    """
    spread = part * _spread(scores)
    count, mean, covariance, moments = _feature_moments(scores, information, noise)
    root = np.linalg.inv(np.linalg.cholesky(moments / scores.unit + (noise**2 / count)[:, None, None] * np.eye(scores.features)))
    root /= np.sqrt(count)[:, None, None]
    if bent:
        straight = np.einsum("bi,bi->b", score, np.linalg.solve(moments, score[..., None])[..., 0]) / count**2
        root /= np.sqrt(1 + count * (bent * straight) ** 2 / (straight + 0.25))[:, None, None]
    expected = expected_scores(scores, anchor, mean, covariance)

    def misfit(z: np.ndarray) -> np.ndarray:
        away = score - count[:, None] * expected(about + z * spread - anchor)
        return np.concatenate([(root @ away[..., None])[..., 0], z], axis=1)

    step = about + fitted(misfit, np.zeros((len(score), scores.features)))[0] * spread - anchor
    if scores.link == "logit" and anchor[..., 1:].any():
        length = np.sqrt(np.einsum("bi,bij,bj->b", step, moments, step))
        step /= np.maximum(length, 1.0)[:, None]
    return anchor + step


def fitted(misfit: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least squares of misfits (M, R) by numbers (M, k), row by row, by Levenberg-Marquardt, and the derivatives (M, R, k) there."""
    k = x.shape[1]

    def slope(x: np.ndarray) -> np.ndarray:
        step = 1e-5
        return np.stack([(misfit(x + step * np.eye(k)[j]) - misfit(x - step * np.eye(k)[j])) / (2 * step) for j in range(k)], axis=2)

    damping, r = np.full(len(x), 1e-2), misfit(x)
    for _ in range(STEPS):
        J = slope(x)
        gram = np.einsum("bri,brj->bij", J, J)
        gradient = np.einsum("bri,br->bi", J, r)
        ridge = damping[:, None] * np.maximum(np.einsum("bii->bi", gram), 1e-12)
        step = np.linalg.solve(gram + ridge[:, :, None] * np.eye(k), gradient[..., None])[..., 0]
        there = x - np.clip(step, -1.0, 1.0)
        residual = misfit(there)
        better = (residual**2).sum(axis=1) < (r**2).sum(axis=1)
        x, r = np.where(better[:, None], there, x), np.where(better[:, None], residual, r)
        damping = np.where(better, damping / 3, damping * 4)
    return x, slope(x)
