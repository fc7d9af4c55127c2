"""Which cases of long tests run by default, by the CPU seconds that one case takes: tests/seconds.csv. The slow suite runs the others.

To measure anew: ``PYMC_DP_SECONDS=taken.csv uv run pytest`` (with ``-m "slow or not slow"`` and the names of tests that do not run by
default), then ``uv run python tests/sampled.py taken.csv``. Delete the row of a test that has become short.
"""

import csv
import math
import os
import sys
from collections import defaultdict
from pathlib import Path
from time import process_time

TABLE = Path(__file__).with_name("seconds.csv")
LONG = 1.5
"""Seconds of a case from which on none of its test runs by default."""
ENOUGH = 0.8
"""Seconds that are spent on the cases of one test: the first of every so many of them. What kills a planted mistake runs besides."""
SHORT = 0.5
"""Tests whose cases take less than this together are not in the table, and none of a single case that takes less than ``LONG``."""

WHOLE = {
    "test_command.py::test_a_release_is_made_by_a_bare_process_and_read_elsewhere",
    "test_docs.py::test_the_page_on_censuses_runs",
    "test_gallery.py::test_inspect_says_what_is_expected",
    "test_house.py::test_each_room_imports_only_from_those_before_it",
    "test_house.py::test_records_are_seen_only_where_it_is_said",
    "test_ledger.py::test_no_release_without_an_earlier_charge",
    "test_ledger.py::test_sampling_pays_once",
    "test_mutants.py::test_every_mistake_is_planted_in_one_place",
    "test_pages.py::test_the_readme_runs_as_pasted_and_prints_what_it_says",
    "test_predictive.py::test_observed_parents_are_drawn_first_or_given",
    "test_privacy.py::test_canaries_are_nowhere",
    "test_privacy.py::test_the_charge_is_attained_by_some_pair",
    "test_proofs.py::test_every_sensitivity_is_listed_with_its_proof",
    "test_result.py::test_a_release_is_saved_and_loaded",
    "test_sensitivity.py::test_any_two_records_of_doubles_stay_within_the_sensitivity",
}
"""Long tests that run by default all the same: each holds what no quick test holds."""
FIRST = {
    "test_data.py::test_every_source_order_and_chunking_is_the_model_that_observes_the_records",
    "test_ledger.py::test_a_changed_history_is_refused",
    "test_noise.py::test_goodness_of_fit",
    "test_paid_gibbs.py::test_a_sweep_leaves_the_flattened_posterior_as_it_is",
    "test_privacy.py::test_record_and_replay_of_a_missing_value",
    "test_privacy_routes.py::test_neighbours_look_the_same_and_cost_what_was_paid",
    "test_rounds_data.py::test_regressions_are_those_of_the_model_that_observes_the_records",
    "test_row_patterns.py::test_all_pairs_of_rows_move_the_counts_by_what_is_charged",
}
"""Long tests of which the first case does."""


def seconds() -> dict[str, float]:
    """CPU seconds of a case, by file and function."""
    with TABLE.open() as file:
        return {row["test"]: float(row["seconds"]) for row in csv.DictReader(file)}


def left_out(name: str, each: float, killers: list[bool]) -> list[bool]:
    """Which cases of a test do not run by default; ``each`` takes so many seconds, and ``killers`` says which kill a planted mistake."""
    if name in WHOLE:
        return [False] * len(killers)
    if name in FIRST:
        return [number > 0 for number in range(len(killers))]
    if each > LONG:
        return [True] * len(killers)
    step = math.ceil(len(killers) / max(1, int(ENOUGH / each)))
    return [number % step > 0 and not kills for number, kills in enumerate(killers)]


def cpu() -> float:
    """CPU seconds of this process and of those it waited for."""
    times = os.times()
    return process_time() + times.children_user + times.children_system


def taken(path: str) -> None:
    """Put what was measured into the table: numbers only grow, because cases that do not run may be the long ones."""
    spent = defaultdict(list)
    with Path(path).open() as file:
        for name, value in csv.reader(file):
            spent[name].append(float(value))
    table = seconds()
    for name, values in spent.items():
        if name in table or (sum(values) >= SHORT and (len(values) > 1 or values[0] > LONG)):
            table[name] = max(table.get(name, 0.0), sum(values) / len(values))
    with TABLE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["test", "seconds"])
        writer.writerows([name, f"{value:.2g}"] for name, value in sorted(table.items()))


if __name__ == "__main__":
    taken(sys.argv[1])
