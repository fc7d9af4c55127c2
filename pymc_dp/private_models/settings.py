"""What ``pm.sample`` would refuse of its own arguments, found before the records are paid for.

Whatever PyMC can be asked without a model is asked of PyMC itself; the rest is compared with the user's model, of which the private one
keeps the names and the priors. Settings of NUTS are tried on a model of one unknown, which takes the code that will read them.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import getsource
from logging import CRITICAL, getLogger
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np
import pymc as pm
from pymc.model.fgraph import ModelFreeRV
from pymc.progress_bar import ProgressBarOptions
from pymc.pytensorf import resolve_backend_compile_kwargs
from pymc.sampling import mcmc
from pymc.sampling.parallel import _initialize_multiprocessing_context
from pymc.step_methods import STEP_METHODS
from pymc.util import get_random_generator
from pytensor.compile.mode import get_mode
from pytensor.link.jax.linker import JAXLinker
from pytensor.link.numba.linker import NumbaLinker

from pymc_dp.models.spec import ModelSpec
from pymc_dp.plans.naming import check_names, drawn_of
from pymc_dp.privacy.accounting import Refusal, is_whole
from pymc_dp.privacy.requests import MOST_DRAWS
from pymc_dp.private_models.rewrite import priors_of
from pymc_dp.private_models.starts import check_initial_values, check_start, check_survives, first_line

PACKAGES: Mapping[str, tuple[str, ...]] = {
    "pymc": (),
    "nutpie": ("nutpie",),
    "numpyro": ("jax", "numpyro"),
    "blackjax": ("jax", "blackjax"),
}
"""The packages that each sampler imports."""
WHOLE = {"tune": 0, "chains": 1, "cores": 1, "jitter_max_retries": 0, "n_init": 1}
"""Arguments that are whole numbers, and their least values."""
SETTINGS = ("target_accept", "max_treedepth", "early_max_treedepth", "step_scale", "Emax", "gamma", "k", "t0", "adapt_step_size")
"""What ``nuts`` may say to PyMC's own sampler: the rest belongs to a model's own variables."""


def check_settings(sampler: Mapping[str, Any], model: pm.Model, spec: ModelSpec) -> None:
    """Refuse what would make ``pm.sample`` fail on the private model, with what to write instead.

    Parameters
    ----------
    sampler : mapping
        Arguments of ``pm.sample`` by name.
    model : pm.Model
        The user's.
    spec : ModelSpec
        What was read of it, of which nothing is refused any more. The density of the priors is asked of these alone: where PyMC derives
        one, it computes what it can of the whole model beforehand, and says what of that fails, records and all.
    """
    _check_kinds(sampler)
    # By the user's names: PyMC's own, of what is missing, would show that something is, and rest on the records beside it.
    names = {variable.owner.op.name for variable in spec.kept if isinstance(variable.owner.op, ModelFreeRV)}
    priors = priors_of(spec)
    unknowns = [priors[variable.name] for variable in model.free_RVs if variable.name in names]
    if not unknowns:
        raise Refusal("Nothing in this model is unknown, so there is nothing to draw. Write pymc_dp.release(model, ...) instead.")
    check_names(drawn_of(spec), model.coords)
    chosen = _check_nuts_sampler(sampler)
    linker = _check_backend(sampler)
    discrete = [unknown.name for unknown in unknowns if np.dtype(unknown.dtype).kind in "biu"]
    if chosen not in (None, "pymc") and discrete:
        raise Refusal(f"{chosen} draws unknown real numbers only, and {discrete[0]} is a whole number. Leave nuts_sampler out.")
    init = sampler.get("init", "auto").lower()
    if chosen is None:
        default = init == "auto" and sampler.get("callback") is None and isinstance(sampler.get("initvals"), dict | None)
        external = default and not discrete and isinstance(linker, NumbaLinker | JAXLinker) and mcmc._nutpie_meets_min_version()
        chosen = "nutpie" if external else "pymc"
    _check_steps(sampler, chosen)
    _check_seed(sampler.get("random_seed"))
    _check_var_names(sampler.get("var_names"), spec)
    starts = check_initial_values(sampler.get("initvals"), sampler.get("chains"), priors, unknowns, spec.dropped)
    check_start(starts, priors, unknowns, jitters=chosen != "pymc" or (not discrete and (init == "auto" or "jitter" in init)))


def _check_kinds(sampler: Mapping[str, Any]) -> None:
    """Arguments whose kind is known whatever the others are."""
    for name, least in WHOLE.items():
        value = sampler.get(name, least)
        if value is None and name in ("tune", "chains", "cores"):
            continue
        if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or not least <= int(value) <= MOST_DRAWS:
            raise Refusal(f"{name} must be a whole number from {least} to {MOST_DRAWS:,}. Write for example {name}={max(least, 2)}.")
    blas = sampler.get("blas_cores", "auto")
    if not (blas is None or blas == "auto" or is_whole(blas, 1)):
        raise Refusal('blas_cores must be a positive whole number, "auto" or None. Leave it out for "auto".')
    progressbar = sampler.get("progressbar", True)
    if not isinstance(progressbar, bool) and progressbar not in get_args(ProgressBarOptions):
        raise Refusal(f"progressbar must be one of True, False, {', '.join(map(repr, get_args(ProgressBarOptions)))}. Leave it out.")
    callback = sampler.get("callback")
    if callback is not None and not callable(callback):
        raise Refusal("callback must be a function of the trace and the draw. Leave it out if nothing is to be called.")
    for name in ("idata_kwargs", "compile_kwargs", "nuts_sampler_kwargs"):
        if not isinstance(sampler.get(name), dict | None):
            raise Refusal(f"{name} must be a dict of arguments by name. Leave it out if there are none.")
    for name, value in (sampler.get("idata_kwargs") or {}).items():
        if name != "include_transformed" or not isinstance(value, bool):
            raise Refusal(
                f"idata_kwargs takes include_transformed=True or False here. Leave {name} out, and add to the tree what else you need."
            )
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
    if sampler.get("callback") is not None:
        raise Refusal(f'{chosen} calls no callback. Leave it out, or write nuts_sampler="pymc".')
    if chosen == "nutpie" and not isinstance(sampler.get("initvals"), dict | None):
        raise Refusal('nutpie takes one dict of initial values for all chains. Write one dict, or nuts_sampler="pymc".')
    return chosen


def _check_installed(package: str, argument: str) -> None:
    try:
        import_module(package)
    except Exception:
        raise Refusal(
            f"{argument} needs the package {package}, which cannot be imported. Install it, or leave that argument out."
        ) from None


def _check_backend(sampler: Mapping[str, Any]) -> Any:
    """The linker, from the backend and how processes are started, as PyMC reads them."""
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
    unknown = sorted(map(str, set(sampler.get("compile_kwargs") or ()) - {"mode"}))
    if unknown:
        raise Refusal(f"compile_kwargs takes a mode here, and not {unknown[0]}, which samplers read differently. Leave it out.")
    return linker


def _check_steps(sampler: Mapping[str, Any], chosen: str) -> None:
    """Settings of NUTS, read by the sampler that is going to read them."""
    for step in STEP_METHODS:
        if step.name != "nuts" and step.name in sampler:
            raise Refusal(
                f"Settings of other steps than NUTS belong to the private model. Write private = pymc_dp.privatize(...), then"
                f" pm.sample(model=private, {step.name}=...)."
            )
    if sampler.get("nuts_sampler_kwargs") is not None and "nuts" in sampler:
        raise Refusal("nuts and nuts_sampler_kwargs say the same. Write nuts={...} alone.")
    nuts = dict(sampler.get("nuts", sampler.get("nuts_sampler_kwargs")) or {})
    if "target_accept" in nuts and "target_accept" in sampler:
        raise Refusal("target_accept is said twice. Write it once, in nuts or by itself.")
    target = sampler.get("target_accept", nuts.get("target_accept", 0.8))
    if isinstance(target, bool) or not isinstance(target, Real) or not 0 < float(target) < 1:
        raise Refusal("target_accept must lie between 0 and 1. Write for example target_accept=0.9.")
    if nuts and chosen in TRIALS:
        _check_nuts(nuts, chosen)


def _check_nuts(nuts: dict[str, Any], chosen: str) -> None:
    """Every setting by itself, so that the words name the one that fails, then all together."""
    if not all(isinstance(name, str) for name in nuts):
        raise Refusal('nuts holds settings by name. Write for example nuts={"max_treedepth": 8}.')
    for tried in ({}, *({name: value} for name, value in nuts.items()), nuts):
        problem = TRIALS[chosen](dict(tried))
        if problem is not None:
            name = next(iter(tried)) if len(tried) == 1 else "one of them"
            raise Refusal(f"{chosen} does not take these settings in nuts, because of {name}: {problem}. Leave it out.")


def _try_nutpie(nuts: dict[str, Any]) -> str | None:
    """Why nutpie does not take these settings; it draws from a standard normal, of which nothing is compiled."""
    import xarray as xr
    from nutpie import sample
    from nutpie.compiled_pyfunc import from_pyfunc

    if nuts.get("init_mean") is not None:
        return "it has one value for every unknown of the private model, noise included"
    if "max_treedepth" in nuts:
        nuts["maxdepth"] = nuts.pop("max_treedepth")
    toy = from_pyfunc(1, lambda: lambda x: (-0.5 * float(x @ x), -x), lambda *_: lambda x: {"x": x}, [np.dtype("float64")], [(1,)], ["x"])
    short = {"draws": 1, "tune": 1, "chains": 1, "cores": 1, "seed": 1, "save_warmup": False, "store_unconstrained": False}
    try:
        drawn = sample(toy, **short, progress_bar=False, progress_callback=None, **nuts)
    except BaseException as error:  # a panic of Rust is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return first_line(error)
    return None if isinstance(drawn, xr.DataTree) else "with it nutpie returns no DataTree"


def _try_pymc(nuts: dict[str, Any]) -> str | None:
    """Why PyMC's own NUTS does not take these settings."""
    if others := sorted(set(nuts) - set(SETTINGS)):
        return f"{others[0]} is none of {', '.join(SETTINGS)}"
    wrong = [name for name, value in nuts.items() if isinstance(value, bool) != (name == "adapt_step_size") or not isinstance(value, Real)]
    if wrong or not all(np.isfinite(value) and (value > 0 or name == "adapt_step_size") for name, value in nuts.items()):
        return "it must be a number above 0, or True or False for adapt_step_size"
    with pm.Model() as toy:
        pm.Normal("x")
    log = getLogger("pymc")
    before = log.level
    log.setLevel(CRITICAL)
    try:
        pm.sample(
            1, tune=1, chains=1, cores=1, model=toy, nuts_sampler="pymc", nuts=nuts, init="adapt_diag", progressbar=False, quiet=True,
            compute_convergence_checks=False,
        )  # fmt: skip
    except Exception as error:
        return first_line(error)
    finally:
        log.setLevel(before)
    return None


TRIALS = {"nutpie": _try_nutpie, "pymc": _try_pymc}
"""For each sampler, the function that finds out what it does not take."""


def _check_seed(seed: object) -> None:
    try:
        if seed == -1:
            raise ValueError
        get_random_generator(seed)
    except Exception:
        raise Refusal("random_seed must be whole numbers of at least 0, or a NumPy Generator. Write for example 1.") from None


def _check_var_names(names: object, spec: ModelSpec) -> None:
    """Names of what is kept of the user's model."""
    if names is None:
        return
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names) or not names:
        raise Refusal("var_names must be a list of names. Write for example var_names=['mu'].")
    if len(set(names)) < len(names):
        raise Refusal("var_names holds a name twice. Write it once.")
    check_survives(names, {variable.name for variable in drawn_of(spec)}, spec.dropped, "var_names")
