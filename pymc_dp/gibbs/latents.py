"""The exact counts, as unknowns: they are drawn given the noisy ones, so that the rest of a private model is conjugate.

A noise-aware private model has the noise summed out, and no conditional of it is of a simple form. Given the counts as they would be
without noise it is that of the user's model. Drawing these first, and then a variable given them, leaves the variable's
conditional given the released counts unchanged (docs/theory.md): the counts are forgotten after each step, so the step goes
together with any other.
``private_models.likelihood`` says which law the counts have. Shapes: G cells.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.random import Generator
from pymc.logprob.utils import replace_rvs_by_values
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.families.categorical import Categorical
from pymc_dp.gibbs.conditional import Compiled, Point, compiled
from pymc_dp.laws import law as laws
from pymc_dp.private_models.likelihood import LATENT, cells_apart, law_of
from pymc_dp.releases.noisy_statistic import NoisyStatistic

POISSON = -1.0
"""In place of a number of trials where there is none."""
NATS = 42
"""A count as improbable as this, beside the likeliest, is left out."""
TRIES = 10_000
"""So often counts are drawn that add up to more than they can."""
MOST = 3000
"""Values of one count of several that add up: drawing them takes their square."""


@dataclass(frozen=True)
class Latent:
    """The counts of one observed variable, as they would be without noise.

    Attributes
    ----------
    random : Variable
        The observed variable.
    value : Variable
        What stands for the counts.
    density : Variable
        The log-density of the counts, but for a constant, with what stands for the values of other variables.
    parameters : tuple of Variable
        Numbers of trials, or POISSON, and odds or rates, of the shape of the counts; then the released counts. Of counts that add up to
        their trials, their probabilities instead of odds.
    longest : int
        How many values a count may have, if they add up to their trials, and 0 if each is drawn by itself.
    most : ndarray, optional
        Public numbers (G,), where the counts of a public cell, each drawn by itself, add up to no more.
    """

    random: Variable
    value: Variable
    density: Variable
    parameters: tuple[Variable, Variable, Variable]
    longest: int = 0
    most: np.ndarray | None = None


@dataclass(frozen=True)
class Drawn:
    """How the counts are drawn: the law of the noise, and a function for the parameters."""

    kernel: tuple[float, float, float]
    function: Compiled
    longest: int = 0
    most: np.ndarray | None = None

    def draw(self, point: Point, rng: Generator) -> np.ndarray:
        """Counts from their law given the released ones and everything else."""
        from pymc_dp.gibbs.loops import latent_counts, latent_tables  # which import numba, in half a second

        total, odds, noisy = np.broadcast_arrays(*self.function(point))
        by_one, by_square, _ = self.kernel
        flat = [np.ravel(array).astype(np.float64) for array in (noisy, total, odds)]
        if not self.longest:
            return self._possible(lambda: latent_counts(*flat, by_one, by_square, rng.random(noisy.size)).reshape(noisy.shape))
        K = noisy.shape[-1]
        seen, many, p = (array.reshape(-1, K) for array in flat)
        counts = latent_tables(seen, many[:, 0], p, by_one, by_square, self.longest, rng.random((len(p), K)))
        if not len(counts):
            raise ArithmeticError("No counts behind released ones were found that add up to their total.")
        return counts.reshape(noisy.shape)

    def _possible(self, drawn: Callable[[], np.ndarray]) -> np.ndarray:
        """Counts (G V, *C, K), drawn again where those of a public cell add up to more than they can."""
        counts = drawn()
        if self.most is None:
            return counts
        for _ in range(TRIES):
            in_cells = counts.reshape(len(self.most), -1, *counts.shape[1:])
            beyond = in_cells.sum(axis=(1, -1)) > self.most.reshape(-1, *[1] * (counts.ndim - 2))
            if not beyond.any():
                return counts
            counts = np.where(np.repeat(beyond, in_cells.shape[1], axis=0)[..., None], drawn(), counts)
        raise ArithmeticError("No counts behind released ones were found that add up to no more than the records.")


def latents(model: pm.Model) -> list[Latent]:
    """What stands for the counts of each likelihood of a private model that knows its noise, where the law of each count is simple.

    Bernoulli and Binomial counts, and Poisson ones; counts of levels, unless noise and counts are so large that they could have too many
    values; also numbers of records in private cells whose number is private too.
    """
    if not getattr(model, "noise_aware", False):
        return []
    candidates = [_latent(model, statistic) for statistic in model.privacy.statistics]
    return [latent for latent in candidates if latent is not None]


def _latent(model: pm.Model, noisy: NoisyStatistic) -> Latent | None:
    if noisy.regression is not None or noisy.sizes == "simplex" or noisy.divisor != 1 or noisy.deviation or noisy.covariance.size:
        return None
    if f"{noisy.variable}{LATENT}" in model.named_vars:
        return None
    random = model[noisy.variable]
    inputs = random.owner.op.dist_params(random.owner)
    parameters, size = list(inputs), pt.constant(noisy.n.astype(float).reshape(-1, *[1] * (noisy.noisy.ndim - 2)))
    if noisy.sizes in ("free", "kept"):
        *parameters, size = parameters
    law = law_of(noisy, parameters, size)
    longest, most = 0, noisy.n if isinstance(law, laws.AtMost) else None
    value = pt.tensor(f"{noisy.variable}_counts", shape=noisy.noisy.shape, dtype="float64")
    if isinstance(law, laws.Count):
        p = pt.clip(law.p, 1e-300, 1 - 1e-16)[..., None]
        n = law.n[..., None] + pt.zeros_like(p)
        density, odds = value * pt.log(p) + (n - value) * pt.log1p(-p), p / (1 - p)
    elif isinstance(law, laws.Rates | laws.AtMost):
        rate = cells_apart(law.rate, noisy) if isinstance(law, laws.AtMost) else law.rate
        odds = pt.maximum(rate, 1e-300)
        n = pt.full_like(odds, POISSON)
        density = value * pt.log(odds) - odds
    elif isinstance(law, laws.Counts):
        longest = _longest(noisy)
        n, odds = law.n[..., None] + pt.zeros_like(law.p), law.p
        density = value * pt.log(pt.maximum(law.p, 1e-300))
    else:
        return None
    if longest > MOST:
        return None
    graphs = replace_rvs_by_values([density, n, odds], rvs_to_values=model.rvs_to_values, rvs_to_transforms=model.rvs_to_transforms)
    return Latent(random, value, graphs[0], (graphs[1], graphs[2], model.rvs_to_values[random]), longest, most)


def _longest(noisy: NoisyStatistic) -> int:
    """How many values a count of a level may have: within the noise's reach, or 9 standard deviations, to both sides."""
    trials = noisy.n.max() * (noisy.family.trials(noisy.domain) if isinstance(noisy.family, Categorical) else 1)
    return 2 * int(min(noisy.noise.reach(NATS), 9 * np.sqrt(trials / 4))) + 64


def depending_on(several: Sequence[Latent], values: Sequence[Variable]) -> list[Latent]:
    """The latents in whose law one of these values stands."""
    return [counts for counts in several if set(values) & set(ancestors([counts.density]))]


def drawn(model: pm.Model, latent: Latent, **settings: object) -> Drawn:
    """How the latent counts of one released variable are drawn."""
    noisy = model.privacy[str(latent.random.name)]
    return Drawn(noisy.noise.kernel, compiled(model, (), latent.parameters, **settings), latent.longest, latent.most)
