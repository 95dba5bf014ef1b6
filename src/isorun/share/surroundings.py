"""The environments and the data of a study's runs, as a package tells them: a CycloneDX list of parts, and digests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote

from isorun.analysis.descriptions import description_of_run
from isorun.analysis.evidence.provenance import effective, requested
from isorun.study.records import RunRecord, canonical_json

__all__ = ["BILL", "bill_of_materials", "data_of", "environments_of"]

BILL: Final = "sbom.cdx.json"
_CYCLONEDX: Final = "1.6"
_FACTS: Final = ("python", "packages", "platform", "cpu", "gpu", "frameworks")
_RUN_S_OWN: Final = frozenset(("executable", "hash_randomization"))
"""A path, and what follows from the level."""
_CODE: Final = frozenset((".py", ".pyi", ".pyx", ".ipynb", ".sh"))


def environments_of(records: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """The different environments, with how many runs each had, in a sentence and as facts."""
    runs: Counter[str] = Counter()
    first: dict[str, RunRecord] = {}
    known: dict[tuple[int, ...], str] = {}
    for record in records:
        inside = effective(record)
        parts = tuple(id(inside.get(name)) for name in _FACTS)
        if parts not in known:
            known[parts] = canonical_json(_facts(inside))
        runs[known[parts]] += 1
        first.setdefault(known[parts], record)
    return [
        {"runs": runs[text], "sentence": _sentence(first[text]), **_facts(effective(first[text]))}
        for text in sorted(runs)
    ]


def _sentence(record: RunRecord) -> str:
    """What is said of the environment in a paper, without the level and the seed, which are the run's."""
    return f"{description_of_run(record).sentence.rpartition('; determinism level ')[0]}."


def _facts(inside: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: inside[name] for name in _FACTS if name in inside}
    python = found.get("python")
    if isinstance(python, Mapping):
        found["python"] = {name: value for name, value in python.items() if name not in _RUN_S_OWN}
    return found


def bill_of_materials(study: str, environments: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What the trainings ran with, as CycloneDX: packages, interpreters, operating systems; each once."""
    found: dict[tuple[str, str, str], int] = {}
    for environment in environments:
        for part in _parts(environment):
            found[part] = found.get(part, 0) + int(environment["runs"])
    components = [_component(*part, runs=runs) for part, runs in sorted(found.items())]
    return {
        "$schema": f"http://cyclonedx.org/schema/bom-{_CYCLONEDX}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": _CYCLONEDX,
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": "study", "name": study}},
        "components": components,
        "dependencies": [{"ref": "study", "dependsOn": sorted(item["bom-ref"] for item in components)}],
    }


def _parts(environment: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Kind, name and version of what an environment is made of."""
    packages, python = environment.get("packages"), environment.get("python")
    for name, version in packages.items() if isinstance(packages, Mapping) else ():
        yield "library", str(name), str(version)
    if isinstance(python, Mapping) and python.get("version"):
        yield "platform", str(python.get("implementation") or "Python"), str(python["version"])
    platform = environment.get("platform")
    if isinstance(platform, Mapping) and platform.get("os"):
        yield "operating-system", str(platform["os"]), str(platform.get("kernel") or "")


def _component(kind: str, name: str, version: str, *, runs: int) -> dict[str, Any]:
    address = f"pkg:pypi/{quote(name.lower().replace('_', '-'), safe='')}@{quote(version, safe='')}"
    named = {"purl": address} if kind == "library" else {}
    return {
        "type": kind,
        "bom-ref": named.get("purl") or f"{kind}:{name}@{version}",
        "name": name,
        **({"version": version} if version else {}),
        **named,
        "properties": [{"name": "isorun:runs", "value": str(runs)}],
    }


def data_of(records: Sequence[RunRecord]) -> dict[str, Any]:
    """The files that runs were given or read, and digests of data that they told, each with the number of runs."""
    files = Counter(item for record in records for item in set(_data_files(record)))
    told = Counter(
        (name, digest) for record in records for name, digest in record.digests.items() if name.startswith("data")
    )
    return {
        "files": [{"path": path, "sha256": digest, "runs": runs} for (path, digest), runs in sorted(files.items())],
        "digests": [{"name": name, "digest": digest, "runs": runs} for (name, digest), runs in sorted(told.items())],
    }


def _data_files(record: RunRecord) -> Iterator[tuple[str, str]]:
    asked = requested(record)
    for item in (*asked.get("given_files", ()), *asked.get("read_files", ())):
        path, digest = (item.get("path"), item.get("sha256")) if isinstance(item, Mapping) else (None, None)
        if isinstance(path, str) and isinstance(digest, str) and PurePosixPath(path).suffix not in _CODE:
            yield path, digest
