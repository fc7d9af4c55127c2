"""Draws by nutpie from private models, which are compiled once for all releases of one model.

What nutpie compiled is kept in memory, for the last few models, by all that went into it (``fingerprint``); another release is data that it
is called with. Draws, and the tree that holds them, are those of ``pm.sample``.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, c_double
from dataclasses import dataclass, replace
from logging import getLogger
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
from pymc.backends.arviz import patch_nutpie_idata
from pymc.initial_point import make_initial_point_fn
from pymc.progress_bar import NutpieProgressBarManager
from pymc.sampling import mcmc
from pymc.sampling.parallel import _cpu_count, _initialize_multiprocessing_context
from pymc.step_methods import NUTS
from pymc.util import get_random_generator
from pytensor.compile.mode import get_mode
from pytensor.graph.basic import Variable
from pytensor.link.jax.linker import JAXLinker
from pytensor.link.numba.linker import NumbaLinker

from pymc_dp.private_models.events import jittered_unknowns
from pymc_dp.private_models.fingerprint import Fingerprint, Uncacheable, fingerprint
from pymc_dp.private_models.newton_starts import NEARLY, Density, coefficients_of, latents_of, started_by_newton
from pymc_dp.private_models.possible_starts import nearer

if TYPE_CHECKING:
    import xarray as xr
    from nutpie.compile_pymc import CompiledPyMCModel

KEPT = 16
"""How many compiled models are kept, those that were asked for last."""
READ = {
    *("blas_cores", "chains", "compute_convergence_checks", "cores", "discard_tuned_samples", "idata_kwargs", "initvals", "nuts"),
    *("nuts_sampler", "progressbar", "progressbar_theme", "quiet", "random_seed", "target_accept", "tune", "var_names"),
}
"""Arguments of ``pm.sample`` that are read here; with others ``pm.sample`` does what they say."""


class Compiled:
    """The compiled models that were asked for last, by their keys; threads share them."""

    def __init__(self, most: int) -> None:
        self.most, self.models, self.lock = most, OrderedDict[tuple, "CompiledPyMCModel"](), Lock()

    def get(self, key: tuple) -> "CompiledPyMCModel | None":
        """The model, which is now the one that was asked for last."""
        with self.lock:
            if key in self.models:
                self.models.move_to_end(key)
            return self.models.get(key)

    def put(self, key: tuple, model: "CompiledPyMCModel") -> None:
        """Keep a model, and let go of the one that nobody asked for the longest."""
        with self.lock:
            self.models[key] = model
            while len(self.models) > self.most:
                self.models.popitem(last=False)

    def clear(self) -> None:
        """Let go of all."""
        with self.lock:
            self.models.clear()


COMPILED = Compiled(KEPT)
"""What this process has compiled: code by its keys, with the first release of each model as the data that it was compiled with.

No record is in it: all of it is made from private models."""


@dataclass(frozen=True)
class NutpieModel:
    """A private model that nutpie is to draw from.

    Attributes
    ----------
    private : pm.Model
    start : callable
        From a seed to where a chain starts, by names of the values of free variables.
    var_names : sequence of str or None
        What is kept of every draw; None for everything.
    fingerprint : Fingerprint
    unjittered : callable
        Where chains would start without jitter.
    initial : bool
        Whether the user says where chains start.
    """

    private: pm.Model
    start: Callable[[Any], dict[str, np.ndarray]]
    var_names: Sequence[str] | None
    fingerprint: Fingerprint
    unjittered: Callable[[], dict[str, np.ndarray]]
    initial: bool = False

    @property
    def known(self) -> bool:
        """Whether it is compiled already."""
        return COMPILED.get(self.fingerprint.key) is not None

    def compiled(self) -> "CompiledPyMCModel":
        """What nutpie samples; it is compiled now if no release of the same model was before."""
        import nutpie

        compiled = COMPILED.get(self.fingerprint.key)
        if compiled is None:
            whole = nutpie.compile_pymc_model(self.private, var_names=self.var_names, backend="numba")
            # Without the graphs, and the starts, which are this release's.
            compiled = replace(whole, logp_func=None, expand_func=None, initial_point_func=None)
            COMPILED.put(self.fingerprint.key, compiled)
        names = {variable.name for variable in compiled.shared_var_keys}
        with_data = compiled.with_data(**{name: value for name, value in self.fingerprint.data.items() if name in names})
        free = [self.private.rvs_to_values[variable].name for variable in self.private.free_RVs]
        density, lock = _density_of(with_data), Lock()

        def flat(point: Mapping[str, np.ndarray]) -> np.ndarray:
            return np.concatenate([np.ravel(point[name]).astype("float64") for name in free])

        def start(seed: Any) -> np.ndarray:
            with lock:
                return nearer(lambda point: density(point)[0], flat(self.start(seed)), lambda: flat(self.unjittered()))

        begun = replace(with_data, initial_point_func=start)
        return begun if self.initial else started(begun, self.private)


def started(compiled: "CompiledPyMCModel", private: pm.Model) -> "CompiledPyMCModel":
    """A compiled model that moves coefficients, before a chain starts, to where the released numbers are likely (``climb``)."""
    moved, latent = coefficients_of(private), latents_of(private)
    if not moved:
        return compiled
    shapes = private.eval_rv_shapes()
    names = [(variable.name, private.rvs_to_values[variable].name) for variable in private.free_RVs]
    sizes = [int(np.prod(shapes[value])) for _, value in names]
    coefficient = np.repeat([value in moved for _, value in names], sizes)
    nearly = np.where(np.repeat([name in latent for name, _ in names], sizes), NEARLY, 1.0)
    density, theirs = _density_of(compiled), compiled.initial_point_func
    return replace(compiled, initial_point_func=lambda seed: started_by_newton(density, nearly * theirs(seed), coefficient))


def _density_of(compiled: "CompiledPyMCModel") -> Density:
    """The log-density and its gradient, as nutpie calls them."""
    number = POINTER(c_double)

    def density(point: np.ndarray) -> tuple[float, np.ndarray]:
        at, gradient, value = np.ascontiguousarray(point), np.empty(len(point)), np.empty(())
        failed = compiled.compiled_logp_func.ctypes(
            len(at), *(array.ctypes.data_as(number) for array in (at, gradient, value)), compiled.user_data.ctypes.data
        )
        return (-np.inf if failed else float(value)), gradient

    return density


def nutpie_model(private: pm.Model, sampler: Mapping[str, Any], data: Mapping[Variable, str]) -> NutpieModel | None:
    """A private model for nutpie; None where ``pm.sample`` is to draw from it, or cannot be told from others by what is compiled of it.

    Parameters
    ----------
    private : pm.Model
    sampler : mapping
        Arguments of ``pm.sample``.
    data : mapping of shared variables to str
        What of the model is data, by name: ``fingerprint.data_of_release``.
    """
    others = [value for name, value in sampler.items() if name not in READ and value is not None]
    initial = sampler.get("initvals")
    if not all(isinstance(value, str) and value == "auto" for value in others):
        return None
    if sampler.get("nuts_sampler") not in (None, "nutpie") or not isinstance(initial, dict | None):
        return None
    if not isinstance(get_mode(None).linker, NumbaLinker):
        return None
    start = make_initial_point_fn(model=private, overrides=initial, jitter_rvs=jittered_unknowns(private))
    try:
        key = fingerprint(private, start(0), data, sampler.get("var_names"))
    except Uncacheable:
        return None

    def unjittered() -> dict[str, np.ndarray]:
        return make_initial_point_fn(model=private, overrides=initial)(0)

    model = NutpieModel(private, start, sampler.get("var_names"), key, unjittered, initial is not None)
    return model if model.known or takes_nutpie(private) else None


def takes_nutpie(private: pm.Model) -> bool:
    """Whether PyMC would take nutpie, and that for all variables of this model."""
    if not (mcmc._nutpie_meets_min_version() and isinstance(get_mode(None).linker, NumbaLinker | JAXLinker)):
        return False
    _, steps = mcmc.assign_step_methods(private)
    return set(steps) == {NUTS}


def drawn_by_nutpie(model: NutpieModel, draws: int, sampler: Mapping[str, Any]) -> "xr.DataTree":
    """The tree of ``pm.sample`` with these arguments.

    Parameters
    ----------
    model : NutpieModel
    draws : int
        Draws per chain.
    sampler : mapping
        Arguments of ``pm.sample``, of those in ``READ``.
    """
    import nutpie

    settings = {name: value for name, value in sampler.items() if value is not None}
    quiet, log = settings.get("quiet", False), getLogger(mcmc.__name__)
    cores = settings.get("cores", min(4, _cpu_count()))
    chains = settings.get("chains", max(2, cores))
    limited, cores, _ = mcmc.setup_cores_blas_cores(
        sampler.get("blas_cores", "auto"), chains, cores, _initialize_multiprocessing_context(None, quiet=quiet)
    )
    nuts = dict(settings.get("nuts", {}))
    if "target_accept" in settings:
        nuts["target_accept"] = settings["target_accept"]
    if "max_treedepth" in nuts:
        nuts["maxdepth"] = nuts.pop("max_treedepth")
    first, *_ = get_random_generator(settings.get("random_seed")).spawn(chains)
    if not quiet:
        if draws < 100:
            log.warning(f"Only {draws} samples per chain. Reliable r-hat and ESS diagnostics require longer chains for accurate estimate.")
        log.info(f"NUTS[nutpie]: {model.private.free_RVs}")
    bar = NutpieProgressBarManager(
        chains=chains,
        draws=draws,
        progressbar=not quiet and settings.get("progressbar", True),
        progressbar_theme=settings.get("progressbar_theme"),
    )
    with limited():
        compiled = model.compiled()
        start = time.time()
        with bar:
            tree = nutpie.sample(
                compiled,
                draws=draws,
                tune=None if "tune" not in settings else max(settings["tune"], 1),
                chains=chains,
                cores=cores,
                seed=int(first.integers(2**30)),
                save_warmup=not settings.get("discard_tuned_samples", True),
                store_unconstrained=settings.get("idata_kwargs", {}).get("include_transformed", False),
                progress_bar=False,
                progress_callback=bar.update,
                **nuts,
            )
        patch_nutpie_idata(tree, model.private, sampling_time=time.time() - start)
    return tree
