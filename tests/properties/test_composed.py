"""Models composed at random from the parts users have: each is refused, or its rewrite is verified. Nothing else may happen.

Seeds are fixed, so there are no false alarms: a failure repeats, and ``compose(seed)`` builds the model again.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import EXACT, log_density, mostly_slow, refused, spread_of_differences
from gallery import COUNTS, REALS, Records

import pymc_dp as pmdp
from pymc_dp.privacy import mechanisms

pytestmark = pytest.mark.filterwarnings("ignore")
N = 41
ON_LATTICE, OFF_LATTICE, EMPTY_CELL = 1e-4, 0.1, 0.02
"""What a singular moment matrix, rounding of features that are not dyadic, and a cell without a record may move a log-density by."""
COLUMNS = {"g": (0, 2), "h": (0, 1), "i": (0, 4), "flag": None, "z": (-1, 1), "w": (-1, 1), "X": (-1, 1), "C": [(0, 1), (0, 2)]}


def records(rng):
    grid = lambda *shape: np.rint(rng.uniform(-1, 1, shape) * 8) / 8  # noqa: E731
    r = Records(
        g=np.arange(N) % 3, h=np.arange(N) // 3 % 2, i=rng.integers(0, 5, N), flag=rng.integers(0, 2, N).astype(bool), z=grid(N), w=grid(N),
        X=grid(N, 3), C=np.column_stack([rng.integers(0, 2, N), rng.integers(0, 3, N)]),
    )  # fmt: skip
    for name in ("z", "w", "X"):
        r[name][0] = 1  # a public column is scaled by 1
    return r


class Composer:
    """One model in the making."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.records = records(self.rng)
        self.data, self.public, self.exact, self.count = {}, [], True, 0

    def one_of(self, *things):
        return things[self.rng.integers(len(things))]

    def often(self, chance):
        return self.rng.random() < chance

    def column(self, *names):
        """A column as ``pm.Data``, perhaps public, each declared once."""
        name = self.one_of(*names)
        if name not in self.data:
            values = self.records[name]
            if values.dtype == np.int64 and self.often(0.4):
                values = values.astype(self.one_of("int8", "uint8", "int32"))
            self.data[name] = pm.Data(name, values)
            if self.often(0.3):
                self.public.append(name)
        return self.data[name]

    def unknown(self, shape=()):
        self.count += 1
        name = f"b{self.count}"
        kind = self.one_of("normal", "normal", "noncentred", "named", "laplace")
        if kind == "noncentred":
            return pm.Normal(name, 0, 1, shape=shape) * pm.HalfNormal(f"{name}_scale", 1) + 0.25
        if kind == "named":
            return pm.Deterministic(f"{name}_named", pm.Normal(name, 0, 1, shape=shape) * 0.5)
        return pm.Laplace(name, 0, 1, shape=shape) if kind == "laplace" else pm.Normal(name, 0, 1, shape=shape)

    def scalar(self):
        return self.unknown()

    def gather(self):
        """An effect of a group, or of two crossed, in some spelling."""
        how = self.rng.integers(7)
        if how == 0:
            return self.unknown((3, 2))[self.column("g"), self.column("h")]
        if how == 1:
            return self.unknown((3, 2))[self.column("g")][:, self.one_of(0, 1)]
        name = self.one_of("g", "h", "i")
        table, index = self.unknown((COLUMNS[name][1] + 1,)), self.column(name)
        if how == 2:
            return pt.take(table, index)
        if how == 3:
            return table[index - 0]
        if how == 4:
            return (table - table.mean())[index]
        if how == 5:
            return pt.concatenate([pt.zeros(1), self.unknown((COLUMNS[name][1],))])[index]
        return table[index]

    def feature(self):
        """A number per record, from one or two columns."""
        how = self.rng.integers(9)
        one = self.column("z", "w", "z", "h", "i", "flag")
        if how == 0:
            return one**2
        if how == 1:
            return pt.abs(one) if one.dtype != "bool" else one
        if how == 2:
            return one * self.column("z", "w", "h")
        if how == 3:
            self.exact = False
            return (one - 0.3) / 1.7
        if how == 4:
            self.exact = False
            return pt.switch(one > 0, one, 0.5)
        if how == 5:
            return pt.eq(self.column("g", "i"), 1)
        if how == 6:
            return self.column("X", "C")[:, self.one_of(0, 1)]
        return one

    def product(self):
        return self.unknown() * self.feature()

    def slope(self):
        return self.gather() * self.feature()

    def design(self):
        X = self.column("X", "C")
        p = 3 if X.name == "X" else 2
        how = self.rng.integers(6)
        b = self.unknown((p,))
        if how == 0:
            return (X * b).sum(axis=-1)
        if how == 1:
            return pm.math.dot(b, X.T)
        if how == 2:
            return pt.dot(pt.stack([X[:, 0], X[:, 1]], axis=1), b[:2])
        if how == 3:
            return (self.unknown((3, p))[self.column("g")] * X).sum(-1)
        if how == 4:
            return pt.dot(X, self.unknown((p, 2))) @ self.unknown((2,))
        return X @ b

    def bent(self):
        inner = self.one_of(self.product, self.gather, self.design)()
        return self.one_of(pt.tanh, lambda v: pt.exp(v * 0.25), pm.math.sigmoid, lambda v: pt.clip(v, -1, 1), pt.sqr)(inner)

    def crossed(self):
        return self.one_of(self.product, self.gather, self.scalar)() * self.one_of(self.product, self.gather, self.design)()

    def chosen(self):
        return pt.switch(self.one_of(pt.gt, pt.le)(self.column("h", "i", "z"), 0), self.product(), self.gather())

    def wrong(self):
        """What ties records together, or gives each its own unknown."""
        z = self.column("z", "w")
        how = self.rng.integers(8)
        if how == 0:
            return self.unknown() * (z - z.mean()) / z.std()
        if how == 1:
            return self.unknown((N,))
        if how == 2:
            return self.unknown() * pt.cumsum(z)
        if how == 3:
            return self.unknown() * pt.concatenate([z[1:], z[:1]])
        if how == 4:
            return self.unknown() * z[::-1]
        if how == 5:
            return self.unknown() * pt.sort(z)
        if how == 6:
            return self.unknown((N,))[self.column("g") * 3]
        return (z * self.unknown() + self.gather()).mean() + self.gather()

    def predictor(self):
        parts = [self.scalar, self.gather, self.gather, self.product, self.product, self.slope, self.design]
        parts += [self.bent, self.crossed, self.chosen]
        eta = self.one_of(self.scalar, self.gather)()
        for _ in range(self.rng.integers(0, 4)):
            eta = eta + self.one_of(*parts)()
        if self.often(0.08):
            eta = eta + self.wrong()
        if self.often(0.2):
            eta = pm.Deterministic("eta", eta)
        return eta

    def likelihood(self):
        """One observed variable; its bounds, if it needs them."""
        eta, rng = self.predictor(), self.rng
        real, coded = ("normal", "normal", "normal", "lognormal"), ("categorical", "binomial", "geometric", "ordered", "columns")
        family = self.one_of("bernoulli", "poisson", *real, *coded)
        tall = eta + pt.zeros(N) if self.often(0.2) else eta
        if family == "bernoulli":
            y = rng.integers(0, 2, N)
            if self.often(0.5):
                pm.Bernoulli("y", logit_p=tall, observed=y)
            else:
                pm.Bernoulli("y", p=self.one_of(pm.math.sigmoid, pm.math.invlogit, pm.math.invprobit)(eta), observed=y)
        elif family == "poisson":
            pm.Poisson("y", pt.exp(tall * 0.3), observed=rng.integers(0, 7, N))
            return {"y": COUNTS}
        elif family in ("normal", "lognormal"):
            sigma = self.one_of(lambda: 1.5, lambda: pm.HalfNormal("sigma"), lambda: pt.exp(self.unknown((3,)))[self.column("g")])()
            y = 2 + np.rint(rng.uniform(-1, 1, N) * 2**10) * 6 / 2**10
            if family == "lognormal":
                self.exact = False
                pm.LogNormal("y", eta, sigma, observed=np.exp(y / 4))
                return {"y": (np.exp(-1), np.exp(2))}
            pm.Normal("y", eta, sigma, observed=y)
            return {"y": REALS}
        elif family == "categorical":
            rows = eta[..., None] * pm.Normal("slopes", shape=4) + pm.Normal("cuts", shape=4)
            pm.Categorical("y", p=pm.math.softmax(rows, axis=-1), observed=rng.integers(0, 4, N))
        elif family == "binomial":
            pm.Binomial("y", n=5, p=pm.math.sigmoid(eta), observed=rng.integers(0, 6, N))
        elif family == "geometric":
            pm.Geometric("y", pm.math.sigmoid(eta), observed=rng.integers(1, 6, N))
            return {"y": (1, 5)}
        elif family == "ordered":
            pm.OrderedLogistic("y", eta=eta, cutpoints=[-1.0, 0.0, 1.0], observed=rng.integers(0, 4, N), compute_p=self.often(0.5))
        else:
            pm.Bernoulli("y", logit_p=eta[..., None] - pm.Normal("items", shape=2), observed=rng.integers(0, 2, (N, 2)))
        return {}


def compose(seed):
    """A model, the arguments of its release, and by how much log-densities may differ."""
    made = Composer(seed)
    with pm.Model() as model:
        bounds = made.likelihood()
    used = {name for name, *_ in pmdp.inspect(model).arrays}
    bounds |= {name: COLUMNS[name] for name in made.data if name not in made.public and COLUMNS[name] is not None and name in used}
    public = [name for name in made.public if name in used]
    if "y:0" in used:  # the fixed cutpoints
        public.append("y:0")
    return model, {"bounds": bounds, "public": public}, ON_LATTICE if made.exact else OFF_LATTICE


def outcome(seed):
    """ "refused" or "verified"; anything else raises."""
    model, arguments, tolerance = compose(seed)
    shown = pmdp.inspect(model, **arguments)
    offered = all(row.structure and not row.needs for row in shown.rows) and not shown.problems
    reason = refused(pmdp.release, model, epsilon=EXACT, **arguments)
    assert offered == (reason is None), f"inspect and release do not agree: {reason}"
    if reason is not None:
        return "refused"
    released = pmdp.release(model, epsilon=EXACT, **arguments)
    private = pmdp.rewrite(model, released, noise_aware=False)
    noisy = released.statistics[0]
    empty = (noisy.noisy.reshape(len(noisy.noisy), -1) == 0).all(axis=1).sum() if noisy.sizes != "public" else 0
    assert spread_of_differences(log_density(model), model, private) < tolerance + EMPTY_CELL * empty
    return "verified"


@pytest.fixture
def no_noise(monkeypatch):
    monkeypatch.setattr(mechanisms, "_opendp_laplace", lambda exact, scale: exact)


@pytest.mark.parametrize("seed", mostly_slow(range(40), *range(15)))
def test_composed_models_are_verified_or_refused(seed, no_noise):
    outcome(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40, 240))
def test_more_composed_models_are_verified_or_refused(seed, no_noise):
    outcome(seed)
