"""The wall around every function that is handed records: nothing but a result or a clear word comes through it.

An exception carries frames, and frames carry records. So a refusal is raised anew outside the frames that held the model's
arrays, and any other failure becomes one constant error, without a cause, a context or a message of its own.
"""

import warnings
from collections.abc import Callable
from functools import wraps

import numpy as np

from pymc_dp.accounting import Refusal


class PrivateComputationError(RuntimeError):
    """Something failed inside. The message is always the same, because a failure can depend on the records."""


class UnaccountedWarning(UserWarning):
    """Nothing remembers what has been spent."""


FAILED = "The private computation failed inside the library. Check the model with pymc_dp.inspect; what was charged stays spent."


def boundary[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Let results and refusals through; turn everything else into ``PrivateComputationError``. Warnings stay inside."""

    @wraps(function)
    def walled(*args: P.args, **kwargs: P.kwargs) -> R:
        refusal: BaseException
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return function(*args, **kwargs)
        except Refusal as reason:
            refusal = Refusal(*reason.args)
        except SystemExit as leaving:
            refusal = SystemExit(leaving.code if isinstance(leaving.code, int) else 1)
        except Exception:
            refusal = PrivateComputationError(FAILED)
        except BaseException as stopped:  # KeyboardInterrupt and its like: the same kind, without its frames
            refusal = _anew(type(stopped))
        raise refusal

    return walled


def _anew(kind: type[BaseException]) -> BaseException:
    try:
        return kind()
    except Exception:
        return KeyboardInterrupt()
