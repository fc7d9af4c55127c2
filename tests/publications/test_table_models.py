"""A model on top of a published table: its log-density, its draws, and both parts of these, as enumeration gives them."""

from itertools import product

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as pmdp

COORDS = {"area": ["a", "b"], "sex": ["f", "m"]}
VALUES = np.array([[2, 5], [0, 1]])
QUERIES = [
    pmdp.TableQuery(VALUES, pmdp.DiscreteGaussian(1.5), dims=("area", "sex")),
    pmdp.TableQuery([7.2, 2.1], pmdp.LaplaceNoise(1.0), dims=("area",)),
    pmdp.TableQuery(9, pmdp.Exact()),
    pmdp.TableQuery([np.nan, 1], pmdp.Exact(), dims=("area",), sign=">="),
]


def truth(mixed=False):
    with pm.Model(coords=COORDS) as model:
        rate = pm.Gamma("rate", 2, 1, dims="area")
        if mixed:
            pm.NegativeBinomial("people", mu=2 * rate[:, None], alpha=1.5, observed=np.zeros((2, 2), dtype=int), dims=("area", "sex"))
        else:
            pm.Poisson("people", 2 * rate[:, None], observed=np.zeros((2, 2), dtype=int), dims=("area", "sex"))
    return model


def public(mixed=False):
    return pmdp.published(truth(mixed), {"people": pmdp.PublishedTable(COORDS, QUERIES)})


def log_sums(x):
    """Log-probabilities of the published sums at tables (tables, 2, 2), up to a constant."""
    logs = -0.5 * ((x - VALUES) / 1.5) ** 2
    areas = x.sum(axis=2)
    met = (areas.sum(axis=1) == 9) & (areas[:, 1] >= 1)
    return np.where(met, logs.sum(axis=(1, 2)) - np.abs(areas - [7.2, 2.1]).sum(axis=1), -np.inf)


@pytest.mark.parametrize("mixed", [False, True])
def test_the_model_has_the_density_of_table_and_sums(mixed):
    model = public(mixed)
    point = model.initial_point()
    logp = model.compile_logp(mode="FAST_COMPILE")
    assert np.isfinite(logp(point))

    def by_hand(x):
        law = stats.nbinom(1.5, 1.5 / (1.5 + 2.0)) if mixed else stats.poisson(2.0)
        return law.logpmf(x).sum() + log_sums(x[None])[0]

    first, second, impossible = (np.array(x) for x in ([[3, 4], [1, 1]], [[5, 1], [0, 3]], [[3, 5], [1, 1]]))
    at = [logp(point | {"rate_log__": np.zeros(2), "people_true": x}) for x in (first, second, impossible)]
    assert at[0] - at[1] == pytest.approx(by_hand(first) - by_hand(second))
    assert at[2] == -np.inf


@pytest.mark.slow
@pytest.mark.parametrize("mixed", [False, True])
def test_draws_of_table_and_rates_are_those_of_the_posterior(mixed):
    """Means and deviations against enumeration of tables and a grid of rates: 4 chains of 1,500 draws, five standard errors."""
    rates, step = np.linspace(0.01, 16, 800, retstep=True)
    law = stats.nbinom(1.5, 1.5 / (1.5 + 2 * rates[:, None])) if mixed else stats.poisson(2 * rates[:, None])
    each = law.pmf(np.arange(10))
    prior = stats.gamma(2).pdf(rates) * step
    tables = np.array([x for x in product(range(10), repeat=4) if sum(x) == 9]).reshape(-1, 2, 2)
    logs = log_sums(tables)
    areas = [(each[:, tables[:, k, 0]] * each[:, tables[:, k, 1]] * prior[:, None]) for k in range(2)]
    weights = np.exp(logs - logs.max()) * areas[0].sum(axis=0) * areas[1].sum(axis=0)
    weights /= weights.sum()
    mean_rate = [weights @ ((areas[k] * rates[:, None]).sum(axis=0) / areas[k].sum(axis=0)) for k in range(2)]
    mean_table = np.tensordot(weights, tables, axes=1)
    spread = np.sqrt(np.tensordot(weights, (tables - mean_table) ** 2, axes=1))

    tree = pmdp.sample(1500, tune=500, chains=4, cores=1, model=public(mixed), random_seed=3, progressbar=False)
    drawn, seen = tree.posterior["people_true"].values, tree.posterior["rate"].values
    assert (drawn.sum(axis=(2, 3)) == 9).all()
    import arviz as az

    for k, expected in enumerate(mean_rate):
        assert abs(seen[..., k].mean() - expected) < 5 * float(az.mcse(seen[..., k])), k
    for place in np.ndindex(2, 2):
        cell = drawn[(..., *place)].astype(float)
        error = float(az.mcse(cell))
        assert abs(cell.mean() - mean_table[place]) < 5 * error
        assert cell.std() == pytest.approx(spread[place], rel=0.1)
    assert "sums over one table" in str(tree.privacy["law"].values[0])


def test_steps_leave_density_and_names_in_place():
    """A short run by PyMC itself: every table meets the exact rows, and the rest of the model moves along."""
    model = public()
    tree = pm.sample(
        40, tune=40, chains=1, cores=1, model=model, step=pmdp.table_steps(model), random_seed=1, progressbar=False,
        compute_convergence_checks=False, compile_kwargs={"mode": "FAST_COMPILE"},
    )  # fmt: skip
    drawn = tree.posterior["people_true"]
    assert drawn.dims == ("chain", "draw", "area", "sex")
    assert (drawn.sum(("area", "sex")) == 9).all()
    assert drawn.var() > 0
    assert tree.posterior["rate"].var() > 0


def test_what_no_table_can_be_is_refused():
    with pm.Model() as model:
        pm.Normal("x", 0, 1, observed=np.zeros((2, 2)))
    with pytest.raises(pmdp.Refusal, match="Poisson or NegativeBinomial"):
        pmdp.published(model, {"x": pmdp.PublishedTable(COORDS, QUERIES)})
    with pm.Model() as model:
        pm.Poisson("x", 2.0, observed=np.zeros(3, dtype=int))
    with pytest.raises(pmdp.Refusal, match="shape"):
        pmdp.published(model, {"x": pmdp.PublishedTable(COORDS, QUERIES)})
    with pytest.raises(pmdp.Refusal, match="impossible"):
        pmdp.published(truth(), {"people": pmdp.PublishedTable(COORDS, QUERIES, impossible=[[True, False], [False] * 2])})
    with pytest.raises(pmdp.Refusal, match="no published table"):
        pmdp.table_steps(truth())
