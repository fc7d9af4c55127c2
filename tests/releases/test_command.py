"""``python -m pymc_dp release``: made where the records are, carried away as a file, analysed with the model alone."""

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_dp as pmdp
from pymc_dp import __main__ as command
from pymc_dp.plans.missing import warn_of_missing

parquet = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.filterwarnings("ignore")
ROOT = Path(__file__).parents[2]
MODEL = """
import numpy as np
import pymc as pm

with pm.Model(coords={"site": ["north", "south", "west"]}) as model:
    share = pm.Beta("share", 1, 1, dims="site")
    pm.Bernoulli("ill", share[pm.Data("site_of", np.zeros(2, dtype=int))], observed=np.zeros(2, dtype=int))

release = dict(neighbours="replace", unit="patient", missing={})

if __name__ == "__main__":
    raise SystemExit("an analysis that does not belong here")
"""
ELSEWHERE = """
import pymc as pm
import pymc_dp as pmdp
from model import model

released = pmdp.Release.from_netcdf("r.nc")
private = pmdp.rewrite(model, released)
idata = pmdp.annotate(pm.sample(200, tune=200, chains=1, model=private, random_seed=1, progressbar=False), released)
print(idata.posterior["share"].mean(("chain", "draw")).values.tolist(), idata.attrs["epsilon"])
"""
SHARES = [0.2, 0.5, 0.8]
CANARY = "Zwingli"


def bare(*arguments, folder):
    """A new process that knows nothing but where the package is."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The machine that has the records: a model, a table and a ledger."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "model.py").write_text(MODEL)
    site = np.repeat([0, 1, 2], 1000)
    ill = np.concatenate([np.repeat([1, 0], [int(1000 * share), 1000 - int(1000 * share)]) for share in SHARES])
    pd.DataFrame({"site_of": site, "ill": ill, "name": CANARY}).to_parquet(tmp_path / "records.parquet")
    pmdp.Ledger(tmp_path / "clinic.ledger", epsilon=2, unit="patient", create=True)
    return tmp_path


def words(model="model.py", data="records.parquet", ledger="clinic.ledger", out="r.nc", **more):
    """The arguments of the command."""
    named = {"data": data, "ledger": ledger, "out": out, "epsilon": "1"} | more
    return ["release", model, *(word for name, value in named.items() if value is not None for word in (f"--{name}", value))]


def left(folder):
    return pmdp.Ledger(folder / "clinic.ledger").remaining().epsilon


def test_a_release_is_made_by_a_bare_process_and_read_elsewhere(folder):
    """The counts are off by Laplace noise of scale 2 at most: 60 has probability 1e-12 of one count."""
    done = bare("-m", "pymc_dp", *words(), folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert 'protects one row, which you say is one "patient" (replace)' in " ".join(done.stdout.split())
    assert "Written to r.nc. Left in clinic.ledger: Cost(epsilon=1, delta=0)" in done.stdout
    released = pmdp.Release.from_netcdf(folder / "r.nc")
    assert pmdp.Ledger(folder / "clinic.ledger").paid_for(released.ledger_head) == ""
    (folder / "records.parquet").unlink()
    model = runpy.run_path(str(folder / "model.py"), run_name="elsewhere")["model"]
    assert pmdp.rewrite(model, released).privacy == released
    expected = [[1000 - 1000 * share, 1000 * share] for share in SHARES]
    assert np.abs(released["ill"].values.reshape(3, -1)[:, -1] - np.array(expected)[:, 1]).max() <= 60
    assert CANARY.encode() not in (folder / "r.nc").read_bytes()


@pytest.mark.slow
def test_what_was_carried_away_is_sampled_without_records(folder):
    """Of 1,000 rows a share has a posterior of standard deviation .016 at most: .1 is six of them."""
    assert bare("-m", "pymc_dp", *words(), folder=folder).returncode == 0
    for name in ("records.parquet", "clinic.ledger"):
        (folder / name).unlink()
    done = bare("-c", ELSEWHERE, folder=folder)
    assert done.returncode == 0, done.stderr
    means, epsilon = done.stdout.strip().splitlines()[-1].rsplit(" ", 1)
    assert float(epsilon) == 1
    assert np.abs(np.array(eval(means)) - SHARES).max() < 0.1


READS = f'import pandas as pd\nraise ValueError(pd.read_parquet("records.parquet")["name"][0])\nx = {CANARY!r}'
REFUSED = {
    "no file": ({"model": "none.py"}, None, "There is no file of this model"),
    "no model": ({}, "release = {}", "model.py has no model"),
    "no mapping": ({}, MODEL.replace("dict(", "list(").replace('neighbours="replace", unit="patient", missing={}', ""), "by name"),
    "another argument": ({}, MODEL.replace("missing={}", "ledger=None"), "cannot hold 'ledger'"),
    "said twice": ({}, MODEL.replace("missing={}", "missing={}, epsilon=1"), "epsilon is said twice"),
    "not said": ({"epsilon": None}, None, "--epsilon 1"),
    "no number": ({"epsilon": "much"}, None, "no decimal number"),
    "no cost": ({"epsilon": "-1"}, None, "epsilon"),
    "too much": ({"epsilon": "2.0000001"}, None, "left"),
    "no ledger": ({"ledger": "none.ledger"}, None, "none.ledger"),
    "no records": ({"data": "none.parquet"}, None, "There is no file at this path"),
    "written over": ({"out": "records.parquet"}, None, "records.parquet is there already"),
    "no folder": ({"out": "none/r.nc"}, None, "cannot be made"),
    "another unit": ({}, MODEL.replace("patient", "visit"), "clinic.ledger"),
    "another column": ({}, MODEL.replace('"ill"', '"dead"'), "no column called dead"),
    "no Python": ({}, "with pm.Model(", "model.py failed with SyntaxError in line 1"),
    "reads records": ({}, READS, "model.py failed with ValueError in line 2"),
    "ends itself": ({}, f"import sys\nsys.exit({CANARY!r})", "model.py failed with SystemExit in line 2"),
    "another kind of error": ({}, MODEL.replace("missing={}", "bounds=5"), ""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_are_one_line_and_cost_nothing(folder, monkeypatch, capfd, case):
    changed, text, said = REFUSED[case]
    if text is not None:
        (folder / "model.py").write_text(text)
    before = (folder / "records.parquet").read_bytes()
    monkeypatch.setattr(sys, "argv", ["pymc_dp", *words(**changed)])
    assert command.main() == 1
    out, error = capfd.readouterr()
    assert out == ""
    assert error.count("\n") == 1
    assert said in error
    assert CANARY not in error
    assert "Traceback" not in error
    assert not (folder / "r.nc").exists()
    assert (folder / "records.parquet").read_bytes() == before
    assert left(folder) == 2


def test_a_pattern_without_quotation_marks_is_told_to_have_some(folder, monkeypatch, capfd):
    """The shell has written the names of all files in its place."""
    monkeypatch.setattr(sys, "argv", ["pymc_dp", *words(), "2.parquet", "3.parquet"])
    with pytest.raises(SystemExit) as end:
        command.main()
    assert end.value.code == 2
    assert "unrecognized arguments: 2.parquet 3.parquet. --data takes one path or pattern" in capfd.readouterr().err
    assert left(folder) == 2
    monkeypatch.setattr(sys, "argv", ["pymc_dp", *words(data="rec*.parquet")])
    assert command.main() == 0


def test_a_failure_over_records_says_nothing_of_them_and_stays_charged(folder, monkeypatch, capfd):
    """A file whose pages are damaged behind a footer that is whole."""
    whole = bytearray((folder / "records.parquet").read_bytes())
    column = parquet.read_metadata(folder / "records.parquet").row_group(0).column(1)
    start, size = column.dictionary_page_offset, column.total_compressed_size
    whole[start : start + size] = bytes(size)
    (folder / "records.parquet").write_bytes(whole)
    monkeypatch.setattr(sys, "argv", ["pymc_dp", *words()])
    assert command.main() == 3
    _, error = capfd.readouterr()
    assert error.count("\n") == 1
    assert error.startswith("The private computation failed inside the library.")
    assert left(folder) == 1
    assert command.main() == 1  # as a scheduler does that tries everything again: nobody pays twice unasked
    _, error = capfd.readouterr()
    assert error.startswith("r.nc is there already and empty")
    assert (folder / "r.nc").read_bytes() == b""
    assert left(folder) == 1


def test_what_another_process_charges_meanwhile_is_said_to_be_unclear(folder, monkeypatch, capfd):
    """Between the look at the ledger and the charge another process spends the rest: this one is refused, and has paid nothing."""
    charged = pmdp.Ledger.charge

    def late(ledger, *arguments, **more):
        monkeypatch.setattr(pmdp.Ledger, "charge", charged)
        with pm.Model() as other:
            pm.Bernoulli("other", pm.Beta("p", 1, 1), observed=np.array([0, 1, 1]))
        pmdp.release(other, epsilon=1.5, unit="patient", missing={}, ledger=pmdp.Ledger(folder / "clinic.ledger"))
        return charged(ledger, *arguments, **more)

    monkeypatch.setattr(pmdp.Ledger, "charge", late)
    monkeypatch.setattr(sys, "argv", ["pymc_dp", *words()])
    assert command.main() == 3  # something was charged meanwhile, and it is not known by whom
    assert "0.5 is left in clinic.ledger" in capfd.readouterr().err
    assert left(folder) == 0.5
    (folder / "r.nc").unlink(missing_ok=True)
    assert command.main() == 1
    assert not (folder / "r.nc").exists()


def test_a_line_of_json_says_what_was_promised(folder, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["pymc_dp", *words(epsilon="0.1"), "--json"])
    assert command.main() == 0
    out, error = capfd.readouterr()
    assert (out.count("\n"), error) == (1, "")
    said, released = json.loads(out), pmdp.Release.from_netcdf("r.nc")
    assert (said["epsilon"], said["epsilon_exact"], said["delta"], said["promise"]) == (0.1, "1/10", 0.0, "certified")
    assert (said["privacy_unit"], said["neighbours"], said["mechanism"]) == ("patient", "replace", "laplace")
    assert said["protects"] == 'one row, which you say is one "patient"'
    assert (said["release"], said["ledger"], said["ledger_head"]) == ("r.nc", "clinic.ledger", released.ledger_head)
    assert (said["left"], said["versions"]) == ({"epsilon": 1.9, "delta": 0.0, "rho": None}, released.versions)
    monkeypatch.setattr(sys, "argv", ["pymc_dp", "ledger", "clinic.ledger", "--json"])
    assert command.main() == 0
    said = json.loads(capfd.readouterr().out)
    assert said["left"]["epsilon"] == 1.9
    assert said["ledger_head"] == released.ledger_head
    opened, charge = said["entries"]
    assert (opened["kind"], charge["kind"], charge["epsilon"], charge["redeemed"]) == ("open", "charge", 0.1, True)


def test_the_command_says_its_version(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["pymc_dp", "--version"])
    with pytest.raises(SystemExit, match="0"):
        command.main()
    assert capsys.readouterr().out == f"pymc_dp {pmdp.__version__}\n"


def test_what_the_file_says_need_not_be_said_again_and_warnings_are_one_line(folder, monkeypatch, capfd):
    (folder / "model.py").write_text(MODEL.replace(", missing={}", ', epsilon=0.5, delta=0, mechanism="laplace"'))
    monkeypatch.setattr(sys, "argv", ["pymc_dp", *words(epsilon=None)])
    warn_of_missing.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert command.main() == 0
    _, error = capfd.readouterr()
    assert [line.partition(":")[0] for line in error.splitlines()] == ["MissingWarning"]
    assert pmdp.Release.from_netcdf("r.nc").epsilon == 0.5


@pytest.mark.slow
def test_the_steps_of_the_page_lead_from_records_to_a_posterior(folder):
    """Its blocks in order: the file of the model, the ledger, the command, and the analysis elsewhere, each in a process of its own."""
    page = (ROOT / "docs" / "where_data_stay.md").read_text()
    file, ledger, analysis = re.findall(r"^```python\n(.*?)^```", page, flags=re.M | re.S)
    assert MODEL.partition("\nif ")[0].strip() == file.strip()
    [line] = re.findall(r"^```\npython (-m pymc_dp release .*)\n```", page, flags=re.M)
    there = folder / "clinic"
    there.mkdir()
    (folder / "records.parquet").rename(there / "records.parquet")
    (there / "model.py").write_text(file)
    for step in (["-c", ledger], shlex.split(line), ["-c", f'{analysis}\nprint(*idata.posterior["share"].mean(("chain", "draw")).values)']):
        done = bare(*step, folder=there)
        assert done.returncode == 0, done.stderr
    assert left(there) == 1
    np.testing.assert_allclose(np.array(done.stdout.split()[-3:], dtype=float), SHARES, atol=0.06)
