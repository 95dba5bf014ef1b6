"""A study becomes a package: its runs, design, environments, code and data digests in one file.

The same study gives the same bytes: when and where it was packed is not in it.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from isorun.errors import InputError, IsorunError, NothingRecorded
from isorun.packages.manifest import Manifest
from isorun.packages.reading import CODE, DATA, ENVIRONMENT, open_package
from isorun.packages.writing import PackageWriter, written_whole
from isorun.replaceable import refuse_present
from isorun.session import PACKAGE_SUFFIX, Store, is_package, opened, recorded
from isorun.share.code import Code, code_for_package
from isorun.share.crate import CRATE, crate_of
from isorun.share.keys import PublicKey, Signing, signer
from isorun.share.surroundings import BILL, bill_of_materials, data_of, environments_of
from isorun.store import PLANS, SEARCHES, AbstractStore
from isorun.study.design import Study, document_without_secrets, with_key
from isorun.study.records import RunRecord, states
from isorun.workflow import kept_of

__all__ = ["Content", "PackedStudy", "check_license", "pack", "package_name", "write_package"]

_LICENSE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,60}")


@dataclass(frozen=True, slots=True)
class PackedStudy:
    """What was packed. path: empty where nothing was written. places: machines that the records name."""

    path: str
    manifest: Manifest
    size: int
    states: dict[str, int]
    code: Code
    places: tuple[str, ...]
    signed_by: PublicKey | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "package": self.path or None,
            "address": self.manifest.address,
            "bytes": self.size,
            "study": self.manifest.study,
            "runs": self.manifest.runs,
            "points": self.manifest.points,
            "states": self.states,
            "members": [
                {"name": item.name, "size": item.size, "sha256": item.sha256} for item in self.manifest.members
            ],
            "code": self.code.to_json(),
            "names_machines": list(self.places),
            "signed_by": self.signed_by.fingerprint if self.signed_by else None,
        }


def package_name(study: str) -> str:
    """The file that a package is called by default."""
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', study).strip('._')[:80] or 'study'}{PACKAGE_SUFFIX}"


def pack(
    source: str | Path | Study,
    target: str | Path | None = None,
    *,
    store: Store = None,
    key: Path | None = None,
    with_code: bool = True,
    snapshot: bool = False,
    allowed: Iterable[str] = (),
    license_id: str = "",
    dry_run: bool = False,
) -> PackedStudy:
    """Pack a study. target: the file, by default named after the study. key: a private key to sign with.

    snapshot: also put in the files of the code that a commit has, so that nobody needs its repository. allowed: files
    that go in although they look as if they held a secret. dry_run: make it, say what is in it, and
    leave nothing.
    """
    check_license(license_id)
    if not isinstance(source, Study) and is_package(source):
        raise InputError(f"{source} is a package already", hint=f"isorun verify {source} says what is in it")
    signing = None if key is None else signer(key)
    with opened(source, store) as (declared, place), recorded(place, declared) as kept:
        study = with_key(declared, kept.key)
        cells, documents = kept_of(study, kept)
        records = kept.records(cells)
        if not records:
            raise NothingRecorded(
                f"no run of the study {study.name!r} is recorded yet",
                hint="isorun run makes the runs, and isorun status says which go on",
            )
        path = None if dry_run else Path(package_name(study.name) if target is None else target)
        code = code_for_package(records, Path(study.folder), with_content=with_code, allowed=allowed, snapshot=snapshot)
        content = Content(study, records, code, _documents(kept, documents), license_id)
    return write_package(content, path, signing)


def check_license(name: str) -> None:
    """InputError where this is no licence by the names of SPDX; empty: none is given."""
    if name and not _LICENSE.fullmatch(name):
        raise InputError("the licence has to be an SPDX name", found=name[:80], allowed="CC-BY-4.0, MIT, …")


@dataclass(frozen=True, slots=True)
class Content:
    """What goes into a package."""

    study: Study
    records: Sequence[RunRecord]
    code: Code
    documents: Sequence[tuple[str, str, dict[str, Any]]] = ()
    license_id: str = ""


def write_package(content: Content, path: Path | None, signing: Signing | None = None) -> PackedStudy:
    """Write the package; with no path it is made, told of, and gone."""
    with _file(path, content.study.name) as file:
        writer = PackageWriter(file)
        _add_all(writer, content)
        manifest = writer.finish(content.study.name, signing[1] if signing else None)
        file.flush()
        size = os.fstat(file.fileno()).st_size
    told = {str(state): count for state, count in states(content.records).items() if count}
    hosts = tuple(sorted({host for record in content.records if (host := record.where.get("host"))}))
    return PackedStudy(str(path or ""), manifest, size, told, content.code, hosts, signing[0] if signing else None)


def _file(path: Path | None, study: str) -> AbstractContextManager[BinaryIO]:
    if path is None:
        return tempfile.TemporaryFile()
    if path.is_dir() or (path.exists() and not path.is_file()):
        raise InputError(f"{path} is no file that a package can be written to", hint=f"-o NAME{PACKAGE_SUFFIX}")
    if path.suffix != PACKAGE_SUFFIX:
        raise InputError(f"{path}: packages are called NAME{PACKAGE_SUFFIX}", hint=f"-o {path.stem}{PACKAGE_SUFFIX}")
    if not _is_package_of(path, study):
        refuse_present(path)
    return written_whole(path)


def _is_package_of(path: Path, study: str) -> bool:
    """Whether an earlier package of the same study is there, which a later one takes the place of."""
    try:
        with open_package(path) as package:
            return package.manifest.study == study
    except IsorunError:
        return False


def _add_all(writer: PackageWriter, content: Content) -> None:
    study, records = content.study, content.records
    environments = environments_of(records)
    writer.add_study(document_without_secrets(study))
    writer.add_json(ENVIRONMENT, environments)
    writer.add_json(BILL, bill_of_materials(study.name, environments))
    writer.add_json(DATA, data_of(records))
    writer.add_json(CODE, content.code.to_json())
    for name, data in content.code.contents.items():
        writer.add(name, [data])
    writer.add_documents(content.documents)
    writer.add_records(records)
    writer.add_json(CRATE, crate_of(study, records, writer.members, content.license_id))


def _documents(store: AbstractStore, wanted: set[tuple[str, str]]) -> list[tuple[str, str, dict[str, Any]]]:
    """Plans and searches of the study, in the order of their names: when each was written is the store's own matter."""
    named = sorted((kind, name) for kind, name in wanted if kind in {PLANS, SEARCHES})
    return [
        (kind, name, document) for kind, name in named if (document := store.documents(kind).read(name)) is not None
    ]
