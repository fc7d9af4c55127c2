"""Themes of ``generator`` about where a record can hide: what has no name, functions, Python, values that are missing, lengths."""

from likelihoods import linear_mean, one_number, write_likelihood
from programs import LEVELS, Writer

MANY = (20, 24)
"""Numbers of records where functions and graphs hold numbers one by one: a few would be settings."""


def unnamed(w: Writer) -> None:
    """A random variable without a name."""
    part = w.feature(w.pick(0, 0, 1)) if w.chance(0.7) else "pt.as_tensor(np.array([0.1, 0.2, 0.3]))"
    number = w.mixed_number(part) if w.chance(0.8) else part
    law = w.pick("pm.Normal.dist({}, 1.0)", "pm.Normal.dist({}, 1.0)", "pm.Exponential.dist(1 + abs({}))", "pm.Uniform.dist({}, 9.0)",
                 "pm.Normal.dist(0.0, 1 + abs({}))", "pm.Gamma.dist(2.0, 1 + abs({}))", "pt.random.normal({}, 1.0)",
                 "pm.Truncated.dist(pm.Normal.dist({}, 1.0), lower=-9.0, upper=9.0)",
                 "pm.Mixture.dist([0.5, 0.5], [pm.Normal.dist({}, 1.0), pm.Normal.dist(0.0, 1.0)])").format(number)  # fmt: skip
    place = w.pick("parameter", "parameter", "prior", "deterministic", "potential", "nested")
    if place == "nested":
        law = f"pm.Normal.dist({law}, 1.0)"
    name = w.fresh("r")
    w.line(f"{name} = {law}")
    if place == "prior":
        w.line(f'extra = pm.Normal("extra", {name}{".mean()" if number == part else ""}, 1.0)')
    elif place in ("deterministic", "potential"):
        w.line(f'pm.{place.title()}("extra", {name}{".sum()" if place == "potential" else ""} * {w.unknown()})')
    if place == "prior":
        w.line(f'pm.Normal("w", extra + {w.unknown()} * {number}, 1.0, observed={w.values("w", "real")})')
        w.program.bounds["w"] = (-1.0, 1.0)
        return
    used = f"{name}.sum()" if number == part and w.chance(0.6) else name
    write_likelihood(w, "y", lambda: f"({w.unknown(LEVELS)}[{w.index()}] + {used})" if place in ("parameter", "nested") else w.cell(1))


HOLDERS = {
    "held": "held[0]", "functools.partial(lambda a: a[0], held)": "(h)()", "pd.DataFrame({'a': held})": "h.a.to_numpy()[0]",
    "pd.Series(held)": "h.iloc[0]", "xr.DataArray(held)": "h.values[0]", "held.tolist()": "h[0]", "tuple(held.tolist())": "h[0]",
    "Slots(held)": "h.kept[0]", "held.copy": "h()[0]", "memoryview(held)": "h[0]", "held.tobytes()": "np.frombuffer(h)[0]",
    "deep(held, 8)": "h()", "{'a': {'b': held}}": "h['a']['b'][0]", "bytearray(held.tobytes())": "np.frombuffer(h)[0]",
    "collections.deque(held)": "h[0]", "array.array('d', held)": "h[0]", "types.MappingProxyType({'a': held})": "h['a'][0]",
    "Pair(held, 1)": "h.first[0]", "types.SimpleNamespace(a=held)": "h.a[0]", "operator.itemgetter(0)": "h(held)",
    "held.astype(object)": "float(h[0])", "repr(held.tolist())": "float(h[1:-1].split(',')[0])", "pl.Series(held)": "h[0]",
    "xr.Dataset({'a': ('r', held)})": "h.a.values[0]", "frozenset(held.tolist())": "max(h)",
    "np.ma.masked_invalid(held)": "h.data[0]", "functools.lru_cache(lambda: held)": "h()[0]", "np.vectorize(held.item)": "h.pyfunc(0)",
    "Keeper(held)": "h(0)", "held.__getitem__": "h(0)", "[[[[[[[held]]]]]]]": "h[0][0][0][0][0][0][0][0]",
    "scipy.stats.norm(held)": "h.args[0][0]",
    "np.poly1d(held)": "h.c[0]", "contextlib.nullcontext(held)": "h.enter_result[0]",
    "Named('kept', (), {'a': held})": "h.a[0]", "str(held.tolist()).encode()": "float(h[1:-1].split(b',')[0])",
}  # fmt: skip
"""Containers of an array, and how a number comes out of one."""


def functions(w: Writer) -> None:
    """A prior whose density, or transform, holds things: what also stands above a likelihood, or is observed, or is of no record."""
    w.program.sizes["person"] = w.pick(*MANY)
    private = w.chance(0.55)
    observed = private and w.chance(0.5)
    w.column("x", "real", dtype="float64", observed=observed)
    w.program.bounds["x"] = (-1.0, 1.0)
    w.line('x_ = pm.Data("x_data", x)' if observed else 'x_ = pm.Data("x", x)')
    w.spelled["x"] = w.pick("x_", "pt.as_tensor(x)")
    name = w.pick(*HOLDERS)
    w.line(f"held = {'x' if private else 'np.array([0.5, 0.25])'}")
    w.line(f"h = {name}")
    kept = "held" if "itemgetter" in name else "None"
    read, first = HOLDERS[name], w.pick("", "", "1 * ")
    way = w.pick("logp", "logp", "logp", "default", "transform", "random", "nested", "dist")
    if way == "logp":
        w.line(f'm = pm.CustomDist("m", logp=closed(h, {kept}, lambda h, held, value: -pt.sqr(value - {first}{read})), shape=())')
    elif way == "default":
        w.line(f'm = pm.CustomDist("m", logp=lambda value, h=h, held=None: -pt.sqr(value - {first}{read}), shape=())')
    elif way == "nested":
        w.line(f'm = pm.CustomDist("m", logp=functools.partial(lambda h, held, value: -pt.sqr(value - {read}), h, None), shape=())')
    elif way == "random":
        w.line('m = pm.CustomDist("m", logp=lambda value: -pt.sqr(value), random=closed(h, None, lambda h, held, rng, size: h), shape=())')
    elif way == "dist":
        w.line(f'm = pm.CustomDist("m", dist=closed(h, None, lambda h, held, size: pm.Normal.dist({read}, 1.0, size=size)), shape=())')
    else:
        w.line(f'm = pm.Normal("m", transform=Shift(h, closed(h, {kept}, lambda h, held: {read})))')
    if observed:
        w.line(f'pm.Normal("x", m, 1.0, observed={w.pick("x", "x_", "x_")})')
    elif private or w.chance(0.5):
        write_likelihood(w, "y", lambda: f"(m + {w.unknown()} * {w.covariate('x', 'real')})", ("Normal",))
    else:
        write_likelihood(w, "y", lambda: f"(m + {w.cell(0)})")


def masking_index(w: Writer) -> str:
    """An index whose numbers were truth values, as those by which PyMC takes out what is missing."""
    ways = "({} > 0).astype('int64')", "pt.as_tensor({}).astype('bool').astype('int64')", "pt.cast(pt.as_tensor({}) > 0, 'int8')"
    return w.pick(*ways).format(w.index())


def missing(w: Writer) -> None:
    """Values that are not there: one more, or one less."""
    w.program.change = w.pick("nan", "nan", "back")
    w.program.present = w.pick(None, 0, 1, 2, 3)
    w.program.sizes["person"] = w.pick(3, 4, 6)
    w.column("y", "real", observed=True, dtype="float64")
    parameter = w.pick(lambda: w.unknown(), lambda: f"{w.unknown()} * 1.0", lambda: w.cell(0), lambda: w.cell(1),
    lambda: f"pt.expand_dims({w.unknown()}, 0)",
                       lambda: f"{w.unknown(1) if w.program.door == 'release' else w.unknown()}", lambda: linear_mean(w, 0),
                       lambda: f"{w.unknown(LEVELS)}[{masking_index(w)}]", lambda: f"({w.unknown(LEVELS)} * 2)[{masking_index(w)}]",
                       lambda: f"{w.table(LEVELS, 2)}[{masking_index(w)}].sum(axis=1)")  # fmt: skip
    names = (
        "Gamma",
        "BetaBinomial",
        "LogNormal",
        "ZeroInflatedPoisson",
        "HurdlePoisson",
        "Truncated",
        "Censored",
        "Weibull",
        "NegativeBinomial",
        "Normal ",
        "Poisson",
        "Categorical",
    )
    write_likelihood(w, "y", parameter, names)
    w.program.columns["y"].dtype = "float64"
    if w.chance(0.3):
        w.column("k", "real", observed=True, dtype="float64")
        write_likelihood(w, "k", lambda: w.cell(0))
        w.program.columns["k"].dtype = "float64"


def totals(w: Writer) -> None:
    """Rows that are totals of individuals."""
    p = w.program
    p.change, p.neighbours, p.door = "total", "replace", "release"
    axes = w.pick(("person",), ("person",), ("person", "item"))
    values = w.values("y", "total", axes)
    p.columns["y"].dtype = w.pick("float64", "float64", "int64")
    if w.chance(0.5):
        p.unit = 'pmdp.Individual(events=2, membership="public")'
        text = f'pm.Poisson("y", pt.exp({{}}), observed={values})'
    else:
        p.unit, text = '"individual"', f'pm.Binomial("y", 8, pt.sigmoid({{}}), observed={values})'
    w.line(text.format(w.unknown()))
    p.mechanism = w.pick("laplace", "gaussian")


def python(w: Writer) -> None:
    """Operations that carry Python, and things that are no tensors."""
    w.program.sizes["person"] = w.pick(*MANY)
    private = w.chance(0.6)
    w.column("x", "real", dtype="float64")
    w.program.bounds["x"] = (-1.0, 1.0)
    w.line(f"held = {'x' if private else 'np.linspace(0, 1, 6)'}")
    way = w.pick(
        "spline",
        "spline",
        "wrapped",
        "list",
        "list",
        "ifelse",
        "scan",
        "graph",
        "own",
        "sparse",
        "random",
        "print",
        "jax" if w.program.coords else "list",
    )
    texts = {
        "spline": "SplineWrapper(spline(held))({})", "wrapped": "wrapped(held)({})", "own": "Box(held)({})",
        "list": "TypedListConstant(TypedListType(pt.dvector), [held])[0].{0} * {1}",
        "ifelse": "pytensor.ifelse({0} > 0, {0} * pt.as_tensor(held)[0], {0})",
        "scan": "pytensor.scan(lambda k, m: m * pt.as_tensor(held)[k], pt.arange(3), non_sequences=[{}], return_updates=False).sum()",
        "graph": "graph_of(held)({})",
        "sparse": "(pytensor.sparse.as_sparse_variable(scipy.sparse.csr_matrix(held[None])).toarray().sum() * {})",
        "random": "(pt.random.choice(pt.as_tensor(held), rng=pytensor.shared(np.random.default_rng(1))) * {})", "jax": "{}",
        "print": "pytensor.printing.Print('note', attrs=['shape'])({})",
    }  # fmt: skip
    inner = w.unknown()
    text = texts[way].format(w.pick("sum()", "mean()", "max()"), inner) if way == "list" else texts[way].format(inner)
    name = w.fresh("s")
    w.line(f"{name} = {text}")
    place = w.pick("prior", "parameter", "deterministic", "potential")
    if private:
        own = "pt.as_tensor(held)" if place == "prior" else w.pick('pm.Data("x", x)', "pt.as_tensor(held)")
        w.line(f'pm.Normal("w", {w.unknown()} * {own}, 1.0, observed={w.values("w", "real")})')
        w.program.bounds["w"] = (-1.0, 1.0)
    if place == "prior":
        w.line(f'm = pm.Normal("m", {name}, 1.0)')
        name = "m"
    elif place in ("deterministic", "potential"):
        w.line(f'pm.{place.title()}("extra", {name})')
        name = inner
    write_likelihood(w, "y", lambda: f"({name} + {w.cell(0)})")


def scalars(w: Writer, kinds=("potential", "potential", "deterministic")) -> None:
    """Entries of a column one by one, in a loop of Python."""
    w.program.sizes["person"] = 70  # fewer numbers could be settings
    kind, a = w.pick(*kinds), w.unknown()
    w.column("y", "real", observed=True, dtype="float64")
    w.program.bounds["y"] = (-1.0, 1.0)
    source = w.pick("y", "y", "x", "np.array([0.5, 0.25])") if kind != "parameter" else "x"
    if source == "x":
        w.column("x", "real", dtype="float64")
    loop = w.pick("sum(-pt.sqr({a} - v) for v in {x})", "sum(pm.logp(pm.Normal.dist({a}, 1.0), v) for v in {x})",
                  "pt.stack([{a} * v for v in {x}]).sum()", "sum({a} * float(v) for v in {x})").format(a=a, x=source)  # fmt: skip
    if kind != "parameter":
        w.line(f'pm.{kind.title()}("extra", {loop})')
        mean = a if source != "x" else f'{a} * pm.Data("x", x)'
    else:
        mean = f"pt.stack([{a} * v for v in x])" if w.chance(0.5) else f"({a} + {loop})"
    if source == "x":
        w.program.bounds["x"] = (-1.0, 1.0)
    w.line(f'pm.Normal("y", {mean}, 1.0, observed=y)')


def scalar_parameters(w: Writer) -> None:
    """The same in a parameter: numbers of a graph are public by what is documented, so that these are written only when asked for."""
    scalars(w, ("parameter",))


def lengths(w: Writer) -> None:
    """No record, one, or one more; observed variables of other lengths."""
    p = w.program
    p.neighbours, p.change = "add_remove", "remove"
    p.sizes["person"] = w.pick(1, 1, 1, 2, 3)
    if w.chance(0.3):
        p.coords = '{"person": range(sizes["person"])}'
    dims = ', dims="person"' if p.coords and w.chance(0.7) else ""
    w.odd = w.pick(0, 0, 0, 1)
    parameter = w.pick(one_number(w, 0), one_number(w, 1), lambda: linear_mean(w, 1))
    write_likelihood(w, "y", parameter, extra=dims)
    if w.chance(0.5):
        shorter = w.chance(0.5)
        p.sizes["other"] = p.sizes["person"] - w.pick(0, 1, 1) if shorter else 0
        axis = "other" if shorter else "person"
        bare = lambda: w.unknown()  # noqa: E731
        write_likelihood(w, "k", bare if shorter else one_number(w, 0), ("Normal", "Bernoulli", "Poisson"), (axis,))
    if dims and w.chance(0.4):
        w.line(w.pick('pm.Deterministic("n", model.dim_lengths["person"] * 1.0)', 'pm.Potential("n", -1.0 * model.dim_lengths["person"])',
                      'pm.Deterministic("rep", pt.ones(sizes["person"]) * 2, dims="person")'))  # fmt: skip
