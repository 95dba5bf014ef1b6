"""What is in a package, for those who know research objects and not isorun: RO-Crate 1.1 metadata."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from isorun.packages.manifest import Member
from isorun.study.design import Study
from isorun.study.records import RunRecord

__all__ = ["CRATE", "crate_of"]

CRATE: Final = "ro-crate-metadata.json"
_CONTEXT: Final = (
    "https://w3id.org/ro/crate/1.1/context",
    {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"},
)
_PROFILE: Final = "https://w3id.org/ro/crate/1.1"
_FORMAT_PAGE: Final = "https://github.com/isorun/isorun/blob/main/docs/packages.md"
_ABOUT: Final = {
    "study.json": "The design: approaches, configs, environments, levels, seeds, repeats, metrics",
    "environment.json": "The environments that the runs were made in",
    "sbom.cdx.json": "The packages of those environments, as CycloneDX",
    "data.json": "Digests of the data that the runs read",
    "code.json": "Versions of the code: commits, differences, files",
    "documents.jsonl.bz2": "Plans of decisions and searches that were kept with the study",
    "shared.jsonl.bz2": "What many runs have in common",
}
_KINDS: Final = {
    ".json": "application/json",
    ".bz2": "application/x-bzip2",
    ".diff": "text/x-diff",
    ".numbers": "application/octet-stream",
}


def crate_of(study: Study, records: Sequence[RunRecord], members: Iterable[Member], license_id: str) -> dict[str, Any]:
    """The metadata. It says when the last run began, and not when it was packed: the same study is the same package."""
    parts = [_file(member) for member in members]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"{study.name}: {len(records):,} training runs",
        "description": _description(study, records),
        "datePublished": max((record.started_at for record in records), default="")[:10] or "1980-01-01",
        "license": {"@id": _license(license_id)["@id"]},
        "hasPart": [{"@id": part["@id"]} for part in parts],
    }
    page = {
        "@id": _FORMAT_PAGE,
        "@type": "WebSite",
        "name": "The form of isorun packages",
    }
    about = {
        "@id": CRATE,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": {"@id": _PROFILE},
    }
    return {"@context": list(_CONTEXT), "@graph": [about, root, _license(license_id), page, *parts]}


def _description(study: Study, records: Sequence[RunRecord]) -> str:
    levels = ", ".join(str(level) for level in study.levels)
    metrics = f", judged by {', '.join(study.metrics)}" if study.metrics else ""
    return (
        f"Records of {len(records):,} runs of {', '.join(study.approaches)} at the levels {levels}{metrics}, "
        f"with their environments, digests, code references and series. Its form is described at {_FORMAT_PAGE}."
    )


def _license(license_id: str) -> dict[str, Any]:
    if license_id:
        return {"@id": f"https://spdx.org/licenses/{license_id}", "@type": "CreativeWork", "name": license_id}
    told = "Nobody said under which licence this may be used; ask those who made it"
    return {"@id": "#no-licence", "@type": "CreativeWork", "name": "No licence was stated", "description": told}


def _file(member: Member) -> dict[str, Any]:
    kind = _KINDS.get(f".{member.name.rpartition('.')[2]}", "text/plain")
    return {
        "@id": member.name,
        "@type": "File",
        "name": member.name,
        "description": _ABOUT.get(
            member.name, "Runs of the study" if member.name.startswith("runs/") else "Code of the study"
        ),
        "contentSize": str(member.size),
        "sha256": member.sha256,
        "encodingFormat": [kind, {"@id": _FORMAT_PAGE}] if kind == "application/octet-stream" else kind,
    }
