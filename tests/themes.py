"""What a random program is about: themes of the grammar, each written with the same expressions. Used by ``generator``."""

from hiding_themes import functions, lengths, missing, python, scalar_parameters, scalars, totals, unnamed
from likelihoods import extras, linear_mean, one_number, write_likelihood
from programs import LEVELS, Writer


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


def pooled(w: Writer) -> None:
    """A normal response in many public cells, between which mostly the intercept alone differs."""
    p = w.program
    p.door, p.neighbours, p.sizes["person"] = "release", "replace", w.pick(12, 13)
    p.public.append("cell")
    w.line(f'cell = pm.Data("cell", np.arange(sizes["person"]) % {w.pick(4, 4, 5)})')
    x = w.covariate("x", "real")
    feature = w.pick(x, x, x, f"pt.tanh({x})", f"({x} - 1) / 2")
    slope = w.pick(*['pm.Normal("slope")'] * 3, 'pm.Normal("slope", shape=5)[cell]')
    scale = w.pick(*['pm.HalfNormal("scale")'] * 3, 'pm.HalfNormal("scale", shape=5)[cell]')
    p.bounds["y"] = (-1.0, 2.0)
    values = w.values("y", "real")
    w.line(f'pm.Normal("y", pm.Normal("a", shape=5)[cell] + {slope} * {feature}, {scale}, observed={values})')


def both_axes(w: Writer) -> str:
    """Records by items that are observed, or above a likelihood of people: the text of it."""
    how = w.pick("observed", "observed", "data", "observed data")
    kind = w.pick("real", "bit", "bit", "count")
    p = w.program
    if how != "data":
        family, unknown = {
            "real": ("Normal", "{}, 1.0"),
            "bit": ("Bernoulli", "logit_p={}"),
            "count": ("Poisson", "pt.exp(pt.clip({}, -2, 2))"),
        }[kind]
        w.column("R", kind, ("person", "item"), observed=True)
        p.bounds["R"] = {"real": (-1.0, 1.0), "bit": (0, 1), "count": (0, 4)}[kind]
        if kind == "bit":
            del p.bounds["R"]
        w.line('D = pm.Data("D", R)' if how == "observed data" else "D = R")
        parameter = w.unknown(w.items_long) if p.door == "release" and w.chance(0.5) else w.unknown()
        w.line(f'R_rv = pm.{family}("R", {unknown.format(parameter)}, observed=D)')
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
        w.program.neighbours = "replace"  # one of the people less is one column less
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
            mean = w.pick('D_.mean("item")', 'D_.sum("item")', "D_.isel(item=0)", 'D_.max("item")')
            w.line(f'pmd.Normal("y", a + {prior.format("b", "")} * {mean}, 1.0, observed=pmd.as_xtensor(y, dims=("person",)))')
    if kind == "data" and "y" in p.columns and w.chance(0.3):
        return
    way = w.pick('D_.sum("person")', 'D_.max("person")', 'D_.mean("person")', 'D_.transpose("item", "person").isel(person=0)',
    'D_.isel(person=-1)',
                 'D_.min("person")', 'D_.std("person")', 'D_.transpose("item", ...).sum("person")', 'D_.dot(D_, dim="person")',
                 'D_.cumsum("person").isel(person=-1)', 'D_.rename({"person": "other"}).max("other")')  # fmt: skip
    if "y" not in p.columns and kind == "data":
        p.columns["D"].moves = "item"  # nobody else reads it
    w.column("z", "real", ("item",), moves="item", observed=True)
    p.bounds["z"] = (-1.0, 1.0)
    w.line(f'pmd.Normal("z", a + {prior.format("c", "")} * {way}, 1.0, observed=pmd.as_xtensor(z, dims=("item",)))')


def parents(w: Writer) -> None:
    """An observed variable above another one, in expressions of all kinds."""
    p = w.program
    kind = w.pick("real", "real", "bit", "count")
    text = {"real": '"y", {}, 1.0', "bit": '"y", logit_p={}', "count": '"y", pt.exp(pt.clip({}, -2, 2))'}[kind]
    law = {"real": "Normal", "bit": "Bernoulli", "count": "Poisson"}[kind]
    w.line(f"y_rv = pm.{law}({text.format(w.unknown())}, observed={w.values('y', kind)})")
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
                   f"pt.expand_dims({w.table(LEVELS, J)}[{index}].T, 0)[0].T",
                   f"({w.table(LEVELS, J)}[{index}] + {w.unknown()})")  # fmt: skip
    if several.startswith("("):
        write_likelihood(w, name, lambda: table, ("Bernoulli", "Poisson", "Normal", "Binomial", "Exponential"), ("person", "item"))
        return
    w.column(name, "count" if several == "Multinomial" else "real", ("person", "item"), observed=True, dtype="float64")
    p.bounds |= {"MvNormal": {name: (-1.0, 1.0)}, "Dirichlet": {name: (0.01, 0.9)}, "Multinomial": {}}[several]
    given = {
        "MvNormal": f"{table}, cov=np.eye({J})",
        "Dirichlet": f"pt.exp({table})",
        "Multinomial": f"3, pt.special.softmax({table}, axis=-1)",
    }
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


def abilities(w: Writer) -> None:
    """Rows of answers, with an unknown number of every person above them, which is summed out."""
    p = w.program
    p.door, p.coords = "release", w.pick("", '{"person": range(sizes["person"])}')
    values = w.values("R", w.pick("bit", "bit", "count"), ("person", "item"))
    n = 1 if w.program.columns["R"].kind == "bit" else 2
    own = w.pick('dims="person"', 'dims="person"', "shape=len(R)") if p.coords else w.pick('shape=sizes["person"]', "shape=len(R)")
    mean = w.pick("0", w.unknown())
    if w.chance(0.3):
        if w.chance(0.6) and p.neighbours == "replace":  # PyMC cannot evaluate a prior with more rows than records
            p.public.append("g")
        w.column("g", "level", moves=None if "g" in p.public else "person", dtype="int64")
        w.line('g = pm.Data("g", g)')
        mean = f"{w.unknown(LEVELS)}[g]"
    w.line(f't = pm.Normal("t", {mean}, {w.pick("1", w.unknown(positive=True))}, {own})')
    t = w.pick("t", "t", "t", "t[::-1]", "(t ** 2)", "(t - t.mean())", "pt.sort(t)", "t[:len(R)]", "(2 * t)")
    row = w.pick(f"{t}[:, None]", f"{t}[:, None]", f"pt.outer({t}, {w.unknown(w.items_long, positive=True)})")
    of = f"{row} - {w.unknown(w.items_long)}"
    law = f'pm.Bernoulli("R", logit_p={of}' if n == 1 else f'pm.Binomial("R", {n}, logit_p={of}'
    w.line(f"{law}, observed={values})")
    if w.chance(0.2):
        w.line(w.pick('pm.Deterministic("best", t.max())', 'pm.Deterministic("own", t * 2)', 'pm.Potential("near", -(t ** 2).sum())'))
    if w.chance(0.15):
        write_likelihood(w, "y", lambda: f"({w.unknown()} + t)", ("Normal", "Bernoulli"))


THEMES = {
    plain: 28, network: 4, public: 5, parents: 6, columns: 6, latents: 3, axes: 9, named_dims: 6, unnamed: 6, functions: 10, missing: 9,
    totals: 4, python: 6, scalars: 4, lengths: 12,
    scalar_parameters: 0, pooled: 0, abilities: 0,
}  # fmt: skip
"""How often each is written."""
