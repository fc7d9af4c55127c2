"""A model that several threads are given stays as it is."""

import threading
import time

import numpy as np
import pymc as pm

import pymc_dp as pmdp
from pymc_dp.models.model_graph import without_initial_values


def built():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("a", initval=0.7), pm.HalfNormal("s", initval=2.0), observed=np.linspace(-1, 1, 20))
    return model


def starts(model):
    return {variable.name: None if value is None else float(value) for variable, value in model.rvs_to_initial_values.items()}


def test_two_threads_leave_a_model_its_initial_values():
    """The second took them for gone while the first had put them away, and put back none: the model had lost them for good."""
    model, before, come = built(), starts(built()), threading.Event()

    def away(seconds):
        with without_initial_values(model):
            come.set()
            time.sleep(seconds)

    first, second = (threading.Thread(target=away, args=(seconds,)) for seconds in (0.1, 0.2))
    first.start()
    come.wait()
    second.start()
    read = pmdp.rewrite(model, pmdp.release(model, epsilon=9, bounds={"y": (-1, 1)}))
    first.join()
    second.join()
    assert starts(model) == before == {"a": 0.7, "s": 2.0}
    assert starts(read) == before
