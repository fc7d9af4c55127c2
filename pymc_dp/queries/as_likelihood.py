"""A noisy answer as observed data of a PyMC model: its noise is part of the likelihood, as it is for released statistics."""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable

from pymc_dp.laws import law as laws
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.mechanisms import Laplace
from pymc_dp.queries.history import Answered


def observed_answer(
    name: str, answer: Answered, records: int | None, *, probability: Any = None, rate: Any = None, value: Any = None
) -> TensorVariable:
    """The answer, in its own units, as an observed ``pm.CustomDist``: see ``QuerySession.observe``.

    Its law is the exact law of the count (Binomial or Poisson), or a number, plus discrete Laplace noise of a known scale.
    """
    parameters = {"probability": probability, "rate": rate, "value": value}
    if sum(parameter is not None for parameter in parameters.values()) != 1:
        raise Refusal("The exact answer has one law. Write probability=, rate= or value=, and only one of them.")
    question, noise = answer.question, Laplace().noise(answer.scale, 1.0)
    if value is None and (question.divisor != 1 or not np.isin(question.weights, (0, 1)).all()):
        raise Refusal("Only a count of one condition is Binomial or Poisson. Write value=, what the exact answer is.")
    if probability is not None and records is None:
        raise Refusal(
            'The number of records is private under "add_remove", and where persons are protected. Write rate=, how many records there are'
            " times the probability."
        )
    noisy = np.array([[float(answer.noisy)]])

    def law(parameter: Any) -> laws.Law:
        if probability is not None:
            return laws.Count(pt.constant(np.array([float(records or 0)])), pt.reshape(parameter, (1,)))
        return laws.Rates(pt.reshape(parameter, (1, 1)))

    parameter = pt.as_tensor_variable(next(parameter for parameter in parameters.values() if parameter is not None)).astype("float64")
    if parameter.ndim:
        raise Refusal("An answer is one number, and so is its law's parameter. Write one observe for every answer.")
    if value is None:
        plan = laws.plan(law(parameter), noisy, np.array([float(records or 0)]), noise)

    def logp(observation: Any, parameter: Any) -> Any:
        in_units = pt.reshape(observation * question.divisor, (1, 1))
        if value is None:
            return pt.sum(laws.log_density(law(parameter), in_units, noise, plan))
        by_distance, _, constant = noise.kernel
        return by_distance * pt.abs(in_units[0, 0] - parameter * question.divisor) + constant

    def simulate(parameter: Any, size: Any) -> Any:
        in_units = parameter * question.divisor if value is not None else laws.simulated(law(parameter), None, (1, 1))[0, 0]
        return (in_units + noise.simulated((1,))[0]) / question.divisor

    return pm.CustomDist(name, parameter, dist=simulate, logp=logp, dtype="float64", observed=answer.noisy / question.divisor)
