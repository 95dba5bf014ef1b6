"""The first page: what there is, the latest first, and a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from isorun.analysis.evidence import first_of
from isorun.report import UNKNOWN, Column, Section, Table
from isorun.serving.pages import Page
from isorun.serving.pages.links import HOME, LOGIN, address, study_address
from isorun.serving.pages.paging import Paging
from isorun.serving.pages.replications import plain_replications, replicated_by, replication_addresses
from isorun.serving.shelves import AbstractShelf, ShelfEntry

__all__ = ["home_page"]

_A_PAGE: Final = 50
_MOST_WORDS: Final = 5
_REPLICATED_BY: Final = "replicated by"
Found = Sequence[tuple[AbstractShelf, ShelfEntry]]


def home_page(
    entries: Found,
    query: Mapping[str, str],
    user: str | None = None,
    unlisted: Sequence[tuple[AbstractShelf, int]] = (),
) -> Page:
    """The studies that match what is searched for; without a search all.

    user: of a registry, who logged in, empty where nobody did; None where there is none to log in to. unlisted: shelves
    that have more than they list, and how many.
    """
    text = query.get("q", "")
    shown = [(shelf, entry) for shelf, entry in entries if not entry.problem]
    paging = Paging.of(len(shown), query, _A_PAGE)
    table = _table(paging.part(shown), "Studies")
    addresses = {(entry.name, shelf.title): study_address(shelf.name, entry.name) for shelf, entry in shown}
    broken = _problems(entries)
    replicating = replication_addresses((shelf.name, entry) for shelf, entry in shown)
    return Page(
        title="Studies",
        kicker="isorun",
        path=HOME,
        query={"q": text, "page": query.get("page", "")},
        facts=("1 study" if len(entries) == 1 else f"{len(entries)} studies",),
        rest=tuple(_more(shelf, count) for shelf, count in unlisted),
        first=(_said(shown, text, user) if shown or not broken else "What is here cannot be shown: see below.",),
        sections=(
            *((Section("studies", "Recent studies" if not text else "Found", (), (table,)),) if shown else ()),
            *((Section("problems", "What cannot be shown", (), broken),) if broken else ()),
        ),
        related=(*paging.links(lambda page: address(HOME, {"q": text, "page": page})), *_login(user)),
        data={
            "search": text,
            "studies": [_plain(shelf, entry) for shelf, entry in entries],
            "not_listed": {shelf.name: count for shelf, count in unlisted},
        },
        further=(_table(shown, "Studies"),),
        linked=lambda column, text, row: (
            addresses.get((row[0], row[1]), "") if column.title == "study" else replicating.get(text, "")
        ),
    )


def _login(user: str | None) -> tuple[tuple[str, str], ...]:
    """Where one logs in, or out again."""
    return () if user is None else ((f"{user}: log out" if user else "log in", LOGIN),)


def _said(shown: Found, text: str, user: str | None) -> str:
    if text:
        return f"{len(shown) or 'Nothing'} {'matches' if len(shown) < 2 else 'match'} “{text}”."
    if not shown and user is None:
        return "Nothing is here yet: isorun run makes runs, isorun serve STORE shows those of another store."
    if not shown:
        private = "" if user else "; who logs in also sees what is private"
        return f"There is no package here that {user or 'everyone'} may see{private}. isorun push gives it one."
    shelf, latest = shown[0]
    moment = _moment(latest.when)
    when = f", pushed at {moment}" if shelf.is_registry else f", whose latest run began at {moment}"
    return f"The latest is {latest.name}{when if latest.when else ''}."


def _more(shelf: AbstractShelf, count: int) -> str:
    """What is not listed, and how it is had."""
    if shelf.is_registry:
        return f"{count:,} more of the {shelf.title} are not listed, those pushed first: search for words of theirs."
    return f"{count:,} more studies of {shelf.title} are neither listed nor searched: isorun report NAME has each."


def _moment(when: str) -> str:
    return f"{when[:10]} {when[11:16]} UTC" if len(when) >= 16 else when or UNKNOWN


def _table(found: Found, title: str) -> Table:
    tiers = any(entry.tier for _, entry in found)
    dated = {"pushed" if shelf.is_registry else "latest run" for shelf, _ in found} or {"latest run"}
    titles = (
        "study",
        "where",
        "compares and measures",
        "runs",
        " or ".join(sorted(dated)),
        *(["tier", _REPLICATED_BY] if tiers else []),
    )
    columns = tuple(Column(title, key=title != "runs") for title in titles)
    rows = tuple(
        (
            entry.name,
            shelf.title,
            first_of((word for word in entry.words if word not in {"default", entry.name}), _MOST_WORDS, ", ")
            or UNKNOWN,
            f"{entry.runs:,}",
            _moment(entry.when),
            *([entry.tier or UNKNOWN, replicated_by(entry) or UNKNOWN] if tiers else []),
        )
        for shelf, entry in found
    )
    return Table("studies", title, columns, rows)


def _problems(found: Found) -> tuple[Table, ...]:
    """What is there and cannot be shown, why, and what to type next."""
    columns = tuple(Column(title, key=True) for title in ("study", "where", "problem", "next"))
    rows = tuple(
        (entry.name, shelf.title, entry.problem, entry.remedy or UNKNOWN) for shelf, entry in found if entry.problem
    )
    return (Table("problems", "What cannot be shown", columns, rows),) if rows else ()


def _plain(shelf: AbstractShelf, entry: ShelfEntry) -> dict[str, object]:
    return {
        "shelf": shelf.name,
        "study": entry.name,
        "runs": entry.runs,
        "latest_run": None if shelf.is_registry else entry.when or None,
        "pushed_at": entry.when if shelf.is_registry else None,
        "address": entry.address or None,
        "tier": entry.tier or None,
        "replicated_by": list(entry.replicated_by),
        "replications": plain_replications(shelf.name, entry),
        "words": list(entry.words),
        "problem": entry.problem or None,
        "next": entry.remedy or None,
        "page": study_address(shelf.name, entry.name),
    }
