"""Plant one small mistake after another into a copy of the package, and see that the test named for it fails.

The unchanged copy must pass every named test. A mutant is killed by a failing test alone: not by a file that cannot be imported, nor by a
name that is not there. Nothing of the package is loaded before the copy: a server imports what the package and its tests are built on,
which takes longer than most of the tests, and forks a process for every mutant. In the copy this module is a plugin of pytest, which notes
how every test failed, and which package was imported.
"""

import argparse
import compileall
import importlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mutants import Mutant

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "mutants.md"
NOTES = "MUTANT_NOTES"
"""Names the file that the plugin writes to."""
PATIENCE = 600
"""Seconds after which a test counts as not failing."""
BROKEN = ("ImportError", "ModuleNotFoundError", "SyntaxError", "NameError", "UnboundLocalError")
"""Failures of the mutant itself, which kill nothing."""
BUILT_ON = (
    "arviz", "duckdb", "hypothesis", "hypothesis.strategies", "matplotlib", "numba", "nutpie", "pyarrow", "pymc", "pymc.dims",
    "pytensor.link.numba.dispatch", "pytest", "scipy.stats",
)  # fmt: skip
"""What the server imports before it forks. OpenDP and Polars start threads, which do not outlive a fork."""


@dataclass(frozen=True)
class Outcome:
    """What one run of pytest said: its exit code, the types and words of failures, whether the copy was imported, and seconds."""

    code: int
    failures: tuple[tuple[str, str], ...]
    imported: bool
    seconds: float
    output: str

    @property
    def passed(self) -> bool:
        """Whether all tests passed in the copy."""
        return self.code == 0 and self.imported

    @property
    def killed(self) -> bool:
        """Whether a test failed, by what it looked at, in the copy."""
        return self.code == 1 and self.imported and bool(self.failures) and not any(kind in BROKEN for kind, _ in self.failures)


# ---------- the plugin, inside the copy


def _note(**facts: object) -> None:
    if NOTES in os.environ:
        with open(os.environ[NOTES], "a") as file:
            file.write(json.dumps(facts) + "\n")


def pytest_exception_interact(call, report):
    """How a test failed, or a file that could not be collected."""
    _note(failed=call.excinfo.typename, words=str(call.excinfo.value).split("\n")[0][:200], when=getattr(report, "when", "collect"))


def pytest_sessionfinish():
    """Which package was tested."""
    _note(imported=str(getattr(sys.modules.get("pymc_dp"), "__file__", None)))


# ---------- the server, a process that has imported all but the package


def serve() -> None:
    """For every line of a folder and tests, run these tests in a process of their own, and answer with its exit code."""
    from environment import COMPILED

    for name in BUILT_ON:
        importlib.import_module(name)
    assert "pymc_dp" not in sys.modules
    compiled = Path(COMPILED)
    files = set(compiled.rglob("*"))
    for line in sys.stdin:
        job = json.loads(line)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside the thread of Arrow's memory, which is made for that
            child = os.fork()
        if child == 0:
            in_copy(Path(job["folder"]), job["tests"])
        status = os.waitpid(child, 0)[1]
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what the tests started and left behind
        for path in sorted(set(compiled.rglob("*")) - files, reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        print(os.waitstatus_to_exitcode(status), flush=True)


def path_of(test: str) -> str:
    """Where a test stands that is named by its file and function: below ``tests/``, in the folder of its subject."""
    file, _, rest = test.partition("::")
    [path] = Path("tests").rglob(file)
    return f"{path}::{rest}" if rest else str(path)


def in_copy(copy: Path, tests: list[str]) -> None:
    """Run tests in a copy, as ``python -m pytest`` would there, and end the process."""
    import numpy as np
    import pytest

    code = 1  # as of a Python that ends with an exception
    try:
        os.setsid()
        signal.alarm(PATIENCE * (1 + len(tests) // 50))  # all tests in the unchanged copy take longer than one
        with open(copy / "output", "w") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(copy)
        os.environ |= {"PYTHONPATH": f"{copy}{os.pathsep}{copy / 'tests'}", "TMPDIR": str(copy / "tmp"), NOTES: str(copy / "notes")}
        tempfile.tempdir = None
        sys.path[:] = [str(copy), str(copy / "tests"), *(path for path in sys.path if Path(path).resolve() != ROOT / "tests")]
        del sys.modules["environment"]
        np.random.seed()  # noqa: NPY002 - or all copies began with the same state
        options = [
            "-x",
            "-q",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            "-p",
            "planting",
            "-m",
            "",
            "-W",
            "ignore::pytest.PytestAssertRewriteWarning",
        ]
        code = pytest.main(options + [path_of(test) for test in tests])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


# ---------- the runs


@dataclass(frozen=True)
class Planter:
    """A server, and the unchanged copy that is copied for every mutant."""

    server: subprocess.Popen
    unchanged: Path


@contextmanager
def planters(number: int = 1) -> Iterator[list[Planter]]:
    """Servers that share one unchanged copy, compiled."""
    names = ("PYTEST", "PYTENSOR", "PYMC_DP", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    with tempfile.TemporaryDirectory(prefix="unchanged_") as folder, ExitStack() as stack:
        unchanged = Path(folder).resolve()
        for name in ("pymc_dp", "tests"):
            shutil.copytree(ROOT / name, unchanged / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", unchanged)
        (unchanged / "tmp").mkdir()
        compileall.compile_dir(unchanged, quiet=1)
        servers = []
        for _ in range(number):
            command, there = [sys.executable, str(unchanged / "tests" / "planting.py")], tempfile.mkdtemp(dir=folder)
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            servers.append(stack.enter_context(subprocess.Popen(command, env=environment | {"TMPDIR": there}, cwd=there, **pipes)))
        try:
            yield [Planter(server, unchanged) for server in servers]
        finally:
            for server in servers:
                server.stdin.close()


def run(planter: Planter, tests: list[str], mutant: "Mutant | None" = None) -> Outcome:
    """These tests in a fresh copy of package and tests, with the mistake planted if there is one."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="mutant_") as folder:
        copy = Path(folder).resolve()
        for name in ("pymc_dp", "tests", "tmp"):
            shutil.copytree(planter.unchanged / name, copy / name)
        shutil.copy(planter.unchanged / "pyproject.toml", copy)
        if mutant is not None:
            path = copy / "pymc_dp" / mutant.file
            text = path.read_text()
            assert text.count(mutant.old) == 1, mutant.name
            path.write_text(text.replace(mutant.old, mutant.new))
            for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
                compiled.unlink()
        planter.server.stdin.write(json.dumps({"folder": str(copy), "tests": tests}) + "\n")
        planter.server.stdin.flush()
        code = int(planter.server.stdout.readline())
        notes = [json.loads(line) for line in (copy / "notes").read_text().splitlines()] if (copy / "notes").exists() else []
        output = "it took too long" if code == -signal.SIGALRM else (copy / "output").read_text()
    imported = [note["imported"] for note in notes if "imported" in note]
    failures = tuple((note["failed"], note["words"]) for note in notes if "failed" in note)
    here = imported == [str(copy / "pymc_dp" / "__init__.py")]
    return Outcome(code, failures, here, time.perf_counter() - start, output)


def told(mutant: "Mutant", outcome: Outcome) -> str:
    """One line about one mutant."""
    how = ": ".join(outcome.failures[0]) if outcome.failures else outcome.output.strip()[-200:]
    return f"{'killed  ' if outcome.killed else 'SURVIVED'} {outcome.seconds:5.1f} s  {mutant.name}  [{mutant.killer}]  {how[:140]}"


def machine() -> str:
    """What the times were measured on."""
    info = Path("/proc/cpuinfo")
    models = (
        [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    )
    return f"{models[0] if models else platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def row_of(mutant: "Mutant") -> str:
    """What the page says of a mutant, but for how its run went."""
    return f"| {mutant.name} | `{mutant.file}` | {mutant.breaks} | `{mutant.killer}` | "


def page(mutants: "tuple[Mutant, ...]", outcomes: "list[tuple[Mutant, Outcome]]") -> str:
    """The table of all mutants: those that were run, and of the others what the page says already."""
    ran = {mutant.name: f"{outcome.seconds:.0f}" if outcome.killed else "survived" for mutant, outcome in outcomes}
    rows = []
    for mutant in mutants:
        kept = next((line for line in PAGE.read_text().splitlines() if line.startswith(row_of(mutant))), "")
        ending = ran.get(mutant.name) or kept.removeprefix(row_of(mutant)).removesuffix(" |")
        rows.append(f"{row_of(mutant)}{ending or 'not run'} |")
    seconds = [int(row.split(" | ")[-1].removesuffix(" |")) for row in rows if row.split(" | ")[-1].removesuffix(" |").isdigit()]
    tests = len({mutant.test for mutant in mutants})
    return "\n".join(
        [
            "# Planted mistakes",
            "",
            "Made by `python tests/mutants.py`, which plants each of these into a copy of the package and runs the test named beside it.",
            "A mistake is planted again when it, its test or the code around it changes, and all of them in the slow suite.",
            "",
            f"{len(seconds)} of {len(rows)} killed, by {tests} tests, in {sum(seconds) / 60:.0f} minutes of one process ({machine()}).",
            "Seconds hold the import of the copy, and not that of PyMC, which a server does once.",
            "",
            "| mistake | in | what would no longer hold | killed by | seconds |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def main(mutants: "tuple[Mutant, ...]") -> int:
    """Run the mutants asked for; 0 if all are killed and the unchanged copy passes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="only mutants whose names hold one of these, or in one of these files")
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    words = arguments.names
    chosen = [mutant for mutant in mutants if not words or any(word in mutant.name or word == mutant.file for word in words)]
    start = time.perf_counter()
    outcomes = []
    with planters(arguments.processes) as servers, ThreadPoolExecutor(arguments.processes) as threads:
        unchanged = run(servers[0], list(dict.fromkeys(mutant.killer for mutant in chosen)))
        print(f"unchanged: {'passed' if unchanged.passed else 'FAILED'} in {unchanged.seconds:.1f} s", flush=True)
        if not unchanged.passed:
            print(unchanged.output[-4000:])
            return 1
        free: Queue[Planter] = Queue()
        for server in servers:
            free.put(server)

        def planted(mutant: "Mutant") -> Outcome:
            server = free.get()
            try:
                return run(server, [mutant.killer], mutant)
            finally:
                free.put(server)

        for mutant, outcome in zip(chosen, threads.map(planted, chosen), strict=True):
            print(told(mutant, outcome), flush=True)
            outcomes.append((mutant, outcome))
    survivors = [mutant.name for mutant, outcome in outcomes if not outcome.killed]
    print(f"{len(outcomes) - len(survivors)} of {len(outcomes)} killed in {time.perf_counter() - start:.0f} s")
    PAGE.write_text(page(mutants, outcomes))
    return 1 if survivors else 0


if __name__ == "__main__":
    serve()
