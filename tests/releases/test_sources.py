"""Where the records of ``data=`` may lie, and what reading them takes."""

import numpy as np
import pytest

from pymc_dp.releases import stored

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def taken(path):
    """The most memory that Arrow holds while a file is read, in bytes."""
    before = pa.total_allocated_bytes()
    return max(pa.total_allocated_bytes() - before for _ in stored.stored_in_file(path, ["x"]))


@pytest.mark.parametrize("group", [2**16, 2**22])
def test_a_file_of_many_rows_takes_no_more_memory_than_one_of_few(tmp_path, group):
    rng, rows = np.random.default_rng(1), 2**21
    for name, many in (("few", rows // 8), ("many", rows)):
        parquet.write_table(pa.table({"x": rng.normal(size=many)}), tmp_path / name, row_group_size=group, use_dictionary=False)
    assert (tmp_path / "many").stat().st_size > 2**24
    assert taken(tmp_path / "many") < 1.5 * taken(tmp_path / "few") + 2**20 < 2**23
