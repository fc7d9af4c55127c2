"""Models as PyMC users write them: the rewritten model is theirs at exact statistics, and holds nothing of the records."""

from itertools import pairwise

import gallery_bins  # noqa: F401  its models are added to GALLERY, as are those of gallery_found, gallery_books and gallery_spellings
import gallery_found  # noqa: F401
import gallery_potentials  # noqa: F401
import gallery_spellings  # noqa: F401
import numpy as np
import pytest
from checks import EXACT, check_finite, check_no_records, log_density, pickled, points, spread_of_differences
from gallery import GALLERY, MARK, N, records
from gallery_books import BOOKS

import pymc_dp as pmdp

pytestmark = pytest.mark.filterwarnings("ignore")
INITIAL = "initial values that are arrays are refused where the number of records is private"
STARTED = (
    *("monotonic_education", "ordered_probit_ratings", "two_normals", "trolley_cutpoints_alone", "trolley_with_education"),
    *("ratings_by_cumulative_logits", "cutpoints_of_groups", "ordered_logistic_on_a_dose"),
)
PLAIN = ("hazards_of_plain_arrays", "radon_covariation_with_lkj", "cafes_varying_slopes_centred", "three_parameters_of_items")
WAITING = dict.fromkeys(PLAIN, "whether two plain arrays are one is not asked where the number of records is private")
TAKEN_OUT = ("slopes_taken_out_of_a_product", "slopes_taken_out_of_a_product_by_columns", "slopes_on_a_diagonal")


def parametrised(entries, waiting=None, every=1):
    """Entries, of which by default every so many runs, of those of books a sixth, and all others in the slow suite."""
    waits = {name: pytest.mark.xfail(strict=True, reason=reason) for name, reason in (waiting or {}).items()}
    marks = [[pytest.mark.slow] if k % every or (entry.name in BOOKS and k % 6) else [] for k, entry in enumerate(entries)]
    several = zip(entries, marks, strict=True)
    return pytest.mark.parametrize(
        "entry", [pytest.param(e, id=e.name, marks=[*some, *([waits[e.name]] if e.name in waits else [])]) for e, some in several]
    )


ENTRIES = pytest.mark.parametrize("entry", GALLERY, ids=[entry.name for entry in GALLERY])


def of_binned_data(entry, model):
    """The log-density of a model of which it is known in which bins values lie, by SciPy; an edge belongs to the bin below."""
    y, events = entry.seen(records(N)) if entry.seen else (model.rvs_to_values[model.observed_RVs[0]].data, None)
    inner = np.array(entry.edges)[None, 1:-1]
    free = model.replace_rvs_by_values(model.free_RVs)
    unknowns = model.compile_fn(free, inputs=model.value_vars, mode="FAST_COMPILE")
    prior = model.compile_logp(vars=model.free_RVs, mode="FAST_COMPILE", jacobian=False)
    place = (y[:, None] > inner).sum(axis=1)

    def log_density(point):
        values = {variable.name: value for variable, value in zip(model.free_RVs, unknowns(point), strict=True)}
        if events is not None:
            return prior(point) + np.log(of_events(entry, values)[np.arange(N), np.where(events, 0, 1), place]).sum()
        below = np.broadcast_to(entry.cdf(inner, values, records(N)), (N, inner.size))
        p = np.diff(below, axis=1, prepend=0.0, append=1.0)
        return prior(point) + np.log(p[np.arange(N), place]).sum()

    return log_density


def of_events(entry, values):
    """Probabilities (N, 2, bins) of an event and of a loss in each bin, where hazards of losses are 1 over the width of all bins.

    The survival of what is neither falls by both; losses are the integral of their hazard times it. The last bin has no end.
    """
    edges, many = np.array(entry.edges), 4000
    rate = 1 / (edges[-1] - edges[0])
    u = (np.arange(many) + 0.5) / many
    lost, staying = [], []
    for k, (start, end) in enumerate(pairwise(edges)):
        last = k == len(edges) - 2
        x = (start + u / (1 - u) if last else start + (end - start) * u)[None]
        weights = (1 / (1 - u) ** 2 if last else end - start) / many
        still = np.exp(-rate * x) * (1 - np.broadcast_to(entry.cdf(x, values, records(N)), (N, many)))
        lost.append((rate * still * weights).sum(axis=1))
        staying.append(np.exp(-rate * start) * (1 - np.broadcast_to(entry.cdf(np.array([[start]]), values, records(N)), (N, 1))[:, 0]))
    lost = np.stack(lost, axis=1)
    gone = -np.diff(np.stack([*staying, np.zeros(N)], axis=1), axis=1)
    return np.stack([gone - lost, lost], axis=1)


@ENTRIES
def test_inspect_says_what_is_expected(entry):
    model, arguments = entry.make()
    rows = pmdp.inspect(model, **arguments).rows
    assert tuple(row.structure for row in rows) == entry.structures, [row.reason for row in rows]
    assert not any(row.needs for row in rows)


@parametrised(GALLERY, every=3)
def test_the_rewritten_model_is_the_user_s_and_has_no_records(entry, exact_seam):
    """At exact statistics the log-densities differ by a constant; dummy rows of another number give the same names."""
    model, arguments = entry.make()
    released = pmdp.release(model, epsilon=EXACT, **arguments)
    private = pmdp.rewrite(model, released, noise_aware=False)
    ours = log_density(private)
    theirs = log_density(model) if entry.cdf is None else of_binned_data(entry, model)
    losses = {name: np.zeros_like(at) for name, at in private.initial_point().items() if name.endswith("_losses")}
    assert spread_of_differences(theirs, model, private, lambda point: ours(point | losses)) < entry.tolerance
    if "aggregate" in entry.structures:  # the rows stay, with noise on each
        return
    check_no_records(model, private, N)
    assert np.float64(MARK).tobytes() not in pickled(private)[0]
    dummy = pmdp.rewrite(entry.make(11, seed=99)[0], released, noise_aware=False)
    assert private.coords == dummy.coords
    assert set(private.named_vars) == set(dummy.named_vars)
    if GALLERY.index(entry) % 12 == 0:  # of all others in the slow suite: compiling takes seconds
        at = points(private, 1)[0]
        assert ours(at) == pytest.approx(log_density(dummy)(at), rel=1e-12)


@pytest.mark.slow
@ENTRIES
def test_dummy_rows_of_another_number_give_the_same_density(entry, exact_seam):
    model, arguments = entry.make()
    released = pmdp.release(model, epsilon=EXACT, **arguments)
    private = pmdp.rewrite(model, released, noise_aware=False)
    if "aggregate" in entry.structures:
        return
    dummy = pmdp.rewrite(entry.make(11, seed=99)[0], released, noise_aware=False)
    at = points(private, 1)[0]
    assert log_density(private)(at) == pytest.approx(log_density(dummy)(at), rel=1e-12)


NOISE = [{"mechanism": "laplace"}, {"mechanism": "gaussian", "delta": 1e-6}]


def finite(entry, neighbours, noise):
    model, arguments = entry.make()
    rows = pmdp.inspect(model, neighbours=neighbours, **arguments).rows
    if neighbours == "add_remove" and not all(row.structure for row in rows):
        assert any("reveals how many" in row.reason for row in rows), rows
        return
    check_finite(pmdp.rewrite(model, pmdp.release(model, epsilon=1.0, neighbours=neighbours, **noise, **arguments)))


@parametrised(GALLERY[::6])
def test_the_noise_aware_log_density_and_its_gradient_are_finite(entry):
    finite(entry, "replace", NOISE[0])


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISE, ids=["laplace", "gaussian"])
@parametrised(GALLERY)
def test_they_are_finite_with_either_mechanism(entry, noise):
    finite(entry, "replace", noise)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISE, ids=["laplace", "gaussian"])
@parametrised(GALLERY, WAITING | dict.fromkeys(STARTED, INITIAL) | dict.fromkeys(TAKEN_OUT, "how many entries are taken out is private"))
def test_they_are_finite_where_records_come_and_go(entry, noise):
    """Or refused, because something public is as long as the records."""
    finite(entry, "add_remove", noise)
