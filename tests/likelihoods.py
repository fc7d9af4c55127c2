"""Likelihoods of the programs of ``generator``: families, and the numbers per record that they are made of."""

from programs import Writer

import pymc_dp as pmdp

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
    "HurdlePoisson": ("0.7, pt.exp(pt.clip({p}, -2, 2))", "count", (0, 4)),
    "Truncated": ("pm.Poisson.dist(pt.exp(pt.clip({p}, -2, 2))), lower=None, upper=9", "count", (0, 4)),
    "Censored": ("pm.Poisson.dist(pt.exp(pt.clip({p}, -2, 2))), lower=None, upper=9", "count", (0, 4)),
    "BetaBinomial": ("pt.exp(pt.clip({p}, -2, 2)), 2.0, 3", "count", (0, 3)),
    "Laplace": ("{p}, 1.0", "real", (-1.0, 1.0)),
    "StudentT": ("nu=3.0, mu={p}, sigma=1.0", "real", pmdp.Bins(-2.0, 2.0, 4)),
    "HurdleGamma": ("0.7, pt.exp(pt.clip({p}, -2, 2)), 1.0", "real", pmdp.Bins(edges=[-1.0, 0.0, 0.5, 1.5])),
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
        name, _ = w.pick(*w.unknowns)
        w.line(w.pick(f'pm.Deterministic("told", pt.exp({name}))', f'pm.Potential("soft", -pt.sum(pt.sqr({name})))'))
