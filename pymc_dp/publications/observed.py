"""What a model observes of a variable. It may be records, where a user writes them into a model that is to have placeholders."""

import numpy as np
import pymc as pm
import pytensor
from pytensor.graph.basic import Variable


def observed_numbers(model: pm.Model, variable: Variable) -> np.ndarray:
    """The observed values of one of a model's variables, computed without touching any cache on disk, which would keep them."""
    with pytensor.config.change_flags(numba__cache=False):
        return np.asarray(model.rvs_to_values[variable].eval(mode="FAST_COMPILE"))
