"""Regressions with a link of records beside the model (``data=``), which are looked at again in every round."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from checks import refused, seam_of

import pymc_dp as pmdp
from pymc_dp.releases import rounds, source

pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(2)
N = 400
FRAME = pd.DataFrame({"x": RNG.normal(0, 1, N), "z": RNG.uniform(-2, 2, N), "site": RNG.integers(0, 2, N), "who": np.arange(N) // 3})
FRAME["ill"] = RNG.binomial(1, 1 / (1 + np.exp(0.5 - FRAME["x"])))
FRAME["visits"] = RNG.poisson(np.exp(0.4 * FRAME["z"]))
PLACEHOLDERS = FRAME[:2] * 0
BOUNDS = {"x": (-3, 3), "z": (-2, 2), "logit(ill)": (-4, 4), "log(visits)": (-2, 2), "visits": (0, 10)}


def model(frame, **more):
    """Illness by a covariate at two sites, and visits by another covariate."""
    with pm.Model(coords={"visit": np.arange(len(frame))}) as built:
        for name, values in more.items():
            pm.Data(name, values, dims="visit")
        x, z, site = (pm.Data(name, frame[name].to_numpy(), dims="visit") for name in ("x", "z", "site"))
        pm.Bernoulli("ill", logit_p=pm.Normal("a", shape=2)[site] + pm.Normal("b") * x, observed=frame["ill"].to_numpy(), dims="visit")
        pm.Poisson("visits", pm.math.exp(pm.Normal("c") + pm.Normal("d") * z), observed=frame["visits"].to_numpy(), dims="visit")
    return built


def said(frame, **more):
    """All that a release says where the noise is nothing, and so its exact sums."""
    keyed = {"who": frame["who"].to_numpy()} if "unit" in more and "data" not in more else {}
    with seam_of(0):
        released = pmdp.release(model(frame, **keyed), **{"epsilon": 20, "bounds": BOUNDS, "missing": {}} | more)
    return [(statistic.facts(), *(array.tolist() for array in statistic.arrays)) for statistic in released.statistics]


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_regressions_are_those_of_the_model_that_observes_the_records(tmp_path, monkeypatch, neighbours, mechanism):
    more = {"neighbours": neighbours, "mechanism": mechanism, "delta": 1e-6 if mechanism == "gaussian" else 0}
    expected = said(FRAME, **more)
    FRAME.to_parquet(tmp_path / "records.parquet", row_group_size=61)
    monkeypatch.setattr(source, "NUMBERS_AT_ONCE", 100)
    for data in (FRAME, FRAME.sample(frac=1, random_state=1), tmp_path / "records.parquet"):
        assert said(PLACEHOLDERS, data=data, **more) == expected


def test_rows_of_a_person_that_count_are_the_same_in_every_round():
    person = {"unit": pmdp.Person("who", at_most=2), "neighbours": "add_remove"}
    assert said(PLACEHOLDERS, data=FRAME, **person) == said(FRAME, **person) != said(FRAME, neighbours="add_remove")


@pytest.mark.parametrize(("way", "more"), [("twice", 2), ("there", 1), ("here", 1)])
def test_every_round_is_paid_for_and_looks_once(way, more, tmp_path, monkeypatch):
    """All variables are summed in the first pass; of two regressions the log-linear one looks twice more."""
    looks, read = [], source.Source.blocks
    monkeypatch.setattr(rounds, "best_way", lambda *_: way)
    monkeypatch.setattr(source.Source, "blocks", lambda self: looks.append(ledger.remaining().epsilon) or read(self))
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=1, create=True)
    pmdp.release(model(PLACEHOLDERS), epsilon=1, bounds=BOUNDS, missing={}, data=FRAME, ledger=ledger)
    assert looks == [0] * (1 + 2 + more)


def test_noise_is_added_to_what_every_round_reads(monkeypatch):
    """What a round hands on is what was released of the one before: anchors rest on noisy numbers alone.

    Noise of two rounds that is the same in all of the numbers of a round has a probability far below one in a million.
    """
    seen, anchors = [], []

    def watched(scores, score, information, noise, anchor, bent=0.0):
        seen.append(np.concatenate([np.ravel(score), np.ravel(information)]))
        return following(scores, score, information, noise, anchor, bent)

    following = rounds.next_anchor
    monkeypatch.setattr(rounds, "next_anchor", watched)
    monkeypatch.setattr(rounds, "best_way", lambda *_: "twice")
    for _ in range(2):
        released = pmdp.release(model(PLACEHOLDERS), epsilon=1, bounds=BOUNDS, missing={}, data=FRAME)
        anchors.append(released["ill"].anchor)
    assert all(not np.array_equal(first, second) for first, second in zip(seen[: len(seen) // 2], seen[len(seen) // 2 :], strict=True))
    assert not np.array_equal(*anchors)
    assert all((anchor[..., 1:] != 0).all() for anchor in anchors)


def test_parts_that_are_seen_once_are_refused():
    words = refused(pmdp.share_out, model(PLACEHOLDERS), parts=2, records=N, epsilon=1, bounds=BOUNDS)
    assert "looks at the records several times" in words


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_a_table_that_has_other_rows_in_a_later_round_is_released_only_where_their_number_is_private(tmp_path, monkeypatch, neighbours):
    """Of a number of records that is no longer theirs, sums would have another law. One more or fewer is known where it is public."""
    passes, read, path = [], source.Source.blocks, tmp_path / "records.parquet"

    def changed(self):
        passes.append(None)
        FRAME[: N - 1 if len(passes) == 4 else N].to_parquet(path)
        return read(self)

    FRAME.to_parquet(path)
    release = lambda: pmdp.release(model(PLACEHOLDERS), epsilon=1, bounds=BOUNDS, missing={}, data=path, neighbours=neighbours)  # noqa: E731
    expected = release()
    monkeypatch.setattr(source.Source, "blocks", changed)
    if neighbours == "add_remove":
        assert release()["ill"].statistics == expected["ill"].statistics
    else:
        with pytest.raises(pmdp.PrivateComputationError):
            release()
        assert len(passes) == 4
