"""Law of how many of n independent records are events, and of what these add up to, with noise on both.

The number of events is a Binomial variable, and few of them are no normal one: the sum over every number of them in a window around the
released one takes it as it is. Given their number, what they add up to is normal, by the central limit. Shapes: G cells, C columns.
"""

from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dp.laws.event_loops import events_plus_noise
from pymc_dp.laws.kernel import Kernel, Tensor, by_cell
from pymc_dp.privacy.noise_law import Noise

MANY = 200
"""From so many events on, and so many others, their number is taken as normal: its skewness is a fourteenth or less."""


@dataclass(frozen=True)
class Events:
    """Of one record: the log-probabilities of an event and of none, and mean and variance of what an event adds; each (G, *C)."""

    log_event: Tensor
    log_other: Tensor
    mean: Tensor
    variance: Tensor


def few(noisy: np.ndarray, n: np.ndarray) -> bool:
    """Whether there may be few events, or few others, in any cell: noisy sums (G, *C, 2) and public numbers of records."""
    of_cells = n if n.ndim == noisy.ndim - 1 else n.reshape(-1, *[1] * (noisy.ndim - 2))
    return bool((np.minimum(noisy[..., 1], of_cells - noisy[..., 1]) < MANY).any())


def log_density(law: Events, n: Tensor, noisy: Tensor, noise: Noise, length: int) -> Tensor:
    """Log-density (G, *C) of what events add up to and of their number, with noise, (G, *C, 2)."""
    width = noise.standard_deviation if noise.gaussian else noise.spread
    kernel = Kernel(events_plus_noise, (2, 3, 4, 5))
    inputs = (noisy, n, law.log_event, law.log_other, law.mean, law.variance)
    [value] = by_cell(kernel, noisy.type.shape[:-1], inputs, length, noise.kernel, width, float(noise.gaussian))
    return value


def simulated(law: Events, n: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A draw of both (G, *C, 2), without noise."""
    events = pm.Binomial.dist(pt.as_tensor(n).astype("int64"), pt.exp(law.log_event), shape=shape[:-1])
    added = events * law.mean + pt.sqrt(events * law.variance) * pm.Normal.dist(shape=shape[:-1])
    return pt.stack([added, events.astype("float64")], axis=-1)
