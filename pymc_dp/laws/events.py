"""Law of how many of n independent records are events, and of what these add up to, with noise on both.

The number of events is a Binomial variable, and few of them are no normal one: the sum over every number of them in a window around the
released one takes it as it is. Given their number, what they add up to is normal, by the central limit.

Where the number of records is an unknown of the private model, it is a real number there. The law is then a mixture of those of the three
whole numbers nearest to it, with the weights of a quadratic spline: n is their mean, the density has a slope in n, and where all n are as
likely so are all whole numbers, but for 0, which has about half. Shapes: G cells, C columns.
"""

from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dp.laws.event_loops import events_of_unknown, events_plus_noise
from pymc_dp.laws.kernel import Kernel, Tensor, by_cell
from pymc_dp.privacy.noise_law import Noise

MANY = 200
"""From so many events on, and so many others, their number is taken as normal: its skewness is a fourteenth or less."""

IN_CELLS = ((0.0, -1.0, 1.0), (0.0, 1.0, 1.0), (2.0, 0.0, -2.0))
"""What is released where numbers of records are unknown: what s events add up to, taken from s and added to it, and twice the others."""


@dataclass(frozen=True)
class Events:
    """Of one record: the log-probabilities of an event and of none, and mean and variance of what an event adds; each (G, *C)."""

    log_event: Tensor
    log_other: Tensor
    mean: Tensor
    variance: Tensor


def few(noisy: np.ndarray, n: np.ndarray) -> bool:
    """Whether there may be few events, or few others, in any cell: noisy sums (G, *C, 2) and public numbers of records, or (G, *C, 3)."""
    if noisy.shape[-1] == len(IN_CELLS):
        return bool((np.minimum(noisy[..., :2].sum(axis=-1), noisy[..., 2]) < 2 * MANY).any())
    of_cells = n if n.ndim == noisy.ndim - 1 else n.reshape(-1, *[1] * (noisy.ndim - 2))
    return bool((np.minimum(noisy[..., 1], of_cells - noisy[..., 1]) < MANY).any())


def log_density(law: Events, n: Tensor, noisy: Tensor, noise: Noise, length: int) -> Tensor:
    """Log-density (G, *C) of what events add up to and of their number, with noise, (G, *C, 2); or of ``IN_CELLS``, (G, *C, 3)."""
    width = noise.standard_deviation if noise.gaussian else noise.spread
    unknown = noisy.type.shape[-1] == len(IN_CELLS)
    kernel = Kernel(events_of_unknown, (1, 2, 3, 4, 5)) if unknown else Kernel(events_plus_noise, (2, 3, 4, 5))
    inputs = (noisy, n, law.log_event, law.log_other, law.mean, law.variance)
    [value] = by_cell(kernel, noisy.type.shape[:-1], inputs, length, noise.kernel, width, float(noise.gaussian))
    return value


def simulated(law: Events, n: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A draw of both (G, *C, 2), or of ``IN_CELLS``, (G, *C, 3), without noise."""
    unknown, batch = shape[-1] == len(IN_CELLS), shape[:-1]
    if unknown:  # rounding adds a third uniform variable: together they have the spline's weights
        n = pt.maximum(pt.round(n + pm.Uniform.dist(-0.5, 0.5, shape=batch) + pm.Uniform.dist(-0.5, 0.5, shape=batch)), 0.0)
    events = pm.Binomial.dist(pt.as_tensor(n).astype("int64"), pt.exp(law.log_event), shape=batch)
    added = events * law.mean + pt.sqrt(events * law.variance) * pm.Normal.dist(shape=batch)
    entries = [events - added, events + added, 2.0 * (n - events)] if unknown else [added, events.astype("float64")]
    return pt.stack(entries, axis=-1)
