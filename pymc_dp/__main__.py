"""``python -m pymc_dp release MODEL --data FILE ...`` makes a release on the machine that has the records; ``ledger FILE`` reads a ledger,
verifies its chain and prints what was spent; ``compile`` compiles what private models have in common, which takes a minute or two.
"""

import argparse
import json
import logging
import runpy
import sys
import warnings
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import pymc as pm

from pymc_dp.privacy.accounting import Cost, Refusal
from pymc_dp.privacy.charges import Charge
from pymc_dp.privacy.guard import PrivateComputationError
from pymc_dp.privacy.ledger import Ledger
from pymc_dp.private_models.annotation import spent_by
from pymc_dp.releases.from_records import release
from pymc_dp.releases.release import Release

DECLARED = ("epsilon", "delta", "mechanism", "bounds", "public", "unit", "neighbours", "missing", "disjoint", "weights")
"""What the mapping ``release`` of a model's file may say."""
EXAMPLE = 'release = dict(bounds={"age": (18, 80)}, missing={})'
NOTHING_CHARGED, MAYBE_CHARGED = 1, 3
"""Exit codes of what was refused or failed; 2 is that of arguments that cannot be read."""
AS_JSON = "print one line of JSON instead, for a log"


class Watched(Ledger):
    """A ledger that knows whether this process may have charged it: an interrupt may come behind what is written."""

    charged = False

    def charge(self, *words: Any, **more: Any) -> Charge:
        """As ``Ledger.charge``."""
        before, self.charged = self.head, True
        try:
            return super().charge(*words, **more)
        except Refusal:
            self.charged = self.head != before
            raise


def main() -> int:
    """0 where all is well. What is refused or fails is said in one line: 1 where nothing was charged, 3 where something may have been."""
    parser = argparse.ArgumentParser(prog="python -m pymc_dp", description=__doc__)
    parser.add_argument("--version", action="version", version=f"pymc_dp {version('pymc_dp')}")
    commands = parser.add_subparsers(required=True, dest="command")
    command = commands.add_parser("release", help="release records that stay where they are: docs/where_data_stay.md")
    command.add_argument("model", help="a Python file with a variable model, built on placeholder rows, and a mapping release")
    command.add_argument(
        "--data", required=True, help="the records, as data= takes them: the path of a Parquet file, or a directory or 'pattern' of some"
    )
    command.add_argument("--ledger", required=True, help="the ledger of these records, made beforehand")
    command.add_argument("--out", required=True, help="the file to write, which must not be there")
    command.add_argument("--epsilon", help="a decimal number, in nats, if the file does not say it")
    command.add_argument("--delta", help="as in release, if the file does not say it")
    command.add_argument("--mechanism", help="as in release, if the file does not say it")
    command.add_argument("--json", action="store_true", help=AS_JSON)
    command.set_defaults(run=_release)
    command = commands.add_parser("ledger", help="read and verify a ledger")
    command.add_argument("file")
    command.add_argument("--anchor", help="the ledger head in the newest result; also takes a ledger that was moved")
    command.add_argument("--json", action="store_true", help=AS_JSON)
    command.set_defaults(run=_ledger)
    command = commands.add_parser("compile", help="compile what private models have in common, once for a machine or an image")
    command.set_defaults(run=_compile)
    parser.set_defaults(code=NOTHING_CHARGED)
    arguments, beyond = parser.parse_known_args()
    if beyond:
        files = arguments.command == "release" and not any(word.startswith("-") for word in beyond)
        quoted = ". --data takes one path or pattern: put a pattern in quotation marks, '*.parquet'" if files else ""
        parser.error(f"unrecognized arguments: {' '.join(beyond)}{quoted}")
    return _in_one_line(arguments)


def _in_one_line(arguments: argparse.Namespace) -> int:
    """What goes wrong, in one line. Of an error that nobody foresaw the kind only: its words and its frames may hold records."""
    try:
        arguments.run(arguments)
    except (Refusal, PrivateComputationError) as reason:
        problem = str(reason)
    except KeyboardInterrupt:
        problem = "Stopped. What was charged stays spent."
    except Exception as failure:
        problem = f"This failed with {type(failure).__name__}. What was charged stays spent."
    else:
        return 0
    sys.stderr.write(f"{' '.join(problem.split())}\n")
    return int(arguments.code)


def _ledger(arguments: argparse.Namespace) -> None:
    ledger = Ledger(arguments.file, anchor=arguments.anchor)
    if arguments.json:
        entries = json.loads(ledger.entries().reset_index().to_json(orient="records"))
        facts = {"ledger": ledger.path.name, "neighbours": ledger.neighbours, "privacy_unit": ledger.unit, "parts": list(ledger.parts)}
        left = {"left": _numbers(ledger.remaining()), "left_of": {part: _numbers(ledger.remaining(part=part)) for part in ledger.parts}}
        _say(facts | {"granted": _numbers(ledger.granted), **left, "ledger_head": ledger.head, "entries": entries})
        return
    sys.stdout.write(f"{ledger!r}\nThe chain is whole; its head is {ledger.head}\n")


def _numbers(cost: Cost) -> dict[str, float | None]:
    return {"epsilon": float(cost.epsilon), "delta": float(cost.delta), "rho": None if cost.rho is None else float(cost.rho)}


def _say(facts: Mapping[str, object]) -> None:
    sys.stdout.write(f"{json.dumps(facts)}\n")


def _release(arguments: argparse.Namespace) -> None:
    """Everything is checked, then a file is reserved, then ``release`` charges and reads, then the release is written."""
    with warnings.catch_warnings():
        warnings.showwarning = _warned
        model, declared = _model_of(Path(arguments.model))
        settings = {"epsilon": _decimal(arguments.epsilon), "delta": _decimal(arguments.delta), "mechanism": arguments.mechanism}
        for name in (name for name, value in settings.items() if value is not None):
            if name in declared:
                raise Refusal(f"{name} is said twice. Leave it out of release in {arguments.model}, or leave --{name} out.")
            declared[name] = settings[name]
        if "epsilon" not in declared:
            raise Refusal("It is not said what this may cost. Write --epsilon 1.")
        ledger, out = Watched(arguments.ledger), _reserved(arguments.out)
        try:
            released = release(model, data=arguments.data, ledger=ledger, **declared)
            _write(released, out)
            _say_released(released, out, ledger, arguments.json)
        except BaseException:
            if ledger.charged:  # an empty file stays, so that nobody who only tries again pays again
                arguments.code = MAYBE_CHARGED
            else:
                out.unlink(missing_ok=True)
            raise


def _say_released(released: Release, out: Path, ledger: Ledger, as_json: bool) -> None:
    if not as_json:
        sys.stdout.write(f"{released!r}\nWritten to {out.name}. Left in {ledger.path.name}: {ledger.remaining()}\n")
        return
    facts = {"mechanism": released.mechanism, "public": list(released.public), "missing": dict(released.missing)}
    files = {"release": out.name, "ledger": ledger.path.name, "left": _numbers(ledger.remaining())}
    _say(spent_by(released) | facts | files | {"ledger_head": released.ledger_head, "versions": released.versions})


def _reserved(name: str) -> Path:
    """A new empty file, so that a release that was paid for has a place."""
    out = Path(name)
    try:
        out.open("x").close()
    except FileExistsError:
        if out.is_file() and out.stat().st_size == 0:
            raise Refusal(
                f"{out.name} is there already and empty: a release that was to be written to it did not end, and may have been charged."
                " Look at the ledger, and write another name after --out if the release is to be paid for again."
            ) from None
        raise Refusal(f"{out.name} is there already, and nothing is written over. Write another name after --out.") from None
    except (OSError, ValueError):
        raise Refusal("The file after --out cannot be made. Write the path of a new file in a folder that you may write to.") from None
    return out


def _write(released: Release, out: Path) -> None:
    try:
        released.to_netcdf(out)
    except OSError:
        raise Refusal("The release was paid for and could not be written; it is lost. Make room for it, and release again.") from None


def _model_of(path: Path) -> tuple[pm.Model, dict[str, Any]]:
    """The model and the declarations of a file, which is run as a program that is not the main one."""
    if not path.is_file():
        raise Refusal("There is no file of this model. Write the path of a Python file.")
    sys.path.insert(0, str(path.absolute().parent))
    try:
        names = runpy.run_path(str(path), run_name="model")
    except Refusal:
        raise
    except (Exception, SystemExit) as failure:
        _failed(path, failure)
    model, declared = names.get("model"), names.get("release", {})
    if not isinstance(model, pm.Model):
        raise Refusal(f"{path.name} has no model. Write with pm.Model() as model: in it, on two placeholder rows.")
    if not isinstance(declared, Mapping):
        raise Refusal(f"release in {path.name} must hold the arguments of release by name. Write {EXAMPLE}.")
    if unknown := [name for name in declared if name not in DECLARED]:
        raise Refusal(f"release in {path.name} cannot hold {str(unknown[0])[:40]!r}. It may hold {', '.join(DECLARED)}. Write {EXAMPLE}.")
    return model, dict(declared)


def _failed(path: Path, failure: BaseException) -> NoReturn:
    """Where a model's file failed, and with which kind of error; its words could be those of a record that the file read."""
    lines, frame = [], failure.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == str(path):
            lines.append(frame.tb_lineno)
        frame = frame.tb_next
    line = lines[-1] if lines else getattr(failure, "lineno", None)
    place = "" if line is None else f" in line {line}"
    raise Refusal(f"{path.name} failed with {type(failure).__name__}{place}. Run it by itself, without the records, to see why.") from None


def _decimal(text: str | None) -> Decimal | None:
    try:
        return None if text is None else Decimal(text)
    except InvalidOperation:
        raise Refusal("This is no decimal number. Write for example --epsilon 0.5.") from None


def _warned(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """A warning in one line, without the line of source that caused it."""
    sys.stderr.write(f"{category.__name__}: {' '.join(str(message).split())}\n")


def _compile(_: argparse.Namespace) -> None:
    from pymc_dp.precompile import MODELS, compiled_ahead

    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")  # of few draws, and of made-up records that no ledger remembers
    for k, name in enumerate(compiled_ahead()):
        sys.stdout.write(f"[{k + 1}/{len(MODELS)}] {name}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
