"""What is shown fits into 80 columns and wraps, and HTML has no colours of its own for text."""

import re
from dataclasses import is_dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_dp as pmdp
from pymc_dp.privacy.layout import STYLE, WIDTH, aligned, page, wrapped
from pymc_dp.privacy.receipts import Draw


def widest(text):
    return max(map(len, text.split("\n")))


@pytest.mark.parametrize("many", [1, 3, 8])
def test_a_table_fits_and_loses_no_word(many):
    """Whatever is in it: a thousand tables of random words, some longer than a column."""
    rng = np.random.default_rng(many)
    for _ in range(300):
        rows = [[" ".join("x" * k for k in rng.integers(1, 14, rng.integers(0, 9))) for _ in range(many)] for _ in range(4)]
        table = aligned(rows[0], rows[1:])
        assert widest(table) <= WIDTH or many == 8
        assert table.count("x") == sum(cell.count("x") for row in rows for cell in row)


def test_a_narrow_table_is_not_wrapped():
    assert aligned(("a", "b b"), [("1", "2 2")]) == "a  b b\n-  ---\n1  2 2"


def test_a_column_without_a_word_is_shown():
    """As where a plan finds the epsilon for a width, and there is nothing to add about it."""
    assert aligned(("a", ""), [("1", "")]) == "a\n-\n1"


def test_titles_give_way_first():
    table = aligned(("a very long title of a column", "x"), [("1", "y" * 60)])
    assert table.split("\n")[-1] == "1" + " " * 17 + "  " + "y" * 60


def test_a_sentence_wraps_between_words():
    assert wrapped("one " * 30).split("\n")[1].startswith("  one")
    assert wrapped("https://" + "x" * 100) == "https://" + "x" * 100


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """One of everything that people look at, of models whose tables were wider than a terminal."""
    rng = np.random.default_rng(1)
    ward, ill, test = rng.integers(0, 3, 200), *rng.integers(0, 2, (2, 200))
    with pm.Model(coords={"ward": ["a ward with a long name", "another ward", "the last of all wards"]}) as model:
        rate = pm.Beta("rate", 1, 9, dims="ward")
        i = pm.Bernoulli("returned_within_30_days", rate[pm.Data("on_ward", ward)], observed=ill)
        pm.Bernoulli("test_was_positive", pm.Beta("positive", 1, 1, shape=2)[i], observed=test)
        pm.Normal("weight", pm.Normal("mu", 70, 20), 10, observed=rng.normal(70, 10, 200))
    bounds = {"weight": (0, 150)}
    ledger = pmdp.Ledger(
        tmp_path_factory.mktemp("ledger") / "hospital.ledger", epsilon=3, delta=1e-6, create=True, parts=["north", "south"]
    )
    release = pmdp.release(model, epsilon=1, bounds=bounds, public=["on_ward"], missing={}, ledger=ledger)
    pmdp.release(model, epsilon=0.5, bounds=bounds, public=["on_ward"], missing={}, ledger=ledger.part("north"))
    session = pmdp.QuerySession(pd.DataFrame({"age": rng.integers(0, 99, 500)}), {"age": range(100)}, epsilon=1)
    answer = session.ask("age >= 65 & age <= 70", width=300)
    with pm.Model() as network:
        i = pm.Bernoulli("ill", pm.Beta("a", 1, 1), observed=ill)
        pm.Bernoulli("test", pm.Beta("b", 1, 1, shape=2)[i], observed=test)
    return {
        "inspect": pmdp.inspect(model, bounds=bounds), "needed": pmdp.inspect(model), "network": pmdp.inspect(network),
        "release": release, "ledger": ledger, "session": session, "answer": answer, "price": session.price(["age > 5"], width=50),
        "utility": pmdp.utility(network, epsilon=1.0, records=200), "suggested": pmdp.suggest_bounds(model),
        "audit": pmdp.audit(lambda votes: sum(votes), [0, 1], [1, 1], epsilon=1.0, n=400, progressbar=False),
    }  # fmt: skip


SHOWN = ["inspect", "needed", "network", "release", "ledger", "session", "answer", "price", "utility", "suggested", "audit"]


@pytest.mark.parametrize("name", SHOWN)
def test_text_fits_into_a_terminal(shown, name):
    assert set(shown) == set(SHOWN)
    assert widest(repr(shown[name])) <= WIDTH, repr(shown[name])


@pytest.mark.parametrize("name", [name for name in SHOWN if name not in ("price", "utility")])
def test_html_leaves_colours_to_the_page(shown, name):
    """Dark pages have light text: only half-transparent backgrounds and lines are our own."""
    html = shown[name]._repr_html_()
    assert html.startswith(STYLE)
    assert re.findall(r"style='[^']*color", html) == []
    assert "<script" not in html


def test_the_style_has_no_opaque_background():
    colours = re.findall(r"background:([^;}]+)", STYLE)
    assert colours
    assert all(colour == "transparent" or colour.startswith("rgba") for colour in colours)
    assert not re.search(r"[{;]color:", STYLE)


WRITTEN = [
    pmdp.Laplace(), pmdp.Laplace(residuals=True), pmdp.Gaussian(delta=1e-6), pmdp.Fourier(), pmdp.PosteriorSample(), pmdp.Norm(1.5),
    pmdp.PosteriorSample(3, method="mcmc", truncate="prior"), pmdp.Bins(0, 100, 40), pmdp.Bins(edges=[0, 0.5, 10]),
    pmdp.Natural(17, 90), pmdp.Individual(), pmdp.Individual(events=3, rows=2), pmdp.Person("patient_id", at_most=5),
    pmdp.Gibbs(sweeps=20, chains=2, steps=[pmdp.Barker(["a", "b"], width=0.1), pmdp.Penalty("c", noise=2)]), pmdp.Annealing(10, chains=4),
    pmdp.Exact(), pmdp.DiscreteLaplace(10), pmdp.DiscreteGaussian(2.5), pmdp.LaplaceNoise(3), pmdp.GaussianNoise(3), pmdp.Skellam(4),
    pmdp.Rounded(10, ties="even"), pmdp.Clipped(lower=0), pmdp.Threshold(450, absent="listed"), pmdp.RoundedToBase(3),
    pmdp.RandomisedResponse(0.75, levels=3), pmdp.UnrelatedQuestion(asked=0.7, yes=0.25), pmdp.ForcedResponse(yes=1 / 6, no=1 / 6),
    pmdp.Transitions([[0.9, 0.1], [0.2, 0.8]]), pmdp.NoiseTable([-1, 0, 1], [0.25, 0.5, 0.25]),
    pmdp.Codebook([pmdp.DiscreteLaplace(10), pmdp.Clipped(lower=0)], source="a yearbook with a long name, read in 2026", promise="one row"),
    pmdp.CellPrior(terms=[("block",), ("sex", "age")]), pmdp.queries.Brackets([0, 10_000, 50_000]),
]  # fmt: skip


@pytest.mark.parametrize("thing", WRITTEN, ids=lambda thing: type(thing).__name__)
def test_what_a_user_wrote_is_shown_as_one_writes_it(thing):
    """In lines of 80 columns, without what is at its default; and it is the same again if it is written like that."""
    text = repr(thing)
    assert widest(text) <= WIDTH
    assert not re.search(r"array|dtype|Fraction|np\.|=None|object at|<", text)
    names = {name: getattr(pmdp, name) for name in pmdp.__all__}
    assert repr(eval(" ".join(text.split()), names | {"Brackets": pmdp.queries.Brackets})) == text


def test_no_public_class_is_shown_as_python_shows_a_dataclass(shown):
    """Nor what is inside the results: rows of tables, statistics of a release."""
    named = [getattr(pmdp, name) for name in pmdp.__all__] + [getattr(pmdp.queries, name) for name in pmdp.queries.__all__]
    inside = [shown["needed"].rows[0], shown["release"]["weight"], shown["utility"].families[0], shown["release"].cost]
    for kind in [*(thing for thing in named if isinstance(thing, type) and is_dataclass(thing)), *map(type, inside)]:
        assert not kind.__repr__.__code__.co_filename.endswith("reprlib.py"), kind
    for thing in inside:
        assert widest(repr(thing)) <= WIDTH, repr(thing)


def test_a_long_list_is_cut():
    assert repr(pmdp.Bins(edges=range(101))) == "Bins(edges=[0, 1, 2, 3, 4, 5, ... 94 more ..., 100])"
    assert repr(pmdp.DiscreteLaplace(np.arange(1, 101))).endswith("... 93 more ..., 100])")


def test_what_is_refused_comes_first_and_once():
    with pm.Model() as model:
        pm.Logistic("height", pm.Normal("mean"), 1, observed=[1.0, 2.0])
    for text in (repr(pmdp.inspect(model)), pmdp.inspect(model)._repr_html_().removeprefix(STYLE)):
        assert text.index("height cannot be released") < text.index("likelihood</th>" if "<" in text else "structure")
        assert text.count("cannot be released") == 1


def test_what_a_publisher_did_is_printed_in_lines():
    law = pmdp.Codebook([pmdp.DiscreteLaplace(30)], source="a yearbook with a long name " * 4, promise="one person")
    with pm.Model() as model:
        pm.Poisson("visits", pm.Gamma("rate", 1, 1), observed=[3, 4])
    text = repr(pmdp.published(model, {"visits": law}).publication)
    assert text.startswith("visits: discrete Laplace noise of scale 30")
    assert widest(text) <= WIDTH


def test_what_is_needed_comes_first(shown):
    for text in (repr(shown["needed"]), shown["needed"]._repr_html_().removeprefix(STYLE)):
        assert text.index("needs bounds") < text.index("likelihood")
    assert repr(shown["needed"]).startswith("needed: weight")
    assert "needed" not in repr(shown["inspect"])


def test_a_title_takes_two_lines_where_the_table_is_less_high_for_it():
    """One word a line would leave the text beside it a line less, and take three lines more itself."""
    table = aligned(("x", "one record moves it by"), [("y " * 36, "1")]).split("\n")
    assert [line[1:].strip() for line in table[:2]] == ["one record", "moves it by"]
    assert len(table) == 5


def test_a_charge_whose_records_were_not_read_is_said(tmp_path):
    ledger = pmdp.Ledger(tmp_path / "a.ledger", epsilon=1, create=True, parts=["north"])
    draws = [Draw("vote", "laplace", 1, 1, 2.0, 1)]
    ledger.charge(pmdp.Cost(epsilon=Fraction(1, 2)), draws, neighbours="replace", unit="row")
    for text in (repr(ledger), ledger._repr_html_()):
        assert "charge, not read" in " ".join(text.split())
        assert "rho" not in text
    assert repr(ledger.part("north")) == "Part north of a.ledger: left epsilon 0.5"


def test_a_ledger_shows_what_there_is_and_no_more(shown):
    text = repr(shown["ledger"])
    assert "north" in text
    assert "session" not in text
    assert "disjoint" not in text
    assert text.count("charge") == 2
    assert "not read" not in text
    assert "rho" in text


def test_a_date_in_html_stays_on_a_line(shown):
    """In a narrow page a browser breaks a line after each hyphen of a date."""
    html = shown["ledger"]._repr_html_()
    assert ".date{white-space:nowrap}" in html
    assert len(re.findall(r"\d{4}-\d\d-\d\d", html)) == len(re.findall(r"<span class='date'>\d{4}-\d\d-\d\d</span>", html)) > 0


def test_text_in_html_is_escaped():
    with pm.Model(coords={"k": ["<b>", "&"]}) as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1, dims="k")[np.array([0, 1, 1])], observed=[0, 1, 1])
    assert "&lt;b&gt;" in pmdp.inspect(model)._repr_html_()
    assert page("x").endswith("<div class='pymc-dp'>x</div>")
