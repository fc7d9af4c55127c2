"""Small mistakes, each with a text of the package that it replaces and the test that fails for it; ``planting`` plants them.

python tests/mutants.py                   all of them; writes docs/mutants.md
python tests/mutants.py "i32" ledger.py   those whose names hold one of these words, or that are planted in one of these files
python tests/mutants.py --processes 2

Every mistake is one that is easily made, or that was made in a published system. A mutant that survives is a promise that nothing holds.
"""

import sys
from dataclasses import dataclass

from planting import main


@dataclass(frozen=True)
class Mutant:
    """One planted mistake.

    Attributes
    ----------
    name : str
    file : str
        Below ``pymc_dp/``.
    old, new : str
        The text that stands there exactly once, and what takes its place.
    breaks : str
        What would no longer hold.
    killer : str
        The test that fails, below ``tests/``.
    """

    name: str
    file: str
    old: str
    new: str
    breaks: str
    killer: str

    @property
    def test(self) -> str:
        """The test as pytest calls it, without its parameters: file and function."""
        return self.killer.partition("[")[0]


MUTANTS = (
    # ---------- after a fit
    Mutant(
        "counts rounded that PyMC cuts", "releases/statistics.py", "        values = np.trunc(values)\n", "        pass\n",
        "the private model is that of the user", "test_spellings.py::test_what_is_behind_the_point_of_a_count_is_cut",
    ),
    Mutant(
        "a density where the model has none", "private_models/rewrite.py", "    if allowed:\n", "    if False:\n",
        "the private model has a density where the user's has one", "test_possible.py::test_there_is_no_density_where_the_model_has_none",
    ),
    Mutant(
        "conditions taken for shown", "private_models/possible.py", "[0] >= ends_of(smaller", "[1] >= ends_of(smaller",
        "the private model has a density where the user's has one", "test_possible.py::test_there_is_no_density_where_the_model_has_none",
    ),
    Mutant(
        "starts left where there is no density", "private_models/rewrite.py", "    if private.stopped:\n", "    if False:\n",
        "chains start where there is a density", "test_possible.py::test_a_start_is_found_where_there_is_a_density",
    ),
    Mutant(
        "orders that transforms keep are not heard", "private_models/no_density.py", "and not _kept_by_transforms(one)", "",
        "what has a density by the priors is not said to have none",
        "test_no_density.py::test_it_is_not_said_where_draws_from_priors_do_not_tell[ordered_probabilities]",
    ),
    Mutant(
        "covariates at their lower ends only", "private_models/no_density.py",
        "list(zip(bounded.lower.ravel(), bounded.upper.ravel(), strict=True))", "list(zip(bounded.lower.ravel(), strict=True))",
        "how often priors lead where there is no density",
        "test_no_density.py::test_it_is_said_as_often_as_pymc_has_no_density[probability_of_a_covariate]",
    ),
    Mutant(
        "logarithms of negative numbers taken for probabilities", "private_models/no_density.py",
        "if _may_be_none(comparison) or not holds(comparison)", "if not holds(comparison)",
        "how often priors lead where there is no density",
        "test_no_density.py::test_it_is_said_as_often_as_pymc_has_no_density[rate_in_a_logarithm]",
    ),
    Mutant(
        "all planned rows are one person's", "releases/simulated.py", "else np.arange(len(observed[likelihood.name])),\n",
        "else np.zeros(len(observed[likelihood.name])),\n", "a plan of persons is of the rows that count",
        "test_plan.py::test_a_plan_of_persons_is_of_rows_that_count_with_the_noise_of_their_release[indexed-replace]",
    ),
    Mutant(
        "the chance of synthetic sets counted twice", "private_models/synthetic.py", "    variance = total - within\n",
        "    variance = total + within\n", "intervals of synthetic data hold the truth as often as they say",
        "test_synthetic.py::test_combining_is_the_rule_and_covers",
    ),
    Mutant(
        "probabilities of cells drawn twice", "private_models/synthetic.py",
        "    if not counted_together(noisy, at_cells(likelihood, noisy)):\n", "    if True:\n",
        "cells of synthetic records differ as their posterior does", "test_synthetic.py::test_private_indices_are_drawn_from_their_cells",
    ),
    Mutant(
        "every tie against the model", "private_models/checking.py", "int(rng.integers(tied + 1))", "0", "p-values of checks are uniform",
        "test_checking.py::test_ranks_are_uniform_with_ties",
    ),
    # ---------- sums of residuals
    Mutant(
        "residuals priced as if signs were alike", "families/residuals.py", "    L1, L2 = (4 * products * F + 5 * square) * POINTS**2,",
        "    L1, L2 = (2 * products * F + 9 * square) * POINTS**2,", "how far one record moves sums of residuals",
        "test_residuals.py::test_no_two_records_are_further_apart[2]",
    ),
    Mutant(
        "squares of residuals for nothing", "families/residuals.py", "L1, L2 = (4 * products * F + 5 * square) * POINTS**2", "L1, L2 = 4 * products * F * POINTS**2",
        "how far one record moves sums of residuals", "test_residuals.py::test_no_two_records_are_further_apart[2]",
    ),
    Mutant(
        "residuals in products clamped as in squares", "families/residuals.py", "np.clip(wide, -2 * POINTS, 2 * POINTS)", "wide.copy()",
        "how far one record moves sums of residuals", "test_residuals.py::test_no_two_records_are_further_apart[2]",
    ),
    Mutant(
        "residuals measured by the largest of all", "families/residuals.py", "        wide = 3 * onto_grid(rest, 0.0, self.clamp_squares)\n",
        "        wide = 3 * onto_grid(rest, 0.0, max(self.clamp_squares, float(np.abs(rest).max())))\n",
        "a residual rests on its own record", "test_residuals.py::test_a_residual_rests_on_its_own_record",
    ),
    Mutant(
        "all of epsilon for moments, and half of it again", "releases/cells.py", "            return FIRST, 1 - FIRST\n",
        "            return Fraction(1), 1 - FIRST\n", "both draws are paid for", "test_residuals.py::test_both_draws_are_paid_for_at_once",
    ),
    Mutant(
        "residuals read as if none were clamped", "private_models/residual_loops.py", "    return erf(k / sqrt(2)), left, -exp", "    return 1.0, 1.0, -exp",
        "the law of clamped residuals", "test_residual_law.py::test_predictive_sums_are_those_of_simulated_records",
    ),
    Mutant(
        "what is cut off moves the sum of residuals alone", "private_models/residual_loops.py", "inside * product + root * factor[a, 0] * moved",
        "inside * product + (root * moved if a == 0 else 0.0)", "what clamping skew residuals moves is an intercept",
        "test_residual_law.py::test_what_is_cut_off_moves_sums_of_residuals_as_an_intercept_does",
    ),
    Mutant(
        "moments of residuals without the coefficients", "private_models/residual_loops.py", "        t[b] = root * within[b] + n * q[b]\n",
        "        t[b] = root * within[b]\n", "both releases are readings of one truth", "test_residual_law.py::test_derivatives_are_those_of_the_density",
    ),
    # ---------- records beside the model
    Mutant(
        "the placeholders' number of records", "releases/from_data.py", "n=np.array([records], dtype=cells.cells.n.dtype)",
        "n=cells.cells.n", "the model is told the number of records that were released",
        "test_data.py::test_the_number_of_records_is_that_of_the_data_where_it_is_public",
    ),
    Mutant(
        "a temporary file is looked for when it is needed", "releases/source.py",
        "        elif key is not None:\n            check_temporary_folder()\n", "", "whether a release fails does not rest on one row",
        "test_person_data.py::test_whether_a_temporary_file_is_needed_does_not_show",
    ),
    Mutant(
        "truth values of texts are missing", "families/values.py",
        'TRUTHS = {"false": 0.0, "f": 0.0, "no": 0.0, "n": 0.0, "true": 1.0, "t": 1.0, "yes": 1.0, "y": 1.0}', "TRUTHS: dict[str, float] = {}",
        "no record decides how others of its column are read",
        "test_data.py::test_one_record_that_is_no_number_changes_no_other_of_a_file_of_text[pandas]",
    ),
    Mutant(
        "placeholder rows counted as records", "plans/protection.py", "protection.sized and not elsewhere else None", "protection.sized else None",
        "a delta is compared with nothing that placeholders say",
        "test_data.py::test_a_delta_is_not_compared_with_the_number_of_placeholders",
    ),
    Mutant(
        "chains of regressions start where PyMC says", "private_models/nutpie_draws.py", "    if not moved:\n", "    if True:\n",
        "chains arrive however wide the priors of coefficients are",
        "test_newton_starts.py::test_chains_start_at_coefficients_that_the_released_numbers_speak_for",
    ),
    Mutant(
        "what others rest on moved to its mode", "private_models/newton_starts.py", "        and unknown not in above\n", "",
        "no chain starts in the neck of a hierarchy", "test_newton_starts.py::test_what_others_rest_on_and_what_is_bounded_stays",
    ),
    Mutant(
        "a true count below its window is one at its start", "publications/noisy.py", "inside = pt.and_(pt.ge(place, 0), pt.lt(place, windows.length))",
        "inside = pt.lt(place, windows.length)", "a published number tells of every true count",
        "test_noisy.py::test_given_every_truth_it_sums_to_what_it_says_of_their_distribution[gaussian, nothing]",
    ),
    Mutant(
        "new numbers rounded at random without the rest", "publications/predicted.py", "uniform < (truth - below) / noise.base", "uniform < 0.5",
        "new numbers are drawn as the likelihood says", "test_noisy.py::test_new_numbers_are_drawn_as_the_likelihood_says[base]",
    ),
    Mutant(
        "what was added to published numbers passes for them", "sampling.py", "    publication.check_complete(model)\n", "",
        "no record is in a posterior without noise", "test_noisy_numbers_refused.py::test_records_do_not_pass_for_published_numbers[observed]",
    ),
    Mutant(
        "what was added to a private model passes for its release", "sampling.py", "_drawn(draws, unchanged(model),", "_drawn(draws, model,",
        "no record is in a posterior without noise", "test_again.py::test_records_do_not_pass_for_a_release[observed]",
    ),
    Mutant(
        "other numbers in the place of a release", "private_models/as_made.py", "if changed := made.changed(private):", "if changed := []:",
        "no record is in a posterior without noise", "test_again.py::test_records_do_not_pass_for_a_release[released]",
    ),
    Mutant(
        "a column of text as a whole", "releases/source.py", "        return _one_by_one(decoded(short(values)), labels)",
        "        return np.full(len(values), np.nan)", "one record that makes a column text moves no other",
        "test_data.py::test_a_type_that_one_record_changes_is_read_as_numbers",
    ),
    Mutant(
        "labels that spell numbers of other levels", "models/level_labels.py", "number != place and 0 <= number", "number != place and 1e9 <= number",
        "one record that makes a column text moves no other",
        "test_labels_of_levels.py::test_a_label_that_spells_the_number_of_another_level_is_refused[labels0]",
    ),
    Mutant(
        "labels that may be dates", "families/values.py", "return bool(_TEXT.fullmatch(text)) and len", "return len",
        "one record that makes a column text moves no other",
        "test_labels_of_levels.py::test_labels_of_a_dim_are_not_read_where_one_may_be_taken_for_something_else[2001-01-01]",
    ),
    Mutant(
        "missing values before a blank", "families/values.py", "text.strip().lower() not in", "text.lower() not in",
        "one record that makes a column text moves no other",
        "test_labels_of_levels.py::test_labels_of_a_dim_are_not_read_where_one_may_be_taken_for_something_else[nan ]",
    ),
    Mutant(
        "truth values that one reader only knows", "families/values.py", ', "n": 0.0, "true"', ', "true"',
        "one record that makes a column text moves no other",
        "test_labels_of_levels.py::test_a_label_that_is_alone_in_a_file_is_read_as_beside_others[N-DuckDB]",
    ),
    # ---------- published sums of records
    Mutant(
        "published sums taken to be independent", "laws/combined.py", "* rows[..., m, 1 + j]).any()", "* rows[..., m, 1 + j]).any() and k == m",
        "sums of the same records go together", "test_published_sums.py::test_noise_on_sums_of_clamped_values_is_independent_in_their_own_units",
    ),
    Mutant(
        "a sum of squares about the middle of the bounds", "families/normal.py", "(square, (c**2, 2 * c * h, h**2))", "(square, (c**2, 0.0, h**2))",
        "published sums are those of the values", "test_published_sums.py::test_sums_in_units_of_the_values_are_what_their_names_say",
    ),
    Mutant(
        "a published sum is n times the middle short", "families/own_sums.py", "(lower / 2 + upper / 2, *(", "(0.0, *(",
        "published sums are those of the values", "test_published_sums.py::test_sums_in_units_of_the_values_are_what_their_names_say",
    ),
    Mutant(
        "all published moments with the least noise", "families/second_moments.py", "tuple(1 / scale for scale in self.scales)",
        "tuple(1.0 for scale in self.scales)", "the noise of each published sum is its own",
        "test_published_sums.py::test_every_moment_has_the_noise_that_was_said",
    ),
    Mutant(
        "noise of another scale in a cell passes for that of the first", "publications/sums_of_cells.py",
        "for scale in np.unique(_scale_of_counts(number)[g]).tolist()}", "for scale in [float(_scale_of_counts(number).flat[0])]}",
        "the noise of each published number is its own", "test_published_sums.py::test_each_cell_may_have_noise_of_its_own",
    ),
    Mutant(
        "dummy rows fill up what is not said of cells", "releases/described_cells.py", "any(leaf.name not in cell_values for leaf in leaves)",
        "all(leaf.name not in cell_values for leaf in leaves)", "dummy rows of any content give the same model",
        "test_published_sums.py::test_an_array_of_cells_is_not_filled_up_with_dummy_rows",
    ),
    Mutant(
        "alphas of factors drawn without their shares", "publications/table_prior.py", "places = _drawn(rng.random(len(here)), logs + np.log(np.maximum(shares, 1e-300))[:, None])",
        "places = _drawn(rng.random(len(here)), logs)", "unknowns of a table's prior are drawn from their conditionals",
        "test_published_tables.py::test_unknowns_of_the_prior_are_drawn_from_their_conditionals",
    ),
    Mutant(
        "rows and sums with unknowns of their own", "publications/beside_sums.py", "replaced |= {} if variable in other.data_vars else {variable: private[name]}",
        "pass", "published rows and sums have the unknowns of one model",
        "test_sums_beside_rows.py::test_each_part_has_the_density_that_it_has_alone",
    ),
    Mutant(
        "a variable that rests on left out records passes", "publications/beside_sums.py", "if variable in gone]:", "if False]:",
        "dummy rows of any content give the same model", "test_sums_beside_rows.py::test_refused[one rests on the other]",
    ),
    Mutant(
        "a summed record is in the first cell", "publications/sums_of_cells.py", "np.take(array, places,", "np.take(array, 0 * places,",
        "sums of a cell are of its own records",
        "test_sums_of_unknown_number.py::test_second_moments_by_cells_of_unknown_size_are_those_of_a_release",
    ),
    Mutant(
        "unknown factors of a rate have a logarithm each", "models/inverse_links.py", " or any(map(is_unknown, above([factor]))):", ":",
        "a rate times an exposure is read as the model says, whatever the signs of its factors",
        "test_exposures.py::test_unknown_factors_may_be_negative_where_the_mean_is_not[-0.8--0.5-above]",
    ),
    Mutant(
        "every record of a cell has the most trials", "laws/law.py", "            each = law.trials if law.each is None else law.each\n",
        "            each = law.trials\n",
        "successes in private groups have the law of their own numbers of trials",
        "test_trials.py::test_private_groups_have_the_law_of_their_own_numbers_of_trials[True-30]",
    ),
    Mutant(
        "so many entries as there may be", "models/row_picks.py", "_number(stop) == records", "True",
        "an entry that is taken out for a record is of its own row",
        "test_spellings.py::test_other_entries_are_refused[one row for all, by the length of an array]",
    ),
    Mutant(
        "a diagonal of one row", "models/row_picks.py", "factors is None or factors[0].type.broadcastable[0] or", "factors is None or",
        "an entry that is taken out for a record is of its own row",
        "test_spellings.py::test_other_entries_are_refused[the first column of a diagonal, for all]",
    ),
    Mutant(
        "unknowns without their power", "models/log_products.py", "else unknown**exponent, self", "else unknown, self",
        "the logarithm of a product is read as the model says",
        "test_spellings.py::test_the_logarithm_of_a_product_is_a_sum[a power of a product]",
    ),
    Mutant(
        "a covariate of cells taken for one that was summed", "models/linear_mean.py", "if data.private or not in_cells}", "}",
        "in a published cell a public covariate has one value",
        "test_published_sums.py::test_a_real_public_covariate_of_a_normal_model_makes_cells",
    ),
    # ---------- where the records stay
    Mutant(
        "a failure over records in its own words", "__main__.py", "failed with {type(failure).__name__}{place}", "failed with {failure}",
        "nothing of a record is on the screen of who makes a release", "test_command.py::test_refusals_are_one_line_and_cost_nothing",
    ),
    Mutant(
        "a release is written over another file", "__main__.py", "out.open(\"x\")", "out.open(\"w\")",
        "records and ledgers stay where they are", "test_command.py::test_refusals_are_one_line_and_cost_nothing",
    ),
    Mutant(
        "a release that failed leaves room for the next attempt", "__main__.py", "            if ledger.charged:  #", "            if False:  #",
        "a scheduler that tries again pays nothing", "test_command.py::test_a_failure_over_records_says_nothing_of_them_and_stays_charged",
    ),
    Mutant(
        "a table of polars charged where nothing can read it", "releases/headers.py", "if through_arrow and not has_arrow():", "if False:",
        "nothing that is foreseen fails after it was paid for", "test_sources.py::test_what_is_read_through_arrow_is_refused_without_it[polars]",
    ),
    Mutant(
        "a file counted as often as it is named", "releases/headers.py", "map(Path.stat, files)}) < len(files):",
        "map(Path.stat, files)}) < 1:", "a record counts once", "test_sources.py::test_no_record_is_counted_twice",
    ),
    Mutant(
        "a part counted as often as it was computed", "releases/shared_plan.py", "by_part.setdefault(part.part, part)",
        "by_part[len(by_part) + part.part if part.part in by_part else part.part] = part", "a record counts once",
        "test_partial.py::test_parts_are_the_whole_and_each_counts_once[{'missing': ['y']}]",
    ),
    Mutant(
        "a part that fails with what it was handed", "releases/shared_plan.py", "        return pickle.dumps(None)", "        raise",
        "engines write down no record", "test_spread.py::test_a_part_on_a_worker_never_fails",
    ),
    Mutant(
        "a part that there is not", "releases/shared_plan.py", " or not 0 <= part.part < plan.parts", "", "a record counts once",
        "test_spread.py::test_what_cannot_be_read_in_parts_is_refused",
    ),
    Mutant(
        "a table that changed while it was read", "releases/shared_plan.py", "added_up(plan, parts, source.records if sized else None)",
        "added_up(plan, parts, sum(part.rows or 0 for part in parts))", "what is released is of the records that were counted",
        "test_spread.py::test_the_ledger_pays_before_a_part_is_read_and_nothing_is_said_of_what_went_wrong",
    ),
    Mutant(
        "a person counts once in every table of a part", "releases/shared_plan.py", "if plan.person is not None:",
        "if plan.person is not None and False:", "no more rows of a person count than was said",
        "test_spread.py::test_rows_of_persons_in_several_tables_of_one_part_are_not_released",
    ),
    Mutant(
        "persons are counted file by file", "releases/dask_tables.py", "[[*self.files]] * many", "[*self.files]",
        "no more rows of a person count than was said", "test_spread.py::test_files_of_persons_are_read_by_every_worker",
    ),
    Mutant(
        "partitions in memory are said to hold whole persons", "releases/dask_tables.py", "        if not self.files:\n", "        if False:\n",
        "which rows of a person count is decided by all of them", "test_spread.py::test_files_of_persons_are_read_by_every_worker",
    ),
    Mutant(
        "a partition that was made anew counts", "releases/dask_tables.py", "        if self._runs() != self._made:\n",
        "        if not self._runs():\n", "a record counts once",
        "test_spread.py::test_partitions_of_which_one_was_made_anew_since_they_were_checked_give_nothing",
    ),
    Mutant(
        "partitions are only watched while they are read", "releases/dask_tables.py", "        results = self._each(_of_one, numbered=True",
        "        self._made = self._runs()\n        results = self._each(_of_one, numbered=True", "a record counts once in every round",
        "test_spread.py::test_partitions_of_which_one_was_made_anew_since_they_were_checked_give_nothing",
    ),
    Mutant(
        "libraries that are half imported", "releases/stored.py", "            there = _imported[module] = import_module(module)\n", "            there = sys.modules[module]\n",
        "whether a release fails does not rest on what another thread imports",
        "test_spread.py::test_a_library_that_another_thread_is_importing_is_waited_for",
    ),
    Mutant(
        "a person counts in every part", "releases/person_blocks.py", "parts_of(block[WHOSE], parts) == part", "parts_of(block[WHOSE], parts) >= 0",
        "no more rows of a person count than was said", "test_partial.py::test_a_person_counts_in_one_part_wherever_the_rows_lie",
    ),
    Mutant(
        "all rows of a person count in a part", "releases/shared_plan.py", "sums(plan.opened, source, at_most,", "sums(plan.opened, source, None,",
        "no more rows of a person count than was said", "test_partial.py::test_a_person_counts_in_one_part_wherever_the_rows_lie",
    ),
    Mutant(
        "parts of single rows that are the whole table", "releases/partial.py", "if whole != (plan.person is not None):", "if plan.person is not None and not whole:",
        "every record is in one part", "test_partial.py::test_parts_of_persons_are_said_to_be_of_the_whole_table",
    ),
    Mutant(
        "persons in several parts", "releases/source.py",
        'raise Refusal(f"Rows of one {key} may lie in several parts of this table. {IN_FILES}")', "pass",
        "no more rows of a person count than was said", "test_spread.py::test_what_cannot_be_read_in_parts_is_refused",
    ),
    # ---------- numbers that others made private
    Mutant(
        "truncation forgotten", "publications/counts.py", "return inside if events.least is None else inside - _log_sum(",
        "return inside if True else inside - _log_sum(", "rows that are in a table only above a threshold are no sample of all",
        "test_noisy_numbers.py::test_rows_below_a_threshold_are_censored_where_they_are_listed_and_truncated_where_they_are_not[laplace-Poisson]",
    ),
    Mutant(
        "a noisy whole is never negative", "publications/ratios.py", "np.where(b < 0, -1.0, 1.0) * (", "(",
        "ratios over small wholes have the law of two noisy counts", "test_noisy_ratios.py::test_a_ratio_is_at_most_so_much_as_often_as_an_integral_says",
    ),
    Mutant(
        "random rounding with a bias", "publications/windows.py", "weights = np.minimum(1.0, 1 - (s - last) / base)",
        "weights = np.minimum(1.0, 1 - (s - last) / (base + 1))", "the nearer multiple of 3 has probability 2/3",
        "test_noisy_numbers.py::test_two_thirds_and_one_third",
    ),
    Mutant(
        "what was clipped as if it had been seen", "publications/events.py", "low, high = np.where(below, -np.inf, ends.low), np.where(",
        "low, high = ends.low, np.where(", "a published 0 may have been anything below",
        "test_noisy_numbers.py::test_every_count_is_summed_over[laplace-clipped-Poisson]",
    ),
    Mutant(
        "the same people counted twice", "publications/federation.py",
        "parts_by_people.setdefault(group_of.get(part.holder, part.holder), [])", "parts_by_people.setdefault(part.holder, [])",
        "one true statistic behind two noisy ones is counted once",
        "test_federations.py::test_one_true_count_behind_two_noisy_ones_is_counted_once[0.4]",
    ),
    Mutant(
        "noisy statistics combined without weights", "publications/same_people.py", "share = precision / precision.sum()",
        "share = np.ones(len(precision)) / len(precision)", "of two noisy numbers of one truth that with less noise says more",
        "test_federations.py::test_one_true_count_behind_two_noisy_ones_is_counted_once[0.4]",
    ),
    Mutant(
        "a row that many cells change as if one did", "publications/table_moves.py", "lines[1] += step * step * precisions[row]",
        "lines[1] += abs(step) * precisions[row]", "draws of a table have the posterior that enumeration gives",
        "test_published_tables.py::test_a_sweep_leaves_the_enumerated_posterior_as_it_is[weights]",
    ),
    Mutant(
        "a bound that one record may pass", "publications/table_moves.py", "low = max(low, int(np.ceil(residual[row] / step)))",
        "low = max(low, int(np.ceil(residual[row] / step)) - 1)", "every draw of a table meets every bound",
        "test_published_tables.py::test_a_sweep_leaves_the_enumerated_posterior_as_it_is[bounds]",
    ),
    Mutant(
        "cells' own factors left out of those of a term", "publications/table_prior.py",
        "others = self.own * means / self.factors[k][label]", "others = means / self.factors[k][label]",
        "unknowns of the prior of a table are drawn from their conditionals",
        "test_published_tables.py::test_unknowns_of_the_prior_are_drawn_from_their_conditionals",
    ),
    Mutant(
        "values of a query in another order", "publications/census.py", "entry.reshape(shape)", 'entry.reshape(shape, order="F")',
        "every published sum is that of its own cells", "test_census.py::test_every_row_is_read_as_it_stands",
    ),
    Mutant(
        "a bound the other way round", "publications/table_steps.py", "pt.eq(kind, AT_LEAST), pt.le(left, 0), pt.ge(left, 0)",
        "pt.eq(kind, AT_LEAST), pt.ge(left, 0), pt.le(left, 0)", "models on top of a table give chances to tables that meet every bound",
        "test_table_models.py::test_the_model_has_the_density_of_table_and_sums[False]",
    ),
    Mutant(
        "records of a covariate chosen by an index", "publications/patterns.py",
        "if entries[axis] != FULL or axis != 0 or any(self._visit(index) for index in indices):",
        "if any(self._visit(index) for index in indices):", "what rests on another record's true value is refused",
        "test_covariates_refused.py::test_records_that_meet_each_other_are_refused[a permutation]",
    ),
    Mutant(
        "a product of a covariate with itself as a line", "publications/patterns.py", '(kind == "Mul" and sum(of_it) > 1)',
        '(kind == "Mul" and sum(of_it) > 2)', "covariates are integrated out in closed form only where what rests on them is a line",
        "test_noised_covariates.py::test_elsewhere_true_values_are_unknowns[a product with itself]",
    ),
    Mutant(
        "answers as if they told nothing", "publications/covariates.py", "total: Variable = pt.constant(logs[chosen])",
        "total: Variable = pt.constant(0.0 * logs[chosen])", "true values are summed out with the probability of what was told given each",
        "test_randomised_covariates.py::test_a_randomised_answer_in_a_regression[logistic]",
    ),
    Mutant(
        "noise of a covariate forgotten in its outcome", "publications/measured.py", "whole = spread + b**2 * t**2", "whole = spread",
        "a covariate with noise is integrated out", "test_noised_covariates.py::test_a_normal_covariate_in_a_line_is_integrated_out[Gaussian-a line-1.1]",
    ),
    Mutant(
        "published numbers that pass for the truth in another variable", "publications/covariates.py",
        "_are_recoded(numbers.ravel(), published.ravel())", "False", "published numbers are nowhere read as if they were true",
        "test_covariates_refused.py::test_refused_and_what_to_write_instead[plain numbers]",
    ),
    Mutant(
        "a recoded answer that passes for the truth", "publications/covariates.py", "[0, 1]) > 1 - 1e-12)", "[0, 1]) > 1 + 1e-12)",
        "published numbers are nowhere read as if they were true",
        "test_covariates_refused.py::test_published_numbers_that_were_recoded_are_found[<lambda>0]",
    ),
    Mutant(
        "data that go with others, as if they did not", "publications/covariates.py", "if np.ndim(numbers) and shape[0] in np.shape(numbers)",
        "if False and shape[0] in np.shape(numbers)", "a covariate gets a prior of its own only where it goes with nothing else",
        "test_covariates_refused.py::test_refused_and_what_to_write_instead[data that go with others]",
    ),
    # ---------- accounting
    Mutant(
        "epsilon as the nearest double", "privacy/accounting.py", "return Fraction(Decimal(repr(float(epsilon))))",
        "return Fraction(float(epsilon))", "ten charges of 0.1 are 1", "test_accounting.py::test_a_tenth_is_a_tenth[0.1]",
    ),
    Mutant(
        "negative epsilon", "privacy/accounting.py", "not 0 < nearest_double(epsilon)", "not 0 != nearest_double(epsilon)", "no charge gives budget back",
        "test_accounting.py::test_what_is_no_cost_is_refused",
    ),
    Mutant(
        "booleans as numbers", "privacy/accounting.py", "(isinstance(epsilon, Real) and not _is_named_otherwise(epsilon)) or",
        "isinstance(epsilon, Real) or", "epsilon=True is a slip, not a budget of 1",
        "test_accounting.py::test_what_is_no_cost_is_refused",
    ),
    Mutant(
        "shares in proportion to the largest weight", "privacy/accounting.py", "total = sum(exact[name] for name in counted)",
        "total = max(exact[name] for name in counted)",
        "what several variables cost adds up to epsilon", "test_accounting.py::test_shares_add_up_to_1_exactly_and_follow_the_weights",
    ),
    Mutant(
        "every variable gets all of it", "privacy/accounting.py", "Fraction(1, len(counted))", "Fraction(1)",
        "what several variables cost adds up to epsilon", "test_accounting.py::test_shares_add_up_to_1_exactly_and_follow_the_weights",
    ),
    Mutant(
        "weights are ignored", "privacy/accounting.py", "    if weights is None or (isinstance", "    if True or (isinstance", "epsilon is shared as was asked for",
        "test_result.py::test_weights_share_epsilon_exactly",
    ),
    Mutant(
        "one order too low", "privacy/accounting.py", "bound = exact_rho * a +", "bound = exact_rho * (a - 1) +",
        "rho-zCDP implies (epsilon, delta)", "test_accounting.py::test_discrete_gaussian_noise_keeps_what_is_claimed_of_it",
    ),
    Mutant(
        "a term of the conversion dropped", "privacy/accounting.py", "(exact.ln() + a.ln()) / (a - 1)", "exact.ln() / (a - 1)",
        "the conversion is the best that is known", "test_accounting.py::test_epsilon_of_rho_is_the_least_over_all_orders",
    ),
    Mutant(
        "the largest rho rounded up", "privacy/accounting.py", "    return low\n", "    return high\n",
        "noise for rho_of(epsilon, delta) costs no more than that",
        "test_accounting.py::test_the_largest_rho_is_within_epsilon_and_no_larger_one_is",
    ),
    Mutant(
        "epsilon²/4 for a pure cost", "privacy/accounting.py", "return self.epsilon**2 / 2 if", "return self.epsilon**2 / 4 if",
        "pure costs are covered by their rho", "test_accounting.py::test_a_pure_cost_is_half_its_square_in_rho",
    ),
    Mutant(
        "eta²/16 for a bounded range", "privacy/accounting.py", "rho=exact**2 / 8", "rho=exact**2 / 16",
        "draws by the exponential mechanism are covered by their rho",
        "test_accounting.py::test_a_bounded_range_is_an_eighth_of_its_square_in_rho",
    ),
    Mutant(
        "only the last pure cost of a batch", "privacy/accounting.py", "by_epsilon, rho = by_epsilon + several[k].epsilon,",
        "by_epsilon, rho = several[k].epsilon,", "a batch costs what its parts cost",
        "test_accounting.py::test_a_batch_takes_the_cheapest_of_all_ways_to_split_it",
    ),
    Mutant(
        "the smallest costs taken for the largest", "privacy/accounting.py", "reverse=True)", "reverse=False)", "a batch is not mixed up",
        "test_accounting.py::test_a_batch_takes_the_cheapest_of_all_ways_to_split_it",
    ),
    Mutant(
        "a batch by its rho alone", "privacy/accounting.py", "for k in range(pure + 1):", "for k in range(1):",
        "a batch takes the cheapest of the valid routes", "test_accounting.py::test_a_batch_takes_the_cheapest_of_all_ways_to_split_it",
    ),
    Mutant(
        "Gaussian noise is pure", "privacy/accounting.py", "        if pure < len(several):\n", "        if False:\n",
        "no pure epsilon is claimed of Gaussian noise", "test_accounting.py::test_pure_costs_add_up_exactly",
    ),
    Mutant(
        "delta of 1", "privacy/accounting.py", "    if exact >= 1:\n", "    if exact > 1:\n", "delta=1 promises nothing and is refused",
        "test_accounting.py::test_a_delta_lies_from_0_to_less_than_1",
    ),
    # ---------- mechanisms
    Mutant(
        "half the scale", "privacy/mechanisms.py",
        "exact = Fraction(difference) / cost.epsilon\n"
        "        return _smallest(exact, lambda scale: Fraction(difference) / scale <= cost.epsilon)",
        "exact = Fraction(difference) / (2 * cost.epsilon)\n        return _smallest(exact, lambda scale: True)",
        "Laplace noise costs epsilon", "test_noise.py::test_calibration_is_exact_and_tight",
    ),
    Mutant(
        "twice the scale", "privacy/mechanisms.py", "exact = Fraction(difference) / cost.epsilon",
        "exact = 2 * Fraction(difference) / cost.epsilon", "no more noise than is paid for",
        "test_noise.py::test_calibration_is_exact_and_tight",
    ),
    Mutant(
        "epsilon and sensitivity swapped", "privacy/mechanisms.py",
        "exact = Fraction(difference) / cost.epsilon\n"
        "        return _smallest(exact, lambda scale: Fraction(difference) / scale <= cost.epsilon)",
        "return float(cost.epsilon / Fraction(difference))", "Laplace noise costs epsilon",
        "test_noise.py::test_calibration_is_exact_and_tight",
    ),
    Mutant(
        "L2 for L1 sensitivity", "privacy/mechanisms.py", "exact = Fraction(difference) / cost.epsilon\n",
        "difference = int(sqrt(square))\n        exact = Fraction(difference) / cost.epsilon\n",
        "Laplace noise is calibrated to the L1 distance", "test_privacy.py::test_the_charge_is_attained_by_some_pair",
    ),
    Mutant(
        "half the variance of Gaussian noise", "privacy/mechanisms.py",
        "exact = Fraction(sqrt(Fraction(square) / (2 * rho))) if square < 2**1000 else Fraction(LARGEST_SCALE)\n"
        "        return _smallest(exact * (1 - Fraction(1, 2**50)), lambda scale: Fraction(square) / (2 * scale**2) <= rho)",
        "exact = Fraction(sqrt(Fraction(square) / (4 * rho))) if square < 2**1000 else Fraction(LARGEST_SCALE)\n"
        "        return _smallest(exact * (1 - Fraction(1, 2**50)), lambda scale: Fraction(square) / (4 * scale**2) <= rho)",
        "Gaussian noise costs rho",
        "test_privacy_routes.py::test_neighbours_look_the_same_and_cost_what_was_paid[tabulated-gaussian-add_remove]",
    ),
    Mutant(
        "a draw of Gaussian noise priced at half", "privacy/receipts.py", "by_square = Fraction(self.square) / (2 * Fraction(self.scale) ** 2)",
        "by_square = Fraction(self.square) / (4 * Fraction(self.scale) ** 2)", "a receipt covers its draws",
        "test_ledger.py::test_draws_cannot_cost_more_than_their_receipt",
    ),
    Mutant(
        "epsilon²/2 as the rho of (epsilon, delta)", "privacy/mechanisms.py", "rho_of(epsilon, delta))", "epsilon**2 / 2)",
        "Gaussian noise costs (epsilon, delta)", "test_accounting.py::test_the_largest_rho_is_within_epsilon_and_no_larger_one_is",
    ),
    Mutant(
        "rho is not shared", "privacy/mechanisms.py", "rho = total.rho * part\n", "rho = total.rho\n", "what several variables cost adds up to rho",
        "test_accounting.py::test_parts_of_a_cost_cost_no_more_than_the_whole[gaussian]",
    ),
    Mutant(
        "noise 5 % too small", "privacy/mechanisms.py", 'l1_distance(T="i64"), scale)(exact)', 'l1_distance(T="i64"), scale * 0.95)(exact)',
        "the noise has the law that is claimed", "test_noise.py::test_goodness_of_fit[laplace-3.0]",
    ),
    Mutant(
        "one draw of noise for all entries (Bernstein and Sheldon 2018)", "privacy/mechanisms.py",
        'return make_laplace(_integers(len(exact)), l1_distance(T="i64"), scale)(exact)',
        'shared = make_laplace(_integers(1), l1_distance(T="i64"), scale)([0])[0]\n    return [value + shared for value in exact]',
        "every entry has noise of its own", "test_noise.py::test_every_entry_has_its_own_noise[laplace]",
    ),
    Mutant(
        "rounded noise in floating point (SOMA, WFA 1357)", "privacy/mechanisms.py",
        'return make_laplace(_integers(len(exact)), l1_distance(T="i64"), scale)(exact)',
        "return [value + round(scale * float(np.random.laplace())) for value in exact]", "the noise is discrete Laplace noise",
        "test_noise.py::test_goodness_of_fit[laplace-0.7]",
    ),
    Mutant(
        "noise by numpy", "privacy/mechanisms.py", 'return make_laplace(_integers(len(exact)), l1_distance(T="i64"), scale)(exact)',
        "return [value + round(scale * float(np.random.laplace())) for value in exact]", "OpenDP alone draws noise",
        "test_house.py::test_only_the_mechanisms_import_opendp_and_nobody_else_draws",
    ),
    Mutant(
        "noise with the user's seed", "privacy/mechanisms.py", 'return make_laplace(_integers(len(exact)), l1_distance(T="i64"), scale)(exact)',
        "return [value + round(scale * float(np.random.laplace())) for value in exact]", "no seed reaches the noise",
        "test_noise.py::test_no_seed_reaches_the_noise",
    ),
    Mutant(
        "Gaussian noise 5 % too small", "privacy/mechanisms.py", 'l2_distance(T="f64"), scale)(exact)',
        'l2_distance(T="f64"), scale * 0.95)(exact)', "the noise has the law that is claimed",
        "test_noise.py::test_goodness_of_fit[gaussian-3.0]",
    ),
    Mutant(
        "one draw of Gaussian noise for all entries", "privacy/mechanisms.py",
        'return make_gaussian(_integers(len(exact)), l2_distance(T="f64"), scale)(exact)',
        'shared = make_gaussian(_integers(1), l2_distance(T="f64"), scale)([0])[0]\n    return [value + shared for value in exact]',
        "every entry has noise of its own", "test_noise.py::test_every_entry_has_its_own_noise[gaussian]",
    ),
    Mutant(
        "i32", "privacy/mechanisms.py", 'atom_domain(T="i64")', 'atom_domain(T="i32")', "sums of up to 2**62 get noise as they are",
        "test_noise.py::test_large_statistics_are_carried_exactly",
    ),
    Mutant(
        "no receipt demanded", "privacy/mechanisms.py", "    receipt.strike_off(mechanism, scale, exact.size)\n", "",
        "nothing is drawn that was not paid for", "test_ledger.py::test_the_seam_demands_a_receipt_for_this_draw",
    ),
    Mutant(
        "lines of the program stay in a private model", "private_models/rewrite.py", "    forget_lines(private)\n", "",
        "no record that is written out in a program leaves", "test_hiding_places.py::test_no_line_of_the_program_is_in_what_leaves",
    ),
    Mutant(
        "lines of the program stay in a model of answers", "publications/published.py", "    forget_lines(clone)\n", "",
        "no record that is written out in a program leaves", "test_hiding_places.py::test_no_line_of_the_program_is_in_what_leaves",
    ),
    Mutant(
        "lines of the program travel with a plan", "releases/shared_plan.py", "(dumped_without_lines(_Fields(", "(cloudpickle.dumps(_Fields(",
        "no record that is written out in a program leaves", "test_hiding_places.py::test_no_line_of_the_program_is_in_what_leaves",
    ),
    Mutant(
        "what a model observes is compiled", "publications/observed.py",
        '    with pytensor.config.change_flags(numba__cache=False):\n        return np.asarray(model.rvs_to_values[variable].eval(mode="FAST_COMPILE"))\n',
        '    return np.asarray(model.rvs_to_values[variable].eval(mode="NUMBA"))\n', "no record stays on a disk",
        "test_privacy.py::test_no_compile_cache_holds_what_a_model_observes_beside_randomised_answers",
    ),
    Mutant(
        "a forked child draws as well", "privacy/mechanisms.py", "    receipt.check_same_process()\n    return noisy\n", "    return noisy\n",
        "one payment, one draw",
        "test_ledger.py::test_a_fork_between_the_right_to_draw_and_the_noise[_opendp_laplace-laplace]",
    ),
    Mutant(
        "receipt not struck off", "privacy/receipts.py", "                self._left[wanted] -= 1\n", "", "one payment, one draw",
        "test_ledger.py::test_the_seam_demands_a_receipt_for_this_draw",
    ),
    Mutant(
        "receipt good for any scale", "privacy/receipts.py", "Counter((draw.mechanism, draw.scale, draw.size) for draw in draws)",
        "Counter((one.mechanism, scale, one.size) for one in draws for scale in (one.scale, one.scale / 2))",
        "the noise is the one that was paid for", "test_ledger.py::test_the_seam_demands_a_receipt_for_this_draw",
    ),
    Mutant(
        "receipt good in a child", "privacy/receipts.py", "if self._process is process() and self._left", "if self._left",
        "a fork does not double a receipt", "test_ledger.py::test_a_receipt_is_worth_nothing_in_a_child",
    ),
    Mutant(
        "of disjoint draws the smallest counts", "privacy/receipts.py", "max(group.values())", "min(group.values())",
        "a person in one variable loses no more than is charged", "test_disjoint.py::test_disjoint_draws_cost_the_largest_and_all_others_their_sum",
    ),
    Mutant(
        "rounds of a disjoint variable count once", "privacy/receipts.py", "group[name] = group.get(name, Fraction(0)) + cost",
        "group[name] = max(group.get(name, Fraction(0)), cost) if name else group.get(name, Fraction(0)) + cost",
        "draws of one variable add up", "test_disjoint.py::test_disjoint_draws_cost_the_largest_and_all_others_their_sum",
    ),
    Mutant(
        "variables above each other are disjoint", "models/record_axes.py", "_Axis({observed.name} | parents,", "_Axis({observed.name},",
        "one record is not in two disjoint variables", "test_disjoint.py::test_variables_with_records_in_common_are_not_disjoint[above_each_other]",
    ),
    Mutant(
        "one covariate of two disjoint variables", "models/record_axes.py", "private.union(values, along))", "set(values))",
        "one record is not in two disjoint variables", "test_disjoint.py::test_variables_with_records_in_common_are_not_disjoint[one_covariate]",
    ),
    Mutant(
        "receipt good for any cost", "privacy/receipts.py",
        "    if (cost.delta == 0 and (pure is None or pure > cost.epsilon)) or rho > cost.concentrated:\n", "    if False:\n",
        "draws cost no more than was charged", "test_ledger.py::test_draws_cannot_cost_more_than_their_receipt",
    ),
    Mutant(
        "Laplace noise for the rho of a bounded range", "privacy/receipts.py", " or rho > cost.concentrated:\n", ":\n",
        "draws cost no more than was charged", "test_ledger.py::test_costs_and_draws_are_exact_and_not_negative",
    ),
    Mutant(
        "a negative cost", "privacy/accounting.py", "not isinstance(value, bool) and value >= 0 for", "not isinstance(value, bool) for",
        "no charge gives budget back", "test_ledger.py::test_costs_and_draws_are_exact_and_not_negative",
    ),
    Mutant(
        "a delta without its rho", "privacy/accounting.py", "        if self.delta > 0 and self.rho is None:\n", "        if False:\n",
        "what is added up can be added up", "test_ledger.py::test_costs_and_draws_are_exact_and_not_negative",
    ),
    Mutant(
        "receipt for Gaussian noise at no delta", "privacy/receipts.py",
        "(pure is None or pure > cost.epsilon)", "(pure is not None and pure > cost.epsilon)",
        "Gaussian noise is paid with a delta", "test_ledger.py::test_draws_cannot_cost_more_than_their_receipt",
    ),
    Mutant(
        "receipt can be copied", "privacy/receipts.py", '        raise TypeError("A receipt cannot be copied or pickled.")',
        "        return object.__reduce__(self)", "one payment, one draw", "test_ledger.py::test_a_receipt_cannot_be_doubled",
    ),
    # ---------- ledger
    Mutant(
        "a charge redeemed again", "privacy/ledger.py", "if opened.find(\"WHERE kind = 'redeem' AND once = ?\", charge.nonce):", "if False:",
        "a charge is redeemed once, and it is said", "test_ledger.py::test_a_receipt_cannot_be_doubled",
    ),
    Mutant(
        "a charge redeemed for other draws", "privacy/ledger.py", '                or charged.facts["draws"] != draw_facts(charge.draws)\n', "",
        "the noise is the one that was paid for", "test_ledger.py::test_a_receipt_cannot_be_doubled",
    ),
    Mutant(
        "a charge redeemed beside its copy", "privacy/ledger.py", "                or opened.find(\"WHERE kind = 'move' AND id > ?\", charged.id)\n",
        "", "two copies do not redeem the same charge", "test_ledger.py::test_a_charge_is_not_redeemed_by_a_copy_as_well",
    ),
    Mutant(
        "a ledger of a later format taken for one of this", "privacy/journal.py", 'entry.facts["format"] != FORMAT', "False",
        "what is charged is counted by rules that are known", "test_ledger.py::test_a_ledger_of_another_format_is_refused",
    ),
    Mutant(
        "two redemptions of one charge in the file", "privacy/journal.py", "    hash TEXT NOT NULL UNIQUE,\n    UNIQUE (kind, once)\n",
        "    hash TEXT NOT NULL UNIQUE\n", "a charge is redeemed once", "test_ledger.py::test_what_has_been_redeemed_stays_so",
    ),
    Mutant(
        "a redemption deleted", "privacy/journal.py",
        "CREATE TRIGGER no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are for ever'); END;\n", "",
        "a charge is redeemed once", "test_ledger.py::test_what_has_been_redeemed_stays_so",
    ),
    Mutant(
        "tables with rules of someone else", "privacy/journal.py", "if _tables(self.connection) != _own_tables():", "if False:",
        "what is written is what was asked for", "test_ledger.py::test_what_has_been_redeemed_stays_so",
    ),
    Mutant(
        "a lock that others share", "privacy/journal.py", "fcntl.LOCK_EX if writable else fcntl.LOCK_SH", "fcntl.LOCK_SH", "one process at a time",
        "test_ledger.py::test_closing_the_file_elsewhere_does_not_open_the_door",
    ),
    Mutant(
        "a reader of a ledger that charges it", "privacy/journal.py", "?mode={'rw' if note.writable else 'ro'}", "?mode=rw",
        "who holds no lock for writing charges nothing", "test_ledger.py::test_what_cannot_be_written_is_no_release",
    ),
    Mutant(
        "a reader of a ledger that takes no lock", "privacy/journal.py", "fcntl.LOCK_EX if writable else fcntl.LOCK_SH)",
        "fcntl.LOCK_EX if writable else fcntl.LOCK_UN)",
        "nobody reads while somebody writes", "test_ledger.py::test_who_may_only_read_a_ledger_can_look",
    ),
    Mutant(
        "functions of a formula by their names", "models/bambi_models.py", "if formula[place:].lstrip().startswith(\"(\"):",
        "if formula[place:].lstrip().startswith(\"(\") and name != \"log\":",
        "no name tells what a function looks at", "test_bambi.py::test_a_formula_that_may_look_at_all_records_is_refused[pressure ~ log(age)-calls log]",
    ),
    Mutant(
        "levels that bambi has found", "models/bambi_models.py", "types[name].kind not in NUMBERS", "types[name].kind not in NUMBERS + \"O\"",
        "no record decides how many levels there are", "test_bambi.py::test_a_formula_that_may_look_at_all_records_is_refused[pressure ~ of_sex-levels of of_sex]",
    ),
    Mutant(
        "a model of bambi taken as it is", "models/bambi_models.py", "if ROWS in model.coords and not hasattr(model, MARK):", "if False:",
        "no prior holds a mean of the records", "test_mistakes.py::test_a_model_that_bambi_built_is_asked_for_as_bambi_has_it",
    ),
    Mutant(
        "a lock that is always granted", "privacy/journal.py", "    except BlockingIOError:\n        return False",
        "    except BlockingIOError:\n        return True", "one process at a time",
        "test_ledger.py::test_a_lock_that_does_not_go_away_is_no_release",
    ),
    Mutant(
        "a ledger that is gone made anew", "privacy/journal.py", 'if note.read()[0] not in {"", CREATING}:', "if False:",
        "what was spent is not forgotten", "test_ledger.py::test_a_ledger_that_is_gone_is_not_made_anew",
    ),
    Mutant(
        "another ledger in the place of the one that was opened", "privacy/journal.py",
        'if first and self.find("WHERE id = 1 AND hash = ?", first) is None:', "if False:", "a ledger stays the same one",
        "test_ledger.py::test_a_ledger_that_is_gone_is_not_made_anew",
    ),
    Mutant(
        "notes in a file of someone else", "privacy/journal.py", "        if lines[0] != MAGIC:\n", "        if False:\n",
        "a lock file of another program is left alone", "test_ledger.py::test_lock_files_of_others_are_left_alone",
    ),
    Mutant(
        "charges rounded down", "privacy/budget.py", "ceil(cost.epsilon * UNITS)", "floor(cost.epsilon * UNITS)",
        "many charges never cost more than their sum", "test_ledger.py::test_units_are_rounded_up_and_grants_down",
    ),
    Mutant(
        "charges of rho rounded down", "privacy/budget.py", "ceil(cost.concentrated * UNITS)", "floor(cost.concentrated * UNITS)",
        "many charges never cost more than their sum", "test_ledger.py::test_units_are_rounded_up_and_grants_down",
    ),
    Mutant(
        "grants rounded up", "privacy/budget.py", "floor(total * UNITS), rho)", "ceil(total * UNITS), rho)", "never more than was granted",
        "test_ledger.py::test_units_are_rounded_up_and_grants_down",
    ),
    Mutant(
        "grants of rho rounded up", "privacy/budget.py", "rho = floor(rho_of(total, allowed) * UNITS)",
        "rho = ceil(rho_of(total, allowed) * UNITS)", "never more than was granted",
        "test_ledger.py::test_units_are_rounded_up_and_grants_down",
    ),
    Mutant(
        "what is left rounded up (SmartNoise 624)", "privacy/budget.py", "epsilon = max(by_sum, isqrt(2 * left_rho * UNITS))",
        "epsilon = max(by_sum, isqrt(2 * left_rho * UNITS) + 1)", "what is said to be left can be spent",
        "test_ledger.py::test_random_programs_agree_with_fractions[few]",
    ),
    Mutant(
        "the worst of the parts is the best", "privacy/budget.py", "worst = max((pure or 0 for pure, _ in parts), default=0)",
        "worst = min((pure or 0 for pure, _ in parts), default=0)", "no part spends more than was granted",
        "test_ledger.py::test_parts_do_not_add_up",
    ),
    Mutant(
        "the worst of the parts is the best in rho", "privacy/budget.py", "max((rho or 0 for _, rho in parts), default=0)",
        "min((rho or 0 for _, rho in parts), default=0)", "no part spends more than was granted",
        "test_ledger.py::test_random_programs_agree_with_fractions[few]",
    ),
    Mutant(
        "a part that does not exist", "privacy/ledger.py", "        if name is None or str(name) in self.parts:\n", "        if True:\n",
        "parts are those that were declared", "test_ledger.py::test_parts_do_not_add_up",
    ),
    Mutant(
        "the pure sum despite Gaussian noise", "privacy/budget.py", "None if pure is None or old_pure is None else old_pure + pure",
        "(old_pure or 0) + (pure or 0)", "Gaussian noise counts", "test_ledger.py::test_gaussian_noise_is_paid_in_rho",
    ),
    Mutant(
        "rho within the grant of epsilon", "privacy/budget.py", "or rho <= granted.rho", "or rho <= granted.pure",
        "the sum of rho is within what (epsilon, delta) allows", "test_ledger.py::test_random_programs_agree_with_fractions[few]",
    ),
    Mutant(
        "other neighbours are charged alike", "privacy/ledger.py", "        if neighbours != self.neighbours:\n", "        if False:\n",
        "costs that are added up protect the same", "test_ledger.py::test_neighbours_and_unit_belong_to_the_data_set",
    ),
    Mutant(
        "another unit is charged alike", "privacy/ledger.py", "        if _relation(unit) != self.unit:\n", "        if False:\n",
        "costs that are added up protect the same", "test_ledger.py::test_neighbours_and_unit_belong_to_the_data_set",
    ),
    Mutant(
        "all individuals are alike", "plans/protection.py", 'return "individual" if self == Individual() else written', 'return "individual"',
        "costs that are added up protect the same", "test_ledger.py::test_what_an_individual_is_belongs_to_the_data_set",
    ),
    Mutant(
        "opened with another epsilon", "privacy/ledger.py", "if value is not None and value != stored[name]:", "if False:",
        "who opens a ledger is told what it says", "test_ledger.py::test_neighbours_and_unit_belong_to_the_data_set",
    ),
    Mutant(
        "created over a ledger that exists", "privacy/journal.py", "            if os.path.lexists(self.path):\n", "            if False:\n",
        "what was spent is not forgotten", "test_ledger.py::test_missing_and_existing_files",
    ),
    Mutant(
        "a grant lowered", "privacy/ledger.py", "if Fraction(new.epsilon) < Fraction(old.epsilon) or Fraction(new.delta) < Fraction(old.delta):",
        "if False:", "grants are only raised", "test_ledger.py::test_grants_are_raised_by_their_own_call_and_stay_in_the_chain",
    ),
    Mutant(
        "any journal", "privacy/journal.py", '!= ("delete",):', '== ("nothing",):', "a file copy holds every charge",
        "test_ledger.py::test_another_journal_links_and_other_files_are_refused",
    ),
    Mutant(
        "a file of several names", "privacy/files.py", " or status.st_nlink != 1:", ":", "one data set, one lock",
        "test_ledger.py::test_another_journal_links_and_other_files_are_refused",
    ),
    Mutant(
        "the noted head not looked for", "privacy/journal.py", "for head in (anchor, noted if noted != CREATING else None):",
        "for head in (anchor,):", "an older copy put back is refused", "test_ledger.py::test_an_older_copy_put_back_is_refused",
    ),
    Mutant(
        "the anchor not looked for", "privacy/journal.py", "for head in (anchor, noted if noted != CREATING else None):",
        "for head in (noted if noted != CREATING else None,):", "an anchor proves that nothing is lacking",
        "test_ledger.py::test_a_copy_elsewhere_is_refused_but_with_the_newest_head",
    ),
    Mutant(
        "the place not looked at", "privacy/journal.py", "if noted and place == here:", "if noted:", "two copies do not spend the same budget",
        "test_ledger.py::test_a_copy_elsewhere_is_refused_but_with_the_newest_head",
    ),
    Mutant(
        "the head not noted", "privacy/journal.py", "        self.note.write(self.newest().hash, place_of(self.path, self.path))\n", "",
        "an older copy put back is refused", "test_ledger.py::test_an_older_copy_put_back_is_refused",
    ),
    Mutant(
        "hashes not looked at", "privacy/journal.py", "isinstance(text, str) and digest == _hash(text)", "isinstance(text, str)", "an edit is found",
        "test_ledger.py::test_a_changed_history_is_refused[a raised grant]",
    ),
    Mutant(
        "columns not compared with what was hashed", "privacy/journal.py",
        ' or (number, kind, once, units) != tuple(facts[key] for key in ("id", "kind", "once", "units"))', "", "an edit is found",
        "test_ledger.py::test_a_changed_history_is_refused[an edit of the units]",
    ),
    Mutant(
        "links not joined", "privacy/journal.py", 'entry.id == number and entry.facts["prev"] == (before.hash if before else None)',
        "entry.id == number", "an edit is found",
        "test_ledger.py::test_an_entry_that_was_hashed_anew_has_to_follow_from_the_one_before[a hash of its own, and the next "
        "does not follow]",
    ),
    Mutant(
        "units not compared with costs", "privacy/entries.py", 'facts["units"] == (units[1] or None) and ', "", "an edit is found",
        "test_ledger.py::test_an_entry_that_was_hashed_anew_has_to_follow_from_the_one_before[other units]",
    ),
    Mutant(
        "sums not done again", "privacy/entries.py", ' and spent == budget.add(before.facts["spent"], units, facts["part"])', "",
        "sums are those of the charges",
        "test_ledger.py::test_an_entry_that_was_hashed_anew_has_to_follow_from_the_one_before[a smaller sum]",
    ),
    Mutant(
        "a charge that raises the grant", "privacy/entries.py", " and granted == granted_in(before) and budget.fits(spent, granted)",
        " and budget.fits(spent, granted)", "grants are raised by their own entries",
        "test_ledger.py::test_an_entry_that_was_hashed_anew_has_to_follow_from_the_one_before[a larger grant]",
    ),
    Mutant(
        "an overspent history", "privacy/entries.py", "granted == granted_in(before) and budget.fits(spent, granted)", "granted == granted_in(before)",
        "never more than was granted", "test_ledger.py::test_more_than_was_granted_is_no_history",
    ),
    Mutant(
        "a charge that calls itself a move", "privacy/entries.py", '        and spent == before.facts["spent"]\n', "", "charges alone spend",
        "test_ledger.py::test_an_entry_that_was_hashed_anew_has_to_follow_from_the_one_before[another kind]",
    ),
    Mutant(
        "the head of a charge lost", "privacy/ledger.py", "return Receipt(charge.draws, charge.cost, entry.hash)",
        "return Receipt(charge.draws, charge.cost)", "a result says which charge paid for it",
        "test_ledger.py::test_a_release_pays_and_says_where",
    ),
    # ---------- families
    Mutant(
        "half the reach of scaled statistics", "families/family.py", "Sensitivity(2 * K * POINTS, 4 * K * POINTS**2,", "Sensitivity(K * POINTS, K * POINTS**2,",
        "the sensitivity of Gamma, Beta, Exponential, ...", "test_families.py::test_reach_is_never_exceeded_and_attained[Gamma-0]",
    ),
    Mutant(
        "the second statistic forgotten", "families/family.py", "        K = len(self.ranges(domain))\n        names",
        "        K = 1\n        names", "the sensitivity of Gamma, Beta, ...",
        "test_families.py::test_reach_is_never_exceeded_and_attained[Beta-0]",
    ),
    Mutant(
        "half the reach of counts", "families/family.py", "Sensitivity(upper - lower, (upper - lower) ** 2, upper,",
        "Sensitivity((upper - lower) // 2, (upper - lower) ** 2, upper,", "the sensitivity of Poisson and its like",
        "test_families.py::test_reach_is_never_exceeded_and_attained[Poisson-1]",
    ),
    Mutant(
        "one bound used twice (diffprivlib 104)", "families/family.py", "Sensitivity(upper - lower, (upper - lower) ** 2, upper,",
        "Sensitivity(lower - lower, (lower - lower) ** 2, upper,", "the sensitivity of Poisson and its like",
        "test_families.py::test_reach_is_never_exceeded_and_attained[Poisson-0]",
    ),
    Mutant(
        "a count in another cell moves less", "families/family.py", "((upper, -1), (-lower, 1)), upper - lower,",
        "((upper, -1), (-lower, 1)), (upper - lower) // 2,", "the sensitivity of Poisson in private cells",
        "test_families.py::test_spread_has_one_norm_for_all_values[Poisson-1]",
    ),
    Mutant(
        "no clip", "families/family.py", "np.clip(values.astype(np.float64, copy=False), domain.lower, domain.upper))",
        "values.astype(np.float64))", "values outside the bounds are clamped", "test_privacy.py::test_the_charge_is_attained_by_some_pair",
    ),
    Mutant(
        "NaN let through", "families/family.py",
        'return clamped if values.dtype.kind in "biu" else filled(clamped, min(max(domain.middle, domain.lower), domain.upper))', "return clamped",
        "a missing value is one of the domain",
        "test_sensitivity.py::test_private_covariates_are_mapped_into_their_levels_whatever_they_hold[float64]",
    ),
    Mutant(
        "words raise", "families/values.py", "number = labels.get(plain_value, number_in(plain_value)) if",
        "number = float(plain_value) if", "no value makes a release fail",
        "test_families.py::test_reach_is_never_exceeded_and_attained[Normal-0]",
    ),
    Mutant(
        "scaled statistics not clipped to their grid", "families/grid.py",
        "return filled(unclipped(u, half), 0.0).clip(-POINTS, POINTS, out=u)", "return filled(unclipped(u, half), 0.0)", "values below the smallest of a Pareto are no further away",
        "test_families.py::test_reach_is_never_exceeded_and_attained[Pareto-1]",
    ),
    Mutant(
        "an event and its time move half as far", "families/exponential.py",
        "return Sensitivity(2 * POINTS, 4 * POINTS**2, POINTS, why)", "return Sensitivity(POINTS, POINTS**2, POINTS, why)",
        "the sensitivity of censored times", "test_families.py::test_reach_is_never_exceeded_and_attained[CensoredExponential-0]",
    ),
    Mutant(
        "censored times keep their place in the sum", "families/exponential.py",
        "return np.where(event, values - (domain.lower + end) / 2, 0.0), event.astype(float)",
        "return values - (domain.lower + end) / 2, event.astype(float)",
        "what is no event is 0 in both sums", "test_families.py::test_reach_is_never_exceeded_and_attained[CensoredExponential-0]",
    ),
    Mutant(
        "every number of events as often", "laws/event_loops.py", "lgamma(n[i] + 1) - lgamma(s + 1) - lgamma(n[i] - s + 1) + s * log_event[i]",
        "s * log_event[i]", "the number of events is binomial", "test_law_of_events.py::test_it_is_the_sum_over_every_number_of_events[4.0-laplace]",
    ),
    Mutant(
        "unknown numbers of records cut", "laws/event_loops.py", "whole = np.rint(n[i])", "whole = np.trunc(n[i])",
        "the law is smooth in an unknown number", "test_law_of_events.py::test_of_an_unknown_number_it_is_that_of_three_whole_numbers[4.0-laplace]",
    ),
    Mutant(
        "few events of an unknown number taken as normal", "laws/law.py", "law.events if basis == events.IN_CELLS else None", "None",
        "few events are no normal number", "test_censored_sums.py::test_few_events_of_an_unknown_number_of_records_are_no_normal_number[private cells-laplace]",
    ),
    Mutant(
        "times that end at the limit alone", "families/exponential.py", "return limit if domain.lower < limit < domain.upper else domain.upper",
        "return limit", "times end at a bound before the limit", "test_censored_sums.py::test_times_are_censored_at_a_bound_below_the_limit",
    ),
    Mutant(
        "one step to invert", "private_models/row_values.py", "STEPS = 6", "STEPS = 1", "what is drawn is what samplers see",
        "test_row_values.py::test_the_inverse_is_one_from_the_middle_to_far_out",
    ),
    Mutant(
        "a time at the limit counts as an event", "families/exponential.py", "event = values < end", "event = values <= end",
        "what reached the limit is censored", "test_censored_sums.py::test_what_is_released_are_events_and_their_sum",
    ),
    Mutant(
        "the square of a normal value forgotten", "families/normal.py", "9 * POINTS**2 // 4,", "2 * POINTS**2,",
        "the sensitivity of Normal", "test_families.py::test_reach_is_never_exceeded_and_attained[Normal-0]",
    ),
    Mutant(
        "a binomial value moves by 1", "families/bernoulli.py", "return Sensitivity(trials, trials**2, trials,", "return Sensitivity(1, 1, trials,",
        "the sensitivity of Binomial", "test_families.py::test_reach_is_never_exceeded_and_attained[Binomial-1]",
    ),
    Mutant(
        "a label moves one count (diffprivlib GaussianNB)", "families/categorical.py", "return Sensitivity(2 * m, 2 * m**2, m,",
        "return Sensitivity(m, m**2, m,", "the sensitivity of Categorical",
        "test_families.py::test_reach_is_never_exceeded_and_attained[Categorical-0]",
    ),
    Mutant(
        "the trials of a multinomial value forgotten", "families/categorical.py", "return Sensitivity(2 * m, 2 * m**2, m,",
        "return Sensitivity(2, 2, m,", "the sensitivity of Multinomial",
        "test_families.py::test_reach_is_never_exceeded_and_attained[Multinomial-0]",
    ),
    Mutant(
        "counts of a multinomial value not capped", "families/categorical.py",
        "counts.append(np.minimum(np.rint(values[..., k]).astype(np.int64), left))",
        "counts.append(np.rint(values[..., k]).astype(np.int64))", "counts add up to the trials whatever was there",
        "test_families.py::test_reach_is_never_exceeded_and_attained[Multinomial-0]",
    ),
    Mutant(
        "L2 for L1 on the circle", "families/von_mises.py", "difference = isqrt(8 * POINTS**2) + 3", "difference = 2 * POINTS + 3",
        "the sensitivity of VonMises", "test_families.py::test_reach_is_never_exceeded_and_attained[VonMises-0]",
    ),
    Mutant(
        "shares of which one is forgotten", "families/dirichlet.py", "for k in range(domain.levels))\n\n    def raw",
        "for k in range(domain.levels - 1))\n\n    def raw", "all shares are released",
        "test_families.py::test_reach_is_never_exceeded_and_attained[Dirichlet-0]",
    ),
    Mutant(
        "a table moves one count", "models/tabulated.py", "return Sensitivity(2, 2, 1,", "return Sensitivity(1, 1, 1,", "the sensitivity of tabulated counts",
        "test_sensitivity.py::test_sums_in_cells_move_by_no_more_than_is_paid_for[table of values-public cells]",
    ),
    Mutant(
        "an edge belongs to the bin above", "models/tabulated.py", 'values, side="left")', 'values, side="right")', "a value at an edge is counted where its probability is",
        "test_binned.py::test_every_value_is_counted_once_by_comparison_with_edges",
    ),
    Mutant(
        "of columns with bounds of their own only the widest is paid for", "families/by_column.py", "Sensitivity(sum(one.difference for one in each)", "Sensitivity(max(one.difference for one in each)", "columns of one record add up",
        "test_by_column.py::test_no_pair_of_records_moves_the_sums_by_more_than_is_paid_for[Poisson-1-replace]",
    ),
    Mutant(
        "all columns are moved into the bounds of the first", "families/family.py", "complete(whole[:, c], part) for", "complete(whole[:, c], ends[0]) for", "a value is moved into the bounds of its column",
        "test_by_column.py::test_no_pair_of_records_moves_the_sums_by_more_than_is_paid_for[Gamma-1-replace]",
    ),
    Mutant(
        "a value counts in every bin below it", "models/tabulated.py", "(place == k).astype", "(place >= k).astype", "a record adds 1 to one bin",
        "test_binned.py::test_no_pair_of_records_moves_the_counts_by_more_than_is_paid_for[replace]",
    ),
    Mutant(
        'a covariate at an edge in the bin above', 'releases/totals.py', 'np.searchsorted(np.array(edges[1:-1]), entries[:, e])', 'np.searchsorted(np.array(edges[1:-1]), entries[:, e], side="right")', 'a covariate lies in the bin over which its likelihood is integrated',
        'test_covariates_in_bins.py::test_a_record_is_in_the_bin_of_its_covariate_whatever_it_holds',
    ),
    Mutant(
        'a covariate in the bin of the nearest middle', 'releases/totals.py', '            if edges:', '            if edges == 0:', 'a covariate lies in the bin over which its likelihood is integrated',
        'test_covariates_in_bins.py::test_a_record_is_in_the_bin_of_its_covariate_whatever_it_holds',
    ),
    Mutant(
        'weights in a bin that do not add up to 1', 'private_models/within_bins.py', 'return unscaled / unscaled.sum(axis=1, keepdims=True)', 'return unscaled', 'the likelihood of a bin is an average over where in it a covariate lies',
        'test_covariates_in_bins.py::test_averages_of_equal_probabilities_are_those_probabilities[1]',
    ),
    Mutant(
        'the slope of another parabola', 'private_models/within_bins.py', '2 * middles[k] - p - q[0]', '2 * middles[k] - p', "a covariate's density within a bin is as steep as its counts say",
        'test_covariates_in_bins.py::test_probabilities_are_integrals_over_the_bin',
    ),
    Mutant(
        'a censoring limit in bins', 'models/likelihood_reader.py', 'if limited := sorted(limits & set(covariates)):', 'if limited := sorted(limits & set()):', 'whether a limit was reached is part of the likelihood',
        'test_covariates_in_bins.py::test_what_bins_cannot_tell_is_refused[a limit that is in bins]',
    ),
    Mutant(
        'sums of outcomes in bins of a covariate', 'models/likelihood_reader.py', 'if in_bins and not isinstance(family, Table) and distribution not in MIXED:', 'if False:', 'an average of laws is not the law at averaged parameters',
        'test_covariates_in_bins.py::test_what_bins_cannot_tell_is_refused[an outcome of which sums are released]',
    ),
    Mutant(
        'bins that hold no integer', 'plans/bounds.py', 'if placeholder.whole and not (nodes_of(edges, True, 1)[1] > 0).all():', 'if False:', 'every bin of integers has probabilities',
        'test_covariates_in_bins.py::test_bins_that_are_too_many_together_or_hold_no_integer_are_refused',
    ),
    Mutant(
        'a release of bins for a model of levels', 'private_models/matching.py', 'if set(noisy.binned) != likelihood.in_bins:', 'if False:', 'a release belongs to one shape of model',
        'test_covariates_in_bins.py::test_a_table_of_as_many_levels_is_another_one',
    ),
    Mutant(
        "a bin of integers taken for one of them", "queries/from_release.py", "or statistic.in_bins or", "or statistic.domain.edges or",
        "an answer is the count that it is said to be",
        "test_covariates_in_bins.py::test_counts_by_bin_answer_no_questions_about_single_levels",
    ),
    Mutant(
        "bins that end at the outer edges", "models/binned.py", "(of_points[..., :2], of_points[..., len(inner) + 1 :])",
        "(of_points[..., 1:2], of_points[..., len(inner) + 1 : -1])", "what lies beyond the outer edges is in the outer bins",
        "test_binned.py::test_small_probabilities_are_right_at_both_ends[Laplace]",
    ),
    Mutant(
        "an atom at a limit above it", "models/binned.py", "below, above = points < low, points >= high", "below, above = points <= low, points > high",
        "an atom is in the bin below its edge", "test_binned.py::test_an_atom_belongs_to_the_bin_that_it_lies_in",
    ),
    Mutant(
        "an atom at a limit of a record's own above it", "models/binned.py", "pt.switch(high <= bottom, 0.0, pt.switch(high <= top,",
        "pt.switch(high < bottom, 0.0, pt.switch(high < top,", "what is censored at an edge is in the bin below it",
        "test_binned.py::test_a_limit_that_is_a_parameter_counts_as_a_plain_number_does[-inf-1.0]",
    ),
    Mutant(
        "a density that need not integrate to 1", "models/binned.py", "sums / sums.sum(axis=-1, keepdims=True)", "sums", "probabilities of a density add up to 1",
        "test_binned.py::test_a_density_narrower_than_a_bin_is_not_lost[1.0]",
    ),
    Mutant(
        "the integral of a density that may hold records is taken", "models/binned.py",
        "elif operation_problem(operation, lambda thing: False):", "elif False:", "no refusal rests on a record",
        "test_binned.py::test_what_a_custom_density_integrates_to_shows_no_record_that_it_holds",
    ),
    Mutant(
        "any function taken for a density", "models/custom_density.py", "bool(2 * alike.max(initial=0) > len(integrals))", "True",
        "what lies in a bin is a probability", "test_binned.py::test_what_bins_cannot_hold_is_refused[a factor that rests on a parameter, left out]",
    ),
    Mutant(
        "what is told of each record is not tried by itself", "models/custom_density.py", "    of_data = [number is None and _is_data(parameter)",
        "    of_data = [False and _is_data(parameter)", "what lies in a bin is a probability, whatever is told of a record",
        "test_custom_density.py::test_what_is_no_density_given_its_data_is_refused[_weighted-private]",
    ),
    Mutant(
        "data at which a formula is no number are let pass", "models/custom_density.py", "same &= (integrals > 0).all(axis=1) | (not everywhere)", "pass",
        "an array that stands in a formula twice is no covariate of it", "test_plain_arrays.py::test_what_is_said_of_plain_arrays_can_be_written",
    ),
    Mutant(
        "values without a density left out of its integral", "models/custom_density.py", "(far > whole / 2) | nowhere", "far > whole / 2",
        "what lies in a bin is a probability", "test_potentials.py::test_a_flag_that_leaves_values_without_a_density_is_none",
    ),
    Mutant(
        "any two functions taken for density and survival", "models/custom_density.py", "return bool(2 * at_all.sum() > tried.sum())", "return True",
        "a Potential is read as what it says", "test_potentials.py::test_what_is_not_understood_is_refused[survival of another law]",
    ),
    Mutant(
        "values that are sorted on their way", "models/record_formulas.py", "return isinstance(operation, (Elemwise, *ENTRY_BY_ENTRY))", "return True",
        "no record moves what is said of another", "test_potentials.py::test_what_is_not_understood_is_refused[sorted records]",
    ),
    Mutant(
        "a loop over records in a Potential in bins", "models/potentials.py", "if sum(map(numbers_in, expressions)) > MOST_WRITTEN:", "if False:",
        "records are not held as single numbers", "test_potentials.py::test_numbers_in_a_formula_are_counted_and_listed",
    ),
    Mutant(
        "numbers in a formula that nobody is told of", "models/survivors.py", "if numbers_of_formula(o.random) > MOST_NUMBERS}", "if False}",
        "inspect lists what is published", "test_potentials.py::test_numbers_in_a_formula_are_counted_and_listed",
    ),
    Mutant(
        "a public indicator of events", "models/event_flags.py", "if flag is None or not flag.private or flag.axis is None:",
        "if flag is None:", "who had an event is protected", "test_potentials.py::test_what_a_refusal_says_can_be_written",
    ),
    Mutant(
        "losses in the place of events", "private_models/events.py", "for told in (0, 1))", "for told in (1, 0))",
        "the private model is that of the user", "test_events.py::test_every_number_stands_where_it_belongs[none-switch]",
    ),
    Mutant(
        "events before the first edge lost", "models/event_tables.py", "leaving * share + before", "leaving * share",
        "probabilities add up to 1", "test_potentials.py::test_probabilities_are_integrals_and_add_up_to_1",
    ),
    Mutant(
        "losses that take nobody out", "models/event_tables.py", "np.triu(np.ones((K, K)), 1)", "np.zeros((K, K))",
        "probabilities are those of the model", "test_potentials.py::test_probabilities_are_integrals_and_add_up_to_1",
    ),
    Mutant(
        "a loss as likely at the start of a bin as at its end", "models/event_tables.py", "hazards @ (since * of_interval.T)", "hazards @ (0 * since * of_interval.T)",
        "probabilities are those of the model", "test_potentials.py::test_probabilities_are_integrals_and_add_up_to_1",
    ),
    Mutant(
        "chains that begin at jittered hazards", "private_models/events.py", "if unknown.name not in hazards}", "if True}",
        "chains move", "test_events.py::test_every_start_is_jittered_but_that_of_losses",
    ),
    Mutant(
        "one hazard of losses for all bins", "private_models/events.py", "of_bins * normal[1 : 1 + K][None]", "BIN * normal[1] * np.ones((1, K))",
        "losses have a hazard in every bin", "test_events.py::test_hazards_are_those_of_cells_and_bins",
    ),
    Mutant(
        "names of losses that a user may have", "models/problems.py", '"_level", "_losses")', '"_level")', "names of the private model are free",
        "test_events.py::test_a_name_that_losses_need_is_refused",
    ),
    Mutant(
        "any number of trials taken for one", "models/observed.py", "if plain_number(trials) == 1 else random", "if True else random",
        "a Binomial of two trials is no Bernoulli", "test_one_trial.py::test_one_of_two_trials_has_none",
    ),
    Mutant(
        "an infinite integral taken for a number", "models/custom_density.py", "(far > whole / 2) | nowhere", "nowhere",
        "what lies in a bin is a probability", "test_custom_density.py::test_an_integral_that_is_infinite_is_none",
    ),
    Mutant(
        "probabilities of whole numbers integrated", "models/binned.py", "    elif whole:\n", "    elif False:\n", "bins of counts hold sums of probabilities",
        "test_binned.py::test_what_bins_cannot_hold_is_refused[probabilities of whole numbers without their sums]",
    ),
    Mutant(
        "predictions taken for priors", "models/model_arrays.py", " and v not in self.predictions]", "]",
        "an array that is not declared public does not stay in the model",
        "test_rewrite.py::test_predictions_of_new_people_are_dropped_with_their_covariates[named]",
    ),
    # ---------- structures
    Mutant(
        "a record leaves its private cell for nothing", "plans/cells.py", 'times = 1 if moves == "free" else 2', "times = 1",
        "a record moves from one private cell to another",
        "test_sensitivity.py::test_sums_in_cells_move_by_no_more_than_is_paid_for[Bernoulli-0-private cells]",
    ),
    Mutant(
        "add-remove costs like replace", "plans/cells.py", 'times = 1 if moves == "free" else 2', "times = 2", "no more noise than is needed",
        "test_sensitivity.py::test_sums_in_cells_move_by_no_more_than_is_paid_for[Bernoulli-0-add or remove]",
    ),
    Mutant(
        "a move within its cell priced for coming and going", "plans/cells.py",
        "Sensitivity(times * moved.total, times * moved.square, moved.total, why)",
        "Sensitivity(family.sensitivity(domain).difference, family.sensitivity(domain).square, moved.total, why)", "add-remove has its own sensitivity",
        "test_sensitivity.py::test_sums_in_cells_move_by_no_more_than_is_paid_for[Normal-0-add or remove]",
    ),
    Mutant(
        "columns forgotten", "plans/statistic.py", "Sensitivity(sensitivity.difference * many, sensitivity.square * many,", "Sensitivity(sensitivity.difference, sensitivity.square,",
        "a record moves all of its columns", "test_privacy.py::test_the_charge_is_attained_by_some_pair",
    ),
    Mutant(
        "an index beyond its table", "plans/cells.py",
        "if rows is None or (np.asarray(low) < -rows).any() or (np.asarray(high) >= rows).any():", "if False:",
        "no failure depends on an index", "test_privacy_routes.py::test_an_index_that_leaves_its_table_within_the_bounds_is_refused",
    ),
    Mutant(
        "public arrays that tell the number of records", "plans/plan.py", 'if neighbours == "add_remove" and public:', "if False:", "add-remove hides the number of records",
        "test_leaks.py::test_add_remove_with_a_public_array_that_is_summed_up[mean]",
    ),
    Mutant(
        "events in one of several rows", "plans/totals.py", '(unit.membership == "private" or unit.rows > 1 or prod(likelihood.columns) > 1)',
        'unit.membership == "private"', "an individual moves events from row to row",
        "test_leaks.py::test_individual_in_several_public_rows[rows]",
    ),
    Mutant(
        "two counts taken for one", "plans/totals.py", "unit.rows * min(len(statistics), 2)", "unit.rows",
        "an individual moves from one level to another", "test_privacy_routes.py::test_counts_of_levels_cost_what_one_individual_can_move[3-1]",
    ),
    Mutant(
        "a row that is left and one that is joined", "plans/totals.py",
        '2 if neighbours == "replace" and unit.membership == "private" else 1', "1",
        "an individual moves the rows that it leaves and those that it comes to",
        "test_leaks.py::test_one_individual_moves_the_values_of_two_rows[0.1]",
    ),
    Mutant(
        "points that rounding adds", "plans/totals.py", "/ Fraction(domain.half_width) * POINTS) + 1", "/ Fraction(domain.half_width) * POINTS) - 1",
        "two values that are m apart are rounded to points that are no further apart than is paid for",
        "test_privacy_routes.py::test_values_of_rows_cost_what_one_individual_can_move[individual-replace-2-known]",
    ),
    Mutant(
        "numbers of arrays are compared", "models/record_formulas.py", "numbers = not is_array(one) and not is_array(other)", "numbers = True",
        "no numbers of records decide how a Potential is read",
        "test_potentials.py::test_no_numbers_of_arrays_decide_whether_two_expressions_are_one[0.0]",
    ),
    Mutant(
        "plain arrays that hold the same are one", "models/same_arrays.py", "same_memory(first, array, sized=sized))",
        "same_memory(first, array, sized=sized) or np.array_equal(data_of(first), data_of(array)))",
        "no numbers of records decide how a Potential is read", "test_plain_arrays.py::test_whether_two_arrays_hold_the_same_does_not_show[times]",
    ),
    Mutant(
        "plain arrays of one memory are one where their number is private", "models/same_arrays.py", "same_memory(first, array, sized=sized))",
        "same_memory(first, array, sized=True))", "where it is private no number of records decides what is read",
        "test_plain_arrays.py::test_plain_arrays_are_two_where_their_number_is_private[40]",
    ),
    Mutant(
        "what is tried out is compiled on the user's own operations", "models/custom_density.py",
        "cloudpickle.loads(cloudpickle.dumps((of.vectors, of.graph)))", "of.vectors, of.graph", "reading a model leaves it as it is",
        "test_plain_arrays.py::test_a_model_that_was_read_can_be_read_again[logaddexp]",
    ),
    Mutant(
        "one record's value in the formula of all", "models/by_record.py", "            if index != (None,):\n", "            if False:\n",
        "no record moves what is said of another", "test_written_mixtures.py::test_records_that_meet_each_other_are_refused[the first value-6]",
    ),
    Mutant(
        "any slice of records taken for all of them", "models/by_record.py", "            if entry == FULL:\n", "            if isinstance(entry, slice):\n",
        "no record moves what is said of another", "test_written_mixtures.py::test_records_that_meet_each_other_are_refused[in reverse-6]",
    ),
    Mutant(
        "a formula that holds an array of records", "models/record_formulas.py", "if any(is_unknown(v) or is_array(v) for v in above([graph])):", "if False:",
        "no record is published with a formula", "test_written_mixtures.py::test_nothing_is_published_with_a_formula_but_numbers",
    ),
    Mutant(
        "numbers that differ between records taken for one", "models/record_formulas.py", "if not all(variable.type.broadcastable) and not repeated:", "if False:",
        "what fails is not paid for", "test_written_mixtures.py::test_numbers_that_differ_between_records_are_refused[<lambda>1]",
    ),
    Mutant(
        "an array held by an operation in a Potential", "models/potentials.py",
        "return isinstance(thing, Variable) and not arrays_above([thing], through_unknowns=True)", "return isinstance(thing, Variable)",
        "only operations that are understood stay in a model",
        "test_written_mixtures.py::test_an_operation_that_holds_an_array_is_refused[above an expression]",
    ),
    Mutant(
        "weights that rest on arrays are looked at", "models/written_mixtures.py", "substitute(pt.exp(weight), dict(made_up), SKIPPED)", "pt.exp(weight)",
        "no numbers of records decide how a Potential is read", "test_written_mixtures.py::test_no_value_decides_whether_weights_add_up[<lambda>1]",
    ),
    Mutant(
        "single values that mean something else", "models/custom_density.py", "return any(tells_points_apart(density, _at, tried) for tried in [rows, *others])", "return False",
        "what is not read is refused", "test_single_points.py::test_a_single_value_that_means_something_else_is_found[equal to a number]",
    ),
    Mutant(
        "rounded values taken for others", "models/custom_density.py", "    if is_of_rounded(density, _at", "    if False and is_of_rounded(density, _at",
        "what is not read is refused", "test_rounded_values.py::test_the_probability_of_a_rounded_value_is_found[a difference of distribution functions]",
    ),
    Mutant(
        "smooth densities taken for rounded", "models/rounded_values.py", " and (two[tried] > DIFFERENT).any()", "",
        "a density is read as one", "test_rounded_values.py::test_a_density_is_left_as_it_is[a smooth density]",
    ),
    Mutant(
        "numbers that are subtracted taken for added", "models/rounded_values.py", "sign = -1 if kind == \"Sub\" and place else 1", "sign = 1",
        "what is not read is refused", "test_rounded_values.py::test_the_probability_of_a_rounded_value_is_found[sigmoids]",
    ),
    Mutant(
        "unknowns tried in units of 1 alone", "models/either_side.py", "for unit in units)]", "for unit in units[:0])]",
        "what is not read is refused", "test_either_side.py::test_what_is_said_beyond_a_limit_is_seen[at 3,650]",
    ),
    Mutant(
        "sides of which no share was seen", "models/either_side.py", "(alike & (there >= ENOUGH * constant)).any()", "alike.any()",
        "what is not read is refused", "test_either_side.py::test_what_is_said_beyond_a_limit_is_seen[at 24]",
    ),
    Mutant(
        "equalities tried in units of 1 alone", "models/custom_density.py", "others = rows_in_units([", "others = [] and rows_in_units([",
        "what is not read is refused", "test_either_side.py::test_what_is_said_at_a_limit_is_seen",
    ),
    Mutant(
        "comparisons for the sake of digits taken for others", "models/either_side.py", "    return bool((~alike).any())\n", "    return True\n",
        "a density is read as one", "test_either_side.py::test_densities_are_left_as_they_are[the same on both sides]",
    ),
    Mutant(
        "unknowns of one sign", "models/custom_density.py", "return OF_NEGATIVE if _is_another_at_negative(density, rows, unknown & of_either_sign) else",
        "return OF_NEGATIVE if False else",
        "what is not read is refused", "test_either_side.py::test_what_is_said_at_negative_unknowns_is_seen[a term-Normal]",
    ),
    Mutant(
        "tails of rounded values taken for differences", "models/rounded_values.py", "<= EQUAL + farthest[tried]", "<= EQUAL",
        "what is not read is refused", "test_rounded_values.py::test_the_probability_of_a_rounded_value_is_found[of heavy tails]",
    ),
    Mutant(
        "shifts in units of a parameter overlooked", "models/rounded_values.py", "yield from (sign * number for number in _factors(operand))",
        "yield from (sign * number for number in [number_in(operand)] if number is not None)",
        "what is not read is refused", "test_rounded_values.py::test_the_probability_of_a_rounded_value_is_found[in units of the spread]",
    ),
    Mutant(
        "single values in a Potential", "models/potentials.py", "if problem := problem_of_values(density, function.parameters):", "if problem := '':",
        "what is not read is refused", "test_single_points.py::test_it_is_refused_with_what_to_write[_by_potential]",
    ),
    Mutant(
        "single values beside flags of events", "models/potentials.py", "if problem := problem_of_values(_of_times(operation.density), parameters[:-1]):", "if problem := '':",
        "what is not read is refused", "test_single_points.py::test_it_is_refused_with_what_to_write[_with_flags]",
    ),
    Mutant(
        "single values in a component", "models/written_mixtures.py", "if problem := problem_of_values(written, function.parameters):", "if problem := '':",
        "what is not read is refused", "test_single_points.py::test_it_is_refused_with_what_to_write[_of_a_mixture]",
    ),
    Mutant(
        "jumps on one side taken for single values", "models/single_points.py", "    for side in (-1, 1):\n", "    for side in (1,):\n",
        "densities may jump", "test_single_points.py::test_a_density_is_left_as_it_is[a jump]",
    ),
    Mutant(
        "steep densities taken for jumps", "models/single_points.py", "return _change(at_one, at_other) > APART",
        "return _change(values(written, start, rows), values(written, end, rows)) > APART",
        "densities may be as narrow as they like", "test_single_points.py::test_a_density_is_left_as_it_is[a spike]",
    ),
    Mutant(
        "comparisons that hold at single values", "models/single_points.py",
        "if place is None or _often(", "if False and _often(",
        "what is not read is refused", "test_single_points.py::test_a_single_value_that_means_something_else_is_found[equal after another function]",
    ),
    Mutant(
        "no number where shares are above 1", "models/custom_density.py", "return _tried(parameters, shares) if shares else (rows, told)", "return rows, told",
        "a density with a probability is read as one", "test_custom_density.py::test_a_density_with_a_probability_is_one",
    ),
    Mutant(
        "a single integral agrees with itself", "models/custom_density.py", "    if several and len(integrals) < 2:", "    if False and len(integrals) < 2:",
        "a factor that rests on an unknown is seen", "test_custom_density.py::test_a_single_number_does_not_agree_with_itself",
    ),
    Mutant(
        "a share is tried at 1/2 first", "models/custom_density.py", "SHARES = (0.3, 0.8, 0.55)", "SHARES = (0.5, 0.5, 0.5)",
        "a factor that rests on an unknown is seen", "test_custom_density.py::test_a_factor_that_rests_on_a_probability_is_seen[1 - p]",
    ),
    Mutant(
        "middles between numbers left out", "models/single_points.py", "*((one + other) / 2 for one, other in pairwise(found))", "",
        "what is not read is refused", "test_single_points.py::test_a_single_value_that_means_something_else_is_found[between two numbers]",
    ),
    Mutant(
        "levels without a density are paid for", "sampling.py",
        "    check_cells(ready.plan.spec, protection.bounds or {})\n    return rewritten(", "    return rewritten(",
        "what fails is not paid for", "test_levels_without_density.py::test_they_are_refused_before_paying[_written-levels0-privatize]",
    ),
    Mutant(
        "levels without a density are drawn from", "sampling.py",
        "    check_cells(ready.plan.spec, protection.bounds or {})\n    released", "    released",
        "what fails is not paid for", "test_levels_without_density.py::test_they_are_refused_before_paying[_written-levels0-sample]",
    ),
    Mutant(
        "covariates that never occur together are let pass", "private_models/no_density.py", "if entries > 1 else ()", "if entries > 9 else ()",
        "a posterior is cut off only where the user's is",
        "test_impossible_combinations.py::test_they_are_refused_before_paying[x_and_what_is_left-y:0 and y:1-privatize]",
    ),
    Mutant(
        "columns count as one covariate", "private_models/no_density.py", "    entries = sum(prod(length or 1", "    entries = sum(1 or prod(length or 1",
        "a posterior is cut off only where the user's is",
        "test_impossible_combinations.py::test_they_are_refused_before_paying[dummies-D-privatize]",
    ),
    Mutant(
        "a single covariate is refused", "private_models/no_density.py", "if entries > 1 else ()", "if entries > 0 else ()",
        "what the user's own model forbids is not refused",
        "test_impossible_combinations.py::test_others_are_paid_for[of_a_single_covariate]",
    ),
    Mutant(
        "nothing is said of arrays that are written twice", "plans/inspection.py", 'if self.neighbours != "replace" or self.unit', 'if self.unit',
        "what counts as different is said", "test_hints.py::test_inspect_says_where_an_array_written_twice_counts_as_two[add_remove]",
    ),
    Mutant(
        "noise of other multipliers than are used", "releases/pooling.py", "return best, best.planned(plain, len(n))", "return best, planned",
        "a record moves the numbers no further than is paid for",
        "test_pooling.py::test_noise_is_that_of_the_multipliers_that_were_used[laplace-0.1]",
    ),
    Mutant(
        "multipliers of any noise", "releases/pooling.py", "_deviations(deviation(reach), n", "_deviations(1e-9 + 0 * deviation(reach), n",
        "of pooled sums those are multiplied that say most",
        "test_pooling.py::test_multipliers_are_those_that_are_best_at_this_noise[laplace-10000.0]",
    ),
    Mutant(
        "what is known becomes unknown", "releases/pooling.py", "if (ratios[known] <= WORSE).all() and (score", "if (score",
        "of pooled sums none hides what second moments by cell would tell",
        "test_pooling.py::test_what_single_cells_would_tell_is_kept[60-4-chosen0]",
    ),
    Mutant(
        "weights that were written out are not judged", "private_models/possible.py", "    if likelihood.weights:\n", "    if False:\n",
        "how often priors lead where there is no density", "test_levels_without_density.py::test_the_table_says_where_priors_often_lead_there",
    ),
    Mutant(
        "weights of a sum taken for shares", "models/written_mixtures.py", "not (are_logarithms(weights, formula) or are_shares(weights))", "False",
        "a density is not cut off where a weight is above 1", "test_written_mixtures.py::test_a_weight_may_be_above_1_where_the_sum_is_a_density[above 1-False]",
    ),
    Mutant(
        "any function of shares taken for one", "models/written_mixtures.py", "_rest_on_shares(weights) and _stay_shares(weights)", "_rest_on_shares(weights)",
        "a density is not cut off where a weight is above 1",
        "test_written_mixtures.py::test_a_weight_may_be_above_1_where_the_sum_is_a_density[a quotient of shares-False]",
    ),
    Mutant(
        "powers taken for no weights", "models/written_mixtures.py", "        return number_in(variable.owner.inputs[1]) is not None\n", "        return False\n",
        "a narrow component keeps its weight", "test_written_mixtures.py::test_weights_may_be_powers[a share-False]",
    ),
    Mutant(
        "powers with any exponent", "models/written_mixtures.py", "        return number_in(variable.owner.inputs[1]) is not None\n", "        return True\n",
        "probabilities add up to 1", "test_written_mixtures.py::test_a_power_whose_exponent_is_no_number_is_no_weight",
    ),
    Mutant(
        "components with any factor", "models/custom_density.py", "everywhere=True, to=1.0)[1]", "everywhere=True)[1]",
        "a mixture is read as what it says", "test_written_mixtures.py::test_mixtures_that_are_not_understood_are_refused[factors that are left out]",
    ),
    Mutant(
        "weights that need not add up", "models/written_mixtures.py", "and np.allclose(sum(values), 1))", "and True)",
        "probabilities add up to 1", "test_written_mixtures.py::test_mixtures_that_are_not_understood_are_refused[weights that do not add up]",
    ),
    Mutant(
        "any vector taken for proportions", "models/written_mixtures.py", "    if not all(isinstance(_default_transform(", "    if False and not all(isinstance(_default_transform(",
        "probabilities add up to 1", "test_written_mixtures.py::test_mixtures_that_are_not_understood_are_refused[vectors that are no proportions]",
    ),
    Mutant(
        "a mixture integrated as a whole", "models/written_mixtures.py", "LikelihoodRV(whole.written(), components=parts)", "LikelihoodRV(whole.written())",
        "a narrow component keeps its weight", "test_written_mixtures.py::test_mixtures_are_read_however_they_are_written[logaddexp]",
    ),
    Mutant(
        "a mixture of a CustomDist integrated as a whole", "models/binned.py", "elif components := components_of_custom(density, parameters):",
        "elif components := ():", "a narrow component keeps its weight",
        "test_written_mixtures.py::test_a_component_keeps_its_weight_where_the_other_is_computed_from_it",
    ),
    Mutant(
        "weights of a CustomDist that need not add up", "models/custom_formulas.py", "if len(found) < 2 or not add_up(", "if len(found) < 2 or not (lambda _: True)(",
        "probabilities add up to 1", "test_written_mixtures.py::test_weights_of_a_custom_dist_that_do_not_add_up_are_refused",
    ),
    Mutant(
        "weights of a CustomDist by the names of its parameters", "models/custom_formulas.py", "in_model = [substitute(weight, dict(as_in_model)) for weight in weights]", "in_model = weights",
        "a narrow component keeps its weight", "test_written_mixtures.py::test_a_mixture_in_a_custom_dist_is_read_as_one[logaddexp-a Dirichlet]",
    ),
    Mutant(
        "checks that raise where a density is tried out", "models/binned.py", "unchecked = density.unchecked()", "unchecked = density",
        "what can be released is", "test_written_mixtures.py::test_densities_of_pymc_with_checks_of_parameters_may_stand_in_a_custom_dist",
    ),
    Mutant(
        "factors of a sum left out", "models/log_sums.py", "pt.add(*others, term) if others else term", "term",
        "a mixture is read as what it says", "test_written_mixtures.py::test_factors_are_distributed_over_terms[a factor of all]",
    ),
    Mutant(
        "a weight is one factor", "models/written_mixtures.py", "for many in range(1, len(known) + 1) for places", "for many in (1,) for places",
        "a mixture is read as what it says", "test_written_mixtures.py::test_factors_are_distributed_over_terms[weights that are products]",
    ),
    Mutant(
        "a divisor taken for a factor", "models/log_sums.py", "*(-factor for factor in factors_of(_log(operands[1])))]", "*factors_of(_log(operands[1]))]",
        "a mixture is read as what it says", "test_written_mixtures.py::test_factors_are_distributed_over_terms[a quotient]",
    ),
    Mutant(
        "a mixture in a mixture is one component", "models/written_mixtures.py", "        if terms and left >= 0:", "        if terms and len(factors) == 1:",
        "a narrow component keeps its weight", "test_written_mixtures.py::test_other_mixtures[a weight of a mixture in a mixture]",
    ),
    Mutant(
        "densities of users' own that nobody knows", "models/binned.py", "None if integrand is None else (integrand, k))", "None)",
        "a component that is lost is told of", "test_missed_mass.py::test_a_lost_component_is_told_of[in_a_custom_dist]",
    ),
    Mutant(
        "a density in a Potential that nobody knows", "models/binned.py", "between = _by_density(operation.density, (-np.inf, np.inf), whole)", "between = _by_density(operation.density, (-np.inf, np.inf))",
        "a component that is lost is told of", "test_missed_mass.py::test_a_lost_component_is_told_of[in_a_potential]",
    ),
    Mutant(
        "every density integrates to 1", "models/integrands.py", "axis=1) / self.whole", "axis=1)",
        "a factor is no loss", "test_missed_mass.py::test_a_factor_is_no_loss",
    ),
    Mutant(
        "whatever quadrature misses is told of", "private_models/missed_mass.py", "right = seen & (", "right = (~seen & seen) & (",
        "what dividing by the sum mends is not told of", "test_missed_mass.py::test_a_density_that_is_narrow_as_a_whole_is_not_told_of[0.02]",
    ),
    Mutant(
        "what no rule finds is right", "private_models/missed_mass.py", "right = seen & (", "right = (seen | ~seen) & (",
        "what is not known is told of", "test_missed_mass.py::test_what_no_rule_finds_is_told_of",
    ),
    Mutant(
        "few draws are told of", "private_models/missed_mass.py", "OFTEN = 0.01", "OFTEN = 0.005",
        "one draw in a hundred is no reason to warn", "test_missed_mass.py::test_a_lost_component_is_told_of[in_a_mixture]",
    ),
    Mutant(
        "how many records there are is no matter", "private_models/missed_mass.py", "(np.sqrt(records) * far > MATTERS)", "(far > MATTERS)",
        "what records cannot tell is not told of", "test_missed_mass.py::test_how_far_off_is_too_far_depends_on_the_number_of_records",
    ),
    Mutant(
        "the first cell stands for all", "private_models/missed_mass.py", "rows = by_draw[looked_at, far[looked_at].argmax(axis=1)]", "rows = by_draw[looked_at, 0]",
        "what is lost of one cell is told of", "test_missed_mass.py::test_what_is_lost_of_one_cell_is_told_of",
    ),
    Mutant(
        "a finer rule that is none", "models/integrands.py", "points = self._finer() if finer else self.points", "points = self.points",
        "what dividing by the sum mends is not told of", "test_missed_mass.py::test_the_finer_rule_finds_what_is_a_six_hundredth_as_wide_as_a_bin",
    ),
    Mutant(
        "a flag of three values", "models/event_flags.py", 'if "event" in above & below:', "if True:",
        "what is said of a third value is not dropped", "test_potentials.py::test_a_status_of_three_values_is_no_flag",
    ),
    Mutant(
        "a status that is not 1 is the nearest of 1 and 0", "releases/statistics.py", "if placeholder.only is None else _compared(", "if True else _compared(",
        "an event is what the formula says is one", "test_events.py::test_a_status_of_other_numbers_tells_what_its_condition_says[1 alone-int-in the model]",
    ),
    Mutant(
        "private lengths of arrays in a Potential", "models/potentials.py", "(expressions, {}) if sized else of_any_length(expressions)", "(expressions, {})",
        "where it is private no number of records decides what is read", "test_any_length.py::test_a_single_record_is_read_as_several_are[summed-1]",
    ),
    Mutant(
        "an array that is made as long as the records", "models/any_length.py", "if any(repeated.type.ndim != repeated.owner.inputs[0].type.ndim for", "if any(False for",
        "where it is private no number of records decides what is read",
        "test_any_length.py::test_an_array_as_long_as_the_records_is_refused_whatever_its_length",
    ),
    Mutant(
        "parts are added before they are looked at", "models/potentials.py", "parts = [by_record(part, array) for", "parts = [part for",
        "no refusal says how many records were selected",
        "test_potentials.py::test_how_many_records_were_selected_does_not_change_the_refusal",
    ),
    Mutant(
        "values that were rounded before the model had them", "models/observed.py",
        'bool(unknowns & {"float16", "float32"}) or array in ("float16", "float32", "int8", "int16")',
        'observed.random.type.dtype == "float32"', "one individual moves a value by as much as is paid for",
        "test_privacy_routes.py::test_values_that_were_rounded_before_the_model_had_them_are_refused[16777217.0-data_in_float32]",
    ),
    Mutant(
        "a class that is called like one of pymc_extras", "models/allow_list.py", "home is not None and getattr(home, kind.__name__, None) is kind",
        "kind.__name__ in OF_EXTRAS", "an operation of Python code may hold records",
        "test_extras.py::test_a_class_of_one_s_own_of_that_name_is_refused",
    ),
    Mutant(
        "values that nothing clamps", "private_models/row_values.py", "return pt.clip(u, -1.0, 1.0) if noisy.domain.clamps else u", "return u",
        "exact values of rows have the law of what was released",
        "test_rewrite.py::test_values_that_are_unknowns_integrate_to_the_law_of_what_is_released[Gamma-laplace-1.0]",
    ),
    Mutant(
        "values on a bent line have the density of their own", "private_models/row_values.py",
        "pt.switch(given[2] > 0, log(2 / pi) / 2 - pt.log(_tail(_size(seen))), 0.0)", "0.0",
        "a value's density is that of what a sampler sees, times the slope",
        "test_rewrite.py::test_values_that_are_unknowns_integrate_to_the_law_of_what_is_released[StudentT-laplace-1.0]",
    ),
    Mutant(
        "values in other units have the density of their own", "private_models/row_values.py", "pt.log(given[1]) + own", "pt.log(given[1])",
        "exact values of rows have the user's own density",
        "test_rewrite.py::test_values_that_are_unknowns_integrate_to_the_law_of_what_is_released[Gamma-laplace-1.0]",
    ),
    Mutant(
        "values between unknown ends", "models/likelihood_reader.py", " and has_plain_support(observed.random)", "",
        "rows whose values end at an unknown are refused", "test_privacy_routes.py::test_totals_that_cannot_be_promised_are_refused",
    ),
    Mutant(
        "an individual's events counted once", "plans/totals.py", "(2 * m, 2 * m**2) if twice else (m, m**2)", "(m, m**2)",
        "an individual moves events from row to row", "test_privacy_routes.py::test_totals_of_events[individual-replace-6-18]",
    ),
    Mutant(
        "a moment forgotten as records come and go", "families/second_moments.py", "return sum(weights) * POINTS**2, ",
        "return sum(weights[1:]) * POINTS**2, ", "a record moves every moment, the count among them",
        "test_privacy_routes.py::test_second_moments_cost_what_some_record_moves[laplace-one record more]",
    ),
    Mutant(
        "squares of features and responses forgotten", "families/second_moments.py", "features, products = every * 2 * m * (m + 1), ",
        "features, products = every * 2 * m * (m - 1), ", "the joint sensitivity of second moments",
        "test_sensitivity.py::test_second_moments_move_by_no_more_than_is_paid_for[(3, 0, 1, False, False)]",
    ),
    Mutant(
        "a product moves by 1, not 2", "families/second_moments.py", "+ response**2 * (4 * square * t + 4 * (k",
        "+ response**2 * (2 * square * t + 2 * (k", "the L2 sensitivity of second moments",
        "test_sensitivity.py::test_second_moments_move_by_no_more_than_is_paid_for[(1, 0, 1, False, False)]",
    ),
    Mutant(
        "responses forgotten where sigma is known", "families/second_moments.py", "response * 2 * c * q + squares + products, features", "squares, features",
        "the joint sensitivity of second moments",
        "test_sensitivity.py::test_second_moments_move_by_no_more_than_is_paid_for[(0, 2, 1, True, False)]",
    ),
    Mutant(
        "signs that change in place", "families/second_moments.py", "max(cells * norm_square, in_place_square)", "2 * norm_square",
        "the L2 sensitivity where a record stays in its cell",
        "test_leaks.py::test_gaussian_sensitivity_of_counted_moments_changed_in_place[3]",
    ),
    Mutant(
        "every grid clamps", "families/grid.py", "return bool(ends[0] <= -POINTS and ends[1] >= POINTS)", "return True",
        "what lies beyond bounds is moved to them", "test_sums.py::test_a_grid_clamps_only_where_its_ends_are_the_bounds",
    ),
    Mutant(
        "a covariate never clamped", "releases/statistics.py", "all(regression.clamps[k] for k in its)", "True",
        "what lies beyond bounds is moved to them", "test_data.py::test_columns_that_the_grid_clamps_are_those_that_were_clamped_before",
    ),
    Mutant(
        "covariance without clipping (SmartNoise 624)", "families/second_moments.py", "to_points(columns[1:], np.array(half[1:])[:, None])",
        "np.rint(columns[1:] / np.array(half[1:])[:, None] * POINTS, out=columns[1:])", "second moments of any doubles are bounded",
        "test_sensitivity.py::test_any_two_records_of_doubles_stay_within_the_sensitivity",
    ),
    Mutant(
        "public features left out of the bound", "releases/cells.py",
        "public = [k for k, private in enumerate(regression.private) if not private]", "public = [0]",
        "products with public features are moved, too",
        "test_privacy_routes.py::test_second_moments_cost_what_some_record_moves[laplace-public features]",
    ),
    Mutant(
        "width² for a product (Bernstein and Sheldon 2019)", "families/second_moments.py",
        '    def lattice(self) -> float:\n        """One lattice unit of a product."""\n        return 1.0 / POINTS**2',
        '    def lattice(self) -> float:\n        """One lattice unit of a product."""\n        return 0.5 / POINTS**2',
        "released products are those of the scaled features",
        "test_privacy_routes.py::test_second_moments_cost_what_some_record_moves[laplace-public features]",
    ),
    Mutant(
        "what is released of features by a matrix product", "families/second_moments.py",
        "result[..., k] += coefficient * features[..., j]", "result[..., k] = features @ np.array(row)",
        "a record's rounding rests on no other", "test_basis.py::test_no_record_moves_what_another_adds[powers]",
    ),
    Mutant(
        "features released as they are", "families/second_moments.py", "        if self.basis:\n", "        if False:\n",
        "released products are those that coefficients are told of", "test_basis.py::test_exact_sums_are_those_of_the_records[powers]",
    ),
    Mutant(
        "multiplied numbers paid for as if they were not", "families/second_moments.py", "m, q, (every, response) = sum(self.private), self.q, self.multipliers",
        "m, q, (every, response) = sum(self.private), self.q, (1, 1)", "the joint sensitivity of second moments that are multiplied",
        "test_sensitivity.py::test_second_moments_move_by_no_more_than_is_paid_for[(1, 0, 1, False, False, (2, 3))]",
    ),
    Mutant(
        "a quadratic that is largest at its edge, taken where it is flat", "families/second_moments.py",
        "inside = [(h, t) for h, t in places if", "inside = [(h, t) for h, t in places[-1:] if",
        "the joint sensitivity of second moments that are multiplied",
        "test_proofs.py::test_second_moments[2 private, 1 response, sigma known, times 1, with the response 2, all signs]",
    ),
    Mutant(
        "multipliers for their squares", "families/second_moments.py", "sum(weight**2 for weight in weights) * POINTS**4",
        "sum(weights) * POINTS**4", "Gaussian noise pays for the squares of what is multiplied",
        "test_privacy_routes.py::test_second_moments_cost_what_some_record_moves[gaussian-one record more]",
    ),
    Mutant(
        "any multipliers", "families/second_moments.py", "if not 1 <= least <= most or (self.link and response > 1) or (", "if (",
        "sensitivities are those of an argument that holds", "test_multipliers.py::test_where_the_argument_does_not_reach_nothing_is_multiplied",
    ),
    Mutant(
        "multipliers that widen what Gaussian noise leaves", "plans/moments.py", "(multipliers for multipliers in MULTIPLIERS if cost(multipliers)[1] <= plain)",
        "MULTIPLIERS", "nobody's slopes are wider for what is multiplied", "test_multipliers.py::test_those_are_chosen_that_make_slopes_narrowest[1-chosen0]",
    ),
    Mutant(
        "pooled sums multiplied twice", "releases/pooling.py", "    return planned.with_regression(replace(planned.regression, multipliers=(1, 1)))",
        "    return planned", "pooled sums are multiplied by what is said", "test_pooling.py::test_exact_numbers_are_sums_of_scaled_values[two_slopes]",
    ),
    Mutant(
        "multiplied numbers are not divided", "releases/noisy_statistic.py", "return values if (times := self.times) is None else values / times",
        "return values", "released values are sums of records and noise",
        "test_multipliers.py::test_what_is_released_is_the_sum_of_the_records_once_it_is_divided[replace-2]",
    ),
    Mutant(
        "one noise said of all numbers", "releases/noisy_statistic.py", "return sd if (times := self.times) is None else sd / times", "return sd",
        "the noise that is said is the noise there is", "test_multipliers.py::test_noise_is_as_wide_as_is_said[laplace]",
    ),
    # ---------- statistics
    Mutant(
        "an index rounded, not cut off", "releases/statistics.py", "flat = np.trunc(complete(", "flat = np.rint(complete(",
        "private cells are those of the model",
        "test_leaks.py::test_real_numbers_cast_to_a_private_index_make_the_cells_that_they_make_in_the_model",
    ),
    Mutant(
        "an index that is compared is a level", "models/private_levels.py", " and data.placeholder not in _computed_with(parameters)", "",
        "a code of -1 means what it means to PyMC",
        "test_spellings.py::test_an_index_that_is_more_than_a_level_needs_bounds[none has no effect]",
    ),
    Mutant(
        "levels of the shortest table", "models/private_levels.py", "len(data.lengths) == 1 and ", "",
        "an index counts back in each table from its own end",
        "test_spellings.py::test_an_index_that_is_more_than_a_level_needs_bounds[tables of two lengths]",
    ),
    Mutant(
        "negative indices clamped", "releases/statistics.py", "if placeholder.index and placeholder.wraps:", "if False:", "private cells are those of the model",
        "test_leaks.py::test_a_private_negative_index_means_what_it_means_to_pymc",
    ),
    Mutant(
        "covariates not clamped", "releases/statistics.py", "entries = [complete(flat[:, k], Domain(lower[k], upper[k], fill=fill)) for k",
        "entries = [flat[:, k].astype(float) for k", "private covariates are within their bounds",
        "test_sensitivity.py::test_private_covariates_are_mapped_into_their_levels_whatever_they_hold[float64]",
    ),
    Mutant(
        "sums may overflow", "releases/statistics.py", 'if planned.sizes != "free" and records', "if False and records", "no sum leaves 64 bits",
        "test_statistics.py::test_sums_that_could_leave_64_bits_are_refused",
    ),
    Mutant(
        "a refusal that tells the number of records", "releases/statistics.py", 'if planned.sizes != "free" and records', "if records",
        "add-remove hides the number of records", "test_statistics.py::test_sums_of_a_private_number_of_records_are_clamped_instead",
    ),
    Mutant(
        "blocks too long for doubles", "releases/sums.py", "block = max(EXACT_DOUBLE // max(norm, 1), 1)", "block = max(len(codes), 1)",
        "sums are exact in any order", "test_statistics.py::test_sums_beyond_what_doubles_hold_are_exact",
    ),
    Mutant(
        "blocks too long for products", "releases/sums.py", "block = max(EXACT_DOUBLE // largest**2, 1)", "block = max(columns.shape[1], 1)",
        "products are added up exactly in any order", "test_sums.py::test_products_at_the_ends_of_what_doubles_hold[1-1]",
    ),
    Mutant(
        "bounds from the data (Bernstein and Sheldon 2019)", "releases/totals.py", "family.doubles(numbers, domain)",
        "(lambda x, d: family.doubles(x, Domain(x.min(), x.max() + 1, d.levels, d.unknown, d.known)))(complete(numbers, domain), domain)",
        "the grid is public", "test_privacy.py::test_the_charge_is_attained_by_some_pair",
    ),
    Mutant(
        "missing values left out", "releases/statistics.py", "    if missing is None:\n        return values", "    if True:\n        return values",
        "nothing shows which values are missing", "test_rewrite.py::test_missing_values_become_the_public_fill",
    ),
    Mutant(
        "covariates compiled in", "releases/statistics.py",
        "    function = _compiled(tuple(linear.features), tuple(placeholder.variable for placeholder in used), get_ident())\n"
        "    arguments = [of_type(arrays[placeholder.variable.name], placeholder.variable) for placeholder in used]\n"
        "    copied = _copied(function)\n"
        "    whole = any(value is None for value in copied)\n"
        "    values = function(*arguments) if whole else [arguments[value] if isinstance(value, int) else value for value in copied]",
        "    constants = {one.variable: pytensor.tensor.constant(of_type(arrays[one.variable.name], one.variable)) for one in used}\n"
        "    weight = pytensor.tensor.dscalar()\n"
        "    values = pytensor.function([weight], [weight * substitute(one, constants) for one in linear.features])(1.0)",
        "nothing of a record is in a compile cache", "test_privacy.py::test_no_compile_cache_holds_a_covariate",
    ),
    # ---------- release and results
    Mutant(
        "several variables each charged the whole (twinify)", "releases/from_records.py",
        "costs = [noise.share(total, parts[cells.name]) for cells in released]", "costs = [total for cells in released]",
        "what several variables cost adds up to epsilon", "test_privacy.py::test_the_charge_is_attained_by_some_pair",
    ),
    Mutant(
        "private numbers of records decide shares", "releases/division.py",
        "network is not None or any(cells.planned.sizes == \"free\" for cells in released)", "network is not None",
        "what is divided rests on no record", "test_division.py::test_a_division_rests_on_no_record",
    ),
    Mutant(
        "a step more than there are", "plans/division.py", "total, spare = STEPS * len(groups)",
        "total, spare = STEPS * len(groups) - 1", "what several variables cost adds up to epsilon",
        "test_division.py::test_one_record_in_all_variables_loses_what_is_paid_and_no_more",
    ),
    Mutant(
        "rho falls as epsilon does", "releases/division.py", "power = 1 if noise.priced_as", "power = 2 if noise.priced_as",
        "what is divided is what is paid", "test_division.py::test_noise_falls_with_its_share_as_the_mechanism_says",
    ),
    Mutant(
        "weights left at the door", "releases/from_records.py", "shares_of(released, weights, whole.disjoint",
        "shares_of(released, None, whole.disjoint", "epsilon is shared as was asked for",
        "test_result.py::test_weights_share_epsilon_exactly",
    ),
    Mutant(
        "the sensitivity of a mean (SmartNoise-core 356)", "releases/cells.py",
        "scale = noise.calibrate(difference, square,", "scale = noise.calibrate(-(-difference // len(self.cells.codes)), square,",
        "sensitivity does not rest on the number of records", "test_privacy.py::test_the_charge_is_attained_by_some_pair",
    ),
    Mutant(
        "n as it is where records come and go", "releases/cells.py",
        'n=np.zeros(0, dtype=np.int64) if planned.sizes == "free" else self.cells.n', "n=self.cells.n", "add-remove hides the number of records",
        "test_privacy_routes.py::test_neighbours_look_the_same_and_cost_what_was_paid[tabulated-gaussian-add_remove]",
    ),
    Mutant(
        "the model dissected with its number of records", "releases/from_records.py", ", sized=protection.sized, binned", ", binned",
        "add-remove hides the number of records", "test_leaks.py::test_add_remove_refusal_does_not_depend_on_the_number_of_records",
    ),
    Mutant(
        "totals without noise (d3p)", "releases/rounds.py", "return cells.noisy_statistic(noise.draw(read(cells), draw",
        "return cells.noisy_statistic((lambda t, *_: t if cells.planned.lattice == 1 else noise.draw(t, *_))(read(cells), draw",
        "everything that leaves has noise", "test_privacy_routes.py::test_totals_cost_what_one_individual_can_move",
    ),
    Mutant(
        "second moments without noise", "releases/rounds.py", "return cells.noisy_statistic(noise.draw(read(cells), draw",
        "return cells.noisy_statistic((lambda t, *_: t if cells.planned.regression else noise.draw(t, *_))(read(cells), draw",
        "everything that leaves has noise",
        "test_privacy_routes.py::test_neighbours_look_the_same_and_cost_what_was_paid[linear-laplace-replace]",
    ),
    Mutant(
        "a plan that reads private arrays", "releases/simulated.py", "None if placeholder.private else evaluate(path.variable)",
        "evaluate(path.variable)", "a plan rests on no record", "test_plan.py::test_a_plan_rests_on_no_record[indexed]",
    ),
    Mutant(
        "a plan that counts the records", "releases/simulated.py", " if protection.sized else {}", "",
        "a plan does not know a private number of records", "test_plan.py::test_a_private_number_of_records_decides_nothing[shared]",
    ),
    Mutant(
        "a release with the noise of plans", "privacy/mechanisms.py", "    if isinstance(mechanism, Laplace | Gaussian):",
        "    if hasattr(mechanism, \"like\"):\n        return mechanism\n    if isinstance(mechanism, Laplace | Gaussian):",
        "noise with a seed protects nothing", "test_plan.py::test_no_release_of_records_takes_the_imitation",
    ),
    Mutant(
        "charged, and not redeemed", "privacy/ledger.py",
        "return ledger.redeem(ledger.charge(cost, draws, neighbours=neighbours, unit=unit, public=public))",
        "return Receipt(draws, cost, ledger.charge(cost, draws, neighbours=neighbours, unit=unit, public=public).head)",
        "a charge is used once", "test_ledger.py::test_the_charge_is_on_disk_before_a_record_is_read",
    ),
    Mutant(
        "charged after reading", "releases/from_records.py",
        "        return receipt_for(ledger, total, draws, neighbours=neighbours, unit=protection.unit, public=spec.public)\n",
        "        receipt = Receipt(draws, total)\n"
        "        for cells, draw in zip(priced.released, draws, strict=True):\n"
        "            noise.draw(_totals(cells, paths[cells.name]), draw.scale, receipt)\n"
        "        return receipt_for(ledger, total, draws, neighbours=neighbours, unit=protection.unit, public=spec.public)\n",
        "no record is read before the charge is on disk", "test_ledger.py::test_no_release_without_an_earlier_charge[2]",
    ),
    Mutant(
        "paid for, and said to be unaccounted", "releases/from_records.py", "*declared, receipt.head, priced.versions,",
        '*declared, "unaccounted", priced.versions,', "a result says which charge paid for it",
        "test_ledger.py::test_a_release_pays_and_says_where",
    ),
    Mutant(
        "unaccounted, and said to be paid for", "privacy/ledger.py", "        return Receipt(draws, cost_of_draws(cost, draws))\n",
        '        return Receipt(draws, cost_of_draws(cost, draws), "accounted")\n', "a result says that nothing remembers it",
        "test_ledger.py::test_without_a_ledger_the_result_says_so",
    ),
    Mutant(
        "what was thrown, in words", "privacy/guard.py", "        except Exception:\n            refusal = PrivateComputationError(FAILED)",
        '        except Exception as error:\n            refusal = PrivateComputationError(f"{FAILED} {error}")',
        "an exception says nothing of a value", "test_privacy.py::test_exceptions_carry_nothing[failure]",
    ),
    Mutant(
        "what was thrown, as the cause", "privacy/guard.py", "        except Exception:\n            refusal = PrivateComputationError(FAILED)",
        "        except Exception as error:\n            raise PrivateComputationError(FAILED) from error", "an exception has no cause",
        "test_privacy.py::test_exceptions_carry_nothing[failure]",
    ),
    Mutant(
        "frames that hold records", "privacy/guard.py", "refusal = Refusal(*reason.args)", "refusal = reason",
        "an exception has no frame in which a record was read", "test_privacy.py::test_exceptions_carry_nothing[refusal]",
    ),
    Mutant(
        "frames of an interrupted release", "privacy/guard.py", "            refusal = _anew(type(stopped))\n",
        "            refusal = stopped\n", "what stops a program has no frame in which a record was read",
        "test_privacy.py::test_what_stops_a_program_carries_nothing[KeyboardInterrupt]",
    ),
    Mutant(
        "what a program leaves with", "privacy/guard.py", "leaving.code if isinstance(leaving.code, int) else 1", "leaving.code",
        "what stops a program says nothing of a value", "test_privacy.py::test_what_stops_a_program_carries_nothing[SystemExit]",
    ),
    Mutant(
        "warnings leave", "privacy/guard.py", "with quiet(), ", "with ", "a warning says nothing of a value",
        "test_privacy.py::test_no_warning_leaves_the_wall",
    ),
    Mutant(
        "lines of logs leave", "privacy/guard.py", "            handler.addFilter(_LINES)  # once: it is the same filter", "            pass",
        "nothing that is printed shows a record", "test_guard.py::test_pytensor_logs_no_record[root]",
    ),
    Mutant(
        "a few records taken for a shape", "models/lengths.py", "whole = whole and (entries or not isinstance(variable.owner.op, Subtensor | AdvancedSubtensor))",
        "whole = True", "nothing tells how many records there are", "test_lengths.py::test_a_few_records_are_no_tuple_of_lengths[observed]",
    ),
    Mutant(
        "einsum of a single record", "models/reduction.py", "(OpFromGraph, *[Einsum] * self._sized)", "(OpFromGraph, Einsum)",
        "nothing tells how many records there are",
        "test_lengths.py::test_a_product_that_pytensor_writes_otherwise_for_one_record_needs_their_number_to_be_public",
    ),
    Mutant(
        "warnings of all threads are switched", "privacy/guard.py", "        return getattr(_thread, \"is_quiet\", False)\n", "        return True\n",
        "other threads' warnings are heard", "test_guard.py::test_a_thread_in_a_boundary_says_nothing_and_others_are_heard",
    ),
    Mutant(
        "PyTensor may print what it rewrites", "models/reader.py", 'TELLING = ("optimizer_verbose", "profile")', 'TELLING = ("profile",)', "nothing that is printed shows a record",
        "test_guard.py::test_where_pytensor_prints_arrays_every_door_is_closed[optimizer_verbose-release]",
    ),
    Mutant(
        "numpy's complaints leave", "privacy/guard.py", ', np.errstate(all="ignore")', "", "whether a call succeeds does not depend on a value",
        "test_hiding_places.py::test_the_guard_sets_numpy_s_error_state_itself",
    ),
    Mutant(
        "epsilon of the first variable", "private_models/annotation.py", "return spent_on(release.cost,",
        "return spent_on(release.statistics[0].cost,", "a tree says what it cost",
        "test_result.py::test_attributes_tell_what_all_variables_cost_together[laplace]",
    ),
    Mutant(
        "no delta in the attributes", "private_models/annotation.py", '"delta": float(cost.delta),', '"delta": 0.0,', "a tree says what it cost",
        "test_result.py::test_attributes_tell_what_all_variables_cost_together[gaussian]",
    ),
    Mutant(
        "a tree of records annotated", "private_models/annotation.py", "    _check_drawn_from(tree, release)\n    spent", "    spent",
        "the attributes stand on private trees only", "test_result.py::test_annotate_refuses_a_tree_of_records",
    ),
    Mutant(
        "observed data compared by shape", "private_models/annotation.py", "    if values.shape != noisy.noisy.shape or values.dtype.kind not in \"iuf\":\n",
        "    if values.shape == noisy.noisy.shape:\n        return True\n    if values.dtype.kind not in \"iuf\":\n",
        "records are not labelled as what was released",
        "test_labels.py::test_annotate_refuses_records_of_the_same_shape_and_another_release",
    ),
    Mutant(
        "all predictive draws covered", "private_models/annotation.py", "and _of_statistics(tree[name].to_dataset(), release)]", "]",
        "draws from the user's own model are not covered",
        "test_labels.py::test_predictive_draws_of_the_private_model_can_be_covered_and_those_of_your_own_cannot",
    ),
    Mutant(
        "what was added is shared", "private_models/labels.py", "            dropped.append(str(name))\n            continue\n",
        "            dropped.append(str(name))\n", "what is shared is what was covered",
        "test_labels.py::test_what_your_own_model_adds_is_not_covered_and_not_shared[per-record values]",
    ),
    Mutant(
        "digests not compared", "private_models/labels.py", "if variable in then and now[variable] != then[variable]]", "if False]", "what is shared is what was covered",
        "test_labels.py::test_what_is_no_longer_what_it_was_is_refused[values]",
    ),
    Mutant(
        "attributes that others added are shared", "private_models/labels.py", 'if known["attributes"].get(str(name)) == digest([], value):', "if True:",
        "what is shared is what was covered",
        "test_labels.py::test_a_shared_tree_holds_copies_without_parents_and_attributes_of_others",
    ),
    Mutant(
        "a digest of the storage", "private_models/labels.py", 'array.astype("<u8" if array.dtype == np.uint64 else "<i8").tobytes()',
        "array.tobytes()", "a digest is the same however a number is stored",
        "test_labels.py::test_digests_tell_values_dims_shapes_and_kinds_apart",
    ),
    Mutant(
        "draws from a changed posterior are covered", "private_models/predictive.py", "covers=posterior_is_covered(tree))",
        "covers=True)", "what follows from something that is not covered is not covered",
        "test_predictive.py::test_draws_from_a_posterior_that_was_changed_are_not_covered",
    ),
    Mutant(
        "the number of observed values for that of records", "models/observed.py", "else shape_of(whole)[:1]",
        "else shape_of(self.value)[:1]", "a warning says nothing of a value", "test_weak.py::test_missing_values_do_not_show",
    ),
    Mutant(
        "a private number of records decides whether to warn", "plans/protection.py", "if cost.delta and protection.sized and not elsewhere else None",
        "if cost.delta and not elsewhere else None", "a warning says nothing of a private number of records",
        "test_weak.py::test_a_private_number_of_records_decides_nothing",
    ),
    Mutant(
        "no warning of a weak promise", "releases/from_records.py", "    warn_of_weak_promises(\n", "    (lambda *_, **__: None)(\n",
        "weak promises are warned of before anything is spent",
        "test_weak.py::test_every_door_warns_of_a_large_epsilon_before_it_spends[release]",
    ),
    Mutant(
        "the unit as a claim of ours", "privacy/accounting.py", "what = f'one row, which you say is one \"{words}\"'", "what = f'one {words}'",
        "no more is claimed than is protected", "test_labels.py::test_the_unit_is_repeated_as_a_claim",
    ),
    Mutant(
        "labels of records", "models/survivors.py", "    wanted -= record_dims\n", "", "no coordinate has one label per record",
        "test_leaks.py::test_add_remove_with_a_prior_over_the_dim_of_private_data",
    ),
    Mutant(
        "what is as long as the records stays", "models/survivors.py", "elif (record_dims | as_long) & set(operation.dims):", "elif False:",
        "no coordinate has one label per record", "test_hiding_places.py::test_labels_of_records_without_dims_on_the_observed_variable",
    ),
    Mutant(
        "predictions stay", "models/survivors.py",
        "closed = [array for array in arrays_above([variable], through_unknowns=True) if array not in arrays.open_arrays]", "closed = []",
        "an array that is not declared public does not stay in the model", "test_rewrite.py::test_a_public_array_for_predictions_survives",
    ),
    Mutant(
        "missing values are seen in the graph", "models/observed.py", "    return inner if masked else parameter", "    return parameter",
        "nothing shows which values are missing", "test_privacy.py::test_record_and_replay_of_a_missing_value[2]",
    ),
    Mutant(
        "priors from the data", "models/likelihood_reader.py", "    if observed.array in arrays.above_priors:\n", "    if False:\n",
        "records above a prior are refused", "test_refusals.py::test_refused_before_any_record_is_read[prior_from_observed_data]",
    ),
    Mutant(
        "a view of a prior's array", "models/model_arrays.py",
        "return array in self.above_priors or any(same_array(other, data_of(array)) for other in self.above_priors)",
        "return array in self.above_priors", "records above a prior are refused",
        "test_leaks.py::test_the_same_memory_above_a_prior_and_above_a_likelihood[True]",
    ),
    Mutant(
        "one public column opens all", "models/same_arrays.py", 'return part_of(data_of(array), getattr(item, "values", item))',
        "return same_array(array, item)", "public is what was declared public",
        "test_leaks.py::test_a_public_column_does_not_open_the_private_ones",
    ),
    Mutant(
        "observed values declared public", "models/declared.py", "        if any(array in protected for array in arrays):\n",
        "        if False:\n", "what is observed is private",
        "test_refusals.py::test_public_does_not_open_what_is_observed[same_data_twice]",
    ),
    Mutant(
        "Potentials on records", "models/problems.py", "    for variable in arrays.graph.of_kind(ModelPotential):\n        roots",
        "    for variable in ():\n        roots", "no Potential holds records",
        "test_refusals.py::test_refused_before_any_record_is_read[potential_on_data]",
    ),
    Mutant(
        "a copy of PyTensor's own operation is one", "models/structure.py",
        "return core == type(core)(input_types=list(core.input_types), **properties)", "return True",
        "arrays inside operations are seen", "test_hiding_places.py::test_arrays_inside_symbolic_operations",
    ),
    Mutant(
        "axes are counted from the first", "models/reduction.py", "tuple(place % operand.type.ndim for place in reduced)", "reduced",
        "no record meets another", "test_leaks.py::test_an_operation_whose_axis_counts_from_the_end[LogSoftmax]",
    ),
    Mutant(
        "integers without an end", "models/intervals.py", "    if \"int\" in dtype:\n        ends", "    if False:\n        ends",
        "a bound is certain", "test_rowwise.py::test_bounds_hold_for_every_kind_of_number",
    ),
    Mutant(
        "everything is a number", "models/intervals.py", "float(not never)", "0.0",
        "failure does not depend on records", "test_rowwise.py::test_what_may_be_no_number_is_not_taken_for_a_number",
    ),
    Mutant(
        "every symbolic operation is PyTensor's own", "models/structure.py", ' or not type(core).__module__.startswith("pytensor.")', "",
        "arrays inside operations are seen", "test_hiding_places.py::test_arrays_inside_symbolic_operations",
    ),
    Mutant(
        "arrays in operations of Python code", "models/problems.py",
        "        if reason := opaque(variable.owner.inputs[0], _published(arrays, name), sized=arrays.sized):", "        if reason := None:",
        "what is not understood is refused", "test_opaque.py::test_an_operation_that_is_not_known_is_refused[deterministic-own]",
    ),
    Mutant(
        "arrays in transforms", "models/problems.py", "(reason := hidden_in(operation.transform, _published(arrays, name)))",
        "(reason := None)", "no transform holds records", "test_opaque.py::test_what_a_transform_holds_is_refused[Shifted-by0]",
    ),
    Mutant(
        "a parent read along another axis", "models/record_axes.py", "        if axis and parent is not None:", "        if False:",
        "records lie along one axis", "test_axes.py::test_what_is_read_along_another_axis_is_refused[weights-replace]",
    ),
    Mutant(
        "an array read along another axis", "models/record_axes.py", "        if axis and not data.features:", "        if False:",
        "records lie along one axis", "test_axes.py::test_what_is_read_along_another_axis_is_refused[data max-replace]",
    ),
    Mutant(
        "an array read along two axes", "models/record_axes.py", "same = first is second and axis == other", "same = first is second",
        "records lie along one axis", "test_axes.py::test_what_is_read_along_another_axis_is_refused[features and records-replace]",
    ),
    Mutant(
        "views laid out otherwise", "models/same_arrays.py",
        "    return (a.shape[axis], a.strides[axis]) != (b.shape[other], b.strides[other])", "    return False",
        "records lie along one axis", "test_axes.py::test_what_is_read_along_another_axis_is_refused[views-replace]",
    ),
    Mutant(
        "features without coefficients", "models/reduction.py", "right.type.ndim == 2 and one_unknown_each(left, left.type.ndim - 1)",
        "right.type.ndim == 2", "an axis of features has one unknown an entry",
        "test_axes.py::test_what_is_read_along_another_axis_is_refused[data even weights-replace]",
    ),
    Mutant(
        "the first entry stays", "models/observed.py",
        "return inner if first and shared and len(entries) == missing.type.ndim else parameter", "return parameter",
        "missing values leave no trace", "test_missing.py::test_the_graph_is_the_same_whatever_is_missing[shared]",
    ),
    Mutant(
        "a single value that is there", "models/structure.py", "while put.owner is not None and isinstance(put.owner.op, SpecifyShape):",
        "while False:", "missing values leave no trace", "test_missing.py::test_the_graph_is_the_same_whatever_is_missing[weibull]",
    ),
    Mutant(
        "names that PyMC makes are kept", "models/survivors.py",
        "tuple(name for name in arrays.graph.model.named_vars if name not in arrays.imputed)", "tuple(arrays.graph.model.named_vars)",
        "missing values leave no trace", "test_missing.py::test_the_graph_is_the_same_whatever_is_missing[indexed]",
    ),
    Mutant(
        "totals to the nearest even", "releases/totals.py", "np.floor(np.abs(complete(", "np.rint(np.abs(complete(",
        "one event moves a total by one", "test_privacy_routes.py::test_totals_that_are_no_whole_numbers_cost_no_more[Poisson]",
    ),
    Mutant(
        "totals that PyMC turned into others are clamped", "releases/totals.py",
        "np.floor(np.abs(complete(values, replace(domain, lower=-domain.upper))))", "np.floor(complete(values, domain))",
        "one event moves a total by one",
        "test_privacy_routes.py::test_totals_that_pymc_turns_into_others_cost_what_one_individual_can_move[poisson-array]",
    ),
    Mutant(
        "values that PyMC turned into others are clamped", "releases/totals.py", "np.minimum(numbers, turned_at(domain) - numbers)", "numbers",
        "one individual moves a value by as much as is paid for",
        "test_privacy_routes.py::test_values_that_pymc_turns_into_others_cost_what_one_individual_can_move[bounds0-int64-array]",
    ),
    Mutant(
        "a moves that says something else each time", "plans/protection.py", 'for name in ("events", "rows", "moves"):',
        'for name in ("events", "rows"):', "what is charged is what was checked",
        "test_privacy_routes.py::test_numbers_of_a_class_of_their_own_are_read_once",
    ),
    Mutant(
        'the type of an index', 'models/reduction.py',
        '"int64" if index and private and isinstance(expression, Constant) else expression.type.dtype', 'expression.type.dtype',
        'no record looks like one', 'test_axes.py::test_no_record_looks_like_one[once]',
    ),
    Mutant(
        "an index without entries is another", "models/structure.py", "    if not sized or not (isinstance(first, TensorConstant)",
        "    if not (isinstance(first, TensorConstant)", "no record looks like one", "test_axes.py::test_no_record_looks_like_one[twice]",
    ),
    Mutant(
        'lengths decide a refusal', 'posterior/records.py', '        sized = self.protection.sized\n', '        sized = True\n',
        'the number of records does not show', 'test_axes.py::test_arrays_of_other_lengths_show_nothing_where_their_number_is_private',
    ),
    Mutant(
        "any class of that name", "models/opaque.py", "kind.__name__ not in OPERATIONS or not is_of_a_library(kind)",
        "kind.__name__ not in OPERATIONS", "what is not understood is refused",
        "test_opaque.py::test_an_operation_that_is_not_known_is_refused[deterministic-disguised]",
    ),
    Mutant(
        "any class of a library", "models/opaque.py", "kind.__name__ not in OPERATIONS or not is_of_a_library(kind)",
        "not is_of_a_library(kind)", "what is not understood is refused",
        "test_opaque.py::test_an_operation_that_is_not_known_is_refused[deterministic-print]",
    ),
    Mutant(
        "any number of numbers", "models/opaque.py", "if self._numbers > MOST_NUMBERS else None", "if False else None",
        "functions hold settings, not data", "test_opaque.py::test_what_a_density_holds_is_refused[list]",
    ),
    Mutant(
        'globals are not looked at', 'models/opaque.py', 'instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")',
        'instruction.opname == "LOAD_NAME"', 'functions hold settings, not data',
        'test_opaque.py::test_what_a_density_holds_is_refused[global]',
    ),
    Mutant(
        'any object may be held', 'models/opaque.py',
        '        return f"an object of type {type(thing).__name__}" if rule is None else rule(thing)',
        '        return None if rule is None or isinstance(thing, memoryview) else rule(thing)', 'functions hold settings, not data',
        'test_opaque.py::test_what_a_density_holds_is_refused[memoryview]',
    ),
    Mutant(
        "random variables without a name", "models/problems.py", "    if name := loose_random_variable(named):", "    if name := None:",
        "every array above a parameter is seen", "test_opaque.py::test_random_variables_without_a_name_are_refused[plain-parameter]",
    ),
    Mutant(
        "no look at the pickle", "models/reader.py", "if not problems and (reason := unlisted_in(arrays, spec)):",
        "if not problems and (reason := None):", "all that a pickle would hold is told",
        "test_opaque.py::test_notes_on_a_graph_are_looked_at[note-secret0]",
    ),
    Mutant(
        "a loop over records", "models/problems.py", "and numbers_written(variable) > MOST_WRITTEN:", "and False:",
        "single numbers are few", "test_opaque.py::test_a_loop_over_records_is_refused_and_fewer_numbers_are_told",
    ),
    Mutant(
        "initial values of any kind", "models/problems.py", "(not plain and hidden_in(value, lambda thing: False))", "False",
        "no initial value holds records", "test_opaque.py::test_initial_values_of_records_are_refused[value0]",
    ),
    Mutant(
        "derivatives by records", "posterior/markov.py", "pullback=pullback, connection_pattern=connected)", "pullback=pullback)",
        "nothing fails after it is paid for", "test_draws.py::test_chains_of_a_hierarchy_over_a_public_index",
    ),
    Mutant(
        "checked after it is paid for", "sampling.py", "    _check_sampler(draws, sampler)\n", "",
        "everything is refused before it is paid for", "test_refusals.py::test_everything_is_refused_before_sampling_is_paid_for",
    ),
    # ---------- the likelihood
    Mutant(
        "the scale of the noise in the likelihood", "privacy/noise_law.py", "        return -1.0 / self.scale", "        return -0.5 / self.scale",
        "the posterior knows the noise", "test_law.py::test_count_in_every_form_is_the_brute_force_sum[60-1.0]",
    ),
    Mutant(
        "the law of the noise in a model", "privacy/mechanisms.py", "return Noise(scale, step)", "return Noise(scale / 2, step)",
        "the posterior knows the noise", "test_noise.py::test_what_a_model_is_told_of_the_noise_is_what_is_drawn",
    ),
    Mutant(
        "half the scale of Gaussian noise in a model", "privacy/mechanisms.py", "return Noise(scale, step, gaussian=True)",
        "return Noise(scale / 2, step, gaussian=True)", "the posterior knows the noise",
        "test_noise.py::test_what_a_model_is_told_of_the_noise_is_what_is_drawn",
    ),
    Mutant(
        "the variance of continuous noise", "privacy/noise_law.py", "exp(self.log_ratio / 2) / -expm1(self.log_ratio)", "self.scale",
        "the variance of the noise is that of discrete noise", "test_noise.py::test_what_a_model_is_told_of_the_noise_is_what_is_drawn",
    ),
    Mutant(
        "the closed form of counts under little noise", "laws/law.py", " & (noise.scale >= 1)\n", "\n",
        "tails that underflow are not taken for nothing",
        "test_law.py::test_every_count_has_the_density_of_the_brute_force_sum_by_its_own_plan[0.1]",
    ),
    Mutant(
        "an integral that does not follow its top", "laws/sums.py", "top, high = (t, high) if slope > 0 else (top, t)", "high = t",
        "chains that start far out come back", "test_kernels.py::test_two_sums_have_the_same_density_whichever_is_integrated_first",
    ),
    Mutant(
        "arrays as they lie", "laws/compiled.py", "{x} = np.ascontiguousarray({x})", "{x} = {x}",
        "a loop that is called by address reads its arrays' entries", "test_kernels.py::test_arrays_of_any_layout_go_by_pointer[True]",
    ),
    Mutant(
        "what a loop gives goes wherever it goes", "laws/compiled.py", "if source.size == target.size:", "if source.size > 0:",
        "a loop writes nothing beyond its results", "test_kernels.py::test_a_loop_that_fails_leaves_no_numbers[3-found1]",
    ),
    Mutant(
        "scores without noise", "releases/rounds.py",
        "statistic = cells.noisy_statistic(noise.draw(read(cells), draw.scale, receipt), noise, draw, cost)\n        if not",
        "statistic = cells.noisy_statistic(read(cells), noise, draw, cost)\n        if not", "everything that leaves has noise",
        "test_privacy_routes.py::test_neighbours_look_the_same_and_cost_what_was_paid[logistic-laplace-replace]",
    ),
    Mutant(
        "an anchor of exact scores", "releases/rounds.py", "len(regression.names), regression.matrix(statistic.values,",
        "len(regression.names), regression.matrix(read(cells) * statistic.lattice,", "rounds see what was released, and nothing else",
        "test_scores.py::test_the_next_anchor_rests_on_what_was_released_alone[there]",
    ),
    Mutant(
        "information that may be nothing", "families/anchors.py", "(vectors * np.maximum(values, LEAST_VARIANCE)[:, None])",
        "(vectors * values[:, None])", "nothing fails once it is paid for",
        "test_scores.py::test_whatever_is_released_gives_a_way_to_go_on",
    ),
    Mutant(
        "rights that were exchanged are kept", "privacy/receipts.py", "self._left = self._left - wanted", "self._left = self._left + Counter()",
        "draws are exchanged, not added", "test_scores.py::test_draws_are_exchanged_for_others_that_cost_no_more",
    ),
    Mutant(
        "a draw that was made is exchanged for another's right", "privacy/receipts.py", "wanted - self._left or alike:", "wanted - self._left:",
        "no path costs more than was charged", "test_scores.py::test_a_draw_that_was_made_is_not_exchanged_in_the_name_of_a_dearer_one",
    ),
    Mutant(
        "exchanged for a dearer draw", "privacy/receipts.py", "_check([*kept, *instead], self._cost)", "_check(kept, self._cost)",
        "no path costs more than was charged", "test_scores.py::test_draws_are_exchanged_for_others_that_cost_no_more",
    ),
    Mutant(
        "exchanged for two draws at the price of one", "privacy/receipts.py", "_check([*kept, *instead], self._cost)",
        "_check([*kept, *instead[:1]], self._cost)", "no path costs more than was charged",
        "test_scores.py::test_draws_are_exchanged_for_others_that_cost_no_more",
    ),
    Mutant(
        "two rounds at the price of three", "releases/cells.py", "for each in (part, 1 - part)]", "for each in (part, 1)]",
        "rounds cost together what is paid", "test_scores.py::test_no_round_is_drawn_that_was_not_paid_for[laplace-twice, 1/10]",
    ),
    Mutant(
        "a way to go on that is refused when it is paid for", "releases/cells.py", "            except Refusal:\n                break",
        "            except KeyError:\n                break", "nothing is refused once it is paid for",
        "test_scores.py::test_nothing_is_refused_once_it_is_paid_for[laplace]",
    ),
    Mutant(
        "a second round of three that knows its anchor for less", "releases/cells.py", "[self.instead(noise, left[0], left, each)",
        "[self.instead(noise, first, left, each)", "a round costs what a record can move in it",
        "test_scores.py::test_no_round_is_drawn_that_was_not_paid_for[laplace-twice, 1/10]",
    ),
    Mutant(
        "the second of three rounds has the least there is", "families/anchors.py", "if error <= CLOSE * min(twice.values())]", "]",
        "noise of the second round does not hide its anchor",
        "test_scores.py::test_one_more_round_is_taken_where_two_would_be_hidden_by_noise[20000-1.0-3.0-twice, 3/20]",
    ),
    Mutant(
        "one round more that knows the anchor of the next", "releases/cells.py", '"there": [self.instead(noise, left[0], left)]',
        '"there": [self.instead(noise, first, left)]', "a round costs what a record can move in it",
        "test_scores.py::test_no_round_is_drawn_that_was_not_paid_for[laplace-there]",
    ),
    Mutant(
        "three rounds at the price of one", "releases/cells.py", "noise.share(cost, share) if several else cost", "cost", "rounds cost together what is paid",
        "test_scores.py::test_no_round_is_drawn_that_was_not_paid_for[laplace-twice]",
    ),
    Mutant(
        "densities that are finite everywhere", "models/binned.py", "infinite = integrand.infinite if integrand is not None else ()",
        "infinite = ()", "bins have the probabilities of the user's density",
        "test_infinite_densities.py::test_counts_in_bins_have_the_probabilities_of_the_density[CustomDist-by hand-array([0. , 0.9, 1. ])]",
    ),
    Mutant(
        "a density that is tried where it is infinite", "models/interval_nodes.py",
        "np.clip(nodes, *sorted((np.nextafter(start, end), np.nextafter(end, start))))", "nodes",
        "an integral of a density that is infinite at an end is a number",
        "test_infinite_densities.py::test_nodes_beside_an_infinite_density_are_at_none_of_the_points[-0.5]",
    ),
    Mutant(
        "a parameter in the shape of the value taken for one", "models/single_points.py", "one.owner.inputs[1:] if shape_first", "parents(one) if shape_first",
        "a density that says the same of all values is read",
        "test_infinite_densities.py::test_counts_in_bins_have_the_probabilities_of_the_density[CustomDist-pm.logp-array([0. , 0.9, 1. ])]",
    ),
    Mutant(
        "a record alone, added up in another order", "releases/statistics.py", "if records == 1:", "if records == -1:",
        "no record moves another's rounding", "test_leaks.py::test_a_record_that_goes_moves_no_other_s_sum_of_items[a score]",
    ),
    Mutant(
        "values along one dim as those of different people", "models/record_axes.py",
        "known = [observed.dims, *(arrays.dims_of(array) for array in values)]", "known = [observed.dims]",
        "one record is not charged as if it were in one variable only",
        "test_disjoint.py::test_variables_with_records_in_common_are_not_disjoint[values_of_one_dim]",
    ),
    Mutant(
        "every round without slopes", "families/scores.py", "*[self] * (len(ROUNDS) - 1)", "*[replace(self, without_slopes=True)] * (len(ROUNDS) - 1)",
        "noise covers what one record moves", "test_scores.py::test_no_round_is_drawn_that_was_not_paid_for[laplace-twice]",
    ),
    Mutant(
        "information multiplied for nothing", "families/scores.py", "best = max(best, int((scores + times * (squares + others)).max()))",
        "best = max(best, int((scores + squares + others).max()))", "noise covers what one record moves", "test_proofs.py::test_scores",
    ),
    Mutant(
        "a norm of information that is not multiplied", "families/scores.py", "norm = int((F * q + t * pairs * w).max())",
        "norm = int((F * q + pairs * w).max())", "noise covers what one record moves", "test_proofs.py::test_scores",
    ),
    Mutant(
        "multiplied information rounded as if it were not", "families/scores.py", "L1 = difference + 2 * (F + t * pairs)",
        "L1 = difference", "noise covers what one record moves", "test_proofs.py::test_scores",
    ),
    Mutant(
        "information that is not divided again", "families/second_moments.py", "tuple(response if i < len(self.names) <= j else every for",
        "tuple(1 if self.link or i < len(self.names) <= j < 0 else response if i < len(self.names) <= j else every for",
        "what is multiplied before the noise is divided after it", "test_multipliers.py::test_the_information_of_a_logit_link_is_multiplied[1-3]",
    ),
    Mutant(
        "binary features taken for normal ones", "families/expected_scores.py", "two = (variance > TWO_VALUED * whole)",
        "two = (variance > 9 * whole)", "the first step is right for features with two values",
        "test_expected_scores.py::test_scores_of_binary_features_are_what_those_of_records_are[4]",
    ),
    Mutant(
        "information without a price", "families/scores.py", "pairs = F * (F + 1) // 2", "pairs = 0",
        "noise covers what one record moves", "test_proofs.py::test_scores",
    ),
    Mutant(
        "scores that never change their sign", "families/scores.py", "scores = k * (q + r) ** power", "scores = k * np.abs(q - r) ** power",
        "noise covers what one record moves", "test_proofs.py::test_scores",
    ),
    Mutant(
        "a record has one feature", "releases/projection.py", "int(of_columns.sum(axis=1).max())", "int(of_columns.max())",
        "noise covers what one record moves",
        "test_projection.py::test_no_record_moves_the_sums_further_than_is_paid_for_and_one_does[logistic]",
    ),
    Mutant(
        "a record has one feature, squared", "releases/projection.py", "int((of_columns**2).sum(axis=1).max())", "int((of_columns**2).max())",
        "noise covers what one record moves",
        "test_projection.py::test_no_record_moves_the_sums_further_than_is_paid_for_and_one_does[groups]",
    ),
    Mutant(
        "sums by cell cost nothing", "releases/pooling.py", "public_norm=1 + ratio", "public_norm=1.0", "noise covers what one record moves",
        "test_pooling.py::test_no_record_moves_the_numbers_further_than_is_paid_for_and_one_does[intercepts-1:1]",
    ),
    Mutant(
        "sums by cell cost nothing, squared", "releases/pooling.py", "public_square=1 + ratio**2", "public_square=1.0",
        "noise covers what one record moves",
        "test_pooling.py::test_no_record_moves_the_numbers_further_than_is_paid_for_and_one_does[intercepts-1:1]",
    ),
    Mutant(
        "multiplied after it was priced", "releases/pooling.py", "in_one_cell.difference * self.whole,", "in_one_cell.difference,",
        "noise covers what one record moves",
        "test_pooling.py::test_no_record_moves_the_numbers_further_than_is_paid_for_and_one_does[intercepts-2:1]",
    ),
    Mutant(
        "multiplied after it was priced, squared", "releases/pooling.py", "in_one_cell.square * self.whole**2,", "in_one_cell.square * self.whole,",
        "noise covers what one record moves",
        "test_pooling.py::test_no_record_moves_the_numbers_further_than_is_paid_for_and_one_does[intercepts-2:1]",
    ),
    Mutant(
        "pooled where slopes differ", "plans/pooled.py", "or any(likelihood.linear.by_cell[1:])", "or False",
        "only what all cells have in common is summed over them", "test_pooling.py::test_all_else_is_released_by_cell[slopes_by_cell-plain]",
    ),
    Mutant(
        "pooled where sigma differs", "plans/pooled.py", "above(list(likelihood.parameters[1:]))", "above(list(likelihood.parameters[2:]))",
        "only what all cells have in common is summed over them", "test_pooling.py::test_all_else_is_released_by_cell[sigma_by_cell-plain]",
    ),
    Mutant(
        "cells take no degrees of freedom", "private_models/pooled_law.py", "freedom = max(float(n.sum()) - G, 1.0)",
        "freedom = max(float(n.sum()), 1.0)", "the law of pooled sums is that of the records",
        "test_pooling.py::test_the_law_is_that_of_normal_records",
    ),
    Mutant(
        "a total that is another number", "private_models/pooled_law.py", "by_cell.sum(axis=0), pt.stack",
        "(by_cell + pm.Normal.dist(shape=(G, 1))).sum(axis=0), pt.stack", "totals are those of the sums by cell",
        "test_pooling.py::test_the_law_is_that_of_normal_records",
    ),
    Mutant(
        "groups that noise hides in a funnel", "private_models/standardised.py", ">= (KNOWN * SPREAD) ** 2", ">= 1000",
        "chains agree where little is known", "test_standardised.py::test_groups_that_noise_hides_have_standard_coordinates[normal]",
    ),
    Mutant(
        "coordinates that released values choose", "private_models/standardised.py", "    noise = _noise_on_sums(noisy)\n",
        "    noise = _noise_on_sums(noisy) if noisy.values.sum() > 0 else None\n",
        "a graph holds nothing of one release", "test_standardised.py::test_neither_records_nor_what_was_released_of_them_decides",
    ),
    Mutant(
        "other coordinates, the same volume", "private_models/standardised.py", "return pt.log(inputs[-1]) + pt.zeros_like(value)",
        "return pt.zeros_like(value)", "coordinates change no posterior",
        "test_pooling.py::test_intercepts_of_which_little_is_told_get_standard_coordinates",
    ),
    Mutant(
        "features of private covariates as weights", "models/predictor.py", " or any(placeholder.private for placeholder in inputs)", "",
        "weights of what is released are public", "test_projection.py::test_private_inputs_have_no_projection",
    ),
    Mutant(
        "weighted counts vary like Poisson counts", "laws/projected.py", "[[law.n * law.p * (1 - law.p)]]", "[[law.n * law.p]]",
        "the law of weighted sums is that of the records", "test_projection.py::test_the_law_is_that_of_a_weighted_sum[count]",
    ),
    Mutant(
        "sums of another model's features", "private_models/matching.py", "    if not told.size:\n", "    if True:\n",
        "a release is of one model's statistics", "test_matching.py::test_sums_of_other_functions_of_a_covariate_are_refused[a line]",
    ),
    Mutant(
        "features compared at a few points", "plans/covariate_features.py", "PROBES, COMPARED = 20, 2**14", "PROBES, COMPARED = 20, 2**2",
        "a release is of one model's statistics", "test_matching.py::test_sums_of_other_functions_of_a_covariate_are_refused[a step]",
    ),
    Mutant(
        "features compared in units of the largest", "private_models/matching.py", "ROUNDING * own[1])", "ROUNDING * own[1].max())",
        "a release is of one model's statistics", "test_matching.py::test_features_are_compared_each_in_its_own_units",
    ),
    Mutant(
        "other functions of a public array", "models/public_inputs.py", "<= ROUNDING * second[1] for", "< np.inf for",
        "a release is of one model's statistics", "test_matching.py::test_other_functions_of_a_public_array_are_refused[years-counts]",
    ),
    Mutant(
        "constants taken for rows", "models/public_inputs.py", "if not isinstance(array, Constant)]", "]",
        "a release is of one model's statistics", "test_matching.py::test_knots_are_part_of_the_model[levels]",
    ),
    Mutant(
        "statistics about another number", "private_models/matching.py", "family.KNOWN + family.FIXED:", "():",
        "a release is of one model's statistics", "test_matching.py::test_a_number_that_statistics_rest_on_is_the_release_s[mu]",
    ),
    Mutant(
        "a number of records as a fixed length", "models/reduction.py", "return self._sized or all(set(array.type.shape) <= {None} for array in private)", "return True",
        "a private number of records is in no length of what is published", "test_axes.py::test_a_private_number_of_records_is_in_no_length[reshape]",
    ),
    Mutant(
        "columns of a record alone in another order", "releases/statistics.py", "else _twice(array, axis) for", "else np.repeat(array, 2, axis) for",
        "no record moves another's rounding", "test_leaks.py::test_a_record_that_goes_moves_no_other_s_sum_of_columns[a sum]",
    ),
    Mutant(
        "columns of a log-likelihood as the user's lie", "posterior/records.py", "np.ascontiguousarray(of_type(whole, value))", "of_type(whole, value)",
        "no record moves another's rounding", "test_leaks.py::test_a_record_that_goes_moves_no_other_s_log_likelihood",
    ),
    Mutant(
        "an axis of records by its length", "models/structure.py", "if not sized and node.outputs[0]", "if False and node.outputs[0]",
        "of one record nothing is refused that is accepted of two", "test_axes.py::test_one_record_looks_like_two[tiled]",
    ),
    Mutant(
        "reshaping that mixes records is read", "models/structure.py", "_around(old, k) == around and not one_by_structure", "True and not one_by_structure",
        "an axis of records is followed through reshaping only where entry by entry it is the same",
        "test_axes.py::test_an_axis_that_is_kept_by_reshaping_holds_the_same_entries[0-False-3]",
    ),
    Mutant(
        "a straight line at every slope", "private_models/score_loops.py", "    if link == LOGIT:\n        _by_logit(off", "    if link == 9:\n        _by_logit(off",
        "steep slopes under strong noise are not taken for what a straight line makes of them",
        "test_score_loops.py::test_scores_are_what_those_of_records_are_on_average[logit-1]",
    ),
    Mutant(
        "correlated features taken for one", "private_models/score_loops.py", "(c[k] - onto * a[k] / s) / r * second\n        for b", "0 * second\n        for b",
        "steep slopes under strong noise are not taken for what a straight line makes of them",
        "test_score_loops.py::test_scores_are_what_those_of_records_are_on_average[logit-3]",
    ),
    Mutant(
        "a feature with two values taken for a normal one in the loops", "private_models/score_loops.py", "            q[b] += points[p, b] * level", "            q[b] += 0 * level",
        "a binary covariate's scores follow its two values", "test_score_loops.py::test_with_a_logit_link_features_with_two_values_are_exact[1-0.02]",
    ),
    Mutant(
        "what points leave of features is dropped", "families/expected_scores.py", 'np.einsum("bij,bj->bi", rest, by_rest)', "0 * by_rest",
        "a binary covariate's scores follow its two values",
        "test_expected_scores.py::test_from_an_anchor_with_slopes_they_are_those_of_binary_features_beside_a_normal_one[3]",
    ),
    Mutant(
        "a straight line taken for the link", "families/anchors.py", "return np.sqrt(1 + size * scores.unit", "return np.sqrt(1 + 0 * size * scores.unit",
        "intervals know what the last anchor is off by", "test_scores.py::test_anchors_go_to_the_coefficients_of_the_records[logit]",
    ),
    Mutant(
        "a straight line from an anchor that is off", "families/anchors.py", "return anchor + step - np.linalg.solve(",
        "return anchor + 0 * np.linalg.solve(", "slopes that are steep are not taken for less steep",
        "test_scores.py::test_a_line_from_an_anchor_that_is_off_is_bent_to_the_curve[[0.1, 0.5, -0.3]-logit]",
    ),
    Mutant(
        "a step of any length for a share", "private_models/sizes.py", "unit = np.minimum(noise / (share * (1 - share)), WIDEST_STEP)",
        "unit = WIDEST_STEP + 0 * share", "sizes that are known well are sampled in small steps",
        "test_rewrite.py::test_a_sampler_s_steps_of_a_size_are_as_long_as_what_is_told_of_it[weights-1000000.0]",
    ),
    Mutant(
        "a step of any length for a size", "private_models/sizes.py", "unit = np.minimum(_noise_of_sizes(noisy) / start, WIDEST_STEP)",
        "unit = WIDEST_STEP + 0 * start", "sizes that are known well are sampled in small steps",
        "test_rewrite.py::test_a_sampler_s_steps_of_a_size_are_as_long_as_what_is_told_of_it[coming and going-1000000.0]",
    ),
    Mutant(
        "bounds of a column that nobody looks at", "plans/bounds.py", "            check_bounds(family, name, pair)\n", "",
        "counts are clamped at whole numbers",
        "test_scores.py::test_bounds_of_counts_are_whole_numbers_however_they_are_spelled[[(0, 0.5)]]",
    ),
    Mutant(
        "what is no number as an integer", "families/scores.py", "score = np.clip(np.nan_to_num(residual / scores.unit), -1.0, 1.0)",
        "score = np.clip(residual / scores.unit, -1.0, 1.0)", "no record is more than it may be",
        "test_scores.py::test_what_is_no_number_counts_as_nothing",
    ),
    Mutant(
        "SciPy's settings are a user's", "privacy/guard.py", ", scipy.special.errstate(all=\"ignore\")", "",
        "whether a release succeeds does not rest on records", "test_scores.py::test_no_setting_of_scipy_makes_a_release_fail[1000.0]",
    ),
    Mutant(
        "every release at the first one's anchor", "private_models/moment_law.py", "self.anchor[:, list(self.order)]", "0 * self.anchor[:, list(self.order)]",
        "coefficients are about the anchor of their release", "test_scores.py::test_a_release_keeps_its_anchor",
    ),
    Mutant(
        "records beyond the bound count whole", "families/scores.py", "residual, weight = count * residual, count * weight",
        "residual, weight = residual, count * weight", "a score is spread as its information says",
        "test_scores.py::test_with_a_log_link_scores_are_0_on_average_and_spread_no_more_than_their_information[30.0]",
    ),
    Mutant(
        "an integral across its second kink", "laws/sums.py", "if left_over < (SHARP * slope * (high - low)) ** 2 else high",
        "if False else high", "sums that say nearly the same have their law",
        "test_kernels.py::test_two_sums_that_say_the_same_but_for_a_billionth",
    ),
    Mutant(
        "one sum's derivatives for another's", "laws/sums.py", "return value, by_high, sign * by_low, x_high, sign * x_low",
        "return value, by_low, sign * by_high, x_low, sign * x_high", "derivatives are those of the value",
        "test_kernels.py::test_derivatives_of_two_sums_that_say_the_same",
    ),
    Mutant(
        "sizes as if nothing told them", "private_models/sizes.py", "return shares, np.stack([logits_of(shares), np.sqrt(logit_variance)], axis=-1)",
        "return shares, np.stack([logits_of(shares), 1 + 0 * logit_variance], axis=-1)", "sizes that are known well are sampled in small steps",
        "test_rewrite.py::test_sizes_start_where_released_values_put_them",
    ),
    Mutant(
        "flat shares in many small public cells", "private_models/sizes.py", "    if _is_drowned(noisy):", "    if False:",
        "many priors together say little", "test_means_of_shares.py::test_shares_vary_about_means_as_a_dirichlet_law_says[2]",
    ),
    Mutant(
        "concentrations that add up to 1", "private_models/sizes.py", "alpha, density = V * _means_of_shares(private, noisy), shares_about", "alpha, density = _means_of_shares(private, noisy), shares_about",
        "shares are as far apart as flat ones are", "test_means_of_shares.py::test_shares_vary_about_means_as_a_dirichlet_law_says[3]",
    ),
    Mutant(
        "means of shares where noise is small", "private_models/sizes.py", "bool(noise > SMALL * typical)", "bool(noise > 0)",
        "a model has no unknown that it does not need", "test_means_of_shares.py::test_elsewhere_there_is_none[little noise]",
    ),
    Mutant(
        "means of shares of few cells", "private_models/sizes.py", "return len(noisy.n) >= MANY_CELLS and ", "return ",
        "a model has no unknown that it does not need", "test_means_of_shares.py::test_elsewhere_there_is_none[few public cells]",
    ),
    Mutant(
        "where means of shares start as a constant", "private_models/fingerprint.py", 'f"{MEAN}_given", ', "",
        "another release needs nothing compiled again", "test_means_of_shares.py::test_another_release_needs_nothing_compiled_again",
    ),
    Mutant(
        "flat shares of bins", "private_models/bin_shares.py", 'return bool(noisy.within) and noisy.sizes in ("simplex", "free")', "return False",
        "shares of bins are near those of normal covariates", "test_bin_shares.py::test_shares_follow_a_dirichlet_law_about_normal_covariates[x]",
    ),
    Mutant(
        "bins in the order of the rows of another axis", "private_models/bin_shares.py",
        "apart.transpose([0, *(1 + order.index(axis) for axis in range(len(order)))])", "apart",
        "shares of bins are near those of normal covariates", "test_bin_shares.py::test_shares_follow_a_dirichlet_law_about_normal_covariates[h w k]",
    ),
    Mutant(
        "covariates in bins that know nothing of each other", "private_models/bin_shares.py", "r = pt.shape_padright(pt.tanh(", "r = 0 * pt.shape_padright(pt.tanh(",
        "covariates may be correlated", "test_bin_shares.py::test_shares_follow_a_dirichlet_law_about_normal_covariates[z x]",
    ),
    Mutant(
        "sums of numbers of records that grow with their bins", "private_models/sizes.py", " - (noisy.private_cells - 1) * pt.log(total[:, 0])", "",
        "the number of records is flat", "test_bin_shares.py::test_numbers_of_records_that_nobody_knows_have_these_shares_and_any_sum[x]",
    ),
    Mutant(
        "shares of unknown numbers that are flat", "private_models/sizes.py", "    if knows_bins(noisy):\n        pm.Potential(", "    if False:\n        pm.Potential(",
        "shares of bins are near those of normal covariates", "test_bin_shares.py::test_numbers_of_records_that_nobody_knows_have_these_shares_and_any_sum[x]",
    ),
    Mutant(
        "the units of logits", "laws/shares.py", "+= np.log(near[g, k, 1]) - np.logaddexp", "-= np.logaddexp",
        "shares are flat on the simplex", "test_rewrite.py::test_shares_and_their_logits_are_one_to_one",
    ),
    Mutant(
        "counts beyond their bound", "families/scores.py", "return rate * below + most * pdtrc(most - 1, rate),", "return rate + 0 * below,",
        "the likelihood is that of clamped values",
        "test_scores.py::test_with_a_log_link_scores_are_0_on_average_and_spread_no_more_than_their_information[4.0]",
    ),
    Mutant(
        "one more value there than records", "private_models/likelihood.py", "most = pt.constant(noisy.n.astype(float)",
        "most = pt.constant((noisy.n + 1.0)", "no more values are there than records",
        "test_at_most.py::test_the_posterior_of_a_proportion_is_that_of_every_number_that_may_be_there[20-0]",
    ),
    Mutant(
        "rates that must be possible, too", "private_models/size_priors.py", "        return pt.switch(pt.lt(value, 0), -np.inf, pt.zeros_like(value))\n\n\nclass KeptRV",
        "        return pt.switch(pt.lt(value, 0) | pt.gt(value, most), -np.inf, pt.zeros_like(value))\n\n\nclass KeptRV",
        "all numbers of values that can be there are as likely",
        "test_at_most.py::test_the_posterior_of_a_proportion_is_that_of_every_number_that_may_be_there[20-0]",
    ),
    Mutant(
        "rates drawn as if one value less were there", "private_models/size_priors.py", ".reshape(shape) + 1.0)", ".reshape(shape) + 1e-9)",
        "all numbers of values that can be there are as likely",
        "test_at_most.py::test_beforehand_all_numbers_that_can_be_there_are_as_likely[1]",
    ),
    Mutant(
        "sums up to a count that are not tilted", "laws/limited.py", "share = share * tilt + weights[j]", "share = share + weights[j]",
        "counts are summed over all that are possible", "test_at_most.py::test_counts_are_summed_over_all_that_are_possible[narrow-2]",
    ),
    Mutant(
        "means of counts without where windows start", "laws/limited.py", "weights[k, j] * (start[k] + j), j - low[k]",
        "weights[k, j] * j, j - low[k]", "slopes are those of the density",
        "test_at_most.py::test_counts_are_summed_over_all_that_are_possible[narrow-3]",
    ),
    Mutant(
        "a total that released counts say nothing of", "laws/at_most.py", "(law.rate + taken * (noisy - law.rate))", "law.rate",
        "under wide noise totals above the records are improbable",
        "test_at_most.py::test_under_wide_noise_the_chance_of_a_possible_total_is_that_of_a_normal_number",
    ),
    Mutant(
        "totals drawn beyond the records, and cut", "laws/at_most.py", "rng.uniform(size=batch) * chance", "rng.uniform(size=batch)",
        "predictions are counts that are possible", "test_at_most.py::test_predicted_counts_have_the_law_of_possible_ones",
    ),
    Mutant(
        "Gibbs steps with more values than records", "gibbs/latents.py", "            if not beyond.any():", "            if True:",
        "no more values are there than records",
        "test_conjugate.py::test_counts_that_add_up_to_no_more_than_the_records_are_drawn_from_their_joint_law",
    ),
    Mutant(
        "a window too short", "laws/law.py", "\nREACH = 28\n", "\nREACH = 3\n", "a window holds all of the noise that matters",
        "test_law.py::test_independent_counts_are_the_brute_force_sum[30.0-gaussian]",
    ),
    Mutant(
        "n degrees of freedom, not n - F", "private_models/moment_loops.py", "freedom = n[i] - F if free", "freedom = n[i] if free",
        "sigma of few records", "test_scatter.py::test_few_records_leave_as_many_degrees_of_freedom_as_they_have_beyond_their_features",
    ),
    Mutant(
        "entries of vectors correlated as if nothing were clamped", "private_models/vectors.py", "return sd * inside, sd", "return sd, sd",
        "correlations of clamped vectors are those of what was released",
        "test_vectors.py::test_the_moments_of_one_record_by_simulation[a half at bounds-False]",
    ),
    Mutant(
        "half of Isserlis's theorem", "private_models/vectors.py", "deviations = ii * jj + ij * ji", "deviations = ii * jj",
        "products of entries vary as they do", "test_vectors.py::test_with_gaussian_noise_the_density_is_the_normal_one",
    ),
    Mutant(
        "the count of vectors not among their sums", "laws/law.py", "return np.eye(R + 1)[0 if self.counted else 1 :]",
        "return np.eye(R + 1)[-1 if self.counted else 1 :]", "where the count is released it is part of the law",
        "test_vectors.py::test_the_count_stands_before_the_sums_where_it_is_released",
    ),
    Mutant(
        "vectors about covariates taken for plain ones", "families/second_moments.py", "and len(self.names) == 1", "and len(self.names) >= 1",
        "a law is used where it holds", "test_vectors.py::test_of_whom_clamping_is_part_of_the_law",
    ),
    Mutant(
        "a second response with the degrees of freedom of the first", "private_models/vector_loops.py", "max(n - F - r * among, 0.5)",
        "max(n - F, 0.5)", "what is left of a response is one degree of freedom less for each before it",
        "test_vector_law.py::test_at_exact_statistics_the_density_is_the_user_s_own[three]",
    ),
    Mutant(
        "a second response that knows nothing of the first", "private_models/vector_loops.py",
        "c[r, F + j] = -root[r, r] * inverse[r, j]", "c[r, F + j] = 0.0", "errors of responses go together",
        "test_vector_law.py::test_at_exact_statistics_the_density_is_the_user_s_own[three]",
    ),
    Mutant(
        "part of the derivative by a covariance", "private_models/vector_loops.py", "by_root[j, j] -= by * root[r, j]", "pass",
        "derivatives are those of the density",
        "test_vector_law.py::test_derivatives_are_those_of_the_density[three-0.5-laplace-replace]",
    ),
    Mutant(
        "a Poisson sum that weighs records by their exposure", "models/predictor.py",
        "parameter = _without_exposure(parameter) if SCALES.get(family.DISTRIBUTION) == k else parameter", "pass",
        "the sum of counts is what the likelihood needs", "test_projection.py::test_features_of_the_linear_predictor[exposed_at_a_rate-]",
    ),
    Mutant(
        "a matrix taken for an array", "models/observed.py", "type(data_of(root)) in PLAIN", "isinstance(data_of(root), np.ndarray)",
        "records are taken along the first axis", "test_missing.py::test_an_array_of_a_class_of_its_own_is_refused_whatever_is_missing[matrix]",
    ),
    Mutant(
        "shares as if nothing were clamped", "families/dirichlet.py",
        "left = pt.sqrt(pt.maximum(variance, NOTHING) / (pt.tri_gamma(a) - shared))",
        "left = pt.ones_like(a)", "logarithms of clamped shares vary together as far as they vary",
        "test_families.py::test_law_of_the_sum_by_simulation[Dirichlet-0]",
    ),
    Mutant(
        "a root of no variance", "families/dirichlet.py", "pt.maximum(variance, NOTHING)", "variance",
        "gradients are finite where all shares lie beyond a bound",
        "test_families.py::test_shares_that_all_lie_beyond_a_bound_have_finite_gradients",
    ),
    Mutant(
        "names that can be read once, read twice", "plans/protection.py",
        "public = list(public) if isinstance(public, Iterator) else public", "pass", "privatize leaves out what it was told to",
        "test_missing.py::test_what_can_be_read_once_is_kept",
    ),
    Mutant(
        "steps of the usual size where rates are near 0", "private_models/default_steps.py", 'adaptation if any(several) else {"target_accept": 0.95}',
        "adaptation", "rare events are drawn without divergences",
        "test_sampling.py::test_nutpie_adapts_to_correlations_where_a_cell_has_several_numbers",
    ),
    Mutant(
        "a mask taken off where PyMC put none", "models/observed.py", "tuple(parameters) if whole else ", "",
        "whether a value is missing does not decide whether a model is refused",
        "test_missing.py::test_the_graph_is_the_same_whatever_is_missing[zero-inflated by truth value]",
    ),
    Mutant(
        "what PyMC makes of missing values, declared public", "models/declared.py", "return {operation.name for operation in stay} - imputed_names(observed)",
        "return {operation.name for operation in stay}", "whether a value is missing shows in no refusal",
        "test_missing.py::test_public_does_not_find_what_pymc_makes_of_missing_values",
    ),
    Mutant(
        "what PyMC makes of missing values, among the names", "models/problems.py", "{*model.named_vars, *model.coords} - arrays.imputed)",
        "{*model.named_vars, *model.coords})", "whether a value is missing shows in no refusal",
        "test_missing.py::test_names_that_pymc_makes_are_not_compared_with_those_of_a_release",
    ),
    Mutant(
        "a noise by another's name", "privacy/mechanisms.py", "if MECHANISMS.get(mechanism.name) is not type(mechanism) or ",
        "if ", "a release remembers the noise that was drawn",
        "test_noise.py::test_a_noise_that_a_release_would_not_remember_is_refused_before_it_is_paid_for[another's name]",
    ),
    Mutant(
        "noise at the price of a choice", "privacy/mechanisms.py", " or mechanism.priced_as not in (Laplace.name, Gaussian.name):", ":",
        "no noise costs less than it gives away",
        "test_noise.py::test_a_noise_that_a_release_would_not_remember_is_refused_before_it_is_paid_for[another price]",
    ),
    Mutant(
        "a noise whose law rests on its parameters", "releases/cells.py", "            check_law(noise, scale, self.planned.lattice / self.points)\n",
        "            pass\n", "a release remembers the noise that was drawn",
        "test_noise.py::test_a_noise_that_a_release_would_not_remember_is_refused_before_it_is_paid_for[parameters]",
    ),
    Mutant(
        "coefficients with noise of another law", "releases/network_tables.py", "    check_law(noise, scale, 1.0)\n", "",
        "a release remembers the noise that was drawn", "test_noise.py::test_noise_on_coefficients_is_what_its_name_stands_for",
    ),
    Mutant(
        "a folder of one's own trusted as the library", "models/allow_list.py", '    if top == "pymc_dp" and not', '    if top == "pymc_dp!" and not',
        "functions hold no records", "test_opaque.py::test_a_module_in_a_folder_of_one_s_own_is_no_part_of_the_library",
    ),
    Mutant(
        "lengths told where records are private", "posterior/paid_gibbs/blocks.py", "sized=task.protection.sized, ", "",
        "add-remove hides the number of records",
        "test_paid_gibbs.py::test_lengths_do_not_show_where_the_number_of_records_is_private[gibbs]",
    ),
    Mutant(
        "names of what may be missing, read twice", "plans/protection.py", "missing = list(missing) if isinstance(missing, Iterator) else missing",
        "missing = missing", "a release says what was declared", "test_missing.py::test_what_can_be_read_once_is_kept",
    ),
    Mutant(
        "n degrees of freedom in predictive draws", "private_models/moment_law.py", "freedom = pt.maximum(n - len(self.order), 0.5)",
        "freedom = pt.maximum(n, 0.5)", "predictive draws follow the law",
        "test_scatter.py::test_a_predictive_draw_has_the_moments_of_simulated_records",
    ),
    Mutant(
        "one noise for all second moments", "private_models/moment_loops.py", "    noise = settings[0] / times\n    r =", "    noise = settings[0]\n    r =",
        "the model has the noise of every number", "test_scatter.py::test_every_released_number_is_told_with_its_own_noise[gaussian-by their own law]",
    ),
    Mutant(
        "one noise for a square that is a latent", "private_models/moment_loops.py", "        noise = settings[0] / times\n        square =",
        "        noise = settings[0]\n        square =", "the model has the noise of every number",
        "test_scatter.py::test_a_square_that_is_a_latent_is_released_with_its_own_noise",
    ),
    Mutant(
        "one noise for all predicted second moments", "private_models/moment_law.py", "self.noise.simulated(shape) / np.array(self.regression.weights)",
        "self.noise.simulated(shape)", "predictive draws have the noise of every number",
        "test_scatter.py::test_a_predictive_draw_has_the_moments_of_simulated_records",
    ),
    Mutant(
        "one noise for numbers of records", "private_models/sizes.py", "return sd / noisy.regression.weights[noisy.regression.entries.index((0, 0))]",
        "return sd", "a sampler steps as far as released sizes tell", "test_multipliers.py::test_numbers_of_records_have_the_noise_of_their_own_sum",
    ),
    Mutant(
        "one noise for variances without a model of it", "private_models/plug_in.py", "noisy.noise.spread / regression.multipliers[0])",
        "noisy.noise.spread)", "a projection is no wider than noise makes it",
        "test_multipliers.py::test_without_a_model_of_the_noise_the_least_variance_is_that_of_the_squares",
    ),
    Mutant(
        "the Jacobian of products", "private_models/moment_loops.py", "0.5 * x**2 - 0.5 * e[b] ** 2 - np.log(s / reach[b])",
        "0.5 * x**2 - 0.5 * e[b] ** 2", "where latents are centred changes no density",
        "test_scatter.py::test_where_latents_are_centred_changes_no_density[public-laplace]",
    ),
    Mutant(
        "the Jacobian of squares", "private_models/moment_loops.py", "- left / (2 * s**2) - np.log(s**2)", "- left / (2 * s**2)",
        "where latents are centred changes no density",
        "test_scatter.py::test_where_latents_are_centred_changes_no_density[public-laplace]",
    ),
    Mutant(
        "the latents' own density", "private_models/moment_loops.py", "density += 0.5 * latent[a] ** 2 - 0.5 * away", "density += -0.5 * away",
        "where latents are centred changes no density",
        "test_scatter.py::test_where_latents_are_centred_changes_no_density[private-gaussian]",
    ),
    Mutant(
        "the Jacobian of latent counts", "laws/central_limit.py", "0.5 * (np.log(n[i]) - missing**2 / total - np.log(total))",
        "0.5 * (np.log(n[i]) - missing**2 / total)", "latents change no density",
        "test_law.py::test_latent_counts_are_normal_ones_on_their_plane_once_the_latents_are_integrated_out",
    ),
    Mutant(
        "the Jacobian of latent sums", "laws/central_limit.py", " - 0.5 * e[r] ** 2 - np.log(posterior[r, r])", " - 0.5 * e[r] ** 2",
        "latents change no density", "test_law.py::test_latent_sums_are_the_law_of_the_released_ones_once_they_are_integrated_out",
    ),
    Mutant(
        "a sum that others tell moves freely", "laws/central_limit.py",
        "np.sqrt(matrix[r, r]) if matrix[r, r] > rounding else 0.0", "np.sqrt(max(matrix[r, r], 1e-30))",
        "derivatives that are rounding", "test_kernels.py::test_derivatives_of_latent_sums_of_which_others_tell_one",
    ),
    Mutant(
        "what a share takes of those after it", "laws/shares.py", "(change * (1 - taken) - after * taken)", "change * (1 - taken)",
        "derivatives are those of the value", "test_kernels.py::test_the_derivatives_of_shares",
    ),
    Mutant(
        "the volume of shares", "laws/shares.py", "- np.logaddexp(0.0, -x) - (last - k) * np.logaddexp(0.0, x)",
        "- np.logaddexp(0.0, -x) - np.logaddexp(0.0, x)",
        "shares are flat on the simplex", "test_rewrite.py::test_shares_and_their_logits_are_one_to_one",
    ),
    Mutant(
        "unclamped Poisson", "families/poisson.py", "return clamped_counts(domain, n, first, second, inside, above)",
        "return Moments(n, (mu,), ((mu,),))", "the likelihood is that of clamped values",
        "test_families.py::test_law_of_the_sum_by_simulation[Poisson-0]",
    ),
    Mutant(
        "unclamped Exponential", "families/exponential.py",
        "        mean, variance = clamped_exponential(_rate(width, scale, domain), domain.lower / width)\n"
        "        return (domain.lower + width * mean,), ((width * (width * variance),),)",
        "        return (scale,), ((scale**2,),)", "the likelihood is that of clamped values",
        "test_moments.py::test_moments_of_clamped_values[Exponential-4]",
    ),
    Mutant(
        "half of what is at a bound", "laws/sums.py", "lower**k * below + inside[k] + upper**k * above", "lower**k * below + inside[k]",
        "the likelihood is that of clamped values", "test_families.py::test_law_of_the_sum_by_simulation[Normal-0]",
    ),
    Mutant(
        "binomial trials counted once", "families/bernoulli.py", "return Count(n * trials, p, int(domain.upper),",
        "return Count(n, p, int(domain.upper),", "the law of a sum of binomial numbers",
        "test_families.py::test_law_of_the_sum_by_simulation[Binomial-1]",
    ),
    # ---------- Bayesian networks
    Mutant(
        "the sensitivity of records that come and go, where they are replaced", "plans/network.py",
        'return 2 * self.odd if neighbours == "replace" else len(self.coefficients)', "return len(self.coefficients)",
        "the sensitivity of Fourier coefficients is exact", "test_networks.py::test_the_sensitivity_is_that_of_all_pairs_of_records",
    ),
    Mutant(
        "no noise on the number of records where it is private", "releases/network_tables.py",
        'size = len(network.coefficients) - (neighbours == "replace")', "size = len(network.coefficients) - 1",
        "add-remove hides the number of records", "test_privacy_routes.py::test_neighbours_of_a_network_look_the_same[add_remove-5]",
    ),
    Mutant(
        "counted once in every family that holds it", "plans/network.py", "            counted |= set(self._patterns(node))\n", "",
        "the sensitivity of Fourier coefficients is exact", "test_networks.py::test_the_sensitivity_is_that_of_all_pairs_of_records",
    ),
    Mutant(
        "a posterior draw priced for a record that comes, where one is replaced", "plans/network.py",
        'if neighbours == "add_remove":\n        return most', "if True:\n        return most",
        "a posterior draw costs the range of its scores",
        "test_posterior.py::test_the_exact_privacy_loss_is_within_epsilon_and_nearly_attained[replace-{}]",
    ),
    Mutant(
        "several posterior draws for the price of one", "posterior/price.py", "    rounds, sensitivity = task.mechanism.rounds, sum(",
        "    rounds, sensitivity = 1, sum(", "every posterior draw is paid for",
        "test_posterior.py::test_the_exact_privacy_loss_is_within_epsilon_and_nearly_attained[replace-{'draws': 3}]",
    ),
    Mutant(
        "every split at its own price, but in one row only", "posterior/tables.py", "sensitivity = rows * splits_of(node, task.neighbours)",
        'sensitivity = rows * splits_of(node, "add_remove")', "what was charged is what is told",
        "test_posterior.py::test_the_charge_is_the_sum_over_draws_and_families",
    ),
    Mutant(
        "a draw sharper than the posterior", "posterior/price.py", "        scale = max(scale, float(NAT))\n", "        pass\n",
        "a draw is one of the posterior, where epsilon allows it", "test_draws.py::test_what_is_not_used_is_not_charged",
    ),
    Mutant(
        "draws in zCDP at a quarter of their cost", "posterior/price.py", "Fraction(rounds * squares, 4)", "Fraction(rounds * squares, 16)",
        "draws add up in zCDP", "test_draws.py::test_many_draws_add_up_in_zcdp",
    ),
    Mutant(
        "missing counts taken for latents of records", "posterior/paid_gibbs/parts.py", " if random.name not in imputed}", "}",
        "missing values do not show", "test_paid_gibbs.py::test_no_missing_value_shows[Bernoulli-how0]",
    ),
    Mutant(
        "records believed to keep within their bounds", "posterior/grid.py", "np.clip(computed, low, high).astype(np.int64)",
        "np.clip(computed, low.min() * 9, high.max() * 9).astype(np.int64)", "what one record can do is enforced",
        "test_draws.py::test_what_a_record_can_do_is_enforced_and_not_only_believed",
    ),
    Mutant(
        "a record that is replaced at the price of one that comes", "posterior/grid.py", "return int(np.sort(most - least)[-2:].sum())",
        "return int((most - least).max())", "a posterior draw costs the range of its scores",
        "test_draws.py::test_neighbours_differ_by_no_more_than_is_paid_for[logistic]",
    ),
    Mutant(
        "a branch looked at where it is not taken", "models/intervals.py", "(BELOW.get(name) == (place == 0)) == holds",
        "(BELOW.get(name) == (place == 0)) != holds", "bounds of a log-likelihood hold",
        "test_rowwise.py::test_a_branch_counts_only_where_it_is_taken",
    ),
    Mutant(
        "what is no number compared like a number", "models/intervals.py", "if sum(fixed) != 1 or not number:", "if sum(fixed) != 1:",
        "bounds of a log-likelihood hold", "test_rowwise.py::test_a_branch_counts_only_where_it_is_taken",
    ),
    Mutant(
        "a prior cut off by the narrowest quantiles", "models/truncated_priors.py", "return low.min(axis=0), high.max(axis=0)",
        "return low.max(axis=0), high.min(axis=0)", "an interval holds every quantile that hyperparameters allow",
        "test_truncated_priors.py::test_a_hierarchy_holds_every_quantile_that_its_parameters_allow[Normal]",
    ),
    Mutant(
        "chains that leave the intervals of priors", "posterior/markov.py", "        flattened = _within_ends(flattened, rows)\n", "",
        "draws lie where the result says", "test_truncated_draws.py::test_a_chain_never_leaves_its_interval",
    ),
    Mutant(
        "missing values counted as unknowns", "models/alternatives.py", " if variable.owner.op.name not in arrays.imputed]", "]",
        "whether a value is missing does not show", "test_hiding_places.py::test_a_refusal_does_not_tell_whether_a_value_is_missing[nan_censored]",
    ),
    Mutant(
        "pairs of records compared at one point", "posterior/grid.py", "moved = max(int(np.ptp(records - record, axis=1).max()) for record in records)",
        "moved = int(np.ptp(records, axis=0).max())", "a posterior draw costs the range of its scores",
        "test_draws.py::test_the_exact_loss_never_exceeds_epsilon_and_nearly_attains_it[replace]",
    ),
    Mutant(
        "a prior that is cut off without a word", "posterior/tables.py", "betainc(a, b, least) + betaincc(a, b, 1 - least)", "betainc(a, b, 0.0)",
        "intervals that do not hold are said before they are paid for",
        "test_posterior.py::test_a_prior_that_is_cut_off_is_said_before_anything_is_paid[40-0.1-True]",
    ),
    Mutant(
        "draws that stay at the points of their grid", "posterior/grid.py", "drawn if task.mode else _spread(drawn, axes, density)", "drawn",
        "intervals from draws are as wide as a cell", "test_draws.py::test_draws_lie_anywhere_in_the_cell_of_their_point[2]",
    ),
    Mutant(
        "draws where their prior has no density", "posterior/grid.py", "inside = np.isfinite(density(moved))", "inside = np.isfinite(moved[:, 0])",
        "a draw is one of the prior's values", "test_draws.py::test_draws_stay_where_the_prior_has_a_density",
    ),
    Mutant(
        "a prior as flat as the likelihood", "posterior/grid.py", "np.rint(temper * NAT * np.maximum(", "np.rint(NAT * np.maximum(",
        "the prior stays as it is", "test_draws.py::test_scores_are_the_flattened_log_posterior[0.5]",
    ),
    Mutant(
        "a value that moves a score one way only", "releases/quantiles.py", "return 2 * values * (b if", "return values * (b if",
        "a choice of bounds costs the range of its scores", "test_private_bounds.py::test_all_pairs_on_a_small_lattice",
    ),
    Mutant(
        "the columns of a record at the price of one", "releases/quantiles.py", "sensitivity(quantile, len(column.places), neighbours)",
        "sensitivity(quantile, 1, neighbours)", "all values of a record are paid for",
        "test_private_bounds.py::test_columns_that_are_taken_together_are_all_paid_for",
    ),
    Mutant(
        "missing values counted in the middle", "releases/quantiles.py", "float(self.candidates[-1]), fill=np.nan)",
        "float(self.candidates[-1]))", "missing values are not counted",
        "test_private_bounds.py::test_missing_values_are_not_counted_and_others_are_moved_to_the_ends",
    ),
    Mutant(
        "quantiles by a private number of records", "releases/quantiles.py", "path, shape[0] if sized else None, k)", "path, shape[0], k)",
        "the number of records decides nothing where it is private",
        "test_private_bounds.py::test_no_number_of_records_is_in_what_is_said_under_add_remove",
    ),
    Mutant(
        "a density that mixes records", "models/likelihood_reader.py", "if isinstance(operation, CustomDistRV | LikelihoodRV):  # a density", "if False:  # a density",
        "one record has one part in the scores", "test_rowwise.py::test_what_has_no_bound_is_refused",
    ),
    Mutant(
        "one branch for both", "models/elementwise_intervals.py", "    union = np.minimum(first_low, second_low), np.maximum(first_high, second_high)\n",
        "    union = first_low, first_high\n", "bounds are certain", "test_rowwise.py::test_values_lie_within_their_interval[12]",
    ),
    Mutant(
        "the least of log gamma forgotten", "models/elementwise_intervals.py", "least = np.where(inside, LOG_GAMMA(LOWEST_LOG_GAMMA), np.minimum(*ends))",
        "least = np.minimum(*ends)", "bounds are certain", "test_rowwise.py::test_values_lie_within_their_interval[11]",
    ),
    Mutant(
        "a regression at the price of one that comes", "posterior/ball_regression.py", 'return range_of_one * (2 if neighbours == "replace" else 1)',
        "return range_of_one", "a draw in a ball costs what theory says", "test_draws.py::test_the_cost_in_a_ball_is_attained_and_not_exceeded",
    ),
    Mutant(
        "a product of unknowns taken for affine", "posterior/ball_regression.py", "(one_factor and sum(resting) == 1)", "one_factor",
        "what is drawn as a regression is one", "test_draws.py::test_only_affine_means_are_regressions",
    ),
    Mutant(
        "names as operations", "models/structure.py", "SKIPPED = (ModelDeterministic, ModelNamed, CheckAndRaise)", "SKIPPED = (CheckAndRaise,)",
        "Deterministics go through", "test_draws.py::test_deterministics_may_stand_between",
    ),
    Mutant(
        "a tilt that is not taken back", "posterior/ball_regression.py", " & (np.log(rng.random(PROPOSALS)) < tilt * (squares - radius**2) / 2)", "",
        "draws in a ball have the truncated law", "test_draws.py::test_draws_in_a_ball_have_the_truncated_law[1500-ball1]",
    ),
    Mutant(
        "a promise too strong", "posterior/ball_regression.py", "price, REAL_ARITHMETIC, facts=facts)", 'price, "certified", facts=facts)',
        "a result says what it promises", "test_draws.py::test_regression_costs_what_theory_says_and_has_the_right_posterior",
    ),
    Mutant(
        "a slope at the price of one record", "posterior/ball_regression.py", "return (2 if neighbours == \"replace\" else 1) * (response", "return (response",
        "a draw in a ball costs what its slope does", "test_draws.py::test_no_record_pulls_harder_in_a_ball_than_is_said[1-1-1-1-100.0]",
    ),
    Mutant(
        "a slope at half its price", "privacy/receipts.py", "return min(self.pure**2 / 8, by_square)", "return min(self.pure**2 / 8, by_square / 2)",
        "draws that are told apart by a slope cost as normals do", "test_draws.py::test_with_a_delta_draws_in_a_ball_cost_what_their_slope_does",
    ),
    Mutant(
        "one record where two differ", "posterior/concave.py", 'records = 2 if task.neighbours == "replace" else 1', "records = 1",
        "a concave draw costs the most that a record can do", "test_concave.py::test_no_two_records_do_more_than_is_paid_for[Poisson]",
    ),
    Mutant(
        "a slope at one corner", "posterior/concave_laws.py", "product(predictor, value)], axis=0)", "zip(predictor, value)], axis=0)",
        "a concave draw costs the most that a record can do", "test_concave.py::test_what_a_value_can_do_is_found_exactly[ends0-Bernoulli]",
    ),
    Mutant(
        "predictors that are no lines", "posterior/concave.py", "is_affine(one[1], rows.stand_ins) for one in read)", "True for one in read)",
        "what is drawn as concave is concave", "test_concave.py::test_what_is_not_certainly_concave_is_refused[a square]",
    ),
    Mutant(
        "priors of any kind", "posterior/concave.py", "affine and all(map(_is_quadratic, rows.unknowns)) and", "affine and",
        "what is drawn as concave is concave", "test_concave.py::test_what_is_not_certainly_concave_is_refused[heavy tails]",
    ),
    Mutant(
        "a Potential that is not looked at", "posterior/concave.py", "and not any(isinstance(v.owner.op, ModelPotential) for v in spec.kept)", "",
        "what is drawn as concave is concave", "test_concave.py::test_what_is_not_certainly_concave_is_refused[a Potential]",
    ),
    Mutant(
        "the outer end of a shell", "posterior/envelope.py", "least = edges[:-1] ** 2 * np.max", "least = edges[1:] ** 2 * np.max",
        "no density is above its envelope", "test_concave.py::test_no_density_is_above_the_envelope[4-Normal]",
    ),
    Mutant(
        "a likelihood that bends no further", "posterior/envelope.py", "return np.minimum((np.expm1(-s) + s) / s**2, 0.5)", "return 0.5 + 0 * s",
        "no density is above its envelope", "test_concave.py::test_no_density_is_above_the_envelope[2-Bernoulli]",
    ),
    Mutant(
        "a ball that nothing leaves", "posterior/rejection.py", "        inside &= (points[:, place] ** 2).sum(axis=1) <= radius**2\n", "        pass\n",
        "draws have the law that is paid for", "test_concave.py::test_draws_have_the_law_of_the_target[how2-Normal]",
    ),
    Mutant(
        "a likelihood that is not flattened", "posterior/concave.py", "if reading.protection.sized else 1) / temperature", "if reading.protection.sized else 1)",
        "draws have the law that is paid for", "test_concave.py::test_the_target_is_the_models_own_posterior_flattened",
    ),
    Mutant(
        "records that are left out and count", "posterior/concave.py", "weight = np.ones(len(offset)) if kept is None else exact[kept][:, 0]",
        "weight = np.ones(len(offset))", "what is missing brings nothing", "test_concave.py::test_records_with_something_missing_bring_nothing",
    ),
    Mutant(
        "one of several lengths", "posterior/grid.py", "sensitivity = sum(part.sensitivity for part in scored)", "sensitivity = max(part.sensitivity for part in scored)",
        "a record in each observed variable is paid for", "test_draws.py::test_neighbours_differ_by_no_more_than_is_paid_for[two_lengths]",
    ),
    Mutant(
        "one of several lengths, by chains", "posterior/markov.py", "width = sum(round((most - least) * NAT) for _, least, most in clipped)",
        "width = max(round((most - least) * NAT) for _, least, most in clipped)", "a record in each observed variable is paid for",
        "test_draws.py::test_chains_see_records_of_several_lengths_together",
    ),
    Mutant(
        "cells at their far ends", "posterior/rejection.py", "at = np.clip(turn[:, None], edges[:, :-1], edges[:, 1:])", "at = edges[:, 1:]",
        "no density is above its envelope", "test_concave_edges.py::test_no_density_is_above_the_envelope_by_coordinates[one record, under uniform priors]",
    ),
    Mutant(
        "infinity less infinity is nothing", "posterior/concave_laws.py", "np.where(np.isnan(ranges), np.inf, ranges).max()", "np.nanmax(ranges, initial=0.0)",
        "a concave draw costs the most that a record can do", "test_concave_edges.py::test_infinity_less_infinity_is_no_small_range[law0-ends0]",
    ),
    Mutant(
        "a clip that makes no difference", "posterior/concave_laws.py", " or any(map(_is_clipped, parameters))", "",
        "draws have the law that is paid for", "test_concave_edges.py::test_a_clipped_probability_is_another_law",
    ),
    Mutant(
        "an interval for another", "models/truncated_priors.py", " or _code_of_ends(own) != _code_of_ends(usual)", "",
        "draws have the law of the prior", "test_draws.py::test_refusals_come_before_anything_is_spent[within_half-arguments9-sort what was drawn]",
    ),
    Mutant(
        "lengths that a record decides", "models/opaque.py", "if part.owner is not None and is_placed_by_values(part.owner, sized=sized):", "if False:",
        "no value of a record shows in shapes", "test_lengths.py::test_no_number_of_an_array_is_a_length_or_a_place",
    ),
    Mutant(
        "the length of a private dim in what is computed", "models/survivors.py",
        "        elif not arrays.sized and arrays.rests_on_length([variable], record_dims):\n", "        elif False:\n",
        "add-remove hides the number of records",
        "test_draw_leaks.py::test_what_is_computed_from_draws_does_not_tell_the_number_of_records[draw]",
    ),
    Mutant(
        "the length of a private dim in a likelihood", "models/problems.py", "        if arrays.rests_on_length(observed.parameters, record_dims):\n",
        "        if False:\n", "add-remove hides the number of records",
        "test_draw_leaks.py::test_what_a_draw_costs_does_not_tell_the_number_of_records",
    ),
    Mutant(
        "indices checked at one end", "models/intervals.py",
        "        _rearranged(node, [inputs[0], *((end, end) for _, end in inputs[1:])])\n", "", "nothing fails, whatever a record holds",
        "test_draw_leaks.py::test_an_expression_that_fails_for_one_record_does_not_show[by_computed_index-3.5]",
    ),
    Mutant(
        "a gradient as it comes", "posterior/markov.py", "pt.switch(pt.isnan(g) | pt.isinf(g), 0.0, g) * outer[0]", "g * outer[0]",
        "one record cannot stop a chain", "test_draw_leaks.py::test_a_gradient_that_is_no_number_does_not_show",
    ),
    Mutant(
        "few seeds for all chains", "posterior/markov.py", 'nuts_sampler="pymc"', 'nuts_sampler="nutpie"',
        "draws cannot be tried out", "test_draw_leaks.py::test_a_chain_has_more_randomness_than_can_be_tried_out",
    ),
    # ---------- chains that pay at every update
    Mutant(
        "burn-in is free", "privacy/requests.py", "        return self.chains * self.sweeps\n",
        "        return self.chains * (self.sweeps - self.burn_in)\n", "sweeps that are thrown away are paid for",
        "test_paid_gibbs.py::test_the_charge_is_the_exact_sum_over_every_update_that_was_made",
    ),
    Mutant(
        "one chain of several is charged", "privacy/requests.py", "        return self.chains * self.sweeps\n", "        return self.sweeps\n",
        "every chain is paid for", "test_paid_gibbs.py::test_the_charge_is_the_exact_sum_over_every_update_that_was_made",
    ),
    Mutant(
        "thinned sweeps are free", "privacy/requests.py", "        return self.chains * self.sweeps\n",
        "        return self.chains * (self.burn_in + self.draws)\n", "sweeps that are thrown away are paid for",
        "test_paid_gibbs.py::test_the_charge_is_the_exact_sum_over_every_update_that_was_made",
    ),
    Mutant(
        "eleven sweeps charged as ten", "posterior/paid_gibbs/costs.py", "draws = tuple(draw_of(block, scale) for block in asking) * request.rounds",
        "draws = tuple(draw_of(block, scale) for block in asking) * max(request.rounds - 1, 1)", "every sweep is paid for",
        "test_paid_gibbs.py::test_the_charge_is_the_exact_sum_over_every_update_that_was_made",
    ),
    Mutant(
        "eleven sweeps of a total charged as ten", "posterior/price.py", "for name, eta, size in choices] * rounds\n",
        "for name, eta, size in choices] * max(rounds - 1, 1)\n", "every sweep is paid for",
        "test_paid_gibbs.py::test_the_charge_is_the_exact_sum_over_every_update_that_was_made",
    ),
    Mutant(
        "an update that asks without a receipt", "posterior/paid_gibbs/sweeps.py",
        "choices = choices_in_rounds(kernel, block, state, held, scale, receipt)",
        "from pymc_dp.posterior.paid_gibbs.updates import records_part, sampled_options\n        "
        "choices = sampled_options(records_part(kernel, block, state, held) / scale, rng)",
        "every update that asks the records is paid for and drawn by OpenDP",
        "test_paid_gibbs.py::test_the_charge_is_the_exact_sum_over_every_update_that_was_made",
    ),
    Mutant(
        "what was spent, of one sweep", "posterior/paid_gibbs/costs.py", "[pure * (k + 1)]", "[pure]", "the running epsilon is what was spent",
        "test_paid_gibbs.py::test_the_ledger_the_schedule_and_the_tree_say_the_same[total-0]",
    ),
    Mutant(
        "sweeps under add-remove", "posterior/paid_gibbs/blocks.py", "    if task.neighbours != \"replace\":\n",
        "    if task.neighbours == \"\":\n", "the number of records is visible in sweeps",
        "test_paid_gibbs.py::test_refused_in_words_before_anything_is_paid",
    ),
    Mutant(
        "a record that comes to another number pays for one", "posterior/paid_gibbs/sensitivity.py", "ranges_of[i] + ranges_of[j]",
        "np.maximum(ranges_of[i], ranges_of[j])", "a record that moves changes two numbers",
        "test_paid_gibbs.py::test_ranges_are_those_of_theory",
    ),
    Mutant(
        "bounds of one record for two", "posterior/paid_gibbs/sensitivity.py", "    return max(2 * _widest(bounds), 1)\n",
        "    return max(_widest(bounds) * (2 if block.latent is not None else 1), 1)\n", "the range of a difference of two clipped records",
        "test_paid_gibbs.py::test_no_update_loses_more_than_its_price_and_some_state_attains_most_of_it[mixture]",
    ),
    Mutant(
        "bounds of one record for two, of latents", "posterior/paid_gibbs/sensitivity.py", "    return max(2 * _widest(bounds), 1)\n",
        "    return max(_widest(bounds) * (1 if block.latent is not None else 2), 1)\n", "the range of a difference of two clipped records",
        "test_paid_gibbs.py::test_no_update_loses_more_than_its_price_and_some_state_attains_most_of_it[mixture]",
    ),
    Mutant(
        "records of sweeps believed to keep within their bounds", "posterior/paid_gibbs/updates.py",
        "np.clip(computed, low[some][:, combined], high[some][:, combined])", "np.clip(computed, -(2.0**60), 2.0**60)",
        "no record moves an update by more than is paid for",
        "test_paid_gibbs.py::test_what_a_record_can_do_is_enforced_and_not_only_believed",
    ),
    Mutant(
        "a private month taken for a public one", "posterior/paid_gibbs/parts.py",
        "hidden=any(placeholder.private for placeholder in likelihood.inputs)", "hidden=False",
        "a record that may come to another state pays for both",
        "test_paid_gibbs.py::test_states_and_numbers_cost_both_where_a_record_may_move",
    ),
    Mutant(
        "a record that comes to another state pays for one", "posterior/paid_gibbs/sensitivity.py",
        "            return 2 * int(np.ptp(table, axis=-1).max())", "            return int(np.ptp(table, axis=-1).max())",
        "a record that moves changes what is said of two states",
        "test_paid_gibbs.py::test_no_update_loses_more_than_its_price_and_some_state_attains_most_of_it[visits]",
    ),
    Mutant(
        "bounds of one state for all", "posterior/paid_gibbs/sensitivity.py", "    if moves or any(kernel.latents[k].hidden for k in part.latents):",
        "    if moves:", "a record that moves may read another state",
        "test_paid_gibbs.py::test_states_and_numbers_cost_both_where_a_record_may_move",
    ),
    Mutant(
        "months drawn together that rest on each other", "posterior/paid_gibbs/sites.py", "tuple(places for places in rounds if len(places))",
        "(np.arange(len(depth)),)", "states are drawn given those that were drawn",
        "test_paid_gibbs.py::test_a_sweep_leaves_the_flattened_posterior_as_it_is[visits-20.0]",
    ),
    Mutant(
        "one part of a likelihood paid for", "posterior/paid_gibbs/kernel.py",
        "        return sum(self.sensitivities)", "        return max(self.sensitivities, default=0)", "a record moves an update by what it moves all parts",
        "test_paid_gibbs.py::test_parts_of_a_likelihood_are_paid_for_one_by_one[0.02]",
    ),
    Mutant(
        "more choices than were paid for", "privacy/mechanisms.py", "        if size < 0:\n", "        if False:\n",
        "no choice is made that was not paid for", "test_posterior.py::test_choices_need_a_receipt_of_their_own",
    ),
    Mutant(
        "a prior of sweeps as flat as the likelihood", "posterior/paid_gibbs/updates.py", "np.rint(kernel.temper * NAT * apart)",
        "np.rint(NAT * apart)", "the prior keeps its power",
        "test_paid_gibbs.py::test_a_sweep_leaves_the_flattened_posterior_as_it_is[coins-20.0]",
    ),
    Mutant(
        "entries drawn together that rest on each other", "posterior/paid_gibbs/blocks.py",
        "if index is not None and alone and not opened:", "if index is not None:",
        "entries that are drawn together are independent given all else",
        "test_paid_gibbs.py::test_entries_are_drawn_together_only_where_they_are_independent",
    ),
    Mutant(
        "a penalty forgotten", "posterior/paid_gibbs/accept.py", "(noisy - m / 2) / scale", "noisy / scale",
        "noisy acceptance leaves the posterior as it is", "test_private_steps.py::test_on_its_lattice_the_penalty_is_exact",
    ),
    Mutant(
        "noise between the points of the lattice", "posterior/paid_gibbs/accept.py", "    s = sqrt(m * scale)\n",
        "    s = sqrt((m + 0.4) * scale)\n", "noisy acceptance leaves the posterior exactly as it is",
        "test_private_steps.py::test_on_its_lattice_the_penalty_is_exact",
    ),
    Mutant(
        "a ratio without noise", "posterior/paid_gibbs/accept.py", "noisy = Gaussian().draw(ends[:, 1] - ends[:, 0], s, receipt)",
        "noisy = ends[:, 1] - ends[:, 0]", "no ratio is seen without noise",
        "test_private_steps.py::test_noise_is_that_of_the_receipt_and_no_ratio_is_seen_without",
    ),
    Mutant(
        "Metropolis on records", "posterior/paid_gibbs/sweeps.py", "    elif block.variance is None:\n        choices = choices",
        "    elif block.width and block.variance is None:\n        from pymc_dp.posterior.paid_gibbs.updates import records_part\n"
        "        ratio = np.diff(records_part(kernel, block, state, held))[:, 0] / scale\n"
        "        choices = (rng.random(len(ratio)) < np.exp(np.minimum(ratio, 0))).astype(int)\n"
        "    elif block.variance is None:\n        choices = choices",
        "a move is accepted by a private choice",
        "test_annealed.py::test_the_charge_is_the_exact_sum_over_every_update_and_weight[barker-2-0]",
    ),
    Mutant(
        "moves that stop at the end of a grid", "posterior/paid_gibbs/accept.py", "np.where((to < 0) | (to >= points), at, to)",
        "np.clip(to, 0, points - 1)", "moves are as probable as the moves back",
        "test_private_steps.py::test_a_step_leaves_the_flattened_posterior_as_it_is[product-Barker]",
    ),
    Mutant(
        "short moves believed shorter", "posterior/paid_gibbs/sensitivity.py", "range(-block.width, block.width + 1)",
        "range(-block.width // 2, block.width // 2 + 1)", "a step is paid for as far as it may move",
        "test_private_steps.py::test_no_step_loses_more_than_its_price_and_some_move_attains_most_of_it[groups-0.25-Barker]",
    ),
    Mutant(
        "noise on a ratio at the price of a choice", "posterior/paid_gibbs/costs.py", "(4 if block.variance is None else block.variance)", "4",
        "a step costs no more than is asked for", "test_private_steps.py::test_charged_as_shown_with_steps",
    ),
    Mutant(
        "a weight without noise", "posterior/paid_gibbs/annealed.py", "[noisy] = noise.draw(np.array([weight]), plan.noise.scale, receipt)",
        "[noisy] = np.array([weight])", "a weight gets noise of its own",
        "test_annealed.py::test_the_charge_is_the_exact_sum_over_every_update_and_weight[gibbs-2-0]",
    ),
    Mutant(
        "a weight at half its price", "posterior/paid_gibbs/sensitivity.py",
        "return max(int(np.ptp(table[groups == group], axis=0).max()) for group in np.unique(groups))",
        "return max(int(np.ptp(table[groups == group], axis=0).max()) // 2 for group in np.unique(groups))",
        "no record moves a weight by more than is paid for",
        "test_annealed.py::test_a_record_moves_a_log_likelihood_by_the_height_at_most[product]",
    ),
    Mutant(
        "a weight of whole powers", "posterior/paid_gibbs/annealed.py", "weight += (power - before) * total(", "weight += power * total(",
        "one record moves a weight by C, and its mean is the evidence",
        "test_annealed.py::test_the_mean_weight_is_the_evidence[product-100000.0]",
    ),
    Mutant(
        "all rungs at the price of the first", "posterior/paid_gibbs/annealed.py", "Fraction(block.sensitivity * power, RUNG))",
        "Fraction(block.sensitivity * inner[0], RUNG))", "a transition at beta costs beta times as much",
        "test_annealed.py::test_the_charge_is_the_exact_sum_over_every_update_and_weight[gibbs-5-0]",
    ),
    Mutant(
        "one annealed chain of several is charged", "posterior/paid_gibbs/annealed.py", "Price(scale, cost, tuple(draws) * request.chains)",
        "Price(scale, cost, tuple(draws))", "every chain is paid for",
        "test_annealed.py::test_the_charge_is_the_exact_sum_over_every_update_and_weight[gibbs-2-0]",
    ),
    Mutant(
        "a climb from the middle", "posterior/paid_gibbs/annealed.py", "        numbers[list(places)] = values[sampled_options(weights[None], rng)[0]]\n",
        "        numbers[list(places)] = values[len(values) // 2]\n", "a climb begins with a draw of the prior",
        "test_annealed.py::test_a_climb_begins_with_the_prior",
    ),
    Mutant(
        "drawn before it is paid for", "posterior/draws.py", "    return payable.pay_and_draw()\n",
        "    return payable.pay_and_draw()\n\n\n"
        "def receipt_for(ledger, cost, draws, **_):\n    from pymc_dp.privacy.mechanisms import Receipt\n\n    return Receipt(draws, cost)\n",
        "nothing is drawn without a charge", "test_draws.py::test_nothing_is_drawn_that_the_ledger_does_not_pay_for",
    ),
    Mutant(
        "choices without a receipt", "privacy/mechanisms.py", '    receipt.strike_off("choice", scale, size)\n', "",
        "no choice is made that was not paid for", "test_posterior.py::test_choices_need_a_receipt_of_their_own",
    ),
    Mutant(
        "answers without a receipt", "privacy/mechanisms.py", '    receipt.strike_off("answer", scale, places.size)\n', "",
        "no answer is drawn that was not paid for", "test_answers.py::test_answers_are_paid_for_once",
    ),
    Mutant(
        "a truth that is rounded to the nearest double", "privacy/mechanisms.py",
        "    while levels > 1 and levels * Fraction(p) > 1 and Fraction(_response(levels, p).map(1)) > 1 / Fraction(scale):\n",
        "    while False:\n", "an answer costs no more than is paid for it", "test_answers.py::test_no_answer_tells_more_than_is_paid_for",
    ),
    Mutant(
        "a missing value is in a bin", "releases/answers.py",
        "np.where(complete, np.ravel_multi_index(inside, shape), prod(shape))", "np.ravel_multi_index(inside, shape)",
        "incomplete records have a level of their own", "test_answers.py::test_whatever_a_record_holds_it_has_a_level",
    ),
    Mutant(
        "a value at an edge is in the bin above", "releases/answers.py", 'column, side="left")', 'column, side="right")',
        "bins hold what the likelihood takes them to hold", "test_answers.py::test_whatever_a_record_holds_it_has_a_level",
    ),
    Mutant(
        "answers are modelled after they are paid for", "publications/randomise.py", "    published(meant, prepared.imagined)\n", "",
        "what cannot be modelled is not paid for", "test_randomise.py::test_refusals_come_before_the_charge",
    ),
    Mutant(
        "the true level is told at random, too", "publications/responses.py", "others = (1 - answers.truth) / (answers.levels - 1)",
        "others = (1 - answers.truth) / answers.levels", "the law of answers is that of how they are drawn",
        "test_randomise.py::test_a_private_covariate_is_integrated_over_its_bin",
    ),
    Mutant(
        "data that nothing needs stay", "publications/responses.py", "            clone.data_vars.remove(array)\n", "",
        "no record is in a private model", "test_randomise.py::test_nothing_of_a_record_is_in_the_answers_or_in_the_private_model",
    ),
    Mutant(
        "labels of records stay", "publications/responses.py", "            clone._coords[dim] = None\n", "            pass\n",
        "no record is in a private model", "test_randomise.py::test_nothing_of_a_record_is_in_the_answers_or_in_the_private_model",
    ),
    Mutant(
        "initial values by record stay", "publications/responses.py", "            clone.rvs_to_initial_values[rv] = None\n",
        "            pass\n", "no record is in a private model",
        "test_randomise.py::test_nothing_of_a_record_is_in_the_answers_or_in_the_private_model",
    ),
    Mutant(
        "squares of a norm added up by NumPy", "releases/statistics.py", "squares = sum(column**2 for column in entries)  #",
        "squares = (result**2).sum(axis=-1)  #", "what a record brings rests on no other record",
        "test_leaks.py::test_a_record_that_goes_moves_no_other_s_norm",
    ),
    Mutant(
        "complex names are nobody's", "releases/persons.py", "        value = value.real if value.imag == 0 else None\n",
        "        value = None\n", "a person's name takes nobody else's", "test_person_data.py::test_what_pandas_makes_of_all_names_because_of_one_takes_nobody_s_name[1j]",
    ),
    Mutant(
        "long numbers are nobody's names", "releases/persons.py",
        "        return float(value) if isinstance(value, np.floating) else complex(value)", "        return complex(value)",
        "a person's name takes nobody else's", "test_person_data.py::test_what_pandas_makes_of_all_names_because_of_one_takes_nobody_s_name[odd2]",
    ),
    Mutant(
        "arrays are known by their axes alone", "publications/responses.py",
        "answers.told.size in array.shape or array.size >= answers.told.size > 1", "answers.told.size in array.shape",
        "no array that may hold a number of each record stays", "test_randomised_hiding.py::test_no_place_in_a_model_carries_a_record_into_the_private_model[starts_in_two_rows]",
    ),
    Mutant(
        "operations are not looked into", "publications/responses.py",
        "opaque(term, is_public) or hidden_in(", "hidden_in(", "no record is held by an operation of the user's own",
        "test_randomised_hiding.py::test_no_place_in_a_model_carries_a_record_into_the_private_model[in_how_a_prior_is_drawn]",
    ),
    Mutant(
        "functions of what is observed are not looked into", "publications/responses.py",
        "    for term in by_itself:\n", "    for term in left:\n", "no record is in the density that answers are read by",
        "test_randomised_hiding.py::test_no_place_in_a_model_carries_a_record_into_the_private_model[in_the_density_of_an_outcome]",
    ),
    Mutant(
        "transforms are not looked into", "publications/responses.py",
        " or hidden_in(clone.rvs_to_transforms.get(term), is_public)", "", "no record is in a transform of the private model",
        "test_randomised_hiding.py::test_no_place_in_a_model_carries_a_record_into_the_private_model[in_a_transform]",
    ),
    Mutant(
        "notes stay", "publications/responses.py",
        "        [left, parameters], lambda thing", "        [parameters], lambda thing", "no record hangs on a variable of the private model",
        "test_randomised_hiding.py::test_no_place_in_a_model_carries_a_record_into_the_private_model[in_a_note]",
    ),
    Mutant(
        "notes on what is observed stay", "publications/responses.py", "        [left, parameters], lambda thing", "        left, lambda thing",
        "no record hangs on a mean in the private model", "test_randomised_hiding.py::test_no_place_in_a_model_carries_a_record_into_the_private_model[in_a_note_on_a_mean]",
    ),
    Mutant(
        "arrays are looked at one by one", "publications/responses.py",
        "    if sum(array.data.size for array in held) >= answers.told.size > 1:\n", "    if False:\n",
        "records are not held in several shorter arrays", "test_randomised_hiding.py::test_no_place_in_a_model_carries_a_record_into_the_private_model[in_two_halves]",
    ),
    Mutant(
        "numbers of a loop are not counted", "publications/responses.py", "        if many > MOST_WRITTEN:\n", "        if False:\n",
        "records are not held as single numbers, as a loop writes them", "test_randomised_hiding.py::test_no_place_in_a_model_carries_a_record_into_the_private_model[in_a_loop]",
    ),
    Mutant(
        "Potentials are counted one by one", "publications/responses.py",
        "sum(written[each] for each in clone.potentials)", "0",
        "records are not held as single numbers, a Potential each", "test_randomised_hiding.py::test_no_place_in_a_model_carries_a_record_into_the_private_model[in_a_potential_for_each]",
    ),
    Mutant(
        "initial values that are computed stay", "publications/responses.py",
        "isinstance(start, Variable) or (isinstance(start, np.ndarray)", "(isinstance(start, np.ndarray)",
        "no record is in a start of the private model", "test_randomised_hiding.py::test_no_place_in_a_model_carries_a_record_into_the_private_model[starts_at_a_mean]",
    ),
    Mutant(
        "a parent declared public", "models/declared.py", "protected = {variable.array for variable in observed} | set(stand_ins)",
        "protected = {variable.array for variable in observed}", "what is observed is private",
        "test_parents.py::test_observed_values_cannot_be_declared_public_as_a_parent",
    ),
    Mutant(
        "a parent's level by another rule than its own", "releases/statistics.py",
        "    if placeholder.index and not placeholder.whole and not placeholder.parent:", "    if placeholder.index and not placeholder.whole:",
        "odd values go to one level", "test_parents.py::test_a_cast_in_the_graph_does_not_change_a_parent_s_level",
    ),
    Mutant(
        "variables in the graph's own order", "models/model_graph.py",
        "sorted(graph.outputs, key=lambda variable: order.get(variable.owner.op.name, len(order)))", "list(graph.outputs)",
        "missing values do not show", "test_network_leaks.py::test_the_order_of_posterior_draws_does_not_depend_on_missing_values[replace]",
    ),
    Mutant(
        "missing values of a parent left out", "models/likelihood_reader.py", "RecordPath(parent.value, data.axis, parent.missing)",
        "RecordPath(parent.value, data.axis)", "missing values do not show", "test_parents.py::test_missing_values_of_a_parent_do_not_show",
    ),
    # ---------- questions about tables
    Mutant(
        "text is no number where levels are text", "queries/sql.py", 'return spelled_in(text) if column.points else "NULL", text', 'return "NULL", text',
        "one word in a file of text moves no other record",
        "test_levels_of_text.py::test_one_record_of_a_file_of_text_moves_no_other[codes-pandas]",
    ),
    Mutant(
        "numbers in sixteens are words beside a word", "releases/duck.py", "[READ, OF_BITS, *TRUTHS]", "[READ, *TRUTHS]", "one word in a file of text moves no other record",
        "test_levels_of_text.py::test_one_record_of_a_file_of_text_moves_no_other[sixteens-Arrow]",
    ),
    Mutant(
        "levels that may be dates", "queries/table.py", "        check_levels_of_text(schema)\n", "",
        "one word in a file of text moves no other record",
        "test_levels_of_text.py::test_levels_that_a_record_could_turn_into_others_are_refused[levels0]",
    ),
    Mutant(
        "values beyond the bins in the first of them", "queries/sql.py", "{halved(0, len(starts) - 1)} ELSE {column.size - 1} END",
        "{halved(0, len(starts) - 1)} ELSE 0 END", "a value in no level counts in a cell of its own",
        "test_tables.py::test_answers_are_plain_counts_whatever_holds_the_records[double]",
    ),
    Mutant(
        "answers as sums of doubles", "queries/table.py", "    high, low = weights >> 16, weights & 0xFFFF\n",
        "    return int((weights * numbers.astype(float)).sum())\n    high, low = weights >> 16, weights & 0xFFFF\n",
        "answers are exact integers, on which sensitivities rest",
        "test_tables.py::test_sums_are_exact_beyond_doubles_and_stay_below_what_noise_can_be_added_to",
    ),
    Mutant(
        "a record in no level moves nothing", "queries/language.py", "low, high = int(self.weights.min()), int(self.weights.max())",
        "low, high = int(self.weights.flat[:-1].min(initial=0)), int(self.weights.flat[:-1].max(initial=0))",
        "sensitivities hold for records that hold anything",
        "test_questions.py::test_combinations_are_exact_and_sensitivities_are_attained_and_never_exceeded",
    ),
    Mutant(
        "tables of any database that is attached", "releases/headers.py", "duckdb_databases() WHERE NOT internal AND type <>",
        "duckdb_databases() WHERE false AND type <>", "no record of SQLite makes a release fail",
        "test_duck.py::test_a_database_of_a_kind_that_is_not_known_is_refused",
    ),
    Mutant(
        "views of a database taken", "releases/headers.py", 'if table.type != "TABLE_RELATION":', "if False:",
        "no question fails because of a record", "test_tables.py::test_of_duckdb_only_tables_are_taken",
    ),
    Mutant(
        "a type guessed from all categories", "queries/batches.py", "categories = _of_pandas(values.cat.categories, column)",
        "categories = pa.array(values.cat.categories)", "one record does not change how others are read",
        "test_tables.py::test_how_a_record_is_read_does_not_depend_on_another",
    ),
    # ---------- sessions of questions
    Mutant(
        "a session whose schema may be changed", "queries/session_file.py", "sha256(json.dumps(self._meaning, sort_keys=True).encode())",
        "sha256(self.salt.encode())", "what was paid for keeps its meaning",
        "test_session_privacy.py::test_the_meaning_of_what_was_paid_for_cannot_be_changed[1]",
    ),
    Mutant(
        "two copies of a session go on", "privacy/ledger.py", "        if opened.find(\"WHERE kind = 'charge' AND once = ?\", step.once):\n",
        "        if False:\n", "disjoint records are not free for two copies",
        "test_session_privacy.py::test_two_copies_do_not_both_get_disjoint_records_for_nothing",
    ),
    Mutant(
        "what costs nothing more is not written", "privacy/ledger.py",
        "            facts[\"spent\"] = budget.add(newest.facts[\"spent\"], units, where)\n",
        "            if isinstance(cost, Step) and not any(units):\n                return Charge(nonce, tuple(draws), worth, '')\n"
        "            facts[\"spent\"] = budget.add(newest.facts[\"spent\"], units, where)\n",
        "disjoint records are not free for two copies", "test_sessions.py::test_disjoint_questions_are_paid_once_and_every_one_is_written",
    ),
    Mutant(
        "one noise for all questions of a batch", "queries/session.py",
        "return [int(Laplace().draw(exact[k : k + 1], plan.scale, receipts[k])[0]) for k, plan in enumerate(plans)]",
        "return (exact + int(Laplace().draw(exact[:1] * 0, plans[0].scale, receipts[0])[0])).tolist()", "every answer has noise of its own",
        "test_session_privacy.py::test_every_paid_answer_has_noise_of_its_own",
    ),
    Mutant(
        "a call of a session from within a call", "queries/account.py", "            if account.busy:\n", "            if False:\n",
        "a plan holds until it is paid for", "test_before_paying.py::test_every_call_from_within_is_refused_and_looking_is_not",
    ),
    Mutant(
        "questions read after the state", "queries/session.py", "_answers(self._account, self._table, questions, Terms",
        "_answers(self._account, self._table, questions_of(asked, self._schema), Terms", "what is given is looked at once",
        "test_before_paying.py::test_what_is_given_is_looked_at_once",
    ),
    Mutant(
        "a ledger that waits for itself", "privacy/journal.py", "    if _holders.get(path) == get_ident():  # it", "    if False:  # it",
        "a charge from within a charge is refused at once", "test_before_paying.py::test_a_ledger_does_not_wait_for_itself",
    ),
    Mutant(
        "settings found wrong after paying", "sampling.py", "    check_settings(sampler, model, ready.plan.spec)\n", "",
        "what sampling would fail on is refused before it is paid for",
        "test_before_paying.py::test_a_model_that_sampling_cannot_draw_is_refused_before_it_is_paid_for",
    ),
    Mutant(
        "single precision found out after paying", "releases/from_records.py", "    check_doubles()\n", "",
        "what sampling would fail on is refused before it is paid for",
        "test_before_paying.py::test_a_private_model_in_single_precision_is_refused_before_it_is_paid_for",
    ),
    Mutant(
        "settings of NUTS that nobody tried", "private_models/settings.py", "    if nuts and chosen in TRIALS:\n", "    if False:\n",
        "what sampling would fail on is refused before it is paid for",
        "test_before_paying.py::test_what_sampling_would_fail_on_is_refused_before_it_is_paid_for[a depth as text]",
    ),
    Mutant(
        "a start that nobody looks at", "private_models/starts.py", "    for overrides in starts:\n", "    for overrides in ():\n",
        "a start without a density is refused before it is paid for",
        "test_before_paying.py::test_priors_that_no_chain_can_start_in_are_refused_before_paying[no mass-pymc]",
    ),
    Mutant(
        "the density of a model that is refused", "sampling.py",
        "    ready = prepared(model, protection, epsilon", "    check_settings(sampler, model, protection.read(model))\n    ready = prepared(model, protection, epsilon",
        "words of a refusal rest on no record", "test_before_paying.py::test_a_model_that_is_refused_is_asked_for_no_density",
    ),
    Mutant(
        "constants that are told apart by their types alone", "private_models/fingerprint.py",
        'return "constant", variable.type, _bits_of(variable.data)', 'return "constant", variable.type', "no model is drawn from by another's code",
        "test_nutpie_draws.py::test_a_model_that_differs_in_one_thing_has_another_key[a prior's constant]",
    ),
    Mutant(
        "labels that are told apart as Python does", "private_models/fingerprint.py", "return type(value), repr(value)", "return (value,)",
        "no model gets another's labels", "test_nutpie_draws.py::test_labels_that_are_equal_in_python_are_told_apart",
    ),
    Mutant(
        "every release drawn from the first", "private_models/nutpie_draws.py", "begun = replace(with_data, ", "begun = replace(compiled, ",
        "draws are given the release at hand",
        "test_nutpie_draws.py::test_one_compilation_serves_both_releases_and_draws_are_those_of_pm_sample[towns]",
    ),
    Mutant(
        "chains that nobody reads", "sampling.py", "        warn_if_unsettled(tree, UNSETTLED + stopped_at(private))\n", "        pass\n",
        "chains that disagree are said to", "test_diagnosed.py::test_sample_says_that_its_chains_disagree[True]",
    ),
    Mutant(
        "a variance as large as the noise has made it", "private_models/diagnostics.py", "np.minimum(variance, 1.0)", "variance",
        "what noise hides is not spoken of", "test_natural.py::test_a_regression_lost_in_the_noise_says_nothing",
    ),
    Mutant(
        "levels of a covariate left at the first", "private_models/prior_check.py", "turn % len(bounded.levels)", "0 * turn",
        "what priors put beyond the bounds is their share", "test_prior_check.py::test_levels_take_turns",
    ),
    Mutant(
        "states numbered the other way about", "gibbs/hmm.py", "np.argsort(order)[drawn", "order[drawn",
        "a state has one number in all chains", "test_hidden.py::test_states_are_numbered_as_in_the_first_chain",
    ),
    Mutant(
        "natural bounds taken for plain ones", "plans/bounds.py",
        "replace(domain, clamps=False) if all(kinds) else domain", "domain",
        "values at natural bounds are taken for what they are", "test_natural.py::test_what_is_released_rests_on_the_bounds_only",
    ),
    Mutant(
        "a wrong variance of squares", "families/normal.py", "2 * variance * (2 * square + variance)", "2 * variance * (square + variance)",
        "the law of values as they are", "test_natural.py::test_the_law_is_that_of_values_as_they_are[Normal-False]",
    ),
    Mutant(
        "a refusal that uses up the warning", "releases/from_records.py", "    return _checked(model, ",
        "    from pymc_dp.releases.prepared import warn_that_nothing_remembers\n    warn_that_nothing_remembers()\n    return _checked(model, ", "only a call that spends warns",
        "test_before_paying.py::test_only_a_call_that_spends_warns_that_nothing_remembers",
    ),
    Mutant(
        "a refused draw that uses up the warning", "posterior/draws.py", "    task = task_of(model, epsilon, delta, request, protection, mode=mode, ledger=ledger, data=data)\n",
        "    warn_that_nothing_remembers()\n    task = task_of(model, epsilon, delta, request, protection, mode=mode, ledger=ledger, data=data)\n", "only a call that spends warns",
        "test_before_paying.py::test_only_a_call_that_spends_warns_that_nothing_remembers",
    ),
    Mutant(
        "a session that warns when it is opened", "queries/session.py", "        check_ledger(ledger)\n",
        "        if check_ledger(ledger) is None:\n            warn_that_nothing_remembers()\n", "only a call that spends warns",
        "test_before_paying.py::test_only_a_call_that_spends_warns_that_nothing_remembers",
    ),
    Mutant(
        "a warning that is counted as a draw", "queries/model_questions.py", "    except (Refusal, UnaccountedWarning) as reason:",
        "    except Refusal as reason:", "what was not drawn is not counted",
        "test_before_paying.py::test_a_question_about_a_model_that_only_warned_is_not_counted",
    ),
    Mutant(
        "a history tried after the charge", "queries/session_file.py", "            try_to_write(path, len(self.text.encode()))\n",
        "            pass\n", "an answer that cannot be kept is not paid for",
        "test_before_paying.py::test_a_history_without_room_is_found_out_before_the_charge",
    ),
    Mutant(
        "a question about a model that could not be noted is counted", "queries/account.py",
        "                self.models -= more\n                raise\n", "                raise\n", "what was not drawn is not counted",
        "test_before_paying.py::test_a_history_that_cannot_be_written_is_found_out_before_the_charge",
    ),
    Mutant(
        "a report tried after the charge", "posterior/markov.py", "        _check_report(mechanism.report)\n", "        pass\n",
        "a report that cannot be written is found out before the charge",
        "test_before_paying.py::test_a_report_that_cannot_be_written_is_found_out_before_the_charge",
    ),
    Mutant(
        "an entry without a text", "privacy/journal.py", "isinstance(text, str) and digest", "digest",
        "a damaged ledger is refused", "test_before_paying.py::test_a_damaged_ledger_is_refused_or_says_the_same",
    ),
    Mutant(
        "a history without a checksum", "queries/session_file.py", 'facts["sum"] != _sum(facts) or ', "", "a damaged history is refused",
        "test_before_paying.py::test_a_damaged_history_is_refused",
    ),
    Mutant(
        "a release without a checksum", "releases/sealed.py", "    if seal != _seal(content, kind):\n", "    if False:\n",
        "a damaged release is refused", "test_before_paying.py::test_a_damaged_release_is_refused",
    ),
    Mutant(
        "a price that looks at the records", "queries/session.py",
        "        plans, planned = plans_of(questions, terms, self._account.state)\n",
        "        plans, planned = plans_of(questions, terms, self._account.state)\n        self._table.totals(questions)\n",
        "prices are known before a record is read", "test_session_privacy.py::test_prices_refusals_and_history_read_nothing[replace]",
    ),
    Mutant(
        "read before it is charged", "queries/session.py", "    before, receipts, charged = ",
        "    table.totals([plan.question for plan in plans])\n    before, receipts, charged = ",
        "no record is read before the charge is on disk",
        "test_session_privacy.py::test_the_charge_is_on_disk_and_redeemed_before_the_table_is_read",
    ),
    Mutant(
        "a session costs what its dearest draw costs", "queries/plan.py", "return Cost(self.asked.cost, rho=",
        "return Cost(max(one.epsilon for one in self.asked.answered), rho=", "a record pays for every question that it is in",
        "test_sessions.py::test_a_session_costs_what_the_record_that_pays_most_pays[replace]",
    ),
    Mutant(
        "the record that pays least", "queries/history.py", "return int(spent.loads.max()) * cost_of_load",
        "return int(spent.loads.min()) * cost_of_load", "a session costs what the record that pays most has paid",
        "test_sessions.py::test_a_session_costs_what_the_record_that_pays_most_pays[add_remove]",
    ),
    Mutant(
        "a lost draw costs nothing", "queries/plan.py", "        return replace(self, known=before.known)\n", "        return before\n",
        "from the charge on a cost stands", "test_sessions.py::test_a_failure_inside_loses_the_answer_and_not_the_cost[True]",
    ),
    Mutant(
        "a file that says how much noise there was", "queries/restore.py", "if number >= len(charged) or not same_noise(answer, charged[number]):",
        "if number >= len(charged):", "what a file says is what was paid for",
        "test_sessions.py::test_a_file_that_the_ledger_does_not_know_is_refused[more noise]",
    ),
    Mutant(
        "noise for records as they were promised", "queries/plan.py", "    sensitivity = state.asked.sensitivity(question)\n",
        "    sensitivity = state.asked.sensitivity(meant(question, state.complete))\n", "sensitivities hold for records that hold anything",
        "test_session_privacy.py::test_a_promise_that_is_not_kept_costs_no_privacy[replace]",
    ),
    Mutant(
        "a release that another ledger paid for", "queries/account.py",
        "if ledger is not None and ledger.paid_for(release.ledger_head) != (self.part or \"\"):", "if False:",
        "answers are about one table", "test_sessions.py::test_releases_that_say_something_else_are_refused",
    ),
    Mutant(
        "more than the session may cost", "queries/account.py", "plans[-1].total.epsilon + self.models", "plans[0].own",
        "a session costs no more than it may", "test_sessions.py::test_a_limit_of_its_own",
    ),
    Mutant(
        "a record in another's place at the price of one that comes", "queries/language.py",
        'return high - low if check_neighbours(neighbours) == "replace" else', "return",
        "an answer's noise covers what one record moves", "test_history.py::test_the_cost_is_that_of_the_dearest_record",
    ),
    Mutant(
        "an answer that adds nothing to the cost of two records", "queries/history.py", "            spent.pairs[others] += more",
        "            spent.pairs[others] = more", "a history costs what all its answers tell of one record",
        "test_history.py::test_the_cost_is_that_of_the_dearest_record",
    ),
    Mutant(
        "half of an interval for the whole", "queries/blue.py", "    half = estimated.law.distance(confidence) if width is None else width / 2\n",
        "    half = (estimated.law.distance(confidence) if width is None else width / 2) / 2\n", "intervals hold what they say",
        "test_history.py::test_intervals_and_probabilities_count_what_is_in_them",
    ),
    Mutant(
        "half the scale of the noise in the posterior of counts", "queries/moves.py", "* rate[k]\n    return value",
        "* 2 * rate[k]\n    return value", "the posterior of counts knows the noise",
        "test_completion.py::test_draws_have_the_exact_posterior",
    ),
    Mutant(
        "the records of a part given to the next as well", "queries/completion.py",
        "        left[:, :, atom] = left[:, :, atom] - here\n", "", "a divided atom keeps its number of records",
        "test_completion.py::test_a_question_that_divides_atoms_has_the_posterior_of_its_parts",
    ),
    Mutant(
        "a private number of rows in a file", "releases/progress.py", "    if records is None and not sys.stderr.isatty():", "    if False:",
        "a bar is seen by nobody else", "test_progress.py::test_a_private_number_of_rows_is_written_into_no_file",
    ),
    Mutant(
        "a bar that fails and takes the release with it", "releases/progress.py", "ANYTHING = (Exception, SystemExit)", "ANYTHING = (OSError,)",
        "what is paid for is released", "test_progress.py::test_a_bar_that_fails_loses_no_release",
    ),
    # ---------- missing values
    Mutant(
        "numbers of successes moved to bounds", "releases/cells.py", "if domain.lower > 0 or domain.upper < most:", "if domain.lower > 0:",
        "the law of sums is that of what is summed", "test_trials.py::test_bounds_that_move_a_number_of_successes_are_refused[bounds0-True]",
    ),
    Mutant(
        "a number beyond the levels counted as one", "releases/totals.py", "bool(np.maximum.reduce(narrow, axis=None) <= upper)", "True",
        "what a record holds is counted at its own level", "test_levels.py::test_levels_that_are_counted_at_once_have_the_sums_of_all_others[7-coins-replace]",
    ),
    Mutant(
        "rows beyond a person's most counted at once", "releases/by_part.py", "if planned.at_most is None and ", "if ",
        "at most so many rows of a person count", "test_levels.py::test_rows_that_do_not_count_are_not_counted_at_once",
    ),
    Mutant(
        "records that are left out are counted", "releases/totals.py", "joint if kept is None else joint[kept[part]]", "joint",
        "how many are left is private", "test_left_out.py::test_what_is_released_is_that_of_the_records_that_have_it[coins]",
    ),
    Mutant(
        "records that are left out are summed", "releases/totals.py", "statistic if kept is None else statistic * kept", "statistic", "what is missing moves no sum",
        "test_persons.py::test_no_person_moves_more_than_is_paid_for[normal-replace]",
    ),
    Mutant(
        "products of records that are left out", "releases/totals.py", "            whole *= rows\n", "            pass\n",
        "what is missing moves no second moment", "test_left_out.py::test_what_is_released_is_that_of_the_records_that_have_it[covariate]",
    ),
    Mutant(
        "a record that may be left out costs as one that comes or goes", "plans/cells.py", 'times = 1 if moves == "free" else 2',
        'times = 2 if moves == "simplex" else 1', "one record in another's place moves what both bring",
        "test_left_out.py::test_no_record_moves_more_than_is_paid_for[coins-replace]",
    ),
    Mutant(
        "second moments move in place only", "families/second_moments.py", "2 if moves else 1)", "1)",
        "a record moves in both cells", "test_proofs.py::test_second_moments",
    ),
    Mutant(
        "second moments of what may be left out cost nothing for it", "families/second_moments.py", "Sensitivity(max(cells * norm, in_place)",
        "Sensitivity(max((cells - 1) * norm, in_place)", "a record that is left out brings nothing",
        "test_left_out.py::test_no_record_moves_more_than_is_paid_for[covariate-replace]",
    ),
    Mutant(
        "a missing covariate leaves nothing out", "releases/statistics.py", "if placeholder.private and placeholder.name in left_out and",
        "if placeholder.private and placeholder.name in () and", "a record whose covariate is missing brings nothing",
        "test_left_out.py::test_what_is_released_is_that_of_the_records_that_have_it[covariate]",
    ),
    Mutant(
        "a vector is left out where all of it is missing", "releases/statistics.py", "entries).any(axis=2)", "entries).all(axis=2)",
        "a vector with a hole brings nothing", "test_left_out.py::test_a_vector_with_a_hole_is_left_out_whole",
    ),
    Mutant(
        "the middle for the level", "releases/statistics.py", "Domain(lower[k], upper[k], fill=fill)", "Domain(lower[k], upper[k])",
        "a missing value counts as the level that was declared", "test_left_out.py::test_levels_that_stand_for_missing_values",
    ),
    Mutant(
        "draws of records that are left out", "plans/rowwise.py", "(by_column if kept is None else pt.switch(kept, by_column, 0.0))", "by_column",
        "what is left out moves no score", "test_draws.py::test_records_that_are_left_out_bring_nothing[replace-coin]",
    ),
    Mutant(
        "cells are told of where their number of records is private", "releases/cells.py", 'counted = self.planned.sizes != "free" and not',
        "counted = not", "no warning rests on a private number of records", "test_hints.py::test_the_warning_rests_on_no_record",
    ),
    Mutant(
        "missing values are told of where all are declared only", "plans/missing.py", "if not names or set(names) - set(missing):", "if False:",
        "what counts as what is said", "test_left_out.py::test_what_is_not_declared_is_said_once_and_for_all",
    ),
    Mutant(
        "two records in one row share every split", "plans/network.py", "max(len(some ^ other) for some in halves for other in halves)",
        "max(len(some - other) for some in halves for other in halves)", "a posterior draw costs the range of its scores",
        "test_proofs.py::test_draws_of_tables[replace]",
    ),
    # ---------- looked at before anything is paid for
    Mutant(
        "PyMC's own variables of what is missing", "private_models/settings.py",
        "priors = priors_of(spec)\n    unknowns = [priors[variable.name] for variable in model.free_RVs if variable.name in names]",
        "priors = model\n    unknowns = [variable for variable in model.free_RVs if variable.name not in spec.dropped]",
        "no refusal rests on a record", "test_free_of_records.py::test_no_private_index_is_in_a_refusal",
    ),
    Mutant(
        "products by BLAS", "releases/statistics.py", "list(map(products_as_sums, features))", "list(features)",
        "a record moves no other's rounding", "test_leaks.py::test_a_record_that_goes_moves_no_other_s_rounding[matmul]",
    ),
    Mutant(
        "labels of any kind", "plans/naming.py", "if labels and not any(", "if False and not any(", "what draws cost is not lost to labels",
        "test_free_of_records.py::test_labels_that_no_tree_can_hold_at_doors_of_draws[tuples-draw]",
    ),
    Mutant(
        "attributes of partials", "models/opaque.py", "self._several([thing.func, thing.args, thing.keywords, vars(thing)])",
        "self._several([thing.func, thing.args, thing.keywords])", "functions hold no records",
        "test_opaque.py::test_what_stands_beside_a_function_is_looked_at[noted_partial]",
    ),
    Mutant(
        "docstrings of any length", "models/opaque.py", "        if reason := self._docstring(function.__doc__):\n            return reason\n", "",
        "functions hold no records", "test_opaque.py::test_what_stands_beside_a_function_is_looked_at[documented_function]",
    ),
    Mutant(
        "names in the order of a set", "models/problems.py", "for name in sorted({*model.named_vars, *model.coords} - arrays.imputed):",
        "for name in {*model.named_vars, *model.coords} - arrays.imputed:", "the order of words tells nothing",
        "test_free_of_records.py::test_problems_come_in_the_order_of_names",
    ),
    # ---------- all rows of a person
    Mutant(
        "bytes are no text", "families/values.py", "        if issubclass(kind, bytes) and", "        if kind is None and",
        "no value is read otherwise because another is bytes", "test_person_types.py::test_one_value_of_bytes_moves_one_record[NumPy]",
    ),
    Mutant(
        "Arrow's bytes are no text", "releases/stored.py", "    return text or types.is_binary(kind)", "    return text or False and types.is_binary(kind)",
        "no value is read otherwise because another is bytes", "test_person_types.py::test_one_value_of_bytes_moves_one_record[Arrow]",
    ),
    Mutant(
        "polars' bytes name nobody", "releases/person_names.py", "    if kind in (pl.String, pl.Binary):\n", "    if kind == pl.String:\n",
        "a person's name takes nobody else's", "test_person_types.py::test_an_odd_name_takes_nobody_s_name[polars-texts]",
    ),
    Mutant(
        "bytes of a database are no text", "releases/duck.py", '("varchar", "enum", "blob")', '("varchar", "enum")',
        "a person's name takes nobody else's", "test_person_types.py::test_an_odd_name_takes_nobody_s_name[DuckDB-texts]",
    ),
    Mutant(
        "a number of a text file has as many names as ways to write it", "releases/persons.py",
        '        whole = _whole(found[2] or "0") * (-1 if found[1] == "-" else 1)\n', "        return text\n",
        "one word in a file of text is one person's name", "test_person_types.py::test_one_person_of_a_text_file_moves_the_sums_by_what_is_paid_for[a word]",
    ),
    Mutant(
        "names with an exponent are texts", "releases/persons.py", "return float(alone) if EXPONENT.fullmatch(alone) else text", "return text",
        "one word in a file of text is one person's name", "test_person_types.py::test_an_odd_name_takes_nobody_s_name[pandas, CSV-exponents]",
    ),
    Mutant(
        "no name at all is a name beside a word", "releases/persons.py", "    if small in TRUTHS or small in NOBODY:\n", "    if small in TRUTHS:\n",
        "one word in a file of text is one person's name", "test_person_types.py::test_an_odd_name_takes_nobody_s_name[Arrow, CSV-missing in files]",
    ),
    Mutant(
        "large numbers are names in types that lose them", "plans/person.py",
        '    return not isinstance(getattr(kind, "subtype", kind), np.dtype) and str(kind) != "str"\n', "    return True\n",
        "a missing name decides nothing about other people", "test_person_types.py::test_an_odd_name_takes_nobody_s_name[pandas, CSV-large]",
    ),
    Mutant(
        "arrays of large numbers are names", "releases/persons.py", "records, declared=person.declared)", "records)",
        "a name that is missing decides nothing about other people", "test_person_types.py::test_one_name_that_is_missing_in_an_array_moves_nobody_s_rows",
    ),
    Mutant(
        "all names missing are no names", "releases/person_names.py", "    return types.is_null(kind) or names_persons(kind)\n",
        "    return names_persons(kind)\n", "whether anybody has a name does not show",
        "test_person_types.py::test_a_column_whose_names_are_all_missing_is_a_column",
    ),
    Mutant(
        "numbers in sixteens are missing", "families/values.py", "if (number := number_of_bits(text)) is None else float(number)", "",
        "no record decides how others of its column are read",
        "test_data.py::test_one_record_that_is_no_number_changes_no_other_of_a_file_of_text[Arrow]",
    ),
    Mutant(
        "names in sixteens are texts", "releases/persons.py", "    if (number := number_of_bits(alone)) is not None:\n", "    if False:\n",
        "one word in a file of text is one person's name", "test_person_types.py::test_an_odd_name_takes_nobody_s_name[Arrow, CSV-sixteens]",
    ),
    Mutant(
        "dates of a file are read", "releases/headers.py", 'dataset.variables[name].dtype.kind not in "biuf":', 'dataset.variables[name].dtype.kind not in "biufmM":',
        "no value makes a release fail", "test_person_types.py::test_dates_in_a_file_are_not_read",
    ),
    Mutant(
        "names of people as an array of NumPy", "plans/person.py", "        entries = _entries(entries)\n", "        entries = np.asarray(entries)\n",
        "a missing name decides nothing about other people",
        "test_persons.py::test_a_missing_name_decides_nothing_about_other_people[polars]",
    ),
    Mutant(
        "all rows of a person at the price of one", "families/family.py",
        "Sensitivity(self.difference * rows, self.square * rows**2, self.largest, why)",
        "Sensitivity(self.difference, self.square, self.norm, why)", "no person moves more than is paid for",
        "test_persons.py::test_no_person_moves_more_than_is_paid_for[coins-replace]",
    ),
    Mutant(
        "rows of a person as if they were apart in L2", "families/family.py", "self.square * rows**2, self.largest, why)",
        "self.square * rows, self.norm, why)", "all rows of a person may move one sum",
        "test_persons.py::test_no_person_moves_more_than_is_paid_for[coins-add_remove]",
    ),
    Mutant(
        "scores of a person at the price of one row", "plans/statistic.py",
        "return tuple(sensitivity.of_rows(self.at_most or 1) for sensitivity in rounds)", "return tuple(rounds)",
        "every round pays for all rows of a person",
        "test_persons.py::test_scores_of_a_person_move_no_more_than_is_paid_for_in_every_round[add_remove]",
    ),
    Mutant(
        "an exchange of people at the price of one who goes", "plans/plan.py",
        "exchanged = person is not None and neighbours == \"replace\"", "exchanged = False", "both people's rows are paid for",
        "test_persons.py::test_no_person_moves_more_than_is_paid_for[coins-replace]",
    ),
    Mutant(
        "every row of a person counts", "releases/persons.py", "counted & (many[persons] > at_most)", "counted & (many[persons] < 0)",
        "no more rows count than are paid for", "test_persons.py::test_no_person_moves_more_than_is_paid_for[coins-add_remove]",
    ),
    Mutant(
        "which rows count rests on how many there are", "releases/persons.py", "drawn = _hashes(contents, place)",
        "drawn = _hashes(contents, place + len(many))", "another person changes nothing of what counts of one",
        "test_persons.py::test_which_rows_of_a_person_count_rests_on_no_other_person",
    ),
    Mutant(
        "rows are chosen by the order in which they come", "releases/persons.py", "np.lexsort(contents.T[::-1])",
        "np.lexsort(contents.T[1::-1])", "every order of rows gives the same release",
        "test_persons.py::test_no_order_of_rows_decides_what_counts",
    ),
    Mutant(
        "rows that say the same count together or not at all", "releases/persons.py", "drawn = _hashes(contents, place)",
        "drawn = _hashes(contents, 0 * place)", "the rows that count are a fair sample",
        "test_persons.py::test_every_pair_of_rows_counts_as_often",
    ),
    Mutant(
        "names of so many digits only", "releases/persons.py", "    return f\"number {value:x}\".encode()\n\n", "    return f\"number {value:d}\".encode()\n\n",
        "no name stops a release", "test_persons.py::test_rows_of_nobody_do_not_count_and_nothing_raises",
    ),
    Mutant(
        "names that decide on a shape", "plans/person.py", "        key = np.empty(len(entries), dtype=object)\n",
        "        return np.array(entries, dtype=object)\n        key = np.empty(len(entries), dtype=object)\n",
        "no name decides whether a key is accepted", "test_persons.py::test_no_name_of_a_list_decides_whether_it_is_accepted[names2]",
    ),
    Mutant(
        "rows without a name count", "releases/persons.py", "counted = (whose != 0).any(axis=1)",
        "counted = np.ones(len(whose), dtype=bool)", "a row of nobody is in nobody's promise",
        "test_persons.py::test_rows_of_nobody_do_not_count_and_nothing_raises",
    ),
    Mutant(
        "doubles are other people than whole numbers", "releases/persons.py",
        "return f\"number {int(value):x}\".encode() if value.is_integer() else f\"number {value!r}\".encode()",
        "return f\"number {value!r}\".encode()", "a missing name elsewhere changes nothing of what counts of one",
        "test_persons.py::test_the_same_names_in_other_types_are_the_same_people",
    ),
    Mutant(
        "the number of rows of people is public", "privacy/accounting.py",
        "return neighbours == \"replace\" and not str(unit).startswith(ALL_ROWS)", "return neighbours == \"replace\"",
        "how many rows people have is private", "test_persons.py::test_neighbours_look_alike[effects-replace]",
    ),
    Mutant(
        "covariates of a person's rows are public", "plans/plan.py", "    if person is not None and public:", "    if False and public:",
        "which rows there are is private", "test_persons.py::test_refusals_come_before_anything_is_spent",
    ),
    Mutant(
        "people where single rows are protected", "plans/protection.py", "    if isinstance(unit, Person) and not persons:",
        "    if False and not persons:", "no door claims more than it does", "test_persons.py::test_refusals_come_before_anything_is_spent",
    ),
    Mutant(
        "a posterior of single rows for people", "posterior/draws.py",
        "(protection.person is not None and not isinstance(request, PosteriorSample))", "False", "no door claims more than it does",
        "test_persons.py::test_refusals_come_before_anything_is_spent",
    ),
    Mutant(
        "Fourier coefficients of people at the price of rows", "releases/network_tables.py",
        "    if whole.protection.person is not None:\n        name", "    if False:\n        name", "no person moves more than is paid for",
        "test_persons.py::test_refusals_come_before_anything_is_spent",
    ),
    Mutant(
        "a key that stays in a prior", "plans/person.py", "    if stays or (", "    if (", "whose the rows are does not leave",
        "test_persons.py::test_refusals_come_before_anything_is_spent",
    ),
    Mutant(
        "words that sound like a person are charged as one", "privacy/ledger.py", "unit.startswith((\"Individual(\", ALL_ROWS))",
        "unit.startswith(\"Individual(\")", "costs that are added up protect the same",
        "test_persons.py::test_a_ledger_of_persons_is_one_of_persons_only",
    ),
    Mutant(
        "people in several parts pay for one", "privacy/ledger.py", "        if names and _relation(unit).startswith(ALL_ROWS):",
        "        if False and _relation(unit).startswith(ALL_ROWS):", "a person may have rows in several parts",
        "test_persons.py::test_a_ledger_of_persons_is_one_of_persons_only",
    ),
    Mutant(
        "variables of other rows have one key", "plans/person.py", "    if len(spec.on_one_axis) > 1:", "    if False:",
        "row k of both is one row", "test_persons.py::test_refusals_come_before_anything_is_spent",
    ),
    Mutant(
        "people are asked about at the price of rows", "queries/language.py",
        "low, high = at_most * min(low, 0), at_most * max(high, 0)", "low, high = min(low, 0), max(high, 0)",
        "no person moves more than a session pays", "test_session_persons.py::test_no_person_moves_more_than_the_session_pays[add_remove]",
    ),
    Mutant(
        "a person who goes without another coming", "queries/language.py",
        "low, high = at_most * min(low, 0), at_most * max(high, 0)", "low, high = at_most * low, at_most * high",
        "how many rows people have is private", "test_session_persons.py::test_no_person_moves_more_than_the_session_pays[replace]",
    ),
    Mutant(
        "a session of people costs what one of rows does", "queries/history.py", "cost_of_load = spent.tick * (at_most or 1)", "cost_of_load = spent.tick",
        "no person moves more than a session pays", "test_session_persons.py::test_the_cost_is_that_of_the_dearest_person",
    ),
    Mutant(
        "every row of a person is asked about", "queries/persons.py", "return cells[counted_rows(whose, at_most, [cells])]", "return cells",
        "no more rows count than are paid for", "test_session_persons.py::test_every_holder_of_a_table_keeps_the_same_rows",
    ),
    Mutant(
        "rows of a person by the columns of one question", "queries/persons.py", "return cells[counted_rows(whose, at_most, [cells])]",
        "return cells[counted_rows(whose, at_most, [cells[:, :1]])]",
        "every holder and order keeps the same rows", "test_session_persons.py::test_every_holder_of_a_table_keeps_the_same_rows",
    ),
    Mutant(
        "every block by itself", "releases/from_data.py", "blocks_that_count(of_part(blocks, *persons), at_most):",
        "(kept for block in of_part(blocks, *persons) for kept in blocks_that_count([block], at_most)):", "no more rows count than are paid for",
        "test_person_data.py::test_every_source_order_and_chunking_is_the_model_that_observes_the_records",
    ),
    Mutant(
        "people dealt by what their rows say", "releases/person_blocks.py", "(rows[:, 0] >> np.uint64(56))", "(rows[:, -1] >> np.uint64(56))",
        "all rows of a person are looked at together",
        "test_person_data.py::test_every_source_order_and_chunking_is_the_model_that_observes_the_records",
    ),
    Mutant(
        "tables of people at the price of rows", "posterior/tables.py",
        "sensitivity = rows * splits_of(node, task.neighbours) * grid.range", "sensitivity = splits_of(node, task.neighbours) * grid.range",
        "no person moves more than is paid for", "test_person_tables.py::test_no_person_moves_scores_by_more_than_is_paid_for[add_remove]",
    ),
    Mutant(
        "all rows of people in their tables", "posterior/tables.py", "values, network, counted, alike=False)",
        "values, network, alike=False)", "no more rows count than are paid for",
        "test_person_tables.py::test_draws_are_those_of_the_rows_that_count",
    ),
    Mutant(
        "a database groups whatever there is", "releases/duck.py", "int(most) - int(least) + 2", "2",
        "what a record holds does not fill memory or a disk", "test_duck.py::test_values_that_lie_far_apart_are_read_one_by_one",
    ),
    Mutant(
        "columns that are computed anew", "releases/headers.py", "sql ILIKE '%GENERATED ALWAYS AS%'", "false", "a record moves no other",
        "test_duck.py::test_columns_that_are_computed_anew_are_refused[nextval('place') % 2]",
    ),
    Mutant(
        "a database that answers for DuckDB", "releases/headers.py", "FROM system.main.{what}", "FROM {what}",
        "what is read is what DuckDB reads", "test_duck.py::test_no_macro_hides_itself[hidden0]",
    ),
    Mutant(
        "a file says what a database was asked", "releases/duck.py", "current_setting('enable_progress_bar') OR coalesce(current_setting('log_query_path'), '') <> ''",
        "current_setting('enable_progress_bar')", "nothing shows how rows are read",
        "test_duck.py::test_a_file_of_questions_does_not_say_how_far_apart_values_lie",
    ),
    Mutant(
        "a database counts without memory", "releases/duck.py", "_tells(relation) or not _has_room(relation)", "_tells(relation)",
        "no release fails because of a record", "test_duck.py::test_what_a_release_does_without_memory_rests_on_no_record[many threads]",
    ),
    Mutant(
        "a digit counts for itself", "releases/from_data.py", "for name, values in rows.items()}, 2**digit", "for name, values in rows.items()}, digit + 1",
        "what a database counts is what is in the table", "test_duck.py::test_counted_rows_have_the_sums_of_rows_that_are_read[0-replace]",
    ),
    Mutant(
        "a bar tells whether rows were counted", "releases/from_data.py", "distinct = None if progressbar else source.distinct()",
        "distinct = source.distinct()", "nothing shows how rows are read", "test_duck.py::test_rows_of_persons_and_rows_with_a_bar_are_read_one_by_one",
    ),
    Mutant(
        "all rows of a person are counted", "releases/source.py", "if self.key is not None or not is_one(", "if not is_one(",
        "no more rows of a person count than are paid for", "test_duck.py::test_rows_of_persons_and_rows_with_a_bar_are_read_one_by_one",
    ),
    # ---------- published numbers of records
    Mutant(
        "a noisy number of records that tells nothing", "private_models/likelihood.py",
        "return pm.logp(noise, value[..., 0] - unit * arguments[many]) +", "return 0.0 * value[..., 0] +",
        "a published number of records is read with its noise",
        "test_sums_of_unknown_number.py::test_a_number_far_off_loses_what_its_noise_says[LaplaceNoise]",
    ),
    Mutant(
        "noise on a number of records in the units of another cell", "private_models/likelihood.py",
        "unit, many = noisy.combination[..., 0, 0], len(parameters)", "unit, many = noisy.combination[:1, 0, 0], len(parameters)",
        "the noise of each published number of records is its own",
        "test_sums_of_unknown_number.py::test_given_their_number_sums_have_their_law_and_the_number_its_noise[LaplaceNoise-of_number0]",
    ),
    # ---------- laws of OpenDP
    Mutant(
        "noise that is cut off read as noise that is not", "publications/opendp_laws.py", 'law is None or given.get("bounds") is not None', "law is None",
        "an OpenDP measurement is read as what it does, or refused",
        "test_opendp_laws.py::test_what_does_more_than_add_noise_is_refused[bounds]",
    ),
    Mutant(
        "whole numbers taken for real ones", "publications/opendp_laws.py", "law = KINDS[made][types[0] in REAL]", "law = KINDS[made][types[0] in WHOLE]",
        "noise of an OpenDP measurement is discrete on whole numbers only",
        "test_opendp_laws.py::test_whole_numbers_are_released_as_the_law_says[make_laplace]",
    ),
    # ---------- exact conditional draws
    Mutant(
        "a form is taken for granted", "gibbs/conjugate.py", "    if not most <= TOLERANCE:", "    if np.isnan(most):",
        "a model of another form is an error, not a wrong draw",
        "test_conjugate.py::test_a_model_that_changed_its_form_is_an_error_and_not_a_wrong_draw",
    ),
    Mutant(
        "what is no number is no misfit", "gibbs/conjugate.py", "float(np.append(off, off_values).max())",
        "max(float(off.max()), float(off_values.max()))", "a variable that ends somewhere is not drawn beyond",
        "test_conjugate.py::test_what_has_no_such_form_is_left_to_another_step[truncated_by_a_potential]",
    ),
    Mutant(
        "counts drawn as if there were no noise", "gibbs/loops.py", "return noise * odds / (s + 1)", "return odds / (s + 1)",
        "counts behind released ones have their conditional law",
        "test_conjugate.py::test_latent_counts_are_drawn_from_their_conditional_law[7-12-0.5-laplace]",
    ),
    Mutant(
        "a state drawn without the one before", "gibbs/loops.py", "weight = beliefs[s, k] * (whole[table[s], j, k] if j >= 0 else 1.0)",
        "weight = beliefs[s, k]", "states are drawn from their joint law",
        "test_gibbs.py::test_the_quick_sweep_draws_what_the_careful_one_does_or_nothing[1.0-False]",
    ),
    Mutant(
        "probabilities that do not add up", "models/probabilities.py", "not np.allclose(totals, 1)", "False",
        "probabilities of levels add up to 1 along the last axis",
        "test_probabilities.py::test_probabilities_that_do_not_add_up_are_refused[Categorical-no softmax]",
    ),
    Mutant(
        "labels of a refused model", "plans/inspection.py", "labels = {} if refused else ", "labels = ",
        "what is refused shows no labels of records", "test_row_patterns.py::test_a_refused_model_shows_no_labels_of_records",
    ),
    Mutant(
        "rows that overlap", "models/row_patterns.py", "place = place * many + np.rint", "place = place + np.rint",
        "every row of values has a count of its own", "test_row_patterns.py::test_rows_are_named_in_the_order_of_their_counts",
    ),
    Mutant(
        "an unknown of the mean record", "models/row_patterns.py", "mean + deviation * nodes[:, None]",
        "mean + 0 * deviation * nodes[:, None]", "an unknown of every record's own is summed out",
        "test_row_patterns.py::test_rows_have_the_probability_that_a_finer_sum_gives_them[one_parameter]",
    ),
    Mutant(
        "an unknown above two observed variables", "models/row_patterns.py", "if len(mine) > 1 or len(theirs) > 1:", "if len(mine) > 1:",
        "an unknown of every record's own is summed out",
        "test_row_patterns.py::test_what_cannot_be_summed_out_is_refused[with_two_of_them]",
    ),
    Mutant(
        "rows that a database counted count once in a network's tables", "releases/from_data.py", "whole[name] += times * table",
        "whole[name] += table", "every row counts in the tables of a network",
        "test_network_data.py::test_tables_of_every_source_are_those_of_the_model_that_observes_the_records[levels-replace-fourier]",
    ),
    Mutant(
        "a table that changes between two rounds", "releases/from_data.py",
        'if any(cells.planned.sizes != "free" and int(cells.cells.n.sum()) != read for cells in opened):', "if read < 0:",
        "what is released is of the records that were counted",
        "test_rounds_data.py::test_a_table_that_has_other_rows_in_a_later_round_is_released_only_where_their_number_is_private[replace]",
    ),
    Mutant(
        "a later round of scores at the first anchor", "releases/rounds.py",
        "        cells = cells.at(there.reshape(anchor.shape))\n", "",
        "scores are taken where the round before puts the coefficients",
        "test_rounds_data.py::test_noise_is_added_to_what_every_round_reads",
    ),
    Mutant(
        "all rows of a person count in draws", "posterior/tables.py", "tables_over(opened, network, source, at_most, sized",
        "tables_over(opened, network, source, sized", "of a person at most so many rows count",
        "test_network_data.py::test_draws_are_those_of_the_model_that_observes_the_records[replace-person]",
    ),
    Mutant(
        "draws of tables that forget a transform", "posterior/tables.py", "if is_constrained(variable):", "if False:",
        "draws have the law of the posterior that the model says",
        "test_draws.py::test_refusals_come_before_anything_is_spent[within_a_part-arguments8-sort what was drawn]",
    ),
    Mutant(
        "a plan of unknowns in no order", "planning/records.py", "v.owner.op.name in rest and is_constrained(v)", "False",
        "a plan draws unknowns from the priors that the model has",
        "test_plan.py::test_an_order_that_draws_from_the_prior_do_not_keep_is_assumed_or_refused",
    ),
    Mutant(
        "one component for many weights", "models/tabulated.py",
        "return tuple(p + pt.expand_dims(none, tuple(range(-core, 0))) for p, core in zip(parameters, cores, strict=True))",
        "return tuple(parameters)", "what a mixture draws where only its weights differ between groups",
        "test_prior_check.py::test_weights_of_a_mixture_may_differ_between_groups_where_its_components_do_not",
    ),
    Mutant(
        "an unknown of every record's own that is in an order", "models/row_patterns.py", "if own[mine[0]] is not None:", "if False:",
        "rows of an unknown that a transform keeps in an order are answered for one that has none",
        "test_row_patterns.py::test_what_cannot_be_summed_out_is_refused[in_an_order]",
    ),
    Mutant(
        "points too far apart for a wide unknown", "models/row_patterns.py", "<= INEXACT * closer[likely]", "<= np.inf",
        "probabilities of rows are of a sum that is not exact, without a word",
        "test_row_patterns.py::test_what_cannot_be_summed_out_is_refused[too_wide]",
    ),
    Mutant(
        "probabilities beyond 1 summed over", "models/row_patterns.py", "except ParameterValueError:", "except ZeroDivisionError:",
        "an unknown of every record's own is summed out", "test_row_patterns.py::test_what_cannot_be_summed_out_is_refused[beyond_one]",
    ),
    Mutant(
        "chains of an order that are paid for and fail", "posterior/markov.py", "is_constrained(unknown.variable)", "False",
        "refusals come before anything is spent",
        "test_draws.py::test_refusals_come_before_anything_is_spent[in_order-arguments7-sort what was drawn]",
    ),
    Mutant(
        "points too far apart for many trials", "models/row_patterns.py", "STEP / np.sqrt(trials)", "STEP",
        "an unknown of every record's own is summed out",
        "test_row_patterns.py::test_rows_have_the_probability_that_a_finer_sum_gives_them[many_trials]",
    ),
    # ---------- variables of other records, and chains that may fail
    Mutant(
        "variables of other records drawn together", "posterior/records.py", "        if not sized:\n            check_same_records",
        "        if False:\n            check_same_records", "a record costs the same whichever variables it comes to",
        "test_own_records.py::test_what_need_not_be_one_record_is_not_drawn_together[many3-exact]",
    ),
    Mutant(
        "what a variable lacks is counted", "posterior/tables.py", "counted, alike=False)", "counted)",
        "a record costs the same whichever variables it comes to",
        "test_own_records.py::test_one_more_of_a_shorter_variable_costs_no_more_than_one_of_all[answers]",
    ),
    Mutant(
        "coefficients of variables of other records", "releases/from_records.py", "if source is None and not whole.protection.sized:",
        "if False:", "a record costs the same whichever variables it comes to",
        "test_own_records.py::test_coefficients_are_of_variables_of_the_same_records",
    ),
    Mutant(
        "memory of arrays without records", "models/record_axes.py", "or (sized and any(", "or (True and any(",
        "the number of records does not show",
        "test_disjoint.py::test_whether_arrays_share_memory_shows_no_private_number_of_records[columns-people]",
    ),
    Mutant(
        "arrays without names of disjoint people", "plans/disjoint.py", "if not sized and len(unsure", "if False and len(unsure",
        "one record is not charged as if it were in one variable only",
        "test_disjoint.py::test_whether_arrays_share_memory_shows_no_private_number_of_records[one-disjoint]",
    ),
    Mutant(
        "chains that fail where records lead them", "posterior/markov.py", "    _check_total(reading.spec)\n", "",
        "whether a chain fails tells nothing of records",
        "test_draws.py::test_no_chain_fails_because_of_where_records_lead_it[Potential]",
    ),
    Mutant(
        "indices that chains may put outside a table", "posterior/markov.py", "        return not any(unknown[1:])\n", "        return True\n",
        "whether a chain fails tells nothing of records",
        "test_draws.py::test_no_chain_fails_because_of_where_records_lead_it[index]",
    ),
    Mutant(
        "checks of what a chain passes through", "posterior/markov.py", "initvals=starts, var_names=names,", "initvals=starts,",
        "whether a chain fails tells nothing of records",
        "test_draws.py::test_a_chain_evaluates_no_check_of_what_it_passes_through[Deterministic]",
    ),
    # ---------- weights of a link, squares of few values, small counts that are not shown
    Mutant(
        "weights multiplied beyond what scores may be", "plans/moments.py",
        "max(min(INFORMATION[len(regression.names) > 2], int(1 / regression.scores.largest_weight)), 1), 1",
        "INFORMATION[len(regression.names) > 2], 1", "with a log link no weight costs more than a score does",
        "test_multipliers.py::test_the_information_of_a_log_link_is_multiplied_up_to_what_scores_may_be[1-2-2]",
    ),
    Mutant(
        "weights of many features multiplied as those of one", "plans/moments.py", "min(INFORMATION[len(regression.names) > 2], ",
        "min(INFORMATION[0], ", "with a link weights are multiplied by less where there are more of them",
        "test_multipliers.py::test_the_information_of_a_log_link_is_multiplied_up_to_what_scores_may_be[3-1-2]",
    ),
    Mutant(
        "squares about another mean than that of the values", "laws/squares.py", "r = second - steep * A - curve * A**2",
        "r = second - steep * A", "squares of few normal values have their own law",
        "test_law.py::test_sums_of_few_normal_values_and_their_squares_are_normal_and_chi_square[3-0.02-True]",
    ),
    Mutant(
        "squares of no record have a law", "laws/squares.py", "if n[i] < 1:", "if n[i] < 0:", "a cell without records tells nothing",
        "test_law.py::test_a_cell_without_records_tells_nothing",
    ),
    Mutant(
        "the sum of few values on one side of its noise", "laws/squares.py", "for side in range(2):", "for side in range(1):",
        "squares of few normal values have their own law",
        "test_law.py::test_sums_of_few_normal_values_and_their_squares_are_normal_and_chi_square[8-0.2-False]",
    ),
    Mutant(
        "a gamma variable without a slope", "laws/squares.py", "means[2] - digamma(shape[i])", "means[2]",
        "derivatives are those of the density", "test_kernels.py::test_derivatives_are_those_of_the_values[squares_plus_noise-11]",
    ),
    Mutant(
        "hidden counts behind rows that are shown", "publications/windows.py",
        "np.where((counts >= first[tuple(row)]) & (counts <= last[tuple(row)]), 0.0, shown.table[at : at + many])",
        "shown.table[at : at + many]", "of a row that is shown the true count is none of those that are not",
        "test_suppressed.py::test_rows_are_as_probable_as_enumeration_says[Poisson-laplace]",
    ),
    Mutant(
        "the largest hidden count is shown", "publications/windows.py", "np.ones(last[tuple(row)] - first[tuple(row)] + 1)",
        "np.ones(last[tuple(row)] - first[tuple(row)])", "of a row that is not shown every count between the ends is possible",
        "test_suppressed.py::test_ends_by_row_and_rounding_afterwards",
    ),
    Mutant(
        "a row that would not have been shown", "publications/windows.py", "if not (weights[counts >= 0] > 0).any():", "if False:",
        "a published number that no count can have been published as is refused",
        "test_suppressed.py::test_what_is_not_understood_is_refused[a row that would not be shown]",
    ),
    Mutant(
        "small noisy counts taken for small true ones", "publications/events.py",
        "if any(isinstance(step, Suppressed) for step in later):", "if False:",
        "what is suppressed before the noise and after it is told apart",
        "test_suppressed.py::test_what_is_not_understood_is_refused[after the noise]",
    ),
    # ---------- columns with bounds of their own
    Mutant(
        "every outcome within the bounds of the first", "releases/totals.py",
        "lower, upper = planned.domain.columns[column]", "lower, upper = planned.domain.columns[0]",
        "every outcome of a regression is released as a variable of its own is",
        "test_columns_of_regressions.py::test_every_column_is_released_as_a_variable_of_its_own_is[private]",
    ),
    Mutant(
        "an intercept in the units of the user", "private_models/rewrite.py", "middle[..., None] * of_intercept", "0 * of_intercept",
        "outcomes have the law that they have in units of their own",
        "test_columns_of_regressions.py::test_the_law_is_that_of_outcomes_that_are_scaled_before[private-True]",
    ),
    Mutant(
        "outcomes expected within the bounds of all", "releases/division.py", "if columns else (regression", "if False else (regression",
        "epsilon is divided as outcomes in units of their own need it",
        "test_columns_of_regressions.py::test_epsilon_is_divided_as_among_outcomes_that_are_scaled_before",
    ),
    Mutant(
        "columns of a draw within the bounds of the first", "plans/rowwise.py",
        "return domain.columns or (", "return (domain.columns[0],) * many if domain.columns else (",
        "a draw from the posterior costs what a record can do within the bounds of its columns",
        "test_bounds_of_columns.py::test_scores_and_cost_are_those_of_variables_of_their_own[reals-replace]",
    ),
    Mutant(
        "a column is moved into the bounds of all", "families/family.py", "    if domain.columns:\n", "    if False:\n",
        "every value is moved into the bounds of its own column",
        "test_bounds_of_columns.py::test_no_two_records_are_further_apart_than_is_paid_for[reals]",
    ),
    Mutant(
        "published sums of all columns in units of the first", "publications/sums_of_cells.py",
        "for part in parts]  # of two", "for part in parts[:1] * len(parts)]  # of two",
        "a published sum is in the units of its column",
        "test_sums_by_column.py::test_sums_of_columns_are_those_of_variables_of_their_own[Normal-False]",
    ),
    # ---------- what one record could make fail
    Mutant(
        "priors asked of the whole model", "private_models/settings.py", "priors = priors_of(spec)", "priors = model",
        "nothing is said of records before they are paid for",
        "test_leaks.py::test_nothing_is_said_of_records_where_chains_would_start[rows_of_a_table]",
    ),
    Mutant(
        "a name read at once, however many digits it has", "releases/persons.py", '_whole(found[2] or "0")', 'int(found[2] or "0")',
        "no name makes a release fail", "test_persons.py::test_no_limit_of_digits_decides_whose_a_row_is",
    ),
    Mutant(
        "a database groups the cells of a question", "queries/table.py",
        "    for batch in batches_from(found):\n        np.add.at(numbers, batch.column(0).to_numpy(), 1)\n",
        '    for batch in batches_from(found.aggregate("cell, count(*)", "cell")):\n'
        "        np.add.at(numbers, batch.column(0).to_numpy(), batch.column(1).to_numpy())\n",
        "how many cells occur decides nothing",
        "test_tables.py::test_a_database_without_memory_answers_however_many_cells_occur",
    ),
    # ---------- what a release is taken for
    Mutant(
        "the one count of two levels taken for that of the first", "queries/from_release.py",
        "counted_values = [int(match[1]) for match in matches if match is not None]", "counted_values = list(range(len(matches)))",
        "an answer is the count that it is said to be",
        "test_added_releases.py::test_counts_are_of_the_levels_that_they_are_said_to_be[2-replace]",
    ),
    Mutant(
        "levels that a release does not tell are let pass", "queries/from_release.py",
        "if private and len(known) < len(column.levels):", "if False:", "an answer is the count that it is said to be",
        "test_added_releases.py::test_a_release_that_counts_one_level_as_another_is_refused[index]",
    ),
    Mutant(
        "an index of one level taken for public", "queries/from_release.py", " or (codes == codes[0, 0]).all())", ")",
        "an answer is the count that it is said to be",
        "test_added_releases.py::test_a_release_that_counts_one_level_as_another_is_refused[one_row]",
    ),
    Mutant(
        "texts counted in the order of the schema", "queries/from_release.py", "    order = orders.get(column.name)\n",
        "    order = column.levels if column.kind == 'text' else None\n", "an answer is the count that it is said to be",
        "test_added_releases.py::test_text_is_counted_by_what_the_model_calls_it[levels-labels1]",
    ),
    Mutant(
        "a release of fewer records added", "queries/from_release.py", " and records is not None and (many", " and False and (many",
        "an answer is the count that it is said to be", "test_added_releases.py::test_a_release_of_other_records_is_refused",
    ),
    Mutant(
        "a computed index taken for a column", "queries/from_release.py", "if not all(may_be_an_array(told) for told in statistic.told if told):",
        "if False:", "an answer is the count that it is said to be",
        "test_added_releases.py::test_a_public_index_that_is_computed_is_no_column[less one]",
    ),
    Mutant(
        "labels in another order let pass", "private_models/matching.py", "was.index(label) != now.index(label)", "False",
        "a release belongs to one shape of model",
        "test_labels_of_levels.py::test_a_model_with_labels_in_another_order_takes_no_release[sites0-parties0-site_of]",
    ),
    Mutant(
        "the same people with other rows that count", "publications/federation.py", "if _whole_persons(first) != _whole_persons(other):", "if False:",
        "one true statistic behind two noisy ones is counted once",
        "test_federations.py::test_releases_in_which_other_rows_of_a_person_count_are_not_of_one_true_statistic",
    ),
    Mutant(
        "missing values that count as something else", "publications/federation.py", "elif _missing(first, other) != _missing(other, first):",
        "elif False:", "one true statistic behind two noisy ones is counted once",
        "test_federations.py::test_releases_in_which_missing_covariates_count_as_something_else_are_not_of_one_true_statistic",
    ),
    Mutant(
        "an index from the end of a holder's table", "publications/federation.py", "            if low < 0:\n", "            if low < -length:\n",
        "no level is taken for another", "test_federations.py::test_an_index_from_the_end_is_refused",
    ),
    Mutant(
        "labels along columns are not kept", "models/level_labels.py", "likelihood.name, *_axes(likelihood))", "likelihood.name)",
        "no column is taken for another",
        "test_labels_of_levels.py::test_numbers_and_what_stands_along_an_axis_have_labels_in_an_order_too[_columns-labels1]",
    ),
    Mutant(
        "labels of covariates are not kept", "models/level_labels.py", "            dims.setdefault(name, set()).update(of_name)\n", "            pass\n",
        "no covariate is taken for another",
        "test_labels_of_levels.py::test_numbers_and_what_stands_along_an_axis_have_labels_in_an_order_too[_product-labels5]",
    ),
    Mutant(
        "arrays in another order let pass", "private_models/matching.py", "    if was_common == now_common:\n", "    if True:\n",
        "no array is taken for another", "test_labels_of_levels.py::test_terms_in_another_order_are_another_model[True-public0]",
    ),
    Mutant(
        "labels of another array let pass", "private_models/matching.py", "if was and now and not set(was) & set(now) and was in several:", "if False:",
        "no array is taken for another", "test_labels_of_levels.py::test_terms_in_another_order_are_another_model[False-public2]",
    ),
    Mutant(
        "bounds beyond what an array holds", "models/spec.py", '        if not self.whole or self.variable.type.dtype == "bool":\n', "        if True:\n",
        "a value within bounds is read as itself", "test_data.py::test_bounds_beyond_the_whole_numbers_of_an_array_are_refused[bounds0]",
    ),
    Mutant(
        "dates that a reader guessed name nobody", "releases/person_names.py", "    if _is_of_times(table, name):\n", "    if False:\n",
        "one identifier does not decide whether all others count", "test_person_data.py::test_what_is_no_key_is_refused",
    ),
    # ---------- published numbers with labels
    Mutant(
        "labels of published numbers are not looked at", "publications/labelled.py", "if alike and not any(", "if False and not any(",
        "no number is taken for that of another row", "test_labelled_numbers.py::test_a_query_in_another_order_than_the_table_s_is_refused[rows of a frame-values]",
    ),
    Mutant(
        "labels of any axis will do", "publications/labelled.py", "if dims is None or dims[axis] in (None, dim) or dim.startswith(_beside(axis))]", "if True]",
        "no number is taken for that of another row", "test_labelled_numbers.py::test_a_query_in_another_order_than_the_table_s_is_refused[a frame turned-values]",
    ),
    Mutant(
        "axes in any order", "publications/labelled.py", "and list(names) != list(dims):", "and False:",
        "no number is taken for that of another row", "test_labelled_numbers.py::test_a_query_in_another_order_than_the_table_s_is_refused[named axes of a frame-values]",
    ),
    Mutant(
        "scales with labels are not looked at", "publications/published.py",
        'check_labels(f"what was done to {name}", step, model.coords', 'check_labels(f"what was done to {name}", step, {}',
        "no scale is taken for that of another row",
        "test_labelled_numbers.py::test_numbers_in_another_order_than_the_model_s_are_refused[rows of a frame-of_scales]",
    ),
    Mutant(
        "sums and numbers of records in two orders", "publications/sums.py",
        "        known |= labels_in(what, numbers)\n", "",
        "no sum is taken for that of another cell", "test_labelled_numbers.py::test_what_is_said_of_cells_is_in_one_order[n]",
    ),
    Mutant(
        "sums by two indices along any axis", "publications/sums.py", "    for likelihood in spec.likelihoods if cells is None else ():\n",
        "    for likelihood in ():\n", "no sum is taken for that of another cell",
        "test_labelled_numbers.py::test_sums_by_two_indices_have_their_axes_in_the_model_s_order[a frame turned-numbers]",
    ),
    Mutant(
        "bounds with labels are taken by their places", "families/limits.py", "and _has_labels(bounds):", "and False:",
        "no column is moved into the bounds of another",
        "test_by_column.py::test_bounds_that_are_written_otherwise_are_refused_and_what_is_named_works[a table with labels-a covariate]",
    ),
    Mutant(
        "what lies under a mask is a bound", "families/limits.py", "if np.ma.is_masked(bounds):", "if False:",
        "a bound is one that was written", "test_by_column.py::test_masked_bounds_are_none[a covariate]",
    ),
    Mutant(
        "masked sums of a table are read", "publications/table_queries.py", "if np.ma.is_masked(self.values):", "if False:",
        "what was not published says nothing", "test_labelled_numbers.py::test_masked_sums_of_a_table_were_not_published",
    ),
    Mutant(
        "a masked scale is read", "publications/noises.py",
        "return np.ma.filled(np.ma.asarray(value, dtype=float), np.nan)", "return np.asarray(value, dtype=float)",
        "what was not published says nothing", "test_labelled_numbers.py::test_a_setting_under_a_mask_is_none[scale]",
    ),
)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(MUTANTS))
