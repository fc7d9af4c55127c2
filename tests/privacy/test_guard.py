"""What the guard keeps inside, it keeps inside in every thread and whatever PyTensor is told to print; what others say is heard."""

import logging
import pickle
import threading
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import mostly_slow, refused, watched

import pymc_dp as pmdp
from pymc_dp.privacy.guard import boundary, quiet

CANARY = 7123.456789


class Other(UserWarning):
    """Of a user's own."""


# ---------- warnings, in several threads
def interleaved():
    """Two threads in a boundary at once, the first to come being the first to go."""
    come, gone = [threading.Event(), threading.Event()], threading.Event()

    @boundary
    def first():
        come[0].set()
        come[1].wait()

    @boundary
    def second():
        come[1].set()
        gone.wait()

    threads = [threading.Thread(target=work) for work in (first, second)]
    threads[0].start()
    come[0].wait()
    threads[1].start()
    threads[0].join()
    gone.set()
    threads[1].join()


def test_two_threads_at_once_switch_no_warning_off_for_good():
    """They did: "stop where there is no ledger", as the docstring of UnaccountedWarning has it, stopped nothing any more."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", Other)
        before = list(warnings.filters)
        interleaved()
        assert warnings.filters == before
        with pytest.raises(Other):
            warnings.warn("heard", Other, stacklevel=1)


def test_a_thread_in_a_boundary_says_nothing_and_others_are_heard():
    inside, said = threading.Barrier(2), threading.Event()

    @boundary
    def private():
        inside.wait()
        warnings.warn(f"a record is {CANARY}", Other, stacklevel=1)
        said.wait()
        warnings.warn(f"a record is {CANARY}", Other, stacklevel=1)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        thread = threading.Thread(target=private)
        thread.start()
        inside.wait()
        warnings.warn("heard", Other, stacklevel=1)
        said.set()
        thread.join()
    assert [str(one.message) for one in caught] == ["heard"]


def test_blocks_within_blocks_and_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error", Other)
        before = list(warnings.filters)
        with suppress(ValueError), quiet():
            with quiet():
                warnings.warn("not heard", Other, stacklevel=1)
            warnings.warn("not heard", Other, stacklevel=1)
            raise ValueError
        assert warnings.filters == before


def test_nobody_here_switches_the_warnings_of_all_threads():
    """But for the command line, which has one, and an audit, which looks at what a mechanism of the user's own warns of."""
    package = Path(pmdp.__file__).parent
    switching = [path for path in package.rglob("*.py") if "with warnings.catch_warnings" in path.read_text()]
    assert {path.relative_to(package).as_posix() for path in switching} == {"__main__.py", "audits/audit.py"}


def test_filters_travel_to_other_processes():
    """As scikit-learn sends them to its own, which may start while another thread is in a block."""
    with quiet():
        assert len(pickle.loads(pickle.dumps(warnings.filters))) == len(warnings.filters)


# ---------- what is logged
class Heard(logging.Handler):
    """Keeps the lines that come to it."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


@pytest.fixture(params=["root", "pytensor", "pytensor.graph.rewriting.basic"])
def heard(request):
    """A handler of one logger; the others' come to it where it is above them."""
    logger, handler = logging.getLogger(None if request.param == "root" else request.param), Heard()
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def test_no_line_of_a_log_leaves_a_boundary_and_other_threads_are_heard(heard):
    log = logging.getLogger("pytensor.graph.rewriting.basic")

    @boundary
    def private():
        log.error(f"a record is {CANARY}")
        logging.getLogger("pytensor.graph.rewriting.basic.first_seen_here").critical(f"a record is {CANARY}")
        other = threading.Thread(target=log.error, args=("of another thread",))
        other.start()
        other.join()

    private()
    log.error("afterwards")
    assert heard.lines == ["of another thread", "afterwards"]


def with_an_entry_that_is_not_there():
    """The first record has the entry 7123 of three: PyTensor says so, and of no other record."""
    with pm.Model() as model:
        places, limits = pt.as_tensor(np.array([int(CANARY), 1, 2, 1, 2, 0])), pt.as_tensor(np.array([1.0, 2.0, 4.0]))
        dist = pm.Normal.dist(pm.Normal("m"), 2.0)
        pm.Mixture("y", w=[0.5, 0.5], comp_dists=[dist, pm.DiracDelta.dist(limits[places])], observed=np.arange(6.0))
    return model


@pytest.mark.filterwarnings("ignore")
def test_pytensor_logs_no_record(heard):
    model, bounds = with_an_entry_that_is_not_there(), {"y": pmdp.Bins(-5, 5, 5)}
    heard.lines.clear()
    pmdp.inspect(model, bounds=bounds)
    with suppress(pmdp.Refusal):
        pmdp.release(model, epsilon=1.0, bounds=bounds)
    assert not heard.lines


# ---------- what PyTensor prints
def marked():
    values = np.tile([0.5, CANARY, 1.5, 2.5], 3)
    with pm.Model() as model:
        pm.Normal("y", pm.Uniform("m", -1, 1) * pm.math.tanh(pm.Data("x", values)), 1, observed=values)
    return model


BOUNDS = {"x": (0, 9000), "y": (0, 9000)}
DOORS = {
    "release": lambda model: pmdp.release(model, epsilon=1, bounds=BOUNDS),
    "inspect": lambda model: repr(pmdp.inspect(model, bounds=BOUNDS)),
    "suggest_bounds": lambda model: pmdp.suggest_bounds(model, bounds=BOUNDS),
    "sample": lambda model: pmdp.sample(model=model, epsilon=1, bounds=BOUNDS),
    "draws": lambda model: pmdp.sample(model=model, epsilon=1, bounds=BOUNDS, mechanism=pmdp.PosteriorSample(points=5)),
    "share_out": lambda model: pmdp.share_out(model, epsilon=1, bounds=BOUNDS, parts=2, records=12),
    "synthesize": lambda model: pmdp.synthesize(pmdp.sample(model=marked(), epsilon=1, bounds=BOUNDS), model),
    "advise": lambda model: repr(pmdp.advise(model, epsilon=1, bounds=BOUNDS)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("door", mostly_slow(DOORS, 0, 1, 2))
@pytest.mark.parametrize("setting", ["optimizer_verbose", "profile"])
def test_where_pytensor_prints_arrays_every_door_is_closed(setting, door):
    model = marked()
    with watched(0) as (seam, output, _), pytensor.config.change_flags(**{setting: True}):
        words = refused(DOORS[door], model)
    assert str(CANARY)[:6] not in output.getvalue()
    assert not seam.exact
    assert door == "advise" or f"pytensor.config.{setting} = False" in words
