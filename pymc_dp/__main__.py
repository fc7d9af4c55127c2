"""``python -m pymc_dp ledger FILE`` reads a ledger, verifies its chain and prints what was spent."""

import argparse
import sys

from pymc_dp.accounting import Refusal
from pymc_dp.ledger import Ledger


def main() -> int:
    """0 where the ledger is whole, 1 where it is refused."""
    parser = argparse.ArgumentParser(prog="python -m pymc_dp", description=__doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("ledger", help="read and verify a ledger")
    command.add_argument("file")
    command.add_argument("--anchor", help="the ledger head in the newest result; also takes a ledger that was moved")
    given = parser.parse_args()
    try:
        ledger = Ledger(given.file, anchor=given.anchor)
        sys.stdout.write(f"{ledger!r}\nThe chain is whole; its head is {ledger.head}\n")
    except Refusal as reason:
        sys.stderr.write(f"{reason}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
