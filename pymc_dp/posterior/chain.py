"""Draws of a posterior by Markov chains: for any likelihood of single records, private only as far as the chains have converged.

Every draw is the last state of a chain of its own, from a posterior whose likelihood is flattened to what is paid for, and in which
every record's part is clipped to bounds found without looking at records. Nothing else of a chain leaves: neither its other states
nor how it went.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

from pymc_dp.anatomy import dissect
from pymc_dp.blank import Blank, Leaves
from pymc_dp.mechanisms import Receipt, generator
from pymc_dp.posterior.drawn import IF_CONVERGED, NAT, READING, Asked, Drawn, Prepared, priced
from pymc_dp.posterior.records import exact_records, log_likelihood, public_part
from pymc_dp.rewrite import without_likelihoods
from pymc_dp.rowwise import Rowwise, check_finite, entries_of, norms_of, pieces, ranges
from pymc_dp.structure import substitute


def by_chains(asked: Asked, found: Blank, leaves: Mapping[str, Leaves], rows: Rowwise) -> Prepared:
    """The last states of as many chains as draws are wanted."""
    mechanism = asked.mechanism
    check_finite(rows)
    public = public_part(rows, leaves)
    bounds = ranges(rows, pieces(rows, entries_of(rows, public.arrays), public.shared, norms_of(rows)))
    least, most = (
        float(np.rint(NAT * end.min() if k == 0 else NAT * end.max())) / NAT for k, end in enumerate((bounds.least, bounds.most))
    )
    width = round((most - least) * NAT)
    eta = 2 * width if asked.neighbours == "replace" else width
    price = priced(asked, {", ".join(one.name for one in rows.unknowns): (eta, rows.size)})
    prior, _ = without_likelihoods(dissect(asked.model, asked.public, sized=asked.neighbours == "replace", rowwise=True)[0], {})

    def draw(receipt: Receipt) -> Drawn:
        exact = exact_records(rows, leaves, public) | dict(public.shared)
        rng = generator(price.draws, receipt)
        reference = np.zeros(1) if bounds.reference is None else log_likelihood(rows, exact)(bounds.reference[None])[0]
        given = {variable: pytensor.shared(array, name=f"records_{k}") for k, (variable, array) in enumerate(exact.items())}
        unknown = {stand_in: one.variable for stand_in, one in zip(rows.stand_ins, rows.unknowns, strict=True)}
        each = substitute(rows.density, {**given, **unknown}) - pytensor.shared(np.nan_to_num(reference), name="records_at_reference")
        clipped = pt.clip(pt.switch(pt.isnan(each), least, each), least, most)
        flattened, moved = without_likelihoods(found, {"likelihood": [clipped.sum() / price.temperature]})
        with flattened:
            pm.Potential("likelihood", moved["likelihood"][0])
            with pytensor.config.change_flags(numba__cache=False):
                tree = pm.sample(
                    mechanism.steps, tune=mechanism.tune, chains=max(mechanism.draws, 2), cores=1, random_seed=rng,
                    progressbar=False, quiet=True, compute_convergence_checks=False,
                )  # fmt: skip
        names = [one.name for one in rows.unknowns]
        if mechanism.report is not None:
            _report(Path(mechanism.report), tree, names)
        values = {name: tree["posterior"][name].values[: mechanism.draws, -1] for name in names}
        facts = {"reading": READING, "tune": mechanism.tune, "steps": mechanism.steps}
        return Drawn(found, prior, values, price, asked, IF_CONVERGED, facts)

    return Prepared(found, price, IF_CONVERGED, draw, public.many if asked.neighbours == "replace" else None)


def _report(path: Path, tree, names: list[str]) -> None:
    """How the chains went, for whoever holds the records."""
    import arviz as az

    told = az.summary(tree, var_names=names, kind="diagnostics").to_dict("index")
    warning = "Computed from the records: not private, and not to be released."
    path.write_text(json.dumps({"warning": warning, "parameters": told}, indent=2, default=float))
