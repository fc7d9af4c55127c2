"""The guard around every function that is handed records: nothing but a result or a refusal comes through it.

An exception carries frames, and frames carry records. So a refusal is raised anew outside the frames that held the model's
arrays, and any other failure becomes one constant error, without a cause, a context or a message of its own.
"""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import wraps
from inspect import signature
from os.path import dirname
from threading import local
from typing import Any

import numpy as np

from pymc_dp.privacy.accounting import Cost, Refusal
from pymc_dp.privacy.calls import check_call


class PrivateComputationError(RuntimeError):
    """Something failed inside the library. The message is always the same, because a failure can depend on the records.

    Examples
    --------
    >>> try:
    ...     released = pmdp.release(model, epsilon=1.0)
    ... except pmdp.PrivateComputationError:
    ...     released = None  # a bug, of the model or of the library
    """


class UnaccountedWarning(UserWarning):
    """No ledger remembers what has been spent.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", pmdp.UnaccountedWarning)  # stop where there is no ledger
    """


class WeakPrivacyWarning(UserWarning):
    """The promise that is about to be paid for is weak: epsilon is above 10, or delta is so large that it may show a whole record.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", pmdp.WeakPrivacyWarning)  # stop where the promise is weak
    """


PACKAGE = dirname(dirname(__file__))
"""The folder of this package: warnings point at the first line outside it, the user's."""
WEAK_EPSILON = 10
"""In nats. Above, what is at least half sure of a record without the release may be all but certain of it with the release."""
WEAK_DELTA = Fraction(1, 1000)
"""Where the number of records is private. Where it is public, the limit is one in that number."""


def warn_if_weak(cost: Cost, records: int | None = None) -> None:
    """Warn of an epsilon above 10, and of a delta above 1 / ``records``, or above 1/1,000 where that number is not public.

    Parameters
    ----------
    cost : Cost
        What is about to be spent.
    records : int or None
        Their number, where it is public; None where it is not.

    Examples
    --------
    >>> warn_if_weak(Cost(Fraction(1)))
    """
    limit = WEAK_DELTA if records is None else Fraction(1, max(records, 1))
    words = "1/1,000" if records is None else f"1/{records:,}, one in the number of records"
    messages = [
        f"epsilon {float(cost.epsilon):g} is above {WEAK_EPSILON}: it promises next to nothing, since one record may make a result"
        f" exp({float(cost.epsilon):g}) times as likely. Write for example epsilon=1.0."
    ] * (cost.epsilon > WEAK_EPSILON)
    messages += [
        f"delta {float(cost.delta):g} is above {words}: a mechanism that publishes a whole record now and then would keep this promise."
        " Write for example delta=1e-6."
    ] * (cost.delta > limit)
    for message in messages:
        warnings.warn(message, WeakPrivacyWarning, skip_file_prefixes=(PACKAGE,))


_thread = local()


class _Quiet:
    """Whether the thread that warns is in a block of ``quiet``: in a filter of warnings it stands where a pattern does."""

    def match(self, words: str) -> bool:
        return getattr(_thread, "is_quiet", False)


_OF_THIS_THREAD: Any = ("ignore", _Quiet(), Warning, None, 0)
"""A filter of warnings, as Python keeps them."""


class _Lines(logging.Filter):
    """Lets through what threads log that are in no block of ``quiet``."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(_thread, "is_quiet", False)


_LINES = _Lines()


@contextmanager
def quiet() -> Iterator[None]:
    """No warning and no line of a log leaves this block, and those of other threads are heard.

    ``warnings.catch_warnings`` puts other filters in place for all threads. Where two were in such blocks at once, the one that left last
    would put back those of the first, which ignore everything: no warning of any kind would ever be heard again, nor be an error.
    PyTensor logs operations that it could not simplify with the numbers that are in them. Lines are stopped where they are written, in
    every handler that there is: a filter on a logger does not see the lines of those below it.
    """
    before = getattr(_thread, "is_quiet", False)
    try:
        _thread.is_quiet = True
        for handler in _handlers():
            handler.addFilter(_LINES)  # once: it is the same filter
        warnings.filters.insert(0, _OF_THIS_THREAD)  # type: ignore[attr-defined]
        yield
    finally:
        _thread.is_quiet = before
        with suppress(ValueError):  # where a block of a user's own has put other filters in place meanwhile
            warnings.filters.remove(_OF_THIS_THREAD)  # type: ignore[attr-defined]


def _handlers() -> list[logging.Handler]:
    """Whatever writes lines of logs."""
    loggers = [logging.root, *list(logging.root.manager.loggerDict.values())]
    last = [] if logging.lastResort is None else [logging.lastResort]
    return last + [handler for logger in loggers for handler in getattr(logger, "handlers", ())]


FAILED = "The private computation failed inside the library. Check the model with pymc_dp.inspect; what was charged stays spent."


def boundary[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Let results and refusals through; turn everything else into ``PrivateComputationError``. Warnings and logs stay inside.

    Whatever a user has told NumPy and SciPy to do where numbers are too large or too small, nothing of it happens to records.
    """
    arguments = signature(function)

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        check_call(function, arguments, args, kwargs)  # a TypeError that tells names only
        refusal: BaseException
        try:
            import scipy.special  # inside: an interrupt while it loads carries no frame of ours

            with quiet(), np.errstate(all="ignore"), scipy.special.errstate(all="ignore"):
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

    return guarded


def _anew(kind: type[BaseException]) -> BaseException:
    try:
        return kind()
    except Exception:
        return KeyboardInterrupt()
