"""What a training leaves open, as a view: the findings, how to close them, and what to do next."""

from __future__ import annotations

import shlex

from isorun.diagnose.audit import Audit
from isorun.report import Column, Listing, Table, View, count

__all__ = ["audit_view"]


def audit_view(found: Audit) -> View:
    """What is left open first, then where, how to close it, and what to do next."""
    table = Table(
        name="findings",
        title="What is left open",
        columns=tuple(Column(title, key=True) for title in ("kind", "where", "sure", "why")),
        rows=tuple((item.kind, item.place, str(item.sure), item.why) for item in found.findings),
    )
    fixes = dict.fromkeys(f"{item.kind}: {item.fix}" for item in found.findings)
    withdrawn = tuple(f"{item.finding.kind} at {item.finding.place}: {item.because}" for item in found.withdrawn)
    listings = [
        Listing("how to close it", tuple(fixes)),
        Listing("what the source lets expect and the run did not bear out", withdrawn),
        Listing("next", tuple(f"{number}. {step}" for number, step in enumerate(_after(found), start=1))),
    ]
    tables = (table,) if found.findings else ()
    return View((_left_open(found), _looked(found)), tables, listings=tuple(item for item in listings if item.items))


def _left_open(found: Audit) -> str:
    if not found.findings and found.failed:
        return f"What {found.script} leaves open is not known: its run failed, and its source alone shows nothing."
    if not found.findings and found.unread:
        return f"Whether {found.script} leaves anything open is not known: not all of its source was looked at."
    if not found.findings:
        return f"{found.script} leaves nothing open that could be seen."
    kinds: dict[str, int] = {}
    for item in found.findings:
        kinds[item.kind] = kinds.get(item.kind, 0) + 1
    told = ", ".join(f"{kind} ({number})" if number > 1 else kind for kind, number in kinds.items())
    sure = f", {len(found.sure)} of them for sure" if found.sure else ", none of them for sure"
    return f"{found.script} leaves {count(len(found.findings), 'source')} of nondeterminism open{sure}: {told}."


def _looked(found: Audit) -> str:
    ran = found.ran or "nothing was run (--static)"
    read = found.files - any(item.startswith(f"{found.script}: ") for item in found.unread)
    unread = f" Not looked at: {'; '.join(found.unread[:5])}." if found.unread else ""
    more = f" And {len(found.unread) - 5} more." if len(found.unread) > 5 else ""
    return f"Looked at: the source of {count(read, 'file')}; {ran}.{unread}{more}"


def _after(found: Audit) -> list[str]:
    command = shlex.join(found.command)
    steps = [f"mend what ends it: {command}"] if found.failed else []
    if found.patch:
        steps.append(f"isorun audit --fix -- {command} | patch -p1")
    if not found.effective:
        steps.append(f"isorun audit -- {command}")
    if found.failed:
        return steps
    return [*steps, f"isorun run -n 4 --level fixed-seed --level deterministic -- {command}", "isorun report"]
