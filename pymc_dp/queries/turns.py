"""One call of a session after the other: other threads wait, and a call from within a call is refused."""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from pymc_dp.privacy.accounting import Refusal


def alone[F: Callable[..., Any]](method: F) -> F:
    """A method that runs while no other call of its session does; the session holds a lock and whether a call runs.

    What is asked from within, by a signal handler or by an argument that runs code when it is looked at, would come between the plan of
    the outer call and its charge, so that the outer call would pay by a plan that no longer holds.
    """

    @wraps(method)
    def turn(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            if self._busy:
                raise Refusal(
                    "This session is in the middle of the call that this one was made from. Call it again when that call has returned."
                )
            try:
                self._busy = True
                return method(self, *args, **kwargs)
            finally:
                self._busy = False

    return cast(F, turn)
