"""``python -m pymc_dp ledger FILE`` reads a ledger, verifies its chain and prints what was spent; ``python -m pymc_dp compile`` compiles
what private models have in common, which takes a minute or two, so that most first calls take about half as long.
"""

import argparse
import logging
import sys
import warnings

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.ledger import Ledger


def main() -> int:
    """0 where all is well, 1 where the ledger is refused."""
    parser = argparse.ArgumentParser(prog="python -m pymc_dp", description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    command = commands.add_parser("ledger", help="read and verify a ledger")
    command.add_argument("file")
    command.add_argument("--anchor", help="the ledger head in the newest result; also takes a ledger that was moved")
    commands.add_parser("compile", help="compile what private models have in common, once for a machine or an image")
    arguments = parser.parse_args()
    if arguments.command == "compile":
        _compile()
        return 0
    try:
        ledger = Ledger(arguments.file, anchor=arguments.anchor)
        sys.stdout.write(f"{ledger!r}\nThe chain is whole; its head is {ledger.head}\n")
    except Refusal as reason:
        sys.stderr.write(f"{reason}\n")
        return 1
    return 0


def _compile() -> None:
    from pymc_dp.ahead import MODELS, compiled_ahead

    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")  # of few draws, and of made-up records that no ledger remembers
    for k, name in enumerate(compiled_ahead()):
        sys.stdout.write(f"[{k + 1}/{len(MODELS)}] {name}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
