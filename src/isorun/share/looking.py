"""Is a package whole, what is in it, and who signed it?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from isorun.errors import InputError, IsorunError
from isorun.packages import refused
from isorun.packages.counting import counted_runs
from isorun.packages.manifest import Manifest
from isorun.packages.reading import CODE, DATA, ENVIRONMENT, Package, open_package
from isorun.share.keys import PublicKey, trusted_keys

__all__ = ["INVALID", "NONE", "TRUSTED", "UNKNOWN_KEY", "LookedAt", "signer_of", "signer_to_run", "verify"]

NONE: Final = "unsigned"
INVALID: Final = "invalid"
UNKNOWN_KEY: Final = "unknown key"
TRUSTED: Final = "trusted"


@dataclass(frozen=True, slots=True)
class LookedAt:
    """A package that is whole. signature: unsigned, invalid, unknown key or trusted; by: the key that it names.

    marks: of some of its runs, always the same ones of the same runs: packages that share runs mostly share marks.
    """

    path: str
    size: int
    address: str
    manifest: Manifest
    signature: str
    by: PublicKey | None
    states: dict[str, int]
    groups: int
    metrics: tuple[str, ...]
    environments: tuple[str, ...]
    code: dict[str, Any]
    data: dict[str, Any]
    seconds: float
    marks: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "package": self.path,
            "whole": True,
            "address": self.address,
            "bytes": self.size,
            "study": self.manifest.study,
            "runs": self.manifest.runs,
            "points": self.manifest.points,
            "states": self.states,
            "groups": self.groups,
            "metrics": list(self.metrics),
            "environments": list(self.environments),
            "code": self.code,
            "data": self.data,
            "signature": self.signature,
            "signed_by": {"fingerprint": self.by.fingerprint, "name": self.by.name} if self.by else None,
            "members": [
                {"name": item.name, "size": item.size, "sha256": item.sha256} for item in self.manifest.members
            ],
        }


def verify(path: str | Path, *, keys: Sequence[PublicKey] | None = None, apart: bool = False) -> LookedAt:
    """Check all of a package: every byte of it, and that its runs can be read. PackageError says what is wrong.

    keys: those that are trusted; by default those that the user trusts. apart: with a second process for a large one.
    """
    began = time.monotonic()
    with open_package(path) as package:
        package.check_all()
        try:
            study = package.study()
        except IsorunError as error:
            raise refused("the study in the package cannot be read", f"{error.what} {error.found}"[:200]) from None
        runs = counted_runs(package, apart=apart)
        package.documents()
        signature, by = signer_of(package, trusted_keys() if keys is None else keys)
        return LookedAt(
            path=str(path),
            size=package.size,
            address=package.address,
            manifest=package.manifest,
            signature=signature,
            by=by,
            states=runs.states,
            groups=len(runs.groups),
            metrics=tuple(sorted(runs.metrics.union(study.metrics))),
            environments=_sentences(package),
            code=_document(package, CODE),
            data=_document(package, DATA),
            seconds=time.monotonic() - began,
            marks=runs.marks,
        )


def signer_of(package: Package, keys: Sequence[PublicKey]) -> tuple[str, PublicKey | None]:
    """Unsigned, invalid, unknown key or trusted, and the key that is named. keys: those that are trusted."""
    if package.signature is None:
        return NONE, None
    named = next((key for key in keys if key.key == package.signature.key), PublicKey(package.signature.key))
    if not package.signature.is_valid_for(package.address):
        return INVALID, named
    return (TRUSTED if named in keys else UNKNOWN_KEY), named


def signer_to_run(package: Package) -> str:
    """Who signed what is about to be run, as far as that is known here; one whose signature does not fit is not run."""
    word, by = signer_of(package, trusted_keys())
    if word == INVALID:
        raise InputError(
            "the signature of the package does not fit: it was signed for another content, or altered",
            hint=f"isorun verify {package.path}; ask whoever made it for the file again",
        )
    return f"by {by.name or by.fingerprint}, {word}" if by is not None else word


def _sentences(package: Package) -> tuple[str, ...]:
    found = package.read(ENVIRONMENT) if ENVIRONMENT in package.names() else []
    items = found if isinstance(found, list) else []
    told = (str(item["sentence"]) for item in items if isinstance(item, dict) and "sentence" in item)
    return tuple(dict.fromkeys(told))  # what a sentence leaves out may differ


def _document(package: Package, name: str) -> dict[str, Any]:
    found = package.read(name) if name in package.names() else {}
    return found if isinstance(found, dict) else {}
