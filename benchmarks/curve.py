"""How far the curve that logistic scores follow is off, without noise: prints a table of docs/theory.md.

    python benchmarks/curve.py

Of infinitely many records with an intercept, a slope and a feature of a known distribution, exact scores and their exact information are
taken at anchors whose slope is wrong. What is left is the error of the law that the feature is taken to have (docs/theory.md): the
coefficients at which these scores are expected, less the true ones.
"""

import numpy as np
from scipy import optimize, stats
from scipy.special import expit

from pymc_dp.families.expected_scores import expected_scores
from pymc_dp.families.scores import Scores

SLOPE, LEVEL, LIMIT = 2.0, 0.3, 6.0
ANCHORS = (0.5, 0.75, 1.5)
"""Slopes of anchors, in parts of the true one. The intercept is the one with which as many responses are expected to be 1."""
GRID = 20_001
DENSITIES = {
    "normal, bounds 5 sd out": (stats.norm.pdf, -5, 5),
    "uniform": (lambda x: np.ones_like(x), -np.sqrt(3), np.sqrt(3)),
    "two humps": (lambda x: stats.norm.pdf(x, -1.5, 0.3) + stats.norm.pdf(x, 1.5, 0.3), -3, 3),
    "log-normal": (lambda x: stats.lognorm.pdf(x, 0.7, scale=np.exp(-0.5)), 0, 8),
}
VALUES = {"binary, two in five": 0.4, "binary, one in 50": 0.02}


def features():
    """To values of a feature, from -1 to 1, their probabilities and half the width of its bounds."""
    for name, (density, low, high) in DENSITIES.items():
        x = np.linspace(low, high, GRID)
        yield name, x * 2 / (high - low) - (high + low) / (high - low), density(x) / density(x).sum(), (high - low) / 2, (low + high) / 2
    for name, share in VALUES.items():
        yield name, np.array([-1.0, 1.0]), np.array([1 - share, share]), 0.5, 0.5


def level(u, chance, slope, ones):
    """The intercept with which this share of responses is expected to be 1."""
    return optimize.brentq(lambda e: chance @ expit(e + slope * u) - ones, -40, 40)


def found(u, chance, true, anchor):
    """The slopes that scores of records with ``true`` coefficients give at an anchor: by the curve, and by a straight line."""
    design = np.column_stack([np.ones_like(u), u])
    at = expit(design @ anchor)
    weight = chance * at * (1 - at)
    size = weight.sum()
    moments = (design * weight[:, None]).T @ design / size
    score = (chance * (expit(design @ true) - at)) @ design / size
    mean, covariance = moments[0, 1:], moments[1:, 1:] - moments[0, 1] ** 2
    expected = expected_scores(Scores(2, "logit", 1.0, (-LIMIT, LIMIT)), anchor[None], mean[None], covariance[None])
    root = np.linalg.inv(np.linalg.cholesky(moments))

    def misfit(coefficients):
        return root @ (expected((coefficients - anchor)[None])[0] - score)

    curve = optimize.least_squares(misfit, anchor, bounds=(-10 * LIMIT, 10 * LIMIT))
    return curve.x[1], (anchor + np.linalg.solve(moments, score))[1]


def main():
    heads = [f"anchor {part:g} times: {law}" for part in ANCHORS for law in ("curve", "straight line")]
    print(f"| feature | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 1)}")
    for name, u, chance, half, middle in features():
        true = np.array([LEVEL + SLOPE * middle, SLOPE * half])
        ones = chance @ expit(true[0] + true[1] * u)
        cells = []
        for part in ANCHORS:
            anchor = np.array([level(u, chance, part * true[1], ones), part * true[1]])
            cells += [f"{slope / half - SLOPE:+.2f}" for slope in found(u, chance, true, anchor)]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
