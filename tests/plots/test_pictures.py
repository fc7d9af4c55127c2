"""Pictures show the numbers they say they show, and differ without colour."""

import re
import sys
import time

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dp as pmdp
from pymc_dp.plots.drawing import LOOKS
from pymc_dp.plots.posteriors import PARTS
from pymc_dp.privacy import journal

matplotlib = pytest.importorskip("matplotlib")
WARDS = ["A", "B", "C"]


@pytest.fixture(autouse=True)
def closed():
    """No window is opened, and no figure stays."""
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    yield
    plt.close("all")


def tree(spread=1.0, group="posterior", **more):
    """Draws whose quantiles are known: evenly spread around 0, 1 and 2."""
    even = np.linspace(-1, 1, 201) * spread
    rate = xr.DataArray(even[None, :, None] + np.arange(3.0), dims=("chain", "draw", "ward"), coords={"ward": WARDS})
    scale = xr.DataArray(even[None], dims=("chain", "draw"))
    return xr.DataTree.from_dict({group: xr.Dataset({"rate": rate, "scale": scale, **more})})


def axes_of(picture):
    """The axes of a picture of ArviZ's kind."""
    return [picture.get_target(name, {}) for name in picture.viz["plot"].data_vars]


def ends_of(ax):
    """Every horizontal line: from, to, and how high. In one picture, lines of one tree are one line with gaps."""
    return [(*line.get_xdata()[at : at + 2], line.get_ydata()[at]) for line in ax.lines for at in range(0, len(line.get_xdata()), 3)]


def test_posteriors_stand_side_by_side_with_their_intervals():
    trees = {"private": tree(2.0), "no privacy": tree(1.0), "prior": tree(5.0, "prior")}
    axes = axes_of(pmdp.plot_posteriors(trees, probability=0.8))
    assert [ax.get_xlabel() for ax in axes] == ["rate", "scale"]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == WARDS
    lines = ends_of(axes[0])
    for place, (low, high) in {0: (-1.6, 1.6), 4: (0.2, 1.8), 6: (-4.0, 4.0)}.items():
        np.testing.assert_allclose(lines[place][:2], (low, high))
    assert len({height for _, _, height in lines}) == 9
    dots = [tuple(place) for dots in axes[0].collections for place in dots.get_offsets()]
    np.testing.assert_allclose(dots, [(at, height) for at, (_, _, height) in zip([0, 1, 2] * 3, lines, strict=True)], atol=1e-12)
    legend = axes[0].figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == list(trees)
    assert [(line.get_color(), line.get_linestyle()) for line in legend.get_lines()] == [
        (line.get_color(), line.get_linestyle()) for line in axes[0].lines
    ]
    axes[0].figure.canvas.draw()


def test_a_tree_without_a_variable_is_left_out_of_its_picture():
    fewer = xr.DataTree.from_dict({"posterior": tree()["posterior"].to_dataset()[["rate"]]})
    axes = axes_of(pmdp.plot_posteriors({"private": tree(), "other": fewer}))
    assert [len(ends_of(ax)) for ax in axes] == [6, 1]


def test_variables_of_any_name_and_shape_are_drawn():
    odd = {name: (("chain", "draw"), np.linspace(0, 1, 201)[None]) for name in ("model", "x", "plot_axis", "kwarg", "figure", "plot")}
    picture = pmdp.plot_posteriors({"private": tree(**odd)})
    assert [ax.get_xlabel() for ax in axes_of(picture)] == ["rate", "scale", *odd]
    assert len(axes_of(pmdp.plot_privacy_share(tree(**odd), tree(**odd)))) == 8


@pytest.mark.parametrize("backend", ["none", "plotly", "bokeh"])
def test_backends_of_arviz_draw_the_same(backend, tmp_path):
    """Three lines and three sets of dots in each of two plots."""
    if backend != "none":
        pytest.importorskip(backend)
    trees = {"private": tree(2.0), "no privacy": tree(1.0), "prior": tree(5.0, "prior")}
    picture = pmdp.plot_posteriors(trees, backend=backend)
    assert picture.backend == backend
    assert [picture.viz[kind][name].size for kind in ("interval", "median") for name in ("rate", "scale")] == [3] * 4
    shares = pmdp.plot_privacy_share(trees["private"], trees["no privacy"], backend=backend)
    assert list(shares.viz["plot"].data_vars) == ["rate", "scale"]
    if backend != "none":
        for one in (picture, shares):
            one.savefig(tmp_path / "drawn.html")
            assert "rate" in (tmp_path / "drawn.html").read_text()


def test_looks_differ_without_colour():
    assert len({marker for _, marker, _ in LOOKS}) == len(LOOKS)
    grey = [matplotlib.colors.rgb_to_hsv(matplotlib.colors.to_rgb(colour))[2] for colour, _, _ in LOOKS]
    assert len({(round(value, 1), line) for value, (_, _, line) in zip(grey, LOOKS, strict=True)}) == len(LOOKS)


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_what_is_drawn_stands_out_in_a_dark_style_too(style, tmp_path, model):
    """No line, marker or text is nearly as dark as what it is drawn on, or as light."""
    import matplotlib.pyplot as plt

    ledger = pmdp.Ledger(tmp_path / "a.ledger", epsilon=1, create=True)
    pmdp.release(model, epsilon=0.3, ledger=ledger, missing={})
    with plt.style.context(style):
        pictures = [
            axes_of(pmdp.plot_posteriors({"private": tree(), "prior": tree(3.0, "prior")}))[0], pmdp.plot_ledger(ledger)[0],
            pmdp.plot_spending(ledger), pmdp.plot_plan(planned())[0, 0],
        ]  # fmt: skip
        for ax in pictures:
            drawn = [line.get_color() for line in ax.lines] + [text.get_color() for text in ax.texts]
            drawn += [colour for lines in ax.collections for colour in lines.get_edgecolor()]
            assert drawn
            assert min(abs(grey_of(colour) - grey_of(ax.get_facecolor())) for colour in drawn) > 0.25


def grey_of(colour):
    return float(np.dot(matplotlib.colors.to_rgb(colour), (0.299, 0.587, 0.114)))


def planned():
    """Two simulations at two epsilons, between which widths differ much at the first."""
    widths = np.tile(np.array([[1.0, 5.0], [1.0, 2.0]]), (2, 1, 1, 1))
    private = xr.Dataset(
        {"wait": (("measure", "mechanism", "epsilon", "simulation"), widths)}, {"mechanism": ["laplace"], "epsilon": [0.1, 1.0]}
    )
    without = xr.Dataset({"wait": (("measure", "simulation"), np.ones((2, 2)))})
    return pmdp.PlannedWidths(private, without, xr.Dataset(), {"wait": 10}, "one row", "replace", ())


def test_error_bars_of_a_plan_are_within_the_picture():
    """At 3, of a standard error of 2."""
    ax = pmdp.plot_plan(planned())[0, 0]
    highest = max(bar[:, 1].max() for bars in ax.collections for bar in bars.get_segments())
    assert highest == pytest.approx(3 + 2 * 2)
    assert ax.get_ylim()[1] >= highest


def test_the_share_of_privacy_is_that_of_the_variance():
    """Twice as wide is three quarters of the variance."""
    (ax,) = axes_of(pmdp.plot_privacy_share(tree(2.0), tree(1.0), ["rate"]))
    bars = [bar.get_paths()[0].get_extents() for bar in ax.collections]
    np.testing.assert_allclose([(bar.x0, bar.x1) for bar in bars], [(0, 1.8)] * 3 + [(1.8, 3.6)] * 3)
    np.testing.assert_allclose([(bar.y0, bar.y1) for bar in bars], [(row - 0.3, row + 0.3) for row in (0, 1, 2)] * 2)
    assert [text.get_text() for text in ax.texts] == [" 75%"] * 3
    light, dark = (grey_of(colour) for colour in PARTS.values())
    assert light - dark > 0.25
    (narrower,) = axes_of(pmdp.plot_privacy_share(tree(1.0), tree(2.0), "scale"))
    assert [text.get_text() for text in narrower.texts] == [" 0%"]


@pytest.mark.parametrize("other", [None, {"part": 1}])
def test_spending_rises_to_what_was_spent(tmp_path, model, other):
    parts = ["north", "south"] if other else ()
    ledger = pmdp.Ledger(tmp_path / "a.ledger", epsilon=1, create=True, parts=parts)
    pmdp.release(model, epsilon=0.3, ledger=ledger, missing={})
    pmdp.release(model, epsilon=0.2, ledger=ledger.part("north") if other else ledger, missing={})
    ledger.grant(epsilon=2)
    ax = pmdp.plot_spending(ledger)
    ends = {line.get_label(): line.get_ydata()[-1] for line in ax.lines if not line.get_label().startswith("_")}
    assert ends == pytest.approx(
        {"all of it": 0.3, "north": 0.5, "south": 0.3, "granted": 2.0} if other else {"all of it": 0.5, "granted": 2.0}
    )
    assert list(ax.lines[-1].get_ydata()) == [1.0, 2.0, 2.0]
    assert {text.get_text() for text in ax.texts} == {"vote"}
    ax.figure.canvas.draw()


def test_charges_of_one_minute_have_one_name_and_a_point_each(tmp_path, model, monkeypatch):
    ledger, seconds = pmdp.Ledger(tmp_path / "a.ledger", epsilon=1, create=True), iter([600, 600, 604, 604, 1200, 1200])
    now, gmtime = time.time(), time.gmtime
    monkeypatch.setattr(journal.time, "gmtime", lambda: gmtime(now + next(seconds)))  # of each charge, and of its redemption
    for _ in range(3):
        pmdp.release(model, epsilon=0.1, ledger=ledger, missing={})
    ax = pmdp.plot_spending(ledger)
    assert [text.get_text() for text in ax.texts] == ["vote", "vote"]
    assert len(ax.lines[1].get_xdata()) == 3


def test_no_name_of_a_charge_stands_over_another_or_is_cut(tmp_path, monkeypatch):
    """Ten charges of different names, a minute apart, the longest of which is longer than a picture has room for."""
    ledger, clock = pmdp.Ledger(tmp_path / "a.ledger", epsilon=9, create=True), iter(range(0, 10_000, 30))
    now, gmtime = time.time(), time.gmtime
    monkeypatch.setattr(journal.time, "gmtime", lambda: gmtime(now + next(clock)))
    for k in range(10):
        with pm.Model() as model:
            pm.Bernoulli(f"answer_to_question_{'x' * 3 * k}", pm.Beta("p", 1, 1), observed=[0, 1])
        pmdp.release(model, epsilon=0.1, ledger=ledger, missing={})
    ax = pmdp.plot_spending(ledger)
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) >= 8
    assert not any(one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[:k])
    assert max(box.x1 for box in boxes) <= ax.figure.bbox.x1
    assert {text.get_text()[:10] for text in ax.texts} == {"answer_to_"}


@pytest.mark.parametrize("many", [1, 3])
def test_titles_and_legends_are_within_the_picture(many):
    names = ["rate", "scale", "more"][:many]
    trees = (
        tree(2.0, more=(("chain", "draw"), np.linspace(0, 1, 201)[None])),
        tree(1.0, more=(("chain", "draw"), np.linspace(0, 1, 201)[None])),
    )
    pictures = pmdp.plot_privacy_share(*trees, names), pmdp.plot_posteriors({"private": trees[0]}, names)
    drawn = [axes_of(picture)[0] for picture in pictures]
    for ax in [*drawn, pmdp.plot_plan(planned())[0, 0]]:
        ax.figure.canvas.draw()
        shown = [ax.figure._suptitle, *ax.figure.legends]
        assert all(part.get_window_extent().x0 >= 0 and part.get_window_extent().x1 <= ax.figure.bbox.x1 for part in shown)


def test_spending_in_rho_where_something_is_not_pure(tmp_path, model):
    ledger = pmdp.Ledger(tmp_path / "a.ledger", epsilon=1, delta=1e-6, create=True)
    pmdp.release(model, epsilon=0.5, delta=1e-7, mechanism="gaussian", ledger=ledger, missing={})
    ax = pmdp.plot_spending(ledger)
    assert "rho" in ax.get_ylabel()
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(ledger.entries()["rho"].iloc[-1])


def test_an_empty_ledger_is_drawn(tmp_path):
    ledger = pmdp.Ledger(tmp_path / "a.ledger", epsilon=1, create=True)
    pmdp.plot_spending(ledger).figure.canvas.draw()


def test_a_network_has_parents_above_children_and_is_darker_where_noise_is_larger(network):
    release = pmdp.release(network, epsilon=0.5, missing={})
    ax = pmdp.plot_network(release)
    boxes = {text.get_text().split("\n")[0]: text for text in ax.texts if text.get_text()}
    assert set(boxes) == {"ill", "test", "leave"}
    assert boxes["ill"].get_position()[1] > boxes["test"].get_position()[1] > boxes["leave"].get_position()[1]
    assert sum(text.arrow_patch is not None for text in ax.texts if hasattr(text, "arrow_patch")) == 3
    spread = release["leave"].noise.standard_deviation
    assert f"8 counts\nnoise sd {spread:.3g}" in boxes["leave"].get_text()
    grey = {name: text.get_bbox_patch().get_facecolor()[0] for name, text in boxes.items()}
    assert grey["ill"] > grey["leave"]
    ax.figure.canvas.draw()


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["laplace", "fourier", pmdp.Laplace(share_counts=True)], ids=str)
def test_the_noise_in_the_boxes_is_that_of_the_counts(network, mechanism):
    """60 releases of 8 counts: their standard deviation is off by 40 % with a probability below 1e-6, and a factor of 2 is found."""
    drawn = [pmdp.release(network, epsilon=0.5, mechanism=mechanism, missing={}) for _ in range(60)]
    measured = np.std([release.table("leave") for release in drawn], axis=0)
    texts = [text.get_text() for text in pmdp.plot_network(drawn[0]).texts]
    said = next(float(re.findall(r"sd (\S+) ", words)[0]) for words in texts if words.startswith("leave"))
    assert 0.6 < np.sqrt(np.mean(measured**2)) / said < 1.4


def test_states_are_drawn_as_their_probabilities():
    states = np.zeros((2, 4, 3, 5), dtype=int)
    states[1, :, 0, 2] = 1
    states[:, :, 1, 4] = 1
    drawn = xr.DataTree.from_dict({"posterior": xr.Dataset({"states": (("chain", "draw", "sequence", "step"), states)})})
    axes = pmdp.plot_states(drawn)
    first, second = (ax.images[0].get_array() for ax in axes)
    assert (second[0, 2], second[1, 4], second.sum()) == (0.5, 1.0, 1.5)
    np.testing.assert_allclose(first + second, 1)
    assert (axes[-1].get_xlabel(), axes[0].get_ylabel()) == ("step", "sequence")


BIG = ("chain", "draw", "k"), np.zeros((1, 201, 41))
WRONG = {
    "no trees": (lambda: pmdp.plot_posteriors({}), "There must be a tree"),
    "a tree alone": (lambda: pmdp.plot_posteriors(tree()), 'by name, in a dict.*plot_posteriors\\({"private": idata'),
    "a probability": (lambda: pmdp.plot_posteriors({"a": tree()}, probability=90), "between 0 and 1"),
    "an unknown variable": (lambda: pmdp.plot_posteriors({"a": tree()}, ["mu"]), "no 'mu'.*'rate', 'scale'"),
    "a backend": (lambda: pmdp.plot_posteriors({"a": tree()}, backend="ggplot"), "one of 'matplotlib', 'plotly', 'bokeh'"),
    "no variables": (lambda: pmdp.plot_posteriors({"a": tree()}, []), "Between 1 and 40 variables"),
    "many entries": (lambda: pmdp.plot_posteriors({"a": tree(big=BIG)}, ["big"]), "more than 40"),
    "no draws": (lambda: pmdp.plot_posteriors({"a": xr.DataTree()}), "a group posterior or prior"),
    "another's variables": (lambda: pmdp.plot_privacy_share(tree(more=(("chain", "draw"), np.zeros((1, 201)))), tree()), "has no more"),
    "no states": (lambda: pmdp.plot_states(tree()), "hidden_markov"),
    "a model": (lambda: pmdp.plot_network(pm.Model()), r"plot_network\(pymc_dp\.release"),
    "a path": (lambda: pmdp.plot_spending("a.ledger"), r"plot_spending\(pymc_dp\.Ledger"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_drawn_is_answered_by_what_to_write(wrong):
    draw, words = WRONG[wrong]
    with pytest.raises(pmdp.Refusal, match=words):
        draw()


def test_what_is_no_network_is_said(model):
    with pytest.raises(pmdp.Refusal, match="no Bayesian network"):
        pmdp.plot_network(pmdp.release(model, epsilon=1.0, missing={}))


def test_without_matplotlib_the_refusal_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(pmdp.Refusal, match="pip install matplotlib"):
        pmdp.plot_posteriors({"a": tree()})


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        pm.Bernoulli("vote", pm.Beta("share", 1, 1), observed=np.repeat([0, 1], 100))
    return model


@pytest.fixture(scope="module")
def network():
    rng = np.random.default_rng(1)
    ill, test, leave = rng.integers(0, 2, (3, 400))
    with pm.Model() as network:
        i = pm.Bernoulli("ill", pm.Beta("a", 1, 1), observed=ill)
        t = pm.Bernoulli("test", pm.Beta("b", 1, 1, shape=2)[i], observed=test)
        pm.Bernoulli("leave", pm.Beta("c", 1, 1, shape=(2, 2))[i, t], observed=leave)
    return network
