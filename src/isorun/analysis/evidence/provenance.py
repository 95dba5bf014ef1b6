"""Provenance: from which code, on which machine and by which launch the runs of a group were made.

Two sides that differ in any of these differ in more than what is compared, and nobody can tell which of them it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from isorun.analysis.evidence import Condition, first_of
from isorun.analysis.evidence.places import Places, between_places, places
from isorun.study.records import RunRecord

__all__ = [
    "SOURCES",
    "Provenance",
    "between_sides",
    "changed_facts",
    "distinct",
    "edited_between",
    "effective",
    "files_of",
    "made",
    "provenance",
    "requested",
]

_KIND_FACTS: Final = frozenset(("model", "vector", "cpu_capability", "devices", "version"))
_PYTHON: Final = "python.version"
_MACHINE_FACTS: Final = _KIND_FACTS | {"affinity"}
SOURCES: Final = ("sources_sha256", "script_sha256")
_ONCE_REQUESTED: Final = frozenset(
    ("python", "packages", "packages_made_by", "image", "image_id", "image_digest", "engine")
)
_NOTHING: Final = object()
_NEW_STORE: Final = "make the runs of both sides again in a new store: isorun decide … --store NEW"


@dataclass(frozen=True, slots=True)
class Provenance:
    """The different values among the runs, each as JSON. sources: hashes of what the training itself is written in.

    files: name and digest of every file that the runs told they were made of. commits: of runs that told none.
    kinds: of the machines, what they are and which versions of libraries they have, without what a run was lent.
    """

    sources: frozenset[str] = frozenset()
    files: frozenset[tuple[str, str]] = frozenset()
    commits: frozenset[str] = frozenset()
    machines: frozenset[str] = frozenset()
    launches: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    places: Places = field(default_factory=Places)


def provenance(records: Sequence[RunRecord]) -> Provenance:
    """Where the runs come from. A version of the code that the study names is what is compared, and not behind it."""
    own = [one for one in records if not one.cell.environment_content.get("code")]
    codes = _changes(one.code for one in own if not effective(one).get("sources"))
    machines = [found for found in _changes(effective(one) for one in records) if found]
    return Provenance(
        sources=frozenset(found for record in own if (found := _sources(record.code))),
        files=frozenset(item for record in own for item in files_of(record)),
        commits=frozenset(distinct(commit for code in codes if (commit := _commit(code)))),
        machines=frozenset(distinct(_facts(found, _is_machine_fact) for found in machines)),
        launches=frozenset(record.launch for record in records),
        kinds=frozenset(distinct(map(_kind, machines))),
        places=places(records),
    )


def between_sides(a: Provenance, b: Provenance, compared: str) -> tuple[Condition, ...]:
    """What the sides differ in besides `compared` (approach, config, environment or level)."""
    found: list[Condition] = []
    if compared != "approach" and a.sources != b.sources and a.sources and b.sources:
        apart = not a.sources & b.sources
        message = "the two sides were trained by different versions of the code"
        said = f"{message}, so that the difference may be the code's" if apart else f"{message} in part"
        found.append(Condition("sides-differ-in-code", said, _NEW_STORE, voids=apart))
    elif shared := edited_between(a.files, b.files):
        message = f"the two sides were trained with different versions of {first_of(shared, 4, ', ')}"
        found.append(Condition("sides-differ-in-code", message, _NEW_STORE))
    elif a.commits != b.commits:
        message = "the two sides come from different commits or uncommitted changes"
        found.append(Condition("sides-differ-in-code", message, _NEW_STORE))
    if compared != "environment" and a.machines != b.machines:
        message = "the two sides did not have the same processor, device, threads or library versions"
        found.append(Condition("sides-differ-in-machine", message, _NEW_STORE))
    differ = compared != "environment" and bool(a.kinds and b.kinds) and not a.kinds & b.kinds
    found += between_places(a.places, b.places, known_to_differ=differ)
    if compared != "level" and a.launches != b.launches:
        message = f"the two sides were launched differently ({_listed(a.launches)}; {_listed(b.launches)})"
        found.append(Condition("sides-differ-in-launch", message, "isorun run --launch fresh in a new store"))
    return tuple(found)


def files_of(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Names and digests of the files that a run was made of: its script, what it imported, what its command names.

    And what it read by itself, as far as that was seen.

    Runs of an earlier isorun told the script alone. What a training tells may be anything: what is no text is left out.
    """
    asked = _part(record, "requested")
    given = (*asked.get("given_files", ()), *asked.get("read_files", ()))
    imported = effective(record).get("sources")
    told = set()
    for item in (*given, *(imported if isinstance(imported, list | tuple) else ())):
        path, digest = (item.get("path"), item.get("sha256")) if isinstance(item, Mapping) else (None, None)
        if isinstance(path, str) and isinstance(digest, str) and "\0" not in path:
            told.add(path)
            yield path, digest
    script = next((word for word in record.cell.command if word.endswith(".py")), "")
    # Where the command's script starts another one that trains, the digest is that one's.
    if script not in {"", *told} and record.code.get("script_sha256"):
        yield script, str(record.code["script_sha256"])


def edited_between(a: frozenset[tuple[str, str]], b: frozenset[tuple[str, str]]) -> list[str]:
    """The files that both sides know, and of which they had no version in common."""
    both = {path for path, _ in a} & {path for path, _ in b}
    common = {path for path, _ in a & b}
    return sorted(both - common)


def effective(record: RunRecord) -> Mapping[str, Any]:
    """What was in force in the run, as far as its worker could tell."""
    return _part(record, "effective")


def made(record: RunRecord) -> Mapping[str, Any]:
    """What was made and found for the run: interpreter, packages, image, the commit that a ref led to."""
    return _part(record, "made") if "made" in record.environment else _told_apart(record)[1]


def requested(record: RunRecord) -> Mapping[str, Any]:
    """What was asked for."""
    return _part(record, "requested") if "made" in record.environment else _told_apart(record)[0]


def _part(record: RunRecord, name: str) -> Mapping[str, Any]:
    found = record.environment.get(name)
    return found if isinstance(found, Mapping) else {}


def _told_apart(record: RunRecord) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of an earlier isorun, which recorded both together: what was asked for, and what was made."""
    both, code = _part(record, "requested"), _part(record, "requested").get("code")
    found = {name: value for name, value in both.items() if name in _ONCE_REQUESTED}
    asked = {name: value for name, value in both.items() if name not in _ONCE_REQUESTED}
    if isinstance(code, Mapping):
        led_to = {name: code[name] for name in ("commit", "diff") if name in code}
        asked["code"] = {name: value for name, value in code.items() if name not in led_to}
        found |= {"code": led_to} if led_to else {}
    return asked, found


def _is_machine_fact(name: str) -> bool:
    """Whether a fact of that name says what a run was computed on, and so may change its numbers."""
    return "threads" in name or name in _MACHINE_FACTS


def changed_facts(records: Sequence[RunRecord], wanted: Callable[[str], bool]) -> str:
    """Which of the wanted effective facts differ between the runs, with up to three of their values."""
    facts = [_facts(found, wanted) for found in _changes(effective(record) for record in records) if found]
    names = dict.fromkeys(name for fact in facts for name in fact)
    found = {name: distinct(fact.get(name) for fact in facts) for name in names}
    return "; ".join(f"{name} {' / '.join(values[:3])}" for name, values in found.items() if len(values) > 1)


def distinct(values: Iterable[Any]) -> list[str]:
    """The different values as JSON, in the order they were met."""
    return list(dict.fromkeys(json.dumps(value, sort_keys=True, default=str) for value in _changes(values)))


def _changes(values: Iterable[Any]) -> Iterator[Any]:
    """Each value that is not the one before it: ten thousand runs on one machine have one set of facts."""
    last: Any = _NOTHING
    for value in values:
        if last is _NOTHING or value != last:
            yield value
        last = value


def _facts(found: Mapping[str, Any], wanted: Callable[[str], bool]) -> dict[str, Any]:
    parts = ((part, facts) for part, facts in found.items() if isinstance(facts, Mapping))
    return {f"{part}.{name}": value for part, facts in parts for name, value in facts.items() if wanted(name)}


def _kind(found: Mapping[str, Any]) -> dict[str, Any]:
    """What a machine is. A correction of Python's (3.11.2, 3.11.7) makes no other kind: it computes no numbers."""
    facts = _facts(found, lambda name: name in _KIND_FACTS)
    if isinstance(version := facts.get(_PYTHON), str):
        facts[_PYTHON] = ".".join(version.split(".")[:2])
    return facts


def _sources(code: Mapping[str, Any]) -> str:
    return next((str(code[name]) for name in SOURCES if code.get(name)), "")


def _commit(code: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in code.items() if name not in SOURCES}


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "unknown"
