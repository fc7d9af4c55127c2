"""Bayesian networks: what the graph says, Fourier coefficients, their exact sensitivity, and releases of them."""

import itertools

import numpy as np
import pymc as pm
import pytest
from checks import EXACT, flat, mostly_slow
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import laplace

import pymc_dp as pmdp
from pymc_dp.plans import network as networks
from pymc_dp.plans.network import Network, Node
from pymc_dp.plans.walsh import divisor_of, walsh

pytestmark = pytest.mark.filterwarnings("ignore")


def net(levels, arrows):
    """Nodes v0, v1, ... with arrows (parent, child)."""
    parents = {k: tuple(f"v{a}" for a, b in arrows if b == k) for k in range(len(levels))}
    return Network(tuple(Node(f"v{k}", f"v{k}", 0, n, parents[k]) for k, n in enumerate(levels)))


def tables(network, rows):
    found = {}
    for node in network.nodes:
        found[node.name] = np.zeros(network.shape(node), dtype=np.int64)
        np.add.at(found[node.name], tuple(rows[:, k] for k in network.family(node)), 1)
    return found


def every_record(levels):
    return np.array(list(itertools.product(*map(range, levels))))


@st.composite
def random_networks(draw, most=5, levels=(2,)):
    many = draw(st.integers(2, most))
    arrows = [(a, b) for b in range(many) for a in range(b) if draw(st.booleans())]
    return net([draw(st.sampled_from(levels)) for _ in range(many)], arrows)


NAIVE_BAYES = net([2] * 17, [(0, k) for k in range(1, 17)])
CHAIN = net([2] * 5, [(k, k + 1) for k in range(4)])
COMPLETE = net([2] * 4, list(itertools.combinations(range(4), 2)))


# ---------- sensitivity
def brute_force(network):
    """Largest L1 and squared L2 distance between the coefficients of any two records, and largest L1 norm of one."""
    records = every_record([node.levels for node in network.nodes])
    own = np.array([network.transformed(tables(network, record[None])) for record in records])
    replaced = squared = 0
    for one in own:  # one record at a time: all pairs of 625 records, each with 625 coefficients, are many gigabytes
        moved = np.abs(own - one)
        replaced, squared = max(replaced, moved.sum(axis=-1).max()), max(squared, (moved**2).sum(axis=-1).max())
    return replaced, squared, np.abs(own).sum(axis=-1).max()


@settings(max_examples=60, deadline=None)
@given(random_networks())
def test_the_sensitivity_is_that_of_all_pairs_of_records(network):
    replaced, squared, one_more = brute_force(network)
    assert replaced == network.fourier_sensitivity("replace")
    assert squared == network.fourier_square("replace")
    assert one_more == network.fourier_sensitivity("add_remove") == network.fourier_square("add_remove") == len(network.coefficients)


@settings(max_examples=20, deadline=None)
@given(random_networks(most=4, levels=(2, 3, 4, 5)))
def test_so_it_is_with_more_levels(network):
    replaced, squared, _ = brute_force(network)
    assert (replaced, squared) == (network.fourier_sensitivity("replace"), network.fourier_square("replace"))


@pytest.mark.parametrize(
    ("network", "size", "L1"), [(NAIVE_BAYES, 34, 64), (CHAIN, 10, 14), (COMPLETE, 16, 16)], ids=["bayes", "chain", "4"]
)
def test_published_networks(network, size, L1):
    """Naive Bayes 4 d', a complete graph 2^d, where the paper has 2 N (docs/theory.md)."""
    assert len(network.coefficients) == size
    assert network.fourier_sensitivity("replace") == L1 < 2 * size


def test_an_upper_bound_takes_the_place_of_what_is_too_large(monkeypatch):
    """Never below the exact one, and never above 2 (N - 1)."""
    exact = [network.odd for network in (NAIVE_BAYES, CHAIN, COMPLETE)]
    monkeypatch.setattr("pymc_dp.plans.walsh.MOST_ENTRIES", 1)
    for network, least in zip((NAIVE_BAYES, CHAIN, COMPLETE), exact, strict=True):
        bound = Network(network.nodes).odd
        assert least <= bound <= len(network.coefficients) - 1


@settings(max_examples=60, deadline=None)
@given(random_networks(), st.integers(0, 2**32 - 1))
def test_one_record_moves_the_tables_by_two_for_every_family(network, seed):
    """ZRD16, Lemma 1: at most 2 |I|, and a record that differs in everything attains it."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2, (5, len(network.nodes)))
    other = rows.copy()
    other[0] = 1 - other[0]
    moved = [np.abs(one - two).sum() for one, two in zip(tables(network, rows).values(), tables(network, other).values(), strict=True)]
    assert moved == [2] * len(network.nodes)


# ---------- coefficients
@settings(max_examples=40, deadline=None)
@given(random_networks(most=4, levels=(2, 3, 4, 5)), st.integers(0, 2**32 - 1))
def test_tables_come_back(network, seed):
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.integers(0, node.levels, 30) for node in network.nodes])
    whole = tables(network, rows)
    back = network.tables(network.transformed(whole))
    for node in network.nodes:
        np.testing.assert_array_equal(back[node.name], whole[node.name] * divisor_of(network.shape(node)))


def test_coefficients_are_the_paper_s():
    """ZRD16, equation 1: <f^g, h> = 2^(-d/2) sum over records of (-1)^<g, x>; ours are 2^(d/2) times that."""
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 2, (40, 5))
    found = CHAIN.transformed(tables(CHAIN, rows))
    for pattern, place in CHAIN.coefficients.items():
        g = np.zeros(5, dtype=int)
        for node, bits in pattern:
            g[node] = bits
        assert found[place] == ((-1) ** (rows @ g)).sum()


def test_walsh_is_its_own_inverse():
    table = np.random.default_rng(1).integers(-9, 9, (2, 4, 8))
    np.testing.assert_array_equal(walsh(walsh(table)), 64 * table)


def test_tables_of_noisy_coefficients_agree_where_families_overlap():
    rng = np.random.default_rng(2)
    noisy = CHAIN.transformed(tables(CHAIN, rng.integers(0, 2, (20, 5)))) + rng.integers(-9, 9, 10)
    found = CHAIN.tables(noisy)
    for k in range(1, 4):
        np.testing.assert_array_equal(found[f"v{k}"].sum(axis=0), found[f"v{k + 1}"].sum(axis=1))


# ---------- shifts
@settings(max_examples=30, deadline=None)
@given(random_networks(levels=(2, 3)), st.integers(0, 2**32 - 1))
def test_the_minimal_shift_is_enough_and_no_more(network, seed):
    noisy = np.random.default_rng(seed).integers(-50, 50, len(network.coefficients))
    needed = network.needed_shift(network.tables(noisy))
    for less, enough in ((0, True), (1, needed == 0)):
        shifted = noisy.copy()
        shifted[0] += max(needed - less, 0)
        assert (min(table.min() for table in network.tables(shifted).values()) >= 0) == enough


@pytest.mark.parametrize("network", [NAIVE_BAYES, CHAIN], ids=["bayes", "chain"])
def test_the_paper_s_shift_at_one_is_enough(network):
    """ZRD16, Corollary 3: with probability 1 - exp(-t) at least, for t >= 1; a false alarm has probability 1e-6 if that is tight."""
    scale, draws = network.fourier_sensitivity("replace") / 1.0, 2000
    noise = laplace(scale=scale).rvs((draws, len(network.coefficients)), random_state=np.random.default_rng(3))
    noise[:, 0] = network.paper_shift(1.0, 1.0)
    negative = sum(min(table.min() for table in network.tables(np.rint(row).astype(np.int64)).values()) < 0 for row in noise)
    assert negative / draws < np.exp(-1) + 4.8 * np.sqrt(np.exp(-1) * (1 - np.exp(-1)) / draws)


def test_the_data_free_t_does_what_it_says():
    """Nine in ten empty tables; 1,000 of other noise, at 4.9 standard deviations."""
    t = NAIVE_BAYES.stealth(1.0)
    assert 0.09 < t < 0.13  # with the paper's larger noise it is .126
    noise = laplace(scale=64.0).rvs((1000, 34), random_state=np.random.default_rng(4))
    noise[:, 0] = NAIVE_BAYES.paper_shift(t, 1.0)
    enough = np.mean([min(table.min() for table in NAIVE_BAYES.tables(np.rint(row).astype(np.int64)).values()) >= -1 for row in noise])
    assert abs(enough - 0.9) < 4.9 * np.sqrt(0.09 / 1000) + 0.02  # its quantile, too, is of 2,000 draws


# ---------- releases
RNG = np.random.default_rng(8)
ROWS = np.column_stack([RNG.integers(0, 2, 70), RNG.integers(0, 3, 70), RNG.integers(0, 2, 70)])


def three(rows=ROWS, c="c"):
    with pm.Model() as model:
        a = pm.Bernoulli("a", pm.Beta("p", 1, 1), observed=rows[:, 0])
        b = pm.Categorical("b", pm.Dirichlet("q", np.ones(3), shape=(2, 3))[a], observed=rows[:, 1])
        pm.Bernoulli(c, pm.Beta("r", 1, 1, shape=(3, 2))[b, a], observed=rows[:, 2])
    return model


def counted(rows=ROWS):
    a, b, c = rows.T
    two = np.array([[((a == i) & (b == j)).sum() for j in range(3)] for i in range(2)])
    three = np.array([[[((b == j) & (a == i) & (c == k)).sum() for k in range(2)] for i in range(2)] for j in range(3)])
    return a.sum(), two, three.reshape(6, 2)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_fourier_releases_the_tables(exact_seam, neighbours):
    released = pmdp.release(three(), epsilon=EXACT, mechanism="fourier", neighbours=neighbours)
    ones, two, three_ = counted()
    assert released["a"].values.ravel().tolist() == ([ones] if neighbours == "replace" else [70 - ones, ones])
    np.testing.assert_array_equal(released["b"].values, two)
    np.testing.assert_array_equal(released["c"].values, three_)
    assert len(exact_seam.exact) == 1
    assert len(exact_seam.exact[0]) == len(released.network.coefficients) - (neighbours == "replace")


def test_fourier_tables_agree_and_survive_a_file(tmp_path):
    released = pmdp.release(three(), epsilon=1.0, mechanism="fourier")
    b, c = released["b"].values, released["c"].values.reshape(3, 2, 2)
    assert b.sum() == pytest.approx(70)
    assert released["a"].values.item() == pytest.approx(b[1].sum())
    np.testing.assert_allclose(b.T, c.sum(axis=-1))
    released.to_netcdf(tmp_path / "release.nc")
    again = pmdp.Release.from_netcdf(tmp_path / "release.nc")
    assert again.network == released.network
    assert [s.shift for s in again.statistics] == [s.shift for s in released.statistics]
    assert [s.noise for s in again.statistics] == [s.noise for s in released.statistics]


def test_columns_are_nodes_of_their_own(exact_seam):
    votes = RNG.integers(0, 2, (70, 4))
    with pm.Model() as model:
        party = pm.Bernoulli("party", pm.Beta("p", 1, 1), observed=ROWS[:, 0])
        pm.Bernoulli("votes", pm.Beta("t", 1, 1, shape=(2, 4))[party], observed=votes)
    released = pmdp.release(model, epsilon=EXACT, mechanism="fourier")
    assert [node.name for node in released.network.nodes] == ["party", "votes[0]", "votes[1]", "votes[2]", "votes[3]"]
    expected = [[[((ROWS[:, 0] == j) & (votes[:, c] == k)).sum() for k in range(2)] for c in range(4)] for j in range(2)]
    np.testing.assert_array_equal(released["votes"].values, expected)


RELEASES = pytest.mark.parametrize("many", [60, pytest.param(1500, marks=pytest.mark.slow)])


def tolerance(many, numbers):
    """Five standard deviations of a sample variance of so many numbers; Laplace noise has a kurtosis of 6 at most."""
    return 5 * np.sqrt(5 / (many * numbers))


@RELEASES
def test_noise_of_counts_has_the_variance_it_is_modelled_with(many):
    model, errors = three(), {"a": [], "b": [], "c": []}
    truth = dict(zip("abc", counted(), strict=True))
    for _ in range(many):
        released = pmdp.release(model, epsilon=4.0, mechanism="fourier")
        for name in errors:
            errors[name].append(released[name].values.ravel() - np.ravel(truth[name]))
    for node, (name, several) in zip(released.network.nodes, errors.items(), strict=True):
        # Exactly, and as modelled: what unused codes add moves sums, more than differences.
        exact = networks.variance_of(released.network.shape(node), True) * 2 / np.expm1(1 / released[name].scale) ** 2
        exact *= np.exp(1 / released[name].scale)
        off = tolerance(many, max(len(several[0]) - 1, 1))
        assert abs(np.mean(np.square(several)) / exact - 1) < off
        bits = networks.bits_of(released.network.shape(node))
        modelled = released[name].noise.standard_deviation ** 2 * (1 - 2.0**-bits if bits > 1 else 1)
        assert 0.75 < modelled / exact < 1.25


def test_a_plug_in_posterior_uses_the_shifted_tables():
    for nonnegative in ("minimal", "stealth", 1.0):
        released = pmdp.release(three(), epsilon=0.5, mechanism=pmdp.Fourier(nonnegative=nonnegative))
        private = pmdp.rewrite(three(), released, noise_aware=False)
        for one in released.statistics[1:]:
            observed = private[f"{one.variable}_released"].get_value()
            np.testing.assert_allclose(observed, np.maximum(one.values + one.shift * one.lattice, 0), atol=1e-9)
            if nonnegative == "minimal":
                assert (one.noisy + one.shift >= 0).all()
        ones = private["a_released"].get_value().item()
        assert 0 <= ones <= 70 + released["a"].shift


# ---------- refusals
def other_levels():
    a = pm.Bernoulli("a", pm.Beta("p", 1, 1), observed=ROWS[:, 0])
    pm.Bernoulli("b", pm.Beta("q", 1, 1, shape=3)[a], observed=ROWS[:, 2])


def private_array():
    pm.Bernoulli("b", pm.Beta("q", 1, 1, shape=2)[ROWS[:, 0]], observed=ROWS[:, 2])


def continuous():
    a = pm.Normal("a", pm.Normal("m"), 1, observed=ROWS[:, 0].astype(float))
    pm.Normal("b", pm.Normal("s") * a, 1, observed=ROWS[:, 2].astype(float))


def alone():
    pm.Bernoulli("b", pm.Beta("q", 1, 1), observed=ROWS[:, 2])


@pytest.mark.parametrize(
    ("body", "words", "bounds"),
    [
        (other_levels, "table of another length", {}),
        (private_array, "not an observed variable", {}),
        (continuous, "a is Normal", {"a": (0, 1), "b": (0, 1)}),
        (alone, "no observed variable depends on another", {}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_no_network_has_no_fourier_coefficients(body, words, bounds):
    with pm.Model() as model:
        body()
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.release(model, epsilon=1.0, mechanism="fourier", bounds=bounds)
    assert pmdp.release(model, epsilon=1.0, bounds=bounds).network is None


@pytest.mark.parametrize("nonnegative", ["all", -1.0, np.nan, True, None])
def test_shifts_that_are_none(nonnegative):
    with pytest.raises(pmdp.Refusal, match="nonnegative must be"):
        pmdp.Fourier(nonnegative=nonnegative)


def test_weights_and_delta_do_not_go_with_fourier():
    with pytest.raises(pmdp.Refusal, match="Leave weights out"):
        pmdp.release(three(), epsilon=1.0, mechanism="fourier", weights={"a": 1, "b": 1, "c": 2})
    with pytest.raises(pmdp.Refusal, match="delta must be 0"):
        pmdp.release(three(), epsilon=1.0, mechanism="fourier", delta=1e-6)


@pytest.mark.parametrize("odd", [7, -3, 2.4, np.nan])
def test_values_outside_the_levels_go_to_the_nearest(exact_seam, odd):
    rows = ROWS.astype(float)
    rows[3, 1] = odd
    released = pmdp.release(three(rows), epsilon=EXACT, mechanism="fourier")
    nearest = ROWS.copy()
    nearest[3, 1] = 1 if np.isnan(odd) else np.clip(np.rint(odd), 0, 2)
    for name, expected in zip("bc", counted(nearest)[1:], strict=True):
        np.testing.assert_array_equal(released[name].values, expected)


# ---------- counts that follow from others
def chain_of_four():
    rows = RNG.integers(0, 2, (50, 4))
    with pm.Model() as model:
        a = pm.Bernoulli("a", pm.Beta("p", 1, 1), observed=rows[:, 0])
        b = pm.Bernoulli("b", pm.Beta("q", 1, 1, shape=2)[a], observed=rows[:, 1])
        c = pm.Categorical("c", pm.Dirichlet("r", np.ones(3), shape=(2, 3))[b], observed=rows[:, 2])
        pm.Bernoulli("d", pm.Beta("s", 1, 1, shape=(2, 2, 3))[a, b, c], observed=rows[:, 3])
    return model, rows


def test_shared_counts_are_those_of_the_children(exact_seam):
    """A chain's first variable is in its child's table; what the child's child holds has other parents."""
    model, rows = chain_of_four()
    released = pmdp.release(model, epsilon=EXACT, mechanism=pmdp.Laplace(share_counts=True))
    assert set(released.network.covered()) == {"a"}
    assert released["a"].values.item() == rows[:, 0].sum()
    assert [one.variable for one in released.statistics] == ["a", "b", "c", "d"]
    assert [float(one.cost.epsilon * 3) for one in released.statistics] == [0, EXACT, EXACT, EXACT]
    assert len(exact_seam.exact) == 3


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_no_record_moves_shared_counts_further_than_gaussian_noise_pays_for(neighbours):
    """Exact sums of all pairs of records of three tables that are released of four: rho is attained, and shared by three."""
    model, _ = chain_of_four()
    noise = pmdp.Gaussian(1e-6, share_counts=True)
    released = pmdp.release(model, epsilon=1.0, mechanism=noise, neighbours=neighbours)
    alone = pmdp.release(model, epsilon=1.0, mechanism="gaussian", delta=1e-6, neighbours=neighbours)
    assert released["b"].scale == pytest.approx(alone["b"].scale * np.sqrt(3 / 4), rel=1e-9)
    assert released["a"].noise.gaussian
    assert released["a"].cost.epsilon == 0
    records = list(itertools.product(range(2), range(2), range(3), range(2)))

    def tables(a, b, c, d):
        places = ((4, 2 * a + b), (6, 3 * b + c), (24, 12 * a + 6 * b + 2 * c + d))
        return np.concatenate([(np.arange(length) == at).astype(int) for length, at in places])

    several = [tables(*record) for record in records]
    pairs = itertools.combinations(several, 2) if neighbours == "replace" else [(one, 0 * one) for one in several]
    scales = np.repeat([released[name].scale for name in "bcd"], [4, 6, 24])
    most = max((((first - second) / scales) ** 2).sum() / 2 for first, second in pairs)
    assert 0.99 * float(released.cost.rho) < most <= float(released.cost.rho)


@RELEASES
@pytest.mark.parametrize("noise", [pmdp.Laplace(share_counts=True), pmdp.Gaussian(1e-6, share_counts=True)], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("neighbours", mostly_slow(["replace", "add_remove"], 0))
def test_noise_of_shared_counts_has_the_variance_it_is_modelled_with(neighbours, noise, many):
    model, rows = chain_of_four()
    truth = rows[:, 0].sum() if neighbours == "replace" else np.array([50 - rows[:, 0].sum(), rows[:, 0].sum()])
    errors = []
    for _ in range(many):
        released = pmdp.release(model, epsilon=3.0, mechanism=noise, neighbours=neighbours)["a"]
        errors.append(released.values.ravel() - truth)
    assert abs(np.mean(np.square(errors)) / released.noise.standard_deviation**2 - 1) < tolerance(many, len(errors[0]))
    assert np.abs(np.mean(errors, axis=0)).max() < 5 * released.noise.standard_deviation / np.sqrt(many)


# ---------- least squares
@RELEASES
def test_consistent_tables_agree_and_know_their_noise(many):
    """The mean of what is left, and its variance in all and in every direction that is left, to within 5 standard deviations."""
    model, errors = three(), {"b": [], "c": []}
    truth = dict(zip("abc", counted(), strict=True))
    for _ in range(many):
        released = pmdp.release(model, epsilon=4.0)
        fitted = pmdp.consistent(released)
        for name, several in errors.items():
            several.append((fitted[name].values - truth[name]).ravel())
    b, c = fitted["b"].values, fitted["c"].values.reshape(3, 2, 2)
    np.testing.assert_allclose(b.T, c.sum(axis=-1), atol=1e-4)
    np.testing.assert_allclose(fitted["a"].values, b[1].sum(), atol=1e-4)
    for name, several in errors.items():
        expected = fitted[name].covariance
        assert np.trace(expected) < 0.9 * released[name].noise.standard_deviation ** 2 * len(expected)
        assert (np.abs(np.mean(several, axis=0)) < 5 * np.sqrt(np.diag(expected) / many)).all()
        variances, directions = np.linalg.eigh(expected)
        standard = (np.array(several) @ directions)[:, variances > 1e-6] / np.sqrt(variances[variances > 1e-6])
        assert np.abs(np.mean(standard**2, axis=0) - 1).max() < tolerance(many, 1)
        assert abs(np.mean(standard**2) - 1) < tolerance(many, standard.shape[1])


def test_consistent_tables_are_the_least_squares_of_all_counts():
    """Against a pseudo-inverse of the whole design: all counts of all families as sums over the joint table."""
    released = pmdp.release(three(), epsilon=2.0)
    fitted = pmdp.consistent(released)
    joint = np.array(list(itertools.product(range(2), range(3), range(2))))
    a, b, c = joint.T
    design = [a == 1]
    design += [(a == i) & (b == j) for i in range(2) for j in range(3)]
    design += [(b == j) & (a == i) & (c == k) for j in range(3) for i in range(2) for k in range(2)]
    weight = np.concatenate([np.full(one.noisy.size, 1 / one.noise.standard_deviation) for one in released.statistics])
    values = np.concatenate([one.values.ravel() for one in released.statistics])
    # The number of records is known: as if measured without noise.
    whole = np.vstack([np.array(design) * weight[:, None], np.full((1, 12), 1e6)])
    solved = np.linalg.lstsq(whole, np.append(values * weight, 70 * 1e6), rcond=None)[0]
    for row, (name, place) in zip(design[1:], [(n, p) for n in "bc" for p in np.ndindex(fitted[n].values.shape)], strict=True):
        assert fitted[name].values[place] == pytest.approx(solved @ row, abs=1e-3)


def test_a_consistent_release_is_a_release(tmp_path):
    fitted = pmdp.consistent(pmdp.release(three(), epsilon=2.0))
    fitted.to_netcdf(tmp_path / "release.nc")
    again = pmdp.Release.from_netcdf(tmp_path / "release.nc")
    private = pmdp.rewrite(three(), again)
    assert not [name for name in private.named_vars if name.endswith("_noise")]
    assert np.isfinite(private.compile_logp(mode="FAST_COMPILE")(private.initial_point()))
    with pytest.raises(pmdp.Refusal, match="only once"):
        pmdp.consistent(fitted)
    with pytest.raises(pmdp.Refusal, match="only once"):
        pmdp.consistent(pmdp.release(three(), epsilon=2.0, mechanism="fourier"))
    with pm.Model() as model:
        alone()
    with pytest.raises(pmdp.Refusal, match="of none"):
        pmdp.consistent(pmdp.release(model, epsilon=2.0))


# ---------- bounds
def bounded(many):
    """Errors of counts by Laplace noise, and of tables by Fourier coefficients, of releases at epsilon 2."""
    model, truth = three(), dict(zip("abc", counted(), strict=True))
    worst = []
    for _ in range(many):
        laplace_, fourier = pmdp.release(model, epsilon=2.0), pmdp.release(model, epsilon=2.0, mechanism="fourier")
        counts = [np.abs(laplace_[name].values - truth[name]).max() for name in truth]
        tables_ = [np.abs(fourier[name].values - truth[name]).sum() * (2 if name == "a" else 1) for name in truth]
        worst.append([counts, tables_])
    return np.array(worst)


@RELEASES
def test_the_bounds_hold_as_often_as_they_say(many):
    """Nine in ten at least; at 4.9 standard deviations."""
    told = pmdp.utility(three(), epsilon=2.0, confidence=0.9)
    limit = np.array([[one.laplace for one in told.families], [one.fourier for one in told.families]])
    inside = (bounded(many) <= limit).all(axis=2).mean(axis=0)
    assert (inside > 0.9 - 4.9 * np.sqrt(0.09 / many)).all()


def test_the_divergence_is_bounded():
    """Of Beta posteriors with counts that are off by as much as the bound on them says, in any direction."""
    from scipy.special import betaln, digamma

    told = pmdp.utility(three(), epsilon=20.0, records=70)
    for one in told.families[:1]:
        a, z = 1 + 35.0, one.laplace
        for first, second in itertools.product((-z, 0, z), repeat=2):
            x, y = max(a + first, 1), max(a + second, 1)
            divergence = betaln(x, y) - betaln(a, a) + (a - x) * digamma(a) + (a - y) * digamma(a) + (x - a + y - a) * digamma(2 * a)
            assert divergence <= one.divergence
    assert told.divergence == pytest.approx(sum(one.divergence for one in told.families))
    assert "with probability 0.9" in repr(told)


def test_naive_bayes_has_the_bound_of_the_paper():
    """Proposition 1: 2 |I| / epsilon log(2 m / delta), where the class costs half, being one count."""
    votes = RNG.integers(0, 2, (20, 16))
    with pm.Model() as model:
        party = pm.Bernoulli("party", pm.Beta("p", 1, 1), observed=votes[:, 0])
        for k in range(16):
            pm.Bernoulli(f"v{k}", pm.Beta(f"t{k}", 1, 1, shape=2)[party], observed=votes[:, k])
    told = pmdp.utility(model, epsilon=1.0, confidence=0.9)
    assert told.families[1].laplace == pytest.approx(34 * np.log(65 / 0.1))  # 64 counts of features and one of the class
    assert told.families[1].laplace <= 220.7 < 2 * told.families[0].laplace * 1.003


def test_bounds_of_what_is_no_network():
    with pm.Model() as model:
        alone()
    with pytest.raises(pmdp.Refusal, match="Bayesian networks"):
        pmdp.utility(model, epsilon=1.0)
    with pytest.raises(pmdp.Refusal, match="of shape"):
        pmdp.utility(three(), epsilon=1.0, records=10, expected={"b": [0.5, 0.5]})


def test_a_release_says_that_variables_share_coefficients():
    """Not the whole epsilon behind every variable, as if they added up."""
    told = flat(pmdp.release(three(), epsilon=1, mechanism="fourier"))
    assert told.count("epsilon 1") == 1
    assert "from coefficients that all variables share" in told
