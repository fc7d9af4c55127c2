"""Write docs/proofs.md: of every sensitivity in the library how it is known, and what the proofs found, from the proofs themselves.

uv run docs/make_proofs.py
"""

import sys
from functools import cache
from itertools import groupby
from math import ceil, floor, log
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

import proofs  # noqa: E402 - it is with the tests
from proofs import once  # noqa: E402

from pymc_dp.queries.language import question  # noqa: E402


def share(value, declared):
    """Of what is declared: "all", or four digits, rounded down."""
    return "all" if ceil(value) == declared else f"{floor(10**4 * value / declared) / 10**4:.4f}"


def shares(verdicts):
    """What is proved and what is attained, of what is declared."""
    return " | ".join(f"{share(one.bound, one.declared)} / {share(one.attained, one.declared)}" for one in verdicts)


def one_value():
    """Lines for the statistics of one value, in place and with the count among them; once for all domains that say the same."""
    seen = set()
    for family, domain in proofs.examples():
        (L1, squared, _), (_, total, _, square) = once(proofs.of_one_value, family, domain), once(proofs.in_cells, family, domain)
        bounds, words = f"({domain.lower:.6g}, {domain.upper:.6g})", proofs.holding(family, domain)[0]
        line = f"{words} | {L1.declared:,} | {shares((L1, squared))} | {total.declared:,} | {shares((total, square))} |"
        if (family.DISTRIBUTION, line) not in seen:
            yield f"| {family.DISTRIBUTION} | {bounds} | {line}"
        seen.add((family.DISTRIBUTION, line))


def records():
    """Lines for whole records, of one likelihood and so many columns together."""
    for _, several in groupby(proofs.settings(), key=lambda one: (one.family.DISTRIBUTION, one.domain, one.columns)):
        group = list(several)
        verdicts = [once(proofs.of_records, setting) for setting in group]
        assert all(one.declared == one.bound == one.attained for both in verdicts for one in both)
        many = [len(setting.records()[0]) for setting in group]
        domain = group[0].domain
        name = f"{group[0].family.DISTRIBUTION} ({domain.lower:g}, {domain.upper:g})"
        values = " | ".join(f"{both[0].declared}" for both in verdicts)
        yield f"| {name} | {group[0].columns} | {many[0]}, {many[1]} | {many[0] ** 2:,}, {many[1] ** 2:,} | {values} |"


def moments():
    """Lines for second moments."""
    for case, small in proofs.linear_cases():
        verdicts = once(proofs.of_moments, case, small)
        how = "all signs; branch and bound" if small else "a concave bound; corners"
        yield f"| {case.title} | {how} | {verdicts[0].declared / proofs.POINTS**2:.6g} | {shares(verdicts)} |"


def networks():
    """Lines for Fourier coefficients."""
    for nodes, levels in ((1, (2, 3, 4, 5)), (2, (2, 3, 4, 5)), (3, (2, 3)), (4, (2,))):
        many, pairs, exact = once(proofs.of_networks, nodes, levels)
        yield f"| {nodes} | {', '.join(map(str, levels))} | {many:,} | {pairs:,} | {'all / all' if exact else 'no'} |"


def totals():
    """Lines for totals over individuals."""
    for distribution, unit, neighbours, rows, columns in proofs.TOTALS:
        verdicts = proofs.of_totals(distribution, unit, neighbours, rows, columns)
        who = f"{distribution}, {unit.relation}, {neighbours}, {rows} rows" + (f" of {columns} columns" if columns > 1 else "")
        yield f"| {who} | {verdicts[0].declared} | {shares(verdicts)} |"


def questions():
    """Lines for questions about a table."""
    for asked in proofs.QUESTIONS:
        meant = question(asked, proofs.SCHEMA)
        found = [proofs.of_question(meant, neighbours)[0] for neighbours in ("replace", "add_remove")]
        yield f"| `{asked.replace('|', 'or')}` | {meant.weights.size} | {found[0].declared} | {found[1].declared} | {shares(found)} |"


def answers():
    """Lines for randomised answers."""
    for epsilon, edges in proofs.EDGES:
        (records, laws), verdicts = proofs.told(epsilon, edges), proofs.of_answers(epsilon, edges)
        bins = ", ".join(f"{name}: {len(several) - 1}" for name, several in edges.items())
        [ratio] = verdicts
        spent = f"{log(ratio.bound / proofs.OF_RATIO):.12g}"
        holds = "all" if ratio.holds else "MORE"
        yield f"| {bins} | {len(laws)} | {records:,} | {records**2:,} | {epsilon} | {spent} | {holds} |"


def everything():
    """Lines for every sensitivity in the library."""
    for one in proofs.SENSITIVITIES:
        where = ", ".join(f"`{place}`" for place in one.where)
        yield f"| {one.of} | **{one.kind}** | `{one.test}` | {where} |"


@cache
def page():
    """The whole page."""
    return "\n".join(
        [
            *INTRODUCTION, *everything(),
            *ONE_VALUE, *one_value(),
            *RECORDS, *records(),
            *MOMENTS, *moments(),
            *NETWORKS, *networks(),
            *TOTALS, *totals(),
            *QUESTIONS, *questions(),
            *ANSWERS, *answers(),
            *REMAINS,
        ]
    )  # fmt: skip


INTRODUCTION = """# How every sensitivity is known

Made by `docs/make_proofs.py` from `tests/proofs.py`, whose proofs `tests/properties/test_proofs.py` runs. Noise is calibrated to how far
one record can move the integers that are released, and everything rests on that number. Each is known in one of three ways.

* **all pairs**: every vector of integers that a record can become is listed, or a set that holds them all, and the largest distance
  of two of them is found exactly. What is listed is what the code makes of doubles, roundings included.
* **certified bound**: the integers are products of integers in a box; their largest distance is bounded in exact integers or fractions,
  on the whole box, without trying.
* **argument + tested pairs**: a written argument, in the docstring or in [theory.md](theory.md), and pairs that try to exceed what it says.

Released sums add up over records, so two neighbouring data sets are as far apart as the records they differ in: it is enough to look at
one record against another, or one against none. The tests also make the numbers smaller by 1 and see the proofs refuse them, and a
function that makes a new sensitivity but is not in this table fails a test.

| sensitivity | known by | test | in |
|---|---|---|---|""".splitlines()

ONE_VALUE = """
## Statistics of one value

A value is filled, clamped, mapped by t and scaled; then it is rounded and clipped to integers. Subtracting, dividing, multiplying, rounding
and clipping never change the order of doubles (IEEE 754 rounds correctly), so the integers stay in their box whatever a logarithm or a
power before them said, and only the box counts. The Normal family squares the integer itself, so there are 65,537 vectors. A cosine and a
sine of the same angle are on a circle: if each is right to 2**-45 (numpy's are right to 2**-50), what they become is one of the listed
points near it. That nothing is listed that does not occur is found by halving the doubles around every place where an integer changes:
131,074 doubles or more for a statistic, each of which the code is asked about.

The largest L1 distance is found from signs: it is the largest, over signs of the coordinates, of the range of the signed sum. In a box
all distances are largest at corners. In private cells, and where a record may come or go, the count is among the statistics, in a basis
whose entries are never negative and add up to the same total for every value, which is checked too: one record more or less moves L1 by the
total, a move to another cell by twice that, and no two values in one cell are further apart.

Bounds are in the user's units, L1 and totals in lattice units. Shares are of what is declared: proved / attained by some pair.

| likelihood | bounds | gone through | L1 declared | L1 | squared L2 | total declared | total | squared L2 in cells |
|---|---|---|---|---|---|---|---|---|""".splitlines()

RECORDS = """
## Whole records

All records of whole numbers (others are rounded to these), through the sums that a release adds noise to: without and with a private
index of three levels, under both kinds of neighbours. What is declared is what is proved and attained, in L1 and squared L2.

| likelihood | columns | records | pairs | L1: public cells | private index | add or remove | private index, add or remove |
|---|---|---|---|---|---|---|---|""".splitlines()

MOMENTS = """
## Second moments

The integers are products of two integers of at most 2**15, so no rounding has to be allowed for beyond them. **L1**: for given signs of
all differences the distance is that of one signed sum at two records, so its largest value is the range of a quadratic form over a box.
That is taken on one of the box's faces, at a stationary point, in fractions; all signs (once of those that differ by the order of
features) and all faces are gone through, and no argument about shape is needed. For more features the bound is a concave quadratic, whose
tangent is checked in fractions. **Squared L2**: branch and bound over the half-differences h of two records, in integers, with nothing left
open; for more features, corners. Where products with one response are multiplied, and all others by less, signs and boxes are gone through
in the same way, multiplied; for more features the bound is a quadratic in one number of the features and one of the response. L1 is in
units of 1, everything being scaled to [-1, 1]; counted: a record may leave its cell. The slow suite adds five private entries.

| private features and responses | proof | L1 declared | L1 | squared L2 |
|---|---|---|---|---|""".splitlines()

NETWORKS = """
## Fourier coefficients of networks

Every network whose arrows go from earlier variables to later ones, with all numbers of levels; all pairs of records. The slow suite adds
three variables of up to five levels, four of two and three, all 1,024 networks of five variables of two levels, and twelve of five
variables of up to five levels.

| variables | levels | networks | pairs of records | L1 and squared L2: proved / attained |
|---|---|---|---|---|""".splitlines()

TOTALS = """
## Totals over individuals

All that one individual can add to totals that are whole numbers, against all that another can.

| totals | L1 declared | L1 | squared L2 |
|---|---|---|---|""".splitlines()

QUESTIONS = """
## Questions about a table

All pairs of cells, the cells of what is not in the schema included; in lattice units.

| question | cells | replace | add or remove | replace: proved / attained | add or remove |
|---|---|---|---|---|---|""".splitlines()

ANSWERS = """
## Randomised answers

Records of values at every edge, between edges, beyond all, infinite and missing: nothing else happens to a double. Each has a level, by
itself, and a law of its answer, in fractions; over all pairs of records and all answers the largest ratio of two probabilities is found
exactly, and compared with exp(epsilon) in 80 digits. Its logarithm is what an answer costs.

| bins | levels | records | pairs | epsilon | logarithm of the largest ratio | pairs within epsilon |
|---|---|---|---|---|---|---|""".splitlines()

REMAINS = """
## What is not proved here

That a covariate or an index is mapped into its levels whatever it holds (tested), and that features lie between the ends that interval
arithmetic gives them: integers are clipped afterwards, so that sensitivities do not rest on that. That numpy subtracts, multiplies, divides
and rounds as IEEE 754 says.

Not tight: `bounds={"X": pymc_dp.Norm(r)}` keeps the covariates of a regression in a ball, and what is charged for second moments is
that of the box around it. A variable of three levels without a parent, drawn from a posterior, is charged for two splits at both of its
records, where three of these four can move. VonMises is charged 2 lattice units in 92,684 too much.
""".splitlines()


if __name__ == "__main__":
    (HERE / "proofs.md").write_text(page())
