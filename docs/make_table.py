"""Write docs/likelihoods.md: every likelihood, what is released of it, and what one record costs, from the code itself.

uv run docs/make_table.py
"""

from math import sqrt
from pathlib import Path

from pytensor.tensor import tensor

from pymc_dp.families.family import all_families
from pymc_dp.families.scores import ROUNDS, SECOND
from pymc_dp.families.second_moments import Regression
from pymc_dp.models.row_patterns import PATTERNS
from pymc_dp.models.spec import Likelihood, Placeholder
from pymc_dp.models.tabulated import BINNED, TABLE, Table
from pymc_dp.plans.bins import Bins
from pymc_dp.plans.plan import planned

HERE = Path(__file__).parent
SETTINGS = (("public cells", False, "replace"), ("private cells", True, "replace"), ("add or remove", False, "add_remove"))


def likelihood_of(family, domain, private):
    """A likelihood of this family whose parameters are the same for all records, or indexed by a private index of three levels."""
    index = Placeholder(tensor("index", dtype="int64", shape=(None,)), 0, "g", private=True, index=True, levels=3)
    return Likelihood(
        "y", family.DISTRIBUTION, family, unknown=domain.unknown, known=domain.known, levels=domain.levels,
        inputs=(index,) if private else (), make=(lambda *_: None) if isinstance(family, Table) else None,
        between=(lambda *_: None) if family is BINNED else None,
    )  # fmt: skip


def bounds_of(family, domain):
    """The bounds that the row is for, as a user would write them."""
    given = Bins(edges=domain.edges) if domain.edges else (domain.lower, domain.upper)
    return {} if family.natural(domain.levels, domain.known) is not None else {"y": given}


def row(family, domain, words):
    """One line of the table."""
    cells = []
    for _, private, neighbours in SETTINGS:
        step = planned(likelihood_of(family, domain, private), bounds_of(family, domain), neighbours)
        names = ", ".join(step.statistics[:4]) + (", ..." if len(step.statistics) > 4 else "")
        L1, L2 = step.sensitivity.difference * step.lattice, sqrt(step.sensitivity.square) * step.lattice
        cells.append(f"{names}: {L1:.4g} / {L2:.4g}")
    given = bounds_of(family, domain)
    bounds = f"{'Bins' if domain.edges else ''}({domain.lower:g}, {domain.upper:g}{', 4' if domain.edges else ''})" if given else "-"
    return f"| {family.DISTRIBUTION} | {words} | {bounds} | {cells[0]} | {cells[1]} | {cells[2]} |"


def words_of(family, domain):
    """What is special about the parameters of an example."""
    known = [f"{name} known" for place, name in family.KNOWN]
    others = [k for k, unknown in enumerate(domain.unknown) if not unknown and k not in dict(family.KNOWN)]
    if family.DISTRIBUTION in {"Normal", "LogNormal"} and 1 in others:
        known.append("sigma known")
    if family.DISTRIBUTION in {"Gamma", "InverseGamma", "Beta"} and others:
        known.append(f"parameter {', '.join(map(str, others))} known")
    return ", ".join(known) or ("" if not domain.levels else f"{domain.levels} levels")


def regressions():
    """Lines for second moments, with a few numbers of features."""
    for private, public, known in ((1, 0, False), (5, 0, False), (14, 0, False), (5, 0, True), (0, 5, False)):
        F = 1 + private + public
        one = Regression(
            tuple("1" * F), (False, *[True] * private, *[False] * public), (-1.0,) * F, (1.0,) * F, (-1.0,), (1.0,), known,
            public_norm=1.0 + public, public_square=1.0 + public,
        )  # fmt: skip
        reach = one.sensitivity()
        L1, L2 = reach.difference * one.lattice, sqrt(reach.square) * one.lattice
        ranges = sum(1 if i == j else 2 for i, j in one.entries)
        sigma = "known" if known else "unknown"
        yield f"| {private} | {public} | {sigma} | {len(one.entries)} | {L1:.4g} / {L2:.4g} | {ranges} |"


def percent(*shares):
    """Shares as one writes them: 20, 20 and 60 %."""
    *before, last = (f"{float(100 * share):g}" for share in shares)
    return f"{', '.join(before)} and {last} %"


def table():
    """The whole page."""
    rounds, two = percent(*ROUNDS), percent(ROUNDS[0], 1 - ROUNDS[0])
    lines = [
        "# Likelihoods: what is released and what one record costs",
        "",
        "For every likelihood this page says which sums over the records are released, and how far one record can move all of them",
        "together: the *sensitivity*, to which the noise is in proportion. `docs/make_table.py` makes the page from the code.",
        "",
        'How to read the table: "sum u, sum u²: 2.25 / 2" means that two sums are released, that one record moves them by at most 2.25',
        "in L1, which decides Laplace noise, and by 2 in L2, for Gaussian noise. Units are those of the statistics, for the bounds in the",
        "third column. [Names](#what-the-names-say) are explained below the table.",
        "",
        "A *cell* is a group of records that share their parameters. The last three columns are:",
        "",
        "- *public cells*: all records share the parameters, or the index is public. The number of records in each cell is public.",
        "- *private cells*: the index or discrete covariates are private, so one record may move to another cell.",
        '- *add or remove*: `neighbours="add_remove"`.',
        "",
        "| likelihood | parameters | bounds | public cells | private cells | add or remove |",
        "|---|---|---|---|---|---|",
    ]
    for family in all_families():
        seen = set()
        for example in family.EXAMPLES:
            words = words_of(family, example.domain)
            if words not in seen:
                seen.add(words)
                lines.append(row(family, example.domain, words))
    from pymc_dp.families.family import Domain

    lines.append(row(TABLE, Domain(0, 9), "any likelihood of counts"))
    rows = Domain(0, 1, levels=3, unknown=(False, True), known=(1.0, None))
    lines.append(row(PATTERNS, rows, "rows of Bernoulli, Binomial or Categorical, with a latent variable each"))
    lines.append(row(BINNED, Domain(0, 100, edges=(0.0, 25.0, 50.0, 75.0, 100.0)), "any likelihood of single numbers"))
    lines += [
        "",
        "A *table of values*, the number of records with each value, is released for every likelihood of",
        "counts that has no line of its own:",
        "zero-inflated, hurdle, beta-binomial, negative binomial with unknown alpha, mixtures, truncated and censored counts.",
        "",
        "*Rows of values* are counted where every record has a latent variable, such as a person's ability, on which a row of answers",
        "depends. It is [marginalised](reading.md#a-latent-variable-for-every-record).",
        "",
        '*Counts in bins*: with `bounds={"y": pymc_dp.Bins(lower, upper)}` single numbers are counted in bins, whatever their likelihood',
        "([bins](bins.md)): StudentT, SkewNormal, ExGaussian, Wald, Gumbel, mixtures, hurdles, truncated and censored ones, a density",
        "of your own, or what a `pm.Potential` says of every record.",
        "",
        '*Private covariates in bins*: `bounds={"x": pymc_dp.Bins(lower, upper)}` of a covariate releases counts of outcomes in every bin',
        "of x, with the sensitivity of private cells. The likelihood is integrated over where in its bin x lies. This is the way for",
        "regressions that have neither second moments nor scores: NegativeBinomial, Gamma, Beta, StudentT,",
        "Weibull, multinomial and ordered logistic ones, Binomial, and Bernoulli with a probit or cloglog link.",
        "",
        "## What the names say",
        "",
        'These names are printed by `inspect` in the column "released", and are the labels of a release\'s numbers.',
        "",
        "| name | what it is |",
        "|---|---|",
        "| `ones`, `zeros` | how many records are 1, and 0 |",
        "| `successes`, `failures` | Binomial: successes, and failures, of all records together |",
        "| `level 2`, `value 3`, `0 1 1`, `25 < y <= 50` | how many records have this level, value or row of values, or lie in this bin |",
        "| `sum` | the sum of the values y, which are clamped to the bounds |",
        "| `sum u`, `sum u²` | sums of u and of its square, where u = (y - middle) / half: the value, scaled such that its bounds are -1"
        " and 1 |",
        "| `sum u(log y)` | the same for a function of the value, here log y: shifted and scaled such that it is -1 at"
        " one bound and 1 at the other |",
        "| `sum of 1 - u`, `sum 1 + u(log y)`, `sum of (1 - u)²`, `sum of upper - y` | what is released where nobody may know how many"
        " records a cell has: sums of numbers that are never negative, from which the number of records and the sums above"
        " can be computed |",
        "| `n`, `sum x`, `sum x y`, `sum x²` | linear likelihoods: the number of records, and sums of features, of the response and of"
        " their products, each factor scaled to [-1, 1] like u |",
        "| `sum weight x`, `sum (y - mean) x` | logistic and Poisson regressions: the second and the first derivatives of the"
        " log-likelihood by the coefficients, at the coefficients of a round; both are sums over records |",
        "",
        "With bounds (0, 20), middle and half are 10, and the sum of n values is 10 n + 10 times the sum of u. Sums in units of the values",
        "have names of their own where [somebody else published them](noisy_numbers.md#sums-of-records-that-nobody-here-has):",
        "`sum y`, `sum y²`, `sum log y`.",
        "",
        "## Linear likelihoods",
        "",
        "**Normal, LogNormal and MvNormal** with a mean that is linear in covariates: *second moments* are released, the sums of all",
        "products of two of (1, features, response), each factor scaled to [-1, 1]. A feature is whatever is multiplied by a coefficient.",
        "The values of public features are known, so only their products with something private are released.",
        "",
        "- The likelihood of MvNormal without covariates, of at most four entries, allows for values that are clamped, and takes their",
        "  sums as normal. That of all others, normal regressions among them, is exact where no value is clamped, and does not allow for",
        "  clamping.",
        "- With one response and several private features, products with the response are multiplied by a small whole number before the",
        "  noise, and divided after it, so that they get less of it ([theory](theory.md#linear-likelihoods)). Sensitivities in the table",
        "  are those of sums that are not multiplied.",
        "",
        "**Bernoulli with a logit that is linear in covariates, and Poisson with such a log**: sums of *scores* (gradients of the",
        "log-likelihood) and of their information are released in rounds, each at the coefficients that the round before found,",
        f"with {rounds} of epsilon; logistic ones in two, with {two}, where noise is strong, and with up to",
        f"{float(100 * (1 - ROUNDS[0] - min(SECOND))):g} % in the last where it is weak. The likelihood is approximated by",
        "that of normal features near the last of these, made wider by",
        "the error that this may have ([theory](theory.md#logistic-and-poisson-regression-on-real-covariates)).",
        "",
        "- If one or two covariates are rounded and you give all their values as a set, a table is released instead, which is exact.",
        "- With a log link the mean is that of counts that are clamped at the upper bound of y.",
        "",
        "Released sums of a Normal regression, their sensitivity (L1 / L2), and what the L1 sensitivity would be if each sum were",
        "bounded by itself:",
        "",
        "| private features | public features | sigma | released sums | sensitivity | sum of their ranges |",
        "|---|---|---|---|---|---|",
        *regressions(),
        "",
        "**Sampling.** Noise on several numbers makes parameters correlated in the posterior: where it hides the spread of a covariate but",
        "not the mean of y, slope and intercept lie along a narrow ridge. So where a cell has several released numbers, `sample` lets",
        'nutpie adapt to correlations (`nuts={"adaptation": "low_rank"}`), and for regressions it takes `target_accept=0.9`. Where every',
        "cell has one number, it takes `target_accept=0.95`. Write the same for `pm.sample` on a private model.",
        "",
        "## Rows that are totals",
        "",
        'With `unit="individual"` or `unit=pymc_dp.Individual(...)` a row is a total over individuals, and every total is released.',
        "",
        "| total | neighbours | sensitivity to one individual |",
        "|---|---|---|",
        "| Binomial, numbers of trials public | replace | 1 in each of its rows |",
        "| Multinomial, numbers of trials public | replace | 2 in each of its rows (1 where there are two levels) |",
        "| Poisson, at most m events each | replace, membership of a row public | m |",
        "| Poisson, at most m events each | replace | 2 m |",
        "| Poisson, at most m events each | add_remove | m |",
        "| Real values such as means, `moves=m` | replace, membership of a row public; or add_remove | m in each of its rows |",
        "| Real values such as means, `moves=m` | replace | m in each of its rows, and in as many others |",
        "",
        "`Individual(events=3)` says that one individual has at most three of the events that a Poisson model counts; Binomial",
        "and Multinomial",
        "totals do not need it. `Individual(rows=2)` says that one individual may be counted in two rows, such as two years,",
        "and moves",
        "both.",
        '`Individual(membership="public")` says that everybody may know in which row an individual is counted, for example',
        "where rows are",
        "schools and it is public who goes to which; only how many events an individual had is private then.",
        "`Individual(moves=3)` is for rows with a real value each, such as the mean of every school in a meta-analysis: Normal,",
        "StudentT, Gamma, Beta, or any other of PyMC's distributions of one real number that does not end at an unknown. It",
        "says how far one individual can move",
        "the value of a row, by another value and by being counted there or not. For a mean of at least n values between a and",
        "b that is (b - a)/n. Rows need `bounds`, which cost nothing",
        "here: noise depends on `moves` alone. The library cannot check `moves`: if one individual can move a row further, the",
        "promise does not hold for it. It is said of the numbers in the array: where these were rounded, to float32 or to two",
        "digits, add the distance between two neighbouring ones. PyMC makes 32-bit integers of whole numbers, so that 2^31 becomes",
        "-2^31: bounds that come near it are refused, and beyond them neighbouring values stay neighbours.",
        "No individual may decide whether a row has a value: where totals or means of few individuals are suppressed, one more",
        "makes a value of what was missing, and moves it from 0, or the middle of the bounds, by more than is paid for. Leave out",
        "all rows that could be suppressed.",
        "Models made while `pytensor.config.floatX` was float32 are refused, for PyMC rounds their numbers; this is seen by the types of",
        'values and unknowns, so do not write `dtype="float64"` for all of them in such a model.',
        "Standard errors are public, as everything above the rows is. The exact values of rows that are not Normal are",
        "unknowns, in the group `latent_statistics` of the draws. Where noise is much wider than rows differ, chains visit all that priors",
        "allow: write unknowns of a hierarchy not centred, `mu + tau * pm.Normal(...)`. How often intervals hold the truth is",
        "[measured](rows_measured.md).",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    (HERE / "likelihoods.md").write_text(table())
