"""What a random program is about: themes of the grammar, each written with the same expressions. Used by ``generator``."""

from programs import LEVELS, Writer

FAMILIES = {
    "Bernoulli": ("logit_p={p}", "bit", None),
    "Poisson": ("pt.exp(pt.clip({p}, -2, 2))", "count", (0, 4)),
    "Normal": ("{p}, 1.0", "real", (-1.0, 1.0)),
    "Normal ": ("{p}, pt.exp(pt.clip({q}, -1, 1))", "real", (-1.0, 2.0)),
    "Categorical": ("logit_p=pt.stack([{p}, 0 * {p}, {q}], axis=1)", "count", None),
    "Categorical ": ("p=pt.special.softmax(pt.stack([{p}, {q}], axis=-1), axis=-1)", "bit", None),
    "Binomial": ("4, pt.sigmoid({p})", "count", None),
    "Exponential": ("pt.exp(pt.clip({p}, -2, 2))", "real", (0.0, 3.0)),
    "Geometric": ("pt.sigmoid({p})", "count", (1, 5)),
    "Weibull": ("2.0, pt.exp(pt.clip({p}, -2, 2))", "real", (0.0, 3.0)),
    "Gamma": ("2.0, pt.exp(pt.clip({p}, -2, 2))", "real", (0.1, 3.0)),
    "LogNormal": ("{p}, 1.0", "real", (0.1, 3.0)),
    "NegativeBinomial": ("mu=pt.exp(pt.clip({p}, -2, 2)), alpha=2.0", "count", (0, 4)),
    "ZeroInflatedPoisson": ("0.7, pt.exp(pt.clip({p}, -2, 2))", "count", (0, 4)),
    "BetaBinomial": ("pt.exp(pt.clip({p}, -2, 2)), 2.0, 3", "count", (0, 3)),
    "Laplace": ("{p}, 1.0", "real", (-1.0, 1.0)),
}
"""The parameters of a likelihood from one or two numbers per record, what its values are, and bounds."""


def write_likelihood(w: Writer, name: str, parameter, names=tuple(FAMILIES), axes=("person",), extra: str = "") -> str:
    """An observed variable; ``parameter`` makes one number per record, as often as it is asked."""
    family = w.pick(*names)
    if w.program.door != "release":
        family = w.pick(*[one for one in names if one.strip() in ("Bernoulli", "Normal", "Poisson", "Binomial", "Laplace")] or names)
    text, kind, bounds = FAMILIES[family]
    values = w.values(name, kind, axes)
    first = parameter()
    given = text.format(p=first, q=parameter() if "{q}" in text else "")
    if bounds is not None:
        w.program.bounds[name] = bounds
    w.line(f'{name}_rv = pm.{family.strip()}("{name}", {given}, observed={values}{extra})')
    return f"{name}_rv"


def linear_mean(w: Writer, depth: int) -> str:
    """Affine in the unknowns, with features of the records."""
    parts = [w.unknown()] + [f"{w.unknown()} * {w.feature(depth)}" for _ in range(w.pick(1, 1, 2))]
    if w.chance(0.3):
        parts.append(w.cell(0))
    return " + ".join(parts)


def one_number(w: Writer, depth: int):
    """What makes a number per record, by unknowns and indices; from data, too, for draws of the posterior."""
    if w.program.door != "release" and w.chance(0.6):
        return lambda: linear_mean(w, depth)
    return lambda: w.cell(depth)


def extras(w: Writer) -> None:
    """What stands beside likelihoods in many models."""
    if w.unknowns and w.chance(0.2):
        name, length = w.pick(*w.unknowns)
        w.line(w.pick(f'pm.Deterministic("told", pt.exp({name}))', f'pm.Potential("soft", -pt.sum(pt.sqr({name})))'))


# ---------- themes
def plain(w: Writer) -> None:
    """One or two likelihoods of records."""
    w.odd = w.pick(0, 0, 0, 1)
    for name in ("y", "k")[: w.pick(1, 1, 2)]:
        if w.program.door == "release" and w.chance(0.4):
            write_likelihood(w, name, lambda: linear_mean(w, w.pick(0, 0, 1, 1, 2)), ("Normal",))
        else:
            write_likelihood(w, name, one_number(w, w.pick(0, 1, 1, 2)))
    extras(w)


def network(w: Writer) -> None:
    """Discrete variables that are parents of others."""
    p = w.program
    w.odd = w.pick(0, 0, 0, 1)
    y = f'pm.Bernoulli("y", {w.pick("pm.Beta('p', 1, 1)", "0.3")}, observed={w.values("y", "bit")})'
    w.line(f"y_rv = {y}")
    parent = w.pick("y_rv", "y_rv", "y_rv[::-1]" if w.odd else "y_rv", "pt.cast(y_rv, 'int64')")
    w.line('q = pm.Dirichlet("q", np.ones(3), shape=(2, 3))')
    values = w.values("c", "count")
    w.line(f'pm.Categorical("c", q[{parent}], observed={values})')
    p.mechanism = w.pick("laplace", "laplace", "gaussian", "fourier") if p.door == "release" else p.mechanism


def public(w: Writer) -> None:
    """Covariates that everyone may know, along the records or not."""
    w.column("u", w.pick("real", "level"), moves=None, dtype=w.pick("float64", "int64"))
    w.program.public.append("u")
    w.line('u_ = pm.Data("u", u)')
    part = w.pick("u_", "(u_ - u_.mean()) / (1 + u_.std())", "u_ ** 2", "pt.tanh(u_)", "pt.cumsum(u_)", "u_[::-1]")
    write_likelihood(w, "y", lambda: f"({w.unknown()} + {w.unknown()} * {part})", ("Normal", "Bernoulli", "Poisson", "Exponential"))


def both_axes(w: Writer) -> str:
    """Records by items that are observed, or above a likelihood of people: the text of it."""
    how = w.pick("observed", "observed", "data", "observed data")
    kind = w.pick("real", "bit", "bit", "count")
    p = w.program
    if how != "data":
        family, unknown = {"real": ("Normal", "{}, 1.0"), "bit": ("Bernoulli", "logit_p={}"), "count": ("Poisson", "pt.exp(pt.clip({}, -2, 2))")}[kind]
        w.column("R", kind, ("person", "item"), observed=True)
        p.bounds["R"] = {"real": (-1.0, 1.0), "bit": (0, 1), "count": (0, 4)}[kind]
        if kind == "bit":
            del p.bounds["R"]
        w.line('D = pm.Data("D", R)' if how == "observed data" else "D = R")
        w.line(f'R_rv = pm.{family}("R", {unknown.format(w.pick(w.unknown(), w.unknown(w.items_long) if p.door == "release" else w.unknown()))}, observed=D)')
        return "D" if how == "observed data" and w.chance(0.5) else "R_rv"
    w.column("D", kind if kind == "real" else "bit", ("person", "item"), dtype=w.pick("float64", "int64"))
    p.bounds["D"] = (0.0, 1.0) if kind != "real" else (-1.0, 1.0)
    spelled = w.pick('pm.Data("D", D)', 'pm.Data("D", D)', "pt.as_tensor(D)")
    w.line(f"D_ = {spelled}")
    part = w.of_matrix("D_")
    write_likelihood(w, "y", lambda: f"({w.unknown()} + {w.unknown()} * {part})", ("Normal", "Normal", "Bernoulli"))
    return "D_"


def axes(w: Writer) -> None:
    """Another axis than that of the records."""
    records = both_axes(w)
    whole = "R" in w.program.columns and w.program.columns["R"].kind in ("bit", "count") and w.program.columns["R"].dtype.startswith("int")
    if w.chance(0.15):  # people read people
        write_likelihood(w, "y2", lambda: f"({w.unknown()} + {w.unknown()} * {w.of_matrix(records)})", ("Normal", "Bernoulli"))
        return
    way = w.pick("linear", "linear", "cell", "matrix" if whole else "linear")
    if way == "cell" and whole and w.program.columns["R"].kind == "bit":
        reduced = w.pick(f"{records}.max(axis=0)", f"{records}[0]", f"{records}.T[:, 0]", f"{records}.min(axis=0)", f"{records}[-1]")
        index = w.pick(reduced, f"{reduced}.astype('int64')")
        write_likelihood(w, "z", lambda: f"{w.unknown(LEVELS)}[{index}]", ("Normal", "Bernoulli", "Poisson"), ("item",))
    elif way == "matrix":
        table = f"{w.unknown(LEVELS)}[pt.clip({records}.T, 0, 1)]"
        write_likelihood(w, "Z", lambda: table, ("Bernoulli", "Poisson"), ("item", "person"))
    else:
        part = w.items(records)
        write_likelihood(w, "z", lambda: f"({w.unknown()} + {w.unknown()} * {part})", ("Normal", "Normal", "Bernoulli"), ("item",))


def named_dims(w: Writer) -> None:
    """The same by names of dims."""
    p = w.program
    p.coords = '{"person": range(sizes["person"]), "item": range(sizes["item"])}'
    kind = w.pick("observed", "data", "data")
    prior = 'pmd.Normal("{}"{})' if p.door == "release" else 'pmd.Uniform("{}", -1, 1{})'
    w.column("D", "real", ("person", "item"), observed=kind == "observed", dtype="float64")
    p.bounds["D"] = (-1.0, 1.0)
    w.line(f"a = {prior.format('a', '')}")
    if kind == "observed":
        w.line('D_ = pmd.Normal("D", a, 1.0, observed=pmd.as_xtensor(D, dims=("person", "item")))')
    else:
        w.line('D_ = pmd.Data("D", D, dims=("person", "item"))')
        if w.chance(0.8):
            w.column("y", "real", observed=True)
            p.bounds["y"] = (-1.0, 1.0)
            mean = w.pick('D_.mean("item")', 'D_.sum("item")', 'D_.isel(item=0)', 'D_.max("item")')
            w.line(f'pmd.Normal("y", a + {prior.format("b", "")} * {mean}, 1.0, observed=pmd.as_xtensor(y, dims=("person",)))')
    if kind == "data" and "y" in p.columns and w.chance(0.3):
        return
    way = w.pick('D_.sum("person")', 'D_.max("person")', 'D_.mean("person")', 'D_.transpose("item", "person").isel(person=0)', 'D_.isel(person=-1)',
                 'D_.min("person")', 'D_.std("person")', 'D_.transpose("item", ...).sum("person")', 'D_.dot(D_, dim="person")',
                 'D_.cumsum("person").isel(person=-1)', 'D_.rename({"person": "other"}).max("other")')  # fmt: skip
    if "y" not in p.columns and kind == "data":
        p.columns["D"].moves = "item"  # nobody else reads it
    w.column("z", "real", ("item",), moves="item", observed=True)
    p.bounds["z"] = (-1.0, 1.0)
    w.line(f'pmd.Normal("z", a + {prior.format("c", "")} * {way}, 1.0, observed=pmd.as_xtensor(z, dims=("item",)))')


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
    "Keeper(held)": "h(0)", "held.__getitem__": "h(0)", "[[[[[[[held]]]]]]]": "h[0][0][0][0][0][0][0][0]", "scipy.stats.norm(held)": "h.args[0][0]",
    "np.poly1d(held)": "h.c[0]", "contextlib.nullcontext(held)": "h.enter_result[0]",
    "Named('kept', (), {'a': held})": "h.a[0]", "str(held.tolist()).encode()": "float(h[1:-1].split(b',')[0])",
}  # fmt: skip
"""Containers of an array, and how a number comes out of one."""


def functions(w: Writer) -> None:
    """A prior whose density, or transform, holds things: what also stands above a likelihood, or is observed, or is of no record."""
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


def missing(w: Writer) -> None:
    """Values that are not there: one more, or one less."""
    w.program.change = w.pick("nan", "nan", "back")
    w.program.present = w.pick(None, 0, 1, 2, 3)
    w.program.sizes["person"] = w.pick(3, 4, 6)
    w.column("y", "real", observed=True, dtype="float64")
    parameter = w.pick(lambda: w.unknown(), lambda: f"{w.unknown()} * 1.0", lambda: w.cell(0), lambda: w.cell(1), lambda: f"pt.expand_dims({w.unknown()}, 0)",
                       lambda: f"{w.unknown(1) if w.program.door == 'release' else w.unknown()}", lambda: linear_mean(w, 0))  # fmt: skip
    write_likelihood(w, "y", parameter)
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
    private = w.chance(0.6)
    w.column("x", "real", dtype="float64")
    w.program.bounds["x"] = (-1.0, 1.0)
    w.line(f"held = {'x' if private else 'np.linspace(0, 1, 6)'}")
    way = w.pick("spline", "spline", "wrapped", "list", "list", "ifelse", "scan", "graph", "own", "sparse", "random", "print", "jax" if w.program.coords else "list")
    texts = {
        "spline": "SplineWrapper(spline(held))({})", "wrapped": "wrapped(held)({})", "own": "Box(held)({})",
        "list": "TypedListConstant(TypedListType(pt.dvector), [held])[0].{0} * {1}", "ifelse": "pytensor.ifelse({0} > 0, {0} * held[0], {0})",
        "scan": "pytensor.scan(lambda k, m: m * pt.as_tensor(held)[k], sequences=[pt.arange(3)], non_sequences=[{}], return_updates=False).sum()",
        "graph": "graph_of(held)({})", "sparse": "(pytensor.sparse.as_sparse_variable(scipy.sparse.csr_matrix(held[None])).toarray().sum() * {})",
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
    p.sizes["person"] = w.pick(1, 1, 2, 3)
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
    if p.coords and w.chance(0.4):
        w.line(w.pick('pm.Deterministic("n", model.dim_lengths["person"] * 1.0)', 'pm.Potential("n", -1.0 * model.dim_lengths["person"])',
                      'pm.Deterministic("rep", pt.ones(sizes["person"]) * 2, dims="person")'))  # fmt: skip


def parents(w: Writer) -> None:
    """An observed variable above another one, in expressions of all kinds."""
    p = w.program
    kind = w.pick("real", "real", "bit", "count")
    text = {"real": '"y", {}, 1.0', "bit": '"y", logit_p={}', "count": '"y", pt.exp(pt.clip({}, -2, 2))'}[kind]
    law = {"real": "Normal", "bit": "Bernoulli", "count": "Poisson"}[kind]
    w.line(f'y_rv = pm.{law}({text.format(w.unknown())}, observed={w.values("y", kind)})')
    p.bounds |= {"real": {"y": (-1.0, 1.0)}, "bit": {}, "count": {"y": (0, 3)}}[kind]
    part = w.pick("y_rv", "y_rv", "(y_rv * 1.0)")
    for _ in range(w.pick(0, 1, 1, 2)):
        part = w.pick(w.elementwise, w.reshaped, w.elementwise, w.mixing if w.chance(0.3) else w.reshaped)(part)
    if w.chance(0.3):
        part = w.together(part, w.feature(0))
    if kind == "bit" and w.chance(0.4):
        write_likelihood(w, "k", lambda: f"{w.unknown(LEVELS)}[{w.pick('y_rv', 'y_rv[:]', "pt.cast(y_rv, 'int8')", '1 - y_rv')}]")
    else:
        write_likelihood(w, "k", lambda: f"({w.unknown()} + {w.unknown()} * {part})", ("Normal", "Normal", "Bernoulli", "Poisson"))
    if w.chance(0.15):
        write_likelihood(w, "v", lambda: f"({w.unknown()} + {w.unknown()} * k_rv)", ("Normal", "Bernoulli"))


def columns(w: Writer) -> None:
    """Several values of every record, or vectors."""
    p, J = w.program, w.items_long
    several = w.pick("(person, item)", "(person, item)", "MvNormal", "Multinomial", "Dirichlet")
    index, name = w.index(), "Y"
    table = w.pick(f"{w.table(LEVELS, J)}[{index}]", f"{w.table(LEVELS, J)}[{index}]", f"({w.unknown()} * pt.ones({J}))",
                   f"({w.unknown(LEVELS)}[{index}])[:, None] * np.ones({J})", f"{w.table(J, LEVELS)}[:, {index}].T",
                   f"pt.stack([{', '.join(w.cell(0) for _ in range(J))}], axis=1)", f"({w.table(LEVELS, J)}[{index}])[::-1]",
                   f"pt.expand_dims({w.table(LEVELS, J)}[{index}].T, 0)[0].T", f"({w.table(LEVELS, J)}[{index}] + {w.unknown()})")  # fmt: skip
    if several.startswith("("):
        write_likelihood(w, name, lambda: table, ("Bernoulli", "Poisson", "Normal", "Binomial", "Exponential"), ("person", "item"))
        return
    w.column(name, "count" if several == "Multinomial" else "real", ("person", "item"), observed=True, dtype="float64")
    p.bounds |= {"MvNormal": {name: (-1.0, 1.0)}, "Dirichlet": {name: (0.01, 0.9)}, "Multinomial": {}}[several]
    given = {"MvNormal": f"{table}, cov=np.eye({J})", "Dirichlet": f"pt.exp({table})", "Multinomial": f"3, pt.special.softmax({table}, axis=-1)"}
    w.line(f'pm.{several}("{name}", {given[several]}, observed={name})')


def latents(w: Writer) -> None:
    """A number of every record's own, which no result may show."""
    p = w.program
    p.door, p.neighbours = w.pick("gibbs", "annealing", "gibbs"), "replace"
    p.coords = '{"person": range(sizes["person"])}' if w.chance(0.5) else ""
    own = 'dims="person"' if p.coords else 'shape=sizes["person"]'
    law = w.pick('pm.Bernoulli("s", {q}, {own})', 'pm.Categorical("s", [0.3, 0.7], {own})', 'pm.Bernoulli("s", 0.4, {own})')
    levels = w.unknown(LEVELS)
    w.line("s = " + law.format(q='pm.Uniform("q", 0.1, 0.9)', own=own))
    part = w.pick("s", "s", "s[::-1]", "pt.cast(s, 'int64')", "s[:]")
    if w.chance(0.3):
        levels = f"({levels} * 2)"
    write_likelihood(w, "y", lambda: f"{levels}[{part}]", ("Bernoulli", "Binomial", "Bernoulli"))
    if w.chance(0.2):
        w.line(w.pick('pm.Deterministic("many", s.sum())', 'pm.Deterministic("own", s * 2)'))


THEMES = {
    plain: 28, network: 4, public: 5, parents: 6, columns: 6, latents: 3, axes: 9, named_dims: 6, unnamed: 6, functions: 10, missing: 9, totals: 4, python: 6, scalars: 4, lengths: 12,
    scalar_parameters: 0,
}  # fmt: skip
"""How often each is written."""
