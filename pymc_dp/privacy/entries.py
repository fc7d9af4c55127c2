"""The entries of a ledger, and the check that each follows from the one before: sums, sessions and redemptions are computed again.

Costs and draws are kept as text, because fractions and large integers have no number of their own in JSON.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pymc_dp.privacy import budget
from pymc_dp.privacy.accounting import Cost, Refusal
from pymc_dp.privacy.budget import UNITS, WHOLE, Grant, Units, units_of
from pymc_dp.privacy.journal import Entry, Opened
from pymc_dp.privacy.receipts import Draw

if TYPE_CHECKING:
    import pandas as pd


def granted_in(entry: Entry) -> Grant:
    """The grant at the time of an entry."""
    return Grant(**entry.facts["granted"])


def session_in(entry: Entry) -> dict[str, Any]:
    """What a charge says of its session; nothing where it is none of a session's."""
    return entry.facts.get("session", {}) if entry.kind == "charge" else {}


def cost_facts(cost: Cost) -> dict[str, str | None]:
    """A cost as it is written."""
    return {"epsilon": str(cost.epsilon), "delta": str(cost.delta), "rho": None if cost.rho is None else str(cost.rho)}


def cost_in(facts: dict[str, str | None]) -> Cost:
    """A cost as it was written."""
    return Cost(Fraction(facts["epsilon"] or 0), Fraction(facts["delta"] or 0), None if facts["rho"] is None else Fraction(facts["rho"]))


def draw_facts(draws: Sequence[Draw]) -> list[dict[str, Any]]:
    """Draws as they are written: the disjoint ones that a draw is one of only where there are some."""
    return [
        {name: value for name, value in asdict(draw).items() if name != "disjoint"}
        | {"difference": str(draw.difference), "square": str(draw.square)}
        | ({"disjoint": list(draw.disjoint)} if draw.disjoint else {})
        for draw in draws
    ]


def draws_in(entry: Entry) -> tuple[Draw, ...]:
    """The draws of a charge."""
    return tuple(
        Draw(
            **facts | {"difference": int(facts["difference"]), "square": int(facts["square"]), "disjoint": tuple(facts.get("disjoint", ()))}
        )
        for facts in entry.facts["draws"]
    )


def paid_by(entry: Entry) -> Units:
    """What a charge paid: of a session's charge, by how much its total rose."""
    session = session_in(entry)
    if session:
        return budget.increment(session["before"], units_of(cost_in(session["total"])))
    return units_of(cost_in(entry.facts["cost"]))


# ---------- what must hold of the chain


def follows(before: Entry | None, entry: Entry) -> bool:
    """Whether what was spent and granted follows from the entry before."""
    facts, spent, granted = entry.facts, entry.facts["spent"], granted_in(entry)
    if before is None:
        return entry.kind == "open" and spent == {part: [0, 0] for part in (WHOLE, *facts["parts"])}
    if entry.kind == "charge":
        units = paid_by(entry)
        right = facts["units"] == (units[1] or None) and spent == budget.add(before.facts["spent"], units, facts["part"])
        return right and _session_goes_on(entry) and granted == granted_in(before) and budget.fits(spent, granted)
    return (
        entry.kind in {"grant", "move", "redeem"}
        and spent == before.facts["spent"]
        and (granted == granted_in(before) or entry.kind == "grant")
    )


def _session_goes_on(entry: Entry) -> bool:
    """A session's total never falls, and covers the draw that is paid for: some record pays for the whole of it."""
    session = session_in(entry)
    if not session:
        return True
    total, cost, facts = cost_in(session["total"]), cost_in(entry.facts["cost"]), entry.facts
    grown = all(units is not None and units >= 0 for units in paid_by(entry))
    covered = total.concentrated >= cost.concentrated  # so it is in epsilon
    return grown and covered and not total.delta and facts["once"] == f"{session['name']}:{session['count']}" and len(facts["draws"]) == 1


def verified(opened: Opened) -> list[Entry]:
    """All entries, verified; every redemption is of an earlier charge, once, and the ledger has not been moved in between.

    Every charge of a session goes on where the one before it ended.
    """
    entries, open_charges, sessions = opened.entries(), set(), dict[str, tuple[int, Units, str]]()
    for entry in entries:
        once, session = entry.facts["once"], session_in(entry)
        if session:
            part = entry.facts["part"]
            if sessions.get(session["name"], (0, (0, 0), part)) != (session["count"], tuple(session["before"]), part):
                raise Refusal(f"{opened.path.name} was changed: entry {entry.id} does not go on with its session. Put the newest back.")
            sessions[session["name"]] = session["count"] + 1, units_of(cost_in(session["total"])), part
        if entry.kind == "charge":
            open_charges.add(once)
        elif entry.kind == "redeem":
            if once not in open_charges:
                raise Refusal(f"{opened.path.name} was changed: entry {entry.id} redeems what cannot be. Put the newest copy back.")
            open_charges.remove(once)
        elif entry.kind == "move":
            open_charges.clear()
    return entries


# ---------- for people


def table(entries: Sequence[Entry]) -> "pd.DataFrame":
    """Entries as a table: see ``Ledger.entries``."""
    import pandas as pd

    rows = list(_rows(entries))
    return pd.DataFrame(rows, index=pd.RangeIndex(1, len(rows) + 1, name="entry"))


SHOWN = {"mechanism": "noise"}
"""What a column is called for people."""


def readable(entries: "pd.DataFrame") -> tuple[list[str], list[list[str]]]:
    """A table of entries for people, as header and body: only columns that say something, and no hashes."""
    entries = (
        entries.drop(columns=["hash"])
        .assign(
            time=entries["time"].str.replace("T", " ").str.replace("Z", ""),
            session=entries["session"].str[:6],
            kind=[
                "charge, not read" if kind == "charge" and not redeemed else kind
                for kind, redeemed in zip(entries["kind"], entries["redeemed"])
            ],
        )
        .drop(columns=["redeemed"])
    )
    charges = entries[entries["kind"] == "charge"]
    kept = [column for column in entries.columns if entries[column].astype(bool).any() or column == "epsilon"]
    kept = [column for column in kept if column != "delta" or charges["delta"].any()]  # what was granted stands above the table
    kept = [column for column in kept if column != "rho" or entries["delta"].any()]  # only a grant with a delta counts in rho
    body = [
        [str(entry), *(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row)]
        for entry, row in zip(entries.index, entries[kept].itertuples(index=False))
    ]
    return ["#", *(SHOWN.get(column, column) for column in kept)], body


def _rows(entries: Sequence[Entry]) -> Iterator[dict[str, Any]]:
    redeemed = {entry.facts["once"] for entry in entries if entry.kind == "redeem"}
    for entry in (entry for entry in entries if entry.kind != "redeem"):
        charged, draws = entry.kind == "charge", entry.facts.get("draws", [])
        cost = cost_in(entry.facts["cost"]) if charged else granted_in(entry).cost
        session = session_in(entry)
        more = [Fraction(units or 0, UNITS) for units in paid_by(entry)] if session else [cost.epsilon, cost.concentrated]
        yield {
            "time": entry.facts["time"],
            "kind": entry.kind,
            "part": entry.facts.get("part", WHOLE),
            "session": session.get("name", ""),
            "what": ", ".join(draw["variable"] for draw in draws),
            "disjoint": "; ".join(dict.fromkeys(" | ".join(draw["disjoint"]) for draw in draws if "disjoint" in draw)),
            "public": ", ".join(entry.facts.get("public", [])),
            "mechanism": ", ".join(dict.fromkeys(draw["mechanism"] for draw in draws)),
            "epsilon": float(more[0]),
            "delta": float(cost.delta),
            "rho": float(more[1]) if charged or cost.delta else 0.0,
            "redeemed": charged and entry.facts["once"] in redeemed,
            "hash": entry.hash,
        }
