"""What ``pm.sample`` would refuse of its own arguments, found out before the records are paid for. ``sampling`` asks here first.

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
from pymc.initial_point import convert_str_to_rv_dict, make_initial_point_expression
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
from pymc_dp.plans.inspection import drawn_of
from pymc_dp.plans.naming import check_names
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.requests import MOST_DRAWS

PACKAGES: Mapping[str, tuple[str, ...]] = {
    "pymc": (),
    "nutpie": ("nutpie",),
    "numpyro": ("jax", "numpyro"),
    "blackjax": ("jax", "blackjax"),
}
"""By the name of a sampler what it imports."""
WHOLE = {"tune": 0, "chains": 1, "cores": 1, "jitter_max_retries": 0, "n_init": 1}
"""Arguments that are whole numbers, and their least values."""
SETTINGS = ("target_accept", "max_treedepth", "early_max_treedepth", "step_scale", "Emax", "gamma", "k", "t0", "adapt_step_size")
"""What ``nuts`` may say to PyMC's own sampler: the rest belongs to a model's own variables."""
JITTERS = 10
"""Points around the start that are tried, as many as ``pm.sample`` tries."""


def check_settings(sampler: Mapping[str, Any], model: pm.Model, spec: ModelSpec) -> None:
    """Refuse what would make ``pm.sample`` fail on the private model, with what to write instead.

    Parameters
    ----------
    sampler : mapping
        Arguments of ``pm.sample`` by name.
    model : pm.Model
        The user's.
    spec : ModelSpec
        What was read of it: nothing of it may be refused any more, for its priors' density is asked for, which might rest on records.
    """
    _check_kinds(sampler)
    # By the user's names: PyMC's own, of what is missing, would show that something is, and rest on the records beside it.
    names = {variable.owner.op.name for variable in spec.kept if isinstance(variable.owner.op, ModelFreeRV)}
    unknowns = [variable for variable in model.free_RVs if variable.name in names]
    if not unknowns:
        raise Refusal("Nothing in this model is unknown, so there is nothing to draw. Write pymc_dp.release(model, ...) instead.")
    check_names(drawn_of(spec), model.coords)
    chosen = _check_nuts_sampler(sampler)
    compiling = _check_backend(sampler)
    discrete = [one.name for one in unknowns if np.dtype(one.dtype).kind in "biu"]
    if chosen not in (None, "pymc") and discrete:
        raise Refusal(f"{chosen} draws unknown real numbers only, and {discrete[0]} is a whole number. Leave nuts_sampler out.")
    init = sampler.get("init", "auto").lower()
    if chosen is None:
        plain = init == "auto" and sampler.get("callback") is None and isinstance(sampler.get("initvals"), dict | None)
        external = plain and not discrete and isinstance(compiling, NumbaLinker | JAXLinker) and mcmc._nutpie_meets_min_version()
        chosen = "nutpie" if external else "pymc"
    _check_steps(sampler, chosen)
    _check_seed(sampler.get("random_seed"))
    _check_var_names(sampler.get("var_names"), spec)
    starts = _check_initial(sampler.get("initvals"), sampler.get("chains"), model, unknowns, spec.dropped)
    _check_start(starts, model, unknowns, jitters=chosen != "pymc" or (not discrete and (init == "auto" or "jitter" in init)))


def _check_kinds(sampler: Mapping[str, Any]) -> None:
    """Arguments whose kind is known whatever the others are."""
    for name, least in WHOLE.items():
        given = sampler.get(name, least)
        if given is None and name in ("tune", "chains", "cores"):
            continue
        if isinstance(given, bool | np.bool_) or not isinstance(given, Integral) or not least <= int(given) <= MOST_DRAWS:
            raise Refusal(f"{name} must be a whole number from {least} to {MOST_DRAWS}. Write for example {name}={max(least, 2)}.")
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
    for name, said in (sampler.get("idata_kwargs") or {}).items():
        if name != "include_transformed" or not isinstance(said, bool):
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


def _check_installed(package: str, said: str) -> None:
    try:
        import_module(package)
    except Exception:
        raise Refusal(f"{said} needs the package {package}, which cannot be imported. Install it, or leave that argument out.") from None


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
    said = {"draws": 1, "tune": 1, "chains": 1, "cores": 1, "seed": 1, "save_warmup": False, "store_unconstrained": False}
    try:
        drawn = sample(toy, **said, progress_bar=False, progress_callback=None, **nuts)
    except BaseException as error:  # a panic of Rust is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return _first_line(error)
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
        return _first_line(error)
    finally:
        log.setLevel(before)
    return None


TRIALS = {"nutpie": _try_nutpie, "pymc": _try_pymc}
"""By the name of a sampler how to find out what it does not take."""


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


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
    _check_survives(names, {variable.name for variable in drawn_of(spec)}, spec.dropped, "var_names")


def _check_survives(names: Sequence[str], known: set[str], dropped: Mapping[str, str], where: str) -> None:
    for name in names:
        if name in dropped:
            raise Refusal(f"{name} does not survive the rewrite: {dropped[name]}. Leave it out of {where}.")
        if name not in known:
            raise Refusal(f"{name} is no unknown of this model. Leave it out of {where}.")


def _check_initial(
    given: object, chains: object, model: pm.Model, variables: Sequence[Any], dropped: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Initial values: one dict, or one for every chain, by names of unknowns. Returned by those names."""
    if given is None:
        return [{}]
    several = [given] if isinstance(given, dict) else given
    if not isinstance(several, Sequence) or isinstance(several, str) or not all(isinstance(one, dict | None) for one in several):
        raise Refusal("initvals must be a dict by name, or a list with one for every chain. Write for example initvals={'mu': 0.0}.")
    if not isinstance(given, dict) and len(several) != chains:
        raise Refusal(f"initvals has {len(several)} entries, one for every chain. Write chains={len(several)} beside it.")
    unknowns: dict[str, Any] = {one.name: one for one in variables}
    transformed = {model.rvs_to_values[one].name: one.name for one in variables}
    for one in several:
        if not all(isinstance(name, str) for name in one or ()):
            raise Refusal("initvals are given by names of unknowns. Write for example initvals={'mu': 0.0}.")
        named = {transformed.get(name, name): value for name, value in (one or {}).items()}
        _check_survives([*named], set(unknowns), dropped, "initvals")
        for name, value in named.items():
            _check_value(name, value, unknowns[name])
    return [dict(one or {}) for one in several]


def _check_value(name: str, value: Any, unknown: Any) -> None:
    if isinstance(value, str):
        if value not in ("support_point", "moment", "prior"):
            raise Refusal(f"The initial value of {name} is neither a number nor a strategy. Write a number, 'support_point' or 'prior'.")
    elif not isinstance(value, Real | list | tuple | np.ndarray) or np.asarray(value).dtype.kind not in "biuf":
        raise Refusal(f"The initial value of {name} is no number. Write a number, or an array of numbers of its shape.")
    elif np.asarray(value).ndim > unknown.ndim:
        raise Refusal(f"The initial value of {name} has more axes than {name}. Write an array of its shape.")


def _check_start(starts: Sequence[dict[str, Any]], model: pm.Model, unknowns: Sequence[Any], jitters: bool) -> None:
    """A start whose density is 0 or not a number, there and around: a prior outside its own support, or initial values outside it.

    Only priors are asked, which rest on no record.
    """
    inputs, density = [model.rvs_to_values[one] for one in unknowns], None
    for overrides in starts:
        try:
            strategies = {**model.rvs_to_initial_values, **convert_str_to_rv_dict(model, overrides)}
            values = make_initial_point_expression(
                free_rvs=unknowns,
                rvs_to_transforms=model.rvs_to_transforms,
                initval_strategies={one: strategies.get(one) for one in unknowns},
                return_transformed=True,
            )
            point = pm.compile([], values, mode="FAST_COMPILE")()
            if density is None:
                priors = model.logp(vars=unknowns, sum=False)
                density = pm.compile(inputs, priors, mode="FAST_COMPILE", on_unused_input="ignore")
            found = _unlikely(density(*point), unknowns)
            for k in range(JITTERS if found and jitters else 0):
                found = found and _unlikely(density(*(_moved(value, k) for value in point)), unknowns)
        except Exception as error:
            raise Refusal(f"PyMC cannot start from here: {_first_line(error)}. Mend the priors or initvals.") from None
        if found:
            raise Refusal(
                f"Sampling cannot start: the prior of {found} has no finite density there. Write initvals={{{found!r}: ...}} inside its"
                " support, or mend its prior."
            )


def _moved(value: np.ndarray, k: int) -> np.ndarray:
    """A point up to 1 away in every direction, another one for every k."""
    return value + np.sin((k + 1) * np.arange(1, value.size + 1)).reshape(value.shape) if value.dtype.kind == "f" else value


def _unlikely(densities: Sequence[np.ndarray], unknowns: Sequence[Any]) -> str | None:
    """The first unknown whose density is not finite."""
    return next((one.name for one, density in zip(unknowns, densities, strict=True) if not np.all(np.isfinite(density))), None)
