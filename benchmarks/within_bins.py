"""By how much the slope of a regression is off because only the bin of a covariate is known: prints a table of docs/bins_measured.md.

    python benchmarks/within_bins.py

Of a Student-t regression the counts that are expected of N records are fitted, so that there is neither noise nor chance: what is left is
the error of the law that a covariate is taken to have within its bin (docs/bins.md), beside the standard deviation of the slope.
"""

import numpy as np
from scipy import optimize, stats

from pymc_dp.plans.bin_nodes import nodes_of
from pymc_dp.plans.bins import default_bins, default_covariate_bins
from pymc_dp.private_models.within_bins import AT_LEAST, STEEPEST, _differences

SLOPE, LEVEL, NU = 0.5, 0.5, 4.0
RECORDS = (50, 200, 2_000, 10_000, 100_000)
SHAPES = {
    "normal, 6 sd": (stats.norm.pdf, -3, 3),
    "gamma of shape 4": (lambda x: stats.gamma.pdf(x, 4, scale=0.5), 0, 6),
    "exponential": (stats.expon.pdf, 0, 5),
    "two humps": (lambda x: stats.norm.pdf(x, -1.5, 0.5) + stats.norm.pdf(x, 1.5, 0.5), -3, 3),
    "uniform": (lambda x: np.ones_like(x), -3, 3),
    "log-normal, .7": (lambda x: stats.lognorm.pdf(x, 0.7), 0, 8),
    "beta of .5 and .5": (lambda x: stats.beta.pdf((x + 3) / 6, 0.5, 0.5), -3, 3),
}
"""Densities, and the outer edges of bins, beyond which nothing is."""


def chances(x, parameters, edges):
    """Of the bins of the outcome, at covariates x: (*x, bins)."""
    level, slope, log_scale = parameters
    below = stats.t.cdf((edges[1:-1] - (level + slope * x)[..., None]) / np.exp(log_scale), NU)
    return np.diff(below, axis=-1, prepend=0.0, append=1.0)


def expected(density, x_edges, y_edges):
    """Shares of records in every bin of both."""
    nodes, weights = nodes_of(tuple(x_edges), False, 40)
    mass = weights * density(nodes) * np.diff(x_edges)[:, None]
    shares = (mass[..., None] * chances(nodes, (LEVEL, SLOPE, 0.0), y_edges)).sum(axis=1)
    return shares / shares.sum()


def assumed(counts, edges):
    """Nodes in every bin of a covariate and the weights that the private model gives them."""
    nodes, weights = nodes_of(tuple(edges), False, 12)
    widths, middles = np.diff(edges), (edges[1:] + edges[:-1]) / 2
    steep = _differences(middles, widths) @ np.log(counts / widths + AT_LEAST / widths.mean())
    weights = weights * np.exp(STEEPEST * np.tanh(steep / STEEPEST)[:, None] * (nodes - middles[:, None]) / widths[:, None])
    return nodes, weights / weights.sum(axis=1, keepdims=True)


def error(density, lower, upper, N, bins):
    """Of the slope, in standard deviations."""
    x_edges, y_edges = np.linspace(lower, upper, bins + 1), np.linspace(-6, 7, default_bins(N) + 1)
    counts = N * expected(density, x_edges, y_edges)
    nodes, weights = assumed(counts.sum(axis=1), x_edges)

    def loss(parameters):
        p = (weights[..., None] * chances(nodes, parameters, y_edges)).sum(axis=1)
        return -(counts * np.log(np.maximum(p, 1e-300))).sum()

    best = optimize.minimize(loss, [LEVEL, SLOPE, 0.0], method="BFGS").x
    step = 1e-3 * np.eye(3)
    curvature = [[sum(a * b * loss(best + a * one + b * other) for a in (1, -1) for b in (1, -1)) / 4e-6 for other in step] for one in step]
    return (best[1] - SLOPE) / np.sqrt(np.linalg.inv(curvature)[1, 1])


if __name__ == "__main__":
    rules = {N: default_covariate_bins(N, 1) for N in RECORDS}
    print("| x |", *(f"{N:,} records, {bins} bins |" for N, bins in rules.items()))
    print("|---|" + "---|" * len(rules))
    for name, shape in SHAPES.items():
        print(f"| {name} |", *(f"{error(*shape, N, bins):.2f} |" for N, bins in rules.items()))
