"""The derivative of the logarithm of the gamma function, as loops call it: SciPy's cannot be compiled into them."""

import numpy as np


def digamma(x):
    """The derivative of log(gamma(x)) for x > 0: its asymptotic series from 10 on, and x = (x + 1) - 1 below."""
    total = 0.0
    while x < 10:
        total -= 1 / x
        x += 1
    y = 1 / x**2
    return total + np.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * 691 / 32760)))))


PARTS = (digamma,)
"""What loops of other modules call."""
