"""Draws of a posterior by Markov chains: for any likelihood of single records, private only as far as the chains have converged.

Every draw is the last state of a chain of its own, from a posterior whose likelihood is flattened to what is paid for, and in which
every record's part is clipped to bounds found without looking at records. Nothing else of a chain leaves: neither its other states
nor how it went.
"""

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Variable

from pymc_dp.models.spec import ModelSpec, RecordPaths
from pymc_dp.models.structure import substitute
from pymc_dp.plans.ranges import pieces, ranges
from pymc_dp.plans.rowwise import Rowwise, check_finite, entries_of, norms_of
from pymc_dp.posterior.price import IF_CONVERGED, NAT, READING, Asked, priced
from pymc_dp.posterior.records import exact_records, log_likelihood, public_part
from pymc_dp.posterior.result import Drawn, Prepared, left
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.files import try_to_write
from pymc_dp.privacy.mechanisms import generator
from pymc_dp.privacy.receipts import Receipt
from pymc_dp.privacy.requests import PosteriorSample
from pymc_dp.private_models.rewrite import without_likelihoods

ROOM = 2**16
"""Bytes that a report may take."""


def by_chains(asked: Asked, found: ModelSpec, leaves: Mapping[str, RecordPaths], rows: Rowwise) -> Prepared:
    """The last states of as many chains as draws are wanted."""
    mechanism = asked.mechanism
    assert isinstance(mechanism, PosteriorSample)
    check_finite(rows)
    if mechanism.report is not None:
        _check_report(mechanism.report)
    public = public_part(rows, leaves, asked.neighbours)
    bounds = ranges(rows, pieces(rows, entries_of(rows, public.arrays), public.shared, norms_of(rows)))
    least, most = (
        float(np.rint(NAT * end.min() if k == 0 else NAT * end.max())) / NAT for k, end in enumerate((bounds.least, bounds.most))
    )
    width = round((most - least) * NAT)
    eta = 2 * width if asked.neighbours == "replace" else width
    price = priced(asked, [(", ".join(one.name for one in rows.unknowns), eta, rows.size)])
    prior, _ = without_likelihoods(found, {})

    def draw(receipt: Receipt) -> Drawn:
        exact = exact_records(rows, leaves, public)
        rng = generator(price.draws, receipt)
        reference = np.zeros(public.many) if bounds.reference is None else log_likelihood(rows, exact)(bounds.reference[None])[0]
        given = {variable: pytensor.shared(array, name=f"records_{k}") for k, (variable, array) in enumerate(exact.items())}
        own = [pytensor.shared(np.nan_to_num(reference), name="records_at_reference"), *given.values()]
        total = _log_likelihood(rows, list(given), least, most)(*[one.variable for one in rows.unknowns], *own)
        flattened, moved = without_likelihoods(found, {"likelihood": [total / price.temperature]})
        with flattened:
            pm.Potential("likelihood", moved["likelihood"][0])
            with pytensor.config.change_flags(numba__cache=False):
                tree = pm.sample(
                    mechanism.steps, tune=mechanism.tune, chains=max(mechanism.draws, 2), cores=1, random_seed=rng, nuts_sampler="pymc",
                    progressbar=False, quiet=True, compute_convergence_checks=False,
                )  # fmt: skip
        if tree["posterior"].sizes["draw"] < mechanism.steps:  # PyMC keeps what it has when it is interrupted
            raise KeyboardInterrupt
        names = [one.name for one in rows.unknowns]
        if mechanism.report is not None:
            _report(Path(mechanism.report), tree, names)
        values = {name: tree["posterior"][name].values[: mechanism.draws, -1] for name in names}
        facts = {"reading": READING, "tune": mechanism.tune, "steps": mechanism.steps}
        return left(asked, found, prior, values, price, IF_CONVERGED, facts=facts)

    return Prepared(found, price, IF_CONVERGED, draw, public.many if asked.neighbours == "replace" else None)


def _log_likelihood(rows: Rowwise, inputs: list[Variable], least: float, most: float) -> OpFromGraph:
    """The log-likelihood of all records as an operation of the unknowns, the reference (N,) and the records.

    Every record's part is clipped, and what is no number becomes the least. So does its gradient become 0: a chain whose moves rest on
    any gradient keeps its law, and one record cannot stop it.
    """
    reference = pt.vector("reference", dtype="float64")

    def total(unknowns: list[Variable], reference: Variable, records: list[Variable]) -> Variable:
        given = dict(zip([*rows.stand_ins, *inputs], [*unknowns, *records], strict=True))
        each = substitute(rows.density, given) - reference
        return pt.clip(pt.switch(pt.isnan(each), least, each), least, most).sum()

    def pullback(given: list[Variable], _: list[Variable], outer: list[Variable]) -> list[Variable]:
        unknowns, (reference, *records) = list(given[: len(rows.stand_ins)]), given[len(rows.stand_ins) :]
        likelihood = total(unknowns, reference, records)
        gradients = pytensor.grad(likelihood, unknowns, disconnected_inputs="ignore")
        finite = [pt.switch(pt.isnan(one) | pt.isinf(one), 0.0, one) * outer[0] for one in gradients]
        return [*finite, *(disconnected_type() for _ in (reference, *records))]

    stand_ins = [one.type() for one in rows.stand_ins]
    records = [one.type() for one in inputs]
    # Nothing is differentiated by records, and by an index among them it could not be.
    connected = [[True]] * len(stand_ins) + [[False]] * (1 + len(records))
    given = [*stand_ins, reference, *records]
    return OpFromGraph(given, [total(stand_ins, reference, records)], pullback=pullback, connection_pattern=connected)


def _check_report(report: str | PathLike[str]) -> None:
    """See that the report could be written, before anything is paid for."""
    try:
        try_to_write(Path(report), ROOM)
    except (OSError, TypeError, ValueError):
        raise Refusal(
            "The report cannot be written there. Write the path of a file in a folder that is there and writeable, on a disk with room."
        ) from None


def _report(path: Path, tree, names: list[str]) -> None:
    """How the chains went, for whoever holds the records."""
    import arviz as az

    told = az.summary(tree, var_names=names, kind="diagnostics").to_dict("index")
    warning = "Computed from the records: not private, and not to be released."
    path.write_text(json.dumps({"warning": warning, "parameters": told}, indent=2, default=float))
