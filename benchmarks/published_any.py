"""Published analyses with other likelihoods, run privately: writes docs/published_any.md. See ``published`` for how.

    python benchmarks/published_any.py DATA_DIR

DATA_DIR holds the folder counts_dev; other records are brought by statsmodels, or stand here as the table that was published.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import statsmodels.api as sm
from published import Analysis, Quantity, main

import pymc_dp as pmdp

LSAT = "3 6 2 11 1 1 3 4 1 8 0 16 0 3 2 15 10 29 14 81 3 28 15 80 16 56 21 173 11 61 28 298"
"""Bock & Lieberman (1970): how many of 1,000 persons answered five questions 00000, 00001, 00010, ..., 11111, 1 being right."""
INCOMES = [1.5, 4, 6, 8, 9.5, 10.5, 11.5, 12.5, 13.5, 14.5, 16, 18.5, 21, 23.5, 27.5, 32.5, 37.5, 42.5, 47.5, 55, 67.5, 82.5, 97.5, 115]
"""The middles of the 24 classes of income, in thousands of dollars."""
WEEKS, DAYS = [0, 5, 10, 15, 20, 25, 36], [0, 30, 90, 180, 365, 730, 1800]


# ---------- the models, as one would write them without privacy
def leaving(events, losses, widths: np.ndarray) -> pt.TensorVariable:
    """Probabilities (groups, 2 K + 1) of an event in each of K intervals, of a loss in each, and of neither.

    A loss is the end of observation before an event; rates are constant in an interval, (groups, 1) or (groups, K).
    """
    both = (events + losses) * widths
    left = pt.exp(both - both.cumsum(axis=1)) * (1 - pt.exp(-both))
    staying = pt.exp(-both.sum(axis=1, keepdims=True))
    return pt.concatenate([left * events / (events + losses), left * losses / (events + losses), staying], axis=1)


def codes(times: pd.Series, events: pd.Series, edges: list[int]) -> np.ndarray:
    """The interval of each time, with those of losses behind those of events."""
    return np.searchsorted(edges[1:-1], times, side="left") + np.where(events == 1, 0, len(edges) - 1)


def remission(data: Path) -> pm.Model:
    patients = pd.read_csv(data / "counts_dev" / "gehan_leukemia.csv")
    treated = (patients["treat"] == "6-MP").astype(int).to_numpy()
    with pm.Model(coords={"arm": ["control", "6-MP"], "patient": range(len(patients))}) as model:
        arm, width = pm.Data("arm_idx", treated, dims="patient"), pm.Data("width", np.diff(WEEKS).astype(float), shape=(6,))
        relapse, loss = pm.Gamma("relapse", 1, 5, dims="arm"), pm.Gamma("loss", 1, 20)
        pm.Deterministic("log ratio", pt.log(relapse[0] / relapse[1]))
        p = leaving(relapse[:, None], loss, width)
        pm.Categorical("left", p[arm], observed=codes(patients["time"], patients["cens"], WEEKS), dims="patient")
    return model


def transplants(data: Path) -> pm.Model:
    patients = sm.datasets.heart.load_pandas().data
    with pm.Model(coords={"age": ["below 50", "from 50"], "patient": range(len(patients))}) as model:
        older, width = pm.Data("older", (patients["age"] >= 50).astype(int), dims="patient"), pm.Data("width", np.diff(DAYS) / 365)
        first, later = pm.Gamma("death, first 90 days", 1, 1, dims="age"), pm.Gamma("death, later", 1, 1, dims="age")
        rates = pt.stack([first, first, later, later, later, later], axis=1)
        p = leaving(rates, pm.Gamma("loss", 1, 1), width)
        pm.Categorical("left", p[older], observed=codes(patients["survival"], patients["censors"], DAYS), dims="patient")
    return model


def food(data: Path) -> pm.Model:
    households = sm.datasets.engel.load_pandas().data
    with pm.Model(coords={"household": range(len(households))}) as model:
        income = pm.Data("income", households["income"] / 100, dims="household")
        a, b, scale = pm.Normal("a", 0, 3), pm.Normal("b", 0.5, 0.5), pm.HalfNormal("scale", 1)
        pm.Laplace("food", a + b * income, scale, observed=households["foodexp"] / 100, dims="household")
    return model


def party(data: Path) -> pm.Model:
    voters = sm.datasets.anes96.load_pandas().data
    three = np.array([0, 0, 1, 1, 1, 2, 2])[voters["PID"].astype(int)]
    with pm.Model(coords={"class": range(1, 25), "voter": range(len(voters))}) as model:
        income = pm.Data("income", voters["income"].astype(int) - 1, dims="voter")
        middle = pm.Data("middle", np.array(INCOMES) / 10, dims="class", shape=(24,))
        b = pm.Normal("b", 0, 1)
        cuts = pm.Normal("cuts", 0, 2, shape=2, transform=pm.distributions.transforms.ordered, initval=[-0.5, 0.5])
        pm.OrderedLogistic("party", eta=(b * middle)[income], cutpoints=cuts, observed=three, dims="voter")
    return model


def law_school(data: Path) -> pm.Model:
    people = np.repeat(np.arange(32), [int(many) for many in LSAT.split()])
    answers = people[:, None] >> np.arange(4, -1, -1) & 1
    with pm.Model(coords={"question": range(1, 6), "person": range(len(answers))}) as model:
        discrimination, ease = pm.LogNormal("discrimination", 0, 0.5), pm.Normal("ease", 0, 2, dims="question")
        ability = pm.Normal("ability", 0, 1, dims="person")
        pm.Bernoulli("right", logit_p=discrimination * ability[:, None] + ease, observed=answers, dims=("person", "question"))
    return model


RASCH = {"discrimination": Quantity("0.755", "discrimination")}
for k, difficulty in enumerate([-3.615, -1.322, -0.318, -1.730, -2.780], start=1):
    RASCH[f"ease of question {k}"] = Quantity(f"{-0.755 * difficulty:.2f}", "ease", {"question": k})

ANALYSES = {
    "remission": Analysis(
        "Remission of leukaemia",
        "Freireich et al. (1963), Gehan (1965): 42 patients; published are 21 relapses in 182 weeks and 9 in 359",
        "One patient: in which of six intervals the remission or its observation ended, and by which. Public: all arms.",
        remission,
        {"unit": "patient", "public": ["arm_idx", "width"]},
        {
            "relapses per week, control": Quantity("21/182 = 0.115", "relapse", {"arm": "control"}),
            "relapses per week, 6-MP": Quantity("9/359 = 0.025", "relapse", {"arm": "6-MP"}),
            "log ratio": Quantity("1.53", "log ratio"),
        },
        "indexed",
        remark="A constant rate of relapse in each arm, and of loss in both; nothing is assumed of when in an interval patients are lost.",
    ),
    "transplants": Analysis(
        "Survival after a heart transplant",
        "Stanford programme, Miller (1976), shipped by statsmodels: 69 patients",
        "One patient: age below 50 or not, and in which of six intervals death or the end of observation fell. Public: their number.",
        transplants,
        {"unit": "patient", "public": ["width"]},
        {
            "deaths a year, first 90 days, below 50": Quantity("none", "death, first 90 days", {"age": "below 50"}),
            "deaths a year, first 90 days, from 50": Quantity("none", "death, first 90 days", {"age": "from 50"}),
            "deaths a year, later, below 50": Quantity("none", "death, later", {"age": "below 50"}),
            "deaths a year, later, from 50": Quantity("none", "death, later", {"age": "from 50"}),
        },
        "indexed",
    ),
    "food": Analysis(
        "Food expenditure, median regression",
        "Engel's data, Koenker & Bassett (1982), shipped by statsmodels: 235 households; its median regression",
        "One household: income and expenditure on food, in bins of 100 to 500 Belgian francs. Public: their number.",
        food,
        {
            "unit": "household",
            "bounds": {
                "income": pmdp.Bins(edges=[0, 5, 7, 9, 12, 16, 25, 50]),
                "food": pmdp.Bins(edges=[0, 3, 4, 5, 6, 7, 8, 10, 13, 18, 25]),
            },
        },
        {"intercept": Quantity("0.815", "a"), "slope": Quantity("0.560", "b")},
        "table",
        remark=(
            "The Laplace likelihood is that of the median, and robust: the richest household has five times the mean income. It is"
            " integrated over where in its bin an income lies."
        ),
    ),
    "party": Analysis(
        "Party by income, proportional odds",
        "Faraway, Extending the Linear Model with R, on multinomial data; election study of 1996, shipped by statsmodels: 944 people",
        "One person: the class of income, of 24, and Democrat, independent or Republican. Public: their number.",
        party,
        {"unit": "person", "public": ["middle"]},
        {
            "slope by 10,000 dollars": Quantity("0.131", "b"),
            "first cut": Quantity("0.209", "cuts", {"cuts_dim_0": 0}),
            "second cut": Quantity("1.292", "cuts", {"cuts_dim_0": 1}),
        },
        "indexed",
    ),
    "law_school": Analysis(
        "Law school admission test, section 6",
        "Bock & Lieberman (1970): 1,000 persons, five questions; marginal likelihood as in Rizopoulos (2006)",
        "One person: all five answers. Public: their number. Abilities are summed out; how many persons gave which answers is released.",
        law_school,
        {"unit": "person"},
        RASCH,
        "shared",
    ),
}


if __name__ == "__main__":
    main(ANALYSES, "published_any.md", "Published analyses with other likelihoods", __doc__)
