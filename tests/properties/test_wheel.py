"""The wheel, installed where nothing else is, does what the README says."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PICTURE = """
import pymc_dp as pmdp
import xarray as xr

tree = xr.open_datatree("idata.nc").load()
pmdp.plot_posteriors({"private": tree}, ["rate"])[0].figure.savefig("first.png")
"""


def run(*words, cwd, **more):
    """A command that must succeed; what it printed. Nothing of this process's paths is handed on."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "PYTENSOR", "COVERAGE"))}
    done = subprocess.run([*map(str, words)], cwd=cwd, env=kept, capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    uv = shutil.which("uv")
    if uv is None or subprocess.run([uv, "--version"], capture_output=True).returncode:
        pytest.skip("with uv: pip install uv")
    folder = tmp_path_factory.mktemp("wheel")
    kept = folder / "source"
    kept.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, kept)
    shutil.copytree(ROOT / "pymc_dp", kept / "pymc_dp", ignore=shutil.ignore_patterns("__pycache__"))
    run(uv, "build", "--wheel", "--out-dir", folder / "dist", kept, cwd=folder)
    (built,) = (folder / "dist").glob("*.whl")
    return uv, built, folder


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel[1]).namelist()
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "pymc_dp").rglob("*.py")}
    assert modules <= set(names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"pymc_dp"}


@pytest.mark.slow
def test_the_readme_runs_from_the_wheel_to_a_picture(wheel):
    """In an environment of its own: only what the wheel asks for is installed, so a missing dependency is found. Matplotlib comes later."""
    uv, built, folder = wheel
    python = folder / "clean" / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(uv, "venv", "--python", sys.executable, folder / "clean", cwd=folder)
    run(uv, "pip", "install", "--python", python, built, cwd=folder)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    assert "pm.Model" in blocks[0]
    script = folder / "first.py"
    script.write_text("\n".join([*blocks[:3], 'idata.to_netcdf("idata.nc")', "print(pmdp.__file__, pmdp.__version__)"]))
    printed = run(python, script, cwd=folder, timeout=600)
    assert str(folder / "clean") in printed
    assert "returned  Bernoulli" in printed
    assert "rate[A]" in printed
    run(uv, "pip", "install", "--python", python, "matplotlib", cwd=folder)
    script.write_text(PICTURE)
    run(python, script, cwd=folder, timeout=600)
    assert (folder / "first.png").stat().st_size > 5_000
