"""Intervals cover: three cheap cells of ``benchmarks/calibration.py``, which does all of them.

On 1,200 data sets each, 90 % intervals must cover in 85.4 to 94.6 %, and their ranks be uniform with p > 2e-8: together a false
alarm of 1e-6 for the four parameters. Intervals that cover 83 % in truth are found with probability 0.987.
"""

import numpy as np
import pytest
from calibration import collected, run_unit

pytestmark = pytest.mark.slow
DATA_SETS = 1200


@pytest.mark.parametrize("unit", [("bernoulli", 0.3, 50), ("poisson", 0.3, 50), ("normal_gaussian", 0.3, 1000)], ids=lambda unit: unit[0])
def test_ninety_percent_intervals_cover(unit):
    [rows] = run_unit(*unit, {0: [True]}, DATA_SETS)
    for key, share in collected([{name: str(value) for name, value in row.items()} for row in rows]).items():
        assert share.replicates == DATA_SETS, key
        assert abs(share.covered_90 / DATA_SETS - 0.9) < 5.3 * np.sqrt(0.9 * 0.1 / DATA_SETS), key
        assert min(share.uniform) > 2e-8, key
