"""Published sums of records: one path with our own releases, densities by hand where noise differs, and what is refused."""

import numpy as np
import pymc as pm
import pytest
from checks import points
from scipy import integrate, stats

import pymc_dp as pmdp
from pymc_dp.families.family import all_families, complete
from pymc_dp.private_models.diagnostics import warn_if_clamped

GAUSSIAN = pmdp.Gaussian(delta=1e-6)
RNG = np.random.default_rng(5)
X = RNG.uniform(-2, 2, 300)
GROUPS = np.repeat([0, 1, 2], [30, 20, 50])


def shared(values, family):
    with pm.Model() as model:
        if family == "Poisson":
            pm.Poisson("y", pm.Gamma("rate", 2, 1), observed=values)
        elif family == "Normal":
            pm.Normal("y", pm.Normal("mean", 0, 3), pm.HalfNormal("sd", 2), observed=values)
        elif family == "LogNormal":
            pm.LogNormal("y", pm.Normal("mean"), pm.HalfNormal("sd"), observed=values)
        elif family == "Gamma":
            pm.Gamma("y", pm.HalfNormal("shape", 2), pm.HalfNormal("rate", 2), observed=values)
        elif family == "Exponential":
            pm.Exponential("y", pm.HalfNormal("rate", 2), observed=values)
        elif family == "Categorical":
            pm.Categorical("y", pm.Dirichlet("p", np.ones(3)), observed=values)
    return model


def by_group(groups, values):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=3)[pm.Data("group", groups)], observed=values)
    return model


def two_indices(first, second, values):
    with pm.Model() as model:
        a, b = pm.Normal("a", shape=2), pm.Normal("b", shape=3)
        pm.Bernoulli("y", logit_p=a[pm.Data("first", first)] + b[pm.Data("second", second)], observed=values)
    return model


def line(x, values, name="y"):
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 3), pm.Normal("b", 0, 3)
        pm.Normal(name, a + b * pm.Data("x", x), pm.HalfNormal("sd", 3), observed=values)
    return model


def logistic(x, values):
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Normal("b") * pm.Data("x", x), observed=values)
    return model


def likelihood_of(model):
    return model.compile_logp(mode="FAST_COMPILE")


def assert_same(ours, theirs, atol=1e-5, count=4):
    """Log-densities of two models differ by a constant."""
    first, second = likelihood_of(ours), likelihood_of(theirs)
    at = points(theirs, count)
    differences = np.array([first(point) - second(point) for point in at])
    values = np.array([second(point) for point in at])
    assert np.ptp(values) > 0.1
    np.testing.assert_allclose(differences, differences[0], atol=atol)


# ---------- one path with our own releases


def test_counts_by_cell_are_those_of_a_release():
    values = RNG.binomial(1, 0.4, 100)
    released = pmdp.release(model := by_group(GROUPS, values), epsilon=1.0, public=["group"])
    law = {"y": {"ones": (released["y"].values[:, 0], pmdp.DiscreteLaplace(released["y"].scale))}}
    ours = pmdp.published(by_group(np.zeros(2, int), np.zeros(2, int)), statistics=law, n=[30, 20, 50])
    assert_same(ours, pmdp.rewrite(model, released), atol=1e-10)


def test_counts_of_levels_are_those_of_a_release():
    released = pmdp.release(model := shared(RNG.integers(0, 3, 80), "Categorical"), epsilon=1.0)
    [values], law = released["y"].values, pmdp.DiscreteLaplace(released["y"].scale)
    together = {"y": {"table": (values, law)}}
    apart = {"y": {f"level {k}": (values[k], law) for k in range(3)}}
    for said in (together, apart):
        assert_same(pmdp.published(shared([0], "Categorical"), statistics=said, n=80), pmdp.rewrite(model, released), atol=1e-10)


def test_a_table_whose_margins_are_unknown_is_that_of_a_release():
    released = pmdp.release(
        model := logistic(RNG.integers(0, 3, 200), RNG.binomial(1, 0.3, 200)), epsilon=1.0, bounds={"x": (0, 2)}, mechanism=GAUSSIAN
    )
    law = {"y": {"table": (released["y"].values, pmdp.DiscreteGaussian(released["y"].scale))}}
    ours = pmdp.published(logistic(np.zeros(4, int), np.zeros(4, int)), statistics=law, n=200, bounds={"x": (0, 2)})
    assert_same(ours, pmdp.rewrite(model, released), atol=1e-10)


@pytest.mark.parametrize("mechanism", ["laplace", GAUSSIAN])
@pytest.mark.parametrize(
    ("family", "bounds", "names"),
    [
        ("Poisson", (0, 9), ["sum y"]),
        ("Exponential", (0, 4), ["sum y"]),
        ("Normal", (-3, 3), ["sum y", "sum y²"]),
        ("Normal", (-3, 7), ["sum u", "sum u²"]),
        ("LogNormal", (0.25, 4), ["sum log y", "sum (log y)^2"]),
        ("Gamma", (0.1, 5), ["sum y", "sum log y"]),
    ],
)
def test_sums_in_units_of_the_values_are_those_of_a_release(family, bounds, names, mechanism):
    """What is released is scaled to [-1, 1]. Each is multiplied back by hand here, and so is the scale of its noise."""
    values = {"Poisson": RNG.poisson(2, 200), "Normal": RNG.normal(1, 1, 200)}.get(family, RNG.gamma(2, 0.6, 200))
    released = pmdp.release(model := shared(values, family), epsilon=1.0, bounds={"y": bounds}, mechanism=mechanism)
    statistic, n = released["y"], 200
    scale = statistic.scale * statistic.lattice
    noise = pmdp.LaplaceNoise if mechanism == "laplace" else pmdp.GaussianNoise
    if family == "Poisson":
        noise = pmdp.DiscreteLaplace if mechanism == "laplace" else pmdp.DiscreteGaussian
    of = np.log(bounds) if names[0] == "sum log y" else bounds
    half, middle = (of[1] - of[0]) / 2, (of[1] + of[0]) / 2
    if family == "Poisson" or names[0] == "sum u":
        middles, halves = [0.0, 0.0], [1.0, 1.0]
    elif family == "Gamma":
        middles, halves = [middle, np.log(bounds).mean()], [half, np.ptp(np.log(bounds)) / 2]
    else:
        middles, halves = [middle, 0.0], [half, half**2]
    said = {name: (n * c + h * value, noise(scale * h)) for name, c, h, value in zip(names, middles, halves, statistic.values[0])}
    ours = pmdp.published(shared([1], family), statistics={"y": said}, bounds={"y": bounds}, n=n)
    assert_same(ours, pmdp.rewrite(model, released))


UNITS = {"sum x": 2, "sum y": 5, "sum x²": 4, "sum x y": 10, "sum y²": 25}
"""Of moments of x between -2 and 2, and of y between -5 and 5, which are scaled to [-1, 1]."""


def of_moments(released, noise):
    """What was released of a line, written out in units of x and y."""
    statistic = released["y"]
    times = np.ones(5) if statistic.times is None else statistic.times
    return {
        name: (statistic.values[:, k] * UNITS[name], noise(statistic.scale * statistic.lattice / times[k] * UNITS[name]))
        for k, name in enumerate(statistic.statistics)
    }


@pytest.mark.parametrize("mechanism", ["laplace", GAUSSIAN])
def test_second_moments_are_those_of_a_release(mechanism):
    bounds = {"x": (-2, 2), "y": (-5, 5)}
    released = pmdp.release(model := line(X, 1 + 0.5 * X + RNG.normal(0, 1, 300)), epsilon=2.0, bounds=bounds, mechanism=mechanism)
    said = {"y": of_moments(released, pmdp.LaplaceNoise if mechanism == "laplace" else pmdp.GaussianNoise)}
    ours = pmdp.published(line(np.zeros(3), np.zeros(3)), statistics=said, bounds=bounds, n=300)
    assert_same(ours, pmdp.rewrite(model, released), atol=1e-4)


def growth(x, values):
    with pm.Model() as model:
        pm.LogNormal("y", pm.Normal("a", 0, 3) + pm.Normal("b", 0, 3) * pm.Data("x", x), pm.HalfNormal("sd", 3), observed=values)
    return model


def test_second_moments_of_logarithms_are_those_of_a_release():
    bounds = {"x": (-2, 2), "y": (np.exp(-5), np.exp(5))}
    released = pmdp.release(model := growth(X, np.exp(0.5 * X + RNG.normal(0, 1, 300))), epsilon=2.0, bounds=bounds)
    spelled = {"sum y": "sum log y", "sum x y": "sum x*log(y)", "sum y²": "sum (log y)^2"}
    said = {spelled.get(name, name): pair for name, pair in of_moments(released, pmdp.LaplaceNoise).items()}
    ours = pmdp.published(growth([0.0], [1.0]), statistics={"y": said}, bounds=bounds, n=300)
    assert_same(ours, pmdp.rewrite(model, released), atol=1e-4)


def lines(group, x, values):
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 3, shape=2), pm.Normal("b", 0, 3)
        pm.Normal("y", a[pm.Data("group", group)] + b * pm.Data("x", x), pm.HalfNormal("sd", 3), observed=values)
    return model


def test_second_moments_by_cell_are_those_of_a_release():
    """A covariate with bounds is summed; one without makes cells."""
    bounds, group = {"x": (-2, 2), "y": (-5, 5)}, np.repeat([0, 1], [120, 180])
    released = pmdp.release(model := lines(group, X, group + X + RNG.normal(0, 1, 300)), epsilon=2.0, bounds=bounds, public=["group"])
    said = {"y": of_moments(released, pmdp.LaplaceNoise)}
    ours = pmdp.published(lines([0], [0.0], [0.0]), statistics=said, bounds=bounds, n=[120, 180])
    assert_same(ours, pmdp.rewrite(model, released), atol=1e-4)


def several(values, waits):
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1, shape=2)
        pm.Poisson("y", rate, observed=values)
        pm.Exponential("wait", rate.sum(), observed=waits)
    return model


def test_several_variables_and_columns_are_those_of_a_release():
    bounds = {"y": (0, 9), "wait": (0, 4)}
    released = pmdp.release(model := several(RNG.poisson([1, 3], (60, 2)), RNG.exponential(0.3, 60)), epsilon=1.0, bounds=bounds)
    scale = released["wait"].scale * released["wait"].lattice
    said = {
        "y": {"sum y": (released["y"].values[..., 0], pmdp.DiscreteLaplace(released["y"].scale))},
        "wait": {"sum wait": (60 * 2 + 2 * released["wait"].values[0, 0], pmdp.LaplaceNoise(2 * scale))},
    }
    ours = pmdp.published(several(np.zeros((2, 2), int), np.ones(2)), statistics=said, bounds=bounds, n={"y": 60, "wait": 60})
    assert_same(ours, pmdp.rewrite(model, released))


def tailed(values):
    with pm.Model() as model:
        pm.StudentT("y", nu=4, mu=pm.Normal("m"), sigma=pm.HalfNormal("s"), observed=values)
    return model


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_counts_in_bins_are_those_of_a_release():
    bounds = {"y": pmdp.Bins(-3, 3, 6)}
    released = pmdp.release(model := tailed(RNG.normal(size=100)), epsilon=1.0, bounds=bounds)
    said = {"y": {"table": (released["y"].values, pmdp.DiscreteLaplace(released["y"].scale))}}
    assert_same(pmdp.published(tailed([0.0]), statistics=said, bounds=bounds, n=100), pmdp.rewrite(model, released), atol=1e-8)


# ---------- densities by hand


def test_exact_counts_are_multinomial():
    ours = pmdp.published(shared([0], "Categorical"), statistics={"y": {"table": ([3, 4, 5], pmdp.Exact())}}, n=12)
    with pm.Model() as theirs:
        pm.Multinomial("y", 12, pm.Dirichlet("p", np.ones(3)), observed=[3, 4, 5])
    assert_same(ours, theirs, atol=1e-6)


def test_each_cell_may_have_noise_of_its_own():
    """Binomial counts in a grid of two indices, under continuous Laplace noise: a sum over all counts."""
    values, n, scale = np.array([[3.0, 5.5, 2], [1, 9, -2.25]]), np.array([[30, 20, 10], [10, 30, 20]]), np.array([[1.0, 2, 9], [1, 2, 9]])
    law = {"y": {"ones": (values, pmdp.LaplaceNoise(scale))}}
    ours = pmdp.published(two_indices([0, 1], [0, 0], [0, 1]), statistics=law, n=n)
    assert [variable.name for variable in ours.observed_RVs] == ["y_1", "y_2", "y_3"]
    log_density = ours.compile_logp(vars=ours.observed_RVs, mode="FAST_COMPILE")

    def by_hand(point):
        p, total = 1 / (1 + np.exp(-point["a"][:, None] - point["b"])), 0.0
        for cell in np.ndindex(2, 3):
            counts = np.arange(n[cell] + 1)
            total += np.log(stats.binom.pmf(counts, n[cell], p[cell]) @ stats.laplace.pdf(values[cell], counts, scale[cell]))
        return total

    differences = [log_density(point) - by_hand(point) for point in points(ours)]
    np.testing.assert_allclose(differences, differences[0], atol=1e-8)


def clamped_moments(mean, sd, low, high):
    """Mean and covariance of (y, y²) of a clamped normal number, by quadrature."""
    density = stats.norm(mean, sd)

    def expected(power):
        inside = integrate.quad(lambda y: y**power * density.pdf(y), low, high, epsabs=1e-13, epsrel=1e-12)[0]
        return inside + low**power * density.cdf(low) + high**power * density.sf(high)

    m = [expected(k) for k in range(5)]
    return np.array([m[1], m[2]]), np.array([[m[2] - m[1] ** 2, m[3] - m[1] * m[2]], [m[3] - m[1] * m[2], m[4] - m[2] ** 2]])


@pytest.mark.parametrize("there", [("sum y", "sum y²"), ("sum y",), ("sum y²",)])
def test_noise_on_sums_of_clamped_values_is_independent_in_their_own_units(there):
    """Bounds that are not about 0, unequal Gaussian noise, and what was not published is not there."""
    low, high, n = 0.0, 10.0, 400
    said = {"sum y": (1210.0, 35.0), "sum y²": (4520.0, 220.0)}
    law = {name: (value, pmdp.GaussianNoise(scale)) for name, (value, scale) in said.items() if name in there}
    ours = pmdp.published(shared([0.0], "Normal"), statistics={"y": law}, bounds={"y": (low, high)}, n=n)
    log_density = ours.compile_logp(vars=ours.observed_RVs, mode="FAST_COMPILE")
    keep = [k for k, name in enumerate(said) if name in there]
    values, scales = np.array(list(said.values())).T

    def by_hand(point):
        mean, covariance = clamped_moments(float(point["mean"]), float(np.exp(point["sd_log__"])), low, high)
        covariance = n * covariance + np.diag(scales**2)
        return stats.multivariate_normal(n * mean[keep], covariance[np.ix_(keep, keep)]).logpdf(values[keep])

    at = [point | {"mean": point["mean"] + 3.0} for point in points(ours)]
    differences = [log_density(point) - by_hand(point) for point in at]
    np.testing.assert_allclose(differences, differences[0], atol=1e-4)


@pytest.mark.parametrize("exact", [0, 1])
def test_one_sum_may_be_exact_beside_a_noisy_one(exact):
    """The density of the exact one times that of the other given it, by quadrature over what may stand behind it."""
    n, values, scales, other = 400, (1210.0, 4520.0), (35.0, 220.0), 1 - exact
    laws = [pmdp.Exact() if k == exact else pmdp.LaplaceNoise(scales[k]) for k in range(2)]
    said = dict(zip(("sum y", "sum y²"), zip(values, laws)))
    ours = pmdp.published(shared([0.0], "Normal"), statistics={"y": said}, bounds={"y": (0.0, 10.0)}, n=n)
    log_density = ours.compile_logp(vars=ours.observed_RVs, mode="FAST_COMPILE")

    def by_hand(point):
        mean, covariance = (n * each for each in clamped_moments(float(point["mean"]), float(np.exp(point["sd_log__"])), 0.0, 10.0))
        slope = covariance[other, exact] / covariance[exact, exact]
        middle, spread = mean[other] + slope * (values[exact] - mean[exact]), covariance[other, other] - slope * covariance[other, exact]
        law = stats.norm(middle, np.sqrt(spread))
        ends = [
            middle - 12 * np.sqrt(spread),
            *[float(np.clip(values[other], *law.interval(1 - 1e-15)))] * 2,
            middle + 12 * np.sqrt(spread),
        ]
        behind = sum(
            integrate.quad(lambda s: law.pdf(s) * stats.laplace.pdf(values[other], s, scales[other]), low, high)[0]
            for low, high in ((ends[0], ends[1]), (ends[2], ends[3]))
        )
        return stats.norm(mean[exact], np.sqrt(covariance[exact, exact])).logpdf(values[exact]) + np.log(behind)

    at = [point | {"mean": point["mean"] + 3.0} for point in points(ours)]
    differences = [log_density(point) - by_hand(point) for point in at]
    np.testing.assert_allclose(differences, differences[0], atol=1e-3)


def test_every_moment_has_the_noise_that_was_said():
    """Far from what can be true, Laplace noise loses 1 / scale with every unit; a sum that was not published loses nothing."""
    scales = {"sum x": 3.0, "sum y": 20.0, "sum x y": 7.0, "sum y²": 150.0}
    numbers = {"sum x": 40.0, "sum y": 310.0, "sum x y": 55.0, "sum y²": 1400.0}
    units = {"sum x": 1.0, "sum y": 10.0, "sum x²": 1.0, "sum x y": 10.0, "sum y²": 100.0}
    law = {name: (numbers[name], pmdp.LaplaceNoise(scale)) for name, scale in scales.items()}
    public = pmdp.published(line([0.0], [0.0]), statistics={"y": law}, bounds={"x": (0, 1), "y": (0, 10)}, n=100)
    log_density, [at] = likelihood_of(public), points(public, 1)
    names, released = list(public.coords["y_statistic"]), public["y_released"].get_value()
    for k, name in enumerate(names):
        if name in numbers:
            assert released[0, k] * units[name] == pytest.approx(numbers[name], rel=1e-6)
        found = []
        for further in (3000.0, 3100.0):
            moved = released.copy()
            moved[0, k] += further / units[name]
            public.set_data("y_released", moved)
            found.append(log_density(at))
        assert found[0] - found[1] == pytest.approx(100.0 / scales[name] if name in scales else 0.0, rel=1e-6, abs=1e-4)
        public.set_data("y_released", released)


FUNCTIONS = {
    "y": lambda y, d: y, "y²": lambda y, d: y**2, "log y": lambda y, d: np.log(y), "(log y)²": lambda y, d: np.log(y) ** 2,
    "log(1 - y)": lambda y, d: np.log1p(-y), "1/y": lambda y, d: 1 / y, "cos y": lambda y, d: np.cos(y), "sin y": lambda y, d: np.sin(y),
    "abs(y - mu)": lambda y, d: abs(y - d.known[0]), "(y / upper)**alpha": lambda y, d: (y / d.upper) ** d.known[0],
    "number of events": lambda y, d: (y < min(d.known[1] if d.known[1] > d.lower else d.upper, d.upper)).astype(float),
}  # fmt: skip


def test_sums_in_units_of_the_values_are_what_their_names_say():
    """Of every family: rows of ``own_sums`` on its statistics are the sums of what stands in their names, up to the lattice."""
    seen = set()
    rng = np.random.default_rng(3)
    for family in all_families():
        for example in family.EXAMPLES:
            domain = example.domain
            if family.NDIM:
                continue
            values = complete(rng.uniform(domain.lower - 0.1, domain.upper + 0.1, 50), domain)
            values = np.maximum(values, domain.known[1]) if family.DISTRIBUTION == "Pareto" else values  # below lie none
            if family.DISTRIBUTION == "CensoredExponential":  # above the limit lies none
                values = np.minimum(values, domain.known[1]) if domain.known[1] > domain.lower else np.full(50, float(domain.lower))
            values = np.rint(values) if family.BOUNDS in ("integer", "none") else values
            sums = np.array([50, *(family.lattice(domain) * each.sum() for each in family.exact(values, domain))])
            for name, row in family.own_sums(domain):
                if (what := name.removeprefix("sum ")) in FUNCTIONS and (what != name or what == "number of events"):
                    true = FUNCTIONS[what](values, domain).sum()
                    assert np.dot(row, sums) == pytest.approx(true, abs=2e-3 * np.abs(row).sum()), (family, name)
                    seen.add(what)
    assert seen == set(FUNCTIONS)


def test_predicted_sums_are_those_of_records_with_noise():
    """In units of each noise. Of 4,000 draws a mean is off by more than 5 standard errors in one of 10^6 runs."""
    law = {"sum y": (900.0, pmdp.LaplaceNoise(20.0)), "sum y²": (5000.0, pmdp.LaplaceNoise(90.0))}
    public = pmdp.published(shared([0.0], "Normal"), statistics={"y": law}, bounds={"y": (0.0, 10.0)}, n=300)
    fixed = pm.do(public, {"mean": 3.0, "sd": 2.0})
    draws = pm.draw(fixed["y"], 4000, random_seed=1).reshape(4000, 2) * [20.0, 90.0]
    mean, covariance = clamped_moments(3.0, 2.0, 0.0, 10.0)
    covariance = 300 * covariance + np.diag([2 * 20.0**2, 2 * 90.0**2])
    assert (np.abs(draws.mean(axis=0) - 300 * mean) < 5 * np.sqrt(np.diag(covariance) / 4000)).all()
    np.testing.assert_allclose(np.cov(draws.T), covariance, rtol=0.15)


# ---------- what a model says


def test_dummy_rows_of_any_content_give_the_same_model():
    said = {"y": {"sum x": (40.0, pmdp.LaplaceNoise(9.0)), "sum y": (310.0, pmdp.LaplaceNoise(20.0)), "sum x*y": (55.0, pmdp.Exact())}}
    several = [
        pmdp.published(line(x, y), statistics=said, bounds={"x": (0, 1), "y": (0, 10)}, n=100)
        for x, y in ((np.zeros(5), np.zeros(5)), (RNG.normal(size=9), RNG.normal(size=9)), ([7e9], [-1e300]))
    ]
    one, two, three = map(likelihood_of, several)
    for point in points(several[0]):
        assert one(point) == two(point) == three(point)


def test_names_may_be_spelled_as_people_do():
    spelled = [
        {"sum wage": 310.0, "sum x": 40.0, "sum wage * x": 55.0, "sum wage^2": 990.0},
        {"sum y": 310.0, "sum x": 40.0, "sum x y": 55.0, "sum y²": 990.0},
    ]
    models = [
        pmdp.published(
            line(np.zeros(2), np.zeros(2), "wage"),
            statistics={"wage": {name: (value, pmdp.GaussianNoise(20.0)) for name, value in each.items()}},
            bounds={"x": (0, 1), "wage": (0, 10)},
            n=100,
        )
        for each in spelled
    ]
    one, two = map(likelihood_of, models)
    assert all(one(point) == two(point) for point in points(models[0]))


def products(x, z, values):
    with pm.Model() as model:
        x, z = pm.Data("x", x), pm.Data("z", z)
        mean = pm.Normal("a", 0, 3) + pm.Normal("b", 0, 3) * x + pm.Normal("c", 0, 3) * z + pm.Normal("d", 0, 3) * x * z
        pm.Normal("y", mean, pm.HalfNormal("sd", 3), observed=values)
    return model


def test_a_sum_of_products_is_one_number_whatever_it_is_called():
    """That of x z is a feature's and that of two features' product; that of x² z is not that of (x z)²."""
    bounds = {"x": (-1, 1), "z": (0, 2), "y": (0, 9)}
    observed = {}
    for name in ("sum x z", "sum z*x", "sum x^2 z", "sum x x z", "sum (x z)^2"):
        law = {"y": {"sum y": (30.0, pmdp.LaplaceNoise(9.0)), name: (7.0, pmdp.LaplaceNoise(1.0))}}
        public = pmdp.published(products([0.0], [0.0], [0.0]), statistics=law, bounds=bounds, n=50)
        observed[name] = np.flatnonzero(public["y_released"].get_value())
    assert all(len(places) == 2 for places in observed.values())
    assert observed["sum x z"].tolist() == observed["sum z*x"].tolist()
    assert observed["sum x^2 z"].tolist() == observed["sum x x z"].tolist()
    assert len({tuple(places) for places in observed.values()}) == 3


def test_a_response_that_was_moved_to_its_bounds_is_warned_of():
    """Its moments are scaled about 0, and its bounds are not: at the lower one lies what is negative."""
    x = RNG.uniform(0, 1, 2000)
    values = np.clip(RNG.normal(1 + x, 2), 0, 10)
    sums = {"sum x": x.sum(), "sum x²": (x**2).sum(), "sum y": values.sum(), "sum x y": (x * values).sum(), "sum y²": (values**2).sum()}
    law = {name: (value, pmdp.LaplaceNoise(2.0)) for name, value in sums.items()}
    public = pmdp.published(line([0.0], [0.0]), statistics={"y": law}, bounds={"x": (0, 1), "y": (0, 10)}, n=2000)
    with pytest.warns(UserWarning, match=r"of it lies outside \(0, 10\)"):
        warn_if_clamped(public.publication.statistics)


def test_the_promise_is_the_publishers():
    law = pmdp.Codebook(pmdp.LaplaceNoise(30.0), source="yearbook 2025, page 4", promise="epsilon 0.1")
    model = pmdp.published(shared([0], "Poisson"), statistics={"y": {"sum y": (412.0, law)}}, bounds={"y": (0, 20)}, n=200)
    assert str(model.publication) == "y, sum y: Laplace noise of scale 30 (yearbook 2025, page 4)"
    assert repr(model.publication) == str(model.publication)
    tree = pmdp.sample(20, tune=20, chains=1, model=model, progressbar=False, compute_convergence_checks=False, nuts_sampler="pymc")
    assert "claims no epsilon" in tree.attrs["promise"]
    assert "epsilon" not in tree.attrs | tree.posterior.attrs
    assert tree.privacy["declared"].values.tolist() == ["epsilon 0.1"]
    assert not hasattr(model, "privacy")
    with pytest.raises(pmdp.Refusal, match="nothing is spent on them"):
        pmdp.sample(20, model=model, epsilon=1.0)
    with model:
        pm.Normal("more", 0, 1, observed=0.0)
    with pytest.raises(pmdp.Refusal, match="more was added"):
        pmdp.sample(20, model=model)


def test_noisy_numbers_may_lie_where_no_true_one_can():
    law = pmdp.DiscreteLaplace(20)
    model = pmdp.published(by_group([0], [0]), statistics={"y": {"ones": ([-8, 41, 20], law)}}, n=[30, 20, 50])
    assert np.isfinite(likelihood_of(model)(model.initial_point()))
    model = pmdp.published(shared([0], "Normal"), statistics={"y": {"sum y²": (-50.0, law)}}, bounds={"y": (-1, 1)}, n=30)
    assert np.isfinite(likelihood_of(model)(model.initial_point()))


def test_cells_of_which_nothing_was_published_are_left_out():
    law = {"y": {"ones": ([9.0, np.nan, 21.0], pmdp.DiscreteLaplace(2.0))}}
    ours = pmdp.published(by_group([0], [0]), statistics=law, n=[30, 20, 50])
    full = {"y": {"ones": ([9.0, 21.0], pmdp.DiscreteLaplace(2.0))}}
    theirs = pmdp.published(by_group([0], [0]), statistics=full, n=[30, 50], cells={"group": [0, 2]})
    assert_same(ours, theirs, atol=1e-10)


def test_public_covariates_of_cells_are_what_cells_says():
    """In any arithmetic: here the square of an age."""

    def model(age, y):
        with pm.Model() as result:
            pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Normal("b") * pm.Data("age", age) ** 2 / 100, observed=y)
        return result

    law = {"y": {"ones": ([9.0, 30.0], pmdp.DiscreteLaplace(2.0))}}
    ours = pmdp.published(model(np.array([1.0]), [0]), statistics=law, n=[30, 50], cells={"age": [5.0, 20.0]})
    log_density = ours.compile_logp(vars=ours.observed_RVs, mode="FAST_COMPILE")

    def by_hand(point):
        total = 0.0
        for age, n, z in ((5.0, 30, 9.0), (20.0, 50, 30.0)):
            p, counts = 1 / (1 + np.exp(-point["a"] - point["b"] * age**2 / 100)), np.arange(n + 1)
            total += np.log(stats.binom.pmf(counts, n, p) @ (np.tanh(0.25) * np.exp(-abs(z - counts) / 2.0)))
        return total

    for point in points(ours):
        assert log_density(point) == pytest.approx(by_hand(point), abs=1e-8)


def by_dose(dose, x, effects, slopes):
    """A normal response whose level, and slope, are functions of a public dose; these take its array, or an index and its values."""
    with pm.Model() as model:
        a, b, c = pm.Normal("a", 0, 3), pm.Normal("b"), pm.Normal("c")
        at = effects(a, b, pm.Data("dose", dose))
        if slopes is not None:
            at = at + slopes(c, model["dose"]) * pm.Data("x", x)
        pm.Normal("y", at, pm.HalfNormal("sd", 3), observed=np.zeros(len(dose)))
    return model


MOMENTS = {
    "sum y": ([41.0, 60.0, 99.0], pmdp.LaplaceNoise(3.0)), "sum y²": ([190.0, 260.0, 410.0], pmdp.LaplaceNoise([9.0, 9.0, 30.0])),
    "sum x": ([5.0, -2.0, 3.0], pmdp.LaplaceNoise(2.0)), "sum x y": ([33.0, 10.0, 40.0], pmdp.LaplaceNoise(5.0)),
    "sum x²": ([9.0, 8.0, 12.0], pmdp.LaplaceNoise(2.0)),
}  # fmt: skip


@pytest.mark.parametrize("with_x", [False, True], ids=["all covariates public", "one summed"])
def test_a_real_public_covariate_of_a_normal_model_makes_cells(with_x):
    """As an index into levels and slopes does that are computed from its values one by one."""
    doses = [0.0, 0.5, 2.0]
    effect, slope = (lambda a, b, dose: a * pm.math.exp(0.3 * b * dose)), (lambda c, dose: c * (1 + dose))
    slopes = (slope, lambda c, g: pm.math.stack([slope(c, dose) for dose in doses])[g]) if with_x else (None, None)
    of_index = by_dose([0], [0.0], lambda a, b, g: pm.math.stack([effect(a, b, dose) for dose in doses])[g], slopes[1])
    said = MOMENTS if with_x else {name: MOMENTS[name] for name in ("sum y", "sum y²")}
    arguments = {"statistics": {"y": said}, "n": [30, 40, 50], "bounds": {"y": (-20, 30)} | ({"x": (-1, 1)} if with_x else {})}
    ours = pmdp.published(by_dose([0.0], [0.0], effect, slopes[0]), **arguments, cells={"dose": doses})
    assert_same(ours, pmdp.published(of_index, **arguments), atol=1e-6)


def test_an_array_of_cells_is_not_filled_up_with_dummy_rows():
    """Both stand in one expression, and one of them is not said."""
    with pm.Model() as model:
        score = pm.Data("age", [1.0, 2.0]) * pm.Data("dose", [1.0, 1.0])
        pm.Bernoulli("y", logit_p=pm.Normal("b") * score, observed=[0, 0])
    law = {"y": {"ones": ([9.0, 30.0], pmdp.DiscreteLaplace(2.0))}}
    with pytest.raises(pmdp.Refusal, match="rests on arrays that are not in cells"):
        pmdp.published(model, statistics=law, n=[30, 50], cells={"age": [5.0, 20.0]})
    assert pmdp.published(model, statistics=law, n=[30, 50], cells={"age": [5.0, 20.0], "dose": [1.0, 2.0]})


# ---------- refused


def covariate_called_y():
    with pm.Model() as model:
        pm.Normal("z", pm.Normal("b") * pm.Data("y", [0.0]), 1.0, observed=[0.0])
    return model


SUM = {"sum y": (41.0, pmdp.LaplaceNoise(3.0))}
MEAN = {"bounds": {"y": (0, 9)}, "n": 20}
LINE = {"bounds": {"y": (0, 9), "x": (0, 1)}, "n": 20}
ONES = pmdp.DiscreteLaplace(2.0)
REFUSED = {
    "another variable": (shared([0], "Poisson"), {"z": SUM}, MEAN, "'z' is no observed variable of this model. Write y"),
    "names not within": (shared([0], "Poisson"), SUM, MEAN, "names of sums are within: statistics={'y': {'sum y'"),
    "an empty name": (shared([0], "Poisson"), {"y": {"": SUM["sum y"]}}, MEAN, "'' is no sum"),
    "beyond the bounds": (shared([0], "Poisson"), {"y": {"sum y": (900.0, ONES)}}, MEAN, "is 900, and 20 records from 0 to 9 add up to"),
    "below them": (shared([0.0], "Normal"), {"y": {"sum y": (-70.0, ONES)}}, MEAN, "is -70, and 20 records"),
    "a covariate beyond": (
        line([0.0], [0.0]), {"y": {"sum x": (90.0, ONES), "sum y": (4.0, ONES)}}, LINE, "sum x of y is 90, and 20 records",
    ),
    "a mean": (shared([0], "Poisson"), {"y": {"mean y": SUM["sum y"]}}, MEAN, "write 'sum y', with n times the number"),
    "ones and no n": (by_group([0], [0]), {"y": {"ones": ([4, 2, 3], ONES)}}, {}, "Or write n=1000"),
    "nothing of a variable": (shared([0], "Poisson"), {}, MEAN, "Nothing is said of y"),
    "no mapping": (shared([0], "Poisson"), {"y": 41.0}, MEAN, "Say by name which sums of y"),
    "no law": (shared([0], "Poisson"), {"y": {"sum y": 41.0}}, MEAN, "needs its number and the law"),
    "a misspelt name": (shared([0], "Poisson"), {"y": {"summ y": SUM["sum y"]}}, MEAN, "Did you mean 'sum y'"),
    "no n": (shared([0], "Poisson"), {"y": SUM}, {"bounds": {"y": (0, 9)}}, "How many records y was summed over"),
    "n is no number": (shared([0], "Poisson"), {"y": SUM}, MEAN | {"n": 0.5}, "must be a whole number"),
    "no bounds": (shared([0], "Poisson"), {"y": SUM}, {"n": 20}, "needs bounds"),
    "several for one": (shared([0], "Poisson"), {"y": {"sum y": ([41.0, 3.0], ONES)}}, MEAN, "has shape"),
    "cells where there are none": (shared([0], "Poisson"), {"y": SUM}, MEAN | {"n": [10, 10]}, "has no cells"),
    "another number of cells": (by_group([0], [0]), {"y": {"ones": ([1.0, 2.0], ONES)}}, {"n": [10, 10]}, "has .2,. numbers of records"),
    "another shape": (by_group([0], [0]), {"y": {"ones": ([1.0, 2.0], ONES)}}, {"n": [10, 10, 10]}, "has shape"),
    "scales of another shape": (
        by_group([0], [0]), {"y": {"ones": ([1, 2, 3], pmdp.DiscreteLaplace([1.0, 2.0]))}}, {"n": [9, 9, 9]}, "scales of shape",
    ),
    "one number twice": (
        by_group([0], [0]), {"y": {"ones": ([1, 2, 3], ONES), "sum y": ([1, 2, 3], ONES)}}, {"n": [9, 9, 9]}, "one number",
    ),
    "a level is missing": (
        shared([0], "Categorical"), {"y": {"level 0": (3, ONES), "level 1": (4, ONES)}}, {"n": 9}, "needs each of level 0",
    ),
    "another noise for each level": (
        shared([0], "Categorical"), {"y": {"table": ([3, 4, 5], pmdp.DiscreteLaplace([1.0, 2.0, 2.0]))}}, {"n": 9}, "different noise",
    ),
    "two kinds of noise": (
        shared([0], "Normal"), {"y": {"sum y": (3, pmdp.LaplaceNoise(2.0)), "sum y²": (4, pmdp.GaussianNoise(2.0))}}, MEAN, "from_variance",
    ),
    "two kinds of noise in a regression": (
        line([0.0], [0.0]), {"y": {"sum y": (3, pmdp.LaplaceNoise(2.0)), "sum x": (4, pmdp.GaussianNoise(2.0))}}, LINE, "from_variance",
    ),
    "one sum in two units": (
        shared([0], "Normal"), {"y": {"sum y": (3, pmdp.LaplaceNoise(2.0)), "sum u": (4, pmdp.LaplaceNoise(2.0))}}, MEAN, "follow from",
    ),
    "clipped": (shared([0], "Poisson"), {"y": {"sum y": (3, [ONES, pmdp.Clipped(0)])}}, MEAN, "Of sums only noise is understood"),
    "another law": (shared([0], "Poisson"), {"y": {"sum y": (3, pmdp.RoundedToBase(3))}}, MEAN, "with the same variance"),
    "whole noise on a fraction": (shared([0], "Poisson"), {"y": {"sum y": (3.5, ONES)}}, MEAN, "no whole number"),
    "infinite": (shared([0], "Poisson"), {"y": {"sum y": (np.inf, pmdp.LaplaceNoise(1.0))}}, MEAN, "infinite"),
    "text": (shared([0], "Poisson"), {"y": {"sum y": ("many", ONES)}}, MEAN, "is no number"),
    "scores": (
        logistic([0.0], [0]), {"y": {"sum y": (3, ONES)}}, {"n": 9, "bounds": {"x": (0, 1), "logit(y)": (-3, 3)}}, "which nobody publishes",
    ),
    "a covariate called y": (
        covariate_called_y(), {"z": {"sum y": (3, ONES)}}, {"n": 9, "bounds": {"y": (0, 1), "z": (0, 9)}}, "Call that pm.Data otherwise",
    ),
    "nothing at all": (by_group([0], [0]), {"y": {"ones": (np.full(3, np.nan), ONES)}}, {"n": [9, 9, 9]}, "all are NaN"),
    "a number for cells": (
        by_dose([0.0], [0.0], lambda a, b, d: a + b * d, None), {"y": {"sum y": ([1, 2], ONES)}},
        MEAN | {"n": [9, 9], "cells": {"dose": 1.0}},
        "one entry for every",
    ),
    "cells of no array": (by_group([0], [0]), {"y": {"ones": ([1, 2, 3], ONES)}}, {"n": [9, 9, 9], "cells": {"g": [0]}}, "no pm.Data"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    model, statistics, arguments, words = REFUSED[case]
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.published(model, statistics=statistics, **arguments)


def test_arguments_of_another_kind_of_publication_are_refused():
    with pytest.raises(pmdp.Refusal, match="Leave values and same_people out"):
        pmdp.published(shared([0], "Poisson"), values={"y": [3.0]}, statistics={"y": SUM}, **MEAN)
    with pytest.raises(pmdp.Refusal, match="Write statistics="):
        pmdp.published(shared([0], "Poisson"), {"y": pmdp.Exact()}, n=20)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"statistics": {"income": {"total": SUM["sum y"]}}}, "Write one of 'sum income', 'sum income²'[.]"),
        ({"statistics": {"income": {"sum income": 41.0}}}, r"statistics={'income': {'sum income': \(412.0, pymc_dp.Lap.*0\)\)}}[.]"),
        ({"statistics": {"income": {"sum income": SUM["sum y"]}}, "bounds": {}}, "to which the publisher clamped each"),
    ],
    ids=["names", "no law", "no bounds"],
)  # fmt: skip
def test_refusals_speak_of_the_users_variable_and_the_publishers_units(arguments, words):
    """Names with the variable's own, without those of scaled sums; each that is listed is understood."""
    with pm.Model() as model:
        pm.Normal("income", pm.Normal("mean"), pm.HalfNormal("sd"), observed=[0.0])
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.published(model, **{"bounds": {"income": (0, 9)}, "n": 20} | arguments)
    for name in ("sum income", "sum income²", "sum u", "sum u²"):
        assert pmdp.published(model, statistics={"income": {name: SUM["sum y"]}}, bounds={"income": (0, 9)}, n=20)
