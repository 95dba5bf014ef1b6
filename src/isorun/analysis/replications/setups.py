"""Setups: what new runs were made with that the stored ones were not, and the word that follows from it.

    repeated      nothing was replaced: the same code, data, packages, device and machine
    replicated    the same code and data on another machine, or in an environment that was made again
    reproduced    code, data, a package version or a device was replaced

The words are those of Barba (2018), as paper 004 of few-shot learning uses them: a repeat is by the same lab with the
same setup, a replication by an independent one, a reproduction has differences in the setup. A machine stands for a
lab here.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from isorun.analysis.environments import NUMERICS, FactDifference, difference_of
from isorun.analysis.evidence.provenance import SOURCES, made
from isorun.study.records import RunRecord

__all__ = [
    "CODE",
    "DATA",
    "DEVICE",
    "ENVIRONMENT",
    "MACHINE",
    "PACKAGES",
    "Replacement",
    "replaced_between",
    "word_for",
]

CODE: Final = "code"
DATA: Final = "data"
PACKAGES: Final = "packages"
DEVICE: Final = "device"
ENVIRONMENT: Final = "environment"
MACHINE: Final = "machine"
_OF_SETUP: Final = frozenset((CODE, DATA, PACKAGES, DEVICE))
_ORDER: Final = (CODE, DATA, PACKAGES, DEVICE, ENVIRONMENT, MACHINE)

_KINDS: Final = (
    (
        re.compile(
            r"code\.(sources|script)|(requested|made)\.code\..*|requested\.(take_seeds|switches.*)|study variable .*"
        ),
        CODE,
    ),
    (re.compile(r"code\..*"), ""),
    (re.compile(r"requested\.(stdin|variables_read)(\..*)?"), DATA),
    (re.compile(r"gpu\.devices|switches\.[^.]+\.device|requested\.devices"), DEVICE),
    (re.compile(r"packages\..*|[^.]+\.(version|build)|python\.(version|implementation)"), PACKAGES),
    (re.compile(r"gpu\.(?!devices|driver)\w+"), PACKAGES),
    (re.compile(r"made\.(packages|lock|requirements|image.*)(\..*)?"), PACKAGES),
    (re.compile(r"frameworks|effective"), ""),
)
"""What a fact is about; what is none of these is about the machine. "": it says nothing by itself."""
_MOST_WAYS: Final = 20
_SCRIPTS: Final = frozenset((".py", ".pyi", ".pyx", ".ipynb", ".sh", ".c", ".cc", ".cpp", ".cu", ".h"))


@dataclass(frozen=True, slots=True)
class Replacement:
    """Something that new runs had otherwise. kind: code, data, packages, device, environment or machine."""

    kind: str
    what: str
    stored: str | None
    now: str | None

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.kind}: {self.what} {self.stored or 'not recorded'} then, {self.now or 'not recorded'} now"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"kind": self.kind, "what": self.what, "stored": self.stored, "now": self.now}


def word_for(replaced: Iterable[Replacement]) -> str:
    """What a result that holds is called."""
    kinds = {item.kind for item in replaced}
    if kinds & _OF_SETUP:
        return "reproduced"
    return "replicated" if kinds else "repeated"


def replaced_between(stored: Sequence[RunRecord], new: Sequence[RunRecord]) -> tuple[Replacement, ...]:
    """What any of the new runs had otherwise than all stored runs of its group, each once, what weighs most first.

    Where the stored runs were made in several ways, a new run is held against the one that it is most like.
    """
    known, now = _setups(stored), _setups(new)
    found: dict[Replacement, None] = {}
    for group, records in now.items():
        for record in records:
            pairs = sorted((tuple(_between(kept, record)) for kept in known.get(group, ())), key=len)
            found |= dict.fromkeys(item for pair in pairs[:1] for item in pair)
    return tuple(sorted(found, key=lambda item: _ORDER.index(item.kind)))


def _setups(records: Iterable[RunRecord]) -> dict[tuple[str, ...], list[RunRecord]]:
    """Of each group a record of every way in which its runs were made, the first ones of very many."""
    found: defaultdict[tuple[str, ...], dict[str, RunRecord]] = defaultdict(dict)
    for record in records:
        ways = found[record.cell.group]
        if len(ways) < _MOST_WAYS:
            said = (record.environment, record.code, record.where.get("host"))
            ways.setdefault(json.dumps(said, sort_keys=True, default=str), record)
    return {group: list(ways.values()) for group, ways in found.items()}


def _between(stored: RunRecord, new: RunRecord) -> Iterator[Replacement]:
    same_code = _same_sources(stored.code, new.code)
    for fact in difference_of(stored, new).of_kind(NUMERICS):
        kind = _kind(fact, same_code=same_code)
        if kind:
            yield Replacement(kind, fact.what, fact.first, fact.second)
    hosts = [record.where.get("host") for record in (stored, new)]
    if hosts[0] != hosts[1]:
        yield Replacement(MACHINE, "host", *hosts)
    pythons = [str(made(record).get("python") or "") or None for record in (stored, new)]
    if pythons[0] != pythons[1]:
        yield Replacement(ENVIRONMENT, "interpreter", *pythons)


def _same_sources(stored: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether both were made of the same sources, by the hash of all of them; else by that of the script."""
    return any(stored.get(name) and stored.get(name) == new.get(name) for name in SOURCES)


def _kind(fact: FactDifference, *, same_code: bool) -> str:
    """What a difference is about; empty where it tells nothing: one side did not record it."""
    if fact.what.startswith("file "):
        is_code = PurePosixPath(fact.what).suffix in _SCRIPTS
        one_sided = fact.first is None or fact.second is None
        return "" if one_sided or (is_code and same_code) else CODE if is_code else DATA
    kind = next((kind for pattern, kind in _KINDS if pattern.fullmatch(fact.what)), MACHINE)
    if fact.first is None or fact.second is None:
        return ENVIRONMENT if fact.what.startswith("made.") else PACKAGES if fact.what.startswith("packages.") else ""
    return "" if kind == CODE and same_code and fact.what.startswith("code.") else kind
