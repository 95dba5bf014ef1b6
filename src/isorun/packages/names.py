"""What a package is called in a registry: OWNER/PROJECT/NAME, and @VERSION for one of its versions.

    registry:lab/cifar10/resnet56@3     version 3
    registry:lab/cifar10/resnet56       the latest one that was not yanked
    registry:sha256:614bf…              whatever has this address

Client and server read names by the same rule: small letters and digits, with single . _ - between them. So no two names
differ in their case alone, and none means anything to a file system, a shell or a browser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from isorun.errors import InputError

__all__ = ["ADDRESS", "PREFIX", "PackageName", "Wanted", "parse_name", "parse_wanted", "valid_part"]

PREFIX: Final = "registry:"
ADDRESS: Final = re.compile("sha256:[0-9a-f]{64}")
_PART: Final = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
_LONGEST_PART: Final = 64
_VERSION: Final = re.compile("[1-9][0-9]{0,8}")
_ALLOWED: Final = "OWNER/PROJECT/NAME: small letters and digits, single . _ - between them, 64 characters each"


def valid_part(text: str) -> bool:
    """Whether an owner, a user, a project or a package may be called so."""
    return len(text) <= _LONGEST_PART and _PART.fullmatch(text) is not None


@dataclass(frozen=True, slots=True, order=True)
class PackageName:
    """Whose it is, what it is about, and what it is called."""

    owner: str
    project: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.project}/{self.name}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a registry: a name, with a version or the latest one (0); or an address."""

    name: PackageName | None = None
    version: int = 0
    address: str = ""

    def __str__(self) -> str:
        if self.name is None:
            return self.address
        return f"{self.name}@{self.version}" if self.version else str(self.name)


def parse_name(text: str) -> PackageName:
    """The name of a package; InputError where it is none."""
    parts = text.split("/")
    if len(parts) != 3 or not all(map(valid_part, parts)):
        raise InputError("this is no name of a package", found=repr(text[:200]), allowed=_ALLOWED)
    return PackageName(*parts)


def parse_wanted(text: str) -> Wanted:
    """What a text asks of a registry, with or without `registry:` before it."""
    asked = text.removeprefix(PREFIX)
    if ADDRESS.fullmatch(asked):
        return Wanted(address=asked)
    name, at, version = asked.partition("@")
    if at and not _VERSION.fullmatch(version):
        raise InputError(
            "this is no version of a package", found=repr(version[:60]), allowed="a number: registry:lab/cifar10/net@3"
        )
    return Wanted(parse_name(name), int(version) if at else 0)
