"""Counts of events and losses in a private model: which released number stands where, what one record moves, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from checks import EXACT, check_finite, log_density, points, refused

import pymc_dp as pmdp
from pymc_dp.private_models.default_steps import default_steps
from pymc_dp.private_models.events import LOSSES, jittered_unknowns
from pymc_dp.private_models.fingerprint import data_of_release
from pymc_dp.private_models.nutpie_draws import nutpie_model

pytestmark = pytest.mark.filterwarnings("ignore")
N = 200
EDGES = np.array([0.0, 2.0, 5.0, 9.0])
BINS = pmdp.Bins(edges=EDGES)
LEVELS = {"x": {0, 1, 2}, "z": {0, 1}}


def records(n=N, seed=0):
    """Times, some at edges and beyond the last, events, a level before the flag in the formula, and one behind it."""
    rng = np.random.default_rng(seed)
    t = rng.exponential(4, n)
    t[: min(n, 6)] = [0, 2, 5, 9, 30, 2 + 1e-12][:n]
    return {"t": t, "e": rng.integers(0, 2, n), "x": rng.integers(0, 3, n), "z": rng.integers(0, 2, n)}


def model_of(data, covariates=("x", "z"), kind=int):
    with pm.Model() as model:
        t, e = pm.Data("t", data["t"]), pm.Data("e", data["e"].astype(kind))
        columns = {name: pm.Data(name, data[name]) for name in covariates}
        eta = pm.Normal("a", 1, 1) + sum(pm.Normal(f"b_{name}") * column for name, column in columns.items())
        law = pm.Weibull.dist(pm.Gamma("alpha", 4, 3), pm.math.exp(eta))
        seen, lost = pm.logp(law, t), pm.logccdf(law, t)
        # The flag is met before, between and behind covariates, so its cells lie on different axes.
        pm.Potential("like", (pm.math.switch(pm.math.eq(e, 1), seen, lost) if kind is int else e * seen + (1 - e) * lost).sum())
    return model


def counted(data, covariates):
    """How many records there are of every combination: (cells, event or lost, bin), by NumPy alone."""
    place = np.minimum((data["t"][:, None] > EDGES[None, 1:]).sum(axis=1), len(EDGES) - 2)
    shape = [{"x": 3, "z": 2}[name] for name in covariates]
    table = np.zeros((*shape, 2, len(EDGES) - 1), dtype=int)
    for k in range(len(place)):
        table[(*(data[name][k] for name in covariates), 1 - data["e"][k], place[k])] += 1
    return table.reshape((-1, 2 * (len(EDGES) - 1)))


def released(model, **more):
    names = [name for name in LEVELS if name in model.named_vars]
    arguments = {"epsilon": EXACT, "bounds": {"t": BINS} | {name: LEVELS[name] for name in names}} | more
    return pmdp.release(model, **arguments)


@pytest.mark.parametrize("kind", [int, float], ids=["switch", "product"])
@pytest.mark.parametrize("covariates", [(), ("x",), ("x", "z"), ("z", "x")], ids=lambda names: "-".join(names) or "none")
def test_every_number_stands_where_it_belongs(covariates, kind, exact_seam):
    data = records()
    model = model_of(data, covariates, kind)
    private = pmdp.rewrite(model, released(model))
    found, inputs = private["t_released"].get_value(), private.released[0].inputs
    order = sorted(covariates, key=lambda name: [i.name for i in likelihood_of(model).inputs].index(name))
    np.testing.assert_array_equal(found, counted(data, order))
    assert [len(values) for values in inputs] == [len(found)] * len(covariates)
    assert private.coords["t_statistic"] == tuple(f"{how}, {bin}" for how in ("event", "lost") for bin in ("y <= 2", "2 < y <= 5", "y > 5"))


def likelihood_of(model):
    from pymc_dp.models.reader import read_spec

    return read_spec(model, binned={"t"}).likelihoods[0]


@pytest.mark.parametrize(("neighbours", "L1", "squared"), [("replace", 2, 2), ("add_remove", 1, 1)])
def test_one_record_moves_what_is_said_and_no_more(neighbours, L1, squared, exact_seam):
    """Replaced by every kind of record, or left out, against the exact counts; some do move as much."""
    data, rng, farthest = records(30), np.random.default_rng(1), [0, 0]
    values = [-np.inf, -1.0, 0.0, 2.0, 3.0, 5.0, 9.0, 1e300, np.inf]
    for _ in range(12):
        other = {name: column.copy() for name, column in data.items()}
        if neighbours == "replace":
            k = rng.integers(30)
            other = {"t": other["t"], **{name: other[name] for name in ("e", "x", "z")}}
            other["t"][k] = rng.choice(values)
            for name, levels in (("e", [0, 1, 2, -1]), ("x", [0, 1, 2, 7]), ("z", [0, 1])):
                other[name][k] = rng.choice(levels)
        else:
            k = rng.integers(30)
            other = {name: np.delete(column, k) for name, column in other.items()}
        first, second = (released(model_of(d), neighbours=neighbours)["t"].noisy for d in (data, other))
        moved = first - second
        farthest = [max(farthest[0], np.abs(moved).sum()), max(farthest[1], (moved**2).sum())]
    noisy = released(model_of(data), neighbours=neighbours)["t"]
    assert [noisy.difference, noisy.square] == [L1, squared] == farthest


def test_records_without_a_time_or_a_flag_are_left_out(exact_seam):
    """In a table, where missing values can stand; those of no name count as the middle."""
    data = {name: column.astype(float) for name, column in records().items()}
    data["t"][:20], data["e"][10:30] = np.nan, np.nan
    model, whole = model_of(records(), ()), {name: column[30:].astype(int if name != "t" else float) for name, column in data.items()}
    table = pd.DataFrame(data)[["t", "e"]]
    found = released(model, data=table, missing=["t", "e"])
    assert found["t"].noisy.sum() == N - 30
    private = pmdp.rewrite(model, found)
    np.testing.assert_array_equal(private["t_released"].get_value(), counted(whole, ()))
    assert released(model, data=table, missing={})["t"].noisy.sum() == N


def test_hazards_are_those_of_cells_and_bins(exact_seam):
    """One number for all, one a bin, and with several cells one for each bin in each: none changes another's."""
    data = records()
    alone, several = (pmdp.rewrite(model, released(model)) for model in (model_of(data, ()), model_of(data, ("z",))))
    assert [alone.initial_point()[f"t{LOSSES}"].size, several.initial_point()[f"t{LOSSES}"].size] == [1 + 3, 1 + 3 + 2 * 3]
    theirs = log_density(several)
    start = {name: np.zeros_like(value) for name, value in several.initial_point().items()}
    at = np.array([theirs(start | {f"t{LOSSES}": 0.5 * (np.arange(10) == k)}) for k in range(10)])
    assert len(set(np.round(at, 6))) == 10


def test_every_start_is_jittered_but_that_of_losses():
    model = model_of(records(), ())
    private = pmdp.rewrite(model, released(model))
    assert set(private.free_RVs) - jittered_unknowns(private) == {private[f"t{LOSSES}"]}
    by_pymc = {"nuts_sampler": "pymc"}
    assert default_steps(private, private.privacy, by_pymc) == {"init": "adapt_diag"}, "PyMC's own sampler jitters all or none"
    assert default_steps(private, private.privacy, by_pymc | {"init": "adapt_full"}) == {}
    with pm.Model() as other:
        pm.Normal("t_losses")  # of a model without losses
    assert jittered_unknowns(other) == set(other.free_RVs)


@pytest.mark.slow
def test_chains_begin_where_losses_are_at_their_means():
    """A chain stayed for ever at its jittered start, where the density of 2,000 records was 12,000 nats lower."""
    model = model_of(records(), ())
    private = pmdp.rewrite(model, released(model))
    chains = nutpie_model(private, {}, data_of_release(private))
    begin = chains.compiled().initial_point_func
    names = [private.rvs_to_values[variable].name for variable in private.free_RVs]
    sizes = np.array([private.initial_point()[name].size for name in names])
    of_losses = np.repeat([name == f"t{LOSSES}" for name in names], sizes)
    starts = np.array([begin(seed) for seed in range(20)])
    assert (starts[:, of_losses] == 0).all()
    assert (np.ptp(starts[:, ~of_losses], axis=0) > 0.5).sum() >= 2
    mine = nutpie_model(private, {"initvals": {f"t{LOSSES}": np.full(4, 0.3)}}, data_of_release(private)).compiled()
    assert (mine.initial_point_func(1)[of_losses] == 0.3).all()


def test_a_name_that_losses_need_is_refused():
    model = model_of(records(), ())
    with model:
        pm.Normal("t_losses")
    assert "The name t_losses is needed for what is released" in refused(pmdp.release, model, epsilon=1.0, bounds={"t": BINS})


def test_density_and_gradient_are_finite_with_everything_beside():
    data = records()
    data["v"] = np.random.default_rng(3).normal(size=N)
    bounds = {"t": BINS, "z": {0, 1}, "v": pmdp.Bins(-2, 2, 4)}
    for more in ({}, {"mechanism": "gaussian", "delta": 1e-6}, {"neighbours": "add_remove"}, {"missing": ["t"]}):
        check_finite(pmdp.privatize(model_of(data, ("v", "z")), epsilon=1.0, bounds=bounds, **more))


def test_a_covariate_in_bins_beside_the_flag_keeps_its_axis(exact_seam):
    """Where all records lie at middles of narrow bins, counts are those of levels, and so is the density."""
    data = records()
    data["v"] = data["x"].astype(float)
    bounds = {"t": BINS, "z": {0, 1}, "v": pmdp.Bins(edges=[-1e-3, 1e-3, 1.001, 2.001])}
    model = model_of(data, ("v", "z"))
    in_bins = pmdp.rewrite(model, pmdp.release(model, epsilon=EXACT, bounds=bounds))
    levels = {name: data[name] for name in ("t", "e", "x", "z")}
    exact = pmdp.rewrite(model_of(levels), released(model_of(levels)))
    order = [i.name for i in likelihood_of(model_of(levels)).inputs if i.name != "e"]
    np.testing.assert_array_equal(exact["t_released"].get_value(), counted(levels, order))
    np.testing.assert_array_equal(in_bins["t_released"].get_value(), exact["t_released"].get_value())
    noisy = in_bins.released[0]
    assert noisy.grid == (3, 2) if order[0] == "x" else (2, 3)
    assert [in_bins.released[0].inputs[w.place].dtype.kind for w in noisy.within] == ["f"]


def test_rows_of_another_number_give_the_same_density(exact_seam):
    model = model_of(records())
    found = released(model)
    private, dummy = pmdp.rewrite(model, found), pmdp.rewrite(model_of(records(7, seed=3)), found)
    for at in points(private, 2):
        assert log_density(private)(at) == pytest.approx(log_density(dummy)(at), rel=1e-12)


def test_a_federation_has_losses_of_each_holder():
    model = model_of(records(), ("z",))
    several = {holder: released(model_of(records(seed=k), ("z",)), epsilon=1.0) for k, holder in enumerate("AB")}
    private = pmdp.published(model, several)
    assert sum(name.endswith(LOSSES) for name in private.named_vars) == 2
    check_finite(private)


def test_results_hold_no_losses_beside_the_user_s_unknowns_and_say_what_cannot_be_drawn():
    model = model_of(records(), ())
    tree = pmdp.sample(
        30, tune=30, chains=1, model=model, epsilon=1.0, bounds={"t": BINS}, progressbar=False, nuts_sampler="pymc",
        compile_kwargs={"mode": "FAST_COMPILE"}, random_seed=1,
    )  # fmt: skip
    assert set(tree["posterior"].data_vars) == {"a", "alpha"}
    assert f"t{LOSSES}" in tree["latent_statistics"].data_vars
    assert "cannot be drawn from its parameters" in refused(pmdp.posterior_predictive, tree, model)
    assert "no synthetic records" in refused(pmdp.synthesize, tree, model, rows=10, sets=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "cannot be drawn" in refused(pmdp.plan, model, epsilon=[1.0], bounds={"t": BINS}, records=60)


def test_a_release_is_saved_and_read(tmp_path):
    model = model_of(records())
    found = released(model, epsilon=1.0)
    found.to_netcdf(tmp_path / "release.nc")
    again = pmdp.Release.from_netcdf(tmp_path / "release.nc")
    first, second = (pmdp.rewrite(model, r) for r in (found, again))
    at = points(first, 1)[0]
    assert log_density(first)(at) == log_density(second)(at)


CODES = np.array([0, 1, 2, -1, 3])
CONDITIONS = {
    "1 alone": (lambda e, f, s: pm.math.switch(pm.math.eq(e, 1), f, s), CODES == 1),
    "all but 0, by eq": (lambda e, f, s: pm.math.switch(pm.math.eq(e, 0), s, f), CODES != 0),
    "all but 0": (lambda e, f, s: pm.math.switch(e, f, s), CODES != 0),
    "above 0": (lambda e, f, s: pm.math.switch(e > 0, f, s), CODES > 0),
    "below 1": (lambda e, f, s: pm.math.switch(e < 1, s, f), CODES > 0),
}


@pytest.mark.parametrize("beside", [False, True], ids=["in the model", "in a table"])
@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("name", CONDITIONS)
def test_a_status_of_other_numbers_tells_what_its_condition_says(name, kind, beside, exact_seam):
    """Of a competing event, 2, ``e == 1`` says that none was seen. It was counted as one, being nearer to 1 than to 0."""
    write, events = CONDITIONS[name]
    status, t = CODES.astype(kind), np.full(len(CODES), 1.0)
    with pm.Model() as model:
        values, e = pm.Data("t", np.ones(2) if beside else t), pm.Data("e", np.zeros(2, dtype=kind) if beside else status)
        law = pm.Weibull.dist(pm.Gamma("alpha", 4, 3), 2.0)
        pm.Potential("like", write(e, pm.logp(law, values), pm.logccdf(law, values)).sum())
    pmdp.release(model, epsilon=1, bounds={"t": BINS}, data=pd.DataFrame({"t": t, "e": status}) if beside else None)
    lost, seen = np.reshape(exact_seam.exact[0], (2, -1)).sum(axis=1)
    assert (seen, lost) == (events.sum(), (~events).sum())


def test_a_flag_of_more_meanings_is_refused():
    """At -1 this one says that there was an event, and at 2 what a product has."""
    with pm.Model() as model:
        t, e = pm.Data("t", np.ones(4)), abs(pm.Data("e", np.array([0, 1, 2, -1])))
        law = pm.Weibull.dist(pm.Gamma("alpha", 4, 3), 2.0)
        pm.Potential("like", (e * pm.logp(law, t) + (1 - e) * pm.logccdf(law, t)).sum())
    assert "more meanings than two" in refused(pmdp.release, model, epsilon=1, bounds={"t": BINS})
