"""Surroundings: what a run recorded of its machine, its software and the way it computed, in words for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from typing import Any, Final

from isorun.analysis.evidence import first_of
from isorun.study.records import RunRecord
from isorun.worker.frameworks import DISTRIBUTIONS, LIBRARIES, every
from isorun.worker.frameworks.switches import SWITCHES

__all__ = [
    "SHORT",
    "computing_words",
    "driver",
    "image_words",
    "items",
    "libraries",
    "library_name",
    "machine_words",
    "mapping",
    "one_line",
    "seed_words",
    "software_words",
    "threads",
]

SHORT: Final = 12
"""So many digits of a hash tell it apart from any other that somebody has at hand."""
_WRAPPER: Final = re.compile(r"\.cpython-|\.abi3\.")
"""Modules of Python that hand on to a library; it is the library that computes."""
_LIBRARIES_TOLD: Final = 4
_DRIVER: Final = re.compile(r"\b\d{3}\.\d+(?:\.\d+)?\b")
_TAG: Final = re.compile(r"(-[0-9a-f]{8,})?\.so([.\d]*)$")


def library_name(file: str) -> str:
    """A library's name without the tag that a wheel's maker puts into it, so that two builds of it meet."""
    return _TAG.sub(r".so\2", file)


def mapping(value: Any) -> Mapping[str, Any]:
    """What was recorded as a mapping; nothing where a training told something else."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> list[Any]:
    """What was recorded as a list; nothing where a training told something else."""
    return list(value) if isinstance(value, list | tuple) else []


def machine_words(inside: Mapping[str, Any]) -> Iterator[str]:
    """Processor and devices, then the system. inside: what was in force in the process."""
    cpu, platform = mapping(inside.get("cpu")), mapping(inside.get("platform"))
    if not cpu and not platform:
        yield "on a machine of which nothing is recorded"
        return
    logical, used = cpu.get("logical"), cpu.get("affinity")
    of = f" ({logical} CPUs)" if logical else ""
    if logical and used and used != logical:
        of = f" ({used} of {logical} CPUs used)"
    yield f"on {one_line(cpu.get('model') or platform.get('machine') or 'an unnamed processor')}{of}{_gpu(inside)}"
    system = ", ".join(str(platform[name]) for name in ("kernel", "libc") if platform.get(name))
    if platform.get("os"):
        yield f"{platform['os']} ({system})" if system else str(platform["os"])


def one_line(name: Any) -> str:
    """A name as processors give it, without its runs of spaces."""
    return " ".join(str(name).split())


def _gpu(inside: Mapping[str, Any]) -> str:
    gpu = mapping(inside.get("gpu"))
    devices = [str(name) for name in items(gpu.get("devices"))]
    if not devices:
        return ""
    counted = {name: devices.count(name) for name in dict.fromkeys(devices)}
    shown = ", ".join(f"{number} x {name}" if number > 1 else name for name, number in counted.items())
    versions = [f"driver {number}"] if (number := driver(inside)) else []
    versions += [f"{title} {gpu[name]}" for name, title in LIBRARIES if gpu.get(name)]
    return f" with {shown} ({', '.join(versions)})" if versions else f" with {shown}"


def driver(inside: Mapping[str, Any]) -> str:
    """The number in what the driver says of itself, which is a line long."""
    said = str(mapping(inside.get("gpu")).get("driver") or "")
    found = _DRIVER.search(said)
    return found[0] if found else said


def image_words(found: Mapping[str, Any]) -> Iterator[str]:
    """The container image, where there was one. found: what was made for the run."""
    image_id = str(found.get("image_id") or "").removeprefix("sha256:")
    if found.get("image") and image_id:
        yield f"in the container image {found['image']} (sha256 {image_id[:SHORT]})"


def software_words(inside: Mapping[str, Any]) -> Iterator[str]:
    """Interpreter and frameworks, then the math libraries that were loaded."""
    python = mapping(inside.get("python"))
    versions = {
        name: version for name in map(str, items(inside.get("frameworks"))) if (version := _version(inside, name))
    }
    software = [f"{name} {version}" for name, version in versions.items()]
    interpreter = [f"{python.get('implementation', 'Python')} {python['version']}"] if python.get("version") else []
    if interpreter or software:
        yield f"with {', '.join([*interpreter, *software])}"
    if loaded := libraries(inside):
        named = [f"{name} (sha256 {digest})" if digest else name for name, digest in loaded.items()]
        yield f"math libraries loaded: {first_of(named, _LIBRARIES_TOLD, ', ')}"


def _version(inside: Mapping[str, Any], framework: str) -> str:
    own = mapping(inside.get(framework)).get("version")
    packages = mapping(inside.get("packages"))
    return str(own or packages.get(DISTRIBUTIONS.get(framework, framework)) or "")


def libraries(inside: Mapping[str, Any]) -> dict[str, str]:
    """The libraries that were really loaded, by the name that people know, with the start of their hashes."""
    found: dict[str, str] = {}
    for item in items(inside.get("libraries")):
        file, digest = str(mapping(item).get("name", "")), str(mapping(item).get("sha256", ""))[:SHORT]
        if _WRAPPER.search(file):
            continue
        title = next((title for part, title in LIBRARIES if part in file), library_name(file))
        found.setdefault(title, digest)
    order = {title: place for place, (_, title) in enumerate(LIBRARIES)}
    return dict(sorted(found.items(), key=lambda item: order.get(item[0], len(order))))


def computing_words(inside: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    """Threads and switches. asked: what was asked for."""
    if counts := threads(inside):
        yield f"threads: {', '.join(f'{name} {number}' for name, number in counts.items())}"
    used = set(map(str, items(inside.get("frameworks"))))
    computing = {each.name for each in every() if each.libraries and each.name in used}
    answers = list(_answers(mapping(inside.get("switches")), computing))
    switches = [f"{name}={value}" for name, value in mapping(asked.get("switches")).items()]
    if answers or switches:
        request = [f"(asked for: {', '.join(switches)})"] if switches else []
        yield " ".join([", ".join(answers) or "no library told its switches", *request])


def _answers(answers: Mapping[str, Any], computing: Set[str]) -> Iterator[str]:
    """Each switch with its value; with the names of those who answered where they do not agree.

    computing: frameworks that compute. Where none of them says what it has, what another says is not the training's.
    """
    for name, switch in SWITCHES.items():
        heard = {who: str(value) for who, items in answers.items() if (value := mapping(items).get(name))}
        if len(set(heard.values())) == 1 and not (computing and computing.isdisjoint(heard)):
            yield f"{switch.noun} {next(iter(heard.values()))}"
        elif heard:
            yield f"{switch.noun} {', '.join(f'{value} ({who})' for who, value in heard.items())}"


def threads(inside: Mapping[str, Any]) -> dict[str, str]:
    """How many threads each library had."""
    found: dict[str, str] = {}
    for name, part in inside.items():
        number = mapping(part).get("threads") or mapping(part).get("intra_op_parallelism")
        if number and name not in {"switches", "variables"}:
            found[name] = str(number)
    for name, answered in mapping(inside.get("switches")).items():
        if number := mapping(answered).get("threads"):
            found.setdefault(name, str(number))
    return found


def seed_words(record: RunRecord) -> str:
    """The seed that isorun gave, those of the training, and those that only its source has: it may not have run."""
    left = [item for item in record.seeded if not item.replaced]
    own = dict.fromkeys(item.shown for item in left if item.was_seen)
    read = dict.fromkeys(item.shown for item in left if not item.was_seen and item.shown not in own)
    words = [f"seed {record.seed_used}" if record.cell.level.fixes_seed else "no seed fixed by isorun"]
    if own:
        words.append(f"the training's own seeds: {first_of(own, 3, ', ')}")
    if read:
        words.append(f"in its source, where nothing tells whether they ran: {first_of(read, 3, ', ')}")
    return ", ".join(words)
