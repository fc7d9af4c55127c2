"""What ``pm.sample`` would refuse of its own arguments, found out before the records are paid for. ``sampling`` asks here first.

Whatever PyMC can be asked without a model is asked of PyMC itself; the rest is compared with the user's model, of which the private one
keeps the names. Nothing is compiled.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import getsource, signature
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np
import pymc as pm
import pytensor
from pymc.progress_bar import ProgressBarOptions
from pymc.pytensorf import resolve_backend_compile_kwargs
from pymc.sampling import mcmc
from pymc.sampling.parallel import _initialize_multiprocessing_context
from pymc.step_methods import STEP_METHODS
from pymc.step_methods.hmc.base_hmc import BaseHMC
from pymc.util import get_random_generator
from pytensor.compile.mode import get_mode
from pytensor.link.jax.linker import JAXLinker
from pytensor.link.numba.linker import NumbaLinker

from pymc_dp.accounting import Refusal
from pymc_dp.likely import LATENT, SHARED, SIZE, TABLES

PACKAGES: Mapping[str, tuple[str, ...]] = {
    "pymc": (),
    "nutpie": ("nutpie",),
    "numpyro": ("jax", "numpyro"),
    "blackjax": ("jax", "blackjax"),
}
"""By the name of a sampler what it imports."""
WHOLE = {"tune": 0, "chains": 1, "cores": 1, "jitter_max_retries": 0, "n_init": 1}
"""Arguments that are whole numbers, and their least values."""


def check_settings(sampler: Mapping[str, Any], model: pm.Model, dropped: Mapping[str, str]) -> None:
    """Refuse what would make ``pm.sample`` fail on the private model, with what to write instead.

    Parameters
    ----------
    sampler : mapping
        Arguments of ``pm.sample`` by name.
    model : pm.Model
        The user's.
    dropped : mapping
        Names that do not survive in the private model, and why.
    """
    _check_kinds(sampler)
    if not [one for one in model.free_RVs if one.name not in dropped]:
        raise Refusal("Nothing in this model is unknown, so there is nothing to draw. Write pymc_dp.release(model, ...) instead.")
    if twice := {one.name for one in model.unobserved_RVs if one.name not in dropped} & {"chain", "draw"}:
        raise Refusal(f"{min(twice)} is the name of a dim of draws. Give that variable another name.")
    chosen = _check_nuts_sampler(sampler)
    _check_backend(sampler)
    _check_steps(sampler, chosen)
    _check_seed(sampler.get("random_seed"))
    discrete = [one.name for one in model.free_RVs if one.name not in dropped and np.dtype(one.dtype).kind in "biu"]
    if chosen not in (None, "pymc") and discrete:
        raise Refusal(f"{chosen} draws unknown real numbers only, and {discrete[0]} is a whole number. Leave nuts_sampler out.")
    _check_names(sampler.get("var_names"), model, dropped)
    _check_initial(sampler.get("initvals"), sampler.get("chains"), model, dropped)


def _check_kinds(sampler: Mapping[str, Any]) -> None:
    """Arguments whose kind is known whatever the others are."""
    for name, least in WHOLE.items():
        given = sampler.get(name, least)
        if given is None and name in ("tune", "chains", "cores"):
            continue
        if isinstance(given, bool | np.bool_) or not isinstance(given, Integral) or int(given) < least:
            raise Refusal(f"{name} must be a whole number of at least {least}. Write for example {name}={max(least, 2)}.")
    blas = sampler.get("blas_cores", "auto")
    if not (blas is None or blas == "auto" or (isinstance(blas, int) and not isinstance(blas, bool) and blas > 0)):
        raise Refusal('blas_cores must be a positive whole number, "auto" or None. Leave it out for "auto".')
    shown = sampler.get("progressbar", True)
    if not isinstance(shown, bool) and shown not in get_args(ProgressBarOptions):
        raise Refusal(f"progressbar must be one of True, False, {', '.join(map(repr, get_args(ProgressBarOptions)))}. Leave it out.")
    callback = sampler.get("callback")
    if callback is not None and not callable(callback):
        raise Refusal("callback must be a function of the trace and the draw. Leave it out if nothing is to be called.")
    for name in ("idata_kwargs", "compile_kwargs", "nuts_sampler_kwargs"):
        if not isinstance(sampler.get(name), dict | None):
            raise Refusal(f"{name} must be a dict of arguments by name. Leave it out if there are none.")
    unknown = sorted(set(sampler.get("idata_kwargs") or ()) - set(signature(pm.to_inference_data).parameters))
    if unknown:
        raise Refusal(f"pm.to_inference_data does not know {unknown[0]}. Leave it out of idata_kwargs.")
    init = sampler.get("init", "auto")
    if not isinstance(init, str) or f'"{init.lower()}"' not in getsource(pm.init_nuts):
        raise Refusal('init must be one of the ways of pm.init_nuts. Write for example init="jitter+adapt_diag", or leave it out.')
    if init.lower() == "map":
        raise Refusal('init="map" needs second derivatives, which a noisy likelihood has not. Leave init out, or write init="advi".')


def _check_nuts_sampler(sampler: Mapping[str, Any]) -> str | None:
    """The sampler that is asked for, which can be imported."""
    chosen = sampler.get("nuts_sampler")
    if chosen is None:
        return None
    if not isinstance(chosen, str) or chosen not in PACKAGES:
        raise Refusal(f"nuts_sampler must be one of {', '.join(map(repr, PACKAGES))}. Leave it out for the fastest that is there.")
    for package in PACKAGES[chosen]:
        _check_installed(package, f"nuts_sampler={chosen!r}")
    if chosen == "nutpie" and not mcmc._nutpie_meets_min_version():
        raise Refusal("This nutpie is older than PyMC takes. Install a newer one, or leave nuts_sampler out.")
    if chosen == "pymc":
        return chosen
    others = [step.name for step in STEP_METHODS if step.name != "nuts" and step.name in sampler]
    if others:
        raise Refusal(f'{chosen} takes settings in nuts={{...}} only. Leave {others[0]} out, or write nuts_sampler="pymc".')
    if sampler.get("callback") is not None:
        raise Refusal(f'{chosen} calls no callback. Leave it out, or write nuts_sampler="pymc".')
    if chosen == "nutpie" and not isinstance(sampler.get("initvals"), dict | None):
        raise Refusal('nutpie takes one dict of initial values for all chains. Write one dict, or nuts_sampler="pymc".')
    return chosen


def _check_installed(package: str, said: str) -> None:
    try:
        import_module(package)
    except Exception:
        raise Refusal(f"{said} needs the package {package}, which cannot be imported. Install it, or leave that argument out.") from None


def _check_backend(sampler: Mapping[str, Any]) -> None:
    """The backend and how processes are started, as PyMC reads them."""
    if "backend" in (sampler.get("nuts") or {}):
        raise Refusal("backend is an argument of its own. Write backend=... instead of nuts={'backend': ...}.")
    try:
        compiling = resolve_backend_compile_kwargs(sampler.get("backend"), sampler.get("compile_kwargs"))
        linker = get_mode(compiling.get("mode")).linker
        context = _initialize_multiprocessing_context(sampler.get("mp_ctx"), mode=compiling.get("mode"), quiet=True)
        context.get_start_method()
    except Exception:
        raise Refusal(
            "PyMC does not know this backend, mode or mp_ctx, or two of them say it twice. Write for example backend='numba', or leave them"
            " out."
        ) from None
    for kind, package in ((JAXLinker, "jax"), (NumbaLinker, "numba")):
        if isinstance(linker, kind):
            _check_installed(package, "This backend")
    known = {*signature(pytensor.function).parameters, "mode", "random_seed", "gradient_backend", "freeze_model", "jitter_rvs"}
    known |= {"initial_points", "default_initialization_strategy", "backend"}
    unknown = sorted(set(compiling) - known)
    if unknown:
        raise Refusal(f"PyTensor does not know {unknown[0]}. Leave it out of compile_kwargs.")


def _check_steps(sampler: Mapping[str, Any], chosen: str | None) -> None:
    """Settings of step methods, by the names that the samplers give them."""
    for step in STEP_METHODS:
        if not isinstance(sampler.get(step.name, {}), dict):
            raise Refusal(f'{step.name} holds settings by name. Write for example {step.name}={{"max_treedepth": 8}}, or leave it out.')
    nuts = sampler.get("nuts", {})
    if sampler.get("nuts_sampler_kwargs") is not None and "nuts" in sampler:
        raise Refusal("nuts and nuts_sampler_kwargs say the same. Write nuts={...} alone.")
    if "target_accept" in nuts and "target_accept" in sampler:
        raise Refusal("target_accept is said twice. Write it once, in nuts or by itself.")
    target = sampler.get("target_accept", nuts.get("target_accept", 0.8))
    if isinstance(target, bool) or not isinstance(target, Real) or not 0 < float(target) < 1:
        raise Refusal("target_accept must lie between 0 and 1. Write for example target_accept=0.9.")
    if chosen == "pymc":
        known = {*signature(pm.NUTS.__init__).parameters, *signature(BaseHMC.__init__).parameters, *signature(pytensor.function).parameters}
        unknown = sorted(set(nuts) - (known - {"self", "kwargs", "pytensor_kwargs"}))
        if unknown:
            raise Refusal(f"The NUTS of PyMC does not know {unknown[0]}. Leave it out of nuts.")


def _check_seed(seed: object) -> None:
    try:
        if seed == -1:
            raise ValueError
        get_random_generator(seed)
    except Exception:
        raise Refusal("random_seed must be whole numbers of at least 0, or a NumPy Generator. Write for example 1.") from None


def _check_names(names: object, model: pm.Model, dropped: Mapping[str, str]) -> None:
    """Names of what is kept: of the user's model, or of the noise that the private model adds."""
    if names is None:
        return
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise Refusal("var_names must be a list of names. Write for example var_names=['mu'].")
    if len(set(names)) < len(names):
        raise Refusal("var_names holds a name twice. Write it once.")
    _check_survives(names, {one.name for one in model.unobserved_RVs}, model, dropped, "var_names")


def _check_survives(names: Sequence[str], known: set[str], model: pm.Model, dropped: Mapping[str, str], where: str) -> None:
    added = tuple(f"{one.name}{ending}" for one in model.observed_RVs for ending in (LATENT, SIZE, SHARED, TABLES))
    for name in names:
        if name in dropped:
            raise Refusal(f"{name} does not survive the rewrite: {dropped[name]}. Leave it out of {where}.")
        if name not in known and not name.startswith(added):
            raise Refusal(f"{name} is no unknown of this model. Leave it out of {where}.")


def _check_initial(given: object, chains: object, model: pm.Model, dropped: Mapping[str, str]) -> None:
    """Initial values: one dict, or one for every chain, by names of unknowns."""
    if given is None:
        return
    several = [given] if isinstance(given, dict) else given
    if not isinstance(several, Sequence) or isinstance(several, str) or not all(isinstance(one, dict | None) for one in several):
        raise Refusal("initvals must be a dict by name, or a list with one for every chain. Write for example initvals={'mu': 0.0}.")
    if not isinstance(given, dict) and len(several) != chains:
        raise Refusal(f"initvals has {len(several)} entries, one for every chain. Write chains={len(several)} beside it.")
    unknowns: dict[str, Any] = {one.name: one for one in model.free_RVs}
    transformed = {value.name: variable.name for variable, value in model.rvs_to_values.items()}
    for one in several:
        if not all(isinstance(name, str) for name in one or ()):
            raise Refusal("initvals are given by names of unknowns. Write for example initvals={'mu': 0.0}.")
        named = {transformed.get(name, name): value for name, value in (one or {}).items()}
        _check_survives([*named], set(unknowns), model, dropped, "initvals")
        for name, value in named.items():
            _check_value(name, value, unknowns.get(name))


def _check_value(name: str, value: Any, unknown: Any) -> None:
    if isinstance(value, str):
        if value not in ("support_point", "moment", "prior"):
            raise Refusal(f"The initial value of {name} is neither a number nor a strategy. Write a number, 'support_point' or 'prior'.")
    elif unknown is not None and np.ndim(value) > unknown.ndim:
        raise Refusal(f"The initial value of {name} has more axes than {name}. Write an array of its shape.")
