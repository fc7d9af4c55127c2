"""Write docs/proofs.md: of every sensitivity in the library how it is known, and what the proofs found, from the proofs themselves.

uv run docs/make_proofs.py
"""

import sys
from functools import cache
from itertools import groupby
from math import ceil, floor, log
from operator import itemgetter
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

import proofs  # noqa: E402 - it is with the tests
from proofs import once  # noqa: E402

from pymc_dp.queries.language import question  # noqa: E402

KINDS = (proofs.ALL_PAIRS, proofs.CERTIFIED_BOUND, proofs.ARGUED)


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
    """A list for each of the three kinds: every sensitivity, where it is computed, and its test."""
    for kind, several in groupby(sorted(proofs.SENSITIVITIES, key=lambda one: KINDS.index(one.kind)), key=lambda one: one.kind):
        yield from ("", f"**{kind[0].upper()}{kind[1:]}**", "")
        for one in several:
            files = groupby((place.partition(":") for place in one.where), key=itemgetter(0))
            where = "; ".join(f"`{file}` {', '.join(f'`{name}`' for _, _, name in places if name)}".strip() for file, places in files)
            yield f"* {one.of[0].upper()}{one.of[1:]}. In {where}. Test: `{one.test}`"


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

For those who must check the promise itself. Noise is in proportion to the *sensitivity*: how far one record can move the integers that
are released, in L1 for Laplace noise and in L2 for Gaussian noise ([glossary](glossary.md)). If a sensitivity were too small, the promise
would be false. So this page lists every sensitivity in the library, says how it is known, and shows what the proofs found. It is made by
`docs/make_proofs.py` from `tests/proofs.py`; `tests/properties/test_proofs.py` runs the proofs. There are three ways to know a
sensitivity:

* **all pairs**: every vector of integers that a record can become is listed, or a larger set that holds them all, and the largest
  distance between two of them is found exactly. The package's own code makes the integers from floating-point numbers, so its rounding is
  included.
* **certified bound**: the integers are products of integers in a box, and their largest distance is bounded for the whole box at once, in
  exact integers or fractions.
* **argument + tested pairs**: there is a written argument, in the docstring or in [theory.md](theory.md), and a test tries pairs that
  could exceed what it says.

What is released are sums over records. So two neighbouring data sets are as far apart as the records in which they differ, and it is
enough to compare one record with another, or one with none. The tests also make the numbers smaller by 1 and check that the proofs then
fail. A function that computes a sensitivity and is not in these lists fails a test, too.""".splitlines()

ONE_VALUE = """
## How to read the tables

Each table compares what the library charges for (*declared*) with two numbers, written *proved / attained*. Proved is the bound of the
proof, and attained the distance of some pair of records; both are shares of what is declared. "all / all" says that no two records are
further apart than declared, and that some pair is as far apart. "all / 0.9999" says that the furthest pair that was found is 0.9999 times
as far apart. Integers are in *lattice units*: multiples of the step to which statistics are rounded.

## Statistics of one value

What happens to a value: it is filled if it is missing, clamped to its bounds, mapped by the statistic's function t and scaled; then it is
rounded, and clipped to the integers of a box. IEEE 754 arithmetic rounds correctly, so subtracting, dividing, multiplying, rounding and
clipping never change the order of floating-point numbers. Hence the integers stay in their box, whatever error a logarithm or a power
made before, and for most likelihoods it is enough to look at the corners of the box.

Three need more. The Normal family squares the integer itself, so all its 65,537 vectors are gone through. A cosine and a sine of one
angle lie on a circle: if each is right to 2**-45 (numpy's are right to 2**-50), the integers are one of the listed points near it. And
where values are listed one by one, nothing may be listed that does not occur: the test finds, by bisection, all floating-point numbers at
which an integer changes, 131,074 of them or more for a statistic, and asks the code about each.

*L1* is the largest distance in L1, and *squared L2* that in L2, of two records in the same cell. The largest L1 distance is found by
going through the signs of the coordinates: for given signs it is the range of a signed sum. *Total* is for private cells, and for records
that come or go. The number of records is then among the statistics, which are never negative and add up to the same total for every value
(this is checked, too). So one record more or less moves L1 by the total, a move to another cell moves it by twice that, and no two values
in one cell are further apart.

Bounds are in the user's units.

| likelihood | bounds | gone through | L1 declared | L1 | squared L2 | total declared | total | squared L2 in cells |
|---|---|---|---|---|---|---|---|---|""".splitlines()

RECORDS = """
## Whole records

All records of whole numbers (other numbers are rounded to these), through the same sums that a release adds noise to. There are two
numbers of records and of pairs: without a private index, and with one of three levels. The last four columns are the L1 sensitivity for
public cells and with the private index, for a record that is replaced and for one that is added or removed. In every row what is declared
is both proved and attained, in L1 and in squared L2.

| likelihood | columns | records | pairs | replace: public cells | private index | add or remove: public cells | private index |
|---|---|---|---|---|---|---|---|""".splitlines()

MOMENTS = """
## Second moments

The integers are products of two integers of at most 2**15, so nothing else is rounded.

* **L1, up to four private entries.** For given signs of all differences, the distance is that of one signed sum at two records. Its
  largest value is the range of a quadratic form over a box, which is taken at a stationary point of one of the box's faces, in fractions.
  All signs (only once those that differ by the order of features) and all faces are gone through; no argument about the shape of the
  function is needed.
* **L1, more entries.** The bound is a concave quadratic, whose tangent is checked in fractions.
* **Squared L2.** Branch and bound over the half-differences of two records, in integers, until nothing is left open; for more entries,
  corners of the box.
* **Multiplied sums.** "times 2, with the response 3" says that products with the response are multiplied by 3 before the noise, and all
  others by 2 ([theory](theory.md#linear-likelihoods)). Signs and boxes are gone through in the same way; for more entries the bound is a
  quadratic in one number of the features and one of the response.

Here L1 is in units of 1, everything being scaled to [-1, 1]. "Public (1, 0.5)" are the values of public features. "Counted": a record may
leave its cell, or come or go. The slow tests add a case of five private
entries.

| private features and responses | proof | L1 declared | L1 | squared L2 |
|---|---|---|---|---|""".splitlines()

NETWORKS = """
## Fourier coefficients of networks

Every network whose arrows go from earlier variables to later ones, with all numbers of levels, and all pairs of records. The slow tests
add three variables of up to five levels, four of two and three, all 1,024 networks of five variables of two levels, and twelve of five
variables of up to five levels.

| variables | levels | networks | pairs of records | L1 and squared L2: proved / attained |
|---|---|---|---|---|""".splitlines()

TOTALS = """
## Totals over individuals

Rows that are totals (`unit=pymc_dp.Individual(...)`): everything that one individual can add to them, against everything that another
can, or against nothing.

| totals | L1 declared | L1 | squared L2 |
|---|---|---|---|""".splitlines()

QUESTIONS = """
## Questions about a table

All pairs of cells, with the extra cells for values that are not in the schema. In lattice units: the smallest step between two possible
answers is 1.

| question | cells | declared, replace | declared, add or remove | replace: proved / attained | add or remove |
|---|---|---|---|---|---|""".splitlines()

ANSWERS = """
## Randomised answers

Records are tried with values at every edge of the bins, between edges, beyond all edges, infinite and missing: no other value is treated
differently. Each record has a level and a probability of every answer, in fractions. The largest ratio of the probabilities of one
answer, over all pairs of records, is found exactly and compared with exp(epsilon) in 80 digits. Its logarithm is what an answer costs.

| bins | levels | records | pairs | epsilon | logarithm of the largest ratio | pairs within epsilon |
|---|---|---|---|---|---|---|""".splitlines()

REMAINS = """
## What is not proved here

* That a private covariate or index gets one of its levels whatever it holds. This is tested.
* That a feature lies between the ends that interval arithmetic gives it. The promise does not rest on that, because the integers are
  clipped afterwards.
* That numpy subtracts, multiplies, divides and rounds as IEEE 754 says.

Some sensitivities are larger than needed, so that noise is wider than it must be:

* `bounds={"X": pymc_dp.Norm(r)}` keeps the covariates of a regression in a ball, and second moments are charged for the box around it.
* A variable of three levels without a parent, whose probabilities are drawn from a posterior, is charged for two binary splits of each of
  the two records; only three of these four can differ.
* VonMises is charged 2 lattice units of 92,684 too much.
""".splitlines()


if __name__ == "__main__":
    (HERE / "proofs.md").write_text(page())
