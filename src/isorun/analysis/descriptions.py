"""Descriptions: an environment in one sentence for a paper, and a checklist of what is recorded of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from isorun.analysis import Told
from isorun.analysis.environments import library_name
from isorun.analysis.evidence import first_of, some
from isorun.analysis.evidence.provenance import effective, files_of, made, requested
from isorun.study.cells import Level
from isorun.study.records import RunRecord
from isorun.worker.frameworks import DISTRIBUTIONS, LIBRARIES, every
from isorun.worker.frameworks.switches import SWITCHES
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
_SHORT: Final = 12
_WRAPPER: Final = re.compile(r"\.cpython-|\.abi3\.")
"""Modules of Python that hand on to a library; it is the library that computes."""
_LIBRARIES_TOLD: Final = 4
_SOURCE: Final = re.compile(r".*\.(py|pyx|ipynb|sh|toml|ya?ml|cfg|ini)")
_DRIVER: Final = re.compile(r"\b\d{3}\.\d+(?:\.\d+)?\b")


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
    parts = [*_machine(inside), *_image(found), *_software(inside), *_way_of_computing(inside, asked)]
    level = record.cell.level
    parts.append(f"determinism level {level} ({level.meaning}), {_seeds(record)}")
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
    known = {**inside, "packages": {**installed, **_mapping(inside.get("packages"))}}
    parts = [*_machine(known), *_software(known), *_way_of_computing(known, {})]
    checklist = (
        *_code_items(code, ()),
        _packages(known, {}) if known["packages"] else CheckedItem("packages", MISSING, "no framework is installed"),
        *_machine_items(known),
        *_computing_items(known, {}),
        *_untrained(),
    )
    return EnvironmentDescription("", _sentence("Run", parts), checklist, known)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _sentence(verb: str, parts: Sequence[str]) -> str:
    return without_secrets(f"{verb} {'; '.join(part for part in parts if part)}.")


def _machine(inside: Mapping[str, Any]) -> Iterator[str]:
    cpu, platform = _mapping(inside.get("cpu")), _mapping(inside.get("platform"))
    if not cpu and not platform:
        yield "on a machine of which nothing is recorded"
        return
    logical, used = cpu.get("logical"), cpu.get("affinity")
    of = f" ({logical} CPUs)" if logical else ""
    if logical and used and used != logical:
        of = f" ({used} of {logical} CPUs used)"
    yield f"on {_one(cpu.get('model') or platform.get('machine') or 'an unnamed processor')}{of}{_gpu(inside)}"
    system = ", ".join(str(platform[name]) for name in ("kernel", "libc") if platform.get(name))
    if platform.get("os"):
        yield f"{platform['os']} ({system})" if system else str(platform["os"])


def _one(name: Any) -> str:
    return " ".join(str(name).split())


def _gpu(inside: Mapping[str, Any]) -> str:
    gpu = _mapping(inside.get("gpu"))
    devices = [str(name) for name in _items(gpu.get("devices"))]
    if not devices:
        return ""
    counted = {name: devices.count(name) for name in dict.fromkeys(devices)}
    shown = ", ".join(f"{number} x {name}" if number > 1 else name for name, number in counted.items())
    versions = [f"driver {driver}"] if (driver := _driver(inside)) else []
    versions += [f"{title} {gpu[name]}" for name, title in LIBRARIES if gpu.get(name)]
    return f" with {shown} ({', '.join(versions)})" if versions else f" with {shown}"


def _driver(inside: Mapping[str, Any]) -> str:
    """The number in what the driver says of itself, which is a line long."""
    said = str(_mapping(inside.get("gpu")).get("driver") or "")
    found = _DRIVER.search(said)
    return found[0] if found else said


def _image(found: Mapping[str, Any]) -> Iterator[str]:
    image_id = str(found.get("image_id") or "").removeprefix("sha256:")
    if found.get("image") and image_id:
        yield f"in the container image {found['image']} (sha256 {image_id[:_SHORT]})"


def _software(inside: Mapping[str, Any]) -> Iterator[str]:
    python = _mapping(inside.get("python"))
    versions = {
        name: version for name in map(str, _items(inside.get("frameworks"))) if (version := _version(inside, name))
    }
    software = [f"{name} {version}" for name, version in versions.items()]
    interpreter = [f"{python.get('implementation', 'Python')} {python['version']}"] if python.get("version") else []
    if interpreter or software:
        yield f"with {', '.join([*interpreter, *software])}"
    libraries = _libraries(inside)
    if libraries:
        named = [f"{name} (sha256 {digest})" if digest else name for name, digest in libraries.items()]
        yield f"math libraries loaded: {first_of(named, _LIBRARIES_TOLD, ', ')}"


def _version(inside: Mapping[str, Any], framework: str) -> str:
    own = _mapping(inside.get(framework)).get("version")
    packages = _mapping(inside.get("packages"))
    return str(own or packages.get(DISTRIBUTIONS.get(framework, framework)) or "")


def _libraries(inside: Mapping[str, Any]) -> dict[str, str]:
    """The libraries that were really loaded, by the name that people know, with the start of their hashes."""
    found: dict[str, str] = {}
    for item in _items(inside.get("libraries")):
        file, digest = str(_mapping(item).get("name", "")), str(_mapping(item).get("sha256", ""))[:_SHORT]
        if _WRAPPER.search(file):
            continue
        title = next((title for part, title in LIBRARIES if part in file), library_name(file))
        found.setdefault(title, digest)
    order = {title: place for place, (_, title) in enumerate(LIBRARIES)}
    return dict(sorted(found.items(), key=lambda item: order.get(item[0], len(order))))


def _way_of_computing(inside: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    threads = _threads(inside)
    if threads:
        yield f"threads: {', '.join(f'{name} {number}' for name, number in threads.items())}"
    used = set(map(str, _items(inside.get("frameworks"))))
    computing = {each.name for each in every() if each.libraries and each.name in used}
    answers = list(_answers(_mapping(inside.get("switches")), computing))
    switches = [f"{name}={value}" for name, value in _mapping(asked.get("switches")).items()]
    if answers or switches:
        request = [f"(asked for: {', '.join(switches)})"] if switches else []
        yield " ".join([", ".join(answers) or "no library told its switches", *request])


def _answers(answers: Mapping[str, Any], computing: Set[str]) -> Iterator[str]:
    """Each switch with its value; with the names of those who answered where they do not agree.

    computing: frameworks that compute. Where none of them says what it has, what another says is not the training's.
    """
    for name, switch in SWITCHES.items():
        heard = {who: str(value) for who, items in answers.items() if (value := _mapping(items).get(name))}
        if len(set(heard.values())) == 1 and not (computing and computing.isdisjoint(heard)):
            yield f"{switch.noun} {next(iter(heard.values()))}"
        elif heard:
            yield f"{switch.noun} {', '.join(f'{value} ({who})' for who, value in heard.items())}"


def _threads(inside: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, part in inside.items():
        number = _mapping(part).get("threads") or _mapping(part).get("intra_op_parallelism")
        if number and name not in {"switches", "variables"}:
            found[name] = str(number)
    for name, answered in _mapping(inside.get("switches")).items():
        if number := _mapping(answered).get("threads"):
            found.setdefault(name, str(number))
    return found


def _seeds(record: RunRecord) -> str:
    own = [f"{item.call}({item.value})" for item in record.seeded if not item.replaced]
    given = f"seed {record.seed_used}" if record.cell.level.fixes_seed else "no seed fixed by isorun"
    return f"{given}, the training's own seeds: {first_of(dict.fromkeys(own), 3, ', ')}" if own else given


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
        detail = f"commit {commit[:_SHORT]} with changes that are not committed, known by hash alone{hashed}"
        yield CheckedItem("code version", IN_PART, detail, "commit the changes, then run again")
    else:
        after = ", as the run began; it changed committed files in its checkout" if code.get("dirty_after") else ""
        yield CheckedItem("code version", RECORDED, f"commit {commit[:_SHORT]}, clean{after}{hashed}")


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
    installed, imported = _mapping(found.get("packages")), _mapping(inside.get("packages"))
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
    pinned = 'an environment of packages ([environments.NAME] requirements = ["…=="], or lock = "…")'
    return CheckedItem("packages", IN_PART, detail, pinned)


def _machine_items(inside: Mapping[str, Any]) -> Iterator[CheckedItem]:
    cpu, gpu = _mapping(inside.get("cpu")), _mapping(inside.get("gpu"))
    platform, python = _mapping(inside.get("platform")), _mapping(inside.get("python"))
    nothing = "nothing is recorded: no Python process of it loaded isorun's worker"
    yield CheckedItem("processor", *_known(_one(cpu.get("model", "")) if cpu else "", nothing))
    devices = _items(gpu.get("devices"))
    if devices:
        state = RECORDED if gpu.get("driver") else IN_PART
        detail = f"{', '.join(map(str, devices))}, driver {_driver(inside) or 'not known'}"
        yield CheckedItem("GPU and driver", state, detail)
    else:
        yield CheckedItem("GPU and driver", RECORDED if inside else MISSING, "none was seen" if inside else nothing)
    system = " ".join(str(platform[name]) for name in ("os", "kernel") if platform.get(name))
    yield CheckedItem("operating system", *_known(system, nothing))
    yield CheckedItem("Python", *_known(str(python.get("version", "")), nothing))


def _known(detail: str, otherwise: str) -> tuple[str, str]:
    return (RECORDED, detail) if detail else (MISSING, otherwise)


def _computing_items(inside: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[CheckedItem]:
    libraries = _libraries(inside)
    named = ", ".join(libraries)
    detail = f"by SHA-256: {named}" if named else "none was loaded"
    yield CheckedItem("math libraries", RECORDED if inside else MISSING, detail if inside else "not known")
    threads = _threads(inside)
    used = ", ".join(f"{name} {number}" for name, number in threads.items())
    if asked.get("threads") is not None:
        yield CheckedItem("threads", RECORDED, f"{asked['threads']} asked for; used: {used or 'not told'}")
    elif threads:
        step = f"--threads {next(iter(threads.values()))}, or threads = … in the study"
        yield CheckedItem("threads", IN_PART, f"{used}, as this machine has them: none were asked for", step)
    else:
        yield CheckedItem("threads", MISSING, "no library told its number", "--threads N, or threads = … in the study")


def _level(record: RunRecord, inside: Mapping[str, Any]) -> CheckedItem:
    level, left = record.cell.level, [str(item) for item in _items(inside.get("open"))]
    if not inside and level.fixes_seed:
        return CheckedItem("determinism", MISSING, f"{level} was asked for, and nothing tells that it was applied")
    if left:
        return CheckedItem("determinism", IN_PART, f"{level}, but open: {first_of(left, 3)}", "isorun audit -- COMMAND")
    return CheckedItem("determinism", RECORDED, f"{level}: {level.meaning}")


def _seed_item(record: RunRecord) -> CheckedItem:
    own = any(not item.replaced for item in record.seeded)
    if record.cell.level is Level.DEFAULT and not own:
        return CheckedItem(
            "seeds", MISSING, "none was fixed: this run cannot be made again", "isorun run --level fixed-seed"
        )
    return CheckedItem("seeds", RECORDED, _seeds(record))


def _untrained() -> Iterator[CheckedItem]:
    step = "isorun run -- COMMAND, then isorun env describe RUN"
    for what in ("data", "determinism", "seeds"):
        yield CheckedItem(what, MISSING, "no training was run", step)
