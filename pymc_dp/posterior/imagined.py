"""Made-up records between their bounds, always the same: to see beforehand how long draws would take. No record is read."""

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.families.grid import nearest_level
from pymc_dp.plans.ranges import laid_out
from pymc_dp.plans.rowwise import entries_of, norms_of
from pymc_dp.posterior.envelope import Target
from pymc_dp.posterior.records import Reading
from pymc_dp.posterior.rejection import accepted

MANY = 2000
"""So many records are made up, where as many are known to be there or their number is private."""


def accepted_of_imagined(target: Target) -> float:
    """The share of proposals that are accepted, about, for a target of made-up records."""
    return accepted(target, np.random.default_rng(0))


def imagined(reading: Reading) -> dict[Variable, np.ndarray]:
    """Records by placeholder, like those of ``Reading.exact``: bell-shaped between their ends, in all of which nothing is missing."""
    rows, public = reading.rows, reading.public
    many = min(public.many, MANY) if reading.protection.sized else MANY
    rng, norms = np.random.default_rng(0), norms_of(rows)
    columns: dict[tuple[Variable, int], list[np.ndarray]] = {}
    for entry in entries_of(rows, public.arrays):
        values = entry.lower + (entry.upper - entry.lower) * rng.random((many, 3)).mean(axis=1)
        if entry.levels is not None:
            values = np.array(entry.levels)[nearest_level(values, entry.levels)]
        columns.setdefault((entry.variable, entry.axis), []).append(np.ones(many) if entry.variable in rows.kept else values)
    result = dict(public.shared)
    for (variable, axis), several in columns.items():
        entries = np.column_stack(several)
        if variable in norms:
            entries = entries * np.minimum(1.0, norms[variable] / np.sqrt((entries**2).sum(axis=1, keepdims=True) + 1e-300))
        result[variable] = laid_out(entries, variable, axis)
    return result
