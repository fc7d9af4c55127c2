"""Synthetic records from a private fit, and how analyses of several such data sets are combined.

Records are drawn from the posterior predictive distribution, one data set at every draw of the posterior, so they follow from what was
released. Whoever analyses one of them as if it were real is too sure of it; ``combine`` adds what differs between them.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from pymc_dp.models.level_labels import level_labels
from pymc_dp.models.spec import Likelihood, ModelSpec, Placeholder
from pymc_dp.plans.protection import in_context
from pymc_dp.privacy.accounting import Refusal, is_whole
from pymc_dp.privacy.calls import explained
from pymc_dp.privacy.guard import boundary
from pymc_dp.private_models.labels import PROMISED, covered, posterior_is_covered
from pymc_dp.private_models.likelihood import counted_together
from pymc_dp.private_models.predictive import drawn_on
from pymc_dp.private_models.predictive_rows import rows_of_new_records, spec_of
from pymc_dp.private_models.rewrite import at_cells
from pymc_dp.private_models.sizes import SIZE
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.release import SAVED, Release

if TYPE_CHECKING:
    import xarray as xr


@boundary
def synthesize(
    tree: "xr.DataTree",
    model: pm.Model | None = None,
    *,
    rows: int,
    sets: int = 50,
    given: Mapping[str, object] | None = None,
    random_seed: int | None = None,
) -> "xr.Dataset":
    """Synthetic data sets, each drawn from the posterior predictive distribution at another draw of the posterior. They cost no epsilon.

    Analyse every set and give the estimates to ``combine``: an interval from one set, taken for real records, is too narrow.

    Observed variables are drawn from the model's likelihoods, parents first. An index, or another covariate of which the release holds
    cells, is drawn from the cells, with probabilities that are drawn given the numbers of records in them. Covariates of which sums or
    second moments were released have no cells: pass them as ``given=``. The sets hold only what the model says: two variables that
    are independent in the model are independent in every set.

    Parameters
    ----------
    tree : xarray.DataTree
        A tree from ``sample`` or ``annotate``.
    model : pm.Model, optional
        Your model, not the private one; the model in context if left out. No value of it is read.
    rows : int
        Records in every set. For ``combine`` take at least ten times as many as there were records.
    sets : int
        How many sets: at most as many as the tree has draws. Draws are taken at equal distances.
    given : mapping, optional
        Covariates by name, (rows,), as for ``posterior_predictive``: the same in all sets. They are published, so they must not be private.
    random_seed : int, optional

    Returns
    -------
    xarray.Dataset
        Observed variables and covariates of dims (set, record, ...). An index into a dim with labels, and a categorical variable along
        one, has these labels as values.
        ``synthetic.isel(set=0, drop=True).to_dataframe()`` is a table.

    Raises
    ------
    Refusal
        When the tree and the model do not belong together, or a covariate has to be given.

    Examples
    --------
    >>> synthetic = pmdp.synthesize(idata, model, rows=20_000, sets=10, random_seed=1)
    >>> synthetic["vote"].shape
    (10, 20000)
    >>> means = synthetic["vote"].mean("record").values
    >>> pmdp.combine(means, np.sqrt(means * (1 - means) / 20_000)).sizes
    Frozen({})
    """
    model = in_context(model)
    _check_arguments(model, rows, sets)
    thinned, latent = _thinned(tree, sets)
    released = Release.from_datatree(tree) if SAVED in tree["privacy"].children else None
    spec = spec_of(tree, model, released)
    if undrawn := next((likelihood for likelihood in spec.likelihoods if likelihood.again is None), None):
        raise Refusal(
            f"{undrawn.name} is {undrawn.distribution}, which cannot be drawn from its parameters, so there are no synthetic records. Write"
            " it as one of PyMC's own distributions."
        )
    given, rng = dict(given or {}), np.random.default_rng(random_seed)
    drawn = _covariates(spec, released, latent, given, rows, sets, rng)
    first = given | {name: values[0] for name, values in drawn.items()}
    on = rows_of_new_records(tree, model, spec, released, [likelihood.name for likelihood in spec.likelihoods], first, rows)
    group = drawn_on(thinned, on, int(rng.integers(2**31)), drawn)
    return _labelled(group, spec, drawn, given, rows).assign_attrs(_promise(tree))


def _check_arguments(model: pm.Model, rows: object, sets: object) -> None:
    if hasattr(model, "privacy"):
        raise Refusal("The private model holds noisy statistics, not likelihoods of records. Write synthesize(idata, model) with your own.")
    for name, number in (("rows", rows), ("sets", sets)):
        if not is_whole(number, 1):
            raise Refusal(f"{name} must be a positive integer. Write for example synthesize(idata, model, rows=10_000, sets=50).")


def _promise(tree: "xr.DataTree") -> dict[str, object]:
    """What was spent and is promised, where the promise covers the posterior as it stands."""
    promised = posterior_is_covered(tree)
    return {str(key): value for key, value in tree["privacy"].attrs.items() if promised and key in PROMISED}


def _thinned(tree: "xr.DataTree", sets: int) -> tuple["xr.Dataset", dict[str, np.ndarray]]:
    """Draws of the posterior at equal distances, as one chain; and those of latent sizes."""
    covered(tree)  # refuses what is no labelled tree
    if "posterior" not in tree.children:
        raise Refusal("This tree has no posterior. Use the whole tree that pymc_dp.sample returned.")
    if "sample_stats" in tree.children and "log_weight" in tree["sample_stats"].data_vars:
        raise Refusal("These draws have weights, and sets have none. Draw without Annealing.")
    posterior = tree["posterior"].to_dataset()
    draws = posterior.sizes["chain"] * posterior.sizes["draw"]
    if sets > draws:
        raise Refusal(f"Every set needs a draw of its own, and there are {draws}. Write sets={draws}, or draw more from private_model.")
    places = np.linspace(0, draws - 1, sets).round().astype(int) if sets > 1 else np.array([draws // 2])

    def taken(values: np.ndarray) -> np.ndarray:
        return values.reshape(draws, *values.shape[2:])[places]

    data = {name: (variable.dims, taken(variable.values)[None]) for name, variable in posterior.data_vars.items()}
    coords = {name: value for name, value in posterior.coords.items() if not {"chain", "draw"} & set(map(str, value.dims))}
    latent = tree["latent_statistics"].to_dataset() if "latent_statistics" in tree.children else posterior
    sizes = {str(name): taken(variable.values) for name, variable in latent.data_vars.items() if str(name).endswith(SIZE)}
    import xarray as xr

    return xr.Dataset(data, coords=dict(coords) | {"chain": [0], "draw": np.arange(sets)}), sizes


# ---------- covariates


def _covariates(
    spec: ModelSpec, released: Release | None, latent: Mapping[str, np.ndarray], given: Mapping[str, object], rows: int, sets: int,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Values (sets, rows) of all covariates that are not given, by name."""
    wanted = {likelihood.name: _to_draw(likelihood, given) for likelihood in spec.likelihoods}
    largest = max(spec.likelihoods, key=lambda likelihood: len(wanted[likelihood.name]))
    here = wanted[largest.name]
    for name, placeholders in wanted.items():
        if apart := sorted(set(placeholders) - set(here)):
            raise Refusal(
                f"{name} rests on {apart[0]} and {largest.name} on others, so nothing says how they go together."
                f" Write given={{{apart[0]!r}: ...}}."
            )
    if not here:
        return {}
    if released is None:
        raise Refusal(f"These draws rest on no cells, so nothing says how {next(iter(here))} is distributed. Write given={{...}}.")
    noisy = released[largest.name]
    _check_cells(noisy, here)
    shares = _probabilities(largest, noisy, latent.get(f"{noisy.variable}{SIZE}"), sets, rng)
    cells = np.stack([rng.choice(len(share), rows, p=share) for share in shares])
    place = {placeholder.name: k for k, placeholder in enumerate(largest.inputs)}
    return {name: noisy.inputs[place[name]][cells] for name in here}


def _to_draw(likelihood: Likelihood, given: Mapping[str, object]) -> dict[str, Placeholder]:
    """The covariates of a likelihood, by name, that are neither observed nor given."""
    return {
        placeholder.name: placeholder
        for placeholder in likelihood.inputs
        if placeholder.axis is not None and not placeholder.parent and not {placeholder.name, placeholder.labels} & set(given)
    }


def _check_cells(noisy: NoisyStatistic, here: Mapping[str, Placeholder]) -> None:
    """Refuse covariates whose values are not those of cells."""
    name = next(iter(here))
    if binned := sorted(set(noisy.binned) & set(here)):
        raise Refusal(
            f"{binned[0]} was counted in bins, and where in them it lies was not released. Write given={{{binned[0]!r}: ...}}, one entry"
            " per row."
        )
    if noisy.regression is not None or noisy.weights.size or noisy.structure == "aggregate":
        raise Refusal(
            f"Of {name} sums were released and no cells, so it cannot be drawn. Write given={{{name!r}: ...}}, one entry per row."
        )
    for placeholder in here.values():
        if not placeholder.plain or placeholder.axis != 0 or placeholder.variable.type.ndim != 1:
            raise Refusal(
                f"{placeholder.name} is computed or has several columns, so it is not drawn. Write given={{{placeholder.name!r}: ...}}, one"
                " entry per row."
            )
    if noisy.sizes not in ("public", "simplex"):
        raise Refusal(f"The number of records is private here, so {name} is not drawn. Write given={{{name!r}: ...}}, one entry per row.")


def _probabilities(
    likelihood: Likelihood, noisy: NoisyStatistic, sizes: np.ndarray | None, sets: int, rng: np.random.Generator
) -> np.ndarray:
    """Probabilities (sets, cells) of a new record, drawn given how many records the cells have.

    Those of public cells are Dirichlet(n), the Bayesian bootstrap. Sizes that are private have a flat prior on the simplex, which is that
    of records whose cells have flat probabilities: given the sizes, probabilities are Dirichlet(1 + sizes).
    """
    gamma = rng.gamma(noisy.n.astype(float), size=(sets, len(noisy.n)))
    public = gamma / gamma.sum(axis=1, keepdims=True)
    if noisy.sizes == "public":
        return public
    if sizes is None:
        raise Refusal(f"This tree does not hold {noisy.variable}{SIZE}. Draw it without var_names.")
    within = sizes
    if not counted_together(noisy, at_cells(likelihood, noisy)):
        gamma = rng.gamma(1.0 + sizes * noisy.n[:, None])
        within = gamma / gamma.sum(axis=-1, keepdims=True)
    within = within / within.sum(axis=-1, keepdims=True)
    return (public[:, :, None] * within).reshape(sets, -1)


# ---------- labels


def _labelled(
    group: "xr.Dataset", spec: ModelSpec, drawn: Mapping[str, np.ndarray], given: Mapping[str, object], rows: int
) -> "xr.Dataset":
    """The sets, with covariates beside what was drawn, and the model's labels for what indexes a dim that has any."""
    import xarray as xr

    sets = group.sizes["draw"]
    data = group.isel(chain=0, drop=True).rename(draw="set").assign_coords(record=np.arange(rows))
    arrays = {name: np.asarray(values) for name, values in given.items()}
    same = {name: np.broadcast_to(values, (sets, *np.shape(values))) for name, values in arrays.items()}
    columns: dict[str, Any] = {name: xr.DataArray(values, dims=("set", "record")) for name, values in drawn.items()}
    columns |= {
        name: xr.DataArray(values, dims=("set", "record", *(f"{name}_{k}" for k in range(values.ndim - 2))))
        for name, values in same.items()
    }
    data = data.assign(columns)
    for name, labels in level_labels(spec).items():
        values = data[name] if name in data.data_vars else None
        if values is not None and values.dtype.kind in "iub" and 0 <= int(values.min()) <= int(values.max()) < len(labels):
            data[name] = (values.dims, np.asarray(labels)[values.values.astype(int)])
    return data


# ---------- what several sets say together


@explained
def combine(
    estimates: Sequence[Any] | np.ndarray, standard_errors: Sequence[Any] | np.ndarray, *, probability: float = 0.95
) -> "xr.Dataset":
    """What the same analysis of several synthetic data sets says together: an estimate with an interval that knows the noise.

    Fit your analysis to every set as if it were real. Estimates of large sets differ by the posterior of what they estimate, which holds
    the few records and the noise: the mixed posterior of Räisä, Jälkö and Honkela (2023, arXiv 2305.16795). Sets of finite size add their
    own chance, which is taken off: the variance is (1 + 1/m) b - w, where b is that of the m estimates and w the mean of squared
    standard errors (Raghunathan, Reiter and Rubin 2003), with the degrees of freedom of Reiter (2002).

    Parameters
    ----------
    estimates, standard_errors : (sets, ...) array
        Of every set, as the analysis returns them.
    probability : float
        Of the intervals.

    Returns
    -------
    xarray.Dataset
        ``estimate``, ``standard_error``, ``degrees_of_freedom``, ``lower`` and ``upper``, of the shape of one estimate.

    Raises
    ------
    Refusal
        When there are fewer than two sets; or when half of what estimates differ by, or more, is the chance of sets that are too small.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> float(pmdp.combine(rng.normal(3, 0.5, 50), np.full(50, 0.05))["estimate"].round())
    3.0
    """
    import xarray as xr
    from scipy import stats

    q, se = np.asarray(estimates, dtype=float), np.asarray(standard_errors, dtype=float)
    if q.shape != se.shape or q.ndim == 0 or len(q) < 2:
        raise Refusal("combine needs an estimate and a standard error of every set, and at least two sets. Write sets=50 in synthesize.")
    if not (np.isfinite(q).all() and np.isfinite(se).all() and (se >= 0).all()):
        raise Refusal(
            "Estimates and standard errors must be finite numbers. Write more rows in synthesize, so that the analysis works on every set."
        )
    if not 0 < probability < 1:
        raise Refusal("probability must lie between 0 and 1. Write for example probability=0.95.")
    m, between, within = len(q), q.var(axis=0, ddof=1), (se**2).mean(axis=0)
    if (2 * within > between).any():
        raise Refusal("The sets are so small that their own chance hides what they tell. Write ten times as many rows in synthesize.")
    total = (1 + 1 / m) * between
    variance = total - within
    freedom = (m - 1) * (1 - within / np.where(total > 0, total, 1)) ** 2
    half = stats.t.ppf((1 + probability) / 2, freedom) * np.sqrt(variance)
    centre = q.mean(axis=0)
    summaries = {
        "estimate": centre,
        "standard_error": np.sqrt(variance),
        "degrees_of_freedom": freedom,
        "lower": centre - half,
        "upper": centre + half,
    }
    dims = [f"estimate_{axis}" for axis in range(centre.ndim)]
    return xr.Dataset({name: (dims, value) for name, value in summaries.items()}, attrs={"sets": m, "probability": probability})
