"""A synthetic census: a county whose truth is known, published as the 2020 US Census publishes, and what can be said of it afterwards.

python benchmarks/census.py            a county of 25,600 cells: errors, coverage and time beside weighted least squares
python benchmarks/census.py small 8    eight counties of 1,200 cells: coverage by prior

Nothing is downloaded. docs/census_measured.md has the results.
"""

import sys
import time

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

import pymc_dp as pmdp
from pymc_dp.publications.table_draws import least_squares
from pymc_dp.publications.table_queries import rows_of

TRACTS, GROUPS, BLOCKS = 8, 4, 20
"""Tracts, block groups in each, blocks in each of these."""
COORDS = {"sex": ["f", "m"], "age": ["0-17", "18-39", "40-64", "65+"], "race": ["A", "B", "C", "D", "E"]}
LEVELS = {"county": 5, "tract": 11, "block_group": 12, "block": 15}
RHO = 2.56
"""Of the persons of the redistricting data (PL94) of 2020: production settings of the US Census Bureau, as other open code repeats them."""
QUERIES = ("total", "race", "sex", "age", "sex * race", "age * race", "sex * age", "detailed")
SHARES = {
    "tract": (687 / 4099, 4102, (1567, 8, 5, 5, 1933, 20, 5, 549)),
    "block_group": (1256 / 4099, 4099, (1705, 3, 3, 3, 1055, 9, 3, 1312)),
    "block": (165 / 4099, 4097, (5, 9, 5, 5, 21, 21, 5, 4016)),
}
"""Of rho by level, and of a level's by query, each part divided by the number before: sex stands in for Hispanic origin, four ages for two,
and "detailed" has the shares of the two largest queries. Shares of group quarters are not used."""
MARGINS = [
    ("total of the county", ("county",)), ("tract", ("tract",)), ("tract x race", ("tract", "race")), ("block group", ("block_group",)),
    ("block group x race", ("block_group", "race")), ("block group x sex x age", ("block_group", "sex", "age")), ("block", ("block",)),
    ("block x race", ("block", "race")),
]  # fmt: skip


def county(rng):
    """(blocks, sex, age, race): counts of people, unlike any prior of the package: nested Dirichlet shares, empty blocks, two prisons."""
    blocks = TRACTS * GROUPS * BLOCKS
    people = np.rint(rng.lognormal(3.7, 0.9, blocks)) * (rng.random(blocks) > 0.2)
    by_tract = rng.dirichlet(4 * np.array([0.6, 0.18, 0.12, 0.06, 0.04]), TRACTS)
    truth = np.zeros((blocks, 2, 4, 5), dtype=np.int64)
    for tract in range(TRACTS):
        for group in range(GROUPS):
            race = rng.dirichlet(25 * by_tract[tract] + 1e-3)
            age = rng.dirichlet(40 * np.array([0.22, 0.3, 0.32, 0.16]))
            for k in range(BLOCKS):
                block = (tract * GROUPS + group) * BLOCKS + k
                mix = np.einsum("s,a,r->sar", [0.51, 0.49], rng.dirichlet(15 * age + 1e-3), rng.dirichlet(8 * race + 1e-3))
                truth[block] = rng.multinomial(int(people[block]), mix.ravel()).reshape(mix.shape)
    for block in rng.choice(blocks, 2, replace=False):
        truth[block] = 0
        truth[block, 1, 1:3] = rng.multinomial(400, rng.dirichlet(np.ones(10))).reshape(2, 5)
    return truth


def discrete_gaussian(rng, variance, size):
    k = np.arange(-int(10 * np.sqrt(variance)) - 2, int(10 * np.sqrt(variance)) + 3)
    weights = np.exp(-0.5 * k**2 / variance)
    return rng.choice(k, p=weights / weights.sum(), size=size)


def measurements(rng, truth):
    """Columns in the layout of the noisy measurement files: the total of the county is exact."""
    codes = [f"99001{tract:06d}{group + 1}{k:03d}" for tract in range(TRACTS) for group in range(GROUPS) for k in range(BLOCKS)]
    columns = {"geocode": ["99001"], "query": ["total"], "value": [[int(truth.sum())]], "variance": [0.0], "sign": ["="]}
    for level, (share, whole, parts) in SHARES.items():
        areas = np.array([code[: LEVELS[level]] for code in codes])
        for area in dict.fromkeys(areas):
            inside = truth[areas == area].sum(axis=0)
            for query, part in zip(QUERIES, parts):
                dims = list(COORDS) if query == "detailed" else [] if query == "total" else query.split(" * ")
                sums = inside.sum(axis=tuple(k for k, dim in enumerate(COORDS) if dim not in dims))
                variance = 1 / (RHO * share * part / whole)  # a person who is replaced moves two cells: 2 / (2 rho)
                noisy = sums + discrete_gaussian(rng, variance, sums.shape)
                for name, entry in zip(columns, (area, query, noisy.ravel().tolist(), variance, "")):
                    columns[name].append(entry)
    return columns


def unconstrained(rows):
    """Weighted least squares without inequalities, and a function that gives standard deviations of sums of cells (rows of a matrix)."""
    precisions = np.where(rows.kinds == 0, 1 / np.maximum(rows.scales, 1e-9) ** 2, 1.0)
    across = rows.matrix.T.tocsr()
    diagonal = across.power(2) @ precisions
    cells = rows.matrix.shape[1]
    information = LinearOperator((cells, cells), matvec=lambda x: across @ (precisions * (rows.matrix @ x)))
    settings = {"M": LinearOperator((cells, cells), matvec=lambda x: x / diagonal), "rtol": 1e-8, "maxiter": 5000}

    def deviations(places):
        result = []
        for place in np.unique(places):
            one = (places == place).astype(float)
            result.append(np.sqrt(max(one @ cg(information, one, **settings)[0], 0)))
        return np.array(result)

    return cg(information, across @ (precisions * rows.values), **settings)[0], deviations


def shares(low, high, truth):
    return float(((low <= truth) & (truth <= high)).mean())


def one_county(seed, draws):
    """For every margin: root mean squared errors of three estimates, coverage and mean width of 90 % intervals; and seconds."""
    rng = np.random.default_rng(seed)
    truth = county(rng)
    table = pmdp.read_census(measurements(rng, truth), COORDS, levels=LEVELS)
    rows, times, result = rows_of(table), {}, {}
    start = time.process_time()
    plain, deviations = unconstrained(rows)
    times["least squares"] = time.process_time() - start
    start = time.process_time()
    inequal = least_squares(rows)
    times["with inequalities"] = time.process_time() - start
    start = time.process_time()
    tree = pmdp.sample_table(table, draws, tune=400, thin=6, keep=[dims for _, dims in MARGINS], random_seed=seed)
    times["draws"] = time.process_time() - start
    for name, dims in MARGINS:
        place, shape = table.margin_of(dims)
        many = int(np.prod(shape))
        true, *guesses = (np.bincount(place, weights=np.ravel(each), minlength=many) for each in (truth, plain, inequal))
        drawn = tree.posterior[f"count_{'_'.join(dims)}"].values.reshape(2, draws, many)
        worst = rhat(drawn) if len(dims) > 1 or dims[0] != "county" else 1.0
        flat = drawn.reshape(-1, many)
        low, high = np.quantile(flat, [0.05, 0.95], axis=0, method="inverted_cdf")
        errors = [np.sqrt(np.mean((guess - true) ** 2)) for guess in (*guesses, flat.mean(axis=0))]
        covered = [np.nan, np.nan]
        if many <= 700:
            spread = 1.645 * deviations(place)
            covered = [shares(guesses[0] - spread, guesses[0] + spread, true), 2 * spread.mean()]
        result[name] = [many, *errors, *covered, shares(low, high, true), (high - low).mean(), worst]
    return result, times


def rhat(drawn):
    """The 99 % quantile over sums of split R-hat (C, D, sums)."""
    chains, draws, many = drawn.shape
    half = drawn[:, : draws // 2 * 2].reshape(2 * chains, -1, many).astype(float)
    within, between = half.var(axis=1, ddof=1).mean(axis=0), half.mean(axis=1).var(axis=0, ddof=1)
    moves = within > 0
    return float(np.quantile(np.sqrt(1 + between[moves] / within[moves]), 0.99))


def table_of(heads, rows):
    print("| " + " | ".join(heads) + " |")
    print("|---" * len(heads) + "|")
    for name, many, *numbers in rows:
        cells = [f"{number:.2f}" if np.isfinite(number) else "" for number in numbers]
        print(f"| {name} | {int(many)} | " + " | ".join(cells) + " |")


def large(draws=300):
    result, times = one_county(0, draws)
    errors = [f"error, {of}" for of in ("least squares", "with inequalities", "posterior mean")]
    heads = [*errors, "coverage, least squares", "width", "coverage, posterior", "width", "R-hat"]
    table_of(["sums", "number", *heads], [(name, *numbers) for name, numbers in result.items()])
    print({step: round(seconds, 1) for step, seconds in times.items()}, "CPU seconds")


def small(counties=8, draws=300):
    """Counties of 3 x 2 x 5 blocks: errors of the posterior mean, and how many 90 % intervals hold the truth, by prior."""
    global TRACTS, GROUPS, BLOCKS
    TRACTS, GROUPS, BLOCKS = 3, 2, 5
    priors = {"CellPrior()": None, "flat": "flat"}
    found = {(name, prior): [] for name, _ in MARGINS for prior in priors}
    kinds = {"prisons": [], "empty": [], "others": []}
    for seed in range(counties):
        rng = np.random.default_rng([1, seed])
        truth = county(rng)
        table = pmdp.read_census(measurements(rng, truth), COORDS, levels=LEVELS)
        for prior, given in priors.items():
            tree = pmdp.sample_table(table, draws, tune=200, prior=given, keep=[dims for _, dims in MARGINS], random_seed=seed)
            for name, dims in MARGINS:
                place, shape = table.margin_of(dims)
                true = np.bincount(place, weights=truth.ravel(), minlength=int(np.prod(shape)))
                drawn = tree.posterior[f"count_{'_'.join(dims)}"].values.reshape(2 * draws, -1)
                low, high = np.quantile(drawn, [0.05, 0.95], axis=0, method="inverted_cdf")
                off = drawn.mean(axis=0) - true
                if name == "block" and given is None:
                    of_kind = {"prisons": true == 400, "empty": true == 0, "others": (true != 400) & (true > 0)}
                    for kind, blocks in of_kind.items():
                        kinds[kind].extend(zip((true < low)[blocks].tolist(), (true > high)[blocks].tolist()))
                found[name, prior].append([len(true), np.mean(off**2), shares(low, high, true), (high - low).mean()])
    for kind, missed in kinds.items():
        below, above = np.mean(missed, axis=0)
        print(f"{kind}: {len(missed)} blocks, truth below the interval {below:.2f}, above {above:.2f}")
    rows = []
    for name, _ in MARGINS:
        both = [np.mean(found[name, prior], axis=0) for prior in priors]
        rows.append((name, both[0][0] * counties, *(number for each in both for number in (np.sqrt(each[1]), *each[2:]))))
    table_of(["sums", "number", *(f"{head}, {prior}" for prior in priors for head in ("error", "coverage", "width"))], rows)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    (small if "small" in sys.argv else large)(*numbers)
