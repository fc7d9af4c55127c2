"""``inspect``, ``sample`` and ``privatize``: from a model to annotated draws in one call.

Only ``release`` gets the model with its records.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any

import pymc as pm
from pymc.step_methods import STEP_METHODS

from pymc_dp.plans.inspection import Inspection
from pymc_dp.plans.person import Person, key_of
from pymc_dp.plans.protection import ALREADY_PRIVATE, Individual, Protection, in_context, protection_of, with_records
from pymc_dp.posterior import sample_posterior, schedule
from pymc_dp.privacy.accounting import Refusal, Weights, is_whole
from pymc_dp.privacy.calls import explained, unknown_setting
from pymc_dp.privacy.guard import boundary
from pymc_dp.privacy.ledger import Ledger, Part
from pymc_dp.privacy.mechanisms import Mechanism
from pymc_dp.privacy.requests import MOST_DRAWS, PosteriorRequest, PosteriorSample
from pymc_dp.private_models.annotation import covering_all
from pymc_dp.private_models.as_made import unchanged
from pymc_dp.private_models.default_steps import default_steps
from pymc_dp.private_models.diagnostics import warn_if_clamped, warn_if_unsettled
from pymc_dp.private_models.fingerprint import data_of_release
from pymc_dp.private_models.latent_groups import latents_apart
from pymc_dp.private_models.missed_mass import warn_if_missed
from pymc_dp.private_models.no_density import check_cells, no_density_by_prior
from pymc_dp.private_models.nutpie_draws import drawn_by_nutpie, nutpie_model
from pymc_dp.private_models.possible_starts import stopped_at
from pymc_dp.private_models.prior_check import outside_by_prior
from pymc_dp.private_models.rewrite import check_noise_aware, rewritten
from pymc_dp.private_models.settings import check_settings
from pymc_dp.publications.publication import Noted, noted
from pymc_dp.publications.table_steps import table_steps, tables_of
from pymc_dp.releases.columns import inspection_with_columns
from pymc_dp.releases.from_records import prepared
from pymc_dp.releases.release import Release

if TYPE_CHECKING:
    import xarray as xr


@explained
def inspect(
    model: pm.Model | None = None,
    *,
    bounds: Mapping[str, object] | None = None,
    public: Iterable[object] = (),
    unit: str | Individual | Person = "row",
    neighbours: str = "replace",
    missing: Mapping[str, object] | Iterable[str] | None = None,
    disjoint: Iterable[object] | bool | None = None,
    mechanism: str | Mechanism | PosteriorRequest | None = None,
    epsilon: object = None,
    delta: float = 0,
    weights: Weights = None,
    data: object = None,
) -> Inspection:
    """Show what would be released from a model and how far one record can move it. It reads shapes and the graph, never a record.

    Parameters
    ----------
    model : pm.Model, optional
        The model in context if left out.
    bounds : mapping, optional
        (lower, upper) for observed variables and private covariates, in their own units. Bounds that are still needed are listed.
    public : list, optional
        Arrays that everyone may know: names of ``pm.Data``, of dims (every index into them), ``"<observed>:<k>"`` as this table
        lists it, or the arrays themselves.
    unit : str, Individual or Person
        What one row stands for, in words; ``Person`` for all rows of a person; "individual" for rows that are totals.
    neighbours : str
        "replace": one record is exchanged for another, their number is public. "add_remove": a record is added or removed.
    missing, disjoint
        See ``release``.
    mechanism : Gibbs or Annealing, or a noise as ``release`` takes it, optional
        Of ``Gibbs`` and ``Annealing``, show every update that it would make, and the price of all, as ``sample`` would charge it.
    epsilon, delta
        With a noise, or no mechanism: show how epsilon is divided among observed variables. With ``Gibbs`` or ``Annealing``: the total
        cost, unless the mechanism says what one update may cost.
    weights : optional
        See ``release``.
    data : optional
        Records beside the model: see ``release``. Names of columns are looked at, and the number of rows where it is public.

    Returns
    -------
    Inspection
        ``print`` it; docs/reading.md explains every line. With a mechanism, its ``schedule`` is made by the code that charges.

    Raises
    ------
    Refusal
        For arguments that name nothing or are malformed; a model that cannot be released is described. With a mechanism, as ``sample``.

    Examples
    --------
    >>> inspected = pmdp.inspect(model)
    >>> inspected.rows[0].statistics, inspected.rows[0].sensitivity
    (('ones',), 1.0)
    """
    model = with_records(model)
    protection = protection_of(
        bounds=bounds, public=public, unit=unit, neighbours=neighbours, missing=missing, disjoint=disjoint, persons=True
    )
    shown = _described(model, protection, data)
    if not isinstance(mechanism, PosteriorRequest):
        if epsilon is None:
            if mechanism is not None or delta != 0 or weights is not None:
                raise Refusal("How noise is divided rests on epsilon. Write for example inspect(model, epsilon=1.0).")
            return shown
        if shown.problems or any(row.needs or not row.structure for row in shown.rows):
            return shown
        noise = "laplace" if mechanism is None else mechanism
        divided = prepared(model, protection, epsilon=epsilon, delta=delta, mechanism=noise, weights=weights, data=data)
        return replace(shown, parts=divided.parts)
    if weights is not None:
        raise Refusal("Draws that ask the records pay one by one, so nothing is divided. Leave weights out.")
    if data is not None:
        raise Refusal("Chains that pay at every update take no data=. Leave mechanism out, or let the model observe the records.")
    return replace(shown, schedule=schedule(model, mechanism, epsilon, delta, protection))


@boundary
def _described(model: pm.Model, protection: Protection, data: object) -> Inspection:
    """The table, with what the priors put beyond the bounds, and where there is no density."""
    spec, shown = inspection_with_columns(model, protection, data)
    if protection.person is not None and data is None and not shown.problems:
        key_of(model, spec, protection.person)
    if shown.problems:
        return shown
    bounds = protection.bounds or {}
    return replace(shown, outside=outside_by_prior(spec, bounds) if bounds else {}, no_density=no_density_by_prior(spec, bounds))


@explained
def privatize(model: pm.Model | None = None, *, noise_aware: bool = True, **arguments: Any) -> pm.Model:
    """``rewrite(model, release(model, **arguments))``: the private model, with the Release at its ``privacy`` attribute.

    Parameters
    ----------
    model : pm.Model, optional
        The model in context if left out.
    noise_aware : bool
        See ``rewrite``.
    **arguments
        The arguments of ``release``; ``epsilon`` is required.

    Returns
    -------
    pm.Model

    Raises
    ------
    Refusal, PrivateComputationError
        As ``release`` and ``rewrite``; a Refusal without ``epsilon``.

    Examples
    --------
    >>> private = pmdp.privatize(model, epsilon=1.0)
    >>> private.privacy.cost
    Cost(epsilon=1, delta=0)
    """
    if "epsilon" not in arguments:
        raise Refusal("privatize needs epsilon. Write for example privatize(model, epsilon=1.0).")
    check_noise_aware(noise_aware)
    declared = {
        name: arguments.pop(name) for name in ("bounds", "public", "unit", "neighbours", "missing", "disjoint") if name in arguments
    }
    protection = protection_of(**declared, persons=True)
    ready = prepared(model, protection, **arguments)
    check_cells(ready.plan.spec, protection.bounds or {})
    return rewritten(ready.plan.spec, ready.pay_and_draw(), noise_aware=noise_aware)


DRAWS = 1000
"""Of a chain, where nothing else is said."""


@explained
def sample(
    draws: int = DRAWS,
    *,
    epsilon: object = None,
    model: pm.Model | None = None,
    mechanism: str | Mechanism | PosteriorRequest = "laplace",
    noise_aware: bool = True,
    delta: float = 0,
    bounds: Mapping[str, object] | None = None,
    public: Iterable[object] = (),
    unit: str | Individual | Person = "row",
    neighbours: str = "replace",
    missing: Mapping[str, object] | Iterable[str] | None = None,
    disjoint: Iterable[object] | bool | None = None,
    weights: Weights = None,
    ledger: Ledger | Part | None = None,
    data: object = None,
    **sampler: Any,
) -> "xr.DataTree":
    """Draw from the posterior given a private release of the records; the tree of ``pm.sample`` also says what it cost.

    Parameters
    ----------
    draws : int
        Draws per chain; more draws cost no privacy. With ``PosteriorSample(draws=k)`` there are k, and each costs.
    mechanism
        A noise, as ``release`` takes it: "laplace" or "gaussian". For experts: ``PosteriorSample(draws=k)`` draws from the posterior itself
        (see ``advise``), ``Gibbs(sweeps=k)`` runs a Markov chain that pays at every update, and ``Annealing(rungs=k)`` gives weighted
        draws and the evidence (see ``inspect``).
    epsilon, delta, bounds, public, unit, neighbours, missing, disjoint, weights, ledger, data
        See ``release``. A model from ``rewrite``, ``privatize`` or ``published`` takes none of these: its numbers are private already.
    model : pm.Model, optional
        The model in context if left out.
    noise_aware : bool
        See ``rewrite``.
    **sampler
        Arguments of ``pm.sample``: ``tune``, ``chains``, ``random_seed``, ``nuts_sampler``, ... ``random_seed`` seeds the sampler,
        never the noise: calling ``sample`` again makes a new release and spends epsilon again. If PyMC takes nutpie, the defaults are
        ``nuts={"adaptation": "low_rank"}``, which adapts to correlations of up to 60 unknowns, where several numbers are released of a
        cell; ``target_accept=0.9`` for regressions; and ``target_accept=0.95`` where one number is released of every cell. Your own
        ``nuts`` replaces both.

    Returns
    -------
    xarray.DataTree
        The groups of ``pm.sample`` on the private model, and a group ``privacy``. Where the private model has latent noise it has a
        group ``latent_statistics``, and for a Bayesian network a group ``network`` with the conditional probability tables. The promise
        covers all of it, as the attribute ``privacy_covers`` lists; ``Release.from_datatree`` gives the release.
        A ``ConvergenceWarning`` says where its chains are not to be trusted, a ``ClampedWarning`` where bounds are too narrow, a
        ``QuadratureWarning`` where bins are too wide for a density that you wrote yourself.

    Raises
    ------
    Refusal
        Before anything is spent: the message says what to write instead.
    Exception
        Whatever ``pm.sample`` raises on the private model, with what was paid for in its attribute ``release``; a warning of ours that is
        an error has the draws in ``tree``, too.

    Examples
    --------
    >>> idata = pmdp.sample(20, tune=20, chains=1, model=model, epsilon=1.0, progressbar=False)
    >>> idata.posterior["share"].shape, idata.attrs["epsilon"]
    ((1, 20), 1.0)
    """
    if isinstance(draws, pm.Model):
        raise Refusal("The first argument is the number of draws. Write sample(model=model, epsilon=1.0).")
    model = in_context(model)
    publication = getattr(model, "publication", None) or getattr(model, "privacy", None)
    if isinstance(publication, Noted | Release):
        declared = {"bounds": bounds, "public": [*public] or None, "missing": missing, "disjoint": disjoint, "weights": weights}
        arguments = declared | {"epsilon": epsilon, "delta": delta or None, "ledger": ledger, "data": data}
        usual = {"mechanism": (mechanism, "laplace"), "neighbours": (neighbours, "replace"), "noise_aware": (noise_aware, True)}
        arguments |= {name: value for name, (value, default) in (usual | {"unit": (unit, "row")}).items() if value != default}
        _check_nothing_to_pay(publication, [name for name, value in arguments.items() if value is not None])
        return _of_public_numbers(draws, model, publication, sampler)
    protection = protection_of(
        bounds=bounds, public=public, unit=unit, neighbours=neighbours, missing=missing, disjoint=disjoint, persons=True
    )
    if mechanism == PosteriorSample.name:
        mechanism = PosteriorSample()
    if isinstance(mechanism, PosteriorRequest):
        _check_paid_draws(draws, mechanism, {"weights": weights}, sampler)
        return sample_posterior(model, mechanism, epsilon, protection, delta=delta, ledger=ledger, data=data)
    sampler = {name: value for name, value in sampler.items() if value is not None or name not in ("nuts", "target_accept")}
    _check_sampler(draws, sampler)
    check_noise_aware(noise_aware)
    ready = prepared(model, protection, epsilon=epsilon, delta=delta, mechanism=mechanism, weights=weights, ledger=ledger, data=data)
    check_settings(sampler, model, ready.plan.spec)
    check_cells(ready.plan.spec, protection.bounds or {})
    released = ready.pay_and_draw()
    private = rewritten(ready.plan.spec, released, noise_aware=noise_aware)
    del model, ready
    return _drawn(draws, private, released, sampler)


def _check_nothing_to_pay(publication: Noted | Release, settings: list[str]) -> None:
    """Refuse settings of a payment where others have published the numbers, or they were released before: then nothing costs."""
    if not settings:
        return
    if isinstance(publication, Release):
        free = "pymc_dp.sample(model=private), or pm.sample(model=private), costs nothing"
        raise Refusal(f"{ALREADY_PRIVATE} Leave {settings[0]} out: {free}.")
    raise Refusal(f"The numbers of this model were made private by their publishers: nothing is spent on them. Leave {settings[0]} out.")


def _of_public_numbers(draws: int, model: pm.Model, publication: Noted | Release, sampler: dict[str, Any]) -> "xr.DataTree":
    """Draws given numbers that were released before, or that others have published, with a note of whose promise that is."""
    settings = {name: value for name, value in sampler.items() if value is not None or name not in ("nuts", "target_accept")}
    _check_sampler(draws, settings)
    if isinstance(publication, Release):
        return _drawn(draws, unchanged(model), publication, settings)
    publication.check_complete(model)
    if "step" not in settings and tables_of(publication):
        settings["step"] = table_steps(model)
    if publication.statistics:
        tree = noted(latents_apart(chains_of(draws, model, publication, settings), publication.statistics), publication)
        warn_if_clamped(publication.statistics)
    else:
        tree = noted(pm.sample(draws, model=model, **settings | {"compute_convergence_checks": False}), publication)
    if settings.get("compute_convergence_checks", True):
        warn_if_unsettled(tree, "Draw longer or with smaller steps: tune=3000, target_accept=0.95.")
        warn_if_missed(model, tree)
    return tree


def _check_paid_draws(draws: int, mechanism: PosteriorRequest, others: Mapping[str, object], sampler: Mapping) -> None:
    """Refuse what has no meaning for draws that are private by themselves."""
    if "step" in sampler:
        raise Refusal(
            "Steps of PyMC ask the records without paying: one that accepts with probability min(1, ratio) never rejects what another"
            " record makes better, which no epsilon covers. Leave step out: updates are private choices."
        )
    names = [name for name, value in {**others, **sampler}.items() if value is not None and (name, value) != ("progressbar", False)]
    if names:
        seeded = " Draws cannot be seeded: they are private because nobody knows what is drawn." if "random_seed" in sampler else ""
        raise Refusal(f"A posterior draw needs no {', '.join(names)}. Leave that out.{seeded}")
    if draws not in (DRAWS, mechanism.draws):
        raise Refusal(f"Every draw from the posterior is paid for. Write mechanism=pymc_dp.{mechanism.written.format(draws)}.")


def _drawn(draws: int, private: pm.Model, released: Release, sampler: dict[str, Any]) -> "xr.DataTree":
    """Draws from the private model, annotated. Whatever is raised has in it what was paid for."""
    try:
        tree = chains_of(draws, private, released, sampler)
    except Exception as error:
        error.release = released  # type: ignore[attr-defined]
        error.add_note("The release is paid for, and kept as this error's release: pymc_dp.rewrite(model, error.release) costs nothing.")
        raise
    drawn = covering_all(latents_apart(tree, released.statistics), released)
    try:
        if sampler.get("compute_convergence_checks", True):
            warn_if_unsettled(tree, UNSETTLED + stopped_at(private))
            warn_if_missed(private, tree)
        warn_if_clamped(released.statistics)
    except Exception as raised:  # as where warnings are errors: what was paid for is in it
        raised.release, raised.tree = released, drawn  # type: ignore[attr-defined]
        raise
    return drawn


def chains_of(draws: int, private: pm.Model, released: Release | Noted, sampler: dict[str, Any]) -> "xr.DataTree":
    """Draws from the private model as ``pm.sample`` makes them, with steps that suit it where the user chose none."""
    # PyMC asks for the model in context here and there, for example for a Hessian to start with. Inside ``with model:`` that would be
    # the user's, with its records.
    with private:
        by_nutpie = nutpie_model(private, sampler, data_of_release(private))
        steps = sampler | default_steps(private, released, sampler, by_nutpie is not None) | {"compute_convergence_checks": False}
        return pm.sample(draws, model=private, **steps) if by_nutpie is None else drawn_by_nutpie(by_nutpie, draws, steps)


UNSETTLED = (
    "Draw longer or with smaller steps, at no cost: pymc_dp.sample(model=pymc_dp.private_model(idata, model), tune=3000,"
    " target_accept=0.95)."
)
"""What to do where the chains of a release are not to be trusted."""


def _check_sampler(draws: object, sampler: Mapping[str, Any]) -> None:
    """What would make ``pm.sample`` fail after the records have been paid for is refused before."""
    if not is_whole(draws, 1, MOST_DRAWS):
        raise Refusal(f"draws must be an integer from 1 to {MOST_DRAWS:,}. Write for example sample(1000, epsilon=1.0).")
    if sampler.get("return_inferencedata", True) is not True or sampler.get("trace") is not None:
        raise Refusal(
            "sample returns a DataTree. Leave return_inferencedata and trace out, or use pm.sample(model=pymc_dp.privatize(...))."
        )
    words = {*signature(pm.sample).parameters, "nuts", "target_accept", *(step.name for step in STEP_METHODS)} - {"kwargs"}
    if unknown := sorted(set(sampler) - words):
        raise Refusal(unknown_setting(unknown[0], [*signature(sample).parameters, *words]))
    if not isinstance(sampler.get("nuts", {}), dict):
        raise Refusal('nuts holds settings by name. Write for example nuts={"max_treedepth": 8}.')
    if "step" in sampler:
        raise Refusal("Steps belong to the private model. Write private = pymc_dp.privatize(...), then pm.sample(model=private, step=...).")
