"""Descriptions: an environment in one sentence for a paper, and a checklist of what is recorded of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from isorun.analysis import Told
from isorun.analysis.evidence import first_of, some
from isorun.analysis.evidence.provenance import effective, files_of, made, requested
from isorun.analysis.evidence.surroundings import (
    SHORT,
    computing_words,
    driver,
    image_words,
    items,
    libraries,
    machine_words,
    mapping,
    one_line,
    seed_words,
    software_words,
    threads,
)
from isorun.study.cells import Level
from isorun.study.records import RunRecord
from isorun.worker.redaction import without_secrets
from isorun.worker.usercode import UNKNOWN

__all__ = [
    "IN_PART",
    "MISSING",
    "RECORDED",
    "CheckedItem",
    "EnvironmentDescription",
    "description_of_machine",
    "description_of_run",
]

RECORDED: Final = "recorded"
IN_PART: Final = "in part"
MISSING: Final = "missing"
_SOURCE: Final = re.compile(r".*\.(py|pyx|ipynb|sh|toml|ya?ml|cfg|ini)")


@dataclass(frozen=True, slots=True)
class CheckedItem:
    """One line of the checklist. state: "recorded", "in part" or "missing". next_step: what would make it whole."""

    what: str
    state: str
    detail: str
    next_step: str = ""

    def to_json(self) -> dict[str, str]:
        """Plain JSON."""
        return {"what": self.what, "state": self.state, "detail": self.detail, "next": self.next_step}


@dataclass(frozen=True, slots=True)
class EnvironmentDescription(Told):
    """An environment for a paper. run: its id; empty for this machine, of which no training is known.

    effective, made, requested: what it was made from, as recorded.
    """

    told_as: ClassVar[str] = "environment"

    run: str
    sentence: str
    checklist: tuple[CheckedItem, ...]
    effective: Mapping[str, Any] = field(default_factory=dict)
    requested: Mapping[str, Any] = field(default_factory=dict)
    made: Mapping[str, Any] = field(default_factory=dict)

    def in_state(self, state: str) -> tuple[CheckedItem, ...]:
        """The items that are recorded, recorded in part, or missing."""
        return tuple(item for item in self.checklist if item.state == state)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "run": self.run,
            "sentence": self.sentence,
            "checklist": [item.to_json() for item in self.checklist],
            "effective": dict(self.effective),
            "made": dict(self.made),
            "requested": dict(self.requested),
        }


def description_of_run(record: RunRecord) -> EnvironmentDescription:
    """The environment that a run was made in."""
    inside, asked, found = effective(record), requested(record), made(record)
    parts = [*machine_words(inside), *image_words(found), *software_words(inside), *computing_words(inside, asked)]
    level = record.cell.level
    parts.append(f"determinism level {level} ({level.meaning}), {seed_words(record)}")
    return EnvironmentDescription(
        record.run_id,
        _sentence("Trained", parts),
        tuple(_run_checklist(record)),
        inside,
        asked,
        found,
    )


def description_of_machine(
    inside: Mapping[str, Any], installed: Mapping[str, str], code: Mapping[str, Any]
) -> EnvironmentDescription:
    """The machine at hand and an interpreter on it, without a training.

    inside: what a process of that interpreter says of itself; installed: versions of frameworks, also of those that
    could not be imported; code: the version of the code in this folder.
    """
    known = {**inside, "packages": {**installed, **mapping(inside.get("packages"))}}
    parts = [*machine_words(known), *software_words(known), *computing_words(known, {})]
    checklist = (
        *_code_items(code, ()),
        _packages(known, {}) if known["packages"] else CheckedItem("packages", MISSING, "no framework is installed"),
        *_machine_items(known),
        *_computing_items(known, {}),
        *_untrained(),
    )
    return EnvironmentDescription("", _sentence("Run", parts), checklist, known)


def _sentence(verb: str, parts: Sequence[str]) -> str:
    return without_secrets(f"{verb} {'; '.join(part for part in parts if part)}.")


def _run_checklist(record: RunRecord) -> Iterator[CheckedItem]:
    inside, asked, files = effective(record), requested(record), dict(files_of(record))
    hashed = [path for path, digest in files.items() if _SOURCE.fullmatch(path) and digest != UNKNOWN]
    yield from _code_items(record.code, hashed)
    yield _data(files, asked)
    yield _packages(inside, made(record))
    yield from _machine_items(inside)
    yield from _computing_items(inside, asked)
    yield _level(record, inside)
    yield _seed_item(record)


def _code_items(code: Mapping[str, Any], sources: Sequence[str]) -> Iterator[CheckedItem]:
    commit = str(code.get("commit") or "")
    hashed = f"; the content of {some(len(sources), 'source file')} is known by hash" if sources else ""
    if not commit:
        state = IN_PART if sources else MISSING
        yield CheckedItem(
            "code version", state, f"no commit: no git repository was found{hashed}", "git init, and commit"
        )
    elif code.get("dirty"):
        detail = f"commit {commit[:SHORT]} with changes that are not committed, known by hash alone{hashed}"
        yield CheckedItem("code version", IN_PART, detail, "commit the changes, then run again")
    else:
        after = ", as the run began; it changed committed files in its checkout" if code.get("dirty_after") else ""
        yield CheckedItem("code version", RECORDED, f"commit {commit[:SHORT]}, clean{after}{hashed}")


def _data(files: Mapping[str, str], asked: Mapping[str, Any]) -> CheckedItem:
    data = [path for path in files if not _SOURCE.fullmatch(path)]
    if asked.get("stdin"):
        data.append("standard input")
    if not data:
        detail = "no checksum: the command names no data file, and none was seen that it read by itself"
        return CheckedItem(
            "data", MISSING, detail, "name data files in the command; isorun audit -- COMMAND lists those it reads"
        )
    detail = f"SHA-256 of {first_of(data, 3, ', ')}; of what the training opens by itself not all is seen"
    return CheckedItem("data", IN_PART, detail, "isorun audit -- COMMAND lists what it reads")


def _packages(inside: Mapping[str, Any], found: Mapping[str, Any]) -> CheckedItem:
    installed, imported = mapping(found.get("packages")), mapping(inside.get("packages"))
    if installed:
        detail = f"{some(len(installed), 'package')} as they were installed for the study"
        return CheckedItem("packages", RECORDED, detail)
    if found.get("image_id"):
        detail = f"those of the image {found.get('image')}, which is known by its id"
        return CheckedItem("packages", RECORDED, detail)
    if not imported:
        return CheckedItem(
            "packages", MISSING, "no package is known", "run with isorun's worker: start Python without -I or -S"
        )
    detail = f"versions of {some(len(imported), 'imported package')}, which nothing pins"
    pinned = 'an environment of packages ([environments.NAME] packages = ["…=="], or lock = "…")'
    return CheckedItem("packages", IN_PART, detail, pinned)


def _machine_items(inside: Mapping[str, Any]) -> Iterator[CheckedItem]:
    cpu, gpu = mapping(inside.get("cpu")), mapping(inside.get("gpu"))
    platform, python = mapping(inside.get("platform")), mapping(inside.get("python"))
    nothing = "nothing is recorded: no Python process of it loaded isorun's worker"
    yield CheckedItem("processor", *_known(one_line(cpu.get("model", "")) if cpu else "", nothing))
    devices = items(gpu.get("devices"))
    if devices:
        state = RECORDED if gpu.get("driver") else IN_PART
        detail = f"{', '.join(map(str, devices))}, driver {driver(inside) or 'not known'}"
        yield CheckedItem("GPU and driver", state, detail)
    else:
        yield CheckedItem("GPU and driver", RECORDED if inside else MISSING, "none was seen" if inside else nothing)
    system = " ".join(str(platform[name]) for name in ("os", "kernel") if platform.get(name))
    yield CheckedItem("operating system", *_known(system, nothing))
    yield CheckedItem("Python", *_known(str(python.get("version", "")), nothing))


def _known(detail: str, otherwise: str) -> tuple[str, str]:
    return (RECORDED, detail) if detail else (MISSING, otherwise)


def _computing_items(inside: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[CheckedItem]:
    named = ", ".join(libraries(inside))
    detail = f"by SHA-256: {named}" if named else "none was loaded"
    yield CheckedItem("math libraries", RECORDED if inside else MISSING, detail if inside else "not known")
    counts = threads(inside)
    used = ", ".join(f"{name} {number}" for name, number in counts.items())
    if asked.get("threads") is not None:
        yield CheckedItem("threads", RECORDED, f"{asked['threads']} asked for; used: {used or 'not told'}")
    elif counts:
        step = f"--threads {next(iter(counts.values()))}, or threads = … in the study"
        yield CheckedItem("threads", IN_PART, f"{used}, as this machine has them: none were asked for", step)
    else:
        yield CheckedItem("threads", MISSING, "no library told its number", "--threads N, or threads = … in the study")


def _level(record: RunRecord, inside: Mapping[str, Any]) -> CheckedItem:
    level, left = record.cell.level, [str(item) for item in items(inside.get("open"))]
    if not inside and level.fixes_seed:
        return CheckedItem("determinism", MISSING, f"{level} was asked for, and nothing tells that it was applied")
    if left:
        return CheckedItem("determinism", IN_PART, f"{level}, but open: {first_of(left, 3)}", "isorun audit -- COMMAND")
    return CheckedItem("determinism", RECORDED, f"{level}: {level.meaning}")


def _seed_item(record: RunRecord) -> CheckedItem:
    own = [item for item in record.seeded if not item.replaced]
    step = "isorun run --level fixed-seed"
    if record.cell.level is Level.DEFAULT and not own:
        return CheckedItem("seeds", MISSING, "none was fixed: this run cannot be made again", step)
    if record.cell.level is Level.DEFAULT and not any(item.was_seen for item in own):
        return CheckedItem("seeds", IN_PART, seed_words(record), step)
    return CheckedItem("seeds", RECORDED, seed_words(record))


def _untrained() -> Iterator[CheckedItem]:
    step = "isorun run -- COMMAND, then isorun env describe RUN"
    for what in ("data", "determinism", "seeds"):
        yield CheckedItem(what, MISSING, "no training was run", step)
