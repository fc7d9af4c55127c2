"""Whether a model fits what was released, and which of several models fits better: functions of a release alone, which cost nothing."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from pymc_dp.privacy.accounting import Refusal, is_whole
from pymc_dp.privacy.guard import boundary
from pymc_dp.private_models.rewrite import private_model, rewrite
from pymc_dp.releases.release import Release

if TYPE_CHECKING:
    import xarray as xr

type Discrepancy = Callable[[np.ndarray], float]


# ---------- does it fit


@boundary
def predictive_check(
    tree: "xr.DataTree",
    model: pm.Model | None = None,
    *,
    discrepancy: Discrepancy | None = None,
    replicates: int = 1000,
    random_seed: int | None = None,
) -> "xr.Dataset":
    """Compare the released statistics with those that the model draws, noise included, and give p-values that are uniform under the model.

    One draw of the posterior is taken at random, and the released statistics are drawn again, with new noise, at this draw. Where prior and
    model are right, the draw and what was released have the law of the prior and the model, so given the draw the rank of what was released
    is uniform, exactly (Johnson 2007; Gosselin 2011). An ordinary posterior predictive p-value averages over draws, and is near 1/2 too
    often. A release is checked only in what it holds: where one sum was released for one parameter, every model of it fits.

    Parameters
    ----------
    tree : xarray.DataTree
        A tree from ``sample`` or ``annotate``. Its chains must have converged, and it must have been drawn with ``noise_aware=True``: where
        statistics had to be changed to be taken for exact this is seen, and refused; where they had not it is not seen.
    model : pm.Model, optional
        Your model; the model in context if left out. No value of it is read.
    discrepancy : callable, optional
        From the statistics of one variable (cells, columns, statistics), in their own units, to a number that is large where they do not
        fit. If left out, the sum of squares of entries, each less its mean and divided by its standard deviation over the
        replicates.
    replicates : int
        The smallest p-value is 1 / (replicates + 1).
    random_seed : int, optional
        It chooses the draw, too. Choose it before you look: the smallest of several p-values is none.

    Returns
    -------
    xarray.Dataset
        ``p`` of dim variable, one for every observed variable; ``p_all`` of the sum of their discrepancies; and for every variable
        ``<variable>_z``, how many standard deviations each statistic lies above what the draw expects, with the dims of what was released.

    Raises
    ------
    Refusal
        When the tree, the model and its release do not belong together.

    Examples
    --------
    >>> checked = pmdp.predictive_check(idata, model, replicates=200, random_seed=1)
    >>> bool(0 < checked["p_all"] <= 1)
    True
    """
    import xarray as xr

    private = private_model(tree, model)
    _check_fit(tree, private, replicates)
    rng = np.random.default_rng(random_seed)
    drawn = _drawn_again(private, _one_draw(tree, private, rng), replicates, rng)
    totals, p_values, z = np.zeros(replicates + 1), {}, {}
    for noisy in private.privacy.statistics:
        values = np.concatenate([noisy.values[None], drawn[noisy.variable]])
        standard = _standard(values)
        discrepancies = (standard**2).reshape(len(values), -1).sum(axis=1) if discrepancy is None else _measured(discrepancy, values)
        p_values[noisy.variable], totals = _p_value(discrepancies, rng), totals + discrepancies
        z[f"{noisy.variable}_z"] = (private.named_vars_to_dims[noisy.variable], standard[0])
    coords: dict[str, Any] = {str(dim): list(private.coords[dim]) for dims, _ in z.values() for dim in dims if private.coords.get(dim)}
    data = {"p": ("variable", list(p_values.values())), "p_all": _p_value(totals, rng)} | z
    return xr.Dataset(data, coords=coords | {"variable": list(p_values)}, attrs={"replicates": replicates})


def _check_fit(tree: "xr.DataTree", private: pm.Model, replicates: object) -> None:
    """Refuse draws of a model that takes the statistics for exact, or that are not said to be given them."""
    if not is_whole(replicates, 19):
        raise Refusal("replicates must be an integer of at least 19. Write for example replicates=1000.")
    if "observed_data" not in tree.children or "posterior" not in tree.children:
        raise Refusal("This tree has no posterior, or does not say what was observed. Use the whole tree that pymc_dp.sample returned.")
    for noisy in private.privacy.statistics:
        if not np.array_equal(tree["observed_data"][noisy.variable].values, noisy.values):
            raise Refusal("These draws take the statistics for exact, so every check would find the noise. Sample with noise_aware=True.")


def _one_draw(tree: "xr.DataTree", private: pm.Model, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The value of every unknown of the private model at one draw of the posterior."""
    groups = [tree[name].to_dataset() for name in ("posterior", "latent_statistics") if name in tree.children]
    chain, draw = (int(rng.integers(groups[0].sizes[dim])) for dim in ("chain", "draw"))
    point = {}
    for variable in private.free_RVs:
        group = next((group for group in groups if variable.name in group.data_vars), None)
        if group is None:
            raise Refusal(f"This tree does not hold {variable.name}. Draw it without var_names.")
        point[variable.name] = group[variable.name].isel(chain=chain, draw=draw).values
    return point


def _drawn_again(private: pm.Model, point: Mapping[str, np.ndarray], many: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The released statistics (many, cells, columns, statistics) that the private model draws where its unknowns have these values."""
    import xarray as xr

    data = {
        name: (("chain", "draw", *(f"{name}_{k}" for k in range(value.ndim))), np.broadcast_to(value, (1, many, *value.shape)))
        for name, value in point.items()
    }
    names = [variable.name for variable in private.observed_RVs]
    fixed = xr.DataTree.from_dict({"posterior": xr.Dataset(data)})
    replicated = pm.sample_posterior_predictive(
        fixed, model=private, var_names=names, random_seed=int(rng.integers(2**31)), progressbar=False,
        compile_kwargs={"mode": "FAST_COMPILE"},
    )  # fmt: skip
    return {name: replicated["posterior_predictive"][name].values[0] for name in names}


def _standard(values: np.ndarray) -> np.ndarray:
    """Entries (M, ...) less their mean over all M, by their standard deviation: 0 where they are all alike."""
    sd = values.std(axis=0)
    return np.divide(values - values.mean(axis=0), sd, out=np.zeros_like(values), where=sd > 0)


def _measured(discrepancy: Discrepancy, values: np.ndarray) -> np.ndarray:
    """A user's discrepancy of every replicate (M,)."""
    try:
        discrepancies = np.array([float(discrepancy(replicate)) for replicate in values])
    except Exception as error:
        raise Refusal(
            f"discrepancy raised {type(error).__name__}. Write a function from an array of shape {values.shape[1:]} to one number."
        ) from None
    if np.isnan(discrepancies).any():
        raise Refusal(
            "discrepancy must be a number, and is none for some replicate. Noisy counts may be 0 or below: divide by none of them."
        )
    return discrepancies


def _p_value(values: np.ndarray, rng: np.random.Generator) -> float:
    """The rank of the first among all, from above, ties at random: uniform on 1/M, ..., 1 where all have one law."""
    tied = int((values[1:] == values[0]).sum())
    return float((1 + int((values[1:] > values[0]).sum()) + int(rng.integers(tied + 1))) / len(values))


# ---------- which fits better


@boundary
def marginal_likelihoods(
    models: Mapping[str, pm.Model],
    release: Release,
    *,
    draws: int = 2000,
    chains: int = 4,
    random_seed: int | None = None,
    progressbar: bool = False,
) -> "xr.Dataset":
    """The probability of one release under several models, by sequential Monte Carlo: differences of logarithms are log Bayes factors.

    The noise is part of every model, so what is compared is what was released, noise included. Bayes factors rest on priors, also
    where posteriors hardly do.

    Parameters
    ----------
    models : mapping of str to pm.Model
        Your models, of one shape: they differ in priors and in how parameters of cells hang together. No value of them is read.
    release : Release
        ``Release.from_datatree(idata)`` of a result.
    draws, chains : int
        Of ``pm.sample_smc``.
    random_seed : int, optional
    progressbar : bool

    Returns
    -------
    xarray.Dataset
        Of dim model: ``log_marginal_likelihood``, in nats; ``error``, its Monte Carlo standard error from the chains; and
        ``probability``, that of the model if all were as likely beforehand.

    Raises
    ------
    Refusal
        When a model is of another shape, has a Potential or an improper prior, or when the numbers of records are unknown without bound.

    Examples
    --------
    >>> with pm.Model() as fair:
    ...     share = pm.Beta("share", 200, 200)
    ...     vote = pm.Bernoulli("vote", share, observed=votes)
    >>> both = {"any": model, "fair": fair}
    >>> compared = pmdp.marginal_likelihoods(both, pmdp.Release.from_datatree(idata), draws=200, chains=2, random_seed=1)
    >>> compared["probability"].sizes
    Frozen({'model': 2})
    """
    import xarray as xr
    from scipy.special import softmax

    if not isinstance(models, Mapping) or not models or not all(isinstance(model, pm.Model) for model in models.values()):
        raise Refusal("models must be models by name. Write for example marginal_likelihoods({'pooled': pooled, 'apart': apart}, release).")
    if not is_whole(chains, 2):
        raise Refusal("chains must be an integer of at least 2, because chains tell the error. Write chains=4.")
    privates = {name: rewrite(model, release) for name, model in models.items()}
    for name, private in privates.items():
        _check_proper(name, private)
    logs = np.array([_by_smc(private, draws, chains, random_seed, progressbar) for private in privates.values()])
    top = logs.max(axis=1, keepdims=True)
    relative = np.exp(logs - top)
    log = top[:, 0] + np.log(relative.mean(axis=1))
    error = relative.std(axis=1, ddof=1) / np.sqrt(chains) / relative.mean(axis=1)
    data = {"log_marginal_likelihood": ("model", log), "error": ("model", error), "probability": ("model", softmax(log))}
    return xr.Dataset(data, coords={"model": list(models)})


def _check_proper(name: str, private: pm.Model) -> None:
    """Refuse what has no marginal likelihood: densities that do not add up to 1."""
    for variable in private.free_RVs:
        if type(variable.owner.op).__name__ in ("FlatRV", "HalfFlatRV", "SizesRV"):
            raise Refusal(
                f"{variable.name} has an improper prior, under which no release has a probability. Give it a distribution, or, if it is"
                " a number of records, release with neighbours='replace'."
            )
    if private.potentials:
        raise Refusal(f"{name} has a Potential, so its prior does not add up to 1. Write its prior as distributions.")


def _by_smc(private: pm.Model, draws: int, chains: int, seed: int | None, progressbar: bool) -> list[float]:
    """The log marginal likelihood that every chain found: its last stage's."""
    with private:
        tree = pm.sample_smc(draws, chains=chains, cores=1, random_seed=seed, progressbar=progressbar, compute_convergence_checks=False)
    return _last(tree["sample_stats"]["log_marginal_likelihood"].values)


def _last(stages: np.ndarray) -> list[float]:
    """The last finite number of every chain. Chains have different numbers of stages, and then this is an array of lists."""
    return [float([number for number in chain if np.isfinite(number)][-1]) for chain in stages]
