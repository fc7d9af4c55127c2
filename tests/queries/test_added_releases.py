"""What a release tells a session: of which level every number is a count, against the records themselves."""

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as pmdp
from pymc_dp.queries import col

pytestmark = pytest.mark.filterwarnings("ignore")
EPSILON = 40
"""So large that a number has noise with a probability of 2 exp(-20) = 4e-9 at most: some number of this file in one run of two million."""
RECORDS = np.repeat([0, 1, 2], [100, 250, 650])
TEXT = np.array(["low", "middle", "high"])


def levels_of(data, levels, labels=None):
    """A Categorical variable, numbered in the order of the labels."""
    with pm.Model(coords=None if labels is None else {"level": labels}) as model:
        p = pm.Dirichlet("p", np.ones(levels), dims=None if labels is None else "level")
        pm.Categorical("g", p, observed=data)
    return model


def votes(groups, answers, many, labels=None):
    """Answers by a private index."""
    with pm.Model(coords=None if labels is None else {"group": labels}) as model:
        p = pm.Beta("p", 1, 1, **({"shape": many} if labels is None else {"dims": "group"}))
        pm.Bernoulli("v", p[pm.Data("g", groups)], observed=answers)
    return model


def session(table, schema, neighbours="replace"):
    return pmdp.QuerySession(pd.DataFrame(table), schema, complete=True, neighbours=neighbours)


def counts(asked, column, levels):
    """What the session says of each level, from history alone."""
    return [round(asked.ask(col(column) == level, method="blue").value) for level in levels]


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("many", [2, 3])
def test_counts_are_of_the_levels_that_they_are_said_to_be(many, neighbours):
    """Of two levels, and a public number of records, the second alone is released."""
    rows = np.minimum(RECORDS, many - 1)
    asked = session({"g": rows}, {"g": range(many)}, neighbours)
    asked.add(pmdp.release(levels_of(rows, many), epsilon=EPSILON, neighbours=neighbours))
    assert counts(asked, "g", range(many)) == np.bincount(rows).tolist()


@pytest.mark.parametrize("many", [2, 3])
def test_values_of_a_table_are_those_that_were_counted(many):
    rows = np.minimum(RECORDS, many - 1) + 3
    with pm.Model() as model:
        pm.ZeroInflatedPoisson("y", 0.9, pm.Gamma("mu", 2, 1), observed=rows)
    asked = session({"y": rows}, {"y": range(3, 3 + many)})
    asked.add(pmdp.release(model, epsilon=EPSILON, bounds={"y": (3, 2 + many)}))
    assert counts(asked, "y", range(3, 3 + many)) == np.bincount(rows)[3:].tolist()


def own():
    return levels_of(RECORDS, 2), {"g": RECORDS}, {"g": [0, 1, 2]}, {}, None


def truth():
    with pm.Model() as model:
        pm.Bernoulli("g", pm.Beta("p", 1, 1), observed=RECORDS)
    return model, {"g": RECORDS}, {"g": [0, 1, 2]}, {}, None


def index():
    table = {"g": RECORDS, "v": RECORDS % 2}
    return votes(RECORDS, RECORDS % 2, 2), table, {"g": [0, 1, 2], "v": [0, 1]}, {}, {"v": ["g", "v"]}


def one_row():
    table = {"g": RECORDS, "v": RECORDS % 2}
    return votes(RECORDS, RECORDS % 2, 1), table, {"g": [0, 1, 2], "v": [0, 1]}, {}, {"v": ["g", "v"]}


def clamped():
    with pm.Model() as model:
        pm.ZeroInflatedPoisson("g", 0.9, pm.Gamma("mu", 2, 1), observed=RECORDS)
    return model, {"g": RECORDS}, {"g": [0, 1, 2]}, {"bounds": {"g": (0, 1)}}, None


def covariate():
    """Values of a private covariate are moved to the nearest of those that were declared."""
    with pm.Model() as model:
        x = pm.Data("g", RECORDS.astype(float))
        pm.Bernoulli("v", logit_p=pm.Normal("a", 0, 1) + pm.Normal("b", 0, 1) * x, observed=RECORDS % 2)
    table = {"g": RECORDS, "v": RECORDS % 2}
    return model, table, {"g": [0, 1, 2], "v": [0, 1]}, {"bounds": {"g": {0, 1}}}, {"v": ["g", "v"]}


@pytest.mark.parametrize("make", [own, truth, index, one_row, clamped, covariate])
def test_a_release_that_counts_one_level_as_another_is_refused(make):
    """All records have a level of the schema, as was promised; the release has fewer, and moves a record with another to one of its own.

    Before, hundreds of records were counted in a level that they have not, by intervals of a few records.
    """
    model, table, schema, arguments, columns = make()
    released, asked = pmdp.release(model, epsilon=EPSILON, **arguments), session(table, schema)
    with pytest.raises(pmdp.Refusal, match=r"does not tell the level [12] of g: records that have it were counted as another"):
        asked.add(released, columns)
    assert len(asked.history) == 0


COMPUTED = {
    "less one": lambda g: g - 1,
    "halves": lambda g: g // 2,
    "one": lambda g: pt.cast(pt.eq(g, 2), "int64"),
    "turned": lambda g: 3 - g,
}


@pytest.mark.parametrize("how", COMPUTED)
def test_a_public_index_that_is_computed_is_no_column(how):
    """Its cells are those of what was computed: 250 records that have a 2 were those with a 1."""
    groups = RECORDS + 1
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=3)
        pm.Bernoulli("v", p[COMPUTED[how](pm.Data("g", groups))], observed=groups % 2)
    asked = session({"g": groups, "v": groups % 2}, {"g": range(4), "v": [0, 1]})
    with pytest.raises(pmdp.Refusal, match="counts by what its model computes from a public array"):
        asked.add(pmdp.release(model, epsilon=EPSILON, public=["g"]), {"v": ["g", "v"]})


@pytest.mark.parametrize("kind", ["int8", "int64", "uint8", "float64"])
@pytest.mark.parametrize("data", [lambda g: pm.Data("g", g), lambda g: g])
def test_a_public_index_may_be_of_any_type(kind, data):
    groups = RECORDS.astype(kind)
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=3)
        pm.Bernoulli("v", p[pt.cast(data(groups), "int64")], observed=RECORDS % 2)
    asked = session({"g": groups, "v": RECORDS % 2}, {"g": range(3), "v": [0, 1]})
    public = ["g"] if "g" in model.named_vars else ["v:0"]
    asked.add(pmdp.release(model, epsilon=EPSILON, public=public), {"v": ["g", "v"]})
    assert round(asked.ask("g == 1 & v == 1", method="blue").value) == 250


def test_a_public_index_need_not_have_every_level():
    rows, answers = RECORDS * 2, RECORDS % 2
    asked = session({"g": rows, "v": answers}, {"g": range(5), "v": [0, 1]})
    asked.add(pmdp.release(votes(rows, answers, 5), epsilon=EPSILON, public=["g"]), {"v": ["g", "v"]})
    assert round(asked.ask("g == 2 & v == 1", method="blue").value) == 250


@pytest.mark.parametrize("labels", [["low", "middle", "high"], ["middle", "high", "low"]])
@pytest.mark.parametrize("given", ["labels", "levels", "both"])
def test_text_is_counted_by_what_the_model_calls_it(labels, given):
    """Whatever the order of the schema. Records beside the model are read by its labels, and in it they are numbered."""
    texts = TEXT[RECORDS]
    numbers = np.array([labels.index(text) for text in texts])
    schema = {"g": ["high", "low", "middle"], "v": [0, 1]}
    beside = votes(np.zeros(9, int), np.zeros(9, int), 3, labels)
    model = votes(numbers, RECORDS % 2, 3, None if given == "levels" else labels)
    table = pd.DataFrame({"g": texts, "v": RECORDS % 2})
    words = {} if given == "labels" else {"levels": {"g": labels}}
    releases = [pmdp.release(model, epsilon=EPSILON)]
    releases += [] if given == "levels" else [pmdp.release(beside, epsilon=EPSILON, data=table)]
    for released in releases:
        asked = session(table, schema)
        asked.add(pmdp.Release.from_datatree(released.to_datatree()), {"v": ["g", "v"]}, **words)
        assert counts(asked, "g", TEXT.tolist()) == [100, 250, 650]


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        (None, "levels of g are text: say which is which"),
        ({"g": ["low", "high"]}, "every level of g once"),
        ({"g": ["low", "low", "high"]}, "every level of g once"),
        ({"g": "low"}, "every level of g once"),
        ({"g": ["low", "middle", None]}, "every level of g once"),
        ({"h": ["low"]}, "no column 'h'"),
        ({"v": [0, 1], "w": [0, 1]}, "levels names w"),
        (["low", "middle", "high"], "says by column"),
    ],
)
def test_text_of_which_nobody_says_what_it_is_called_is_refused(levels, words):
    released = pmdp.release(votes(RECORDS, RECORDS % 2, 3), epsilon=EPSILON)
    asked = session({"g": TEXT[RECORDS], "v": RECORDS % 2, "w": 0}, {"g": TEXT.tolist(), "v": [0, 1], "w": [0, 1]})
    with pytest.raises(pmdp.Refusal, match=words):
        asked.add(released, {"v": ["g", "v"]}, levels=levels)


def test_another_order_than_the_model_s_is_refused():
    released = pmdp.release(votes(RECORDS, RECORDS % 2, 3, TEXT.tolist()), epsilon=EPSILON)
    asked = session({"g": TEXT[RECORDS], "v": RECORDS % 2}, {"g": TEXT.tolist(), "v": [0, 1]})
    with pytest.raises(pmdp.Refusal, match="another order of g than the model"):
        asked.add(released, {"v": ["g", "v"]}, levels={"g": TEXT[::-1].tolist()})


def test_a_release_of_other_records_is_refused():
    """Where their number is public and another one."""
    asked = session({"g": RECORDS}, {"g": [0, 1, 2]})
    with pytest.raises(pmdp.Refusal, match="released from 600 records, and the session has 1,000"):
        asked.add(pmdp.release(levels_of(RECORDS[:600], 3), epsilon=EPSILON))
