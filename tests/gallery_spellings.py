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


# ---------- tables of groups as data
@entry("indexed", coords={"county": COUNTY})
def a_predictor_of_counties_alone(r):
    """The radon of Gelman and Hill (2007), chapter 12, without effects of counties: the predictor has a value for each."""
    uranium, county = pm.Data("uranium", [0.25, -0.5, 1.0], dims="county"), pm.Data("county_idx", r.g)
    pm.Normal("y", pm.Normal("a", 0, 10) + pm.Normal("b", 0, 10) * uranium[county], pm.HalfNormal("s"), observed=r.x)
    return {"bounds": {"y": REALS}, "public": ["uranium"]}


# ---------- votes of so many voters
def votes(r):
    """Rows of three counts, and how many they are together: 6 to 9."""
    many = 6 + r.i
    first = np.minimum(r.k, many)
    second = np.minimum(r.c, many - first)
    return np.column_stack([first, second, many - first - second]), many


@entry("indexed")
def votes_of_public_numbers_of_voters(r):
    counts, many = votes(r)
    pm.Multinomial("votes", n=pm.Data("many", many), p=pm.Dirichlet("p", np.ones(3)), observed=counts)
    return {"bounds": {"votes": (0, 9)}, "public": ["many"]}


@entry("indexed")
def votes_in_private_districts(r):
    counts, many = votes(r)
    pm.Multinomial("votes", n=many, p=pm.Dirichlet("p", np.ones(3), shape=(3, 3))[r.g], observed=counts)
    return {"bounds": {"votes": (0, 9)}, "public": ["votes:0"]}


@entry("indexed")
def votes_for_two(r):
    counts, many = votes(r)
    pair = np.column_stack([counts[:, 0], many - counts[:, 0]])
    pm.Multinomial("votes", n=many, p=pm.Dirichlet("p", np.ones(2), shape=(3, 2))[r.g], observed=pair)
    return {"bounds": {"votes": (0, 9)}, "public": ["votes:0", "votes:1"]}
