"""The bar of rows that are read: for the terminal of whoever holds them, and no part of a release."""

import io
import re
import sys

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from checks import refused, seam_of

import pymc_dp as pmdp
from pymc_dp.releases import progress, source

pytestmark = pytest.mark.filterwarnings("ignore")
N = 60


class Terminal(io.StringIO):
    """What is written to a terminal, or to a file."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


class Broken(Terminal):
    def write(self, text):
        raise BrokenPipeError


def released(monkeypatch, written, values, neighbours="replace", **more):
    with pm.Model() as votes:
        pm.Bernoulli("vote", pm.Beta("share", 1, 1), observed=np.zeros(2, dtype=int))
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(progress, "SECONDS", -1)
    monkeypatch.setattr(source, "NUMBERS_AT_ONCE", 14)
    for name, value in {"TERM": "xterm", "COLUMNS": "100"}.items():
        monkeypatch.setenv(name, value)
    with seam_of(0):
        return pmdp.release(votes, epsilon=1, data=pd.DataFrame({"vote": values}), neighbours=neighbours, progressbar=True, **more)


def text_of(monkeypatch, terminal, values, neighbours="replace"):
    """What a bar wrote, without how fast it was."""
    written = Terminal(terminal)
    assert released(monkeypatch, written, values, neighbours)["vote"].noisy.sum() in (N // 2, N)  # under add_remove zeros and ones
    return re.sub(r", [\d,]+ rows a second|\d+:\d+:\d+|-:--:--| +", " ", written.getvalue())


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_a_terminal_shows_how_many_rows_were_read_and_nothing_of_what_is_in_them(monkeypatch, neighbours):
    clean = [0, 1] * (N // 2)
    odd = pd.Series([*clean[:-2], "no", "1"], dtype=object)
    texts = [text_of(monkeypatch, True, values, neighbours) for values in (clean, clean[::-1], odd)]
    for rows in (7, 56, N):
        assert f" {rows} rows" in texts[0]
    lines = [set(re.findall(r"\d+ rows", text)) for text in texts]
    assert lines[0] == lines[1] == lines[2] == {f"{rows} rows" for rows in (0, *range(7, N, 7), N)}


def test_a_private_number_of_rows_is_written_into_no_file(monkeypatch):
    assert text_of(monkeypatch, False, [0, 1] * (N // 2), "add_remove") == ""


def test_a_bar_that_fails_loses_no_release(monkeypatch):
    assert released(monkeypatch, Broken(True), [0, 1] * (N // 2))["vote"].noisy.tolist() == [[N // 2]]


def test_without_a_bar_nothing_is_written(monkeypatch, capfd):
    with pm.Model() as votes:
        pm.Bernoulli("vote", pm.Beta("share", 1, 1), observed=np.zeros(2, dtype=int))
    monkeypatch.setattr(progress, "shown", lambda *_: pytest.fail("nobody asked for a bar"))
    pmdp.release(votes, epsilon=1, data=pd.DataFrame({"vote": [0, 1, 1]}))
    assert capfd.readouterr() == ("", "")


def test_what_is_no_bar_is_refused_before_anything_is_paid(tmp_path):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=1, create=True)
    with pm.Model() as votes:
        pm.Bernoulli("vote", pm.Beta("share", 1, 1), observed=np.array([0, 1, 1]))
    data = pd.DataFrame({"vote": [0, 1, 1]})
    assert "True or False" in refused(pmdp.release, votes, epsilon=1, data=data, progressbar=1, ledger=ledger)
    assert "rows of data=" in refused(pmdp.release, votes, epsilon=1, progressbar=True, ledger=ledger)
    assert ledger.remaining().epsilon == 1
