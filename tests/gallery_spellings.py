"""The same models in other words: spellings that are read as the plain one. ``gallery.GALLERY`` holds these models, too."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from gallery import COUNTY, REALS, entry, positive

UNIT, SIZES = (-1, 1), (0.5, 2.0)


# ---------- logarithms of products
@entry("linear", tolerance=1e-2)
def weights_of_cylinders_in_one_logarithm(r):
    """McElreath (2020), m16.1, as it is printed."""
    p, k, h = pm.Beta("p", 2, 18), pm.Exponential("k", 0.5), pm.Data("h", np.exp2(r.z))
    pm.LogNormal("w", pm.math.log(np.pi * k * p**2 * h**3), pm.Exponential("sigma", 1), observed=positive(r))
    return {"bounds": {"w": (0.1, 20), "h": SIZES}}


@entry("linear", tolerance=1e-2)
def growth_with_an_unknown_exponent(r):
    """Allometry, of groups."""
    mass, k, b = pm.Data("mass", np.exp2(r.z)), pm.LogNormal("k", 0, 1, shape=3)[r.g], pm.Normal("b", 1, 1)
    pm.LogNormal("length", pm.math.log(k * mass**b), pm.Exponential("sigma", 1), observed=positive(r))
    return {"bounds": {"length": (0.1, 20), "mass": SIZES}}


@entry("linear", tolerance=1e-2)
def logarithm_to_the_base_ten_of_a_ratio(r):
    mass, height = pm.Data("mass", np.exp2(r.z)), pm.Data("height", np.exp2(r.w))
    index = pm.HalfNormal("k") * pt.sqrt(mass) / (height * pm.HalfNormal("m")) ** 2
    pm.Normal("y", pt.log10(index), pm.Exponential("sigma", 1), observed=r.x)
    return {"bounds": {"y": REALS, "mass": SIZES, "height": SIZES}}


# ---------- slopes of groups, taken out of a matrix
@entry("linear", coords={"group": COUNTY, "coef": list("abc")})
def slopes_taken_out_of_a_product(r):
    X, g, B = pm.Data("X", r.X), pm.Data("g", r.g), pm.Normal("B", dims=("group", "coef"))
    a = pm.Normal("a", dims="group")
    pm.Normal("y", (a + pt.dot(X, B.T))[pt.arange(len(r.x)), g], pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "X": UNIT}}


@entry("linear")
def slopes_taken_out_of_a_product_by_columns(r):
    X, B = pm.Data("X", r.X), pm.Normal("B", shape=(3, 3))
    pm.Normal("y", pt.dot(B, X.T)[r.g, pt.arange(X.shape[0])], pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "X": UNIT}, "public": ["y:0"]}


@entry("linear")
def slopes_on_a_diagonal(r):
    B = pm.Normal("B", shape=(3, 3))
    pm.Normal("y", pt.diag(pm.math.dot(r.X, B[r.g].T)), pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "y:0": UNIT}}


# ---------- settings of curves as data
@entry("linear", tolerance=0.02)
def hinges_at_public_knots(r):
    age, knots = pm.Data("age", r.z), pm.Data("knots", [-0.5, 0.0, 0.5])
    mu = pm.Normal("a") + pm.math.dot(pt.maximum(age[:, None] - knots, 0), pm.Normal("b", shape=3))
    pm.Normal("y", mu, pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS, "age": UNIT}, "public": ["knots"]}
