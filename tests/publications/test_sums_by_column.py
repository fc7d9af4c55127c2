"""Published sums of several columns, each summed within bounds of its own: one path with our own releases, and what is refused."""

import numpy as np
import pymc as pm
import pytest
from test_published_sums import assert_same

import pymc_dp as pmdp

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(6)
GROUPS = np.repeat([0, 1, 2], [30, 20, 50])
FAMILIES = {
    "Normal": (RNG.normal([1, 50], [1, 9], (100, 2)), [(-3.0, 7.0), (20.0, 90.0)], ["sum y", "sum y²"]),
    "LogNormal": (np.exp(RNG.normal([0, 5], [1, 0.5], (100, 2))), [(0.1, 10.0), (20.0, 900.0)], ["sum log y", "sum (log y)²"]),
    "Gamma": (RNG.gamma(2, [1, 20], (100, 2)), [(0.1, 9.0), (1.0, 200.0)], ["sum y", "sum log y"]),
    "Exponential": (RNG.exponential([1, 20], (100, 2)), [(0.0, 6.0), (2.0, 90.0)], ["sum y"]),
    "Poisson": (RNG.poisson([1, 20], (100, 2)), [(0, 6), (5, 60)], ["sum y"]),
    "Geometric": (RNG.geometric([0.5, 0.05], (100, 2)), [(1, 9), (2, 90)], ["sum y"]),
}


def written(family, values, groups=None):
    with pm.Model() as model:
        shape, g = (2, None) if groups is None else ((3, 2), pm.Data("group", groups))
        first = pm.HalfNormal("first", [1, 9], shape=shape)
        first = first if g is None else first[g]
        if family == "Geometric":
            pm.Geometric("y", 1 / (1 + first), observed=values)
        elif family in ("Exponential", "Poisson"):
            getattr(pm, family)("y", first, observed=values)
        else:
            getattr(pm, family)("y", first, pm.HalfNormal("second", [1, 9], shape=2), observed=values)
    return model


def summed(family, values, pairs, cells):
    """Sums by cell and column of clamped values, (G, 2) each, by NumPy."""
    inside = np.clip(values, *np.transpose(pairs)).astype(float)
    logs = np.log(np.maximum(inside, 1e-300))
    of = {"sum y": inside, "sum y²": inside**2, "sum log y": logs, "sum (log y)²": logs**2}
    return {name: np.stack([each[cells == g].sum(axis=0) for g in range(cells.max() + 1)]) for name, each in of.items()}


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_sums_of_columns_are_those_of_variables_of_their_own(family, groups):
    """Each column is a variable whose sums were published: the density is a product, with noise that differs between columns and sums."""
    values, pairs, names = FAMILIES[family]
    cells = GROUPS if groups else np.zeros(100, dtype=int)
    sums, n = summed(family, values, pairs, cells), np.bincount(cells)
    scales = {name: (3.0 + k) * np.array([1.0, 20.0]) ** (1 + ("²" in name)) for k, name in enumerate(names)}
    said = {"y": {name: (sums[name] + 0.3, pmdp.LaplaceNoise(np.broadcast_to(scales[name], sums[name].shape))) for name in names}}
    few = values[:2]
    ours = pmdp.published(written(family, few, [0, 1] if groups else None), statistics=said, bounds={"y": pairs}, n=n if groups else 100)
    with pm.Model() as apart:
        shape = (3, 2) if groups else 2
        first = pm.HalfNormal("first", [1, 9], shape=shape)
        second = pm.HalfNormal("second", [1, 9], shape=2) if len(names) > 1 else None
        g = pm.Data("group", np.array([0, 1])) if groups else None
        for c, name in enumerate(("y", "z")):
            mean = first[c] if g is None else first[g, c]
            if family == "Geometric":
                pm.Geometric(name, 1 / (1 + mean), observed=few[:, c])
            elif second is None:
                getattr(pm, family)(name, mean, observed=few[:, c])
            else:
                getattr(pm, family)(name, mean, second[c], observed=few[:, c])
    of_each = {
        name: {s.replace("y", name): (sums[s][:, c] + 0.3, pmdp.LaplaceNoise(float(scales[s][c]))) for s in names}
        for c, name in enumerate(("y", "z"))
    }
    numbers = dict.fromkeys(("y", "z"), n if groups else 100)
    theirs = pmdp.published(apart, statistics=of_each, bounds={"y": pairs[0], "z": pairs[1]}, n=numbers)
    assert_same(ours, theirs)


def test_they_are_those_of_a_release():
    """What ``inspect`` calls them is understood: here u is a value scaled by the bounds of its column."""
    for family, sums in {"Normal": ["sum u", "sum u²"], "Poisson": ["sum y"]}.items():
        values, pairs, _ = FAMILIES[family]
        released = pmdp.release(model := written(family, values), epsilon=1.0, bounds={"y": pairs})
        noisy, scale = released["y"].values[0], released["y"].scale * released["y"].lattice
        law = pmdp.DiscreteLaplace(scale) if family == "Poisson" else pmdp.LaplaceNoise(scale)
        said = {"y": {name: (noisy[:, k], law) for k, name in enumerate(sums)}}
        ours = pmdp.published(written(family, values[:2]), statistics=said, bounds={"y": pairs}, n=100)
        assert_same(ours, pmdp.rewrite(model, released))


def test_exact_sums_are_taken_as_they_are():
    values, pairs, names = FAMILIES["Normal"]
    sums = summed("Normal", values, pairs, np.zeros(100, dtype=int))
    said = {"y": {name: (sums[name], pmdp.Exact()) for name in names}}
    ours = pmdp.published(written("Normal", values[:2]), statistics=said, bounds={"y": [pmdp.Natural(*pair) for pair in pairs]}, n=100)
    density = ours.compile_logp(vars=ours.observed_RVs, mode="FAST_COMPILE")
    at = {"first_log__": np.log([1.0, 50.0]), "second_log__": np.log([1.0, 9.0])}
    assert density(at) > density(at | {"first_log__": np.log([1.5, 50.0])})
    assert density(at) > density(at | {"first_log__": np.log([1.0, 57.0])})


def test_a_sum_that_a_column_cannot_have_is_refused_by_its_own_bounds():
    values, pairs, _ = FAMILIES["Poisson"]
    for sums, words in {(700.0, 900.0): "100 records from 0 to 6", (90.0, 200.0): "100 records from 5 to 60"}.items():
        said = {"y": {"sum y": (np.array(sums), pmdp.LaplaceNoise(1.0))}}
        with pytest.raises(pmdp.Refusal, match=words):
            pmdp.published(written("Poisson", values[:2]), statistics=said, bounds={"y": pairs}, n=100)


def lines(values):
    with pm.Model() as model:
        a, b, x = pm.Normal("a", 0, [3, 90], shape=2), pm.Normal("b", 0, [3, 90], shape=2), pm.Data("x", [0.0, 1.0])
        pm.Normal("y", a + b * x[:, None], pm.HalfNormal("s", [3, 90], shape=2), observed=values)
    return model


def test_regressions_have_one_pair_and_what_is_named_instead_works():
    x = RNG.uniform(-2, 2, 300)
    y = np.column_stack([1 + x, 40 + 9 * x]) + RNG.normal(size=(300, 2))
    pairs = [(-6.0, 6.0), (0.0, 80.0)]
    sums = {"sum x": x.sum(), "sum x²": (x**2).sum()}
    law = pmdp.LaplaceNoise(2.0)
    said = {name: (np.full(2, number), law) for name, number in sums.items()}
    said |= {"sum y": (y.sum(axis=0), law), "sum x y": (x @ y, law), "sum y²": ((y**2).sum(axis=0), law)}
    with pytest.raises(pmdp.Refusal, match="Write an observed variable for every column, as with observed=y"):
        pmdp.published(lines(y[:2]), statistics={"y": said}, bounds={"x": (-2, 2), "y": pairs}, n=300)
    with pm.Model() as apart:
        a, b, shared = pm.Normal("a", 0, [3, 90], shape=2), pm.Normal("b", 0, [3, 90], shape=2), pm.Data("x", [0.0, 1.0])
        s = pm.HalfNormal("s", [3, 90], shape=2)
        for c, name in enumerate(("y", "z")):
            pm.Normal(name, a[c] + b[c] * shared, s[c], observed=y[:2, c])
    each = {
        name: {key.replace("y", name): (np.ravel(number)[c], law) for key, (number, law) in said.items()}
        for c, name in enumerate(("y", "z"))
    }
    model = pmdp.published(apart, statistics=each, bounds={"x": (-2, 2), "y": pairs[0], "z": pairs[1]}, n={"y": 300, "z": 300})
    assert [variable.name for variable in model.observed_RVs] == ["y", "z"]


def test_unknown_numbers_of_records_need_a_variable_for_each():
    values, pairs, _ = FAMILIES["Normal"]
    said = {"y": {"sum y": (np.array([100.0, 5000.0]), pmdp.LaplaceNoise(5.0))}}
    n = (100.0, pmdp.LaplaceNoise(2.0))
    with pytest.raises(pmdp.Refusal, match="a variable for each column"):
        pmdp.published(written("Normal", values[:2]), statistics=said, bounds={"y": pairs}, n=n)
